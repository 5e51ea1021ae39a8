use std::convert::Infallible;

use jindou_fabric::Region;
use jindou_model::{ShardId, TermKind};
use jindou_partition::Shards;
use proptest::prelude::*;

use super::*;
use crate::segment::Segment;

/// Reads a segment as another machine does: by its layout and the bytes of its region.
pub(crate) struct RemoteReader<'a> {
    layout: &'a SegmentLayout,
    region: Region,
    /// Reads of offsets and neighbours, not those of the domain.
    pub(crate) reads: usize,
}

impl<'a> RemoteReader<'a> {
    /// One that may read `region` and nothing more.
    pub(crate) fn new(layout: &'a SegmentLayout, region: &Region) -> Self {
        let region = region.memory();
        assert_eq!(layout.region, region.id());
        assert_eq!(layout.address, region.as_ptr() as u64);
        assert_eq!(layout.region_bytes, region.len() as u64);
        Self {
            layout,
            region,
            reads: 0,
        }
    }

    fn bytes(&mut self, range: Range<u64>) -> Vec<u8> {
        self.reads += 1;
        self.region[range.start as usize..range.end as usize].to_vec()
    }

    pub(crate) fn row(&self, key: TermId) -> Option<u64> {
        let mut read = |from: u64, into: &mut [u8]| {
            into.copy_from_slice(&self.region[from as usize..][..into.len()]);
            Ok::<(), Infallible>(())
        };
        let Ok(row) = self.layout.row(key, &mut read);
        row
    }

    pub(crate) fn expand(&mut self, key: TermId) -> Vec<TermId> {
        let mut list = Vec::new();
        if let Some(row) = self.row(key) {
            let neighbours = match self.layout.bounds_bytes(row) {
                None => row..row + 1,
                Some(range) => {
                    let bytes = self.bytes(range);
                    self.layout.bounds(&bytes)
                }
            };
            let bytes = self.bytes(self.layout.list_bytes(neighbours));
            self.layout.push_list(&bytes, &mut list);
        }
        list
    }

    pub(crate) fn contains(&mut self, key: TermId, to: TermId) -> bool {
        self.expand(key).binary_search(&to).is_ok()
    }

    /// The keys of the domain, by reading all of it.
    pub(crate) fn keys(&mut self) -> Vec<u64> {
        let mut keys = Vec::new();
        for part in &self.layout.domain {
            let nth = |strides: u64| part.first + (strides << part.stride_bits);
            match &part.keys {
                KeysLayout::Dense => keys.extend((0..part.len).map(nth)),
                KeysLayout::Sorted(ids) => {
                    let bytes = self.region.memory();
                    let range = ids.bytes_of(0..ids.len);
                    let bytes = &bytes[range.start as usize..range.end as usize];
                    keys.extend(ids.numbers(bytes));
                }
                KeysLayout::Bitmap(words) => {
                    let bytes = self.region.memory();
                    let range = words.bytes_of(0..words.len);
                    let bytes = &bytes[range.start as usize..range.end as usize];
                    for (index, word) in words.numbers(bytes).enumerate() {
                        let bits = (0..WORD_IDS).filter(|bit| word >> bit & 1 == 1);
                        keys.extend(bits.map(|bit| nth(index as u64 * WORD_IDS + bit)));
                    }
                }
            }
        }
        keys
    }
}

