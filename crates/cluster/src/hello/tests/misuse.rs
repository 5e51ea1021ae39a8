//! What does a peer achieve that does not keep to the protocol, knowing the secret or not?

use std::io;
use std::sync::atomic::Ordering::Relaxed;

use proptest::prelude::*;

use super::*;
use crate::hello::exchange::read_growing;
use crate::hello::facts::MOST_FACTS_BYTES;
use crate::hello::first::HEADER_BYTES;
use crate::hello::session::{Signed, TAG_BYTES};

/// What a node says to a peer that sends these bytes and ends.
fn refusal(bytes: &[u8]) -> HelloError {
    let (_, other) = sides();
    let peer = Script::new(bytes);
    let refused = other.handshake().run(&peer).unwrap_err();
    assert!(peer.read() <= HEADER_BYTES + MOST_FACTS_BYTES + TAG_BYTES);
    refused
}

/// The first message of node 0.
fn first_message() -> Vec<u8> {
    let (one, _) = sides();
    let first = FirstMessage::new(one.node, &one.facts.to_bytes().unwrap()).unwrap();
    first.bytes().to_vec()
}

/// What node 1 says to a node 0 that knows the secret, says `facts` of itself, and then sends `verdict`, signed.
fn refusal_of_node(facts: &[u8], verdict: &[u8]) -> HelloError {
    let (one, other) = sides();
    let (one_end, other_end) = pair();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let end = one_end;
            let stream = Limited::new(&end, LONG);
            let own = FirstMessage::new(one.node, facts).unwrap();
            stream.write(own.bytes()).unwrap();
            let others = FirstMessage::read(&stream).unwrap();
            let session =
                Session::authenticate(one.secret.as_ref(), one.role, &stream, &own, &others);
            let session = session.unwrap();
            let tag = session.sign(Signed::Verdict, verdict);
            // The other side may not wait for it.
            let _ = stream.write(&[verdict, tag.as_ref()].concat());
        });
        other.run(other_end).unwrap_err()
    })
}

#[test]
fn another_program_is_known_by_its_first_bytes() {
    for bytes in [&b"HTTP/1.1 400 Bad Request\r\n"[..], b"JNDSHARD", &[0; 8]] {
        let refused = refusal(bytes);
        assert!(matches!(refused, HelloError::OtherProgram), "{refused:?}");
    }
}

#[test]
fn another_version_is_told() {
    let mut bytes = first_message();
    bytes[8] = 9;
    let expected = format!(
        "a node speaks version 9 of the protocol between nodes, and this one {}: run one version of the program on all nodes",
        crate::hello::PROTOCOL_VERSION
    );
    assert_eq!(refusal(&bytes).to_string(), expected);
}

#[test]
fn a_connection_that_ends_is_told_wherever_it_does() {
    let bytes = [first_message(), vec![0; TAG_BYTES - 1]].concat();
    for end in 0..bytes.len() {
        assert!(matches!(refusal(&bytes[..end]), HelloError::Ended), "{end}");
    }
}

#[test]
fn facts_that_are_too_long_are_not_read() {
    let mut bytes = first_message();
    bytes[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&4097_u32.to_le_bytes());
    let refused = refusal(&bytes);
    assert!(matches!(
        refused,
        HelloError::TooLong {
            found_bytes: 4097,
            most_bytes: 4096,
            ..
        }
    ));
    bytes[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&[0xff; 4]);
    assert!(matches!(refusal(&bytes), HelloError::TooLong { .. }));
}

#[test]
fn own_facts_that_cannot_be_are_not_sent() {
    let (one, _) = sides();
    let change: [fn(&mut Facts); 5] = [
        |facts| facts.snapshot = "x".repeat(MOST_SNAPSHOT_BYTES + 1),
        |facts| facts.program = "x".repeat(101),
        |facts| facts.snapshot.push('\n'),
        |facts| facts.name.clear(),
        |facts| facts.name = "a b".to_owned(),
    ];
    for change in change {
        let mut one = one.clone();
        change(&mut one.facts);
        let peer = Script::new(b"");
        let refused = one.handshake().run(&peer).unwrap_err();
        let is_told = matches!(
            refused,
            HelloError::TooLong { .. } | HelloError::Malformed(_)
        );
        assert!(is_told && peer.written.load(Relaxed) == 0, "{refused:?}");
    }
}

#[test]
fn facts_at_their_bounds_are_sent() {
    let (mut one, mut other) = sides();
    let snapshot = "x".repeat(MOST_SNAPSHOT_BYTES);
    one.facts.snapshot.clone_from(&snapshot);
    other.facts.snapshot.clone_from(&snapshot);
    one.facts.program = "x".repeat(100);
    one.facts.name = "x".repeat(128);
    let (one, other) = run_both((&one, &other), pair());
    assert!(one.is_ok() && other.is_ok());
}

