//! Rows in order: in memory as long as they fit there, then by merging sorted runs from disk.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::Range;

use jindou_model::{TermId, inline};
use jindou_plan::physical::Var;

use crate::ExecError;
use crate::blocks::Blocks;
use crate::context::{Booked, Context};
use crate::discard::discard;
use crate::expr::{SortColumn, SortKey};
use crate::spill::{Chunk, Run, RunReader, SpillFile, batch_rows};
use crate::table::{BATCH_ROWS, Table, VarSet};

/// Rows that are sorted between two looks at the clock.
const ROWS_AT_ONCE: usize = 1 << 14;
/// Rows whose keys are decoded, or that are merged, between two looks at the clock.
const KEYS_AT_ONCE: usize = 1 << 10;
/// Bytes of a row's place in the order, while it is found.
const PLACE_BYTES: usize = 2 * size_of::<u32>();
/// Rows held at most: they are numbered by 32 bits.
const MOST_ROWS: usize = 1 << 31;
/// Runs that are merged at once.
const MERGED: std::ops::RangeInclusive<usize> = 2..=512;

/// A column to sort by.
#[derive(Clone, Copy, Debug)]
pub(super) struct SortBy {
    pub(super) var: Var,
    pub(super) descending: bool,
}

/// Puts rows in order; equal ones stay in the order in which they came.
pub(super) struct Sorter {
    by: Vec<SortBy>,
    /// Only so many first rows are wanted.
    limit: Option<usize>,
    /// The columns that are handed over.
    keep: VarSet,
    held: Blocks,
    booked: Booked,
    /// Sorted runs, in the order of their rows' coming.
    runs: Runs,
    width: usize,
    output: Option<Output>,
}

enum Output {
    /// The order of the rows held, and how many were handed over.
    Held(Vec<u32>, usize),
    Merge(Box<Merge>),
}

impl Sorter {
    pub(super) fn new(by: Vec<SortBy>, limit: Option<usize>, keep: VarSet, cx: &Context) -> Self {
        Self {
            by,
            limit,
            keep,
            held: Blocks::default(),
            booked: cx.spilling(),
            runs: Runs::default(),
            width: 0,
            output: None,
        }
    }

    /// Takes some more rows.
    pub(super) fn push(&mut self, table: &Table, cx: &Context) -> Result<(), ExecError> {
        self.width = table.width();
        let bytes =
            |held: &Blocks| held.bytes_with(table) + set_aside(cx) + held_places(held, table);
        let full = self.held.rows() + table.rows() > MOST_ROWS;
        if full || !cx.room(&mut self.booked, bytes(&self.held))? {
            self.spill(0, cx)?;
            // One table is held in any case.
            cx.room(&mut self.booked, bytes(&self.held))?;
        }
        self.held.push(table);
        if let Some(limit) = self.limit
            && self.held.rows() >= 2 * limit.max(BATCH_ROWS)
        {
            self.shorten(cx)?;
        }
        Ok(())
    }

    /// Keeps the first rows only.
    fn shorten(&mut self, cx: &Context) -> Result<(), ExecError> {
        let (order, end) = self.order(0, cx)?;
        if end < self.held.rows() {
            return self.spill(0, cx);
        }
        let mut first = Blocks::default();
        let all = self.held.bound();
        for rows in order.chunks(BATCH_ROWS) {
            cx.check()?;
            first.push(&self.held.gather(rows, &all));
        }
        self.held = first;
        Ok(())
    }

    /// Sorts the rows held from `from` on, as many of them as there is memory for the keys of;
    /// gives the order and where those rows end.
    fn order(&mut self, from: usize, cx: &Context) -> Result<(Vec<u32>, usize), ExecError> {
        let held = self.held.bytes() + self.held.rows() * PLACE_BYTES;
        let mut keys = Keys::new(&self.by, &self.held, from, cx)?;
        let mut end = from;
        while end < self.held.rows() {
            let to = self.held.rows().min(end + KEYS_AT_ONCE);
            keys.decode(&self.by, &self.held, end..to, cx);
            cx.check()?;
            end = to;
            if !cx.room(&mut self.booked, held + keys.bytes.max(set_aside(cx)))? {
                break;
            }
        }
        let compare = |left: &u32, right: &u32| {
            let places = (*left as usize - from, *right as usize - from);
            keys.compare(&self.by, places.0, places.1)
                // Equal rows stay in their order, so that the result is the same each time.
                .then_with(|| left.cmp(right))
        };
        let mut rows: Vec<u32> = (from as u32..end as u32).collect();
        if let Some(limit) = self.limit
            && (1..=ROWS_AT_ONCE).contains(&limit)
            && limit < rows.len()
        {
            rows.select_nth_unstable_by(limit - 1, compare);
            rows.truncate(limit);
        }
        let sorted = sort_rows(&mut rows, &compare, &|| cx.check());
        let bytes = keys.bytes;
        discard(keys, bytes);
        sorted?;
        rows.truncate(self.limit.unwrap_or(usize::MAX));
        Ok((rows, end))
    }

