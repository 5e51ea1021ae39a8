//! A set of ids as ranges: which vertices meet these requirements?

use std::sync::Arc;

use crate::TermId;
use crate::blocks::Blocks;

/// Sorted, disjoint, non-adjacent half-open ranges of ids.
///
/// Because bulk-loaded vertices are numbered by characteristic set, the vertices of a type are a
/// few ranges, and membership is a comparison that touches no graph memory. Where they are many,
/// each operation is a binary search; a clone shares the ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdRanges {
    /// The first id and the end of the last range: all there is to a set without gaps.
    low: u64,
    high: u64,
    len: u64,
    list: Arc<List>,
}

#[derive(Clone, Debug, Default)]
struct List {
    ranges: Vec<(u64, u64)>,
    /// Ids in the ranges before each.
    before: Vec<u64>,
    /// For those from the first to the last, where a search among the ranges would be long.
    blocks: Option<Blocks>,
}

impl PartialEq for List {
    fn eq(&self, other: &Self) -> bool {
        self.ranges == other.ranges
    }
}

impl Eq for List {}

/// So many ranges are searched before a bitmap is the better choice.
const FEW_RANGES: usize = 16;

impl IdRanges {
    /// The empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The set of all ids.
    #[must_use]
    pub fn all() -> Self {
        let mut all = Self::new();
        all.push(TermId::from_raw(0), TermId::from_raw(u64::MAX));
        all
    }

    /// Adds the ids `first..end`, which lie at or behind all that were added before.
    ///
    /// # Panics
    /// If they begin before the end of the last range.
    pub fn push(&mut self, first: TermId, end: TermId) {
        let (first, end) = (first.raw(), end.raw());
        if first >= end {
            return;
        }
        let list = Arc::make_mut(&mut self.list);
        list.blocks = None;
        match list.ranges.last_mut() {
            Some(last) if last.1 == first => last.1 = end,
            last => {
                assert!(
                    last.is_none_or(|last| last.1 < first),
                    "ranges are pushed in order"
                );
                list.ranges.push((first, end));
                list.before.push(self.len);
            }
        }
        if self.len == 0 {
            self.low = first;
        }
        self.high = end;
        self.len += end - first;
    }

    /// Adds these ids, which are in order and lie behind all that were added before: faster than
    /// one by one.
    ///
    /// # Panics
    /// If they do not.
    pub fn extend_sorted(&mut self, ids: impl Iterator<Item = u64>) {
        let mut ids = ids.peekable();
        let Some(first) = ids.peek() else {
            return;
        };
        if self.len == 0 {
            self.low = *first;
        }
        let (mut high, mut len) = (self.high, self.len);
        let list = Arc::make_mut(&mut self.list);
        list.blocks = None;
        // Most are single ids where this is used.
        let most = ids.size_hint().0;
        list.ranges.reserve(most);
        list.before.reserve(most);
        while let Some(id) = ids.next() {
            assert!(id >= high, "ids are added in order");
            let mut end = id + 1;
            while ids.next_if_eq(&end).is_some() {
                end += 1;
            }
            match list.ranges.last_mut() {
                Some(last) if last.1 == id => last.1 = end,
                _ => {
                    list.ranges.push((id, end));
                    list.before.push(len);
                }
            }
            high = end;
            len += end - id;
        }
        (self.high, self.len) = (high, len);
    }

    /// Adds the ids of a set, which lie behind all that were added before; a set that was empty
    /// shares the other's ranges then.
    ///
    /// # Panics
    /// If they do not.
    pub fn append(&mut self, other: &Self) {
        if self.is_empty() {
            *self = other.clone();
            return;
        }
        for (first, end) in other.ranges() {
            self.push(TermId::from_raw(*first), TermId::from_raw(*end));
        }
    }

    /// Number of ids in the set.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True of the empty set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The raw ranges, half-open.
    #[must_use]
    pub fn ranges(&self) -> &[(u64, u64)] {
        &self.list.ranges
    }

    /// True if the id is in the set: a few comparisons.
    #[inline]
    #[must_use]
    pub fn contains(&self, id: TermId) -> bool {
        let raw = id.raw();
        let span = self.high - self.low;
        if raw.wrapping_sub(self.low) >= span {
            return false;
        }
        span == self.len || self.is_in_range(raw)
    }

