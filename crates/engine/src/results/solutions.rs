//! How is a table of solutions written, row by row or many at once?

use std::sync::Arc;

use super::columnar::{Columnar, Encoding};
use super::columns::Shape;
use super::escape::push_json;
use super::names::Names;
use super::rows::{ENOUGH_BYTES, Frame, ROWS_BEFORE};
use super::stage::{IdRows, Ids, Stage};
use super::style::Style;
use super::table::Table;
use super::{Advance, ResultsError, SolutionsFormat, TermText, WriteError};
use crate::{Batch, Solutions};

/// Writes solutions in one format: [`start`](Self::start), rows, then [`finish`](Self::finish).
///
/// A row is given at once by [`row`](Self::row), or cell by cell between
/// [`begin_row`](Self::begin_row) and [`end_row`](Self::end_row) when each cell's text borrows
/// the same scratch memory. Text is written at once, and nothing allocated beyond the output's
/// growth, apart from [`SolutionsFormat::Table`]. [`SolutionsFormat::Arrow`] holds rows back until
/// they make a batch or [`pause`](Self::pause) is called, [`SolutionsFormat::Parquet`] until they
/// make a row group of some 16 MiB.
pub struct SolutionsWriter {
    format: SolutionsFormat,
    columns: Vec<Column>,
    /// The column of the next cell.
    column: usize,
    /// JSON: whether the row under way has a bound cell yet.
    row_has_cells: bool,
    rows: u64,
    table: Option<Table>,
    /// From `start` on, in formats of columns.
    columnar: Option<Box<Columnar>>,
    /// How terms are written in formats of text, but for [`SolutionsFormat::Table`].
    style: Option<Style>,
    /// How the answer to a query is written in these formats, once that is more than a few rows.
    stage: Option<Box<Stage>>,
    /// What is left of a batch, from this row on.
    rest: Option<(Batch, usize)>,
}

struct Column {
    name: String,
    /// What comes before a value: `"x":{` in JSON, `<binding name="x">` in XML.
    opening: Vec<u8>,
}

impl SolutionsWriter {
    /// A writer for these variables, named without `?`, in the order of the cells of a row.
    #[must_use]
    pub fn new(format: SolutionsFormat, variables: &[impl AsRef<str>]) -> Self {
        let columns = variables
            .iter()
            .map(|name| Column {
                name: name.as_ref().into(),
                opening: opening(format, name.as_ref()),
            })
            .collect();
        let table = (format == SolutionsFormat::Table).then(|| Table::new(variables));
        Self {
            format,
            columns,
            column: 0,
            row_has_cells: false,
            rows: 0,
            table,
            columnar: None,
            style: style(format),
            stage: None,
            rest: None,
        }
    }

    /// Shows IRIs by these names in [`SolutionsFormat::Table`]; no other format has any.
    #[must_use]
    pub fn with_names(mut self, names: Names) -> Self {
        if let Some(table) = &mut self.table {
            table.set_names(names);
        }
        self
    }

