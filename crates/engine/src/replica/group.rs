//! Which part has this copy now, and what follows from what the nodes say to each other?
//!
//! [`Replication`] says what is to be done, and this does it. What it says of messages, of readers and of clients is done at once by
//! whoever told it something; a change of the part, which waits for threads, by a thread of its own, and so are asking the keeper and
//! noting what it says.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use jindou_model::{NodeId, SnapshotNumber};
use jindou_replication::{
    Action, Answering, Configuration, Message as Said, Replication, Start, Time, Versioned,
};
use jindou_store::Snapshot;
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::device::{Refusal, Stop};
use super::follower::Follower;
use super::keeper::{FirstLeads, Keeper, KeeperError, Noted};
use super::leader::Leader;
use super::lineage::{self, Lineage};
use super::link::Link;
use super::wire::{Head, Pieces};
use super::{
    Anew, FollowerStatus, ReplicaAgreement, ReplicaOptions, ReplicaStatus, Role, Standing,
};
use crate::EngineError;
use crate::database::Inner;

/// How long after the device did not take what was to be noted it is asked again.
const NOTE_AGAIN: Duration = Duration::from_millis(250);
/// How often the time is told to what waits for it.
const TICK: Duration = Duration::from_millis(25);
/// How much longer a transaction is waited for than it takes to do without a slow node, until its client is told that
/// it may have been done: so long the keeper may be away.
const KEEPER_PATIENCE: Duration = Duration::from_secs(20);

/// How long a node whose device failed leaves it to others to lead: until it has begun anew.
const FOR_EVER: Duration = Duration::from_secs(u32::MAX as u64);

/// How long a leader that resigns waits for what it has not told clients of yet.
const FINISHES_WITHIN: Duration = Duration::from_secs(2);

