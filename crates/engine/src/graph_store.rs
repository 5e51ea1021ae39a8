//! How is a whole graph of the store, or all of it, replaced, added to or dropped, without SPARQL?
//!
//! What the SPARQL 1.1 Graph Store HTTP Protocol asks for: each call is one transaction.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use jindou_ingest::Source;
use jindou_model::{GraphRef, Pattern, TermId};
use jindou_plan::GraphTarget;
use jindou_store::Snapshot;
use oxrdf::NamedNode;

use crate::background::SHORT_TEXT_BYTES;
use crate::deadline::Deadline;
use crate::document::{Document, GraphNames};
use crate::large_document::LargeDocument;
use crate::load::{beyond_pool, is_little, release_free_memory};
use crate::replica::Target;
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
        if let Some(follower) = inner.follower() {
            return follower.drop_graph(inner, graph, options);
        }
        let deadline = options.deadline(inner);
        let execute = |working: &mut Snapshot, deadline: &Deadline, execution| {
            let mut run = Run::new(inner, options, deadline, working).for_execution(execution);
            run.clear(&target(graph), false, false)?;
            Ok(run.done())
        };
        self.search_and_transact(&deadline, &search(&execute, false, 0))
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
        if let Some(follower) = inner.follower() {
            let target = (Target::Dataset, replace);
            let done = follower.write_documents(inner, target, documents, options)?;
            return Ok(done.update);
        }
        let deadline = options.deadline(inner);
        // Read before anybody has to wait for it.
        let names = GraphNames::Any { otherwise: None };
        let content = Content::read(documents, names, self, &deadline)?;
        let is_empty = |snapshot: &Snapshot| {
            let quads = snapshot.triples() + snapshot.named_quads();
            quads == 0 && snapshot.declared_graphs().next().is_none()
        };
        let stands = |snapshot: &Snapshot| !replace || is_empty(snapshot);
        let content = match content.for_base(self, &stands) {
            Ok(document) => return self.load_document(document, &deadline, &stands),
            Err(content) => content,
        };
        let execute = |working: &mut Snapshot, deadline: &Deadline, execution| {
            let mut run = Run::new(inner, options, deadline, working).for_execution(execution);
            if replace {
                run.clear(&GraphTarget::All, false, false)?;
            }
            content.insert(&mut run)?;
            Ok(run.done())
        };
        self.write_content(&content, replace, &deadline, &execute)
    }

    /// Makes a large document part of the base.
    fn load_document(
        &self,
        document: LargeDocument,
        deadline: &Deadline,
        stands: &dyn Fn(&Snapshot) -> bool,
    ) -> Result<UpdateReport, EngineError> {
        let inner = self.inner();
        let (sinks, memory) = document.into_parts();
        // From here on it happens, whatever its client wants, but for what keeps the store busy.
        deadline.left()?;
        let (inserted, snapshot) = inner.load_at_turn(sinks, &inner.deadline_of_turn(), stands)?;
        release_free_memory();
        drop(memory);
        inner.tell_subscriptions();
        Ok(UpdateReport {
            inserted,
            deleted: 0,
            snapshot,
            delta: None,
        })
    }

    /// Executes what inserts documents, and first removes graphs or does not.
    fn write_content(
        &self,
        content: &Content,
        removes: bool,
        deadline: &Deadline,
        execute: &Execute<'_>,
    ) -> Result<UpdateReport, EngineError> {
        let is_long = content.is_long();
        match removes || is_long {
            true => {
                let search = search(execute, is_long, content.known_quads());
                let done = self.search_and_transact(deadline, &search);
                let is_load =
                    matches!(content, Content::Large(_)) && self.inner().leader().is_some();
                done.map_err(|error| if is_load { beyond_pool(error) } else { error })
            }
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
        if let Some(follower) = inner.follower() {
            let target = (Target::Graph(graph), replace);
            return follower.write_documents(inner, target, documents, options);
        }
        let deadline = options.deadline(inner);
        // Read before anybody has to wait for it.
        let all = graph.cloned();
        let content = Content::read(documents, GraphNames::None { all }, self, &deadline)?;
        let stands = |snapshot: &Snapshot| !replace || is_empty(snapshot, graph);
        let content = match content.for_base(self, &stands) {
            Ok(document) => {
                let before = self.graph();
                let existed = graph.is_none_or(|graph| id_of(&before.snapshot, graph).is_some());
                let update = self.load_document(document, &deadline, &stands)?;
                return Ok(GraphReport { existed, update });
            }
            Err(content) => content,
        };
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
            content.insert(&mut run)?;
            Ok(run.done())
        };
        let update = self.write_content(&content, replace, &deadline, &execute)?;
        Ok(GraphReport {
            existed: existed.into_inner(),
            update,
        })
    }
}

