//! What becomes of queries while updates come in as fast as they are taken?

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use jindou_datagen::lubm::{HEAVY, QUERIES, UB};
use serde::Serialize;

use super::client::{Client, EndOnDrop, Failed, Outcome};
use super::ledger::{Ledger, Update, Updates};
use crate::BenchError;
use crate::figure::geometric_mean;
use crate::http::{query_request, update_request};
use crate::run::check_rows;
use crate::serving::{QUERY_PATH, UPDATE_PATH};
use crate::timing::Timing;

/// Clients that insert.
const INGESTING: usize = 2;
/// Triples of a transaction: nine of each visitor, and the one that [`Ledger`] looks for.
const TRIPLES: usize = 1_000;
const VISITORS: usize = (TRIPLES - 1) / 9;
/// Runs of each query at each server that are not counted, as plans are made then and memory is touched.
const WARM_UPS: usize = 3;
/// No query is begun after this time.
const LONGEST: Duration = Duration::from_secs(120);
/// How long a client waits after a transaction that failed.
const PAUSE: Duration = Duration::from_millis(10);

/// The seven queries at some servers, alone and beside updates.
#[derive(Debug, Clone, Serialize)]
pub struct UnderIngest {
    /// Which servers.
    pub servers: String,
    /// By query.
    pub queries: Vec<QueryUnder>,
    /// Triples that were acknowledged a second.
    pub triples_per_second: f64,
    /// Transactions that were not acknowledged.
    pub updates_failed: Failed,
    /// Queries that were not answered meanwhile.
    pub queries_failed: Failed,
}

/// One query.
#[derive(Debug, Clone, Serialize)]
pub struct QueryUnder {
    /// Its name.
    pub name: &'static str,
    /// Rows of its answer, which the updates leave as they are.
    pub rows: u64,
    /// While nothing is updated.
    pub quiet: Timing,
    /// Beside the updates.
    pub busy: Timing,
}

impl QueryUnder {
    /// How many times as long it takes beside updates.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.busy.median_ms / self.quiet.median_ms
    }

    fn is_heavy(&self) -> bool {
        HEAVY.contains(&self.name)
    }
}

impl UnderIngest {
    /// The geometric mean of the ratios of heavy queries, and of light ones.
    #[must_use]
    pub fn ratios(&self) -> [f64; 2] {
        [true, false].map(|is_heavy| {
            let queries = self.queries.iter();
            let queries = queries.filter(|query| query.is_heavy() == is_heavy);
            geometric_mean(queries.map(QueryUnder::ratio)).unwrap_or(f64::NAN)
        })
    }
}

/// How the queries are asked.
#[derive(Clone, Copy)]
pub(super) struct Asking<'a> {
    pub(super) addresses: &'a [SocketAddr],
    /// The right numbers of rows, by query.
    pub(super) rows: &'a [u64],
    /// How often each is asked at least,
    pub(super) runs: usize,
    /// and for how long, alone and beside updates.
    pub(super) length: Duration,
}

/// # Errors
/// [`BenchError::RowsDiffer`] where an answer is wrong, [`BenchError::NoLight`] where there is none.
pub(super) fn measure(
    servers: &str,
    asking: Asking<'_>,
    ledger: &Ledger,
) -> Result<UnderIngest, BenchError> {
    let mut asked = Asked::of(asking);
    asked.ask(asking.addresses.len() * WARM_UPS, Duration::ZERO)?;
    asked.forget();
    asked.ask(asking.runs, asking.length)?;
    let quiet = asked.forget();
    let is_over = AtomicBool::new(false);
    let (time, inserted) = thread::scope(|scope| {
        let over = EndOnDrop(&is_over);
        let is_over = &is_over;
        let clients = (0..INGESTING).map(|number| {
            let address = asking.addresses[number % asking.addresses.len()];
            let updates = ledger.updates();
            scope.spawn(move || insert(address, updates, is_over))
        });
        let clients: Vec<_> = clients.collect();
        let begun = Instant::now();
        let asked = asked.ask(asking.runs, asking.length);
        drop(over);
        let mut all = Inserted::default();
        for client in clients {
            all.add(&client.join().map_err(|_| BenchError::Thread)?);
        }
        asked?;
        Ok::<_, BenchError>((begun.elapsed(), all))
    })?;
    let queries_failed = std::mem::take(&mut asked.failed);
    let busy = asked.forget();
    let figures = QUERIES
        .into_iter()
        .zip(asking.rows)
        .zip(quiet.into_iter().zip(busy));
    let queries = figures.map(|(((name, _), rows), (quiet, busy))| {
        Ok(QueryUnder {
            name,
            rows: *rows,
            quiet: timing(name, quiet)?,
            busy: timing(name, busy)?,
        })
    });
    Ok(UnderIngest {
        servers: servers.to_owned(),
        queries: queries.collect::<Result<_, BenchError>>()?,
        triples_per_second: inserted.transactions as f64 * TRIPLES as f64 / time.as_secs_f64(),
        updates_failed: inserted.failed,
        queries_failed,
    })
}

fn timing(name: &str, times: Vec<Duration>) -> Result<Timing, BenchError> {
    match times.is_empty() {
        true => Err(BenchError::NoLight {
            reason: format!("{name} was never answered"),
        }),
        false => Ok(Timing::of(times)),
    }
}

