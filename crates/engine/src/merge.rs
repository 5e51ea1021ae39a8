//! Merging: how do the changes become part of the base while everybody goes on?
//!
//! A merge writes the segments of some predicates anew, with what the latest snapshot changed in
//! them. Transactions go on beside it, and as no term gets another id, what they did is brought upon
//! the new base by taking away what that has. Readers of older snapshots keep them. The base becomes
//! current with a checkpoint of what it lacks; a checkpoint alone bounds the log where little but the
//! same is changed again and again.

use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jindou_model::{PredicateId, SnapshotNumber, TermId};
use jindou_store::bulk::rebuild;
use jindou_store::{
    Base, DurableStore, FoldRule, Merged, PredicateChanges, Rebase, Snapshot, Transaction,
};
use parking_lot::{Condvar, Mutex, MutexGuard};
use rustc_hash::FxHashSet;

use crate::EngineError;
use crate::database::Inner;
use crate::deadline::{Deadline, TURN_LOOK};
use crate::graph::StoredGraph;
use crate::merge_underway::MergeUnderway;
use crate::replica::Owed;
use crate::turn::Occupation;
use crate::writer::Writer;

/// A merge takes a predicate with it of which one in so many edges changed, or in
/// [`MergePolicy::share_of_graph`] if that is more.
const DUE_SHARE: u64 = 16;
/// In a quiet moment, one in so many.
const IDLE_DUE_SHARE: u64 = 256;

/// In a quiet moment lists are written out if one in so many of their edges changed.
const IDLE_SHARE: usize = 1_024;

/// When changes are merged into the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MergePolicy {
    /// Merge once so many quads of a predicate, or of the graph, have changed, and the share of
    /// `share_of_graph` as well.
    pub changes: u64,
    /// One in so many quads of the predicate, or of the graph.
    pub share_of_graph: u64,
    /// Merge after so much time without a transaction if `idle_changes` quads have changed, those
    /// predicates of which it is worth it.
    pub idle: Duration,
    /// See `idle`.
    pub idle_changes: u64,
    /// Merge once the terms added since the last merge take this many bytes, whether any quad
    /// still has them or not, and the share of `share_of_graph` of the base's bytes as well.
    pub term_bytes: u64,
    /// Merge after `idle` without a transaction if these terms take this many bytes.
    pub idle_term_bytes: u64,
    /// Write out the lists of changed keys, which are slow to read as changes, once so many edges
    /// have changed since the last time, and a quarter of all changes. See [`Database::fold`].
    ///
    /// [`Database::fold`]: crate::Database::fold
    pub fold_changes: u64,
    /// Or after so much time without a transaction.
    pub fold_idle: Duration,
    /// Write a checkpoint once the log has so many bytes.
    pub log_bytes: u64,
    /// Time until a merge or checkpoint that failed is tried again; doubled each time it fails
    /// again, eight times at most.
    pub retry: Duration,
}

/// Writers wait once there is this many times what makes a merge due.
const OVERDUE: u64 = 8;
/// What makes a merge due is this many times as much while an update searches the graph: it would have
/// to begin anew.
const DUE_BESIDE_SEARCH: u64 = 4;
/// And this many times during the rest that follows a merge: where data keeps coming, fewer and larger merges
/// write the base anew less often.
const DUE_WHILE_RESTING: u64 = 2;
/// The rest lasts three times the duration of the merge,
const REST: u32 = 3;
/// and no longer than this: the merge may have waited for a backup.
const LONGEST_REST: Duration = Duration::from_secs(60);

/// What a merge would come at a bad time for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    Nothing,
    /// The last merge, which rests.
    Rest,
    /// Updates that search the graph.
    Search,
}

impl Beside {
    /// How many times as much makes a merge due.
    fn times(self) -> u64 {
        match self {
            Self::Nothing => 1,
            Self::Rest => DUE_WHILE_RESTING,
            Self::Search => DUE_BESIDE_SEARCH,
        }
    }
}

/// How often the time until the next attempt is doubled.
const MOST_DOUBLINGS: u32 = 8;

impl Default for MergePolicy {
    fn default() -> Self {
        Self {
            changes: 100_000,
            share_of_graph: 16,
            idle: Duration::from_secs(5),
            idle_changes: 1_000,
            term_bytes: 32 << 20,
            idle_term_bytes: 4 << 20,
            fold_changes: 4_096,
            fold_idle: Duration::from_millis(50),
            log_bytes: 256 << 20,
            retry: Duration::from_secs(1),
        }
    }
}

