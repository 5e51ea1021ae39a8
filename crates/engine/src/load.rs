//! Bulk load: files -> sinks -> a new generation of the graph.

use std::time::{Duration, Instant};

use jindou_ingest::{LoadOptions, Progress, QuadSink, Report, Skipped, Source};
use jindou_store::bulk::{BulkSink, build, rebuild_with};
use jindou_store::{Base, LayerKind, Snapshot, StoreError};
use oxrdf::QuadRef;

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
    existing: Option<&Snapshot>,
    sources: Vec<Source>,
    options: &LoadOptions,
    progress: &Progress,
) -> Result<(Base, LoadReport), EngineError> {
    let begin = Instant::now();
    let mut options = options.clone();
    let documents = existing.map_or(0, Snapshot::documents);
    options.blank_scope_start = options.blank_scope_start.max(documents);
    let (sinks, report) =
        jindou_ingest::load(sources, &options, |_| Sink(BulkSink::new()), progress)?;
    let sinks: Vec<BulkSink> = sinks.into_iter().map(|sink| sink.0).collect();
    let read_time = begin.elapsed();
    let Report {
        quads,
        bytes_read,
        skipped,
        errors,
        next_blank_scope,
        ..
    } = report;
    let existing = existing.filter(|graph| graph.vertex_count() > 0);
    let base = match existing {
        Some(existing) => rebuild_with(existing, sinks, next_blank_scope)?,
        None => build(sinks, next_blank_scope)?,
    };
    jindou_fabric::allocator::release_free_memory();
    let report = LoadReport {
        quads,
        bytes_read,
        skipped,
        errors,
        triples: base.layer(LayerKind::Default).edges(),
        named_quads: base.named().quads(),
        read_time,
        build_time: begin.elapsed() - read_time,
    };
    Ok((base, report))
}
