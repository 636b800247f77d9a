//! Whether the page cache keeps what it has: a file is written and read, left alone, and looked for; and
//! what the kernel is set up to page out by itself.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;
use sqlitmus_core::units::format_count;

use super::{Check, Judgement, Level};
use crate::machine::kernel_files::KernelFiles;
use crate::machine::page_cache::{self, PageCacheError};

/// The check.
pub const CHECK: Check = Check {
    name: "page cache",
    why: "Some machines take idle pages away even while memory is free: an arm that waited for its turn \
          then reads from the disk, and one that keeps its file mapped does not.",
};

/// Size of the file that is left alone, in bytes.
pub const FILE_BYTES: usize = 16 << 20;

/// A file of ours that lies idle in the page cache.
#[derive(Debug)]
pub struct IdleFile {
    path: PathBuf,
    since: Instant,
}

/// What became of an idle file.
#[derive(Clone, Debug, Serialize)]
pub struct IdlePages {
    /// How long it was left alone, in milliseconds.
    pub idle_ms: u64,
    /// Its pages.
    pub pages: u64,
    /// Those that were still cached.
    pub cached_pages: u64,
}

impl IdleFile {
    /// Writes a new file, has it reach the device, and reads it.
    ///
    /// # Errors
    /// The file exists, or the operating system failed.
    pub fn leave(path: &Path) -> std::io::Result<Self> {
        let mut file = File::create_new(path)?;
        // Not all alike: a filesystem that compresses would keep next to nothing.
        let block: Vec<u8> = (0..1u32 << 16)
            .map(|index| (index.wrapping_mul(0x9e37_79b1) >> 24) as u8)
            .collect();
        for _ in 0..FILE_BYTES / block.len() {
            file.write_all(&block)?;
        }
        // Dirty pages stay in any case.
        file.sync_all()?;
        page_cache::warm(path).map_err(std::io::Error::other)?;
        Ok(Self {
            path: path.to_owned(),
            since: Instant::now(),
        })
    }

    /// Looks what is left of it, once it has been left alone for so long.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn look(&self, after: Duration) -> Result<IdlePages, PageCacheError> {
        std::thread::sleep(after.saturating_sub(self.since.elapsed()));
        let residency = page_cache::residency(&self.path)?;
        Ok(IdlePages {
            idle_ms: u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX),
            pages: residency.pages,
            cached_pages: residency.cached_pages,
        })
    }
}

/// Something in the kernel that takes idle pages away before memory is short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reclaimer {
    /// What it is.
    pub name: String,
    /// How long a page must be idle, in seconds; `None` if it is not told.
    pub idle_seconds: Option<u64>,
    /// Whether pages that a process has mapped are left alone.
    pub spares_mapped: bool,
}

/// What is known about the page cache's keeping.
#[derive(Clone, Debug, Serialize)]
pub struct PageReclaim {
    /// What became of a file; `None` where it was not tried or cannot be told.
    pub idle: Option<IdlePages>,
    /// Why there is no answer; empty where it was not tried.
    pub untold: String,
    /// What takes idle pages away.
    pub reclaimers: Vec<Reclaimer>,
}

impl PageReclaim {
    /// What follows.
    #[must_use]
    pub fn judge(&self) -> Judgement {
        let advice =
            "sqlitmus warms stores right before each trial and verifies them; keep pauses short";
        let mut judgement = match &self.idle {
            Some(idle) => {
                let seconds = idle.idle_ms as f64 / 1000.0;
                let lost = idle.pages.saturating_sub(idle.cached_pages);
                if lost == 0 {
                    Judgement::ok(format!(
                        "a file left alone for {seconds:.0} s was still cached"
                    ))
                } else {
                    let finding = format!(
                        "of a file left alone for {seconds:.0} s, {} of {} pages were no longer cached",
                        format_count(lost),
                        format_count(idle.pages)
                    );
                    Judgement::new(Level::Warning, finding, advice)
                }
            }
            None if self.untold.is_empty() => Judgement::ok("not tried (--quick)"),
            None => Judgement::new(Level::Note, self.untold.clone(), ""),
        };
        for reclaimer in &self.reclaimers {
            let age = match reclaimer.idle_seconds {
                Some(seconds) => format!("after {seconds} s"),
                None => "after a time that is not told".to_owned(),
            };
            let spares = if reclaimer.spares_mapped {
                "; mapped files are spared"
            } else {
                ""
            };
            let finding = format!("{} pages out what is idle {age}{spares}", reclaimer.name);
            let more = if judgement.advice.is_empty() {
                advice
            } else {
                ""
            };
            judgement = judgement.and(Level::Warning, &finding, more);
        }
        judgement
    }
}