/// One copy's part among all of them.
pub(crate) struct Group {
    inner: Weak<Inner>,
    pub(super) options: ReplicaOptions,
    keeper: Arc<dyn Keeper>,
    /// Another node may take the place of the one that leads.
    pub(crate) has_elections: bool,
    begun: Instant,
    state: Mutex<State>,
    /// What is asked of the state may be otherwise.
    changed: Condvar,
    role: ArcSwap<Role>,
    /// Why nothing is applied any more.
    ended: OnceLock<String>,
    /// Where that is as the device took no more: it begins anew once it does.
    refusal: Mutex<Option<Refusal>>,
    /// What came of messages that are not whole, by node.
    pieces: Mutex<BTreeMap<NodeId, Arc<Mutex<Pieces>>>>,
    /// Snapshots in the log that readers do not see yet.
    unshown: Mutex<VecDeque<Snapshot>>,
    /// Until when what readers see is current for certain: nanoseconds since this began.
    current_until: AtomicU64,
    /// A leader has said that it has all that is here.
    is_copy: AtomicBool,
    /// Nodes that have what readers are to see.
    in_sync: ArcSwap<Vec<NodeId>>,
    /// Where the store notes what is kept, if others may lead.
    noted: Option<Noted>,
    /// There is something to note, or nothing will be any more.
    to_note: Condvar,
    /// The store is to be closed and opened again at once, for this.
    anew: OnceLock<Anew>,
    watch: Mutex<Option<Box<dyn Send>>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct State {
    core: Replication,
    links: BTreeMap<NodeId, Arc<Link>>,
    /// Clients may hear of transactions up to it.
    answered: SnapshotNumber,
    /// Readers see it.
    shown: SnapshotNumber,
    /// Changes of the part that are to be made.
    parts: VecDeque<Part>,
    /// What the keeper is to be asked.
    proposals: VecDeque<(u64, Configuration)>,
    /// What the store is to note of what is kept.
    to_note: Option<Versioned>,
    stopped: bool,
}

enum Part {
    Leads(u64),
    Follows(u64, NodeId),
    Resigns,
}

impl Group {
    /// That of a store which has all up to a snapshot on its device.
    ///
    /// # Errors
    /// [`EngineError::Thread`].
    pub(super) fn start(
        inner: &Arc<Inner>,
        options: ReplicaOptions,
        last: SnapshotNumber,
    ) -> Result<Arc<Self>, EngineError> {
        let directory = inner.directory.as_ref().expect("it is stored");
        let noted = || Noted::new(directory, &options.nodes);
        let first = || Arc::new(FirstLeads::new(options.here, noted())) as Arc<dyn Keeper>;
        let keeper = options.keeper.clone().unwrap_or_else(first);
        let has_elections = keeper.lets_take_over();
        // Otherwise the keeper itself has what its store noted.
        let noted = has_elections.then(noted);
        let known = noted.as_ref().map(Noted::read).unwrap_or_default();
        let in_sync = known.configuration.in_sync.iter().copied().collect();
        let start = Start {
            here: options.here,
            nodes: options.nodes.numbers().last().map_or(0, |last| last.0 + 1),
            timing: options.timing(),
            last,
            known,
            may_form: keeper.lets_form(),
            may_take_over: has_elections,
        };
        let state = State {
            core: Replication::new(start, Time::ZERO),
            links: BTreeMap::new(),
            answered: SnapshotNumber(0),
            shown: last,
            parts: VecDeque::new(),
            proposals: VecDeque::new(),
            to_note: None,
            stopped: false,
        };
        let group = Arc::new_cyclic(|weak: &Weak<Self>| Self {
            inner: Arc::downgrade(inner),
            keeper,
            has_elections,
            begun: Instant::now(),
            state: Mutex::new(state),
            changed: Condvar::new(),
            role: ArcSwap::from_pointee(Role::Follower(Follower::new(inner, &options, weak))),
            ended: OnceLock::new(),
            refusal: Mutex::default(),
            pieces: Mutex::default(),
            unshown: Mutex::default(),
            current_until: AtomicU64::new(0),
            is_copy: AtomicBool::new(false),
            in_sync: ArcSwap::from_pointee(in_sync),
            noted,
            to_note: Condvar::new(),
            anew: OnceLock::new(),
            watch: Mutex::default(),
            threads: Mutex::default(),
            options,
        });
        if let Role::Follower(follower) = &**group.role.load() {
            follower.start()?;
        }
        Ok(group)
    }

    /// Begins to hear of the keeper and of time, once the database knows its part.
    ///
    /// # Errors
    /// [`EngineError::Thread`].
    pub(super) fn begin(self: &Arc<Self>) -> Result<(), EngineError> {
        let told = Arc::downgrade(self);
        let is_first = AtomicBool::new(true);
        let watch = self.keeper.watch(Arc::new(move |kept| {
            if let Some(group) = told.upgrade() {
                // Changes may be told late.
                if is_first.swap(false, Relaxed) {
                    group.look_back(&kept);
                }
                group.with(|core, now| core.decided(now, kept));
            }
        }));
        *self.watch.lock() = Some(watch);
        // Where nobody else can lead, this one does when this returns.
        while !self.has_elections && self.do_next() {}
        let group = Arc::clone(self);
        self.spawn("jindou-replica", move || group.run())?;
        let group = Arc::clone(self);
        self.spawn("jindou-notes", move || group.note_kept())?;
        let group = Arc::clone(self);
        self.spawn("jindou-keeper", move || group.ask())
    }

    fn spawn(&self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), EngineError> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
        let thread = thread.map_err(|source| EngineError::Thread { source })?;
        self.threads.lock().push(thread);
        Ok(())
    }

    fn now(&self) -> Time {
        self.begun.elapsed()
    }

    /// The part that it has now.
    pub(crate) fn role(&self) -> Arc<Role> {
        self.role.load_full()
    }

