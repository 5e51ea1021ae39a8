//! Which string has a number that was given from outside and is kept for ever, and which number has
//! a string?

use std::cmp::Ordering;
use std::fmt;

use jindou_fabric::Region;
use rayon::prelude::*;

use crate::error::DictionaryError;
use crate::merge;
use crate::number_map::{MOST, NumberMap};
use crate::numbers::{Numbers, NumbersView};
use crate::residues::Residues;
use crate::table::{BATCH, StringTable};
use crate::term_decoder::{TermDecoder, unknown};

/// Distinct byte strings with distinct given numbers.
///
/// The strings are the rows of a [`StringTable`]. Either the numbers are one range in the order of
/// the rows, as a bulk load makes them, or those of a range that leave some residues, as a node has them of a bulk
/// load, which both cost nothing over that table; or the rows are in the
/// order of the strings' bytes, and numbers and rows are mapped to each other in a second region,
/// of about seven bytes a string.
///
/// Clones share the regions.
#[derive(Clone)]
pub struct TermTable {
    strings: StringTable,
    numbers: Numbers,
}

impl TermTable {
    /// The table of these strings, where the one with id `i` has the number `first + i`. Costs
    /// nothing.
    ///
    /// # Errors
    /// [`DictionaryError::NoSuchRange`] if `first + strings.len()` does not fit into 64 bits.
    pub fn from_range(first: u64, strings: StringTable) -> Result<Self, DictionaryError> {
        let numbers = Numbers::range(first, strings.len())?;
        Ok(Self { strings, numbers })
    }

    /// The table of these strings, whose numbers are the first ones that leave some residues, by row. Costs nothing.
    #[must_use]
    pub fn of_residues(residues: Residues, strings: StringTable) -> Self {
        let len = strings.len();
        let numbers = Numbers::Dealt { residues, len };
        Self { strings, numbers }
    }

    /// The table of the strings `key(i)` with the numbers `numbers[i]`, which may come in any
    /// order, on all threads of the current pool.
    ///
    /// `key` is called some times for each place, and should cost little. Besides the result this
    /// needs the front-coded strings once more and 20 bytes a string.
    ///
    /// # Errors
    /// [`DictionaryError::RepeatedNumber`] or [`DictionaryError::RepeatedString`] if numbers or
    /// strings are not distinct, [`DictionaryError::TooMany`] of more than 2^32 - 1, and
    /// [`DictionaryError::TooLong`] as [`StringTable::build`].
    ///
    /// ```
    /// use jindou_dictionary::TermTable;
    ///
    /// let terms = ["http://example.org/b", "http://example.org/a"];
    /// let table = TermTable::build(&[1 << 40, 7], |at| terms[at].as_bytes())?;
    /// assert_eq!(table.lookup(b"http://example.org/b"), Some(1 << 40));
    /// assert_eq!(table.decoder().get(7)?, b"http://example.org/a");
    /// assert_eq!(table.rank(7), Some(0));
    /// # Ok::<(), jindou_dictionary::DictionaryError>(())
    /// ```
    pub fn build<'a, F>(numbers: &[u64], key: F) -> Result<Self, DictionaryError>
    where
        F: Fn(usize) -> &'a [u8] + Sync,
    {
        test_count(numbers.len() as u64)?;
        let mut order: Vec<u32> = (0..numbers.len() as u32).collect();
        order.par_sort_unstable_by(|a, b| key(*a as usize).cmp(key(*b as usize)));
        let repeated = order
            .par_windows(2)
            .find_first(|pair| key(pair[0] as usize) == key(pair[1] as usize));
        if let Some(pair) = repeated {
            let [one, other] = [0, 1].map(|at| numbers[pair[at] as usize]);
            return Err(DictionaryError::RepeatedString { one, other });
        }
        let strings = StringTable::build(order.len(), |row| key(order[row] as usize))?;
        Self::mapped(strings, order.iter().map(|at| numbers[*at as usize]))
    }

