//! How is a table of figures laid out so that its columns line up?

use std::fmt::{self, Display, Formatter};

/// A table of text: the first column is aligned left, the others right.
///
/// ```
/// use jindou_bench::table::Table;
///
/// let mut table = Table::new(["query", "rows"]);
/// table.row(["q1", "2528"]);
/// assert_eq!(table.to_string(), "query  rows\nq1     2528\n");
/// ```
#[derive(Debug, Clone)]
pub struct Table {
    columns: usize,
    is_of_words: bool,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    pub fn new<T: Into<String>>(headings: impl IntoIterator<Item = T>) -> Self {
        let headings: Vec<String> = headings.into_iter().map(Into::into).collect();
        Self {
            columns: headings.len(),
            is_of_words: false,
            rows: vec![headings],
        }
    }

    /// The same with all columns aligned left.
    #[must_use]
    pub fn of_words(self) -> Self {
        Self {
            is_of_words: true,
            ..self
        }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it has more or fewer cells than there are headings.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        let cells: Vec<String> = cells.into_iter().map(Into::into).collect();
        assert_eq!(cells.len(), self.columns, "a row has a cell a heading");
        self.rows.push(cells);
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let widths: Vec<usize> = (0..self.columns)
            .map(|column| {
                let cells = self.rows.iter().map(|row| row[column].chars().count());
                cells.max().unwrap_or(0)
            })
            .collect();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                let padding = " ".repeat(width - cell.chars().count());
                if column > 0 {
                    line.push_str("  ");
                }
                if column == 0 || self.is_of_words {
                    line.push_str(cell);
                    line.push_str(&padding);
                } else {
                    line.push_str(&padding);
                    line.push_str(cell);
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A number with its thousands set apart: `1 316 700` as `1,316,700`.
#[must_use]
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Milliseconds with about three digits that matter, without the unit.
#[must_use]
pub fn millis(ms: f64) -> String {
    match ms {
        ms if ms < 1.0 => format!("{ms:.4}"),
        ms if ms < 10.0 => format!("{ms:.3}"),
        ms if ms < 100.0 => format!("{ms:.2}"),
        ms => format!("{ms:.1}"),
    }
}

/// Bytes in the unit that fits, with one decimal.
#[must_use]
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut amount = count as f64 / 1024.0;
    let mut unit = UNITS[0];
    for &next in &UNITS[1..] {
        if amount < 1024.0 {
            break;
        }
        amount /= 1024.0;
        unit = next;
    }
    format!("{amount:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_is_in_them() {
        let mut table = Table::new(["q", "rows", "µs"]);
        table.row(["long name", "1", "0.5"]);
        table.row(["é", "1,234,567", "10"]);
        let text = table.to_string();
        let ends: Vec<usize> = text.lines().map(|line| line.chars().count()).collect();
        assert_eq!(ends, [25, 25, 25], "{text}");
        assert_eq!(text.lines().nth(2), Some("é          1,234,567   10"));
        let words = table.of_words().to_string();
        assert_eq!(words.lines().nth(2), Some("é          1,234,567  10"));
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_316_700), "1,316,700");
        assert_eq!(millis(0.012_34), "0.0123");
        assert_eq!(millis(456.78), "456.8");
        assert_eq!(bytes(1000), "1000 B");
        assert_eq!(bytes(1024), "1.0 KiB");
        assert_eq!(bytes(5 << 30), "5.0 GiB");
    }
}
