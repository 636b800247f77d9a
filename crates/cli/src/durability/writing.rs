//! A process that touches a store, seen from the one that cuts it off: started, heard, and killed.
//! Acknowledgements are drained all the time, so that the writer never waits for its listener.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::job::{Job, STORE_ARGUMENT};

/// How often is looked whether a process has ended.
const POLL: Duration = Duration::from_millis(5);

/// How much of what a process writes to standard error is kept.
const KEPT_ERROR_BYTES: u64 = 4096;

/// How long opening a store may take.
const OPENING: Duration = Duration::from_secs(60);

/// Why a process did not do its job, in words.
pub type Reason = String;

/// Starts processes.
#[derive(Debug, Clone)]
pub struct StoreProgram {
    /// This program.
    pub path: PathBuf,
}

impl StoreProgram {
    fn start(&self, job: &Job) -> Result<Child, Reason> {
        let failed = |error: std::io::Error| format!("cannot start a process: {error}");
        let mut child = Command::new(&self.path)
            .arg(STORE_ARGUMENT)
            .arg(std::process::id().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let text = serde_json::to_string(job).map_err(|error| error.to_string())?;
        if let Some(mut input) = child.stdin.take() {
            // A process that died before it was told says why below.
            let _ = input.write_all(text.as_bytes());
        }
        Ok(child)
    }

    /// Has a job done that ends by itself, and returns the answer.
    ///
    /// # Errors
    /// It crashed, hung, or said nothing that makes sense.
    pub fn ask<T: serde::de::DeserializeOwned>(
        &self,
        job: &Job,
        patience: Duration,
    ) -> Result<T, Reason> {
        let mut child = self.start(job)?;
        let output = drain(child.stdout.take());
        let errors = drain(
            child
                .stderr
                .take()
                .map(|errors| errors.take(KEPT_ERROR_BYTES)),
        );
        let until = Instant::now() + patience;
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if Instant::now() < until => std::thread::sleep(POLL),
                Ok(None) => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(format!("it hung for {} s", patience.as_secs()));
                }
                Err(error) => return Err(error.to_string()),
            }
        };
        let text = output.join().unwrap_or_default();
        if !status.success() {
            let errors = errors.join().unwrap_or_default();
            let errors = String::from_utf8_lossy(&errors);
            return Err(format!("it crashed: {status} {}", errors.trim())
                .trim_end()
                .to_owned());
        }
        serde_json::from_slice(&text).map_err(|error| format!("it answered rubbish: {error}"))
    }

    /// Starts a writer, and waits until its store is open.
    ///
    /// # Errors
    /// It could not open the store, or died.
    pub fn write(&self, job: &Job) -> Result<Writing, Reason> {
        let mut child = self.start(job)?;
        let heard = Arc::new(Mutex::new(Heard::default()));
        let listener = child.stdout.take().map(|output| {
            let heard = Arc::clone(&heard);
            std::thread::spawn(move || listen(output, &heard))
        });
        let errors = drain(
            child
                .stderr
                .take()
                .map(|errors| errors.take(KEPT_ERROR_BYTES)),
        );
        let mut writing = Writing {
            child,
            heard,
            listener,
            errors: Some(errors),
        };
        let until = Instant::now() + OPENING;
        while !writing.is_open() {
            writing.require_alive()?;
            if Instant::now() > until {
                return Err(format!("the store did not open in {} s", OPENING.as_secs()));
            }
            std::thread::sleep(POLL);
        }
        Ok(writing)
    }
}

fn drain(source: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut source) = source {
            // What was read before an error is kept.
            let _ = source.read_to_end(&mut bytes);
        }
        bytes
    })
}

/// Acknowledgements, with the time at which each was heard.
#[derive(Debug, Default)]
struct Heard {
    is_open: bool,
    /// Of batch 1, 2, 3 ...
    commits: Vec<Instant>,
    /// Something that is no acknowledgement.
    rubbish: bool,
}

fn listen(mut output: impl Read, heard: &Mutex<Heard>) {
    let mut bytes = [0; 8];
    while output.read_exact(&mut bytes).is_ok() {
        let batch = u64::from_le_bytes(bytes);
        let now = Instant::now();
        let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        if !heard.is_open {
            heard.is_open = true;
            heard.rubbish |= batch != 0;
        } else if batch == heard.commits.len() as u64 + 1 {
            heard.commits.push(now);
        } else {
            heard.rubbish = true;
        }
    }
}

/// A writer at work. Dropping it kills it.
#[derive(Debug)]
pub struct Writing {
    child: Child,
    heard: Arc<Mutex<Heard>>,
    listener: Option<JoinHandle<()>>,
    errors: Option<JoinHandle<Vec<u8>>>,
}

impl Writing {
    fn is_open(&self) -> bool {
        self.heard
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_open
    }

    /// Commits acknowledged so far.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.commits.len() as u64
    }

    /// Makes sure that the writer is still at work.
    ///
    /// # Errors
    /// It has ended, with what it said about it; or it does not keep to the protocol.
    pub fn require_alive(&mut self) -> Result<(), Reason> {
        let is_rubbish = self
            .heard
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .rubbish;
        if is_rubbish {
            return Err("the writer acknowledged commits out of order".to_owned());
        }
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => {
                let errors = self.errors.take().and_then(|errors| errors.join().ok());
                let errors = errors.unwrap_or_default();
                let errors = String::from_utf8_lossy(&errors);
                Err(format!("the writer ended: {status} {}", errors.trim()))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Kills the writer (SIGKILL) and hears the last of it: when each commit was acknowledged, those
    /// that had been said but not heard yet too.
    #[must_use]
    pub fn kill(mut self) -> Vec<Instant> {
        self.end();
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut heard.commits)
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.end();
    }
}
