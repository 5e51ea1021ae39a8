//! The strings of vertices, or of literals: immutable tables of which the first is that of the bulk
//! load, and each merge adds one.
//!
//! A term keeps its number, so a table holds the strings of a stretch of numbers that were given one
//! after the other. Tables are joined with the ones before them as they grow, as in a log-structured
//! tree: there are about as many as the logarithm of what was added, and each string is written as
//! often.

use std::sync::Arc;

use jindou_dictionary::{
    Around, BLOCK, Decoder, DictionaryError, HashIndex, Residues, StringTable, TermDecoder,
    TermTable, WholeBlock,
};

use jindou_model::SortedSet;

use crate::StoreError;
use crate::later_order::LaterOrder;
use crate::places::Search;
use crate::text_order::{EndCodes, LiteralEnds, TextKinds};

/// A table is joined with the one before it unless that one has so many times its strings.
const GROWTH: u64 = 2;

/// One table, with what was found out about its strings.
pub(crate) struct Part {
    pub(crate) table: TermTable,
    /// Of a node's part of a dictionary, which numbers of the whole table have the strings of some hashes: the table
    /// has no index then.
    pub(crate) index: Option<HashIndex>,
    /// The number behind the last whose string it had; those that nothing uses any more are gone.
    pub(crate) end: u64,
    pub(crate) kinds: TextKinds,
    pub(crate) codes: EndCodes,
}

impl Part {
    /// The table of a bulk load, whose rows are the numbers up to `end`; `None` if it is another.
    pub(crate) fn ground(table: TermTable, end: u64) -> Option<Self> {
        let is_ground = !table.is_text_ordered() && table.len() == end;
        is_ground
            .then_some(table)
            .and_then(|table| Self::new(table, 0, end))
    }

    /// The table of strings of these numbers; `None` if it has others.
    pub(crate) fn new(table: TermTable, first: u64, end: u64) -> Option<Self> {
        let is_within = table.least().is_none_or(|least| least >= first)
            && table.greatest().is_none_or(|greatest| greatest < end);
        is_within.then(|| Self {
            table,
            index: None,
            end,
            kinds: TextKinds::default(),
            codes: EndCodes::default(),
        })
    }

    /// What a node has of such a table: some of its strings, and the numbers by hash of others.
    pub(crate) fn with_index(self, index: HashIndex) -> Self {
        Self {
            index: Some(index),
            ..self
        }
    }

    /// What a node has of a table that ends there: the strings of these numbers, and the index of the hashes that it
    /// is asked for.
    fn of_node(
        &self,
        residues: &Residues,
        wanted: impl Fn(u64) -> bool,
        kept: impl Fn(u64) -> bool,
    ) -> Result<Self, DictionaryError> {
        let (table, hashes) = self.table.part(residues, wanted, kept)?;
        let part = Self::new(table, 0, self.end).expect("its numbers are some of the table's");
        Ok(part.with_index(HashIndex::build(&hashes)?))
    }

    /// Gives `take` the numbers that the string of a hash may have here.
    fn candidates(&self, hash: u64, take: impl FnMut(u64)) {
        match &self.index {
            Some(index) => index.candidates(hash, take),
            None => self.table.candidates(hash, take),
        }
    }

    fn bytes(&self) -> usize {
        let index = self.index.as_ref().map_or(0, |index| index.region().len());
        self.table.bytes() + index + self.kinds.bytes() + self.codes.bytes()
    }
}

/// All strings of one kind of terms, by number. Cloning shares them.
#[derive(Clone)]
pub struct TermTables {
    /// By number; the first one is that of the bulk load, perhaps without strings.
    parts: Vec<Arc<Part>>,
    /// They are what a node has of them.
    is_of_node: bool,
    pub(crate) ends: Arc<LiteralEnds>,
    /// The order of the literals behind the first table.
    pub(crate) later: Arc<LaterOrder>,
}

impl std::fmt::Debug for TermTables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TermTables")
            .field("tables", &self.parts.len())
            .field("numbers", &self.len())
            .finish_non_exhaustive()
    }
}

