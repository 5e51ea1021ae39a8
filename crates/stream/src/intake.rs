//! Which tuples of a stream are complete: what comes in, and what is late?
//!
//! Tuples wait in batches of one interval of event time until the watermark, which is the time up to
//! which everything has come, has passed the end of their batch. Batches leave in the order of time,
//! so what is made of them is always a prefix of the stream.

use std::collections::BTreeMap;

/// Tuples of a stream by batches.
///
/// `B` gathers the tuples of one batch.
#[derive(Debug)]
pub struct Intake<B> {
    interval_ms: i64,
    lateness_ms: i64,
    /// By number: batch `n` has the times from `n * interval_ms` on.
    open: BTreeMap<i64, B>,
    /// Nothing earlier is waited for.
    watermark_ms: i64,
    /// All batches before this one were taken.
    first_open: Option<i64>,
    /// The first time that ever came.
    begin_ms: Option<i64>,
    late: u64,
}

/// A tuple came after its batch was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late;

impl<B: Default> Intake<B> {
    /// An intake for batches of so many milliseconds, of tuples that come up to `lateness_ms` after
    /// later ones.
    ///
    /// # Panics
    /// If the interval is zero.
    #[must_use]
    pub fn new(interval_ms: u32, lateness_ms: u64) -> Self {
        assert!(interval_ms > 0, "a batch takes some time");
        Self {
            interval_ms: i64::from(interval_ms),
            lateness_ms: i64::try_from(lateness_ms).unwrap_or(i64::MAX),
            open: BTreeMap::new(),
            watermark_ms: i64::MIN,
            first_open: None,
            begin_ms: None,
            late: 0,
        }
    }

    /// The batch that takes a tuple of this time.
    ///
    /// # Errors
    /// [`Late`], which is counted, if that was taken already.
    pub fn batch_at(&mut self, time_ms: i64) -> Result<&mut B, Late> {
        let number = time_ms.div_euclid(self.interval_ms);
        if self.first_open.is_some_and(|first| number < first) {
            self.late += 1;
            return Err(Late);
        }
        self.begin_ms = Some(self.begin_ms.map_or(time_ms, |begin| begin.min(time_ms)));
        self.heartbeat(time_ms.saturating_sub(self.lateness_ms));
        Ok(self.open.entry(number).or_default())
    }

    /// Nothing before this time will come any more.
    pub fn heartbeat(&mut self, time_ms: i64) {
        self.watermark_ms = self.watermark_ms.max(time_ms);
    }

    /// The oldest batch, if it is complete: its first millisecond and what it has.
    pub fn take_complete(&mut self) -> Option<(i64, B)> {
        let complete = self.watermark_ms.div_euclid(self.interval_ms);
        let first = self
            .open
            .first_entry()
            .filter(|batch| *batch.key() < complete);
        match first {
            Some(batch) => {
                let (number, batch) = batch.remove_entry();
                self.first_open = self.first_open.max(Some(number + 1));
                // A batch may begin before all times that a number holds.
                Some((number.saturating_mul(self.interval_ms), batch))
            }
            None => {
                let complete = self.watermark_ms().map(|_| complete);
                self.first_open = self.first_open.max(complete);
                None
            }
        }
    }

    /// Puts a batch back that [`Intake::take_complete`] gave last. What comes for it is late all the
    /// same, so that it never changes again.
    pub fn put_back(&mut self, begin_ms: i64, batch: B) {
        let number = begin_ms.div_euclid(self.interval_ms);
        self.open.insert(number, batch);
    }

    /// Nothing before this time waits any more, or will come: the end of the last batch that was taken.
    /// `None` before that.
    #[must_use]
    pub fn stable_ms(&self) -> Option<i64> {
        // The oldest one may have been put back.
        let waits = self.open.first_key_value().map(|(number, _)| *number);
        let first = self.first_open?;
        let first = waits.map_or(first, |waits| first.min(waits));
        Some(first.saturating_mul(self.interval_ms))
    }

    /// Everything before this time has come, as far as is known; `None` at the beginning.
    #[must_use]
    pub fn watermark_ms(&self) -> Option<i64> {
        (self.watermark_ms > i64::MIN).then_some(self.watermark_ms)
    }

    /// The earliest time of all tuples.
    #[must_use]
    pub fn begin_ms(&self) -> Option<i64> {
        self.begin_ms
    }

