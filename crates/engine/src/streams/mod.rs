//! Streams and continuous queries: how does a tuple become part of the data, and when is a query told?
//!
//! A tuple waits in its stream until its batch is complete. A batch is one transaction: its terms get
//! ids, its timeless tuples are stored, and all that a query may read becomes a run of the stream's
//! ring. Then the stream is stable up to the end of the batch, and whatever query has all its windows
//! complete is evaluated, over the latest snapshot, which has all that these windows have.

mod absorb;
mod answer;
mod continuous;
mod evaluate;
mod input;
mod stream;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use jindou_model::TermId;
use jindou_plan::{ContinuousQuery, Extent, parse_continuous};
use jindou_stream::{NAME_RULE, Schedule, StreamDefinition, TimeWindow, is_name};
use oxrdf::NamedNode;
use parking_lot::{Mutex, RwLock};

pub use answer::{Answer, Rows};
use continuous::{Continuous, Figures, ResultLog, State};
pub use continuous::{ContinuousResult, ContinuousStatus, NextResult};
pub use input::{PushReport, TupleFormat};
use stream::Stream;
pub use stream::StreamStatus;

use crate::deadline::Deadline;
use crate::request_memory::RequestMemory;
use crate::{Database, EngineError};

/// Streams and continuous queries of a database, by their names.
#[derive(Default)]
pub(crate) struct Streams {
    names: RwLock<Names>,
    staged: absorb::Staged,
    /// Terms that only streams have.
    candidates: Mutex<Vec<TermId>>,
    /// How often ids were taken from terms, which plans remember.
    forgotten: AtomicU64,
}

#[derive(Default)]
struct Names {
    streams: BTreeMap<String, Arc<Stream>>,
    queries: BTreeMap<String, Arc<Continuous>>,
}

impl Streams {
    /// Ids were taken from terms: plans made before are not used any more.
    pub(crate) fn forget_plans(&self) {
        self.forgotten.fetch_add(1, Relaxed);
    }
}

impl Names {
    /// The stream of this name or IRI.
    fn stream(&self, name: &str) -> Option<&Arc<Stream>> {
        let by_iri = || {
            self.streams
                .values()
                .find(|stream| stream.definition.iri == name)
        };
        self.streams.get(name).or_else(by_iri)
    }
}

/// A reader of a continuous query's results.
///
/// A thread waits with [`next_within`](Self::next_within), a task with [`poll_next`](Self::poll_next).
pub struct ContinuousResults {
    query: Arc<Continuous>,
    after: u64,
    /// Its number among the readers of the query.
    reader: u64,
}

impl ContinuousResults {
    /// The next result, waited for as long as said.
    pub fn next_within(&mut self, wait: Duration) -> NextResult {
        let next = self.query.log.next(self.after, wait);
        self.pass(&next);
        next
    }

    /// The next result; never [`NextResult::None`]. A task that finds none is woken when there is one.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<NextResult> {
        let next = self.query.log.poll(self.after, self.reader, context);
        if let Poll::Ready(next) = &next {
            self.pass(next);
        }
        next
    }

    fn pass(&mut self, next: &NextResult) {
        if let NextResult::Result(result, _) = next {
            self.after = result.sequence;
        }
    }
}

impl Drop for ContinuousResults {
    fn drop(&mut self) {
        self.query.log.forget_reader(self.reader);
    }
}

impl Database {
    /// Makes a stream; true if there was none of this name. One that is there already stays if it is
    /// described alike.
    ///
    /// # Errors
    /// [`EngineError::InvalidQuery`] for a definition that makes no sense; [`EngineError::InUse`] if
    /// another stream has this name or this IRI.
    pub fn create_stream(
        &self,
        name: &str,
        definition: StreamDefinition,
    ) -> Result<bool, EngineError> {
        definition
            .check(name)
            .map_err(|error| EngineError::InvalidQuery {
                message: error.to_string(),
            })?;
        let mut names = self.inner().streams.names.write();
        if let Some(known) = names.streams.get(name) {
            return match known.definition == definition {
                true => Ok(false),
                false => Err(in_use(format!(
                    "the stream {name} is there, and another one"
                ))),
            };
        }
        if let Some(other) = names.stream(&definition.iri) {
            let message = format!("the stream {} has the IRI <{}>", other.name, definition.iri);
            return Err(in_use(message));
        }
        let stream = Arc::new(Stream::new(name, definition));
        names.streams.insert(name.to_owned(), stream);
        Ok(true)
    }

