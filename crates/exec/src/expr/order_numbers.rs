//! By which numbers are the terms of a column ordered?
//!
//! Mostly the ids tell the order, or the positions and places of literals: then nothing is
//! decoded. Otherwise each distinct term is decoded once, all are put in order,
//! and the place in that order is the number.

use std::cmp::Ordering;
use std::ops::Range;

use jindou_model::{TermId, Unavailable, key};
use oxrdf::vocab::xsd;

use super::order::{SortKey, rank};
use super::order_later::{InOrder, Later, in_order, number_later};
use super::order_run::{OrderedTerms, Place, Poll, Run, RunOfEachKind, Stop, place_of};
use crate::discard::{Large, discard};
use crate::pairs::{AT_ONCE, Pair, merge, sort_pairs, sort_with};

/// Terms that are decoded between two looks at the clock and at the memory.
const DECODED_AT_ONCE: usize = 1 << 10;
/// Bytes of an id while its number is found: the number, its pair twice, and where it is distinct
/// its id and place once more.
pub(crate) const NUMBER_BYTES: usize =
    size_of::<u64>() + 2 * size_of::<Pair>() + size_of::<TermId>() + size_of::<u64>();

/// What [`order_numbers`] found.
pub(crate) enum Numbered {
    Numbers(Large<u64>),
    NoMemory,
    /// Nothing yet: the order of texts is to be extended first.
    OrderIsWanting,
    /// A text cannot be read.
    Lost(Unavailable),
}

/// Numbers that compare as the [`SortKey`]s of these ids do, equal ones included.
///
/// Calls `poll` now and then with the bytes held beyond [`NUMBER_BYTES`] an id; it gives false if
/// there is no memory for them.
///
/// # Errors
/// Those of `poll`.
pub(crate) fn order_numbers<E>(
    ids: &[TermId],
    terms: OrderedTerms<'_>,
    poll: &mut dyn FnMut(usize) -> Result<bool, E>,
) -> Result<Numbered, E> {
    let mut poll = |bytes: usize| match poll(bytes) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Stop::NoMemory),
        Err(error) => Err(Stop::Error(error)),
    };
    match find_numbers(ids, terms, &mut poll) {
        Ok(numbers) => Ok(Numbered::Numbers(numbers)),
        Err(Stop::NoMemory) => Ok(Numbered::NoMemory),
        Err(Stop::OrderIsWanting) => Ok(Numbered::OrderIsWanting),
        Err(Stop::Lost(why)) => Ok(Numbered::Lost(why)),
        Err(Stop::Error(error)) => Err(error),
    }
}

fn find_numbers<E>(
    ids: &[TermId],
    terms: OrderedTerms<'_>,
    poll: &mut Poll<'_, E>,
) -> Result<Large<u64>, Stop<E>> {
    if let Some(numbers) = numbers_of_ids(ids, terms, poll)? {
        return Ok(numbers);
    }
    let mut places: Large<Pair> = Large::with_capacity(ids.len());
    for some in ids.chunks(AT_ONCE) {
        poll(0)?;
        let first = places.len() as u32;
        places.extend(some.iter().map(|id| id.raw()).zip(first..));
    }
    sort_pairs(&mut places, &mut || poll(0))?;
    let mut distinct: Large<TermId> = Large::default();
    for some in places.chunks(AT_ONCE) {
        poll(0)?;
        for (raw, _) in some {
            let id = TermId::from_raw(*raw);
            if distinct.last() != Some(&id) {
                distinct.push(id);
            }
        }
    }
    let ordered = Ranking::new(distinct, terms).finish(poll)?;
    let mut numbers = Large::from(vec![0; ids.len()]);
    let mut number = 0;
    let mut last = None;
    for some in places.chunks(AT_ONCE) {
        poll(0)?;
        for (raw, place) in some {
            if last.is_some_and(|last| last != raw) {
                number += 1;
            }
            last = Some(raw);
            numbers[*place as usize] = ordered[number];
        }
    }
    Ok(numbers)
}

/// What stands for the number of a literal between others until it is known: no rank is so high.
const LATER: u64 = u64::MAX;

