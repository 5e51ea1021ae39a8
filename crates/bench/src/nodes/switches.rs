//! What does each part of the distribution of queries contribute?
//!
//! As table 5 of the Wukong paper (OSDI'16, section 7.3): from a base on, one part after the other is switched
//! on and stays so. Messages of sub-queries go as bytes in all of them, as between processes. That lists lie by
//! predicate cannot be switched off.

use std::fmt::{self, Display, Formatter};

use jindou_datagen::lubm::Lubm;
use jindou_engine::{Config, Database, ForkPolicy, MessageLimits};
use serde::Serialize;

use super::{
    Options, Places, Traffic, medians, on_logical_nodes, reached, traffic, traffic_table, wanted,
};
use crate::BenchError;
use crate::data;
use crate::figure::geometric_mean;
use crate::machine::Machine;
use crate::run;
use crate::table::{Table, millis};

/// How many settings are compared.
const SETTINGS: usize = 5;

/// What one setting adds to the one before.
#[derive(Clone, Copy)]
struct Switch {
    name: &'static str,
    switch: fn(&mut Config),
}

const SWITCHES: [Switch; SETTINGS] = [
    Switch {
        name: "base",
        switch: |config| {
            config.fork_messages = Some(MessageLimits::default());
            config.fork_policy = ForkPolicy::ForkJoin;
            config.fork_history_bytes = 0;
            config.reads_one_sided = false;
            config.splits_scans = false;
        },
    },
    Switch {
        name: "+ one-sided",
        switch: |config| config.reads_one_sided = true,
    },
    Switch {
        name: "+ history",
        switch: |config| config.fork_history_bytes = Config::default().fork_history_bytes,
    },
    Switch {
        name: "+ split scans",
        switch: |config| config.splits_scans = true,
    },
    Switch {
        name: "+ dynamic",
        switch: |config| config.fork_policy = ForkPolicy::Dynamic,
    },
];

/// What the columns are.
const ABOUT: &str = "\
Each column has what those before it have. In base all rows go to their keys, with nothing but what the steps
there read, and are joined with the rest; lists are asked for by messages; one node scans all of an index. That
lists lie by predicate cannot be switched off: it is in all columns.
";

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct SwitchesReport {
    /// Where.
    pub machine: Machine,
    /// Universities of the data.
    pub universities: u32,
    /// Logical nodes.
    pub nodes: u32,
    /// Virtual shards.
    pub shards: usize,
    /// How the nodes reach each other's memory.
    pub fabric: &'static str,
    /// By query.
    pub figures: Vec<SwitchesFigures>,
}

/// One query with each more that is switched on.
#[derive(Debug, Clone, Serialize)]
pub struct SwitchesFigures {
    /// Its name.
    pub name: String,
    /// Rows of its answer.
    pub rows: u64,
    /// By setting, from the base on.
    pub settings: [SettingFigures; SETTINGS],
}

/// One query with one setting.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct SettingFigures {
    /// What is switched on last.
    pub name: &'static str,
    /// The median in milliseconds.
    pub ms: f64,
    /// What goes to other nodes and is read of them.
    pub traffic: Traffic,
}

/// Measures what each switch does to each query, on logical nodes.
///
/// # Errors
/// Any [`BenchError`]; [`BenchError::RowsDiffer`] means a wrong answer.
pub fn measure(
    options: &Options,
    mut note: impl FnMut(&str),
) -> Result<SwitchesReport, BenchError> {
    note("generating the data");
    let file = data::lubm_file(&options.folder, Lubm::new(options.universities, 0))?;
    let places = Places::of(file.path.clone())?;
    note("loading, on one node");
    let one = places.load_with(Config::default())?;
    let databases = load(&places, options, &mut note)?;
    let mut figures = Vec::new();
    for (name, text) in wanted(options.only.as_deref()) {
        note(name);
        let rows = run::as_ids(&one, text, 1)?.rows;
        figures.push(measure_query((name, text, rows), &databases, options.runs)?);
    }
    Ok(SwitchesReport {
        machine: Machine::here(),
        universities: options.universities,
        nodes: options.nodes,
        shards: options.shards.count(),
        fabric: reached(options.fabric),
        figures,
    })
}

/// The data with each setting.
fn load(
    places: &Places,
    options: &Options,
    mut note: impl FnMut(&str),
) -> Result<Vec<Database>, BenchError> {
    let mut config = on_logical_nodes(options, ForkPolicy::default());
    let mut databases = Vec::with_capacity(SETTINGS);
    for Switch { name, switch } in SWITCHES {
        note(&format!("loading, {name}"));
        switch(&mut config);
        databases.push(places.load_with(config.clone())?);
    }
    Ok(databases)
}

