//! Stores of random data, and what is asked of them and of parts of them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

use jindou_fabric::RegionBuilder;
use jindou_model::{
    Direction, GraphRef, IdQuad, Membership, NodeId, Pattern, PredicateId, ShardId, SnapshotNumber,
    TermId, TermKind, TextPlace, key,
};
use jindou_partition::{ShardMap, Shards};
use jindou_store::bulk::{BulkSink, build};
use jindou_store::{
    Changes, Cut, Directory, DurabilityOptions, DurableStore, LayerKind, Merged, Rebase, Snapshot,
    Split, StoreError,
};
use oxrdf::vocab::rdf;
use oxrdf::{GraphName, Literal, NamedNode, Quad, Term};
use tempfile::TempDir;

pub(crate) const SEEDS: [u64; 4] = [1, 2, 3, 4];
pub(crate) const SHARDS: u32 = 16;
pub(crate) const DOCUMENTS: u64 = 3;

/// xorshift64*.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn of(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }
}

pub(crate) fn node(name: &str, number: u64) -> NamedNode {
    NamedNode::new_unchecked(format!("http://e/{name}{number}"))
}

/// A quad with types, literals of all kinds, hubs, and several graphs; a predicate of one edge, too.
pub(crate) fn quad(random: &mut Random) -> Quad {
    let hub = |random: &mut Random| match random.below(4) {
        0 => 0,
        _ => random.below(300),
    };
    let subject = node("v", hub(random));
    let graph = match random.below(5) {
        0 => node("g", random.below(7)).into(),
        1 => node("g", 0).into(),
        _ => GraphName::DefaultGraph,
    };
    let predicate = random.below(7);
    let object: Term = match (predicate, random.below(4)) {
        (0, _) => node("Class", random.below(5)).into(),
        (1, 0) => Literal::from(random.below(50) as i64).into(),
        (1, 1) => Literal::new_language_tagged_literal_unchecked("hi", "en").into(),
        (1, _) => Literal::new_simple_literal(format!("text {}", random.below(90))).into(),
        _ => node("v", hub(random)).into(),
    };
    let predicate = match predicate {
        0 => rdf::TYPE.into_owned(),
        number => node("p", number),
    };
    Quad::new(subject, predicate, object, graph)
}

/// Random quads of a seed, and a predicate of one edge.
pub(crate) fn quads_of(seed: u64, count: usize) -> Vec<Quad> {
    let mut random = Random::of(seed);
    let mut quads: Vec<Quad> = (0..count).map(|_| quad(&mut random)).collect();
    let subject = node("v", 5);
    let once = Quad::new(
        subject,
        node("once", 0),
        node("v", 6),
        GraphName::DefaultGraph,
    );
    quads.push(once);
    quads
}

/// A folder with a store of quads.
pub(crate) fn store_of(quads: &[Quad]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let base = build(vec![sink_of(quads)], DOCUMENTS).unwrap();
    let directory = Directory::create(&folder.path().join("store")).unwrap();
    DurableStore::create(directory, DurabilityOptions::default(), &base).unwrap();
    folder
}

pub(crate) fn sink_of<'q>(quads: impl IntoIterator<Item = &'q Quad>) -> BulkSink {
    let mut sink = BulkSink::new();
    for quad in quads {
        sink.quad(quad.as_ref()).unwrap();
    }
    sink
}

/// A folder with a store of random data.
pub(crate) fn store(seed: u64) -> TempDir {
    store_of(&quads_of(seed, 3_000))
}

/// As [`store`], with terms that came later, in two merges: some of them are gone.
pub(crate) fn store_with_later_terms(seed: u64) -> TempDir {
    let base = build(vec![sink_of(&quads_of(seed, 3_000))], DOCUMENTS).unwrap();
    let mut now = Snapshot::of_base(base, 1, SnapshotNumber(1));
    let mut random = Random::of(seed);
    let mut known: Vec<IdQuad> = Vec::new();
    for _ in 0..2 {
        let removed = known.iter().step_by(5).copied().collect();
        let added: Vec<IdQuad> = (0..300)
            .map(|_| later_quad(&mut now, &mut random))
            .collect();
        known.extend_from_slice(&added);
        now.apply(&Changes {
            remove: removed,
            add: added,
        });
        now.keep_terms();
        now.set_number(SnapshotNumber(now.number().0 + 1));
        now = merge(&now);
    }
    let folder = tempfile::tempdir().unwrap();
    let directory = Directory::create(&folder.path().join("store")).unwrap();
    DurableStore::create(directory, DurabilityOptions::default(), now.base()).unwrap();
    folder
}

