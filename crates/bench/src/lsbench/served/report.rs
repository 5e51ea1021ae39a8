//! What does the measurement of served queries say, and how is it printed?

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::percentiles::Percentiles;
use crate::table::{Table, bytes, thousands};

/// All figures. `Display` is aligned tables, serde gives JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServedReport {
    /// Where it was measured; server, sources and clients share it.
    pub machine: Machine,
    /// Version of this program.
    pub version: String,
    /// Whether the program was built with optimization; figures without it say little.
    pub optimized: bool,
    /// Users of the social graph, whose seed is 0.
    pub users: u32,
    /// Stored triples before the streams began.
    pub stored: u64,
    /// Seconds of the streams, and of the clock.
    pub seconds: u64,
    /// The range of windows, in milliseconds.
    pub range_ms: u64,
    /// How far they slide each time, in milliseconds.
    pub step_ms: u64,
    /// Tuples pushed.
    pub tuples: u64,
    /// Tuples a second that were due.
    pub rate: f64,
    /// Queries registered,
    pub queries: u64,
    /// and the seconds which that took.
    pub registering_seconds: f64,
    /// Clients, each of which reads the results of one query.
    pub readers: u64,
    /// Evaluations of all queries.
    pub executions: u64,
    /// Those that failed.
    pub failures: u64,
    /// Milliseconds of all evaluations of an instant, in the mean.
    pub evaluating_ms: f64,
    /// Memory of server, sources and clients at the end.
    pub resident_bytes: u64,
    /// What clients have waited for.
    pub classes: Vec<ServedClass>,
    /// From when each push of 20 ms was due to its acknowledgement.
    pub pushing: Option<Percentiles>,
    /// What a request takes that completes a batch, evaluations included.
    pub completing: Option<Percentiles>,
}

/// One class of queries, or all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServedClass {
    /// Its name.
    pub name: String,
    /// Results that clients were too slow for.
    pub missed: u64,
    /// From the end of a window by the clock to its result at the client: the last push, the request that
    /// completes the window, all evaluations before, and the way.
    pub by_clock: Percentiles,
    /// From when the request was sent that completes the window.
    pub by_request: Percentiles,
}

impl Display for ServedReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.machine)?;
        writeln!(
            f,
            "LSBench of {} users, {} stored triples; {} tuples/s over HTTP at the pace of the clock for {} s; \
             {} queries with windows of {} ms by {} ms, registered in {:.1} s; {} clients read events\n",
            thousands(u64::from(self.users)),
            thousands(self.stored),
            thousands(self.rate as u64),
            self.seconds,
            thousands(self.queries),
            self.range_ms,
            self.step_ms,
            self.registering_seconds,
            self.readers,
        )?;
        let mut table = Table::new([
            "class",
            "results",
            "missed",
            "after the end of the window, median ms",
            "p99",
            "max",
            "after the last request, median ms",
            "p99",
            "max",
        ]);
        for class in &self.classes {
            let ms = |us: f64| format!("{:.1}", us / 1e3);
            table.row([
                class.name.clone(),
                thousands(class.by_clock.count),
                thousands(class.missed),
                ms(class.by_clock.median_us),
                ms(class.by_clock.p99_us),
                ms(class.by_clock.max_us),
                ms(class.by_request.median_us),
                ms(class.by_request.p99_us),
                ms(class.by_request.max_us),
            ]);
        }
        writeln!(f, "{table}")?;
        writeln!(
            f,
            "{} evaluations, {:.1} ms for those of an instant; memory of server, sources and clients {}",
            thousands(self.executions),
            self.evaluating_ms,
            bytes(self.resident_bytes),
        )?;
        for (what, times) in [
            (
                "a push of 20 ms of a stream is acknowledged after its end",
                &self.pushing,
            ),
            (
                "a request that completes a batch of a stream takes",
                &self.completing,
            ),
        ] {
            if let Some(times) = times {
                writeln!(
                    f,
                    "{what}: median {:.1} ms, p99 {:.1} ms, max {:.1} ms",
                    times.median_us / 1e3,
                    times.p99_us / 1e3,
                    times.max_us / 1e3,
                )?;
            }
        }
        Ok(())
    }
}
