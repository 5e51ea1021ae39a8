//! Merging: how do the changes become part of the base while everybody goes on?
//!
//! A merge builds a new base of the latest snapshot. Transactions go on beside it and are noted;
//! when the base is built they are brought into its ids, and the new generation takes the place
//! of the old one. Readers of older snapshots keep them. A checkpoint, which costs only what has
//! changed, bounds the log where little but the same is changed again and again.

use std::sync::{Arc, Weak};
use std::time::Duration;

use jindou_store::bulk::rebuild;
use jindou_store::{DurableStore, Snapshot, Transaction, Translator};
use parking_lot::{Condvar, Mutex};

use crate::EngineError;
use crate::database::Inner;

/// Transactions that are brought over while others wait: more are brought over before.
const FEW_QUADS: usize = 20_000;
/// Rounds of bringing over before the rest is, however much it is.
const ROUNDS: usize = 4;

/// When changes are merged into the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MergePolicy {
    /// Merge once so many quads have changed, and the share of `share_of_graph` as well.
    pub changes: u64,
    /// One in so many quads of the graph.
    pub share_of_graph: u64,
    /// Merge after so much time without a transaction if `idle_changes` quads have changed.
    pub idle: Duration,
    /// See `idle`.
    pub idle_changes: u64,
    /// Write a checkpoint once the log has so many bytes.
    pub log_bytes: u64,
}

impl Default for MergePolicy {
    fn default() -> Self {
        Self {
            changes: 100_000,
            share_of_graph: 16,
            idle: Duration::from_secs(5),
            idle_changes: 1_000,
            log_bytes: 256 << 20,
        }
    }
}

impl MergePolicy {
    /// No merge but those asked for.
    #[must_use]
    pub fn never() -> Self {
        Self {
            changes: u64::MAX,
            idle_changes: u64::MAX,
            ..Self::default()
        }
    }

    fn is_due(&self, snapshot: &Snapshot) -> bool {
        let quads = snapshot.triples() + snapshot.named_quads();
        let least = self.changes.max(quads / self.share_of_graph.max(1));
        self.changes < u64::MAX && snapshot.changes() >= least
    }

    /// True where writers must wait for the merge: changes have outgrown what it is meant for.
    pub(crate) fn is_overdue(&self, snapshot: &Snapshot) -> bool {
        let quads = snapshot.triples() + snapshot.named_quads();
        let most = self.changes.max(quads / self.share_of_graph.max(1));
        self.changes < u64::MAX && snapshot.changes() / 8 >= most
    }
}

/// What the maintenance thread waits for.
#[derive(Default)]
pub(crate) struct Signal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default)]
struct State {
    is_running: bool,
    /// Transactions since the thread last looked.
    transactions: u64,
    is_due: bool,
    stop: bool,
}

impl Signal {
    pub(crate) fn stop(&self) {
        self.state.lock().stop = true;
        self.changed.notify_all();
    }
}

impl Inner {
    /// Tells the maintenance thread of a transaction, and starts it with the first one.
    pub(crate) fn note_transaction(self: &Arc<Self>) {
        let policy = &self.config.merge;
        let latest = self.graph.load();
        let mut state = self.signal.state.lock();
        state.transactions += 1;
        if policy.is_due(&latest.snapshot) && !state.is_due {
            state.is_due = true;
            self.signal.changed.notify_all();
        }
        if state.is_running {
            return;
        }
        let inner = Arc::downgrade(self);
        let signal = Arc::clone(&self.signal);
        let idle = policy.idle;
        let thread = std::thread::Builder::new().name("jindou-merge".to_owned());
        match thread.spawn(move || maintain(&inner, &signal, idle)) {
            Ok(_) => state.is_running = true,
            Err(error) => tracing::warn!("no thread for merges: {error}"),
        }
    }

    /// Merges all changes into the base. Returns false if there were none.
    ///
    /// # Errors
    /// What the operating system says, or too many terms; nothing has changed then.
    pub(crate) fn merge(&self) -> Result<bool, EngineError> {
        let _one = self.maintenance.lock();
        let (start, directory) = {
            let mut writer = self.writer.lock();
            if writer.latest.changes() == 0 && writer.latest.known_terms() == Default::default() {
                return Ok(false);
            }
            writer.since_merge = Some(Vec::new());
            let directory = writer.store.as_ref().map(|s| Arc::clone(s.directory()));
            (writer.latest.clone(), directory)
        };
        let merged = self.merge_from(&start, directory.as_deref());
        if merged.is_err() {
            self.writer.lock().since_merge = None;
        }
        merged.map(|()| true)
    }

