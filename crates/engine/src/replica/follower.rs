//! What does a follower do with what the leader says, in order?
//!
//! All that comes by the link waits in one queue, with the begin and the end of links. A thread takes transactions
//! that wait together, applies them one after another and syncs the log once; what else there is takes its turn
//! between them. So an answer to a write comes after the transactions that were sent before it.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jindou_model::{PredicateId, SnapshotNumber};
use jindou_store::{History, Run, Snapshot};
use parking_lot::{Condvar, Mutex};

use super::apply::ApplyError;
use super::lineage::digest;
use super::link::Link;
use super::outcome::Outcome;
use super::wire::{Head, Message, Pieces, RefusedCopy};
use super::{LEADER, ReplicaOptions, ReplicaStatus, Standing};
use crate::EngineError;
use crate::database::Inner;
use crate::prefixes::PrefixTable;
use crate::writer::Appended;

/// How many times the window a follower takes into its queue: the leader keeps to one, and to little else.
const QUEUED_WINDOWS: usize = 2;
const QUEUED_BESIDE_BYTES: usize = 16 << 20;
/// Merges of the leader that wait until they are made here, too.
const MOST_OWED: usize = 8;
/// How long whoever is to be answered waits where there is no link with the leader.
const LINK_PATIENCE: Duration = Duration::from_millis(100);

/// A follower's part.
pub(crate) struct Follower {
    inner: Weak<Inner>,
    pub(super) options: ReplicaOptions,
    pub(super) state: Mutex<State>,
    pub(super) changed: Condvar,
    /// What came of a message that is not whole.
    pieces: Mutex<Pieces>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Merges that are to be made here as at the leader, in their order. Locked after the writer.
    owed: Mutex<VecDeque<Owed>>,
    /// The number from which on vertices are new since then. Only the applying thread reads and writes it.
    sealed: AtomicU64,
}

pub(super) struct State {
    queue: VecDeque<Event>,
    /// Bytes of what is in it, and of what was taken out and is not done.
    queued_bytes: usize,
    /// The link with the leader, once it knows what is here.
    pub(super) link: Option<Arc<Link>>,
    /// The link that has begun last, whether the leader knows or not.
    newest: Option<Arc<Link>>,
    /// The last snapshot that readers see.
    pub(super) shown: SnapshotNumber,
    /// Writes that were sent to the leader, and what became of them; `None` of one whose link has ended.
    pub(super) writes: BTreeMap<u64, WriteState>,
    pub(super) writes_so_far: u64,
    /// The leader has said that this is a copy of its store.
    is_copy: bool,
    /// Why nothing is applied any more.
    pub(super) ended: Option<String>,
    pub(super) stopped: bool,
}

/// What is known of a write.
pub(super) enum WriteState {
    Sent,
    Done(Outcome),
    /// The link ended before.
    Unknown,
}

/// A merge that is to be made here, too.
pub(crate) struct Owed {
    /// What is merged: a snapshot upon the latest base at which the leader closed its extents.
    pub(crate) start: Snapshot,
    /// Sorted.
    unmerged: Vec<PredicateId>,
}

impl Owed {
    /// That of all that changed, for tests.
    #[cfg(test)]
    pub(super) fn all_of(start: Snapshot) -> Self {
        let unmerged = Vec::new();
        Self { start, unmerged }
    }

    /// The predicates that are merged: those that changed here, and of which the leader has all changes in its base.
    pub(crate) fn predicates(&self) -> Vec<PredicateId> {
        let changed = self.start.changed_predicates().into_iter();
        let changed = changed.map(|one| one.predicate);
        let is_merged = |predicate: &PredicateId| self.unmerged.binary_search(predicate).is_err();
        changed.filter(is_merged).collect()
    }
}

/// Where the leader closed its extents.
struct Closed {
    number: SnapshotNumber,
    merges: bool,
    unmerged: Vec<PredicateId>,
}

