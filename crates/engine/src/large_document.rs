//! How does a document become part of graphs that is too large to be held as one?
//!
//! As a load does: it is parsed, in line formats by several threads, into sinks of the bulk loader, which have
//! each term once, and becomes part of the base. What all of that takes is counted against the pool of all requests,
//! and not against what one may hold: a document's length is no bound for what it needs. Texts of terms are counted
//! before a sink has them, however long: a hundred of them may be a gigabyte.

use std::sync::Arc;

use jindou_fabric::pace::LongWork;
use jindou_ingest::{LoadOptions, Progress, QuadSink, Source};
use jindou_store::bulk::BulkSink;
use oxrdf::{GraphNameRef, NamedNode, NamedOrBlankNodeRef, QuadRef, TermRef};

use crate::deadline::Deadline;
use crate::document::{GraphNames, Ledger, MAX_LINE_BYTES, names_a_graph};
use crate::{Database, EngineError};

/// Quads of a sink between two looks at the deadline and at what it holds.
const QUADS_PER_LOOK: u64 = 8192;
/// Bytes of terms between two looks: so many are counted before they come.
const TEXT_BYTES_PER_LOOK: u64 = 1 << 20;
/// What becomes of a quad while it is made part of a base, and of a term (see
/// [`jindou_store::bulk::LoadedQuads`]).
const BYTES_OF_QUAD: u64 = 32;
const BYTES_OF_TERM: u64 = 8;

/// What large documents say. Their memory is counted until it is dropped.
pub(crate) struct LargeDocument {
    sinks: Vec<BulkSink>,
    quads: u64,
    text_bytes: u64,
    ledger: Arc<Ledger>,
}

impl LargeDocument {
    /// True if one of the documents is too large to be in memory, as far as it is known.
    pub(crate) fn is_one_of(sources: &[Source]) -> bool {
        sources
            .iter()
            .any(|source| source.bytes_in_memory().is_none())
    }

    /// Reads documents, each with blank nodes of its own.
    ///
    /// # Errors
    /// As [`document::read`](crate::document::read), but for the limit of one query.
    pub(crate) fn read(
        sources: Vec<Source>,
        graphs: GraphNames,
        database: &Database,
        deadline: &Deadline,
    ) -> Result<Self, EngineError> {
        let inner = database.inner();
        let ledger = Ledger::of_all(inner, deadline);
        let first = inner
            .take_writer_first(deadline)?
            .reserve_documents(sources.len() as u64, 0)?;
        let (otherwise, is_one_graph) = match graphs {
            GraphNames::Any { otherwise } => (otherwise, false),
            GraphNames::None { all } => (all, true),
        };
        let options = LoadOptions {
            blank_scope_start: first,
            max_line_bytes: MAX_LINE_BYTES,
            thread_start: inner.config.reading_start.clone(),
            contexts: inner.config.contexts.clone(),
            ..LoadOptions::default()
        };
        let guarded = |source: Source| source.with_guard(ledger.guard());
        let sources = sources.into_iter().map(guarded).collect();
        let sink = |_| LargeSink {
            bulk: BulkSink::new(),
            otherwise: otherwise.clone(),
            is_one_graph,
            ledger: Arc::clone(&ledger),
            until_look: 0,
            text_bytes_left: 0,
            held_bytes: 0,
        };
        let _long = LongWork::begin();
        let loaded = jindou_ingest::load(sources, &options, sink, &Progress::default());
        let (sinks, report) = loaded.map_err(|error| ledger.refusal(error))?;
        inner.learn_prefixes(&report.prefixes)?;
        let sinks: Vec<_> = sinks.into_iter().map(|sink| sink.bulk).collect();
        let quads = sinks.iter().map(BulkSink::quads).sum();
        let terms: u64 = sinks.iter().map(BulkSink::terms).sum();
        // Their tables are encoded while the sinks are there, and then copied to where they stay.
        let text_bytes: u64 = sinks.iter().map(BulkSink::text_bytes).sum();
        ledger.hold(quads * BYTES_OF_QUAD + terms * BYTES_OF_TERM + text_bytes)?;
        Ok(Self {
            sinks,
            quads,
            text_bytes,
            ledger,
        })
    }

