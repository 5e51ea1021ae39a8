//! Which command was asked for, and how does it end?
//!
//! Commands live in [`commands`], one a file. Whatever goes wrong is one line on standard error.

#![forbid(unsafe_code)]

/// Prints a line on standard error.
macro_rules! note {
    ($($argument:tt)*) => {
        crate::notes::print(format_args!($($argument)*))
    };
}

mod access_args;
mod allow;
mod args;
mod bench_args;
mod bench_bulk_args;
mod bench_stream_args;
mod cluster_args;
mod commands;
mod control;
#[cfg(target_os = "linux")]
mod copying;
#[cfg(target_os = "linux")]
mod etcd_keeper;
mod failure;
mod files;
mod interrupt;
mod limit_args;
mod log_args;
#[cfg(target_os = "linux")]
mod node;
#[cfg(not(target_os = "linux"))]
#[path = "no_node.rs"]
mod node;
#[cfg(target_os = "linux")]
mod node_list;
mod notes;
mod open;
mod output;
mod progress;
mod proxy_args;
mod sources;
mod spill;
mod stream_args;
mod target;
mod universities;
mod values;

use std::process::ExitCode;

use args::{Arguments, Command};
use clap::CommandFactory as _;
use log_args::LogFormatArgument;

#[global_allocator]
static ALLOCATOR: jindou_fabric::allocator::Allocator = jindou_fabric::allocator::Allocator;

fn main() -> ExitCode {
    let arguments = Arguments::of_process();
    let format = match &arguments.command {
        Command::Serve(arguments) => arguments.logs.log_format,
        _ => LogFormatArgument::Text,
    };
    notes::start(format);
    if arguments.takes_variables() {
        let command = Arguments::command();
        for said in sources::unknown_variables(&command, std::env::vars_os()) {
            note!("warning: {said}");
        }
    }
    let outcome = match arguments.command {
        Command::Serve(arguments) => commands::serve::run(*arguments),
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
        Command::Prefixes(arguments) => commands::prefixes::run(&arguments),
        Command::Stream(command) => commands::stream::run(command),
        Command::Generate(arguments) => commands::generate::run(arguments),
        Command::Bench(arguments) => commands::bench::run(arguments),
        Command::Demo(arguments) => commands::demo::run(arguments),
        Command::Proxy(arguments) => commands::proxy::run(&arguments),
        Command::Cluster(command) => commands::cluster::run(command),
        Command::HashPassword(arguments) => commands::hash_password::run(&arguments),
        Command::Health(arguments) => commands::health::run(&arguments),
        Command::Completions(arguments) => commands::manual::completions(&arguments),
        Command::Manual(arguments) => commands::manual::pages(&arguments),
        Command::BenchChild(arguments) => commands::bench::child(&arguments),
    };
    let status = match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    };
    jindou_fabric::schedule::all_run_as_usual();
    status
}
