//! Which tuples are pushed?

use jindou_datagen::lsbench::{Load, Lsbench, Pace, Rates, Stream};

use super::Options;
use crate::BenchError;

/// Milliseconds of a batch of the streams.
pub(super) const BATCH_MS: u64 = 100;

/// Lines of one stream that are pushed together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) lines: String,
    pub(super) tuples: u64,
}

/// A stream in memory.
#[derive(Debug)]
pub(super) struct Feed {
    pub(super) stream: Stream,
    /// One for each [`Options::push_ms`] from 0 on.
    pub(super) batches: Vec<Batch>,
}

/// All streams at the rates of the paper, as many pushes of each.
///
/// # Errors
/// [`BenchError::Datagen`].
pub(super) fn generate(options: &Options) -> Result<Vec<Feed>, BenchError> {
    let load = Load {
        rates: Rates::PAPER,
        pace: Pace::Even,
        duration_ms: options.stream_seconds * 1_000,
    };
    let count = load.duration_ms.div_ceil(options.push_ms) as usize;
    let mut feeds: Vec<Feed> = Stream::ALL
        .into_iter()
        .map(|stream| Feed {
            stream,
            batches: std::iter::repeat_with(Batch::default).take(count).collect(),
        })
        .collect();
    let mut events = Lsbench::new(options.users, 0).streams(&load, &Stream::ALL)?;
    while let Some(event) = events.next_event() {
        let batch = (event.time_ms / options.push_ms) as usize;
        let batch = &mut feeds[event.stream as usize].batches[batch];
        event.push_lines(&mut batch.lines);
        batch.tuples += event.tuples().len() as u64;
    }
    Ok(feeds)
}

/// Which streams each thread owns: the one with the most tuples first, and each by the thread that has
/// the fewest so far.
pub(super) fn shared_out(feeds: &[Feed], threads: usize) -> Vec<Vec<&Feed>> {
    let tuples = |feed: &Feed| feed.batches.iter().map(|batch| batch.tuples).sum::<u64>();
    let mut left: Vec<(u64, &Feed)> = feeds.iter().map(|feed| (tuples(feed), feed)).collect();
    left.sort_by_key(|(tuples, _)| std::cmp::Reverse(*tuples));
    let mut parts: Vec<(u64, Vec<&Feed>)> = vec![(0, Vec::new()); threads.clamp(1, feeds.len())];
    for (tuples, feed) in left {
        let least = parts.iter_mut().min_by_key(|(sum, _)| *sum);
        let (sum, own) = least.expect("there is a thread");
        *sum += tuples;
        own.push(feed);
    }
    parts.into_iter().map(|(_, own)| own).collect()
}
