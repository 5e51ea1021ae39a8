//! How are solutions laid out in aligned columns for a terminal?

use oxrdf::vocab::xsd;
use unicode_width::UnicodeWidthChar;

use super::names::Names;
use super::term::is_bare;
use super::{TermText, write_term};

/// Rows held back to measure the columns; later rows must fit the widths found.
const MEASURED_ROWS: usize = 1000;
/// Bytes held back at most, whatever the number of rows.
const MEASURED_BYTES: usize = 1 << 20;
/// Terminal cells that one column takes at most.
const MAX_WIDTH: usize = 60;

/// The rows held back and the widths, in terminal cells.
pub(super) struct Table {
    names: Vec<String>,
    widths: Vec<usize>,
    /// The cells held back, end to end, and where each ends with its width.
    text: String,
    cells: Vec<(usize, usize)>,
    /// Whether the head is out, so that widths are fixed.
    fixed: bool,
    scratch: Vec<u8>,
    /// By which IRIs are shown.
    short: Names,
}

impl Table {
    pub(super) fn new(variables: &[impl AsRef<str>]) -> Self {
        let names: Vec<String> = variables
            .iter()
            .map(|name| format!("?{}", name.as_ref()))
            .collect();
        let widths = names
            .iter()
            .map(|name| name.chars().filter_map(char::width).sum())
            .collect();
        Self {
            names,
            widths,
            text: String::new(),
            cells: Vec::new(),
            fixed: false,
            scratch: Vec::new(),
            short: Names::default(),
        }
    }

    pub(super) fn set_names(&mut self, names: Names) {
        self.short = names;
    }

    /// Takes the next cell of the row.
    pub(super) fn cell(&mut self, cell: Option<TermText<'_>>) {
        self.scratch.clear();
        if let Some(term) = cell {
            push_short(&mut self.scratch, term, &self.short);
        }
        let width = push_cut(
            &mut self.text,
            &String::from_utf8_lossy(&self.scratch),
            MAX_WIDTH,
        );
        self.cells.push((self.text.len(), width));
    }

    /// Ends the row: rows leave once enough were seen to know the widths.
    pub(super) fn end_row(&mut self, out: &mut Vec<u8>) {
        let columns = self.names.len();
        if self.fixed
            || self.cells.len() >= MEASURED_ROWS * columns
            || self.text.len() >= MEASURED_BYTES
        {
            self.flush(out);
        }
    }

    /// Lets the remaining rows out and tells their number.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>, rows: u64) {
        self.flush(out);
        let plural = if rows == 1 { "" } else { "s" };
        out.extend_from_slice(format!("({rows} row{plural})\n").as_bytes());
    }

    fn flush(&mut self, out: &mut Vec<u8>) {
        if !self.fixed {
            self.fixed = true;
            for (index, &(_, width)) in self.cells.iter().enumerate() {
                let column = index % self.names.len();
                self.widths[column] = self.widths[column].max(width);
            }
            self.push_head(out);
        }
        let columns = self.names.len();
        let mut start = 0;
        for (index, &(end, width)) in self.cells.iter().enumerate() {
            let column = index % columns;
            let room = self.widths[column];
            let text = &self.text[start..end];
            start = end;
            out.extend_from_slice(if column == 0 { b" " } else { b" | " });
            if width > room {
                let mut cut = String::new();
                push_cut(&mut cut, text, room);
                out.extend_from_slice(cut.as_bytes());
            } else {
                out.extend_from_slice(text.as_bytes());
            }
            if column + 1 == columns {
                out.push(b'\n');
            } else {
                out.resize(out.len() + room.saturating_sub(width), b' ');
            }
        }
        self.cells.clear();
        self.text.clear();
    }

    fn push_head(&self, out: &mut Vec<u8>) {
        if self.names.is_empty() {
            return;
        }
        let last = self.names.len() - 1;
        for (column, name) in self.names.iter().enumerate() {
            let width: usize = name.chars().filter_map(char::width).sum();
            out.extend_from_slice(if column == 0 { b" " } else { b" | " });
            out.extend_from_slice(name.as_bytes());
            if column < last {
                out.resize(out.len() + self.widths[column] - width, b' ');
            }
        }
        out.push(b'\n');
        for (column, width) in self.widths.iter().enumerate() {
            out.extend_from_slice(if column == 0 { b"-" } else { b"-+-" });
            out.resize(out.len() + width, b'-');
        }
        out.extend_from_slice(b"-\n");
    }
}

/// Appends a term as TSV has it, but for IRIs that have a name.
fn push_short(out: &mut Vec<u8>, term: TermText<'_>, names: &Names) {
    let (iri, begin) = match term {
        TermText::Iri(iri) => (iri, out.len()),
        TermText::Literal {
            value,
            language: None,
            datatype: Some(iri),
        } if iri != xsd::STRING.as_str() && !is_bare(value, iri) => {
            let plain = TermText::Literal {
                value,
                language: None,
                datatype: None,
            };
            let begin = out.len();
            write_term(out, plain, false);
            out.extend_from_slice(b"^^");
            (iri, begin)
        }
        _ => return write_term(out, term, true),
    };
    if names.push(out, iri).is_none() {
        out.truncate(begin);
        write_term(out, term, true);
    }
}

