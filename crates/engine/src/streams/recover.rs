//! Streams and queries come back as the log says they were: what waited waits, windows have their
//! tuples, and no result is found twice.
//!
//! The log is read to its end first. What comes then is what would have come next: batches are taken as
//! they were, since each record says which had been taken before it; those whose facts the graph has are
//! only given their ids again; and queries go on with the instant after their last result.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use jindou_store::{Directory, SideLog};
use rustc_hash::FxHashMap;

use super::absorb::stored;
use super::catalogue::{Names, Paused, add_stream, check_definition};
use super::continuous::{Continuous, Reached};
use super::copied::{Copied, Records};
use super::evaluate::publisher;
use super::journal::{Journal, NEVER, Revocation};
use super::records::{Facts, Push, Record, ResultRecord, TuplesKind};
use super::result_log::{ContinuousResult, ResultWindow};
use super::sinks::{Delivered, Sink, add_sink, check_sink};
use super::state::MayWait;
use super::stream::Stream;
use super::together::{Batches, Standing};
use super::tuples::Tuples;
use crate::{Database, EngineError};

/// The snapshot of facts that were in the graph when a state was written.
const BEFORE: u64 = 0;

/// What was read so far.
struct Reading<'d> {
    database: &'d Database,
    streams: BTreeMap<u64, Arc<Stream>>,
    queries: BTreeMap<u64, Arc<Continuous>>,
    /// The snapshot that would have some facts.
    intents: FxHashMap<(u64, Facts), u64>,
    /// Documents that have numbers.
    documents: u64,
}

impl Database {
    /// Makes the streams and queries what the log of the store says that they were, if it has one.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] with the file; those of a transaction.
    pub(crate) fn restore_streams(self) -> Result<Self, EngineError> {
        if let Some(directory) = &self.inner().directory {
            match SideLog::is_in(directory) {
                // They go on where the copy leads.
                true if self.inner().config.is_replicated => {}
                true => self.recover_streams(directory)?,
                false => check_no_old_names(directory)?,
            }
        }
        Ok(self)
    }

    fn recover_streams(&self, directory: &Directory) -> Result<(), EngineError> {
        let inner = self.inner();
        let mut reading = Reading::new(self);
        let path = directory.path().join("streams");
        let opened = SideLog::open(directory, &inner.config.durability, &mut |bytes| {
            reading.take(bytes, &path)
        })?;
        let Some((log, _)) = opened else {
            return Ok(());
        };
        inner.set_journal(Arc::new(Journal::new(log)));
        reading.go_on()
    }

    /// Has the streams of a copy of a store go on here, as it leads now.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] with the file; those of a transaction.
    pub(super) fn take_over_streams(&self, copied: &Arc<Copied>) -> Result<(), EngineError> {
        let inner = self.inner();
        let mut reading = Reading::new(self);
        let path = copied.path();
        let was_alone = copied.read(&mut |bytes| reading.take(bytes, &path))?;
        inner.set_journal(Arc::new(Journal::of_leader(copied, inner)));
        reading.go_on()?;
        if was_alone {
            // Of what was done while this was no copy the others do not know.
            inner.say_state(copied, MayWait(true))?;
        }
        Ok(())
    }

    /// Reads what the streams and continuous queries of a store are that was opened to be read only: they can
    /// be asked about then, with the results that are kept with the store. They rest all the same: nothing
    /// comes, and nothing is evaluated. Does nothing where there are none, and for any other database.
    ///
    /// Costs what reading the log of streams does.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] with the file that is not as it was written; what the operating system says.
    /// There are none then.
    pub fn show_resting_streams(&self) -> Result<(), EngineError> {
        let inner = self.inner();
        let (Some(directory), true) = (&inner.directory, self.has_resting_streams()) else {
            return Ok(());
        };
        let path = directory.path().join("streams");
        let shown = SideLog::unmoved(directory, || {
            let mut reading = Reading::new(self);
            let read = SideLog::read(directory, &mut |bytes| reading.take(bytes, &path));
            if read.is_err() {
                *inner.streams.names.write() = Names::default();
            }
            read.map(|()| reading.rest())
        });
        inner.streams.are_shown.store(shown.is_ok(), Relaxed);
        shown
    }

