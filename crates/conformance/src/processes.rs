//! How is a graph asked that real server processes have, as the nodes of a cluster?

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use oxrdfio::{RdfFormat, RdfParser};

use crate::answer::Answer;
use crate::hosts::Hosts;
use crate::result_file;
use crate::served::{Reply, request};

/// How long a server may take to begin, and to meet the others.
const PATIENCE: Duration = Duration::from_secs(120);
const SHARDS: usize = 16;

/// How nodes reach each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// They map each other's memory, on one host.
    Mapped,
    /// Over TCP, each at a host of its own.
    Hosts,
}

/// What nodes do with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// All read the same one.
    Read,
    /// Each writes a copy of its own.
    Write,
}

/// Servers that are the nodes of a cluster; they end when this does.
pub struct Cluster {
    // Before the hosts that they run at.
    nodes: Vec<Node>,
    _hosts: Option<Hosts>,
}

/// A server.
struct Node {
    process: Child,
    address: SocketAddr,
    lines: Receiver<String>,
    /// What it said so far.
    said: Vec<String>,
}

impl Drop for Node {
    fn drop(&mut self) {
        // One that has ended cannot be killed.
        let _ended = self.process.kill();
        let _status = self.process.wait();
    }
}

/// The program of the servers, which `JINDOU_BIN` names; where it names none, that is said.
#[must_use]
pub fn program() -> Option<PathBuf> {
    let program = std::env::var_os("JINDOU_BIN").map(PathBuf::from);
    if program.is_none() {
        println!("SKIPPED: suites over server processes (cargo xtask test --cluster runs them)");
    }
    program
}

impl Cluster {
    /// So many servers of a store in a folder, which have met.
    ///
    /// # Errors
    /// Why there are no hosts for them.
    ///
    /// # Panics
    /// If a server does not begin, or does not meet the others.
    pub fn start(
        program: &Path,
        (folder, is_for): (&Path, Use),
        count: usize,
        way: Way,
    ) -> Result<Self, String> {
        let hosts = match way {
            Way::Mapped => None,
            Way::Hosts => Some(Hosts::new(count)?),
        };
        let file = format!("{way:?}-{count}.toml");
        fs::write(folder.join("secret"), "of the nodes of a test, no other's").expect("a file");
        fs::write(folder.join(&file), list(count, hosts.as_ref())).expect("a file");
        let nodes = (0..count).map(|number| {
            let mut command = match &hosts {
                None => Command::new(program),
                Some(hosts) => {
                    let mut command = hosts.command(number);
                    command.arg(program);
                    command
                }
            };
            command.current_dir(folder);
            command.args(["serve", "--peers", &file, "--node", &name(number)]);
            let bound = hosts.as_ref().map(|hosts| hosts.address(number));
            match &bound {
                None => command.args(["--bind", "127.0.0.1:0"]),
                Some(address) => command
                    .args(["--insecure", "--no-shared-memory", "--bind"])
                    .arg(format!("{address}:7878")),
            };
            match is_for {
                Use::Read => command.args(["--read-only", "--location", "store"]),
                Use::Write => {
                    let copy = format!("{way:?}-{count}-{number}");
                    copied(program, folder, &copy);
                    command.args(["--location", &copy])
                }
            };
            Node::start(command)
        });
        let mut nodes: Vec<Node> = nodes.collect();
        let are_there = |line: &str| {
            let endings = [
                "node of the cluster is there",
                "nodes of the cluster are there",
            ];
            endings.iter().any(|end| line.ends_with(end)).then_some(())
        };
        for node in &mut nodes {
            node.wait_for(are_there);
        }
        Ok(Self {
            nodes,
            _hosts: hosts,
        })
    }

    /// How many nodes it has.
    #[must_use]
    pub fn count(&self) -> usize {
        self.nodes.len()
    }

