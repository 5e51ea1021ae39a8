//! Which row of a table has a number, and which number has a row, if rows have any order?
//!
//! ```text
//! header     HEADER bytes
//! directory  for each chunk of 65,536 numbers that has any, and once more at the end: the chunk
//!            (u64), how many numbers are in the chunks before (u32), where its set begins (u32)
//! sets       which numbers of each chunk there are
//! rows       by place, which is a number's place among all in ascending order, its row
//! offsets    by row, its number less the least one
//! ```
//!
//! Numbers are little-endian; each section begins at a multiple of eight bytes. Rows and offsets
//! take as many bytes as the largest of each needs. The header holds a checksum of itself, tested
//! when a map is opened, one of all that follows it, tested on demand, and the one of the strings
//! that the map belongs to.

use std::ops::Range;

use jindou_fabric::{Region, RegionBuilder};
use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::DictionaryError;
use crate::layout::{read_u32, read_u64, section};
use crate::number_set::{self, CHUNK, CHUNK_SHIFT, Set, UNIT};
use crate::table::StringTable;

/// The most strings whose numbers are mapped.
pub(crate) const MOST: u64 = u32::MAX as u64;
const HEADER: usize = 88;
const MAGIC: [u8; 8] = *b"JINDNUMS";
const VERSION: u32 = 1;
/// Where the header's own checksum lies: at its end.
const CHECKSUM: usize = HEADER - 8;
/// Bytes of an entry of the directory.
const ENTRY: usize = 16;
/// Bytes behind a column, so that each of its numbers can be read as eight bytes.
const SPARE: usize = 8;

fn damaged(what: &'static str) -> DictionaryError {
    DictionaryError::Damaged { what }
}

/// The chunk of a number.
#[inline]
fn chunk_of(number: u64) -> u64 {
    number >> CHUNK_SHIFT
}

/// Bytes that a number up to `largest` takes in a column.
fn width_for(largest: u64) -> usize {
    (u64::BITS - largest.leading_zeros()).div_ceil(8).max(1) as usize
}

/// The size of a map, and where its sections lie, in bytes from its start.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shape {
    len: u64,
    chunks: usize,
    units: usize,
    least: u64,
    greatest: u64,
    directory: Range<usize>,
    sets: Range<usize>,
    rows: Range<usize>,
    offsets: Range<usize>,
}

impl Shape {
    /// The shape of a map of `len` numbers from `least` to `greatest`, in so many chunks, whose
    /// sets have so many units; `None` if it cannot be.
    fn new(len: u64, chunks: usize, units: usize, least: u64, greatest: u64) -> Option<Self> {
        if len > MOST {
            return None;
        }
        let column = |end: usize, largest: u64| {
            let bytes = (len as usize).checked_mul(width_for(largest))?;
            section(end, bytes.checked_add(SPARE)?)
        };
        let directory = section(HEADER, chunks.checked_add(1)?.checked_mul(ENTRY)?)?;
        let sets = section(directory.end, units.checked_mul(UNIT)?)?;
        let rows = column(sets.end, len.saturating_sub(1))?;
        let offsets = column(rows.end, greatest.checked_sub(least)?)?;
        Some(Self {
            len,
            chunks,
            units,
            least,
            greatest,
            directory,
            sets,
            rows,
            offsets,
        })
    }

    /// The shape of a map of these numbers, which ascend.
    fn of(sorted: &[(u64, u32)]) -> Option<Self> {
        let (mut chunks, mut units) = (0, 0);
        for chunk in by_chunk(sorted) {
            chunks += 1;
            units += number_set::units_for(chunk.len());
        }
        let least = sorted.first().map_or(0, |(number, _)| *number);
        let greatest = sorted.last().map_or(0, |(number, _)| *number);
        Self::new(sorted.len() as u64, chunks, units, least, greatest)
    }

    #[inline]
    fn row_width(&self) -> usize {
        width_for(self.len.saturating_sub(1))
    }

    #[inline]
    fn offset_width(&self) -> usize {
        width_for(self.greatest - self.least)
    }

    /// Bytes of the whole map.
    fn bytes(&self) -> usize {
        self.offsets.end.next_multiple_of(8)
    }

