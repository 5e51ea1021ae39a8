//! What does a merge of many new triples of one predicate cost, and what do queries notice of it?

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jindou_datagen::lubm::{Lubm, QUERIES, UB};
use jindou_engine::{Config, Database, MergePolicy};

use super::report::{MergeCost, QueryBeside, Single};
use super::vertices::Vertices;
use super::watch::{Watch, folder_bytes};
use super::{Options, StoreFolder, check_held, settle};
use crate::machine::{process_cpu, thread_cpu};
use crate::{BenchError, data, run};

/// Triples of one request.
const BATCH: u64 = 1_000;
/// The light queries of LUBM.
const LIGHT: [usize; 3] = [3, 4, 5];
/// Rounds of them before they are timed.
const WARM_UPS: usize = 100;
/// The shortest quiet time.
const QUIET: Duration = Duration::from_millis(200);
/// How long the background has to rest before a merge.
const REST: Duration = Duration::from_millis(250);
/// Vertices of a class that new triples have, at most.
const MOST: usize = 60_000;

/// # Errors
/// Any [`BenchError`].
pub(super) fn measure(
    options: &Options,
    note: &mut impl FnMut(&str),
) -> Result<Single, BenchError> {
    note("generating");
    let file = data::lubm_file(&options.folder, Lubm::new(options.universities, 0))?;
    let folder = StoreFolder::new(&options.folder, "merges-single");
    note("loading");
    let mut config = Config::default();
    config.merge = MergePolicy::never();
    let (database, load) = folder.load_lubm(&file, config)?;
    let bench = Bench {
        database: &database,
        folder: &folder,
        additions: Additions::of(&database, options.triples)?,
    };
    note("inserting");
    let (_, insert) = run::once(|| bench.additions.insert(&database, 0))?;
    note("merging alone");
    let alone = bench.merge(None)?.0;
    note("inserting again");
    bench.additions.insert(&database, 1)?;
    settle(&database, REST);
    note("queries alone");
    let rows = bench.rows()?;
    let length = Duration::from_secs_f64(alone.wall_seconds).max(QUIET);
    let quiet = bench.quiet(&rows, length)?;
    note("merging beside queries");
    let (beside, asked) = bench.merge(Some(&rows))?;
    let triples = file.counts.distinct();
    check_held(&database, "after two merges", triples + 2 * options.triples)?;
    Ok(Single {
        universities: options.universities,
        triples,
        inserted: options.triples,
        load_seconds: load.as_secs_f64(),
        insert_seconds: insert.as_secs_f64(),
        store_bytes: folder_bytes(folder.path())?,
        alone,
        beside,
        queries: beside_quiet(&rows, quiet, asked.unwrap_or_default()),
    })
}

/// New triples of `ub:takesCourse`: half of a part are of new vertices, half of undergraduates, who
/// take courses for graduates, as none does in LUBM.
struct Additions {
    /// Triples of one part.
    count: u64,
    students: Vertices,
    courses: Vertices,
    graduate_courses: Vertices,
}

impl Additions {
    fn of(database: &Database, count: u64) -> Result<Self, BenchError> {
        let of = |class| Vertices::of(database, class, MOST);
        Ok(Self {
            count,
            students: of("UndergraduateStudent")?,
            courses: of("Course")?,
            graduate_courses: of("GraduateCourse")?,
        })
    }

    /// Inserts one part of them.
    fn insert(&self, database: &Database, part: u64) -> Result<(), BenchError> {
        let mut next = part * self.count;
        let end = next + self.count;
        while next < end {
            let until = end.min(next + BATCH);
            let mut text = String::from("INSERT DATA {\n");
            for number in next..until {
                self.push(number, &mut text);
            }
            text.push('}');
            let (expected, found) = (until - next, database.update(&text)?.inserted);
            if expected != found {
                return Err(BenchError::ChangesDiffer { expected, found });
            }
            next = until;
        }
        Ok(())
    }