/// What a vertex of its own says, of texts that lie among those of [`quad`] and are of several kinds.
fn later_quad(now: &mut Snapshot, random: &mut Random) -> IdQuad {
    let text = format!("text {}{}", random.below(90), random.below(20));
    let literal = match random.below(5) {
        0 => Literal::new_language_tagged_literal_unchecked(text, "de"),
        1 => Literal::new_typed_literal(text, node("type", random.below(2))),
        _ => Literal::new_simple_literal(text),
    };
    let mut key = Vec::new();
    key::push_literal(&mut key, literal.as_ref());
    let subject = node("later", random.below(200));
    IdQuad {
        subject: now.intern_node(subject.as_str().as_bytes()).unwrap(),
        predicate: now.intern_predicate(node("p", 1).as_str()).unwrap(),
        object: now.intern_literal(&key).unwrap(),
        graph: TermId::NONE,
    }
}

/// Merges all, and forgets what nothing uses.
fn merge(now: &Snapshot) -> Snapshot {
    let changed = now.changed_predicates().into_iter();
    now.close_extents();
    let merged = Merged::new(now.clone(), changed.map(|one| one.predicate).collect()).unwrap();
    let rebase = Rebase::new(merged, now);
    let mut next = rebase.apply(now);
    next.forget_terms(rebase.unused());
    next
}

pub(crate) fn read(location: &Path) -> Result<Snapshot, StoreError> {
    let directory = Directory::open_to_read(location)?;
    Ok(DurableStore::read(&directory, &DurabilityOptions::default())?.0)
}

pub(crate) fn map_of(nodes: u32) -> ShardMap {
    ShardMap::dealt(Shards::new(SHARDS).unwrap(), nodes).unwrap()
}

/// Splits the store of a folder into parts `part-0` and so on.
pub(crate) fn split(folder: &Path, map: &ShardMap) -> Result<Vec<Snapshot>, StoreError> {
    let from = Directory::open_to_copy(&folder.join("store"))?;
    let (snapshot, _) = DurableStore::read(&from, &DurabilityOptions::default())?;
    let split = Split::new(&from, &snapshot, map, &|_| ())?;
    let place = |node: NodeId| folder.join(format!("parts-{}-{}", map.nodes().len(), node.0));
    for node in map.nodes() {
        let to = Directory::create(&place(node))?;
        split.write((node, &format!("n{}", node.0)), &to, &|_| ())?;
    }
    map.nodes().map(|node| read(&place(node))).collect()
}

/// The rows of a snapshot's segments: layer, direction, predicate and key -> neighbours.
pub(crate) type AllRows = BTreeMap<(usize, usize, u32, u64), Vec<u64>>;

pub(crate) fn rows(snapshot: &Snapshot) -> AllRows {
    let mut rows = AllRows::new();
    for kind in LayerKind::ALL {
        let layer = snapshot.base().layer(kind);
        for direction in [Direction::Out, Direction::In] {
            for predicate in (0..snapshot.predicate_count() as u32).map(PredicateId) {
                let Some(segment) = layer.segment(predicate, direction) else {
                    continue;
                };
                segment.domain().for_each(&mut |key| {
                    let list = segment.neighbours(key);
                    let list = (0..list.len()).map(|place| list.get(place).raw()).collect();
                    let place = (kind as usize, direction as usize, predicate.0, key.raw());
                    assert!(rows.insert(place, list).is_none());
                });
            }
        }
    }
    rows
}

/// Quads of named graphs, of those predicates from this one on, as the edges by subject say.
pub(crate) fn quads(snapshot: &Snapshot, first: PredicateId) -> BTreeSet<[u64; 4]> {
    let mut quads = BTreeSet::new();
    for number in first.0..snapshot.predicate_count() as u32 {
        let all = Pattern {
            subject: None,
            predicate: Some(PredicateId(number)),
            object: None,
        };
        let flow = snapshot.for_each_quad(&all, &mut |s, p, o, g| {
            quads.insert([s.raw(), p.0.into(), o.raw(), g.raw()]);
            ControlFlow::Continue(())
        });
        assert!(flow.is_continue());
    }
    quads
}