impl MergePolicy {
    /// For a database that is only read: nothing is written, lists of changed keys are written out in
    /// memory.
    pub(crate) fn of_reader(self) -> Self {
        Self {
            fold_changes: self.fold_changes,
            fold_idle: self.fold_idle,
            ..Self::never()
        }
    }

    /// No merge but those asked for.
    #[must_use]
    pub fn never() -> Self {
        Self {
            changes: u64::MAX,
            idle_changes: u64::MAX,
            term_bytes: u64::MAX,
            idle_term_bytes: u64::MAX,
            ..Self::default()
        }
    }

    fn is_due(&self, snapshot: &Snapshot) -> bool {
        self.is_grown(snapshot, 1, 0)
    }

    /// True where a merge is worth its cost after the time `idle`.
    fn is_due_when_idle(&self, snapshot: &Snapshot) -> bool {
        snapshot.changes() >= self.idle_changes
            || snapshot.appended_bytes() as u64 >= self.idle_term_bytes
    }

    /// The merge that is due after so much time without a transaction, if one is.
    fn due(&self, snapshot: &Snapshot, quiet: Duration, beside: Beside) -> Option<Which<'static>> {
        let is_idle = quiet >= self.idle && beside != Beside::Search;
        let is_due = self.is_grown(snapshot, beside.times(), 0);
        let which = match is_due {
            true => self.due_share(),
            false if is_idle && self.is_due_when_idle(snapshot) => Which::Share(IDLE_DUE_SHARE),
            false => return None,
        };
        let terms = snapshot.appended_bytes() as u64;
        let is_worth_it = terms >= self.idle_term_bytes || !which.of(snapshot).is_empty();
        is_worth_it.then_some(which)
    }

    /// What a merge takes with it that is due: where all that changed is so large a part of the graph,
    /// some predicate is, too.
    fn due_share(&self) -> Which<'static> {
        Which::Share(DUE_SHARE.max(self.share_of_graph))
    }

    /// True where what came since the last merge is this many times what a merge is meant for, but
    /// for so many bytes of terms.
    fn is_grown(&self, snapshot: &Snapshot, times: u64, spared: u64) -> bool {
        let share = self.share_of_graph.max(1);
        if times == 1 && snapshot.crowded_changes(share) >= self.changes {
            return true;
        }
        let growth = Growth::of(snapshot);
        let growth = Growth {
            term_bytes: growth.term_bytes.saturating_sub(spared),
            ..growth
        };
        self.is_grown_by(snapshot, times, growth)
    }

    /// True if this growth is at least `times` the growth at which a merge is due.
    fn is_grown_by(&self, snapshot: &Snapshot, times: u64, growth: Growth) -> bool {
        let share = self.share_of_graph.max(1);
        let has_grown = |now: u64, least: u64, base: &dyn Fn() -> u64| {
            let now = now / times;
            // The base is looked at only where it matters.
            least < u64::MAX && now >= least && now >= base() / share
        };
        let quads = || snapshot.triples() + snapshot.named_quads();
        has_grown(growth.changes, self.changes, &quads)
            || has_grown(growth.term_bytes, self.term_bytes, &|| {
                snapshot.base().footprint().total() as u64
            })
    }

    /// True where lists of changed keys are to be written out.
    fn is_fold_due(&self, snapshot: &Snapshot) -> bool {
        snapshot.recent_changes() >= self.fold_changes.max(snapshot.changes() / 4)
    }

    /// True where writers must wait for the merge: changes have outgrown what it is meant for. The
    /// terms of a load, of so many bytes, become part of the base with it.
    pub(crate) fn is_overdue(&self, snapshot: &Snapshot, of_load: u64) -> bool {
        self.is_grown(snapshot, OVERDUE, of_load)
    }

    /// As [`Self::is_overdue`], where this were all that came since the last merge.
    pub(crate) fn is_overdue_at(&self, snapshot: &Snapshot, growth: Growth) -> bool {
        self.is_grown_by(snapshot, OVERDUE, growth)
    }
}

/// What came since some merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Growth {
    /// Quads added or removed.
    pub(crate) changes: u64,
    /// Of terms that were added.
    pub(crate) term_bytes: u64,
}

impl Growth {
    /// What came to a snapshot since the last merge; of terms, what has come until now.
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        Self {
            changes: snapshot.changes(),
            term_bytes: snapshot.appended_bytes() as u64,
        }
    }

    /// What came after `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            changes: self.changes.saturating_sub(before.changes),
            term_bytes: self.term_bytes.saturating_sub(before.term_bytes),
        }
    }
}

/// What the maintenance thread waits for.
#[derive(Default)]
pub(crate) struct Signal {
    state: Mutex<State>,
    changed: Condvar,
    /// The thread has tried what was due.
    attempted: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Clone, Copy, Default)]
