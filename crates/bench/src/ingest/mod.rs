//! How many tuples a second do streams take?
//!
//! [`measure`] generates the five streams of LSBench at the rates of the Wukong+S paper into memory and
//! pushes them as fast as they are taken, in each of some [cases](Case) to a database of its own. Each
//! thread owns some of the streams and pushes [`Options::push_ms`] of each of them in turn; no thread goes far
//! ahead, so that every case has the same mix of tuples. With a rate, the streams have so many
//! tuples a second, come at the pace of the clock, and are made as they go.

mod feed;
mod pace;
mod paced;
mod push;
mod report;

use std::fmt::{self, Display, Formatter, Write as _};
use std::fs;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use jindou_datagen::lsbench::Stream;
use jindou_engine::{Config, Database, MergePolicy, Predicates, StreamDefinition};
use jindou_server::{HeavyPriority, MemoryLimits};
use serde::{Deserialize, Serialize};

pub use report::{IngestReport, IngestRow};

use crate::machine::Machine;
use crate::serving::Serving;
use crate::settle::settle;
use crate::store_folder::StoreFolder;
use crate::{BenchError, data};
use feed::Feed;
use push::push;

/// How much longer than the policy's quiet time the background must have rested.
const BEYOND_IDLE: Duration = Duration::from_secs(1);

/// Where tuples go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Case {
    /// Timing data, into windows of a second that one query reads.
    Timing,
    /// Timeless data, into a graph in memory.
    Memory,
    /// Timeless data, into a graph in a folder, each transaction on the device before the next.
    Stored,
}

impl Case {
    /// All.
    pub const ALL: [Self; 3] = [Self::Timing, Self::Memory, Self::Stored];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Timing => "timing",
            Self::Memory => "memory",
            Self::Stored => "stored",
        }
    }
}

impl Display for Case {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Case {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|one| one.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("no such case; there are {names}")
        })
    }
}

/// What to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// Only this case.
    pub only: Option<Case>,
    /// Users of the social graph, whose seed is 0.
    pub users: u32,
    /// Time of each case.
    pub duration: Duration,
    /// Seconds of the streams, after which a case ends, too.
    pub stream_seconds: u64,
    /// Milliseconds of a stream that are pushed together, where they are pushed as fast as they are taken.
    pub push_ms: u64,
    /// Threads that push; more than there are streams are not used.
    pub threads: usize,
    /// Tuples a second of all streams, pushed at the pace of the clock, instead of as fast as they are taken.
    pub rate: Option<f64>,
    /// Whether they push over HTTP.
    pub http: bool,
    /// When the background merges.
    pub merge: MergePolicy,
    /// Where the folder of the stored case is made; it is removed afterwards.
    pub location: PathBuf,
}

impl Options {
    /// The usual measurement of so much time.
    #[must_use]
    pub fn new(duration: Duration) -> Self {
        Self {
            only: None,
            users: 1_000,
            duration,
            // Enough for 800,000 tuples a second.
            stream_seconds: (duration.as_secs_f64() * 6.0).ceil() as u64,
            push_ms: feed::BATCH_MS,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            rate: None,
            http: false,
            merge: MergePolicy::default(),
            location: data::DEFAULT_FOLDER.into(),
        }
    }

    fn config(&self) -> Config {
        let mut config = match self.http {
            true => MemoryLimits::default().engine_config(HeavyPriority::default()),
            false => Config::default(),
        };
        config.merge = self.merge;
        config
    }
}

