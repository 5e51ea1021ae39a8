//! Does anything grow where as much is deleted as is inserted?

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use jindou_datagen::lubm::{Lubm, UB};
use jindou_engine::Database;

use super::report::Churn;
use super::tenths::{PARTS, Tenths};
use super::{Options, StoreFolder, check_held, merges_since};
use crate::{BenchError, data, run};

/// Clients that commit.
const CLIENTS: u64 = 16;
/// Triples that a transaction inserts, and that it deletes.
const TRIPLES: u64 = 3;

/// The churn on an empty store, or on LUBM data of this many universities.
///
/// # Errors
/// Any [`BenchError`].
pub(super) fn measure(
    options: &Options,
    universities: Option<u32>,
    note: &mut impl FnMut(&str),
) -> Result<Churn, BenchError> {
    let folder = StoreFolder::new(&options.folder, "merges-churn");
    let (database, triples) = match universities {
        None => (
            Database::open_or_create(folder.path(), options.config())?,
            0,
        ),
        Some(universities) => {
            note("generating");
            let file = data::lubm_file(&options.folder, Lubm::new(universities, 0))?;
            note("loading");
            let (database, _) = folder.load_lubm(&file, options.config())?;
            (database, file.counts.distinct())
        }
    };
    jindou_fabric::allocator::release_free_memory();
    note("inserting and deleting");
    let generation = database.data_memory(None).generation;
    let run = Run {
        database: &database,
        tenths: Tenths::new(&database, folder.path()),
        each: options.transactions.div_ceil(CLIENTS).max(1),
        live_each: options.live.div_ceil(CLIENTS).max(1),
        done: AtomicU64::new(0),
    };
    run.all()?;
    let (live, transactions) = (run.live(), run.total());
    let tenths = run.tenths.end();
    let statistics = database.statistics();
    check_held(&database, "after as many deletes", triples + TRIPLES * live)?;
    check_vertices(&database, live)?;
    Ok(Churn {
        universities: universities.unwrap_or(0),
        transactions,
        live,
        clients: CLIENTS,
        merges: merges_since(generation, &database),
        changes_left: statistics.changes,
        tenths,
    })
}

/// Whether just what is live is found by its class.
fn check_vertices(database: &Database, live: u64) -> Result<(), BenchError> {
    let text = format!("SELECT ?x WHERE {{ ?x a <{CLASS}> ; <{UB}name> ?name }}");
    let found = run::as_ids(database, &text, 1)?.rows;
    run::check_rows(
        "the query for what was not deleted",
        "at the end",
        live,
        found,
    )
}

/// The class of all new vertices.
const CLASS: &str = "http://example.org/churn/Visitor";

/// A run under way.
struct Run<'d> {
    database: &'d Database,
    tenths: Tenths<'d>,
    /// Transactions of each client.
    each: u64,
    /// After how many of its own each client deletes.
    live_each: u64,
    done: AtomicU64,
}

impl Run<'_> {
    fn total(&self) -> u64 {
        self.each * CLIENTS
    }

    /// What is left at the end.
    fn live(&self) -> u64 {
        self.live_each.min(self.each) * CLIENTS
    }

    /// The tenth of the transaction with this number.
    fn part_of(&self, number: u64) -> usize {
        let part = number * PARTS as u64 / self.total();
        usize::try_from(part).map_or(PARTS - 1, |part| part.min(PARTS - 1))
    }

    fn all(&self) -> Result<(), BenchError> {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let stop = &stop;
            let part = || self.part_of(self.done.load(Ordering::Relaxed));
            let watching = scope.spawn(move || self.tenths.watch(stop, part));
            let clients: Vec<_> = (0..CLIENTS)
                .map(|client| scope.spawn(move || self.client(client)))
                .collect();
            let joined = clients.into_iter();
            let ended: Result<Vec<()>, _> = joined
                .map(|client| client.join().map_err(|_| BenchError::Thread)?)
                .collect();
            stop.store(true, Ordering::Relaxed);
            let watched = watching.join().map_err(|_| BenchError::Thread)?;
            ended.and(watched.map(drop))
        })
    }

    fn client(&self, client: u64) -> Result<(), BenchError> {
        for number in 0..self.each {
            let deleted = number.checked_sub(self.live_each);
            let text = request(client, number, deleted);
            let (report, time) = run::once(|| Ok(self.database.update(&text)?))?;
            let expected = TRIPLES * (1 + u64::from(deleted.is_some()));
            let found = report.inserted + report.deleted;
            if expected != found {
                return Err(BenchError::ChangesDiffer { expected, found });
            }
            let done = self.done.fetch_add(1, Ordering::Relaxed);
            self.tenths.note(self.part_of(done), 1, time);
        }
        Ok(())
    }
}

/// Inserts three triples with a new IRI and a new literal, and deletes those of an earlier request.
fn request(client: u64, number: u64, deleted: Option<u64>) -> String {
    let triples = |number: u64| {
        let department = (client + number) % 15;
        format!(
            "<http://example.org/churn/{client}/{number}> a <{CLASS}> ; \
             <{UB}name> \"Visitor {number} of {client}\" ; \
             <{UB}memberOf> <http://www.Department{department}.University0.edu>"
        )
    };
    let inserted = format!("INSERT DATA {{ {} }}", triples(number));
    match deleted {
        None => inserted,
        Some(deleted) => format!("DELETE DATA {{ {} }} ; {inserted}", triples(deleted)),
    }
}
