//! What a client of any node sees of its writes.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use jindou_engine::ingest::{Format, Progress, Source};
use jindou_engine::{
    Database, EngineError, LoadOptions, PrefixTable, QueryResults, ReplicaStatus, UpdateOptions,
};
use oxrdf::NamedNode;

use crate::Random;
use crate::contents::contents;
use crate::net::{Cluster, LONG};

fn empty(_: &Database) {}

fn has(database: &Database, pattern: &str) -> bool {
    match database
        .query(&format!("ASK {{ {pattern} }}"))
        .expect("it is sound")
    {
        QueryResults::Boolean(is_there) => is_there,
        _ => panic!("ASK gives a boolean"),
    }
}

fn insert(database: &Database, number: u64) -> Result<(), EngineError> {
    let text = format!("INSERT DATA {{ <http://e/s{number}> <http://e/p> {number} }}");
    database.update(&text).map(|_| ())
}

fn is_awaited(cluster: &Cluster, node: usize) -> bool {
    match cluster.node(0).replica_status() {
        Some(ReplicaStatus::Leads { followers }) => followers[node - 1].is_awaited,
        other => panic!("node 0 leads: {other:?}"),
    }
}

/// Waits until transactions wait for a follower.
fn wait_until_awaited(cluster: &Cluster, node: usize) {
    let begun = std::time::Instant::now();
    while !is_awaited(cluster, node) {
        assert!(begun.elapsed() < LONG, "node {node} does not catch up");
        std::thread::yield_now();
    }
}

#[test]
fn a_write_is_readable_at_once_at_all_nodes_that_are_there() {
    let folder = tempfile::tempdir().expect("there is room");
    let cluster = Cluster::new(folder.path(), 3, 1, empty);
    (1..3).for_each(|node| wait_until_awaited(&cluster, node));
    for number in 0..30 {
        insert(cluster.node(number as usize % 3), number).expect("all are there");
        for node in 0..3 {
            let pattern = format!("<http://e/s{number}> <http://e/p> {number}");
            assert!(has(cluster.node(node), &pattern), "{number} at node {node}");
        }
    }
}

#[test]
fn acknowledged_writes_of_many_threads_stay_while_links_break() {
    const THREADS: u64 = 4;
    let seed = 5;
    let folder = tempfile::tempdir().expect("there is room");
    let mut cluster = Cluster::new(folder.path(), 3, seed, empty);
    let acknowledged: Vec<AtomicU64> = (0..THREADS).map(|_| AtomicU64::new(0)).collect();
    let write = |cluster: &Cluster, thread: u64| {
        let mut random = Random(seed ^ thread);
        for number in 1..=40 {
            let node = cluster.node(random.below(3) as usize);
            let fact = format!("<http://e/t{thread}> <http://e/n> {number}");
            // Vertices of several characteristic sets, whose numbers come from as many extents.
            let (vertex, set) = (format!("<http://e/v{thread}-{number}>"), number % 3);
            let more = format!("{vertex} a <http://e/c{set}> ; <http://e/q{set}> \"{vertex}\"");
            match node.update(&format!("INSERT DATA {{ {fact} . {more} }}")) {
                Ok(_) => {
                    assert!(
                        has(node, &fact),
                        "thread {thread} reads its own write {number}"
                    );
                    let bit = 1 << number;
                    acknowledged[thread as usize].fetch_or(bit, Relaxed);
                }
                Err(EngineError::LeaderLost { .. } | EngineError::WriteUnknown { .. }) => {}
                Err(EngineError::Behind { .. }) => {}
                Err(error) => panic!("seed {seed}: {error}"),
            }
        }
    };
    std::thread::scope(|scope| {
        let (cluster, write) = (&cluster, &write);
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || write(cluster, thread)))
            .collect();
        let mut random = Random(seed);
        while threads.iter().any(|thread| !thread.is_finished()) {
            let node = 1 + random.below(2) as usize;
            match random.below(3) {
                0 => cluster.break_link(node),
                _ => cluster.join(node),
            }
            if random.below(8) == 0 {
                cluster.node(0).compact().expect("there is room");
            }
        }
    });
    for node in [1, 2] {
        cluster.join(node);
        assert!(cluster.catches_up(node));
    }
    cluster.close(0);
    cluster.open(0);
    let leader = contents(cluster.node(0));
    for node in 0..3 {
        assert!(node == 0 || cluster.catches_up(node));
        let found = contents(cluster.node(node));
        assert_eq!(found, leader, "node {node}");
        for (thread, numbers) in acknowledged.iter().enumerate() {
            for number in (1..=40).filter(|number| numbers.load(Relaxed) >> number & 1 == 1) {
                let fact = format!("<http://e/t{thread}> <http://e/n> {number}");
                assert!(has(cluster.node(node), &fact), "{fact} at node {node}");
            }
        }
    }
}

#[test]
fn a_slow_follower_is_not_waited_for_until_it_has_caught_up() {
    let folder = tempfile::tempdir().expect("there is room");
    let options = |options: &mut jindou_engine::ReplicaOptions| {
        options.wait = Duration::from_millis(20);
        options.backlog_bytes = 1_000;
    };
    let cluster = Cluster::with(folder.path(), 2, 2, options, empty);
    wait_until_awaited(&cluster, 1);
    cluster.hold(1, true);
    (0..20).for_each(|number| insert(cluster.node(0), number).expect("nobody is waited for"));
    assert!(!is_awaited(&cluster, 1));
    assert!(!has(cluster.node(1), "<http://e/s0> ?p ?o"));
    cluster.hold(1, false);
    assert!(cluster.catches_up(1));
    wait_until_awaited(&cluster, 1);
    assert_eq!(contents(cluster.node(0)), contents(cluster.node(1)));
}

