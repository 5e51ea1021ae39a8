//! A file of the store: words that describe, arrays that are mapped, a checksum over everything.
//! What lies in no file is the same bytes in memory, without the header.
//!
//! Layout, little-endian: a header of eight words (magic, format version, kind of content, length
//! of the file, place and number of the words, checksum of all bytes behind the header, checksum
//! of the header's first seven words), then the arrays, each at a multiple of 64 bytes, then the
//! words, of which the last one is the magic again: so the last bytes of a file are other than zero,
//! and one that is shortened while it is mapped is noticed there. A file is written once, synced, and renamed into place; when it is opened its length
//! and its checksum are compared before anything in it is believed.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use bytemuck::AnyBitPattern;
use jindou_fabric::{FabricError, Region, RegionBuilder};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::StoreError;
use crate::array::Array;
use crate::log::{Storage, write_file};

const MAGIC: u64 = u64::from_le_bytes(*b"JINDOU\r\n");
/// Raised whenever a file written before can no longer be read.
const FORMAT_VERSION: u64 = 4;
const HEADER_WORDS: usize = 8;
const HEADER_BYTES: usize = HEADER_WORDS * 8;
/// Arrays begin at cache lines.
const ARRAY_ALIGNMENT: usize = 64;

/// Bytes that are read of a mapped file at once.
const PIECE_BYTES: usize = 16 << 20;

/// Memory of so many bytes, for what is to be read by others too.
pub(crate) type Allocate<'a> = dyn Fn(usize) -> Result<RegionBuilder, FabricError> + 'a;

/// Collects what goes into a file.
#[derive(Default)]
pub(crate) struct ImageWriter {
    words: Vec<u64>,
    regions: Vec<Region>,
    end: usize,
}

impl ImageWriter {
    pub(crate) fn word(&mut self, word: u64) {
        self.words.push(word);
    }

    /// Adds an array; the region is shared, not copied.
    pub(crate) fn region(&mut self, region: &Region) {
        self.words.push(self.end as u64);
        self.words.push(region.len() as u64);
        self.end += region.len().next_multiple_of(ARRAY_ALIGNMENT);
        self.regions.push(region.clone());
    }

    pub(crate) fn words(&mut self, words: &[u64]) {
        self.region(&Region::copy_from(bytemuck::cast_slice(words)));
    }

    /// Writes the file under a temporary name, syncs it and gives it its own; returns the checksum
    /// of what is in it. The name is lasting once the folder is synced.
    pub(crate) fn finish(
        mut self,
        storage: &dyn Storage,
        name: &str,
        kind: u64,
    ) -> Result<u64, StoreError> {
        self.words.push(MAGIC);
        write_file(storage, name, |writer| self.write_to(writer, kind))
    }

    /// Writes what is in the file, which is to be read back by this process alone.
    pub(crate) fn write_unsynced(mut self, writer: &mut dyn Write, kind: u64) -> io::Result<()> {
        self.words.push(MAGIC);
        self.write_to(writer, kind)?;
        writer.flush()
    }

    /// As [`ImageWriter::in_memory_of`], in memory of this process.
    pub(crate) fn in_memory(self) -> ImageReader {
        let image = self.in_memory_of(&|bytes| Ok(RegionBuilder::new(bytes)));
        image.expect("memory of the process ends it where there is none")
    }

    /// The bytes of the file behind its header, in one region, to be read back from there.
    ///
    /// Each array is let go of once it is copied, so that it costs no second memory where nobody
    /// else holds it.
    pub(crate) fn in_memory_of(
        mut self,
        allocate: &Allocate<'_>,
    ) -> Result<ImageReader, StoreError> {
        self.words.push(MAGIC);
        let words: &[u8] = bytemuck::cast_slice(&self.words);
        let mut image = allocate(self.end + words.len())?;
        let bytes: &mut [u8] = image.as_mut_slice();
        bytes[self.end..].copy_from_slice(words);
        let mut begin = 0;
        for region in self.regions {
            bytes[begin..begin + region.len()].copy_from_slice(&region);
            begin += region.len().next_multiple_of(ARRAY_ALIGNMENT);
        }
        let image = image.finish();
        Ok(ImageReader {
            path: PathBuf::from("memory"),
            data: image.slice(0..self.end),
            words: image.slice(self.end..image.len()),
            next: 0,
            checksum: 0,
            kind: 0,
        })
    }

