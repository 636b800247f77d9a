//! Engines: everything that sqlitmus can store blobs in, behind one seam ([`Engine`], [`Store`],
//! [`Session`], [`Writer`]) and held to one conformance suite ([`conformance`]).
//!
//! Three of them measure the tool itself: `null` (the harness's own cost), `memory` (the physical
//! limit) and `packfile` (the fair competitor that comparisons forget). What is measured with an
//! engine, and in which order, is left to the callers.

pub mod ageing;
pub mod conformance;
mod engine;
pub mod external;
pub mod files;
pub mod footprint;
mod key_map;
pub mod memory;
pub mod null;
pub mod own_files;
pub mod packfile;
pub mod rows;
pub mod sqlite;
pub mod workloads;

pub use engine::{Capabilities, Content, Engine, EngineError, ReadBack, Session, Store, Writer};

use sqlitmus_core::names::nearest;

/// All engines. To add one, add its line here.
const ENGINES: &[&'static dyn Engine] = &[
    &external::External,
    &files::Files,
    &external::Hybrid,
    &memory::Memory,
    &null::Null,
    &own_files::OwnFiles,
    &packfile::Packfile,
    &sqlite::Sqlite,
];

/// All engines, in the order in which they are listed.
#[must_use]
pub fn all() -> &'static [&'static dyn Engine] {
    ENGINES
}

/// The engine of a name.
///
/// # Errors
/// There is none.
pub fn find(name: &str) -> Result<&'static dyn Engine, UnknownEngine> {
    let found = ENGINES.iter().find(|engine| engine.name() == name);
    found.copied().ok_or_else(|| {
        let names = || ENGINES.iter().map(|engine| engine.name());
        let hint = match nearest(name, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("it is one of {}", names().collect::<Vec<_>>().join(", ")),
        };
        UnknownEngine {
            name: name.to_owned(),
            hint,
        }
    })
}

/// No engine has that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no engine `{name}`")]
pub struct UnknownEngine {
    /// Name given.
    pub name: String,
    /// What to write instead.
    pub hint: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_found_by_their_names() {
        for engine in all() {
            let found = find(engine.name()).expect("every engine has a name of its own");
            assert_eq!(found.about(), engine.about());
        }
        let unknown = find("file").map(|engine| engine.name());
        assert_eq!(unknown.expect_err("unknown").hint, "did you mean `files`?");
        let unknown = find("rocksdb").map(|engine| engine.name());
        assert!(unknown.expect_err("unknown").hint.contains("packfile"));
    }
}
