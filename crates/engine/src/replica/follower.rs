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
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use jindou_model::{NodeId, PredicateId, SnapshotNumber};
use jindou_store::{History, Snapshot, StoreError};
use parking_lot::{Condvar, Mutex};

use super::apply::ApplyError;
use super::device::Stop;
use super::group::Group;
use super::lineage::{self, digest};
use super::link::Link;
use super::outcome::Outcome;
use super::wire::{Head, Message, RefusedCopy};
use super::{Anew, ReplicaOptions};
use crate::EngineError;
use crate::database::Inner;
use crate::prefixes::PrefixTable;
use crate::writer::Appended;

/// How many times the window a follower takes into its queue: the leader keeps to one, and to little else.
const QUEUED_WINDOWS: usize = 2;
const QUEUED_BESIDE_BYTES: usize = 16 << 20;
/// Merges of the leader that wait until they are made here, too.
const MOST_OWED: usize = 8;

/// A follower's part.
pub(crate) struct Follower {
    pub(super) inner: Weak<Inner>,
    pub(super) group: Weak<Group>,
    pub(super) options: ReplicaOptions,
    pub(super) state: Mutex<State>,
    pub(super) changed: Condvar,
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
    /// The node that leads, and its term.
    leader: Option<(NodeId, u64)>,
    /// The link with it, if there is one.
    newest: Option<Arc<Link>>,
    /// The same, once the leader was told what is here.
    pub(super) link: Option<Arc<Link>>,
    /// The leader has said that it has all that is here: what it sends then follows from that.
    is_accepted: bool,
    /// Writes that were sent to the leader, and what became of them; `None` of one whose link has ended.
    pub(super) writes: BTreeMap<u64, WriteState>,
    pub(super) writes_so_far: u64,
    /// When the last link with the leader ended.
    pub(super) lost_at: Option<Instant>,
    /// How many links there were, and in which term the node of this one leads, once it has said so.
    sent_by: SentBy,
    pub(super) stopped: bool,
}

/// What is known of a write.
pub(super) enum WriteState {
    Sent(SentBy),
    Done(Outcome),
    /// The link ended before.
    Unknown,
}

/// By which link a write was sent, of those with leaders one after the other, and in which term its node led as it had said
/// by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SentBy {
    link: u64,
    term: Option<u64>,
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
    /// This is to be told what is here, in this term.
    Begin(Arc<Link>, u64),
    /// Another node leads: what became of writes that were sent to the one before is not known.
    Lost,
    Transaction(SnapshotNumber, Vec<u8>),
    Closed(Closed),
    /// The leader of this term has what is here, which this made.
    History(u64, History),
    Prefixes(Vec<(String, String)>),
    Written(u64, Box<Outcome>),
    Refused(RefusedCopy),
    /// The leader of this term does not have what is after this.
    GiveUp(u64, SnapshotNumber),
}

impl State {
    /// Of one that nobody leads yet.
    fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            queued_bytes: 0,
            leader: None,
            newest: None,
            link: None,
            is_accepted: false,
            writes: BTreeMap::new(),
            writes_so_far: first_write(),
            lost_at: None,
            sent_by: SentBy {
                link: 0,
                term: None,
            },
            stopped: false,
        }
    }

    /// What comes by this link comes from the leader, once that was told what is here.
    fn begin_with(&mut self, link: Option<Arc<Link>>) {
        self.is_accepted = false;
        let is_same = match (&self.newest, &link) {
            (Some(known), Some(link)) => Arc::ptr_eq(known, link),
            _ => false,
        };
        if !is_same {
            self.link = None;
            self.newest.clone_from(&link);
            self.lost_at = Some(Instant::now());
            self.sent_by = SentBy {
                link: self.sent_by.link + 1,
                term: None,
            };
        }
        if let (Some(link), Some((_, term))) = (link, self.leader) {
            self.queue_up(Event::Begin(link, term));
        }
    }

    /// There is this link with a node from now on; true if that leads, and is to be told what is here.
    fn join(&mut self, node: NodeId, link: Arc<Link>) -> bool {
        // Who began to follow meanwhile may have found it already: the leader hears once by a link what is here.
        let is_known = (self.newest.as_ref()).is_some_and(|newest| Arc::ptr_eq(newest, &link));
        let leads = self.leader.is_some_and(|(leader, _)| leader == node);
        if leads && !is_known {
            self.begin_with(Some(link));
        }
        leads && !is_known
    }

    /// How a write is noted that is sent now.
    pub(super) fn sent_now(&self) -> WriteState {
        WriteState::Sent(self.sent_by)
    }

    /// The node of the link leads in a term: which writes it is to be asked for, that were sent to it in this term by a link
    /// before. Of others that were sent before nothing will be known.
    fn sent_before(&mut self, term: u64) -> Vec<u64> {
        self.sent_by.term = Some(term);
        let link = self.sent_by.link;
        let mut asked = Vec::new();
        for (id, write) in &mut self.writes {
            match write {
                WriteState::Sent(by) if by.link == link => {}
                WriteState::Sent(by) if by.term == Some(term) => asked.push(*id),
                WriteState::Sent(_) => *write = WriteState::Unknown,
                WriteState::Done(_) | WriteState::Unknown => {}
            }
        }
        asked
    }

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

    /// Whether it is to be applied to what was here when the leader was told of that.
    fn follows_from_here(&self) -> bool {
        matches!(self, Self::Transaction(..) | Self::Closed(_))
    }

    /// Whether it is about what the store is to hold, and not about links and writes.
    fn is_of_store(&self) -> bool {
        match self {
            Self::Transaction(..)
            | Self::Closed(_)
            | Self::History(..)
            | Self::Prefixes(_)
            | Self::Refused(_)
            | Self::GiveUp(..) => true,
            Self::Begin(..) | Self::Lost | Self::Written(..) => false,
        }
    }
}

