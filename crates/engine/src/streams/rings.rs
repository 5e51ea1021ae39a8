//! What do windows of a stream read: which tuples are put into its rings, and which are forgotten?
//!
//! There are two rings. That of windows over time has the times of tuples. That of windows of a number
//! of tuples has their numbers in the place of times, so that such a window is a stretch of it as one
//! over time is of the other. Each has tuples only while some query has windows of its kind.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use jindou_store::window::{Ring, RingOptions, RingSnapshot, Run, StreamTuple, WindowError};
use jindou_stream::{CountWindow, Numbers, SlidingWindow, TupleTimes};
use parking_lot::Mutex;

use super::continuous::Continuous;
use super::readers::Kinds;
use super::stream::Stream;
use super::tuples::Tuples;
use crate::EngineError;

/// Runs are merged up to this length: a minute of expired tuples is kept at most.
const LONGEST_RUN_MS: u64 = 60_000;
/// So many expired tuples are kept at most for windows of a number of tuples.
const LONGEST_RUN_TUPLES: u64 = 64 << 10;

/// The least that a tuple takes, in bytes, while a window of a number of tuples has it: its time.
const LEAST_TUPLE_BYTES: u64 = size_of::<i64>() as u64;

/// For so many readers one is looked at before all of them are asked what they need.
const READERS_FOR_A_LOOK: u64 = 8;
/// Windows are larger when they have grown by this part since all were asked, and by
const LARGER: u64 = 4;
/// so many bytes.
const LITTLE: u64 = 64 << 10;

pub(super) fn time_ring() -> Ring {
    Ring::new(RingOptions {
        longest_run_ms: LONGEST_RUN_MS,
    })
}

pub(super) fn number_ring() -> Ring {
    Ring::new(RingOptions {
        longest_run_ms: LONGEST_RUN_TUPLES,
    })
}

