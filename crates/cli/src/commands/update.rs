//! `jindou update`: changes a store in a folder by SPARQL Update.

use std::time::{Duration, Instant};

use jindou_bench::table::thousands;
use jindou_engine::{Config, UpdateOptions};

use super::query::in_query;
use crate::args::UpdateArguments;
use crate::open;

/// # Errors
/// A request that is wrong, a folder that is no store or in use, and what else the engine reports;
/// the store is then as it was.
pub(crate) fn run(arguments: UpdateArguments) -> anyhow::Result<()> {
    let (text, name) = open::query_text(arguments.text.into(), "update")?;
    let database = open::stored(&arguments.location, Config::default())?;
    let begin = Instant::now();
    let options = UpdateOptions {
        timeout: arguments.timeout,
        base: arguments.base,
        union_default_graph: arguments.union_default_graph.then_some(true),
        ..UpdateOptions::default()
    };
    let report = database
        .update_with(&text, options)
        .map_err(|error| in_query(error, &text, &name))?;
    note!(
        "inserted {} and deleted {} quads in {:.1?}",
        thousands(report.inserted),
        thousands(report.deleted),
        Duration::from_micros(begin.elapsed().as_micros() as u64),
    );
    Ok(())
}