    /// Rows written so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Appends what comes before the first row.
    ///
    /// # Errors
    /// [`ResultsError::NoColumns`] for Parquet without variables.
    pub fn start(&mut self, out: &mut Vec<u8>) -> Result<(), ResultsError> {
        match self.format {
            SolutionsFormat::Json => {
                out.extend_from_slice(br#"{"head":{"vars":["#);
                for (index, column) in self.columns.iter().enumerate() {
                    out.extend_from_slice(if index > 0 { b",\"" } else { b"\"" });
                    push_json(out, &column.name);
                    out.push(b'"');
                }
                out.extend_from_slice(br#"]},"results":{"bindings":["#);
            }
            SolutionsFormat::Xml => {
                out.extend_from_slice(br#"<?xml version="1.0"?>"#);
                out.extend_from_slice(
                    br#"<sparql xmlns="http://www.w3.org/2005/sparql-results#"><head>"#,
                );
                for column in &self.columns {
                    // A variable's name needs no escape: see `opening`.
                    out.extend_from_slice(b"<variable name=\"");
                    out.extend_from_slice(column.name.as_bytes());
                    out.extend_from_slice(b"\"/>");
                }
                out.extend_from_slice(b"</head><results>");
            }
            SolutionsFormat::Csv => {
                for (index, column) in self.columns.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    out.extend_from_slice(column.name.as_bytes());
                }
                out.extend_from_slice(b"\r\n");
            }
            SolutionsFormat::Tsv => {
                for (index, column) in self.columns.iter().enumerate() {
                    out.extend_from_slice(if index > 0 { b"\t?" } else { b"?" });
                    out.extend_from_slice(column.name.as_bytes());
                }
                out.push(b'\n');
            }
            SolutionsFormat::Table => {}
            SolutionsFormat::Arrow => self.start_columns(Encoding::ArrowStream, out)?,
            SolutionsFormat::Parquet => self.start_columns(Encoding::Parquet, out)?,
        }
        Ok(())
    }

    fn start_columns(&mut self, encoding: Encoding, out: &mut Vec<u8>) -> Result<(), ResultsError> {
        let columns: Vec<_> = self
            .columns
            .iter()
            .map(|column| (Shape::Term, &*column.name, true))
            .collect();
        self.columnar = Some(Box::new(Columnar::new(encoding, &columns, out)?));
        Ok(())
    }

    /// Appends one row; `None` is an unbound variable.
    ///
    /// # Errors
    /// What the format cannot hold; the output is then of no use.
    ///
    /// # Panics
    /// If there are more or fewer cells than variables.
    #[inline]
    pub fn row<'t>(
        &mut self,
        out: &mut Vec<u8>,
        cells: impl IntoIterator<Item = Option<TermText<'t>>>,
    ) -> Result<(), ResultsError> {
        self.begin_row(out);
        for cell in cells {
            self.cell(out, cell)?;
        }
        self.end_row(out)
    }

    /// Begins a row.
    #[inline]
    pub fn begin_row(&mut self, out: &mut Vec<u8>) {
        match self.format {
            SolutionsFormat::Json => {
                out.extend_from_slice(if self.rows > 0 { b",{" } else { b"{" })
            }
            SolutionsFormat::Xml => out.extend_from_slice(b"<result>"),
            SolutionsFormat::Csv
            | SolutionsFormat::Tsv
            | SolutionsFormat::Table
            | SolutionsFormat::Arrow
            | SolutionsFormat::Parquet => {}
        }
        self.column = 0;
        self.row_has_cells = false;
    }

    /// Appends the next cell of the row; `None` is an unbound variable.
    ///
    /// # Errors
    /// [`ResultsError::NotXml`] and [`ResultsError::TooLong`]; the output is then of no use.
    ///
    /// # Panics
    /// If the row has a cell for every variable already.
    #[inline]
    pub fn cell(
        &mut self,
        out: &mut Vec<u8>,
        cell: Option<TermText<'_>>,
    ) -> Result<(), ResultsError> {
        match (self.style, cell) {
            (Some(style), Some(term)) => {
                self.open_cell(out);
                style.write(out, term)?;
            }
            (Some(_), None) => self.skip_cell(out),
            (None, cell) => {
                self.check_cell();
                match &mut self.table {
                    Some(table) => table.cell(cell),
                    None => self.columnar().cell(cell)?,
                }
            }
        }
        self.column += 1;
        Ok(())
    }

    /// Appends what comes before the next cell, which is bound.
    #[inline]
    fn open_cell(&mut self, out: &mut Vec<u8>) {
        match self.format {
            SolutionsFormat::Tsv | SolutionsFormat::Csv => self.skip_cell(out),
            SolutionsFormat::Json | SolutionsFormat::Xml => {
                if self.format == SolutionsFormat::Json && self.row_has_cells {
                    out.push(b',');
                }
                self.row_has_cells = true;
                out.extend_from_slice(&self.columns[self.column].opening);
            }
            SolutionsFormat::Table | SolutionsFormat::Arrow | SolutionsFormat::Parquet => {}
        }
    }

    /// Appends what is there of the next cell even if it is unbound.
    #[inline]
    fn skip_cell(&self, out: &mut Vec<u8>) {
        self.check_cell();
        match self.format {
            SolutionsFormat::Tsv if self.column > 0 => out.push(b'\t'),
            SolutionsFormat::Csv if self.column > 0 => out.push(b','),
            _ => {}
        }
    }

    #[inline]
    fn check_cell(&self) {
        assert!(
            self.column < self.columns.len(),
            "a row has a cell for every variable"
        );
    }

    /// Ends a row.
    ///
    /// # Errors
    /// [`ResultsError::Arrow`] and [`ResultsError::Parquet`]; the output is then of no use.
    ///
    /// # Panics
    /// If the row lacks cells.
    #[inline]
    pub fn end_row(&mut self, out: &mut Vec<u8>) -> Result<(), ResultsError> {
        assert_eq!(
            self.column,
            self.columns.len(),
            "a row has a cell for every variable"
        );
        match self.format {
            SolutionsFormat::Json => out.push(b'}'),
            SolutionsFormat::Xml => out.extend_from_slice(b"</result>"),
            SolutionsFormat::Csv => out.extend_from_slice(b"\r\n"),
            SolutionsFormat::Tsv => out.push(b'\n'),
            SolutionsFormat::Table => self.table.as_mut().expect("made for Table").end_row(out),
            SolutionsFormat::Arrow | SolutionsFormat::Parquet => self.columnar().end_row(out)?,
        }
        self.rows += 1;
        Ok(())
    }

    /// Appends some more rows of a query, mostly some tens or hundreds of KiB; `None` at the end.
    /// All rows are of one query.
    ///
    /// In TSV, CSV, JSON and XML the text of terms that come again, or that are neighbours in the
    /// dictionary, is remembered, which makes this several times as fast as giving cells. What
    /// is in `out` may move to another allocation of it. Threads that the query may use help with
    /// answers of more than some thousands of rows; rows stay in their order.
    ///
    /// # Errors
    /// What the query met, and as [`Self::cell`] and [`Self::end_row`].
    ///
    /// # Panics
    /// If the query has more or fewer variables.
    pub fn advance(
        &mut self,
        out: &mut Vec<u8>,
        solutions: &mut Solutions,
    ) -> Result<Option<Advance>, WriteError> {
        let graph = Arc::clone(&solutions.running().graph);
        graph.read(|| self.advance_unchecked(out, solutions))?
    }

    /// As [`Self::advance`] for files of the store that are whole.
    fn advance_unchecked(
        &mut self,
        out: &mut Vec<u8>,
        solutions: &mut Solutions,
    ) -> Result<Option<Advance>, WriteError> {
        if self.stage.is_none() {
            let (batch, from) = match self.rest.take() {
                Some(rest) => rest,
                None => match solutions.next_batch()? {
                    Some(batch) => (batch, 0),
                    None => return Ok(None),
                },
            };
            match self.style {
                Some(style) if batch.rows() >= ROWS_BEFORE => {
                    let ids = Ids::last_of(solutions.running(), IdRows::Columns(batch));
                    let stage = Stage::new(style, self.frame(), ids);
                    self.stage = Some(Box::new(stage));
                }
                _ => return Ok(Some(self.batch(out, batch, from, solutions)?)),
            }
        }
        let stage = self.stage.as_mut().expect("made above");
        let begin = out.len();
        let Some(step) = stage.advance(out, solutions)? else {
            return Ok(None);
        };
        if self.format == SolutionsFormat::Json && self.rows == 0 && step.rows > 0 {
            // The comma before the row.
            out.remove(begin);
        }
        self.rows += step.rows;
        Ok(Some(Advance { waits: step.waits }))
    }

    /// Appends rows of a batch, cell by cell.
    fn batch(
        &mut self,
        out: &mut Vec<u8>,
        batch: Batch,
        from: usize,
        solutions: &Solutions,
    ) -> Result<Advance, ResultsError> {
        let mut decoder = solutions.decoder();
        let before = out.len();
        let mut row = from;
        while row < batch.rows() && out.len() - before < ENOUGH_BYTES {
            self.begin_row(out);
            for column in batch.columns() {
                self.cell(out, decoder.text(column[row]))?;
            }
            self.end_row(out)?;
            row += 1;
        }
        let waits = row == batch.rows();
        if !waits {
            self.rest = Some((batch, row));
        }
        Ok(Advance { waits })
    }

    /// What stands around the cells of a row in a format of text.
    fn frame(&self) -> Frame {
        let last = self.columns.len().saturating_sub(1);
        let separated = |between: &[u8], end: &[u8]| Frame::After {
            cells: (0..self.columns.len())
                .map(|column| if column < last { between } else { end }.to_vec())
                .collect(),
            empty: end.to_vec(),
        };
        let opening = |comma: &[u8]| {
            let columns = self.columns.iter();
            columns
                .map(|column| [comma, &column.opening].concat())
                .collect()
        };
        match self.format {
            SolutionsFormat::Csv => separated(b",", b"\r\n"),
            SolutionsFormat::Json => Frame::Before {
                open: b",{".to_vec(),
                before: opening(b","),
                first: 1,
                close: b"}".to_vec(),
            },
            SolutionsFormat::Xml => Frame::Before {
                open: b"<result>".to_vec(),
                before: opening(b""),
                first: 0,
                close: b"</result>".to_vec(),
            },
            // The others have no frame.
            _ => separated(b"\t", b"\n"),
        }
    }

    /// Told, between rows, that the next one may be long in coming: rows of an Arrow stream that
    /// were held back are written, if they are many or the last ones left a while ago.
    ///
    /// # Errors
    /// As [`Self::end_row`].
    pub fn pause(&mut self, out: &mut Vec<u8>) -> Result<(), ResultsError> {
        match &mut self.columnar {
            Some(columnar) => columnar.pause(out),
            None => Ok(()),
        }
    }

    fn columnar(&mut self) -> &mut Columnar {
        self.columnar.as_mut().expect("the writer was started")
    }

    /// Appends what comes after the last row.
    ///
    /// # Errors
    /// As [`Self::end_row`].
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), ResultsError> {
        match self.format {
            SolutionsFormat::Json => out.extend_from_slice(b"]}}"),
            SolutionsFormat::Xml => out.extend_from_slice(b"</results></sparql>"),
            SolutionsFormat::Csv | SolutionsFormat::Tsv => {}
            SolutionsFormat::Table => {
                self.table
                    .as_mut()
                    .expect("made for Table")
                    .finish(out, self.rows);
            }
            SolutionsFormat::Arrow | SolutionsFormat::Parquet => self.columnar().finish(out)?,
        }
        Ok(())
    }