#[test]
fn whole_graphs_and_prefixes_are_written_at_a_follower() {
    let folder = tempfile::tempdir().expect("there is room");
    let cluster = Cluster::new(folder.path(), 2, 3, empty);
    wait_until_awaited(&cluster, 1);
    let (leader, follower) = (cluster.node(0), cluster.node(1));
    let graph = NamedNode::new("http://e/g").expect("it is an IRI");
    let options = UpdateOptions::default();
    let turtle = |text: &str| {
        let text = format!("@prefix e: <http://e/> . {text}");
        vec![Source::bytes("a", text).with_format(Format::Turtle)]
    };
    let done = follower.replace_graph(Some(&graph), turtle("e:a e:p 1, 2 ."), &options);
    let done = done.expect("it is sound");
    assert_eq!((done.existed, done.update.inserted), (false, 2));
    let done = follower.add_to_graph(Some(&graph), turtle("e:a e:p 2, 3 ."), &options);
    let done = done.expect("it is sound");
    assert_eq!((done.existed, done.update.inserted), (true, 1));
    assert!(has(
        leader,
        "GRAPH <http://e/g> { <http://e/a> <http://e/p> 1, 2, 3 }"
    ));
    assert!(has(
        follower,
        "GRAPH <http://e/g> { <http://e/a> <http://e/p> 1, 2, 3 }"
    ));
    let trig = vec![Source::bytes(
        "a.trig",
        "<http://e/h> { <http://e/a> <http://e/q> 7 }",
    )];
    let done = follower
        .replace_dataset(trig, &options)
        .expect("it is sound");
    assert_eq!((done.inserted, done.deleted), (1, 3));
    let graph = NamedNode::new("http://e/h").expect("it is an IRI");
    let done = follower
        .drop_graph(Some(&graph), &options)
        .expect("it is there");
    assert_eq!(done.deleted, 1);
    assert_eq!(contents(leader), contents(follower));
    // What documents declare is known at both, and so is what is changed at either.
    assert_eq!(follower.prefixes().get("e"), Some("http://e/"));
    let mut table = PrefixTable::default();
    table.set("f", "http://f/").expect("it fits");
    follower.set_prefixes(table).expect("the leader is there");
    let removed = follower.change_prefixes(|table| table.remove("absent"));
    assert!(!removed.expect("the leader is there"));
    for database in [leader, follower] {
        let known: Vec<_> = database
            .prefixes()
            .iter()
            .map(|(name, _)| name.to_owned())
            .collect();
        assert_eq!(known, ["f"]);
    }
}

#[test]
fn loads_at_the_leader_are_transactions_that_followers_get() {
    let folder = tempfile::tempdir().expect("there is room");
    let cluster = Cluster::new(folder.path(), 2, 4, empty);
    wait_until_awaited(&cluster, 1);
    let document = |quads: std::ops::Range<u64>| {
        let line = |n: u64| format!("<http://e/{n}> <http://e/p{}> \"{}\" .\n", n % 5, n % 99);
        let text: String = quads.map(line).collect();
        vec![Source::bytes("a.nt", text)]
    };
    let load = |database: &Database, sources| {
        database.load(sources, &LoadOptions::default(), &Progress::default())
    };
    for quads in [0..3_000, 2_000..9_000] {
        let expected = quads.end;
        let report = load(cluster.node(0), document(quads)).expect("there is room");
        assert_eq!(report.triples, expected);
        assert_eq!(contents(cluster.node(0)), contents(cluster.node(1)));
    }
    cluster.node(0).compact().expect("there is room");
    insert(cluster.node(1), 1).expect("the leader is there");
    assert_eq!(contents(cluster.node(0)), contents(cluster.node(1)));
    let refused = load(cluster.node(1), document(0..1)).expect_err("it follows");
    assert!(matches!(refused, EngineError::Cluster(_)), "{refused}");
}

#[test]
fn a_follower_merges_where_the_leader_does() {
    let folder = tempfile::tempdir().expect("there is room");
    let mut cluster = Cluster::new(folder.path(), 2, 6, empty);
    wait_until_awaited(&cluster, 1);
    for round in 0..5 {
        for number in 0..40 {
            insert(cluster.node(1), 100 * round + number).expect("the leader is there");
        }
        // Terms that nothing uses any more are forgotten with the next merge.
        let gone = format!("DELETE WHERE {{ <http://e/s{}> ?p ?o }}", 100 * round + 7);
        cluster.node(0).update(&gone).expect("there is room");
        let merges = |node: usize| cluster.node(node).data_memory(None).generation.1;
        let before = merges(1);
        cluster.node(0).compact().expect("there is room");
        let begun = std::time::Instant::now();
        while merges(1) == before {
            assert!(begun.elapsed() < LONG, "node 1 does not merge");
            std::thread::yield_now();
        }
        assert!(cluster.catches_up(1));
        assert_eq!(contents(cluster.node(0)), contents(cluster.node(1)));
        cluster.close(round as usize % 2);
        cluster.open(round as usize % 2);
        wait_until_awaited(&cluster, 1);
    }
}
