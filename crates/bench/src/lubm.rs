//! Which figures are taken on the Lehigh University Benchmark, and in which order?

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jindou_datagen::lubm::{Counts, Lubm, QUERIES};
use jindou_engine::{Config, Database};

use crate::BenchError;
use crate::child::{self, ChildProgram, ChildReport, Piped, Task};
use crate::data::{self, DataFile};
use crate::generated::Generated;
use crate::http::{Connection, query_request};
use crate::light;
use crate::machine::Machine;
use crate::report::{LoadFigures, QueryFigures, Report, StoredFigures};
use crate::run::{self, Outcome};
use crate::serving::{QUERY_PATH, Serving};
use crate::timing::Timing;

/// Connections of the light load over HTTP.
const HTTP_CONNECTIONS: usize = 8;

/// What to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// Universities of the data.
    pub universities: u32,
    /// Seed of the data; the literature uses 0.
    pub seed: u64,
    /// Where the data's file is kept.
    pub folder: PathBuf,
    /// Threads of a load, of the second run of each query, and of the light load.
    pub threads: usize,
    /// Timed runs of each query in each way.
    pub runs: u32,
    /// Whether to measure over a loopback HTTP server, too.
    pub http: bool,
    /// How long each light load runs.
    pub light: Duration,
    /// How to start a fresh process; without it, memory and a stored database are not measured.
    pub child: Option<ChildProgram>,
    /// Where to keep a stored database, whose opening is measured; made if it is not there.
    pub location: Option<PathBuf>,
    /// Pipe the generated data into a load with this memory limit, in bytes, and query the store it makes at `location`: for
    /// data that fits neither into memory nor into a file. A store that is there already is queried as it is.
    pub memory: Option<u64>,
}

impl Options {
    /// The usual measurement of this many universities.
    #[must_use]
    pub fn new(universities: u32) -> Self {
        Self {
            universities,
            seed: 0,
            folder: data::DEFAULT_FOLDER.into(),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            runs: 20,
            http: false,
            light: Duration::from_secs(3),
            child: None,
            location: None,
            memory: None,
        }
    }
}

