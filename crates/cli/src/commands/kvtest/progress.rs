//! Progress of `init` and `export`: one line on standard error, if that is a terminal. What it
//! says is left to the verbs.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Between two updates.
const PAUSE: Duration = Duration::from_millis(100);

/// A line that is written over and over.
pub(super) struct Progress {
    is_terminal: bool,
    shown: Instant,
    is_visible: bool,
}

impl Progress {
    /// Shows nothing yet.
    pub(super) fn new() -> Self {
        Self {
            is_terminal: std::io::stderr().is_terminal(),
            shown: Instant::now(),
            is_visible: false,
        }
    }

    /// Shows how far it has come, unless that was done a moment ago.
    pub(super) fn show(&mut self, text: impl FnOnce() -> String) {
        if self.is_terminal && self.shown.elapsed() >= PAUSE {
            self.shown = Instant::now();
            self.is_visible = true;
            // Progress that cannot be shown is no reason to stop.
            let _ = write!(std::io::stderr(), "\r{}   ", text());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_visible {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
