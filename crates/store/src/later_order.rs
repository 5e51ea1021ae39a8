//! In which order are the literals that came after the bulk load, among each other and among those of
//! it?
//!
//! Each that was put in order has a *position*, and so has each literal of the bulk load: positions
//! rise with the texts, and equal texts share one. Those of the bulk load follow from their
//! numbers ([`Rooms`]); that of a later one is kept by its number, whatever table has its text, or
//! none. A number means the same text for as long as there is the table of the bulk load, so all
//! bases upon that share one order.
//!
//! An [`OrderVersion`] never changes. [`extend`] makes the next one, which has the literals that came
//! since. That costs their texts and a pass over all positions, so it waits until queries have done
//! about as much work for want of it ([`OrderVersion::is_wanting`]). Until then a literal that is
//! not in order has a *place* between two positions, found by a search and remembered.
//!
//! A later literal costs 14 bytes: its position, its number in the order of positions, and its share
//! of the rooms. One that is not in order costs 8 once somebody asked for its place.

mod extend;
mod rooms;
mod stored;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jindou_dictionary::DictionaryError;
use jindou_model::TextKind;
use parking_lot::{Mutex, MutexGuard, RwLock};

pub(crate) use extend::{Extension, extend};
use rooms::Rooms;

use crate::places::{Place, Places, Search};

/// An order is extended once queries have placed or read one in so many of the literals that it lacks,
const WORK_SHARE: usize = 2;
/// with one in so many of those that it has.
const KNOWN_SHARE: usize = 16;

/// The order of the literals that came after one bulk load, as far as somebody needed it.
#[derive(Debug)]
pub(crate) struct LaterOrder {
    current: RwLock<Arc<OrderVersion>>,
    /// Held while the order is extended.
    extending: Mutex<()>,
}

impl LaterOrder {
    /// Of literals with numbers from `first` on.
    pub(crate) fn behind(first: u64) -> Self {
        Self::from(Arc::new(OrderVersion::empty(first)))
    }

    pub(crate) fn current(&self) -> Arc<OrderVersion> {
        Arc::clone(&self.current.read())
    }

    pub(crate) fn bytes(&self) -> usize {
        self.current.read().bytes()
    }

    pub(crate) fn extending(&self) -> &Mutex<()> {
        &self.extending
    }

    /// Makes a version that was extended the current one.
    pub(crate) fn set(&self, version: Arc<OrderVersion>, _extending: &MutexGuard<'_, ()>) {
        *self.current.write() = version;
    }
}

impl From<Arc<OrderVersion>> for LaterOrder {
    fn from(version: Arc<OrderVersion>) -> Self {
        Self {
            current: RwLock::new(version),
            extending: Mutex::default(),
        }
    }
}

/// The order of the literals that have the first numbers after the bulk load.
#[derive(Debug)]
pub(crate) struct OrderVersion {
    /// The first number.
    first: u64,
    /// Position and kind of each literal, by number; 0 of one that had no text any more.
    words: Vec<u64>,
    /// The literals that are ordered, by their numbers less the first, in the order of their texts.
    by_text: Vec<u32>,
    rooms: Rooms,
    /// How many numbers of the tables had no text any more when it was made.
    gone: u64,
    /// Where literals with higher numbers lie among the positions.
    others: Places,
    /// Literals whose place was searched, and texts that were read, because this has not their order.
    work: AtomicUsize,
}

impl OrderVersion {
    /// That of no literals, of which the first has this number.
    pub(crate) fn empty(first: u64) -> Self {
        Self::of_positions(first, Vec::new(), Rooms::default())
    }

