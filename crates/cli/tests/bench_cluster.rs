//! Does the benchmark of clusters measure what it says, lose no update that was acknowledged, and leave nothing?
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn run(folder: &Path, arguments: &[&str], path: Option<&Path>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jindou"));
    command
        .args(["bench", "cluster"])
        .args(arguments)
        .current_dir(folder);
    if let Some(path) = path {
        command.env("PATH", path);
    }
    command.output().expect("the command is there")
}

fn has_etcd() -> bool {
    let is_there = Command::new("etcd").arg("--version").output().is_ok();
    if !is_there {
        println!("SKIPPED: there is no etcd; Debian's package etcd-server has it");
    }
    is_there
}

#[test]
fn every_figure_of_a_cluster_is_there_and_no_acknowledged_update_is_lost() {
    if !has_etcd() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let options = [
        "--rounds",
        "1",
        "--seconds",
        "0.3",
        "--clients",
        "4",
        "--runs",
        "3",
        "--json",
        "r.json",
    ];
    let output = run(folder.path(), &options, None);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        "3 nodes, one killed",
        "next update acknowledged",
        "light, geometric mean",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json = std::fs::read(folder.path().join("r.json")).unwrap();
    let report: Value = serde_json::from_slice(&json).unwrap();
    let is_positive = |figure: &Value| assert!(figure.as_f64().unwrap() > 0.0, "{report}");
    assert_eq!(report["throughput"].as_array().unwrap().len(), 3);
    for servers in report["throughput"].as_array().unwrap() {
        is_positive(&servers["queries_per_second"]);
        is_positive(&servers["updates_per_second"]);
    }
    for role in ["leader", "follower"] {
        let failures = &report["failures"][role];
        for figure in [
            "noticed_ms",
            "acknowledged_ms",
            "longest_query_ms",
            "in_sync_ms",
            "missed",
        ] {
            assert_eq!(failures[figure]["count"], 1, "{figure}: {report}");
            is_positive(&failures[figure]["max"]);
        }
    }
    let growth = &report["growth"];
    for figure in ["store_bytes", "in_sync_ms", "holds_ms", "drained_ms"] {
        is_positive(&growth[figure]);
    }
    for phase in ["quiet", "joining", "leaving"] {
        is_positive(&growth[phase]["query_p99_ms"]);
        is_positive(&growth[phase]["requests"]["queries"]);
    }
    for servers in report["ingest"].as_array().unwrap() {
        assert_eq!(servers["queries"].as_array().unwrap().len(), 7);
        assert_eq!(servers["queries"][5]["rows"], 125);
        is_positive(&servers["triples_per_second"]);
    }
    is_positive(&report["updates"]["acknowledged"]);
    let left = std::fs::read_dir(folder.path().join("target/bench-data")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["lubm-1-from0-seed0.nt"], "stores are removed");
}

#[test]
fn without_an_etcd_it_says_where_one_is() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &[], Some(folder.path()));
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("there is no etcd on the path") && said.contains("etcd-server"),
        "{said}"
    );
    let left = std::fs::read_dir(folder.path().join("target/bench-data")).unwrap();
    assert_eq!(left.count(), 0);
}
