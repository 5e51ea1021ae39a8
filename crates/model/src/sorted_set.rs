//! A sorted set whose versions share what they have in common: what did a commit change?
//!
//! A tree of even height: chunks of elements, and nodes of chunks or of nodes. A change copies the
//! chunk that it touches and the nodes above it; all else is shared with the version before, which
//! stays as it was for whoever reads it.

use std::ops::Range;
use std::sync::Arc;

/// Elements of a chunk that is split in two.
const CHUNK: usize = 192;
/// Chunks smaller than this join the chunk before where both fit.
const SMALL_CHUNK: usize = 32;
/// Parts of a node that is split in two.
const FANOUT: usize = 32;
/// Nodes with fewer parts join the node before where both fit.
const SMALL_NODE: usize = 6;

/// A persistent sorted set.
///
/// With n elements a search costs a few cache misses, one change about `CHUNK` elements and `FANOUT`
/// references copied for each level, of which there are one or two below a million elements. Cloning
/// costs one reference.
#[derive(Clone, Debug)]
pub struct SortedSet<T> {
    root: Option<Arc<Node<T>>>,
}

#[derive(Debug)]
struct Node<T> {
    /// Of one height, none of them empty.
    parts: Vec<Part<T>>,
    len: usize,
    /// Of all that lies below.
    bytes: usize,
}

/// A part of a node, its first element and the elements of the node before it.
#[derive(Clone, Debug)]
struct Part<T> {
    first: T,
    before: usize,
    below: Below<T>,
}

#[derive(Clone, Debug)]
enum Below<T> {
    Chunk(Arc<[T]>),
    Node(Arc<Node<T>>),
}

impl<T> Default for SortedSet<T> {
    fn default() -> Self {
        Self { root: None }
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
        self.root.as_ref().map_or(0, |root| root.len)
    }

    /// True of the empty set.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
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
        let found = self.chunk_by(|part, _| below(&part.first));
        found.map_or(0, |(before, chunk)| before + chunk.partition_point(below))
    }

    /// True if `value` is an element.
    #[inline]
    #[must_use]
    pub fn contains(&self, value: T) -> bool {
        let found = self.chunk_by(|part, _| part.first <= value);
        found.is_some_and(|(_, chunk)| chunk.binary_search(&value).is_ok())
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
        let found = self.chunk_by(|part, before| before + part.before <= index);
        let found = found.filter(|(before, chunk)| index < before + chunk.len());
        let (before, chunk) = found.expect("an element has this number");
        &chunk[index - before..]
    }

    /// The last chunk whose parts all begin where `begins` still holds, which it does for the first
    /// ones of a node only, and the elements before it; `begins` gets a part and how many elements
    /// lie before its node.
    #[inline]
    fn chunk_by(&self, begins: impl Fn(&Part<T>, usize) -> bool) -> Option<(usize, &[T])> {
        let mut node = self.root.as_deref()?;
        let mut before = 0;
        loop {
            let after = node.parts.partition_point(|part| begins(part, before));
            let part = &node.parts[after.checked_sub(1)?];
            before += part.before;
            match &part.below {
                Below::Chunk(chunk) => return Some((before, chunk)),
                Below::Node(below) => node = below,
            }
        }
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
        self.chunks().flatten().copied()
    }

    /// Applies changes, sorted by element and one an element. Adding what is there and removing
    /// what is not changes nothing.
    pub fn apply(&mut self, changes: &[(T, Change)]) {
        debug_assert!(changes.is_sorted_by(|a, b| a.0 < b.0));
        if changes.is_empty() {
            return;
        }
        let mut parts = match &self.root {
            Some(root) => root.changed(changes),
            None => {
                let mut chunks = Vec::new();
                push_chunks(&mut chunks, merged(&[], changes));
                chunks
            }
        };
        while parts.len() > FANOUT {
            let mut nodes = Vec::new();
            push_nodes(&mut nodes, parts);
            parts = nodes;
        }
        self.root = match parts.as_slice() {
            [] => None,
            [
                Part {
                    below: Below::Node(only),
                    ..
                },
            ] => Some(only.without_single_nodes()),
            _ => Some(Arc::new(Node::new(parts))),
        };
    }

    /// As [`SortedSet::apply`], for changes of which most may change nothing: costs a search for
    /// each, and copies only where something changes.
    pub fn apply_effective(&mut self, mut changes: Vec<(T, Change)>) {
        changes.retain(|(value, change)| self.contains(*value) != (*change == Change::Add));
        self.apply(&changes);
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
        let mut above: Vec<_> = self.root.iter().map(|root| root.parts.iter()).collect();
        std::iter::from_fn(move || {
            loop {
                match above.last_mut()?.next() {
                    None => drop(above.pop()),
                    Some(part) => match &part.below {
                        Below::Chunk(chunk) => return Some(&**chunk),
                        Below::Node(node) => above.push(node.parts.iter()),
                    },
                }
            }
        })
    }

    /// Bytes held, those shared with other versions included.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.root.as_ref().map_or(0, |root| root.bytes)
    }
}

impl<T: Copy + Ord> Node<T> {
    /// A node of these parts, of which only `before` is not known.
    fn new(mut parts: Vec<Part<T>>) -> Self {
        let (mut len, mut bytes) = (0, size_of::<Self>() + parts.len() * size_of::<Part<T>>());
        for part in &mut parts {
            part.before = len;
            match &part.below {
                Below::Chunk(chunk) => {
                    len += chunk.len();
                    bytes += 16 + size_of_val(&**chunk);
                }
                Below::Node(node) => {
                    len += node.len;
                    bytes += node.bytes;
                }
            }
        }
        Self { parts, len, bytes }
    }

