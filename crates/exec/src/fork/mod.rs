//! How does an exploration go on where its keys are?
//!
//! Before a step, the rows of a table whose keys another node has can go there as a [`SubQuery`], with
//! their whole history, and run through the rest of the chain: fork-join execution. Or the step reads the
//! other node's memory: in-place execution. [`ForkPolicy::Dynamic`] chooses for each table by what either
//! takes (Wukong, OSDI'16, section 5.2). What a sub-query finds goes to the end of the chain that was
//! first asked, wherever it forked again, so that nobody but the reader of the query waits for rows, and
//! there is no barrier.
//!
//! A history that is larger than it may be stays, and so do rows that are alike in what the steps ahead read: then
//! only that goes ([`history`]), and what is found comes back to the node that forked, whose threads join both and
//! hand them on ([`rejoin`]).
//!
//! In one process a sub-query is handed over as it is. To another it goes as a message ([`ForkNode`]), and
//! what it finds comes back as messages: steps, tables and errors know nothing of that.

mod arrived;
mod chain;
mod decide;
mod departing;
mod history;
mod inbox;
mod messages;
mod outbox;
mod rejoin;
mod replies;
#[cfg(test)]
mod replies_tests;
mod split;
#[cfg(test)]
mod test_nodes;
mod wire;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use jindou_model::{NodeId, SnapshotNumber, TermId};

pub use arrived::{Arrived, Resources};
pub(crate) use chain::{ForkPlace, ForkedChain};
pub(crate) use decide::{ForkKey, fork_key, forks_scan, is_made_ready, may_fork, stays_here};
pub(crate) use messages::QueryMessages;
pub use messages::{ChainId, ForkNode, MessageLimits, Messages, QueryId, SubQueryId};
pub(crate) use split::{Fork, ForkScan};
pub use wire::SubQueryWireError;

use crate::class::QueryClass;
use crate::context::Context;
use crate::execution::Root;
use crate::table::Table;
use crate::{ExecError, GraphSource};
use chain::{LentPiece, Rest};
use replies::{Pushed, Replies};

/// The nodes of a cluster, as one query meets them at one of them.
pub trait Forks: Send + Sync {
    /// The node that asks.
    fn here(&self) -> NodeId;

    /// What the numbers of nodes are below.
    fn nodes(&self) -> u32;

    /// How many of them have edges.
    fn holding(&self) -> u32 {
        self.nodes()
    }

    /// Whether a node is one of these.
    fn holds(&self, _: NodeId) -> bool {
        true
    }

    /// Which snapshot of the graph the query asks, at all of them.
    fn snapshot(&self) -> SnapshotNumber;

    /// The node that has the edges of a key.
    fn node_of(&self, key: TermId) -> NodeId;

    /// The nodes that have the edges of some keys, each in its place; the asking one in that of [`TermId::NONE`].
    fn nodes_of(&self, keys: &[TermId], nodes: &mut Vec<NodeId>) {
        let here = self.here();
        nodes.clear();
        nodes.extend(keys.iter().map(|key| match *key {
            TermId::NONE => here,
            key => self.node_of(key),
        }));
    }

    /// How rows get to keys that another node has.
    fn settings(&self) -> ForkSettings;

    /// What a message to a node whose thread sleeps takes.
    fn message_cost(&self) -> MessageCost;

    /// Has another node answer a sub-query, once: by [`SubQuery::run`], or by a message
    /// ([`ForkNode::encode`]). Does not wait for it.
    ///
    /// A sub-query that is dropped without being run ends its query with [`ExecError::Panicked`].
    fn send(&self, to: NodeId, sub_query: SubQuery);

    /// Has a thread of this node go on with a sub-query of a query of this class that was put aside, as its reader
    /// had no room for what it found. Does not wait for it.
    fn resume(&self, class: QueryClass, job: Box<dyn FnOnce() + Send>);
}

