//! How far a recording is, once a second, in the words of the published test: in one place on a
//! terminal, line by line elsewhere.

use std::io::{IsTerminal, Write};

use indicatif::{ProgressBar, ProgressDrawTarget};
use sqlitmus_trees::index::IndexProgress;

/// Where it is shown.
pub(super) enum LiveLine {
    Nowhere,
    Terminal(ProgressBar),
    Lines,
}

impl LiveLine {
    pub(super) fn new(quiet: bool) -> Self {
        if quiet {
            return Self::Nowhere;
        }
        if !std::io::stderr().is_terminal() {
            return Self::Lines;
        }
        Self::Terminal(ProgressBar::with_draw_target(
            None,
            ProgressDrawTarget::stderr_with_hz(5),
        ))
    }

    pub(super) fn show(&mut self, progress: &IndexProgress) {
        let line = line(progress);
        match self {
            Self::Nowhere => {}
            Self::Terminal(bar) => {
                if let Ok(style) = indicatif::ProgressStyle::with_template("{spinner} {msg}") {
                    bar.set_style(style);
                }
                bar.set_message(line);
                bar.tick();
            }
            Self::Lines => {
                // Standard error is all there is to complain to.
                let _ = writeln!(std::io::stderr(), "{line}");
            }
        }
    }

    /// Takes the line on a terminal away.
    pub(super) fn end(&self) {
        if let Self::Terminal(bar) = self {
            bar.finish_and_clear();
        }
    }
}

fn line(progress: &IndexProgress) -> String {
    format!(
        "Speed: {:.0} Number: {} sqlTime: {:.3} walkTime: {:.3} Seen: {}",
        progress.rows_per_second,
        progress.rows,
        progress.sql_ns as f64 / 1e9,
        progress.walk_ns as f64 / 1e9,
        progress.seen
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_the_words_of_the_original() {
        let progress = IndexProgress {
            rows_per_second: 85.6,
            rows: 1_234,
            seen: 1_300,
            sql_ns: 14_100_000_000,
            walk_ns: 1_500_000,
        };
        assert_eq!(
            line(&progress),
            "Speed: 86 Number: 1234 sqlTime: 14.100 walkTime: 0.002 Seen: 1300"
        );
    }
}
