//! How do logical nodes reach the shards of each other?
//!
//! Each offers the lists of its shards for one-sided reads, and answers by messages what these do not
//! say: between each two nodes there is a link in either direction, which outlives snapshots.

use std::sync::Arc;

use jindou_cluster::{
    DealtTerms, ForkMessages, Link, LinkError, LinkOptions, LogicalNodes, MESSAGE_COST_BY_TCP,
    NodeTerms, Offered, OneSided, ReadCounts, RemoteReads, ServedShards, ShardServer, Sharded,
};
use jindou_exec::{Catalogue, GraphSource, MemoryPool, TermPart, TermSource};
use jindou_fabric::FabricError;
use jindou_fabric::local::LocalNetwork;
#[cfg(target_os = "linux")]
use jindou_fabric::process::ProcessFabric;
use jindou_fabric::remote::Fabric;
use jindou_model::{NodeId, ShardId};
use jindou_partition::{MapError, ShardMap};

use crate::EngineError;
use crate::config::{Config, NodeFabric};

/// The shards as one node sees them, by number; none of one that is lost.
pub(super) type Rows = Vec<Option<Arc<dyn GraphSource>>>;

/// The terms of a snapshot that each node has.
pub(super) struct TermParts<'a> {
    /// By node.
    pub(super) parts: Vec<Arc<dyn TermPart>>,
    /// Bytes that each remembers of those of others.
    pub(super) met_bytes: usize,
    pub(super) pool: Option<&'a Arc<MemoryPool>>,
}