    /// The table of all strings of `tables` whose number is to be kept, in the order of their
    /// bytes, on all threads of the current pool.
    ///
    /// Numbers and strings that are kept must be distinct among all tables. `keep` is called once
    /// for each number. Besides the result this needs its front-coded strings once more, 24 bytes
    /// for each of them, and, if a range of numbers takes part, up to 100 MB for each thread.
    /// Tables in the order of their strings are read from the first string to the last; of the
    /// others each string is read twice, the second time by itself.
    ///
    /// # Errors
    /// As [`Self::build`], and [`DictionaryError::Damaged`] if that is found of a table.
    pub fn merge<K>(tables: &[&Self], keep: K) -> Result<Self, DictionaryError>
    where
        K: Fn(u64) -> bool + Sync,
    {
        let (strings, numbers) = merge::merge(tables, &keep)?;
        Self::mapped(strings, numbers.iter().flatten().copied())
    }

    fn mapped<N>(strings: StringTable, by_row: N) -> Result<Self, DictionaryError>
    where
        N: Iterator<Item = u64> + Clone,
    {
        let numbers = Numbers::Mapped(NumberMap::build(&strings, by_row)?);
        Ok(Self { strings, numbers })
    }

    /// The strings whose numbers leave some residues, without what finds strings, and the hash and the number of
    /// each string whose hash is `wanted`: what a node has of the table. Strings of a mapped table that are not
    /// `kept` are left out. Reads all strings from the first to the last, and holds those of the part once more.
    ///
    /// # Errors
    /// [`DictionaryError::Damaged`] if that is found of the table.
    ///
    /// # Panics
    /// If the numbers are some of a range already, or a range that does not begin with 0.
    pub fn part(
        &self,
        residues: &Residues,
        wanted: impl Fn(u64) -> bool,
        kept: impl Fn(u64) -> bool,
    ) -> Result<(Self, Vec<(u64, u64)>), DictionaryError> {
        let is_range = !self.is_text_ordered();
        let (mut text, mut ends, mut numbers) = (Vec::new(), vec![0], Vec::new());
        let mut hashes = Vec::new();
        let (view, mut decoder) = (self.numbers.view(), self.strings.decoder());
        for row in 0..self.len() {
            let damaged = DictionaryError::Damaged {
                what: "a row has no number",
            };
            let (number, key) = (view.number_at(row).ok_or(damaged)?, decoder.get(row)?);
            let (hash, is_kept) = (crate::hash(key), kept(number));
            if is_kept && wanted(hash) {
                hashes.push((hash, number));
            }
            if (is_kept || is_range) && residues.contains(number) {
                text.extend_from_slice(key);
                ends.push(text.len());
                numbers.push(number);
            }
        }
        let key = |at: usize| &text[ends[at]..ends[at + 1]];
        let strings = StringTable::build_without_index(numbers.len(), key)?;
        let part = match &self.numbers {
            Numbers::Range { first: 0, .. } => Self::of_residues(residues.clone(), strings),
            Numbers::Mapped(_) => Self::mapped(strings, numbers.iter().copied())?,
            Numbers::Range { .. } | Numbers::Dealt { .. } => {
                panic!("a part is that of a whole table")
            }
        };
        Ok((part, hashes))
    }

    /// The table that had these strings and [`Self::numbers_region`]; without one, the table whose
    /// numbers begin with `first`, which has no meaning else.
    ///
    /// This reads the header of the numbers and 16 bytes for each chunk of 65,536 numbers that has
    /// any, and tests them, so that nothing that is read later can lie outside. Other damage is
    /// found by [`Self::verify`]; undetected, it may give wrong answers, but no panic.
    ///
    /// # Errors
    /// As [`Self::from_range`]; if the region holds no numbers, or those of other strings, or of
    /// another version, or if it is damaged.
    pub fn open(
        strings: StringTable,
        numbers: Option<Region>,
        first: u64,
    ) -> Result<Self, DictionaryError> {
        let Some(region) = numbers else {
            return Self::from_range(first, strings);
        };
        let numbers = Numbers::Mapped(NumberMap::open(region, &strings)?);
        Ok(Self { strings, numbers })
    }