/// Numbers where no two terms are of one kind but of different runs, literals between others apart: those
/// of the ids, or of their positions.
fn numbers_of_ids<E>(
    ids: &[TermId],
    terms: OrderedTerms<'_>,
    poll: &mut Poll<'_, E>,
) -> Result<Option<Large<u64>>, Stop<E>> {
    let mut runs = RunOfEachKind::default();
    let mut numbers = Large::with_capacity(ids.len());
    let mut later: Large<Pair> = Large::default();
    for ids in ids.chunks(AT_ONCE) {
        poll(0)?;
        if !later.is_empty() && terms.order.is_wanting() {
            return Err(Stop::OrderIsWanting);
        }
        for id in ids {
            let Some(place) = place_of(*id, terms.order) else {
                return Ok(None);
            };
            if place.is_between() {
                later.push((id.raw(), numbers.len() as u32));
                numbers.push(LATER);
                continue;
            }
            if !runs.add(place) {
                return Ok(None);
            }
            numbers.push(place.number());
        }
    }
    if !later.is_empty() {
        number_later(&mut numbers, later, terms, poll)?;
    }
    Ok(Some(numbers))
}

/// Distinct terms that are put in order, kind by kind.
struct Ranking<'a> {
    /// In the order of ids.
    ids: Large<TermId>,
    terms: OrderedTerms<'a>,
    /// Those of [`TEXT_RANKS`].
    texts: [Texts; 3],
    /// All others, with their places among the ids.
    keys: Vec<(SortKey, u32)>,
    bytes: usize,
}

/// Kinds of terms that are ordered by one text.
const TEXT_RANKS: [u8; 3] = [rank::BLANK, rank::IRI, rank::STRING];

impl<'a> Ranking<'a> {
    fn new(ids: Large<TermId>, terms: OrderedTerms<'a>) -> Self {
        Self {
            ids,
            terms,
            texts: Default::default(),
            keys: Vec::new(),
            bytes: 0,
        }
    }

    /// For each id its place in the order; equal terms have the same one.
    fn finish<E>(mut self, poll: &mut Poll<'_, E>) -> Result<Vec<u64>, Stop<E>> {
        for begin in (0..self.ids.len()).step_by(DECODED_AT_ONCE) {
            let end = self.ids.len().min(begin + DECODED_AT_ONCE);
            self.classify(begin..end)?;
            poll(self.bytes)?;
        }
        for number in 0..TEXT_RANKS.len() {
            let bytes = self.bytes;
            let texts = &mut self.texts[number];
            texts.sort_by_run(&mut || poll(bytes))?;
            match () {
                () if texts.is_one_run() => {}
                () if texts.are_placed() => self.put_places_in_order(number, poll)?,
                () => self.read_texts(number, poll)?,
            }
        }
        let bytes = self.bytes;
        let numbers = self.number(&mut || poll(bytes))?;
        discard((self.texts, self.keys), bytes);
        Ok(numbers)
    }

    /// Puts some ids to the others of their kinds; reads those of which no run is known.
    fn classify(&mut self, places: Range<usize>) -> Result<(), Unavailable> {
        let (mut unknown, mut others) = (Vec::new(), Vec::new());
        for place in places {
            let found = place_of(self.ids[place], self.terms.order);
            let rank_of = |place: Place| TEXT_RANKS.iter().position(|rank| *rank == place.run.rank);
            match (found, found.map(rank_of)) {
                (Some(found), Some(Some(kind))) => {
                    self.texts[kind]
                        .entries
                        .push(Text::unread(place, Some(found)));
                    self.bytes += TEXT_BYTES;
                }
                (Some(_), _) => others.push(place),
                (None, _) => unknown.push(place),
            }
        }
        let ids: Vec<TermId> = unknown.iter().map(|place| self.ids[*place]).collect();
        self.terms
            .terms
            .for_each_key(&ids, &mut |number, key, literal| {
                let place = unknown[number];
                match text_kind(key, literal) {
                    Some(kind) => {
                        let mut text = Text::unread(place, None);
                        self.texts[kind].read(&mut text, text_of(kind, key));
                        self.texts[kind].entries.push(text);
                        self.bytes += TEXT_BYTES + key.len();
                    }
                    None => others.push(place),
                }
            })?;
        self.terms
            .terms
            .expect(others.iter().map(|place| self.ids[*place]));
        for place in others {
            let key = SortKey::new(self.ids[place], self.terms.terms);
            self.bytes += size_of::<(SortKey, u32)>() + size_of::<u32>() + key.heap_bytes();
            self.keys.push((key, place as u32));
        }
        Ok(())
    }

    /// Puts the literals of a kind, all of which have places, in order by these.
    fn put_places_in_order<E>(
        &mut self,
        kind: usize,
        poll: &mut Poll<'_, E>,
    ) -> Result<(), Stop<E>> {
        let (bytes, texts) = (self.bytes, &mut self.texts[kind]);
        let later = texts.entries.iter().filter_map(|text| {
            let id = self.ids[text.place as usize];
            text.at.map(|place| Later { id, place })
        });
        let later: Large<Later> = Large::from(later.collect::<Vec<_>>());
        let mut poll = |more: usize| poll(bytes + more);
        texts.by_place = Some(in_order(&later, |_| true, self.terms, &mut poll)?);
        Ok(())
    }

