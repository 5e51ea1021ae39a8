//! What a continuous query found at an instant, as text that outlives all ids.

use std::sync::Arc;

use oxrdf::{BlankNode, GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term};
use rustc_hash::FxHashMap;

use super::bytes::{BadRecord, Input, put_bytes, put_number};
use crate::results::TermText;
use crate::{EngineError, QueryResults, TermId};

/// What a query found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// Of SELECT: rows of as many terms as there are variables.
    Solutions {
        /// The variables, without their question marks.
        variables: Arc<[String]>,
        /// A cell for each variable.
        rows: Rows,
    },
    /// Of ASK.
    Boolean(bool),
    /// Of CONSTRUCT and DESCRIBE: rows of subject, predicate and object.
    Triples(Rows),
}

impl Answer {
    /// Reads all results of a query.
    pub(crate) fn read(results: QueryResults) -> Result<Self, EngineError> {
        Ok(match results {
            QueryResults::Boolean(value) => Self::Boolean(value),
            QueryResults::Solutions(mut solutions) => {
                let mut rows = Rows::new(solutions.variables().len());
                while let Some(batch) = solutions.next_batch()? {
                    let columns: Vec<&[TermId]> = batch.columns().collect();
                    let mut decoder = solutions.decoder();
                    for row in 0..batch.rows() {
                        rows.push(columns.iter(), |column, put| put(decoder.text(column[row])));
                    }
                }
                Self::Solutions {
                    variables: solutions.variables().into(),
                    rows,
                }
            }
            QueryResults::Graph(mut graph) => {
                let mut rows = Rows::new(3);
                while let Some(batch) = graph.next_batch()? {
                    let mut decoder = graph.decoder();
                    for triple in &batch {
                        rows.push(triple.iter(), |id, put| put(decoder.text(*id)));
                    }
                }
                Self::Triples(rows)
            }
        })
    }

    /// Splits the results of one execution among `queries` queries: the first `columns` columns are the
    /// answer, and `whose` maps the values of the others to the numbers of the queries that get the row.
    pub(crate) fn read_together<'w>(
        results: QueryResults,
        (queries, columns): (usize, usize),
        whose: impl Fn(&[TermId]) -> Option<&'w Vec<u32>>,
    ) -> Result<Vec<Self>, EngineError> {
        let mut all = vec![Rows::new(columns); queries];
        let QueryResults::Solutions(mut solutions) = results else {
            unreachable!("queries that are evaluated together are SELECT");
        };
        let variables: Arc<[String]> = solutions.variables()[..columns].into();
        let mut by = Vec::new();
        let mut row = Rows::new(columns);
        while let Some(batch) = solutions.next_batch()? {
            let ids: Vec<&[TermId]> = batch.columns().collect();
            let mut decoder = solutions.decoder();
            for number in 0..batch.rows() {
                by.clear();
                by.extend(ids[columns..].iter().map(|column| column[number]));
                row.clear();
                row.push(ids[..columns].iter(), |column, put| {
                    put(decoder.text(column[number]))
                });
                for query in whose(&by).into_iter().flatten() {
                    all[*query as usize].push_row(&row.bytes);
                }
            }
        }
        let answer = |rows| Self::Solutions {
            variables: Arc::clone(&variables),
            rows,
        };
        Ok(all.into_iter().map(answer).collect())
    }

    /// The rows, if it has some.
    #[must_use]
    pub fn rows(&self) -> Option<&Rows> {
        match self {
            Self::Solutions { rows, .. } | Self::Triples(rows) => Some(rows),
            Self::Boolean(_) => None,
        }
    }

    /// Appends bytes from which [`Answer::decode`] makes the same.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Solutions { variables, rows } => {
                out.push(SOLUTIONS);
                put_number(out, variables.len() as u64);
                variables
                    .iter()
                    .for_each(|name| put_bytes(out, name.as_bytes()));
                rows.encode(out);
            }
            Self::Boolean(value) => out.extend([BOOLEAN, u8::from(*value)]),
            Self::Triples(rows) => {
                out.push(TRIPLES);
                rows.encode(out);
            }
        }
    }

    /// # Errors
    /// [`BadRecord`] for bytes that are no answer.
    pub(super) fn decode(input: &mut Input<'_>) -> Result<Self, BadRecord> {
        Ok(match input.byte()? {
            SOLUTIONS => {
                let count = input.count()?;
                let variables = (0..count).map(|_| input.text().map(str::to_owned));
                let variables: Arc<[String]> = variables.collect::<Result<_, _>>()?;
                let rows = Rows::decode(variables.len(), input)?;
                Self::Solutions { variables, rows }
            }
            BOOLEAN => Self::Boolean(input.flag()?),
            TRIPLES => Self::Triples(Rows::decode(3, input)?),
            _ => return Err(BadRecord("an answer is of no known kind")),
        })
    }

    /// The same with other rows.
    pub(crate) fn with_rows(&self, new: Rows) -> Self {
        match self {
            Self::Solutions { variables, .. } => Self::Solutions {
                variables: Arc::clone(variables),
                rows: new,
            },
            Self::Triples(_) => Self::Triples(new),
            Self::Boolean(value) => Self::Boolean(*value),
        }
    }
}