impl TermTables {
    /// The strings of a bulk load, whose numbers are their rows.
    pub(crate) fn new(ground: StringTable) -> Result<Self, DictionaryError> {
        let end = ground.len();
        let ground = Part::ground(TermTable::from_range(0, ground)?, end);
        let ground = ground.expect("a table has as many strings as it has");
        Ok(Self::of_parts(vec![Arc::new(ground)], None))
    }

    /// These tables, which follow one another; what was found out of their strings goes on from
    /// tables that are `known`.
    ///
    /// # Panics
    /// If there are none.
    pub(crate) fn of_parts(parts: Vec<Arc<Part>>, known: Option<&Self>) -> Self {
        assert!(!parts.is_empty(), "the first table is that of a bulk load");
        // Numbers mean the same while the first table is the same.
        let same = known.filter(|known| Arc::ptr_eq(&known.parts[0], &parts[0]));
        let later = same.map(|known| Arc::clone(&known.later));
        Self {
            later: later.unwrap_or_else(|| Arc::new(LaterOrder::behind(parts[0].end))),
            ends: known.map_or_else(Arc::default, |known| Arc::clone(&known.ends)),
            is_of_node: parts.iter().any(|part| part.index.is_some()),
            parts,
        }
    }

    /// What a node has of these: the strings of the numbers that leave some residues, and the numbers of strings
    /// whose hash is `wanted`, without those that are `forgotten`. Costs a pass over all strings, and holds those of the largest table's part twice.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`]; if a table is damaged.
    pub(crate) fn of_node(
        &self,
        residues: &Residues,
        wanted: impl Fn(u64) -> bool,
        forgotten: &SortedSet<u64>,
    ) -> Result<Self, DictionaryError> {
        let kept = |number| !forgotten.contains(number);
        let with_strings = self.parts.iter().filter(|part| part.end > 0);
        let parts = with_strings.map(|part| part.of_node(residues, &wanted, kept));
        Self::behind_no_ground(parts)
    }

    /// What a node has of the strings of a bulk load, of which there are so many: some of them, and the numbers of
    /// others by hash.
    ///
    /// # Panics
    /// If a number is not of so many.
    pub(crate) fn of_dealt(
        table: TermTable,
        hashes: &[(u64, u64)],
        count: u64,
    ) -> Result<Self, DictionaryError> {
        let part = || {
            let part = Part::new(table, 0, count).expect("numbers are below their count");
            Ok(part.with_index(HashIndex::build(hashes)?))
        };
        Self::behind_no_ground((count > 0).then(part).into_iter())
    }

    /// A node's parts of tables. Their numbers are not their rows, as those of the table of the bulk load are.
    fn behind_no_ground(
        of_node: impl Iterator<Item = Result<Part, DictionaryError>>,
    ) -> Result<Self, DictionaryError> {
        let none = TermTable::from_range(0, StringTable::build(0, |_| &[])?)?;
        let none = Part::ground(none, 0).expect("an empty table has no numbers");
        let parts = std::iter::once(Ok(none)).chain(of_node);
        let parts: Result<Vec<Arc<Part>>, _> = parts.map(|part| part.map(Arc::new)).collect();
        Ok(Self::of_parts(parts?, None))
    }

    /// Gives `take` the numbers that the string of a hash may have: those whose string has it, and some others.
    /// Of a node's part, the hash is to be one that the node is asked for.
    pub(crate) fn candidates(&self, hash: u64, mut take: impl FnMut(u64)) {
        for part in &self.parts {
            part.candidates(hash, &mut take);
        }
    }