/// Something that happened on the way from the leader.
enum Event {
    Joined(Arc<Link>),
    Lost,
    Transaction(SnapshotNumber, Vec<u8>),
    Closed(Closed),
    History(Vec<Run>),
    Prefixes(Vec<(String, String)>),
    Written(u64, Box<Outcome>),
    Refused(RefusedCopy),
}

impl State {
    fn queue_up(&mut self, event: Event) {
        self.queued_bytes += event.bytes();
        self.queue.push_back(event);
    }
}

impl Event {
    /// About what it holds.
    fn bytes(&self) -> usize {
        let beside = match self {
            Self::Transaction(_, bytes) => bytes.len(),
            Self::Prefixes(prefixes) => {
                let lengths = prefixes.iter().map(|(name, iri)| name.len() + iri.len());
                lengths.sum()
            }
            Self::Closed(closed) => size_of_val(&*closed.unmerged),
            _ => 0,
        };
        size_of::<Self>() + beside
    }

    /// Whether it is about what the store is to hold, and not about links and writes.
    fn is_of_store(&self) -> bool {
        match self {
            Self::Transaction(..)
            | Self::Closed(_)
            | Self::History(_)
            | Self::Prefixes(_)
            | Self::Refused(_) => true,
            Self::Joined(_) | Self::Lost | Self::Written(..) => false,
        }
    }
}

impl Follower {
    /// The part of a follower that has all up to a snapshot on its device.
    ///
    /// # Errors
    /// [`EngineError::Thread`].
    pub(super) fn start(
        inner: &Arc<Inner>,
        options: ReplicaOptions,
        number: SnapshotNumber,
    ) -> Result<Arc<Self>, EngineError> {
        let follower = Arc::new(Self {
            inner: Arc::downgrade(inner),
            options,
            state: Mutex::new(State {
                queue: VecDeque::new(),
                queued_bytes: 0,
                link: None,
                newest: None,
                shown: number,
                writes: BTreeMap::new(),
                writes_so_far: 0,
                is_copy: false,
                ended: None,
                stopped: false,
            }),
            changed: Condvar::new(),
            pieces: Mutex::default(),
            thread: Mutex::default(),
            owed: Mutex::default(),
            sealed: AtomicU64::new(0),
        });
        let applying = Arc::clone(&follower);
        let thread = std::thread::Builder::new().name("jindou-follow".to_owned());
        let thread = thread.spawn(move || applying.run());
        let thread = thread.map_err(|source| EngineError::Thread { source })?;
        *follower.thread.lock() = Some(thread);
        Ok(follower)
    }

    pub(super) fn leader_name(&self) -> &str {
        self.options.name(LEADER)
    }

    /// Why nothing is applied any more, if nothing is.
    pub(crate) fn ended(&self) -> Option<String> {
        self.state.lock().ended.clone()
    }

    pub(super) fn status(&self) -> ReplicaStatus {
        let state = self.state.lock();
        ReplicaStatus::Follows {
            leader: self.leader_name().to_owned(),
            is_led: state.link.is_some() && state.ended.is_none(),
            ended: state.ended.clone(),
        }
    }

    /// Waits until readers see a snapshot, for so long at most; true if they do.
    pub(super) fn wait_for_snapshot(&self, number: SnapshotNumber, within: Duration) -> bool {
        let until = Instant::now().checked_add(within);
        let mut state = self.state.lock();
        while state.shown < number && state.ended.is_none() && !state.stopped {
            match until {
                None => self.changed.wait(&mut state),
                Some(until) if self.changed.wait_until(&mut state, until).timed_out() => break,
                Some(_) => {}
            }
        }
        state.shown >= number
    }

    /// The next merge that is to be made.
    pub(crate) fn take_owed(&self) -> Option<Owed> {
        self.owed.lock().pop_front()
    }

    /// A merge that was taken failed: it is the next one again.
    pub(crate) fn owe_again(&self, owed: Owed) {
        self.owed.lock().push_front(owed);
    }

