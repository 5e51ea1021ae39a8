//! All edges of one (predicate, direction): which are the neighbours of this key?
//!
//! The immutable base of design section 2: a domain (key -> row), offsets (row -> run), and the
//! sorted neighbours of all rows in one column. Where every key has exactly one neighbour the
//! offsets are left out, and a neighbour is one load away.

use jindou_fabric::Region;
use jindou_model::{Cursor, IdRanges, Neighbours, ShardId, TermId, with_narrow};
use jindou_partition::Shards;

use crate::StoreError;
use crate::column::Column;
use crate::domain::Domain;
use crate::image::{ImageReader, ImageWriter};
use crate::layout::{Places, SegmentLayout};

/// Keys looked up together, so that their loads overlap.
const LOOKUP_BATCH: usize = 256;

/// Neighbours of a list for each range of a filter beyond which the ends of these are searched for.
const SEEK_SHARE: usize = 16;

/// The base of a segment.
#[derive(Clone, Debug)]
pub struct Segment {
    domain: Domain,
    /// Where each row's run begins, and one more; absent where each row has one neighbour.
    offsets: Option<Column>,
    neighbours: Column,
    /// What stands for no neighbour in a row, where rows have one or none: no neighbour's id.
    hole: u64,
}

/// Rows of one shard.
#[derive(Clone, Default)]
struct Rows {
    keys: Vec<u64>,
    /// Where the neighbours of each key begin.
    offsets: Vec<u64>,
    neighbours: Vec<u64>,
}

impl Rows {
    fn segment(mut self, shards: Shards) -> Segment {
        self.offsets.push(self.neighbours.len() as u64);
        let functional = self.keys.len() == self.neighbours.len();
        Segment::from_columns(
            Domain::of_shard(&self.keys, shards),
            (!functional).then(|| Column::from_values(&self.offsets)),
            Column::from_values(&self.neighbours),
        )
    }
}

/// As [`Segment::expand`] for the cursor's key alone, of which `list` are the neighbours.
pub(crate) fn expand_one(
    list: Neighbours<'_>,
    cursor: &mut Cursor,
    filter: Option<&IdRanges>,
    budget: usize,
    rows: &mut Vec<u32>,
    out: &mut Vec<TermId>,
) {
    let before = out.len();
    list.copy(cursor.offset, budget.saturating_sub(before), out);
    let stop = cursor.offset + out.len() - before;
    if let Some(filter) = filter {
        let mut kept = before;
        for index in before..out.len() {
            out[kept] = out[index];
            kept += usize::from(filter.contains(out[index]));
        }
        out.truncate(kept);
    }
    rows.resize(out.len(), cursor.key as u32);
    if stop < list.len() {
        cursor.offset = stop;
    } else {
        *cursor = Cursor {
            key: cursor.key + 1,
            offset: 0,
        };
    }
}

/// Stands for nothing: no id is so large.
const NO_HOLE: u64 = u64::MAX;

impl Segment {
    /// The segment of these edges: sorted (key, neighbour) pairs, distinct but for named graphs.
    #[must_use]
    pub fn from_sorted(edges: &[(u64, u64)]) -> Self {
        Self::from_sorted_apart(edges, Shards::ONE)
    }

    /// The same of edges whose keys that are vertices or literals are so far apart as those of one of the shards.
    pub(crate) fn from_sorted_apart(edges: &[(u64, u64)], strides: Shards) -> Self {
        debug_assert!(edges.is_sorted());
        let mut keys = Vec::new();
        let mut offsets = Vec::new();
        let mut before = None;
        for (index, (key, _)) in edges.iter().enumerate() {
            if before != Some(*key) {
                keys.push(*key);
                offsets.push(index as u64);
                before = Some(*key);
            }
        }
        offsets.push(edges.len() as u64);
        let functional = keys.len() == edges.len();
        let neighbours: Vec<u64> = edges.iter().map(|(_, neighbour)| *neighbour).collect();
        Self {
            domain: Domain::of_shard(&keys, strides),
            offsets: (!functional).then(|| Column::from_values(&offsets)),
            neighbours: Column::from_values(&neighbours),
            hole: NO_HOLE,
        }
    }

