//! Terms during a query: what does this id stand for, and which id has this term?

use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::thread;

use hashbrown::HashTable;
use jindou_model::{IdEpoch, TermId, TermKind, TextPlace, Unavailable, inline, key};
use oxrdf::{BlankNodeRef, Literal, LiteralRef, Term, TermRef};
use rustc_hash::FxBuildHasher;

use crate::keys::{KeyKind, Keys};

/// Bytes of keys that are read together.
const KEY_BYTES_AT_ONCE: usize = 64 << 10;

/// A dictionary, as the executor sees it. Its terms may be at other nodes: each call that reads them may say
/// that it cannot answer now, and is made again, or that a part of them is lost. What was appended before a
/// call that fails stays as it was.
pub trait TermSource: Send + Sync {
    /// What its ids mean.
    fn epoch(&self) -> IdEpoch;

    /// True if there is a term of this id, which is a vertex's or a dictionary literal's. Every node knows which
    /// numbers were given.
    fn has(&self, id: TermId) -> bool;

    /// Appends the key (see [`jindou_model::key`]) of a vertex, dictionary literal or predicate.
    ///
    /// # Errors
    /// [`Unavailable`].
    ///
    /// # Panics
    /// If the id is of another kind or unknown: ids come from the same source.
    fn push_key(&self, id: TermId, key: &mut Vec<u8>) -> Result<(), Unavailable>;

    /// The id of the vertex or predicate (`literal` false) or dictionary literal (`literal`
    /// true) with this key.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn lookup(&self, key: &[u8], literal: bool) -> Result<Option<TermId>, Unavailable>;

    /// The order of its terms by their texts, as far as it is known now.
    fn text_order(&self) -> Option<Arc<dyn TextOrder>> {
        None
    }

    /// A number that a dictionary literal shares with those whose keys end alike from the border on,
    /// which tells datatype and language, if that is known without much work.
    fn end_number(&self, _id: TermId) -> Option<u8> {
        None
    }

    /// True if its terms are here, where to read them one by one costs little more than to read them together.
    fn is_here(&self) -> bool {
        true
    }

    /// Says that these terms are about to be read, perhaps one by one: a source whose terms are elsewhere has
    /// them sent here together, as many as it can keep.
    fn expect(&self, _ids: &[TermId]) {}

    /// Says that the ids of these keys are about to be looked for, perhaps one by one, as [`TermSource::expect`].
    fn expect_keys(&self, _keys: &Keys) {}

    /// Adds the keys of `ids` to `keys`, one for each, until these hold `most_bytes`, and gives
    /// how many it added: one at least, if there are ids. All are of kinds that
    /// [`TermSource::push_key`] takes.
    ///
    /// To be implemented where many keys together cost less than one by one.
    ///
    /// # Errors
    /// [`Unavailable`], where not even the first could be read.
    ///
    /// # Panics
    /// As [`TermSource::push_key`] does.
    fn push_keys(
        &self,
        ids: &[TermId],
        most_bytes: usize,
        keys: &mut Keys,
    ) -> Result<usize, Unavailable> {
        let mut key = Vec::new();
        for (done, id) in ids.iter().enumerate() {
            if done > 0 && keys.bytes() >= most_bytes {
                return Ok(done);
            }
            key.clear();
            match self.push_key(*id, &mut key) {
                Err(_) if done > 0 => return Ok(done),
                read => read?,
            }
            keys.push(&key, KeyKind::of(*id));
        }
        Ok(ids.len())
    }

    /// What [`TermSource::lookup`] gives for each of `keys`, appended to `ids`; `None` for what
    /// is no key.
    ///
    /// To be implemented where the loads of many keys can overlap.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn lookup_keys(&self, keys: &Keys, ids: &mut Vec<Option<TermId>>) -> Result<(), Unavailable> {
        let found = keys.iter().map(|(key, kind)| match kind {
            KeyKind::None => Ok(None),
            kind => self.lookup(key, kind == KeyKind::Literal),
        });
        ids.append(&mut found.collect::<Result<_, _>>()?);
        Ok(())
    }
}

/// What one node has of a dictionary that is dealt to nodes: the keys of the ids whose shards it holds, and for the
/// hashes of its shards which ids they may have. As with [`TermSource`], each call that reads may say that it cannot
/// answer now; what was appended before stays.
pub trait TermPart: Send + Sync {
    /// What its ids mean.
    fn epoch(&self) -> IdEpoch;

    /// As [`TermSource::has`].
    fn has(&self, id: TermId) -> bool;

    /// True if the key of a vertex or a dictionary literal is here.
    fn has_key(&self, id: TermId) -> bool;

