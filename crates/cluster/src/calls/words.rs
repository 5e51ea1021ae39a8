//! What is asked of a shard, and what does it answer?
//!
//! The calls of [`jindou_exec::GraphSource`] as values. Those of whoever asks borrow its lists; decoded
//! ones have their own.

use std::borrow::Cow;

use jindou_model::{
    Cursor, Direction, GraphRef, IdRanges, Lists, Membership, Pattern, Precision, PredicateId,
    ShardId, TermId, Unavailable,
};

/// Shards of a request, at most.
pub(super) const MOST_SHARDS: usize = 4096;
/// Rows of a request, at most.
pub(super) const MOST_ROWS: usize = 4096;
/// Lists that are followed together, at most.
pub(super) const MOST_LISTS: usize = 256;
/// Ids that one answer to [`Call::Expand`] is asked for, at most. A server may find a few more.
pub(super) const MOST_IDS: usize = 1 << 16;
/// Ranges of a set in a request, at most: the ids of a larger one are left out by whoever asks.
pub(super) const MOST_RANGES_ASKED: usize = 4096;
/// Ranges of a set in an answer, at most; the others are asked for after them.
pub(super) const MOST_RANGES: usize = 1 << 16;
/// Bytes of the keys of an answer, at most; those of a longer key come in pieces.
pub(super) const MOST_KEY_BYTES: usize = 4 << 20;
/// Quads of a page, at most. A server may find a few more.
pub(super) const MOST_QUADS: usize = 1 << 15;

/// The number of a request on its connection, by which its answer is known; from 1 on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct RequestNumber(pub(super) u64);

/// Names the shards that a server holds at one snapshot. No name is given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ServedId(pub(super) u64);

impl ServedId {
    /// The name of this number.
    pub(crate) const fn of_number(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    pub(crate) const fn number(self) -> u64 {
        self.0
    }
}

/// A call of some shards of a node at one snapshot.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Request<'a> {
    pub(super) number: RequestNumber,
    pub(super) served: ServedId,
    /// The shards that are read, one after the other; none where each key, or term, is looked for in its own.
    pub(super) shards: Cow<'a, [ShardId]>,
    pub(super) call: Call<'a>,
}

/// The calls. Rows are those from the caller's cursor on.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Call<'a> {
    Members {
        graph: AskedGraph<'a>,
        memberships: Cow<'a, [Membership]>,
        precision: Precision,
        within: Option<IdRanges>,
        /// The first of the ranges that are wanted.
        from_range: u64,
    },
    Expand {
        graph: AskedGraph<'a>,
        lists: Vec<AskedList<'a>>,
        /// Where the first row goes on.
        offset: usize,
        allowed: Option<IdRanges>,
        budget: usize,
    },
    Places {
        graph: AskedGraph<'a>,
        list: AskedList<'a>,
    },
    Contains {
        graph: AskedGraph<'a>,
        list: AskedList<'a>,
        to: Cow<'a, [TermId]>,
    },
    Degrees {
        graph: AskedGraph<'a>,
        list: AskedList<'a>,
        allowed: Option<IdRanges>,
    },
    GraphsOf {
        list: AskedList<'a>,
        to: Cow<'a, [TermId]>,
    },
    Matches {
        pattern: AskedPattern<'a>,
        graph: AskedGraph<'a>,
        page: PageAsked,
    },
    Quads {
        pattern: AskedPattern<'a>,
        page: PageAsked,
    },
    /// The keys of terms.
    Keys {
        ids: Cow<'a, [TermId]>,
        /// Where the first key goes on.
        from_byte: u64,
        most_bytes: usize,
    },
    /// The ids that terms may have.
    Candidates {
        /// Those of their keys.
        hashes: Vec<u64>,
        /// Which of them are literals.
        are_literals: Vec<bool>,
    },
}

/// What is read of a shard.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AskedPattern<'a> {
    pub(super) pattern: Pattern,
    /// Those that the pattern is read with, one after the other; none for that of the pattern.
    pub(super) predicates: Cow<'a, [PredicateId]>,
}

impl From<Pattern> for AskedPattern<'_> {
    fn from(pattern: Pattern) -> Self {
        Self {
            pattern,
            predicates: Cow::Borrowed(&[]),
        }
    }
}

/// Some byte strings, one behind the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Strings {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Strings {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.ends.push(self.bytes.len());
    }

    pub(super) fn get(&self, number: usize) -> &[u8] {
        let begin = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[begin..self.ends[number]]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|number| self.get(number))
    }
}

/// Which of the quads of a pattern are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageAsked {
    /// In which of the shards that are asked.
    pub(super) turn: u32,
    pub(super) from: Place,
    pub(super) most: usize,
}

/// Where reading the quads of a pattern goes on in a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Start,
    /// After so many quads.
    After(u64),
    /// At a place in the list of a subject, as a [`Cursor`] has it.
    At(TermId, usize),
}

/// As [`GraphRef`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AskedGraph<'a> {
    Default,
    One(TermId),
    Some(Cow<'a, [TermId]>),
    Named,
    Union,
    Each(Cow<'a, [TermId]>),
}

/// As [`Lists`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AskedList<'a> {
    pub(super) predicate: PredicateId,
    pub(super) direction: Direction,
    pub(super) keys: Cow<'a, [TermId]>,
}

