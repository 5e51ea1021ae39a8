//! What becomes of a batch, and of both nodes, when a message is altered on its way?
//!
//! The nodes are joined by a relay, which alters one message of those that one node sends to the other, and passes
//! on all else, the end of a connection included.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use jindou_fabric::FabricError;
use jindou_fabric::process::{Loss, ProcessFabric, ProcessOptions};
use jindou_fabric::remote::{Batch, Fabric, Interrupt, MemoryKey, NodeId, Registration};
use jindou_fabric::{Region, RegionBuilder};

use crate::connection;

const ONE: NodeId = NodeId(0);
const OTHER: NodeId = NodeId(1);
/// Words of a message.
const TAG: usize = 0;
const SENDER: usize = 1;
const INCARNATION: usize = 2;
const FLIGHT: usize = 3;
const PLACE: usize = 4;
/// Of items, or the status of an answer.
const COUNT: usize = 5;
const REQUEST: u64 = 0x4a49_4e44_4f55_0001;
const ANSWER: u64 = 0x4a49_4e44_4f55_0002;
/// No test waits for as long, unless it fails.
const LIMIT: Duration = Duration::from_secs(120);
/// For tests whose peer is not to be lost by the time that passes.
const LONG: Duration = Duration::from_secs(60);

/// What a relay passes on in place of a frame's words: frames, as they are written.
type Alter = Box<dyn FnMut(Vec<u64>) -> Vec<Vec<u64>> + Send>;

fn node(node: NodeId, lost_after: Duration) -> Arc<ProcessFabric> {
    ProcessFabric::new(&ProcessOptions {
        maps_memory: false,
        lost_after,
        ..ProcessOptions::new(node)
    })
    .unwrap()
}

fn soon(fabric: &ProcessFabric) -> Interrupt<'static> {
    Interrupt::at(fabric.now() + LIMIT)
}

fn framed(words: Vec<u64>) -> Vec<u64> {
    [vec![words.len() as u64], words].concat()
}

/// The next frame's words; none after the connection ended.
fn read_frame(mut from: &TcpStream) -> Option<Vec<u64>> {
    let mut word = [0; 8];
    let mut next = || {
        from.read_exact(&mut word).ok()?;
        Some(u64::from_ne_bytes(word))
    };
    let length = next()?;
    (0..length).map(|_| next()).collect()
}

fn write_words(mut to: &TcpStream, words: &[u64]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    // Whoever reads may have given up.
    let _ = to.write_all(&bytes);
}

fn relay(from: TcpStream, to: TcpStream, mut alter: Alter) {
    std::thread::spawn(move || {
        while let Some(words) = read_frame(&from) {
            alter(words)
                .iter()
                .for_each(|frame| write_words(&to, frame));
        }
        for end in [from, to] {
            let _ = end.shutdown(Shutdown::Both);
        }
    });
}

/// Joins two nodes by a relay that alters what `one` sends, and what `other` does.
fn join_altered(one: &ProcessFabric, other: &ProcessFabric, alters: [Alter; 2]) {
    let (here, near) = connection();
    let (far, there) = connection();
    let [of_one, of_other] = alters;
    relay(near.try_clone().unwrap(), far.try_clone().unwrap(), of_one);
    relay(far, near, of_other);
    one.connect(OTHER, &other.address(), here).unwrap();
    other.connect(ONE, &one.address(), there).unwrap();
}

fn sound() -> Alter {
    Box::new(|words| vec![framed(words)])
}

/// Alters the first message with this tag that belongs to a batch.
fn once(tag: u64, alter: impl Fn(Vec<u64>) -> Vec<Vec<u64>> + Send + 'static) -> Alter {
    let mut is_done = false;
    Box::new(move |words| {
        if is_done || words[TAG] != tag || words[FLIGHT] == 0 {
            return vec![framed(words)];
        }
        is_done = true;
        alter(words)
    })
}

/// The same, by one bit of a word.
fn flip(tag: u64, word: usize, bit: u32) -> Alter {
    once(tag, move |mut words| {
        words[word] ^= 1 << bit;
        vec![framed(words)]
    })
}

/// A region of a node, and what names it.
fn offer(fabric: &ProcessFabric) -> (Region, Registration, MemoryKey) {
    let mut builder = RegionBuilder::new(4096);
    builder.as_mut_slice().fill(7);
    let region = builder.finish();
    let registration = fabric.register(&region).unwrap();
    let key = registration.key().clone();
    (region, registration, key)
}