    /// Reads the texts of a kind that were not read.
    fn read_texts<E>(&mut self, kind: usize, poll: &mut Poll<'_, E>) -> Result<(), Stop<E>> {
        let texts = &mut self.texts[kind];
        let mut entries = std::mem::take(&mut texts.entries);
        for some in entries.chunks_mut(DECODED_AT_ONCE) {
            let mut unread: Vec<&mut Text> = some.iter_mut().filter(|t| t.is_unread()).collect();
            let ids = unread.iter().map(|text| self.ids[text.place as usize]);
            let ids: Vec<TermId> = ids.collect();
            let before = texts.arena.len();
            self.terms.terms.for_each_key(&ids, &mut |number, key, _| {
                texts.read(unread[number], text_of(kind, key));
            })?;
            self.bytes += texts.arena.len() - before;
            poll(self.bytes)?;
        }
        texts.entries = entries;
        Ok(())
    }

    fn number<E>(&mut self, check: &mut dyn FnMut() -> Result<(), E>) -> Result<Vec<u64>, E> {
        let keys = &self.keys;
        let mut order: Vec<u32> = (0..keys.len() as u32).collect();
        let key = |number: &u32| &keys[*number as usize].0;
        sort_with(&mut order, &|a: &u32, b: &u32| key(a).cmp(key(b)), check)?;
        let mut numbers = vec![0; self.ids.len()];
        let mut next = 0;
        let mut give = |place: u32, is_equal_to_next: bool| {
            numbers[place as usize] = next;
            next += u64::from(!is_equal_to_next);
        };
        let mut order = order.into_iter().peekable();
        let mut give_keys_below = |rank: u8, give: &mut dyn FnMut(u32, bool)| {
            while let Some(number) = order.next_if(|number| key(number).rank() < rank) {
                let is_equal = order.peek().is_some_and(|next| key(next) == key(&number));
                give(keys[number as usize].1, is_equal);
            }
        };
        for (rank, texts) in TEXT_RANKS.iter().zip(&mut self.texts) {
            give_keys_below(*rank, &mut give);
            texts.put_in_order(check)?;
            texts.for_each(&mut give);
        }
        give_keys_below(u8::MAX, &mut give);
        Ok(numbers)
    }
}

/// Which of [`TEXT_RANKS`] the term of a key has.
fn text_kind(key: &[u8], literal: bool) -> Option<usize> {
    if !literal {
        return Some(usize::from(!key.starts_with(b"_:")));
    }
    match key::literal_parts(key) {
        Some((_, None, datatype)) if datatype == xsd::STRING => Some(2),
        Some(_) | None => None,
    }
}

/// What a term of this kind is ordered by.
fn text_of(kind: usize, key: &[u8]) -> &[u8] {
    match TEXT_RANKS[kind] {
        rank::BLANK => &key[2..],
        rank::STRING => &key[..key.len() - 1],
        _ => key,
    }
}

/// Terms of one kind that are ordered by their texts.
#[derive(Default)]
struct Texts {
    /// Of one run, in its order; in the end in order.
    entries: Vec<Text>,
    /// Those texts that were read, one behind the other.
    arena: Large<u8>,
    /// Bytes that all of them begin with.
    shared: usize,
    /// The entries' order, if it follows from their places.
    by_place: Option<InOrder>,
}

/// A term that is ordered by its text.
#[derive(Clone, Copy)]
struct Text {
    /// Its place among the distinct ids.
    place: u32,
    /// Its place among those of its kind, if known.
    at: Option<Place>,
    /// Where its text is in the arena, once it was read.
    from: usize,
    to: usize,
    /// The first bytes behind what all texts begin with.
    prefix: u64,
}

/// Bytes of a text's entry, which is there twice while texts are merged.
const TEXT_BYTES: usize = 2 * size_of::<Text>();

impl Text {
    fn unread(place: usize, at: Option<Place>) -> Self {
        Self {
            place: place as u32,
            at,
            from: usize::MAX,
            to: usize::MAX,
            prefix: 0,
        }
    }

    fn is_unread(&self) -> bool {
        self.from == usize::MAX
    }

    /// The run in which it is in order, if it belongs to one.
    fn run(&self) -> Option<Run> {
        self.at.filter(Place::is_ordered).map(|place| place.run)
    }

    /// Its run and where it is in it.
    fn in_run(&self) -> Option<(Run, u64)> {
        self.run().zip(self.at.map(|place| place.order))
    }
}