    fn merge_from(
        &self,
        start: &Snapshot,
        directory: Option<&jindou_store::Directory>,
    ) -> Result<(), EngineError> {
        let generation = start.generation() + 1;
        let base = self.builders().install(|| rebuild(start))?;
        let base = match directory {
            Some(directory) => DurableStore::write_next_base(directory, &base, generation)?,
            None => base,
        };
        jindou_fabric::allocator::release_free_memory();
        let mut to = Snapshot::of_base(base, generation, start.number());
        let mut moved = Vec::new();
        for _ in 0..ROUNDS {
            let (waiting, latest) = {
                let mut writer = self.writer.lock();
                let list = writer.since_merge.as_mut().expect("a merge is running");
                if quads_in(list) <= FEW_QUADS {
                    break;
                }
                (std::mem::take(list), writer.latest.clone())
            };
            bring_over(&waiting, latest, &mut to, &mut moved)?;
        }
        let mut writer = self.writer.lock();
        if let Some(reason) = &writer.failed {
            let reason = reason.clone();
            return Err(EngineError::ReadOnly { reason });
        }
        let list = writer.since_merge.as_mut().expect("a merge is running");
        let waiting = std::mem::take(list);
        let latest = writer.latest.clone();
        bring_over(&waiting, latest, &mut to, &mut moved)?;
        if let Some(store) = &mut writer.store {
            store.replace(generation, &moved)?;
        }
        writer.since_merge = None;
        writer.last = None;
        writer.latest = to.clone();
        self.planner.clear();
        self.show(to);
        Ok(())
    }

    /// One thread, so that a merge leaves the other cores to queries.
    fn builders(&self) -> &rayon::ThreadPool {
        self.builders.get_or_init(|| {
            rayon::ThreadPoolBuilder::new()
                .num_threads(1)
                .thread_name(|_| "jindou-build".to_owned())
                .build()
                .expect("the system gives a thread")
        })
    }

    /// Writes what has changed since the base, so that the log can begin anew.
    ///
    /// # Errors
    /// What the operating system says; nothing is lost then.
    pub(crate) fn checkpoint(&self) -> Result<(), EngineError> {
        let _one = self.maintenance.lock();
        let (checkpoint, directory) = {
            let mut writer = self.writer.lock();
            let latest = writer.latest.clone();
            let Some(store) = &mut writer.store else {
                return Ok(());
            };
            let directory = Arc::clone(store.directory());
            let Some(checkpoint) = store.begin_checkpoint(latest)? else {
                return Ok(());
            };
            (checkpoint, directory)
        };
        DurableStore::write_checkpoint(&directory, &checkpoint)?;
        let mut writer = self.writer.lock();
        if let Some(store) = &mut writer.store {
            store.finish_checkpoint(&checkpoint)?;
        }
        Ok(())
    }

    fn needs_checkpoint(&self) -> bool {
        let writer = self.writer.lock();
        let bytes = writer.store.as_ref().map_or(0, DurableStore::log_bytes);
        bytes >= self.config.merge.log_bytes
    }
}

fn quads_in(transactions: &[Transaction]) -> usize {
    let stages = transactions.iter().flat_map(|one| &one.stages);
    stages
        .map(|stage| stage.changes.remove.len() + stage.changes.add.len())
        .sum()
}

fn bring_over(
    transactions: &[Transaction],
    from: Snapshot,
    to: &mut Snapshot,
    moved: &mut Vec<Transaction>,
) -> Result<(), EngineError> {
    let mut translator = Translator::new(from);
    for transaction in transactions {
        moved.push(translator.apply(transaction, to)?);
    }
    Ok(())
}

/// Merges and writes checkpoints when they are due, until the database is gone.
fn maintain(inner: &Weak<Inner>, signal: &Signal, idle: Duration) {
    loop {
        let (state, was_idle) = {
            let mut state = signal.state.lock();
            let mut was_idle = false;
            if !state.is_due && !state.stop {
                let before = state.transactions;
                let timed_out = signal.changed.wait_for(&mut state, idle).timed_out();
                was_idle = timed_out && state.transactions == before;
            }
            let seen = *state;
            state.is_due = false;
            (seen, was_idle)
        };
        let Some(inner) = inner.upgrade().filter(|_| !state.stop) else {
            return;
        };
        let policy = &inner.config.merge;
        let snapshot = inner.graph.load_full();
        let changes = snapshot.snapshot.changes();
        drop(snapshot);
        let done = if state.is_due || (was_idle && changes >= policy.idle_changes) {
            inner.merge().map(drop)
        } else if inner.needs_checkpoint() {
            inner.checkpoint()
        } else {
            Ok(())
        };
        if let Err(error) = done {
            tracing::error!("changes were not merged: {error}");
        }
    }
}
