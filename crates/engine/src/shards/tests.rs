//! Every call of the access to graphs, of shards beside the snapshot that they were cut from.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use jindou_exec::Catalogue;
use jindou_ingest::{LoadOptions, Progress, Source};
use jindou_model::{
    Cursor, Direction, GraphRef, IdRanges, Lists, Membership, Pattern, Precision, PredicateId,
    TermId,
};
use jindou_partition::Shards;
use jindou_store::LayerKind;

use super::*;
use crate::Database;

mod calls;
#[cfg(target_os = "linux")]
mod taken_back;

/// Seeds of a run; `JINDOU_SEED` sets the first one.
const SEEDS: u64 = 12;

struct Random(u64, Predicates);

/// How many predicates a graph may have.
#[derive(Clone, Copy)]
enum Predicates {
    Few = 5,
    /// More than are looked at one by one.
    Many = 40,
}

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (self.0 >> 33) % limit
    }

    fn quad(&mut self) -> String {
        let graph = match self.below(10) {
            0..4 => String::new(),
            graph => format!(" :g{}", graph % 4),
        };
        let object = match self.below(10) {
            0..6 => format!(":v{}", self.below(60)),
            6 => format!("\"text {}\"", self.below(30)),
            7 => format!("{}", self.below(40)),
            // Hubs.
            _ => format!(":v{}", self.below(2)),
        };
        let (subject, predicate) = (self.below(90), self.below(self.1 as u64));
        let triple = match predicate {
            0 => format!(":v{subject} a :c{}", self.below(4)),
            1 if self.below(3) == 0 => format!(":v{} :p{predicate} {object}", subject % 3),
            _ => format!(":v{subject} :p{predicate} {object}"),
        };
        match graph.as_str() {
            "" => format!("{triple} ."),
            graph => format!("GRAPH {graph} {{ {triple} }}"),
        }
    }
}

/// A database with some quads of the bulk load, and some that came and went later: as it was after each
/// update.
fn states(random: &mut Random) -> Vec<Arc<StoredGraph>> {
    let config = Config {
        merge: crate::MergePolicy::never(),
        ..Config::default()
    };
    let database = Database::with_config(config);
    let prefix = "PREFIX : <http://example.org/>";
    let quads = |random: &mut Random, count: u64| {
        let quads: Vec<String> = (0..count).map(|_| random.quad()).collect();
        quads.join("\n")
    };
    let loaded = random.below(900);
    let text = format!("{prefix}\n{}", quads(random, loaded).replace("GRAPH", ""));
    let source = Source::bytes("data.trig", text.into_bytes());
    let (options, progress) = (LoadOptions::default(), Progress::default());
    database.load(vec![source], &options, &progress).unwrap();
    let mut states = vec![database.graph()];
    for _ in 0..random.below(4) {
        let (came, went) = (quads(random, 40), quads(random, 200));
        let update = format!("{prefix} INSERT DATA {{ {came} }} ; DELETE DATA {{ {went} }}");
        database.update(&update).unwrap();
        states.push(database.graph());
    }
    states
}

/// The last of them.
fn graph(random: &mut Random) -> Arc<StoredGraph> {
    states(random).pop().unwrap()
}

fn seeds() -> std::ops::Range<u64> {
    let first = std::env::var("JINDOU_SEED").map_or(1, |seed| seed.parse().unwrap());
    first..first + SEEDS
}

/// What a test compares.
struct Pair {
    one: Arc<StoredGraph>,
    shards: Arc<dyn GraphSource>,
    terms: Vec<TermId>,
    graphs: Vec<TermId>,
    /// Of each of the terms a graph, or none.
    graph_of_term: Vec<TermId>,
    note: String,
}

/// Calls are waited for however busy the machine is.
fn patient() -> LinkOptions {
    LinkOptions {
        patience: std::time::Duration::from_secs(600),
        ..LinkOptions::default()
    }
}

fn pair(seed: u64) -> Pair {
    pair_of(seed, Predicates::Few)
}

