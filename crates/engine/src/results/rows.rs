//! How are rows of ids written as text, many at once?
//!
//! First the texts of all cells of some rows are found, column by column, then the rows are put
//! together from them: copies of a fixed size, each of which the next one partly overwrites, cost
//! a fraction of copies of the exact size.

use std::ops::Range;

use jindou_model::TermId;

use super::ResultsError;
use super::memory::{Column, Memory, Place, SLACK, Size};
use super::style::Style;
use crate::TermDecoder;

/// Rows whose cells are found before they are written.
const ROWS_AT_ONCE: usize = 256;
/// Bytes of text of so many rows, above which they are written one by one.
const BYTES_AT_ONCE: usize = 1 << 20;
/// Bytes of text after which a call comes back.
pub(super) const ENOUGH_BYTES: usize = 64 << 10;
/// Bytes that are copied at once where less is expected.
const SHORT: usize = 16;
/// Batches with fewer rows are written without a memory, as it would cost more to set up, unless
/// there is one.
pub(super) const ROWS_BEFORE: usize = 64;

/// What stands around the cells of a row.
pub(super) enum Frame {
    After {
        /// After each cell, bound or not.
        cells: Vec<Vec<u8>>,
        /// All that a row is that has no cells.
        empty: Vec<u8>,
    },
    Before {
        /// Before the first cell.
        open: Vec<u8>,
        /// Before each cell that is bound.
        before: Vec<Vec<u8>>,
        /// How many bytes less stand before the first of them, for a comma.
        first: usize,
        /// After the last cell.
        close: Vec<u8>,
    },
}

/// The parts of a frame, end to end for copies of a fixed size.
struct Parts {
    text: Vec<u8>,
    /// Whether `cells` come after their cells, whether these are bound or not.
    after: bool,
    open: Place,
    cells: Vec<Place>,
    first: u32,
    close: Place,
}

impl Parts {
    fn new(frame: &Frame) -> Self {
        let mut text = Vec::new();
        let mut push = |part: &[u8]| {
            let start = text.len() as u32;
            text.extend_from_slice(part);
            let len = part.len() as u32;
            Place { start, len }
        };
        let mut parts = match frame {
            Frame::After { cells, empty } => Self {
                text: Vec::new(),
                after: true,
                open: Place::default(),
                cells: cells.iter().map(|part| push(part)).collect(),
                first: 0,
                close: push(if cells.is_empty() { empty } else { b"" }),
            },
            Frame::Before {
                open,
                before,
                first,
                close,
            } => Self {
                text: Vec::new(),
                after: false,
                open: push(open),
                cells: before.iter().map(|part| push(part)).collect(),
                first: *first as u32,
                close: push(close),
            },
        };
        text.resize(text.len() + SLACK, 0);
        parts.text = text;
        parts
    }

    /// Bytes of a row besides its cells, at the most.
    fn row_bytes(&self) -> usize {
        let cells: u32 = self.cells.iter().map(|part| part.len).sum();
        (self.open.len + cells + self.close.len) as usize
    }

    fn part(&self, place: Place) -> &[u8] {
        &self.text[place.start as usize..][..place.len as usize]
    }
}

/// Writes rows in one format of text.
pub(super) struct Rows {
    frame: Parts,
    memory: Memory,
    /// Row by row.
    places: Vec<Place>,
}

impl Rows {
    /// That remember texts of this size.
    pub(super) fn new(style: Style, frame: &Frame, size: Size) -> Self {
        Self {
            frame: Parts::new(frame),
            memory: Memory::new(style, size),
            places: Vec::new(),
        }
    }

    /// Remembers more texts from now on.
    pub(super) fn enlarge(&mut self) {
        self.memory.enlarge();
    }

