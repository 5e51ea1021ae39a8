mod misuse;
mod pipes;
mod slow;

use std::net::{Ipv4Addr, TcpListener, TcpStream};

use self::pipes::{End, Script, pair};
use super::*;

const LONG: Duration = Duration::from_secs(60);
/// For handshakes that can only end so.
const SHORT: Duration = Duration::from_millis(100);

/// What one side of a handshake is made of.
#[derive(Clone)]
struct Side {
    node: NodeId,
    nodes: u32,
    secret: Option<Secret>,
    facts: Facts,
    role: Role,
    gives_copies: bool,
    within: Duration,
}

impl Side {
    fn new(node: u32, role: Role) -> Self {
        Self {
            node: NodeId(node),
            nodes: 3,
            secret: Some(Secret::new(b"correct horse battery").unwrap()),
            facts: Facts {
                list: 0,
                program: "0.1.0".to_owned(),
                cluster: [7; 32],
                name: format!("node-{node}"),
                shards: 64,
                snapshot: "c0ffee/12".to_owned(),
                wants_copy: false,
            },
            role,
            gives_copies: false,
            within: LONG,
        }
    }

    fn handshake(&self) -> Handshake<'_> {
        Handshake {
            here: self.node,
            nodes: self.nodes,
            secret: self.secret.as_ref(),
            facts: &self.facts,
            role: self.role,
            gives_copies: self.gives_copies,
            within: self.within,
        }
    }

    /// The connection, too, so that it is dropped if the handshake fails.
    fn run<S: Duplex>(&self, stream: S) -> Result<(Greeted, S), HelloError> {
        let greeted = self.handshake().run(&stream)?;
        Ok((greeted, stream))
    }
}

type Outcome<S> = Result<(Greeted, S), HelloError>;

/// Node 0, which dials node 1, and node 1.
fn sides() -> (Side, Side) {
    let to = NodeId(1);
    (
        Side::new(0, Role::Dialer { to }),
        Side::new(1, Role::Acceptor),
    )
}

fn run_both<S: Duplex + Send>(
    (one, other): (&Side, &Side),
    (one_end, other_end): (S, S),
) -> (Outcome<S>, Outcome<S>) {
    std::thread::scope(|scope| {
        let one = scope.spawn(|| one.run(one_end));
        let other = other.run(other_end);
        (one.join().unwrap(), other)
    })
}

/// How the handshake of the two sides fails at each.
fn failures(one: &Side, other: &Side) -> (HelloError, HelloError) {
    let (one, other) = run_both((one, other), pair());
    (one.unwrap_err(), other.unwrap_err())
}

fn greeted_pair() -> ((Greeted, End), (Greeted, End)) {
    let (one, other) = sides();
    let (one, other) = run_both((&one, &other), pair());
    (one.unwrap(), other.unwrap())
}

fn loopback() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    loop {
        let (other, address) = listener.accept().unwrap();
        if address == one.local_addr().unwrap() {
            return (one, other);
        }
    }
}

#[test]
fn two_nodes_know_each_other_whoever_dials() {
    for (dialer, acceptor) in [(0, 1), (1, 0), (2, 0)] {
        for step in [1, 7, usize::MAX] {
            let to = NodeId(acceptor);
            let dialer = Side::new(dialer, Role::Dialer { to });
            let acceptor = Side::new(acceptor, Role::Acceptor);
            let (mut one_end, mut other_end) = pair();
            (one_end.step, other_end.step) = (step, step);
            let (one, other) = run_both((&dialer, &acceptor), (one_end, other_end));
            let ((one, _), (other, _)) = (one.unwrap(), other.unwrap());
            assert_eq!((one.node, other.node), (acceptor.node, dialer.node));
        }
    }
}

#[test]
fn nodes_of_two_builds_join() {
    let (one, mut other) = sides();
    other.facts.program = "0.2.0".to_owned();
    let (one, other) = run_both((&one, &other), pair());
    assert!(one.is_ok() && other.is_ok());
}

#[test]
fn nodes_without_a_secret_join_each_other() {
    let (mut one, mut other) = sides();
    (one.secret, other.secret) = (None, None);
    let (one, other) = run_both((&one, &other), pair());
    assert!(one.is_ok() && other.is_ok());
}

