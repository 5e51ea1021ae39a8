//! The store beside the naive model: a set of quads, and a loop over it for every pattern.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::ControlFlow;

use jindou_model::{
    Cursor, Direction, Graphs, IdQuad, IdRanges, Membership, Pattern, PredicateId, ShardId,
    SnapshotNumber, TermId, TermKind, TextKind, TextRun, inline, key,
};
use jindou_store::bulk::{BulkSink, build, rebuild};
use jindou_store::{
    Base, Changed, Changes, Directory, DurabilityOptions, DurableStore, FoldRule, Snapshot,
};
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term};
use proptest::prelude::*;

fn node(number: u8) -> NamedNode {
    NamedNode::new_unchecked(format!("http://example.org/{number}"))
}

fn predicate(number: u8) -> NamedNode {
    match number {
        0 | 1 => rdf::TYPE.into_owned(),
        // Some predicates are vertices too.
        2 => node(3),
        _ => NamedNode::new_unchecked(format!("http://example.org/p{number}")),
    }
}

fn object(number: u8) -> Term {
    match number {
        0..=20 => node(number).into(),
        21..=24 => oxrdf::BlankNode::new_unchecked(format!("b{number}")).into(),
        25..=28 => Literal::new_typed_literal(number.to_string(), xsd::INTEGER).into(),
        29 => Literal::new_typed_literal("007", xsd::INTEGER).into(),
        30 => Literal::new_language_tagged_literal_unchecked("hi", "en").into(),
        _ => Literal::new_simple_literal(format!("text {number}")).into(),
    }
}

fn quad((s, p, o, g): (u8, u8, u8, u8)) -> Quad {
    let subject: NamedOrBlankNode = match s {
        0..=20 => node(s).into(),
        _ => oxrdf::BlankNode::new_unchecked(format!("b{s}")).into(),
    };
    let graph = match g {
        0..=5 => GraphName::DefaultGraph,
        g => node(g).into(),
    };
    Quad::new(subject, predicate(p), object(o), graph)
}

fn quads() -> impl Strategy<Value = Vec<Quad>> {
    prop::collection::vec((0..25_u8, 0..7_u8, 0..36_u8, 0..9_u8), 0..120)
        .prop_map(|list| list.into_iter().map(quad).collect())
}

/// Quads with terms of their own among them.
fn quads_to_change() -> impl Strategy<Value = Vec<Quad>> {
    prop::collection::vec((0..28_u8, 0..9_u8, 0..40_u8, 0..11_u8), 0..60)
        .prop_map(|list| list.into_iter().map(quad).collect())
}

fn intern(snapshot: &mut Snapshot, quad: &Quad) -> IdQuad {
    let term = |snapshot: &mut Snapshot, term: &Term| {
        if let Term::Literal(literal) = term
            && let Some(id) = inline::encode(literal.value(), literal.datatype().as_str())
        {
            return id;
        }
        let mut bytes = Vec::new();
        match key::push_term(&mut bytes, term.as_ref()) {
            true => snapshot.intern_literal(&bytes),
            false => snapshot.intern_node(&bytes),
        }
        .unwrap()
    };
    IdQuad {
        subject: term(snapshot, &quad.subject.clone().into()),
        predicate: snapshot.intern_predicate(quad.predicate.as_str()).unwrap(),
        object: term(snapshot, &quad.object),
        graph: match &quad.graph_name {
            GraphName::DefaultGraph => TermId::NONE,
            GraphName::NamedNode(node) => term(snapshot, &node.clone().into()),
            GraphName::BlankNode(node) => term(snapshot, &node.clone().into()),
        },
    }
}

fn load(quads: &[Quad], threads: usize) -> Base {
    let mut sinks: Vec<BulkSink> = (0..threads).map(|_| BulkSink::new()).collect();
    for (index, quad) in quads.iter().enumerate() {
        sinks[index % threads].quad(quad.as_ref()).unwrap();
    }
    build(sinks, 1).unwrap()
}

