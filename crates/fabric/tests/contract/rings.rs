//! Do messages arrive whole, once and in order, and is everything else an error?

use std::sync::Arc;
use std::time::Duration;

use jindou_fabric::FabricError;
use jindou_fabric::remote::{Fabric, Interrupt, NodeId};
use jindou_fabric::ring::{Invitation, Receiver, RingError, RingOptions, Sender, Sending};

use super::{Case, Cluster, pattern, soon};

pub(super) const CASES: &[Case] = &[
    ("messages_of_all_lengths_arrive_in_order", 2, in_order),
    ("a_full_ring_takes_no_more_until_it_is_read", 2, full),
    ("many_messages_are_one_ring_of_the_bell", 2, one_wake),
    ("a_waiting_sender_is_woken_when_half_is_free", 2, woken),
    ("a_closed_ring_ends_after_its_messages", 2, closed),
    (
        "an_abandoned_ring_is_an_error_after_its_messages",
        2,
        abandoned,
    ),
    ("a_sender_learns_that_the_receiver_closed", 2, receiver_gone),
    ("a_ring_has_one_sender", 3, taken),
    (
        "too_long_messages_are_refused_and_others_go_on",
        2,
        too_long,
    ),
    ("what_cannot_be_a_ring_is_refused", 1, options),
    ("an_invitation_travels_as_bytes", 2, invitation),
    (
        "a_lost_sender_is_an_error_after_its_messages",
        2,
        lost_sender,
    ),
    ("a_lost_receiver_is_an_error", 2, lost_receiver),
    ("a_guest_that_never_comes_is_an_error", 2, lost_guest),
    (
        "waits_end_with_their_deadline_and_go_on_after_it",
        2,
        deadline,
    ),
    ("rings_in_both_directions_share_a_bell", 2, both_ways),
    ("threads_that_block_pass_all_messages", 2, threads),
];

fn small() -> RingOptions {
    RingOptions {
        bytes: 512,
        probe_every: Duration::from_millis(20),
        ..RingOptions::default()
    }
}

/// A ring from node 0 to node 1.
fn ring(cluster: &Cluster, options: &RingOptions) -> (Sender, Receiver) {
    let (here, there) = (cluster.fabric(0), cluster.fabric(1));
    let bell = Arc::new(there.doorbell().unwrap());
    let receiver = Receiver::new(there, bell, options).unwrap();
    (sender(here, receiver.invitation()).unwrap(), receiver)
}

fn sender(fabric: Arc<dyn Fabric>, invitation: &Invitation) -> Result<Sender, RingError> {
    let bell = Arc::new(fabric.doorbell().unwrap());
    let limit = soon(&*fabric);
    Sender::new(fabric, bell, invitation, &limit)
}

/// Lets what is on its way arrive, without waiting for the receiver.
fn settle(fabric: &dyn Fabric, sender: &mut Sender) -> Sending {
    let mut sending = sender.flush().unwrap();
    while matches!(sending, Sending::InFlight | Sending::Held) {
        sending = sender.wait(&soon(fabric)).unwrap();
    }
    sending
}

/// Sends and receives on one thread.
fn pass(cluster: &Cluster, sender: &mut Sender, receiver: &mut Receiver, messages: &[Vec<u8>]) {
    let here = cluster.fabric(0);
    let mut next = 0;
    for expected in messages {
        let message = loop {
            while next < messages.len() && sender.try_send(&messages[next]).unwrap() {
                next += 1;
            }
            let _ = settle(&*here, sender);
            if let Some(message) = receiver.try_receive().unwrap() {
                break message;
            }
        };
        assert_eq!(&message, expected);
    }
    assert_eq!(receiver.try_receive(), Ok(None));
    assert_eq!(next, messages.len());
}

fn in_order(cluster: &Cluster) {
    let (mut sender, mut receiver) = ring(cluster, &small());
    assert_eq!(receiver.try_receive(), Ok(None));
    assert_eq!(receiver.sender(), Some(NodeId(0)));
    // Up to many times the ring, and about the length of a piece.
    let lengths = [0, 1, 7, 8, 9, 100, 103, 104, 105, 511, 512, 513, 5000, 0, 3];
    let messages: Vec<_> = (0..10)
        .flat_map(|round| lengths.map(|length| pattern(length + round, length)))
        .collect();
    pass(cluster, &mut sender, &mut receiver, &messages);

    let (mut sender, mut receiver) = ring(cluster, &RingOptions::default());
    let messages: Vec<_> = (0..4).map(|i| pattern((i << 18) + i, i)).collect();
    pass(cluster, &mut sender, &mut receiver, &messages);
}