/// Measures; `note` is given what is being done, a few words at a time.
///
/// # Errors
/// [`BenchError::TuplesDiffer`] if tuples got lost; any other [`BenchError`].
pub fn measure(options: &Options, mut note: impl FnMut(&str)) -> Result<IngestReport, BenchError> {
    let feeds = match options.rate {
        Some(_) => Vec::new(),
        None => {
            note("generating");
            feed::generate(options)?
        }
    };
    let mut rows = Vec::new();
    for case in Case::ALL {
        if options.only.is_none_or(|only| only == case) {
            note(case.name());
            rows.push(one(case, options, &feeds)?);
            jindou_fabric::allocator::release_free_memory();
        }
    }
    let batches = feeds.iter().flat_map(|feed| &feed.batches);
    let (tuples, text_bytes) = batches.fold((0, 0), |(tuples, bytes), batch| {
        (tuples + batch.tuples, bytes + batch.lines.len() as u64)
    });
    Ok(IngestReport {
        machine: Machine::here(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        optimized: !cfg!(debug_assertions),
        users: options.users,
        generated: tuples,
        text_bytes,
        rate: options.rate,
        push_ms: options.push_ms,
        threads: options.threads.clamp(1, Stream::ALL.len()),
        is_served: options.http,
        rows,
    })
}

fn one(case: Case, options: &Options, feeds: &[Feed]) -> Result<IngestRow, BenchError> {
    // Declared before the database, which must be gone before the folder.
    let folder;
    let config = options.config();
    let database = match case {
        Case::Stored => {
            let parent = &options.location;
            fs::create_dir_all(parent).map_err(BenchError::io(parent))?;
            folder = StoreFolder::new(parent, "ingest");
            Database::open_or_create(folder.path(), config)?
        }
        Case::Timing | Case::Memory => Database::with_config(config),
    };
    prepare(&database, case)?;
    let serving = options.http.then(|| Serving::start(database.clone()));
    let serving = serving.transpose()?;
    let server = serving.as_ref().map(|serving| serving.address);
    let pushed = match options.rate {
        Some(rate) => paced::push(&database, server, options, rate)?,
        None => push(&database, server, feeds, options)?,
    };
    let settled =
        (case != Case::Timing).then(|| settle(&database, options.merge.idle + BEYOND_IDLE));
    serving.map_or(Ok(()), Serving::stop)?;
    check_taken(&database, case, pushed.tuples)?;
    let statistics = database.statistics();
    let held_bytes = statistics.total_bytes() + statistics.change_bytes;
    let quads = statistics.triples + statistics.named_quads;
    Ok(IngestRow {
        case,
        seconds: pushed.seconds,
        tuples: pushed.tuples,
        cpu_seconds: pushed.cpu_seconds,
        full: pushed.full,
        is_short: pushed.is_short,
        delays: pushed.delays,
        bytes_a_tuple: settled.map(|_| held_bytes as f64 / quads.max(1) as f64),
        merging_seconds: settled.map(|settled| settled.working.as_secs_f64()),
        is_settled: settled.is_none_or(|settled| settled.is_at_rest),
    })
}

/// Makes the streams, and for timing data the query that reads them all.
fn prepare(database: &Database, case: Case) -> Result<(), BenchError> {
    for stream in Stream::ALL {
        let mut definition = StreamDefinition::new(stream.iri());
        if case != Case::Timing {
            definition.timeless = Some(Predicates::ALL);
        }
        database.create_stream(stream.name(), definition)?;
    }
    if case == Case::Timing {
        let mut text = "SELECT ?p ?o ".to_owned();
        for stream in Stream::ALL {
            let _ = write!(
                text,
                "FROM STREAM <{}> [RANGE 1s STEP 100ms] ",
                stream.iri()
            );
        }
        // Any tuple may be in it, and few are: next to nothing of the time is the query's.
        text += "WHERE { <http://www.ins.cwi.nl/sib/user/u0> ?p ?o }";
        database.register("all", &text)?;
    }
    Ok(())
}

/// Whether every tuple came in time and went where it should.
fn check_taken(database: &Database, case: Case, expected: u64) -> Result<(), BenchError> {
    let streams = database.streams();
    let streams = streams.iter();
    let found: u64 = match case {
        Case::Timing => streams.map(|one| one.tuples - one.unread).sum(),
        Case::Memory | Case::Stored => streams.map(|one| one.absorbed).sum(),
    };
    match found == expected {
        true => Ok(()),
        false => Err(BenchError::TuplesDiffer { expected, found }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(threads: usize, http: bool, only: Option<Case>) -> IngestReport {
        let folder = tempfile::tempdir().unwrap();
        let mut options = Options {
            only,
            users: 50,
            stream_seconds: 1,
            threads,
            http,
            push_ms: if http { 250 } else { 100 },
            location: folder.path().to_owned(),
            ..Options::new(Duration::from_secs(60))
        };
        options.merge.idle = Duration::from_millis(20);
        let report = measure(&options, |_| {}).unwrap();
        let left = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 0, "the folder of the store is removed");
        for row in &report.rows {
            assert!(row.is_short && row.is_settled, "{row:?}");
            assert_eq!(row.tuples, report.generated);
        }
        report
    }

    #[test]
    fn every_case_takes_all_tuples() {
        let report = report(3, false, None);
        let cases: Vec<Case> = report.rows.iter().map(|row| row.case).collect();
        assert_eq!((cases, report.threads), (Case::ALL.to_vec(), 3));
        let known = report.rows.iter().map(|row| row.bytes_a_tuple.is_some());
        assert_eq!(known.collect::<Vec<_>>(), [false, true, true]);
        let text = report.to_string();
        assert!(
            text.contains("stored") && text.contains("tuples/s"),
            "{text}"
        );
    }

    #[test]
    fn a_rate_is_kept_at_the_pace_of_the_clock() {
        let folder = tempfile::tempdir().unwrap();
        for (case, http) in [(Case::Stored, false), (Case::Memory, true)] {
            let mut options = Options {
                only: Some(case),
                users: 50,
                threads: 3,
                rate: Some(20_000.0),
                http,
                location: folder.path().to_owned(),
                ..Options::new(Duration::from_secs(2))
            };
            options.merge.idle = Duration::from_millis(20);
            let report = measure(&options, |_| {}).unwrap();
            let row = &report.rows[0];
            assert!((39_000..41_000).contains(&row.tuples), "{row:?}");
            assert_eq!(row.delays.as_ref().unwrap().count, 5 * 20);
            assert!(report.to_string().contains("20,000 tuples/s"), "{report}");
        }
    }

    #[test]
    fn a_server_takes_all_tuples() {
        let report = report(1, true, Some(Case::Timing));
        assert!(report.is_served && report.to_string().contains("over HTTP"));
    }
}
