//! What one parsing thread collects: which terms and which edges has it seen?

use jindou_dictionary::Interner;
use jindou_model::{ShardId, TermId, inline, key};
use oxrdf::vocab::rdf;
use oxrdf::{GraphNameRef, LiteralRef, NamedOrBlankNodeRef, QuadRef, TermRef};

use crate::StoreError;

/// Edges (subject, object) of one predicate in the sink's own ids.
pub(super) type Edges = Vec<(u64, u64)>;

/// An edge outside the default graph: subject, object, graph.
pub(super) type NamedEdges = Vec<(u64, u64, u64)>;

/// Terms and edges of one thread.
///
/// Holds each distinct term once and 16 bytes a triple (24 a quad).
pub struct BulkSink {
    pub(super) vertices: Interner,
    pub(super) literals: Interner,
    /// Predicate IRIs; number 0 is `rdf:type`.
    pub(super) predicates: Interner,
    pub(super) edges: Vec<Edges>,
    pub(super) named: Vec<NamedEdges>,
    /// The last subject and its id: triples mostly come by subject.
    last_subject: (Vec<u8>, u64),
    scratch: Vec<u8>,
}

impl Default for BulkSink {
    fn default() -> Self {
        Self::new()
    }
}

impl BulkSink {
    /// An empty sink.
    #[must_use]
    pub fn new() -> Self {
        let mut sink = Self {
            vertices: Interner::new(),
            literals: Interner::new(),
            predicates: Interner::new(),
            edges: Vec::new(),
            named: Vec::new(),
            last_subject: (Vec::new(), u64::MAX),
            scratch: Vec::new(),
        };
        sink.predicate(rdf::TYPE.as_str())
            .expect("one predicate fits");
        sink
    }

    /// Number of quads collected, repeats included.
    #[must_use]
    pub fn quads(&self) -> u64 {
        let edges = self.edges.iter().map(Vec::len).sum::<usize>();
        (edges + self.named.iter().map(Vec::len).sum::<usize>()) as u64
    }

    /// Takes one quad.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] beyond 2^32 - 1 distinct vertices or literals.
    pub fn quad(&mut self, quad: QuadRef<'_>) -> Result<(), StoreError> {
        let predicate = self.predicate(quad.predicate.as_str())?;
        let subject = self.subject(quad.subject)?;
        let object = match quad.object {
            TermRef::NamedNode(node) => self.vertex(node.as_str().as_bytes())?,
            TermRef::BlankNode(node) => self.blank(node.as_str())?,
            TermRef::Literal(literal) => self.literal(literal)?,
        };
        match quad.graph_name {
            GraphNameRef::DefaultGraph => self.edges[predicate].push((subject, object)),
            GraphNameRef::NamedNode(node) => {
                let graph = self.vertex(node.as_str().as_bytes())?;
                self.named[predicate].push((subject, object, graph));
            }
            GraphNameRef::BlankNode(node) => {
                let graph = self.blank(node.as_str())?;
                self.named[predicate].push((subject, object, graph));
            }
        }
        Ok(())
    }

    fn predicate(&mut self, iri: &str) -> Result<usize, StoreError> {
        let number = intern(&mut self.predicates, iri.as_bytes())? as usize;
        if number == self.edges.len() {
            self.edges.push(Vec::new());
            self.named.push(Vec::new());
        }
        Ok(number)
    }

    fn subject(&mut self, subject: NamedOrBlankNodeRef<'_>) -> Result<u64, StoreError> {
        match subject {
            NamedOrBlankNodeRef::NamedNode(node) => {
                let bytes = node.as_str().as_bytes();
                if self.last_subject.0 == bytes {
                    return Ok(self.last_subject.1);
                }
                let id = self.vertex(bytes)?;
                self.last_subject.0.clear();
                self.last_subject.0.extend_from_slice(bytes);
                self.last_subject.1 = id;
                Ok(id)
            }
            NamedOrBlankNodeRef::BlankNode(node) => self.blank(node.as_str()),
        }
    }

    fn vertex(&mut self, bytes: &[u8]) -> Result<u64, StoreError> {
        let local = intern(&mut self.vertices, bytes)?;
        Ok(TermId::vertex(ShardId(0), u64::from(local)).raw())
    }

    fn blank(&mut self, label: &str) -> Result<u64, StoreError> {
        self.scratch.clear();
        self.scratch.extend_from_slice(b"_:");
        self.scratch.extend_from_slice(label.as_bytes());
        let local = intern(&mut self.vertices, &self.scratch)?;
        Ok(TermId::vertex(ShardId(0), u64::from(local)).raw())
    }

    fn literal(&mut self, literal: LiteralRef<'_>) -> Result<u64, StoreError> {
        if literal.language().is_none()
            && let Some(id) = inline::encode(literal.value(), literal.datatype().as_str())
        {
            return Ok(id.raw());
        }
        self.scratch.clear();
        key::push_literal(&mut self.scratch, literal);
        let local = intern(&mut self.literals, &self.scratch)?;
        Ok(TermId::literal(ShardId(0), u64::from(local)).raw())
    }
}

pub(super) fn intern(interner: &mut Interner, bytes: &[u8]) -> Result<u32, StoreError> {
    interner
        .intern(bytes)
        .map_err(|error| StoreError::TooLarge {
            reason: error.to_string(),
        })
}
