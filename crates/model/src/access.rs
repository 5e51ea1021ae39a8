//! How is the graph asked? The words that stores and executors share.

use std::ops::ControlFlow;

use crate::{Direction, PredicateId, TermId};

/// Something known of a vertex from its characteristic set alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Membership {
    /// It has this `rdf:type` in the default graph.
    Type(TermId),
    /// It has an edge of this predicate and direction in the default graph.
    Has(PredicateId, Direction),
}

/// Where the expansion of many keys goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Index of the key.
    pub key: usize,
    /// Neighbours of that key which were handled already.
    pub offset: usize,
}

/// Which quads a pattern reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Graphs {
    /// The default graph.
    Default,
    /// One named graph.
    One(TermId),
    /// Every named graph.
    Named,
}

/// A quad pattern: what is known of subject, predicate and object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The subject, if known.
    pub subject: Option<TermId>,
    /// The predicate, if known.
    pub predicate: Option<PredicateId>,
    /// The object, if known.
    pub object: Option<TermId>,
}

/// Called with subject, predicate, object and graph (`NONE` for the default graph).
pub type Visit<'a> = dyn FnMut(TermId, PredicateId, TermId, TermId) -> ControlFlow<()> + 'a;
