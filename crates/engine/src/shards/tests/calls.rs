//! Every call of a shard by messages, beside the shard itself.
//!
//! In which named graphs an edge is, the shard of its subject alone knows: others are not asked that.

use jindou_cluster::{Link, ReadCounts, ServedShards, ShardServer};
use jindou_fabric::local::LocalNetwork;
use jindou_fabric::remote::Fabric;
use jindou_partition::Shards;

use super::*;

/// A shard, and the same asked over a link.
struct Beside {
    shard: ShardId,
    shards: Shards,
    direct: Arc<dyn GraphSource>,
    asked: Arc<dyn GraphSource>,
}

/// The graph of a seed in shards, which a node serves.
struct World {
    pair: Pair,
    shards: Shards,
    rows: Vec<Arc<dyn GraphSource>>,
    served: Arc<ServedShards>,
    link: Arc<Link>,
    counts: Arc<ReadCounts>,
}

impl World {
    fn new(seed: u64) -> Self {
        let pair = pair(seed);
        let shards = Shards::new(1 << (1 + seed % 3)).unwrap();
        let cut = pair.one.snapshot.cut(shards).unwrap();
        let source = |(_, snapshot)| Arc::new(StoredGraph { snapshot }) as Arc<dyn GraphSource>;
        let rows: Vec<_> = cut.shards.into_iter().map(source).collect();
        let server = ShardServer::new(shards);
        let (catalogue, shared) = (Arc::clone(&pair.one) as _, Arc::clone(&pair.one) as _);
        let own = rows.iter().cloned().map(Some).collect();
        let served = server.serve(Sharded::new(shards, catalogue, shared, own));
        let network = LocalNetwork::new(2);
        let (here, there): (Arc<dyn Fabric>, Arc<dyn Fabric>) =
            (network.fabric(0), network.fabric(1));
        let counts: Arc<ReadCounts> = Arc::default();
        let link = Link::between(&here, &there, &server, &counts, &patient()).unwrap();
        Self {
            pair,
            shards,
            rows,
            served,
            link: Arc::new(link),
            counts,
        }
    }

    /// Some shards, over the link.
    fn asked(&self, shards: Vec<ShardId>) -> Arc<dyn GraphSource> {
        let asked = (self.shards, shards, self.served.id());
        let (catalogue, kept) = (Arc::clone(&self.pair.one), Arc::clone(&self.served));
        Arc::new(self.link.shards(asked, catalogue, kept))
    }
}

/// All shards of a seed's graph.
fn beside(seed: u64) -> (Pair, Vec<Beside>) {
    let world = World::new(seed);
    let all = world.shards.all().zip(&world.rows);
    let all = all.map(|(shard, direct)| Beside {
        shard,
        shards: world.shards,
        asked: world.asked(vec![shard]),
        direct: Arc::clone(direct),
    });
    let all = all.collect();
    (world.pair, all)
}

/// True of the calls that ask in which named graphs edges are.
fn is_of_named_graphs(graph: GraphRef<'_>) -> bool {
    matches!(
        graph,
        GraphRef::One(_) | GraphRef::Some(_) | GraphRef::Each(_)
    )
}

#[test]
fn a_shard_follows_its_lists_alike_by_messages() {
    for seed in seeds() {
        let (pair, all) = beside(seed);
        let (ids, to) = (pair.some_ids(), reversed(&pair.terms));
        for (number, of_shard) in all.iter().enumerate() {
            let (direct, asked) = (&*of_shard.direct, &*of_shard.asked);
            for graph in pair.graph_refs_of_rows() {
                for (place, list) in pair.lists().into_iter().enumerate() {
                    if is_of_named_graphs(graph)
                        && (list.predicate == PredicateId::TYPE || list.direction == Direction::In)
                    {
                        continue;
                    }
                    let note = format!("{}, shard {number}: {graph:?} {place}", pair.note);
                    let budget = [1, 3, 50, 4000][(place + seed as usize) % 4];
                    for allowed in [None, Some(&ids)] {
                        let expected = expanded(direct, graph, &[list], allowed, 1000);
                        let found = expanded(asked, graph, &[list], allowed, budget);
                        assert_eq!(found, expected, "{note}");
                        let degrees = |source: &dyn GraphSource| {
                            let mut degrees = vec![7];
                            source.degrees(graph, &list, allowed, &mut degrees).unwrap();
                            degrees
                        };
                        assert_eq!(degrees(asked), degrees(direct), "{note}");
                    }
                    let second = Lists { keys: &to, ..list };
                    let both = [list, second];
                    let expected = expanded(direct, graph, &both, None, 1000);
                    assert_eq!(expanded(asked, graph, &both, None, budget), expected);
                    let contained = |source: &dyn GraphSource| {
                        let mut rows = vec![7];
                        source.contains(graph, &list, &to, &mut rows).unwrap();
                        rows
                    };
                    assert_eq!(contained(asked), contained(direct), "{note}");
                    let keys = &pair.terms[place % pair.terms.len()..][..1];
                    let one = Lists { keys, ..list };
                    let places = |source: &dyn GraphSource| source.places(graph, &one).unwrap();
                    assert_eq!(places(asked), places(direct), "{note}");
                }
            }
        }
    }
}

