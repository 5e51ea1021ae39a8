//! What a continuous query found at an instant, as text that outlives all ids.

use std::sync::Arc;

use super::bytes::{BadRecord, Input, put_bytes, put_number};
use super::held::LEAST_BYTES;
use super::rows::{Rows, RowsBuilder};
use super::written::{Writing, Written};
use crate::query::Running;
use crate::{EngineError, QueryResults, TermId};

/// What an answer is.
const SOLUTIONS: u8 = 0;
const BOOLEAN: u8 = 1;
const TRIPLES: u8 = 2;

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

/// What an answer takes while it is read: counted in the memory of its query until that ends, and bounded.
pub(super) struct Reading {
    /// What the rows of an answer may have: more would be kept for no reader.
    pub(super) most_bytes: u64,
    charged: usize,
}

impl Reading {
    /// Of answers that may have so many bytes each.
    pub(super) fn within(most_bytes: u64) -> Self {
        Self {
            most_bytes,
            charged: 0,
        }
    }

    /// Counts `bytes` in all of a query, and checks that an answer may have as many as `rows`.
    fn hold(&mut self, running: &Running, bytes: usize, rows: usize) -> Result<(), EngineError> {
        if rows as u64 > self.most_bytes {
            let limit_bytes = self.most_bytes;
            return Err(EngineError::ResultTooLarge { limit_bytes });
        }
        let more = bytes.saturating_sub(self.charged);
        self.charged += more;
        Ok(running.execution.context().charge(more)?)
    }
}

impl Answer {
    /// Reads all results of a query. Rows that `before` has are not written again; what is read is there
    /// for the next time.
    ///
    /// # Errors
    /// [`EngineError::ResultTooLarge`], and what ends the query.
    pub(super) fn read(
        results: QueryResults,
        before: &mut Option<Written>,
        mut reading: Reading,
    ) -> Result<Self, EngineError> {
        Ok(match results {
            QueryResults::Boolean(value) => Self::Boolean(value),
            QueryResults::Solutions(mut solutions) => {
                let columns = solutions.variables().len();
                let mut writing = Writing::new(before.take(), (columns, columns));
                while let Some(batch) = solutions.next_batch()? {
                    let columns: Vec<&[TermId]> = batch.columns().collect();
                    let mut decoder = solutions.decoder();
                    for row in 0..batch.rows() {
                        let ids = columns.iter().map(|column| column[row]);
                        writing.row(ids, |rows, id| rows.push_cell(decoder.text(id)));
                    }
                    drop(decoder);
                    reading.hold(solutions.running(), writing.bytes(), writing.row_bytes())?;
                }
                Self::Solutions {
                    variables: solutions.variables().into(),
                    rows: writing.end(before),
                }
            }
            QueryResults::Graph(mut graph) => {
                let mut writing = Writing::new(before.take(), (3, 3));
                while let Some(batch) = graph.next_batch()? {
                    let mut decoder = graph.decoder();
                    for triple in &batch {
                        let ids = triple.iter().copied();
                        writing.row(ids, |rows, id| rows.push_cell(decoder.text(id)));
                    }
                    drop(decoder);
                    reading.hold(graph.running(), writing.bytes(), writing.row_bytes())?;
                }
                Self::Triples(writing.end(before))
            }
        })
    }

    /// Splits the results of one execution among `queries` queries: the first `columns` columns are the
    /// answer, and `whose` maps the values of the others to the numbers of the queries that get the row.
    /// `before` is as in [`Answer::read`].
    ///
    /// # Errors
    /// As there; where all answers together are too large, for all.
    pub(super) fn read_together<'w>(
        results: QueryResults,
        (queries, columns): (usize, usize),
        whose: impl Fn(&[TermId]) -> Option<&'w Vec<u32>>,
        before: &mut Option<Written>,
        mut reading: Reading,
    ) -> Result<Vec<Self>, EngineError> {
        let (mut bytes, mut row_bytes) = (0, 0);
        let mut all = vec![RowsBuilder::new(columns); queries];
        let QueryResults::Solutions(mut solutions) = results else {
            unreachable!("queries that are evaluated together are SELECT");
        };
        let variables: Arc<[String]> = solutions.variables()[..columns].into();
        let width = solutions.variables().len();
        let mut writing = Writing::new(before.take(), (width, columns));
        while let Some(batch) = solutions.next_batch()? {
            let ids: Vec<&[TermId]> = batch.columns().collect();
            let mut decoder = solutions.decoder();
            for number in 0..batch.rows() {
                let row = ids.iter().map(|column| column[number]);
                let (row, written) = writing.row(row, |rows, id| rows.push_cell(decoder.text(id)));
                for query in whose(&row[columns..]).into_iter().flatten() {
                    let rows = &mut all[*query as usize];
                    bytes -= rows.bytes();
                    rows.push_row(written);
                    bytes += rows.bytes();
                    row_bytes += written.len() + size_of::<usize>();
                }
            }
            drop(decoder);
            // Of small answers, that many are kept however much all take.
            let kept = queries * LEAST_BYTES as usize;
            let beyond = row_bytes.saturating_sub(kept);
            reading.hold(solutions.running(), writing.bytes() + bytes, beyond)?;
        }
        writing.end(before);
        let answer = |rows: RowsBuilder| Self::Solutions {
            variables: Arc::clone(&variables),
            rows: rows.build(),
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

#[cfg(test)]
impl Answer {
    /// Solutions that are IRIs.
    pub(super) fn of_iris(variables: &[&str], solutions: &[&[Option<&str>]]) -> Self {
        let mut rows = RowsBuilder::new(variables.len());
        for row in solutions {
            let iris = row
                .iter()
                .map(|cell| cell.map(crate::results::TermText::Iri));
            iris.for_each(|cell| rows.push_cell(cell));
            rows.end_row();
        }
        Self::Solutions {
            variables: variables.iter().map(|name| (*name).to_owned()).collect(),
            rows: rows.build(),
        }
    }
}
