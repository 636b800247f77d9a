//! One cut: a fresh filesystem, a filled store that is safely on it, a writer at work, and then no
//! power, or no process. What is left is recovered and looked at by another process.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sqlitmus_core::dataset::mix;
use sqlitmus_core::durability::{Batches, Configuration, Cut, CutKind, Ending, StoreFinding, find};

use super::configurations::CONTROL;
use super::job::{Filled, Job, Task};
use super::writing::{Reason, StoreProgram, Writing};
use crate::failure::with_causes;
use crate::interruption;
use crate::machine::loopback::volatile_device::{AtCut, VolatileDevice};
use crate::machine::loopback::{Loopback, LoopbackSpecification};
use crate::machine::scratch::{Scratch, ScratchLock};
use crate::machine::{power_cut, writeback};

/// Size of an image: what a writer leaves in a minute, and a journal. It is sparse.
pub const IMAGE_BYTES: u64 = 320 << 20;

/// Longest wait for filling or looking at a store of half a megabyte.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a wait looks whether the writer lives and the user has not interrupted.
const POLL: Duration = Duration::from_millis(20);

/// How far ahead of its writing the control acknowledges, in commits.
pub const CONTROL_LAG: u64 = 8;

/// What all cuts share.
#[derive(Debug)]
pub struct Site {
    /// Where images lie.
    pub scratch: Scratch,
    /// The right to work there.
    pub lock: ScratchLock,
    /// What touches stores.
    pub program: StoreProgram,
}

/// A cut to be made.
#[derive(Debug, Clone)]
pub struct PlannedCut<'a> {
    /// The filesystem's name in the plan.
    pub filesystem: &'a str,
    /// The way of writing.
    pub configuration: &'a Configuration,
    /// What ends the writing.
    pub kind: CutKind,
    /// From 0, for each kind.
    pub number: u32,
    /// How long there is writing.
    pub hold: Duration,
    /// Mean pause of the writer between commits.
    pub pause: Duration,
    /// What is written; the seed is this cut's own.
    pub batches: Batches,
    /// Commits between two settlings.
    pub settle_every: u64,
    /// Whether random pieces of what is written are handed to the device early.
    pub early_writeback: bool,
}

/// Why there is nothing to keep of a cut.
#[derive(Debug)]
pub enum NoCut {
    /// The user has interrupted.
    Interrupted,
    /// It went wrong.
    Failed(Reason),
}

impl From<Reason> for NoCut {
    fn from(reason: Reason) -> Self {
        Self::Failed(reason)
    }
}

/// For `map_err`: an error with what caused it.
fn reason<E: std::error::Error>(error: E) -> NoCut {
    NoCut::Failed(with_causes(&error))
}

/// What happened before anything was looked at.
struct Severed {
    held: Duration,
    /// When each commit was acknowledged.
    commits: Vec<Instant>,
    /// How many of them before the cut began.
    acknowledged: u64,
    at: Instant,
}