/// A number of a tuple as the time that it has in its ring.
pub(super) fn place(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// # Errors
/// [`EngineError::InvalidQuery`] for a window that a stream can never hold: with what comes until it
/// slides, it takes more than the stream's memory.
pub(super) fn check_fits(window: CountWindow, stream: &Stream) -> Result<(), EngineError> {
    let tuples = window.tuples.saturating_add(window.step);
    let limit = stream.definition.memory;
    match tuples.saturating_mul(LEAST_TUPLE_BYTES) > limit {
        false => Ok(()),
        true => Err(EngineError::InvalidQuery {
            message: format!(
                "a window of {} triples that slides with every {} keeps more than the {limit} bytes \
                 that the windows of {} may take",
                window.tuples, window.step, stream.name
            ),
        }),
    }
}

impl TupleTimes for Stream {
    fn time_of(&self, number: u64) -> Option<i64> {
        self.numbers.lock().time_of(number)
    }
}

impl Stream {
    /// Puts a batch, in the order in which it came, where its readers will look for it.
    pub(super) fn append(&self, batch: &[StreamTuple]) -> Result<(), EngineError> {
        let read = self.readers.read().kinds();
        let rings = usize::from(read.times) + usize::from(read.numbers);
        self.brought.lock().add_tuples(batch.len() * rings);
        if read.times {
            append(&self.ring, batch)?;
        }
        match read.numbers {
            true => self.append_numbered(batch),
            false => {
                self.skip_numbers(batch.len());
                Ok(())
            }
        }
    }

    /// Numbers go on where they were, before all that is in batches.
    pub(super) fn resume_numbers(&self) {
        let waiting: usize = self.intake.lock().open().map(Tuples::len).sum();
        let all = self.counts.tuples.load(Relaxed);
        let before = all.saturating_sub(waiting as u64);
        self.numbers.lock().resume(before);
    }

    fn append_numbered(&self, batch: &[StreamTuple]) -> Result<(), EngineError> {
        let mut tuples = batch.to_vec();
        // Those of one time stay in the order in which they came.
        tuples.sort_by_key(|tuple| tuple.time_ms);
        let times_ms: Vec<i64> = tuples.iter().map(|tuple| tuple.time_ms).collect();
        let last = self.numbers.lock().last();
        for (number, tuple) in (last + 1..).zip(&mut tuples) {
            tuple.time_ms = place(number);
        }
        append(&self.numbered, &tuples)?;
        // Whoever knows a number finds its tuple.
        self.numbers.lock().push(&times_ms);
        Ok(())
    }

    /// Numbers tuples that no window of a number of tuples will have.
    pub(super) fn skip_numbers(&self, tuples: usize) {
        self.numbers.lock().skip(tuples as u64);
        let mut ring = self.numbered.lock();
        if !ring.snapshot().runs().is_empty() {
            *ring = number_ring();
        }
    }

    /// The earliest time that a window over time needs tuples of; `None` if no query has one.
    fn needed_by_time(&self) -> Option<i64> {
        let readers = self.readers.read();
        let needed = readers.iter().filter(|query| query.reads_times_of(self));
        needed.map(|query| query.needed_from()).min()
    }

    /// The query that needs the oldest of the tuples that are kept, if one does: where most bytes are those
    /// of windows over time, of these, and otherwise of the windows of a number of tuples.
    pub(super) fn kept_for(&self) -> Option<String> {
        let readers = self.readers.read();
        let timed = self.ring.lock().bytes();
        let numbers = self.numbers.lock();
        let numbered = self.numbered.lock().bytes() + numbers.bytes() as usize;
        let oldest = match (timed >= numbered, timed.max(numbered)) {
            (_, 0) => None,
            (true, _) => {
                let needs = readers.iter().filter(|query| query.reads_times_of(self));
                needs.min_by_key(|query| query.needed_from())
            }
            (false, _) => {
                let needs = readers.iter().filter(|query| query.reads_numbers_of(self));
                needs.min_by_key(|query| query.needed_number(self, &numbers))
            }
        };
        oldest.map(|query| query.name.clone())
    }

    pub(super) fn add_reader(&self, query: &Arc<Continuous>) {
        self.readers.write().add(query, query.kinds_of(self));
    }

    pub(super) fn remove_reader(&self, query: &Continuous) {
        self.readers.write().remove(query, query.kinds_of(self));
    }

    /// Has the next call of [`Stream::forget_after`] forget.
    pub(super) fn forget_soon(&self) {
        self.looked_at.store(u64::MAX, Relaxed);
    }

    /// Forgets tuples that no query will read any more, after so many of its readers were looked at. That asks
    /// all readers, so it waits until a share of them was looked at since the last time, or windows have become larger.
    pub(super) fn forget_after(&self, looked_at: usize) {
        let before = self.looked_at.load(Relaxed);
        let looked_at = before.saturating_add(looked_at as u64);
        if looked_at == 0 {
            return;
        }
        self.looked_at.store(looked_at, Relaxed);
        let readers = self.readers.read().len() as u64;
        let left = self.left_bytes.load(Relaxed);
        let large = left.saturating_add(left / LARGER).saturating_add(LITTLE);
        if looked_at.saturating_mul(READERS_FOR_A_LOOK) >= readers || self.window_bytes() > large {
            self.forget_read();
        }
    }

    /// Forgets tuples that no query will read any more.
    pub(super) fn forget_read(&self) {
        let Some(stable_ms) = self.stable_ms() else {
            return;
        };
        self.looked_at.store(0, Relaxed);
        let from_ms = self.needed_by_time().unwrap_or(stable_ms);
        self.ring.lock().forget_before(from_ms.min(stable_ms));
        let readers = self.readers.read();
        let first_kept = {
            let mut numbers = self.numbers.lock();
            let needed = readers.iter().filter(|query| query.reads_numbers_of(self));
            let needed = needed.map(|query| query.needed_number(self, &numbers));
            match needed.min() {
                Some(first) => numbers.forget_before(first),
                None => {
                    let last = numbers.last();
                    numbers.resume(last);
                }
            }
            numbers.first_kept()
        };
        self.numbered.lock().forget_before(place(first_kept));
        self.left_bytes.store(self.window_bytes(), Relaxed);
    }
}

impl Continuous {
    fn windows_of(&self, stream: &Stream) -> impl Iterator<Item = SlidingWindow> {
        let windows = self.schedule.windows.iter().zip(&self.streams);
        let number = stream.number;
        let its = windows.filter(move |(_, of)| of.number == number);
        its.map(|(window, _)| *window)
    }

    /// The times of tuples, by their numbers, for windows that have numbers.
    pub(super) fn tuple_times(&self) -> Vec<Option<Arc<dyn TupleTimes>>> {
        if !self.has_counts {
            return Vec::new();
        }
        let windows = self.schedule.windows.iter().zip(&self.streams);
        let times = windows.map(|(window, stream)| {
            window.count()?;
            let times: Arc<dyn TupleTimes> = Arc::clone(stream) as _;
            Some(times)
        });
        times.collect()
    }

    /// The earliest time that its next instant needs of windows over time.
    fn needed_from(&self) -> i64 {
        // An instant that is being evaluated is not the last one yet.
        let last = self.last_ms.load(Relaxed);
        last.saturating_sub_unsigned(self.schedule.reach_ms())
    }

    fn kinds_of(&self, stream: &Stream) -> Kinds {
        Kinds {
            times: self.reads_times_of(stream),
            numbers: self.reads_numbers_of(stream),
        }
    }

    /// True if it has a window over time of a stream.
    fn reads_times_of(&self, stream: &Stream) -> bool {
        self.windows_of(stream)
            .any(|window| window.time().is_some())
    }

    /// True if it has a window of a number of tuples of a stream.
    fn reads_numbers_of(&self, stream: &Stream) -> bool {
        self.has_counts
            && self
                .windows_of(stream)
                .any(|window| window.count().is_some())
    }

    /// The first of a stream's tuples that its next instant needs in windows of a number of tuples.
    fn needed_number(&self, stream: &Stream, numbers: &Numbers) -> u64 {
        // An instant that is being evaluated is not the last one yet.
        let last = numbers.count_before(self.last_ms.load(Relaxed));
        let counts = self.windows_of(stream).filter_map(|window| window.count());
        let needed = counts.map(|window| window.numbers(last).start);
        needed.min().unwrap_or(u64::MAX)
    }
}

/// What the windows of a stream need at a moment, for a log.
pub(super) struct Kept {
    timed: RingSnapshot,
    /// Tuples before this are needed by no window over time.
    needed_from_ms: i64,
    numbered: RingSnapshot,
    /// The times of its tuples, from a number on.
    first_number: u64,
    times_ms: Vec<i64>,
}

impl Stream {
    /// What its windows need. No batch is under way.
    pub(super) fn kept(&self) -> Kept {
        let needed_from_ms = self.needed_by_time();
        let numbers = self.numbers.lock();
        Kept {
            timed: self.ring.lock().snapshot(),
            needed_from_ms: needed_from_ms.unwrap_or(i64::MAX),
            numbered: self.numbered.lock().snapshot(),
            first_number: numbers.first_kept(),
            times_ms: numbers.times().iter().copied().collect(),
        }
    }
}

impl Kept {
    /// Gives all tuples in the order of their times, some at once. Those whose numbers matter come in the
    /// order of these: they are all that came from some time on.
    pub(super) fn for_each_some(
        &self,
        give: &mut dyn FnMut(&[StreamTuple]) -> io::Result<()>,
    ) -> io::Result<()> {
        let numbered_from_ms = self.times_ms.first().copied().unwrap_or(i64::MAX);
        let from_ms = self.needed_from_ms.max(self.timed.kept_from_ms());
        for run in self.timed.runs() {
            let is_chosen = |time_ms| from_ms <= time_ms && time_ms < numbered_from_ms;
            give(&sorted(run, &is_chosen))?;
        }
        let first = place(self.first_number);
        for run in self.numbered.runs() {
            let mut tuples = sorted(run, &|number| number >= first);
            for tuple in &mut tuples {
                tuple.time_ms = self.times_ms[(tuple.time_ms - first) as usize];
            }
            give(&tuples)?;
        }
        Ok(())
    }
}

/// The tuples of a run whose times are chosen, in their order.
fn sorted(run: &Run, is_chosen: &dyn Fn(i64) -> bool) -> Vec<StreamTuple> {
    let mut tuples = Vec::with_capacity(run.len());
    run.for_each_tuple(&mut |tuple| {
        tuples.extend(is_chosen(tuple.time_ms).then_some(tuple));
    });
    tuples.sort_by_key(|tuple| tuple.time_ms);
    tuples
}

fn append(ring: &Mutex<Ring>, tuples: &[StreamTuple]) -> Result<(), EngineError> {
    // Batches are of terms, in the order of time, and bounded by the memory of their stream.
    let internal = |error: WindowError| {
        tracing::error!(%error, "a ring does not take a batch");
        EngineError::Internal
    };
    let run = Run::from_batch(tuples).map_err(internal)?;
    ring.lock().append(run).map_err(internal)?;
    loop {
        let due = ring.lock().merge_due();
        let Some(merge) = due else {
            return Ok(());
        };
        let merged = merge.execute();
        ring.lock().apply(merged);
    }
}

#[cfg(test)]
mod tests {
    use jindou_stream::StreamDefinition;

    use crate::{Database, TupleFormat};

    #[test]
    fn each_ring_has_what_windows_of_its_kind_need() {
        let database = Database::new();
        let definition = StreamDefinition::new("http://e/s");
        database.create_stream("s", definition).expect("it is new");
        let register = |name: &str, window: &str| {
            let text = format!("ASK FROM STREAM <http://e/s> {window} WHERE {{ ?x ?p ?y }}");
            database.register(name, &text).expect("it is sound");
        };
        let push = |times: std::ops::Range<i64>| {
            let lines = times.map(|time| format!("{}\t<a:a> <a:b> <a:c{time}> .\n", time * 10));
            let text = lines.collect::<String>().into_bytes();
            let pushed = database.push("s", TupleFormat::Lines, None, text);
            pushed.expect("it is sound");
        };
        let stream = database.known_stream("s").expect("it is there");
        let kept = || {
            let [timed, numbered] = stream.rings();
            let runs = [&timed, &numbered].map(|ring| ring.runs().len());
            (runs.map(|runs| runs > 0), timed.kept_from_ms())
        };
        // Its first instant is far away, and nothing over time waits for that.
        register("count", "[TRIPLES 3 STEP 1000]");
        push(0..100);
        assert_eq!(kept().0, [false, true]);
        register("time", "[RANGE 100ms]");
        push(100..200);
        let (rings, from_ms) = kept();
        assert_eq!(rings, [true, true]);
        assert!(from_ms >= 1_700, "{from_ms}");
        database.unregister("count").expect("it is there");
        push(200..220);
        assert_eq!(kept().0, [true, false]);
        assert_eq!(stream.numbers.lock().last(), 210);
    }

    #[test]
    fn a_stream_for_which_no_query_waits_forgets_as_well() {
        let database = Database::new();
        for name in ["first", "last"] {
            let definition = StreamDefinition::new(format!("http://e/{name}"));
            database.create_stream(name, definition).expect("it is new");
        }
        let text = "ASK FROM STREAM <http://e/first> [RANGE 100ms] \
                    FROM STREAM <http://e/last> [RANGE 100ms] WHERE { ?x ?p ?y }";
        database.register("q", text).expect("it is sound");
        // The query is due with what comes last.
        for batch in 0..50 {
            for name in ["first", "last"] {
                let text = format!("{}\t<a:a> <a:b> <a:c{batch}> .\n", batch * 100);
                let pushed = database.push(name, TupleFormat::Lines, None, text.into_bytes());
                pushed.expect("it is sound");
            }
        }
        let known = |name| database.known_stream(name).expect("it is there");
        let kept = ["first", "last"].map(|name| known(name).rings()[0].kept_from_ms());
        assert!(kept.iter().all(|from_ms| *from_ms >= 4_500), "{kept:?}");
    }
}