    /// That of literals whose words are known, and nothing of their texts.
    fn of_positions(first: u64, words: Vec<u64>, rooms: Rooms) -> Self {
        Self {
            first,
            words,
            by_text: Vec::new(),
            rooms,
            gone: 0,
            others: Places::default(),
            work: AtomicUsize::new(0),
        }
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.words)
            + size_of_val(&*self.by_text)
            + self.rooms.bytes()
            + self.others.bytes()
    }

    /// The number behind the last literal of the bulk load.
    #[inline]
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// The number behind those of the literals that it has.
    #[inline]
    pub(crate) fn until(&self) -> u64 {
        self.first + self.words.len() as u64
    }

    /// The position of a literal of the bulk load.
    #[inline]
    pub(crate) fn position(&self, number: u64) -> u64 {
        self.rooms.of_load(number)
    }

    /// The position and the kind of a later literal that was put in order: as a place that has
    /// its own text.
    #[inline]
    pub(crate) fn of_later(&self, number: u64) -> Option<Place> {
        let word = self.words.get((number - self.first) as usize)?;
        Place::of_word(*word)
    }

    /// Where a literal lies that is not in order, see [`Self::place_of`], for whoever has tables of
    /// which so many numbers are `gone`.
    ///
    /// Who lacks the text of a literal that is in order finds one place for all that lies between those
    /// before and behind it. What was remembered tells these apart, so it is of no use there: some would
    /// be compared by one measure, and others by another.
    pub(crate) fn remembered(&self, number: u64, gone: u64) -> Option<Place> {
        if gone > self.gone && !self.by_text.is_empty() {
            return None;
        }
        self.others.get(number.checked_sub(self.until())?)
    }

    /// Notes what [`Self::place_of`] gave. Whoever else finds it out finds the same.
    pub(crate) fn remember(&self, number: u64, place: Place) {
        if let Some(row) = number.checked_sub(self.until()) {
            self.others.set(row, place);
        }
    }

    /// The place of a key among the positions: twice that of the text that it shares, and one, or
    /// twice that of the next greater text.
    pub(crate) fn place_of(
        &self,
        key: &[u8],
        load: &mut Search<'_>,
        read: &ReadKey<'_>,
    ) -> Result<Place, DictionaryError> {
        let place = load.place_of(key)?;
        if place.kind.is_none() {
            return Ok(place);
        }
        let (begin, own) = self.rooms.room(place.at / 2);
        if place.at % 2 == 1 {
            let at = 2 * own + 1;
            return Ok(Place { at, ..place });
        }
        let ordered = self.ordered();
        let from = ordered.rank_of(begin, 0);
        let found = ordered.behind(key, from..ordered.rank_of(own, from), read)?;
        let at = match found.is_there {
            true => 2 * ordered.position_at(found.rank - 1) + 1,
            // Equal texts share a position, so the next one is that of a greater text.
            false => match ordered.next_position(found.rank) {
                Some(next) => 2 * own.min(next),
                None => 2 * own,
            },
        };
        Ok(Place { at, ..place })
    }

    fn ordered(&self) -> Ordered<'_> {
        Ordered {
            first: self.first,
            words: &self.words,
            by_text: &self.by_text,
        }
    }

    /// Notes that so many literals were searched or texts read, as they are not in order.
    pub(crate) fn note_work(&self, literals: usize) {
        self.work.fetch_add(literals, Ordering::Relaxed);
    }

    /// Nobody is to extend it until there was as much work again.
    pub(crate) fn forget_work(&self) {
        self.work.store(0, Ordering::Relaxed);
    }

    /// True if so much was done for want of an order of the literals below `known` that it is
    /// time to find it.
    pub(crate) fn is_wanting(&self, known: u64) -> bool {
        let missing = known.saturating_sub(self.until()) as usize;
        let cost = missing + self.by_text.len() / KNOWN_SHARE;
        missing > 0 && self.work.load(Ordering::Relaxed) >= cost.div_ceil(WORK_SHARE)
    }
}

/// The literals of a version that are in order.
#[derive(Clone, Copy)]
struct Ordered<'a> {
    first: u64,
    words: &'a [u64],
    by_text: &'a [u32],
}

/// Where a text comes among those of a version.
struct Found {
    /// How many texts are not greater.
    rank: usize,
    /// Whether the last of these is the same.
    is_there: bool,
}

impl Ordered<'_> {
    fn position_at(&self, rank: usize) -> u64 {
        self.words[self.by_text[rank] as usize] >> Place::CODE_BITS
    }

    /// How many literals come before a position, which is not less than those of the first `from`.
    fn rank_of(&self, position: u64, from: usize) -> usize {
        let position_of = |later: &u32| self.words[*later as usize] >> Place::CODE_BITS;
        from + self.by_text[from..].partition_point(|later| position_of(later) < position)
    }

    /// The first position at this rank or behind it that the rank before has not: texts that cannot be
    /// read any more may be equal to one that can.
    fn next_position(&self, mut rank: usize) -> Option<u64> {
        if let Some(last) = rank.checked_sub(1).map(|last| self.position_at(last))
            && rank < self.by_text.len()
            && self.position_at(rank) == last
        {
            rank = self.rank_of(last + 1, rank);
        }
        (rank < self.by_text.len()).then(|| self.position_at(rank))
    }

    /// Where a key comes among the texts of these ranks: those before have lesser ones, and those behind
    /// greater ones.
    fn behind(
        &self,
        key: &[u8],
        ranks: Range<usize>,
        read: &ReadKey<'_>,
    ) -> Result<Found, DictionaryError> {
        let (mut low, mut high) = (ranks.start, ranks.end);
        let (mut text, mut is_there) = (Vec::new(), false);
        while low < high {
            let middle = low.midpoint(high);
            // Instead of one that has no text any more, the next one is asked.
            let mut probe = middle;
            while probe < high && !read(self.first + u64::from(self.by_text[probe]), &mut text)? {
                probe += 1;
            }
            if probe < high && *text <= *key {
                is_there = *text == *key;
                low = probe + 1;
            } else {
                high = middle;
            }
        }
        Ok(Found {
            rank: low,
            is_there,
        })
    }
}

/// Reads the key of a later literal in place of what was there before; false if it has none any more.
pub(crate) type ReadKey<'a> = dyn Fn(u64, &mut Vec<u8>) -> Result<bool, DictionaryError> + 'a;

/// The word of a literal that is in order at a position.
fn word_at(kind: Option<TextKind>, position: u64) -> u64 {
    Place { kind, at: position }.word()
}