    /// As [`TermSource::push_keys`], of terms whose keys are here.
    ///
    /// # Errors
    /// [`Unavailable`], where not even the first could be read.
    ///
    /// # Panics
    /// If a key is not here.
    fn push_keys(
        &self,
        ids: &[TermId],
        most_bytes: usize,
        keys: &mut Keys,
    ) -> Result<usize, Unavailable>;

    /// Appends the ids that the literal, or the node, whose key has a hash may have: its own, if there is such a
    /// term, and those of a few others. Whoever asks compares the keys.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn push_candidates(
        &self,
        hash: u64,
        literal: bool,
        ids: &mut Vec<TermId>,
    ) -> Result<(), Unavailable>;

    /// The id of the vertex with this key, if it is one of those that every node knows.
    fn find_name(&self, key: &[u8]) -> Option<TermId>;

    /// As [`TermSource::text_order`], of the terms of all nodes, if this one knows it without their keys.
    fn text_order(&self) -> Option<Arc<dyn TextOrder>> {
        None
    }
}

/// The order of a source's terms by their texts, as far as it was known when it was asked for. All
/// places that one gives are of one order; those of another one may be of another.
pub trait TextOrder: Send + Sync {
    /// Where a term lies, if that is known without much work.
    fn place(&self, id: TermId) -> Option<TextPlace>;

    /// Notes that so many texts were read because places do not tell their order.
    fn note_texts_read(&self, _texts: usize) {}

    /// True if so much was done for want of the order of more terms that [`TextOrder::extended`] is
    /// worth its cost.
    fn is_wanting(&self) -> bool {
        false
    }

    /// An order with more terms, which the source remembers. Calls `poll` now and then with the bytes
    /// held; `None` if that gave false, or if there is no such order.
    fn extended(&self, _poll: &mut dyn FnMut(usize) -> bool) -> Option<Arc<dyn TextOrder>> {
        None
    }
}

/// The order by which a query goes now: none if its source knows none.
#[derive(Clone, Default)]
pub(crate) struct QueryOrder {
    known: Option<Arc<dyn TextOrder>>,
    /// It was not extended when that was due: it stays as it is.
    is_final: bool,
}

impl std::fmt::Debug for QueryOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueryOrder")
            .field("is_known", &self.known.is_some())
            .field("is_final", &self.is_final)
            .finish()
    }
}

impl QueryOrder {
    /// As [`TextOrder::place`], of any term.
    #[inline]
    pub(crate) fn place(&self, id: TermId) -> Option<TextPlace> {
        match id.kind() {
            TermKind::Vertex | TermKind::Literal => self.known.as_ref()?.place(id),
            _ => None,
        }
    }

    /// As [`TextOrder::note_texts_read`].
    pub(crate) fn note_texts_read(&self, texts: usize) {
        if let Some(known) = &self.known {
            known.note_texts_read(texts);
        }
    }

    /// True if it is to be extended.
    pub(crate) fn is_wanting(&self) -> bool {
        !self.is_final && self.known.as_ref().is_some_and(|known| known.is_wanting())
    }

    /// True if places of both may be compared.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (&self.known, &other.known) {
            (Some(ours), Some(theirs)) => Arc::ptr_eq(ours, theirs),
            (ours, theirs) => ours.is_none() && theirs.is_none(),
        }
    }
}

/// Terms that one query computed and the store does not have.
///
/// Shared by the threads that run the query; ids are given in order of first sight.
#[derive(Default)]
pub struct ComputedTerms {
    table: Mutex<ComputedTable>,
    /// Bytes that expressions hold beside terms: compiled patterns, and long texts under way.
    beside: AtomicUsize,
}

/// Bytes that an expression holds beside terms; given back when this is dropped.
pub(crate) struct HeldBytes {
    terms: Arc<ComputedTerms>,
    bytes: usize,
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.terms.beside.fetch_sub(self.bytes, Relaxed);
    }
}

impl std::fmt::Debug for HeldBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HeldBytes({})", self.bytes)
    }
}

/// Bytes of a computed term beside its key: its entries, and the room that their tables keep free.
pub(crate) const TERM_BYTES: usize = 96;
/// Keys are kept together in pieces of this size; a longer one has a piece of its own.
const PIECE_BYTES: usize = 1 << 18;

/// Entries of a full block.
const BLOCK_ENTRIES: usize = 1 << 16;
/// So many terms are put into many tables, which grow one by one: no term waits, with the other
/// threads, until millions have moved.
const MANY_TERMS: usize = 1 << 18;
/// Tables of many terms.
const TABLES: usize = 256;
/// The bits of a hash that tell the table begin here: those that a table itself uses are others.
const TABLE_SHIFT: u32 = 40;

