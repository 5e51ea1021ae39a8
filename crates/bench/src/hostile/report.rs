//! What was found under the hostile mix, as tables and as JSON?

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::table::{Table, bytes, millis, thousands};
use crate::timing::Timing;

/// How many times its quiet value the 99th percentile of light queries may be.
const MOST_TIMES_QUIET: f64 = 5.0;
/// How long cancelled work may go on, in milliseconds.
const MOST_CANCEL_MS: f64 = 100.0;

/// How long it may take until nothing is left of what hundreds of clients asked for that went at
/// once, in milliseconds.
const MOST_LEFTOVER_MS: f64 = 1000.0;

/// Light queries over a while.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LightUnder {
    /// Their times.
    pub timing: Timing,
    /// The longest, in milliseconds.
    pub max_ms: f64,
    /// Those that were not answered with 200 and the right number of rows.
    pub failed: u64,
    /// What the first of these was told.
    pub first_failure: Option<String>,
}

/// One kind of hostile query.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AttackFigures {
    /// Its name.
    pub name: String,
    /// Answers by status; `cut` for those that broke off.
    pub answers: BTreeMap<String, u64>,
}

/// The connections that read slowly.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SlowFigures {
    /// How many there were at any time.
    pub connections: usize,
    /// Answers by status; `cut` for those that broke off.
    pub answers: BTreeMap<String, u64>,
    /// Bytes that they read.
    pub bytes: u64,
    /// How many others held back the last byte of what they sent.
    pub withholding: usize,
    /// What became of these bodies.
    pub withheld: BTreeMap<String, u64>,
}

/// How long cancelled queries of a kind went on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CancelFigures {
    /// What was cancelled, and how.
    pub name: String,
    /// From the cancellation to the query's end, in milliseconds, sorted.
    pub ms: Vec<f64>,
}

/// What the clients of the mix left behind when they went.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Leftover {
    /// For how long anything was left, in milliseconds.
    pub ms: f64,
    /// The kind of the request that was in the list for longest.
    pub name: String,
    /// The memory that came back last.
    pub bytes: u64,
}

/// All of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HostileReport {
    /// Where it was measured.
    pub machine: Machine,
    /// Of this program.
    pub version: String,
    /// Whether it was built to be fast.
    pub optimized: bool,
    /// Universities of the data.
    pub universities: u32,
    /// Length of the mix.
    pub seconds: f64,
    /// Light queries before it,
    pub quiet: LightUnder,
    /// beside it,
    pub mixed: LightUnder,
    /// and after it.
    pub quiet_again: LightUnder,
    /// The server's memory before the mix.
    pub resident_bytes: u64,
    /// What its queries may hold together.
    pub memory_bytes: u64,
    /// The most that it held during the mix.
    pub peak_bytes: u64,
    /// What it held after all.
    pub rest_bytes: u64,
    /// The server's own counters after the mix.
    pub metrics: BTreeMap<String, f64>,
    /// What was done to it.
    pub attacks: Vec<AttackFigures>,
    /// What read slowly.
    pub slow: SlowFigures,
    /// Cancelled beside the mix: gone from the list of queries.
    pub cancelled_beside: Vec<CancelFigures>,
    /// After the clients of the mix had gone.
    pub leftover: Leftover,
    /// Cancelled alone: gone from the list, and the memory back.
    pub cancelled_alone: Vec<CancelFigures>,
}

impl HostileReport {
    /// The memory before the mix and what requests may add to it, and a tenth for what the
    /// allocator keeps.
    #[must_use]
    pub fn ceiling_bytes(&self) -> u64 {
        (self.resident_bytes + self.memory_bytes) / 10 * 11
    }

