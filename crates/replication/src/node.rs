//! What does one node know, and what is it to do?

use jindou_model::{NodeId, SnapshotNumber};

use crate::configuration::{Configuration, Versioned};
use crate::lease::{Leases, Timing};
use crate::message::{Beat, Message};
use crate::{Time, lead::Copy};

/// The most nodes that a cluster may come to have: what names one beyond them is nothing that a node says.
pub(crate) const MOST_NODES: u32 = 1024;

/// How long after the keeper could not be asked it is asked again.
const ASK_AGAIN: Time = Time::from_millis(250);

/// With what a node begins.
#[derive(Clone, Debug)]
pub struct Start {
    /// Which node it is.
    pub here: NodeId,
    /// How many nodes there are at first. One that joins later is known once a link with it begins, or the keeper names it.
    pub nodes: u32,
    /// How long they wait for each other; the same at all of them.
    pub timing: Timing,
    /// The last snapshot that it has on its device, which its readers would see.
    pub last: SnapshotNumber,
    /// What was noted last of what is kept.
    pub known: Versioned,
    /// If nothing is kept, it is the first to lead.
    pub may_form: bool,
    /// It takes the place of a leader that is silent; the same at all nodes.
    pub may_take_over: bool,
}

/// What a node is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a message, if there is a link.
    Send(NodeId, Message),
    /// Have the keeper replace the configuration of version `expected`. What comes of it is told by
    /// [`Replication::decided`], [`Replication::refused`] or [`Replication::undecided`].
    Propose {
        /// The version that is replaced.
        expected: u64,
        /// By what.
        configuration: Configuration,
    },
    /// Have this on the device, and say so by [`Replication::noted`]. Nobody follows another leader, or leads, before: a node that
    /// is lost then, and begins again with what it noted, would take part under a leader that it had left. What is said later
    /// stands for what was said before.
    Note(Versioned),
    /// Begin to order transactions: nodes that follow are asked anew what they have.
    Lead {
        /// In which term.
        term: u64,
    },
    /// Order no transactions any more, if it did, and say to the leader what is here.
    Follow {
        /// In which term.
        term: u64,
        /// Who leads.
        leader: NodeId,
    },
    /// Order no transactions any more: another node is to lead, which is not known yet.
    Resign,
    /// Let readers see up to this snapshot: all nodes in sync have it.
    Show(SnapshotNumber),
    /// Clients may hear of transactions up to this snapshot: all nodes in sync show it.
    Answer(SnapshotNumber),
}

/// Whether what readers see has all that clients were told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answering {
    /// It has, until then at the least, on this node's clock.
    Current(Time),
    /// It was so for certain until then, and may be so still.
    Unsure(Option<Time>),
}

/// One node's part.
#[derive(Debug)]
pub struct Replication {
    pub(crate) here: NodeId,
    pub(crate) timing: Timing,
    /// What it acts by, which is noted.
    pub(crate) known: Versioned,
    /// What it has heard last, which may not be noted yet.
    heard: u64,
    pub(crate) proposal: Option<Proposal>,
    pub(crate) peers: Vec<Peer>,
    /// On the device here.
    pub(crate) last: SnapshotNumber,
    /// All nodes in sync have it.
    pub(crate) committed: SnapshotNumber,
    /// Readers see it here.
    pub(crate) shown: SnapshotNumber,
    /// What readers saw from the beginning, whether it was committed or not.
    begun_with: SnapshotNumber,
    /// As the leader: what clients may hear of.
    pub(crate) answered: SnapshotNumber,
    /// As the leader: what it had when it began to lead.
    pub(crate) led_from: SnapshotNumber,
    /// What is led: the term of the configuration, if it is this node's own since it began.
    pub(crate) leads: Option<u64>,
    /// The term whose leader says that it has all that is here.
    follows: Option<u64>,
    /// What the leader of this term says is committed.
    told: (u64, SnapshotNumber),
    may_form: bool,
    pub(crate) may_take_over: bool,
    next_beat: Time,
    /// Nothing is proposed before.
    not_before: Time,
    /// It does not lead before, so that another node does.
    resigned_until: Option<Time>,
    actions: Vec<Action>,
}

