//! How do the literals that came since a version of the order get their positions in the next one?
//!
//! Their texts are put in order by themselves, and each is then searched among those of the bulk load
//! and those that are in order already, from where the one before it is. No text is read twice
//! but for those that such a search compares with. Then all positions are given anew, in one
//! pass over both lists.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::Range;

use jindou_dictionary::{Decoder, DictionaryError};

use super::rooms::{Between, Rooms};
use super::{OrderVersion, Ordered, ReadKey, word_at};
use crate::places::{Place, Places};
use crate::tables::{Part, TermTables};

/// A version has a word for each number, also for those whose literals are gone. Where literals come
/// and go for ever, and there were many more numbers than there are literals, it would grow with
/// the numbers.
const NUMBERS_A_LITERAL: u64 = 8;
const LEAST_NUMBERS: u64 = 1 << 16;
/// Literals that are handled between two calls of `poll`.
const AT_ONCE: usize = 1 << 13;
/// Bytes of a literal that is in order: what a version keeps, and its place in the new order.
const KNOWN_BYTES: usize = 14 + size_of::<Between>() + size_of::<u32>();
/// Bytes of a new one beside that.
const NEW_BYTES: usize = size_of::<New>() + size_of::<u64>();

/// The literals that the next version is to have.
pub(crate) struct Extension<'a> {
    pub(crate) tables: &'a TermTables,
    /// The number behind the last of them.
    pub(crate) known: u64,
    /// The key of one that is in no table.
    pub(crate) appended: &'a dyn Fn(u64) -> &'a [u8],
    /// The key of any.
    pub(crate) read: &'a ReadKey<'a>,
}

/// A literal that is put in order.
struct New {
    /// As [`Place::at`], among those of the bulk load.
    at: u64,
    /// How many of those that are in order already come before it.
    rank: u32,
    later: u32,
    /// Whether the one before it in the new order has the same text.
    is_same: bool,
}

/// The version after `version`.
///
/// Calls `poll` now and then with the bytes held; `None` if that gave false, if there are more
/// literals than a version can have, or many more numbers than literals.
pub(crate) fn extend(
    version: &OrderVersion,
    with: &Extension<'_>,
    poll: &mut dyn FnMut(usize) -> bool,
) -> Result<Option<OrderVersion>, DictionaryError> {
    let count = with.known - version.first;
    let missing = with.known - version.until();
    let held = count as usize * KNOWN_BYTES + missing as usize * NEW_BYTES;
    let sealed = with.tables.strings() - with.tables.ground().len();
    let left = sealed + with.known.saturating_sub(with.tables.len());
    let is_sparse = count > LEAST_NUMBERS.max(left * NUMBERS_A_LITERAL);
    if is_sparse || count >= u64::from(u32::MAX) || !poll(held) {
        return Ok(None);
    }
    let mut poll = || poll(held);
    let Some((mut words, known)) = living(version, with, &mut poll) else {
        return Ok(None);
    };
    words.resize(count as usize, 0);
    let ordered = Ordered {
        first: version.first,
        words: &version.words,
        by_text: &known,
    };
    let Some(new) = place_new(version, ordered, with, &mut words, &mut poll)? else {
        return Ok(None);
    };
    let Some(order) = join(version, ordered, new, &mut poll) else {
        return Ok(None);
    };
    let rooms = Rooms::new(with.tables.ground().len(), &order);
    for some in order.chunks(AT_ONCE) {
        if !poll() {
            return Ok(None);
        }
        for later in some {
            let word = &mut words[later.later as usize];
            let kind = Place::of_word(*word).and_then(|place| place.kind);
            *word = word_at(kind, rooms.of_later(later));
        }
    }
    Ok(Some(OrderVersion {
        first: version.first,
        words,
        by_text: order.iter().map(|later| later.later).collect(),
        rooms,
        gone: with.tables.gone(),
        others: Places::default(),
        work: Default::default(),
    }))
}

/// The words of a version and its literals by their texts, without those that have none any more.
fn living(
    version: &OrderVersion,
    with: &Extension<'_>,
    poll: &mut dyn FnMut() -> bool,
) -> Option<(Vec<u64>, Vec<u32>)> {
    let mut words = version.words.clone();
    let mut known = version.by_text.clone();
    if with.tables.gone() > 0 {
        known.clear();
        for some in version.by_text.chunks(AT_ONCE) {
            if !poll() {
                return None;
            }
            for later in some {
                let number = version.first + u64::from(*later);
                match number >= with.tables.len() || with.tables.contains(number) {
                    true => known.push(*later),
                    false => words[*later as usize] = 0,
                }
            }
        }
    }
    Some((words, known))
}

/// Finds where the new literals come among those of the bulk load and those that are in order, and
/// notes the kind of each in its word.
fn place_new(
    version: &OrderVersion,
    ordered: Ordered<'_>,
    with: &Extension<'_>,
    words: &mut [u64],
    poll: &mut dyn FnMut() -> bool,
) -> Result<Option<Vec<New>>, DictionaryError> {
    let Some(mut texts) = Texts::new(with, version.until(), poll)? else {
        return Ok(None);
    };
    let mut search = with.tables.search();
    let mut new: Vec<New> = Vec::new();
    let mut last = (0, Vec::new());
    let mut rank = 0;
    for done in 1_usize.. {
        if done.is_multiple_of(AT_ONCE) && !poll() {
            return Ok(None);
        }
        let Some((number, key)) = texts.peek() else {
            break;
        };
        let place = search.place_behind(key, last.0 / 2)?;
        let later = (number - version.first) as usize;
        words[later] = word_at(place.kind, 0);
        if place.kind.is_some() {
            let (begin, own) = version.rooms.room(place.at / 2);
            let mut is_same = false;
            rank = match place.at % 2 {
                0 => {
                    let from = ordered.rank_of(begin, rank);
                    let ranks = from..ordered.rank_of(own, from);
                    let found = ordered.behind(key, ranks, with.read)?;
                    is_same = found.is_there || (place.at == last.0 && *key == *last.1);
                    found.rank
                }
                _ => ordered.rank_of(own, rank),
            };
            new.push(New {
                at: place.at,
                rank: rank as u32,
                later: later as u32,
                is_same,
            });
        }
        last.0 = place.at;
        last.1.clear();
        last.1.extend_from_slice(key);
        texts.advance()?;
    }
    Ok(Some(new))
}

