//! What may the reading of a text take of memory and time?

use jindou_syntax::{Error, Options};

use crate::error::PlanError;

/// Bytes that are held of the algebra and the plan at most, as `tests/parse_memory.rs` measures:
/// so many times what the tree of the text takes,
const PLANNED_TIMES: usize = 12;
/// and fewer times that, and so many for each byte of the text, of which names may take most.
const NAMED_TIMES: usize = 3;
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
        match (self.reserve)(taken.saturating_mul(PLANNED_TIMES).min(named)) {
            true => Ok(parsed),
            false => Err(PlanError::MemoryRefused),
        }
    }
}
