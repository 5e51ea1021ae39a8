//! Which snapshots of the graph does a node of a cluster have for its own queries and those of other nodes?
//!
//! A query asks one snapshot, at all nodes. So a node keeps those that came last, for queries of others that
//! begin with them, and those of which others say that their queries use them ([`Snapshots::pin`]). They share
//! nearly all of their memory, and are cut into shards when somebody asks.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use jindou_cluster::{LastSeen, MemberGraphs, Offered, OwnBase, OwnGraph};
use jindou_exec::GraphSource;
use jindou_fabric::RegionBuilder;
use jindou_fabric::process::ProcessFabric;
use jindou_fabric::remote::Fabric;
use jindou_model::{NodeId, ShardId, SnapshotNumber, Unavailable};
use jindou_partition::{ShardMap, Shards};
use jindou_store::{Cut, Snapshot};
use parking_lot::{Condvar, Mutex};

use super::terms::PartOfWhole;
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
/// Bases that others read: the last one, and the one before for queries that began with it, and for nodes that have not
/// merged yet.
const MOST_BASES: usize = 2;
/// How long a query that may be answered otherwise waits for who brings a base that is cut to its snapshot.
const CUT_PATIENCE: Duration = Duration::from_millis(5);
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
    /// The memory that others read.
    fabric: Arc<ProcessFabric>,
    /// The last base first. Held while one is cut, which writers do not wait for; locked before the state.
    cuts: Mutex<VecDeque<OwnCut>>,
    /// Which says whether this node may answer, of a store that is written.
    replica: OnceLock<Replica>,
    state: Mutex<State>,
    /// There is another snapshot.
    is_there: Condvar,
    /// There is another base.
    has_merged: Condvar,
}

/// A base in shards.
struct OwnCut {
    /// Of the snapshot upon it that was asked for last.
    cut: Cut,
    /// What others read of it; nothing of one that was cut after a later one.
    offered: Option<OwnBase>,
    /// Its generation, and how many merges made it.
    age: (u64, u64),
}

