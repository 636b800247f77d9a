//! The published JSON Schema tells the truth: what `json` and `json_of_several` write is valid by it, every field
//! they write is described in it, and it refuses what it should. Of JSON Schema it uses `type`, `const`, `enum`,
//! `properties`, `required`, `items`, `anyOf` and `$ref` alone, which are checked here by hand.

mod fixture;

use serde_json::{Value, json};

use sqlitmus_core::analysis::analyse;
use sqlitmus_report::{Analysed, FORMAT, json_of_several};

const SCHEMA: &str = include_str!("../schema/report-1.schema.json");

fn schema() -> Value {
    serde_json::from_str(SCHEMA).expect("JSON")
}

fn is_of_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        "null" => value.is_null(),
        other => panic!("the schema uses the type {other}"),
    }
}

/// What is wrong with a value, with where it is; empty if nothing. Fields that are not described are wrong too:
/// the schema allows them, so that fields can be added, but those of this version are all in it.
fn errors(root: &Value, schema: &Value, value: &Value, place: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (keyword, rule) in schema.as_object().expect("a schema is an object") {
        match keyword.as_str() {
            "$schema" | "$id" | "$defs" | "title" | "description" => {}
            "$ref" => {
                let pointer = rule.as_str().expect("a reference").trim_start_matches('#');
                found.extend(errors(
                    root,
                    root.pointer(pointer).expect("defined"),
                    value,
                    place,
                ));
            }
            "type" => {
                let names: Vec<&str> = match rule {
                    Value::String(name) => vec![name],
                    list => list
                        .as_array()
                        .expect("types")
                        .iter()
                        .filter_map(Value::as_str)
                        .collect(),
                };
                if !names.iter().any(|name| is_of_type(value, name)) {
                    found.push(format!("{place}: {value} is not of {names:?}"));
                }
            }
            "const" if value != rule => found.push(format!("{place}: {value} is not {rule}")),
            "enum" if !rule.as_array().expect("values").contains(value) => {
                found.push(format!("{place}: {value} is none of {rule}"));
            }
            "const" | "enum" => {}
            "anyOf" => {
                let tried: Vec<Vec<String>> = rule
                    .as_array()
                    .expect("schemas")
                    .iter()
                    .map(|schema| errors(root, schema, value, place))
                    .collect();
                if !tried.iter().any(Vec::is_empty) {
                    found.extend(tried.into_iter().min_by_key(Vec::len).unwrap_or_default());
                }
            }
            "required" => {
                for name in rule
                    .as_array()
                    .expect("names")
                    .iter()
                    .filter_map(Value::as_str)
                {
                    if value.is_object() && value.get(name).is_none() {
                        found.push(format!("{place}: {name} is missing"));
                    }
                }
            }
            "properties" => {
                for (name, field) in value.as_object().into_iter().flatten() {
                    match rule.get(name) {
                        Some(schema) => {
                            found.extend(errors(root, schema, field, &format!("{place}/{name}")))
                        }
                        None => found.push(format!("{place}: {name} is not described")),
                    }
                }
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    found.extend(errors(root, rule, item, &format!("{place}/{index}")));
                }
            }
            other => panic!("the schema uses {other}, which is not checked here"),
        }
    }
    found
}

#[test]
fn every_report_is_valid() {
    let schema = schema();
    assert_eq!(
        schema["$defs"]["report"]["properties"]["format"]["const"],
        FORMAT
    );
    let mut jobs = fixture::complete();
    for arm in &mut jobs.plan.groups[0].arms {
        arm.case.workload = sqlitmus_core::case::Workload::JobQueue {
            operations: 10,
            threads: 1,
            limit_ms: 0,
        };
    }
    let runs = [
        jobs,
        fixture::complete(),
        fixture::interrupted(),
        fixture::hostile(),
        fixture::rows(),
        fixture::hostile_rows(),
    ];
    let analyses: Vec<_> = runs.iter().map(analyse).collect();
    for (run, analysis) in runs.iter().zip(&analyses) {
        let report = serde_json::from_str(&sqlitmus_report::json(run, analysis)).expect("JSON");
        // By its own part of the schema, whose complaints say more than those of both.
        assert_eq!(
            errors(&schema, &schema["$defs"]["report"], &report, ""),
            [""; 0]
        );
        assert_eq!(errors(&schema, &schema, &report, ""), [""; 0]);
    }
    let pairs = runs.iter().zip(&analyses);
    let analysed: Vec<Analysed<'_>> = pairs
        .map(|(run, analysis)| Analysed { run, analysis })
        .collect();
    let several = serde_json::from_str(&json_of_several(&analysed)).expect("JSON");
    assert_eq!(errors(&schema, &schema, &several, ""), [""; 0]);
}

#[test]
fn what_is_wrong_is_refused() {
    let schema = schema();
    let run = fixture::complete();
    let report: Value =
        serde_json::from_str(&sqlitmus_report::json(&run, &analyse(&run))).expect("JSON");
    let spoil: [fn(&mut Value); 5] = [
        |report| report["format"] = json!(2),
        |report| report["arms"][0]["status"] = json!("fine"),
        |report| report["arms"][0]["operation_ns"] = json!("5"),
        |report| report["charts"][0]["rows"][1]["comparisons"][0]["interval"] = json!([1, 2]),
        |report| {
            report.as_object_mut().expect("an object").remove("plan");
        },
    ];
    for (index, spoil) in spoil.iter().enumerate() {
        let mut spoiled = report.clone();
        spoil(&mut spoiled);
        assert_ne!(errors(&schema, &schema, &spoiled, ""), [""; 0], "{index}");
    }
}
