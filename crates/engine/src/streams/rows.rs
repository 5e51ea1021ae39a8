//! Rows of terms as bytes that outlive all ids: what has a row, and which are equal?

use std::sync::Arc;

use oxrdf::{BlankNode, GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term};
use rustc_hash::FxHashMap;

use super::bytes::{BadRecord, Input, put_bytes, put_number};
use crate::results::TermText;

/// Rows of terms, some of which are unbound.
///
/// A row is bytes in which each cell says how long it is, so that equal rows are equal bytes.
/// A clone shares them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    columns: usize,
    body: Arc<Body>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Body {
    bytes: Vec<u8>,
    /// Where each row ends.
    ends: Vec<usize>,
}

/// Makes [`Rows`], cell by cell.
#[derive(Clone)]
pub(super) struct RowsBuilder {
    columns: usize,
    body: Body,
}

/// What a cell is.
const UNBOUND: u8 = 0;
const IRI: u8 = 1;
const BLANK: u8 = 2;
const STRING: u8 = 3;
const TAGGED: u8 = 4;
const TYPED: u8 = 5;

impl Rows {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_number(out, self.len() as u64);
        let mut end = 0;
        for next in &self.body.ends {
            put_number(out, (next - end) as u64);
            end = *next;
        }
        put_bytes(out, &self.body.bytes);
    }

    pub(super) fn decode(columns: usize, input: &mut Input<'_>) -> Result<Self, BadRecord> {
        const BAD: BadRecord = BadRecord("a row of an answer is not whole");
        let count = input.count()?;
        let mut rows = RowsBuilder::new(columns);
        rows.body.ends.reserve(count);
        let mut end = 0_usize;
        for _ in 0..count {
            end = end.checked_add(input.number()? as usize).ok_or(BAD)?;
            rows.body.ends.push(end);
        }
        rows.body.bytes = input.bytes()?.to_vec();
        if end != rows.body.bytes.len() {
            return Err(BAD);
        }
        let rows = rows.build();
        for row in rows.each() {
            let mut row = Input(row);
            (0..columns).try_for_each(|_| check_cell(&mut row))?;
            row.end()?;
        }
        Ok(rows)
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.body.ends.len()
    }

    /// True without rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.body.ends.is_empty()
    }

    /// Bytes that they take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.body.bytes.len() + size_of_val::<[usize]>(&self.body.ends)
    }

    fn each(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|number| self.body.row(number))
    }

    /// The bytes of a row.
    pub(super) fn row(&self, number: usize) -> &[u8] {
        self.body.row(number)
    }

    /// The cells of each row, `None` where nothing is bound.
    pub fn iter(&self) -> impl Iterator<Item = Vec<Option<TermText<'_>>>> {
        self.each().map(|row| {
            let mut cells = Vec::with_capacity(self.columns);
            let mut rest = row;
            while !rest.is_empty() {
                cells.push(take_cell(&mut rest));
            }
            cells
        })
    }

    /// Rows of three cells as triples; what is none is left out.
    pub(super) fn triples(&self) -> impl Iterator<Item = Quad> {
        self.iter().filter_map(|cells| {
            let [subject, predicate, object] = cells.try_into().ok()?;
            let subject = match subject? {
                TermText::Iri(iri) => NamedNode::new_unchecked(iri).into(),
                TermText::Blank(label) => NamedOrBlankNode::from(BlankNode::new_unchecked(label)),
                TermText::Literal { .. } => return None,
            };
            let TermText::Iri(predicate) = predicate? else {
                return None;
            };
            let predicate = NamedNode::new_unchecked(predicate);
            let object = owned(object?);
            Some(Quad::new(
                subject,
                predicate,
                object,
                GraphName::DefaultGraph,
            ))
        })
    }

    /// The rows that another answer does not have, as multisets: of a row that comes three times here
    /// and once there, two.
    pub(crate) fn without(&self, others: &Self) -> Self {
        let mut left: FxHashMap<&[u8], usize> = FxHashMap::default();
        for row in others.each() {
            *left.entry(row).or_default() += 1;
        }
        let mut kept = RowsBuilder::new(self.columns);
        for row in self.each() {
            match left.get_mut(row).filter(|count| **count > 0) {
                Some(count) => *count -= 1,
                None => kept.push_row(row),
            }
        }
        kept.build()
    }
}

impl Body {
    fn row(&self, number: usize) -> &[u8] {
        let begin = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[begin..self.ends[number]]
    }
}

impl RowsBuilder {
    pub(super) fn new(columns: usize) -> Self {
        Self {
            columns,
            body: Body::default(),
        }
    }

    /// With room for as much as other rows have.
    pub(super) fn for_about(columns: usize, others: Option<&Rows>) -> Self {
        let (bytes, ends) = others.map_or((0, 0), |others| {
            (others.body.bytes.len(), others.body.ends.len())
        });
        Self {
            columns,
            body: Body {
                bytes: Vec::with_capacity(bytes),
                ends: Vec::with_capacity(ends),
            },
        }
    }

    /// Adds a cell to the row that is being made.
    pub(super) fn push_cell(&mut self, text: Option<TermText<'_>>) {
        push_cell(&mut self.body.bytes, text);
    }

    /// Ends the row, all cells of which are there.
    pub(super) fn end_row(&mut self) {
        self.body.ends.push(self.body.bytes.len());
    }

