//! Is a dictionary that is dealt to nodes the same as the whole one, how often does it ask, and what becomes of
//! those who read it when a node is slow, or lost?

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use jindou_fabric::local::LocalNetwork;
use jindou_fabric::remote::Fabric;
use jindou_model::TermKind;
use jindou_partition::Shards;

use super::*;
use crate::calls::naive::without_rows;
use crate::calls::{Link, LinkOptions, ServedShards, ShardServer};
use crate::one_sided::ReadCounts;

const NODES: u32 = 3;
const VERTICES: u64 = 900;
const LITERALS: u64 = 300;
/// Long enough that no machine is as slow.
const LONG: Duration = Duration::from_secs(60);

/// A dictionary, or the part of it that a node has.
struct Naive {
    part: Option<(ShardMap, NodeId)>,
    is_late: AtomicBool,
    asked: AtomicUsize,
}

fn key_of(id: TermId) -> Vec<u8> {
    let number = id.number();
    let text = match number % 50 {
        7 => "x".repeat(2_000 + number as usize),
        of_many => "y".repeat(of_many as usize),
    };
    match id.kind() {
        TermKind::Literal => format!("{number} {text}\0").into_bytes(),
        _ => format!("http://e/{text}/{number}").into_bytes(),
    }
}

impl Naive {
    fn new(part: Option<(ShardMap, NodeId)>) -> Arc<Self> {
        Arc::new(Self {
            part,
            is_late: AtomicBool::new(false),
            asked: AtomicUsize::new(0),
        })
    }

    fn answer(&self) -> Result<(), Unavailable> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        match self.is_late.load(Ordering::SeqCst) {
            true => Err(Unavailable::NotNow),
            false => Ok(()),
        }
    }
}

/// The whole dictionary.
impl TermSource for Naive {
    fn epoch(&self) -> IdEpoch {
        IdEpoch(1)
    }

    fn has(&self, id: TermId) -> bool {
        let most = match id.kind() {
            TermKind::Literal => LITERALS,
            _ => VERTICES,
        };
        id.number() < most
    }

    fn push_key(&self, id: TermId, key: &mut Vec<u8>) -> Result<(), Unavailable> {
        key.extend(key_of(id));
        Ok(())
    }

    fn lookup(&self, key: &[u8], literal: bool) -> Result<Option<TermId>, Unavailable> {
        Ok(all_terms(literal).find(|id| key_of(*id) == key))
    }
}

fn all_terms(literal: bool) -> Box<dyn Iterator<Item = TermId>> {
    match literal {
        true => Box::new((0..LITERALS).map(TermId::literal)),
        false => Box::new((0..VERTICES).map(TermId::vertex)),
    }
}

/// Every node knows the names of the first ones.
const NAMED: u64 = 24;

impl TermPart for Naive {
    fn epoch(&self) -> IdEpoch {
        IdEpoch(1)
    }

    fn has(&self, id: TermId) -> bool {
        TermSource::has(self, id)
    }

    fn has_key(&self, id: TermId) -> bool {
        let is_named = id.kind() == TermKind::Vertex && id.number() < NAMED;
        let part = self.part.as_ref();
        is_named || part.is_none_or(|(map, node)| map.node_of(id) == *node)
    }

    fn push_keys(
        &self,
        ids: &[TermId],
        most_bytes: usize,
        keys: &mut Keys,
    ) -> Result<usize, Unavailable> {
        self.answer()?;
        let other = ids.iter().find(|id| !self.has_key(**id));
        assert_eq!(other, None, "another node's");
        TermSource::push_keys(self, ids, most_bytes, keys)
    }

