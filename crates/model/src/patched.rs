//! Neighbours of a vertex whose edges have changed since the bulk load: which are they now?

use crate::{IdRanges, Narrow, SortedSet, TermId};

/// A (key, neighbour) edge as raw ids.
pub type Edge = (u64, u64);

/// The edges of one key in a set of edges.
#[derive(Clone, Copy, Debug)]
pub enum EdgeRun<'a> {
    /// They lie together.
    Slice(&'a [Edge]),
    /// They lie in several chunks: those with the numbers from the first to the last.
    Chunks(&'a SortedSet<Edge>, u32, u32),
}

impl<'a> EdgeRun<'a> {
    /// No edge.
    pub const NONE: EdgeRun<'static> = EdgeRun::Slice(&[]);

    /// The edges of `key`.
    #[must_use]
    pub fn of(set: &'a SortedSet<Edge>, key: u64) -> Self {
        if set.is_empty() {
            return Self::NONE;
        }
        let begin = set.rank_by(|edge| edge.0 < key);
        if begin == set.len() {
            return Self::NONE;
        }
        let slice = set.slice_from(begin);
        let count = slice.partition_point(|edge| edge.0 == key);
        if count < slice.len() || begin + count == set.len() {
            return Self::Slice(&slice[..count]);
        }
        let end = set.rank_by(|edge| edge.0 <= key);
        if end == begin + count {
            return Self::Slice(&slice[..count]);
        }
        let place = |index: usize| u32::try_from(index).expect("a delta has under 2^32 edges");
        Self::Chunks(set, place(begin), place(end))
    }

    /// How many.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        match self {
            Self::Slice(edges) => edges.len(),
            Self::Chunks(_, begin, end) => (end - begin) as usize,
        }
    }

    /// True of none.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn get(self, index: usize) -> u64 {
        match self {
            Self::Slice(edges) => edges[index].1,
            Self::Chunks(set, begin, _) => set.get(begin as usize + index).1,
        }
    }

    /// Number of neighbours below `value`.
    fn rank(self, value: u64) -> usize {
        match self {
            Self::Slice(edges) => edges.partition_point(|edge| edge.1 < value),
            Self::Chunks(set, begin, end) => {
                let key = set.get(begin as usize).0;
                let rank = set.rank((key, value));
                rank.clamp(begin as usize, end as usize) - begin as usize
            }
        }
    }

    fn contains(self, value: u64) -> bool {
        match self {
            Self::Slice(edges) => edges.binary_search_by_key(&value, |edge| edge.1).is_ok(),
            Self::Chunks(set, begin, _) => set.contains((set.get(begin as usize).0, value)),
        }
    }

    /// The neighbours from the `from`-th on, in slices of edges.
    fn slices(self, from: usize) -> impl Iterator<Item = &'a [Edge]> {
        let (slice, chunks) = match self {
            Self::Slice(edges) => (Some(&edges[from.min(edges.len())..]), None),
            Self::Chunks(set, begin, end) => {
                let begin = (begin as usize + from).min(end as usize);
                (None, Some(set.slices(begin..end as usize)))
            }
        };
        slice.into_iter().chain(chunks.into_iter().flatten())
    }
}

/// Neighbours as the bulk load left them.
#[derive(Clone, Copy, Debug)]
pub enum Unchanged<'a> {
    /// A run of a segment's column: what is added to each number, and the numbers.
    Run(u64, Narrow<'a>),
    /// The vertices of a type.
    Ranges(&'a IdRanges),
}

impl Unchanged<'_> {
    fn len(self) -> usize {
        match self {
            Self::Run(_, items) => items.len(),
            Self::Ranges(ranges) => ranges.len() as usize,
        }
    }

    fn get(self, index: usize) -> u64 {
        match self {
            Self::Run(base, items) => base.wrapping_add(items.get(index)),
            Self::Ranges(ranges) => ranges.get(index as u64).raw(),
        }
    }

    fn rank(self, value: u64) -> usize {
        match self {
            Self::Run(base, items) => match value.checked_sub(base) {
                Some(value) => items.seek(0, value),
                None => 0,
            },
            Self::Ranges(ranges) => ranges.rank(TermId::from_raw(value)) as usize,
        }
    }
}

/// The neighbours that a bulk load left, less those removed, and those added since: sorted and
/// distinct. `removed` is among the former, `added` is not.
#[derive(Clone, Copy, Debug)]
pub struct Patched<'a> {
    /// What the bulk load left.
    pub base: Unchanged<'a>,
    /// Not in `base`.
    pub added: EdgeRun<'a>,
    /// In `base`.
    pub removed: EdgeRun<'a>,
}

