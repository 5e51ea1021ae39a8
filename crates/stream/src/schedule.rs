//! When is a continuous query evaluated, and what do its windows hold then?
//!
//! A window over time slides at its own instants, the multiples of its step counted from the epoch: at
//! instant `t` it holds `[t - range, t)`, until its next one. A query is evaluated when one of its
//! windows over time slides, or at the multiples of its own period if it has one. A window of a number
//! of tuples slides with the tuples, which [`Numbers`](crate::Numbers) counts; a query that has no other
//! windows and no period is evaluated at the ends of batches with which one of them slides.

use std::ops::Range;

use jindou_store::window::Bounds;

/// A window over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeWindow {
    /// How long it is.
    pub range_ms: u64,
    /// How far it slides each time.
    pub step_ms: u64,
}

impl TimeWindow {
    /// What it holds at an instant: that of its last slide.
    #[must_use]
    pub fn bounds(self, instant_ms: i64) -> Bounds {
        let until_ms = floor(instant_ms, self.step_ms);
        Bounds {
            from_ms: until_ms.saturating_sub_unsigned(self.range_ms),
            until_ms,
        }
    }

    /// The first instant from which on it does not hold a tuple of this time any more.
    #[must_use]
    pub fn leaves_at(self, time_ms: i64) -> i64 {
        let last = time_ms.saturating_add_unsigned(self.range_ms);
        floor(last, self.step_ms).saturating_add_unsigned(self.step_ms.max(1))
    }

    /// True if it has tuples that it had one step before.
    #[must_use]
    pub fn overlaps(self) -> bool {
        self.range_ms > self.step_ms
    }
}

/// A window of a number of tuples, which are numbered from 1 in the order of their times, and in that of
/// their arrival where these are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CountWindow {
    /// How many it holds.
    pub tuples: u64,
    /// With every so manieth tuple it slides.
    pub step: u64,
}

impl CountWindow {
    /// The numbers of the tuples that it holds once all up to a number are there: the last ones at its
    /// last slide.
    #[must_use]
    pub fn numbers(self, last: u64) -> Range<u64> {
        let slid = last - last % self.step.max(1);
        slid.saturating_sub(self.tuples) + 1..slid + 1
    }

    /// The number of the first tuple after another with which it slides; `None` if it is too large.
    #[must_use]
    pub fn next_slide(self, after: u64) -> Option<u64> {
        let step = self.step.max(1);
        (after - after % step).checked_add(step)
    }
}

/// What a window holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SlidingWindow {
    /// The tuples of a stretch of time.
    Time(TimeWindow),
    /// A number of tuples.
    Count(CountWindow),
}

impl SlidingWindow {
    /// The window if it is one over time.
    #[must_use]
    pub fn time(self) -> Option<TimeWindow> {
        match self {
            Self::Time(window) => Some(window),
            Self::Count(_) => None,
        }
    }

    /// The window if it is one of a number of tuples.
    #[must_use]
    pub fn count(self) -> Option<CountWindow> {
        match self {
            Self::Time(_) => None,
            Self::Count(window) => Some(window),
        }
    }
}

/// The instants of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Its windows, by number.
    pub windows: Vec<SlidingWindow>,
    /// How often it is evaluated, where it says so.
    pub every_ms: Option<u64>,
}

impl Schedule {
    /// The first instant after a time; `None` where there is none that a number holds, or nothing
    /// slides over time.
    #[must_use]
    pub fn next(&self, after_ms: i64) -> Option<i64> {
        let next = |period: u64| floor(after_ms, period).checked_add_unsigned(period);
        match self.every_ms {
            Some(every_ms) => next(every_ms),
            None => {
                let steps = self.time_windows().map(|window| window.step_ms);
                steps.filter_map(next).min()
            }
        }
    }

    /// True if its instants come with tuples, and not with time.
    #[must_use]
    pub fn follows_tuples(&self) -> bool {
        self.every_ms.is_none() && self.has_counts() && self.time_windows().next().is_none()
    }

    /// True if one of its windows is one of a number of tuples.
    #[must_use]
    pub fn has_counts(&self) -> bool {
        self.windows.iter().any(|window| window.count().is_some())
    }

    /// Its windows over time.
    pub fn time_windows(&self) -> impl Iterator<Item = TimeWindow> {
        self.windows.iter().filter_map(|window| window.time())
    }

    /// A window that is known to be one over time.
    ///
    /// # Panics
    /// If there is none of this number, or it is another one.
    #[must_use]
    pub fn time_window(&self, number: usize) -> TimeWindow {
        let window = self.windows[number].time();
        window.expect("the window is one over time")
    }

