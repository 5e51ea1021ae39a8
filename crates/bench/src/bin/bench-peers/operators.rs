//! The operator benchmark beside the other engine: how is it asked for, and how does the other
//! engine take part?

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use jindou_bench::BenchError;
use jindou_bench::data;
use jindou_bench::operators::{
    Answer, DEFAULT_SETS, Digest, Engine, Family, Jindou, Options, UNIVERSITIES, measure,
};
use oxigraph::io::{RdfFormat, RdfSerializer};
use oxigraph::sparql::results::{QueryResultsFormat, QueryResultsSerializer};
use oxigraph::sparql::{CancellationToken, QueryEvaluationError, QueryResults, SparqlEvaluator};
use oxigraph::store::Store;

use crate::peer::{Counted, failed};

/// Measure each operator beside oxigraph: many queries over LUBM, WatDiv and SSB
#[derive(Debug, clap::Args)]
pub(crate) struct OperatorArguments {
    /// Only queries with this in their name
    #[arg(long, value_name = "PATTERN")]
    only: Option<String>,
    /// Only queries of this family; may be given several times
    #[arg(long, value_name = "F")]
    family: Vec<Family>,
    /// Universities of the LUBM data
    #[arg(long, value_name = "N", default_value_t = UNIVERSITIES)]
    universities: u32,
    /// Threads of one query of ours [default: as the engine decides]; the other has one always
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Seconds for the timed runs of one query in one engine
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    budget: f64,
    /// Seconds after which a query is given up
    #[arg(long, value_name = "SECONDS", default_value_t = 20.0)]
    limit: f64,
    /// Folder of generated and unpacked data
    #[arg(long, value_name = "DIR", default_value = data::DEFAULT_FOLDER)]
    data: PathBuf,
    /// Folder of the packed data sets of WatDiv and SSB
    #[arg(long, value_name = "DIR", default_value = DEFAULT_SETS)]
    sets: PathBuf,
    /// Write the figures as JSON to this file, too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the answers that both engines agree on to this file, as they are kept in the source
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

pub(crate) fn compare(arguments: OperatorArguments) -> anyhow::Result<()> {
    let seconds = |value: f64| {
        Duration::try_from_secs_f64(value).with_context(|| format!("{value} is no time"))
    };
    let options = Options {
        universities: arguments.universities,
        folder: arguments.data,
        sets: arguments.sets,
        only: arguments.only,
        families: arguments.family,
        budget: seconds(arguments.budget)?,
        limit: seconds(arguments.limit)?,
        ..Options::default()
    };
    let mut ours = Jindou::new(arguments.threads);
    let mut theirs = Oxigraph::new()?;
    let report = measure(&options, &mut [&mut ours, &mut theirs], |step| {
        eprintln!("{step} ...");
    })?;
    print!("{report}");
    if let Some(path) = &arguments.json {
        let text = serde_json::to_string_pretty(&report)? + "\n";
        std::fs::write(path, text).with_context(|| path.display().to_string())?;
    }
    if let Some(path) = &arguments.record {
        std::fs::write(path, report.record()).with_context(|| path.display().to_string())?;
    }
    if !report.is_right() {
        bail!("some answers are wrong or missing: see the lines that begin with WRONG");
    }
    Ok(())
}

/// The other engine, in memory, embedded.
pub(crate) struct Oxigraph {
    store: Store,
    watchdog: Watchdog,
}

impl Oxigraph {
    pub(crate) fn new() -> anyhow::Result<Self> {
        Ok(Self {
            store: Store::new()?,
            watchdog: Watchdog::start(),
        })
    }

    /// Runs a query and hands its results on; `None` if it was given up.
    fn query<T>(
        &self,
        text: &str,
        limit: Duration,
        take: impl FnOnce(QueryResults<'static>) -> Result<T, QueryEvaluationError>,
    ) -> Result<Option<T>, BenchError> {
        let token = CancellationToken::new();
        let _watch = self.watchdog.watch(limit, token.clone());
        let query = SparqlEvaluator::new()
            .with_cancellation_token(token)
            .parse_query(text)
            .map_err(|e| failed(&e))?;
        let outcome = query.on_store(&self.store).execute().and_then(take);
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(QueryEvaluationError::Cancelled) => Ok(None),
            Err(error) => Err(failed(&error)),
        }
    }
}

impl Engine for Oxigraph {
    fn name(&self) -> &str {
        "oxigraph"
    }

