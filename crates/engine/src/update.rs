//! SPARQL Update: how does a request change the graph?
//!
//! All operations of a request work on one copy of the latest snapshot, each on what those before
//! it left; the copy becomes the next snapshot as a whole, or is thrown away.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jindou_exec::{CancellationToken, Table};
use jindou_ingest::{IngestError, Source};
use jindou_model::{GraphRef, IdQuad, Pattern, PredicateId, SnapshotNumber, TermId, TermKind, key};
use jindou_plan::physical::{Dataset, Slot, TemplateSlot};
use jindou_plan::{
    DataBlock, GraphTarget, Modify, Operation, TemplateQuad, Transfer, TransferKind,
    parse_update_within,
};
use jindou_store::bulk::quads_onto;
use jindou_store::{Changes, Effect, Snapshot, Stage, TermCounts};
use oxrdf::{NamedNode, TermRef};

use crate::attempt::{Done, Step};
use crate::background::SHORT_TEXT_BYTES;
use crate::config::LoadAdmission;
use crate::database::Inner;
use crate::deadline::Deadline;
use crate::document::{Document, GraphNames};
use crate::fetch::{Fetched, fetch};
use crate::gather::{FoundQuad, Gather, inline_id};
use crate::graph::StoredGraph;
use crate::large_document::LargeDocument;
use crate::progress::QueryProgress;
use crate::query::Running;
use crate::reads::{Reads, WatchedGraph};
use crate::request_memory::RequestMemory;
use crate::shards::Asked;
use crate::streams::TupleKeys;
use crate::transact::{Execution, Search};
use crate::{AddressPolicy, Database, EngineError, QueryOptions, TextPlace, UpdateDelta, document};

/// Quads that place is made for at once, at most, or a part of those that there are.
const MOST_ROOM: usize = 1 << 14;
const ROOM_PART: usize = 8;

/// Settings of one update request.
#[derive(Clone, Debug, Default)]
pub struct UpdateOptions {
    /// Time that it may take, waiting for its turn included; else the database's setting.
    pub timeout: Option<Duration>,
    /// Ends it from outside, until it is written.
    pub cancellation: Option<CancellationToken>,
    /// With `using_named_graphs`, the dataset of WHERE clauses if either is not empty.
    pub using_graphs: Vec<NamedNode>,
    /// See `using_graphs`.
    pub using_named_graphs: Vec<NamedNode>,
    /// Whether WHERE clauses without a dataset find all graphs in the default graph; else the
    /// database's setting.
    pub union_default_graph: Option<bool>,
    /// What relative IRIs are resolved against.
    pub base: Option<NamedNode>,
    /// Which endpoints SERVICE may call; the database's setting must allow them, too.
    pub services: Option<AddressPolicy>,
    /// Tells others how far the WHERE clause at work is.
    pub progress: Option<QueryProgress>,
    /// The report has the quads that were really added and removed. Takes memory for each, within
    /// what a query may hold.
    pub return_delta: bool,
}

impl UpdateOptions {
    /// When it began and how long it may take, if that is limited.
    pub(crate) fn deadline(&self, inner: &Inner) -> Deadline {
        let limit = self.timeout.or(inner.config.query_timeout);
        Deadline::new(Instant::now(), limit, self.cancellation.as_ref())
    }
}

/// What an update did.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UpdateReport {
    /// Quads that were not there before, by operation, summed.
    pub inserted: u64,
    /// Quads that were there before, by operation, summed.
    pub deleted: u64,
    /// The first snapshot that has what was done.
    pub snapshot: SnapshotNumber,
    /// The quads that it added and removed, if its [options](UpdateOptions::return_delta) ask for them.
    pub delta: Option<UpdateDelta>,
}

impl Database {
    /// Executes an update request as one transaction, with the default options.
    ///
    /// # Errors
    /// As [`Database::update_with`].
    pub fn update(&self, text: &str) -> Result<UpdateReport, EngineError> {
        self.update_with(text, UpdateOptions::default())
    }

