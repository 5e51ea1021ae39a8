//! Do databases that meet over a network as nodes of a cluster answer as one does, and what becomes of
//! queries when one of them goes?
#![cfg(target_os = "linux")]

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use jindou_engine::ingest::{Progress, Source};
use jindou_engine::{
    ClusterOptions, Config, Database, EngineError, ForkPolicy, LoadOptions, PeerList, Presence,
    QueryOptions, QueryResults, Secret,
};
use tempfile::TempDir;

const PEOPLE: usize = 600;
const NODES: usize = 3;
const PATIENCE: Duration = Duration::from_secs(60);

/// Each knows the next and the seventh after them, everybody is a person with a name, and some are of a
/// graph of their own.
fn text() -> String {
    let person = |number: usize| format!("<http://x/p{:04}>", number % PEOPLE);
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

const QUERIES: [&str; 8] = [
    "SELECT * { <http://x/p0000> <http://x/knows> ?a . ?a <http://x/knows> ?b }",
    "SELECT ?a ?c { ?a a <http://x/Person> ; <http://x/knows> ?b . ?b <http://x/knows> ?c . ?c <http://x/name> ?n }",
    "SELECT ?n (COUNT(*) AS ?c) { ?a <http://x/knows> ?b . ?b <http://x/knows> ?a2 . ?a2 <http://x/name> ?n } GROUP BY ?n ORDER BY DESC(?c) ?n LIMIT 20",
    "SELECT * { ?a <http://x/knows>+ <http://x/p0003> } LIMIT 50",
    "SELECT * { GRAPH ?g { ?a <http://x/likes> ?b } OPTIONAL { ?b <http://x/likes> ?c } ?b <http://x/name> ?n }",
    "SELECT ?p (COUNT(?o) AS ?n) { ?s ?p ?o } GROUP BY ?p",
    "SELECT ?s ?n { ?s <http://x/name> ?n FILTER(xsd:integer(?n) < 30 && NOT EXISTS { ?s <http://x/knows> <http://x/p0005> }) }",
    "ASK { ?a <http://x/knows> ?b . ?b <http://x/knows> ?c . ?c <http://x/knows> ?a }",
];

/// What a query finds, in no order.
fn rows(database: &Database, query: &str) -> Result<Vec<String>, EngineError> {
    let query = format!("PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> {query}");
    match database.query_with(&query, QueryOptions::default())? {
        QueryResults::Boolean(value) => Ok(vec![value.to_string()]),
        QueryResults::Solutions(solutions) => {
            let mut rows = Vec::new();
            for solution in solutions {
                rows.push(format!("{:?}", solution?));
            }
            rows.sort_unstable();
            Ok(rows)
        }
        QueryResults::Graph(_) => panic!("no graph is asked for"),
    }
}

/// A store in a folder.
fn store() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let source = Source::bytes("people.trig", text().into_bytes());
    let (options, progress) = (LoadOptions::default(), Progress::default());
    let location = folder.path().join("store");
    Database::create(
        &location,
        vec![source],
        &options,
        &progress,
        Config::default(),
    )
    .expect("it loads");
    folder
}

thread_local! {
    /// Listeners of nodes that have not started yet, by address: nobody else gets their ports.
    static HELD: RefCell<HashMap<String, TcpListener>> = RefCell::default();
}

/// A list of nodes at ports of their own.
fn list(nodes: usize) -> PeerList {
    let nodes = (0..nodes).map(|number| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it has one").to_string();
        HELD.with_borrow_mut(|held| held.insert(address.clone(), listener));
        format!("[[node]]\nname = \"n{number}\"\naddress = \"{address}\"\n")
    });
    let text = format!("shards = 16\n{}", nodes.collect::<String>());
    PeerList::parse(&text).expect("a list")
}

/// The listener of a node that starts for the first time.
fn held(peers: &PeerList, name: &str) -> Option<TcpListener> {
    let node = peers.peers().iter().find(|peer| peer.name == name);
    let address = &node.expect("it is in the list").address;
    HELD.with_borrow_mut(|held| held.remove(address))
}

