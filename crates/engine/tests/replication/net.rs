//! Nodes in one process, over stores in folders, and what carries messages between them: in an order that a seed
//! chooses, by links that a test breaks and makes again. Where the first node always leads, there are only its links
//! with the others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use jindou_engine::{
    Config, Configuration, Database, Keeper, KeeperError, MergePolicy, NodeId, Replica,
    ReplicaOptions, ReplicaStatus, ReplicaWay, Timing, Told, Versioned,
};

use crate::Random;
use crate::faults::Faults;

/// Nothing that a test waits for takes so long.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Nodes that do without each other soon, as there are tests that break many links.
const QUICK: Timing = Timing {
    beat: Duration::from_millis(5),
    lease: Duration::from_millis(80),
    grace: Duration::from_millis(100),
    patience: Duration::from_millis(20),
    wait: Duration::from_secs(10),
};

/// Messages on their way from one node to another.
#[derive(Default)]
struct Queue {
    in_order: VecDeque<Vec<u8>>,
    /// Those that may overtake them.
    ahead: VecDeque<Vec<u8>>,
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.in_order.is_empty() && self.ahead.is_empty()
    }

    fn take(&mut self, random: &mut Random) -> Option<Vec<u8>> {
        let is_ahead = self.in_order.is_empty() || random.below(2) == 0;
        let ahead = is_ahead.then(|| self.ahead.pop_front()).flatten();
        ahead.or_else(|| self.in_order.pop_front())
    }
}

/// What is on its way, by sender and receiver.
#[derive(Default)]
struct State {
    queues: BTreeMap<(u32, u32), Queue>,
    /// Links that are up, each by its two nodes, the lower one first.
    up: BTreeSet<(usize, usize)>,
    /// Nodes that nothing is delivered to or from.
    held: Vec<bool>,
    replicas: Vec<Option<Replica>>,
    /// Reasons for which a node ended a link.
    refused: Vec<String>,
    /// A byte of one in so many messages is another one; 0: of none.
    damaged: u64,
    stopped: bool,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Held while a message is delivered, or a link begins or ends.
    delivering: Mutex<()>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panicked")
}

/// The link between two nodes.
fn link(one: u32, other: u32) -> (usize, usize) {
    (one.min(other) as usize, one.max(other) as usize)
}

struct Way {
    here: u32,
    shared: Arc<Shared>,
}

impl ReplicaWay for Way {
    fn send(&self, to: NodeId, message: Vec<u8>) -> bool {
        let mut state = lock(&self.shared.state);
        if !state.up.contains(&link(self.here, to.0)) {
            return false;
        }
        let queue = state.queues.entry((self.here, to.0)).or_default();
        queue.in_order.push_back(message);
        self.shared.changed.notify_all();
        true
    }

    fn send_ahead(&self, to: NodeId, message: Vec<u8>) -> bool {
        let mut state = lock(&self.shared.state);
        if !state.up.contains(&link(self.here, to.0)) {
            return false;
        }
        let queue = state.queues.entry((self.here, to.0)).or_default();
        queue.ahead.push_back(message);
        self.shared.changed.notify_all();
        true
    }
}

/// The links between the nodes, and a thread that delivers.
struct Net {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Net {
    fn new(nodes: usize, seed: u64) -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                held: vec![false; nodes],
                replicas: vec![None; nodes],
                ..State::default()
            }),
            changed: Condvar::new(),
            delivering: Mutex::default(),
        });
        let delivering = Arc::clone(&shared);
        let thread = std::thread::spawn(move || deliver(&delivering, Random(seed)));
        Self {
            shared,
            thread: Some(thread),
        }
    }

    fn replica(&self, node: usize) -> Option<Replica> {
        lock(&self.shared.state).replicas[node].clone()
    }

    fn break_link(&self, link: (usize, usize)) {
        let _one = lock(&self.shared.delivering);
        end(&self.shared, link);
    }

    fn join(&self, link: (usize, usize)) {
        let _one = lock(&self.shared.delivering);
        let (Some(one), Some(other)) = (self.replica(link.0), self.replica(link.1)) else {
            return;
        };
        if !lock(&self.shared.state).up.insert(link) {
            return;
        }
        one.joined(NodeId(link.1 as u32));
        other.joined(NodeId(link.0 as u32));
    }
}

/// Ends a link, with all that is on its way.
fn end(shared: &Shared, link: (usize, usize)) {
    let (one, other) = {
        let mut state = lock(&shared.state);
        if !state.up.remove(&link) {
            return;
        }
        let (low, high) = (link.0 as u32, link.1 as u32);
        state.queues.remove(&(low, high));
        state.queues.remove(&(high, low));
        (
            state.replicas[link.0].clone(),
            state.replicas[link.1].clone(),
        )
    };
    if let Some(one) = one {
        one.lost(NodeId(link.1 as u32));
    }
    if let Some(other) = other {
        other.lost(NodeId(link.0 as u32));
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        lock(&self.shared.state).stopped = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("messages were delivered");
        }
    }
}

