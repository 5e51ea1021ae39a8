//! Do nodes of several hosts answer as one, and what do they say when the network between them is cut?
//!
//! Each host is a network namespace with an address of its own, on one bridge; its processes see nothing of the others
//! but what goes over TCP (they would map the memory of one machine otherwise). Where these cannot be made (they need root, and `ip`), that is said and nothing tested.
//! `JINDOU_CASES` makes more updates, `JINDOU_SEED` others.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::{
    Lines, NAMES, Node, PEOPLE, Process, QUERIES, data, jindou, sorted, succeeds, update, wait_for,
};

/// Network namespaces on a bridge; they go when this does.
struct Hosts {
    /// The first letters of their names, and of the bridge's.
    prefix: String,
    /// The first three numbers of their addresses.
    network: String,
}

impl Hosts {
    /// Three hosts; none where this process may not make them.
    fn new() -> Option<Self> {
        let pid = std::process::id();
        let hosts = Self {
            prefix: format!("j{pid}"),
            network: format!("10.{}.{}", 128 + pid / 250 % 100, pid % 250),
        };
        let Self { prefix, network } = &hosts;
        let bridge = format!("{prefix}b");
        let mut commands = vec![
            format!("link add {bridge} type bridge"),
            format!("addr add {network}.254/24 dev {bridge}"),
            format!("link set {bridge} up"),
        ];
        for host in 0..NAMES.len() {
            let (space, end) = (hosts.space(host), hosts.end(host));
            commands.extend([
                format!("netns add {space}"),
                format!("link add {end} type veth peer name eth0 netns {space}"),
                format!("link set {end} master {bridge} up"),
                format!("-n {space} addr add {}/24 dev eth0", hosts.address(host)),
                format!("-n {space} link set eth0 up"),
                format!("-n {space} link set lo up"),
            ]);
        }
        for command in commands {
            if let Err(why) = ip(&command) {
                println!("SKIPPED: hosts in network namespaces: ip {command}: {why}");
                return None;
            }
        }
        Some(hosts)
    }

    fn space(&self, host: usize) -> String {
        format!("{}h{host}", self.prefix)
    }

    /// The bridge's end of a host's cable.
    fn end(&self, host: usize) -> String {
        format!("{}v{host}", self.prefix)
    }

    fn address(&self, host: usize) -> String {
        format!("{}.{}", self.network, host + 1)
    }

    /// Pulls a host's cable, or puts it back.
    fn set_cable(&self, host: usize, is_there: bool) {
        let state = if is_there { "up" } else { "down" };
        ip(&format!("link set {} {state}", self.end(host))).unwrap();
    }

    fn list(&self) -> String {
        let node = |(host, name): (usize, &str)| {
            format!(
                "[[node]]\nname = \"{name}\"\naddress = \"{}:7900\"\n",
                self.address(host)
            )
        };
        let nodes: String = NAMES.into_iter().enumerate().map(node).collect();
        format!("shards = 16\nsecret-file = \"secret\"\n{nodes}")
    }

    /// Starts a node at its host, over its own copy of the store.
    fn start(&self, folder: &Path, host: usize) -> Node {
        let mut command = Command::new("ip");
        command.current_dir(folder).stderr(Stdio::piped());
        command.args(["netns", "exec", &self.space(host)]);
        command.arg(jindou(folder).get_program());
        command.args([
            "serve",
            "--insecure",
            "--no-shared-memory",
            "--peers",
            "nodes.toml",
        ]);
        command.args(["--location", &format!("copy-{}", NAMES[host])]);
        command.args(["--node", NAMES[host]]);
        command.args(["--bind", &format!("{}:7878", self.address(host))]);
        let mut child = command.spawn().unwrap();
        let lines = Lines::of(child.stderr.take().unwrap());
        let process = Process(child);
        lines.wait_for("it serves", |line| {
            line.starts_with("serving at ").then_some(())
        });
        Node {
            process,
            url: format!("http://{}:7878", self.address(host)),
            lines,
        }
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        // What was not made is not there to be removed.
        for host in 0..NAMES.len() {
            let _gone = ip(&format!("link del {}", self.end(host)));
            let _gone = ip(&format!("netns del {}", self.space(host)));
        }
        let _gone = ip(&format!("link del {}b", self.prefix));
    }
}

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip")
        .args(arguments.split_whitespace())
        .output()
        .map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

