//! What do clients of the nodes notice when another one joins, and when it is drained again, and how long does either take?

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use jindou_datagen::lubm::Lubm;
use serde::Serialize;

use super::ledger::Ledger;
use super::load;
use super::samples::{Requests, Sample};
use super::servers::{Server, wait_for};
use super::watch::{Told, Watcher, wait_until_whole};
use crate::percentiles::Percentiles;
use crate::{BenchError, data};

/// What one more node came to, and what it came to when it left.
#[derive(Debug, Clone, Serialize)]
pub struct Growth {
    /// Bytes of the store that it copied.
    pub store_bytes: u64,
    /// Bytes that a node sends of it in a second, at most.
    pub copy_rate: u64,
    /// From its start until transactions wait for it, in milliseconds.
    pub in_sync_ms: f64,
    /// From its start until it holds shards, as all nodes know.
    pub holds_ms: f64,
    /// From when it was to be drained until it had ended, and no node had it any more.
    pub drained_ms: f64,
    /// What clients of the other nodes sent before,
    pub quiet: Phase,
    /// while it joined,
    pub joining: Phase,
    /// and while it left.
    pub leaving: Phase,
}

/// What clients heard for a time.
#[derive(Debug, Clone, Serialize)]
pub struct Phase {
    /// How long, in milliseconds.
    pub length_ms: f64,
    /// The time within which half of the light queries were answered, in milliseconds,
    pub query_median_ms: f64,
    /// and 99 of 100.
    pub query_p99_ms: f64,
    /// The same of updates.
    pub update_median_ms: f64,
    /// The same of updates.
    pub update_p99_ms: f64,
    /// The longest that an update took.
    pub longest_update_ms: f64,
    /// What was sent.
    pub requests: Requests,
}

impl Phase {
    fn of(samples: &[Sample], (from, to): (Instant, Instant)) -> Self {
        let mut requests = Requests::default();
        let within = samples
            .iter()
            .filter(|sample| sample.ended >= from && sample.begun <= to);
        let (mut queries, mut updates) = (Vec::new(), Vec::new());
        for sample in within {
            requests.note(sample, None);
            let took = sample.ended.duration_since(sample.begun);
            match sample.is_update {
                true => updates.push(took),
                false => queries.push(took),
            }
        }
        let [queries, updates] = [queries, updates].map(Percentiles::of);
        let ms = |of: &Option<Percentiles>, what: fn(&Percentiles) -> f64| {
            of.as_ref().map_or(f64::NAN, |of| what(of) / 1e3)
        };
        Self {
            length_ms: milliseconds(to.duration_since(from)),
            query_median_ms: ms(&queries, |of| of.median_us),
            query_p99_ms: ms(&queries, |of| of.p99_us),
            update_median_ms: ms(&updates, |of| of.median_us),
            update_p99_ms: ms(&updates, |of| of.p99_us),
            longest_update_ms: ms(&updates, |of| of.max_us),
            requests,
        }
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// What is done.
pub(super) struct Plan<'a> {
    /// The program `jindou`.
    pub(super) program: &'a Path,
    /// The address of etcd.
    pub(super) etcd: &'a str,
    pub(super) data: Lubm,
    /// How long nothing happens before.
    pub(super) quiet: Duration,
    /// As `--copy-rate`.
    pub(super) copy_rate: u64,
}

/// Starts `another` node, whose folder is empty, beside these, and drains it again; others wait until all is as before.
///
/// # Errors
/// [`BenchError::Overdue`] where something does not come; [`BenchError::Child`].
pub(super) fn measure(
    servers: &mut [Server],
    another: &mut Server,
    plan: &Plan<'_>,
    ledger: &Ledger,
    mut note: impl FnMut(&str),
) -> Result<Growth, BenchError> {
    wait_until_whole(servers)?;
    let addresses: Vec<SocketAddr> = servers.iter().map(|server| server.address).collect();
    let mut watchers: Vec<Watcher> = addresses.iter().copied().map(Watcher::of).collect();
    let mut all_say = |what: &str, is_so: &dyn Fn(&Told) -> bool| {
        wait_for(what, || {
            let told = watchers.iter_mut().map(Watcher::cluster);
            let mut told = told.map(|told| told.is_some_and(|told| is_so(&told)));
            Ok(told.all(|is_so| is_so).then(Instant::now))
        })
    };
    let (times, samples) = load::under(&addresses, plan.data, ledger, |_| {
        let begun = Instant::now();
        thread::sleep(plan.quiet);
        note("another node joins");
        let started = Instant::now();
        another.start()?;
        let name = another.name.clone();
        let in_sync = all_say("a node that joined was not in sync", &|told| {
            told.has_in_sync(&name)
        })?;
        let holds = all_say("a node that joined held no shards", &|told| {
            told.holds_shards(&name)
        })?;
        another.check_it_runs()?;
        thread::sleep(plan.quiet);
        note("it is drained");
        let drained = Instant::now();
        drain(plan, &name)?;
        another.wait_until_it_has_ended()?;
        let gone = all_say("a node that was drained was there", &|told| {
            !told.has_in_sync(&name) && !told.has(&name)
        })?;
        Ok([begun, started, in_sync, holds, drained, gone])
    })?;
    let [begun, started, in_sync, holds, drained, gone] = times;
    let between = |from: Instant, to: Instant| milliseconds(to.duration_since(from));
    Ok(Growth {
        store_bytes: data::folder_bytes(&another.store)?,
        copy_rate: plan.copy_rate,
        in_sync_ms: between(started, in_sync),
        holds_ms: between(started, holds),
        drained_ms: between(drained, gone),
        quiet: Phase::of(&samples, (begun, started)),
        joining: Phase::of(&samples, (started, holds)),
        leaving: Phase::of(&samples, (drained, gone)),
    })
}

fn drain(plan: &Plan<'_>, name: &str) -> Result<(), BenchError> {
    let mut command = Command::new(plan.program);
    command.args(["cluster", "drain", name, "--cluster", plan.etcd]);
    let output = command.output().map_err(BenchError::io(plan.program))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(BenchError::Child {
            command: format!("jindou cluster drain {name}"),
            reason: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        }),
    }
}
