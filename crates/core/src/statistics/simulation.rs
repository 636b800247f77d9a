//! Tests by simulation: does a 95% interval hold the truth 95 times in 100 when the machine behaves as
//! machines do? And how often is a verdict wrong?
//!
//! The simulated machine drifts within a round from slice to slice, arms taking their turns in random
//! order; it gives every fresh process its own luck, and stalls: slice noise has heavy tails. Everything
//! follows from a seed, so a test that passes passes always.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::{Interval, PairedRound, RatioEstimate, compare, noise_floor, t_interval, unpaired};
use crate::stopping::StoppingRule;
use crate::verdict::{Judged, Verdict, judge, judge_together};

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
    /// How far the machine drifts from one slice to the next, whichever arm's: steps of a random walk.
    drift_deviation: f64,
    /// Share of processes that are out of luck: ten times as far from the others as usual.
    unlucky: f64,
    /// Whether noise of slices has no variance at all (Student's with two degrees of freedom, scaled).
    wild: bool,
}

const LIFELIKE: Machine = Machine {
    rounds: 8,
    slices: 30,
    process_deviation: 0.008,
    slice_deviation: 0.04,
    stalls: 0.1,
    drift_deviation: 0.02,
    unlucky: 0.0,
    wild: false,
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
        let mut noise = machine.slice_deviation * self.normal();
        if machine.wild {
            // Normal over the root of half a chi-squared of two: -ln of a uniform number.
            noise /= (-(1.0 - self.uniform()).ln()).sqrt();
        }
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
        let processes = speeds.map(|speed| {
            let luck = machine.process_deviation * self.normal();
            let unlucky = if self.uniform() < machine.unlucky {
                10.0
            } else {
                1.0
            };
            10_000f64.ln() - speed.ln() + luck * unlucky
        });
        let mut drift = 0.0;
        let mut order: Vec<usize> = (0..ARMS).collect();
        (0..machine.slices)
            .map(|_| {
                for place in (1..ARMS).rev() {
                    order.swap(place, (self.uniform() * (place + 1) as f64) as usize);
                }
                let mut turn = [0.0; ARMS];
                for arm in &order {
                    drift += machine.drift_deviation * self.normal();
                    turn[*arm] = (processes[*arm] + drift + self.slice(machine)).exp();
                }
                turn
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
    let drifting = Machine {
        drift_deviation: 0.2,
        ..LIFELIKE
    };
    let wild = Machine {
        wild: true,
        slices: 10,
        ..LIFELIKE
    };
    let many_rounds = Machine {
        rounds: 40,
        slices: 5,
        ..LIFELIKE
    };
    let machines = [
        LIFELIKE,
        quiet,
        few_noisy_slices,
        UNLIKE_PROCESSES,
        drifting,
        wild,
        many_rounds,
    ];
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
    // Likewise where some processes are far off the others.
    let machine = Machine {
        unlucky: 0.1,
        ..LIFELIKE
    };
    let held = coverage(&machine, 20, of_comparison);
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
    // Two arms, so twice the variance of one; of the drift the one step between the two is left.
    let mean = |sum: f64| sum / (SIMULATIONS / 10) as f64;
    let (between, within) = (
        mean(between) / (2.0 * machine.process_deviation.powi(2)),
        mean(within) / (2.0 * 0.04f64.powi(2) + machine.drift_deviation.powi(2)),
    );
    assert!((0.9..1.1).contains(&between), "{between}");
    assert!((0.95..1.05).contains(&within), "{within}");
}

/// The baseline's twin and a challenger of the given speed, each compared with the baseline.
fn twin_and_challenger(
    luck: &mut Luck,
    machine: &Machine,
    speed: f64,
) -> (RatioEstimate, RatioEstimate) {
    let (mut twins, mut challengers) = (Vec::new(), Vec::new());
    for _ in 0..machine.rounds {
        let turns = luck.round(machine, [1.0, 1.0, speed]);
        let against = |arm: usize| PairedRound {
            slices: turns.iter().map(|turn| (turn[0], turn[arm])).collect(),
        };
        twins.push(against(1));
        challengers.push(against(2));
    }
    let compared = |rounds: &[PairedRound]| compare(rounds, 0.95).expect("an estimate");
    (compared(&twins), compared(&challengers))
}

/// How often a challenger of the given speed ends in each verdict: (faster, slower, no difference worth
/// having).
fn verdicts(seed: u64, machine: &Machine, speed: f64, threshold: f64) -> (usize, usize, usize) {
    let mut luck = Luck::new(seed);
    let (mut faster, mut slower, mut alike) = (0, 0, 0);
    for _ in 0..SIMULATIONS / 4 {
        let (twin, challenger) = twin_and_challenger(&mut luck, machine, speed);
        match judge(&challenger, noise_floor(&twin), threshold) {
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
    let (faster, slower, _) = verdicts(8, &LIFELIKE, 1.0, 0.0);
    assert!(faster + slower <= tries / 50, "{faster} + {slower}");
    let (faster, slower, alike) = verdicts(9, &LIFELIKE, 1.0, 0.03);
    assert_eq!((faster, slower), (0, 0));
    assert!(alike > tries / 2, "{alike}");
}

#[test]
fn real_differences_are_found_and_never_turned_round() {
    let tries = SIMULATIONS / 4;
    let (faster, slower, alike) = verdicts(10, &LIFELIKE, 1.0 / 1.10, 0.03);
    assert!(slower > tries * 9 / 10, "{slower}");
    assert_eq!((faster, alike), (0, 0));
    let (faster, slower, alike) = verdicts(11, &LIFELIKE, 1.10, 0.03);
    assert!(faster > tries * 9 / 10, "{faster}");
    assert_eq!((slower, alike), (0, 0));
}

/// Why the ratio, and not its whole interval, must be beyond the noise floor: the floor is the farther
/// end of an interval already.
#[test]
fn uncertainty_that_counted_twice_would_hide_what_is_there() {
    // The half width is some 1.6%, the slowdown twice that.
    let (mut found, mut by_the_stricter_rule) = (0, 0);
    let mut luck = Luck::new(12);
    let tries = SIMULATIONS / 4;
    for _ in 0..tries {
        let (twin, challenger) = twin_and_challenger(&mut luck, &LIFELIKE, 1.0 / 1.032);
        let floor = noise_floor(&twin);
        found += usize::from(judge(&challenger, floor, 0.0) == Verdict::Slower);
        let interval = challenger.interval.expect("an interval");
        let is_beyond = interval.high < 1.0 / (1.0 + floor.expect("a floor"));
        by_the_stricter_rule += usize::from(is_beyond);
    }
    assert!(found > tries * 8 / 10, "{found}");
    assert!(
        by_the_stricter_rule < found * 7 / 10,
        "{by_the_stricter_rule}"
    );
}

/// Stopping when the widths please leaves the intervals as good as their word, nearly: the rule looks at
/// widths alone, and not at every round.
#[test]
fn stopping_by_width_keeps_the_interval_honest() {
    const TRUTH: f64 = 1.35;
    for (seed, precision) in [(13, 0.03), (14, 0.02), (15, 0.015)] {
        let rule = StoppingRule {
            at_least: 8,
            at_most: 200,
            precision: Some(precision),
        };
        let machine = Machine {
            rounds: 1,
            slices: 6,
            ..LIFELIKE
        };
        let mut luck = Luck::new(seed);
        let (mut held, mut reached) = (0, 0);
        let tries = SIMULATIONS / 2;
        for _ in 0..tries {
            let mut rounds: Vec<PairedRound> = Vec::new();
            let mut interval: Option<Interval> = None;
            let width =
                |interval: Option<Interval>| interval.map(|ends| ends.relative_half_width());
            while rule.goes_on(rounds.len() as u32, width(interval)) {
                rounds.extend(luck.measurement(&machine, TRUTH));
                interval = of_comparison(&rounds);
            }
            let interval = interval.expect("at least eight rounds");
            held += usize::from(interval.contains(TRUTH));
            reached += usize::from(interval.relative_half_width() <= precision);
        }
        let share = |count: usize| count as f64 / tries as f64;
        assert!(share(held) > 0.92, "{precision}: {}", share(held));
        assert!(share(reached) > 0.99, "{precision}: {}", share(reached));
    }
}

/// Fifteen arms that are all alike, judged at once: by themselves some would be called different far
/// more often than once in twenty runs, together they are not.
#[test]
fn of_many_arms_none_is_told_apart_by_chance() {
    const ARMS: usize = 16;
    let machine = Machine {
        slices: 8,
        ..LIFELIKE
    };
    let mut luck = Luck::new(16);
    let (mut together, mut each_by_itself) = (0, 0);
    let tries = SIMULATIONS / 4;
    for _ in 0..tries {
        let rounds: Vec<_> = (0..machine.rounds)
            .map(|_| luck.round(&machine, [1.0; ARMS]))
            .collect();
        let estimates: Vec<RatioEstimate> = (1..ARMS)
            .map(|arm| {
                let against = |turns: &Vec<[f64; ARMS]>| PairedRound {
                    slices: turns.iter().map(|turn| (turn[0], turn[arm])).collect(),
                };
                let rounds: Vec<PairedRound> = rounds.iter().map(against).collect();
                compare(&rounds, 0.95).expect("an estimate")
            })
            .collect();
        // Without a noise floor, which would hide what is to be shown.
        let family: Vec<Judged<'_>> = estimates
            .iter()
            .map(|estimate| Judged {
                estimate,
                noise_floor: Some(0.0),
            })
            .collect();
        let differs = |verdict: &Verdict| matches!(verdict, Verdict::Faster | Verdict::Slower);
        together += usize::from(judge_together(&family, 0.0).iter().any(differs));
        let alone = |estimate: &RatioEstimate| differs(&judge(estimate, Some(0.0), 0.0));
        each_by_itself += usize::from(estimates.iter().any(alone));
    }
    assert!(together <= tries * 6 / 100, "{together}");
    assert!(each_by_itself > tries / 5, "{each_by_itself}");
}