/// What a node answers for its shards.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    Members {
        /// Some of its ranges, in order.
        ids: Option<IdRanges>,
        /// Others follow.
        is_cut: bool,
    },
    Expanded {
        rows: Vec<u32>,
        ids: Vec<TermId>,
        /// How far these go.
        cursor: Cursor,
    },
    Places(u64),
    Contained(Vec<u32>),
    Degrees(Vec<u64>),
    GraphsOf {
        rows: Vec<u32>,
        graphs: Vec<TermId>,
        /// Rows that were looked at, the first ones.
        done: usize,
    },
    Page(Page),
    /// The keys of the first terms.
    Keys {
        keys: Strings,
        /// Bytes of the last one that follow.
        rest: u64,
    },
    Candidates {
        /// By hash.
        rows: Vec<u32>,
        ids: Vec<TermId>,
        /// Hashes that were looked at, the first ones.
        done: usize,
    },
    Unavailable(Unavailable),
    Refused(Refusal),
}

/// Why a server cannot make a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Refusal {
    /// The bytes are no request of this version.
    Malformed = 1,
    /// The shard or its snapshot is not there, or no more.
    NotServed = 2,
    /// Reading the shard failed.
    Broken = 3,
}

/// Quads of a pattern, by column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) count: usize,
    pub(super) subjects: Column<TermId>,
    pub(super) predicates: Column<PredicateId>,
    pub(super) objects: Column<TermId>,
    pub(super) graphs: Column<TermId>,
    /// In which of the shards others follow, and where, if they do.
    pub(super) next: Option<(u32, Place)>,
}

/// One component of some quads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Column<T> {
    /// All have the same.
    Same(T),
    Each(Vec<T>),
}

/// Subject, predicate, object and graph.
pub(super) type Quad = (TermId, PredicateId, TermId, TermId);

impl<T: Copy + PartialEq> Column<T> {
    fn of(values: impl Iterator<Item = T> + Clone, of_none: T) -> Self {
        let first = values.clone().next().unwrap_or(of_none);
        match values.clone().all(|value| value == first) {
            true => Self::Same(first),
            false => Self::Each(values.collect()),
        }
    }

    fn get(&self, place: usize) -> T {
        match self {
            Self::Same(value) => *value,
            Self::Each(values) => values[place],
        }
    }
}

impl Page {
    pub(super) fn new(quads: &[Quad], next: Option<(u32, Place)>) -> Self {
        let all = quads.iter();
        Self {
            count: quads.len(),
            subjects: Column::of(all.clone().map(|quad| quad.0), TermId::NONE),
            predicates: Column::of(all.clone().map(|quad| quad.1), PredicateId::TYPE),
            objects: Column::of(all.clone().map(|quad| quad.2), TermId::NONE),
            graphs: Column::of(all.map(|quad| quad.3), TermId::NONE),
            next,
        }
    }

    pub(super) fn quads(&self) -> impl Iterator<Item = Quad> + '_ {
        (0..self.count).map(|place| {
            (
                self.subjects.get(place),
                self.predicates.get(place),
                self.objects.get(place),
                self.graphs.get(place),
            )
        })
    }
}

impl<'a> AskedGraph<'a> {
    /// The graph of some rows, given by number.
    pub(super) fn of_rows(graph: GraphRef<'a>, rows: std::ops::Range<usize>) -> Self {
        match graph {
            GraphRef::Each(graphs) => Self::Each(Cow::Borrowed(&graphs[rows])),
            _ => Self::of_no_row(graph),
        }
    }

    /// The graph of a call without rows.
    pub(super) fn of_no_row(graph: GraphRef<'a>) -> Self {
        match graph {
            GraphRef::Default => Self::Default,
            GraphRef::One(graph) => Self::One(graph),
            GraphRef::Some(graphs) => Self::Some(Cow::Borrowed(graphs)),
            GraphRef::Named | GraphRef::Each(_) => Self::Named,
            GraphRef::Union => Self::Union,
        }
    }

    pub(super) fn as_ref(&self) -> GraphRef<'_> {
        match self {
            Self::Default => GraphRef::Default,
            Self::One(graph) => GraphRef::One(*graph),
            Self::Some(graphs) => GraphRef::Some(graphs),
            Self::Named => GraphRef::Named,
            Self::Union => GraphRef::Union,
            Self::Each(graphs) => GraphRef::Each(graphs),
        }
    }
}

impl<'a> AskedList<'a> {
    /// Some rows of a list.
    pub(super) fn of_rows(list: &Lists<'a>, rows: std::ops::Range<usize>) -> Self {
        Self {
            predicate: list.predicate,
            direction: list.direction,
            keys: Cow::Borrowed(&list.keys[rows]),
        }
    }

    pub(super) fn as_ref(&self) -> Lists<'_> {
        self.part(0..self.keys.len())
    }

    /// Some rows of it.
    pub(super) fn part(&self, rows: std::ops::Range<usize>) -> Lists<'_> {
        Lists {
            predicate: self.predicate,
            direction: self.direction,
            keys: &self.keys[rows],
        }
    }
}
