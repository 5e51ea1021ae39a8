//! What does a node do for the sub-queries that go as messages?
//!
//! A [`ForkNode`] is one node's part. Who carries messages between nodes has it write the sub-queries of
//! its queries ([`ForkNode::encode`]), hands it what arrives ([`ForkNode::receive`]), and sends what it
//! gives to [`Messages`]. A sub-query that arrives is run with what the node knows of its query
//! ([`Arrived::run`]): all that are of one query share its limits and its terms there.
//!
//! From one node to another, messages arrive in the order in which they were sent, each once; or the
//! other one is [lost](ForkNode::lost).

use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

use jindou_model::NodeId;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::arrived::Arrived;
use super::inbox::Inbox;
use super::outbox::Window;
use super::replies::Replies as _;
use super::wire::{self, Failure, Message, SubQueryHead, SubQueryWireError};
use super::{SubQuery, departing};
use crate::ExecError;
use crate::context::SharedContext;

/// Queries of other nodes that are known to have ended.
const REMEMBERED_ENDS: usize = 1024;

macro_rules! number_at_node {
    ($(#[$attribute:meta] $name:ident)*) => {$(
        #[$attribute]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub struct $name {
            node: u32,
            number: u64,
        }

        impl $name {
            /// The node that numbered it.
            #[must_use]
            pub fn node(self) -> NodeId {
                NodeId(self.node)
            }
        }
    )*};
}

number_at_node! {
    /// A query whose sub-queries go as messages, by its number at the node that it came to.
    QueryId
    /// A chain of steps that has sub-queries, by its number at the node of its reader.
    ChainId
    /// A sub-query, by its number at the node at which it set out.
    SubQueryId
}

impl SubQueryId {
    /// A place in the sequences of its query that no other node has: see
    /// [`sequence_place`](crate::expr::sequence_place).
    pub(super) fn place(self) -> u64 {
        crate::expr::sequence_place(self.node.into(), self.number)
    }
}

/// Carries messages from a node to others, in the order in which it gets them.
pub trait Messages: Send + Sync {
    /// Has a message go to a node. Waits for nothing that a message would bring.
    fn send(&self, to: NodeId, message: Vec<u8>);

    /// True if there is a way to a node, which need not have been there before: of one that breaks, both ends hear.
    fn reaches(&self, node: NodeId) -> bool;
}

/// What messages of sub-queries may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageLimits {
    /// Bytes of one.
    pub message_bytes: usize,
    /// Tables that may be on the way from one node to the reader of a chain.
    pub waiting_tables: usize,
}

impl Default for MessageLimits {
    fn default() -> Self {
        Self {
            message_bytes: 64 << 20,
            waiting_tables: 16,
        }
    }
}

/// What goes with the sub-queries of one query, where these go as messages.
#[derive(Default)]
pub(crate) struct QueryMessages {
    part: OnceLock<QueryPart>,
    /// It is another node's query.
    _arrived: Option<Registered>,
}

/// What all sub-queries of a query take along.
#[derive(Clone)]
pub(super) struct QueryPart {
    pub(super) id: QueryId,
    pub(super) bytes: Arc<[u8]>,
}

impl QueryMessages {
    /// Of a query of another node, which came with this.
    pub(super) fn of_arrived(part: QueryPart, registered: Registered) -> Self {
        Self {
            part: OnceLock::from(part),
            _arrived: Some(registered),
        }
    }

    /// The query, once a sub-query of it went as a message.
    pub(crate) fn id(&self) -> Option<QueryId> {
        self.part.get().map(|part| part.id)
    }

    pub(super) fn part(&self) -> Option<&QueryPart> {
        self.part.get()
    }

    /// Only the first call counts.
    pub(super) fn set_part(&self, part: QueryPart) -> &QueryPart {
        self.part.get_or_init(|| part)
    }
}

/// A query of another node that is known here until this is dropped.
pub(super) struct Registered {
    pub(super) node: Arc<ForkNode>,
    pub(super) query: QueryId,
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut queries = self.node.queries();
        if let Entry::Occupied(known) = queries.known.entry(self.query)
            && known.get().strong_count() == 0
        {
            known.remove();
        }
    }
}

/// One node's part in the sub-queries that go as messages.
pub struct ForkNode {
    here: NodeId,
    nodes: u32,
    messages: Arc<dyn Messages>,
    limits: MessageLimits,
    /// The next number of a query, chain or sub-query.
    next: AtomicU64,
    /// Readers of chains that were forked here, by number.
    chains: Mutex<FxHashMap<u64, Weak<Inbox>>>,
    /// Other nodes' queries.
    queries: Mutex<Queries>,
    /// On the way to the readers of other nodes.
    windows: Mutex<FxHashMap<ChainId, Arc<Window>>>,
}

/// Queries of other nodes.
#[derive(Default)]
pub(super) struct Queries {
    pub(super) known: FxHashMap<QueryId, Weak<SharedContext>>,
    /// Those that ended last, for sub-queries that come late.
    pub(super) ended: VecDeque<QueryId>,
}

