//! Does each message arrive once and in order, whatever the network and however small the rings, and does
//! everyone hear of it when a mail ends?
//!
//! `JINDOU_SEED` sets the first seed, `JINDOU_CASES` the number of cases; a failure prints its seed. No test
//! measures time: peers are asked whether they are alive either at once or, where only a bell may wake a
//! thread, never while the test runs.

use std::fmt;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::Duration;

use jindou_fabric::local::LocalNetwork;
#[cfg(target_os = "linux")]
use jindou_fabric::process::ProcessFabric;
use jindou_fabric::remote::{Fabric, NodeId};
use jindou_fabric::schedule::run_when_idle;
use jindou_fabric::sim::{Simulation, SimulationOptions};
use parking_lot::Mutex;

use super::tending::BROKEN;
use super::{Mail, MailCounts, MailLimits, Postman};
use crate::calls::{LinkEnd, LinkOptions};

/// Longer than any machine takes: only a test that hangs waits for it.
const LONG: Duration = Duration::from_secs(60);
/// Peers are not probed.
const NEVER: Duration = Duration::from_secs(3600);
/// Peers are probed all the time.
const OFTEN: Duration = Duration::from_millis(2);

/// SplitMix64 (Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// What carries messages from one node to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Both nodes' memory is that of the process.
    Local,
    /// As between processes of one machine.
    #[cfg(target_os = "linux")]
    Mapped,
    /// As between machines: flights land later, and no bell rings then.
    #[cfg(target_os = "linux")]
    Connection,
    /// Late packets that overtake each other.
    Simulated,
}

/// Two nodes, and how one is killed.
struct World {
    fabrics: [Arc<dyn Fabric>; 2],
    kill: Box<dyn Fn(u32)>,
}

impl World {
    fn new(way: Way, seed: u64) -> Self {
        match way {
            Way::Local => {
                let network = LocalNetwork::new(2);
                Self {
                    fabrics: [network.fabric(0), network.fabric(1)],
                    kill: Box::new(move |node| network.kill(NodeId(node))),
                }
            }
            #[cfg(target_os = "linux")]
            Way::Mapped => Self::of_processes(true),
            #[cfg(target_os = "linux")]
            Way::Connection => Self::of_processes(false),
            Way::Simulated => Self::simulated(seed, SimulationOptions::default()),
        }
    }

    #[cfg(target_os = "linux")]
    fn of_processes(maps_memory: bool) -> Self {
        let fabrics = ProcessFabric::connected(2, maps_memory).unwrap();
        Self {
            fabrics: [fabrics[0].clone(), fabrics[1].clone()],
            kill: Box::new(move |node| fabrics[node as usize].close()),
        }
    }

    fn simulated(seed: u64, options: SimulationOptions) -> Self {
        let simulation = Simulation::new(seed, 2, options);
        Self {
            fabrics: [simulation.fabric(0), simulation.fabric(1)],
            kill: Box::new(move |node| simulation.crash(NodeId(node))),
        }
    }

    fn ends(&self, options: &LinkOptions) -> [LinkEnd; 2] {
        let [one, other] = &self.fabrics;
        let (one, other) = LinkEnd::pair(Arc::clone(one), Arc::clone(other), options).unwrap();
        [one, other]
    }
}