/// The next message, of a link that the seed chooses.
fn next(state: &mut State, random: &mut Random) -> Option<((u32, u32), Vec<u8>)> {
    let may_go = |(from, to): &(u32, u32)| !state.held[*from as usize] && !state.held[*to as usize];
    let full = state.queues.iter().filter(|(_, queue)| !queue.is_empty());
    let full: Vec<(u32, u32)> = full.map(|(pair, _)| *pair).filter(may_go).collect();
    if full.is_empty() {
        return None;
    }
    let pair = full[random.below(full.len() as u64) as usize];
    let mut message = state.queues.get_mut(&pair)?.take(random)?;
    if state.damaged > 0 && random.below(state.damaged) == 0 {
        let place = random.below(message.len() as u64) as usize;
        message[place] ^= 1 << random.below(8);
    }
    Some((pair, message))
}

fn deliver(shared: &Shared, mut random: Random) {
    loop {
        {
            let mut state = lock(&shared.state);
            let is_empty = |state: &State| {
                let mut queues = state.queues.iter();
                queues.all(|((from, to), queue)| {
                    queue.is_empty() || state.held[*from as usize] || state.held[*to as usize]
                })
            };
            while is_empty(&state) && !state.stopped {
                state = shared.changed.wait(state).expect("nobody panicked");
            }
            if state.stopped {
                return;
            }
        }
        let _one = lock(&shared.delivering);
        let (((from, to), message), replica) = {
            let mut state = lock(&shared.state);
            let Some(chosen) = next(&mut state, &mut random) else {
                continue;
            };
            let replica = state.replicas[chosen.0.1 as usize].clone();
            (chosen, replica)
        };
        let Some(replica) = replica else { continue };
        if let Err(reason) = replica.received(NodeId(from), message) {
            lock(&shared.state).refused.push(reason);
            end(shared, link(from, to));
        }
    }
}

/// Copies of a store.
pub(crate) struct Cluster {
    net: Net,
    folder: PathBuf,
    nodes: Vec<Option<Database>>,
    policy: MergePolicy,
    options: Box<dyn Fn(&mut ReplicaOptions) + Sync>,
    /// Any node may lead: who does is kept here.
    kept: Option<Arc<Kept>>,
    /// What befalls the devices of the nodes.
    faults: Vec<Arc<Faults>>,
}

/// What all nodes that may lead agree on.
#[derive(Default)]
struct Kept {
    now: Mutex<Versioned>,
    told: Mutex<Vec<(u64, Told)>>,
    /// Nodes that may change nothing.
    cut_off: Mutex<BTreeSet<usize>>,
    /// How often one had to be told that what is kept is older than what it knows.
    refused: AtomicUsize,
}

/// One node's end of it.
struct KeptFor {
    node: usize,
    kept: Arc<Kept>,
}

impl std::fmt::Debug for KeptFor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeptFor({})", self.node)
    }
}

/// Hears no more once this is dropped.
struct Watch(Arc<Kept>, u64);

impl Drop for Watch {
    fn drop(&mut self) {
        let mut told = lock(&self.0.told);
        told.retain(|(number, _)| *number != self.1);
    }
}

impl Keeper for KeptFor {
    fn replace(&self, expected: u64, by: &Configuration) -> Result<Versioned, KeeperError> {
        if lock(&self.kept.cut_off).contains(&self.node) {
            return Err(KeeperError::Refused("it is cut off".to_owned()));
        }
        let mut now = lock(&self.kept.now);
        if (1..expected).contains(&now.version) {
            self.kept.refused.fetch_add(1, Relaxed);
            return Err(KeeperError::Refused("it was restored".to_owned()));
        }
        let is_replaced = now.version == expected || now.version == 0;
        if is_replaced {
            *now = Versioned {
                version: expected + 1,
                configuration: by.clone(),
            };
        }
        let kept = now.clone();
        drop(now);
        if is_replaced {
            let told: Vec<Told> = lock(&self.kept.told)
                .iter()
                .map(|(_, told)| Arc::clone(told))
                .collect();
            told.iter().for_each(|told| told(kept.clone()));
        }
        Ok(kept)
    }

    fn watch(&self, told: Told) -> Box<dyn Send> {
        let number = {
            let mut all = lock(&self.kept.told);
            let number = all.last().map_or(0, |(last, _)| last + 1);
            all.push((number, Arc::clone(&told)));
            number
        };
        let now = lock(&self.kept.now).clone();
        told(now);
        Box::new(Watch(Arc::clone(&self.kept), number))
    }