/// All that planners and catalogues ask, but for the epoch.
pub(crate) fn figures(snapshot: &Snapshot) -> Vec<String> {
    let mut told = vec![
        format!("{:?}", snapshot.place()),
        format!("{} {}", snapshot.triples(), snapshot.named_quads()),
        format!("{} {}", snapshot.named_graphs(), snapshot.graph_share()),
        format!("{}", snapshot.documents()),
    ];
    let predicates = (0..snapshot.predicate_count() as u32).map(PredicateId);
    for predicate in predicates.clone() {
        told.push(format!(
            "{predicate:?}: {}",
            snapshot.named_quads_of(predicate)
        ));
        for graph in [GraphRef::Default, GraphRef::Named, GraphRef::Union] {
            told.push(format!("{:?}", snapshot.edges(graph, predicate)));
        }
        for (layer, direction) in [snapshot.default_graph(), snapshot.named_layer()]
            .into_iter()
            .flat_map(|layer| [(layer, Direction::Out), (layer, Direction::In)])
        {
            let asked = [Membership::Has(predicate, direction)];
            told.push(format!(
                "{:?} {} {} {:?}",
                layer.counts(predicate, direction),
                layer.count_with(&asked),
                layer.edges_from(predicate, direction, &asked),
                layer.edges_between(predicate, &asked[..0], &asked[..0]),
            ));
        }
    }
    snapshot.for_each_graph(&mut |graph| {
        let each = predicates
            .clone()
            .map(|id| snapshot.graph_quads(graph, Some(id)));
        let each: Vec<u64> = each.collect();
        let of_graph = snapshot.predicates_of_graph(graph);
        told.push(format!(
            "{graph:?}: {} {each:?} {of_graph:?}",
            snapshot.graph_quads(graph, None)
        ));
    });
    told
}

pub(crate) fn cut(snapshot: &Snapshot, map: &ShardMap, node: NodeId) -> Cut {
    let own = map
        .shards()
        .all()
        .filter(|shard| map.holder(*shard) == node);
    let own: BTreeSet<ShardId> = own.collect();
    let allocate = |_, bytes| Ok(RegionBuilder::new(bytes));
    snapshot.cut_base(map.shards(), &own, &allocate).unwrap()
}

/// Keys of all terms of a store's dictionary, by id.
pub(crate) fn terms(whole: &Snapshot) -> BTreeMap<TermId, Vec<u8>> {
    let vertices = (0..whole.vertex_numbers()).map(TermId::vertex);
    let literals = (0..whole.literal_count()).map(TermId::literal);
    let key = |id| {
        let mut key = Vec::new();
        whole.push_key(id, &mut key);
        (id, key)
    };
    vertices.chain(literals).map(key).collect()
}

/// The vertices whose names all nodes know, but for types.
pub(crate) fn names(whole: &Snapshot) -> BTreeSet<TermId> {
    let predicates = (0..whole.predicate_count() as u32).map(PredicateId);
    let mut names: BTreeSet<TermId> = predicates.map(|id| whole.predicate_term(id)).collect();
    whole.for_each_graph(&mut |graph| {
        names.insert(graph);
    });
    names
}

/// Where all terms lie in the order of texts, those that came after the load, too.
pub(crate) fn places(whole: &Snapshot) -> BTreeMap<TermId, Option<TextPlace>> {
    let order = whole.text_order().extended(&mut |_| true);
    let order = order.expect("nothing is damaged");
    let vertices = (0..whole.vertex_numbers()).map(TermId::vertex);
    let literals = (0..whole.literal_count()).map(TermId::literal);
    let all = vertices.chain(literals);
    all.map(|id| (id, order.place(id))).collect()
}

/// Knows a part where all terms lie, and that it cannot find out more?
pub(crate) fn check_places(
    part: &Snapshot,
    places: &BTreeMap<TermId, Option<TextPlace>>,
    at: &str,
) {
    let order = part.text_order();
    for (id, place) in places {
        assert_eq!(order.place(*id), *place, "{at}: {id:?}");
    }
    order.note_texts_read(1_000_000);
    assert!(!order.is_wanting(), "{at}");
    let extended = order.extended(&mut |_| panic!("{at}: nothing is read"));
    let extended = extended.expect("it is the same one");
    assert!(
        places
            .iter()
            .all(|(id, place)| extended.place(*id) == *place)
    );
}

/// Has a node the keys, the candidates and the names that it is to have of all terms?
pub(crate) fn check_terms(
    part: &Snapshot,
    (all, names): (&BTreeMap<TermId, Vec<u8>>, &BTreeSet<TermId>),
    (map, node): (&ShardMap, NodeId),
    at: &str,
) {
    for (id, key) in all {
        let has_key = part.base().has_key(*id);
        assert!(has_key || map.node_of(*id) != node, "{at}: {id:?}");
        if has_key {
            let mut read = Vec::new();
            part.push_key(*id, &mut read);
            assert_eq!(&read, key, "{at}: {id:?}");
        }
        let hash = jindou_dictionary::hash(key);
        if map.holder(map.shards().of_hash(hash)) == node {
            let is_literal = id.kind() == TermKind::Literal;
            let mut candidates = Vec::new();
            part.push_candidates(hash, is_literal, &mut candidates);
            assert!(candidates.contains(id), "{at}: {id:?}");
            assert!(candidates.iter().all(|id| all.contains_key(id)), "{at}");
        }
        let named = part.find_name(key);
        assert!(named.is_none_or(|named| named == *id), "{at}");
        assert!(named.is_some() || !names.contains(id), "{at}: {id:?}");
    }
}
