//! The durability experiment: stores are written on filesystems of our own, the writing process is
//! killed or the power goes, and what is left is compared with what had been acknowledged.
//!
//! [`job`] is what the processes that touch a store are asked to do, [`store_process`] does it;
//! [`writing`] is such a process seen from here, [`cutting`] makes one cut, [`speeds`] measures
//! how fast a configuration is, and [`experiment`] goes through all of a plan, several cuts at a time.
//! [`configurations`] lists what is tried; [`proofs`] finds what a run says about the arms of a
//! measurement. What the findings mean is judged in
//! [`sqlitmus_core::durability`].

pub mod configurations;
pub mod cutting;
pub mod experiment;
pub mod job;
pub mod proofs;
pub mod speeds;
pub mod store_process;
pub mod writing;
