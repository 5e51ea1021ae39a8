//! Where etcd keeps which node leads: is what clients hear still one history when nodes are killed and stand still, the one that leads
//! among them, and etcd goes for a while?
//!
//! `JINDOU_KILLS` kills more often, `JINDOU_SEED` begins with another seed.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use jindou_history::workload::{
    DecodeError, Family, Mix, Request, Sighting, Workload, WorkloadConfig, learn, setup,
};
use jindou_history::{Check, Level, Operation, Outcome, Random, check};
use serde_json::Value;

use super::{
    EndOnDrop, NAMES, Node, Process, agent, folder, jindou, listen, signal, succeeds, update,
    wait_for,
};

/// How often something befalls the nodes.
const KILLS: u64 = 6;
const CLIENTS: u32 = 6;
/// How long a client waits for an answer.
const TIMEOUT: Duration = Duration::from_secs(20);

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("it is a number"))
}

/// An etcd, with the same data each time that it is started.
pub(crate) struct Etcd {
    process: Option<Process>,
    pub(crate) url: String,
    peer: String,
}

impl Etcd {
    /// `None` where it is not installed.
    pub(crate) fn new() -> Option<Self> {
        let is_there = Command::new("etcd").arg("--version").output().is_ok();
        if !is_there {
            println!("SKIPPED: there is no etcd; Debian's package etcd-server has it");
            return None;
        }
        let listeners = [listen(), listen()];
        let [url, peer] =
            listeners.map(|listener| format!("http://{}", listener.local_addr().unwrap()));
        let process = None;
        Some(Self { process, url, peer })
    }

    pub(crate) fn start(&mut self, folder: &Path) {
        let child: Child = Command::new("etcd")
            .args([
                "--data-dir",
                "etcd",
                "--logger",
                "zap",
                "--log-level",
                "error",
            ])
            .args([
                "--listen-client-urls",
                &self.url,
                "--advertise-client-urls",
                &self.url,
            ])
            .args([
                "--listen-peer-urls",
                &self.peer,
                "--initial-advertise-peer-urls",
                &self.peer,
            ])
            .args(["--initial-cluster", &format!("default={}", self.peer)])
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.process = Some(Process(child));
        wait_for("etcd is there", || {
            let health = ureq::get(format!("{}/health", self.url)).call();
            health.ok()
        });
    }

    fn kill(&mut self) {
        self.process = None;
    }
}

/// Starts a node of copies at its port.
fn start(folder: &Path, name: &str, etcd: &Etcd, port: u16) -> Node {
    start_with(folder, name, (etcd, port), &[])
}

/// The same, with more options.
pub(crate) fn start_with(
    folder: &Path,
    name: &str,
    (etcd, port): (&Etcd, u16),
    options: &[&str],
) -> Node {
    let mut command = jindou(folder);
    command.args(["serve", "--location", name, "--peers", "nodes.toml"]);
    command.args(["--node", name, "--cluster", &etcd.url]);
    command.args(["--bind", &format!("127.0.0.1:{port}")]);
    command.args(options);
    Node::of(command)
}

/// The node that leads, as some node has it.
pub(crate) fn leader(nodes: &[Option<Node>]) -> Option<String> {
    let node = nodes.iter().flatten().next()?;
    let request = agent().get(format!("{}/cluster", node.url));
    let request = request.header("Accept", "application/json");
    // One that begins anew takes no connections for a moment.
    let mut answer = request.call().ok()?;
    let text = answer.body_mut().read_to_string().ok()?;
    let told: Value = serde_json::from_str(&text).ok()?;
    Some(told["copy"]["leader"].as_str()?.to_owned())
}

/// Posts one request on a connection of its own; none where there is no whole answer.
fn post(address: SocketAddr, request: &Request) -> Option<(u16, String)> {
    let body = request.text();
    let mut connection = TcpStream::connect(address).ok()?;
    connection.set_read_timeout(Some(TIMEOUT)).ok()?;
    let (path, media_type) = match request.is_update() {
        true => ("update", "application/sparql-update"),
        false => ("query", "application/sparql-query"),
    };
    let head = format!(
        "POST /{path} HTTP/1.0\r\nHost: {address}\r\nContent-Type: {media_type}\r\n\
         Accept: application/sparql-results+json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    connection.write_all(head.as_bytes()).ok()?;
    connection.write_all(body.as_bytes()).ok()?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).ok()?;
    let (head, text) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, text.to_owned()))
}

/// What clients did and heard.
struct Record {
    begun: Instant,
    workload: Mutex<Workload>,
    history: Mutex<Vec<Operation>>,
    sightings: Mutex<Vec<Sighting>>,
    done: [AtomicU64; 3],
}

