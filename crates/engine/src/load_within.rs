//! Loads that keep within a given memory: how do more terms and edges than fit into it become a
//! store?
//!
//! What the threads that read hold beyond their share goes to a folder within the store's
//! ([`SpilledLoad`]), and so the first generation of a store is made. A load onto data gives its terms
//! numbers beside those that are there, in memory, and is refused here.

use std::io::ErrorKind;
use std::time::Instant;

use jindou_ingest::{IngestError, LoadOptions, Progress, QuadSink, Report, Source};
use jindou_model::SnapshotNumber;
use jindou_store::bulk::{LoadStep, SpilledLoad, SpillingSink};
use jindou_store::{Base, Directory, DurabilityOptions, LayerKind, StoreError};
use oxrdf::QuadRef;

use crate::database::Inner;
use crate::load::{Declared, LoadReport, release_free_memory, report};
use crate::turn::Occupation;
use crate::{Database, EngineError};

/// What [`Progress::step`] says first of a load with [`Config::load_memory_bytes`](crate::Config::load_memory_bytes)
/// whose data did not fit into these: one whose data did never merges terms.
pub const MERGING_TERMS: &str = "merging terms";

/// A sink of the parser that keeps within its share of memory.
struct Sink(SpillingSink);

impl QuadSink for Sink {
    type Error = StoreError;

    fn quad(&mut self, quad: QuadRef<'_>) -> Result<(), StoreError> {
        self.0.quad(quad)
    }
}

/// What was read.
struct Read {
    load: SpilledLoad,
    sinks: Vec<SpillingSink>,
    report: Report,
}

impl Read {
    fn new(
        directory: &Directory,
        durability: &DurabilityOptions,
        memory_bytes: u64,
        sources: Vec<Source>,
        options: &LoadOptions,
        progress: &Progress,
    ) -> Result<Self, EngineError> {
        let threads = options.threads.get();
        let load = SpilledLoad::begin(directory, durability, memory_bytes, threads);
        let load = load.map_err(|error| match error {
            StoreError::Io { source, .. } if source.kind() == ErrorKind::AlreadyExists => {
                refused("another such load is under way")
            }
            error => error.into(),
        })?;
        let read = jindou_ingest::load(sources, options, |_| Sink(load.sink()), progress);
        let (sinks, report) = read.map_err(error_of)?;
        let sinks = sinks.into_iter().map(|sink| sink.0).collect();
        Ok(Self {
            load,
            sinks,
            report,
        })
    }

    /// The base, and what is left of what was read.
    fn build(self, documents: u64, progress: &Progress) -> Result<(Base, Report), EngineError> {
        let told = |step| progress.set_step(text_of(step));
        let base = self.load.build(self.sinks, documents, &told)?;
        release_free_memory();
        progress.set_step("writing the store".to_owned());
        Ok((base, self.report))
    }
}

/// The error of a sink as what it is: of the store.
fn error_of(error: IngestError) -> EngineError {
    match error {
        IngestError::Sink { file, source } => match source.downcast::<StoreError>() {
            Ok(error) => EngineError::from(*error),
            Err(source) => EngineError::from(IngestError::Sink { file, source }),
        },
        error => error.into(),
    }
}

/// The text that progress shows for a step.
fn text_of(step: LoadStep) -> String {
    match step {
        LoadStep::MergingTerms => MERGING_TERMS.to_owned(),
        LoadStep::Numbering => "numbering terms".to_owned(),
        LoadStep::Dictionary => "making the dictionary".to_owned(),
        LoadStep::Segments { done, of } => format!("building segments, {done} of {of} predicates"),
    }
}

/// As [`base_of`](crate::load::base_of) for the store of a directory, with at most `memory_bytes` resident.
pub(crate) fn base_within(
    directory: &Directory,
    durability: &DurabilityOptions,
    memory_bytes: u64,
    (sources, options, progress): (Vec<Source>, &LoadOptions, &Progress),
) -> Result<(Base, LoadReport, Declared), EngineError> {
    let begin = Instant::now();
    let read = Read::new(
        directory,
        durability,
        memory_bytes,
        sources,
        options,
        progress,
    )?;
    let read_time = begin.elapsed();
    let begin = Instant::now();
    let documents = read.report.next_blank_scope;
    let (base, mut read) = read.build(documents, progress)?;
    let quads = [base.layer(LayerKind::Default).edges(), base.named().quads()];
    let prefixes = std::mem::take(&mut read.prefixes);
    let times = [read_time, begin.elapsed()];
    Ok((base, report(read, quads, times), prefixes))
}

/// The refusal of a bounded load.
fn refused(reason: &'static str) -> EngineError {
    EngineError::BoundedLoad { reason }
}

const HAS_DATA: &str = "this one has data already, whose terms keep their ids";

impl Database {
    /// As [`Database::load`] of a store without data, with at most `memory_bytes` resident.
    pub(crate) fn load_within(
        &self,
        memory_bytes: u64,
        sources: Vec<Source>,
        options: &LoadOptions,
        progress: &Progress,
    ) -> Result<LoadReport, EngineError> {
        let inner = self.inner();
        let Some(directory) = &inner.directory else {
            return Err(refused("this one is in memory"));
        };
        if inner.leader().is_some() {
            return Err(refused("this one is one of several copies"));
        }
        if !self.graph().snapshot.is_blank() {
            return Err(refused(HAS_DATA));
        }
        let mut options = options.clone();
        options.blank_scope_start = inner
            .take_writer_first(&inner.deadline_of_turn())?
            .reserve_documents(sources.len() as u64, options.blank_scope_start)?;
        let begin = Instant::now();
        let durability = &inner.config.durability;
        let read = Read::new(
            directory,
            durability,
            memory_bytes,
            sources,
            &options,
            progress,
        )?;
        let read_time = begin.elapsed();
        let begin = Instant::now();
        // First, so that a load that is there has its prefixes, whenever the process ends.
        inner.learn_prefixes(&read.report.prefixes)?;
        let read = inner.replace_blank(read, progress)?;
        inner.tell_subscriptions();
        let graph = &self.graph().snapshot;
        let quads = [graph.triples(), graph.named_quads()];
        Ok(report(read, quads, [read_time, begin.elapsed()]))
    }
}

impl Inner {
    /// Makes what was read the first generation of a store that has nothing; updates wait meanwhile.
    fn replace_blank(&self, read: Read, progress: &Progress) -> Result<Report, EngineError> {
        let deadline = self.deadline_of_turn();
        let _one = self.turn.take(Occupation::Load, &deadline)?;
        let mut writer = self.take_writer(Occupation::Load, &deadline)?;
        let latest = writer.begin()?;
        if !latest.is_blank() {
            return Err(refused(HAS_DATA));
        }
        let (base, report) = read.build(latest.documents(), progress)?;
        let base = base.with_union(latest.base().is_union());
        let number = SnapshotNumber(latest.number().0 + 1);
        self.replace_all(&mut writer, base, number)?;
        let made = writer.latest.clone();
        writer.published.note(&latest, &made);
        Ok(report)
    }
}