impl Follower {
    /// The part of one that follows, which nobody leads yet.
    pub(super) fn new(
        inner: &Arc<Inner>,
        options: &ReplicaOptions,
        group: &Weak<Group>,
    ) -> Arc<Self> {
        Arc::new(Self {
            inner: Arc::downgrade(inner),
            group: Weak::clone(group),
            options: options.clone(),
            state: Mutex::new(State::new()),
            changed: Condvar::new(),
            thread: Mutex::default(),
            owed: Mutex::default(),
            sealed: AtomicU64::new(0),
        })
    }

    /// Begins to apply what comes.
    ///
    /// # Errors
    /// [`EngineError::Thread`].
    pub(super) fn start(self: &Arc<Self>) -> Result<(), EngineError> {
        let applying = Arc::clone(self);
        let thread = std::thread::Builder::new().name("jindou-follow".to_owned());
        let thread = thread.spawn(move || applying.run());
        let thread = thread.map_err(|source| EngineError::Thread { source })?;
        *self.thread.lock() = Some(thread);
        Ok(())
    }

    pub(super) fn leader_name(&self) -> String {
        let leader = self.state.lock().leader;
        leader.map_or_else(String::new, |(node, _)| self.options.name(node).to_owned())
    }

    /// Why nothing is applied any more, if nothing is.
    pub(super) fn ended(&self) -> Option<String> {
        self.group.upgrade()?.ended().cloned()
    }

    /// Whether the leader is there.
    pub(super) fn is_led(&self) -> bool {
        self.state.lock().link.is_some()
    }

