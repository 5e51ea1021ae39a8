//! A table after merges against one made from scratch for the same graph.

use std::collections::{BTreeMap, BTreeSet};

use jindou_model::Change;

use super::super::*;
use crate::segment::Segment;

/// Each stands for a sequence of merges.
const SEEDS: std::ops::Range<u64> = 0..60;
const ROUNDS: usize = 8;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// Edges as raw ids and predicates.
#[derive(Clone, Default)]
struct Graph {
    vertices: u64,
    predicates: usize,
    edges: BTreeSet<(PredicateId, u64, u64)>,
    types: BTreeSet<(u64, u64)>,
}

/// Types, and degrees by predicate and direction.
type VertexTraits = (Vec<u64>, [BTreeMap<PredicateId, u64>; 2]);

/// A sequence of segments by direction and predicate.
type Segments = [Vec<Option<Segment>>; 2];

fn is_vertex(raw: u64) -> bool {
    TermId::from_raw(raw).kind() == TermKind::Vertex
}

impl Graph {
    /// Pairs of key and neighbour of a predicate, sorted.
    fn pairs(&self, predicate: PredicateId, direction: Direction) -> Vec<(u64, u64)> {
        let of_predicate = self.edges.range((predicate, 0, 0)..=(predicate, !0, !0));
        let mut pairs: Vec<(u64, u64)> = of_predicate
            .map(|(_, subject, object)| match direction {
                Direction::Out => (*subject, *object),
                Direction::In => (*object, *subject),
            })
            .collect();
        pairs.sort_unstable();
        pairs
    }

    fn segments(&self) -> Segments {
        [Direction::Out, Direction::In].map(|direction| {
            (0..self.predicates as u32)
                .map(|number| self.pairs(PredicateId(number), direction))
                .map(|pairs| (!pairs.is_empty()).then(|| Segment::from_sorted(&pairs)))
                .collect()
        })
    }

    fn traits(&self) -> Vec<VertexTraits> {
        let mut traits = vec![VertexTraits::default(); self.vertices as usize];
        for (subject, class) in &self.types {
            traits[TermId::from_raw(*subject).number() as usize]
                .0
                .push(*class);
        }
        for (predicate, subject, object) in &self.edges {
            for (direction, raw) in [(0, *subject), (1, *object)] {
                if is_vertex(raw) {
                    let of_vertex = &mut traits[TermId::from_raw(raw).number() as usize];
                    *of_vertex.1[direction].entry(*predicate).or_default() += 1;
                }
            }
        }
        traits
    }

    /// The table made naively.
    fn table(&self) -> Clusters {
        type Key = (Vec<u64>, [Vec<PredicateId>; 2]);
        let key = |(types, degrees): &VertexTraits| -> Key {
            let ids = |d: usize| degrees[d].keys().copied().collect();
            (types.clone(), [ids(0), ids(1)])
        };
        let traits = self.traits();
        let mut sets: BTreeMap<Key, [BTreeMap<PredicateId, u64>; 2]> = BTreeMap::new();
        for of_vertex in &traits {
            let sums = sets.entry(key(of_vertex)).or_default();
            for (sum, degrees) in sums.iter_mut().zip(&of_vertex.1) {
                for (predicate, degree) in degrees {
                    *sum.entry(*predicate).or_default() += degree;
                }
            }
        }
        let number = |of: &Key| sets.keys().position(|key| key == of).unwrap() as u32;
        let numbers: Vec<u32> = traits.iter().map(|of| number(&key(of))).collect();
        let (mut starts, mut set_of) = (vec![0], Vec::new());
        for run in numbers.chunk_by(|a, b| a == b) {
            starts.push(starts[starts.len() - 1] + run.len() as u64);
            set_of.push(run[0]);
        }
        let mut types = Lists::default();
        let mut has = [Lists::default(), Lists::default()];
        for ((of_set, _), sums) in &sets {
            types.push(of_set.iter().copied());
            for (lists, sums) in has.iter_mut().zip(sums) {
                lists.push(sums.iter().map(|(predicate, edges)| (*predicate, *edges)));
            }
        }
        let stretches = Stretches::from_parts(starts, set_of).unwrap();
        Clusters::new(stretches, types, has, self.set_pairs(&numbers))
    }