fn snapshot(base: Base) -> Snapshot {
    Snapshot::of_base(base, 1, SnapshotNumber(1))
}

fn id(base: &Snapshot, term: &Term) -> TermId {
    if let Term::Literal(literal) = term
        && let Some(id) = inline::encode(literal.value(), literal.datatype().as_str())
    {
        return id;
    }
    let mut bytes = Vec::new();
    match key::push_term(&mut bytes, term.as_ref()) {
        true => base.find_literal(&bytes),
        false => base.find_node(&bytes),
    }
    .unwrap_or_else(|| panic!("{term} has no id"))
}

type Row = (TermId, PredicateId, TermId, TermId);

fn matches(base: &Snapshot, pattern: Pattern, graphs: Graphs) -> Vec<Row> {
    let mut rows = Vec::new();
    let flow = base.for_each_match(&pattern, graphs, &mut |s, p, o, g| {
        rows.push((s, p, o, g));
        ControlFlow::Continue(())
    });
    assert!(flow.is_continue());
    rows.sort_unstable();
    rows
}

fn rows_of(base: &Snapshot, quads: &[Quad]) -> BTreeSet<Row> {
    quads
        .iter()
        .map(|quad| {
            let graph = match &quad.graph_name {
                GraphName::DefaultGraph => TermId::NONE,
                GraphName::NamedNode(node) => id(base, &node.clone().into()),
                GraphName::BlankNode(node) => id(base, &node.clone().into()),
            };
            (
                id(base, &quad.subject.clone().into()),
                base.find_predicate(quad.predicate.as_str()).unwrap(),
                id(base, &quad.object),
                graph,
            )
        })
        .collect()
}

/// Compares every pattern that some quad suggests, and a few that none does.
fn compare(base: &Snapshot, quads: &[Quad]) {
    let all = rows_of(base, quads);
    assert_eq!(
        base.triples(),
        all.iter().filter(|row| row.3.is_none()).count() as u64
    );
    assert_eq!(
        base.named_quads(),
        all.iter().filter(|row| !row.3.is_none()).count() as u64
    );
    let stranger = inline::from_integer(99).unwrap();
    let mut asked: Vec<Row> = all.iter().copied().collect();
    asked.extend(all.iter().map(|(s, p, o, _)| (*o, *p, *s, stranger)));
    asked.push((stranger, PredicateId::TYPE, stranger, stranger));
    for (s, p, o, g) in asked {
        for mask in 0..8 {
            let pattern = Pattern {
                subject: (mask & 1 != 0).then_some(s),
                predicate: (mask & 2 != 0).then_some(p),
                object: (mask & 4 != 0).then_some(o),
            };
            for graphs in [Graphs::Default, Graphs::Named, Graphs::One(g)] {
                if graphs == Graphs::One(TermId::NONE) {
                    continue;
                }
                let expected: Vec<Row> = all
                    .iter()
                    .copied()
                    .filter(|row| {
                        pattern.subject.is_none_or(|s| s == row.0)
                            && pattern.predicate.is_none_or(|p| p == row.1)
                            && pattern.object.is_none_or(|o| o == row.2)
                            && match graphs {
                                Graphs::Default => row.3.is_none(),
                                Graphs::Named => !row.3.is_none(),
                                Graphs::One(graph) => row.3 == graph,
                            }
                    })
                    .collect();
                assert_eq!(
                    matches(base, pattern, graphs),
                    expected,
                    "{pattern:?} {graphs:?}"
                );
            }
        }
    }
    compare_graphs(base, &all);
    compare_statistics(base, &all);
}