struct State {
    is_running: bool,
    /// Transactions since the thread last looked.
    transactions: u64,
    is_due: bool,
    stop: bool,
}

/// What keeps merges and checkpoints from being done.
#[derive(Default)]
pub(crate) struct Trouble(Mutex<Option<Failed>>);

#[derive(Clone)]
struct Failed {
    reason: String,
    times: u32,
    /// Not to be tried again before.
    until: Option<Instant>,
}

impl Trouble {
    fn note(&self, done: Result<(), String>, retry: Duration) {
        let mut failed = self.0.lock();
        *failed = done.err().map(|reason| {
            let times = failed.as_ref().map_or(0, |failed| failed.times + 1);
            let wait = retry.saturating_mul(1 << times.min(MOST_DOUBLINGS));
            Failed {
                reason,
                times,
                until: Instant::now().checked_add(wait),
            }
        });
    }

    /// When to try again after a failure; `Err` is never.
    fn until(&self) -> Option<Result<Instant, ()>> {
        let failed = self.0.lock();
        failed.as_ref().map(|failed| failed.until.ok_or(()))
    }

    /// Why the last merge or checkpoint failed, if it did.
    pub(crate) fn last(&self) -> Option<String> {
        self.0.lock().as_ref().map(|failed| failed.reason.clone())
    }

    /// Why nobody should try now.
    pub(crate) fn reason(&self) -> Option<String> {
        let failed = self.0.lock();
        let is_waiting = |failed: &&Failed| failed.until.is_none_or(|until| Instant::now() < until);
        failed
            .as_ref()
            .filter(is_waiting)
            .map(|failed| failed.reason.clone())
    }
}

impl Signal {
    /// Ends the maintenance thread, and waits until it has ended.
    pub(crate) fn stop(&self) {
        self.state.lock().stop = true;
        self.changed.notify_all();
        if let Some(thread) = self.thread.lock().take() {
            // What it panicked with was printed.
            let _ = thread.join();
        }
    }

    /// Has those look again who wait for what the thread does.
    pub(crate) fn tell_attempted(&self) {
        self.attempted.notify_all();
    }

    fn is_stopped(&self) -> bool {
        self.state.lock().stop
    }

    /// Waits until a merge is due or so much time has passed; true if there was no transaction.
    fn wait(&self, idle: Duration) -> (State, bool) {
        let mut state = self.state.lock();
        let mut was_idle = false;
        if !state.is_due && !state.stop {
            let before = state.transactions;
            let timed_out = self.changed.wait_for(&mut state, idle).timed_out();
            was_idle = timed_out && state.transactions == before;
        }
        let seen = *state;
        state.is_due = false;
        (seen, was_idle)
    }

    /// Waits until then, whatever is due meanwhile; for ever where that is no time.
    fn wait_until(&self, until: Result<Instant, ()>) -> State {
        let mut state = self.state.lock();
        while !state.stop {
            match until {
                Ok(until) if self.changed.wait_until(&mut state, until).timed_out() => break,
                Ok(_) => {}
                Err(()) => self.changed.wait(&mut state),
            }
        }
        let seen = *state;
        state.is_due = false;
        seen
    }
}

/// True if a merge of these predicates of a snapshot would change nothing.
fn has_nothing(start: &Snapshot, predicates: &[PredicateId]) -> bool {
    predicates.is_empty() && start.known_terms() == start.base().term_counts()
}

impl Inner {
    /// Tells the maintenance thread of a transaction, and starts it with the first one.
    pub(crate) fn note_transaction(self: &Arc<Self>) {
        let policy = &self.config.merge;
        let latest = self.graph.load();
        let mut state = self.signal.state.lock();
        state.transactions += 1;
        let merges = self.check_may_merge().is_ok();
        let is_due = merges && policy.is_due(&latest.snapshot);
        let is_due = is_due || policy.is_fold_due(&latest.snapshot);
        if is_due && !state.is_due {
            state.is_due = true;
            self.signal.changed.notify_all();
        }
        self.start_maintenance(&mut state);
    }

    /// Has the maintenance thread look at what is due now.
    pub(crate) fn note_due(self: &Arc<Self>) {
        let mut state = self.signal.state.lock();
        state.is_due = true;
        self.signal.changed.notify_all();
        self.start_maintenance(&mut state);
    }

    /// Starts the maintenance thread of a database that was opened with changes in its log, which
    /// may be due for a merge.
    pub(crate) fn note_opening(self: &Arc<Self>) {
        let latest = self.graph.load();
        if !latest.snapshot.is_merged() {
            self.start_maintenance(&mut self.signal.state.lock());
        }
    }

