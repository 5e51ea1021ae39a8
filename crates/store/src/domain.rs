//! The keys of a segment: has this id a row here, and which?
//!
//! Rows are numbered in the order of ids. Because vertices are numbered by characteristic set, a
//! domain is mostly a few dense runs of ids: then a row is a subtraction. What is scattered is a
//! bitmap with counts (one word a lookup) or, where keys are rare, a sorted column.
//!
//! Where a store has several shards, the vertices and literals of one are a *stride* apart, a power of
//! two: a row is a subtraction and a shift then, and an id between two strides, which is another
//! shard's, has none. Both are told by one rotation: bits that do not belong there come in at the
//! top, and make the number larger than any other. One shard rotates by nothing.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use jindou_fabric::{Region, RegionBuilder};
use jindou_model::{IdRanges, TermId, TermKind, with_narrow};
use jindou_partition::{MOST_SHARDS, Shards};

use crate::StoreError;
use crate::column::Column;
use crate::image::{ImageReader, ImageWriter};
use crate::layout::{KeysLayout, PartLayout, Places};

/// So many dense runs are searched before bitmaps are the better choice for the shorter ones.
const MOST_RUNS: usize = 64;
/// Where there are more, a run is so long at least, or it is no part of its own.
const LEAST_RUN: usize = 64;
/// What lies between dense runs is so many parts at most.
const MOST_PIECES: usize = 8;
/// A bitmap is chosen where there is a key for so many ids at least.
const BITMAP_SPREAD: u64 = 64;
/// Keys so far apart may be of different parts.
const GAP: u64 = 4096;
/// Ids of a word of a bitmap: a bit for each, and above them the count of keys before the word.
pub(crate) const WORD_IDS: u64 = 32;
/// So many keys are compared with the bounds of a part at once.
const MANY_KEYS: usize = 32;
/// In a file, the bit of the word of a part's shape where its stride begins, and those below.
const STRIDE_AT: u32 = 8;
const SHAPE_MASK: u64 = (1 << STRIDE_AT) - 1;

/// Keys that are next to each other or of one kind.
#[derive(Clone, Debug)]
struct Part {
    /// First and last key.
    first: u64,
    last: u64,
    /// Row of the first key.
    row: usize,
    /// Number of keys.
    len: usize,
    /// Each key is the first and a multiple of two to this power.
    stride_bits: u32,
    keys: Keys,
}

#[derive(Clone, Debug)]
enum Keys {
    /// Every id from the first to the last, a stride apart.
    Dense,
    /// Words of 32 bits, one for each stride, and the count of those before.
    Bitmap(Region),
    /// The ids.
    Sorted(Column),
}

/// A set of ids, each with a row number.
#[derive(Clone, Debug)]
pub struct Domain {
    parts: Vec<Part>,
    len: usize,
}

impl Domain {
    /// The domain of these keys, which are sorted and distinct.
    #[must_use]
    pub fn from_sorted(keys: &[u64]) -> Self {
        Self::of_shard(keys, Shards::ONE)
    }

    /// The domain of these keys, which are sorted and distinct, and all of the same one of the shards.
    #[must_use]
    pub fn of_shard(keys: &[u64], shards: Shards) -> Self {
        debug_assert!(keys.is_sorted_by(|a, b| a < b));
        let owner = |raw: u64| shards.owner(TermId::from_raw(raw));
        debug_assert!(keys.iter().all(|key| owner(*key) == owner(keys[0])));
        let mut parts = Parts::default();
        for of_kind in keys.chunk_by(|a, b| kind_of(*a) == kind_of(*b)) {
            parts.bits = shards.stride_bits(TermId::from_raw(of_kind[0]).kind());
            parts.add(of_kind);
        }
        Self {
            parts: parts.parts,
            len: keys.len(),
        }
    }

    /// Number of keys.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True of a domain without keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The row of a key.
    #[inline]
    #[must_use]
    pub fn row(&self, id: TermId) -> Option<usize> {
        let raw = id.raw();
        let part = match self.parts.as_slice() {
            [only] => only,
            parts => {
                let after = parts.partition_point(|part| part.first <= raw);
                parts.get(after.checked_sub(1)?)?
            }
        };
        if raw < part.first || raw > part.last {
            return None;
        }
        part.row_of(raw)
    }

