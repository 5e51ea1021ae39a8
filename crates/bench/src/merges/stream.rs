//! What becomes of a store whose background merges a stream of new vertices?

use std::fs::{self, File};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jindou_datagen::lubm::{Lubm, QUERIES};
use jindou_engine::results::{GraphFormat, GraphWriter};
use jindou_engine::{Database, GraphSelection};

use super::compare::compare;
use super::feed::{Feed, LEFT_ALONE, Places, TRIPLES};
use super::reach::Reach;
use super::report::{QueryBeside, Sizes, Stream};
use super::tenths::{PARTS, Tenths};
use super::watch::folder_bytes;
use super::{Options, StoreFolder, check_held, merges_since, settle};
use crate::machine::{Resident, process_cpu, thread_cpu};
use crate::operators::Check;
use crate::serving::Serving;
use crate::timing::Timing;
use crate::{BenchError, data, run};

/// Text of a dump written at once.
const WRITE_BYTES: usize = 1 << 20;
/// How much longer than the policy's quiet time the background must have rested.
pub(super) const BEYOND_IDLE: Duration = Duration::from_secs(1);
/// The query that runs beside the stream.
const Q4: (&str, &str) = QUERIES[3];
/// Runs of it before it is timed.
const WARM_UPS: usize = 100;
/// The time in which it is timed before the stream.
const QUIET: Duration = Duration::from_millis(500);
/// The pause after a run: queries take little from the stream.
const PAUSE: Duration = Duration::from_millis(2);

/// # Errors
/// Any [`BenchError`].
pub(super) fn measure(
    options: &Options,
    note: &mut impl FnMut(&str),
) -> Result<Stream, BenchError> {
    note("generating");
    let file = data::lubm_file(&options.folder, Lubm::new(options.stream_universities, 0))?;
    let folder = StoreFolder::new(&options.folder, "merges-stream");
    note("loading");
    let (database, _) = folder.load_lubm(&file, options.config())?;
    let generation = database.data_memory(None).generation;
    let mut figures = streamed(options, &database, &folder, note)?;
    figures.merges = merges_since(generation, &database);
    note("waiting for the background");
    let begin = Instant::now();
    figures.has_settled = settle(&database, options.merge.idle + BEYOND_IDLE).is_at_rest;
    figures.settle_seconds = begin.elapsed().as_secs_f64();
    let statistics = database.statistics();
    figures.merges_after = merges_since(generation, &database).saturating_sub(figures.merges);
    figures.changes_left = statistics.changes;
    jindou_fabric::allocator::release_free_memory();
    figures.anonymous_after_bytes = Resident::now()?.anonymous_bytes;
    let right = file.counts.distinct() + figures.inserted - figures.deleted;
    check_held(&database, "after the stream", right)?;
    figures.triples = right;
    figures.streamed = sizes(&database, &folder)?;
    beside_fresh(options, &database, &folder, &mut figures, note)?;
    Ok(figures)
}

/// The part with a fresh load and numbering anew.
fn beside_fresh(
    options: &Options,
    database: &Database,
    folder: &StoreFolder,
    figures: &mut Stream,
    note: &mut impl FnMut(&str),
) -> Result<(), BenchError> {
    note("dumping");
    let fresh_folder = StoreFolder::new(&options.folder, "merges-fresh");
    let dump = Dump::write(database, &options.folder)?;
    note("loading afresh");
    let (fresh, load) = fresh_folder.load(&dump.0, options.config())?;
    drop(dump);
    check_held(&fresh, "when loaded afresh", figures.triples)?;
    figures.fresh_load_seconds = load.as_secs_f64();
    figures.fresh = sizes(&fresh, &fresh_folder)?;
    let way = ("after the stream", Check::Rows);
    figures.after_stream = compare(&fresh, database, way, &QUERIES, options.runs, note)?;
    note("numbering anew");
    let (_, renumber) = run::once(|| Ok(database.renumber_within(None)?))?;
    figures.renumber_seconds = renumber.as_secs_f64();
    check_held(database, "after numbering anew", figures.triples)?;
    figures.renumbered = sizes(database, folder)?;
    let way = ("after numbering anew", Check::Rows);
    figures.after_renumbering = compare(&fresh, database, way, &QUERIES, options.runs, note)?;
    Ok(())
}

