//! How many light queries and how many updates a second do some servers answer?

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use jindou_datagen::lubm::Lubm;
use serde::Serialize;

use super::client::{Client, Failed, Outcome, drawn};
use super::ledger::Ledger;
use crate::BenchError;

/// What some servers answer.
#[derive(Debug, Clone, Serialize)]
pub struct Throughput {
    /// Which they are.
    pub servers: String,
    /// Light queries answered a second.
    pub queries_per_second: f64,
    /// Those that were not answered.
    pub queries_failed: Failed,
    /// Updates of one triple acknowledged a second.
    pub updates_per_second: f64,
    /// Those that were not acknowledged.
    pub updates_failed: Failed,
}

/// The same for all servers.
#[derive(Clone, Copy)]
pub(super) struct Crowd {
    pub(super) data: Lubm,
    /// Clients, each with one request at a time.
    pub(super) clients: usize,
    /// How long they ask, and how long they update.
    pub(super) length: Duration,
}

/// What clients heard.
#[derive(Debug, Default)]
struct Heard {
    done: u64,
    failed: Failed,
}

impl Heard {
    fn note(&mut self, outcome: &Outcome) {
        self.done += u64::from(*outcome == Outcome::Done);
        self.failed.note(outcome);
    }

    fn all(parts: Vec<Self>) -> Self {
        let mut all = Self::default();
        for part in parts {
            all.done += part.done;
            all.failed.add(&part.failed);
        }
        all
    }
}

/// Has clients ask these servers, and then update.
///
/// # Errors
/// [`BenchError::Datagen`], [`BenchError::Thread`].
pub(super) fn measure(
    servers: &str,
    addresses: &[SocketAddr],
    crowd: Crowd,
    ledger: &Ledger,
) -> Result<Throughput, BenchError> {
    let (queries, queries_per_second) = queries(addresses, crowd)?;
    let begun = Instant::now();
    let updates = updates(addresses, crowd, ledger)?;
    Ok(Throughput {
        servers: servers.to_owned(),
        queries_per_second,
        queries_failed: queries.failed,
        updates_per_second: updates.done as f64 / begun.elapsed().as_secs_f64(),
        updates_failed: updates.failed,
    })
}

/// A client with queries of its own.
struct Asker<'r> {
    client: Client,
    requests: std::iter::Cycle<std::slice::Iter<'r, Vec<u8>>>,
}

impl Asker<'_> {
    fn send(&mut self) {
        let request = self.requests.next().expect("a cycle over some requests");
        self.client.send(request);
    }
}

fn queries(addresses: &[SocketAddr], crowd: Crowd) -> Result<(Heard, f64), BenchError> {
    let requests = drawn(addresses, crowd.data)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.min(crowd.clients).max(1);
    let mut parts: Vec<Vec<Asker<'_>>> = (0..threads).map(|_| Vec::new()).collect();
    for number in 0..crowd.clients {
        let server = number % addresses.len();
        // Each begins with another query.
        let first = number * requests[server].len() / crowd.clients;
        let mut requests = requests[server].iter().cycle();
        if first > 0 {
            requests.nth(first - 1);
        }
        let client = Client::of(addresses[server]);
        parts[number % threads].push(Asker { client, requests });
    }
    let mut drive = |length| {
        let parts = parts.iter_mut();
        all(parts.map(|part| move || ask(part, length)))
    };
    // Not counted: connections, plans, and memory that is touched.
    drive(crowd.length / 10)?;
    let begun = Instant::now();
    let heard = drive(crowd.length)?;
    let per_second = heard.done as f64 / begun.elapsed().as_secs_f64();
    Ok((heard, per_second))
}

/// Keeps one query of each client under way until the time is over, and then reads what is outstanding.
fn ask(askers: &mut [Asker<'_>], length: Duration) -> Heard {
    let mut heard = Heard::default();
    let begun = Instant::now();
    askers.iter_mut().for_each(Asker::send);
    while begun.elapsed() < length {
        for asker in askers.iter_mut() {
            heard.note(&asker.client.receive().0);
            asker.send();
        }
    }
    for asker in askers {
        heard.note(&asker.client.receive().0);
    }
    heard
}

fn updates(addresses: &[SocketAddr], crowd: Crowd, ledger: &Ledger) -> Result<Heard, BenchError> {
    all((0..crowd.clients).map(|number| {
        let mut client = Client::of(addresses[number % addresses.len()]);
        let mut updates = ledger.updates();
        move || {
            let mut heard = Heard::default();
            let begun = Instant::now();
            while begun.elapsed() < crowd.length {
                heard.note(&client.update(&mut updates));
            }
            heard
        }
    }))
}

/// What clients hear, each on a thread of its own.
fn all<C: FnOnce() -> Heard + Send>(clients: impl Iterator<Item = C>) -> Result<Heard, BenchError> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = clients.map(|client| scope.spawn(client)).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        let parts: Result<Vec<Heard>, _> = joined.collect();
        Ok(Heard::all(parts.map_err(|_| BenchError::Thread)?))
    })
}
