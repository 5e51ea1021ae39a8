//! A segment and what changed in it -> the next segment, in one pass over both.
//!
//! Between two changed keys whole stretches of rows are copied, so that a merge costs little more
//! than reading and writing the columns.

use jindou_fabric::RegionBuilder;
use jindou_model::{Edge, Narrow, SortedSet, TermId};

use crate::column::{Column, ColumnBuilder};
use crate::domain::Domain;
use crate::segment::Segment;

/// How a segment differs from what it is to become. All of it is effective: nothing is added that
/// is there, and nothing removed that is not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentChanges<'a> {
    pub(crate) added: &'a SortedSet<Edge>,
    pub(crate) removed: &'a SortedSet<Edge>,
    /// Keys that had no edges and will have some.
    pub(crate) gained: &'a SortedSet<u64>,
    /// Keys that had edges and will have none.
    pub(crate) lost: &'a SortedSet<u64>,
}

/// The segment after the changes; `None` if it has no edges then.
///
/// Holds the keys, eight bytes each, before it makes the columns.
pub(crate) fn merged(before: Option<&Segment>, changes: &SegmentChanges<'_>) -> Option<Segment> {
    let edges_before = before.map_or(0, Segment::edges);
    let edges = edges_before + changes.added.len() - changes.removed.len();
    if edges == 0 {
        return None;
    }
    let domain = domain_after(before, changes);
    let rows = domain.len();
    let neighbours = bounds(before, changes);
    let mut pass = Pass {
        before,
        row: 0,
        neighbours: ColumnBuilder::new(edges, neighbours.0, neighbours.1),
        offsets: (rows < edges).then(|| ColumnBuilder::new(rows + 1, 0, edges as u64)),
        rows: 0,
        edges: 0,
    };
    let mut added = changes.added.iter().peekable();
    let mut removed = changes.removed.iter().peekable();
    let mut list = Vec::new();
    while let Some(key) = least(added.peek(), removed.peek()) {
        pass.copy_rows(pass.rows_before(TermId::from_raw(key), &domain));
        list.clear();
        pass.take_row(key, &mut list);
        while let Some((_, gone)) = removed.next_if(|edge| edge.0 == key) {
            if let Ok(place) = list.binary_search(&gone) {
                list.remove(place);
            }
        }
        let kept = list.len();
        while let Some((_, come)) = added.next_if(|edge| edge.0 == key) {
            list.push(come);
        }
        if list.len() > kept {
            list.sort_unstable();
        }
        if !list.is_empty() {
            pass.push_row(&list);
        }
    }
    pass.copy_rows(rows - pass.rows);
    Some(pass.finish(domain))
}

fn least(one: Option<&Edge>, other: Option<&Edge>) -> Option<u64> {
    one.into_iter().chain(other).map(|edge| edge.0).min()
}

/// The domain of the segment after the changes.
fn domain_after(before: Option<&Segment>, changes: &SegmentChanges<'_>) -> Domain {
    let count = before.map_or(0, |segment| segment.domain().len());
    let count = count + changes.gained.len() - changes.lost.len();
    // Not of the allocator, which might keep them while there are columns.
    let mut keys = RegionBuilder::new(count * size_of::<u64>());
    fill_keys_after(before, changes, keys.as_mut_slice());
    Domain::from_sorted(keys.as_mut_slice())
}

/// Writes the keys of the segment after the changes, of which there are as many.
fn fill_keys_after(before: Option<&Segment>, changes: &SegmentChanges<'_>, keys: &mut [u64]) {
    let mut keys = keys.iter_mut();
    let mut push = |key: u64| *keys.next().expect("keys come and go as counted") = key;
    let mut gained = changes.gained.iter().peekable();
    let mut lost = changes.lost.iter().peekable();
    if let Some(segment) = before {
        segment.domain().for_each(&mut |key| {
            let key = key.raw();
            while let Some(new) = gained.next_if(|new| *new < key) {
                push(new);
            }
            if lost.next_if_eq(&key).is_none() {
                push(key);
            }
        });
    }
    gained.for_each(push);
}

/// The least and the greatest neighbour that the segment may have.
fn bounds(before: Option<&Segment>, changes: &SegmentChanges<'_>) -> (u64, u64) {
    let column = before.map(Segment::neighbour_column);
    let old = column.map(|column| (column.base(), column.greatest()));
    let new = changes
        .added
        .iter()
        .map(|(_, neighbour)| (neighbour, neighbour));
    let all = old.into_iter().chain(new);
    all.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
        .unwrap_or((0, 0))
}

/// What was read and written so far.
struct Pass<'a> {
    before: Option<&'a Segment>,
    /// The next row of the segment before.
    row: usize,
    neighbours: ColumnBuilder,
    offsets: Option<ColumnBuilder>,
    /// Rows and edges written.
    rows: usize,
    edges: usize,
}

