//! What `sqlitmus advise` does between its arguments and its answer: scanning and sampling a directory
//! ([`tree`]), choosing a place ([`place`]), limiting memory ([`memory`]), and measuring in stages
//! ([`search`], [`thorough`], [`lifecycle`]), each of which has its time ([`timetable`]).

pub mod lifecycle;
pub mod memory;
pub mod place;
pub mod search;
pub mod thorough;
pub mod timetable;
pub mod tree;