    /// Appends what comes after the last row, and a profile as the last member, `"profile"`, of
    /// the document: a string.
    ///
    /// # Errors
    /// [`ResultsError::NoProfile`] when the format is not JSON; nothing is appended then.
    pub fn finish_with_profile(
        &mut self,
        out: &mut Vec<u8>,
        profile: &str,
    ) -> Result<(), ResultsError> {
        if self.format != SolutionsFormat::Json {
            return Err(ResultsError::NoProfile {
                format: self.format,
            });
        }
        out.extend_from_slice(br#"]},"profile":""#);
        push_json(out, profile);
        out.extend_from_slice(b"\"}");
        Ok(())
    }
}

/// How terms are written in a format of text; [`Table`] and [`Columnar`] have their own ways.
fn style(format: SolutionsFormat) -> Option<Style> {
    match format {
        SolutionsFormat::Json => Some(Style::Json),
        SolutionsFormat::Xml => Some(Style::Xml),
        SolutionsFormat::Csv => Some(Style::Csv),
        SolutionsFormat::Tsv => Some(Style::Tsv),
        SolutionsFormat::Table | SolutionsFormat::Arrow | SolutionsFormat::Parquet => None,
    }
}

fn opening(format: SolutionsFormat, name: &str) -> Vec<u8> {
    // SPARQL's variable names are letters, digits, `_` and a few marks: nothing that XML or JSON
    // would have to escape. JSON escapes all the same, as it costs nothing.
    let mut opening = Vec::with_capacity(name.len() + 20);
    match format {
        SolutionsFormat::Json => {
            opening.push(b'"');
            push_json(&mut opening, name);
            opening.extend_from_slice(b"\":{\"type\":\"");
        }
        SolutionsFormat::Xml => {
            opening.extend_from_slice(b"<binding name=\"");
            opening.extend_from_slice(name.as_bytes());
            opening.extend_from_slice(b"\">");
        }
        SolutionsFormat::Csv
        | SolutionsFormat::Tsv
        | SolutionsFormat::Table
        | SolutionsFormat::Arrow
        | SolutionsFormat::Parquet => {}
    }
    opening
}
