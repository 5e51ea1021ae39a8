//! Where do literals that came after the bulk load lie among those of it, in the order of their keys?
//!
//! A place is found by searching the table of the bulk load when it is first asked for, and kept
//! in a word a literal; so literals of which nobody asks for the order cost nothing.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use jindou_dictionary::{BLOCK, Decoder, DictionaryError, StringTable};
use jindou_model::TextKind;

use crate::kind_column::literal_kind;

/// Words of a page.
const PAGE: u64 = 512;

/// Where literals lie, as far as it was found out: by their rows, in pages that are there once
/// somebody asked for one of their rows.
#[derive(Debug, Default)]
pub(crate) struct Places {
    pages: boxcar::Vec<OnceLock<Box<[AtomicU64]>>>,
    bytes: AtomicUsize,
}

/// A literal's place among those of the bulk load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The kind; `None` of a literal that is not ordered by its key.
    pub(crate) kind: Option<TextKind>,
    /// See [`jindou_model::TextPlace::at`].
    pub(crate) at: u64,
}

const OTHER: u64 = 1;
const STRING: u64 = 2;
const LANG_STRING: u64 = 3;

impl Place {
    /// Bits of a word that tell the kind.
    pub(crate) const CODE_BITS: u32 = 2;

    /// Not zero, which is a place that is not known.
    pub(crate) fn word(self) -> u64 {
        let code = match self.kind {
            Some(TextKind::String) => STRING,
            Some(TextKind::LangString) => LANG_STRING,
            _ => OTHER,
        };
        self.at << Self::CODE_BITS | code
    }

    #[inline]
    pub(crate) fn of_word(word: u64) -> Option<Self> {
        let kind = match word & ((1 << Self::CODE_BITS) - 1) {
            STRING => Some(TextKind::String),
            LANG_STRING => Some(TextKind::LangString),
            OTHER => None,
            _ => return None,
        };
        let at = word >> Self::CODE_BITS;
        Some(Self { kind, at })
    }
}

impl Places {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn get(&self, row: u64) -> Option<Place> {
        let page = self.pages.get((row / PAGE) as usize)?.get()?;
        Place::of_word(page[(row % PAGE) as usize].load(Ordering::Relaxed))
    }

    /// Notes a place. Whoever else finds it out finds the same.
    pub(crate) fn set(&self, row: u64, place: Place) {
        let number = (row / PAGE) as usize;
        while self.pages.count() <= number {
            self.pages.push(OnceLock::new());
        }
        // Another thread may be about to put a page behind that of the row.
        let Some(page) = self.pages.get(number) else {
            return;
        };
        let page = page.get_or_init(|| {
            let bytes = PAGE as usize * size_of::<AtomicU64>();
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            (0..PAGE).map(|_| AtomicU64::new(0)).collect()
        });
        page[(row % PAGE) as usize].store(place.word(), Ordering::Relaxed);
    }
}

/// Finds places among the literals of a bulk load, whose keys rise with their numbers.
pub(crate) struct Search<'a> {
    decoder: Decoder<'a>,
    count: u64,
}

impl<'a> Search<'a> {
    pub(crate) fn new(ground: &'a StringTable) -> Self {
        Self {
            decoder: ground.decoder(),
            count: ground.len(),
        }
    }

    /// The place of a key.
    pub(crate) fn place_of(&mut self, key: &[u8]) -> Result<Place, DictionaryError> {
        self.place_within(key, 0, self.count)
    }

    /// The place of a key that is greater than those of the first `before` literals, and probably
    /// not by many.
    pub(crate) fn place_behind(
        &mut self,
        key: &[u8],
        before: u64,
    ) -> Result<Place, DictionaryError> {
        let (mut low, mut step) = (before, BLOCK as u64);
        loop {
            let probe = block_start(low.saturating_add(step));
            if probe >= self.count {
                return self.place_within(key, low, self.count);
            }
            if self.decoder.get(probe)? >= key {
                return self.place_within(key, low, probe);
            }
            low = probe + 1;
            step *= 2;
        }
    }

    /// The place of a key that is greater than those below `low`, and not greater than any from `high`
    /// on.
    fn place_within(
        &mut self,
        key: &[u8],
        mut low: u64,
        mut high: u64,
    ) -> Result<Place, DictionaryError> {
        while low < high {
            let middle = low.midpoint(high);
            // The first string of a block is there as it is.
            let start = block_start(middle);
            let probe = if start > low { start } else { middle };
            if self.decoder.get(probe)? < key {
                low = probe + 1;
            } else {
                high = probe;
            }
        }
        let is_there = low < self.count && self.decoder.get(low)? == key;
        Ok(Place {
            kind: literal_kind(key),
            at: 2 * low + u64::from(is_there),
        })
    }
}

fn block_start(number: u64) -> u64 {
    number - number % BLOCK as u64
}