    /// The key of a row.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn key_at(&self, row: usize) -> TermId {
        let after = self.parts.partition_point(|part| part.row <= row);
        let part = &self.parts[after - 1];
        TermId::from_raw(part.key_at(row - part.row))
    }

    /// Looks up many keys at once: `rows[i]` becomes the row of `keys[i]`, or `usize::MAX`.
    ///
    /// Where the domain is one or a few dense runs no memory is touched.
    pub fn rows(&self, keys: &[TermId], rows: &mut Vec<usize>) {
        rows.clear();
        if let [only] = self.parts.as_slice() {
            return only.push_rows(keys, rows);
        }
        // Keys mostly come in runs from the same part.
        let mut rest = keys;
        while let Some(key) = rest.first() {
            let after = self.parts.partition_point(|part| part.first <= key.raw());
            let Some(part) = after.checked_sub(1).map(|index| &self.parts[index]) else {
                rows.push(usize::MAX);
                rest = &rest[1..];
                continue;
            };
            let next = self.parts.get(after).map_or(u64::MAX, |part| part.first);
            let span = next - part.first;
            let is_here = |key: &TermId| key.raw().wrapping_sub(part.first) < span;
            let are_here = |keys: &&[TermId]| keys.iter().fold(true, |all, key| all & is_here(key));
            let many = MANY_KEYS * rest.chunks_exact(MANY_KEYS).take_while(are_here).count();
            let some = rest[many..].iter().take_while(|key| is_here(key)).count();
            let count = (many + some).max(1);
            part.push_rows(&rest[..count], rows);
            rest = &rest[count..];
        }
    }

    /// Calls `visit` with each key in order.
    pub fn for_each(&self, visit: &mut dyn FnMut(TermId)) {
        for part in &self.parts {
            match &part.keys {
                Keys::Dense => {
                    (0..part.len).for_each(|row| visit(TermId::from_raw(part.nth(row as u64))));
                }
                Keys::Bitmap(words) => for_each_bit(words.as_slice(), &mut |bit| {
                    visit(TermId::from_raw(part.nth(bit)));
                }),
                Keys::Sorted(column) => {
                    (0..column.len()).for_each(|i| visit(TermId::from_raw(column.get(i))));
                }
            }
        }
    }

    /// Calls `visit` with the keys in order, as many at once as follow one another: the first, how many, and the row
    /// of the first.
    pub(crate) fn for_each_stretch(&self, visit: &mut dyn FnMut(TermId, usize, usize)) {
        for part in &self.parts {
            part.for_each_stretch(&mut |strides, count, row| {
                if part.stride_bits == 0 {
                    return visit(TermId::from_raw(part.nth(strides)), count, row);
                }
                for place in 0..count {
                    let id = part.nth(strides + place as u64);
                    visit(TermId::from_raw(id), 1, row + place);
                }
            });
        }
    }

    /// The keys that are no vertices, those in `within` where that is given, as ranges of ids;
    /// costs as many ranges as there are runs of keys, and the words of bitmaps between.
    #[must_use]
    pub fn literal_ranges(&self, within: Option<&IdRanges>) -> IdRanges {
        let mut ranges = IdRanges::new();
        for part in self.literal_parts() {
            match within {
                None => part.add_ranges((part.first, part.last + 1), &mut ranges),
                Some(within) => {
                    let ends_before = |window: &(u64, u64)| window.1 <= part.first;
                    let windows = within.ranges();
                    let windows = &windows[windows.partition_point(ends_before)..];
                    for (first, end) in windows.iter().take_while(|window| window.0 <= part.last) {
                        let window = (part.first.max(*first), (part.last + 1).min(*end));
                        part.add_ranges(window, &mut ranges);
                    }
                }
            }
        }
        ranges
    }

    /// True if [`Domain::literal_ranges`] is a short list.
    #[must_use]
    pub fn literals_are_dense(&self) -> bool {
        // Between the strides of a shard are the ids of others, so that each is a range.
        let are_few = |part: &Part| part.stride_bits == 0 || part.len <= MOST_RUNS;
        self.literal_parts()
            .all(|part| matches!(part.keys, Keys::Dense) && are_few(part))
    }

    /// True if looking a key up is no search.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        let is_sorted = |part: &Part| matches!(part.keys, Keys::Sorted(_));
        !self.parts.iter().any(is_sorted)
    }

    /// Number of keys that are no vertices.
    #[must_use]
    pub fn literal_keys(&self) -> usize {
        self.literal_parts().map(|part| part.len).sum()
    }

    fn literal_parts(&self) -> impl Iterator<Item = &Part> {
        self.parts
            .iter()
            .filter(|part| TermId::from_raw(part.first).kind() != TermKind::Vertex)
    }

    /// Bytes of bitmaps, columns and parts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let arrays: usize = self
            .parts
            .iter()
            .map(|part| match &part.keys {
                Keys::Dense => 0,
                Keys::Bitmap(words) => words.len(),
                Keys::Sorted(column) => column.bytes(),
            })
            .sum();
        arrays + self.parts.len() * size_of::<Part>()
    }

    /// Where its parts lie.
    pub(crate) fn layout(&self, places: &Places<'_>) -> Vec<PartLayout> {
        let part = |part: &Part| PartLayout {
            first: part.first,
            last: part.last,
            row: part.row as u64,
            len: part.len as u64,
            stride_bits: part.stride_bits,
            keys: match &part.keys {
                Keys::Dense => KeysLayout::Dense,
                Keys::Bitmap(words) => KeysLayout::Bitmap(places.words(words)),
                Keys::Sorted(column) => KeysLayout::Sorted(places.column(column)),
            },
        };
        self.parts.iter().map(part).collect()
    }

    /// The domain whose parts lie so in a region; `None` where they do not, or contradict each other. What
    /// their arrays hold is not looked at: a key may have any row then.
    pub(crate) fn placed(layout: &[PartLayout], region: &Region) -> Option<Self> {
        let mut parts: Vec<Part> = Vec::with_capacity(layout.len());
        let mut len = 0_usize;
        for part in layout {
            let keys = match &part.keys {
                KeysLayout::Dense => Keys::Dense,
                KeysLayout::Bitmap(array) if array.width == 8 => {
                    Keys::Bitmap(array.region(region)?)
                }
                KeysLayout::Bitmap(_) => return None,
                KeysLayout::Sorted(array) => Keys::Sorted(Column::placed(array, region)?),
            };
            let part = Part {
                first: part.first,
                last: part.last,
                row: usize::try_from(part.row).ok()?,
                len: usize::try_from(part.len).ok()?,
                stride_bits: part.stride_bits,
                keys,
            };
            let follows = parts.last().is_none_or(|before| before.last < part.first);
            let is_right =
                part.first <= part.last && part.stride_bits <= MOST_SHARDS.trailing_zeros();
            if !follows || !is_right || part.row != len {
                return None;
            }
            len = len.checked_add(part.len)?;
            parts.push(part);
        }
        Some(Self { parts, len })
    }

    /// Looks up every key: does it have the row of its place?
    pub(crate) fn is_sound(&self) -> bool {
        let mut rows = 0;
        let mut before = None;
        let mut sound = true;
        self.for_each(&mut |id| {
            sound &= before.is_none_or(|before| before < id.raw()) && self.row(id) == Some(rows);
            before = Some(id.raw());
            rows += 1;
        });
        sound && rows == self.len
    }

    pub(crate) fn write(&self, image: &mut ImageWriter) {
        image.word(self.parts.len() as u64);
        for part in &self.parts {
            for word in [part.first, part.last, part.row as u64, part.len as u64] {
                image.word(word);
            }
            let stride = u64::from(part.stride_bits) << STRIDE_AT;
            match &part.keys {
                Keys::Dense => image.word(stride),
                Keys::Bitmap(words) => {
                    image.word(stride | 1);
                    image.region(words);
                }
                Keys::Sorted(column) => {
                    image.word(stride | 2);
                    column.write(image);
                }
            }
        }
    }

    pub(crate) fn read(image: &mut ImageReader) -> Result<Self, StoreError> {
        let count = image.length()?;
        let mut parts: Vec<Part> = Vec::new();
        let mut len = 0;
        for _ in 0..count {
            let (first, last) = (image.word()?, image.word()?);
            let (row, part_len) = (image.length()?, image.length()?);
            let shape = image.word()?;
            let stride_bits = shape >> STRIDE_AT;
            if stride_bits > u64::from(MOST_SHARDS.trailing_zeros()) {
                return Err(image.corrupt("a domain is of more shards than there can be"));
            }
            let keys = match shape & SHAPE_MASK {
                0 => Keys::Dense,
                1 => Keys::Bitmap(image.region()?),
                2 => Keys::Sorted(Column::read(image)?),
                _ => return Err(image.corrupt("a domain has a part of an unknown shape")),
            };
            let part = Part {
                first,
                last,
                row,
                len: part_len,
                stride_bits: stride_bits as u32,
                keys,
            };
            let follows = parts.last().is_none_or(|before| before.last < first);
            if !follows || row != len || !part.is_sound() {
                return Err(image.corrupt("the parts of a domain contradict each other"));
            }
            len += part_len;
            parts.push(part);
        }
        Ok(Self { parts, len })
    }
}

