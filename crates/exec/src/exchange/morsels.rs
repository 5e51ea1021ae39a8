//! What do the threads of an exchange take their rows from?

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use jindou_plan::physical::{Node, Operator as Planned, Step, Var};

use crate::ExecError;
use crate::context::Context;
use crate::operator::Boxed;
use crate::steps::{Seed, SeededBind};
use crate::table::batch_rows;

/// Morsels of the source for each thread: the more, the more even the shares.
const MORSELS_PER_THREAD: u64 = 8;
/// Ids of a morsel at most.
const MOST_IDS: u64 = 2048;

/// The ids that the first step of an exploration binds, in pieces: each is taken by one thread.
#[derive(Clone)]
pub(crate) struct Morsels {
    /// The exploration.
    node: u32,
    seed: Arc<Seed>,
    taken: Arc<AtomicU64>,
    ids: u64,
    ids_at_once: u64,
    width: usize,
}

impl Morsels {
    /// Those of an exploration that begins with a list of ids, if that is long enough to be shared
    /// out among so many threads, in morsels of `least` ids or more.
    pub(crate) fn of(
        node: &Node,
        (threads, least): (usize, u64),
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
        let ids_at_once = even.clamp(least, MOST_IDS.max(least));
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
