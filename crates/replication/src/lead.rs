//! What does the leader know of the other copies, and when is a transaction everybody's?

use std::collections::BTreeSet;

use jindou_model::{NodeId, SnapshotNumber};

use crate::Time;
use crate::message::Message;
use crate::node::{Action, Replication};

/// What another node has of the leader's log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    /// On its device.
    has: SnapshotNumber,
    /// What its readers see.
    shows: SnapshotNumber,
    /// The snapshot with which it will have caught up, and since when that is so.
    goal: Option<(SnapshotNumber, Time)>,
    /// It has caught up: transactions wait for it, so that it comes to have all, and may be called in sync.
    is_awaited: bool,
}

impl Copy {
    /// Notes what it is to catch up with next. It has caught up once that takes no longer than nodes wait for each other anyway.
    fn catch_up(&mut self, now: Time, (committed, lease): (SnapshotNumber, Time)) {
        match self.goal {
            Some((goal, since)) if self.has.min(self.shows) >= goal => {
                self.is_awaited |= now < since + lease;
                self.goal = None;
            }
            Some(_) => {}
            None => self.goal = Some((committed, now)),
        }
    }
}

impl Replication {
    /// A node has the log of the leader of a term up to a snapshot on its device, and nothing else.
    pub fn has(&mut self, now: Time, node: NodeId, term: u64, number: SnapshotNumber) {
        let committed = self.committed;
        let peer = match self.peers.get_mut(node.0 as usize) {
            Some(peer) if self.leads == Some(term) && peer.is_linked => peer,
            _ => return,
        };
        peer.is_refused = false;
        match &mut peer.copy {
            Some(copy) => {
                if number > copy.has {
                    (copy.has, peer.late_since) = (number, None);
                }
            }
            none => {
                *none = Some(Copy {
                    has: number,
                    shows: SnapshotNumber(0),
                    goal: None,
                    is_awaited: false,
                });
                let number = committed;
                self.act(Action::Send(node, Message::Committed { term, number }));
            }
        }
        self.settle(now);
    }

    /// A node takes nothing of the leader's log any more.
    pub fn has_nothing(&mut self, now: Time, node: NodeId) {
        if let Some(peer) = self.peers.get_mut(node.0 as usize) {
            (peer.copy, peer.is_refused) = (None, true);
        }
        self.settle(now);
    }

    pub(crate) fn note_shown(
        &mut self,
        now: Time,
        from: NodeId,
        (term, number): (u64, SnapshotNumber),
    ) {
        if self.leads != Some(term) {
            return;
        }
        let Some(peer) = self.peers.get_mut(from.0 as usize) else {
            return;
        };
        let Some(copy) = &mut peer.copy else { return };
        if number > copy.shows {
            (copy.shows, peer.late_since) = (number, None);
        }
        self.settle(now);
    }

    /// The other nodes that are in sync, or will be if what was proposed is kept.
    fn others_in_sync(&self) -> BTreeSet<NodeId> {
        let proposed = self.proposal.iter();
        let proposed = proposed.flat_map(|proposal| &proposal.configuration.in_sync);
        let all = self.known.configuration.in_sync.iter().chain(proposed);
        all.copied().filter(|node| *node != self.here).collect()
    }

    /// The other nodes that transactions wait for.
    fn awaited(&self) -> BTreeSet<NodeId> {
        let mut all = self.others_in_sync();
        let copies = self.peers.iter().map(|peer| peer.copy);
        for (number, copy) in copies.enumerate() {
            if copy.is_some_and(|copy| copy.is_awaited) {
                all.insert(NodeId(number as u32));
            }
        }
        all
    }

    /// Until when nobody else can lead.
    pub(crate) fn led_until(&self) -> Option<Time> {
        if !self.has_settled() {
            return None;
        }
        self.leases_until()
    }

    fn leases_until(&self) -> Option<Time> {
        if !self.may_take_over {
            return Some(Time::MAX);
        }
        let others = self.others_in_sync().into_iter();
        let until = others.map(|node| self.peers[node.0 as usize].leases.until());
        until.min().unwrap_or(Some(Time::MAX))
    }

    /// Whether the leader grants a node that it answers.
    pub(crate) fn grants_to_copy(&self, now: Time, node: NodeId) -> bool {
        let is_in_sync = self.known.configuration.in_sync.contains(&node);
        is_in_sync && self.leases_until().is_some_and(|until| now < until)
    }

