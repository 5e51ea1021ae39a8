//! Bytes -> a sub-query of another node's query, which is run here.

use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jindou_model::SnapshotNumber;
use jindou_plan::physical::Var;
use jindou_plan::{DecodedSteps, PlanSizes, decode_steps, decoded_bytes};

use super::chain::{Encoded, ForkedChain, Lent, Rest, Shape, Steps};
use super::decide::lists_ahead;
use super::messages::{ForkNode, QueryId, QueryPart, Registered};
use super::outbox::Outbox;
use super::replies::Replies;
use super::wire::{self, Failure, Message, SubQueryHead, SubQueryWireError, Work, query};
use super::{Forks, QueryMessages, SubQuery};
use crate::class::QueryClass;
use crate::context::{Booked, Context, Limits};
use crate::operator::count_in_steps;
use crate::table::VarSet;
use crate::{ExecError, GraphSource, Terms, Transport};

/// Columns of a table at most: some operators have one more for themselves, and each has a number of 16
/// bits.
pub(super) const MOST_COLUMNS: u32 = u16::MAX as u32;

/// What a node has for a sub-query of another one's query.
pub struct Resources {
    /// The graph, at the snapshot of the query.
    pub source: Arc<dyn GraphSource>,
    /// Its terms, of which the query has computed none here; not used where it has some already.
    pub terms: Terms,
    /// How its rows go on at other nodes.
    pub forks: Arc<dyn Forks>,
    /// The most that the query may take here, with a switch and an account of its own: those that it
    /// brings along hold where they are lower. Not used where it has some already.
    pub limits: Limits,
    /// How its tables get from one operator to the next; without it they are handed over as they are.
    pub transport: Option<Arc<dyn Transport>>,
}

/// A sub-query of another node's query, as it came.
///
/// One that is dropped without being run ends its query with [`ExecError::Panicked`].
pub struct Arrived {
    node: Arc<ForkNode>,
    head: SubQueryHead,
    message: Vec<u8>,
    has_run: bool,
}

impl Arrived {
    pub(super) fn new(node: &Arc<ForkNode>, head: SubQueryHead, message: Vec<u8>) -> Self {
        Self {
            node: Arc::clone(node),
            head,
            message,
            has_run: false,
        }
    }

    /// The query that it is of.
    #[must_use]
    pub fn query(&self) -> QueryId {
        self.head.query
    }

    /// The snapshot of the graph that its query asks.
    #[must_use]
    pub fn snapshot(&self) -> SnapshotNumber {
        SnapshotNumber(self.head.snapshot)
    }

    /// Of its query, when it set out.
    #[must_use]
    pub fn class(&self) -> QueryClass {
        self.head.class
    }

    /// Answers it. What it finds, or why it ends, goes to the reader of its query by messages. While too
    /// many of these are on the way it is put aside, and goes on by [`Forks::resume`].
    pub fn run(mut self, resources: Resources) {
        self.has_run = true;
        match self.sub_query(resources) {
            Ok(Some((sub_query, cx))) => sub_query.run_with(&cx),
            Ok(None) => self.refuse(self.lost_query()),
            Err(error) => self.refuse(Some(error)),
        }
    }

