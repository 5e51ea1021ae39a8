//! Are the parts into which a store is split the whole together, and does each know of it what is asked?

use std::collections::BTreeSet;

use jindou_model::{IdQuad, NodeId, PredicateId, TermId};
use jindou_store::{
    Changes, Directory, DurabilityOptions, DurableStore, Split, Stage, StoreError, Transaction,
};

use super::common::{
    AllRows, SEEDS, SHARDS, check_places, check_terms, cut, figures, map_of, names, places, quads,
    read, rows, split, store, store_with_later_terms, terms,
};

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
                assert_eq!(part.epoch(), whole.epoch());
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

#[test]
fn the_terms_of_parts_are_those_of_the_whole_where_their_shards_say() {
    for seed in SEEDS {
        let folder = store(seed);
        let whole = read(&folder.path().join("store")).unwrap();
        let all = terms(&whole);
        let names = names(&whole);
        for nodes in [1, 3, 5, SHARDS] {
            let map = map_of(nodes);
            let parts = split(folder.path(), &map).unwrap();
            for (node, part) in map.nodes().zip(&parts) {
                let at = format!("seed {seed}, {nodes} nodes, {node:?}");
                assert_eq!(part.dictionary_terms(), whole.dictionary_terms(), "{at}");
                check_terms(part, (&all, &names), (&map, node), &at);
            }
        }
    }
}

#[test]
fn parts_know_the_order_of_all_texts() {
    for seed in SEEDS {
        let folder = store_with_later_terms(seed);
        let whole = read(&folder.path().join("store")).unwrap();
        let places = places(&whole);
        let later = whole.base().literal_tables().ground().len();
        let is_placed = |literal: u64| places[&TermId::literal(literal)].is_some();
        assert!(
            (later..whole.literal_count())
                .filter(|id| is_placed(*id))
                .count()
                > 200
        );
        for nodes in [1, 3, SHARDS] {
            let map = map_of(nodes);
            let parts = split(folder.path(), &map).unwrap();
            for (node, part) in map.nodes().zip(&parts) {
                let at = format!("seed {seed}, {nodes} nodes, {node:?}");
                check_places(part, &places, &at);
                part.base().verify().expect(&at);
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