impl<'a> Patched<'a> {
    /// How many neighbours.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        self.base.len() + self.added.len() - self.removed.len()
    }

    /// True of none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// True if `value` is a neighbour.
    #[must_use]
    pub fn contains(self, value: TermId) -> bool {
        let raw = value.raw();
        if self.added.contains(raw) {
            return true;
        }
        let index = self.base.rank(raw);
        index < self.base.len() && self.base.get(index) == raw && !self.removed.contains(raw)
    }

    /// Number of neighbours below `value`.
    #[must_use]
    pub fn rank(self, value: TermId) -> usize {
        let raw = value.raw();
        self.base.rank(raw) + self.added.rank(raw) - self.removed.rank(raw)
    }

    /// How many of the first `index` neighbours, and of the places in `base` and in `removed`
    /// before them, come from each: `(base, added, removed)`.
    fn split(self, index: usize) -> (usize, usize, usize) {
        // An added edge stands behind those added before it and what is left of the base there.
        let place = |number: usize| {
            let value = self.added.get(number);
            number + self.base.rank(value) - self.removed.rank(value)
        };
        let added = partition(self.added.len(), |number| place(number) < index);
        let kept = index - added;
        let gone = |number: usize| self.base.rank(self.removed.get(number)) - number;
        let removed = partition(self.removed.len(), |number| gone(number) < kept);
        (kept + removed, added, removed)
    }

    /// The neighbour at `index`.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn get(self, index: usize) -> TermId {
        let mut found = None;
        self.walk(index, 1, &mut |raw| found = Some(raw));
        TermId::from_raw(found.expect("the index is below the number of neighbours"))
    }

    /// Appends neighbours to `out`, from the `from`-th on and `count` at most.
    pub fn copy(self, from: usize, count: usize, out: &mut Vec<TermId>) {
        self.walk(from, count, &mut |raw| out.push(TermId::from_raw(raw)));
    }

    fn walk(self, from: usize, count: usize, visit: &mut impl FnMut(u64)) {
        let mut left = count.min(self.len().saturating_sub(from));
        if left == 0 {
            return;
        }
        let (mut base, added, removed) = self.split(from);
        let base_len = self.base.len();
        let mut removed = self.removed.slices(removed).flatten().map(|edge| edge.1);
        let mut added = self.added.slices(added).flatten().map(|edge| edge.1);
        let mut next_removed = removed.next();
        let mut next_added = added.next();
        while left > 0 {
            if base < base_len {
                let value = self.base.get(base);
                if next_removed == Some(value) {
                    next_removed = removed.next();
                    base += 1;
                    continue;
                }
                if next_added.is_none_or(|added| value < added) {
                    visit(value);
                    base += 1;
                    left -= 1;
                    continue;
                }
            }
            visit(next_added.expect("what is left is in the base or was added"));
            next_added = added.next();
            left -= 1;
        }
    }
}

/// The first number below `len` for which `below` does not hold.
fn partition(len: usize, below: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low + (high - low) / 2;
        if below(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Change, Neighbours};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn edges(key: u64, values: &BTreeSet<u64>) -> SortedSet<Edge> {
        let mut set = SortedSet::new();
        let list: Vec<(Edge, Change)> = values
            .iter()
            .map(|value| ((key, *value), Change::Add))
            .collect();
        let others = [(key - 1, 5), (key + 1, 5)].map(|edge| (edge, Change::Add));
        set.apply(&list);
        set.apply(&others);
        set
    }

    fn check(list: Neighbours<'_>, expected: &[u64]) {
        assert_eq!(list.len(), expected.len());
        let mut all = Vec::new();
        list.copy(0, usize::MAX, &mut all);
        assert_eq!(all.iter().map(|id| id.raw()).collect::<Vec<_>>(), expected);
        for (index, value) in expected.iter().enumerate() {
            assert_eq!(list.get(index).raw(), *value);
            let mut some = Vec::new();
            list.copy(index, 3, &mut some);
            let end = expected.len().min(index + 3);
            assert_eq!(
                some.iter().map(|id| id.raw()).collect::<Vec<_>>(),
                expected[index..end]
            );
        }
        for value in (0..2_100).step_by(3) {
            let id = TermId::from_raw(value);
            assert_eq!(list.contains(id), expected.binary_search(&value).is_ok());
            let below = expected.partition_point(|other| *other < value);
            assert_eq!(list.seek(0, id), below);
            assert_eq!(list.seek(below + 1, id), below + 1);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_patched_list_is_the_sorted_rest(
            base in proptest::collection::btree_set(100..2_000_u64, 0..200),
            changed in proptest::collection::btree_set(0..2_100_u64, 0..900),
            ranges: bool,
        ) {
            let list: Vec<u64> = base.iter().map(|value| value - 100).collect();
            let mut set = IdRanges::new();
            for value in &base {
                set.push(TermId::from_raw(*value), TermId::from_raw(*value + 1));
            }
            let removed: BTreeSet<u64> = base.intersection(&changed).copied().collect();
            let added: BTreeSet<u64> = changed.difference(&base).copied().collect();
            let expected: Vec<u64> = base.symmetric_difference(&changed).copied().collect();
            let (added, removed) = (edges(7, &added), edges(7, &removed));
            let base = if ranges {
                Unchanged::Ranges(&set)
            } else {
                Unchanged::Run(100, Narrow::U64(&list))
            };
            let patched = Patched {
                base,
                added: EdgeRun::of(&added, 7),
                removed: EdgeRun::of(&removed, 7),
            };
            check(Neighbours::Patched(patched), &expected);
            assert!(EdgeRun::of(&added, 9).is_empty());
        }
    }
}