/// Rows of terms, some of which are unbound.
///
/// A row is bytes in which each cell says how long it is, so that equal rows are equal bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    columns: usize,
    bytes: Vec<u8>,
    /// Where each row ends.
    ends: Vec<usize>,
}

/// What an answer is.
const SOLUTIONS: u8 = 0;
const BOOLEAN: u8 = 1;
const TRIPLES: u8 = 2;

/// What a cell is.
const UNBOUND: u8 = 0;
const IRI: u8 = 1;
const BLANK: u8 = 2;
const STRING: u8 = 3;
const TAGGED: u8 = 4;
const TYPED: u8 = 5;

impl Rows {
    fn new(columns: usize) -> Self {
        Self {
            columns,
            ..Self::default()
        }
    }

    /// Adds a row of what `cell` puts for each item.
    fn push<T>(
        &mut self,
        items: impl Iterator<Item = T>,
        mut cell: impl FnMut(T, &mut dyn FnMut(Option<TermText<'_>>)),
    ) {
        let bytes = &mut self.bytes;
        for item in items {
            cell(item, &mut |text| push_cell(bytes, text));
        }
        self.ends.push(self.bytes.len());
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn push_row(&mut self, row: &[u8]) {
        self.bytes.extend_from_slice(row);
        self.ends.push(self.bytes.len());
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_number(out, self.len() as u64);
        let mut end = 0;
        for next in &self.ends {
            put_number(out, (next - end) as u64);
            end = *next;
        }
        put_bytes(out, &self.bytes);
    }

    fn decode(columns: usize, input: &mut Input<'_>) -> Result<Self, BadRecord> {
        const BAD: BadRecord = BadRecord("a row of an answer is not whole");
        let count = input.count()?;
        let mut rows = Self::new(columns);
        rows.ends.reserve(count);
        let mut end = 0_usize;
        for _ in 0..count {
            end = end.checked_add(input.number()? as usize).ok_or(BAD)?;
            rows.ends.push(end);
        }
        rows.bytes = input.bytes()?.to_vec();
        if end != rows.bytes.len() {
            return Err(BAD);
        }
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
        self.ends.len()
    }

    /// True without rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes that they take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len() + size_of_val::<[usize]>(&self.ends)
    }

    fn each(&self) -> impl Iterator<Item = &[u8]> {
        let begins = std::iter::once(&0).chain(&self.ends);
        begins
            .zip(&self.ends)
            .map(|(begin, end)| &self.bytes[*begin..*end])
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
        let mut kept = Self::new(self.columns);
        for row in self.each() {
            match left.get_mut(row).filter(|count| **count > 0) {
                Some(count) => *count -= 1,
                None => kept.push_row(row),
            }
        }
        kept
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
impl Answer {
    /// Solutions that are IRIs.
    pub(super) fn of_iris(variables: &[&str], solutions: &[&[Option<&str>]]) -> Self {
        let mut rows = Rows::new(variables.len());
        for row in solutions {
            rows.push(row.iter(), |cell, put| put(cell.map(TermText::Iri)));
        }
        Self::Solutions {
            variables: variables.iter().map(|name| (*name).to_owned()).collect(),
            rows,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(lists: &[&[Option<TermText<'_>>]]) -> Rows {
        let mut rows = Rows::new(lists.first().map_or(0, |row| row.len()));
        for row in lists {
            rows.push(row.iter(), |cell, put| put(*cell));
        }
        rows
    }

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
        let all = rows(&[&one, &other]);
        let read: Vec<_> = all.iter().collect();
        assert_eq!(read, [one.to_vec(), other.to_vec()]);
        assert_eq!(rows(&[&[], &[]]).len(), 2);
    }

    #[test]
    fn differences_count_repeated_rows() {
        let iri = |iri| Some(TermText::Iri(iri));
        let (a, b, c) = ([iri("a")], [iri("b")], [iri("c")]);
        let now = rows(&[&a, &b, &a, &a]);
        let before = rows(&[&c, &a]);
        assert_eq!(now.without(&before), rows(&[&b, &a, &a]));
        assert_eq!(before.without(&now), rows(&[&c]));
    }
}
