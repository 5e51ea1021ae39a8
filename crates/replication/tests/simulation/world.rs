//! Nodes with devices, links, clients and a keeper, and the chance that plays with them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::ops::Range;
use std::time::Duration;

use jindou_history::Random;
use jindou_model::{NodeId, SnapshotNumber};
use jindou_replication::{
    Action, Answering, Configuration, Message, Replication, RunStart, Start, Timing, Versioned,
    common_snapshot,
};

use crate::seen::Seen;

const TICK: Duration = Duration::from_millis(25);
const MILLISECOND: Duration = Duration::from_millis(1);
/// How long hardships last, and how long the nodes have then to be whole.
const HARD_FOR: Duration = Duration::from_secs(30);
const WHOLE_WITHIN: Duration = Duration::from_secs(25);

/// What befalls the nodes.
#[derive(Clone, Debug)]
pub(crate) struct Hardships {
    nodes: u32,
    delay: Range<Duration>,
    sync: Range<Duration>,
    /// How often something befalls them.
    every: Range<Duration>,
    /// Of a thousand of these, how many are of which kind.
    crash: u64,
    cut: u64,
    keeper: u64,
    /// Of a thousand answers of the keeper, how many are lost.
    unheard: u32,
    /// Clocks go so much faster or slower, in thousandths.
    drift: u64,
    writes_every: Range<Duration>,
    /// The leader ends once, and nothing else happens.
    only_one_end: bool,
}

impl Hardships {
    pub(crate) fn of(seed: u64) -> Self {
        let mut random = Random::new(!seed);
        let longest = [5, 30, 300][random.below(3) as usize];
        let slowest = [2, 20, 200][random.below(3) as usize];
        let rarest = [300, 1500, 6000][random.below(3) as usize];
        Self {
            nodes: [2, 3, 3, 3, 5][random.below(5) as usize],
            delay: MILLISECOND / 10..MILLISECOND * longest,
            sync: MILLISECOND / 10..MILLISECOND * slowest,
            every: MILLISECOND * 50..MILLISECOND * rarest,
            crash: random.below(600),
            cut: random.below(400),
            keeper: random.below(200),
            unheard: [0, 50, 400][random.below(3) as usize],
            drift: random.below(100),
            writes_every: MILLISECOND..MILLISECOND * [5, 50, 400][random.below(3) as usize],
            only_one_end: false,
        }
    }

    pub(crate) fn one_end(seed: u64) -> Self {
        Self {
            nodes: 3,
            delay: MILLISECOND / 10..MILLISECOND * 2,
            sync: MILLISECOND / 10..MILLISECOND * 5,
            unheard: 0,
            drift: 0,
            only_one_end: true,
            ..Self::of(seed)
        }
    }
}

/// What came of one case, or of several.
#[derive(Clone, Debug, Default)]
pub(crate) struct Came {
    pub(crate) acknowledged: u64,
    pub(crate) unknown: u64,
    pub(crate) current_reads: u64,
    pub(crate) unsure_reads: u64,
    pub(crate) terms: u64,
    pub(crate) rolled_back: u64,
    pub(crate) crashes: u64,
    pub(crate) resigned: u64,
    pub(crate) slowest_takeover: Duration,
}

impl Came {
    pub(crate) fn add(&mut self, other: &Self) {
        self.acknowledged += other.acknowledged;
        self.unknown += other.unknown;
        self.current_reads += other.current_reads;
        self.unsure_reads += other.unsure_reads;
        self.terms += other.terms;
        self.rolled_back += other.rolled_back;
        self.crashes += other.crashes;
        self.resigned += other.resigned;
        self.slowest_takeover = self.slowest_takeover.max(other.slowest_takeover);
    }
}

/// What survives a crash.
struct Device {
    log: Vec<u64>,
    runs: Vec<RunStart>,
    /// What it noted last of what is kept.
    noted: Versioned,
}