    /// Brings what is to be merged upon the base that another merge made, of a snapshot; what that one had is merged.
    /// Called with the writer's lock, when its latest snapshot is brought there.
    pub(crate) fn rebase_owed(&self, merged: &Snapshot, apply: impl Fn(&Snapshot) -> Snapshot) {
        let mut all = self.owed.lock();
        all.retain(|owed| {
            let start = &owed.start;
            start.is_of_generation_of(merged) && start.number() >= merged.number()
        });
        for owed in &mut *all {
            owed.start = apply(&owed.start);
        }
    }

    pub(super) fn joined(&self) {
        *self.pieces.lock() = Pieces::default();
        let link = Arc::new(Link::new(LEADER, &self.options.way));
        let mut state = self.state.lock();
        if let Some(before) = state.newest.replace(Arc::clone(&link)) {
            before.end();
        }
        state.queue_up(Event::Joined(link));
        self.changed.notify_all();
    }

    pub(super) fn lost(&self) {
        let mut state = self.state.lock();
        state.link = None;
        state.queue_up(Event::Lost);
        if let Some(link) = state.newest.take() {
            link.end();
        }
        self.changed.notify_all();
    }

    pub(super) fn received(&self, piece: &[u8]) -> Result<(), String> {
        let most_bytes = self.options.message_bytes;
        let Some(message) = self.pieces.lock().add(piece, most_bytes)? else {
            return Ok(());
        };
        let Message { head, body } = message;
        let event = match head {
            Head::Transaction { number } => Event::Transaction(SnapshotNumber(number), body),
            Head::Closed {
                number,
                merges,
                unmerged,
            } => {
                let mut unmerged: Vec<_> = unmerged.into_iter().map(PredicateId).collect();
                unmerged.sort_unstable();
                Event::Closed(Closed {
                    number: SnapshotNumber(number),
                    merges,
                    unmerged,
                })
            }
            Head::History(runs) => {
                let runs = runs.into_iter().map(|(id, first)| Run {
                    id,
                    first: SnapshotNumber(first),
                });
                Event::History(runs.collect())
            }
            Head::Prefixes(prefixes) => Event::Prefixes(prefixes),
            Head::Written { id, outcome } => Event::Written(id, outcome),
            Head::Refused(reason) => Event::Refused(reason),
            Head::Begin { .. }
            | Head::Applied { .. }
            | Head::Ended(_)
            | Head::Write { .. }
            | Head::Cancel { .. } => {
                return Err("it speaks as a follower does, and leads".to_owned());
            }
        };
        let mut state = self.state.lock();
        if state.stopped || (state.ended.is_some() && event.is_of_store()) {
            return Ok(());
        }
        let most_bytes = QUEUED_WINDOWS.saturating_mul(self.options.window_bytes);
        if state.queued_bytes > most_bytes.saturating_add(QUEUED_BESIDE_BYTES) {
            return Err("it sends transactions faster than it was to".to_owned());
        }
        state.queue_up(event);
        self.changed.notify_all();
        Ok(())
    }