/// Parts that are being made.
#[derive(Default)]
struct Parts {
    parts: Vec<Part>,
    rows: usize,
    /// Keys are a multiple of two to this power apart.
    bits: u32,
}

impl Parts {
    /// Adds keys of one kind: the longest runs of them as they are, whatever lies between and behind
    /// these.
    fn add(&mut self, keys: &[u64]) {
        let mut longest = Longest::of(runs(keys, self.bits));
        let (mut begin, mut at) = (0, 0);
        for run in runs(keys, self.bits) {
            if longest.has(run) {
                self.add_between(&keys[begin..at]);
                self.push(run, Keys::Dense);
                begin = at + run.len();
            }
            at += run.len();
        }
        self.add_between(&keys[begin..]);
    }

    /// Adds keys that are no long runs. Where they are far apart, they are of parts of their own.
    fn add_between(&mut self, keys: &[u64]) {
        let bits = self.bits;
        let near = keys.chunk_by(|a, b| (b - a) >> bits <= GAP);
        if near.clone().take(MOST_PIECES + 1).count() > MOST_PIECES {
            return self.push(keys, sparse(keys, self.bits));
        }
        for piece in near {
            let is_run = runs(piece, bits).nth(1).is_none();
            self.push(
                piece,
                match is_run {
                    true => Keys::Dense,
                    false => sparse(piece, self.bits),
                },
            );
        }
    }

