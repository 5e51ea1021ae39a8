//! What keeps a measurement from being taken?

use std::path::PathBuf;

use jindou_datagen::DatagenError;
use jindou_engine::EngineError;
use jindou_engine::results::{ResultsError, WriteError};
use jindou_server::ServerError;

use crate::http::HttpError;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The data cannot be generated.
    #[error(transparent)]
    Datagen(#[from] DatagenError),
    /// The engine refused a load or a query.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A result could not be written as text.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// An answer could not be written for another reason.
    #[error(transparent)]
    Write(WriteError),
    /// The server did not start or failed.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// An exchange over HTTP failed.
    #[error("over HTTP: {0}")]
    Http(#[from] HttpError),
    /// What a measurement needs could not be made.
    #[error("cannot prepare the measurement: {reason}")]
    Setup {
        /// Why not.
        reason: String,
    },
    /// A file or folder could not be used.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// What the operating system tells about this process could not be read.
    #[error("cannot tell the memory of this process: {reason}")]
    Memory {
        /// What is missing.
        reason: String,
    },
    /// No query of a kind was answered, so that there is nothing to tell of it.
    #[error("nothing was measured: {reason}")]
    NoLight {
        /// What the first was told.
        reason: String,
    },
    /// The query's form gives no rows.
    #[error("{query} gives no table of solutions")]
    NotSolutions {
        /// The query's name or text.
        query: String,
    },
    /// Two ways of running a query, or the query and what is known of it, disagree.
    #[error("{query} has {found} rows {way}, but {expected} are right")]
    RowsDiffer {
        /// The query's name.
        query: String,
        /// How it was run.
        way: &'static str,
        /// The right number.
        expected: u64,
        /// The number found.
        found: u64,
    },
    /// The store holds another number of triples than the generator made.
    #[error(
        "{} holds {found} triples once loaded, but {expected} were generated; if the file is from \
         another version, remove it",
        file.display()
    )]
    TriplesDiffer {
        /// The file loaded.
        file: PathBuf,
        /// The number generated.
        expected: u64,
        /// The number loaded.
        found: u64,
    },
    /// Two ways of running a query have as many rows, but others.
    #[error("{query} has other rows {way} than after a load of the same data")]
    AnswersDiffer {
        /// The query's name.
        query: String,
        /// How it was run.
        way: &'static str,
    },
    /// A transaction changed another number of triples than it names, all of which change something.
    #[error("transactions changed {found} triples, but named {expected} that change something")]
    ChangesDiffer {
        /// The number named.
        expected: u64,
        /// The number that the engine reported.
        found: u64,
    },
    /// The store holds another number of triples than what was done to it leaves.
    #[error("the store holds {found} triples {when}, but {expected} are right")]
    HeldDiffer {
        /// At which point.
        when: &'static str,
        /// The right number.
        expected: u64,
        /// The number found.
        found: u64,
    },
    /// Streams took another number of tuples than were pushed.
    #[error("streams took {found} tuples in time, but {expected} were pushed")]
    TuplesDiffer {
        /// The number pushed.
        expected: u64,
        /// The number that the streams report.
        found: u64,
    },
    /// A tuple of a complete batch is not found.
    #[error("a query does not see a tuple of a batch that is complete: {statement}")]
    NotSeen {
        /// The tuple.
        statement: String,
    },
    /// There is nothing to merge.
    #[error("a merge found no changes, though {changes} triples were inserted before it")]
    NothingMerged {
        /// The triples.
        changes: u64,
    },
    /// A process started to measure something by itself failed.
    #[error("the measuring process `{command}` failed: {reason}")]
    Child {
        /// Its command line.
        command: String,
        /// What it said, or how it ended.
        reason: String,
    },
    /// The engine compared with failed.
    #[error("the other engine: {reason}")]
    Peer {
        /// What it said.
        reason: String,
    },
    /// Data that someone else publishes are not there.
    #[error(
        "{} is not there: give the folder of the data set, which has its parts under their own names",
        path.display()
    )]
    NoData {
        /// The folder or file.
        path: PathBuf,
    },
    /// There is no query of this name.
    #[error("there is no query {name}; there are {known}")]
    NoQuery {
        /// What was asked for.
        name: String,
        /// All names.
        known: String,
    },
    /// The text of a query cannot be read.
    #[error("{name}: {source}")]
    QueryText {
        /// The query's name.
        name: String,
        /// What is wrong with it.
        source: Box<jindou_syntax::Error>,
    },
    /// A line of a file is not what it should be.
    #[error("{}: line {line}: {reason}", path.display())]
    BadLine {
        /// The file.
        path: PathBuf,
        /// The line's number, from 1.
        line: usize,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Something that is waited for did not happen in time.
    #[error("{what} within {seconds} s")]
    Overdue {
        /// What did not happen.
        what: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// An update that was acknowledged is not there.
    #[error(
        "{lost} of {acknowledged} acknowledged updates are not at {place}, the one of {first} among them"
    )]
    UpdateLost {
        /// Where it is not.
        place: String,
        /// How many are not.
        lost: u64,
        /// How many were acknowledged.
        acknowledged: u64,
        /// What one of them inserted.
        first: String,
    },
    /// An update that was refused was made.
    #[error("{made} updates that were refused were made at {place}, the one of {first} among them")]
    UpdateNotRefused {
        /// Where it is.
        place: String,
        /// How many are.
        made: u64,
        /// What one of them inserted.
        first: String,
    },
    /// A measuring thread ended early.
    #[error("a measuring thread panicked")]
    Thread,
}

impl BenchError {
    /// Wraps an error about this path.
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}

impl From<WriteError> for BenchError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Query(error) => Self::Engine(error),
            WriteError::Results(error) => Self::Results(error),
            other => Self::Write(other),
        }
    }
}