struct Node<'a> {
    location: &'a Path,
    peers: &'a PeerList,
    name: &'a str,
    policy: ForkPolicy,
    maps_memory: bool,
    secret: Option<Secret>,
}

impl Node<'_> {
    /// Starts it. A node that starts again may have to wait for its port: the one before may be on its way
    /// out yet, or somebody may have got it for a moment.
    fn start(&self) -> Result<Database, EngineError> {
        let begin = Instant::now();
        loop {
            match self.start_once() {
                Err(EngineError::NodeAddress { .. }) if begin.elapsed() < PATIENCE => {
                    std::thread::yield_now();
                }
                outcome => return outcome,
            }
        }
    }

    fn start_once(&self) -> Result<Database, EngineError> {
        let mut config = Config::default();
        config.fork_policy = self.policy;
        let database = Database::open_to_read(self.location, config)?;
        database.join(ClusterOptions {
            peers: self.peers.clone(),
            secret: self.secret.clone(),
            node: self.peers.node(self.name).expect("it is in the list"),
            maps_memory: self.maps_memory,
            listener: held(self.peers, self.name),
        })?;
        Ok(database)
    }
}

fn node<'a>(location: &'a Path, peers: &'a PeerList, name: &'a str) -> Node<'a> {
    Node {
        location,
        peers,
        name,
        policy: ForkPolicy::Dynamic,
        maps_memory: true,
        secret: None,
    }
}

/// All nodes of a list, which have met.
fn cluster(
    location: &Path,
    peers: &PeerList,
    policy: ForkPolicy,
    maps_memory: bool,
) -> Vec<Database> {
    let databases: Vec<Database> = peers
        .peers()
        .iter()
        .map(|peer| {
            let node = Node {
                policy,
                maps_memory,
                ..node(location, peers, &peer.name)
            };
            node.start().expect("it starts")
        })
        .collect();
    for database in &databases {
        let status = || format!("{:?}", database.cluster());
        assert!(database.wait_for_cluster(PATIENCE), "{}", status());
    }
    databases
}

#[test]
fn each_node_answers_as_a_whole_store_does() {
    let folder = store();
    let location = folder.path().join("store");
    let one = Database::open_to_read(&location, Config::default()).expect("it opens");
    let expected: Vec<_> = QUERIES
        .iter()
        .map(|query| rows(&one, query).unwrap())
        .collect();
    for policy in [
        ForkPolicy::Dynamic,
        ForkPolicy::InPlace,
        ForkPolicy::ForkJoin,
    ] {
        for maps_memory in [true, false] {
            let peers = list(NODES);
            let nodes = cluster(&location, &peers, policy, maps_memory);
            for (number, database) in nodes.iter().enumerate() {
                let presence = database.cluster().expect("it is a node");
                for status in &presence {
                    let expected = match (status.node.0 as usize == number, maps_memory) {
                        (true, _) => Presence::Here,
                        (false, true) => Presence::Mapped,
                        (false, false) => Presence::ByTcp,
                    };
                    assert_eq!(status.presence, expected);
                }
                for (query, expected) in QUERIES.iter().zip(&expected) {
                    let found = rows(database, query);
                    let found = found.unwrap_or_else(|error| panic!("{query}: {error}"));
                    assert_eq!(
                        &found, expected,
                        "{policy:?}, {maps_memory}, node {number}: {query}"
                    );
                }
            }
            let reads: u64 = nodes.iter().map(|node| node.remote_reads().reads).sum();
            assert_eq!(
                reads > 0,
                policy != ForkPolicy::ForkJoin || reads > 0,
                "{policy:?}"
            );
            nodes.iter().for_each(wait_until_nothing_is_held);
        }
    }
}

/// Waits for what nodes still do for queries that have ended.
fn wait_until_nothing_is_held(database: &Database) {
    let begin = Instant::now();
    loop {
        let held = database.held_for_others();
        if held.iter().all(|(queries, chains)| queries + chains == 0) {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "queries, and chains: {held:?}");
        std::thread::yield_now();
    }
}