/// What the kernel is set up to page out by itself: DAMON's reclaim module and its schemes. Only what
/// is running counts.
///
/// The files are described in the kernel's documentation, under admin-guide/mm/damon.
#[must_use]
pub fn reclaimers(files: &KernelFiles) -> Vec<Reclaimer> {
    const MODULE: &str = "/sys/module/damon_reclaim/parameters";
    let mut found = Vec::new();
    if files.text(format!("{MODULE}/enabled")).as_deref() == Some("Y") {
        found.push(Reclaimer {
            name: "DAMON (damon_reclaim)".to_owned(),
            idle_seconds: files
                .number(format!("{MODULE}/min_age"))
                .map(|us| us / 1_000_000),
            spares_mapped: false,
        });
    }
    let daemons = "/sys/kernel/mm/damon/admin/kdamonds";
    for daemon in numbered(files, daemons) {
        if files.text(format!("{daemon}/state")).as_deref() != Some("on") {
            continue;
        }
        for context in numbered(files, &format!("{daemon}/contexts")) {
            let step_us = files.number(format!("{context}/monitoring_attrs/intervals/aggr_us"));
            for scheme in numbered(files, &format!("{context}/schemes")) {
                if files.text(format!("{scheme}/action")).as_deref() != Some("pageout") {
                    continue;
                }
                let steps = files.number(format!("{scheme}/access_pattern/age/min"));
                found.push(Reclaimer {
                    name: "DAMON (a pageout scheme)".to_owned(),
                    idle_seconds: steps
                        .zip(step_us)
                        .map(|(steps, us)| steps.saturating_mul(us) / 1_000_000),
                    spares_mapped: takes_unmapped_only(files, &scheme),
                });
            }
        }
    }
    found
}

/// Whether a filter of the scheme lets only unmapped pages through.
fn takes_unmapped_only(files: &KernelFiles, scheme: &str) -> bool {
    ["ops_filters", "filters"]
        .iter()
        .flat_map(|folder| numbered(files, &format!("{scheme}/{folder}")))
        .any(|filter| {
            let is = |name: &str, value: &str| {
                files.text(format!("{filter}/{name}")).as_deref() == Some(value)
            };
            is("type", "unmapped") && is("matching", "Y") && is("allow", "Y")
        })
}

/// The folders `0`, `1`, ... in a folder, in order.
fn numbered(files: &KernelFiles, folder: &str) -> Vec<String> {
    (0..)
        .map(|number: u32| format!("{folder}/{number}"))
        .take_while(|path| files.path(path).is_dir())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reclaim(idle: Option<(u64, u64)>, reclaimers: Vec<Reclaimer>) -> Judgement {
        let reclaim = PageReclaim {
            idle: idle.map(|(pages, cached_pages)| IdlePages {
                idle_ms: 12_000,
                pages,
                cached_pages,
            }),
            untold: String::new(),
            reclaimers,
        };
        reclaim.judge()
    }

    #[test]
    fn lost_pages_and_reclaimers_are_warned_of() {
        assert_eq!(reclaim(Some((100, 100)), vec![]).level, Level::Ok);
        let lost = reclaim(Some((100, 25)), vec![]);
        assert_eq!(lost.level, Level::Warning);
        assert!(lost.finding.contains("75 of 100 pages"), "{}", lost.finding);
        let daemon = Reclaimer {
            name: "DAMON".to_owned(),
            idle_seconds: Some(60),
            spares_mapped: true,
        };
        let later = reclaim(Some((100, 100)), vec![daemon]);
        assert_eq!(later.level, Level::Warning);
        assert!(
            later
                .finding
                .ends_with("idle after 60 s; mapped files are spared")
        );
    }

    #[test]
    fn only_running_page_out_schemes_count() {
        let root = tempfile::tempdir().expect("temporary directory");
        let daemon = root.path().join("sys/kernel/mm/damon/admin/kdamonds/0");
        let scheme = daemon.join("contexts/0/schemes/0");
        let write = |path: PathBuf, text: &str| {
            std::fs::create_dir_all(path.parent().expect("parent")).expect("folders");
            std::fs::write(path, text).expect("write");
        };
        write(daemon.join("state"), "off\n");
        write(
            daemon.join("contexts/0/monitoring_attrs/intervals/aggr_us"),
            "5000000\n",
        );
        write(scheme.join("action"), "pageout\n");
        write(scheme.join("access_pattern/age/min"), "12\n");
        let files = KernelFiles::below(root.path());
        assert_eq!(reclaimers(&files), vec![]);
        write(daemon.join("state"), "on\n");
        let found = reclaimers(&files);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].idle_seconds, found[0].spares_mapped),
            (Some(60), false)
        );
        for (name, value) in [("type", "unmapped"), ("matching", "Y"), ("allow", "Y")] {
            write(scheme.join("ops_filters/0").join(name), value);
        }
        assert!(reclaimers(&files)[0].spares_mapped);
    }

    #[test]
    fn a_file_just_left_is_still_there() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let path = folder.path().join("idle");
        let file = IdleFile::leave(&path).expect("written");
        assert!(IdleFile::leave(&path).is_err(), "nothing is overwritten");
        match file.look(Duration::ZERO) {
            Ok(idle) => assert!(idle.pages > 0 && idle.cached_pages > 0, "{idle:?}"),
            Err(error) => assert!(error.is_unverifiable(), "{error}"),
        }
    }
}