/// Reads each named graph piece by piece.
fn compare_graphs(base: &Snapshot, all: &BTreeSet<Row>) {
    for (_, predicate, _, graph) in all.iter().filter(|row| !row.3.is_none()) {
        for asked in [None, Some(*predicate)] {
            let mut rows = Vec::new();
            let mut more = true;
            let mut from = 0;
            while more {
                let before = rows.len();
                more = base.scan_graph(*graph, asked, from, 3, &mut |s, p, o, g| {
                    rows.push((s, p, o, g));
                    ControlFlow::Continue(())
                });
                from += 3;
                // Places of removed quads are passed over.
                assert!(!more || base.changes() > 0 || rows.len() == before + 3);
            }
            rows.sort_unstable();
            let expected: Vec<Row> = all
                .iter()
                .copied()
                .filter(|row| row.3 == *graph && asked.is_none_or(|p| p == row.1))
                .collect();
            assert_eq!(rows, expected);
        }
    }
}

fn compare_statistics(base: &Snapshot, all: &BTreeSet<Row>) {
    let of_default: Vec<&Row> = all.iter().filter(|row| row.3.is_none()).collect();
    let has = |vertex: TermId, asked: Membership| {
        of_default.iter().any(|(s, p, o, _)| match asked {
            Membership::Type(class) => *s == vertex && *p == PredicateId::TYPE && *o == class,
            Membership::Has(predicate, Direction::Out) => *s == vertex && *p == predicate,
            Membership::Has(predicate, Direction::In) => *o == vertex && *p == predicate,
        })
    };
    let mut terms: Vec<TermId> = of_default.iter().flat_map(|row| [row.0, row.2]).collect();
    terms.sort_unstable();
    terms.dedup();
    let mut traits: Vec<Membership> = of_default
        .iter()
        .flat_map(|(_, p, o, _)| {
            [
                Membership::Type(*o),
                Membership::Has(*p, Direction::Out),
                Membership::Has(*p, Direction::In),
            ]
        })
        .filter(|t| !matches!(t, Membership::Has(PredicateId::TYPE, Direction::In)))
        .collect();
    traits.dedup();
    compare_neighbours(base, &of_default, &terms);
    for pair in traits.windows(2) {
        for number in 1..base.predicate_count() {
            let predicate = PredicateId(number as u32);
            if let Some(edges) = base
                .base()
                .clusters()
                .edges_between(predicate, &pair[..1], &pair[1..])
                .filter(|_| base.changes() == 0)
            {
                let expected = of_default
                    .iter()
                    .filter(|row| row.1 == predicate && row.2.kind() == TermKind::Vertex)
                    .filter(|row| has(row.0, pair[0]) && has(row.2, pair[1]))
                    .count();
                assert_eq!(edges, expected as f64, "{pair:?} by {predicate:?}");
            }
        }
        for vertex in &terms {
            for asked in pair {
                assert_eq!(base.is_member(*vertex, *asked), has(*vertex, *asked));
            }
        }
        let expected: Vec<TermId> = terms
            .iter()
            .copied()
            .filter(|v| pair.iter().all(|t| has(*v, *t)))
            .collect();
        let list = |ids: IdRanges| {
            let mut found = Vec::new();
            ids.copy(0, usize::MAX >> 1, &mut found);
            found
        };
        let all = base.ids_with(pair, true, None).unwrap();
        assert_eq!(list(all), expected, "{pair:?}");
        // Every other third of the terms, and what lies behind the last.
        let mut windows = IdRanges::new();
        for three in terms.chunks(3).step_by(2) {
            let end = TermId::from_raw(three[three.len() - 1].raw() + 1);
            windows.push(three[0], end);
        }
        let inside = |id: &TermId| windows.contains(*id);
        let expected: Vec<TermId> = expected.into_iter().filter(inside).collect();
        let within = base.ids_with(pair, true, Some(&windows)).unwrap();
        assert_eq!(list(within), expected, "{pair:?} in {windows:?}");
    }
}