    /// Of those of one hash in two, and of others that are not there, a few more.
    fn push_candidates(
        &self,
        hash: u64,
        literal: bool,
        ids: &mut Vec<TermId>,
    ) -> Result<(), Unavailable> {
        self.answer()?;
        if let Some((map, node)) = &self.part {
            let holder = map.holder(map.shards().of_hash(hash));
            assert_eq!(holder, *node, "{hash} is another node's");
        }
        let of_hash = |id: &TermId| {
            let found = hash_of_key(&key_of(*id));
            found == hash || (hash.is_multiple_of(2) && found % 100 == hash % 100)
        };
        ids.extend(all_terms(literal).filter(of_hash));
        Ok(())
    }

    fn find_name(&self, key: &[u8]) -> Option<TermId> {
        let mut named = (0..NAMED).map(TermId::vertex);
        named.find(|id| key_of(*id) == key)
    }
}

struct World {
    network: LocalNetwork,
    parts: Vec<Arc<Naive>>,
    /// As each node sees it.
    dealt: Vec<DealtTerms>,
    counts: Arc<ReadCounts>,
    _served: Vec<Arc<ServedShards>>,
}

impl World {
    fn new(patience: Duration, met_bytes: usize) -> Self {
        let shards = Shards::new(8).unwrap();
        let map = ShardMap::dealt(shards, NODES).unwrap();
        let network = LocalNetwork::new(NODES);
        let fabric = |node: NodeId| network.fabric(node.0) as Arc<dyn Fabric>;
        let servers: Vec<_> = map.nodes().map(|_| ShardServer::new(shards)).collect();
        let part = |node| Naive::new(Some((map.clone(), node)));
        let parts: Vec<Arc<Naive>> = map.nodes().map(part).collect();
        let rows = || without_rows(shards);
        let served = servers.iter().zip(&parts);
        let served = served.map(|(server, part)| {
            server.serve_with_terms(rows(), Arc::clone(part) as Arc<dyn TermPart>)
        });
        let served: Vec<Arc<ServedShards>> = served.collect();
        let counts = Arc::default();
        let options = LinkOptions {
            patience,
            ..LinkOptions::default()
        };
        let asked = |here: NodeId, there: NodeId| {
            let server = &servers[there.0 as usize];
            let (asking, answering) = (fabric(here), fabric(there));
            let link = Link::between(&asking, &answering, server, &counts, &options).unwrap();
            let served = &served[there.0 as usize];
            Arc::new(link).terms(served.id(), Arc::clone(served) as _)
        };
        let dealt = map.nodes().map(|here| {
            let others = map.nodes();
            let others = others.map(|there| (there != here).then(|| asked(here, there)));
            let own = Arc::clone(&parts[here.0 as usize]) as Arc<dyn TermPart>;
            DealtTerms::new((&map, here), own, others.collect(), met_bytes, None)
        });
        Self {
            dealt: dealt.collect(),
            network,
            parts,
            counts,
            _served: served,
        }
    }

    fn calls(&self) -> u64 {
        self.counts.sum().calls
    }
}

/// A sequence that follows from a seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % end
    }

    fn id(&mut self) -> TermId {
        match self.below(4) {
            0 => TermId::literal(self.below(LITERALS)),
            _ => TermId::vertex(self.below(VERTICES)),
        }
    }
}

/// All keys of some terms, read as executors do.
fn all_keys(terms: &dyn TermSource, ids: &[TermId], most: usize) -> Vec<(Vec<u8>, KeyKind)> {
    let (mut all, mut done) = (Vec::new(), 0);
    while done < ids.len() {
        let mut keys = Keys::default();
        let added = terms.push_keys(&ids[done..], most, &mut keys).unwrap();
        assert_eq!(added, keys.len());
        assert!(added > 0);
        all.extend(keys.iter().map(|(key, kind)| (key.to_vec(), kind)));
        done += added;
    }
    all
}

