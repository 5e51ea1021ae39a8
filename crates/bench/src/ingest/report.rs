//! What does the measurement of pushes say, and how is it printed?

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use super::Case;
use crate::machine::Machine;
use crate::percentiles::Percentiles;
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
    /// Tuples a second that were to come, if not as many as are taken.
    pub rate: Option<f64>,
    /// Tuples that were generated before; none with a rate, at which they are made as they go.
    pub generated: u64,
    /// Bytes of their lines.
    pub text_bytes: u64,
    /// Milliseconds of a stream that were pushed together, without a rate.
    pub push_ms: u64,
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
    /// Seconds of cores in that time, of pushing threads and of the background, but not of what makes tuples.
    pub cpu_seconds: f64,
    /// How often a stream was full, so that its thread waited.
    pub full: u64,
    /// The data ended before the time was over.
    pub is_short: bool,
    /// From the end of a batch of 100 ms by the clock to its acknowledgement, with a rate.
    pub delays: Option<Percentiles>,
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
        write!(
            f,
            "the five streams of LSBench with {} users, ",
            thousands(u64::from(self.users))
        )?;
        match self.rate {
            Some(rate) => write!(
                f,
                "{} tuples/s at the pace of the clock",
                thousands(rate as u64)
            )?,
            None => write!(
                f,
                "{} tuples, {} of lines",
                thousands(self.generated),
                bytes(self.text_bytes)
            )?,
        }
        let http = if self.is_served { " over HTTP" } else { "" };
        write!(f, "; threads that push{http}: {}", self.threads)?;
        match self.rate {
            Some(_) => writeln!(f, "\n")?,
            None => writeln!(f, ", {} ms of a stream at a time\n", self.push_ms)?,
        }
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
            if let Some(delays) = &row.delays {
                writeln!(
                    f,
                    "{}: {} batches of 100 ms were acknowledged {:.1} ms after their end in the median, \
                     {:.1} ms in 99 of 100 times, and {:.1} ms at most",
                    row.case,
                    thousands(delays.count),
                    delays.median_us / 1e3,
                    delays.p99_us / 1e3,
                    delays.max_us / 1e3,
                )?;
            }
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
