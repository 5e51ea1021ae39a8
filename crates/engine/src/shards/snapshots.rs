//! Which snapshots of the graph does a node of a cluster have for its own queries and those of other nodes?
//!
//! A query asks one snapshot, at all nodes. So a node keeps those that came last, for queries of others that
//! begin with them, and those of which others say that their queries use them ([`Snapshots::pin`]). They share
//! nearly all of their memory, and are cut into shards when somebody asks.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use jindou_cluster::{BaseTag, LastSeen, MemberGraphs, Offered, OwnBase, OwnGraph};
use jindou_exec::GraphSource;
use jindou_fabric::RegionBuilder;
use jindou_fabric::process::ProcessFabric;
use jindou_fabric::remote::Fabric;
use jindou_model::{NodeId, ShardId, SnapshotNumber, Unavailable};
use jindou_partition::{ShardMap, Shards};
use jindou_store::{Cut, Snapshot};
use parking_lot::{Condvar, Mutex};

use super::terms::TermPart;
use crate::EngineError;
use crate::graph::StoredGraph;
use crate::replica::{Replica, Standing};

/// Snapshots that are kept whether anybody uses them: as many as there are between a query's begin at a node and
/// the moment when others hear of it, however fast transactions follow one another,
const MOST_RECENT: usize = 4_096;
/// and for how long.
const RECENT: Duration = Duration::from_secs(10);
/// How long a query waits until it is known whether this copy of the store may answer it.
const STANDING_PATIENCE: Duration = Duration::from_secs(5);
/// Bases that are kept in shards: the last one, and the one before for queries that began with it.
const MOST_BASES: usize = 2;
/// Snapshots that are kept in shards.
const MOST_CUT: usize = 64;
/// Snapshots that another node may have kept.
pub(crate) const MOST_PINNED: usize = 1_024;

/// The snapshots of a node.
pub(crate) struct Snapshots {
    /// The shards of this node.
    own: BTreeSet<ShardId>,
    shards: Shards,
    /// Which part of the dictionary is its own, where that is dealt to nodes.
    dealt: Option<(ShardMap, NodeId)>,
    /// Of each base the shards of the snapshot that was asked for last; the last base first. Held while one is
    /// cut, which writers do not wait for; locked before the state.
    cuts: Mutex<VecDeque<Cut>>,
    /// Which says whether this node may answer, of a store that is written.
    replica: OnceLock<Replica>,
    state: Mutex<State>,
    /// There is another snapshot.
    is_there: Condvar,
}

struct State {
    /// In the order in which they came, and when.
    recent: VecDeque<(Instant, Arc<StoredGraph>)>,
    pinned: BTreeMap<SnapshotNumber, Arc<StoredGraph>>,
    pins: BTreeMap<NodeId, Vec<SnapshotNumber>>,
    /// Those that were asked for last.
    made: VecDeque<Arc<Made>>,
    /// All of which queries may have something.
    used: Vec<Weak<OwnGraph>>,
}

/// A snapshot in shards.
struct Made {
    of: Arc<StoredGraph>,
    own: Arc<OwnGraph>,
}

impl Snapshots {
    /// Those of a node, from this one on, and what others may read of it.
    ///
    /// # Errors
    /// [`EngineError::Fabric`] and [`EngineError::Store`] where there is no memory.
    pub(super) fn new(
        graph: &Arc<StoredGraph>,
        (map, here): (&ShardMap, NodeId),
        fabric: &Arc<ProcessFabric>,
        deals_terms: bool,
    ) -> Result<(Self, OwnBase), EngineError> {
        let own = map.shards().all();
        let own: BTreeSet<ShardId> = own.filter(|shard| map.holder(*shard) == here).collect();
        let snapshot = &graph.snapshot;
        let cut = snapshot.cut_base(map.shards(), &own, &|_, bytes| fabric.allocate(bytes))?;
        let offer = |(shard, part): &(ShardId, Snapshot)| {
            Ok((*shard, Arc::new(Offered::of(part, &**fabric)?)))
        };
        let offered: Result<_, EngineError> = cut.shards.iter().map(offer).collect();
        let base = OwnBase {
            tag: tag_of(snapshot),
            shards: offered?,
        };
        let state = State {
            recent: VecDeque::from([(Instant::now(), Arc::clone(graph))]),
            pinned: BTreeMap::new(),
            pins: BTreeMap::new(),
            made: VecDeque::new(),
            used: Vec::new(),
        };
        let snapshots = Self {
            own,
            shards: map.shards(),
            dealt: deals_terms.then(|| (map.clone(), here)),
            cuts: Mutex::new(VecDeque::from([cut])),
            replica: OnceLock::new(),
            state: Mutex::new(state),
            is_there: Condvar::new(),
        };
        Ok((snapshots, base))
    }