    /// How many quads there are, repeats included.
    pub(crate) fn quads(&self) -> u64 {
        self.quads
    }

    /// Bytes of its terms, those that several sinks have once for each.
    pub(crate) fn text_bytes(&self) -> usize {
        usize::try_from(self.text_bytes).unwrap_or(usize::MAX)
    }

    pub(crate) fn sinks(&self) -> &[BulkSink] {
        &self.sinks
    }

    /// The sinks, and what counts their memory.
    pub(crate) fn into_parts(self) -> (Vec<BulkSink>, Arc<Ledger>) {
        (self.sinks, self.ledger)
    }
}

struct LargeSink {
    bulk: BulkSink,
    /// The graph of statements that name none; without a name the default graph.
    otherwise: Option<NamedNode>,
    /// Statements may not name graphs.
    is_one_graph: bool,
    ledger: Arc<Ledger>,
    until_look: u64,
    /// Bytes of terms that are counted and have not come.
    text_bytes_left: u64,
    held_bytes: u64,
}

impl LargeSink {
    /// Looks whether there is room for what was collected, and for what comes with the next quads: so
    /// many bytes of terms, or more.
    fn look(&mut self, text_bytes: u64) -> Result<(), EngineError> {
        self.until_look = QUADS_PER_LOOK;
        self.text_bytes_left = TEXT_BYTES_PER_LOOK.max(text_bytes);
        self.ledger.deadline().left()?;
        let bytes = self.bulk.bytes() + self.text_bytes_left;
        self.ledger.hold(bytes.saturating_sub(self.held_bytes))?;
        self.held_bytes = self.held_bytes.max(bytes);
        Ok(())
    }
}

/// Bytes of the texts of a quad, about as they are kept.
fn text_bytes(quad: QuadRef<'_>) -> u64 {
    let object = match quad.object {
        TermRef::NamedNode(node) => node.as_str().len(),
        TermRef::BlankNode(node) => node.as_str().len(),
        TermRef::Literal(literal) => {
            let language = literal.language().map_or(0, str::len);
            literal.value().len() + literal.datatype().as_str().len() + language
        }
    };
    let subject = match quad.subject {
        NamedOrBlankNodeRef::NamedNode(node) => node.as_str().len(),
        NamedOrBlankNodeRef::BlankNode(node) => node.as_str().len(),
    };
    let graph = match quad.graph_name {
        GraphNameRef::DefaultGraph => 0,
        GraphNameRef::NamedNode(node) => node.as_str().len(),
        GraphNameRef::BlankNode(node) => node.as_str().len(),
    };
    (subject + quad.predicate.as_str().len() + object + graph) as u64
}

impl QuadSink for LargeSink {
    type Error = EngineError;

    fn quad(&mut self, quad: QuadRef<'_>) -> Result<(), EngineError> {
        let text_bytes = text_bytes(quad);
        if self.until_look == 0 || self.text_bytes_left < text_bytes {
            self.look(text_bytes)?;
        }
        self.until_look -= 1;
        self.text_bytes_left -= text_bytes;
        let graph = match (quad.graph_name, &self.otherwise) {
            (GraphNameRef::DefaultGraph, Some(graph)) => graph.as_ref().into(),
            (GraphNameRef::DefaultGraph, None) => GraphNameRef::DefaultGraph,
            (name, _) if self.is_one_graph => return Err(names_a_graph(name)),
            (name, _) => name,
        };
        let (subject, predicate, object) = (quad.subject, quad.predicate, quad.object);
        Ok(self
            .bulk
            .quad(QuadRef::new(subject, predicate, object, graph))?)
    }
}
