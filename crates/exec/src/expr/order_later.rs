//! In which order are literals that the store has not put in order, among each other and among those
//! that it has?
//!
//! Each has a place between two positions. Those that share one are put in order by their texts.
//! Numbers are then given so that those of the others still follow from their positions: in stretches as
//! many as the literals between, each with as much room before each position as the fullest place in
//! it needs. Where many are read like this, the store [extends](crate::TextOrder::extended) its order.

use std::ops::Range;

use jindou_model::{PAYLOAD_BITS, TermId};

use super::order_run::{OrderedTerms, Place, Poll, Stop, place_of};
use crate::Terms;
use crate::discard::Large;
use crate::pairs::{AT_ONCE, Pair, sort_pairs, sort_with};

/// Literals whose texts are read between two looks at the clock and at the memory.
const READ_AT_ONCE: usize = 1 << 10;

/// A literal, with where it lies among those of the bulk load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Later {
    pub(super) id: TermId,
    pub(super) place: Place,
}

/// Bytes of a distinct literal while its number is found: itself, its pair twice, how many are
/// before it, its number, its text's place, and what begins a stretch.
const LATER_BYTES: usize = size_of::<Later>()
    + 2 * size_of::<Pair>()
    + 2 * size_of::<Text>()
    + size_of::<u32>()
    + 2 * size_of::<u64>();

/// Literals of one kind in order.
pub(super) struct InOrder {
    /// Their `at`s, which rise, and their places in the list that was put in order.
    pub(super) pairs: Large<Pair>,
    /// For each how many lesser texts have the same `at`.
    pub(super) before: Large<u32>,
}

