//! The graph that queries ask: the snapshot, or the shards that it is cut into, at one node or several.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use jindou_cluster::{LogicalNodes, NodeGraphs, Sharded};
use jindou_exec::{Forks, GraphSource};
use jindou_model::NodeId;
use jindou_partition::ShardMap;
use parking_lot::Mutex;

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
}

impl Asked {
    /// A graph that is asked in place, by way of `source`.
    pub(crate) fn in_place(graph: Arc<StoredGraph>, source: Arc<dyn GraphSource>) -> Self {
        Self {
            graph,
            source,
            forks: None,
        }
    }
}

/// The shards of the graph that was asked for last, and the nodes that have them.
#[derive(Default)]
pub(crate) struct LastShards {
    last: Mutex<Option<(Arc<StoredGraph>, NodeGraphs)>>,
    nodes: Option<Result<Arc<LogicalNodes>, jindou_partition::MapError>>,
    /// Queries enter at one node after the other.
    entered: AtomicU32,
}

impl LastShards {
    /// For a database of these settings.
    pub(crate) fn new(config: &Config, start: &Arc<dyn Fn() + Send + Sync>) -> Self {
        let nodes = (config.nodes > 1).then(|| {
            let map = ShardMap::dealt(config.shards, config.nodes)?;
            let threads = config.threads.div_ceil(config.nodes as usize);
            let nodes = LogicalNodes::new(map, config.fork_policy, threads, start);
            Ok(Arc::new(nodes))
        });
        Self {
            nodes,
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
        let Some(nodes) = &self.nodes else {
            let source = self.source(&graph, config)?;
            return Ok(Asked::in_place(graph, source));
        };
        let nodes = nodes.as_ref().map_err(|error| *error)?;
        let graphs = self.graphs(&graph, config)?;
        let number = self.entered.fetch_add(1, Ordering::Relaxed) % config.nodes;
        Ok(Asked {
            graph,
            source: Arc::clone(&graphs[number as usize]),
            forks: Some(nodes.at(NodeId(number), &graphs)),
        })
    }

    /// What is asked of a graph from one place, without sub-queries.
    ///
    /// # Errors
    /// [`EngineError::Store`] where the graph cannot be cut into shards.
    pub(crate) fn source(
        &self,
        graph: &Arc<StoredGraph>,
        config: &Config,
    ) -> Result<Arc<dyn GraphSource>, EngineError> {
        if config.shards.is_one() {
            return Ok(before(Arc::clone(graph) as _, config));
        }
        Ok(Arc::clone(&self.graphs(graph, config)?[0]))
    }

    /// A graph as each node sees it. Whoever comes while it is cut waits for that.
    fn graphs(&self, graph: &Arc<StoredGraph>, config: &Config) -> Result<NodeGraphs, EngineError> {
        let mut last = self.last.lock();
        if let Some((of, graphs)) = &*last
            && Arc::ptr_eq(of, graph)
        {
            return Ok(Arc::clone(graphs));
        }
        let sharded: Arc<dyn GraphSource> = Arc::new(cut(graph, config)?);
        let nodes = 0..config.nodes.max(1);
        let graphs: NodeGraphs = nodes
            .map(|_| before(Arc::clone(&sharded), config))
            .collect();
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

fn cut(graph: &Arc<StoredGraph>, config: &Config) -> Result<Sharded, EngineError> {
    let cut = graph.snapshot.cut(config.shards)?;
    let source = |snapshot| Arc::new(StoredGraph { snapshot }) as Arc<dyn GraphSource>;
    let rows = config.shards.all().zip(cut.shards);
    let rows = rows.map(|(shard, snapshot)| match &config.between_shards {
        None => Some(source(snapshot)),
        Some(BetweenShards(between)) => between(shard, source(snapshot)),
    });
    let rows = rows.collect();
    let catalogue = Arc::clone(graph);
    Ok(Sharded::new(
        config.shards,
        catalogue,
        source(cut.shared),
        rows,
    ))
}

#[cfg(test)]
mod tests;