/// A node that runs.
struct Live {
    core: Replication,
    /// What it has, on its device or not yet.
    log: Vec<u64>,
    runs: Vec<RunStart>,
    /// On the device.
    synced: usize,
    is_syncing: bool,
    /// What is being noted, and what is to be noted then.
    noting: Option<Versioned>,
    to_note: Option<Versioned>,
    /// What readers see.
    shown: usize,
    /// As the leader: what each other node was sent, by its place, in which term.
    sessions: BTreeMap<NodeId, usize>,
    /// As one that follows: the term in which the leader sends.
    follows: Option<u64>,
    /// Transactions whose clients wait: their places.
    waiting: VecDeque<usize>,
    offset: Duration,
    /// In thousandths.
    rate: u64,
    incarnation: u64,
}

struct Node {
    device: Device,
    live: Option<Live>,
}

/// One direction of a link.
#[derive(Debug, Default)]
struct Way {
    /// As its ends know it.
    is_up: bool,
    /// What is sent gets lost without a word.
    is_cut: bool,
    /// Grows with each link.
    epoch: u64,
    /// When the last message arrives, of those in order and of beats, which overtake these.
    last_arrivals: [Duration; 2],
}

#[derive(Clone, Debug)]
enum Said {
    Core(Message),
    /// A node leads now: others are to say what they have, those that know it already once more.
    Ask {
        term: u64,
    },
    Begin {
        term: u64,
        runs: Vec<RunStart>,
        last: usize,
    },
    Accept {
        term: u64,
        runs: Vec<RunStart>,
    },
    RollBack {
        term: u64,
        to: usize,
    },
    Entry {
        term: u64,
        place: usize,
        value: u64,
    },
    Has {
        term: u64,
        last: usize,
    },
}

#[derive(Debug)]
enum Event {
    Tick(NodeId, u64),
    Arrive {
        from: NodeId,
        to: NodeId,
        epoch: u64,
        said: Said,
    },
    Synced {
        node: NodeId,
        incarnation: u64,
        upto: usize,
    },
    Noted(NodeId, u64),
    /// The ends of a link learn that it has ended.
    Unlink(NodeId, NodeId, u64),
    /// It begins.
    Link(NodeId, NodeId),
    Asked {
        node: NodeId,
        incarnation: u64,
        expected: u64,
        configuration: Configuration,
    },
    Kept {
        node: NodeId,
        incarnation: u64,
        expected: u64,
        kept: Option<Versioned>,
        is_known: bool,
    },
    Hardship,
    Restart(NodeId),
    KeeperBack,
    Write,
    Read,
    Calm,
    End,
}

pub(crate) struct World {
    random: Random,
    hardships: Hardships,
    now: Duration,
    events: BinaryHeap<Reverse<(Duration, u64)>>,
    planned: BTreeMap<u64, Event>,
    sequence: u64,
    nodes: Vec<Node>,
    ways: BTreeMap<(NodeId, NodeId), Way>,
    kept: Versioned,
    keeper_is_away: bool,
    is_calm: bool,
    seen: Seen,
    values: u64,
    runs: u64,
    came: Came,
    lost_leader_at: Option<Duration>,
}

fn duration(random: &mut Random, range: &Range<Duration>) -> Duration {
    let width = range.end.saturating_sub(range.start);
    range.start + Duration::from_nanos(random.below(width.as_nanos() as u64))
}

fn number(places: usize) -> SnapshotNumber {
    SnapshotNumber(places as u64)
}

impl World {
    pub(crate) fn new(seed: u64, hardships: Hardships) -> Self {
        let first = RunStart {
            id: 0,
            first: SnapshotNumber(0),
        };
        let node = |_| Node {
            device: Device {
                log: Vec::new(),
                runs: vec![first],
                noted: Versioned::default(),
            },
            live: None,
        };
        Self {
            random: Random::new(seed),
            now: Duration::ZERO,
            events: BinaryHeap::new(),
            planned: BTreeMap::new(),
            sequence: 0,
            nodes: (0..hardships.nodes).map(node).collect(),
            ways: BTreeMap::new(),
            kept: Versioned::default(),
            keeper_is_away: false,
            is_calm: false,
            seen: Seen::default(),
            values: 0,
            runs: 0,
            came: Came::default(),
            lost_leader_at: None,
            hardships,
        }
    }

