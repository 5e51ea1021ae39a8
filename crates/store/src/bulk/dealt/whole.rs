//! What does each node know of the whole? All count over their own rows, and each sums what all say.

use std::sync::Arc;

use jindou_model::PredicateId;
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_64;

use super::failed::Failed;
use super::peers::Peers;
use super::wire::{Reader, push_number, word};
use crate::Base;
use crate::clusters::{MOST_PAIRS, PairEdges, SetCounts, in_order};
use crate::graph_index::Entry;
use crate::identity::Identity;
use crate::layer::LayerKind;
use crate::named::NamedGraphs;
use crate::node_part::SegmentCounts;
use crate::predicate_graphs::PredicateGraphs;

/// Edges by predicate.
type ByPredicate = Vec<(PredicateId, u64)>;

/// The next number, which is below an end.
fn below(end: u32, reader: &mut Reader<'_>) -> Result<u32, Failed> {
    let number = reader.narrow()?;
    match number < end {
        true => Ok(number),
        false => Err(Failed::malformed()),
    }
}

/// What the edges of all nodes say of sets, given what this node's say.
pub(super) fn set_counts(peers: &Peers<'_>, own: SetCounts) -> Result<SetCounts, Failed> {
    let [out, incoming] = own.edges;
    let (sets, predicates) = (out.len() as u32, own.pairs.len() as u32);
    let out = edges_by_set(peers, out, predicates)?;
    let edges = [out, edges_by_set(peers, incoming, predicates)?];
    let pairs = pairs(peers, own.pairs, sets)?;
    Ok(SetCounts { edges, pairs })
}

fn edges_by_set(
    peers: &Peers<'_>,
    own: Vec<ByPredicate>,
    predicates: u32,
) -> Result<Vec<ByPredicate>, Failed> {
    let mut all: Vec<ByPredicate> = vec![Vec::new(); own.len()];
    let mut left = (0..)
        .zip(own)
        .filter(|(_, list): &(u64, ByPredicate)| !list.is_empty());
    let mut write = |out: &mut Vec<u8>| match left.next() {
        Some((set, list)) => {
            push_number(out, set);
            push_number(out, list.len() as u64);
            for (predicate, edges) in list {
                push_number(out, predicate.0.into());
                push_number(out, edges);
            }
            false
        }
        None => true,
    };
    peers.to_all(&mut write, &mut |_, reader| {
        while !reader.is_empty() {
            let set = reader.narrow()? as usize;
            let list = all.get_mut(set).ok_or_else(Failed::malformed)?;
            for _ in 0..reader.number()? {
                let (predicate, edges) = (below(predicates, reader)?, reader.number()?);
                let predicate = PredicateId(predicate);
                match list.binary_search_by_key(&predicate, |(other, _)| *other) {
                    Ok(place) => list[place].1 = edges.saturating_add(list[place].1),
                    Err(place) => list.insert(place, (predicate, edges)),
                }
            }
        }
        Ok(())
    })?;
    Ok(all)
}

/// By predicate: edges by pair of sets, or that there are too many pairs.
fn pairs(
    peers: &Peers<'_>,
    own: Vec<Option<Vec<PairEdges>>>,
    sets: u32,
) -> Result<Vec<Option<Vec<PairEdges>>>, Failed> {
    let mut all: Vec<Option<FxHashMap<(u32, u32), u64>>> =
        vec![Some(FxHashMap::default()); own.len()];
    let is_some =
        |pairs: &Option<Vec<PairEdges>>| pairs.as_ref().is_none_or(|pairs| !pairs.is_empty());
    let mut left = (0..)
        .zip(own)
        .filter(|(_, pairs): &(u64, _)| is_some(pairs));
    let mut write = |out: &mut Vec<u8>| match left.next() {
        Some((predicate, pairs)) => {
            push_number(out, predicate);
            push_number(out, pairs.is_some().into());
            let pairs = pairs.unwrap_or_default();
            push_number(out, pairs.len() as u64);
            for pair in pairs {
                push_number(out, pair.subjects.into());
                push_number(out, pair.objects.into());
                push_number(out, pair.edges);
            }
            false
        }
        None => true,
    };
    peers.to_all(&mut write, &mut |_, reader| {
        while !reader.is_empty() {
            let predicate = reader.narrow()? as usize;
            let sum = all.get_mut(predicate).ok_or_else(Failed::malformed)?;
            if reader.number()? == 0 {
                *sum = None;
            }
            for _ in 0..reader.number()? {
                let pair = (below(sets, reader)?, below(sets, reader)?);
                let edges = reader.number()?;
                if let Some(sum) = sum {
                    let sum = sum.entry(pair).or_default();
                    *sum = edges.saturating_add(*sum);
                }
            }
            if sum.as_ref().is_some_and(|sum| sum.len() > MOST_PAIRS) {
                *sum = None;
            }
        }
        Ok(())
    })?;
    Ok(all.into_iter().map(|pairs| pairs.map(in_order)).collect())
}