    /// Tells the protocol something, and does what it says.
    pub(super) fn with(&self, tell: impl FnOnce(&mut Replication, Time)) {
        let mut state = self.state.lock();
        let now = self.now();
        let version = state.core.known().version;
        tell(&mut state.core, now);
        let known = state.core.known();
        if known.version != version {
            let in_sync = known.configuration.in_sync.iter();
            self.in_sync.store(Arc::new(in_sync.copied().collect()));
        }
        let until = match state.core.answering(now) {
            Answering::Current(until) => until,
            Answering::Unsure(until) => until.unwrap_or(Time::ZERO),
        };
        let until = u64::try_from(until.as_nanos()).unwrap_or(u64::MAX);
        self.current_until.store(until, Relaxed);
        let actions = state.core.take_actions();
        let mut at_once = Vec::new();
        for action in actions {
            match action {
                Action::Propose {
                    expected,
                    configuration,
                } => state.proposals.push_back((expected, configuration)),
                Action::Note(kept) => {
                    state.to_note = Some(kept);
                    self.to_note.notify_one();
                }
                Action::Lead { term } => {
                    state.answered = SnapshotNumber(0);
                    state.parts.push_back(Part::Leads(term));
                }
                Action::Follow { term, leader } => {
                    state.parts.push_back(Part::Follows(term, leader));
                }
                Action::Resign => state.parts.push_back(Part::Resigns),
                Action::Answer(number) => state.answered = number,
                Action::Send(to, said) => {
                    let link = state.links.get(&to).map(Arc::clone);
                    at_once.push((link, AtOnce::Send(said)));
                }
                Action::Show(number) => at_once.push((None, AtOnce::Show(number))),
            }
        }
        drop(state);
        self.changed.notify_all();
        for (link, action) in at_once {
            match (action, link) {
                // Where it has ended, the next one begins anew.
                (AtOnce::Send(said @ Said::Beat(_)), Some(link)) => {
                    // Not behind a long transaction: who sends that is not silent.
                    let _is_there = link.send_ahead(&Head::said(&said));
                }
                (AtOnce::Send(said), Some(link)) => {
                    let _is_there = link.send(&Head::said(&said), &[]);
                }
                (AtOnce::Send(_), None) => {}
                (AtOnce::Show(number), _) => self.show(number),
            }
        }
    }

    /// Notes a snapshot that is in the log; the caller holds the writer's lock.
    pub(crate) fn note(&self, snapshot: &Snapshot) {
        self.unshown.lock().push_back(snapshot.clone());
    }

    /// Lets readers see up to a snapshot, which all nodes in sync have.
    fn show(&self, number: SnapshotNumber) {
        let Some(inner) = self.inner.upgrade() else {
            return;
        };
        let mut last = None;
        {
            let mut unshown = self.unshown.lock();
            while let Some(next) = unshown.pop_front_if(|next| next.number() <= number) {
                last = Some(next);
            }
        }
        if let Some(copied) = inner.streams.copied.get()
            && let Err(error) = copied.keep(number)
        {
            tracing::warn!(%error, "what was said of streams is in the log of transactions alone");
        }
        if let Some(snapshot) = last {
            inner.show_upon_latest(snapshot);
        }
        {
            let mut state = self.state.lock();
            state.shown = state.shown.max(number);
        }
        self.with(|core, now| core.shown(now, number));
    }

    /// The log is on the device up to a snapshot.
    pub(super) fn stored(&self, number: SnapshotNumber) {
        self.with(|core, now| core.stored(now, number));
    }

    /// Waits until clients may hear of a transaction that is on the device here, if this copy made it as the leader of
    /// a term.
    ///
    /// # Errors
    /// [`EngineError::WriteUnknown`] if another term has begun, or the keeper must say whether nodes that are away are
    /// to be waited for and is away, too.
    pub(crate) fn publish(
        &self,
        number: SnapshotNumber,
        term: Option<u64>,
    ) -> Result<(), EngineError> {
        if let Role::Leader(leader) = &*self.role()
            && Some(leader.term) == term
        {
            leader.send(number);
        }
        self.stored(number);
        if term.is_none() {
            return Ok(());
        }
        let until = self.options.wait + 2 * self.options.timing.grace + KEEPER_PATIENCE;
        let until = Instant::now() + until;
        let mut state = self.state.lock();
        loop {
            // What was made in another term may be what the leader of this one does not have.
            let goes_on = state.core.leads() == term && !state.stopped;
            if goes_on && state.answered >= number {
                return Ok(());
            }
            if !goes_on || self.changed.wait_until(&mut state, until).timed_out() {
                return Err(EngineError::WriteUnknown {
                    node: self.options.name(self.options.here),
                });
            }
        }
    }

