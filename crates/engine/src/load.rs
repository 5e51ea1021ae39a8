//! Bulk load: files -> sinks -> the graph, beside what is there.
//!
//! Files are read and parsed without any lock. What was collected then becomes a generation of its
//! own where there was nothing, a transaction where it is little, and else a base: see
//! [`onto`](crate::onto).

use std::time::{Duration, Instant};

use jindou_fabric::allocator;
use jindou_ingest::{
    Faults, LoadOptions, Mistaken, Odd, Progress, QuadSink, Report, Skipped, Source,
};
use jindou_model::SnapshotNumber;
use jindou_store::bulk::{BulkSink, build, stage_onto};
use jindou_store::{Base, LayerKind, Snapshot, StoreError};
use oxrdf::QuadRef;

use crate::attempt::{Done, Step};
use crate::database::Inner;
use crate::deadline::Deadline;
use crate::request_memory::RequestMemory;
use crate::transact::{Execution, Search};
use crate::turn::Occupation;
use crate::update::{NAMED_CHANGE_BYTES, TERM_COPIES};
use crate::writer::Writer;
use crate::{Database, EngineError};

/// What has no more quads, and no more than one in [`LOGGED_SHARE`] of those that there are, is
/// committed as a transaction: to write segments anew would cost what is stored, and not what is
/// loaded.
const MOST_LOGGED: u64 = 1 << 17;
const LOGGED_SHARE: u64 = 16;

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
    /// All of them, by what is wrong.
    pub faults: Faults,
    /// What was kept, with `lenient`, though its standard refuses it.
    pub odd: Odd,
    /// The sources that are in another format than their names say.
    pub mistaken: Vec<Mistaken>,
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

/// What the files hold.
pub(crate) struct Collected {
    pub(crate) sinks: Vec<BulkSink>,
    pub(crate) report: Report,
    pub(crate) read_time: Duration,
}

impl Collected {
    pub(crate) fn read(
        sources: Vec<Source>,
        options: &LoadOptions,
        progress: &Progress,
    ) -> Result<Self, EngineError> {
        let begin = Instant::now();
        let (sinks, report) =
            jindou_ingest::load(sources, options, |_| Sink(BulkSink::new()), progress)?;
        Ok(Self {
            sinks: sinks.into_iter().map(|sink| sink.0).collect(),
            report,
            read_time: begin.elapsed(),
        })
    }
}

/// True of so few quads that they need not be merged at once.
pub(crate) fn is_little(quads: u64, graph: &Snapshot) -> bool {
    let there = graph.triples() + graph.named_quads();
    quads <= MOST_LOGGED.min(there / LOGGED_SHARE)
}

/// The error of what a copy of a store loads as one transaction: a hint to load it before there are copies.
pub(crate) fn beyond_pool(error: EngineError) -> EngineError {
    match error {
        EngineError::PoolExhausted { limit_bytes }
        | EngineError::DocumentBeyondPool { limit_bytes } => {
            EngineError::LoadBeyondPool { limit_bytes }
        }
        error => error,
    }
}

/// Gives back what the load no longer needs, the threads that build included: each keeps what it
/// allocated.
pub(crate) fn release_free_memory() {
    rayon::broadcast(|_| allocator::release_free_memory());
    allocator::release_free_memory();
}

/// A report without what has become of the graph.
pub(crate) fn report(
    report: Report,
    [triples, named_quads]: [u64; 2],
    times: [Duration; 2],
) -> LoadReport {
    let [read_time, build_time] = times;
    LoadReport {
        quads: report.quads,
        bytes_read: report.bytes_read,
        skipped: report.skipped,
        errors: report.errors,
        faults: report.faults,
        odd: report.odd,
        mistaken: report.mistaken,
        triples,
        named_quads,
        read_time,
        build_time,
    }
}

/// Names and the IRIs that documents declare for them.
pub(crate) type Declared = Vec<(String, String)>;

/// Reads the sources and makes the base of a store that has nothing else; with the prefixes that they
/// declare.
pub(crate) fn base_of(
    sources: Vec<Source>,
    options: &LoadOptions,
    progress: &Progress,
) -> Result<(Base, LoadReport, Declared), EngineError> {
    let mut collected = Collected::read(sources, options, progress)?;
    let begin = Instant::now();
    let base = build(collected.sinks, collected.report.next_blank_scope)?;
    release_free_memory();
    let quads = [base.layer(LayerKind::Default).edges(), base.named().quads()];
    let times = [collected.read_time, begin.elapsed()];
    let prefixes = std::mem::take(&mut collected.report.prefixes);
    Ok((base, report(collected.report, quads, times), prefixes))
}

