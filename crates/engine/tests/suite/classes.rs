//! Do light queries wait for heavy ones at the other nodes of a cluster?
//!
//! Threads for heavy queries of others do not begin here before the test lets them, so whatever is answered until then
//! was not behind a heavy query, and what waits is.
#![cfg(target_os = "linux")]

use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use jindou_engine::ingest::{Progress, Source, ThreadStart};
use jindou_engine::{
    ClusterOptions, Config, Database, ForkPolicy, LoadOptions, PeerList, QueryClass, QueryOptions,
    QueryResults,
};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);
const PEOPLE: usize = 200;
/// Of single named graphs the shards of others are asked by calls.
const QUERY: &str =
    "SELECT * { GRAPH <http://x/g> { ?a <http://x/likes> ?b } ?b <http://x/knows> ?c }";

#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    fn wait(&self) {
        let is_closed = |is_open: &mut bool| !*is_open;
        drop(self.0.1.wait_while(self.0.0.lock().unwrap(), is_closed));
    }
}

/// Whatever becomes of the test, its threads end.
impl Drop for Gate {
    fn drop(&mut self) {
        if thread::panicking() {
            self.open();
        }
    }
}

fn store() -> TempDir {
    let person = |number: usize| format!("<http://x/p{}>", number % PEOPLE);
    let lines = (0..PEOPLE).map(|number| {
        let (me, next, third) = (person(number), person(number + 1), person(number + 3));
        format!(
            "{me} <http://x/knows> {next} , {third} .\n\
             <http://x/g> {{ {me} <http://x/likes> {third} }}\n\
             <http://x/h{}> {{ {me} <http://x/likes> {next} }}\n",
            number % 2
        )
    });
    let text: String = lines.collect();
    let folder = tempfile::tempdir().unwrap();
    let (options, progress) = (LoadOptions::default(), Progress::default());
    let source = Source::bytes("people.trig", text.into_bytes());
    let location = folder.path().join("store");
    Database::create(
        &location,
        vec![source],
        &options,
        &progress,
        Config::default(),
    )
    .unwrap();
    folder
}

/// Two nodes; at the second one threads for heavy queries of others wait for the gate.
fn nodes(location: &Path, policy: ForkPolicy, gate: &Gate) -> [Database; 2] {
    let mut listeners = [(); 2].map(|()| Some(TcpListener::bind("127.0.0.1:0").unwrap()));
    let list = listeners
        .iter()
        .flatten()
        .enumerate()
        .map(|(number, listener)| {
            let address = listener.local_addr().unwrap();
            format!("[[node]]\nname = \"n{number}\"\naddress = \"{address}\"\n")
        });
    let list = format!("shards = 8\n{}", list.collect::<String>());
    let peers = PeerList::parse(&list).unwrap();
    let nodes = [0, 1].map(|number| {
        let mut config = Config::default();
        (config.threads, config.fork_policy) = (1, policy);
        if number == 1 {
            let gate = gate.clone();
            config.worker_start = Some(ThreadStart::new(move || gate.wait()));
        }
        let database = Database::open_to_read(location, config).unwrap();
        let options = ClusterOptions {
            peers: peers.clone(),
            secret: None,
            node: peers.node(&format!("n{number}")).unwrap(),
            maps_memory: true,
            listener: listeners[number].take(),
            keeper: None,
            max_staleness: None,
        };
        database.join(options).unwrap();
        database
    });
    for node in &nodes {
        assert!(node.wait_for_cluster(PATIENCE), "{:?}", node.cluster());
    }
    nodes
}

fn rows(database: &Database, class: QueryClass) -> Vec<String> {
    let options = QueryOptions {
        class,
        ..QueryOptions::default()
    };
    let QueryResults::Solutions(solutions) = database.query_with(QUERY, options).unwrap() else {
        panic!("it selects");
    };
    let rows = solutions.map(|solution| format!("{:?}", solution.unwrap()));
    let mut rows: Vec<String> = rows.collect();
    rows.sort_unstable();
    rows
}

/// What went from a node to others: messages of sub-queries, and calls.
fn went(database: &Database) -> u64 {
    let status = database.cluster().unwrap();
    let sent: u64 = status.iter().map(|status| status.sent.messages).sum();
    sent + database.remote_reads().calls
}

/// A heavy query that has asked the other node for something.
fn heavy(database: &Database) -> JoinHandle<Vec<String>> {
    let (before, asked) = (went(database), database.clone());
    let heavy = thread::spawn(move || rows(&asked, QueryClass::Heavy));
    let begun = Instant::now();
    while went(database) == before {
        assert!(begun.elapsed() < PATIENCE, "it asks for nothing");
        thread::yield_now();
    }
    heavy
}

#[test]
fn a_light_query_is_answered_while_heavy_ones_of_its_node_wait_at_another() {
    let folder = store();
    let location = folder.path().join("store");
    let one = Database::open_to_read(&location, Config::default()).unwrap();
    let expected = rows(&one, QueryClass::Light);
    assert_eq!(expected.len(), 2 * PEOPLE);
    for policy in [ForkPolicy::ForkJoin, ForkPolicy::InPlace] {
        let gate = Gate::default();
        let [asked, _other] = nodes(&location, policy, &gate);
        let before = [(); 2].map(|()| heavy(&asked));
        let went_before = went(&asked);
        assert_eq!(rows(&asked, QueryClass::Light), expected, "{policy:?}");
        assert!(
            went(&asked) > went_before,
            "{policy:?}: it asked the other node"
        );
        for heavy in &before {
            assert!(!heavy.is_finished(), "{policy:?}: a heavy query overtook");
        }
        gate.open();
        for heavy in before {
            assert_eq!(heavy.join().unwrap(), expected, "{policy:?}");
        }
    }
}
