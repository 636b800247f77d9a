//! Which entries are taken: globs to include and to exclude, and files of patterns, with the rules of
//! .gitignore. Walking is left to [`mod@crate::pack`].

use std::path::Path;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::error::ArchiveError;

/// What is taken. The default takes everything.
#[derive(Debug, Clone)]
pub struct Selection {
    include: Option<Gitignore>,
    exclude: Gitignore,
    ignore: Gitignore,
}

impl Default for Selection {
    fn default() -> Self {
        Self {
            include: None,
            exclude: Gitignore::empty(),
            ignore: Gitignore::empty(),
        }
    }
}

impl Selection {
    /// Takes what matches one of `include` (everything if that is empty), and neither one of `exclude` nor the
    /// patterns in `ignore_files`. A pattern that matches a directory matches everything in it.
    ///
    /// # Errors
    /// A pattern is none, or a file cannot be read.
    pub fn new(
        include: &[String],
        exclude: &[String],
        ignore_files: &[&Path],
    ) -> Result<Self, ArchiveError> {
        let mut ignore = GitignoreBuilder::new("");
        for path in ignore_files {
            let text = std::fs::read_to_string(path).map_err(ArchiveError::io("read", path))?;
            for line in text.lines() {
                ignore
                    .add_line(Some(path.to_path_buf()), line)
                    .map_err(|error| bad(&format!("{} in {}", line, path.display()), &error))?;
            }
        }
        Ok(Self {
            include: if include.is_empty() {
                None
            } else {
                Some(patterns(include)?)
            },
            exclude: patterns(exclude)?,
            ignore: ignore
                .build()
                .map_err(|error| bad("ignore files", &error))?,
        })
    }

    /// Whether a directory is looked into.
    pub(crate) fn enters(&self, name: &Path) -> bool {
        !self.leaves_out(name, true)
    }

    /// Whether an entry is taken, if the directory that it is in was entered.
    pub(crate) fn takes(&self, name: &Path, is_directory: bool) -> bool {
        !self.leaves_out(name, is_directory)
            && self.include.as_ref().is_none_or(|include| {
                include
                    .matched_path_or_any_parents(name, is_directory)
                    .is_ignore()
            })
    }

    /// Whether only part of what there is was asked for: directories then come only with what is in them.
    pub(crate) fn is_partial(&self) -> bool {
        self.include.is_some()
    }

    fn leaves_out(&self, name: &Path, is_directory: bool) -> bool {
        self.exclude.matched(name, is_directory).is_ignore()
            || self.ignore.matched(name, is_directory).is_ignore()
    }
}

fn patterns(globs: &[String]) -> Result<Gitignore, ArchiveError> {
    let mut builder = GitignoreBuilder::new("");
    for glob in globs {
        builder
            .add_line(None, glob)
            .map_err(|error| bad(&format!("pattern `{glob}`"), &error))?;
    }
    builder.build().map_err(|error| bad("patterns", &error))
}

fn bad(what: &str, error: &ignore::Error) -> ArchiveError {
    ArchiveError::BadSetting {
        what: what.to_owned(),
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn exclusion_wins_over_inclusion_and_directories_stand_for_what_is_in_them() {
        let selection =
            Selection::new(&words(&["*.jpg", "docs/"]), &words(&["old/"]), &[]).expect("patterns");
        assert!(selection.takes(Path::new("a/b.jpg"), false));
        assert!(selection.takes(Path::new("docs/c/d.txt"), false));
        assert!(!selection.takes(Path::new("a/b.png"), false));
        assert!(selection.enters(Path::new("a")));
        assert!(!selection.enters(Path::new("a/old")));
        assert!(Selection::default().takes(Path::new("anything"), false));
        assert!(Selection::new(&words(&["{a"]), &[], &[]).is_err());
    }

    #[test]
    fn a_file_of_patterns_has_the_rules_of_gitignore() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let file = folder.path().join("patterns");
        std::fs::write(&file, "# what is built\n*.o\n!keep.o\n/target/\n").expect("written");
        let selection = Selection::new(&[], &[], &[&file]).expect("patterns");
        assert!(!selection.takes(Path::new("src/a.o"), false));
        assert!(selection.takes(Path::new("src/keep.o"), false));
        assert!(!selection.enters(Path::new("target")));
        assert!(selection.enters(Path::new("src/target")));
        assert!(Selection::new(&[], &[], &[Path::new("/nowhere")]).is_err());
    }
}
