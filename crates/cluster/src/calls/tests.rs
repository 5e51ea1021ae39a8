//! Is a shard that is asked by messages the same as the shard itself, and what becomes of those who ask
//! when it is slow, or lost?

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use jindou_exec::GraphSource;
use jindou_fabric::local::LocalNetwork;
use jindou_fabric::remote::{Fabric, Interrupt, NodeId};
use jindou_model::{
    Cursor, Direction, GraphRef, IdRanges, Lists, Membership, Pattern, Precision, PredicateId,
    ShardId, TermId, Unavailable,
};
use jindou_partition::Shards;

use super::connection::MOST_LEFT;
use super::naive::{Gate, Naive, Quads};
use super::wire::number_of_request;
use super::words::{
    Answer, AskedGraph, AskedList, Call, MOST_QUADS, MOST_ROWS, Quad, Refusal, Request,
    RequestNumber, ServedId,
};
use super::{
    AskedShards, Connection, Link, LinkEnd, LinkOptions, Listening, ServedShards, ShardServer,
};
use crate::Sharded;
use crate::one_sided::ReadCounts;

const SHARD: ShardId = ShardId(1);
/// Long enough that no machine is as slow.
const LONG: Duration = Duration::from_secs(60);

/// A node that has a shard, and one that asks for it.
struct World {
    network: LocalNetwork,
    server: Arc<ShardServer>,
    served: Arc<ServedShards>,
    direct: Arc<Naive>,
    connection: Arc<Connection>,
    listening: Listening,
    counts: Arc<ReadCounts>,
}

impl World {
    fn new(quads: Quads, patience: Duration) -> Self {
        let options = LinkOptions {
            patience,
            ..LinkOptions::default()
        };
        Self::with_options(quads, &options)
    }

    fn with_options(quads: Quads, options: &LinkOptions) -> Self {
        let network = LocalNetwork::new(2);
        let server = ShardServer::new(Shards::new(2).unwrap());
        let direct = Arc::new(Naive::new(quads));
        let served = server.serve(of_two([None, Some(&direct)]));
        let (here, there): (Arc<dyn Fabric>, Arc<dyn Fabric>) =
            (network.fabric(0), network.fabric(1));
        let (one, other) = LinkEnd::pair(here, there, options).unwrap();
        let listening = Listening::start(Arc::clone(&server), other).unwrap();
        let counts = Arc::default();
        let connection = Connection::new(one, &counts);
        Self {
            network,
            server,
            served,
            direct,
            connection: Arc::new(connection),
            listening,
            counts,
        }
    }

    fn shard(&self, shard: ShardId) -> AskedShards {
        let named = (Shards::new(2).unwrap(), vec![shard], self.served.id());
        let (catalogue, kept) = (Arc::clone(&self.direct), Arc::clone(&self.served));
        AskedShards::new(named, &self.connection, catalogue, kept)
    }
}

/// A graph in two shards that has the rows of some.
fn of_two(rows: [Option<&Arc<Naive>>; 2]) -> Sharded {
    let nothing = Arc::new(Naive::new(Quads::new()));
    let rows = rows.map(|rows| Some(Arc::clone(rows?) as Arc<dyn GraphSource>));
    Sharded::new(
        Shards::new(2).unwrap(),
        Arc::clone(&nothing) as _,
        nothing,
        rows.into(),
    )
}

/// Quads of subjects that the shard has, a few of which have many objects.
fn quads(subjects: u64, objects: u64) -> Quads {
    let mut quads = BTreeSet::new();
    for subject in 0..subjects {
        let own = TermId::vertex(2 * subject + 1);
        let of_subject = if subject % 10 == 3 {
            objects
        } else {
            subject % 4
        };
        for object in 0..of_subject {
            let (predicate, graph) = (1 + object as u32 % 2, object % 3);
            let graph = match graph {
                0 => TermId::NONE,
                graph => TermId::vertex(1000 + graph),
            };
            let object = match object % 5 {
                0 => TermId::literal(object),
                _ => TermId::vertex(object),
            };
            quads.insert((own, PredicateId(predicate), object, graph));
        }
    }
    quads
}