impl PlannedCut<'_> {
    /// Makes the cut on a filesystem of its own.
    ///
    /// # Errors
    /// [`NoCut::Interrupted`] only: what goes wrong is kept with the cut.
    pub fn with_power(
        &self,
        site: &Site,
        filesystem: &LoopbackSpecification,
    ) -> Result<Cut, NoCut> {
        self.kept(self.lose_power(site, filesystem))
    }

    /// Makes the cut by killing the process that writes in a folder, which is this cut's own.
    ///
    /// # Errors
    /// As [`PlannedCut::with_power`].
    pub fn by_killing(&self, site: &Site, folder: &Path) -> Result<Cut, NoCut> {
        self.kept(self.kill_process(site, folder))
    }

    fn kept(&self, done: Result<Cut, NoCut>) -> Result<Cut, NoCut> {
        match done {
            Err(NoCut::Failed(reason)) => Ok(self.cut(Duration::ZERO, Ending::Failed(reason))),
            done => done,
        }
    }

    fn cut(&self, held: Duration, ending: Ending) -> Cut {
        Cut {
            filesystem: self.filesystem.to_owned(),
            configuration: self.configuration.name.clone(),
            kind: self.kind,
            number: self.number,
            held_ns: held.as_nanos() as u64,
            pause_ns: self.pause.as_nanos() as u64,
            lost_age_ns: None,
            mount_ns: None,
            ending,
        }
    }

    /// A name for the scratch directory.
    fn name(&self) -> String {
        let plain = |text: &str| -> String {
            let letter = |letter: char| {
                if letter.is_ascii_alphanumeric() {
                    letter
                } else {
                    '-'
                }
            };
            text.chars().map(letter).collect()
        };
        let (filesystem, configuration) = (plain(self.filesystem), plain(&self.configuration.name));
        format!("{filesystem}-{configuration}-{}-{}", self.kind, self.number)
    }

    fn lose_power(&self, site: &Site, filesystem: &LoopbackSpecification) -> Result<Cut, NoCut> {
        let medium = Medium::new(self.kind, site, &self.name(), filesystem)?;
        let folder = medium.loopback.point().join("cut");
        std::fs::create_dir(&folder).map_err(reason)?;
        let job = self.job(&folder);
        self.fill(site, &job)?;
        let mut writing = self.start(site, &job)?;
        let held = self.hold(&mut writing, &folder)?;
        let acknowledged = writing.acknowledged();
        let at = Instant::now();
        let medium = medium.cut(self.batches.seed)?;
        let severed = Severed {
            held,
            commits: writing.kill(),
            acknowledged,
            at,
        };
        let (medium, mount) = medium.power_on()?;
        let mut cut = self.look(site, &job, &severed);
        cut.mount_ns = Some(mount.as_nanos() as u64);
        // What was found is found, and what stays is removed by the next start.
        let _ = medium.loopback.remove();
        Ok(cut)
    }

    fn kill_process(&self, site: &Site, folder: &Path) -> Result<Cut, NoCut> {
        let job = self.job(folder);
        self.fill(site, &job)?;
        let mut writing = self.start(site, &job)?;
        let held = self.hold(&mut writing, folder)?;
        let acknowledged = writing.acknowledged();
        let at = Instant::now();
        let commits = writing.kill();
        let severed = Severed {
            held,
            // What was acknowledged before the process died counts, heard or not.
            acknowledged: acknowledged.max(commits.len() as u64),
            commits,
            at,
        };
        Ok(self.look(site, &job, &severed))
    }

    fn job(&self, folder: &Path) -> Job {
        Job {
            engine: self.configuration.engine.clone(),
            settings: self.configuration.settings.clone(),
            path: folder.join("store"),
            batches: self.batches,
            task: Task::Check,
        }
    }

    /// Fills the store, and sees to it that this at least is safe.
    fn fill(&self, site: &Site, job: &Job) -> Result<(), NoCut> {
        let fill = Job {
            task: Task::Fill,
            ..job.clone()
        };
        match site.program.ask(&fill, PATIENCE)? {
            Filled::Done(_) => {}
            Filled::Failed(why) | Filled::Unavailable(why) => return Err(NoCut::Failed(why)),
        }
        synchronise(job.path.parent().unwrap_or(Path::new(".")))
    }

    fn start(&self, site: &Site, job: &Job) -> Result<Writing, NoCut> {
        let write = Job {
            task: Task::Write {
                pause_ns: self.pause.as_nanos() as u64,
                settle_every: self.settle_every,
                lag: if self.configuration.name == CONTROL {
                    CONTROL_LAG
                } else {
                    0
                },
            },
            ..job.clone()
        };
        Ok(site.program.write(&write)?)
    }

    /// Lets the writer write.
    fn hold(&self, writing: &mut Writing, folder: &Path) -> Result<Duration, NoCut> {
        let started = Instant::now();
        let mut random = self.batches.seed;
        loop {
            if interruption::requested() {
                return Err(NoCut::Interrupted);
            }
            writing.require_alive()?;
            if self.early_writeback {
                random = mix(random);
                // A file that has just been renamed or deleted is simply not written back.
                let _ = writeback::write_back_some(folder, random);
            }
            let left = self.hold.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Ok(started.elapsed());
            }
            std::thread::sleep(left.min(POLL));
        }
    }

    /// Has the store looked at, and compares.
    fn look(&self, site: &Site, job: &Job, severed: &Severed) -> Cut {
        // A process that crashes or hangs over what is left of a store has not recovered it.
        let store = site
            .program
            .ask(job, PATIENCE)
            .unwrap_or_else(|reason| StoreFinding {
                open_error: Some(format!("recovering it: {reason}")),
                ..StoreFinding::default()
            });
        let begun = severed.commits.len() as u64 + 1;
        let finding = find(&self.batches, severed.acknowledged, begun, &store);
        let age = finding.first_lost_commit.and_then(|first| {
            let acknowledged = severed.commits.get(first as usize - 1)?;
            Some(severed.at.saturating_duration_since(*acknowledged))
        });
        let mut cut = self.cut(severed.held, Ending::Found { finding, store });
        cut.lost_age_ns = age.map(|age| age.as_nanos() as u64);
        cut
    }
}