    /// What a node answers to a query, or what it says instead.
    ///
    /// # Errors
    /// Its message.
    ///
    /// # Panics
    /// If it does not answer at all, or what nobody can read.
    pub fn ask(&self, node: usize, query: &str) -> Result<Answer, String> {
        let accept = "application/sparql-results+json, application/n-triples;q=0.9";
        let reply = self.post(node, ("query", accept), query);
        if reply.status != 200 {
            return Err(format!("{}: {}", reply.status, reply.text()));
        }
        if reply.media_type() == "application/sparql-results+json" {
            let read = result_file::read_bytes("answer.srj", &reply.body);
            return Ok(read.expect("it is a result").answer);
        }
        let quads = RdfParser::from_format(RdfFormat::NTriples).for_slice(&reply.body);
        Ok(Answer::graph(
            quads.map(|quad| quad.expect("it is a triple").into()),
        ))
    }

    /// Has a node execute an update.
    ///
    /// # Errors
    /// What it says.
    ///
    /// # Panics
    /// If it does not answer at all.
    pub fn update(&self, node: usize, text: &str) -> Result<(), String> {
        let reply = self.post(node, ("update", "*/*"), text);
        match reply.status {
            200..300 => Ok(()),
            status => Err(format!("{status}: {}", reply.text())),
        }
    }

    fn post(&self, node: usize, (what, accept): (&str, &str), body: &str) -> Reply {
        let kind = format!("application/sparql-{what}");
        let headers = [("Content-Type", kind.as_str()), ("Accept", accept)];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let address = self.nodes[node].address;
        let (host, target) = (address.to_string(), format!("/{what}"));
        request(address, &host, ("POST", &target), &headers, body.as_bytes())
            .unwrap_or_else(|error| panic!("node {node}: {error}: {body}"))
    }
}

impl Node {
    fn start(mut command: Command) -> Self {
        let mut process = command
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("the program is there");
        let stderr = process.stderr.take().expect("it is piped");
        let (heard, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                // Nobody listens once all is there.
                let _heard = heard.send(line);
            }
        });
        let mut node = Self {
            process,
            address: ([127, 0, 0, 1], 0).into(),
            lines,
            said: Vec::new(),
        };
        node.address = node.wait_for(|line| {
            let rest = line.strip_prefix("serving at http://")?;
            rest.split_once('/')?.0.parse().ok()
        });
        node
    }

    /// What `find` finds in a line, once there is one in which it finds something.
    fn wait_for<T>(&mut self, find: impl Fn(&str) -> Option<T>) -> T {
        if let Some(found) = self.said.iter().find_map(|line| find(line)) {
            return found;
        }
        loop {
            let Ok(line) = self.lines.recv_timeout(PATIENCE) else {
                panic!("a server says no more: {:?}", self.said);
            };
            let found = find(&line);
            self.said.push(line);
            if let Some(found) = found {
                return found;
            }
        }
    }
}

/// Makes a copy of the store for a node.
fn copied(program: &Path, folder: &Path, copy: &str) {
    let mut command = Command::new(program);
    command.args(["backup", "--location", "store", "--to", copy]);
    let output = command.current_dir(folder).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "backup: {said}");
}

fn name(node: usize) -> String {
    format!("node-{node}")
}

/// A list of nodes, on one host at ports that were free a moment ago.
fn list(count: usize, hosts: Option<&Hosts>) -> String {
    let ports: Vec<TcpListener> = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0").expect("a port"))
        .collect();
    let nodes = ports.iter().enumerate().map(|(number, port)| {
        let address = match hosts {
            None => port.local_addr().expect("it has one").to_string(),
            Some(hosts) => format!("{}:7900", hosts.address(number)),
        };
        let name = name(number);
        format!("[[node]]\nname = \"{name}\"\naddress = \"{address}\"\n")
    });
    let nodes: String = nodes.collect();
    format!("shards = {SHARDS}\nsecret-file = \"secret\"\n{nodes}")
}
