//! What do copies of a store at several servers cost, and what happens when one of them is killed?
//!
//! One server, and then nodes of a cluster with an etcd that keeps which of them leads: each is a process with a store of
//! its own, and clients reach them over HTTP. All share the cores and the device of one machine. Every update that was acknowledged
//! must be at each node in the end; otherwise there is no report.

mod client;
mod failures;
mod growth;
mod ingest;
mod ledger;
mod load;
mod report;
mod samples;
mod servers;
mod throughput;
mod watch;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jindou_datagen::lubm::{Lubm, QUERIES};
use jindou_engine::ingest::{LoadOptions, Progress, Source};
use jindou_engine::{Config, Database};
use jindou_etcd::LocalEtcd;

pub use self::client::Failed;
pub use self::growth::{Growth, Phase};
pub use self::ingest::{QueryUnder, UnderIngest};
pub use self::ledger::UpdateCounts;
pub use self::report::ClusterReport;
pub use self::samples::{FailedRequest, FailureReport, Failures, Requests, Spread};
pub use self::throughput::Throughput;

use self::ingest::Asking;
use self::ledger::Ledger;
use self::servers::{Membership, Server, free_addresses, wait_for};
use self::throughput::Crowd;
use self::watch::{Watcher, wait_until_whole};
use crate::machine::Machine;
use crate::store_folder::StoreFolder;
use crate::{BenchError, data, run};

/// What the server without a cluster is called, and its store.
const ALONE: &str = "alone";
/// The store of which all have copies.
const ORIGINAL: &str = "store";

/// What to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// Universities of the data; its seed is 0.
    pub universities: u32,
    /// Where the data's file is kept, and stores for the time of the measurement.
    pub folder: PathBuf,
    /// Nodes of the cluster, two at least.
    pub nodes: u32,
    /// How often the leader is killed, and a follower.
    pub rounds: u32,
    /// Clients of light queries, and then of updates, each with one request at a time.
    pub clients: usize,
    /// How long they ask, and how long they update; and how long the seven queries are asked at least, alone and beside
    /// updates.
    pub length: Duration,
    /// Timed runs of each of the seven queries at least.
    pub runs: usize,
    /// Bytes of its store that a node sends in a second to one that joins.
    pub copy_rate: u64,
    /// The program `jindou`, whose `serve` is started.
    pub program: PathBuf,
}

impl Options {
    fn crowd(&self) -> Crowd {
        Crowd {
            data: Lubm::new(self.universities, 0),
            clients: self.clients,
            length: self.length,
        }
    }
}

