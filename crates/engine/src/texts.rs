//! Which terms do the rows have that a query hands over?
//!
//! Where the dictionary is at several nodes, the terms of some rows are read together, before anybody
//! gets these: so writers of answers look at nothing that could be lost.

use std::sync::Arc;

use jindou_exec::{Context, ExecError, Held, KeyKind, Keys, Terms};
use jindou_model::{TermId, TermKind, Unavailable};
use rustc_hash::FxHashMap;

/// Bytes of keys that are read between two looks at the query's memory.
const BYTES_AT_ONCE: usize = 1 << 20;

/// The terms of some rows.
#[derive(Clone)]
pub(crate) enum Texts {
    /// All are in the dictionary here, which is read when they are written.
    AllHere,
    /// They were read.
    Read(Arc<ReadTexts>),
}

/// Terms of the dictionary that were read.
#[derive(Default)]
pub(crate) struct ReadTexts {
    places: FxHashMap<TermId, u32>,
    keys: Keys,
    /// For what these take.
    _held: Vec<Held>,
}

impl Default for Texts {
    /// Of no rows.
    fn default() -> Self {
        Self::Read(Arc::default())
    }
}

impl ReadTexts {
    /// Reads the terms of the first of some quads, until their keys have so many bytes: of one quad at least. Gives
    /// how many quads these are.
    ///
    /// # Errors
    /// Why one of them cannot be read.
    pub(crate) fn of_quads(
        quads: &[[TermId; 4]],
        most_bytes: usize,
        terms: &Terms,
    ) -> Result<(Self, usize), Unavailable> {
        let mut read = Self::default();
        let mut distinct = Vec::new();
        // How many of the distinct ones each quad and those before it have.
        let mut needed = Vec::with_capacity(quads.len());
        for quad in quads {
            quad.iter().for_each(|id| read.place(*id, &mut distinct));
            needed.push(distinct.len());
        }
        let mut done = 0;
        while done < distinct.len() && (read.keys.bytes() < most_bytes || done < needed[0]) {
            let most = read.keys.bytes() + BYTES_AT_ONCE;
            done += terms.push_keys(&distinct[done..], most, &mut read.keys)?;
        }
        let count = needed.partition_point(|needed| *needed <= done);
        Ok((read, count))
    }

    /// Gives a term of the dictionary a place among the distinct ones, if it has none.
    fn place(&mut self, id: TermId, distinct: &mut Vec<TermId>) {
        let is_stored = matches!(id.kind(), TermKind::Vertex | TermKind::Literal);
        let next = distinct.len() as u32;
        if is_stored && *self.places.entry(id).or_insert(next) == next {
            distinct.push(id);
        }
    }
}

impl Texts {
    /// Reads those of `ids` that are the dictionary's, each once.
    ///
    /// # Errors
    /// What the query ends for.
    pub(crate) fn read<'i>(
        ids: impl Iterator<Item = &'i TermId>,
        cx: &Context,
    ) -> Result<Self, ExecError> {
        let mut read = ReadTexts::default();
        let mut distinct = Vec::new();
        ids.for_each(|id| read.place(*id, &mut distinct));
        let entry_bytes = 2 * (size_of::<(TermId, u32)>() + size_of::<(usize, KeyKind)>());
        read._held
            .push(cx.hold_or_end(distinct.len() * entry_bytes)?);
        let mut done = 0;
        while done < distinct.len() {
            let before = read.keys.bytes();
            let most = before + BYTES_AT_ONCE;
            let added = (cx.terms()).push_keys(&distinct[done..], most, &mut read.keys);
            done += added.map_err(|why| cx.without_term(why))?;
            // Keys grow to twice what they were.
            read._held
                .push(cx.hold_or_end(2 * (read.keys.bytes() - before))?);
        }
        Ok(Self::Read(Arc::new(read)))
    }

    /// Those that were read, if that is how terms come here.
    pub(crate) fn read_ones(&self) -> Option<&ReadTexts> {
        match self {
            Self::AllHere => None,
            Self::Read(read) => Some(read),
        }
    }
}

impl ReadTexts {
    /// The key of a term of the dictionary.
    ///
    /// # Panics
    /// If it is none of the rows'.
    pub(crate) fn key(&self, id: TermId) -> (&[u8], KeyKind) {
        let place = self.places.get(&id);
        let place = *place.unwrap_or_else(|| panic!("{id:?} was not among the rows"));
        self.keys.get(place as usize)
    }
}
