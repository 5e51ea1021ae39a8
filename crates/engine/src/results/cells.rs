//! How is the text of an id's cell found, mostly without decoding or escaping anything?

use jindou_model::TermId;

use super::ResultsError;
use super::blocks::Blocks;
use super::repeats::{Known, Repeats};
use super::style::Style;
use crate::TermDecoder;

/// Results shorter than this are written without a memory: it would cost more to set up.
const ROWS_BEFORE: u64 = 64;

/// The memory of one writer: terms that come again, and blocks of the dictionary.
pub(super) struct Cells {
    style: Style,
    repeats: Repeats,
    blocks: Blocks,
}

impl Cells {
    pub(super) fn new(style: Style) -> Self {
        Self {
            style,
            repeats: Repeats::default(),
            blocks: Blocks::default(),
        }
    }

    pub(super) fn style(&self) -> Style {
        self.style
    }

    /// Appends the term of an id after so many rows.
    ///
    /// # Errors
    /// As [`Style::write`].
    ///
    /// # Panics
    /// If the id is none.
    #[inline]
    pub(super) fn push(
        &mut self,
        out: &mut Vec<u8>,
        id: TermId,
        decoder: &mut TermDecoder<'_>,
        rows: u64,
    ) -> Result<(), ResultsError> {
        if let Some(text) = self.blocks.text(id) {
            out.extend_from_slice(text);
            return Ok(());
        }
        if rows < ROWS_BEFORE {
            return write(self.style, out, id, decoder);
        }
        self.push_unkept(out, id, decoder)
    }

    /// Appends a term whose block is not kept.
    #[inline]
    fn push_unkept(
        &mut self,
        out: &mut Vec<u8>,
        id: TermId,
        decoder: &mut TermDecoder<'_>,
    ) -> Result<(), ResultsError> {
        match self.repeats.look_up(id) {
            Known::Text(text) => out.extend_from_slice(text),
            Known::Again(place) => {
                let begin = out.len();
                write(self.style, out, id, decoder)?;
                self.repeats.keep(place, &out[begin..]);
            }
            Known::New => match self.blocks.fill(id, self.style, decoder) {
                Some(text) => out.extend_from_slice(text),
                None => write(self.style, out, id, decoder)?,
            },
        }
        Ok(())
    }
}

fn write(
    style: Style,
    out: &mut Vec<u8>,
    id: TermId,
    decoder: &mut TermDecoder<'_>,
) -> Result<(), ResultsError> {
    style.write(out, decoder.text(id).expect("the cell is bound"))
}