impl Database {
    /// Loads files, beside what is there, which keeps its ids: all of it or nothing. For a stored
    /// database it is on disk when this returns. Queries and updates go on while files are read, and
    /// nearly all of the time after that; only the first load of an empty database keeps updates
    /// waiting while it is built.
    ///
    /// What is little beside the graph is committed as an update is. Anything else waits for its turn
    /// as [`Database::compact`] does, once it is read, and becomes part of the base with all that
    /// changed before; that costs a pass over the predicates that changed. While other copies of the store follow
    /// ([`Database::replicate`]), everything is committed as an update is, whatever its size.
    ///
    /// # Errors
    /// [`EngineError::Cluster`] for a copy that follows another store, and [`EngineError::LoadBeyondPool`] for what a
    /// transaction takes more memory for than there is;
    /// [`EngineError::BoundedLoad`] with [`Config::load_memory_bytes`](crate::Config::load_memory_bytes), unless
    /// an empty store in a folder is filled;
    /// [`EngineError::Busy`] if something else was under way for all that time, or as an update for
    /// what is committed as one; the first bad statement with its file, line and column; what the
    /// operating system says. The graph is then as it was. With [`LoadOptions::lenient`] bad statements are skipped and
    /// counted.
    pub fn load(
        &self,
        sources: Vec<Source>,
        options: &LoadOptions,
        progress: &Progress,
    ) -> Result<LoadReport, EngineError> {
        let inner = self.inner();
        if let Some(bytes) = inner.config.load_memory_bytes {
            return self.load_within(bytes, sources, options, progress);
        }
        let mut options = options.clone();
        // Blank nodes of transactions that come while files are read must not be called as its own.
        options.blank_scope_start = inner
            .take_writer_first(&inner.deadline_of_turn())?
            .reserve_documents(sources.len() as u64, options.blank_scope_start)?;
        let collected = Collected::read(sources, &options, progress)?;
        let begin = Instant::now();
        // First, so that an error of this has stored nothing.
        inner.learn_prefixes(&collected.report.prefixes)?;
        let quads = collected.sinks.iter().map(BulkSink::quads).sum();
        if inner.leader().is_some() {
            let _memory = inner.reserve_for_load(&collected.sinks)?;
            self.load_as_transaction(&collected.sinks)?;
        } else if is_little(quads, &self.graph().snapshot) {
            self.load_as_transaction(&collected.sinks)?;
        } else {
            let deadline = inner.deadline_of_turn();
            inner.load_at_turn(collected.sinks, &deadline, &|_| true)?;
        }
        release_free_memory();
        inner.tell_subscriptions();
        let graph = &self.graph().snapshot;
        let quads = [graph.triples(), graph.named_quads()];
        let times = [collected.read_time, begin.elapsed()];
        Ok(report(collected.report, quads, times))
    }

    /// Commits what was collected as one transaction, which reads nothing.
    fn load_as_transaction(&self, sinks: &[BulkSink]) -> Result<(), EngineError> {
        let execute = |working: &mut Snapshot, _: &Deadline, _: Execution| {
            let stage = stage_onto(sinks, working)?;
            let (step, effect) = Step::make(stage, working);
            Ok(Done {
                steps: vec![step],
                effect,
                memory: RequestMemory::default(),
                calls_services: false,
                returns_delta: false,
            })
        };
        let search = Search {
            execute: &execute,
            is_long: true,
            documents: 0,
            brings: 0,
            clock: &Instant::now,
        };
        let deadline = self.inner().deadline_of_turn();
        self.search_and_transact(&deadline, &search).map(drop)
    }
}

impl Inner {
    /// When a load has waited long enough.
    pub(crate) fn deadline_of_turn(&self) -> Deadline {
        Deadline::new(Instant::now(), self.config.query_timeout, None)
    }

    /// Memory for what was collected as changes and new terms.
    ///
    /// # Errors
    /// [`EngineError::LoadBeyondPool`].
    fn reserve_for_load(&self, sinks: &[BulkSink]) -> Result<RequestMemory, EngineError> {
        let quads: u64 = sinks.iter().map(BulkSink::quads).sum();
        let text_bytes: u64 = sinks.iter().map(BulkSink::text_bytes).sum();
        let mut memory = RequestMemory::new(self.config.memory_pool.as_ref());
        let bytes = quads * NAMED_CHANGE_BYTES as u64 + text_bytes * TERM_COPIES as u64;
        memory.take(bytes).map_err(beyond_pool)?;
        Ok(memory)
    }

    /// Makes what was collected part of the base, if `stands` is true of the snapshot that it comes
    /// after. Gives the quads that were not there, and the first snapshot that has them.
    ///
    /// # Errors
    /// [`EngineError::Busy`]; [`EngineError::Contended`] if it does not stand; as
    /// [`load_onto`](Self::load_onto).
    pub(crate) fn load_at_turn(
        &self,
        sinks: Vec<BulkSink>,
        deadline: &Deadline,
        stands: &dyn Fn(&Snapshot) -> bool,
    ) -> Result<(u64, SnapshotNumber), EngineError> {
        let _one = self.turn.take(Occupation::Load, deadline)?;
        let mut writer = self.take_writer(Occupation::Load, deadline)?;
        let latest = writer.begin()?;
        if latest.is_blank() {
            self.load_afresh(&mut writer, &latest, sinks)?;
            let made = &writer.latest;
            return Ok((made.triples() + made.named_quads(), made.number()));
        }
        drop(writer);
        let done = self.load_onto(sinks, latest, stands);
        if done.is_err() {
            self.writer.lock().abandon();
        }
        done
    }