    fn lets_form(&self) -> bool {
        self.node == 0
    }

    fn lets_take_over(&self) -> bool {
        true
    }
}

/// Merges whenever it may.
pub(crate) fn eager() -> MergePolicy {
    let mut policy = MergePolicy::never();
    policy.idle_changes = 1;
    // By asking only.
    policy.idle = Duration::from_secs(1 << 20);
    policy
}

impl Cluster {
    /// Copies of what `make` puts into a store, as nodes that are all there.
    pub(crate) fn new(
        folder: &Path,
        nodes: usize,
        seed: u64,
        make: impl FnOnce(&Database),
    ) -> Self {
        Self::with(folder, nodes, seed, |_| (), make)
    }

    /// The same, of which any may lead, while two are there.
    pub(crate) fn elected(folder: &Path, nodes: usize, seed: u64) -> Self {
        Self::of(folder, (nodes, seed), Some(Arc::default()), |_| (), |_| ())
    }

    pub(crate) fn with(
        folder: &Path,
        nodes: usize,
        seed: u64,
        options: impl Fn(&mut ReplicaOptions) + Sync + 'static,
        make: impl FnOnce(&Database),
    ) -> Self {
        Self::of(folder, (nodes, seed), None, options, make)
    }

    fn of(
        folder: &Path,
        (nodes, seed): (usize, u64),
        kept: Option<Arc<Kept>>,
        options: impl Fn(&mut ReplicaOptions) + Sync + 'static,
        make: impl FnOnce(&Database),
    ) -> Self {
        let mut config = Config::default();
        config.merge = MergePolicy::never();
        let first = folder.join("node0");
        let database = Database::open_or_create(&first, config).expect("there is room");
        make(&database);
        for node in 1..nodes {
            let to = folder.join(format!("node{node}"));
            database.backup(&to).expect("there is room");
        }
        drop(database);
        let mut cluster = Self {
            net: Net::new(nodes, seed),
            folder: folder.to_owned(),
            nodes: (0..nodes).map(|_| None).collect(),
            policy: eager(),
            options: Box::new(options),
            kept,
            faults: (0..nodes).map(|_| Faults::new()).collect(),
        };
        (0..nodes).for_each(|node| cluster.open(node));
        cluster
    }