/// Waits until a node is seen, or is not.
fn wait_for(database: &Database, name: &str, is_there: bool) {
    let begin = Instant::now();
    loop {
        let status = database.cluster().expect("it is a node");
        let node = status.iter().find(|status| status.name == name);
        let presence = &node.expect("it is in the list").presence;
        if matches!(presence, Presence::Away(_)) != is_there {
            return;
        }
        assert!(begin.elapsed() < PATIENCE, "{name}: {presence:?}");
        std::thread::yield_now();
    }
}

#[test]
fn a_node_that_goes_takes_its_shards_along_and_brings_them_back() {
    let folder = store();
    let location = folder.path().join("store");
    for policy in [ForkPolicy::Dynamic, ForkPolicy::ForkJoin] {
        let peers = list(NODES);
        let mut nodes = cluster(&location, &peers, policy, true);
        let expected: Vec<_> = QUERIES
            .iter()
            .map(|query| rows(&nodes[0], query).unwrap())
            .collect();
        drop(nodes.pop());
        let gone = format!("n{}", NODES - 1);
        let held_by_gone: BTreeSet<u32> = (0..16).filter(|shard| shard % 3 == 2).collect();
        for database in &nodes {
            wait_for(database, &gone, false);
            for (query, expected) in QUERIES.iter().zip(&expected) {
                match rows(database, query) {
                    Ok(found) => assert_eq!(&found, expected, "{query}"),
                    Err(error @ EngineError::ShardLost { shard, .. }) => {
                        assert!(held_by_gone.contains(&shard), "{query}: {shard}");
                        let said = format!("shard {shard} is lost with node {gone}, and");
                        assert!(error.to_string().starts_with(&said), "{error}");
                    }
                    Err(error) => panic!("{query}: {error}"),
                }
            }
            // No shard has anything of a term that is not in the data.
            for query in [
                "SELECT * { <http://x/nobody> ?p ?o }",
                "SELECT * { ?s ?p <http://x/nobody> }",
                "SELECT * { VALUES ?s { <http://x/nobody> } ?s <http://x/knows> ?o . ?o <http://x/name> ?n }",
                "SELECT * { ?s <http://x/knows> \"nobody\" }",
            ] {
                let found = rows(database, query);
                assert_eq!(found.unwrap(), Vec::<String>::new(), "{query}");
            }
            let all = rows(database, QUERIES[1]);
            assert!(
                matches!(all, Err(EngineError::ShardLost { .. })),
                "all persons are needed"
            );
        }
        nodes.push(node(&location, &peers, &gone).start().expect("it starts"));
        for database in &nodes {
            assert!(
                database.wait_for_cluster(PATIENCE),
                "{:?}",
                database.cluster()
            );
            for (query, expected) in QUERIES.iter().zip(&expected) {
                assert_eq!(&rows(database, query).unwrap(), expected, "{query}");
            }
        }
    }
}

