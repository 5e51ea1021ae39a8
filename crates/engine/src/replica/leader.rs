//! Which transactions have gone to which follower?
//!
//! Transactions are queued while the writer's lock is held, so in their order. Once the log is on the device they go
//! to all followers that have all before them, and into a bounded backlog. What each has on its device its
//! [`Group`] is told, which knows who is waited for.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jindou_model::{NodeId, PredicateId, SnapshotNumber, printable};
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::ReplicaOptions;
use super::execute::Writes;
use super::group::Group;
use super::lineage::Lineage;
use super::link::Link;
use super::wire::{Head, Message, RefusedCopy};
use crate::EngineError;
use crate::database::Inner;
use crate::prefixes::PrefixTable;

/// The leader's part.
pub(crate) struct Leader {
    pub(super) inner: Weak<Inner>,
    group: Weak<Group>,
    /// The term in which it leads.
    pub(crate) term: u64,
    pub(crate) options: ReplicaOptions,
    pub(super) state: Mutex<State>,
    pub(super) changed: Condvar,
    lineage: Lineage,
    pub(super) writes: Arc<Writes>,
    /// Those that catch up, and some that have ended.
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// What the leader knows of its followers.
pub(super) struct State {
    /// In the log, and not known to be on the device.
    waiting: VecDeque<Item>,
    /// The last ones that are.
    pub(super) backlog: VecDeque<Item>,
    backlog_bytes: usize,
    /// The last snapshot that is on the device and goes to followers.
    pub(super) sent: SnapshotNumber,
    /// Items so far.
    items: u64,
    peers: BTreeMap<NodeId, Peer>,
    /// Sessions so far.
    sessions: u64,
    /// Copies of the store on their way to nodes.
    copies: BTreeMap<NodeId, Given>,
    pub(super) stopped: bool,
}

/// A copy of the store that is, or was, sent to a node which is to follow with it.
struct Given {
    /// The log is to have what follows.
    from: SnapshotNumber,
    /// Until then, once it was sent.
    until: Option<Instant>,
}

/// Something that followers are sent, in order.
#[derive(Clone)]
pub(super) struct Item {
    /// The snapshot that it makes or is about.
    pub(super) number: SnapshotNumber,
    /// Greater than those of all items before; none of one that was read from the log.
    pub(super) place: Option<u64>,
    pub(super) what: What,
}

#[derive(Clone)]
pub(super) enum What {
    Transaction(Arc<[u8]>),
    /// The leader closed its extents, and merges: without these predicates.
    Merge(Arc<[u32]>),
    /// It closed them for one session, which may have missed merges: its base lacks changes of these predicates only.
    Closed((NodeId, u64), Arc<[u32]>),
}

impl Item {
    /// Bytes of a transaction.
    pub(super) fn bytes(&self) -> usize {
        match &self.what {
            What::Transaction(bytes) => bytes.len(),
            What::Merge(_) | What::Closed(..) => 0,
        }
    }

    /// Bytes that it holds in the backlog.
    fn held_bytes(&self) -> usize {
        let beside = match &self.what {
            What::Merge(predicates) => size_of_val(&**predicates),
            What::Transaction(_) | What::Closed(..) => self.bytes(),
        };
        size_of::<Self>() + beside
    }

    fn is_transaction(&self) -> bool {
        matches!(self.what, What::Transaction(_))
    }

    fn is_for(&self, node: NodeId, session: u64) -> bool {
        match self.what {
            What::Closed(only, _) => only == (node, session),
            What::Transaction(_) | What::Merge(_) => true,
        }
    }

    fn send(&self, link: &Link) -> bool {
        let number = self.number.0;
        match &self.what {
            What::Transaction(bytes) => link.send(&Head::Transaction { number }, &[bytes]),
            What::Merge(unmerged) => link.send(&closed(number, true, unmerged), &[]),
            What::Closed(_, unmerged) => link.send(&closed(number, false, unmerged), &[]),
        }
    }
}

/// A node that there is a link with.
struct Peer {
    link: Arc<Link>,
    /// Since it has said what it has.
    session: Option<Session>,
}

/// What a follower was sent and has.
pub(super) struct Session {
    /// No other one has this number.
    number: u64,
    link: Arc<Link>,
    pub(super) sent: SnapshotNumber,
    /// The place of the last item, unless that was read from the log or was before the session.
    place: Option<u64>,
    applied: SnapshotNumber,
    /// Transactions that it was sent and has not applied, with their bytes.
    unapplied: VecDeque<(SnapshotNumber, usize)>,
    pub(super) unapplied_bytes: usize,
    /// It gets what is new at once.
    pub(super) is_pushed: bool,
    /// Extents were closed for it.
    pub(super) has_closed: bool,
}

impl Session {
    /// Sends the next item; false if the link has ended.
    pub(super) fn send(&mut self, item: &Item) -> bool {
        (self.sent, self.place) = (item.number, item.place);
        let bytes = item.bytes();
        if bytes > 0 {
            self.unapplied.push_back((item.number, bytes));
            self.unapplied_bytes += bytes;
        }
        item.send(&self.link)
    }

