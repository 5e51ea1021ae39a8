//! Do bells wake those who wait, and nobody too early?

use std::sync::atomic::Ordering;
use std::time::Duration;

use jindou_fabric::FabricError;
use jindou_fabric::remote::{Batch, Interrupt};

use super::{Case, Cluster, complete, open, soon};

pub(super) const CASES: &[Case] = &[
    ("a_ring_is_counted_and_ends_a_wait", 2, counted),
    (
        "a_bell_rings_after_the_writes_of_its_batch",
        2,
        after_writes,
    ),
    ("bells_of_a_node_are_rung_one_by_one", 2, apart),
    (
        "a_wait_ends_with_its_deadline_or_a_cancellation",
        1,
        interrupts,
    ),
    ("a_bell_that_was_taken_down_is_not_rung", 2, taken_down),
    ("a_blocked_thread_is_woken", 2, blocked),
];

fn counted(cluster: &Cluster) {
    let (here, there) = (cluster.fabric(0), cluster.fabric(1));
    let bell = there.doorbell().unwrap();
    assert_eq!((bell.count(), bell.address().node), (0, there.node()));
    here.wake(bell.address(), &soon(&*here)).unwrap();
    // It rang before the wait began: nothing is missed.
    assert_eq!(there.wait(&bell, 0, &soon(&*there)), Ok(1));
    there.wake(bell.address(), &soon(&*there)).unwrap();
    bell.ring();
    assert_eq!(there.wait(&bell, 1, &soon(&*there)), Ok(3));
    let mut batch = Batch::new();
    for _ in 0..5 {
        batch.wake(bell.address()).unwrap();
    }
    complete(&*here, batch).unwrap();
    assert_eq!(bell.count(), 8);
}

fn after_writes(cluster: &Cluster) {
    let (here, there) = (cluster.fabric(0), cluster.fabric(1));
    let bell = there.doorbell().unwrap();
    let (words, registration) = there.share(1 << 14).unwrap();
    let memory = open(&*here, registration.key()).unwrap();
    for round in 1..=20 {
        let seen = bell.count();
        let mut batch = Batch::new();
        batch.wake(bell.address()).unwrap();
        let _ = batch.write(&memory, 0, &vec![round; 1 << 13]).unwrap();
        for place in (1 << 13)..(1 << 13) + 50 {
            let _ = batch.fetch_add(&memory, place * 8, 1).unwrap();
        }
        let mut flight = here.start(batch);
        there.wait(&bell, seen, &soon(&*there)).unwrap();
        let (written, added) = words.words()[..(1 << 13) + 50].split_at(1 << 13);
        assert!(
            written
                .iter()
                .all(|word| word.load(Ordering::SeqCst) == round)
        );
        assert!(
            added
                .iter()
                .all(|word| word.load(Ordering::SeqCst) == round)
        );
        flight.wait(&soon(&*here)).unwrap();
    }
}

fn apart(cluster: &Cluster) {
    let (here, there) = (cluster.fabric(0), cluster.fabric(1));
    let bells: Vec<_> = (0..10).map(|_| there.doorbell().unwrap()).collect();
    for (i, bell) in bells.iter().enumerate() {
        for _ in 0..i {
            here.wake(bell.address(), &soon(&*here)).unwrap();
        }
    }
    for (i, bell) in bells.iter().enumerate() {
        assert_eq!(bell.count(), i as u64);
    }
}

fn interrupts(cluster: &Cluster) {
    let fabric = cluster.fabric(0);
    let bell = fabric.doorbell().unwrap();
    let deadline = fabric.now() + Duration::from_millis(10);
    let ended = fabric.wait(&bell, 0, &Interrupt::at(deadline));
    assert_eq!(ended, Err(FabricError::Deadline));
    assert!(fabric.now() >= deadline);
    let yes = || true;
    let ended = fabric.wait(&bell, 0, &Interrupt::never().or_if(&yes));
    assert_eq!(ended, Err(FabricError::Cancelled));
    // The cancellation is asked for again while the wait goes on.
    let looks = std::cell::Cell::new(0);
    let third_time = || {
        looks.set(looks.get() + 1);
        looks.get() == 3
    };
    if cluster.has_threads {
        let ended = fabric.wait(&bell, 0, &Interrupt::never().or_if(&third_time));
        assert_eq!(ended, Err(FabricError::Cancelled));
        assert_eq!(looks.get(), 3);
    }
    // What there is already is given, whatever the interrupt says.
    bell.ring();
    assert_eq!(fabric.wait(&bell, 0, &Interrupt::at(Duration::ZERO)), Ok(1));
}

fn taken_down(cluster: &Cluster) {
    let (here, there) = (cluster.fabric(0), cluster.fabric(1));
    let (bell, other) = (there.doorbell().unwrap(), there.doorbell().unwrap());
    let address = bell.address();
    drop(bell);
    let rung = here.wake(address, &soon(&*here));
    assert_eq!(rung, Err(FabricError::Unregistered(there.node())));
    here.wake(other.address(), &soon(&*here)).unwrap();
    assert_eq!(other.count(), 1);
    assert_ne!(there.doorbell().unwrap().address(), address);
}

fn blocked(cluster: &Cluster) {
    if !cluster.has_threads {
        return;
    }
    let (here, there) = (cluster.fabric(0), cluster.fabric(1));
    // They take turns: each waits for the other's ring.
    let (mine, yours) = (here.doorbell().unwrap(), there.doorbell().unwrap());
    let mine_address = mine.address();
    let yours_address = yours.address();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 0..100 {
                there.wait(&yours, turn, &soon(&*there)).unwrap();
                there.wake(mine_address, &soon(&*there)).unwrap();
            }
        });
        for turn in 0..100 {
            here.wake(yours_address, &soon(&*here)).unwrap();
            here.wait(&mine, turn, &soon(&*here)).unwrap();
        }
    });
    assert_eq!((mine.count(), yours.count()), (100, 100));
}
