//! Which places are measured one after the other, what their run files are called and say of them, and
//! whether everything fits. Measuring is left to [`super`].

use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sqlitmus_core::environment::fact;
use sqlitmus_core::plan::Plan;
use sqlitmus_core::run::Run;

use crate::arguments::MeasureArguments;
use crate::commands::measure::first_place;
use crate::failure::Failure;
use crate::machine::environment::Environment;
use crate::machine::loopback::{self, LoopbackSpecification, parse_specifications};
use crate::machine::place::Place;
use crate::machine::scratch::{SCRATCH_NAME, Scratch};
use crate::runs::{EXTENSION, RunName};
use crate::stores::{SpaceNeeded, Stores};

/// A directory in which no store can be: what a plan needs where nothing is there yet.
pub(super) const NOWHERE: &str = "/nonexistent/sqlitmus";

/// What a filesystem takes for itself, and room for journals, in every image.
const IMAGE_SPARE_BYTES: u64 = 512 << 20;

/// mkfs.ext4 makes an inode for so many bytes of an image.
const BYTES_PER_INODE: u64 = 16_384;

/// Letters of a directory's path that its run file is called by, at the most.
const MOST_LETTERS: usize = 40;

/// A place to measure in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ground {
    /// A directory that is there, by its canonical path.
    Directory(PathBuf),
    /// A filesystem that is made for the run and removed after it.
    Loopback(LoopbackSpecification),
}

impl fmt::Display for Ground {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => write!(formatter, "{}", path.display()),
            Self::Loopback(specification) => write!(formatter, "{specification}"),
        }
    }
}

/// All places of one command, and where their runs are kept.
#[derive(Debug)]
pub(crate) struct Itinerary {
    pub(super) grounds: Vec<Ground>,
    /// Canonical path of the directory whose scratch directory keeps images and, if nothing else is
    /// said, run files.
    home: PathBuf,
    /// Of each image, where the user has said it.
    image_bytes: Option<u64>,
    /// Folder of the run files.
    folder: PathBuf,
    /// What their names begin with; nothing in a folder of their own.
    prefix: String,
}

/// What measuring takes on the disk that is the most in need, and what is free there.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Space {
    pub(super) needed_bytes: u64,
    pub(super) available_bytes: u64,
    pub(super) image_bytes: u64,
}

impl Itinerary {
    /// The places that the command line names: directories that can be written to, and filesystems that
    /// can be made here.
    ///
    /// # Errors
    /// The first that cannot.
    pub(super) fn of(arguments: &MeasureArguments) -> Result<Self, Failure> {
        let mut grounds = Vec::new();
        for directory in &arguments.place {
            let place = Place::inspect(directory)?;
            let ground = Ground::Directory(place.path);
            if grounds.contains(&ground) {
                return Err(Failure::bad_input(
                    format!("the place {ground} is named twice"),
                    "name each once",
                ));
            }
            grounds.push(ground);
        }
        if let Some(list) = &arguments.loopback {
            let made = parse_specifications(list)?;
            grounds.extend(made.into_iter().map(Ground::Loopback));
        }
        let home = match (&arguments.images, &arguments.loopback) {
            (Some(images), _) => images.as_path(),
            (None, Some(_)) => Path::new("."),
            (None, None) => first_place(arguments),
        };
        let itinerary = Self {
            grounds,
            home: Place::inspect(home)?.path,
            image_bytes: arguments.image_size,
            folder: PathBuf::new(),
            prefix: String::new(),
        };
        itinerary.require_grounds()?;
        Ok(itinerary)
    }