    /// Has the changes merged in the background, and waits a moment for it.
    ///
    /// # Errors
    /// As [`Deadline::left`]; as [`Inner::merge`], if this thread has to merge itself.
    pub(crate) fn ask_for_merge(self: &Arc<Self>, deadline: &Deadline) -> Result<(), EngineError> {
        let left = deadline.left()?.unwrap_or(TURN_LOOK);
        let mut state = self.signal.state.lock();
        self.start_maintenance(&mut state);
        if !state.is_running {
            drop(state);
            let merged = self.merge(self.config.merge.due_share(), deadline);
            return merged.map(drop).map_err(|error| match error {
                // It is the update's own time that is over.
                EngineError::Busy { limit, .. } => EngineError::Timeout { limit },
                error => error,
            });
        }
        state.is_due = true;
        self.signal.changed.notify_all();
        self.signal
            .attempted
            .wait_for(&mut state, left.min(TURN_LOOK));
        Ok(())
    }

    fn start_maintenance(self: &Arc<Self>, state: &mut State) {
        if state.is_running {
            return;
        }
        let policy = &self.config.merge;
        let inner = Arc::downgrade(self);
        let signal = Arc::clone(&self.signal);
        let policy = *policy;
        let thread = std::thread::Builder::new().name("jindou-merge".to_owned());
        match thread.spawn(move || maintain(&inner, &signal, policy)) {
            Ok(thread) => {
                *self.signal.thread.lock() = Some(thread);
                state.is_running = true;
            }
            Err(error) => tracing::warn!("no thread for merges: {error}"),
        }
    }

    /// Merges the changes of some predicates into the base, which takes its time once it has begun.
    /// Returns false if there were none.
    ///
    /// # Errors
    /// As [`Turn::take`](crate::turn::Turn::take), before it begins; what the operating system says,
    /// or too many terms. Nothing has changed then.
    pub(crate) fn merge(&self, which: Which<'_>, deadline: &Deadline) -> Result<bool, EngineError> {
        let _one = self.turn.take(Occupation::Merge, deadline)?;
        let writer = self.take_writer(Occupation::Merge, deadline)?;
        writer.check_opened_to_write()?;
        self.check_may_merge()?;
        // To have waited in vain is no failure of the store, and neither is to have asked a reader.
        let start = writer.begin();
        let merged = start.and_then(|start| {
            let predicates = which.of(&start);
            if !matches!(which, Which::Terms) && has_nothing(&start, &predicates) {
                return Ok(false);
            }
            self.merge_from(writer, start, predicates)
        });
        self.note_merge(merged)
    }

    /// Makes a merge that the leader of a cluster made, too: of a snapshot that the latest one came after. Returns false if
    /// that is not of the latest base any more, or nothing changed.
    ///
    /// # Errors
    /// As [`Inner::merge`].
    pub(crate) fn merge_owed(&self, owed: &Owed, deadline: &Deadline) -> Result<bool, EngineError> {
        let _one = self.turn.take(Occupation::Merge, deadline)?;
        let writer = self.take_writer(Occupation::Merge, deadline)?;
        if !writer.latest.is_of_generation_of(&owed.start) {
            return Ok(false);
        }
        let predicates = owed.predicates();
        if has_nothing(&owed.start, &predicates) {
            return Ok(false);
        }
        let merged = self.merge_from(writer, owed.start.clone(), predicates);
        self.note_merge(merged)
    }

    fn note_merge(&self, merged: Result<bool, EngineError>) -> Result<bool, EngineError> {
        if merged.is_err() {
            self.writer.lock().abandon();
        }
        self.note_attempt(&merged);
        merged
    }

    /// Numbers all terms anew, as a first load of the graph would: no update is taken meanwhile.
    ///
    /// # Errors
    /// As [`Inner::merge`]; [`EngineError::InUse`] while windows of streams hold ids.
    pub(crate) fn renumber(&self, deadline: &Deadline) -> Result<(), EngineError> {
        let _one = self.turn.take(Occupation::Merge, deadline)?;
        let mut writer = self.take_writer(Occupation::Merge, deadline)?;
        writer.check_opened_to_write()?;
        self.check_may_renumber()?;
        self.streams.check_without_tuples()?;
        let start = writer.begin()?;
        let base = self.builders()?.install(|| rebuild(&start))?;
        start.base().check()?;
        self.replace_all(&mut writer, base, start.number())
    }