    /// Writes the rows held from `from` on as sorted runs, and lets go of all.
    fn spill(&mut self, mut from: usize, cx: &Context) -> Result<(), ExecError> {
        while from < self.held.rows() {
            let (order, end) = self.order(from, cx)?;
            self.write(&order, cx)?;
            from = end;
        }
        let held = std::mem::take(&mut self.held);
        let bytes = held.bytes();
        discard(held, bytes);
        cx.room(&mut self.booked, 0)?;
        Ok(())
    }

    fn write(&mut self, order: &[u32], cx: &Context) -> Result<(), ExecError> {
        let all = self.held.bound();
        self.runs.begin();
        for rows in order.chunks(batch_rows(cx, self.width)) {
            cx.check()?;
            self.runs.append(&self.held.gather(rows, &all), cx)?;
        }
        Ok(())
    }

    /// The next rows in order, once all are in; `None` at the end.
    pub(super) fn next(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        if self.output.is_none() {
            self.output = Some(self.finish(cx)?);
        }
        match self.output.as_mut() {
            Some(Output::Held(order, from)) => {
                let to = order.len().min(*from + BATCH_ROWS);
                let table = self.held.gather(&order[*from..to], &self.keep);
                *from = to;
                Ok((table.rows() > 0).then_some(table))
            }
            Some(Output::Merge(merge)) => merge.next(&self.keep, BATCH_ROWS, cx),
            None => Ok(None),
        }
    }

    fn finish(&mut self, cx: &Context) -> Result<Output, ExecError> {
        let mut written = 0;
        if self.runs.is_empty() {
            let (order, end) = self.order(0, cx)?;
            if end == self.held.rows() {
                return Ok(Output::Held(order, 0));
            }
            // The rows fit, their keys do not; what was sorted is the first run.
            self.write(&order, cx)?;
            written = end;
        }
        self.spill(written, cx)?;
        let mut runs = self.runs.seal()?;
        let batch_bytes = batch_rows(cx, self.width) * self.width.max(1) * size_of::<TermId>();
        let at_once = cx.space().own_bytes() / (2 * batch_bytes);
        let at_once = at_once.clamp(*MERGED.start(), *MERGED.end());
        let all: VarSet = (0..self.width).map(|number| Var(number as u16)).collect();
        while runs.len() > at_once {
            let mut merged = Runs::default();
            for some in runs.chunks(at_once) {
                merged.begin();
                let mut merge = Merge::new(some, &self.by, self.limit, cx)?;
                while let Some(table) = merge.next(&all, batch_rows(cx, self.width), cx)? {
                    merged.append(&table, cx)?;
                }
            }
            runs = merged.seal()?;
        }
        Ok(Output::Merge(Box::new(Merge::new(
            &runs, &self.by, self.limit, cx,
        )?)))
    }
}

/// Bytes that are left to the keys when rows have filled the memory.
fn set_aside(cx: &Context) -> usize {
    cx.space().own_bytes() / 2
}

fn held_places(held: &Blocks, table: &Table) -> usize {
    (held.rows() + table.rows()) * PLACE_BYTES
}

/// The keys of some rows that follow each other.
struct Keys {
    columns: Vec<SortColumn>,
    bytes: usize,
}

impl Keys {
    /// No keys yet, of the kind that the rows from `from` on need.
    fn new(by: &[SortBy], held: &Blocks, from: usize, cx: &Context) -> Result<Self, ExecError> {
        let mut columns = Vec::with_capacity(by.len());
        for by in by {
            let mut integers = true;
            let mut begin = from;
            while integers && begin < held.rows() {
                cx.check()?;
                let (ids, end) = held.run(by.var, begin..held.rows());
                let is_integer = |id: &TermId| inline::as_integer(*id).is_some();
                integers = ids.is_some_and(|ids| ids.iter().all(is_integer));
                begin = end;
            }
            // Room is made at once, so that no keys are copied; what is not used costs nothing.
            let most = cx.memory_bytes() as usize / size_of::<SortKey>();
            let rows = (held.rows() - from).min(most);
            columns.push(if integers {
                SortColumn::Integers(Vec::with_capacity(rows))
            } else {
                SortColumn::Keys(Vec::with_capacity(rows))
            });
        }
        Ok(Self { columns, bytes: 0 })
    }

