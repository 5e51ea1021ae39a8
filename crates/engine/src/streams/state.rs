//! What are all streams and queries at one moment, so that what the log said before may be forgotten?
//!
//! A state is taken between batches, while nobody appends: it refers to windows and answers, and copies
//! what waits. It is written afterwards, while all goes on.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use jindou_exec::Catalogue as _;
use jindou_model::{PredicateId, SnapshotNumber, TermKind};
use jindou_store::window::StreamTuple;
use jindou_store::{Directory, SideLog};
use jindou_stream::Position;
use parking_lot::MutexGuard;

use super::answer::Answer;
use super::catalogue::Names;
use super::continuous::{Continuous, Reached};
use super::copied::Copied;
use super::journal::Place;
use super::records::{Record, ResultRecord, TuplesKind};
use super::result_log::ContinuousResult;
use super::rings::Kept;
use super::stream::Stream;
use super::tuples::{ObjectKey, TupleKeys, Tuples};
use crate::database::Inner;
use crate::graph::StoredGraph;
use crate::{Database, EngineError};

/// Bytes of the results of all queries that a state has; a query has its share.
const RESULT_BYTES: usize = 64 << 20;
/// And no more of one.
const MOST_BYTES_OF_QUERY: usize = 16 << 20;
/// Tuples of one record.
const TUPLES: usize = 16 << 10;

/// How often all durable streams are to be found between batches at once, before one after the other has to
/// wait there for the others.
const MOST_ATTEMPTS: u32 = 64;

/// Whether a thread may wait for a stream that is busy.
#[derive(Clone, Copy)]
pub(super) struct MayWait(pub(super) bool);

type Put<'a> = dyn FnMut(&[u8]) -> io::Result<()> + 'a;

/// All streams and queries at a moment.
pub(crate) struct StreamsState {
    graph: Arc<StoredGraph>,
    /// Catalogue records, ready to be written.
    catalogue: Vec<Vec<u8>>,
    streams: Vec<StreamState>,
    queries: Vec<QueryState>,
}

struct StreamState {
    stream: Arc<Stream>,
    position: Position,
    counts: [u64; 4],
    producers: Vec<(String, u64)>,
    notes: Vec<u8>,
    open: Vec<Tuples>,
    late: Vec<(u64, Tuples)>,
    windows: Kept,
}

struct QueryState {
    query: Arc<Continuous>,
    reached: Reached,
    results: Vec<Arc<ContinuousResult>>,
}

fn put_record(record: &Record<'_>, put: &mut Put<'_>) -> io::Result<()> {
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    put(&bytes)
}

/// Writes what makes the same streams and queries, each after what it needs.
pub(super) fn put_catalogue(names: &Names, put: &mut Put<'_>) -> io::Result<()> {
    let is_own = |(_, stream): &(&String, &Arc<Stream>)| !stream.is_made;
    for (name, stream) in names.streams.iter().filter(is_own) {
        let record = Record::CreateStream {
            stream: stream.number,
            name,
            definition: Cow::Borrowed(&stream.definition),
        };
        put_record(&record, put)?;
    }
    // What one reads was there before it.
    let by_number = names.queries.values().map(|query| (query.number, query));
    for query in BTreeMap::from_iter(by_number).into_values() {
        let record = Record::Register {
            query: query.number,
            name: &query.name,
            text: &query.text,
            is_paused: query.is_paused(),
        };
        put_record(&record, put)?;
        if let (true, Some(begins)) = (query.is_durable, query.begins.get()) {
            let record = Record::Begin {
                query: query.number,
                last_ms: query.reached.lock().last_ms,
                begins: Cow::Borrowed(begins),
            };
            put_record(&record, put)?;
        }
        let sinks = query.sinks.read();
        let mut records = sinks.iter().map(|sink| sink.record(query.number));
        records.try_for_each(|record| put_record(&record, put))?;
    }
    Ok(())
}

impl StreamState {
    /// The stream is between batches, and nothing comes.
    fn of(stream: &Arc<Stream>) -> Self {
        let intake = stream.intake.lock();
        let producers = stream.producers.lock();
        Self {
            position: intake.position(),
            counts: stream.counts.all().map(|count| count.load(Relaxed)),
            producers: producers
                .iter()
                .map(|(name, sequence)| (name.to_owned(), sequence))
                .collect(),
            notes: stream.notes.lock().clone(),
            open: intake.open().cloned().collect(),
            late: stream.late_facts.lock().clone(),
            windows: stream.kept(),
            stream: Arc::clone(stream),
        }
    }

