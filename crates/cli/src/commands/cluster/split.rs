//! `jindou cluster split`: the parts of a store, one for each node.

use std::time::{Duration, Instant};

use anyhow::Context;
use jindou_bench::table::{Table, bytes, thousands};
use jindou_engine::{Database, FileBytes, PeerList, SplitProgress, SplitReport};

use crate::cluster_args::SplitArguments;
use crate::progress::Watch;
use crate::{open, output};

/// A split that takes less shows nothing meanwhile.
const PATIENCE: Duration = Duration::from_secs(2);

/// # Errors
/// A folder that is no store, in use or with changes, a file that is no list of nodes, and what keeps the parts from
/// being made; nothing is left of them then.
pub(super) fn run(arguments: &SplitArguments) -> anyhow::Result<()> {
    open::check_folder(&arguments.location)?;
    open::check_new_folder(&arguments.to)?;
    let (peers, _) = PeerList::read(&arguments.peers).context("--peers")?;
    let begin = Instant::now();
    let progress = SplitProgress::default();
    let look = {
        let progress = progress.clone();
        move || {
            let (read, all) = progress.edges();
            let words = format!("{} edges read", thousands(read));
            (read, Some(all).filter(|all| *all > 0), words)
        }
    };
    let watch = Watch::after(PATIENCE, "splitting".to_owned(), look);
    let split = Database::split(&arguments.location, &peers, &arguments.to, &progress);
    drop(watch);
    let report = split?;
    output::print(&table(&report).to_string())?;
    note!(
        "wrote {} parts to {} in {:.2} s",
        report.parts.len(),
        arguments.to.display(),
        begin.elapsed().as_secs_f64()
    );
    Ok(())
}

fn table(report: &SplitReport) -> Table {
    let columns = [
        "node",
        "shards",
        "edges",
        "dictionary",
        "other",
        "all files",
    ];
    let mut table = Table::new(columns);
    let mut row = |name: &str, shards: String, of: FileBytes| {
        let sizes = [of.edges, of.dictionary, of.tables, of.total()];
        let [edges, dictionary, tables, total] = sizes.map(bytes);
        table.row([name.to_owned(), shards, edges, dictionary, tables, total]);
    };
    let (mut sum, mut shards) = (FileBytes::default(), 0);
    for part in &report.parts {
        row(&part.name, part.shards.to_string(), part.bytes);
        sum.edges += part.bytes.edges;
        sum.dictionary += part.bytes.dictionary;
        sum.tables += part.bytes.tables;
        shards += part.shards;
    }
    row("all parts", shards.to_string(), sum);
    row("the store", String::new(), report.whole);
    table
}