/// What is known of another node.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) is_linked: bool,
    pub(crate) leases: Leases,
    /// It is granted nothing, so that another configuration may do without it.
    pub(crate) is_suspended: bool,
    /// What it said that it has on its device.
    said: SnapshotNumber,
    /// As the leader: what it has of this node's log.
    pub(crate) copy: Option<Copy>,
    /// As the leader: it takes nothing of it.
    pub(crate) is_refused: bool,
    /// As the leader: since when it has moved no further though it was to.
    pub(crate) late_since: Option<Time>,
    /// Pieces of long messages that have come of it since the link began,
    came: u64,
    /// and of this node's that have come to it.
    heard: u64,
}

impl Peer {
    /// One of which nothing is known yet.
    fn begun(now: Time) -> Self {
        Self {
            is_linked: false,
            leases: Leases::begun(now),
            is_suspended: false,
            said: SnapshotNumber(0),
            copy: None,
            is_refused: false,
            late_since: None,
            came: 0,
            heard: 0,
        }
    }

    pub(crate) fn is_late(&self, now: Time, timing: &Timing) -> bool {
        let since = self.late_since;
        since.is_some_and(|since| now >= since + timing.wait)
    }
}

/// A configuration that the keeper was asked to keep.
#[derive(Debug)]
pub(crate) struct Proposal {
    expected: u64,
    pub(crate) configuration: Configuration,
    /// The keeper was asked, and it is not known what came of it.
    is_unsure: bool,
    /// When it is asked again.
    again: Option<Time>,
}

impl Replication {
    /// That of a node that begins now.
    #[must_use]
    pub fn new(start: Start, now: Time) -> Self {
        let mut new = Self {
            here: start.here,
            timing: start.timing,
            heard: 0,
            known: Versioned::default(),
            proposal: None,
            peers: (0..start.nodes).map(|_| Peer::begun(now)).collect(),
            last: start.last,
            committed: SnapshotNumber(0),
            shown: start.last,
            begun_with: start.last,
            answered: SnapshotNumber(0),
            led_from: SnapshotNumber(0),
            leads: None,
            follows: None,
            told: (0, SnapshotNumber(0)),
            may_form: start.may_form,
            may_take_over: start.may_take_over,
            next_beat: now,
            not_before: now,
            resigned_until: None,
            actions: Vec::new(),
        };
        if new.make_room_for(now, &start.known) {
            new.heard = start.known.version;
            new.adopt(now, start.known);
        }
        new
    }

    /// What is to be done, in this order; nothing of it is said twice.
    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// The configuration that this node acts by.
    #[must_use]
    pub fn known(&self) -> &Versioned {
        &self.known
    }

    /// The term in which this node leads, if it does.
    #[must_use]
    pub fn leads(&self) -> Option<u64> {
        self.leads
    }

    /// The last snapshot that is known to be at all nodes in sync.
    #[must_use]
    pub fn committed(&self) -> SnapshotNumber {
        self.committed
    }

    /// Whether readers that come now see all that clients were told of.
    #[must_use]
    pub fn answering(&self, now: Time) -> Answering {
        let until = match self.leads {
            Some(_) => self.led_until(),
            None => self.followed_until(),
        };
        match until {
            Some(until) if now < until => Answering::Current(until),
            until => Answering::Unsure(until),
        }
    }

    /// Whether another node leads and was heard lately: what this one lacks, it will get.
    #[must_use]
    pub fn hears_leader(&self, now: Time) -> bool {
        let leader = self.leader().filter(|_| self.leads.is_none());
        leader.is_some_and(|leader| {
            let peer = &self.peers[leader.0 as usize];
            peer.is_linked && !peer.leases.is_silent(now, &self.timing)
        })
    }

    /// Time passes: to be called more often than beats are sent.
    pub fn tick(&mut self, now: Time) {
        self.ask_again(now);
        match self.leads {
            Some(_) => self.look_after_copies(now),
            None if self.proposal.is_none() => self.look_after_leader(now),
            None => {}
        }
        if now >= self.next_beat {
            self.beat(now);
        }
    }

    /// Knows of all nodes up to this one; false if there may be none such.
    fn make_room(&mut self, now: Time, node: NodeId) -> bool {
        if node.0 >= MOST_NODES {
            return false;
        }
        while self.peers.len() <= node.0 as usize {
            self.peers.push(Peer::begun(now));
        }
        true
    }

    /// As [`Self::make_room`], for all nodes that a configuration names.
    fn make_room_for(&mut self, now: Time, kept: &Versioned) -> bool {
        let named = kept.configuration.in_sync.iter().copied();
        let most = named.chain([kept.configuration.leader]).max();
        most.is_none_or(|most| self.make_room(now, most))
    }

