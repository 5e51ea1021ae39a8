//! How fast are updates, and how much slower are queries after many of them?
//!
//! Three figures of a stored database: what an fsync costs, transactions of one triple from many
//! clients, and INSERT DATA in batches. Then a graph in memory without merges: the seven queries
//! of LUBM after half a million updated triples, beside the same graph merged and the same graph
//! loaded afresh.

use std::fmt::{self, Display, Formatter, Write as _};
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jindou_datagen::lubm::{Lubm, QUERIES};
use jindou_engine::ingest::{Format, Progress, Source};
use jindou_engine::{Config, Database, LoadOptions, MergePolicy};
use rustc_hash::FxHashSet;
use serde::Serialize;

use crate::machine::Machine;
use crate::table::Table;
use crate::timing::Timing;
use crate::{BenchError, data, run};

/// Triples of one request of the batches.
const BATCH: usize = 1_000;
/// Fsyncs timed.
const FSYNCS: u32 = 200;

/// What to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// Universities of the graph that is updated.
    pub universities: u32,
    /// Triples that are updated: half of them new, half of them removed.
    pub triples: u64,
    /// Clients of the transactions of one triple.
    pub clients: usize,
    /// How long these and the batches run.
    pub duration: Duration,
    /// Where data files and the stored database go; the database is removed afterwards.
    pub folder: PathBuf,
    /// Timed runs of each query.
    pub runs: u32,
    /// The query of this name only.
    pub only: Option<String>,
}

impl Options {
    /// The usual measurement of this many universities.
    #[must_use]
    pub fn new(universities: u32) -> Self {
        Self {
            universities,
            triples: 500_000,
            clients: 16,
            duration: Duration::from_secs(5),
            folder: data::DEFAULT_FOLDER.into(),
            runs: 1000,
            only: None,
        }
    }
}

/// The figures.
#[derive(Debug, Clone, Serialize)]
pub struct UpdateReport {
    /// Where they were taken.
    pub machine: Machine,
    /// Universities of the graph that was updated.
    pub universities: u32,
    /// What an fsync of a few bytes takes in the folder.
    pub fsync: Timing,
    /// Clients of the transactions of one triple.
    pub clients: usize,
    /// Transactions of one triple a second, all clients together.
    pub transactions_per_second: f64,
    /// Triples a second in INSERT DATA of [`BATCH`], one client, durable.
    pub batch_triples_per_second: f64,
    /// Triples inserted and removed in the graph of the queries.
    pub updated: u64,
    /// Time for that, in requests of [`BATCH`], in memory.
    pub update_seconds: f64,
    /// Time of the merge.
    pub merge_seconds: f64,
    /// The queries.
    pub queries: Vec<QueryTimes>,
}

/// One query on the same graph in three forms, ids on one thread.
#[derive(Debug, Clone, Serialize)]
pub struct QueryTimes {
    /// Its name.
    pub name: String,
    /// Rows of its answer.
    pub rows: u64,
    /// Loaded afresh.
    pub fresh: Timing,
    /// After the updates, before a merge.
    pub updated: Timing,
    /// After the merge.
    pub merged: Timing,
}

impl QueryTimes {
    fn ratio(&self, timing: &Timing) -> f64 {
        timing.min_ms / self.fresh.min_ms
    }
}

/// Measures; `note` is told what is being done.
///
/// # Errors
/// Any [`BenchError`].
pub fn measure(options: &Options, mut note: impl FnMut(&str)) -> Result<UpdateReport, BenchError> {
    fs::create_dir_all(&options.folder).map_err(BenchError::io(&options.folder))?;
    note("fsync");
    let fsync = fsync_cost(&options.folder)?;
    let location = options
        .folder
        .join(format!("updates-{}", std::process::id()));
    let stored = stored(options, &location, &mut note);
    // A store that stays behind costs space only, and its name tells whose it was.
    let _ = fs::remove_dir_all(&location);
    let (transactions_per_second, batch_triples_per_second) = stored?;
    let updated = updated_graph(options, &mut note)?;
    Ok(UpdateReport {
        machine: Machine::here(),
        universities: options.universities,
        fsync,
        clients: options.clients,
        transactions_per_second,
        batch_triples_per_second,
        ..updated
    })
}