impl Pass<'_> {
    /// How many rows come before that of a key, which is in the domain or was in that before.
    fn rows_before(&self, key: TermId, domain: &Domain) -> usize {
        if let Some(row) = domain.row(key) {
            return row - self.rows;
        }
        let row = self.before.and_then(|before| before.domain().row(key));
        row.map_or(0, |row| row - self.row)
    }

    /// Copies the next rows as they are.
    fn copy_rows(&mut self, count: usize) {
        let (Some(before), true) = (self.before, count > 0) else {
            return;
        };
        let rows = self.row..self.row + count;
        let column = before.neighbour_column();
        let range = before.bounds(rows.start).0..before.bounds(rows.end - 1).1;
        if let Some(offsets) = &mut self.offsets {
            // What an offset becomes is what it was and the edges written less those read.
            let shift = (self.edges as u64).wrapping_sub(range.start as u64);
            match before.offset_column() {
                Some(old) => {
                    let items = old.narrow().slice(rows.clone());
                    offsets.extend(old.base().wrapping_add(shift), items);
                }
                None => rows
                    .clone()
                    .for_each(|row| offsets.push((row as u64).wrapping_add(shift))),
            }
        }
        self.edges += range.len();
        self.neighbours
            .extend(column.base(), column.narrow().slice(range));
        self.row = rows.end;
        self.rows += count;
    }

    /// Reads the row of a key, if it has one: it is the next.
    fn take_row(&mut self, key: u64, list: &mut Vec<u64>) {
        let Some(before) = self.before else { return };
        let at = before.domain().row(TermId::from_raw(key));
        if at.is_none() {
            return;
        }
        debug_assert_eq!(at, Some(self.row));
        let (begin, end) = before.bounds(self.row);
        let column = before.neighbour_column();
        list.extend((begin..end).map(|edge| column.get(edge)));
        self.row += 1;
    }

    fn push_row(&mut self, list: &[u64]) {
        if let Some(offsets) = &mut self.offsets {
            offsets.push(self.edges as u64);
        }
        self.neighbours.extend(0, Narrow::U64(list));
        self.edges += list.len();
        self.rows += 1;
    }

    fn finish(mut self, domain: Domain) -> Segment {
        if let Some(offsets) = &mut self.offsets {
            offsets.push(self.edges as u64);
        }
        let offsets: Option<Column> = self.offsets.map(ColumnBuilder::finish);
        Segment::from_columns(domain, offsets, self.neighbours.finish())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use jindou_model::Change;
    use proptest::prelude::*;

    use super::*;

    fn keys_of(edges: &BTreeSet<Edge>) -> BTreeSet<u64> {
        edges.iter().map(|edge| edge.0).collect()
    }

    fn set<T: Copy + Ord>(items: impl Iterator<Item = T>) -> SortedSet<T> {
        let mut set = SortedSet::new();
        set.apply(&items.map(|item| (item, Change::Add)).collect::<Vec<_>>());
        set
    }

    fn vertices(pairs: BTreeSet<(u64, u64)>, functional: bool) -> BTreeSet<Edge> {
        let vertex = |number: u64| TermId::vertex(number).raw();
        let pairs = pairs.into_iter();
        let edge = |(key, to): (u64, u64)| (vertex(key), vertex(if functional { key } else { to }));
        pairs.map(edge).collect()
    }

    proptest! {
        #[test]
        fn a_merge_gives_the_segment_of_the_edges_that_are_left(
            before in proptest::collection::btree_set((0..400_u64, 0..300_u64), 0..400),
            after in proptest::collection::btree_set((0..400_u64, 0..90_000_u64), 0..60),
            keep in 0..20_usize,
            functional: (bool, bool),
        ) {
            let before = vertices(before, functional.0);
            let mut now: BTreeSet<Edge> = before.iter().enumerate()
                .filter(|(place, _)| keep == 0 || place % keep != 1)
                .map(|(_, edge)| *edge)
                .collect();
            now.extend(vertices(after, functional.1));
            let list: Vec<Edge> = before.iter().copied().collect();
            let segment = (!list.is_empty()).then(|| Segment::from_sorted(&list));
            let (had, has) = (keys_of(&before), keys_of(&now));
            let merged = merged(segment.as_ref(), &SegmentChanges {
                added: &set(now.difference(&before).copied()),
                removed: &set(before.difference(&now).copied()),
                gained: &set(has.difference(&had).copied()),
                lost: &set(had.difference(&has).copied()),
            });
            let mut found = Vec::new();
            if let Some(merged) = &merged {
                prop_assert!(merged.check(false, &|_| true).is_ok());
                prop_assert_eq!(merged.offset_column().is_none(), has.len() == now.len());
                merged.domain().for_each(&mut |key| {
                    let list = merged.neighbours(key);
                    found.extend((0..list.len()).map(|i| (key.raw(), list.get(i).raw())));
                });
            }
            prop_assert_eq!(found, now.into_iter().collect::<Vec<_>>());
        }
    }
}
