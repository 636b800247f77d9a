//! `sqlitmus serve`: an archive over HTTP, until Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlitmus_archive::{Archive, OpenSettings, Server, Watch};

use super::failed;
use super::progress::say;
use crate::arguments::archive::ServeArguments;
use crate::failure::ExitCode;
use crate::interruption;

/// How often is looked whether to stop.
const INTERVAL: Duration = Duration::from_millis(50);

/// Serves.
///
/// # Errors
/// The archive cannot be read, or the address cannot be had.
pub fn run(arguments: &ServeArguments) -> anyhow::Result<ExitCode> {
    let settings = OpenSettings {
        mmap_bytes: if arguments.mmap { u64::MAX } else { 0 },
        // A program that wants to change the archive need not wait until the server ends.
        hold: false,
        ..OpenSettings::default()
    };
    let archive = Archive::open_with(&arguments.archive, settings).map_err(failed)?;
    let server = Server::bind(archive, arguments.listen).map_err(failed)?;
    interruption::listen()?;
    let address = server.address().map_err(failed)?;
    say(
        arguments.quiet,
        &format!("http://{address}/ (Ctrl-C ends it)"),
    );
    if !address.ip().is_loopback() {
        say(
            arguments.quiet,
            "note: other machines can read this archive",
        );
    }
    let watch = Arc::new(Watch::new());
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                if interruption::requested() {
                    watch.stop();
                }
                std::thread::sleep(INTERVAL);
            }
        });
        let served = server.run(&watch);
        ended.store(true, Ordering::Relaxed);
        served
    })
    .map_err(failed)?;
    let (answers, bytes) = (watch.entries().0, watch.bytes().0);
    say(
        arguments.quiet,
        &format!("{answers} answers, {bytes} bytes"),
    );
    Ok(ExitCode::Done)
}
