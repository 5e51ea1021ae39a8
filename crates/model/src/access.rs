//! How is the graph asked? The words that stores and executors share.

use std::ops::ControlFlow;

use crate::{Direction, PredicateId, ShardId, TermId};

/// Something known of a vertex in a graph, from its characteristic set alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Membership {
    /// It has this `rdf:type`.
    Type(TermId),
    /// It has an edge of this predicate and direction.
    Has(PredicateId, Direction),
}

/// What a set of the ids with some traits is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// To be listed: it has those ids and no others.
    Exact,
    /// To leave others out: types are honoured, predicates where that is cheap.
    Filter,
    /// To leave others out among ids that are known to have this trait: of any others it may have
    /// some, which makes it fewer ranges.
    FilterOf(Membership),
}

impl Precision {
    /// True of [`Precision::Exact`].
    #[must_use]
    pub fn is_exact(self) -> bool {
        self == Self::Exact
    }
}

/// Where the expansion of many keys goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Index of the key.
    pub key: usize,
    /// Neighbours of that key which were handled already.
    pub offset: usize,
}

/// Which graph is asked. Those of several graphs have each of their edges once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphRef<'a> {
    /// The stored default graph.
    Default,
    /// One named graph.
    One(TermId),
    /// The merge of some named graphs: their ids, sorted.
    Some(&'a [TermId]),
    /// The merge of all named graphs.
    Named,
    /// The merge of all named graphs and of the stored default graph.
    Union,
    /// Of each row a named graph of its own, none where that is `NONE`: as many as there are rows.
    /// Calls without rows take it for the merge of all named graphs.
    Each(&'a [TermId]),
}

/// Why a graph does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// It will, if it is asked again: what is asked for is on its way. Nothing was done but what
    /// the cursor of the call says.
    #[error("the graph is not ready")]
    NotNow,
    /// A shard was lost.
    #[error("shard {} is lost", _0.0)]
    Never(ShardId),
    /// Who holds a part of it does not keep it any more as it was at this snapshot.
    #[error("the snapshot is not kept any more")]
    Gone,
}

/// Lists of neighbours to be followed together: one for each key.
#[derive(Clone, Copy, Debug)]
pub struct Lists<'a> {
    /// The edges' predicate.
    pub predicate: PredicateId,
    /// Which end the keys are.
    pub direction: Direction,
    /// The known ends, one for each row.
    pub keys: &'a [TermId],
}

/// What is counted of the ends of edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counted {
    /// Each term once, however many edges it has.
    Terms,
    /// The edges.
    Edges,
}

/// The terms at one end of edges, to be counted.
#[derive(Clone, Copy, Debug)]
pub struct EndsAsked<'a> {
    /// Where the edges are.
    pub graph: GraphRef<'a>,
    /// Their predicate; any without one.
    pub predicate: Option<PredicateId>,
    /// Which end: `Out` for subjects, `In` for objects.
    pub direction: Direction,
    /// The terms or the edges.
    pub counted: Counted,
    /// Those of each kind by themselves; all together otherwise.
    pub by_kind: bool,
}

/// How many terms of one kind, or edges with such an end, there are. A kind is that of IRIs, of blank nodes, or of
/// the literals of one datatype and one language; one kind may be told in several pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindCount {
    /// One of the terms of that kind; `NONE` where all are counted together.
    pub term: TermId,
    /// How many, one at least.
    pub count: u64,
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

impl Pattern {
    /// Anything.
    pub const ALL: Self = Self {
        subject: None,
        predicate: None,
        object: None,
    };
}

/// Called with subject, predicate, object and graph (`NONE` for the default graph and merges).
pub type Visit<'a> = dyn FnMut(TermId, PredicateId, TermId, TermId) -> ControlFlow<()> + 'a;
