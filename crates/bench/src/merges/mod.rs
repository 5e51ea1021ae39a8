//! What do merges cost, what do they leave, and does anything grow for ever?
//!
//! Five [scenarios](Scenario). [`Scenario::Single`] merges many new triples of one predicate into
//! a large store, first alone and then beside queries. [`Scenario::Stream`] has clients commit new
//! vertices while the background merges, and compares the store that this leaves with a fresh load of
//! the same data and with what numbering its terms anew leaves. [`Scenario::Churn`] inserts and
//! deletes as much for a long time: memory and files must not grow. [`Scenario::Order`] compares
//! ORDER BY over literals of which some were appended with a fresh load. [`Scenario::Birth`] compares a
//! store whose vertices were typed one transaction after all else with a fresh load.
//!
//! All answers are checked; one that differs from that of a fresh load is an error.

mod birth;
mod churn;
mod compare;
mod feed;
mod order;
mod reach;
mod report;
mod single;
mod stream;
mod tenths;
mod vertices;
mod watch;

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use jindou_engine::ingest::{LoadOptions, Progress, Source};
use jindou_engine::{Config, Database, MergePolicy};
use jindou_server::{HeavyPriority, MemoryLimits};
use serde::{Deserialize, Serialize};

pub use report::{
    Birth, Churn, Compared, MergeCost, MergeReport, Order, Ordered, QueryBeside, Single, Sizes,
    Stream,
};
pub use tenths::{Extent, Tenth};

use crate::data::{self, DataFile};
use crate::machine::Machine;
use crate::settle::settle;
use crate::store_folder::StoreFolder;
use crate::{BenchError, run};

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Scenario {
    /// A merge of one predicate, alone and beside queries.
    Single,
    /// Merges in the background of a stream of new vertices.
    Stream,
    /// Transactions that insert and delete as much, for a long time.
    Churn,
    /// ORDER BY, MIN and MAX of literals of which one in ten was appended.
    Order,
    /// Vertices whose types come one transaction after everything else.
    Birth,
}

impl Scenario {
    /// All.
    pub const ALL: [Self; 5] = [
        Self::Single,
        Self::Stream,
        Self::Churn,
        Self::Order,
        Self::Birth,
    ];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Stream => "stream",
            Self::Churn => "churn",
            Self::Order => "order",
            Self::Birth => "birth",
        }
    }
}

impl Display for Scenario {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Scenario {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|one| one.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("no such scenario; there are {names}")
        })
    }
}

/// What to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// Only this scenario.
    pub only: Option<Scenario>,
    /// Universities of [`Scenario::Single`] and [`Scenario::Birth`], and of [`Scenario::Churn`] on LUBM.
    pub universities: u32,
    /// Triples of each merge of [`Scenario::Single`].
    pub triples: u64,
    /// Universities of [`Scenario::Stream`].
    pub stream_universities: u32,
    /// How long its clients commit.
    pub duration: Duration,
    /// How many they are.
    pub clients: usize,
    /// Whether they commit, and ask, over HTTP.
    pub http: bool,
    /// Triples a second that they change together, if the database takes as many.
    pub rate: u64,
    /// Literals of each kind of [`Scenario::Order`].
    pub literals: u64,
    /// Timed runs of each query on each of the stores of [`Scenario::Stream`], [`Scenario::Order`] and
    /// [`Scenario::Birth`].
    pub runs: u32,
    /// Transactions of [`Scenario::Churn`].
    pub transactions: u64,
    /// After how many of them what one inserted is deleted.
    pub live: u64,
    /// Whether to measure that on LUBM, too.
    pub on_lubm: bool,
    /// When the background merges in [`Scenario::Stream`] and [`Scenario::Churn`].
    pub merge: MergePolicy,
    /// Where data files and stores go; the stores are removed afterwards.
    pub folder: PathBuf,
}