    /// The next merge that is to be made: of what all nodes in sync have, so that nothing of it is given up.
    pub(crate) fn take_owed(&self) -> Option<Owed> {
        let group = self.group.upgrade()?;
        let mut owed = self.owed.lock();
        owed.pop_front_if(|first| group.has_committed(first.start.number()))
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

    /// A node leads from now on, in a term, and this is the link with it, if there is one.
    pub(super) fn follow(&self, leader: (NodeId, u64), link: Option<Arc<Link>>) {
        let mut state = self.state.lock();
        let before = state.leader.replace(leader);
        if before.is_some_and(|(node, _)| node != leader.0) {
            state.queue_up(Event::Lost);
        }
        state.begin_with(link);
        self.changed.notify_all();
    }

    /// There is this link with a node from now on.
    pub(super) fn joined(&self, node: NodeId, link: Arc<Link>) {
        if self.state.lock().join(node, link) {
            self.changed.notify_all();
        }
    }

    pub(super) fn lost(&self, node: NodeId) {
        let mut state = self.state.lock();
        if state.leader.is_some_and(|(leader, _)| leader == node) {
            state.begin_with(None);
            self.changed.notify_all();
        }
    }

    pub(super) fn received(&self, from: NodeId, message: Message) -> Result<(), String> {
        let Message { head, body } = message;
        let leader = self.state.lock().leader;
        let Some((_, term)) = leader.filter(|(leader, _)| *leader == from) else {
            return self.answer_as_no_leader(from, &head);
        };
        let event = match head {
            Head::Ask { term } => {
                self.begin_again(from, term);
                return Ok(());
            }
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
            Head::History { term, runs, begun } => {
                Event::History(term, lineage::history_of(runs, begun))
            }
            Head::GiveUp { after } => Event::GiveUp(term, SnapshotNumber(after)),
            Head::Prefixes(prefixes) => Event::Prefixes(prefixes),
            Head::Written { id, outcome } => Event::Written(id, outcome),
            Head::Refused(reason) => Event::Refused(reason),
            Head::Begin { .. }
            | Head::Applied { .. }
            | Head::Ended(_)
            | Head::Write { .. }
            | Head::Cancel { .. }
            | Head::Asked { .. } => return self.answer_as_no_leader(from, &head),
            Head::Said(..) => return Err("its group is told of that".to_owned()),
        };
        let mut state = self.state.lock();
        if state.stopped {
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

    /// What comes of a node that does not lead. It may be about what was before; a write is answered.
    fn answer_as_no_leader(&self, from: NodeId, head: &Head) -> Result<(), String> {
        if let Head::Write { id, .. } = head
            && let Some(group) = self.group.upgrade()
            && let Some(link) = group.link(from)
        {
            let error = EngineError::LeaderLost {
                node: group.leader_name(),
            };
            let head = Head::Written {
                id: *id,
                outcome: Box::new(Err(error.into())),
            };
            // Where it has ended, nobody waits for it.
            let _is_there = link.send(&head, &[]);
        }
        Ok(())
    }

    /// The leader asks what is here, and may not have heard it when it was said.
    fn begin_again(&self, from: NodeId, term: u64) {
        let mut state = self.state.lock();
        if state.leader == Some((from, term)) {
            let link = self.group.upgrade().and_then(|group| group.link(from));
            if let Some(link) = link {
                state.queue_up(Event::Begin(link, term));
            }
            self.changed.notify_all();
        }
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
                let internal = |_| Err("an error inside; the log has its trace".to_owned().into());
                if let Err(stop) = taken.unwrap_or_else(internal) {
                    self.end(stop);
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
    ) -> Result<(), Stop> {
        if event.is_of_store() && self.ended().is_some() {
            return Ok(());
        }
        // It was sent in another term.
        if event.follows_from_here() && !self.state.lock().is_accepted {
            return Ok(());
        }
        match event {
            Event::Transaction(number, bytes) => self.apply_all(inner, (number, bytes), events),
            Event::Begin(link, term) => self.begin(inner, &link, term),
            Event::Lost => {
                self.forget_writes();
                Ok(())
            }
            Event::Closed(closed) => Ok(self.note_closed(inner, closed)?),
            Event::History(term, history) => self.keep_history(inner, term, &history),
            Event::GiveUp(term, after) => self.give_up(inner, term, after),
            Event::Prefixes(prefixes) => Ok(keep_prefixes(inner, &prefixes)?),
            Event::Written(id, outcome) => {
                let mut state = self.state.lock();
                if let Some(write) = state.writes.get_mut(&id) {
                    *write = WriteState::Done(*outcome);
                }
                self.changed.notify_all();
                Ok(())
            }
            Event::Refused(reason) => Ok(self.note_refused(&reason)?),
        }
    }

    /// Says to the leader of a term what is here.
    fn begin(&self, inner: &Inner, link: &Arc<Link>, term: u64) -> Result<(), Stop> {
        if let Some(reason) = self.ended() {
            // It is not waited for.
            let _is_there = link.send(&Head::Ended(reason), &[]);
            return Ok(());
        }
        let snapshot = {
            let mut writer = inner.writer.lock();
            if let Some((log, ticket)) = &writer.last {
                // The leader takes it for lasting.
                let synced = log.sync(*ticket);
                synced.map_err(|error| writer.refused(error))?;
            }
            writer.latest.clone()
        };
        let history = history_of(inner)?;
        let head = Head::Begin {
            term,
            epoch: snapshot.epoch().0,
            number: snapshot.number().0,
            runs: lineage::numbers(&history),
            digest: history.runs().is_empty().then(|| digest(&snapshot)),
        };
        let mut state = self.state.lock();
        let is_of_now = state.leader == Some((link.to(), term));
        if is_of_now && link.send(&head, &[]) {
            state.link = Some(Arc::clone(link));
        }
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// All that is here is a copy of what the leader of a term has.
    fn keep_history(&self, inner: &Inner, term: u64, history: &History) -> Result<(), Stop> {
        let leader = self.state.lock().leader;
        if leader.is_none_or(|(_, now)| now != term) {
            return Ok(());
        }
        let directory = inner.directory.as_ref().expect("a copy is stored");
        if history_of(inner)? != *history {
            history.write(directory)?;
        }
        {
            let mut state = self.state.lock();
            if state.leader.is_none_or(|(_, now)| now != term) {
                return Ok(());
            }
            state.is_accepted = true;
            // They, or what became of them, may have been lost with a link.
            let ids = state.sent_before(term);
            if let Some(link) = state.link.clone().filter(|_| !ids.is_empty()) {
                // If it has ended, the next one begins with this, too.
                let _is_there = link.send(&Head::Asked { ids }, &[]);
            }
        }
        self.changed.notify_all();
        if let Some(group) = self.group.upgrade() {
            group.followed(term);
        }
        Ok(())
    }

    /// The leader of a term does not have what is after a snapshot, and no client was told of it.
    fn give_up(&self, inner: &Inner, term: u64, after: SnapshotNumber) -> Result<(), Stop> {
        let Some(group) = self.group.upgrade() else {
            return Ok(());
        };
        let (last, checkpointed) = {
            let writer = inner.writer.lock();
            let store = writer.store.as_ref().expect("a copy is stored");
            (writer.latest.number(), store.checkpointed())
        };
        if after >= last || !group.gives_up(term) {
            return Ok(());
        }
        let history = history_of(inner)?;
        // What was made alone its clients were told of at once.
        if after < checkpointed.max(group.committed()) || !history.was_led_after(after) {
            return Err(RefusedCopy::Diverged.told(&self.leader_name()).into());
        }
        let directory = inner.directory.as_ref().expect("a copy is stored");
        history.giving_up(after).write(directory)?;
        let reason = format!(
            "it has {} transactions that no client was told of and node {} does not have: it gives them up and begins anew",
            last.0 - after.0,
            self.leader_name()
        );
        group.begin_anew(Anew::Opened, reason);
        Ok(())
    }

    /// The leader sends nothing: where its log lacks what comes next, and it can be asked for its store, that is copied.
    fn note_refused(&self, reason: &RefusedCopy) -> Result<(), String> {
        let leader = self.leader_name();
        if *reason == RefusedCopy::TooOld
            && self.options.copies_anew
            && let Some(group) = self.group.upgrade()
        {
            // All that it has the leader has.
            let reason = format!(
                "it is older than what node {leader} still has in its log: it copies that node's store and begins anew"
            );
            group.begin_anew(Anew::Copied, reason);
            return Ok(());
        }
        Err(reason.told(&leader))
    }

    /// Another node leads: what became of the writes that were sent before is not known.
    fn forget_writes(&self) {
        let mut state = self.state.lock();
        for write in state.writes.values_mut() {
            if matches!(write, WriteState::Sent(_)) {
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
    ) -> Result<(), Stop> {
        let mut last: Option<(SnapshotNumber, Appended)> = None;
        let failed = loop {
            match inner.apply(number, &bytes, self.sealed.load(Relaxed)) {
                Ok(appended) => last = Some((number, appended)),
                Err(error) => break Some(Stop::from((error, bytes.len()))),
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
            inner.publish(appended)?;
            self.tell_applied(number);
            inner.note_transaction();
        }
        failed.map_or(Ok(()), Err)
    }

    /// What makes a snapshot is on the device.
    fn tell_applied(&self, number: SnapshotNumber) {
        let link = self.state.lock().link.clone();
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
    fn end(&self, stop: Stop) {
        let Some(group) = self.group.upgrade() else {
            return;
        };
        if group.ended().is_some() {
            return;
        }
        let reason = stop.reason.clone();
        group.end_at(stop);
        let link = self.state.lock().link.take();
        self.changed.notify_all();
        if let Some(link) = link {
            // Where it has ended, nobody waits for this one anyway.
            let _is_there = link.send(&Head::Ended(reason), &[]);
        }
    }
}

/// What the numbers of writes begin after: none of these was a write's of this node when it ran before, as the leader may
/// know those still.
fn first_write() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}

/// Who made the transactions of this copy, as far as that is known.
fn history_of(inner: &Inner) -> Result<History, StoreError> {
    let directory = inner.directory.as_ref().expect("a copy is stored");
    Ok(History::read(directory)?.unwrap_or_default())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replica::ReplicaWay;

    /// Takes all.
    struct Taking;

    impl ReplicaWay for Taking {
        fn send(&self, _: NodeId, _: Vec<u8>) -> bool {
            true
        }

        fn send_ahead(&self, _: NodeId, _: Vec<u8>) -> bool {
            true
        }
    }

    #[test]
    fn a_leader_hears_once_by_a_link_what_is_here() {
        let way: Arc<dyn ReplicaWay> = Arc::new(Taking);
        let leader = NodeId(0);
        let link = || Arc::new(Link::new(leader, &way));
        let mut state = State::new();
        let first = link();
        assert!(!state.join(leader, Arc::clone(&first)), "nobody leads yet");
        // It begins to follow, and finds the link, while it is being told of that; the leader answers.
        state.leader = Some((leader, 1));
        state.begin_with(Some(Arc::clone(&first)));
        state.is_accepted = true;
        assert!(!state.join(leader, first));
        assert!(state.is_accepted);
        assert_eq!(state.queue.len(), 1);
        assert!(!state.join(NodeId(1), link()), "another node");
        assert!(state.join(leader, link()), "the next link");
        assert!(!state.is_accepted);
        assert_eq!(state.queue.len(), 2);
    }
}
