//! A worker process seen from the orchestrator: started, asked, and ended whatever it does. A
//! worker that crashes, hangs or prints rubbish is an error of one call here, never a hang.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sqlitmus_core::case::Scanner;

use crate::interruption;
use crate::machine::memory_group::MemoryGroup;
use crate::machine::scanner::SCANNED_ARGUMENT;
use crate::protocol::{Request, Response};

/// The word that makes this program a worker; the orchestrator's process number follows it.
pub const WORKER_ARGUMENT: &str = "__worker";

/// A scanner at the directory of a store.
#[derive(Debug, Clone)]
pub struct ScannedStore {
    /// What it does.
    pub scanner: Scanner,
    /// The directory.
    pub directory: PathBuf,
}

/// A response is one line; no honest one is longer.
const LONGEST_RESPONSE_BYTES: u64 = 64 << 20;

/// How much of what a worker writes to standard error is kept.
const KEPT_ERROR_BYTES: u64 = 4096;

/// How often a wait looks whether the user has interrupted.
const INTERRUPTION_POLL: Duration = Duration::from_millis(50);

/// Which program runs trials.
#[derive(Debug, Clone)]
pub struct WorkerProgram {
    /// Path of the executable.
    pub path: PathBuf,
    /// Longest time for one response.
    pub timeout: Duration,
}

/// A worker that is alive, or was when last asked.
pub struct WorkerProcess {
    child: Child,
    requests: Option<ChildStdin>,
    responses: Receiver<std::io::Result<String>>,
    errors: Option<JoinHandle<String>>,
    timeout: Duration,
    /// Dropped, and so removed, after the worker has ended.
    _group: Option<MemoryGroup>,
}

/// Why a worker gave no usable response.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// It could not be started.
    #[error("cannot start a worker: {0}")]
    Start(std::io::Error),
    /// It said nothing for too long, and was killed.
    #[error("the worker did not answer within {} s", .0.as_secs())]
    Hung(Duration),
    /// It ended without an answer.
    #[error("the worker ended: {0}")]
    Ended(String),
    /// It answered something that is no response.
    #[error("the worker answered rubbish: {0}")]
    Rubbish(String),
    /// It reported a failure of its own.
    #[error("{0}")]
    Failed(String),
    /// It reported that the machine gave out: disk full, I/O error.
    #[error("{0}")]
    GaveOut(String),
    /// It reported that the machine lacks something.
    #[error("{0}")]
    Unavailable(String),
    /// The user interrupted the run.
    #[error("interrupted")]
    Interrupted,
}

impl WorkerProcess {
    /// Starts a worker; one whose store is scanned if that is asked for.
    ///
    /// # Errors
    /// The program cannot be run.
    pub fn start(
        program: &WorkerProgram,
        scanned: Option<&ScannedStore>,
    ) -> Result<Self, WorkerError> {
        Self::start_in(program, scanned, None)
    }

