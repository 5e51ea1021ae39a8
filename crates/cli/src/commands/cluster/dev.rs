//! `jindou cluster dev`: what does a cluster look like, in one command and at one machine?
//!
//! One thread waits for events: the store is there, a node said a line or ended, Ctrl-C. Whatever ends this
//! function ends the nodes.

use std::env;
use std::net::{Ipv4Addr, TcpListener};
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use jindou_bench::table::Table;
use jindou_engine::PeerList;
use jindou_etcd::LocalEtcd;
use tempfile::TempDir;

use super::dev_node::{DevNode, NodeCommand};
use super::dev_store;
use crate::cluster_args::DevArguments;
use crate::interrupt::on_each;
use crate::node::{all_there, waiting};
use crate::output;
use jindou_engine::printable;

/// How long nodes may take to end once they are asked to.
const END_WITHIN: Duration = Duration::from_secs(8);
/// What may be asked of any data, and of all shards.
const EXAMPLE: &str = "SELECT ?class (COUNT(?s) AS ?n) { ?s a ?class } GROUP BY ?class";

/// What happens.
pub(super) enum Event {
    /// The folder of the store, or why there is none.
    Store(anyhow::Result<PathBuf>),
    /// A node, by number, said something.
    Line(usize, String),
    Ended(usize),
    /// Somebody asks for the end.
    Signal,
}

/// # Errors
/// A store that cannot be made or read, a port that is taken, and nodes that end before all have met.
pub(super) fn run(arguments: DevArguments) -> anyhow::Result<()> {
    let (send, events) = channel();
    let signals = send.clone();
    // Nobody hears it who has ended.
    on_each(move || drop(signals.send(Event::Signal)))?;
    let ports = Ports::new(arguments.nodes, arguments.http_port)?;
    let folder = tempfile::Builder::new().prefix("jindou-cluster-").tempdir();
    let folder = folder.context("cannot make a temporary folder")?;
    let no_shared_memory = arguments.no_shared_memory;
    let peers = folder.path().join("peers.toml");
    let list = ports.list();
    std::fs::write(&peers, &list).with_context(|| peers.display().to_string())?;
    let nodes = nodes(&PeerList::parse(&list)?, &ports);
    let names = nodes.iter().map(|node| node.name.clone()).collect();
    let Some(location) = store(arguments, (folder.path(), names), (&send, &events))? else {
        return Ok(());
    };
    let etcd = etcd(folder.path())?;
    let cluster = Cluster {
        command: NodeCommand {
            etcd: etcd.as_ref().map(|etcd| etcd.url().to_owned()),
            program: env::current_exe().context("cannot find this program")?,
            location,
            folder: folder.path().to_owned(),
            peers,
            no_shared_memory,
        },
        nodes,
        has_met: false,
        send,
        events,
        _etcd: etcd,
        _folder: folder,
    };
    drop(ports);
    cluster.run()
}

/// The folder of the store of which each node has a copy, once these are there; none if the end was asked for
/// before.
fn store(
    arguments: DevArguments,
    (folder, names): (&Path, Vec<String>),
    (send, events): (&Sender<Event>, &Receiver<Event>),
) -> anyhow::Result<Option<PathBuf>> {
    let (send, folder) = (send.clone(), folder.to_owned());
    let prepare = move || {
        let prepared = dev_store::prepare(&arguments, &folder, &names);
        // Nobody hears it who has ended.
        let _unheard = send.send(Event::Store(prepared));
    };
    let thread = thread::Builder::new().name("prepare the store".to_owned());
    thread.spawn(prepare).context("cannot start a thread")?;
    match events.recv().context("nobody prepares the store")? {
        Event::Store(prepared) => prepared.map(Some),
        Event::Signal | Event::Line(..) | Event::Ended(_) => Ok(None),
    }
}

/// An etcd for these nodes that has its data in the folder; none where there is none on the path, which is said.
fn etcd(folder: &Path) -> anyhow::Result<Option<LocalEtcd>> {
    let etcd = LocalEtcd::start(&folder.join("etcd")).context("cannot start etcd")?;
    if etcd.is_none() {
        note!(
            "there is no etcd on the path: the first node takes all writes, and while it is away there are \
             none; with one (Debian's package etcd-server), another node takes its place"
        );
    }
    Ok(etcd)
}

/// Ports of the nodes, held until these are started: where they meet, and those of their HTTP servers.
struct Ports {
    meeting: Vec<TcpListener>,
    http: Vec<TcpListener>,
}

impl Ports {
    fn new(nodes: u32, first: Option<NonZeroU16>) -> anyhow::Result<Self> {
        let free = |_| bind(0).context("no port is free");
        let meeting = (0..nodes).map(free).collect::<Result<_, _>>()?;
        let http = match first {
            None => (0..nodes).map(free).collect::<Result<_, _>>()?,
            Some(first) => (0..nodes)
                .map(|number| listed(u32::from(first.get()) + number))
                .collect::<anyhow::Result<_>>()?,
        };
        Ok(Self { meeting, http })
    }

    /// The list of the nodes, as its file has it.
    fn list(&self) -> String {
        let nodes = self.meeting.iter().zip(&self.http).zip('a'..);
        let nodes = nodes.map(|((meeting, http), name)| {
            let (meeting, http) = (port(meeting), port(http));
            format!(
                "\n[[node]]\nname = \"{name}\"\naddress = \"127.0.0.1:{meeting}\"\nhttp = \"http://127.0.0.1:{http}\"\n"
            )
        });
        nodes.collect()
    }
}

fn bind(port: u16) -> std::io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
}

