//! Which rows have not been met before, also where those met do not fit into memory?
//!
//! Rows are known by a set in memory. Once that may grow no more, rows that it lacks are put into
//! parts on disk; when all rows have come, each part is looked at in the same way.

use std::borrow::Cow;

use jindou_model::TermId;
use jindou_plan::physical::Var;

use crate::ExecError;
use crate::context::{Booked, Context};
use crate::discard::discard;
use crate::rows::{RowSet, hash_row};
use crate::spill::{MOST_LEVELS, Partitions, Run, RunReader, batch_rows};
use crate::table::{Column, Table};

/// What tells rows apart in a column. A set of rows holds words, which it takes for ids.
fn words(column: &Column) -> Cow<'_, [TermId]> {
    match column {
        Column::Ids(ids) => Cow::Borrowed(ids),
        Column::Counts(numbers) | Column::Numbers(numbers) => {
            numbers.iter().copied().map(TermId::from_raw).collect()
        }
        Column::Rows(rows) => {
            let words = rows.iter().map(|row| TermId::from_raw((*row).into()));
            words.collect()
        }
    }
}

/// What tells the rows of a table apart, by some of their columns.
pub(super) struct Values<'t>(Vec<Option<Cow<'t, [TermId]>>>);

impl<'t> Values<'t> {
    pub(super) fn of(vars: &[Var], table: &'t Table) -> Self {
        let columns = vars.iter().map(|var| table.of_any_kind(*var));
        Self(columns.map(|column| column.map(words)).collect())
    }

    /// Reads those of a row.
    pub(super) fn read(&self, row: usize, values: &mut Vec<TermId>) {
        let value = |column: &Option<Cow<'_, [TermId]>>| match column {
            Some(column) => column[row],
            None => TermId::NONE,
        };
        values.clear();
        values.extend(self.0.iter().map(value));
    }
}

/// Tells rows apart by some of their columns.
pub(super) struct Dedup {
    vars: Vec<Var>,
    seen: RowSet,
    booked: Booked,
    /// Where rows go once `seen` may grow no more.
    late: Option<Partitions>,
    /// How often the rows in work were put into parts.
    level: u32,
    /// Parts to look at, and how often their rows were put into parts.
    parts: Vec<(Run, u32)>,
    reader: Option<RunReader>,
}

impl Dedup {
    pub(super) fn new(vars: Vec<Var>, cx: &Context) -> Self {
        Self {
            seen: RowSet::new(vars.len()),
            vars,
            booked: cx.spilling(),
            late: None,
            level: 0,
            parts: Vec::new(),
            reader: None,
        }
    }

    /// Which rows of a table are met for the first time; those of which that is not known yet are
    /// kept for [`Dedup::next_late`].
    pub(super) fn fresh(&mut self, table: &Table, cx: &Context) -> Result<Vec<u32>, ExecError> {
        // Each part brings some rows at least: those of its first batch.
        if self.late.is_none() && !self.may_grow(table.rows(), cx)? && self.seen.len() > 0 {
            self.put_off(table, cx)?;
        }
        let columns = Values::of(&self.vars, table);
        let mut values = Vec::with_capacity(self.vars.len());
        let mut chosen: Vec<u32> = Vec::new();
        let is_late = self.late.is_some();
        for row in 0..table.rows() {
            columns.read(row, &mut values);
            let is_new = if is_late {
                self.seen.find(&values).is_none()
            } else {
                self.seen.insert(&values).1
            };
            if is_new {
                chosen.push(row as u32);
            }
        }
        match &mut self.late {
            None => Ok(chosen),
            Some(late) => {
                late.push(table, chosen.into_iter(), |row| {
                    columns.read(row, &mut values);
                    hash_row(&values)
                })?;
                Ok(Vec::new())
            }
        }
    }

    fn may_grow(&mut self, rows: usize, cx: &Context) -> Result<bool, ExecError> {
        Ok(!self.seen.is_full(rows) && cx.room(&mut self.booked, self.seen.bytes_with(rows))?)
    }

    /// From here on rows that are not known are put into parts.
    pub(super) fn put_off(&mut self, table: &Table, cx: &Context) -> Result<(), ExecError> {
        if self.level >= MOST_LEVELS {
            return Err(cx.memory_exceeded());
        }
        let rows = batch_rows(cx, table.width());
        self.late = Some(Partitions::new(cx, self.level, rows)?);
        Ok(())
    }

    /// After the last table: some more rows that are met for the first time; `None` at the end.
    pub(super) fn next_late(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        loop {
            cx.check()?;
            let table = match &mut self.reader {
                Some(reader) => reader.next(cx)?,
                None => None,
            };
            let Some(mut table) = table else {
                if self.next_part(cx)? {
                    continue;
                }
                return Ok(None);
            };
            let fresh = self.fresh(&table, cx)?;
            if !fresh.is_empty() {
                table.retain_rows(&fresh);
                return Ok(Some(table));
            }
        }
    }

    /// Goes on to the next part; false at the end.
    fn next_part(&mut self, cx: &Context) -> Result<bool, ExecError> {
        if let Some(late) = self.late.take() {
            let parts = late.finish()?.into_iter();
            let parts = parts.filter(|part| part.rows() > 0);
            self.parts.extend(parts.map(|part| (part, self.level + 1)));
        }
        let bytes = self.seen.bytes();
        discard(
            std::mem::replace(&mut self.seen, RowSet::new(self.vars.len())),
            bytes,
        );
        cx.room(&mut self.booked, 0)?;
        let Some((part, level)) = self.parts.pop() else {
            self.reader = None;
            return Ok(false);
        };
        self.reader = Some(part.into_reader());
        self.level = level;
        Ok(true)
    }
}
