//! The store beside the naive model: a set of quads, and a loop over it for every pattern.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::ControlFlow;

use jindou_model::{
    Cursor, Direction, GraphRef, IdQuad, IdRanges, Lists, Membership, Pattern, Precision,
    PredicateId, SnapshotNumber, TermId, TermKind, TextKind, inline, key,
};
use jindou_store::bulk::{BulkSink, build, rebuild};
use jindou_store::{
    Base, Changed, Changes, Directory, DurabilityOptions, DurableStore, FoldRule, LayerKind,
    LayerView, Merged, Rebase, Snapshot, Stage,
};
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term};
use proptest::prelude::*;

use crate::counted_ends::compare_ends;

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

fn quad_matches(base: &Snapshot, pattern: Pattern) -> Vec<Row> {
    let mut rows = Vec::new();
    let flow = base.for_each_quad(&pattern, &mut |s, p, o, g| {
        rows.push((s, p, o, g));
        ControlFlow::Continue(())
    });
    assert!(flow.is_continue());
    rows.sort_unstable();
    rows
}

fn matches(base: &Snapshot, pattern: Pattern, graph: GraphRef<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    let flow = base.for_each_match(&pattern, graph, &mut |s, p, o, g| {
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
    compare_counted(base, quads, Pairs::Exact);
}

/// What the edges between vertices with given traits are compared with: a merge of some predicates
/// counts those of the others by the sets that their ends had before.
#[derive(Clone, Copy, PartialEq)]
enum Pairs {
    Exact,
    SumsOnly,
}

fn compare_counted(base: &Snapshot, quads: &[Quad], pairs: Pairs) {
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
    let named: BTreeSet<TermId> = all
        .iter()
        .map(|row| row.3)
        .filter(|g| !g.is_none())
        .collect();
    let some: Vec<TermId> = named.iter().copied().step_by(2).chain([stranger]).collect();
    for (s, p, o, g) in asked {
        for mask in 0..8 {
            let pattern = Pattern {
                subject: (mask & 1 != 0).then_some(s),
                predicate: (mask & 2 != 0).then_some(p),
                object: (mask & 4 != 0).then_some(o),
            };
            let fits = |row: &Row| {
                pattern.subject.is_none_or(|s| s == row.0)
                    && pattern.predicate.is_none_or(|p| p == row.1)
                    && pattern.object.is_none_or(|o| o == row.2)
            };
            for graph in graph_refs(g, &some) {
                let expected: Vec<Row> = rows_in(&all, graph).into_iter().filter(fits).collect();
                let found = matches(base, pattern, graph);
                assert_eq!(found, expected, "{pattern:?} {graph:?}");
            }
            let quads = all.iter().filter(|row| !row.3.is_none() && fits(row));
            assert_eq!(
                quad_matches(base, pattern),
                quads.copied().collect::<Vec<_>>()
            );
        }
    }
    for graph in named.iter().copied().chain([stranger]) {
        for graph in graph_refs(graph, &some) {
            compare_access(base, graph, &all);
        }
    }
    let graphs: Vec<TermId> = named
        .iter()
        .copied()
        .chain([stranger, TermId::NONE])
        .collect();
    for run in [1, 5, 40] {
        compare_each(base, &graphs, run, &all);
    }
    for (kind, graph) in [
        (LayerKind::Default, GraphRef::Default),
        (LayerKind::Named, GraphRef::Named),
    ] {
        compare_statistics(base, kind, &rows_in(&all, graph), pairs);
    }
}

/// Every kind of graph, `one` and `some` among them.
fn graph_refs(one: TermId, some: &[TermId]) -> Vec<GraphRef<'_>> {
    let mut graphs = vec![
        GraphRef::Default,
        GraphRef::Named,
        GraphRef::Union,
        GraphRef::Some(some),
    ];
    if !one.is_none() {
        graphs.push(GraphRef::One(one));
    }
    graphs
}

/// The triples of a graph, with `NONE` for a graph that is none of the quads' own.
fn rows_in(all: &BTreeSet<Row>, graph: GraphRef<'_>) -> BTreeSet<Row> {
    let is_in = |row: &&Row| match graph {
        GraphRef::Default => row.3.is_none(),
        GraphRef::Named => !row.3.is_none(),
        GraphRef::Union => true,
        GraphRef::One(graph) => row.3 == graph,
        GraphRef::Some(graphs) => graphs.contains(&row.3),
        GraphRef::Each(_) => unreachable!("rows are in graphs of their own"),
    };
    let name = |row: &Row| match graph {
        GraphRef::One(graph) => (row.0, row.1, row.2, graph),
        _ => (row.0, row.1, row.2, TermId::NONE),
    };
    all.iter().filter(is_in).map(name).collect()
}

/// The calls with rows, where each row says its graph: `run` rows the same.
fn compare_each(base: &Snapshot, graphs: &[TermId], run: usize, all: &BTreeSet<Row>) {
    let terms: BTreeSet<TermId> = all.iter().flat_map(|row| [row.0, row.2]).collect();
    let terms: Vec<TermId> = terms.into_iter().collect();
    let others: Vec<TermId> = terms.iter().rev().copied().collect();
    let of_row: Vec<TermId> = (0..terms.len())
        .map(|row| graphs[row / run % graphs.len()])
        .collect();
    let is_in = |row: usize, s: TermId, p: PredicateId, o: TermId| {
        !of_row[row].is_none() && all.contains(&(s, p, o, of_row[row]))
    };
    let graph = GraphRef::Each(&of_row);
    for number in 0..base.predicate_count() {
        let predicate = PredicateId(number as u32);
        let quads = all
            .iter()
            .filter(|row| row.1 == predicate && !row.3.is_none());
        assert_eq!(base.named_quads_of(predicate), quads.count() as u64);
        for direction in [Direction::Out, Direction::In] {
            let is_edge = |row: usize, key: TermId, other: TermId| match direction {
                Direction::Out => is_in(row, key, predicate, other),
                Direction::In => is_in(row, other, predicate, key),
            };
            let list = Lists {
                predicate,
                direction,
                keys: &terms,
            };
            let rows = || 0..terms.len();
            let note = format!("{predicate:?} {direction:?}, runs of {run}");
            let mut expected: Vec<(u32, TermId)> = Vec::new();
            for row in rows() {
                let of_row = terms.iter().filter(|id| is_edge(row, terms[row], **id));
                expected.extend(of_row.map(|id| (row as u32, *id)));
            }
            assert_eq!(expanded(base, graph, &[list], None), expected, "{note}");
            let mut found = Vec::new();
            base.contains(graph, &list, &others, &mut found);
            let contained = rows().filter(|row| is_edge(*row, terms[*row], others[*row]));
            let contained: Vec<u32> = contained.map(|row| row as u32).collect();
            assert_eq!(found, contained, "{note}");
            let mut degrees = Vec::new();
            base.degrees(graph, &list, None, &mut degrees);
            let degree = |row: usize| expected.iter().filter(|e| e.0 == row as u32).count() as u64;
            assert_eq!(degrees, rows().map(degree).collect::<Vec<_>>(), "{note}");
            let pair = [
                list,
                Lists {
                    keys: &others,
                    ..list
                },
            ];
            let both =
                |(row, id): &&(u32, TermId)| is_edge(*row as usize, others[*row as usize], *id);
            let both: Vec<(u32, TermId)> = expected.iter().filter(both).copied().collect();
            assert_eq!(expanded(base, graph, &pair, None), both, "{note}");
        }
    }
}

fn list_of(ids: &IdRanges) -> Vec<TermId> {
    let mut found = Vec::new();
    ids.copy(0, usize::MAX >> 1, &mut found);
    found
}

/// Every call of the access to graphs beside the triples of the graph.
fn compare_access(base: &Snapshot, graph: GraphRef<'_>, all: &BTreeSet<Row>) {
    let rows = rows_in(all, graph);
    compare_ends(base, graph, &rows);
    let terms: BTreeSet<TermId> = all.iter().flat_map(|row| [row.0, row.2]).collect();
    let terms: Vec<TermId> = terms.into_iter().collect();
    let mut allowed = IdRanges::new();
    for id in terms.iter().step_by(2) {
        allowed.push(*id, TermId::from_raw(id.raw() + 1));
    }
    let predicates = 0..base.predicate_count();
    for predicate in predicates.map(|number| PredicateId(number as u32)) {
        let count = rows.iter().filter(|row| row.1 == predicate).count() as u64;
        assert!(
            base.edges(graph, predicate)
                .is_none_or(|edges| edges == count),
            "{graph:?}"
        );
        for direction in [Direction::Out, Direction::In] {
            let list = Lists {
                predicate,
                direction,
                keys: &terms,
            };
            let edges: BTreeSet<(TermId, TermId)> = rows
                .iter()
                .filter(|row| row.1 == predicate)
                .map(|row| match direction {
                    Direction::Out => (row.0, row.2),
                    Direction::In => (row.2, row.0),
                })
                .collect();
            for allowed in [None, Some(&allowed)] {
                let is_allowed = |id: &TermId| allowed.is_none_or(|ids| ids.contains(*id));
                let expected: Vec<(u32, TermId)> = (0..)
                    .zip(&terms)
                    .flat_map(|(row, key)| {
                        edges
                            .iter()
                            .filter(move |e| e.0 == *key)
                            .map(move |e| (row, e.1))
                    })
                    .filter(|(_, id)| is_allowed(id))
                    .collect();
                let found = expanded(base, graph, &[list], allowed);
                assert_eq!(found, expected, "{graph:?} {predicate:?} {direction:?}");
                let mut degrees = Vec::new();
                base.degrees(graph, &list, allowed, &mut degrees);
                let degree =
                    |row: usize| expected.iter().filter(|e| e.0 == row as u32).count() as u64;
                assert_eq!(degrees, (0..terms.len()).map(degree).collect::<Vec<_>>());
            }
            let others: Vec<TermId> = terms.iter().rev().copied().collect();
            let mut found = Vec::new();
            base.contains(graph, &list, &others, &mut found);
            let is_edge =
                |row: &u32| edges.contains(&(terms[*row as usize], others[*row as usize]));
            let expected: Vec<u32> = (0..terms.len() as u32).filter(is_edge).collect();
            assert_eq!(found, expected);
            compare_places(base, graph, &list, &edges);
            // What has an edge and a type, and what a predicate's keys are.
            let keys: BTreeSet<TermId> = edges.iter().map(|edge| edge.0).collect();
            let asked = [Membership::Has(predicate, direction)];
            let members = base
                .members(graph, &asked, Precision::Exact, None)
                .expect("it is exact");
            let members: BTreeSet<TermId> = list_of(&members).into_iter().collect();
            assert!(keys.is_subset(&members), "{graph:?} {asked:?}");
            let pair = [
                list,
                Lists {
                    direction: direction.reverse(),
                    keys: &others,
                    ..list
                },
            ];
            let both: Vec<(u32, TermId)> = (0..)
                .zip(terms.iter().zip(&others))
                .flat_map(|(row, (key, other))| {
                    let of_key = edges.iter().filter(move |e| e.0 == *key).map(|e| e.1);
                    of_key
                        .filter(|id| edges.contains(&(*id, *other)))
                        .map(move |id| (row, id))
                        .collect::<Vec<_>>()
                })
                .collect();
            assert_eq!(
                expanded(base, graph, &pair, None),
                both,
                "{graph:?} {predicate:?}"
            );
        }
    }
    let classes = rows
        .iter()
        .filter(|row| row.1 == PredicateId::TYPE)
        .map(|row| row.2);
    for class in classes.collect::<BTreeSet<_>>() {
        let of_class = |row: &&Row| row.1 == PredicateId::TYPE && row.2 == class;
        let expected: BTreeSet<TermId> = rows.iter().filter(of_class).map(|row| row.0).collect();
        let asked = [Membership::Type(class)];
        for precision in [Precision::Filter, Precision::Exact] {
            let members = base
                .members(graph, &asked, precision, None)
                .expect("types are honoured");
            let expected: Vec<TermId> = expected.iter().copied().collect();
            assert_eq!(list_of(&members), expected, "{graph:?} {class:?}");
        }
        compare_filters(base, graph, &rows, (class, &expected));
    }
    if graph == GraphRef::Named {
        compare_graphs_of(base, &rows, all);
    }
}

/// What leaves out all but a class among ids that have a predicate tells these apart.
fn compare_filters(
    base: &Snapshot,
    graph: GraphRef<'_>,
    rows: &BTreeSet<Row>,
    (class, of_class): (TermId, &BTreeSet<TermId>),
) {
    let predicates: BTreeSet<PredicateId> = rows.iter().map(|row| row.1).collect();
    for predicate in predicates {
        for direction in [Direction::Out, Direction::In] {
            let of_predicate = rows.iter().filter(|row| row.1 == predicate);
            let known: BTreeSet<TermId> = match direction {
                Direction::Out => of_predicate.map(|row| row.0).collect(),
                Direction::In => of_predicate.map(|row| row.2).collect(),
            };
            let precision = Precision::FilterOf(Membership::Has(predicate, direction));
            let filter = base.members(graph, &[Membership::Type(class)], precision, None);
            let filter = filter.expect("types are honoured");
            let found = known.iter().filter(|id| filter.contains(**id));
            let expected = known.intersection(of_class);
            assert!(found.eq(expected), "{graph:?} {class:?} {precision:?}");
        }
    }
}

fn expanded(
    base: &Snapshot,
    graph: GraphRef<'_>,
    lists: &[Lists<'_>],
    allowed: Option<&IdRanges>,
) -> Vec<(u32, TermId)> {
    let mut cursor = Cursor::default();
    let mut found = Vec::new();
    while cursor.key < lists[0].keys.len() {
        let (mut rows, mut out) = (Vec::new(), Vec::new());
        base.expand(graph, lists, &mut cursor, allowed, 3, &mut rows, &mut out);
        assert_eq!(rows.len(), out.len());
        found.extend(rows.into_iter().zip(out));
    }
    // Those of a key come in any order.
    assert!(found.is_sorted_by_key(|(row, _)| *row));
    found.sort_unstable();
    found
}

/// The places of each key, shared out by twos.
fn compare_places(
    base: &Snapshot,
    graph: GraphRef<'_>,
    list: &Lists<'_>,
    edges: &BTreeSet<(TermId, TermId)>,
) {
    for key in list.keys {
        let keys = [*key];
        let list = Lists {
            keys: &keys,
            ..*list
        };
        let mut found = Vec::new();
        for from in (0..base.places(graph, &list)).step_by(2) {
            let mut cursor = Cursor {
                key: 0,
                offset: from as usize,
            };
            let end = from as usize + 2;
            while cursor.key == 0 && cursor.offset < end {
                let budget = end - cursor.offset;
                let (mut rows, mut out) = (Vec::new(), Vec::new());
                let lists = [list];
                base.expand(
                    graph,
                    &lists,
                    &mut cursor,
                    None,
                    budget,
                    &mut rows,
                    &mut out,
                );
                found.extend(out);
            }
        }
        found.sort_unstable();
        let expected: Vec<TermId> = edges.iter().filter(|e| e.0 == *key).map(|e| e.1).collect();
        assert_eq!(found, expected, "{graph:?} {list:?}");
    }
}

/// The graphs of each edge of the named layer.
fn compare_graphs_of(base: &Snapshot, rows: &BTreeSet<Row>, all: &BTreeSet<Row>) {
    for (s, p, o, _) in rows {
        let (keys, to) = ([*s], [*o]);
        let list = Lists {
            predicate: *p,
            direction: Direction::Out,
            keys: &keys,
        };
        let (mut at, mut graphs) = (Vec::new(), Vec::new());
        base.graphs_of(&list, &to, &mut at, &mut graphs);
        graphs.sort_unstable();
        let of_edge = all
            .iter()
            .filter(|row| !row.3.is_none() && (row.0, row.1, row.2) == (*s, *p, *o));
        let expected: Vec<TermId> = of_edge.map(|row| row.3).collect();
        assert_eq!(graphs, expected);
        assert!(at.iter().all(|row| *row == 0));
    }
}

fn compare_statistics(snapshot: &Snapshot, kind: LayerKind, all: &BTreeSet<Row>, pairs: Pairs) {
    let base = snapshot.layer(kind);
    assert_eq!(base.edges(), all.len() as u64);
    let has = |vertex: TermId, asked: Membership| {
        all.iter().any(|(s, p, o, _)| match asked {
            Membership::Type(class) => *s == vertex && *p == PredicateId::TYPE && *o == class,
            Membership::Has(predicate, Direction::Out) => *s == vertex && *p == predicate,
            Membership::Has(predicate, Direction::In) => *o == vertex && *p == predicate,
        })
    };
    let mut terms: Vec<TermId> = all.iter().flat_map(|row| [row.0, row.2]).collect();
    terms.sort_unstable();
    terms.dedup();
    let mut traits: Vec<Membership> = all
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
    let predicates = snapshot.predicate_count();
    compare_neighbours(base, predicates, all, &terms);
    for pair in traits.windows(2) {
        for number in 1..predicates {
            let predicate = PredicateId(number as u32);
            let (of_subject, of_object) = match pairs {
                Pairs::Exact => pair.split_at(1),
                Pairs::SumsOnly => Default::default(),
            };
            if let Some(edges) = base
                .clusters()
                .edges_between(predicate, of_subject, of_object)
                .filter(|_| snapshot.changes() == 0)
            {
                let expected = all
                    .iter()
                    .filter(|row| row.1 == predicate && row.2.kind() == TermKind::Vertex)
                    .filter(|row| of_subject.iter().all(|asked| has(row.0, *asked)))
                    .filter(|row| of_object.iter().all(|asked| has(row.2, *asked)))
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
        let all = base.ids_with(pair, true, None).unwrap();
        assert_eq!(list_of(&all), expected, "{pair:?}");
        // Every other third of the terms, and what lies behind the last.
        let mut windows = IdRanges::new();
        for three in terms.chunks(3).step_by(2) {
            let end = TermId::from_raw(three[three.len() - 1].raw() + 1);
            windows.push(three[0], end);
        }
        let inside = |id: &TermId| windows.contains(*id);
        let expected: Vec<TermId> = expected.into_iter().filter(inside).collect();
        let within = base.ids_with(pair, true, Some(&windows)).unwrap();
        assert_eq!(list_of(&within), expected, "{pair:?} in {windows:?}");
    }
}

/// Neighbours of all terms by each predicate: one by one, located and expanded together.
fn compare_neighbours(
    base: LayerView<'_>,
    predicates: usize,
    quads: &BTreeSet<Row>,
    terms: &[TermId],
) {
    for number in 0..predicates {
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
        let default = matches(snapshot, all, GraphRef::Default);
        let named = quad_matches(snapshot, all);
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
    for changed in &expected {
        let (layer, predicate) = match changed {
            Changed::Predicate(predicate) => (LayerKind::Default, *predicate),
            Changed::Class(_) => (LayerKind::Default, PredicateId::TYPE),
            Changed::Named(_, predicate) => (LayerKind::Named, *predicate),
            Changed::Graph(_) => continue,
        };
        let [new, old] = [now, before].map(|one| one.version_of(layer, predicate));
        assert_ne!(new, old, "{changed:?}");
    }
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

fn compare_runs(snapshot: &Snapshot) {
    let (base, order) = (snapshot.base(), snapshot.text_order());
    let vertices = (0..base.vertex_count()).map(TermId::vertex);
    let literals = (0..base.literal_count()).map(TermId::literal);
    let ids: Vec<TermId> = vertices.chain(literals).collect();
    let key_of = |id: &TermId| {
        let mut key = Vec::new();
        base.push_key(*id, &mut key);
        key
    };
    let keys: Vec<Vec<u8>> = ids.iter().map(key_of).collect();
    let run_of = |id: &TermId| order.place(*id).map(|place| (place.kind, place.run));
    let runs: Vec<Option<(TextKind, u32)>> = ids.iter().map(run_of).collect();
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
        assert_eq!(run.map(|run| run.0), expected);
        for (other_key, other) in keys[..index].iter().zip(&runs) {
            assert!(run.is_none() || run != other || other_key < key);
        }
    }
    let mut ends = BTreeMap::new();
    for (id, key) in ids.iter().zip(&keys) {
        if id.kind() == TermKind::Literal {
            let border = key.iter().rposition(|byte| *byte == 0).expect("a border");
            let number = base.literal_end_number(id.number());
            let known = ends.entry(number).or_insert_with(|| key[border..].to_vec());
            assert!(number.is_some() && *known == key[border..]);
        }
    }
    let behind = TermId::literal(base.literal_count());
    assert_eq!(order.place(behind), None);
    let behind = TermId::vertex(base.vertex_count());
    assert_eq!(order.place(behind), None);
}

/// Removes a part of a batch, and some of what is there, and adds the rest.
fn change(
    now: &mut Snapshot,
    model: &mut BTreeSet<String>,
    known: &[Quad],
    batch: &[Quad],
    cut: prop::sample::Index,
) {
    let (remove, add) = batch.split_at(cut.index(batch.len() + 1));
    let there = known
        .iter()
        .filter(|quad| model.contains(&quad.to_string()));
    let remove: Vec<Quad> = there.step_by(3).chain(remove).cloned().collect();
    change_by(now, model, &remove, add);
}

/// Removes some quads, and then adds others.
fn change_by(now: &mut Snapshot, model: &mut BTreeSet<String>, remove: &[Quad], add: &[Quad]) {
    let since = now.known_terms();
    let changes = Changes {
        remove: remove.iter().map(|quad| intern(now, quad)).collect(),
        add: add.iter().map(|quad| intern(now, quad)).collect(),
    };
    let mut stage = Stage {
        changes,
        ..Stage::default()
    };
    now.arrange(since, &mut stage, &mut []);
    now.apply_stage(&stage);
    now.keep_terms();
    now.set_number(SnapshotNumber(now.number().0 + 1));
    remove.iter().for_each(|quad| {
        model.remove(&quad.to_string());
    });
    model.extend(add.iter().map(ToString::to_string));
}

fn there(known: &[Quad], model: &BTreeSet<String>) -> Vec<Quad> {
    let is_there = |quad: &&Quad| model.contains(&quad.to_string());
    let mut there: Vec<Quad> = known.iter().filter(is_there).cloned().collect();
    there.sort_by_key(ToString::to_string);
    there.dedup();
    there
}

proptest! {
    #![proptest_config(crate::cases(24))]
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
            let there = there(&known, &model);
            compare(&version, &there);
            compare(&snapshot(rebuild(&version).unwrap()), &there);
        }
    }

    #[test]
    fn a_merge_of_some_predicates_changes_neither_answers_nor_ids(
        quads in quads(),
        batches in prop::collection::vec(
            (any::<prop::sample::Index>(), quads_to_change(), any::<u16>(), any::<bool>()),
            1..6,
        ),
    ) {
        let mut model: BTreeSet<String> = quads.iter().map(ToString::to_string).collect();
        let mut now = snapshot(load(&quads, 1));
        let mut known = quads;
        let mut ids: BTreeMap<String, (Quad, IdQuad)> = BTreeMap::new();
        for (round, (cut, batch, mask, is_late)) in batches.into_iter().enumerate() {
            // What changes meanwhile is upon the merged base, too.
            let start = now.clone();
            if !is_late {
                change(&mut now, &mut model, &known, &batch, cut);
                known.extend(batch.clone());
            }
            let from = if is_late { start } else { now.clone() };
            let all = from.changed_predicates().into_iter().map(|one| one.predicate);
            let chosen = all.filter(|id| mask >> (id.0 % 16) & 1 == 1).collect();
            from.close_extents();
            let merged = Merged::new(from, chosen).unwrap();
            if is_late {
                change(&mut now, &mut model, &known, &batch, cut);
                known.extend(batch);
            }
            let rebase = Rebase::new(merged, &now);
            let before = now;
            now = rebase.apply(&before);
            for (layer, predicate) in [LayerKind::Default, LayerKind::Named]
                .into_iter()
                .flat_map(|layer| (0..40).map(move |number| (layer, PredicateId(number))))
            {
                let versions = [&now, &before].map(|one| one.version_of(layer, predicate));
                prop_assert_eq!(versions[0], versions[1], "a merge changes nothing");
            }
            now.forget_terms(rebase.unused());
            now.base().verify().unwrap();
            let there = there(&known, &model);
            compare_counted(&now, &there, Pairs::SumsOnly);
            compare_counted(&before, &there, Pairs::SumsOnly);
            ids.retain(|text, _| model.contains(text));
            for quad in &there {
                let id = intern(&mut now, quad);
                let (_, first) = ids.entry(quad.to_string()).or_insert((quad.clone(), id));
                prop_assert_eq!(*first, id, "{} in round {}", quad, round);
            }
            compare(&snapshot(rebuild(&now).unwrap()), &there);
        }
    }

    #[test]
    fn a_snapshot_that_waited_is_merged_upon_the_base_of_one_before(
        quads in quads(),
        batches in prop::collection::vec((any::<prop::sample::Index>(), quads_to_change()), 3),
        masks in any::<[u16; 2]>(),
        is_undone in any::<bool>(),
    ) {
        let mut model: BTreeSet<String> = quads.iter().map(ToString::to_string).collect();
        let mut now = snapshot(load(&quads, 1));
        let mut known = quads;
        let mut versions: Vec<(Snapshot, BTreeSet<String>)> = Vec::new();
        for (round, (cut, batch)) in batches.into_iter().enumerate() {
            match round == 2 && is_undone {
                // Then nothing is left of what the second one changed.
                true => {
                    let [was, is] = [0, 1].map(|place| there(&known, &versions[place].1));
                    change_by(&mut now, &mut model, &is, &was);
                }
                false => change(&mut now, &mut model, &known, &batch, cut),
            }
            known.extend(batch);
            now.close_extents();
            versions.push((now.clone(), model.clone()));
        }
        for (place, mask) in masks.into_iter().enumerate() {
            let from = versions[place].0.clone();
            let all = from.changed_predicates().into_iter().map(|one| one.predicate);
            let chosen = all.filter(|id| mask >> (id.0 % 16) & 1 == 1).collect();
            let merged = Merged::new(from, chosen).unwrap();
            let rebase = Rebase::new(merged, &versions.last().unwrap().0);
            for (version, model) in &mut versions[place..] {
                *version = rebase.apply(version);
                version.base().verify().unwrap();
                compare_counted(version, &there(&known, model), Pairs::SumsOnly);
            }
        }
        let (latest, model) = versions.pop().unwrap();
        compare(&snapshot(rebuild(&latest).unwrap()), &there(&known, &model));
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
        compare_runs(&snapshot(load(&quads, 1)));
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
        store.replace(2, (&next, number)).unwrap();
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
    let asked = base.find_predicate("http://example.org/p4").unwrap();
    for number in [0, 1, 500, 999] {
        let graph = id(&base, &graph(number).into());
        assert_eq!(base.graph_quads(graph, Some(asked)), 1);
        assert_eq!(base.predicates_of_graph(graph), [asked]);
    }
    // Seven edges, each in every seventh graph.
    assert_eq!(base.named_layer().edges(), 7);
    assert_eq!(base.named_graphs(), 1000);
}

#[test]
fn a_list_goes_on_where_it_ended_whichever_keys_are_asked_for_with_it() {
    let node = |text: String| NamedNode::new_unchecked(format!("http://example.org/{text}"));
    let mut quads = Vec::new();
    let mut add = |subject: u32, object: u32, graph: &str| {
        let (s, o) = (node(format!("s{subject}")), node(format!("o{object:04}")));
        let p = node("p".to_owned());
        quads.push(Quad::new(s, p, o, node(graph.to_owned())));
    };
    for subject in 0..6 {
        for object in 0..1000 {
            let is_own = subject == 5 && object % 2 == 1;
            add(subject, object, if is_own { "g" } else { "others" });
        }
    }
    let base = snapshot(load(&quads, 1));
    let id_of = |text: String| id(&base, &node(text).into());
    let keys: Vec<TermId> = (0..6).map(|number| id_of(format!("s{number}"))).collect();
    let list = Lists {
        predicate: base.find_predicate("http://example.org/p").unwrap(),
        direction: Direction::Out,
        keys: &keys,
    };
    let graph = GraphRef::One(id_of("g".to_owned()));
    let found = expanded(&base, graph, &[list], None);
    assert_eq!(found.len(), 500);
    let mut expected: Vec<(u32, TermId)> = (0..1000)
        .filter(|object| object % 2 == 1)
        .map(|object| (5, id_of(format!("o{object:04}"))))
        .collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn a_long_list_is_read_in_the_graph_of_its_row() {
    let node = |text: String| NamedNode::new_unchecked(format!("http://example.org/{text}"));
    let mut quads = Vec::new();
    let mut add = |subject: u32, object: u32, graph: u32| {
        let (s, o) = (node(format!("s{subject}")), node(format!("o{object:04}")));
        let (p, g) = (node("p".to_owned()), node(format!("g{graph}")));
        quads.push(Quad::new(s, p, o, g));
    };
    // Two hubs of which each of three hundred graphs has ten edges, and vertices of few edges.
    for object in 0..3000 {
        add(0, object, object % 300);
        add(1, object, object / 10);
    }
    for subject in 2..40 {
        for object in 0..7 {
            add(subject, 100 * subject + object, (subject + object) % 5);
        }
    }
    let base = snapshot(load(&quads, 1));
    let id_of = |text: String| id(&base, &node(text).into());
    let rows: Vec<(u32, u32)> = (0..400)
        .map(|row| match row % 3 {
            0 => (row % 2, row % 300),
            _ => (row % 40, row % 5),
        })
        .collect();
    let keys: Vec<TermId> = rows
        .iter()
        .map(|row| id_of(format!("s{}", row.0)))
        .collect();
    let graphs: Vec<TermId> = rows
        .iter()
        .map(|row| id_of(format!("g{}", row.1)))
        .collect();
    let list = Lists {
        predicate: base.find_predicate("http://example.org/p").unwrap(),
        direction: Direction::Out,
        keys: &keys,
    };
    let mut expected: Vec<(u32, TermId)> = Vec::new();
    for (row, (subject, graph)) in (0..).zip(&rows) {
        let quads = quads.iter().filter(|quad| {
            quad.subject == node(format!("s{subject}")).into()
                && quad.graph_name == node(format!("g{graph}")).into()
        });
        expected.extend(quads.map(|quad| (row, id(&base, &quad.object))));
    }
    expected.sort_unstable();
    assert!(expected.len() > 1000);
    let found = expanded(&base, GraphRef::Each(&graphs), &[list], None);
    assert_eq!(found, expected);
}

#[test]
fn vertices_are_at_home_in_the_graph_that_says_most_of_them() {
    let iri = |text: String| NamedNode::new_unchecked(format!("http://example.org/{text}"));
    let mut quads = Vec::new();
    for number in 0..600 {
        let subject = iri(format!("s{number:03}"));
        let home = iri(format!("g{}", number % 3));
        let mut add = |predicate: NamedNode, object: Term, graph: &NamedNode| {
            quads.push(Quad::new(subject.clone(), predicate, object, graph.clone()));
        };
        add(rdf::TYPE.into_owned(), node(1).into(), &home);
        let next = iri(format!("s{:03}", (number + 3) % 600));
        add(predicate(4), next.into(), &home);
        add(predicate(5), Literal::from(number).into(), &home);
        if number % 50 == 0 {
            // Something that another graph says of it, and something that two say.
            add(
                predicate(6),
                Literal::from("other").into(),
                &iri("g9".to_owned()),
            );
            add(
                predicate(5),
                Literal::from(number).into(),
                &iri("g9".to_owned()),
            );
        }
    }
    let base = load(&quads, 2);
    let footprint = base.footprint().named;
    assert!(footprint < 600 * 12, "{footprint} bytes");
    let mut now = snapshot(base);
    compare_runs(&now);
    let rows = rows_of(&now, &quads);
    for graph in [0, 1, 2, 9].map(|number| id(&now, &iri(format!("g{number}")).into())) {
        compare_access(&now, GraphRef::One(graph), &rows);
    }
    compare_access(&now, GraphRef::Named, &rows);
    // Another graph says of a vertex what its home does, and the home no more; and a type moves.
    let moved = |graph: &str| {
        let of = |predicate: NamedNode, object: Term| {
            Quad::new(
                iri("s003".to_owned()),
                predicate,
                object,
                iri(graph.to_owned()),
            )
        };
        let next = iri("s006".to_owned());
        [
            of(predicate(4), next.into()),
            of(rdf::TYPE.into_owned(), node(1).into()),
        ]
    };
    let intern_all =
        |now: &mut Snapshot, quads: &[Quad]| quads.iter().map(|quad| intern(now, quad)).collect();
    let changes = Changes {
        remove: intern_all(&mut now, &moved("g0")),
        add: intern_all(&mut now, &moved("g9")),
    };
    now.apply(&changes);
    quads.retain(|quad| !moved("g0").contains(quad));
    quads.extend(moved("g9"));
    let rows = rows_of(&now, &quads);
    for graph in [0, 1, 9].map(|number| id(&now, &iri(format!("g{number}")).into())) {
        compare_access(&now, GraphRef::One(graph), &rows);
    }
    compare_access(&now, GraphRef::Named, &rows);
    compare_access(
        &snapshot(rebuild(&now).unwrap()),
        GraphRef::Named,
        &rows_of(&snapshot(rebuild(&now).unwrap()), &quads),
    );
}

#[test]
fn many_quads_of_named_graphs_come_and_go() {
    let quad = |number: usize, graph: usize| {
        let subject = NamedNode::new_unchecked(format!("http://example.org/s{number}"));
        let graph = NamedNode::new_unchecked(format!("http://example.org/g{graph}"));
        Quad::new(subject, predicate(4), node(1), graph)
    };
    let mut now = snapshot(load(&[quad(0, 0), quad(0, 1)], 1));
    let both: Vec<Quad> = (0..500).flat_map(|n| [quad(n, 0), quad(n, 1)]).collect();
    let one: Vec<Quad> = (0..500).map(|number| quad(number, 0)).collect();
    for (add, remove, left) in [
        (&both, &one[..0], 1000),
        (&one, &one, 1000),
        (&one, &both, 500),
    ] {
        let changes = Changes {
            remove: remove.iter().map(|quad| intern(&mut now, quad)).collect(),
            add: add.iter().map(|quad| intern(&mut now, quad)).collect(),
        };
        now.apply(&changes);
        assert_eq!(now.named_quads(), left);
        assert_eq!(now.named_layer().edges(), 500);
    }
    let changes = Changes {
        remove: both.iter().map(|quad| intern(&mut now, quad)).collect(),
        add: Vec::new(),
    };
    now.apply(&changes);
    assert_eq!((now.named_quads(), now.named_layer().edges()), (0, 0));
    assert_eq!(now.named_graphs(), 0);
}

#[test]
fn quads_of_the_base_and_newer_ones_go_together() {
    let quad = |number: usize, graph: usize| {
        let subject = NamedNode::new_unchecked(format!("http://example.org/s{number}"));
        let graph = NamedNode::new_unchecked(format!("http://example.org/g{graph}"));
        Quad::new(subject, predicate(4), node(1), graph)
    };
    for count in [1, 20, 40, 200, 1000] {
        let base: Vec<Quad> = (0..3).map(|number| quad(number, 0)).collect();
        let newer: Vec<Quad> = (3..count).map(|number| quad(number, 0)).collect();
        let mut now = snapshot(load(&base, 1));
        let ids = |now: &mut Snapshot, quads: &[Quad]| -> Vec<IdQuad> {
            quads.iter().map(|quad| intern(now, quad)).collect()
        };
        let add = ids(&mut now, &newer);
        now.apply(&Changes {
            remove: Vec::new(),
            add,
        });
        let all: Vec<Quad> = base.iter().chain(&newer).cloned().collect();
        let remove = ids(&mut now, &all);
        now.apply(&Changes {
            remove,
            add: Vec::new(),
        });
        assert_eq!(
            (now.named_quads(), now.named_layer().edges()),
            (0, 0),
            "{count}"
        );
        // And move to another graph.
        let moved: Vec<Quad> = (0..count).map(|number| quad(number, 1)).collect();
        let add = ids(&mut now, &moved);
        now.apply(&Changes {
            remove: Vec::new(),
            add,
        });
        let rows = rows_of(&now, &moved);
        let graph = rows.first().expect("there is one").3;
        compare_access(&now, GraphRef::One(graph), &rows);
    }
}

#[test]
fn a_key_that_comes_again_has_its_neighbours_again() {
    for (few, many, others) in [
        (20, 3_000, 0),
        (20, 100, 0),
        (20, 500, 5_000),
        (3, 40, 900),
        (300, 600, 9),
    ] {
        for predicate in ["http://e/p", rdf::TYPE.as_str()] {
            a_key_comes_again(predicate, (few, many, others));
        }
    }
}

/// Edges of one key in a graph, in another one, and those of other keys in the first.
fn a_key_comes_again(predicate: &str, (few, many, others): (usize, usize, usize)) {
    let iri = |text: String| NamedNode::new_unchecked(text);
    let quad = |subject: String, object: String, graph: &str| {
        let graph = iri(format!("http://e/{graph}"));
        Quad::new(
            iri(format!("http://e/{subject}")),
            iri(predicate.to_owned()),
            iri(format!("http://e/{object}")),
            graph,
        )
    };
    let few_of = (0..few).map(|number| quad(format!("s{number}"), "o".to_owned(), "g"));
    let many_of = (0..many).map(|number| quad(format!("x{number}"), "o".to_owned(), "h"));
    let others = (0..others).map(|number| quad(format!("s{number}"), format!("y{number}"), "g"));
    let quads: Vec<Quad> = few_of.chain(many_of).chain(others).collect();
    let snapshot = snapshot(load(&quads, 1));
    let id = |text: &str| snapshot.find_node(text.as_bytes()).expect("it is there");
    let (key, graph) = (id("http://e/o"), id("http://e/g"));
    let predicate = snapshot.find_predicate(predicate).expect("it is there");
    for keys in [vec![key], vec![key; 2], vec![key; 10]] {
        let list = Lists {
            predicate,
            direction: Direction::In,
            keys: &keys,
        };
        for graphs in [GraphRef::One(graph), GraphRef::Some(&[graph])] {
            for budget in [1, 7, 400, 10_000] {
                let (mut rows, mut out) = (Vec::new(), Vec::new());
                let mut cursor = Cursor::default();
                while cursor.key < keys.len() {
                    let room = out.len() + budget;
                    snapshot.expand(
                        graphs,
                        &[list],
                        &mut cursor,
                        None,
                        room,
                        &mut rows,
                        &mut out,
                    );
                }
                let place = format!("{few} {many} {} keys, {budget}, {graphs:?}", keys.len());
                assert_eq!(out.len(), few * keys.len(), "{place}");
                let expected = (0..keys.len() as u32).flat_map(|row| vec![row; few]);
                assert!(rows.iter().copied().eq(expected), "{place}");
            }
        }
    }
}
