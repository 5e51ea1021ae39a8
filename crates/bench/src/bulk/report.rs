//! What do the loads say, and how is it printed?

use std::fmt::{self, Display, Formatter};

use jindou_engine::MERGING_TERMS;
use serde::{Deserialize, Serialize};

use super::Way;
use super::kills::{AfterKills, Found, Kill};
use crate::machine::Machine;
use crate::running::Step;
use crate::table::{Table, bytes, thousands};

/// The speed of a load within its limit is to be this of the speed in memory, or better.
const LEAST_SPEED: f64 = 0.5;

/// All figures. `Display` is aligned tables, serde gives JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BulkReport {
    /// Where it was measured.
    pub machine: Machine,
    /// Version of this program.
    pub version: String,
    /// Whether the program was built with optimization; figures without it say little.
    pub optimized: bool,
    /// What a load within may take.
    pub memory_bytes: u64,
    /// Threads of a load.
    pub threads: usize,
    /// The graphs.
    pub graphs: Vec<GraphFigures>,
}

/// Loads of one graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraphFigures {
    /// Its name and size.
    pub name: String,
    /// Different triples that were generated.
    pub triples: u64,
    /// In the order in which they were made.
    pub loads: Vec<Load>,
    /// Loads that were killed.
    pub kills: Vec<Kill>,
    /// The load at the same place after these.
    pub after_kills: Option<AfterKills>,
}

/// One load into a new store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// How.
    pub way: Way,
    /// Until the store can be queried, generating included.
    pub seconds: f64,
    /// Triples that the store has.
    pub triples: u64,
    /// Bytes of the text that came by the pipe.
    pub text_bytes: u64,
    /// The most memory that was resident, the generator's included.
    pub peak_bytes: u64,
    /// The most bytes of all files in the folder that were seen.
    pub most_disk_bytes: u64,
    /// Bytes of the store.
    pub store_bytes: u64,
    /// What it did after it had read, and when that began.
    pub steps: Vec<Step>,
}

impl Load {
    /// Triples a second.
    #[must_use]
    pub fn speed(&self) -> f64 {
        self.triples as f64 / self.seconds
    }

    /// Whether some of it waited in files.
    #[must_use]
    pub fn is_spilled(&self) -> bool {
        self.steps.iter().any(|step| step.name == MERGING_TERMS)
    }
}

/// Whether something is as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is.
    Met,
    /// It is not.
    Missed,
    /// The data is too small to show it.
    NotShown,
}

impl Outcome {
    fn of(is_met: bool) -> Self {
        match is_met {
            true => Self::Met,
            false => Self::Missed,
        }
    }
}

impl Display for Outcome {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Met => "met",
            Self::Missed => "MISSED",
            Self::NotShown => "not shown",
        })
    }
}

/// What should be, and what was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What should be.
    pub target: String,
    /// What was found.
    pub found: String,
    /// Whether that is it.
    pub outcome: Outcome,
}

impl GraphFigures {
    fn of_way(&self, way: Way) -> impl Iterator<Item = &Load> {
        self.loads.iter().filter(move |load| load.way == way)
    }

    /// The load of a way that took the median time.
    #[must_use]
    pub fn median(&self, way: Way) -> Option<&Load> {
        let mut loads: Vec<&Load> = self.of_way(way).collect();
        loads.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        loads.get(loads.len() / 2).copied()
    }

