//! In which graphs do the triples of a data set lie?
//!
//! A triple's graphs follow from its text alone, so that they are the same in every run. Beside the
//! graphs that are asked lie triples that would give other answers if they were seen.

use crate::random::Random;
use oxrdf::{GraphName, NamedNode, Quad};
use std::collections::{BTreeMap, BTreeSet};

/// Graphs of [`Placement::Overlapping`].
const OVERLAPPING_GRAPHS: usize = 5;
/// Graphs of [`Placement::BySubject`].
const SUBJECT_GRAPHS: usize = 3;
/// One of this many triples is in two graphs.
const DOUBLE_EVERY: u64 = 4;
/// One triple of others for this many at most.
const OTHERS_EVERY: u64 = 3;

/// How a data set is spread over graphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Placement {
    /// All in the default graph.
    Default,
    /// All in the only named graph; others in the default graph.
    One,
    /// All in one named graph; others in the default graph and in another named graph.
    OneOfTwo,
    /// By triple over several named graphs, some triples in two of them; others in the default
    /// graph and in another named graph.
    Overlapping,
    /// By subject over all named graphs, those that [`Everywhere`] chooses in each of them; others
    /// in the default graph.
    BySubject,
    /// By triple over the default graph and all named graphs, some triples in two of these.
    Spread,
}

/// Triples that are in each graph of [`Placement::BySubject`].
pub type Everywhere = fn(&Quad) -> bool;

/// For data whose triples are all spread.
#[must_use]
pub fn nothing_everywhere(_: &Quad) -> bool {
    false
}

impl Placement {
    /// Those with named graphs.
    pub const NAMED: [Self; 5] = [
        Self::One,
        Self::OneOfTwo,
        Self::Overlapping,
        Self::BySubject,
        Self::Spread,
    ];

    /// The names of the graphs that have the data.
    #[must_use]
    pub fn graphs(self) -> Vec<NamedNode> {
        let count = match self {
            Self::Default => 0,
            Self::One | Self::OneOfTwo => 1,
            Self::Overlapping | Self::Spread => OVERLAPPING_GRAPHS,
            Self::BySubject => SUBJECT_GRAPHS,
        };
        let name = |number| NamedNode::new_unchecked(format!("urn:jindou-conformance:g{number}"));
        (0..count).map(name).collect()
    }

    /// The triples of `quads` in these graphs, each once in each of its graphs.
    #[must_use]
    pub fn place(self, quads: &[Quad], everywhere: Everywhere) -> Vec<Quad> {
        let graphs = self.graphs();
        let distinct: BTreeSet<String> = quads.iter().map(triple_text).collect();
        let mut left = distinct;
        let mut placed = Vec::with_capacity(quads.len());
        for quad in quads {
            if !left.remove(&triple_text(quad)) {
                continue;
            }
            let mut put = |graph: GraphName| {
                let mut quad = quad.clone();
                quad.graph_name = graph;
                placed.push(quad);
            };
            if graphs.is_empty() || (self == Self::Spread && is_in_default(quad)) {
                put(GraphName::DefaultGraph);
            }
            for index in self.graphs_of(quad, everywhere) {
                put(graphs[index].clone().into());
            }
        }
        placed
    }

    /// The data as [`Placement::place`] has it, and the triples of others beside it.
    #[must_use]
    pub fn place_beside_others(self, quads: &[Quad], everywhere: Everywhere) -> Vec<Quad> {
        let mut placed = self.place(quads, everywhere);
        let graphs = match self {
            Self::Default | Self::Spread => return placed,
            Self::One | Self::BySubject => vec![GraphName::DefaultGraph],
            Self::OneOfTwo | Self::Overlapping => {
                let other = NamedNode::new_unchecked("urn:jindou-conformance:other");
                vec![GraphName::DefaultGraph, other.into()]
            }
        };
        for quad in others(quads) {
            placed.extend(graphs.iter().map(|graph| Quad {
                graph_name: graph.clone(),
                ..quad.clone()
            }));
        }
        placed
    }

