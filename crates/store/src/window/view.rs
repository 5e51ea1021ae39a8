//! A stretch of some streams: which runs does it have, and how much is in them?

use std::sync::Arc;

use jindou_model::{Direction, PredicateId};

use super::Bounds;
use super::ring::RingSnapshot;
use super::run::{PredicateRows, Run};
use super::side::Side;

/// The triples of some streams, each in a stretch of time of its own, as one graph.
///
/// It is a set: a triple that comes several times, or in several streams, is there once. It does not
/// change, whatever the rings do. Making one costs a few comparisons a run; a clone shares it.
///
/// ```
/// use jindou_model::{Cursor, Direction, Lists, PredicateId, TermId};
/// use jindou_store::window::{Bounds, Ring, RingOptions, Run, StreamTuple, Window};
///
/// let likes = PredicateId(7);
/// let tuple = |time_ms, subject, object| StreamTuple {
///     time_ms,
///     subject: TermId::vertex(subject),
///     predicate: likes,
///     object: TermId::vertex(object),
/// };
/// let mut ring = Ring::new(RingOptions { longest_run_ms: 60_000 });
/// ring.append(Run::from_batch(&[tuple(802, 1, 15), tuple(806, 2, 15)])?)?;
/// ring.append(Run::from_batch(&[tuple(810, 3, 15), tuple(811, 2, 15)])?)?;
///
/// let bounds = Bounds { from_ms: 806, until_ms: 811 };
/// let window = Window::new([(ring.snapshot(), bounds)]);
/// let keys = [TermId::vertex(15)];
/// let list = Lists { predicate: likes, direction: Direction::In, keys: &keys };
/// let (mut rows, mut found) = (Vec::new(), Vec::new());
/// window.expand(&[list], &mut Cursor::default(), None, 100, &mut rows, &mut found);
/// assert_eq!(found, [TermId::vertex(2), TermId::vertex(3)]);
/// # Ok::<(), jindou_store::window::WindowError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Window {
    parts: Arc<[Part]>,
}

/// A run of which at least the stretch of time meets the window.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) run: Arc<Run>,
    /// First and last time inside, in milliseconds since the run's first.
    pub(super) inside: (u64, u64),
}

/// What the planner is told of a predicate and direction of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowCounts {
    /// Triples.
    pub triples: u64,
    /// Distinct keys.
    pub keys: u64,
}

impl Window {
    /// The window of some streams, each in its bounds. Of what a ring has forgotten it has nothing.
    #[must_use]
    pub fn new(streams: impl IntoIterator<Item = (RingSnapshot, Bounds)>) -> Self {
        let streams = streams.into_iter();
        let parts = streams.flat_map(|(snapshot, bounds)| parts_of(&snapshot, bounds));
        Self {
            parts: parts.collect(),
        }
    }

