//! The graph that queries ask: the snapshot, or the shards that it is cut into, at one node or several.

#[cfg(target_os = "linux")]
mod copies;
#[cfg(target_os = "linux")]
pub(crate) mod fetching;
mod figures;
mod holders;
#[cfg(target_os = "linux")]
pub(crate) mod member;
mod nodes;
#[cfg(target_os = "linux")]
mod publish;
#[cfg(target_os = "linux")]
mod snapshots;
mod terms;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

#[cfg(target_os = "linux")]
use arc_swap::{ArcSwap, Guard};
#[cfg(target_os = "linux")]
use jindou_cluster::SeenGraph;
use jindou_cluster::{
    ChangedLists, LinkOptions, NodeGraphs, NodeTerms, Offered, OneSided, RemoteReads, Sharded,
};
use jindou_exec::{Forks, GraphSource, QueryClass, TermPart, TermSource};
use jindou_fabric::FabricError;
use jindou_model::{Direction, NodeId, PredicateId, ShardId, TermId};
use jindou_store::{Cut, LayerKind, Snapshot};
use parking_lot::Mutex;

use self::figures::FiguresOfPart;
pub(crate) use self::holders::Holders;
use self::nodes::{Nodes, NodesError, ReadShards, Rows, TermParts};
use self::terms::PartOfWhole;
use crate::EngineError;
use crate::config::{Between, BetweenShards, BetweenTerms, Config, QueryOptions};
use crate::graph::StoredGraph;

/// What a query asks.
pub(crate) struct Asked {
    /// The whole graph: what the planner knows, and its terms.
    pub(crate) graph: Arc<StoredGraph>,
    /// Its terms where they are dealt to nodes: as the node of the query reads them.
    pub(crate) terms: Option<Arc<dyn TermSource>>,
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
            terms: None,
            source,
            forks: None,
            holders: Holders::default(),
        }
    }
}

/// What is asked for all quads of a graph.
pub(crate) struct QuadsAsked {
    pub(crate) source: Arc<dyn GraphSource>,
    /// Its terms, where they are not all here.
    pub(crate) terms: Option<Arc<dyn TermSource>>,
    pub(crate) holders: Holders,
}

impl QuadsAsked {
    /// All of it is here.
    fn of_whole(graph: &Arc<StoredGraph>) -> Self {
        Self {
            source: Arc::clone(graph) as _,
            terms: None,
            holders: Holders::default(),
        }
    }
}

/// The shards of the graph that was asked for last, and the nodes that have them.
#[derive(Default)]
pub(crate) struct LastShards {
    last: Mutex<Option<Last>>,
    nodes: Option<Result<Nodes, NodesError>>,
    /// Queries enter at one node after the other.
    entered: AtomicU32,
    /// The process is a node of a cluster.
    #[cfg(target_os = "linux")]
    membership: std::sync::OnceLock<ArcSwap<member::Membership>>,
}

/// The graph that was asked for last, in shards.
struct Last {
    graph: Arc<StoredGraph>,
    /// As each node sees it.
    seen: NodeGraphs,
    /// Its terms, where they are dealt to nodes.
    terms: Option<NodeTerms>,
    shards: CutGraph,
}

/// A graph in shards.
struct CutGraph {
    cut: Cut,
    /// What reads the lists of the shards of others at each node, as they are in the base; none without nodes.
    readers: Vec<Arc<OneSided>>,
}

