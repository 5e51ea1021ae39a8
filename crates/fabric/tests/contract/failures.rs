//! Is a lost peer an error for all that need it, and for nobody else?

use jindou_fabric::FabricError;
use jindou_fabric::remote::{Batch, BellAddress, MemoryKey, NodeId};

use super::{Case, Cluster, complete, open, pattern, reach, read, region, soon};

pub(super) const CASES: &[Case] = &[
    ("a_node_that_is_alive_answers_a_probe", 2, alive),
    ("a_node_that_was_never_there_is_unknown", 2, unknown),
    ("what_a_lost_node_had_is_lost", 3, lost),
    ("a_batch_that_needs_a_lost_node_fails", 3, fails),
    (
        "a_node_lost_on_the_way_is_an_error_or_the_whole_answer",
        2,
        on_the_way,
    ),
    ("a_lost_node_can_do_nothing", 2, nothing),
    ("threads_that_wait_at_a_lost_node_end", 2, ended),
];

fn alive(cluster: &Cluster) {
    let here = cluster.fabric(0);
    for node in [0, 1] {
        assert_eq!(here.probe(NodeId(node), &soon(&*here)), Ok(()));
    }
}

fn unknown(cluster: &Cluster) {
    let here = cluster.fabric(0);
    let node = NodeId(77);
    let error = FabricError::UnknownNode(node);
    assert_eq!(here.probe(node, &soon(&*here)), Err(error.clone()));
    let bell = BellAddress { node, number: 1 };
    assert_eq!(here.wake(bell, &soon(&*here)), Err(error.clone()));
    let (_words, registration) = cluster.fabric(1).share(1).unwrap();
    let mut bytes = registration.key().to_bytes();
    bytes[..4].copy_from_slice(&77u32.to_le_bytes());
    let key = MemoryKey::from_bytes(&bytes).unwrap();
    assert_eq!(reach(&*here, &key), Err(error));
}

fn lost(cluster: &Cluster) {
    let (here, there, third) = (cluster.fabric(0), cluster.fabric(1), cluster.fabric(2));
    let bytes = pattern(100, 5);
    let registration = there.register(&region(&*there, &bytes)).unwrap();
    let kept = third.register(&region(&*third, &bytes)).unwrap();
    let (_words, shared) = there.share(4).unwrap();
    let bell = there.doorbell().unwrap();
    let memory = open(&*here, registration.key()).unwrap();
    let words = open(&*here, shared.key()).unwrap();
    assert_eq!(read(&*here, &memory, 0, 100).unwrap(), bytes);
    cluster.kill(1);

    let error = FabricError::PeerLost(NodeId(1));
    let failed = |batch| complete(&*here, batch).unwrap_err();
    assert_eq!(here.probe(NodeId(1), &soon(&*here)), Err(error.clone()));
    assert_eq!(read(&*here, &memory, 0, 100).unwrap_err(), error);
    let mut batch = Batch::new();
    let _ = batch.write(&words, 0, &[1]).unwrap();
    assert_eq!(failed(batch), error);
    let mut batch = Batch::new();
    let _ = batch.compare_and_swap(&words, 0, 0, 1).unwrap();
    assert_eq!(failed(batch), error);
    let mut batch = Batch::new();
    let _ = batch.fetch_add(&words, 0, 1).unwrap();
    assert_eq!(failed(batch), error);
    let rung = here.wake(bell.address(), &soon(&*here));
    assert_eq!(rung, Err(error.clone()));
    assert_eq!(reach(&*here, registration.key()), Err(error));

    // Everything else goes on.
    assert_eq!(here.probe(NodeId(2), &soon(&*here)), Ok(()));
    assert_eq!(reach(&*here, kept.key()).unwrap(), bytes);
}

fn fails(cluster: &Cluster) {
    let (here, there, third) = (cluster.fabric(0), cluster.fabric(1), cluster.fabric(2));
    let bytes = pattern(100, 6);
    let lost = there.register(&region(&*there, &bytes)).unwrap();
    let kept = third.register(&region(&*third, &bytes)).unwrap();
    let bell = third.doorbell().unwrap();
    let (lost, kept) = (
        open(&*here, lost.key()).unwrap(),
        open(&*here, kept.key()).unwrap(),
    );
    cluster.kill(1);
    let mut batch = Batch::new();
    let _ = batch.read(&kept, 0, 100).unwrap();
    let _ = batch.read(&lost, 0, 100).unwrap();
    batch.wake(bell.address()).unwrap();
    let outcome = complete(&*here, batch);
    assert_eq!(outcome.unwrap_err(), FabricError::PeerLost(NodeId(1)));
    // Bells ring only after all else.
    assert_eq!(bell.count(), 0);
    assert_eq!(read(&*here, &kept, 0, 100).unwrap(), bytes);
}

fn on_the_way(cluster: &Cluster) {
    let (here, there) = (cluster.fabric(0), cluster.fabric(1));
    let bytes = pattern(4 << 20, 7);
    let registration = there.register(&region(&*there, &bytes)).unwrap();
    let (_words, shared) = there.share(1).unwrap();
    let memory = open(&*here, registration.key()).unwrap();
    let words = open(&*here, shared.key()).unwrap();
    let begin = |_| {
        let mut batch = Batch::new();
        let answer = batch.read(&memory, 0, bytes.len()).unwrap();
        let _ = batch.fetch_add(&words, 0, 1).unwrap();
        (answer, here.start(batch))
    };
    let flights: Vec<_> = (0..5).map(begin).collect();
    cluster.kill(1);
    for (answer, mut flight) in flights {
        match flight.wait(&soon(&*here)) {
            Ok(completed) => assert_eq!(completed.bytes(answer), bytes),
            Err(error) => assert_eq!(error, FabricError::PeerLost(NodeId(1))),
        }
    }
}

fn nothing(cluster: &Cluster) {
    if !cluster.outlives_itself {
        return;
    }
    let (here, there) = (cluster.fabric(0), cluster.fabric(1));
    let (_words, registration) = here.share(1).unwrap();
    let bell = there.doorbell().unwrap();
    let memory = open(&*there, registration.key()).unwrap();
    cluster.kill(1);
    let error = FabricError::PeerLost(NodeId(1));
    assert_eq!(read(&*there, &memory, 0, 8).unwrap_err(), error);
    assert_eq!(there.share(1).unwrap_err(), error);
    let region = region(&*here, b"");
    assert_eq!(there.register(&region).unwrap_err(), error);
    assert_eq!(there.doorbell().unwrap_err(), error);
    assert_eq!(there.probe(NodeId(0), &soon(&*there)), Err(error.clone()));
    assert_eq!(there.wait(&bell, 0, &soon(&*there)), Err(error));
}

fn ended(cluster: &Cluster) {
    if !cluster.has_threads || !cluster.outlives_itself {
        return;
    }
    let there = cluster.fabric(1);
    let bell = there.doorbell().unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| there.wait(&bell, 0, &soon(&*there)));
        cluster.kill(1);
        let ended = waiting.join().unwrap();
        assert_eq!(ended, Err(FabricError::PeerLost(NodeId(1))));
    });
}