/// The time in which clients commit.
fn streamed(
    options: &Options,
    database: &Database,
    folder: &StoreFolder,
    note: &mut impl FnMut(&str),
) -> Result<Stream, BenchError> {
    let places = Places::of(database)?;
    let serving = options.http.then(|| Serving::start(database.clone()));
    let serving = serving.transpose()?;
    let server = serving.as_ref().map(|serving| serving.address);
    let mut light = Light::of(Reach::new(database, server)?)?;
    note("queries alone");
    let quiet = light.quiet()?;
    jindou_fabric::allocator::release_free_memory();
    note("committing");
    let before = Resident::now()?;
    let cpu = process_cpu();
    let run = Run {
        options,
        database,
        server,
        tenths: Tenths::new(database, folder.path()),
        begin: Instant::now(),
    };
    let (committed, beside, others) = run.all(&places, &mut light)?;
    let seconds = run.begin.elapsed().as_secs_f64();
    let cpu = process_cpu() - cpu;
    let longest = committed.times.iter().max().copied().unwrap_or_default();
    let tenths = run.tenths.end();
    let peaks = tenths.iter().map(|tenth| tenth.peak.memory);
    let queries = vec![QueryBeside::of(light.name(), light.rows, quiet, beside)];
    drop(light);
    serving.map_or(Ok(()), Serving::stop)?;
    Ok(Stream {
        is_served: options.http,
        universities: options.stream_universities,
        clients: options.clients,
        asked_rate: options.rate,
        seconds,
        transactions: committed.times.len() as u64,
        inserted: committed.inserted,
        deleted: committed.deleted,
        longest_ms: longest.as_secs_f64() * 1e3,
        transaction: Timing::of(committed.times),
        queries,
        client_cpu_seconds: committed.cpu.as_secs_f64(),
        background_cpu_seconds: cpu.saturating_sub(committed.cpu + others).as_secs_f64(),
        anonymous_before_bytes: before.anonymous_bytes,
        peak: peaks.fold(Resident::default(), Resident::max),
        tenths,
        ..Stream::default()
    })
}

/// q4 of a department that the stream leaves alone, so that its answer stays.
struct Light<'d> {
    reach: Reach<'d>,
    text: String,
    rows: u64,
}

impl<'d> Light<'d> {
    fn of(mut reach: Reach<'d>) -> Result<Self, BenchError> {
        let text =
            Q4.1.replace("http://www.Department0.University0.edu", LEFT_ALONE);
        let rows = reach.rows(&text)?;
        let mut light = Self { reach, text, rows };
        for _ in 0..WARM_UPS {
            light.once()?;
        }
        Ok(light)
    }

