//! How do rows become an Arrow IPC stream or a Parquet file?
//!
//! Rows gather in a batch. In an Arrow stream a batch leaves when the engine has no more rows at
//! hand, so that the first are seen before the last are found; in Parquet batches are encoded into
//! row groups, and each leaves when it is full. What is held is bounded by the constants below.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use super::columns::{Column, Shape};
use super::{ResultsError, TermText};

/// Rows of a batch at most, more or less.
const BATCH_ROWS: usize = 16 << 10;
/// Bytes of text in a batch, after which it is full.
const BATCH_BYTES: usize = 8 << 20;
/// Rows worth a batch of an Arrow stream; fewer wait for more,
const STREAM_ROWS: usize = 1024;
/// but not for longer than this.
const STREAM_AGE: Duration = Duration::from_millis(50);
/// Bytes of a row group of Parquet, encoded.
const ROW_GROUP_BYTES: usize = 16 << 20;
const ROW_GROUP_ROWS: usize = 1 << 20;

/// The two ways of writing columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    ArrowStream,
    Parquet,
}

/// Writes rows as columns.
pub(super) struct Columnar {
    encoder: Encoder,
    schema: SchemaRef,
    columns: Vec<Column>,
    /// The column of the next cell.
    column: usize,
    /// Of the batch under way.
    rows: usize,
    bytes: usize,
    /// When a batch last left, if one did.
    left_at: Option<Instant>,
}

enum Encoder {
    Arrow(Box<StreamWriter<Vec<u8>>>),
    Parquet(Box<ArrowWriter<Vec<u8>>>),
}

impl Columnar {
    /// A writer of columns with these shapes, names and whether a cell may be empty. Appends what
    /// comes before the first row.
    pub(super) fn new(
        encoding: Encoding,
        columns: &[(Shape, &str, bool)],
        out: &mut Vec<u8>,
    ) -> Result<Self, ResultsError> {
        let fields: Vec<_> = columns
            .iter()
            .map(|&(shape, name, nullable)| Column::field(shape, name, nullable))
            .collect();
        let schema = Arc::new(Schema::new(fields));
        let encoder = match encoding {
            Encoding::ArrowStream => {
                Encoder::Arrow(Box::new(StreamWriter::try_new(Vec::new(), &schema)?))
            }
            // A file without columns is none that readers take.
            Encoding::Parquet if columns.is_empty() => return Err(ResultsError::NoColumns),
            Encoding::Parquet => Encoder::Parquet(Box::new(ArrowWriter::try_new(
                Vec::new(),
                Arc::clone(&schema),
                Some(parquet_properties()),
            )?)),
        };
        let mut writer = Self {
            encoder,
            schema,
            columns: columns
                .iter()
                .map(|&(shape, ..)| Column::new(shape))
                .collect(),
            column: 0,
            rows: 0,
            bytes: 0,
            left_at: None,
        };
        writer.drain(out);
        Ok(writer)
    }

    /// Appends the next cell of the row.
    pub(super) fn cell(&mut self, cell: Option<TermText<'_>>) -> Result<(), ResultsError> {
        self.bytes += self.columns[self.column].push(cell)?;
        self.column += 1;
        Ok(())
    }

    /// Ends a row; a full batch is written.
    pub(super) fn end_row(&mut self, out: &mut Vec<u8>) -> Result<(), ResultsError> {
        assert_eq!(self.column, self.columns.len(), "a row has all its cells");
        self.column = 0;
        self.rows += 1;
        if self.rows >= BATCH_ROWS || self.bytes >= BATCH_BYTES {
            self.write_batch(out)?;
        }
        Ok(())
    }

    /// Told that the next row may be long in coming: lets an Arrow stream's rows leave.
    pub(super) fn pause(&mut self, out: &mut Vec<u8>) -> Result<(), ResultsError> {
        let due = self.rows >= STREAM_ROWS
            || self
                .left_at
                .is_none_or(|left_at| left_at.elapsed() >= STREAM_AGE);
        if self.rows > 0 && due && matches!(self.encoder, Encoder::Arrow(_)) {
            self.write_batch(out)?;
        }
        Ok(())
    }

    /// Appends what is left.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), ResultsError> {
        if self.rows > 0 {
            self.write_batch(out)?;
        }
        match &mut self.encoder {
            Encoder::Arrow(writer) => writer.finish()?,
            Encoder::Parquet(writer) => {
                writer.finish()?;
            }
        }
        self.drain(out);
        Ok(())
    }

    fn write_batch(&mut self, out: &mut Vec<u8>) -> Result<(), ResultsError> {
        let arrays = self.columns.iter_mut().map(Column::finish).collect();
        // Without columns, the number of rows is all there is.
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        let schema = Arc::clone(&self.schema);
        let batch = RecordBatch::try_new_with_options(schema, arrays, &options)?;
        self.rows = 0;
        self.bytes = 0;
        match &mut self.encoder {
            Encoder::Arrow(writer) => {
                writer.write(&batch)?;
                self.left_at = Some(Instant::now());
            }
            Encoder::Parquet(writer) => writer.write(&batch)?,
        }
        self.drain(out);
        Ok(())
    }

    /// Hands over what is encoded.
    fn drain(&mut self, out: &mut Vec<u8>) {
        out.append(match &mut self.encoder {
            Encoder::Arrow(writer) => writer.get_mut(),
            // Positions in the file are counted apart from what lies here.
            Encoder::Parquet(writer) => writer.inner_mut(),
        });
    }
}

fn parquet_properties() -> WriterProperties {
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_bytes(Some(ROW_GROUP_BYTES))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_created_by("jindou".to_owned())
        .build()
}
