//! Which chores of the repository are automated? `cargo xtask` lists them.

#![forbid(unsafe_code)]

mod arrows;
mod brokers;
mod checks;
mod clients;
mod cluster;
mod dist;
mod metadata;
mod packaging;
mod program;
mod roots;
mod summary;
mod vocabularies;
mod w3c;

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::Context;

use crate::summary::Summary;

const USAGE: &str = "\
cargo xtask COMMAND

  test [--quick]       arrows, formatting, lints and all tests (--quick: without lints)
  test --brokers       lints and tests of the features kafka and mqtt, with real brokers
  test --clients       clients of Python, Node and Java against a server; they are fetched
  test --cluster       W3C suites, LUBM, WatDiv, SSB, random queries and updates over clusters of processes
  test --vocabularies  vocabularies and files of tests beside another parser; they are fetched
  w3c                  run the W3C suites and make docs/w3c.md of what they record
  dist                 a static program with manual, completions, package of Debian and checksums,
                       in target/dist (--no-archive: the program, completions and manual alone)
  packaging            whether the files of packaging/ hold, as `test` checks it
  arrows               which crate may depend on which, and where unsafe code may be
  bench-peers [ARGS]   measure beside other engines: the program of that name in jindou-bench
                       (`bench-peers operators`: operator by operator;
                       `bench-peers graphs`: queries of a named graph)
";

fn main() -> anyhow::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let passed = match arguments.as_slice() {
        ["test"] => checks::run(root(), true)?,
        ["test", "--quick"] => checks::run(root(), false)?,
        ["test", "--brokers"] => brokers::run(root())?,
        ["test", "--clients"] => clients::run(root())?,
        ["test", "--cluster"] => cluster::run(root())?,
        ["test", "--vocabularies"] => vocabularies::run(root())?,
        ["dist"] => dist::run(root(), true)?,
        ["dist", "--no-archive"] => dist::run(root(), false)?,
        ["w3c"] => w3c::renew(root())?,
        ["packaging"] => packaging::check(root(), &mut Summary::default())?,
        ["arrows"] => checks::arrows(root())?,
        ["bench-peers", rest @ ..] => bench_peers(rest)?,
        [] | ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            true
        }
        other => {
            eprint!("no such command: {}\n\n{USAGE}", other.join(" "));
            return Ok(ExitCode::from(2));
        }
    };
    Ok(if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn bench_peers(arguments: &[&str]) -> anyhow::Result<bool> {
    let program = [
        "run",
        "--release",
        "-p",
        "jindou-bench",
        "--bin",
        "bench-peers",
        "--",
    ];
    let status = cargo(root())
        .args(program)
        .args(arguments)
        .status()
        .context("cannot start cargo")?;
    Ok(status.success())
}

/// The workspace's folder, two above this package.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("this package is at crates/xtask of the workspace")
}

/// The cargo that started this program, to be run in `root`.
fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}
