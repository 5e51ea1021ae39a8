//! How is a table of solutions written, row by row?

use jindou_model::TermId;

use super::columnar::{Columnar, Encoding};
use super::columns::Shape;
use super::escape::{push_csv, push_json, push_xml};
use super::repeats::{Known, Repeats};
use super::table::Table;
use super::{ResultsError, SolutionsFormat, TermText, write_term};
use crate::TermDecoder;

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
    repeats: Repeats,
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
            repeats: Repeats::default(),
        }
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
        let column = &self.columns[self.column];
        match self.format {
            SolutionsFormat::Json => {
                if let Some(term) = cell {
                    if self.row_has_cells {
                        out.push(b',');
                    }
                    self.row_has_cells = true;
                    write_json(out, &column.opening, term);
                }
            }
            SolutionsFormat::Xml => {
                if let Some(term) = cell {
                    write_xml(out, &column.opening, term)?;
                }
            }
            SolutionsFormat::Csv => {
                if self.column > 0 {
                    out.push(b',');
                }
                match cell {
                    Some(TermText::Iri(text) | TermText::Literal { value: text, .. }) => {
                        push_csv(out, text);
                    }
                    Some(TermText::Blank(label)) => {
                        out.extend_from_slice(b"_:");
                        out.extend_from_slice(label.as_bytes());
                    }
                    None => {}
                }
            }
            SolutionsFormat::Tsv => {
                if self.column > 0 {
                    out.push(b'\t');
                }
                if let Some(term) = cell {
                    write_term(out, term, true);
                }
            }
            SolutionsFormat::Table => self.table.as_mut().expect("made for Table").cell(cell),
            SolutionsFormat::Arrow | SolutionsFormat::Parquet => self.columnar().cell(cell)?,
        }
        self.column += 1;
        Ok(())
    }

    /// Appends the next cell of the row: the term of an id, all of one query. In TSV and CSV the
    /// text of terms that come again is remembered.
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
        let separator = match self.format {
            SolutionsFormat::Tsv => b'\t',
            SolutionsFormat::Csv => b',',
            _ => return self.cell(out, decoder.text(id)),
        };
        match self.repeats.look_up(id, self.rows) {
            Known::New => self.cell(out, decoder.text(id)),
            Known::Text(text) => {
                if self.column > 0 {
                    out.push(separator);
                }
                out.extend_from_slice(text);
                self.column += 1;
                Ok(())
            }
            Known::Again(place) => {
                let begin = out.len() + usize::from(self.column > 0);
                self.cell(out, decoder.text(id))?;
                self.repeats.keep(place, &out[begin..]);
                Ok(())
            }
        }
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

#[inline]
fn write_json(out: &mut Vec<u8>, opening: &[u8], term: TermText<'_>) {
    out.extend_from_slice(opening);
    match term {
        TermText::Iri(iri) => {
            out.extend_from_slice(br#"uri","value":""#);
            push_json(out, iri);
        }
        TermText::Blank(label) => {
            out.extend_from_slice(br#"bnode","value":""#);
            push_json(out, label);
        }
        TermText::Literal {
            value,
            language,
            datatype,
        } => {
            out.extend_from_slice(br#"literal","value":""#);
            push_json(out, value);
            if let Some(language) = language {
                out.extend_from_slice(br#"","xml:lang":""#);
                push_json(out, language);
            } else if let Some(datatype) = TermText::written_datatype(language, datatype) {
                out.extend_from_slice(br#"","datatype":""#);
                push_json(out, datatype);
            }
        }
    }
    out.extend_from_slice(b"\"}");
}

#[inline]
fn write_xml(out: &mut Vec<u8>, opening: &[u8], term: TermText<'_>) -> Result<(), ResultsError> {
    out.extend_from_slice(opening);
    match term {
        TermText::Iri(iri) => {
            out.extend_from_slice(b"<uri>");
            push_xml(out, iri)?;
            out.extend_from_slice(b"</uri></binding>");
        }
        TermText::Blank(label) => {
            out.extend_from_slice(b"<bnode>");
            push_xml(out, label)?;
            out.extend_from_slice(b"</bnode></binding>");
        }
        TermText::Literal {
            value,
            language,
            datatype,
        } => {
            if let Some(language) = language {
                out.extend_from_slice(b"<literal xml:lang=\"");
                push_xml(out, language)?;
                out.extend_from_slice(b"\">");
            } else if let Some(datatype) = TermText::written_datatype(language, datatype) {
                out.extend_from_slice(b"<literal datatype=\"");
                push_xml(out, datatype)?;
                out.extend_from_slice(b"\">");
            } else {
                out.extend_from_slice(b"<literal>");
            }
            push_xml(out, value)?;
            out.extend_from_slice(b"</literal></binding>");
        }
    }
    Ok(())
}
