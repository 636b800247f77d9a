//! Where there is no fanotify there is no scanner.

use std::io::{Stdin, Stdout};
use std::path::Path;

use sqlitmus_core::case::Scanner;

use super::Scanned;

/// A scanner at work; there is none.
pub enum Scan {}

impl Scan {
    /// Always refused.
    ///
    /// # Errors
    /// Always.
    pub fn begin(_scanner: Scanner, _directory: &Path) -> Result<Self, String> {
        Err("an on-access scanner is measured on Linux only (fanotify)".to_owned())
    }

    /// What it has done so far.
    pub fn scanned(&mut self) -> Option<Scanned> {
        match *self {}
    }
}

/// This process is a scanner; there is none.
pub fn serve(_input: &Stdin, _output: &mut Stdout) -> bool {
    false
}
