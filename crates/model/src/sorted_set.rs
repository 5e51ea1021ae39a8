//! A sorted set whose versions share what they have in common: what did a commit change?
//!
//! Elements are kept in chunks, chunks in pages, pages in one list. A change copies the chunks and
//! pages that it touches and the list of pages; all else is shared with the version before, which
//! stays as it was for whoever reads it.

use std::ops::Range;
use std::sync::Arc;

/// Elements of a chunk that is split in two.
const CHUNK: usize = 384;
/// Chunks smaller than this join the chunk before where both fit.
const SMALL_CHUNK: usize = 64;
/// Chunks of a page that is split in two.
const PAGE: usize = 96;

/// A persistent sorted set.
///
/// With n elements a search costs a few cache misses, one change about `CHUNK` elements, `PAGE`
/// references and n / 10,000 references copied. Cloning costs the list of pages.
#[derive(Clone, Debug)]
pub struct SortedSet<T> {
    pages: Vec<Part<T, Arc<Page<T>>>>,
    len: usize,
}

/// A part of a list, its first element and the elements before it.
#[derive(Clone, Debug)]
struct Part<T, P> {
    first: T,
    before: usize,
    part: P,
}

#[derive(Debug)]
struct Page<T> {
    chunks: Vec<Part<T, Arc<[T]>>>,
    len: usize,
}

impl<T> Default for SortedSet<T> {
    fn default() -> Self {
        Self {
            pages: Vec::new(),
            len: 0,
        }
    }
}

/// One change of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The element is added.
    Add,
    /// The element is taken out.
    Remove,
}

impl<T: Copy + Ord> SortedSet<T> {
    /// The empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of elements.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True of the empty set.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of elements below `value`.
    #[must_use]
    pub fn rank(&self, value: T) -> usize {
        self.rank_by(|element| *element < value)
    }

    /// Number of elements for which `below` holds, which it does for the first of all only.
    #[inline]
    #[must_use]
    pub fn rank_by(&self, below: impl Fn(&T) -> bool) -> usize {
        let after = self.pages.partition_point(|page| below(&page.first));
        let Some(page) = after.checked_sub(1) else {
            return 0;
        };
        let page = &self.pages[page];
        let chunks = &page.part.chunks;
        let chunk = &chunks[chunks.partition_point(|chunk| below(&chunk.first)) - 1];
        page.before + chunk.before + chunk.part.partition_point(below)
    }

    /// True if `value` is an element.
    #[inline]
    #[must_use]
    pub fn contains(&self, value: T) -> bool {
        let after = self.pages.partition_point(|page| page.first <= value);
        let Some(page) = after.checked_sub(1) else {
            return false;
        };
        let chunks = &self.pages[page].part.chunks;
        let after = chunks.partition_point(|chunk| chunk.first <= value);
        chunks[after - 1].part.binary_search(&value).is_ok()
    }

