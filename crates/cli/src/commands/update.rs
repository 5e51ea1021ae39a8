//! `jindou update`: changes a store in a folder by SPARQL Update.

use std::io::{BufWriter, Write};
use std::time::{Duration, Instant};

use jindou_bench::table::thousands;
use jindou_engine::results::{QuadText, TermText, write_term};
use jindou_engine::{Config, UpdateDelta, UpdateOptions};

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
        return_delta: arguments.return_delta,
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
    match &report.delta {
        Some(delta) => print_patch(delta),
        None => Ok(()),
    }
}

/// Prints what changed as an RDF Patch.
fn print_patch(delta: &UpdateDelta) -> anyhow::Result<()> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    out.write_all(b"TX .\n")?;
    delta.for_each_removed(0..delta.removed(), |quad| print_line(&mut out, b'D', quad))?;
    delta.for_each_added(0..delta.added(), |quad| print_line(&mut out, b'A', quad))?;
    out.write_all(b"TC .\n")?;
    Ok(out.flush()?)
}

fn print_line(out: &mut impl Write, what: u8, quad: QuadText<'_>) -> anyhow::Result<()> {
    let mut line = vec![what, b' '];
    let predicate = TermText::Iri(quad.predicate);
    let terms = [quad.subject, predicate, quad.object];
    for term in terms.into_iter().chain(quad.graph) {
        write_term(&mut line, term, false);
        line.push(b' ');
    }
    line.extend_from_slice(b".\n");
    Ok(out.write_all(&line)?)
}
