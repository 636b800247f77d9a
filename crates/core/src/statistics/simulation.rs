//! Tests by simulation: does a 95% interval hold the truth 95 times in 100 when the machine behaves as
//! machines do? And how often is a verdict wrong?
//!
//! The simulated machine drifts within a round (the same for both slices of a turn), gives every fresh
//! process its own luck, and stalls: slice noise has heavy tails. Everything follows from a seed, so a
//! test that passes passes always.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::{Interval, PairedRound, compare, noise_floor, t_interval, unpaired};
use crate::verdict::{Verdict, judge};

const SIMULATIONS: usize = 2_000;

/// A machine; all standard deviations are of natural logarithms of times.
#[derive(Clone, Copy)]
struct Machine {
    rounds: usize,
    slices: usize,
    /// Each process's own luck: memory layout, state of caches.
    process_deviation: f64,
    /// Noise of a slice of one arm.
    slice_deviation: f64,
    /// Share of slices that stall and take up to four times as long.
    stalls: f64,
    /// How far the machine drifts, steps of a random walk shared by the slices of a turn.
    drift_deviation: f64,
}

const LIFELIKE: Machine = Machine {
    rounds: 8,
    slices: 30,
    process_deviation: 0.008,
    slice_deviation: 0.04,
    stalls: 0.1,
    drift_deviation: 0.05,
};

/// A machine on which a process's own luck outweighs the noise of its slices.
const UNLIKE_PROCESSES: Machine = Machine {
    process_deviation: 0.1,
    ..LIFELIKE
};

struct Luck(Xoshiro256PlusPlus);

