//! One query, in process: how is it run so that every row is looked at?

use std::hint::black_box;
use std::time::{Duration, Instant};

use jindou_engine::results::{SolutionsFormat, SolutionsWriter};
use jindou_engine::{Database, Forked, QueryOptions, QueryResults, Solutions};

use crate::BenchError;
use crate::timing::Timing;

/// Runs before those that are timed: they fill the plan cache and touch the memory.
const WARM_UPS: u32 = 3;

/// What a run of a query gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Rows of the answer.
    pub rows: u64,
    /// Bytes of text written; 0 where none was.
    pub text_bytes: u64,
}

fn on_threads(threads: usize) -> QueryOptions {
    QueryOptions {
        threads: Some(threads),
        ..QueryOptions::default()
    }
}

fn solutions(
    database: &Database,
    text: &str,
    options: QueryOptions,
) -> Result<Solutions, BenchError> {
    match database.query_with(text, options)? {
        QueryResults::Solutions(solutions) => Ok(solutions),
        _ => Err(BenchError::NotSolutions { query: text.into() }),
    }
}

/// Runs a query on this many threads and reads every id of every row.
///
/// # Errors
/// [`BenchError::Engine`], [`BenchError::NotSolutions`].
pub fn as_ids(database: &Database, text: &str, threads: usize) -> Result<Outcome, BenchError> {
    as_ids_with(database, text, on_threads(threads))
}

/// Runs a query with these settings and reads every id of every row.
///
/// # Errors
/// [`BenchError::Engine`], [`BenchError::NotSolutions`].
pub fn as_ids_with(
    database: &Database,
    text: &str,
    options: QueryOptions,
) -> Result<Outcome, BenchError> {
    let rows = read(&mut solutions(database, text, options)?)?;
    Ok(Outcome {
        rows,
        text_bytes: 0,
    })
}

/// Runs a query with these settings, and says what of it went to other nodes, too.
///
/// # Errors
/// [`BenchError::Engine`], [`BenchError::NotSolutions`].
pub fn forked(
    database: &Database,
    text: &str,
    options: QueryOptions,
) -> Result<(Outcome, Forked), BenchError> {
    let mut solutions = solutions(database, text, options)?;
    let rows = read(&mut solutions)?;
    let text_bytes = 0;
    Ok((Outcome { rows, text_bytes }, solutions.forked()))
}

/// Reads every id of every row; gives the number of rows.
///
/// # Errors
/// [`BenchError::Engine`].
pub(crate) fn read(solutions: &mut Solutions) -> Result<u64, BenchError> {
    let columns = solutions.variables().len();
    let (mut rows, mut sum) = (0, 0_u64);
    while let Some(batch) = solutions.next_batch()? {
        rows += batch.rows() as u64;
        for column in 0..columns {
            for id in batch.column(column) {
                sum = sum.wrapping_add(id.raw());
            }
        }
    }
    black_box(sum);
    Ok(rows)
}

/// Runs a query on this many threads and writes every row as TSV into `out`, which is emptied
/// after each batch: it holds a batch's text at most.
///
/// # Errors
/// [`BenchError::Engine`], [`BenchError::NotSolutions`], [`BenchError::Results`].
pub fn as_tsv(
    database: &Database,
    text: &str,
    threads: usize,
    out: &mut Vec<u8>,
) -> Result<Outcome, BenchError> {
    write_tsv(solutions(database, text, on_threads(threads))?, out)
}

/// Writes every row as TSV into `out`, which is emptied after each batch.
///
/// # Errors
/// [`BenchError::Engine`], [`BenchError::Results`].
pub(crate) fn write_tsv(
    mut solutions: Solutions,
    out: &mut Vec<u8>,
) -> Result<Outcome, BenchError> {
    let mut writer = SolutionsWriter::new(SolutionsFormat::Tsv, solutions.variables());
    let mut text_bytes = 0;
    out.clear();
    writer.start(out)?;
    while writer.advance(out, &mut solutions)?.is_some() {
        text_bytes += black_box(&*out).len() as u64;
        out.clear();
    }
    writer.finish(out)?;
    text_bytes += black_box(&*out).len() as u64;
    Ok(Outcome {
        rows: writer.rows(),
        text_bytes,
    })
}

/// Times `runs` calls of `run` after a few that are not timed. All must give the same rows.
///
/// # Errors
/// Those of `run`; [`BenchError::RowsDiffer`] if `run` does not always give `rows` rows, with
/// the query's name and the way it was run.
pub fn timed(
    (query, way, rows): (&str, &'static str, u64),
    runs: u32,
    mut run: impl FnMut() -> Result<Outcome, BenchError>,
) -> Result<Timing, BenchError> {
    let mut times = Vec::with_capacity(runs as usize);
    for number in 0..WARM_UPS + runs.max(1) {
        let (outcome, time) = once(&mut run)?;
        check_rows(query, way, rows, outcome.rows)?;
        if number >= WARM_UPS {
            times.push(time);
        }
    }
    Ok(Timing::of(times))
}

/// Times one call.
///
/// # Errors
/// Those of `run`.
pub fn once<T>(run: impl FnOnce() -> Result<T, BenchError>) -> Result<(T, Duration), BenchError> {
    let start = Instant::now();
    let value = run()?;
    Ok((value, start.elapsed()))
}

/// Whether the number of rows is right.
///
/// # Errors
/// [`BenchError::RowsDiffer`].
pub fn check_rows(
    query: &str,
    way: &'static str,
    expected: u64,
    found: u64,
) -> Result<(), BenchError> {
    if expected == found {
        return Ok(());
    }
    Err(BenchError::RowsDiffer {
        query: query.to_owned(),
        way,
        expected,
        found,
    })
}
