//! The recommendation: what follows from an advice run. Judged once, from the confirmation; the figures
//! of the selection only say what else was tried.

use std::collections::BTreeSet;

use serde::Serialize;

use super::ablation::{self, SettingWorth};
use super::candidate::{Candidate, Store, TODAY};
use super::score::{Composed, Part, Standing, break_even_read_share, compose, composed};
use super::stage::{Purpose, Stage, arm_name, reference};
use super::sweep::{self, SweepResult};
use super::{AdviceRecord, CacheWish, SizeClass};
use crate::case::Durability;
use crate::measurements::{ArmStatus, Cost, Measurements};
use crate::run::Run;
use crate::statistics::FEWEST_ROUNDS;

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Move the files into a database: what is gained is surely worth it.
    Move,
    /// Leave the files where they are: moving gains less than is worth it, or loses.
    KeepFiles,
    /// What was measured does not decide it.
    NotSure,
}

/// What follows from an advice run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recommendation {
    /// What to do.
    pub answer: Answer,
    /// The best store with a database that was confirmed, whether or not it is worth moving.
    pub database: Option<Standing>,
    /// Another finalist whose interval does not exclude that it is as fast: a tie.
    pub tie: Option<String>,
    /// Everything that was tried, by its last figures, the fastest first.
    pub standings: Vec<Standing>,
    /// What would change the answer.
    pub sensitivity: Sensitivity,
    /// Arms that are no candidates: the system's library, one packed file, a copy in memory.
    pub references: Vec<(String, Part)>,
    /// Versions of SQLite that were measured, by what they are: `built in`, `your system's`.
    pub versions: Vec<(String, String)>,
    /// Rounds of the confirmation.
    pub rounds: u32,
    /// Fillings of the stores that these were measured on; 0 if that was not noted.
    pub fillings: u32,
    /// Where the answer turns by the size of the files, if it was looked for.
    pub sweep: Option<SweepResult>,
    /// What each setting is worth, if it was measured.
    pub ablation: Vec<SettingWorth>,
}

/// How the best database stands if something were different.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Sensitivity {
    /// The share of reads at which it turns; `None` if it does not, or only one is asked for.
    pub break_even_read_share: Option<f64>,
    /// At another durability: which, writing alone, and the whole mixture.
    pub durability: Option<(Durability, Part, Option<Composed>)>,
    /// Reading from a cold cache.
    pub cold: Option<Part>,
    /// Reading many in a transaction, against each by itself.
    pub held: Option<Part>,
    /// Writing many to a transaction, against one to a transaction.
    pub batched: Option<Part>,
    /// Reading the files of one class of sizes.
    pub classes: Vec<(SizeClass, Part)>,
    /// Bytes from which on reading it is slower than the files, as far as classes tell.
    pub slower_from: Option<u64>,
}

/// What follows from a run; `None` if it is no advice run.
#[must_use]
pub fn recommend(run: &Run) -> Option<Recommendation> {
    let record = run.plan.advice.as_deref()?;
    let measurements = Measurements::new(run);
    let judge = Judge {
        run,
        record,
        measurements: &measurements,
    };
    Some(judge.recommendation())
}

struct Judge<'a> {
    run: &'a Run,
    record: &'a AdviceRecord,
    measurements: &'a Measurements<'a>,
}

