//! How commands fail: one message that says what failed and where, one hint that helps, and one
//! documented exit code.

use std::fmt;

use sqlitmus_archive::{ArchiveError, Nature};
use sqlitmus_core::run_comparison::RunComparisonError;
use sqlitmus_runfile::RunFileError;
use sqlitmus_trees::TreeError;

use crate::machine::loopback::{LoopbackError, SpecificationError};
use crate::machine::place::PlaceError;
use crate::machine::scratch::ScratchError;

/// Exit codes, the same for all commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitCode {
    /// Done.
    Done = 0,
    /// The answer is no: an integrity check found damage, a case has become slower, the machine has
    /// a problem, a tier of durability is not kept, or an archive differs.
    No = 1,
    /// Bad input, or refused.
    BadInput = 2,
    /// Not sure: what was measured does not decide it.
    NotSure = 3,
    /// Finished, but some arms failed, or something was left out.
    ArmsFailed = 4,
    /// The environment failed: disk full, I/O error.
    Environment = 5,
    /// Stopped by Ctrl-C or SIGTERM.
    Interrupted = 130,
}

/// Why a command ended without doing what it was asked.
#[derive(Debug)]
pub struct Failure {
    /// Exit code.
    pub code: ExitCode,
    /// What failed, and where.
    pub message: String,
    /// What to do about it; may be empty.
    pub hint: String,
}

impl Failure {
    /// Bad input, or refused.
    pub fn bad_input(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            code: ExitCode::BadInput,
            message: message.into(),
            hint: hint.into(),
        }
    }

    /// The environment failed.
    pub fn environment(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            code: ExitCode::Environment,
            message: message.into(),
            hint: hint.into(),
        }
    }

    /// An error of a library: of the environment if the machine gave out, else bad input.
    fn by_cause(error: &dyn std::error::Error, gave_out: bool, hint: String) -> Self {
        let message = with_causes(error);
        if gave_out {
            Self::environment(message, hint)
        } else {
            Self::bad_input(message, hint)
        }
    }
}

/// Bad input, unless the machine gave out.
impl From<RunFileError> for Failure {
    fn from(error: RunFileError) -> Self {
        Self::by_cause(&error, error.environment_failed(), error.hint())
    }
}

/// Bad input: two runs that cannot be compared.
impl From<RunComparisonError> for Failure {
    fn from(error: RunComparisonError) -> Self {
        Self::bad_input(with_causes(&error), error.hint())
    }
}

/// Bad input, unless the machine gave out.
impl From<TreeError> for Failure {
    fn from(error: TreeError) -> Self {
        Self::by_cause(&error, error.environment_failed(), error.hint())
    }
}

/// Bad input, unless the system refused to look.
impl From<PlaceError> for Failure {
    fn from(error: PlaceError) -> Self {
        let gave_out = matches!(error, PlaceError::Io { .. });
        Self::by_cause(&error, gave_out, error.hint())
    }
}

/// Bad input, unless the system refused.
impl From<ScratchError> for Failure {
    fn from(error: ScratchError) -> Self {
        let gave_out = matches!(error, ScratchError::Io { .. });
        Self::by_cause(&error, gave_out, error.hint().unwrap_or_default())
    }
}

/// Bad input, unless the machine gave out.
impl From<LoopbackError> for Failure {
    fn from(error: LoopbackError) -> Self {
        Self::by_cause(&error, error.is_environment(), error.hint())
    }
}

/// Bad input, unless the machine gave out, or what was written is not what was to be.
impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        let code = match error.nature() {
            Nature::BadInput => ExitCode::BadInput,
            Nature::Environment => ExitCode::Environment,
            Nature::Interrupted => ExitCode::Interrupted,
            Nature::Differs => ExitCode::No,
        };
        Self {
            code,
            message: with_causes(&error),
            hint: error.hint(),
        }
    }
}

/// Bad input.
impl From<SpecificationError> for Failure {
    fn from(error: SpecificationError) -> Self {
        Self::bad_input(error.to_string(), error.hint)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// The lines for standard error, and the exit code, of whatever a command returned.
#[must_use]
pub fn describe(error: &anyhow::Error) -> (String, ExitCode) {
    let (code, hint) = match error.downcast_ref::<Failure>() {
        Some(failure) => (failure.code, failure.hint.as_str()),
        None => (ExitCode::Environment, ""),
    };
    let mut lines = format!("error: {error:#}");
    if !hint.is_empty() {
        lines.push_str("\nhint: ");
        lines.push_str(hint);
    }
    (lines, code)
}

/// An error with what caused it, in one line.
#[must_use]
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
