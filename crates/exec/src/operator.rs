//! A plan's tree -> operators that hand over tables.

use jindou_plan::physical::{Node, Operator as Planned, Plan, PlannedStep, Step, Var};

use crate::ExecError;
use crate::context::Context;
use crate::execution::Parallel;
use crate::operators;
use crate::steps;
use crate::table::{Table, VarSet};

/// Something that hands over rows, a table at a time.
pub(crate) trait Operator: Send {
    /// The next rows; `None` at the end. A table may be empty.
    ///
    /// After the end an operator may be asked again: if its input has new rows, it goes on with
    /// those. So the steps of OPTIONAL and UNION serve one batch after the other.
    fn next(&mut self, cx: &Context) -> Result<Option<Table>, ExecError>;
}

/// An operator of any kind.
pub(crate) type Boxed = Box<dyn Operator>;

/// One row without columns, once.
pub(crate) struct Unit {
    width: usize,
    done: bool,
}

impl Operator for Unit {
    fn next(&mut self, _cx: &Context) -> Result<Option<Table>, ExecError> {
        Ok((!std::mem::replace(&mut self.done, true)).then(|| Table::unit(self.width)))
    }
}

/// Counts rows and time of the operator inside.
struct Profiled {
    inner: Boxed,
    id: u32,
}

impl Operator for Profiled {
    fn next(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        let profile = cx
            .profile
            .as_ref()
            .expect("only profiled queries have this operator");
        profile.measure(self.id, || self.inner.next(cx))
    }
}

/// Turns plans into operators.
pub(crate) struct Builder<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) cx: &'a Context,
    /// Columns of a table: the plan's variables, and a hidden one for each nested step.
    width: usize,
    hidden: u16,
    /// Set where explorations may be shared out among threads.
    pub(crate) parallel: Option<Parallel<'a>>,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(plan: &'a Plan, cx: &'a Context) -> Self {
        let variables = plan.variables.len();
        Self {
            plan,
            cx,
            width: variables + count_optionals(&plan.root),
            hidden: variables as u16,
            parallel: None,
        }
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// A variable for the executor's own use.
    pub(crate) fn hidden_variable(&mut self) -> Var {
        self.hidden += 1;
        Var(self.hidden - 1)
    }

    pub(crate) fn unit(&self) -> Boxed {
        Box::new(Unit {
            width: self.width,
            done: false,
        })
    }

    pub(crate) fn profiled(&self, inner: Boxed, id: u32) -> Boxed {
        match self.cx.profile {
            Some(_) => Box::new(Profiled { inner, id }),
            None => inner,
        }
    }

    /// The operator of a node of which `needed` is wanted.
    pub(crate) fn node(&mut self, node: &Node, needed: &VarSet) -> Result<Boxed, ExecError> {
        let operator = match &node.operator {
            Planned::Explore { input, steps } => {
                if let Some(parallel) = self.parallel
                    && let Some(shared) = parallel.explore(node, needed, self.width)?
                {
                    return Ok(shared);
                }
                let before = steps::needed_before(steps, needed);
                let input = match input {
                    Some(input) => self.node(input, &before)?,
                    None => self.unit(),
                };
                return self.steps(input, steps, needed);
            }
            other => operators::build(self, other, needed)?,
        };
        Ok(self.profiled(operator, node.id))
    }

    /// A chain of steps behind `input`.
    pub(crate) fn steps(
        &mut self,
        input: Boxed,
        steps: &[PlannedStep],
        needed: &VarSet,
    ) -> Result<Boxed, ExecError> {
        let mut operator = input;
        for (index, planned) in steps.iter().enumerate() {
            let keep = steps::needed_before(&steps[index + 1..], needed);
            operator = steps::build(self, operator, &planned.step, keep)?;
            operator = self.profiled(operator, planned.id);
        }
        Ok(operator)
    }
}

/// How many OPTIONAL steps are in a plan: each needs a hidden column.
fn count_optionals(node: &Node) -> usize {
    let in_steps = |steps: &[PlannedStep]| steps.iter().map(count_in_step).sum::<usize>();
    match &node.operator {
        Planned::Explore { input, steps } => {
            input.as_deref().map_or(0, count_optionals) + in_steps(steps)
        }
        Planned::Join { build, probe, .. } => count_optionals(build) + count_optionals(probe),
        Planned::LeftJoin { left, right, .. } => count_optionals(left) + count_optionals(right),
        Planned::Union(inputs) => inputs.iter().map(count_optionals).sum(),
        Planned::Filter { input, .. }
        | Planned::Extend { input, .. }
        | Planned::Group { input, .. }
        | Planned::OrderBy { input, .. }
        | Planned::Project { input, .. }
        | Planned::Distinct { input }
        | Planned::Reduced { input }
        | Planned::Slice { input, .. } => count_optionals(input),
    }
}

fn count_in_step(planned: &PlannedStep) -> usize {
    match &planned.step {
        Step::Optional { steps, .. } => 1 + steps.iter().map(count_in_step).sum::<usize>(),
        Step::Union(branches) => branches.iter().flatten().map(count_in_step).sum(),
        _ => 0,
    }
}