/// Gives the literals of `later`, the raw ids and their rows, their numbers among the others, which
/// are those of [`Place::number`] and change where that is necessary.
///
/// # Errors
/// Those of `poll`, [`Stop::OrderIsWanting`] and [`Stop::Lost`].
pub(super) fn number_later<E>(
    numbers: &mut [u64],
    mut later: Large<Pair>,
    terms: OrderedTerms<'_>,
    poll: &mut Poll<'_, E>,
) -> Result<(), Stop<E>> {
    sort_pairs(&mut later, &mut || poll(0))?;
    let mut distinct: Large<Later> = Large::default();
    for some in later.chunks(READ_AT_ONCE) {
        for (raw, _) in some {
            let id = TermId::from_raw(*raw);
            if distinct.last().is_some_and(|last| last.id == id) {
                continue;
            }
            // It had one before: that is why it is among these.
            let place = place_of(id, terms.order).expect("the place of a literal does not go");
            distinct.push(Later { id, place });
        }
        poll(distinct.len() * LATER_BYTES)?;
    }
    let mut of_distinct = Large::from(vec![0; distinct.len()]);
    let mut ranks: Vec<u8> = distinct.iter().map(|later| later.place.run.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    for rank in ranks {
        let of_rank = |later: &Later| later.place.run.rank == rank;
        let order = in_order(&distinct, of_rank, terms, poll)?;
        let rooms = Rooms::new(&order, numbers, rank);
        rooms.number_later(&order, &mut of_distinct);
        for some in numbers.chunks_mut(AT_ONCE) {
            poll(distinct.len() * LATER_BYTES)?;
            rooms.renumber(some);
        }
    }
    let mut place = 0;
    for (raw, row) in later.iter() {
        place += usize::from(distinct[place].id.raw() != *raw);
        numbers[*row as usize] = of_distinct[place];
    }
    Ok(())
}

/// Puts those of the literals that are `wanted`, which are of one kind, in order.
///
/// # Errors
/// Those of `poll`, [`Stop::OrderIsWanting`] and [`Stop::Lost`].
pub(super) fn in_order<E>(
    literals: &[Later],
    wanted: impl Fn(&Later) -> bool,
    terms: OrderedTerms<'_>,
    poll: &mut Poll<'_, E>,
) -> Result<InOrder, Stop<E>> {
    let held = literals.len() * LATER_BYTES;
    let wanted = literals.iter().zip(0..).filter(|(later, _)| wanted(later));
    let mut pairs: Large<Pair> = Large::default();
    pairs.extend(wanted.map(|(later, number)| (later.place.at, number)));
    sort_pairs(&mut pairs, &mut || poll(held))?;
    let ties: Vec<Range<usize>> = ties(&pairs).collect();
    if !ties.is_empty() {
        let texts = ties.iter().map(Range::len).sum();
        terms.order.note_texts_read(texts);
        if terms.order.is_wanting() {
            return Err(Stop::OrderIsWanting);
        }
    }
    let mut before = Large::from(vec![0; pairs.len()]);
    let mut texts = Texts::default();
    for tie in ties {
        let (pairs, before) = (&mut pairs[tie.clone()], &mut before[tie]);
        texts.part(pairs, before, (literals, terms.terms, held), poll)?;
    }
    Ok(InOrder { pairs, before })
}

/// Where literals share a place; not those with an odd one, which have the same text.
fn ties(pairs: &[Pair]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut end = 0;
    let of_place = pairs.chunk_by(|a, b| a.0 == b.0).map(move |same| {
        end += same.len();
        end - same.len()..end
    });
    of_place.filter(|tie| tie.len() > 1 && pairs[tie.start].0.is_multiple_of(2))
}

/// The text of a literal that shares its place with others.
#[derive(Clone, Copy)]
struct Text {
    /// Its place among the literals.
    number: u32,
    /// Where its key is among the bytes.
    from: usize,
    to: usize,
    /// The first bytes behind what all begin with.
    prefix: u64,
}

/// Texts of literals in one place.
#[derive(Default)]
struct Texts {
    texts: Large<Text>,
    bytes: Large<u8>,
}

impl Texts {
    /// Puts literals of one place in order, and says how many are before each.
    fn part<E>(
        &mut self,
        pairs: &mut [Pair],
        before: &mut [u32],
        (literals, terms, held): (&[Later], &Terms, usize),
        poll: &mut Poll<'_, E>,
    ) -> Result<(), Stop<E>> {
        self.read(pairs, (literals, terms, held), poll)?;
        let Self { texts, bytes } = self;
        let shared = find_prefixes(texts, bytes);
        let rest = |text: &Text| &bytes[text.from + shared..text.to];
        let compare =
            |a: &Text, b: &Text| (a.prefix.cmp(&b.prefix)).then_with(|| rest(a).cmp(rest(b)));
        let mut check = || poll(held + bytes.len());
        sort_with(texts, &compare, &mut check)?;
        let mut count = 0;
        for (number, text) in texts.iter().enumerate() {
            let is_new = number > 0 && compare(&texts[number - 1], text).is_ne();
            count += u32::from(is_new);
            pairs[number].1 = text.number;
            before[number] = count;
        }
        Ok(())
    }

    fn read<E>(
        &mut self,
        pairs: &[Pair],
        (literals, terms, held): (&[Later], &Terms, usize),
        poll: &mut Poll<'_, E>,
    ) -> Result<(), Stop<E>> {
        let Self { texts, bytes } = self;
        texts.clear();
        bytes.clear();
        let mut ids = Vec::with_capacity(pairs.len().min(READ_AT_ONCE));
        for some in pairs.chunks(READ_AT_ONCE) {
            ids.clear();
            ids.extend(some.iter().map(|pair| literals[pair.1 as usize].id));
            terms.for_each_key(&ids, &mut |place, key, _| {
                let from = bytes.len();
                bytes.extend_from_slice(key);
                texts.push(Text {
                    number: some[place].1,
                    from,
                    to: bytes.len(),
                    prefix: 0,
                });
            })?;
            if some.len() == READ_AT_ONCE {
                poll(held + bytes.len())?;
            }
        }
        Ok(())
    }
}

/// How many bytes all texts begin with; notes of each the next ones.
fn find_prefixes(texts: &mut [Text], bytes: &[u8]) -> usize {
    let key = |text: &Text| &bytes[text.from..text.to];
    let first = texts.first().map_or(&[][..], key);
    let shared = texts.iter().fold(first.len(), |shared, text| {
        let both = first[..shared].iter().zip(key(text));
        both.take_while(|(a, b)| a == b).count()
    });
    for text in texts {
        let rest = &bytes[text.from + shared..text.to];
        let mut prefix = [0; 8];
        let taken = rest.len().min(8);
        prefix[..taken].copy_from_slice(&rest[..taken]);
        text.prefix = u64::from_be_bytes(prefix);
    }
    shared
}

/// The numbers of literals of one kind: those of the bulk load from the first on are in stretches
/// of the same length, in each of which there is the same room before each of them.
struct Rooms {
    rank: u64,
    first: u64,
    /// The length of a stretch is two to this power.
    shift: u32,
    /// The first number of each stretch, and of one behind the last.
    starts: Large<u64>,
}

impl Rooms {
    /// For these literals and those of the bulk load that have these numbers. All numbers are less than
    /// about four times as many as there are literals between the first and the last.
    fn new(order: &InOrder, numbers: &[u64], rank: u8) -> Self {
        let rank = u64::from(rank);
        let own = numbers.iter().filter(|n| **n >> PAYLOAD_BITS == rank);
        let own = own.map(|n| n & PAYLOAD_MASK);
        let mut ends = own.fold(None, |ends: Option<(u64, u64)>, n| {
            Some(ends.map_or((n, n), |(low, high)| (low.min(n), high.max(n))))
        });
        if let (Some((low, _)), Some((high, _))) = (order.pairs.first(), order.pairs.last()) {
            let (low, high) = (low / 2, high / 2);
            ends = Some(ends.map_or((low, high), |(l, h)| (l.min(low), h.max(high))));
        }
        let (first, last) = ends.unwrap_or_default();
        let length = last - first;
        let mut shift = 0;
        while length >> shift > order.pairs.len() as u64 {
            shift += 1;
        }
        let mut starts = Large::from(vec![1_u64; (length >> shift) as usize + 2]);
        for ((at, _), before) in order.pairs.iter().zip(order.before.iter()) {
            if at % 2 == 0 {
                let room = &mut starts[((at / 2 - first) >> shift) as usize];
                *room = (*room).max(u64::from(*before) + 2);
            }
        }
        let mut next = 0;
        for start in starts.iter_mut() {
            let room = std::mem::replace(start, next);
            next += room << shift;
        }
        Self {
            rank,
            first,
            shift,
            starts,
        }
    }

    /// The number where the room before a literal of the bulk load begins, and its own.
    #[inline]
    fn room(&self, number: u64) -> (u64, u64) {
        let from = number - self.first;
        let stretch = (from >> self.shift) as usize;
        let start = self.starts[stretch];
        let room = (self.starts[stretch + 1] - start) >> self.shift;
        let begin = start + (from & ((1 << self.shift) - 1)) * room;
        let kind = self.rank << PAYLOAD_BITS;
        (kind | begin, kind | (begin + room - 1))
    }

    fn number_later(&self, order: &InOrder, numbers: &mut [u64]) {
        for ((at, place), before) in order.pairs.iter().zip(order.before.iter()) {
            let (begin, own) = self.room(at / 2);
            numbers[*place as usize] = match at % 2 {
                0 => begin + u64::from(*before),
                _ => own,
            };
        }
    }

    fn renumber(&self, numbers: &mut [u64]) {
        for number in numbers {
            if *number >> PAYLOAD_BITS == self.rank {
                *number = self.room(*number & PAYLOAD_MASK).1;
            }
        }
    }
}

const PAYLOAD_MASK: u64 = (1 << PAYLOAD_BITS) - 1;
