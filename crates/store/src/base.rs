//! The immutable base of a store: everything that a bulk load leaves behind, and how to read it.

use jindou_model::{Direction, PredicateId, TermId, TermKind};
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_64;

use crate::StoreError;
use crate::base_files::BaseFiles;
use crate::delta::TermCounts;
use crate::identity::Identity;
use crate::layer::{Layer, LayerKind};
use crate::named::NamedGraphs;
use crate::node_part::NodePart;
use crate::runs::Runs;
use crate::tables::TermTables;

/// One generation of the graph, with its dictionary. Nothing in it changes.
pub struct Base {
    pub(crate) vertices: TermTables,
    pub(crate) literals: TermTables,
    /// The vertex that each predicate is.
    pub(crate) predicate_terms: Vec<TermId>,
    /// The predicates of vertices, by number.
    pub(crate) vertex_predicates: FxHashMap<u64, PredicateId>,
    /// The default graph, and all named graphs laid over each other.
    pub(crate) layers: [Layer; 2],
    /// Which graphs has each edge of the second layer?
    pub(crate) named: NamedGraphs,
    /// Vertices in the order of their texts.
    pub(crate) runs: Runs,
    /// Documents loaded so far: blank nodes of the next one get this scope.
    pub(crate) documents: u64,
    /// Graphs that exist without quads, too, sorted.
    pub(crate) declared: Vec<u64>,
    /// The default graph of queries that say nothing else is the union of all graphs.
    pub(crate) is_union: bool,
    /// As its file says; the default of a base that was not read from one.
    pub(crate) identity: Identity,
    /// Of which node it is the part, where it is no whole store.
    pub(crate) node_part: Option<NodePart>,
    /// The files that it lies in, if it does.
    pub(crate) files: BaseFiles,
}

/// Bytes by part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Vertices and literals with their index.
    pub dictionary: usize,
    /// Segments of the default graph.
    pub segments: usize,
    /// Segments of the named graphs, and which edges each of these has.
    pub named: usize,
    /// Characteristic sets.
    pub clusters: usize,
}

impl Footprint {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> usize {
        self.dictionary + self.segments + self.named + self.clusters
    }
}

impl Base {
    /// Refuses if one of the mapped files was shortened, or could not be read, since it was opened:
    /// then what was read from the base before this call may have been zeros in place of what was
    /// written. Costs nanoseconds.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] with the name of the file, from then on at every call.
    pub fn check(&self) -> Result<(), StoreError> {
        match self.files.mapped().find(|(_, region)| region.is_damaged()) {
            None => Ok(()),
            Some((path, _)) => Err(StoreError::lost_bytes(path)),
        }
    }

