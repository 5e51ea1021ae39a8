//! Which streams and continuous queries are there, and what may be made or taken away?

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use jindou_plan::{ContinuousQuery, Extent, ShapeKey, parse_continuous};
use jindou_stream::{
    CountWindow, NAME_RULE, Schedule, SlidingWindow, StreamDefinition, TimeWindow, is_name,
};
use oxrdf::NamedNode;
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;

use super::continuous::{Continuous, Figures, State};
use super::events::check_context;
use super::feed::check_source;
use super::records::Record;
use super::registrations::Registered;
use super::result_log::ResultLog;
use super::rings::check_fits;
use super::shapes::{Shape, Shaped};
use super::stream::Stream;
use super::subscription::Subscription;
use crate::deadline::Deadline;
use crate::request_memory::RequestMemory;
use crate::{Database, EngineError};

/// Streams and continuous queries by their names.
#[derive(Default)]
pub(super) struct Names {
    pub(super) streams: BTreeMap<String, Arc<Stream>>,
    pub(super) queries: BTreeMap<String, Arc<Continuous>>,
    /// By what queries have in common, as long as there is one of it.
    shapes: FxHashMap<Arc<ShapeKey>, Weak<Shape>>,
    /// The number of the last stream or query that was made.
    pub(super) last_number: u64,
}

/// Whether a query is not evaluated for the time being.
pub(super) struct Paused(pub(super) bool);

impl Names {
    /// The stream of this name or IRI.
    pub(super) fn stream(&self, name: &str) -> Option<&Arc<Stream>> {
        let by_iri = || {
            let mut streams = self.streams.values();
            streams.find(|stream| stream.definition.iri == name)
        };
        self.streams.get(name).or_else(by_iri)
    }

    /// The continuous query of this name.
    ///
    /// # Errors
    /// [`EngineError::NotFound`].
    pub(super) fn query(&self, name: &str) -> Result<Arc<Continuous>, EngineError> {
        let query = self.queries.get(name).cloned();
        query.ok_or_else(|| EngineError::NotFound {
            what: format!("continuous query {name}"),
        })
    }

    /// The durable ones.
    pub(super) fn durable_streams(&self) -> Vec<Arc<Stream>> {
        let streams = self.streams.values();
        let durable = streams.filter(|stream| stream.definition.durable);
        durable.map(Arc::clone).collect()
    }

    fn insert_query(&mut self, query: Arc<Continuous>) {
        for stream in distinct(&query.streams) {
            stream.add_reader(&query);
        }
        query.enter_queues();
        if let Some(stream) = &query.publishes {
            let made = Arc::clone(stream);
            self.streams.insert(stream.name.clone(), made);
        }
        self.queries.insert(query.name.clone(), query);
    }

    /// The shape of a query, which it shares with others that have it.
    fn shaped(&mut self, query: &ContinuousQuery) -> Option<Shaped> {
        let (shared, constants) = query.shared()?;
        let known = self.shapes.get(shared.key()).and_then(Weak::upgrade);
        let shape = known.unwrap_or_else(|| {
            if self.shapes.len() > 2 * self.queries.len() {
                self.shapes.retain(|_, shape| shape.strong_count() > 0);
            }
            let key = Arc::clone(shared.key());
            let shape = Arc::new(Shape::new(shared));
            self.shapes.insert(key, Arc::downgrade(&shape));
            shape
        });
        Some(Shaped::new(shape, constants))
    }

    pub(super) fn remove_query(&mut self, name: &str) {
        let Some(query) = self.queries.remove(name) else {
            return;
        };
        for stream in distinct(&query.streams) {
            stream.remove_reader(&query);
        }
        query.leave_queues();
        if let Some(stream) = &query.publishes {
            self.streams.remove(&stream.name);
        }
    }
}

impl Database {
    /// That streams and queries may be changed: asked before their names are locked, which merges do
    /// while they hold the writer's lock.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`]; [`EngineError::Cluster`] for a copy of a store that follows, or is followed.
    pub(super) fn check_names_writable(&self) -> Result<(), EngineError> {
        self.inner().check_may_stream()?;
        self.inner().check_says()?;
        self.inner().writer.lock().check_opened_to_write()
    }

