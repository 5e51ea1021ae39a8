//! A query under way: its rows, batch by batch, on one thread or several.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};

use jindou_plan::Stack;
use jindou_plan::physical::{Form, Node, Operator as Planned, Plan, Slot, Step, TemplateSlot};

use crate::ExecError;
use crate::context::Context;
use crate::discard::{discard, is_large};
use crate::fork::may_fork;
use crate::operator::{Boxed, Builder, Operator};
use crate::steps::{Seed, SeededBind};
use crate::table::{Table, VarSet, batch_rows};
use crate::workers::Workers;

/// Below this cost a plan stays on one thread: waking another takes longer than it saves.
const PARALLEL_COST: f64 = 150_000.0;
/// Pieces of the first step's ids for each thread: the more, the more even the shares.
const PIECES_PER_THREAD: u64 = 8;
/// Ids of the first step that a thread takes at once.
const PIECE: std::ops::RangeInclusive<u64> = 128..=2048;
/// Tables that may wait between the threads and the reader.
const WAITING_TABLES: usize = 64;

/// The rows of a plan.
///
/// Ends when dropped: its threads stop at their next batch.
pub struct Execution {
    cx: Arc<Context>,
    root: Root,
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
    ) -> Result<Self, ExecError> {
        let build = || {
            let mut builder = Builder::new(plan, &cx);
            builder.parallel = Some(Parallel {
                plan,
                cx: &cx,
                workers,
            });
            // Where no rows go to other nodes, those of a heavy exploration go to the threads of this one.
            let may_fork = cx.forks.as_deref().is_some_and(may_fork);
            builder.forked = may_fork.then_some(&cx);
            builder.node(&plan.root, &wanted(plan))
        };
        let stack = plan.stack();
        let operator = stack.run(build)??;
        let root = Root::new(operator, stack);
        Ok(Self { cx, root })
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

/// What a builder needs to share an exploration out.
#[derive(Clone, Copy)]
pub(crate) struct Parallel<'a> {
    plan: &'a Arc<Plan>,
    cx: &'a Arc<Context>,
    workers: &'a Arc<Workers>,
}

impl Parallel<'_> {
    /// The exploration of `node` on several threads, if that is worth it.
    pub(crate) fn explore(
        &self,
        node: &Node,
        needed: &VarSet,
        width: usize,
        counted: bool,
    ) -> Result<Option<Boxed>, ExecError> {
        let threads = self.cx.threads.min(self.workers.count() + 1);
        let Planned::Explore { input: None, steps } = &node.operator else {
            return Ok(None);
        };
        let Some(Step::Bind {
            var,
            sides,
            requires,
            scope,
        }) = steps.first().map(|first| &first.step)
        else {
            return Ok(None);
        };
        if threads < 2 || self.plan.cost < PARALLEL_COST || steps.len() < 2 {
            return Ok(None);
        }
        let Some(seed) = Seed::of((*var, *scope), sides, requires, &steps[1..], self.cx)? else {
            return Ok(None);
        };
        let len = seed.len(self.cx)?;
        let piece =
            (len / (threads as u64 * PIECES_PER_THREAD)).clamp(*PIECE.start(), *PIECE.end());
        let piece = piece.min(batch_rows(width) as u64);
        if len < 2 * piece {
            return Ok(None);
        }
        let shared = SharedSeed {
            seed: Arc::new(seed),
            taken: Arc::new(AtomicU64::new(0)),
            len,
            piece,
            width,
        };
        let own = shared.chain(self.plan, self.cx, node, (needed, counted))?;
        let stack = self.plan.stack();
        let others = (1..threads)
            .map(|_| {
                let operator = shared.chain(self.plan, self.cx, node, (needed, counted))?;
                Ok(Root::new(operator, stack))
            })
            .collect::<Result<_, ExecError>>()?;
        Ok(Some(Box::new(Gather {
            own: Some(own),
            others: Some(others),
            cx: Arc::clone(self.cx),
            workers: Arc::clone(self.workers),
            started: None,
        })))
    }
}

