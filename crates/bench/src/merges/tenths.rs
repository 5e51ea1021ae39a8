//! What does a store take while it runs, tenth by tenth of the run?

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use jindou_engine::{DataMemory, Database};
use serde::{Deserialize, Serialize};

use super::merges_since;
use super::watch::{STEP, folder_bytes};
use crate::BenchError;
use crate::machine::{Resident, process_cpu, thread_cpu};
use crate::table::{Table, bytes, millis, thousands};

/// Parts of a run.
pub(super) const PARTS: usize = 10;
/// The terms are counted at one look in so many, as that asks every predicate.
const TERM_LOOKS: u64 = 10;
/// Tenths in which what is filled once has been filled, and as many later ones to compare them with.
const COMPARED: [Range<usize>; 2] = [2..6, 6..10];

/// What there is at one time, or the most of each during some time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// Memory of the process.
    pub memory: Resident,
    /// What the store says it holds, changes included.
    pub held_bytes: u64,
    /// Terms of its dictionary, those that no triple has any more included.
    pub terms: u64,
    /// Its files.
    pub disk_bytes: u64,
}

impl Extent {
    /// The larger of both in each part.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            memory: self.memory.max(other.memory),
            held_bytes: self.held_bytes.max(other.held_bytes),
            terms: self.terms.max(other.terms),
            disk_bytes: self.disk_bytes.max(other.disk_bytes),
        }
    }
}

/// A tenth of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Tenth {
    /// How many triples or transactions a second.
    pub per_second: f64,
    /// What the longest transaction took.
    pub longest_ms: f64,
    /// Time of cores for each triple or transaction, in microseconds: all of the process, merges and
    /// looking included.
    pub cpu_us: f64,
    /// The most of everything.
    pub peak: Extent,
    /// Merges that ended.
    pub merges: u64,
}

/// Watches a store during a run.
pub(super) struct Tenths<'d> {
    database: &'d Database,
    folder: &'d Path,
    /// What the store had been merged at the beginning.
    generation: (u64, u64),
    begin: Instant,
    /// Time of cores until the beginning.
    cpu: Duration,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    parts: [Part; PARTS],
    memory: Option<DataMemory>,
    /// The terms when they were counted last.
    terms: u64,
}

/// What is known of a tenth.
#[derive(Clone, Copy, Default)]
struct Part {
    peak: Option<Extent>,
    longest: Duration,
    /// Triples or transactions.
    count: u64,
    /// When the last of them was done.
    end: Duration,
    /// Merges since the run began.
    merges: u64,
    /// Time of cores since the run began.
    cpu: Duration,
}

impl<'d> Tenths<'d> {
    /// Of a run that begins now.
    pub(super) fn new(database: &'d Database, folder: &'d Path) -> Self {
        Self {
            database,
            folder,
            generation: database.data_memory(None).generation,
            begin: Instant::now(),
            cpu: process_cpu(),
            known: Mutex::default(),
        }
    }

    /// Looks every [`STEP`] until told to stop; `part` says which tenth it is. Gives the time of a core
    /// that this took.
    ///
    /// # Errors
    /// [`BenchError::Memory`], [`BenchError::Io`].
    pub(super) fn watch(
        &self,
        stop: &AtomicBool,
        part: impl Fn() -> usize,
    ) -> Result<Duration, BenchError> {
        for number in 0.. {
            self.look(part(), number % TERM_LOOKS == 0)?;
            if stop.load(Ordering::Relaxed) {
                break;
            }
            std::thread::park_timeout(STEP);
        }
        self.look(part(), true)?;
        Ok(thread_cpu())
    }

    fn look(&self, part: usize, with_terms: bool) -> Result<(), BenchError> {
        let terms = with_terms.then(|| {
            let statistics = self.database.statistics();
            statistics.vertices + statistics.dictionary_literals
        });
        let memory = Resident::now()?;
        let disk_bytes = folder_bytes(self.folder)?;
        let merges = merges_since(self.generation, self.database);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let held = self.database.data_memory(known.memory);
        known.memory = Some(held);
        known.terms = terms.unwrap_or(known.terms);
        let now = Extent {
            memory,
            held_bytes: held.base_bytes + held.change_bytes,
            terms: known.terms,
            disk_bytes,
        };
        let part = &mut known.parts[part];
        part.peak = Some(part.peak.map_or(now, |peak| peak.max(now)));
        part.merges = part.merges.max(merges);
        part.cpu = part.cpu.max(process_cpu() - self.cpu);
        Ok(())
    }

    /// Notes a transaction that ended now: what it counts for and how long it took.
    pub(super) fn note(&self, part: usize, count: u64, time: Duration) {
        let end = self.begin.elapsed();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let part = &mut known.parts[part];
        part.count += count;
        part.longest = part.longest.max(time);
        part.end = part.end.max(end);
    }

    /// What was seen. A tenth that was over before a look has what the one before it had.
    pub(super) fn end(self) -> Vec<Tenth> {
        let known = self.known.into_inner();
        let parts = known.unwrap_or_else(PoisonError::into_inner).parts;
        let mut before = Part::default();
        let tenths = parts.into_iter().map(|mut part| {
            part.end = part.end.max(before.end);
            part.merges = part.merges.max(before.merges);
            part.cpu = part.cpu.max(before.cpu);
            part.peak = part.peak.or(before.peak);
            let cpu = (part.cpu - before.cpu).as_secs_f64();
            let seconds = (part.end - before.end).as_secs_f64();
            let tenth = Tenth {
                per_second: part.count as f64 / seconds.max(f64::EPSILON),
                longest_ms: part.longest.as_secs_f64() * 1e3,
                cpu_us: cpu * 1e6 / part.count.max(1) as f64,
                peak: part.peak.unwrap_or_default(),
                merges: part.merges - before.merges,
            };
            before = part;
            tenth
        });
        tenths.collect()
    }
}

