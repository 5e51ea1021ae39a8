//! Do servers that are nodes of a cluster answer as one, say what they miss, and end when they are to?
#![cfg(target_os = "linux")]

mod copied;
mod elected;
mod large_documents;
mod listed;
mod namespaces;
mod parts;
mod proxied;
mod streams;
mod together;

use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

const PEOPLE: usize = 100;
/// How often a node is killed while others are asked.
const KILLS: usize = 3;
const NAMES: [&str; 3] = ["a", "b", "c"];
const PATIENCE: Duration = Duration::from_secs(60);

/// What is asked, the ending of a file of the result, and its media type.
const QUERIES: [(&str, &str, &str); 7] = [
    (
        "SELECT * { <http://x/p000> <http://x/knows> ?a . ?a <http://x/knows> ?b }",
        "csv",
        "text/csv",
    ),
    (
        "SELECT ?a ?c ?n { ?a a <http://x/Person> ; <http://x/knows> ?b . ?b <http://x/knows> ?c . ?c <http://x/name> ?n }",
        "csv",
        "text/csv",
    ),
    (
        "SELECT ?n (COUNT(*) AS ?c) { ?a <http://x/knows> ?b . ?b <http://x/knows> ?d . ?d <http://x/name> ?n } GROUP BY ?n",
        "csv",
        "text/csv",
    ),
    (
        "SELECT ?a { ?a <http://x/knows>+ <http://x/p003> }",
        "csv",
        "text/csv",
    ),
    (
        "SELECT * { GRAPH ?g { ?a <http://x/likes> ?b } ?b <http://x/name> ?n }",
        "csv",
        "text/csv",
    ),
    (
        "CONSTRUCT { ?c <http://x/knownBy2> ?a } { ?a <http://x/knows> ?b . ?b <http://x/knows> ?c }",
        "nt",
        "application/n-triples",
    ),
    (
        "ASK { ?a <http://x/knows> ?b . ?b <http://x/knows> ?c . ?c <http://x/knows> ?a }",
        "csv",
        "text/csv",
    ),
];

/// Each knows the next and the seventh after them, and some like others in a graph of its own.
fn data() -> String {
    let person = |number: usize| format!("<http://x/p{:03}>", number % PEOPLE);
    let lines = (0..PEOPLE).map(|number| {
        let (me, next, seventh) = (person(number), person(number + 1), person(number + 7));
        let graph = match number % 3 {
            0 => format!("<http://x/g> {{ {me} <http://x/likes> {seventh} }}\n"),
            _ => String::new(),
        };
        format!(
            "{me} a <http://x/Person> ; <http://x/knows> {next} , {seventh} ; <http://x/name> \"{number}\" .\n{graph}"
        )
    });
    lines.collect()
}

fn jindou(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jindou"));
    command.current_dir(folder);
    command
}

#[track_caller]
fn succeeds(folder: &Path, arguments: &[&str]) -> String {
    let output = jindou(folder).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A listener at a port that a server may have later, when this is gone: no connection gets one of these by chance,
/// as those come from 32768 on.
fn listen() -> TcpListener {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = std::process::id() % 10_000;
    loop {
        let next = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = 20_000 + (first + next) % 12_000;
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", port as u16)) {
            return listener;
        }
    }
}

/// A folder with data, a store of it, and a list of nodes at ports that were free a moment ago.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("data.trig"), data()).unwrap();
    succeeds(folder.path(), &["load", "--location", "store", "data.trig"]);
    let listeners = NAMES.map(|name| (name, listen()));
    let nodes = listeners.iter().map(|(name, listener)| {
        let address = listener.local_addr().unwrap();
        format!("[[node]]\nname = \"{name}\"\naddress = \"{address}\"\n")
    });
    let list = format!("shards = 16\n{}", nodes.collect::<String>());
    fs::write(folder.path().join("nodes.toml"), list).unwrap();
    folder
}

/// Asks again and again until there is an answer.
#[track_caller]
fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(begun.elapsed() < PATIENCE, "{what}");
        thread::yield_now();
    }
}