/// Rings of so many bytes, whose ends probe each other so often.
fn options(ring_bytes: usize, probe_every: Duration) -> LinkOptions {
    LinkOptions {
        ring_bytes,
        probe_every,
        ..LinkOptions::default()
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Event {
    Received(Vec<u8>),
    Lost(String),
}

type OnReceived = Box<dyn Fn(&[u8]) -> Result<(), String> + Send + Sync>;

/// Notes what it is called with.
struct Recorder {
    from: NodeId,
    events: mpsc::Sender<Event>,
    /// Called with each message after it was noted.
    on_received: OnReceived,
    /// Called after a loss was noted.
    on_lost: Box<dyn Fn() + Send + Sync>,
}

impl Postman for Recorder {
    fn received(&self, from: NodeId, message: Vec<u8>) -> Result<(), String> {
        assert_eq!(from, self.from);
        let outcome = (self.on_received)(&message);
        let _ = self.events.send(Event::Received(message));
        outcome
    }

    fn lost(&self, node: NodeId, reason: &str) {
        assert_eq!(node, self.from);
        let _ = self.events.send(Event::Lost(reason.to_owned()));
        (self.on_lost)();
    }
}

/// What a postman was called with.
struct Events(mpsc::Receiver<Event>);

impl Events {
    fn next(&self) -> Event {
        self.0.recv_timeout(LONG).expect("something happens")
    }

    fn message(&self) -> Vec<u8> {
        match self.next() {
            Event::Received(message) => message,
            lost @ Event::Lost(_) => panic!("{lost:?}"),
        }
    }

    /// Passes over messages.
    fn loss(&self) -> String {
        loop {
            if let Event::Lost(reason) = self.next() {
                return reason;
            }
        }
    }

    /// Nothing happens any more: the postman is gone.
    fn assert_over(&self) {
        let next = self.0.recv_timeout(LONG);
        assert_eq!(next, Err(RecvTimeoutError::Disconnected));
    }
}

/// A mail, and what its postman was called with.
struct Desk {
    mail: Arc<Mail>,
    events: Events,
}

impl Desk {
    fn new(end: LinkEnd) -> Self {
        Self::with(end, MailLimits::default(), Box::new(|_| Ok(())))
    }

    fn with(end: LinkEnd, limits: MailLimits, on_received: OnReceived) -> Self {
        Self::calling(end, limits, on_received, Box::new(|| ()))
    }

    fn calling(
        end: LinkEnd,
        limits: MailLimits,
        on_received: OnReceived,
        on_lost: Box<dyn Fn() + Send + Sync>,
    ) -> Self {
        let (events, noted) = mpsc::channel();
        let recorder = Recorder {
            from: end.peer,
            events,
            on_received,
            on_lost,
        };
        Self {
            mail: Mail::start(end, limits, Arc::new(recorder)).unwrap(),
            events: Events(noted),
        }
    }
}

/// The message of a writer with this number: its bytes say which one it is.
fn message(writer: u64, number: u64, longest: u64) -> Vec<u8> {
    let mut random = Random(writer << 32 | number);
    let length = match random.below(4) {
        0 => random.below(longest),
        _ => random.below(100),
    };
    let bytes = (0..length).map(|_| random.next() as u8);
    let name = [writer.to_le_bytes(), number.to_le_bytes()].concat();
    name.into_iter().chain(bytes).collect()
}

/// Which message of which writer it is.
fn name(message: &[u8]) -> (u64, u64) {
    let word = |at: usize| u64::from_le_bytes(message[at..at + 8].try_into().unwrap());
    (word(0), word(8))
}

/// One writer a thread.
const WRITERS: u64 = 4;

/// One of the writers has no core for sure, but for those of a simulation, which take turns.
fn write_all(way: Way, mail: &Mail, writers: std::ops::Range<u64>, count: u64, longest: u64) {
    thread::scope(|scope| {
        for writer in writers {
            scope.spawn(move || {
                if writer % WRITERS == 0 && way != Way::Simulated {
                    // Where there is no such thing, it is as the others.
                    let _ = run_when_idle();
                }
                for number in 0..count {
                    if number % 3 == 0 {
                        assert!(mail.wait_for_room(|| false));
                    }
                    assert!(mail.send(message(writer, number, longest)));
                }
            });
        }
    });
}

/// Takes all messages of these writers; how many they were.
fn read_all(
    events: &Events,
    writers: std::ops::Range<u64>,
    count: u64,
    longest: u64,
) -> MailCounts {
    let mut next = vec![0; writers.end as usize];
    let mut counts = MailCounts::default();
    for _ in 0..count * (writers.end - writers.start) {
        let found = events.message();
        let (writer, number) = name(&found);
        assert!(writers.contains(&writer), "writer {writer}");
        assert_eq!(number, next[writer as usize], "writer {writer}");
        assert!(found == message(writer, number, longest));
        next[writer as usize] += 1;
        counts.messages += 1;
        counts.bytes += found.len() as u64;
    }
    counts
}

fn write_both_ways(way: Way, seed: u64) {
    let mut random = Random(seed);
    let ring_bytes = 512 << random.below(4);
    let longest = ring_bytes as u64 * 3;
    let count = 50 + random.below(100);
    let limits = MailLimits {
        waiting_bytes: random.below(3 * longest) as usize,
    };
    let world = World::new(way, seed);
    let ends = world.ends(&options(ring_bytes, NEVER));
    let [one, other] = ends.map(|end| Desk::with(end, limits, Box::new(|_| Ok(()))));
    let (of_one, of_other) = (0..WRITERS, WRITERS..2 * WRITERS);
    thread::scope(|scope| {
        scope.spawn(|| write_all(way, &one.mail, of_one.clone(), count, longest));
        scope.spawn(|| write_all(way, &other.mail, of_other.clone(), count, longest));
    });
    let of_one = read_all(&other.events, of_one, count, longest);
    let of_other = read_all(&one.events, of_other, count, longest);
    assert_eq!((one.mail.sent(), other.mail.received()), (of_one, of_one));
    assert_eq!(
        (other.mail.sent(), one.mail.received()),
        (of_other, of_other)
    );
    assert_eq!(one.mail.waiting_bytes() + other.mail.waiting_bytes(), 0);
}

/// Says which case failed.
struct Case<T: fmt::Debug>(T);

impl<T: fmt::Debug> Drop for Case<T> {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("failed: {:?} (JINDOU_SEED, JINDOU_CASES=1)", self.0);
        }
    }
}