    /// Reads what the log of the streams in a directory says, and alters nothing.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] with the file that is not as it was written.
    pub(crate) fn check_streams(directory: &Directory) -> Result<(), EngineError> {
        SideLog::read(directory, &mut |bytes| match Record::decode(bytes) {
            Ok(_) => Ok(()),
            Err(bad) => Err(EngineError::Corrupt {
                path: directory.path().join("streams"),
                reason: bad.to_string(),
            }),
        })
    }
}

/// # Errors
/// [`EngineError::Corrupt`] where a build before the log of streams kept their names: they would be gone.
fn check_no_old_names(directory: &Directory) -> Result<(), EngineError> {
    let path = directory.path().join("STREAMS");
    match path.exists() {
        false => Ok(()),
        true => Err(EngineError::Corrupt {
            path,
            reason:
                "a build before the first release kept names of streams in it; without the file \
                     the store is opened, and they are to be made again"
                    .to_owned(),
        }),
    }
}

impl<'d> Reading<'d> {
    fn new(database: &'d Database) -> Self {
        Self {
            database,
            streams: BTreeMap::new(),
            queries: BTreeMap::new(),
            intents: FxHashMap::default(),
            documents: 0,
        }
    }

    /// Applies a record of the log at a path.
    fn take(&mut self, bytes: &[u8], path: &Path) -> Result<(), EngineError> {
        let corrupt = |reason: String| EngineError::Corrupt {
            path: path.to_owned(),
            reason,
        };
        let record = Record::decode(bytes).map_err(|bad| corrupt(bad.to_string()))?;
        if let Record::Said { records, .. } = &record {
            return Records(records).try_for_each(|record| self.take(record, path));
        }
        self.apply(record).map_err(|error| match error {
            EngineError::Io { .. } | EngineError::Corrupt { .. } => error,
            other => corrupt(other.to_string()),
        })
    }

    /// Leaves all streams as they are: what is complete is counted, and not kept.
    fn rest(self) {
        self.note_standings();
        for stream in self.streams.values() {
            rest(stream);
        }
    }

    fn apply(&mut self, record: Record<'_>) -> Result<(), EngineError> {
        match record {
            Record::CreateStream {
                stream,
                name,
                definition,
            } => {
                check_definition(name, &definition)?;
                let streams = &self.database.inner().streams;
                // It was admitted once.
                let registered = Some(streams.registrations.add_stream(&definition));
                let made = Stream::new(stream, name, definition.into_owned(), registered);
                let added = add_stream(made, &mut streams.names.write())?;
                self.streams.extend(added.map(|added| (stream, added)));
            }
            Record::DropStream { stream } => {
                if let Some(stream) = self.streams.remove(&stream) {
                    let mut names = self.database.inner().streams.names.write();
                    names.streams.remove(&stream.name);
                }
            }
            Record::Register {
                query,
                name,
                text,
                is_paused,
            } => self.register((query, name, text), Paused(is_paused))?,
            Record::Unregister { query } => {
                if let Some(query) = self.queries.remove(&query) {
                    if query.publishes.is_some() {
                        self.streams.remove(&query.number);
                    }
                    let mut names = self.database.inner().streams.names.write();
                    names.remove_query(&query.name);
                }
            }
            Record::Push(push) => self.push(&push),
            Record::Heartbeat { stream, time_ms } => {
                if let Some(stream) = self.streams.get(&stream) {
                    stream.intake.lock().heartbeat(time_ms);
                }
            }
            Record::Intent {
                stream,
                facts,
                snapshot,
            } => {
                self.intend(stream, facts, snapshot);
            }
            Record::Result(result) => self.result(result),
            Record::Said { .. } => unreachable!("its records are taken one by one"),
            Record::Begin { .. } | Record::Pause { .. } | Record::QueryState { .. } => {
                self.apply_of_query(record);
            }
            Record::CreateSink { .. } | Record::DropSink { .. } | Record::Delivered { .. } => {
                self.apply_of_sink(record)?;
            }
            Record::Notes { stream, notes } => {
                if let Some(stream) = self.streams.get(&stream) {
                    *stream.notes.lock() = notes.into_owned();
                }
            }
            Record::StreamState { .. } | Record::Producer { .. } | Record::Tuples { .. } => {
                self.apply_of_stream(record);
            }
        }
        Ok(())
    }

