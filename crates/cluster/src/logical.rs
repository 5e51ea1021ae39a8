//! Nodes of a cluster that share a process: each has shards and threads of its own, and hands sub-queries
//! to the others, as they are or [as messages](ForkMessages), as between processes.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use jindou_exec::{
    Account, CancellationToken, ForkNode, ForkSettings, Forks, GraphSource, Limits, MemoryPool,
    MessageCost, MessageLimits, Messages, QueryClass, Resources, SpillLimits, SubQuery, TermSource,
    Terms,
};
use jindou_model::{NodeId, SnapshotNumber, TermId};
use jindou_partition::ShardMap;

use crate::message_cost;
use crate::rows::is_of_graph;
use crate::workers::{ClassWorkers, ThreadStarts};

/// Nodes in one process.
pub struct LogicalNodes {
    map: ShardMap,
    settings: ForkSettings,
    message_cost: MessageCost,
    /// By node.
    workers: Box<[ClassWorkers]>,
    by_messages: Option<ByMessages>,
}

/// The graph as each node sees it.
pub type NodeGraphs = Arc<[Arc<dyn GraphSource>]>;
/// Its terms as each node reads them.
pub type NodeTerms = Arc<[Arc<dyn TermSource>]>;

/// What a node has for sub-queries of others that come as messages.
#[derive(Clone, Debug)]
pub struct ForkMessages {
    /// What the messages may take.
    pub limits: MessageLimits,
    /// Bytes that the operators of one query may hold together at a node that is not its own.
    pub memory_bytes: u64,
    /// Where they put what does not fit.
    pub spill: SpillLimits,
    /// Bytes that all queries may hold together.
    pub memory_pool: Option<Arc<MemoryPool>>,
}

/// Nodes whose sub-queries go as messages.
struct ByMessages {
    settings: ForkMessages,
    /// By node.
    nodes: Box<[Arc<ForkNode>]>,
}

/// Has messages received where they are sent: in a process there is no way between nodes.
struct AtOnce {
    from: NodeId,
    nodes: Arc<OnceLock<Box<[Weak<ForkNode>]>>>,
}

impl Messages for AtOnce {
    fn send(&self, to: NodeId, message: Vec<u8>) {
        let nodes = self
            .nodes
            .get()
            .expect("nodes send nothing while they begin");
        if let Some(node) = nodes[to.0 as usize].upgrade() {
            let received = node.receive(self.from, message);
            let sub_query = received.expect("a node of this process reads what another one writes");
            assert!(sub_query.is_none(), "sub-queries go another way");
        }
    }

    fn reaches(&self, _: NodeId) -> bool {
        true
    }
}

impl ByMessages {
    fn new(settings: ForkMessages, count: usize) -> Self {
        let way: Arc<OnceLock<Box<[Weak<ForkNode>]>>> = Arc::default();
        let node = |number| {
            let (from, nodes) = (NodeId(number), Arc::clone(&way));
            let messages = Arc::new(AtOnce { from, nodes });
            ForkNode::new(from, count as u32, 0, messages, settings.limits)
        };
        let nodes: Box<[_]> = (0..count as u32).map(node).collect();
        let weak = nodes.iter().map(Arc::downgrade).collect();
        assert!(way.set(weak).is_ok(), "it is set once");
        Self { settings, nodes }
    }
}

impl ForkMessages {
    /// What a node has for a sub-query of another one, with the graph, its terms and the nodes as it sees
    /// them.
    pub(crate) fn resources(
        &self,
        source: Arc<dyn GraphSource>,
        terms: &Arc<dyn TermSource>,
        forks: Arc<dyn Forks>,
    ) -> Resources {
        let account = Arc::new(Account::default());
        if let Some(pool) = &self.memory_pool {
            account.join(pool);
        }
        Resources {
            source,
            terms: Terms::new(Arc::clone(terms)),
            forks,
            limits: Limits {
                cancellation: CancellationToken::new(),
                started: Instant::now(),
                timeout: None,
                memory_bytes: self.memory_bytes,
                spill: self.spill.clone(),
                account,
            },
            transport: None,
        }
    }
}

impl LogicalNodes {
    /// The nodes that hold the shards of `map`. Each node has `threads` threads for the sub-queries of each class; each
    /// thread begins with the call that `starts` has for its class.
    ///
    /// # Panics
    /// If the operating system refuses a thread.
    #[must_use]
    pub fn new(
        map: ShardMap,
        settings: ForkSettings,
        threads: usize,
        starts: &ThreadStarts,
    ) -> Self {
        let workers = map.nodes();
        let workers = workers.map(|_| ClassWorkers::new(threads, starts));
        Self {
            workers: workers.collect(),
            message_cost: message_cost::of_mapped(map.nodes().len()),
            map,
            settings,
            by_messages: None,
        }
    }