    /// Waits until all nodes in sync have a snapshot, for as long as a slow one is waited for; true if they have.
    pub(crate) fn wait_until_committed(&self, number: SnapshotNumber) -> bool {
        let until = Instant::now() + self.options.wait;
        let mut state = self.state.lock();
        while state.core.committed() < number && !state.stopped {
            if self.changed.wait_until(&mut state, until).timed_out() {
                break;
            }
        }
        state.core.committed() >= number
    }

    /// Whether all nodes in sync have a snapshot.
    pub(crate) fn has_committed(&self, number: SnapshotNumber) -> bool {
        self.state.lock().core.committed() >= number
    }

    /// Waits until readers see a snapshot, for so long at most; true if they do.
    pub(crate) fn wait_for_snapshot(&self, number: SnapshotNumber, within: Duration) -> bool {
        let until = Instant::now().checked_add(within);
        let mut state = self.state.lock();
        while state.shown < number && self.ended().is_none() && !state.stopped {
            if self.wait(&mut state, until) {
                break;
            }
        }
        state.shown >= number
    }

    /// Waits for what is next; true if it is too late.
    fn wait(&self, state: &mut MutexGuard<'_, State>, until: Option<Instant>) -> bool {
        match until {
            Some(until) => self.changed.wait_until(state, until).timed_out(),
            None => {
                self.changed.wait(state);
                false
            }
        }
    }

    /// Why nothing is applied any more, if nothing is.
    pub(crate) fn ended(&self) -> Option<&String> {
        self.ended.get()
    }

    /// Nothing is applied any more.
    pub(super) fn end(&self, reason: String) {
        if self.ended.set(reason.clone()).is_ok() {
            tracing::error!("this copy follows the leader of its cluster no more: {reason}");
        }
        self.changed.notify_all();
    }

    /// The same, until the device does what it did not do, if that is why.
    pub(super) fn end_at(&self, stop: Stop) {
        if let Some(bytes) = stop.refused {
            let mut refusal = self.refusal.lock();
            refusal.get_or_insert_with(|| Refusal::new(bytes, &self.options.timing));
        }
        self.end(stop.reason);
    }

    /// Leaves it to another node to lead where the device takes no more here, for good; begins anew where it does again.
    fn look_after_device(&self) {
        let Some(inner) = self.inner.upgrade() else {
            return;
        };
        if let Some(reason) = inner.log_failure.get()
            && self.has_elections
            && self.ended().is_none()
        {
            self.leave_lead(Stop {
                reason: reason.clone(),
                refused: Some(0),
            });
        }
        let directory = inner.directory.as_ref().expect("it is stored");
        let mut refusal = self.refusal.lock();
        if refusal
            .as_mut()
            .is_some_and(|it| it.is_over(directory.path()))
        {
            *refusal = None;
            drop(refusal);
            tracing::warn!("the device takes what it refused: this copy begins anew");
            self.begin_anew(Anew::Opened, "its device had no room".to_owned());
        }
    }

    /// Does not lead any more, nor follow, for this reason: another node takes its place where one can.
    fn leave_lead(&self, stop: Stop) {
        self.with(|core, now| core.resign(now + FOR_EVER));
        self.end_at(stop);
    }

    /// The store is to be closed and opened again.
    pub(crate) fn begin_anew(&self, anew: Anew, reason: String) {
        // What was said first is done first, and what is still so then is said again.
        let _is_first = self.anew.set(anew).is_ok();
        self.end(reason);
    }

