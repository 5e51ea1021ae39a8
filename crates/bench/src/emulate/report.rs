//! What does the measurement of emulated clients say, and how is it printed and drawn?

use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Beside;
use crate::BenchError;
use crate::machine::Machine;
use crate::percentiles::Percentiles;
use crate::plot::{Axis, Chart, Series};
use crate::table::{Table, thousands};

/// All figures. `Display` is aligned tables, serde gives JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EmulateReport {
    /// Where it was measured.
    pub machine: Machine,
    /// Universities of the data.
    pub universities: u32,
    /// Virtual shards of several nodes.
    pub shards: usize,
    /// How the nodes reach each other's memory.
    pub fabric: String,
    /// Nodes are processes.
    pub are_processes: bool,
    /// Clients of light queries.
    pub clients: u32,
    /// How long they asked, each time.
    pub seconds: f64,
    /// The classes.
    pub classes: Vec<ClassLatency>,
    /// By number of nodes, each alone and then beside heavy queries of either priority.
    pub runs: Vec<EmulateRun>,
}

/// A class of light queries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassLatency {
    /// Its name.
    pub name: String,
    /// Its median in microseconds, one query at a time at the first number of nodes.
    pub alone_us: f64,
    /// Its part of all queries.
    pub share: f64,
}

/// What clients got.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EmulateRun {
    /// Nodes.
    pub nodes: u32,
    /// What ran all the time.
    pub beside: Beside,
    /// Light queries that were answered,
    pub queries: u64,
    /// and how many a second.
    pub queries_per_second: f64,
    /// By class, in the order of the report's; none for one that nobody asked.
    pub classes: Vec<Option<Percentiles>>,
    /// The heavy queries.
    pub heavy: Option<Percentiles>,
}

impl Beside {
    /// What is said of a run.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::Classes => ", beside a heavy query",
            Self::Same => ", beside a heavy query of the same priority",
        }
    }

    /// The same as a word.
    fn word(self) -> &'static str {
        match self {
            Self::Nothing => "-",
            Self::Classes => "idle",
            Self::Same => "same",
        }
    }
}

impl EmulateRun {
    /// The geometric mean of a figure of all classes, in microseconds.
    fn mean(&self, figure: impl Fn(&Percentiles) -> f64) -> f64 {
        let figures: Vec<f64> = (self.classes.iter().flatten())
            .map(|class| figure(class).ln())
            .collect();
        (figures.iter().sum::<f64>() / figures.len().max(1) as f64).exp()
    }
}

impl EmulateReport {
    /// The run of as many nodes that is quiet.
    fn quiet(&self, nodes: u32) -> Option<&EmulateRun> {
        self.runs
            .iter()
            .find(|run| run.nodes == nodes && run.beside == Beside::Nothing)
    }

    /// How many times as many queries a second a run answers as the first one, which is quiet.
    fn against_first(&self, run: &EmulateRun) -> f64 {
        let first = self
            .runs
            .first()
            .map_or(f64::NAN, |first| first.queries_per_second);
        run.queries_per_second / first
    }

    /// Writes the plots into a folder, which is made, and returns their paths.
    ///
    /// # Errors
    /// [`BenchError::Io`].
    pub fn write_plots(&self, folder: &Path) -> Result<Vec<PathBuf>, BenchError> {
        std::fs::create_dir_all(folder).map_err(BenchError::io(folder))?;
        let mut plots = vec![("throughput".to_owned(), self.throughput())];
        for run in &self.runs {
            let name = match run.beside {
                Beside::Nothing => format!("cdf-{}", run.nodes),
                beside => format!("cdf-{}-heavy-{}", run.nodes, beside.word()),
            };
            plots.push((name, self.distributions(run)));
        }
        let mut paths = Vec::new();
        for (name, chart) in plots {
            let path = folder.join(format!("{name}.svg"));
            std::fs::write(&path, chart.to_string()).map_err(BenchError::io(&path))?;
            paths.push(path);
        }
        Ok(paths)
    }