    fn push(&self, number: u64, text: &mut String) {
        let pair = number / 2;
        let written = match number % 2 {
            0 => writeln!(
                text,
                "<http://example.org/student/{pair}> <{UB}takesCourse> <{}> .",
                self.courses.get(pair)
            ),
            _ => writeln!(
                text,
                "<{}> <{UB}takesCourse> <{}> .",
                self.students.get(pair),
                // Another course each time that it is the same student's turn.
                self.graduate_courses.get(pair + pair / self.students.len())
            ),
        };
        written.expect("a string takes any text");
    }
}

/// What each of the light queries took, run by run, and how many rows it has.
type Times = [Vec<Duration>; LIGHT.len()];
type Rows = [u64; LIGHT.len()];

struct Bench<'d> {
    database: &'d Database,
    folder: &'d StoreFolder,
    additions: Additions,
}

impl Bench<'_> {
    /// Merges, beside queries if their rows are given.
    fn merge(&self, beside: Option<&Rows>) -> Result<(MergeCost, Option<Times>), BenchError> {
        settle(self.database, REST);
        jindou_fabric::allocator::release_free_memory();
        let watch = Watch::begin(self.folder.path())?;
        let stop = AtomicBool::new(false);
        let cpu = process_cpu();
        let (merged, asked) = std::thread::scope(|scope| {
            let stop = &stop;
            let queries = beside.map(|rows| scope.spawn(move || ask(self.database, rows, stop)));
            let merged = run::once(|| Ok(self.database.compact_within(None)?));
            stop.store(true, Ordering::Relaxed);
            let asked = queries.map(|queries| queries.join().map_err(|_| BenchError::Thread)?);
            Ok::<_, BenchError>((merged, asked.transpose()?))
        })?;
        let cpu = process_cpu() - cpu;
        let seen = watch.end()?;
        let (did_merge, wall) = merged?;
        if !did_merge {
            let changes = self.additions.count;
            return Err(BenchError::NothingMerged { changes });
        }
        let (times, of_queries) = asked.unzip();
        let others = seen.cpu + of_queries.unwrap_or_default();
        let cost = MergeCost {
            wall_seconds: wall.as_secs_f64(),
            cpu_seconds: cpu.saturating_sub(others).as_secs_f64(),
            growth_bytes: seen.growth_bytes(),
            written_bytes: seen.written_bytes,
        };
        Ok((cost, times))
    }

    fn rows(&self) -> Result<Rows, BenchError> {
        let mut rows = Rows::default();
        for (rows, query) in rows.iter_mut().zip(LIGHT) {
            *rows = run::as_ids(self.database, QUERIES[query].1, 1)?.rows;
        }
        for _ in 0..WARM_UPS {
            round(self.database, &rows, &mut Times::default())?;
        }
        Ok(rows)
    }

    /// The queries for so long, with nothing beside them.
    fn quiet(&self, rows: &Rows, length: Duration) -> Result<Times, BenchError> {
        let mut times = Times::default();
        let begin = Instant::now();
        while begin.elapsed() < length {
            round(self.database, rows, &mut times)?;
        }
        Ok(times)
    }
}

/// The queries until told to stop; gives what they took of a core as well.
fn ask(
    database: &Database,
    rows: &Rows,
    stop: &AtomicBool,
) -> Result<(Times, Duration), BenchError> {
    let mut times = Times::default();
    loop {
        round(database, rows, &mut times)?;
        if stop.load(Ordering::Relaxed) {
            return Ok((times, thread_cpu()));
        }
    }
}

/// Each query once.
fn round(database: &Database, rows: &Rows, times: &mut Times) -> Result<(), BenchError> {
    for (place, query) in LIGHT.into_iter().enumerate() {
        let (name, text) = QUERIES[query];
        let (outcome, time) = run::once(|| run::as_ids(database, text, 1))?;
        run::check_rows(
            name,
            "between inserts and a merge",
            rows[place],
            outcome.rows,
        )?;
        times[place].push(time);
    }
    Ok(())
}

fn beside_quiet(rows: &Rows, quiet: Times, beside: Times) -> Vec<QueryBeside> {
    let times = quiet.into_iter().zip(beside);
    let each = LIGHT.into_iter().zip(rows).zip(times);
    each.map(|((query, &rows), (quiet, beside))| {
        QueryBeside::of(QUERIES[query].0, rows, quiet, beside)
    })
    .collect()
}