    /// What all nodes in sync have is committed, and what all of them show is answered.
    pub(crate) fn settle(&mut self, now: Time) {
        let Some(term) = self.leads else { return };
        let others = self.awaited();
        let copies = others.iter().map(|node| self.peers[node.0 as usize].copy);
        let of_copies = |what: fn(&Copy) -> SnapshotNumber, own: SnapshotNumber| {
            let all = copies.clone();
            let least = all.map(|copy| copy.as_ref().map_or(SnapshotNumber(0), what));
            least.min().map_or(own, |least| least.min(own))
        };
        let committed = of_copies(|copy| copy.has, self.last);
        let shown = of_copies(|copy| copy.shows, self.shown);
        if committed > self.committed {
            self.commit(term, committed);
        }
        if shown > self.answered {
            self.answered = shown;
            self.act(Action::Answer(shown));
        }
        self.note_late(now, &others);
    }

    fn commit(&mut self, term: u64, number: SnapshotNumber) {
        self.committed = number;
        if number > self.shown {
            self.act(Action::Show(number));
        }
        for node in (0..self.peers.len() as u32).map(NodeId) {
            if self.peers[node.0 as usize].copy.is_some() {
                self.act(Action::Send(node, Message::Committed { term, number }));
            }
        }
    }

    /// Notes since when others are waited for, those that do not say what they have among them.
    fn note_late(&mut self, now: Time, others: &BTreeSet<NodeId>) {
        let (last, committed) = (self.last, self.committed);
        for node in others {
            let peer = &mut self.peers[node.0 as usize];
            let is_up = |copy: Copy| copy.has >= last && copy.shows >= committed;
            peer.late_since = match peer.copy.is_some_and(is_up) {
                true => None,
                false => Some(peer.late_since.unwrap_or(now)),
            };
        }
    }

