//! What does the measurement of pushes say, and how is it printed?

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use super::Case;
use crate::machine::Machine;
use crate::table::{Table, bytes, thousands};

/// All figures. `Display` is aligned tables, serde gives JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IngestReport {
    /// Where it was measured.
    pub machine: Machine,
    /// Version of this program.
    pub version: String,
    /// Whether the program was built with optimization; figures without it say little.
    pub optimized: bool,
    /// Users of the social graph, whose seed is 0.
    pub users: u32,
    /// Tuples that were generated.
    pub generated: u64,
    /// Bytes of their lines.
    pub text_bytes: u64,
    /// Threads that pushed.
    pub threads: usize,
    /// They pushed over HTTP.
    pub is_served: bool,
    /// The cases.
    pub rows: Vec<IngestRow>,
}

/// One case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IngestRow {
    /// Where tuples went.
    pub case: Case,
    /// Seconds of the clock.
    pub seconds: f64,
    /// Tuples pushed in that time.
    pub tuples: u64,
    /// Seconds of cores in that time, of pushing threads and of the background.
    pub cpu_seconds: f64,
    /// How often a stream was full, so that its thread waited.
    pub full: u64,
    /// The data ended before the time was over.
    pub is_short: bool,
    /// Bytes of graph and dictionary a quad, once the background rests; not known of windows.
    pub bytes_a_tuple: Option<f64>,
    /// Seconds that merges took after the end, until none was pending; not known of windows.
    pub merging_seconds: Option<f64>,
    /// The background came to rest.
    pub is_settled: bool,
}

impl IngestRow {
    /// Tuples a second.
    #[must_use]
    pub fn tuples_per_second(&self) -> f64 {
        self.tuples as f64 / self.seconds.max(1e-9)
    }
}

impl Display for IngestReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.machine)?;
        writeln!(
            f,
            "the five streams of LSBench with {} users, {} tuples, {} of lines; threads that push{}: {}\n",
            thousands(u64::from(self.users)),
            thousands(self.generated),
            bytes(self.text_bytes),
            if self.is_served { " over HTTP" } else { "" },
            self.threads,
        )?;
        let mut table = Table::new([
            "case",
            "seconds",
            "tuples",
            "tuples/s",
            "CPU, s",
            "bytes a tuple",
            "merges after, s",
        ]);
        let known =
            |figure: Option<f64>| figure.map_or("-".to_owned(), |known| format!("{known:.1}"));
        for row in &self.rows {
            table.row([
                row.case.to_string(),
                format!("{:.1}", row.seconds),
                thousands(row.tuples),
                thousands(row.tuples_per_second() as u64),
                format!("{:.1}", row.cpu_seconds),
                known(row.bytes_a_tuple),
                known(row.merging_seconds),
            ]);
        }
        write!(f, "{table}")?;
        for row in &self.rows {
            if row.is_short {
                writeln!(f, "{}: the data ended before the time was over", row.case)?;
            }
            if row.full > 0 {
                writeln!(f, "{}: a stream was full {} times", row.case, row.full)?;
            }
            if !row.is_settled {
                writeln!(f, "{}: merges did not end", row.case)?;
            }
        }
        Ok(())
    }
}