impl Record {
    fn now(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    /// Asks and writes down; whether it was done.
    fn ask(&self, address: SocketAddr, client: u32, request: Request) -> bool {
        let begun = self.now();
        let answer = post(address, &request);
        let ended = Some(self.now());
        let is_update = request.is_update();
        let done = Outcome::Done { snapshot: None };
        let (kind, outcome) = match answer {
            Some((200..=299, _)) if is_update => (request.into_kind(), done),
            Some((200..=299, text)) => match request.answered(&text) {
                Ok(answered) => {
                    assert!(
                        answered.contradictions.is_empty(),
                        "{:?}",
                        answered.contradictions
                    );
                    self.sightings.lock().unwrap().extend(answered.sightings);
                    (answered.kind, done)
                }
                Err(DecodeError::Json(_)) => (request.into_kind(), Outcome::Unknown),
                Err(error) => panic!("{error}: {text}"),
            },
            // Nothing was changed, says the server: the node that leads is away.
            Some((503, _)) => (request.into_kind(), Outcome::Failed),
            Some((status, text)) if status < 500 => panic!("{status}: {text}"),
            _ => (request.into_kind(), Outcome::Unknown),
        };
        let place = match outcome {
            Outcome::Done { .. } => 0,
            Outcome::Failed => 1,
            Outcome::Unknown => 2,
        };
        self.done[place].fetch_add(1, Relaxed);
        let operation = Operation {
            client,
            begun,
            ended,
            kind,
            outcome,
        };
        self.history.lock().unwrap().push(operation);
        place == 0
    }
}

#[test]
fn clients_hear_one_history_though_nodes_and_etcd_are_killed() {
    let Some(mut etcd) = Etcd::new() else { return };
    let folder = folder();
    let at = folder.path();
    etcd.start(at);
    for name in NAMES {
        succeeds(at, &["backup", "--location", "store", "--to", name]);
    }
    let ports = NAMES.map(|_| listen().local_addr().unwrap().port());
    let mut nodes: Vec<Option<Node>> = NAMES
        .iter()
        .zip(ports)
        .map(|(name, port)| Some(start(at, name, &etcd, port)))
        .collect();
    let seed = setting("JINDOU_SEED", 1);
    println!("seed {seed} (JINDOU_SEED, JINDOU_KILLS)");
    let config = WorkloadConfig {
        keys: 8,
        writes_per_key: 40,
        keys_per_operation: 3,
        mix: Mix::LISTS,
    };
    let url = nodes[1].as_ref().unwrap().url.clone();
    wait_for("one leads", || {
        let (status, _) = update(&url, &setup(Family::List, 64, 0));
        (status == 204 || status == 200).then_some(())
    });
    let record = Record {
        begun: Instant::now(),
        workload: Mutex::new(Workload::new(seed, config)),
        history: Mutex::default(),
        sightings: Mutex::default(),
        done: Default::default(),
    };
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (record, is_over) = (&record, &is_over);
        // Nobody asks for ever where this fails.
        let _end = EndOnDrop(is_over);
        for client in 0..CLIENTS {
            scope.spawn(move || {
                let mut random = Random::new(seed ^ u64::from(client) << 32);
                while !is_over.load(Relaxed) {
                    let port = ports[random.below(3) as usize];
                    let request = record.workload.lock().unwrap().request();
                    record.ask(([127, 0, 0, 1], port).into(), client, request);
                }
            });
        }
        let mut random = Random::new(seed);
        for round in 0..setting("JINDOU_KILLS", KILLS) {
            let before = record.done[0].load(Relaxed);
            wait_for("clients are answered", || {
                (record.done[0].load(Relaxed) >= before + 100).then_some(())
            });
            befall(at, (&mut nodes, &ports), &mut etcd, (round, &mut random));
        }
        let before = record.done[0].load(Relaxed);
        wait_for("clients are answered", || {
            (record.done[0].load(Relaxed) >= before + 100).then_some(())
        });
    });
    let finals_from = record.now();
    let finals = record.workload.lock().unwrap().finals();
    for request in finals {
        for port in ports {
            wait_for("all is read", || {
                let is_done = record.ask(([127, 0, 0, 1], port).into(), CLIENTS, request.clone());
                is_done.then_some(())
            });
        }
    }
    let mut history = record.history.into_inner().unwrap();
    let learned = learn(&mut history, &record.sightings.into_inner().unwrap(), &[]);
    let mut wanted = Check::new(Level::StrongSnapshotIsolation);
    wanted.finals_from = Some(finals_from);
    // One node shows a transaction a moment before another does, and clients ask any.
    wanted.reads_see_ahead = true;
    let report = check(&history, &wanted).unwrap();
    println!(
        "done, refused, unknown: {:?}; {learned} learned",
        record.done
    );
    if !report.is_clean() {
        for node in nodes.iter().flatten() {
            println!("{}: {:#?}", node.url, node.lines.0.lock().unwrap());
        }
    }
    assert!(
        report.is_clean(),
        "seed {seed}: {}",
        report.explain(&history)
    );
}

/// Kills or stops a node, the one that leads more often than others, or etcd for a while.
fn befall(
    at: &Path,
    (nodes, ports): (&mut [Option<Node>], &[u16; 3]),
    etcd: &mut Etcd,
    (round, random): (u64, &mut Random),
) {
    let leads = leader(nodes);
    let leads = NAMES.iter().position(|name| leads.as_deref() == Some(name));
    let number = match leads {
        Some(leads) if round % 2 == 0 => leads,
        _ => random.below(3) as usize,
    };
    let pid = nodes[number].as_ref().unwrap().process.0.id();
    match round % 3 {
        2 => {
            etcd.kill();
            signal("-STOP", pid);
            thread::sleep(Duration::from_millis(500));
            signal("-CONT", pid);
            thread::sleep(Duration::from_millis(1000));
            etcd.start(at);
        }
        1 => {
            signal("-STOP", pid);
            thread::sleep(Duration::from_millis(2500));
            signal("-CONT", pid);
        }
        _ => {
            nodes[number] = None;
            thread::sleep(Duration::from_millis(random.below(3000)));
            nodes[number] = Some(start(at, NAMES[number], etcd, ports[number]));
        }
    }
}