#[derive(Default)]
struct ComputedTable {
    /// Hash and number; none before the first term.
    index: Vec<HashTable<(u64, u32)>>,
    /// All but the last block are full.
    entries: Vec<Vec<Entry>>,
    len: usize,
    /// The bytes of keys. A piece is never moved, so that terms that come later cost no copies.
    pieces: Vec<Vec<u8>>,
    bytes: usize,
}

/// Where a computed term's key lies, and whether it is a literal's.
#[derive(Clone, Copy)]
struct Entry {
    piece: u32,
    literal: bool,
    start: usize,
    end: usize,
}

impl ComputedTable {
    /// A vertex and a literal never share a key: a literal's holds a zero byte.
    fn find(&self, hash: u64, key: &[u8]) -> Option<TermId> {
        let is_it = |entry: &(u64, u32)| entry.0 == hash && self.key(entry.1 as usize).0 == key;
        let table = self.index.get(self.table_of(hash))?;
        let found = table.find(hash, is_it);
        found.map(|(_, number)| computed_id(*number))
    }

    fn key(&self, number: usize) -> (&[u8], bool) {
        let entry = self.entries[number / BLOCK_ENTRIES][number % BLOCK_ENTRIES];
        let bytes = &self.pieces[entry.piece as usize][entry.start..entry.end];
        (bytes, entry.literal)
    }

    fn intern(&mut self, hash: u64, key: &[u8], literal: bool) -> TermId {
        if let Some(known) = self.find(hash, key) {
            return known;
        }
        let number = u32::try_from(self.len).expect("under 2^32 computed terms");
        let has_room = |piece: &Vec<u8>| piece.capacity() - piece.len() >= key.len();
        if !self.pieces.last().is_some_and(has_room) {
            let room = match self.len {
                // Few queries compute many terms.
                0..64 => 1 << 12,
                _ => PIECE_BYTES,
            };
            self.pieces.push(Vec::with_capacity(room.max(key.len())));
        }
        let at = self.pieces.len() - 1;
        let piece = &mut self.pieces[at];
        let start = piece.len();
        piece.extend_from_slice(key);
        let end = piece.len();
        self.push(Entry {
            piece: u32::try_from(at).expect("a piece holds a term at least"),
            literal,
            start,
            end,
        });
        self.bytes += key.len() + TERM_BYTES;
        match self.len {
            1 => self.index.push(HashTable::new()),
            MANY_TERMS => self.use_many_tables(),
            _ => {}
        }
        let table = self.table_of(hash);
        self.index[table].insert_unique(hash, (hash, number), |entry| entry.0);
        computed_id(number)
    }

    fn push(&mut self, entry: Entry) {
        if self.len.is_multiple_of(BLOCK_ENTRIES) {
            self.entries.push(Vec::new());
        }
        let last = self.entries.last_mut().expect("there is a block with room");
        last.push(entry);
        self.len += 1;
    }

    fn table_of(&self, hash: u64) -> usize {
        (hash >> TABLE_SHIFT) as usize & self.index.len().saturating_sub(1)
    }

    fn use_many_tables(&mut self) {
        let all = std::mem::take(&mut self.index);
        let room = 2 * MANY_TERMS / TABLES;
        self.index
            .resize_with(TABLES, || HashTable::with_capacity(room));
        for (hash, number) in all.into_iter().flatten() {
            let table = self.table_of(hash);
            self.index[table].insert_unique(hash, (hash, number), |entry| entry.0);
        }
    }
}

fn computed_id(number: u32) -> TermId {
    TermId::new(TermKind::Computed, u64::from(number))
}

fn hash_key(key: &[u8]) -> u64 {
    FxBuildHasher.hash_one(key)
}

impl ComputedTerms {
    /// Appends the key of a computed term and tells whether it is a literal.
    ///
    /// # Panics
    /// If the id is not one of this query's computed terms.
    pub fn push_key(&self, id: TermId, key: &mut Vec<u8>) -> bool {
        let table = self.lock();
        let (bytes, literal) = table.key(id.payload() as usize);
        key.extend_from_slice(bytes);
        literal
    }

    /// Bytes held, for the query's memory budget.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.lock().bytes + self.beside.load(Relaxed)
    }

    /// Bytes of the keys of some computed terms together.
    fn key_bytes(&self, ids: &[TermId]) -> usize {
        let table = self.lock();
        let of_key = |id: &TermId| table.key(id.payload() as usize).0.len();
        ids.iter().map(of_key).sum()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, ComputedTable> {
        self.table
            .lock()
            .expect("no thread panics while it holds the computed terms")
    }
}