#[test]
fn a_shard_says_alike_by_messages_which_ids_and_graphs_there_are() {
    for seed in seeds() {
        let (pair, all) = beside(seed);
        let within = pair.some_ids();
        for of_shard in &all {
            let (direct, asked) = (&*of_shard.direct, &*of_shard.asked);
            for list in pair.lists() {
                let has = Membership::Has(list.predicate, list.direction);
                let class = Membership::Type(pair.terms[0]);
                for graph in pair.graph_refs() {
                    for traits in [&[has][..], &[class], &[has, class]] {
                        for precision in [
                            Precision::Exact,
                            Precision::Filter,
                            Precision::FilterOf(has),
                        ] {
                            let is_subjects = traits.len() == 1
                                && list.direction == Direction::Out
                                && list.predicate != PredicateId::TYPE
                                && traits[0] == has
                                && precision.is_exact();
                            if is_of_named_graphs(graph) && !is_subjects {
                                continue;
                            }
                            for within in [None, Some(&within)] {
                                let members = |source: &dyn GraphSource| {
                                    source.members(graph, traits, precision, within).unwrap()
                                };
                                let note = format!("{}: {graph:?} {traits:?}", pair.note);
                                assert_eq!(members(asked), members(direct), "{note}");
                            }
                        }
                    }
                }
                if list.predicate == PredicateId::TYPE || list.direction == Direction::In {
                    continue;
                }
                let edges = expanded(direct, GraphRef::Named, &[list], None, 1000);
                let key = |(row, _): &(u32, TermId)| pair.terms[*row as usize];
                let keys: Vec<TermId> = edges.iter().map(key).collect();
                let to: Vec<TermId> = edges.iter().map(|(_, id)| *id).collect();
                let list = Lists {
                    keys: &keys,
                    ..list
                };
                let graphs = |source: &dyn GraphSource| {
                    let (mut rows, mut graphs) = (vec![7], vec![TermId::NONE]);
                    (source.graphs_of(&list, &to, &mut rows, &mut graphs)).unwrap();
                    (rows, graphs)
                };
                assert_eq!(graphs(asked), graphs(direct), "{}", pair.note);
            }
        }
    }
}

#[test]
fn a_shard_is_scanned_alike_by_messages() {
    for seed in seeds() {
        let (pair, all) = beside(seed);
        for of_shard in &all {
            let mut patterns = vec![pattern(None, None, None)];
            let predicates = 0..pair.one.snapshot.predicate_count() as u32;
            for (number, predicate) in predicates.map(PredicateId).enumerate() {
                let (s, o) = (pair.terms[number], pair.terms[number + 3]);
                let ends = [
                    (None, None),
                    (Some(s), None),
                    (None, Some(o)),
                    (Some(s), Some(o)),
                ];
                patterns.extend(ends.map(|(s, o)| pattern(s, Some(predicate), o)));
                patterns.extend(ends.map(|(s, o)| pattern(s, None, o)));
            }
            for pattern in patterns {
                let is_own = |subject| of_shard.shards.owner(subject) == of_shard.shard;
                let is_type = pattern.predicate.is_none_or(|p| p == PredicateId::TYPE);
                let is_by_subject =
                    !is_type && pattern.subject.map_or(pattern.object.is_none(), is_own);
                let graphs = pair.graph_refs().into_iter().map(Some).chain([None]);
                for graph in graphs {
                    // Nor does it know whether both layers have an edge of a subject of another one.
                    let is_of_subjects =
                        |graph| is_of_named_graphs(graph) || graph == GraphRef::Union;
                    if graph.is_none_or(is_of_subjects) && !is_by_subject {
                        continue;
                    }
                    let scanned = |source: &dyn GraphSource| {
                        let mut quads = Vec::new();
                        let mut visit = |s, p, o, g| {
                            quads.push((s, p, o, g));
                            ControlFlow::Continue(())
                        };
                        let flow = match graph {
                            Some(graph) => source.for_each_match(&pattern, graph, &mut visit),
                            None => source.for_each_quad(&pattern, &mut visit),
                        };
                        assert!(flow.unwrap().is_continue());
                        quads.sort_unstable();
                        quads
                    };
                    let found = scanned(&*of_shard.asked);
                    let note = format!("{}: {pattern:?} {graph:?}", pair.note);
                    assert_eq!(found, scanned(&*of_shard.direct), "{note}");
                    assert!(!is_by_subject || found.iter().all(|quad| is_own(quad.0)));
                }
            }
        }
    }
}