    /// The number behind the last.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.end)
    }

    /// True if no number was given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The table of the bulk load: its rows are the numbers.
    #[must_use]
    pub fn ground(&self) -> &StringTable {
        self.parts[0].table.strings()
    }

    pub(crate) fn parts(&self) -> &[Arc<Part>] {
        &self.parts
    }

    /// Bytes of all tables, and of what is remembered of their strings.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let of_parts: usize = self.parts.iter().map(|part| part.bytes()).sum();
        of_parts + self.ends.bytes() + self.later.bytes()
    }

    #[inline]
    pub(crate) fn ground_part(&self) -> &Part {
        &self.parts[0]
    }

    /// The table that has the string of a number.
    #[inline]
    pub(crate) fn part_of(&self, number: u64) -> Option<&Part> {
        let ground = &self.parts[0];
        if number < ground.end {
            return Some(ground);
        }
        let place = self.parts.partition_point(|part| part.end <= number);
        self.parts.get(place).map(|part| &**part)
    }

    /// A search for places among the literals of the bulk load.
    pub(crate) fn search(&self) -> Search<'_> {
        Search::new(self.ground())
    }

    /// The number of a string: asks the tables one after the other, for one that is not `forgotten`.
    ///
    /// # Panics
    /// Of a node's part, which knows candidates only.
    #[must_use]
    pub fn lookup(&self, key: &[u8], forgotten: impl Fn(u64) -> bool) -> Option<u64> {
        self.check_is_whole();
        let living = |number: &u64| !forgotten(*number);
        if let [ground] = self.parts.as_slice() {
            return ground.table.lookup(key).filter(living);
        }
        let hash = jindou_dictionary::hash(key);
        let mut parts = self.parts.iter();
        parts.find_map(|part| part.table.lookup_hashed(hash, key).filter(living))
    }

    /// The numbers of many strings, one for each key, given their [hashes](jindou_dictionary::hash);
    /// perhaps of some that are forgotten.
    pub(crate) fn lookup_batch(&self, hashes: &[u64], keys: &[&[u8]]) -> Vec<Option<u64>> {
        self.check_is_whole();
        let mut numbers = vec![None; keys.len()];
        for part in &self.parts {
            (part.table).lookup_batch_hashed(hashes, keys, &mut numbers);
        }
        numbers
    }

    #[inline]
    fn check_is_whole(&self) {
        let is_whole = !self.is_of_node;
        assert!(is_whole, "a node's part of a dictionary finds no strings");
    }

    /// Appends the string of a number.
    ///
    /// # Errors
    /// If there is none, or its block is damaged; nothing is appended then.
    pub fn extract(&self, number: u64, out: &mut Vec<u8>) -> Result<(), DictionaryError> {
        match self.part_of(number) {
            Some(part) => part.table.extract(number, out),
            None => Err(DictionaryError::UnknownNumber { number }),
        }
    }

    /// A reader of many strings. Making one allocates nothing while there is one table.
    #[must_use]
    pub fn decoder(&self) -> TermsDecoder<'_> {
        let later = self.parts[1..].iter();
        TermsDecoder {
            ground: self.ground().decoder(),
            ground_end: self.parts[0].end,
            later: later.map(|part| (part.end, part.table.decoder())).collect(),
        }
    }

    /// Number of strings.
    #[must_use]
    pub fn strings(&self) -> u64 {
        self.parts.iter().map(|part| part.table.len()).sum()
    }

    /// How many numbers have no string any more.
    pub(crate) fn gone(&self) -> u64 {
        self.len() - self.strings()
    }

    /// True if a number has a string.
    pub(crate) fn contains(&self, number: u64) -> bool {
        let part = self.part_of(number);
        part.is_some_and(|part| part.table.contains(number))
    }

    /// With new strings, and without `forgotten` ones: those that are there are distinct.
    ///
    /// Those of a table that is joined with others go; a table of which most are forgotten is made
    /// anew for that alone, but for the one of the bulk load.
    pub(crate) fn sealed(
        &self,
        new: &NewStrings<'_>,
        forgotten: &SortedSet<u64>,
    ) -> Result<Self, StoreError> {
        if new.places.is_empty() {
            return Ok(self.clone());
        }
        let too_large = |error: DictionaryError| StoreError::TooLarge {
            reason: error.to_string(),
        };
        let numbered = new.places.clone().map(|place| ((new.number)(place), place));
        let (numbers, places): (Vec<u64>, Vec<u64>) = numbered
            .filter(|(number, _)| !forgotten.contains(*number))
            .unzip();
        let key = |at: usize| (new.key)(places[at]);
        let table = TermTable::build(&numbers, key).map_err(too_large)?;
        drop((numbers, places));
        let mut parts = self.parts.clone();
        let mut strings = table.len();
        let mut joined = vec![table];
        while parts.len() > 1
            && let Some(before) = parts.pop_if(|part| is_joined(part, strings, forgotten))
        {
            strings += before.table.len();
            joined.push(before.table.clone());
        }
        let table = match joined.as_slice() {
            [only] => only.clone(),
            several => {
                let several: Vec<&TermTable> = several.iter().collect();
                TermTable::merge(&several, |number| !forgotten.contains(number))
                    .map_err(too_large)?
            }
        };
        let begin = parts.last().map_or(0, |part| part.end);
        let part = Part::new(table, begin, new.end);
        let part = Arc::new(part.expect("its numbers follow those before"));
        parts.push(part);
        Ok(Self {
            parts,
            is_of_node: false,
            ends: Arc::clone(&self.ends),
            later: Arc::clone(&self.later),
        })
    }
}

