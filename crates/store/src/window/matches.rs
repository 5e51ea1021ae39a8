//! Which triples of a window match a pattern?

use std::ops::ControlFlow;

use jindou_model::{Direction, Pattern, PredicateId, TermId, Visit};

use super::side::{Side, Span};
use super::view::Window;
use super::walk::Walk;

impl Window {
    /// Calls `visit` with each triple that matches, until it breaks; the graph of each is `NONE`.
    /// Those of a predicate come sorted by subject and object.
    ///
    /// Costs a search in each run, or a pass over the rows of the predicate where it alone is known,
    /// or nothing is.
    pub fn for_each_match(&self, pattern: &Pattern, visit: &mut Visit<'_>) -> ControlFlow<()> {
        let mut predicates = Vec::new();
        match pattern.predicate {
            Some(predicate) => predicates.push(predicate),
            None => self.predicates(&mut predicates),
        }
        let mut scan = Scan::default();
        let mut sides = Vec::new();
        for predicate in predicates {
            let direction = match (pattern.subject, pattern.object) {
                (None, Some(_)) => Direction::In,
                _ => Direction::Out,
            };
            sides.clear();
            sides.extend(self.sides_of(predicate, direction));
            match (pattern.subject, pattern.object) {
                (None, None) => scan.all(&sides, predicate, visit)?,
                (None, Some(object)) => scan.of_key(&sides, object, &mut |subject| {
                    visit(subject, predicate, object, TermId::NONE)
                })?,
                (Some(subject), None) => scan.of_key(&sides, subject, &mut |object| {
                    visit(subject, predicate, object, TermId::NONE)
                })?,
                (Some(subject), Some(object)) => {
                    if scan.has(&sides, subject, object) {
                        visit(subject, predicate, object, TermId::NONE)?;
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// The buffers of a scan.
#[derive(Default)]
struct Scan {
    spans: Vec<Span>,
    walk: Walk,
}

impl Scan {
    fn open(&mut self, sides: &[Side<'_>], key: TermId) {
        self.spans.clear();
        for side in sides {
            side.locate(&[key], &mut self.spans);
        }
        self.walk.open(sides, self.spans.iter().copied());
    }

    fn has(&mut self, sides: &[Side<'_>], key: TermId, other: TermId) -> bool {
        self.open(sides, key);
        self.walk.find(sides, other.raw())
    }

    fn of_key(
        &mut self,
        sides: &[Side<'_>],
        key: TermId,
        visit: &mut dyn FnMut(TermId) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.open(sides, key);
        self.rest(sides, visit)
    }

    /// All neighbours inside that the walk has left.
    fn rest(
        &mut self,
        sides: &[Side<'_>],
        visit: &mut dyn FnMut(TermId) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        while let Some(step) = self.walk.next(sides) {
            if step.is_inside {
                visit(TermId::from_raw(step.other))?;
            }
        }
        ControlFlow::Continue(())
    }

    /// All edges of a predicate, whose subjects are keys of the sides: key after key.
    fn all(
        &mut self,
        sides: &[Side<'_>],
        predicate: PredicateId,
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        self.spans.clear();
        self.spans.resize(sides.len(), Span::default());
        loop {
            // Of the key before, each span has the places; the next one begins after them.
            let left = self
                .spans
                .iter()
                .zip(sides)
                .filter(|(at, side)| at.end < side.len());
            let Some(key) = left.map(|(at, side)| side.key(at.end)).min() else {
                return ControlFlow::Continue(());
            };
            for (span, side) in self.spans.iter_mut().zip(sides) {
                span.begin = span.end;
                if span.end < side.len() && side.key(span.end) == key {
                    span.end = side.end_of_key(span.begin);
                }
            }
            self.walk.open(sides, self.spans.iter().copied());
            let subject = TermId::from_raw(key);
            self.rest(sides, &mut |object| {
                visit(subject, predicate, object, TermId::NONE)
            })?;
        }
    }
}