    /// The element with this number.
    ///
    /// # Panics
    /// If there are no so many.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> T {
        let slice = self.slice_from(index);
        slice[0]
    }

    /// The elements from `index` on that lie together: at least one.
    ///
    /// # Panics
    /// If there are no so many.
    #[inline]
    #[must_use]
    pub fn slice_from(&self, index: usize) -> &[T] {
        assert!(index < self.len, "element {index} of {}", self.len);
        let page = &self.pages[self.pages.partition_point(|page| page.before <= index) - 1];
        let within = index - page.before;
        let chunks = &page.part.chunks;
        let chunk = &chunks[chunks.partition_point(|chunk| chunk.before <= within) - 1];
        &chunk.part[within - chunk.before..]
    }

    /// The elements with these numbers, in slices.
    pub fn slices(&self, range: Range<usize>) -> impl Iterator<Item = &[T]> {
        let mut at = range.start;
        std::iter::from_fn(move || {
            if at >= range.end {
                return None;
            }
            let slice = self.slice_from(at);
            let slice = &slice[..slice.len().min(range.end - at)];
            at += slice.len();
            Some(slice)
        })
    }

    /// All elements in order.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.pages
            .iter()
            .flat_map(|page| &page.part.chunks)
            .flat_map(|chunk| chunk.part.iter().copied())
    }

    /// Applies changes, sorted by element and one an element. Adding what is there and removing
    /// what is not changes nothing.
    pub fn apply(&mut self, changes: &[(T, Change)]) {
        debug_assert!(changes.is_sorted_by(|a, b| a.0 < b.0));
        if changes.is_empty() {
            return;
        }
        let mut pages = Vec::with_capacity(self.pages.len() + 1);
        let mut rest = changes;
        if self.pages.is_empty() {
            let mut chunks = Vec::new();
            push_chunks(&mut chunks, merged(&[], rest));
            push_pages(&mut pages, chunks);
        }
        for (number, page) in self.pages.iter().enumerate() {
            let end = match self.pages.get(number + 1) {
                Some(next) => rest.partition_point(|(value, _)| *value < next.first),
                None => rest.len(),
            };
            let (own, behind) = rest.split_at(end);
            rest = behind;
            if own.is_empty() {
                pages.push(page.clone());
            } else {
                push_pages(&mut pages, page.part.changed(own));
            }
        }
        let mut before = 0;
        for page in &mut pages {
            page.before = before;
            before += page.part.len;
        }
        self.pages = pages;
        self.len = before;
    }

    /// What led from an earlier version of this set to it: in order, one an element.
    ///
    /// Costs a word a chunk of both, and the elements of the chunks that they do not share.
    #[must_use]
    pub fn changes_since(&self, before: &Self) -> Vec<(T, Change)> {
        let mut changes = Vec::new();
        let mut old = before.elements_outside(self).into_iter().peekable();
        for value in self.elements_outside(before) {
            while let Some(gone) = old.next_if(|old| *old < value) {
                changes.push((gone, Change::Remove));
            }
            if old.next_if_eq(&value).is_none() {
                changes.push((value, Change::Add));
            }
        }
        changes.extend(old.map(|gone| (gone, Change::Remove)));
        changes
    }

    /// The elements of the chunks that the other set does not share.
    fn elements_outside(&self, other: &Self) -> Vec<T> {
        let mut shared: Vec<*const T> = other.chunks().map(<[T]>::as_ptr).collect();
        shared.sort_unstable();
        self.chunks()
            .filter(|chunk| shared.binary_search(&chunk.as_ptr()).is_err())
            .flatten()
            .copied()
            .collect()
    }

    fn chunks(&self) -> impl Iterator<Item = &[T]> {
        let parts = self.pages.iter().flat_map(|page| &page.part.chunks);
        parts.map(|chunk| &*chunk.part)
    }

    /// Bytes held, those shared with other versions included.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let chunks: usize = self.pages.iter().map(|page| page.part.chunks.len()).sum();
        self.len * size_of::<T>()
            + chunks * (size_of::<Part<T, Arc<[T]>>>() + 16)
            + self.pages.len() * size_of::<Part<T, Arc<Page<T>>>>()
    }
}

impl<T: Copy + Ord> Page<T> {
    /// Its chunks after some changes.
    fn changed(&self, changes: &[(T, Change)]) -> Vec<Part<T, Arc<[T]>>> {
        let mut chunks: Vec<Part<T, Arc<[T]>>> = Vec::with_capacity(self.chunks.len() + 1);
        let mut rest = changes;
        for (number, chunk) in self.chunks.iter().enumerate() {
            let end = match self.chunks.get(number + 1) {
                Some(next) => rest.partition_point(|(value, _)| *value < next.first),
                None => rest.len(),
            };
            let (own, behind) = rest.split_at(end);
            rest = behind;
            if own.is_empty() {
                chunks.push(chunk.clone());
            } else {
                push_chunks(&mut chunks, merged(&chunk.part, own));
            }
        }
        chunks
    }
}

fn merged<T: Copy + Ord>(old: &[T], changes: &[(T, Change)]) -> Vec<T> {
    let mut all = Vec::with_capacity(old.len() + changes.len());
    let mut rest = old;
    for (value, change) in changes {
        let (below, behind) = rest.split_at(rest.partition_point(|element| element < value));
        all.extend_from_slice(below);
        rest = match behind {
            [first, behind @ ..] if first == value => behind,
            behind => behind,
        };
        if *change == Change::Add {
            all.push(*value);
        }
    }
    all.extend_from_slice(rest);
    all
}

