//! Matrices: a group of a suite that stands for many, one for each of several datasets, with an arm
//! that stands for one for each value of a setting. Written out before anything else is made of the
//! suite, so that nothing else has to know.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Chart, ChartKind, Published, Suite, SuiteArm, SuiteError, SuiteGroup, Versus};

/// Over what a group is repeated.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Matrix {
    /// Datasets: a group each, called `GROUP-DATASET`, with arms called `ARM-DATASET`.
    pub datasets: Vec<String>,
    /// The arm that is repeated in every such group.
    pub arm: String,
    /// Its setting that differs.
    pub setting: String,
    /// Values of the setting: an arm each, called `ARM-VALUE-DATASET`.
    pub values: Vec<toml::Value>,
    /// Title of the chart of a group; `{dataset}` is its dataset.
    pub title: String,
    /// What was published.
    #[serde(default)]
    pub published: Option<PublishedMatrix>,
}

/// A published table.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedMatrix {
    /// Machine it is from.
    pub machine: String,
    /// Time of the baseline divided by time of the arm: a row for each value, in it a ratio for each
    /// dataset.
    pub ratios: Vec<Vec<f64>>,
}

/// Writes out all matrices of a suite, and adds a chart for each group that comes of it.
pub(super) fn write_out(suite: &mut Suite) -> Result<(), SuiteError> {
    let mut groups = Vec::new();
    for mut group in std::mem::take(&mut suite.group) {
        let Some(matrix) = group.matrix.take() else {
            groups.push(group);
            continue;
        };
        matrix.check(&group).map_err(|problem| SuiteError {
            suite: suite.name.clone(),
            problem: format!("group `{}`: matrix: {problem}", group.name),
            hint: String::new(),
        })?;
        for (column, dataset) in matrix.datasets.iter().enumerate() {
            let group = matrix.group(&group, dataset);
            suite.chart.push(matrix.chart(&group, dataset, column));
            groups.push(group);
        }
    }
    suite.group = groups;
    Ok(())
}

impl Matrix {
    fn check(&self, group: &SuiteGroup) -> Result<(), String> {
        if self.datasets.is_empty() || self.values.is_empty() {
            return Err("it has no cells".to_owned());
        }
        if !group.arm.iter().any(|arm| arm.name == self.arm) {
            return Err(format!("there is no arm `{}`", self.arm));
        }
        let Some(published) = &self.published else {
            return Ok(());
        };
        let is_whole = published.ratios.len() == self.values.len()
            && published
                .ratios
                .iter()
                .all(|row| row.len() == self.datasets.len());
        match is_whole {
            true => Ok(()),
            false => Err("the published table is of another shape".to_owned()),
        }
    }

    fn group(&self, group: &SuiteGroup, dataset: &str) -> SuiteGroup {
        let mut arms = Vec::new();
        for arm in &group.arm {
            if arm.name == self.arm {
                let values = self.values.iter();
                arms.extend(values.map(|value| self.varied(arm, value, dataset)));
            } else {
                let mut arm = arm.clone();
                arm.name = format!("{}-{dataset}", arm.name);
                arms.push(arm);
            }
        }
        SuiteGroup {
            name: format!("{}-{dataset}", group.name),
            dataset: dataset.to_owned(),
            baseline: format!("{}-{dataset}", group.baseline),
            arm: arms,
            ..group.clone()
        }
    }

    fn varied(&self, arm: &SuiteArm, value: &toml::Value, dataset: &str) -> SuiteArm {
        let mut settings: BTreeMap<String, toml::Value> = arm.settings.clone();
        settings.insert(self.setting.clone(), value.clone());
        let value = plain(value);
        SuiteArm {
            name: format!("{}-{value}-{dataset}", arm.name),
            label: format!("{}, {} {value}", arm.label, self.setting.replace('_', " ")),
            settings,
            ..arm.clone()
        }
    }

    fn chart(&self, group: &SuiteGroup, dataset: &str, column: usize) -> Chart {
        let baseline = group.arm.iter().find(|arm| arm.name == group.baseline);
        let published = self.published.iter().flat_map(|published| {
            let rows = self.values.iter().zip(&published.ratios);
            rows.map(|(value, row)| Published {
                arm: format!("{}-{}-{dataset}", self.arm, plain(value)),
                ratio: row[column],
                machine: published.machine.clone(),
            })
        });
        Chart {
            title: self.title.replace("{dataset}", dataset),
            shows: ChartKind::Time,
            answers: String::new(),
            arms: group.arm.iter().map(|arm| arm.name.clone()).collect(),
            versus: vec![Versus {
                arm: group.baseline.clone(),
                label: baseline.map_or_else(String::new, |arm| arm.label.clone()),
            }],
            published: published.collect(),
        }
    }
}

/// A value as text, as it stands in names.
fn plain(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        name = "m"
        about = "a"
        question = "q"
        [[dataset]]
        name = "1k"
        count = 5
        size = { fixed = 1000 }
        [[dataset]]
        name = "2k"
        count = 5
        size = { fixed = 2000 }
        [[group]]
        name = "read"
        dataset = "1k"
        workload = { kind = "read", order = "random" }
        cache = "warm"
        durability = "none"
        baseline = "out"
        rounds = 2
        slices = 2
        [[group.arm]]
        name = "out"
        label = "outside"
        engine = "files"
        [[group.arm]]
        name = "in"
        label = "inside"
        engine = "sqlite"
        settings = { api = "blob" }
        [group.matrix]
        datasets = ["1k", "2k"]
        arm = "in"
        setting = "page_size"
        values = [1024, 2048, 4096]
        title = "Read {dataset}"
        published = { machine = "old", ratios = [[1.1, 1.2], [2.1, 2.2], [3.1, 3.2]] }
    "#;

    #[test]
    fn a_matrix_becomes_groups_arms_and_charts() {
        let suite = Suite::parse(TEXT, "m").expect("valid");
        let names = |index: usize| -> Vec<&str> {
            let arms = suite.group[index].arm.iter();
            arms.map(|arm| arm.name.as_str()).collect()
        };
        assert_eq!(
            names(0),
            ["out-1k", "in-1024-1k", "in-2048-1k", "in-4096-1k"]
        );
        assert_eq!(suite.group[1].name, "read-2k");
        assert_eq!(suite.group[1].dataset, "2k");
        assert_eq!(suite.group[1].baseline, "out-2k");
        let arm = &suite.group[1].arm[2];
        assert_eq!(arm.label, "inside, page size 2048");
        assert_eq!(arm.settings["page_size"], toml::Value::Integer(2048));
        assert_eq!(arm.settings["api"], toml::Value::String("blob".to_owned()));
        let chart = &suite.chart[1];
        assert_eq!(chart.title, "Read 2k");
        assert_eq!(chart.published[2].arm, "in-4096-2k");
        assert_eq!(chart.published[2].ratio, 3.2);
    }

    #[test]
    fn a_matrix_of_the_wrong_shape_is_refused() {
        for (good, bad) in [
            ("[3.1, 3.2]]", "[3.1]]"),
            ("arm = \"in\"", "arm = \"im\""),
            ("values = [1024, 2048, 4096]", "values = []"),
        ] {
            let error = Suite::parse(&TEXT.replace(good, bad), "m").expect_err(bad);
            assert!(error.problem.contains("matrix"), "{error}");
        }
    }
}