    fn note_applied(&mut self, number: SnapshotNumber) {
        self.applied = self.applied.max(number);
        while let Some((first, bytes)) = self.unapplied.front().copied() {
            if first > self.applied {
                break;
            }
            self.unapplied.pop_front();
            self.unapplied_bytes -= bytes;
        }
    }

    /// Whether it was sent an item of the backlog, or had what that is about before. That the leader merges the last
    /// snapshot that it has it may not know.
    pub(super) fn is_behind(&self, item: &Item) -> bool {
        match self.place {
            Some(last) => item.place > Some(last),
            None if item.number == self.sent => !item.is_transaction(),
            None => item.number > self.sent,
        }
    }
}

impl State {
    /// The session of this number with a node, if it goes on.
    pub(super) fn session(&mut self, (node, number): (NodeId, u64)) -> Option<&mut Session> {
        let session = self.peers.get_mut(&node)?.session.as_mut()?;
        (session.number == number && !self.stopped).then_some(session)
    }

    /// The place in the backlog of the first item that a session was not sent.
    pub(super) fn first_after(&mut self, session: (NodeId, u64)) -> Option<usize> {
        let backlog = std::mem::take(&mut self.backlog);
        let now = self.session(session);
        let first = now.map(|now| backlog.partition_point(|item| !now.is_behind(item)));
        self.backlog = backlog;
        first
    }

    fn sessions(&mut self) -> impl Iterator<Item = (NodeId, &mut Session)> {
        let sessions = self.peers.iter_mut();
        sessions.filter_map(|(node, peer)| Some((*node, peer.session.as_mut()?)))
    }

    /// The first snapshot that the backlog leads from.
    pub(super) fn backlog_from(&self) -> Option<SnapshotNumber> {
        let first = self.backlog.iter().find(|item| item.is_transaction())?;
        Some(SnapshotNumber(first.number.0 - 1))
    }

    /// Sends what waits up to a snapshot, which is on the device.
    fn send(&mut self, until: SnapshotNumber, options: &ReplicaOptions) {
        while self
            .waiting
            .front()
            .is_some_and(|item| item.number <= until)
        {
            let item = self.waiting.pop_front().expect("there is one");
            self.sent = item.number;
            for (node, session) in self.sessions().filter(|(_, session)| session.is_pushed) {
                if !item.is_for(node, session.number) {
                    continue;
                }
                if !session.send(&item) || session.unapplied_bytes >= options.window_bytes {
                    // It gets what follows as it applies what it has.
                    session.is_pushed = false;
                }
            }
            if let What::Closed(..) = item.what {
                continue;
            }
            self.backlog_bytes += item.held_bytes();
            self.backlog.push_back(item);
            while self.backlog_bytes > options.backlog_bytes {
                let first = self.backlog.pop_front().expect("it has bytes");
                self.backlog_bytes -= first.held_bytes();
            }
        }
    }
}

impl Leader {
    /// The part of the leader of these nodes, which has all up to a snapshot on its device.
    pub(super) fn new(
        inner: &Arc<Inner>,
        group: &Arc<Group>,
        (term, number): (u64, SnapshotNumber),
        lineage: Lineage,
    ) -> Arc<Self> {
        let options = group.options.clone();
        Arc::new(Self {
            inner: Arc::downgrade(inner),
            group: Arc::downgrade(group),
            term,
            writes: Arc::new(Writes::new(&options)),
            options,
            state: Mutex::new(State {
                waiting: VecDeque::new(),
                backlog: VecDeque::new(),
                backlog_bytes: 0,
                sent: number,
                items: 0,
                peers: BTreeMap::new(),
                sessions: 0,
                copies: BTreeMap::new(),
                stopped: false,
            }),
            changed: Condvar::new(),
            lineage,
            threads: Mutex::default(),
        })
    }

    /// That followers can be sent a transaction of so many bytes.
    ///
    /// # Errors
    /// [`EngineError::TransactionTooLarge`].
    pub(crate) fn check_size(&self, bytes: usize) -> Result<(), EngineError> {
        let limit = self.options.message_bytes.saturating_sub(HEAD_BYTES);
        match bytes <= limit {
            true => Ok(()),
            false => Err(EngineError::TransactionTooLarge {
                bytes: bytes as u64,
                limit_bytes: limit as u64,
            }),
        }
    }

