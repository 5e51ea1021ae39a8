//! Merged terms and edges -> dictionary, clusters, segments.

use jindou_dictionary::{Interner, StringTable};
use jindou_model::{Direction, PredicateId, TermId, TermKind};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::cluster::{Clustering, cluster};
use super::merge::{Merged, merge};
use super::named::{self, Built, LEAST_RUN};
use super::sink::{BulkSink, Edges, NamedEdges, intern};
use super::sort::sort_pairs;
use crate::base::Base;
use crate::clusters::{Clusters, Lists, MOST_PAIRS, PairEdges};
use crate::identity::Identity;
use crate::layer::Layer;
use crate::named::NamedGraphs;
use crate::runs::{NO_HOME, Runs};
use crate::segment::Segment;
use crate::text_order::{LiteralEnds, TextKinds};
use crate::{Snapshot, StoreError};

/// Makes the base of a store from everything that the sinks collected.
///
/// `documents` is the number of documents that the store has seen with this load.
///
/// # Errors
/// [`StoreError::TooLarge`] beyond 2^32 - 1 distinct vertices or literals.
pub fn build(sinks: Vec<BulkSink>, documents: u64) -> Result<Base, StoreError> {
    let Merged {
        mut vertices,
        literals,
        predicates,
        mut edges,
        mut named,
    } = merge(sinks)?;
    let predicate_order = predicates_in_order(&predicates);
    let predicate_vertices: Vec<u32> = predicate_order
        .iter()
        .map(|number| intern(&mut vertices, predicates.get(*number)))
        .collect::<Result<_, _>>()?;
    drop(predicates);
    let clustering = cluster(&vertices, &literals, (&edges, &named), &predicate_order);
    let (homes, home_graphs) = named::homes(&vertices, &named);
    let order = order_vertices(&vertices, &clustering, &homes);
    let (vertex_order, starts) = (&order.vertices, order.starts.clone());
    drop(homes);
    let literal_order = sorted_by_bytes((0..literals.len() as u32).collect(), &literals);

    let renumbering = Renumbering {
        vertices: inverse(vertex_order),
        literals: inverse(&literal_order),
    };
    let (vertex_table, literal_table) = rayon::join(
        || table(&vertices, vertex_order),
        || table(&literals, &literal_order),
    );
    let predicate_terms = predicate_vertices
        .iter()
        .map(|vertex| TermId::vertex(renumbering.vertices[*vertex as usize].into()))
        .collect();
    drop((vertices, literals));

    // From here on predicates are in their final order.
    let in_order = |number: &u32| *number as usize;
    let mut edges: Vec<Edges> = predicate_order
        .iter()
        .map(|n| std::mem::take(&mut edges[in_order(n)]))
        .collect();
    let mut named: Vec<NamedEdges> = predicate_order
        .iter()
        .map(|n| std::mem::take(&mut named[in_order(n)]))
        .collect();
    edges[PredicateId::TYPE.index()] = Edges::new();
    let segments = default_segments(edges, &renumbering);
    let ids = renumber_named(&mut named, &renumbering);
    let homes = home_numbers(&order, &home_graphs, &ids, &renumbering);
    let runs = Runs::new(order.runs, homes, ids.len());
    let Built {
        segments: named_segments,
        graphs,
    } = named::pack(named, ids, &runs);
    let layer = |segments: [Vec<Option<Segment>>; 2], types: &[Vec<u64>]| {
        let is_empty = segments[0].iter().all(Option::is_none) && types.iter().all(Vec::is_empty);
        let clusters = match is_empty {
            true => Clusters::none(segments[0].len()),
            false => clusters(starts.clone(), types, &segments, &renumbering),
        };
        Layer::new(clusters, segments)
    };
    let [types, named_types] = &clustering.types;
    let layers = [layer(segments, types), layer(named_segments, named_types)];
    let tables = Tables {
        vertices: vertex_table?,
        literals: literal_table?,
        predicate_terms,
    };
    Ok(assemble(tables, layers, graphs, runs, documents))
}