fn messages_of_each_thread_arrive_once_and_in_order(way: Way) {
    // Threads of a simulation never sleep, and take turns at its one lock.
    let cases = if way == Way::Simulated { 2 } else { 10 };
    let (first, cases) = (setting("JINDOU_SEED", 1), setting("JINDOU_CASES", cases));
    println!("{way:?}: seed {first}, {cases} cases (JINDOU_SEED, JINDOU_CASES)");
    for seed in first..first + cases {
        let _case = Case((way, seed));
        write_both_ways(way, seed);
    }
}

const REQUEST: u8 = 0;
const REPLY: u8 = 1;

/// Sends a reply to each request on the mail's own thread.
fn replying(mail: &Arc<OnceLock<Weak<Mail>>>, reply_bytes: usize) -> OnReceived {
    let mail = Arc::clone(mail);
    Box::new(move |message| {
        if message[0] == REQUEST {
            let mut reply = message.to_vec();
            reply[0] = REPLY;
            reply.resize(reply_bytes, REPLY);
            if let Some(mail) = mail.wait().upgrade() {
                assert!(mail.send(reply));
            }
        }
        Ok(())
    })
}

fn the_mails_own_threads_reply_to_each_other_over_full_rings(way: Way) {
    const REQUESTS: u32 = 200;
    let world = World::new(way, 1);
    let desks = world.ends(&options(512, NEVER)).map(|end| {
        let mail: Arc<OnceLock<Weak<Mail>>> = Arc::default();
        let desk = Desk::with(end, MailLimits::default(), replying(&mail, 1500));
        assert!(mail.set(Arc::downgrade(&desk.mail)).is_ok());
        desk
    });
    let request = |number: u32| [&[REQUEST], &number.to_le_bytes()[..], &[7; 300]].concat();
    thread::scope(|scope| {
        for mail in desks.iter().map(|desk| &desk.mail) {
            scope.spawn(move || {
                for number in 0..REQUESTS {
                    assert!(mail.send(request(number)));
                }
            });
        }
    });
    for desk in &desks {
        let mut next = [0; 2];
        while next != [REQUESTS; 2] {
            let found = desk.events.message();
            let (kind, number) = (found[0] as usize, &found[1..5]);
            assert_eq!(*number, next[kind].to_le_bytes());
            next[kind] += 1;
        }
    }
}

