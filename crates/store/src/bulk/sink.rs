//! What one parsing thread collects: which terms and which edges has it seen?

use std::ops::ControlFlow;

use jindou_dictionary::Interner;
use jindou_model::{Pattern, PredicateId, TermId, TermKind, inline, key};
use oxrdf::vocab::rdf;
use oxrdf::{GraphNameRef, LiteralRef, NamedOrBlankNodeRef, QuadRef, TermRef};

use crate::{Snapshot, StoreError};

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

    /// The quads of a snapshot, with the terms that occur in them alone, and its declared graphs.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] beyond 2^32 - 1 distinct vertices or literals.
    pub fn of_snapshot(snapshot: &Snapshot) -> Result<Self, StoreError> {
        Collector::new(snapshot).collect()
    }

    /// Number of quads collected, repeats included.
    #[must_use]
    pub fn quads(&self) -> u64 {
        let edges = self.edges.iter().map(Vec::len).sum::<usize>();
        (edges + self.named.iter().map(Vec::len).sum::<usize>()) as u64
    }

    /// Number of distinct vertices and literals.
    #[must_use]
    pub fn terms(&self) -> u64 {
        (self.vertices.len() + self.literals.len()) as u64
    }

    /// Bytes of the keys of distinct vertices and literals: what a table that shares nothing between
    /// them would take.
    #[must_use]
    pub fn text_bytes(&self) -> u64 {
        (self.vertices.text_bytes() + self.literals.text_bytes()) as u64
    }

    /// Bytes that terms and edges are kept in. Costs a look at each predicate.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let terms = self.vertices.bytes() + self.literals.bytes() + self.predicates.bytes();
        let edges: usize = self.edges.iter().map(Vec::capacity).sum();
        let named: usize = self.named.iter().map(Vec::capacity).sum();
        let edges = edges * size_of::<(u64, u64)>() + named * size_of::<(u64, u64, u64)>();
        (terms + edges) as u64
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
        Ok(TermId::vertex(u64::from(local)).raw())
    }

    fn blank(&mut self, label: &str) -> Result<u64, StoreError> {
        self.scratch.clear();
        self.scratch.extend_from_slice(b"_:");
        self.scratch.extend_from_slice(label.as_bytes());
        let local = intern(&mut self.vertices, &self.scratch)?;
        Ok(TermId::vertex(u64::from(local)).raw())
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
        Ok(TermId::literal(u64::from(local)).raw())
    }
}

/// Brings ids of a snapshot into those of a sink.
struct Collector<'a> {
    snapshot: &'a Snapshot,
    sink: BulkSink,
    /// New local ids by old ones; `u32::MAX` where a term has none yet.
    vertices: Vec<u32>,
    literals: Vec<u32>,
    key: Vec<u8>,
}

impl<'a> Collector<'a> {
    fn new(snapshot: &'a Snapshot) -> Self {
        Self {
            snapshot,
            sink: BulkSink::new(),
            vertices: vec![u32::MAX; snapshot.vertex_numbers() as usize],
            literals: vec![u32::MAX; snapshot.literal_count() as usize],
            key: Vec::new(),
        }
    }

    fn collect(mut self) -> Result<BulkSink, StoreError> {
        let snapshot = self.snapshot;
        for is_named in [false, true] {
            for number in 0..snapshot.predicate_count() {
                let predicate = PredicateId(number as u32);
                let pattern = Pattern {
                    subject: None,
                    predicate: Some(predicate),
                    object: None,
                };
                let mut place = None;
                let mut result = Ok(());
                let mut visit = |s, _, o, g| {
                    result = self.quad(predicate, &mut place, [s, o, g]);
                    match result {
                        Ok(()) => ControlFlow::Continue(()),
                        Err(_) => ControlFlow::Break(()),
                    }
                };
                let _ = match is_named {
                    true => snapshot.for_each_quad(&pattern, &mut visit),
                    false => snapshot
                        .default_graph()
                        .for_each_match(&pattern, &mut visit),
                };
                result?;
            }
        }
        for graph in snapshot.declared_graphs() {
            self.term(graph)?;
        }
        Ok(self.sink)
    }

    fn quad(
        &mut self,
        predicate: PredicateId,
        place: &mut Option<usize>,
        [subject, object, graph]: [TermId; 3],
    ) -> Result<(), StoreError> {
        let number = match *place {
            Some(number) => number,
            None => {
                self.key.clear();
                let term = self.snapshot.predicate_term(predicate);
                self.snapshot.push_key(term, &mut self.key);
                let iri = std::str::from_utf8(&self.key).expect("predicates are IRIs");
                *place.insert(self.sink.predicate(iri)?)
            }
        };
        let (subject, object) = (self.term(subject)?, self.term(object)?);
        if graph.is_none() {
            self.sink.edges[number].push((subject, object));
        } else {
            let graph = self.term(graph)?;
            self.sink.named[number].push((subject, object, graph));
        }
        Ok(())
    }

    fn term(&mut self, id: TermId) -> Result<u64, StoreError> {
        let known = match id.kind() {
            TermKind::Vertex => self.vertices[id.number() as usize],
            TermKind::Literal => self.literals[id.number() as usize],
            _ => return Ok(id.raw()),
        };
        let literal = id.kind() == TermKind::Literal;
        let local = if known == u32::MAX {
            self.key.clear();
            self.snapshot.push_key(id, &mut self.key);
            let interner = if literal {
                &mut self.sink.literals
            } else {
                &mut self.sink.vertices
            };
            intern(interner, &self.key)?
        } else {
            known
        };
        match id.kind() {
            TermKind::Vertex => self.vertices[id.number() as usize] = local,
            TermKind::Literal => self.literals[id.number() as usize] = local,
            _ => {}
        }
        let local = u64::from(local);
        Ok(if literal {
            TermId::literal(local).raw()
        } else {
            TermId::vertex(local).raw()
        })
    }
}

pub(super) fn intern(interner: &mut Interner, bytes: &[u8]) -> Result<u32, StoreError> {
    interner
        .intern(bytes)
        .map_err(|error| StoreError::TooLarge {
            reason: error.to_string(),
        })
}