/// Appends `text`, cut with an ellipsis to `room` terminal cells, and returns the cells taken.
/// Control characters, which could steer the terminal, are shown as escapes.
fn push_cut(to: &mut String, text: &str, room: usize) -> usize {
    let start = to.len();
    let mut width = 0;
    // Where the text has to end if an ellipsis follows it.
    let mut cut = (start, 0);
    for character in text.chars() {
        match character.width() {
            Some(cells) => {
                to.push(character);
                width += cells;
            }
            None => {
                let escape = format!("\\u{:04X}", u32::from(character));
                width += escape.len();
                to.push_str(&escape);
            }
        }
        if width > room {
            to.truncate(cut.0);
            to.push('…');
            return cut.1 + 1;
        }
        if width < room {
            cut = (to.len(), width);
        }
    }
    width
}

#[cfg(test)]
mod tests {
    use super::super::{SolutionsFormat, SolutionsWriter, TermText};
    use super::*;

    fn literal(value: &str) -> Option<TermText<'_>> {
        Some(TermText::Literal {
            value,
            language: None,
            datatype: None,
        })
    }

    fn table(names: &[&str], rows: &[Vec<Option<TermText<'_>>>]) -> String {
        let mut out = Vec::new();
        let mut writer = SolutionsWriter::new(SolutionsFormat::Table, names);
        writer.start(&mut out).unwrap();
        for row in rows {
            writer.row(&mut out, row.iter().copied()).unwrap();
        }
        writer.finish(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [
            vec![Some(TermText::Iri("http://e/a")), literal("猫")],
            vec![None, literal("b")],
        ];
        assert_eq!(
            table(&["s", "name"], &rows),
            " ?s           | ?name\n\
             --------------+-------\n \
             <http://e/a> | \"猫\"\n              \
             | \"b\"\n\
             (2 rows)\n"
        );
    }

    #[test]
    fn iris_are_shown_by_the_names_that_they_have() {
        let pairs = [
            ("e", "http://e/"),
            ("xsd", "http://www.w3.org/2001/XMLSchema#"),
        ];
        let pairs = pairs.map(|(name, iri)| (name.to_owned(), iri.to_owned()));
        let mut out = Vec::new();
        let mut writer =
            SolutionsWriter::new(SolutionsFormat::Table, &["x"]).with_names(Names::new(pairs));
        writer.start(&mut out).unwrap();
        let typed = |value, name| TermText::Literal {
            value,
            language: None,
            datatype: Some(name),
        };
        for term in [
            TermText::Iri("http://e/a.b"),
            TermText::Iri("http://e/a/b"),
            TermText::Iri("http://f/a"),
            typed("2020-01-01", "http://www.w3.org/2001/XMLSchema#date"),
            typed("7", "http://www.w3.org/2001/XMLSchema#integer"),
            typed("x\ny", "http://f/type"),
        ] {
            writer.row(&mut out, [Some(term)]).unwrap();
        }
        writer.finish(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let rows: Vec<&str> = text.lines().skip(2).map(str::trim).collect();
        let expected = [
            "e:a.b",
            "<http://e/a/b>",
            "<http://f/a>",
            "\"2020-01-01\"^^xsd:date",
            "7",
            r#""x\ny"^^<http://f/type>"#,
            "(6 rows)",
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn without_columns_only_rows_are_counted() {
        assert_eq!(table(&[], &[vec![]]), "(1 row)\n");
        assert_eq!(table(&["x"], &[]), " ?x\n----\n(0 rows)\n");
    }

    #[test]
    fn long_values_are_cut_and_late_ones_fit_the_measured_width() {
        let long = "x".repeat(500);
        let mut rows = vec![vec![literal("abc"), literal("y")]; MEASURED_ROWS];
        rows.push(vec![literal(&long), literal(&long)]);
        let text = table(&["first", "second"], &rows);
        let last = text.lines().rev().nth(1).unwrap();
        assert_eq!(last, " \"xxxx… | \"xxxxx…");
        let text = table(&["first"], &[vec![literal(&long)]]);
        assert_eq!(text.lines().nth(2).unwrap().chars().count(), 1 + MAX_WIDTH);
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let text = table(&["x"], &[vec![literal("a\u{1b}[2J\u{9b}b\nc")]]);
        assert!(text.contains("\"a\\u001B[2J\\u009Bb\\nc\""), "{text}");
    }

    #[test]
    fn a_cut_never_exceeds_its_room() {
        for room in 1..12 {
            let mut to = String::new();
            let width = push_cut(&mut to, "a猫b猫猫c", room);
            assert!(width <= room, "{room}: {to}");
            assert_eq!(width, to.chars().filter_map(char::width).sum::<usize>());
        }
    }
}
