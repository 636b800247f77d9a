//! Parameters: what may be changed in a suite about rows without editing it, such as the number
//! of rows. A suite without rows takes none of them: its figures would no longer be those that
//! its name stands for.

use crate::dataset::{MAXIMUM_BLOB_BYTES, SizeDistribution};
use crate::names::nearest;
use crate::plan::MOST_THREADS;
use crate::suite::{Scaled, Suite, SuiteError, SuiteWorkload};
use crate::units::parse_bytes;

/// Names of all parameters, each with one line about it.
pub const PARAMETERS: &[(&str, &str)] = &[
    (
        "rows",
        "rows in every table, entries of a generated tree, or jobs that a batch takes turns with",
    ),
    (
        "text_bytes",
        "bytes in every text column, job record or file of a generated tree",
    ),
    ("hit_percent", "queries of a hundred that find their row"),
    ("threads", "numbers of threads, such as 1,2,4"),
    ("limit_ms", "longest time of one batch in milliseconds"),
    ("tree", "directory to record instead of a generated one"),
];

impl Suite {
    /// Sets a parameter in all groups that it means something to.
    ///
    /// # Errors
    /// The suite is not about rows, has no such parameter, or cannot take the value.
    pub fn set_parameter(&mut self, name: &str, value: &str) -> Result<(), SuiteError> {
        let suite = self.name.clone();
        let refuse = |problem: String, hint: String| SuiteError {
            suite: suite.clone(),
            problem,
            hint,
        };
        if !PARAMETERS.iter().any(|(known, _)| *known == name) {
            let names = PARAMETERS.iter().map(|(known, _)| *known);
            let hint = match nearest(name, names.clone()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}", names.collect::<Vec<_>>().join(", ")),
            };
            return Err(refuse(format!("there is no parameter `{name}`"), hint));
        }
        let allowed = allowed(name);
        let impossible = || {
            let problem = format!("parameter `{name}` cannot be `{value}`");
            refuse(problem, format!("it is {allowed}"))
        };
        let changed = self.change(name, value).ok_or_else(impossible)?;
        if changed {
            return Ok(());
        }
        let problem = format!("no group has a use for the parameter `{name}`");
        let hint = "parameters are for suites about rows, such as oltp".to_owned();
        Err(refuse(problem, hint))
    }

    /// Whether anything has the parameter; `None` if the value is impossible.
    fn change(&mut self, name: &str, value: &str) -> Option<bool> {
        match name {
            "rows" => {
                let rows = parse_bytes(value).ok().filter(|rows| *rows > 0)?;
                let used = self.datasets_of_rows();
                for dataset in self
                    .dataset
                    .iter_mut()
                    .filter(|data| used.contains(&data.name))
                {
                    dataset.count = Scaled::Same(rows);
                }
                self.limit_imports(rows);
                Some(!used.is_empty())
            }
            "text_bytes" => {
                let bytes = parse_bytes(value).ok()?;
                let bytes = u32::try_from(bytes)
                    .ok()
                    .filter(|bytes| *bytes <= MAXIMUM_BLOB_BYTES)?;
                let used = self.datasets_of_rows();
                for dataset in self
                    .dataset
                    .iter_mut()
                    .filter(|data| used.contains(&data.name))
                {
                    dataset.size = SizeDistribution::Fixed(bytes);
                }
                Some(!used.is_empty())
            }
            "threads" => self.change_threads(&thread_numbers(value)?),
            "hit_percent" => {
                let percent = value
                    .parse()
                    .ok()
                    .filter(|percent| (1..=100).contains(percent))?;
                Some(self.change_workloads(|workload| match workload {
                    SuiteWorkload::PointQuery { hit_percent }
                    | SuiteWorkload::Traffic { hit_percent, .. } => {
                        *hit_percent = percent;
                        true
                    }
                    _ => false,
                }))
            }
            "tree" => {
                let path = value.starts_with('/').then(|| value.to_owned())?;
                Some(self.change_workloads(|workload| match workload {
                    SuiteWorkload::Index { tree, .. } => {
                        *tree = Some(path.clone());
                        true
                    }
                    _ => false,
                }))
            }
            _ => {
                let limit: u64 = value.parse().ok()?;
                Some(self.change_workloads(|workload| match workload {
                    SuiteWorkload::Import { limit_ms, .. }
                    | SuiteWorkload::Update { limit_ms, .. }
                    | SuiteWorkload::JobQueue { limit_ms, .. }
                    | SuiteWorkload::Index { limit_ms, .. } => {
                        *limit_ms = limit;
                        true
                    }
                    _ => false,
                }))
            }
        }
    }

    fn datasets_of_rows(&self) -> Vec<String> {
        let about_rows = self
            .group
            .iter()
            .filter(|group| is_about_rows(&group.workload));
        about_rows.map(|group| group.dataset.clone()).collect()
    }

    /// An import has as many rows as there are, where it had a number of its own.
    fn limit_imports(&mut self, rows: u64) {
        for group in &mut self.group {
            if let SuiteWorkload::Import { operations, .. } = &mut group.workload {
                *operations = Scaled::Same(rows);
                for arm in &mut group.arm {
                    arm.operations = None;
                }
            }
        }
    }

    fn change_workloads(&mut self, change: impl Fn(&mut SuiteWorkload) -> bool) -> bool {
        let changed = self
            .group
            .iter_mut()
            .map(|group| change(&mut group.workload));
        changed.fold(false, |any, one| any | one)
    }

    /// Gives these numbers to every arm that has several. The baseline of a group keeps its own
    /// beside them: everything is compared with it.
    fn change_threads(&mut self, numbers: &[u32]) -> Option<bool> {
        let mut changed = false;
        for group in &mut self.group {
            for arm in group.arm.iter_mut().filter(|arm| !arm.threads.is_empty()) {
                let prefix = format!("{}-", arm.name);
                let kept = group.baseline.strip_prefix(&prefix);
                let kept: Option<u32> = kept.and_then(|number| number.parse().ok());
                arm.threads = numbers.to_vec();
                if let Some(kept) = kept.filter(|kept| !numbers.contains(kept)) {
                    arm.threads.insert(0, kept);
                }
                changed = true;
            }
        }
        Some(changed)
    }
}

