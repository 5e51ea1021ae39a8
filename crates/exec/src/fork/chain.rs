//! A chain of steps that goes on at several nodes, and where these come together.

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use jindou_plan::physical::{PlannedStep, Var};
use jindou_plan::{DecodedSteps, PlanSizes, Stack, encode_steps};
use rustc_hash::FxHashMap;

use super::decide::{RowsAhead, lists_ahead};
use super::history::{History, Parted};
use super::inbox::Inbox;
use super::rejoin::Rejoin;
use super::replies::Replies;
use super::wire::SubQueryWireError;
use super::{Forks, SubQuery};
use crate::ExecError;
use crate::class::QueryClass;
use crate::context::{Booked, Context};
use crate::operator::{Boxed, Builder, Operator};
use crate::steps::Feed;
use crate::table::{Table, VarSet};

/// Rows that a light query has others go on with, at most: one that sends more has turned heavy.
const MOST_LIGHT_ROWS: u64 = 1 << 14;

/// What each node needs to go on with a chain of steps.
pub(crate) struct ForkedChain {
    pub(super) steps: Arc<Steps>,
    /// The variables wanted behind all steps.
    pub(super) needed: VarSet,
    pub(super) shape: Shape,
    /// How many variables the plan has.
    pub(super) variables: usize,
    /// The first column that the steps may use for themselves.
    pub(super) hidden: u16,
    /// Rows expected before the first step.
    pub(super) rows_before: f64,
    /// Lists that each step and those behind it are expected to read.
    pub(super) lists_ahead: Vec<f64>,
    /// The stack for a recursion over the steps, or over what is made of them.
    pub(super) stack: Stack,
    pub(super) cx: Arc<Context>,
    /// The steps from one on as bytes, by that one.
    pub(super) encoded: Encoded,
}

/// What the tables of a chain have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Columns.
    pub(super) width: usize,
    /// The last step may give rows once each, with their numbers.
    pub(super) counted: bool,
    /// The column that says which of the rows that stayed where the chain was forked each row belongs to.
    pub(super) origin: Option<Var>,
}

/// Steps of a plan that is here, or of one of another node.
pub(super) enum Steps {
    Planned(Arc<[PlannedStep]>),
    Decoded {
        steps: DecodedSteps,
        /// What they take.
        _held: Booked,
    },
}

impl Deref for Steps {
    type Target = [PlannedStep];

    fn deref(&self) -> &[PlannedStep] {
        match self {
            Self::Planned(steps) => steps,
            Self::Decoded { steps, .. } => steps,
        }
    }
}

/// The steps of a chain from one on as bytes, by that one, with what they take.
pub(super) type Encoded = Mutex<FxHashMap<usize, (Arc<[u8]>, Booked)>>;