    /// Appends the rows `from..to` of columns of ids, until some tens of KiB are appended; gives
    /// the row after the last one.
    ///
    /// # Errors
    /// As [`Style::write`].
    ///
    /// # Panics
    /// If there are more or fewer columns than the frame has.
    pub(super) fn write(
        &mut self,
        out: &mut Vec<u8>,
        columns: &[Column<'_>],
        rows: Range<usize>,
        decoder: &mut TermDecoder<'_>,
    ) -> Result<usize, ResultsError> {
        assert_eq!(columns.len(), self.frame.cells.len(), "a cell for each");
        let before = out.len();
        let mut row = rows.start;
        while row < rows.end && out.len() - before < ENOUGH_BYTES {
            let end = rows.end.min(row + ROWS_AT_ONCE);
            if self.find(columns, row..end, decoder)? {
                self.copy(out, end - row);
                row = end;
                continue;
            }
            while row < end && out.len() - before < ENOUGH_BYTES {
                self.write_one(out, columns.iter().map(|column| column.id(row)), decoder)?;
                row += 1;
            }
        }
        Ok(row)
    }

    /// Finds the texts of all cells of some rows; false if they are too long.
    fn find(
        &mut self,
        columns: &[Column<'_>],
        rows: Range<usize>,
        decoder: &mut TermDecoder<'_>,
    ) -> Result<bool, ResultsError> {
        let stride = columns.len();
        self.places.resize(rows.len() * stride, Place::default());
        self.memory.make_room();
        for (number, column) in columns.iter().enumerate() {
            let places = &mut self.places[number..];
            let places = (places, stride);
            if !self.memory.find(*column, rows.clone(), places, decoder)? {
                return Ok(false);
            }
        }
        let bytes: usize = self.places.iter().map(|place| place.len as usize).sum();
        Ok(bytes <= BYTES_AT_ONCE)
    }

    /// Appends the rows whose cells were found.
    fn copy(&mut self, out: &mut Vec<u8>, rows: usize) {
        let frame = &self.frame;
        let cells: usize = self.places.iter().map(|place| place.len as usize).sum();
        let text = self.memory.text();
        let begin = out.len();
        out.resize(begin + cells + rows * frame.row_bytes() + SLACK, 0);
        let mut to = Cursor { out, at: begin };
        if frame.cells.is_empty() {
            (0..rows).for_each(|_| {
                to.put(&frame.text, frame.open);
                to.put(&frame.text, frame.close);
            });
        } else if frame.after {
            put_separated(&mut to, frame, text, &self.places);
        } else {
            put_members(&mut to, frame, text, &self.places);
        }
        let end = to.at;
        out.truncate(end);
    }

    /// Appends one row, without looking at what is remembered.
    fn write_one(
        &self,
        out: &mut Vec<u8>,
        cells: impl Iterator<Item = TermId>,
        decoder: &mut TermDecoder<'_>,
    ) -> Result<(), ResultsError> {
        let frame = &self.frame;
        out.extend_from_slice(frame.part(frame.open));
        let mut first = frame.first as usize;
        for (id, part) in cells.zip(&frame.cells) {
            if let Some(text) = decoder.text(id) {
                if !frame.after {
                    out.extend_from_slice(&frame.part(*part)[first..]);
                    first = 0;
                }
                self.memory.style().write(out, text)?;
            }
            if frame.after {
                out.extend_from_slice(frame.part(*part));
            }
        }
        out.extend_from_slice(frame.part(frame.close));
        Ok(())
    }
}

/// Rows whose cells have something after them.
fn put_separated(to: &mut Cursor<'_>, frame: &Parts, text: &[u8], cells: &[Place]) {
    for row in cells.chunks_exact(frame.cells.len()) {
        for (cell, after) in row.iter().zip(&frame.cells) {
            to.put(text, *cell);
            to.put_short(&frame.text, *after);
        }
    }
}

/// Rows that have something before those cells that are bound.
fn put_members(to: &mut Cursor<'_>, frame: &Parts, text: &[u8], cells: &[Place]) {
    for row in cells.chunks_exact(frame.cells.len()) {
        to.put_short(&frame.text, frame.open);
        let mut first = frame.first;
        for (cell, before) in row.iter().zip(&frame.cells) {
            if cell.len > 0 {
                let before = Place {
                    start: before.start + first,
                    len: before.len - first,
                };
                first = 0;
                to.put(&frame.text, before);
                to.put(text, *cell);
            }
        }
        to.put_short(&frame.text, frame.close);
    }
}

/// A place in the output, behind which there is room for all that follows.
struct Cursor<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl Cursor<'_> {
    /// Copies a text behind which there are [`SLACK`] bytes.
    #[inline(always)]
    fn put(&mut self, text: &[u8], place: Place) {
        let (start, len) = (place.start as usize, place.len as usize);
        let (from, to) = (&text[start..], &mut self.out[self.at..]);
        to[..SLACK].copy_from_slice(&from[..SLACK]);
        let mut done = SLACK;
        while done < len {
            to[done..done + SLACK].copy_from_slice(&from[done..done + SLACK]);
            done += SLACK;
        }
        self.at += len;
    }

    /// As [`Cursor::put`], for what is mostly of a few bytes.
    #[inline(always)]
    fn put_short(&mut self, text: &[u8], place: Place) {
        let (start, len) = (place.start as usize, place.len as usize);
        if len <= SHORT {
            let (from, to) = (&text[start..], &mut self.out[self.at..]);
            to[..SHORT].copy_from_slice(&from[..SHORT]);
            self.at += len;
        } else {
            self.put(text, place);
        }
    }
}