    /// Each target, what was found, and whether that meets it.
    #[must_use]
    pub fn verdicts(&self) -> Vec<(&'static str, String, bool)> {
        let ratio = self.mixed.timing.p99_ms / self.quiet.timing.p99_ms;
        let cancelled = self.cancelled_beside.iter().chain(&self.cancelled_alone);
        let longest = cancelled
            .flat_map(|kind| &kind.ms)
            .fold(0.0_f64, |most, &ms| most.max(ms));
        vec![
            (
                "no light query fails",
                format!("{} failed", thousands(self.mixed.failed)),
                self.mixed.failed == 0,
            ),
            (
                "light p99 within 5 times its quiet value",
                format!("{ratio:.2} times"),
                ratio <= MOST_TIMES_QUIET,
            ),
            (
                "memory under the ceiling",
                format!(
                    "peak {} of {}",
                    bytes(self.peak_bytes),
                    bytes(self.ceiling_bytes())
                ),
                self.peak_bytes <= self.ceiling_bytes(),
            ),
            (
                "nothing is left 1 s after the clients went",
                format!("{} ms", millis(self.leftover.ms)),
                self.leftover.ms <= MOST_LEFTOVER_MS,
            ),
            (
                "cancelled work stops within 100 ms",
                format!("longest {} ms", millis(longest)),
                longest <= MOST_CANCEL_MS,
            ),
        ]
    }
}

fn counts(answers: &BTreeMap<String, u64>) -> String {
    let parts: Vec<String> = answers
        .iter()
        .map(|(status, count)| format!("{status}: {}", thousands(*count)))
        .collect();
    parts.join(", ")
}

impl Display for HostileReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "jindou {} on {}", self.version, self.machine)?;
        if !self.optimized {
            writeln!(f, "NOT OPTIMIZED: built for debugging")?;
        }
        writeln!(
            f,
            "LUBM({}), hostile mix for {:.0} s\n",
            self.universities, self.seconds
        )?;
        let mut light = Table::new([
            "light queries",
            "runs",
            "p50, ms",
            "p99, ms",
            "max, ms",
            "failed",
        ]);
        for (name, under) in [
            ("alone", &self.quiet),
            ("beside the mix", &self.mixed),
            ("after it", &self.quiet_again),
        ] {
            light.row([
                name.to_owned(),
                thousands(u64::from(under.timing.runs)),
                millis(under.timing.median_ms),
                millis(under.timing.p99_ms),
                millis(under.max_ms),
                thousands(under.failed),
            ]);
        }
        writeln!(f, "{light}")?;
        if let Some(failure) = &self.mixed.first_failure {
            writeln!(f, "the first that failed: {failure}\n")?;
        }
        let mut memory = Table::new(["memory of the server", ""]);
        memory.row(["before the mix", &bytes(self.resident_bytes)]);
        memory.row(["all queries may hold", &bytes(self.memory_bytes)]);
        memory.row(["peak", &bytes(self.peak_bytes)]);
        memory.row(["after all", &bytes(self.rest_bytes)]);
        writeln!(f, "{memory}")?;
        let mut answers = Table::new(["hostile", "answers"]);
        for attack in &self.attacks {
            answers.row([attack.name.clone(), counts(&attack.answers)]);
        }
        let slow = format!(
            "{} slow connections",
            thousands(self.slow.connections as u64)
        );
        answers.row([slow, counts(&self.slow.answers)]);
        let withholding = format!("{} without the last byte", self.slow.withholding);
        answers.row([withholding, counts(&self.slow.withheld)]);
        writeln!(f, "{answers}")?;
        let mut cancelled = Table::new(["cancelled", "runs", "median, ms", "longest, ms"]);
        for (when, kinds) in [
            ("beside the mix", &self.cancelled_beside),
            ("alone, memory back", &self.cancelled_alone),
        ] {
            for kind in kinds.iter().filter(|kind| !kind.ms.is_empty()) {
                cancelled.row([
                    format!("{}, {when}", kind.name),
                    kind.ms.len().to_string(),
                    millis(kind.ms[kind.ms.len() / 2]),
                    millis(kind.ms[kind.ms.len() - 1]),
                ]);
            }
        }
        writeln!(f, "{cancelled}")?;
        writeln!(
            f,
            "the mix was gone after {} ms; last in the list: {}; last memory: {}\n",
            millis(self.leftover.ms),
            self.leftover.name,
            bytes(self.leftover.bytes)
        )?;
        let mut verdicts = Table::new(["target", "found", ""]);
        for (target, found, met) in self.verdicts() {
            verdicts.row([target, &found, if met { "met" } else { "MISSED" }]);
        }
        write!(f, "{verdicts}")
    }
}
