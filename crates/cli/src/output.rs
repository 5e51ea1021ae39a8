//! How does a result reach standard output or a file?

use std::io::{self, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use jindou_engine::results::{
    BooleanFormat, GraphFormat, GraphWriter, Names, SolutionsFormat, SolutionsWriter, write_boolean,
};
use jindou_engine::{Graph, QueryResults, Solutions};

use crate::args::ResultsFormat;
use crate::commands::dump::MOST_GATHERED_BYTES;

/// Text held back before it is written,
const FLUSH_BYTES: usize = 64 << 10;
/// if what came before was written less than this long ago.
const FLUSH_AGE: Duration = Duration::from_millis(50);

/// Writes a result in the format asked for, tables with short names of IRIs; gives the profile if there is
/// one.
///
/// # Errors
/// The engine's, those of writing, and a format that does not fit the result.
pub(crate) fn write(
    results: QueryResults,
    format: Option<ResultsFormat>,
    names: Names,
    out: &mut impl Write,
) -> anyhow::Result<Option<String>> {
    match results {
        QueryResults::Solutions(solutions) => {
            write_solutions(solutions, solutions_format(format)?, names, out)
        }
        QueryResults::Boolean(value) => {
            let format = boolean_format(format)?;
            let mut text = Vec::new();
            write_boolean(&mut text, format, value);
            end_line(&mut text);
            put(out, &mut text)?;
            Ok(None)
        }
        QueryResults::Graph(graph) => {
            write_graph(graph, graph_format(format)?, out)?;
            Ok(None)
        }
    }
}

/// Whether a result can be written in the format asked for.
///
/// # Errors
/// If it cannot, with those that would do.
pub(crate) fn check_format(
    results: &QueryResults,
    format: Option<ResultsFormat>,
) -> anyhow::Result<()> {
    match results {
        QueryResults::Solutions(_) => solutions_format(format).map(drop),
        QueryResults::Boolean(_) => boolean_format(format).map(drop),
        QueryResults::Graph(_) => graph_format(format).map(drop),
    }
}

fn write_solutions(
    mut solutions: Solutions,
    format: SolutionsFormat,
    names: Names,
    out: &mut impl Write,
) -> anyhow::Result<Option<String>> {
    let mut writer = SolutionsWriter::new(format, solutions.variables()).with_names(names);
    let mut text = Vec::with_capacity(2 * FLUSH_BYTES);
    writer.start(&mut text)?;
    let mut written_at = None;
    while let Some(step) = writer.advance(&mut text, &mut solutions)? {
        // The next rows may be long in coming: the first ones should not wait for the last.
        if step.waits {
            writer.pause(&mut text)?;
        }
        let is_old = || written_at.is_none_or(|at: Instant| at.elapsed() >= FLUSH_AGE);
        if text.len() >= FLUSH_BYTES || (step.waits && is_old()) {
            put(out, &mut text)?;
            written_at = Some(Instant::now());
        }
    }
    writer.finish(&mut text)?;
    if matches!(format, SolutionsFormat::Json | SolutionsFormat::Xml) {
        end_line(&mut text);
    }
    put(out, &mut text)?;
    Ok(solutions.profile()?)
}

fn write_graph(mut graph: Graph, format: GraphFormat, out: &mut impl Write) -> anyhow::Result<()> {
    let mut writer = GraphWriter::new(format).with_memory(None, MOST_GATHERED_BYTES);
    let mut text = Vec::with_capacity(2 * FLUSH_BYTES);
    while writer.advance(&mut text, &mut graph)?.is_some() {
        if text.len() >= FLUSH_BYTES {
            put(out, &mut text)?;
        }
    }
    writer.finish(&mut text)?;
    if !text.is_empty() && !matches!(format, GraphFormat::Arrow | GraphFormat::Parquet) {
        end_line(&mut text);
    }
    put(out, &mut text)
}

fn end_line(text: &mut Vec<u8>) {
    if text.last() != Some(&b'\n') {
        text.push(b'\n');
    }
}

fn put(out: &mut impl Write, text: &mut Vec<u8>) -> anyhow::Result<()> {
    let written = out.write_all(text).and_then(|()| out.flush());
    text.clear();
    written.context("writing the result")
}

fn solutions_format(format: Option<ResultsFormat>) -> anyhow::Result<SolutionsFormat> {
    Ok(match format {
        None | Some(ResultsFormat::Table) => SolutionsFormat::Table,
        Some(ResultsFormat::Tsv) => SolutionsFormat::Tsv,
        Some(ResultsFormat::Csv) => SolutionsFormat::Csv,
        Some(ResultsFormat::Json) => SolutionsFormat::Json,
        Some(ResultsFormat::Xml) => SolutionsFormat::Xml,
        Some(ResultsFormat::Arrow) => SolutionsFormat::Arrow,
        Some(ResultsFormat::Parquet) => SolutionsFormat::Parquet,
        Some(_) => bail!(
            "the query gives a table, not a graph; ask for table, tsv, csv, json, xml, arrow or \
             parquet"
        ),
    })
}

fn boolean_format(format: Option<ResultsFormat>) -> anyhow::Result<BooleanFormat> {
    Ok(match format {
        None | Some(ResultsFormat::Table) => BooleanFormat::Text,
        Some(ResultsFormat::Tsv) => BooleanFormat::Tsv,
        Some(ResultsFormat::Csv) => BooleanFormat::Csv,
        Some(ResultsFormat::Json) => BooleanFormat::Json,
        Some(ResultsFormat::Xml) => BooleanFormat::Xml,
        Some(_) => bail!(
            "the query gives true or false, not a graph or columns; ask for table, tsv, csv, json \
             or xml"
        ),
    })
}

fn graph_format(format: Option<ResultsFormat>) -> anyhow::Result<GraphFormat> {
    Ok(match format {
        None | Some(ResultsFormat::Nt) => GraphFormat::NTriples,
        Some(ResultsFormat::Turtle) => GraphFormat::Turtle,
        Some(ResultsFormat::Rdfxml) => GraphFormat::RdfXml,
        Some(ResultsFormat::Jsonld) => GraphFormat::JsonLd,
        Some(ResultsFormat::Trig) => GraphFormat::TriG,
        Some(ResultsFormat::Nq) => GraphFormat::NQuads,
        Some(ResultsFormat::N3) => GraphFormat::N3,
        Some(ResultsFormat::Arrow) => GraphFormat::Arrow,
        Some(ResultsFormat::Parquet) => GraphFormat::Parquet,
        Some(
            ResultsFormat::Table
            | ResultsFormat::Tsv
            | ResultsFormat::Csv
            | ResultsFormat::Json
            | ResultsFormat::Xml,
        ) => bail!(
            "the query gives a graph, not a table; ask for nt, turtle, rdfxml, jsonld, trig, nq, \
             n3, arrow or parquet"
        ),
    })
}

/// Writes text to standard output.
///
/// # Errors
/// Those of writing; a reader that went away among them.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .context("writing to standard output")
}