/// What documents say.
enum Content {
    Short(Document),
    Large(LargeDocument),
}

impl Content {
    /// # Errors
    /// As [`document::read`] and [`LargeDocument::read`].
    fn read(
        documents: Vec<Source>,
        names: GraphNames,
        database: &Database,
        deadline: &Deadline,
    ) -> Result<Self, EngineError> {
        if LargeDocument::is_one_of(&documents) {
            return LargeDocument::read(documents, names, database, deadline).map(Self::Large);
        }
        document::read(documents, names, database.inner(), deadline).map(Self::Short)
    }

    /// What is so large that it becomes part of the base, where that leads to the same as a transaction;
    /// what does not comes back.
    fn for_base(
        self,
        database: &Database,
        stands: &dyn Fn(&Snapshot) -> bool,
    ) -> Result<LargeDocument, Self> {
        let graph = &database.graph().snapshot;
        // What becomes part of the base is not in the log, by which copies of the store follow.
        if database.inner().leader().is_some() {
            return Err(self);
        }
        match self {
            Self::Large(document) if !is_little(document.quads(), graph) && stands(graph) => {
                Ok(document)
            }
            content => Err(content),
        }
    }

    fn is_long(&self) -> bool {
        match self {
            Self::Short(document) => document.bytes() > SHORT_TEXT_BYTES,
            Self::Large(_) => true,
        }
    }

    /// Its quads, where they were counted.
    fn known_quads(&self) -> u64 {
        match self {
            Self::Short(_) => 0,
            Self::Large(document) => document.quads(),
        }
    }

    fn insert(&self, run: &mut Run<'_>) -> Result<(), EngineError> {
        match self {
            Self::Short(document) => run.insert_document(document),
            Self::Large(document) => run.insert_large(document),
        }
    }
}

/// The id of a named graph, if it is there.
fn id_of(snapshot: &Snapshot, graph: &NamedNode) -> Option<TermId> {
    let id = snapshot.find_name(graph.as_str().as_bytes())?;
    snapshot.has_graph(id).then_some(id)
}

/// Whether a graph has no quads.
fn is_empty(snapshot: &Snapshot, graph: Option<&NamedNode>) -> bool {
    let Some(graph) = graph else {
        return snapshot.triples() == 0;
    };
    let Some(id) = id_of(snapshot, graph) else {
        return true;
    };
    let one = GraphRef::One(id);
    let first =
        snapshot.for_each_match(&Pattern::ALL, one, &mut |_, _, _, _| ControlFlow::Break(()));
    first.is_continue()
}

/// How something with one document at most is executed.
fn search<'a>(execute: &'a Execute<'a>, is_long: bool, brings: u64) -> Search<'a> {
    Search {
        execute,
        is_long,
        documents: 1,
        brings,
        clock: &Instant::now,
    }
}

fn target(graph: Option<&NamedNode>) -> GraphTarget {
    graph.map_or(GraphTarget::Default, |graph| {
        GraphTarget::Graph(graph.clone())
    })
}
