//! Do continuous queries of a cluster find what those of one server find, though the node that has them is killed?
//!
//! The queries of LSBench over streams that the generator makes. A producer repeats a push that was not
//! acknowledged, and a reader of each query goes on behind the last result that it has, at any node. `JINDOU_SECONDS` plays longer, and
//! `JINDOU_MEMBERS` on other nodes, as in `5` or `2,tcp`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::elected::{Etcd, leader, start_with};
use super::{Node, PATIENCE, get, jindou, listen, signal, succeeds, wait_for};

/// Seconds of the streams.
const SECONDS: u64 = 12;
/// The leader is killed after this many seconds of the streams, again and again.
const KILLED_AFTER: u64 = 3;
const STREAMS: [&str; 5] = ["post", "postlike", "photo", "photolike", "gps"];

const MEMBERS: &str = "3";
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Servers that are started, killed and started again.
struct Servers<'a> {
    folder: &'a Path,
    etcd: &'a Etcd,
    ports: Vec<u16>,
    /// Nothing is mapped, all goes over TCP.
    over_tcp: bool,
    nodes: Vec<Option<Node>>,
}

impl Servers<'_> {
    fn start(&mut self, number: usize) {
        let options: &[&str] = if self.over_tcp {
            &["--no-shared-memory"]
        } else {
            &[]
        };
        let at = (self.etcd, self.ports[number]);
        let node = start_with(self.folder, NAMES[number], at, options);
        self.nodes[number] = Some(node);
    }

    fn urls(&self) -> Vec<String> {
        let url = |port: &u16| format!("http://127.0.0.1:{port}");
        self.ports.iter().map(url).collect()
    }

    /// Kills the node that leads, and starts it again once another one does.
    fn kill_who_leads(&mut self) {
        let leads = wait_for("one leads", || leader(&self.nodes));
        let number = NAMES.iter().position(|name| *name == leads).unwrap();
        self.nodes[number] = None;
        wait_for("another one leads", || {
            let now = leader(&self.nodes)?;
            (now != leads).then_some(())
        });
        self.start(number);
    }
}

/// What a server answers to a request, if it does.
struct Answer {
    status: u16,
    location: Option<String>,
    body: BufReader<TcpStream>,
}

/// Sends one request on a connection of its own.
fn send(url: &str, head: &str, body: &str, patience: Duration) -> Option<Answer> {
    let (address, path) = url.strip_prefix("http://")?.split_once('/')?;
    let mut connection = TcpStream::connect(address).ok()?;
    connection.set_read_timeout(Some(patience)).ok()?;
    let (method, headers) = head.split_once(' ').unwrap_or((head, ""));
    let length = body.len();
    let text = format!(
        "{method} /{path} HTTP/1.0\r\nHost: {address}\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    );
    connection.write_all(text.as_bytes()).ok()?;
    let mut reader = BufReader::new(connection);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let status = line.split(' ').nth(1)?.parse().ok()?;
    let mut location = None;
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("location") => {
                location = Some(value.to_owned());
            }
            Some(_) => {}
            None => break,
        }
    }
    Some(Answer {
        status,
        location,
        body: reader,
    })
}