#[test]
fn dealt_terms_are_those_of_the_whole_dictionary() {
    let whole = Naive::new(None);
    for seed in 0..12 {
        let mut numbers = Numbers(seed);
        let met_bytes = [0, 3_000, 1 << 20][(seed % 3) as usize];
        let world = World::new(LONG, met_bytes);
        for round in 0..12 {
            let dealt = &world.dealt[numbers.below(u64::from(NODES)) as usize];
            let count = [0, 1, 3, 40, 400][numbers.below(5) as usize];
            let ids: Vec<TermId> = (0..count).map(|_| numbers.id()).collect();
            let most = [1, 500, 20_000, usize::MAX][numbers.below(4) as usize];
            let at = format!("seed {seed}, round {round}");
            assert_eq!(
                all_keys(dealt, &ids, most),
                all_keys(&*whole, &ids, most),
                "{at}"
            );
            let mut keys = Keys::default();
            for id in &ids {
                match numbers.below(5) {
                    0 => keys.push(format!("none {}", id.number()).as_bytes(), KeyKind::Node),
                    1 => keys.push(b"", KeyKind::None),
                    _ => keys.push(&key_of(*id), KeyKind::of(*id)),
                }
            }
            let (mut found, mut expected) = (vec![None], vec![None]);
            dealt.lookup_keys(&keys, &mut found).unwrap();
            whole.lookup_keys(&keys, &mut expected).unwrap();
            assert_eq!(found, expected, "{at}");
            for id in ids.iter().take(3) {
                let mut key = b"before".to_vec();
                dealt.push_key(*id, &mut key).unwrap();
                assert_eq!(key, [b"before", &*key_of(*id)].concat(), "{at}");
                let literal = id.kind() == TermKind::Literal;
                assert_eq!(dealt.lookup(&key_of(*id), literal), Ok(Some(*id)), "{at}");
            }
        }
    }
}

#[test]
fn each_node_is_asked_once_for_a_batch_and_not_again_for_what_was_met() {
    let world = World::new(LONG, 1 << 20);
    // Of numbers of which none has a long text.
    let ids: Vec<TermId> = (0..VERTICES)
        .filter(|n| n % 50 != 7)
        .map(TermId::vertex)
        .collect();
    let twice: Vec<TermId> = ids.iter().chain(&ids).copied().collect();
    let mut keys = Keys::default();
    let added = world.dealt[0].push_keys(&twice, usize::MAX, &mut keys);
    assert_eq!(added, Ok(twice.len()));
    assert_eq!(world.calls(), 2, "one message to each other node");
    let again = world.dealt[0].push_keys(&twice, usize::MAX, &mut keys);
    assert_eq!(again, Ok(twice.len()));
    let mut found = Vec::new();
    let mut all = Keys::default();
    ids.iter()
        .for_each(|id| all.push(&key_of(*id), KeyKind::Node));
    world.dealt[0].lookup_keys(&all, &mut found).unwrap();
    // Terms whose hash is another node's than their id are asked for, and the keys of others that share it.
    let after = world.calls();
    assert!(after <= 6, "{after}");
    world.dealt[0].lookup_keys(&all, &mut found).unwrap();
    assert_eq!(world.calls(), after, "all are known");
}

#[test]
fn what_is_met_stays_within_its_bytes() {
    let mut met = Met {
        most_bytes: 10_000,
        ..Met::default()
    };
    for number in 0..VERTICES {
        let id = TermId::vertex(number);
        let key = key_of(id);
        met.note(id, &key, KeyKind::Node);
        assert!(met.young.bytes() + met.old.bytes() <= 10_000, "{number}");
        if key.len() <= 1024 {
            assert_eq!(met.key(id).map(<[u8]>::to_vec), Some(key.clone()));
            assert_eq!(met.id(hash_of_key(&key), &key, KeyKind::Node), Some(id));
        }
        assert_eq!(met.id(hash_of_key(&key), &key, KeyKind::Literal), None);
        // What is asked for again and again stays.
        if number > 0 {
            assert!(met.key(TermId::vertex(0)).is_some(), "{number}");
        }
    }
}