    pub(crate) fn count(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn location(&self, node: usize) -> PathBuf {
        self.folder.join(format!("node{node}"))
    }

    /// What befalls the device of a node.
    pub(crate) fn faults(&self, node: usize) -> &Faults {
        &self.faults[node]
    }

    /// Opens a node, and makes its links.
    pub(crate) fn open(&mut self, node: usize) {
        let mut config = Config::default();
        config.merge = self.policy;
        config.is_replicated = true;
        self.faults[node].configure(&mut config);
        let database = Database::open(&self.location(node), config).expect("the store is whole");
        let way = Way {
            here: node as u32,
            shared: Arc::clone(&self.net.shared),
        };
        let names = (0..self.nodes.len()).map(|node| format!("n{node}"));
        let here = NodeId(node as u32);
        let mut options = ReplicaOptions::new(names.collect(), here, Arc::new(way));
        options.timing = QUICK;
        if let Some(kept) = &self.kept {
            let kept = Arc::clone(kept);
            options.keeper = Some(Arc::new(KeptFor { node, kept }));
        }
        (self.options)(&mut options);
        let replica = database.replicate(options).expect("it is a copy");
        lock(&self.net.shared.state).replicas[node] = Some(replica);
        self.nodes[node] = Some(database);
        self.join(node);
    }

    /// The links that a node has.
    fn links_of(&self, node: usize) -> impl Iterator<Item = (usize, usize)> {
        let any_leads = self.kept.is_some();
        let others = (0..self.nodes.len()).filter(move |other| *other != node);
        let linked = others.filter(move |other| any_leads || node == 0 || *other == 0);
        linked.map(move |other| link(node as u32, other as u32))
    }

    /// Ends a node, whatever it is about.
    pub(crate) fn close(&mut self, node: usize) {
        self.break_link(node);
        lock(&self.net.shared.state).replicas[node] = None;
        self.nodes[node] = None;
    }

    /// The database of a node that is open.
    pub(crate) fn node(&self, node: usize) -> &Database {
        self.nodes[node].as_ref().expect("it is open")
    }

    pub(crate) fn is_open(&self, node: usize) -> bool {
        self.nodes[node].is_some()
    }

    pub(crate) fn replica(&self, node: usize) -> Replica {
        self.net.replica(node).expect("it is open")
    }

    pub(crate) fn is_linked(&self, node: usize) -> bool {
        lock(&self.net.shared.state).up.contains(&(0, node))
    }

    /// Breaks all links of a node.
    pub(crate) fn break_link(&self, node: usize) {
        self.links_of(node)
            .for_each(|link| self.net.break_link(link));
    }

    /// Makes all links of a node with others that are open.
    pub(crate) fn join(&self, node: usize) {
        self.links_of(node).for_each(|link| self.net.join(link));
    }

    /// The node that leads, if one does.
    pub(crate) fn leads(&self) -> Option<usize> {
        (0..self.nodes.len()).find(|node| self.is_leader(*node))
    }

    fn is_leader(&self, node: usize) -> bool {
        let status = self.nodes[node].as_ref().and_then(Database::replica_status);
        matches!(status, Some(ReplicaStatus::Leads { .. }))
    }

    /// How all nodes that are open stand.
    pub(crate) fn standings(&self) -> Vec<(usize, Option<ReplicaStatus>)> {
        let open = self.nodes.iter().enumerate();
        let open = open.filter_map(|(node, database)| Some((node, database.as_ref()?)));
        open.map(|(node, database)| (node, database.replica_status()))
            .collect()
    }

    /// Closes nodes that are to begin anew, and opens them.
    pub(crate) fn begin_anew(&mut self) {
        for node in 0..self.nodes.len() {
            let replica = self.net.replica(node);
            if replica.is_some_and(|replica| replica.begins_anew().is_some()) {
                self.close(node);
                self.open(node);
            }
        }
    }

    /// What is kept of who leads.
    pub(crate) fn kept(&self) -> Versioned {
        let kept = self.kept.as_ref().expect("any node may lead");
        lock(&kept.now).clone()
    }

    /// Something else is kept, which nobody is told of.
    pub(crate) fn keep(&self, now: Versioned) {
        let kept = self.kept.as_ref().expect("any node may lead");
        *lock(&kept.now) = now;
    }

    /// How often nodes that would lead by what they know were told that what is kept is older.
    pub(crate) fn refused_to_lead(&self) -> usize {
        let kept = self.kept.as_ref().expect("any node may lead");
        kept.refused.load(Relaxed)
    }

    /// Delivers nothing by the link with a follower, until it is let go.
    pub(crate) fn hold(&self, node: usize, is_held: bool) {
        lock(&self.net.shared.state).held[node] = is_held;
        self.net.shared.changed.notify_all();
    }

    /// Delivers nothing to and from a node that may lead, which changes nothing of who does, until it is let go.
    pub(crate) fn cut_off(&self, node: usize, is_cut_off: bool) {
        let kept = self.kept.as_ref().expect("any node may lead");
        match is_cut_off {
            true => lock(&kept.cut_off).insert(node),
            false => lock(&kept.cut_off).remove(&node),
        };
        self.hold(node, is_cut_off);
    }

    /// Has one in so many messages be another one.
    pub(crate) fn damage(&self, one_in: u64) {
        lock(&self.net.shared.state).damaged = one_in;
    }

    /// Waits until a message that has this text is on its way.
    pub(crate) fn wait_for_message(&self, from: usize, to: usize, text: &str) {
        let pair = (from as u32, to as u32);
        let has_text = |message: &Vec<u8>| {
            let mut windows = message.windows(text.len());
            windows.any(|window| window == text.as_bytes())
        };
        let mut state = lock(&self.net.shared.state);
        while !(state.queues.get(&pair)).is_some_and(|queue| queue.in_order.iter().any(has_text)) {
            let waited = self.net.shared.changed.wait_timeout(state, LONG);
            let (now, timeout) = waited.expect("nobody panicked");
            assert!(!timeout.timed_out(), "no message from {from} to {to}");
            state = now;
        }
    }

    /// Reasons for which links were ended.
    pub(crate) fn refused(&self) -> Vec<String> {
        lock(&self.net.shared.state).refused.clone()
    }

    /// Why a follower follows no more.
    pub(crate) fn ended(&self, node: usize) -> Option<String> {
        match self.node(node).replica_status() {
            Some(ReplicaStatus::Follows { ended, .. }) => ended,
            _ => None,
        }
    }

    /// Waits until a follower has what the leader has; false if it cannot.
    pub(crate) fn catches_up(&self, node: usize) -> bool {
        let last = self.node(0).snapshot_number();
        let has_it = self.node(node).wait_for_snapshot(last, LONG);
        assert!(
            has_it || self.ended(node).is_some(),
            "node {node} stays behind"
        );
        has_it
    }

    /// Copies the leader's store to a follower.
    pub(crate) fn copy_anew(&mut self, node: usize) {
        let leader = self.leads().expect("one leads");
        self.close(node);
        let to = self.location(node);
        std::fs::remove_dir_all(&to).expect("it is a folder");
        self.node(leader).backup(&to).expect("there is room");
        self.open(node);
    }
}