    fn write_to(&self, writer: &mut dyn Write, kind: u64) -> io::Result<u64> {
        let words: &[u8] = bytemuck::cast_slice(&self.words);
        let mut hasher = Xxh3::new();
        for region in &self.regions {
            in_pieces(region, |piece| {
                hasher.update(piece);
                Ok(())
            })?;
            hasher.update(padding(region.len()));
        }
        hasher.update(words);
        let checksum = hasher.digest();
        let mut header = [
            MAGIC,
            FORMAT_VERSION,
            kind,
            (HEADER_BYTES + self.end + words.len()) as u64,
            self.end as u64,
            self.words.len() as u64,
            checksum,
            0,
        ];
        header[7] = header_checksum(&header);
        writer.write_all(bytemuck::cast_slice(&header))?;
        for region in &self.regions {
            in_pieces(region, |piece| writer.write_all(piece))?;
            writer.write_all(padding(region.len()))?;
        }
        writer.write_all(words)?;
        Ok(checksum)
    }
}

/// Calls `each` with the bytes of a region, piece by piece. Of one that lies in another file, each piece is
/// let go of: a base that was made in a bounded memory is written in it, too.
fn in_pieces(region: &Region, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    for piece in region.chunks(PIECE_BYTES) {
        each(piece)?;
        region.let_go();
    }
    Ok(())
}

/// The checksum of a mapped file, which is let go of piece by piece.
fn checksum_in_pieces(body: &Region) -> u64 {
    let mut hasher = Xxh3::new();
    for piece in body.chunks(PIECE_BYTES) {
        hasher.update(piece);
        body.let_go();
    }
    hasher.digest()
}

fn padding(length: usize) -> &'static [u8] {
    &[0; ARRAY_ALIGNMENT][..length.next_multiple_of(ARRAY_ALIGNMENT) - length]
}

fn header_checksum(header: &[u64; HEADER_WORDS]) -> u64 {
    xxh3_64(bytemuck::cast_slice(&header[..HEADER_WORDS - 1]))
}

/// Reads an image back, in the order in which it was written.
pub(crate) struct ImageReader {
    path: PathBuf,
    data: Region,
    words: Region,
    next: usize,
    /// 0 of an image in memory, which has none.
    checksum: u64,
    /// Of its content; 0 of an image in memory.
    kind: u64,
}

impl ImageReader {
    /// The checksum of what is in the file.
    pub(crate) fn checksum(&self) -> u64 {
        self.checksum
    }

    /// The file's path, and all of it that holds arrays and words.
    pub(crate) fn file(&self) -> (PathBuf, Region) {
        (self.path.clone(), self.data.clone())
    }

    /// Which kind of content it is.
    pub(crate) fn kind(&self) -> u64 {
        self.kind
    }

    /// Maps a file and compares its length and checksums.
    pub(crate) fn open(path: &Path, kind: u64) -> Result<Self, StoreError> {
        Self::open_one_of(path, &[kind])
    }

    /// As [`ImageReader::open`], and holds only a piece of the file in memory.
    pub(crate) fn open_and_let_go(path: &Path, kind: u64) -> Result<Self, StoreError> {
        Self::map(path, &[kind], checksum_in_pieces)
    }

    /// As [`ImageReader::open`], of a file that may be of one of some kinds.
    pub(crate) fn open_one_of(path: &Path, kinds: &[u64]) -> Result<Self, StoreError> {
        Self::map(path, kinds, |body| xxh3_64(body))
    }

