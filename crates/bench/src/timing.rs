//! Several runs of one thing: which figures tell how long it takes?

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long runs of one thing took, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// How many runs, warm-ups left out.
    pub runs: u32,
    /// The shortest.
    pub min_ms: f64,
    /// The one in the middle (the mean of the two for an even number).
    pub median_ms: f64,
    /// The one that 99 of 100 do not exceed: the longest where there are fewer than 100.
    pub p99_ms: f64,
}

impl Timing {
    /// The figures of these runs.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn of(mut runs: Vec<Duration>) -> Self {
        assert!(!runs.is_empty(), "no run, no time");
        runs.sort_unstable();
        let ms = |index: usize| runs[index].as_secs_f64() * 1e3;
        let count = runs.len();
        Self {
            runs: u32::try_from(count).unwrap_or(u32::MAX),
            min_ms: ms(0),
            median_ms: (ms((count - 1) / 2) + ms(count / 2)) / 2.0,
            p99_ms: ms((count * 99).div_ceil(100) - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_sorted_runs() {
        let timing = Timing::of((1..=200).rev().map(Duration::from_millis).collect());
        assert_eq!(timing.runs, 200);
        assert_eq!(timing.min_ms, 1.0);
        assert_eq!(timing.median_ms, 100.5);
        assert_eq!(timing.p99_ms, 198.0);
        let one = Timing::of(vec![Duration::from_millis(7)]);
        assert_eq!((one.min_ms, one.median_ms, one.p99_ms), (7.0, 7.0, 7.0));
        let three = Timing::of((1..=3).map(Duration::from_millis).collect());
        assert_eq!((three.median_ms, three.p99_ms), (2.0, 3.0));
    }
}