    /// Executes an update request as one transaction: all of it, or nothing. When this returns,
    /// a stored database has it on the device (unless it was opened with `fsync` off), and every
    /// query that begins later sees it.
    ///
    /// Updates are executed one after another; queries go on meanwhile. A copy of another store has that execute them
    /// ([`Database::replicate`]): files that they name are then that one's.
    ///
    /// # Errors
    /// What is wrong with the request, the limit that it met, or [`EngineError::ReadOnly`]; of a copy that follows
    /// another store also [`EngineError::LeaderLost`], [`EngineError::WriteUnknown`] and [`EngineError::Behind`].
    pub fn update_with(
        &self,
        text: &str,
        options: UpdateOptions,
    ) -> Result<UpdateReport, EngineError> {
        let inner = self.inner();
        if let Some(follower) = inner.follower() {
            return follower.update(inner, text, &options);
        }
        let deadline = options.deadline(inner);
        let replaced = !options.using_graphs.is_empty() || !options.using_named_graphs.is_empty();
        let dataset = replaced.then(|| Dataset {
            default: options.using_graphs.clone(),
            named: options.using_named_graphs.clone(),
        });
        let union = inner.is_union(options.union_default_graph);
        let base = options.base.as_ref().map(NamedNode::as_str);
        let mut memory = RequestMemory::new(inner.config.memory_pool.as_ref());
        let parsed = inner.read_apart(text.len(), || {
            memory.plan(&deadline, |limits| {
                parse_update_within(text, base, (dataset.as_ref(), union), limits)
            })
        })?;
        let update = parsed.map_err(|error| inner.with_known_prefix(error))?;
        // Documents are read before anybody has to wait for it.
        let documents = update
            .operations
            .iter()
            .map(|operation| inner.read_document(operation, text, &deadline))
            .collect::<Result<Vec<_>, _>>()?;
        // What names its quads does not read.
        let reads = |operation: &Operation<'_>| match operation {
            Operation::InsertData(_)
            | Operation::DeleteData(_)
            | Operation::Load { .. }
            | Operation::Create { .. } => false,
            Operation::Modify(_)
            | Operation::Transfer(_)
            | Operation::Clear { .. }
            | Operation::Drop { .. } => true,
        };
        let execute = |working: &mut Snapshot, deadline: &Deadline, execution| {
            let run = Run::new(inner, &options, deadline, working).for_execution(execution);
            run.execute_all(&update.operations, &documents)
        };
        let document_bytes = documents.iter().flatten().map(Document::bytes);
        let is_long = text.len() + document_bytes.sum::<usize>() > SHORT_TEXT_BYTES;
        match is_long || update.operations.iter().any(reads) {
            true => {
                let search = Search {
                    execute: &execute,
                    is_long,
                    documents: update.operations.len() as u64,
                    brings: 0,
                    clock: &Instant::now,
                };
                self.search_and_transact(&deadline, &search)
            }
            false => self.transact(&deadline, |working| {
                execute(working, &deadline, Execution::default())
            }),
        }
    }
}

impl Inner {
    /// The quads of a LOAD's document; `text` is that of the request.
    fn read_document(
        &self,
        operation: &Operation<'_>,
        text: &str,
        deadline: &Deadline,
    ) -> Result<Option<Document>, EngineError> {
        let Operation::Load {
            silent,
            source,
            place,
            destination,
        } = operation
        else {
            return Ok(None);
        };
        let otherwise = destination.clone();
        let graphs = GraphNames::Any { otherwise };
        let read = match source.as_str().split_once(':') {
            Some(("file", _)) => self
                .file(source)
                .and_then(|source| document::read(vec![source], graphs, self, deadline)),
            Some(("http" | "https", _)) => self.web_document(source, graphs, deadline),
            _ => Err(EngineError::Unsupported {
                feature: format!(
                    "LOAD <{}>: neither a file: IRI nor of HTTP",
                    source.as_str()
                ),
                place: None,
            }),
        };
        // A limit of the whole request is not passed over.
        deadline.left()?;
        match read {
            Ok(document) => Ok(Some(document)),
            // Nor is what others hold.
            Err(error @ EngineError::PoolExhausted { .. }) => Err(error),
            Err(_) if *silent => Ok(None),
            // Only now: a request may have many LOADs that are passed over, and a place costs the
            // text before it.
            Err(EngineError::Unsupported { feature, .. }) => Err(EngineError::Unsupported {
                feature,
                place: Some(TextPlace::of(text, *place)),
            }),
            Err(error) => Err(error),
        }
    }

    fn web_document(
        &self,
        iri: &NamedNode,
        graphs: GraphNames,
        deadline: &Deadline,
    ) -> Result<Document, EngineError> {
        let Fetched { source, trouble } = fetch(iri.as_str(), &self.config, deadline)?;
        document::read(vec![source], graphs, self, deadline).map_err(|error| {
            match trouble.error() {
                Some(source) => EngineError::Document {
                    address: iri.as_str().to_owned(),
                    source,
                },
                None => error,
            }
        })
    }

