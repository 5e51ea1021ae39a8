//! Do clusters of real processes answer as one database does? Apart from the other checks: it takes minutes. A short
//! sample is among these.

use std::ffi::OsStr;
use std::path::Path;

use crate::cargo;
use crate::checks::{print_summary, run_some_tests};
use crate::program;
use crate::summary::Summary;

/// Numbers of nodes in one process, each of which the suites with data for each test meet both ways, and with parts of
/// the store.
const MEMBERS: [&str; 8] = [
    "2",
    "3",
    "5",
    "2,tcp",
    "3,tcp",
    "5,tcp",
    "3,parts",
    "5,tcp,parts",
];

/// Numbers of server processes that streams go on at, while the one that leads is killed, both ways.
const SERVERS: [&str; 6] = ["2", "3", "5", "2,tcp", "3,tcp", "5,tcp"];

/// Tests by package, program and file.
const ON_SERVERS: [&str; 3] = ["jindou-conformance", "oracle", "processes::"];
const W3C: [&str; 3] = ["jindou-conformance", "published", "sparql_w3c::"];
const STREAMS: [&str; 3] = ["jindou", "cluster", "streams::"];

/// Runs the W3C suites over nodes of a cluster in one process, as each of their tests has data of its own, and all else
/// over server processes; returns whether all held.
pub(crate) fn run(root: &Path) -> anyhow::Result<bool> {
    let mut summary = Summary::default();
    let mut broken = Vec::new();
    let program = program::build(root, &["-p", "jindou"])?;
    let mut test =
        |[package, name, filter]: [&str; 3], settings: &[&str], variable: &str, value: &OsStr| {
            let mut command = cargo(root);
            command.args(["test", "-p", package, "--test", name, "--"]);
            command.args([filter, "--show-output"]).args(settings);
            command.env(variable, value);
            run_some_tests(&mut command, &[filter], &mut summary)
        };
    // Each of these tests has servers of its own, which are to have the cores.
    let alone = ["--test-threads", "1"];
    if !test(ON_SERVERS, &alone, "JINDOU_BIN", program.as_os_str())? {
        broken.push("suites over server processes");
    }
    for members in MEMBERS {
        println!("== W3C suites over {members} members");
        if !test(W3C, &[], "JINDOU_MEMBERS", OsStr::new(members))? {
            broken.push("W3C suites over members");
        }
    }
    for members in SERVERS {
        println!("== streams of LSBench at {members} servers");
        if !test(STREAMS, &[], "JINDOU_MEMBERS", OsStr::new(members))? {
            broken.push("streams of LSBench at servers");
        }
    }
    print_summary(&summary, &broken);
    Ok(broken.is_empty() && summary.held())
}
