//! Does a node of a cluster that is written come to have the store of the others by itself, whether it has none or one that
//! is too old, and whatever happens there meanwhile?

use std::io;
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering::Relaxed};
use std::time::{Duration, Instant};

use jindou_engine::{
    Anew, ClusterOptions, Config, CopyError, Database, EngineError, FetchOptions, MergePolicy,
    NodeId, PeerList, QueryResults, ReplicaOptions, ReplicaStatus, ReplicaWay, fetch_copy,
};

const PATIENCE: Duration = Duration::from_secs(60);

/// A listener at a port that a node may have again when it is opened again: no connection gets one of these by chance.
fn listen() -> TcpListener {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = std::process::id() % 10_000;
    loop {
        let next = u32::from(NEXT.fetch_add(1, Relaxed));
        let port = 20_000 + (first + next) % 12_000;
        if let Ok(listener) = TcpListener::bind(("127.0.0.1", port as u16)) {
            return listener;
        }
    }
}

/// Ends what waits for it, however the test ends.
struct EndOnDrop<'b>(&'b AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

fn list(nodes: usize) -> (PeerList, Vec<TcpListener>) {
    let listeners: Vec<TcpListener> = (0..nodes).map(|_| listen()).collect();
    let nodes = listeners.iter().enumerate().map(|(number, listener)| {
        let address = listener.local_addr().expect("it has one");
        format!("[[node]]\nname = \"n{number}\"\naddress = \"{address}\"\n")
    });
    let text = format!("shards = 16\n{}", nodes.collect::<String>());
    (PeerList::parse(&text).expect("a list"), listeners)
}

fn config() -> Config {
    let mut config = Config::default();
    config.is_replicated = true;
    config.merge = MergePolicy::never();
    config
}

/// The node of a number, over the store in a folder.
fn node(peers: &PeerList, number: u32, location: &Path, listener: Option<TcpListener>) -> Database {
    let database = Database::open(location, config()).expect("it is whole");
    let options = ClusterOptions {
        peers: peers.clone(),
        secret: None,
        node: NodeId(number),
        maps_memory: true,
        listener,
        keeper: None,
        max_staleness: None,
    };
    database.join(options).expect("it joins");
    database
}

fn insert(database: &Database, number: u64) {
    let text = format!("INSERT DATA {{ <http://e/s{number}> <http://e/p> \"{number}\" }}");
    database.update(&text).expect("it is taken");
}

