//! A chain of steps that goes on at several nodes, and where these come together.

use std::sync::Arc;

use jindou_plan::physical::PlannedStep;

use super::SubQuery;
use super::replies::Replies;
use crate::ExecError;
use crate::context::Context;
use crate::operator::{Boxed, Builder, Operator};
use crate::steps::Feed;
use crate::table::{Table, VarSet};

/// What each node needs to go on with a chain of steps.
pub(crate) struct ForkedChain {
    steps: Box<[PlannedStep]>,
    /// The variables wanted behind all steps.
    needed: VarSet,
    /// The last step may give rows once each, with their numbers.
    counted: bool,
    /// How many variables the plan has, and columns its tables.
    variables: usize,
    width: usize,
    /// The first column that the steps may use for themselves.
    hidden: u16,
    cx: Arc<Context>,
}

impl ForkedChain {
    pub(crate) fn new(
        (cx, builder): (&Arc<Context>, &Builder<'_>),
        steps: &[PlannedStep],
        (needed, counted): (&VarSet, bool),
    ) -> Self {
        Self {
            steps: steps.into(),
            needed: needed.clone(),
            counted,
            variables: builder.variable_count(),
            width: builder.width(),
            hidden: builder.next_hidden(),
            cx: Arc::clone(cx),
        }
    }
}

/// The steps of a chain from one on.
#[derive(Clone)]
pub(super) struct Rest {
    pub(super) chain: Arc<ForkedChain>,
    pub(super) from: usize,
    /// The first of these scans what this node has of an index vertex.
    pub(super) own_scan: bool,
}

impl Rest {
    /// The operators of these steps, which read `table`. What they fork joins with what they find
    /// themselves at the end of `replies`.
    pub(super) fn build(
        &self,
        cx: &Arc<Context>,
        table: Table,
        replies: &Arc<Replies>,
    ) -> Result<Boxed, ExecError> {
        let chain = &self.chain;
        let feed = Feed::default();
        feed.put(table);
        let mut builder = Builder::for_rest(cx, (chain.variables, chain.width), chain.hidden);
        let place = ForkPlace {
            chain: Arc::clone(chain),
            replies: Arc::clone(replies),
            from: self.from,
            own_scan: self.own_scan,
        };
        let needed = &chain.needed;
        builder.forked_steps(Box::new(feed), &chain.steps, needed, chain.counted, place)
    }
}

/// Where a chain is forked from: what its operators need to have others go on.
#[derive(Clone)]
pub(crate) struct ForkPlace {
    pub(super) chain: Arc<ForkedChain>,
    pub(super) replies: Arc<Replies>,
    /// The first step that is built here.
    pub(crate) from: usize,
    /// It scans only what this node has.
    pub(crate) own_scan: bool,
}

impl ForkPlace {
    /// At the beginning of a chain, with nothing under way.
    pub(crate) fn new(chain: ForkedChain) -> Self {
        Self {
            chain: Arc::new(chain),
            replies: Arc::default(),
            from: 0,
            own_scan: false,
        }
    }

    /// Sub-queries that have not ended.
    pub(super) fn under_way(&self) -> usize {
        self.replies.under_way()
    }

    /// Rows that go on at another node from a step on.
    pub(super) fn sub_query(&self, from: usize, own_scan: bool, table: Table) -> SubQuery {
        self.chain.cx.fork_counts.count(&table);
        self.replies.begin();
        SubQuery {
            cx: Arc::clone(&self.chain.cx),
            rest: Rest {
                chain: Arc::clone(&self.chain),
                from,
                own_scan,
            },
            table,
            replies: Arc::clone(&self.replies),
            settled: false,
        }
    }

    /// The chain that ends with `own` here, and the rows of its sub-queries.
    pub(crate) fn join(self, own: Boxed) -> Boxed {
        Box::new(JoinForks {
            own,
            own_ended: false,
            replies: self.replies,
        })
    }
}

/// The rows of a chain: its own and those of its sub-queries, as they come.
pub(crate) struct JoinForks {
    own: Boxed,
    own_ended: bool,
    replies: Arc<Replies>,
}

impl Operator for JoinForks {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        if !self.own_ended {
            // What others have ready is taken first, so that they need not wait.
            if let Some(table) = self.replies.ready()? {
                return Ok(Some(table));
            }
            if let Some(table) = self.own.next(cx)? {
                return Ok(Some(table));
            }
            self.own_ended = true;
        }
        let table = self.replies.wait()?;
        // After the end the chain may be asked again.
        self.own_ended = table.is_some();
        Ok(table)
    }
}

impl Drop for JoinForks {
    fn drop(&mut self) {
        self.replies.close();
    }
}