/// Who says when a query must end, and whoever waits for terms of it with that.
pub(crate) trait WaitsUntil: Send + Sync {
    fn is_over(&self, terms: &Terms) -> bool;
}

impl<F: Fn(&Terms) -> bool + Send + Sync> WaitsUntil for F {
    fn is_over(&self, terms: &Terms) -> bool {
        self(terms)
    }
}

/// How a query waits for terms that are not there, and what it waited for in vain.
#[derive(Default)]
struct Waiting {
    is_over: RwLock<Option<Arc<dyn WaitsUntil>>>,
    lost: OnceLock<Unavailable>,
}

/// Both directions between ids and terms for one query.
///
/// A source that is not ready is waited for as long as the query may run ([`Terms::wait_until`]). A part of it
/// that is lost is an error of the call, and is remembered ([`Terms::lost`]): expressions have no values from
/// then on, and rows that were made since are not handed over.
#[derive(Clone)]
pub struct Terms {
    source: Arc<dyn TermSource>,
    computed: Arc<ComputedTerms>,
    /// Once somebody asked for it.
    order: Arc<RwLock<Option<QueryOrder>>>,
    waiting: Arc<Waiting>,
}

impl Terms {
    /// The terms of `source` and those that the query computes.
    #[must_use]
    pub fn new(source: Arc<dyn TermSource>) -> Self {
        Self {
            source,
            computed: Arc::default(),
            order: Arc::default(),
            waiting: Arc::default(),
        }
    }

    /// Has calls wait for a source that is not ready until `is_over` says that the query must end, instead of
    /// what it was before. Without it they do not wait.
    pub fn wait_until(&self, is_over: impl Fn(&Self) -> bool + Send + Sync + 'static) {
        self.wait_by(Arc::new(is_over));
    }

    /// As [`Terms::wait_until`].
    pub(crate) fn wait_by(&self, until: Arc<dyn WaitsUntil>) {
        let waiting = &self.waiting.is_over;
        *waiting.write().unwrap_or_else(PoisonError::into_inner) = Some(until);
    }

    /// Why a term could not be had, once that was so: the query must end. [`Unavailable::NotNow`] if it must end
    /// for something else, for which it waited no longer.
    #[must_use]
    pub fn lost(&self) -> Option<Unavailable> {
        self.waiting.lost.get().copied()
    }

    /// Makes a call of the source until it is answered, or the query must end.
    #[inline]
    fn ask<T>(&self, mut call: impl FnMut() -> Result<T, Unavailable>) -> Result<T, Unavailable> {
        if let Some(why) = self.lost() {
            return Err(why);
        }
        match call() {
            Ok(answer) => Ok(answer),
            Err(why) => self.ask_again(why, &mut call),
        }
    }

    #[cold]
    fn ask_again<T>(
        &self,
        mut why: Unavailable,
        call: &mut dyn FnMut() -> Result<T, Unavailable>,
    ) -> Result<T, Unavailable> {
        while why == Unavailable::NotNow && self.is_over() == Some(false) {
            thread::yield_now();
            match call() {
                Ok(answer) => return Ok(answer),
                Err(again) => why = again,
            }
        }
        Err(*self.waiting.lost.get_or_init(|| why))
    }

    /// Whether the query must end; none where nobody said when that is so.
    pub(crate) fn is_over(&self) -> Option<bool> {
        let is_over = &self.waiting.is_over;
        let is_over = is_over.read().unwrap_or_else(PoisonError::into_inner);
        let is_over = is_over.clone()?;
        Some(is_over.is_over(self))
    }

    /// The terms of the same source, of which none is computed yet: what a part of the query
    /// begins with that runs elsewhere.
    #[must_use]
    pub fn without_computed(&self) -> Self {
        Self {
            waiting: Arc::clone(&self.waiting),
            ..Self::new(Arc::clone(&self.source))
        }
    }

    /// What the ids of the source mean.
    #[must_use]
    pub fn epoch(&self) -> IdEpoch {
        self.source.epoch()
    }

    /// True if an id stands for a term here without being a computed one's, or for none.
    pub(crate) fn has(&self, id: TermId) -> bool {
        match id.kind() {
            TermKind::Vertex | TermKind::Literal => self.source.has(id),
            TermKind::Computed => false,
            _ => id.is_none() || inline::is_valid(id),
        }
    }

    /// Bytes of the keys of some computed terms together.
    ///
    /// # Panics
    /// If they are of another query.
    pub(crate) fn computed_key_bytes(&self, ids: &[TermId]) -> usize {
        self.computed.key_bytes(ids)
    }

    /// Bytes that the query's own terms take, and what its expressions hold beside them.
    #[must_use]
    pub fn computed_bytes(&self) -> usize {
        self.computed.bytes()
    }