    /// Has the configuration do without nodes that are silent or late, and with those that have caught up.
    pub(crate) fn look_after_copies(&mut self, now: Time) {
        let timing = self.timing;
        let mut in_sync = self.known.configuration.in_sync.clone();
        let (committed, answered) = (self.committed, self.answered.max(self.led_from));
        let proposed = self.proposal.as_ref().map(|it| &it.configuration.in_sync);
        // It may be kept already, and waited for no more.
        let may_be_out = |node| proposed.is_some_and(|proposed| !proposed.contains(&node));
        let mut waits_for_fewer = false;
        for (number, peer) in self.peers.iter_mut().enumerate() {
            let node = NodeId(number as u32);
            if node == self.here {
                continue;
            }
            let is_late = peer.is_late(now, &timing);
            let is_there = peer.is_linked && !peer.leases.is_silent(now, &timing);
            peer.is_suspended = !is_there
                || is_late
                || peer.is_refused
                || (in_sync.contains(&node) && may_be_out(node));
            let has_ended = peer.leases.has_ended(now, &timing);
            if peer.is_suspended && has_ended {
                in_sync.remove(&node);
            }
            let Some(copy) = &mut peer.copy else { continue };
            if peer.is_suspended {
                copy.goal = None;
                waits_for_fewer |= std::mem::take(&mut copy.is_awaited);
                continue;
            }
            copy.catch_up(now, (committed, timing.lease));
            // It may lead, as it has what is committed, and answer, as it shows what clients were told of.
            if copy.is_awaited && copy.has >= committed && copy.has.min(copy.shows) >= answered {
                in_sync.insert(node);
            }
        }
        if waits_for_fewer {
            self.settle(now);
        }
        // Where the keeper is away, copies are looked after all the same.
        if in_sync != self.known.configuration.in_sync && self.proposal.is_none() {
            let next = self.known.configuration.with(in_sync);
            self.propose(now, next);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::message::Beat;
    use crate::{Start, Timing, Versioned};

    const BEAT: Time = Time::from_millis(100);
    const OTHER: NodeId = NodeId(1);

    /// A node that leads another one.
    struct Led {
        core: Replication,
        now: Time,
        /// When the other node was last granted what it grants.
        granted: Option<Time>,
        version: u64,
        /// What is proposed is not kept.
        keeper_is_away: bool,
    }

    impl Led {
        fn new() -> Self {
            let mut led = Self::linked();
            (0..20).for_each(|_| led.beat(0));
            led
        }

        /// The other node has just said what it has.
        fn linked() -> Self {
            let start = Start {
                here: NodeId(0),
                nodes: 3,
                timing: Timing::default(),
                last: SnapshotNumber(0),
                known: Versioned::default(),
                may_form: true,
                may_take_over: true,
            };
            let mut led = Self {
                core: Replication::new(start, Time::ZERO),
                now: Time::ZERO,
                granted: None,
                version: 0,
                keeper_is_away: false,
            };
            led.beat(0);
            let term = led.core.leads().expect("it is the first to lead");
            led.core.linked(led.now, OTHER);
            led.core.has(led.now, OTHER, term, SnapshotNumber(0));
            led
        }

        /// The other node says that so many pieces came; what is to be kept is.
        fn beat(&mut self, came: u64) {
            self.hear(OTHER, came);
            self.tick();
        }

        fn hear(&mut self, node: NodeId, came: u64) {
            let beat = Beat {
                sent: self.now,
                grants: self.granted.filter(|_| node == OTHER),
                known: self.core.known().clone(),
                last: SnapshotNumber(0),
                came,
            };
            self.core.received(self.now, node, &Message::Beat(beat));
        }

        fn tick(&mut self) {
            self.now += BEAT;
            self.core.tick(self.now);
            let mut actions = VecDeque::from(self.core.take_actions());
            while let Some(action) = actions.pop_front() {
                match action {
                    Action::Note(kept) => self.core.noted(self.now, kept),
                    Action::Propose { configuration, .. } if !self.keeper_is_away => {
                        self.version += 1;
                        let version = self.version;
                        let kept = Versioned {
                            version,
                            configuration,
                        };
                        self.core.decided(self.now, kept);
                    }
                    Action::Send(OTHER, Message::Beat(beat)) => self.granted = Some(beat.sent),
                    _ => {}
                }
                actions.extend(self.core.take_actions());
            }
        }

        fn is_in_sync(&self) -> bool {
            self.core.known().configuration.in_sync.contains(&OTHER)
        }
    }

    #[test]
    fn a_node_to_which_a_long_transaction_still_comes_is_not_late() {
        let mut led = Led::new();
        assert!(led.is_in_sync());
        led.core.stored(led.now, SnapshotNumber(1));
        // Ten times as long as nodes wait for each other, a piece every two seconds.
        let beats = (Timing::default().wait.as_millis() / BEAT.as_millis()) as u64;
        for beat in 0..10 * beats {
            led.beat(beat / 20);
            assert!(led.is_in_sync(), "after {beat} beats");
        }
        // Nothing more comes.
        for _ in 0..beats - 1 {
            led.beat(10 * beats / 20);
        }
        assert!(led.is_in_sync());
        for _ in 0..beats {
            led.beat(10 * beats / 20);
        }
        assert!(!led.is_in_sync());
    }

    #[test]
    fn what_waits_for_a_node_that_is_not_in_sync_yet_does_not_once_it_is_lost() {
        let losses: [fn(&mut Led); 4] = [
            |led| led.core.unlinked(led.now, OTHER),
            |led| led.core.linked(led.now, OTHER),
            |led| led.core.has_nothing(led.now, OTHER),
            |led| {
                led.now += Timing::default().wait;
                led.core.tick(led.now);
            },
        ];
        for lose in losses {
            let mut led = Led::linked();
            led.beat(0);
            led.core.stored(led.now, SnapshotNumber(1));
            led.beat(0);
            assert!(!led.is_in_sync(), "it has not what came meanwhile");
            led.core.stored(led.now, SnapshotNumber(2));
            assert_eq!(led.core.committed(), SnapshotNumber(1));
            lose(&mut led);
            assert_eq!(led.core.committed(), SnapshotNumber(2));
        }
    }

    #[test]
    fn a_node_that_is_lost_while_the_keeper_is_away_is_waited_for_no_more() {
        let mut led = Led::linked();
        led.beat(0);
        led.core.stored(led.now, SnapshotNumber(1));
        led.beat(0);
        led.core.stored(led.now, SnapshotNumber(2));
        assert_eq!(led.core.committed(), SnapshotNumber(1));
        // A third one catches up, and is to be in sync.
        let (third, term) = (NodeId(2), led.core.leads().expect("it leads"));
        led.keeper_is_away = true;
        led.core.linked(led.now, third);
        let last = SnapshotNumber(2);
        led.core.has(led.now, third, term, last);
        let shown = Message::Shown { term, number: last };
        led.core.received(led.now, third, &shown);
        for _ in 0..Timing::default().lease.as_millis() / BEAT.as_millis() + 1 {
            led.hear(third, 0);
            led.tick();
        }
        assert!(led.core.proposal.is_some());
        assert_eq!(led.core.committed(), last);
    }
}