    /// Does not lead before then: if it does now, another node in sync takes its place as if this one were silent. If none has by
    /// then, it leads again.
    pub fn resign(&mut self, until: Time) {
        self.resigned_until = Some(until);
        if self.leads.take().is_some() {
            self.act(Action::Resign);
        }
    }

    /// The leader of a term lacks what is here, which is to be given up: whether that term is still the one that this node
    /// follows in. If so it does not lead before it begins anew, and nobody sees what it gives up.
    pub fn gives_up(&mut self, term: u64) -> bool {
        let follows = self.leads.is_none() && self.known.configuration.term == term;
        if follows {
            self.resigned_until = Some(Time::MAX);
        }
        follows
    }

    /// Whether it leaves it to others to lead.
    fn has_resigned(&self, now: Time) -> bool {
        self.resigned_until.is_some_and(|until| now < until)
    }

    /// A link with a node has begun: nothing that is said by it was said before.
    pub fn linked(&mut self, now: Time, node: NodeId) {
        if !self.make_room(now, node) {
            return;
        }
        self.relink(now, node, true);
        self.beat_to(now, node);
    }

    /// The link with a node has ended, after all that came by it.
    pub fn unlinked(&mut self, now: Time, node: NodeId) {
        self.relink(now, node, false);
    }

    fn relink(&mut self, now: Time, node: NodeId, is_linked: bool) {
        if let Some(peer) = self.peers.get_mut(node.0 as usize) {
            peer.is_linked = is_linked;
            peer.leases.relink();
            (peer.copy, peer.is_refused, peer.late_since) = (None, false, None);
            (peer.came, peer.heard) = (0, 0);
        }
        // What waited for this node alone, as it was about to be in sync, waits for nobody.
        self.settle(now);
    }

    /// A piece of a message of a node has come, which is not whole yet: what takes long is under way, and not late.
    pub fn came(&mut self, from: NodeId) {
        if let Some(peer) = self.peers.get_mut(from.0 as usize) {
            peer.came += 1;
        }
    }

    /// A message of a node has come.
    pub fn received(&mut self, now: Time, from: NodeId, message: &Message) {
        match message {
            Message::Beat(beat) => self.hear(now, from, beat),
            Message::Committed { term, number } => {
                if self.is_led_by(from, *term) {
                    let (of, so_far) = self.told;
                    let before = if of == *term {
                        so_far
                    } else {
                        SnapshotNumber(0)
                    };
                    self.told = (*term, before.max(*number));
                    self.settle_as_copy();
                }
            }
            Message::Shown { term, number } => self.note_shown(now, from, (*term, *number)),
        }
    }

    /// The log here is on the device up to a snapshot.
    pub fn stored(&mut self, now: Time, last: SnapshotNumber) {
        self.last = self.last.max(last);
        match self.leads {
            Some(_) => self.settle(now),
            None => self.settle_as_copy(),
        }
    }

    /// Readers see up to a snapshot here.
    pub fn shown(&mut self, now: Time, number: SnapshotNumber) {
        self.shown = self.shown.max(number);
        match self.leads {
            Some(_) => self.settle(now),
            None => self.say_shown(),
        }
    }

    /// The leader of a term has said that it has all that is here.
    pub fn followed(&mut self, term: u64) {
        if self.leads.is_none() && self.known.configuration.term == term {
            self.follows = Some(term);
            self.say_shown();
            self.settle_as_copy();
        }
    }

    /// What the keeper keeps, whoever asked it to.
    pub fn decided(&mut self, now: Time, kept: Versioned) {
        self.hear_of(now, kept);
    }

    /// What was said by [`Action::Note`] is on the device.
    pub fn noted(&mut self, now: Time, kept: Versioned) {
        self.adopt(now, kept);
    }

    /// Has what is kept noted, where that is news.
    fn hear_of(&mut self, now: Time, kept: Versioned) {
        if kept.version <= self.heard {
            return;
        }
        if !self.make_room_for(now, &kept) {
            return;
        }
        self.heard = kept.version;
        let led_by = |configuration: &Configuration| (configuration.term, configuration.leader);
        let is_led_alike = led_by(&kept.configuration) == led_by(&self.known.configuration);
        // Where nobody takes over, no leader is deposed.
        if self.may_take_over {
            self.act(Action::Note(kept.clone()));
        }
        if is_led_alike || !self.may_take_over {
            self.adopt(now, kept);
        }
    }