    /// Reads the whole table and tests it: the checksums, that each number leads to a row and that
    /// back to the number, and the order of the strings. Costs tens of nanoseconds a string.
    ///
    /// # Errors
    /// [`DictionaryError::Damaged`] if something is wrong.
    pub fn verify(&self) -> Result<(), DictionaryError> {
        self.strings.verify()?;
        let Numbers::Mapped(map) = &self.numbers else {
            return Ok(());
        };
        map.verify()?;
        let mut decoder = self.strings.decoder();
        let mut last = Vec::new();
        for row in 0..self.len() {
            let string = decoder.get(row)?;
            if row > 0 && last.as_slice().cmp(string) != Ordering::Less {
                let what = "the strings are out of order";
                return Err(DictionaryError::Damaged { what });
            }
            last.clear();
            last.extend_from_slice(string);
        }
        Ok(())
    }

    /// The strings by row: their region has to be kept for [`Self::open`].
    #[inline]
    #[must_use]
    pub fn strings(&self) -> &StringTable {
        &self.strings
    }

    /// The region of the numbers, to be kept for [`Self::open`] as well; none if they are a range,
    /// of which [`Self::least`] is to be kept.
    #[must_use]
    pub fn numbers_region(&self) -> Option<&Region> {
        match &self.numbers {
            Numbers::Range { .. } | Numbers::Dealt { .. } => None,
            Numbers::Mapped(map) => Some(map.region()),
        }
    }

    /// The residues that all numbers of a range leave that are here; none of other tables.
    #[must_use]
    pub fn residues(&self) -> Option<&Residues> {
        match &self.numbers {
            Numbers::Dealt { residues, .. } => Some(residues),
            Numbers::Range { .. } | Numbers::Mapped(_) => None,
        }
    }

    /// All regions: that of the strings, and that of the numbers if they are no range.
    #[must_use]
    pub fn regions(&self) -> (&Region, Option<&Region>) {
        (self.strings.region(), self.numbers_region())
    }