fn pair_of(seed: u64, predicates: Predicates) -> Pair {
    let mut random = Random(seed, predicates);
    let mut states = states(&mut random);
    let config = Config {
        shards: Shards::new(1 << (1 + seed % 4)).unwrap(),
        // All shards asked, or read from another node.
        nodes: 1 + u32::from(seed % 8 >= 4),
        ..Config::default()
    };
    let nodes = (config.nodes > 1).then(|| Nodes::new(&config, &patient()).unwrap());
    // Cut as it was at any time, and brought on and back to what it is.
    let one = Arc::clone(states.last().unwrap());
    let first = states.remove(random.below(states.len() as u64) as usize);
    let mut shards = CutGraph::of(&first.snapshot, &config, nodes.as_ref()).unwrap();
    for state in &states {
        shards = shards.brought_on(&state.snapshot).unwrap();
    }
    let shards = shards.brought_on(&one.snapshot).unwrap();
    let shards = seen(&one, &shards, &config, nodes.as_ref()).0.remove(0);
    let mut terms = BTreeSet::new();
    let all = pattern(None, None, None);
    let flow = one
        .snapshot
        .for_each_match(&all, GraphRef::Union, &mut |s, _, o, _| {
            terms.extend([s, o]);
            ControlFlow::Continue(())
        });
    assert!(flow.is_continue());
    let mut terms: Vec<TermId> = terms.into_iter().collect();
    terms.push(TermId::literal(1 << 45));
    // In no order, some twice.
    for place in (1..terms.len()).rev() {
        terms.swap(place, random.below(place as u64 + 1) as usize);
    }
    terms.extend(terms.clone().iter().take(9));
    let mut graphs = Vec::new();
    Catalogue::graphs(&*one, &mut graphs);
    graphs.sort_unstable();
    let run = 1 + random.below(3) as usize * 12;
    let graph_of_run = |place: usize| match (place / run) % (graphs.len() + 1) {
        0 => TermId::NONE,
        number => graphs[number - 1],
    };
    let graph_of_term = (0..terms.len()).map(graph_of_run).collect();
    let (count, nodes) = (config.shards.count(), config.nodes);
    let note = format!("seed {seed}, {count} shards on {nodes} nodes");
    Pair {
        one,
        shards,
        terms,
        graphs,
        graph_of_term,
        note,
    }
}

impl Pair {
    fn graph_refs(&self) -> Vec<GraphRef<'_>> {
        let mut refs = vec![GraphRef::Default, GraphRef::Named, GraphRef::Union];
        refs.extend(self.graphs.iter().map(|graph| GraphRef::One(*graph)));
        refs.push(GraphRef::Some(&self.graphs[..self.graphs.len().min(2)]));
        refs
    }

    /// Those of calls with a row for each of the terms.
    fn graph_refs_of_rows(&self) -> Vec<GraphRef<'_>> {
        let mut refs = self.graph_refs();
        refs.push(GraphRef::Each(&self.graph_of_term));
        refs
    }

    fn lists(&self) -> Vec<Lists<'_>> {
        let predicates = (0..self.one.snapshot.predicate_count() as u32).map(PredicateId);
        let both = predicates.flat_map(|p| [(p, Direction::Out), (p, Direction::In)]);
        let list = |(predicate, direction)| Lists {
            predicate,
            direction,
            keys: &self.terms,
        };
        both.map(list).collect()
    }

    fn some_ids(&self) -> IdRanges {
        let mut ids: Vec<u64> = self.terms.iter().step_by(3).map(|id| id.raw()).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut ranges = IdRanges::new();
        ranges.extend_sorted(ids.into_iter());
        ranges
    }
}

