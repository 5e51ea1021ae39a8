//! Is the report of a small measurement complete and right?

use std::time::Duration;

use jindou_bench::Report;
use jindou_bench::child::ChildProgram;
use jindou_bench::lubm::{Options, measure};

/// Rows of the seven queries on one university with seed 0, as oxigraph counts them, too.
const ROWS: [(&str, u64); 7] = [
    ("q1", 0),
    ("q2", 828),
    ("q3", 0),
    ("q4", 10),
    ("q5", 10),
    ("q6", 125),
    ("q7", 30),
];

fn quick(folder: &std::path::Path) -> Options {
    Options {
        folder: folder.to_owned(),
        threads: 2,
        runs: 1,
        light: Duration::from_millis(50),
        ..Options::new(1)
    }
}

#[test]
fn a_report_has_the_right_rows_and_survives_json() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        http: true,
        ..quick(folder.path())
    };
    let mut steps = Vec::new();
    let report = measure(&options, |step| steps.push(step.to_owned())).unwrap();

    let rows: Vec<_> = report
        .queries
        .iter()
        .map(|q| (q.name.as_str(), q.rows))
        .collect();
    assert_eq!(rows, ROWS);
    assert_eq!(report.load.triples, 100_543);
    assert_eq!(report.load.statements, 103_074);
    assert!(
        report
            .queries
            .iter()
            .all(|q| q.ids.runs == 1 && q.http.is_some())
    );
    assert!(report.light.queries > 0 && !report.light.classes.is_empty());
    assert!(report.http_light.iter().all(|load| load.queries > 0));
    assert_eq!(report.http_light.len(), 3);
    assert!(report.load.memory.is_none() && report.stored.is_none());
    assert!(steps.iter().any(|step| step == "q7"));

    let json = serde_json::to_string(&report).unwrap();
    let again: Report = serde_json::from_str(&json).unwrap();
    let again: Vec<_> = again
        .queries
        .iter()
        .map(|q| (q.name.as_str(), q.rows))
        .collect();
    assert_eq!(again, ROWS);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["queries"][6]["http"]["median_ms"].is_f64());
    assert!(json["machine"]["cores"].is_u64());

    let text = report.to_string();
    for expected in [
        "LUBM, 1 universities",
        "q7",
        "TSV over HTTP",
        "mixed light load",
        "cores",
    ] {
        assert!(text.contains(expected), "{expected} is not in:\n{text}");
    }
}

#[test]
#[cfg(feature = "peers")]
fn memory_and_a_stored_database_are_measured_in_fresh_processes() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        child: Some(ChildProgram {
            program: env!("CARGO_BIN_EXE_bench-peers").into(),
            arguments: vec!["bench-child".into()],
        }),
        location: Some(folder.path().join("store")),
        ..quick(folder.path())
    };
    let report = measure(&options, |_| ()).unwrap();
    assert!(report.load.memory.unwrap().resident_bytes > 0);
    assert!(report.load.bytes_per_triple() > 1.0);
    let stored = report.stored.unwrap();
    assert!(stored.create_seconds.is_some() && stored.file_bytes > 0);
    // The second time, the store is there.
    let report = measure(&options, |_| ()).unwrap();
    assert!(report.stored.unwrap().create_seconds.is_none());
}

#[test]
#[cfg(feature = "peers")]
fn both_engines_agree_on_every_row_count() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("figures.json");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_bench-peers"))
        .args(["--universities", "1", "--quick", "--json"])
        .arg(&json)
        .arg("--data")
        .arg(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let figures = std::fs::read_to_string(json).unwrap();
    let figures: serde_json::Value = serde_json::from_str(&figures).unwrap();
    let queries = figures["queries"].as_array().unwrap();
    let rows: Vec<_> = queries
        .iter()
        .map(|q| (q["name"].as_str().unwrap(), q["rows"].as_u64().unwrap()))
        .collect();
    assert_eq!(rows, ROWS);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("oxigraph / jindou") && text.contains("q7"),
        "{text}"
    );
}

#[test]
fn a_failed_child_says_why() {
    let child = ChildProgram {
        program: "/nonexistent/program".into(),
        arguments: Vec::new(),
    };
    let outcome: Result<u64, _> = child.run_with(&["load".into()]);
    let text = outcome.unwrap_err().to_string();
    assert!(text.contains("/nonexistent/program"), "{text}");
}