    /// The segment of lists, some of them perhaps empty: `offsets` tells where the list of each of
    /// the sorted `keys` begins among `neighbours`, and has one more.
    #[must_use]
    pub(crate) fn from_lists(keys: &[u64], offsets: &[u64], neighbours: &[u64]) -> Self {
        debug_assert!(offsets.is_sorted() && offsets.len() == keys.len() + 1);
        let mut lengths = offsets.windows(2).map(|pair| pair[1] - pair[0]);
        if lengths.any(|length| length > 1) {
            return Self {
                domain: Domain::from_sorted(keys),
                offsets: Some(Column::from_values(offsets)),
                neighbours: Column::from_values(neighbours),
                hole: NO_HOLE,
            };
        }
        // The next number keeps the column narrow.
        let hole = neighbours.iter().max().map_or(0, |most| most + 1);
        let in_row = |pair: &[u64]| match pair[0] < pair[1] {
            true => neighbours[pair[0] as usize],
            false => hole,
        };
        let values: Vec<u64> = offsets.windows(2).map(in_row).collect();
        Self {
            domain: Domain::from_sorted(keys),
            offsets: None,
            neighbours: Column::from_values(&values),
            hole,
        }
    }

    /// The rows of each shard that is wanted as a segment of its own, in the order of the shards; empty
    /// where a shard has none.
    #[must_use]
    pub(crate) fn cut(&self, shards: Shards, wanted: impl Fn(ShardId) -> bool) -> Vec<Self> {
        let mut count = 0;
        let places = shards.all().map(|shard| {
            wanted(shard).then(|| {
                count += 1;
                count - 1
            })
        });
        let places: Vec<Option<usize>> = places.collect();
        self.cut_by(count, |key| places[shards.owner(key).0 as usize], shards)
    }

    /// Rows in so many groups, each of which is a segment of its own, perhaps an empty one. The vertices and literals
    /// of one group are `strides` apart.
    pub(crate) fn cut_by(
        &self,
        groups: usize,
        group_of: impl Fn(TermId) -> Option<usize>,
        strides: Shards,
    ) -> Vec<Self> {
        let mut parts = vec![Rows::default(); groups];
        let mut row = 0;
        self.domain.for_each(&mut |key| {
            let (begin, end) = self.bounds(row);
            if let Some(group) = group_of(key)
                && !self.run(row).is_empty()
            {
                let part = &mut parts[group];
                part.keys.push(key.raw());
                part.offsets.push(part.neighbours.len() as u64);
                let neighbours = (begin..end).map(|edge| self.neighbours.get(edge));
                part.neighbours.extend(neighbours);
            }
            row += 1;
        });
        let segments = parts.into_iter().map(|part| part.segment(strides));
        segments.collect()
    }

    /// The segment of these columns, which agree with each other.
    pub(crate) fn from_columns(
        domain: Domain,
        offsets: Option<Column>,
        neighbours: Column,
    ) -> Self {
        Self {
            domain,
            offsets,
            neighbours,
            hole: NO_HOLE,
        }
    }

    /// True if some rows may have no neighbour and say so by a number that stands for none.
    pub(crate) fn has_holes(&self) -> bool {
        self.hole != NO_HOLE
    }

    /// The same with all arrays in one region: it costs a copy of them.
    #[must_use]
    pub(crate) fn packed(self) -> Self {
        let hole = self.hole;
        let mut image = ImageWriter::default();
        self.write(&mut image);
        drop(self);
        let packed = Self::read(&mut image.in_memory());
        Self {
            hole,
            ..packed.expect("a segment reads back as it was written")
        }
    }

