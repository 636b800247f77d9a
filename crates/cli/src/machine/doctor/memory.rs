//! Memory: what may be used, swapping, huge pages.

use serde::Serialize;
use sqlitmus_core::units::format_bytes;

use super::{Check, Judgement, Level};
use crate::machine::environment::{Environment, fact};

/// The check of memory.
pub const MEMORY: Check = Check {
    name: "memory",
    why: "Warm means in memory: what does not fit is read from the disk, and page cache counts against a \
          control group's limit.",
};

/// The check of swap.
pub const SWAP: Check = Check {
    name: "swap",
    why: "A page that was swapped out costs a device read at its next use, in whichever arm that is.",
};

/// The check of transparent huge pages.
pub const HUGE_PAGES: Check = Check {
    name: "huge pages",
    why: "Where the kernel makes huge pages on its own, some processes get them and some do not, and \
          memory is faster or slower by that luck.",
};

/// Less usable memory than this, in bytes, holds neither stores nor the programs themselves.
const USABLE_PROBLEM_BYTES: u64 = 256 << 20;

/// Memory that may be used.
#[derive(Clone, Debug, Serialize)]
pub struct Memory {
    /// Memory of the machine, in bytes.
    pub total_bytes: Option<u64>,
    /// What could be had without swapping, in bytes.
    pub available_bytes: Option<u64>,
    /// The control group's limit, in bytes.
    pub limit_bytes: Option<u64>,
    /// What the stores of the canonical suite take together, in bytes.
    pub stores_bytes: u64,
}

impl Memory {
    /// Reads it.
    #[must_use]
    pub fn read(environment: &Environment, stores_bytes: u64) -> Self {
        Self {
            total_bytes: environment.number(fact::MEMORY_TOTAL_BYTES),
            available_bytes: environment.number(fact::MEMORY_AVAILABLE_BYTES),
            limit_bytes: environment.number(fact::MEMORY_LIMIT_BYTES),
            stores_bytes,
        }
    }

    /// What follows.
    #[must_use]
    pub fn judge(&self) -> Judgement {
        let Some(usable) = self
            .available_bytes
            .into_iter()
            .chain(self.limit_bytes)
            .min()
        else {
            return Judgement::new(Level::Note, "how much is free is not told", "");
        };
        let mut judgement = Judgement::ok(format!("{} may be used", format_bytes(usable)));
        if let Some(limit) = self.limit_bytes {
            judgement = judgement.and(
                Level::Note,
                &format!("a control group limits it to {}", format_bytes(limit)),
                "the page cache shares that limit: keep datasets well below it",
            );
        }
        if usable < USABLE_PROBLEM_BYTES {
            judgement.and(
                Level::Problem,
                "too little to keep stores cached",
                "free some memory",
            )
        } else if usable < self.stores_bytes.saturating_mul(2) {
            judgement.and(
                Level::Warning,
                &format!(
                    "the canonical suite's stores ({}) are more than half of it, so arms are measured in pairs",
                    format_bytes(self.stores_bytes)
                ),
                "free some memory, or measure a group at a time: --group NAME",
            )
        } else {
            judgement
        }
    }
}

/// Swap space and its use.
#[derive(Clone, Debug, Serialize)]
pub struct Swap {
    /// Swap space, in bytes.
    pub total_bytes: Option<u64>,
    /// What of it is in use, in bytes.
    pub used_bytes: Option<u64>,
    /// Pages that went in or out while it was looked at.
    pub moving_pages: Option<u64>,
}

impl Swap {
    /// Reads it.
    #[must_use]
    pub fn read(environment: &Environment, moving_pages: Option<u64>) -> Self {
        let total = environment.number(fact::SWAP_TOTAL_BYTES);
        let free = environment.number(fact::SWAP_FREE_BYTES);
        Self {
            total_bytes: total,
            used_bytes: total
                .zip(free)
                .map(|(total, free)| total.saturating_sub(free)),
            moving_pages,
        }
    }

    /// What follows.
    #[must_use]
    pub fn judge(&self) -> Judgement {
        let Some(total) = self.total_bytes else {
            return Judgement::new(Level::Note, "whether there is swap is not told", "");
        };
        let used = self.used_bytes.unwrap_or(0);
        if let Some(pages) = self.moving_pages.filter(|pages| *pages > 0) {
            return Judgement::new(
                Level::Problem,
                format!("the machine is swapping: {pages} pages moved while it was looked at"),
                "free memory before measuring; see: vmstat 1",
            );
        }
        if total == 0 {
            return Judgement::ok("none");
        }
        let finding = format!("{} of {} in use", format_bytes(used), format_bytes(total));
        if used == 0 {
            return Judgement::ok(finding);
        }
        Judgement::new(
            Level::Note,
            finding,
            "it stands still now; sudo swapoff -a for the time of measuring keeps it so",
        )
    }
}

/// Huge pages made by the kernel on its own.
#[derive(Clone, Debug, Serialize)]
pub struct HugePages {
    /// `always`, `madvise`, `never` or `unknown`.
    pub setting: String,
}

impl HugePages {
    /// Reads it.
    #[must_use]
    pub fn read(environment: &Environment) -> Self {
        Self {
            setting: environment.value(fact::TRANSPARENT_HUGE_PAGES).to_owned(),
        }
    }

    /// What follows.
    #[must_use]
    pub fn judge(&self) -> Judgement {
        match self.setting.as_str() {
            "always" => Judgement::new(
                Level::Note,
                "always",
                "while measuring: echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
            ),
            other => Judgement::ok(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(available_bytes: u64, limit_bytes: Option<u64>) -> Level {
        let memory = Memory {
            total_bytes: Some(8 << 30),
            available_bytes: Some(available_bytes),
            limit_bytes,
            stores_bytes: 1 << 30,
        };
        memory.judge().level
    }

    #[test]
    fn the_smaller_of_available_and_limit_counts() {
        assert_eq!(memory(4 << 30, None), Level::Ok);
        assert_eq!(memory(4 << 30, Some(3 << 30)), Level::Note);
        assert_eq!(memory(4 << 30, Some(1 << 30)), Level::Warning);
        assert_eq!(memory(1 << 30, None), Level::Warning);
        assert_eq!(memory(4 << 30, Some(100 << 20)), Level::Problem);
    }

    #[test]
    fn swap_matters_when_it_moves() {
        let swap = |total, used, moving| {
            let swap = Swap {
                total_bytes: Some(total),
                used_bytes: Some(used),
                moving_pages: Some(moving),
            };
            swap.judge().level
        };
        assert_eq!(swap(0, 0, 0), Level::Ok);
        assert_eq!(swap(1 << 30, 0, 0), Level::Ok);
        assert_eq!(swap(1 << 30, 4096, 0), Level::Note);
        assert_eq!(swap(1 << 30, 4096, 3), Level::Problem);
    }

    #[test]
    fn huge_pages_made_always_are_noted() {
        let level = |setting: &str| {
            let pages = HugePages {
                setting: setting.to_owned(),
            };
            pages.judge().level
        };
        assert_eq!(
            [level("always"), level("madvise")],
            [Level::Note, Level::Ok]
        );
    }
}