    /// As [`Replica::begins_anew`](super::Replica::begins_anew).
    pub(super) fn begins_anew(&self) -> Option<Anew> {
        self.anew.get().copied()
    }

    /// As [`Database::wait_to_begin_anew`](crate::Database::wait_to_begin_anew).
    pub(super) fn wait_to_begin_anew(&self, within: Duration) -> Option<Anew> {
        let until = Instant::now().checked_add(within);
        let mut state = self.state.lock();
        while self.begins_anew().is_none() {
            if self.wait(&mut state, until) || state.stopped {
                break;
            }
        }
        self.begins_anew()
    }

    /// The leader of a term has said that it has all that is here.
    pub(super) fn followed(&self, term: u64) {
        self.is_copy.store(true, Relaxed);
        self.with(|core, _| core.followed(term));
    }

    /// Whether this copy, which is to give transactions up, follows still in this term; it does not lead any more then, as they are
    /// to be seen by nobody.
    pub(super) fn gives_up(&self, term: u64) -> bool {
        let mut gives_up = false;
        self.with(|core, _| gives_up = core.gives_up(term));
        gives_up
    }

    /// As [`Replica::may_answer`](super::Replica::may_answer).
    pub(super) fn may_answer(&self, within: Duration) -> Result<(), Standing> {
        if self.is_current(None) {
            return Ok(());
        }
        let until = Instant::now().checked_add(within);
        let mut state = self.state.lock();
        loop {
            if let Some(reason) = self.ended() {
                return Err(Standing::Ended(reason.clone()));
            }
            if self.is_current(Some(&state)) {
                return Ok(());
            }
            if self.wait(&mut state, until) || state.stopped {
                return Err(self.why_not_current());
            }
        }
    }

    /// Whether what readers see is what they are to see now.
    fn is_current(&self, state: Option<&State>) -> bool {
        if self.ended.get().is_some() {
            return false;
        }
        let until = Duration::from_nanos(self.current_until.load(Relaxed));
        let now = self.begun.elapsed();
        match (self.options.max_staleness, state) {
            (_, _) if now < until => true,
            (Some(age), _) => now < until.saturating_add(age) && !until.is_zero(),
            // However old it is, it is a copy, and what comes later comes from a node that is away.
            (None, Some(state)) => self.is_copy.load(Relaxed) && !state.core.hears_leader(now),
            (None, None) => false,
        }
    }

    fn why_not_current(&self) -> Standing {
        match self.current_until.load(Relaxed) {
            0 => Standing::Waits,
            until => Standing::Unsure {
                since: self
                    .begun
                    .elapsed()
                    .saturating_sub(Duration::from_nanos(until)),
            },
        }
    }

    pub(super) fn joined(&self, node: NodeId) {
        if !self.options.has(node) {
            return;
        }
        self.pieces.lock().insert(node, Arc::default());
        let link = Arc::new(Link::new(node, &self.options.way));
        let before = self.state.lock().links.insert(node, Arc::clone(&link));
        if let Some(before) = before {
            before.end();
        }
        match &*self.role() {
            Role::Leader(leader) => leader.joined(node, link),
            Role::Follower(follower) => follower.joined(node, link),
        }
        self.with(|core, now| core.linked(now, node));
    }

    pub(super) fn lost(&self, node: NodeId) {
        let link = self.state.lock().links.remove(&node);
        if let Some(link) = link {
            link.end();
        }
        match &*self.role() {
            Role::Leader(leader) => leader.lost(node),
            Role::Follower(follower) => follower.lost(node),
        }
        self.with(|core, now| core.unlinked(now, node));
    }