    fn set_pairs(&self, numbers: &[u32]) -> Lists<PairEdges> {
        let mut pairs = Lists::default();
        for predicate in (0..self.predicates as u32).map(PredicateId) {
            let mut counts: BTreeMap<(u32, u32), u64> = BTreeMap::new();
            for (subject, object) in self.pairs(predicate, Direction::Out) {
                if is_vertex(object) {
                    let set = |raw| numbers[TermId::from_raw(raw).number() as usize];
                    *counts.entry((set(subject), set(object))).or_default() += 1;
                }
            }
            pairs.push(counts.iter().map(|((subjects, objects), edges)| PairEdges {
                subjects: *subjects,
                objects: *objects,
                edges: *edges,
            }));
        }
        pairs
    }

    fn any_vertex(&self, random: &mut Random) -> u64 {
        // The lower ones more often, so that degrees differ.
        let limit = 1 + random.below(self.vertices);
        vertex(random.below(limit)).raw()
    }

    fn any_object(&self, random: &mut Random) -> u64 {
        match random.one_in(4) {
            true => TermId::literal(random.below(9)).raw(),
            false => self.any_vertex(random),
        }
    }

    /// Adds and removes edges of some predicates.
    fn change(&mut self, merged: &[PredicateId], random: &mut Random) {
        for predicate in merged {
            if *predicate == PredicateId::TYPE {
                self.change_types(random);
                continue;
            }
            let removed = [1, 2, 3, 9][random.below(4) as usize];
            self.edges
                .retain(|edge| edge.0 != *predicate || !random.one_in(removed));
            for _ in 0..[0, 1, 5, 40][random.below(4) as usize] {
                let (subject, object) = (self.any_vertex(random), self.any_object(random));
                self.edges.insert((*predicate, subject, object));
            }
        }
        // One vertex loses all that it can.
        let gone = self.any_vertex(random);
        let is_merged = |id: &PredicateId| merged.binary_search(id).is_ok();
        self.edges
            .retain(|edge| !is_merged(&edge.0) || (edge.1 != gone && edge.2 != gone));
    }

    fn change_types(&mut self, random: &mut Random) {
        let removed = [1, 2, 4][random.below(3) as usize];
        self.types.retain(|_| !random.one_in(removed));
        for _ in 0..[0, 2, 30][random.below(3) as usize] {
            let class = match random.one_in(9) {
                true => TermId::literal(1).raw(),
                false => vertex(random.below(3)).raw(),
            };
            self.types.insert((self.any_vertex(random), class));
        }
    }
}

/// The keys of merged predicates whose lists differ.
fn touched(
    before: &Graph,
    after: &Graph,
    merged: &[PredicateId],
    direction: Direction,
) -> Vec<(u64, PredicateId)> {
    let of = |graph: &Graph, id| BTreeSet::from_iter(graph.pairs(id, direction));
    let mut touched = BTreeSet::new();
    for id in merged {
        for (key, _) in of(before, *id).symmetric_difference(&of(after, *id)) {
            if is_vertex(*key) {
                touched.insert((*key, *id));
            }
        }
    }
    touched.into_iter().collect()
}

fn merge(
    table: &Clusters,
    (before, after): (&Graph, &Graph),
    (old, new): (&Segments, &Segments),
    merged: &[PredicateId],
) -> Clusters {
    let lists = [Direction::Out, Direction::In].map(|d| touched(before, after, merged, d));
    let types: Vec<((u64, u64), Change)> = before
        .types
        .symmetric_difference(&after.types)
        .map(|edge| match after.types.contains(edge) {
            true => (*edge, Change::Add),
            false => (*edge, Change::Remove),
        })
        .collect();
    table.merged(&SetChanges {
        vertices: after.vertices,
        predicates: after.predicates,
        merged,
        touched: [&lists[0], &lists[1]],
        types: &types,
        before: &|id, direction| old[direction as usize].get(id.index())?.as_ref(),
        after: &|id, direction| new[direction as usize].get(id.index())?.as_ref(),
    })
}

fn all_traits(graph: &Graph) -> Vec<Membership> {
    let mut traits: Vec<Membership> = (0..4).map(|id| Membership::Type(vertex(id))).collect();
    traits.push(Membership::Type(TermId::literal(1)));
    traits.push(Membership::Has(PredicateId::TYPE, Direction::Out));
    for number in 1..=graph.predicates as u32 {
        for direction in [Direction::Out, Direction::In] {
            traits.push(Membership::Has(PredicateId(number), direction));
        }
    }
    traits
}