    fn write(&self, graph: &StoredGraph, put: &mut Put<'_>) -> io::Result<()> {
        let stream = self.stream.number;
        let state = Record::StreamState {
            stream,
            position: self.position,
            counts: self.counts,
        };
        put_record(&state, put)?;
        for (producer, sequence) in &self.producers {
            let producer = Record::Producer {
                stream,
                producer,
                sequence: *sequence,
            };
            put_record(&producer, put)?;
        }
        if !self.notes.is_empty() {
            let notes = Cow::Borrowed(&*self.notes);
            put_record(&Record::Notes { stream, notes }, put)?;
        }
        let mut put_tuples = |kind, tuples: &Tuples| {
            let tuples = Cow::Borrowed(tuples);
            let record = Record::Tuples {
                stream,
                kind,
                tuples,
            };
            put_record(&record, put)
        };
        for tuples in &self.open {
            put_tuples(TuplesKind::Open, tuples)?;
        }
        for (late, tuples) in &self.late {
            put_tuples(TuplesKind::Late(*late), tuples)?;
        }
        let mut reader = KeyReader::new(graph);
        self.windows.for_each_some(&mut |some| {
            for some in some.chunks(TUPLES) {
                let mut tuples = Tuples::default();
                some.iter()
                    .for_each(|tuple| reader.push(*tuple, &mut tuples));
                put_tuples(TuplesKind::Absorbed, &tuples)?;
            }
            Ok(())
        })
    }
}

impl QueryState {
    fn of(query: &Arc<Continuous>, share_bytes: usize) -> Self {
        Self {
            reached: query.reached.lock().clone(),
            results: query.last_results(share_bytes),
            query: Arc::clone(query),
        }
    }

    fn write(&self, put: &mut Put<'_>) -> io::Result<()> {
        let query = self.query.number;
        for result in &self.results {
            let record = ResultRecord {
                query,
                instant_ms: result.instant_ms,
                sequence: result.sequence,
                windows: result.windows.iter().map(|window| window.held).collect(),
                snapshot: result.snapshot,
                empty: 0,
                is_given: true,
                answer: match &result.answer {
                    Ok(answer) => Ok(Cow::Borrowed(answer)),
                    Err(error) => Err(Cow::Borrowed(error)),
                },
            };
            put_record(&Record::Result(record), put)?;
        }
        let before: Option<&Answer> = self.reached.before.as_deref();
        let state = Record::QueryState {
            query,
            last_ms: self.reached.last_ms,
            sequence: self.reached.sequence,
            empty: self.reached.empty,
            before: before.map(Cow::Borrowed),
        };
        put_record(&state, put)
    }
}

impl StreamsState {
    /// The streams that have ones are between batches, and nobody appends to the log.
    fn of(graph: Arc<StoredGraph>, names: &Names) -> Self {
        let mut catalogue = Vec::new();
        let put = put_catalogue(names, &mut |record| {
            catalogue.push(record.to_vec());
            Ok(())
        });
        put.expect("memory takes it");
        let durable = names.queries.values().filter(|query| query.is_durable);
        let queries: Vec<&Arc<Continuous>> = durable.collect();
        let share = (RESULT_BYTES / queries.len().max(1)).min(MOST_BYTES_OF_QUERY);
        Self {
            graph,
            catalogue,
            streams: names
                .durable_streams()
                .iter()
                .map(StreamState::of)
                .collect(),
            queries: queries
                .into_iter()
                .map(|query| QueryState::of(query, share))
                .collect(),
        }
    }

    pub(crate) fn write(&self, put: &mut Put<'_>) -> io::Result<()> {
        self.catalogue.iter().try_for_each(|record| put(record))?;
        let mut streams = || {
            let mut streams = self.streams.iter();
            streams.try_for_each(|stream| stream.write(&self.graph, put))
        };
        // Terms may lie in files that lost bytes.
        self.graph.read(&mut streams).map_err(io::Error::other)??;
        self.queries.iter().try_for_each(|query| query.write(put))
    }
}

/// Turns ids of tuples into the keys of their terms.
struct KeyReader<'g> {
    graph: &'g StoredGraph,
    predicate: Option<(PredicateId, String)>,
    keys: [Vec<u8>; 2],
}

impl<'g> KeyReader<'g> {
    fn new(graph: &'g StoredGraph) -> Self {
        Self {
            graph,
            predicate: None,
            keys: Default::default(),
        }
    }

    fn push(&mut self, tuple: StreamTuple, to: &mut Tuples) {
        if self
            .predicate
            .as_ref()
            .is_none_or(|(id, _)| *id != tuple.predicate)
        {
            let mut key = Vec::new();
            let term = self.graph.predicate_term(tuple.predicate);
            self.graph.snapshot.push_key(term, &mut key);
            let iri = String::from_utf8(key).expect("an IRI is text");
            self.predicate = Some((tuple.predicate, iri));
        }
        let [subject, object] = &mut self.keys;
        subject.clear();
        object.clear();
        self.graph.snapshot.push_key(tuple.subject, subject);
        if !tuple.object.is_inline() {
            self.graph.snapshot.push_key(tuple.object, object);
        }
        let (_, predicate) = self.predicate.as_ref().expect("it was read");
        let keys = TupleKeys {
            subject,
            predicate,
            object: match tuple.object.kind() {
                TermKind::Literal => ObjectKey::Literal(object),
                TermKind::Vertex => ObjectKey::Node(object),
                _ => ObjectKey::Inline(tuple.object),
            },
        };
        to.push_keys(tuple.time_ms, keys);
    }
}