/// Reads of the other node's memory.
fn read(fabric: &ProcessFabric, key: &MemoryKey) -> Result<(), FabricError> {
    let memory = fabric.open(key)?;
    let mut batch = Batch::new();
    for offset in [0, 64] {
        let _ = batch.read(&memory, offset, 16).unwrap();
    }
    fabric.complete(batch, &soon(fabric)).map(|_| ())
}

/// Both nodes lose each other, over a connection whose messages are altered so, and not as time passes. Then they
/// go on over a sound one.
fn both_lose(what: &str, lost_after: Duration, alters: [Alter; 2]) -> Loss {
    let (one, other) = (node(ONE, lost_after), node(OTHER, lost_after));
    let (_region, _registration, key) = offer(&other);
    join_altered(&one, &other, alters);
    let found = read(&one, &key);
    assert_eq!(found, Err(FabricError::PeerLost(OTHER)), "{what}");
    while other.loss(ONE).is_none() {
        std::thread::yield_now();
    }
    let losses = [one.loss(OTHER), other.loss(ONE)].map(Option::unwrap);
    let (here, there) = connection();
    one.connect(OTHER, &other.address(), here).unwrap();
    other.connect(ONE, &one.address(), there).unwrap();
    assert_eq!(one.loss(OTHER), None, "{what}");
    assert_eq!(read(&one, &key), Ok(()), "{what}");
    assert_eq!(read(&one, &key), Ok(()), "{what}");
    let is_nonsense = |loss: &&Loss| matches!(loss, Loss::Nonsense(_));
    let found = losses.iter().find(is_nonsense).unwrap_or(&losses[0]);
    *found
}

fn assert_nonsense(what: &str, alters: [Alter; 2]) {
    let loss = both_lose(what, LONG, alters);
    assert!(matches!(loss, Loss::Nonsense(_)), "{what}: {loss}");
}

#[test]
fn an_answer_with_an_altered_header_loses_its_peer_at_once() {
    for word in [TAG, SENDER, INCARNATION, FLIGHT, PLACE, COUNT] {
        for bit in [0, 3, 40] {
            let what = format!("word {word}, bit {bit}");
            assert_nonsense(&what, [sound(), flip(ANSWER, word, bit)]);
        }
    }
}

#[test]
fn a_request_with_an_altered_header_loses_its_peer_at_once() {
    for word in [TAG, SENDER, INCARNATION, FLIGHT, PLACE, COUNT] {
        for bit in [0, 1, 40] {
            let what = format!("word {word}, bit {bit}");
            assert_nonsense(&what, [flip(REQUEST, word, bit), sound()]);
        }
    }
}

#[test]
fn an_answer_of_another_length_loses_its_peer_at_once() {
    let cut = |length: usize| once(ANSWER, move |words| vec![framed(words[..length].to_vec())]);
    for length in [0, 1, 5, 9, 12] {
        assert_nonsense(&format!("cut to {length}"), [sound(), cut(length)]);
    }
    let longer = once(ANSWER, |words| vec![framed([words, vec![0]].concat())]);
    assert_nonsense("longer", [sound(), longer]);
    let length = once(ANSWER, |words| {
        let mut frame = framed(words);
        frame[0] ^= 1 << 63;
        vec![frame]
    });
    assert_nonsense("a length that cannot be", [sound(), length]);
}

#[test]
fn an_answer_that_comes_twice_loses_its_peer() {
    let twice = once(ANSWER, |words| vec![framed(words); 2]);
    let (one, other) = (node(ONE, LONG), node(OTHER, LONG));
    join_altered(&one, &other, [sound(), twice]);
    let _ = one.probe(OTHER, &soon(&one));
    while one.loss(OTHER).is_none() || other.loss(ONE).is_none() {
        std::thread::yield_now();
    }
    assert!(matches!(one.loss(OTHER), Some(Loss::Nonsense(_))));
}

/// The peer answers the question whether it is there: nothing but that proves that another answer is missing.
#[test]
fn a_message_or_an_answer_that_never_comes_loses_its_peer_though_that_is_alive() {
    let lost_after = Duration::from_secs(8);
    let drop_first = |tag| once(tag, |_| Vec::new());
    for (what, alters) in [
        ("no answer", [sound(), drop_first(ANSWER)]),
        ("no request", [drop_first(REQUEST), sound()]),
    ] {
        let loss = both_lose(what, lost_after, alters);
        assert!(matches!(loss, Loss::Nonsense(_)), "{what}: {loss}");
    }
}