fn pattern(s: Option<TermId>, p: Option<PredicateId>, o: Option<TermId>) -> Pattern {
    Pattern {
        subject: s,
        predicate: p,
        object: o,
    }
}

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
        let before = cursor;
        let (rows, out) = (&mut rows, &mut out);
        source
            .expand(graph, lists, &mut cursor, allowed, budget, rows, out)
            .unwrap();
        assert_ne!(before, cursor);
        assert_eq!(rows.len(), out.len());
        found.extend(rows.iter().copied().zip(out.iter().copied()));
    }
    assert!(found.is_sorted_by_key(|(row, _)| *row));
    // Those of a row come in any order.
    found.sort_unstable();
    found
}

#[test]
fn a_shard_has_the_rows_that_it_owns_and_no_others() {
    for seed in seeds() {
        let one = graph(&mut Random(seed, Predicates::Few));
        let shards = Shards::new(1 << (1 + seed % 4)).unwrap();
        let cut = one.snapshot.cut(shards).unwrap();
        let predicates = (1..one.snapshot.predicate_count() as u32).map(PredicateId);
        let both = predicates.flat_map(|p| [(p, Direction::Out), (p, Direction::In)]);
        for (predicate, direction) in both {
            for kind in LayerKind::ALL {
                let (mut edges, mut keys) = (0, 0);
                for (shard, part) in &cut.shards {
                    let of_part = part.layer(kind).counts(predicate, direction);
                    (edges, keys) = (edges + of_part.0, keys + of_part.1);
                    let segment = part.base().layer(kind).segment(predicate, direction);
                    let Some(segment) = segment else { continue };
                    segment.domain().for_each(&mut |key| {
                        assert_eq!(shards.owner(key), *shard, "seed {seed}");
                    });
                }
                let counted = one.snapshot.layer(kind).counts(predicate, direction);
                assert_eq!((edges, keys), counted, "seed {seed}");
                let shared = cut.shared.base().layer(kind).segment(predicate, direction);
                assert!(shared.is_none_or(|segment| segment.domain().is_empty()));
            }
        }
    }
}

#[test]
fn only_the_shards_that_are_wanted_are_cut() {
    for seed in seeds() {
        let one = graph(&mut Random(seed, Predicates::Few));
        let shards = Shards::new(8).unwrap();
        let all = one.snapshot.cut(shards).unwrap();
        let wanted: BTreeSet<ShardId> = shards.all().filter(|s| s.0 % 3 == 1).collect();
        let allocate = |_, bytes| Ok(jindou_fabric::RegionBuilder::new(bytes));
        let some = one.snapshot.cut_base(shards, &wanted, &allocate).unwrap();
        assert!(some.shards.iter().map(|(shard, _)| shard).eq(&wanted));
        let predicates = (1..one.snapshot.predicate_count() as u32).map(PredicateId);
        let both = predicates.flat_map(|p| [(p, Direction::Out), (p, Direction::In)]);
        for (predicate, direction) in both {
            for (kind, (shard, part)) in LayerKind::ALL
                .iter()
                .flat_map(|k| some.shards.iter().map(move |s| (k, s)))
            {
                let lists = |snapshot: &Snapshot| {
                    let segment = snapshot.base().layer(*kind).segment(predicate, direction)?;
                    let mut lists = Vec::new();
                    segment
                        .domain()
                        .for_each(&mut |key| lists.push((key, segment.edge_range(key).len())));
                    Some((lists, segment.edges()))
                };
                let (_, whole) = &all.shards[shard.0 as usize];
                assert_eq!(lists(part), lists(whole), "seed {seed}, shard {}", shard.0);
            }
        }
    }
}