    fn decode(&mut self, by: &[SortBy], held: &Blocks, rows: Range<usize>, cx: &Context) {
        for (by, column) in by.iter().zip(&mut self.columns) {
            let mut begin = rows.start;
            while begin < rows.end {
                let (ids, end) = held.run(by.var, begin..rows.end);
                let more = match ids {
                    Some(ids) => SortColumn::new(ids, cx.terms()),
                    None => SortColumn::new(&vec![TermId::NONE; end - begin], cx.terms()),
                };
                self.bytes += more.bytes();
                column.append(more);
                begin = end;
            }
        }
    }

    fn compare(&self, by: &[SortBy], left: usize, right: usize) -> Ordering {
        for (by, column) in by.iter().zip(&self.columns) {
            let order = column.compare(left, right);
            if order != Ordering::Equal {
                return if by.descending {
                    order.reverse()
                } else {
                    order
                };
            }
        }
        Ordering::Equal
    }
}

/// Sorted runs in one file.
#[derive(Default)]
struct Runs {
    file: Option<SpillFile>,
    /// Batches and number of rows of each.
    runs: Vec<(Vec<Chunk>, u64)>,
}

impl Runs {
    fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// What is appended from here on is another run.
    fn begin(&mut self) {
        self.runs.push((Vec::new(), 0));
    }

    fn append(&mut self, table: &Table, cx: &Context) -> Result<(), ExecError> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(SpillFile::create(cx)?),
        };
        let (chunks, rows) = self.runs.last_mut().expect("a run was begun");
        chunks.push(file.append(table)?);
        *rows += table.rows() as u64;
        Ok(())
    }

    fn seal(&mut self) -> Result<Vec<Run>, ExecError> {
        let Some(file) = self.file.take() else {
            return Ok(Vec::new());
        };
        let file = file.seal()?;
        let runs = std::mem::take(&mut self.runs).into_iter();
        Ok(runs
            .map(|(chunks, rows)| Run::new(&file, chunks, rows))
            .collect())
    }
}

/// Takes the least row of several sorted runs again and again.
struct Merge {
    by: Vec<SortBy>,
    inputs: Vec<Input>,
    /// The next row of each run that has one, the least of them first.
    heads: BinaryHeap<Head>,
    /// Rows still wanted.
    left: usize,
}

/// A run and its batch in work.
struct Input {
    reader: RunReader,
    table: Table,
    row: usize,
}

/// The next row of a run.
struct Head {
    keys: Vec<(SortKey, bool)>,
    input: usize,
}

impl Head {
    fn read_keys(&mut self, by: &[SortBy], input: &Input, cx: &Context) {
        self.keys.clear();
        self.keys.extend(by.iter().map(|by| {
            let key = SortKey::new(input.table.value(by.var, input.row), cx.terms());
            (key, by.descending)
        }));
    }
}

impl Ord for Head {
    /// The greatest is what comes first: a binary heap hands over the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        for ((mine, descending), (theirs, _)) in self.keys.iter().zip(&other.keys) {
            let order = theirs.cmp(mine);
            if order != Ordering::Equal {
                return if *descending { order.reverse() } else { order };
            }
        }
        // Rows of earlier runs came earlier.
        other.input.cmp(&self.input)
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Head {}

impl Merge {
    fn new(
        runs: &[Run],
        by: &[SortBy],
        limit: Option<usize>,
        cx: &Context,
    ) -> Result<Self, ExecError> {
        let mut merge = Self {
            by: by.to_vec(),
            inputs: Vec::with_capacity(runs.len()),
            heads: BinaryHeap::with_capacity(runs.len()),
            left: limit.unwrap_or(usize::MAX),
        };
        for run in runs {
            let mut reader = run.reader();
            let Some(table) = reader.next(cx)? else {
                continue;
            };
            let mut head = Head {
                keys: Vec::with_capacity(by.len()),
                input: merge.inputs.len(),
            };
            let input = Input {
                reader,
                table,
                row: 0,
            };
            head.read_keys(by, &input, cx);
            merge.inputs.push(input);
            merge.heads.push(head);
        }
        Ok(merge)
    }