    fn name(&self) -> &'static str {
        Q4.0
    }

    fn once(&mut self) -> Result<Duration, BenchError> {
        let (rows, time) = run::once(|| self.reach.rows(&self.text))?;
        let when = "beside the stream as before";
        run::check_rows(self.name(), when, self.rows, rows)?;
        Ok(time)
    }

    /// Runs with a pause after each, until `is_over`.
    fn until(&mut self, is_over: impl Fn() -> bool) -> Result<Vec<Duration>, BenchError> {
        let mut times = Vec::new();
        loop {
            times.push(self.once()?);
            if is_over() {
                return Ok(times);
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn quiet(&mut self) -> Result<Vec<Duration>, BenchError> {
        let begin = Instant::now();
        self.until(|| begin.elapsed() >= QUIET)
    }
}

/// What clients did.
#[derive(Default)]
struct Committed {
    times: Vec<Duration>,
    inserted: u64,
    deleted: u64,
    cpu: Duration,
}

/// A stream under way.
struct Run<'d> {
    options: &'d Options,
    database: &'d Database,
    server: Option<SocketAddr>,
    tenths: Tenths<'d>,
    begin: Instant,
}

impl Run<'_> {
    /// Gives what clients did, what queries took beside them, and the time of cores that the queries
    /// and looking took.
    fn all(
        &self,
        places: &Places,
        light: &mut Light<'_>,
    ) -> Result<(Committed, Vec<Duration>, Duration), BenchError> {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let stop = &stop;
            let watching = scope.spawn(move || self.tenths.watch(stop, || self.part()));
            let asking = scope.spawn(move || {
                let times = light.until(|| stop.load(Ordering::Relaxed))?;
                Ok::<_, BenchError>((times, thread_cpu()))
            });
            let clients: Vec<_> = (0..self.options.clients)
                .map(|number| {
                    let feed = Feed::new(number, places);
                    scope.spawn(move || self.client(feed, number))
                })
                .collect();
            let joined = clients.into_iter();
            let parts = joined.map(|client| client.join().map_err(|_| BenchError::Thread)?);
            let parts: Vec<Result<Committed, BenchError>> = parts.collect();
            stop.store(true, Ordering::Relaxed);
            let watched = watching.join().map_err(|_| BenchError::Thread)?;
            let asked = asking.join().map_err(|_| BenchError::Thread)?;
            let (committed, watched, (times, asked)) = (together(parts)?, watched?, asked?);
            Ok((committed, times, watched + asked))
        })
    }

    /// The tenth of the time that it is.
    fn part(&self) -> usize {
        let whole = self.options.duration.as_secs_f64().max(f64::EPSILON);
        let part = self.begin.elapsed().as_secs_f64() / whole * PARTS as f64;
        (part as usize).min(PARTS - 1)
    }

    /// Commits at the client's part of the rate until the time is over, at least once. A client that is
    /// late does not wait.
    fn client(&self, mut feed: Feed<'_>, number: usize) -> Result<Committed, BenchError> {
        let options = self.options;
        let every = TRIPLES as f64 * options.clients as f64 / options.rate.max(1) as f64;
        let mut due = every * number as f64 / options.clients as f64;
        let mut done = Committed::default();
        let mut reach = Reach::new(self.database, self.server)?;
        while done.times.is_empty() || self.begin.elapsed() < options.duration {
            let transaction = feed.next();
            let wait = Duration::from_secs_f64(due).min(options.duration);
            std::thread::sleep(wait.saturating_sub(self.begin.elapsed()));
            let ((), time) = run::once(|| reach.update(&transaction))?;
            let changed = transaction.inserted + transaction.deleted;
            self.tenths.note(self.part(), changed, time);
            done.times.push(time);
            done.inserted += transaction.inserted;
            done.deleted += transaction.deleted;
            due += every;
        }
        done.cpu = thread_cpu();
        Ok(done)
    }
}

/// What all clients did together, or the first of their errors.
fn together(parts: Vec<Result<Committed, BenchError>>) -> Result<Committed, BenchError> {
    let mut all = Committed::default();
    for part in parts {
        let part = part?;
        all.times.extend(part.times);
        all.inserted += part.inserted;
        all.deleted += part.deleted;
        all.cpu += part.cpu;
    }
    Ok(all)
}

pub(super) fn sizes(database: &Database, folder: &StoreFolder) -> Result<Sizes, BenchError> {
    let statistics = database.statistics();
    Ok(Sizes {
        held_bytes: statistics.total_bytes() + statistics.change_bytes,
        dictionary_bytes: statistics.dictionary_bytes,
        characteristic_sets: statistics.characteristic_sets,
        disk_bytes: folder_bytes(folder.path())?,
    })
}

/// A file of all triples of a store, removed when this is dropped.
struct Dump(PathBuf);

impl Dump {
    fn write(database: &Database, folder: &Path) -> Result<Self, BenchError> {
        let path = folder.join(format!("merges-dump-{}.nt", std::process::id()));
        let file = File::create(&path).map_err(BenchError::io(&path))?;
        let dump = Self(path);
        dump.fill(database, file)?;
        Ok(dump)
    }

    fn fill(&self, database: &Database, mut file: File) -> Result<(), BenchError> {
        let mut write = |text: &mut Vec<u8>| {
            let written = file.write_all(text).map_err(BenchError::io(&self.0));
            text.clear();
            written
        };
        let mut writer = GraphWriter::new(GraphFormat::NTriples);
        let mut text = Vec::with_capacity(2 * WRITE_BYTES);
        database.for_each_quad(&GraphSelection::Default, |quad| {
            writer.quad(&mut text, quad)?;
            match text.len() < WRITE_BYTES {
                true => Ok(()),
                false => write(&mut text),
            }
        })?;
        writer.finish(&mut text)?;
        write(&mut text)
    }
}

impl Drop for Dump {
    fn drop(&mut self) {
        // A file that cannot be removed costs space only, and its name says which process left it.
        let _ = fs::remove_file(&self.0);
    }
}