    /// The highest node below it, or it itself, that has more than one part, or else chunks.
    fn without_single_nodes(self: &Arc<Self>) -> Arc<Self> {
        let mut node = self;
        while let [
            Part {
                below: Below::Node(only),
                ..
            },
        ] = node.parts.as_slice()
        {
            node = only;
        }
        node.clone()
    }

    /// Its parts after some changes: none or more, of the same height.
    fn changed(&self, changes: &[(T, Change)]) -> Vec<Part<T>> {
        let mut parts = Vec::with_capacity(self.parts.len() + 1);
        let mut rest = changes;
        for (number, part) in self.parts.iter().enumerate() {
            let end = match self.parts.get(number + 1) {
                Some(next) => rest.partition_point(|(value, _)| *value < next.first),
                None => rest.len(),
            };
            let (own, behind) = rest.split_at(end);
            rest = behind;
            match &part.below {
                _ if own.is_empty() => parts.push(part.clone()),
                Below::Chunk(chunk) => push_chunks(&mut parts, merged(chunk, own)),
                Below::Node(node) => push_nodes(&mut parts, node.changed(own)),
            }
        }
        parts
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
fn push_chunks<T: Copy>(parts: &mut Vec<Part<T>>, elements: Vec<T>) {
    let part = |items: &[T]| Part {
        first: items[0],
        before: 0,
        below: Below::Chunk(Arc::from(items)),
    };
    if elements.is_empty() {
        return;
    }
    if elements.len() < SMALL_CHUNK
        && let Some(last) = parts.last_mut()
        && let Below::Chunk(chunk) = &last.below
        && chunk.len() + elements.len() <= CHUNK
    {
        let all = chunk.iter().copied().chain(elements).collect();
        last.below = Below::Chunk(all);
    } else if elements.len() <= CHUNK {
        parts.push(part(&elements));
    } else {
        let size = even(elements.len(), CHUNK * 3 / 4);
        parts.extend(elements.chunks(size).map(part));
    }
}

/// Appends parts as one node or more, or to the last node if they are few.
fn push_nodes<T: Copy + Ord>(nodes: &mut Vec<Part<T>>, parts: Vec<Part<T>>) {
    let node = |parts: Vec<Part<T>>| Part {
        first: parts[0].first,
        before: 0,
        below: Below::Node(Arc::new(Node::new(parts))),
    };
    if parts.is_empty() {
        return;
    }
    if parts.len() < SMALL_NODE
        && let Some(last) = nodes.last_mut()
        && let Below::Node(before) = &last.below
        && before.parts.len() + parts.len() <= FANOUT
    {
        let all = before.parts.iter().cloned().chain(parts).collect();
        *last = node(all);
    } else if parts.len() <= FANOUT {
        nodes.push(node(parts));
    } else {
        let size = even(parts.len(), FANOUT * 3 / 4);
        let mut rest = parts.into_iter().peekable();
        while rest.peek().is_some() {
            nodes.push(node(rest.by_ref().take(size).collect()));
        }
    }
}

/// The size of the pieces of about `most` at most into which so many are cut evenly.
fn even(count: usize, most: usize) -> usize {
    count.div_ceil(count.div_ceil(most))
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
                let mut same = set.clone();
                same.apply_effective(changes.clone());
                set.apply(&changes);
                assert!(same.iter().eq(set.iter()));
                same.apply_effective(changes.clone());
                assert!(same.iter().eq(set.iter()));
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

    /// The chunks below a node, and the levels of nodes.
    fn shape(node: &Node<u32>) -> (usize, usize) {
        assert!(node.parts.len() <= FANOUT);
        let below: Vec<(usize, usize)> = node
            .parts
            .iter()
            .map(|part| match &part.below {
                Below::Chunk(chunk) => {
                    assert!(!chunk.is_empty() && chunk.len() <= CHUNK);
                    (1, 0)
                }
                Below::Node(node) => shape(node),
            })
            .collect();
        let height = below[0].1;
        assert!(below.iter().all(|part| part.1 == height), "of one height");
        (below.iter().map(|part| part.0).sum(), height + 1)
    }

    #[test]
    fn a_large_set_built_one_by_one_stays_in_chunks_and_nodes() {
        let mut set = SortedSet::new();
        for value in 0..60_000_u32 {
            let scattered = value.wrapping_mul(2_654_435_761) >> 8;
            set.apply(&[(scattered, Change::Add)]);
        }
        let elements: Vec<u32> = set.iter().collect();
        assert!(elements.is_sorted_by(|a, b| a < b));
        assert_eq!(set.len(), elements.len());
        let (chunks, height) = shape(set.root.as_ref().unwrap());
        assert!(chunks < 60_000 / (CHUNK / 2), "{chunks} chunks");
        assert_eq!(height, 2);
        for few in elements.chunks(5000) {
            let changes: Vec<(u32, Change)> = few.iter().map(|v| (*v, Change::Add)).collect();
            let bytes = set.bytes();
            set.apply(&changes);
            assert_eq!((set.len(), set.bytes()), (elements.len(), bytes));
        }
        for (place, value) in elements.iter().enumerate() {
            if place % 100 > 0 {
                set.apply(&[(*value, Change::Remove)]);
            }
        }
        let (chunks, height) = shape(set.root.as_ref().unwrap());
        assert_eq!(set.len(), elements.len().div_ceil(100));
        assert!(
            chunks < 60 && height <= 2,
            "{chunks} chunks, {height} levels"
        );
        let all: Vec<(u32, Change)> = elements.iter().map(|v| (*v, Change::Remove)).collect();
        set.apply(&all);
        assert!(set.is_empty() && set.iter().next().is_none());
    }
}