fn full(cluster: &Cluster) {
    let (mut sender, mut receiver) = ring(cluster, &small());
    let here = cluster.fabric(0);
    let mut sent = 0;
    // As many as are in the ring and as wait for it; then no more, however often it is tried.
    let mut refused = 0;
    while refused < 10 {
        let message = pattern(40, sent);
        if sender.try_send(&message).unwrap() {
            sent += 1;
        } else {
            assert_eq!(settle(&*here, &mut sender), Sending::Full);
            refused += 1;
        }
    }
    assert!((8..=32).contains(&sent), "{sent}");
    for i in 0..sent {
        let message = loop {
            let _ = settle(&*here, &mut sender);
            if let Some(message) = receiver.try_receive().unwrap() {
                break message;
            }
        };
        assert_eq!(message, pattern(40, i));
    }
    assert_eq!(settle(&*here, &mut sender), Sending::Done);
    assert!(sender.try_send(b"more").unwrap());
}

fn one_wake(cluster: &Cluster) {
    let (here, there) = (cluster.fabric(0), cluster.fabric(1));
    let bell = Arc::new(there.doorbell().unwrap());
    let mut receiver = Receiver::new(there, Arc::clone(&bell), &RingOptions::default()).unwrap();
    let mut sender = sender(Arc::clone(&here), receiver.invitation()).unwrap();
    assert_eq!(bell.count(), 0);
    for round in 1..=3 {
        for i in 0..100 {
            assert!(sender.stage(&pattern(i, i)).unwrap());
        }
        assert_eq!(bell.count(), round - 1);
        assert_eq!(settle(&*here, &mut sender), Sending::Done);
        assert_eq!(bell.count(), round);
        for i in 0..100 {
            assert_eq!(receiver.try_receive().unwrap().unwrap(), pattern(i, i));
        }
    }
}

fn woken(cluster: &Cluster) {
    let (here, there) = (cluster.fabric(0), cluster.fabric(1));
    let bell = Arc::new(there.doorbell().unwrap());
    let mut receiver = Receiver::new(there, bell, &small()).unwrap();
    let bell = Arc::new(here.doorbell().unwrap());
    let (fabric, limit) = (Arc::clone(&here), soon(&*here));
    let invitation = receiver.invitation();
    let mut sender = Sender::new(fabric, Arc::clone(&bell), invitation, &limit).unwrap();
    let mut sent = 0;
    while sender.try_send(&pattern(40, sent)).unwrap() {
        let _ = settle(&*here, &mut sender);
        sent += 1;
    }
    assert_eq!(settle(&*here, &mut sender), Sending::Full);
    // A record is eight words of the ring's 64: eight are in it, and the fourth that is taken frees
    // half.
    for i in 0..3 {
        assert_eq!(receiver.try_receive().unwrap().unwrap(), pattern(40, i));
        assert_eq!(
            here.wait(&bell, 0, &brief(&*here)),
            Err(FabricError::Deadline)
        );
    }
    assert_eq!(receiver.try_receive().unwrap().unwrap(), pattern(40, 3));
    assert_eq!(here.wait(&bell, 0, &soon(&*here)), Ok(1));
}

/// A deadline after which what should not happen has not.
fn brief(fabric: &dyn Fabric) -> Interrupt<'static> {
    Interrupt::at(fabric.now() + Duration::from_millis(2))
}

fn closed(cluster: &Cluster) {
    let (mut sender, mut receiver) = ring(cluster, &RingOptions::default());
    let (here, there) = (cluster.fabric(0), cluster.fabric(1));
    sender.send(b"last", &soon(&*here)).unwrap();
    sender.close(&soon(&*here)).unwrap();
    // Once more is no harm, and nothing can be sent.
    sender.close(&soon(&*here)).unwrap();
    assert_eq!(sender.try_send(b"after"), Err(RingError::Closed));
    drop(sender);
    assert_eq!(receiver.receive(&soon(&*there)).unwrap(), b"last");
    assert_eq!(receiver.receive(&soon(&*there)), Err(RingError::Closed));
    assert_eq!(receiver.try_receive(), Err(RingError::Closed));
}

