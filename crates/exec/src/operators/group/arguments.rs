//! What do the aggregates of a group look at in each row?

use jindou_model::TermId;
use jindou_plan::expression::Aggregate;
use jindou_plan::physical::Var;

use crate::ExecError;
use crate::context::Context;
use crate::expr::Evaluator;
use crate::steps::compile;
use crate::table::{Column, Table};

/// What an aggregate is computed over.
pub(super) enum Operand {
    /// `COUNT(*)`.
    Rows,
    /// `COUNT(DISTINCT *)`.
    Solutions,
    /// An expression.
    Values(Box<Evaluator>),
}

/// Turns rows into *arguments*: a column for each key, then one for each aggregate's operand, then all
/// variables if solutions are told apart, then the number of rows that a row stands for, if it may be
/// several.
pub(super) struct Arguments {
    by: Vec<Var>,
    operands: Vec<Operand>,
    /// All variables of the plan, for `COUNT(DISTINCT *)`.
    variables: Vec<Var>,
}

impl Arguments {
    /// Those of aggregates over groups by these variables, of a plan that has all of `variables`.
    ///
    /// # Errors
    /// What compiling an expression says.
    pub(super) fn new<'a>(
        by: &[Var],
        aggregates: impl Iterator<Item = &'a Aggregate>,
        variables: &[Var],
        cx: &Context,
    ) -> Result<Self, ExecError> {
        let operands = aggregates.map(|aggregate| {
            Ok(match (&aggregate.operand, aggregate.distinct) {
                (Some(expression), _) => {
                    Operand::Values(Box::new(compile(expression, cx)?.evaluator()))
                }
                (None, false) => Operand::Rows,
                (None, true) => Operand::Solutions,
            })
        });
        let operands = operands.collect::<Result<Vec<_>, ExecError>>()?;
        let has_solutions = operands.iter().any(|o| matches!(o, Operand::Solutions));
        Ok(Self {
            by: by.to_vec(),
            operands,
            variables: if has_solutions { variables } else { &[] }.to_vec(),
        })
    }

    /// The number of key columns: the first ones.
    pub(super) fn keys(&self) -> usize {
        self.by.len()
    }

    pub(super) fn operands(&self) -> &[Operand] {
        &self.operands
    }

    /// The column of an aggregate's operand.
    pub(super) fn place_of_operand(&self, number: usize) -> Var {
        Var((self.by.len() + number) as u16)
    }

    /// The columns of a solution.
    pub(super) fn places_of_variables(&self) -> Vec<Var> {
        let first = self.by.len() + self.operands.len();
        let places = first..first + self.variables.len();
        places.map(|place| Var(place as u16)).collect()
    }

    /// The last column.
    fn place_of_counts(&self) -> Var {
        Var((self.width() - 1) as u16)
    }

    /// Number of columns.
    pub(super) fn width(&self) -> usize {
        self.by.len() + self.operands.len() + self.variables.len() + 1
    }

    /// How many rows each row of arguments stands for, if it may be several.
    pub(super) fn counts<'t>(&self, arguments: &'t Table) -> Option<&'t [u64]> {
        match arguments.of_any_kind(self.place_of_counts()) {
            Some(Column::Counts(counts)) => Some(counts),
            _ => None,
        }
    }

    /// The arguments of some rows.
    pub(super) fn of(&mut self, mut table: Table, cx: &Context) -> Table {
        let mut arguments = Table::with_rows(self.width(), table.rows());
        if let Some(counts) = table.take_counts() {
            arguments.set_column(self.place_of_counts(), counts);
        }
        let mut place = Var(self.by.len() as u16);
        for operand in &mut self.operands {
            if let Operand::Values(evaluator) = operand {
                let mut values: Vec<TermId> = Vec::new();
                evaluator.evaluate_column(&table, table.rows(), &cx.expressions, &mut values);
                arguments.set(place, values);
            }
            place.0 += 1;
        }
        for var in &self.variables {
            if let Some(column) = table.get(*var) {
                arguments.set(place, column.to_vec());
            }
            place.0 += 1;
        }
        for (place, var) in self.by.iter().enumerate() {
            let column = if self.by[place + 1..].contains(var) {
                table.get(*var).map(<[TermId]>::to_vec)
            } else {
                table.take(*var)
            };
            if let Some(column) = column {
                arguments.set(Var(place as u16), column);
            }
        }
        arguments
    }
}
