//! Progress of a long job with an archive, on standard error: a bar with rate and time left where
//! there is a terminal, a line at the end where there is none. It also passes on Ctrl-C.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sqlitmus_archive::Watch;
use sqlitmus_core::units::{format_bytes, format_duration};

use crate::interruption;

/// How often it is looked.
const INTERVAL: Duration = Duration::from_millis(100);

/// Runs a job while showing how far it is, and stops it when the user asks for that.
///
/// # Errors
/// Those of the job, or the system refuses signal handlers.
pub(super) fn watched<T>(
    what: &str,
    quiet: bool,
    job: impl FnOnce(&Watch) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    interruption::listen()?;
    let watch = Arc::new(Watch::new());
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let looker = scope.spawn(|| look(what, quiet, &watch, &ended));
        let result = job(&watch);
        ended.store(true, Ordering::Relaxed);
        looker.thread().unpark();
        result
    })
}

/// A line that stays, unless nothing is to be said.
pub(super) fn say(quiet: bool, line: &str) {
    if !quiet {
        // Standard error is all there is to complain to.
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

fn look(what: &str, quiet: bool, watch: &Watch, ended: &AtomicBool) {
    let shows = !quiet && std::io::stderr().is_terminal();
    let bar = shows.then(|| {
        let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr_with_hz(5));
        let style = ProgressStyle::with_template("{bar:24} {msg}");
        bar.set_style(
            style
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .progress_chars("##-"),
        );
        bar
    });
    let begin = Instant::now();
    while !ended.load(Ordering::Relaxed) {
        if interruption::requested() {
            watch.stop();
        }
        if let Some(bar) = &bar {
            draw(bar, what, watch, begin.elapsed());
        }
        std::thread::park_timeout(INTERVAL);
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
}

/// Bytes and entries both take time: the part done is the mean of both.
fn draw(bar: &ProgressBar, what: &str, watch: &Watch, elapsed: Duration) {
    let (bytes, total_bytes) = watch.bytes();
    let (entries, total_entries) = watch.entries();
    let part = |done: u64, total: u64| done as f64 / total.max(1) as f64;
    let done = match total_bytes {
        0 => part(entries, total_entries),
        _ => f64::midpoint(part(entries, total_entries), part(bytes, total_bytes)),
    };
    bar.set_position((1000.0 * done) as u64);
    let seconds = elapsed.as_secs_f64().max(0.001);
    let mut message = format!(
        "{what} {entries}/{total_entries}, {}/s",
        format_bytes((bytes as f64 / seconds) as u64)
    );
    if done > 0.01 {
        let left_ns = (seconds * (1.0 - done) / done) as u64 * 1_000_000_000;
        message.push_str(&format!(", {} left", format_duration(left_ns)));
    }
    bar.set_message(message);
}
