//! Tuples that wait: text that takes few bytes, until they get their ids.

use std::convert::Infallible;
use std::ops::RangeBounds;

use jindou_ingest::QuadSink;
use jindou_model::{TermId, inline, key};
use oxrdf::{LiteralRef, NamedOrBlankNodeRef, QuadRef, TermRef};

use super::bytes::{BadRecord, Input, put_bytes, put_number, put_signed};
use crate::gather::inline_id;

/// Tuples with their times, each as the keys of its terms.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tuples {
    times: Vec<i64>,
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
    /// Documents up to this number have given names to blank nodes; 0 without any.
    scope: u64,
}

/// A tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TupleKeys<'a> {
    pub(crate) subject: &'a [u8],
    /// An IRI.
    pub(crate) predicate: &'a str,
    pub(crate) object: ObjectKey<'a>,
}

/// An object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectKey<'a> {
    /// A literal that is held in its id.
    Inline(TermId),
    /// The key of an IRI or a blank node.
    Node(&'a [u8]),
    /// The key of a literal.
    Literal(&'a [u8]),
}

const INLINE: u8 = 0;
const NODE: u8 = 1;
const LITERAL: u8 = 2;

impl Tuples {
    pub(super) fn len(&self) -> usize {
        self.times.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// About what they take as a batch.
    pub(super) fn size(&self) -> u64 {
        match self.is_empty() {
            true => 0,
            false => (self.bytes.len() + self.len() * TUPLE_BYTES as usize) as u64 + BATCH_BYTES,
        }
    }

    pub(super) fn push(&mut self, time_ms: i64, quad: QuadRef<'_>) {
        let bytes = &mut self.bytes;
        push_text(bytes, |bytes| {
            key::push_term(bytes, subject(quad));
        });
        push_text(bytes, |bytes| {
            bytes.extend_from_slice(quad.predicate.as_str().as_bytes())
        });
        if let Some(id) = inline_id(quad.object) {
            bytes.push(INLINE);
            bytes.extend_from_slice(&id.raw().to_le_bytes());
        } else {
            let kind = bytes.len();
            bytes.push(NODE);
            if key::push_term(bytes, quad.object) {
                bytes[kind] = LITERAL;
            }
        }
        self.times.push(time_ms);
        self.ends.push(self.bytes.len());
    }

    /// How many documents have numbers once its blank nodes are called by that of their own.
    pub(super) fn scope(&self) -> u64 {
        self.scope
    }

    pub(super) fn set_scope(&mut self, scope: u64) {
        self.scope = scope;
    }

    /// Adds a tuple of these keys.
    pub(super) fn push_keys(&mut self, time_ms: i64, tuple: TupleKeys<'_>) {
        let bytes = &mut self.bytes;
        push_text(bytes, |bytes| bytes.extend_from_slice(tuple.subject));
        let predicate = tuple.predicate.as_bytes();
        push_text(bytes, |bytes| bytes.extend_from_slice(predicate));
        let raw;
        let (kind, object): (u8, &[u8]) = match tuple.object {
            ObjectKey::Inline(id) => {
                raw = id.raw().to_le_bytes();
                (INLINE, &raw)
            }
            ObjectKey::Node(key) => (NODE, key),
            ObjectKey::Literal(key) => (LITERAL, key),
        };
        bytes.push(kind);
        bytes.extend_from_slice(object);
        self.times.push(time_ms);
        self.ends.push(self.bytes.len());
    }

    /// Appends bytes from which [`Tuples::decode`] makes the same.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_number(out, self.scope);
        put_number(out, self.len() as u64);
        let (mut time, mut end) = (0_i64, 0);
        for (next, next_end) in self.times.iter().zip(&self.ends) {
            put_signed(out, next.wrapping_sub(time));
            put_number(out, (next_end - end) as u64);
            (time, end) = (*next, *next_end);
        }
        put_bytes(out, &self.bytes);
    }

    /// # Errors
    /// [`BadRecord`] for bytes of which the terms of tuples cannot be read.
    pub(super) fn decode(input: &mut Input<'_>) -> Result<Self, BadRecord> {
        let scope = input.number()?;
        let count = input.count()?;
        let mut tuples = Self {
            scope,
            times: Vec::with_capacity(count),
            ends: Vec::with_capacity(count),
            ..Self::default()
        };
        let (mut time, mut end) = (0_i64, 0_usize);
        for _ in 0..count {
            time = time.wrapping_add(input.signed()?);
            let length = input.number()? as usize;
            end = end.checked_add(length).ok_or(BAD_TUPLE)?;
            tuples.times.push(time);
            tuples.ends.push(end);
        }
        tuples.bytes = input.bytes()?.to_vec();
        if end != tuples.bytes.len() {
            return Err(BAD_TUPLE);
        }
        (0..count).try_for_each(|tuple| check(tuples.bytes_of(tuple)))?;
        Ok(tuples)
    }

    /// Moves the times by as much as is given for each, in order.
    pub(super) fn set_times(&mut self, times: Vec<i64>) {
        debug_assert_eq!(times.len(), self.times.len());
        self.times = times;
    }

    /// Sets the time of some.
    pub(super) fn set_time(&mut self, tuples: impl RangeBounds<usize>, time_ms: i64) {
        let bounds = (tuples.start_bound().cloned(), tuples.end_bound().cloned());
        self.times[bounds].fill(time_ms);
    }

    /// Takes away all from one on.
    pub(super) fn truncate(&mut self, len: usize) {
        self.times.truncate(len);
        self.ends.truncate(len);
        self.bytes.truncate(self.ends.last().copied().unwrap_or(0));
    }

    pub(super) fn times(&self) -> &[i64] {
        &self.times
    }

    fn bytes_of(&self, tuple: usize) -> &[u8] {
        let begin = tuple.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[begin..self.ends[tuple]]
    }

    /// Adds one of other tuples.
    pub(super) fn copy(&mut self, from: &Self, tuple: usize) {
        self.bytes.extend_from_slice(from.bytes_of(tuple));
        self.scope = self.scope.max(from.scope);
        self.times.push(from.times[tuple]);
        self.ends.push(self.bytes.len());
    }

    /// About what one takes.
    pub(super) fn size_of(&self, tuple: usize) -> u64 {
        self.bytes_of(tuple).len() as u64 + TUPLE_BYTES
    }

    pub(super) fn get(&self, tuple: usize) -> TupleKeys<'_> {
        let mut rest = self.bytes_of(tuple);
        let subject = take_text(&mut rest);
        let predicate = std::str::from_utf8(take_text(&mut rest)).expect("it was a text");
        let (kind, rest) = rest.split_first().expect(KEPT);
        TupleKeys {
            subject,
            predicate,
            object: match *kind {
                INLINE => {
                    let raw = rest.try_into().expect(KEPT);
                    ObjectKey::Inline(TermId::from_raw(u64::from_le_bytes(raw)))
                }
                NODE => ObjectKey::Node(rest),
                _ => ObjectKey::Literal(rest),
            },
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (i64, TupleKeys<'_>)> {
        (0..self.len()).map(|tuple| (self.times[tuple], self.get(tuple)))
    }
}

/// What a batch takes beside its tuples: its place among others, and room for tuples to come.
pub(super) const BATCH_BYTES: u64 = 256;
/// What a tuple takes beside its terms.
const TUPLE_BYTES: u64 = (size_of::<i64>() + size_of::<usize>()) as u64;

const BAD_TUPLE: BadRecord = BadRecord("a tuple is not whole");

/// Refuses bytes of which [`Tuples::get`] would make no tuple.
fn check(bytes: &[u8]) -> Result<(), BadRecord> {
    let mut input = Input(bytes);
    let mut text = || {
        let length = input.take(4)?.try_into().map_err(|_| BAD_TUPLE)?;
        input.take(u32::from_le_bytes(length) as usize)
    };
    let (subject, predicate) = (text()?, text()?);
    let is_text = |bytes: &[u8]| std::str::from_utf8(bytes).is_ok();
    let (kind, object) = (input.byte()?, input.0);
    let is_sound = match kind {
        INLINE => {
            let raw = object.try_into().map_err(|_| BAD_TUPLE)?;
            TermId::from_raw(u64::from_le_bytes(raw)).is_inline()
        }
        NODE => is_text(object),
        LITERAL => key::literal_parts(object).is_some(),
        _ => false,
    };
    match is_sound && is_text(subject) && is_text(predicate) {
        true => Ok(()),
        false => Err(BAD_TUPLE),
    }
}

const KEPT: &str = "a tuple is kept whole";

fn subject(quad: QuadRef<'_>) -> TermRef<'_> {
    match quad.subject {
        NamedOrBlankNodeRef::NamedNode(node) => node.into(),
        NamedOrBlankNodeRef::BlankNode(node) => node.into(),
    }
}

fn push_text(bytes: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let begin = bytes.len();
    bytes.extend_from_slice(&[0; 4]);
    write(bytes);
    let length = u32::try_from(bytes.len() - begin - 4).expect("parsers take shorter terms");
    bytes[begin..begin + 4].copy_from_slice(&length.to_le_bytes());
}

fn take_text<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let (length, after) = rest.split_first_chunk().expect(KEPT);
    let (text, after) = after.split_at(u32::from_le_bytes(*length) as usize);
    *rest = after;
    text
}

impl QuadSink for Tuples {
    type Error = Infallible;

    fn quad(&mut self, quad: QuadRef<'_>) -> Result<(), Infallible> {
        self.push(0, quad);
        Ok(())
    }
}

impl TupleKeys<'_> {
    /// The statement in the syntax of N-Triples, without its dot.
    pub(super) fn text(self) -> String {
        let node = |key: &[u8]| key::vertex(key).map(|term| term.to_string());
        let object = match self.object {
            ObjectKey::Inline(id) => {
                let mut lexical = String::new();
                let is_whole = inline::decode_lexical(id, &mut lexical);
                let datatype = inline::datatype(id).filter(|_| is_whole);
                datatype
                    .map(|datatype| LiteralRef::new_typed_literal(&lexical, datatype).to_string())
            }
            ObjectKey::Node(key) => node(key),
            ObjectKey::Literal(key) => key::literal(key).map(|literal| literal.to_string()),
        };
        let subject = node(self.subject).unwrap_or_default();
        format!(
            "{subject} <{}> {}",
            self.predicate,
            object.unwrap_or_default()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxrdf::vocab::xsd;
    use oxrdf::{BlankNode, GraphName, Literal, NamedNode, Quad, Term};

    #[test]
    fn tuples_are_read_as_they_were_pushed() {
        let node = NamedNode::new_unchecked;
        let objects: [Term; 6] = [
            node("http://e/o").into(),
            BlankNode::new_unchecked("b").into(),
            Literal::new_typed_literal("1", xsd::INTEGER).into(),
            Literal::new_typed_literal("01", xsd::INTEGER).into(),
            Literal::new_simple_literal("").into(),
            Literal::new_language_tagged_literal_unchecked("x", "en").into(),
        ];
        let quad = |object: &Term| {
            let graph = GraphName::DefaultGraph;
            Quad::new(
                node("http://e/s"),
                node("http://e/p"),
                object.clone(),
                graph,
            )
        };
        let mut all = Tuples::default();
        for (time, object) in (0..).zip(&objects) {
            all.push(time, quad(object).as_ref());
        }
        let mut some = Tuples::default();
        [3, 2].into_iter().for_each(|tuple| some.copy(&all, tuple));
        let texts: Vec<(i64, String)> =
            all.iter().map(|(time, keys)| (time, keys.text())).collect();
        for (time, object) in (0..).zip(&objects) {
            let text = format!("<http://e/s> <http://e/p> {object}");
            assert_eq!(texts[time as usize], (time, text));
        }
        let of_some: Vec<_> = some
            .iter()
            .map(|(time, keys)| (time, keys.text()))
            .collect();
        assert_eq!(of_some, [texts[3].clone(), texts[2].clone()]);
        let mut same = Tuples::default();
        all.iter()
            .for_each(|(time, keys)| same.push_keys(time, keys));
        assert_eq!(same, all);
        let sizes: u64 = (0..all.len()).map(|tuple| all.size_of(tuple)).sum();
        assert_eq!(all.size(), sizes + BATCH_BYTES);
        assert_eq!(Tuples::default().size(), 0);
    }
}