    /// Answers only if this copy of the store may.
    pub(super) fn follow(&self, replica: Replica) {
        assert!(self.replica.set(replica).is_ok(), "a node is one copy");
    }

    /// As [`Replica::may_answer`].
    fn may_answer(&self, within: Duration) -> Result<(), Standing> {
        match self.replica.get() {
            Some(replica) => replica.may_answer(within),
            None => Ok(()),
        }
    }

    /// There is this snapshot from now on, the latest one, which another node may show before this one does.
    pub(super) fn note(&self, snapshot: &Snapshot) {
        let graph = Arc::new(StoredGraph {
            snapshot: snapshot.clone(),
        });
        let mut state = self.state.lock();
        if state.recent.len() >= MOST_RECENT {
            state.recent.pop_front();
        }
        state.recent.push_back((Instant::now(), graph));
        drop(state);
        self.is_there.notify_all();
    }

    /// A graph that readers see or saw, in the shards of this node.
    ///
    /// Costs what differs from the one that was asked for before; a copy of all segments once after each merge.
    ///
    /// # Errors
    /// As [`Snapshots::new`].
    pub(super) fn own(&self, graph: &Arc<StoredGraph>) -> Result<Arc<OwnGraph>, EngineError> {
        let standing = self.may_answer(STANDING_PATIENCE);
        standing.map_err(|standing| EngineError::NotFollowing {
            reason: match standing {
                Standing::Waits => "the leader has not compared it with its own yet".to_owned(),
                Standing::Ended(reason) => reason,
            },
        })?;
        if let Some(own) = self.state.lock().made_of(&graph.snapshot) {
            return Ok(own);
        }
        let mut cuts = self.cuts.lock();
        // Somebody else made it meanwhile.
        if let Some(own) = self.state.lock().made_of(&graph.snapshot) {
            return Ok(own);
        }
        let own = Arc::new(self.make(&mut cuts, graph)?);
        self.state.lock().keep(Arc::clone(graph), &own);
        Ok(own)
    }

    fn make(
        &self,
        cuts: &mut VecDeque<Cut>,
        graph: &Arc<StoredGraph>,
    ) -> Result<OwnGraph, EngineError> {
        let snapshot = &graph.snapshot;
        let known = cuts.iter().enumerate();
        let known = known
            .filter_map(|(place, cut)| Some((place, cut.at(snapshot)?)))
            .next();
        let place = match known {
            Some((place, cut)) => {
                cuts[place] = cut;
                place
            }
            None => {
                // Nobody else reads it.
                let allocate = |_, bytes| Ok(RegionBuilder::new(bytes));
                let cut = snapshot.cut_base(self.shards, &self.own, &allocate)?;
                cuts.truncate(MOST_BASES - 1);
                cuts.push_front(cut.at(snapshot).expect("it is of this base"));
                0
            }
        };
        let cut = &cuts[place];
        let source = |snapshot: &Snapshot| {
            let snapshot = snapshot.clone();
            Arc::new(StoredGraph { snapshot }) as Arc<dyn GraphSource>
        };
        let rows = cut.shards.iter();
        Ok(OwnGraph {
            catalogue: Arc::clone(graph) as _,
            changes: Arc::clone(graph) as _,
            shared: source(&cut.shared),
            terms: match &self.dealt {
                None => Arc::clone(graph) as _,
                Some((map, here)) => Arc::new(TermPart::new(graph, map, *here)),
            },
            snapshot: snapshot.number(),
            base: tag_of(snapshot),
            rows: rows.map(|(shard, rows)| (*shard, source(rows))).collect(),
            seen: LastSeen::default(),
        })
    }

    /// The numbers of those snapshots that queries of this node use. Lets go of others that were followed by
    /// others long ago.
    pub(crate) fn in_use(&self) -> Vec<SnapshotNumber> {
        let mut state = self.state.lock();
        let gone = state.take_old(Instant::now());
        let kept: Vec<*const OwnGraph> = state.made.iter().map(|m| Arc::as_ptr(&m.own)).collect();
        state.used.retain(|used| used.strong_count() > 0);
        let used = state.used.iter().filter_map(Weak::upgrade);
        let used = used.filter(|own| {
            // One is this one.
            let others = if kept.contains(&Arc::as_ptr(own)) {
                2
            } else {
                1
            };
            Arc::strong_count(own) > others
        });
        let numbers: BTreeSet<SnapshotNumber> = used.map(|own| own.snapshot).collect();
        drop(state);
        // A whole base may go with the last of them.
        drop(gone);
        numbers.into_iter().take(MOST_PINNED).collect()
    }