    /// The header, given the checksum of the strings and the one of what follows the header.
    fn header(&self, strings_checksum: u64, body_checksum: u64) -> [u8; HEADER] {
        let numbers = [
            self.len,
            self.chunks as u64,
            self.units as u64,
            self.least,
            self.greatest,
            self.offsets.start as u64,
            strings_checksum,
            body_checksum,
        ];
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        for (bytes, number) in header[16..CHECKSUM].chunks_exact_mut(8).zip(numbers) {
            bytes.copy_from_slice(&number.to_le_bytes());
        }
        let checksum = xxh3_64(&header[..CHECKSUM]);
        header[CHECKSUM..].copy_from_slice(&checksum.to_le_bytes());
        header
    }

    /// The shape that the header of `map` tells, and the checksums of the strings and of what
    /// follows the header.
    fn read(map: &[u8]) -> Result<(Self, u64, u64), DictionaryError> {
        if map.get(..8) != Some(&MAGIC[..]) {
            return Err(DictionaryError::NotNumbers);
        }
        let header = map
            .get(..HEADER)
            .ok_or(damaged("the header of the numbers is cut short"))?;
        let found = read_u32(header, 8);
        if found != VERSION {
            let supported = VERSION;
            return Err(DictionaryError::Version { found, supported });
        }
        if xxh3_64(&header[..CHECKSUM]) != read_u64(header, CHECKSUM) {
            let what = "the header of the numbers does not match its checksum";
            return Err(damaged(what));
        }
        let [len, chunks, units, least, greatest, _, strings, body] =
            std::array::from_fn(|at| read_u64(header, 16 + at * 8));
        let sizes = usize::try_from(chunks)
            .ok()
            .zip(usize::try_from(units).ok());
        let shape = sizes
            .and_then(|(chunks, units)| Self::new(len, chunks, units, least, greatest))
            .ok_or(damaged("the numbers are too many"))?;
        if shape.header(strings, body) != header {
            return Err(damaged("the numbers are not where they should be"));
        }
        if shape.bytes() != map.len() {
            return Err(damaged("the numbers are not as long as their header says"));
        }
        Ok((shape, strings, body))
    }
}

/// The numbers of each chunk, with their rows.
fn by_chunk(sorted: &[(u64, u32)]) -> impl Iterator<Item = &[(u64, u32)]> {
    sorted.chunk_by(|a, b| chunk_of(a.0) == chunk_of(b.0))
}

/// The map between the numbers of a table's strings and their rows, in one region.
#[derive(Clone)]
pub(crate) struct NumberMap {
    region: Region,
    shape: Shape,
}

impl NumberMap {
    /// The map of a table of strings whose rows have these numbers, one for each. Besides the
    /// result this needs 16 bytes a string.
    pub(crate) fn build<N>(strings: &StringTable, by_row: N) -> Result<Self, DictionaryError>
    where
        N: Iterator<Item = u64> + Clone,
    {
        let too_many = DictionaryError::TooMany {
            strings: strings.len(),
            limit: MOST,
        };
        if strings.len() > MOST {
            return Err(too_many);
        }
        let mut sorted: Vec<(u64, u32)> = by_row.clone().zip(0..).collect();
        assert_eq!(sorted.len() as u64, strings.len(), "a number for each row");
        sorted.par_sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let number = pair[0].0;
            return Err(DictionaryError::RepeatedNumber { number });
        }
        let shape = Shape::of(&sorted).ok_or(too_many)?;
        let mut builder = RegionBuilder::new(shape.bytes());
        let bytes = builder.as_mut_slice::<u8>();
        fill_sets(bytes, &shape, &sorted);
        let rows = sorted.iter().map(|(_, row)| u64::from(*row));
        fill_column(&mut bytes[shape.rows.clone()], shape.row_width(), rows);
        let offsets = by_row.map(|number| number - shape.least);
        fill_column(
            &mut bytes[shape.offsets.clone()],
            shape.offset_width(),
            offsets,
        );
        let checksum = xxh3_64(&bytes[HEADER..]);
        bytes[..HEADER].copy_from_slice(&shape.header(strings.checksum()?, checksum));
        let region = builder.finish();
        Ok(Self { region, shape })
    }

    /// The map in `region`, which belongs to `strings`. Reads the header and the directory, and
    /// tests that nothing that is read later can lie outside.
    pub(crate) fn open(region: Region, strings: &StringTable) -> Result<Self, DictionaryError> {
        let (shape, strings_checksum, _) = Shape::read(&region)?;
        if shape.len != strings.len() || strings_checksum != strings.checksum()? {
            return Err(damaged("the numbers belong to other strings"));
        }
        let map = Self { region, shape };
        map.view().test_directory(&map.shape)?;
        Ok(map)
    }

    /// Tests the map against its checksum, and that numbers and rows lead to each other.
    pub(crate) fn verify(&self) -> Result<(), DictionaryError> {
        let (shape, _, checksum) = Shape::read(&self.region)?;
        if xxh3_64(&self.region[HEADER..]) != checksum {
            return Err(damaged("the numbers do not match their checksum"));
        }
        self.view().test_columns(&shape)
    }

    pub(crate) fn region(&self) -> &Region {
        &self.region
    }

    /// The least number and the greatest one.
    pub(crate) fn ends(&self) -> Option<(u64, u64)> {
        (self.shape.len > 0).then_some((self.shape.least, self.shape.greatest))
    }

    #[inline]
    pub(crate) fn view(&self) -> MapView<'_> {
        let bytes: &[u8] = &self.region;
        let shape = &self.shape;
        MapView {
            len: shape.len,
            chunks: shape.chunks,
            least: shape.least,
            directory: &bytes[shape.directory.clone()],
            sets: &bytes[shape.sets.clone()],
            rows: Column::new(&bytes[shape.rows.clone()], shape.row_width()),
            offsets: Column::new(&bytes[shape.offsets.clone()], shape.offset_width()),
        }
    }
}