    fn file(&self, iri: &NamedNode) -> Result<Source, EngineError> {
        let Some(path) = iri.as_str().strip_prefix("file://") else {
            return Err(EngineError::Unsupported {
                feature: format!("LOAD <{}>: a file: IRI without //", iri.as_str()),
                place: None,
            });
        };
        let path = decode_path(path);
        match self.config.load.admits(&path) {
            LoadAdmission::Allowed => Ok(Source::regular_file(path).with_base_iri(iri.as_str())),
            LoadAdmission::Absent => Err(EngineError::Ingest(IngestError::Io {
                file: path.display().to_string().into(),
                source: io::Error::new(io::ErrorKind::NotFound, "there is no such file"),
            })),
            LoadAdmission::Refused => Err(EngineError::Forbidden {
                what: format!("LOAD <{}>", iri.as_str()),
            }),
        }
    }
}

/// A path with its percent escapes decoded.
fn decode_path(path: &str) -> std::path::PathBuf {
    use std::os::unix::ffi::OsStringExt as _;
    let bytes = path.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = path
            .get(at + 1..at + 3)
            .filter(|_| bytes[at] == b'%')
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match digits {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    std::ffi::OsString::from_vec(out).into()
}

/// Bytes that a changed quad takes, beside its own, until it is the database's: in the lists that
/// the next version is made of, and in that. A test measures it.
const CHANGE_BYTES: usize = 288;

/// The same for a quad of a named graph: beside the quad, an edge of their layer may change.
pub(crate) const NAMED_CHANGE_BYTES: usize = 352;

/// How often new terms are there until they are the database's: here, in the transaction, and in
/// its record for the log. A test measures it.
pub(crate) const TERM_COPIES: usize = 3;

/// A request under way.
pub(crate) struct Run<'a> {
    inner: &'a Inner,
    options: &'a UpdateOptions,
    deadline: &'a Deadline,
    steps: Vec<Step>,
    execution: Execution,
    effect: Effect,
    /// What the quads and the new terms hold.
    memory: RequestMemory,
    /// The part of that which is the terms'.
    terms_bytes: usize,
    calls_services: bool,
    /// The terms of the copy that quads of it may have.
    arranged: TermCounts,
    working: &'a mut Snapshot,
}

impl<'a> Run<'a> {
    pub(crate) fn new(
        inner: &'a Inner,
        options: &'a UpdateOptions,
        deadline: &'a Deadline,
        working: &'a mut Snapshot,
    ) -> Self {
        Self {
            inner,
            options,
            deadline,
            steps: Vec::new(),
            execution: Execution::default(),
            effect: Effect::default(),
            memory: RequestMemory::new(inner.config.memory_pool.as_ref()),
            terms_bytes: 0,
            calls_services: false,
            arranged: working.known_terms(),
            working,
        }
    }

    pub(crate) fn for_execution(mut self, execution: Execution) -> Self {
        self.execution = execution;
        self
    }

    fn note(&self, note: impl FnOnce(&Reads)) {
        if let Some(reads) = &self.execution.reads {
            note(reads);
        }
    }