    /// Queues a transaction that is in the log; the caller holds the writer's lock.
    pub(crate) fn queue(&self, number: SnapshotNumber, bytes: Vec<u8>) {
        self.queue_up(number, What::Transaction(bytes.into()));
    }

    /// Queues that extents were closed at the latest snapshot, and that all changes are merged but those of the
    /// `unmerged` predicates: followers are to do the same. The caller holds the writer's lock.
    pub(crate) fn queue_merge(&self, number: SnapshotNumber, unmerged: &[PredicateId]) {
        self.queue_up(number, What::Merge(numbers(unmerged)));
    }

    /// Queues that extents were closed for a session at the latest snapshot, and of which predicates changes are not
    /// merged; the caller holds the writer's lock.
    pub(super) fn queue_closed(
        &self,
        number: SnapshotNumber,
        session: (NodeId, u64),
        unmerged: &[PredicateId],
    ) {
        self.queue_up(number, What::Closed(session, numbers(unmerged)));
    }

    fn queue_up(&self, number: SnapshotNumber, what: What) {
        let mut state = self.state.lock();
        state.items += 1;
        let place = Some(state.items);
        state.waiting.push_back(Item {
            number,
            place,
            what,
        });
    }

    /// Sends followers what is queued up to a snapshot, which is on the device.
    pub(crate) fn send(&self, until: SnapshotNumber) {
        self.send_with(self.state.lock(), until);
    }

    /// Sends what is queued about snapshots that were sent before.
    pub(super) fn send_rest(&self) {
        let state = self.state.lock();
        let sent = state.sent;
        self.send_with(state, sent);
    }

    fn send_with(&self, mut state: MutexGuard<'_, State>, until: SnapshotNumber) {
        state.send(until, &self.options);
        let mut sessions = state.sessions();
        if sessions.any(|(_, session)| !session.is_pushed) {
            self.changed.notify_all();
        }
    }

    /// Sends all followers the prefixes that the database knows.
    pub(crate) fn send_prefixes(&self, table: &PrefixTable) {
        let head = prefixes(table);
        for (_, session) in self.state.lock().sessions() {
            // One whose link has ended gets them when it comes back.
            let _is_there = session.link.send(&head, &[]);
        }
    }

    /// There is this link with a node from now on.
    pub(super) fn joined(&self, node: NodeId, link: Arc<Link>) {
        let ask = Head::Ask { term: self.term };
        let mut state = self.state.lock();
        let is_known = |peer: &Peer| Arc::ptr_eq(&peer.link, &link);
        if state.peers.get(&node).is_some_and(is_known) {
            return;
        }
        // Where it has ended, the next one is told of.
        let _is_there = link.send(&ask, &[]);
        let session = None;
        state.peers.insert(node, Peer { link, session });
        self.changed.notify_all();
    }

    pub(super) fn lost(&self, node: NodeId) {
        self.state.lock().peers.remove(&node);
        self.changed.notify_all();
    }

    pub(super) fn received(self: &Arc<Self>, from: NodeId, message: Message) -> Result<(), String> {
        let Message { head, body } = message;
        match head {
            Head::Begin {
                term,
                epoch,
                number,
                runs,
                digest,
            } if term == self.term => {
                self.begin(from, epoch, (SnapshotNumber(number), &runs, digest))
            }
            Head::Applied { number } => self.note_applied(from, SnapshotNumber(number)),
            Head::Write {
                id,
                request,
                options,
            } => {
                let link = self.link(from)?;
                self.writes
                    .take(self, (link, id), (*request, *options, body))
            }
            Head::Cancel { id } => {
                self.writes.cancel(from, id);
                Ok(())
            }
            Head::Asked { ids } => {
                self.writes.answer_again(&*self.link(from)?, &ids);
                Ok(())
            }
            Head::Ended(reason) => {
                self.end(from, &reason);
                Ok(())
            }
            // It is of another term: of one that has ended, or that is not known here yet, and then it is said again.
            Head::Begin { .. }
            | Head::Ask { .. }
            | Head::Refused(_)
            | Head::GiveUp { .. }
            | Head::Transaction { .. }
            | Head::Closed { .. }
            | Head::History { .. }
            | Head::Prefixes(_)
            | Head::Written { .. } => Ok(()),
            Head::Said(..) => Err("its group is told of that".to_owned()),
        }
    }