/// Appends elements as one chunk or more, or to the last chunk if they are few.
fn push_chunks<T: Copy>(chunks: &mut Vec<Part<T, Arc<[T]>>>, elements: Vec<T>) {
    let Some(first) = elements.first() else {
        return;
    };
    if elements.len() < SMALL_CHUNK
        && let Some(last) = chunks.last_mut()
        && last.part.len() + elements.len() <= CHUNK
    {
        last.part = last.part.iter().copied().chain(elements).collect();
        return;
    }
    let part = |items: &[T], first: T| Part {
        first,
        before: 0,
        part: Arc::from(items),
    };
    if elements.len() <= CHUNK {
        chunks.push(part(&elements, *first));
        return;
    }
    let pieces = elements.len().div_ceil(CHUNK / 2);
    let size = elements.len().div_ceil(pieces);
    chunks.extend(elements.chunks(size).map(|items| part(items, items[0])));
}

/// Appends chunks as one page or more.
fn push_pages<T: Copy>(pages: &mut Vec<Part<T, Arc<Page<T>>>>, chunks: Vec<Part<T, Arc<[T]>>>) {
    if chunks.is_empty() {
        return;
    }
    let size = if chunks.len() <= PAGE {
        chunks.len()
    } else {
        chunks.len().div_ceil(chunks.len().div_ceil(PAGE / 2))
    };
    let mut chunks = chunks.into_iter().peekable();
    while let Some(first) = chunks.peek().map(|chunk| chunk.first) {
        let mut len = 0;
        let chunks = chunks
            .by_ref()
            .take(size)
            .map(|chunk| {
                let before = len;
                len += chunk.part.len();
                Part { before, ..chunk }
            })
            .collect();
        pages.push(Part {
            first,
            before: 0,
            part: Arc::new(Page { chunks, len }),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn check(set: &SortedSet<u32>, model: &BTreeSet<u32>) {
        let list: Vec<u32> = model.iter().copied().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), list);
        assert_eq!(set.len(), list.len());
        for (index, value) in list.iter().enumerate() {
            assert_eq!(set.get(index), *value);
        }
        for value in (0..12_000).step_by(7) {
            assert_eq!(set.contains(value), model.contains(&value));
            assert_eq!(set.rank(value), model.range(..value).count());
        }
        let range = list.len() / 3..list.len() * 2 / 3;
        let parts: Vec<u32> = set.slices(range.clone()).flatten().copied().collect();
        assert_eq!(parts, list[range]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn versions_agree_with_a_tree_and_older_ones_stay(
            batches in proptest::collection::vec(
                proptest::collection::btree_map(0..12_000_u32, any::<bool>(), 0..2_500),
                1..8,
            ),
        ) {
            let mut set = SortedSet::new();
            let mut model = BTreeSet::new();
            let mut versions = Vec::new();
            for batch in batches {
                let changes: Vec<(u32, Change)> = batch
                    .into_iter()
                    .map(|(value, add)| (value, if add { Change::Add } else { Change::Remove }))
                    .collect();
                versions.push((set.clone(), model.clone()));
                set.apply(&changes);
                for (value, change) in changes {
                    match change {
                        Change::Add => model.insert(value),
                        Change::Remove => model.remove(&value),
                    };
                }
            }
            versions.push((set, model));
            for (set, model) in &versions {
                check(set, model);
                let (last, now) = versions.last().unwrap();
                let expected: Vec<(u32, Change)> = model
                    .symmetric_difference(now)
                    .map(|v| (*v, if now.contains(v) { Change::Add } else { Change::Remove }))
                    .collect();
                assert_eq!(last.changes_since(set), expected);
            }
        }
    }

    #[test]
    fn a_large_set_built_one_by_one_stays_in_chunks_and_pages() {
        let mut set = SortedSet::new();
        for value in 0..60_000_u32 {
            let scattered = value.wrapping_mul(2_654_435_761) >> 8;
            set.apply(&[(scattered, Change::Add)]);
        }
        let elements: Vec<u32> = set.iter().collect();
        assert!(elements.is_sorted_by(|a, b| a < b));
        assert_eq!(set.len(), elements.len());
        assert!(set.pages.len() < 60_000 / (CHUNK / 2 * PAGE / 2) + 2);
        let all: Vec<(u32, Change)> = elements.iter().map(|v| (*v, Change::Remove)).collect();
        set.apply(&all);
        assert!(set.is_empty() && set.iter().next().is_none());
    }
}
