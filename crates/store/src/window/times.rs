//! When did a triple of a window come last?

use jindou_model::{Direction, PredicateId, TermId};

use super::side::Side;
use super::view::{Part, Window};

impl Window {
    /// The latest time of a triple inside the window, in milliseconds; `None` if it has no such
    /// triple.
    ///
    /// Costs three searches in each run, from the newest to the one that has it. A window of several
    /// streams, whose runs are not in the order of time, costs them in all.
    #[must_use]
    pub fn time_of(&self, subject: TermId, predicate: PredicateId, object: TermId) -> Option<i64> {
        let parts = self.parts().iter().rev();
        let mut times = parts.filter_map(|part| time_in(part, subject, predicate, object));
        match self.is_ordered() {
            true => times.next(),
            false => times.max(),
        }
    }
}

fn time_in(part: &Part, subject: TermId, predicate: PredicateId, object: TermId) -> Option<i64> {
    let rows = part.run.of(predicate)?;
    let side = Side::new(&part.run, rows, Direction::Out, part.inside)?;
    let of_subject = side.find(subject);
    let begin = side.seek_other(of_subject.places(), object.raw());
    // No id is the greatest number.
    let end = side.seek_other(begin..of_subject.end, object.raw().saturating_add(1));
    // Places of this direction are rows, and those of a triple are sorted by time.
    let times = rows.times.narrow(part.run.region(), rows.len());
    let time = |row: usize| match times.is_empty() {
        true => rows.times.base,
        false => rows.times.base + times.get(row),
    };
    let last = (begin..end).rev().find(|row| side.is_inside(*row))?;
    Some(part.run.first_ms.wrapping_add_unsigned(time(last)))
}
