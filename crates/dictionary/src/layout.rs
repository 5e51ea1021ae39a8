//! Where do the sections of a string table lie?
//!
//! ```text
//! header     HEADER bytes
//! offsets    where each block begins in the data, and where the last ends: u32, or u64
//! data       blocks of front-coded strings
//! index      buckets of the hash index; none of a table of which nobody asks for strings
//! ```
//!
//! Numbers are little-endian; each section begins at a multiple of eight bytes. The header holds
//! a checksum of itself, tested whenever a table is opened, and one of all that follows it,
//! tested on demand.

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use crate::block::BLOCK;
use crate::error::DictionaryError;
use crate::index;

pub(crate) const HEADER: usize = 64;
const MAGIC: [u8; 8] = *b"JINDSTRT";
const VERSION: u32 = 1;
const WIDE_OFFSETS: u32 = 1;
const WIDE_IDS: u32 = 2;
const NO_INDEX: u32 = 4;
/// Where the header's own checksum lies: at its end.
const CHECKSUM: usize = HEADER - 8;

/// The places of a table's sections, in bytes from its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) len: u64,
    pub(crate) blocks: usize,
    pub(crate) buckets: usize,
    pub(crate) wide_offsets: bool,
    pub(crate) wide_ids: bool,
    pub(crate) offsets: Range<usize>,
    pub(crate) data: Range<usize>,
    pub(crate) index: Range<usize>,
}

impl Layout {
    /// The layout of `len` strings in blocks of `data_bytes` in all, with an index or without, and numbers as
    /// narrow as can be; `None` if it is larger than an address space.
    pub(crate) fn new(len: u64, data_bytes: usize, has_index: bool) -> Option<Self> {
        let wide_offsets = u32::try_from(data_bytes).is_err();
        Self::with_widths(len, data_bytes, has_index, (wide_offsets, len > 1 << 32))
    }

    /// As [`Self::new`], with offsets and ids of eight bytes or of four.
    pub(crate) fn with_widths(
        len: u64,
        data_bytes: usize,
        has_index: bool,
        (wide_offsets, wide_ids): (bool, bool),
    ) -> Option<Self> {
        let blocks = usize::try_from(len.div_ceil(BLOCK as u64)).ok()?;
        let buckets = match has_index {
            true => index::buckets_for(len)?,
            false => 0,
        };
        let offset_bytes = if wide_offsets { 8 } else { 4 };
        let offsets = section(HEADER, blocks.checked_add(1)?.checked_mul(offset_bytes)?)?;
        let data = section(offsets.end, data_bytes)?;
        let index = section(
            data.end,
            buckets.checked_mul(index::bucket_bytes(wide_ids))?,
        )?;
        Some(Self {
            len,
            blocks,
            buckets,
            wide_offsets,
            wide_ids,
            offsets,
            data,
            index,
        })
    }

    /// Bytes of the whole table.
    pub(crate) fn bytes(&self) -> usize {
        self.index.end.next_multiple_of(8)
    }

    /// Bytes of one offset.
    pub(crate) fn offset_bytes(&self) -> usize {
        if self.wide_offsets { 8 } else { 4 }
    }

    /// The header, given the checksum of what follows it.
    pub(crate) fn header(&self, body_checksum: u64) -> [u8; HEADER] {
        let flags = (u32::from(self.wide_offsets) * WIDE_OFFSETS)
            | (u32::from(self.wide_ids) * WIDE_IDS)
            | (u32::from(self.buckets == 0) * NO_INDEX);
        let numbers = [
            self.len,
            self.data.start as u64,
            self.data.len() as u64,
            self.index.start as u64,
            body_checksum,
        ];
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[12..16].copy_from_slice(&flags.to_le_bytes());
        for (bytes, number) in header[16..CHECKSUM].chunks_exact_mut(8).zip(numbers) {
            bytes.copy_from_slice(&number.to_le_bytes());
        }
        let checksum = xxh3_64(&header[..CHECKSUM]);
        header[CHECKSUM..].copy_from_slice(&checksum.to_le_bytes());
        header
    }

    /// The layout that the header of `table` tells, and the checksum of what follows the header.
    pub(crate) fn read(table: &[u8]) -> Result<(Self, u64), DictionaryError> {
        let damaged = |what| DictionaryError::Damaged { what };
        if table.get(..8) != Some(&MAGIC[..]) {
            return Err(DictionaryError::NotATable);
        }
        let header = table
            .get(..HEADER)
            .ok_or(damaged("the header is cut short"))?;
        let found = read_u32(header, 8);
        if found != VERSION {
            let supported = VERSION;
            return Err(DictionaryError::Version { found, supported });
        }
        if xxh3_64(&header[..CHECKSUM]) != read_u64(header, CHECKSUM) {
            return Err(damaged("the header does not match its checksum"));
        }
        let data_bytes = usize::try_from(read_u64(header, 32));
        let data_bytes = data_bytes.map_err(|_| damaged("the data is too large"))?;
        let flags = read_u32(header, 12);
        let (wide_offsets, wide_ids) = (flags & WIDE_OFFSETS != 0, flags & WIDE_IDS != 0);
        let has_index = flags & NO_INDEX == 0;
        let widths = (wide_offsets, wide_ids);
        let layout = Self::with_widths(read_u64(header, 16), data_bytes, has_index, widths);
        let layout = layout.ok_or(damaged("the table is too large"))?;
        let body_checksum = read_u64(header, 48);
        if layout.header(body_checksum) != header {
            return Err(damaged("the sections are not where they should be"));
        }
        if layout.bytes() != table.len() {
            return Err(damaged("the table is not as long as its header says"));
        }
        Ok((layout, body_checksum))
    }
}

/// The section of `bytes` bytes that follows another one; `None` if it ends beyond all addresses.
pub(crate) fn section(end_of_last: usize, bytes: usize) -> Option<Range<usize>> {
    let start = end_of_last.checked_next_multiple_of(8)?;
    let end = start.checked_add(bytes)?;
    // Rounding up the end must not overflow either.
    end.checked_next_multiple_of(8)?;
    Some(start..end)
}

/// The number of two bytes at `at`.
#[inline]
pub(crate) fn read_u16(bytes: &[u8], at: usize) -> u16 {
    let mut number = [0; 2];
    number.copy_from_slice(&bytes[at..at + 2]);
    u16::from_le_bytes(number)
}

/// The number of four bytes at `at`.
#[inline]
pub(crate) fn read_u32(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

/// The number of eight bytes at `at`.
#[inline]
pub(crate) fn read_u64(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}