/// Renumbers quads of named graphs; the ids of the graphs, sorted.
fn renumber_named(named: &mut [NamedEdges], renumbering: &Renumbering) -> Vec<u64> {
    let mut ids: Vec<u64> = Vec::new();
    let mut sorted = 0;
    for (subject, object, graph) in named.iter_mut().flatten() {
        *subject = renumbering.term(*subject);
        *object = renumbering.term(*object);
        *graph = renumbering.term(*graph);
        if ids.last() != Some(graph) {
            ids.push(*graph);
        }
        // Repeats leave once they may be half of the list: it stays as long as it must.
        if ids.len() > 2 * sorted + 1024 {
            ids.sort_unstable();
            ids.dedup();
            sorted = ids.len();
        }
    }
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The number among `ids` of the home of each run.
fn home_numbers(order: &Order, graphs: &[u32], ids: &[u64], renumbering: &Renumbering) -> Vec<u32> {
    let number = |rank: &u32| {
        let Some(local) = graphs.get(*rank as usize) else {
            return NO_HOME;
        };
        let id = TermId::vertex(renumbering.vertices[*local as usize].into());
        let place = ids.binary_search(&id.raw());
        place.expect("a home is a graph with quads") as u32
    };
    order.homes.iter().map(number).collect()
}

/// Makes the base of what a snapshot holds: the graph is the same, numbered anew.
///
/// # Errors
/// As [`build`].
pub fn rebuild(snapshot: &Snapshot) -> Result<Base, StoreError> {
    rebuild_with(snapshot, Vec::new(), snapshot.documents())
}

/// As [`rebuild`], with what some sinks collected.
///
/// # Errors
/// As [`build`].
pub fn rebuild_with(
    snapshot: &Snapshot,
    mut sinks: Vec<BulkSink>,
    documents: u64,
) -> Result<Base, StoreError> {
    sinks.push(BulkSink::of_snapshot(snapshot)?);
    let mut base = build(sinks, documents)?;
    let mut key = Vec::new();
    let declared = snapshot.declared_graphs().map(|graph| {
        key.clear();
        snapshot.push_key(graph, &mut key);
        let id = base.find_node(&key);
        id.expect("the sink has the terms of declared graphs").raw()
    });
    let mut declared: Vec<u64> = declared.collect();
    declared.sort_unstable();
    base.declared = declared;
    base.is_union = snapshot.base().is_union;
    Ok(base)
}

/// The dictionary of a base.
pub(crate) struct Tables {
    pub(crate) vertices: StringTable,
    pub(crate) literals: StringTable,
    /// The vertex that each predicate is.
    pub(crate) predicate_terms: Vec<TermId>,
}

/// Joins the parts of a base and derives the map from vertices to predicates.
pub(crate) fn assemble(
    tables: Tables,
    layers: [Layer; 2],
    named: NamedGraphs,
    runs: Runs,
    documents: u64,
) -> Base {
    let Tables {
        vertices,
        literals,
        predicate_terms,
    } = tables;
    let vertex_predicates = predicate_terms
        .iter()
        .enumerate()
        .map(|(number, term)| (term.number(), PredicateId(number as u32)))
        .collect();
    Base {
        vertices,
        literals,
        predicate_terms,
        vertex_predicates,
        layers,
        named,
        runs,
        documents,
        declared: Vec::new(),
        is_union: false,
        vertex_kinds: TextKinds::default(),
        literal_ends: LiteralEnds::default(),
        identity: Identity::default(),
        files: Vec::new(),
    }
}

/// New local ids by old ones.
struct Renumbering {
    vertices: Vec<u32>,
    literals: Vec<u32>,
}

impl Renumbering {
    #[inline]
    fn term(&self, raw: u64) -> u64 {
        let id = TermId::from_raw(raw);
        let local = id.number() as usize;
        match id.kind() {
            TermKind::Vertex => TermId::vertex(self.vertices[local].into()).raw(),
            TermKind::Literal => TermId::literal(self.literals[local].into()).raw(),
            _ => raw,
        }
    }
}

/// `rdf:type`, then the others by their IRIs.
fn predicates_in_order(predicates: &Interner) -> Vec<u32> {
    let mut order = sorted_by_bytes((1..predicates.len() as u32).collect(), predicates);
    order.insert(0, 0);
    order
}

/// The vertices in the order in which they are numbered.
struct Order {
    vertices: Vec<u32>,
    /// Where each cluster begins, and one more.
    starts: Vec<u64>,
    /// Where each run of one cluster and home begins, and one more; and the ranks of the homes.
    runs: Vec<u64>,
    homes: Vec<u32>,
}

/// The vertices by cluster, within one by home (a rank of graphs; those without one last) and,
/// within both, by their bytes.
fn order_vertices(vertices: &Interner, clustering: &Clustering, homes: &[u32]) -> Order {
    let count = clustering.types[0].len();
    let mut starts = vec![0_u64; count + 1];
    for cluster in &clustering.cluster_of {
        starts[*cluster as usize + 1] += 1;
    }
    for cluster in 0..count {
        starts[cluster + 1] += starts[cluster];
    }
    let mut next: Vec<u64> = starts.clone();
    let mut order = vec![0; clustering.cluster_of.len()];
    for (vertex, cluster) in clustering.cluster_of.iter().enumerate() {
        let place = &mut next[*cluster as usize];
        order[*place as usize] = vertex as u32;
        *place += 1;
    }
    let mut runs = vec![0];
    let mut run_homes = Vec::new();
    let mut rest = order.as_mut_slice();
    let mut parts = Vec::new();
    for cluster in 0..count {
        let (mut part, behind) = std::mem::take(&mut rest)
            .split_at_mut((starts[cluster + 1] - starts[cluster]) as usize);
        rest = behind;
        for (length, home) in runs_of(part, homes) {
            let (run, others) = part.split_at_mut(length);
            parts.push(run);
            part = others;
            runs.push(runs.last().expect("it begins with one") + length as u64);
            run_homes.push(home);
        }
    }
    parts
        .into_par_iter()
        .for_each(|part| sort_by_bytes(part, vertices));
    Order {
        vertices: order,
        starts,
        runs,
        homes: run_homes,
    }
}

/// Sorts the vertices of a cluster by home; the lengths of the runs with their homes.
fn runs_of(cluster: &mut [u32], homes: &[u32]) -> Vec<(usize, u32)> {
    if homes.is_empty() {
        return vec![(cluster.len(), NO_HOME)];
    }
    let home = |vertex: &u32| homes[*vertex as usize];
    let is_at_one = cluster
        .iter()
        .all(|vertex| home(vertex) == home(&cluster[0]));
    if is_at_one {
        return vec![(cluster.len(), home(&cluster[0]))];
    }
    let mut counts: FxHashMap<u32, usize> = FxHashMap::default();
    for vertex in cluster.iter() {
        *counts.entry(home(vertex)).or_default() += 1;
    }
    // Few vertices do not make a run.
    counts.retain(|home, count| *home != NO_HOME && *count >= LEAST_RUN);
    let kept = |vertex: &u32| match counts.contains_key(&home(vertex)) {
        true => home(vertex),
        false => NO_HOME,
    };
    cluster.sort_by_key(kept);
    let runs = cluster.chunk_by(|a, b| kept(a) == kept(b));
    runs.map(|run| (run.len(), kept(&run[0]))).collect()
}

fn sorted_by_bytes(mut ids: Vec<u32>, strings: &Interner) -> Vec<u32> {
    sort_by_bytes(&mut ids, strings);
    ids
}

/// Sorts ids by their strings: by the eight bytes behind what all share first, which mostly
/// decides without a look at the strings.
fn sort_by_bytes(ids: &mut [u32], strings: &Interner) {
    let Some(first) = ids.first() else { return };
    let first = strings.get(*first);
    let shared = ids.iter().fold(first.len(), |shared, id| {
        let other = strings.get(*id);
        first[..shared]
            .iter()
            .zip(other)
            .take_while(|(a, b)| a == b)
            .count()
    });
    let mut keyed: Vec<(u64, u32)> = ids
        .iter()
        .map(|id| {
            let behind = &strings.get(*id)[shared..];
            let mut prefix = [0; 8];
            let taken = behind.len().min(8);
            prefix[..taken].copy_from_slice(&behind[..taken]);
            (u64::from_be_bytes(prefix), *id)
        })
        .collect();
    keyed.par_sort_unstable_by(|a, b| {
        a.0.cmp(&b.0)
            .then_with(|| strings.get(a.1)[shared..].cmp(&strings.get(b.1)[shared..]))
    });
    for (slot, (_, id)) in ids.iter_mut().zip(keyed) {
        *slot = id;
    }
}

fn inverse(order: &[u32]) -> Vec<u32> {
    let mut places = vec![0; order.len()];
    for (place, id) in order.iter().enumerate() {
        places[*id as usize] = place as u32;
    }
    places
}

fn table(strings: &Interner, order: &[u32]) -> Result<StringTable, StoreError> {
    StringTable::build(order.len(), |index| strings.get(order[index])).map_err(|error| {
        StoreError::TooLarge {
            reason: error.to_string(),
        }
    })
}

/// Renumbers, sorts and packs the edges of each predicate, both ways.
fn default_segments(edges: Vec<Edges>, renumbering: &Renumbering) -> [Vec<Option<Segment>>; 2] {
    let (out, incoming): (Vec<_>, Vec<_>) = edges
        .into_par_iter()
        .map(|mut list| {
            if list.is_empty() {
                return (None, None);
            }
            for (subject, object) in &mut list {
                *subject = renumbering.term(*subject);
                *object = renumbering.term(*object);
            }
            sort_pairs(&mut list);
            let out = Segment::from_sorted(&list);
            for pair in &mut list {
                *pair = (pair.1, pair.0);
            }
            sort_pairs(&mut list);
            (Some(out), Some(Segment::from_sorted(&list)))
        })
        .unzip();
    [out, incoming]
}

/// The cluster table: types as found, predicates and edge counts from the segments.
fn clusters(
    starts: Vec<u64>,
    of_clusters: &[Vec<u64>],
    segments: &[Vec<Option<Segment>>; 2],
    renumbering: &Renumbering,
) -> Clusters {
    let mut types = Lists::default();
    for list in of_clusters {
        let mut list: Vec<u64> = list.iter().map(|class| renumbering.term(*class)).collect();
        list.sort_unstable();
        types.push(list);
    }
    let count = of_clusters.len();
    let has = [Direction::Out, Direction::In].map(|direction| {
        let mut edges: Vec<Vec<(PredicateId, u64)>> = vec![Vec::new(); count];
        for (number, segment) in segments[direction as usize].iter().enumerate() {
            if let Some(segment) = segment {
                count_edges(segment, PredicateId(number as u32), &starts, &mut edges);
            }
        }
        let mut lists = Lists::default();
        edges.into_iter().for_each(|list| lists.push(list));
        lists
    });
    let mut pairs = Lists::default();
    let counted: Vec<Vec<PairEdges>> = segments[0]
        .par_iter()
        .map(|segment| {
            segment
                .as_ref()
                .map_or_else(Vec::new, |s| count_pairs(s, &starts))
        })
        .collect();
    counted.into_iter().for_each(|list| pairs.push(list));
    Clusters::new(starts, types, has, pairs)
}

/// The edges of one predicate by clusters of both ends, sorted; none where there are too many
/// pairs, or where no object is a vertex.
fn count_pairs(segment: &Segment, starts: &[u64]) -> Vec<PairEdges> {
    let cluster_of = |id: TermId| starts.partition_point(|start| *start <= id.number()) as u32 - 1;
    let mut counts: FxHashMap<(u32, u32), u64> = FxHashMap::default();
    let mut last = (0..0, 0);
    segment.domain().for_each(&mut |subject| {
        let from = cluster_of(subject);
        let list = segment.neighbours(subject);
        for index in 0..list.len() {
            let object = list.get(index);
            if object.kind() != TermKind::Vertex || counts.len() > MOST_PAIRS {
                continue;
            }
            // Neighbours mostly lie in one cluster.
            if !last.0.contains(&object.number()) {
                let cluster = cluster_of(object);
                last = (
                    starts[cluster as usize]..starts[cluster as usize + 1],
                    cluster,
                );
            }
            *counts.entry((from, last.1)).or_default() += 1;
        }
    });
    if counts.len() > MOST_PAIRS {
        return Vec::new();
    }
    let mut pairs: Vec<PairEdges> = counts
        .into_iter()
        .map(|((subjects, objects), edges)| PairEdges {
            subjects,
            objects,
            edges,
        })
        .collect();
    pairs.sort_unstable_by_key(|pair| (pair.subjects, pair.objects));
    pairs
}

/// Adds the edges of one segment to the clusters of their keys.
fn count_edges(
    segment: &Segment,
    predicate: PredicateId,
    starts: &[u64],
    edges: &mut [Vec<(PredicateId, u64)>],
) {
    let mut cluster = 0;
    segment.domain().for_each(&mut |key| {
        if key.kind() != TermKind::Vertex {
            return;
        }
        // Keys come in order, so the clusters do too.
        if key.number() >= starts[cluster + 1] {
            cluster = starts.partition_point(|start| *start <= key.number()) - 1;
        }
        let degree = segment.neighbours(key).len() as u64;
        match edges[cluster].last_mut() {
            Some((last, sum)) if *last == predicate => *sum += degree,
            _ => edges[cluster].push((predicate, degree)),
        }
    });
}