impl Judge<'_> {
    fn recommendation(&self) -> Recommendation {
        let mut standings: Vec<Standing> = self
            .record
            .candidates
            .iter()
            .map(|candidate| self.standing(candidate))
            .collect();
        // What could not be measured comes last; what was confirmed stands before what only was tried.
        standings.sort_by(|one, other| {
            let key = |standing: &Standing| {
                let ratio = standing.composed.map_or(0.0, |composed| composed.ratio);
                (standing.stage == Stage::Confirm, ratio)
            };
            let (one, other) = (key(one), key(other));
            other.0.cmp(&one.0).then(other.1.total_cmp(&one.1))
        });
        let database = standings.iter().find(|standing| {
            standing.stage == Stage::Confirm
                && standing.composed.is_some()
                && standing.store.has_database()
        });
        let database = database.cloned();
        Recommendation {
            answer: self.answer(database.as_ref()),
            tie: database.as_ref().and_then(|database| self.tie(database)),
            sensitivity: database
                .as_ref()
                .map_or_else(Sensitivity::default, |one| self.sensitivity(one)),
            references: self.references(),
            versions: self.versions(),
            rounds: self.rounds(),
            fillings: self.fillings(),
            sweep: sweep::result(self.record, self.measurements),
            ablation: ablation::worths(self.record, self.measurements),
            standings,
            database,
        }
    }

    fn candidate(&self, name: &str) -> Option<&Candidate> {
        let mut all = self.record.candidates.iter();
        all.find(|candidate| candidate.name == name)
    }

    /// By the last stage that it took part in.
    fn standing(&self, candidate: &Candidate) -> Standing {
        let name = &candidate.name;
        let of = |stage: Stage| {
            composed(self.measurements, self.record, stage, TODAY, name)
                .map(|composed| (stage, composed))
        };
        let found = Stage::from_last().find_map(of);
        Standing {
            name: name.clone(),
            label: candidate.label.clone(),
            store: candidate.store,
            stage: found.map_or(Stage::Select, |(stage, _)| stage),
            composed: found.map(|(_, composed)| composed),
            space: Stage::from_last().find_map(|stage| {
                let name = |candidate: &str| arm_name(stage, self.record.wish.reading(), candidate);
                self.measurements
                    .space_ratio(&name(TODAY), &name(&candidate.name))
            }),
            reason: match found {
                Some(_) => None,
                None => self.reason(name),
            },
        }
    }

    /// Why a candidate has no figures.
    fn reason(&self, name: &str) -> Option<String> {
        let purposes = [self.record.wish.reading(), Purpose::Write];
        purposes.into_iter().find_map(|purpose| {
            match self
                .measurements
                .status(&arm_name(Stage::Select, purpose, name))
            {
                ArmStatus::Failed(reason) | ArmStatus::Skipped(reason) => Some(reason),
                ArmStatus::Measured | ArmStatus::NotReached => None,
            }
        })
    }

    fn answer(&self, database: Option<&Standing>) -> Answer {
        let Some(database) = database else {
            return Answer::NotSure;
        };
        let against_today = self.judged(database.composed);
        // To read the same files in a better way costs less than moving them.
        let best_files = self.record.finalists.iter().find(|name| {
            let candidate = self.candidate(name);
            *name != TODAY && candidate.is_some_and(|one| one.store == Store::Files)
        });
        let Some(best_files) = best_files else {
            return against_today;
        };
        let name = &database.name;
        let against_best = composed(
            self.measurements,
            self.record,
            Stage::Confirm,
            best_files,
            name,
        );
        match (against_today, self.judged(against_best)) {
            (Answer::Move, Answer::Move) => Answer::Move,
            (Answer::KeepFiles, _) | (_, Answer::KeepFiles) => Answer::KeepFiles,
            _ => Answer::NotSure,
        }
    }

    /// Whether a gain is surely worth moving for, surely not, or neither.
    fn judged(&self, composed: Option<Composed>) -> Answer {
        let Some(composed) = composed else {
            return Answer::NotSure;
        };
        let worth = 1.0 + self.record.wish.worth;
        let (Some(interval), Some(floor)) = (composed.interval, composed.noise_floor) else {
            return Answer::NotSure;
        };
        if self.rounds() < FEWEST_ROUNDS {
            Answer::NotSure
        } else if interval.low > worth && composed.ratio > 1.0 + floor {
            Answer::Move
        } else if interval.high < worth {
            Answer::KeepFiles
        } else {
            Answer::NotSure
        }
    }

    /// Another finalist that the best one is not surely better than.
    fn tie(&self, best: &Standing) -> Option<String> {
        let others = self
            .record
            .finalists
            .iter()
            .filter(|name| **name != best.name);
        let mut ties = others.filter(|name| {
            let found = composed(
                self.measurements,
                self.record,
                Stage::Confirm,
                name,
                &best.name,
            );
            found
                .and_then(|found| found.interval)
                .is_some_and(|interval| interval.low <= 1.0)
        });
        ties.next().cloned()
    }

    fn part(&self, purpose: Purpose, reference: &str, arm: &str) -> Option<Part> {
        let name = |candidate: &str| arm_name(Stage::Confirm, purpose, candidate);
        Part::of(
            self.measurements,
            &self.record.fillings,
            &name(reference),
            &name(arm),
        )
    }

    fn sensitivity(&self, database: &Standing) -> Sensitivity {
        let name = &database.name;
        let (read, write) = match database.composed {
            Some(composed) => (composed.read, composed.write),
            None => (None, None),
        };
        let other = self.part(Purpose::WriteOtherwise, TODAY, name);
        let classes: Vec<(SizeClass, Part)> = self
            .record
            .classes
            .iter()
            .enumerate()
            .filter_map(|(number, class)| {
                Some((*class, self.part(Purpose::Class(number), TODAY, name)?))
            })
            .collect();
        Sensitivity {
            break_even_read_share: read
                .zip(write)
                .and_then(|(read, write)| break_even_read_share(&read, &write)),
            durability: other.map(|part| {
                let wish = &self.record.wish;
                let floor = database.composed.and_then(|composed| composed.noise_floor);
                let whole = read.and_then(|read| compose(wish, Some(read), Some(part), floor));
                (wish.other_durability(), part, whole)
            }),
            cold: match self.record.wish.cache {
                CacheWish::Both => self.part(Purpose::ReadCold, TODAY, name),
                CacheWish::Warm | CacheWish::Cold => None,
            },
            held: self.part(Purpose::Read, name, reference::HELD),
            batched: self.part(Purpose::Write, name, reference::BATCHED),
            slower_from: slower_from(&classes),
            classes,
        }
    }

    fn references(&self) -> Vec<(String, Part)> {
        let names = [reference::SYSTEM, reference::PACKFILE, reference::MEMORY];
        let reading = self.record.wish.reading();
        let part = |name: &str| Some((name.to_owned(), self.part(reading, TODAY, name)?));
        names.into_iter().filter_map(part).collect()
    }

    /// What the live libraries said of themselves.
    fn versions(&self) -> Vec<(String, String)> {
        let database = self.record.finalists.iter().find(|name| {
            let candidate = self.candidate(name);
            candidate.is_some_and(|one| one.store.has_database())
        });
        let arms = database
            .map(|name| ("built in", name.as_str()))
            .into_iter()
            .chain([("your system's", reference::SYSTEM)]);
        let version = |arm: &str| {
            let arm = arm_name(Stage::Confirm, self.record.wish.reading(), arm);
            let mut trials = self.run.trials.iter().filter(|trial| trial.arm == arm);
            trials.find_map(|trial| trial.read_back.get(SQLITE_VERSION).cloned())
        };
        arms.filter_map(|(what, arm)| Some((what.to_owned(), version(arm)?)))
            .collect()
    }

    /// Rounds of the confirmation that count, of the group that has the fewest.
    fn rounds(&self) -> u32 {
        self.fewest(|rounds| rounds.len())
    }

    /// Fillings of the stores that these were measured on, of the group that has the fewest.
    fn fillings(&self) -> u32 {
        if self.record.fillings.is_empty() {
            return 0;
        }
        self.fewest(|rounds| rounds.iter().collect::<BTreeSet<_>>().len())
    }

    /// The least of what is counted in the fillings of the rounds of today's files, of the groups that
    /// decide.
    fn fewest(&self, count: impl Fn(&[u32]) -> usize) -> u32 {
        let wish = &self.record.wish;
        let wanted = [(wish.reading(), wish.reads), (Purpose::Write, wish.writes)];
        let wanted = wanted.into_iter().filter(|(_, wanted)| *wanted > 0);
        let counted = wanted.map(|(purpose, _)| {
            let arm = arm_name(Stage::Confirm, purpose, TODAY);
            let values = self
                .measurements
                .numbered_round_values(&arm, Cost::Acknowledged);
            let group = self.run.plan.arm(&arm);
            let group = group.map_or("", |(group, _)| group.name.as_str());
            let rounds = values.into_iter();
            let fillings = rounds.map(|(round, _)| self.record.fillings.of(group, round));
            count(&fillings.collect::<Vec<_>>()) as u32
        });
        counted.min().unwrap_or(0)
    }
}