/// A folder with a store, a copy of it for each node, a list of these and their secret.
fn folder(hosts: &Hosts) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("data.trig"), data()).unwrap();
    succeeds(at, &["load", "--location", "store", "data.trig"]);
    for name in NAMES {
        succeeds(
            at,
            &[
                "backup",
                "--location",
                "store",
                "--to",
                &format!("copy-{name}"),
            ],
        );
    }
    fs::write(at.join("nodes.toml"), hosts.list()).unwrap();
    fs::write(
        at.join("secret"),
        "of nodes in a test, which nobody else knows",
    )
    .unwrap();
    folder
}

/// A server alone.
fn alone(folder: &Path) -> (Process, String) {
    let mut command = jindou(folder);
    command.args(["serve", "--location", "store", "--bind", "127.0.0.1:0"]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let lines = Lines::of(child.stderr.take().unwrap());
    let url = lines.wait_for("it serves", |line| {
        let rest = line.strip_prefix("serving at ")?;
        Some(rest.split_once("/ ")?.0.to_owned())
    });
    (Process(child), url)
}

fn number(name: &str, otherwise: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.map_or(otherwise, |set| set.parse().expect("a number"))
}

/// The next of some numbers that a seed gives (SplitMix64).
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) as usize
}

fn random_update(state: &mut u64) -> String {
    let [one, other] = [(); 2].map(|()| format!("<http://x/p{:03}>", next(state) % PEOPLE));
    match next(state) % 4 {
        0 => format!("INSERT DATA {{ {one} <http://x/knows> {other} }}"),
        1 => format!("INSERT DATA {{ GRAPH <http://x/g> {{ {one} <http://x/likes> {other} }} }}"),
        2 => format!("DELETE WHERE {{ {one} <http://x/knows> ?anybody }}"),
        _ => format!(
            "DELETE {{ ?a <http://x/knows> {one} }} INSERT {{ ?a <http://x/knows> {other} }} \
             WHERE {{ ?a <http://x/knows> {one} }}"
        ),
    }
}

#[track_caller]
fn all_answer_as(expected: &str, nodes: &[&Node]) {
    for (query, _, media_type) in QUERIES {
        let (status, text) = super::ask(expected, query, media_type);
        assert_eq!(status, 200, "{text}");
        let expected = sorted(&text);
        for (number, node) in nodes.iter().enumerate() {
            let (status, text) = node.ask(query, media_type);
            assert_eq!(status, 200, "node {number}: {query}: {text}");
            assert_eq!(sorted(&text), expected, "node {number}: {query}");
        }
    }
}

#[test]
fn nodes_of_several_hosts_answer_as_one_and_miss_one_whose_cable_is_pulled() {
    let Some(hosts) = Hosts::new() else { return };
    let folder = folder(&hosts);
    let at = folder.path();
    let nodes = [0, 1, 2].map(|host| hosts.start(at, host));
    let (_alone, expected) = alone(at);
    nodes[0].wait_for_states(["here", "tcp", "tcp"]);
    nodes[1].wait_for_states(["tcp", "here", "tcp"]);
    nodes[2].wait_for_states(["tcp", "tcp", "here"]);
    let all = [&nodes[0], &nodes[1], &nodes[2]];
    all_answer_as(&expected, &all);
    let mut state = number("JINDOU_SEED", 1);
    println!("JINDOU_SEED={state}");
    for _ in 0..number("JINDOU_CASES", 8) {
        let text = random_update(&mut state);
        let node = all[next(&mut state) % all.len()];
        for url in [&node.url, &expected] {
            let (status, told) = update(url, &text);
            assert!((200..300).contains(&status), "{text}: {status} {told}");
        }
        all_answer_as(&expected, &all);
    }
    // Nothing says that it ended: it is silent.
    hosts.set_cable(2, false);
    nodes[0].wait_for_states(["here", "tcp", "away"]);
    nodes[1].wait_for_states(["tcp", "here", "away"]);
    // Each of the others has a whole copy.
    all_answer_as(&expected, &all[..2]);
    let missed = "INSERT DATA { <http://x/p001> <http://x/name> \"missed by one\" }";
    for url in [&nodes[1].url, &expected] {
        let (status, told) = update(url, missed);
        assert!((200..300).contains(&status), "{status} {told}");
    }
    hosts.set_cable(2, true);
    nodes[0].wait_for_states(["here", "tcp", "tcp"]);
    nodes[2].wait_for_states(["tcp", "tcp", "here"]);
    wait_for("it has caught up", || {
        let (query, _, media_type) = QUERIES[1];
        (nodes[2].ask(query, media_type).0 == 200).then_some(())
    });
    all_answer_as(&expected, &all);
}
