//! One stream: what came, what is complete, and what do windows read?

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

use jindou_store::window::{Ring, RingSnapshot};
use jindou_stream::{Intake, Numbers, Producers, StreamDefinition, TimelessPredicates};
use parking_lot::{Mutex, RwLock};

use super::brought::Brought;
use super::due::Due;
use super::late::LateLines;
use super::readers::Readers;
use super::registrations::Registered;
use super::rings::{number_ring, time_ring};
use super::tick::Heard;
use super::together::Standings;
use super::tuples::Tuples;
use crate::Clock;

/// Time before all times.
const NEVER: i64 = i64::MIN;

pub(crate) struct Stream {
    pub(super) name: String,
    /// No other stream of the store ever has it.
    pub(super) number: u64,
    pub(super) definition: Arc<StreamDefinition>,
    /// Its share of all; none of one that a query makes, which has its own.
    _registered: Option<Registered>,
    /// It is what a query makes.
    pub(super) is_made: bool,
    /// As the definition has them.
    pub(super) timeless: TimelessPredicates,
    /// Held while tuples are put into batches.
    pub(super) intake: Mutex<Intake<Tuples>>,
    /// When something last came, where that matters; locked after the intake.
    pub(super) heard: Mutex<Option<Heard>>,
    /// What each producer sent last. Locked while the intake is.
    pub(super) producers: Mutex<Producers>,
    /// What its source noted with what it pushed.
    pub(super) notes: Mutex<Vec<u8>>,
    /// Facts that came late and are not stored yet, by what the log calls them.
    pub(super) late_facts: Mutex<Vec<(u64, Tuples)>>,
    /// Held while complete batches become part of the data, one after the other.
    pub(super) closing: Mutex<()>,
    /// Whoever would not wait for `closing` left complete batches to the thread that has it.
    pub(super) is_left: AtomicBool,
    /// Something that is complete could not become part of the data yet.
    pub(super) is_behind: AtomicBool,
    /// What was part of the data when the database was opened.
    pub(super) standings: Mutex<Standings>,
    /// What windows over time read.
    pub(super) ring: Mutex<Ring>,
    /// What windows of a number of tuples read: the time of a tuple there is its number.
    pub(super) numbered: Mutex<Ring>,
    /// The numbers of all tuples that are part of the data.
    pub(super) numbers: Mutex<Numbers>,
    /// Terms that it is charged for.
    pub(super) brought: Mutex<Brought>,
    /// All tuples before this are part of the data.
    stable_ms: AtomicI64,
    /// Queries that read it.
    pub(super) readers: RwLock<Readers>,
    /// Those of them that wait for it.
    pub(super) due: Mutex<Due>,
    /// How many were looked at since tuples were forgotten, and bytes of the windows that were left then.
    pub(super) looked_at: AtomicU64,
    pub(super) left_bytes: AtomicU64,
    pub(super) counts: Counts,
    /// Late tuples that are kept aside.
    late: Mutex<LateLines>,
    /// Bytes of the tuples that wait.
    pub(super) waiting_bytes: AtomicU64,
}

#[derive(Default)]
pub(super) struct Counts {
    pub(super) tuples: AtomicU64,
    pub(super) absorbed: AtomicU64,
    /// Timing tuples that no query could read.
    pub(super) unread: AtomicU64,
    pub(super) batches: AtomicU64,
}

impl Counts {
    pub(super) fn all(&self) -> [&AtomicU64; 4] {
        [&self.tuples, &self.absorbed, &self.unread, &self.batches]
    }
}

/// What a stream has had and has.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct StreamStatus {
    /// What queries call it in bare words.
    pub name: String,
    /// What its owner said of it.
    #[serde(flatten)]
    pub definition: Arc<StreamDefinition>,
    /// Tuples that came in time.
    pub tuples: u64,
    /// Those that came late, and of those the last few are kept aside.
    pub late: u64,
    /// Tuples that were stored in a graph.
    pub absorbed: u64,
    /// Timing tuples that no query could read.
    pub unread: u64,
    /// Batches that became part of the data.
    pub batches: u64,
    /// Everything before this time has come; absent before the first tuple.
    pub watermark_ms: Option<i64>,
    /// Everything before this time is part of the data.
    pub stable_ms: Option<i64>,
    /// Where a source that sends again after the database was started anew should begin: windows and
    /// batches that are not complete need nothing before this time. Absent where nothing is known.
    pub needed_from_ms: Option<i64>,
    /// Continuous queries that read it.
    pub queries: u64,
    /// Bytes of its windows.
    pub window_bytes: u64,
    /// Runs that these are in.
    pub window_runs: u64,
    /// Bytes of tuples that wait for their batch to be complete.
    pub waiting_bytes: u64,
    /// Bytes of late tuples that are kept aside.
    pub late_bytes: u64,
    /// Bytes of terms that it brought and that only windows have, or that are yet to be collected.
    pub term_bytes: u64,
}