    pub(super) fn received(&self, from: NodeId, piece: &[u8]) -> Result<(), String> {
        if !self.options.has(from) {
            return Err(format!("there is no node {from}"));
        }
        // There are some from when the link began.
        let pieces = self.pieces.lock().get(&from).map(Arc::clone);
        let pieces = pieces.unwrap_or_default();
        let mut pieces = pieces.lock();
        let message = pieces.add(piece, self.options.message_bytes)?;
        drop(pieces);
        let Some(message) = message else {
            self.with(|core, _| core.came(from));
            return Ok(());
        };
        if let Some(said) = message.head.what_is_said()? {
            self.with(|core, now| core.received(now, from, &said));
            return Ok(());
        }
        match &*self.role() {
            Role::Leader(leader) => leader.received(from, message),
            Role::Follower(follower) => follower.received(from, message),
        }
    }

    /// The link with a node, if there is one.
    pub(super) fn link(&self, node: NodeId) -> Option<Arc<Link>> {
        self.state.lock().links.get(&node).map(Arc::clone)
    }

    /// The node that leads and its term, as far as it is known here.
    pub(super) fn leader(&self) -> Option<(NodeId, u64)> {
        let state = self.state.lock();
        let known = state.core.known();
        (known.version > 0).then_some((known.configuration.leader, known.configuration.term))
    }

    /// The name of the node that leads, or of the group while none is known.
    pub(crate) fn leader_name(&self) -> String {
        match self.leader() {
            Some((leader, _)) => self.options.name(leader),
            None => "that leads".to_owned(),
        }
    }

    pub(super) fn is_in_sync(&self, node: NodeId) -> bool {
        let state = self.state.lock();
        state.core.known().configuration.in_sync.contains(&node)
    }

    /// Whether all of these nodes have what readers are to see, as far as is known here.
    pub(super) fn are_in_sync(&self, nodes: &[NodeId]) -> bool {
        let in_sync = self.in_sync.load();
        nodes.iter().all(|node| in_sync.contains(node))
    }

    /// What all copies agree on, once that is known here.
    pub(super) fn agreement(&self) -> Option<ReplicaAgreement> {
        let state = self.state.lock();
        let known = state.core.known();
        let in_sync = known.configuration.in_sync.iter();
        (known.version > 0).then(|| ReplicaAgreement {
            leader: self.options.name(known.configuration.leader),
            term: known.configuration.term,
            in_sync: in_sync.map(|node| self.options.name(*node)).collect(),
            committed: state.core.committed(),
        })
    }

    pub(super) fn committed(&self) -> SnapshotNumber {
        self.state.lock().core.committed()
    }

    pub(super) fn status(&self) -> ReplicaStatus {
        match &*self.role() {
            Role::Leader(leader) => ReplicaStatus::Leads {
                followers: (leader.status().into_iter())
                    .map(|(node, applied)| FollowerStatus {
                        name: self.options.name(node),
                        applied,
                        is_awaited: applied.is_some() && self.is_in_sync(node),
                    })
                    .collect(),
            },
            Role::Follower(follower) => {
                let leader = self.leader();
                let name = |(node, _): (NodeId, u64)| self.options.name(node);
                ReplicaStatus::Follows {
                    leader: leader.map(name),
                    is_led: follower.is_led() && self.ended().is_none(),
                    ended: self.ended().cloned(),
                }
            }
        }
    }

    /// Tells the time, and changes the part where that is to be.
    fn run(&self) {
        loop {
            while self.do_part() {}
            self.with(|core, now| core.tick(now));
            self.look_after_device();
            let mut state = self.state.lock();
            if state.stopped {
                return;
            }
            if state.parts.is_empty() {
                self.changed.wait_for(&mut state, TICK);
            }
        }
    }

    /// Asks the keeper what it is to be asked.
    fn ask(&self) {
        loop {
            while self.do_proposal() {}
            let mut state = self.state.lock();
            if state.stopped {
                return;
            }
            if state.proposals.is_empty() {
                self.changed.wait(&mut state);
            }
        }
    }

    /// Does what is next of what threads do otherwise; false if nothing is.
    fn do_next(&self) -> bool {
        self.with(|core, now| core.tick(now));
        self.do_proposal() || self.do_part()
    }