    /// Counts bytes among those of the query's own terms until the result is dropped.
    pub(crate) fn hold(&self, bytes: usize) -> HeldBytes {
        self.computed.beside.fetch_add(bytes, Relaxed);
        HeldBytes {
            terms: Arc::clone(&self.computed),
            bytes,
        }
    }

    /// Appends the key of any term but an inline one to `key`; tells whether it is a literal's.
    ///
    /// # Errors
    /// Why it cannot be read; [`Unavailable::NotNow`] if it was not there before the query had to end.
    ///
    /// # Panics
    /// If the id is `NONE`, inline or of another query.
    pub fn push_key(&self, id: TermId, key: &mut Vec<u8>) -> Result<bool, Unavailable> {
        match id.kind() {
            TermKind::Computed => Ok(self.computed.push_key(id, key)),
            kind => {
                self.ask(|| self.source.push_key(id, key))?;
                Ok(kind == TermKind::Literal)
            }
        }
    }

    /// Calls `visit` with the place and the key of each of these terms, and whether it is a
    /// literal's.
    ///
    /// # Errors
    /// As [`Terms::push_key`]; some were visited then.
    ///
    /// # Panics
    /// As [`Terms::push_key`].
    pub(crate) fn for_each_key(
        &self,
        ids: &[TermId],
        visit: &mut dyn FnMut(usize, &[u8], bool),
    ) -> Result<(), Unavailable> {
        let mut keys = Keys::default();
        let mut begin = 0;
        while begin < ids.len() {
            keys.clear();
            let added = self.push_keys(&ids[begin..], KEY_BYTES_AT_ONCE, &mut keys)?;
            for (place, (key, kind)) in keys.iter().enumerate() {
                visit(begin + place, key, kind == KeyKind::Literal);
            }
            begin += added;
        }
        Ok(())
    }

    /// As [`TermSource::expect`], of ids of all kinds.
    #[inline]
    pub(crate) fn expect(&self, ids: impl Iterator<Item = TermId>) {
        if !self.source.is_here() {
            let stored = ids.filter(|id| matches!(id.kind(), TermKind::Vertex | TermKind::Literal));
            self.source.expect(&stored.collect::<Vec<_>>());
        }
    }

    /// True if all are here, where to look for them one by one costs little more than to do so together.
    #[inline]
    #[must_use]
    pub fn are_here(&self) -> bool {
        self.source.is_here()
    }

    /// As [`TermSource::expect_keys`].
    pub fn expect_keys(&self, keys: &Keys) {
        self.source.expect_keys(keys);
    }

    /// The order by which the query goes now.
    pub(crate) fn text_order(&self) -> QueryOrder {
        let known = self.order.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*known {
            return known.clone();
        }
        drop(known);
        let mut order = self.order.write().unwrap_or_else(PoisonError::into_inner);
        let new = || QueryOrder {
            known: self.source.text_order(),
            is_final: false,
        };
        order.get_or_insert_with(new).clone()
    }

    /// The order by which the query goes from now on, instead of one that is wanting. Where `poll`
    /// gives false, or the source has no other one, that stays.
    pub(crate) fn extend_order(&self, poll: &mut dyn FnMut(usize) -> bool) -> QueryOrder {
        let before = self.text_order();
        let extended = match &before.known {
            Some(known) if before.is_wanting() => known.extended(poll),
            _ => return before,
        };
        let next = QueryOrder {
            is_final: extended.is_none(),
            known: extended.or(before.known),
        };
        let mut order = self.order.write().unwrap_or_else(PoisonError::into_inner);
        order.insert(next).clone()
    }

    /// As [`TermSource::end_number`], of any term.
    #[inline]
    pub(crate) fn end_number(&self, id: TermId) -> Option<u8> {
        match id.kind() {
            TermKind::Literal => self.source.end_number(id),
            _ => None,
        }
    }

    /// Adds the keys of `ids` to `keys`, one for each, until these hold `most_bytes`, and gives
    /// how many it added: one at least, if there are ids. The keys of inline ids and of
    /// [`TermId::NONE`] are empty.
    ///
    /// # Errors
    /// As [`Terms::push_key`]: keys of the first ids may have been added.
    ///
    /// # Panics
    /// If an id is of another query.
    pub fn push_keys(
        &self,
        ids: &[TermId],
        most_bytes: usize,
        keys: &mut Keys,
    ) -> Result<usize, Unavailable> {
        let stored = |id: &TermId| matches!(id.kind(), TermKind::Vertex | TermKind::Literal);
        let mut done = 0;
        while done < ids.len() && (done == 0 || keys.bytes() < most_bytes) {
            let run = ids[done..].iter().take_while(|id| stored(id)).count();
            if run > 0 {
                let stored = &ids[done..done + run];
                let added = self.ask(|| self.source.push_keys(stored, most_bytes, keys))?;
                done += added;
                if added < run {
                    break;
                }
                continue;
            }
            let id = ids[done];
            keys.push_with(|bytes| match id.kind() {
                TermKind::Computed if self.computed.push_key(id, bytes) => KeyKind::Literal,
                TermKind::Computed => KeyKind::Node,
                _ => KeyKind::None,
            });
            done += 1;
        }
        Ok(done)
    }

