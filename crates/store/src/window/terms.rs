//! Which ids does a run use, and which tuples does it have?

use jindou_model::{Narrow, TermId, with_narrow};

use super::StreamTuple;
use super::pack::Slot;
use super::ring::RingSnapshot;
use super::run::Run;

impl Run {
    /// Calls `visit` with the subject and the object of each tuple: what must not be forgotten while
    /// the run lives. In no order, and some repeatedly. Costs one pass over two columns.
    pub fn for_each_term(&self, visit: &mut dyn FnMut(TermId)) {
        for rows in self.predicates() {
            for slot in [rows.subjects, rows.objects] {
                let items = slot.narrow(self.region(), rows.len());
                visit_column(slot.base, items, visit);
            }
        }
    }

    /// Calls `visit` with each tuple, predicate by predicate.
    pub fn for_each_tuple(&self, visit: &mut dyn FnMut(StreamTuple)) {
        for rows in self.predicates() {
            let column = |slot: Slot| (slot.base, slot.narrow(self.region(), rows.len()));
            let [subjects, objects, times] = [rows.subjects, rows.objects, rows.times].map(column);
            let id =
                |(base, items): (u64, Narrow<'_>), row| TermId::from_raw(base + items.get(row));
            for row in 0..rows.len() {
                let (base, items) = times;
                let after = base + if items.is_empty() { 0 } else { items.get(row) };
                visit(StreamTuple {
                    time_ms: self.first_ms.wrapping_add_unsigned(after),
                    subject: id(subjects, row),
                    predicate: rows.predicate,
                    object: id(objects, row),
                });
            }
        }
    }
}

impl RingSnapshot {
    /// Calls `visit` with the terms of all runs, as [`Run::for_each_term`] does: of forgotten tuples,
    /// too, as long as a run holds them.
    pub fn for_each_term(&self, visit: &mut dyn FnMut(TermId)) {
        for run in self.runs() {
            run.for_each_term(visit);
        }
    }
}

/// Visits the ids of a column, each stretch of the same once: subjects are sorted.
fn visit_column(base: u64, items: Narrow<'_>, visit: &mut dyn FnMut(TermId)) {
    with_narrow!(items, items => {
        for same in items.chunk_by(|one, next| one == next) {
            visit(TermId::from_raw(base + u64::from(same[0])));
        }
    });
}