/// What follows is taken for the rest of the message, however much that is.
#[test]
fn a_message_that_says_to_be_longer_than_it_is_loses_its_peer() {
    let longer = |tag| {
        once(tag, |words| {
            let mut frame = framed(words);
            frame[0] += 1 << 12;
            vec![frame]
        })
    };
    let lost_after = Duration::from_millis(400);
    for alters in [[sound(), longer(ANSWER)], [longer(REQUEST), sound()]] {
        let loss = both_lose("longer", lost_after, alters);
        assert!(matches!(loss, Loss::Silent | Loss::Unanswering), "{loss}");
    }
}

/// The answer of the other node to a request without data.
fn answer_to(request: &[u64]) -> Vec<u64> {
    let (flight, place) = (request[FLIGHT], request[PLACE]);
    framed(vec![ANSWER, OTHER.0.into(), 0, flight, place, 0, 0, 0, 0])
}

/// A node whose peer is this test: its end of the connection.
fn with_peer_by_hand(lost_after: Duration) -> (Arc<ProcessFabric>, Arc<ProcessFabric>, TcpStream) {
    let (one, other) = (node(ONE, lost_after), node(OTHER, LONG));
    let (here, there) = connection();
    one.connect(OTHER, &other.address(), here).unwrap();
    let hello = read_frame(&there).unwrap();
    write_words(&there, &answer_to(&hello));
    (one, other, there)
}

#[test]
fn a_late_answer_to_an_abandoned_batch_loses_nobody() {
    let (one, _other, there) = with_peer_by_hand(LONG);
    // Abandoned before there is an answer.
    let asked = AtomicU32::new(0);
    let is_cancelled = || asked.fetch_add(1, Ordering::SeqCst) > 2;
    let cancelled = one.probe(OTHER, &Interrupt::never().or_if(&is_cancelled));
    assert_eq!(cancelled, Err(FabricError::Cancelled));
    let late = read_frame(&there).unwrap();
    std::thread::scope(|scope| {
        let probe = scope.spawn(|| one.probe(OTHER, &soon(&one)));
        let next = read_frame(&there).unwrap();
        assert!(next[FLIGHT] > late[FLIGHT]);
        write_words(&there, &answer_to(&late));
        write_words(&there, &answer_to(&next));
        assert_eq!(probe.join().unwrap(), Ok(()));
    });
    assert_eq!(one.loss(OTHER), None);
}

#[test]
fn a_peer_that_asks_and_never_answers_is_lost() {
    let (one, other, there) = with_peer_by_hand(Duration::from_millis(400));
    let incarnation = u64::from_le_bytes(other.address()[4..12].try_into().unwrap());
    let hello = framed(vec![REQUEST, OTHER.0.into(), incarnation, 0, 0, 0]);
    std::thread::scope(|scope| {
        let probe = scope.spawn(|| one.probe(OTHER, &soon(&one)));
        // It asks again when it has its answer, and drops the questions of the other one.
        write_words(&there, &hello);
        while let Some(words) = read_frame(&there) {
            if words[TAG] == ANSWER {
                write_words(&there, &hello);
            }
        }
        let lost = Err(FabricError::PeerLost(OTHER));
        assert_eq!(probe.join().unwrap(), lost);
    });
    assert_eq!(one.loss(OTHER), Some(Loss::Unanswering));
}

#[test]
fn an_answer_to_a_batch_that_was_never_begun_loses_its_peer() {
    let (one, _other, there) = with_peer_by_hand(LONG);
    write_words(&there, &answer_to(&[0, 0, 0, u64::MAX, 0]));
    while one.loss(OTHER).is_none() {
        std::thread::yield_now();
    }
    assert!(matches!(one.loss(OTHER), Some(Loss::Nonsense(_))));
    // The peer sees it.
    while read_frame(&there).is_some() {}
}

#[test]
fn who_is_given_up_loses_the_one_who_did() {
    let (one, other) = (node(ONE, LONG), node(OTHER, LONG));
    join_altered(&one, &other, [sound(), sound()]);
    assert_eq!(other.probe(ONE, &soon(&other)), Ok(()));
    one.disconnect(OTHER);
    assert_eq!(one.loss(OTHER), Some(Loss::GivenUp));
    let lost = |node| Err(FabricError::PeerLost(node));
    assert_eq!(one.probe(OTHER, &soon(&one)), lost(OTHER));
    while other.loss(ONE).is_none() {
        std::thread::yield_now();
    }
    assert_eq!(other.probe(ONE, &soon(&other)), lost(ONE));
}
