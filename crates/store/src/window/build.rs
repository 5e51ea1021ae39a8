//! From a batch in any order to a run.

use jindou_model::{PredicateId, TermId, TermKind};
use rustc_hash::FxHashMap;

use super::frame::{Frame, ObjectKey, Row, Word};
use super::run::{MOST_ROWS, Run, RunWriter, SortedRows};
use super::{StreamTuple, WindowError};

impl Run {
    /// The run of a batch, in any order and with any repetitions.
    ///
    /// Costs a sort of the rows of each predicate by subject and one by object, mostly of words of 64
    /// bits, in which a row fits less what all have in common.
    ///
    /// # Errors
    /// [`WindowError::NotATerm`], [`WindowError::TooManyTuples`].
    pub fn from_batch(batch: &[StreamTuple]) -> Result<Self, WindowError> {
        check(batch)?;
        let times = || batch.iter().map(|tuple| tuple.time_ms);
        let (first_ms, last_ms) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
        let groups = Groups::of(batch, first_ms);
        let mut writer = RunWriter::default();
        let mut sorted = SortedRows::default();
        for (predicate, rows) in groups.iter() {
            sorted.clear();
            sort(rows, &mut sorted);
            writer.add(predicate, &sorted);
        }
        Ok(writer.finish(first_ms, last_ms))
    }
}

fn check(batch: &[StreamTuple]) -> Result<(), WindowError> {
    if batch.len() > MOST_ROWS {
        return Err(WindowError::TooManyTuples {
            tuples: batch.len(),
            limit: MOST_ROWS,
        });
    }
    let is_refused = |id: &TermId| matches!(id.kind(), TermKind::None | TermKind::Computed);
    let mut ids = batch.iter().flat_map(|tuple| [tuple.subject, tuple.object]);
    match ids.find(is_refused) {
        Some(id) => Err(WindowError::NotATerm(id)),
        None => Ok(()),
    }
}

/// The rows of a batch, those of one predicate together.
struct Groups {
    rows: Vec<Row>,
    /// Sorted predicates, and how many rows each has.
    predicates: Vec<(PredicateId, usize)>,
}

impl Groups {
    fn of(batch: &[StreamTuple], first_ms: i64) -> Self {
        let mut counts: FxHashMap<PredicateId, usize> = FxHashMap::default();
        for tuple in batch {
            *counts.entry(tuple.predicate).or_default() += 1;
        }
        let mut predicates: Vec<_> = counts.iter().map(|(p, count)| (*p, *count)).collect();
        predicates.sort_unstable();
        // From here on, the place of the next row of each.
        let mut begin = 0;
        for (predicate, count) in &predicates {
            counts.insert(*predicate, begin);
            begin += count;
        }
        let mut rows = vec![Row::default(); batch.len()];
        for tuple in batch {
            let next = counts.entry(tuple.predicate).or_default();
            rows[*next] = Row {
                subject: tuple.subject.raw(),
                object: tuple.object.raw(),
                time: tuple.time_ms.wrapping_sub(first_ms) as u64,
            };
            *next += 1;
        }
        Self { rows, predicates }
    }

    fn iter(&self) -> impl Iterator<Item = (PredicateId, &[Row])> {
        let mut rows = self.rows.as_slice();
        self.predicates.iter().map(move |(predicate, count)| {
            let (own, rest) = rows.split_at(*count);
            rows = rest;
            (*predicate, own)
        })
    }
}

/// The frame of some rows.
fn frame_of(rows: &[Row]) -> Frame {
    let first = rows.first().copied().unwrap_or_default();
    let (mut least, mut most) = (first, first);
    for row in rows {
        least.subject = least.subject.min(row.subject);
        least.object = least.object.min(row.object);
        least.time = least.time.min(row.time);
        most.subject = most.subject.max(row.subject);
        most.object = most.object.max(row.object);
        most.time = most.time.max(row.time);
    }
    Frame::new(least, most)
}

/// Fills `sorted` with the distinct rows and their permutation.
fn sort(rows: &[Row], sorted: &mut SortedRows) {
    let frame = frame_of(rows);
    match frame.bits {
        0..u64::BITS => sort_words::<u64>(rows, &frame, sorted),
        u64::BITS..u128::BITS => sort_words::<u128>(rows, &frame, sorted),
        _ => sort_words::<Row>(rows, &frame, sorted),
    }
}

fn sort_words<W: Word>(rows: &[Row], frame: &Frame, sorted: &mut SortedRows) {
    let mut words: Vec<W> = rows.iter().map(|row| W::pack(*row, frame)).collect();
    words.sort_unstable();
    words.dedup();
    match frame.has_short_objects() {
        true => sort_by_object::<W, u64>(&words, frame, sorted),
        false => sort_by_object::<W, u128>(&words, frame, sorted),
    }
    for word in words {
        let row = word.unpack(frame);
        sorted.push(row.subject, row.object, row.time);
    }
}

/// Fills the permutation of sorted rows: those of one object stay in the order of their numbers.
fn sort_by_object<W: Word, K: ObjectKey>(words: &[W], frame: &Frame, sorted: &mut SortedRows) {
    let rows = words.iter().zip(0_u32..);
    let mut keys: Vec<K> = rows
        .map(|(word, row)| K::new(word.object(frame), row))
        .collect();
    keys.sort_unstable();
    sorted
        .by_object
        .extend(keys.into_iter().map(|key| u64::from(key.number())));
}