    /// Appends the id of each term with one of these keys, none of which fits inline;
    /// [`TermId::NONE`] for what is no key.
    ///
    /// # Errors
    /// Why the dictionary cannot be asked, as [`Terms::push_key`]; then nothing is appended.
    pub fn intern_keys(&self, keys: &Keys, ids: &mut Vec<TermId>) -> Result<(), Unavailable> {
        let first = ids.len();
        let hashes: Vec<u64> = keys.iter().map(|(key, _)| hash_key(key)).collect();
        // A term that was computed before is none of the store's: no need to look there.
        let (mut new, mut places) = (Keys::default(), Vec::new());
        let table = self.computed.lock();
        for (place, (key, kind)) in keys.iter().enumerate() {
            let known = match kind {
                KeyKind::None => Some(TermId::NONE),
                _ => table.find(hashes[place], key),
            };
            if known.is_none() {
                new.push(key, kind);
                places.push(place);
            }
            ids.push(known.unwrap_or(TermId::NONE));
        }
        drop(table);
        if new.is_empty() {
            return Ok(());
        }
        let mut stored = Vec::with_capacity(new.len());
        if let Err(why) = self.ask(|| self.source.lookup_keys(&new, &mut stored)) {
            ids.truncate(first);
            return Err(why);
        }
        let mut table = self.computed.lock();
        for ((place, id), (key, kind)) in places.into_iter().zip(stored).zip(new.iter()) {
            let literal = kind == KeyKind::Literal;
            ids[first + place] = id.unwrap_or_else(|| table.intern(hashes[place], key, literal));
        }
        Ok(())
    }

    /// The id of a literal: inline where it fits, else the dictionary's, else the query's own.
    ///
    /// # Errors
    /// As [`Terms::intern_keys`].
    pub fn intern_literal(&self, literal: &Literal) -> Result<TermId, Unavailable> {
        if let Some(id) = inline_id(literal.as_ref()) {
            return Ok(id);
        }
        let mut key = Vec::new();
        key::push_literal(&mut key, literal.as_ref());
        self.intern_key(&key, true)
    }

    /// The id of any term.
    ///
    /// # Errors
    /// As [`Terms::intern_keys`].
    pub fn intern(&self, term: TermRef<'_>) -> Result<TermId, Unavailable> {
        if let TermRef::Literal(literal) = term {
            return self.intern_literal(&literal.into_owned());
        }
        let mut key = Vec::new();
        key::push_term(&mut key, term);
        self.intern_key(&key, false)
    }

    /// The id of the term with this key, which is not one that fits inline.
    ///
    /// # Errors
    /// As [`Terms::intern_keys`].
    pub fn intern_key(&self, key: &[u8], literal: bool) -> Result<TermId, Unavailable> {
        let stored = self.ask(|| self.source.lookup(key, literal))?;
        let own = || self.computed.lock().intern(hash_key(key), key, literal);
        Ok(stored.unwrap_or_else(own))
    }

    /// The id of a blank node that was made up for this query, and that no dictionary has: none is asked.
    #[must_use]
    pub fn intern_fresh(&self, node: BlankNodeRef<'_>) -> TermId {
        let mut key = Vec::new();
        key::push_term(&mut key, node.into());
        self.computed.lock().intern(hash_key(&key), &key, false)
    }

