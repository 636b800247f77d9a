//! The disk with a volatile cache where there is none: on systems without Linux's loop devices.

use std::io;
use std::path::PathBuf;

use super::LoopbackError;
use crate::machine::scratch::{Scratch, ScratchLock};

/// What is left in the instant of the cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtCut {
    /// All writes that reached the device.
    KeepAll,
    /// All that a flush has made safe, and of the others some.
    KeepSome,
}

/// A served image; there is none.
#[derive(Debug)]
pub enum VolatileDevice {}

impl VolatileDevice {
    /// # Errors
    /// Always.
    pub fn create(_: &Scratch, _: &ScratchLock, _: &str, _: u64) -> Result<Self, LoopbackError> {
        Err(unavailable())
    }

    /// Where the image is.
    #[must_use]
    pub fn served_image(&self) -> PathBuf {
        match *self {}
    }

    /// # Errors
    /// There is no device to cut.
    pub fn cut(&mut self, _: AtCut, _: u64) -> io::Result<()> {
        match *self {}
    }

    /// # Errors
    /// There is no device to stop.
    pub fn stop(&mut self) -> Result<PathBuf, LoopbackError> {
        match *self {}
    }
}

/// # Errors
/// Always.
pub fn require() -> Result<(), LoopbackError> {
    Err(unavailable())
}

fn unavailable() -> LoopbackError {
    LoopbackError::Unavailable {
        what: "a disk with a volatile cache".to_owned(),
        missing: "that works on Linux only".to_owned(),
        hint: "run it on Linux".to_owned(),
    }
}