    /// Sets what a message takes.
    #[must_use]
    pub fn with_message_cost(self, message_cost: MessageCost) -> Self {
        Self {
            message_cost,
            ..self
        }
    }

    /// These nodes, with sub-queries and what they find as messages between them: each knows of a query of
    /// another one what these say, and nothing more.
    #[must_use]
    pub fn with_messages(mut self, settings: ForkMessages) -> Self {
        self.by_messages = Some(ByMessages::new(settings, self.workers.len()));
        self
    }

    /// Which node holds each shard.
    #[must_use]
    pub fn map(&self) -> &ShardMap {
        &self.map
    }

    /// Queries of other nodes of which a node has something, and chains of theirs to whose readers it has
    /// tables on the way: by node, where sub-queries go as messages.
    #[must_use]
    pub fn held(&self) -> Vec<(usize, usize)> {
        let nodes = self.by_messages.iter().flat_map(|by| &by.nodes);
        nodes.map(|node| node.held()).collect()
    }

    /// The nodes as a query of a snapshot meets them at one of them. The ids in its rows are those of `terms`.
    ///
    /// # Panics
    /// If there are not a graph and terms for each node.
    #[must_use]
    pub fn at(
        self: &Arc<Self>,
        here: NodeId,
        (graphs, snapshot): (&NodeGraphs, SnapshotNumber),
        terms: &NodeTerms,
    ) -> Arc<dyn Forks> {
        assert_eq!(terms.len(), self.workers.len(), "each node has terms");
        assert_eq!(graphs.len(), self.workers.len(), "each node has a graph");
        Arc::new(AtNode {
            nodes: Arc::clone(self),
            graphs: Arc::clone(graphs),
            terms: Arc::clone(terms),
            snapshot,
            here,
        })
    }
}

/// The nodes, as one of them meets them.
#[derive(Clone)]
struct AtNode {
    nodes: Arc<LogicalNodes>,
    graphs: NodeGraphs,
    terms: NodeTerms,
    snapshot: SnapshotNumber,
    here: NodeId,
}

impl Forks for AtNode {
    fn here(&self) -> NodeId {
        self.here
    }

    fn nodes(&self) -> u32 {
        self.graphs.len() as u32
    }

    fn snapshot(&self) -> SnapshotNumber {
        self.snapshot
    }

    fn node_of(&self, key: TermId) -> NodeId {
        match is_of_graph(key) {
            true => self.nodes.map.node_of(key),
            false => self.here,
        }
    }

    fn settings(&self) -> ForkSettings {
        self.nodes.settings
    }

    fn message_cost(&self) -> MessageCost {
        self.nodes.message_cost
    }

    fn send(&self, to: NodeId, sub_query: SubQuery) {
        let there = Self {
            here: to,
            ..self.clone()
        };
        let (workers, class) = (&self.nodes.workers[to.0 as usize], sub_query.class());
        let Some(by) = &self.nodes.by_messages else {
            let graph = Arc::clone(&self.graphs[to.0 as usize]);
            workers.spawn(class, move || sub_query.run(graph, Arc::new(there)));
            return;
        };
        let from = self.here;
        if let Some(message) = by.nodes[from.0 as usize].encode(sub_query) {
            workers.spawn(class, move || there.run_message(from, message));
        }
    }

    fn resume(&self, class: QueryClass, job: Box<dyn FnOnce() + Send>) {
        self.nodes.workers[self.here.0 as usize].spawn(class, job);
    }
}

impl AtNode {
    /// Answers a sub-query of another node that came as a message.
    fn run_message(&self, from: NodeId, message: Vec<u8>) {
        let by = self.nodes.by_messages.as_ref();
        let by = by.expect("it came as a message");
        let received = by.nodes[self.here.0 as usize].receive(from, message);
        let sub_query = received.expect("a node of this process reads what another one writes");
        let sub_query = sub_query.expect("it is a sub-query");
        let source = Arc::clone(&self.graphs[self.here.0 as usize]);
        let terms = &self.terms[self.here.0 as usize];
        let forks = Arc::new(self.clone());
        sub_query.run(by.settings.resources(source, terms, forks));
    }
}
