//! How is a graph in Parquet, as `dump` writes it, loaded again?
//!
//! As lines of N-Quads, which the loader parses on all of its threads: the columns are decoded a batch
//! at a time, so that a file of any size takes the memory of one.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Schema};
use jindou_ingest::{Format, IngestError, Source, SyntaxError};
use oxrdf::{BlankNodeRef, LiteralRef, NamedNodeRef};
use parquet::arrow::arrow_reader::{
    ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};

use crate::EngineError;

/// Rows decoded at once.
const BATCH_ROWS: usize = 4096;

/// The ending of files in Parquet.
pub const PARQUET_ENDING: &str = "parquet";

/// A source of the quads of a Parquet file with the columns `subject`, `predicate`, `object` and
/// `graph` that a dump has.
///
/// # Errors
/// What the operating system says, and [`IngestError::Syntax`] for a file that is none such.
pub fn parquet_source(path: impl AsRef<Path>) -> Result<Source, EngineError> {
    let path = path.as_ref();
    let name = path.display().to_string();
    let io_error = |source| IngestError::Io {
        file: name.as_str().into(),
        source,
    };
    let refused = |reason: String| {
        IngestError::Syntax(SyntaxError {
            file: name.as_str().into(),
            line: None,
            column: None,
            reason,
        })
    };
    let file = File::open(path).map_err(io_error)?;
    // Strings are strings then, and no dictionaries.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options)
        .map_err(|error| refused(format!("it is no Parquet file: {error}")))?;
    if !is_graph(builder.schema()) {
        let columns: Vec<&str> = builder
            .schema()
            .fields()
            .iter()
            .map(|it| it.name().as_str())
            .collect();
        return Err(refused(format!(
            "it is no graph: a graph has the columns subject, predicate, object (a struct of kind, \
             value, datatype and language) and graph, as `jindou dump` writes them, and this has {}",
            columns.join(", ")
        ))
        .into());
    }
    let batches = builder
        .with_batch_size(BATCH_ROWS)
        .build()
        .map_err(|error| refused(error.to_string()))?;
    let lines = Lines {
        batches,
        text: String::new(),
        at: 0,
    };
    Ok(Source::reader(name, lines).with_format(Format::NQuads))
}

fn is_graph(schema: &Arc<Schema>) -> bool {
    let is_text = |name: &str| {
        let field = schema.field_with_name(name);
        field.is_ok_and(|field| *field.data_type() == DataType::Utf8)
    };
    let has_graph = schema.field_with_name("graph").is_err() || is_text("graph");
    let object = schema
        .field_with_name("object")
        .map(|field| field.data_type());
    let parts = ["kind", "value", "datatype", "language"];
    let is_term = |fields: &arrow_schema::Fields| {
        let is_part = |part: &&str| {
            fields
                .iter()
                .any(|field| field.name() == part && *field.data_type() == DataType::Utf8)
        };
        parts.iter().all(is_part)
    };
    let has_object = matches!(object, Ok(DataType::Struct(fields)) if is_term(fields));
    is_text("subject") && is_text("predicate") && has_object && has_graph
}

/// The rows as lines of N-Quads.
struct Lines {
    batches: ParquetRecordBatchReader,
    text: String,
    /// So much of the text was read.
    at: usize,
}

impl Read for Lines {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.at == self.text.len() {
            let Some(batch) = self.batches.next() else {
                return Ok(0);
            };
            let batch = batch.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            self.text.clear();
            self.at = 0;
            write_rows(&batch, &mut self.text)?;
        }
        let rest = &self.text.as_bytes()[self.at..];
        let count = rest.len().min(buf.len());
        buf[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}

fn no_column(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a row has no {name}"))
}

fn text<'a>(column: &'a StringArray, row: usize, name: &str) -> io::Result<&'a str> {
    match column.is_valid(row) {
        true => Ok(column.value(row)),
        false => Err(no_column(name)),
    }
}

fn write_rows(batch: &RecordBatch, out: &mut String) -> io::Result<()> {
    let column = |name: &str| batch.column_by_name(name).ok_or_else(|| no_column(name));
    let (subjects, predicates) = (
        column("subject")?.as_string::<i32>(),
        column("predicate")?.as_string::<i32>(),
    );
    let objects = column("object")?.as_struct();
    let part = |name: &str| objects.column_by_name(name).ok_or_else(|| no_column(name));
    let (kinds, values) = (
        part("kind")?.as_string::<i32>(),
        part("value")?.as_string::<i32>(),
    );
    let (datatypes, languages) = (
        part("datatype")?.as_string::<i32>(),
        part("language")?.as_string::<i32>(),
    );
    let graphs: Option<&StringArray> = batch
        .column_by_name("graph")
        .map(|it| it.as_string::<i32>());
    for row in 0..batch.num_rows() {
        write_node(text(subjects, row, "subject")?, out);
        write_node(text(predicates, row, "predicate")?, out);
        let value = text(values, row, "object")?;
        match text(kinds, row, "kind")? {
            "literal" => {
                let literal = match languages.is_valid(row) {
                    true => LiteralRef::new_language_tagged_literal_unchecked(
                        value,
                        languages.value(row),
                    ),
                    false => {
                        let datatype = text(datatypes, row, "datatype")?;
                        LiteralRef::new_typed_literal(value, NamedNodeRef::new_unchecked(datatype))
                    }
                };
                write!(out, "{literal} ").expect(WRITES);
            }
            _ => write_node(value, out),
        }
        if let Some(graphs) = graphs.filter(|graphs| graphs.is_valid(row)) {
            write_node(graphs.value(row), out);
        }
        out.push_str(".\n");
    }
    Ok(())
}

const WRITES: &str = "a string takes all that is written";

/// Writes an IRI, or a blank node that is given as `_:label`.
fn write_node(text: &str, out: &mut String) {
    match text.strip_prefix("_:") {
        Some(label) => write!(out, "{} ", BlankNodeRef::new_unchecked(label)),
        None => write!(out, "{} ", NamedNodeRef::new_unchecked(text)),
    }
    .expect(WRITES);
}
