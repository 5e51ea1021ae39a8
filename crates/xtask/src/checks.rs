//! What has to hold before a change lands? Arrows, formatting, lints, tests and the table of the
//! W3C suites, one by one.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::Context;

use crate::summary::Summary;
use crate::{arrows, cargo, metadata, packaging, roots, w3c};

/// Runs every check, each whether or not those before it held, and prints the sum last.
///
/// Returns whether all held.
pub(crate) fn run(root: &Path, with_lints: bool) -> anyhow::Result<bool> {
    let mut summary = Summary::default();
    let mut broken = Vec::new();
    let mut step = |name: &'static str, check: &mut dyn FnMut() -> anyhow::Result<bool>| {
        println!("== {name}");
        let start = Instant::now();
        let held = check()?;
        let verdict = if held { "ok" } else { "FAILED" };
        println!(
            "== {name}: {verdict}, {:.1} s",
            start.elapsed().as_secs_f64()
        );
        if !held {
            broken.push(name);
        }
        anyhow::Ok(())
    };

    step("arrows", &mut || arrows(root))?;
    step("fmt", &mut || {
        tool(root, &mut summary, "fmt", &["--all", "--check"])
    })?;
    if with_lints {
        let arguments = ["--workspace", "--all-targets", "--", "-D", "warnings"];
        step("clippy", &mut || {
            tool(root, &mut summary, "clippy", &arguments)
        })?;
    }
    w3c::forget(root)?;
    install_strace();
    install_etcd();
    step("test", &mut || tests(root, &mut summary))?;
    step("packaging", &mut || packaging::check(root, &mut summary))?;
    step("docs/w3c.md", &mut || w3c::check(root, &mut summary))?;

    print_summary(&summary, &broken);
    Ok(broken.is_empty())
}

/// Checks the arrows between crates and where unsafe code may be; prints what is wrong.
pub(crate) fn arrows(root: &Path) -> anyhow::Result<bool> {
    let packages = metadata::read(root)?;
    let mut wrong = arrows::violations(&packages);
    wrong.extend(roots::violations(&packages)?);
    for line in &wrong {
        println!("{line}");
    }
    if wrong.is_empty() {
        println!("{} crates, all arrows downwards", packages.len());
    }
    Ok(wrong.is_empty())
}

/// Runs a cargo command that is installed apart from cargo; says so where it is not.
fn tool(
    root: &Path,
    summary: &mut Summary,
    command: &str,
    arguments: &[&str],
) -> anyhow::Result<bool> {
    let installed = cargo(root)
        .args([command, "--version"])
        .output()
        .context("cannot start cargo")?;
    if !installed.status.success() {
        let what = format!("cargo {command} (it is not installed)");
        println!("SKIPPED: {what}");
        summary.skip(&what);
        return Ok(true);
    }
    succeeds(cargo(root).arg(command).args(arguments))
}

/// Installs strace where it is missing and can be had: with it the states after a loss of power are
/// made of the system calls. Without it that test says `SKIPPED`.
fn install_strace() {
    install("strace", "strace");
}

/// Installs etcd where it is missing and can be had. Without it the tests of its client say `SKIPPED`.
fn install_etcd() {
    install("etcd", "etcd-server");
}

/// Installs a package of Debian where its program is missing and the package can be had.
pub(crate) fn install(program: &str, package: &str) {
    let is_there = |program: &str| {
        let asked = Command::new(program).arg("--version").output();
        asked.is_ok()
    };
    if is_there(program) || !is_there("apt-get") {
        return;
    }
    for arguments in [&["update", "-qq"][..], &["install", "-y", "-qq", package]] {
        // Whatever is wrong, the test says that it is skipped.
        let _ = Command::new("apt-get").args(arguments).status();
    }
}

fn succeeds(command: &mut Command) -> anyhow::Result<bool> {
    Ok(command.status().context("cannot start cargo")?.success())
}

/// Runs all tests and doc tests.
fn tests(root: &Path, summary: &mut Summary) -> anyhow::Result<bool> {
    let mut command = cargo(root);
    command.args([
        "test",
        "--workspace",
        "--no-fail-fast",
        "--",
        "--show-output",
    ]);
    let held = run_tests(&mut command, summary)?;
    Ok(on_nodes(root, summary)? && held)
}

/// The suites with recorded answers, over three nodes to which all rows go whose keys these have: as they
/// are, and as messages where each node has its part of the terms; and over three that meet by the network, where the store is only read.
fn on_nodes(root: &Path, summary: &mut Summary) -> anyhow::Result<bool> {
    let read = ["sparql_w3c::", "reference_data::"];
    let all = ["sparql_w3c::", "reference_data::", "update_eval::"];
    let logical = ("JINDOU_NODES", "3");
    let mut ways = vec![
        (&all[..], vec![logical, ("JINDOU_FORKS", "1")]),
        (
            &all,
            vec![
                logical,
                ("JINDOU_FORKS", "1"),
                ("JINDOU_FORK_MESSAGES", "1"),
                ("JINDOU_TERMS", "dealt"),
            ],
        ),
    ];
    if cfg!(target_os = "linux") {
        ways.push((&read, vec![("JINDOU_MEMBERS", "3")]));
        ways.push((
            &read,
            vec![("JINDOU_MEMBERS", "3,tcp,parts"), ("JINDOU_FORKS", "1")],
        ));
    }
    let mut held = true;
    for (tests, settings) in ways {
        let mut command = cargo(root);
        command.args(["test", "--workspace", "--test", "published", "--"]);
        command.args(tests).arg("--show-output").envs(settings);
        held &= run_some_tests(&mut command, tests, summary)?;
    }
    Ok(held)
}

/// Runs a command that runs tests. Of what passing tests print skips are told; what failing ones print is
/// shown, and its beginning once more at the end of all.
pub(crate) fn run_tests(command: &mut Command, summary: &mut Summary) -> anyhow::Result<bool> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start cargo")?;
    let pipe = child.stdout.take().context("cargo's output is not piped")?;
    let mut out = std::io::stdout().lock();
    for line in BufReader::new(pipe).split(b'\n') {
        let line = line.context("cannot read cargo's output")?;
        let line = String::from_utf8_lossy(&line);
        if summary.line(&line) {
            writeln!(out, "{line}")?;
        }
    }
    let held = child.wait().context("cannot wait for cargo")?.success();
    if !held && summary.failed == 0 {
        // It did not build, or a test program ended before it could report.
        summary.failed = 1;
    }
    Ok(held)
}

/// As [`run_tests`] of a program with these filters: it fails where they find fewer tests than they are, as a filter
/// that finds none is one of a name that was changed.
pub(crate) fn run_some_tests(
    command: &mut Command,
    filters: &[&str],
    summary: &mut Summary,
) -> anyhow::Result<bool> {
    let before = summary.passed + summary.failed;
    let held = run_tests(command, summary)?;
    let ran = summary.passed + summary.failed - before;
    let are_found = ran >= filters.len() as u64;
    if !are_found {
        println!("{ran} tests of {}", filters.join(" and "));
    }
    Ok(held && are_found)
}

pub(crate) fn print_summary(summary: &Summary, broken: &[&str]) {
    println!();
    for line in &summary.output {
        println!("{line}");
    }
    for what in &summary.skipped {
        println!("SKIPPED: {what}");
    }
    if summary.ignored > 0 {
        println!("ignored: {}", summary.ignored);
    }
    for test in &summary.failures {
        println!("FAILED: test {test}");
    }
    for step in broken {
        println!("FAILED: {step}");
    }
    println!("{} passed, {} failed", summary.passed, summary.failed);
}
