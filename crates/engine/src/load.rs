//! Bulk load: files -> sinks -> a new generation of the graph.

use std::time::{Duration, Instant};

use jindou_ingest::{LoadOptions, Progress, QuadSink, Report, Skipped, Source};
use jindou_model::{Graphs, Pattern, TermId, key};
use jindou_store::bulk::{BulkSink, build};
use jindou_store::{Base, StoreError};
use oxrdf::{GraphName, NamedNode, NamedOrBlankNode, Quad, QuadRef, Term};

use crate::EngineError;

/// What a load did.
#[derive(Debug)]
#[non_exhaustive]
pub struct LoadReport {
    /// Quads read, repeats included.
    pub quads: u64,
    /// Bytes read from the sources, as they are stored (compressed or not).
    pub bytes_read: u64,
    /// Statements left out, with `lenient`.
    pub skipped: u64,
    /// The first of the errors that left something out.
    pub errors: Vec<Skipped>,
    /// Triples in the default graph after the load.
    pub triples: u64,
    /// Quads in named graphs after the load.
    pub named_quads: u64,
    /// Time for parsing and collecting.
    pub read_time: Duration,
    /// Time for numbering, sorting, packing and, for a stored database, writing.
    pub build_time: Duration,
}

/// A sink of the parser that collects for the store.
struct Sink(BulkSink);

impl QuadSink for Sink {
    type Error = StoreError;

    fn quad(&mut self, quad: QuadRef<'_>) -> Result<(), StoreError> {
        self.0.quad(quad)
    }
}

/// Reads the sources and makes the base of a graph that has what `existing` has, too.
pub(crate) fn load(
    existing: Option<&Base>,
    sources: Vec<Source>,
    options: &LoadOptions,
    progress: &Progress,
) -> Result<(Base, LoadReport), EngineError> {
    let begin = Instant::now();
    let mut options = options.clone();
    let documents = existing.map_or(0, Base::documents);
    options.blank_scope_start = options.blank_scope_start.max(documents);
    let (sinks, report) =
        jindou_ingest::load(sources, &options, |_| Sink(BulkSink::new()), progress)?;
    let mut sinks: Vec<BulkSink> = sinks.into_iter().map(|sink| sink.0).collect();
    if let Some(existing) = existing.filter(|base| base.vertex_count() > 0) {
        sinks.push(collect(existing)?);
    }
    let read_time = begin.elapsed();
    let Report {
        quads,
        bytes_read,
        skipped,
        errors,
        next_blank_scope,
        ..
    } = report;
    let base = build(sinks, next_blank_scope)?;
    jindou_fabric::allocator::release_free_memory();
    let report = LoadReport {
        quads,
        bytes_read,
        skipped,
        errors,
        triples: base.triples(),
        named_quads: base.named().quads(),
        read_time,
        build_time: begin.elapsed() - read_time,
    };
    Ok((base, report))
}

/// All quads of a graph in a sink, to be merged with new ones.
fn collect(base: &Base) -> Result<BulkSink, StoreError> {
    let mut sink = BulkSink::new();
    let mut result = Ok(());
    let all = Pattern {
        subject: None,
        predicate: None,
        object: None,
    };
    for graphs in [Graphs::Default, Graphs::Named] {
        let _ = base.for_each_match(&all, graphs, &mut |s, p, o, g| {
            let quad = Quad {
                subject: node(base, s),
                predicate: match term(base, base.predicate_term(p)) {
                    Term::NamedNode(node) => node,
                    other => NamedNode::new_unchecked(other.to_string()),
                },
                object: term(base, o),
                graph_name: if g.is_none() {
                    GraphName::DefaultGraph
                } else {
                    node(base, g).into()
                },
            };
            result = sink.quad(quad.as_ref());
            match result {
                Ok(()) => std::ops::ControlFlow::Continue(()),
                Err(_) => std::ops::ControlFlow::Break(()),
            }
        });
    }
    result.map(|()| sink)
}

fn node(base: &Base, id: TermId) -> NamedOrBlankNode {
    match term(base, id) {
        Term::NamedNode(node) => node.into(),
        Term::BlankNode(node) => node.into(),
        Term::Literal(literal) => panic!("the literal {literal} is a subject or a graph"),
    }
}

fn term(base: &Base, id: TermId) -> Term {
    use jindou_model::{TermKind, inline};
    if let Some(datatype) = inline::datatype(id) {
        let mut lexical = String::new();
        assert!(
            inline::decode_lexical(id, &mut lexical),
            "an inline id holds a value"
        );
        return oxrdf::Literal::new_typed_literal(lexical, datatype).into();
    }
    let mut bytes = Vec::new();
    base.push_key(id, &mut bytes);
    let term = match id.kind() {
        TermKind::Literal => key::literal(&bytes).map(Term::from),
        _ => key::vertex(&bytes),
    };
    term.expect("the dictionary holds keys of terms")
}