    /// Makes a base whose ids are others than before the latest: that of a first load, or of a graph
    /// numbered anew.
    pub(crate) fn replace_all(
        &self,
        writer: &mut Writer,
        base: Base,
        number: SnapshotNumber,
    ) -> Result<(), EngineError> {
        let generation = writer.latest.generation() + 1;
        let written = match &self.directory {
            None => Ok(base),
            Some(directory) => DurableStore::write_next_base(directory, &base, generation)
                .map_err(EngineError::from),
        };
        let replaced = written.and_then(|base| {
            let to = Snapshot::of_base(base, generation, number);
            writer.replace(&to)
        });
        if let Err(error) = replaced {
            writer.abandon();
            return Err(error);
        }
        self.forget_plans();
        self.show(writer.latest.clone());
        Ok(())
    }

    /// Writes out the lists of keys that changed, as far as `rule` goes. Returns false if there
    /// were none.
    ///
    /// # Errors
    /// As [`Turn::take`](crate::turn::Turn::take), before it begins; [`EngineError::ReadOnly`] after
    /// the log failed.
    pub(crate) fn fold(&self, rule: FoldRule, deadline: &Deadline) -> Result<bool, EngineError> {
        let _one = self.turn.take(Occupation::Fold, deadline)?;
        let start = self.take_writer(Occupation::Fold, deadline)?.begin_fold()?;
        let fold = start.fold(rule);
        if fold.is_empty() {
            return Ok(false);
        }
        let latest = {
            let mut writer = self.writer.lock();
            if !writer.latest.is_of_generation_of(&start) {
                return Ok(false);
            }
            writer.latest.read_through(fold);
            writer.latest.clone()
        };
        // Others will be seen with the next transaction that is.
        let _one = self.showing.lock();
        if latest.place() == self.graph.load().snapshot.place() {
            self.graph.store(Arc::new(StoredGraph { snapshot: latest }));
        }
        Ok(true)
    }

    fn note_attempt<T>(&self, done: &Result<T, EngineError>) {
        let done = match done {
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        };
        self.trouble.note(done, self.config.merge.retry);
    }

    /// Merges what had changed at a snapshot, `writer`'s latest or one before that of the same base; the caller has the
    /// turn.
    fn merge_from(
        &self,
        writer: MutexGuard<'_, Writer>,
        start: Snapshot,
        predicates: Vec<PredicateId>,
    ) -> Result<bool, EngineError> {
        let last = writer.last.clone();
        let directory = writer.store.as_ref().map(|s| Arc::clone(s.directory()));
        self.streams.begin_counting_terms();
        start.close_extents();
        if let Some(leader) = &writer.leads {
            let merged: FxHashSet<PredicateId> = predicates.iter().copied().collect();
            let changed = start.changed_predicates().into_iter();
            let changed = changed.map(|one| one.predicate);
            let unmerged: Vec<PredicateId> = changed.filter(|id| !merged.contains(id)).collect();
            leader.queue_merge(start.number(), &unmerged);
        }
        drop(writer);
        let underway = self.note_underway(MergeUnderway::new(&start, &predicates));
        if let Some((log, ticket)) = last {
            // What is not on the device is not seen either, and its log may have failed.
            let synced = log.sync(ticket);
            synced.map_err(|error| self.writer.lock().refused(error))?;
        }
        if let Some(leader) = self.leader() {
            leader.send(start.number());
        }
        let of_start = start.clone();
        let merged = self
            .builders()?
            .install(|| Merged::new(start, predicates))?;
        let candidates = self.streams.take_candidates();
        let merged = merged.considering(candidates.terms());
        of_start.base().check()?;
        self.go_on()?;
        let merged = match &directory {
            Some(directory) => DurableStore::write_merged(directory, merged)?,
            None => merged,
        };
        self.go_on()?;
        jindou_fabric::allocator::release_free_memory();
        self.go_over(merged, &of_start)?;
        drop(underway);
        candidates.settle();
        self.streams.count_terms(&self.graph.load().snapshot);
        drop(of_start);
        self.checkpoint_now(self.writer.lock())?;
        Ok(true)
    }

