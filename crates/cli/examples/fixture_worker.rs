//! A worker that misbehaves on purpose, for the tests of the orchestrator: like the real one, but
//! for one engine and at one step it hangs, crashes, prints rubbish or lies.
//!
//! `FIXTURE_ENGINE` names the engine, `FIXTURE_MISBEHAVIOUR` what it does.

use std::io::{self, BufRead, Write};

use sqlitmus_cli::protocol::{PROTOCOL_VERSION, Request, Response};
use sqlitmus_cli::worker::Worker;

fn main() -> io::Result<()> {
    let engine = std::env::var("FIXTURE_ENGINE").unwrap_or_default();
    let misbehaviour = std::env::var("FIXTURE_MISBEHAVIOUR").unwrap_or_default();
    let mut worker = Worker::default();
    let mut misbehaves = false;
    for line in io::stdin().lock().lines() {
        let request: Request = serde_json::from_str(&line?)?;
        if let Request::Prepare(preparation) = &request {
            misbehaves = preparation.case.engine == engine;
        }
        if let Request::Introduce { .. } = &request
            && introduce(&misbehaviour)?
        {
            continue;
        }
        let at_slice = matches!(request, Request::Slice { .. });
        let mut response = worker.answer(request);
        if misbehaves {
            match misbehaviour.as_str() {
                "hang" if at_slice => loop {
                    std::thread::park();
                },
                "crash" if at_slice => {
                    writeln!(io::stderr(), "fixture: crashing as told")?;
                    std::process::abort();
                }
                "rubbish" if at_slice => {
                    writeln!(io::stdout(), "\u{1}{{ not a response")?;
                    continue;
                }
                "silence" if at_slice => return Ok(()),
                _ => lie(&misbehaviour, &mut response),
            }
        }
        serde_json::to_writer(io::stdout(), &response)?;
        writeln!(io::stdout())?;
    }
    Ok(())
}

/// Introduces itself in a wrong way; says whether it did.
fn introduce(misbehaviour: &str) -> io::Result<bool> {
    let response = match misbehaviour {
        "introduce-hang" => loop {
            std::thread::park();
        },
        "introduce-rubbish" => {
            writeln!(io::stdout(), "Hello!")?;
            return Ok(true);
        }
        "introduce-other-version" => Response::Introduced {
            protocol_version: PROTOCOL_VERSION + 1,
            sqlitmus_version: "99.0.0".to_owned(),
            library: Default::default(),
        },
        // As one that knows no introductions answers.
        "introduce-older" => Response::Failed {
            reason: "not a request: unknown variant `introduce`".to_owned(),
            environment: false,
        },
        _ => return Ok(false),
    };
    serde_json::to_writer(io::stdout(), &response)?;
    writeln!(io::stdout())?;
    Ok(true)
}

/// Changes a true response into a false one.
fn lie(misbehaviour: &str, response: &mut Response) {
    match (misbehaviour, response) {
        ("wrong-sum", Response::Sliced { timed, .. }) => timed.consumed ^= 1,
        ("wrong-digest", Response::Finished { digests, .. }) => {
            if let Some(digest) = digests.last_mut() {
                *digest ^= 1;
            }
        }
        ("fewer-writes", Response::Sliced { timed, .. }) => timed.operations -= 1,
        ("no-time", Response::Sliced { elapsed_ns, .. }) => *elapsed_ns = 0,
        ("half-lead-in", Response::LedIn { read, .. }) => read.operations /= 2,
        ("same-keys", Response::Sliced { timed, .. }) => timed.position = 0,
        // Far below what was asked for, however busy the machine is.
        ("too-fast", Response::Sliced { elapsed_ns, .. }) => *elapsed_ns /= 1000,
        ("too-slow", Response::Sliced { elapsed_ns, .. }) => *elapsed_ns *= 1000,
        // Not warm, but only until somebody has said so.
        ("reads-once", Response::Measured { resources, .. }) if is_first() => {
            resources.insert("device_read_bytes".to_owned(), 4096);
            resources.remove("device_read_ns");
        }
        ("reads-briefly", Response::Measured { resources, .. }) => {
            resources.insert("device_read_bytes".to_owned(), 4096);
            resources.insert("device_read_ns".to_owned(), 0);
        }
        ("endless", Response::Sliced { timed, .. }) => timed.operations = 1 << 60,
        _ => {}
    }
}

/// Whether no worker before has asked this, as the file `FIXTURE_MARK` remembers.
fn is_first() -> bool {
    let mark = std::env::var_os("FIXTURE_MARK").unwrap_or_default();
    std::fs::File::create_new(mark).is_ok()
}