#[test]
fn keys_longer_than_a_message_come_in_pieces() {
    /// Of the node that holds this one of two shards.
    struct Long(u64);
    impl TermSource for Long {
        fn epoch(&self) -> IdEpoch {
            IdEpoch(1)
        }

        fn has(&self, id: TermId) -> bool {
            id.number() < 8
        }

        fn push_key(&self, id: TermId, key: &mut Vec<u8>) -> Result<(), Unavailable> {
            let length =
                [10, MOST_BYTES, MOST_BYTES + 1, 3 * MOST_BYTES - 7][id.number() as usize % 4];
            key.extend((0..length).map(|place| (place % 251) as u8));
            Ok(())
        }

        fn lookup(&self, _: &[u8], _: bool) -> Result<Option<TermId>, Unavailable> {
            Ok(None)
        }
    }
    impl TermPart for Long {
        fn epoch(&self) -> IdEpoch {
            IdEpoch(1)
        }

        fn has(&self, id: TermId) -> bool {
            TermSource::has(self, id)
        }

        fn has_key(&self, id: TermId) -> bool {
            id.number() % 2 == self.0
        }

        fn push_keys(
            &self,
            ids: &[TermId],
            most_bytes: usize,
            keys: &mut Keys,
        ) -> Result<usize, Unavailable> {
            TermSource::push_keys(self, ids, most_bytes, keys)
        }

        fn push_candidates(&self, _: u64, _: bool, _: &mut Vec<TermId>) -> Result<(), Unavailable> {
            Ok(())
        }

        fn find_name(&self, _: &[u8]) -> Option<TermId> {
            None
        }
    }
    let shards = Shards::new(2).unwrap();
    let map = ShardMap::dealt(shards, 2).unwrap();
    let network = LocalNetwork::new(2);
    let server = ShardServer::new(shards);
    let served = server.serve_with_terms(without_rows(shards), Arc::new(Long(1)));
    let (here, there): (Arc<dyn Fabric>, Arc<dyn Fabric>) = (network.fabric(0), network.fabric(1));
    let options = LinkOptions {
        patience: LONG,
        ..LinkOptions::default()
    };
    let link = Link::between(&here, &there, &server, &Arc::default(), &options).unwrap();
    let asked = Arc::new(link).terms(served.id(), Arc::clone(&served) as _);
    let own = Arc::new(Long(0));
    let dealt = DealtTerms::new(
        (&map, NodeId(0)),
        own,
        vec![None, Some(asked)],
        1 << 20,
        None,
    );
    let ids: Vec<TermId> = (0..8).map(TermId::vertex).collect();
    for most in [1, 3 * MOST_BYTES, usize::MAX] {
        assert_eq!(all_keys(&dealt, &ids, most), all_keys(&Long(0), &ids, most));
    }
}

#[test]
fn a_lost_node_is_named_by_a_shard_of_it_and_terms_of_others_are_read() {
    let world = World::new(LONG, 1 << 20);
    world.network.kill(NodeId(2));
    let (here, dealt) = (&world.parts[0], &world.dealt[0]);
    let (map, _) = here.part.as_ref().unwrap();
    let of = |node: u32| {
        let all = (NAMED..VERTICES).map(TermId::vertex);
        all.filter(move |id| map.node_of(*id) == NodeId(node))
    };
    let alive: Vec<TermId> = of(0).chain(of(1)).take(60).collect();
    let mut keys = Keys::default();
    assert_eq!(
        dealt.push_keys(&alive, usize::MAX, &mut keys),
        Ok(alive.len())
    );
    let lost = of(2).next().unwrap();
    let shard = map.shards().owner(lost);
    let before = keys.clone();
    let with_lost: Vec<TermId> = alive.iter().copied().chain([lost]).collect();
    let never = Err(Unavailable::Never(shard));
    assert_eq!(dealt.push_keys(&with_lost, usize::MAX, &mut keys), never);
    assert_eq!(keys, before, "nothing was appended");
    // Of a hash that is no other term's.
    let elsewhere = (0_u64..).map(|n| format!("http://none/{n}"));
    let elsewhere = elsewhere.filter(|key| !hash_of_key(key.as_bytes()).is_multiple_of(2));
    let holder = |key: &String| map.holder(map.shards().of_hash(hash_of_key(key.as_bytes())));
    let key = elsewhere
        .clone()
        .find(|key| holder(key) == NodeId(2))
        .unwrap();
    let shard = map.shards().of_hash(hash_of_key(key.as_bytes()));
    assert_eq!(
        dealt.lookup(key.as_bytes(), false),
        Err(Unavailable::Never(shard))
    );
    let key = elsewhere
        .clone()
        .find(|key| holder(key) == NodeId(1))
        .unwrap();
    assert_eq!(dealt.lookup(key.as_bytes(), false), Ok(None));
}