fn listed(port: u32) -> anyhow::Result<TcpListener> {
    let Ok(port) = u16::try_from(port) else {
        bail!("--http-port: there is no port {port}; begin with a smaller one");
    };
    bind(port).with_context(|| {
        format!("--http-port: port {port} cannot be had; begin with another, or leave it out")
    })
}

/// The port of a listener, which was bound to one.
fn port(listener: &TcpListener) -> u16 {
    let address = listener.local_addr();
    address.map(|address| address.port()).unwrap_or_default()
}

/// The nodes of a list, none of which runs yet.
fn nodes(list: &PeerList, ports: &Ports) -> Vec<DevNode> {
    let map = list.map();
    let peers = map.nodes().zip(list.peers()).zip(&ports.http);
    let nodes = peers.map(|((number, peer), http)| {
        let own = |shard: &_| map.holder(*shard) == number;
        let shards = map.shards().all().filter(own).count();
        DevNode::new(peer.name.clone(), port(http), shards)
    });
    nodes.collect()
}

/// What runs.
struct Cluster {
    // Before the folder, which they read.
    nodes: Vec<DevNode>,
    command: NodeCommand,
    /// All nodes were there once.
    has_met: bool,
    send: Sender<Event>,
    events: Receiver<Event>,
    _etcd: Option<LocalEtcd>,
    _folder: TempDir,
}

impl Cluster {
    fn run(mut self) -> anyhow::Result<()> {
        let many = match self.nodes.len() {
            1 => "one node".to_owned(),
            nodes => format!("{nodes} nodes"),
        };
        let of = self.command.location.display();
        note!("starting {many} over copies of {of}, which end with the nodes");
        for number in 0..self.nodes.len() {
            self.start(number)?;
        }
        while let Some(event) = self.next_event()? {
            match event {
                Event::Line(number, line) => self.said(number, line)?,
                Event::Ended(number) => self.ended(number)?,
                Event::Signal => break,
                Event::Store(_) => {}
            }
        }
        self.end();
        Ok(())
    }

    fn start(&mut self, number: usize) -> anyhow::Result<()> {
        self.nodes[number].start(number, &self.command, &self.send)
    }

    /// The next event. Starts nodes whose pause is over meanwhile.
    fn next_event(&mut self) -> anyhow::Result<Option<Event>> {
        loop {
            let again = self.nodes.iter().filter_map(DevNode::again_at).min();
            let Some(again) = again else {
                return Ok(self.events.recv().ok());
            };
            let pause = again.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(pause) {
                Ok(event) => return Ok(Some(event)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => self.start_due()?,
            }
        }
    }

    fn start_due(&mut self) -> anyhow::Result<()> {
        let now = Instant::now();
        for number in 0..self.nodes.len() {
            if self.nodes[number].again_at().is_some_and(|at| at <= now) {
                self.start(number)?;
            }
        }
        Ok(())
    }

    fn said(&mut self, number: usize, line: String) -> anyhow::Result<()> {
        let sees_all = line == all_there(self.nodes.len());
        let node = &mut self.nodes[number];
        if !self.has_met && line.starts_with(&waiting(&node.name)) {
            note!("{}", printable(&line));
        }
        node.keep(line);
        if !sees_all || node.sees_all {
            return Ok(());
        }
        node.sees_all = true;
        if self.has_met {
            let pid = node.pid().unwrap_or_default();
            note!("node {} is there again, with pid {pid}", node.name);
        } else if self.nodes.iter().all(|node| node.sees_all) {
            self.has_met = true;
            output::print(&self.shown())?;
        }
        Ok(())
    }

    /// The nodes, and what to do with them.
    fn shown(&self) -> String {
        let mut table = Table::new(["node", "http", "pid", "shards"]);
        for node in &self.nodes {
            let pid = node.pid().unwrap_or_default().to_string();
            table.row([node.name.clone(), node.url(), pid, node.shards.to_string()]);
        }
        let first = self.nodes[0].url();
        format!(
            "{table}\nask any of them:     curl {first}/query -d query='{EXAMPLE}'\n\
             see what they do:    {first}/cluster\n\
             see one be lost:     kill -9 PID; it is started again\n\
             Ctrl-C ends all.\n"
        )
    }

    fn ended(&mut self, number: usize) -> anyhow::Result<()> {
        let node = &mut self.nodes[number];
        let pid = node.pid().unwrap_or_default();
        let status = node.ended();
        if !self.has_met {
            let last = node.last_lines().next_back().unwrap_or("it said nothing");
            let last = last.strip_prefix("error: ").unwrap_or(last);
            bail!("node {} ended ({status}): {last}", node.name);
        }
        note!(
            "node {} (pid {pid}) ended: {status}; its last lines:",
            node.name
        );
        for line in node.last_lines() {
            note!("  {}", printable(line));
        }
        let pause = node.start_later();
        note!("it is started again in {} s", pause.as_secs());
        Ok(())
    }

    /// Ends all nodes: once their queries have ended, or at another signal, or after a while.
    fn end(mut self) {
        note!("ending the nodes once their queries have; Ctrl-C again ends at once");
        self.nodes.iter_mut().for_each(DevNode::ask_to_end);
        let give_up = Instant::now() + END_WITHIN;
        while self.nodes.iter().any(DevNode::runs) {
            let left = give_up.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                Ok(Event::Ended(number)) => drop(self.nodes[number].ended()),
                Ok(Event::Line(..) | Event::Store(_)) => {}
                // Who is left is killed when this is dropped.
                Ok(Event::Signal) | Err(_) => return,
            }
        }
    }
}
