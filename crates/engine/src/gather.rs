//! Which ids have the terms of quads that come as text?
//!
//! Quads are gathered, some hundred at a time, and each distinct term of these is looked up once,
//! together with the others: a lookup alone waits for memory several times.

use hashbrown::HashTable;
use jindou_exec::{KeyKind, Keys};
use jindou_model::{IdQuad, PredicateId, TermId, inline, key};
use jindou_plan::{DataQuad, DataTerm};
use jindou_store::{Snapshot, StoreError, TermKey};
use oxrdf::{GraphNameRef, QuadRef, TermRef};

use crate::streams::{ObjectKey, TupleKeys};

/// Quads are gathered up to so many, or until their terms have so many bytes.
const MOST_QUADS: usize = 1024;
const MOST_BYTES: usize = 1 << 18;

/// A term of a gathered quad.
#[derive(Clone, Copy, Debug)]
enum Gathered {
    /// It is known, or there is none.
    Id(TermId),
    /// That of a number among the keys.
    Key(u32),
}

/// A quad whose terms are not looked up yet.
#[derive(Clone, Copy, Debug)]
struct GatheredQuad {
    subject: Gathered,
    /// The number of its IRI's key.
    predicate: u32,
    object: Gathered,
    graph: Gathered,
}

/// A quad to remove: `None` where a snapshot does not have a term.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundQuad {
    pub(crate) quad: Option<IdQuad>,
    pub(crate) predicate: Option<PredicateId>,
    pub(crate) is_named: bool,
}

/// Quads whose terms are looked up together.
#[derive(Default)]
pub(crate) struct Gather {
    keys: Keys,
    hashes: Vec<u64>,
    /// Numbers of the keys.
    numbers: HashTable<u32>,
    quads: Vec<GatheredQuad>,
    /// The key that may be one of them.
    key: Vec<u8>,
}

impl Gather {
    /// Adds a quad of a request's data, of which `scope` tells the blank nodes from all others.
    pub(crate) fn push_data(&mut self, quad: &DataQuad<'_>, scope: &str) {
        let quad = GatheredQuad {
            subject: self.data_term(quad.subject, scope),
            predicate: self.iri_key(quad.predicate),
            object: self.data_term(quad.object, scope),
            graph: match quad.graph {
                Some(graph) => self.iri(graph),
                None => Gathered::Id(TermId::NONE),
            },
        };
        self.quads.push(quad);
    }

    /// Adds a quad of a document, of which `scope` tells the blank nodes from all others.
    pub(crate) fn push_quad(&mut self, quad: QuadRef<'_>, scope: &str) {
        let quad = GatheredQuad {
            subject: self.term(quad.subject.into(), scope),
            predicate: self.iri_key(quad.predicate.as_str()),
            object: self.term(quad.object, scope),
            graph: match quad.graph_name {
                GraphNameRef::DefaultGraph => Gathered::Id(TermId::NONE),
                GraphNameRef::NamedNode(node) => self.iri(node.as_str()),
                GraphNameRef::BlankNode(node) => self.term(node.into(), scope),
            },
        };
        self.quads.push(quad);
    }

    /// Adds a tuple of a stream, in no graph.
    pub(crate) fn push_tuple(&mut self, tuple: TupleKeys<'_>) {
        let quad = GatheredQuad {
            subject: Gathered::Key(self.number(tuple.subject, KeyKind::Node)),
            predicate: self.iri_key(tuple.predicate),
            object: match tuple.object {
                ObjectKey::Inline(id) => Gathered::Id(id),
                ObjectKey::Node(key) => Gathered::Key(self.number(key, KeyKind::Node)),
                ObjectKey::Literal(key) => Gathered::Key(self.number(key, KeyKind::Literal)),
            },
            graph: Gathered::Id(TermId::NONE),
        };
        self.quads.push(quad);
    }

    fn data_term(&mut self, term: DataTerm<'_>, scope: &str) -> Gathered {
        match term {
            DataTerm::Iri(iri) => self.iri(iri),
            DataTerm::Literal(literal) => self.term(literal.into(), scope),
            // Numbers begin with a digit.
            DataTerm::Label(label) => self.blank_node(&[scope, "b", label]),
            DataTerm::Anonymous(number) => self.blank_node(&[scope, &number.to_string()]),
        }
    }

    fn term(&mut self, term: TermRef<'_>, scope: &str) -> Gathered {
        if let TermRef::BlankNode(node) = term {
            return self.blank_node(&[scope, node.as_str()]);
        }
        if let Some(id) = inline_id(term) {
            return Gathered::Id(id);
        }
        self.term_with(|bytes| match key::push_term(bytes, term) {
            true => KeyKind::Literal,
            false => KeyKind::Node,
        })
    }

