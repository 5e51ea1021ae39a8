//! GROUP BY: one row for each combination of keys, with its aggregates.

use jindou_model::TermId;
use jindou_plan::expression::Aggregate;
use jindou_plan::physical::{Node, Var};

use crate::ExecError;
use crate::context::{Booked, Context};
use crate::expr::{CompiledExpression, Evaluator, GroupedAccumulator};
use crate::operator::{Boxed, Builder, Operator};
use crate::rows::RowSet;
use crate::steps::compile;
use crate::table::{BATCH_ROWS, Table, VarSet};

/// What an aggregate is computed over.
enum Operand {
    /// `COUNT(*)`.
    Rows,
    /// `COUNT(DISTINCT *)`.
    Solutions,
    /// An expression.
    Values(Evaluator),
}

struct Column {
    var: Var,
    operand: Operand,
    accumulator: GroupedAccumulator,
}

struct Group {
    input: Boxed,
    by: Vec<Var>,
    /// All variables of the plan, for `COUNT(DISTINCT *)`.
    variables: Vec<Var>,
    columns: Vec<Column>,
    groups: RowSet,
    width: usize,
    /// The next group to hand over, once all rows are in.
    next: Option<usize>,
    booked: Booked,
}

/// [`jindou_plan::physical::Operator::Group`].
pub(super) fn build(
    builder: &mut Builder<'_>,
    input: &Node,
    by: &[Var],
    aggregates: &[(Var, Aggregate)],
) -> Result<Boxed, ExecError> {
    let mut needed: VarSet = by.iter().copied().collect();
    let all: Vec<Var> = builder.variables().collect();
    let mut columns = Vec::with_capacity(aggregates.len());
    for (var, aggregate) in aggregates {
        let operand = match (&aggregate.operand, aggregate.distinct) {
            (Some(expression), _) => {
                expression.for_each_variable(&mut |var| needed.insert(var));
                let compiled: CompiledExpression = compile(expression, builder.cx)?;
                Operand::Values(compiled.evaluator())
            }
            (None, false) => Operand::Rows,
            (None, true) => {
                needed.extend(all.iter().copied());
                Operand::Solutions
            }
        };
        columns.push(Column {
            var: *var,
            operand,
            accumulator: GroupedAccumulator::new(aggregate),
        });
    }
    let input = builder.node(input, &needed)?;
    Ok(Box::new(Group {
        input,
        by: by.to_vec(),
        variables: all,
        columns,
        groups: RowSet::new(by.len()),
        width: builder.width(),
        next: None,
        booked: Booked::default(),
    }))
}

impl Group {
    fn consume(&mut self, cx: &Context) -> Result<(), ExecError> {
        if self.by.is_empty() {
            // Without keys there is one group, of no rows too.
            self.groups.insert(&[]);
        }
        while let Some(table) = self.input.next(cx)? {
            cx.check()?;
            let groups = self.group_rows(&table);
            for column in &mut self.columns {
                column.add(&table, &groups, self.groups.len(), &self.variables, cx);
            }
            let accumulated: usize = self.columns.iter().map(|c| c.accumulator.bytes()).sum();
            cx.book(&mut self.booked, self.groups.bytes() + accumulated)?;
        }
        for column in &mut self.columns {
            column.accumulator.grow(self.groups.len());
        }
        Ok(())
    }

    /// The group of each row.
    fn group_rows(&mut self, table: &Table) -> Vec<u32> {
        if self.by.is_empty() {
            return vec![0; table.rows()];
        }
        let columns: Vec<Option<&[TermId]>> = self.by.iter().map(|var| table.get(*var)).collect();
        let mut key = Vec::with_capacity(self.by.len());
        let mut last: Option<(Vec<TermId>, u32)> = None;
        (0..table.rows())
            .map(|row| {
                key.clear();
                key.extend(columns.iter().map(|c| c.map_or(TermId::NONE, |c| c[row])));
                match &last {
                    // Exploration mostly gives rows of one key in a run.
                    Some((same, group)) if *same == key => *group,
                    _ => {
                        let group = self.groups.insert(&key).0 as u32;
                        last = Some((key.clone(), group));
                        group
                    }
                }
            })
            .collect()
    }
}

impl Column {
    fn add(
        &mut self,
        table: &Table,
        groups: &[u32],
        count: usize,
        variables: &[Var],
        cx: &Context,
    ) {
        self.accumulator.grow(count);
        match &mut self.operand {
            Operand::Rows => self.accumulator.add_rows(groups),
            Operand::Values(evaluator) => {
                let mut values = Vec::new();
                evaluator.evaluate_column(table, table.rows(), &cx.expressions, &mut values);
                self.accumulator
                    .add_column(&values, groups, &cx.expressions);
            }
            Operand::Solutions => {
                for (row, group) in groups.iter().enumerate() {
                    let solution: Vec<TermId> =
                        variables.iter().map(|var| table.value(*var, row)).collect();
                    self.accumulator.add_solution(*group as usize, &solution);
                }
            }
        }
    }
}

impl Operator for Group {
    fn next(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        if self.next.is_none() {
            self.consume(cx)?;
            self.next = Some(0);
        }
        let from = self.next.unwrap_or(0);
        let to = self.groups.len().min(from + BATCH_ROWS);
        if from == to {
            return Ok(None);
        }
        self.next = Some(to);
        let mut table = Table::with_rows(self.width, to - from);
        for (place, var) in self.by.iter().enumerate() {
            table.set(
                *var,
                (from..to)
                    .map(|group| self.groups.row(group)[place])
                    .collect(),
            );
        }
        for column in &self.columns {
            let finish = |group| column.accumulator.finish(group, &cx.expressions);
            table.set(column.var, (from..to).map(finish).collect());
        }
        cx.check()?;
        Ok(Some(table))
    }
}