/// Asks both for all keys, for ids near them, and for other ids.
pub(crate) fn assert_reads_alike(segment: &Segment, layout: &SegmentLayout, region: &Region) {
    let mut reader = RemoteReader::new(layout, region);
    let keys = reader.keys();
    assert_eq!(keys.len(), segment.domain().len());
    let placed = Segment::placed(layout, &region.memory()).unwrap();
    let most = 1 + usize::from(layout.offsets.is_some());
    let near = |key: &u64| [-64, -8, -1, 0, 1, 4, 64].map(|far| key.saturating_add_signed(far));
    let mut found = 0;
    for raw in keys.iter().flat_map(near).chain([0, u64::MAX]) {
        let key = TermId::from_raw(raw);
        let list = segment.neighbours(key);
        let expected: Vec<TermId> = (0..list.len()).map(|index| list.get(index)).collect();
        reader.reads = 0;
        assert_eq!(reader.expand(key), expected);
        assert!(reader.reads <= most, "{} reads of a list", reader.reads);
        let found_there = placed.find(key).unwrap();
        let mut copied = Vec::new();
        placed.copy(found_there.clone(), None, &mut copied);
        assert_eq!(copied, expected);
        let at = placed.neighbours_at(found_there);
        assert_eq!(at.len(), expected.len());
        assert_eq!(
            reader.row(key),
            segment.domain().row(key).map(|row| row as u64)
        );
        for to in expected.iter().take(3) {
            found += 1;
            assert!(reader.contains(key, *to));
            let other = TermId::from_raw(to.raw() ^ 1);
            assert_eq!(reader.contains(key, other), list.contains(other));
        }
    }
    assert!(found > 0 || segment.edges() == 0 || segment.has_holes());
}

fn check(segment: Segment) {
    let packed = segment.clone().packed();
    let layout = packed.layout();
    assert_reads_alike(&packed, &layout, packed.neighbour_column().region());
    // Packing changes nothing.
    assert_reads_alike(&segment, &layout, packed.neighbour_column().region());
}

/// The numbers of a layout, by which another node may lie.
fn numbers(layout: &mut SegmentLayout) -> Vec<&mut u64> {
    let SegmentLayout {
        domain,
        offsets,
        neighbours,
        ..
    } = layout;
    let mut arrays: Vec<&mut ArrayLayout> = offsets.iter_mut().chain([neighbours]).collect();
    let mut numbers = Vec::new();
    for part in domain {
        numbers.extend([
            &mut part.first,
            &mut part.last,
            &mut part.row,
            &mut part.len,
        ]);
        match &mut part.keys {
            KeysLayout::Dense => {}
            KeysLayout::Bitmap(array) | KeysLayout::Sorted(array) => arrays.push(array),
        }
    }
    for array in arrays {
        numbers.extend([&mut array.offset, &mut array.len, &mut array.base]);
    }
    numbers
}

/// A layout with some numbers changed is refused, or tells lists that are wrong or none: nothing panics.
fn check_lies(segment: &Segment, seed: u64) {
    let packed = segment.clone().packed();
    let (layout, region) = (packed.layout(), packed.neighbour_column().region().memory());
    let word = |n: u64| xxhash_rust::xxh3::xxh3_64_with_seed(&n.to_le_bytes(), seed);
    for case in 0..40_u64 {
        let mut lying = layout.clone();
        let draw = |n: u64| word(case << 8 | n);
        let mut places = numbers(&mut lying);
        for lie in 0..1 + draw(0) % 2 {
            let place = draw(lie + 1) as usize % places.len();
            let at = &mut *places[place];
            *at = match draw(lie + 3) % 6 {
                0 => 0,
                1 => u64::MAX,
                2 => at.wrapping_add(1),
                3 => at.wrapping_sub(1),
                4 => at.wrapping_add(8),
                _ => draw(lie + 5) % 4096,
            };
        }
        match draw(7) % 8 {
            0 => lying.neighbours.width = (draw(8) % 9) as u8,
            1 => lying.offsets = None,
            2 => lying.hole = Some(draw(8)),
            3 => lying
                .domain
                .iter_mut()
                .for_each(|part| part.stride_bits = (draw(8) % 80) as u32),
            _ => {}
        }
        let Some(placed) = Segment::placed(&lying, &region) else {
            continue;
        };
        let mut out = Vec::new();
        for part in &layout.domain {
            for far in [0, 1, 7, 63] {
                for key in [part.first.wrapping_add(far), part.last.wrapping_sub(far)] {
                    if let Some(list) = placed.find(TermId::from_raw(key)) {
                        placed.copy(list, None, &mut out);
                        out.clear();
                    }
                }
            }
        }
    }
}

