//! Nodes in one process, over stores in folders, and what carries messages between them: in an order that a seed
//! chooses, by links that a test breaks and makes again.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use jindou_engine::{
    Config, Database, MergePolicy, NodeId, Replica, ReplicaOptions, ReplicaStatus, ReplicaWay,
    Timing,
};

use crate::Random;

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

/// What is on its way, by sender and receiver.
#[derive(Default)]
struct State {
    queues: BTreeMap<(u32, u32), VecDeque<Vec<u8>>>,
    /// Followers whose link with the leader is up.
    up: Vec<bool>,
    /// Followers that nothing is delivered to or from.
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

struct Way {
    here: u32,
    shared: Arc<Shared>,
}

impl ReplicaWay for Way {
    fn send(&self, to: NodeId, message: Vec<u8>) -> bool {
        let mut state = lock(&self.shared.state);
        let follower = self.here.max(to.0) as usize;
        if !state.up[follower] {
            return false;
        }
        let queue = state.queues.entry((self.here, to.0)).or_default();
        queue.push_back(message);
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
                up: vec![false; nodes],
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

    fn break_link(&self, follower: usize) {
        let _one = lock(&self.shared.delivering);
        end(&self.shared, follower);
    }

    fn join(&self, follower: usize) {
        let _one = lock(&self.shared.delivering);
        let (Some(leader), Some(follows)) = (self.replica(0), self.replica(follower)) else {
            return;
        };
        if std::mem::replace(&mut lock(&self.shared.state).up[follower], true) {
            return;
        }
        leader.joined(NodeId(follower as u32));
        follows.joined(NodeId(0));
    }
}

/// Ends a link, with all that is on its way.
fn end(shared: &Shared, follower: usize) {
    let (leader, follows) = {
        let mut state = lock(&shared.state);
        if !std::mem::replace(&mut state.up[follower], false) {
            return;
        }
        state.queues.remove(&(0, follower as u32));
        state.queues.remove(&(follower as u32, 0));
        (state.replicas[0].clone(), state.replicas[follower].clone())
    };
    if let Some(leader) = leader {
        leader.lost(NodeId(follower as u32));
    }
    if let Some(follows) = follows {
        follows.lost(NodeId(0));
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
    let may_go = |(from, to): &(u32, u32)| !state.held[(*from).max(*to) as usize];
    let full = state.queues.iter().filter(|(_, queue)| !queue.is_empty());
    let full: Vec<(u32, u32)> = full.map(|(pair, _)| *pair).filter(may_go).collect();
    if full.is_empty() {
        return None;
    }
    let pair = full[random.below(full.len() as u64) as usize];
    let mut message = state.queues.get_mut(&pair)?.pop_front()?;
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
                    queue.is_empty() || state.held[(*from).max(*to) as usize]
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
            end(shared, from.max(to) as usize);
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

    pub(crate) fn with(
        folder: &Path,
        nodes: usize,
        seed: u64,
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

    /// Opens a node, and makes its links.
    pub(crate) fn open(&mut self, node: usize) {
        let mut config = Config::default();
        config.merge = self.policy;
        config.is_replicated = true;
        let database = Database::open(&self.location(node), config).expect("the store is whole");
        let way = Way {
            here: node as u32,
            shared: Arc::clone(&self.net.shared),
        };
        let names = (0..self.nodes.len()).map(|node| format!("n{node}"));
        let here = NodeId(node as u32);
        let mut options = ReplicaOptions::new(names.collect(), here, Arc::new(way));
        options.timing = QUICK;
        (self.options)(&mut options);
        let replica = database.replicate(options).expect("it is a copy");
        lock(&self.net.shared.state).replicas[node] = Some(replica);
        self.nodes[node] = Some(database);
        match node {
            0 => (1..self.nodes.len()).for_each(|node| self.net.join(node)),
            node => self.net.join(node),
        }
    }

    /// Ends a node, whatever it is about.
    pub(crate) fn close(&mut self, node: usize) {
        match node {
            0 => (1..self.nodes.len()).for_each(|node| self.net.break_link(node)),
            node => self.net.break_link(node),
        }
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
        lock(&self.net.shared.state).up[node]
    }

    pub(crate) fn break_link(&self, node: usize) {
        self.net.break_link(node);
    }

    pub(crate) fn join(&self, node: usize) {
        self.net.join(node);
    }

    /// Delivers nothing by the link with a follower, until it is let go.
    pub(crate) fn hold(&self, node: usize, is_held: bool) {
        lock(&self.net.shared.state).held[node] = is_held;
        self.net.shared.changed.notify_all();
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
        while !(state.queues.get(&pair)).is_some_and(|queue| queue.iter().any(has_text)) {
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
        self.close(node);
        let to = self.location(node);
        std::fs::remove_dir_all(&to).expect("it is a folder");
        self.node(0).backup(&to).expect("there is room");
        self.open(node);
    }
}