/// Asks both tables the same; `context` tells seed and round.
fn compare(table: &Clusters, expected: &Clusters, graph: &Graph, context: &str) {
    let counts = |one: &Clusters| (one.len(), one.stretches(), one.type_edges());
    assert_eq!(counts(table), counts(expected), "{context}");
    assert_eq!(
        table.typed_vertices(),
        expected.typed_vertices(),
        "{context}"
    );
    assert!(table.types().eq(expected.types()), "{context}");
    for number in 0..graph.vertices + 2 {
        let of = vertex(number);
        let types = |one: &Clusters| {
            let mut list = Vec::new();
            one.types_of_vertex(of).copy(0, usize::MAX, &mut list);
            list
        };
        assert_eq!(types(table), types(expected), "{context}: {of:?}");
        for direction in [Direction::Out, Direction::In] {
            let has = |one: &Clusters| {
                let list = one.predicates_of_vertex(of, direction);
                list.collect::<Vec<_>>()
            };
            assert_eq!(has(table), has(expected), "{context}: {of:?} {direction:?}");
        }
    }
    compare_type_edges(table, graph, context);
    compare_traits(table, expected, graph, context);
}

fn compare_type_edges(table: &Clusters, graph: &Graph, context: &str) {
    for (place, (subject, class)) in graph.types.iter().enumerate() {
        let edge = (TermId::from_raw(*subject), TermId::from_raw(*class));
        assert_eq!(table.type_place(edge.0, edge.1), Some(place), "{context}");
        assert_eq!(table.type_edge_at(place), edge, "{context}");
    }
    let mut scanned = Vec::new();
    for (members, types) in table.typed_stretches() {
        for number in members {
            scanned.extend((0..types.len()).map(|i| (vertex(number).raw(), types.get(i).raw())));
        }
    }
    assert!(scanned.iter().eq(&graph.types), "{context}");
    for class in table.types() {
        let expected = graph.types.iter().filter(|edge| edge.1 == class.raw());
        let mut found = Vec::new();
        let list = table.vertices_of_type(class);
        list.copy(0, usize::MAX, &mut found);
        assert!(
            found
                .iter()
                .map(|id| id.raw())
                .eq(expected.map(|edge| edge.0)),
            "{context}: {class:?}"
        );
    }
}

fn compare_traits(table: &Clusters, expected: &Clusters, graph: &Graph, context: &str) {
    let traits = all_traits(graph);
    let mut windows = IdRanges::new();
    for first in (1..graph.vertices).step_by(7) {
        windows.push(vertex(first), vertex(first + first % 5));
    }
    for (index, one) in traits.iter().enumerate() {
        let members = expected.vertices_with(&[*one]).intersect(&windows);
        let within = table.members_within(*one, &windows);
        assert_eq!(within, members, "{context}: {one:?}");
        for other in &traits[index..] {
            let asked = &[*one, *other][usize::from(one == other)..];
            let said = (table.vertices_with(asked), table.count_with(asked));
            let right = (expected.vertices_with(asked), expected.count_with(asked));
            assert_eq!(said, right, "{context}: {asked:?}");
            assert_eq!(said.0.len() as f64, said.1, "{context}: {asked:?}");
            assert_eq!(table.is_short(asked), expected.is_short(asked), "{context}");
            for number in 0..graph.predicates as u32 {
                let edges = |table: &Clusters| {
                    table.edges_from(PredicateId(number), Direction::Out, asked)
                        + 1e6 * table.edges_from(PredicateId(number), Direction::In, asked)
                };
                assert_eq!(
                    edges(table),
                    edges(expected),
                    "{context}: {asked:?} {number}"
                );
            }
        }
    }
}