/// What a live SQLite calls its version.
const SQLITE_VERSION: &str = crate::environment::said::SQLITE_VERSION;

/// Bytes from which on a database is slower than files: the start of the first class of those at the
/// end that are all surely slower.
fn slower_from(classes: &[(SizeClass, Part)]) -> Option<u64> {
    let is_slower = |part: &Part| part.interval.is_some_and(|interval| interval.high < 1.0);
    let slower = classes.iter().rev().take_while(|(_, part)| is_slower(part));
    slower.last().map(|(class, _)| class.from)
}

/// Names of the candidates that took part in a stage, the best by its figures first, today's files left
/// out, and with them what could not be measured.
#[must_use]
pub fn ranking(run: &Run, stage: Stage) -> Vec<String> {
    let Some(record) = run.plan.advice.as_deref() else {
        return Vec::new();
    };
    let measurements = Measurements::new(run);
    let mut ranked: Vec<(&str, f64)> = record
        .candidates
        .iter()
        .filter(|candidate| candidate.name != TODAY)
        .filter_map(|candidate| {
            let name = candidate.name.as_str();
            let found = composed(&measurements, record, stage, TODAY, name)?;
            Some((name, found.ratio))
        })
        .collect();
    ranked.sort_by(|one, other| other.1.total_cmp(&one.1));
    ranked
        .into_iter()
        .map(|(name, _)| name.to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Interval;

    fn part(low: f64, high: f64) -> Part {
        Part {
            ratio: (low * high).sqrt(),
            interval: Some(Interval { low, high }),
            operation_ns: 1.0,
            reference_ns: 1.0,
        }
    }

    fn class(from: u64) -> SizeClass {
        SizeClass {
            from,
            below: None,
            files: 1,
        }
    }

    #[test]
    fn the_border_is_where_all_larger_classes_are_slower() {
        let faster = part(1.5, 1.6);
        let slower = part(0.5, 0.6);
        let unsure = part(0.9, 1.1);
        let border = |parts: &[Part]| {
            let classes: Vec<_> = parts
                .iter()
                .enumerate()
                .map(|(index, part)| (class(10 * index as u64), *part))
                .collect();
            slower_from(&classes)
        };
        assert_eq!(border(&[faster, faster]), None);
        assert_eq!(border(&[faster, slower]), Some(10));
        assert_eq!(border(&[faster, slower, slower]), Some(10));
        assert_eq!(border(&[slower, faster, slower]), Some(20));
        assert_eq!(border(&[faster, slower, unsure]), None);
        assert_eq!(border(&[slower, slower]), Some(0));
        assert_eq!(border(&[]), None);
    }
}
