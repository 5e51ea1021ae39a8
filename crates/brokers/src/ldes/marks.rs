//! Which members of an event stream were taken, and which of its pages need not be read again?
//!
//! The marks are notes of the stream: each is appended with the push that it is about, so that both survive a
//! kill or neither does. Members and pages are known by 16 bytes of a hash. Members of pages that may change
//! are all known; of pages that never will, the last ones, as another page may have them, too.

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::{FxHashMap, FxHashSet};
use xxhash_rust::xxh3::xxh3_128;

use crate::error::BrokerError;

const TAKEN: u8 = 1;
const SETTLED: u8 = 2;
const DONE: u8 = 3;
const FOUND: u8 = 4;
const HASH_BYTES: usize = 16;
/// Notes are written anew where they are longer than twice what they say, and this.
const SPARE_BYTES: usize = 64 << 10;

/// How much is remembered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Members that are known.
    pub(super) members: usize,
    /// Pages that will never change.
    pub(super) pages: usize,
    /// Other pages that are known.
    pub(super) open_pages: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            members: 500_000,
            pages: 500_000,
            open_pages: 50_000,
        }
    }
}

/// What a member or a page is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Mark(u128);

impl Mark {
    pub(super) fn of(iri: &str) -> Self {
        Self(xxh3_128(iri.as_bytes()))
    }
}

/// What was taken of an event stream.
#[derive(Debug, Default)]
pub(super) struct Marks {
    bounds: Bounds,
    /// Members, and whether one is on a page that will never change.
    members: FxHashMap<Mark, bool>,
    /// Those that are, in the order in which that was found.
    settled: VecDeque<Mark>,
    /// Pages that will never change and of which all was taken.
    done: FxHashSet<Mark>,
    /// Pages that one of these leads to and that are not done, with the time from which on they have members.
    found: BTreeMap<String, i64>,
    found_bytes: usize,
    /// What is to be noted with the next push.
    new: Vec<u8>,
}

impl Marks {
    /// Reads the notes of a stream.
    ///
    /// # Errors
    /// [`BrokerError::BadNotes`].
    pub(super) fn read(mut notes: &[u8], bounds: Bounds) -> Result<Self, BrokerError> {
        let mut marks = Self {
            bounds,
            ..Self::default()
        };
        while let Some(kind) = take(&mut notes, 1) {
            let known = match kind[0] {
                TAKEN => take_mark(&mut notes).map(|mark| marks.add(mark)),
                SETTLED => take_mark(&mut notes).map(|mark| marks.settle_mark(mark)),
                DONE => take_mark(&mut notes).map(|mark| {
                    marks.done.insert(mark);
                }),
                FOUND => take_found(&mut notes).map(|(address, from_ms)| {
                    marks.add_found(address, from_ms);
                }),
                _ => None,
            };
            known.ok_or(BrokerError::BadNotes)?;
        }
        let done = &marks.done;
        let not_done = |address: &String, _: &mut i64| !done.contains(&Mark::of(address));
        marks.found.retain(not_done);
        marks.found_bytes = marks.found.keys().map(String::len).sum();
        Ok(marks)
    }

    /// All that is known, as notes.
    pub(super) fn write(&self) -> Vec<u8> {
        let mut notes = Vec::with_capacity(self.bytes());
        for done in &self.done {
            put_mark(&mut notes, DONE, *done);
        }
        for (address, from_ms) in &self.found {
            put_found(&mut notes, address, *from_ms);
        }
        let members = self.members.iter();
        for (mark, _) in members.filter(|(_, is_settled)| !**is_settled) {
            put_mark(&mut notes, TAKEN, *mark);
        }
        for mark in &self.settled {
            put_mark(&mut notes, SETTLED, *mark);
        }
        notes
    }

    fn bytes(&self) -> usize {
        (1 + HASH_BYTES) * (self.members.len() + self.done.len())
            + (1 + 8 + 4) * self.found.len()
            + self.found_bytes
    }