/// Keys of every shape of domain: dense runs, bitmaps, rare ones, and literals held in their ids.
fn keys() -> impl Strategy<Value = Vec<u64>> {
    let gap = prop_oneof![
        6 => Just(1_u64),
        3 => 1..4_u64,
        1 => 1..3000_u64,
        1 => 5000..(1_u64 << 33)
    ];
    let dense = proptest::collection::vec(gap, 0..60);
    let spread = proptest::collection::vec(1..5_u64, 0..200);
    let rare = proptest::collection::vec(1..3000_u64, 0..100);
    let inline = proptest::collection::vec(1..200_u64, 0..50);
    (dense, spread, rare, inline).prop_map(|(dense, spread, rare, inline)| {
        let mut keys = Vec::new();
        let starts = [
            TermId::vertex(5),
            TermId::vertex(1 << 38),
            TermId::literal(7),
            TermId::new(TermKind::Integer, 77),
        ];
        for (start, gaps) in starts.iter().zip([dense, spread, rare, inline]) {
            let mut at = start.raw();
            keys.extend(gaps.iter().map(|gap| {
                at += gap;
                at
            }));
        }
        keys
    })
}

/// How many neighbours each key has, and from which ids they are.
#[derive(Clone, Copy, Debug)]
struct Shape {
    most: u64,
    spread: u64,
    has_inline: bool,
}

fn shape() -> impl Strategy<Value = Shape> {
    let spread = prop_oneof![Just(200_u64), Just(60_000), Just(1 << 30), Just(1 << 39)];
    (1..6_u64, spread, any::<bool>()).prop_map(|(most, spread, has_inline)| Shape {
        most,
        spread,
        has_inline,
    })
}

/// The neighbours of a key, sorted and distinct: `least` of them or more.
fn list(shape: Shape, least: u64, key: u64, seed: u64) -> Vec<u64> {
    let word = |n: u64| xxhash_rust::xxh3::xxh3_64_with_seed(&(key ^ n << 56).to_le_bytes(), seed);
    let count = least.max(word(0) % (shape.most + 1)).min(shape.most);
    let id = |n: u64| match shape.has_inline && word(n) % 7 == 0 {
        true => TermId::new(TermKind::Integer, word(n) % 1000).raw(),
        false => TermId::vertex(word(n) % shape.spread).raw(),
    };
    let mut list: Vec<u64> = (1..=count).map(id).collect();
    list.sort_unstable();
    list.dedup();
    list
}

fn edges(keys: &[u64], shape: Shape, seed: u64) -> Vec<(u64, u64)> {
    let of_key = |key: &u64| {
        let key = *key;
        let list = list(shape, 1, key, seed);
        list.into_iter().map(move |to| (key, to))
    };
    keys.iter().flat_map(of_key).collect()
}

proptest! {
    #[test]
    fn bytes_of_a_segment_say_what_it_says(keys in keys(), shape in shape(), seed: u64) {
        check(Segment::from_sorted(&edges(&keys, shape, seed)));
    }

    #[test]
    fn a_layout_that_lies_does_no_harm(keys in keys(), shape in shape(), seed: u64) {
        check_lies(&Segment::from_sorted(&edges(&keys, shape, seed)), seed);
    }

    #[test]
    fn bytes_of_written_lists_say_what_they_say_though_some_are_empty(
        keys in keys(), shape in shape(), seed: u64,
    ) {
        let (mut offsets, mut neighbours) = (vec![0], Vec::new());
        for key in &keys {
            neighbours.extend(list(shape, 0, *key, seed));
            offsets.push(neighbours.len() as u64);
        }
        check(Segment::from_lists(&keys, &offsets, &neighbours));
    }

    #[test]
    fn bytes_of_a_shard_say_what_it_says(
        keys in keys(), shape in shape(), seed: u64, bits in 1..5_u32,
    ) {
        let shards = Shards::new(1 << bits).unwrap();
        for (number, part) in Segment::from_sorted(&edges(&keys, shape, seed)).cut(shards, |_| true)
            .into_iter().enumerate()
        {
            let owner = ShardId(number as u32);
            part.domain().for_each(&mut |key| assert_eq!(shards.owner(key), owner));
            check(part);
        }
    }
}
