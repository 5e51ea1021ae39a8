//! How are expressions evaluated for many rows, with the terms' keys fetched together?

use std::hash::BuildHasher as _;

use jindou_model::{TermId, TermKind};
use jindou_plan::physical::Var;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::compile::Program;
use super::numeric::Number;
use super::row::BatchRow;
use super::strings::Text;
use super::text_test::{TextTest, Told};
use super::{Columns, Context, ExprError, Value};
use crate::{KeyKind, Keys};

/// Rows whose keys are fetched together, and bytes of these that end a batch early: they stay in
/// the second-level cache.
const KEYED_ROWS: usize = 512;
const KEYED_BYTES: usize = 1 << 17;
/// How many results are remembered for each costly part of an expression.
const REMEMBERED: usize = 1 << 16;
/// After so many rows it is seen whether remembering pays: for one row in four at least.
const WATCHED_ROWS: usize = 1 << 13;
const PAYS_FOR: usize = 4;
/// For how many rows nothing is remembered where it did not pay; each time that it did not again,
/// for twice as many.
const PAUSED_ROWS: std::ops::RangeInclusive<usize> = WATCHED_ROWS..=1 << 18;

/// Buffers of one thread.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// By the program's texts.
    keys: Vec<Keys>,
    ids: Vec<TermId>,
    /// Texts that are to get their ids together, and their places among the results.
    results: Keys,
    places: Vec<usize>,
    recent: RecentTexts,
    /// A text in another case.
    cased: Vec<u8>,
}

/// The ids of short texts that came lately: functions like LANG and SUBSTR give few different ones.
#[derive(Debug, Default)]
struct RecentTexts {
    slots: Vec<RecentText>,
}

#[derive(Clone, Copy, Debug)]
struct RecentText {
    len: u8,
    bytes: [u8; RecentTexts::LONGEST],
    id: TermId,
}

impl RecentTexts {
    const SLOTS: usize = 64;
    const LONGEST: usize = 23;

    /// The slot of a text, if it may have one.
    fn slot(text: &Text<'_>) -> Option<usize> {
        if text.language.is_some() || text.value.len() > Self::LONGEST {
            return None;
        }
        let hash = FxBuildHasher.hash_one(&*text.value);
        Some((hash >> 32) as usize % Self::SLOTS)
    }

    fn find(&self, slot: usize, text: &[u8]) -> Option<TermId> {
        let recent = self.slots.get(slot)?;
        let known = &recent.bytes[..usize::from(recent.len)];
        (!recent.id.is_none() && known == text).then_some(recent.id)
    }

    fn keep(&mut self, slot: usize, text: &[u8], id: TermId) {
        let empty = RecentText {
            len: 0,
            bytes: [0; Self::LONGEST],
            id: TermId::NONE,
        };
        if self.slots.is_empty() {
            self.slots.resize(Self::SLOTS, empty);
        }
        let recent = &mut self.slots[slot];
        *recent = RecentText {
            len: text.len() as u8,
            id,
            ..empty
        };
        recent.bytes[..text.len()].copy_from_slice(text);
    }
}

impl Scratch {
    /// Appends for each row the id of the value, [`TermId::NONE`] on an error.
    pub(super) fn ids(
        &mut self,
        program: &Program,
        columns: &dyn Columns,
        rows: &[u32],
        cx: &Context,
        out: &mut Vec<TermId>,
    ) {
        let code = &program.code;
        if code.gives_number() {
            let id = |number: Number| Value::from(number).into_id(cx.terms());
            self.for_each(program, columns, rows, cx, |row| {
                let id = code.number(row, cx).and_then(id);
                out.push(id.unwrap_or(TermId::NONE));
            });
            return;
        }
        if !code.gives_text() {
            self.for_each(program, columns, rows, cx, |row| out.push(code.id(row, cx)));
            return;
        }
        let mut texts = NewTexts {
            keys: std::mem::take(&mut self.results),
            places: std::mem::take(&mut self.places),
            recent: std::mem::take(&mut self.recent),
        };
        self.for_each(program, columns, rows, cx, |row| match code.text(row, cx) {
            Ok(text) => texts.push(&text, cx, out),
            Err(_) => out.push(TermId::NONE),
        });
        texts.intern(cx, out);
        self.results = texts.keys;
        self.places = texts.places;
        self.recent = texts.recent;
    }

    /// Appends for each row whether the effective boolean value is true.
    pub(super) fn booleans(
        &mut self,
        program: &Program,
        columns: &dyn Columns,
        rows: &[u32],
        cx: &Context,
        out: &mut Vec<bool>,
    ) {
        let code = &program.code;
        self.for_each(program, columns, rows, cx, |row| {
            out.push(code.boolean(row, cx) == Ok(true));
        });
    }