/// Measures; `note` is told what is being done, a few words at a time. Holds the database, one
/// batch of text, and a few thousand drawn queries a thread.
///
/// # Errors
/// Any [`BenchError`]; [`BenchError::RowsDiffer`] and [`BenchError::TriplesDiffer`] mean a wrong
/// answer.
pub fn measure(options: &Options, mut note: impl FnMut(&str)) -> Result<Report, BenchError> {
    let data = Lubm::new(options.universities, options.seed);
    let (database, load, stored) = match options.memory {
        Some(memory) => piped(options, data, memory, &mut note)?,
        None => from_file(options, data, &mut note)?,
    };
    let serving = match options.http {
        true => Some(Serving::start(database.clone())?),
        false => None,
    };
    let mut queries = Vec::with_capacity(QUERIES.len());
    for (name, text) in QUERIES {
        note(name);
        queries.push(query(&database, serving.as_ref(), (name, text), options)?);
    }
    note("light queries");
    let light = light::in_process(&database, data, options.threads, options.light)?;
    let mut http_light = Vec::new();
    if let Some(serving) = &serving {
        for class in light::HTTP_CLASSES {
            note("light queries over HTTP");
            let load = light::over_http(serving, data, class, HTTP_CONNECTIONS, options.light)?;
            http_light.push(load);
        }
    }
    if let Some(serving) = serving {
        serving.stop()?;
    }
    Ok(Report {
        machine: Machine::here(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        optimized: !cfg!(debug_assertions),
        universities: options.universities,
        seed: options.seed,
        load,
        queries,
        light,
        http_light,
        stored,
    })
}

type Loaded = (Database, LoadFigures, Option<StoredFigures>);

/// Loads a file into memory.
fn from_file(
    options: &Options,
    data: Lubm,
    note: &mut impl FnMut(&str),
) -> Result<Loaded, BenchError> {
    note("generating the data");
    let file = data::lubm_file(&options.folder, data)?;
    let child = options.child.as_ref();
    let alone = match child {
        Some(child) => {
            note("loading in a fresh process");
            Some(child.run(&Task::Load(file.path.clone(), options.threads))?)
        }
        None => None,
    };
    let stored = match (child, &options.location) {
        (Some(child), Some(location)) => {
            note("storing, and opening in a fresh process");
            Some(stored(child, &file, location, options.threads)?)
        }
        _ => None,
    };
    note("loading");
    let start = Instant::now();
    let database = child::load(&file.path, options.threads)?;
    let seconds = start.elapsed().as_secs_f64();
    let statistics = database.statistics();
    check_triples(&file.path, &file.counts, statistics.triples)?;
    let load = LoadFigures {
        threads: options.threads,
        file_bytes: Some(file.bytes),
        statements: file.counts.statements(),
        triples: statistics.triples,
        seconds: Some(alone.as_ref().map_or(seconds, |alone| alone.seconds)),
        footprint_bytes: statistics.total_bytes(),
        memory: alone.map(|alone| alone.memory),
    };
    Ok((database, load, stored))
}

/// Pipes the generated data into a load with this memory limit, in a fresh process, and opens the store.
fn piped(
    options: &Options,
    data: Lubm,
    memory: u64,
    note: &mut impl FnMut(&str),
) -> Result<Loaded, BenchError> {
    let (Some(child), Some(location)) = (&options.child, &options.location) else {
        return Err(BenchError::Setup {
            reason:
                "a load within some memory needs a folder for its store, and a process of its own"
                    .to_owned(),
        });
    };
    // What a load left that was killed is no store.
    let piped: Option<ChildReport> = match Database::is_at(location)? {
        true => None,
        false => {
            note("loading what is generated, in a fresh process");
            let task = Task::Pipe(Piped {
                graph: Generated::Lubm(data),
                location: location.clone(),
                threads: options.threads,
                memory: Some(memory),
            });
            Some(child.run(&task)?)
        }
    };
    note("opening in a fresh process");
    let opened = child.run(&Task::Open(location.clone()))?;
    let counts = data.count()?;
    check_triples(location, &counts, opened.triples)?;
    note("opening");
    let database = Database::open(location, Config::default())?;
    let load = LoadFigures {
        threads: options.threads,
        file_bytes: piped.as_ref().map(|piped| piped.text_bytes),
        statements: counts.statements(),
        triples: opened.triples,
        seconds: piped.as_ref().map(|piped| piped.seconds),
        footprint_bytes: opened.footprint_bytes,
        memory: piped.as_ref().map(|piped| piped.memory),
    };
    let stored = StoredFigures {
        create_seconds: piped.map(|piped| piped.seconds),
        file_bytes: data::folder_bytes(location)?,
        open_seconds: opened.seconds,
        memory: opened.memory,
    };
    Ok((database, load, Some(stored)))
}

/// What is known of a query's answer without running it: with seed 0, these have the same rows
/// whatever the number of universities.
#[must_use]
pub fn known_rows(query: &str, data: Lubm) -> Option<u64> {
    if data.seed != 0 || data.first != 0 || data.universities == 0 {
        return None;
    }
    match query {
        "q4" | "q5" => Some(10),
        "q6" => Some(125),
        _ => None,
    }
}

fn check_triples(path: &Path, counts: &Counts, found: u64) -> Result<(), BenchError> {
    let expected = counts.distinct();
    if expected == found {
        return Ok(());
    }
    Err(BenchError::TriplesDiffer {
        file: path.to_owned(),
        expected,
        found,
    })
}

fn query(
    database: &Database,
    serving: Option<&Serving>,
    (name, text): (&str, &str),
    options: &Options,
) -> Result<QueryFigures, BenchError> {
    let data = Lubm::new(options.universities, options.seed);
    let (first, first_run) = run::once(|| run::as_ids(database, text, 1))?;
    let rows = first.rows;
    if let Some(known) = known_rows(name, data) {
        run::check_rows(name, "on one thread", known, rows)?;
    }
    let timed = |way, run: &mut dyn FnMut() -> Result<Outcome, BenchError>| {
        run::timed((name, way, rows), options.runs, run)
    };
    let ids = timed("on one thread", &mut || run::as_ids(database, text, 1))?;
    let threads = options.threads;
    let ids_parallel = timed("on several threads", &mut || {
        run::as_ids(database, text, threads)
    })?;
    let mut out = Vec::new();
    let text_bytes = run::as_tsv(database, text, 1, &mut out)?.text_bytes;
    let tsv = timed("as TSV", &mut || run::as_tsv(database, text, 1, &mut out))?;
    let http = match serving {
        Some(serving) => Some(over_http(serving, (name, text), rows, options.runs)?),
        None => None,
    };
    Ok(QueryFigures {
        name: name.to_owned(),
        rows,
        text_bytes,
        first_run_ms: first_run.as_secs_f64() * 1e3,
        ids,
        ids_parallel,
        tsv,
        http,
    })
}

fn over_http(
    serving: &Serving,
    (name, text): (&str, &str),
    rows: u64,
    runs: u32,
) -> Result<Timing, BenchError> {
    let mut connection = Connection::open(serving.address)?;
    let request = query_request(serving.address, QUERY_PATH, text);
    run::timed((name, "over HTTP", rows), runs, || {
        let (answer, lines) = connection.lines(&request)?;
        // The first line names the variables.
        Ok(Outcome {
            rows: lines.saturating_sub(1),
            text_bytes: answer.body_bytes,
        })
    })
}

fn stored(
    child: &ChildProgram,
    file: &DataFile,
    location: &Path,
    threads: usize,
) -> Result<StoredFigures, BenchError> {
    let created = if Database::is_at(location)? {
        None
    } else {
        let task = Task::Create(file.path.clone(), location.to_owned(), threads);
        Some(child.run(&task)?.seconds)
    };
    let opened = child.run(&Task::Open(location.to_owned()))?;
    check_triples(&file.path, &file.counts, opened.triples)?;
    Ok(StoredFigures {
        create_seconds: created,
        file_bytes: data::folder_bytes(location)?,
        open_seconds: opened.seconds,
        memory: opened.memory,
    })
}