    fn is_in_range(&self, raw: u64) -> bool {
        if let Some(blocks) = &self.list.blocks {
            return blocks.has(raw - self.low);
        }
        match self.list.ranges.as_slice() {
            few if few.len() <= 4 => few.iter().fold(false, |found, (first, end)| {
                found | (raw >= *first && raw < *end)
            }),
            many => {
                let after = many.partition_point(|(first, _)| *first <= raw);
                after > 0 && raw < many[after - 1].1
            }
        }
    }

    /// Appends those of `ids` that are in the set.
    ///
    /// Costs two loads for each where the set has a bitmap, and a search among its ranges elsewhere;
    /// that some are in the set and some not costs nothing more.
    pub fn copy_members(&self, ids: impl ExactSizeIterator<Item = TermId>, out: &mut Vec<TermId>) {
        let Some(blocks) = &self.list.blocks else {
            out.extend(ids.filter(|id| self.contains(*id)));
            return;
        };
        // Each is written, and the next one over it where it was none: no branch to mispredict.
        let before = out.len();
        out.resize(before + ids.len(), TermId::NONE);
        let mut found = before;
        for id in ids {
            out[found] = id;
            found += usize::from(blocks.has(id.raw().wrapping_sub(self.low)));
        }
        out.truncate(found);
    }

    /// The same set with a bitmap, so that membership is two loads, if it has many ranges and the
    /// bitmap, in which long ones take little, is no more than a kilobyte for each.
    ///
    /// Costs the bitmap.
    #[must_use]
    pub fn with_bitmap(mut self) -> Self {
        if self.list.ranges.len() <= FEW_RANGES || self.list.blocks.is_some() {
            return self;
        }
        if let Some(blocks) = Blocks::new(&self.list.ranges, self.low, self.high) {
            Arc::make_mut(&mut self.list).blocks = Some(blocks);
        }
        self
    }

    /// The number of the range that holds the `index`-th id.
    fn range_of(&self, index: u64) -> usize {
        self.list.before.partition_point(|before| *before <= index) - 1
    }

    /// The `index`-th id of the set.
    ///
    /// # Panics
    /// If the set has no so many.
    #[must_use]
    pub fn get(&self, index: u64) -> TermId {
        assert!(index < self.len, "id {index} of a set of {}", self.len);
        let range = self.range_of(index);
        TermId::from_raw(self.list.ranges[range].0 + (index - self.list.before[range]))
    }

    /// Number of ids in the set that are below `id`.
    #[must_use]
    pub fn rank(&self, id: TermId) -> u64 {
        let raw = id.raw();
        let after = self.list.ranges.partition_point(|(first, _)| *first < raw);
        match after.checked_sub(1) {
            Some(range) => {
                let (first, end) = self.list.ranges[range];
                self.list.before[range] + (raw.min(end) - first)
            }
            None => 0,
        }
    }

    /// Copies ids to `out`, from the `from`-th id of the set on and `count` at most; returns how
    /// many were copied.
    pub fn copy(&self, from: u64, count: usize, out: &mut Vec<TermId>) -> usize {
        if from >= self.len {
            return 0;
        }
        let range = self.range_of(from);
        let mut skip = from - self.list.before[range];
        let mut left = count as u64;
        for (first, end) in &self.list.ranges[range..] {
            let begin = first + skip;
            let take = (end - begin).min(left);
            out.extend((begin..begin + take).map(TermId::from_raw));
            left -= take;
            skip = 0;
            if left == 0 {
                break;
            }
        }
        count - left as usize
    }

    /// The set without these ids, which are sorted.
    #[must_use]
    pub fn without(&self, ids: &[u64]) -> Self {
        if ids.is_empty() {
            return self.clone();
        }
        let mut rest = Self::new();
        let mut ids = ids.iter().copied().peekable();
        for (first, end) in self.ranges() {
            let mut begin = *first;
            while let Some(id) = ids.next_if(|id| *id < *end) {
                if id >= begin {
                    rest.push(TermId::from_raw(begin), TermId::from_raw(id));
                    begin = id + 1;
                }
            }
            rest.push(TermId::from_raw(begin), TermId::from_raw(*end));
        }
        rest
    }

    /// The set with these ids, which are sorted, too.
    #[must_use]
    pub fn with(&self, ids: &[u64]) -> Self {
        if ids.is_empty() {
            return self.clone();
        }
        let mut all = Self::new();
        let mut add = |first: u64, end: u64| {
            let first = first.max(all.high);
            all.push(TermId::from_raw(first), TermId::from_raw(end));
        };
        let mut ids = ids.iter().copied().peekable();
        for (first, end) in self.ranges() {
            while let Some(id) = ids.next_if(|id| *id < *first) {
                add(id, id + 1);
            }
            add(*first, *end);
        }
        for id in ids {
            add(id, id + 1);
        }
        all
    }