    pub(super) fn stop(&self) {
        self.state.lock().stopped = true;
        self.changed.notify_all();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            // What it panicked with was printed.
            let _ = thread.join();
        }
    }

    /// Waits for what comes next; `None` once the database is gone.
    fn next(&self) -> Option<VecDeque<Event>> {
        let mut state = self.state.lock();
        while state.queue.is_empty() && !state.stopped {
            self.changed.wait(&mut state);
        }
        (!state.stopped).then(|| std::mem::take(&mut state.queue))
    }

    fn run(&self) {
        while let Some(mut events) = self.next() {
            let Some(inner) = self.inner.upgrade() else {
                return;
            };
            while let Some(event) = events.pop_front() {
                {
                    let mut state = self.state.lock();
                    if state.stopped {
                        return;
                    }
                    state.queued_bytes -= event.bytes();
                }
                let taken = AssertUnwindSafe(|| self.take(&inner, event, &mut events));
                let taken = catch_unwind(taken);
                let internal = |_| Err("an error inside; the log has its trace".to_owned());
                if let Err(reason) = taken.unwrap_or_else(internal) {
                    self.end(reason);
                }
            }
        }
    }

    /// Does what one event asks for, or several transactions.
    ///
    /// # Errors
    /// Why nothing is applied any more.
    fn take(
        &self,
        inner: &Arc<Inner>,
        event: Event,
        events: &mut VecDeque<Event>,
    ) -> Result<(), String> {
        if event.is_of_store() && self.ended().is_some() {
            return Ok(());
        }
        match event {
            Event::Transaction(number, bytes) => self.apply_all(inner, (number, bytes), events),
            Event::Joined(link) => {
                self.begin(inner, link);
                Ok(())
            }
            Event::Lost => {
                self.forget_writes();
                Ok(())
            }
            Event::Closed(closed) => self.note_closed(inner, closed),
            Event::History(runs) => self.keep_history(inner, runs),
            Event::Prefixes(prefixes) => keep_prefixes(inner, &prefixes),
            Event::Written(id, outcome) => {
                let mut state = self.state.lock();
                if let Some(write) = state.writes.get_mut(&id) {
                    *write = WriteState::Done(*outcome);
                }
                self.changed.notify_all();
                Ok(())
            }
            Event::Refused(reason) => Err(reason.told(self.leader_name())),
        }
    }

    /// Says to the leader what is here.
    fn begin(&self, inner: &Inner, link: Arc<Link>) {
        let snapshot = inner.writer.lock().latest.clone();
        let history = match history_of(inner) {
            Ok(history) => history,
            Err(reason) => return self.end(reason),
        };
        let run = history.run_of(snapshot.number());
        let head = Head::Begin {
            epoch: snapshot.epoch().0,
            number: snapshot.number().0,
            run: run.map(|run| (run.id, run.first.0)),
            digest: history.runs().is_empty().then(|| digest(&snapshot)),
        };
        let mut state = self.state.lock();
        if state.ended.is_some() {
            return;
        }
        // The next link has begun, or this one has ended, meanwhile.
        let is_newest = (state.newest.as_ref()).is_some_and(|newest| Arc::ptr_eq(newest, &link));
        if is_newest && link.send(&head, &[]) {
            state.link = Some(link);
        }
    }

    /// This is a copy of the leader's store.
    fn keep_history(&self, inner: &Inner, runs: Vec<Run>) -> Result<(), String> {
        let directory = inner.directory.as_ref().expect("a copy is stored");
        let written = History::of(runs).write(directory);
        written.map_err(|error| error.to_string())?;
        self.state.lock().is_copy = true;
        self.changed.notify_all();
        Ok(())
    }

    /// As [`Replica::may_answer`](super::Replica::may_answer).
    pub(super) fn may_answer(&self, within: Duration) -> Result<(), Standing> {
        let mut state = self.state.lock();
        let within = match state.newest {
            Some(_) => within,
            // Only a link that begins just now is worth waiting for: queries hold threads meanwhile.
            None => within.min(LINK_PATIENCE),
        };
        let until = Instant::now().checked_add(within);
        loop {
            if let Some(reason) = &state.ended {
                return Err(Standing::Ended(reason.clone()));
            }
            if state.is_copy {
                return Ok(());
            }
            let is_late = match until {
                Some(until) => self.changed.wait_until(&mut state, until).timed_out(),
                None => {
                    self.changed.wait(&mut state);
                    false
                }
            };
            if is_late || state.stopped {
                return Err(Standing::Waits);
            }
        }
    }

    /// The link has ended: what became of the writes that were sent by it is not known.
    fn forget_writes(&self) {
        let mut state = self.state.lock();
        for write in state.writes.values_mut() {
            if matches!(write, WriteState::Sent) {
                *write = WriteState::Unknown;
            }
        }
        self.changed.notify_all();
    }

    /// Applies a transaction and those that come directly after it, all of which share one sync.
    fn apply_all(
        &self,
        inner: &Arc<Inner>,
        (mut number, mut bytes): (SnapshotNumber, Vec<u8>),
        events: &mut VecDeque<Event>,
    ) -> Result<(), String> {
        let mut last: Option<(SnapshotNumber, Appended)> = None;
        let failed = loop {
            match inner.apply(number, &bytes, self.sealed.load(Relaxed)) {
                Ok(appended) => last = Some((number, appended)),
                Err(error) => break Some(error.to_string()),
            }
            let follows = |event: &mut Event| matches!(event, Event::Transaction(..));
            let Some(event) = events.pop_front_if(follows) else {
                break None;
            };
            self.state.lock().queued_bytes -= event.bytes();
            if let Event::Transaction(next, its_bytes) = event {
                (number, bytes) = (next, its_bytes);
            }
        };
        if let Some((number, appended)) = last {
            inner.publish(appended).map_err(|error| error.to_string())?;
            self.note_shown(number);
            inner.note_transaction();
        }
        failed.map_or(Ok(()), Err)
    }

    /// Readers see a snapshot, which is on the device.
    fn note_shown(&self, number: SnapshotNumber) {
        let mut state = self.state.lock();
        state.shown = number;
        let link = state.link.clone();
        drop(state);
        self.changed.notify_all();
        if let Some(link) = link {
            // Where it has ended, the next one begins with what is here.
            let _is_there = link.send(&Head::Applied { number: number.0 }, &[]);
        }
    }

    /// The leader has closed its extents: what it has merged, or merges now, is merged here at this snapshot, too.
    fn note_closed(&self, inner: &Arc<Inner>, closed: Closed) -> Result<(), String> {
        // Held until the merge is noted: another one that ends now brings all that is to be merged upon its base.
        let writer = inner.writer.lock();
        let latest = &writer.latest;
        if latest.number() != closed.number {
            let error = ApplyError::OutOfOrder {
                sent: closed.number,
                latest: latest.number(),
            };
            return Err(error.to_string());
        }
        self.sealed.store(latest.vertex_numbers(), Relaxed);
        let owed = Owed {
            start: latest.clone(),
            unmerged: closed.unmerged,
        };
        if !closed.merges && owed.predicates().is_empty() {
            return Ok(());
        }
        let mut all = self.owed.lock();
        if all.len() >= MOST_OWED {
            // A later one has most of it.
            all.pop_front();
        }
        all.push_back(owed);
        drop((all, writer));
        inner.note_due();
        Ok(())
    }

    /// Applies nothing any more. Writes that the leader has are answered all the same.
    fn end(&self, reason: String) {
        let mut state = self.state.lock();
        if state.ended.is_some() {
            return;
        }
        tracing::error!(
            "this copy follows node {} no more: {reason}",
            self.leader_name()
        );
        state.ended = Some(reason.clone());
        let link = state.link.take();
        drop(state);
        self.changed.notify_all();
        if let Some(link) = link {
            // Where it has ended, nobody waits for this one anyway.
            let _is_there = link.send(&Head::Ended(reason), &[]);
        }
    }
}

/// Who made the transactions of this copy, as far as that is known.
fn history_of(inner: &Inner) -> Result<History, String> {
    let directory = inner.directory.as_ref().expect("a copy is stored");
    let history = History::read(directory).map_err(|error| error.to_string())?;
    Ok(history.unwrap_or_default())
}

/// Keeps the prefixes that the leader knows, and no others.
fn keep_prefixes(inner: &Inner, prefixes: &[(String, String)]) -> Result<(), String> {
    let mut table = PrefixTable::default();
    for (name, iri) in prefixes {
        table.set(name, iri).map_err(|error| error.to_string())?;
    }
    let kept = inner.replace_prefixes(table);
    kept.map_err(|error| error.to_string())
}
