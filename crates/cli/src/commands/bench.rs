//! `jindou bench`: how fast is it on this machine?

use std::io::IsTerminal;
use std::path::Path;

use anyhow::{Context, bail};
use jindou_bench::child::{self, ChildProgram};
use jindou_bench::lubm::{Options, measure};

use crate::args::{BenchArguments, BenchChildArguments, BenchCommand};
use crate::output;

/// # Errors
/// What keeps the figures from being taken; a wrong answer among them.
pub(crate) fn run(command: BenchCommand) -> anyhow::Result<()> {
    let BenchCommand::Lubm(arguments) = command;
    let mut options = Options::new(arguments.universities.get());
    if let Some(threads) = arguments.threads {
        options.threads = threads.get();
    }
    options.seed = arguments.seed;
    options.folder = arguments.data.clone();
    options.runs = arguments.runs.get();
    options.http = arguments.http;
    options.light = arguments.light;
    options.child = Some(ChildProgram::this(&["bench-child"])?);
    options.location = arguments.location.clone();
    print(&options, &arguments)
}

fn print(options: &Options, arguments: &BenchArguments) -> anyhow::Result<()> {
    let shown = std::io::stderr().is_terminal();
    let report = measure(options, |step| {
        if shown {
            eprintln!("{step} ...");
        }
    })?;
    let json = || serde_json::to_string_pretty(&report).context("the report is no JSON");
    match arguments.json.as_deref() {
        Some(path) if path == Path::new("-") => output::print(&format!("{}\n", json()?)),
        Some(path) => {
            std::fs::write(path, json()? + "\n")
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
