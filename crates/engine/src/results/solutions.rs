//! How is a table of solutions written, row by row?

use jindou_model::TermId;

use super::cells::Cells;
use super::escape::push_json;
use super::style::Style;
use super::table::Table;
use super::{ResultsError, SolutionsFormat, TermText};
use crate::TermDecoder;

/// Writes solutions in one format: [`start`](Self::start), rows, then [`finish`](Self::finish).
///
/// A row is given at once by [`row`](Self::row), or cell by cell between
/// [`begin_row`](Self::begin_row) and [`end_row`](Self::end_row) when each cell's text borrows
/// the same scratch memory. Apart from [`SolutionsFormat::Table`], nothing is held back and
/// nothing allocated beyond the output's growth.
pub struct SolutionsWriter {
    format: SolutionsFormat,
    columns: Vec<Column>,
    /// The column of the next cell.
    column: usize,
    /// JSON: whether the row under way has a bound cell yet.
    row_has_cells: bool,
    rows: u64,
    table: Option<Table>,
    /// How terms are written; not for [`SolutionsFormat::Table`].
    cells: Cells,
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
            cells: Cells::new(style(format)),
        }
    }

    /// Rows written so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Appends what comes before the first row.
    pub fn start(&mut self, out: &mut Vec<u8>) {
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
        }
    }

    /// Appends one row; `None` is an unbound variable.
    ///
    /// # Errors
    /// [`ResultsError::NotXml`]; the output is then of no use.
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
        self.end_row(out);
        Ok(())
    }

    /// Begins a row.
    #[inline]
    pub fn begin_row(&mut self, out: &mut Vec<u8>) {
        match self.format {
            SolutionsFormat::Json => {
                out.extend_from_slice(if self.rows > 0 { b",{" } else { b"{" })
            }
            SolutionsFormat::Xml => out.extend_from_slice(b"<result>"),
            SolutionsFormat::Csv | SolutionsFormat::Tsv | SolutionsFormat::Table => {}
        }
        self.column = 0;
        self.row_has_cells = false;
    }

    /// Appends the next cell of the row; `None` is an unbound variable.
    ///
    /// # Errors
    /// [`ResultsError::NotXml`]; the output is then of no use.
    ///
    /// # Panics
    /// If the row has a cell for every variable already.
    #[inline]
    pub fn cell(
        &mut self,
        out: &mut Vec<u8>,
        cell: Option<TermText<'_>>,
    ) -> Result<(), ResultsError> {
        match (&mut self.table, cell) {
            (Some(table), cell) => table.cell(cell),
            (None, Some(term)) => {
                self.open_cell(out);
                self.cells.style().write(out, term)?;
            }
            (None, None) => self.skip_cell(out),
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
            SolutionsFormat::Table => {}
        }
    }

    /// Appends what is there of the next cell even if it is unbound.
    #[inline]
    fn skip_cell(&self, out: &mut Vec<u8>) {
        assert!(
            self.column < self.columns.len(),
            "a row has a cell for every variable"
        );
        match self.format {
            SolutionsFormat::Tsv if self.column > 0 => out.push(b'\t'),
            SolutionsFormat::Csv if self.column > 0 => out.push(b','),
            _ => {}
        }
    }

    /// Appends the next cell of the row: the term of an id, all of one query. The text of terms
    /// that come again, or that are neighbours in the dictionary, is remembered.
    ///
    /// # Errors
    /// As [`Self::cell`].
    ///
    /// # Panics
    /// As [`Self::cell`].
    #[inline]
    pub fn term(
        &mut self,
        out: &mut Vec<u8>,
        id: TermId,
        decoder: &mut TermDecoder<'_>,
    ) -> Result<(), ResultsError> {
        if id.is_none() || self.table.is_some() {
            return self.cell(out, decoder.text(id));
        }
        self.open_cell(out);
        self.column += 1;
        self.cells.push(out, id, decoder, self.rows)
    }

    /// Ends a row.
    ///
    /// # Panics
    /// If the row lacks cells.
    #[inline]
    pub fn end_row(&mut self, out: &mut Vec<u8>) {
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
        }
        self.rows += 1;
    }

    /// Appends what comes after the last row.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
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
        }
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

/// How terms are written. [`Table`] has its own way.
fn style(format: SolutionsFormat) -> Style {
    match format {
        SolutionsFormat::Json => Style::Json,
        SolutionsFormat::Xml => Style::Xml,
        SolutionsFormat::Csv => Style::Csv,
        SolutionsFormat::Tsv | SolutionsFormat::Table => Style::Tsv,
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
        SolutionsFormat::Csv | SolutionsFormat::Tsv | SolutionsFormat::Table => {}
    }
    opening
}