    /// The places of a run that was measured in several, by what its run file at a path says; `None` if
    /// it was measured in one.
    ///
    /// # Errors
    /// The file was renamed, or says what makes no sense.
    pub(in crate::commands::measure) fn recorded(
        run: &Run,
        path: &Path,
    ) -> Result<Option<Self>, Failure> {
        let said = |name: &str| {
            let mut facts = run.environment.iter();
            facts
                .find(|(found, _)| found == name)
                .map(|(_, value)| value.as_str())
        };
        let Some(places) = said(fact::PLACES) else {
            return Ok(None);
        };
        let odd = |what: &str| {
            Failure::bad_input(
                format!("{} cannot be resumed: {what}", path.display()),
                "measure anew",
            )
        };
        let words: Vec<String> = serde_json::from_str(places)
            .map_err(|_| odd("it does not say in which places it was"))?;
        let grounds = words
            .iter()
            .map(|word| ground(word))
            .collect::<Result<_, _>>()?;
        let number = said(fact::PLACE_NUMBER).and_then(|number| number.parse::<usize>().ok());
        let mut itinerary = Self {
            grounds,
            home: said(fact::IMAGES).map(PathBuf::from).unwrap_or_default(),
            image_bytes: said(fact::IMAGE_BYTES).and_then(|bytes| bytes.parse().ok()),
            folder: path.parent().map(Path::to_owned).unwrap_or_default(),
            prefix: String::new(),
        };
        let index = number
            .and_then(|number| number.checked_sub(1))
            .filter(|index| *index < itinerary.grounds.len())
            .ok_or_else(|| odd("it does not say which of its places it is"))?;
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let ending = format!("{}.{EXTENSION}", itinerary.words(index));
        itinerary.prefix = name
            .strip_suffix(&ending)
            .ok_or_else(|| {
                odd("it was renamed, so that the runs of its other places cannot be found")
            })?
            .to_owned();
        Ok(Some(itinerary))
    }

    /// Makes sure that every directory is there and every filesystem can be made.
    ///
    /// # Errors
    /// The first that is not.
    pub(super) fn require_grounds(&self) -> Result<(), Failure> {
        let mut to_make = Vec::new();
        for ground in &self.grounds {
            match ground {
                Ground::Directory(path) => {
                    Place::inspect(path)?;
                }
                Ground::Loopback(specification) => to_make.push(specification.clone()),
            }
        }
        loopback::require(&to_make).map_err(Failure::from)
    }

    /// Where images and runs are kept.
    pub(super) fn home(&self) -> &Path {
        &self.home
    }

    /// The directories that are worked in.
    pub(super) fn directories(&self) -> impl Iterator<Item = &Path> {
        let places = self.grounds.iter().filter_map(|ground| match ground {
            Ground::Directory(path) => Some(path.as_path()),
            Ground::Loopback(_) => None,
        });
        std::iter::once(self.home()).chain(places)
    }

    /// Says where run files go: into a folder of their own, or with a common beginning of their names
    /// among all runs of the home.
    pub(super) fn keep_runs(&mut self, folder: Option<&Path>, name: &RunName, scratch: &Scratch) {
        match folder {
            Some(folder) => folder.clone_into(&mut self.folder),
            None => {
                self.folder = scratch.runs_directory();
                self.prefix = format!("{}-", name.id);
            }
        }
    }

    /// Whether run files go into the scratch directory.
    pub(super) fn is_in_scratch(&self) -> bool {
        self.folder
            .parent()
            .is_some_and(|parent| parent.ends_with(SCRATCH_NAME))
    }

    /// A place in a few letters that can stand in a file's name: `2-btrfs-nocow`.
    pub(super) fn words(&self, index: usize) -> String {
        let text = self.grounds[index].to_string();
        let letters: Vec<char> = text
            .chars()
            .map(|letter| {
                if letter.is_ascii_alphanumeric() {
                    letter
                } else {
                    '-'
                }
            })
            .collect();
        let last: String = letters[letters.len().saturating_sub(MOST_LETTERS)..]
            .iter()
            .collect();
        let words = format!("{}-{}", index + 1, last.trim_matches('-'));
        words.trim_end_matches('-').to_owned()
    }

    /// The run file of a place.
    pub(super) fn run_file(&self, index: usize) -> PathBuf {
        let name = format!("{}{}.{EXTENSION}", self.prefix, self.words(index));
        self.folder.join(name)
    }

