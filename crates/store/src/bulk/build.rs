//! Merged terms and edges -> dictionary, clusters, segments.

use jindou_dictionary::{Interner, StringTable};
use jindou_model::{PredicateId, TermId, TermKind};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::cluster::{Clustering, cluster};
use super::merge::{Merged, merge};
use super::named::{self, Built, LEAST_RUN};
use super::sink::{BulkSink, Edges, NamedEdges, intern};
use super::sort::sort_pairs;
use crate::base::Base;
use crate::base_files::BaseFiles;
use crate::clusters::{Clusters, Lists, Stretches};
use crate::identity::Identity;
use crate::layer::Layer;
use crate::named::NamedGraphs;
use crate::runs::{NO_HOME, Runs};
use crate::segment::Segment;
use crate::tables::TermTables;
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
    let mut literal_order: Vec<u32> = (0..literals.len() as u32).collect();
    sort_by_bytes(&mut literal_order, |id| literals.get(id));

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
            false => Clusters::of_segments(
                Stretches::one_each(starts.clone()),
                sorted_types(types, |class| renumbering.term(class)),
                &segments,
            ),
        };
        Layer::new(clusters, segments)
    };
    let [types, named_types] = &clustering.types;
    let layers = [layer(segments, types), layer(named_segments, named_types)];
    let mut base = assemble(Parts {
        vertices: vertex_table?,
        literals: literal_table?,
        predicate_terms,
        layers,
        named: graphs,
        runs,
        documents,
    });
    let all: Vec<PredicateId> = base.predicates().collect();
    base.pack(&all)?;
    Ok(base)
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

/// Makes the base of what a snapshot holds: the graph is the same, and all terms are numbered anew.
/// Whoever remembers ids must forget them: nothing does this but `compact --renumber`, and a backup of
/// a database in memory, which is another store.
///
/// # Errors
/// As [`build`].
pub fn rebuild(snapshot: &Snapshot) -> Result<Base, StoreError> {
    let sink = BulkSink::of_snapshot(snapshot)?;
    let mut base = build(vec![sink], snapshot.documents())?;
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

/// What a base is made of.
pub(crate) struct Parts {
    pub(crate) vertices: TermTables,
    pub(crate) literals: TermTables,
    /// The vertex that each predicate is.
    pub(crate) predicate_terms: Vec<TermId>,
    pub(crate) layers: [Layer; 2],
    pub(crate) named: NamedGraphs,
    pub(crate) runs: Runs,
    pub(crate) documents: u64,
}

/// Joins the parts of a base and derives the map from vertices to predicates.
pub(crate) fn assemble(parts: Parts) -> Base {
    let Parts {
        vertices,
        literals,
        predicate_terms,
        layers,
        named,
        runs,
        documents,
    } = parts;
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
        identity: Identity::random(),
        node_part: None,
        files: BaseFiles::default(),
    }
}

/// New local ids by old ones.
pub(super) struct Renumbering {
    pub(super) vertices: Vec<u32>,
    pub(super) literals: Vec<u32>,
}

impl Renumbering {
    #[inline]
    pub(super) fn term(&self, raw: u64) -> u64 {
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
pub(super) fn predicates_in_order(predicates: &Interner) -> Vec<u32> {
    let mut order: Vec<u32> = (0..predicates.len() as u32).collect();
    sort_by_bytes(&mut order[1..], |number| predicates.get(number));
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
        .for_each(|part| sort_by_bytes(part, |id| vertices.get(id)));
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
    let runs = runs_of_counts(counts.iter().map(|(home, count)| (*home, *count)));
    counts.retain(|home, _| runs.binary_search_by_key(home, |(_, kept)| *kept).is_ok());
    let kept = |vertex: &u32| match counts.contains_key(&home(vertex)) {
        true => home(vertex),
        false => NO_HOME,
    };
    cluster.sort_by_key(kept);
    runs
}

/// The lengths of the runs of a set, each with its home, of which it has so many vertices of each home: few of one
/// do not make a run unless they are all.
pub(super) fn runs_of_counts(
    counts: impl Iterator<Item = (u32, usize)> + Clone,
) -> Vec<(usize, u32)> {
    let is_at_one = counts.clone().nth(1).is_none();
    let (mut runs, mut others) = (Vec::new(), 0);
    for (home, count) in counts {
        match is_at_one || (home != NO_HOME && count >= LEAST_RUN) {
            true => runs.push((count, home)),
            false => others += count,
        }
    }
    if others > 0 {
        runs.push((others, NO_HOME));
    }
    runs.sort_unstable_by_key(|(_, home)| *home);
    runs
}

/// Sorts ids by their strings: by the eight bytes behind what all share first, which mostly
/// decides without a look at the strings.
pub(super) fn sort_by_bytes<'a>(ids: &mut [u32], string: impl Fn(u32) -> &'a [u8] + Sync) {
    let Some(first) = ids.first() else { return };
    let first = string(*first);
    let shared = ids.iter().fold(first.len(), |shared, id| {
        let other = string(*id);
        first[..shared]
            .iter()
            .zip(other)
            .take_while(|(a, b)| a == b)
            .count()
    });
    let mut keyed: Vec<(u64, u32)> = ids
        .iter()
        .map(|id| {
            let behind = &string(*id)[shared..];
            let mut prefix = [0; 8];
            let taken = behind.len().min(8);
            prefix[..taken].copy_from_slice(&behind[..taken]);
            (u64::from_be_bytes(prefix), *id)
        })
        .collect();
    keyed.par_sort_unstable_by(|a, b| {
        a.0.cmp(&b.0)
            .then_with(|| string(a.1)[shared..].cmp(&string(b.1)[shared..]))
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

fn table(strings: &Interner, order: &[u32]) -> Result<TermTables, StoreError> {
    StringTable::build(order.len(), |index| strings.get(order[index]))
        .and_then(TermTables::new)
        .map_err(|error| StoreError::TooLarge {
            reason: error.to_string(),
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

/// Types of each set as ids of the store, which `id_of` tells.
pub(super) fn sorted_types(of_sets: &[Vec<u64>], id_of: impl Fn(u64) -> u64) -> Lists<u64> {
    let mut types = Lists::default();
    for list in of_sets {
        let mut list: Vec<u64> = list.iter().map(|class| id_of(*class)).collect();
        list.sort_unstable();
        types.push(list);
    }
    types
}