impl Queries {
    /// It ends now, whatever of it comes later.
    fn end(&mut self, query: QueryId) -> Option<Arc<SharedContext>> {
        if self.ended.len() == REMEMBERED_ENDS {
            self.ended.pop_front();
        }
        self.ended.push_back(query);
        self.known.get(&query).and_then(Weak::upgrade)
    }
}

impl ForkNode {
    /// The part of node `here` of so many nodes, whose messages go by `messages`. Its queries, chains and
    /// sub-queries are numbered from `first` on: a node that begins anew must not give a number twice.
    #[must_use]
    pub fn new(
        here: NodeId,
        nodes: u32,
        first: u64,
        messages: Arc<dyn Messages>,
        limits: MessageLimits,
    ) -> Arc<Self> {
        Arc::new(Self {
            here,
            nodes,
            messages,
            limits,
            next: AtomicU64::new(first),
            chains: Mutex::default(),
            queries: Mutex::default(),
            windows: Mutex::default(),
        })
    }

    /// This node.
    #[must_use]
    pub fn here(&self) -> NodeId {
        self.here
    }

    pub(super) fn limits(&self) -> &MessageLimits {
        &self.limits
    }

    /// A sub-query of a query as a message, to be sent to the node that it is for: what it finds comes
    /// back by messages. `None` if that cannot be; then its reader knows why.
    #[must_use]
    pub fn encode(self: &Arc<Self>, sub_query: SubQuery) -> Option<Vec<u8>> {
        departing::encode(self, sub_query)
    }

    /// Takes a message of another node; gives a sub-query that came with it.
    ///
    /// # Errors
    /// If it is no message: who sends such does not speak as this node does.
    pub fn receive(
        self: &Arc<Self>,
        from: NodeId,
        mut bytes: Vec<u8>,
    ) -> Result<Option<Arrived>, SubQueryWireError> {
        let Some(head) = self.take(from, &mut bytes)? else {
            return Ok(None);
        };
        // While nodes meet, one may be known to another that the reader is not: it could never reply.
        let (chain, reader) = (head.chain, head.chain.node());
        if reader != self.here && !self.messages.reaches(reader) {
            let failure = Failure::of(ExecError::NodeLost { node: self.here });
            self.send(from, &Message::Failed { chain, failure }, &[]);
            return Ok(None);
        }
        Ok(Some(Arrived::new(self, head, bytes)))
    }

    /// Takes a message; gives what it says of the sub-query that it is.
    fn take(
        &self,
        from: NodeId,
        bytes: &mut Vec<u8>,
    ) -> Result<Option<SubQueryHead>, SubQueryWireError> {
        let (message, rest) = wire::read(bytes, &self.limits)?;
        match message {
            Message::SubQuery(head) => return Ok(Some(head)),
            Message::Rows { chain } => {
                let inbox = self.inbox(chain);
                if !inbox.is_some_and(|inbox| inbox.arrive(from, std::mem::take(bytes))) {
                    self.send(from, &Message::Closed { chain }, &[]);
                }
                return Ok(None);
            }
            // Of one that could not say so to the reader itself.
            Message::Failed { chain, failure } if chain.node() != self.here => {
                self.send(chain.node(), &Message::Failed { chain, failure }, &[]);
            }
            Message::Failed { chain, failure } => {
                if let Some(inbox) = self.inbox(chain)
                    && let Some(query) = inbox.query()
                {
                    let error = failure.into_error(from, query);
                    inbox.fail(error);
                }
            }
            Message::Ended {
                chain,
                id,
                had,
                work,
            } => {
                if let Some(inbox) = self.inbox(chain) {
                    inbox.ended_elsewhere(id, &had, &work);
                }
            }
            Message::Credit {
                chain,
                tables,
                ended,
            } => {
                if let Some(window) = self.window(chain) {
                    window.credit(tables as usize, ended as usize);
                    self.forget_window(chain);
                }
            }
            Message::Closed { chain } => {
                if let Some(window) = self.window(chain) {
                    window.close();
                    self.forget_window(chain);
                }
            }
            Message::Cancelled { query } => self.end_query(query),
        }
        wire::nothing_more(rest)?;
        Ok(None)
    }

    /// A node is lost to this one: queries that had sub-queries set out from here end, as one of these may be
    /// there, and the readers of other nodes' queries are told, as only this node knows of its link with the
    /// lost one; and what is here of the lost node's queries ends.
    pub fn lost(&self, node: NodeId) {
        let error = || ExecError::NodeLost { node };
        let chains: Vec<_> = self.chains().values().filter_map(Weak::upgrade).collect();
        for chain in chains {
            chain.lost(error);
        }
        let of_node = |query: &QueryId| query.node() == node;
        let queries: Vec<_> = self.queries().known.keys().copied().collect();
        queries
            .into_iter()
            .filter(of_node)
            .for_each(|query| self.end_query(query));
        let mut of_others = Vec::new();
        self.windows().retain(|chain, window| {
            if chain.node() == node {
                window.close();
            } else if window.has_under_way() {
                of_others.push(*chain);
            }
            !window.is_idle()
        });
        for chain in of_others {
            let failure = Failure::of(error());
            self.send(chain.node(), &Message::Failed { chain, failure }, &[]);
        }
    }

