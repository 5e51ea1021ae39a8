//! Do the files that people publish load as another parser loads them? Vocabularies and the files of
//! tests are fetched, and each is loaded by the command of this tree and by pyoxigraph. Apart from the
//! other checks: they have to be fetched.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Context;

use crate::checks::{install, print_summary};
use crate::clients::{at, copy, outcome, run_all};
use crate::program;
use crate::summary::Summary;

/// Where the lists of packages and the script are.
const SCRIPTS: &str = "tests/vocabularies";
/// The longest that all files may take.
const MOST_TIME: Duration = Duration::from_secs(3600);
/// What fetches the files and pyoxigraph, run one after the other.
const FETCH: &[&[&str]] = &[
    &["python3", "-m", "venv", "venv"],
    &[
        "venv/bin/pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--requirement",
        "requirements.txt",
    ],
    // The tests of rdflib and pySHACL are in what their packages are built from.
    &[
        "venv/bin/pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-binary",
        "rdflib,pyshacl",
        "--dest",
        "files/downloads",
        "--requirement",
        "sources.txt",
    ],
    &[
        "npm",
        "install",
        "--no-audit",
        "--no-fund",
        "--no-package-lock",
        "--ignore-scripts",
        "--loglevel=error",
    ],
    &[
        "sh",
        "-c",
        "mkdir -p files && rm -rf files/node_modules && mv node_modules files/",
    ],
];

/// Builds the command and loads all files by it; returns whether each loads as it should.
pub(crate) fn run(root: &Path) -> anyhow::Result<bool> {
    let program = program::build(root, &["-p", "jindou"])?;
    let target = program.ancestors().nth(2);
    let folder = target
        .context("cargo built into no folder")?
        .join("vocabularies");
    let mut summary = Summary::default();
    copy(&root.join(SCRIPTS), &folder)?;
    for (program, package) in [("python3", "python3-venv"), ("npm", "npm")] {
        install(program, package);
    }
    if let Err(reason) = run_all(FETCH, &folder) {
        let what = format!("the vocabularies ({reason})");
        println!("SKIPPED: {what}");
        summary.skip(&what);
        print_summary(&summary, &[]);
        return Ok(summary.held());
    }
    let mut command = Command::new(at("venv/bin/python", &folder));
    command.arg("compare.py").arg(&program);
    command.args(["files", "differences.tsv"]);
    let (ok, mut failed) = outcome(command.current_dir(&folder), MOST_TIME)?;
    if ok == 0 && failed.is_empty() {
        failed.push("it compared nothing".to_owned());
    }
    summary.passed += ok;
    summary.failed += failed.len() as u64;
    summary.failures.extend(failed);
    print_summary(&summary, &[]);
    Ok(summary.held())
}
