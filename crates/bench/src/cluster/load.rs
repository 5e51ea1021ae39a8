//! Which clients ask and update at a steady pace while something happens to the servers?

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use jindou_datagen::lubm::Lubm;

use super::client::{Client, EndOnDrop, Outcome, drawn};
use super::ledger::Ledger;
use super::samples::Sample;
use crate::BenchError;

/// Clients of each node that ask,
const ASKING: usize = 2;
/// and that update.
const UPDATING: usize = 2;
/// From the beginning of one query of a client to that of the next: light queries take little of the machine.
const QUERY_PACE: Duration = Duration::from_millis(5);
/// The same of updates.
const UPDATE_PACE: Duration = Duration::from_millis(20);

/// What the clients and the thread to which something happens to servers share.
pub(super) struct Load {
    begun: Instant,
    is_over: AtomicBool,
    /// Whether clients of each node send something.
    pub(super) is_up: Vec<AtomicBool>,
    /// When the last update that was acknowledged was sent, in microseconds from the beginning.
    pub(super) acknowledged_us: AtomicU64,
}

impl Load {
    fn new(servers: usize) -> Self {
        Self {
            begun: Instant::now(),
            is_over: AtomicBool::new(false),
            is_up: (0..servers).map(|_| AtomicBool::new(true)).collect(),
            acknowledged_us: AtomicU64::new(0),
        }
    }

    pub(super) fn us(&self, time: Instant) -> u64 {
        time.duration_since(self.begun).as_micros() as u64
    }

    /// Sends requests at a pace until it is over.
    fn send(
        &self,
        (server, is_update, pace): (usize, bool, Duration),
        mut client: Client,
        mut request: impl FnMut(&mut Client) -> Outcome,
    ) -> Vec<Sample> {
        // What is measured is how long the server takes, not this thread's waiting for a core; older systems know no
        // short turns.
        let _ = jindou_fabric::schedule::take_short_turns();
        let mut samples = Vec::new();
        let mut due = Instant::now();
        while !self.is_over.load(Relaxed) {
            // What was late is not made up for: no burst follows a slow answer.
            due = (due + pace).max(Instant::now());
            if self.is_up[server].load(Relaxed) {
                let begun = Instant::now();
                let outcome = request(&mut client);
                let ended = Instant::now();
                if is_update && outcome == Outcome::Done {
                    self.acknowledged_us.fetch_max(self.us(begun), Relaxed);
                }
                samples.push(Sample {
                    server,
                    is_update,
                    begun,
                    ended,
                    outcome,
                });
            } else {
                client.disconnect();
            }
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        samples
    }
}

/// Does something while clients of each of these servers ask and update, and returns what they heard, too, in any order.
///
/// # Errors
/// Those of `happens`; [`BenchError::Thread`].
pub(super) fn under<T>(
    addresses: &[SocketAddr],
    data: Lubm,
    ledger: &Ledger,
    happens: impl FnOnce(&Load) -> Result<T, BenchError>,
) -> Result<(T, Vec<Sample>), BenchError> {
    let requests = drawn(addresses, data)?;
    let load = Load::new(addresses.len());
    thread::scope(|scope| {
        let over = EndOnDrop(&load.is_over);
        let mut clients = Vec::new();
        for (server, address) in addresses.iter().enumerate() {
            for number in 0..ASKING {
                let (load, client) = (&load, Client::of(*address));
                let requests = &requests[server];
                let mut next = requests
                    .iter()
                    .cycle()
                    .skip(number * requests.len() / ASKING);
                clients.push(scope.spawn(move || {
                    load.send((server, false, QUERY_PACE), client, |client| {
                        client.ask(next.next().expect("a cycle over some requests"))
                    })
                }));
            }
            for _ in 0..UPDATING {
                let (load, client) = (&load, Client::of(*address));
                let mut updates = ledger.updates();
                clients.push(scope.spawn(move || {
                    load.send((server, true, UPDATE_PACE), client, |client| {
                        client.update(&mut updates)
                    })
                }));
            }
        }
        let happened = happens(&load)?;
        drop(over);
        let joined = clients.into_iter().map(|client| client.join());
        let samples: Result<Vec<Vec<Sample>>, _> = joined.collect();
        let samples = samples.map_err(|_| BenchError::Thread)?;
        Ok((happened, samples.into_iter().flatten().collect()))
    })
}