/// The lines that a process said so far on standard error.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    fn of(stderr: ChildStderr) -> Self {
        let lines = Self::default();
        let heard = lines.clone();
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                heard.0.lock().unwrap().push(line);
            }
        });
        lines
    }

    /// What `find` finds in one of them, once there is one.
    #[track_caller]
    fn wait_for<T>(&self, what: &str, find: impl Fn(&str) -> Option<T>) -> T {
        let found = || self.0.lock().unwrap().iter().find_map(|line| find(line));
        let begun = Instant::now();
        loop {
            if let Some(found) = found() {
                return found;
            }
            let late = begun.elapsed() > PATIENCE;
            assert!(!late, "{what}: {:?}", self.0.lock().unwrap());
            thread::yield_now();
        }
    }
}

/// A process that is killed where a test ends before it.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _has_ended = self.0.kill();
        self.0.wait().unwrap();
    }
}

struct Node {
    process: Process,
    url: String,
    lines: Lines,
}

impl Node {
    fn start(folder: &Path, name: &str, options: &[&str]) -> Self {
        Self::start_at(folder, "store", name, options)
    }

    fn start_at(folder: &Path, location: &str, name: &str, options: &[&str]) -> Self {
        let mut command = jindou(folder);
        command.args(["serve", "--read-only", "--location", location]);
        command.args(["--bind", "127.0.0.1:0", "--peers", "nodes.toml", "--node"]);
        command.arg(name).args(options);
        Self::of(command)
    }

    /// Waits until a server that is started serves.
    fn of(command: Command) -> Self {
        Self::started(command, "serving at ")
    }

    /// Waits until a program that is started says where it serves, behind this.
    fn started(mut command: Command, saying: &'static str) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let lines = Lines::of(child.stderr.take().unwrap());
        let process = Process(child);
        let url = lines.wait_for("it serves", |line| {
            let rest = line.strip_prefix(saying)?;
            Some(rest.split_once("/ ")?.0.to_owned())
        });
        Self {
            process,
            url,
            lines,
        }
    }

    fn get(&self, path: &str, accept: &str) -> (u16, String) {
        get(&self.url, path, accept)
    }

    fn ask(&self, query: &str, accept: &str) -> (u16, String) {
        ask(&self.url, query, accept)
    }

    /// How it is with each node, as this one has it.
    fn states(&self) -> Vec<String> {
        let (status, text) = self.get("/cluster", "application/json");
        assert_eq!(status, 200, "{text}");
        let told: Value = serde_json::from_str(&text).unwrap();
        let nodes = told["nodes"].as_array().unwrap().iter();
        nodes
            .map(|node| node["state"].as_str().unwrap().to_owned())
            .collect()
    }

    fn wait_for_states(&self, states: [&str; 3]) {
        wait_for(&format!("{states:?}"), || {
            (self.states() == states).then_some(())
        });
    }
}

fn agent() -> ureq::Agent {
    let config = ureq::Agent::config_builder().http_status_as_error(false);
    config.build().into()
}

fn get(url: &str, path: &str, accept: &str) -> (u16, String) {
    let request = agent().get(format!("{url}{path}")).header("Accept", accept);
    let mut answer = request.call().unwrap();
    let text = answer.body_mut().read_to_string().unwrap();
    (answer.status().as_u16(), text)
}

fn ask(url: &str, query: &str, accept: &str) -> (u16, String) {
    answer_or_cut(url, query, accept).expect("an answer is not cut")
}

/// Asks; none where the answer is cut after its begin, of which the client may have got nothing.
fn answer_or_cut(url: &str, query: &str, accept: &str) -> Option<(u16, String)> {
    let request = agent()
        .post(format!("{url}/query"))
        .header("Accept", accept);
    let request = request.header("Content-Type", "application/sparql-query");
    let mut answer = match request.send(query) {
        Err(ureq::Error::Io(error)) if error.kind() == ErrorKind::UnexpectedEof => return None,
        answer => answer.unwrap(),
    };
    let text = answer.body_mut().read_to_string().ok()?;
    Some((answer.status().as_u16(), text))
}