fn abandoned(cluster: &Cluster) {
    let (mut sender, mut receiver) = ring(cluster, &RingOptions::default());
    let (here, there) = (cluster.fabric(0), cluster.fabric(1));
    sender.send(b"last", &soon(&*here)).unwrap();
    sender.drain(&soon(&*here)).unwrap();
    drop(sender);
    assert_eq!(receiver.receive(&soon(&*there)).unwrap(), b"last");
    assert_eq!(receiver.receive(&soon(&*there)), Err(RingError::Abandoned));
    assert_eq!(receiver.try_receive(), Err(RingError::Abandoned));
}

fn receiver_gone(cluster: &Cluster) {
    let (mut sender, receiver) = ring(cluster, &small());
    let here = cluster.fabric(0);
    sender.send(&pattern(100, 0), &soon(&*here)).unwrap();
    let invitation = receiver.invitation().clone();
    drop(receiver);
    let sent = loop {
        match sender.send(&pattern(100, 1), &soon(&*here)) {
            Ok(()) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(sent, RingError::Closed);
    assert_eq!(sender.drain(&soon(&*here)), Err(RingError::Closed));
    let late = self::sender(here, &invitation);
    assert!(matches!(late, Err(RingError::Closed)), "{late:?}");
}

fn taken(cluster: &Cluster) {
    let (mut first, mut receiver) = ring(cluster, &small());
    for node in [0, 2] {
        let second = sender(cluster.fabric(node), receiver.invitation());
        assert!(matches!(second, Err(RingError::Taken)), "{second:?}");
    }
    pass(cluster, &mut first, &mut receiver, &[b"still".to_vec()]);
}

fn too_long(cluster: &Cluster) {
    let options = RingOptions {
        message_bytes: 1000,
        ..small()
    };
    let (mut sender, mut receiver) = ring(cluster, &options);
    let (bytes, limit) = (1001, 1000);
    let refused = Err(RingError::TooLarge { bytes, limit });
    assert_eq!(sender.try_send(&pattern(1001, 0)), refused);
    let messages = [pattern(1000, 1), pattern(3, 2)];
    pass(cluster, &mut sender, &mut receiver, &messages);
}

fn options(cluster: &Cluster) {
    let fabric = cluster.fabric(0);
    let bell = Arc::new(fabric.doorbell().unwrap());
    let bad = [
        RingOptions {
            bytes: 8,
            ..small()
        },
        RingOptions {
            bytes: 1 << 40,
            ..small()
        },
        RingOptions {
            message_bytes: 1 << 40,
            ..small()
        },
    ];
    for options in bad {
        let refused = Receiver::new(Arc::clone(&fabric), Arc::clone(&bell), &options);
        assert!(matches!(refused, Err(RingError::Options(_))), "{refused:?}");
    }
}

fn invitation(cluster: &Cluster) {
    let there = cluster.fabric(1);
    let bell = Arc::new(there.doorbell().unwrap());
    let receiver = Receiver::new(there, bell, &small()).unwrap();
    let bytes = receiver.invitation().to_bytes();
    let invitation = Invitation::from_bytes(&bytes).unwrap();
    assert_eq!(&invitation, receiver.invitation());
    for length in 0..bytes.len() {
        assert!(Invitation::from_bytes(&bytes[..length]).is_err());
    }
    assert!(sender(cluster.fabric(0), &invitation).is_ok());
}

fn lost_sender(cluster: &Cluster) {
    let (mut sender, mut receiver) = ring(cluster, &small());
    let (here, there) = (cluster.fabric(0), cluster.fabric(1));
    sender.send(b"whole", &soon(&*here)).unwrap();
    sender.drain(&soon(&*here)).unwrap();
    // More than the ring holds: the end of it never comes.
    assert!(sender.try_send(&pattern(5000, 0)).unwrap());
    let _ = settle(&*here, &mut sender);
    cluster.kill(0);
    assert_eq!(receiver.receive(&soon(&*there)).unwrap(), b"whole");
    let lost = RingError::Fabric(FabricError::PeerLost(NodeId(0)));
    assert_eq!(receiver.receive(&soon(&*there)), Err(lost.clone()));
    assert_eq!(receiver.try_receive(), Err(lost));
}

fn lost_receiver(cluster: &Cluster) {
    let (mut sender, _receiver) = ring(cluster, &small());
    let here = cluster.fabric(0);
    while sender.try_send(&pattern(40, 0)).unwrap() {
        let _ = settle(&*here, &mut sender);
    }
    cluster.kill(1);
    let lost = RingError::Fabric(FabricError::PeerLost(NodeId(1)));
    assert_eq!(sender.send(b"more", &soon(&*here)), Err(lost.clone()));
    assert_eq!(sender.try_send(b"more"), Err(lost));
}

fn lost_guest(cluster: &Cluster) {
    let there = cluster.fabric(1);
    let bell = Arc::new(there.doorbell().unwrap());
    let options = RingOptions {
        sender: Some(NodeId(0)),
        ..small()
    };
    let mut receiver = Receiver::new(Arc::clone(&there), bell, &options).unwrap();
    assert_eq!(receiver.sender(), Some(NodeId(0)));
    cluster.kill(0);
    let lost = RingError::Fabric(FabricError::PeerLost(NodeId(0)));
    assert_eq!(receiver.receive(&soon(&*there)), Err(lost));
}

fn deadline(cluster: &Cluster) {
    let (mut sender, mut receiver) = ring(cluster, &small());
    let (here, there) = (cluster.fabric(0), cluster.fabric(1));
    let passed = RingError::Fabric(FabricError::Deadline);
    assert_eq!(receiver.receive(&brief(&*there)), Err(passed.clone()));
    let mut sent = 0;
    while sender.try_send(&pattern(40, sent)).unwrap() {
        let _ = settle(&*here, &mut sender);
        sent += 1;
    }
    assert_eq!(sender.send(b"refused", &brief(&*here)), Err(passed.clone()));
    assert_eq!(sender.drain(&brief(&*here)), Err(passed));
    let yes = || true;
    let ended = sender.drain(&Interrupt::never().or_if(&yes));
    assert_eq!(ended, Err(RingError::Fabric(FabricError::Cancelled)));
    for i in 0..sent {
        let message = receiver.receive(&soon(&*there)).unwrap();
        assert_eq!(message, pattern(40, i));
        let _ = settle(&*here, &mut sender);
    }
    pass(cluster, &mut sender, &mut receiver, &[b"goes on".to_vec()]);
}

fn both_ways(cluster: &Cluster) {
    let (here, there) = (cluster.fabric(0), cluster.fabric(1));
    let (mine, yours) = (
        Arc::new(here.doorbell().unwrap()),
        Arc::new(there.doorbell().unwrap()),
    );
    let mut requests = Receiver::new(Arc::clone(&there), Arc::clone(&yours), &small()).unwrap();
    let mut answers = Receiver::new(Arc::clone(&here), Arc::clone(&mine), &small()).unwrap();
    let limit = soon(&*here);
    let mut ask = Sender::new(Arc::clone(&here), mine, requests.invitation(), &limit).unwrap();
    let limit = soon(&*there);
    let mut answer = Sender::new(Arc::clone(&there), yours, answers.invitation(), &limit).unwrap();
    for i in 0..50 {
        ask.send(&pattern(i, i), &soon(&*here)).unwrap();
        let request = requests.receive(&soon(&*there)).unwrap();
        answer.send(&request, &soon(&*there)).unwrap();
        assert_eq!(answers.receive(&soon(&*here)).unwrap(), pattern(i, i));
    }
}

fn threads(cluster: &Cluster) {
    if !cluster.has_threads {
        return;
    }
    let (mut sender, mut receiver) = ring(cluster, &small());
    let (here, there) = (cluster.fabric(0), cluster.fabric(1));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for i in 0..2000 {
                sender.send(&pattern(i % 700, i), &soon(&*here)).unwrap();
            }
            sender.close(&soon(&*here)).unwrap();
        });
        for i in 0..2000 {
            assert_eq!(
                receiver.receive(&soon(&*there)).unwrap(),
                pattern(i % 700, i)
            );
        }
        assert_eq!(receiver.receive(&soon(&*there)), Err(RingError::Closed));
    });
}
