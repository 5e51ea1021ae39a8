//! Do our engine and the oracle hold and answer the same after each step of a sequence of updates?

use crate::contents::{graphs, quads, row_of};
use crate::differential::{Outcome, compare, compare_select, compare_to_definitions, ground};
use crate::engines::{guarded, settings, without_source_prefix};
use crate::isomorphism::isomorphic;
use crate::random::Random;
use crate::random_update::{Sequence, Setting, Step, quads_of, update_oracle};
use jindou_engine::ingest::{Progress, Source};
use jindou_engine::{Config, Database, LoadOptions, MergePolicy};
use oxigraph::store::Store;
use oxrdf::{Dataset, NamedNode, NamedOrBlankNode, Quad, Term};
use std::fmt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Time that a merge under way may keep the directory after the last handle is gone.
const PATIENCE: Duration = Duration::from_secs(30);

/// What was compared.
#[derive(Debug, Clone, Copy, Default)]
pub struct Compared {
    /// Requests that were executed.
    pub updates: u64,
    /// Requests that failed on both sides.
    pub refused: u64,
    /// Queries that were answered.
    pub queries: u64,
    /// Queries with an answer that held anything.
    pub with_results: u64,
    /// Merges that were asked for and had something to do.
    pub merges: u64,
    /// Times that a database was opened again.
    pub reopened: u64,
}

/// What is merged after each request, on top of what a sequence says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forced {
    /// Nothing.
    Nothing,
    /// All predicates that have changed.
    All,
    /// Half of the predicates that have changed, chosen anew each time by this seed.
    Half(u64),
}

impl Forced {
    /// Merges what is to be merged after a request, the `step`-th.
    ///
    /// # Errors
    /// Whatever the engine says.
    pub fn merge(self, database: &Database, step: u64) -> Result<bool, jindou_engine::EngineError> {
        match self {
            Self::Nothing => Ok(false),
            Self::All => database.compact(),
            Self::Half(seed) => database.compact_some(&half(seed.wrapping_add(step))),
        }
    }
}

/// A choice of some half of all predicates by their IRIs.
pub fn half(seed: u64) -> impl Fn(&str) -> bool {
    move |iri: &str| {
        let mix = |hash: u64, byte: u8| Random::new(hash ^ u64::from(byte)).bits();
        iri.bytes().fold(Random::new(seed).bits(), mix) >> 63 == 1
    }
}

/// The step of a sequence from which on the engines part.
#[derive(Debug)]
pub struct Parting {
    /// Which step, or none where the first load differs.
    pub step: usize,
    /// How they differ.
    pub reason: String,
}

impl fmt::Display for Parting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {}: {}", self.step, self.reason)
    }
}

struct Life {
    /// None only while it is opened again.
    database: Option<Database>,
    folder: Option<TempDir>,
    setting: Setting,
    forced: Forced,
    /// Requests so far.
    requests: u64,
    store: Store,
    compared: Compared,
}

/// Lives through a sequence with both engines, with more merges than it has.
///
/// # Errors
/// The first step after which they differ, or where ours fails.
pub fn run(sequence: &Sequence, forced: Forced) -> Result<Compared, Parting> {
    let parting = |step: usize, reason: String| Parting { step, reason };
    let mut life = guarded(|| Life::new(sequence, forced))
        .and_then(|life| life)
        .map_err(|reason| parting(0, reason))?;
    for (index, step) in sequence.steps.iter().enumerate() {
        guarded(|| life.step(step))
            .and_then(|outcome| outcome)
            .map_err(|reason| parting(index, reason))?;
    }
    Ok(life.compared)
}

fn config(setting: Setting) -> Config {
    let mut config = settings();
    config.threads = 2;
    config.durability.fsync = jindou_engine::Fsync::Never;
    config.merge = MergePolicy::never();
    config.merge.log_bytes = setting.log_bytes;
    if let Some(changes) = setting.merge_changes {
        config.merge.changes = changes;
        config.merge.share_of_graph = u64::MAX;
    }
    config
}

fn source(quads: &[Quad]) -> Vec<Source> {
    let lines: String = quads.iter().map(|quad| format!("{quad} .\n")).collect();
    vec![Source::bytes("data.nq", lines.into_bytes())]
}