    fn setting(&self) -> String {
        let kind = match self.are_processes {
            true => "processes",
            false => "logical nodes",
        };
        format!(
            "LUBM({}), {} shards, {kind} whose memory is {}, {} clients, {}",
            self.universities, self.shards, self.fabric, self.clients, self.machine.cpu
        )
    }

    fn throughput(&self) -> Chart {
        let series = Beside::ALL.map(|beside| Series {
            name: match beside {
                Beside::Nothing => "alone".to_owned(),
                beside => beside.text().trim_start_matches(", ").to_owned(),
            },
            points: (self.runs.iter().filter(|run| run.beside == beside))
                .map(|run| (f64::from(run.nodes), run.queries_per_second))
                .collect(),
            colour: beside as usize,
            is_dashed: beside != Beside::Nothing,
        });
        Chart {
            title: "Light queries a second, by nodes".to_owned(),
            subtitle: self.setting(),
            x: Axis::linear("nodes").with_marks(self.runs.iter().map(|run| f64::from(run.nodes))),
            y: Axis::linear("queries/s"),
            series: series.into(),
        }
    }

    fn distributions(&self, run: &EmulateRun) -> Chart {
        let classes = self.classes.iter().zip(&run.classes).enumerate();
        let series = classes.filter_map(|(colour, (class, waits))| {
            Some(Series {
                name: class.name.clone(),
                points: waits.as_ref()?.points(),
                colour,
                is_dashed: false,
            })
        });
        Chart {
            title: format!(
                "Latency of classes, {} nodes{}",
                run.nodes,
                run.beside.text()
            ),
            subtitle: self.setting(),
            x: Axis::log("latency, us"),
            y: Axis::linear("queries, %"),
            series: series.collect(),
        }
    }
}

impl Display for EmulateReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.machine)?;
        let kind = match self.are_processes {
            true => "each a process,",
            false => "of this process,",
        };
        writeln!(
            f,
            "LUBM({}), {} shards; nodes, {kind} whose memory is {}; {} clients, {} s each; ids only\n",
            self.universities, self.shards, self.fabric, self.clients, self.seconds
        )?;
        let mut table = Table::new([
            "nodes",
            "heavy",
            "queries/s",
            "of first",
            "median us",
            "p99 us",
            "of quiet",
            "heavy, ms",
        ]);
        for run in &self.runs {
            let p99 = run.mean(|class| class.p99_us);
            let quiet = self
                .quiet(run.nodes)
                .map(|quiet| quiet.mean(|class| class.p99_us));
            table.row([
                run.nodes.to_string(),
                run.beside.word().to_owned(),
                thousands(run.queries_per_second.round() as u64),
                format!("{:.2}", self.against_first(run)),
                format!("{:.1}", run.mean(|class| class.median_us)),
                format!("{p99:.1}"),
                quiet.map_or("-".to_owned(), |quiet| format!("{:.2}", p99 / quiet)),
                (run.heavy.as_ref()).map_or("-".to_owned(), |heavy| {
                    format!("{:.0}", heavy.median_us / 1e3)
                }),
            ]);
        }
        writeln!(f, "{table}")?;
        let mut headings = vec!["us".to_owned(), "share".to_owned(), "alone".to_owned()];
        for run in &self.runs {
            let heavy = match run.beside {
                Beside::Nothing => String::new(),
                beside => format!(" {}", beside.word()),
            };
            headings.push(format!("{}{heavy} p50", run.nodes));
            headings.push("p99".to_owned());
        }
        let mut table = Table::new(headings);
        for (number, class) in self.classes.iter().enumerate() {
            let mut cells = vec![
                class.name.clone(),
                format!("{:.1} %", class.share * 100.0),
                format!("{:.1}", class.alone_us),
            ];
            for run in &self.runs {
                let waits = run.classes.get(number).and_then(Option::as_ref);
                let us = |us: Option<f64>| us.map_or("-".to_owned(), |us| format!("{us:.1}"));
                cells.push(us(waits.map(|waits| waits.median_us)));
                cells.push(us(waits.map(|waits| waits.p99_us)));
            }
            table.row(cells);
        }
        write!(f, "{table}")
    }
}