fn fsync_cost(folder: &Path) -> Result<Timing, BenchError> {
    let path = folder.join(format!("fsync-{}", std::process::id()));
    let failed = BenchError::io(&path);
    let measured = (|| {
        let mut file = File::create(&path)?;
        file.set_len(1 << 20)?;
        file.sync_all()?;
        let mut runs = Vec::new();
        for _ in 0..FSYNCS {
            file.write_all(&[1; 200])?;
            let begin = Instant::now();
            file.sync_data()?;
            runs.push(begin.elapsed());
        }
        Ok(Timing::of(runs))
    })();
    let _ = fs::remove_file(&path);
    measured.map_err(failed)
}

/// Transactions and batched triples a second in a stored database.
fn stored(
    options: &Options,
    location: &Path,
    note: &mut impl FnMut(&str),
) -> Result<(f64, f64), BenchError> {
    let database = Database::open_or_create(location, Config::default())?;
    note("transactions of one triple");
    let transactions = transactions(&database, options)?;
    note("batches");
    let file = data::lubm_file(&options.folder, Lubm::new(options.universities, 0))?;
    let mut batches = Batches::of(&file.path, 1, 0)?;
    let begin = Instant::now();
    let mut triples = 0;
    while begin.elapsed() < options.duration {
        let Some((text, count)) = batches.next("INSERT")? else {
            break;
        };
        database.update(&text)?;
        triples += count;
    }
    let batched = triples as f64 / begin.elapsed().as_secs_f64();
    Ok((transactions, batched))
}

fn transactions(database: &Database, options: &Options) -> Result<f64, BenchError> {
    let done = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    let begin = Instant::now();
    let ended = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..options.clients)
            .map(|client| {
                let (done, stop) = (&done, &stop);
                scope.spawn(move || {
                    for number in 0_u64.. {
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        let text = format!(
                            "INSERT DATA {{ <http://example.org/c{client}/{number}> \
                             <http://example.org/made> {number} }}"
                        );
                        database.update(&text)?;
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok::<(), BenchError>(())
                })
            })
            .collect();
        std::thread::park_timeout(options.duration);
        while begin.elapsed() < options.duration {
            std::thread::park_timeout(options.duration.saturating_sub(begin.elapsed()));
        }
        stop.store(true, Ordering::Relaxed);
        clients
            .into_iter()
            .map(|client| client.join().expect("a client does not panic"))
            .collect::<Result<Vec<()>, _>>()
    });
    ended?;
    Ok(done.into_inner() as f64 / begin.elapsed().as_secs_f64())
}

/// Every so many lines of a file of N-Triples, as requests of [`BATCH`] triples.
struct Batches {
    path: PathBuf,
    lines: BufReader<File>,
    every: u64,
    phase: u64,
    line: u64,
}

impl Batches {
    fn of(path: &Path, every: u64, phase: u64) -> Result<Self, BenchError> {
        let file = File::open(path).map_err(BenchError::io(path))?;
        Ok(Self {
            path: path.to_owned(),
            lines: BufReader::new(file),
            every,
            phase,
            line: 0,
        })
    }

    /// The next request and its triples; `None` at the end.
    fn next(&mut self, verb: &str) -> Result<Option<(String, u64)>, BenchError> {
        let mut text = format!("{verb} DATA {{\n");
        let mut count = 0;
        let mut line = String::new();
        while count < BATCH as u64 {
            line.clear();
            let read = self.lines.read_line(&mut line);
            if read.map_err(BenchError::io(&self.path))? == 0 {
                break;
            }
            self.line += 1;
            if self.line % self.every == self.phase {
                text.push_str(&line);
                count += 1;
            }
        }
        text.push('}');
        Ok((count > 0).then_some((text, count)))
    }
}

