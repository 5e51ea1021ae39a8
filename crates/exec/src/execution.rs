//! A query under way: its rows, batch by batch, on one thread or several.

use std::sync::Arc;

use jindou_plan::physical::{Form, Plan, Slot, TemplateSlot};
use jindou_plan::{Exchange, Stack};

use crate::ExecError;
use crate::context::Context;
use crate::discard::{discard, is_large};
use crate::fork::may_fork;
use crate::operator::{Boxed, Builder, Operator};
use crate::table::{Table, VarSet};
use crate::workers::Workers;

/// The rows of a plan.
///
/// Ends when dropped: its threads stop at their next batch.
pub struct Execution {
    cx: Arc<Context>,
    root: Root,
    exchanges: Vec<Exchange>,
}

/// Operators nested in each other, which are asked and dropped on the stack that this takes.
pub(crate) struct Root {
    operator: Boxed,
    stack: Stack,
}

impl Root {
    pub(crate) fn new(operator: Boxed, stack: Stack) -> Self {
        Self { operator, stack }
    }

    pub(crate) fn next(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        self.stack.run(|| self.operator.next(cx))?
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        if !self.stack.is_plain() {
            let operator = std::mem::replace(&mut self.operator, Box::new(Nothing));
            self.stack.drop(operator);
        }
    }
}

impl Execution {
    /// Starts a plan. Nothing runs before the first rows are asked for.
    ///
    /// # Errors
    /// What the plan asks for and this engine refuses, and [`ExecError::NoStack`].
    pub fn new(
        plan: &Arc<Plan>,
        cx: Arc<Context>,
        workers: &Arc<Workers>,
        sharing: Sharing,
    ) -> Result<Self, ExecError> {
        let build = || {
            let mut builder = Builder::new(plan, &cx);
            builder.parallel = Parallel::of(plan, &cx, workers, sharing);
            // Where no rows go to other nodes, those of a heavy exploration go to the threads of this one.
            let may_fork = cx.forks.as_deref().is_some_and(may_fork);
            builder.forked = may_fork.then_some(&cx);
            let operator = builder.node(&plan.root, &wanted(plan))?;
            Ok::<_, ExecError>((operator, builder.exchanges))
        };
        let stack = plan.stack();
        let (operator, exchanges) = stack.run(build)??;
        let root = Root::new(operator, stack);
        Ok(Self {
            cx,
            root,
            exchanges,
        })
    }

    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// The limit that the query met, and [`ExecError::NoStack`].
    pub fn next_table(&mut self) -> Result<Option<Table>, ExecError> {
        loop {
            match self.root.next(&self.cx)? {
                Some(table) if table.rows() == 0 => (),
                Some(table) => {
                    self.cx.count_rows(table.rows());
                    return Ok(Some(table));
                }
                None => return Ok(None),
            }
        }
    }

    /// What several threads do of the plan.
    #[must_use]
    pub fn exchanges(&self) -> &[Exchange] {
        &self.exchanges
    }

    /// What the query's parts share.
    #[must_use]
    pub fn context(&self) -> &Arc<Context> {
        &self.cx
    }
}

/// The variables that the form of a query looks at.
fn wanted(plan: &Plan) -> VarSet {
    match &plan.form {
        Form::Select(vars) => vars.iter().copied().collect(),
        Form::Ask => VarSet::default(),
        Form::Construct(template) => template
            .iter()
            .flat_map(|triple| [triple.subject, triple.predicate, triple.object])
            .filter_map(|slot| match slot {
                TemplateSlot::Var(var) => Some(var),
                _ => None,
            })
            .collect(),
        Form::Describe(slots) => slots
            .iter()
            .filter_map(|slot| match slot {
                Slot::Var(var) => Some(*var),
                Slot::Const(_) => None,
            })
            .collect(),
    }
}

/// From when on work is shared out among threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sharing {
    /// Below this cost a plan stays on one thread.
    pub least_cost: f64,
    /// Rows that a thread is expected to find of what it takes at once, at least.
    pub least_rows: f64,
}

impl Default for Sharing {
    /// Where waking another thread takes less than it saves.
    fn default() -> Self {
        Self {
            least_cost: 150_000.0,
            least_rows: 512.0,
        }
    }
}

impl Sharing {
    /// All that can be shared out is, however little it is: for tests.
    #[must_use]
    pub fn all() -> Self {
        Self {
            least_cost: 0.0,
            least_rows: 0.0,
        }
    }
}

/// What a builder needs to share out what a heavy plan does.
#[derive(Clone, Copy)]
pub(crate) struct Parallel<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) cx: &'a Arc<Context>,
    pub(crate) workers: &'a Arc<Workers>,
    /// Two or more.
    pub(crate) threads: usize,
    pub(crate) sharing: Sharing,
}

impl<'a> Parallel<'a> {
    /// `None` for a plan that stays on one thread.
    fn of(
        plan: &'a Plan,
        cx: &'a Arc<Context>,
        workers: &'a Arc<Workers>,
        sharing: Sharing,
    ) -> Option<Self> {
        let threads = cx.threads.min(workers.count() + 1);
        (threads > 1 && plan.cost >= sharing.least_cost).then_some(Self {
            plan,
            cx,
            workers,
            threads,
            sharing,
        })
    }
}

/// No rows.
struct Nothing;

impl Operator for Nothing {
    fn produce(&mut self, _: &Context) -> Result<Option<Table>, ExecError> {
        Ok(None)
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        // Threads that still look for rows stop at their next batch.
        self.cx.finish();
        // Nobody who reads rows waits until what was held is freed.
        let bytes = self.cx.held_bytes() + self.cx.terms().computed_bytes() as u64;
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        if is_large(bytes) {
            let operator: Boxed = Box::new(Nothing);
            let stack = self.root.stack;
            let root = std::mem::replace(&mut self.root, Root::new(operator, stack));
            discard((root, Arc::clone(&self.cx)), bytes);
        }
    }
}