#[test]
fn a_node_that_is_not_ready_is_asked_again_and_the_others_need_not_be() {
    let world = World::new(LONG, 1 << 20);
    let ids: Vec<TermId> = (NAMED..NAMED + 40)
        .map(TermId::vertex)
        .filter(|id| id.number() % 50 != 7)
        .collect();
    world.parts[1].is_late.store(true, Ordering::SeqCst);
    let mut keys = Keys::default();
    let first = world.dealt[0].push_keys(&ids, usize::MAX, &mut keys);
    // Those before the first of the late node are there.
    let (map, _) = world.parts[0].part.as_ref().unwrap();
    let before = ids.iter().take_while(|id| map.node_of(**id) != NodeId(1));
    assert_eq!(first, Ok(before.count()));
    let asked = world.parts[2].asked.load(Ordering::SeqCst);
    let late: Vec<TermId> = ids.iter().copied().skip(first.unwrap()).collect();
    let again = world.dealt[0].push_keys(&late, usize::MAX, &mut keys);
    assert_eq!(again, Err(Unavailable::NotNow));
    world.parts[1].is_late.store(false, Ordering::SeqCst);
    let again = world.dealt[0].push_keys(&late, usize::MAX, &mut keys);
    assert_eq!(again, Ok(late.len()));
    assert_eq!(
        world.parts[2].asked.load(Ordering::SeqCst),
        asked,
        "it was met"
    );
}

#[test]
fn a_server_refuses_ids_that_it_has_not_and_calls_of_shards_without_terms() {
    let shards = Shards::new(2).unwrap();
    let network = LocalNetwork::new(2);
    let server = ShardServer::new(shards);
    let (here, there): (Arc<dyn Fabric>, Arc<dyn Fabric>) = (network.fabric(0), network.fabric(1));
    let options = LinkOptions::default();
    let link = Link::between(&here, &there, &server, &Arc::default(), &options).unwrap();
    let link = Arc::new(link);
    let with = server.serve_with_terms(without_rows(shards), Naive::new(None));
    let without = server.serve(without_rows(shards));
    let never = Err(Unavailable::Never(ShardId(1)));
    for (served, id) in [
        (&with, TermId::vertex(VERTICES)),
        (&with, TermId::new(TermKind::Integer, 3)),
        (&with, TermId::new(TermKind::Computed, 3)),
        (&with, TermId::NONE),
        (&without, TermId::vertex(1)),
    ] {
        let asked = link.terms(served.id(), Arc::clone(served) as _);
        let asking = asked.ask_keys(ShardId(1), &[id], 100);
        let answer = asked.keys(asking, &[id], &mut Keys::default());
        assert_eq!(answer, never, "{id:?}");
    }
    let asked = link.terms(with.id(), Arc::clone(&with) as _);
    let id = [TermId::vertex(1)];
    let asking = asked.ask_keys(ShardId(1), &id, 100);
    assert_eq!(asked.keys(asking, &id, &mut Keys::default()), Ok(1));
}