    /// Executes all operations of a request, with the documents that those of LOAD name.
    ///
    /// # Errors
    /// That of the first operation that fails; the limit that it met.
    pub(crate) fn execute_all(
        mut self,
        operations: &[Operation<'_>],
        documents: &[Option<Document>],
    ) -> Result<Done, EngineError> {
        for (operation, document) in operations.iter().zip(documents) {
            self.deadline.left()?;
            self.execute(operation, document.as_ref())?;
        }
        Ok(self.done())
    }

    /// What was done, for the log.
    pub(crate) fn done(self) -> Done {
        Done {
            steps: self.steps,
            effect: self.effect,
            memory: self.memory,
            calls_services: self.calls_services,
            returns_delta: self.options.return_delta,
        }
    }

    /// Reserves memory for the terms added so far.
    ///
    /// # Errors
    /// [`EngineError::PoolExhausted`].
    fn reserve_terms(&mut self) -> Result<(), EngineError> {
        self.reserve_terms_and(0)
    }

    /// As [`Run::reserve_terms`], and for so many bytes of terms that may be added next.
    fn reserve_terms_and(&mut self, coming: usize) -> Result<(), EngineError> {
        let bytes = (self.working.pending_bytes() + coming) * TERM_COPIES;
        if bytes > self.terms_bytes {
            self.memory.take((bytes - self.terms_bytes) as u64)?;
            self.terms_bytes = bytes;
        }
        Ok(())
    }

    fn execute(
        &mut self,
        operation: &Operation<'_>,
        document: Option<&Document>,
    ) -> Result<(), EngineError> {
        match operation {
            Operation::InsertData(data) => self.insert_data(data),
            Operation::DeleteData(data) => self.delete_data(data),
            Operation::Modify(modify) => self.modify(modify),
            Operation::Transfer(transfer) => self.transfer(transfer),
            // One that could not be read is passed over where the request says SILENT.
            Operation::Load { .. } => {
                document.map_or(Ok(()), |document| self.insert_document(document))
            }
            Operation::Clear { silent, target } => self.clear(target, *silent, true),
            Operation::Drop { silent, target } => self.clear(target, *silent, false),
            Operation::Create { silent, graph } => self.create(graph, *silent),
        }
    }

    /// Makes a step. One that changes nothing here may change something behind the commits of
    /// others.
    ///
    /// # Errors
    /// [`EngineError::PoolExhausted`].
    fn apply(&mut self, stage: Stage) -> Result<(), EngineError> {
        self.apply_beside(stage, &mut [])
    }

    /// As [`Run::apply`], and gives quads that are not stored the ids that new terms have from then on.
    fn apply_beside(&mut self, mut stage: Stage, beside: &mut [IdQuad]) -> Result<(), EngineError> {
        let changes = &mut stage.changes;
        changes.remove.dedup();
        changes.add.dedup();
        if stage.is_empty() && beside.is_empty() {
            return Ok(());
        }
        self.working.arrange(self.arranged, &mut stage, beside);
        self.arranged = self.working.known_terms();
        let quads = stage.changes.remove.iter().chain(&stage.changes.add);
        let bytes = quads.map(|quad| match quad.graph.is_none() {
            true => CHANGE_BYTES,
            false => NAMED_CHANGE_BYTES,
        });
        let bytes: usize = bytes.sum();
        self.memory.take(bytes as u64)?;
        if is_about_named(&stage) {
            self.note(Reads::note_own_change_of_named);
        }
        if stage.is_empty() {
            return Ok(());
        }
        let (step, effect) = Step::make(stage, self.working);
        self.effect.added += effect.added;
        self.effect.removed += effect.removed;
        self.steps.push(step);
        Ok(())
    }

    fn change(&mut self, changes: Changes) -> Result<(), EngineError> {
        self.apply(Stage {
            changes,
            ..Stage::default()
        })
    }

    /// The prefix of this operation's own blank nodes: no other operation's begins like it.
    fn scope(&mut self) -> String {
        let documents = self.working.documents();
        self.working.set_documents(documents + 1);
        format!("f{documents}_")
    }

    fn insert_data(&mut self, data: &DataBlock<'_>) -> Result<(), EngineError> {
        let scope = self.scope();
        let (mut add, mut gather) = (Vec::new(), Gather::default());
        data.for_each(&mut |quad| {
            gather.push_data(quad, &scope);
            self.intern_if(gather.is_full(), &mut gather, &mut add)
        })?;
        self.intern_if(true, &mut gather, &mut add)?;
        self.change(Changes {
            add,
            ..Changes::default()
        })
    }

    /// Adds gathered quads to those to add, if it is time for that.
    fn intern_if(
        &mut self,
        is_time: bool,
        gather: &mut Gather,
        add: &mut Vec<IdQuad>,
    ) -> Result<(), EngineError> {
        if !is_time {
            return Ok(());
        }
        let (memory, deadline) = (&mut self.memory, self.deadline);
        gather.intern(self.working, |quad| {
            make_room(add, memory, deadline)?;
            add.push(quad);
            Ok::<_, EngineError>(())
        })?;
        self.reserve_terms()
    }

    fn make_room(&mut self, quads: &mut Vec<IdQuad>) -> Result<(), EngineError> {
        make_room(quads, &mut self.memory, self.deadline)
    }

    fn find(&self, term: TermRef<'_>) -> Option<TermId> {
        if let Some(id) = inline_id(term) {
            return Some(id);
        }
        let mut bytes = Vec::new();
        if key::push_term(&mut bytes, term) {
            self.working.find_literal(&bytes)
        } else {
            self.working.find_node(&bytes)
        }
    }

    fn delete_data(&mut self, data: &DataBlock<'_>) -> Result<(), EngineError> {
        let (mut remove, mut gather) = (Vec::new(), Gather::default());
        data.for_each(&mut |quad| {
            // It has no blank nodes, which would be of a scope.
            gather.push_data(quad, "");
            self.find_if(gather.is_full(), &mut gather, &mut remove)
        })?;
        self.find_if(true, &mut gather, &mut remove)?;
        self.change(Changes {
            remove,
            ..Changes::default()
        })
    }

    /// Adds gathered quads to those to remove, if it is time for that: a term that the store does
    /// not have is in no quad.
    fn find_if(
        &mut self,
        is_time: bool,
        gather: &mut Gather,
        remove: &mut Vec<IdQuad>,
    ) -> Result<(), EngineError> {
        if !is_time {
            return Ok(());
        }
        let mut found = Vec::with_capacity(gather.len());
        gather.find(self.working, |quad| found.push(quad));
        for FoundQuad {
            quad,
            predicate,
            is_named,
        } in found
        {
            let Some(quad) = quad else {
                self.note_absent_quad(predicate, is_named);
                continue;
            };
            self.make_room(remove)?;
            remove.push(quad);
        }
        Ok(())
    }

    /// Notes that a quad to delete was not there, as one of its terms is not known.
    fn note_absent_quad(&self, predicate: Option<PredicateId>, is_named: bool) {
        self.note(|reads| match predicate {
            None => reads.note_absent_predicate(),
            Some(predicate) if is_named => reads.note_named(None, Some(predicate)),
            Some(predicate) => reads.note_predicate(predicate),
        });
    }

    /// Adds a document's quads; its blank nodes are new ones.
    pub(crate) fn insert_document(&mut self, document: &Document) -> Result<(), EngineError> {
        let scope = self.scope();
        let (mut add, mut gather) = (Vec::with_capacity(document.len()), Gather::default());
        for quad in document.quads() {
            gather.push_quad(quad.as_ref(), &scope);
            self.intern_if(gather.is_full(), &mut gather, &mut add)?;
        }
        self.intern_if(true, &mut gather, &mut add)?;
        self.change(Changes {
            add,
            ..Changes::default()
        })
    }

    /// Adds a large document's quads.
    pub(crate) fn insert_large(&mut self, document: &LargeDocument) -> Result<(), EngineError> {
        // Few quads may have long terms, and all of them are added at once.
        self.reserve_terms_and(document.text_bytes())?;
        let add = quads_onto(document.sinks(), self.working)?;
        self.deadline.left()?;
        self.reserve_terms()?;
        self.change(Changes {
            add,
            ..Changes::default()
        })
    }

    /// Gives the ids of tuples of streams, in their order, and stores those that `is_stored` says, by
    /// their place, in a graph.
    pub(crate) fn absorb<'q>(
        &mut self,
        tuples: impl Iterator<Item = TupleKeys<'q>>,
        is_stored: &[bool],
        graph: Option<&str>,
    ) -> Result<Vec<IdQuad>, EngineError> {
        let (mut all, mut gather) = (Vec::with_capacity(is_stored.len()), Gather::default());
        for tuple in tuples {
            gather.push_tuple(tuple);
            self.intern_if(gather.is_full(), &mut gather, &mut all)?;
        }
        self.intern_if(true, &mut gather, &mut all)?;
        let graph = match graph {
            Some(iri) if is_stored.contains(&true) => self.working.intern_node(iri.as_bytes())?,
            _ => TermId::NONE,
        };
        let stored = all
            .iter()
            .zip(is_stored)
            .filter(|(_, is_stored)| **is_stored);
        let add = stored.map(|(quad, _)| IdQuad { graph, ..*quad }).collect();
        let changes = Changes {
            add,
            ..Changes::default()
        };
        let stage = Stage {
            changes,
            ..Stage::default()
        };
        self.apply_beside(stage, &mut all)?;
        Ok(all)
    }

