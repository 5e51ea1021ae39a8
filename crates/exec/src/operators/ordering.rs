//! In which order are rows, key by key?
//!
//! Rows are sorted by the numbers of their first keys; later keys are only asked for of rows that
//! are still tied.

use std::ops::Range;

use jindou_model::TermId;

use crate::ExecError;
use crate::context::Context;
use crate::discard::Large;
use crate::pairs::{AT_ONCE, Pair, check_full, sort_pairs};

/// Bytes of a row: its number, twice, its value, and the bounds of its tie.
pub(super) const ORDERING_BYTES: usize =
    2 * size_of::<u32>() + size_of::<TermId>() + size_of::<Range<usize>>() / 2;

/// Of more pairs the first ones are not selected before they are sorted: nothing would look at the
/// clock meanwhile.
const MOST_SELECTED: usize = 1 << 20;

/// The order of rows that follow each other, as far as it is known.
pub(super) struct Ordering {
    rows: Large<u32>,
    /// Places of rows that no key tells apart so far, in their order.
    ties: Vec<Range<usize>>,
    /// So many first rows are wanted.
    limit: usize,
    pairs: Large<Pair>,
}

impl Ordering {
    pub(super) fn new(rows: Range<usize>, limit: usize) -> Self {
        let rows: Vec<u32> = (rows.start as u32..rows.end as u32).collect();
        Self {
            ties: Vec::from_iter((rows.len() > 1).then_some(0..rows.len())),
            rows: rows.into(),
            limit,
            pairs: Large::default(),
        }
    }

    /// True if no further key changes which rows are wanted in which order.
    pub(super) fn is_total(&self) -> bool {
        self.ties.is_empty()
    }

    /// The values that `value` gives for the rows that are tied.
    pub(super) fn tied_values(
        &self,
        value: impl Fn(usize) -> TermId,
        cx: &Context,
    ) -> Result<Large<TermId>, ExecError> {
        let mut values = Large::with_capacity(self.ties.iter().map(Range::len).sum());
        let mut checked = 0;
        for tie in &self.ties {
            for rows in self.rows[tie.clone()].chunks(AT_ONCE) {
                values.extend(rows.iter().map(|row| value(*row as usize)));
                if values.len() >= checked + AT_ONCE {
                    cx.check()?;
                    checked = values.len();
                }
            }
        }
        Ok(values)
    }

    /// Sorts the rows of each tie by their numbers, which are in the order of
    /// [`Ordering::tied_values`].
    pub(super) fn sort_ties<E>(
        &mut self,
        mut numbers: Large<u64>,
        descending: bool,
        check: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        if descending {
            for some in numbers.chunks_mut(AT_ONCE) {
                check_full(some, check)?;
                some.iter_mut().for_each(|number| *number = !*number);
            }
        }
        let mut numbers = numbers.iter().copied();
        let mut done = 0;
        for tie in std::mem::take(&mut self.ties) {
            done += tie.len();
            if done >= AT_ONCE {
                check()?;
                done = 0;
            }
            self.pairs.clear();
            self.pairs.reserve(tie.len());
            for rows in self.rows[tie.clone()].chunks(AT_ONCE) {
                check_full(rows, check)?;
                let numbers = numbers.by_ref().take(rows.len());
                self.pairs.extend(numbers.zip(rows.iter().copied()));
            }
            let wanted = self.limit.saturating_sub(tie.start);
            if wanted < self.pairs.len() && self.pairs.len() <= MOST_SELECTED {
                keep_first(&mut self.pairs, wanted);
                self.rows.truncate(tie.start + self.pairs.len());
            }
            sort_pairs(&mut self.pairs, check)?;
            let (mut from, mut looked) = (tie.start, tie.start);
            for equal in self.pairs.chunk_by(|a, b| a.0 == b.0) {
                let to = from + equal.len();
                for (row, pair) in self.rows[from..to].iter_mut().zip(equal) {
                    *row = pair.1;
                }
                if equal.len() > 1 && from < self.limit {
                    self.ties.push(from..to);
                }
                from = to;
                if from >= looked + AT_ONCE {
                    check()?;
                    looked = from;
                }
            }
        }
        Ok(())
    }

    /// The rows that are wanted; those that are still tied stay in the order in which they came.
    pub(super) fn finish(mut self) -> Large<u32> {
        self.rows.truncate(self.limit);
        self.rows
    }
}

/// Keeps the pairs that may be among the first so many, with all that have the number of the last
/// of these, in their order.
fn keep_first(pairs: &mut Vec<Pair>, wanted: usize) {
    if wanted == 0 {
        return pairs.clear();
    }
    let mut numbers: Vec<u64> = pairs.iter().map(|pair| pair.0).collect();
    let (_, last, _) = numbers.select_nth_unstable(wanted - 1);
    let last = *last;
    pairs.retain(|pair| pair.0 <= last);
}
