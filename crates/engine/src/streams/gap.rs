//! Is there anything to be found at an instant, and if not, when does the next tuple come?
//!
//! An instant is *idle* if all windows over time are empty, and all windows of a number of tuples hold
//! what they held at the instant before.
//!
//! Both depend on the tuples alone, not on how these lie in runs or on how they came, so that the
//! instants at which a query gives results are always the same.

use std::ops::ControlFlow;

use jindou_model::Pattern;
use jindou_store::window::{Bounds, RingSnapshot, Window};
use jindou_stream::SlidingWindow;

use super::continuous::Continuous;

/// True if an instant, with what the windows hold then, is idle; the instants before it are up to a time.
pub(super) fn is_idle(
    query: &Continuous,
    last_ms: Option<i64>,
    windows: &[(RingSnapshot, Bounds)],
) -> bool {
    let has_slid = |last_ms| query.has_slid(last_ms, windows);
    is_idle_over_time(query, windows) && !last_ms.is_some_and(has_slid)
}

/// True if all windows over time are empty.
pub(super) fn is_idle_over_time(query: &Continuous, windows: &[(RingSnapshot, Bounds)]) -> bool {
    let mut all = query.schedule.windows.iter().zip(windows);
    all.all(|(window, held)| window.time().is_none() || is_empty(held))
}

/// True if a window over time has no tuple.
fn is_empty((snapshot, bounds): &(RingSnapshot, Bounds)) -> bool {
    let from_ms = bounds.from_ms.max(snapshot.kept_from_ms());
    let mut times = snapshot.runs().iter().filter_map(|run| run.times_ms());
    let touches =
        |(first_ms, last_ms): &(i64, i64)| *last_ms >= from_ms && *first_ms < bounds.until_ms;
    if !times.any(|times| touches(&times)) {
        return true;
    }
    let mut times = snapshot.runs().iter().filter_map(|run| run.times_ms());
    if times.any(|(first_ms, last_ms)| first_ms >= from_ms && last_ms < bounds.until_ms) {
        return false;
    }
    // Some of a run is outside, perhaps all of it.
    let window = Window::new([(snapshot.clone(), *bounds)]);
    let found = window.for_each_match(&Pattern::ALL, &mut |_, _, _, _| ControlFlow::Break(()));
    found.is_continue()
}

/// The time of the first tuple that comes after windows over time, or with which another one slides; or a
/// time before it, up to which all instants are idle.
pub(super) fn end_of_gap(query: &Continuous, windows: &[(RingSnapshot, Bounds)]) -> i64 {
    let first = |(snapshot, bounds): &(RingSnapshot, Bounds)| {
        let mut times = snapshot.runs().iter().filter_map(|run| run.times_ms());
        let next = times.find(|(_, last_ms)| *last_ms >= bounds.until_ms);
        next.map(|(first_ms, _)| first_ms.max(bounds.until_ms))
    };
    let all = query.schedule.windows.iter().zip(windows).enumerate();
    let next = all.filter_map(|(number, (window, held))| match window {
        SlidingWindow::Time(_) => first(held),
        SlidingWindow::Count(of) => query.slides_with(number, *of, held.1),
    });
    let stable_ms = query.stable_ms().unwrap_or(i64::MIN);
    let next = next.min();
    next.map_or(stable_ms, |next| next.min(stable_ms))
}
