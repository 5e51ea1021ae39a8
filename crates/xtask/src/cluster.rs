//! Do clusters of real processes answer as one database does? Apart from the other checks: it takes minutes. A short
//! sample is among these.

use std::path::Path;

use crate::cargo;
use crate::checks::{print_summary, run_tests};
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

/// Runs the W3C suites over nodes of a cluster in one process, as each of their tests has data of its own, and all else
/// over server processes; returns whether all held.
pub(crate) fn run(root: &Path) -> anyhow::Result<bool> {
    let mut summary = Summary::default();
    let mut broken = Vec::new();
    let program = program::build(root, &["-p", "jindou"])?;
    let test = |name: &str, settings: &[&str]| {
        let mut command = cargo(root);
        command.args(["test", "-p", "jindou-conformance", "--no-fail-fast"]);
        command.args(["--test", name, "--", "--show-output"]);
        command.args(settings);
        command
    };
    // Each of these tests has servers of its own, which are to have the cores.
    let mut servers = test("processes", &["--test-threads", "1"]);
    if !run_tests(servers.env("JINDOU_BIN", program), &mut summary)? {
        broken.push("suites over server processes");
    }
    for members in MEMBERS {
        println!("== W3C suites over {members} members");
        let mut suites = test("sparql_w3c", &[]);
        if !run_tests(suites.env("JINDOU_MEMBERS", members), &mut summary)? {
            broken.push("W3C suites over members");
        }
    }
    for members in SERVERS {
        println!("== streams of LSBench at {members} servers");
        let mut command = cargo(root);
        command.args(["test", "-p", "jindou", "--test", "cluster", "--"]);
        command.args(["streams::", "--show-output"]);
        if !run_tests(command.env("JINDOU_MEMBERS", members), &mut summary)? {
            broken.push("streams of LSBench at servers");
        }
    }
    print_summary(&summary, &broken);
    Ok(broken.is_empty() && summary.held())
}