    /// Makes a stream; true if there was none of this name. One that is there already stays if it is
    /// described alike.
    ///
    /// # Errors
    /// [`EngineError::InvalidQuery`] for a definition that makes no sense; [`EngineError::InUse`] if
    /// another stream has this name or this IRI; [`EngineError::TooManyRegistered`]; what the operating
    /// system says.
    pub fn create_stream(
        &self,
        name: &str,
        definition: StreamDefinition,
    ) -> Result<bool, EngineError> {
        self.check_names_writable()?;
        check_length(name, &definition)?;
        check_definition(name, &definition)?;
        if definition.durable && self.inner().directory.is_none() {
            return Err(EngineError::InvalidQuery {
                message: format!(
                    "{name}: \"durable\" needs a log, and this database is in memory only; leave it out, or keep \
                     the database in a folder, as `jindou serve --location DIR` does"
                ),
            });
        }
        check_context(self.inner(), &definition)?;
        let streams = &self.inner().streams;
        let known = streams.names.read().streams.get(name).cloned();
        let registered = match known {
            // It is this one, or refused.
            Some(_) => None,
            None => Some(self.inner().admit_stream(&definition)?),
        };
        let noted = {
            let _cut = streams.cut.read();
            let mut names = streams.names.write();
            let number = names.last_number + 1;
            let made = Stream::new(number, name, definition, registered);
            let Some(stream) = add_stream(made, &mut names)? else {
                return Ok(false);
            };
            let change = Record::CreateStream {
                stream: number,
                name,
                definition: Cow::Borrowed(&stream.definition),
            };
            let noted = self.inner().note_change(&names, &change);
            noted.inspect_err(|_| drop(names.streams.remove(name)))?
        };
        self.inner().settle_change(noted)?;
        Ok(true)
    }

    /// Takes a stream away; false if there is none of this name. What was absorbed stays.
    ///
    /// # Errors
    /// [`EngineError::InUse`] while a continuous query reads or makes it; what the operating system
    /// says.
    pub fn drop_stream(&self, name: &str) -> Result<bool, EngineError> {
        self.check_names_writable()?;
        let streams = &self.inner().streams;
        let cut = streams.cut.read();
        let mut names = streams.names.write();
        let Some(stream) = names.streams.get(name).cloned() else {
            return Ok(false);
        };
        if let Some(query) = stream.readers.read().first() {
            return Err(in_use(format!(
                "the continuous query {} reads {name}",
                query.name
            )));
        }
        let mut queries = names.queries.values();
        if stream.is_made
            && let Some(query) = queries.find(|query| query.makes(&stream))
        {
            return Err(in_use(format!(
                "the continuous query {} makes {name}",
                query.name
            )));
        }
        names.streams.remove(name);
        let change = Record::DropStream {
            stream: stream.number,
        };
        let noted = self.inner().note_change(&names, &change);
        let noted = noted.inspect_err(|_| {
            names.streams.insert(name.to_owned(), stream);
        })?;
        drop((names, cut));
        self.inner().settle_change(noted)?;
        Ok(true)
    }

    /// Registers a continuous query under a name; true if there was none of it. It is evaluated from
    /// the next instants of its windows on. Results of REGISTER STREAM with CONSTRUCT are a stream of
    /// the name or IRI in its header, which other queries may read.
    ///
    /// # Errors
    /// What is wrong with the name or the text; what it asks for and is not supported, by name;
    /// [`EngineError::NotFound`] for a stream that is not there; [`EngineError::InUse`] if the name is
    /// that of another query; [`EngineError::TooManyRegistered`]; what the operating system says.
    pub fn register(&self, name: &str, text: &str) -> Result<bool, EngineError> {
        if !is_name(name) {
            return Err(EngineError::InvalidQuery {
                message: format!("{name:?} is no name of a continuous query: {NAME_RULE}"),
            });
        }
        self.check_names_writable()?;
        let streams = &self.inner().streams;
        if let Some(is_known) = known(name, text, &streams.names.read()) {
            return is_known.map(|()| false);
        }
        let registered = self.inner().admit_query(text)?;
        // Others register theirs meanwhile.
        let parsed = self.parse_registration(text)?;
        let (query, noted) = {
            let _cut = streams.cut.read();
            let mut names = streams.names.write();
            let number = names.last_number + 1;
            let named = (number, name, text);
            let parsed = (parsed, registered);
            let Some(query) = add_parsed(named, parsed, Paused(false), &mut names)? else {
                return Ok(false);
            };
            let change = Record::Register {
                query: number,
                name,
                text,
                is_paused: false,
            };
            let noted = self.inner().note_change(&names, &change);
            let noted = noted.inspect_err(|_| names.remove_query(name))?;
            (query, noted)
        };
        self.inner().settle_change(noted)?;
        // Batches under way may wait for what waits for the names.
        self.inner().begin_query(&query)?;
        Ok(true)
    }

