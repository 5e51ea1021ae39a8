//! Figures of a database, for people and programs.

use std::cmp::Reverse;

use jindou_model::{Direction, PredicateId, TermId};
use jindou_store::{Clusters, LayerView, Snapshot};
use serde::Serialize;

/// How many statements a database has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuadCounts {
    /// Triples of the default graph.
    pub triples: u64,
    /// Quads outside the default graph.
    pub named_quads: u64,
}

impl QuadCounts {
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        Self {
            triples: snapshot.triples(),
            named_quads: snapshot.named_quads(),
        }
    }

    /// Both together.
    #[must_use]
    pub fn total(self) -> u64 {
        self.triples + self.named_quads
    }
}

/// Named graphs that are looked at to tell which are the largest: where there are more, none is told.
const COMPARED_GRAPHS: u64 = 100_000;

/// How many statements are where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GraphSizes {
    /// Triples of the default graph.
    pub default_graph: u64,
    /// The largest named graphs with their quads, the largest first: an IRI, or `_:` and the label of a blank node.
    pub largest: Vec<(String, u64)>,
    /// Quads of all other named graphs.
    pub others: u64,
}

impl GraphSizes {
    pub(crate) fn of(snapshot: &Snapshot, most: usize) -> Self {
        let QuadCounts {
            triples,
            named_quads,
        } = QuadCounts::of(snapshot);
        let mut graphs = Vec::new();
        if snapshot.named_graphs() <= COMPARED_GRAPHS {
            snapshot.for_each_graph(&mut |graph| {
                graphs.push((snapshot.graph_quads(graph, None), graph));
            });
        }
        graphs.sort_unstable_by_key(|&(quads, graph)| (Reverse(quads), graph.raw()));
        graphs.truncate(most);
        let told: u64 = graphs.iter().map(|(quads, _)| quads).sum();
        let name = |graph| {
            let mut key = Vec::new();
            snapshot.push_key(graph, &mut key);
            String::from_utf8_lossy(&key).into_owned()
        };
        let largest = graphs
            .into_iter()
            .map(|(quads, graph)| (name(graph), quads));
        Self {
            default_graph: triples,
            largest: largest.collect(),
            others: named_quads - told,
        }
    }
}

/// Of which node's shards a database has the rows, where it is the part of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PartStatistics {
    /// The node, among how many, and how many shards it has of how many.
    pub of: String,
    /// Triples of the default graph that are here: those of the subjects whose rows it has, and all of `rdf:type`.
    pub triples: u64,
    /// Quads of named graphs that are here.
    pub named_quads: u64,
}

impl PartStatistics {
    pub(crate) fn of(snapshot: &Snapshot) -> Option<Self> {
        let base = snapshot.base();
        let (triples, named_quads) = base.own_quads();
        base.node_part().map(|part| Self {
            of: part.to_string(),
            triples,
            named_quads,
        })
    }
}

/// What is in a database and what it takes. Of the part of a store, numbers are those of the whole, and bytes those of
/// the part.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct DatabaseStatistics {
    /// Triples of the default graph.
    pub triples: u64,
    /// Quads outside the default graph.
    pub named_quads: u64,
    /// Named graphs.
    pub named_graphs: u64,
    /// IRIs and blank nodes that are subjects, objects or graphs.
    pub vertices: u64,
    /// Literals in the dictionary; others are held in their ids.
    pub dictionary_literals: u64,
    /// Characteristic sets: distinct combinations of types and predicates, out and in.
    pub characteristic_sets: u64,
    /// Classes: distinct objects of `rdf:type`.
    pub classes: u64,
    /// Bytes of the dictionary with its index.
    pub dictionary_bytes: u64,
    /// Bytes of the segments of the default graph.
    pub segment_bytes: u64,
    /// Bytes of quads outside the default graph.
    pub named_bytes: u64,
    /// Bytes of the characteristic sets.
    pub characteristic_set_bytes: u64,
    /// Quads added or removed since the last merge.
    pub changes: u64,
    /// Bytes of these changes and of the terms that came with them.
    pub change_bytes: u64,
    /// The default graph of queries is the union of all graphs, unless they say otherwise.
    pub union_default_graph: bool,
    /// What is here, of the part of a store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<PartStatistics>,
    /// The predicates, the most frequent first.
    pub predicates: Vec<PredicateStatistics>,
}

/// Figures of one predicate in the default graph.
#[derive(Clone, Debug, Serialize)]
pub struct PredicateStatistics {
    /// Its IRI.
    pub iri: String,
    /// Triples.
    pub triples: u64,
    /// Distinct subjects.
    pub subjects: u64,
    /// Distinct objects.
    pub objects: u64,
    /// Distinct triples of all named graphs.
    pub named_edges: u64,
}