/// Fills the directory and the sets.
fn fill_sets(bytes: &mut [u8], shape: &Shape, sorted: &[(u64, u32)]) {
    let (head, sets) = bytes.split_at_mut(shape.sets.start);
    let mut entries = head[shape.directory.clone()].chunks_exact_mut(ENTRY);
    let mut put = |chunk: u64, before: usize, unit: usize| {
        let entry = entries
            .next()
            .expect("an entry for each chunk and one more");
        entry[..8].copy_from_slice(&chunk.to_le_bytes());
        entry[8..12].copy_from_slice(&(before as u32).to_le_bytes());
        // A set has no more units than numbers, so that their sum fits as well.
        entry[12..].copy_from_slice(&(unit as u32).to_le_bytes());
    };
    let (mut before, mut unit) = (0, 0);
    for chunk in by_chunk(sorted) {
        put(chunk_of(chunk[0].0), before, unit);
        let units = number_set::units_for(chunk.len());
        let numbers = chunk.iter().map(|(number, _)| *number as u16);
        number_set::fill(
            &mut sets[unit * UNIT..][..units * UNIT],
            chunk.len(),
            numbers,
        );
        before += chunk.len();
        unit += units;
    }
    put(u64::MAX, before, unit);
}

fn fill_column(bytes: &mut [u8], width: usize, numbers: impl Iterator<Item = u64>) {
    for (slot, number) in bytes.chunks_exact_mut(width).zip(numbers) {
        slot.copy_from_slice(&number.to_le_bytes()[..width]);
    }
}

/// Numbers of one width, which has to be 1 to 8 bytes, and [`SPARE`] bytes behind them.
#[derive(Clone, Copy)]
struct Column<'a> {
    bytes: &'a [u8],
    width: usize,
    mask: u64,
}

impl<'a> Column<'a> {
    #[inline]
    fn new(bytes: &'a [u8], width: usize) -> Self {
        let mask = u64::MAX >> (u64::BITS as usize - width * 8);
        Self { bytes, width, mask }
    }

    /// Number `at`, which is less than how many there are.
    #[inline]
    fn get(&self, at: u64) -> u64 {
        read_u64(self.bytes, at as usize * self.width) & self.mask
    }
}

/// One chunk of the directory.
struct Chunk<'a> {
    number: u64,
    /// How many numbers are in the chunks before.
    before: u64,
    set: Set<'a>,
}

impl<'a> Chunk<'a> {
    fn numbers(self) -> impl Iterator<Item = u64> + 'a {
        let first = self.number << CHUNK_SHIFT;
        self.set.numbers().map(move |low| first | u64::from(low))
    }
}