/// Which lines are removed from the graph: one in so many.
fn removed_lines(statements: u64, triples: u64) -> u64 {
    (statements / (triples / 2).max(1)).max(2)
}

fn updated_graph(
    options: &Options,
    note: &mut impl FnMut(&str),
) -> Result<UpdateReport, BenchError> {
    let file = data::lubm_file(&options.folder, Lubm::new(options.universities, 0))?;
    // A university has some 130,000 statements.
    let more = Lubm {
        universities: u32::try_from(options.triples / 2 / 130_000 + 1).unwrap_or(1),
        first: options.universities,
        seed: 0,
    };
    let new = data::lubm_file(&options.folder, more)?;
    let every = removed_lines(file.counts.statements(), options.triples);
    note("loading");
    let mut config = Config::default();
    config.merge = MergePolicy::never();
    let database = Database::with_config(config);
    load(&database, vec![Source::path(&file.path)])?;
    note("updating");
    let begin = Instant::now();
    let mut updated = 0;
    let mut removals = Batches::of(&file.path, every, 0)?;
    let mut additions = Batches::of(&new.path, 1, 0)?;
    let mut added = String::new();
    // All removals first: a new line may say what a removed one said.
    while let Some((text, count)) = removals.next("DELETE")? {
        database.update(&text)?;
        updated += count;
    }
    while updated < options.triples {
        let Some((text, count)) = additions.next("INSERT")? else {
            break;
        };
        database.update(&text)?;
        added.push_str(&text["INSERT DATA {\n".len()..text.len() - 1]);
        updated += count;
    }
    let update_seconds = begin.elapsed().as_secs_f64();
    note("loading the same graph afresh");
    let fresh = Database::new();
    let rest = Source::reader(
        "the lines that were not removed",
        Rest::of(&file.path, every)?,
    );
    let added = Source::bytes("the new lines", added).with_format(Format::NTriples);
    load(&fresh, vec![rest.with_format(Format::NTriples), added])?;
    let expected = fresh.quad_counts().triples;
    check(&file.path, expected, database.quad_counts().triples)?;
    let mut queries = Vec::new();
    let is_asked = |name: &str| options.only.as_deref().is_none_or(|only| only == name);
    let asked = QUERIES.iter().filter(|(name, _)| is_asked(name));
    for (name, text) in asked.clone() {
        note(name);
        let (outcome, fresh_time) = time(&fresh, name, text, options.runs)?;
        let (after, updated_time) = time(&database, name, text, options.runs)?;
        run::check_rows(name, "after updates", outcome, after)?;
        queries.push(QueryTimes {
            name: (*name).to_owned(),
            rows: outcome,
            fresh: fresh_time,
            updated: updated_time,
            merged: updated_time,
        });
    }
    note("merging");
    let begin = Instant::now();
    database.compact()?;
    let merge_seconds = begin.elapsed().as_secs_f64();
    for (query, (name, text)) in queries.iter_mut().zip(asked) {
        // Once more, so that the two are measured in the same minute.
        let (_, again) = time(&fresh, name, text, options.runs)?;
        let (rows, merged) = time(&database, name, text, options.runs)?;
        run::check_rows(name, "after the merge", query.rows, rows)?;
        if again.min_ms < query.fresh.min_ms {
            query.fresh = again;
        }
        query.merged = merged;
    }
    Ok(UpdateReport {
        machine: Machine::here(),
        universities: options.universities,
        fsync: Timing::of(vec![Duration::ZERO]),
        clients: 0,
        transactions_per_second: 0.0,
        batch_triples_per_second: 0.0,
        updated,
        update_seconds,
        merge_seconds,
        queries,
    })
}