    /// All run files as a shell understands them.
    pub(super) fn run_files(&self) -> String {
        let folder = self.folder.display();
        match self.prefix.as_str() {
            "" => folder.to_string(),
            prefix => format!("{folder}/{prefix}*.{EXTENSION}"),
        }
    }

    /// Time and identity of a run that begins now in a place.
    pub(super) fn name(&self, index: usize, suite: &str) -> RunName {
        let now = RunName::now(suite);
        let all = match self.prefix.trim_end_matches('-') {
            "" => &now.id,
            prefix => prefix,
        };
        RunName {
            id: format!("{all}-{}", self.words(index)),
            ..now
        }
    }

    /// What the run file of a place says of all of them.
    pub(super) fn facts(&self, index: usize) -> Vec<(String, String)> {
        let words: Vec<String> = self.grounds.iter().map(Ground::to_string).collect();
        let mut facts = vec![
            (fact::PLACES, serde_json::json!(words).to_string()),
            (fact::PLACE_NUMBER, (index + 1).to_string()),
            (fact::IMAGES, self.home.display().to_string()),
        ];
        facts.extend(
            self.image_bytes
                .map(|bytes| (fact::IMAGE_BYTES, bytes.to_string())),
        );
        facts
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    /// What is said of a filesystem that was made for the run: in a few words what it is and not where
    /// its image happens to be mounted.
    pub(super) fn facts_of_loopback(
        &self,
        place: &Place,
        specification: &LoopbackSpecification,
    ) -> Vec<(String, String)> {
        let mut facts = place.facts();
        for (name, value) in &mut facts {
            if name == fact::PLACE_DESCRIPTION {
                *value = match &place.device {
                    Some(device) => format!("{specification} on a {}", device.describe()),
                    None => format!("{specification} (in memory)"),
                };
            }
        }
        facts.push((fact::LOOPBACK.to_owned(), specification.to_string()));
        facts
    }

    /// Size of each image, for a plan.
    pub(super) fn image_bytes(&self, plan: &Plan) -> u64 {
        let SpaceNeeded { bytes, inodes, .. } = Stores::new(Path::new(NOWHERE)).space_needed(plan);
        let for_inodes = inodes * (BYTES_PER_INODE + BYTES_PER_INODE / 10);
        let needed = for_content(bytes).max(for_inodes) + IMAGE_SPARE_BYTES;
        self.image_bytes.unwrap_or(needed)
    }

    /// Refuses places that are too small before anything is made: those on one disk together, and the
    /// largest image, of which there is one at a time.
    ///
    /// # Errors
    /// What is too small, and by how much.
    pub(super) fn require_space(&self, plan: &Plan) -> Result<Space, Failure> {
        let SpaceNeeded { bytes, .. } = Stores::new(Path::new(NOWHERE)).space_needed(plan);
        let image_bytes = self.image_bytes(plan);
        let is_made = |has_image: bool| {
            self.grounds.iter().any(|ground| match ground {
                Ground::Loopback(specification) => specification.has_image() == has_image,
                Ground::Directory(_) => false,
            })
        };
        if is_made(false) {
            require_memory(bytes.min(image_bytes))?;
        }
        // By device: the directories on it, bytes and inodes.
        let mut disks: BTreeMap<u64, (Place, SpaceNeeded)> = BTreeMap::new();
        let mut add = |directory: &Path, more: SpaceNeeded| -> Result<(), Failure> {
            let place = Place::inspect(directory)?;
            let device = std::fs::metadata(&place.path).map_or(0, |metadata| metadata.dev());
            let (_, needed) = disks
                .entry(device)
                .or_insert((place, SpaceNeeded::default()));
            needed.bytes += more.bytes;
            needed.inodes += more.inodes;
            Ok(())
        };
        for ground in &self.grounds {
            if let Ground::Directory(path) = ground {
                let stores = Stores::new(&path.join(SCRATCH_NAME).join("stores"));
                add(path, stores.space_needed(plan))?;
            }
        }
        if is_made(true) {
            // An image is sparse: it takes what is written to it.
            let written = (for_content(bytes) + IMAGE_SPARE_BYTES).min(image_bytes);
            let of_image = SpaceNeeded {
                bytes: written,
                inodes: 16,
            };
            add(&self.home, of_image)?;
        }
        let mut most = Space {
            image_bytes,
            ..Space::default()
        };
        for (place, needed) in disks.values() {
            place.require_space(needed.bytes, needed.inodes)?;
            if needed.bytes >= most.needed_bytes {
                most.needed_bytes = needed.bytes;
                most.available_bytes = place.space.available_bytes;
            }
        }
        Ok(most)
    }
}

/// What content takes on a filesystem of its own, its structure included.
fn for_content(bytes: u64) -> u64 {
    bytes + bytes / 2
}

/// Refuses a filesystem in memory that would not fit there.
fn require_memory(needed_bytes: u64) -> Result<(), Failure> {
    match Environment::read().memory_usable_bytes() {
        Some(usable) if usable < needed_bytes => Err(Failure::bad_input(
            format!(
                "a tmpfs of {needed_bytes} bytes does not fit into the {usable} bytes of memory that are free"
            ),
            "leave tmpfs out, or choose fewer groups or a smaller scale",
        )),
        _ => Ok(()),
    }
}

/// A place as a run file has it: the path of a directory, or a filesystem to make.
fn ground(word: &str) -> Result<Ground, Failure> {
    if word.starts_with('/') {
        return Ok(Ground::Directory(PathBuf::from(word)));
    }
    let specification: LoopbackSpecification = word.parse().map_err(Failure::from)?;
    Ok(Ground::Loopback(specification))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn itinerary(words: &[&str]) -> Itinerary {
        Itinerary {
            grounds: words
                .iter()
                .map(|word| ground(word).expect("a place"))
                .collect(),
            home: PathBuf::from("/home"),
            image_bytes: None,
            folder: PathBuf::from("/home/.sqlitmus/runs"),
            prefix: "20260101-000000-disks-1-".to_owned(),
        }
    }

    #[test]
    fn run_files_are_called_by_their_places() {
        let places = itinerary(&["/", "/mnt/a disk", "btrfs:compress-force=zlib:3", "tmpfs"]);
        let words: Vec<String> = (0..4).map(|index| places.words(index)).collect();
        assert_eq!(
            words,
            [
                "1",
                "2-mnt-a-disk",
                "3-btrfs-compress-force-zlib-3",
                "4-tmpfs"
            ]
        );
        let file = places.run_file(3).display().to_string();
        assert_eq!(
            file,
            "/home/.sqlitmus/runs/20260101-000000-disks-1-4-tmpfs.run"
        );
        assert_eq!(
            places.run_files(),
            "/home/.sqlitmus/runs/20260101-000000-disks-1-*.run"
        );
        assert!(places.is_in_scratch());
    }

    #[test]
    fn long_paths_are_cut_at_their_beginning() {
        let long = format!("/{}/end", "x".repeat(300));
        let words = itinerary(&[&long]).words(0);
        assert!(words.len() < 50 && words.ends_with("x-end"), "{words}");
    }

    #[test]
    fn places_are_found_again_by_what_their_facts_say() {
        let places = itinerary(&["/mnt/ä \"b\"", "btrfs:nocow"]);
        let facts: BTreeMap<String, String> = places.facts(1).into_iter().collect();
        assert_eq!(facts[fact::PLACE_NUMBER], "2");
        let words: Vec<String> = serde_json::from_str(&facts[fact::PLACES]).expect("JSON");
        let again: Vec<Ground> = words
            .iter()
            .map(|word| ground(word).expect("a place"))
            .collect();
        assert_eq!(again, places.grounds);
        assert!(ground("reiserfs").is_err());
    }
}