/// Measures; `note` is given what is being done, a few words at a time.
///
/// # Errors
/// [`BenchError::Setup`] where there is no etcd; [`BenchError::UpdateLost`] and [`BenchError::UpdateNotRefused`];
/// [`BenchError::RowsDiffer`]; [`BenchError::Overdue`] where nodes do not come back; any other [`BenchError`].
pub fn measure(options: &Options, mut note: impl FnMut(&str)) -> Result<ClusterReport, BenchError> {
    let folder = StoreFolder::new(&options.folder, "cluster");
    fs::create_dir_all(folder.path()).map_err(BenchError::io(folder.path()))?;
    let etcd = etcd(folder.path())?;
    note("generating the data, unless it is there");
    let file = data::lubm_file(&options.folder, Lubm::new(options.universities, 0))?;
    note("storing");
    let names: Vec<String> = (0..options.nodes).map(name).collect();
    let rows = store(&file.path, folder.path(), &names)?;
    let (alone_throughput, alone_ingest) = alone(options, folder.path(), &rows, &mut note)?;
    let (mut cluster, mut another) = start_cluster(options, folder.path(), &etcd)?;
    let ledger = Ledger::default();
    let (all, without_one) = throughput(options, &mut cluster, &ledger, &mut note)?;
    let data = Lubm::new(options.universities, 0);
    let failures = failures::measure(&mut cluster, data, options.rounds, &ledger, &mut note)?;
    let growth = grow(
        options,
        (&mut cluster, &mut another),
        &etcd,
        &ledger,
        &mut note,
    )?;
    note("queries beside updates, at the cluster");
    let ingest = under_ingest(
        &of_nodes(options.nodes),
        options,
        (&cluster, &rows),
        &ledger,
    )?;
    note("comparing what the nodes have with what was acknowledged");
    wait_until_whole(&mut cluster)?;
    check(&mut cluster, &ledger)?;
    Ok(ClusterReport {
        machine: Machine::here(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        optimized: !cfg!(debug_assertions),
        universities: options.universities,
        nodes: options.nodes,
        clients: options.clients,
        throughput: vec![alone_throughput, all, without_one],
        failures,
        growth,
        ingest: vec![alone_ingest, ingest],
        updates: ledger.counts(),
    })
}

fn etcd(folder: &Path) -> Result<LocalEtcd, BenchError> {
    let etcd = LocalEtcd::start(&folder.join("etcd")).map_err(BenchError::io("etcd"))?;
    etcd.ok_or_else(|| BenchError::Setup {
        reason: "there is no etcd on the path, which keeps which node leads; Debian and Ubuntu have it as \
                 etcd-server, and https://github.com/etcd-io/etcd/releases as a program to put on the path"
            .to_owned(),
    })
}

/// `a`, `b` and so on, as `jindou cluster dev` has them.
fn name(number: u32) -> String {
    let number = u8::try_from(number).unwrap_or(u8::MAX);
    char::from(b'a'.saturating_add(number)).to_string()
}

/// Which servers the nodes are.
fn of_nodes(nodes: u32) -> String {
    format!("{nodes} nodes")
}

/// Makes a store of the data, and a copy for each server; gives how many rows each of the seven queries has.
fn store(file: &Path, folder: &Path, names: &[String]) -> Result<Vec<u64>, BenchError> {
    let original = folder.join(ORIGINAL);
    let (load, progress) = (LoadOptions::default(), Progress::default());
    let source = vec![Source::path(file)];
    let (database, _) = Database::create(&original, source, &load, &progress, Config::default())?;
    for name in names.iter().map(String::as_str).chain([ALONE]) {
        database.backup(&folder.join(name))?;
    }
    let rows = QUERIES.into_iter().map(|(_, text)| {
        let outcome = run::as_ids(&database, text, 1)?;
        Ok(outcome.rows)
    });
    rows.collect()
}

/// What one server does that is no node of a cluster.
fn alone(
    options: &Options,
    folder: &Path,
    rows: &[u64],
    mut note: impl FnMut(&str),
) -> Result<(Throughput, UnderIngest), BenchError> {
    let address = free_addresses(1)?[0];
    let mut server = [Server::new(
        &options.program,
        folder,
        (ALONE, address),
        None,
    )];
    server[0].start()?;
    server[0].wait_until_it_serves()?;
    let ledger = Ledger::default();
    note("light queries and updates, at one server");
    let throughput = throughput::measure("one server", &[address], options.crowd(), &ledger)?;
    note("queries beside updates, at one server");
    let ingest = under_ingest("one server", options, (&server, rows), &ledger)?;
    check(&mut server, &ledger)?;
    Ok((throughput, ingest))
}

/// Starts all nodes, and waits until they have met; also returned is one more, which is not started.
fn start_cluster(
    options: &Options,
    folder: &Path,
    etcd: &LocalEtcd,
) -> Result<(Vec<Server>, Server), BenchError> {
    let mut nodes = servers(options, folder, etcd)?;
    let another = nodes.split_off(options.nodes as usize).pop();
    let another = another.expect("one more than the nodes");
    // The first one begins the list.
    nodes[0].start()?;
    nodes[0].wait_until_it_serves()?;
    for node in &mut nodes[1..] {
        node.start()?;
    }
    for node in &mut nodes {
        node.wait_until_it_serves()?;
    }
    wait_until_whole(&mut nodes)?;
    Ok((nodes, another))
}

/// The nodes, and one more, none of which is started yet.
fn servers(options: &Options, folder: &Path, etcd: &LocalEtcd) -> Result<Vec<Server>, BenchError> {
    let count = options.nodes + 1;
    let addresses = free_addresses(2 * count as usize)?;
    let servers = (0..count).zip(addresses.chunks_exact(2));
    let servers = servers.map(|(number, addresses)| {
        let membership = Membership {
            advertise: addresses[0],
            etcd: etcd.url().to_owned(),
            copy_rate: options.copy_rate,
        };
        let of = (&*name(number), addresses[1]);
        Server::new(&options.program, folder, of, Some(membership))
    });
    Ok(servers.collect())
}

/// Has another node join, and drains it again.
fn grow(
    options: &Options,
    (cluster, another): (&mut [Server], &mut Server),
    etcd: &LocalEtcd,
    ledger: &Ledger,
    note: impl FnMut(&str),
) -> Result<Growth, BenchError> {
    let plan = growth::Plan {
        program: &options.program,
        etcd: etcd.url(),
        data: Lubm::new(options.universities, 0),
        quiet: options.length,
        copy_rate: options.copy_rate,
    };
    let growth = growth::measure(cluster, another, &plan, ledger, note)?;
    // It had all that was acknowledged before it was drained, and nobody has it any more.
    wait_until_whole(cluster)?;
    Ok(growth)
}

fn addresses(servers: &[Server]) -> Vec<SocketAddr> {
    servers.iter().map(|server| server.address).collect()
}

/// What all nodes answer, and what they do after the leader was killed, which is started again afterwards.
fn throughput(
    options: &Options,
    cluster: &mut [Server],
    ledger: &Ledger,
    mut note: impl FnMut(&str),
) -> Result<(Throughput, Throughput), BenchError> {
    note("light queries and updates, at the cluster");
    let servers = of_nodes(options.nodes);
    let crowd = options.crowd();
    let all = throughput::measure(&servers, &addresses(cluster), crowd, ledger)?;
    let leader = wait_until_whole(cluster)?;
    let killed = cluster[leader].name.clone();
    cluster[leader].kill()?;
    let mut left = addresses(cluster);
    left.remove(leader);
    wait_until_left_alone(&left, &killed)?;
    note("light queries and updates, without one node");
    let servers = format!("{servers}, one killed");
    let without_one = throughput::measure(&servers, &left, crowd, ledger)?;
    cluster[leader].start()?;
    cluster[leader].wait_until_it_serves()?;
    wait_until_whole(cluster)?;
    Ok((all, without_one))
}

/// Waits until nodes go on without another.
fn wait_until_left_alone(nodes: &[SocketAddr], without: &str) -> Result<(), BenchError> {
    let mut watchers: Vec<Watcher> = nodes.iter().copied().map(Watcher::of).collect();
    wait_for("no other node led after a kill", || {
        let are_alone = watchers.iter_mut().all(|watcher| {
            let told = watcher.cluster();
            told.is_some_and(|told| told.is_led_without(without))
        });
        Ok(are_alone.then_some(()))
    })
}

fn under_ingest(
    name: &str,
    options: &Options,
    (servers, rows): (&[Server], &[u64]),
    ledger: &Ledger,
) -> Result<UnderIngest, BenchError> {
    let addresses = addresses(servers);
    let asking = Asking {
        addresses: &addresses,
        rows,
        runs: options.runs,
        length: options.length,
    };
    ingest::measure(name, asking, ledger)
}

/// Whether each server has what was acknowledged, and its store once the server has ended.
fn check(servers: &mut [Server], ledger: &Ledger) -> Result<(), BenchError> {
    for server in servers.iter() {
        ledger.check_server(&server.name, server.address)?;
    }
    for server in servers.iter_mut() {
        server.end()?;
    }
    for server in servers.iter() {
        ledger.check_store(&server.name, &server.store)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_have_names_of_one_letter() {
        let names: Vec<String> = (0..3).map(name).collect();
        assert_eq!(names, ["a", "b", "c"]);
    }
}