    fn apply_of_query(&mut self, record: Record<'_>) {
        match record {
            Record::Begin {
                query,
                last_ms,
                begins,
            } => {
                if let Some(query) = self.queries.get(&query)
                    && query.begins.get().is_none()
                    && begins.len() == query.streams.len()
                {
                    query.begin(last_ms, begins.into_owned().into());
                }
            }
            Record::Pause {
                query,
                is_paused,
                last_ms,
            } => {
                if let Some(query) = self.queries.get(&query) {
                    query.is_paused.store(is_paused, Relaxed);
                    let reached = query.reached.lock().clone();
                    query.resume(Reached {
                        last_ms: last_ms.max(reached.last_ms),
                        ..reached
                    });
                }
            }
            Record::QueryState {
                query,
                last_ms,
                sequence,
                empty,
                before,
            } => {
                if let Some(query) = self.queries.get(&query) {
                    query.resume(Reached {
                        last_ms,
                        sequence,
                        empty,
                        before: before.map(|before| Arc::new(before.into_owned())),
                    });
                }
            }
            other => unreachable!("{other:?} is not only of a query"),
        }
    }

    fn apply_of_sink(&mut self, record: Record<'_>) -> Result<(), EngineError> {
        match record {
            Record::CreateSink {
                query,
                sink,
                name,
                definition,
                delivered,
            } => {
                check_sink(name, &definition)?;
                let names = &self.database.inner().streams.names;
                let mut names = names.write();
                names.last_number = names.last_number.max(sink);
                if let Some(query) = self.queries.get(&query) {
                    // Results that are not kept with the store are counted from 1 again.
                    let delivered = if query.is_durable {
                        delivered
                    } else {
                        Delivered::default()
                    };
                    let sink = Sink {
                        name: name.to_owned(),
                        number: sink,
                        definition: definition.into_owned(),
                        delivered: delivered.into(),
                    };
                    add_sink(query, sink)?;
                }
            }
            Record::DropSink { query, sink } => {
                if let Some(query) = self.queries.get(&query) {
                    query.sinks.write().retain(|known| known.number != sink);
                }
            }
            Record::Delivered {
                query,
                sink,
                delivered,
            } => {
                if let Some(query) = self.queries.get(&query) {
                    let sinks = query.sinks.read();
                    if let Some(sink) = sinks.iter().find(|known| known.number == sink) {
                        *sink.delivered.lock() = delivered;
                    }
                }
            }
            other => unreachable!("{other:?} is not of a sink"),
        }
        Ok(())
    }

    fn apply_of_stream(&mut self, record: Record<'_>) {
        match record {
            Record::StreamState {
                stream,
                position,
                counts,
            } => {
                if let Some(stream) = self.streams.get(&stream) {
                    stream.intake.lock().resume(position);
                    let all = stream.counts.all().into_iter().zip(counts);
                    all.for_each(|(count, value)| count.store(value, Relaxed));
                }
            }
            Record::Producer {
                stream,
                producer,
                sequence,
            } => {
                if let Some(stream) = self.streams.get(&stream) {
                    stream.producers.lock().note(producer, sequence);
                }
            }
            Record::Tuples {
                stream,
                kind,
                tuples,
            } => self.tuples(stream, kind, &tuples),
            other => unreachable!("{other:?} is not only of a stream"),
        }
    }

    fn register(
        &mut self,
        (number, name, text): (u64, &str, &str),
        is_paused: Paused,
    ) -> Result<(), EngineError> {
        let added = self.database.add_query((number, name, text), is_paused);
        let added = added.map_err(|error| EngineError::InvalidQuery {
            message: format!("continuous query {name}: {error}"),
        })?;
        if let Some(query) = added {
            let made = query
                .publishes
                .iter()
                .map(|made| (number, Arc::clone(made)));
            self.streams.extend(made);
            self.queries.insert(number, query);
        }
        Ok(())
    }