    // DELETE and INSERT by templates.

    /// COPY, MOVE and ADD. Where the source of the first two is absent, the target stays.
    fn transfer(&mut self, transfer: &Transfer) -> Result<(), EngineError> {
        if transfer.kind == TransferKind::Add {
            return self.modify(&transfer.copy);
        }
        if let GraphTarget::Graph(name) = &transfer.from
            && self.existing_graph(name.as_ref().into()).is_none()
        {
            return match transfer.silent {
                true => Ok(()),
                false => Err(absent(name)),
            };
        }
        self.clear(&transfer.to, true, false)?;
        self.modify(&transfer.copy)?;
        match transfer.kind {
            TransferKind::Move => self.clear(&transfer.from, true, false),
            TransferKind::Add | TransferKind::Copy => Ok(()),
        }
    }

    fn modify(&mut self, modify: &Modify) -> Result<(), EngineError> {
        let graph = Arc::new(StoredGraph {
            snapshot: self.working.clone(),
        });
        let (begun, timeout) = (Instant::now(), self.deadline.left()?);
        let prepared = self
            .deadline
            .plan(|is_over| modify.plan_until(&*graph, is_over))?;
        if self.execution.is_trial && prepared.plan.calls_services {
            return Err(EngineError::WouldWait);
        }
        self.calls_services |= prepared.plan.calls_services;
        let options = QueryOptions {
            timeout,
            cancellation: self.options.cancellation.clone(),
            services: self.options.services.clone(),
            progress: self.options.progress.clone(),
            ..QueryOptions::default()
        };
        let inner = self.inner;
        let seed = inner.next_seed();
        let asked = match &self.execution.reads {
            None => inner.shards.asked_by_transaction(graph, &inner.config)?,
            // What is read is known here only.
            Some(reads) => {
                let watched = WatchedGraph {
                    graph: inner.shards.source(&graph, &inner.config)?,
                    reads: Arc::clone(reads),
                };
                Asked::in_place(graph, Arc::new(watched))
            }
        };
        let mut running = Running::start(
            asked,
            prepared,
            &options,
            &inner.config,
            &inner.workers,
            (begun, seed),
        )?;
        let scope = self.scope();
        let mut changes = Changes::default();
        let mut solutions = 0_u64;
        while let Some(table) = running.next_table()? {
            for row in 0..table.rows() {
                solutions += 1;
                let place = (row, solutions, scope.as_str());
                self.instantiate(modify, &running, &table, place, &mut changes)?;
            }
        }
        self.change(changes)
    }

