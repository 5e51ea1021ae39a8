//! Ids: which kind of term is this, on which shard, and which one of them?

use std::fmt;

/// Bits of a [`TermId`] below the kind.
pub const PAYLOAD_BITS: u32 = 60;
/// Bits that number the vertices or the dictionary literals of one shard.
pub const LOCAL_BITS: u32 = 40;
/// Bits that name the shard of a vertex or dictionary literal.
pub const SHARD_BITS: u32 = PAYLOAD_BITS - LOCAL_BITS;

const PAYLOAD_MASK: u64 = (1 << PAYLOAD_BITS) - 1;
const LOCAL_MASK: u64 = (1 << LOCAL_BITS) - 1;

/// What a [`TermId`] stands for: its four top bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum TermKind {
    /// No term: an unbound variable, or the default graph where a graph is named.
    None = 0,
    /// An IRI or a blank node that is a subject, an object or the name of a graph.
    Vertex = 1,
    /// A literal kept in the dictionary.
    Literal = 2,
    /// The IRI of a predicate that was not a vertex too when it was numbered; updates may make it
    /// one, and it keeps this id until the next merge.
    Predicate = 3,
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
/// terms, except that within one kind of inline value and one shard of the bulk-loaded
/// dictionary literals it is stable for the life of the store.
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

    /// The vertex `local` of `shard`.
    #[inline]
    #[must_use]
    pub const fn vertex(shard: ShardId, local: u64) -> Self {
        assert!(local <= LOCAL_MASK, "a shard holds at most 2^40 vertices");
        Self::new(TermKind::Vertex, ((shard.0 as u64) << LOCAL_BITS) | local)
    }

    /// The dictionary literal `local` of `shard`.
    #[inline]
    #[must_use]
    pub const fn literal(shard: ShardId, local: u64) -> Self {
        assert!(local <= LOCAL_MASK, "a shard holds at most 2^40 literals");
        Self::new(TermKind::Literal, ((shard.0 as u64) << LOCAL_BITS) | local)
    }

    /// The IRI of a predicate that is no vertex.
    #[inline]
    #[must_use]
    pub const fn predicate(id: PredicateId) -> Self {
        Self::new(TermKind::Predicate, id.0 as u64)
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
            3 => TermKind::Predicate,
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

    /// The shard-local number of a vertex or dictionary literal.
    #[inline]
    #[must_use]
    pub const fn local(self) -> u64 {
        self.0 & LOCAL_MASK
    }

    /// The shard of a vertex or dictionary literal.
    #[inline]
    #[must_use]
    pub const fn shard(self) -> ShardId {
        ShardId((self.payload() >> LOCAL_BITS) as u32)
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