    /// True if no run meets it. It may have no triple though some do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Number of runs that it reads.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.parts.len()
    }

    /// True if each run has nothing before what the one before it has.
    pub(super) fn is_ordered(&self) -> bool {
        let mut pairs = self.parts.windows(2);
        pairs.all(|pair| pair[0].run.last_ms <= pair[1].run.first_ms)
    }

    /// The runs that it reads.
    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The rows of a predicate in each run that may have some inside, from one end.
    pub(super) fn sides(&self, predicate: PredicateId, direction: Direction) -> Vec<Side<'_>> {
        self.sides_of(predicate, direction).collect()
    }

    /// As [`Window::sides`], one after the other.
    pub(super) fn sides_of(
        &self,
        predicate: PredicateId,
        direction: Direction,
    ) -> impl Iterator<Item = Side<'_>> {
        self.parts.iter().filter_map(move |part| {
            let rows = part.run.of(predicate)?;
            Side::new(&part.run, rows, direction, part.inside)
        })
    }

    /// The predicates of its triples, in order, appended to `out`, and perhaps some that runs have
    /// outside of it only.
    pub fn predicates(&self, out: &mut Vec<PredicateId>) {
        let mut predicates = Vec::new();
        for part in self.parts.iter() {
            let rows = part.run.predicates().iter();
            let inside = rows.filter(|rows| rows.share(part.inside) > 0.0);
            predicates.extend(inside.map(|rows| rows.predicate));
        }
        predicates.sort_unstable();
        predicates.dedup();
        out.append(&mut predicates);
    }

    /// Number of triples of a predicate; `None` where several runs have some, which may be the same,
    /// or a bound of the window cuts them.
    #[must_use]
    pub fn edges(&self, predicate: PredicateId) -> Option<u64> {
        let mut edges = 0;
        let mut runs = 0;
        for (rows, inside) in self.rows_of(predicate) {
            if rows.share(inside) < 1.0 {
                return None;
            }
            edges = u64::from(rows.triples);
            runs += 1;
        }
        (runs <= 1).then_some(edges)
    }

    /// Triples and distinct keys: exact where [`Window::edges`] is known, otherwise estimates that
    /// take the times of each run for evenly spread, its triples for others than those of the next,
    /// and keys for as frequent as in the largest.
    #[must_use]
    pub fn counts(&self, predicate: PredicateId, direction: Direction) -> WindowCounts {
        let mut all = WindowCounts::default();
        let mut largest = WindowCounts::default();
        for (rows, inside) in self.rows_of(predicate) {
            let share = rows.share(inside);
            let part = |count: u32| (f64::from(count) * share).ceil() as u64;
            let own = WindowCounts {
                triples: part(rows.triples),
                keys: part(rows.keys(direction)),
            };
            all.triples += own.triples;
            all.keys += own.keys;
            if own.triples > largest.triples {
                largest = own;
            }
        }
        if largest.triples == 0 {
            return all;
        }
        let as_frequent = all.triples as f64 * largest.keys as f64 / largest.triples as f64;
        all.keys = (as_frequent.ceil() as u64).clamp(largest.keys, all.keys);
        all
    }

    /// Tuples of all predicates: an estimate, which counts those that come again each time.
    #[must_use]
    pub fn tuples(&self) -> u64 {
        let of_part = |part: &Part| {
            let share = share((0, part.run.span_ms()), part.inside);
            (part.run.len() as f64 * share).ceil() as u64
        };
        self.parts.iter().map(of_part).sum()
    }

    /// The rows of a predicate in each run that may have some inside, and the times inside.
    fn rows_of(
        &self,
        predicate: PredicateId,
    ) -> impl Iterator<Item = (&PredicateRows, (u64, u64))> {
        let parts = self.parts.iter();
        let rows = parts.filter_map(move |part| Some((part.run.of(predicate)?, part.inside)));
        rows.filter(|(rows, inside)| rows.share(*inside) > 0.0)
    }
}

impl PredicateRows {
    /// The part of the time of its rows that is inside: all of it is 1.
    fn share(&self, inside: (u64, u64)) -> f64 {
        share((self.times.base, self.last_time), inside)
    }
}

/// The part of a stretch of time, first and last millisecond, that lies inside another one.
fn share(times: (u64, u64), inside: (u64, u64)) -> f64 {
    let (first, last) = (times.0.max(inside.0), times.1.min(inside.1));
    match (first, last) {
        (first, last) if first > last => 0.0,
        both if both == times => 1.0,
        // Never quite 1, whatever is rounded.
        (first, last) => {
            let share = ((last - first) as f64 + 1.0) / ((times.1 - times.0) as f64 + 1.0);
            share.min(1.0 - f64::EPSILON)
        }
    }
}

fn parts_of(snapshot: &RingSnapshot, bounds: Bounds) -> Vec<Part> {
    let from_ms = bounds.from_ms.max(snapshot.kept_from_ms());
    if from_ms >= bounds.until_ms {
        return Vec::new();
    }
    // Greater than another number, so this is not the smallest.
    let last_ms = bounds.until_ms - 1;
    let runs = snapshot.runs();
    let begin = runs.partition_point(|run| run.last_ms < from_ms);
    let inside = runs[begin..]
        .iter()
        .take_while(|run| run.first_ms <= last_ms);
    let part = |run: &Arc<Run>| {
        let since_first = |time_ms: i64| time_ms.wrapping_sub(run.first_ms) as u64;
        Part {
            run: Arc::clone(run),
            inside: (
                since_first(from_ms.max(run.first_ms)),
                since_first(last_ms.min(run.last_ms)),
            ),
        }
    };
    inside.map(part).collect()
}
