//! Merges of some predicates, one after the other, beside a naive set of quads.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};

use jindou_model::{IdQuad, SnapshotNumber};
use oxrdf::vocab::rdf;
use oxrdf::{NamedNode, Quad};

use super::*;
use crate::bulk::{BulkSink, build};
use crate::directory::Current;
use crate::named::OfGraph;
use crate::runs::NO_HOME;
use crate::{Changes as QuadChanges, Directory, Merged, Snapshot, verify};

/// Predicate, subject, object and graph, as raw ids.
type Row = (u32, u64, u64, u64);

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    fn one_in(&mut self, share: u64) -> bool {
        self.below(share) == 0
    }
}

fn node(text: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("http://e/{text}"))
}

/// Subjects that are at home in four graphs, some of them with more in others, and edges that are
/// anywhere.
fn loaded(random: &mut Random) -> Base {
    let mut sink = BulkSink::new();
    let mut quad = |s: u64, p: NamedNode, o: u64, g: u64| {
        let (s, o, g) = (format!("s{s}"), format!("o{o}"), format!("g{g}"));
        let quad = Quad::new(node(&s), p, node(&o), node(&g));
        sink.quad(quad.as_ref()).unwrap();
    };
    for subject in 0..400 {
        let home = subject / 100;
        quad(subject, node("p0"), random.below(90), home);
        let object = random.below(90);
        quad(subject, node("p1"), object, home);
        if random.one_in(30) {
            quad(subject, node("p0"), random.below(90), random.below(6));
            quad(subject, node("p1"), object, random.below(6));
        }
        if subject < 12 {
            quad(subject, rdf::TYPE.into_owned(), 90 + home, home);
            if random.one_in(4) {
                quad(subject, rdf::TYPE.into_owned(), 90, random.below(6));
            }
        }
    }
    for _ in 0..120 {
        let (subject, object) = (random.below(12), random.below(20));
        quad(subject, node("p2"), object, random.below(8));
    }
    build(vec![sink], 1).unwrap()
}

fn rows_of(snapshot: &Snapshot) -> BTreeSet<Row> {
    let all = Pattern {
        subject: None,
        predicate: None,
        object: None,
    };
    let mut rows = BTreeSet::new();
    let flow = snapshot.for_each_quad(&all, &mut |s, p, o, g| {
        assert!(rows.insert((p.0, s.raw(), o.raw(), g.raw())));
        ControlFlow::Continue(())
    });
    assert!(flow.is_continue());
    rows
}

fn quad_of((p, s, o, g): Row) -> IdQuad {
    IdQuad {
        subject: TermId::from_raw(s),
        predicate: PredicateId(p),
        object: TermId::from_raw(o),
        graph: TermId::from_raw(g),
    }
}

/// Makes changes of named graphs, in `rows` too; none of types.
fn change(random: &mut Random, snapshot: &mut Snapshot, rows: &mut BTreeSet<Row>) {
    let round = snapshot.vertex_count();
    let in_round = |number: u64| format!("n{round}-{number}");
    let all: Vec<Row> = rows.iter().copied().filter(|row| row.0 != 0).collect();
    let is_graph_to_empty = random.one_in(3);
    let emptied = all[random.below(all.len() as u64) as usize].3;
    let mut gone: Vec<Row> = all.iter().copied().filter(|_| random.one_in(12)).collect();
    gone.extend(
        all.iter()
            .filter(|row| is_graph_to_empty && row.3 == emptied),
    );
    let mut came = Vec::new();
    let intern = |snapshot: &mut Snapshot, text: String| {
        let key = node(&text);
        snapshot.intern_node(key.as_str().as_bytes()).unwrap().raw()
    };
    // New subjects that lie together.
    for number in 0..15 {
        intern(snapshot, in_round(number));
    }
    for row in all {
        // A known edge in one more graph.
        if random.one_in(60) {
            let graph = intern(snapshot, format!("g{}", random.below(16)));
            came.push((row.0, row.1, row.2, graph));
        }
    }
    for number in 0..50 {
        // The first are of new subjects, and mostly in one graph.
        let subject = match number {
            0..30 => in_round(number / 2),
            _ => format!("s{}", random.below(420)),
        };
        let graph = match number {
            0..30 if !random.one_in(9) => format!("g{}", round % 5 + 10),
            _ => format!("g{}", random.below(16)),
        };
        let predicate = node(&format!("p{}", random.below(5)));
        let predicate = snapshot.intern_predicate(predicate.as_str()).unwrap();
        let object = format!("o{}", random.below(90));
        let [subject, object, graph] = [subject, object, graph].map(|text| intern(snapshot, text));
        came.push((predicate.0, subject, object, graph));
    }
    gone.iter().for_each(|row| {
        rows.remove(row);
    });
    rows.extend(&came);
    snapshot.apply(&QuadChanges {
        remove: gone.into_iter().map(quad_of).collect(),
        add: came.into_iter().map(quad_of).collect(),
    });
}