    /// As [`WorkerProcess::start`], with the memory that a group allows. It is put there before it is asked
    /// anything, and the group goes when the worker has gone.
    ///
    /// # Errors
    /// The program cannot be run, or not in the group.
    pub fn start_in(
        program: &WorkerProgram,
        scanned: Option<&ScannedStore>,
        group: Option<MemoryGroup>,
    ) -> Result<Self, WorkerError> {
        let mut child = command(&program.path, scanned)
            .spawn()
            .map_err(WorkerError::Start)?;
        if let Some(group) = &group
            && let Err(error) = group.take_in(child.id())
        {
            let _ = child.kill();
            let _ = child.wait();
            return Err(WorkerError::Start(error));
        }
        let requests = child.stdin.take();
        let (sender, responses) = channel();
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                let mut lines = BufReader::new(stdout);
                loop {
                    let mut line = String::new();
                    let read = (&mut lines)
                        .take(LONGEST_RESPONSE_BYTES)
                        .read_line(&mut line);
                    let ended = !matches!(read, Ok(bytes) if bytes > 0);
                    let message = read.map(|_| line);
                    if ended || sender.send(message).is_err() {
                        return;
                    }
                }
            });
        }
        let errors = child.stderr.take().map(|stderr| {
            std::thread::spawn(move || {
                let mut kept = Vec::new();
                let mut stderr = stderr;
                let _ = (&mut stderr).take(KEPT_ERROR_BYTES).read_to_end(&mut kept);
                // The rest is read too, so that the worker never blocks on a full pipe.
                let _ = std::io::copy(&mut stderr, &mut std::io::sink());
                String::from_utf8_lossy(&kept).into_owned()
            })
        });
        Ok(Self {
            child,
            requests,
            responses,
            errors,
            timeout: program.timeout,
            _group: group,
        })
    }

    /// Sends a request and waits for its response.
    ///
    /// # Errors
    /// Anything but a response that is neither failed nor unavailable; the worker is then of no
    /// further use.
    pub fn ask(&mut self, request: &Request) -> Result<Response, WorkerError> {
        self.send(request)?;
        let line = self.receive()?;
        match serde_json::from_str(&line) {
            Ok(Response::Failed {
                reason,
                environment: true,
            }) => Err(WorkerError::GaveOut(reason)),
            Ok(Response::Failed { reason, .. }) => Err(WorkerError::Failed(reason)),
            Ok(Response::Unavailable { reason }) => Err(WorkerError::Unavailable(reason)),
            Ok(response) => Ok(response),
            Err(_) => Err(WorkerError::Rubbish(beginning(&line))),
        }
    }

    fn send(&mut self, request: &Request) -> Result<(), WorkerError> {
        let sent = match &mut self.requests {
            None => Err(std::io::Error::from(std::io::ErrorKind::BrokenPipe)),
            Some(requests) => serde_json::to_vec(request)
                .map_err(std::io::Error::from)
                .and_then(|mut line| {
                    line.push(b'\n');
                    requests.write_all(&line)
                }),
        };
        sent.map_err(|_| self.ended())
    }

    fn receive(&mut self) -> Result<String, WorkerError> {
        let deadline = Instant::now() + self.timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.responses.recv_timeout(left.min(INTERRUPTION_POLL)) {
                Ok(Ok(line)) => return Ok(line),
                Ok(Err(error)) => return Err(WorkerError::Rubbish(error.to_string())),
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
                Err(RecvTimeoutError::Timeout) if interruption::now() => {
                    return Err(WorkerError::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                    return Err(WorkerError::Hung(self.timeout));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// What there is to say about a worker that has gone.
    fn ended(&mut self) -> WorkerError {
        // A signal to the whole group of processes may have reached the worker first.
        if interruption::now() {
            return WorkerError::Interrupted;
        }
        // It may have closed its output and still be there.
        let _ = self.child.kill();
        let status = self
            .child
            .wait()
            .map_or_else(|error| error.to_string(), |status| status.to_string());
        let errors = self.errors.take().and_then(|errors| errors.join().ok());
        let last = errors.unwrap_or_default();
        let last = last.lines().last().unwrap_or_default().trim();
        WorkerError::Ended(if last.is_empty() {
            status
        } else {
            format!("{status}: {}", beginning(last))
        })
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        // A worker that has finished ends by itself when its input closes; any other is killed.
        drop(self.requests.take());
        let patience = Instant::now() + Duration::from_millis(200);
        while Instant::now() < patience {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(path: &Path, scanned: Option<&ScannedStore>) -> Command {
    let mut command = Command::new(path);
    // Whose end is to be the worker's end too.
    let parent = std::process::id().to_string();
    match scanned {
        None => command.arg(WORKER_ARGUMENT).arg(parent),
        Some(ScannedStore { scanner, directory }) => command
            .arg(SCANNED_ARGUMENT)
            .arg(parent)
            .arg(scanner.to_string())
            .arg(directory),
    };
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The first characters of something that may be long.
fn beginning(text: &str) -> String {
    const KEPT: usize = 120;
    let text = text.trim_end();
    if text.chars().count() <= KEPT {
        text.to_owned()
    } else {
        text.chars().take(KEPT).chain("...".chars()).collect()
    }
}