    fn graphs_of(self, quad: &Quad, everywhere: Everywhere) -> Vec<usize> {
        let below = |hash: u64, count: usize| Random::new(hash).below(count);
        match self {
            Self::Default => Vec::new(),
            Self::One | Self::OneOfTwo => vec![0],
            Self::BySubject if everywhere(quad) => (0..SUBJECT_GRAPHS).collect(),
            Self::BySubject => {
                vec![below(hash(&quad.subject.to_string()), SUBJECT_GRAPHS)]
            }
            Self::Spread if is_in_default(quad) && !is_in_named_too(quad) => Vec::new(),
            Self::Overlapping | Self::Spread => {
                let hash = hash(&triple_text(quad));
                let first = below(hash, OVERLAPPING_GRAPHS);
                match hash.is_multiple_of(DOUBLE_EVERY) {
                    true => vec![first, (first + 1) % OVERLAPPING_GRAPHS],
                    false => vec![first],
                }
            }
        }
    }
}

/// Whether [`Placement::Spread`] puts a triple into the default graph.
fn is_in_default(quad: &Quad) -> bool {
    (hash(&triple_text(quad)) >> 16).is_multiple_of(3)
}

fn is_in_named_too(quad: &Quad) -> bool {
    (hash(&triple_text(quad)) >> 24).is_multiple_of(2)
}

/// Triples that are not in the data, but join as they do: the objects of some triples change
/// places with those of the same predicate.
fn others(quads: &[Quad]) -> Vec<Quad> {
    let known: BTreeSet<String> = quads.iter().map(triple_text).collect();
    let mut last: BTreeMap<&str, &Quad> = BTreeMap::new();
    let mut found = BTreeMap::new();
    for quad in quads {
        let Some(before) = last.insert(quad.predicate.as_str(), quad) else {
            continue;
        };
        let other = Quad {
            object: before.object.clone(),
            ..quad.clone()
        };
        let text = triple_text(&other);
        if hash(&text).is_multiple_of(OTHERS_EVERY) && !known.contains(&text) {
            found.insert(text, other);
        }
    }
    found.into_values().collect()
}

/// A triple without its graph.
pub(crate) fn triple_text(quad: &Quad) -> String {
    format!("{} {} {}", quad.subject, quad.predicate, quad.object)
}

/// FNV-1a, the same on every machine.
pub(crate) fn hash(text: &str) -> u64 {
    text.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random_data::{Profile, dataset};

    fn triples() -> Vec<Quad> {
        let mut random = Random::new(7);
        let mut profile = Profile::random(&mut random);
        profile.graphs = false;
        dataset(&mut random, profile)
    }

    fn texts(quads: &[Quad]) -> BTreeSet<String> {
        quads.iter().map(triple_text).collect()
    }

    #[test]
    fn every_triple_is_placed_and_no_other() {
        let quads = triples();
        for placement in [Placement::Default].into_iter().chain(Placement::NAMED) {
            let placed = placement.place(&quads, nothing_everywhere);
            assert_eq!(texts(&placed), texts(&quads), "{placement:?}");
            assert_eq!(placed, placement.place(&quads, nothing_everywhere));
        }
    }

    #[test]
    fn some_triples_overlap_and_all_graphs_have_some() {
        let quads = triples();
        let placed = Placement::Overlapping.place(&quads, nothing_everywhere);
        assert!(placed.len() > quads.len() && placed.len() < 2 * quads.len());
        let used: BTreeSet<_> = placed.iter().map(|q| q.graph_name.to_string()).collect();
        assert_eq!(used.len(), OVERLAPPING_GRAPHS);
    }

    #[test]
    fn others_are_in_no_graph_that_is_asked() {
        let quads = triples();
        // The union of all graphs has no others.
        let asks_some = |placement: &Placement| *placement != Placement::Spread;
        for placement in Placement::NAMED.into_iter().filter(asks_some) {
            let placed = placement.place(&quads, nothing_everywhere);
            let beside = placement.place_beside_others(&quads, nothing_everywhere);
            let (data, others) = beside.split_at(placed.len());
            assert_eq!(data, placed);
            assert!(!others.is_empty() && texts(others).is_disjoint(&texts(&quads)));
            for graph in placement.graphs() {
                let graph = GraphName::from(graph);
                assert!(others.iter().all(|quad| quad.graph_name != graph));
            }
        }
    }

    #[test]
    fn a_subject_is_in_one_graph_unless_it_is_everywhere() {
        let quads = triples();
        let placed = Placement::BySubject.place(&quads, nothing_everywhere);
        assert_eq!(placed.len(), quads.len());
        let all = Placement::BySubject.place(&quads, |_| true);
        assert_eq!(all.len(), quads.len() * SUBJECT_GRAPHS);
    }
}