/// What comes of a query before all nodes have met is right, or says that something is lost; a message that
/// comes before its sender is known is not dropped, which would have the query wait for ever.
#[test]
fn queries_that_come_while_nodes_meet_are_answered_or_refused() {
    let folder = store();
    let location = folder.path().join("store");
    let one = Database::open_to_read(&location, Config::default()).expect("it opens");
    let expected = rows(&one, QUERIES[1]).unwrap();
    for _ in 0..10 {
        let peers = list(NODES);
        let nodes: Vec<Database> = peers
            .peers()
            .iter()
            .map(|peer| {
                let node = Node {
                    policy: ForkPolicy::ForkJoin,
                    ..node(&location, &peers, &peer.name)
                };
                node.start().expect("it starts")
            })
            .collect();
        let begin = Instant::now();
        let mut answered = 0;
        while answered < nodes.len() {
            assert!(begin.elapsed() < PATIENCE, "{:?}", nodes[0].cluster());
            answered = 0;
            for database in &nodes {
                match rows(database, QUERIES[1]) {
                    Ok(found) => {
                        assert_eq!(found, expected);
                        answered += 1;
                    }
                    Err(EngineError::ShardLost { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
}

#[test]
fn nodes_of_other_stores_lists_and_secrets_do_not_join() {
    let folder = store();
    let location = folder.path().join("store");
    let other = store();
    let other_location = other.path().join("store");
    let secret = |text: &str| Some(Secret::new(text.as_bytes()).expect("long enough"));
    let peers = list(2);
    let mut first = node(&location, &peers, "n0");
    first.secret = secret("0123456789abcdef");
    let first = first.start().expect("it starts");
    let reason = |second: &Node<'_>| {
        let database = second.start().expect("it starts");
        let begin = Instant::now();
        loop {
            let status = database.cluster().expect("it is a node");
            if let Presence::Away(reason) = &status[0].presence
                && !reason.contains("not been met yet")
            {
                return reason.clone();
            }
            assert!(begin.elapsed() < PATIENCE, "{status:?}");
            std::thread::yield_now();
        }
    };
    let mut second = node(&location, &peers, "n1");
    second.secret = secret("fedcba9876543210");
    let said = reason(&second);
    assert!(said.contains("secret"), "{said}");
    let reason_here = || {
        let status = first.cluster().expect("it is a node");
        format!("{:?}", status[1].presence)
    };
    let begin = Instant::now();
    while !reason_here().contains("secret") {
        assert!(begin.elapsed() < PATIENCE, "{}", reason_here());
        std::thread::yield_now();
    }
    let mut second = node(&other_location, &peers, "n1");
    second.secret = secret("0123456789abcdef");
    let said = reason(&second);
    assert!(said.contains("snapshot"), "{said}");
    let changed =
        PeerList::parse("shards = 8\n[[node]]\nname = \"n0\"\naddress = \"127.0.0.1:1\"\n")
            .expect("a list");
    assert_ne!(changed.digest(), peers.digest());
}

#[test]
fn strangers_that_say_nothing_keep_no_node_out() {
    let folder = store();
    let location = folder.path().join("store");
    let peers = list(2);
    let first = node(&location, &peers, "n0").start().expect("it starts");
    let address = &peers.peers()[0].address;
    // More than may be unknown at a time.
    let strangers: Vec<TcpStream> = (0..100)
        .map(|_| TcpStream::connect(address).expect("it accepts"))
        .collect();
    let second = node(&location, &peers, "n1").start().expect("it starts");
    for database in [&first, &second] {
        assert!(
            database.wait_for_cluster(PATIENCE),
            "{:?}",
            database.cluster()
        );
    }
    drop(strangers);
}

#[test]
fn only_a_store_that_is_read_can_be_a_node_and_only_once() {
    let folder = store();
    let location = folder.path().join("store");
    let peers = list(1);
    let options = || ClusterOptions {
        peers: peers.clone(),
        secret: None,
        node: peers.node("n0").expect("it is in the list"),
        maps_memory: true,
        listener: None,
    };
    drop(held(&peers, "n0"));
    let written = Database::open(&location, Config::default()).expect("it opens");
    let refused = written.join(options());
    assert!(
        matches!(refused, Err(EngineError::Cluster(_))),
        "{refused:?}"
    );
    drop(written);
    let read = Database::open_to_read(&location, Config::default()).expect("it opens");
    read.join(options()).expect("it is alone");
    let again = read.join(options());
    assert!(matches!(again, Err(EngineError::Cluster(_))), "{again:?}");
    assert!(read.wait_for_cluster(Duration::ZERO));
    let taken = Database::open_to_read(&location, Config::default()).expect("it opens");
    let taken = taken.join(options());
    assert!(
        matches!(taken, Err(EngineError::NodeAddress { .. })),
        "{taken:?}"
    );
    assert_eq!(rows(&read, QUERIES[7]).unwrap(), ["false"]);
}