fn a_mail_that_is_dropped_sends_first_what_it_has(way: Way) {
    let world = World::new(way, 1);
    let [one, other] = world.ends(&options(512, NEVER)).map(Desk::new);
    for number in 0..100 {
        assert!(one.mail.send(message(0, number, 2000)));
    }
    drop(one.mail);
    read_all(&other.events, 0..1, 100, 2000);
    let lost = Event::Lost("the other side closed the ring".to_owned());
    assert_eq!(other.events.next(), lost);
    assert!(!other.mail.send(vec![1]));
    assert!(!other.mail.wait_for_room(|| panic!("it does not wait")));
    assert_eq!(other.mail.waiting_bytes(), 0);
    drop(other.mail);
    other.events.assert_over();
    // Whoever drops a mail hears nothing of that.
    one.events.assert_over();
}

/// A postman that takes no message before the gate is opened: what is sent to it waits.
fn gated() -> (mpsc::Sender<()>, OnReceived) {
    let (gate, opened) = mpsc::channel::<()>();
    let opened = Mutex::new(opened);
    let wait = move |_: &[u8]| {
        // Open once the other end is dropped.
        let _ = opened.lock().recv();
        Ok(())
    };
    (gate, Box::new(wait))
}

/// Sends more to a postman that takes nothing than ring and sender hold.
fn fill(mail: &Mail) {
    while mail.waiting_bytes() < 8 << 10 {
        assert!(mail.send(vec![1; 200]));
    }
}

fn whoever_waits_for_room_gets_it_or_gives_up(way: Way) {
    let world = World::new(way, 1);
    let [one, other] = world.ends(&options(512, NEVER));
    let (gate, wait) = gated();
    let one = Desk::with(one, MailLimits { waiting_bytes: 0 }, Box::new(|_| Ok(())));
    let other = Desk::with(other, MailLimits::default(), wait);
    // Dropped before the mail, whose thread waits at it.
    let gate = gate;
    assert!(one.mail.wait_for_room(|| panic!("there is room")));
    fill(&one.mail);
    assert!(!one.mail.wait_for_room(|| true));
    thread::scope(|scope| {
        let (asked, was_asked) = mpsc::sync_channel(0);
        let gives_up = move || {
            let _ = asked.try_send(());
            false
        };
        let waiting = scope.spawn(|| one.mail.wait_for_room(gives_up));
        was_asked.recv_timeout(LONG).expect("it waits");
        drop(gate);
        assert!(waiting.join().unwrap());
    });
    assert_eq!(one.mail.waiting_bytes(), 0);
    drop(one.mail);
    let _reason = other.events.loss();
}

/// What waits for room stays behind, in its order; what was sent ahead before stays before.
fn what_is_sent_ahead_comes_before_what_waits(way: Way) {
    let world = World::new(way, 1);
    let [one, other] = world.ends(&options(512, NEVER));
    let (gate, wait) = gated();
    let one = Desk::new(one);
    let other = Desk::with(other, MailLimits::default(), wait);
    let gate = gate;
    fill(&one.mail);
    let waiting = one.mail.waiting_bytes() / 200;
    for ahead in [2, 3] {
        assert!(one.mail.send_ahead(vec![ahead]));
    }
    assert!(one.mail.send(vec![4]));
    drop(gate);
    let mut order = Vec::new();
    while order.last() != Some(&4) {
        order.push(other.events.message()[0]);
    }
    let place = |kind: u8| {
        order
            .iter()
            .position(|other| *other == kind)
            .expect("it came")
    };
    assert!(place(2) < place(3), "{order:?}");
    let behind = order[place(3)..].iter().filter(|kind| **kind == 1).count();
    // As much as the ring takes may have left the queue meanwhile.
    assert!(behind + 8 >= waiting, "{behind} of {waiting}: {order:?}");
}

fn a_mail_that_is_ended_takes_nothing_though_somebody_has_it(way: Way) {
    let world = World::new(way, 1);
    let [one, other] = world.ends(&options(512, OFTEN));
    let (gate, wait) = gated();
    let one = Desk::with(one, MailLimits { waiting_bytes: 0 }, Box::new(|_| Ok(())));
    let other = Desk::with(other, MailLimits::default(), wait);
    // Dropped before the mail, whose thread waits at it.
    let gate = gate;
    fill(&one.mail);
    let kept = Arc::clone(&one.mail);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| kept.wait_for_room(|| false));
        one.mail.end();
        assert!(!waiting.join().unwrap());
    });
    assert!(kept.is_over());
    assert!(!kept.send(vec![1]));
    assert_eq!(kept.waiting_bytes(), 0);
    drop(gate);
    let _reason = other.events.loss();
    one.events.assert_over();
}

