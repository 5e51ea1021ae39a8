//! The graph that queries ask: the snapshot, or the shards that it is cut into, at one node or several.

mod holders;
#[cfg(target_os = "linux")]
pub(crate) mod member;
mod nodes;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use jindou_cluster::{LinkOptions, NodeGraphs, Offered, RemoteReads, Sharded};
use jindou_exec::{Forks, GraphSource, TermSource};
use jindou_model::{NodeId, ShardId};
use jindou_store::Snapshot;
use parking_lot::Mutex;

pub(crate) use self::holders::Holders;
use self::nodes::{Nodes, NodesError};
use crate::EngineError;
use crate::config::{Between, BetweenShards, Config};
use crate::graph::StoredGraph;

/// What a query asks.
pub(crate) struct Asked {
    /// The whole graph: its terms, and what the planner knows.
    pub(crate) graph: Arc<StoredGraph>,
    /// What its steps ask: the graph, its shards, or what watches these.
    pub(crate) source: Arc<dyn GraphSource>,
    /// How its rows go on at other nodes, if they may.
    pub(crate) forks: Option<Arc<dyn Forks>>,
    /// Who has its shards, for errors.
    pub(crate) holders: Holders,
}

impl Asked {
    /// A graph that is asked in place, by way of `source`.
    pub(crate) fn in_place(graph: Arc<StoredGraph>, source: Arc<dyn GraphSource>) -> Self {
        Self {
            graph,
            source,
            forks: None,
            holders: Holders::default(),
        }
    }
}

/// The shards of the graph that was asked for last, and the nodes that have them.
#[derive(Default)]
pub(crate) struct LastShards {
    last: Mutex<Option<(Arc<StoredGraph>, NodeGraphs)>>,
    nodes: Option<Result<Nodes, NodesError>>,
    /// Queries enter at one node after the other.
    entered: AtomicU32,
    /// The process is a node of a cluster.
    #[cfg(target_os = "linux")]
    membership: std::sync::OnceLock<member::Membership>,
}

/// A shard at one snapshot.
struct Part {
    /// As its node answers for it; none of one that is lost.
    rows: Option<Arc<dyn GraphSource>>,
    /// What other nodes may read of it.
    offered: Option<Arc<Offered>>,
}

impl LastShards {
    /// For a database of these settings.
    pub(crate) fn new(config: &Config, start: &Arc<dyn Fn() + Send + Sync>) -> Self {
        let options = LinkOptions::default();
        Self {
            nodes: (config.nodes > 1).then(|| Nodes::new(config, start, &options)),
            ..Self::default()
        }
    }

    /// What queries of a graph ask, each at the next node.
    ///
    /// # Errors
    /// As [`LastShards::source`].
    pub(crate) fn asked(
        &self,
        graph: Arc<StoredGraph>,
        config: &Config,
    ) -> Result<Asked, EngineError> {
        #[cfg(target_os = "linux")]
        if let Some(membership) = self.membership() {
            let (source, forks) = membership.seen();
            return Ok(Asked {
                graph: Arc::clone(membership.graph()),
                source: before(source, config),
                forks: Some(forks),
                holders: Holders::of(membership.member()),
            });
        }
        let Some(nodes) = &self.nodes else {
            let source = self.source(&graph, config)?;
            return Ok(Asked::in_place(graph, source));
        };
        let nodes = nodes.as_ref().map_err(NodesError::clone)?;
        let graphs = self.graphs(&graph, config)?;
        let number = self.entered.fetch_add(1, Ordering::Relaxed) % config.nodes;
        let terms = Arc::clone(&graph) as Arc<dyn TermSource>;
        Ok(Asked {
            graph,
            source: Arc::clone(&graphs[number as usize]),
            forks: Some(nodes.logical().at(NodeId(number), &graphs, &terms)),
            holders: Holders::default(),
        })
    }

    /// What is asked of a graph from one place, without sub-queries.
    ///
    /// # Errors
    /// [`EngineError::Store`] where the graph cannot be cut into shards, [`EngineError::Nodes`], and
    /// [`EngineError::Fabric`] and [`EngineError::Link`] where nodes cannot read or ask each other.
    pub(crate) fn source(
        &self,
        graph: &Arc<StoredGraph>,
        config: &Config,
    ) -> Result<Arc<dyn GraphSource>, EngineError> {
        #[cfg(target_os = "linux")]
        if let Some(membership) = self.membership() {
            return Ok(before(membership.seen().0, config));
        }
        if config.shards.is_one() {
            return Ok(before(Arc::clone(graph) as _, config));
        }
        Ok(Arc::clone(&self.graphs(graph, config)?[0]))
    }

