//! MINUS of two independent sides: which rows does no row of the other side agree with?

use jindou_model::TermId;
use jindou_plan::physical::Var;

use super::kept_side::KeptSide;
use super::two_sided::{KeptRows, Probe, Side};
use crate::ExecError;
use crate::context::Context;
use crate::discard::discard;
use crate::rows::RowSet;
use crate::spill::push_values;
use crate::table::Table;

/// No further row.
const END: u32 = u32::MAX;
/// Rows of the right side looked at between two looks at the clock.
const LOOKS_AT_ONCE: usize = 1 << 20;
/// Rows that are given back at once.
const ROWS_AT_ONCE: usize = 1 << 13;

/// A row of the left side that meets one of the right side's rows is removed.
pub(super) struct MinusSide {
    /// Keys, then loose variables.
    vars: Vec<Var>,
    /// How many of them are keys.
    keys: usize,
    /// The keys count as variables that both rows bind.
    overlaps: bool,
}

/// The right side.
pub(super) struct MinusRows {
    /// Keys, then loose variables.
    vars: Vec<Var>,
    keys: usize,
    kept: Kept,
    /// Columns of a table.
    width: usize,
    /// Rows that were not given back, once some were.
    left: Option<usize>,
}

/// Distinct rows, by key.
struct Kept {
    /// Empty where there are no loose variables: a row is then its key.
    keys: RowSet,
    /// Keys and loose variables.
    rows: RowSet,
    /// The last row of each key, and the row of the same key before each row.
    last: Vec<u32>,
    before: Vec<u32>,
}

impl Kept {
    fn new(keys: usize, vars: usize) -> Self {
        Self {
            keys: RowSet::new(keys),
            rows: RowSet::new(vars),
            last: Vec::new(),
            before: Vec::new(),
        }
    }

    fn bytes(&self) -> usize {
        let lists = self.last.capacity() + self.before.capacity();
        self.keys.bytes() + self.rows.bytes() + lists * size_of::<u32>()
    }

    fn bytes_with(&self, rows: usize) -> usize {
        let grown = |list: &Vec<u32>| match list.len() + rows {
            needed if needed > list.capacity() => needed.max(2 * list.capacity()),
            _ => list.capacity(),
        };
        let lists = grown(&self.last) + grown(&self.before);
        self.keys.bytes_with(rows) + self.rows.bytes_with(rows) + lists * size_of::<u32>()
    }

    /// True if a row agrees with these values of keys and loose variables.
    fn removes(&self, values: &[TermId], keys: usize, overlaps: bool, looks: &mut usize) -> bool {
        if keys == values.len() {
            return overlaps && self.rows.find(values).is_some();
        }
        let Some(key) = self.keys.find(&values[..keys]) else {
            return false;
        };
        let mut place = self.last[key];
        while place != END {
            *looks += 1;
            let pairs = || {
                self.rows.row(place as usize)[keys..]
                    .iter()
                    .zip(&values[keys..])
            };
            let agrees = pairs().all(|(a, b)| a == b || a.is_none() || b.is_none());
            if agrees && (overlaps || pairs().any(|(a, b)| !a.is_none() && a == b)) {
                return true;
            }
            place = self.before[place as usize];
        }
        false
    }
}

impl MinusSide {
    pub(super) fn new(keys: &[Var], loose: &[Var], overlaps: bool) -> Self {
        let vars: Vec<Var> = keys.iter().chain(loose).copied().collect();
        Self {
            keys: keys.len(),
            vars,
            overlaps,
        }
    }
}

impl KeptRows for MinusRows {
    fn add(&mut self, table: &Table) {
        self.width = table.width();
        let kept = &mut self.kept;
        let mut values = Vec::with_capacity(self.vars.len());
        for row in 0..table.rows() {
            push_values(&self.vars, table, row, &mut values);
            let (place, new) = kept.rows.insert(&values);
            if !new || self.keys == self.vars.len() {
                continue;
            }
            let (key, new) = kept.keys.insert(&values[..self.keys]);
            if new {
                kept.last.push(END);
            }
            kept.before.push(kept.last[key]);
            kept.last[key] = place as u32;
        }
    }

    fn bytes_with(&self, table: &Table) -> usize {
        self.kept.bytes_with(table.rows())
    }

    fn is_full(&self, table: &Table) -> bool {
        self.kept.rows.is_full(table.rows())
    }

    fn is_empty(&self) -> bool {
        self.kept.rows.len() == 0
    }

    fn pop(&mut self) -> Option<Table> {
        let to = self.left.unwrap_or(self.kept.rows.len());
        let from = to.saturating_sub(ROWS_AT_ONCE);
        self.left = Some(from);
        if from == to {
            return None;
        }
        let mut table = Table::with_rows(self.width, to - from);
        for (place, var) in self.vars.iter().enumerate() {
            let value = |row| self.kept.rows.row(row)[place];
            table.set(*var, (from..to).map(value).collect());
        }
        Some(table)
    }

    fn clear(&mut self) {
        let empty = Kept::new(self.keys, self.vars.len());
        let kept = std::mem::replace(&mut self.kept, empty);
        let bytes = kept.bytes();
        discard(kept, bytes);
        self.left = None;
    }
}

impl Side for MinusSide {
    type Kept = MinusRows;

    fn empty(&self) -> MinusRows {
        MinusRows {
            kept: Kept::new(self.keys, self.vars.len()),
            vars: self.vars.clone(),
            keys: self.keys,
            width: 0,
            left: None,
        }
    }

    fn probe(
        &mut self,
        kept: &KeptSide<MinusRows>,
        probe: &mut Probe,
        cx: &Context,
    ) -> Result<Option<Table>, ExecError> {
        let in_memory = kept.get();
        let mut values = Vec::with_capacity(self.vars.len());
        let mut looks = 0;
        for row in 0..probe.table.rows() {
            if probe.met[row] {
                continue;
            }
            push_values(&self.vars, &probe.table, row, &mut values);
            let kept = &in_memory.rows.kept;
            probe.met[row] = kept.removes(&values, self.keys, self.overlaps, &mut looks);
            if looks > LOOKS_AT_ONCE {
                looks = 0;
                cx.check()?;
            }
        }
        probe.place.row = probe.table.rows();
        Ok(None)
    }
}