    /// # Errors
    /// That there is none.
    pub(super) fn link(&self, node: NodeId) -> Result<Arc<Link>, String> {
        let state = self.state.lock();
        let peer = state.peers.get(&node);
        let link = peer.map(|peer| Arc::clone(&peer.link));
        link.ok_or_else(|| format!("there is no link with node {node}"))
    }

    fn note_applied(&self, from: NodeId, number: SnapshotNumber) -> Result<(), String> {
        let mut state = self.state.lock();
        let peer = state.peers.get_mut(&from);
        let Some(session) = peer.and_then(|peer| peer.session.as_mut()) else {
            // It was on its way when the session was ended.
            return Ok(());
        };
        if number > session.sent {
            return Err(format!(
                "it has applied snapshot {}, which it was not sent",
                number.0
            ));
        }
        session.note_applied(number);
        drop(state);
        self.changed.notify_all();
        self.tell_of(from, number);
        Ok(())
    }

    /// A node has what this one has, up to a snapshot, on its device.
    fn tell_of(&self, node: NodeId, number: SnapshotNumber) {
        if let Some(group) = self.group.upgrade() {
            group.with(|core, now| core.has(now, node, self.term, number));
        }
    }

    fn tell_of_none(&self, node: NodeId) {
        if let Some(group) = self.group.upgrade() {
            group.with(|core, now| core.has_nothing(now, node));
        }
    }

    /// A follower applies nothing any more: nobody waits for it.
    fn end(&self, node: NodeId, reason: &str) {
        if let Some(peer) = self.state.lock().peers.get_mut(&node) {
            peer.session = None;
        }
        self.changed.notify_all();
        self.tell_of_none(node);
        let (name, reason) = (self.options.name(node), printable(reason));
        tracing::warn!("node {name} follows no more: {reason}");
    }

    /// Begins to send a follower what it lacks.
    fn begin(
        self: &Arc<Self>,
        from: NodeId,
        epoch: u64,
        (number, runs, digest): (SnapshotNumber, &[(u64, u64)], Option<u64>),
    ) -> Result<(), String> {
        let Some(inner) = self.inner.upgrade() else {
            return Ok(());
        };
        let own_epoch = inner.graph.load().snapshot.epoch().0;
        let mut state = self.state.lock();
        // Now, so that whoever changes them next finds the session.
        let table = inner.prefixes.table();
        let sent = state.sent;
        state.sessions += 1;
        let session_number = state.sessions;
        let Some(peer) = state.peers.get_mut(&from) else {
            return Err(format!("there is no link with node {from}"));
        };
        // What it says twice by one link it had said before it knew that it was heard.
        if peer.session.is_some() {
            return Ok(());
        }
        // What is in the log here and not on the device was sent to nobody.
        let common = (epoch == own_epoch)
            .then(|| self.lineage.common(sent, (number, runs), digest))
            .flatten();
        match common {
            Some(common) if common >= number => {}
            Some(SnapshotNumber(after)) => {
                let _is_there = peer.link.send(&Head::GiveUp { after }, &[]);
                return Ok(());
            }
            None => {
                let reason = match epoch == own_epoch {
                    true => RefusedCopy::Diverged,
                    false => RefusedCopy::OtherStore,
                };
                self.refuse(from, &peer.link, reason);
                return Ok(());
            }
        }
        let _is_there = peer.link.send(&self.lineage.head(self.term), &[]);
        let _is_there = peer.link.send(&prefixes(&table), &[]);
        // From now on the session says what it lacks.
        state.copies.remove(&from);
        let peer = state.peers.get_mut(&from).expect("it was there");
        peer.session = Some(Session {
            number: session_number,
            link: Arc::clone(&peer.link),
            sent: number,
            place: None,
            applied: number,
            unapplied: VecDeque::new(),
            unapplied_bytes: 0,
            is_pushed: false,
            has_closed: false,
        });
        drop(state);
        self.tell_of(from, number);
        self.start_catching_up((from, session_number))
    }

    fn start_catching_up(self: &Arc<Self>, session: (NodeId, u64)) -> Result<(), String> {
        let leader = Arc::clone(self);
        let thread = std::thread::Builder::new().name("jindou-catch-up".to_owned());
        let thread = thread.spawn(move || leader.catch_up(session));
        let thread = thread.map_err(|error| format!("no thread can be started: {error}"))?;
        let mut threads = self.threads.lock();
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
        Ok(())
    }