    /// Brings the latest snapshot, and the one that readers see, upon a merged base.
    fn go_over(&self, merged: Merged, start: &Snapshot) -> Result<(), EngineError> {
        let mut writer = self.writer.lock();
        // Nobody may write to what failed meanwhile.
        let latest = writer.begin_fold()?;
        let rebase = Rebase::new(merged, &latest);
        let mut latest = rebase.apply(&latest);
        if let Some(follower) = self.follower() {
            follower.rebase_owed(start, |owed| rebase.apply(owed));
        }
        if let Some(store) = &mut writer.store {
            store.keep(latest.base());
        }
        let unused = self.streams.without_held(rebase.unused());
        let forgets = self.forget(&mut writer, &mut latest, &unused);
        writer.latest = latest.clone();
        match forgets {
            true => writer.tell_of_next(),
            false => writer.tell(),
        }
        if forgets {
            self.forget_plans();
            drop(writer);
            // It is a transaction of its own, which is seen once it is on the device.
            self.show_latest();
            return Ok(());
        }
        let _one = self.showing.lock();
        let seen = &self.graph.load().snapshot;
        // Else what is being written to the device will be seen, upon the new base or the old.
        if seen.is_of_generation_of(start) && seen.number() >= start.number() {
            let snapshot = match seen.number() == latest.number() {
                true => latest,
                false => rebase.apply(seen),
            };
            self.graph.store(Arc::new(StoredGraph { snapshot }));
        }
        Ok(())
    }

    /// Has the latest snapshot forget terms that nothing uses, by a transaction of its own; true if it did. Where the
    /// log takes no more they stay, as they do in a copy of a store until that forgets them.
    fn forget(&self, writer: &mut Writer, latest: &mut Snapshot, unused: &[TermId]) -> bool {
        if unused.is_empty() || writer.follows {
            return false;
        }
        let before = latest.number();
        latest.set_number(SnapshotNumber(before.0 + 1));
        let transaction = Transaction::forgetting(latest, unused.to_vec());
        if let Err(error) = writer.log(&transaction) {
            tracing::warn!(%error, "terms that nothing uses stay until the next merge");
            latest.set_number(before);
            return false;
        }
        latest.forget_terms(unused);
        true
    }

    /// # Errors
    /// [`EngineError::Cancelled`] once nobody has the database any more.
    fn go_on(&self) -> Result<(), EngineError> {
        match self.signal.is_stopped() {
            true => Err(EngineError::Cancelled),
            false => Ok(()),
        }
    }

    /// Half of the cores, so that a merge leaves the others to queries.
    ///
    /// # Errors
    /// [`EngineError::Thread`].
    pub(crate) fn builders(&self) -> Result<&rayon::ThreadPool, EngineError> {
        if self.builders.get().is_none() {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(builder_threads())
                .thread_name(|_| "jindou-build".to_owned())
                .build();
            let pool = pool.map_err(|error| EngineError::Thread {
                source: std::io::Error::other(error),
            })?;
            // Somebody else may have been first.
            let _ = self.builders.set(pool);
        }
        Ok(self.builders.get().expect("it was set"))
    }

    /// Writes what has changed since the base, so that the log can begin anew.
    ///
    /// # Errors
    /// [`EngineError::Cluster`] of a copy that has not joined the others; as [`Turn::take`](crate::turn::Turn::take), before
    /// it begins; what the operating system says. Nothing is lost then.
    pub(crate) fn checkpoint(&self, deadline: &Deadline) -> Result<(), EngineError> {
        self.check_may_checkpoint()?;
        let _one = self.turn.take(Occupation::Checkpoint, deadline)?;
        let writer = self.take_writer(Occupation::Checkpoint, deadline)?;
        writer.check_opened_to_write()?;
        let done = self.checkpoint_now(writer);
        if done.is_err() {
            self.writer.lock().abandon();
        }
        self.note_attempt(&done);
        done
    }

    /// Whether a checkpoint waits for copies of the store which need the log, as long as that is short.
    fn is_log_needed(&self, writer: &Writer) -> bool {
        let Some((leader, store)) = self.leader().zip(writer.store.as_ref()) else {
            return false;
        };
        let is_short = store.log_bytes() < leader.options.held_log_bytes;
        is_short && leader.needs_log(writer.latest.number()).is_some()
    }

    fn checkpoint_now(&self, mut writer: MutexGuard<'_, Writer>) -> Result<(), EngineError> {
        if self.is_log_needed(&writer) {
            return Ok(());
        }
        let (checkpoint, directory) = {
            let latest = writer.begin_fold()?;
            let Some(store) = &mut writer.store else {
                return Ok(());
            };
            let directory = Arc::clone(store.directory());
            match store.begin_checkpoint(latest) {
                Ok(Some(checkpoint)) => (checkpoint, directory),
                Ok(None) => return Ok(()),
                Err(error) => return Err(writer.refused(error)),
            }
        };
        drop(writer);
        DurableStore::write_checkpoint(&directory, &checkpoint)?;
        if let Some(group) = self.group()
            && !group.wait_until_committed(checkpoint.number())
        {
            // It has what may be given up yet. The log has all of it.
            self.writer.lock().abandon();
            return Ok(());
        }
        if let Some(copied) = self.streams.copied.get() {
            // The log of transactions has it until then.
            let settled = copied.settle(checkpoint.number());
            settled.inspect_err(|_| self.writer.lock().abandon())?;
        }
        let mut writer = self.writer.lock();
        match writer
            .store
            .as_mut()
            .map(|store| store.finish_checkpoint(&checkpoint))
        {
            Some(Err(error)) => Err(writer.refused(error)),
            _ => Ok(()),
        }
    }

