//! Is what a closure knows what paths mean, and how much of the graph does it read?

use std::collections::BTreeSet;

use jindou_plan::physical::{PathExpression, Scope, Slot, Var};

use super::FollowPath;
use super::tests::{Given, World, X, Y, plus, predicate, scattered, star, vertex};
use crate::operator::Operator;
use crate::table::{Table, VarSet};

type Pairs = BTreeSet<(u64, u64)>;

/// The pairs that a path connects, by what the specification says of its parts.
fn meaning(path: &PathExpression, triples: &[(u64, u32, u64)]) -> Pairs {
    let terms = || triples.iter().flat_map(|(s, _, o)| [*s, *o]);
    let itself = || terms().map(|term| (term, term));
    match path {
        PathExpression::Edge(predicate, direction) => {
            let of_predicate = triples.iter().filter(|t| t.1 == u32::from(predicate.0));
            let pairs = of_predicate.map(|(s, _, o)| match direction {
                jindou_model::Direction::Out => (*s, *o),
                jindou_model::Direction::In => (*o, *s),
            });
            pairs.collect()
        }
        PathExpression::Sequence(parts) => {
            let [first, second] = [&parts[0], &parts[1]].map(|part| meaning(part, triples));
            joined(&first, &second)
        }
        PathExpression::Alternative(parts) => {
            &meaning(&parts[0], triples) | &meaning(&parts[1], triples)
        }
        PathExpression::ZeroOrOne(inner) => meaning(inner, triples)
            .into_iter()
            .chain(itself())
            .collect(),
        PathExpression::ZeroOrMore(inner) => {
            let once = meaning(&plus((**inner).clone()), triples);
            once.into_iter().chain(itself()).collect()
        }
        PathExpression::OneOrMore(inner) => {
            let once = meaning(inner, triples);
            let mut all = once.clone();
            loop {
                let more = &all | &joined(&all, &once);
                if more.len() == all.len() {
                    return all;
                }
                all = more;
            }
        }
        PathExpression::Negated(..) => unreachable!("none is tested here"),
    }
}

fn joined(first: &Pairs, second: &Pairs) -> Pairs {
    let from = |middle: u64| second.range((middle, 0)..=(middle, u64::MAX));
    let pairs = first
        .iter()
        .flat_map(|(a, b)| from(*b).map(move |(_, c)| (*a, *c)));
    pairs.collect()
}

fn sequence(first: PathExpression, second: PathExpression) -> PathExpression {
    PathExpression::Sequence(Box::new([first, second]))
}

fn either(first: PathExpression, second: PathExpression) -> PathExpression {
    PathExpression::Alternative(Box::new([first, second]))
}

fn back(number: u16) -> PathExpression {
    predicate(number).reversed()
}

/// Graphs of few cycles, of one that has nearly all, of none, and of several.
fn graphs() -> Vec<Vec<(u64, u32, u64)>> {
    let sparse = (scattered(150).into_iter()).filter(|(s, _, o)| (s * 7 + o) % 3 == 0);
    let ladder = (0..120).flat_map(|n| [(n, 0, n + 1), (n, 1, n / 2), (n / 3, 0, n + 2)]);
    let tree = (1..150).map(|n| (n, (n % 2) as u32, n / 2));
    let rings = (0..150).flat_map(|n| {
        let ring = n / 10 * 10;
        [(n, 0, ring + (n + 1) % 10), (ring, 1, (ring + 20) % 150)]
    });
    let graphs = [
        sparse.collect::<Vec<_>>(),
        scattered(80),
        ladder.collect(),
        tree.collect(),
        rings.collect(),
    ];
    let distinct = |graph: Vec<_>| {
        graph
            .into_iter()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect()
    };
    graphs.map(distinct).into()
}

fn paths() -> Vec<PathExpression> {
    let both = || either(predicate(0), predicate(1));
    vec![
        plus(predicate(0)),
        star(predicate(0)),
        plus(both()),
        star(both()),
        plus(either(predicate(0), back(1))),
        plus(sequence(predicate(0), predicate(1))),
        star(sequence(predicate(0), back(1))),
        plus(sequence(predicate(0), star(predicate(1)))),
        plus(either(sequence(predicate(0), predicate(0)), predicate(1))),
        sequence(predicate(0), star(predicate(1))),
        either(
            plus(predicate(0)),
            star(sequence(predicate(1), predicate(1))),
        ),
        plus(sequence(
            PathExpression::ZeroOrOne(Box::new(predicate(0))),
            predicate(1),
        )),
    ]
}

