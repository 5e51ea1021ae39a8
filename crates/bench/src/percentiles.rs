//! How are many times spread: which percentiles tell it, in data and in plots?

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long many things of one kind took, in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// How many there were.
    pub count: u64,
    /// The time within which half of them were done,
    pub median_us: f64,
    /// and 99 of 100.
    pub p99_us: f64,
    /// The longest.
    pub max_us: f64,
    /// The distribution: (percent of all, the time within which these were done).
    pub cdf: Vec<(f64, f64)>,
}

/// The percents of a distribution.
fn percents() -> impl Iterator<Item = f64> {
    let whole = (0..=49).map(|half| f64::from(half) * 2.0);
    whole.chain([99.0, 99.5, 99.9, 100.0])
}

impl Percentiles {
    /// Those of some times; `None` of none.
    #[must_use]
    pub fn of(mut times: Vec<Duration>) -> Option<Self> {
        times.sort_unstable();
        let last = times.len().checked_sub(1)?;
        let at = |percent: f64| {
            let rank = (times.len() as f64 * percent / 100.0).ceil() as usize;
            times[rank.saturating_sub(1).min(last)].as_secs_f64() * 1e6
        };
        Some(Self {
            count: times.len() as u64,
            median_us: at(50.0),
            p99_us: at(99.0),
            max_us: at(100.0),
            cdf: percents().map(|percent| (percent, at(percent))).collect(),
        })
    }

    /// The points of the distribution for a plot: (time, percent).
    #[must_use]
    pub fn points(&self) -> Vec<(f64, f64)> {
        self.cdf
            .iter()
            .map(|&(percent, us)| (us, percent))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_ranks_of_the_sorted_times() {
        let all = (1..=1000).rev().map(Duration::from_micros).collect();
        let found = Percentiles::of(all).unwrap();
        assert_eq!((found.count, found.median_us), (1000, 500.0));
        assert_eq!((found.p99_us, found.max_us), (990.0, 1000.0));
        let points = found.points();
        assert_eq!(
            (points[0], *points.last().unwrap()),
            ((1.0, 0.0), (1000.0, 100.0))
        );
        assert!(
            points
                .windows(2)
                .all(|two| two[0].0 <= two[1].0 && two[0].1 < two[1].1)
        );
        assert_eq!(Percentiles::of(Vec::new()), None);
    }
}