    fn needs_checkpoint(&self) -> bool {
        if self.check_may_checkpoint().is_err() {
            return false;
        }
        let writer = self.writer.lock();
        let Some(store) = &writer.store else {
            return false;
        };
        store.log_bytes() >= self.config.merge.log_bytes || !store.is_current(writer.latest.base())
    }
}

fn builder_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1))
}

/// Which predicates a merge takes with it; terms always go.
#[derive(Clone, Copy)]
pub(crate) enum Which<'a> {
    /// All that changed.
    All,
    /// Those of which one in so many edges changed.
    Share(u64),
    /// None: terms alone, also where there are no new ones, as windows may have left some.
    Terms,
    /// Those that changed and whose IRIs somebody chose.
    Chosen(&'a dyn Fn(&str) -> bool),
}

impl Which<'_> {
    fn of(self, snapshot: &Snapshot) -> Vec<PredicateId> {
        let is_due = |one: &PredicateChanges| match self {
            Self::All => true,
            Self::Terms => false,
            Self::Share(share) => one.changes.saturating_mul(share) >= one.edges,
            Self::Chosen(is_chosen) => is_chosen(&iri(snapshot, one.predicate)),
        };
        let changed = snapshot.changed_predicates().into_iter();
        changed.filter(is_due).map(|one| one.predicate).collect()
    }
}

fn iri(snapshot: &Snapshot, predicate: PredicateId) -> String {
    let mut iri = Vec::new();
    snapshot.push_key(snapshot.predicate_term(predicate), &mut iri);
    String::from_utf8_lossy(&iri).into_owned()
}

/// How long nobody has changed anything, and how long to wait for somebody who does.
struct Quiet {
    policy: MergePolicy,
    since: Duration,
}

impl Quiet {
    fn next_wait(&self) -> Duration {
        let MergePolicy {
            idle, fold_idle, ..
        } = self.policy;
        match self.since {
            since if since < fold_idle => fold_idle,
            since if since < idle => idle - since,
            _ => idle,
        }
    }

    fn note(&mut self, waited: Duration, was_idle: bool) {
        self.since = match was_idle {
            true => self.since.saturating_add(waited).min(self.policy.idle),
            false => Duration::ZERO,
        };
    }
}

/// Merges, writes checkpoints and writes out lists when that is due, until the database is gone.
fn maintain(inner: &Weak<Inner>, signal: &Signal, policy: MergePolicy) {
    let mut not_before = None;
    let mut rests_until = Instant::now();
    let mut quiet = Quiet {
        policy,
        since: Duration::ZERO,
    };
    loop {
        let is_retry = not_before.is_some();
        let state = match not_before.take() {
            Some(until) => {
                quiet.note(policy.idle, true);
                signal.wait_until(until)
            }
            None => {
                let rest = rests_until.saturating_duration_since(Instant::now());
                let wait = match rest.is_zero() {
                    true => quiet.next_wait(),
                    // What waited for that may be due then.
                    false => quiet.next_wait().min(rest),
                };
                let (state, was_idle) = signal.wait(wait);
                quiet.note(wait, was_idle);
                state
            }
        };
        let Some(inner) = inner.upgrade().filter(|_| !state.stop) else {
            return;
        };
        let begun = Instant::now();
        let done = inner.maintain(quiet.since, begun < rests_until);
        signal.attempted.notify_all();
        match done {
            Ok(false) => {}
            Ok(true) => {
                let rest = begun.elapsed().saturating_mul(REST).min(LONGEST_REST);
                rests_until = Instant::now() + rest;
            }
            Err(_) if signal.is_stopped() => return,
            Err(error) => {
                not_before = inner.trouble.until();
                match is_retry {
                    true => tracing::warn!("changes were not merged, again: {error}"),
                    false => tracing::error!("changes were not merged: {error}"),
                }
            }
        }
    }
}

