//! `jindou stats`: what a store holds.

use anyhow::Context;
use jindou_bench::table::{Table, bytes, thousands};
use jindou_engine::{Config, DatabaseStatistics};

use crate::args::StatsArguments;
use crate::{open, output};

/// Predicates shown, the most frequent first; `--json` has all.
const SHOWN_PREDICATES: usize = 30;

/// Of the part of a store, too.
///
/// # Errors
/// A folder that is no store.
pub(crate) fn run(arguments: &StatsArguments) -> anyhow::Result<()> {
    let statistics = open::to_join(&arguments.location, Config::default())?.statistics();
    if arguments.json {
        let text = serde_json::to_string_pretty(&statistics);
        let text = text.context("the statistics are no JSON")?;
        return output::print(&format!("{text}\n"));
    }
    let name = arguments.location.display().to_string();
    output::print(&format!(
        "{}\n{}",
        figures(name, &statistics),
        predicates(&statistics)
    ))
}

fn figures(name: String, statistics: &DatabaseStatistics) -> Table {
    let mut table = Table::new([name, String::new()]);
    let held = match &statistics.part {
        Some(part) => part.triples + part.named_quads,
        None => statistics.triples + statistics.named_quads,
    };
    if let Some(part) = &statistics.part {
        table.row(["part of the store below".to_owned(), part.of.clone()]);
        table.row(["triples in the part".to_owned(), thousands(part.triples)]);
        table.row([
            "quads of named graphs in the part".to_owned(),
            thousands(part.named_quads),
        ]);
    }
    for (name, count) in [
        ("triples of the default graph", statistics.triples),
        ("quads of named graphs", statistics.named_quads),
        ("named graphs", statistics.named_graphs),
        ("IRIs and blank nodes", statistics.vertices),
        ("literals in the dictionary", statistics.dictionary_literals),
        ("classes", statistics.classes),
        ("characteristic sets", statistics.characteristic_sets),
        ("predicates", statistics.predicates.len() as u64),
    ] {
        table.row([name.to_owned(), thousands(count)]);
    }
    for (name, count) in [
        ("dictionary", statistics.dictionary_bytes),
        ("segments", statistics.segment_bytes),
        ("named graphs", statistics.named_bytes),
        ("characteristic sets", statistics.characteristic_set_bytes),
        ("all parts", statistics.total_bytes()),
    ] {
        table.row([format!("size: {name}"), bytes(count)]);
    }
    let each = statistics.total_bytes() as f64 / held.max(1) as f64;
    table.row(["size: a triple".to_owned(), format!("{each:.1} B")]);
    table
}

fn predicates(statistics: &DatabaseStatistics) -> String {
    let columns = [
        "predicate",
        "triples",
        "subjects",
        "objects",
        "in named graphs",
    ];
    let mut table = Table::new(columns);
    for predicate in statistics.predicates.iter().take(SHOWN_PREDICATES) {
        let counts = [
            predicate.triples,
            predicate.subjects,
            predicate.objects,
            predicate.named_edges,
        ];
        let [triples, subjects, objects, named] = counts.map(thousands);
        let iri = format!("<{}>", predicate.iri);
        table.row([iri, triples, subjects, objects, named]);
    }
    match statistics.predicates.len().checked_sub(SHOWN_PREDICATES) {
        None | Some(0) => table.to_string(),
        Some(more) => format!("{table}and {more} more; --json shows all\n"),
    }
}
