//! Which of the neighbours that were found for some rows does a list hold, too?
//!
//! What was found for a row is put into a filter of some bits, in which each place of the row's key is
//! looked up: a nanosecond or two each, whatever the order of places and however many runs there are.

use jindou_model::{Lists, TermId};

use super::access::{KEYS_AT_ONCE, Located, has_inside};
use super::side::{Side, Span};
use super::view::Window;

/// Bits of a filter for each neighbour in it, at least.
const BITS_EACH: usize = 8;
/// Of so many times as many places as neighbours, those of the neighbours are searched.
const MANY_PLACES: usize = 16;

impl Window {
    /// Keeps of some neighbours those that the list holds for their rows, too: `rows` has the row of each
    /// of `found`. Rows are in order, and the ids of each sorted and distinct, before and afterwards.
    ///
    /// Costs two searches for each row in each run, and a look at each place of its key and at each
    /// neighbour; where places are many, a search for each neighbour instead.
    ///
    /// # Panics
    /// If a row is beyond the keys of the list, or `found` is shorter than `rows`.
    pub fn retain(&self, list: &Lists<'_>, rows: &mut Vec<u32>, found: &mut Vec<TermId>) {
        let sides = self.sides(list.predicate, list.direction);
        let (mut located, mut keys) = (Located::default(), Vec::new());
        let mut held = Held::default();
        let (mut begin, mut kept) = (0, 0);
        while begin < rows.len() {
            let end = batch_end(rows, begin, |row| keys.push(list.keys[row as usize]));
            located.locate(&sides, &keys);
            for index in 0..keys.len() {
                let row = rows[begin];
                let count = rows[begin..end].iter().take_while(|next| **next == row);
                let of_row = begin..begin + count.count();
                held.look_up(&sides, located.of_key(index), &found[of_row.clone()]);
                for place in of_row.clone().filter(|place| held.has(place - begin)) {
                    (rows[kept], found[kept]) = (row, found[place]);
                    kept += 1;
                }
                begin = of_row.end;
            }
            keys.clear();
        }
        rows.truncate(kept);
        found.truncate(kept);
    }
}

/// The end of the entries of the next few rows from `begin` on, each of which is `told` once.
fn batch_end(rows: &[u32], begin: usize, mut told: impl FnMut(u32)) -> usize {
    let (mut last, mut count) = (None, 0);
    for (place, row) in rows.iter().enumerate().skip(begin) {
        if last == Some(*row) {
            continue;
        }
        if count == KEYS_AT_ONCE {
            return place;
        }
        (last, count) = (Some(*row), count + 1);
        told(*row);
    }
    rows.len()
}

/// Which neighbours of one row are in the window.
#[derive(Default)]
struct Held {
    is_held: Vec<bool>,
    filter: Filter,
}

impl Held {
    fn has(&self, index: usize) -> bool {
        self.is_held[index]
    }

    /// Looks up sorted neighbours in the places of their key in each run.
    fn look_up(
        &mut self,
        sides: &[Side<'_>],
        spans: impl Iterator<Item = Span>,
        neighbours: &[TermId],
    ) {
        self.is_held.clear();
        self.is_held.resize(neighbours.len(), false);
        let mut is_filled = false;
        for (side, span) in sides.iter().zip(spans).filter(|(_, span)| span.len() > 0) {
            if span.len() / MANY_PLACES >= neighbours.len() {
                let pairs = self.is_held.iter_mut().zip(neighbours);
                pairs.for_each(|(is_held, id)| *is_held |= has_inside(side, span, *id));
                continue;
            }
            if !is_filled {
                self.filter.fill(neighbours);
                is_filled = true;
            }
            side.each_other(span.places(), |place, other| {
                if self.filter.may_have(other)
                    && let Ok(index) = neighbours.binary_search(&TermId::from_raw(other))
                {
                    self.is_held[index] |= side.is_inside(place);
                }
            });
        }
    }
}

/// Bits by the hash of an id: where its bit is not set, it is not there.
#[derive(Default)]
struct Filter {
    words: Vec<u64>,
    shift: u32,
}

impl Filter {
    fn fill(&mut self, ids: &[TermId]) {
        let bits = (ids.len() * BITS_EACH).next_power_of_two().max(64);
        self.shift = 64 - bits.trailing_zeros();
        self.words.clear();
        self.words.resize(bits / 64, 0);
        for id in ids {
            let bit = self.bit(id.raw());
            self.words[bit / 64] |= 1 << (bit % 64);
        }
    }

    #[inline]
    fn bit(&self, id: u64) -> usize {
        // The golden ratio: the upper bits depend on all of the number.
        (id.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    #[inline]
    fn may_have(&self, id: u64) -> bool {
        let bit = self.bit(id);
        self.words[bit / 64] >> (bit % 64) & 1 != 0
    }
}