impl ForkedChain {
    pub(crate) fn new(
        (cx, builder): (&Arc<Context>, &Builder<'_>),
        steps: &Arc<[PlannedStep]>,
        (needed, counted): (&VarSet, bool),
    ) -> Self {
        Self {
            steps: Arc::new(Steps::Planned(Arc::clone(steps))),
            needed: needed.clone(),
            shape: Shape {
                width: builder.width(),
                counted,
                origin: None,
            },
            variables: builder.variable_count(),
            hidden: builder.next_hidden(),
            rows_before: 1.0,
            lists_ahead: lists_ahead(steps, 1.0),
            stack: cx.stack,
            cx: Arc::clone(cx),
            encoded: Encoded::default(),
        }
    }

    /// Rows expected before a step.
    pub(super) fn rows_before(&self, step: usize) -> f64 {
        let before = step.checked_sub(1);
        before.map_or(self.rows_before, |before| self.steps[before].rows)
    }

    /// What is expected of the rows before a step.
    pub(super) fn ahead(&self, step: usize) -> RowsAhead {
        RowsAhead {
            before: self.rows_before(step),
            lists: self.lists_ahead[step],
            behind: self.rows_before(self.steps.len()),
        }
    }

    /// The steps from one on, as bytes.
    ///
    /// # Errors
    /// If there is no memory for them, or they are more than a message can say.
    pub(super) fn encoded(&self, from: usize) -> Result<Arc<[u8]>, ExecError> {
        let expectation = "no thread panics while it holds steps";
        let known = self.encoded.lock().expect(expectation);
        if let Some((bytes, _)) = known.get(&from) {
            return Ok(Arc::clone(bytes));
        }
        drop(known);
        let sizes = PlanSizes {
            variables: self.variables,
            constants: self.cx.constants.len(),
            ids: self.cx.ids,
        };
        let bytes = encode_steps(&self.steps[from..], sizes, self.stack);
        let bytes: Arc<[u8]> = bytes.map_err(SubQueryWireError::from)?.into();
        let held = self.cx.reserve(bytes.len())?;
        let mut known = self.encoded.lock().expect(expectation);
        let (bytes, _) = known.entry(from).or_insert((bytes, held));
        Ok(Arc::clone(bytes))
    }
}

/// The steps of a chain from one on.
#[derive(Clone)]
pub(super) struct Rest {
    pub(super) chain: Arc<ForkedChain>,
    pub(super) from: usize,
    /// The first of these scans what this node has of an index vertex.
    pub(super) own_scan: bool,
    /// Its rows stayed at this node before the first of these: they are neither parted nor lent there again.
    pub(super) stayed: bool,
    /// Pieces of it that other threads of this node have.
    pub(super) lent: Lent,
}

/// How many pieces of a chain other threads of its node have.
pub(super) type Lent = Arc<AtomicUsize>;

/// A piece that another thread of the node has, counted until it is dropped.
pub(super) struct LentPiece(Lent);

impl LentPiece {
    /// One more, if these are fewer than `most`.
    fn of(lent: &Lent, most: usize) -> Option<Self> {
        let one_more = |pieces: usize| (pieces < most).then_some(pieces + 1);
        let taken = lent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        taken.is_ok().then(|| Self(Arc::clone(lent)))
    }
}

impl Drop for LentPiece {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Rest {
    /// The operators of these steps, which read `table`. What they fork joins with what they find
    /// themselves at the end of `replies`.
    pub(super) fn build(
        &self,
        cx: &Arc<Context>,
        table: Table,
        replies: &Arc<dyn Replies>,
    ) -> Result<Boxed, ExecError> {
        let chain = &self.chain;
        let feed = Feed::default();
        feed.put(table);
        let Shape { width, counted, .. } = chain.shape;
        let mut builder = Builder::for_rest(cx, (chain.variables, width), chain.hidden);
        let place = ForkPlace {
            chain: Arc::clone(chain),
            replies: Arc::clone(replies),
            from: self.from,
            own_scan: self.own_scan,
            stayed: self.stayed,
            cx: Arc::clone(cx),
            lent: Arc::clone(&self.lent),
        };
        let needed = &chain.needed;
        builder.forked_steps(Box::new(feed), &chain.steps, needed, counted, place)
    }
}

/// Where a chain is forked from: what its operators need to have others go on.
#[derive(Clone)]
pub(crate) struct ForkPlace {
    pub(super) chain: Arc<ForkedChain>,
    pub(super) replies: Arc<dyn Replies>,
    /// The first step that is built here.
    pub(crate) from: usize,
    /// It scans only what this node has.
    pub(crate) own_scan: bool,
    /// The rows before its first step stayed here.
    stayed: bool,
    /// The query, as this node sees it.
    cx: Arc<Context>,
    /// Pieces that other threads of this node have.
    lent: Lent,
}

impl ForkPlace {
    /// At the beginning of a chain, with nothing under way, and where its sub-queries come together.
    pub(crate) fn new(chain: ForkedChain) -> (Self, JoinForks) {
        let inbox = Arc::new(Inbox::new(chain.shape));
        let place = Self {
            cx: Arc::clone(&chain.cx),
            chain: Arc::new(chain),
            replies: Arc::clone(&inbox) as Arc<dyn Replies>,
            from: 0,
            own_scan: false,
            stayed: false,
            lent: Lent::default(),
        };
        (place, JoinForks::new(inbox))
    }