#[test]
fn lists_are_followed_alike() {
    for seed in seeds() {
        let pair = pair(seed);
        let (ids, others) = (pair.some_ids(), reversed(&pair.terms));
        for graph in pair.graph_refs_of_rows() {
            for (number, list) in pair.lists().into_iter().enumerate() {
                let budget = [1, 2, 7, 100, 5000][(number + seed as usize) % 5];
                let note = format!(
                    "{}: {graph:?} {:?} {:?}",
                    pair.note, list.predicate, list.direction
                );
                for allowed in [None, Some(&ids)] {
                    let expected = expanded(&*pair.one, graph, &[list], allowed, 1000);
                    let found = expanded(&*pair.shards, graph, &[list], allowed, budget);
                    assert_eq!(found, expected, "{note} {budget}");
                }
                for second in pair.lists().into_iter().step_by(3) {
                    let second = Lists {
                        keys: &others,
                        ..second
                    };
                    let lists = [list, second];
                    let expected = expanded(&*pair.one, graph, &lists, None, 1000);
                    let found = expanded(&*pair.shards, graph, &lists, None, budget);
                    assert_eq!(found, expected, "{note} {budget}, {:?}", second.predicate);
                }
            }
        }
    }
}

/// A row that was there before, and is found again, was taken for one that both layers have.
#[test]
fn edges_in_the_union_are_appended_to_what_was_there() {
    let pair = pair(1);
    let mut appended = 0;
    for list in pair.lists() {
        let edges = expanded(&*pair.one, GraphRef::Union, &[list], None, 1000);
        let Some((row, to)) = edges.first() else {
            continue;
        };
        let keys = [pair.terms[*row as usize]];
        let list = Lists {
            keys: &keys,
            ..list
        };
        for source in [&*pair.one as &dyn GraphSource, &*pair.shards] {
            let mut rows = vec![0];
            let found = source.contains(GraphRef::Union, &list, &[*to], &mut rows);
            assert_eq!((found, rows), (Ok(()), vec![0, 0]));
            appended += 1;
        }
    }
    assert!(appended > 0);
}

fn reversed(ids: &[TermId]) -> Vec<TermId> {
    ids.iter().rev().copied().collect()
}

#[test]
fn edges_and_lengths_are_told_alike() {
    for seed in seeds() {
        let pair = pair(seed);
        let (ids, to) = (pair.some_ids(), reversed(&pair.terms));
        for graph in pair.graph_refs_of_rows() {
            for list in pair.lists() {
                let note = format!(
                    "{}: {graph:?} {:?} {:?}",
                    pair.note, list.predicate, list.direction
                );
                let contains = |source: &dyn GraphSource| {
                    let mut rows = vec![7];
                    source.contains(graph, &list, &to, &mut rows).unwrap();
                    rows
                };
                assert_eq!(contains(&*pair.shards), contains(&*pair.one), "{note}");
                for allowed in [None, Some(&ids)] {
                    let degrees = |source: &dyn GraphSource| {
                        let mut degrees = vec![7];
                        source.degrees(graph, &list, allowed, &mut degrees).unwrap();
                        degrees
                    };
                    assert_eq!(degrees(&*pair.shards), degrees(&*pair.one), "{note}");
                }
                if matches!(graph, GraphRef::Each(_)) {
                    continue;
                }
                for key in pair.terms.iter().step_by(5) {
                    let keys = [*key];
                    let list = Lists {
                        keys: &keys,
                        ..list
                    };
                    for allowed in [None, Some(&ids)] {
                        let expected = expanded(&*pair.one, graph, &[list], allowed, 1000);
                        for source in [&*pair.one as &dyn GraphSource, &*pair.shards] {
                            let found = shared_out(source, graph, list, allowed);
                            assert_eq!(found, expected, "{note}");
                        }
                    }
                }
            }
        }
    }
}

/// The places of a key, shared out by threes.
fn shared_out(
    source: &dyn GraphSource,
    graph: GraphRef<'_>,
    list: Lists<'_>,
    allowed: Option<&IdRanges>,
) -> Vec<(u32, TermId)> {
    let places = source.places(graph, &list).unwrap() as usize;
    let (mut rows, mut out) = (Vec::new(), Vec::new());
    for from in (0..places).step_by(3) {
        let mut cursor = Cursor {
            key: 0,
            offset: from,
        };
        while cursor.key == 0 && cursor.offset < from + 3 {
            let budget = out.len() + from + 3 - cursor.offset;
            let (rows, out) = (&mut rows, &mut out);
            source
                .expand(graph, &[list], &mut cursor, allowed, budget, rows, out)
                .unwrap();
        }
    }
    let mut found: Vec<(u32, TermId)> = rows.into_iter().zip(out).collect();
    found.sort_unstable();
    found
}