/// The start that the threads of one exploration share.
struct SharedSeed {
    seed: Arc<Seed>,
    taken: Arc<AtomicU64>,
    len: u64,
    piece: u64,
    width: usize,
}

impl SharedSeed {
    /// One thread's chain of steps.
    fn chain(
        &self,
        plan: &Plan,
        cx: &Context,
        node: &Node,
        (needed, counted): (&VarSet, bool),
    ) -> Result<Boxed, ExecError> {
        let Planned::Explore { steps, .. } = &node.operator else {
            unreachable!("only explorations are shared out")
        };
        let start = Box::new(SeededBind {
            seed: Arc::clone(&self.seed),
            taken: Arc::clone(&self.taken),
            len: self.len,
            piece: self.piece,
            width: self.width,
        });
        let rest = &steps[1..];
        let mut builder = Builder::new(plan, cx);
        builder.last_steps(Some(start), rest, needed, counted)
    }
}

/// Collects the rows of several threads, this one among them.
struct Gather {
    own: Option<Boxed>,
    others: Option<Vec<Root>>,
    cx: Arc<Context>,
    workers: Arc<Workers>,
    started: Option<Started>,
}

type Message = Result<Table, ExecError>;

/// The threads that were asked to help.
struct Started {
    receiver: Receiver<Message>,
    /// Where a thread that begins finds its way to the reader; empty once its help comes too late,
    /// so that nobody waits for threads that are busy with other queries.
    door: Arc<Mutex<Option<SyncSender<Message>>>>,
}

impl Started {
    fn close_door(&self) {
        self.door.lock().expect("nobody panics at the door").take();
    }
}

impl Gather {
    fn start(&mut self) {
        let Some(others) = self.others.take() else {
            return;
        };
        let (sender, receiver) = sync_channel(WAITING_TABLES);
        let door = Arc::new(Mutex::new(Some(sender)));
        for chain in others {
            let door = Arc::clone(&door);
            let cx = Arc::clone(&self.cx);
            self.workers.spawn(move || {
                let sender = door.lock().expect("nobody panics at the door").clone();
                if let Some(sender) = sender {
                    help(chain, &cx, &sender);
                }
            });
        }
        self.started = Some(Started { receiver, door });
    }
}

/// Runs a chain to its end and sends what it finds.
fn help(mut chain: Root, cx: &Context, sender: &SyncSender<Message>) {
    loop {
        // A panic must reach the reader: rows that are silently missing are a wrong answer.
        let next = catch_unwind(AssertUnwindSafe(|| chain.next(cx)));
        let message = match next {
            Ok(Ok(None)) => return,
            Ok(Ok(Some(table))) if table.rows() == 0 => continue,
            Ok(Ok(Some(table))) => Ok(table),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(ExecError::Panicked),
        };
        let failed = message.is_err();
        // Without a reader the query has ended.
        if send(message, cx, sender).is_err() || failed {
            return;
        }
    }
}

/// Sends a message; as long as there is no room for it, there may be other work.
fn send(message: Message, cx: &Context, sender: &SyncSender<Message>) -> Result<(), Gone> {
    let mut message = message;
    loop {
        match sender.try_send(message) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Disconnected(_)) => return Err(Gone),
            Err(TrySendError::Full(back)) if cx.work_meanwhile() => message = back,
            Err(TrySendError::Full(back)) => return sender.send(back).map_err(|_| Gone),
        }
    }
}

/// Nobody reads the rows any more.
struct Gone;

impl Operator for Gather {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        self.start();
        let Some(started) = &self.started else {
            return Ok(None);
        };
        if let Some(own) = &mut self.own {
            // What others have ready is taken first, so that they need not wait.
            if let Ok(message) = started.receiver.try_recv() {
                return message.map(Some);
            }
            match own.next(cx)? {
                Some(table) => return Ok(Some(table)),
                None => {
                    self.own = None;
                    started.close_door();
                }
            }
        }
        started.receiver.recv().ok().transpose()
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