    /// What the templates make of one solution; what is no quad is left out.
    fn instantiate(
        &mut self,
        modify: &Modify,
        running: &Running,
        table: &Table,
        (row, solution, scope): (usize, u64, &str),
        changes: &mut Changes,
    ) -> Result<(), EngineError> {
        for template in &modify.delete {
            let ids = ids_of(template, running, table, row, &mut |_| {
                unreachable!("a DELETE template has no blank nodes")
            });
            // What the query computed and the store does not have is in no quad.
            if let Some(quad) = ids.and_then(|ids| self.known_quad(running, ids)) {
                self.make_query_room(&mut changes.remove)?;
                changes.remove.push(quad);
            }
        }
        for template in &modify.insert {
            self.reserve_terms()?;
            let mut blanks = Ok(());
            let ids = ids_of(template, running, table, row, &mut |number| {
                let key = format!("_:{scope}{solution}x{number}");
                match self.working.intern_node(key.as_bytes()) {
                    Ok(id) => id,
                    Err(error) => {
                        blanks = Err(error);
                        TermId::NONE
                    }
                }
            });
            blanks?;
            if let Some(ids) = ids
                && let Some(quad) = self.new_quad(running, ids)?
            {
                self.make_query_room(&mut changes.add)?;
                changes.add.push(quad);
            }
        }
        Ok(())
    }

    /// As [`Run::make_room`], for quads that a query finds: they are held within its own limit.
    fn make_query_room(&mut self, quads: &mut Vec<IdQuad>) -> Result<(), EngineError> {
        let limit_bytes = self.inner.config.query_memory_bytes;
        if quads.len() == quads.capacity() && self.memory.held_bytes() > limit_bytes {
            return Err(EngineError::MemoryExceeded { limit_bytes });
        }
        self.make_room(quads)
    }

    fn known_quad(&self, running: &Running, ids: [TermId; 4]) -> Option<IdQuad> {
        let [subject, predicate, object, graph] = ids;
        if !is_quad(self.working, running, ids) {
            return None;
        }
        let known = match predicate.kind() {
            TermKind::Computed => None,
            _ => self.working.predicate_of_term(predicate),
        };
        let is_computed = |id: &TermId| id.kind() == TermKind::Computed;
        let Some(predicate) = known.filter(|_| !ids.iter().any(is_computed)) else {
            self.note_absent_quad(known, !graph.is_none());
            return None;
        };
        Some(IdQuad {
            subject,
            predicate,
            object,
            graph,
        })
    }