/// All literals in order.
fn join(
    version: &OrderVersion,
    ordered: Ordered<'_>,
    new: Vec<New>,
    poll: &mut dyn FnMut() -> bool,
) -> Option<Vec<Between>> {
    let mut order: Vec<Between> = Vec::with_capacity(ordered.by_text.len() + new.len());
    let mut push = |at: u64, later: u32, is_same: bool| {
        let last = order
            .last()
            .filter(|last| last.at == at && at.is_multiple_of(2));
        let before = last.map_or(0, |last| last.before + u32::from(!is_same));
        order.push(Between { at, before, later });
    };
    let mut new = new.into_iter().peekable();
    let (mut stretch, mut last) = (0, None);
    for rank in 0..=ordered.by_text.len() {
        if rank % AT_ONCE == 0 && !poll() {
            return None;
        }
        while let Some(new) = new.next_if(|new| new.rank as usize == rank) {
            push(new.at, new.later, new.is_same);
        }
        if let Some(later) = ordered.by_text.get(rank) {
            let position = ordered.position_at(rank);
            let at = version.rooms.at_of(position, &mut stretch);
            push(at, *later, last == Some(position));
            last = Some(position);
        }
    }
    Some(order)
}

/// The texts of literals in order, one after the other.
struct Texts<'a> {
    cursors: BinaryHeap<Reverse<Cursor<'a>>>,
}

/// Some literals in the order of their texts, of which one is looked at.
struct Cursor<'a> {
    key: Vec<u8>,
    number: u64,
    rest: Rest<'a>,
}

/// Those behind it.
enum Rest<'a> {
    /// The rows of a table with numbers from `since` on.
    Rows {
        part: &'a Part,
        rows: Range<u64>,
        since: u64,
        decoder: Box<Decoder<'a>>,
    },
    /// Literals in no table.
    Appended(std::vec::IntoIter<u64>, &'a dyn Fn(u64) -> &'a [u8]),
}

impl<'a> Texts<'a> {
    /// Those of the literals from a number on; `None` if `poll` gave false.
    fn new(
        with: &Extension<'a>,
        since: u64,
        poll: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Self>, DictionaryError> {
        let mut texts = Self {
            cursors: BinaryHeap::new(),
        };
        for part in &with.tables.parts()[1..] {
            if part.end > since {
                let strings = part.table.strings();
                texts.add(Rest::Rows {
                    part,
                    rows: 0..strings.len(),
                    since,
                    decoder: Box::new(strings.decoder()),
                })?;
            }
        }
        let mut first = since.max(with.tables.len());
        while first < with.known {
            if !poll() {
                return Ok(None);
            }
            let end = with.known.min(first + AT_ONCE as u64);
            let mut numbers: Vec<u64> = (first..end).collect();
            numbers.sort_by(|a, b| (with.appended)(*a).cmp((with.appended)(*b)));
            texts.add(Rest::Appended(numbers.into_iter(), with.appended))?;
            first = end;
        }
        Ok(Some(texts))
    }

    fn add(&mut self, rest: Rest<'a>) -> Result<(), DictionaryError> {
        let mut cursor = Cursor {
            key: Vec::new(),
            number: 0,
            rest,
        };
        if cursor.advance()? {
            self.cursors.push(Reverse(cursor));
        }
        Ok(())
    }

    /// The number and the key of the next literal.
    fn peek(&self) -> Option<(u64, &[u8])> {
        let Reverse(first) = self.cursors.peek()?;
        Some((first.number, &first.key))
    }

    fn advance(&mut self) -> Result<(), DictionaryError> {
        if let Some(mut first) = self.cursors.peek_mut()
            && !first.0.advance()?
        {
            PeekMut::pop(first);
        }
        Ok(())
    }
}

impl Cursor<'_> {
    /// Goes to the next literal; false if there is none.
    fn advance(&mut self) -> Result<bool, DictionaryError> {
        self.key.clear();
        match &mut self.rest {
            Rest::Rows {
                part,
                rows,
                since,
                decoder,
            } => {
                let numbered = rows.map(|row| (row, part.table.number_at(row)));
                let mut new = numbered.filter_map(|(row, number)| Some((row, number?)));
                let Some((row, number)) = new.find(|(_, number)| *number >= *since) else {
                    return Ok(false);
                };
                self.number = number;
                self.key.extend_from_slice(decoder.get(row)?);
            }
            Rest::Appended(numbers, key) => {
                let Some(number) = numbers.next() else {
                    return Ok(false);
                };
                self.number = number;
                self.key.extend_from_slice(key(number));
            }
        }
        Ok(true)
    }
}

impl Ord for Cursor<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.key.cmp(&other.key)).then_with(|| self.number.cmp(&other.number))
    }
}

impl PartialOrd for Cursor<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Cursor<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Cursor<'_> {}
