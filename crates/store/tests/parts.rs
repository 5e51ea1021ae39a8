//! Are the parts into which a store is split the whole together, and does each know of it what is asked?

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

use jindou_fabric::RegionBuilder;
use jindou_model::{
    Direction, GraphRef, IdQuad, Membership, NodeId, Pattern, PredicateId, ShardId, TermId,
};
use jindou_partition::{ShardMap, Shards};
use jindou_store::bulk::{BulkSink, build};
use jindou_store::{
    Changes, Cut, Directory, DurabilityOptions, DurableStore, LayerKind, Snapshot, Split, Stage,
    StoreError, Transaction,
};
use oxrdf::vocab::rdf;
use oxrdf::{GraphName, Literal, NamedNode, Quad, Term};
use tempfile::TempDir;

const SEEDS: [u64; 4] = [1, 2, 3, 4];
const SHARDS: u32 = 16;

/// xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }
}

fn node(name: &str, number: u64) -> NamedNode {
    NamedNode::new_unchecked(format!("http://e/{name}{number}"))
}

/// A quad with types, literals of all kinds, hubs, and several graphs; a predicate of one edge, too.
fn quad(random: &mut Random) -> Quad {
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

/// A folder with a store of random data.
fn store(seed: u64) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut sink = BulkSink::new();
    for _ in 0..3_000 {
        sink.quad(quad(&mut random).as_ref()).unwrap();
    }
    let once = Quad::new(
        node("v", 5),
        node("once", 0),
        node("v", 6),
        GraphName::DefaultGraph,
    );
    sink.quad(once.as_ref()).unwrap();
    let base = build(vec![sink], 3).unwrap();
    let directory = Directory::create(&folder.path().join("store")).unwrap();
    DurableStore::create(directory, DurabilityOptions::default(), &base).unwrap();
    folder
}

fn read(location: &Path) -> Result<Snapshot, StoreError> {
    let directory = Directory::open_to_read(location)?;
    Ok(DurableStore::read(&directory, &DurabilityOptions::default())?.0)
}

fn map_of(nodes: u32) -> ShardMap {
    ShardMap::dealt(Shards::new(SHARDS).unwrap(), nodes).unwrap()
}

