//! The record of a self-test: one JSON line a try. What follows from it is for the tally.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::tries::Try;

/// The first line of the file.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    self_test_seed: u64,
}

/// One try that has ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Its place in the order.
    pub(crate) index: usize,
    /// What was tried.
    #[serde(flatten)]
    pub(crate) tried: Try,
    /// What came of it.
    #[serde(flatten)]
    pub(crate) result: TryResult,
}

/// What came of a try.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TryResult {
    /// By threshold.
    pub(crate) judged: Vec<Judged>,
    /// Seconds from the beginning of the measurement to the last verdict.
    pub(crate) took_s: f64,
}

/// The comparison of both arms, judged against a threshold.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Judged {
    /// The threshold, as a share.
    pub(crate) threshold: f64,
    /// `faster`, `slower`, `no-difference-worth-having` or `not-sure-yet`.
    pub(crate) verdict: String,
    /// Time of the one arm / time of the other.
    pub(crate) ratio: f64,
    /// Ends of its 95% interval.
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Noise floor, as a share.
    pub(crate) noise_floor: Option<f64>,
    /// Rounds that were compared.
    pub(crate) rounds: u64,
}

impl Judged {
    /// From the program's own report.
    pub(crate) fn read(report: &[u8], threshold: f64) -> anyhow::Result<Self> {
        let report: Value = serde_json::from_slice(report).context("the report is no JSON")?;
        let chart = &report["charts"][0];
        let found = &chart["rows"][0]["comparisons"][0];
        let number = |value: &Value, what: &str| {
            value
                .as_f64()
                .with_context(|| format!("the report has no {what}: {found}"))
        };
        Ok(Self {
            threshold,
            verdict: found["verdict"]
                .as_str()
                .context("the report has no verdict")?
                .to_owned(),
            ratio: number(&found["ratio"], "ratio")?,
            low: number(&found["interval"]["low"], "interval")?,
            high: number(&found["interval"]["high"], "interval")?,
            noise_floor: chart["noise_floor"].as_f64(),
            rounds: found["rounds"].as_u64().unwrap_or(0),
        })
    }

    /// Whether it says that the arms differ.
    pub(crate) fn differs(&self) -> bool {
        ["faster", "slower"].contains(&self.verdict.as_str())
    }
}

impl TryResult {
    /// Ratio and verdicts in a few words.
    pub(crate) fn words(&self) -> String {
        let Some(first) = self.judged.first() else {
            return String::new();
        };
        let verdicts: Vec<&str> = self
            .judged
            .iter()
            .map(|judged| judged.verdict.as_str())
            .collect();
        format!(
            "{:.4} ({:.4} to {:.4}), noise {:.4}, {} rounds, {:.1} s: {}",
            first.ratio,
            first.low,
            first.high,
            first.noise_floor.unwrap_or(f64::NAN),
            first.rounds,
            self.took_s,
            verdicts.join(", ")
        )
    }
}

/// The record of a self-test, in a file that grows by a line for every try.
pub(crate) struct Records {
    file: File,
    records: Vec<Record>,
    done: BTreeSet<usize>,
}

impl Records {
    /// Opens or begins a record. A last line that was cut off by a kill is taken away.
    ///
    /// # Errors
    /// The file belongs to another seed, is no record, or cannot be used.
    pub(crate) fn open(path: &Path, seed: u64) -> anyhow::Result<Self> {
        let name = || format!("{}", path.display());
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path)
            .with_context(name)?;
        let mut text = String::new();
        file.read_to_string(&mut text).with_context(name)?;
        let whole = text.rfind('\n').map_or(0, |last| last + 1);
        file.set_len(whole as u64).with_context(name)?;
        file.seek(SeekFrom::End(0)).with_context(name)?;
        let head = Head {
            self_test_seed: seed,
        };
        let mut records = Self {
            file,
            records: Vec::new(),
            done: BTreeSet::new(),
        };
        let mut lines = text[..whole].lines();
        match lines.next() {
            None => records.write(&head)?,
            Some(line) => {
                let found: Head = serde_json::from_str(line)
                    .with_context(|| format!("{} is no record of a self-test", name()))?;
                if found != head {
                    bail!(
                        "{} is of seed {}: name another directory, or give --seed {}",
                        name(),
                        found.self_test_seed,
                        found.self_test_seed
                    );
                }
            }
        }
        for line in lines {
            let record: Record = serde_json::from_str(line).with_context(name)?;
            records.done.insert(record.index);
            records.records.push(record);
        }
        Ok(records)
    }

    /// Whether a try has ended.
    pub(crate) fn has(&self, index: usize) -> bool {
        self.done.contains(&index)
    }

    /// Number of tries that have ended.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[Record] {
        &self.records
    }

    /// Adds a try that has ended.
    pub(crate) fn add(
        &mut self,
        index: usize,
        tried: &Try,
        result: &TryResult,
    ) -> anyhow::Result<()> {
        let record = Record {
            index,
            tried: tried.clone(),
            result: result.clone(),
        };
        self.write(&record)?;
        self.done.insert(index);
        self.records.push(record);
        Ok(())
    }

    /// One line, at once and on the device.
    fn write(&mut self, line: &impl Serialize) -> anyhow::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.file.write_all(&text)?;
        self.file.sync_data()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tries;
    use super::*;

    fn result() -> TryResult {
        let judged = Judged {
            threshold: 0.0,
            verdict: "slower".to_owned(),
            ratio: 0.97,
            low: 0.96,
            high: 0.98,
            noise_floor: Some(0.01),
            rounds: 40,
        };
        TryResult {
            judged: vec![judged],
            took_s: 10.5,
        }
    }

    #[test]
    fn a_record_goes_on_after_a_kill_in_the_middle_of_a_line() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("tries.jsonl");
        let tries = tries::all(1);
        let mut records = Records::open(&path, 1).expect("begun");
        for index in [3, 5] {
            records.add(index, &tries[index], &result()).expect("added");
        }
        drop(records);
        let mut file = OpenOptions::new().append(true).open(&path).expect("there");
        file.write_all(b"{\"index\":7,\"sub").expect("cut off");
        let mut records = Records::open(&path, 1).expect("goes on");
        assert_eq!(records.len(), 2);
        assert!(records.has(3) && records.has(5) && !records.has(7));
        records.add(7, &tries[7], &result()).expect("added");
        let again = Records::open(&path, 1).expect("whole");
        assert_eq!(again.len(), 3);
        assert_eq!(again.all()[2].tried, tries[7]);
        assert!(Records::open(&path, 2).is_err(), "another seed");
    }

    #[test]
    fn what_is_no_record_is_refused_and_left_as_it_is() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("tries.jsonl");
        std::fs::write(&path, "notes\nof mine\n").expect("written");
        assert!(Records::open(&path, 1).is_err());
        assert_eq!(std::fs::read(&path).expect("there"), b"notes\nof mine\n");
    }

    #[test]
    fn verdicts_are_read_from_a_report() {
        let report = br#"{"charts":[{"noise_floor":0.02,"rows":[{"comparisons":[{"versus":"one",
            "ratio":0.97,"interval":{"low":0.96,"high":0.98},"rounds":44,"verdict":"slower"}]}]}]}"#;
        let found = Judged::read(report, 0.01).expect("a verdict");
        assert!(found.differs());
        assert_eq!((found.rounds, found.noise_floor), (44, Some(0.02)));
        assert!(Judged::read(b"{}", 0.01).is_err());
    }
}
