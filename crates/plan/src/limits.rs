//! What may the reading of a text take of memory and time?

use jindou_syntax::{Error, Options};

use crate::error::PlanError;

/// Bytes of algebra and plan at most for each byte that the tree of the text takes, as
/// `tests/parse_memory.rs` measures.
const PLANNED_TIMES: usize = 12;
/// The same where names take most of the tree, beside [`PLANNED_BYTES_PER_BYTE`].
const NAMED_TIMES: usize = 3;
/// Bytes of algebra and plan at most for each byte of the text, beside [`NAMED_TIMES`].
const PLANNED_BYTES_PER_BYTE: usize = 400;

/// Where a text gets memory from, and how long it may take to read and to plan it.
pub struct Limits<'l> {
    /// Takes this many more bytes, which are about to be held; false if there are not as many.
    pub reserve: &'l mut dyn FnMut(usize) -> bool,
    /// Whether it is over, asked every few microseconds.
    pub is_over: &'l dyn Fn() -> bool,
}

impl Limits<'_> {
    /// Parses a text, and reserves what it takes to convert and to plan it; `planned` are the bytes
    /// of text for which that is done.
    ///
    /// # Errors
    /// What is wrong with the text, [`PlanError::MemoryRefused`] and [`PlanError::Interrupted`].
    pub(crate) fn parse<'t, T>(
        self,
        text: &'t str,
        base: Option<&str>,
        parse: impl FnOnce(&'t str, Options<'_>) -> Result<T, Error>,
        planned: impl FnOnce(&T) -> usize,
    ) -> Result<T, PlanError> {
        let mut taken = 0_usize;
        let mut reserve = |bytes| {
            taken = taken.saturating_add(bytes);
            (self.reserve)(bytes)
        };
        let options = Options {
            base,
            reserve: Some(&mut reserve),
            is_over: Some(self.is_over),
        };
        let parsed = parse(text, options).map_err(|error| PlanError::of_syntax(error, text))?;
        let written = planned(&parsed).saturating_mul(PLANNED_BYTES_PER_BYTE);
        let named = taken.saturating_mul(NAMED_TIMES).saturating_add(written);
        let more = taken.saturating_mul(PLANNED_TIMES).min(named);
        // Data is not planned.
        match written == 0 || (self.reserve)(more) {
            true => Ok(parsed),
            false => Err(PlanError::MemoryRefused),
        }
    }
}