    /// A node says which snapshots its queries use: these are kept until it says otherwise.
    pub(crate) fn pin(&self, node: NodeId, mut numbers: Vec<SnapshotNumber>) {
        numbers.truncate(MOST_PINNED);
        let mut state = self.state.lock();
        for number in &numbers {
            if let Some(graph) = state.find(*number) {
                state.pinned.insert(*number, graph);
            }
        }
        state.pins.insert(node, numbers);
        let State { pinned, pins, .. } = &mut *state;
        let used: BTreeSet<&SnapshotNumber> = pins.values().flatten().collect();
        pinned.retain(|number, _| used.contains(number));
    }
}

impl Snapshots {
    fn first_shard(&self) -> ShardId {
        self.own.first().copied().unwrap_or(ShardId(0))
    }
}

/// Equal where two nodes have the same edges in their bases.
fn tag_of(snapshot: &Snapshot) -> BaseTag {
    let digest = snapshot.base().edges_digest();
    // Of what is not in files nobody else has the same.
    BaseTag(digest.unwrap_or_else(|| RandomState::new().build_hasher().finish()))
}

impl State {
    fn latest(&self) -> SnapshotNumber {
        let (_, last) = self.recent.back().expect("there is one from the beginning");
        last.snapshot.number()
    }

    /// A snapshot in shards, if it is there.
    fn made_of(&self, snapshot: &Snapshot) -> Option<Arc<OwnGraph>> {
        let is_it = |made: &&Arc<Made>| {
            let of = &made.of.snapshot;
            of.number() == snapshot.number() && of.is_of_generation_of(snapshot)
        };
        let made = self.made.iter().rev().find(is_it)?;
        Some(Arc::clone(&made.own))
    }

    /// Keeps a snapshot in shards.
    fn keep(&mut self, of: Arc<StoredGraph>, own: &Arc<OwnGraph>) {
        self.used.retain(|used| used.strong_count() > 0);
        self.used.push(Arc::downgrade(own));
        if self.made.len() >= MOST_CUT {
            self.made.pop_front();
        }
        let own = Arc::clone(own);
        self.made.push_back(Arc::new(Made { of, own }));
    }

    /// Takes out the snapshots that were followed by others long ago, and what was made of these for nobody.
    fn take_old(&mut self, now: Instant) -> (Vec<Arc<StoredGraph>>, Vec<Arc<Made>>) {
        let mut old = Vec::new();
        while let Some((followed, _)) = self.recent.get(1)
            && now.saturating_duration_since(*followed) > RECENT
            && let Some((_, graph)) = self.recent.pop_front()
        {
            old.push(graph);
        }
        let (_, first) = self.recent.front().expect("one is left");
        let first = first.snapshot.number();
        let is_old =
            |made: &Arc<Made>| made.own.snapshot < first && Arc::strong_count(&made.own) == 1;
        let (gone, kept): (Vec<_>, Vec<_>) = self.made.drain(..).partition(is_old);
        self.made = kept.into();
        (old, gone)
    }

    fn find(&self, number: SnapshotNumber) -> Option<Arc<StoredGraph>> {
        if let Some(graph) = self.pinned.get(&number) {
            return Some(Arc::clone(graph));
        }
        // Of one that was merged the later one.
        let end = (self.recent).partition_point(|(_, graph)| graph.snapshot.number() <= number);
        let (_, graph) = &self.recent[end.checked_sub(1)?];
        (graph.snapshot.number() == number).then(|| Arc::clone(graph))
    }
}

impl MemberGraphs for Snapshots {
    fn at(&self, number: SnapshotNumber, within: Duration) -> Result<Arc<OwnGraph>, Unavailable> {
        self.may_answer(within).map_err(|standing| match standing {
            Standing::Waits => Unavailable::NotNow,
            Standing::Ended(_) => Unavailable::Never(self.first_shard()),
        })?;
        let until = Instant::now().checked_add(within);
        let mut state = self.state.lock();
        while state.latest() < number {
            let is_late = match until {
                Some(until) => self.is_there.wait_until(&mut state, until).timed_out(),
                None => {
                    self.is_there.wait(&mut state);
                    false
                }
            };
            if is_late && state.latest() < number {
                return Err(Unavailable::NotNow);
            }
        }
        let graph = state.find(number).ok_or(Unavailable::Gone)?;
        drop(state);
        self.own(&graph).map_err(|error| {
            tracing::error!(%error, "the shards of this node cannot be made");
            Unavailable::Never(self.first_shard())
        })
    }
}
