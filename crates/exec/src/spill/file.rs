//! How do rows lie in a file?
//!
//! A batch is its number of rows and of columns, then column by column what it holds, the least
//! value, the bytes that each difference to it takes (0 to 8), and the differences, all
//! little-endian. A variable without a column takes one byte.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

use jindou_model::TermId;
use jindou_plan::physical::Var;

use super::Space;
use crate::ExecError;
use crate::context::Context;
use crate::discard::discard;
use crate::table::{Column, ColumnKind, Table};

/// Bytes that are written at once.
const WRITE_BYTES: usize = 1 << 18;

/// What is said of a variable without a column, in the place of a [`ColumnKind`].
const UNBOUND: u8 = 0;

/// A batch in a file.
#[derive(Clone, Copy)]
pub(crate) struct Chunk {
    offset: u64,
    bytes: u32,
}

/// A file that is being written.
pub(crate) struct SpillFile {
    place: Place,
    /// Bytes in the file; what follows waits in the buffer.
    written: u64,
    buffer: Vec<u8>,
}

/// A file in a query's space: gives its bytes back when dropped.
struct Place {
    /// Taken out by its end only.
    file: Option<File>,
    space: Arc<Space>,
    taken: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.space.give_back(self.taken);
        // Nobody waits until the system has given the blocks of a large file back.
        discard(
            self.file.take(),
            usize::try_from(self.taken).unwrap_or(usize::MAX),
        );
    }
}

impl Place {
    fn file(&self) -> &File {
        self.file.as_ref().expect("it is there until the end")
    }
}

impl SpillFile {
    /// An empty file without a name.
    pub(crate) fn create(cx: &Context) -> Result<Self, ExecError> {
        let space = Arc::clone(cx.space());
        let file = tempfile::tempfile_in(&space.limits.directory)
            .map_err(|source| space.directory_error(source))?;
        Ok(Self {
            place: Place {
                file: Some(file),
                space,
                taken: 0,
            },
            written: 0,
            buffer: Vec::new(),
        })
    }

    /// Adds a batch.
    pub(crate) fn append(&mut self, table: &Table) -> Result<Chunk, ExecError> {
        let begin = self.buffer.len();
        encode(table, &mut self.buffer);
        let bytes = self.buffer.len() - begin;
        let chunk = Chunk {
            offset: self.written + begin as u64,
            bytes: u32::try_from(bytes).expect("a batch takes less than 4 GiB"),
        };
        // Booked at once, so that an operator does not outgrow the bound by its buffer.
        self.place.space.take(bytes as u64)?;
        self.place.taken += bytes as u64;
        if self.buffer.len() >= WRITE_BYTES {
            self.write()?;
        }
        Ok(chunk)
    }

