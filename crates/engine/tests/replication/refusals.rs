//! What is refused, and how it is said.

use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use jindou_engine::ingest::{Progress, Source};
use jindou_engine::{
    Config, Database, EngineError, Failure, LoadOptions, MemoryPool, NodeId, ReplicaOptions,
    ReplicaWay, UpdateOptions,
};

use crate::Random;
use crate::contents::contents;
use crate::net::Cluster;

fn empty(_: &Database) {}

fn insert(database: &Database, number: u64) -> Result<(), EngineError> {
    let text = format!("INSERT DATA {{ <http://e/s{number}> <http://e/p> \"{number}\" }}");
    database.update(&text).map(|_| ())
}

/// Why a follower that was opened is refused.
fn refusal(cluster: &Cluster, node: usize) -> String {
    assert!(
        !cluster
            .node(node)
            .wait_for_snapshot(jindou_engine::SnapshotNumber(u64::MAX), crate::net::LONG)
    );
    let reason = cluster.ended(node).expect("it is refused");
    match insert(cluster.node(node), 0) {
        Err(EngineError::ReadOnly { reason: said }) => assert_eq!(said, reason),
        other => panic!("it takes no writes: {other:?}"),
    }
    let health = cluster.node(node).health();
    assert_eq!(
        health,
        [Failure::Replication {
            reason: reason.clone()
        }]
    );
    reason
}

#[test]
fn a_copy_that_lacks_what_the_log_has_no_more_is_refused() {
    let folder = tempfile::tempdir().expect("there is room");
    let mut cluster = Cluster::new(folder.path(), 2, 1, empty);
    cluster.close(1);
    insert(cluster.node(0), 1).expect("there is room");
    cluster.node(0).checkpoint().expect("there is room");
    cluster.close(0);
    cluster.open(0);
    cluster.open(1);
    let reason = refusal(&cluster, 1);
    assert!(
        reason.contains("older than what node n0 still has in its log"),
        "{reason}"
    );
    assert!(reason.contains("`jindou backup`"), "{reason}");
    cluster.copy_anew(1);
    assert!(cluster.catches_up(1));
}

#[test]
fn a_copy_that_was_away_gets_what_the_log_has() {
    let folder = tempfile::tempdir().expect("there is room");
    let mut cluster = Cluster::new(folder.path(), 2, 1, empty);
    cluster.close(1);
    (0..50).for_each(|number| insert(cluster.node(0), number).expect("there is room"));
    cluster.close(0);
    cluster.open(0);
    cluster.open(1);
    assert!(cluster.catches_up(1));
    assert_eq!(contents(cluster.node(0)), contents(cluster.node(1)));
}

#[test]
fn a_copy_that_is_ahead_is_refused() {
    let folder = tempfile::tempdir().expect("there is room");
    let mut cluster = Cluster::new(folder.path(), 2, 1, empty);
    cluster.close(1);
    let alone = Database::open(&cluster.location(1), Config::default()).expect("it is whole");
    insert(&alone, 1).expect("there is room");
    drop(alone);
    cluster.open(1);
    let reason = refusal(&cluster, 1);
    assert!(reason.contains("has transactions that node n0"), "{reason}");
}

#[test]
fn another_store_is_refused() {
    let folder = tempfile::tempdir().expect("there is room");
    let mut cluster = Cluster::new(folder.path(), 2, 1, empty);
    cluster.close(1);
    let location = cluster.location(1);
    std::fs::remove_dir_all(&location).expect("it is a folder");
    drop(Database::open_or_create(&location, Config::default()).expect("there is room"));
    cluster.open(1);
    let reason = refusal(&cluster, 1);
    assert!(reason.contains("no copy of that of node n0"), "{reason}");
}