    /// The speed within the limit by that in memory, if both were measured.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        Some(self.median(Way::Within)?.speed() / self.median(Way::InMemory)?.speed())
    }

    fn peak_bytes(&self, way: Way) -> Option<u64> {
        self.of_way(way).map(|load| load.peak_bytes).max()
    }

    /// Whether all triples came, the limit was kept to, and nothing came of killed loads.
    fn verdicts(&self, memory_bytes: u64) -> Vec<Verdict> {
        let name = &self.name;
        let wrong = self.loads.iter().find(|load| load.triples != self.triples);
        let loaded = wrong.map_or(self.triples, |load| load.triples);
        let mut verdicts = vec![Verdict {
            target: format!(
                "{name}: each load has all {} triples",
                thousands(self.triples)
            ),
            found: thousands(loaded),
            outcome: Outcome::of(wrong.is_none()),
        }];
        verdicts.extend(self.memory_verdict(memory_bytes));
        if let Some(after) = &self.after_kills {
            verdicts.extend(self.kill_verdicts(after));
        }
        verdicts
    }

    fn memory_verdict(&self, memory_bytes: u64) -> Option<Verdict> {
        let peak = self.peak_bytes(Way::Within)?;
        let is_kept = peak <= memory_bytes;
        // A load that holds all it has shows nothing by keeping to its limit.
        let is_shown = self.of_way(Way::Within).all(Load::is_spilled);
        Some(Verdict {
            target: format!("{}: resident within {}", self.name, bytes(memory_bytes)),
            found: format!("peak {}", bytes(peak)),
            outcome: match is_kept && !is_shown {
                true => Outcome::NotShown,
                false => Outcome::of(is_kept),
            },
        })
    }

    fn kill_verdicts(&self, after: &AfterKills) -> [Verdict; 2] {
        let name = &self.name;
        let wrong = self.kills.iter().find(|kill| !kill.found.is_right());
        let is_killed = |kill: &&Kill| kill.found != Found::Whole;
        let killed = self.kills.iter().filter(is_killed).count();
        let other = match after.other_bytes {
            0 => String::new(),
            left => format!(", and {} that are not the store's", bytes(left)),
        };
        let whole = after.triples == self.triples && after.other_bytes == 0;
        [
            Verdict {
                target: format!("{name}: a kill leaves no store, as before"),
                found: wrong.map_or_else(
                    || format!("{killed} of {} kills did", self.kills.len()),
                    |kill| kill.found.to_string(),
                ),
                outcome: match (wrong, killed) {
                    (Some(_), _) => Outcome::Missed,
                    (None, 0) => Outcome::NotShown,
                    (None, _) => Outcome::Met,
                },
            },
            Verdict {
                target: format!("{name}: the load after kills is whole, and all there is"),
                found: format!("{} triples{other}", thousands(after.triples)),
                outcome: Outcome::of(whole),
            },
        ]
    }

    fn loads_table(&self) -> Table {
        let mut table = Table::new([
            "load",
            "seconds",
            "triples/s",
            "resident at most",
            "disk at most",
            "store",
        ]);
        for way in [Way::InMemory, Way::Within] {
            let Some((load, peak)) = self.median(way).zip(self.peak_bytes(way)) else {
                continue;
            };
            let disk = self.of_way(way).map(|load| load.most_disk_bytes).max();
            table.row([
                way.to_string(),
                format!("{:.2}", load.seconds),
                thousands(load.speed() as u64),
                bytes(peak),
                bytes(disk.unwrap_or(load.most_disk_bytes)),
                bytes(load.store_bytes),
            ]);
        }
        table
    }

    fn kills_table(&self) -> Table {
        let mut table = Table::new(["killed after", "while", "found", "left on disk"]).of_words();
        for kill in &self.kills {
            table.row([
                format!("{:.2} s", kill.after_seconds),
                kill.step.clone().unwrap_or_else(|| "reading".to_owned()),
                kill.found.to_string(),
                bytes(kill.left_bytes),
            ]);
        }
        table
    }
}

impl BulkReport {
    /// Each target, what was found, and whether that meets it.
    #[must_use]
    pub fn verdicts(&self) -> Vec<Verdict> {
        let graphs = self.graphs.iter();
        let verdicts = graphs.flat_map(|graph| graph.verdicts(self.memory_bytes));
        verdicts.collect()
    }
}

impl Display for Way {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InMemory => "in memory",
            Self::Within => "within the limit",
        })
    }
}

impl Display for Found {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoStore => f.write_str("no store"),
            Self::Whole => f.write_str("the whole store, made before"),
            Self::Other { triples } => write!(f, "a store of {} triples", thousands(*triples)),
            Self::Unreadable { reason } => write!(f, "a store that cannot be read: {reason}"),
        }
    }
}