fn time(
    database: &Database,
    name: &str,
    text: &str,
    runs: u32,
) -> Result<(u64, Timing), BenchError> {
    let rows = run::as_ids(database, text, 1)?.rows;
    let timing = run::timed((name, "as ids", rows), runs, || {
        run::as_ids(database, text, 1)
    })?;
    Ok((rows, timing))
}

fn load(database: &Database, sources: Vec<Source>) -> Result<(), BenchError> {
    database.load(sources, &LoadOptions::default(), &Progress::default())?;
    Ok(())
}

fn check(file: &Path, expected: u64, found: u64) -> Result<(), BenchError> {
    if expected == found {
        return Ok(());
    }
    Err(BenchError::TriplesDiffer {
        file: file.to_owned(),
        expected,
        found,
    })
}

/// A file without every so-many-th line, and without the lines that say the same.
struct Rest {
    lines: BufReader<File>,
    removed: FxHashSet<Vec<u8>>,
    current: Vec<u8>,
    at: usize,
}

impl Rest {
    fn of(path: &Path, every: u64) -> Result<Self, BenchError> {
        let open = || File::open(path).map(|file| BufReader::with_capacity(1 << 20, file));
        let read = || -> std::io::Result<FxHashSet<Vec<u8>>> {
            let mut removed = FxHashSet::default();
            for (line, text) in (1_u64..).zip(open()?.split(b'\n')) {
                let text = text?;
                if line.is_multiple_of(every) {
                    removed.insert(text);
                }
            }
            Ok(removed)
        };
        let removed = read().map_err(BenchError::io(path))?;
        let lines = open().map_err(BenchError::io(path))?;
        Ok(Self {
            lines,
            removed,
            current: Vec::new(),
            at: 0,
        })
    }
}

impl std::io::Read for Rest {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        while self.at == self.current.len() {
            self.current.clear();
            self.at = 0;
            if self.lines.read_until(b'\n', &mut self.current)? == 0 {
                return Ok(0);
            }
            let text = self.current.strip_suffix(b"\n").unwrap_or(&self.current);
            if self.removed.contains(text) {
                self.current.clear();
            }
        }
        let count = out.len().min(self.current.len() - self.at);
        out[..count].copy_from_slice(&self.current[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

impl Display for UpdateReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.machine)?;
        let mut table = Table::new(["updates", "figure", "unit"]);
        let mut row = |what: &str, figure: String, unit: &str| table.row([what, &figure, unit]);
        row(
            "fsync, median",
            format!("{:.3}", self.fsync.median_ms),
            "ms",
        );
        row(
            &format!("transactions of one triple, {} clients", self.clients),
            format!("{:.0}", self.transactions_per_second),
            "a second",
        );
        row(
            &format!("INSERT DATA of {BATCH} triples, one client"),
            format!("{:.0}", self.batch_triples_per_second),
            "triples a second",
        );
        row("triples updated", self.updated.to_string(), "triples");
        row(
            "  in memory, in",
            format!("{:.2}", self.update_seconds),
            "s",
        );
        row("merge", format!("{:.2}", self.merge_seconds), "s");
        writeln!(f, "{table}")?;
        let mut table = Table::new([
            "query",
            "rows",
            "fresh, ms",
            "updated, ms",
            "ratio",
            "merged, ms",
            "ratio",
        ]);
        for query in &self.queries {
            let ms = |timing: &Timing| format!("{:.4}", timing.min_ms);
            let mut ratios = [String::new(), String::new()];
            for (text, timing) in ratios.iter_mut().zip([&query.updated, &query.merged]) {
                write!(text, "{:.2}", query.ratio(timing))?;
            }
            let [updated, merged] = ratios;
            table.row([
                query.name.clone(),
                query.rows.to_string(),
                ms(&query.fresh),
                ms(&query.updated),
                updated,
                ms(&query.merged),
                merged,
            ]);
        }
        write!(f, "{table}")
    }
}