    /// Where its arrays lie: in one region, as in a base, an overlay or what is published.
    ///
    /// # Panics
    /// If they do not.
    pub(crate) fn layout(&self) -> SegmentLayout {
        let memory = self.neighbours.region().memory();
        let places = Places::beside(&memory);
        SegmentLayout {
            region: memory.id(),
            address: memory.as_ptr() as u64,
            region_bytes: memory.len() as u64,
            domain: self.domain.layout(&places),
            offsets: self.offsets.as_ref().map(|column| places.column(column)),
            neighbours: places.column(&self.neighbours),
            hole: self.has_holes().then_some(self.hole),
        }
    }

    /// The neighbours of all rows.
    pub(crate) fn neighbour_column(&self) -> &Column {
        &self.neighbours
    }

    /// Where each row begins, and one more; `None` where each has one neighbour.
    pub(crate) fn offset_column(&self) -> Option<&Column> {
        self.offsets.as_ref()
    }

    /// The keys.
    #[must_use]
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Number of edges.
    #[must_use]
    pub fn edges(&self) -> usize {
        self.neighbours.len()
    }

    /// Bytes of its columns.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.domain.bytes()
            + self.offsets.as_ref().map_or(0, Column::bytes)
            + self.neighbours.bytes()
    }

    /// The neighbours of a key.
    #[inline]
    #[must_use]
    pub fn neighbours(&self, key: TermId) -> Neighbours<'_> {
        match self.domain.row(key) {
            Some(row) => self.run(row),
            None => Neighbours::NONE,
        }
    }

    /// The range of edge numbers of a row, which may be a hole.
    #[inline]
    pub(crate) fn bounds(&self, row: usize) -> (usize, usize) {
        match &self.offsets {
            None => (row, row + 1),
            Some(offsets) => (offsets.get(row) as usize, offsets.get(row + 1) as usize),
        }
    }

    /// The neighbours of a row.
    #[inline]
    pub(crate) fn run(&self, row: usize) -> Neighbours<'_> {
        let (begin, end) = self.bounds(row);
        if self.hole != NO_HOLE && self.neighbours.get(begin) == self.hole {
            return Neighbours::NONE;
        }
        Neighbours::Run {
            base: self.neighbours.base(),
            items: self.neighbours.narrow().slice(begin..end),
        }
    }

    /// The range of edge numbers of a key, for columns beside the neighbours.
    #[must_use]
    pub fn edge_range(&self, key: TermId) -> std::ops::Range<usize> {
        match self.domain.row(key) {
            Some(row) => {
                let (begin, end) = self.bounds(row);
                begin..end
            }
            None => 0..0,
        }
    }

    /// Key and neighbour of an edge, by its number. Not of a segment with holes or empty lists.
    ///
    /// # Panics
    /// If there is no such edge.
    #[must_use]
    pub(crate) fn edge_at(&self, edge: usize) -> (TermId, TermId) {
        let row = match &self.offsets {
            None => edge,
            Some(offsets) => {
                // The last row that does not begin behind it.
                let narrow = edge as u64 - offsets.base();
                offsets.narrow().seek(0, narrow + 1) - 1
            }
        };
        let neighbour = TermId::from_raw(self.neighbours.get(edge));
        (self.domain.key_at(row), neighbour)
    }

    /// A segment whose arrays lie so in a region, as those of another node do that are mapped here; `None`
    /// where they do not. What they hold is not looked at: see [`Segment::find`].
    #[must_use]
    pub fn placed(layout: &SegmentLayout, region: &Region) -> Option<Self> {
        let offsets = layout.offsets.as_ref();
        let offsets = offsets.map(|array| Column::placed(array, region).ok_or(()));
        Some(Self {
            domain: Domain::placed(&layout.domain, region)?,
            offsets: offsets.transpose().ok()?,
            neighbours: Column::placed(&layout.neighbours, region)?,
            hole: layout.hole.unwrap_or(NO_HOLE),
        })
    }

    /// The neighbours of a key, by their numbers: none of one without a row. `None` where the arrays contradict
    /// each other, as those of a [placed](Segment::placed) segment may.
    #[inline]
    #[must_use]
    pub fn find(&self, key: TermId) -> Option<std::ops::Range<usize>> {
        let Some(row) = self.domain.row(key) else {
            return Some(0..0);
        };
        match &self.offsets {
            None if row >= self.neighbours.len() => None,
            None if self.has_holes() && self.neighbours.get(row) == self.hole => Some(0..0),
            None => Some(row..row + 1),
            Some(offsets) if row + 1 >= offsets.len() => None,
            Some(offsets) => {
                let (begin, end) = (offsets.get(row) as usize, offsets.get(row + 1) as usize);
                (begin <= end && end <= self.neighbours.len()).then_some(begin..end)
            }
        }
    }

    /// Bytes of the arrays that are read to find the neighbours of a key, and of each of these.
    #[must_use]
    pub fn read_bytes(&self) -> (usize, usize) {
        let bounds = self
            .offsets
            .as_ref()
            .map_or(0, |offsets| 2 * usize::from(offsets.width()));
        (bounds, usize::from(self.neighbours.width()))
    }

    /// Neighbours by their numbers, all of one key.
    ///
    /// # Panics
    /// If there are no such.
    #[inline]
    #[must_use]
    pub fn neighbours_at(&self, numbers: std::ops::Range<usize>) -> Neighbours<'_> {
        Neighbours::Run {
            base: self.neighbours.base(),
            items: self.neighbours.narrow().slice(numbers),
        }
    }

    /// Appends those neighbours by their numbers, all of one key, that are in `filter`.
    ///
    /// # Panics
    /// As [`Segment::neighbours_at`].
    #[inline]
    pub fn copy(
        &self,
        numbers: std::ops::Range<usize>,
        filter: Option<&IdRanges>,
        out: &mut Vec<TermId>,
    ) {
        self.copy_run(numbers, filter, out);
    }

    /// The neighbours of many keys: appends one entry a key to `out`.
    pub fn locate<'a>(&'a self, keys: &[TermId], out: &mut Vec<Neighbours<'a>>) {
        let mut rows = Vec::with_capacity(keys.len().min(LOOKUP_BATCH));
        for batch in keys.chunks(LOOKUP_BATCH) {
            self.domain.rows(batch, &mut rows);
            out.extend(rows.iter().map(|row| match *row {
                usize::MAX => Neighbours::NONE,
                row => self.run(row),
            }));
        }
    }

    /// How many neighbours many keys have: appends one number a key to `out`, without a look at the neighbours.
    pub fn degrees(&self, keys: &[TermId], out: &mut Vec<u64>) {
        let mut rows = Vec::with_capacity(keys.len().min(LOOKUP_BATCH));
        for batch in keys.chunks(LOOKUP_BATCH) {
            self.domain.rows(batch, &mut rows);
            out.extend(rows.iter().map(|row| match *row {
                usize::MAX => 0,
                row => self.degree(row),
            }));
        }
    }

    #[inline]
    fn degree(&self, row: usize) -> u64 {
        let (begin, end) = self.bounds(row);
        let is_hole = self.hole != NO_HOLE && self.neighbours.get(begin) == self.hole;
        if is_hole { 0 } else { (end - begin) as u64 }
    }

    /// Follows the edges of `keys` from `cursor` on: for each neighbour that is in `filter`,
    /// appends the index of its key to `rows` and itself to `out`, until `out` holds `budget`
    /// entries or more, or the keys are done (then `cursor.key == keys.len()`).
    ///
    /// `budget` is overshot by one batch of keys with few neighbours at most. Of one key it goes
    /// through as many neighbours as there is room for at most, whatever the filter leaves of them, so
    /// that a list can be shared out.
    pub fn expand(
        &self,
        keys: &[TermId],
        cursor: &mut Cursor,
        filter: Option<&IdRanges>,
        budget: usize,
        rows: &mut Vec<u32>,
        out: &mut Vec<TermId>,
    ) {
        let mut found = Vec::with_capacity(LOOKUP_BATCH.min(keys.len()));
        while cursor.key < keys.len() && out.len() < budget {
            let end = keys.len().min(cursor.key + LOOKUP_BATCH);
            self.domain.rows(&keys[cursor.key..end], &mut found);
            self.expand_rows(&found, cursor, filter, budget, rows, out);
            if keys.len() == 1 {
                return;
            }
        }
    }

    /// As [`Segment::expand`] for the keys from the cursor's on that have these rows, or none
    /// where that is `usize::MAX`; moves the cursor behind them, or to where the budget ended.
    #[inline]
    pub(crate) fn expand_rows(
        &self,
        found: &[usize],
        cursor: &mut Cursor,
        filter: Option<&IdRanges>,
        budget: usize,
        rows: &mut Vec<u32>,
        out: &mut Vec<TermId>,
    ) {
        if self.offsets.is_none() {
            self.expand_functional(found, cursor.key, filter, rows, out);
            cursor.key += found.len();
        } else {
            self.expand_runs(found, cursor, filter, budget, rows, out);
        }
    }

    /// Each row has one neighbour, or is a hole.
    fn expand_functional(
        &self,
        found: &[usize],
        first_key: usize,
        filter: Option<&IdRanges>,
        rows: &mut Vec<u32>,
        out: &mut Vec<TermId>,
    ) {
        // A key without a row has one that is beyond them, be there none.
        let rows_of_keys = self.neighbours.len();
        let are_all_there = found
            .iter()
            .fold(true, |all, row| all & (*row < rows_of_keys));
        if are_all_there && filter.is_none() && !self.has_holes() {
            rows.extend((first_key..).take(found.len()).map(|key| key as u32));
            let base = self.neighbours.base();
            with_narrow!(self.neighbours.narrow(), items => {
                let value = |row: &usize| base.wrapping_add(u64::from(items[*row]));
                out.extend(found.iter().map(|row| TermId::from_raw(value(row))));
            });
            return;
        }
        let before = out.len();
        rows.resize(before + found.len(), 0);
        out.resize(before + found.len(), TermId::NONE);
        let room = (&mut rows[before..], &mut out[before..]);
        let count = self.copy_neighbours(found, first_key, filter, room);
        rows.truncate(before + count);
        out.truncate(before + count);
    }

    /// Writes the neighbours that are there and wanted, of keys of which each may have one, and how
    /// many these are. Each is written, and the next one over it where it was none: a jump on what is
    /// as good as random costs more.
    fn copy_neighbours(
        &self,
        found: &[usize],
        first_key: usize,
        filter: Option<&IdRanges>,
        (rows, out): (&mut [u32], &mut [TermId]),
    ) -> usize {
        let (base, hole) = (self.neighbours.base(), self.hole);
        let last = self.neighbours.len().wrapping_sub(1);
        let mut count = 0;
        with_narrow!(self.neighbours.narrow(), items => {
            for (index, row) in found.iter().enumerate() {
                // A key without a row reads the last one; there is none where there is no row.
                let Some(item) = items.get((*row).min(last)) else {
                    break;
                };
                let value = TermId::from_raw(base.wrapping_add(u64::from(*item)));
                rows[count] = (first_key + index) as u32;
                out[count] = value;
                let is_wanted = filter.is_none_or(|filter| filter.contains(value));
                count += usize::from((*row <= last) & (value.raw() != hole) & is_wanted);
            }
        });
        count
    }

    /// As [`Segment::expand`] for the keys with these rows; moves the cursor behind them.
    fn expand_runs(
        &self,
        found: &[usize],
        cursor: &mut Cursor,
        filter: Option<&IdRanges>,
        budget: usize,
        rows: &mut Vec<u32>,
        out: &mut Vec<TermId>,
    ) {
        // Bounds some keys ahead, so that their loads overlap.
        const AHEAD: usize = 16;
        let offsets = self.offsets.as_ref();
        let offsets = offsets.map(|column| (column.base(), column.narrow()));
        let bounds_of = |row: &usize| match (*row, offsets) {
            (usize::MAX, _) => (0, 0),
            (row, None) => (row, row + 1),
            (row, Some((base, offsets))) => {
                let bound = |row| base.wrapping_add(offsets.get(row)) as usize;
                (bound(row), bound(row + 1))
            }
        };
        let mut ahead = [(0, 0); AHEAD];
        for (slot, row) in ahead.iter_mut().zip(found) {
            *slot = bounds_of(row);
        }
        for index in 0..found.len() {
            let (begin, end) = ahead[index % AHEAD];
            if let Some(row) = found.get(index + AHEAD) {
                ahead[index % AHEAD] = bounds_of(row);
            }
            let begin = begin + cursor.offset;
            let room = budget.saturating_sub(out.len()).max(1);
            let stop = end.min(begin.saturating_add(room));
            self.copy_run(begin..stop, filter, out);
            rows.resize(out.len(), cursor.key as u32);
            if stop < end {
                cursor.offset += stop - begin;
                return;
            }
            cursor.offset = 0;
            cursor.key += 1;
            if out.len() >= budget {
                return;
            }
        }
    }

    #[inline]
    fn copy_run(
        &self,
        range: std::ops::Range<usize>,
        filter: Option<&IdRanges>,
        out: &mut Vec<TermId>,
    ) {
        let base = self.neighbours.base();
        if let Some(filter) = filter
            && filter.ranges().len() * SEEK_SHARE < range.len()
        {
            return self.copy_ranges(range, filter, out);
        }
        with_narrow!(self.neighbours.narrow(), items => {
            let ids = items[range]
                .iter()
                .map(|item| TermId::from_raw(base.wrapping_add(u64::from(*item))));
            match filter {
                None => out.extend(ids),
                Some(filter) => filter.copy_members(ids, out),
            }
        });
    }

    /// Copies what of a run lies in few ranges: searches for their ends.
    fn copy_ranges(&self, range: std::ops::Range<usize>, filter: &IdRanges, out: &mut Vec<TermId>) {
        let base = self.neighbours.base();
        let items = self.neighbours.narrow().slice(range);
        let mut from = 0;
        for (first, end) in filter.ranges() {
            // Nothing in a column is below its base.
            let begin = items.seek(from, first.saturating_sub(base));
            from = match end.checked_sub(base) {
                Some(end) => items.seek(begin, end),
                None => begin,
            };
            let found = items.slice(begin..from);
            with_narrow!(found, items => out.extend(
                items.iter().map(|item| TermId::from_raw(base.wrapping_add(u64::from(*item))))
            ));
            if from == items.len() {
                return;
            }
        }
    }

    /// Reads every edge: are the runs in order, with no neighbour twice unless `repeats`, and are
    /// all ids `known`?
    pub(crate) fn check(
        &self,
        repeats: bool,
        known: &dyn Fn(TermId) -> bool,
    ) -> Result<(), &'static str> {
        if !self.domain.is_sound() {
            return Err("a key is not found in its row");
        }
        if (0..self.domain.len()).any(|row| {
            let (begin, end) = self.bounds(row);
            begin >= end || end > self.edges() || (row == 0 && begin != 0)
        }) {
            return Err("its rows are out of order");
        }
        let mut sound = true;
        self.domain.for_each(&mut |key| {
            let list = self.neighbours(key);
            let mut before = None;
            for index in 0..list.len() {
                let id = list.get(index);
                let follows = before.is_none_or(|before| before < id || (repeats && before == id));
                sound &= follows && known(id);
                before = Some(id);
            }
            sound &= known(key);
        });
        match sound {
            true => Ok(()),
            false => Err("a neighbour is out of order, or is no term of the store"),
        }
    }

    pub(crate) fn write(&self, image: &mut ImageWriter) {
        self.domain.write(image);
        image.word(u64::from(self.offsets.is_some()));
        if let Some(offsets) = &self.offsets {
            offsets.write(image);
        }
        self.neighbours.write(image);
    }

    pub(crate) fn read(image: &mut ImageReader) -> Result<Self, StoreError> {
        let domain = Domain::read(image)?;
        let offsets = if image.word()? == 1 {
            Some(Column::read(image)?)
        } else {
            None
        };
        let neighbours = Column::read(image)?;
        let sound = match &offsets {
            None => neighbours.len() == domain.len(),
            Some(offsets) => {
                offsets.len() == domain.len() + 1
                    && offsets.get(domain.len()) == neighbours.len() as u64
            }
        };
        if !sound {
            return Err(image.corrupt("the columns of a segment contradict each other"));
        }
        Ok(Self {
            domain,
            offsets,
            neighbours,
            hole: NO_HOLE,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn vertex(local: u64) -> u64 {
        TermId::vertex(local).raw()
    }

    proptest! {
        #[test]
        fn expansion_gives_the_edges_in_order_whatever_the_budget(
            pairs in proptest::collection::btree_set((0..60_u64, 0..500_u64), 0..300),
            functional: bool,
            budget in 1..50_usize,
            asked in proptest::collection::vec(0..70_u64, 0..40),
        ) {
            let edges: BTreeSet<(u64, u64)> = pairs
                .into_iter()
                .map(|(key, value)| (vertex(key), vertex(if functional { key * 3 } else { value })))
                .collect();
            let list: Vec<(u64, u64)> = edges.iter().copied().collect();
            let segment = Segment::from_sorted(&list);
            prop_assert_eq!(segment.edges(), list.len());
            let mut filter = IdRanges::new();
            filter.push(TermId::from_raw(vertex(20)), TermId::from_raw(vertex(90)));
            filter.push(TermId::from_raw(vertex(95)), TermId::from_raw(vertex(300)));
            let keys: Vec<TermId> = asked.iter().map(|k| TermId::from_raw(vertex(*k))).collect();
            for filter in [None, Some(&filter)] {
                let expected: Vec<(u32, u64)> = keys
                    .iter()
                    .enumerate()
                    .flat_map(|(index, key)| {
                        list.iter()
                            .filter(move |edge| edge.0 == key.raw())
                            .map(move |edge| (index as u32, edge.1))
                    })
                    .filter(|(_, id)| filter.is_none_or(|f| f.contains(TermId::from_raw(*id))))
                    .collect();
                let mut cursor = Cursor::default();
                let mut seen = Vec::new();
                while cursor.key < keys.len() {
                    let (mut rows, mut out) = (Vec::new(), Vec::new());
                    segment.expand(&keys, &mut cursor, filter, budget, &mut rows, &mut out);
                    prop_assert_eq!(rows.len(), out.len());
                    seen.extend(rows.into_iter().zip(out.iter().map(|id| id.raw())));
                }
                prop_assert_eq!(seen, expected);
            }
            let mut located = Vec::new();
            segment.locate(&keys, &mut located);
            for (key, neighbours) in keys.iter().zip(located) {
                let expected: Vec<u64> =
                    list.iter().filter(|e| e.0 == key.raw()).map(|e| e.1).collect();
                let mut out = Vec::new();
                neighbours.copy(0, usize::MAX, &mut out);
                prop_assert_eq!(out.iter().map(|id| id.raw()).collect::<Vec<_>>(), expected);
                for value in 0..510 {
                    let id = TermId::from_raw(vertex(value));
                    prop_assert_eq!(neighbours.contains(id), edges.contains(&(key.raw(), id.raw())));
                }
            }
        }
    }
}