    fn push(&mut self, keys: &[u64], shape: Keys) {
        (self.parts).push(Part::new(keys, self.rows, self.bits, shape));
        self.rows += keys.len();
    }
}

/// Which runs are parts of their own: all, or the longest.
struct Longest {
    /// The length of the shortest of these.
    least: usize,
    /// How many of that length are to come; the others are as short, and none of these.
    of_least: usize,
}

impl Longest {
    fn of<'k>(runs: impl Iterator<Item = &'k [u64]>) -> Self {
        let mut longest = BinaryHeap::with_capacity(MOST_RUNS + 1);
        let mut are_all = true;
        let mut least = 0;
        for run in runs {
            if longest.len() == MOST_RUNS {
                are_all = false;
                if run.len() <= least {
                    continue;
                }
                longest.pop();
            }
            longest.push(Reverse(run.len()));
            least = longest.peek().map_or(0, |Reverse(shortest)| *shortest);
        }
        if are_all || least < LEAST_RUN {
            let least = if are_all { 0 } else { LEAST_RUN };
            return Self {
                least,
                of_least: usize::MAX,
            };
        }
        let are_least = longest.iter().filter(|Reverse(len)| *len == least);
        Self {
            least,
            of_least: are_least.count(),
        }
    }

    /// Asked of each run, in order.
    fn has(&mut self, run: &[u64]) -> bool {
        if run.len() == self.least {
            let is_one = self.of_least > 0;
            self.of_least = self.of_least.saturating_sub(1);
            return is_one;
        }
        run.len() > self.least
    }
}

