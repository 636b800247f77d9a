//! When each part of an advice run is to be over. The parts have seconds that they are expected to take;
//! a budget stretches or shortens all of them alike.

use std::time::{Duration, Instant};

use sqlitmus_core::advice::Stage;

use super::thorough::STAGES;

/// A part of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// A stage of the selection.
    Search(Stage),
    /// The groups of the confirmation that decide.
    Deciding,
    /// The other groups of the confirmation.
    Others,
    /// A further stage of a thorough run: its place in [`STAGES`].
    Further(usize),
}

/// Of a run that takes two minutes, the scan and the answer included.
const QUICK: [(Phase, u64); 4] = [
    (Phase::Search(Stage::Select), 33),
    (Phase::Search(Stage::Halve(1)), 16),
    (Phase::Deciding, 44),
    (Phase::Others, 17),
];

/// Of a thorough run, as far as the confirmation.
const WIDE: [(Phase, u64); 6] = [
    (Phase::Search(Stage::Select), 110),
    (Phase::Search(Stage::Halve(1)), 55),
    (Phase::Search(Stage::Halve(2)), 30),
    (Phase::Search(Stage::Halve(3)), 20),
    (Phase::Deciding, 75),
    (Phase::Others, 35),
];

/// Which part ends when.
#[derive(Debug, Clone)]
pub struct Timetable {
    parts: Vec<(Phase, u64)>,
    start: Instant,
    end: Instant,
}

impl Timetable {
    /// From now until the budget is over, which began to run when the program did; without a budget
    /// for as long as is expected.
    #[must_use]
    pub fn new(is_thorough: bool, started: Instant, budget: Option<Duration>) -> Self {
        let budget = budget.unwrap_or_else(|| expected(is_thorough));
        Self {
            parts: parts(is_thorough),
            start: Instant::now(),
            end: started + budget,
        }
    }

    /// When a part is over at the latest; one that is not in the table, with the whole.
    #[must_use]
    pub fn ends(&self, phase: Phase) -> Instant {
        let all: u64 = seconds(&self.parts);
        let place = self.parts.iter().position(|(known, _)| *known == phase);
        let place = place.map_or(self.parts.len(), |place| place + 1);
        let share = seconds(&self.parts[..place]) as f64 / all.max(1) as f64;
        self.start + self.whole().mul_f64(share)
    }

    /// The time for everything.
    #[must_use]
    pub fn whole(&self) -> Duration {
        self.end.saturating_duration_since(self.start)
    }
}

/// How long a run is expected to take where no budget is given.
#[must_use]
pub fn expected(is_thorough: bool) -> Duration {
    Duration::from_secs(seconds(&parts(is_thorough)))
}

/// What a thorough run does, each with the seconds it is expected to take, shortened or stretched to
/// the budget.
#[must_use]
pub fn in_words(budget: Duration) -> Vec<(&'static str, Duration)> {
    let parts = parts(true);
    let stretch = budget.as_secs_f64() / seconds(&parts).max(1) as f64;
    let of = |is_in: &dyn Fn(Phase) -> bool| {
        let parts: Vec<_> = parts
            .iter()
            .copied()
            .filter(|(phase, _)| is_in(*phase))
            .collect();
        Duration::from_secs(seconds(&parts)).mul_f64(stretch)
    };
    let mut words = vec![
        (
            "wide search",
            of(&|phase| matches!(phase, Phase::Search(_))),
        ),
        (
            "confirmation",
            of(&|phase| matches!(phase, Phase::Deciding | Phase::Others)),
        ),
    ];
    let further = STAGES.iter().enumerate();
    words.extend(further.map(|(place, stage)| {
        let own = of(&|phase| phase == Phase::Further(place));
        (stage.words, own)
    }));
    words
}

fn parts(is_thorough: bool) -> Vec<(Phase, u64)> {
    if !is_thorough {
        return QUICK.to_vec();
    }
    let further = STAGES.iter().enumerate();
    let further = further.map(|(place, stage)| (Phase::Further(place), stage.seconds));
    WIDE.iter().copied().chain(further).collect()
}

fn seconds(parts: &[(Phase, u64)]) -> u64 {
    parts.iter().map(|(_, seconds)| seconds).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_end_one_after_the_other_and_the_last_with_the_budget() {
        let started = Instant::now();
        for is_thorough in [false, true] {
            let budget = Duration::from_secs(1_000);
            let table = Timetable::new(is_thorough, started, Some(budget));
            let mut last = started;
            for (phase, _) in parts(is_thorough) {
                let ends = table.ends(phase);
                assert!(ends > last, "{phase:?}");
                last = ends;
            }
            let off = (started + budget).saturating_duration_since(last);
            assert!(off < Duration::from_millis(1), "{off:?}");
        }
        assert_eq!(expected(false), Duration::from_secs(110));
        assert!(expected(true) > Duration::from_secs(300));
    }

    #[test]
    fn what_is_said_of_the_time_adds_up() {
        let budget = Duration::from_secs(600);
        let said: Duration = in_words(budget).iter().map(|(_, time)| *time).sum();
        let off = said.as_secs_f64() - budget.as_secs_f64();
        assert!(off.abs() < 0.01, "{said:?}");
    }
}