/// The sections of a map as slices.
#[derive(Clone, Copy)]
pub(crate) struct MapView<'a> {
    len: u64,
    chunks: usize,
    least: u64,
    directory: &'a [u8],
    sets: &'a [u8],
    rows: Column<'a>,
    offsets: Column<'a>,
}

impl<'a> MapView<'a> {
    /// The row of a number.
    #[inline]
    pub(crate) fn row(&self, number: u64) -> Option<u64> {
        let row = self.rows.get(self.place(number)?);
        (row < self.len).then_some(row)
    }

    /// The number of a row.
    #[inline]
    pub(crate) fn number_at(&self, row: u64) -> Option<u64> {
        if row >= self.len {
            return None;
        }
        self.least.checked_add(self.offsets.get(row))
    }

    /// How many numbers are less than this one, if it is there.
    #[inline]
    pub(crate) fn place(&self, number: u64) -> Option<u64> {
        let chunk = self.find(chunk_of(number))?;
        let place = chunk.set.place(number as u16)?;
        Some(chunk.before + place as u64)
    }

    /// All numbers, ascending.
    pub(crate) fn numbers(self) -> impl Iterator<Item = u64> + 'a {
        (0..self.chunks).flat_map(move |at| self.chunk(at).numbers())
    }

    #[inline]
    fn find(&self, number: u64) -> Option<Chunk<'a>> {
        let ahead = number.checked_sub(chunk_of(self.least))?;
        let last = self.chunks.checked_sub(1)?;
        // Chunks ascend, so this one lies there if none is missing, and else before.
        let mut end = usize::try_from(ahead).map_or(last, |ahead| ahead.min(last));
        if self.chunk_number(end) == number {
            return Some(self.chunk(end));
        }
        let mut start = 0;
        while start < end {
            let middle = start.midpoint(end);
            let found = self.chunk_number(middle);
            if found == number {
                return Some(self.chunk(middle));
            }
            if found < number {
                start = middle + 1;
            } else {
                end = middle;
            }
        }
        None
    }

    #[inline]
    fn chunk_number(&self, at: usize) -> u64 {
        read_u64(self.directory, at * ENTRY)
    }

    /// How many numbers are in the chunks before, and the first unit of this one's set.
    #[inline]
    fn start(&self, at: usize) -> (u32, u32) {
        let entry = &self.directory[at * ENTRY..][..ENTRY];
        (read_u32(entry, 8), read_u32(entry, 12))
    }

    #[inline]
    fn chunk(&self, at: usize) -> Chunk<'a> {
        let (before, unit) = self.start(at);
        let (before_next, unit_next) = self.start(at + 1);
        let bytes = &self.sets[unit as usize * UNIT..unit_next as usize * UNIT];
        Chunk {
            number: self.chunk_number(at),
            before: u64::from(before),
            set: Set::new(bytes, (before_next - before) as usize),
        }
    }

    /// Tests that chunks ascend and that each has numbers and a set of the right length.
    fn test_directory(&self, shape: &Shape) -> Result<(), DictionaryError> {
        for at in 0..self.chunks {
            let ((before, unit), (before_next, unit_next)) = (self.start(at), self.start(at + 1));
            let count = before_next
                .checked_sub(before)
                .map_or(0, |count| count as usize);
            if self.chunk_number(at) >= self.chunk_number(at + 1) || !(1..=CHUNK).contains(&count) {
                return Err(damaged("the chunks of numbers are out of order"));
            }
            let units = number_set::units_for(count);
            if u64::from(unit) + units as u64 != u64::from(unit_next) {
                return Err(damaged(
                    "the chunks of numbers are not as long as they should be",
                ));
            }
        }
        let ends = (self.start(0), self.start(self.chunks));
        if ends != ((0, 0), (shape.len as u32, shape.units as u32)) {
            return Err(damaged("the chunks do not hold all numbers"));
        }
        let number = |at: usize| self.chunk_number(at);
        let ends = (chunk_of(shape.least), chunk_of(shape.greatest));
        if self.chunks > 0 && ends != (number(0), number(self.chunks - 1)) {
            return Err(damaged(
                "the chunks are not those of the least and the greatest number",
            ));
        }
        Ok(())
    }

    /// Tests that each number leads to a row, and that to the number.
    fn test_columns(&self, shape: &Shape) -> Result<(), DictionaryError> {
        if !(0..self.chunks).all(|at| self.chunk(at).set.is_sound()) {
            return Err(damaged("a set of numbers contradicts itself"));
        }
        let mut last = None;
        for number in self.numbers() {
            // Numbers are distinct, so no two of them can have one row.
            let row = self.row(number);
            if row.and_then(|row| self.number_at(row)) != Some(number) {
                return Err(damaged("a number does not lead to its row and back"));
            }
            if last.is_none() && number != shape.least {
                return Err(damaged("the least number is another one"));
            }
            last = Some(number);
        }
        if last.is_some_and(|last| last != shape.greatest) {
            return Err(damaged("the greatest number is another one"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(len: usize) -> StringTable {
        let texts: Vec<String> = (0..len).map(|row| format!("{row:06}")).collect();
        StringTable::build(len, |row| texts[row].as_bytes()).unwrap()
    }

    /// The map with its header as it is for the bytes that follow it.
    fn sealed(map: &NumberMap, strings: &StringTable, mut bytes: Vec<u8>) -> Region {
        let checksum = xxh3_64(&bytes[HEADER..]);
        let header = map.shape.header(strings.checksum().unwrap(), checksum);
        bytes[..HEADER].copy_from_slice(&header);
        Region::copy_from(&bytes)
    }

    #[test]
    fn damage_under_a_right_checksum_is_found_or_does_no_harm() {
        for (step, len) in [(1, 5_000), (70_000, 40), (1_u64 << 33, 40)] {
            let strings = strings(len);
            let by_row = (0..len as u64).map(|row| 7 + (row * 37 % len as u64) * step);
            let map = NumberMap::build(&strings, by_row.clone()).unwrap();
            map.verify().unwrap();
            let original = map.region.to_vec();
            for at in (HEADER..original.len()).step_by(if len > 1_000 { 13 } else { 1 }) {
                let mut bytes = original.clone();
                bytes[at] ^= 0x41;
                let Ok(map) = NumberMap::open(sealed(&map, &strings, bytes), &strings) else {
                    continue;
                };
                let sound = map.verify().is_ok();
                let view = map.view();
                for (row, number) in (0..).zip(by_row.clone()) {
                    let answers = (view.row(number), view.number_at(row));
                    assert!(!sound || answers == (Some(row), Some(number)), "byte {at}");
                }
                assert!(view.numbers().count() <= CHUNK * map.shape.chunks);
            }
        }
    }

    #[test]
    fn headers_that_tell_of_other_sizes_are_refused_under_a_right_checksum() {
        let strings = strings(40);
        let map = NumberMap::build(&strings, (0..40).map(|row| row << 20)).unwrap();
        for field in (16..CHECKSUM - 8).step_by(8) {
            let right = read_u64(&map.region, field);
            let near = [right.wrapping_sub(1), right + 1, right + 300];
            for wrong in near.into_iter().chain([0, 1 << 32, 1 << 60, u64::MAX]) {
                let mut bytes = map.region.to_vec();
                bytes[field..field + 8].copy_from_slice(&wrong.to_le_bytes());
                let checksum = xxh3_64(&bytes[..CHECKSUM]);
                bytes[CHECKSUM..HEADER].copy_from_slice(&checksum.to_le_bytes());
                match NumberMap::open(Region::copy_from(&bytes), &strings) {
                    Ok(map) => assert!(wrong == right || map.verify().is_err(), "at {field}"),
                    Err(error) => assert!(matches!(error, DictionaryError::Damaged { .. })),
                }
            }
        }
    }

    #[test]
    fn columns_of_every_width_keep_their_numbers() {
        for width in 1..=8 {
            let largest = u64::MAX >> (64 - width * 8);
            assert_eq!(width_for(largest), width);
            let numbers = [largest, 0, 1, largest - 1];
            let mut bytes = vec![0; 4 * width + SPARE];
            fill_column(&mut bytes, width, numbers.into_iter());
            let column = Column::new(&bytes, width);
            assert!(
                (0..)
                    .zip(numbers)
                    .all(|(at, number)| column.get(at) == number)
            );
        }
        assert_eq!(width_for(0), 1);
    }
}