/// How rows get to keys that another node has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ForkPolicy {
    /// As what is less work, for each table of rows, by what the plan expects and the rows before it cost.
    #[default]
    Dynamic,
    /// The keys are read from where they are, always.
    InPlace,
    /// The rows go to where their keys are, always.
    ForkJoin,
}

/// What a message to a node whose thread sleeps takes, in what may be done instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageCost {
    /// So many one-sided reads, of those that fly together.
    pub reads: u32,
    /// So many more rows in messages that go anyway.
    pub rows: u32,
}

/// How rows get to other nodes, as it is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForkSettings {
    /// Whether rows go to their keys at all.
    pub policy: ForkPolicy,
    /// Bytes of the history of a table that go along, though no step there reads them. Of one with more, only
    /// what the steps read goes; what is found comes back to the node that forked, and is joined with the rest
    /// there.
    pub history_bytes: usize,
    /// Each node scans its part of an index vertex, if that is less work; otherwise the node at which the chain
    /// begins scans all of it.
    pub splits_scans: bool,
    /// So many rows of a heavy query, or more, that go on at the node where they are, go on at another of its threads
    /// if one may help.
    pub lend_rows: usize,
}

/// Over ten gigabits a second so many bytes take as long as what saves them: a thread that wakes and joins.
const HISTORY_BYTES: usize = 64 << 10;

/// Following a list of each takes several times as long as making the steps ready for another thread and waking it.
const LEND_ROWS: usize = 256;

impl Default for ForkSettings {
    fn default() -> Self {
        Self {
            policy: ForkPolicy::default(),
            history_bytes: HISTORY_BYTES,
            splits_scans: true,
            lend_rows: LEND_ROWS,
        }
    }
}

/// Rows that go on at another node.
pub struct SubQuery {
    cx: Arc<Context>,
    rest: Rest,
    table: Table,
    replies: Arc<dyn Replies>,
    /// Where another thread of the node of its chain has it.
    lent: Option<LentPiece>,
    /// It was run: to its end, or to an error that its reader got.
    settled: bool,
    /// It went as a message: its end comes as one.
    has_left: bool,
}

impl SubQuery {
    /// The rows that go.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.table.rows()
    }

    /// Bytes of these.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.table.bytes()
    }

    /// Of its query, as far as that is known.
    #[must_use]
    pub fn class(&self) -> QueryClass {
        self.cx.class()
    }

    /// True once its query must end.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.cx.check().is_err()
    }

    /// Ends it, and its query with this error: it cannot go where it should.
    pub fn fail(mut self, error: ExecError) {
        self.ended(Err(error));
    }

    /// Answers it at a node that sees the graph as `source` and the other nodes as `forks`. What it finds,
    /// or why it ends, goes to the reader of the query. While that has no room for more, the sub-query is put
    /// aside, and goes on by [`Forks::resume`].
    pub fn run(mut self, source: Arc<dyn GraphSource>, forks: Arc<dyn Forks>) {
        let cx = Arc::new(self.cx.at_node(source, forks));
        if let Some(transport) = &cx.transport {
            match transport.carry(std::mem::take(&mut self.table), &cx) {
                Ok(table) => self.table = table,
                Err(error) => return self.ended(Err(error)),
            }
        }
        self.run_with(&cx);
    }

    /// Answers it as a node sees its query.
    fn run_with(mut self, cx: &Arc<Context>) {
        let table = std::mem::take(&mut self.table);
        let stack = self.rest.chain.stack;
        let built = stack.run(|| self.rest.build(cx, table, &self.replies));
        match built.map_err(ExecError::from).flatten() {
            Ok(chain) => {
                let running = Running {
                    chain: Root::new(chain, stack),
                    found: None,
                    cx: Arc::clone(cx),
                    sub_query: self,
                };
                running.go_on();
            }
            Err(error) => self.ended(Err(error)),
        }
    }

    /// It has ended, by an error or in whatever way.
    fn ended(&mut self, result: Result<(), ExecError>) {
        if let Err(error) = result {
            self.replies.fail(error);
        }
        self.settled = true;
    }
}