    /// Appends for each row whether a test of a text is `wanted` and so: `slowly` tells where a
    /// term's key does not.
    pub(super) fn tested(
        &mut self,
        (test, wanted): (&TextTest, bool),
        columns: &dyn Columns,
        rows: &[u32],
        cx: &Context,
        slowly: &dyn Fn(TermId) -> bool,
        out: &mut Vec<bool>,
    ) {
        self.keys.resize_with(self.keys.len().max(1), Keys::default);
        let mut rest = rows;
        while !rest.is_empty() {
            let fetched = self.fetch(&[test.var], columns, rest, cx);
            let counted = fetched.and_then(|count| {
                cx.count_text(self.keys[0].bytes())?;
                Ok(count)
            });
            let Ok(count) = counted else {
                out.resize(out.len() + rest.len(), false);
                return;
            };
            let keys = self.keys[0].iter().zip(&self.ids);
            let cased = &mut self.cased;
            out.extend(
                keys.map(|((key, kind), id)| match test.told(key, kind, cased) {
                    Told::Holds(holds) => holds == wanted,
                    Told::Error => false,
                    Told::Nothing => slowly(*id),
                }),
            );
            rest = &rest[count..];
        }
    }

    /// Calls `visit` for each row, with the keys of its texts at hand; where they cannot be read, no row after it
    /// has values.
    fn for_each(
        &mut self,
        program: &Program,
        columns: &dyn Columns,
        rows: &[u32],
        cx: &Context,
        mut visit: impl FnMut(&BatchRow<'_>),
    ) {
        let texts = &*program.texts;
        for var in &program.values {
            // Values of literals may be read; nodes are compared by their ids.
            let ids = columns.column(*var).into_iter();
            let ids = ids.flat_map(|column| rows.iter().map(|row| column[*row as usize]));
            let is_literal = |id: &TermId| id.kind() == TermKind::Literal;
            cx.terms().expect(ids.filter(is_literal));
        }
        self.keys.resize_with(texts.len(), Keys::default);
        let mut rest = rows;
        while !rest.is_empty() {
            // Without them each row meets by itself what it lacks.
            let (texts, count) = match self.fetch(texts, columns, rest, cx) {
                Ok(count) => (texts, count),
                Err(_) => (&texts[..0], rest.len()),
            };
            let (batch, after) = rest.split_at(count);
            for (place, row) in batch.iter().enumerate() {
                visit(&BatchRow {
                    columns,
                    row: *row as usize,
                    texts,
                    keys: &self.keys,
                    place,
                });
            }
            rest = after;
        }
    }

    /// Fetches the keys of the first of `rows`; gives of how many.
    fn fetch(
        &mut self,
        texts: &[Var],
        columns: &dyn Columns,
        rows: &[u32],
        cx: &Context,
    ) -> Result<usize, ExprError> {
        if texts.is_empty() {
            return Ok(rows.len());
        }
        let mut count = rows.len().min(KEYED_ROWS);
        for (var, keys) in texts.iter().zip(&mut self.keys) {
            keys.clear();
            self.ids.clear();
            let rows = &rows[..count];
            match columns.column(*var) {
                Some(column) => self
                    .ids
                    .extend(rows.iter().map(|row| column[*row as usize])),
                None => self.ids.resize(count, TermId::NONE),
            }
            count = cx.terms().push_keys(&self.ids, KEYED_BYTES, keys)?;
        }
        Ok(count)
    }

    pub(super) fn bytes(&self) -> usize {
        self.keys.iter().map(Keys::held_bytes).sum::<usize>()
            + self.results.held_bytes()
            + self.ids.capacity() * size_of::<TermId>()
            + self.places.capacity() * size_of::<usize>()
            + self.recent.slots.capacity() * size_of::<RecentText>()
    }
}

/// What follows from the datatypes and languages of terms alone, found once for each.
pub(super) fn of_ends<T: Copy>(
    ids: impl Iterator<Item = TermId> + Clone,
    cx: &Context,
    find: impl Fn(TermId) -> T,
) -> impl Iterator<Item = T> {
    cx.terms().expect(ids.clone());
    let mut known = [None; 1 << u8::BITS];
    ids.map(move |id| match cx.terms().end_number(id) {
        None => find(id),
        Some(number) => *known[usize::from(number)].get_or_insert_with(|| find(id)),
    })
}

/// Texts that were computed, on their way to ids.
struct NewTexts {
    keys: Keys,
    places: Vec<usize>,
    recent: RecentTexts,
}

impl NewTexts {
    /// Appends the id of a text, or [`TermId::NONE`] until many get theirs together.
    fn push(&mut self, text: &Text<'_>, cx: &Context, out: &mut Vec<TermId>) {
        let slot = RecentTexts::slot(text);
        let recent = slot.and_then(|slot| self.recent.find(slot, &text.value));
        out.push(recent.unwrap_or(TermId::NONE));
        if recent.is_some() {
            return;
        }
        self.places.push(out.len() - 1);
        self.keys.push_with(|key| {
            text.push_key(key);
            KeyKind::Literal
        });
        if self.keys.len() >= KEYED_ROWS || self.keys.bytes() >= KEYED_BYTES {
            self.intern(cx, out);
        }
    }

