//! What this user may not do here, and what is therefore not measured or not verified.

use serde::Serialize;

use super::{Check, Judgement, Level};
use crate::failure::with_causes;
use crate::machine::drop_caches;
use crate::machine::system_calls::SystemCallCounter;

/// The check.
pub const CHECK: Check = Check {
    name: "rights",
    why: "What may not be asked of the kernel is left out of results, or stays unverified in them.",
};

/// What may be done.
#[derive(Clone, Debug, Serialize)]
pub struct Rights {
    /// Why system calls cannot be counted; empty if they can.
    pub system_calls: String,
    /// What helps against that.
    pub system_calls_hint: &'static str,
    /// Whether the whole machine's caches may be dropped, which `fully-cold` needs.
    pub drop_caches: bool,
}

impl Rights {
    /// Tries what can be tried without doing anything.
    #[must_use]
    pub fn read() -> Self {
        let counter = SystemCallCounter::of_this_thread();
        let drop_caches = rustix::fs::accessat(
            rustix::fs::CWD,
            drop_caches::CONTROL,
            rustix::fs::Access::WRITE_OK,
            rustix::fs::AtFlags::EACCESS,
        );
        Self {
            system_calls: counter
                .as_ref()
                .err()
                .map(|error| with_causes(error))
                .unwrap_or_default(),
            system_calls_hint: counter.as_ref().err().map_or("", |error| error.hint()),
            drop_caches: drop_caches.is_ok(),
        }
    }

    /// What follows.
    #[must_use]
    pub fn judge(&self) -> Judgement {
        let mut judgement = Judgement::ok("");
        if self.system_calls.is_empty() {
            judgement = judgement.and(Level::Ok, "system calls can be counted", "");
        } else {
            judgement = judgement.and(Level::Note, &self.system_calls, self.system_calls_hint);
        }
        if self.drop_caches {
            judgement.and(Level::Ok, "caches can be dropped", "")
        } else {
            judgement.and(
                Level::Note,
                "the machine's caches cannot be dropped: nothing can be measured fully cold",
                "for fully cold measurements run as root with --drop-caches",
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_a_note() {
        let mut rights = Rights {
            system_calls: String::new(),
            system_calls_hint: "",
            drop_caches: true,
        };
        assert_eq!(rights.judge().level, Level::Ok);
        rights.drop_caches = false;
        assert_eq!(rights.judge().level, Level::Note);
        rights.system_calls = "system calls are not counted: x".to_owned();
        rights.system_calls_hint = "run as root";
        let judgement = rights.judge();
        assert!(
            judgement.advice.starts_with("run as root; "),
            "{}",
            judgement.advice
        );
    }
}