    /// The first load: a generation of its own, whose terms are in the best order.
    fn load_afresh(
        &self,
        writer: &mut Writer,
        latest: &Snapshot,
        sinks: Vec<BulkSink>,
    ) -> Result<(), EngineError> {
        let base = build(sinks, latest.documents())?;
        let base = base.with_union(latest.base().is_union());
        let number = SnapshotNumber(latest.number().0 + 1);
        self.replace_all(writer, base, number)?;
        writer.published.note(latest, &writer.latest);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::sync::mpsc::{Receiver, Sender, channel};

    use jindou_ingest::Format;

    use super::*;
    use crate::{Config, MergePolicy};

    /// A document that somebody else commits beside, before its first byte comes.
    struct Beside {
        database: Database,
        bytes: Cursor<Vec<u8>>,
        begun: Option<(Sender<()>, Receiver<()>)>,
        /// Reads, and those of them that found the writer's lock or the turn taken.
        reads: Arc<[AtomicUsize; 2]>,
    }

    impl Read for Beside {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            if let Some((begun, committed)) = self.begun.take() {
                begun.send(()).expect("the other thread waits");
                committed.recv().expect("the other thread commits");
            }
            let inner = self.database.inner();
            self.reads[0].fetch_add(1, SeqCst);
            let is_held = inner.writer.try_lock().is_none() || inner.turn.is_taken();
            self.reads[1].fetch_add(usize::from(is_held), SeqCst);
            let most = buffer.len().min(1000);
            self.bytes.read(&mut buffer[..most])
        }
    }

    fn document(quads: std::ops::Range<usize>) -> String {
        let line = |n: usize| format!("<http://e/{n}> <http://e/p> \"{}\" .\n", n % 7);
        quads.map(line).collect()
    }

    fn load(database: &Database, source: Source) -> LoadReport {
        let source = source.with_format(Format::NTriples);
        let (options, progress) = (LoadOptions::default(), Progress::default());
        let report = database.load(vec![source], &options, &progress);
        report.expect("the document is sound")
    }

    #[test]
    fn a_load_holds_no_lock_while_it_reads_and_keeps_what_others_commit_meanwhile() {
        let quiet = MergePolicy {
            fold_idle: Duration::from_secs(1 << 20),
            ..MergePolicy::never()
        };
        let database = Database::with_config(Config {
            merge: quiet,
            ..Config::default()
        });
        // The first load, one that is much beside the graph, and one that is little.
        let mut expected = 0;
        for (place, end) in [500, 1000, 1020].into_iter().enumerate() {
            let quads = [0, 500, 1000][place]..end;
            let (begun, has_begun) = channel();
            let (commits, committed) = channel();
            let reads: Arc<[AtomicUsize; 2]> = Arc::default();
            let source = Beside {
                database: database.clone(),
                bytes: Cursor::new(document(quads.clone()).into_bytes()),
                begun: Some((begun, committed)),
                reads: Arc::clone(&reads),
            };
            let generation = database.data_memory(None).generation.0;
            let report = std::thread::scope(|scope| {
                let database = &database;
                scope.spawn(move || {
                    has_begun.recv().expect("the load begins");
                    let update = format!("INSERT DATA {{ <http://e/{end}> <http://e/q> {end} }}");
                    database.update(&update).expect("nothing is in the way");
                    commits.send(()).expect("the load waits");
                });
                load(database, Source::reader("document.nt", source))
            });
            expected += quads.len() as u64 + 1;
            assert_eq!(report.triples, expected);
            let [reads, held] = reads.each_ref().map(|count| count.load(SeqCst));
            assert!(reads > 0);
            assert_eq!(held, 0, "of {reads} reads");
            assert_eq!(database.data_memory(None).generation.0, generation);
            let merged = database.graph().snapshot.changes() == 0;
            assert_eq!(merged, place < 2);
        }
    }

    #[test]
    fn a_load_into_an_empty_database_is_a_generation_of_its_own() {
        let database = Database::new();
        let generation = || database.data_memory(None).generation;
        let before = generation();
        load(&database, Source::bytes("a.nt", document(0..100)));
        assert_eq!(generation(), (before.0 + 1, 0));
        load(&database, Source::bytes("b.nt", document(50..200)));
        assert_eq!(generation(), (before.0 + 1, 1));
        // Nothing is new, so nothing is merged.
        let report = load(&database, Source::bytes("b.nt", document(50..200)));
        assert_eq!((report.quads, report.triples), (150, 200));
        assert_eq!(generation(), (before.0 + 1, 1));
    }
}