    fn push(&mut self, push: &Push<'_>) {
        self.documents = self.documents.max(push.tuples.scope());
        let Some(stream) = self.streams.get(&push.stream) else {
            return;
        };
        for (producer, sequence) in &push.producers {
            stream.producers.lock().note(producer, *sequence);
        }
        stream.notes.lock().extend_from_slice(push.notes);
        let mut intake = stream.intake.lock();
        // What was late is late again.
        intake.close_before(push.first_open);
        stream.put(&mut intake, &push.tuples, push.late);
    }

    fn tuples(&mut self, number: u64, kind: TuplesKind, tuples: &Tuples) {
        self.documents = self.documents.max(tuples.scope());
        let Some(stream) = self.streams.get(&number) else {
            return;
        };
        if let TuplesKind::Late(name) = kind {
            stream.late_facts.lock().push((name, tuples.clone()));
            return;
        }
        let mut intake = stream.intake.lock();
        for (tuple, time_ms) in tuples.times().iter().enumerate() {
            intake.batch_again(*time_ms).copy(tuples, tuple);
            if kind == TuplesKind::Absorbed {
                let facts = Facts::Batch(intake.batch_begin(*time_ms));
                self.intents.insert((number, facts), BEFORE);
            }
        }
    }

    /// What was found is what is given, but for differences.
    fn result(&self, record: ResultRecord<'_>) {
        let Some(query) = self.queries.get(&record.query) else {
            return;
        };
        let answer = record.answer.map(Cow::into_owned);
        let answer = match record.is_given {
            true => answer,
            false => {
                let mut state = query.state.lock();
                let answer = answer.map(|answer| query.output(&mut state, answer));
                let before = state.before.clone();
                drop(state);
                query.resume(Reached {
                    last_ms: Some(record.instant_ms),
                    before,
                    sequence: record.sequence,
                    empty: record.empty,
                });
                answer
            }
        };
        let windows = query.window_names.iter().zip(&*record.windows);
        query.log.push(Arc::new(ContinuousResult {
            instant_ms: record.instant_ms,
            sequence: record.sequence,
            windows: windows
                .map(|(name, held)| ResultWindow {
                    name: Arc::clone(name),
                    held: *held,
                })
                .collect(),
            snapshot: record.snapshot,
            held: answer
                .as_ref()
                .ok()
                .map(|answer| self.database.inner().hold_restored(answer)),
            answer: answer.map_err(Cow::into_owned),
            removed: None,
        }));
    }

    /// Does what was to be done next when the log ended.
    fn go_on(self) -> Result<(), EngineError> {
        let inner = self.database.inner();
        // Blank nodes of texts to come must not be called as those that wait are.
        if self.documents > 0 {
            inner.writer.lock().reserve_documents(0, self.documents)?;
        }
        self.revoke_intents();
        self.note_standings();
        let durable = |stream: &&Arc<Stream>| stream.definition.durable;
        for stream in self.streams.values().filter(durable) {
            self.settle(stream)?;
        }
        for query in self.queries.values() {
            if query.begins.get().is_none() {
                inner.begin_query(query)?;
            }
        }
        // A query comes after those whose results it reads.
        for query in self.queries.values().filter(|query| query.is_durable) {
            self.publish_again(query);
            inner.wake(query);
            inner.let_results_leave(query);
        }
        self.streams
            .values()
            .for_each(|stream| stream.forget_read());
        Ok(())
    }

    fn intend(&mut self, number: u64, facts: Facts, snapshot: u64) {
        let Facts::Batches(first_ms, last_ms) = facts else {
            self.intents.insert((number, facts), snapshot);
            return;
        };
        if let Some(stream) = self.streams.get(&number) {
            // All that they have came before.
            let intake = stream.intake.lock();
            for begin_ms in intake.open_between(first_ms, last_ms) {
                let batch = (number, Facts::Batch(begin_ms));
                self.intents.insert(batch, snapshot);
            }
        }
    }

