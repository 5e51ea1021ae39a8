//! Does the parser of updates pass the W3C SPARQL 1.1 syntax tests, and does it read the requests
//! of the evaluation tests?

use jindou_conformance::data::{read_tar_zstd, require};
use jindou_conformance::manifest::{self, BASE};
use jindou_conformance::record::{Counts, record};
use jindou_plan::{PlanError, parse_update};
use std::collections::BTreeMap;

/// The suites of updates; tests of syntax are in some suites of evaluation too.
const SUITES: &[&str] = &[
    "add",
    "basic-update",
    "clear",
    "copy",
    "delete",
    "delete-data",
    "delete-insert",
    "delete-where",
    "drop",
    "move",
    "syntax-update-1",
    "syntax-update-2",
    "update-silent",
];

type Files = BTreeMap<String, Vec<u8>>;

fn files() -> Option<Files> {
    let archive = require("W3C SPARQL suites", "w3c/sparql10-sparql11.tar.zst")?;
    Some(read_tar_zstd(&archive).expect("the archive unpacks"))
}

fn text<'a>(files: &'a Files, path: &str) -> &'a str {
    let bytes = files
        .get(path)
        .unwrap_or_else(|| panic!("{path} is in the archive"));
    std::str::from_utf8(bytes).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn the_update_syntax_suites_pass() {
    let Some(files) = files() else {
        return;
    };
    let mut failures = Vec::new();
    let (mut positive, mut negative) = (0, 0);
    for suite in SUITES {
        let path = format!("sparql/sparql11/{suite}/manifest.ttl");
        let tests = manifest::tests(&files, &path).expect("the manifest can be read");
        assert!(!tests.is_empty(), "{suite} has no tests");
        let mut counts = Counts::default();
        for test in tests
            .iter()
            .filter(|test| test.kind != "UpdateEvaluationTest")
        {
            let text = text(&files, &test.query);
            let base = format!("{BASE}{}", test.query);
            let parsed = parse_update(text, Some(&base), None);
            let failed_before = failures.len();
            match test.kind.as_str() {
                "PositiveUpdateSyntaxTest11" => {
                    positive += 1;
                    if let Err(error) = parsed {
                        failures.push(format!("{}: {error}\n{text}", test.name));
                    }
                }
                // Some are not marked as tests of updates.
                "NegativeUpdateSyntaxTest11" | "NegativeSyntaxTest11" => {
                    negative += 1;
                    match parsed {
                        Err(PlanError::Syntax { .. }) => {}
                        Err(other) => failures.push(format!(
                            "{}: refused for another reason: {other}\n{text}",
                            test.name
                        )),
                        Ok(_) => {
                            failures.push(format!("{}: accepted, but is wrong:\n{text}", test.name))
                        }
                    }
                }
                other => failures.push(format!("{}: of the unknown kind {other}", test.name)),
            }
            match failures.len() == failed_before {
                true => counts.passed += 1,
                false => counts.failed += 1,
            }
        }
        if counts != Counts::default() {
            let suite = format!("sparql11/{suite}");
            record("SPARQL 1.1 update syntax", &suite, &counts);
        }
    }
    println!("{positive} positive and {negative} negative tests of the syntax of updates");
    assert!(
        failures.is_empty(),
        "{} failed:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// No feature of the suites' requests is refused.
#[test]
fn the_requests_of_the_update_evaluation_suites_can_be_read() {
    let Some(files) = files() else {
        return;
    };
    let mut requests = 0;
    let mut failures = Vec::new();
    for suite in SUITES {
        let folder = format!("sparql/sparql11/{suite}/");
        // What the suite tests the syntax of is not evaluated.
        let tests = manifest::tests(&files, &format!("{folder}manifest.ttl"));
        let tests = tests.expect("the manifest can be read");
        let is_syntax = |path: &String| tests.iter().any(|test| test.query == *path);
        for path in files.keys() {
            if !path.starts_with(&folder) || !path.ends_with(".ru") || is_syntax(path) {
                continue;
            }
            requests += 1;
            let text = text(&files, path);
            if let Err(error) = parse_update(text, Some(&format!("{BASE}{path}")), None) {
                failures.push(format!("{path}: {error}\n{text}"));
            }
        }
    }
    assert!(requests > 80, "{requests} requests");
    assert!(
        failures.is_empty(),
        "{} of {requests} failed:\n{}",
        failures.len(),
        failures.join("\n")
    );
}
