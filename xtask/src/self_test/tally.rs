//! The tally of a self-test: how many tries said what, and whether that is as it should be.

use std::fmt;

use super::record::Record;
use super::tries::{SLOWDOWNS, Subject};

/// Of 200 identical arms at most so many may be told apart, by threshold.
const MOST_TOLD_APART: [(f64, usize); 2] = [(0.0, 16), (0.03, 4)];

/// Of 40 slowdowns of so many hundredths at least so many must be found.
const FEWEST_FOUND: [(u32, usize); 2] = [(3, 32), (5, 38)];

/// What the tries of a self-test said.
pub(crate) struct Tally {
    /// Arms that read, by threshold: tries without load, of these told apart; likewise with load.
    identical: Vec<(f64, [(usize, usize); 2])>,
    /// Likewise arms that write, each to a store of its own.
    identical_but_for_stores: Vec<(f64, [(usize, usize); 2])>,
    /// By slowdown in hundredths: tries, called slower, called faster, intervals that hold the truth,
    /// median half width of the intervals as a share.
    planted: Vec<(u32, Planted)>,
}

#[derive(Default)]
struct Planted {
    tries: usize,
    slower: usize,
    faster: usize,
    held: usize,
    half_width: Option<f64>,
}

impl Tally {
    /// Counts what there is so far.
    pub(crate) fn of(records: &[Record]) -> Self {
        let planted = SLOWDOWNS.map(|percent| (percent, planted(records, percent)));
        Self {
            identical: identical(records, false),
            identical_but_for_stores: identical(records, true),
            planted: planted.into(),
        }
    }

    /// Whether every target is met, by what there is.
    pub(crate) fn is_met(&self) -> bool {
        let few_apart = MOST_TOLD_APART.iter().all(|(threshold, most)| {
            let found = self.identical.iter().find(|(other, _)| other == threshold);
            found.is_some_and(|(_, [quiet, loaded])| quiet.1 + loaded.1 <= *most)
        });
        let most_found = FEWEST_FOUND.iter().all(|(percent, fewest)| {
            let found = self.planted.iter().find(|(other, _)| other == percent);
            found.is_some_and(|(_, planted)| planted.slower >= *fewest)
        });
        few_apart && most_found
    }
}

/// By threshold: tries of identical arms without load, of these told apart; likewise with load.
fn identical(records: &[Record], writes: bool) -> Vec<(f64, [(usize, usize); 2])> {
    let of_load = |threshold: f64, with_load: bool| {
        let wanted = |record: &&Record| {
            let tried = &record.tried;
            tried.slowdown_percent == 0
                && tried.with_load == with_load
                && (tried.subject == Subject::SqliteWrite) == writes
        };
        let verdicts: Vec<bool> = records
            .iter()
            .filter(wanted)
            .flat_map(|record| &record.result.judged)
            .filter(|judged| judged.threshold == threshold)
            .map(|judged| judged.differs())
            .collect();
        let apart = verdicts.iter().filter(|differs| **differs).count();
        (verdicts.len(), apart)
    };
    let thresholds = MOST_TOLD_APART.iter().map(|(threshold, _)| *threshold);
    thresholds
        .map(|threshold| {
            let of_load = [false, true].map(|with_load| of_load(threshold, with_load));
            (threshold, of_load)
        })
        .collect()
}

fn planted(records: &[Record], percent: u32) -> Planted {
    let mut found = Planted::default();
    // An arm that takes 1.03 times as long is 1 / 1.03 times as fast.
    let truth = 1.0 / (1.0 + f64::from(percent) / 100.0);
    let mut widths = Vec::new();
    let of_this = records
        .iter()
        .filter(|record| record.tried.slowdown_percent == percent);
    for judged in of_this.flat_map(|record| &record.result.judged) {
        found.tries += 1;
        found.slower += usize::from(judged.verdict == "slower");
        found.faster += usize::from(judged.verdict == "faster");
        found.held += usize::from((judged.low..=judged.high).contains(&truth));
        widths.push((judged.high / judged.low).sqrt() - 1.0);
    }
    found.half_width = sqlitmus_core::statistics::median(&widths);
    found
}

impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "| identical arms, threshold | tries | told apart | under load | told apart | target of 200 |"
        )?;
        writeln!(formatter, "|---|---:|---:|---:|---:|---|")?;
        let row = |formatter: &mut fmt::Formatter<'_>,
                   what: &str,
                   (threshold, [quiet, loaded]): &(f64, [(usize, usize); 2]),
                   target: &str| {
            writeln!(
                formatter,
                "| {what}, {}% | {} | {} | {} | {} | {target} |",
                threshold * 100.0,
                quiet.0,
                quiet.1,
                loaded.0,
                loaded.1
            )
        };
        for (counted, (_, most)) in self.identical.iter().zip(MOST_TOLD_APART) {
            let target = format!("at most {most}");
            row(formatter, "reading the same store", counted, &target)?;
        }
        for counted in &self.identical_but_for_stores {
            row(
                formatter,
                "overwriting stores of their own",
                counted,
                "reported",
            )?;
        }
        writeln!(
            formatter,
            "\n| slower by | tries | found | called faster | interval holds it | half width | target of 40 |"
        )?;
        writeln!(formatter, "|---|---:|---:|---:|---:|---:|---|")?;
        for (percent, planted) in &self.planted {
            let target = FEWEST_FOUND
                .iter()
                .find(|(other, _)| other == percent)
                .map_or("reported".to_owned(), |(_, fewest)| {
                    format!("at least {fewest}")
                });
            let half_width = planted
                .half_width
                .map_or("-".to_owned(), |width| format!("{:.2}%", width * 100.0));
            writeln!(
                formatter,
                "| {percent}% | {} | {} | {} | {} | {half_width} | {target} |",
                planted.tries, planted.slower, planted.faster, planted.held
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{Judged, TryResult};
    use super::super::tries;
    use super::*;

    /// A record of every try, each with the verdict that is given for it.
    fn records(verdict: impl Fn(u32, f64, usize) -> &'static str) -> Vec<Record> {
        let mut seen = std::collections::BTreeMap::<(u32, bool), usize>::new();
        let tries = tries::all(1).into_iter().enumerate();
        tries
            .map(|(index, tried)| {
                let number = seen
                    .entry((
                        tried.slowdown_percent,
                        tried.subject == Subject::SqliteWrite,
                    ))
                    .or_default();
                *number += 1;
                let judged = tried.thresholds().iter().map(|threshold| Judged {
                    threshold: *threshold,
                    verdict: verdict(tried.slowdown_percent, *threshold, *number).to_owned(),
                    ratio: 0.97,
                    low: 0.96,
                    high: 0.98,
                    noise_floor: Some(0.01),
                    rounds: 40,
                });
                Record {
                    index,
                    result: TryResult {
                        judged: judged.collect(),
                        took_s: 1.0,
                    },
                    tried,
                }
            })
            .collect()
    }

    #[test]
    fn targets_are_met_exactly_and_not_by_one_less() {
        let with = |apart_at_0: usize, apart_at_3: usize, found_3: usize, found_5: usize| {
            let verdict = move |percent: u32, threshold: f64, number: usize| {
                let differs = match (percent, threshold) {
                    (0, threshold) if threshold > 0.0 => number <= apart_at_3,
                    (0, _) => number <= apart_at_0,
                    (3, _) => number <= found_3,
                    (5, _) => number <= found_5,
                    _ => false,
                };
                if differs { "slower" } else { "not-sure-yet" }
            };
            Tally::of(&records(verdict)).is_met()
        };
        // Those that write have no target: as many of them may be told apart.
        assert!(with(16, 4, 32, 38));
        assert!(!with(17, 4, 32, 38));
        assert!(!with(16, 5, 32, 38));
        assert!(!with(16, 4, 31, 38));
        assert!(!with(16, 4, 32, 37));
    }

    #[test]
    fn the_tally_says_what_was_counted() {
        let text = Tally::of(&records(|percent, _, _| match percent {
            0 => "faster",
            _ => "slower",
        }))
        .to_string();
        assert!(
            text.contains("| reading the same store, 0% | 100 | 100 | 100 | 100 | at most 16 |"),
            "{text}"
        );
        assert!(
            text.contains("| 3% | 40 | 40 | 0 | 40 | 1.04% | at least 32 |"),
            "{text}"
        );
        assert!(
            text.contains("| 5% | 40 | 40 | 0 | 0 | 1.04% | at least 38 |"),
            "{text}"
        );
        assert!(!Tally::of(&[]).is_met());
    }
}