    fn do_proposal(&self) -> bool {
        let next = self.state.lock().proposals.pop_front();
        let Some((expected, configuration)) = next else {
            return false;
        };
        let replaced = self.keeper.replace(expected, &configuration);
        self.with(|core, now| match replaced {
            Ok(kept) => core.decided(now, kept),
            Err(KeeperError::Refused(reason)) => {
                tracing::warn!("who leads, and which nodes are in sync, stays as it is: {reason}");
                core.refused(now, expected);
            }
            Err(KeeperError::Unknown(reason)) => {
                tracing::warn!("it is not known who leads, and which nodes are in sync: {reason}");
                core.undecided(now, expected);
            }
        });
        true
    }

    /// Notes what is kept, before this node acts by it.
    fn note_kept(&self) {
        let Some(noted) = &self.noted else { return };
        let mut has_failed = false;
        let mut state = self.state.lock();
        while !state.stopped {
            let Some(kept) = state.to_note.take() else {
                self.to_note.wait(&mut state);
                continue;
            };
            drop(state);
            let written = noted.write(&kept);
            if let Err(error) = &written
                && !std::mem::replace(&mut has_failed, true)
            {
                tracing::warn!(
                    %error,
                    "which node leads, and which are in sync, cannot be noted: no other leader is followed here until it can"
                );
            }
            if written.is_ok() {
                has_failed = false;
                self.with(|core, now| core.noted(now, kept));
                state = self.state.lock();
            } else {
                state = self.state.lock();
                state.to_note.get_or_insert(kept);
                self.to_note.wait_for(&mut state, NOTE_AGAIN);
            }
        }
    }

    /// Says so if the keeper has less than this node knows.
    fn look_back(&self, kept: &Versioned) {
        let state = self.state.lock();
        let known = state.core.known();
        if kept.version >= known.version {
            return;
        }
        let in_sync = known.configuration.in_sync.iter();
        let in_sync: Vec<String> = in_sync.map(|node| self.options.name(*node)).collect();
        let is_own = known.configuration.in_sync.contains(&self.options.here);
        drop(state);
        let in_sync = in_sync.join(", ");
        match kept.version {
            0 if is_own => tracing::warn!(
                "nothing is kept of who leads any more; this node was in sync last, with all of {in_sync}, and leads where \
                 no other one does"
            ),
            0 => tracing::warn!(
                "nothing is kept of who leads any more, and this node was not in sync last: start one of {in_sync} first"
            ),
            _ => tracing::warn!(
                "what is kept of who leads is older than what this node knows; in sync were {in_sync} last"
            ),
        }
    }

    fn do_part(&self) -> bool {
        let next = {
            let mut state = self.state.lock();
            if state.stopped {
                None
            } else {
                state.parts.pop_front()
            }
        };
        let Some(inner) = self.inner.upgrade() else {
            return false;
        };
        match next {
            None => return false,
            Some(Part::Leads(term)) => {
                if let Err(error) = self.lead(&inner, term) {
                    let Stop { reason, refused } = error.into();
                    let reason = format!("it cannot lead: {reason}");
                    self.leave_lead(Stop { reason, refused });
                }
            }
            Some(Part::Resigns) => {
                if let Err(error) = self.stop_leading(&inner, "another node is to lead") {
                    self.end(format!("it cannot follow: {error}"));
                }
            }
            Some(Part::Follows(term, leader)) => {
                if let Err(error) = self.follow(&inner, (term, leader)) {
                    self.end(format!("it cannot follow: {error}"));
                }
            }
        }
        true
    }