impl DatabaseStatistics {
    pub(crate) fn of(base: &Snapshot) -> Self {
        let footprint = base.base().footprint();
        let clusters = || {
            [base.default_graph(), base.named_layer()]
                .map(LayerView::clusters)
                .into_iter()
        };
        let mut classes: Vec<TermId> = clusters().flat_map(|layer| layer.types()).collect();
        classes.sort_unstable();
        classes.dedup();
        let mut predicates: Vec<PredicateStatistics> = (0..base.predicate_count())
            .map(|number| {
                let id = PredicateId(number as u32);
                let default = base.default_graph();
                let (triples, subjects) = default.counts(id, Direction::Out);
                let (_, objects) = default.counts(id, Direction::In);
                let (named_edges, _) = base.named_layer().counts(id, Direction::Out);
                let mut iri = Vec::new();
                base.push_key(base.predicate_term(id), &mut iri);
                let iri = String::from_utf8_lossy(&iri).into_owned();
                PredicateStatistics {
                    iri,
                    triples,
                    subjects,
                    objects,
                    named_edges,
                }
            })
            .filter(|predicate| predicate.triples > 0 || predicate.named_edges > 0)
            .collect();
        let all = |predicate: &PredicateStatistics| predicate.triples + predicate.named_edges;
        predicates.sort_by(|a, b| all(b).cmp(&all(a)).then_with(|| a.iri.cmp(&b.iri)));
        let (vertices, dictionary_literals) = base.dictionary_terms();
        Self {
            triples: base.triples(),
            named_quads: base.named_quads(),
            named_graphs: base.named_graphs(),
            vertices,
            dictionary_literals,
            characteristic_sets: clusters().map(Clusters::len).max().unwrap_or(0) as u64,
            classes: classes.len() as u64,
            dictionary_bytes: footprint.dictionary as u64,
            segment_bytes: footprint.segments as u64,
            named_bytes: footprint.named as u64,
            characteristic_set_bytes: footprint.clusters as u64,
            changes: base.changes(),
            change_bytes: base.delta_bytes() as u64,
            union_default_graph: base.base().is_union(),
            part: PartStatistics::of(base),
            predicates,
        }
    }

    /// Bytes of all parts.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        self.dictionary_bytes
            + self.segment_bytes
            + self.named_bytes
            + self.characteristic_set_bytes
    }
}

#[cfg(test)]
mod tests {
    use crate::ingest::{Format, Progress, Source};
    use crate::{Config, Database, LoadOptions, MergePolicy};

    /// What is counted along is what the table of predicates and the quads themselves come to.
    fn check(database: &Database, expected: (u64, u64), what: &str) {
        let counts = database.quad_counts();
        assert_eq!((counts.triples, counts.named_quads), expected, "{what}");
        assert_eq!(counts.total(), expected.0 + expected.1, "{what}");
        let statistics = database.statistics();
        let of_predicates = statistics.predicates.iter().map(|one| one.triples);
        assert_eq!(of_predicates.sum::<u64>(), counts.triples, "{what}");
    }

    #[test]
    fn the_cheap_counts_are_those_of_the_table_of_predicates_after_every_kind_of_change() {
        let folder = tempfile::tempdir().expect("there is room");
        let location = folder.path().join("store");
        let config = Config {
            merge: MergePolicy::never(),
            ..Config::default()
        };
        let database = Database::open_or_create(&location, config.clone()).expect("it is new");
        check(&database, (0, 0), "empty");
        let update = |text: &str| {
            database.update(text).expect("the update is sound");
        };
        update(
            "INSERT DATA { <e:a> a <e:C> ; <e:p> 1, 2 ; <e:q> <e:b> GRAPH <e:g> { <e:a> <e:p> 1 } }",
        );
        check(&database, (4, 1), "inserted");
        database.compact().expect("there is room");
        check(&database, (4, 1), "merged");
        update(
            "DELETE DATA { <e:a> a <e:C> ; <e:p> 1 } ; INSERT DATA { <e:b> a <e:C> ; <e:r> 5 , 6 }",
        );
        check(&database, (5, 1), "changed");
        let text =
            "<e:c> <e:s> <e:d> . <e:c> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <e:D> .";
        let text = text.replace(" . ", " .\n");
        let document = Source::bytes("document.nt", text).with_format(Format::NTriples);
        let (options, progress) = (LoadOptions::default(), Progress::default());
        let loaded = database.load(vec![document], &options, &progress);
        assert_eq!(loaded.expect("it is sound").triples, 7);
        check(&database, (7, 1), "loaded");
        drop(database);
        let database = Database::open(&location, config).expect("it is whole");
        check(&database, (7, 1), "opened");
    }
}
