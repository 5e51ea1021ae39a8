//! What do clients of the other nodes notice when one is killed, and how long is it until all is as before?
//!
//! Clients of each node ask and update at a steady pace, and write down how long each request took. What happened around
//! each kill is read from that afterwards.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use jindou_datagen::lubm::Lubm;

use super::client::{Client, EndOnDrop, Outcome, drawn};
use super::ledger::Ledger;
use super::samples::{FailureReport, Round, Sample, report};
use super::servers::{Server, wait_for};
use super::watch::{Told, Watcher, wait_until_whole};
use crate::BenchError;

/// Clients of each node that ask,
const ASKING: usize = 2;
/// and that update.
const UPDATING: usize = 2;
/// From the beginning of one query of a client to that of the next: light queries take little of the machine.
const QUERY_PACE: Duration = Duration::from_millis(5);
/// The same of updates.
const UPDATE_PACE: Duration = Duration::from_millis(20);
/// How long all nodes have been there before one is killed.
const QUIET: Duration = Duration::from_secs(1);
/// How long one stays away once updates go on without it, so that it misses some.
const AWAY: Duration = Duration::from_secs(2);

/// What the clients and the thread that kills servers share.
struct Load {
    begun: Instant,
    is_over: AtomicBool,
    /// Whether clients of each node send something.
    is_up: Vec<AtomicBool>,
    /// When the last update that was acknowledged was sent, in microseconds from the beginning.
    acknowledged_us: AtomicU64,
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

    fn us(&self, time: Instant) -> u64 {
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

/// Kills the leader and a follower in turn, `rounds` times each, and starts each again.
///
/// # Errors
/// [`BenchError::Overdue`] where something does not come back; [`BenchError::Child`].
pub(super) fn measure(
    servers: &mut [Server],
    data: Lubm,
    rounds: u32,
    ledger: &Ledger,
    mut note: impl FnMut(&str),
) -> Result<FailureReport, BenchError> {
    let addresses: Vec<SocketAddr> = servers.iter().map(|server| server.address).collect();
    let requests = drawn(&addresses, data)?;
    let load = Load::new(servers.len());
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
        let mut all = Vec::new();
        for number in 0..rounds {
            for led in [true, false] {
                let who = if led { "leader" } else { "follower" };
                note(&format!("killing a {who}, round {}", number + 1));
                all.push(kill(servers, &load, (led, number as usize))?);
            }
        }
        thread::sleep(QUIET);
        drop(over);
        let joined = clients.into_iter().map(|client| client.join());
        let samples: Result<Vec<Vec<Sample>>, _> = joined.collect();
        let samples = samples.map_err(|_| BenchError::Thread)?;
        let samples: Vec<Sample> = samples.into_iter().flatten().collect();
        Ok(report(&all, &samples))
    })
}

/// Kills the leader or another node, waits until the others go on without it, and starts it again.
fn kill(
    servers: &mut [Server],
    load: &Load,
    (led, number): (bool, usize),
) -> Result<Round, BenchError> {
    let leader = wait_until_whole(servers)?;
    thread::sleep(QUIET);
    let victim = match led {
        true => leader,
        false => (leader + 1 + number % (servers.len() - 1)) % servers.len(),
    };
    let name = servers[victim].name.clone();
    let others = (0..servers.len()).filter(|server| *server != victim);
    let others: Vec<SocketAddr> = others.map(|server| servers[server].address).collect();
    let mut watchers: Vec<Watcher> = others.iter().copied().map(Watcher::of).collect();
    let before = wait_for("a node did not say what is committed", || {
        Ok(committed(&mut watchers, |_| true))
    })?;
    load.is_up[victim].store(false, Relaxed);
    let killed = servers[victim].kill()?;
    let noticed = noticed(&others, &name)?.duration_since(killed);
    wait_for("no update was acknowledged after a kill", || {
        let last = load.acknowledged_us.load(Relaxed);
        Ok((last >= load.us(killed)).then_some(()))
    })?;
    thread::sleep(AWAY);
    let restarted = Instant::now();
    servers[victim].start()?;
    let after = wait_for("a node that was started again was not in sync", || {
        servers[victim].check_it_runs()?;
        Ok(committed(&mut watchers, |told| told.has_in_sync(&name)))
    })?;
    let in_sync = restarted.elapsed();
    servers[victim].wait_until_it_serves()?;
    wait_until_whole(servers)?;
    load.is_up[victim].store(true, Relaxed);
    Ok(Round {
        victim,
        led,
        killed,
        noticed,
        in_sync,
        missed: after.saturating_sub(before),
        whole: Instant::now(),
    })
}

/// The last transaction that all nodes in sync have, as one of these says.
fn committed(watchers: &mut [Watcher], is_wanted: impl Fn(&Told) -> bool) -> Option<u64> {
    let mut told = watchers.iter_mut().filter_map(Watcher::cluster);
    let wanted = told.find(|told| is_wanted(told))?;
    Some(wanted.copy?.committed)
}

/// When the last of these servers said that a node is away.
fn noticed(servers: &[SocketAddr], name: &str) -> Result<Instant, BenchError> {
    thread::scope(|scope| {
        let mut last = Instant::now();
        let watchers = servers.iter().map(|address| {
            scope.spawn(move || {
                let mut watcher = Watcher::of(*address);
                wait_for("a node that was killed was not said to be away", || {
                    Ok(watcher.has_lost(name).then(Instant::now))
                })
            })
        });
        let watchers: Vec<_> = watchers.collect();
        for watcher in watchers {
            last = last.max(watcher.join().map_err(|_| BenchError::Thread)??);
        }
        Ok(last)
    })
}