    /// The keeper was not asked to replace the configuration of this version, or has not done it: it will not.
    pub fn refused(&mut self, now: Time, expected: u64) {
        // If it is not known what came of it when it was asked before, that still may be kept.
        match &mut self.proposal {
            Some(proposal) if proposal.expected == expected && proposal.is_unsure => {
                proposal.again = Some(now + ASK_AGAIN);
            }
            Some(proposal) if proposal.expected == expected => {
                // Whoever still needs it proposes it anew.
                self.proposal = None;
                self.not_before = now + ASK_AGAIN;
            }
            _ => {}
        }
    }

    /// It is not known whether the keeper has replaced the configuration of this version, or will.
    pub fn undecided(&mut self, now: Time, expected: u64) {
        if let Some(proposal) = &mut self.proposal
            && proposal.expected == expected
        {
            (proposal.is_unsure, proposal.again) = (true, Some(now + ASK_AGAIN));
        }
    }

    fn ask_again(&mut self, now: Time) {
        let Some(proposal) = &mut self.proposal else {
            return;
        };
        // The same again: if it was kept before, the keeper says so now, and if it is kept now, what was asked before
        // can be no more.
        if proposal.again.take_if(|again| now >= *again).is_some() {
            self.actions.push(Action::Propose {
                expected: proposal.expected,
                configuration: proposal.configuration.clone(),
            });
        }
    }

    pub(crate) fn propose(&mut self, now: Time, configuration: Configuration) {
        if now < self.not_before {
            return;
        }
        let expected = self.known.version;
        self.actions.push(Action::Propose {
            expected,
            configuration: configuration.clone(),
        });
        self.proposal = Some(Proposal {
            expected,
            configuration,
            is_unsure: false,
            again: None,
        });
    }

    pub(crate) fn act(&mut self, action: Action) {
        self.actions.push(action);
    }

    /// Acts by what is kept, where that is news.
    fn adopt(&mut self, now: Time, kept: Versioned) {
        if kept.version <= self.known.version {
            return;
        }
        let is_own = match self.proposal.take_if(|it| it.expected < kept.version) {
            Some(proposal) => proposal.configuration == kept.configuration,
            None => false,
        };
        let before = std::mem::replace(&mut self.known, kept).configuration;
        let Configuration { term, leader, .. } = self.known.configuration;
        self.next_beat = now;
        if (before.term, before.leader) == (term, leader) {
            if self.leads.is_some() {
                self.settle(now);
            }
            return;
        }
        self.leads = (leader == self.here && is_own && !self.has_resigned(now)).then_some(term);
        self.follows = None;
        for peer in &mut self.peers {
            peer.leases.renounce();
            (peer.is_suspended, peer.is_refused) = (false, false);
            (peer.copy, peer.late_since) = (None, None);
        }
        match self.leads {
            Some(term) => {
                for peer in &mut self.peers {
                    // The leader before may have granted until it had to know that it is not any more.
                    peer.leases.assume_granted(now);
                }
                // What clients were told of in other terms is here, and how much that is is not known.
                (self.answered, self.led_from) = (SnapshotNumber(0), self.last);
                self.act(Action::Lead { term });
                self.settle(now);
            }
            // It led before it began anew: it does again in the next term.
            None if leader == self.here => {}
            None => self.act(Action::Follow { term, leader }),
        }
    }

    fn is_led_by(&self, node: NodeId, term: u64) -> bool {
        let known = &self.known.configuration;
        self.leads.is_none() && (known.leader, known.term) == (node, term)
    }

    fn is_in_sync(&self, node: NodeId) -> bool {
        self.known.configuration.in_sync.contains(&node)
    }

    /// The node that leads, where that is another one.
    fn leader(&self) -> Option<NodeId> {
        let leader = self.known.configuration.leader;
        let is_other = self.known.version > 0 && leader != self.here;
        is_other.then_some(leader)
    }

    /// What readers see is committed.
    pub(crate) fn has_settled(&self) -> bool {
        self.committed >= self.begun_with
    }

    fn followed_until(&self) -> Option<Time> {
        let leader = self.leader()?;
        let follows = self.follows == Some(self.known.configuration.term);
        let is_current = follows && self.is_in_sync(self.here) && self.has_settled();
        is_current.then(|| self.peers[leader.0 as usize].leases.until())?
    }