    /// The longest time that a window over time needs tuples for, from an instant back.
    #[must_use]
    pub fn reach_ms(&self) -> u64 {
        let reach = |window: TimeWindow| window.range_ms.saturating_add(window.step_ms);
        self.time_windows().map(reach).max().unwrap_or(0)
    }
}

/// The greatest multiple of a period that is no greater than a time.
fn floor(time_ms: i64, period_ms: u64) -> i64 {
    let period = i128::from(period_ms.max(1));
    let floor = i128::from(time_ms).div_euclid(period) * period;
    i64::try_from(floor).unwrap_or(i64::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(range_ms: u64, step_ms: u64) -> TimeWindow {
        TimeWindow { range_ms, step_ms }
    }

    #[test]
    fn each_window_slides_at_its_own_instants() {
        let schedule = Schedule {
            windows: vec![
                SlidingWindow::Time(window(1000, 300)),
                SlidingWindow::Time(window(50, 200)),
            ],
            every_ms: None,
        };
        let mut instants = vec![0];
        while instants.len() < 7 {
            instants.extend(schedule.next(instants[instants.len() - 1]));
        }
        assert_eq!(instants, [0, 200, 300, 400, 600, 800, 900]);
        let bounds = schedule.time_window(0).bounds(800);
        assert_eq!((bounds.from_ms, bounds.until_ms), (-400, 600));
        assert_eq!(schedule.reach_ms(), 1300);
    }

    #[test]
    fn a_period_of_the_query_overrides_those_of_its_windows() {
        let schedule = Schedule {
            windows: vec![SlidingWindow::Time(window(1000, 100))],
            every_ms: Some(250),
        };
        assert_eq!(schedule.next(-1), Some(0));
        assert_eq!(schedule.next(0), Some(250));
        assert_eq!(schedule.time_window(0).bounds(250).until_ms, 200);
    }

    #[test]
    fn tuples_leave_when_no_slide_holds_them_any_more() {
        for (range, step) in [(10, 3), (10, 10), (3, 10), (1, 1), (7, 2)] {
            let window = window(range, step);
            for time in -25..25 {
                let has = |instant: i64| {
                    let bounds = window.bounds(instant);
                    (bounds.from_ms..bounds.until_ms).contains(&time)
                };
                let last = (-60..60).rev().find(|instant| has(*instant));
                let expected = last.map(|last| last + 1);
                if let Some(expected) = expected {
                    assert_eq!(window.leaves_at(time), expected, "{range} {step} {time}");
                }
            }
        }
        assert_eq!(window(u64::MAX, 5).leaves_at(3), i64::MAX);
    }

    #[test]
    fn a_window_of_tuples_holds_the_last_ones_of_its_last_slide() {
        for (tuples, step) in [(1, 1), (3, 1), (3, 2), (2, 3), (4, 4), (9, 5)] {
            let window = CountWindow { tuples, step };
            for last in 0..40 {
                let slid = (0..=last).rev().find(|number| number % step == 0);
                let slid = slid.expect("all begin at zero");
                let held: Vec<u64> = (1..=slid).rev().take(tuples as usize).collect();
                let numbers: Vec<u64> = window.numbers(last).rev().collect();
                assert_eq!(numbers, held, "{tuples} {step} {last}");
                let next = (last + 1..).find(|number| number % step == 0);
                assert_eq!(window.next_slide(last), next, "{step} {last}");
            }
        }
        let large = CountWindow {
            tuples: u64::MAX,
            step: u64::MAX,
        };
        assert!(large.numbers(7).is_empty());
        assert_eq!(large.next_slide(u64::MAX), None);
    }

    #[test]
    fn only_queries_without_time_follow_tuples() {
        let count = SlidingWindow::Count(CountWindow { tuples: 3, step: 1 });
        let time = SlidingWindow::Time(window(100, 100));
        let follows = |windows: &[SlidingWindow], every_ms| {
            let windows = windows.to_vec();
            let schedule = Schedule { windows, every_ms };
            assert_eq!(schedule.follows_tuples(), schedule.next(0).is_none());
            schedule.follows_tuples()
        };
        assert!(follows(&[count, count], None));
        assert!(!follows(&[count, time], None));
        assert!(!follows(&[count], Some(10)));
    }

    #[test]
    fn nothing_overflows() {
        let year = window(u64::MAX >> 1, u64::MAX >> 1);
        assert_eq!(year.bounds(i64::MIN).from_ms, i64::MIN);
        let schedule = Schedule {
            windows: vec![SlidingWindow::Time(year)],
            every_ms: None,
        };
        assert_eq!(schedule.next(i64::MAX), None);
        assert_eq!(schedule.next(0), Some(i64::MAX));
    }
}
