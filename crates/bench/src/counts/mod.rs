//! What do counts of the ends of edges cost, and closures, when they are asked first, again, and after changes?
//!
//! [`measure`] loads the three data sets of [`operators`](crate::operators) and two made graphs into one database. Each query is asked
//! of a base that nobody has asked anything of, then again, then with changes that are not merged, and first after
//! these were merged. With the changes an answer is the same before and after the merge; otherwise the report is
//! [wrong](CountReport::is_right).

mod made;
mod queries;
mod report;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use jindou_engine::ingest::{LoadOptions, Progress, Source};
use jindou_engine::{Database, MergePolicy, QueryOptions, QueryResults};

pub use report::{CountReport, Counted};

use crate::BenchError;
use crate::data;
use crate::figure::Figure;
use crate::machine::Machine;
use crate::operators::{Answer, Check, DEFAULT_SETS, DataSet, answer_of, within_limit};
use crate::operators::{Found, files};
use crate::run;
use crate::timing::Timing;

/// What to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// Universities of the LUBM data; its seed is 0.
    pub universities: u32,
    /// How often each query is asked again.
    pub runs: u32,
    /// Quads that are inserted, and not merged.
    pub changes: u32,
    /// Time after which a query is given up.
    pub limit: Duration,
    /// Threads of a query; as the engine decides if none.
    pub threads: Option<usize>,
    /// Where generated and unpacked data is kept.
    pub folder: PathBuf,
    /// Where the packed data sets are.
    pub sets: PathBuf,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            universities: 80,
            runs: 5,
            changes: 1000,
            limit: Duration::from_secs(60),
            threads: None,
            folder: data::DEFAULT_FOLDER.into(),
            sets: DEFAULT_SETS.into(),
        }
    }
}

/// Measures; `note` is given what is being done, a few words at a time.
///
/// # Errors
/// Data that cannot be made ready or loaded. A query that fails is in the report.
pub fn measure(options: &Options, mut note: impl FnMut(&str)) -> Result<CountReport, BenchError> {
    let mut config = jindou_engine::Config::default();
    config.merge = MergePolicy::never();
    let database = Database::with_config(config);
    let mut report = CountReport {
        machine: Machine::here(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        optimized: !cfg!(debug_assertions),
        universities: options.universities,
        quads: 0,
        changes: options.changes,
        runs: options.runs,
        limit_ms: options.limit.as_secs_f64() * 1e3,
        absent: Vec::new(),
        queries: Vec::new(),
    };
    load(&database, options, &mut report, &mut note)?;
    let named = || queries::COUNTS.into_iter().chain(queries::CLOSURES);
    let bench = Bench {
        database: &database,
        options,
    };
    for (name, text) in named() {
        note(name);
        let (first, _) = bench.ask(text, 1);
        let (again, answer) = bench.ask(text, options.runs);
        let rows = answer.as_ref().map(|answer| answer.rows);
        report.queries.push(Counted {
            name: name.to_owned(),
            rows,
            first,
            again,
            changed: Figure::gave_up(Duration::ZERO),
            merged: Figure::gave_up(Duration::ZERO),
            fault: None,
        });
    }
    note("changes");
    database.update(&changes(options.changes))?;
    let mut answers = Vec::new();
    for ((name, text), counted) in named().zip(&mut report.queries) {
        note(&format!("{name}, with changes"));
        let (changed, answer) = bench.ask(text, 1);
        counted.changed = changed;
        answers.push(answer);
    }
    note("merging");
    database.compact()?;
    for (((name, text), counted), answer) in named().zip(&mut report.queries).zip(answers) {
        note(&format!("{name}, merged"));
        let (merged, again) = bench.ask(text, 1);
        counted.merged = merged;
        counted.fault = fault(answer, again);
    }
    Ok(report)
}

/// What is wrong with one of two answers about the same data, if they were both given.
fn fault(one: Option<Answer>, other: Option<Answer>) -> Option<String> {
    let (one, other) = (one?, other?);
    let is_same = one.same(&other, Check::Rows);
    (!is_same).then(|| "another answer once the changes are merged".to_owned())
}

fn load(
    database: &Database,
    options: &Options,
    report: &mut CountReport,
    note: &mut impl FnMut(&str),
) -> Result<(), BenchError> {
    note("making data");
    let mut paths = vec![made::file(&options.folder)?];
    for data in DataSet::ALL {
        match files(data, options.universities, &options.folder, &options.sets)? {
            Found::Files(mut files) => paths.append(&mut files),
            Found::Absent(path) => report.absent.push(path),
        }
    }
    note("loading");
    let sources = paths.iter().map(Source::path).collect();
    database.load(sources, &LoadOptions::default(), &Progress::default())?;
    report.quads = database.quad_counts().total();
    Ok(())
}

/// Statements of subjects and terms that are new, and of some that are known.
fn changes(count: u32) -> String {
    let mut text = String::from("PREFIX m: <http://made/> INSERT DATA {\n");
    for number in 0..count {
        let line = match number % 4 {
            0 => format!("m:n{number} m:label \"new {number}\" .\n"),
            1 => format!("m:p{number} m:label \"known {number}\"@en .\n"),
            2 => format!("m:p{number} m:knows m:n{number} .\n"),
            _ => format!("_:b{number} m:broader m:c{number} .\n"),
        };
        text.push_str(&line);
    }
    text.push('}');
    text
}

struct Bench<'a> {
    database: &'a Database,
    options: &'a Options,
}

impl Bench<'_> {
    /// Times a query in this many runs, and gives its answer.
    fn ask(&self, text: &str, runs: u32) -> (Figure, Option<Answer>) {
        let mut times = Vec::with_capacity(runs as usize);
        for _ in 0..runs {
            match self.time(text) {
                Ok(Some(time)) => times.push(time),
                Ok(None) => return (Figure::gave_up(self.options.limit), None),
                Err(error) => return (Figure::failed(&error), None),
            }
        }
        let figure = Figure::Timed {
            timing: Timing::of(times),
        };
        match answer_of(self.database, text, self.query_options()) {
            Ok(answer) => (figure, answer),
            Err(error) => (Figure::failed(&error), None),
        }
    }

    /// From its text to its last row as text.
    fn time(&self, text: &str) -> Result<Option<Duration>, BenchError> {
        let begun = Instant::now();
        let results = self.database.query_with(text, self.query_options());
        let written = results.map_err(BenchError::from).and_then(|results| {
            let QueryResults::Solutions(solutions) = results else {
                unreachable!("all of the queries select");
            };
            run::write_tsv(solutions, &mut Vec::new()).map(drop)
        });
        let time = begun.elapsed();
        Ok(within_limit(written)?.map(|()| time))
    }

    fn query_options(&self) -> QueryOptions {
        QueryOptions {
            threads: self.options.threads,
            timeout: Some(self.options.limit),
            ..QueryOptions::default()
        }
    }
}
