//! Nodes of a cluster that share a process: each has shards and threads of its own, and hands sub-queries
//! to the others.

use std::sync::Arc;

use jindou_exec::{ForkPolicy, Forks, GraphSource, SubQuery, Workers};
use jindou_model::{NodeId, TermId};
use jindou_partition::ShardMap;

/// A thread that sleeps takes some tens of microseconds to wake, a read of this process's memory some
/// tenths of one.
const READS_PER_MESSAGE: u32 = 100;

/// Nodes in one process.
pub struct LogicalNodes {
    map: ShardMap,
    policy: ForkPolicy,
    /// By node.
    workers: Box<[Workers]>,
}

/// The graph as each node sees it.
pub type NodeGraphs = Arc<[Arc<dyn GraphSource>]>;

impl LogicalNodes {
    /// The nodes that hold the shards of `map`, each with so many threads, which call `start` first.
    ///
    /// # Panics
    /// If the operating system refuses a thread.
    #[must_use]
    pub fn new(
        map: ShardMap,
        policy: ForkPolicy,
        threads: usize,
        start: &Arc<dyn Fn() + Send + Sync>,
    ) -> Self {
        let workers = map.nodes();
        let workers = workers.map(|_| Workers::sleeping(threads.max(1), Arc::clone(start)));
        Self {
            workers: workers.collect(),
            map,
            policy,
        }
    }

    /// Which node holds each shard.
    #[must_use]
    pub fn map(&self) -> &ShardMap {
        &self.map
    }

    /// The nodes as a query meets them at one of them.
    ///
    /// # Panics
    /// If there is not a graph for each node.
    #[must_use]
    pub fn at(self: &Arc<Self>, here: NodeId, graphs: &NodeGraphs) -> Arc<dyn Forks> {
        assert_eq!(graphs.len(), self.workers.len(), "each node has a graph");
        Arc::new(AtNode {
            nodes: Arc::clone(self),
            graphs: Arc::clone(graphs),
            here,
        })
    }
}

/// The nodes, as one of them meets them.
struct AtNode {
    nodes: Arc<LogicalNodes>,
    graphs: NodeGraphs,
    here: NodeId,
}

impl Forks for AtNode {
    fn here(&self) -> NodeId {
        self.here
    }

    fn nodes(&self) -> u32 {
        self.graphs.len() as u32
    }

    fn node_of(&self, key: TermId) -> NodeId {
        self.nodes.map.node_of(key)
    }

    fn policy(&self) -> ForkPolicy {
        self.nodes.policy
    }

    fn reads_per_message(&self) -> u32 {
        READS_PER_MESSAGE
    }

    fn send(&self, to: NodeId, sub_query: SubQuery) {
        let graph = Arc::clone(&self.graphs[to.0 as usize]);
        let there = self.nodes.at(to, &self.graphs);
        self.nodes.workers[to.0 as usize].spawn(move || sub_query.run(graph, there));
    }
}
