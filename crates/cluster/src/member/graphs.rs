//! Which graph does a member explore, and how does it see the shards of others?
//!
//! A graph changes; a query asks one snapshot of it, everywhere by the same number. What other nodes may read is
//! the base of a graph, by whatever snapshot upon it; for the rest the node that holds a shard is asked, and
//! finds the snapshot by its number.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use jindou_exec::{ByClass, Catalogue, GraphSource, MessageCost, QueryClass, TermPart, TermSource};
use jindou_fabric::remote::Fabric;
use jindou_model::{NodeId, ShardId, SnapshotNumber, Unavailable};
use jindou_partition::ShardMap;
use parking_lot::Mutex;

use super::Member;
use super::bases::{PeerBase, alike};
use super::joining::PeerLink;
use crate::advert::BaseTags;
use crate::calls::{ServedId, ServedShards};
use crate::dealt::DealtTerms;
use crate::message_cost::{self, MESSAGE_COST_BY_TCP};
use crate::one_sided::{Alike, Offered, OneSided};
use crate::{ChangedLists, Sharded};

/// Bases of this node for which what reads those of others is kept: the last one, and the one before for queries that
/// began with it.
const MOST_READERS: usize = 2;
/// Snapshots for which a node answers without looking for them again.
const MOST_SERVED: usize = 64;
/// How long a call waits for its snapshot to come to this node; then the caller asks again. Later calls of the
/// same node wait behind it.
const CALL_PATIENCE: Duration = Duration::from_millis(1);
/// How long a sub-query waits for its snapshot to come to this node.
const SNAPSHOT_PATIENCE: Duration = Duration::from_secs(10);

/// The graph at one snapshot, as far as a node has it.
pub struct OwnGraph {
    /// What every node knows of the whole.
    pub catalogue: Arc<dyn Catalogue>,
    /// Which lists are not those of its base, which is what others read.
    pub changes: Arc<dyn ChangedLists>,
    /// The characteristic sets.
    pub shared: Arc<dyn GraphSource>,
    /// All of it, where the node has a whole copy.
    pub whole: Option<Arc<dyn GraphSource>>,
    /// The terms; none where the node has its part of them only.
    pub terms: Option<Arc<dyn TermSource>>,
    /// What it has of them, of which others may ask.
    pub part: Arc<dyn TermPart>,
    /// Its number.
    pub snapshot: SnapshotNumber,
    /// What its base holds.
    pub base: BaseTags,
    /// The rows of the shards that the node holds.
    pub rows: Vec<(ShardId, Arc<dyn GraphSource>)>,
    /// With the shards of others, as it was seen last.
    pub seen: LastSeen,
}

/// How a graph was seen last, with the shards of others.
#[derive(Default)]
pub struct LastSeen(Mutex<Option<Arc<Seen>>>);

/// What a node lets others read of its shards: a base.
#[derive(Clone)]
pub struct OwnBase {
    /// What it holds.
    pub tags: BaseTags,
    /// The shards that the node holds.
    pub shards: Vec<(ShardId, Arc<Offered>)>,
}

/// The snapshots that a node has.
pub trait MemberGraphs: Send + Sync {
    /// The graph at a snapshot; waits for so long for one that is not there yet.
    ///
    /// # Errors
    /// [`Unavailable::NotNow`] if it is not there yet, [`Unavailable::Gone`] if it is not there any more.
    fn at(&self, number: SnapshotNumber, within: Duration) -> Result<Arc<OwnGraph>, Unavailable>;
}

/// The links of a member, and what reads the shards of others by way of them.
pub(super) struct Views {
    links: Vec<Option<Arc<PeerLink>>>,
    /// All that hold shards are there.
    pub(super) are_complete: bool,
    /// By node: the bases of each.
    bases: Vec<Vec<Arc<PeerBase>>>,
    /// What reads them for graphs upon a base, by what that holds; the one that was asked for last first.
    readers: Mutex<VecDeque<(BaseTags, Arc<OneSided>)>>,
    pub(super) message_cost: MessageCost,
}

/// The graph at one snapshot by way of the peers that are there.
pub(super) struct Seen {
    pub(super) views: Arc<Views>,
    /// As queries of each class ask the peers.
    pub(super) by: ByClass<SeenBy>,
}

