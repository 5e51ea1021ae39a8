//! Rows in order: in memory as long as they fit there, then by merging sorted runs from disk.

use std::cmp;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::Range;

use jindou_model::TermId;
use jindou_plan::physical::Var;

use super::ordering::{ORDERING_BYTES, Ordering};
use crate::ExecError;
use crate::blocks::Blocks;
use crate::context::{Booked, Context};
use crate::discard::{Large, discard};
use crate::expr::{
    NUMBER_BYTES, Numbered, OrderedTerms, SortKey, order_numbers, order_of_places, place_of,
};
use crate::spill::{self, Chunk, RunReader, SpillFile, batch_rows};
use crate::table::{self, BATCH_ROWS, Table, VarSet};

/// Rows that are merged between two looks at the clock.
const MERGED_AT_ONCE: usize = 1 << 10;
/// So many rows are sorted in any case.
const FEW_ROWS: usize = 1 << 10;
/// Bytes of a row's place in the order, while it is found.
const PLACE_BYTES: usize = ORDERING_BYTES + NUMBER_BYTES;
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
    /// The first key of the last row that is wanted, of those looked at so far.
    cut: Option<TermId>,
    output: Option<Output>,
}

enum Output {
    /// The order of the rows held, and how many were handed over.
    Held(Large<u32>, usize),
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
            cut: None,
            output: None,
        }
    }

    /// One of a thread, whose rows go on to the sorter of all: nothing is set aside for it.
    pub(super) fn of_part(by: &[SortBy], limit: Option<usize>, keep: &VarSet) -> Self {
        Self {
            by: by.to_vec(),
            limit,
            keep: keep.clone(),
            held: Blocks::default(),
            booked: Booked::default(),
            runs: Runs::default(),
            width: 0,
            cut: None,
            output: None,
        }
    }

    /// Takes some more rows.
    pub(super) fn push(&mut self, table: &Table, cx: &Context) -> Result<(), ExecError> {
        self.width = table.width();
        match self.candidates(table, cx)? {
            Some(rows) if rows.is_empty() => Ok(()),
            Some(rows) if rows.len() < table.rows() => {
                let all = table.bound().collect();
                self.hold(&table.gather(&rows, &all), cx)
            }
            Some(_) | None => self.hold(table, cx),
        }
    }

    fn hold(&mut self, table: &Table, cx: &Context) -> Result<(), ExecError> {
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
        for rows in order.chunks(table::batch_rows(self.width)) {
            cx.check()?;
            first.push(&self.held.gather(rows, &all));
        }
        self.held = first;
        if let (Some(by), Some(last)) = (self.by.first(), self.held.rows().checked_sub(1)) {
            self.cut = Some(self.held.value(by.var, last));
        }
        Ok(())
    }

    /// The rows of a table that may be among the first, as far as their ids tell; `None` for all.
    fn candidates(&self, table: &Table, cx: &Context) -> Result<Option<Vec<u32>>, ExecError> {
        let (Some(cut), Some(by)) = (self.cut, self.by.first()) else {
            return Ok(None);
        };
        let order = cx.text_order()?;
        let Some(place) = place_of(cut, &order) else {
            return Ok(None);
        };
        let values = table.get(by.var);
        let may_be = |row: &u32| {
            let id = values.map_or(TermId::NONE, |values| values[*row as usize]);
            let of_id = place_of(id, &order);
            match of_id.and_then(|of_id| order_of_places((of_id, id), (place, cut))) {
                // Of equal rows those that came earlier are the first.
                Some(cmp::Ordering::Equal) => self.by.len() > 1,
                Some(order) => order.is_gt() == by.descending,
                None => true,
            }
        };
        Ok(Some((0..table.rows() as u32).filter(may_be).collect()))
    }

    /// Sorts the rows held from `from` on, as many of them as there is memory for the keys of;
    /// gives the order and where those rows end.
    fn order(&mut self, from: usize, cx: &Context) -> Result<(Large<u32>, usize), ExecError> {
        let mut end = self.held.rows();
        loop {
            if let Some(order) = self.order_of(from..end, cx)? {
                return Ok((order, end));
            }
            end = from + (end - from).div_ceil(2);
        }
    }

    /// The order of some of the rows held; `None` if there is no memory for their keys, and they
    /// are not few.
    fn order_of(
        &mut self,
        rows: Range<usize>,
        cx: &Context,
    ) -> Result<Option<Large<u32>>, ExecError> {
        let held = self.held.bytes() + rows.len() * PLACE_BYTES;
        let few = rows.len() <= FEW_ROWS;
        let Self {
            by,
            booked,
            held: blocks,
            limit,
            ..
        } = self;
        let mut ordering = Ordering::new(rows, limit.unwrap_or(usize::MAX));
        for by in by {
            let ids = ordering.tied_values(|row| blocks.value(by.var, row), cx)?;
            let mut poll = |bytes: usize| -> Result<bool, ExecError> {
                cx.check()?;
                Ok(cx.room(booked, held + bytes.max(set_aside(cx)))? || few)
            };
            let numbers = loop {
                let order = &cx.text_order()?;
                let terms = cx.terms();
                match order_numbers(&ids, OrderedTerms { terms, order }, &mut poll)? {
                    Numbered::Numbers(numbers) => break numbers,
                    Numbered::NoMemory => return Ok(None),
                    Numbered::OrderIsWanting => {}
                    Numbered::Lost(why) => return Err(cx.without_term(why)),
                }
            };
            ordering.sort_ties(numbers, by.descending, &mut || cx.check())?;
            if ordering.is_total() {
                break;
            }
        }
        // The keys are gone.
        cx.room(booked, held)?;
        Ok(Some(ordering.finish()))
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

    /// All rows are in: puts them in order.
    pub(super) fn finish(&mut self, cx: &Context) -> Result<(), ExecError> {
        if self.output.is_none() {
            self.output = Some(self.put_in_order(cx)?);
        }
        Ok(())
    }

    /// The next rows in order, once all are in; `None` at the end.
    pub(super) fn next(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        self.finish(cx)?;
        match self.output.as_mut() {
            Some(Output::Held(order, from)) => {
                let to = order.len().min(*from + table::batch_rows(self.width));
                let table = self.held.gather(&order[*from..to], &self.keep);
                *from = to;
                Ok((table.rows() > 0).then_some(table))
            }
            Some(Output::Merge(merge)) => merge.next(&self.keep, table::batch_rows(self.width), cx),
            None => Ok(None),
        }
    }

    fn put_in_order(&mut self, cx: &Context) -> Result<Output, ExecError> {
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

    fn seal(&mut self) -> Result<Vec<spill::Run>, ExecError> {
        let Some(file) = self.file.take() else {
            return Ok(Vec::new());
        };
        let file = file.seal()?;
        let runs = std::mem::take(&mut self.runs).into_iter();
        Ok(runs
            .map(|(chunks, rows)| spill::Run::new(&file, chunks, rows))
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
        if input.row == 0 {
            let columns = by.iter().filter_map(|by| input.table.get(by.var));
            cx.terms().expect(columns.flatten().copied());
        }
        self.keys.extend(by.iter().map(|by| {
            let key = SortKey::new(input.table.value(by.var, input.row), cx.terms());
            (key, by.descending)
        }));
    }
}

impl Ord for Head {
    /// The greatest is what comes first: a binary heap hands over the greatest.
    fn cmp(&self, other: &Self) -> cmp::Ordering {
        for ((mine, descending), (theirs, _)) in self.keys.iter().zip(&other.keys) {
            let order = theirs.cmp(mine);
            if order != cmp::Ordering::Equal {
                return if *descending { order.reverse() } else { order };
            }
        }
        // Rows of earlier runs came earlier.
        other.input.cmp(&self.input)
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == cmp::Ordering::Equal
    }
}

impl Eq for Head {}

impl Merge {
    fn new(
        runs: &[spill::Run],
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
            if rows.is_multiple_of(MERGED_AT_ONCE) {
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
