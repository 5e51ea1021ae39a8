//! Which command was asked for, and how does it end?
//!
//! Commands live in [`commands`], one a file. Whatever goes wrong is one line on standard error.

#![forbid(unsafe_code)]

/// Prints a line on standard error. That nobody reads it, as where the log's reader has ended, is
/// no reason to end: `eprintln!` panics then.
macro_rules! note {
    ($($argument:tt)*) => {{
        use std::io::Write as _;
        let _unread = writeln!(std::io::stderr(), $($argument)*);
    }};
}

mod access_args;
mod allow;
mod args;
mod bench_args;
mod bench_stream_args;
mod commands;
mod control;
mod failure;
mod interrupt;
mod open;
mod output;
mod progress;
mod spill;
mod stream_args;
mod target;
mod values;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use tracing_subscriber::EnvFilter;

use args::{Arguments, Command};

#[global_allocator]
static ALLOCATOR: jindou_fabric::allocator::Allocator = jindou_fabric::allocator::Allocator;

fn main() -> ExitCode {
    let arguments = Arguments::of_process();
    log_to_standard_error();
    let outcome = match arguments.command {
        Command::Serve(arguments) => commands::serve::run(arguments),
        Command::Load(arguments) => commands::load::run(arguments),
        Command::Query(arguments) => commands::query::run(arguments),
        Command::Update(arguments) => commands::update::run(arguments),
        Command::Explain(arguments) => commands::query::explain(&arguments),
        Command::Dump(arguments) => commands::dump::run(&arguments),
        Command::Backup(arguments) => commands::backup::backup(&arguments),
        Command::Restore(arguments) => commands::backup::restore(&arguments),
        Command::Verify(arguments) => commands::verify::run(&arguments),
        Command::Compact(arguments) => commands::compact::run(&arguments),
        Command::Stats(arguments) => commands::stats::run(&arguments),
        Command::Stream(command) => commands::stream::run(command),
        Command::Generate(arguments) => commands::generate::run(arguments),
        Command::Bench(arguments) => commands::bench::run(arguments),
        Command::Demo(arguments) => commands::demo::run(arguments),
        Command::HashPassword(arguments) => commands::hash_password::run(&arguments),
        Command::Health(arguments) => commands::health::run(&arguments),
        Command::Completions(arguments) => commands::manual::completions(&arguments),
        Command::Manual(arguments) => commands::manual::pages(&arguments),
        Command::BenchChild(arguments) => commands::bench::child(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}

/// Warnings and errors, or what the variable `JINDOU_LOG` asks for (`debug`, `jindou_server=info`).
fn log_to_standard_error() {
    let filter = EnvFilter::try_from_env("JINDOU_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        // It would tell standard error, and panic, that standard error is gone.
        .log_internal_errors(false)
        .init();
}
