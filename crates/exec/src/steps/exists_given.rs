//! EXISTS of a pattern that is a plan of its own: does it have a row, given the values of this
//! one?

use jindou_model::TermId;
use jindou_plan::physical::{Node, Outcome, Var};

use super::exists::decide;
use crate::ExecError;
use crate::context::{Booked, Context};
use crate::operator::{Boxed, Builder, Operator, Template};
use crate::rows::RowSet;
use crate::table::{Table, VarSet};

/// Answers that are remembered; when there are so many, they are forgotten.
const REMEMBERED: usize = 1 << 16;

struct ExistsGiven {
    input: Boxed,
    template: Template,
    /// For rows in which all that is given is bound.
    all_bound: Option<Template>,
    given: Vec<Var>,
    outcome: Outcome,
    keep: VarSet,
    /// Values met, and whether there was a row for them.
    met: RowSet,
    answers: Vec<bool>,
    booked: Booked,
}

/// [`jindou_plan::physical::Step::ExistsGiven`].
pub(super) fn build(
    builder: &mut Builder<'_>,
    input: Boxed,
    (node, all_bound): (&Node, Option<&Node>),
    given: &[Var],
    outcome: Outcome,
    keep: VarSet,
) -> Boxed {
    Box::new(ExistsGiven {
        input,
        template: builder.template(node, VarSet::default()),
        all_bound: all_bound.map(|node| builder.template(node, VarSet::default())),
        given: given.to_vec(),
        outcome,
        keep,
        met: RowSet::new(given.len()),
        answers: Vec::new(),
        booked: Booked::default(),
    })
}

impl ExistsGiven {
    fn answer(&mut self, values: &[TermId], cx: &Context) -> Result<bool, ExecError> {
        if let Some(number) = self.met.find(values) {
            return Ok(self.answers[number]);
        }
        cx.check()?;
        let bound: Vec<(Var, TermId)> = self
            .given
            .iter()
            .copied()
            .zip(values.iter().copied())
            .filter(|(_, value)| !value.is_none())
            .collect();
        let template = match &self.all_bound {
            Some(template) if bound.len() == values.len() => template,
            _ => &self.template,
        };
        let mut rows = template.start(&bound, cx)?;
        let found = loop {
            match rows.next(cx)? {
                None => break false,
                Some(table) if table.rows() > 0 => break true,
                Some(_) => cx.check()?,
            }
        };
        if self.met.len() == REMEMBERED {
            self.met = RowSet::new(self.given.len());
            self.answers.clear();
        }
        self.met.insert(values);
        self.answers.push(found);
        cx.book(&mut self.booked, self.met.bytes() + self.answers.capacity())?;
        Ok(found)
    }
}

impl Operator for ExistsGiven {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        let Some(table) = self.input.next(cx)? else {
            return Ok(None);
        };
        let mut found = Vec::with_capacity(table.rows());
        let mut values = Vec::with_capacity(self.given.len());
        for row in 0..table.rows() {
            values.clear();
            values.extend(self.given.iter().map(|var| table.value(*var, row)));
            found.push(self.answer(&values, cx)?);
        }
        Ok(Some(decide(table, &found, self.outcome, &self.keep)))
    }
}
