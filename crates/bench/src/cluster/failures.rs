//! What do clients of the other nodes notice when one is killed, and how long is it until all is as before?
//!
//! Clients of each node ask and update at a steady pace, and write down how long each request took ([`load`]). What happened
//! around each kill is read from that afterwards.

use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use jindou_datagen::lubm::Lubm;

use super::ledger::Ledger;
use super::load::{self, Load};
use super::samples::{FailureReport, Round, report};
use super::servers::{Server, wait_for};
use super::watch::{Told, Watcher, wait_until_whole};
use crate::BenchError;

/// How long all nodes have been there before one is killed.
const QUIET: Duration = Duration::from_secs(1);
/// How long one stays away once updates go on without it, so that it misses some.
const AWAY: Duration = Duration::from_secs(2);

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
    let (all, samples) = load::under(&addresses, data, ledger, |load| {
        let mut all = Vec::new();
        for number in 0..rounds {
            for led in [true, false] {
                let who = if led { "leader" } else { "follower" };
                note(&format!("killing a {who}, round {}", number + 1));
                all.push(kill(servers, load, (led, number as usize))?);
            }
        }
        thread::sleep(QUIET);
        Ok(all)
    })?;
    Ok(report(&all, &samples))
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