    /// Begins to order transactions.
    fn lead(&self, inner: &Arc<Inner>, term: u64) -> Result<(), EngineError> {
        let role = self.role();
        role.stop();
        let (leader, last) = {
            let mut writer = inner.writer.lock();
            if let Some((log, ticket)) = &writer.last {
                // What the others are to have is on this device first.
                let synced = log.sync(*ticket);
                synced.map_err(|error| writer.refused(error))?;
            }
            let latest = writer.latest.clone();
            let last = latest.number();
            writer.begin_run(SnapshotNumber(last.0 + 1), true)?;
            // The others may merge what came before, where the leader before said so.
            latest.close_extents();
            let directory = inner.directory.as_ref().expect("it is stored");
            let lineage = Lineage::new(lineage::of_leader(directory, &latest)?);
            let group = inner.group().expect("it has a part");
            let leader = Leader::new(inner, group, (term, last), lineage);
            writer.leads = Some(Arc::clone(&leader));
            writer.follows = false;
            self.role.store(Arc::new(Role::Leader(Arc::clone(&leader))));
            (leader, last)
        };
        self.is_copy.store(true, Relaxed);
        self.stored(last);
        let links: Vec<_> = {
            let state = self.state.lock();
            let links = state.links.iter();
            links
                .map(|(node, link)| (*node, Arc::clone(link)))
                .collect()
        };
        for (node, link) in links {
            leader.joined(node, link);
        }
        if self.has_elections {
            tracing::info!("this node leads, in term {term}");
        }
        inner.note_due();
        inner.begin_leading_streams()
    }

    /// As [`Replica::resign`](super::Replica::resign).
    pub(super) fn resign(&self, within: Duration) {
        if let Some(inner) = self.inner.upgrade()
            && let Role::Leader(_) = &*self.role()
        {
            self.finish_writes(&inner);
        }
        self.with(|core, now| core.resign(now + within));
    }

    /// Takes no more writes, and waits, but not for long, until clients may hear of those that there are: another leader would
    /// not have what this one did last.
    fn finish_writes(&self, inner: &Inner) {
        let last = {
            let mut writer = inner.writer.lock();
            writer.follows = true;
            writer.latest.number()
        };
        let until = Instant::now() + FINISHES_WITHIN;
        let mut state = self.state.lock();
        while state.core.leads().is_some() && state.answered < last && !state.stopped {
            if self.changed.wait_until(&mut state, until).timed_out() {
                break;
            }
        }
    }

    /// Orders no transactions any more, if it did, for a reason that is said if it begins anew for that.
    fn stop_leading(&self, inner: &Arc<Inner>, why: &str) -> Result<(), EngineError> {
        let role = self.role();
        if !matches!(&*role, Role::Leader(_)) {
            return Ok(());
        }
        {
            let mut writer = inner.writer.lock();
            writer.leads = None;
            writer.follows = true;
            let group = inner.group().expect("it has a part");
            let follower = Follower::new(inner, &self.options, &Arc::downgrade(group));
            follower.start()?;
            self.role.store(Arc::new(Role::Follower(follower)));
        }
        role.stop();
        if !inner.streams.end_leading() {
            let reason =
                format!("{why}, and the streams that went on here go on there: it begins anew");
            self.begin_anew(Anew::Opened, reason);
        }
        Ok(())
    }

    /// Orders no transactions any more, if it did, and follows another node.
    fn follow(&self, inner: &Arc<Inner>, (term, leader): (u64, NodeId)) -> Result<(), EngineError> {
        let name = self.options.name(leader);
        self.stop_leading(inner, &format!("node {name} leads now"))?;
        if self.has_elections {
            let name = self.options.name(leader);
            tracing::info!("node {name} leads, in term {term}");
        }
        if let Role::Follower(follower) = &*self.role() {
            follower.follow((leader, term), self.link(leader));
        }
        Ok(())
    }

    /// Ends all threads, and waits until they have ended; writes under way are cancelled.
    pub(crate) fn stop(&self) {
        self.state.lock().stopped = true;
        self.changed.notify_all();
        self.to_note.notify_all();
        // Its thread may be telling something.
        let watch = self.watch.lock().take();
        drop(watch);
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            // What it panicked with was printed.
            let _ = thread.join();
        }
        self.role().stop();
    }
}

/// What whoever told the protocol something does itself.
enum AtOnce {
    Send(Said),
    Show(SnapshotNumber),
}
