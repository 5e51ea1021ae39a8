//! How do the results of a continuous query become one Arrow IPC stream?
//!
//! Each result is a record batch, or several where it is large, and without rows where it is empty. Its rows
//! have the columns of a single query's, and some more that say which result they are of. Columns are the same
//! for all of a query's results, so that its schema is known before the first one.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, UInt64Array};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::columns::{Column, Shape};
use super::{ResultsError, TermText};
use crate::{AnswerForm, ContinuousResult, Rows};

/// Bytes of the terms of a batch, after which it is full: the result goes on in the next one.
const BATCH_BYTES: usize = 128 << 10;
/// The longest row.
const LONGEST_ROW_BYTES: usize = 256 << 10;

const INSTANT: &str = "_instant";
const SEQUENCE: &str = "_sequence";
const SNAPSHOT: &str = "_snapshot";
const REMOVED: &str = "_removed";
const MISSED: &str = "_missed";
const ERROR: &str = "_error";
/// The columns that say which result a row is of.
const OWN: [&str; 6] = [INSTANT, SEQUENCE, SNAPSHOT, REMOVED, MISSED, ERROR];

/// What a [`ResultColumns`] holds at most beside what it has written: a batch, and its encoding.
pub const RESULT_COLUMNS_BYTES: usize = 4 * (BATCH_BYTES + LONGEST_ROW_BYTES);

/// Writes results of one query as columns.
pub struct ResultColumns {
    writer: StreamWriter<Vec<u8>>,
    schema: SchemaRef,
    columns: Vec<Column>,
    /// The last one is of a graph, which no row has.
    has_graph: bool,
    /// Batches of the result under way.
    batches: usize,
    /// Of the batch under way.
    rows: usize,
    bytes: usize,
    /// Whose they are.
    of: RowsOf,
    /// Results that were missed before one that has rows.
    missed: u64,
}

/// What all rows of a batch say of themselves.
#[derive(Clone, Debug, Default)]
struct RowsOf {
    instant_ms: i64,
    sequence: u64,
    snapshot: u64,
    are_removed: bool,
    missed: u64,
    error: Option<String>,
}

impl ResultColumns {
    /// A writer of the results of a query. Appends the schema.
    ///
    /// # Errors
    /// [`ResultsError::NoArrow`] for a query without a table of terms, or with a variable that is called as
    /// one of the columns that are added.
    pub fn new(form: &AnswerForm, out: &mut Vec<u8>) -> Result<Self, ResultsError> {
        let columns: Vec<(Shape, &str, bool)> = match form {
            AnswerForm::Boolean => {
                let reason = "its results are booleans".to_owned();
                return Err(ResultsError::NoArrow { reason });
            }
            AnswerForm::Solutions(variables) => {
                let column = |name| (Shape::Term, name, true);
                variables.iter().map(String::as_str).map(column).collect()
            }
            AnswerForm::Triples => vec![
                (Shape::Node, "subject", true),
                (Shape::RepeatedNode, "predicate", true),
                (Shape::Term, "object", true),
                // Without one: it is there as in any answer of triples.
                (Shape::RepeatedNode, "graph", true),
            ],
        };
        if let Some((_, name, _)) = columns.iter().find(|(_, name, _)| OWN.contains(name)) {
            let reason = format!("its variable ?{name} is called as a column that is added");
            return Err(ResultsError::NoArrow { reason });
        }
        let terms = columns.iter();
        let mut fields: Vec<Field> = terms
            .map(|(shape, name, nullable)| Column::field(*shape, name, *nullable))
            .collect();
        fields.extend([
            Field::new(INSTANT, DataType::Int64, false),
            Field::new(SEQUENCE, DataType::UInt64, false),
            Field::new(SNAPSHOT, DataType::UInt64, false),
            Field::new(REMOVED, DataType::Boolean, false),
            Field::new(MISSED, DataType::UInt64, false),
            Field::new(ERROR, DataType::Utf8, true),
        ]);
        let schema = Arc::new(Schema::new(fields));
        let mut writer = Self {
            writer: StreamWriter::try_new(Vec::new(), &schema)?,
            schema,
            columns: columns
                .iter()
                .map(|(shape, ..)| Column::new(*shape))
                .collect(),
            has_graph: *form == AnswerForm::Triples,
            batches: 0,
            rows: 0,
            bytes: 0,
            of: RowsOf::default(),
            missed: 0,
        };
        writer.drain(out);
        Ok(writer)
    }

    /// Begins a result, before which a reader was too slow for `missed` others.
    pub fn begin(&mut self, result: &ContinuousResult, missed: u64) {
        assert_eq!(self.rows, 0, "the result before was ended");
        self.missed += missed;
        self.batches = 0;
        self.of = RowsOf {
            instant_ms: result.instant_ms,
            sequence: result.sequence,
            snapshot: result.snapshot,
            ..RowsOf::default()
        };
    }