/// The base after a merge of some predicates.
fn merge(snapshot: &Snapshot, merged: &[PredicateId]) -> Base {
    let before = snapshot.base();
    snapshot.close_extents();
    let base = Merged::new(snapshot.clone(), merged.to_vec()).unwrap().base;
    let named = &base.named;
    for number in 0..before.predicate_count() {
        let predicate = PredicateId(number as u32);
        let [part, old] = [named, &before.named].map(|named| named.part(predicate).unwrap());
        let is_merged = merged.contains(&predicate);
        // In memory others may move, as small regions are joined.
        assert!(!(is_merged && Arc::ptr_eq(part, old)));
        assert!(is_merged || Arc::ptr_eq(part, old) || !before.is_in_files());
    }
    for number in 0..before.named.graphs.len() as u32 {
        assert_eq!(named.id(number), before.named.id(number));
    }
    base
}

/// Every question about graphs beside the rows.
fn compare(base: &Base, rows: &BTreeSet<Row>) {
    assert_eq!(base.named.quads(), rows.len() as u64);
    let mut found = Vec::new();
    (base.named).for_each_graph(&mut |graph| found.push(graph.raw()));
    let graphs: BTreeSet<u64> = rows.iter().map(|row| row.3).collect();
    assert_eq!(found, graphs.iter().copied().collect::<Vec<_>>());
    assert_eq!(base.named.len(), graphs.len());
    for number in 0..base.predicate_count() {
        compare_edges(base, PredicateId(number as u32), rows);
    }
    for number in 0..base.named.graphs.len() as u32 {
        let graph = base.named.id(number);
        let own: BTreeSet<Row> = rows
            .iter()
            .copied()
            .filter(|r| r.3 == graph.raw())
            .collect();
        assert_eq!(base.named.contains(graph), !own.is_empty());
        assert_eq!(base.quads_of_graph(graph), own.len() as u64);
        compare_graph(base, graph, &own);
    }
}

fn compare_edges(base: &Base, predicate: PredicateId, rows: &BTreeSet<Row>) {
    let mut expected: BTreeMap<(u64, u64), BTreeSet<u64>> = BTreeMap::new();
    for (_, s, o, g) in rows.iter().filter(|row| row.0 == predicate.0) {
        expected.entry((*s, *o)).or_default().insert(*g);
    }
    let all = Pattern {
        subject: None,
        predicate: Some(predicate),
        object: None,
    };
    let mut found = BTreeMap::new();
    let mut of_edges = EdgeGraphs::new(base, predicate);
    let layer = base.layer(LayerKind::Named);
    let _ = layer.for_each_match(&all, &mut |s, p, o, _| {
        let list = of_edges.of(s, o);
        let place = layer.place(p, s, o).unwrap();
        assert_eq!(of_edges.at(place, s), list);
        let graphs = list.iter().map(|number| base.named.id(number).raw());
        let graphs: BTreeSet<u64> = graphs.collect();
        assert!(
            graphs
                .iter()
                .all(|graph| { base.has_quad(TermId::from_raw(*graph), predicate, (s, o)) })
        );
        found.insert((s.raw(), o.raw()), graphs);
        ControlFlow::Continue(())
    });
    assert_eq!(found, expected, "{predicate:?}");
}

