//! What is to be done to the recorded entries of one folder so that they are what was seen: both in
//! the order of their names, compared from one end to the other.

use std::cmp::Ordering;

use super::folder_block::{EntryRecord, Figures, FolderBlock, FolderRecord, Name};

/// An entry as the database has it.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) name: Vec<u8>,
    pub(super) is_text: bool,
    pub(super) kind: String,
    pub(super) figures: Figures,
}

impl Stored {
    pub(super) fn name(&self) -> Name<'_> {
        Name {
            bytes: &self.name,
            is_text: self.is_text,
        }
    }

    fn is_folder(&self) -> bool {
        self.kind == "d"
    }
}

/// One thing to do.
#[derive(Debug)]
pub(super) enum Step<'a> {
    /// It was not there before.
    Add(&'a EntryRecord),
    /// It was there otherwise; `was_folder` if it was a folder and is none any more.
    Change {
        entry: &'a EntryRecord,
        was_folder: bool,
    },
    /// It is there no more.
    Remove {
        stored: &'a Stored,
        was_folder: bool,
    },
}

/// Compares; both sides are sorted by [`Name`].
pub(super) fn steps<'a>(
    block: &'a FolderBlock,
    folder: &FolderRecord,
    stored: &'a [Stored],
) -> Vec<Step<'a>> {
    let mut steps = Vec::new();
    let mut stored = stored.iter().peekable();
    let mut seen = block.entries[folder.entries.clone()].iter().peekable();
    loop {
        let order = match (stored.peek(), seen.peek()) {
            (None, None) => return steps,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(stored), Some(seen)) => stored.name().cmp(&block.entry_name(seen)),
        };
        let was = (order != Ordering::Greater)
            .then(|| stored.next())
            .flatten();
        let is = (order != Ordering::Less).then(|| seen.next()).flatten();
        match (was, is) {
            (Some(was), Some(is)) => {
                let kind = is.kind.letter();
                if was.kind != kind || was.figures != is.figures {
                    let was_folder = was.is_folder() && kind != "d";
                    steps.push(Step::Change {
                        entry: is,
                        was_folder,
                    });
                }
            }
            (Some(stored), None) => steps.push(Step::Remove {
                stored,
                was_folder: stored.is_folder(),
            }),
            (None, Some(entry)) => steps.push(Step::Add(entry)),
            (None, None) => {}
        }
    }
}
