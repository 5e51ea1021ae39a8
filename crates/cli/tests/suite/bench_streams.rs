//! Do the benchmarks of streams measure what their options say?

use std::path::Path;
use std::process::{Command, Output};

fn run(folder: &Path, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_jindou"))
        .args(["bench"])
        .args(line.split_whitespace())
        .current_dir(folder)
        .output()
        .expect("the command is there")
}

fn json(folder: &Path, line: &str) -> serde_json::Value {
    let output = run(folder, &format!("{line} --json -"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {errors}");
    serde_json::from_slice(&output.stdout).expect("it is JSON")
}

#[test]
fn a_sweep_writes_its_figures_and_plots() {
    let folder = tempfile::tempdir().unwrap();
    let line = "lsbench --users 100 --seconds 2 --sweep --rates 5000,10000 --only L5 --plots plots";
    let report = json(folder.path(), line);
    assert_eq!(report["points"][1]["rate"], 10_000);
    let query = &report["points"][1]["queries"][0];
    assert_eq!(query["name"], "L5");
    let distribution = query["evaluation"]["cdf"].as_array().unwrap();
    assert!(distribution.len() > 50, "{query}");
    for name in ["evaluation-by-rate", "result-by-rate", "cdf", "cdf-L5"] {
        let path = folder.path().join(format!("plots/{name}.svg"));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.starts_with("<svg ") && text.ends_with("</svg>\n"),
            "{name}"
        );
    }
}

#[test]
fn parts_of_costs_are_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let line = "lsbench --users 100 --seconds 1 --rate 0.05 --costs --part streams,threads";
    let report = json(folder.path(), line);
    let lengths = ["settings", "streams", "staleness", "snapshots", "threads"]
        .map(|part| report[part].as_array().unwrap().len());
    assert_eq!(lengths, [0, 5, 0, 0, 2]);
}

#[test]
fn a_rate_of_tuples_is_pushed_by_the_clock() {
    let folder = tempfile::tempdir().unwrap();
    let line = "ingest --only timing --rate 5000 --seconds 1 --location .";
    let report = json(folder.path(), line);
    assert_eq!(report["rows"][0]["delays"]["count"], 50);
}

#[test]
fn what_does_not_go_together_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for line in [
        "lsbench --sweep --mix",
        "lsbench --served --one-shot",
        "lsbench --plots plots",
        "lsbench --part streams",
        "lsbench --sweep --rates 0",
        "lsbench --served --readers 2000",
        "ingest --rate 10 --stream-seconds 5",
    ] {
        let output = run(folder.path(), line);
        assert_eq!(output.status.code(), Some(2), "{line}: {output:?}");
    }
}
