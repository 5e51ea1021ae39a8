//! The tuples of a stretch of time: which rows has each predicate, and in how many bytes?

use jindou_fabric::Region;
use jindou_model::{Direction, PredicateId};

use super::guide::Guide;
use super::pack::{Packer, Slot};

/// Rows of a run, which are numbered in 32 bits; one number stands for none.
pub(super) const MOST_ROWS: usize = u32::MAX as usize - 1;

/// An immutable set of timestamped triples of a stretch of time.
///
/// Each predicate has its rows sorted by (subject, object, time), in columns as narrow as their
/// numbers allow, and a permutation that sorts them by (object, subject, time). Small guides say where
/// the subjects and objects of some top bits begin. A triple that comes
/// several times keeps each time, so that it expires with its last; the same triple at the same time
/// is there once.
#[derive(Debug)]
pub struct Run {
    region: Region,
    /// Sorted.
    predicates: Box<[PredicateRows]>,
    /// All times lie between these; they say nothing where there are no rows.
    pub(super) first_ms: i64,
    pub(super) last_ms: i64,
    rows: usize,
}

/// The rows of one predicate in a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct PredicateRows {
    pub(super) predicate: PredicateId,
    rows: u32,
    /// Distinct pairs of subject and object.
    pub(super) triples: u32,
    /// Distinct subjects and distinct objects.
    keys: [u32; 2],
    pub(super) subjects: Slot,
    pub(super) objects: Slot,
    /// Numbers of rows, sorted by (object, subject, time).
    pub(super) by_object: Slot,
    /// To subjects and to objects.
    pub(super) guides: [Guide; 2],
    /// Milliseconds since the run's first time.
    pub(super) times: Slot,
    /// The greatest of these.
    pub(super) last_time: u64,
}

impl PredicateRows {
    /// How many rows.
    pub(super) fn len(&self) -> usize {
        self.rows as usize
    }

    /// Distinct keys of a direction.
    pub(super) fn keys(&self, direction: Direction) -> u32 {
        self.keys[direction as usize]
    }

    /// True if no triple comes twice.
    pub(super) fn is_distinct(&self) -> bool {
        self.triples == self.rows
    }
}

impl Run {
    /// The first and the last millisecond between which its tuples lie; `None` without any.
    #[must_use]
    pub fn times_ms(&self) -> Option<(i64, i64)> {
        (self.rows > 0).then_some((self.first_ms, self.last_ms))
    }

    /// Number of tuples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// True of a run without tuples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Bytes that it takes: all columns and the table of predicates, without what the allocator adds
    /// to these two.
    #[must_use]
    pub fn footprint(&self) -> usize {
        size_of::<Self>() + size_of_val::<[PredicateRows]>(&self.predicates) + self.region.len()
    }

    /// Where its columns lie.
    pub(super) fn region(&self) -> &Region {
        &self.region
    }

    /// What it has of each predicate, in the order of these.
    pub(super) fn predicates(&self) -> &[PredicateRows] {
        &self.predicates
    }

    /// What it has of a predicate: a binary search.
    pub(super) fn of(&self, predicate: PredicateId) -> Option<&PredicateRows> {
        let found = self
            .predicates
            .binary_search_by_key(&predicate, |rows| rows.predicate);
        found.ok().map(|index| &self.predicates[index])
    }

    /// Milliseconds from its first time to its last.
    pub(super) fn span_ms(&self) -> u64 {
        self.last_ms.wrapping_sub(self.first_ms) as u64
    }
}

/// The rows of one predicate before they are packed: columns of one length.
#[derive(Default)]
pub(super) struct SortedRows {
    pub(super) subjects: Vec<u64>,
    pub(super) objects: Vec<u64>,
    /// Milliseconds since the run's first time.
    pub(super) times: Vec<u64>,
    /// Numbers of rows, sorted by (object, subject, time).
    pub(super) by_object: Vec<u64>,
}

impl SortedRows {
    pub(super) fn clear(&mut self) {
        for column in [
            &mut self.subjects,
            &mut self.objects,
            &mut self.times,
            &mut self.by_object,
        ] {
            column.clear();
        }
    }

    pub(super) fn push(&mut self, subject: u64, object: u64, time: u64) {
        self.subjects.push(subject);
        self.objects.push(object);
        self.times.push(time);
    }

    fn distinct_subjects(&self) -> usize {
        changes(self.subjects.iter())
    }

    fn distinct_objects(&self) -> usize {
        changes(self.by_object.iter().map(|row| self.objects[*row as usize]))
    }

    fn distinct_triples(&self) -> usize {
        changes(self.subjects.iter().zip(&self.objects))
    }
}

/// How many stretches of equal items there are.
fn changes<T: PartialEq>(items: impl Iterator<Item = T>) -> usize {
    let mut before = None;
    let mut count = 0;
    for item in items {
        let item = Some(item);
        count += usize::from(before != item);
        before = item;
    }
    count
}

/// A run while predicates are added to it.
#[derive(Default)]
pub(super) struct RunWriter {
    packer: Packer,
    predicates: Vec<PredicateRows>,
    rows: usize,
}

impl RunWriter {
    /// Adds the rows of a predicate greater than all before; nothing where there are none.
    pub(super) fn add(&mut self, predicate: PredicateId, sorted: &SortedRows) {
        debug_assert!(
            self.predicates
                .last()
                .is_none_or(|last| last.predicate < predicate)
        );
        debug_assert_eq!(sorted.by_object.len(), sorted.subjects.len());
        if sorted.subjects.is_empty() {
            return;
        }
        self.rows += sorted.subjects.len();
        assert!(self.rows <= MOST_ROWS, "a run numbers its rows in 32 bits");
        let object = |place: usize| sorted.objects[sorted.by_object[place] as usize];
        let rows = sorted.subjects.len();
        self.predicates.push(PredicateRows {
            predicate,
            rows: sorted.subjects.len() as u32,
            triples: sorted.distinct_triples() as u32,
            keys: [
                sorted.distinct_subjects() as u32,
                sorted.distinct_objects() as u32,
            ],
            subjects: self.packer.push(&sorted.subjects),
            objects: self.packer.push(&sorted.objects),
            by_object: self.packer.push(&sorted.by_object),
            guides: [
                Guide::new(rows, |row| sorted.subjects[row], &mut self.packer),
                Guide::new(rows, object, &mut self.packer),
            ],
            times: self.packer.push_or_none(&sorted.times),
            last_time: sorted.times.iter().copied().max().unwrap_or(0),
        });
    }

    /// The run, whose times lie in `first_ms..=last_ms`.
    pub(super) fn finish(self, first_ms: i64, last_ms: i64) -> Run {
        Run {
            region: self.packer.finish(),
            predicates: self.predicates.into_boxed_slice(),
            first_ms,
            last_ms,
            rows: self.rows,
        }
    }
}