impl Stream {
    pub(super) fn new(
        number: u64,
        name: &str,
        definition: StreamDefinition,
        registered: Option<Registered>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            number,
            timeless: definition.timeless_predicates(),
            producers: Mutex::default(),
            notes: Mutex::default(),
            late_facts: Mutex::default(),
            intake: Mutex::new(Intake::new(definition.interval_ms, definition.lateness_ms)),
            heard: Mutex::default(),
            closing: Mutex::default(),
            is_left: AtomicBool::new(false),
            is_behind: AtomicBool::new(false),
            standings: Mutex::default(),
            ring: Mutex::new(time_ring()),
            numbered: Mutex::new(number_ring()),
            numbers: Mutex::default(),
            brought: Mutex::default(),
            stable_ms: AtomicI64::new(NEVER),
            readers: RwLock::default(),
            due: Mutex::default(),
            looked_at: AtomicU64::new(0),
            left_bytes: AtomicU64::new(0),
            counts: Counts::default(),
            late: Mutex::new(LateLines::of_memory(definition.memory)),
            waiting_bytes: AtomicU64::new(0),
            definition: Arc::new(definition),
            _registered: registered,
            is_made: false,
        }
    }

    /// The stream that a query makes.
    pub(super) fn made(query: u64, name: &str, definition: StreamDefinition) -> Self {
        Self {
            is_made: true,
            ..Self::new(query, name, definition, None)
        }
    }

    /// Notes that something came, at a time of the clock.
    pub(super) fn hear(&self, intake: &Intake<Tuples>, clock: &Clock) {
        if self.definition.idle_ms.is_some() {
            *self.heard.lock() = Heard::new(clock.now_ms(), intake.watermark_ms());
        }
    }

    /// All tuples before this time are part of the data; `None` before the first batch.
    pub(super) fn stable_ms(&self) -> Option<i64> {
        Some(self.stable_ms.load(SeqCst)).filter(|stable| *stable > NEVER)
    }

    pub(super) fn set_stable(&self, stable_ms: i64) {
        self.stable_ms.fetch_max(stable_ms, SeqCst);
    }

    /// Nothing before this time is needed by a window, or by a batch that is not complete. Known before
    /// the first tuple where a query goes on from before the database was opened.
    pub(super) fn needed_from_ms(&self) -> Option<i64> {
        let intake = {
            let intake = self.intake.lock();
            intake.stable_ms().or_else(|| intake.begin_ms())
        };
        let open = self.stable_ms().or(intake);
        let readers = self.readers.read();
        let needed = readers.iter().filter_map(|query| query.next_needs(self));
        needed.chain(open).min()
    }

    pub(super) fn keep_late(&self, line: String) {
        self.late.lock().keep(line);
    }

    /// The last tuples that came late.
    pub(super) fn late(&self) -> String {
        self.late.lock().text()
    }

    pub(super) fn status(&self) -> StreamStatus {
        let (late, watermark_ms) = {
            let intake = self.intake.lock();
            (intake.late(), intake.watermark_ms())
        };
        let runs = self.rings().map(|ring| ring.runs().len() as u64);
        StreamStatus {
            name: self.name.clone(),
            definition: Arc::clone(&self.definition),
            tuples: self.counts.tuples.load(Relaxed),
            late,
            absorbed: self.counts.absorbed.load(Relaxed),
            unread: self.counts.unread.load(Relaxed),
            batches: self.counts.batches.load(Relaxed),
            watermark_ms,
            stable_ms: self.stable_ms(),
            needed_from_ms: self.needed_from_ms(),
            queries: self.readers.read().len() as u64,
            window_bytes: self.window_bytes(),
            window_runs: runs.iter().sum(),
            waiting_bytes: self.waiting_bytes.load(Relaxed),
            late_bytes: self.late.lock().bytes(),
            term_bytes: self.term_bytes(),
        }
    }

    /// True if its windows, what waits, late tuples and the terms of all these take more than they may.
    pub(super) fn is_full(&self) -> bool {
        self.bytes() + self.term_bytes() > self.definition.memory
    }

    /// Bytes of its windows, of what waits and of late tuples; their terms are the dictionary's.
    pub(super) fn bytes(&self) -> u64 {
        let others = self.waiting_bytes.load(Relaxed) + self.late.lock().bytes();
        others + self.window_bytes()
    }

    /// Bytes of what windows read.
    pub(super) fn window_bytes(&self) -> u64 {
        let rings = self.ring.lock().bytes() + self.numbered.lock().bytes();
        rings as u64 + self.numbers.lock().bytes()
    }

    /// What windows of either kind read.
    pub(super) fn rings(&self) -> [RingSnapshot; 2] {
        [&self.ring, &self.numbered].map(|ring| ring.lock().snapshot())
    }
}

/// Streams by the numbers of a query's windows.
pub(super) type OfWindows = Box<[Arc<Stream>]>;
