//! How does a result reach standard output?

use std::io::{self, Write};

use anyhow::{Context, bail};
use jindou_engine::results::{
    BooleanFormat, GraphFormat, GraphWriter, SolutionsFormat, SolutionsWriter, write_boolean,
};
use jindou_engine::{Graph, QueryResults, Solutions};

use crate::args::ResultsFormat;

/// Text held back before it is written.
const FLUSH_BYTES: usize = 64 << 10;

/// Writes a result in the format asked for; gives the profile if there is one.
///
/// # Errors
/// The engine's, those of writing, and a format that does not fit the result.
pub(crate) fn write(
    results: QueryResults,
    format: Option<ResultsFormat>,
    out: &mut impl Write,
) -> anyhow::Result<Option<String>> {
    match results {
        QueryResults::Solutions(solutions) => {
            write_solutions(solutions, solutions_format(format)?, out)
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
    out: &mut impl Write,
) -> anyhow::Result<Option<String>> {
    let columns = solutions.variables().len();
    let mut writer = SolutionsWriter::new(format, solutions.variables());
    let mut text = Vec::with_capacity(2 * FLUSH_BYTES);
    writer.start(&mut text);
    while let Some(batch) = solutions.next_batch()? {
        let mut decoder = solutions.decoder();
        for row in 0..batch.rows() {
            writer.begin_row(&mut text);
            for column in 0..columns {
                let id = batch.column(column)[row];
                writer.term(&mut text, id, &mut decoder)?;
            }
            writer.end_row(&mut text);
            if text.len() >= FLUSH_BYTES {
                put(out, &mut text)?;
            }
        }
    }
    writer.finish(&mut text);
    if matches!(format, SolutionsFormat::Json | SolutionsFormat::Xml) {
        end_line(&mut text);
    }
    put(out, &mut text)?;
    Ok(solutions.profile())
}

fn write_graph(mut graph: Graph, format: GraphFormat, out: &mut impl Write) -> anyhow::Result<()> {
    let mut writer = GraphWriter::new(format);
    let mut text = Vec::with_capacity(2 * FLUSH_BYTES);
    while let Some(triples) = graph.next_batch()? {
        let mut decoder = graph.decoder();
        for triple in triples {
            writer.ids(&mut text, triple, &mut decoder)?;
            if text.len() >= FLUSH_BYTES {
                put(out, &mut text)?;
            }
        }
    }
    writer.finish(&mut text)?;
    if !text.is_empty() {
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
        Some(ResultsFormat::Nt | ResultsFormat::Turtle | ResultsFormat::Rdfxml) => {
            bail!("the query gives a table, not a graph; ask for table, tsv, csv, json or xml")
        }
    })
}

fn boolean_format(format: Option<ResultsFormat>) -> anyhow::Result<BooleanFormat> {
    Ok(match format {
        None | Some(ResultsFormat::Table) => BooleanFormat::Text,
        Some(ResultsFormat::Tsv) => BooleanFormat::Tsv,
        Some(ResultsFormat::Csv) => BooleanFormat::Csv,
        Some(ResultsFormat::Json) => BooleanFormat::Json,
        Some(ResultsFormat::Xml) => BooleanFormat::Xml,
        Some(ResultsFormat::Nt | ResultsFormat::Turtle | ResultsFormat::Rdfxml) => {
            bail!(
                "the query gives true or false, not a graph; ask for table, tsv, csv, json or xml"
            )
        }
    })
}

fn graph_format(format: Option<ResultsFormat>) -> anyhow::Result<GraphFormat> {
    Ok(match format {
        None | Some(ResultsFormat::Nt) => GraphFormat::NTriples,
        Some(ResultsFormat::Turtle) => GraphFormat::Turtle,
        Some(ResultsFormat::Rdfxml) => GraphFormat::RdfXml,
        Some(_) => bail!("the query gives a graph, not a table; ask for nt, turtle or rdfxml"),
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