/// Splits the store of a folder into parts `part-0` and so on.
fn split(folder: &Path, map: &ShardMap) -> Result<Vec<Snapshot>, StoreError> {
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
type AllRows = BTreeMap<(usize, usize, u32, u64), Vec<u64>>;

fn rows(snapshot: &Snapshot) -> AllRows {
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
fn quads(snapshot: &Snapshot, first: PredicateId) -> BTreeSet<[u64; 4]> {
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

/// All that planners and catalogues ask.
fn figures(snapshot: &Snapshot) -> Vec<String> {
    let mut told = vec![
        format!("{:?}", snapshot.place()),
        format!("{:?}", snapshot.epoch()),
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

fn cut(snapshot: &Snapshot, map: &ShardMap, node: NodeId) -> Cut {
    let own = map
        .shards()
        .all()
        .filter(|shard| map.holder(*shard) == node);
    let own: BTreeSet<ShardId> = own.collect();
    let allocate = |_, bytes| Ok(RegionBuilder::new(bytes));
    snapshot.cut_base(map.shards(), &own, &allocate).unwrap()
}

#[test]
fn parts_are_the_whole_together_and_each_knows_its_figures() {
    for seed in SEEDS {
        let folder = store(seed);
        let whole = read(&folder.path().join("store")).unwrap();
        let (all_rows, all_quads, all_figures) = (
            rows(&whole),
            quads(&whole, PredicateId::TYPE),
            figures(&whole),
        );
        for nodes in [1, 2, 3, 5, SHARDS] {
            let map = map_of(nodes);
            let parts = split(folder.path(), &map).unwrap();
            let (mut found, mut found_quads) = (AllRows::new(), BTreeSet::new());
            for (node, part) in map.nodes().zip(&parts) {
                let said = part.base().node_part().unwrap();
                assert_eq!((said.map(), said.node()), (&map, node));
                assert_eq!(said.name(), format!("n{}", node.0));
                assert_eq!(
                    figures(part),
                    all_figures,
                    "seed {seed}, {nodes} nodes, {node:?}"
                );
                let own = rows(part);
                assert!(
                    own.keys()
                        .all(|key| map.node_of(TermId::from_raw(key.3)) == node),
                    "seed {seed}"
                );
                let before = found.len();
                let count = own.len();
                found.extend(own);
                assert_eq!(
                    found.len(),
                    before + count,
                    "seed {seed}, {nodes} nodes: a row is in two parts"
                );
                found_quads.extend(quads(part, PredicateId::TYPE));
            }
            assert!(found == all_rows, "seed {seed}, {nodes} nodes: rows");
            assert!(
                found_quads == all_quads,
                "seed {seed}, {nodes} nodes: quads"
            );
        }
    }
}

/// Keys of all terms of a store's dictionary, by id.
fn terms(whole: &Snapshot) -> BTreeMap<TermId, Vec<u8>> {
    let vertices = (0..whole.vertex_numbers()).map(TermId::vertex);
    let literals = (0..whole.literal_count()).map(TermId::literal);
    let key = |id| {
        let mut key = Vec::new();
        whole.push_key(id, &mut key);
        (id, key)
    };
    vertices.chain(literals).map(key).collect()
}

#[test]
fn the_terms_of_parts_are_those_of_the_whole_where_their_shards_say() {
    for seed in SEEDS {
        let folder = store(seed);
        let whole = read(&folder.path().join("store")).unwrap();
        let all = terms(&whole);
        let predicates = (0..whole.predicate_count() as u32).map(PredicateId);
        let mut names: BTreeSet<TermId> = predicates.map(|id| whole.predicate_term(id)).collect();
        whole.for_each_graph(&mut |graph| {
            names.insert(graph);
        });
        for nodes in [1, 3, 5, SHARDS] {
            let map = map_of(nodes);
            let parts = split(folder.path(), &map).unwrap();
            for (node, part) in map.nodes().zip(&parts) {
                let at = format!("seed {seed}, {nodes} nodes, {node:?}");
                assert_eq!(part.dictionary_terms(), whole.dictionary_terms(), "{at}");
                for (id, key) in &all {
                    let has_key = part.base().has_key(*id);
                    assert!(has_key || map.node_of(*id) != node, "{at}: {id:?}");
                    if has_key {
                        let mut read = Vec::new();
                        part.push_key(*id, &mut read);
                        assert_eq!(&read, key, "{at}: {id:?}");
                    }
                    let hash = jindou_dictionary::hash(key);
                    if map.holder(map.shards().of_hash(hash)) == node {
                        let is_literal = id.kind() == jindou_model::TermKind::Literal;
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
        }
    }
}

#[test]
#[should_panic(expected = "a node's part of a dictionary finds no strings")]
fn a_part_is_not_asked_which_id_a_term_has() {
    let folder = store(1);
    let parts = split(folder.path(), &map_of(2)).unwrap();
    let _found = parts[0].find_node(b"http://e/v1");
}

#[test]
fn the_shards_of_a_part_are_those_of_the_whole() {
    for seed in SEEDS {
        let folder = store(seed);
        let whole = read(&folder.path().join("store")).unwrap();
        let map = map_of(3);
        let parts = split(folder.path(), &map).unwrap();
        for (node, part) in map.nodes().zip(&parts) {
            let (of_part, of_whole) = (cut(part, &map, node), cut(&whole, &map, node));
            assert_eq!(of_part.digests, of_whole.digests, "seed {seed}");
            let shared = [&of_part.shared, &of_whole.shared];
            let [one, other] =
                shared.map(|shared| (figures(shared), quads(shared, PredicateId::TYPE)));
            assert!(one == other, "seed {seed}: what is shared");
            assert_eq!(of_part.shards.len(), of_whole.shards.len());
            for ((shard, one), (of, other)) in of_part.shards.iter().zip(&of_whole.shards) {
                assert_eq!(shard, of);
                let [one, other] =
                    [one, other].map(|it| (rows(it), quads(it, PredicateId(1)), figures(it)));
                assert!(one == other, "seed {seed}, {shard:?}");
            }
        }
    }
}

#[test]
#[should_panic(expected = "a part has rows of its own shards alone")]
fn shards_of_other_nodes_are_not_cut_out_of_a_part() {
    let folder = store(1);
    let map = map_of(2);
    let parts = split(folder.path(), &map).unwrap();
    let _cut = cut(&parts[0], &map, NodeId(1));
}

#[test]
fn a_part_is_verified_and_neither_written_nor_split() {
    let folder = store(5);
    let map = map_of(3);
    split(folder.path(), &map).unwrap();
    for node in 0..3 {
        let location = folder.path().join(format!("parts-3-{node}"));
        DurableStore::verify(&Directory::open_to_read(&location).unwrap()).unwrap();
        let opened = DurableStore::open(
            Directory::open(&location).unwrap(),
            DurabilityOptions::default(),
        );
        let refused = opened.err().expect("a part is not written").to_string();
        for said in [
            format!("node n{node}, {} of 3, with ", node + 1),
            "of 16 shards".to_owned(),
        ] {
            assert!(refused.contains(&said), "{refused}");
        }
        let snapshot = read(&location).unwrap();
        let from = Directory::open_to_copy(&location).unwrap();
        let again = Split::new(&from, &snapshot, &map, &|_| ());
        assert!(matches!(again.err(), Some(StoreError::NodePart { .. })));
    }
}

#[test]
fn a_store_with_changes_since_its_base_is_not_split() {
    let folder = store(6);
    let location = folder.path().join("store");
    let opened = DurableStore::open(
        Directory::open(&location).unwrap(),
        DurabilityOptions::default(),
    );
    let (store, before, _) = opened.unwrap();
    let mut after = before.clone();
    let edge = IdQuad {
        subject: TermId::vertex(1),
        predicate: PredicateId(2),
        object: TermId::vertex(3),
        graph: TermId::NONE,
    };
    let changes = Changes {
        add: vec![edge],
        ..Changes::default()
    };
    assert_eq!(after.apply(&changes).added, 1);
    after.set_number(jindou_model::SnapshotNumber(2));
    let stage = Stage {
        changes,
        ..Stage::default()
    };
    let ticket = store.append(&Transaction::between(&before, &after, vec![stage]));
    store.log().sync(ticket.unwrap()).unwrap();
    drop(store);
    let refused = split(folder.path(), &map_of(2))
        .err()
        .expect("it has changes");
    assert!(matches!(refused, StoreError::NotMerged { .. }), "{refused}");
    assert!(refused.to_string().contains("jindou compact"), "{refused}");
}

#[test]
fn any_altered_byte_of_what_a_part_says_of_the_whole_is_noticed() {
    let folder = store(7);
    split(folder.path(), &map_of(2)).unwrap();
    let location = folder.path().join("parts-2-1");
    let path = location.join("base-1-0.jnd");
    let good = std::fs::read(&path).unwrap();
    let places = (0..64)
        .chain((64..good.len()).step_by(97))
        .chain(good.len() - 200..good.len());
    for place in places {
        let mut bad = good.clone();
        bad[place] ^= 0x10;
        std::fs::write(&path, &bad).unwrap();
        let refused = read(&location).err().expect("an altered byte is noticed");
        assert!(refused.to_string().contains("base-1-0.jnd"), "{refused}");
    }
    std::fs::write(&path, &good).unwrap();
    read(&location).unwrap();
}