    fn new_quad(
        &mut self,
        running: &Running,
        ids: [TermId; 4],
    ) -> Result<Option<IdQuad>, EngineError> {
        if !is_quad(self.working, running, ids) {
            return Ok(None);
        }
        let [subject, predicate, object, graph] = ids;
        let known = self.working.predicate_of_term(predicate);
        let predicate = match known.filter(|_| predicate.kind() != TermKind::Computed) {
            Some(known) => known,
            None => {
                let mut bytes = Vec::new();
                let cx = running.execution.context();
                let read = cx.terms().push_key(predicate, &mut bytes);
                read.map_err(|why| cx.without_term(why))?;
                let iri = std::str::from_utf8(&bytes).expect("IRIs are UTF-8");
                self.working.intern_predicate(iri)?
            }
        };
        Ok(Some(IdQuad {
            subject: self.lasting(running, subject)?,
            predicate,
            object: self.lasting(running, object)?,
            graph: self.lasting(running, graph)?,
        }))
    }

    /// The store's id of a term that a query computed, perhaps.
    fn lasting(&mut self, running: &Running, id: TermId) -> Result<TermId, EngineError> {
        if id.kind() != TermKind::Computed {
            return Ok(id);
        }
        let mut bytes = Vec::new();
        let cx = running.execution.context();
        let is_literal = cx.terms().push_key(id, &mut bytes);
        Ok(if is_literal.map_err(|why| cx.without_term(why))? {
            self.working.intern_literal(&bytes)?
        } else {
            self.working.intern_node(&bytes)?
        })
    }

    // Graphs as a whole.

    /// Empties graphs; named ones stay as empty ones, or do not.
    pub(crate) fn clear(
        &mut self,
        target: &GraphTarget,
        silent: bool,
        stays: bool,
    ) -> Result<(), EngineError> {
        let mut stage = Stage::default();
        if matches!(target, GraphTarget::Default | GraphTarget::All) {
            self.collect(None, &mut stage.changes.remove)?;
        }
        let mut graphs = Vec::new();
        match target {
            GraphTarget::Graph(name) => match self.existing_graph(name.as_ref().into()) {
                Some(graph) => graphs.push(graph),
                None if silent => {}
                None => return Err(absent(name)),
            },
            GraphTarget::Named | GraphTarget::All => {
                self.note(Reads::note_all_graphs);
                // Each is in four lists: here, in the step, and as one of those declared twice.
                let ids = 4 * self.working.named_graphs();
                self.memory.take(ids * size_of::<TermId>() as u64)?;
                self.working.for_each_graph(&mut |graph| graphs.push(graph));
            }
            GraphTarget::Default => {}
        }
        for graph in graphs {
            self.collect(Some(graph), &mut stage.changes.remove)?;
            if stays {
                stage.declare.push(graph);
            } else {
                stage.forget.push(graph);
            }
        }
        self.apply(stage)
    }

    fn existing_graph(&self, name: TermRef<'_>) -> Option<TermId> {
        let Some(graph) = self.find(name) else {
            self.note(Reads::note_all_graphs);
            return None;
        };
        self.is_there(graph).then_some(graph)
    }

    fn is_there(&self, graph: TermId) -> bool {
        self.note(|reads| reads.note_graph(graph));
        self.working.has_graph(graph)
    }

    /// The quads of the default graph (`None`), or of a named one.
    fn collect(
        &mut self,
        graph: Option<TermId>,
        quads: &mut Vec<IdQuad>,
    ) -> Result<(), EngineError> {
        self.note(|reads| match graph {
            None => reads.note_default(),
            graph => reads.note_named(graph, None),
        });
        let graph = graph.map_or(GraphRef::Default, GraphRef::One);
        let (memory, deadline) = (&mut self.memory, self.deadline);
        let mut ended = Ok(());
        let flow = self
            .working
            .for_each_match(&Pattern::ALL, graph, &mut |s, p, o, g| {
                ended = make_room(quads, memory, deadline);
                if ended.is_err() {
                    return ControlFlow::Break(());
                }
                quads.push(IdQuad {
                    subject: s,
                    predicate: p,
                    object: o,
                    graph: g,
                });
                ControlFlow::Continue(())
            });
        debug_assert_eq!(flow.is_break(), ended.is_err());
        ended
    }

