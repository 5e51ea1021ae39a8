//! How do logical nodes reach the shards of each other?
//!
//! Each offers the lists of its shards for one-sided reads, and answers by messages what these do not
//! say: between each two nodes there is a link in either direction, which outlives snapshots.

use std::sync::Arc;

use jindou_cluster::{
    ForkMessages, Link, LinkError, LinkOptions, LogicalNodes, OneSided, ReadCounts, RemoteReads,
    ServedShards, ShardServer,
};
use jindou_exec::{Catalogue, GraphSource};
use jindou_fabric::local::LocalNetwork;
use jindou_fabric::remote::Fabric;
use jindou_model::{NodeId, ShardId};
use jindou_partition::{MapError, ShardMap};

use super::Part;
use crate::EngineError;
use crate::config::Config;

/// The shards as one node sees them, by number; none of one that is lost.
pub(super) type Rows = Vec<Option<Arc<dyn GraphSource>>>;

/// Logical nodes, and how each reads and asks the others.
pub(super) struct Nodes {
    logical: Arc<LogicalNodes>,
    /// By number.
    nodes: Vec<Node>,
}

struct Node {
    fabric: Arc<dyn Fabric>,
    counts: Arc<ReadCounts>,
    server: Arc<ShardServer>,
    /// To each node that it asks; none to itself.
    links: Vec<Option<Arc<Link>>>,
}

/// Why there are no nodes.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum NodesError {
    #[error(transparent)]
    Map(#[from] MapError),
    #[error(transparent)]
    Link(#[from] LinkError),
}

impl From<NodesError> for EngineError {
    fn from(error: NodesError) -> Self {
        match error {
            NodesError::Map(error) => error.into(),
            NodesError::Link(error) => error.into(),
        }
    }
}

impl Nodes {
    pub(super) fn new(
        config: &Config,
        start: &Arc<dyn Fn() + Send + Sync>,
        options: &LinkOptions,
    ) -> Result<Self, NodesError> {
        let map = ShardMap::dealt(config.shards, config.nodes)?;
        let threads = config.threads.div_ceil(config.nodes as usize);
        let network = LocalNetwork::new(config.nodes);
        let node = |number| Node {
            fabric: network.fabric(number),
            counts: Arc::default(),
            server: ShardServer::new(config.shards),
            links: Vec::new(),
        };
        let mut nodes: Vec<Node> = (0..config.nodes).map(node).collect();
        for here in 0..nodes.len() {
            nodes[here].links = links(&nodes, here, options)?;
        }
        let logical = LogicalNodes::new(map, config.fork_policy, threads, start);
        let logical = match config.fork_messages {
            Some(limits) => logical.with_messages(ForkMessages {
                limits,
                memory_bytes: config.query_memory_bytes,
                spill: config.spill.clone(),
                memory_pool: config.memory_pool.clone(),
            }),
            None => logical,
        };
        Ok(Self {
            nodes,
            logical: Arc::new(logical),
        })
    }

    pub(super) fn logical(&self) -> &Arc<LogicalNodes> {
        &self.logical
    }

    /// A node's access to the memory of the others.
    pub(super) fn fabric(&self, node: NodeId) -> &dyn Fabric {
        &*self.nodes[node.0 as usize].fabric
    }

    /// What all nodes have read of each other, and asked.
    pub(super) fn remote_reads(&self) -> RemoteReads {
        let sums = self.nodes.iter().map(|node| node.counts.sum());
        sums.fold(RemoteReads::default(), RemoteReads::and)
    }

    /// The shards as each node sees them: its own, and those of others by reads and messages.
    pub(super) fn rows<C: Catalogue + 'static>(
        &self,
        parts: &[Part],
        graph: &Arc<C>,
    ) -> Result<Vec<Rows>, EngineError> {
        let served: Vec<Arc<ServedShards>> =
            self.numbers().map(|node| self.serve(node, parts)).collect();
        let seen_by = |here| {
            let shards = self.logical.map().shards().all().zip(parts);
            let seen = shards.map(|of_shard| self.seen(here, of_shard, &served, graph));
            seen.collect()
        };
        self.numbers().map(seen_by).collect()
    }

    fn numbers(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// Has a node answer for the shards that it holds.
    fn serve(&self, node: NodeId, parts: &[Part]) -> Arc<ServedShards> {
        let map = self.logical.map();
        let own = map.shards().all().zip(parts).map(|(shard, part)| {
            let rows = part.rows.as_ref();
            rows.filter(|_| map.holder(shard) == node).cloned()
        });
        self.nodes[node.0 as usize].server.serve(own.collect())
    }

    /// A shard as a node sees it; none of one that is lost.
    fn seen<C: Catalogue + 'static>(
        &self,
        here: NodeId,
        (shard, part): (ShardId, &Part),
        served: &[Arc<ServedShards>],
        graph: &Arc<C>,
    ) -> Result<Option<Arc<dyn GraphSource>>, EngineError> {
        let Some(rows) = &part.rows else {
            return Ok(None);
        };
        let (node, holder) = (
            &self.nodes[here.0 as usize],
            self.logical.map().holder(shard).0 as usize,
        );
        let (Some(link), Some(offered)) = (&node.links[holder], &part.offered) else {
            return Ok(Some(Arc::clone(rows)));
        };
        let owner = link.shard(shard, &served[holder], Arc::clone(graph) as _);
        let published = (shard, offered.publication());
        let kept = Arc::clone(offered) as _;
        let read = OneSided::attach(published, &node.fabric, Arc::new(owner), &node.counts, kept)?;
        Ok(Some(Arc::new(read)))
    }
}

/// The links of a node to each other one.
fn links(
    nodes: &[Node],
    here: usize,
    options: &LinkOptions,
) -> Result<Vec<Option<Arc<Link>>>, LinkError> {
    let node = &nodes[here];
    let link = |(there, other): (usize, &Node)| {
        if there == here {
            return Ok(None);
        }
        let (asking, answering) = (&node.fabric, &other.fabric);
        let link = Link::between(asking, answering, &other.server, &node.counts, options)?;
        Ok(Some(Arc::new(link)))
    };
    nodes.iter().enumerate().map(link).collect()
}
