//! The graph that queries ask: the snapshot, or the shards that it is cut into.

use std::sync::Arc;

use jindou_cluster::Sharded;
use jindou_exec::GraphSource;
use parking_lot::Mutex;

use crate::EngineError;
use crate::config::{Between, BetweenShards, Config};
use crate::graph::StoredGraph;

/// The shards of the graph that was asked for last.
#[derive(Default)]
pub(crate) struct LastShards {
    last: Mutex<Option<(Arc<StoredGraph>, Arc<Sharded>)>>,
}

impl LastShards {
    /// What queries of a graph ask.
    ///
    /// # Errors
    /// [`EngineError::Store`] where the graph cannot be cut into shards.
    pub(crate) fn source(
        &self,
        graph: &Arc<StoredGraph>,
        config: &Config,
    ) -> Result<Arc<dyn GraphSource>, EngineError> {
        let source: Arc<dyn GraphSource> = match config.shards.is_one() {
            true => Arc::clone(graph) as _,
            false => self.sharded(graph, config)?,
        };
        Ok(match &config.between {
            None => source,
            Some(Between(between)) => between(source),
        })
    }

    /// The shards of a graph. Whoever comes while they are made waits for them.
    fn sharded(
        &self,
        graph: &Arc<StoredGraph>,
        config: &Config,
    ) -> Result<Arc<Sharded>, EngineError> {
        let mut last = self.last.lock();
        if let Some((of, sharded)) = &*last
            && Arc::ptr_eq(of, graph)
        {
            return Ok(Arc::clone(sharded));
        }
        let sharded = Arc::new(cut(graph, config)?);
        *last = Some((Arc::clone(graph), Arc::clone(&sharded)));
        Ok(sharded)
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