    /// Whether notes of this length should be written anew.
    pub(super) fn are_too_long(&self, notes_bytes: usize) -> bool {
        notes_bytes > 2 * self.bytes() + SPARE_BYTES
    }

    /// What is to be noted with the next push.
    pub(super) fn take_new(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.new)
    }

    pub(super) fn has(&self, member: Mark) -> bool {
        self.members.contains_key(&member)
    }

    /// Notes that the next push has a member.
    pub(super) fn note(&mut self, member: Mark) {
        put_mark(&mut self.new, TAKEN, member);
    }

    /// Knows a member that will be pushed.
    pub(super) fn add(&mut self, member: Mark) {
        self.members.entry(member).or_insert(false);
    }

    fn settle_mark(&mut self, member: Mark) {
        if !std::mem::replace(self.members.entry(member).or_insert(false), true) {
            self.settled.push_back(member);
        }
    }

    pub(super) fn is_done(&self, address: &str) -> bool {
        self.done.contains(&Mark::of(address))
    }

    /// Pages that are to be read, though no page that is read again leads to them.
    pub(super) fn found(&self) -> &BTreeMap<String, i64> {
        &self.found
    }

    pub(super) fn pages_done(&self) -> usize {
        self.done.len()
    }

    /// Notes that a page will never change, and that all of it was taken.
    pub(super) fn finish_page(&mut self, address: &str, members: &[Mark]) {
        let page = Mark::of(address);
        put_mark(&mut self.new, DONE, page);
        self.done.insert(page);
        if self.found.remove(address).is_some() {
            self.found_bytes -= address.len();
        }
        for member in members {
            if self.members.get(member) == Some(&false) {
                put_mark(&mut self.new, SETTLED, *member);
                self.settle_mark(*member);
            }
        }
    }

    /// Notes that a page that is done leads to another one.
    pub(super) fn find_page(&mut self, address: &str, from_ms: i64) {
        if !self.is_done(address) && !self.found.contains_key(address) {
            put_found(&mut self.new, address, from_ms);
            self.add_found(address.to_owned(), from_ms);
        }
    }

    fn add_found(&mut self, address: String, from_ms: i64) {
        let bytes = address.len();
        if self.found.insert(address, from_ms).is_none() {
            self.found_bytes += bytes;
        }
    }

    /// Forgets members of pages that will never change, the oldest first, as many as are too many.
    ///
    /// # Errors
    /// [`BrokerError::TooManyMembers`], [`BrokerError::TooManyPages`], where nothing can be forgotten.
    pub(super) fn limit(&mut self) -> Result<(), BrokerError> {
        while self.members.len() > self.bounds.members {
            let most = self.bounds.members;
            let oldest = self.settled.pop_front();
            let oldest = oldest.ok_or(BrokerError::TooManyMembers { most })?;
            self.members.remove(&oldest);
        }
        self.limit_pages(self.found.len())
    }

    /// # Errors
    /// [`BrokerError::TooManyPages`] where so many pages beside those that are done are too many.
    pub(super) fn limit_pages(&self, open: usize) -> Result<(), BrokerError> {
        let (most, most_open) = (self.bounds.pages, self.bounds.open_pages);
        match self.done.len() <= most && open <= most_open {
            true => Ok(()),
            false => Err(BrokerError::TooManyPages { most, most_open }),
        }
    }
}

fn put_mark(notes: &mut Vec<u8>, kind: u8, mark: Mark) {
    notes.push(kind);
    notes.extend_from_slice(&mark.0.to_le_bytes());
}

fn put_found(notes: &mut Vec<u8>, address: &str, from_ms: i64) {
    let bytes = u32::try_from(address.len()).expect("an address is shorter than its page");
    notes.push(FOUND);
    notes.extend_from_slice(&from_ms.to_le_bytes());
    notes.extend_from_slice(&bytes.to_le_bytes());
    notes.extend_from_slice(address.as_bytes());
}