/// Keys as runs of such as follow one another.
fn runs(keys: &[u64], stride_bits: u32) -> impl Iterator<Item = &[u64]> {
    keys.chunk_by(move |a, b| a + (1 << stride_bits) == *b)
}

impl Part {
    fn new(keys: &[u64], row: usize, stride_bits: u32, shape: Keys) -> Self {
        Self {
            first: keys[0],
            last: keys[keys.len() - 1],
            row,
            len: keys.len(),
            stride_bits,
            keys: shape,
        }
    }

    /// The id so many strides behind the first.
    #[inline]
    fn nth(&self, strides: u64) -> u64 {
        self.first + (strides << self.stride_bits)
    }

    /// How many strides an id is behind the first key: see [`strides_to`].
    #[inline]
    fn strides_to(&self, raw: u64) -> u64 {
        strides_to(self.first, self.stride_bits, raw)
    }

    /// Strides from the first key to the last.
    #[inline]
    fn span(&self) -> u64 {
        (self.last - self.first) >> self.stride_bits
    }

    /// Strides from the first key to the first id that is not below a limit.
    fn strides_below(&self, limit: u64) -> u64 {
        limit
            .saturating_sub(self.first)
            .div_ceil(1 << self.stride_bits)
    }

    /// Calls `visit` with each run of keys: its strides behind the first key, its length and its first row.
    fn for_each_stretch(&self, visit: &mut dyn FnMut(u64, usize, usize)) {
        match &self.keys {
            Keys::Dense => visit(0, self.len, self.row),
            Keys::Bitmap(words) => {
                let words: &[u64] = words.as_slice();
                for (index, word) in words.iter().enumerate() {
                    let mut bits = *word as u32;
                    let mut row = self.row + (word >> 32) as usize;
                    while bits != 0 {
                        let at = bits.trailing_zeros();
                        let count = (bits >> at).trailing_ones();
                        visit(index as u64 * WORD_IDS + u64::from(at), count as usize, row);
                        row += count as usize;
                        bits = match at + count {
                            32.. => 0,
                            behind => bits >> behind << behind,
                        };
                    }
                }
            }
            Keys::Sorted(column) => {
                for place in 0..column.len() {
                    visit(self.strides_to(column.get(place)), 1, self.row + place);
                }
            }
        }
    }

    /// Adds the keys in `window`, which lies between the first and the one behind the last.
    fn add_ranges(&self, window: (u64, u64), ranges: &mut IdRanges) {
        let (first, end) = window;
        match &self.keys {
            Keys::Dense if self.stride_bits == 0 => {
                ranges.push(TermId::from_raw(first), TermId::from_raw(end));
            }
            Keys::Dense => {
                let strides = self.strides_below(first)..self.strides_below(end);
                ranges.extend_sorted(strides.map(|strides| self.nth(strides)));
            }
            Keys::Bitmap(words) => {
                let words: &[u64] = words.as_slice();
                let begin = (self.strides_below(first) / WORD_IDS) as usize;
                let behind = self.strides_below(end).div_ceil(WORD_IDS) as usize;
                let origin = begin as u64 * WORD_IDS;
                let mut ids = Vec::new();
                let some = words.get(begin..behind).unwrap_or(&[]);
                for_each_bit(some, &mut |bit| ids.push(self.nth(origin + bit)));
                let ids = ids.into_iter().filter(|id| (first..end).contains(id));
                ranges.extend_sorted(ids);
            }
            Keys::Sorted(column) => {
                let base = column.base();
                with_narrow!(column.narrow(), items => {
                    let ids = items.iter().map(|item| base.wrapping_add(u64::from(*item)));
                    let below = |limit| items.partition_point(|item| {
                        base.wrapping_add(u64::from(*item)) < limit
                    });
                    let begin = below(first);
                    ranges.extend_sorted(ids.skip(begin).take(below(end) - begin));
                });
            }
        }
    }

