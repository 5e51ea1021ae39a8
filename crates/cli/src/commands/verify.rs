//! `jindou verify`: is a store as it should be?

use std::time::Instant;

use jindou_bench::table::{Table, bytes, thousands};
use jindou_engine::{Database, StoreReport};

use crate::args::VerifyArguments;
use crate::{open, output};

/// # Errors
/// A folder that is no store, and the first file that is not as it should be.
pub(crate) fn run(arguments: &VerifyArguments) -> anyhow::Result<()> {
    open::check_folder(&arguments.location)?;
    let begin = Instant::now();
    let report = Database::verify(&arguments.location)?;
    let time = begin.elapsed().as_secs_f64();
    let name = arguments.location.display();
    output::print(&format!(
        "{}\n{}\n{name} is whole; reading it took {time:.2} s\n",
        files(&report),
        figures(&report)
    ))
}

fn files(report: &StoreReport) -> Table {
    let mut table = Table::new(["file", "size"]);
    for file in &report.files {
        table.row([file.name.clone(), bytes(file.bytes)]);
    }
    let all = report.files.iter().map(|file| file.bytes).sum();
    table.row(["all files".to_owned(), bytes(all)]);
    table
}

fn figures(report: &StoreReport) -> Table {
    let mut table = Table::new(["what it holds", ""]);
    if let Some(part) = &report.part {
        table.row(["part of the store below".to_owned(), part.of.clone()]);
        table.row(["triples in the part".to_owned(), thousands(part.triples)]);
        table.row([
            "quads of named graphs in the part".to_owned(),
            thousands(part.named_quads),
        ]);
    }
    for (name, count) in [
        ("triples of the default graph", report.triples),
        ("quads of named graphs", report.named_quads),
        ("named graphs", report.named_graphs),
        ("IRIs and blank nodes", report.vertices),
        ("literals in the dictionary", report.literals),
        ("predicates", report.predicates),
        ("quads changed since the last merge", report.changes),
        ("transactions in the log", report.recovery.transactions),
        ("bytes of the log", report.recovery.bytes),
        ("bytes of writes cut short", report.recovery.dropped_bytes),
    ] {
        table.row([name.to_owned(), thousands(count)]);
    }
    table
}