    /// The next rows, so many at most; `None` at the end.
    fn next(
        &mut self,
        keep: &VarSet,
        most: usize,
        cx: &Context,
    ) -> Result<Option<Table>, ExecError> {
        let Some(head) = self.heads.peek() else {
            return Ok(None);
        };
        let most = most.min(self.left);
        let width = self.inputs[head.input].table.width();
        let vars = (0..width).map(|number| Var(number as u16));
        let vars: Vec<Var> = vars.filter(|var| keep.contains(*var)).collect();
        let mut columns: Vec<Vec<TermId>> = vars.iter().map(|_| Vec::new()).collect();
        let mut rows = 0;
        while rows < most
            && let Some(mut head) = self.heads.peek_mut()
        {
            if rows.is_multiple_of(KEYS_AT_ONCE) {
                cx.check()?;
            }
            let input = &mut self.inputs[head.input];
            for (var, column) in vars.iter().zip(&mut columns) {
                column.push(input.table.value(*var, input.row));
            }
            rows += 1;
            input.row += 1;
            if input.row == input.table.rows() {
                input.row = 0;
                match input.reader.next(cx)? {
                    Some(table) => input.table = table,
                    None => {
                        PeekMut::pop(head);
                        continue;
                    }
                }
            }
            head.read_keys(&self.by, input, cx);
        }
        self.left -= rows;
        let mut table = Table::with_rows(width, rows);
        for (var, column) in vars.into_iter().zip(columns) {
            if column.iter().any(|id| !id.is_none()) {
                table.set(var, column);
            }
        }
        Ok((rows > 0).then_some(table))
    }
}

/// Sorts rows, and calls `check` now and then: a merge sort over short runs.
pub(super) fn sort_rows<E>(
    rows: &mut Vec<u32>,
    compare: &impl Fn(&u32, &u32) -> Ordering,
    check: &dyn Fn() -> Result<(), E>,
) -> Result<(), E> {
    for run in rows.chunks_mut(ROWS_AT_ONCE) {
        run.sort_unstable_by(compare);
        check()?;
    }
    let mut merged: Vec<u32> = Vec::new();
    let mut width = ROWS_AT_ONCE;
    while width < rows.len() {
        merged.clear();
        merged.reserve_exact(rows.len());
        for pair in rows.chunks(2 * width) {
            let (mut left, mut right) = pair.split_at(width.min(pair.len()));
            while let (Some(a), Some(b)) = (left.first(), right.first()) {
                if compare(a, b) == Ordering::Greater {
                    merged.push(*b);
                    right = &right[1..];
                } else {
                    merged.push(*a);
                    left = &left[1..];
                }
                if merged.len().is_multiple_of(ROWS_AT_ONCE) {
                    check()?;
                }
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        std::mem::swap(rows, &mut merged);
        width *= 2;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_long_sort_looks_at_the_clock_and_agrees_with_the_standard_one() {
        for count in [0, 1, ROWS_AT_ONCE, ROWS_AT_ONCE + 1, 5 * ROWS_AT_ONCE + 7] {
            let value = |row: &u32| (u64::from(*row) * 2_654_435_761) % 1009;
            let compare = |a: &u32, b: &u32| value(a).cmp(&value(b)).then_with(|| a.cmp(b));
            let mut rows: Vec<u32> = (0..count as u32).collect();
            let mut expected = rows.clone();
            expected.sort_by(compare);
            let checks = Cell::new(0);
            sort_rows(&mut rows, &compare, &|| {
                checks.set(checks.get() + 1);
                Ok::<(), ()>(())
            })
            .unwrap();
            assert_eq!(rows, expected);
            assert!(
                checks.get() >= count / ROWS_AT_ONCE,
                "{} checks",
                checks.get()
            );
        }
    }

    #[test]
    fn a_sort_ends_where_its_check_fails() {
        let mut rows: Vec<u32> = (0..10 * ROWS_AT_ONCE as u32).rev().collect();
        let calls = Cell::new(0);
        let compare = |a: &u32, b: &u32| {
            calls.set(calls.get() + 1);
            a.cmp(b)
        };
        assert_eq!(sort_rows(&mut rows, &compare, &|| Err(())), Err(()));
        assert!(
            calls.get() <= 20 * ROWS_AT_ONCE,
            "one run was sorted at most"
        );
    }
}