    /// Appends the id of each of these terms, [`TermId::NONE`] for none.
    ///
    /// # Errors
    /// As [`Terms::intern_keys`].
    pub fn intern_all<'t>(
        &self,
        terms: impl Iterator<Item = Option<TermRef<'t>>>,
        ids: &mut Vec<TermId>,
    ) -> Result<(), Unavailable> {
        let (first, mut places) = (ids.len(), Vec::new());
        let (mut keys, mut key) = (Keys::default(), Vec::new());
        for term in terms {
            let known = match term {
                None => Some(TermId::NONE),
                Some(TermRef::Literal(literal)) => inline_id(literal),
                Some(_) => None,
            };
            if let (None, Some(term)) = (known, term) {
                key.clear();
                let literal = key::push_term(&mut key, term);
                keys.push(&key, KeyKind::of_term(literal));
                places.push(ids.len());
            }
            ids.push(known.unwrap_or(TermId::NONE));
        }
        let mut found = Vec::with_capacity(keys.len());
        if let Err(why) = self.intern_keys(&keys, &mut found) {
            ids.truncate(first);
            return Err(why);
        }
        for (place, id) in places.into_iter().zip(found) {
            ids[place] = id;
        }
        Ok(())
    }

    /// The term of an id; `None` for [`TermId::NONE`].
    ///
    /// # Errors
    /// As [`Terms::push_key`].
    ///
    /// # Panics
    /// If the id is of another query, or the dictionary holds bytes that are no term (its
    /// checksums were right, so that is our own mistake).
    pub fn term(&self, id: TermId) -> Result<Option<Term>, Unavailable> {
        if id.is_none() || id.is_inline() {
            return Ok(inline_term(id));
        }
        let mut bytes = Vec::new();
        let literal = self.push_key(id, &mut bytes)?;
        Ok(Some(term_of(&bytes, literal)))
    }

    /// The term of each of these ids, as [`Terms::term`] gives it, appended to `terms`; read together.
    ///
    /// # Errors
    /// As [`Terms::push_key`]; then nothing is appended.
    ///
    /// # Panics
    /// As [`Terms::term`].
    pub fn terms_of(
        &self,
        ids: &[TermId],
        terms: &mut Vec<Option<Term>>,
    ) -> Result<(), Unavailable> {
        let is_stored = |id: &&TermId| !id.is_none() && !id.is_inline();
        let stored: Vec<TermId> = ids.iter().filter(is_stored).copied().collect();
        let mut read = Vec::with_capacity(stored.len());
        self.for_each_key(&stored, &mut |_, key, literal| {
            read.push(term_of(key, literal));
        })?;
        let mut read = read.into_iter();
        terms.extend(ids.iter().map(|id| match is_stored(&id) {
            true => read.next(),
            false => inline_term(*id),
        }));
        Ok(())
    }
}

/// The term that an id holds; `None` for [`TermId::NONE`].
fn inline_term(id: TermId) -> Option<Term> {
    if id.is_none() {
        return None;
    }
    let mut lexical = String::new();
    let datatype = inline::datatype(id).filter(|_| inline::decode_lexical(id, &mut lexical));
    let datatype = datatype.expect("the id was made by encoding a literal");
    Some(Literal::new_typed_literal(lexical, datatype).into())
}

/// The id of a literal that fits into one.
fn inline_id(literal: LiteralRef<'_>) -> Option<TermId> {
    match literal.language() {
        None => inline::encode(literal.value(), literal.datatype().as_str()),
        Some(_) => None,
    }
}