fn a_node_that_is_killed_is_lost_once_for_whoever_sends_and_waits(way: Way) {
    let world = World::new(way, 1);
    let [one, other] = world.ends(&options(512, OFTEN));
    let (gate, wait) = gated();
    let one = Desk::with(one, MailLimits { waiting_bytes: 0 }, Box::new(|_| Ok(())));
    let other = Desk::with(other, MailLimits::default(), wait);
    // Dropped before the mail, whose thread waits at it.
    let gate = gate;
    fill(&one.mail);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| one.mail.wait_for_room(|| false));
        (world.kill)(1);
        assert!(!waiting.join().unwrap());
    });
    let _reason = one.events.loss();
    assert!(!one.mail.send(vec![1]));
    drop(one.mail);
    one.events.assert_over();
    drop(gate);
    // Its own end has no network any more.
    let _reason = other.events.loss();
    drop(other.mail);
    other.events.assert_over();
}

/// A mail ends by what its postman does with the first message, and tells it so; and its peer's ends.
fn assert_ends(way: Way, on_received: OnReceived, reason: &str) {
    let world = World::new(way, 1);
    let [one, other] = world.ends(&options(512, NEVER));
    let one = Desk::new(one);
    let other = Desk::with(other, MailLimits::default(), on_received);
    assert!(one.mail.send(vec![1]));
    assert_eq!(other.events.loss(), reason);
    assert!(!other.mail.send(vec![1]));
    let _reason = one.events.loss();
    assert!(!one.mail.send(vec![1]));
    drop((one.mail, other.mail));
    one.events.assert_over();
    other.events.assert_over();
}

fn a_message_that_is_refused_ends_the_mail(way: Way) {
    let refuse = |_: &[u8]| Err("it speaks another language".to_owned());
    assert_ends(way, Box::new(refuse), "it speaks another language");
}

fn a_panic_of_the_postman_ends_the_mail(way: Way) {
    let broken = |_: &[u8]| panic!("this is part of the test");
    assert_ends(way, Box::new(broken), BROKEN);
}

fn a_message_that_is_too_long_ends_the_mail(way: Way) {
    let world = World::new(way, 1);
    let options = LinkOptions {
        message_bytes: 1000,
        ..options(512, NEVER)
    };
    let [one, other] = world.ends(&options).map(Desk::new);
    for length in [0, 1000] {
        assert!(one.mail.send(vec![1; length]));
        assert_eq!(other.events.message().len(), length);
    }
    assert!(one.mail.send(vec![1; 1001]));
    let reason = one.events.loss();
    assert!(reason.contains("1001 bytes"), "{reason}");
    assert!(!one.mail.send(vec![1]));
    let _reason = other.events.loss();
}

/// Where the only mail is that keeps an end alive.
type Place = Arc<Mutex<Option<Arc<Mail>>>>;

fn drop_from(place: &Place) -> impl Fn() + Send + Sync + use<> {
    let place = Arc::clone(place);
    move || {
        let mail = place.lock().take();
        assert!(mail.is_some(), "it is called once");
    }
}

fn a_postman_may_drop_the_mail_when_a_message_comes(way: Way) {
    let world = World::new(way, 1);
    let [one, other] = world.ends(&options(512, NEVER));
    let one = Desk::new(one);
    let place = Place::default();
    let drop_it = drop_from(&place);
    let held = place.lock();
    // It waits for the place: there is the mail when the first message comes.
    let received = move |_: &[u8]| {
        drop_it();
        Ok(())
    };
    assert!(one.mail.send(vec![1]) && one.mail.send(vec![2]));
    let other = Desk::with(other, MailLimits::default(), Box::new(received));
    let mut held = held;
    *held = Some(other.mail);
    drop(held);
    // Nothing after that, no loss either.
    assert_eq!(other.events.message(), [1]);
    other.events.assert_over();
    let _reason = one.events.loss();
}