/// Keys and patterns of a graph that a node has in several shards cost a message and its answer, however many
/// shards these are.
#[test]
fn the_shards_of_a_node_are_asked_together() {
    for seed in seeds() {
        let world = World::new(seed);
        let (pair, whole) = (&world.pair, world.asked(world.shards.all().collect()));
        let (asked, direct) = (&*whole, &*pair.one as &dyn GraphSource);
        let (ids, to) = (pair.some_ids(), reversed(&pair.terms));
        let messages = || world.counts.sum().messages;
        for graph in pair.graph_refs_of_rows() {
            for (place, list) in pair.lists().into_iter().enumerate() {
                let note = format!("{}: {graph:?} {place}", pair.note);
                for allowed in [None, Some(&ids)] {
                    let budget = [1, 3, 50, 4000][(place + seed as usize) % 4];
                    let expected = expanded(direct, graph, &[list], allowed, 1000);
                    let before = messages();
                    let found = expanded(asked, graph, &[list], allowed, 4000);
                    assert_eq!(found, expected, "{note}");
                    assert_eq!(messages(), before + 2, "{note}");
                    let found = expanded(asked, graph, &[list], allowed, budget);
                    assert_eq!(found, expected, "{note}");
                    let degrees = |source: &dyn GraphSource| {
                        let mut degrees = vec![7];
                        source.degrees(graph, &list, allowed, &mut degrees).unwrap();
                        degrees
                    };
                    let before = messages();
                    assert_eq!(degrees(asked), degrees(direct), "{note}");
                    assert_eq!(messages(), before + 2, "{note}");
                }
                let contained = |source: &dyn GraphSource| {
                    let mut rows = vec![7];
                    source.contains(graph, &list, &to, &mut rows).unwrap();
                    rows
                };
                let before = messages();
                assert_eq!(contained(asked), contained(direct), "{note}");
                assert_eq!(messages(), before + 2, "{note}");
            }
        }
        for list in pair.lists() {
            let edges = expanded(direct, GraphRef::Named, &[list], None, 1000);
            let key = |(row, _): &(u32, TermId)| list.keys[*row as usize];
            let keys: Vec<TermId> = edges.iter().map(key).collect();
            let to: Vec<TermId> = edges.iter().map(|(_, id)| *id).collect();
            let list = Lists {
                keys: &keys,
                ..list
            };
            let graphs = |source: &dyn GraphSource| {
                let (mut rows, mut graphs) = (Vec::new(), Vec::new());
                (source.graphs_of(&list, &to, &mut rows, &mut graphs)).unwrap();
                let mut found: Vec<_> = rows.into_iter().zip(graphs).collect();
                found.sort_unstable();
                found
            };
            assert_eq!(graphs(asked), graphs(direct), "{}", pair.note);
        }
        let predicates = 1..pair.one.snapshot.predicate_count() as u32;
        for predicate in predicates.map(PredicateId) {
            let pattern = pattern(None, Some(predicate), None);
            for graph in pair.graph_refs().into_iter().map(Some).chain([None]) {
                let scanned = |source: &dyn GraphSource| {
                    let mut quads = Vec::new();
                    let mut visit = |s, p, o, g| {
                        quads.push((s, p, o, g));
                        ControlFlow::Continue(())
                    };
                    let flow = match graph {
                        Some(graph) => source.for_each_match(&pattern, graph, &mut visit),
                        None => source.for_each_quad(&pattern, &mut visit),
                    };
                    assert!(flow.unwrap().is_continue());
                    quads.sort_unstable();
                    quads
                };
                let before = messages();
                let found = scanned(asked);
                assert_eq!(found, scanned(direct), "{}: {graph:?}", pair.note);
                let pages = if found.len() < 256 { 1 } else { 2 };
                assert_eq!(messages(), before + 2 * pages, "{}", pair.note);
            }
        }
    }
}