    /// Other transactions will have the numbers of those that did not come about.
    fn revoke_intents(&self) {
        let inner = self.database.inner();
        let snapshot = self.database.snapshot_number().0;
        let Some(journal) = inner.streams.journal.get() else {
            return;
        };
        let failed = self
            .intents
            .iter()
            .filter(|(_, intended)| **intended > snapshot && **intended != NEVER);
        let revocations =
            failed.map(|((stream, facts), _)| Revocation::new(journal, *stream, *facts));
        inner.writer.lock().take_back(revocations);
    }

    /// Notes how far the facts of each stream are in the graph.
    fn note_standings(&self) {
        let snapshot = self.database.snapshot_number().0;
        for ((number, facts), intended) in &self.intents {
            if let (Facts::Batch(begin_ms), Some(stream)) = (*facts, self.streams.get(number))
                && *intended <= snapshot
            {
                let mut standings = stream.standings.lock();
                standings.stored_ms = standings.stored_ms.max(Some(begin_ms));
                if *intended == BEFORE {
                    standings.counted_ms = standings.counted_ms.max(Some(begin_ms));
                }
            }
        }
    }

    /// Makes all complete batches of a stream part of the data, as far as they are not.
    ///
    /// # Errors
    /// Those of files that are not as they were written. What cannot be written waits.
    fn settle(&self, stream: &Arc<Stream>) -> Result<(), EngineError> {
        let inner = self.database.inner();
        let snapshot = self.database.snapshot_number().0;
        stream.late_facts.lock().retain(|(name, late)| {
            let intent = self.intents.get(&(stream.number, Facts::Late(*name)));
            let is_stored = intent.is_some_and(|intended| *intended <= snapshot);
            let facts = if is_stored { facts_of(stream, late) } else { 0 };
            stream.counts.absorbed.fetch_add(facts, Relaxed);
            !is_stored
        });
        stream.resume_numbers();
        {
            let intake = stream.intake.lock();
            let waiting = intake.open().map(Tuples::size).sum();
            stream.waiting_bytes.store(waiting, Relaxed);
            stream.hear(&intake, &inner.config.clock);
        }
        match inner.close_batches(stream) {
            Err(error @ (EngineError::Corrupt { .. } | EngineError::Io { .. })) => Err(error),
            Err(error) => {
                tracing::warn!(stream = stream.name, %error, "complete batches wait");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Results that were found, and had not become tuples of the query's stream.
    fn publish_again(&self, query: &Arc<Continuous>) {
        let Some(made) = &query.publishes else {
            return;
        };
        let last = made.producers.lock().last_of(&publisher(query));
        for result in query.last_results(usize::MAX) {
            if result.sequence > last.unwrap_or(0) {
                self.database.inner().publish_answer(query, &result);
            }
        }
    }
}

/// Counts the batches of a stream that were complete, whose tuples nobody will read here, and says how far it is.
fn rest(stream: &Stream) {
    loop {
        let batches = Batches::take_complete(stream);
        if batches.are_none() {
            break;
        }
        if batches.standing() != Standing::Counted {
            let tuples = batches.joined();
            let facts = facts_of(stream, &tuples);
            let all = tuples.len() as u64;
            stream.counts.batches.fetch_add(batches.len(), Relaxed);
            stream.counts.absorbed.fetch_add(facts, Relaxed);
            if stream.readers.read().is_empty() {
                stream.counts.unread.fetch_add(all - facts, Relaxed);
            }
        }
    }
    let intake = stream.intake.lock();
    let waiting = intake.open().map(Tuples::size).sum();
    stream.waiting_bytes.store(waiting, Relaxed);
    if let Some(stable_ms) = intake.stable_ms() {
        stream.set_stable(stable_ms);
    }
}

/// How many of some tuples are facts.
fn facts_of(stream: &Stream, tuples: &Tuples) -> u64 {
    let stored = stored(stream, tuples);
    stored.iter().filter(|is_fact| **is_fact).count() as u64
}
