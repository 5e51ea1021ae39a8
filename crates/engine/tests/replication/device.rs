//! What becomes of a node whose device takes no more, and of the others?

use std::fs;
use std::ops::Range;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Instant;

use jindou_engine::EngineError;

use crate::contents::contents;
use crate::deposed::{are_in_sync, insert, wait};
use crate::net::{Cluster, LONG};

/// Whether the nodes in sync are all but one.
fn is_left_out(cluster: &Cluster, node: usize) -> bool {
    let Some(leader) = cluster.leads() else {
        return false;
    };
    let agreement = cluster.node(leader).replica_agreement();
    agreement.is_some_and(|agreement| !agreement.in_sync.contains(&format!("n{node}")))
}

/// All nodes have the same, with what was inserted by these numbers.
fn check_all(cluster: &mut Cluster, numbers: Range<u64>) {
    wait(cluster, "all are in sync", are_in_sync);
    let leader = cluster.leads().expect("one leads");
    let last = cluster.node(leader).snapshot_number();
    for node in 0..cluster.count() {
        assert!(cluster.node(node).wait_for_snapshot(last, LONG), "{node}");
        let found = contents(cluster.node(node));
        assert_eq!(found, contents(cluster.node(leader)), "{node}");
        let found = format!("{found:?}");
        for number in numbers.clone() {
            let subject = format!("http://e/s{number}>");
            assert!(found.contains(&subject), "{subject} at {node}: {found}");
        }
    }
}

#[test]
fn a_follower_without_room_is_done_without_until_there_is_some() {
    let folder = tempfile::tempdir().expect("there is room");
    let mut cluster = Cluster::elected(folder.path(), 3, 3);
    wait(&mut cluster, "all are in sync", are_in_sync);
    let leader = cluster.leads().expect("one leads");
    let node = (leader + 1) % 3;
    insert(cluster.node(leader), 0).expect("all have room");
    cluster.faults(node).set_full(true);
    for number in 1..4 {
        insert(cluster.node(leader), number).expect("two have room");
    }
    assert!(is_left_out(&cluster, node));
    // An update there says so once: "the store takes no updates: ...".
    let reason = cluster.ended(node).expect("it applies nothing");
    assert!(!reason.contains("takes no updates"), "{reason}");
    // There is room in the folder, which is looked for.
    let begun = Instant::now();
    while cluster.replica(node).begins_anew().is_none() {
        assert!(begun.elapsed() < LONG, "{:?}", cluster.standings());
        std::thread::yield_now();
    }
    insert(cluster.node(leader), 4).expect("two have room");
    cluster.faults(node).set_full(false);
    check_all(&mut cluster, 0..5);
}

#[test]
fn a_leader_whose_device_fails_leaves_it_to_another_to_lead() {
    let folder = tempfile::tempdir().expect("there is room");
    let mut cluster = Cluster::elected(folder.path(), 3, 4);
    wait(&mut cluster, "all are in sync", are_in_sync);
    let leader = cluster.leads().expect("one leads");
    insert(cluster.node(leader), 0).expect("all is well");
    cluster.faults(leader).fails_to_sync.store(true, SeqCst);
    let refused = insert(cluster.node(leader), 1);
    assert!(
        matches!(refused, Err(EngineError::ReadOnly { .. })),
        "{refused:?}"
    );
    let another = |cluster: &Cluster| cluster.leads().is_some_and(|now| now != leader);
    wait(&mut cluster, "another one leads", another);
    cluster.faults(leader).fails_to_sync.store(false, SeqCst);
    let now = cluster.leads().expect("one leads");
    insert(cluster.node(now), 1).expect("two are well");
    insert(cluster.node(now), 2).expect("two are well");
    check_all(&mut cluster, 0..3);
}

#[test]
fn a_node_that_cannot_write_that_it_leads_leaves_it_to_another() {
    let folder = tempfile::tempdir().expect("there is room");
    let mut cluster = Cluster::elected(folder.path(), 3, 5);
    wait(&mut cluster, "all are in sync", are_in_sync);
    let first = cluster.leads().expect("one leads");
    insert(cluster.node(first), 0).expect("all are there");
    // Of those that have as much, the one with the lower number leads next.
    let node = usize::from(first == 0);
    let obstacle = cluster.location(node).join("HISTORY.new");
    fs::create_dir(&obstacle).expect("there is room");
    cluster.close(first);
    let last = 3 - first - node;
    let begun = Instant::now();
    while cluster.leads() != Some(last) {
        assert!(begun.elapsed() < LONG, "{:?}", cluster.standings());
        std::thread::yield_now();
    }
    let standings = format!("{:?}", cluster.standings());
    // On a machine that is busy the other one may be first, whom it cannot follow then.
    let said = ["it cannot lead", "HISTORY: Is a directory"];
    assert!(
        said.iter().any(|said| standings.contains(said)),
        "{standings}"
    );
    fs::remove_dir(&obstacle).expect("it is there");
    insert(cluster.node(last), 1).expect("one is there");
    cluster.open(first);
    check_all(&mut cluster, 0..2);
}