    fn load(&mut self, files: &[PathBuf], threads: usize) -> Result<u64, BenchError> {
        self.store = Store::new().map_err(|e| failed(&e))?;
        let mut loader = self.store.bulk_loader().with_num_threads(threads);
        for file in files {
            let ending = file.extension().and_then(|ending| ending.to_str());
            let format = ending.and_then(RdfFormat::from_extension);
            loader
                .parallel_load_from_file(format.unwrap_or(RdfFormat::NTriples), file)
                .map_err(|e| failed(&e))?;
        }
        loader.commit().map_err(|e| failed(&e))?;
        Ok(self.store.len().map_err(|e| failed(&e))? as u64)
    }

    fn answer(&mut self, text: &str, limit: Duration) -> Result<Option<Answer>, BenchError> {
        self.query(text, limit, |results| match results {
            QueryResults::Boolean(value) => Ok(Answer::boolean(value)),
            QueryResults::Solutions(solutions) => {
                let names: Vec<&str> = solutions.variables().iter().map(|v| v.as_str()).collect();
                let mut digest = Digest::new(&names);
                for solution in solutions {
                    let solution = solution?;
                    digest.solution(|column| Some(solution.get(column)?.as_ref()));
                }
                Ok(digest.finish())
            }
            QueryResults::Graph(triples) => {
                let mut digest = Digest::new::<&str>(&[]);
                for triple in triples {
                    digest.triple(triple?.as_ref());
                }
                Ok(digest.finish())
            }
        })
    }

    fn run(&mut self, text: &str, limit: Duration) -> Result<Option<()>, BenchError> {
        self.query(text, limit, |results| write(results, Counted(0)))
    }
}

/// Writes a result by the engine's own serializers.
fn write(results: QueryResults<'_>, out: Counted) -> Result<(), QueryEvaluationError> {
    match results {
        QueryResults::Boolean(value) => {
            std::hint::black_box(value);
        }
        QueryResults::Solutions(solutions) => {
            let mut serializer = QueryResultsSerializer::from_format(QueryResultsFormat::Tsv)
                .serialize_solutions_to_writer(out, solutions.variables().to_vec())
                .map_err(unexpected)?;
            for solution in solutions {
                serializer.serialize(&solution?).map_err(unexpected)?;
            }
            serializer.finish().map_err(unexpected)?;
        }
        QueryResults::Graph(triples) => {
            let mut serializer = RdfSerializer::from_format(RdfFormat::NTriples).for_writer(out);
            for triple in triples {
                serializer.serialize_triple(&triple?).map_err(unexpected)?;
            }
            serializer.finish().map_err(unexpected)?;
        }
    }
    Ok(())
}

/// Counting bytes does not fail.
fn unexpected(error: io::Error) -> QueryEvaluationError {
    QueryEvaluationError::Unexpected(Box::new(error))
}

/// How often the watchdog looks.
const LOOK: Duration = Duration::from_millis(20);

type Watched = Arc<Mutex<Option<(Instant, CancellationToken)>>>;

/// Cancels a query that takes too long. One thread for all queries: to start one for each would
/// count as time of the short ones.
struct Watchdog {
    watched: Watched,
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    fn start() -> Self {
        let watched = Watched::default();
        let (stop, stopped) = sync_channel::<()>(0);
        let looked_at = Arc::clone(&watched);
        let thread = std::thread::spawn(move || {
            // Nothing is ever sent: the channel ends when the watchdog does.
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(LOOK) {
                if let Some((end, token)) = &*lock(&looked_at)
                    && Instant::now() >= *end
                {
                    token.cancel();
                }
            }
        });
        Self {
            watched,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    fn watch(&self, limit: Duration, token: CancellationToken) -> Watch<'_> {
        *lock(&self.watched) = Some((Instant::now() + limit, token));
        Watch(&self.watched)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // It only looks at a clock; if that failed, no query needs it any more.
            let _ = thread.join();
        }
    }
}

/// A query under watch, until this is dropped.
struct Watch<'w>(&'w Watched);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        *lock(self.0) = None;
    }
}

fn lock(
    watched: &Mutex<Option<(Instant, CancellationToken)>>,
) -> MutexGuard<'_, Option<(Instant, CancellationToken)>> {
    // What it guards is replaced whole.
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}