/// Who asks the queries, at each server in turn.
struct Asked<'a> {
    asking: Asking<'a>,
    clients: Vec<Client>,
    /// By query.
    times: Vec<Vec<Duration>>,
    failed: Failed,
}

impl<'a> Asked<'a> {
    fn of(asking: Asking<'a>) -> Self {
        Self {
            asking,
            clients: asking.addresses.iter().copied().map(Client::of).collect(),
            times: vec![Vec::new(); QUERIES.len()],
            failed: Failed::default(),
        }
    }

    /// Runs each query at least so many times, and all of them for at least so long.
    fn ask(&mut self, runs: usize, length: Duration) -> Result<(), BenchError> {
        let begun = Instant::now();
        let mut run = 0;
        while (run < runs || begun.elapsed() < length) && begun.elapsed() < LONGEST {
            let server = run % self.clients.len();
            let address = self.asking.addresses[server];
            for (query, (name, text)) in QUERIES.into_iter().enumerate() {
                let request = query_request(address, QUERY_PATH, text);
                let sent = Instant::now();
                self.clients[server].send(&request);
                let (outcome, lines) = self.clients[server].receive();
                let took = sent.elapsed();
                self.failed.note(&outcome);
                if outcome == Outcome::Done {
                    // The first line names the variables.
                    let rows = lines.saturating_sub(1);
                    check_rows(name, "over HTTP", self.asking.rows[query], rows)?;
                    self.times[query].push(took);
                }
            }
            run += 1;
        }
        Ok(())
    }

    /// Begins anew; gives the times up to now.
    fn forget(&mut self) -> Vec<Vec<Duration>> {
        self.failed = Failed::default();
        std::mem::replace(&mut self.times, vec![Vec::new(); QUERIES.len()])
    }
}

/// What a client inserted.
#[derive(Debug, Default)]
struct Inserted {
    transactions: u64,
    failed: Failed,
}

impl Inserted {
    fn add(&mut self, other: &Self) {
        self.transactions += other.transactions;
        self.failed.add(&other.failed);
    }
}

/// Inserts one transaction after another until it is over.
fn insert(address: SocketAddr, mut updates: Updates<'_>, is_over: &AtomicBool) -> Inserted {
    let mut client = Client::of(address);
    let mut inserted = Inserted::default();
    while !is_over.load(Relaxed) {
        let update = updates.next();
        let outcome = client.ask(&update_request(address, UPDATE_PATH, &transaction(update)));
        updates.note(update, &outcome);
        inserted.failed.note(&outcome);
        match outcome {
            Outcome::Done => inserted.transactions += 1,
            Outcome::Refused { .. } | Outcome::Cut(_) => thread::sleep(PAUSE),
        }
    }
    inserted
}

/// Visitors of a department of their own: they change the lists of predicates that the queries read, and no answer.
fn transaction(update: Update) -> String {
    let mut text = format!(
        "PREFIX ub: <{UB}>\nPREFIX n: <{update}/>\nINSERT DATA {{\n{}\n",
        update.triple()
    );
    for visitor in 0..VISITORS {
        let next = visitor + 1;
        writeln!(
            text,
            "n:v{visitor} a <http://example.org/Visitor> ; ub:memberOf n:d ; ub:worksFor n:d ; \
             ub:name \"Visitor {visitor} of {update}\" ; ub:emailAddress \"v{visitor}@{update}\" ; \
             ub:telephone \"xxx-xxx-xxxx\" ; ub:advisor n:v{next} ; ub:takesCourse n:c{visitor} ; \
             ub:teacherOf n:c{next} ."
        )
        .expect("a string takes any text");
    }
    text.push('}');
    text
}

#[cfg(test)]
mod tests {
    use jindou_datagen::lubm::Lubm;
    use jindou_engine::ingest::{Format, Progress, Source};
    use jindou_engine::{Database, LoadOptions};

    use super::*;
    use crate::run;

    #[test]
    fn transactions_have_so_many_triples_and_change_no_answer() {
        let mut text = String::new();
        Lubm::new(1, 0).append_university(0, &mut text);
        let database = Database::new();
        let source = Source::bytes("lubm", text).with_format(Format::NTriples);
        database
            .load(vec![source], &LoadOptions::default(), &Progress::default())
            .unwrap();
        let rows = || QUERIES.map(|(_, text)| run::as_ids(&database, text, 1).unwrap().rows);
        let before = rows();
        let ledger = Ledger::default();
        for mut updates in [ledger.updates(), ledger.updates()] {
            for _ in 0..2 {
                let report = database.update(&transaction(updates.next())).unwrap();
                assert_eq!(report.inserted, 1_000);
            }
        }
        assert_eq!(rows(), before);
    }

    #[test]
    fn means_are_of_heavy_and_of_light_queries() {
        let timing = |ms: u64| Timing::of(vec![Duration::from_millis(ms)]);
        let queries = QUERIES.map(|(name, _)| QueryUnder {
            name,
            rows: 1,
            quiet: timing(2),
            busy: timing(if HEAVY.contains(&name) { 8 } else { 3 }),
        });
        let figures = UnderIngest {
            servers: String::new(),
            queries: queries.into(),
            triples_per_second: 1.0,
            updates_failed: Failed::default(),
            queries_failed: Failed::default(),
        };
        let [heavy, light] = figures.ratios();
        assert!((heavy - 4.0).abs() < 1e-9 && (light - 1.5).abs() < 1e-9);
    }
}