/// Pairs of merged predicates are exact; the sums of the others are.
fn compare_pairs(
    table: &Clusters,
    expected: &Clusters,
    (graph, merged): (&Graph, &[PredicateId]),
    context: &str,
) {
    let traits = all_traits(graph);
    for number in 0..=graph.predicates as u32 {
        let edges = |one: &Clusters| one.edges_between(PredicateId(number), &[], &[]);
        assert_eq!(edges(table), edges(expected), "{context}: {number}");
    }
    for predicate in merged {
        for pair in traits.windows(2) {
            let edges = |one: &Clusters| one.edges_between(*predicate, &pair[..1], &pair[1..]);
            let (said, right) = (edges(table), edges(expected));
            assert_eq!(said, right, "{context}: {predicate:?} {pair:?}");
        }
    }
}

fn check(table: &Clusters, graph: &Graph, segments: &Segments, context: &str) {
    let is_empty = graph.edges.is_empty() && graph.types.is_empty();
    let sound = table.check(graph.vertices, is_empty, &|_| true);
    assert_eq!(sound, Ok(()), "{context}");
    for direction in [Direction::Out, Direction::In] {
        let of_predicates = segments[direction as usize].iter().enumerate();
        for (number, segment) in of_predicates.skip(1) {
            let predicate = PredicateId(number as u32);
            let sound = table.check_predicate(predicate, direction, segment.as_ref());
            assert_eq!(sound, Ok(()), "{context}: {predicate:?} {direction:?}");
        }
    }
}

#[test]
fn a_merged_table_is_the_one_made_from_scratch() {
    for seed in SEEDS {
        let mut random = Random(seed);
        let mut graph = Graph {
            vertices: random.below(80),
            predicates: 1 + random.below(5) as usize,
            ..Graph::default()
        };
        let mut table = Clusters::none(graph.predicates);
        if graph.vertices > 0 && !random.one_in(3) {
            let all: Vec<PredicateId> = (0..graph.predicates as u32).map(PredicateId).collect();
            graph.change(&all, &mut random);
            table = graph.table();
        }
        let mut segments = graph.segments();
        for round in 0..ROUNDS {
            let before = graph.clone();
            graph.vertices += [0, 0, 1, 20][random.below(4) as usize];
            graph.predicates += usize::from(random.one_in(3));
            let merges_all = random.one_in(5);
            let merged: Vec<PredicateId> = (0..graph.predicates as u32)
                .filter(|_| merges_all || random.one_in(2))
                .map(PredicateId)
                .collect();
            let context = format!("seed {seed}, round {round}, merged {merged:?}");
            match graph.vertices {
                0 => {}
                _ if random.one_in(9) => {
                    let is_merged = |id: &PredicateId| merged.binary_search(id).is_ok();
                    graph.edges.retain(|edge| !is_merged(&edge.0));
                }
                _ => graph.change(&merged, &mut random),
            }
            let after = graph.segments();
            table = merge(&table, (&before, &graph), (&segments, &after), &merged);
            segments = after;
            check(&table, &graph, &segments, &context);
            if graph.vertices > 0 {
                let expected = graph.table();
                compare(&table, &expected, &graph, &context);
                compare_pairs(&table, &expected, (&graph, &merged), &context);
            }
        }
    }
}

#[test]
fn a_vertex_that_moves_cuts_its_stretch_and_back_joins_it() {
    let mut graph = Graph {
        vertices: 1000,
        predicates: 3,
        ..Graph::default()
    };
    for number in 0..1000 {
        let to = vertex(number * 7 % 1000).raw();
        graph
            .edges
            .insert((PredicateId(1), vertex(number).raw(), to));
    }
    let (whole, at_first) = (graph.clone(), graph.segments());
    let table = graph.table();
    assert_eq!((table.len(), table.stretches()), (1, 1));
    graph
        .edges
        .insert((PredicateId(2), vertex(500).raw(), TermId::literal(0).raw()));
    let (cut, segments) = (graph.clone(), graph.segments());
    let merged = [PredicateId(2)];
    let moved = merge(&table, (&whole, &cut), (&at_first, &segments), &merged);
    assert_eq!((moved.len(), moved.stretches()), (2, 3));
    // All edges of the vertex went with it.
    let with_two = [Membership::Has(PredicateId(2), Direction::Out)];
    assert_eq!(
        moved.edges_from(PredicateId(1), Direction::Out, &with_two),
        1.0
    );
    let back = merge(&moved, (&cut, &whole), (&segments, &at_first), &merged);
    assert_eq!((back.len(), back.stretches()), (1, 1));
    assert_eq!(back.edges_between(PredicateId(1), &[], &[]), Some(1000.0));
}