    /// Reads all of it: is the dictionary the same both ways, and what is derived from the edges what
    /// they say?
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] with the file, if it lies in files.
    pub fn verify(&self) -> Result<(), StoreError> {
        crate::verify::base(self, std::path::Path::new("memory"))
    }

    /// A digest of all edges, of files with the same bytes the same one; none of what is not in files.
    #[must_use]
    pub fn edges_digest(&self) -> Option<u64> {
        let checksums = self.files.checksums_of_edges()?;
        Some(xxh3_64(bytemuck::cast_slice(&checksums)))
    }

    /// How many merges made it since the bulk load.
    #[must_use]
    pub fn merges(&self) -> u64 {
        self.files.merge
    }

    /// True if it lies in files rather than in memory of its own.
    #[must_use]
    pub fn is_in_files(&self) -> bool {
        self.files.mapped().next().is_some()
    }

    /// Of which node of a cluster it is the part; none of a whole store.
    #[must_use]
    pub fn node_part(&self) -> Option<&NodePart> {
        self.node_part.as_ref()
    }

    /// What is counted of named graphs in the whole, of which this may be a part.
    pub(crate) fn named_figures(&self) -> &NamedGraphs {
        let part = self.node_part.as_ref();
        part.map_or(&self.named, |part| &part.whole.named)
    }

    /// Number of quads of a named graph, of the whole.
    #[must_use]
    pub fn quads_of_graph(&self, graph: TermId) -> u64 {
        self.named_figures().quads_of(graph)
    }

    /// Triples of the default graph and quads of named graphs that are here: of a part, all of `rdf:type` and those of
    /// the subjects whose rows it has.
    #[must_use]
    pub fn own_quads(&self) -> (u64, u64) {
        let default = self.layer(LayerKind::Default);
        let edges = |id| default.own_counts(PredicateId(id as u32))[Direction::Out as usize].0;
        let of_segments: u64 = (0..self.predicate_count()).map(edges).sum();
        (
            default.clusters().type_edges() + of_segments,
            self.named.quads(),
        )
    }

    /// Edges of a predicate in both layers, by the subjects whose rows it has.
    pub(crate) fn edges_by_subject(&self, predicate: PredicateId) -> u64 {
        let layers = self.layers.iter();
        layers
            .map(|layer| layer.own_counts(predicate)[Direction::Out as usize].0)
            .sum()
    }

    /// True if the default graph of queries is the union of all graphs, unless they say otherwise.
    #[must_use]
    pub fn is_union(&self) -> bool {
        self.is_union
    }

    /// Says what the default graph of queries is: for the life of a store, as merges keep it.
    #[must_use]
    pub fn with_union(mut self, is_union: bool) -> Self {
        self.is_union = is_union;
        self
    }

    /// How many terms there are.
    #[must_use]
    pub fn term_counts(&self) -> TermCounts {
        TermCounts {
            vertices: self.vertex_count(),
            numbers: self.vertex_count(),
            literals: self.literal_count(),
            predicates: self.predicate_count() as u64,
        }
    }

    /// Number of predicates.
    #[must_use]
    pub fn predicate_count(&self) -> usize {
        self.predicate_terms.len()
    }

    /// Number of vertices.
    #[must_use]
    pub fn vertex_count(&self) -> u64 {
        self.vertices.len()
    }

    /// Number of literals in the dictionary.
    #[must_use]
    pub fn literal_count(&self) -> u64 {
        self.literals.len()
    }

    /// One of the layers.
    #[inline]
    #[must_use]
    pub fn layer(&self, kind: LayerKind) -> &Layer {
        &self.layers[kind as usize]
    }

    /// The named graphs and which edges of their layer they have.
    #[must_use]
    pub fn named(&self) -> &NamedGraphs {
        &self.named
    }

    /// Documents loaded so far; blank nodes of the next one get this scope.
    #[must_use]
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// Vertex keys by number.
    #[must_use]
    pub fn vertex_tables(&self) -> &TermTables {
        &self.vertices
    }

    /// Literal keys by number.
    #[must_use]
    pub fn literal_tables(&self) -> &TermTables {
        &self.literals
    }

    /// Bytes by part.
    #[must_use]
    pub fn footprint(&self) -> Footprint {
        Footprint {
            dictionary: self.vertices.bytes()
                + self.literals.bytes()
                + self.predicate_terms.len() * 8
                + self.vertex_predicates.capacity() * 16
                + self.node_part().map_or(0, |part| part.whole.texts.bytes()),
            segments: self.layers[0].segment_bytes(),
            named: self.layers[1].segment_bytes() + self.named.bytes(),
            clusters: self
                .layers
                .iter()
                .map(|l| l.clusters.bytes())
                .sum::<usize>()
                + self.runs.bytes(),
        }
    }

    /// The id of the vertex with this key.
    ///
    /// # Panics
    /// Of a node's part, which does not know all: see [`Base::find_name`].
    #[must_use]
    pub fn find_node(&self, key: &[u8]) -> Option<TermId> {
        self.vertices.lookup(key, |_| false).map(TermId::vertex)
    }

    /// The id of the dictionary literal with this key.
    ///
    /// # Panics
    /// Of a node's part.
    #[must_use]
    pub fn find_literal(&self, key: &[u8]) -> Option<TermId> {
        self.literals.lookup(key, |_| false).map(TermId::literal)
    }

    /// The id of the vertex with this key, if it is a predicate, a type or a named graph, whose names a node's part
    /// has, too; perhaps that of another vertex.
    #[must_use]
    pub fn find_name(&self, key: &[u8]) -> Option<TermId> {
        match &self.node_part {
            None => self.find_node(key),
            Some(part) => part.whole.names.lookup(key).map(TermId::vertex),
        }
    }

    /// The predicate with this IRI.
    #[must_use]
    pub fn find_predicate(&self, iri: &str) -> Option<PredicateId> {
        self.predicate_of_term(self.find_name(iri.as_bytes())?)
    }

    /// Appends the ids that the term of this hash may have; see [`TermTables`]. Of a node's part, the hash is to be
    /// one of its shards.
    pub(crate) fn push_candidates(&self, hash: u64, is_literal: bool, ids: &mut Vec<TermId>) {
        match is_literal {
            false => (self.vertices).candidates(hash, |number| ids.push(TermId::vertex(number))),
            true => (self.literals).candidates(hash, |number| ids.push(TermId::literal(number))),
        }
    }

    /// True if the key of a vertex or a literal is here: of a node's part, if it holds the id's shard, or every node
    /// knows the name.
    #[must_use]
    pub fn has_key(&self, id: TermId) -> bool {
        match &self.node_part {
            None => true,
            Some(part) => part.has_rows_of(id) || part.has_name(id),
        }
    }

    /// The term of a predicate.
    ///
    /// # Panics
    /// If there is no such predicate.
    #[must_use]
    pub fn predicate_term(&self, predicate: PredicateId) -> TermId {
        self.predicate_terms[predicate.index()]
    }

    /// The predicate that a term is, if it is one.
    #[must_use]
    pub fn predicate_of_term(&self, term: TermId) -> Option<PredicateId> {
        match term.kind() {
            TermKind::Vertex => self.vertex_predicates.get(&term.number()).copied(),
            _ => None,
        }
    }

    /// Appends the key of a vertex or dictionary literal.
    ///
    /// # Panics
    /// If the id is not one of this store, or its key is not [here](Base::has_key).
    pub fn push_key(&self, id: TermId, key: &mut Vec<u8>) {
        let named = self.node_part.as_ref().filter(|part| part.has_name(id));
        let done = match id.kind() {
            _ if named.is_some() => {
                named.map_or(Ok(()), |part| part.whole.names.extract(id.number(), key))
            }
            TermKind::Vertex => self.vertices.extract(id.number(), key),
            TermKind::Literal => self.literals.extract(id.number(), key),
            kind => panic!("a term of kind {kind:?} has no key in the dictionary"),
        };
        done.unwrap_or_else(|error| panic!("term {id:?} is not in the dictionary: {error}"));
    }
}