    /// Takes a stream away; false if there is none of this name. What was absorbed stays.
    ///
    /// # Errors
    /// [`EngineError::InUse`] while a continuous query reads it.
    pub fn drop_stream(&self, name: &str) -> Result<bool, EngineError> {
        let mut names = self.inner().streams.names.write();
        let Some(stream) = names.streams.get(name) else {
            return Ok(false);
        };
        let mut readers = names.queries.values();
        let reads =
            |query: &&Arc<Continuous>| query.streams.iter().any(|one| Arc::ptr_eq(one, stream));
        if let Some(query) = readers.find(reads) {
            return Err(in_use(format!(
                "the continuous query {} reads {name}",
                query.name
            )));
        }
        names.streams.remove(name);
        Ok(true)
    }

    /// All streams, by their names.
    #[must_use]
    pub fn streams(&self) -> Vec<StreamStatus> {
        let names = self.inner().streams.names.read();
        names
            .streams
            .values()
            .map(|stream| stream.status())
            .collect()
    }

    /// A stream; `None` if there is none of this name.
    #[must_use]
    pub fn stream(&self, name: &str) -> Option<StreamStatus> {
        let names = self.inner().streams.names.read();
        names.streams.get(name).map(|stream| stream.status())
    }

    /// The last tuples that came too late for their windows, as lines of time, tab and statement.
    ///
    /// # Errors
    /// [`EngineError::NotFound`].
    pub fn late_tuples(&self, name: &str) -> Result<String, EngineError> {
        let late = self.known_stream(name)?.late();
        let lines = late
            .iter()
            .map(|(time, quad)| format!("{time}\t{quad} .\n"));
        Ok(lines.collect())
    }

    fn known_stream(&self, name: &str) -> Result<Arc<Stream>, EngineError> {
        let names = self.inner().streams.names.read();
        names
            .streams
            .get(name)
            .cloned()
            .ok_or_else(|| EngineError::NotFound {
                what: format!("stream {name}"),
            })
    }

    /// Registers a continuous query under a name; true if there was none of it. It is evaluated from
    /// the next instants of its windows on.
    ///
    /// # Errors
    /// What is wrong with the name or the text; what it asks for and is not supported, by name;
    /// [`EngineError::NotFound`] for a stream that is not there; [`EngineError::InUse`] if the name is
    /// that of another query.
    pub fn register(&self, name: &str, text: &str) -> Result<bool, EngineError> {
        if !is_name(name) {
            return Err(EngineError::InvalidQuery {
                message: format!("{name:?} is no name of a continuous query: {NAME_RULE}"),
            });
        }
        let mut names = self.inner().streams.names.write();
        if let Some(known) = names.queries.get(name) {
            return match known.text == text {
                true => Ok(false),
                false => Err(in_use(format!(
                    "the continuous query {name} is there, and another one"
                ))),
            };
        }
        let query = self.parse_registration(text, &names)?;
        let continuous = Arc::new(continuous(name, text, query, &names)?);
        for stream in distinct(&continuous.streams) {
            stream.readers.fetch_add(1, Relaxed);
        }
        names.queries.insert(name.to_owned(), continuous);
        Ok(true)
    }

    fn parse_registration(
        &self,
        text: &str,
        names: &Names,
    ) -> Result<ContinuousQuery, EngineError> {
        let inner = self.inner();
        let deadline = Deadline::new(std::time::Instant::now(), inner.config.query_timeout, None);
        let resolve = |name: &str| {
            let stream = names.stream(name)?;
            Some(NamedNode::new_unchecked(&stream.definition.iri))
        };
        let union = inner.is_union(None);
        let mut memory = RequestMemory::new(inner.config.memory_pool.as_ref());
        memory.plan(&deadline, |limits| {
            parse_continuous(text, None, &resolve, union, limits)
        })
    }

    /// Ends a continuous query; false if there is none of this name.
    pub fn unregister(&self, name: &str) -> bool {
        let gone = self.inner().streams.names.write().queries.remove(name);
        let Some(query) = gone else {
            return false;
        };
        query.is_gone.store(true, Relaxed);
        for stream in distinct(&query.streams) {
            stream.readers.fetch_sub(1, Relaxed);
        }
        query.log.end();
        true
    }

