//! How do streams go on while nothing comes: those with times of arrival, and those that may be idle?
//!
//! The time of arrival is that of the clock, so a batch is complete when the clock has passed its end. A
//! stream with times of events waits for later ones, unless its definition has `idle_ms`: when its last
//! tuple or heartbeat is longer ago than that, its watermark goes on with the clock, and stays so long
//! behind. With the watermark `w` at the clock's time `c` of the last tuple or heartbeat, it is at the
//! clock's time `t` at least `w + (t - c) - idle_ms`.

use std::sync::Arc;
use std::time::Duration;

use jindou_stream::TimeSource;

use super::stream::Stream;
use crate::{Database, EngineError};

/// Between two attempts to make part of the data what could not be.
const AGAIN: Duration = Duration::from_secs(1);
/// No stream is looked at more often.
const LEAST_INTERVAL_MS: u32 = 10;

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
        let may_fail = self.inner().directory.is_some();
        let (streams, others): (Vec<Arc<Stream>>, Vec<Arc<Stream>>) = {
            let names = self.inner().streams.names.read();
            let all = names.streams.values().cloned();
            all.partition(|stream| goes_with_clock(stream))
        };
        let mut failed = None;
        let clocked = streams.iter().map(|stream| self.inner().tick(stream));
        let caught_up = others.iter().map(|stream| self.inner().catch_up(stream));
        for error in clocked.chain(caught_up).filter_map(Result::err) {
            failed.get_or_insert(error);
        }
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
    fn tick(self: &Arc<Self>, stream: &Stream) -> Result<(), EngineError> {
        self.catch_up(stream)?;
        let now_ms = self.config.clock.now_ms();
        {
            let journal = self.journal_of(stream);
            let _cut = journal.map(|_| self.streams.cut.read());
            let mut intake = stream.intake.lock();
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
                return Ok(());
            };
            if let Some(journal) = journal {
                journal.beat(stream, watermark_ms)?;
            }
            intake.heartbeat(watermark_ms);
        }
        self.close_batches(stream)?;
        self.wake_readers(stream);
        self.limit_journal();
        Ok(())
    }
}

fn goes_with_clock(stream: &Stream) -> bool {
    stream.definition.time == TimeSource::Arrival || stream.definition.idle_ms.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