fn take<'a>(notes: &mut &'a [u8], bytes: usize) -> Option<&'a [u8]> {
    let (taken, rest) = notes.split_at_checked(bytes)?;
    *notes = rest;
    Some(taken)
}

fn take_mark(notes: &mut &[u8]) -> Option<Mark> {
    let bytes = take(notes, HASH_BYTES)?.try_into().ok()?;
    Some(Mark(u128::from_le_bytes(bytes)))
}

fn take_found(notes: &mut &[u8]) -> Option<(String, i64)> {
    let from_ms = i64::from_le_bytes(take(notes, 8)?.try_into().ok()?);
    let bytes = u32::from_le_bytes(take(notes, 4)?.try_into().ok()?);
    let address = take(notes, usize::try_from(bytes).ok()?)?;
    Some((String::from_utf8(address.to_vec()).ok()?, from_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(members: usize) -> Bounds {
        Bounds {
            members,
            pages: 2,
            open_pages: 2,
        }
    }

    fn members(names: &[&str]) -> Vec<Mark> {
        names.iter().map(|name| Mark::of(name)).collect()
    }

    #[test]
    fn notes_say_what_marks_know_however_often_they_were_written() {
        let mut marks = Marks::read(&[], bounds(9)).expect("there are none");
        let mut notes = Vec::new();
        for member in members(&["a", "b", "c"]) {
            marks.add(member);
            marks.note(member);
        }
        notes.extend(marks.take_new());
        marks.find_page("http://e/2", -7);
        marks.finish_page("http://e/1", &members(&["a", "c"]));
        notes.extend(marks.take_new());
        for notes in [notes, marks.write()] {
            let again = Marks::read(&notes, bounds(9)).expect("they are sound");
            assert_eq!(again.members, marks.members);
            assert_eq!(again.settled, members(&["a", "c"]));
            assert!(again.is_done("http://e/1") && !again.is_done("http://e/2"));
            assert_eq!(again.found(), &[("http://e/2".to_owned(), -7)].into());
            assert_eq!(again.write().len(), again.bytes());
        }
    }

    #[test]
    fn a_page_that_is_done_is_found_no_more() {
        let mut marks = Marks::read(&[], bounds(9)).expect("there are none");
        marks.find_page("http://e/2", 0);
        marks.finish_page("http://e/2", &[]);
        let again = Marks::read(&marks.take_new(), bounds(9)).expect("they are sound");
        assert!(marks.found().is_empty() && again.found().is_empty());
        assert_eq!((marks.found_bytes, again.found_bytes), (0, 0));
    }

    #[test]
    fn only_members_of_pages_that_never_change_are_forgotten() {
        let mut marks = Marks::read(&[], bounds(2)).expect("there are none");
        members(&["a", "b", "c"])
            .into_iter()
            .for_each(|member| marks.add(member));
        let refused = marks.limit();
        assert!(matches!(
            refused,
            Err(BrokerError::TooManyMembers { most: 2 })
        ));
        marks.finish_page("http://e/1", &members(&["b", "c"]));
        marks.limit().expect("one can be forgotten");
        let known = members(&["a", "b", "c"])
            .into_iter()
            .map(|mark| marks.has(mark));
        assert_eq!(known.collect::<Vec<_>>(), [true, false, true]);
        marks.finish_page("http://e/2", &[]);
        marks.finish_page("http://e/3", &[]);
        let refused = marks.limit();
        assert!(matches!(
            refused,
            Err(BrokerError::TooManyPages { most: 2, .. })
        ));
    }

    #[test]
    fn notes_of_no_known_kind_are_refused() {
        for wrong in [&[9][..], &[TAKEN, 1], &[FOUND, 0, 0], &[0]] {
            let read = Marks::read(wrong, Bounds::default());
            assert!(matches!(read, Err(BrokerError::BadNotes)), "{wrong:?}");
        }
    }
}