    /// Has a continuous query stop until further notice, or go on: with the instants that come then.
    ///
    /// # Errors
    /// [`EngineError::NotFound`].
    pub fn set_paused(&self, name: &str, is_paused: bool) -> Result<(), EngineError> {
        let query = self.known_query(name)?;
        query.is_paused.store(is_paused, Relaxed);
        if !is_paused {
            self.evaluate_due();
        }
        Ok(())
    }

    /// All continuous queries, by their names.
    #[must_use]
    pub fn continuous_queries(&self) -> Vec<ContinuousStatus> {
        let names = self.inner().streams.names.read();
        names.queries.values().map(|query| query.status()).collect()
    }

    /// A continuous query; `None` if there is none of this name.
    #[must_use]
    pub fn continuous_query(&self, name: &str) -> Option<ContinuousStatus> {
        self.known_query(name).ok().map(|query| query.status())
    }

    /// The results of a continuous query after one that was seen, or from now on.
    ///
    /// # Errors
    /// [`EngineError::NotFound`]; [`EngineError::InvalidQuery`] if that one has not been yet, as when it
    /// is of another query that had the name.
    pub fn results_of(
        &self,
        name: &str,
        after: Option<u64>,
    ) -> Result<ContinuousResults, EngineError> {
        let query = self.known_query(name)?;
        let last = query.log.last();
        let after = after.unwrap_or(last);
        if after > last {
            return Err(EngineError::InvalidQuery {
                message: format!(
                    "the continuous query {name} has given {last} results: none has the number {after}"
                ),
            });
        }
        let reader = query.log.new_reader();
        Ok(ContinuousResults {
            query,
            after,
            reader,
        })
    }

    fn known_query(&self, name: &str) -> Result<Arc<Continuous>, EngineError> {
        let names = self.inner().streams.names.read();
        names
            .queries
            .get(name)
            .cloned()
            .ok_or_else(|| EngineError::NotFound {
                what: format!("continuous query {name}"),
            })
    }
}

fn in_use(message: String) -> EngineError {
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

/// A query over the streams that there are.
fn continuous(
    name: &str,
    text: &str,
    query: ContinuousQuery,
    names: &Names,
) -> Result<Continuous, EngineError> {
    if query.windows.is_empty() {
        let feature = "continuous queries without a window of a stream".to_owned();
        return Err(EngineError::Unsupported {
            feature,
            place: None,
        });
    }
    if query.publishes {
        let feature = "REGISTER STREAM".to_owned();
        return Err(EngineError::Unsupported {
            feature,
            place: None,
        });
    }
    let mut windows = Vec::with_capacity(query.windows.len());
    let mut streams = Vec::with_capacity(query.windows.len());
    for window in &query.windows {
        let stream = names.stream(window.stream.as_str());
        let stream = stream.ok_or_else(|| EngineError::NotFound {
            what: format!("stream <{}>", window.stream.as_str()),
        })?;
        streams.push(Arc::clone(stream));
        windows.push(time_window(window.extent, query.every_ms)?);
    }
    let stable: Vec<Option<i64>> = streams.iter().map(|stream| stream.stable_ms()).collect();
    Ok(Continuous {
        name: name.to_owned(),
        text: text.to_owned(),
        schedule: Schedule {
            windows,
            every_ms: query.every_ms,
        },
        begins: stable
            .iter()
            .map(|stable| stable.unwrap_or(i64::MIN))
            .collect(),
        streams: streams.into(),
        state: State {
            last_ms: stable.into_iter().flatten().max(),
            ..State::default()
        }
        .into(),
        query,
        log: ResultLog::default(),
        is_paused: false.into(),
        is_gone: false.into(),
        figures: Figures::default(),
    })
}

/// A window over time; without a step of its own it slides with the query, or else by its range.
fn time_window(extent: Extent, every_ms: Option<u64>) -> Result<TimeWindow, EngineError> {
    match extent {
        Extent::Time { range_ms, step_ms } => Ok(TimeWindow {
            range_ms,
            step_ms: step_ms.or(every_ms).unwrap_or(range_ms),
        }),
        Extent::Count { .. } => Err(EngineError::Unsupported {
            feature: "windows of a number of triples".to_owned(),
            place: None,
        }),
    }
}