/// Asks all queries again and again until it is over: each is answered, but for some whose answers had begun when a
/// node was lost.
fn ask_until(is_over: &AtomicBool, url: &str, expected: &[Vec<String>]) -> usize {
    let (mut answered, mut cut) = (0, 0);
    while !is_over.load(Ordering::Relaxed) {
        for ((query, _, media_type), expected) in QUERIES.iter().zip(expected) {
            let Some((status, text)) = answer_or_cut(url, query, media_type) else {
                cut += 1;
                continue;
            };
            assert_eq!((status, &sorted(&text)), (200, expected), "{query}");
            answered += 1;
        }
    }
    // One each time that a node goes, and that it comes back.
    assert!(cut <= 2 * KILLS, "{cut} answers were cut");
    answered
}

/// Asks for an update.
fn update(url: &str, text: &str) -> (u16, String) {
    let request = agent().post(format!("{url}/update"));
    let request = request.header("Content-Type", "application/sparql-update");
    let mut answer = request.send(text).unwrap();
    let told = answer.body_mut().read_to_string().unwrap();
    (answer.status().as_u16(), told)
}

/// The lines of a result, in no order.
fn sorted(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn each_node_answers_what_the_store_does() {
    let folder = folder();
    let at = folder.path();
    let expected = QUERIES.map(|(query, format, _)| {
        let command = ["query", "--location", "store", "--results-format", format];
        sorted(&succeeds(at, &[&command[..], &["--query", query]].concat()))
    });
    assert_eq!(expected[1].len(), 1 + 4 * PEOPLE);
    for (options, by) in [(&[][..], "mapped"), (&["--no-shared-memory"][..], "tcp")] {
        let nodes = NAMES.map(|name| Node::start(at, name, options));
        for (number, node) in nodes.iter().enumerate() {
            let begun = format!("node {} of 3, with ", NAMES[number]);
            let all = "all 3 nodes of the cluster are there";
            node.lines.wait_for("it says who it is", |line| {
                line.starts_with(&begun).then_some(())
            });
            node.lines
                .wait_for("all are there", |line| (line == all).then_some(()));
            let mut states = [by; 3];
            states[number] = "here";
            assert_eq!(node.states(), states);
            for ((query, _, media_type), expected) in QUERIES.iter().zip(&expected) {
                let (status, text) = node.ask(query, media_type);
                assert_eq!(status, 200, "{query}: {text}");
                assert_eq!(&sorted(&text), expected, "{by}, node {number}: {query}");
            }
        }
        something_went_between(&nodes[0]);
    }
}

#[track_caller]
fn something_went_between(node: &Node) {
    let (_, text) = node.get("/cluster", "*/*");
    let told: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(told["node"], "a");
    let numbers = ["reads", "calls"].map(|what| told["reads"][what].as_u64().unwrap());
    let sent = &told["nodes"][1]["sent"]["messages"];
    let messages = sent.as_u64().unwrap();
    assert!(numbers.iter().sum::<u64>() + messages > 0, "{text}");
    let (status, page) = node.get("/cluster", "text/html,*/*;q=0.8");
    assert_eq!(status, 200);
    assert!(page.starts_with("<!doctype html>"), "{page}");
    let (_, metrics) = node.get("/metrics", "*/*");
    for line in [
        "jindou_cluster_nodes{state=\"here\"} 1",
        "jindou_cluster_nodes{state=\"away\"} 0",
    ] {
        assert!(metrics.lines().any(|told| told == line), "{metrics}");
    }
}

#[test]
fn a_node_that_is_killed_is_told_of_by_name_answered_for_and_comes_back() {
    let folder = folder();
    let at = folder.path();
    let [a, mut b, c] = NAMES.map(|name| Node::start(at, name, &[]));
    a.wait_for_states(["here", "mapped", "mapped"]);
    c.wait_for_states(["mapped", "mapped", "here"]);
    let (all, _, media_type) = QUERIES[2];
    let (status, expected) = a.ask(all, media_type);
    assert_eq!(status, 200, "{expected}");
    // SIGKILL.
    b.process.0.kill().unwrap();
    b.process.0.wait().unwrap();
    a.wait_for_states(["here", "away", "mapped"]);
    c.wait_for_states(["mapped", "away", "here"]);
    // Each of the others has a whole copy of the store.
    for node in [&a, &c] {
        let (status, text) = node.ask(all, media_type);
        assert_eq!((status, sorted(&text)), (200, sorted(&expected)));
        let (status, text) = node.get("/health", "*/*");
        assert_eq!(status, 200, "{text}");
        assert!(text.contains("\"nodes_away\":[\"b\"]"), "{text}");
    }
    b = Node::start(at, "b", &[]);
    a.wait_for_states(["here", "mapped", "mapped"]);
    c.wait_for_states(["mapped", "mapped", "here"]);
    for node in [&a, &b, &c] {
        let (status, text) = node.ask(all, media_type);
        assert_eq!(status, 200, "{text}");
    }
    assert!(!a.get("/health", "*/*").1.contains("away"));
}

#[test]
fn queries_are_answered_while_a_node_is_killed_and_comes_back() {
    let folder = folder();
    let at = folder.path();
    let [a, mut b, c] = NAMES.map(|name| Node::start(at, name, &[]));
    a.wait_for_states(["here", "mapped", "mapped"]);
    c.wait_for_states(["mapped", "mapped", "here"]);
    let expected = QUERIES.map(|(query, _, media_type)| {
        let (status, text) = a.ask(query, media_type);
        assert_eq!(status, 200, "{query}: {text}");
        sorted(&text)
    });
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (is_over, expected) = (&is_over, &expected);
        let askers = [&a.url, &c.url, &a.url, &c.url];
        let askers = askers.map(|url| scope.spawn(|| ask_until(is_over, url, expected)));
        // Nobody asks for ever where this fails.
        let _end = EndOnDrop(is_over);
        for _ in 0..KILLS {
            b.process.0.kill().unwrap();
            b.process.0.wait().unwrap();
            a.wait_for_states(["here", "away", "mapped"]);
            c.wait_for_states(["mapped", "away", "here"]);
            b = Node::start(at, "b", &[]);
            a.wait_for_states(["here", "mapped", "mapped"]);
            c.wait_for_states(["mapped", "mapped", "here"]);
        }
        is_over.store(true, Ordering::Relaxed);
        for asker in askers {
            assert!(asker.join().unwrap() > 0);
        }
    });
}

struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn what_cannot_be_a_node_is_told_on_one_line() {
    let folder = folder();
    let at = folder.path();
    fs::write(
        at.join("wrong.toml"),
        "shards = 16\n[[node]]\nname = \"a b\"\naddress = \"x\"\n",
    )
    .unwrap();
    let list = fs::read_to_string(at.join("nodes.toml")).unwrap();
    let taken = list.split('"').nth(3).unwrap();
    let _taken = TcpListener::bind(taken).unwrap();
    let node = |options: &[&str]| {
        let mut command = jindou(at);
        command
            .args(["serve", "--bind", "127.0.0.1:0"])
            .args(options);
        let output = command.output().unwrap();
        assert!(!output.status.success(), "{options:?}");
        said(&output)
    };
    let read = ["--location", "store", "--read-only"];
    let with = |options: &[&'static str]| [&read[..], options].concat();
    for (options, part) in [
        (with(&["--peers", "nodes.toml"]), "--node <NAME>"),
        (
            with(&["--node", "a"]),
            "error: --node: give the list of nodes with --peers FILE, or the etcd that keeps it with --cluster URL\n",
        ),
        (with(&["--no-shared-memory"]), "--node <NAME>"),
        (
            vec![
                "--location",
                "elsewhere",
                "--peers",
                "nodes.toml",
                "--node",
                "a",
            ],
            "elsewhere",
        ),
        (
            vec![
                "--location",
                "elsewhere",
                "--peers",
                "nodes.toml",
                "--node",
                "a",
                "people.ttl",
            ],
            "error: --node: all nodes have copies of one store; load files",
        ),
        (
            vec!["--read-only", "--peers", "nodes.toml", "--node", "a"],
            "give its folder with --location DIR\n",
        ),
        (
            with(&["--peers", "none.toml", "--node", "a"]),
            "error: --peers: none.toml: No such file or directory",
        ),
        (
            with(&["--peers", "wrong.toml", "--node", "a"]),
            "error: --peers: wrong.toml, line 3, name: \"a b\" is no name",
        ),
        (
            with(&["--peers", "nodes.toml", "--node", "d"]),
            "error: --node: no node is named \"d\": there are a, b, c\n",
        ),
        (
            with(&["--peers", "nodes.toml", "--node", "a"]),
            "Address already in use (os error 98); another program has the port, which may be this node",
        ),
    ] {
        let said = node(&options);
        assert!(said.contains(part), "{options:?}: {said}");
    }
}

#[test]
fn the_environment_and_a_file_give_the_options_too() {
    let folder = folder();
    let at = folder.path();
    fs::write(
        at.join("jindou.toml"),
        "location = \"store\"\nread-only = true\npeers = \"nodes.toml\"\nbind = \"127.0.0.1:0\"\n",
    )
    .unwrap();
    let mut command = jindou(at);
    command.args(["serve", "--config", "jindou.toml"]);
    command.env("JINDOU_NODE", "d");
    let said = said(&command.output().unwrap());
    assert!(said.contains("no node is named \"d\""), "{said}");
    command.env("JINDOU_NODE", "b").stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = Lines::of(child.stderr.take().unwrap());
    let _process = Process(child);
    lines.wait_for("it is node b", |line| {
        line.starts_with("node b of 3, ").then_some(())
    });
    // Nobody else comes.
    lines.wait_for("it says whom it misses", |line| {
        let is_it = line.starts_with("node b waits for a (") && line.contains(", c (");
        is_it.then_some(())
    });
}

/// A `jindou cluster dev` whose nodes have met.
struct Dev {
    process: Process,
    lines: Lines,
    /// URL and process id of each.
    nodes: Vec<(String, u32)>,
    temporary: PathBuf,
}

impl Dev {
    fn start(folder: &Path, options: &[&str]) -> Self {
        let temporary = folder.join("temporary");
        fs::create_dir_all(&temporary).unwrap();
        let mut command = jindou(folder);
        command.args(["cluster", "dev"]).args(options);
        // What is of a server that somebody else starts is not of these.
        command.env("TMPDIR", &temporary).env("JINDOU_NODE", "z");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = Lines::of(child.stderr.take().unwrap());
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let process = Process(child);
        let table = stdout.lines().map_while(Result::ok);
        let table: Vec<String> = table
            .take_while(|line| line != "Ctrl-C ends all.")
            .collect();
        let rows = table.iter().filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [_, url, pid, shards] = words[..] else {
                return None;
            };
            let _is_number: u32 = shards.parse().ok()?;
            Some((url.to_owned(), pid.parse().ok()?))
        });
        let nodes: Vec<_> = rows.collect();
        assert!(
            !nodes.is_empty(),
            "{table:?}, {:?}",
            lines.0.lock().unwrap()
        );
        Self {
            process,
            lines,
            nodes,
            temporary,
        }
    }

    fn wait_until_nodes_are_gone(&self) {
        for (_, pid) in &self.nodes {
            wait_for("a node ends", || (!runs(*pid)).then_some(()));
        }
    }
}