/// Of which shards a node reads the lists where they lie; those of others it asks for.
#[derive(Clone, Copy)]
pub(super) struct ReadShards {
    pub(super) own: bool,
    pub(super) others: bool,
}

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
    Fabric(#[from] FabricError),
    #[error(transparent)]
    Link(#[from] LinkError),
}

impl From<NodesError> for EngineError {
    fn from(error: NodesError) -> Self {
        match error {
            NodesError::Map(error) => error.into(),
            NodesError::Fabric(error) => error.into(),
            NodesError::Link(error) => error.into(),
        }
    }
}

impl Nodes {
    pub(super) fn new(config: &Config, options: &LinkOptions) -> Result<Self, NodesError> {
        let map = ShardMap::dealt(config.shards, config.nodes)?;
        let threads = config.threads.div_ceil(config.nodes as usize);
        let node = |fabric| Node {
            fabric,
            counts: Arc::default(),
            server: ShardServer::new(config.shards),
            links: Vec::new(),
        };
        let fabrics = fabrics(config.nodes, config.node_fabric)?;
        let mut nodes: Vec<Node> = fabrics.into_iter().map(node).collect();
        for here in 0..nodes.len() {
            nodes[here].links = links(&nodes, here, options)?;
        }
        let logical = LogicalNodes::new(
            map,
            config.fork_settings(),
            threads,
            &config.thread_starts(),
        );
        let logical = match config.node_fabric {
            NodeFabric::Local | NodeFabric::SharedMemory => logical,
            NodeFabric::Tcp => logical.with_message_cost(MESSAGE_COST_BY_TCP),
        };
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

    /// The fabric of the node that holds a shard.
    pub(super) fn of_shard(&self, shard: ShardId) -> &dyn Fabric {
        let holder = self.logical.map().holder(shard);
        &*self.nodes[holder.0 as usize].fabric
    }

    /// What all nodes have read of each other, and asked.
    pub(super) fn remote_reads(&self) -> RemoteReads {
        let sums = self.nodes.iter().map(|node| node.counts.sum());
        sums.fold(RemoteReads::default(), RemoteReads::and)
    }

    /// What reads the lists of shards at each node, by node, as far as they are to be `read`: they lie where they
    /// are `offered`, by shard.
    ///
    /// # Errors
    /// [`EngineError::Fabric`] where a node cannot open the memory of another one.
    pub(super) fn readers(
        &self,
        offered: &[Arc<Offered>],
        read: ReadShards,
    ) -> Result<Vec<Arc<OneSided>>, EngineError> {
        let map = self.logical.map();
        let reader = |here: NodeId| {
            let node = &self.nodes[here.0 as usize];
            let mut reader = OneSided::new(map.shards(), &node.fabric, &node.counts);
            for (shard, offered) in map.shards().all().zip(offered) {
                let holder = map.holder(shard);
                let is_read = match holder == here {
                    true => read.own,
                    false => read.others,
                };
                if is_read {
                    let kept = Arc::clone(offered) as _;
                    reader.attach((shard, holder), offered.publication(), kept)?;
                }
            }
            Ok(Arc::new(reader))
        };
        self.numbers().map(reader).collect()
    }

    /// The shards of a snapshot as each node sees them: its own `rows`, and those of others as these answer
    /// for them. Of `terms` each node has what is given for it, and the others' as these answer for them; without
    /// them, it asks nobody.
    pub(super) fn seen<C: Catalogue + 'static>(
        &self,
        rows: &Rows,
        graph: &Arc<C>,
        sharded: &dyn Fn(Rows) -> Sharded,
        terms: Option<&TermParts<'_>>,
    ) -> (Vec<Rows>, Option<NodeTerms>) {
        let map = self.logical.map();
        let own = |node: NodeId| {
            let own = map.shards().all().zip(rows).map(|(shard, rows)| {
                let rows = rows.as_ref();
                rows.filter(|_| map.holder(shard) == node).cloned()
            });
            let server = &self.nodes[node.0 as usize].server;
            match terms {
                None => server.serve(sharded(own.collect())),
                Some(terms) => {
                    let part = Arc::clone(&terms.parts[node.0 as usize]);
                    server.serve_with_terms(sharded(own.collect()), part)
                }
            }
        };
        let served: Vec<Arc<ServedShards>> = self.numbers().map(own).collect();
        let seen = |here: NodeId| {
            let links = &self.nodes[here.0 as usize].links;
            let mut seen = rows.clone();
            for (holder, link) in self.numbers().zip(links) {
                let Some(link) = link else { continue };
                let is_there = |shard: &ShardId| {
                    map.holder(*shard) == holder && rows[shard.0 as usize].is_some()
                };
                let all: Vec<ShardId> = map.shards().all().filter(is_there).collect();
                if all.is_empty() {
                    continue;
                }
                let served = &served[holder.0 as usize];
                let (asked, kept) = ((map.shards(), all.clone(), served.id()), Arc::clone(served));
                let asked = link.shards(asked, Arc::clone(graph) as _, kept as _);
                let asked = Arc::new(asked) as Arc<dyn GraphSource>;
                for shard in all {
                    seen[shard.0 as usize] = Some(Arc::clone(&asked));
                }
            }
            seen
        };
        let rows = self.numbers().map(seen).collect();
        let terms = terms.map(|terms| {
            let dealt = |here: NodeId| self.terms_of(here, terms, &served);
            self.numbers().map(dealt).collect()
        });
        (rows, terms)
    }

    /// The terms as a node sees them, which asks the others for those that it lacks.
    fn terms_of(
        &self,
        here: NodeId,
        terms: &TermParts<'_>,
        served: &[Arc<ServedShards>],
    ) -> Arc<dyn TermSource> {
        let links = self.nodes[here.0 as usize].links.iter();
        let others = links.zip(served).map(|(link, served)| {
            let kept = Arc::clone(served) as _;
            Some(link.as_ref()?.terms(served.id(), kept))
        });
        Arc::new(DealtTerms::new(
            (self.logical.map(), here),
            Arc::clone(&terms.parts[here.0 as usize]),
            others.collect(),
            terms.met_bytes,
            terms.pool,
        ))
    }

    fn numbers(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }
}

/// The access of each node to the memory of the others.
fn fabrics(nodes: u32, by: NodeFabric) -> Result<Vec<Arc<dyn Fabric>>, FabricError> {
    match by {
        NodeFabric::Local => {
            let network = LocalNetwork::new(nodes);
            let fabrics = (0..nodes).map(|number| network.fabric(number) as _);
            Ok(fabrics.collect())
        }
        NodeFabric::SharedMemory | NodeFabric::Tcp => {
            process_fabrics(nodes, by == NodeFabric::SharedMemory)
        }
    }
}

#[cfg(target_os = "linux")]
fn process_fabrics(nodes: u32, maps_memory: bool) -> Result<Vec<Arc<dyn Fabric>>, FabricError> {
    let fabrics = ProcessFabric::connected(nodes, maps_memory)?.into_iter();
    Ok(fabrics.map(|fabric| fabric as _).collect())
}

#[cfg(not(target_os = "linux"))]
fn process_fabrics(_: u32, _: bool) -> Result<Vec<Arc<dyn Fabric>>, FabricError> {
    Err(FabricError::Unsupported(
        "reach the memory of processes on this operating system",
    ))
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