    /// Puts the ids of the texts to their places.
    fn intern(&mut self, cx: &Context, out: &mut [TermId]) {
        let mut ids = Vec::with_capacity(self.keys.len());
        if cx.terms().intern_keys(&self.keys, &mut ids).is_err() {
            // They have no ids, and the query ends.
            self.places.clear();
        }
        for (number, (id, place)) in ids.iter().zip(self.places.drain(..)).enumerate() {
            out[place] = *id;
            let text = Text::of_key(self.keys.get(number).0);
            if let Some(text) = text
                && let Some(slot) = RecentTexts::slot(&text)
            {
                self.recent.keep(slot, &text.value, *id);
            }
        }
        self.keys.clear();
    }
}

/// Results by the value of the one variable on which they depend.
///
/// Where most values are distinct, remembering costs more than it saves: then it pauses.
#[derive(Debug)]
pub(super) struct Memory<T> {
    known: FxHashMap<TermId, T>,
    /// Rows since it was last seen whether this pays, and those of them that were known.
    watched: usize,
    hits: usize,
    /// Rows for which nothing is remembered from now on, and the next time that it does not pay.
    paused: usize,
    next_pause: usize,
    /// Rows of a batch that are not known, and their places in it.
    unknown: Vec<u32>,
    places: Vec<u32>,
}

impl<T> Default for Memory<T> {
    fn default() -> Self {
        Self {
            known: FxHashMap::default(),
            watched: 0,
            hits: 0,
            paused: 0,
            next_pause: *PAUSED_ROWS.start(),
            unknown: Vec::new(),
            places: Vec::new(),
        }
    }
}

impl<T: Copy + Default> Memory<T> {
    /// Appends the result of each row, whose variable has the column `column`: the remembered
    /// one, or what `evaluate` appends for rows.
    pub(super) fn answer(
        &mut self,
        column: Option<&[TermId]>,
        rows: &[u32],
        evaluate: &mut dyn FnMut(&[u32], &mut Vec<T>),
        out: &mut Vec<T>,
    ) {
        if self.paused > 0 {
            self.paused = self.paused.saturating_sub(rows.len());
            return evaluate(rows, out);
        }
        for rows in rows.chunks(KEYED_ROWS) {
            self.answer_batch(column, rows, evaluate, out);
        }
    }

    fn answer_batch(
        &mut self,
        column: Option<&[TermId]>,
        rows: &[u32],
        evaluate: &mut dyn FnMut(&[u32], &mut Vec<T>),
        out: &mut Vec<T>,
    ) {
        let id_of = |row: u32| column.map_or(TermId::NONE, |column| column[row as usize]);
        self.unknown.clear();
        self.places.clear();
        for row in rows {
            let known = self.known.get(&id_of(*row));
            if known.is_none() {
                self.unknown.push(*row);
                self.places.push(out.len() as u32);
            }
            out.push(known.copied().unwrap_or_default());
        }
        self.watched += rows.len();
        self.hits += rows.len() - self.unknown.len();
        if !self.unknown.is_empty() {
            let mut results = Vec::with_capacity(self.unknown.len());
            evaluate(&self.unknown, &mut results);
            if self.known.len() + results.len() > REMEMBERED {
                self.known.clear();
            }
            for ((row, place), result) in self.unknown.iter().zip(&self.places).zip(results) {
                out[*place as usize] = result;
                self.known.insert(id_of(*row), result);
            }
        }
        if self.watched >= WATCHED_ROWS {
            if self.hits < self.watched / PAYS_FOR {
                self.paused = self.next_pause;
                self.next_pause = (2 * self.next_pause).min(*PAUSED_ROWS.end());
            } else {
                self.next_pause = *PAUSED_ROWS.start();
            }
            self.watched = 0;
            self.hits = 0;
        }
    }

    /// Bytes held, about.
    pub(super) fn bytes(&self) -> usize {
        // With a byte of the table itself for each entry.
        self.known.capacity() * (size_of::<(TermId, T)>() + 1)
            + (self.unknown.capacity() + self.places.capacity()) * size_of::<u32>()
    }
}
