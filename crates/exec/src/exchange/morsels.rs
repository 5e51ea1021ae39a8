//! What do the threads of an exchange take their rows from?

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use jindou_plan::Dealt;
use jindou_plan::physical::{Node, Operator as Planned, PlannedStep, Step, Var};

use super::rows::SharedRows;
use crate::ExecError;
use crate::context::Context;
use crate::operator::Boxed;
use crate::steps::{Seed, SeededBind};
use crate::table::batch_rows;

/// Morsels of the source for each thread: the more, the more even the shares.
const MORSELS_PER_THREAD: u64 = 8;
/// Ids of a morsel at most.
const MOST_IDS: u64 = 2048;

/// Rows of which one that is left makes these few.
const FEW_OF_ROWS: f64 = 4.0;
/// Rows behind a row that make these far more.
const FAR_MORE: f64 = 8.0;

/// What is shared out.
pub(crate) enum Morsels {
    Ids(Ids),
    Rows(Rows),
}

impl Morsels {
    /// What a person is told of it.
    pub(crate) fn dealt(&self) -> Dealt {
        match self {
            Self::Ids(ids) => Dealt::Ids(ids.seed.var(), ids.ids),
            Self::Rows(rows) if rows.steps == 0 => Dealt::Node(rows.node),
            Self::Rows(rows) => Dealt::Steps(rows.steps),
        }
    }
}

/// The rows of one operator: all that a node has, or what the first steps of an exploration find.
pub(crate) struct Rows {
    /// The node.
    node: u32,
    /// The steps of an exploration that the operator has; 0 if it has all of the node.
    pub(crate) steps: usize,
    /// Made with the first of the threads' chains.
    pub(crate) shared: Option<Arc<SharedRows>>,
}

impl Rows {
    /// Those of a whole node, if enough are expected.
    pub(crate) fn of(node: &Node, many: (usize, f64)) -> Option<Self> {
        is_enough(node.rows, many).then_some(Self {
            node: node.id,
            steps: 0,
            shared: None,
        })
    }

    /// Those of the first steps of an exploration, as few as find enough, if `least` rows or more are expected of
    /// those behind these.
    pub(crate) fn of_first(node: &Node, many: (usize, f64), least: f64) -> Option<Self> {
        let Planned::Explore { input: None, steps } = &node.operator else {
            return None;
        };
        let mut first = 0;
        loop {
            steps.get(first)?;
            first += 1;
            // A step may take over the filters behind it.
            first += steps[first..]
                .iter()
                .take_while(|step| is_cheap(step))
                .count();
            if is_enough(steps[first - 1].rows, many) {
                break;
            }
        }
        let rest = &steps[first..];
        let rows: f64 = rest.iter().map(|step| step.rows).sum();
        (!rest.is_empty() && rows >= least).then_some(Self {
            node: node.id,
            steps: first,
            shared: None,
        })
    }

    /// As [`Rows::of_first`], where steps that are cheap leave few rows of the first step, behind which there is far
    /// more to do: they may all lie together, as one piece of its ids.
    pub(crate) fn of_few(node: &Node, many: (usize, f64), least: f64) -> Option<Self> {
        let Planned::Explore { input: None, steps } = &node.operator else {
            return None;
        };
        let (first, rest) = steps.split_first()?;
        let last_cheap = rest.iter().take_while(|step| is_cheap(step)).last()?;
        let is_thinned = last_cheap.rows * FEW_OF_ROWS <= first.rows;
        // One thread at a time does the first steps.
        let least = least.max(first.rows * FAR_MORE);
        Self::of_first(node, many, least).filter(|rows| is_thinned && rows.steps > 1)
    }

    /// True of the node of which these are rows.
    pub(crate) fn are_of(&self, node: &Node) -> bool {
        self.node == node.id
    }
}

/// True of what is done with rows as they are found.
fn is_cheap(planned: &PlannedStep) -> bool {
    matches!(planned.step, Step::Filter(_) | Step::Extend { .. })
}

/// True if so many rows can be dealt to so many threads.
fn is_enough(rows: f64, (threads, least): (usize, f64)) -> bool {
    rows >= ((threads as u64 * MORSELS_PER_THREAD) as f64).min(least)
}

/// The ids that the first step of an exploration binds, in pieces: each is taken by one thread.
#[derive(Clone)]
pub(crate) struct Ids {
    /// The exploration.
    node: u32,
    seed: Arc<Seed>,
    taken: Arc<AtomicU64>,
    ids: u64,
    ids_at_once: u64,
    width: usize,
}

impl Ids {
    /// Those of an exploration that begins with a list of ids, of which `rows` are expected to be found,
    /// if that is long enough to be shared out among so many threads, in morsels of `least` of these rows or more.
    pub(crate) fn of(
        node: &Node,
        rows: f64,
        (threads, least): (usize, f64),
        width: usize,
        cx: &Context,
    ) -> Result<Option<Self>, ExecError> {
        let Planned::Explore { input: None, steps } = &node.operator else {
            return Ok(None);
        };
        let Some((first, after)) = steps.split_first() else {
            return Ok(None);
        };
        let Step::Bind {
            var,
            sides,
            requires,
            scope,
        } = &first.step
        else {
            return Ok(None);
        };
        let Some(seed) = Seed::of((*var, *scope), sides, requires, after, cx)? else {
            return Ok(None);
        };
        let ids = seed.len(cx)?;
        let even = ids / (threads as u64 * MORSELS_PER_THREAD);
        // With many rows behind each, a few are enough to take.
        let least = (least * ids as f64 / rows.max(1.0)).ceil() as u64;
        let ids_at_once = even.max(least).clamp(1, MOST_IDS);
        let ids_at_once = ids_at_once.min(batch_rows(width) as u64);
        Ok((ids >= 2 * ids_at_once).then(|| Self {
            node: node.id,
            seed: Arc::new(seed),
            taken: Arc::default(),
            ids,
            ids_at_once,
            width,
        }))
    }

    /// True of the exploration that begins with these.
    pub(crate) fn are_of(&self, node: &Node) -> bool {
        self.node == node.id
    }

    /// The variable of which each value is in rows of one thread only, if there is one.
    pub(crate) fn distinct_var(&self) -> Option<Var> {
        self.seed.distinct_var()
    }

    /// Where one of the threads gets its rows: those of the first step.
    pub(crate) fn source(&self) -> Boxed {
        Box::new(SeededBind {
            seed: Arc::clone(&self.seed),
            taken: Arc::clone(&self.taken),
            len: self.ids,
            piece: self.ids_at_once,
            width: self.width,
        })
    }
}
