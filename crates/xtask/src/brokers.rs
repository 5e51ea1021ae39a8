//! Do sources and sinks hold what they promise, with real brokers? Apart from the other checks: the
//! client of Kafka takes minutes to build, and the brokers have to be fetched.

use std::path::Path;

use anyhow::Context;

use crate::cargo;
use crate::checks::{install, print_summary, run_tests};
use crate::program;
use crate::summary::Summary;

/// All that is built, in one selection, so that nothing is built twice.
const SELECTION: [&str; 6] = [
    "-p",
    "jindou",
    "-p",
    "jindou-brokers",
    "--features",
    "jindou/kafka,jindou/mqtt,jindou-brokers/kafka,jindou-brokers/mqtt",
];

/// Lints, builds and tests with the features of brokers; returns whether all held.
pub(crate) fn run(root: &Path) -> anyhow::Result<bool> {
    for (program, package) in [
        ("mosquitto", "mosquitto"),
        ("java", "default-jre-headless"),
        ("mvn", "maven"),
    ] {
        install(program, package);
    }
    let mut broken = Vec::new();
    let mut summary = Summary::default();
    let mut lints = cargo(root);
    lints
        .arg("clippy")
        .args(SELECTION)
        .args(["--all-targets", "--", "-D", "warnings"]);
    if !lints.status().context("cannot start cargo")?.success() {
        broken.push("clippy");
    }
    let program = program::build(root, &SELECTION)?;
    let mut tests = cargo(root);
    tests
        .arg("test")
        .args(SELECTION)
        .args(["--test", "brokers", "--", "--show-output"]);
    tests.env("JINDOU_BIN", program);
    if !run_tests(&mut tests, &mut summary)? {
        broken.push("test");
    }
    print_summary(&summary, &broken);
    Ok(broken.is_empty())
}
