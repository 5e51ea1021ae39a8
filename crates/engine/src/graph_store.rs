//! How is a whole graph of the store, or all of it, replaced, added to or dropped, without SPARQL?
//!
//! What the SPARQL 1.1 Graph Store HTTP Protocol asks for: each call is one transaction.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use jindou_ingest::Source;
use jindou_plan::GraphTarget;
use jindou_store::Snapshot;
use oxrdf::NamedNode;

use crate::background::SHORT_TEXT_BYTES;
use crate::deadline::Deadline;
use crate::document::{Document, GraphNames};
use crate::transact::{Execute, Execution, Search};
use crate::update::Run;
use crate::{Database, EngineError, UpdateOptions, UpdateReport, document};

/// What was done to a graph.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GraphReport {
    /// Whether the graph was there before. The default graph always is.
    pub existed: bool,
    /// Quads added and removed.
    pub update: UpdateReport,
}

impl GraphReport {
    /// What was done to all graphs: the dataset always is there.
    #[must_use]
    pub fn of_dataset(update: UpdateReport) -> Self {
        Self {
            existed: true,
            update,
        }
    }
}

impl Database {
    /// Replaces a named graph, or without a name the default graph, by what some documents say,
    /// as one transaction. A graph that was not there is made, also when they say nothing.
    ///
    /// ```
    /// use jindou_engine::ingest::Source;
    /// use jindou_engine::{Database, UpdateOptions};
    ///
    /// let database = Database::new();
    /// let document = || Source::bytes("a.ttl", "<http://e/a> <http://e/p> 1, 2 .");
    /// let done = database.replace_graph(None, vec![document()], &UpdateOptions::default())?;
    /// assert_eq!(done.update.inserted, 2);
    /// let done = database.replace_graph(None, vec![document()], &UpdateOptions::default())?;
    /// assert_eq!((done.update.inserted, done.update.deleted), (2, 2));
    /// # Ok::<(), jindou_engine::EngineError>(())
    /// ```
    ///
    /// # Errors
    /// What is wrong with a document: also that it names a graph, which is
    /// [`EngineError::InvalidQuery`]; and as [`Database::update_with`].
    pub fn replace_graph(
        &self,
        graph: Option<&NamedNode>,
        documents: Vec<Source>,
        options: &UpdateOptions,
    ) -> Result<GraphReport, EngineError> {
        self.write_graph(graph, documents, options, true)
    }

    /// Adds what some documents say to a graph, as one transaction; else as
    /// [`Database::replace_graph`].
    ///
    /// # Errors
    /// As [`Database::replace_graph`].
    pub fn add_to_graph(
        &self,
        graph: Option<&NamedNode>,
        documents: Vec<Source>,
        options: &UpdateOptions,
    ) -> Result<GraphReport, EngineError> {
        self.write_graph(graph, documents, options, false)
    }

    /// Drops a named graph, or empties the default graph.
    ///
    /// # Errors
    /// [`EngineError::GraphAbsent`]; and as [`Database::update_with`].
    pub fn drop_graph(
        &self,
        graph: Option<&NamedNode>,
        options: &UpdateOptions,
    ) -> Result<UpdateReport, EngineError> {
        let inner = self.inner();
        let deadline = options.deadline(inner);
        let execute = |working: &mut Snapshot, deadline: &Deadline, execution| {
            let mut run = Run::new(inner, options, deadline, working).for_execution(execution);
            run.clear(&target(graph), false, false)?;
            Ok(run.done())
        };
        self.search_and_transact(&deadline, &search(&execute, false))
    }