#[test]
fn the_connection_goes_on_at_its_next_byte() {
    use std::io::{Read as _, Write as _};
    let (one, other) = sides();
    let (one_end, other_end) = loopback();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut greeted, mut stream) = one.run(one_end).unwrap();
            stream.write_all(b"after the handshake").unwrap();
            greeted.exchange(&stream, b"to node 1", LONG).unwrap();
            stream.write_all(b"after the exchange").unwrap();
        });
        let (mut greeted, mut stream) = other.run(other_end).unwrap();
        assert_eq!(stream.read_timeout().unwrap(), None);
        let mut bytes = [0; 19];
        stream.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"after the handshake");
        let message = greeted.exchange(&stream, b"to node 0", LONG).unwrap();
        assert_eq!(message, b"to node 1");
        assert_eq!(stream.write_timeout().unwrap(), None);
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"after the exchange");
    });
}

#[test]
fn messages_larger_than_buffers_cross() {
    let (one, other) = sides();
    let (one_end, other_end) = loopback();
    let (one_message, other_message) = (vec![1; 24 << 20], vec![2; (32 << 20) + 1]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut greeted, stream) = one.run(one_end).unwrap();
            let message = greeted.exchange(&stream, &one_message, LONG).unwrap();
            assert!(message == other_message);
        });
        let (mut greeted, stream) = other.run(other_end).unwrap();
        let message = greeted.exchange(&stream, &other_message, LONG).unwrap();
        assert!(message == one_message);
    });
}

#[test]
fn exchanges_follow_each_other() {
    let ((mut one, one_end), (mut other, other_end)) = greeted_pair();
    let messages = [&b""[..], b"a", &[7; 200_000], b""];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for message in messages {
                let got = one.exchange(&one_end, message, LONG).unwrap();
                assert_eq!(got, [message, b"!"].concat());
            }
        });
        for message in messages {
            let sent = [message, b"!"].concat();
            assert_eq!(other.exchange(&other_end, &sent, LONG).unwrap(), message);
        }
    });
}

#[test]
fn another_secret_is_told_to_both_and_nothing_else() {
    let (one, other) = sides();
    let wrong = |secret: Option<&[u8]>| Side {
        secret: secret.map(|secret| Secret::new(secret).unwrap()),
        // A node that knows the secret would be told of this difference.
        facts: Facts {
            cluster: [8; 32],
            ..one.facts.clone()
        },
        ..one.clone()
    };
    for one in [wrong(Some(b"correct horse batterz")), wrong(None)] {
        let (of_one, of_other) = failures(&one, &other);
        assert!(matches!(
            of_one,
            HelloError::OtherSecret { node: NodeId(1) }
        ));
        let expected =
            "the secret of node number 0 is another one: give all nodes the same secret-file";
        assert_eq!(of_other.to_string(), expected);
    }
}

#[test]
fn other_lists_of_peers_are_told_to_both() {
    let (one, other) = sides();
    let change: [fn(&mut Side); 2] = [
        |side| side.facts.cluster[31] ^= 1,
        |side| side.facts.shards = 32,
    ];
    for change in change {
        let mut other = other.clone();
        change(&mut other);
        // That is the reason, whatever else differs.
        other.node = NodeId(0);
        other.facts.snapshot.clear();
        let (of_one, of_other) = failures(&one, &other);
        let expected = "node node-1 has another list of peers: give all nodes the same list";
        assert_eq!(of_one.to_string(), expected);
        assert!(matches!(of_other, HelloError::OtherPeers { .. }));
    }
}

#[test]
fn other_snapshots_are_told_to_both() {
    let (one, mut other) = sides();
    other.facts.snapshot = "c0ffee/13".to_owned();
    let (of_one, of_other) = failures(&one, &other);
    let expected = "node node-1 serves snapshot c0ffee/13 of the store, this one c0ffee/12: \
                    give all nodes the same copy";
    assert_eq!(of_one.to_string(), expected);
    assert!(matches!(of_other, HelloError::OtherSnapshot { name, .. } if name == "node-0"));
}

#[test]
fn who_has_no_copy_is_greeted_where_copies_are_given() {
    let (mut one, mut other) = sides();
    one.facts.snapshot = "none".to_owned();
    one.facts.wants_copy = true;
    let (of_one, of_other) = failures(&one, &other);
    assert!(matches!(&of_other, HelloError::NoCopies { name } if name == "node-0"));
    assert!(
        matches!(&of_one, HelloError::Refused { text, .. } if text.contains("`jindou backup`")),
        "{of_one}"
    );
    other.gives_copies = true;
    let (one, other) = run_both((&one, &other), pair());
    let ((one, _), (other, _)) = (one.unwrap(), other.unwrap());
    assert!(!one.wants_copy && other.wants_copy);
}