    /// Appends the rows of keys.
    fn push_rows(&self, keys: &[TermId], rows: &mut Vec<usize>) {
        let span = self.span();
        match &self.keys {
            Keys::Dense => {
                let row = |offset: u64| match offset <= span {
                    true => self.row + offset as usize,
                    false => usize::MAX,
                };
                // Several keys are subtracted by one instruction, but not rotated.
                match self.stride_bits {
                    0 => rows.extend(
                        keys.iter()
                            .map(|key| row(key.raw().wrapping_sub(self.first))),
                    ),
                    _ => rows.extend(keys.iter().map(|key| row(self.strides_to(key.raw())))),
                }
            }
            Keys::Bitmap(words) => {
                let offsets = keys.iter().map(|key| self.strides_to(key.raw()));
                rows.extend(rows_of_bits(words.as_slice(), self.row, offsets));
            }
            Keys::Sorted(_) => {
                let mut near = 0;
                rows.extend(keys.iter().map(|key| match key.raw() {
                    raw if (self.first..=self.last).contains(&raw) => {
                        self.row_near(raw, &mut near).unwrap_or(usize::MAX)
                    }
                    _ => usize::MAX,
                }));
            }
        }
    }

    #[inline]
    fn row_of(&self, raw: u64) -> Option<usize> {
        self.row_near(raw, &mut 0)
    }

    /// As [`Part::row_of`]; cheap for sorted keys that rise from one call to the next. `near` is
    /// the place of the key before, or 0.
    #[inline]
    fn row_near(&self, raw: u64, near: &mut usize) -> Option<usize> {
        let offset = self.strides_to(raw);
        match &self.keys {
            Keys::Dense => (offset <= self.span()).then(|| self.row + offset as usize),
            Keys::Bitmap(words) => {
                let words: &[u64] = words.as_slice();
                let (rank, is_there) = rank_in(*words.get((offset / WORD_IDS) as usize)?, offset);
                is_there.then_some(self.row + rank)
            }
            Keys::Sorted(column) => {
                let narrow = raw.checked_sub(column.base())?;
                let keys = column.narrow();
                let from = match *near {
                    near if near < keys.len() && keys.get(near) <= narrow => near,
                    _ => 0,
                };
                let index = keys.seek(from, narrow);
                *near = index;
                (index < keys.len() && keys.get(index) == narrow).then_some(self.row + index)
            }
        }
    }

    /// The key of a row, counted from the part's first.
    fn key_at(&self, row: usize) -> u64 {
        match &self.keys {
            Keys::Dense => self.nth(row as u64),
            Keys::Sorted(column) => column.get(row),
            Keys::Bitmap(words) => {
                let words: &[u64] = words.as_slice();
                let index = words.partition_point(|word| word >> 32 <= row as u64) - 1;
                let mut bits = words[index] as u32;
                for _ in 0..row as u64 - (words[index] >> 32) {
                    bits &= bits - 1;
                }
                self.nth(index as u64 * WORD_IDS + u64::from(bits.trailing_zeros()))
            }
        }
    }

    fn is_sound(&self) -> bool {
        if self.last < self.first || self.len == 0 {
            return false;
        }
        if self.strides_to(self.last) != self.span() {
            return false;
        }
        let span = self.span();
        match &self.keys {
            Keys::Dense => span == self.len as u64 - 1,
            Keys::Bitmap(words) => words.len() as u64 == (span / WORD_IDS + 1) * 8,
            Keys::Sorted(column) => column.len() == self.len,
        }
    }
}

/// Rows of bits of a bitmap, the first set one of which has the row `first`.
///
/// Keys mostly follow one another: then each costs a few instructions and no jump that depends on
/// its bit, which is as good as random where one in some keys went.
fn rows_of_bits(
    words: &[u64],
    first: usize,
    offsets: impl Iterator<Item = u64>,
) -> impl Iterator<Item = usize> {
    // Bits of a word from `next` on, and the row of the first set one; none before the first key.
    let (mut bits, mut row, mut next) = (0, first, 0);
    offsets.map(move |offset| {
        if offset != next || offset.is_multiple_of(WORD_IDS) {
            // Behind the last lies no bit, and no word behind the last word.
            let word = words.get((offset / WORD_IDS) as usize).copied();
            let word = word.unwrap_or(0);
            row = first + rank_in(word, offset).0;
            bits = (word as u32) >> (offset % WORD_IDS);
        }
        next = offset.wrapping_add(1);
        let is_set = (bits & 1) as usize;
        bits >>= 1;
        let found = row | is_set.wrapping_sub(1);
        row += is_set;
        found
    })
}