#[test]
fn patterns_are_matched_alike() {
    for seed in seeds() {
        let predicates = match seed % 2 {
            0 => Predicates::Few,
            _ => Predicates::Many,
        };
        let pair = pair_of(seed, predicates);
        let mut triples = Vec::new();
        let all = pattern(None, None, None);
        let flow = pair.one.snapshot.for_each_quad(&all, &mut |s, p, o, _| {
            triples.push((Some(s), Some(p), Some(o)));
            ControlFlow::Continue(())
        });
        assert!(flow.is_continue());
        let mut patterns = vec![all];
        for (s, p, o) in triples.into_iter().step_by(17) {
            patterns.extend(
                [(s, p, o), (s, p, None), (None, p, o), (None, p, None)]
                    .map(|(s, p, o)| pattern(s, p, o)),
            );
            patterns.extend([(s, o), (s, None), (None, o)].map(|(s, o)| pattern(s, None, o)));
        }
        for pattern in patterns {
            for graph in pair.graph_refs() {
                let matches = |source: &dyn GraphSource| {
                    let mut rows = Vec::new();
                    let flow = source.for_each_match(&pattern, graph, &mut |s, p, o, g| {
                        rows.push((s, p, o, g));
                        ControlFlow::Continue(())
                    });
                    assert!(flow.unwrap().is_continue());
                    rows.sort_unstable();
                    rows
                };
                let note = format!("{}: {pattern:?} {graph:?}", pair.note);
                assert_eq!(matches(&*pair.shards), matches(&*pair.one), "{note}");
            }
            let quads = |source: &dyn GraphSource| {
                let mut rows = Vec::new();
                let flow = source.for_each_quad(&pattern, &mut |s, p, o, g| {
                    rows.push((s, p, o, g));
                    ControlFlow::Continue(())
                });
                assert!(flow.unwrap().is_continue());
                rows.sort_unstable();
                rows
            };
            assert_eq!(
                quads(&*pair.shards),
                quads(&*pair.one),
                "{}: {pattern:?}",
                pair.note
            );
        }
    }
}

#[test]
fn graphs_of_edges_are_told_alike() {
    for seed in seeds() {
        let pair = pair(seed);
        for list in pair.lists() {
            let edges = expanded(&*pair.one, GraphRef::Named, &[list], None, 1000);
            let keys: Vec<TermId> = edges
                .iter()
                .map(|(row, _)| pair.terms[*row as usize])
                .collect();
            let to: Vec<TermId> = edges.iter().map(|(_, id)| *id).collect();
            let graphs = |source: &dyn GraphSource| {
                let list = Lists {
                    keys: &keys,
                    ..list
                };
                let (mut rows, mut graphs) = (Vec::new(), Vec::new());
                source
                    .graphs_of(&list, &to, &mut rows, &mut graphs)
                    .unwrap();
                assert!(rows.is_sorted());
                let mut found: Vec<_> = rows.into_iter().zip(graphs).collect();
                found.sort_unstable();
                found
            };
            assert_eq!(graphs(&*pair.shards), graphs(&*pair.one), "{}", pair.note);
        }
    }
}

