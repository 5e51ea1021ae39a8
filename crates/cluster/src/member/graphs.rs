//! Which graph does a member explore, and how does it see the shards of others?
//!
//! A graph changes; a query asks one snapshot of it, everywhere by the same number. What other nodes may read is
//! the base of a graph, by whatever snapshot upon it; for the rest the node that holds a shard is asked, and
//! finds the snapshot by its number.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use jindou_exec::{Catalogue, GraphSource, TermSource};
use jindou_fabric::FabricError;
use jindou_fabric::process::ProcessFabric;
use jindou_fabric::remote::Fabric;
use jindou_model::{Direction, NodeId, PredicateId, ShardId, SnapshotNumber, TermId, Unavailable};
use jindou_partition::{ShardMap, Shards};
use jindou_store::LayerKind;
use parking_lot::Mutex;

use super::Member;
use super::joining::PeerLink;
use crate::advert::BaseTag;
use crate::calls::{ServedId, ServedShards};
use crate::dealt::DealtTerms;
use crate::logical::{READS_PER_MESSAGE, READS_PER_MESSAGE_BY_TCP};
use crate::one_sided::{Offered, OneSided, ReadCounts};
use crate::{ChangedLists, Sharded};

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
    /// The terms: all, or the node's part where they are dealt.
    pub terms: Arc<dyn TermSource>,
    /// Its number.
    pub snapshot: SnapshotNumber,
    /// Its base.
    pub base: BaseTag,
    /// The rows of the shards that the node holds.
    pub rows: Vec<(ShardId, Arc<dyn GraphSource>)>,
    /// With the shards of others, as it was seen last.
    pub seen: LastSeen,
}

/// How a graph was seen last, with the shards of others.
#[derive(Default)]
pub struct LastSeen(Mutex<Option<Arc<Seen>>>);

/// What a node lets others read of its shards: a base.
pub struct OwnBase {
    /// Equal for bases that hold the same.
    pub tag: BaseTag,
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
    reader: Arc<OneSided>,
    /// The base that is read of each shard of others.
    bases: Arc<[Option<BaseTag>]>,
    pub(super) reads_per_message: u32,
}

/// The graph at one snapshot by way of the peers that are there.
pub(super) struct Seen {
    pub(super) views: Arc<Views>,
    pub(super) source: Arc<dyn GraphSource>,
    pub(super) terms: Arc<dyn TermSource>,
}

/// A link whose peer's memory cannot be opened, and why.
pub(super) type Unopened = (NodeId, FabricError);

/// The lists that changed since a base, and all of those of which another base is read.
struct OtherBases {
    changes: Arc<dyn ChangedLists>,
    shards: Shards,
    base: BaseTag,
    bases: Arc<[Option<BaseTag>]>,
}

impl ChangedLists for OtherBases {
    fn may_have_changed(
        &self,
        kind: LayerKind,
        segment: (PredicateId, Direction),
        key: TermId,
    ) -> bool {
        let shard = self.shards.owner(key);
        self.bases[shard.0 as usize] != Some(self.base)
            || self.changes.may_have_changed(kind, segment, key)
    }
}

impl Views {
    /// The shards of others by way of these links, or a node whose memory cannot be opened.
    pub(super) fn new(
        map: &ShardMap,
        (fabric, counts): (&Arc<ProcessFabric>, &Arc<ReadCounts>),
        links: &[Option<Arc<PeerLink>>],
    ) -> Result<Self, Unopened> {
        let shards = map.shards();
        let fabric = Arc::clone(fabric) as Arc<dyn Fabric>;
        let mut reader = OneSided::new(shards, &fabric, counts);
        let mut bases = vec![None; shards.count()];
        let mut are_mapped = true;
        for (node, link) in map.nodes().zip(links) {
            let Some(link) = link else { continue };
            are_mapped &= link.is_mapped;
            for (shard, publication) in &link.advert.shards {
                let attached = reader.attach((*shard, node), publication, Arc::clone(link) as _);
                attached.map_err(|error| (node, error))?;
                bases[shard.0 as usize] = Some(link.advert.base);
            }
        }
        Ok(Self {
            links: links.to_vec(),
            reader: Arc::new(reader),
            bases: bases.into(),
            reads_per_message: match are_mapped {
                true => READS_PER_MESSAGE,
                false => READS_PER_MESSAGE_BY_TCP,
            },
        })
    }

    /// A graph, with the shards of others.
    fn see(self: &Arc<Self>, member: &Member, graph: &OwnGraph) -> Seen {
        let shards = member.map.shards();
        let mut rows = member.own_rows(graph);
        let served = ServedId::of_number(graph.snapshot.0);
        for link in self.links.iter().flatten() {
            for (shard, _) in &link.advert.shards {
                let catalogue = Arc::clone(&graph.catalogue);
                let asked = (link.calls).shard((*shard, served), catalogue, Arc::clone(link) as _);
                rows[shard.0 as usize] = Some(Arc::new(asked));
            }
        }
        let (catalogue, shared) = (Arc::clone(&graph.catalogue), Arc::clone(&graph.shared));
        let sharded = Sharded::new(shards, catalogue, shared, rows);
        let (reader, changes) = (Arc::clone(&self.reader), self.changes_of(shards, graph));
        Seen {
            views: Arc::clone(self),
            source: Arc::new(sharded.with_reader(reader, changes)),
            terms: self.terms_of(member, graph),
        }
    }

    /// The terms, of which this node asks its peers for those that it lacks where they are dealt.
    fn terms_of(&self, member: &Member, graph: &OwnGraph) -> Arc<dyn TermSource> {
        let Some(met_bytes) = member.options.dealt_terms_bytes else {
            return Arc::clone(&graph.terms);
        };
        let served = ServedId::of_number(graph.snapshot.0);
        let asked = |link: &Option<Arc<PeerLink>>| {
            let link = link.as_ref()?;
            Some(link.calls.terms(served, Arc::clone(link) as _))
        };
        Arc::new(DealtTerms::new(
            (&member.map, member.here()),
            Arc::clone(&graph.terms),
            self.links.iter().map(asked).collect(),
            met_bytes,
            member.options.forks.memory_pool.as_ref(),
        ))
    }

    fn changes_of(&self, shards: Shards, graph: &OwnGraph) -> Arc<dyn ChangedLists> {
        let changes = Arc::clone(&graph.changes);
        if self.bases.iter().flatten().all(|base| *base == graph.base) {
            return changes;
        }
        Arc::new(OtherBases {
            changes,
            shards,
            base: graph.base,
            bases: Arc::clone(&self.bases),
        })
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
        let dealt = self.options.dealt_terms_bytes;
        let terms = dealt.map(|_| Arc::clone(&graph.terms));
        let served = (self.server).serve_both(id, self.own_rows(&graph), terms);
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