/// How many strides of two to the power `stride_bits` an id is behind the first key of a part; more
/// than to the last key for one that is before the first, behind the last, or between two strides.
#[inline]
pub(crate) fn strides_to(first: u64, stride_bits: u32, raw: u64) -> u64 {
    raw.wrapping_sub(first).rotate_right(stride_bits)
}

/// The number of set bits below this one, of which `word` is the word, and whether it is set.
#[inline]
pub(crate) fn rank_in(word: u64, bit: u64) -> (usize, bool) {
    let mask = 1_u64 << (bit % WORD_IDS);
    let before = (word & (mask - 1)).count_ones();
    ((word >> 32) as usize + before as usize, word & mask != 0)
}

/// How keys with many gaps are best kept.
fn sparse(keys: &[u64], stride_bits: u32) -> Keys {
    let span = ((keys[keys.len() - 1] - keys[0]) >> stride_bits) + 1;
    if span / keys.len() as u64 <= BITMAP_SPREAD && keys.len() < 1 << 32 {
        Keys::Bitmap(bitmap(keys, stride_bits))
    } else {
        Keys::Sorted(Column::from_values(keys))
    }
}

fn kind_of(raw: u64) -> u64 {
    raw >> jindou_model::PAYLOAD_BITS
}

fn bitmap(keys: &[u64], stride_bits: u32) -> Region {
    let first = keys[0];
    let span = (keys[keys.len() - 1] - first) >> stride_bits;
    let count = (span / WORD_IDS + 1) as usize;
    let mut builder = RegionBuilder::new(count * 8);
    let words: &mut [u64] = builder.as_mut_slice();
    for key in keys {
        let offset = (key - first) >> stride_bits;
        words[(offset / WORD_IDS) as usize] |= 1 << (offset % WORD_IDS);
    }
    let mut rank = 0;
    for word in words {
        let count = u64::from(word.count_ones());
        *word |= rank << 32;
        rank += count;
    }
    builder.finish()
}

