//! Which numbers do the new vertices of a characteristic set get?
//!
//! An *extent* is a run of numbers set aside for the vertices of one set. It is opened when a
//! transaction has vertices of the set and the extent before has no room for them; transactions that
//! follow fill it. So the vertices of a set are a few runs of numbers, however many transactions
//! brought them, and types and domains stay short lists of ranges.
//!
//! All extents are *closed* when a merge begins, whatever room is left in them: the numbers of the
//! terms that it seals are then less than any that is given later.

use rustc_hash::FxHashMap;

/// Numbers set aside at once, at most, unless one transaction has more vertices of a set.
const LARGEST: u64 = 1 << 16;

/// The numbers set aside for a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    next: u64,
    end: u64,
    /// Vertices of the set that got numbers since all extents were closed.
    given: u64,
    /// Those that got some between that and the time before.
    given_before: u64,
}

impl Extent {
    /// Leaves no room.
    pub(super) fn fill_up(&mut self) {
        self.next = self.end;
    }

    /// The same; without room if that is behind a number.
    pub(super) fn without_room_behind(mut self, number: u64) -> Self {
        if self.end > number {
            self.fill_up();
        }
        self
    }

    /// Gives numbers to `count` vertices, in runs, each with how many; `free` is the first that
    /// nothing has been set aside of.
    pub(super) fn give(&mut self, mut count: u64, free: &mut u64, run: &mut dyn FnMut(u64, u64)) {
        while count > 0 {
            if self.next == self.end {
                let size = count.max(self.given.max(self.given_before).min(LARGEST));
                (self.next, self.end) = (*free, *free + size);
                *free += size;
            }
            let fits = count.min(self.end - self.next);
            run(self.next, fits);
            self.next += fits;
            self.given += fits;
            count -= fits;
        }
    }
}

/// Extents by what tells a set from others.
pub(crate) type Extents = FxHashMap<u64, Extent>;

/// The extents into which transactions put vertices.
#[derive(Clone, Default)]
pub(crate) struct OpenExtents {
    extents: Extents,
    /// How often all were closed.
    pub(super) closings: u64,
}

impl OpenExtents {
    /// That of a set as it is now; one without room if there is none.
    pub(super) fn get(&self, set: u64) -> Extent {
        self.extents.get(&set).copied().unwrap_or_default()
    }

    /// Takes over what a transaction filled and opened.
    pub(super) fn keep(&mut self, changed: &Extents) {
        self.extents.extend(changed);
    }

    /// True if all room that is left is behind a number.
    pub(super) fn are_behind(&self, number: u64) -> bool {
        let mut extents = self.extents.values();
        extents.all(|extent| extent.next == extent.end || extent.next >= number)
    }

    /// Leaves no room in any. The next one of a set is as large as what it needed since the last
    /// time.
    pub(super) fn close(&mut self) {
        self.extents.retain(|_, extent| {
            *extent = Extent {
                given_before: extent.given,
                ..Extent::default()
            };
            extent.given_before > 0
        });
        self.closings += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_number_is_given_once_and_at_most_half_are_left_over(
            groups in proptest::collection::vec((0_u64..6, 1_u64..2000), 1..80),
        ) {
            let (mut extents, mut free) = (OpenExtents::default(), 100);
            let mut given = std::collections::BTreeMap::new();
            for (set, count) in groups {
                let mut extent = extents.get(set);
                let mut sum = 0;
                extent.give(count, &mut free, &mut |first, count| {
                    sum += count;
                    for number in first..first + count {
                        assert_eq!(given.insert(number, set), None, "given twice");
                    }
                });
                prop_assert_eq!(sum, count);
                extents.keep(&Extents::from_iter([(set, extent)]));
            }
            prop_assert!(given.keys().all(|number| (100..free).contains(number)));
            prop_assert!(free - 100 <= 2 * given.len() as u64);
            // Each set lies in as many runs as its doublings, and one for each of the largest size.
            let mut stretches = [0_u64; 6];
            let mut last = None;
            for (number, set) in &given {
                if last != Some((number - 1, *set)) {
                    stretches[*set as usize] += 1;
                }
                last = Some((*number, *set));
            }
            for (set, stretches) in stretches.into_iter().enumerate() {
                let members = given.values().filter(|of| **of == set as u64).count() as u64;
                prop_assert!(stretches <= 2 + u64::from(members.max(1).ilog2()) + members / LARGEST);
            }
        }
    }

    #[test]
    fn a_closed_extent_gives_nothing_more_and_a_large_one_follows() {
        let (mut extents, mut free) = (OpenExtents::default(), 0);
        let mut extent = extents.get(7);
        extent.give(5, &mut free, &mut |_, _| {});
        extent.give(1, &mut free, &mut |_, _| {});
        extents.keep(&Extents::from_iter([(7, extent)]));
        assert_eq!(free, 10);
        extents.close();
        let mut extent = extents.get(7);
        let mut runs = Vec::new();
        extent.give(1, &mut free, &mut |first, count| runs.push((first, count)));
        assert_eq!((runs, free), (vec![(10, 1)], 16));
        extents.keep(&Extents::from_iter([(7, extent)]));
        // A set that nothing came of since is no longer remembered.
        extents.close();
        assert_eq!(extents.extents.len(), 1);
        extents.close();
        assert_eq!(extents.extents.len(), 0);
    }
}