struct State {
    /// In the order in which they came, and when.
    recent: VecDeque<(Instant, Arc<StoredGraph>)>,
    /// Bases that these came upon.
    bases: u64,
    /// Nobody waits for another base any more.
    is_over: bool,
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
        let base = offer(&cut, fabric, None)?;
        // The shards are in memory of their own now.
        snapshot.base().let_go_of_edges();
        let first = OwnCut {
            cut,
            offered: Some(base.clone()),
            age: age_of(snapshot),
        };
        let state = State {
            recent: VecDeque::from([(Instant::now(), Arc::clone(graph))]),
            bases: 1,
            is_over: false,
            pinned: BTreeMap::new(),
            pins: BTreeMap::new(),
            made: VecDeque::new(),
            used: Vec::new(),
        };
        let snapshots = Self {
            own,
            shards: map.shards(),
            dealt: deals_terms.then(|| (map.clone(), here)),
            fabric: Arc::clone(fabric),
            cuts: Mutex::new(VecDeque::from([first])),
            replica: OnceLock::new(),
            state: Mutex::new(state),
            is_there: Condvar::new(),
            has_merged: Condvar::new(),
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

    /// # Errors
    /// [`EngineError::NotFollowing`] of a copy of the store that may not answer.
    pub(super) fn check_that_it_may_answer(&self) -> Result<(), EngineError> {
        let standing = self.may_answer(STANDING_PATIENCE);
        standing.map_err(|standing| EngineError::NotFollowing {
            reason: match standing {
                Standing::Waits => "the leader has not compared it with its own yet".to_owned(),
                Standing::Unsure { since } => format!(
                    "it was cut off from the others {:.1} s ago, and may lack what clients were told of",
                    since.as_secs_f64()
                ),
                Standing::Ended(reason) => reason,
            },
        })
    }

    /// There is this snapshot from now on, the latest one, which another node may show before this one does.
    pub(super) fn note(&self, snapshot: &Snapshot) {
        let graph = Arc::new(StoredGraph {
            snapshot: snapshot.clone(),
        });
        let mut state = self.state.lock();
        let last = state.recent.back();
        if !last.is_some_and(|(_, last)| last.snapshot.is_of_generation_of(snapshot)) {
            state.bases += 1;
            self.has_merged.notify_all();
        }
        if state.recent.len() >= MOST_RECENT {
            state.recent.pop_front();
        }
        state.recent.push_back((Instant::now(), graph));
        drop(state);
        self.is_there.notify_all();
    }

    /// A graph that readers see or saw, in the shards of this node.
    ///
    /// Costs what differs from the one that was asked for before, and once after each merge a copy of what was merged.
    ///
    /// # Errors
    /// As [`Snapshots::new`].
    pub(super) fn own(&self, graph: &Arc<StoredGraph>) -> Result<Arc<OwnGraph>, EngineError> {
        self.check_that_it_may_answer()?;
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

    /// As [`Snapshots::own`], if that need not wait until a base is cut.
    ///
    /// # Errors
    /// As [`Snapshots::own`].
    pub(super) fn own_soon(
        &self,
        graph: &Arc<StoredGraph>,
    ) -> Result<Option<Arc<OwnGraph>>, EngineError> {
        self.check_that_it_may_answer()?;
        if let Some(own) = self.state.lock().made_of(&graph.snapshot) {
            return Ok(Some(own));
        }
        let Some(mut cuts) = self.cuts.try_lock_for(CUT_PATIENCE) else {
            return Ok(None);
        };
        let is_cut = known_place(&mut cuts, &graph.snapshot).is_some();
        drop(cuts);
        is_cut.then(|| self.own(graph)).transpose()
    }

    /// The place of the base of a snapshot among those that are cut, which is brought to that snapshot.
    fn place_of(
        &self,
        cuts: &mut VecDeque<OwnCut>,
        snapshot: &Snapshot,
    ) -> Result<usize, EngineError> {
        if let Some(place) = known_place(cuts, snapshot) {
            return Ok(place);
        }
        let age = age_of(snapshot);
        let last = &cuts[0];
        if age < last.age {
            // Others read later ones.
            let allocate = |_, bytes| Ok(RegionBuilder::new(bytes));
            let cut = snapshot.cut_base(self.shards, &self.own, &allocate)?;
            cuts.truncate(MOST_BASES);
            cuts.push_back(OwnCut {
                cut: cut.at(snapshot).expect("it is of this base"),
                offered: None,
                age,
            });
            return Ok(cuts.len() - 1);
        }
        let allocate = |_, bytes| self.fabric.allocate(bytes);
        let cut = snapshot.cut_base_after(&last.cut, &allocate)?;
        let offered = offer(&cut, &self.fabric, last.offered.as_ref())?;
        cuts.push_front(OwnCut {
            cut: cut.at(snapshot).expect("it is of this base"),
            offered: Some(offered),
            age,
        });
        cuts.truncate(MOST_BASES);
        Ok(0)
    }

    fn make(
        &self,
        cuts: &mut VecDeque<OwnCut>,
        graph: &Arc<StoredGraph>,
    ) -> Result<OwnGraph, EngineError> {
        let snapshot = &graph.snapshot;
        let place = self.place_of(cuts, snapshot)?;
        let cut = &cuts[place].cut;
        let source = |snapshot: &Snapshot| {
            let snapshot = snapshot.clone();
            Arc::new(StoredGraph { snapshot }) as Arc<dyn GraphSource>
        };
        let rows = cut.shards.iter();
        let is_whole = self.dealt.is_none() && snapshot.base().node_part().is_none();
        Ok(OwnGraph {
            catalogue: Arc::clone(graph) as _,
            changes: Arc::clone(graph) as _,
            shared: source(&cut.shared),
            whole: is_whole.then(|| Arc::clone(graph) as _),
            terms: is_whole.then(|| Arc::clone(graph) as _),
            part: match &self.dealt {
                None => Arc::clone(graph) as _,
                Some((map, here)) => Arc::new(PartOfWhole::new(graph, map, *here)),
            },
            snapshot: snapshot.number(),
            base: Arc::clone(&cut.digests),
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

    /// Whether queries use any, here or at another node, as far as is known.
    pub(super) fn are_in_use(&self) -> bool {
        let at_others = || self.state.lock().pins.values().any(|pins| !pins.is_empty());
        !self.in_use().is_empty() || at_others()
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

impl Snapshots {
    /// Waits until there was another base since there were so many; then says how many there were. None once nobody is
    /// to wait any more.
    pub(super) fn wait_for_base(&self, seen: u64) -> Option<u64> {
        let mut state = self.state.lock();
        while state.bases == seen && !state.is_over {
            self.has_merged.wait(&mut state);
        }
        (!state.is_over).then_some(state.bases)
    }

    /// Lets nobody wait for another base.
    pub(super) fn end_waiting(&self) {
        self.state.lock().is_over = true;
        self.has_merged.notify_all();
    }

    /// What others are to read: the base of the latest snapshot.
    ///
    /// # Errors
    /// As [`Snapshots::new`].
    pub(super) fn last_base(&self) -> Result<OwnBase, EngineError> {
        let mut cuts = self.cuts.lock();
        let latest = self
            .state
            .lock()
            .recent
            .back()
            .map(|(_, it)| Arc::clone(it));
        let latest = latest.expect("there is one from the beginning");
        // What is cut of it is offered, as there is no later one.
        let place = self.place_of(&mut cuts, &latest.snapshot)?;
        let offered = cuts[place].offered.clone();
        Ok(offered.expect("the last base is offered"))
    }
}

/// The place of the base of a snapshot, which is brought to that, if it is cut.
fn known_place(cuts: &mut VecDeque<OwnCut>, snapshot: &Snapshot) -> Option<usize> {
    let known = (0..cuts.len()).find_map(|place| Some((place, cuts[place].cut.at(snapshot)?)));
    let (place, cut) = known?;
    cuts[place].cut = cut;
    Some(place)
}

/// What others may read of a base in shards; what they may `before` stays as it is where it is the same memory.
fn offer(
    cut: &Cut,
    fabric: &Arc<ProcessFabric>,
    before: Option<&OwnBase>,
) -> Result<OwnBase, EngineError> {
    let offer = |(place, (shard, part)): (usize, &(ShardId, Snapshot))| {
        let before = before.map(|before| &*before.shards[place].1);
        Ok((*shard, Arc::new(Offered::beside(part, &**fabric, before)?)))
    };
    let shards: Result<_, EngineError> = cut.shards.iter().enumerate().map(offer).collect();
    Ok(OwnBase {
        tags: Arc::clone(&cut.digests),
        shards: shards?,
    })
}

/// The greater, the later the base of a snapshot was made.
fn age_of(snapshot: &Snapshot) -> (u64, u64) {
    (snapshot.generation(), snapshot.base().merges())
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
            Standing::Waits | Standing::Unsure { .. } => Unavailable::NotNow,
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

#[cfg(test)]
mod tests {
    use jindou_fabric::process::ProcessOptions;

    use super::*;
    use crate::{Config, Database};

    #[test]
    fn ten_merges_leave_two_bases_that_others_may_read() {
        let folder = tempfile::tempdir().unwrap();
        let config = Config {
            merge: crate::MergePolicy::never(),
            ..Config::default()
        };
        let database = Database::open_or_create(&folder.path().join("store"), config).unwrap();
        let insert = |round: u64| {
            let quad = |n: u64| format!("<http://e/s{n}> <http://e/p{}> {round} .", n % 3);
            let quads: String = (0..200).map(quad).collect();
            database
                .update(&format!("INSERT DATA {{ {quads} }}"))
                .unwrap();
            database.compact().unwrap();
        };
        insert(0);
        let fabric = ProcessFabric::new(&ProcessOptions::new(NodeId(0))).unwrap();
        let map = ShardMap::dealt(Shards::new(4).unwrap(), 2).unwrap();
        let (snapshots, first) =
            Snapshots::new(&database.graph(), (&map, NodeId(0)), &fabric, false).unwrap();
        let mut offered = vec![Arc::downgrade(&first.shards[0].1)];
        let mut regions = first.shards[0].1.regions();
        drop(first);
        for round in 1..=10 {
            let before = database.graph();
            insert(round);
            snapshots.note(&database.graph().snapshot);
            assert_eq!(snapshots.wait_for_base(round), Some(round + 1));
            // Until it is cut, queries that may be answered otherwise do not wait for that.
            let after = database.graph();
            assert!(snapshots.own_soon(&after).unwrap().is_none());
            let cutting = snapshots.cuts.lock();
            assert!(snapshots.own_soon(&after).unwrap().is_none());
            drop(cutting);
            let base = snapshots.last_base().unwrap();
            assert!(snapshots.own_soon(&after).unwrap().is_some());
            regions = regions.max(base.shards[0].1.regions());
            offered.push(Arc::downgrade(&base.shards[0].1));
            drop(base);
            // Who began with the one before asks for it, which is still there.
            drop(snapshots.own(&before).unwrap());
            let is_there = |it: &Weak<Offered>| it.strong_count() > 0;
            let there: Vec<bool> = offered.iter().rev().take(3).map(is_there).collect();
            assert_eq!(&there[..2], [true, true]);
            assert!(there.len() == 2 || !there[2], "round {round}");
            assert_eq!(offered.iter().filter(|it| is_there(it)).count(), 2);
        }
        assert!(regions < 4, "{regions}");
        snapshots.end_waiting();
        assert_eq!(snapshots.wait_for_base(11), None);
    }
}
