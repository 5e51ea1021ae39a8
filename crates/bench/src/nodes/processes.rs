//! What is a cluster of processes that a measurement asks?
//!
//! This process is the first node. The others are started as children, which read the same store, and end
//! when their standard input does: with this process, however that ends. A line of
//! it says what a child's clients are to ask, and another line has them begin.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use jindou_engine::{ClusterOptions, Database, ForkPolicy, PeerList};
use jindou_server::HeavyPriority;

use crate::BenchError;
use crate::child::{ChildProgram, list_of_nodes};
use crate::emulate::{Load, Waits};

/// The child's task.
const TASK: &str = "cluster-node";
/// How long nodes may take to meet.
const PATIENCE: Duration = Duration::from_secs(60);

/// Nodes that are processes.
pub(crate) struct Processes {
    /// The node that is this process.
    pub(super) database: Database,
    children: Vec<Node>,
}

/// A node that is a child.
struct Node {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// What the nodes of a cluster have in common.
pub(crate) struct ProcessOptions<'a> {
    /// The store that all read.
    pub(super) store: &'a Path,
    /// Where the list of nodes is written.
    pub(super) folder: &'a Path,
    pub(super) nodes: u32,
    pub(super) shards: usize,
    pub(super) policy: ForkPolicy,
    pub(super) heavy_priority: Option<HeavyPriority>,
    pub(super) maps_memory: bool,
    pub(super) child: &'a ChildProgram,
}

impl Processes {
    /// Starts the nodes, and waits until they have met.
    pub(super) fn start(options: &ProcessOptions<'_>) -> Result<Self, BenchError> {
        let list = list_of_nodes(options.nodes, options.shards, name)?;
        let (policy, heavy) = (options.policy, options.heavy_priority);
        let file = options.folder.join(format!("{policy:?} {heavy:?}.toml"));
        fs::write(&file, &list).map_err(BenchError::io("the list of nodes"))?;
        let mut children = Vec::new();
        for number in 1..options.nodes {
            let mut command = Command::new(&options.child.program);
            command
                .args(&options.child.arguments)
                .arg(TASK)
                .args([options.store, &file])
                .args([name(number), policy_name(options.policy).to_owned()])
                .arg(options.maps_memory.to_string())
                .arg(format!("{:?}", options.heavy_priority))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped());
            let mut process = command.spawn().map_err(|error| failed(error.to_string()))?;
            let output = process.stdout.take().expect("it is a pipe");
            children.push(Node {
                input: process.stdin.take(),
                output: BufReader::new(output),
                process,
            });
        }
        let how = (options.policy, options.heavy_priority);
        let database = join(options.store, (&list, &name(0)), how, options.maps_memory);
        let processes = Self {
            database: database?,
            children,
        };
        match processes.database.wait_for_cluster(PATIENCE) {
            true => Ok(processes),
            false => Err(failed(format!("{:?}", processes.database.cluster()))),
        }
    }

    /// What clients wait for, at each node that has some: they are dealt to the nodes in turn.
    pub(super) fn ask(&mut self, load: &Load) -> Result<Vec<Waits>, BenchError> {
        let (own, others) = load.dealt(self.children.len() as u32 + 1);
        let mut nodes: Vec<_> = self.children.iter_mut().zip(others).collect();
        nodes.retain(|(_, load)| load.has_clients());
        for (node, load) in &mut nodes {
            node.tell(&serde_json::to_string(load).expect("numbers are JSON"))?;
        }
        let drawn = own.draw(&self.database)?;
        for (node, _) in &mut nodes {
            node.hear()?;
        }
        for (node, _) in &mut nodes {
            node.tell("begin")?;
        }
        let mut waits = vec![drawn.ask(&self.database)?];
        for (node, _) in &mut nodes {
            let line = node.hear()?;
            waits.push(serde_json::from_str(&line).map_err(|error| failed(error.to_string()))?);
        }
        Ok(waits)
    }
}

impl Node {
    fn tell(&mut self, line: &str) -> Result<(), BenchError> {
        let input = self
            .input
            .as_mut()
            .expect("it is there until the node is ended");
        writeln!(input, "{line}").map_err(BenchError::io("a node's input"))
    }

