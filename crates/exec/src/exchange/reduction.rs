//! How long does a thread go on to make its rows fewer before they go to the reader?
//!
//! As long as it has room for what it keeps, and that is far less than the rows.

use crate::context::{Booked, Context};

/// Of the memory of a query, what all its threads keep may take this part.
const PART_OF_MEMORY: u64 = 8;
/// After so many rows it is known whether they become fewer.
const ENOUGH_ROWS: usize = 1 << 14;
/// Rows that must be met for each that is kept.
const ROWS_PER_KEPT: usize = 4;

/// What becomes of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// What is new is kept.
    Grow,
    /// Only rows that are known are taken; the reader gets the others.
    Keep,
    /// The reader gets all.
    PassOn,
}

/// What a thread keeps of its rows, by its bytes, and what becomes of the next ones.
pub(crate) struct Reduction {
    booked: Booked,
    limit_bytes: usize,
    /// Rows that were met.
    rows: usize,
    mode: Mode,
    /// Where there is no more room: known rows take none.
    then: Mode,
    /// No other thread has rows of these keys, so that to make them fewer is always worth it.
    is_own: bool,
}

impl Reduction {
    /// Nothing is kept yet. `then` is what becomes of rows once there is no more room.
    pub(crate) fn new(mode: Mode, then: Mode, is_own: bool, cx: &Context) -> Self {
        let limit_bytes = cx.memory_bytes() / PART_OF_MEMORY / cx.threads() as u64;
        Self {
            booked: Booked::default(),
            limit_bytes: usize::try_from(limit_bytes).unwrap_or(usize::MAX),
            rows: 0,
            mode,
            then,
            is_own,
        }
    }

    /// What becomes of some rows, if so many are kept, which would take so many bytes at most if all of
    /// them were new.
    pub(crate) fn decide(
        &mut self,
        rows: usize,
        kept: usize,
        bytes_with: impl FnOnce() -> usize,
        cx: &Context,
    ) -> Mode {
        if self.mode != Mode::Grow {
            return self.mode;
        }
        let is_worth_it =
            self.is_own || self.rows < ENOUGH_ROWS || kept * ROWS_PER_KEPT <= self.rows;
        self.rows += rows;
        self.mode = match is_worth_it {
            false => Mode::PassOn,
            true if self.has_room(bytes_with(), cx) => Mode::Grow,
            true => self.then,
        };
        self.mode
    }

    /// Books what is kept; where there is no room, nothing more is.
    pub(crate) fn book(&mut self, bytes: usize, cx: &Context) {
        if !cx.has_room(&mut self.booked, bytes) {
            self.mode = Mode::PassOn;
        }
    }

    fn has_room(&mut self, bytes: usize, cx: &Context) -> bool {
        // The reader may go to disk where this has no room.
        bytes <= self.limit_bytes && cx.has_room(&mut self.booked, bytes)
    }

    /// True if what is kept is whole: the reader got no row that belongs to it, and nor did others.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_own && self.mode != Mode::PassOn
    }

    /// What is booked of what was kept.
    pub(crate) fn into_booked(self) -> Booked {
        self.booked
    }
}