    /// Rows expected before a step.
    pub(crate) fn rows_before(&self, step: usize) -> f64 {
        self.chain.rows_before(step)
    }

    /// Sub-queries that have not ended.
    pub(super) fn under_way(&self) -> usize {
        self.replies.under_way()
    }

    /// Rows that go on at another node from a step on.
    pub(super) fn sub_query(&self, from: usize, own_scan: bool, table: Table) -> SubQuery {
        if self.chain.cx.fork_counts.count(&table) > MOST_LIGHT_ROWS {
            self.chain.cx.turn_heavy();
        }
        let rest = Rest {
            chain: Arc::clone(&self.chain),
            from,
            own_scan,
            stayed: false,
            lent: Lent::default(),
        };
        self.sub_query_of_rest(&self.chain.cx, rest, table)
    }

    /// False for the rows before a step that other threads or nodes were not to take when they came there.
    pub(crate) fn may_part_before(&self, step: usize) -> bool {
        !self.stayed || step != self.from
    }

    /// Lends rows that go on here from a step on to another thread of this node, if the query may have one more; else
    /// they are given back.
    pub(super) fn lend(&self, from: usize, table: Table, forks: &dyn Forks) -> Option<Table> {
        let class = self.cx.class();
        if class == QueryClass::Light || table.rows() < forks.settings().lend_rows {
            return Some(table);
        }
        let Some(piece) = LentPiece::of(&self.lent, self.cx.threads.saturating_sub(1)) else {
            return Some(table);
        };
        let rest = Rest {
            chain: Arc::clone(&self.chain),
            from,
            own_scan: false,
            stayed: true,
            lent: Arc::clone(&self.lent),
        };
        let mut sub_query = self.sub_query_of_rest(&self.cx, rest, table);
        sub_query.lent = Some(piece);
        let cx = Arc::clone(&self.cx);
        forks.resume(class, Box::new(move || sub_query.run_with(&cx)));
        None
    }

    fn sub_query_of_rest(&self, cx: &Arc<Context>, rest: Rest, table: Table) -> SubQuery {
        self.replies.begin();
        SubQuery {
            cx: Arc::clone(cx),
            rest,
            table,
            replies: Arc::clone(&self.replies),
            lent: None,
            settled: false,
            has_left: false,
        }
    }

    /// What goes on at another node of rows that go without their history, from a step on. What it finds is joined
    /// with what stayed by threads of the node that sees the others as `forks`.
    pub(super) fn sub_query_of_part(
        &self,
        (from, history): (usize, &History),
        parted: Parted,
        forks: &Arc<dyn Forks>,
    ) -> SubQuery {
        let inbox = Arc::new(Inbox::new(history.chain().shape));
        let place = Self {
            chain: Arc::clone(history.chain()),
            replies: Arc::clone(&inbox) as Arc<dyn Replies>,
            from,
            own_scan: false,
            stayed: false,
            cx: Arc::clone(&self.cx),
            lent: Lent::default(),
        };
        let sub_query = place.sub_query(from, false, parted.goes);
        let here = (&self.chain.cx, forks);
        Rejoin::begin(&inbox, parted.stayed, &self.replies, here);
        sub_query
    }
}

/// The rows of a chain: its own and those of its sub-queries, as they come.
pub(crate) struct JoinForks {
    /// What ends the chain here, once it is built.
    own: Option<Boxed>,
    own_ended: bool,
    inbox: Arc<Inbox>,
}

impl JoinForks {
    fn new(inbox: Arc<Inbox>) -> Self {
        Self {
            own: None,
            own_ended: false,
            inbox,
        }
    }

