//! What becomes of a leader whose place another node took?

use std::thread;
use std::time::Instant;

use jindou_engine::{Config, Database, EngineError, MergePolicy, Versioned};

use crate::contents::contents;
use crate::net::{Cluster, LONG};

pub(crate) fn insert(database: &Database, number: u64) -> Result<(), EngineError> {
    let text = format!("INSERT DATA {{ <http://e/s{number}> <http://e/p> \"{number}\" }}");
    database.update(&text).map(|_| ())
}

/// Waits until something is so, while nodes that are to begin anew do.
pub(crate) fn wait(cluster: &mut Cluster, what: &str, is_so: impl Fn(&Cluster) -> bool) {
    let begun = Instant::now();
    while !is_so(cluster) {
        cluster.begin_anew();
        let standings = cluster.standings();
        assert!(begun.elapsed() < LONG, "{what}: {standings:?}");
        thread::yield_now();
    }
}

/// Whether all nodes are in sync.
pub(crate) fn are_in_sync(cluster: &Cluster) -> bool {
    let Some(leader) = cluster.leads() else {
        return false;
    };
    let agreement = cluster.node(leader).replica_agreement();
    agreement.is_some_and(|agreement| agreement.in_sync.len() == cluster.count())
}

/// A cluster whose first node led, has a transaction that no other one has, and was closed; another one leads, and has written.
fn deposed(folder: &std::path::Path) -> (Cluster, usize) {
    let mut cluster = Cluster::elected(folder, 3, 7);
    wait(&mut cluster, "all are in sync", are_in_sync);
    let leader = cluster.leads().expect("one leads");
    insert(cluster.node(leader), 0).expect("all are there");
    cluster.cut_off(leader, true);
    thread::scope(|scope| {
        let held = scope.spawn(|| insert(cluster.node(leader), 1));
        let unknown = held.join().expect("it does not panic");
        assert!(
            matches!(unknown, Err(EngineError::WriteUnknown { .. })),
            "{unknown:?}"
        );
    });
    cluster.close(leader);
    let another = |cluster: &Cluster| cluster.leads().is_some_and(|now| now != leader);
    wait(&mut cluster, "another one leads", another);
    let now = cluster.leads().expect("one leads");
    insert(cluster.node(now), 2).expect("two are there");
    (cluster, leader)
}

#[test]
fn a_deposed_leader_keeps_what_it_may_give_up_in_its_log() {
    let folder = tempfile::tempdir().expect("there is room");
    let (mut cluster, node) = deposed(folder.path());
    {
        // As a server that was started again, whose log is long.
        let mut config = Config::default();
        config.merge = MergePolicy::never();
        config.is_replicated = true;
        let opened = Database::open(&cluster.location(node), config).expect("it is whole");
        let refused = opened.checkpoint();
        assert!(
            matches!(refused, Err(EngineError::Cluster(_))),
            "{refused:?}"
        );
    }
    cluster.cut_off(node, false);
    cluster.open(node);
    wait(&mut cluster, "it follows", are_in_sync);
    let leader = cluster.leads().expect("one leads");
    let last = cluster.node(leader).snapshot_number();
    assert!(cluster.node(node).wait_for_snapshot(last, LONG));
    let held = contents(cluster.node(node));
    assert_eq!(held, contents(cluster.node(leader)));
    assert!(!format!("{held:?}").contains("http://e/s1>"), "{held:?}");
}

#[test]
fn writes_that_wait_for_the_next_leader_are_done_wherever_that_is() {
    let folder = tempfile::tempdir().expect("there is room");
    let mut cluster = Cluster::elected(folder.path(), 3, 7);
    wait(&mut cluster, "all are in sync", are_in_sync);
    let leader = cluster.leads().expect("one leads");
    cluster.close(leader);
    // One of both takes its place while they wait.
    let others: Vec<usize> = (0..3).filter(|node| *node != leader).collect();
    thread::scope(|scope| {
        for node in &others {
            let database = cluster.node(*node).clone();
            scope.spawn(move || insert(&database, *node as u64).expect("another one leads soon"));
        }
    });
    let now = cluster.leads().expect("one leads");
    let held = format!("{:?}", contents(cluster.node(now)));
    for node in others {
        assert!(held.contains(&format!("http://e/s{node}>")), "{held}");
    }
}

/// A cluster whose nodes are closed, of which one was not in sync last and lacks a transaction; and what was kept when all
/// were, and last.
fn one_behind(folder: &std::path::Path) -> (Cluster, usize, [Versioned; 2]) {
    let mut cluster = Cluster::elected(folder, 3, 7);
    wait(&mut cluster, "all are in sync", are_in_sync);
    let before = cluster.kept();
    let leader = cluster.leads().expect("one leads");
    let behind = (leader + 1) % 3;
    cluster.break_link(behind);
    let without = |cluster: &Cluster| cluster.kept().configuration.in_sync.len() == 2;
    wait(&mut cluster, "one is done without", without);
    insert(cluster.node(leader), 1).expect("two are there");
    let last = cluster.kept();
    (0..3).for_each(|node| cluster.close(node));
    (cluster, behind, [before, last])
}

fn has_the_transaction(cluster: &Cluster, node: usize) -> bool {
    format!("{:?}", contents(cluster.node(node))).contains("http://e/s1>")
}

#[test]
fn a_keeper_that_was_restored_from_an_old_copy_gives_nobody_the_lead() {
    let folder = tempfile::tempdir().expect("there is room");
    let (mut cluster, behind, [before, last]) = one_behind(folder.path());
    cluster.keep(before);
    // Until long after it would have taken the place of a leader that is away, by what is kept now.
    cluster.open(behind);
    let others: Vec<usize> = (0..3).filter(|node| *node != behind).collect();
    others.iter().for_each(|node| cluster.open(*node));
    wait(&mut cluster, "those in sync ask", |cluster| {
        assert_eq!(cluster.leads(), None);
        cluster.refused_to_lead() >= 8
    });
    cluster.keep(last);
    wait(&mut cluster, "all are in sync", are_in_sync);
    let leader = cluster.leads().expect("one leads");
    assert!(has_the_transaction(&cluster, leader));
}

#[test]
fn where_nothing_is_kept_any_more_one_that_was_in_sync_last_leads() {
    let folder = tempfile::tempdir().expect("there is room");
    let (mut cluster, behind, _) = one_behind(folder.path());
    cluster.keep(Versioned::default());
    cluster.open(behind);
    let other = (behind + 1) % 3;
    cluster.open(other);
    wait(&mut cluster, "the other one leads", |cluster| {
        assert_ne!(cluster.leads(), Some(behind));
        cluster.leads() == Some(other)
    });
    assert!(has_the_transaction(&cluster, other));
    cluster.open((behind + 2) % 3);
    wait(&mut cluster, "all are in sync", are_in_sync);
    assert!(has_the_transaction(&cluster, behind));
}