#[test]
fn writes_without_the_leader_say_so() {
    let folder = tempfile::tempdir().expect("there is room");
    let mut cluster = Cluster::new(folder.path(), 2, 1, empty);
    insert(cluster.node(0), 0).expect("there is room");
    assert!(cluster.catches_up(1));
    // The link ends after the write was sent.
    cluster.hold(1, true);
    std::thread::scope(|scope| {
        let follower = cluster.node(1);
        let written = scope.spawn(move || insert(follower, 1));
        cluster.wait_for_message(1, 0, "INSERT DATA");
        cluster.break_link(1);
        match written.join().expect("it does not panic") {
            Err(EngineError::WriteUnknown { node }) => assert_eq!(node, "n0"),
            other => panic!("{other:?}"),
        }
    });
    match insert(cluster.node(1), 2) {
        Err(EngineError::LeaderLost { node }) => assert_eq!(node, "n0"),
        other => panic!("{other:?}"),
    }
    cluster.close(0);
    let lost = insert(cluster.node(1), 2).expect_err("the leader is away");
    assert!(lost.to_string().contains("node n0"), "{lost}");
}

#[test]
fn a_follower_says_what_the_leader_says() {
    let folder = tempfile::tempdir().expect("there is room");
    let cluster = Cluster::new(folder.path(), 2, 1, empty);
    insert(cluster.node(0), 0).expect("there is room");
    assert!(cluster.catches_up(1));
    for text in [
        "INSERT DATA { <http://e/a> <http://e/b> ",
        "DROP GRAPH <http://e/absent>",
        "CREATE GRAPH <http://e/g> ; CREATE GRAPH <http://e/g>",
        "LOAD <file:///absent/file.ttl>",
        "LOAD <urn:x>",
        "INSERT { ?s ?p ?x } WHERE { ?s ?p ?o BIND(unknown:f(?o) AS ?x) }",
    ] {
        let errors = [0, 1].map(|node| cluster.node(node).update(text).expect_err(text));
        let [leader, follower] = errors.each_ref().map(ToString::to_string);
        assert_eq!(leader, follower, "{text}");
    }
    let sources = || vec![Source::bytes("a.ttl", "<http://e/a> wrong")];
    let options = UpdateOptions::default();
    let errors = [0, 1].map(|node| {
        let done = cluster.node(node).replace_graph(None, sources(), &options);
        done.expect_err("it is no Turtle").to_string()
    });
    assert_eq!(errors[0], errors[1]);
}

#[test]
fn what_a_follower_does_not_do_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("there is room");
    let options = |options: &mut ReplicaOptions| options.document_bytes = 100;
    let cluster = Cluster::with(folder.path(), 2, 1, options, empty);
    insert(cluster.node(0), 0).expect("there is room");
    assert!(cluster.catches_up(1));
    let follower = cluster.node(1);
    let large = || vec![Source::bytes("a.nt", vec![b'#'; 101])];
    let refused = follower.add_to_graph(None, large(), &UpdateOptions::default());
    let refused = refused.expect_err("it is large");
    assert!(matches!(
        refused,
        EngineError::DocumentsBeyondLink {
            limit_bytes: 100,
            ..
        }
    ));
    assert!(
        refused.to_string().contains("send them to node n0"),
        "{refused}"
    );
    let forwarding = follower.forwarding().expect("it follows");
    assert_eq!(
        (forwarding.leader.as_deref(), forwarding.document_bytes),
        (Some("n0"), 100)
    );
    assert_eq!(cluster.node(0).forwarding(), None);
    let options = UpdateOptions {
        return_delta: true,
        ..UpdateOptions::default()
    };
    let refused = follower
        .update_with("DROP ALL", options)
        .expect_err("a delta");
    assert!(refused.to_string().contains("ask node n0"), "{refused}");
    assert!(matches!(follower.compact(), Err(EngineError::Cluster(_))));
    for node in [0, 1] {
        let database = cluster.node(node);
        let renumbered = database.renumber_within(None).expect_err("it is a copy");
        assert!(
            matches!(renumbered, EngineError::Cluster(_)),
            "{renumbered}"
        );
    }
}

struct Nowhere;