impl Inner {
    /// The merge that is due after so much time without a transaction, if one is.
    pub(crate) fn due_merge(&self, quiet: Duration, rests: bool) -> Option<Which<'static>> {
        let is_searched = self.searches.load(std::sync::atomic::Ordering::Relaxed) > 0;
        let beside = match (is_searched, rests) {
            (true, _) => Beside::Search,
            (false, true) => Beside::Rest,
            (false, false) => Beside::Nothing,
        };
        let latest = &self.graph.load().snapshot;
        self.config.merge.due(latest, quiet, beside)
    }

    /// Does what is due most, after so much time without a transaction; true if that was a merge. One that is
    /// less due waits while the last one `rests`.
    fn maintain(&self, quiet: Duration, rests: bool) -> Result<bool, EngineError> {
        let policy = &self.config.merge;
        if let Some(follower) = self.follower() {
            while let Some(owed) = follower.take_owed() {
                if let Err(error) = self.merge_owed(&owed, &Deadline::never()) {
                    follower.owe_again(owed);
                    return Err(error);
                }
            }
        }
        let may_merge = self.check_may_merge().is_ok();
        let due = self.due_merge(quiet, rests).filter(|_| may_merge);
        let fold_is_due = policy.is_fold_due(&self.graph.load().snapshot);
        // The background has time.
        let deadline = &Deadline::never();
        if let Some(which) = due {
            return self.merge(which, deadline);
        }
        if fold_is_due || quiet >= policy.fold_idle {
            let mut rule = FoldRule::default();
            if quiet >= policy.fold_idle {
                rule.share = IDLE_SHARE;
            }
            self.fold(rule, deadline)?;
        }
        if self.needs_checkpoint() {
            self.checkpoint(deadline)?;
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jindou_model::SnapshotNumber;
    use jindou_store::bulk::build;

    #[test]
    fn terms_that_no_quad_has_make_a_merge_due() {
        let policy = MergePolicy {
            term_bytes: 1_000,
            idle_term_bytes: 100,
            ..MergePolicy::default()
        };
        let base = build(Vec::new(), 0).expect("it is small");
        let mut snapshot = Snapshot::of_base(base, 0, SnapshotNumber(1));
        let mut add = |bytes: usize| {
            snapshot
                .intern_literal(&vec![b'x'; bytes])
                .expect("there is room");
            snapshot.keep_terms();
            let due = (policy.is_due(&snapshot), policy.is_overdue(&snapshot, 0));
            let never = MergePolicy::never();
            assert!(!never.is_due(&snapshot) && !never.is_due_when_idle(&snapshot));
            (policy.is_due_when_idle(&snapshot), due.0, due.1)
        };
        assert_eq!(add(10), (false, false, false));
        assert_eq!(add(100), (true, false, false));
        assert_eq!(add(900), (true, true, false));
        assert_eq!(add(8_000), (true, true, true));
    }

    #[test]
    fn more_must_have_changed_while_a_merge_rests_and_beside_a_search() {
        let policy = MergePolicy {
            term_bytes: 1_000,
            idle_term_bytes: 100,
            ..MergePolicy::default()
        };
        let base = build(Vec::new(), 0).expect("it is small");
        let mut snapshot = Snapshot::of_base(base, 0, SnapshotNumber(1));
        let mut add = |bytes: usize| {
            snapshot
                .intern_literal(&vec![b'x'; bytes])
                .expect("there is room");
            snapshot.keep_terms();
            let due = |quiet| {
                let beside = [Beside::Nothing, Beside::Rest, Beside::Search];
                beside.map(|beside| policy.due(&snapshot, quiet, beside).is_some())
            };
            (due(policy.idle), due(Duration::ZERO))
        };
        assert_eq!(add(200), ([true, true, false], [false, false, false]));
        assert_eq!(add(1_000), ([true, true, false], [true, false, false]));
        // Another literal.
        assert_eq!(add(1_001), ([true, true, false], [true, true, false]));
        assert_eq!(add(2_000), ([true, true, true], [true, true, true]));
    }

    #[test]
    fn a_merge_of_terms_waits_for_a_share_of_the_base() {
        let policy = MergePolicy {
            term_bytes: 1,
            share_of_graph: 1,
            ..MergePolicy::default()
        };
        let base = build(Vec::new(), 0).expect("it is small");
        let bytes = base.footprint().total();
        assert!(bytes > 100, "{bytes}");
        let mut snapshot = Snapshot::of_base(base, 0, SnapshotNumber(1));
        snapshot.intern_literal(b"x").expect("there is room");
        snapshot.keep_terms();
        assert!(!policy.is_due(&snapshot));
        snapshot
            .intern_literal(&vec![b'x'; bytes])
            .expect("there is room");
        snapshot.keep_terms();
        assert!(policy.is_due(&snapshot));
    }
}
