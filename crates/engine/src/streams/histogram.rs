//! How long did things take: percentiles in constant memory?

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Buckets of each doubling: a percentile is exact to a sixteenth.
const PARTS: u64 = 8;
const PART_BITS: u32 = 3;
/// Durations of 64 bits of nanoseconds.
const BUCKETS: usize = (64 - PART_BITS as usize + 1) * PARTS as usize;

/// Counts durations by their logarithm.
pub(super) struct Histogram {
    counts: Box<[AtomicU64]>,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl Histogram {
    pub(super) fn note(&self, took: Duration) {
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(nanoseconds)].fetch_add(1, Relaxed);
    }

    /// The time within which this part of all was done, or a little less; zero of none.
    pub(super) fn percentile(&self, part: f64) -> Duration {
        let counts: Vec<u64> = self
            .counts
            .iter()
            .map(|count| count.load(Relaxed))
            .collect();
        let all: u64 = counts.iter().sum();
        let rank = (all as f64 * part).ceil().max(1.0) as u64;
        let mut below = 0;
        for (bucket, count) in counts.into_iter().enumerate() {
            below += count;
            if below >= rank {
                return Duration::from_nanos(middle(bucket));
            }
        }
        Duration::ZERO
    }
}

fn bucket(nanoseconds: u64) -> usize {
    if nanoseconds < PARTS {
        return nanoseconds as usize;
    }
    let doublings = nanoseconds.ilog2() - PART_BITS;
    let part = (nanoseconds >> doublings) - PARTS;
    ((u64::from(doublings) + 1) * PARTS + part) as usize
}

/// The middle of a bucket.
fn middle(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < PARTS {
        return bucket;
    }
    let doublings = bucket / PARTS - 1;
    let first = (PARTS + bucket % PARTS) << doublings;
    first + ((1 << doublings) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_near_what_was_noted() {
        let histogram = Histogram::default();
        assert_eq!(histogram.percentile(0.5), Duration::ZERO);
        for microseconds in 1..=1000 {
            histogram.note(Duration::from_micros(microseconds));
        }
        for (part, expected) in [(0.5, 500.0), (0.99, 990.0), (1.0, 1000.0), (0.0, 1.0)] {
            let found = histogram.percentile(part).as_secs_f64() * 1e6;
            let error = (found / expected - 1.0).abs();
            assert!(error <= 1.0 / 15.0, "{part}: {found} instead of {expected}");
        }
    }

    #[test]
    fn each_duration_is_in_the_bucket_of_its_middle() {
        for nanoseconds in [0, 1, 7, 8, 9, 1000, u64::MAX / 3, u64::MAX] {
            let of = bucket(nanoseconds);
            assert!(of < BUCKETS);
            assert_eq!(bucket(middle(of)), of, "{nanoseconds}");
        }
    }
}