    /// The set with the ids between two of its ranges where none of `others` is among these.
    ///
    /// Costs a search in `others` for each range.
    #[must_use]
    pub fn joined_but_for(&self, others: &Self) -> Self {
        let mut joined = Self::new();
        let mut ranges = self.ranges().iter().copied();
        let Some(mut last) = ranges.next() else {
            return joined;
        };
        let mut push = |range: (u64, u64)| {
            joined.push(TermId::from_raw(range.0), TermId::from_raw(range.1));
        };
        let below = |raw: u64| others.rank(TermId::from_raw(raw));
        for range in ranges {
            if below(last.1) == below(range.0) {
                last.1 = range.1;
            } else {
                push(std::mem::replace(&mut last, range));
            }
        }
        push(last);
        joined
    }

    /// The ids that are in this set or in the other one.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        let mut all = Self::new();
        let (mut left, mut right) = (
            self.ranges().iter().peekable(),
            other.ranges().iter().peekable(),
        );
        loop {
            let next = match (left.peek(), right.peek()) {
                (Some(a), Some(b)) if a.0 <= b.0 => left.next(),
                (_, Some(_)) => right.next(),
                (_, None) => left.next(),
            };
            let Some((first, end)) = next else {
                return all;
            };
            let first = (*first).max(all.high);
            all.push(TermId::from_raw(first), TermId::from_raw(*end));
        }
    }

    /// The ids that are in any of these sets: one sort of all their ranges, however many sets they are.
    #[must_use]
    pub fn union_of(sets: impl IntoIterator<Item = Self>) -> Self {
        let mut sets = sets.into_iter().filter(|set| !set.is_empty());
        let Some(first) = sets.next() else {
            return Self::new();
        };
        let Some(second) = sets.next() else {
            return first;
        };
        let mut ranges = [first.ranges(), second.ranges()].concat();
        sets.for_each(|set| ranges.extend_from_slice(set.ranges()));
        ranges.sort_unstable();
        ranges.dedup_by(|next, last| {
            let is_joined = next.0 <= last.1;
            if is_joined {
                last.1 = last.1.max(next.1);
            }
            is_joined
        });
        let (low, high) = (ranges[0].0, ranges[ranges.len() - 1].1);
        let mut len = 0;
        let before = ranges.iter().map(|(first, end)| {
            let before = len;
            len += end - first;
            before
        });
        let before = before.collect();
        Self {
            low,
            high,
            len,
            list: Arc::new(List {
                ranges,
                before,
                blocks: None,
            }),
        }
    }

    /// The ids that are in `windows` too, a set of few ranges. Shares this set's ranges where
    /// these are all, and costs those that are left where they are not.
    #[must_use]
    pub fn within(&self, windows: &Self) -> Self {
        let windows = windows.ranges();
        let below = |raw: u64| self.rank(TermId::from_raw(raw));
        let left: u64 = windows
            .iter()
            .map(|(first, end)| below(*end) - below(*first))
            .sum();
        if left == self.len {
            return self.clone();
        }
        let mut rest = Self::new();
        let list = Arc::make_mut(&mut rest.list);
        for (first, end) in windows {
            let begin = self.list.ranges.partition_point(|range| range.1 <= *first);
            let ranges = self.list.ranges[begin..].iter();
            for range in ranges.take_while(|range| range.0 < *end) {
                let range = (range.0.max(*first), range.1.min(*end));
                match list.ranges.last_mut() {
                    Some(last) if last.1 == range.0 => last.1 = range.1,
                    _ => {
                        list.ranges.push(range);
                        list.before.push(rest.len);
                    }
                }
                rest.len += range.1 - range.0;
            }
        }
        if let (Some(first), Some(last)) = (list.ranges.first(), list.ranges.last()) {
            (rest.low, rest.high) = (first.0, last.1);
        }
        rest
    }

    /// The ids that are in both sets.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        let mut both = Self::new();
        let (mut left, mut right) = (
            self.ranges().iter().peekable(),
            other.ranges().iter().peekable(),
        );
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            both.push(
                TermId::from_raw(a.0.max(b.0)),
                TermId::from_raw(a.1.min(b.1).max(a.0.max(b.0))),
            );
            if a.1 <= b.1 {
                left.next();
            } else {
                right.next();
            }
        }
        both
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(ranges: &[(u64, u64)]) -> IdRanges {
        let mut set = IdRanges::new();
        for (first, end) in ranges {
            set.push(TermId::from_raw(*first), TermId::from_raw(*end));
        }
        set
    }

    #[test]
    fn ranges_are_joined_over_what_no_other_set_has() {
        let some = set(&[(1, 4), (6, 7), (10, 20), (30, 31), (40, 50)]);
        let joined = |others: &[(u64, u64)]| some.joined_but_for(&set(others)).ranges().to_vec();
        assert_eq!(joined(&[]), [(1, 50)]);
        assert_eq!(joined(&[(0, 1), (2, 3), (50, 60)]), [(1, 50)]);
        assert_eq!(joined(&[(6, 8), (25, 26)]), [(1, 7), (10, 20), (30, 50)]);
        assert_eq!(joined(&[(0, 100)]), some.ranges());
        assert_eq!(set(&[]).joined_but_for(&some).ranges(), []);
    }

    #[test]
    fn membership_copy_and_intersection_agree_with_a_list() {
        let a = set(&[(1, 4), (6, 7), (10, 20), (30, 31), (40, 50), (60, 61)]);
        let b = set(&[(0, 2), (3, 12), (19, 45)]);
        let list = |s: &IdRanges| {
            (0..100)
                .filter(|i| s.contains(TermId::from_raw(*i)))
                .collect()
        };
        let (in_a, in_b): (Vec<u64>, Vec<u64>) = (list(&a), list(&b));
        let both: Vec<u64> = in_a.iter().copied().filter(|i| in_b.contains(i)).collect();
        assert_eq!(list(&a.intersect(&b)), both);
        assert_eq!(a.len(), in_a.len() as u64);
        assert!(!IdRanges::new().contains(TermId::from_raw(0)));
        let many: Vec<(u64, u64)> = (0..40).map(|i| (i * 7 + 3, i * 7 + 3 + i % 5)).collect();
        let (plain, mut mapped) = (set(&many), set(&many).with_bitmap());
        assert!(mapped.list.blocks.is_some() && a.clone().with_bitmap().list.blocks.is_none());
        let ids = || {
            (0..400)
                .map(TermId::from_raw)
                .collect::<Vec<_>>()
                .into_iter()
        };
        let members: Vec<TermId> = ids().filter(|id| plain.contains(*id)).collect();
        for set in [&plain, &mapped] {
            let mut found = vec![TermId::from_raw(1)];
            set.copy_members(ids(), &mut found);
            assert_eq!(found[1..], members);
        }
        for id in ids() {
            assert_eq!(mapped.contains(id), plain.contains(id));
        }
        mapped.push(TermId::from_raw(390), TermId::from_raw(395));
        assert!(
            mapped.contains(TermId::from_raw(394))
                && mapped.contains(TermId::from_raw(4)) == plain.contains(TermId::from_raw(4))
        );
        assert!(
            !set(&[(0, 1), (u64::MAX - 9, u64::MAX - 8)])
                .with_bitmap()
                .contains(TermId::from_raw(5))
        );
        let some = [0, 3, 4, 5, 6, 12, 19, 20, 49, 50, 61, 99];
        let without: Vec<u64> = in_a.iter().copied().filter(|i| !some.contains(i)).collect();
        assert_eq!(list(&a.without(&some)), without);
        let mut with = [in_a.as_slice(), &some].concat();
        with.sort_unstable();
        with.dedup();
        assert_eq!(list(&a.with(&some)), with);
        assert_eq!(a.with(&some).len(), with.len() as u64);
        for id in 0..100 {
            let below = in_a.iter().filter(|i| **i < id).count() as u64;
            assert_eq!(a.rank(TermId::from_raw(id)), below);
        }
        for from in 0..in_a.len() {
            assert_eq!(a.get(from as u64).raw(), in_a[from]);
            let mut out = Vec::new();
            let copied = a.copy(from as u64, 5, &mut out);
            let expected: Vec<u64> = in_a[from..].iter().copied().take(5).collect();
            assert_eq!(copied, expected.len());
            assert_eq!(out.iter().map(|id| id.raw()).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_bitmap_agrees_with_the_ranges_whatever_their_lengths_and_gaps() {
        for (gap, len) in [
            (1, 2),
            (3, 700),
            (511, 513),
            (512, 512),
            (2000, 5),
            (400_000, 9),
        ] {
            let range = |i: u64| (i * (gap + len) + 77, i * (gap + len) + 77 + len - i % 2);
            let ranges: Vec<(u64, u64)> = (0..60).map(range).collect();
            let (plain, mapped) = (set(&ranges), set(&ranges).with_bitmap());
            assert_eq!(mapped.list.blocks.is_some(), gap < 400_000, "{gap} {len}");
            let ends = ranges.iter().flat_map(|(first, end)| [*first, *end]);
            for id in ends
                .flat_map(|id| id.saturating_sub(600)..id + 600)
                .map(TermId::from_raw)
            {
                assert_eq!(
                    mapped.contains(id),
                    plain.contains(id),
                    "{gap} {len} {}",
                    id.raw()
                );
            }
            let ids = (0..4_000).map(|n| TermId::from_raw(n * 7));
            let (mut found, mut wanted) = (Vec::new(), Vec::new());
            mapped.copy_members(ids.clone().collect::<Vec<_>>().into_iter(), &mut found);
            wanted.extend(ids.filter(|id| plain.contains(*id)));
            assert_eq!(found, wanted);
        }
    }

    #[test]
    fn many_sets_are_joined_as_one_after_the_other() {
        let sets: Vec<IdRanges> = (0..40_u64)
            .map(|number| {
                let first = number * 37 % 101;
                set(&[
                    (first, first + number % 7),
                    (first + 9, first + 11),
                    (200 + number, 201 + number),
                ])
            })
            .collect();
        for count in 0..=sets.len() {
            let expected = sets[..count]
                .iter()
                .fold(IdRanges::new(), |all, one| all.union(one));
            let joined = IdRanges::union_of(sets[..count].iter().cloned());
            assert_eq!(joined, expected, "{count}");
            assert_eq!(joined.list.before, expected.list.before, "{count}");
        }
    }

    #[test]
    fn a_set_is_cut_to_windows() {
        let all = set(&[(1, 4), (6, 7), (10, 20), (30, 31), (40, 50), (60, 61)]);
        for windows in [
            &[(0, 100)][..],
            &[(0, 5), (5, 61)],
            &[],
            &[(2, 3), (12, 15), (16, 17), (45, 70)],
            &[(0, 0), (4, 6), (31, 40), (61, u64::MAX)],
            &[(19, 41), (60, 60)],
        ] {
            let mut expected = IdRanges::new();
            for id in 0..100 {
                let inside = windows
                    .iter()
                    .any(|(first, end)| (*first..*end).contains(&id));
                if inside && all.contains(TermId::from_raw(id)) {
                    expected.push(TermId::from_raw(id), TermId::from_raw(id + 1));
                }
            }
            let cut = all.within(&set(windows));
            assert_eq!(cut, expected, "{windows:?}");
            assert_eq!(cut.list.before, expected.list.before);
        }
        assert!(std::ptr::eq(
            all.within(&set(&[(0, 61)])).ranges(),
            all.ranges()
        ));
    }

    #[test]
    fn ids_in_order_are_added_at_once() {
        let mut one = set(&[(1, 4), (6, 7)]);
        let mut other = one.clone();
        let ids = [7, 8, 9, 20, 22, 23, 40];
        other.extend_sorted(ids.into_iter());
        for id in ids {
            one.push(TermId::from_raw(id), TermId::from_raw(id + 1));
        }
        other.extend_sorted(std::iter::empty());
        assert_eq!(one, other);
        let (mut appended, mut shared) = (set(&[(0, 1)]), IdRanges::new());
        appended.append(&one);
        assert_eq!(
            (appended.len(), appended.ranges().len()),
            (one.len() + 1, 5)
        );
        shared.append(&one);
        assert!(std::ptr::eq(shared.ranges(), one.ranges()));
        let mut new = IdRanges::new();
        new.extend_sorted(ids.into_iter());
        assert_eq!(new, set(&[(7, 10), (20, 21), (22, 24), (40, 41)]));
        assert_eq!((new.len(), new.contains(TermId::from_raw(23))), (7, true));
    }

    #[test]
    fn a_clone_shares_its_ranges_until_it_grows() {
        let one = set(&[(1, 4), (6, 7)]);
        let mut other = one.clone();
        assert!(std::ptr::eq(one.ranges(), other.ranges()));
        other.push(TermId::from_raw(9), TermId::from_raw(10));
        assert_eq!((one.len(), other.len()), (4, 5));
        assert!(!one.contains(TermId::from_raw(9)) && other.contains(TermId::from_raw(9)));
    }

    #[test]
    fn adjacent_ranges_become_one() {
        assert_eq!(set(&[(1, 4), (4, 7)]).ranges(), &[(1, 7)]);
    }
}