fn is_about_rows(workload: &SuiteWorkload) -> bool {
    !matches!(
        workload,
        SuiteWorkload::Read { .. } | SuiteWorkload::Overwrite { .. }
    )
}

/// `1,2,4`: in ascending order, each once.
fn thread_numbers(text: &str) -> Option<Vec<u32>> {
    let numbers = text.split(',').map(|number| {
        let number = number.trim().parse().ok();
        number.filter(|number| (1..=MOST_THREADS).contains(number))
    });
    let mut numbers: Vec<u32> = numbers.collect::<Option<_>>()?;
    numbers.sort_unstable();
    numbers.dedup();
    Some(numbers)
}

fn allowed(name: &str) -> String {
    match name {
        "rows" => "a whole number from 1, such as 100000 or 100K".to_owned(),
        "text_bytes" => format!("a number of bytes up to {MAXIMUM_BLOB_BYTES}, such as 1000"),
        "hit_percent" => "a whole number from 1 to 100".to_owned(),
        "tree" => "the full path of a directory".to_owned(),
        "threads" => format!("numbers from 1 to {MOST_THREADS}, such as 1,2,4"),
        _ => "a whole number; 0 is no limit".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::SizeDistribution;

    const SUITE: &str = r#"
        name = "rows"
        about = "a"
        question = "q"
        [[dataset]]
        name = "users"
        count = { default = 10, full = 100 }
        size = { fixed = 10 }
        [[dataset]]
        name = "blobs"
        count = 5
        size = { fixed = 7 }
        [[group]]
        name = "query"
        dataset = "users"
        workload = { kind = "point-query", hit_percent = 10 }
        cache = "warm"
        durability = "process-crash"
        baseline = "private-1"
        rounds = 1
        slices = 1
        [[group.arm]]
        name = "private"
        label = "private"
        engine = "sqlite"
        threads = [1, 2]
        [[group]]
        name = "import"
        dataset = "users"
        workload = { kind = "import", operations = 10, limit_ms = 5 }
        cache = "warm"
        durability = "process-crash"
        baseline = "all"
        rounds = 1
        slices = 1
        [[group.arm]]
        name = "all"
        label = "all"
        engine = "sqlite"
    "#;

    fn suite() -> Suite {
        Suite::parse(SUITE, "test").expect("valid")
    }

    #[test]
    fn rows_and_widths_are_those_of_the_datasets_with_rows() {
        let mut suite = suite();
        suite.set_parameter("rows", "1K").expect("valid");
        suite.set_parameter("text_bytes", "20").expect("valid");
        assert_eq!(suite.dataset[0].count.at("full"), Some(1000));
        assert_eq!(suite.dataset[0].size, SizeDistribution::Fixed(20));
        assert_eq!(suite.dataset[1].count.at("full"), Some(5), "blobs stay");
        let SuiteWorkload::Import { operations, .. } = &suite.group[1].workload else {
            panic!("an import");
        };
        assert_eq!(operations.at("default"), Some(1000));
    }

    #[test]
    fn threads_keep_the_baseline() {
        let mut suite = suite();
        suite.set_parameter("threads", "8,4,4").expect("valid");
        assert_eq!(suite.group[0].arm[0].threads, [1, 4, 8]);
        suite.set_parameter("threads", "1, 16").expect("valid");
        assert_eq!(suite.group[0].arm[0].threads, [1, 16]);
    }

    #[test]
    fn workloads_take_their_own_parameters() {
        let mut suite = suite();
        suite.set_parameter("hit_percent", "50").expect("valid");
        suite.set_parameter("limit_ms", "0").expect("valid");
        assert_eq!(
            suite.group[0].workload,
            SuiteWorkload::PointQuery { hit_percent: 50 }
        );
        assert!(matches!(
            suite.group[1].workload,
            SuiteWorkload::Import { limit_ms: 0, .. }
        ));
    }

    #[test]
    fn what_cannot_be_is_refused_with_a_hint() {
        let mut suite = suite();
        for (name, value, hint) in [
            ("row", "5", "`rows`"),
            ("rows", "0", "from 1"),
            ("rows", "many", "from 1"),
            ("hit_percent", "101", "1 to 100"),
            ("threads", "1,0", "such as 1,2,4"),
            ("threads", "", "such as 1,2,4"),
        ] {
            let error = suite.set_parameter(name, value).expect_err("refused");
            assert!(error.hint.contains(hint), "{name}={value}: {}", error.hint);
        }
        suite.group.clear();
        let error = suite.set_parameter("rows", "5").expect_err("no rows");
        assert!(error.problem.contains("no group"), "{}", error.problem);
    }
}