/// How many triples there are, once no node is missed: one that has just begun anew may be lost to others a little later.
fn count(database: &Database) -> String {
    let begun = Instant::now();
    loop {
        let counted = database
            .query("SELECT (COUNT(*) AS ?n) { ?s <http://e/p> ?o }")
            .and_then(|results| {
                let QueryResults::Solutions(mut solutions) = results else {
                    panic!("solutions are asked for");
                };
                solutions.next().expect("a row")
            });
        match counted {
            Ok(row) => return format!("{row:?}"),
            Err(EngineError::ShardLost { .. } | EngineError::NodeLost { .. }) => {
                assert!(begun.elapsed() < PATIENCE, "a node is missed");
                std::thread::yield_now();
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// A store with some triples, which is merged.
fn store(location: &Path) {
    let database = Database::open_or_create(location, Config::default()).expect("it is new");
    (0..20).for_each(|number| insert(&database, number));
    database.compact().expect("there is room");
}

/// Waits until a node has what the first one has, and both answer the same.
fn check_follows(first: &Database, other: &Database) {
    let last = first.snapshot_number();
    assert!(
        other.wait_for_snapshot(last, PATIENCE),
        "{:?}",
        other.replica_status()
    );
    assert_eq!(count(first), count(other));
}

/// Waits until transactions wait for one follower.
fn wait_until_awaited(first: &Database) {
    let begun = Instant::now();
    let is_awaited = || match first.replica_status() {
        Some(ReplicaStatus::Leads { followers }) => followers.iter().any(|one| one.is_awaited),
        other => panic!("the first node leads: {other:?}"),
    };
    while !is_awaited() {
        assert!(begun.elapsed() < PATIENCE, "{:?}", first.replica_status());
        std::thread::yield_now();
    }
}

#[test]
fn a_node_without_a_store_copies_that_of_the_leader_while_it_is_written() {
    let folder = tempfile::tempdir().expect("there is room");
    let (peers, mut listeners) = list(3);
    let place = |number: u32| folder.path().join(format!("n{number}"));
    store(&place(0));
    let first = node(&peers, 0, &place(0), Some(listeners.remove(0)));
    let options = |node: u32| FetchOptions {
        peers: &peers,
        secret: None,
        node: NodeId(node),
    };
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _end = EndOnDrop(&is_over);
        scope.spawn(|| {
            let mut number = 20;
            while !is_over.load(Relaxed) {
                insert(&first, number);
                number += 1;
                if number.is_multiple_of(50) {
                    first.compact().expect("there is room");
                }
            }
        });
        for number in [1, 2] {
            let listener = listeners.remove(0);
            let fetched = fetch_copy(&options(number), NodeId(0), &place(number), &|_, _| ());
            let copy = fetched.expect("it leads");
            assert!(copy.bytes > 0 && copy.files > 2, "{copy:?}");
            let other = node(&peers, number, &place(number), Some(listener));
            wait_until_awaited(&first);
            // Who follows gives none, and says who does.
            let another = NodeId(3 - number);
            let begun = Instant::now();
            let options = FetchOptions {
                node: another,
                ..options(number)
            };
            let leader = loop {
                match fetch_copy(&options, NodeId(number), &place(7), &|_, _| ()) {
                    Err(CopyError::Refused { leader, .. }) => {
                        if let Some(leader) = leader {
                            break leader;
                        }
                        assert!(begun.elapsed() < PATIENCE, "it does not know who leads");
                    }
                    other => panic!("{other:?}"),
                }
            };
            assert_eq!(leader, "n0");
            assert!(!place(7).exists());
            drop(other);
        }
    });
    let other = node(&peers, 2, &place(2), None);
    check_follows(&first, &other);
    drop((first, other));
    let left = std::fs::read_dir(place(0)).expect("it is a folder");
    let left = left.map(|entry| entry.expect("it is there").file_name());
    let left: Vec<_> = left
        .filter(|name| name.as_encoded_bytes().starts_with(b"."))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_node_that_is_too_old_begins_anew_with_a_copy() {
    let folder = tempfile::tempdir().expect("there is room");
    let (peers, mut listeners) = list(2);
    let place = |number: u32| folder.path().join(format!("n{number}"));
    store(&place(0));
    let first = node(&peers, 0, &place(0), Some(listeners.remove(0)));
    first.backup(&place(1)).expect("there is room");
    let other = node(&peers, 1, &place(1), Some(listeners.remove(0)));
    wait_until_awaited(&first);
    drop(other);
    (20..30).for_each(|number| insert(&first, number));
    first.checkpoint().expect("there is room");
    // What came before is in memory, too: it has to come from the log.
    drop(first);
    let first = node(&peers, 0, &place(0), None);
    insert(&first, 30);
    let other = node(&peers, 1, &place(1), None);
    assert_eq!(other.wait_to_begin_anew(PATIENCE), Some(Anew::Copied));
    let options = FetchOptions {
        peers: &peers,
        secret: None,
        node: NodeId(1),
    };
    // While it is open it stays.
    let refused = fetch_copy(&options, NodeId(0), &place(1), &|_, _| ());
    assert!(matches!(refused, Err(CopyError::Store(_))), "{refused:?}");
    drop(other);
    fetch_copy(&options, NodeId(0), &place(1), &|_, _| ()).expect("it leads");
    let other = node(&peers, 1, &place(1), None);
    check_follows(&first, &other);
}

/// Nobody is there.
struct Alone;

impl ReplicaWay for Alone {
    fn send(&self, _: NodeId, _: Vec<u8>) -> bool {
        false
    }

    fn send_ahead(&self, _: NodeId, _: Vec<u8>) -> bool {
        false
    }
}

/// Where a copy goes; something is done when its first bytes come.
struct Taking<'t> {
    bytes: usize,
    at_first: &'t dyn Fn(),
    most_bytes: usize,
}

impl io::Write for Taking<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes == 0 {
            (self.at_first)();
        }
        self.bytes += bytes.len();
        match self.bytes <= self.most_bytes {
            true => Ok(bytes.len()),
            false => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn the_log_keeps_what_follows_a_copy_within_its_bound() {
    for (held_log_bytes, is_kept) in [(1 << 30, true), (0, false)] {
        let folder = tempfile::tempdir().expect("there is room");
        let location = folder.path().join("n0");
        store(&location);
        let database = Database::open(&location, config()).expect("it is whole");
        let names = vec!["n0".to_owned(), "n1".to_owned()];
        let mut options = ReplicaOptions::new(names, NodeId(0), std::sync::Arc::new(Alone));
        options.held_log_bytes = held_log_bytes;
        let replica = database.replicate(options).expect("it is a copy");
        insert(&database, 20);
        // It names the last checkpoint.
        let current = || std::fs::read(location.join("CURRENT")).expect("it is a store");
        let before = current();
        let has_checkpoint = || current() != before;
        let write = || {
            assert!(!has_checkpoint());
            insert(&database, 21);
            database.checkpoint().expect("there is room");
            assert_eq!(has_checkpoint(), !is_kept, "{held_log_bytes}");
            // Another node waits for its turn.
            let mut second = Taking {
                bytes: 0,
                at_first: &|| (),
                most_bytes: 1_000,
            };
            replica
                .give_copy(NodeId(1), &mut second)
                .expect("it is short");
        };
        let mut out = Taking {
            bytes: 0,
            at_first: &write,
            most_bytes: usize::MAX,
        };
        replica
            .give_copy(NodeId(1), &mut out)
            .expect("all is taken");
        assert!(out.bytes > 1_000, "{}", out.bytes);
        insert(&database, 22);
        database.checkpoint().expect("there is room");
        assert_eq!(has_checkpoint(), !is_kept, "it has not joined yet");
        // One that ends in the middle is waited for no more.
        let mut cut = Taking {
            bytes: 0,
            at_first: &|| (),
            most_bytes: 1_000,
        };
        assert!(replica.give_copy(NodeId(1), &mut cut).is_err());
        database.checkpoint().expect("there is room");
        assert!(has_checkpoint());
    }
}