impl Life {
    fn new(sequence: &Sequence, forced: Forced) -> Result<Self, String> {
        let setting = sequence.setting;
        let told = |error: jindou_engine::EngineError| error.to_string();
        let mut life = Self {
            database: None,
            folder: None,
            setting,
            forced,
            requests: 0,
            store: Store::new().expect("a store in memory"),
            compared: Compared::default(),
        };
        let database = if setting.stored {
            let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
            let location = folder.path().join("store");
            life.folder = Some(folder);
            Database::open_or_create(&location, config(setting)).map_err(told)?
        } else {
            Database::with_config(config(setting))
        };
        life.database = Some(database);
        if !sequence.quads.is_empty() {
            life.load(&sequence.quads)?;
        }
        life.compare_contents()?;
        Ok(life)
    }

    fn database(&self) -> &Database {
        self.database.as_ref().expect("it is open")
    }

    fn load(&mut self, quads: &[Quad]) -> Result<(), String> {
        self.database()
            .load(source(quads), &LoadOptions::default(), &Progress::default())
            .map_err(|error| error.to_string())?;
        self.store
            .extend(quads.iter().cloned())
            .expect("a store in memory");
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Update(request) => {
                self.update(request)?;
                self.compare_contents()
            }
            Step::Query(query) => {
                let outcome = compare(self.database(), &self.dataset(), query);
                self.note(outcome)
            }
            Step::Defined(query) => {
                // The oracle locks what it iterates over.
                let graphs: Vec<_> = self.store.named_graphs().collect();
                let graphs = graphs.into_iter().map(|graph| {
                    let graph = graph.expect("a store in memory");
                    Term::from(graph)
                });
                let (quads, graphs) = (quads_of(&self.store), graphs.collect::<Vec<_>>());
                let outcome = compare_to_definitions(self.database(), &quads, &graphs, query);
                self.note(outcome)
            }
            Step::Select(query) => {
                let outcome = compare_select(self.database(), &self.dataset(), query);
                self.note(outcome)
            }
            Step::Load(quads) => {
                self.load(quads)?;
                self.compare_contents()
            }
            Step::Merge => {
                let merged = self.database().compact();
                self.compared.merges += u64::from(merged.map_err(|error| error.to_string())?);
                self.compare_contents()
            }
            Step::Checkpoint => self
                .database()
                .checkpoint()
                .map_err(|error| error.to_string()),
            Step::Reopen => self.reopen(),
        }
    }

    fn update(&mut self, request: &str) -> Result<(), String> {
        let expected = update_oracle(&self.store, request);
        let actual = self.database().update(request);
        match (expected, actual) {
            (Ok(()), Ok(_)) => self.compared.updates += 1,
            (Err(_), Err(_)) => self.compared.refused += 1,
            (Ok(()), Err(error)) => return Err(format!("the engine says: {error}")),
            (Err(error), Ok(_)) => return Err(format!("only the oracle says: {error}")),
        }
        let told = |error: jindou_engine::EngineError| error.to_string();
        // Now and then the lists that are merged were written out before.
        if self.compared.updates.is_multiple_of(2) {
            self.database().fold().map_err(told)?;
        }
        let merged = self.forced.merge(self.database(), self.requests);
        self.requests += 1;
        self.compared.merges += u64::from(merged.map_err(told)?);
        Ok(())
    }

    fn reopen(&mut self) -> Result<(), String> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let location = folder.path().join("store");
        let before = graphs(self.database()).map_err(|error| error.to_string())?;
        drop(self.database.take());
        let database = self.open(&location)?;
        self.database = Some(database);
        self.compared.reopened += 1;
        let after = graphs(self.database()).map_err(|error| error.to_string())?;
        if before != after {
            return Err(format!("graphs {after:?} after opening, {before:?} before"));
        }
        self.compare_contents()
    }

    /// Opens the database, once a merge that was under way when it was dropped has ended.
    fn open(&self, location: &Path) -> Result<Database, String> {
        let begin = Instant::now();
        loop {
            match Database::open(location, config(self.setting)) {
                Ok(database) => return Ok(database),
                Err(error)
                    if error.to_string().contains("is using this store")
                        && begin.elapsed() < PATIENCE =>
                {
                    thread::yield_now();
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    fn dataset(&self) -> Dataset {
        quads_of(&self.store).iter().collect()
    }

    fn note(&mut self, outcome: Outcome) -> Result<(), String> {
        match outcome {
            Outcome::Same { something } => {
                self.compared.queries += 1;
                self.compared.with_results += u64::from(something);
                Ok(())
            }
            Outcome::Unsupported(_) | Outcome::TooLarge => Ok(()),
            Outcome::Invalid(reason) => Err(format!("a wrong query: {reason}")),
            Outcome::Different(reason) => Err(reason),
        }
    }

    /// The same quads, and graphs as far as both have the same idea of them: one that was emptied
    /// by deleting is there in the oracle, and is made to vanish.
    fn compare_contents(&self) -> Result<(), String> {
        let told = |error: jindou_engine::EngineError| error.to_string();
        let grounded = |rows: Vec<Vec<Option<Term>>>, label: fn(&str) -> &str| -> Vec<_> {
            rows.into_iter()
                .map(|row| {
                    let cells = row.into_iter();
                    cells
                        .map(|term| term.map(|term| ground(term, label)))
                        .collect()
                })
                .collect()
        };
        let actual: Vec<Vec<Option<Term>>> =
            grounded(quads(self.database()).map_err(told)?, without_source_prefix);
        let expected_quads = quads_of(&self.store);
        let expected = grounded(expected_quads.iter().map(row_of).collect(), |label| label);
        if !isomorphic(&expected, &actual, false) {
            return Err(format!(
                "other quads\nonly the oracle has:\n{}only the engine has:\n{}",
                lines(&expected, &actual),
                lines(&actual, &expected)
            ));
        }
        let actual = graphs(self.database()).map_err(told)?;
        // The oracle locks what it iterates over.
        let known: Vec<_> = self.store.named_graphs().collect();
        for graph in known {
            let Ok(NamedOrBlankNode::NamedNode(name)) = graph else {
                continue;
            };
            let is_empty = !expected_quads
                .iter()
                .any(|quad| quad.graph_name == name.clone().into());
            if actual.contains(name.as_str()) {
                continue;
            }
            if !is_empty {
                return Err(format!("the graph {name} has quads and is absent"));
            }
            self.store
                .remove_named_graph(&name)
                .expect("a store in memory");
        }
        for graph in &actual {
            let known = self
                .store
                .contains_named_graph(&NamedNode::new_unchecked(graph))
                .expect("a store in memory");
            if !known {
                return Err(format!("there is a graph <{graph}>"));
            }
        }
        Ok(())
    }
}

/// The rows of `some` that `others` lack, blank nodes aside.
fn lines(some: &[Vec<Option<Term>>], others: &[Vec<Option<Term>>]) -> String {
    let shown = |row: &Vec<Option<Term>>| {
        let cells = row.iter().map(|term| match term {
            Some(Term::BlankNode(_)) => "_:".to_owned(),
            Some(term) => term.to_string(),
            None => "-".to_owned(),
        });
        cells.collect::<Vec<_>>().join(" ")
    };
    let mut left: Vec<String> = others.iter().map(shown).collect();
    let mut text = String::new();
    for row in some.iter().map(shown) {
        match left.iter().position(|other| *other == row) {
            Some(at) => drop(left.swap_remove(at)),
            None => text.push_str(&format!("  {row}\n")),
        }
    }
    text
}

/// The smallest sequence found that still fails; it fails as given.
#[must_use]
pub fn shrink(mut sequence: Sequence, forced: Forced) -> Sequence {
    let mut left = 300;
    let mut size = sequence.steps.len().max(sequence.quads.len()).max(1);
    while size > 0 && left > 0 {
        let mut at = 0;
        while at < sequence.steps.len() && left > 0 {
            let mut smaller = sequence.clone();
            smaller.steps.drain(at..sequence.steps.len().min(at + size));
            left -= 1;
            if run(&smaller, forced).is_err() {
                sequence = smaller;
            } else {
                at += size;
            }
        }
        at = 0;
        while at < sequence.quads.len() && left > 0 {
            let mut smaller = sequence.clone();
            smaller.quads.drain(at..sequence.quads.len().min(at + size));
            left -= 1;
            if run(&smaller, forced).is_err() {
                sequence = smaller;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    sequence
}
