//! Reports: a run in, bytes out. [`terminal()`] for people who wait for the answer, [`html()`] for
//! those it is passed on to, [`json()`] for programs.
//!
//! Pure: nothing is measured here, and no clock, file or environment is read, so any old run can
//! be rendered again and gives the same bytes. What follows from the samples (ratios, intervals,
//! verdicts, sentences) is decided in [`sqlitmus_core::analysis`]; this crate only puts it into
//! words and pictures. Every text of a run is taken for hostile: see `text`.
//!
//! What all formats say alike stands in `summary` and `machine` (words about the run), `space`
//! (ratios of sizes) and `figures` (numbers as text); one module a format does the rest.

pub mod comparison;
pub mod durability;
mod figures;
mod html;
mod json;
mod machine;
mod oltp;
mod oltp_contention;
mod oltp_html;
mod oltp_terminal;
mod resources;
mod space;
mod spending;
mod summary;
mod terminal;
mod text;

pub use html::html;
pub use json::{FORMAT, json};
pub use terminal::{Look, terminal};
pub use text::{clean, fit, left, wrap};