    /// How many tuples came late.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.late
    }

    /// The batches that are open, oldest first.
    pub fn open(&self) -> impl Iterator<Item = &B> {
        self.open.values()
    }

    /// What decides of tuples to come, which with the batches is all there is.
    #[must_use]
    pub fn position(&self) -> Position {
        Position {
            watermark_ms: self.watermark_ms(),
            first_open: self.first_open,
            begin_ms: self.begin_ms,
            late: self.late,
        }
    }

    /// Goes on where another intake of this stream was.
    pub fn resume(&mut self, at: Position) {
        self.watermark_ms = at.watermark_ms.unwrap_or(i64::MIN);
        // Without a watermark no batch was complete.
        self.first_open = at.first_open.filter(|_| at.watermark_ms.is_some());
        self.begin_ms = at.begin_ms;
        self.late = at.late;
    }

    /// Says that all batches before this one had been taken when what comes next came: those that are
    /// still here are taken in their turn, but what comes for them is late.
    pub fn close_before(&mut self, first_open: Option<i64>) {
        self.first_open = self.first_open.max(first_open);
    }

    /// When the batch of a time begins.
    #[must_use]
    pub fn batch_begin(&self, time_ms: i64) -> i64 {
        let number = time_ms.div_euclid(self.interval_ms);
        number.saturating_mul(self.interval_ms)
    }

    /// The beginnings of the batches that are open, from the one of one time to that of another.
    pub fn open_between(&self, first_ms: i64, last_ms: i64) -> impl Iterator<Item = i64> {
        let number = |time_ms: i64| time_ms.div_euclid(self.interval_ms);
        let (first, last) = (number(first_ms), number(last_ms));
        let open = self.open.range(first..=last.max(first));
        open.map(|(number, _)| number.saturating_mul(self.interval_ms))
    }

    /// A batch of this time, whether it was taken before or not.
    pub fn batch_again(&mut self, time_ms: i64) -> &mut B {
        let number = time_ms.div_euclid(self.interval_ms);
        self.open.entry(number).or_default()
    }
}

/// How far an intake is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// See [`Intake::watermark_ms`].
    pub watermark_ms: Option<i64>,
    /// The number of the first batch that was not taken yet.
    pub first_open: Option<i64>,
    /// See [`Intake::begin_ms`].
    pub begin_ms: Option<i64>,
    /// See [`Intake::late`].
    pub late: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(intake: &mut Intake<Vec<i64>>, time_ms: i64) -> Result<(), Late> {
        intake.batch_at(time_ms).map(|batch| batch.push(time_ms))
    }

    fn taken(intake: &mut Intake<Vec<i64>>) -> Vec<(i64, Vec<i64>)> {
        std::iter::from_fn(|| intake.take_complete()).collect()
    }

    #[test]
    fn batches_leave_in_order_once_the_watermark_has_passed_them() {
        let mut intake = Intake::new(100, 0);
        for time in [5, 99, 100, 250] {
            push(&mut intake, time).unwrap();
        }
        assert_eq!(taken(&mut intake), [(0, vec![5, 99]), (100, vec![100])]);
        assert_eq!((intake.stable_ms(), intake.late()), (Some(200), 0));
        assert_eq!(push(&mut intake, 199), Err(Late));
        push(&mut intake, 200).unwrap();
        intake.heartbeat(1000);
        assert_eq!(taken(&mut intake), [(200, vec![250, 200])]);
        assert_eq!((intake.stable_ms(), intake.late()), (Some(1000), 1));
        assert_eq!(push(&mut intake, 999), Err(Late));
    }

    #[test]
    fn tuples_may_come_as_late_as_was_said() {
        let mut intake = Intake::new(10, 25);
        for time in [30, 10, 31, 60] {
            push(&mut intake, time).unwrap();
        }
        assert_eq!(taken(&mut intake), [(10, vec![10])]);
        assert_eq!(push(&mut intake, 29), Err(Late));
        push(&mut intake, 35).unwrap();
        assert_eq!(
            (intake.begin_ms(), intake.watermark_ms()),
            (Some(10), Some(35))
        );
    }

    #[test]
    fn times_before_the_epoch_are_times() {
        let mut intake = Intake::new(10, 0);
        for time in [-25, -1, 0] {
            push(&mut intake, time).unwrap();
        }
        assert_eq!(taken(&mut intake), [(-30, vec![-25]), (-10, vec![-1])]);
        assert_eq!(intake.stable_ms(), Some(0));
    }
    #[test]
    fn batches_at_the_ends_of_time_leave_and_come_back() {
        let mut intake = Intake::new(100, 0);
        push(&mut intake, i64::MIN).unwrap();
        push(&mut intake, i64::MAX).unwrap();
        let (begin_ms, batch) = intake.take_complete().unwrap();
        assert_eq!((begin_ms, &batch), (i64::MIN, &vec![i64::MIN]));
        intake.put_back(begin_ms, batch);
        assert_eq!(taken(&mut intake), [(i64::MIN, vec![i64::MIN])]);
    }

    #[test]
    fn a_batch_that_was_put_back_takes_nothing_more() {
        let mut intake = Intake::new(10, 0);
        for time in [1, 11, 25] {
            push(&mut intake, time).unwrap();
        }
        let (begin_ms, batch) = intake.take_complete().unwrap();
        intake.put_back(begin_ms, batch);
        assert_eq!(push(&mut intake, 5), Err(Late));
        assert_eq!(intake.stable_ms(), Some(0));
        assert_eq!(taken(&mut intake), [(0, vec![1]), (10, vec![11])]);
        assert_eq!(intake.stable_ms(), Some(20));
    }

    #[test]
    fn what_came_is_late_again_where_it_was_late_before() {
        let mut before = Intake::new(10, 0);
        let mut again = Intake::new(10, 0);
        let mut taken_before = Vec::new();
        for time in [1, 12, 3, 25, 14, 26, 19, 47] {
            let first_open = before.position().first_open;
            let is_late = push(&mut before, time).is_err();
            taken_before.extend(taken(&mut before));
            again.close_before(first_open);
            assert_eq!(push(&mut again, time).is_err(), is_late, "{time}");
        }
        assert_eq!(taken(&mut again), taken_before);
        assert_eq!(again.position(), before.position());
    }
}
