//! `jindou bench`: how fast is it on this machine?

use std::fmt::Display;
use std::io::IsTerminal;
use std::path::Path;

use anyhow::{Context, bail};
use jindou_bench::child::{self, ChildProgram};
use jindou_bench::lubm::{Options, measure};
use jindou_bench::operators::{self, Jindou};
use jindou_bench::updates;
use serde_json::to_string_pretty;

use crate::args::{
    BenchArguments, BenchChildArguments, BenchCommand, OperatorArguments, UpdateBenchArguments,
};
use crate::output;

/// # Errors
/// What keeps the figures from being taken; a wrong answer among them.
pub(crate) fn run(command: BenchCommand) -> anyhow::Result<()> {
    match command {
        BenchCommand::Lubm(arguments) => lubm(arguments),
        BenchCommand::Operators(arguments) => operators(arguments),
        BenchCommand::Updates(arguments) => updates(arguments),
    }
}

fn lubm(arguments: BenchArguments) -> anyhow::Result<()> {
    let mut options = Options::new(arguments.universities.get());
    if let Some(threads) = arguments.threads {
        options.threads = threads.get();
    }
    options.seed = arguments.seed;
    options.folder = arguments.data;
    options.runs = arguments.runs.get();
    options.http = arguments.http;
    options.light = arguments.light;
    options.child = Some(ChildProgram::this(&["bench-child"])?);
    options.location = arguments.location;
    let report = measure(&options, note())?;
    let json = to_string_pretty(&report).context("the report is no JSON")?;
    print(&report, json, arguments.json.as_deref())
}

fn operators(arguments: OperatorArguments) -> anyhow::Result<()> {
    let options = operators::Options {
        universities: arguments.universities,
        folder: arguments.data,
        sets: arguments.sets,
        only: arguments.only,
        families: arguments.family,
        budget: arguments.budget,
        limit: arguments.limit,
        ..operators::Options::default()
    };
    let mut engine = Jindou::new(arguments.threads.map(usize::from));
    let report = operators::measure(&options, &mut [&mut engine], note())?;
    let json = to_string_pretty(&report).context("the report is no JSON")?;
    print(&report, json, arguments.json.as_deref())?;
    if !report.is_right() {
        bail!("some answers are wrong or missing: see the lines that begin with WRONG");
    }
    Ok(())
}

fn updates(arguments: UpdateBenchArguments) -> anyhow::Result<()> {
    let mut options = updates::Options::new(arguments.universities.get());
    options.triples = arguments.triples;
    options.clients = arguments.clients.get();
    options.duration = arguments.duration;
    options.folder = arguments.data;
    let report = updates::measure(&options, note())?;
    let json = to_string_pretty(&report).context("the report is no JSON")?;
    print(&report, json, arguments.json.as_deref())
}

/// Tells what is being done, where somebody looks.
fn note() -> impl FnMut(&str) {
    let shown = std::io::stderr().is_terminal();
    move |step| {
        if shown {
            eprintln!("{step} ...");
        }
    }
}

fn print(report: &impl Display, json: String, file: Option<&Path>) -> anyhow::Result<()> {
    match file {
        Some(path) if path == Path::new("-") => output::print(&(json + "\n")),
        Some(path) => {
            std::fs::write(path, json + "\n")
                .with_context(|| format!("{}: cannot write", path.display()))?;
            output::print(&report.to_string())
        }
        None => output::print(&report.to_string()),
    }
}

/// # Errors
/// What keeps the child from measuring.
pub(crate) fn child(arguments: &BenchChildArguments) -> anyhow::Result<()> {
    if !child::main(&arguments.arguments)? {
        bail!("bench-child is started by `jindou bench` only; use that");
    }
    Ok(())
}