/// Neighbours of all terms by each predicate: one by one, located and expanded together.
fn compare_neighbours(base: &Snapshot, quads: &[&Row], terms: &[TermId]) {
    for number in 0..base.predicate_count() {
        let predicate = PredicateId(number as u32);
        let edges = quads.iter().filter(|row| row.1 == predicate);
        let edges: Vec<(TermId, TermId)> = edges.map(|row| (row.0, row.2)).collect();
        for direction in [Direction::Out, Direction::In] {
            let mut expected: Vec<(u32, TermId)> = Vec::new();
            let mut keys = BTreeSet::new();
            for (row, term) in terms.iter().enumerate() {
                let mut list: Vec<TermId> = edges
                    .iter()
                    .map(|(s, o)| {
                        if direction == Direction::Out {
                            (s, o)
                        } else {
                            (o, s)
                        }
                    })
                    .filter(|(key, _)| *key == term)
                    .map(|(_, to)| *to)
                    .collect();
                list.sort_unstable();
                if !list.is_empty() {
                    keys.insert(*term);
                }
                expected.extend(list.into_iter().map(|to| (row as u32, to)));
            }
            let counts = (edges.len() as u64, keys.len() as u64);
            assert_eq!(base.counts(predicate, direction), counts);
            let mut located = Vec::new();
            base.locate(predicate, direction, terms, &mut located);
            let mut found = Vec::new();
            for (row, list) in located.iter().enumerate() {
                let one = base.neighbours(predicate, direction, terms[row]);
                assert_eq!(one.len(), list.len());
                found.extend((0..list.len()).map(|index| (row as u32, list.get(index))));
            }
            assert_eq!(found, expected);
            let mut cursor = Cursor::default();
            let (mut rows, mut out) = (Vec::new(), Vec::new());
            while cursor.key < terms.len() {
                let budget = out.len() + 3;
                base.expand(
                    predicate,
                    direction,
                    terms,
                    &mut cursor,
                    None,
                    budget,
                    &mut rows,
                    &mut out,
                );
            }
            assert_eq!(rows.into_iter().zip(out).collect::<Vec<_>>(), expected);
            for term in terms.iter().filter(|term| term.kind() == TermKind::Vertex) {
                let mut predicates = Vec::new();
                base.predicates_of_vertex(*term, direction, &mut predicates);
                let listed = predicates.contains(&predicate) || predicate == PredicateId::TYPE;
                assert!(listed || !keys.contains(term));
                assert!(keys.contains(term) || predicate == PredicateId::TYPE || !listed);
            }
        }
    }
}

/// Ids of one run are in the order of their texts, and the kinds are right.
/// What a later snapshot says that differs from an earlier one, beside the quads that do.
fn compare_changes(before: &Snapshot, now: &Snapshot) {
    let all = Pattern {
        subject: None,
        predicate: None,
        object: None,
    };
    let rows = |snapshot: &Snapshot| -> BTreeSet<Row> {
        let default = matches(snapshot, all, Graphs::Default);
        let named = matches(snapshot, all, Graphs::Named);
        default.into_iter().chain(named).collect()
    };
    let graphs = |snapshot: &Snapshot| -> BTreeSet<TermId> {
        let mut graphs = BTreeSet::new();
        snapshot.for_each_graph(&mut |graph| {
            graphs.insert(graph);
        });
        graphs
    };
    let (old, new) = (rows(before), rows(now));
    let differing = old.symmetric_difference(&new);
    let mut expected: HashSet<Changed> = differing
        .map(|(_, p, o, g)| match (g.is_none(), *p) {
            (true, PredicateId::TYPE) => Changed::Class(*o),
            (true, p) => Changed::Predicate(p),
            (false, p) => Changed::Named(*g, p),
        })
        .collect();
    let (old, new) = (graphs(before), graphs(now));
    expected.extend(old.symmetric_difference(&new).map(|g| Changed::Graph(*g)));
    let mut said = HashSet::new();
    let flow = now.for_each_changed_since(before, &mut |changed| {
        said.insert(changed);
        ControlFlow::Continue(())
    });
    assert!(flow.is_continue());
    assert!(expected.is_subset(&said), "{expected:?} is not in {said:?}");
    // What changed and changed back is known of predicates only by their versions.
    let superfluous = said.difference(&expected);
    let known = |changed: &Changed| matches!(changed, Changed::Predicate(_));
    assert!(superfluous.clone().all(known), "{superfluous:?}");
}