/// What is said of the edges of predicates.
pub(super) struct EdgeFigures {
    /// By layer and predicate.
    pub(super) layers: [Arc<[SegmentCounts]>; 2],
    /// By predicate.
    pub(super) digests: Arc<[u64]>,
}

/// What all nodes say of the edges of predicates, given a base of this node's.
pub(super) fn edge_figures(peers: &Peers<'_>, own: &Base) -> Result<EdgeFigures, Failed> {
    let predicates = own.predicate_count();
    let mut layers = [0, 1].map(|_| vec![SegmentCounts::default(); predicates]);
    let mut digests: Vec<Vec<u64>> = vec![Vec::new(); peers.nodes];
    let mut left = own.predicates();
    let mut write = |out: &mut Vec<u8>| match left.next() {
        Some(predicate) => {
            for kind in LayerKind::ALL {
                for (edges, keys) in own.layer(kind).own_counts(predicate) {
                    push_number(out, edges);
                    push_number(out, keys);
                }
            }
            out.extend_from_slice(&own.digest_of(predicate).to_le_bytes());
            false
        }
        None => true,
    };
    peers.to_all(&mut write, &mut |node, reader| {
        while !reader.is_empty() {
            let predicate = digests[node].len();
            for layer in &mut layers {
                for counts in layer.get_mut(predicate).ok_or_else(Failed::malformed)? {
                    counts.0 = reader.number()?.saturating_add(counts.0);
                    counts.1 = reader.number()?.saturating_add(counts.1);
                }
            }
            digests[node].push(word(reader.bytes(8)?));
        }
        Ok(())
    })?;
    if digests.iter().any(|digests| digests.len() != predicates) {
        return Err(Failed::malformed());
    }
    let digest = |predicate: usize| {
        let of_nodes: Vec<u64> = digests.iter().map(|digests| digests[predicate]).collect();
        xxh3_64(bytemuck::cast_slice(&of_nodes))
    };
    Ok(EdgeFigures {
        layers: layers.map(Arc::from),
        digests: (0..predicates).map(digest).collect(),
    })
}

/// How many quads named graphs have at all nodes, by predicate: of `rdf:type`, each node has all.
pub(super) fn named_figures(
    peers: &Peers<'_>,
    own: &NamedGraphs,
    predicates: usize,
) -> Result<NamedGraphs, Failed> {
    let ids = (1..predicates as u32).map(PredicateId);
    let mut left = ids.flat_map(|id| own.entries(id).map(move |entry| (id, entry)));
    let mut all: Vec<(u32, u32, u64)> = Vec::new();
    let (predicate_end, graph_end) = (predicates as u32, own.graphs.len() as u32);
    let mut write = |out: &mut Vec<u8>| match left.next() {
        Some((predicate, (graph, edges))) => {
            push_number(out, predicate.0.into());
            push_number(out, graph.into());
            push_number(out, edges);
            false
        }
        None => true,
    };
    peers.to_all(&mut write, &mut |_, reader: &mut Reader<'_>| {
        while !reader.is_empty() {
            let predicate = below(predicate_end, reader)?;
            all.push((predicate, below(graph_end, reader)?, reader.number()?));
        }
        Ok(())
    })?;
    let types = own.entries(PredicateId::TYPE);
    all.extend(types.map(|(graph, edges)| (PredicateId::TYPE.0, graph, edges)));
    all.sort_unstable();
    let mut entries: Vec<Vec<Entry>> = vec![Vec::new(); predicates];
    for same in all.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let edges = same.iter().map(|(_, _, edges)| *edges);
        entries[same[0].0 as usize].push(Entry {
            graph: same[0].1,
            edges: edges.fold(0, u64::saturating_add),
            listed: 0,
        });
    }
    let part = |entries: &Vec<Entry>| Arc::new(PredicateGraphs::without_places(entries));
    let parts = entries.iter().map(part).collect();
    Ok(NamedGraphs::join(Arc::clone(&own.graphs), parts))
}

/// What all nodes agree upon that one decides: the identity of the base, and the documents that the store has seen.
pub(super) fn agree(peers: &Peers<'_>, documents: u64) -> Result<(Identity, u64), Failed> {
    let (mut identity, mut most) = (Identity::default(), 0);
    let own = Identity::random();
    let mut write = |out: &mut Vec<u8>| {
        for word in own.0.into_iter().chain([documents]) {
            out.extend_from_slice(&word.to_le_bytes());
        }
        true
    };
    peers.to_all(&mut write, &mut |node, reader| {
        let words = [word(reader.bytes(8)?), word(reader.bytes(8)?)];
        most = most.max(word(reader.bytes(8)?));
        if node == 0 {
            identity = Identity(words);
        }
        Ok(())
    })?;
    Ok((identity, most))
}