    /// Ends a session: the follower must be copied anew.
    pub(super) fn refuse_session(&self, session: (NodeId, u64), reason: RefusedCopy) {
        let mut state = self.state.lock();
        let link = state.session(session).map(|it| Arc::clone(&it.link));
        let Some(link) = link else {
            return;
        };
        if let Some(peer) = state.peers.get_mut(&session.0) {
            peer.session = None;
        }
        self.refuse(session.0, &link, reason);
        drop(state);
        self.changed.notify_all();
        self.tell_of_none(session.0);
    }

    fn refuse(&self, node: NodeId, link: &Link, reason: RefusedCopy) {
        let said = reason.told(&self.options.name(self.options.here));
        tracing::warn!("node {} cannot follow: {said}", self.options.name(node));
        let _is_there = link.send(&Head::Refused(reason), &[]);
    }

    /// The log is to keep what follows a snapshot for a node that gets a copy of the store; false if another one does.
    pub(super) fn hold_for_copy(&self, to: NodeId, from: SnapshotNumber) -> bool {
        let mut state = self.state.lock();
        let is_sent = |given: &Given| given.until.is_none();
        if state.copies.values().any(is_sent) {
            return false;
        }
        state.copies.insert(to, Given { from, until: None });
        true
    }

    /// The copy was sent, or will not be: if it was, the node has a while to join.
    pub(super) fn copy_is_over(&self, to: NodeId, was_sent: bool) {
        let mut state = self.state.lock();
        match state.copies.get_mut(&to).filter(|_| was_sent) {
            Some(given) => given.until = Instant::now().checked_add(JOINS_WITHIN),
            None => drop(state.copies.remove(&to)),
        }
    }

    /// The snapshot from which on somebody needs the log, if that is before this one: a node that catches up by it, or has a
    /// copy of the store and has not joined.
    pub(crate) fn needs_log(&self, before: SnapshotNumber) -> Option<SnapshotNumber> {
        let now = Instant::now();
        let mut state = self.state.lock();
        let is_waited_for = |given: &mut Given| given.until.is_none_or(|until| now < until);
        state.copies.retain(|_, given| is_waited_for(given));
        let copies: Vec<_> = state.copies.values().map(|given| given.from).collect();
        let behind = state.sessions().filter(|(_, session)| !session.is_pushed);
        let behind = behind.map(|(_, session)| session.sent);
        let first = behind.chain(copies).min();
        first.filter(|first| *first < before)
    }

    /// The last snapshot that each other node was known to have, if it is there.
    pub(super) fn status(&self) -> Vec<(NodeId, Option<SnapshotNumber>)> {
        let state = self.state.lock();
        let nodes = self.options.nodes.numbers().into_iter();
        let others = nodes.filter(|node| *node != self.options.here);
        let applied = |node: NodeId| {
            let session = state.peers.get(&node)?.session.as_ref()?;
            Some(session.applied)
        };
        others.map(|node| (node, applied(node))).collect()
    }

    pub(super) fn stop(&self) {
        self.state.lock().stopped = true;
        self.changed.notify_all();
        self.writes.stop();
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            // What it panicked with was printed.
            let _ = thread.join();
        }
    }
}

/// How long the log keeps what follows a copy that was sent, until its node is there.
const JOINS_WITHIN: Duration = Duration::from_secs(300);
/// Bytes of a message beside its body, at most.
const HEAD_BYTES: usize = 64;

fn closed(number: u64, merges: bool, unmerged: &[u32]) -> Head {
    Head::Closed {
        number,
        merges,
        unmerged: unmerged.to_vec(),
    }
}

fn numbers(predicates: &[PredicateId]) -> Arc<[u32]> {
    predicates.iter().map(|predicate| predicate.0).collect()
}

fn prefixes(table: &PrefixTable) -> Head {
    let own = table
        .iter()
        .map(|(name, iri)| (name.to_owned(), iri.to_owned()));
    Head::Prefixes(own.collect())
}

impl RefusedCopy {
    /// What is wrong, and what to do about it, at either end.
    pub(super) fn told(&self, leader: &str) -> String {
        match self {
            Self::OtherStore => format!(
                "its store is no copy of that of node {leader}: copy that one anew, with `serve --copy-anew` or `jindou backup`"
            ),
            Self::Diverged => format!(
                "its copy of the store was changed by itself, or has transactions that node {leader} does not \
                 have: copy the store anew, with `serve --copy-anew` or `jindou backup`"
            ),
            Self::TooOld => format!(
                "its copy of the store is older than what node {leader} still has in its log: copy the store \
                 anew, with `serve --copy-anew` or `jindou backup`"
            ),
            Self::Unreadable(reason) => {
                format!("node {leader} cannot read its log: {}", printable(reason))
            }
        }
    }
}