fn for_each_bit(words: &[u64], visit: &mut dyn FnMut(u64)) {
    for (index, word) in words.iter().enumerate() {
        let mut bits = *word as u32;
        while bits != 0 {
            visit(index as u64 * WORD_IDS + u64::from(bits.trailing_zeros()));
            bits &= bits - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(keys: &[u64], shards: Shards) {
        let domain = Domain::of_shard(keys, shards);
        assert!(domain.is_sound());
        assert_eq!(domain.len(), keys.len());
        let mut seen = Vec::new();
        domain.for_each(&mut |id| seen.push(id.raw()));
        assert_eq!(seen, keys);
        let (mut stretched, stride) = (Vec::new(), |id: TermId| shards.stride_bits(id.kind()));
        domain.for_each_stretch(&mut |first, count, row| {
            assert_eq!(row, stretched.len());
            assert!(count == 1 || stride(first) == 0);
            stretched.extend((0..count as u64).map(|place| first.raw() + place));
        });
        assert_eq!(stretched, keys);
        let mut asked: Vec<u64> = keys
            .iter()
            .flat_map(|k| [-9, -8, -1, 0, 1, 4, 8, 64].map(|far| k.saturating_add_signed(far)))
            .collect();
        asked.push(0);
        asked.push(u64::MAX);
        // Falling ones, too.
        let rising: Vec<u64> = asked.clone();
        asked.extend(rising.into_iter().rev().step_by(2));
        let ids: Vec<TermId> = asked.iter().map(|raw| TermId::from_raw(*raw)).collect();
        let mut rows = Vec::new();
        domain.rows(&ids, &mut rows);
        let ranges = domain.literal_ranges(None);
        let mut windows = IdRanges::new();
        for pair in keys.chunks(3).filter(|three| three.len() > 1) {
            windows.push(TermId::from_raw(pair[0]), TermId::from_raw(pair[1]));
        }
        let within = domain.literal_ranges(Some(&windows));
        assert_eq!(within, ranges.intersect(&windows));
        for (id, row) in ids.iter().zip(rows) {
            let expected = keys.binary_search(&id.raw()).ok();
            assert_eq!(domain.row(*id), expected);
            assert_eq!(row, expected.unwrap_or(usize::MAX));
            if let Some(row) = expected {
                assert_eq!(domain.key_at(row), *id);
            }
            let literal = id.kind() != TermKind::Vertex;
            assert_eq!(ranges.contains(*id), literal && expected.is_some());
        }
    }

    #[test]
    fn long_runs_stay_dense_whatever_comes_between_and_after_them() {
        let long = (0..3).flat_map(|n| (0..10_000).map(move |key| n * 100_000 + key));
        let scattered = (0..5_000).map(|key| 110_000 + key * 3);
        let extents =
            (0..300).flat_map(|n| (0..100 + n % 7).map(move |key| 400_000 + n * 200 + key));
        let numbers = long.chain(scattered).chain(extents);
        let mut keys: Vec<u64> = numbers.map(|n| TermId::vertex(n).raw()).collect();
        keys.sort_unstable();
        check(&keys, Shards::ONE);
        let domain = Domain::from_sorted(&keys);
        let dense = domain
            .parts
            .iter()
            .filter(|part| matches!(part.keys, Keys::Dense));
        let lens: Vec<usize> = dense.map(|part| part.len).collect();
        assert_eq!(lens.iter().filter(|len| **len >= 10_000).count(), 3);
        assert!(lens.len() > 3 && lens.len() <= MOST_RUNS, "{}", lens.len());
        assert!(domain.is_direct());
    }

    #[test]
    fn of_equal_runs_as_many_stay_dense_as_may() {
        for (count, len) in [(MOST_RUNS, 3), (MOST_RUNS + 1, 500), (3 * MOST_RUNS, 500)] {
            let runs = (0..count as u64).flat_map(|n| (0..len).map(move |key| n * 1000 + key));
            let keys: Vec<u64> = runs.map(|n| TermId::vertex(n).raw()).collect();
            check(&keys, Shards::ONE);
            let domain = Domain::from_sorted(&keys);
            let is_dense_run =
                |part: &&Part| matches!(part.keys, Keys::Dense) && part.len == len as usize;
            assert!(domain.parts.iter().filter(is_dense_run).count() >= MOST_RUNS);
        }
    }

    proptest! {
        #[test]
        fn rows_are_positions_among_the_sorted_keys(
            gaps in proptest::collection::vec(prop_oneof![Just(1_u64), 1..4_u64, 1..3000_u64], 0..400),
            literals in proptest::collection::vec(1..200_u64, 0..50),
        ) {
            let mut keys = Vec::new();
            let mut at = TermId::vertex(5).raw();
            for gap in gaps { at += gap; keys.push(at); }
            let mut at = TermId::new(TermKind::Integer, 77).raw();
            for gap in literals { at += gap; keys.push(at); }
            check(&keys, Shards::ONE);
        }

        #[test]
        fn rows_of_a_shard_are_positions_among_its_keys(
            bits in 1..8_u32,
            shard in 0..128_u32,
            gaps in proptest::collection::vec(prop_oneof![Just(1_u64), 1..4_u64, 1..9000_u64], 0..400),
            literals in proptest::collection::vec(prop_oneof![Just(1_u64), 1..4_u64], 0..200),
            integers in proptest::collection::vec(1..200_u64, 0..400),
        ) {
            let shards = Shards::new(1 << bits).unwrap();
            let shard = jindou_model::ShardId(shard % (1 << bits));
            let mut keys = Vec::new();
            for (kind, gaps) in [(TermKind::Vertex, &gaps), (TermKind::Literal, &literals)] {
                let mut at = TermId::new(kind, (1_u64 << 41) + u64::from(shard.0)).raw();
                for gap in gaps { at += gap << bits; keys.push(at); }
            }
            let mut at = TermId::new(TermKind::Integer, 77).raw();
            for gap in integers {
                at += gap;
                if shards.owner(TermId::from_raw(at)) == shard { keys.push(at); }
            }
            check(&keys, shards);
        }
    }
}