/// The graph and its terms, as queries of one class ask the peers for them.
#[derive(Clone)]
pub(super) struct SeenBy {
    pub(super) source: Arc<dyn GraphSource>,
    pub(super) terms: Arc<dyn TermSource>,
}

impl Views {
    /// The shards of others by way of these links, at a node.
    pub(super) fn new((map, here): (&ShardMap, NodeId), links: &[Option<Arc<PeerLink>>]) -> Self {
        assert_eq!(links.len(), map.nodes().len(), "a place for each node");
        let bases = |link: &Option<Arc<PeerLink>>| {
            let link = link.as_ref();
            link.map_or_else(Vec::new, |link| link.bases.lock().clone())
        };
        Self {
            bases: links.iter().map(bases).collect(),
            links: links.to_vec(),
            are_complete: (map.nodes().zip(links))
                .all(|(node, link)| link.is_some() || node == here || !map.holds(node)),
            readers: Mutex::default(),
            message_cost: match links.iter().flatten().all(|link| link.is_mapped) {
                true => message_cost::of_mapped(map.holding() as usize),
                false => MESSAGE_COST_BY_TCP,
            },
        }
    }

    /// What reads the lists of others for graphs whose base holds this.
    fn reader(&self, member: &Member, tags: &BaseTags) -> Arc<OneSided> {
        let mut readers = self.readers.lock();
        if let Some((_, reader)) = readers.iter().find(|(of, _)| of == tags) {
            return Arc::clone(reader);
        }
        let fabric = Arc::clone(&member.fabric) as Arc<dyn Fabric>;
        let mut reader = OneSided::new(member.map.shards(), &fabric, &member.counts);
        let others = (0..).map(NodeId).zip(self.links.iter().zip(&self.bases));
        for (node, (link, bases)) in others.filter(|_| member.options.reads_one_sided) {
            let (Some(link), Some(first)) = (link, bases.first()) else {
                continue;
            };
            let (each, any) = alike(tags, bases);
            let any = Arc::new(any);
            for (place, (shard, _)) in first.shards.iter().enumerate() {
                let bases = bases.iter().zip(&each);
                let bases = bases.map(|(base, alike)| (&base.shards[place].1, alike));
                reader.attach_opened((*shard, node), &bases.collect::<Vec<_>>(), &any);
            }
            reader.keep(Arc::clone(link) as _);
        }
        match member.bases.opened(&*member.fabric) {
            Ok(own) => {
                let alike = Arc::new(Alike::of(tags, &own.tags));
                for (shard, opened) in &own.shards {
                    reader.attach_opened((*shard, member.here()), &[(opened, &alike)], &alike);
                }
                reader.keep(own);
            }
            Err(error) => tracing::warn!(%error, "this node does not read its own shards"),
        }
        let reader = Arc::new(reader);
        readers.truncate(MOST_READERS - 1);
        readers.push_front((Arc::clone(tags), Arc::clone(&reader)));
        reader
    }

    /// A graph, with the shards of others.
    fn see(self: &Arc<Self>, member: &Member, graph: &OwnGraph) -> Seen {
        let reader = self.reader(member, &graph.base);
        let terms = self.terms_of(member, graph);
        Seen {
            views: Arc::clone(self),
            by: ByClass::new(|class| {
                let sharded = self.sharded(member, graph, class);
                let changes = Arc::clone(&graph.changes);
                SeenBy {
                    source: Arc::new(sharded.with_reader(Arc::clone(&reader), changes)),
                    terms: Arc::clone(terms.of(class)),
                }
            }),
        }
    }

    /// The shards of a graph, of which peers are asked for those that they hold.
    fn sharded(&self, member: &Member, graph: &OwnGraph, class: QueryClass) -> Sharded {
        let mut rows = member.own_rows(graph);
        let served = ServedId::of_number(graph.snapshot.0);
        for (node, link) in (0..).map(NodeId).zip(&self.links) {
            let Some(link) = link else { continue };
            let calls = link.calls.of(class);
            let all: Vec<ShardId> = member.shards_of(node).collect();
            if all.is_empty() {
                continue;
            }
            let catalogue = Arc::clone(&graph.catalogue);
            let asked = (member.map.shards(), all.clone(), served);
            let asked = calls.shards(asked, catalogue, Arc::clone(link) as _);
            let asked = Arc::new(asked) as Arc<dyn GraphSource>;
            for shard in all {
                rows[shard.0 as usize] = Some(Arc::clone(&asked));
            }
        }
        let (catalogue, shared) = (Arc::clone(&graph.catalogue), Arc::clone(&graph.shared));
        Sharded::new(member.map.shards(), catalogue, shared, rows)
    }

