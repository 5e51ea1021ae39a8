//! Which ids of a window have these types and predicates?

use jindou_model::{Direction, IdRanges, Lists, Membership, Precision, PredicateId, TermId};

use super::side::Side;
use super::view::Window;
use super::walk::Walk;

/// Rows of a predicate up to which its keys are listed where that is not asked for.
const CHEAP_ROWS: usize = 1 << 12;

impl Window {
    /// The ids that have all of `memberships` in the window, literals included where these allow
    /// them, and lie in `within`, where that is given; all ids where nothing is asked of them. `None`
    /// if that is not a short list and no exact one is asked for.
    ///
    /// Types are always honoured. Costs the neighbours of each type and the rows of each predicate;
    /// of predicates that have many, only where [`Precision::Exact`] is asked.
    #[must_use]
    pub fn members(
        &self,
        memberships: &[Membership],
        precision: Precision,
        within: Option<&IdRanges>,
    ) -> Option<IdRanges> {
        let mut all: Option<IdRanges> = None;
        for membership in memberships {
            let found = match *membership {
                Membership::Type(class) => Some(self.of_type(class)),
                Membership::Has(predicate, direction) => {
                    self.keys(predicate, direction, precision, within)
                }
            };
            all = match (all, found) {
                (Some(all), Some(found)) => Some(all.intersect(&found)),
                (all, found) => all.or(found),
            };
        }
        if all.is_none() && precision.is_exact() {
            all = Some(IdRanges::all());
        }
        match within {
            Some(within) => all.map(|all| all.within(within)),
            None => all,
        }
    }

    /// The subjects of `rdf:type` edges to a class.
    fn of_type(&self, class: TermId) -> IdRanges {
        let list = Lists {
            predicate: PredicateId::TYPE,
            direction: Direction::In,
            keys: &[class],
        };
        let sides = self.sides(list.predicate, list.direction);
        let mut spans = Vec::with_capacity(sides.len());
        for side in &sides {
            side.locate(list.keys, &mut spans);
        }
        let mut walk = Walk::default();
        walk.open(&sides, spans.into_iter());
        let mut ids = Vec::with_capacity(walk.places());
        while let Some(step) = walk.next(&sides) {
            if step.is_inside {
                ids.push(step.other);
            }
        }
        from_sorted(ids)
    }

    /// The keys of a predicate, of those in `within` at least; `None` where that is not cheap and no
    /// exact list is asked for.
    fn keys(
        &self,
        predicate: PredicateId,
        direction: Direction,
        precision: Precision,
        within: Option<&IdRanges>,
    ) -> Option<IdRanges> {
        let sides = self.sides(predicate, direction);
        let rows: usize = sides.iter().map(Side::len).sum();
        if !precision.is_exact() && rows > CHEAP_ROWS {
            return None;
        }
        let mut ids = Vec::new();
        for side in &sides {
            match within {
                None => push_keys(side, 0, u64::MAX, &mut ids),
                Some(within) => {
                    for (first, end) in within.ranges() {
                        push_keys(side, *first, *end, &mut ids);
                    }
                }
            }
        }
        // Sorted pieces, which this kind of sort finds.
        ids.sort();
        ids.dedup();
        Some(from_sorted(ids))
    }
}

fn from_sorted(ids: Vec<u64>) -> IdRanges {
    let mut ranges = IdRanges::new();
    ranges.extend_sorted(ids.into_iter());
    ranges
}

/// Appends the keys from `first` on and before `end` that have a row inside.
fn push_keys(side: &Side<'_>, first: u64, end: u64, ids: &mut Vec<u64>) {
    let mut place = side.seek_key(0, first);
    while place < side.len() {
        let key = side.key(place);
        if key >= end {
            return;
        }
        let next = side.end_of_key(place);
        if side.any_inside(place..next) {
            ids.push(key);
        }
        place = next;
    }
}
