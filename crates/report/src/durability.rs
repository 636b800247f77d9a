//! The truth table of a durability run: what each way of writing claims, what it kept, how sure that
//! is, and what it costs. In the terminal, as a page, as Markdown, and for programs.
//!
//! What a finding means is decided in [`sqlitmus_core::durability`]; here it is put into words.

mod html;
mod json;
mod markdown;
mod terminal;
#[cfg(test)]
mod tests;
mod words;

pub use html::html;
pub use json::json;
pub use markdown::markdown;
pub use terminal::terminal;