/// Whether a process is there, and has not ended without anybody having asked how.
fn runs(pid: u32) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat"));
    state.is_ok_and(|state| !state.contains(") Z "))
}

fn signal(name: &str, pid: u32) {
    let sent = Command::new("kill").args([name, &pid.to_string()]).status();
    assert!(sent.unwrap().success());
}

#[test]
fn a_cluster_for_a_first_look_answers_and_leaves_nothing() {
    let folder = folder();
    let at = folder.path();
    let mut dev = Dev::start(at, &["data.trig"]);
    let (query, _, media_type) = QUERIES[1];
    let answers = || {
        let nodes = dev.nodes.iter();
        nodes.map(|(url, _)| ask(url, query, media_type))
    };
    for (status, text) in answers() {
        assert_eq!((status, text.lines().count()), (200, 1 + 4 * PEOPLE));
    }
    let new = "PREFIX : <http://new/> ASK { :s0 :p ?a . :s1 :p ?a . :s2 :p ?a . :s3 :p ?a }";
    let is_new = |url: &str| ask(url, new, "text/csv").1.contains("true");
    let insert = "PREFIX : <http://new/> INSERT DATA { :s0 :p 1 . :s1 :p 1 . :s2 :p 1 . :s3 :p 1 }";
    let (status, text) = update(&dev.nodes[2].0, insert);
    assert!(status < 300, "{status}: {text}");
    for (url, _) in &dev.nodes {
        assert!(is_new(url), "{url}");
    }
    signal("-KILL", dev.nodes[1].1);
    let delete = "PREFIX : <http://new/> DELETE DATA { :s2 :p 1 }";
    // It may have led, and may have been sent the first one.
    wait_for("writes go on", || {
        let (status, _) = update(&dev.nodes[0].0, delete);
        (status < 300).then_some(())
    });
    let again = "node b is there again, with pid ";
    dev.lines.wait_for("its end is told", |line| {
        line.contains("ended: signal: 9 (SIGKILL)").then_some(())
    });
    dev.nodes[1].1 = dev.lines.wait_for("it comes back", |line| {
        line.strip_prefix(again)?.parse().ok()
    });
    for (url, _) in &dev.nodes {
        wait_for("all is answered again", || {
            (ask(url, query, media_type).0 == 200).then_some(())
        });
        wait_for("what it missed is there", || {
            (ask(url, new, "text/csv").1.contains("false")).then_some(())
        });
    }
    signal("-INT", dev.process.0.id());
    assert!(dev.process.0.wait().unwrap().success());
    dev.wait_until_nodes_are_gone();
    assert_eq!(fs::read_dir(&dev.temporary).unwrap().count(), 0);
}

