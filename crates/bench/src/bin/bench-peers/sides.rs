//! Both engines by turns: how long does each take for each query?

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use jindou_bench::BenchError;
use jindou_bench::data::DataFile;
use jindou_bench::run;
use jindou_bench::table::{Table, millis, thousands};
use jindou_bench::timing::Timing;
use jindou_datagen::lubm::{HEAVY, QUERIES};
use jindou_engine::Database;
use jindou_engine::ingest::{LoadOptions, Progress, Source};
use oxigraph::store::Store;
use serde::Serialize;

use crate::peer;

/// How often queries are timed; each time after a run that is not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Runs {
    heavy: u32,
    light: u32,
}

impl Runs {
    pub(crate) const USUAL: Self = Self {
        heavy: 7,
        light: 200,
    };
    pub(crate) const FEW: Self = Self {
        heavy: 3,
        light: 20,
    };
}

/// The figures of all queries.
pub(crate) struct Comparison {
    threads: usize,
    pub(crate) queries: Vec<QueryComparison>,
}

/// One query.
#[derive(Debug, Serialize)]
pub(crate) struct QueryComparison {
    name: &'static str,
    rows: u64,
    /// Ours: every id read, one thread.
    jindou_ids: Timing,
    /// The same on several threads.
    jindou_ids_parallel: Timing,
    /// Theirs: every solution taken from its iterator.
    oxigraph_solutions: Timing,
    /// Ours: every row written, one thread.
    jindou_tsv: Timing,
    /// Theirs: the same by its serializer.
    oxigraph_tsv: Timing,
}

impl Comparison {
    /// Loads both engines here and runs every query by turns.
    pub(crate) fn measure(file: &DataFile, threads: usize, runs: Runs) -> anyhow::Result<Self> {
        let ours = Database::new();
        let options = LoadOptions {
            threads: threads.try_into()?,
            ..LoadOptions::default()
        };
        ours.load(
            vec![Source::path(&file.path)],
            &options,
            &Progress::default(),
        )?;
        let theirs = peer::load(&file.path, threads)?;
        let sides = Sides {
            ours,
            theirs,
            threads,
        };
        let queries = QUERIES.into_iter().map(|(name, text)| {
            let heavy = HEAVY.contains(&name);
            sides.query(name, text, if heavy { runs.heavy } else { runs.light })
        });
        Ok(Self {
            threads,
            queries: queries.collect::<Result<_, _>>()?,
        })
    }
}

struct Sides {
    ours: Database,
    theirs: Store,
    threads: usize,
}

impl Sides {
    fn query(
        &self,
        name: &'static str,
        text: &str,
        runs: u32,
    ) -> Result<QueryComparison, BenchError> {
        let rows = run::as_ids(&self.ours, text, 1)?.rows;
        run::check_rows(
            name,
            "in jindou",
            peer::rows(&self.theirs, text)?.rows,
            rows,
        )?;
        let mut out = Vec::new();
        let mut times: [Vec<Duration>; 5] = Default::default();
        for _ in 0..runs.max(1) {
            let (single, single_time) = warm(|| run::as_ids(&self.ours, text, 1))?;
            let (theirs, theirs_time) = warm(|| peer::rows(&self.theirs, text))?;
            let (parallel, parallel_time) = warm(|| run::as_ids(&self.ours, text, self.threads))?;
            let (tsv, tsv_time) = warm(|| run::as_tsv(&self.ours, text, 1, &mut out))?;
            let (_, their_tsv_time) = warm(|| peer::tsv(&self.theirs, text))?;
            for outcome in [single, theirs, parallel, tsv] {
                run::check_rows(name, "when run again", rows, outcome.rows)?;
            }
            let round_times = [
                single_time,
                parallel_time,
                theirs_time,
                tsv_time,
                their_tsv_time,
            ];
            times
                .iter_mut()
                .zip(round_times)
                .for_each(|(all, time)| all.push(time));
        }
        let [ids, parallel, solutions, tsv, their_tsv] = times.map(Timing::of);
        Ok(QueryComparison {
            name,
            rows,
            jindou_ids: ids,
            jindou_ids_parallel: parallel,
            oxigraph_solutions: solutions,
            jindou_tsv: tsv,
            oxigraph_tsv: their_tsv,
        })
    }
}

/// Runs once for the caches, which the other engine has just filled with its own, then times a
/// second run.
fn warm<T>(mut run: impl FnMut() -> Result<T, BenchError>) -> Result<(T, Duration), BenchError> {
    run()?;
    run::once(run)
}

impl Display for Comparison {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "milliseconds, caches warm: shortest / median; ratios are of the shortest, oxigraph / jindou\n\
             rows read: ids in jindou, decoded terms in oxigraph, which has no other way"
        )?;
        let parallel = format!("jindou, {} threads", self.threads);
        let mut reading = Table::new(["query", "rows", "jindou", &parallel, "oxigraph", "ratio"]);
        let mut writing = Table::new(["query", "rows", "jindou", "oxigraph", "ratio"]);
        for query in &self.queries {
            let (name, rows) = (query.name.to_owned(), thousands(query.rows));
            let (ours, theirs) = (query.jindou_ids, query.oxigraph_solutions);
            let parallel = two(query.jindou_ids_parallel);
            reading.row([
                name.clone(),
                rows.clone(),
                two(ours),
                parallel,
                two(theirs),
                ratio(ours, theirs),
            ]);
            let (ours, theirs) = (query.jindou_tsv, query.oxigraph_tsv);
            writing.row([name, rows, two(ours), two(theirs), ratio(ours, theirs)]);
        }
        write!(
            f,
            "{reading}\nall rows written as TSV, one thread each\n{writing}"
        )
    }
}

fn two(timing: Timing) -> String {
    format!("{} / {}", millis(timing.min_ms), millis(timing.median_ms))
}

fn ratio(ours: Timing, theirs: Timing) -> String {
    format!("{:.1}", theirs.min_ms / ours.min_ms)
}