impl Luck {
    fn new(seed: u64) -> Luck {
        Luck(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Uniform in [0, 1): the upper 53 bits.
    fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Normal with mean 0 and variance 1: G. E. P. Box and M. E. Muller, "A note on the generation of
    /// random normal deviates", Annals of Mathematical Statistics 29(2), 1958.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// The logarithm of what noise makes of a slice's time.
    fn slice(&mut self, machine: &Machine) -> f64 {
        let noise = machine.slice_deviation * self.normal();
        if self.uniform() < machine.stalls {
            noise + self.uniform() * 4.0f64.ln()
        } else {
            noise
        }
    }

    /// One round: nanoseconds per operation of every arm in every turn. An arm of speed 2 takes half
    /// the time.
    fn round<const ARMS: usize>(
        &mut self,
        machine: &Machine,
        speeds: [f64; ARMS],
    ) -> Vec<[f64; ARMS]> {
        let processes = speeds
            .map(|speed| 10_000f64.ln() - speed.ln() + machine.process_deviation * self.normal());
        let mut drift = 0.0;
        (0..machine.slices)
            .map(|_| {
                drift += machine.drift_deviation * self.normal();
                processes.map(|process| (process + drift + self.slice(machine)).exp())
            })
            .collect()
    }

    /// A whole measurement of a reference of speed 1 and an arm.
    fn measurement(&mut self, machine: &Machine, speed: f64) -> Vec<PairedRound> {
        (0..machine.rounds)
            .map(|_| PairedRound {
                slices: self
                    .round(machine, [1.0, speed])
                    .into_iter()
                    .map(|[reference, arm]| (reference, arm))
                    .collect(),
            })
            .collect()
    }
}

/// Share of simulated measurements whose interval holds the true ratio.
fn coverage(
    machine: &Machine,
    seed: u64,
    interval_of: impl Fn(&[PairedRound]) -> Option<Interval>,
) -> f64 {
    const TRUTH: f64 = 1.35;
    let mut luck = Luck::new(seed);
    let held = (0..SIMULATIONS)
        .filter_map(|_| interval_of(&luck.measurement(machine, TRUTH)))
        .filter(|interval| interval.contains(TRUTH))
        .count();
    held as f64 / SIMULATIONS as f64
}

fn of_comparison(rounds: &[PairedRound]) -> Option<Interval> {
    compare(rounds, 0.95).ok()?.interval
}

#[test]
fn the_interval_holds_the_truth_as_often_as_it_says() {
    let quiet = Machine {
        stalls: 0.0,
        drift_deviation: 0.0,
        ..LIFELIKE
    };
    let few_noisy_slices = Machine {
        slices: 7,
        stalls: 0.2,
        ..LIFELIKE
    };
    let machines = [LIFELIKE, quiet, few_noisy_slices, UNLIKE_PROCESSES];
    for (seed, machine) in machines.iter().enumerate() {
        let held = coverage(machine, seed as u64, of_comparison);
        assert!((0.92..=0.98).contains(&held), "machine {seed}: {held}");
    }
}

/// Where so many slices stall that the median of a few cannot hold out, the interval errs on the safe
/// side: it grows too wide, not too narrow.
#[test]
fn the_interval_is_careful_where_the_median_is_overrun() {
    let machine = Machine {
        slices: 3,
        stalls: 0.3,
        ..LIFELIKE
    };
    let held = coverage(&machine, 4, of_comparison);
    assert!((0.95..=0.995).contains(&held), "{held}");
}

/// Why the interval is taken over rounds: slices of one process share its luck, and an interval that
/// takes them for independent promises far more than it holds.
#[test]
fn an_interval_over_pooled_slices_would_lie() {
    let held = coverage(&UNLIKE_PROCESSES, 5, |rounds| {
        let pooled: Vec<f64> = rounds
            .iter()
            .flat_map(|round| &round.slices)
            .map(|(reference, arm)| reference.ln() - arm.ln())
            .collect();
        Some(t_interval(&pooled, 0.95)?.interval.exp())
    });
    assert!(held < 0.7, "{held}");
}

#[test]
fn the_unpaired_interval_holds_the_truth_as_often_as_it_says() {
    const TRUTH: f64 = 12.0;
    let mut luck = Luck::new(6);
    let mut times = |count: usize, centre: f64, deviation: f64| -> Vec<f64> {
        (0..count)
            .map(|_| centre * (deviation * luck.normal()).exp())
            .collect()
    };
    let held = (0..SIMULATIONS)
        .filter_map(|_| {
            let writes = times(4, 10_000.0 * TRUTH, 0.08);
            let reads = times(8, 10_000.0, 0.02);
            unpaired(&writes, &reads, 0.95).ok()?.interval
        })
        .filter(|interval| interval.contains(TRUTH))
        .count() as f64
        / SIMULATIONS as f64;
    assert!((0.92..=0.98).contains(&held), "{held}");
}

#[test]
fn the_variance_components_are_found() {
    let machine = Machine {
        stalls: 0.0,
        process_deviation: 0.03,
        ..LIFELIKE
    };
    let mut luck = Luck::new(7);
    let (mut between, mut within) = (0.0, 0.0);
    for _ in 0..SIMULATIONS / 10 {
        let found = compare(&luck.measurement(&machine, 1.0), 0.95).expect("an estimate");
        between += found.variance_between_rounds.expect("several rounds");
        within += found.variance_within_rounds.expect("several slices");
    }
    // Two arms, so twice the variance of one; drift is common to both and drops out.
    let share =
        |sum: f64, deviation: f64| sum / (SIMULATIONS / 10) as f64 / (2.0 * deviation.powi(2));
    let (between, within) = (
        share(between, machine.process_deviation),
        share(within, 0.04),
    );
    assert!((0.9..1.1).contains(&between), "{between}");
    assert!((0.95..1.05).contains(&within), "{within}");
}

/// How often three arms, the baseline twice and a challenger of the given speed, end in each verdict:
/// (faster, slower, no difference worth having).
fn verdicts(seed: u64, speed: f64, threshold: f64) -> (usize, usize, usize) {
    let mut luck = Luck::new(seed);
    let (mut faster, mut slower, mut alike) = (0, 0, 0);
    for _ in 0..SIMULATIONS / 4 {
        let (mut twins, mut challengers) = (Vec::new(), Vec::new());
        for _ in 0..LIFELIKE.rounds {
            let turns = luck.round(&LIFELIKE, [1.0, 1.0, speed]);
            twins.push(PairedRound {
                slices: turns.iter().map(|turn| (turn[0], turn[1])).collect(),
            });
            challengers.push(PairedRound {
                slices: turns.iter().map(|turn| (turn[0], turn[2])).collect(),
            });
        }
        let floor = compare(&twins, 0.95).ok().as_ref().and_then(noise_floor);
        let estimate = compare(&challengers, 0.95).expect("an estimate");
        match judge(&estimate, floor, threshold) {
            Verdict::Faster => faster += 1,
            Verdict::Slower => slower += 1,
            Verdict::NoDifferenceWorthHaving => alike += 1,
            Verdict::NotSureYet => {}
        }
    }
    (faster, slower, alike)
}

#[test]
fn identical_arms_are_hardly_ever_told_apart() {
    let tries = SIMULATIONS / 4;
    let (faster, slower, _) = verdicts(8, 1.0, 0.0);
    assert!(faster + slower <= tries / 50, "{faster} + {slower}");
    let (faster, slower, alike) = verdicts(9, 1.0, 0.03);
    assert_eq!((faster, slower), (0, 0));
    assert!(alike > tries / 2, "{alike}");
}

#[test]
fn real_differences_are_found_and_never_turned_round() {
    let tries = SIMULATIONS / 4;
    let (faster, slower, alike) = verdicts(10, 1.0 / 1.10, 0.03);
    assert!(slower > tries * 9 / 10, "{slower}");
    assert_eq!((faster, alike), (0, 0));
    let (faster, slower, alike) = verdicts(11, 1.10, 0.03);
    assert!(faster > tries * 9 / 10, "{faster}");
    assert_eq!((slower, alike), (0, 0));
}
