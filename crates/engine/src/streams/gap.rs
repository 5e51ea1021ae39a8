//! Has any window something at an instant, and if none has, when does the next tuple come?
//!
//! Both depend on the tuples alone, not on how these lie in runs or on how they came, so that the
//! instants at which a query gives results are always the same.

use std::ops::ControlFlow;

use jindou_model::Pattern;
use jindou_store::window::{Bounds, RingSnapshot, Window};

use super::continuous::Continuous;

/// True if a window has no tuple.
pub(super) fn is_empty((snapshot, bounds): &(RingSnapshot, Bounds)) -> bool {
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
    let all = Pattern {
        subject: None,
        predicate: None,
        object: None,
    };
    let found = window.for_each_match(&all, &mut |_, _, _, _| ControlFlow::Break(()));
    found.is_continue()
}

/// The time of the first tuple that comes after some windows, or a time before it at which they are
/// empty still.
pub(super) fn end_of_gap(query: &Continuous, windows: &[(RingSnapshot, Bounds)]) -> i64 {
    let first = |(snapshot, bounds): &(RingSnapshot, Bounds)| {
        let mut times = snapshot.runs().iter().filter_map(|run| run.times_ms());
        let next = times.find(|(_, last_ms)| *last_ms >= bounds.until_ms);
        next.map(|(first_ms, _)| first_ms.max(bounds.until_ms))
    };
    let stable_ms = query.stable_ms().unwrap_or(i64::MIN);
    let next = windows.iter().filter_map(first).min();
    next.map_or(stable_ms, |next| next.min(stable_ms))
}
