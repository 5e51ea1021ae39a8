//! How does it compare with another engine on the same file, in the same run, on this machine?
//!
//! The other engine is oxigraph, in memory, embedded like ours. Each engine is loaded once in a
//! process of its own, for the time and memory of the load; then both are loaded here and run
//! each query by turns, A B A B, so that whatever else the machine does touches both.

#![forbid(unsafe_code)]

mod graphs;
mod operators;
mod peer;
mod sides;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};
use jindou_bench::child::{self, ChildProgram, ChildReport, Task};
use jindou_bench::data::{self, DataFile};
use jindou_bench::machine::Machine;
use jindou_bench::table::{Table, bytes, thousands};
use jindou_datagen::lubm::Lubm;

use sides::{Comparison, Runs};

#[global_allocator]
static ALLOCATOR: jindou_fabric::allocator::Allocator = jindou_fabric::allocator::Allocator;

/// The hidden first argument of a process that measures one load.
const CHILD: &str = "bench-child";

/// Measure beside oxigraph: loads, memory, and the seven queries of LUBM
#[derive(Debug, Parser)]
#[command(name = "bench-peers", version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// How many universities
    #[arg(long, value_name = "N", default_value_t = 40)]
    universities: u32,
    /// Fewer runs, and 2 universities unless told otherwise
    #[arg(long)]
    quick: bool,
    /// Threads for loads and for the parallel runs of ours [default: all]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Folder of generated data
    #[arg(long, value_name = "DIR", default_value = data::DEFAULT_FOLDER)]
    data: PathBuf,
    /// Write the figures as JSON to this file, too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Operators(operators::OperatorArguments),
    Graphs(graphs::GraphArguments),
}

fn main() -> ExitCode {
    let outcome = match std::env::args_os().nth(1) {
        Some(first) if first == CHILD => child(std::env::args_os().skip(2).collect()),
        _ => {
            let mut arguments = Arguments::parse();
            match arguments.command.take() {
                Some(Command::Operators(arguments)) => operators::compare(arguments),
                Some(Command::Graphs(arguments)) => graphs::compare(&arguments),
                None => compare(&arguments),
            }
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn child(arguments: Vec<OsString>) -> anyhow::Result<()> {
    if !child::main(&arguments)? && !peer::child(&arguments)? {
        anyhow::bail!("{CHILD} is for this program itself");
    }
    Ok(())
}

fn compare(arguments: &Arguments) -> anyhow::Result<()> {
    let asked_for_default = arguments.universities == 40;
    let universities = match arguments.quick && asked_for_default {
        true => 2,
        false => arguments.universities,
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = arguments.threads.unwrap_or(cores);
    let file = data::lubm_file(&arguments.data, Lubm::new(universities, 0))?;
    println!(
        "LUBM, {universities} universities, seed 0: {}, {} statements\n{}",
        bytes(file.bytes),
        thousands(file.counts.statements()),
        Machine::here()
    );
    if cfg!(debug_assertions) {
        println!("This program was built without optimization: build with --release.");
    }
    let program = ChildProgram::this(&[CHILD])?;
    let ours = program.run(&Task::Load(file.path.clone(), threads))?;
    let theirs: ChildReport = program.run_with(&peer::load_arguments(&file.path, threads))?;
    println!("\n{}", loads(&file, threads, [&ours, &theirs]));
    let runs = if arguments.quick {
        Runs::FEW
    } else {
        Runs::USUAL
    };
    let comparison = Comparison::measure(&file, threads, runs)?;
    print!("{comparison}");
    if let Some(path) = &arguments.json {
        let figures = serde_json::json!({
            "machine": Machine::here(),
            "universities": universities,
            "file_bytes": file.bytes,
            "statements": file.counts.statements(),
            "threads": threads,
            "load": { "jindou": ours, "oxigraph": theirs },
            "queries": comparison.queries,
        });
        let text = serde_json::to_string_pretty(&figures)? + "\n";
        std::fs::write(path, text).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn loads(file: &DataFile, threads: usize, reports: [&ChildReport; 2]) -> Table {
    let [ours, theirs] = reports;
    let mut table = Table::new([
        format!("load, {threads} threads"),
        "jindou".into(),
        "oxigraph".into(),
        "oxigraph / jindou".into(),
    ]);
    let statements = file.counts.statements() as f64;
    let mut row = |name: &str, show: &dyn Fn(f64) -> String, get: &dyn Fn(&ChildReport) -> f64| {
        let (a, b) = (get(ours), get(theirs));
        table.row([name.to_owned(), show(a), show(b), format!("{:.2}", b / a)]);
    };
    let size = |count: f64| bytes(count as u64);
    row("seconds", &|s| format!("{s:.2}"), &|r| r.seconds);
    row(
        "million statements a second",
        &|r| format!("{r:.2}"),
        &|r| statements / r.seconds / 1e6,
    );
    row("resident after", &size, &|r| r.memory.resident_bytes as f64);
    row("resident at most", &size, &|r| r.memory.peak_bytes as f64);
    row("resident bytes a triple", &|b| format!("{b:.1}"), &|r| {
        r.memory.resident_bytes as f64 / r.triples as f64
    });
    table
}
