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

/// Sets what a test needs otherwise than it is by default.
type Set = fn(&mut Config);

struct Node<'a> {
    location: &'a Path,
    peers: &'a PeerList,
    name: &'a str,
    policy: ForkPolicy,
    maps_memory: bool,
    deal_terms: bool,
    /// What else is set.
    set: Set,
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
        config.deal_terms = self.deal_terms;
        // What needs a node that is away fails.
        config.stands_in = false;
        (self.set)(&mut config);
        let database = Database::open_to_read(self.location, config)?;
        database.join(ClusterOptions {
            peers: self.peers.clone(),
            secret: self.secret.clone(),
            node: self.peers.node(self.name).expect("it is in the list"),
            maps_memory: self.maps_memory,
            listener: held(self.peers, self.name),
            keeper: None,
            max_staleness: None,
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
        deal_terms: false,
        set: |_| (),
        secret: None,
    }
}

/// All nodes of a list, once they have met.
fn cluster(
    location: &Path,
    peers: &PeerList,
    policy: ForkPolicy,
    maps_memory: bool,
) -> Vec<Database> {
    cluster_with((location, peers), (policy, maps_memory), |_| ())
}

/// [`cluster`], with what else is set.
fn cluster_with(
    (location, peers): (&Path, &PeerList),
    (policy, maps_memory): (ForkPolicy, bool),
    set: Set,
) -> Vec<Database> {
    let databases: Vec<Database> = peers
        .peers()
        .iter()
        .map(|peer| {
            let node = Node {
                policy,
                maps_memory,
                set,
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
fn each_node_answers_with_its_part_of_the_terms_alone() {
    let folder = store();
    let location = folder.path().join("store");
    let one = Database::open_to_read(&location, Config::default()).expect("it opens");
    for (policy, maps_memory) in [(ForkPolicy::InPlace, true), (ForkPolicy::ForkJoin, false)] {
        let peers = list(NODES);
        let nodes: Vec<Database> = (peers.peers().iter())
            .map(|peer| {
                let node = Node {
                    policy,
                    maps_memory,
                    deal_terms: true,
                    ..node(&location, &peers, &peer.name)
                };
                node.start().expect("it starts")
            })
            .collect();
        for database in &nodes {
            assert!(database.wait_for_cluster(PATIENCE));
        }
        for query in QUERIES {
            let expected = rows(&one, query).unwrap();
            for (number, database) in nodes.iter().enumerate() {
                let found = rows(database, query).unwrap();
                assert_eq!(found, expected, "node {number}: {query}");
            }
        }
    }
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
            let messages: u64 = nodes.iter().map(messages_sent).sum();
            let went = (reads > 0, messages > 0);
            match policy {
                ForkPolicy::InPlace => assert_eq!(went, (true, false), "{reads}, {messages}"),
                ForkPolicy::ForkJoin => assert!(messages > 0, "{reads}, {messages}"),
                ForkPolicy::Dynamic => assert!(reads + messages > 0, "nothing went anywhere"),
            }
            nodes.iter().for_each(wait_until_nothing_is_held);
        }
    }
}

#[test]
fn nodes_without_one_sided_reads_histories_or_scans_of_their_own_answer_the_same() {
    let folder = store();
    let location = folder.path().join("store");
    let one = Database::open_to_read(&location, Config::default()).expect("it opens");
    let ways: [(ForkPolicy, Set); 3] = [
        (ForkPolicy::InPlace, |config| config.reads_one_sided = false),
        (ForkPolicy::ForkJoin, |config| config.fork_history_bytes = 0),
        (ForkPolicy::ForkJoin, |config| config.splits_scans = false),
    ];
    for (way, (policy, set)) in ways.into_iter().enumerate() {
        let peers = list(NODES);
        let nodes = cluster_with((&location, &peers), (policy, way == 1), set);
        for database in &nodes {
            for query in QUERIES {
                let found = rows(database, query);
                let found = found.unwrap_or_else(|error| panic!("{query}: {error}"));
                assert_eq!(found, rows(&one, query).unwrap(), "way {way}: {query}");
            }
        }
        if policy == ForkPolicy::InPlace {
            let counts = nodes.iter().map(Database::remote_reads);
            let counts: Vec<_> = counts
                .map(|counts| (counts.reads, counts.calls > 0))
                .collect();
            assert_eq!(counts, [(0, true); NODES]);
        }
        nodes.iter().for_each(wait_until_nothing_is_held);
    }
}

/// Messages of sub-queries that went from a node to others.
fn messages_sent(database: &Database) -> u64 {
    let status = database.cluster().expect("it is a node");
    status.iter().map(|status| status.sent.messages).sum()
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

/// Looks whether an error says that a node is lost, and by its name; the shard that was to be read, if there
/// was one.
#[track_caller]
fn lost_with(error: &EngineError, node: &str) -> Option<u32> {
    let (said, shard) = match error {
        EngineError::ShardLost { shard, .. } => (
            format!("shard {shard} is lost with node {node}, and the query needs it"),
            Some(*shard),
        ),
        EngineError::NodeLost { .. } => {
            (format!("node {node} is lost, and the query needs it"), None)
        }
        error => panic!("{error}"),
    };
    assert_eq!(error.to_string(), said);
    shard
}

/// Where the edges of a single person are at a node that is gone, all other nodes name the same shard, where
/// it was to be read, and of many persons each of the shards is named.
fn lost_shards_are_named(
    nodes: &[Database],
    policy: ForkPolicy,
    gone: &str,
    held_by_gone: &BTreeSet<u32>,
) {
    let mut named = BTreeSet::new();
    let mut answered = 0;
    for number in 0..200 {
        let query = format!("SELECT * {{ <http://x/p{number:04}> <http://x/knows> ?o }}");
        let outcomes = nodes.iter().map(|node| rows(node, &query));
        let outcomes: Vec<_> = outcomes
            .map(|outcome| outcome.map_err(|error| lost_with(&error, gone)))
            .collect();
        assert!(
            outcomes.iter().all(|outcome| *outcome == outcomes[0]),
            "{query}: {outcomes:?}"
        );
        match &outcomes[0] {
            Ok(found) => {
                assert_eq!(found.len(), 2, "{query}");
                answered += 1;
            }
            Err(shard) => named.extend(*shard),
        }
    }
    assert!((1..200).contains(&answered), "{answered}");
    match policy {
        ForkPolicy::ForkJoin => assert!(named.is_empty(), "rows went to a node: {named:?}"),
        ForkPolicy::Dynamic | ForkPolicy::InPlace => assert_eq!(&named, held_by_gone),
    }
}

#[test]
fn a_node_that_goes_takes_its_shards_along_and_brings_them_back() {
    let folder = store();
    let location = folder.path().join("store");
    for policy in [
        ForkPolicy::Dynamic,
        ForkPolicy::InPlace,
        ForkPolicy::ForkJoin,
    ] {
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
                    Err(error) => {
                        let lost_shard = lost_with(&error, &gone);
                        let is_of_gone =
                            lost_shard.is_none_or(|shard| held_by_gone.contains(&shard));
                        assert!(is_of_gone, "{query}: {error}");
                    }
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
            lost_with(&all.expect_err("all persons are needed"), &gone);
        }
        lost_shards_are_named(&nodes, policy, &gone, &held_by_gone);
        nodes.push(node(&location, &peers, &gone).start().expect("it starts"));
        for database in &nodes {
            assert!(
                database.wait_for_cluster(PATIENCE),
                "{:?}",
                database.cluster()
            );
        }
        // Only now: rows also go to a node that would not have met the new one yet.
        for database in &nodes {
            for (query, expected) in QUERIES.iter().zip(&expected) {
                assert_eq!(&rows(database, query).unwrap(), expected, "{query}");
            }
        }
    }
}

#[test]
fn a_node_with_a_whole_copy_answers_alone_while_another_is_away() {
    let folder = store();
    let location = folder.path().join("store");
    for policy in [ForkPolicy::Dynamic, ForkPolicy::ForkJoin] {
        let peers = list(NODES);
        let set: Set = |config| config.stands_in = true;
        let mut nodes = cluster_with((&location, &peers), (policy, true), set);
        let answers = |nodes: &[Database]| -> Vec<Vec<String>> {
            let of_node = |node| QUERIES.iter().map(move |query| rows(node, query));
            let answers = nodes.iter().flat_map(of_node);
            answers.map(|found| found.expect("an answer")).collect()
        };
        let before = answers(&nodes[..2]);
        drop(nodes.pop());
        let gone = format!("n{}", NODES - 1);
        for database in &nodes {
            wait_for(database, &gone, false);
            assert!(database.can_answer_alone());
        }
        let reads = nodes[0].remote_reads();
        assert_eq!(answers(&nodes), before);
        assert_eq!(nodes[0].remote_reads(), reads, "nobody is asked");
        nodes.push(node(&location, &peers, &gone).start().expect("it starts"));
        for database in &nodes {
            assert!(
                database.wait_for_cluster(PATIENCE),
                "{:?}",
                database.cluster()
            );
        }
        assert_eq!(answers(&nodes[..2]), before);
        assert_ne!(
            nodes[0].remote_reads(),
            reads,
            "lists are read where they are"
        );
    }
}

/// Rows that are found when a node goes do not end as if they were all.
#[test]
fn a_node_that_goes_while_another_one_reads_its_memory_ends_the_query() {
    const STEPS: usize = 12;
    let folder = store();
    let location = folder.path().join("store");
    let steps = (0..STEPS).map(|step| format!("?a{step} <http://x/knows> ?a{} .", step + 1));
    // Ways of so many steps: far more than what is found ahead of the reader.
    let query = format!("SELECT * {{ {} }}", steps.collect::<String>());
    for maps_memory in [true, false] {
        let peers = list(NODES);
        let mut nodes = cluster(&location, &peers, ForkPolicy::InPlace, maps_memory);
        let gone = format!("n{}", NODES - 1);
        let results = nodes[0].query_with(&query, QueryOptions::default());
        let Ok(QueryResults::Solutions(mut solutions)) = results else {
            panic!("it begins");
        };
        let first = solutions.next().expect("there is one");
        assert!(first.is_ok());
        drop(nodes.pop());
        wait_for(&nodes[0], &gone, false);
        let error = solutions.find_map(Result::err);
        let error = error.expect("it does not end as if these were all");
        let shard = lost_with(&error, &gone);
        assert!(shard.is_some(), "its shard was to be read: {error}");
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
                    Err(EngineError::ShardLost { .. } | EngineError::NodeLost { .. }) => {}
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
    // Whoever does not know the secret may be anybody: the log says what it did, and not what is said of a node.
    assert!(
        reason_here().contains("not been met yet"),
        "{}",
        reason_here()
    );
    let wait_for_reason = |part: &str| {
        let begin = Instant::now();
        while !reason_here().contains(part) {
            assert!(begin.elapsed() < PATIENCE, "{}", reason_here());
            std::thread::yield_now();
        }
    };
    let mut second = node(&other_location, &peers, "n1");
    second.secret = secret("0123456789abcdef");
    let said = reason(&second);
    assert!(said.contains("snapshot"), "{said}");
    wait_for_reason("snapshot");
    let nodes = peers.peers().iter().map(|peer| {
        let (name, address) = (&peer.name, &peer.address);
        format!("[[node]]\nname = \"{name}\"\naddress = \"{address}\"\n")
    });
    let of_fewer_shards = format!("shards = 8\n{}", nodes.collect::<String>());
    let changed = PeerList::parse(&of_fewer_shards).expect("a list");
    let mut second = node(&location, &changed, "n1");
    second.secret = secret("0123456789abcdef");
    let said = reason(&second);
    assert!(said.contains("list of peers"), "{said}");
    wait_for_reason("list of peers");
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
        keeper: None,
        max_staleness: None,
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
