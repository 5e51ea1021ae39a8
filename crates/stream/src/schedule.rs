//! When is a continuous query evaluated, and what do its windows hold then?
//!
//! A window over time slides at its own instants, the multiples of its step counted from the epoch: at
//! instant `t` it holds `[t - range, t)`, until its next one. A query is evaluated when one of its
//! windows slides, or at the multiples of its own period if it has one.

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

/// The instants of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Its windows, by number.
    pub windows: Vec<TimeWindow>,
    /// How often it is evaluated, where it says so.
    pub every_ms: Option<u64>,
}

impl Schedule {
    /// The first instant after a time; `None` where there is none that a number holds, or nothing
    /// slides.
    #[must_use]
    pub fn next(&self, after_ms: i64) -> Option<i64> {
        let next = |period: u64| floor(after_ms, period).checked_add_unsigned(period);
        match self.every_ms {
            Some(every_ms) => next(every_ms),
            None => {
                let steps = self.windows.iter().map(|window| window.step_ms);
                steps.filter_map(next).min()
            }
        }
    }

    /// The longest time that a window needs tuples for, from an instant back.
    #[must_use]
    pub fn reach_ms(&self) -> u64 {
        let reach = |window: &TimeWindow| window.range_ms.saturating_add(window.step_ms);
        self.windows.iter().map(reach).max().unwrap_or(0)
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
            windows: vec![window(1000, 300), window(50, 200)],
            every_ms: None,
        };
        let mut instants = vec![0];
        while instants.len() < 7 {
            instants.extend(schedule.next(instants[instants.len() - 1]));
        }
        assert_eq!(instants, [0, 200, 300, 400, 600, 800, 900]);
        let bounds = schedule.windows[0].bounds(800);
        assert_eq!((bounds.from_ms, bounds.until_ms), (-400, 600));
        assert_eq!(schedule.reach_ms(), 1300);
    }

    #[test]
    fn a_period_of_the_query_overrides_those_of_its_windows() {
        let schedule = Schedule {
            windows: vec![window(1000, 100)],
            every_ms: Some(250),
        };
        assert_eq!(schedule.next(-1), Some(0));
        assert_eq!(schedule.next(0), Some(250));
        assert_eq!(schedule.windows[0].bounds(250).until_ms, 200);
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
    fn nothing_overflows() {
        let year = window(u64::MAX >> 1, u64::MAX >> 1);
        assert_eq!(year.bounds(i64::MIN).from_ms, i64::MIN);
        let schedule = Schedule {
            windows: vec![year],
            every_ms: None,
        };
        assert_eq!(schedule.next(i64::MAX), None);
        assert_eq!(schedule.next(0), Some(i64::MAX));
    }
}