impl Options {
    /// The usual measurement of this many universities.
    #[must_use]
    pub fn new(universities: u32) -> Self {
        Self {
            only: None,
            universities,
            triples: 120_000,
            stream_universities: 5,
            duration: Duration::from_secs(20),
            clients: 4,
            http: false,
            rate: 200_000,
            literals: 500_000,
            runs: 30,
            transactions: 500_000,
            live: 10_000,
            on_lubm: false,
            merge: MergePolicy::default(),
            folder: data::DEFAULT_FOLDER.into(),
        }
    }

    fn wants(&self, scenario: Scenario) -> bool {
        self.only.is_none_or(|only| only == scenario)
    }

    fn config(&self) -> Config {
        let mut config = match self.http {
            true => MemoryLimits::default().engine_config(HeavyPriority::default()),
            false => Config::default(),
        };
        config.merge = self.merge;
        config
    }
}

/// Measures; `note` is told what is being done, a few words at a time.
///
/// # Errors
/// Any [`BenchError`]; a wrong number of rows or triples among them.
pub fn measure(options: &Options, mut note: impl FnMut(&str)) -> Result<MergeReport, BenchError> {
    fs::create_dir_all(&options.folder).map_err(BenchError::io(&options.folder))?;
    let mut report = MergeReport {
        machine: Machine::here(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        optimized: !cfg!(debug_assertions),
        single: None,
        stream: None,
        churn: Vec::new(),
        order: None,
        birth: None,
    };
    if options.wants(Scenario::Single) {
        report.single = Some(single::measure(options, &mut note)?);
    }
    if options.wants(Scenario::Stream) {
        report.stream = Some(stream::measure(options, &mut note)?);
    }
    if options.wants(Scenario::Churn) {
        report.churn.push(churn::measure(options, None, &mut note)?);
        if options.on_lubm {
            let on = Some(options.universities);
            report.churn.push(churn::measure(options, on, &mut note)?);
        }
    }
    if options.wants(Scenario::Order) {
        report.order = Some(order::measure(options, &mut note)?);
    }
    if options.wants(Scenario::Birth) {
        report.birth = Some(birth::measure(options, &mut note)?);
    }
    Ok(report)
}

impl StoreFolder {
    /// A new store with the triples of a file; gives the time of the load as well.
    fn load(&self, file: &Path, config: Config) -> Result<(Database, Duration), BenchError> {
        jindou_fabric::allocator::release_free_memory();
        let load = || -> Result<Database, BenchError> {
            let sources = vec![Source::path(file)];
            let (options, progress) = (LoadOptions::default(), Progress::default());
            Ok(Database::create(self.path(), sources, &options, &progress, config)?.0)
        };
        let loaded = run::once(load)?;
        jindou_fabric::allocator::release_free_memory();
        Ok(loaded)
    }

    /// A new store with generated data.
    fn load_lubm(
        &self,
        file: &DataFile,
        config: Config,
    ) -> Result<(Database, Duration), BenchError> {
        let loaded = self.load(&file.path, config)?;
        let (expected, found) = (file.counts.distinct(), loaded.0.quad_counts().triples);
        if expected != found {
            return Err(BenchError::TriplesDiffer {
                file: file.path.clone(),
                expected,
                found,
            });
        }
        Ok(loaded)
    }
}

/// Whether the store holds as many triples as it should.
fn check_held(database: &Database, when: &'static str, expected: u64) -> Result<(), BenchError> {
    let found = database.quad_counts().total();
    if found == expected {
        return Ok(());
    }
    Err(BenchError::HeldDiffer {
        when,
        expected,
        found,
    })
}

/// Merges, and renumberings, of a store since it had `before`.
fn merges_since(before: (u64, u64), database: &Database) -> u64 {
    let now = database.data_memory(None).generation;
    match now.0 == before.0 {
        true => now.1 - before.1,
        // Merges of a generation that went are not known any more.
        false => now.0 - before.0 + now.1,
    }
}