    /// Ends what is here of another node's query.
    pub fn end_query(&self, query: QueryId) {
        let shared = self.queries().end(query);
        if let Some(shared) = shared {
            shared.cancel();
        }
        self.windows().retain(|_, window| {
            if window.query() == query {
                window.close_with_query();
            }
            !window.is_idle()
        });
    }

    /// True if it is known that the query of another node has ended.
    pub(super) fn has_ended(&self, query: QueryId) -> bool {
        self.queries().ended.contains(&query)
    }

    /// Queries of other nodes of which something is here, and chains of theirs to whose readers tables are
    /// on the way.
    #[must_use]
    pub fn held(&self) -> (usize, usize) {
        let queries = self.queries();
        let alive = |query: &&Weak<SharedContext>| query.strong_count() > 0;
        let known = queries.known.values().filter(alive).count();
        drop(queries);
        (known, self.windows().len())
    }

    fn chains(&self) -> MutexGuard<'_, FxHashMap<u64, Weak<Inbox>>> {
        self.chains
            .lock()
            .expect("no thread panics while it holds the chains")
    }

    pub(super) fn queries(&self) -> MutexGuard<'_, Queries> {
        self.queries
            .lock()
            .expect("no thread panics while it holds the queries")
    }

    fn windows(&self) -> MutexGuard<'_, FxHashMap<ChainId, Arc<Window>>> {
        self.windows
            .lock()
            .expect("no thread panics while it holds the windows")
    }

    fn number(&self) -> (u32, u64) {
        (self.here.0, self.next.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) fn new_query(&self) -> QueryId {
        let (node, number) = self.number();
        QueryId { node, number }
    }

    pub(super) fn new_sub_query(&self) -> SubQueryId {
        let (node, number) = self.number();
        SubQueryId { node, number }
    }

    /// From now on messages of this chain come to its reader.
    pub(super) fn await_replies(&self, inbox: &Arc<Inbox>) -> ChainId {
        let (node, number) = self.number();
        self.chains().insert(number, Arc::downgrade(inbox));
        ChainId { node, number }
    }

    fn inbox(&self, chain: ChainId) -> Option<Arc<Inbox>> {
        let is_here = chain.node() == self.here;
        let known = self.chains().get(&chain.number).cloned();
        known.filter(|_| is_here)?.upgrade()
    }

    /// Nobody reads the replies to a chain any more; a whole query has ended with it, if one is given. What
    /// others have of it is to end, unless it `is_whole`.
    pub(super) fn close(&self, chain: ChainId, query: Option<QueryId>, is_whole: bool) {
        self.chains().remove(&chain.number);
        if is_whole {
            return;
        }
        let message = match query {
            Some(query) => Message::Cancelled { query },
            None => Message::Closed { chain },
        };
        // This one, too: rows may have come back to it.
        for node in (0..self.nodes).map(NodeId) {
            self.send(node, &message, &[]);
        }
    }

    /// Tells a node that the reader of a chain took tables of it, and that sub-queries ended that set out
    /// there.
    pub(super) fn credit(&self, to: NodeId, chain: ChainId, tables: u32, ended: u32) {
        let message = Message::Credit {
            chain,
            tables,
            ended,
        };
        self.send(to, &message, &[]);
    }

    fn window(&self, chain: ChainId) -> Option<Arc<Window>> {
        self.windows().get(&chain).cloned()
    }

    /// The window to the reader of a chain, which a sub-query joins.
    pub(super) fn join_window(&self, chain: ChainId, query: QueryId) -> Arc<Window> {
        let mut windows = self.windows();
        let new = || Arc::new(Window::new(query, self.limits.waiting_tables));
        let window = windows.entry(chain).or_insert_with(new);
        window.join();
        Arc::clone(window)
    }

    /// Forgets a window for which nothing is left to do.
    pub(super) fn forget_window(&self, chain: ChainId) {
        if let Entry::Occupied(window) = self.windows().entry(chain)
            && window.get().is_idle()
        {
            window.remove();
        }
    }

    /// Sends a message that is not longer than any may be, or else that the chain failed.
    pub(super) fn send(&self, to: NodeId, message: &Message, parts: &[&[u8]]) {
        match wire::write(message, parts, &self.limits) {
            Ok(bytes) => self.send_written(to, bytes),
            Err(error) => {
                if let Some(failed) = message.failed_instead(error) {
                    self.send_written(to, failed);
                }
            }
        }
    }

    pub(super) fn send_written(&self, to: NodeId, mut message: Vec<u8>) {
        if to.0 >= self.nodes {
            // A message named it that is wrong in other ways, too.
            return;
        }
        if to != self.here {
            self.messages.send(to, message);
            return;
        }
        let taken = self.take(to, &mut message);
        let taken = taken.expect("a node reads what it writes");
        assert!(
            taken.is_none(),
            "sub-queries go by those who carry messages"
        );
    }
}