    fn write(&mut self) -> Result<(), ExecError> {
        self.place
            .file()
            .write_all(&self.buffer)
            .map_err(|source| self.place.space.directory_error(source))?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// The file, complete.
    pub(crate) fn seal(mut self) -> Result<Arc<SealedFile>, ExecError> {
        self.write()?;
        Ok(Arc::new(SealedFile(self.place)))
    }
}

/// A file that is complete. One operator reads it, at one place at a time.
pub(crate) struct SealedFile(Place);

impl SealedFile {
    fn read(&self, chunk: Chunk, scratch: &mut Vec<u8>) -> Result<Table, ExecError> {
        scratch.resize(chunk.bytes as usize, 0);
        let mut file = self.0.file();
        file.seek(SeekFrom::Start(chunk.offset))
            .and_then(|_| file.read_exact(scratch))
            .and_then(|()| {
                let damaged = || io::Error::new(io::ErrorKind::InvalidData, "not what was written");
                decode(scratch).ok_or_else(damaged)
            })
            .map_err(|source| self.0.space.directory_error(source))
    }
}

/// Batches of a file that belong together, in their order.
pub(crate) struct Run {
    file: Arc<SealedFile>,
    chunks: Vec<Chunk>,
    rows: u64,
}

impl Run {
    pub(crate) fn new(file: &Arc<SealedFile>, chunks: Vec<Chunk>, rows: u64) -> Self {
        Self {
            file: Arc::clone(file),
            chunks,
            rows,
        }
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Its rows from the first on; the file goes with the last of its runs.
    pub(crate) fn into_reader(self) -> RunReader {
        RunReader {
            run: self,
            next: 0,
            scratch: Vec::new(),
        }
    }

    /// Its rows from the first on.
    pub(crate) fn reader(&self) -> RunReader {
        Self::new(&self.file, self.chunks.clone(), self.rows).into_reader()
    }
}

/// Hands over the batches of a run.
pub(crate) struct RunReader {
    run: Run,
    next: usize,
    scratch: Vec<u8>,
}

impl RunReader {
    /// The next batch; `None` at the end.
    pub(crate) fn next(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        let Some(chunk) = self.run.chunks.get(self.next) else {
            return Ok(None);
        };
        self.next += 1;
        self.run.file.read(*chunk, &mut self.scratch).map(Some)
    }
}

fn encode(table: &Table, out: &mut Vec<u8>) {
    out.extend_from_slice(&(table.rows() as u32).to_le_bytes());
    out.extend_from_slice(&(table.width() as u16).to_le_bytes());
    for number in 0..table.width() {
        let Some(column) = table.of_any_kind(Var(number as u16)) else {
            out.push(UNBOUND);
            continue;
        };
        out.push(column.kind() as u8);
        match column {
            Column::Ids(ids) => put_column(ids.iter().map(|id| id.raw()), out),
            Column::Counts(numbers) | Column::Numbers(numbers) => {
                put_column(numbers.iter().copied(), out);
            }
            Column::Rows(rows) => put_column(rows.iter().copied().map(u64::from), out),
        }
    }
}

fn put_column(values: impl Iterator<Item = u64> + Clone, out: &mut Vec<u8>) {
    let least = values.clone().min().unwrap_or(0);
    let most = values.clone().max().unwrap_or(0);
    let width = (u64::BITS - (most - least).leading_zeros()).div_ceil(8) as u8;
    out.extend_from_slice(&least.to_le_bytes());
    out.push(width);
    match width {
        0 => (),
        1 => put::<1>(values, least, out),
        2 => put::<2>(values, least, out),
        3 => put::<3>(values, least, out),
        4 => put::<4>(values, least, out),
        5 => put::<5>(values, least, out),
        6 => put::<6>(values, least, out),
        7 => put::<7>(values, least, out),
        _ => put::<8>(values, least, out),
    }
}

fn put<const WIDTH: usize>(values: impl Iterator<Item = u64>, least: u64, out: &mut Vec<u8>) {
    out.reserve(values.size_hint().0 * WIDTH);
    for value in values {
        out.extend_from_slice(&(value - least).to_le_bytes()[..WIDTH]);
    }
}

/// The batch in these bytes; `None` if there is none.
fn decode(bytes: &[u8]) -> Option<Table> {
    let (rows, bytes) = bytes.split_first_chunk::<4>()?;
    let (width, mut bytes) = bytes.split_first_chunk::<2>()?;
    let rows = u32::from_le_bytes(*rows) as usize;
    let columns = u16::from_le_bytes(*width);
    let mut table = Table::with_rows(columns.into(), rows);
    for number in 0..columns {
        let (kind, rest) = bytes.split_first()?;
        bytes = rest;
        if *kind == UNBOUND {
            continue;
        }
        let kind = ColumnKind::from_number((*kind).into())?;
        let (least, rest) = bytes.split_first_chunk::<8>()?;
        let (width, rest) = rest.split_first()?;
        let least = u64::from_le_bytes(*least);
        let (values, rest) = rest.split_at_checked(rows.checked_mul((*width).into())?)?;
        bytes = rest;
        if (kind, least, *width) == (ColumnKind::Ids, TermId::NONE.raw(), 0) {
            // Unbound in all rows.
            continue;
        }
        let packed = Packed {
            least,
            width: *width,
            rows,
            values,
        };
        let column = match kind {
            ColumnKind::Ids => Column::Ids(packed.unpack(TermId::from_raw)?),
            ColumnKind::Counts => Column::Counts(packed.unpack(|value| value)?),
            ColumnKind::Numbers => Column::Numbers(packed.unpack(|value| value)?),
            ColumnKind::Rows => Column::Rows(packed.unpack(|value| value as u32)?),
        };
        table.set_column(Var(number), column);
    }
    bytes.is_empty().then_some(table)
}

/// The values of a column, as they lie in the file.
struct Packed<'a> {
    least: u64,
    /// Bytes of each difference.
    width: u8,
    rows: usize,
    values: &'a [u8],
}

impl Packed<'_> {
    fn unpack<T: Clone>(&self, make: impl Fn(u64) -> T) -> Option<Vec<T>> {
        Some(match self.width {
            0 => vec![make(self.least); self.rows],
            1 => self.get::<1, T>(make),
            2 => self.get::<2, T>(make),
            3 => self.get::<3, T>(make),
            4 => self.get::<4, T>(make),
            5 => self.get::<5, T>(make),
            6 => self.get::<6, T>(make),
            7 => self.get::<7, T>(make),
            8 => self.get::<8, T>(make),
            _ => return None,
        })
    }

    fn get<const WIDTH: usize, T>(&self, make: impl Fn(u64) -> T) -> Vec<T> {
        let (cells, _) = self.values.as_chunks::<WIDTH>();
        let value = |cell: &[u8; WIDTH]| {
            let mut raw = [0; 8];
            raw[..WIDTH].copy_from_slice(cell);
            make(self.least.wrapping_add(u64::from_le_bytes(raw)))
        };
        cells.iter().map(value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_comes_back_as_it_was() {
        for seed in 0..200_u64 {
            let mut state = seed;
            let mut random = move || {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                state >> 11 << 11 | state >> 53
            };
            let (rows, width) = (random() as usize % 50, random() as usize % 6);
            let mut table = Table::with_rows(width, rows);
            for column in 0..width {
                let shift = random() % 65;
                if shift < 64 {
                    let mut value = || random() >> shift;
                    let values: Vec<u64> = (0..rows).map(|_| value()).collect();
                    let column_of = match value() % 4 {
                        0 => Column::Counts(values),
                        1 => Column::Numbers(values),
                        2 => Column::Rows(values.iter().map(|value| *value as u32).collect()),
                        _ => Column::Ids(values.into_iter().map(TermId::from_raw).collect()),
                    };
                    table.set_column(Var(column as u16), column_of);
                }
            }
            let mut bytes = Vec::new();
            encode(&table, &mut bytes);
            let read = decode(&bytes).expect("it was encoded");
            assert_eq!((read.rows(), read.width()), (rows, width), "seed {seed}");
            for column in 0..width {
                let var = Var(column as u16);
                match (read.of_any_kind(var), table.of_any_kind(var)) {
                    (None, Some(Column::Ids(ids))) => assert!(ids.iter().all(|id| id.is_none())),
                    (read, written) => assert_eq!(read, written, "seed {seed}"),
                }
            }
            assert!(rows == 0 || decode(&bytes[..bytes.len() - 1]).is_none());
            bytes.push(0);
            assert!(decode(&bytes).is_none());
        }
    }
}
