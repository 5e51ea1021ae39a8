//! MINUS of two independent sides: which rows does no row of the other side agree with?

use jindou_model::TermId;
use jindou_plan::physical::Var;

use crate::ExecError;
use crate::context::{Booked, Context};
use crate::operator::{Boxed, Operator};
use crate::rows::RowSet;
use crate::table::{Table, VarSet};

/// No further row.
const END: u32 = u32::MAX;
/// Rows of the right side looked at between two looks at the clock.
const LOOKS_AT_ONCE: usize = 1 << 20;

/// The right side: its distinct rows, by key.
struct Kept {
    keys: RowSet,
    /// Keys and loose variables.
    rows: RowSet,
    /// The last row of each key, and the row of the same key before each row.
    last: Vec<u32>,
    before: Vec<u32>,
    booked: Booked,
}

/// [`jindou_plan::physical::Operator::Minus`].
pub(super) struct Minus {
    input: Boxed,
    right: Boxed,
    keys: Vec<Var>,
    loose: Vec<Var>,
    /// The keys count as variables that both rows bind.
    overlaps: bool,
    keep: VarSet,
    kept: Option<Kept>,
}

impl Minus {
    pub(super) fn new(
        input: Boxed,
        right: Boxed,
        keys: &[Var],
        loose: &[Var],
        overlaps: bool,
        keep: VarSet,
    ) -> Self {
        Self {
            input,
            right,
            keys: keys.to_vec(),
            loose: loose.to_vec(),
            overlaps,
            keep,
            kept: None,
        }
    }

    fn keep_right(&mut self, cx: &Context) -> Result<Kept, ExecError> {
        let mut kept = Kept {
            keys: RowSet::new(self.keys.len()),
            rows: RowSet::new(self.keys.len() + self.loose.len()),
            last: Vec::new(),
            before: Vec::new(),
            booked: Booked::default(),
        };
        let mut values = Vec::new();
        while let Some(table) = self.right.next(cx)? {
            cx.check()?;
            for row in 0..table.rows() {
                values.clear();
                let all = self.keys.iter().chain(&self.loose);
                values.extend(all.map(|var| table.value(*var, row)));
                let (place, new) = kept.rows.insert(&values);
                if !new {
                    continue;
                }
                let (key, new) = kept.keys.insert(&values[..self.keys.len()]);
                if new {
                    kept.last.push(END);
                }
                kept.before.push(kept.last[key]);
                kept.last[key] = place as u32;
            }
            let lists = (kept.last.capacity() + kept.before.capacity()) * 4;
            let bytes = kept.keys.bytes() + kept.rows.bytes() + lists;
            cx.book(&mut kept.booked, bytes)?;
        }
        Ok(kept)
    }
}

impl Kept {
    /// True if a row agrees with these values of keys and loose variables.
    fn removes(&self, values: &[TermId], keys: usize, overlaps: bool, looks: &mut usize) -> bool {
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

impl Operator for Minus {
    fn next(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        if self.kept.is_none() {
            self.kept = Some(self.keep_right(cx)?);
        }
        let kept = self.kept.as_ref().expect("the right side was kept above");
        let Some(mut table) = self.input.next(cx)? else {
            return Ok(None);
        };
        let mut rows = Vec::with_capacity(table.rows());
        let mut values = Vec::new();
        let mut looks = 0;
        for row in 0..table.rows() {
            values.clear();
            let all = self.keys.iter().chain(&self.loose);
            values.extend(all.map(|var| table.value(*var, row)));
            if !kept.removes(&values, self.keys.len(), self.overlaps, &mut looks) {
                rows.push(row as u32);
            }
            if looks > LOOKS_AT_ONCE {
                looks = 0;
                cx.check()?;
            }
        }
        table.retain_columns(&self.keep);
        table.retain_rows(&rows);
        Ok(Some(table))
    }
}