impl ReplicaWay for Nowhere {
    fn send(&self, _: NodeId, _: Vec<u8>) -> bool {
        false
    }

    fn send_ahead(&self, _: NodeId, _: Vec<u8>) -> bool {
        false
    }
}

#[test]
fn only_a_stored_database_that_was_opened_so_is_a_copy_and_only_once() {
    let names = || vec!["a".to_owned(), "b".to_owned()];
    let options = |here| ReplicaOptions::new(names(), NodeId(here), Arc::new(Nowhere));
    let is_refused = |database: &Database, here| {
        let refused = database
            .replicate(options(here))
            .expect_err("it is no copy");
        assert!(matches!(refused, EngineError::Cluster(_)), "{refused}");
    };
    is_refused(&Database::new(), 0);
    let folder = tempfile::tempdir().expect("there is room");
    let location = folder.path().join("store");
    let open = |is_replicated| {
        let mut config = Config::default();
        config.is_replicated = is_replicated;
        Database::open_or_create(&location, config).expect("there is room")
    };
    is_refused(&open(false), 1);
    let database = open(true);
    is_refused(&database, 2);
    database.replicate(options(1)).expect("it is a copy");
    is_refused(&database, 1);
}

#[test]
fn any_bytes_are_refused_without_a_panic() {
    let panics = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&panics);
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        counted.fetch_add(1, SeqCst);
        before(info);
    }));
    for seed in 1..30 {
        let folder = tempfile::tempdir().expect("there is room");
        let options = |options: &mut ReplicaOptions| options.wait = Duration::from_millis(1);
        let cluster = Cluster::with(folder.path(), 2, seed, options, empty);
        let mut random = Random(seed);
        for node in [0, 1] {
            for _ in 0..50 {
                let length = random.below(60);
                let mut message: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
                if let Some(first) = message.first_mut() {
                    *first &= 1;
                }
                let from = NodeId(1 - node as u32);
                let _refused = cluster.replica(node).received(from, message);
            }
        }
        // Bytes of transactions, among others, are others than they were.
        cluster.damage(3);
        for number in 0..20 {
            insert(cluster.node(0), number).expect("nobody is waited for long");
            if !cluster.is_linked(1) {
                cluster.join(1);
            }
        }
    }
    assert_eq!(panics.load(SeqCst), 0);
}

#[test]
fn what_does_not_fit_as_one_transaction_is_refused_with_a_hint() {
    let folder = tempfile::tempdir().expect("there is room");
    let location = folder.path().join("store");
    let mut config = Config::default();
    config.is_replicated = true;
    config.memory_pool = Some(Arc::new(MemoryPool::new(4 << 20)));
    let database = Database::open_or_create(&location, config).expect("there is room");
    let names = vec!["a".to_owned(), "b".to_owned()];
    let mut options = ReplicaOptions::new(names, NodeId(0), Arc::new(Nowhere));
    options.message_bytes = 1_000;
    database.replicate(options).expect("it is a copy");
    let number = database.snapshot_number();
    let line = |n: u64| format!("<http://e/{n}> <http://e/p> \"{n}\" .\n");
    let text: String = (0..40_000).map(line).collect();
    let sources = vec![Source::bytes("a.nt", text)];
    let loaded = database.load(sources, &LoadOptions::default(), &Progress::default());
    let refused = loaded.expect_err("there is no memory for it");
    assert!(
        matches!(refused, EngineError::LoadBeyondPool { .. }),
        "{refused}"
    );
    assert!(
        refused
            .to_string()
            .contains("before the cluster is started"),
        "{refused}"
    );
    let update = format!(
        "INSERT DATA {{ <http://e/s> <http://e/p> \"{}\" }}",
        "x".repeat(2_000)
    );
    let refused = database
        .update(&update)
        .expect_err("it is too large for the others");
    assert!(
        matches!(refused, EngineError::TransactionTooLarge { .. }),
        "{refused}"
    );
    assert_eq!(database.snapshot_number(), number);
    insert(&database, 1).expect("it is small");
}
