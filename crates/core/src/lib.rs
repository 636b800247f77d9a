//! The pure part of sqlitmus: what is measured (suites, cases, datasets, key orders), in which
//! order (schedule), and what follows from it (statistics, verdicts, claims). Nothing here reads
//! a clock, a file or the environment, so all of it can be tested with worked values.

pub mod advice;
pub mod analysis;
pub mod arrivals;
pub mod case;
pub mod claims;
pub mod conclusion;
pub mod crossover;
pub mod dataset;
pub mod durability;
pub mod environment;
pub mod explanation;
pub mod generated_tree;
pub mod judgement;
pub mod keys;
pub mod latencies;
pub mod lifecycle;
pub mod measurements;
pub mod names;
pub mod outliers;
pub mod packing;
pub mod parameters;
pub mod placeholders;
pub mod plan;
pub mod resource_use;
pub mod rows;
pub mod run;
pub mod run_comparison;
pub mod schedule;
pub mod settings;
pub mod spending;
pub mod statistics;
pub mod stopping;
pub mod storage_age;
pub mod suite;
pub mod tree_scan;
pub mod units;
pub mod variants;
pub mod verdict;