    /// As one that does not lead: shows what the leader says that all nodes in sync have.
    fn settle_as_copy(&mut self) {
        let (term, told) = self.told;
        if self.follows != Some(term) || self.leads.is_some() {
            return;
        }
        let committed = told.min(self.last);
        if committed > self.committed {
            self.committed = committed;
            if committed > self.shown {
                self.act(Action::Show(committed));
            }
        }
    }

    fn say_shown(&mut self) {
        let Some(leader) = self.leader() else { return };
        if let Some(term) = self.follows {
            let number = self.shown;
            self.act(Action::Send(leader, Message::Shown { term, number }));
        }
    }

    /// As one that does not lead: takes the place of a leader that is silent, or its own place again.
    fn look_after_leader(&mut self, now: Time) {
        if self.known.version == 0 {
            if self.may_form {
                self.propose(now, Configuration::first(self.here));
            }
            return;
        }
        if self.has_resigned(now) {
            return;
        }
        let Some(leader) = self.leader() else {
            let next = self.known.configuration.led_by(self.here, None);
            self.propose(now, next);
            return;
        };
        let timing = self.timing;
        let peer = &mut self.peers[leader.0 as usize];
        peer.is_suspended = !peer.is_linked || peer.leases.is_silent(now, &timing);
        let ends = peer.leases.ends(&timing);
        let is_silent = peer.is_suspended;
        let patience = timing.patience * (1 + self.better_ones(now, leader));
        if is_silent && self.may_take_over && self.is_in_sync(self.here) && now >= ends + patience {
            let next = self.known.configuration.led_by(self.here, Some(leader));
            self.propose(now, next);
        }
    }

    /// How many nodes in sync are to lead rather than this one: those that have more, so that nobody has to give up
    /// what the next leader has not.
    fn better_ones(&self, now: Time, leader: NodeId) -> u32 {
        let others = self.known.configuration.in_sync.iter();
        let others = others.filter(|node| **node != self.here && **node != leader);
        let is_better = |node: &&NodeId| {
            let peer = &self.peers[node.0 as usize];
            let is_there = peer.is_linked && !peer.leases.is_silent(now, &self.timing);
            is_there && (peer.said, self.here) > (self.last, **node)
        };
        others.filter(is_better).count() as u32
    }

    fn hear(&mut self, now: Time, from: NodeId, beat: &Beat) {
        // One with whom there is no link says nothing.
        if self.peers.len() <= from.0 as usize {
            return;
        }
        self.hear_of(now, beat.known.clone());
        let is_of_term = beat.known.configuration.term == self.known.configuration.term;
        let is_between = self.leads.is_some() || self.leader() == Some(from);
        let timing = self.timing;
        let peer = &mut self.peers[from.0 as usize];
        peer.said = beat.last;
        if std::mem::replace(&mut peer.heard, beat.came) != beat.came {
            peer.late_since = peer.late_since.map(|_| now);
        }
        peer.leases.hear(now, beat.sent);
        if let Some(sent) = beat.grants
            && is_of_term
            && is_between
        {
            peer.leases.extend(sent, &timing);
        }
    }

    fn beat(&mut self, now: Time) {
        self.next_beat = now + self.timing.beat;
        for node in (0..self.peers.len() as u32).map(NodeId) {
            self.beat_to(now, node);
        }
    }

    fn beat_to(&mut self, now: Time, node: NodeId) {
        // To the others it is as silent as a leader that is lost.
        if self.has_resigned(now) && self.known.configuration.leader == self.here {
            return;
        }
        let is_granted = match self.leads {
            Some(_) => self.grants_to_copy(now, node),
            None => self.leader() == Some(node) && !self.has_proposed(),
        };
        let Some(peer) = self.peers.get_mut(node.0 as usize) else {
            return;
        };
        if !peer.is_linked || node == self.here {
            return;
        }
        let is_granted = is_granted && !peer.is_suspended;
        let grants = if is_granted {
            peer.leases.grant(now)
        } else {
            None
        };
        let beat = Beat {
            sent: now,
            grants,
            known: self.known.clone(),
            last: self.last,
            came: peer.came,
        };
        self.actions.push(Action::Send(node, Message::Beat(beat)));
    }

    /// Whether this node may lead already, and not know it.
    fn has_proposed(&self) -> bool {
        self.proposal.is_some()
    }
}