/// Strings that came since the last merge.
pub(crate) struct NewStrings<'a> {
    /// Their places in the order in which they came.
    pub(crate) places: std::ops::Range<u64>,
    /// The number behind all of theirs, which are none of a table.
    pub(crate) end: u64,
    /// The number of the string of a place.
    pub(crate) number: &'a (dyn Fn(u64) -> u64 + Sync),
    pub(crate) key: &'a (dyn Fn(u64) -> &'a [u8] + Sync),
}

/// Whether a table is joined with so many strings that follow it.
fn is_joined(part: &Part, strings: u64, forgotten: &SortedSet<u64>) -> bool {
    let least = part.table.least().unwrap_or(part.end);
    let gone = forgotten.rank(part.end) - forgotten.rank(least);
    let living = part.table.len().saturating_sub(gone as u64);
    living <= GROWTH * strings || living < part.table.len() / 2
}

/// Reads strings of [`TermTables`], keeping the blocks that it reads repeatedly.
pub struct TermsDecoder<'a> {
    ground: Decoder<'a>,
    ground_end: u64,
    /// With the number behind the last of each.
    later: Vec<(u64, TermDecoder<'a>)>,
}

impl<'a> TermsDecoder<'a> {
    #[cold]
    fn later(&mut self, number: u64) -> Result<&mut TermDecoder<'a>, DictionaryError> {
        let place = self.later.partition_point(|(end, _)| *end <= number);
        match self.later.get_mut(place) {
            Some((_, decoder)) => Ok(decoder),
            None => Err(DictionaryError::UnknownNumber { number }),
        }
    }

    /// The string of a number, until the next one is asked for.
    ///
    /// # Errors
    /// If there is none, or its block is damaged.
    #[inline]
    pub fn get(&mut self, number: u64) -> Result<&[u8], DictionaryError> {
        if number < self.ground_end {
            return self.ground.get(number);
        }
        self.later(number)?.get(number)
    }

    /// Appends the string of a number.
    ///
    /// # Errors
    /// As [`Self::get`]; nothing is appended then.
    #[inline]
    pub fn push(&mut self, number: u64, out: &mut Vec<u8>) -> Result<(), DictionaryError> {
        if number < self.ground_end {
            return self.ground.push(number, out);
        }
        self.later(number)?.push(number, out)
    }

    /// The strings of the block that a number of the bulk load lies in, as [`Decoder::block`]; `None`
    /// for one that came later.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub fn block(
        &self,
        number: u64,
        around: &Around,
        text: &mut Vec<u8>,
        at: usize,
        ends: &mut [u32; BLOCK],
    ) -> Result<Option<WholeBlock<'a>>, DictionaryError> {
        match number < self.ground_end {
            true => self.ground.block(number, around, text, at, ends),
            false => Ok(None),
        }
    }
}