fn compare_graph(base: &Base, graph: TermId, own: &BTreeSet<Row>) {
    let predicates: BTreeSet<u32> = own.iter().map(|row| row.0).collect();
    let found: Vec<u32> = (base.named.predicates_of(graph).iter())
        .map(|p| p.0)
        .collect();
    assert_eq!(found, predicates.into_iter().collect::<Vec<_>>());
    for predicate in (0..base.predicate_count() as u32).map(PredicateId) {
        let rows = own.iter().filter(|row| row.0 == predicate.0);
        let expected: BTreeSet<(u64, u64)> = rows.map(|row| (row.1, row.2)).collect();
        let Some(of_graph) = OfGraph::new(base, graph, predicate) else {
            assert!(expected.is_empty());
            continue;
        };
        assert_eq!(of_graph.edges(), expected.len() as u64);
        let mut found = BTreeSet::new();
        let _ = of_graph.for_each(&mut |s, o| {
            assert!(found.insert((s.raw(), o.raw())));
            ControlFlow::Continue(())
        });
        assert_eq!(found, expected);
        let subjects = of_graph.subjects();
        let mut all = expected.iter().map(|(s, _)| TermId::from_raw(*s));
        assert!(all.all(|subject| subjects.contains(subject)));
    }
}

/// How many predicates list the graphs of some edges by place, and those of each.
fn kinds(base: &Base) -> (usize, usize) {
    let sets = |name| {
        let predicate = base.find_predicate(node(name).as_str()).unwrap();
        &base.named.part(predicate).unwrap().sets
    };
    let all = ["p0", "p1", "p2"].map(sets);
    let is_listed =
        |sets: &&&EdgeSets| matches!(sets, EdgeSets::Home { places, .. } if !places.is_empty());
    let is_each = |sets: &&&EdgeSets| matches!(sets, EdgeSets::Each(_));
    let count = |is: &dyn Fn(&&&EdgeSets) -> bool| all.iter().filter(is).count();
    (count(&is_listed), count(&is_each))
}

/// Some merges, after each of which the base is written and read again; true if new subjects came
/// to be at home somewhere.
fn run(seed: u64) -> bool {
    println!("seed {seed}");
    let mut random = Random(seed | 1);
    let mut snapshot = Snapshot::of_base(loaded(&mut random), 1, SnapshotNumber(1));
    let (loaded_vertices, loaded_runs) = (snapshot.vertex_count(), snapshot.base().runs.len());
    let mut rows = rows_of(&snapshot);
    let mut in_base = rows.clone();
    compare(snapshot.base(), &in_base);
    assert_eq!(kinds(snapshot.base()), (2, 1), "listed by place, and each");
    let mut new_homes = false;
    let folder = tempfile::tempdir().unwrap();
    let directory = Directory::create(&folder.path().join("store")).unwrap();
    for round in 1..=5 {
        change(&mut random, &mut snapshot, &mut rows);
        assert_eq!(rows_of(&snapshot), rows);
        let all = (0..snapshot.predicate_count() as u32).map(PredicateId);
        let merged: Vec<PredicateId> = all.filter(|_| !random.one_in(3)).collect();
        let base = merge(&snapshot, &merged);
        let is_merged = |row: &&Row| merged.contains(&PredicateId(row.0));
        let others = in_base.iter().filter(|row| !is_merged(row));
        in_base = others
            .chain(rows.iter().filter(is_merged))
            .copied()
            .collect();
        compare(&base, &in_base);
        assert!(base.vertex_place(TermId::vertex(0)).is_some());
        assert!(base.vertex_place(TermId::vertex(loaded_vertices)).is_none());
        verify::base(&base, folder.path()).unwrap();
        let written = directory.write_base(&base, 1, base.identity).unwrap();
        let current = Current {
            generation: 1,
            merge: round,
            ..Current::default()
        };
        let base = directory.read_base(current).unwrap();
        new_homes |= (loaded_runs..base.runs.len()).any(|run| base.runs.home_of(run) != NO_HOME);
        compare(&base, &in_base);
        compare(&written, &in_base);
        verify::base(&base, folder.path()).unwrap();
        // What was not merged is changed again: ids mean the same as before.
        snapshot = Snapshot::of_base(base, 1, SnapshotNumber(1));
        snapshot.apply(&QuadChanges {
            remove: in_base.difference(&rows).copied().map(quad_of).collect(),
            add: rows.difference(&in_base).copied().map(quad_of).collect(),
        });
        assert_eq!(rows_of(&snapshot), rows);
    }
    new_homes
}

#[test]
fn merges_of_some_predicates_say_what_a_set_of_quads_says() {
    let with_homes = (1..=12).filter(|seed| run(*seed)).count();
    assert!(with_homes > 6, "{with_homes}");
    run(RandomState::new().hash_one(0));
}