fn compare_runs(base: &Base) {
    let vertices = (0..base.vertex_count()).map(|local| TermId::vertex(ShardId(0), local));
    let literals = (0..base.literal_count()).map(|local| TermId::literal(ShardId(0), local));
    let ids: Vec<TermId> = vertices.chain(literals).collect();
    let key_of = |id: &TermId| {
        let mut key = Vec::new();
        base.push_key(*id, &mut key);
        key
    };
    let keys: Vec<Vec<u8>> = ids.iter().map(key_of).collect();
    let runs: Vec<Option<TextRun>> = ids.iter().map(|id| base.text_run(*id)).collect();
    for (index, (key, run)) in keys.iter().zip(&runs).enumerate() {
        let expected = match ids[index].kind() {
            TermKind::Vertex if key.starts_with(b"_:") => Some(TextKind::Blank),
            TermKind::Vertex => Some(TextKind::Iri),
            _ => match key::literal(key).expect("it is a literal") {
                literal if literal.language().is_some() => Some(TextKind::LangString),
                literal if literal.datatype() == xsd::STRING => Some(TextKind::String),
                _ => None,
            },
        };
        assert_eq!(run.map(|run| run.kind), expected);
        for (other_key, other) in keys[..index].iter().zip(&runs) {
            assert!(run.is_none() || run != other || other_key < key);
        }
    }
    let mut ends = BTreeMap::new();
    for (id, key) in ids.iter().zip(&keys) {
        if id.kind() == TermKind::Literal {
            let border = key.iter().rposition(|byte| *byte == 0).expect("a border");
            let number = base.literal_end_number(id.local());
            let known = ends.entry(number).or_insert_with(|| key[border..].to_vec());
            assert!(number.is_some() && *known == key[border..]);
        }
    }
    let behind = TermId::literal(ShardId(0), base.literal_count());
    assert_eq!(base.text_run(behind), None);
    let behind = TermId::vertex(ShardId(0), base.vertex_count());
    assert_eq!(base.text_run(behind), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn every_pattern_finds_the_quads_of_the_set(quads in quads(), threads in 1..4_usize) {
        let base = load(&quads, threads);
        compare(&snapshot(base), &quads);
    }

    #[test]
    fn every_version_of_the_changes_finds_its_own_quads(
        quads in quads(),
        batches in prop::collection::vec(
            (any::<prop::sample::Index>(), quads_to_change(), any::<bool>(), any::<bool>()),
            1..6,
        ),
        short_list in 0..5_usize,
        whole_share in 1..4_usize,
    ) {
        // Lists are written out before a batch, and read through after it or not at all.
        let rule = FoldRule { least: 1, share: 9, short_list, changed_share: 2, whole_share };
        let mut model: BTreeSet<String> = quads.iter().map(ToString::to_string).collect();
        let mut now = snapshot(load(&quads, 1));
        let mut known = quads;
        let mut versions = Vec::new();
        for (cut, batch, folds, at_once) in batches {
            let mut fold = folds.then(|| now.fold(rule));
            if at_once && let Some(fold) = fold.take() {
                now.read_through(fold);
            }
            versions.push((now.clone(), model.clone()));
            let (remove, add) = batch.split_at(cut.index(batch.len() + 1));
            // Some of what is there, too.
            let there = known.iter().filter(|quad| model.contains(&quad.to_string()));
            let remove: Vec<Quad> = there.step_by(3).chain(remove).cloned().collect();
            let changes = Changes {
                remove: remove.iter().map(|quad| intern(&mut now, quad)).collect(),
                add: add.iter().map(|quad| intern(&mut now, quad)).collect(),
            };
            let effect = now.apply(&changes);
            let removed = remove.iter().filter(|quad| model.remove(&quad.to_string())).count();
            let added = add.iter().filter(|quad| model.insert(quad.to_string())).count();
            prop_assert_eq!((effect.removed, effect.added), (removed as u64, added as u64));
            compare_changes(&versions.last().unwrap().0, &now);
            compare_changes(&versions[0].0, &now);
            if let Some(fold) = fold {
                // A version reads through what was written out for a later one, too.
                let mut before = versions[0].0.clone();
                before.read_through(now.fold(rule));
                versions.push((before, versions[0].1.clone()));
                let unfolded = now.clone();
                now.read_through(fold);
                let nothing = now.for_each_changed_since(&unfolded, &mut |_| ControlFlow::Break(()));
                prop_assert!(nothing.is_continue(), "to write lists out changes nothing");
            }
            known.extend(batch);
        }
        versions.push((now, model));
        for (version, model) in versions {
            let mut there: Vec<Quad> = known
                .iter()
                .filter(|quad| model.contains(&quad.to_string()))
                .cloned()
                .collect();
            there.sort_by_key(ToString::to_string);
            there.dedup();
            compare(&version, &there);
            compare(&snapshot(rebuild(&version).unwrap()), &there);
        }
    }

    #[test]
    fn ids_do_not_depend_on_order_or_threads(mut quads in quads(), threads in 1..4_usize) {
        let one = snapshot(load(&quads, 1));
        quads.reverse();
        let other = snapshot(load(&quads, threads));
        prop_assert_eq!(rows_of(&one, &quads), rows_of(&other, &quads));
    }

    #[test]
    fn ids_of_a_run_are_in_the_order_of_their_texts(quads in quads()) {
        compare_runs(&load(&quads, 1));
    }

    #[test]
    fn a_store_comes_back_from_its_directory(quads in quads()) {
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory::create(&folder.path().join("store")).unwrap();
        let options = DurabilityOptions::default();
        let (store, _) = DurableStore::create(directory, options.clone(), &load(&[], 1)).unwrap();
        drop(store);
        let directory = Directory::open(&folder.path().join("store")).unwrap();
        let (mut store, before, _) = DurableStore::open(directory, options.clone()).unwrap();
        let next = DurableStore::write_next_base(store.directory(), &load(&quads, 2), 2).unwrap();
        let number = SnapshotNumber(before.number().0 + 1);
        store.replace(2, (&next, number), &[]).unwrap();
        drop(store);
        let directory = Directory::open(&folder.path().join("store")).unwrap();
        let (_, snapshot, _) = DurableStore::open(directory, options).unwrap();
        compare(&snapshot, &quads);
        prop_assert_eq!(snapshot.number(), number);
    }
}

#[test]
fn a_graph_knows_its_own_quads_of_a_subject_that_every_graph_has() {
    let graph = |number: usize| NamedNode::new_unchecked(format!("http://example.org/g{number}"));
    let quads: Vec<Quad> = (0..1000)
        .map(|number| {
            let value = Literal::new_typed_literal((number % 7).to_string(), xsd::INTEGER);
            Quad::new(node(0), predicate(4), value, graph(number))
        })
        .collect();
    let base = snapshot(load(&quads, 2));
    let index = base.base().named().index();
    for number in [0, 1, 500, 999] {
        let found = index.quads(id(&base, &graph(number).into()));
        assert_eq!(found.len(), 1, "not the thousand edges of the subject");
        let asked = base.find_predicate("http://example.org/p4").unwrap();
        assert_eq!(index.of_predicate(found.clone(), asked), found);
        assert_eq!(
            index.of_subject(found.clone(), id(&base, &node(0).into())),
            found
        );
    }
    assert_eq!(base.named_graphs(), 1000);
}