/// The counts that rows come with, by the value of a variable, where the other end is not looked at.
fn counted(world: &World, path: &PathExpression, known: Option<(Var, &[u64])>) -> Vec<(u64, u64)> {
    let cx = world.context();
    let (table, keep): (Table, VarSet) = match known {
        Some((var, values)) => {
            let mut table = Table::with_rows(2, values.len());
            table.set(var, values.iter().copied().map(vertex).collect());
            (table, [var].into_iter().collect())
        }
        None => (Table::unit(2), VarSet::default()),
    };
    let input = Box::new(Given(vec![table]));
    let step = FollowPath::new(input, [X, Y], path, Scope::Default, keep, &cx);
    let mut step = step.counted();
    let mut counts = Vec::new();
    while let Some(mut table) = step.next(&cx).expect("rows") {
        let value = |row| known.map_or(0, |(var, _)| table.value(var, row).number());
        let values: Vec<u64> = (0..table.rows()).map(value).collect();
        let Some(crate::table::Column::Counts(numbers)) = table.take_counts() else {
            panic!("rows say how many they stand for");
        };
        counts.extend(values.into_iter().zip(numbers));
    }
    counts.sort_unstable();
    counts
}

#[test]
fn what_is_reached_from_many_terms_is_what_the_path_means() {
    for (number, triples) in graphs().into_iter().enumerate() {
        let terms: BTreeSet<u64> = triples.iter().flat_map(|(s, _, o)| [*s, *o]).collect();
        // Each twice, and one that is not in the graph.
        let all: Vec<u64> = terms.iter().chain(&terms).copied().chain([5000]).collect();
        let world = World::new(triples.iter().copied());
        for path in paths() {
            let note = format!("graph {number}, {path:?}");
            let expected = meaning(&path, &triples);
            let listed: Vec<(u64, u64)> = expected.iter().copied().collect();
            let twice: Vec<(u64, u64)> = listed.iter().flat_map(|pair| [*pair; 2]).collect();
            assert_eq!(
                world.rows([X, Y], &path, &[]).expect("rows"),
                listed,
                "{note}"
            );
            for (var, slots) in [(0, [X, Y]), (1, [X, Y])] {
                let rows = world
                    .rows(slots, &path, &[(var, all.clone())])
                    .expect("rows");
                assert_eq!(rows, twice, "{note}, {var} is known");
                let mut by_end: Vec<(u64, u64)> = Vec::new();
                for term in &all {
                    let is_end =
                        |pair: &&(u64, u64)| *term == if var == 0 { pair.0 } else { pair.1 };
                    let count = expected.iter().filter(is_end).count() as u64;
                    by_end.extend((count > 0).then_some((*term, count)));
                }
                by_end.sort_unstable();
                assert_eq!(
                    counted(&world, &path, Some((Var(var), &all))),
                    by_end,
                    "{note}"
                );
            }
            let total: u64 = counted(&world, &path, None)
                .iter()
                .map(|(_, count)| count)
                .sum();
            assert_eq!(total, expected.len() as u64, "{note}");
        }
    }
}

#[test]
fn many_known_ends_cost_about_what_all_edges_cost() {
    let triples = scattered(3000);
    let edges = triples.len() as u64;
    let world = World::new(triples);
    let path = plus(either(predicate(0), predicate(1)));
    let all: Vec<u64> = (0..3000).collect();
    world.toy.shown();
    let counts = counted(&world, &path, Some((Var(0), &all)));
    let pairs: u64 = counts.iter().map(|(_, count)| count).sum();
    assert!(pairs > 500 * edges, "{pairs} pairs");
    let shown = world.toy.shown();
    assert!(shown <= 4 * edges, "{shown} edges shown of {edges}");
    assert_eq!(counted(&world, &path, None), [(0, pairs)]);
    let shown = world.toy.shown();
    assert!(shown <= edges, "{shown} edges shown of {edges}");
    // The other end is a constant, which one search is enough for.
    let to = Slot::Const(jindou_plan::physical::ConstId(8 + 7));
    let rows = world.rows([X, to], &path, &[]).expect("rows");
    assert!(rows.len() > 1000);
    assert!(world.toy.shown() <= edges);
}
