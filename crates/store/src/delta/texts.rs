//! In which order do a snapshot's terms come by their texts?

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use jindou_dictionary::DictionaryError;
use jindou_model::{TermId, TermKind, TextPlace};

use super::pending::PendingTerms;
use super::snapshot::{Generation, Snapshot};
use crate::later_order::{Extension, OrderVersion, extend};
use crate::places::Place;

/// How long to wait for another thread that extends the order, between two calls of `poll`.
const WAIT: Duration = Duration::from_millis(2);

/// The order of a snapshot's terms by their texts, as far as it was known when this was asked for.
///
/// All places that one of these gives are of one order; those of another one may be of another.
pub struct TextOrder {
    generation: Arc<Generation>,
    pending: Option<Arc<PendingTerms>>,
    /// The number behind the last literal that all snapshots of the generation may know.
    kept: u64,
    /// The number behind the last literal that the snapshot knows.
    known: u64,
    version: Arc<OrderVersion>,
}

impl Snapshot {
    /// The order of its terms by their texts. Costs a few counters.
    #[must_use]
    pub fn text_order(&self) -> TextOrder {
        let version = self.base().literal_tables().later.current();
        let (kept, known) = match self.base().node_part() {
            None => (self.kept().literals, self.literal_count()),
            // A part has not the texts among which others would be searched.
            Some(_) => (version.until(), version.until()),
        };
        TextOrder {
            generation: Arc::clone(&self.generation),
            pending: self.pending_terms().cloned(),
            kept,
            known,
            version,
        }
    }
}

impl TextOrder {
    /// Where a term lies; `None` for literals of other kinds than strings, for vertices that came after
    /// the bulk load, and for ids that are not of a vertex or dictionary literal of the snapshot.
    ///
    /// Costs a few loads, and the first time for sixteen terms the decoding of them. A literal that
    /// is not in order yet is also searched among those that are. A node's part knows all places and reads no string.
    #[inline]
    #[must_use]
    pub fn place(&self, id: TermId) -> Option<TextPlace> {
        let base = &self.generation.base;
        let number = id.number();
        match id.kind() {
            TermKind::Vertex => base.vertex_place(id),
            TermKind::Literal if number < self.version.first() => Some(TextPlace::main(
                base.load_kind(number)?,
                self.version.position(number),
            )),
            TermKind::Literal => match self
                .version_of(number)
                .and_then(|version| version.of_later(number))
            {
                Some(place) => Some(TextPlace::main(place.kind?, place.at)),
                None => self.place_between(number),
            },
            _ => None,
        }
    }

    /// What is known of a number; nothing of that of a transaction under way, which others give, too.
    #[inline]
    fn version_of(&self, number: u64) -> Option<&OrderVersion> {
        (number < self.kept).then_some(&*self.version)
    }

    /// The place of a literal that is not in order.
    #[cold]
    fn place_between(&self, number: u64) -> Option<TextPlace> {
        let version = self.version_of(number);
        let gone = self.generation.base.literals.gone();
        let place = match version.and_then(|version| version.remembered(number, gone)) {
            Some(known) => known,
            // A damaged block says so to whoever reads the text.
            None => self.find_place(number).ok().flatten()?,
        };
        Some(TextPlace {
            kind: place.kind?,
            run: TextPlace::ALONE,
            at: place.at,
            order: 0,
        })
    }

    fn find_place(&self, number: u64) -> Result<Option<Place>, DictionaryError> {
        if number >= self.known {
            return Ok(None);
        }
        self.version.note_work(1);
        let mut key = Vec::new();
        if !self.read_key(number, &mut key)? {
            return Ok(None);
        }
        // Among literals that it does not know, or whose texts are gone, it lies anywhere: whoever has
        // these is to search anew.
        let is_exact = Cell::new(true);
        let read = |number, text: &mut Vec<u8>| {
            let is_there = number < self.kept && self.read_key(number, text)?;
            is_exact.set(is_exact.get() & is_there);
            Ok(is_there)
        };
        let mut search = self.generation.base.literals.search();
        let place = self.version.place_of(&key, &mut search, &read)?;
        if is_exact.get() && number < self.kept {
            self.version.remember(number, place);
        }
        Ok(Some(place))
    }

    /// Reads the key of a literal; false if it has none any more.
    fn read_key(&self, number: u64, key: &mut Vec<u8>) -> Result<bool, DictionaryError> {
        key.clear();
        let tables = &self.generation.base.literals;
        if number < tables.len() {
            let is_there = tables.contains(number);
            if is_there {
                tables.extract(number, key)?;
            }
            return Ok(is_there);
        }
        match &self.pending {
            Some(pending) if number >= self.kept => {
                let found = pending.literal_key(number);
                key.extend_from_slice(found.unwrap_or_default());
                Ok(found.is_some())
            }
            _ => {
                key.extend_from_slice(self.generation.terms.literal_key(number));
                Ok(true)
            }
        }
    }

    /// Notes that so many texts were read because places do not tell their order.
    pub fn note_texts_read(&self, texts: usize) {
        self.version.note_work(texts);
    }

    /// True if so much was done for want of the order of more literals that [`Self::extended`] is
    /// worth its cost.
    #[inline]
    #[must_use]
    pub fn is_wanting(&self) -> bool {
        self.version.is_wanting(self.kept)
    }

    /// The order with all literals of the snapshot, but for those of a transaction under way: from then
    /// on for whoever asks for it. If another thread extends it, this waits for that.
    ///
    /// Costs the texts of those that are not in order, which are read and sorted, and a pass over
    /// those that are. Calls `poll` now and then with the bytes held; `None` if that gave false, or
    /// if a table is damaged.
    pub fn extended(&self, poll: &mut dyn FnMut(usize) -> bool) -> Option<Self> {
        let tables = &self.generation.base.literals;
        let extending = loop {
            match tables.later.extending().try_lock_for(WAIT) {
                Some(lock) => break lock,
                None if poll(0) => {}
                None => return None,
            }
        };
        let current = tables.later.current();
        if current.until() >= self.kept {
            return Some(self.with(current));
        }
        let with = Extension {
            tables,
            known: self.kept,
            appended: &|number| self.generation.terms.literal_key(number),
            read: &|number, key| self.read_key(number, key),
        };
        match extend(&current, &with, poll) {
            Ok(Some(next)) => {
                let next = Arc::new(next);
                tables.later.set(Arc::clone(&next), &extending);
                Some(self.with(next))
            }
            Ok(None) | Err(_) => {
                current.forget_work();
                None
            }
        }
    }

    /// The order of the literals that came after the bulk load.
    pub(crate) fn version(&self) -> &Arc<OrderVersion> {
        &self.version
    }

    fn with(&self, version: Arc<OrderVersion>) -> Self {
        Self {
            generation: Arc::clone(&self.generation),
            pending: self.pending.clone(),
            kept: self.kept,
            known: self.known,
            version,
        }
    }
}