    /// The terms, of which this node asks its peers for those that it lacks.
    fn terms_of(&self, member: &Member, graph: &OwnGraph) -> ByClass<Arc<dyn TermSource>> {
        if let Some(terms) = &graph.terms {
            return ByClass::new(|_| Arc::clone(terms));
        }
        let served = ServedId::of_number(graph.snapshot.0);
        let asked = |class| {
            let of_peer = |link: &Option<Arc<PeerLink>>| {
                let link = link.as_ref()?;
                Some(link.calls.of(class).terms(served, Arc::clone(link) as _))
            };
            self.links.iter().map(of_peer).collect()
        };
        let light = DealtTerms::new(
            (&member.map, member.here()),
            Arc::clone(&graph.part),
            asked(QueryClass::Light),
            member.options.dealt_terms_bytes,
            member.options.forks.memory_pool.as_ref(),
        );
        let heavy = Arc::new(light.by(asked(QueryClass::Heavy)));
        let light = Arc::new(light);
        ByClass { light, heavy }
    }
}

impl Member {
    /// A graph of this node with the shards of its peers.
    pub(super) fn see(&self, graph: &Arc<OwnGraph>) -> Arc<Seen> {
        // Held while the graph is noted: views that others take the place of are forgotten after that.
        let views = self.views.read();
        let mut last = graph.seen.0.lock();
        if let Some(seen) = &*last
            && Arc::ptr_eq(&seen.views, &views)
        {
            return Arc::clone(seen);
        }
        let seen = Arc::new(views.see(self, graph));
        if last.replace(Arc::clone(&seen)).is_none() {
            self.seen.lock().push(Arc::downgrade(graph));
        }
        seen
    }

    /// Has queries see the shards of others by way of these from now on, and lets go of those before.
    pub(super) fn set_views(&self, views: Views) {
        let mut current = self.views.write();
        *current = Arc::new(views);
        let seen = std::mem::take(&mut *self.seen.lock());
        let before: Vec<_> = seen
            .iter()
            .filter_map(Weak::upgrade)
            .filter_map(|graph| graph.seen.0.lock().take())
            .collect();
        drop(current);
        // The last of a link may go with them, which waits for its threads.
        drop(before);
    }

    /// The graph at the snapshot of a sub-query.
    pub(super) fn graph_of(&self, number: SnapshotNumber) -> Result<Arc<OwnGraph>, Unavailable> {
        self.graphs.at(number, SNAPSHOT_PATIENCE)
    }

    /// The shards of this node at the snapshot by whose number peers ask for them.
    pub(super) fn serve(&self, id: ServedId) -> Result<Arc<ServedShards>, Unavailable> {
        let graph = self.graphs.at(SnapshotNumber(id.number()), CALL_PATIENCE)?;
        let part = Arc::clone(&graph.part);
        let (catalogue, shared) = (Arc::clone(&graph.catalogue), Arc::clone(&graph.shared));
        let own = Sharded::new(self.map.shards(), catalogue, shared, self.own_rows(&graph));
        let served = (self.server).serve_both(id, own, Some(part));
        let mut kept = self.served.lock();
        if kept.len() >= MOST_SERVED {
            kept.pop_front();
        }
        kept.push_back(Arc::clone(&served));
        Ok(served)
    }

    /// The rows of its own shards, by shard.
    fn own_rows(&self, graph: &OwnGraph) -> Vec<Option<Arc<dyn GraphSource>>> {
        let mut rows: Vec<Option<Arc<dyn GraphSource>>> = vec![None; self.map.shards().count()];
        for (shard, own) in &graph.rows {
            let holder = self.map.holder(*shard);
            assert_eq!(holder, self.here(), "a shard of this node");
            rows[shard.0 as usize] = Some(Arc::clone(own));
        }
        rows
    }
}

/// What a member answers for without looking for it again.
pub(super) type Served = Mutex<VecDeque<Arc<ServedShards>>>;