    /// Says whether the rows that follow are those that are gone.
    ///
    /// # Errors
    /// [`ResultsError::Arrow`].
    pub fn set_removed(
        &mut self,
        are_removed: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), ResultsError> {
        if self.rows > 0 && self.of.are_removed != are_removed {
            self.write_batch(out)?;
        }
        self.of.are_removed = are_removed;
        Ok(())
    }

    /// Whether rows can be written.
    ///
    /// # Errors
    /// [`ResultsError::LongRow`].
    pub fn check(rows: &Rows) -> Result<(), ResultsError> {
        for row in rows.iter() {
            let bytes = row.iter().flatten().map(|cell| bytes_of(*cell)).sum();
            if bytes > LONGEST_ROW_BYTES {
                let most_bytes = LONGEST_ROW_BYTES;
                return Err(ResultsError::LongRow { bytes, most_bytes });
            }
        }
        Ok(())
    }

    /// Appends a row of the result; a full batch is written.
    ///
    /// # Errors
    /// [`ResultsError::Arrow`].
    ///
    /// # Panics
    /// If it has more or fewer cells than there are columns of terms.
    pub fn row<'t>(
        &mut self,
        row: impl IntoIterator<Item = Option<TermText<'t>>>,
        out: &mut Vec<u8>,
    ) -> Result<(), ResultsError> {
        let mut columns = self.columns.iter_mut();
        for cell in row.into_iter().chain(self.has_graph.then_some(None)) {
            let column = columns.next().expect("there are as many columns as cells");
            self.bytes += column.push(cell)?;
        }
        assert!(columns.next().is_none(), "a row has all its cells");
        self.rows += 1;
        match self.bytes >= BATCH_BYTES {
            true => self.write_batch(out),
            false => Ok(()),
        }
    }

    /// Appends a row that says why there is no result, or no more of it.
    ///
    /// # Errors
    /// [`ResultsError::Arrow`].
    pub fn fail(&mut self, error: &str, out: &mut Vec<u8>) -> Result<(), ResultsError> {
        if self.rows > 0 {
            self.write_batch(out)?;
        }
        self.of.error = Some(error.to_owned());
        for column in &mut self.columns {
            column.push(None)?;
        }
        self.rows = 1;
        self.write_batch(out)?;
        self.of.error = None;
        Ok(())
    }

    /// Ends a result, which has at least one batch: one without rows if it is empty.
    ///
    /// # Errors
    /// [`ResultsError::Arrow`].
    pub fn end(&mut self, out: &mut Vec<u8>) -> Result<(), ResultsError> {
        match self.rows > 0 || self.batches == 0 {
            true => self.write_batch(out),
            false => Ok(()),
        }
    }

    /// Appends what says that no result follows.
    ///
    /// # Errors
    /// [`ResultsError::Arrow`].
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), ResultsError> {
        self.writer.finish()?;
        self.drain(out);
        Ok(())
    }

    fn write_batch(&mut self, out: &mut Vec<u8>) -> Result<(), ResultsError> {
        let rows = self.rows;
        if rows > 0 {
            self.of.missed = std::mem::take(&mut self.missed).max(self.of.missed);
        }
        let of = &self.of;
        let mut arrays: Vec<ArrayRef> = self.columns.iter_mut().map(Column::finish).collect();
        arrays.push(Arc::new(Int64Array::from(vec![of.instant_ms; rows])));
        arrays.push(Arc::new(UInt64Array::from(vec![of.sequence; rows])));
        arrays.push(Arc::new(UInt64Array::from(vec![of.snapshot; rows])));
        arrays.push(Arc::new(BooleanArray::from(vec![of.are_removed; rows])));
        arrays.push(Arc::new(UInt64Array::from(vec![of.missed; rows])));
        let errors = vec![of.error.as_deref(); rows];
        arrays.push(Arc::new(StringArray::from(errors)));
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays)?;
        self.writer.write(&batch)?;
        self.batches += 1;
        (self.rows, self.bytes) = (0, 0);
        self.drain(out);
        Ok(())
    }

    fn drain(&mut self, out: &mut Vec<u8>) {
        out.append(self.writer.get_mut());
    }
}

fn bytes_of(cell: TermText<'_>) -> usize {
    match cell {
        TermText::Iri(text) | TermText::Blank(text) => text.len(),
        TermText::Literal {
            value,
            language,
            datatype,
        } => value.len() + language.map_or(0, str::len) + datatype.map_or(0, str::len),
    }
}