/// The term of a key.
fn term_of(key: &[u8], literal: bool) -> Term {
    let term = match literal {
        true => key::literal(key).map(Term::from),
        false => key::vertex(key),
    };
    term.expect("the dictionary holds keys of terms")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use jindou_model::ShardId;

    use super::*;

    /// Terms of a node that first is not ready, and then is lost or answers.
    struct Elsewhere {
        late: AtomicU32,
        then: Result<(), Unavailable>,
        calls: AtomicU32,
    }

    impl Elsewhere {
        fn ready_after(late: u32, then: Result<(), Unavailable>) -> Arc<Self> {
            Arc::new(Self {
                late: late.into(),
                then,
                calls: AtomicU32::new(0),
            })
        }

        fn answer(&self) -> Result<(), Unavailable> {
            self.calls.fetch_add(1, Relaxed);
            let late = |left: u32| left.checked_sub(1);
            match self.late.fetch_update(Relaxed, Relaxed, late) {
                Ok(_) => Err(Unavailable::NotNow),
                Err(_) => self.then,
            }
        }
    }

    impl TermSource for Elsewhere {
        fn epoch(&self) -> IdEpoch {
            IdEpoch(1)
        }

        fn has(&self, _: TermId) -> bool {
            true
        }

        fn push_key(&self, id: TermId, key: &mut Vec<u8>) -> Result<(), Unavailable> {
            self.answer()?;
            key.extend(format!("http://e/{}", id.number()).bytes());
            Ok(())
        }

        fn lookup(&self, key: &[u8], _: bool) -> Result<Option<TermId>, Unavailable> {
            self.answer()?;
            Ok((key == b"http://e/7").then(|| TermId::vertex(7)))
        }
    }

    const LOST: Unavailable = Unavailable::Never(ShardId(3));

    #[test]
    fn terms_that_are_not_ready_are_waited_for() {
        let terms = Terms::new(Elsewhere::ready_after(3, Ok(())));
        terms.wait_until(|_| false);
        let mut keys = Keys::default();
        let ids = [TermId::vertex(1), TermId::NONE, TermId::vertex(2)];
        assert_eq!(terms.push_keys(&ids, usize::MAX, &mut keys), Ok(3));
        assert_eq!(keys.get(0).0, b"http://e/1");
        assert_eq!(keys.get(2).0, b"http://e/2");
        assert_eq!(terms.lost(), None);
    }

    #[test]
    fn who_waits_for_terms_ends_with_its_query() {
        let source = Elsewhere::ready_after(u32::MAX, Ok(()));
        let terms = Terms::new(source.clone());
        let looks = AtomicU32::new(0);
        terms.wait_until(move |_| looks.fetch_add(1, Relaxed) == 4);
        let key = b"http://e/7";
        assert_eq!(terms.intern_key(key, false), Err(Unavailable::NotNow));
        assert_eq!(terms.lost(), Some(Unavailable::NotNow));
        let calls = source.calls.load(Relaxed);
        assert_eq!(calls, 5);
        // Whatever is asked after that is not asked elsewhere.
        assert_eq!(terms.intern_key(key, false), Err(Unavailable::NotNow));
        assert_eq!(source.calls.load(Relaxed), calls);
    }

    #[test]
    fn a_lost_part_of_the_dictionary_is_named_and_what_the_query_has_itself_stays() {
        let source = Elsewhere::ready_after(0, Ok(()));
        let here = Terms::new(source);
        let own = here.intern_key(b"http://e/8", false).unwrap();
        assert_eq!(own.kind(), TermKind::Computed);
        let mut known = vec![own];
        let terms = Terms {
            source: Elsewhere::ready_after(1, Err(LOST)),
            ..here.clone()
        };
        terms.wait_until(|_| false);
        let mut keys = Keys::default();
        for key in [&b"http://e/8"[..], b"http://e/9"] {
            keys.push(key, KeyKind::Node);
        }
        assert_eq!(terms.intern_keys(&keys, &mut known), Err(LOST));
        assert_eq!(known, [own], "nothing was appended");
        assert_eq!(terms.lost(), Some(LOST));
        let read = terms.term(own).unwrap().map(|term| term.to_string());
        assert_eq!(read.as_deref(), Some("<http://e/8>"));
        let mut read = Vec::new();
        assert_eq!(
            terms.terms_of(&[own, TermId::vertex(1)], &mut read),
            Err(LOST)
        );
        assert_eq!(read, []);
    }

    #[test]
    fn terms_get_their_ids_together_as_one_by_one() {
        let terms = Terms::new(Elsewhere::ready_after(0, Ok(())));
        let some: Vec<Option<Term>> = ["7", "8", "7"]
            .map(|name| oxrdf::NamedNode::new_unchecked(format!("http://e/{name}")).into())
            .into_iter()
            .chain([
                Literal::from(12).into(),
                Literal::new_simple_literal("a").into(),
                oxrdf::BlankNode::new_unchecked("b").into(),
            ])
            .map(Some)
            .chain([None])
            .collect();
        let mut ids = Vec::new();
        let refs = some.iter().map(|term| term.as_ref().map(Term::as_ref));
        terms.intern_all(refs, &mut ids).unwrap();
        assert_eq!(ids[0], TermId::vertex(7));
        assert_eq!(ids[6], TermId::NONE);
        for (term, id) in some.iter().zip(&ids) {
            let alone = term
                .as_ref()
                .map(|term| terms.intern(term.as_ref()).unwrap());
            assert_eq!(alone.unwrap_or(TermId::NONE), *id, "{term:?}");
        }
        let mut read = Vec::new();
        terms.terms_of(&ids, &mut read).unwrap();
        assert_eq!(read, some);
    }

    #[test]
    fn computed_terms_keep_their_numbers_while_they_become_many() {
        let mut table = ComputedTable::default();
        let key = |number: usize| format!("http://e/{number}").into_bytes();
        let count = MANY_TERMS + MANY_TERMS / 8;
        assert_eq!(table.find(hash_key(b""), b""), None);
        for number in 0..count {
            let key = key(number);
            let id = table.intern(hash_key(&key), &key, false);
            assert_eq!(id, computed_id(number as u32));
        }
        for number in (0..count).step_by(7) {
            let key = key(number);
            assert_eq!(
                table.intern(hash_key(&key), &key, false),
                computed_id(number as u32)
            );
            assert_eq!(table.key(number), (key.as_slice(), false));
        }
        let absent = key(count);
        assert_eq!(table.find(hash_key(&absent), &absent), None);
        assert_eq!(table.len, count);
    }
}
