//! Which number has each tuple of a stream, and when did it come?
//!
//! Tuples are numbered from 1 in the order of their times, and in that of their arrival where these are
//! equal. The times of the last ones are kept, eight bytes each, so that what came before a time is a
//! search.

use std::collections::VecDeque;

use crate::schedule::CountWindow;

/// The numbers of a stream's tuples, and the times of the last ones.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    /// Tuples whose times are not kept.
    before: u64,
    /// Those of the tuples after them, in order.
    times: VecDeque<i64>,
}

impl Numbers {
    /// The number of the last tuple; 0 without any.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.before + self.times.len() as u64
    }

    /// The number of the first tuple whose time is kept, or of the next one.
    #[must_use]
    pub fn first_kept(&self) -> u64 {
        self.before + 1
    }

    /// Goes on after a number: no times are kept.
    pub fn resume(&mut self, last: u64) {
        *self = Self {
            before: last,
            times: VecDeque::new(),
        };
    }

    /// Numbers the next tuples, of which nothing is to be known; nor is anything of those before.
    pub fn skip(&mut self, tuples: u64) {
        self.resume(self.last() + tuples);
    }

    /// Numbers the next tuples.
    ///
    /// # Panics
    /// If their times are not in order.
    pub fn push(&mut self, times_ms: &[i64]) {
        let last = self.times.back().copied();
        let in_order = last.iter().chain(times_ms).is_sorted();
        assert!(in_order, "tuples are numbered in the order of their times");
        self.times.extend(times_ms);
    }

    /// The time of a tuple, if it is kept.
    #[must_use]
    pub fn time_of(&self, number: u64) -> Option<i64> {
        let place = number.checked_sub(self.first_kept())?;
        let place = usize::try_from(place).ok()?;
        self.times.get(place).copied()
    }

    /// How many tuples came before a time, which is the number of the last one that did. Those whose
    /// times are not kept count as such.
    #[must_use]
    pub fn count_before(&self, time_ms: i64) -> u64 {
        let kept = self.times.partition_point(|time| *time < time_ms);
        self.before + kept as u64
    }

    /// The end of the first batch, of those that end after a time, with which a window slides; `None` if
    /// it is not there yet.
    #[must_use]
    pub fn next_slide(&self, window: CountWindow, interval_ms: u32, after_ms: i64) -> Option<i64> {
        let interval_ms = i64::from(interval_ms);
        let batch = |time_ms: i64| time_ms.div_euclid(interval_ms);
        let passed = self.count_before(batch(after_ms).saturating_mul(interval_ms));
        let time_ms = self.time_of(window.next_slide(passed)?)?;
        let end_ms = batch(time_ms).saturating_add(1).saturating_mul(interval_ms);
        // The last batch of all does not end.
        (end_ms > after_ms).then_some(end_ms)
    }

    /// Forgets the times of tuples before a number, but for those that are as late as it: what is kept
    /// is all that came from a time on.
    pub fn forget_before(&mut self, number: u64) {
        let Some(time_ms) = self.time_of(number) else {
            return;
        };
        let gone = self.times.partition_point(|time| *time < time_ms);
        self.times.drain(..gone);
        self.before += gone as u64;
        if self.times.capacity() > 4 * self.times.len().max(1024) {
            self.times.shrink_to_fit();
        }
    }

    /// The times that are kept, from [`Numbers::first_kept`] on.
    #[must_use]
    pub fn times(&self) -> &VecDeque<i64> {
        &self.times
    }

    /// Bytes that the times take.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (self.times.len() * size_of::<i64>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tuples_are_found_by_number_and_by_time() {
        let mut numbers = Numbers::default();
        numbers.skip(4);
        numbers.push(&[10, 10, 20]);
        numbers.push(&[20, 30]);
        assert_eq!((numbers.first_kept(), numbers.last()), (5, 9));
        let times = [4, 5, 6, 7, 8, 9, 10].map(|number| numbers.time_of(number));
        let known = [10, 10, 20, 20, 30].map(Some);
        assert_eq!((times[0], times[6]), (None, None));
        assert_eq!(times[1..6], known);
        let counts = [10, 11, 20, 21, 31].map(|time| numbers.count_before(time));
        assert_eq!(counts, [4, 6, 6, 8, 9]);
        numbers.forget_before(8);
        assert_eq!((numbers.first_kept(), numbers.count_before(0)), (7, 6));
        numbers.skip(1);
        assert_eq!((numbers.first_kept(), numbers.last()), (11, 10));
    }

    #[test]
    fn batches_with_which_a_window_slides_end_one_after_the_other() {
        let times: Vec<i64> = vec![-5, 0, 3, 9, 10, 11, 12, 40, 41, 75];
        let mut numbers = Numbers::default();
        numbers.push(&times);
        for step in 1..12 {
            let window = CountWindow { tuples: 2, step };
            let slides = times.iter().enumerate();
            let slides = slides.filter(|(place, _)| (place + 1) % step as usize == 0);
            let mut ends: Vec<i64> = slides
                .map(|(_, time)| (time.div_euclid(10) + 1) * 10)
                .collect();
            ends.dedup();
            for after in -30..90 {
                let expected = ends.iter().find(|end| **end > after).copied();
                assert_eq!(numbers.next_slide(window, 10, after), expected);
            }
        }
    }

    #[test]
    fn the_ends_of_time_are_times() {
        let mut numbers = Numbers::default();
        numbers.push(&[i64::MIN, i64::MAX]);
        let window = CountWindow { tuples: 1, step: 1 };
        let first = numbers.next_slide(window, 100, i64::MIN);
        assert!(first.is_some_and(|first| first > i64::MIN));
        let last = numbers.next_slide(window, 100, 0);
        assert_eq!(last, Some(i64::MAX));
        assert_eq!(numbers.next_slide(window, 100, i64::MAX), None);
    }
}