fn measure_query(
    query: (&str, &str, u64),
    databases: &[Database],
    runs: u32,
) -> Result<SwitchesFigures, BenchError> {
    let (name, text, rows) = query;
    let numbers: [usize; SETTINGS] = std::array::from_fn(|number| number);
    let ways = numbers.map(|number| (&databases[number], SWITCHES[number].name));
    let medians = medians(query, ways, runs)?;
    let mut settings = Vec::with_capacity(SETTINGS);
    for ((database, name), ms) in ways.into_iter().zip(medians) {
        let traffic = traffic(database, text)?;
        settings.push(SettingFigures { name, ms, traffic });
    }
    Ok(SwitchesFigures {
        name: name.to_owned(),
        rows,
        settings: settings.try_into().expect("each setting has figures"),
    })
}

impl SwitchesReport {
    /// The geometric mean of all queries' medians with each setting.
    fn means(&self) -> impl Iterator<Item = String> {
        (0..SETTINGS).map(|setting| {
            let figures = self.figures.iter();
            let mean = geometric_mean(figures.map(|figures| figures.settings[setting].ms));
            mean.map(millis).unwrap_or_default()
        })
    }
}

impl Display for SwitchesReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            universities,
            nodes,
            shards,
            fabric,
            ..
        } = self;
        writeln!(f, "{}", self.machine)?;
        writeln!(
            f,
            "LUBM({universities}), {shards} shards on {nodes} logical nodes of this process, whose memory \
             is {fabric}; one thread reads, medians in ms\n"
        )?;
        writeln!(f, "{ABOUT}")?;
        let names = SWITCHES.map(|switch| switch.name);
        let mut times = Table::new(["query", "rows"].into_iter().chain(names));
        for figures in &self.figures {
            let cells = figures.settings.iter().map(|setting| millis(setting.ms));
            times.row(
                [figures.name.clone(), figures.rows.to_string()]
                    .into_iter()
                    .chain(cells),
            );
        }
        let heading = ["geometric mean", ""].map(str::to_owned);
        times.row(heading.into_iter().chain(self.means()));
        writeln!(f, "{times}")?;
        let sent = self.figures.iter().flat_map(|figures| {
            let settings = figures.settings.iter();
            settings.map(|setting| (&figures.name, setting.name, setting.traffic))
        });
        write!(f, "{}", traffic_table(sent))
    }
}

#[cfg(test)]
mod tests {
    use jindou_engine::{NodeFabric, QueryResults, Shards};

    use super::*;

    fn options(folder: &std::path::Path) -> Options {
        Options {
            universities: 1,
            folder: folder.to_owned(),
            nodes: 3,
            shards: Shards::new(8).unwrap(),
            fabric: NodeFabric::Local,
            processes: None,
            heavy_priority: None,
            only: None,
            runs: 1,
        }
    }

    fn rows(database: &Database, text: &str) -> Vec<String> {
        let QueryResults::Solutions(solutions) = database.query(text).unwrap() else {
            panic!("a SELECT");
        };
        let mut rows: Vec<String> = solutions.map(|row| format!("{:?}", row.unwrap())).collect();
        rows.sort_unstable();
        rows
    }

    #[test]
    fn each_switch_changes_what_goes_and_no_answer() {
        let folder = tempfile::tempdir().unwrap();
        let options = options(folder.path());
        let report = measure(&options, |_| ()).unwrap();
        let sum = |setting: usize, of: fn(&Traffic) -> u64| {
            let figures = report.figures.iter();
            let sent = figures.map(|figures| of(&figures.settings[setting].traffic));
            sent.sum::<u64>()
        };
        let [base, one_sided, history, split, dynamic] = [0, 1, 2, 3, 4];
        assert_eq!(sum(base, |sent| sent.reads), 0, "all lists are asked for");
        assert_eq!(sum(one_sided, |sent| sent.calls), 0, "none is");
        let rows =
            [one_sided, history, split, dynamic].map(|setting| sum(setting, |sent| sent.rows));
        assert!(rows.is_sorted_by(|more, fewer| more >= fewer), "{rows:?}");
        let text = report.to_string();
        assert!(text.contains("geometric mean"), "{text}");
    }

    #[test]
    fn all_settings_give_the_answers_of_one_node() {
        let folder = tempfile::tempdir().unwrap();
        let options = options(folder.path());
        let file = data::lubm_file(&options.folder, Lubm::new(options.universities, 0)).unwrap();
        let places = Places::of(file.path).unwrap();
        let one = places.load_with(Config::default()).unwrap();
        let databases = load(&places, &options, |_| ()).unwrap();
        for (name, text) in wanted(None) {
            let expected = rows(&one, text);
            for (database, switch) in databases.iter().zip(SWITCHES) {
                let setting = switch.name;
                assert!(rows(database, text) == expected, "{name}, {setting}");
            }
        }
    }
}