    fn map(
        path: &Path,
        kinds: &[u64],
        checksum_of: impl Fn(&Region) -> u64,
    ) -> Result<Self, StoreError> {
        let failed = |source: io::Error| StoreError::Io {
            path: path.to_owned(),
            source,
        };
        let corrupt = |reason: &str| StoreError::Corrupt {
            path: path.to_owned(),
            reason: reason.to_owned(),
        };
        let file = File::open(path).map_err(failed)?;
        let map = Region::map_file(&file).map_err(failed)?;
        if map.len() < HEADER_BYTES {
            return Err(corrupt("it is shorter than its header"));
        }
        let mut header = [0; HEADER_WORDS];
        header.copy_from_slice(&map.slice(0..HEADER_BYTES).as_slice::<u64>()[..HEADER_WORDS]);
        let [
            magic,
            version,
            file_kind,
            length,
            end,
            count,
            checksum,
            own_checksum,
        ] = header;
        if magic != MAGIC {
            return Err(corrupt("it does not begin as a file of a Jindou store"));
        }
        if version != FORMAT_VERSION {
            return Err(StoreError::Version {
                path: path.to_owned(),
                found: version,
                supported: FORMAT_VERSION,
            });
        }
        if own_checksum != header_checksum(&header) {
            return Err(corrupt("the checksum of its header is wrong"));
        }
        if !kinds.contains(&file_kind) {
            return Err(corrupt(
                "it holds another part of the store than its name says",
            ));
        }
        let expected = (end as usize)
            .checked_add(HEADER_BYTES)
            .and_then(|sum| sum.checked_add((count as usize).checked_mul(8)?));
        if length != map.len() as u64 || expected != Some(map.len()) {
            return Err(corrupt(&format!(
                "it has {} bytes and should have {length}",
                map.len()
            )));
        }
        if checksum_of(&map.slice(HEADER_BYTES..map.len())) != checksum {
            return Err(corrupt("its checksum is wrong"));
        }
        let border = HEADER_BYTES + end as usize;
        Ok(Self {
            path: path.to_owned(),
            data: map.slice(HEADER_BYTES..border),
            words: map.slice(border..map.len()),
            next: 0,
            checksum,
            kind: file_kind,
        })
    }

    pub(crate) fn word(&mut self) -> Result<u64, StoreError> {
        let word = self.words.as_slice::<u64>().get(self.next).copied();
        self.next += 1;
        word.ok_or_else(|| self.corrupt("its description ends early"))
    }

    /// A word that counts something in memory.
    pub(crate) fn length(&mut self) -> Result<usize, StoreError> {
        let word = self.word()?;
        usize::try_from(word).map_err(|_| self.corrupt("a length does not fit into memory"))
    }

    pub(crate) fn region(&mut self) -> Result<Region, StoreError> {
        let begin = self.length()?;
        let length = self.length()?;
        match begin.checked_add(length) {
            Some(end) if end <= self.data.len() && begin.is_multiple_of(ARRAY_ALIGNMENT) => {
                Ok(self.data.slice(begin..end))
            }
            _ => Err(self.corrupt("an array lies outside the file")),
        }
    }

    pub(crate) fn words(&mut self) -> Result<Vec<u64>, StoreError> {
        Ok(self.array::<u64>()?.to_vec())
    }

    /// The next array, where it lies.
    pub(crate) fn array<T: AnyBitPattern>(&mut self) -> Result<Array<T>, StoreError> {
        let numbers = Array::new(self.region()?);
        numbers.ok_or_else(|| self.corrupt("an array of numbers has a broken length"))
    }

    pub(crate) fn corrupt(&self, reason: &str) -> StoreError {
        StoreError::Corrupt {
            path: self.path.clone(),
            reason: reason.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_altered_byte_and_any_truncation_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("part.jnd");
        let seven = || {
            let mut image = ImageWriter::default();
            image.word(7);
            image.words(&[1, 2, 3]);
            image.region(&Region::copy_from(b"hello"));
            image
        };
        let storage = crate::log::Folder::new(folder.path());
        seven().finish(&storage, "part.jnd", 9).unwrap();

        let mut reader = ImageReader::open(&path, 9).unwrap();
        let mut in_memory = seven().in_memory();
        assert_eq!(
            in_memory.data.memory()[..],
            reader.data.memory()[HEADER_BYTES..]
        );
        for reader in [&mut reader, &mut in_memory] {
            assert_eq!(reader.word().unwrap(), 7);
            assert_eq!(reader.words().unwrap(), [1, 2, 3]);
            assert_eq!(&*reader.region().unwrap(), b"hello");
            assert_eq!(reader.word().unwrap(), MAGIC);
            assert!(reader.word().is_err());
        }
        assert!(ImageReader::open(&path, 8).is_err());

        let good = std::fs::read(&path).unwrap();
        for place in 0..good.len() {
            let mut bad = good.clone();
            bad[place] ^= 0x10;
            std::fs::write(&path, &bad).unwrap();
            let error = ImageReader::open(&path, 9)
                .err()
                .expect("an altered byte is noticed");
            assert!(error.to_string().contains("part.jnd"), "{error}");
        }
        for length in 0..good.len() {
            std::fs::write(&path, &good[..length]).unwrap();
            assert!(
                ImageReader::open(&path, 9).is_err(),
                "{length} bytes were accepted"
            );
        }
    }
}