/// A sub-query under way.
struct Running {
    chain: Root,
    /// What its reader has had no room for.
    found: Option<Table>,
    cx: Arc<Context>,
    sub_query: SubQuery,
}

impl Running {
    /// Runs it, to its end or until its reader has no room for what it finds.
    fn go_on(mut self) {
        loop {
            match self.step() {
                Ok(Step::More) => (),
                Ok(Step::Ended) => return self.sub_query.ended(Ok(())),
                Err(error) => return self.sub_query.ended(Err(error)),
                Ok(Step::NoRoom) => match self.put_aside() {
                    Some(running) => self = running,
                    None => return,
                },
            }
        }
    }

    /// Finds some rows, and hands them over.
    fn step(&mut self) -> Result<Step, ExecError> {
        let found = match self.found.take() {
            Some(found) => Some(found),
            None => self.chain.next(&self.cx)?,
        };
        let Some(found) = found else {
            return Ok(Step::Ended);
        };
        if found.rows() == 0 {
            return Ok(Step::More);
        }
        Ok(match self.sub_query.replies.push(found, &self.cx)? {
            Pushed::Taken => Step::More,
            Pushed::Unread => Step::Ended,
            Pushed::Full(found) => {
                self.found = Some(found);
                Step::NoRoom
            }
        })
    }

    /// Leaves the thread to others until there is room; gives it back if there is some now.
    fn put_aside(self) -> Option<Self> {
        let replies = Arc::clone(&self.sub_query.replies);
        let place = Arc::new(Mutex::new(Some(self)));
        let left = Arc::clone(&place);
        let resume = move || {
            let running = left.lock().expect(ASIDE).take();
            if let Some(running) = running {
                let forks = running.cx.forks.clone().expect("a sub-query has nodes");
                forks.resume(running.cx.class(), Box::new(move || running.go_on()));
            }
        };
        let back = replies.when_room(Box::new(resume));
        back.and_then(|_| place.lock().expect(ASIDE).take())
    }
}

const ASIDE: &str = "nobody panics who takes a sub-query up";

/// What came of one step of a sub-query.
enum Step {
    More,
    NoRoom,
    Ended,
}

impl Drop for SubQuery {
    fn drop(&mut self) {
        if self.has_left {
            return;
        }
        if !self.settled {
            self.replies.fail(ExecError::Panicked);
        }
        self.replies.end();
    }
}

/// Sub-queries that a query had other nodes answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forked {
    /// How many.
    pub sub_queries: u64,
    /// The rows that went with them.
    pub rows: u64,
    /// The bytes of these rows.
    pub bytes: u64,
}

#[derive(Default)]
pub(crate) struct ForkCounts {
    sub_queries: AtomicU64,
    rows: AtomicU64,
    bytes: AtomicU64,
}

impl ForkCounts {
    /// Counts one that sets out, and gives the rows of all so far.
    fn count(&self, table: &Table) -> u64 {
        let rows = table.rows() as u64;
        self.sub_queries.fetch_add(1, Ordering::Relaxed);
        self.bytes
            .fetch_add(table.bytes() as u64, Ordering::Relaxed);
        self.rows.fetch_add(rows, Ordering::Relaxed) + rows
    }

    fn add(&self, more: Forked) {
        let Forked {
            sub_queries,
            rows,
            bytes,
        } = more;
        self.sub_queries.fetch_add(sub_queries, Ordering::Relaxed);
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Takes away what was counted so far.
    fn take(&self) -> Forked {
        Forked {
            sub_queries: self.sub_queries.swap(0, Ordering::Relaxed),
            rows: self.rows.swap(0, Ordering::Relaxed),
            bytes: self.bytes.swap(0, Ordering::Relaxed),
        }
    }

    pub(crate) fn sum(&self) -> Forked {
        Forked {
            sub_queries: self.sub_queries.load(Ordering::Relaxed),
            rows: self.rows.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }
}
