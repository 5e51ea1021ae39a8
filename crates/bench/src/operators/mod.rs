//! How fast is each operator? Many queries over three data sets, each heavy in one thing.
//!
//! [`measure`] asks the same queries of one engine or of several by turns, A B A B, so that
//! whatever else the machine does touches all. A run is a whole query: from its text to its last
//! row as text. Every answer is compared, row by row in short, with the other engines' and, on
//! the usual data, with what is [recorded](Recorded); one that differs makes the report
//! [wrong](OperatorReport::is_right).

mod answer;
mod catalogue;
mod engine;
mod files;
mod queries;
mod recorded;
mod report;

use std::path::PathBuf;
use std::time::{Duration, Instant};

pub use answer::{Answer, Digest};
pub use catalogue::{Check, DataSet, Family, Query, held};
pub use engine::{Engine, Jindou, Read};
pub(crate) use engine::{answer_of, within_limit};
pub use files::{DEFAULT_SETS, LANGUAGES};
pub use recorded::{Recorded, UNIVERSITIES};
pub use report::{DataFigures, OperatorFigures, OperatorReport, Skipped};

use crate::BenchError;
use crate::data;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::turns::{Bounds, by_turns};
pub(crate) use files::{Found, files};

/// Timed runs of a query at most.
const MAX_RUNS: usize = 50;

/// What to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// Universities of the LUBM data; its seed is 0.
    pub universities: u32,
    /// Where generated and unpacked data is kept.
    pub folder: PathBuf,
    /// Where the packed data sets are.
    pub sets: PathBuf,
    /// Threads of loads.
    pub load_threads: usize,
    /// Only queries with this in their name.
    pub only: Option<String>,
    /// Only queries of these families; all if empty.
    pub families: Vec<Family>,
    /// Only these data sets; all if empty.
    pub data: Vec<DataSet>,
    /// Time for the timed runs of one query in one engine; there is at least one run.
    pub budget: Duration,
    /// Time after which a query is given up.
    pub limit: Duration,
    /// What of results is read.
    pub read: Read,
    /// How many times as fast as the second engine is asked for.
    pub wanted: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            universities: UNIVERSITIES,
            folder: data::DEFAULT_FOLDER.into(),
            sets: DEFAULT_SETS.into(),
            load_threads: std::thread::available_parallelism().map_or(1, usize::from),
            only: None,
            families: Vec::new(),
            data: Vec::new(),
            budget: Duration::from_secs(1),
            limit: Duration::from_secs(20),
            read: Read::Text,
            wanted: 20.0,
        }
    }
}

impl Options {
    fn wants(&self, query: &Query) -> bool {
        let family = self.families.is_empty() || self.families.contains(&query.family);
        let name = self
            .only
            .as_deref()
            .is_none_or(|part| query.name.contains(part));
        family && name
    }
}