#[test]
fn members_are_those_of_the_whole() {
    for seed in seeds() {
        let pair = pair(seed);
        let within = pair.some_ids();
        let mut asked: Vec<Vec<Membership>> = Vec::new();
        for list in pair.lists() {
            let has = Membership::Has(list.predicate, list.direction);
            asked.push(vec![has]);
            asked.push(vec![has, Membership::Has(PredicateId(1), Direction::In)]);
            let class = pair.terms[asked.len() % pair.terms.len()];
            asked.push(vec![has, Membership::Type(class)]);
            asked.push(vec![Membership::Type(class)]);
        }
        for graph in pair.graph_refs() {
            let is_some = matches!(graph, GraphRef::One(_) | GraphRef::Some(_));
            for traits in &asked {
                for within in [None, Some(&within)] {
                    let note = format!("{}: {graph:?} {traits:?}", pair.note);
                    let members = |source: &dyn GraphSource, precision| {
                        source.members(graph, traits, precision, within).unwrap()
                    };
                    let (expected, found) = (
                        members(&*pair.one, Precision::Exact),
                        members(&*pair.shards, Precision::Exact),
                    );
                    let (expected, found) = (expected.unwrap(), found.unwrap());
                    match is_some {
                        // Predicates may be those of other graphs.
                        true => assert!(
                            truth(&pair, graph, traits, within).is_subset(&list_of(&found)),
                            "{note}"
                        ),
                        false => assert_eq!(list_of(&found), list_of(&expected), "{note}"),
                    }
                    for known in [None, Some(traits[0])] {
                        let precision = known.map_or(Precision::Filter, Precision::FilterOf);
                        match members(&*pair.shards, precision) {
                            Some(some) => assert!(
                                truth(&pair, graph, traits, within).is_subset(&list_of(&some)),
                                "{note}"
                            ),
                            None => assert!(
                                !traits.iter().any(|t| matches!(t, Membership::Type(_))),
                                "{note}"
                            ),
                        }
                    }
                }
            }
        }
    }
}

fn list_of(ids: &IdRanges) -> BTreeSet<TermId> {
    let ranges = ids.ranges().iter();
    ranges
        .flat_map(|(first, end)| (*first..*end).map(TermId::from_raw))
        .collect()
}

/// The terms that have all traits in a graph, found by their edges.
fn truth(
    pair: &Pair,
    graph: GraphRef<'_>,
    traits: &[Membership],
    within: Option<&IdRanges>,
) -> BTreeSet<TermId> {
    let has = |id: TermId, asked: &Membership| {
        let keys = [id];
        let (predicate, direction, to) = match asked {
            Membership::Type(class) => (PredicateId::TYPE, Direction::Out, Some(*class)),
            Membership::Has(predicate, direction) => (*predicate, *direction, None),
        };
        let list = Lists {
            predicate,
            direction,
            keys: &keys,
        };
        let found = expanded(&*pair.one, graph, &[list], None, 1000);
        found.iter().any(|(_, id)| to.is_none_or(|to| to == *id))
    };
    let is_within = |id: &TermId| within.is_none_or(|within| within.contains(*id));
    let terms = pair.terms.iter().copied().filter(is_within);
    terms
        .filter(|id| traits.iter().all(|asked| has(*id, asked)))
        .collect()
}

#[test]
fn a_literal_is_asked_for_its_own_predicates_where_any_of_many_may_be_there() {
    let mut narrowed = 0;
    for seed in seeds() {
        let pair = pair_of(seed, Predicates::Many);
        for graph in pair.graph_refs() {
            for key in &pair.terms {
                let mut there = BTreeSet::new();
                let to_key = pattern(None, None, Some(*key));
                let flow = pair.one.for_each_match(&to_key, graph, &mut |_, p, _, _| {
                    there.insert(p);
                    ControlFlow::Continue(())
                });
                assert!(flow.unwrap().is_continue());
                let (mut known, mut at) = (Vec::new(), Vec::new());
                Catalogue::predicates_of(&*pair.one, graph, *key, Direction::In, &mut known);
                let asked = (pair.shards).predicates_at(graph, *key, Direction::In, &mut at);
                let note = format!("{}: {graph:?} {key:?}", pair.note);
                assert_eq!(asked, Ok(()), "{note}");
                assert!(there.iter().all(|one| at.contains(one)), "{note}: {at:?}");
                assert!(at.iter().all(|one| known.contains(one)), "{note}: {at:?}");
                narrowed += known.len() - at.len();
            }
        }
    }
    assert!(narrowed > 0);
}
