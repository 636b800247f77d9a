//! What is left after a cut, judged: the writes of the durability experiment, what became of them
//! when the process was killed or the power went, and which tier of durability that proves.
//!
//! Pure. Writing, cutting and reading back are the command line's business; putting it into words
//! is the reports'.

pub mod content;
pub mod finding;
pub mod judgement;
pub mod plan;
pub mod proof;

pub use content::{Batches, Found, examine};
pub use finding::{Finding, KeyFinding, StoreFinding, find};
pub use judgement::{Claim, NextTier, Row, Table, Tally, judge};
pub use plan::{Configuration, Cut, CutKind, DurabilityPlan, DurabilityRun, Ending, Speed};
pub use proof::{Cuts, Proof, Standing, proofs, prove, standing};