    /// Bytes of the message that it came with.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.message.len()
    }

    /// Ends it, and its query with this error: it cannot be run here.
    pub fn fail(mut self, error: ExecError) {
        self.has_run = true;
        self.refuse(Some(error));
    }

    /// Its query has ended here, and its reader, who joins rows for the query at another node, may not know of that.
    fn lost_query(&self) -> Option<ExecError> {
        let SubQueryHead { chain, query, .. } = self.head;
        let node = self.node.here();
        (chain.node() != query.node()).then_some(ExecError::NodeLost { node })
    }

    /// It ends before it began.
    fn refuse(&self, error: Option<ExecError>) {
        let SubQueryHead { chain, id, .. } = self.head;
        if let Some(error) = error {
            let failure = Failure::of(error);
            let failed = Message::Failed { chain, failure };
            self.node.send(chain.node(), &failed, &[]);
        }
        let ended = Message::Ended {
            chain,
            id,
            had: Vec::new(),
            work: Work::default(),
        };
        self.node.send(chain.node(), &ended, &[]);
    }

    /// The sub-query, with its query as it is here; `None` if that has ended.
    pub(super) fn sub_query(
        &self,
        resources: Resources,
    ) -> Result<Option<(SubQuery, Arc<Context>)>, ExecError> {
        let (_, rest) = wire::read(&self.message, self.node.limits())?;
        let (query, rest) = wire::split("the query", rest, self.head.query_bytes)?;
        let (steps, table) = wire::split("the steps", rest, self.head.step_bytes)?;
        let Some(cx) = self.context(query, resources)? else {
            return Ok(None);
        };
        let cx = Arc::new(cx);
        let held = cx.reserve(decoded_bytes(steps.len()))?;
        let steps = decode_steps(steps).map_err(SubQueryWireError::from)?;
        let chain = self.chain(steps, held, &cx)?;
        // Those rows that stand for several are handed to nobody but who counts them.
        let shape = Shape {
            counted: false,
            ..chain.shape
        };
        let table = wire::table_of(table, shape, &cx)?;
        let SubQueryHead {
            query,
            chain: of,
            id,
            ..
        } = self.head;
        let window = self.node.join_window(of, query);
        if self.node.has_ended(query) {
            // It ended meanwhile, with the windows that there were.
            window.close_with_query();
        }
        let replies = Outbox::new(&self.node, window, (of, id), cx.shared());
        let sub_query = SubQuery {
            cx: Arc::clone(&cx),
            rest: Rest {
                chain: Arc::new(chain),
                from: 0,
                own_scan: self.head.own_scan,
                stayed: false,
                lent: Lent::default(),
            },
            table,
            replies: Arc::new(replies) as Arc<dyn Replies>,
            lent: None,
            settled: false,
            has_left: false,
        };
        Ok(Some((sub_query, cx)))
    }

    /// The query as it is here, of which this may be the first part; `None` if it has ended.
    fn context(&self, part: &[u8], resources: Resources) -> Result<Option<Context>, ExecError> {
        let query = self.head.query;
        let queries = self.node.queries();
        if queries.ended.contains(&query) {
            return Ok(None);
        }
        let known = queries.known.get(&query).cloned();
        drop(queries);
        let source = Arc::clone(&resources.source);
        let forks = Arc::clone(&resources.forks);
        let shared = match known.and_then(|known| known.upgrade()) {
            Some(known) => known,
            None => {
                let new = self.first(part, resources)?;
                let mut queries = self.node.queries();
                if queries.ended.contains(&query) {
                    drop(queries);
                    return Ok(None);
                }
                let known = queries.known.entry(query);
                // Another sub-query of it may have come first.
                let first = match &known {
                    Entry::Occupied(other) => other.get().upgrade(),
                    Entry::Vacant(_) => None,
                };
                if first.is_none() {
                    known.insert_entry(Arc::downgrade(new.shared()));
                }
                drop(queries);
                first.unwrap_or_else(|| Arc::clone(new.shared()))
            }
        };
        if self.head.class == QueryClass::Heavy {
            shared.turn_heavy();
        }
        let same = shared
            .messages
            .part()
            .is_some_and(|own| *own.bytes == *part);
        if !same {
            return Err(mismatch("of a query that is another one here"));
        }
        Ok(Some(Context::of_shared(shared, source, forks)))
    }

    /// The query as it begins here.
    fn first(&self, part: &[u8], mut resources: Resources) -> Result<Context, ExecError> {
        let left = self.head.nanoseconds_left.map(Duration::from_nanos);
        let limits = &mut resources.limits;
        limits.started = Instant::now();
        limits.timeout = match (limits.timeout, left) {
            (Some(own), Some(left)) => Some(own.min(left)),
            (own, left) => own.or(left),
        };
        let registered = Registered {
            node: Arc::clone(&self.node),
            query: self.head.query,
        };
        let own = QueryPart {
            id: self.head.query,
            bytes: part.into(),
        };
        let messages = QueryMessages::of_arrived(own, registered);
        query::decode(part, self.head.id, resources, messages)
    }

    /// The chain of which the sub-query is a part; `held` is what its steps take.
    fn chain(
        &self,
        steps: DecodedSteps,
        held: Booked,
        cx: &Arc<Context>,
    ) -> Result<ForkedChain, ExecError> {
        let needed = VarSet::from_words(self.head.needed.clone());
        let stack = steps.stack();
        let own_columns = stack.run(|| count_in_steps(&steps))?;
        let PlanSizes {
            variables,
            constants,
            ids,
        } = steps.sizes();
        if constants != cx.constants.len() || ids != cx.ids {
            return Err(mismatch("steps of another query"));
        }
        self.check_columns(variables, own_columns, &needed)?;
        let lists_ahead = lists_ahead(&steps, self.head.rows_before);
        Ok(ForkedChain {
            steps: Arc::new(Steps::Decoded { steps, _held: held }),
            needed,
            shape: Shape {
                width: self.head.width as usize,
                counted: self.head.counted,
                origin: self.head.origin.map(Var),
            },
            variables,
            hidden: self.head.hidden,
            rows_before: self.head.rows_before,
            lists_ahead,
            stack,
            cx: Arc::clone(cx),
            encoded: Encoded::default(),
        })
    }

    /// Looks whether its tables have a column for each variable, and for each step that needs one for
    /// itself.
    fn check_columns(
        &self,
        variables: usize,
        own_columns: usize,
        needed: &VarSet,
    ) -> Result<(), ExecError> {
        let (width, hidden) = (self.head.width, usize::from(self.head.hidden));
        let most_words = width.div_ceil(u64::BITS) as usize;
        let is_free = |origin: u16| {
            let origin = usize::from(origin);
            hidden + own_columns <= origin && origin < width as usize
        };
        if width >= MOST_COLUMNS {
            Err(mismatch("for more columns than any table has"))
        } else if hidden < variables {
            Err(mismatch("a column for itself that is a variable's"))
        } else if hidden + own_columns > width as usize {
            Err(mismatch("for too few columns"))
        } else if !self.head.origin.is_none_or(is_free) {
            Err(mismatch("with rows of others in a column that is not free"))
        } else if needed.words().len() > most_words
            || needed.iter().any(|var| u32::from(var.0) >= width)
        {
            Err(mismatch("for variables that its tables have not"))
        } else {
            Ok(())
        }
    }
}

fn mismatch(what: &'static str) -> ExecError {
    SubQueryWireError::Mismatch { what }.into()
}

impl Drop for Arrived {
    fn drop(&mut self) {
        if !self.has_run {
            self.refuse(Some(ExecError::Panicked));
        }
    }
}