impl LastShards {
    /// For a database of these settings.
    pub(crate) fn new(config: &Config) -> Self {
        let options = LinkOptions::default();
        Self {
            nodes: (config.nodes > 1).then(|| Nodes::new(config, &options)),
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
        options: &QueryOptions,
    ) -> Result<Asked, EngineError> {
        #[cfg(target_os = "linux")]
        if let Some(membership) = self.membership() {
            let seen = membership.seen_unless_alone(&graph, options.class, options.alone)?;
            let Some(seen) = seen else {
                let source = before(Arc::clone(&graph) as _, config);
                return Ok(Asked::in_place(graph, source));
            };
            let SeenGraph {
                source,
                terms,
                forks,
            } = seen;
            let is_part = graph.snapshot.base().node_part().is_some();
            let dealt = (config.deal_terms || is_part).then_some(terms);
            return Ok(Asked {
                terms: before_terms(dealt, &graph, config),
                graph,
                source: before(source, config),
                forks: Some(forks),
                holders: Holders::of(membership.member()),
            });
        }
        let Some(nodes) = &self.nodes else {
            let source = self.source(&graph, config)?;
            return Ok(Asked {
                terms: before_terms(None, &graph, config),
                ..Asked::in_place(graph, source)
            });
        };
        let nodes = nodes.as_ref().map_err(NodesError::clone)?;
        let (graphs, terms) = self.graphs(&graph, config)?;
        let number = self.entered.fetch_add(1, Ordering::Relaxed) % config.nodes;
        let snapshot = graph.snapshot.number();
        let all: NodeTerms = match &terms {
            Some(terms) => Arc::clone(terms),
            None => (0..config.nodes).map(|_| Arc::clone(&graph) as _).collect(),
        };
        let own = terms.map(|terms| Arc::clone(&terms[number as usize]));
        Ok(Asked {
            terms: before_terms(own, &graph, config),
            graph,
            source: Arc::clone(&graphs[number as usize]),
            forks: Some(
                nodes
                    .logical()
                    .at(NodeId(number), (&graphs, snapshot), &all),
            ),
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
        // What a transaction has changed so far is nowhere but here, and a node of a cluster has a whole copy.
        if config.shards.is_one() || self.is_member() {
            return Ok(before(Arc::clone(graph) as _, config));
        }
        Ok(Arc::clone(&self.graphs(graph, config)?.0[0]))
    }

    /// What the planner asks of a graph that is the part that a node of a cluster has; none of other graphs.
    ///
    /// # Errors
    /// As [`LastShards::asked`].
    #[cfg(target_os = "linux")]
    pub(crate) fn figures_of_part<'g>(
        &self,
        graph: &'g Arc<StoredGraph>,
        is_over: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Result<Option<FiguresOfPart<'g>>, EngineError> {
        let part = graph.snapshot.base().node_part();
        let Some((membership, part)) = self.membership().zip(part) else {
            return Ok(None);
        };
        // A few degrees are asked for, whatever the query proves to be.
        let seen = membership.seen(graph, QueryClass::Light)?;
        Ok(Some(FiguresOfPart::new(graph, part, seen, is_over)))
    }

    /// There are no nodes of clusters here.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn figures_of_part<'g>(
        &self,
        _: &'g Arc<StoredGraph>,
        _: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Result<Option<FiguresOfPart<'g>>, EngineError> {
        Ok(None)
    }

    /// The error of what other nodes have, with their names.
    pub(crate) fn name(&self, error: EngineError) -> EngineError {
        #[cfg(target_os = "linux")]
        if let Some(membership) = self.membership() {
            return Holders::of(membership.member()).name(error);
        }
        error
    }

    /// What has all quads of a graph: where that is the part that a node has, the cluster.
    ///
    /// # Errors
    /// As [`LastShards::asked`].
    pub(crate) fn source_of_quads(
        &self,
        graph: &Arc<StoredGraph>,
    ) -> Result<QuadsAsked, EngineError> {
        #[cfg(target_os = "linux")]
        if let Some(membership) = self.membership() {
            if graph.snapshot.base().node_part().is_none() {
                membership.snapshots().check_that_it_may_answer()?;
                return Ok(QuadsAsked::of_whole(graph));
            }
            let holders = Holders::of(membership.member());
            let seen = membership.seen(graph, QueryClass::Heavy)?;
            return Ok(QuadsAsked {
                source: seen.source,
                terms: Some(seen.terms),
                holders,
            });
        }
        Ok(QuadsAsked::of_whole(graph))
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

    /// What a transaction asks of its own copy of the graph.
    ///
    /// # Errors
    /// As [`LastShards::source`].
    pub(crate) fn asked_by_transaction(
        &self,
        graph: Arc<StoredGraph>,
        config: &Config,
    ) -> Result<Asked, EngineError> {
        if self.is_member() {
            let source = before(Arc::clone(&graph) as _, config);
            return Ok(Asked::in_place(graph, source));
        }
        self.asked(graph, config, &QueryOptions::default())
    }

    /// True if the process is a node of a cluster.
    pub(crate) fn is_member(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.membership().is_some();
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// The process's part in a cluster, if it has one.
    #[cfg(target_os = "linux")]
    pub(crate) fn membership(&self) -> Option<Guard<Arc<member::Membership>>> {
        self.membership.get().map(ArcSwap::load)
    }

    /// Has queries explored over a cluster from now on.
    ///
    /// # Errors
    /// [`EngineError::Cluster`] if they are already.
    #[cfg(target_os = "linux")]
    pub(crate) fn set_membership(&self, membership: member::Membership) -> Result<(), EngineError> {
        let set = self.membership.set(ArcSwap::from_pointee(membership));
        set.map_err(|_| EngineError::Cluster("it is a node already"))
    }

    /// Has queries explored over a cluster by another list of its nodes from now on, and returns the part that it had by
    /// the one before.
    #[cfg(target_os = "linux")]
    pub(crate) fn replace_membership(
        &self,
        membership: member::Membership,
    ) -> Option<Arc<member::Membership>> {
        Some(self.membership.get()?.swap(Arc::new(membership)))
    }

    /// A graph as each node sees it. Whoever comes while it is cut waits for that.
    ///
    /// Costs what differs from the graph that was asked for last, and a copy of all segments where that had
    /// another base.
    fn graphs(
        &self,
        graph: &Arc<StoredGraph>,
        config: &Config,
    ) -> Result<(NodeGraphs, Option<NodeTerms>), EngineError> {
        let mut last = self.last.lock();
        if let Some(last) = &*last
            && Arc::ptr_eq(&last.graph, graph)
        {
            return Ok((Arc::clone(&last.seen), last.terms.clone()));
        }
        let nodes = self.nodes.as_ref().map(|nodes| nodes.as_ref()).transpose();
        let nodes = nodes.map_err(NodesError::clone)?;
        let brought_on = last
            .take()
            .and_then(|last| last.shards.brought_on(&graph.snapshot));
        let shards = match brought_on {
            Some(shards) => shards,
            None => CutGraph::of(&graph.snapshot, config, nodes)?,
        };
        let (seen, terms) = seen(graph, &shards, config, nodes);
        let seen = seen.into_iter().map(|sharded| before(sharded, config));
        let seen: NodeGraphs = seen.collect();
        *last = Some(Last {
            graph: Arc::clone(graph),
            seen: Arc::clone(&seen),
            terms: terms.clone(),
            shards,
        });
        Ok((seen, terms))
    }
}

/// What a test puts before a graph, or the graph itself.
fn before(source: Arc<dyn GraphSource>, config: &Config) -> Arc<dyn GraphSource> {
    match &config.between {
        None => source,
        Some(Between(between)) => between(source),
    }
}

/// What a test puts before the terms that a query reads, or these; none where they are the graph's own.
fn before_terms(
    terms: Option<Arc<dyn TermSource>>,
    graph: &Arc<StoredGraph>,
    config: &Config,
) -> Option<Arc<dyn TermSource>> {
    match &config.between_terms {
        None => terms,
        Some(BetweenTerms(between)) => {
            Some(between(terms.unwrap_or_else(|| Arc::clone(graph) as _)))
        }
    }
}

impl CutGraph {
    /// The shards of a snapshot.
    fn of(
        snapshot: &Snapshot,
        config: &Config,
        nodes: Option<&Nodes>,
    ) -> Result<Self, EngineError> {
        let Some(nodes) = nodes else {
            return Ok(Self {
                cut: snapshot.cut(config.shards)?,
                readers: Vec::new(),
            });
        };
        let allocate = |shard, bytes| nodes.of_shard(shard).allocate(bytes);
        let all = config.shards.all().collect();
        let cut = snapshot.cut_base(config.shards, &all, &allocate)?;
        let offer = |(shard, part): &(ShardId, Snapshot)| {
            Offered::of(part, nodes.of_shard(*shard)).map(Arc::new)
        };
        let offered: Result<Vec<_>, FabricError> = cut.shards.iter().map(offer).collect();
        let read = ReadShards {
            own: config.between_shards.is_none(),
            others: config.reads_one_sided,
        };
        Ok(Self {
            readers: nodes.readers(&offered?, read)?,
            cut: cut.at(snapshot).expect("it is of this base"),
        })
    }

    /// Those of another snapshot of the same base; none of one of another base.
    fn brought_on(self, to: &Snapshot) -> Option<Self> {
        Some(Self {
            cut: self.cut.at(to)?,
            readers: self.readers,
        })
    }
}

/// The shards of a graph, as each node sees them.
fn seen(
    graph: &Arc<StoredGraph>,
    shards: &CutGraph,
    config: &Config,
    nodes: Option<&Nodes>,
) -> (Vec<Arc<dyn GraphSource>>, Option<NodeTerms>) {
    let source = |snapshot: &Snapshot| {
        let snapshot = snapshot.clone();
        Arc::new(StoredGraph { snapshot }) as Arc<dyn GraphSource>
    };
    let own = |(shard, part): &(ShardId, Snapshot)| match &config.between_shards {
        None => Some(source(part)),
        Some(BetweenShards(between)) => between(*shard, source(part)),
    };
    let rows: Rows = shards.cut.shards.iter().map(own).collect();
    let shared = source(&shards.cut.shared);
    let sharded = |rows| {
        let (catalogue, shared) = (Arc::clone(graph), Arc::clone(&shared));
        Sharded::new(config.shards, catalogue, shared, rows)
    };
    let Some(nodes) = nodes else {
        return (vec![Arc::new(sharded(rows))], None);
    };
    let terms = config.deal_terms.then(|| {
        let map = nodes.logical().map();
        let part = |node| Arc::new(PartOfWhole::new(graph, map, node)) as Arc<dyn TermPart>;
        TermParts {
            parts: map.nodes().map(part).collect(),
            met_bytes: config.dealt_terms_bytes,
            pool: config.memory_pool.as_ref(),
        }
    });
    let (seen, terms) = nodes.seen(&rows, graph, &sharded, terms.as_ref());
    let seen = seen.into_iter().zip(&shards.readers);
    let with_reader = |(rows, reader): (Rows, &Arc<OneSided>)| {
        let changes = Arc::clone(graph) as Arc<dyn ChangedLists>;
        Arc::new(sharded(rows).with_reader(Arc::clone(reader), changes)) as Arc<dyn GraphSource>
    };
    (seen.map(with_reader).collect(), terms)
}

impl ChangedLists for StoredGraph {
    fn may_have_changes(&self, kind: LayerKind, segment: (PredicateId, Direction)) -> bool {
        self.snapshot.may_have_changes(kind, segment)
    }

    fn may_have_changed(
        &self,
        kind: LayerKind,
        (predicate, direction): (PredicateId, Direction),
        key: TermId,
    ) -> bool {
        (self.snapshot).may_have_changed(kind, (predicate, direction), key)
    }
}

#[cfg(test)]
mod tests;
