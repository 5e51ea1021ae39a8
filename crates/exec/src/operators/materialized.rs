//! Rows that whoever asked for the execution has: a table at a time.

use std::sync::Arc;

use jindou_model::TermId;
use jindou_plan::physical::Var;

use crate::ExecError;
use crate::context::Context;
use crate::operator::Operator;
use crate::table::{Table, VarSet, batch_rows};

/// Solutions that are kept from one execution to the next: columns of one length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MaterializedRows {
    /// A column for each variable of the plan's operator, in its order.
    pub columns: Vec<Vec<TermId>>,
    /// Their length.
    pub rows: usize,
    /// How many equal rows each row stands for; one each without them.
    pub counts: Option<Vec<u64>>,
}

/// Hands over the rows of the execution.
pub(super) struct Materialized {
    rows: Arc<MaterializedRows>,
    /// The columns that are wanted, each with its variable.
    columns: Vec<(usize, Var)>,
    /// What reads them takes rows that stand for several.
    counted: bool,
    next: usize,
    /// Of what the next row stands for, so many are handed over.
    done: u64,
    width: usize,
}

impl Materialized {
    pub(super) fn new(
        rows: Arc<MaterializedRows>,
        vars: &[Var],
        (needed, counted): (&VarSet, bool),
        width: usize,
    ) -> Self {
        assert_eq!(rows.columns.len(), vars.len(), "a column for each variable");
        let columns = vars.iter().copied().enumerate();
        Self {
            rows,
            columns: columns.filter(|(_, var)| needed.contains(*var)).collect(),
            counted,
            next: 0,
            done: 0,
            width,
        }
    }

    /// The next rows as they are.
    fn as_they_are(&mut self) -> Option<Table> {
        let rows = self.next..self.rows.rows.min(self.next + batch_rows(self.width));
        if rows.is_empty() {
            return None;
        }
        let mut table = Table::with_rows(self.width, rows.len());
        for (column, var) in &self.columns {
            let ids = &self.rows.columns[*column][rows.clone()];
            table.set(*var, ids.to_vec());
        }
        if let Some(counts) = &self.rows.counts {
            table.set_counts(counts[rows.clone()].to_vec());
        }
        self.next = rows.end;
        Some(table)
    }

    /// The next rows, each as often as it stands for.
    fn repeated(&mut self, counts: &[u64]) -> Option<Table> {
        let most = batch_rows(self.width);
        let mut rows = Vec::new();
        while rows.len() < most && self.next < self.rows.rows {
            let left = counts[self.next] - self.done;
            let taken = left.min((most - rows.len()) as u64);
            rows.extend(std::iter::repeat_n(self.next, taken as usize));
            self.done += taken;
            if taken == left {
                (self.next, self.done) = (self.next + 1, 0);
            }
        }
        if rows.is_empty() {
            return None;
        }
        let mut table = Table::with_rows(self.width, rows.len());
        for (column, var) in &self.columns {
            let ids = &self.rows.columns[*column];
            table.set(*var, rows.iter().map(|row| ids[*row]).collect());
        }
        Some(table)
    }
}

impl Operator for Materialized {
    fn produce(&mut self, _: &Context) -> Result<Option<Table>, ExecError> {
        let rows = Arc::clone(&self.rows);
        Ok(match &rows.counts {
            Some(counts) if !self.counted => self.repeated(counts),
            _ => self.as_they_are(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of an operator, each as often as it stands for, and the tables that it gives.
    fn all(mut operator: Materialized) -> (Vec<TermId>, usize) {
        let (mut values, mut tables) = (Vec::new(), 0);
        while let Some(mut table) = match operator.rows.counts.clone() {
            Some(counts) if !operator.counted => operator.repeated(&counts),
            _ => operator.as_they_are(),
        } {
            tables += 1;
            let ids = table.get(Var(1)).expect("it is wanted").to_vec();
            match table.take_counts() {
                Some(crate::table::Column::Counts(counts)) => {
                    let each = ids.iter().zip(counts);
                    values.extend(
                        each.flat_map(|(id, count)| std::iter::repeat_n(*id, count as usize)),
                    );
                }
                _ => values.extend(ids),
            }
        }
        (values, tables)
    }

    #[test]
    fn rows_that_stand_for_several_are_repeated_where_they_are_not_counted() {
        let counts = vec![2, 1, 5_000, 0, 3];
        let ids: Vec<TermId> = (0..5).map(TermId::vertex).collect();
        let each = ids.iter().zip(&counts);
        let expected: Vec<TermId> = each
            .flat_map(|(id, count)| std::iter::repeat_n(*id, *count as usize))
            .collect();
        let rows = Arc::new(MaterializedRows {
            columns: vec![ids.clone(), ids],
            rows: 5,
            counts: Some(counts),
        });
        for counted in [false, true] {
            let vars = [Var(0), Var(1)];
            let needed: VarSet = [Var(1)].into_iter().collect();
            let rows = Arc::clone(&rows);
            let operator = Materialized::new(rows, &vars, (&needed, counted), 3);
            let (values, tables) = all(operator);
            assert_eq!(values, expected, "counted: {counted}");
            let most = batch_rows(3);
            let expected = if counted {
                1
            } else {
                expected.len().div_ceil(most)
            };
            assert_eq!(tables, expected, "counted: {counted}");
        }
    }
}