fn list(keys: &[TermId]) -> Lists<'_> {
    Lists {
        predicate: PredicateId(1),
        direction: Direction::Out,
        keys,
    }
}

fn all() -> Pattern {
    Pattern {
        subject: None,
        predicate: None,
        object: None,
    }
}

/// All that a list holds, row by row.
fn expanded(
    source: &dyn GraphSource,
    graph: GraphRef<'_>,
    lists: &[Lists<'_>],
    allowed: Option<&IdRanges>,
    budget: usize,
) -> Vec<(u32, TermId)> {
    let mut cursor = Cursor::default();
    let (mut rows, mut out, mut found) = (Vec::new(), Vec::new(), Vec::new());
    while cursor.key < lists[0].keys.len() {
        rows.clear();
        out.clear();
        let (rows, out) = (&mut rows, &mut out);
        (source.expand(graph, lists, &mut cursor, allowed, budget, rows, out)).unwrap();
        found.extend(rows.iter().copied().zip(out.iter().copied()));
    }
    found
}

fn visited(source: &dyn GraphSource, pattern: &Pattern, graph: Option<GraphRef<'_>>) -> Vec<Quad> {
    let mut quads = Vec::new();
    let mut visit = |s, p, o, g| {
        quads.push((s, p, o, g));
        ControlFlow::Continue(())
    };
    let flow = match graph {
        Some(graph) => source.for_each_match(pattern, graph, &mut visit),
        None => source.for_each_quad(pattern, &mut visit),
    };
    assert_eq!(flow, Ok(ControlFlow::Continue(())));
    let count = quads.len();
    quads.sort_unstable();
    quads.dedup();
    assert_eq!(quads.len(), count, "nothing is visited twice");
    quads
}

/// What a call answers in the end.
fn until_answered<T>(ask: impl Fn() -> Result<T, Unavailable>) -> Result<T, Unavailable> {
    loop {
        match ask() {
            Err(Unavailable::NotNow) => thread::yield_now(),
            answer => return answer,
        }
    }
}

#[test]
fn calls_of_more_rows_than_a_message_has_are_answered_whole() {
    let world = World::new(quads(300, 70), LONG);
    let (asked, direct) = (world.shard(SHARD), &*world.direct);
    let keys: Vec<TermId> = (0..3 * MOST_ROWS as u64 + 7)
        .map(|n| TermId::vertex(n % 601))
        .collect();
    let to: Vec<TermId> = (0..keys.len() as u64)
        .map(|n| TermId::vertex(n % 9))
        .collect();
    let graphs: Vec<TermId> = (0..keys.len() as u64)
        .map(|n| TermId::vertex(1000 + n / 50 % 3))
        .collect();
    let mut many = IdRanges::new();
    many.extend_sorted((0..20_000).map(|n| TermId::vertex(2 * n).raw()));
    let list = list(&keys);
    for graph in [
        GraphRef::Default,
        GraphRef::Named,
        GraphRef::Union,
        GraphRef::One(TermId::vertex(1001)),
        GraphRef::Some(&[TermId::vertex(1001), TermId::vertex(1002)]),
        GraphRef::Each(&graphs),
    ] {
        for allowed in [None, Some(&many)] {
            let found = |source: &dyn GraphSource| {
                let found = expanded(source, graph, &[list, list], allowed, 1 << 20);
                let mut degrees = vec![7];
                (source.degrees(graph, &list, allowed, &mut degrees)).unwrap();
                (found, degrees)
            };
            assert!(found(&asked) == found(direct), "{graph:?}");
        }
        let contained = |source: &dyn GraphSource| {
            let mut rows = vec![7];
            source.contains(graph, &list, &to, &mut rows).unwrap();
            rows
        };
        assert!(contained(&asked) == contained(direct), "{graph:?}");
    }
    let graphs = |source: &dyn GraphSource| {
        let (mut rows, mut graphs) = (Vec::new(), Vec::new());
        (source.graphs_of(&list, &to, &mut rows, &mut graphs)).unwrap();
        (rows, graphs)
    };
    assert!(graphs(&asked) == graphs(direct));
    assert!(!graphs(direct).0.is_empty());
}

#[test]
fn sets_of_more_ranges_than_a_message_has_come_whole() {
    let subjects = 70_000;
    let quads = (0..subjects).map(|n| {
        let subject = TermId::vertex(4 * n + 1);
        (subject, PredicateId(1), TermId::vertex(0), TermId::NONE)
    });
    let world = World::new(quads.collect(), LONG);
    let (asked, direct) = (world.shard(SHARD), &*world.direct);
    let mut within = IdRanges::new();
    within.extend_sorted((0..30_000).map(|n| TermId::vertex(8 * n + 1).raw()));
    for within in [None, Some(&within)] {
        let members = |source: &dyn GraphSource| {
            let has = [Membership::Has(PredicateId(1), Direction::Out)];
            (source.members(GraphRef::Default, &has, Precision::Exact, within)).unwrap()
        };
        assert!(members(&asked) == members(direct));
    }
    // Two requests each time, and an answer to each.
    assert_eq!(world.counts.sum().messages, 8);
}

#[test]
fn pages_are_read_once_each_and_as_many_as_are_wanted() {
    let count = 3 * MOST_QUADS as u64;
    let world = World::new(quads(70, count / 7), LONG);
    let (asked, direct) = (world.shard(SHARD), &*world.direct);
    let hub = TermId::vertex(2 * 13 + 1);
    let patterns = [
        all(),
        Pattern {
            predicate: Some(PredicateId(1)),
            ..all()
        },
        Pattern {
            predicate: Some(PredicateId(2)),
            subject: Some(hub),
            ..all()
        },
        Pattern {
            object: Some(TermId::vertex(2)),
            ..all()
        },
    ];
    for pattern in &patterns {
        for graph in [
            Some(GraphRef::Default),
            Some(GraphRef::Union),
            Some(GraphRef::One(TermId::vertex(1002))),
            None,
        ] {
            let (found, expected) = (
                visited(&asked, pattern, graph),
                visited(direct, pattern, graph),
            );
            assert!(found == expected, "{pattern:?} {graph:?}");
        }
    }
    // A visitor that has enough asks for no more.
    let before = world.counts.sum();
    let mut left = 300;
    let flow = asked.for_each_quad(&patterns[1], &mut |_, _, _, _| {
        left -= 1;
        match left {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    });
    assert_eq!(flow, Ok(ControlFlow::Break(())));
    assert_eq!(world.counts.sum().since(before).messages, 4, "two pages");
}

#[test]
fn reading_all_of_a_predicate_costs_its_edges_and_no_more() {
    let world = World::new(quads(70, MOST_QUADS as u64), LONG);
    let pattern = Pattern {
        predicate: Some(PredicateId(1)),
        ..all()
    };
    let edges = visited(&world.shard(SHARD), &pattern, Some(GraphRef::Default)).len();
    assert!(edges > MOST_QUADS);
    let looked_at = world.direct.looked_at.load(Ordering::Relaxed);
    assert!(
        looked_at < 2 * edges,
        "{looked_at} edges were looked at for {edges}"
    );
}

#[test]
fn a_shard_that_is_not_there_is_refused_and_a_lost_one_never_answers() {
    let world = World::new(quads(10, 5), LONG);
    let keys = [TermId::vertex(1)];
    let places = |shard: &AskedShards| shard.places(GraphRef::Default, &list(&keys));
    assert_eq!(places(&world.shard(SHARD)), Ok(0));
    // Shard 0 is another node's, and there is no shard 9.
    for shard in [ShardId(0), ShardId(9)] {
        let lost = Err(Unavailable::Never(shard));
        assert_eq!(places(&world.shard(shard)), lost);
    }
    let kept_by_a_reader = world.shard(SHARD);
    let (server, id) = (Arc::clone(&world.server), world.served.id());
    drop(world.served);
    assert_eq!(server.snapshots(), 1);
    assert_eq!(places(&kept_by_a_reader), Ok(0));
    drop(kept_by_a_reader);
    assert_eq!(server.snapshots(), 0);
    let kept = Arc::new(());
    let gone = (Shards::new(2).unwrap(), vec![SHARD], id);
    let gone = AskedShards::new(gone, &world.connection, world.direct, kept);
    assert_eq!(places(&gone), Err(Unavailable::Never(SHARD)));
}

#[test]
fn bytes_that_are_no_request_have_an_answer_and_harm_nobody() {
    let world = World::new(quads(10, 5), LONG);
    let keys = [TermId::vertex(7), TermId::NONE, TermId::literal(9)];
    let asked = list(&keys);
    let request = Request {
        number: RequestNumber(77),
        served: world.served.id(),
        shards: Cow::Borrowed(&[SHARD]),
        call: Call::Expand {
            graph: AskedGraph::of_rows(GraphRef::Default, 0..3),
            lists: vec![AskedList::of_rows(&asked, 0..3)],
            offset: 0,
            allowed: None,
            budget: 100,
        },
    };
    let bytes = request.encode();
    let whole = Answer::decode(&world.server.answer(&bytes)).unwrap();
    assert!(matches!(whole, Answer::Expanded { .. }), "{whole:?}");
    let mut refused = 0;
    for place in 0..bytes.len() {
        let prefix = world.server.answer(&bytes[..place]);
        let malformed = Ok(Answer::Refused(Refusal::Malformed));
        assert_eq!(Answer::decode(&prefix), malformed);
        for flipped in [0x01, 0x40, 0xff] {
            let mut damaged = bytes.clone();
            damaged[place] ^= flipped;
            let answer = Answer::decode(&world.server.answer(&damaged)).unwrap();
            refused += usize::from(matches!(answer, Answer::Refused(_)));
        }
    }
    assert!(refused > 50, "{refused}");
}

#[test]
fn a_shard_that_cannot_be_read_fails_its_calls_and_no_others() {
    let world = World::new(quads(10, 5), LONG);
    let shard = world.shard(SHARD);
    let keys = [TermId::vertex(1)];
    world.direct.is_broken.store(true, Ordering::SeqCst);
    let never = Err(Unavailable::Never(SHARD));
    assert_eq!(shard.places(GraphRef::Default, &list(&keys)), never);
    world.direct.is_broken.store(false, Ordering::SeqCst);
    assert_eq!(shard.places(GraphRef::Default, &list(&keys)), Ok(0));
}

#[test]
fn a_slow_answer_is_not_there_now_and_right_when_it_comes() {
    let mut quads = quads(20, 50);
    quads.insert((
        TermId::vertex(1),
        PredicateId(1),
        TermId::vertex(5),
        TermId::NONE,
    ));
    let world = World::new(quads, Duration::from_millis(1));
    let shard = world.shard(SHARD);
    let keys = [TermId::vertex(1)];
    let ask = || shard.places(GraphRef::Default, &list(&keys));
    let gate = Gate::closed(&world.direct);
    for _ in 0..5 {
        assert_eq!(ask(), Err(Unavailable::NotNow));
    }
    // Whoever asks again waits for the same answer.
    let before = world.counts.sum().messages;
    assert_eq!(before, 1);
    drop(gate);
    assert_eq!(until_answered(ask), Ok(1));
    assert_eq!(world.counts.sum().messages, 2);
}

#[test]
fn many_that_ask_again_wait_for_the_answers_of_their_first_requests() {
    let world = World::new(quads(20, 50), Duration::from_millis(1));
    let shard = world.shard(SHARD);
    let gate = Gate::closed(&world.direct);
    let ask = |number| {
        let keys = [TermId::vertex(number)];
        shard.places(GraphRef::Default, &list(&keys))
    };
    for _ in 0..2 {
        (0..40).for_each(|number| assert_eq!(ask(number), Err(Unavailable::NotNow)));
        assert_eq!(world.counts.sum().messages, 40);
    }
    drop(gate);
    for number in 0..40 {
        until_answered(|| ask(number)).unwrap();
    }
    assert_eq!(world.counts.sum().messages, 80);
}

#[test]
fn late_answers_of_calls_that_nobody_repeats_are_dropped() {
    let world = World::new(quads(20, 50), Duration::ZERO);
    let shard = world.shard(SHARD);
    let gate = Gate::closed(&world.direct);
    for number in 0..MOST_LEFT as u64 + 100 {
        let keys = [TermId::vertex(number)];
        let now = shard.places(GraphRef::Default, &list(&keys));
        assert_eq!(now, Err(Unavailable::NotNow));
    }
    drop(gate);
    let keys = [TermId::vertex(2 * 13 + 1)];
    let answer = until_answered(|| shard.places(GraphRef::Default, &list(&keys)));
    let held = world.connection.remembered();
    assert!(held <= MOST_LEFT, "{held} requests are remembered");
    assert_eq!(answer, world.direct.places(GraphRef::Default, &list(&keys)));
}

#[test]
fn many_threads_ask_over_one_small_link() {
    let options = LinkOptions {
        ring_bytes: 4 << 10,
        patience: LONG,
        ..LinkOptions::default()
    };
    let world = World::with_options(quads(200, 900), &options);
    let shard = world.shard(SHARD);
    let keys: Vec<TermId> = (0..400).map(TermId::vertex).collect();
    thread::scope(|scope| {
        for thread in 0..8 {
            let (shard, direct, keys) = (&shard, &world.direct, &keys[thread * 40..]);
            scope.spawn(move || {
                for round in 0..10 {
                    let keys = &keys[..1 + round * 7];
                    let found = |source: &dyn GraphSource| {
                        let lists = [list(keys)];
                        expanded(source, GraphRef::Union, &lists, None, 1000)
                    };
                    assert!(found(shard) == found(&**direct));
                }
            });
        }
    });
}

#[test]
fn a_link_over_one_end_asks_whoever_listens_at_the_other() {
    let network = LocalNetwork::new(2);
    let server = ShardServer::new(Shards::new(2).unwrap());
    let direct = Arc::new(Naive::new(quads(20, 50)));
    let served = server.serve(of_two([None, Some(&direct)]));
    let options = LinkOptions {
        patience: LONG,
        ..LinkOptions::default()
    };
    let (one, other) = LinkEnd::pair(network.fabric(0), network.fabric(1), &options).unwrap();
    let listening = Listening::start(server, other).unwrap();
    let link = Arc::new(Link::over(one, &Arc::default()));
    let asked = (Shards::new(2).unwrap(), vec![SHARD], served.id());
    let shard = link.shards(asked, Arc::clone(&direct) as _, served);
    let keys = [TermId::vertex(2 * 13 + 1)];
    let ask = || shard.places(GraphRef::Default, &list(&keys));
    assert_eq!(ask(), direct.places(GraphRef::Default, &list(&keys)));
    drop(listening);
    assert_eq!(ask(), Err(Unavailable::Never(SHARD)));
}

#[test]
fn a_lost_node_never_answers_whoever_waits_and_whoever_asks_later() {
    let world = World::new(quads(20, 50), Duration::from_millis(200));
    let shard = world.shard(SHARD);
    let keys = [TermId::vertex(1)];
    let ask = || shard.places(GraphRef::Default, &list(&keys));
    let never = Err(Unavailable::Never(SHARD));
    let gate = Gate::closed(&world.direct);
    thread::scope(|scope| {
        let answer = || until_answered(ask);
        let waiting: Vec<_> = (0..3).map(|_| scope.spawn(answer)).collect();
        gate.wait_for_a_call();
        world.network.kill(NodeId(1));
        for thread in waiting {
            assert_eq!(thread.join().unwrap(), never);
        }
    });
    assert_eq!(ask(), never);
    drop(gate);
    // The server's thread ends, too: its node is dead.
    drop(world.listening);
}

#[test]
fn a_node_that_dies_while_it_asks_gets_never_and_its_server_ends() {
    let options = LinkOptions {
        probe_every: Duration::from_millis(5),
        patience: LONG,
        ..LinkOptions::default()
    };
    let world = World::with_options(quads(20, 50), &options);
    let shard = world.shard(SHARD);
    let keys = [TermId::vertex(1)];
    assert_eq!(shard.places(GraphRef::Default, &list(&keys)), Ok(0));
    world.network.kill(NodeId(0));
    let never = Err(Unavailable::Never(SHARD));
    assert_eq!(shard.places(GraphRef::Default, &list(&keys)), never);
    while !world.listening.is_over() {
        thread::yield_now();
    }
}

#[test]
fn a_server_that_stops_never_answers_again() {
    let world = World::new(quads(20, 50), LONG);
    let shard = world.shard(SHARD);
    let keys = [TermId::vertex(1)];
    drop(world.listening);
    let never = Err(Unavailable::Never(SHARD));
    assert_eq!(shard.places(GraphRef::Default, &list(&keys)), never);
}

/// What would have been the answer will not come, so nobody is to wait for it.
#[test]
fn an_answer_that_is_not_the_next_one_due_loses_the_link() {
    let places = |number| Answer::Places(1).encode(RequestNumber(number));
    let answers = [places(0), places(2), places(u64::MAX), b"JNDA".to_vec()];
    for answer in answers {
        let network = LocalNetwork::new(2);
        let options = LinkOptions {
            patience: LONG,
            ..LinkOptions::default()
        };
        let pair = LinkEnd::pair(network.fabric(0), network.fabric(1), &options);
        let (one, mut other) = pair.unwrap();
        let direct = Arc::new(Naive::new(quads(20, 50)));
        let link = Arc::new(Link::over(one, &Arc::default()));
        let asked = (Shards::new(2).unwrap(), vec![SHARD], ServedId(1));
        let shard = link.shards(asked, direct, Arc::new(()));
        let keys = [TermId::vertex(1)];
        let ask = || shard.places(GraphRef::Default, &list(&keys));
        let never = Err(Unavailable::Never(SHARD));
        thread::scope(|scope| {
            let asked = scope.spawn(ask);
            let request = other.receiver.receive(&Interrupt::never()).unwrap();
            assert_eq!(number_of_request(&request).unwrap(), RequestNumber(1));
            other.sender.send(&answer, &Interrupt::never()).unwrap();
            assert_eq!(asked.join().unwrap(), never);
        });
        assert_eq!(ask(), never);
    }
}

#[test]
fn a_source_that_is_not_ready_in_the_middle_of_a_page_is_asked_on() {
    let world = World::new(quads(300, 3000), LONG);
    let pattern = Pattern {
        predicate: Some(PredicateId(1)),
        ..all()
    };
    let expected = visited(&*world.direct, &pattern, Some(GraphRef::Union));
    let shard = world.shard(SHARD);
    for every in 3..7 {
        world.direct.unready_every.store(every, Ordering::SeqCst);
        let found = loop {
            let mut found = Vec::new();
            let flow = shard.for_each_match(&pattern, GraphRef::Union, &mut |s, p, o, g| {
                found.push((s, p, o, g));
                ControlFlow::Continue(())
            });
            match flow {
                Err(why) => {
                    assert_eq!(why, Unavailable::NotNow);
                    assert!(
                        found.is_empty(),
                        "it is too late to say that it is not ready"
                    );
                }
                Ok(flow) => {
                    assert!(flow.is_continue());
                    break found;
                }
            }
        };
        assert_eq!(found.len(), expected.len());
        assert!(found.into_iter().collect::<BTreeSet<_>>() == expected.iter().copied().collect());
    }
}