/// Puts all of a filesystem on its device.
fn synchronise(folder: &Path) -> Result<(), NoCut> {
    let directory = std::fs::File::open(folder).map_err(reason)?;
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(&directory).map_err(reason)?;
    #[cfg(not(target_os = "linux"))]
    directory.sync_all().map_err(reason)?;
    Ok(())
}

/// A filesystem whose power can be cut.
struct Medium {
    // Unmounted before the device below it goes.
    loopback: Loopback,
    device: Option<VolatileDevice>,
    keeps: AtCut,
}

impl Medium {
    fn new(
        kind: CutKind,
        site: &Site,
        name: &str,
        filesystem: &LoopbackSpecification,
    ) -> Result<Self, NoCut> {
        let Site { scratch, lock, .. } = site;
        let keeps = match kind {
            CutKind::Reordering => AtCut::KeepSome,
            _ => AtCut::KeepAll,
        };
        if kind == CutKind::Shutdown {
            let loopback = Loopback::create(scratch, lock, name, filesystem, IMAGE_BYTES);
            return Ok(Self {
                loopback: loopback.map_err(reason)?,
                device: None,
                keeps,
            });
        }
        let device = VolatileDevice::create(scratch, lock, &format!("{name}-device"), IMAGE_BYTES);
        let device = device.map_err(reason)?;
        let image = device.served_image();
        let loopback = Loopback::create_on(scratch, lock, name, filesystem, &image, IMAGE_BYTES);
        Ok(Self {
            loopback: loopback.map_err(reason)?,
            device: Some(device),
            keeps,
        })
    }

    /// Cuts the power.
    fn cut(mut self, seed: u64) -> Result<Self, NoCut> {
        match &mut self.device {
            None => power_cut::shut_down(&self.loopback.point()).map_err(reason)?,
            Some(device) => device.cut(self.keeps, seed).map_err(reason)?,
        }
        Ok(self)
    }

    /// Mounts what is left, and says how long that took.
    fn power_on(mut self) -> Result<(Self, Duration), NoCut> {
        self.loopback.unmount().map_err(reason)?;
        if let Some(device) = &mut self.device {
            let image: PathBuf = device.stop().map_err(reason)?;
            self.loopback.set_image(&image);
        }
        let started = Instant::now();
        self.loopback.mount().map_err(|error| {
            NoCut::Failed(format!(
                "it cannot be mounted again: {}",
                with_causes(&error)
            ))
        })?;
        Ok((self, started.elapsed()))
    }
}