/// Several tenths as one: the mean rate and time of cores, the most of everything.
fn together(tenths: &[Tenth]) -> Tenth {
    let count = tenths.len().max(1) as f64;
    let seconds: f64 = tenths.iter().map(|tenth| 1.0 / tenth.per_second).sum();
    let peaks = tenths.iter().map(|tenth| tenth.peak);
    Tenth {
        per_second: count / seconds,
        longest_ms: tenths.iter().map(|t| t.longest_ms).fold(0.0, f64::max),
        cpu_us: tenths.iter().map(|t| t.cpu_us).sum::<f64>() / count,
        peak: peaks.fold(Extent::default(), Extent::max),
        merges: tenths.iter().map(|tenth| tenth.merges).sum(),
    }
}

/// The third to sixth tenth together and the last four, where all tenths have as many transactions.
pub(super) fn compared(tenths: &[Tenth]) -> Option<[Tenth; 2]> {
    let [early, late] = COMPARED.map(|range| tenths.get(range).map(together));
    Some([early?, late?])
}

/// A table of tenths; `what` is counted by the second.
pub(super) fn table(what: &str, tenths: &[Tenth]) -> Table {
    let mut table = Table::new([
        "tenth",
        what,
        "CPU, us each",
        "longest, ms",
        "merges",
        "resident",
        "anonymous",
        "held",
        "terms",
        "disk",
    ]);
    for (number, tenth) in (1..).zip(tenths) {
        table.row(cells(number.to_string(), tenth));
    }
    table
}

/// Adds what [`compared`] gives, and how many times more the last tenths have.
pub(super) fn add_compared(table: &mut Table, [early, late]: [Tenth; 2]) {
    table.row(cells("3 to 6".to_owned(), &early));
    table.row(cells("7 to 10".to_owned(), &late));
    let ratio = |of: fn(&Tenth) -> f64| format!("{:.2}", of(&late) / of(&early).max(f64::EPSILON));
    table.row([
        "ratio".to_owned(),
        ratio(|tenth| tenth.per_second),
        ratio(|tenth| tenth.cpu_us),
        ratio(|tenth| tenth.longest_ms),
        String::new(),
        ratio(|tenth| tenth.peak.memory.all_bytes as f64),
        ratio(|tenth| tenth.peak.memory.anonymous_bytes as f64),
        ratio(|tenth| tenth.peak.held_bytes as f64),
        ratio(|tenth| tenth.peak.terms as f64),
        ratio(|tenth| tenth.peak.disk_bytes as f64),
    ]);
}

fn cells(name: String, tenth: &Tenth) -> [String; 10] {
    [
        name,
        thousands(tenth.per_second as u64),
        format!("{:.2}", tenth.cpu_us),
        millis(tenth.longest_ms),
        thousands(tenth.merges),
        bytes(tenth.peak.memory.all_bytes),
        bytes(tenth.peak.memory.anonymous_bytes),
        bytes(tenth.peak.held_bytes),
        thousands(tenth.peak.terms),
        bytes(tenth.peak.disk_bytes),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenth(number: u64) -> Tenth {
        Tenth {
            per_second: 100.0 / number as f64,
            longest_ms: number as f64,
            cpu_us: 2.0 * number as f64,
            peak: Extent {
                memory: Resident {
                    all_bytes: number << 20,
                    anonymous_bytes: 1 << 20,
                },
                held_bytes: (20 - number) << 10,
                terms: 1_000 * number,
                disk_bytes: 7,
            },
            merges: 1,
        }
    }

    #[test]
    fn later_tenths_are_compared_with_those_after_the_first_two() {
        let tenths: Vec<Tenth> = (1..=10).map(tenth).collect();
        let [early, late] = compared(&tenths).unwrap();
        // Four tenths of 100 transactions in 3, 4, 5 and 6 seconds.
        assert!((early.per_second - 400.0 / 18.0).abs() < 1e-9);
        assert_eq!((early.merges, late.merges), (4, 4));
        assert_eq!((early.cpu_us, late.cpu_us), (9.0, 17.0));
        assert_eq!((early.peak.terms, late.peak.terms), (6_000, 10_000));
        let mut table = table("a second", &tenths);
        add_compared(&mut table, [early, late]);
        let text = table.to_string();
        let last: Vec<&str> = text.lines().last().unwrap().split_whitespace().collect();
        let ratios = [
            "ratio", "0.53", "1.89", "1.67", "1.67", "1.00", "0.76", "1.67", "1.00",
        ];
        assert_eq!(last, ratios);
        assert_eq!(compared(&tenths[..9]), None);
    }

    #[test]
    fn a_tenth_without_a_look_has_what_the_one_before_had() {
        if Resident::now().is_err() {
            println!("SKIPPED: memory of this process (/proc/self/status is absent)");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let database = Database::new();
        let tenths = Tenths::new(&database, folder.path());
        tenths.look(0, true).unwrap();
        tenths.note(0, 3, Duration::from_millis(2));
        tenths.note(1, 3, Duration::from_millis(4));
        tenths.note(1, 3, Duration::from_millis(1));
        let tenths = tenths.end();
        assert_eq!(tenths.len(), PARTS);
        assert!(tenths[0].peak.memory.anonymous_bytes > 0);
        assert!(tenths.iter().all(|tenth| tenth.peak == tenths[0].peak));
        assert_eq!(tenths[1].longest_ms, 4.0);
        assert_eq!(tenths[2].per_second, 0.0);
    }
}