    fn all(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.hardships.nodes).map(NodeId)
    }

    fn plan(&mut self, after: Duration, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((self.now + after, self.sequence)));
        self.planned.insert(self.sequence, event);
    }

    pub(crate) fn play(mut self) -> Came {
        for node in self.all() {
            self.start(node);
        }
        let hardship = duration(&mut self.random, &self.hardships.every);
        self.plan(hardship, Event::Hardship);
        self.plan(MILLISECOND, Event::Write);
        self.plan(MILLISECOND, Event::Read);
        self.plan(HARD_FOR, Event::Calm);
        loop {
            let Some(Reverse((at, sequence))) = self.events.pop() else {
                panic!("nothing happens any more");
            };
            self.now = at;
            let event = self.planned.remove(&sequence).expect("it was planned");
            if matches!(event, Event::End) {
                break;
            }
            self.happen(event);
        }
        self.check_whole();
        self.came.terms = self.kept.configuration.term;
        self.came
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Tick(node, incarnation) => {
                if self.is_of(node, incarnation) {
                    self.with(node, |core, now| core.tick(now));
                    self.plan(TICK, Event::Tick(node, incarnation));
                }
            }
            Event::Arrive {
                from,
                to,
                epoch,
                said,
            } => self.arrive(from, to, epoch, said),
            Event::Synced {
                node,
                incarnation,
                upto,
            } => {
                if self.is_of(node, incarnation) {
                    self.synced(node, upto);
                }
            }
            Event::Noted(node, incarnation) => {
                if self.is_of(node, incarnation) {
                    self.noted(node);
                }
            }
            Event::Unlink(one, other, epoch) => self.unlink(one, other, epoch),
            Event::Link(one, other) => self.link(one, other),
            Event::Asked {
                node,
                incarnation,
                expected,
                configuration,
            } => {
                self.asked(node, incarnation, (expected, configuration));
            }
            Event::Kept {
                node,
                incarnation,
                expected,
                kept,
                is_known,
            } => {
                if self.is_of(node, incarnation) {
                    self.with(node, |core, now| match (kept, is_known) {
                        (Some(kept), _) => core.decided(now, kept),
                        (None, true) => core.refused(now, expected),
                        (None, false) => core.undecided(now, expected),
                    });
                }
            }
            Event::Hardship => self.befall(),
            Event::Restart(node) => {
                if self.nodes[node.0 as usize].live.is_none() {
                    self.start(node);
                }
            }
            Event::KeeperBack => self.keeper_is_back(),
            Event::Write => {
                self.write();
                let next = duration(&mut self.random, &self.hardships.writes_every);
                self.plan(next, Event::Write);
            }
            Event::Read => {
                self.read();
                let next = duration(&mut self.random, &(MILLISECOND..MILLISECOND * 40));
                self.plan(next, Event::Read);
            }
            Event::Calm => self.calm(),
            Event::End => unreachable!("it ends the loop"),
        }
    }

    fn is_of(&self, node: NodeId, incarnation: u64) -> bool {
        let live = &self.nodes[node.0 as usize].live;
        live.as_ref()
            .is_some_and(|live| live.incarnation == incarnation)
    }

    fn live(&mut self, node: NodeId) -> Option<&mut Live> {
        self.nodes[node.0 as usize].live.as_mut()
    }

    /// Lets something happen to a node that runs, and does what it says then.
    fn with(&mut self, node: NodeId, what: impl FnOnce(&mut Replication, Duration)) {
        let now = self.now;
        let Some(live) = self.live(node) else { return };
        let clock = live.offset + now * live.rate as u32 / 1000;
        what(&mut live.core, clock);
        let actions = live.core.take_actions();
        for action in actions {
            self.act(node, action);
        }
    }

    fn act(&mut self, node: NodeId, action: Action) {
        match action {
            Action::Send(to, message) => self.send(node, to, Said::Core(message)),
            Action::Propose {
                expected,
                configuration,
            } => {
                let incarnation = self.live(node).expect("it acts").incarnation;
                let delay = duration(&mut self.random, &self.hardships.delay);
                self.plan(
                    delay,
                    Event::Asked {
                        node,
                        incarnation,
                        expected,
                        configuration,
                    },
                );
            }
            Action::Note(kept) => {
                self.live(node).expect("it acts").to_note = Some(kept);
                self.note(node);
            }
            Action::Lead { term } => self.lead(node, term),
            Action::Follow { term, leader } => self.follow(node, term, leader),
            Action::Resign => {
                let live = self.live(node).expect("it acts");
                live.sessions.clear();
                let unknown = live.waiting.len() as u64;
                live.waiting.clear();
                self.came.unknown += unknown;
                self.came.resigned += 1;
            }
            Action::Show(number) => {
                let live = self.live(node).expect("it acts");
                let shown = number.0 as usize;
                assert!(shown <= live.synced, "what is not on the device is shown");
                live.shown = live.shown.max(shown);
                let prefix = live.log[..live.shown].to_vec();
                self.seen.show(&prefix);
                self.with(node, |core, now| core.shown(now, number));
            }
            Action::Answer(number) => self.answer(node, number.0 as usize),
        }
    }

    fn lead(&mut self, node: NodeId, term: u64) {
        if let Some(lost_at) = self.lost_leader_at.take() {
            let took = self.now - lost_at;
            self.came.slowest_takeover = self.came.slowest_takeover.max(took);
        }
        self.runs += 1;
        let id = self.runs;
        let live = self.live(node).expect("it acts");
        let first = number(live.log.len() + 1);
        live.runs.retain(|run| run.first < first);
        live.runs.push(RunStart { id, first });
        live.sessions.clear();
        live.follows = None;
        self.nodes[node.0 as usize].device.runs = self.live(node).expect("it acts").runs.clone();
        for other in self.all().filter(|other| *other != node) {
            self.send(node, other, Said::Ask { term });
        }
    }

    fn follow(&mut self, node: NodeId, term: u64, leader: NodeId) {
        let live = self.live(node).expect("it acts");
        live.sessions.clear();
        live.follows = None;
        let unknown = live.waiting.len() as u64;
        live.waiting.clear();
        let said = Said::Begin {
            term,
            runs: live.runs.clone(),
            last: live.log.len(),
        };
        self.came.unknown += unknown;
        self.send(node, leader, said);
    }

    fn answer(&mut self, node: NodeId, upto: usize) {
        let live = self.live(node).expect("it acts");
        let mut told = Vec::new();
        while let Some(place) = live.waiting.pop_front_if(|place| *place < upto) {
            told.push((place, live.log[place]));
        }
        for (place, value) in told {
            self.seen.acknowledge(place, value);
            self.came.acknowledged += 1;
        }
    }

    fn write(&mut self) {
        let node = NodeId(self.random.below(u64::from(self.hardships.nodes)) as u32);
        self.values += 1;
        let value = self.values;
        let Some(live) = self.live(node) else { return };
        if live.core.leads().is_none() {
            return;
        }
        live.waiting.push_back(live.log.len());
        live.log.push(value);
        self.sync(node);
    }

    fn read(&mut self) {
        let node = NodeId(self.random.below(u64::from(self.hardships.nodes)) as u32);
        let now = self.now;
        let Some(live) = self.live(node) else { return };
        let clock = live.offset + now * live.rate as u32 / 1000;
        match live.core.answering(clock) {
            Answering::Current(_) => {
                let prefix = live.log[..live.shown].to_vec();
                self.seen.read(&prefix);
                self.came.current_reads += 1;
            }
            Answering::Unsure(_) => self.came.unsure_reads += 1,
        }
    }

    /// Has what a node has written put on its device.
    fn sync(&mut self, node: NodeId) {
        let took = duration(&mut self.random, &self.hardships.sync);
        let live = self.live(node).expect("it runs");
        if live.is_syncing || live.synced == live.log.len() {
            return;
        }
        live.is_syncing = true;
        let (incarnation, upto) = (live.incarnation, live.log.len());
        self.plan(
            took,
            Event::Synced {
                node,
                incarnation,
                upto,
            },
        );
    }

    /// Has what a node is to note put on its device.
    fn note(&mut self, node: NodeId) {
        let took = duration(&mut self.random, &self.hardships.sync);
        let live = self.live(node).expect("it runs");
        if live.noting.is_some() || live.to_note.is_none() {
            return;
        }
        live.noting = live.to_note.take();
        let incarnation = live.incarnation;
        self.plan(took, Event::Noted(node, incarnation));
    }

    fn noted(&mut self, node: NodeId) {
        let live = self.live(node).expect("it runs");
        let noted = live.noting.take().expect("it was being noted");
        self.nodes[node.0 as usize].device.noted = noted.clone();
        self.note(node);
        self.with(node, |core, now| core.noted(now, noted));
    }

    fn synced(&mut self, node: NodeId, upto: usize) {
        let live = self.live(node).expect("it runs");
        live.is_syncing = false;
        live.synced = live.synced.max(upto);
        let synced = live.log[..live.synced].to_vec();
        self.nodes[node.0 as usize].device.log = synced;
        self.with(node, |core, now| core.stored(now, number(upto)));
        let live = self.live(node).expect("it runs");
        if let Some(term) = live.follows {
            let leader = live.core.known().configuration.leader;
            let last = live.synced;
            self.send(node, leader, Said::Has { term, last });
        }
        self.push_all(node);
        self.sync(node);
    }

    /// Sends others what a leader has on its device and they were not sent.
    fn push_all(&mut self, node: NodeId) {
        let live = self.live(node).expect("it runs");
        let Some(term) = live.core.leads() else {
            return;
        };
        let mut all = Vec::new();
        for (to, sent) in &mut live.sessions {
            for place in *sent..live.synced {
                let value = live.log[place];
                all.push((*to, Said::Entry { term, place, value }));
            }
            *sent = live.synced.max(*sent);
        }
        for (to, said) in all {
            self.send(node, to, said);
        }
    }

    fn send(&mut self, from: NodeId, to: NodeId, said: Said) {
        let delay = duration(&mut self.random, &self.hardships.delay);
        let now = self.now;
        let way = self.ways.entry((from, to)).or_default();
        if !way.is_up || way.is_cut {
            return;
        }
        let is_beat = matches!(said, Said::Core(Message::Beat(_)));
        let last = &mut way.last_arrivals[usize::from(is_beat)];
        let arrival = (now + delay).max(*last);
        *last = arrival;
        let epoch = way.epoch;
        self.plan(
            arrival - now,
            Event::Arrive {
                from,
                to,
                epoch,
                said,
            },
        );
    }

    fn arrive(&mut self, from: NodeId, to: NodeId, epoch: u64, said: Said) {
        let is_cut = self.ways.entry((from, to)).or_default().is_cut;
        // What comes after the receiver has noticed the end of the link comes by none.
        let end = self.ways.entry((to, from)).or_default();
        let is_there = end.is_up && end.epoch == epoch && !is_cut;
        if !is_there || self.live(to).is_none() {
            return;
        }
        match said {
            Said::Core(message) => {
                let message = Message::decode(&message.encode()).expect("it is one");
                self.with(to, |core, now| core.received(now, from, &message));
            }
            Said::Ask { term } => {
                let core = &self.live(to).expect("it runs").core;
                let known = &core.known().configuration;
                if core.leads().is_none() && (known.term, known.leader) == (term, from) {
                    self.follow(to, term, from);
                }
            }
            Said::Begin { term, runs, last } => self.begin(to, from, (term, &runs, last)),
            Said::Accept { term, runs } => {
                let live = self.live(to).expect("it runs");
                if live.core.known().configuration.term == term && live.core.leads().is_none() {
                    live.runs.clone_from(&runs);
                    live.follows = Some(term);
                    let last = live.synced;
                    self.nodes[to.0 as usize].device.runs = runs;
                    self.with(to, |core, _| core.followed(term));
                    self.send(to, from, Said::Has { term, last });
                }
            }
            Said::RollBack { term, to: last } => {
                let mut gives_up = false;
                self.with(to, |core, _| gives_up = core.gives_up(term));
                if gives_up {
                    self.roll_back(to, last);
                }
            }
            Said::Entry { term, place, value } => {
                let live = self.live(to).expect("it runs");
                if live.follows == Some(term) && live.core.known().configuration.term == term {
                    assert_eq!(live.log.len(), place, "entries come in their order");
                    live.log.push(value);
                    self.sync(to);
                }
            }
            Said::Has { term, last } => {
                self.with(to, |core, now| core.has(now, from, term, number(last)));
            }
        }
    }

    /// A node says to a leader what it has.
    fn begin(
        &mut self,
        leader: NodeId,
        node: NodeId,
        (term, runs, last): (u64, &[RunStart], usize),
    ) {
        let live = self.live(leader).expect("it runs");
        // What it says twice by one link it had said before it knew that it was heard.
        if live.core.leads() != Some(term) || live.sessions.contains_key(&node) {
            return;
        }
        let own = (&live.runs[..], number(live.log.len()));
        let common = common_snapshot(own, (runs, number(last)));
        let common = common.expect("all logs begin with the same run").0 as usize;
        if common < last {
            self.send(leader, node, Said::RollBack { term, to: common });
            return;
        }
        let runs = live.runs.clone();
        live.sessions.insert(node, last);
        self.send(leader, node, Said::Accept { term, runs });
        // What was not on the node's device when it said so will be before it says that it has more.
        self.push_all(leader);
    }

    /// A node gives up what is behind a place of its log, which nobody was shown.
    fn roll_back(&mut self, node: NodeId, to: usize) {
        let live = self.live(node).expect("it runs");
        assert!(
            live.core.committed().0 as usize <= to,
            "what is committed is given up"
        );
        self.came.rolled_back += 1;
        self.crash(node);
        self.nodes[node.0 as usize].device.log.truncate(to);
        self.start(node);
    }

    fn start(&mut self, node: NodeId) {
        let (drift, incarnation) = (self.hardships.drift, self.sequence);
        let offset = Duration::from_millis(self.random.below(100_000));
        let rate = 1000 - drift + self.random.below(2 * drift + 1);
        let device = &self.nodes[node.0 as usize].device;
        let (log, runs, known) = (
            device.log.clone(),
            device.runs.clone(),
            device.noted.clone(),
        );
        let clock = offset + self.now * rate as u32 / 1000;
        let start = Start {
            here: node,
            nodes: self.hardships.nodes,
            timing: Timing {
                wait: Duration::from_secs(3),
                ..Timing::default()
            },
            last: number(log.len()),
            known,
            may_form: true,
            may_take_over: true,
        };
        let synced = log.len();
        self.nodes[node.0 as usize].live = Some(Live {
            core: Replication::new(start, clock),
            log,
            runs,
            synced,
            is_syncing: false,
            noting: None,
            to_note: None,
            shown: synced,
            sessions: BTreeMap::new(),
            follows: None,
            waiting: VecDeque::new(),
            offset,
            rate,
            incarnation,
        });
        self.with(node, |_, _| {});
        if !self.keeper_is_away {
            self.tell(node, incarnation, None);
        }
        self.plan(TICK, Event::Tick(node, incarnation));
        for other in self.all().filter(|other| *other != node) {
            let delay = duration(&mut self.random, &(MILLISECOND..MILLISECOND * 300));
            self.plan(delay, Event::Link(node, other));
        }
    }

    fn crash(&mut self, node: NodeId) {
        let Some(live) = self.nodes[node.0 as usize].live.take() else {
            return;
        };
        self.came.unknown += live.waiting.len() as u64;
        self.came.crashes += 1;
        // Some of what was written may be on the device all the same.
        let reached = live.log.len() - live.synced;
        let reached = live.synced + self.random.below(reached as u64 + 1) as usize;
        let is_noted = self.random.below(2) == 0;
        let noting = live.noting.filter(|_| is_noted);
        let device = &mut self.nodes[node.0 as usize].device;
        device.log = live.log[..reached].to_vec();
        if let Some(noting) = noting {
            device.noted = noting;
        }
        for other in self.all().filter(|other| *other != node) {
            let epoch = self.ways.entry((node, other)).or_default().epoch;
            let delay = duration(&mut self.random, &self.hardships.delay);
            self.plan(delay, Event::Unlink(other, node, epoch));
            for way in [(node, other), (other, node)] {
                self.ways.entry(way).or_default().is_cut = true;
            }
            self.ways.entry((node, other)).or_default().is_up = false;
        }
    }

    /// One end of a link learns that it has ended.
    fn unlink(&mut self, here: NodeId, other: NodeId, epoch: u64) {
        let way = self.ways.entry((here, other)).or_default();
        if way.epoch != epoch || !way.is_up {
            return;
        }
        way.is_up = false;
        self.with(here, |core, now| core.unlinked(now, other));
        if let Some(live) = self.live(here) {
            live.sessions.remove(&other);
            if live.core.known().configuration.leader == other {
                live.follows = None;
            }
        }
        let delay = duration(&mut self.random, &(MILLISECOND..MILLISECOND * 500));
        self.plan(delay, Event::Link(here, other));
    }

    /// A link begins, where both ends know that the one before has ended.
    fn link(&mut self, one: NodeId, other: NodeId) {
        let both_run = self.live(one).is_some() && self.live(other).is_some();
        let is_up = |world: &mut Self, way| {
            let way: &mut Way = world.ways.entry(way).or_default();
            way.is_up
        };
        if !both_run || is_up(self, (one, other)) || is_up(self, (other, one)) {
            return;
        }
        let epoch = self.sequence;
        for way in [(one, other), (other, one)] {
            let way = self.ways.entry(way).or_default();
            (way.is_up, way.is_cut, way.epoch) = (true, false, epoch);
        }
        for (here, there) in [(one, other), (other, one)] {
            self.with(here, |core, now| core.linked(now, there));
            let live = self.live(here).expect("it runs");
            let known = live.core.known().configuration.clone();
            if live.core.leads().is_none() && known.leader == there && known.term > 0 {
                self.follow(here, known.term, there);
            }
        }
    }

    fn asked(
        &mut self,
        node: NodeId,
        incarnation: u64,
        (expected, configuration): (u64, Configuration),
    ) {
        if self.keeper_is_away {
            let is_known = self.random.chance(500);
            let delay = duration(&mut self.random, &self.hardships.delay);
            self.plan(
                delay,
                Event::Kept {
                    node,
                    incarnation,
                    expected,
                    kept: None,
                    is_known,
                },
            );
            return;
        }
        if self.kept.version == expected {
            self.kept = Versioned {
                version: expected + 1 + self.random.below(3),
                configuration,
            };
            for other in self.all().filter(|other| *other != node) {
                if let Some(live) = self.live(other) {
                    let incarnation = live.incarnation;
                    self.tell(other, incarnation, None);
                }
            }
        }
        let is_unheard = self.random.chance(self.hardships.unheard) && !self.is_calm;
        self.tell(node, incarnation, Some((expected, is_unheard)));
    }

    fn keeper_is_back(&mut self) {
        self.keeper_is_away = false;
        for node in self.all() {
            if let Some(live) = self.live(node) {
                let incarnation = live.incarnation;
                self.tell(node, incarnation, None);
            }
        }
    }

    /// The keeper says what it keeps.
    fn tell(&mut self, node: NodeId, incarnation: u64, asked: Option<(u64, bool)>) {
        let delay = duration(&mut self.random, &self.hardships.delay);
        let (expected, is_unheard) = asked.unwrap_or_default();
        let kept = (!is_unheard).then(|| self.kept.clone());
        self.plan(
            delay,
            Event::Kept {
                node,
                incarnation,
                expected,
                kept,
                is_known: false,
            },
        );
    }

    fn befall(&mut self) {
        if self.is_calm {
            return;
        }
        let next = duration(&mut self.random, &self.hardships.every);
        if self.hardships.only_one_end {
            let leader = self.kept.configuration.leader;
            let nodes = self.hardships.nodes as usize;
            if self.kept.configuration.in_sync.len() < nodes || self.now < MILLISECOND * 2000 {
                self.plan(next, Event::Hardship);
                return;
            }
            self.crash(leader);
            self.lost_leader_at = Some(self.now);
            return;
        }
        self.plan(next, Event::Hardship);
        let nodes = u64::from(self.hardships.nodes);
        let one = NodeId(self.random.below(nodes) as u32);
        let other = NodeId(self.random.below(nodes) as u32);
        let Hardships {
            crash, cut, keeper, ..
        } = self.hardships;
        match self.random.below(crash + cut + keeper + 2) {
            kind if kind == crash + cut + keeper + 1 => {
                let within = duration(&mut self.random, &(MILLISECOND * 500..MILLISECOND * 5000));
                let leader = self.kept.configuration.leader;
                self.with(leader, |core, now| core.resign(now + within));
            }
            kind if kind < crash => {
                self.crash(one);
                let back = duration(&mut self.random, &(MILLISECOND..MILLISECOND * 4000));
                self.plan(back, Event::Restart(one));
            }
            kind if kind < crash + cut && one != other => self.cut(one, other),
            _ if !self.keeper_is_away => {
                self.keeper_is_away = true;
                let back = duration(&mut self.random, &(MILLISECOND..MILLISECOND * 8000));
                self.plan(back, Event::KeeperBack);
            }
            _ => {}
        }
    }

    /// Cuts a link, or one direction of it; its ends notice later, each by itself.
    fn cut(&mut self, one: NodeId, other: NodeId) {
        let both = self.random.chance(700);
        for (index, way) in [(one, other), (other, one)].into_iter().enumerate() {
            let it = self.ways.entry(way).or_default();
            it.is_cut |= index == 0 || both;
            let epoch = it.epoch;
            let delay = duration(&mut self.random, &(MILLISECOND..MILLISECOND * 5000));
            self.plan(delay, Event::Unlink(way.0, way.1, epoch));
        }
    }

    /// All comes back.
    fn calm(&mut self) {
        self.is_calm = true;
        self.keeper_is_back();
        self.lost_leader_at = None;
        for node in self.all() {
            self.plan(MILLISECOND, Event::Restart(node));
        }
        self.plan(WHOLE_WITHIN, Event::End);
    }

    /// Nodes are whole again, and have all that clients were told of.
    fn check_whole(&mut self) {
        let in_sync = &self.kept.configuration.in_sync;
        if in_sync.len() < self.nodes.len() {
            for node in &self.nodes {
                let live = node.live.as_ref().expect("all came back");
                println!(
                    "{:?} log {} synced {} shown {} follows {:?} sessions {:?}",
                    live.core,
                    live.log.len(),
                    live.synced,
                    live.shown,
                    live.follows,
                    live.sessions
                );
            }
            println!("{:?}", self.ways);
        }
        assert_eq!(
            in_sync.len(),
            self.nodes.len(),
            "nodes that are well are not in sync: {:?}",
            self.kept
        );
        for node in &self.nodes {
            let live = node.live.as_ref().expect("all came back");
            self.seen.check_whole(&live.log);
            let clock = live.offset + self.now * live.rate as u32 / 1000;
            let answering = live.core.answering(clock);
            assert!(matches!(answering, Answering::Current(_)), "{answering:?}");
        }
        let before = self.seen.acknowledged();
        assert!(before > 0, "no client was told of anything");
    }
}