    /// The number of strings.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u64 {
        self.strings.len()
    }

    /// True of a table without strings.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.strings.is_empty()
    }

    /// Bytes of memory, or of mapped files, that the table takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.strings.bytes() + self.numbers_region().map_or(0, Region::len)
    }

    /// The least number; none of an empty table.
    #[must_use]
    pub fn least(&self) -> Option<u64> {
        self.numbers.ends().map(|(least, _)| least)
    }

    /// The greatest number; none of an empty table.
    #[must_use]
    pub fn greatest(&self) -> Option<u64> {
        self.numbers.ends().map(|(_, greatest)| greatest)
    }

    /// All numbers, ascending; some nanoseconds for each.
    pub fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        self.numbers.view().numbers()
    }

    /// Whether a string has this number. One or two loads from memory, if none is cached.
    #[inline]
    #[must_use]
    pub fn contains(&self, number: u64) -> bool {
        self.numbers.view().contains(number)
    }

    /// The row of a number: the id of its string in [`Self::strings`]. Three loads from memory at
    /// the most, if none is cached, and none of a range.
    #[inline]
    #[must_use]
    pub fn row(&self, number: u64) -> Option<u64> {
        self.numbers.view().row(number)
    }

    /// The number of a row, if there is such a row. One load from memory, and none of a range.
    #[inline]
    #[must_use]
    pub fn number_at(&self, row: u64) -> Option<u64> {
        self.numbers.view().number_at(row)
    }

    /// Whether rows are in the order of the strings' bytes, so that [`Self::rank`] is known.
    #[inline]
    #[must_use]
    pub fn is_text_ordered(&self) -> bool {
        matches!(self.numbers, Numbers::Mapped(_))
    }

    /// How many strings of this table come before the one of this number in the order of bytes;
    /// `None` if the number is not there, or the rows are in another order. Costs what
    /// [`Self::row`] does.
    #[inline]
    #[must_use]
    pub fn rank(&self, number: u64) -> Option<u64> {
        match &self.numbers {
            Numbers::Range { .. } | Numbers::Dealt { .. } => None,
            Numbers::Mapped(map) => map.view().row(number),
        }
    }

    /// The number of a string. One load from memory more than [`StringTable::lookup`].
    #[inline]
    #[must_use]
    pub fn lookup(&self, key: &[u8]) -> Option<u64> {
        self.lookup_hashed(crate::hash(key), key)
    }

    /// The number of a string whose [`crate::hash`] is known.
    #[inline]
    #[must_use]
    pub fn lookup_hashed(&self, hash: u64, key: &[u8]) -> Option<u64> {
        self.number_at(self.strings.lookup_hashed(hash, key)?)
    }

    /// As [`StringTable::candidates`], with numbers.
    pub fn candidates(&self, hash: u64, mut take: impl FnMut(u64)) {
        let view = self.numbers.view();
        (self.strings).candidates(hash, |row| {
            view.number_at(row).into_iter().for_each(&mut take)
        });
    }

    /// Looks up the keys that have no number yet, and puts in the numbers of those that are here:
    /// several tables are asked one after the other so. Keys beyond the length of `numbers` are
    /// not looked at.
    ///
    /// The loads of a few dozen keys overlap, as in [`StringTable::lookup_batch`].
    pub fn lookup_batch(&self, keys: &[&[u8]], numbers: &mut [Option<u64>]) {
        self.fill(keys, numbers, |at| crate::hash(keys[at]));
    }

    /// As [`Self::lookup_batch`], given the [`crate::hash`] of each key: for several tables it is
    /// computed once. Keys beyond the length of `hashes` are not looked at.
    pub fn lookup_batch_hashed(&self, hashes: &[u64], keys: &[&[u8]], numbers: &mut [Option<u64>]) {
        let keys = &keys[..keys.len().min(hashes.len())];
        self.fill(keys, numbers, |at| hashes[at]);
    }

    fn fill(&self, keys: &[&[u8]], numbers: &mut [Option<u64>], hash: impl Fn(usize) -> u64) {
        let view = self.numbers.view();
        let count = keys.len().min(numbers.len());
        let mut next = 0;
        while next < count {
            let (mut places, mut hashes) = ([0; BATCH], [0; BATCH]);
            let mut few: [&[u8]; BATCH] = [&[]; BATCH];
            let mut found = 0;
            while next < count && found < BATCH {
                if numbers[next].is_none() {
                    (places[found], hashes[found], few[found]) = (next, hash(next), keys[next]);
                    found += 1;
                }
                next += 1;
            }
            let mut rows = [None; BATCH];
            self.strings
                .lookup_few(&few[..found], &hashes, |at, row| rows[at] = row);
            for (place, row) in places.iter().zip(rows).take(found) {
                numbers[*place] = row.and_then(|row| view.number_at(row));
            }
        }
    }

    /// Appends the string of a number.
    ///
    /// # Errors
    /// [`DictionaryError::UnknownNumber`] if it is not there, and [`DictionaryError::Damaged`] if
    /// the string's block is; nothing is appended then.
    pub fn extract(&self, number: u64, out: &mut Vec<u8>) -> Result<(), DictionaryError> {
        match self.row(number) {
            Some(row) => self.strings.extract(row, out),
            None => Err(unknown(number)),
        }
    }

    /// A reader of many strings. Making one allocates nothing.
    #[inline]
    #[must_use]
    pub fn decoder(&self) -> TermDecoder<'_> {
        TermDecoder::new(self.numbers.view(), self.strings.decoder())
    }

    #[inline]
    pub(crate) fn numbers_view(&self) -> NumbersView<'_> {
        self.numbers.view()
    }
}

/// Refuses more strings than rows can be mapped.
pub(crate) fn test_count(strings: u64) -> Result<(), DictionaryError> {
    let limit = MOST;
    if strings > limit {
        return Err(DictionaryError::TooMany { strings, limit });
    }
    Ok(())
}

impl fmt::Debug for TermTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = match &self.numbers {
            Numbers::Range { .. } => "a range of numbers",
            Numbers::Dealt { .. } => "some of a range of numbers",
            Numbers::Mapped(_) => "mapped numbers",
        };
        write!(
            f,
            "TermTable({} strings with {order}, {} bytes)",
            self.len(),
            self.bytes()
        )
    }
}