impl Texts {
    /// Notes the text of an entry.
    fn read(&mut self, entry: &mut Text, text: &[u8]) {
        entry.from = self.arena.len();
        self.arena.extend_from_slice(text);
        entry.to = self.arena.len();
    }

    /// Puts those of each run together and in order.
    fn sort_by_run<E>(&mut self, check: &mut dyn FnMut() -> Result<(), E>) -> Result<(), E> {
        match self.entries.is_sorted_by_key(Text::in_run) {
            true => Ok(()),
            false => {
                let by_run = |a: &Text, b: &Text| a.in_run().cmp(&b.in_run());
                sort_with(&mut self.entries, &by_run, check)
            }
        }
    }

    /// True if all are in the order of one run.
    fn is_one_run(&self) -> bool {
        match self.entries.first() {
            Some(first) => {
                let run = first.run();
                run.is_some() && self.entries.iter().all(|text| text.run() == run)
            }
            None => true,
        }
    }

    /// True if places tell the order of all, but for the few that share one.
    fn are_placed(&self) -> bool {
        let is_placed = |text: &Text| text.at.is_some_and(|place| place.at != 0);
        self.entries.iter().all(is_placed)
    }

    /// The rest of a text that was read, behind what all begin with.
    fn rest(&self, entry: &Text) -> &[u8] {
        &self.arena[entry.from + self.shared..entry.to]
    }

    fn compare(&self, a: &Text, b: &Text) -> Ordering {
        a.prefix
            .cmp(&b.prefix)
            .then_with(|| self.rest(a).cmp(self.rest(b)))
    }

    /// Merges the runs.
    fn put_in_order<E>(&mut self, check: &mut dyn FnMut() -> Result<(), E>) -> Result<(), E> {
        if self.is_one_run() || self.by_place.is_some() {
            return Ok(());
        }
        let entries = std::mem::take(&mut self.entries);
        self.find_prefixes(&entries);
        let with_prefix = |mut text: Text| {
            let rest = self.rest(&text);
            let mut prefix = [0; 8];
            let taken = rest.len().min(8);
            prefix[..taken].copy_from_slice(&rest[..taken]);
            text.prefix = u64::from_be_bytes(prefix);
            text
        };
        let entries = entries.into_iter().map(with_prefix);
        let (of_runs, mut alone): (Vec<Text>, Vec<Text>) =
            entries.partition(|text| text.run().is_some());
        let compare = |a: &Text, b: &Text| self.compare(a, b);
        sort_with(&mut alone, &compare, check)?;
        let of_runs = of_runs.chunk_by(|a, b| a.run() == b.run());
        let mut runs: Vec<Vec<Text>> = of_runs.map(<[Text]>::to_vec).chain([alone]).collect();
        while runs.len() > 1 {
            let mut merged = Vec::with_capacity(runs.len().div_ceil(2));
            for pair in runs.chunks_mut(2) {
                if let [left, right] = pair {
                    let mut both = Vec::with_capacity(left.len() + right.len());
                    merge(left, right, &compare, &mut both, check)?;
                    merged.push(both);
                } else {
                    merged.extend(pair.iter_mut().map(std::mem::take));
                }
            }
            runs = merged;
        }
        self.entries = runs.pop().unwrap_or_default();
        Ok(())
    }

    /// Finds what all texts begin with.
    fn find_prefixes(&mut self, entries: &[Text]) {
        let text = |entry: &Text| &self.arena[entry.from..entry.to];
        let first = entries.first().map_or(&[][..], text);
        self.shared = entries.iter().fold(first.len(), |shared, entry| {
            let both = first[..shared].iter().zip(text(entry));
            both.take_while(|(a, b)| a == b).count()
        });
    }

    /// Calls `visit` with the place of each term in order, and whether the next one is equal.
    fn for_each(&self, visit: &mut dyn FnMut(u32, bool)) {
        if let Some(order) = &self.by_place {
            for (number, (at, entry)) in order.pairs.iter().enumerate() {
                let next = order
                    .pairs
                    .get(number + 1)
                    .zip(order.before.get(number + 1));
                let is_equal = next.is_some_and(|((next, _), before)| {
                    next == at && *before == order.before[number]
                });
                visit(self.entries[*entry as usize].place, is_equal);
            }
            return;
        }
        let is_one_run = self.is_one_run();
        for (number, entry) in self.entries.iter().enumerate() {
            let next = self.entries.get(number + 1);
            let is_equal = next.is_some_and(|next| match is_one_run {
                true => entry.in_run() == next.in_run(),
                false => self.compare(entry, next) == Ordering::Equal,
            });
            visit(entry.place, is_equal);
        }
    }
}
