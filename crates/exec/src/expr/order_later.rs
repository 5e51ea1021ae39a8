//! In which order are literals that came after the bulk load, among each other and among those of
//! it?
//!
//! Each has a place between two literals of the bulk load. The few that share one are put in order
//! by their ranks in their table, or by their texts if they are of several tables or in none.
//! Numbers are then given so that those of the bulk load still follow from their ids: in stretches as
//! many as the later literals, each with as much room before each literal as the fullest place in
//! it needs.

use jindou_model::{PAYLOAD_BITS, TermId};

use super::order_run::{Place, place_of};
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
/// Calls `poll` now and then with the bytes held; gives false if it said that there is no memory.
///
/// # Errors
/// Those of `poll`.
pub(super) fn number_later<E>(
    numbers: &mut [u64],
    mut later: Large<Pair>,
    terms: &Terms,
    poll: &mut dyn FnMut(usize) -> Result<bool, E>,
) -> Result<bool, E> {
    sort_pairs(&mut later, &mut || poll(0).map(|_| ()))?;
    let mut distinct: Large<Later> = Large::default();
    for some in later.chunks(READ_AT_ONCE) {
        for (raw, _) in some {
            let id = TermId::from_raw(*raw);
            if distinct.last().is_some_and(|last| last.id == id) {
                continue;
            }
            let Some(place) = place_of(id, terms) else {
                return Ok(false);
            };
            distinct.push(Later { id, place });
        }
        if !poll(distinct.len() * LATER_BYTES)? {
            return Ok(false);
        }
    }
    let mut of_distinct = Large::from(vec![0; distinct.len()]);
    let mut ranks: Vec<u8> = distinct.iter().map(|later| later.place.run.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    for rank in ranks {
        let of_rank = |later: &Later| later.place.run.rank == rank;
        let Some(order) = in_order(&distinct, of_rank, terms, poll)? else {
            return Ok(false);
        };
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
    Ok(true)
}

/// Puts those of the literals that are `wanted`, which are of one kind, in order; `None` if there is no
/// memory for their texts.
///
/// # Errors
/// Those of `poll`.
pub(super) fn in_order<E>(
    literals: &[Later],
    wanted: impl Fn(&Later) -> bool,
    terms: &Terms,
    poll: &mut dyn FnMut(usize) -> Result<bool, E>,
) -> Result<Option<InOrder>, E> {
    let held = literals.len() * LATER_BYTES;
    let wanted = literals.iter().zip(0..).filter(|(later, _)| wanted(later));
    let mut pairs: Large<Pair> = Large::default();
    pairs.extend(wanted.map(|(later, number)| (later.place.at, number)));
    sort_pairs(&mut pairs, &mut || poll(held).map(|_| ()))?;
    let mut before = Large::from(vec![0; pairs.len()]);
    let mut texts = Texts::default();
    let mut begin = 0;
    while begin < pairs.len() {
        let at = pairs[begin].0;
        let same = pairs[begin..].iter().take_while(|pair| pair.0 == at);
        let end = begin + same.count();
        // Those with an odd one have the same text.
        if end > begin + 1 && at.is_multiple_of(2) {
            let (pairs, before) = (&mut pairs[begin..end], &mut before[begin..end]);
            if !texts.part(pairs, before, (literals, terms, held), poll)? {
                return Ok(None);
            }
        }
        begin = end;
    }
    Ok(Some(InOrder { pairs, before }))
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
    /// Puts literals of one place in order, and says how many are before each; false if there is no
    /// memory for their texts.
    fn part<E>(
        &mut self,
        pairs: &mut [Pair],
        before: &mut [u32],
        (literals, terms, held): (&[Later], &Terms, usize),
        poll: &mut dyn FnMut(usize) -> Result<bool, E>,
    ) -> Result<bool, E> {
        let place = |pair: &Pair| literals[pair.1 as usize].place;
        let is_run = pairs
            .windows(2)
            .all(|two| place(&two[0]).run == place(&two[1]).run);
        if is_run && pairs.iter().all(|pair| place(pair).is_ordered()) {
            let mut ranked: Large<Pair> = Large::with_capacity(pairs.len());
            ranked.extend(pairs.iter().map(|pair| (place(pair).order, pair.1)));
            sort_pairs(&mut ranked, &mut || poll(held).map(|_| ()))?;
            for (number, (_, later)) in ranked.iter().enumerate() {
                pairs[number].1 = *later;
                before[number] = number as u32;
            }
            return Ok(true);
        }
        if !self.read(pairs, (literals, terms, held), poll)? {
            return Ok(false);
        }
        let Self { texts, bytes } = self;
        let shared = find_prefixes(texts, bytes);
        let rest = |text: &Text| &bytes[text.from + shared..text.to];
        let compare =
            |a: &Text, b: &Text| (a.prefix.cmp(&b.prefix)).then_with(|| rest(a).cmp(rest(b)));
        let mut check = || poll(held + bytes.len()).map(|_| ());
        sort_with(texts, &compare, &mut check)?;
        let mut count = 0;
        for (number, text) in texts.iter().enumerate() {
            let is_new = number > 0 && compare(&texts[number - 1], text).is_ne();
            count += u32::from(is_new);
            pairs[number].1 = text.number;
            before[number] = count;
        }
        Ok(true)
    }

    fn read<E>(
        &mut self,
        pairs: &[Pair],
        (literals, terms, held): (&[Later], &Terms, usize),
        poll: &mut dyn FnMut(usize) -> Result<bool, E>,
    ) -> Result<bool, E> {
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
            });
            if some.len() == READ_AT_ONCE && !poll(held + bytes.len())? {
                return Ok(false);
            }
        }
        Ok(true)
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