/// Finds all streams between batches, without waiting for one while it holds another: first for that which
/// was found busy before.
///
/// # Errors
/// A stream that is busy.
fn lock_together<'s>(
    streams: &'s [Arc<Stream>],
    first: Option<&Arc<Stream>>,
) -> Result<Vec<MutexGuard<'s, ()>>, Arc<Stream>> {
    let is_first = |stream: &&Arc<Stream>| first.is_some_and(|first| Arc::ptr_eq(first, stream));
    let mut closing = Vec::with_capacity(streams.len());
    closing.extend(
        streams
            .iter()
            .find(is_first)
            .map(|stream| stream.closing.lock()),
    );
    for stream in streams.iter().filter(|stream| !is_first(stream)) {
        let lock = stream.closing.try_lock();
        closing.push(lock.ok_or_else(|| Arc::clone(stream))?);
    }
    Ok(closing)
}

impl Inner {
    /// Calls a function at a moment between batches of all durable streams, at which nobody appends.
    ///
    /// A stream whose batches take long is waited for while others go on. `None` if there is one and the
    /// caller is not to wait.
    fn between_batches<T>(&self, may_wait: MayWait, then: impl FnOnce(&Names) -> T) -> Option<T> {
        let streams = &self.streams;
        let mut last_busy = None;
        for attempt in 0_u32.. {
            let durable = streams.names.read().durable_streams();
            // Before the cut: who has one of these locks appends.
            let closing = match attempt < MOST_ATTEMPTS {
                false => durable.iter().map(|stream| stream.closing.lock()).collect(),
                true => match lock_together(&durable, last_busy.as_ref()) {
                    Ok(closing) => closing,
                    Err(busy) if may_wait.0 => {
                        last_busy = Some(busy);
                        continue;
                    }
                    Err(_) => return None,
                },
            };
            let cut = streams.cut.write();
            let names = streams.names.read();
            let now = names.durable_streams();
            let is_same = now.len() == durable.len()
                && now
                    .iter()
                    .zip(&durable)
                    .all(|(one, other)| Arc::ptr_eq(one, other));
            if is_same {
                return Some(then(&names));
            }
            drop((names, cut, closing));
        }
        unreachable!("it goes on until it has all of them")
    }

    /// Writes a state once much was logged since the last one, by this thread.
    ///
    /// What cannot be written is tried again later.
    pub(super) fn limit_journal(&self) {
        let Some(journal) = self.streams.journal.get() else {
            return;
        };
        let least = self.config.stream_log_bytes;
        let (bytes, state_bytes) = journal.bytes();
        let most = least.max(state_bytes);
        if bytes <= most {
            return;
        }
        let Some(_one) = self.streams.writing_state.try_lock() else {
            return;
        };
        // It is tried again soon; but in the end it has to be.
        let may_wait = MayWait(bytes > most.saturating_mul(2));
        if let Err(error) = self.write_state(may_wait) {
            tracing::warn!(%error, "the log of streams is not cut");
        }
    }

    /// Does nothing where a stream is busy and this is not to wait for it.
    fn write_state(&self, may_wait: MayWait) -> Result<(), EngineError> {
        let Some(journal) = self.streams.journal.get() else {
            return Ok(());
        };
        let (log, state_bytes) = match &journal.place {
            Place::Own { log, state_bytes } => (log, state_bytes),
            Place::WithTransactions { copied, .. } => {
                return self.say_state(copied, may_wait);
            }
        };
        let taken = self.between_batches(may_wait, |names| {
            let number = log.begin_state()?;
            let state = StreamsState::of(self.graph.load_full(), names);
            Ok::<_, EngineError>((number, state))
        });
        let Some(taken) = taken else {
            return Ok(());
        };
        let (number, state) = taken?;
        let written = log.write_state(number, &mut |put| state.write(put))?;
        state_bytes.store(written, Relaxed);
        Ok(())
    }

    /// Has a state go to all copies of the store, with the next transaction.
    pub(super) fn say_state(&self, copied: &Copied, may_wait: MayWait) -> Result<(), EngineError> {
        let said = self.between_batches(may_wait, |names| {
            let state = StreamsState::of(self.graph.load_full(), names);
            // All that was said before is in it, and what is said from now on comes after it.
            copied.say_state(|put| state.write(put))
        });
        said.unwrap_or(Ok(()))
    }