    /// Adds a query, which is yet to [begin](Continuous::begin); `None` if it is there.
    pub(super) fn add_query(
        &self,
        (number, name, text): (u64, &str, &str),
        is_paused: Paused,
    ) -> Result<Option<Arc<Continuous>>, EngineError> {
        let parsed = self.parse_registration(text)?;
        // It was admitted once.
        let registered = self.inner().streams.registrations.add_query(text);
        let mut names = self.inner().streams.names.write();
        add_parsed(
            (number, name, text),
            (parsed, registered),
            is_paused,
            &mut names,
        )
    }

    fn parse_registration(&self, text: &str) -> Result<ContinuousQuery, EngineError> {
        let inner = self.inner();
        let deadline = Deadline::new(Instant::now(), inner.config.query_timeout, None);
        let resolve = |name: &str| {
            let names = inner.streams.names.read();
            let stream = names.stream(name)?;
            Some(NamedNode::new_unchecked(&stream.definition.iri))
        };
        let union = inner.is_union(None);
        let mut memory = RequestMemory::new(inner.config.memory_pool.as_ref());
        memory.plan(&deadline, |limits| {
            parse_continuous(text, None, &resolve, union, limits)
        })
    }

    /// Ends a continuous query, and the stream that its results are; false if there is none of this
    /// name.
    ///
    /// # Errors
    /// [`EngineError::InUse`] while another query reads that stream; what the operating system says.
    pub fn unregister(&self, name: &str) -> Result<bool, EngineError> {
        self.check_names_writable()?;
        let streams = &self.inner().streams;
        let cut = streams.cut.read();
        let mut names = streams.names.write();
        let Some(query) = names.queries.get(name).cloned() else {
            return Ok(false);
        };
        if let Some(made) = &query.publishes {
            let readers = made.readers.read();
            if let Some(reader) = readers.iter().find(|reader| reader.name != name) {
                let message = format!("the continuous query {} reads {}", reader.name, made.name);
                return Err(in_use(message));
            }
        }
        names.remove_query(name);
        let change = Record::Unregister {
            query: query.number,
        };
        let noted = self.inner().note_change(&names, &change);
        let noted = noted.inspect_err(|_| names.insert_query(Arc::clone(&query)))?;
        drop((names, cut));
        self.inner().settle_change(noted)?;
        query.is_gone.store(true, Relaxed);
        self.inner().streams.pool.end_turns_of(query.number);
        self.inner().streams.published.remove(&query);
        query.log.end();
        for stream in distinct(&query.streams) {
            match stream.readers.read().is_empty() {
                true => stream.forget_read(),
                // Whatever comes next forgets what the others do not need.
                false => stream.forget_soon(),
            }
        }
        Ok(true)
    }

    /// Has a continuous query stop until further notice, or go on: with the instants that come then.
    ///
    /// # Errors
    /// [`EngineError::NotFound`]; what the operating system says.
    pub fn set_paused(&self, name: &str, is_paused: bool) -> Result<(), EngineError> {
        let query = self.known_query(name)?;
        self.check_names_writable()?;
        let streams = &self.inner().streams;
        let noted = {
            let _cut = streams.cut.read();
            let names = streams.names.write();
            let was_paused = query.is_paused.swap(is_paused, Relaxed);
            let change = Record::Pause {
                query: query.number,
                is_paused,
                last_ms: query.reached.lock().last_ms,
            };
            let noted = self.inner().note_change(&names, &change);
            noted.inspect_err(|_| query.is_paused.store(was_paused, Relaxed))?
        };
        self.inner().settle_change(noted)?;
        self.inner().wake(&query);
        self.inner().let_results_leave(&query);
        Ok(())
    }
}