/// Measures the first engine, beside the others if there are any; `note` is told what is being
/// done. Each engine holds one data set at a time.
///
/// # Errors
/// Data that cannot be made ready or loaded. A query that fails or is answered wrongly is told
/// in the report.
///
/// # Panics
/// If there is no engine.
pub fn measure(
    options: &Options,
    engines: &mut [&mut dyn Engine],
    mut note: impl FnMut(&str),
) -> Result<OperatorReport, BenchError> {
    assert!(!engines.is_empty(), "there is nothing to measure");
    let mut report = OperatorReport {
        machine: Machine::here(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        optimized: !cfg!(debug_assertions),
        universities: options.universities,
        budget_ms: options.budget.as_secs_f64() * 1e3,
        limit_ms: options.limit.as_secs_f64() * 1e3,
        read: options.read,
        wanted: options.wanted,
        engines: engines.iter().map(|e| e.name().to_owned()).collect(),
        data: Vec::new(),
        skipped: Vec::new(),
        queries: Vec::new(),
    };
    let recorded = Recorded::kept();
    for data in DataSet::ALL {
        if !options.data.is_empty() && !options.data.contains(&data) {
            continue;
        }
        let mut queries: Vec<Query> = held().filter(|q| q.data == data).cloned().collect();
        queries.extend(files::queries(data, &options.sets)?);
        queries.retain(|query| options.wants(query));
        if queries.is_empty() {
            continue;
        }
        let found = files(data, options.universities, &options.folder, &options.sets)?;
        let files = match found {
            Found::Files(files) => files,
            Found::Absent(path) => {
                report.skipped.push(Skipped {
                    data,
                    missing: path,
                });
                continue;
            }
        };
        let figures = load(data, &files, options, engines, &mut note)?;
        let checked = recorded.is_about(data, figures.triples);
        report.data.push(DataFigures { checked, ..figures });
        let recorded = checked.then_some(&recorded);
        for (number, query) in queries.iter().enumerate() {
            note(&format!(
                "{} {}/{}: {}",
                data.name(),
                number + 1,
                queries.len(),
                query.name
            ));
            report
                .queries
                .push(measure_query(query, options, engines, recorded));
        }
    }
    report.queries.sort_by_key(|query| query.family);
    Ok(report)
}

fn load(
    data: DataSet,
    files: &[PathBuf],
    options: &Options,
    engines: &mut [&mut dyn Engine],
    note: &mut impl FnMut(&str),
) -> Result<DataFigures, BenchError> {
    let mut load_seconds = Vec::new();
    let mut triples = Vec::new();
    for engine in engines.iter_mut() {
        note(&format!("loading {} into {}", data.name(), engine.name()));
        let start = Instant::now();
        triples.push(engine.load(files, options.load_threads)?);
        load_seconds.push(start.elapsed().as_secs_f64());
    }
    if let Some(&other) = triples.iter().find(|&&count| count != triples[0]) {
        return Err(BenchError::TriplesDiffer {
            file: files[0].clone(),
            expected: other,
            found: triples[0],
        });
    }
    Ok(DataFigures {
        data,
        triples: triples[0],
        load_seconds,
        checked: false,
    })
}

fn measure_query(
    query: &Query,
    options: &Options,
    engines: &mut [&mut dyn Engine],
    recorded: Option<&Recorded>,
) -> OperatorFigures {
    let text = query.full_text();
    let mut figures = OperatorFigures {
        name: query.name.to_string(),
        family: query.family,
        data: query.data,
        rows: None,
        hash: None,
        engines: Vec::new(),
        faults: Vec::new(),
    };
    let mut ended = Vec::with_capacity(engines.len());
    for engine in engines.iter_mut() {
        ended.push(match engine.answer(&text, options.limit) {
            Ok(Some(answer)) => {
                compare(engine.name(), query, answer, &mut figures);
                None
            }
            Ok(None) => Some(Figure::gave_up(options.limit)),
            Err(error) => Some(Figure::failed(&error)),
        });
    }
    if let Some(fault) = recorded.and_then(|recorded| recorded.fault(query, &figures)) {
        figures.faults.push(fault);
    }
    let bounds = Bounds {
        max_runs: MAX_RUNS,
        budget: options.budget,
        limit: options.limit,
    };
    figures.engines = by_turns(ended, bounds, |engine| {
        let start = Instant::now();
        let whole = engines[engine].run(&text, options.limit)?;
        Ok(whole.map(|()| start.elapsed()))
    });
    for (engine, figure) in engines.iter().zip(&figures.engines) {
        if let Figure::Failed { reason } = figure {
            figures.faults.push(format!("{}: {reason}", engine.name()));
        }
    }
    figures
}

/// Notes the first answer, and where a later one differs from it.
fn compare(engine: &str, query: &Query, answer: Answer, figures: &mut OperatorFigures) {
    let hash = answer.hash(query.check);
    match (figures.rows, figures.hash) {
        (Some(rows), Some(known)) if (rows, known) != (answer.rows, hash) => {
            let what = match rows == answer.rows {
                true => "other rows or another order".to_owned(),
                false => format!("{} rows, not {rows}", answer.rows),
            };
            figures.faults.push(format!("{engine} has {what}"));
        }
        (Some(_), Some(_)) => {}
        _ => (figures.rows, figures.hash) = (Some(answer.rows), Some(hash)),
    }
}