impl Display for BulkReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "jindou {} on {}", self.version, self.machine)?;
        if !self.optimized {
            writeln!(
                f,
                "This program was built without optimization: build with --release."
            )?;
        }
        writeln!(
            f,
            "loads piped from the generator, {} threads; within {}",
            self.threads,
            bytes(self.memory_bytes)
        )?;
        for graph in &self.graphs {
            write!(
                f,
                "\n{}, {} triples\n{}",
                graph.name,
                thousands(graph.triples),
                graph.loads_table()
            )?;
            if let Some(ratio) = graph.ratio() {
                writeln!(
                    f,
                    "within at {ratio:.2} of the speed in memory; asked: {LEAST_SPEED} or better"
                )?;
            }
            if !graph.kills.is_empty() {
                write!(f, "\n{}", graph.kills_table())?;
            }
        }
        let mut table = Table::new(["target", "found", ""]).of_words();
        for verdict in self.verdicts() {
            table.row([verdict.target, verdict.found, verdict.outcome.to_string()]);
        }
        write!(f, "\n{table}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(way: Way, seconds: f64, peak_bytes: u64, steps: &[&str]) -> Load {
        let step = |name: &&str| Step {
            name: (*name).to_owned(),
            at_seconds: 1.0,
        };
        Load {
            way,
            seconds,
            triples: 1_000,
            text_bytes: 80_000,
            peak_bytes,
            most_disk_bytes: 30_000,
            store_bytes: 10_000,
            steps: steps.iter().map(step).collect(),
        }
    }

    fn report(within: Load) -> BulkReport {
        let kill = |after_seconds, found| Kill {
            after_seconds,
            step: None,
            found,
            left_bytes: 5,
        };
        BulkReport {
            machine: Machine::here(),
            version: "1".to_owned(),
            optimized: true,
            memory_bytes: 1 << 20,
            threads: 2,
            graphs: vec![GraphFigures {
                name: "LUBM(1)".to_owned(),
                triples: 1_000,
                loads: vec![load(Way::InMemory, 2.0, 4 << 20, &[]), within],
                kills: vec![kill(1.0, Found::NoStore), kill(2.0, Found::Whole)],
                after_kills: Some(AfterKills {
                    seconds: 3.0,
                    triples: 1_000,
                    other_bytes: 0,
                }),
            }],
        }
    }

    fn outcomes(report: &BulkReport) -> Vec<Outcome> {
        let verdicts = report.verdicts().into_iter();
        verdicts.map(|verdict| verdict.outcome).collect()
    }

    #[test]
    fn what_is_kept_to_is_met_and_printed_with_the_ratio_of_speeds() {
        let spilled = load(
            Way::Within,
            2.5,
            1 << 20,
            &[MERGING_TERMS, "numbering terms"],
        );
        let report = report(spilled);
        assert_eq!(outcomes(&report), [Outcome::Met; 4]);
        let text = report.to_string();
        for part in [
            "at 0.80 of the speed",
            "1.0 MiB",
            "no store",
            "1 of 2 kills did",
        ] {
            assert!(text.contains(part), "no {part} in\n{text}");
        }
        let json = serde_json::to_string(&report).expect("it is JSON");
        let read: BulkReport = serde_json::from_str(&json).expect("it is a report");
        assert_eq!(read, report);
    }

    #[test]
    fn a_limit_that_nothing_came_near_is_not_shown_and_one_that_is_broken_is_missed() {
        let small = report(load(Way::Within, 2.0, 1 << 19, &["numbering terms"]));
        assert_eq!(outcomes(&small)[1], Outcome::NotShown);
        let large = report(load(Way::Within, 2.0, 1 << 21, &["numbering terms"]));
        assert_eq!(outcomes(&large)[1], Outcome::Missed);
    }

    #[test]
    fn what_is_lost_or_left_is_missed() {
        let mut report = report(load(Way::Within, 2.0, 1 << 19, &[MERGING_TERMS]));
        let graph = &mut report.graphs[0];
        graph.loads[0].triples = 999;
        graph.kills[0].found = Found::Other { triples: 3 };
        graph.after_kills = Some(AfterKills {
            seconds: 3.0,
            triples: 1_000,
            other_bytes: 1,
        });
        let missed = outcomes(&report);
        assert_eq!(
            missed,
            [
                Outcome::Missed,
                Outcome::Met,
                Outcome::Missed,
                Outcome::Missed
            ]
        );
    }
}
