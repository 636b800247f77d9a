//! The command line of sqlitmus: verbs in [`commands`], the [`orchestrator`] that runs a plan
//! through [`worker`] processes, and what is known of the [`machine`].

pub mod advise;
pub mod arguments;
pub mod catalogue;
pub mod commands;
pub mod durability;
pub mod failure;
pub mod interruption;
pub mod live_view;
pub mod machine;
pub mod orchestrator;
pub mod progress;
pub mod protocol;
pub mod runs;
pub mod slowdown;
pub mod stores;
pub mod suites;
pub mod variants;
pub mod worker;
