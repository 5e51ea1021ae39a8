//! When is a query due, and what do its windows hold then?

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use jindou_store::window::{Bounds, RingSnapshot};
use jindou_stream::{CountWindow, SlidingWindow};

use super::continuous::{Continuous, State};
use super::result_log::{HeldTuples, ResultWindow};
use super::rings::place;
use super::stream::Stream;

impl Continuous {
    /// True if it may be due, as far as is known without its state.
    pub(super) fn seems_due(&self) -> bool {
        let Some(stable_ms) = self.stable_ms() else {
            return false;
        };
        match self.last_ms.load(Relaxed) {
            // Its first instant depends on when its streams began.
            i64::MIN => true,
            last_ms => self
                .next_after(last_ms)
                .is_some_and(|next| next <= stable_ms),
        }
    }

    /// The next instant, if all its windows are complete then.
    pub(super) fn due(&self, state: &State) -> Option<i64> {
        self.begins.get()?;
        let stable = self.stable_ms()?;
        let next = self.next_after(self.last_of(state)?)?;
        (next <= stable).then_some(next)
    }

    /// Its instants come after this time; `None` while its streams have not begun.
    pub(super) fn last_of(&self, state: &State) -> Option<i64> {
        state.last_ms.or_else(|| self.begin_ms())
    }

    /// Its first instant after a time; `None` where there is none, or it comes with tuples that are not
    /// there yet.
    fn next_after(&self, after_ms: i64) -> Option<i64> {
        if !self.schedule.follows_tuples() {
            return self.schedule.next(after_ms);
        }
        let windows = self.schedule.windows.iter().zip(&self.streams);
        let slides = windows.filter_map(|(window, stream)| {
            let interval_ms = stream.definition.interval_ms;
            let numbers = stream.numbers.lock();
            numbers.next_slide(window.count()?, interval_ms, after_ms)
        });
        slides.min()
    }

    /// The earliest time of which its next instant needs tuples of a stream; `None` before its first one,
    /// and where no more is known of it.
    pub(super) fn next_needs(&self, stream: &Stream) -> Option<i64> {
        let last_ms = Some(self.last_ms.load(Relaxed)).filter(|last| *last > i64::MIN)?;
        let windows = self.schedule.windows.iter().zip(&self.streams);
        let its = windows.filter(|(_, of)| of.number == stream.number);
        let needs = its.filter_map(|(window, _)| match window {
            SlidingWindow::Time(window) => {
                let next_ms = self.schedule.next(last_ms)?;
                Some(window.bounds(next_ms).from_ms)
            }
            SlidingWindow::Count(window) => {
                let numbers = stream.numbers.lock();
                let held = window.numbers(numbers.count_before(last_ms));
                numbers.time_of(held.start)
            }
        });
        needs.min()
    }

    /// All its streams are stable up to here; `None` before all of them have begun.
    pub(super) fn stable_ms(&self) -> Option<i64> {
        let mut stable = i64::MAX;
        for stream in &self.streams {
            stable = stable.min(stream.stable_ms()?);
        }
        Some(stable)
    }

    /// Its instants come after this time: when the first tuple of any of its streams came.
    pub(super) fn begin_ms(&self) -> Option<i64> {
        let begin = |stream: &Arc<Stream>| stream.intake.lock().begin_ms();
        self.streams.iter().filter_map(begin).min()
    }

    /// What a window holds at an instant: a stretch of the ring that it reads.
    pub(super) fn bounds(&self, window: usize, instant_ms: i64) -> Bounds {
        let begins = self.begins.get().expect("it has begun");
        match self.schedule.windows[window] {
            SlidingWindow::Time(over) => {
                let bounds = over.bounds(instant_ms);
                Bounds {
                    from_ms: bounds.from_ms.max(begins[window]),
                    ..bounds
                }
            }
            SlidingWindow::Count(of) => {
                let numbers = self.streams[window].numbers.lock();
                let held = of.numbers(numbers.count_before(instant_ms));
                let first = numbers.count_before(begins[window]) + 1;
                Bounds {
                    from_ms: place(held.start.max(first)),
                    until_ms: place(held.end),
                }
            }
        }
    }

    /// True if a window of a number of tuples holds others at an instant than at the one before.
    pub(super) fn has_slid(&self, last_ms: i64, windows: &[(RingSnapshot, Bounds)]) -> bool {
        let mut all = self.schedule.windows.iter().zip(windows).enumerate();
        all.any(|(number, (window, (_, bounds)))| {
            window.count().is_some() && self.bounds(number, last_ms) != *bounds
        })
    }

    /// What its windows hold at an instant, as results say it.
    pub(super) fn result_windows(
        &self,
        windows: &[(RingSnapshot, Bounds)],
        instant_ms: i64,
    ) -> Arc<[ResultWindow]> {
        let all = self.window_names.iter().zip(windows).enumerate();
        let all = all.map(|(number, (name, (_, bounds)))| ResultWindow {
            name: Arc::clone(name),
            held: match self.schedule.windows[number] {
                SlidingWindow::Time(_) => HeldTuples {
                    // It may have ended before there was anything for the query.
                    from_ms: bounds.from_ms.min(bounds.until_ms),
                    until_ms: bounds.until_ms,
                    numbers: None,
                },
                SlidingWindow::Count(_) => self.held_of_number(number, *bounds, instant_ms),
            },
        });
        all.collect()
    }

    /// What a window of a number of tuples holds; if nothing, up to the instant.
    fn held_of_number(&self, window: usize, bounds: Bounds, instant_ms: i64) -> HeldTuples {
        let numbers = self.streams[window].numbers.lock();
        let (first, last) = (bounds.from_ms as u64, bounds.until_ms as u64 - 1);
        match (numbers.time_of(first), numbers.time_of(last)) {
            (Some(from_ms), Some(last_ms)) if first <= last => HeldTuples {
                from_ms,
                until_ms: last_ms.saturating_add(1),
                numbers: Some((first, last)),
            },
            _ => HeldTuples {
                from_ms: instant_ms,
                until_ms: instant_ms,
                numbers: None,
            },
        }
    }

    /// The time of the tuple with which a window slides next, from what it holds on, if it is there.
    pub(super) fn slides_with(
        &self,
        window: usize,
        of: CountWindow,
        bounds: Bounds,
    ) -> Option<i64> {
        let last = bounds.until_ms as u64 - 1;
        let numbers = self.streams[window].numbers.lock();
        numbers.time_of(of.next_slide(last)?)
    }
}
