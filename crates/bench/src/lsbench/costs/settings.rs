//! What do queries and batches cost with and without what makes them fast, or durable?

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use jindou_datagen::lsbench::{Lsbench, Stream};
use jindou_engine::{Config, Database, Fsync, KeepSolutions};
use serde::{Deserialize, Serialize};

use super::super::feed::Feed;
use super::super::queries::{QUERIES, Query};
use super::super::{Options, QueryFigures, setup};
use crate::BenchError;
use crate::percentiles::Percentiles;
use crate::store_folder::StoreFolder;

/// What is another way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Nothing,
    EachByItself,
    NothingKept,
    InFolder,
    Durable,
    DurableUnsynced,
}

/// All, each with its name.
const CHANGES: [(Change, &str); 6] = [
    (Change::Nothing, "in memory"),
    (Change::EachByItself, "in memory, each query by itself"),
    (Change::NothingKept, "in memory, no solutions kept"),
    (Change::InFolder, "in a folder"),
    (Change::Durable, "in a folder, durable streams"),
    (
        Change::DurableUnsynced,
        "in a folder, durable streams, no fsync",
    ),
];

/// Figures of one setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// What it is.
    pub name: String,
    /// The queries.
    pub queries: Vec<QueryFigures>,
    /// What pushing a batch of all streams takes.
    pub pushing: Percentiles,
    /// What completing it takes, evaluations included.
    pub completing: Percentiles,
    /// Seconds of all pushes and completions,
    pub whole_seconds: f64,
    /// of which so many were evaluations.
    pub evaluating_seconds: f64,
}

impl Setting {
    /// Evaluations that failed.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.queries.iter().map(|query| query.failures).sum()
    }
}

pub(super) fn measure(
    data: &Lsbench,
    options: &Options,
    location: &Path,
    note: &mut impl FnMut(&str),
) -> Result<Vec<Setting>, BenchError> {
    let mut settings = Vec::new();
    for (change, name) in CHANGES {
        note(name);
        settings.push(one(data, options, location, (change, name))?);
        jindou_fabric::allocator::release_free_memory();
    }
    Ok(settings)
}

fn one(
    data: &Lsbench,
    options: &Options,
    location: &Path,
    (change, name): (Change, &str),
) -> Result<Setting, BenchError> {
    // Declared before the database, which must be gone before the folder.
    let folder = StoreFolder::new(location, "costs");
    let database = if change.is_in_folder() {
        fs::create_dir_all(location).map_err(BenchError::io(location))?;
        Database::open_or_create(folder.path(), change.config())?
    } else {
        Database::with_config(change.config())
    };
    setup::load(&database, data)?;
    for stream in Stream::ALL {
        let mut definition = setup::definition(stream);
        definition.durable = change.is_durable();
        database.create_stream(stream.name(), definition)?;
    }
    for query in classes() {
        let many = if query.is_selective {
            options.selective
        } else {
            1
        };
        setup::register(&database, query, many, options)?;
    }
    let (pushing, completing) = replay(&database, data, options)?;
    let whole: Duration = pushing.iter().chain(&completing).sum();
    let all = database.continuous_queries();
    let queries = classes().filter_map(|query| QueryFigures::of(query.name, &all));
    Ok(Setting {
        name: name.to_owned(),
        queries: queries.collect(),
        evaluating_seconds: all.iter().map(|query| query.seconds).sum(),
        whole_seconds: whole.as_secs_f64(),
        pushing: of_batches(pushing)?,
        completing: of_batches(completing)?,
    })
}

/// The classes of the paper.
fn classes() -> impl Iterator<Item = &'static Query> {
    QUERIES.iter().filter(|query| query.name.starts_with('L'))
}

impl Change {
    fn config(self) -> Config {
        let mut config = Config::default();
        match self {
            Self::EachByItself => config.together_from = usize::MAX,
            Self::NothingKept => config.keep_solutions = KeepSolutions::Never,
            Self::DurableUnsynced => config.durability.fsync = Fsync::Never,
            Self::Nothing | Self::InFolder | Self::Durable => {}
        }
        config
    }

    fn is_durable(self) -> bool {
        matches!(self, Self::Durable | Self::DurableUnsynced)
    }

    fn is_in_folder(self) -> bool {
        self.is_durable() || self == Self::InFolder
    }
}

fn of_batches(times: Vec<Duration>) -> Result<Percentiles, BenchError> {
    Percentiles::of(times).ok_or_else(|| BenchError::NoLight {
        reason: "the streams have no batch".to_owned(),
    })
}

/// What pushing and completing each batch took.
fn replay(
    database: &Database,
    data: &Lsbench,
    options: &Options,
) -> Result<(Vec<Duration>, Vec<Duration>), BenchError> {
    let mut feed = Feed::new(data, options, options.seconds)?;
    let (mut pushing, mut completing) = (Vec::new(), Vec::new());
    while let Some(mut batch) = feed.next_batch() {
        let begun = Instant::now();
        batch.push(database)?;
        pushing.push(begun.elapsed());
        let begun = Instant::now();
        batch.complete(database)?;
        completing.push(begun.elapsed());
    }
    Ok((pushing, completing))
}
