//! Reports: runs in, bytes out. [`terminal()`] for people who wait for the answer, [`html()`] for those it is
//! passed on to, [`markdown()`] for pull requests, [`svg()`] for slides, [`csv()`] and [`json()`] for programs.
//! Those of several runs set them side by side.
//!
//! Pure: nothing is measured here, and no clock, file or environment is read, so any old run can
//! be rendered again and gives the same bytes. What follows from the samples (ratios, intervals,
//! verdicts, sentences) is decided in [`sqlitmus_core::analysis`]; this crate only puts it into
//! words and pictures. Every text of a run is taken for hostile: see `text`.
//!
//! What all formats say alike stands in `summary` and `machine` (words about the run), `side_by_side` (matches
//! between runs), `space` (ratios of sizes), `proved` (what commits survive), `figures` (numbers as text), and `views` (which charts a run has
//! something to say for); the charts themselves are in [`mod@svg`]; one module a format does the rest.

pub mod advice;
mod builds;
mod columns;
pub mod comparison;
mod csv;
mod drawing;
pub mod durability;
mod explanation;
mod explanation_html;
mod explanation_terminal;
mod figures;
mod grid;
mod html;
mod json;
mod lifecycle;
mod load;
mod machine;
mod markdown;
mod oltp;
mod oltp_contention;
mod oltp_html;
mod oltp_terminal;
mod plain_table;
mod proved;
mod readers_html;
mod resources;
mod resources_html;
mod scaling;
mod side_by_side;
mod space;
mod spending;
mod summary;
pub mod svg;
mod terminal;
mod text;
mod thread_scaling;
mod views;

pub use csv::csv;
pub use drawing::{svg, svg_side_by_side};
pub use explanation_terminal::explanation;
pub use html::html;
pub use html::page;
pub use html::side_by_side::html_side_by_side;
pub use json::{FORMAT, json, json_of_several};
pub use markdown::{markdown, markdown_side_by_side};
pub use resources::terminal_resources;
pub use side_by_side::Analysed;
pub use terminal::{Look, terminal, terminal_side_by_side};
pub use text::{clean, fit, left, wrap};