    /// The chain that ends with `own` here.
    pub(crate) fn with(mut self, own: Boxed) -> Boxed {
        self.own = Some(own);
        Box::new(self)
    }
}

impl Operator for JoinForks {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        if let (Some(own), false) = (&mut self.own, self.own_ended) {
            // What others have ready is taken first, so that they need not wait.
            if let Some(table) = self.inbox.ready(cx)? {
                return Ok(Some(table));
            }
            if let Some(table) = own.next(cx)? {
                return Ok(Some(table));
            }
            self.own_ended = true;
        }
        let table = self.inbox.wait(cx)?;
        // After the end the chain may be asked again.
        self.own_ended = table.is_some();
        Ok(table)
    }
}

impl Drop for JoinForks {
    fn drop(&mut self) {
        self.inbox.close();
    }
}

#[cfg(test)]
mod tests {
    use jindou_model::{NodeId, SnapshotNumber, TermId};

    use super::super::test_nodes::TestNodes;
    use super::super::{ForkSettings, MessageCost};
    use super::*;

    type Job = Box<dyn FnOnce() + Send>;

    /// A node that keeps what its other threads are to do.
    #[derive(Default)]
    struct Threads(Mutex<Vec<Job>>);

    impl Forks for Threads {
        fn here(&self) -> NodeId {
            NodeId(0)
        }

        fn nodes(&self) -> u32 {
            2
        }

        fn snapshot(&self) -> SnapshotNumber {
            SnapshotNumber(1)
        }

        fn node_of(&self, _: TermId) -> NodeId {
            NodeId(0)
        }

        fn settings(&self) -> ForkSettings {
            ForkSettings {
                lend_rows: 3,
                ..ForkSettings::default()
            }
        }

        fn message_cost(&self) -> MessageCost {
            MessageCost { reads: 1, rows: 1 }
        }

        fn send(&self, _: NodeId, _: SubQuery) {
            panic!("nothing goes anywhere");
        }

        fn resume(&self, _: QueryClass, job: Job) {
            self.0.lock().unwrap().push(job);
        }
    }

    const VAR: Var = Var(0);

    fn table(numbers: std::ops::Range<u64>) -> Table {
        let mut table = Table::with_rows(1, numbers.clone().count());
        table.set(VAR, numbers.map(TermId::vertex).collect());
        table
    }

    /// Lends tables of a chain without steps; gives how many rows of each stayed, and those that came back.
    fn lent(class: QueryClass, tables: &[std::ops::Range<u64>]) -> (Vec<usize>, Vec<u64>) {
        let nodes = TestNodes::of_threads(3, class);
        let threads = Threads::default();
        let (place, mut join) = ForkPlace::new(nodes.chain(Vec::new(), 1, &[VAR]));
        join.own_ended = true;
        let stayed = tables.iter().map(|rows| {
            let kept = place.lend(0, table(rows.clone()), &threads);
            kept.map_or(0, |table| table.rows())
        });
        let stayed = stayed.collect();
        let mut found = Vec::new();
        threads
            .0
            .into_inner()
            .unwrap()
            .into_iter()
            .for_each(|job| job());
        while let Some(table) = join.produce(&nodes.cx).unwrap() {
            found.extend(table.get(VAR).unwrap().iter().map(|id| id.number()));
        }
        assert_eq!(place.lent.load(Ordering::Relaxed), 0, "all came back");
        found.sort_unstable();
        (stayed, found)
    }

    #[test]
    fn many_rows_of_a_heavy_query_go_on_at_as_many_threads_as_may_help() {
        let tables = [0..2, 10..13, 20..25, 30..39];
        // Two of three threads are others.
        let expected = (vec![2, 0, 0, 9], (10..13).chain(20..25).collect());
        assert_eq!(lent(QueryClass::Heavy, &tables), expected);
        assert_eq!(lent(QueryClass::Light, &tables), (vec![2, 3, 5, 9], vec![]));
    }
}