fn a_postman_may_drop_the_mail_when_its_peer_is_lost(way: Way) {
    let world = World::new(way, 1);
    let [one, other] = world.ends(&options(512, NEVER));
    let one = Desk::new(one);
    let place = Place::default();
    let other = Desk::calling(
        other,
        MailLimits::default(),
        Box::new(|_| Ok(())),
        Box::new(drop_from(&place)),
    );
    *place.lock() = Some(other.mail);
    drop(one.mail);
    let _reason = other.events.loss();
    other.events.assert_over();
}

fn a_mail_that_only_its_postman_has_ends_when_the_peer_is_lost(way: Way) {
    let world = World::new(way, 1);
    let [one, other] = world.ends(&options(512, NEVER));
    let one = Desk::new(one);
    let place = Place::default();
    let keeps = Arc::clone(&place);
    let received = move |_: &[u8]| {
        assert!(keeps.lock().is_some());
        Ok(())
    };
    let mut held = place.lock();
    let other = Desk::with(other, MailLimits::default(), Box::new(received));
    *held = Some(other.mail);
    drop(held);
    drop(place);
    assert!(one.mail.send(vec![1]));
    assert_eq!(other.events.message(), [1]);
    drop(one.mail);
    let _reason = other.events.loss();
    other.events.assert_over();
}

/// A test of each name, over one way.
macro_rules! tests {
    ($way:expr => $($case:ident)*) => {$(
        #[test]
        fn $case() {
            super::$case($way);
        }
    )*};
}

/// What holds over each way.
macro_rules! contract {
    ($way:expr) => {
        tests! {
            $way =>
            messages_of_each_thread_arrive_once_and_in_order
            the_mails_own_threads_reply_to_each_other_over_full_rings
            whoever_waits_for_room_gets_it_or_gives_up
            what_is_sent_ahead_comes_before_what_waits
            a_mail_that_is_ended_takes_nothing_though_somebody_has_it
            a_node_that_is_killed_is_lost_once_for_whoever_sends_and_waits
            a_message_that_is_refused_ends_the_mail
            a_panic_of_the_postman_ends_the_mail
            a_message_that_is_too_long_ends_the_mail
            a_postman_may_drop_the_mail_when_a_message_comes
            a_postman_may_drop_the_mail_when_its_peer_is_lost
            a_mail_that_only_its_postman_has_ends_when_the_peer_is_lost
        }
    };
}

mod local {
    use super::Way;

    contract!(Way::Local);
    tests!(Way::Local => a_mail_that_is_dropped_sends_first_what_it_has);
}

#[cfg(target_os = "linux")]
mod mapped {
    use super::Way;

    contract!(Way::Mapped);
    tests!(Way::Mapped => a_mail_that_is_dropped_sends_first_what_it_has);
}

#[cfg(target_os = "linux")]
mod connection {
    use super::Way;

    contract!(Way::Connection);
    tests!(Way::Connection => a_mail_that_is_dropped_sends_first_what_it_has);
}

/// Simulated time passes at once when a thread has nothing to do, and with it the time that a mail takes to
/// close its ring.
mod simulated {
    use super::Way;

    contract!(Way::Simulated);
}

#[test]
fn messages_of_each_thread_arrive_over_a_network_that_loses_packets() {
    let seed = setting("JINDOU_SEED", 1);
    let _case = Case(seed);
    let options = SimulationOptions {
        lost_per_mille: 50,
        // A node that is alive is never given up.
        attempts: 50,
        ..SimulationOptions::default()
    };
    let world = World::simulated(seed, options);
    let [one, other] = world.ends(&self::options(1024, NEVER)).map(Desk::new);
    write_all(Way::Simulated, &one.mail, 0..WRITERS, 50, 3000);
    read_all(&other.events, 0..WRITERS, 50, 3000);
}

#[test]
fn an_end_joins_though_the_other_fabric_takes_longer_than_between_two_probes() {
    let options = SimulationOptions {
        delay: Duration::from_secs(2)..Duration::from_secs(3),
        retry_after: LONG,
        ..SimulationOptions::default()
    };
    let world = World::simulated(1, options);
    // This makes a link of them.
    let _ends = world.ends(&self::options(512, OFTEN));
}