    /// Whether there is a named graph of this name.
    pub(crate) fn has_graph(&self, name: TermRef<'_>) -> bool {
        self.existing_graph(name).is_some()
    }

    /// Makes an empty graph.
    pub(crate) fn create(&mut self, graph: &NamedNode, silent: bool) -> Result<(), EngineError> {
        let id = self.working.intern_node(graph.as_str().as_bytes())?;
        if !silent && self.is_there(id) {
            return Err(EngineError::GraphExists {
                graph: graph.as_str().to_owned(),
            });
        }
        self.apply(Stage {
            declare: vec![id],
            ..Stage::default()
        })
    }
}

/// Makes place for one more quad; looks at the deadline whenever there was none.
fn make_room(
    quads: &mut Vec<IdQuad>,
    memory: &mut RequestMemory,
    deadline: &Deadline,
) -> Result<(), EngineError> {
    let capacity = quads.capacity();
    if quads.len() == capacity {
        deadline.left()?;
        let more = capacity.clamp(4, MOST_ROOM.max(capacity / ROOM_PART));
        memory.take((more * size_of::<IdQuad>()) as u64)?;
        quads.reserve_exact(more);
    }
    Ok(())
}

/// True if a step may change which quads named graphs have, or which of these there are.
fn is_about_named(stage: &Stage) -> bool {
    let quads = stage.changes.remove.iter().chain(&stage.changes.add);
    !stage.forget.is_empty()
        || !stage.declare.is_empty()
        || quads.into_iter().any(|quad| !quad.graph.is_none())
}

fn absent(graph: &NamedNode) -> EngineError {
    EngineError::GraphAbsent {
        graph: graph.as_str().to_owned(),
    }
}

/// Subject, predicate, object and graph of a template for one solution; `None` if one is unbound.
fn ids_of(
    template: &TemplateQuad,
    running: &Running,
    table: &Table,
    row: usize,
    blank: &mut dyn FnMut(u16) -> TermId,
) -> Option<[TermId; 4]> {
    let context = running.execution.context();
    let mut id = |slot: TemplateSlot| match slot {
        TemplateSlot::Var(var) => table.value(var, row),
        TemplateSlot::Const(id) => context.constant(id),
        TemplateSlot::Blank(number) => blank(number),
    };
    let triple = &template.triple;
    let ids = [triple.subject, triple.predicate, triple.object].map(&mut id);
    let graph = match template.graph {
        None => TermId::NONE,
        Some(slot) => {
            let graph = match slot {
                Slot::Var(var) => table.value(var, row),
                Slot::Const(id) => context.constant(id),
            };
            if graph.is_none() {
                return None;
            }
            graph
        }
    };
    let [subject, predicate, object] = ids;
    let bound = ids.iter().all(|id| !id.is_none());
    bound.then_some([subject, predicate, object, graph])
}

/// True if RDF allows these terms in their places.
fn is_quad(
    working: &Snapshot,
    running: &Running,
    [subject, predicate, _, graph]: [TermId; 4],
) -> bool {
    let kind_of = |id: TermId| kind_of(working, running, id);
    let is_node = |id: TermId| kind_of(id) != Kind::Literal;
    is_node(subject) && kind_of(predicate) == Kind::Iri && (graph.is_none() || is_node(graph))
}

#[derive(PartialEq, Eq)]
enum Kind {
    Iri,
    Blank,
    Literal,
}

fn kind_of(working: &Snapshot, running: &Running, id: TermId) -> Kind {
    match id.kind() {
        // A template's blank node is newer than the snapshot that the query reads.
        TermKind::Vertex => {
            let mut bytes = Vec::new();
            working.push_key(id, &mut bytes);
            match bytes.starts_with(b"_:") {
                true => Kind::Blank,
                false => Kind::Iri,
            }
        }
        TermKind::Computed => {
            let mut bytes = Vec::new();
            let literal = running.execution.context().terms().push_key(id, &mut bytes);
            match literal.expect("the query's own terms are here") {
                true => Kind::Literal,
                false if bytes.starts_with(b"_:") => Kind::Blank,
                false => Kind::Iri,
            }
        }
        _ => Kind::Literal,
    }
}
