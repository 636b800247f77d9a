//! Directory trees: walking them in parallel ([`walk`]), recording them in SQLite ([`index`]), and
//! summing them up for advice ([`scan`]). What is inside a tree is opened for reading alone, symbolic
//! links are never followed, and whatever is odd is counted and named. What follows from a scan is
//! computed in `sqlitmus_core::tree_scan`; printing and arguments are the command line's.

pub mod entry;
pub mod error;
pub mod index;
pub mod scan;
pub mod walk;

pub use error::TreeError;