#[test]
fn a_node_that_says_what_cannot_be_is_refused() {
    let (one, _) = sides();
    let facts = |change: fn(&mut Facts)| {
        let mut facts = one.facts.clone();
        change(&mut facts);
        postcard::to_extend(&facts, Vec::new()).unwrap()
    };
    let mut followed = facts(|_| ());
    followed.push(0);
    let malformed = [
        Vec::new(),
        vec![0xff; 4096],
        followed,
        facts(|facts| facts.name = "\u{1b}[2J".to_owned()),
        facts(|facts| facts.snapshot = "\u{1b}[2J".to_owned()),
        facts(|facts| facts.program = "\u{202e}".to_owned()),
    ];
    for facts in malformed {
        let refused = refusal_of_node(&facts, b"\0\0\0");
        assert!(matches!(refused, HelloError::Malformed(_)), "{refused:?}");
    }
    let long = facts(|facts| facts.snapshot = "x".repeat(201));
    let refused = refusal_of_node(&long, b"\0\0\0");
    assert!(matches!(
        refused,
        HelloError::TooLong {
            found_bytes: 201,
            ..
        }
    ));
}

#[test]
fn a_refusal_is_shown_as_it_can_be() {
    let (one, _) = sides();
    let facts = one.facts.to_bytes().unwrap();
    let refused = |verdict: &[u8]| refusal_of_node(&facts, verdict);
    let text = refused(b"\x01\x05\0a\x1b[\xff\n").to_string();
    assert_eq!(
        text,
        "node number 0 refuses this one: a\\u{1b}[\u{fffd}\\u{a}"
    );
    assert!(matches!(refused(b"\x07\0\0"), HelloError::Malformed(_)));
    assert!(matches!(refused(b"\0\x01\0a"), HelloError::Malformed(_)));
    let long = [&b"\x01\xf5\x01"[..], &[b'x'; 501]].concat();
    assert!(matches!(
        refused(&long),
        HelloError::TooLong {
            found_bytes: 501,
            ..
        }
    ));
    let longest = [&b"\x01\xf4\x01"[..], &[b'x'; 500]].concat();
    assert!(matches!(refused(&longest), HelloError::Refused { text, .. } if text.len() == 500));
}

#[test]
fn a_failure_of_the_connection_is_told() {
    struct Broken;
    impl Duplex for Broken {
        fn read_within(&self, _: &mut [u8], _: Duration) -> io::Result<usize> {
            Err(io::ErrorKind::Interrupted.into())
        }
        fn write_within(&self, _: &[u8], _: Duration) -> io::Result<usize> {
            Err(io::ErrorKind::HostUnreachable.into())
        }
        fn lift_limits(&self) -> io::Result<()> {
            Ok(())
        }
        fn end(&self) {}
    }
    let (one, _) = sides();
    let refused = one.handshake().run(&Broken).unwrap_err();
    assert!(
        matches!(refused, HelloError::Io(error) if error.kind() == io::ErrorKind::HostUnreachable)
    );
}

#[test]
fn a_message_that_is_too_long_is_not_begun() {
    let ((mut one, _end), _) = greeted_pair();
    let claimed = (MOST_MESSAGE_BYTES + 1).to_le_bytes();
    let peer = Script::new(&[&claimed[..], &[0; 64]].concat());
    let refused = one.exchange(&peer, b"", LONG).unwrap_err();
    let expected = "a message between nodes of 268435457 bytes, and at most 268435456 are allowed: \
                    use more nodes or fewer shards";
    assert_eq!(refused.to_string(), expected);
    assert_eq!(peer.read(), 8);
}

#[test]
fn a_length_that_is_only_claimed_costs_no_memory() {
    let peer = Script::new(&[0; 100_000]);
    let mut bytes = Vec::new();
    let claimed = MOST_MESSAGE_BYTES as usize;
    let refused = read_growing(&Limited::new(&peer, LONG), claimed, &mut bytes);
    assert!(matches!(refused, Err(HelloError::Ended)));
    assert!(bytes.capacity() <= 300_000, "{}", bytes.capacity());
}

proptest! {
    #[test]
    fn any_bytes_are_refused(begin in 0..4_usize, rest in proptest::collection::vec(any::<u8>(), 0..6000)) {
        // Nothing, the magic, the version, too, and all but the facts.
        let begin = [0, 8, 12, HEADER_BYTES][begin];
        let bytes = [&first_message()[..begin], &rest].concat();
        let said = refusal(&bytes).to_string();
        prop_assert!(!said.contains(char::is_control));
    }

    #[test]
    fn any_bytes_of_a_node_are_refused(
        facts in proptest::collection::vec(any::<u8>(), 0..300),
        answer in proptest::collection::vec(any::<u8>(), 0..1000),
    ) {
        prop_assert!(Facts::from_bytes(&facts).is_err());
        let ((mut one, _end), _) = greeted_pair();
        let peer = Script::new(&answer);
        let limited = Limited::new(&peer, LONG);
        prop_assert!(one.session.read_verdict(&limited, NodeId(1)).is_err());
        prop_assert!(one.exchange(&Script::new(&answer), b"", LONG).is_err());
        // A length that can be, and not all of the bytes.
        let answer = [&1000_u64.to_le_bytes()[..], &answer].concat();
        prop_assert!(one.exchange(&Script::new(&answer), b"", LONG).is_err());
    }
}
