//! How do streams go on while nothing comes: those with times of arrival, and those that may be idle?
//!
//! The time of arrival is that of the clock, so a batch is complete when the clock has passed its end. A
//! stream with times of events waits for later ones, unless its definition has `idle_ms`: when its last
//! tuple or heartbeat is longer ago than that, its watermark goes on with the clock, and stays so long
//! behind. With the watermark `w` at the clock's time `c` of the last tuple or heartbeat, it is at the
//! clock's time `t` at least `w + (t - c) - idle_ms`.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

use jindou_stream::TimeSource;

use super::stream::Stream;
use crate::{Database, EngineError};

/// Between two attempts to make part of the data what could not be.
const AGAIN: Duration = Duration::from_secs(1);
/// No stream is looked at more often.
const LEAST_INTERVAL_MS: u32 = 10;

/// For so long whoever looks at a stream may hold up others.
const MOMENT: Duration = Duration::from_millis(1);

/// When a stream last heard of its source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    /// By the clock.
    clock_ms: i64,
    /// The watermark then.
    watermark_ms: i64,
}

impl Heard {
    pub(super) fn new(clock_ms: i64, watermark_ms: Option<i64>) -> Option<Self> {
        let watermark_ms = watermark_ms?;
        Some(Self {
            clock_ms,
            watermark_ms,
        })
    }

    /// The watermark at a time of the clock, if the source has been idle for longer than it may.
    fn watermark_at(self, now_ms: i64, idle_ms: u64) -> Option<i64> {
        let idle_ms = i64::try_from(idle_ms).unwrap_or(i64::MAX);
        let over = now_ms.saturating_sub(self.clock_ms).saturating_sub(idle_ms);
        (over > 0).then(|| self.watermark_ms.saturating_add(over))
    }
}

impl Database {
    /// Has all streams go on that go with the [clock](crate::Config::clock): batches that are complete
    /// become part of the data, and queries that are due are evaluated. What could not become part of the
    /// data, as the disk was full, is tried again in all streams. To be called again after the time that it
    /// gives; `None` if there is no stream to which either may happen.
    ///
    /// A server does so by itself.
    ///
    /// # Errors
    /// Those of a transaction, after all streams had their turn: the first.
    pub fn tick(&self) -> Result<Option<Duration>, EngineError> {
        if self.check_streams_awake().is_err() {
            // They may go on here later, if this is one of several copies of a store.
            return Ok(self.inner().group().map(|_| AGAIN));
        }
        let may_fail = self.inner().directory.is_some();
        let (streams, others): (Vec<Arc<Stream>>, Vec<Arc<Stream>>) = {
            let names = self.inner().streams.names.read();
            let all = names.streams.values().cloned();
            all.partition(|stream| goes_with_clock(stream))
        };
        let inner = self.inner();
        inner.check_says()?;
        inner.begin_late();
        let mut failed = None;
        let mut note = |error: EngineError| {
            failed.get_or_insert(error);
        };
        let mut due: Vec<&Arc<Stream>> = others.iter().filter(|stream| waits(stream)).collect();
        for stream in &streams {
            match inner.advance(stream) {
                Ok(true) => due.push(stream),
                Ok(false) => {}
                Err(error) => note(error),
            }
        }
        // Each has its turn before one that has much to do goes on.
        while !due.is_empty() {
            due.retain(|stream| match inner.close_some(stream) {
                Ok(is_done) => {
                    inner.wake_readers(stream);
                    !is_done
                }
                Err(error) => {
                    note(error);
                    false
                }
            });
        }
        inner.limit_journal();
        if let Some(error) = failed {
            return Err(error);
        }
        let interval = |stream: &Arc<Stream>| {
            let interval_ms = stream.definition.interval_ms.max(LEAST_INTERVAL_MS);
            Duration::from_millis(interval_ms.into())
        };
        let again = (may_fail && !others.is_empty()).then_some(AGAIN);
        Ok(streams.iter().map(interval).chain(again).min())
    }
}

impl crate::database::Inner {
    /// Has the watermark of a stream go on with the clock; true if there may be complete batches then. One
    /// whose batches wait stays where it is until they are part of the data.
    ///
    /// # Errors
    /// As [`Journal::append`](super::journal::Journal::append): it stays where it is.
    fn advance(&self, stream: &Stream) -> Result<bool, EngineError> {
        if waits(stream) {
            return Ok(true);
        }
        let now_ms = self.config.clock.now_ms();
        let journal = self.journal_of(stream);
        let _cut = journal.map(|_| self.streams.cut.read());
        // Others do not wait for whoever puts many tuples into it: it goes on with the next tick.
        let Some(mut intake) = stream.intake.try_lock_for(MOMENT) else {
            return Ok(false);
        };
        let watermark_ms = match (&stream.definition.time, stream.definition.idle_ms) {
            (TimeSource::Arrival, _) => Some(now_ms),
            (_, Some(idle_ms)) => {
                let heard = *stream.heard.lock();
                heard.and_then(|heard| heard.watermark_at(now_ms, idle_ms))
            }
            _ => None,
        };
        let interval_ms = i64::from(stream.definition.interval_ms);
        let batch = |time_ms: i64| time_ms.div_euclid(interval_ms);
        // What ends no batch changes nothing.
        let watermark_ms = watermark_ms.filter(|watermark_ms| {
            let before = intake.watermark_ms().map(batch);
            before.is_none_or(|before| before < batch(*watermark_ms))
        });
        let Some(watermark_ms) = watermark_ms else {
            return Ok(false);
        };
        if let Some(journal) = journal {
            journal.beat(stream, watermark_ms)?;
        }
        intake.heartbeat(watermark_ms);
        Ok(true)
    }
}