#[test]
fn a_node_is_not_there_twice() {
    let (one, _) = sides();
    let other = Side::new(0, Role::Acceptor);
    let (of_one, of_other) = failures(&one, &other);
    assert!(matches!(of_one, HelloError::SameNode { .. }));
    let expected = "another process is node node-0, as this one is: start each node once";
    assert_eq!(of_other.to_string(), expected);
}

#[test]
fn a_node_that_there_is_not_is_refused_and_learns_why() {
    let (mut one, other) = sides();
    one.node = NodeId(3);
    let (of_one, of_other) = failures(&one, &other);
    assert!(matches!(
        of_other,
        HelloError::NoSuchNode {
            node: NodeId(3),
            nodes: 3
        }
    ));
    assert_eq!(
        of_one.to_string(),
        format!("node number 1 refuses this one: {of_other}")
    );
}

#[test]
fn another_node_at_an_address_is_refused_and_learns_why() {
    let (one, _) = sides();
    let other = Side::new(2, Role::Acceptor);
    let (of_one, of_other) = failures(&one, &other);
    assert!(matches!(&of_one, HelloError::OtherNode { to: NodeId(1), name } if name == "node-2"));
    assert!(
        matches!(of_other, HelloError::Refused { node: NodeId(0), text } if text == of_one.to_string())
    );
}

#[test]
fn a_peer_cannot_send_back_what_it_gets() {
    let (mut one, _) = sides();
    let mirror = End::mirror();
    let refused = one.run(mirror).unwrap_err();
    assert!(matches!(
        refused,
        HelloError::OtherSecret { node: NodeId(0) }
    ));
    one.role = Role::Acceptor;
    let refused = one.run(End::mirror()).unwrap_err();
    assert!(matches!(refused, HelloError::OtherSecret { .. }));
}

#[test]
fn a_handshake_cannot_be_sent_again() {
    let (one, other) = sides();
    let ends = pair();
    let record = ends.0.record();
    let (joined, _) = run_both((&one, &other), ends);
    drop(joined);
    let refused = other.run(Script::new(&record.lock())).unwrap_err();
    assert!(matches!(
        refused,
        HelloError::OtherSecret { node: NodeId(0) }
    ));
}

#[test]
fn a_side_joins_only_by_bytes_that_nobody_changed() {
    let (mut one, mut other) = sides();
    let ends = pair();
    let record = ends.0.record();
    let (joined, _) = run_both((&one, &other), ends);
    drop(joined.unwrap());
    // Where a length is changed, both may wait for each other.
    (one.within, other.within) = (SHORT, SHORT);
    let sent = record.lock().len();
    for (place, flipped) in (0..sent).flat_map(|place| [(place, 1), (place, 0x80)]) {
        let (mut one_end, other_end) = pair();
        one_end.change = Some((place, flipped));
        let (_, of_other) = run_both((&one, &other), (one_end, other_end));
        assert!(of_other.is_err(), "from the dialer, byte {place}");
        let (one_end, mut other_end) = pair();
        other_end.change = Some((place, flipped));
        let (of_one, _) = run_both((&one, &other), (one_end, other_end));
        assert!(of_one.is_err(), "from the acceptor, byte {place}");
    }
}

#[test]
fn a_message_that_was_changed_is_refused() {
    // Length, signature and bytes; a changed length may wait for more, or be too long.
    for place in 0..44 {
        let ((mut one, mut one_end), (mut other, other_end)) = greeted_pair();
        one_end.change = Some((one_end.written() + place, 1));
        let within = if place < 8 { SHORT } else { LONG };
        let (of_one, of_other) = std::thread::scope(|scope| {
            let of_one = scope.spawn(|| one.exchange(&one_end, b"abcd", within));
            let of_other = other.exchange(&other_end, b"efgh", within);
            (of_one.join().unwrap(), of_other)
        });
        let refused = of_other.unwrap_err();
        match place {
            0..8 => assert!(
                !matches!(refused, HelloError::Malformed(_)),
                "{place}: {refused:?}"
            ),
            _ => assert!(matches!(refused, HelloError::Changed { node: NodeId(0) })),
        }
        drop(of_one);
    }
}

#[test]
fn a_message_cannot_be_sent_again() {
    let ((mut one, one_end), (mut other, other_end)) = greeted_pair();
    let begin = one_end.written();
    std::thread::scope(|scope| {
        scope.spawn(|| one.exchange(&one_end, b"a", LONG).unwrap());
        assert_eq!(other.exchange(&other_end, b"b", LONG).unwrap(), b"a");
    });
    let again = Script::new(&one_end.record().lock()[begin..]);
    let refused = other.exchange(&again, b"b", LONG).unwrap_err();
    assert!(matches!(refused, HelloError::Changed { .. }));
}