    fn iri(&mut self, iri: &str) -> Gathered {
        Gathered::Key(self.iri_key(iri))
    }

    /// The number of an IRI's key.
    fn iri_key(&mut self, iri: &str) -> u32 {
        self.number(iri.as_bytes(), KeyKind::Node)
    }

    /// The blank node with a label of these parts.
    fn blank_node(&mut self, label: &[&str]) -> Gathered {
        self.term_with(|bytes| {
            bytes.extend_from_slice(b"_:");
            (label.iter()).for_each(|part| bytes.extend_from_slice(part.as_bytes()));
            KeyKind::Node
        })
    }

    /// The term whose key `write` makes.
    fn term_with(&mut self, write: impl FnOnce(&mut Vec<u8>) -> KeyKind) -> Gathered {
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        let kind = write(&mut key);
        let number = self.number(&key, kind);
        self.key = key;
        Gathered::Key(number)
    }

    fn number(&mut self, key: &[u8], kind: KeyKind) -> u32 {
        let hash = TermKey::new(key, kind == KeyKind::Literal).hash();
        let (keys, hashes) = (&self.keys, &self.hashes);
        let is_it = |number: &u32| keys.get(*number as usize) == (key, kind);
        if let Some(known) = self.numbers.find(hash, is_it) {
            return *known;
        }
        let number = keys.len() as u32;
        (self.numbers).insert_unique(hash, number, |number| hashes[*number as usize]);
        self.keys.push(key, kind);
        self.hashes.push(hash);
        number
    }

    /// Number of quads.
    pub(crate) fn len(&self) -> usize {
        self.quads.len()
    }

    /// True if it is time to look the terms up.
    pub(crate) fn is_full(&self) -> bool {
        self.quads.len() >= MOST_QUADS || self.keys.bytes() >= MOST_BYTES
    }

    /// Hands over the quads in the ids of a snapshot, which gets the terms that it lacks.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`]; that of `put`.
    pub(crate) fn intern<E: From<StoreError>>(
        &mut self,
        snapshot: &mut Snapshot,
        mut put: impl FnMut(IdQuad) -> Result<(), E>,
    ) -> Result<(), E> {
        let ids = snapshot.intern_keys(&self.term_keys())?;
        let mut predicates = vec![None; ids.len()];
        let id = |term| match term {
            Gathered::Id(id) => id,
            Gathered::Key(number) => ids[number as usize],
        };
        for quad in &self.quads {
            let number = quad.predicate as usize;
            let predicate = match predicates[number] {
                Some(known) => known,
                None => *predicates[number].insert(snapshot.predicate_of_node(ids[number])?),
            };
            put(IdQuad {
                subject: id(quad.subject),
                predicate,
                object: id(quad.object),
                graph: id(quad.graph),
            })?;
        }
        self.clear();
        Ok(())
    }

    /// Hands over the quads in the ids of a snapshot, as far as it has their terms.
    pub(crate) fn find(&mut self, snapshot: &Snapshot, mut put: impl FnMut(FoundQuad)) {
        let ids = snapshot.find_keys(&self.term_keys());
        let id = |term| match term {
            Gathered::Id(id) => Some(id),
            Gathered::Key(number) => ids[number as usize],
        };
        for quad in &self.quads {
            let predicate = ids[quad.predicate as usize];
            let predicate = predicate.and_then(|id| snapshot.predicate_of_term(id));
            let known = || {
                Some(IdQuad {
                    subject: id(quad.subject)?,
                    predicate: predicate?,
                    object: id(quad.object)?,
                    graph: id(quad.graph)?,
                })
            };
            put(FoundQuad {
                quad: known(),
                predicate,
                is_named: !matches!(quad.graph, Gathered::Id(TermId::NONE)),
            });
        }
        self.clear();
    }

    fn term_keys(&self) -> Vec<TermKey<'_>> {
        let keys = self.keys.iter().zip(&self.hashes);
        keys.map(|((key, kind), hash)| TermKey::hashed(key, kind == KeyKind::Literal, *hash))
            .collect()
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.hashes.clear();
        self.numbers.clear();
        self.quads.clear();
    }
}

/// The id of a literal that is held in it.
pub(crate) fn inline_id(term: TermRef<'_>) -> Option<TermId> {
    match term {
        TermRef::Literal(literal) if literal.language().is_none() => {
            inline::encode(literal.value(), literal.datatype().as_str())
        }
        _ => None,
    }
}