/// Complete batches of a stream are yet to become part of the data.
fn waits(stream: &Stream) -> bool {
    stream.is_behind.load(Relaxed) || stream.is_left.load(SeqCst)
}

fn goes_with_clock(stream: &Stream) -> bool {
    stream.definition.time == TimeSource::Arrival || stream.definition.idle_ms.is_some()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicI64;

    use jindou_stream::StreamDefinition;

    use super::*;
    use crate::{Clock, Config, TupleFormat};

    #[test]
    fn an_idle_watermark_stays_behind_the_clock() {
        let heard = Heard::new(1_000, Some(50)).expect("there is a watermark");
        let at = |now_ms| heard.watermark_at(now_ms, 200);
        assert_eq!(at(1_200), None);
        assert_eq!(at(1_201), Some(51));
        assert_eq!(at(2_200), Some(1_050));
        assert_eq!(at(500), None);
        assert_eq!(heard.watermark_at(i64::MAX, u64::MAX), None);
        assert!(Heard::new(1, None).is_none());
    }

    /// A database whose clock stands where it is set, with streams of times of arrival, each with a tuple of
    /// time 5.
    fn clocked(names: &[&str]) -> (Database, Arc<AtomicI64>) {
        let now_ms = Arc::new(AtomicI64::new(5));
        let mut config = Config::default();
        let clock = Arc::clone(&now_ms);
        config.clock = Clock::new(move || clock.load(Relaxed));
        let database = Database::with_config(config);
        for name in names {
            let mut definition = StreamDefinition::new(format!("http://e/{name}"));
            definition.time = TimeSource::Arrival;
            database.create_stream(name, definition).expect("it is new");
            let format = TupleFormat::from_media_type("text/turtle").expect("it is known");
            let text = b"<http://e/a> <http://e/b> <http://e/c> .".to_vec();
            let pushed = database.push(name, format, None, text);
            pushed.expect("it is sound");
        }
        (database, now_ms)
    }

    #[test]
    fn a_stream_whose_batches_take_long_holds_up_no_other_one() {
        let (database, now_ms) = clocked(&["long", "other", "taking"]);
        let known = |name| database.known_stream(name).expect("it is there");
        let (long, other, taking) = (known("long"), known("other"), known("taking"));
        now_ms.store(1_000, Relaxed);
        {
            // Somebody is at its batches, or puts many tuples into them.
            let closing = long.closing.lock();
            let _intake = taking.intake.lock();
            database.tick().expect("nothing fails");
            assert_eq!(other.stable_ms(), Some(1_000));
            assert_eq!((long.stable_ms(), taking.stable_ms()), (Some(0), Some(0)));
            // Who has the lock finds what was left.
            let closed = database.inner().close_groups(&long, usize::MAX, closing);
            assert!(closed.expect("nothing fails"));
        }
        assert_eq!(long.stable_ms(), Some(1_000));
        assert!(!long.is_left.load(SeqCst));
        database.tick().expect("nothing fails");
        assert_eq!(taking.stable_ms(), Some(1_000));
    }

    #[test]
    fn what_was_left_to_who_took_no_batches_is_taken_by_the_next_tick() {
        let (database, now_ms) = clocked(&["s"]);
        let stream = database.known_stream("s").expect("it is there");
        now_ms.store(1_000, Relaxed);
        {
            let _state_is_taken = stream.closing.lock();
            database.tick().expect("nothing fails");
        }
        assert_eq!(stream.stable_ms(), Some(0));
        // The clock stands still.
        database.tick().expect("nothing fails");
        assert_eq!(stream.stable_ms(), Some(1_000));
    }

    #[test]
    fn whoever_closes_goes_on_with_what_others_leave_meanwhile() {
        let (database, now_ms) = clocked(&["s"]);
        let stream = database.known_stream("s").expect("it is there");
        std::thread::scope(|scope| {
            let before = stream.closing.lock();
            let closing = scope.spawn(|| database.inner().close_batches(&stream));
            now_ms.store(1_000, Relaxed);
            database.tick().expect("nothing fails");
            drop(before);
            let closed = closing.join().expect("it does not panic");
            closed.expect("nothing fails");
        });
        assert_eq!(stream.stable_ms(), Some(1_000));
    }
}