/// Whether a query is there, if one has its name.
fn known(name: &str, text: &str, names: &Names) -> Option<Result<(), EngineError>> {
    let known = names.queries.get(name)?;
    Some(match known.text == text {
        true => Ok(()),
        false => Err(in_use(format!(
            "the continuous query {name} is there, and another one"
        ))),
    })
}

fn add_parsed(
    (number, name, text): (u64, &str, &str),
    (parsed, registered): (ContinuousQuery, Registered),
    Paused(is_paused): Paused,
    names: &mut Names,
) -> Result<Option<Arc<Continuous>>, EngineError> {
    if let Some(is_known) = known(name, text, names) {
        return is_known.map(|()| None);
    }
    let mut continuous = continuous((number, name, text), parsed, names)?;
    continuous.publishes = published(&continuous, names)?;
    if continuous.subscription.is_none() {
        continuous.shaped = names.shaped(&continuous.query);
    }
    continuous.is_paused.store(is_paused, Relaxed);
    continuous.registered = Some(registered);
    let query = Arc::new(continuous);
    names.last_number = names.last_number.max(number);
    names.insert_query(Arc::clone(&query));
    Ok(Some(query))
}

/// Adds a stream, of a definition that was checked; `None` if it is there.
pub(super) fn add_stream(
    stream: Stream,
    names: &mut Names,
) -> Result<Option<Arc<Stream>>, EngineError> {
    if let Some(known) = names.streams.get(&stream.name) {
        return match known.definition == stream.definition {
            true => Ok(None),
            false => Err(in_use(format!(
                "the stream {} is there, and another one",
                stream.name
            ))),
        };
    }
    let iri = &stream.definition.iri;
    if let Some(other) = names.stream(iri) {
        let message = format!("the stream {} has the IRI <{iri}>", other.name);
        return Err(in_use(message));
    }
    let stream = Arc::new(stream);
    names.last_number = names.last_number.max(stream.number);
    let name = stream.name.clone();
    names.streams.insert(name, Arc::clone(&stream));
    Ok(Some(stream))
}

/// # Errors
/// [`EngineError::InvalidQuery`] for a definition that makes no sense. Costs a pass over it, so that it is
/// called while no lock is held.
pub(super) fn check_definition(
    name: &str,
    definition: &StreamDefinition,
) -> Result<(), EngineError> {
    let checked = definition.check(name);
    checked.map_err(|error| EngineError::InvalidQuery {
        message: error.to_string(),
    })?;
    check_source(definition)
}

/// # Errors
/// [`EngineError::InvalidQuery`] for a definition that is too long to be made a stream. One that is there, as
/// of an earlier version, stays.
fn check_length(name: &str, definition: &StreamDefinition) -> Result<(), EngineError> {
    let length = definition.json_bytes();
    length.map(drop).map_err(|error| EngineError::InvalidQuery {
        message: format!("{name}: {error}"),
    })
}

pub(super) fn in_use(message: String) -> EngineError {
    EngineError::InUse { message }
}

/// Each stream once.
fn distinct(streams: &[Arc<Stream>]) -> impl Iterator<Item = &Arc<Stream>> {
    let is_first = |(at, stream): &(usize, &Arc<Stream>)| {
        !streams[..*at]
            .iter()
            .any(|before| Arc::ptr_eq(before, stream))
    };
    streams
        .iter()
        .enumerate()
        .filter(is_first)
        .map(|(_, stream)| stream)
}

/// The stream that the results of a query are, if they are one: that of the name in its header, or else
/// of the name that it is registered as.
fn published(continuous: &Continuous, names: &Names) -> Result<Option<Arc<Stream>>, EngineError> {
    let (name, query) = (&*continuous.name, &continuous.query);
    if !query.publishes || !query.is_construct() {
        return Ok(None);
    }
    let header = query.name.as_deref();
    let iri = header.filter(|header| NamedNode::new(*header).is_ok());
    let name = match iri {
        Some(_) => name,
        None => header.unwrap_or(name),
    };
    let own = format!("urn:jindou:stream:{name}");
    let iri = iri.unwrap_or(&own);
    if names.stream(name).or_else(|| names.stream(iri)).is_some() {
        return Err(in_use(format!(
            "a stream is called {name} or <{iri}> already"
        )));
    }
    let mut definition = StreamDefinition::new(iri);
    // Its tuples have the times of instants, and nothing comes between them.
    definition.interval_ms = 1;
    definition.durable = continuous.is_durable;
    check_definition(name, &definition)?;
    let number = continuous.number;
    Ok(Some(Arc::new(Stream::made(number, name, definition))))
}