    fn hear(&mut self) -> Result<String, BenchError> {
        let mut line = String::new();
        let read = self.output.read_line(&mut line);
        match read.map_err(BenchError::io("a node's output"))? {
            0 => Err(failed("it ended before its clients did".to_owned())),
            _ => Ok(line),
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for child in &mut self.children {
            drop(child.input.take());
            // It ends of itself; of one that does not, nothing is left after the kill.
            let _ = child.process.kill();
            let _ = child.process.wait();
        }
    }
}

/// Is this node until the standard input ends, if the arguments say so.
///
/// # Errors
/// Those of the database.
pub fn child(arguments: &[OsString]) -> Result<bool, BenchError> {
    let texts: Option<Vec<&str>> = arguments.iter().map(|text| text.to_str()).collect();
    let Some([TASK, store, list, name, policy, maps_memory, heavy]) = texts.as_deref() else {
        return Ok(false);
    };
    let text = fs::read_to_string(list).map_err(BenchError::io("the list of nodes"))?;
    let policy = ALL_POLICIES
        .into_iter()
        .find(|one| policy_name(*one) == *policy);
    let policy = policy.ok_or_else(|| failed("an unknown way of forking".to_owned()))?;
    let heavy = ALL_PRIORITIES
        .into_iter()
        .find(|one| format!("{one:?}") == *heavy);
    let heavy = heavy.ok_or_else(|| failed("an unknown priority".to_owned()))?;
    let how = (policy, heavy);
    let database = join(Path::new(store), (&text, name), how, *maps_memory == "true")?;
    clients(&database)?;
    Ok(true)
}

/// Has clients ask what each line of the standard input says, when the next one comes.
fn clients(database: &Database) -> Result<(), BenchError> {
    let say = |text: &str| {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{text}").and_then(|()| out.flush())
    };
    let mut lines = std::io::stdin().lines();
    while let Some(line) = lines.next() {
        let line = line.map_err(BenchError::io("standard input"))?;
        let load: Load = serde_json::from_str(&line).map_err(|error| failed(error.to_string()))?;
        let drawn = load.draw(database)?;
        say("ready").map_err(BenchError::io("standard output"))?;
        if lines.next().is_none() {
            break;
        }
        let waits = serde_json::to_string(&drawn.ask(database)?).expect("numbers are JSON");
        say(&waits).map_err(BenchError::io("standard output"))?;
    }
    Ok(())
}

const ALL_POLICIES: [ForkPolicy; 3] = [
    ForkPolicy::Dynamic,
    ForkPolicy::InPlace,
    ForkPolicy::ForkJoin,
];

const ALL_PRIORITIES: [Option<HeavyPriority>; 4] = [
    None,
    Some(HeavyPriority::Idle),
    Some(HeavyPriority::Low),
    Some(HeavyPriority::Same),
];

fn policy_name(policy: ForkPolicy) -> &'static str {
    match policy {
        ForkPolicy::Dynamic => "dynamic",
        ForkPolicy::InPlace => "in-place",
        ForkPolicy::ForkJoin => "fork-join",
    }
}

fn join(
    store: &Path,
    (list, name): (&str, &str),
    (policy, heavy): (ForkPolicy, Option<HeavyPriority>),
    maps_memory: bool,
) -> Result<Database, BenchError> {
    let peers = PeerList::parse(list).map_err(|error| failed(error.to_string()))?;
    let node = peers
        .node(name)
        .map_err(|error| failed(error.to_string()))?;
    let mut config = super::settings(heavy);
    config.fork_policy = policy;
    let database = Database::open_to_read(store, config)?;
    database.join(ClusterOptions {
        peers,
        secret: None,
        node,
        maps_memory,
        listener: None,
        keeper: None,
        max_staleness: None,
    })?;
    Ok(database)
}

fn name(number: u32) -> String {
    format!("node-{number}")
}

fn failed(reason: String) -> BenchError {
    BenchError::Child {
        command: TASK.to_owned(),
        reason,
    }
}
