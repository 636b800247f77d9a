//! SQLite archives: one table `sqlar(name, mode, mtime, sz, data)` in an SQLite database, as
//! <https://sqlite.org/sqlar.html> documents it, so that `sqlite3 -A` and the SQLite of every language can read it.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("pictures.sqlar");
//! use sqlitmus_archive::{Archive, ArchiveWriter, Compression, WriteSettings};
//!
//! let mut writer = ArchiveWriter::create(&path, WriteSettings::default())?;
//! writer.add_file("cats/tom.txt", 0o644, 1_700_000_000, b"a cat", Compression::Auto)?;
//! writer.finish()?;
//!
//! let archive = Archive::open(&path)?; // threads share it
//! let reader = archive.reader()?; // one for each thread
//! let mut lookup = reader.lookup()?;
//! assert_eq!(lookup.get("cats/tom.txt")?, Some(&b"a cat"[..]));
//! # Ok(())
//! # }
//! ```
//!
//! - [`Archive`], [`Reader`], [`Lookup`]: open, list, read by name, in any number of threads.
//! - [`Catalogue`]: all names in memory, for the fastest reads.
//! - [`ArchiveWriter`]: write one, atomically.
//! - [`pack()`], [`unpack()`], [`verify()`]: whole directories, in parallel and safely.
//! - `Server`: over HTTP, read-only (feature `serve`).
//!
//! What is printed, and exit codes, are left to the program.

#![forbid(unsafe_code)]

mod archive;
mod deflate;
mod directory;
mod entry;
mod error;
mod exercise;
mod lookup;
mod name;
mod pack;
mod reader;
mod selection;
#[cfg(feature = "serve")]
mod serve;
mod staging;
mod unpack;
mod verify;
mod watch;
mod writer;

pub use archive::{Archive, OpenSettings};
pub use deflate::{Compression, DEFAULT_LEVEL};
pub use entry::{Entry, Kind};
pub use error::{ArchiveError, Nature};
#[doc(hidden)]
pub use exercise::exercise;
pub use lookup::{LARGEST_WHOLE_BYTES, Lookup};
pub use name::{components, link_stays_inside};
pub use pack::{PackReport, PackSettings, Skipped, pack};
pub use reader::{Catalogue, Place, Reader};
pub use selection::Selection;
#[cfg(feature = "serve")]
pub use serve::Server;
pub use unpack::{Links, UnpackReport, UnpackSettings, unpack};
pub use verify::{VerifyReport, VerifySettings, verify};
pub use watch::Watch;
pub use writer::{ArchiveWriter, Finished, Sealed, Stored, WriteSettings};