#[test]
fn nodes_end_with_whoever_started_them() {
    let folder = folder();
    let options = ["--location", "store", "--nodes", "2", "--no-shared-memory"];
    let mut dev = Dev::start(folder.path(), &options);
    assert_eq!(dev.nodes.len(), 2);
    let (_, told) = get(&dev.nodes[0].0, "/cluster", "*/*");
    assert!(told.contains("\"tcp\""), "{told}");
    // SIGKILL: it does nothing more.
    dev.process.0.kill().unwrap();
    dev.process.0.wait().unwrap();
    dev.wait_until_nodes_are_gone();
}

#[test]
fn a_cluster_for_a_first_look_says_what_is_wrong_with_what_it_is_given() {
    let folder = folder();
    let at = folder.path();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (options, part) in [
        (
            &["--location", "none"][..],
            "error: none: there is no such folder",
        ),
        (&["none.ttl"][..], "none.ttl"),
        (
            &["--location", "store", "data.trig"][..],
            "cannot be used with",
        ),
        (&["--nodes", "0"][..], "0 is not in 1..=16"),
        (
            &["--http-port", &port][..],
            "cannot be had; begin with another",
        ),
        (&["--http-port", "65535"][..], "there is no port 65536"),
    ] {
        let mut command = jindou(at);
        let output = command
            .args(["cluster", "dev"])
            .args(options)
            .output()
            .unwrap();
        assert!(!output.status.success(), "{options:?}");
        assert!(
            said(&output).contains(part),
            "{options:?}: {}",
            said(&output)
        );
    }
}
