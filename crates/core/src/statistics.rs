//! What measured times say about one another: estimates with their intervals, and how much the
//! machine itself scatters.
//!
//! This module reads numbers and gives numbers. What counts as a difference worth having is decided in
//! [`verdict`](crate::verdict); which slices are valid, when to stop, and what is shown, elsewhere.
//!
//! # How two arms are compared
//!
//! Slices are nested in rounds: each round has a fresh worker process for every arm, and the live
//! workers take turns slice by slice. With x_ij = ln(reference_ij / arm_ij) for slice j of round i,
//!
//! - round value: y_i = median over j of x_ij;
//! - estimate: ratio = exp(mean of y_i), the same weight for every round;
//! - interval: exp(mean +- t(1 - alpha/2, R - 1) * s / sqrt(R)), with s the sample standard deviation of
//!   the R round values and t the quantile of Student's distribution.
//!
//! Why so: the two times of a pair are taken within milliseconds of each other, so what drifts in the
//! machine drops out of their ratio. Logarithms make a ratio and its inverse mirror images, so that
//! neither arm is favoured by its place in the fraction (P. J. Fleming and J. J. Wallace, "How not to
//! lie with statistics: the correct way to summarize benchmark results", CACM 29(3), 1986). The median
//! keeps a slice that was hit by an interrupt from speaking for its round; such a slice is still
//! counted, and speaks in `ratio_of_totals`, which stands beside the estimate. The processes, not the
//! slices, are independent repetitions: memory layout and the state of caches are drawn once for a
//! process, and its slices share them. An interval from pooled slices would be far too narrow; the
//! interval is therefore taken over rounds (T. Kalibera and R. Jones, "Rigorous benchmarking in
//! reasonable time", ISMM 2013; A. Georges, D. Buytaert and L. Eeckhout, "Statistically rigorous Java
//! performance evaluation", OOPSLA 2007). The tests in `simulation.rs` show both: how often this
//! interval holds the truth, and how the pooled one fails.
//!
//! The estimate is about the typical slice. If one arm has more or worse stalls than the other, that
//! shows in `ratio_of_totals` and in the latency percentiles, not in `ratio`.
//!
//! # How many slices and rounds
//!
//! With the variance components of [`RatioEstimate`], n slices a round and R rounds, the variance of
//! the log estimate is about (between + (pi/2) * within / n) / R; pi/2 is what a median costs against
//! a mean when noise is normal (heavy tails make it less). Once (pi/2) * within / n is small against
//! `between`, more slices buy nothing: only more rounds do. [`Scatter`] works that out.

mod batches;
mod binomial;
mod comparison;
mod describe;
mod effort;
mod fieller;
mod interval;
#[cfg(test)]
mod simulation;
mod simultaneous;
mod unpaired;
mod variance;

pub use batches::{FEWEST_BATCHES, batched_t_interval};
pub use binomial::{lower_bound, upper_bound};
pub use comparison::{ComparisonError, PairedRound, RatioEstimate, compare, noise_floor};
pub use describe::{mean, median, quantile, sample_variance};
pub use effort::Scatter;
pub use fieller::{RatioOfMeans, ratio_of_means};
pub use interval::{Interval, MeanEstimate, t_interval};
pub(crate) use simultaneous::holm;
pub use simultaneous::simultaneous;
pub use unpaired::{difference_of_means, unpaired};

/// The fewest rounds that a verdict is given on. With fewer the quantile of Student's distribution is so
/// far out (2.36 at eight, 4.30 at three) that little is decided, and whether the round values are
/// anything like normal matters more than they can show.
pub const FEWEST_ROUNDS: u32 = 8;

/// The confidence that intervals are given with unless something else is asked for.
pub const DEFAULT_CONFIDENCE: f64 = 0.95;