/// A query over the streams that there are.
fn continuous(
    (number, name, text): (u64, &str, &str),
    query: ContinuousQuery,
    names: &Names,
) -> Result<Continuous, EngineError> {
    let subscription = match query.windows.is_empty() {
        true => Some(Subscription::new(&query)?),
        false => None,
    };
    let mut windows = Vec::with_capacity(query.windows.len());
    let mut streams = Vec::with_capacity(query.windows.len());
    for window in &query.windows {
        let stream = names.stream(window.stream.as_str());
        let stream = stream.ok_or_else(|| EngineError::NotFound {
            what: format!("stream <{}>", window.stream.as_str()),
        })?;
        let window = sliding_window(window.extent, query.every_ms);
        if let SlidingWindow::Count(window) = window {
            check_fits(window, stream)?;
        }
        streams.push(Arc::clone(stream));
        windows.push(window);
    }
    let schedule = Schedule {
        windows,
        every_ms: query.every_ms,
    };
    let has_counts = schedule.has_counts();
    let is_whole = has_counts || query.reads_times();
    let overlaps = !is_whole && schedule.time_windows().any(TimeWindow::overlaps);
    Ok(Continuous {
        name: name.to_owned(),
        number,
        is_durable: streams.iter().any(|stream| stream.definition.durable),
        text: text.to_owned(),
        schedule,
        window_names: query
            .windows
            .iter()
            .map(|window| window.name.as_str().into())
            .collect(),
        begins: OnceLock::new(),
        streams: streams.into(),
        state: State::default().into(),
        query,
        log: ResultLog::default(),
        sinks: RwLock::default(),
        reached: Mutex::default(),
        leaving: Mutex::default(),
        handing_out: Mutex::default(),
        is_paused: false.into(),
        is_gone: false.into(),
        wakes: 0.into(),
        waiting: Mutex::default(),
        is_long: false.into(),
        is_slow: false.into(),
        overlaps,
        has_counts,
        incremental: OnceLock::new(),
        shaped: None,
        subscription,
        plans: None.into(),
        publishes: None,
        last_ms: i64::MIN.into(),
        figures: Figures::default(),
        registered: None,
    })
}

/// A window without a step of its own tumbles; one over time slides with the query instead, if that says
/// how often it is evaluated.
fn sliding_window(extent: Extent, every_ms: Option<u64>) -> SlidingWindow {
    match extent {
        Extent::Time { range_ms, step_ms } => SlidingWindow::Time(TimeWindow {
            range_ms,
            step_ms: step_ms.or(every_ms).unwrap_or(range_ms),
        }),
        Extent::Count { triples, step } => SlidingWindow::Count(CountWindow {
            tuples: triples,
            step: step.unwrap_or(triples),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_begins_after_a_batch_that_was_under_way_before_it() {
        let database = Database::new();
        let definition = StreamDefinition::new("http://e/s");
        database.create_stream("s", definition).expect("it is new");
        let stream = database.known_stream("s").expect("it is there");
        let batch = stream.closing.lock();
        std::thread::scope(|scope| {
            let text = "ASK FROM STREAM <http://e/s> [RANGE 1s] WHERE { ?x ?p ?y }";
            let registering = scope.spawn(|| database.register("q", text));
            while database.continuous_query("q").is_none() {
                std::thread::yield_now();
            }
            let query = database.known_query("q").expect("it is there");
            stream.set_stable(9_000);
            assert_eq!(query.due(&query.state.lock()), None);
            {
                let mut intake = stream.intake.lock();
                intake.heartbeat(5_000);
                assert!(intake.take_complete().is_none());
            }
            drop(batch);
            let registered = registering.join().expect("it does not panic");
            assert!(registered.expect("it is sound"));
            assert_eq!(query.begins.get().map(|begins| begins[0]), Some(5_000));
            assert_eq!(query.state.lock().last_ms, Some(5_000));
        });
    }
}
