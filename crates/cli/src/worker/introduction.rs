//! What a worker says of itself, and of a library that it is to try to load: asked before anything
//! is measured, so that a wrong program or library is found out while nothing depends on it.

use std::collections::BTreeMap;

use sqlitmus_core::environment::said;
use sqlitmus_engines::sqlite::{Library, LibraryChoice};

use crate::protocol::{PROTOCOL_VERSION, Response};

/// Answers the request; a library that is not SQLite is an error in one sentence.
pub(super) fn answer(library: Option<&str>) -> Response {
    let mut facts = BTreeMap::new();
    if let Some(path) = library {
        let loaded = match Library::load(&LibraryChoice::Path(path.into())) {
            Ok(loaded) => loaded,
            Err(error) => return super::failed(error.to_string()),
        };
        let options = loaded.compile_options().join(" ");
        facts.insert(said::SQLITE_VERSION.to_owned(), loaded.version());
        facts.insert(said::COMPILE_OPTIONS.to_owned(), options);
    }
    Response::Introduced {
        protocol_version: PROTOCOL_VERSION,
        sqlitmus_version: env!("CARGO_PKG_VERSION").to_owned(),
        library: facts,
    }
}