/// Sends a request to one of some servers, or to whom that sends it, until it is done.
fn done(urls: &[String], path: &str, head: &str, body: &str) {
    let begun = Instant::now();
    let mut last = None;
    for number in 0.. {
        assert!(begun.elapsed() < PATIENCE, "{head} {path}: {last:?}");
        let mut url = format!("{}{path}", urls[number % urls.len()]);
        // It may be sent on by who led a moment ago.
        for _ in 0..3 {
            let Some(mut answer) = send(&url, head, body, Duration::from_secs(20)) else {
                break;
            };
            match (answer.status, answer.location.take()) {
                (200..=299, _) => return,
                (307, Some(place)) => url = place,
                (status @ (500 | 503 | 504), _) => {
                    last = Some(status);
                    break;
                }
                (status, _) => {
                    let mut text = String::new();
                    let _ = answer.body.read_to_string(&mut text);
                    panic!("{head} {path}: {status} {text}");
                }
            }
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// A result without what is another for each server: which snapshot it read, and in which order its rows are.
fn comparable(data: &str) -> (u64, Value) {
    let mut result: Value = serde_json::from_str(data).unwrap();
    let sequence = result["sequence"].as_u64().unwrap();
    result.as_object_mut().unwrap().remove("snapshot");
    if let Some(rows) = result["results"]["bindings"].as_array_mut() {
        rows.sort_by_key(Value::to_string);
    }
    (sequence, result)
}

/// The results of a query, read at any of some servers until there is one of this instant.
fn results(urls: &[String], query: &str, until_ms: i64) -> BTreeMap<u64, Value> {
    let mut found = BTreeMap::new();
    let begun = Instant::now();
    for number in 0.. {
        assert!(
            begun.elapsed() < 2 * PATIENCE,
            "{query}: {} results",
            found.len()
        );
        let after = found.len();
        let path = format!("/continuous/{query}/results?after={after}");
        let mut url = format!("{}{path}", urls[number % urls.len()]);
        for _ in 0..3 {
            let Some(answer) = send(&url, "GET", "", Duration::from_secs(2)) else {
                break;
            };
            match (answer.status, answer.location) {
                (200, _) => {
                    // A line may be cut where the server is killed.
                    let mut body = answer.body;
                    let mut next = || {
                        let mut line = String::new();
                        let read = body.read_line(&mut line);
                        (read.is_ok() && line.ends_with('\n')).then_some(line)
                    };
                    while let Some(line) = next() {
                        let Some(data) = line.strip_prefix("data: ") else {
                            continue;
                        };
                        let (sequence, result) = comparable(data);
                        assert_eq!(
                            sequence,
                            found.len() as u64 + 1,
                            "{query}: one after another"
                        );
                        let is_last = result["instant"] == json!(until_ms);
                        found.insert(sequence, result);
                        if is_last {
                            return found;
                        }
                    }
                    break;
                }
                (307, Some(place)) => url = place,
                // Where it has just begun to lead, or does not have the query yet.
                _ => break,
            }
        }
        thread::sleep(Duration::from_millis(20));
    }
    unreachable!("there is always a next number");
}

/// The queries of the benchmark with their names, where there are its texts.
fn queries() -> Option<Vec<(String, String)>> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = data.join("lsbench/queries/continuous");
    let Ok(entries) = fs::read_dir(&folder) else {
        println!(
            "SKIPPED: there are no queries of LSBench at {}",
            folder.display()
        );
        return None;
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    let paths = paths.filter(|path| path.extension().is_some_and(|one| one == "csparql"));
    let mut paths: Vec<PathBuf> = paths.collect();
    paths.sort();
    let read = |path: &PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(path).unwrap())
    };
    Some(paths.iter().map(read).collect())
}

/// The tuples of a stream, by their second.
fn seconds(folder: &Path, stream: &str) -> BTreeMap<u64, String> {
    let text = fs::read_to_string(folder.join(format!("data/{stream}.tnt"))).unwrap();
    let mut seconds: BTreeMap<u64, String> = BTreeMap::new();
    for line in text.lines() {
        let time: u64 = line.split('\t').next().unwrap().parse().unwrap();
        let second = seconds.entry(time / 1000).or_default();
        second.push_str(line);
        second.push('\n');
    }
    seconds
}

/// A server by itself.
fn alone(folder: &Path) -> Node {
    let mut command = jindou(folder);
    command.args(["serve", "--location", "alone", "--bind", "127.0.0.1:0"]);
    Node::of(command)
}

/// A store of the social graph, its copies, and a list of nodes with the addresses of their servers.
fn stores(at: &Path, (names, seconds): (&[&str], u64)) -> Vec<u16> {
    let seconds = seconds.to_string();
    let arguments = ["generate", "lsbench", "--users", "100", "--rate", "0.02"];
    let more = ["--seconds", &*seconds, "--output", "data"];
    succeeds(at, &[&arguments[..], &more].concat());
    let graph = "http://example.org/lsbench/static";
    succeeds(
        at,
        &[
            "load",
            "--location",
            "alone",
            "--graph",
            graph,
            "data/static.nt",
        ],
    );
    let listeners: Vec<_> = names
        .iter()
        .map(|name| (name, listen(), listen()))
        .collect();
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    let nodes = listeners.iter().map(|(name, meeting, http)| {
        let (meeting, http) = (port(meeting), port(http));
        format!(
            "[[node]]\nname = \"{name}\"\naddress = \"127.0.0.1:{meeting}\"\nhttp = \"http://127.0.0.1:{http}\"\n"
        )
    });
    let list = format!("shards = 16\n{}", nodes.collect::<String>());
    fs::write(at.join("nodes.toml"), list).unwrap();
    for name in names {
        succeeds(at, &["backup", "--location", "alone", "--to", name]);
    }
    listeners.iter().map(|(.., http)| port(http)).collect()
}

#[test]
fn continuous_queries_find_what_those_of_one_server_find_though_nodes_are_killed() {
    let Some(mut etcd) = Etcd::new() else { return };
    let Some(queries) = queries() else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let played = std::env::var("JINDOU_SECONDS").ok();
    let played = played.map_or(SECONDS, |text| text.parse().unwrap());
    etcd.start(at);
    let members = std::env::var("JINDOU_MEMBERS").unwrap_or_else(|_| MEMBERS.to_owned());
    let (count, over_tcp) = match members.split_once(',') {
        Some((count, "tcp")) => (count, true),
        Some(_) => panic!("JINDOU_MEMBERS={members}: a number, `,tcp` where nothing is mapped"),
        None => (&*members, false),
    };
    let names = &NAMES[..count.parse().unwrap()];
    let mut cluster = Servers {
        folder: at,
        etcd: &etcd,
        ports: stores(at, (names, played)),
        over_tcp,
        nodes: names.iter().map(|_| None).collect(),
    };
    (0..names.len()).for_each(|number| cluster.start(number));
    let one = alone(at);
    let urls = cluster.urls();
    let one = [one.url.clone()];
    let servers = [&one[..], &urls];
    for stream in STREAMS {
        let mut definition = json!({
            "iri": format!("http://example.org/lsbench/{stream}"),
            "durable": true,
            "max_ahead_ms": null,
        });
        if stream != "gps" {
            definition["timeless"] = json!("all");
        }
        let head = "PUT Content-Type: application/json\r\n";
        for urls in servers {
            done(
                urls,
                &format!("/streams/{stream}"),
                head,
                &definition.to_string(),
            );
        }
    }
    for (name, text) in &queries {
        let head = "PUT Content-Type: application/sparql-query\r\n";
        for urls in servers {
            done(urls, &format!("/continuous/{name}"), head, text);
        }
    }
    let until_ms = i64::try_from(played).unwrap() * 1000;
    thread::scope(|scope| {
        let (urls, one) = (&urls, &one);
        let readers: Vec<_> = queries
            .iter()
            .map(|(name, _)| (name, scope.spawn(move || results(urls, name, until_ms))))
            .collect();
        let tuples = STREAMS.map(|stream| (stream, seconds(at, stream)));
        for second in 0..played {
            for (stream, tuples) in &tuples {
                if let Some(text) = tuples.get(&second) {
                    let head = format!(
                        "POST Content-Type: text/tab-separated-values\r\nProducer: p\r\nSequence: {}\r\n",
                        second + 1
                    );
                    for urls in servers {
                        done(urls, &format!("/streams/{stream}"), &head, text);
                    }
                }
                let time = (second + 1) * 1000;
                let path = format!("/streams/{stream}/heartbeat?time={time}");
                for urls in servers {
                    done(urls, &path, "POST", "");
                }
            }
            if second % KILLED_AFTER == KILLED_AFTER - 1 {
                cluster.kill_who_leads();
            }
        }
        let mut rows = 0;
        for (name, reader) in readers {
            let found = reader.join().unwrap();
            let expected = results(one, name, until_ms);
            for (sequence, result) in &expected {
                assert_eq!(
                    found.get(sequence),
                    Some(result),
                    "{name}, result {sequence}"
                );
            }
            assert_eq!(found.len(), expected.len(), "{name}");
            let of = |result: &Value| result["results"]["bindings"].as_array().map_or(0, Vec::len);
            let of_query: usize = expected.values().map(of).sum();
            println!("{name}: {} results, {of_query} rows", found.len());
            rows += of_query;
        }
        assert!(rows > 0);
    });
}

/// A node that led before there were streams, and stood still until another one did, sends clients there; when it leads
/// again, what was made meanwhile is there.
#[test]
fn a_node_that_led_without_streams_sends_to_the_one_that_has_them() {
    let Some(mut etcd) = Etcd::new() else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    etcd.start(at);
    let names = &NAMES[..3];
    let mut cluster = Servers {
        folder: at,
        etcd: &etcd,
        ports: stores(at, (names, 1)),
        over_tcp: false,
        nodes: names.iter().map(|_| None).collect(),
    };
    (0..3).for_each(|number| cluster.start(number));
    let urls = cluster.urls();
    let number = |name: String| NAMES.iter().position(|one| *one == name).unwrap();
    let in_sync = |nodes: &[Option<Node>]| {
        let node = nodes.iter().flatten().next()?;
        let (_, text) = get(&node.url, "/cluster", "application/json");
        let told: Value = serde_json::from_str(&text).ok()?;
        Some(told["copy"]["in_sync"].as_array()?.len())
    };
    wait_for("all are in sync", || {
        (in_sync(&cluster.nodes) == Some(3)).then_some(())
    });
    let first = number(wait_for("one leads", || leader(&cluster.nodes)));
    let pid = cluster.nodes[first].as_ref().unwrap().process.0.id();
    signal("-STOP", pid);
    let others: Vec<String> = urls
        .iter()
        .enumerate()
        .filter(|(other, _)| *other != first)
        .map(|(_, url)| url.clone())
        .collect();
    wait_for("another one leads", || {
        others.iter().find_map(|url| {
            let (_, text) = get(url, "/cluster", "application/json");
            let told: Value = serde_json::from_str(&text).ok()?;
            (told["copy"]["leader"].as_str()? != NAMES[first]).then_some(())
        })
    });
    let definition = json!({ "iri": "http://x/s", "durable": true }).to_string();
    let head = "PUT Content-Type: application/json\r\n";
    done(&others, "/streams/s", head, &definition);
    signal("-CONT", pid);
    wait_for("it sends on", || {
        let answer = send(&format!("{}/streams/s", urls[first]), "GET", "", PATIENCE)?;
        (answer.status == 307).then_some(())
    });
    for _ in 0..2 {
        wait_for("all are in sync", || {
            (in_sync(&cluster.nodes) == Some(3)).then_some(())
        });
        cluster.kill_who_leads();
        done(&urls, "/streams/s", "GET ", "");
    }
}
