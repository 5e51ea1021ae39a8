//! What must an engine do to be measured, and how does ours do it?

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jindou_engine::ingest::{LoadOptions, Progress, Source};
use jindou_engine::results::{GraphFormat, GraphWriter};
use jindou_engine::{Database, EngineError, Graph, QueryOptions, QueryResults};
use serde::{Deserialize, Serialize};

use super::answer::{Answer, Digest};
use crate::BenchError;
use crate::run;

/// An engine under measurement, with at most one data set at a time.
pub trait Engine {
    /// Its name in tables.
    fn name(&self) -> &str;

    /// Drops what it holds and loads these files of N-Triples or N-Quads, by their endings; gives
    /// the number of triples and quads.
    ///
    /// # Errors
    /// What the engine says.
    fn load(&mut self, files: &[PathBuf], threads: usize) -> Result<u64, BenchError>;

    /// The whole answer in short; `None` if it takes longer than `limit`.
    ///
    /// # Errors
    /// What the engine says.
    fn answer(&mut self, text: &str, limit: Duration) -> Result<Option<Answer>, BenchError>;

    /// Runs a query and reads all of its result, rows as TSV and graphs as N-Triples if it is to be read as
    /// text, which is thrown away; `None` if it takes longer than `limit`.
    ///
    /// # Errors
    /// What the engine says.
    fn run(&mut self, text: &str, limit: Duration) -> Result<Option<()>, BenchError>;
}

/// Our own engine, embedded.
#[derive(Debug)]
pub struct Jindou {
    name: String,
    database: Database,
    threads: Option<usize>,
    read: Read,
    out: Vec<u8>,
}

/// What of a result is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Read {
    /// All of it as text.
    Text,
    /// The ids of all rows; graphs and truth values as otherwise.
    Ids,
}

impl Jindou {
    /// Without data; queries use as many threads as given, or as the engine decides.
    #[must_use]
    pub fn new(threads: Option<usize>) -> Self {
        Self {
            name: "jindou".to_owned(),
            database: Database::new(),
            threads,
            read: Read::Text,
            out: Vec::new(),
        }
    }

    /// The same by another name, of whose results only that is read.
    #[must_use]
    pub fn named(self, name: String, read: Read) -> Self {
        Self { name, read, ..self }
    }

    fn options(&self, limit: Duration) -> QueryOptions {
        QueryOptions {
            threads: self.threads,
            timeout: Some(limit),
            ..QueryOptions::default()
        }
    }
}

impl Engine for Jindou {
    fn name(&self) -> &str {
        &self.name
    }

    fn load(&mut self, files: &[PathBuf], threads: usize) -> Result<u64, BenchError> {
        self.database = Database::new();
        let options = LoadOptions {
            threads: threads.try_into().unwrap_or(std::num::NonZeroUsize::MIN),
            ..LoadOptions::default()
        };
        let sources = files
            .iter()
            .map(|file: &PathBuf| Source::path(Path::new(file)));
        self.database
            .load(sources.collect(), &options, &Progress::default())?;
        Ok(self.database.quad_counts().total())
    }

    fn answer(&mut self, text: &str, limit: Duration) -> Result<Option<Answer>, BenchError> {
        answer_of(&self.database, text, self.options(limit))
    }

    fn run(&mut self, text: &str, limit: Duration) -> Result<Option<()>, BenchError> {
        let results = self.database.query_with(text, self.options(limit));
        let results = results.map_err(BenchError::from);
        let outcome = results.and_then(|results| match results {
            QueryResults::Boolean(value) => {
                black_box(value);
                Ok(())
            }
            QueryResults::Solutions(mut solutions) if self.read == Read::Ids => {
                run::read(&mut solutions).map(drop)
            }
            QueryResults::Solutions(solutions) => {
                run::write_tsv(solutions, &mut self.out).map(drop)
            }
            QueryResults::Graph(graph) => write_triples(graph, &mut self.out),
        });
        within_limit(outcome)
    }
}

/// The whole answer of a query in short; `None` if it takes longer than the time in `options`.
///
/// # Errors
/// [`BenchError::Engine`].
pub(crate) fn answer_of(
    database: &Database,
    text: &str,
    options: QueryOptions,
) -> Result<Option<Answer>, BenchError> {
    within_limit(digest(database, text, options).map_err(BenchError::from))
}

fn digest(database: &Database, text: &str, options: QueryOptions) -> Result<Answer, EngineError> {
    match database.query_with(text, options)? {
        QueryResults::Boolean(value) => Ok(Answer::boolean(value)),
        QueryResults::Solutions(solutions) => {
            let mut digest = Digest::new(solutions.variables());
            for solution in solutions {
                let solution = solution?;
                digest.solution(|column| solution.get_index(column).map(|term| term.as_ref()));
            }
            Ok(digest.finish())
        }
        QueryResults::Graph(graph) => {
            let mut digest = Digest::new::<&str>(&[]);
            for triple in graph {
                digest.triple(triple?.as_ref());
            }
            Ok(digest.finish())
        }
    }
}

fn write_triples(mut graph: Graph, out: &mut Vec<u8>) -> Result<(), BenchError> {
    let mut writer = GraphWriter::new(GraphFormat::NTriples);
    out.clear();
    while writer.advance(out, &mut graph)?.is_some() {
        black_box(&*out);
        out.clear();
    }
    writer.finish(out)?;
    black_box(&*out);
    Ok(())
}

/// A query that met its time limit has no outcome, which is not an error here.
pub(crate) fn within_limit<T>(outcome: Result<T, BenchError>) -> Result<Option<T>, BenchError> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(BenchError::Engine(EngineError::Timeout { .. })) => Ok(None),
        Err(error) => Err(error),
    }
}