    /// What nodes hold for queries of others, by node, where sub-queries go as messages: queries, and
    /// chains of theirs to whose readers tables are on the way.
    pub(crate) fn held_for_others(&self) -> Vec<(usize, usize)> {
        #[cfg(target_os = "linux")]
        if let Some(membership) = self.membership() {
            return vec![membership.member().held_for_others()];
        }
        match &self.nodes {
            Some(Ok(nodes)) => nodes.logical().held(),
            _ => Vec::new(),
        }
    }

    /// What nodes have read of each other since they began, all together.
    pub(crate) fn remote_reads(&self) -> RemoteReads {
        #[cfg(target_os = "linux")]
        if let Some(membership) = self.membership() {
            return membership.member().remote_reads();
        }
        match &self.nodes {
            Some(Ok(nodes)) => nodes.remote_reads(),
            _ => RemoteReads::default(),
        }
    }

    /// The process's part in a cluster, if it has one.
    #[cfg(target_os = "linux")]
    pub(crate) fn membership(&self) -> Option<&member::Membership> {
        self.membership.get()
    }

    /// Has queries explored over a cluster from now on.
    ///
    /// # Errors
    /// [`EngineError::Cluster`] if they are already.
    #[cfg(target_os = "linux")]
    pub(crate) fn set_membership(&self, membership: member::Membership) -> Result<(), EngineError> {
        let set = self.membership.set(membership);
        set.map_err(|_| EngineError::Cluster("it is a node already"))
    }

    /// A graph as each node sees it. Whoever comes while it is cut waits for that.
    fn graphs(&self, graph: &Arc<StoredGraph>, config: &Config) -> Result<NodeGraphs, EngineError> {
        let mut last = self.last.lock();
        if let Some((of, graphs)) = &*last
            && Arc::ptr_eq(of, graph)
        {
            return Ok(Arc::clone(graphs));
        }
        let nodes = self.nodes.as_ref().map(|nodes| nodes.as_ref()).transpose();
        let graphs = cut(graph, config, nodes.map_err(NodesError::clone)?)?;
        let graphs = graphs.into_iter();
        let graphs: NodeGraphs = graphs.map(|sharded| before(sharded, config)).collect();
        *last = Some((Arc::clone(graph), Arc::clone(&graphs)));
        Ok(graphs)
    }
}

/// What a test puts before a graph, or the graph itself.
fn before(source: Arc<dyn GraphSource>, config: &Config) -> Arc<dyn GraphSource> {
    match &config.between {
        None => source,
        Some(Between(between)) => between(source),
    }
}

/// The shards of a graph, as each node sees them.
fn cut(
    graph: &Arc<StoredGraph>,
    config: &Config,
    nodes: Option<&Nodes>,
) -> Result<Vec<Arc<dyn GraphSource>>, EngineError> {
    let cut = match nodes {
        None => graph.snapshot.cut(config.shards)?,
        Some(nodes) => {
            let allocate = |shard, bytes| nodes.of_shard(shard).allocate(bytes);
            let all = config.shards.all().collect();
            graph.snapshot.cut_in(config.shards, &all, &allocate)?
        }
    };
    let source = |snapshot| Arc::new(StoredGraph { snapshot }) as Arc<dyn GraphSource>;
    let part = |(shard, snapshot): (ShardId, Snapshot)| {
        let offered =
            nodes.map(|nodes| Offered::of(&snapshot, nodes.of_shard(shard)).map(Arc::new));
        let rows = match &config.between_shards {
            None => Some(source(snapshot)),
            Some(BetweenShards(between)) => between(shard, source(snapshot)),
        };
        let offered = offered.transpose()?;
        Ok(Part { rows, offered })
    };
    let parts = cut.shards.into_iter().map(part);
    let parts: Vec<Part> = parts.collect::<Result<_, EngineError>>()?;
    let shared = source(cut.shared);
    let sharded = |rows| {
        let (catalogue, shared) = (Arc::clone(graph), Arc::clone(&shared));
        Sharded::new(config.shards, catalogue, shared, rows)
    };
    match nodes {
        None => {
            let rows = parts.into_iter().map(|part| part.rows);
            Ok(vec![Arc::new(sharded(rows.collect()))])
        }
        Some(nodes) => {
            let snapshot = (graph.snapshot.number(), graph);
            let seen = nodes.seen(&parts, snapshot)?.into_iter();
            let seen = seen.map(|seen| sharded(seen.rows).with_reader(seen.reader));
            Ok(seen.map(|seen| Arc::new(seen) as _).collect())
        }
    }
}

#[cfg(test)]
mod tests;
