//! Ids: which kind of term is this, and which one of them?

use std::fmt;

/// Bits of a [`TermId`] below the kind.
pub const PAYLOAD_BITS: u32 = 60;

const PAYLOAD_MASK: u64 = (1 << PAYLOAD_BITS) - 1;

/// What a [`TermId`] stands for: its four top bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum TermKind {
    /// No term: an unbound variable, or the default graph where a graph is named.
    None = 0,
    /// An IRI or a blank node, wherever it occurs: predicates have a number as vertices, too.
    Vertex = 1,
    /// A literal kept in the dictionary.
    Literal = 2,
    /// A window of a continuous query: it names a graph to that query, and is no term.
    Window = 3,
    /// `xsd:integer`, held inline.
    Integer = 4,
    /// `xsd:decimal`, held inline.
    Decimal = 5,
    /// `xsd:double` in plain decimal notation, held inline.
    Double = 6,
    /// `xsd:float` in plain decimal notation, held inline.
    Float = 7,
    /// `xsd:boolean`, held inline.
    Boolean = 8,
    /// `xsd:dateTime`, held inline.
    DateTime = 9,
    /// `xsd:date`, held inline.
    Date = 10,
    /// Kept for the triple terms of RDF 1.2.
    Triple = 12,
    /// A term computed by one query and known to that query only.
    Computed = 15,
}

/// The id of an RDF term: equal ids are equal terms, and the other way round.
///
/// Eight bytes; the order of ids is the order of (kind, payload) and says nothing about the
/// terms. A term keeps its id for the life of the store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct TermId(u64);

impl TermId {
    /// No term: an unbound variable, or the default graph.
    pub const NONE: Self = Self(0);

    /// An id from its kind and payload.
    ///
    /// # Panics
    /// If the payload needs more than [`PAYLOAD_BITS`].
    #[inline]
    #[must_use]
    pub const fn new(kind: TermKind, payload: u64) -> Self {
        assert!(payload <= PAYLOAD_MASK, "payload of a term id overflows");
        Self(((kind as u64) << PAYLOAD_BITS) | payload)
    }

    /// The vertex of this number, which is below 2^60.
    #[inline]
    #[must_use]
    pub const fn vertex(number: u64) -> Self {
        Self::new(TermKind::Vertex, number)
    }

    /// The dictionary literal of this number, which is below 2^60.
    #[inline]
    #[must_use]
    pub const fn literal(number: u64) -> Self {
        Self::new(TermKind::Literal, number)
    }

    /// The window of this number among those of a continuous query.
    #[inline]
    #[must_use]
    pub const fn window(number: u16) -> Self {
        Self::new(TermKind::Window, number as u64)
    }

    /// The id whose 64 bits are `raw`, as [`TermId::raw`] gave them.
    #[inline]
    #[must_use]
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// The 64 bits.
    #[inline]
    #[must_use]
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// True of [`TermId::NONE`].
    #[inline]
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// The kind; an id of a reserved kind, which only corrupt data can hold, is `None`.
    #[inline]
    #[must_use]
    pub const fn kind(self) -> TermKind {
        match self.0 >> PAYLOAD_BITS {
            1 => TermKind::Vertex,
            2 => TermKind::Literal,
            3 => TermKind::Window,
            4 => TermKind::Integer,
            5 => TermKind::Decimal,
            6 => TermKind::Double,
            7 => TermKind::Float,
            8 => TermKind::Boolean,
            9 => TermKind::DateTime,
            10 => TermKind::Date,
            12 => TermKind::Triple,
            15 => TermKind::Computed,
            _ => TermKind::None,
        }
    }

    /// The 60 bits below the kind.
    #[inline]
    #[must_use]
    pub const fn payload(self) -> u64 {
        self.0 & PAYLOAD_MASK
    }

    /// The number of a vertex or dictionary literal: among all of its kind, over all shards.
    #[inline]
    #[must_use]
    pub const fn number(self) -> u64 {
        self.payload()
    }

    /// True of literals that hold their value in the id.
    #[inline]
    #[must_use]
    pub const fn is_inline(self) -> bool {
        matches!(self.0 >> PAYLOAD_BITS, 4..=10)
    }
}

impl fmt::Debug for TermId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_none() {
            return f.write_str("TermId::NONE");
        }
        write!(f, "{:?}({:#x})", self.kind(), self.payload())
    }
}

/// A predicate's own small dense number; 0 is `rdf:type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct PredicateId(pub u32);

impl PredicateId {
    /// `rdf:type`, known to every store.
    pub const TYPE: Self = Self(0);

    /// The number as an index.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A virtual partition of the graph; a single machine has one, number 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct ShardId(pub u32);

/// A process that holds shards, or what stands for one in a process: nodes of a cluster are numbered
/// from 0 on without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct NodeId(pub u32);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What ids mean: two that hold ids of one epoch mean the same terms by them.
///
/// A store begins another epoch only where it numbers its terms anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct IdEpoch(pub u64);

/// The version of the graph that a reader sees; a bulk load is snapshot 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct SnapshotNumber(pub u64);

/// Which end of an edge is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Direction {
    /// From subject to objects.
    Out = 0,
    /// From object to subjects.
    In = 1,
}

impl Direction {
    /// The other direction.
    #[inline]
    #[must_use]
    pub const fn reverse(self) -> Self {
        match self {
            Self::Out => Self::In,
            Self::In => Self::Out,
        }
    }
}

/// A quad of ids; the graph is [`TermId::NONE`] for the default graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdQuad {
    /// Subject.
    pub subject: TermId,
    /// Predicate.
    pub predicate: PredicateId,
    /// Object.
    pub object: TermId,
    /// Graph.
    pub graph: TermId,
}