    /// Replaces all that the database holds, named graphs included, by what some documents say, as
    /// one transaction. Statements that name no graph are of the default graph. A named graph that
    /// they say nothing of is gone.
    ///
    /// ```
    /// use jindou_engine::ingest::Source;
    /// use jindou_engine::{Database, UpdateOptions};
    ///
    /// let database = Database::new();
    /// let document = || Source::bytes("a.trig", "<http://e/g> { <http://e/a> <http://e/p> 1, 2 }");
    /// let done = database.add_to_dataset(vec![document()], &UpdateOptions::default())?;
    /// assert_eq!((done.inserted, done.deleted), (2, 0));
    /// let done = database.replace_dataset(Vec::new(), &UpdateOptions::default())?;
    /// assert_eq!((done.inserted, done.deleted), (0, 2));
    /// # Ok::<(), jindou_engine::EngineError>(())
    /// ```
    ///
    /// # Errors
    /// What is wrong with a document; and as [`Database::update_with`].
    pub fn replace_dataset(
        &self,
        documents: Vec<Source>,
        options: &UpdateOptions,
    ) -> Result<UpdateReport, EngineError> {
        self.write_dataset(documents, options, true)
    }

    /// Adds what some documents say to the graphs that they name, as one transaction; otherwise as
    /// [`Database::replace_dataset`].
    ///
    /// # Errors
    /// As [`Database::replace_dataset`].
    pub fn add_to_dataset(
        &self,
        documents: Vec<Source>,
        options: &UpdateOptions,
    ) -> Result<UpdateReport, EngineError> {
        self.write_dataset(documents, options, false)
    }

    fn write_dataset(
        &self,
        documents: Vec<Source>,
        options: &UpdateOptions,
        replace: bool,
    ) -> Result<UpdateReport, EngineError> {
        let inner = self.inner();
        let deadline = options.deadline(inner);
        // Read before anybody has to wait for it.
        let names = GraphNames::Any { otherwise: None };
        let document = document::read(documents, names, inner, &deadline)?;
        let execute = |working: &mut Snapshot, deadline: &Deadline, execution| {
            let mut run = Run::new(inner, options, deadline, working).for_execution(execution);
            if replace {
                run.clear(&GraphTarget::All, false, false)?;
            }
            run.insert_document(&document)?;
            Ok(run.done())
        };
        self.write_document(&document, replace, &deadline, &execute)
    }

    /// Executes what inserts a document, and first removes graphs or does not.
    fn write_document(
        &self,
        document: &Document,
        removes: bool,
        deadline: &Deadline,
        execute: &Execute<'_>,
    ) -> Result<UpdateReport, EngineError> {
        let is_long = document.bytes() > SHORT_TEXT_BYTES;
        match removes || is_long {
            true => self.search_and_transact(deadline, &search(execute, is_long)),
            false => self.transact(deadline, |working| {
                execute(working, deadline, Execution::default())
            }),
        }
    }

    fn write_graph(
        &self,
        graph: Option<&NamedNode>,
        documents: Vec<Source>,
        options: &UpdateOptions,
        replace: bool,
    ) -> Result<GraphReport, EngineError> {
        let inner = self.inner();
        let deadline = options.deadline(inner);
        // Read before anybody has to wait for it.
        let all = graph.cloned();
        let document = document::read(documents, GraphNames::None { all }, inner, &deadline)?;
        let existed = AtomicBool::new(true);
        let execute = |working: &mut Snapshot, deadline: &Deadline, execution| {
            let mut run = Run::new(inner, options, deadline, working).for_execution(execution);
            if let Some(graph) = graph {
                existed.store(run.has_graph(graph.as_ref().into()), Relaxed);
            }
            if replace && existed.load(Relaxed) {
                run.clear(&target(graph), false, true)?;
            }
            if let Some(graph) = graph {
                run.create(graph, true)?;
            }
            run.insert_document(&document)?;
            Ok(run.done())
        };
        let update = self.write_document(&document, replace, &deadline, &execute)?;
        Ok(GraphReport {
            existed: existed.into_inner(),
            update,
        })
    }
}

/// How something with one document at most is executed.
fn search<'a>(execute: &'a Execute<'a>, is_long: bool) -> Search<'a> {
    Search {
        execute,
        is_long,
        documents: 1,
        clock: &Instant::now,
    }
}

fn target(graph: Option<&NamedNode>) -> GraphTarget {
    graph.map_or(GraphTarget::Default, |graph| {
        GraphTarget::Graph(graph.clone())
    })
}