    /// Adds a row of these bytes.
    pub(super) fn push_row(&mut self, row: &[u8]) {
        self.body.bytes.extend_from_slice(row);
        self.end_row();
    }

    /// The bytes of a row.
    pub(super) fn row(&self, number: usize) -> &[u8] {
        self.body.row(number)
    }

    /// Bytes that they take so far, with what is there for more.
    pub(super) fn bytes(&self) -> usize {
        self.body.bytes.capacity() + self.body.ends.capacity() * size_of::<usize>()
    }

    /// Bytes of the rows so far.
    pub(super) fn row_bytes(&self) -> usize {
        self.body.bytes.len() + size_of_val::<[usize]>(&self.body.ends)
    }

    pub(super) fn build(self) -> Rows {
        Rows {
            columns: self.columns,
            body: Arc::new(self.body),
        }
    }
}

fn owned(text: TermText<'_>) -> Term {
    match text {
        TermText::Iri(iri) => NamedNode::new_unchecked(iri).into(),
        TermText::Blank(label) => BlankNode::new_unchecked(label).into(),
        TermText::Literal {
            value,
            language: Some(tag),
            ..
        } => Literal::new_language_tagged_literal_unchecked(value, tag).into(),
        TermText::Literal {
            value, datatype, ..
        } => match datatype {
            None => Literal::new_simple_literal(value).into(),
            Some(iri) => Literal::new_typed_literal(value, NamedNode::new_unchecked(iri)).into(),
        },
    }
}

fn push_cell(bytes: &mut Vec<u8>, text: Option<TermText<'_>>) {
    let (kind, value, more) = match text {
        None => return bytes.push(UNBOUND),
        Some(TermText::Iri(iri)) => (IRI, iri, None),
        Some(TermText::Blank(label)) => (BLANK, label, None),
        Some(TermText::Literal {
            value,
            language: Some(tag),
            ..
        }) => (TAGGED, value, Some(tag)),
        Some(TermText::Literal {
            value, datatype, ..
        }) => match datatype {
            None => (STRING, value, None),
            Some(datatype) => (TYPED, value, Some(datatype)),
        },
    };
    bytes.push(kind);
    push_text(bytes, value);
    if let Some(more) = more {
        push_text(bytes, more);
    }
}

fn push_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

/// Refuses bytes of which [`take_cell`] would make no cell.
fn check_cell(row: &mut Input<'_>) -> Result<(), BadRecord> {
    let texts = match row.byte()? {
        UNBOUND => 0,
        IRI | BLANK | STRING => 1,
        TAGGED | TYPED => 2,
        _ => return Err(BadRecord("a cell of an answer is of no known kind")),
    };
    for _ in 0..texts {
        let mut length = [0; 4];
        length.copy_from_slice(row.take(4)?);
        let text = row.take(u32::from_le_bytes(length) as usize)?;
        if std::str::from_utf8(text).is_err() {
            return Err(BadRecord("a cell of an answer is no text"));
        }
    }
    Ok(())
}

fn take_cell<'a>(rest: &mut &'a [u8]) -> Option<TermText<'a>> {
    let kind = rest[0];
    *rest = &rest[1..];
    Some(match kind {
        UNBOUND => return None,
        IRI => TermText::Iri(take_text(rest)),
        BLANK => TermText::Blank(take_text(rest)),
        kind => {
            let value = take_text(rest);
            let (language, datatype) = match kind {
                STRING => (None, None),
                TAGGED => (Some(take_text(rest)), None),
                _ => (None, Some(take_text(rest))),
            };
            TermText::Literal {
                value,
                language,
                datatype,
            }
        }
    })
}

fn take_text<'a>(rest: &mut &'a [u8]) -> &'a str {
    let (length, after) = rest.split_first_chunk().expect("a text has its length");
    let (text, after) = after.split_at(u32::from_le_bytes(*length) as usize);
    *rest = after;
    std::str::from_utf8(text).expect("it was written from a text")
}

#[cfg(test)]
pub(super) fn rows_of(lists: &[&[Option<TermText<'_>>]]) -> Rows {
    let mut rows = RowsBuilder::new(lists.first().map_or(0, |row| row.len()));
    for row in lists {
        row.iter().for_each(|cell| rows.push_cell(*cell));
        rows.end_row();
    }
    rows.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_read_back() {
        let typed = |language, datatype| {
            Some(TermText::Literal {
                value: "1",
                language,
                datatype,
            })
        };
        let one = [
            None,
            Some(TermText::Iri("http://e/a")),
            Some(TermText::Blank("b")),
            typed(None, None),
            typed(Some("en"), None),
            typed(None, Some("http://e/t")),
        ];
        let other = [
            typed(None, None),
            None,
            None,
            None,
            None,
            Some(TermText::Iri("")),
        ];
        let all = rows_of(&[&one, &other]);
        let read: Vec<_> = all.iter().collect();
        assert_eq!(read, [one.to_vec(), other.to_vec()]);
        assert_eq!(rows_of(&[&[], &[]]).len(), 2);
    }

    #[test]
    fn differences_count_repeated_rows() {
        let iri = |iri| Some(TermText::Iri(iri));
        let (a, b, c) = ([iri("a")], [iri("b")], [iri("c")]);
        let now = rows_of(&[&a, &b, &a, &a]);
        let before = rows_of(&[&c, &a]);
        assert_eq!(now.without(&before), rows_of(&[&b, &a, &a]));
        assert_eq!(before.without(&now), rows_of(&[&c]));
    }
}