    /// The graph as it is at a moment, and what streams and queries are then, where they have a log.
    ///
    /// # Errors
    /// Those of a transaction, where this is the copy of a store that leads.
    pub(crate) fn graph_and_streams(
        &self,
    ) -> Result<(Arc<StoredGraph>, Option<StreamsState>), EngineError> {
        let Some(journal) = self.streams.journal.get() else {
            return Ok((self.graph.load_full(), None));
        };
        loop {
            if let Place::WithTransactions { .. } = &journal.place {
                journal.sync_all()?;
            }
            let taken = self.between_batches(MayWait(true), |names| {
                let graph = self.graph.load_full();
                if let Place::WithTransactions { copied, .. } = &journal.place
                    && !copied.is_all_said(graph.snapshot.number())
                {
                    // A later transaction would say again what the state says.
                    return None;
                }
                let state = StreamsState::of(Arc::clone(&graph), names);
                Some((graph, Some(state)))
            });
            if let Some(taken) = taken.expect("it waits") {
                return Ok(taken);
            }
        }
    }

    /// Puts a state into a copy of the store as it is at a snapshot.
    ///
    /// # Errors
    /// What the operating system says.
    pub(crate) fn copy_streams(
        &self,
        state: Option<&StreamsState>,
        snapshot: SnapshotNumber,
        to: &Directory,
    ) -> Result<(), EngineError> {
        if let Some(state) = state {
            let options = jindou_store::DurabilityOptions::default();
            SideLog::create(to, &options, &mut |put| state.write(put))?;
        } else if let Some(copied) = self.streams.copied.get() {
            copied.copy(snapshot, to)?;
        } else if let Some(directory) = &self.directory {
            SideLog::copy(directory, to)?;
        }
        Ok(())
    }
}

impl Database {
    /// Has what the log of streams says put together, so that it can be forgotten: what happens by
    /// itself when it has become long. Does nothing where there is none.
    ///
    /// # Errors
    /// What the operating system says; nothing is lost then.
    pub fn cut_stream_log(&self) -> Result<(), EngineError> {
        let _one = self.inner().streams.writing_state.lock();
        self.inner().write_state(MayWait(true))
    }

    /// Bytes that the streams of a stored database take on disk, and how often their log was synced;
    /// `None` if there are none.
    #[must_use]
    pub fn stream_log(&self) -> Option<(u64, u64)> {
        self.inner().journal_figures()
    }
}

#[cfg(test)]
mod tests {
    use jindou_stream::StreamDefinition;

    use crate::{Config, Database, TupleFormat};

    const LOG_BYTES: u64 = 64 << 10;

    /// A push of some kilobytes that completes what was pushed before.
    fn push(database: &Database, name: &str, time_ms: i64) {
        let line = |tuple| format!("{time_ms}\t<http://e/{tuple}> <http://e/p> <http://e/o> .\n");
        let text: String = (0..100).map(line).collect();
        let pushed = database.push(name, TupleFormat::Lines, None, text.into_bytes());
        pushed.expect("it is sound");
    }

    #[test]
    fn a_stream_whose_batches_take_long_holds_up_no_push_to_another_one() {
        let folder = tempfile::tempdir().expect("there is room");
        let config = Config {
            stream_log_bytes: LOG_BYTES,
            ..Config::default()
        };
        let opened = Database::open_or_create(&folder.path().join("store"), config);
        let database = opened.expect("it is new");
        // The lock of the first one is taken first.
        for name in ["a", "long", "z"] {
            let mut definition = StreamDefinition::new(format!("http://e/{name}"));
            definition.durable = true;
            database.create_stream(name, definition).expect("it is new");
        }
        let long = database.known_stream("long").expect("it is there");
        let bytes = || database.stream_log().expect("it has a log").0;
        let mut times = (1..).map(|batch| batch * 100);
        let mut push_to_others = || {
            let time_ms = times.next().expect("there are more");
            for name in ["a", "z"] {
                push(&database, name, time_ms);
            }
        };
        let closing = long.closing.lock();
        while bytes() <= LOG_BYTES {
            push_to_others();
        }
        push_to_others();
        assert!(bytes() > LOG_BYTES, "it is not cut while one is busy");
        drop(closing);
        push_to_others();
        assert!(bytes() <= LOG_BYTES, "it is cut with the next push");
        // Nor while somebody waits for it.
        let closing = long.closing.lock();
        std::thread::scope(|scope| {
            let cutting = scope.spawn(|| database.cut_stream_log());
            let writing = &database.inner().streams.writing_state;
            while writing.try_lock().is_some() {
                std::thread::yield_now();
            }
            (0..20).for_each(|_| push_to_others());
            drop(closing);
            let cut = cutting.join().expect("it does not panic");
            cut.expect("there is room");
        });
        assert!(bytes() <= LOG_BYTES);
    }
}
