//! How is a whole graph of the store replaced, added to or dropped, without SPARQL?
//!
//! What the SPARQL 1.1 Graph Store HTTP Protocol asks for: each call is one transaction.

use jindou_ingest::Source;
use jindou_plan::GraphTarget;
use oxrdf::NamedNode;

use crate::document::GraphNames;
use crate::update::Run;
use crate::{Database, EngineError, UpdateOptions, UpdateReport, document};

/// What was done to a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GraphReport {
    /// Whether the graph was there before. The default graph always is.
    pub existed: bool,
    /// Quads added and removed.
    pub update: UpdateReport,
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
        self.transact(&deadline, |working| {
            let mut run = Run::new(inner, options, &deadline, working);
            run.clear(&target(graph), false, false)?;
            Ok(run.done())
        })
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
        let mut existed = true;
        let update = self.transact(&deadline, |working| {
            let mut run = Run::new(inner, options, &deadline, working);
            if let Some(graph) = graph {
                existed = run.has_graph(graph.as_ref().into());
            }
            if replace && existed {
                run.clear(&target(graph), false, true)?;
            }
            if let Some(graph) = graph {
                run.create(graph, true)?;
            }
            run.insert_document(&document)?;
            Ok(run.done())
        })?;
        Ok(GraphReport { existed, update })
    }
}

fn target(graph: Option<&NamedNode>) -> GraphTarget {
    graph.map_or(GraphTarget::Default, |graph| {
        GraphTarget::Graph(graph.clone())
    })
}
