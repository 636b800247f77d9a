//! Where the stores of an advice run go: beside the files, on the same disk, never among them.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, accessat};

use crate::failure::Failure;
use crate::machine::place::Place;

/// Where else the stores can go.
const ELSEWHERE: &str =
    "--place DIR names a directory for the stores, best on the same disk: /var/tmp, for example";

/// A place, and whether it is on the disk of the files.
pub struct AdvicePlace {
    /// The place.
    pub place: Place,
    /// Whether it is on another filesystem than the files.
    pub is_elsewhere: bool,
}

/// The place that was asked for, or the parent of the directory.
///
/// # Errors
/// It is missing, not a directory, inside the directory, or cannot be written to.
pub fn choose(directory: &Path, asked: Option<&Path>) -> Result<AdvicePlace, Failure> {
    let chosen: PathBuf = match (asked, directory.parent()) {
        (Some(asked), _) => asked.to_owned(),
        (None, Some(parent)) => parent.to_owned(),
        (None, None) => {
            return Err(Failure::bad_input(
                format!(
                    "{} has no parent for the stores to lie in",
                    directory.display()
                ),
                "--place DIR names a directory for them",
            ));
        }
    };
    let place = Place::inspect(&chosen).map_err(|error| {
        let failure = Failure::from(error);
        match asked {
            Some(_) => failure,
            // Nobody has named it: it is the directory's parent.
            None => Failure {
                hint: ELSEWHERE.to_owned(),
                ..failure
            },
        }
    })?;
    if place.path.starts_with(directory) {
        return Err(Failure::bad_input(
            format!(
                "{} is inside of {}",
                place.path.display(),
                directory.display()
            ),
            "--place DIR names a directory outside of it",
        ));
    }
    if accessat(
        CWD,
        &place.path,
        Access::WRITE_OK | Access::EXEC_OK,
        AtFlags::empty(),
    )
    .is_err()
    {
        let hint = match asked {
            Some(_) => "--place DIR names one that can be written to",
            None => ELSEWHERE,
        };
        return Err(Failure::bad_input(
            format!("{} cannot be written to", place.path.display()),
            hint,
        ));
    }
    let device = |path: &Path| std::fs::metadata(path).map(|found| found.dev()).ok();
    Ok(AdvicePlace {
        is_elsewhere: device(directory) != device(&place.path),
        place,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_beside_the_files_and_never_among_them() {
        let parent = tempfile::tempdir().expect("a folder");
        let parent = std::fs::canonicalize(parent.path()).expect("a path");
        let directory = parent.join("files");
        std::fs::create_dir_all(directory.join("deeper")).expect("created");
        let chosen = choose(&directory, None).expect("the parent");
        assert_eq!(chosen.place.path, parent);
        assert!(!chosen.is_elsewhere);
        for inside in [directory.clone(), directory.join("deeper")] {
            let refused = choose(&directory, Some(&inside)).err().expect("refused");
            assert!(refused.message.contains("inside of"), "{refused}");
        }
        let missing = choose(&directory, Some(&parent.join("none")));
        assert!(missing.is_err());
        assert!(choose(Path::new("/"), None).is_err());
    }
}
