//! To which brokers do the results of a query go, and up to which one have they gone?
//!
//! The catalogue has sinks and how far each is; whoever delivers results asks for them here. The last
//! result that a sink got is in the log of streams, synced only now and then: what a crash takes of that is
//! delivered again, with the same id and the same content.

use std::borrow::Cow;
use std::sync::Arc;

use jindou_stream::{NAME_RULE, SinkDefinition, is_name};
use parking_lot::Mutex;

use super::catalogue::in_use;
use super::continuous::Continuous;
use super::records::Record;
use super::result_log::ContinuousResults;
use crate::{Database, EngineError};

/// Sinks of one query, at most.
const MOST_SINKS: usize = 16;

/// A sink of a query.
pub(super) struct Sink {
    pub(super) name: String,
    /// No other sink, stream or query of the store ever has it.
    pub(super) number: u64,
    pub(super) definition: SinkDefinition,
    pub(super) delivered: Mutex<Delivered>,
}

/// How far a sink is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Delivered {
    /// The number of the last result that it got.
    pub sequence: u64,
    /// Results that were dropped before it could get them.
    pub missed: u64,
}

/// Where results of a query go, for whoever delivers them.
#[derive(Clone)]
pub struct ResultSink {
    database: Database,
    query: Arc<Continuous>,
    sink: Arc<Sink>,
}

impl Database {
    /// Has the results of a query go to a sink, those from now on; true if there was none of this name.
    /// One that is there already stays if it is described alike.
    ///
    /// # Errors
    /// [`EngineError::NotFound`]; [`EngineError::InvalidQuery`] for a name or a definition that makes no
    /// sense; [`EngineError::InUse`] if another sink has this name, or the query has as many as it may;
    /// what the operating system says.
    pub fn create_sink(
        &self,
        query: &str,
        name: &str,
        definition: SinkDefinition,
    ) -> Result<bool, EngineError> {
        check_sink(name, &definition)?;
        self.check_names_writable()?;
        let streams = &self.inner().streams;
        let noted = {
            let _cut = streams.cut.read();
            let mut names = streams.names.write();
            let query = names.query(query)?;
            let number = names.last_number + 1;
            let sequence = query.log.last();
            let sink = Sink {
                name: name.to_owned(),
                number,
                definition,
                delivered: Mutex::new(Delivered {
                    sequence,
                    missed: 0,
                }),
            };
            let Some(sink) = add_sink(&query, sink)? else {
                return Ok(false);
            };
            names.last_number = number;
            let noted = self.inner().note_change(&names, &sink.record(query.number));
            noted.inspect_err(|_| drop(remove_sink(&query, name)))?
        };
        self.inner().settle_change(noted)?;
        Ok(true)
    }

    /// Ends a sink; false if the query has none of this name.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] for the query; what the operating system says.
    pub fn drop_sink(&self, query: &str, name: &str) -> Result<bool, EngineError> {
        self.check_names_writable()?;
        let streams = &self.inner().streams;
        let noted = {
            let _cut = streams.cut.read();
            let names = streams.names.write();
            let query = names.query(query)?;
            let Some(sink) = remove_sink(&query, name) else {
                return Ok(false);
            };
            let change = Record::DropSink {
                query: query.number,
                sink: sink.number,
            };
            let noted = self.inner().note_change(&names, &change);
            noted.inspect_err(|_| query.sinks.write().push(sink))?
        };
        self.inner().settle_change(noted)?;
        Ok(true)
    }

    /// All sinks of all queries.
    #[must_use]
    pub fn sinks(&self) -> Vec<ResultSink> {
        let names = self.inner().streams.names.read();
        let queries = names.queries.values();
        queries.flat_map(|query| self.sinks_in(query)).collect()
    }

    /// The sinks of a query.
    ///
    /// # Errors
    /// [`EngineError::NotFound`].
    pub fn sinks_of(&self, query: &str) -> Result<Vec<ResultSink>, EngineError> {
        Ok(self.sinks_in(&self.known_query(query)?))
    }

    fn sinks_in(&self, query: &Arc<Continuous>) -> Vec<ResultSink> {
        let handle = |sink: &Arc<Sink>| ResultSink {
            database: self.clone(),
            query: Arc::clone(query),
            sink: Arc::clone(sink),
        };
        query.sinks.read().iter().map(handle).collect()
    }
}

impl Sink {
    /// What makes it as it is.
    pub(super) fn record(&self, query: u64) -> Record<'_> {
        Record::CreateSink {
            query,
            sink: self.number,
            name: &self.name,
            definition: Cow::Borrowed(&self.definition),
            delivered: *self.delivered.lock(),
        }
    }
}

/// Adds a sink to its query; `None` if it is there.
///
/// # Errors
/// [`EngineError::InUse`].
pub(super) fn add_sink(query: &Continuous, sink: Sink) -> Result<Option<Arc<Sink>>, EngineError> {
    let mut sinks = query.sinks.write();
    if let Some(known) = sinks.iter().find(|known| known.name == sink.name) {
        return match known.definition == sink.definition {
            true => Ok(None),
            false => Err(in_use(format!(
                "the sink {} of {} is there, and another one",
                sink.name, query.name
            ))),
        };
    }
    if sinks.len() >= MOST_SINKS {
        let message = format!(
            "{} has {MOST_SINKS} sinks, as many as a query may",
            query.name
        );
        return Err(in_use(message));
    }
    let sink = Arc::new(sink);
    sinks.push(Arc::clone(&sink));
    Ok(Some(sink))
}

fn remove_sink(query: &Continuous, name: &str) -> Option<Arc<Sink>> {
    let mut sinks = query.sinks.write();
    let place = sinks.iter().position(|sink| sink.name == name)?;
    Some(sinks.remove(place))
}

/// # Errors
/// [`EngineError::InvalidQuery`].
pub(super) fn check_sink(name: &str, definition: &SinkDefinition) -> Result<(), EngineError> {
    let wrong = match definition.check() {
        _ if !is_name(name) => format!("{name:?} is no name of a sink: {NAME_RULE}"),
        Err(error) => error.to_string(),
        Ok(()) => return Ok(()),
    };
    Err(EngineError::InvalidQuery { message: wrong })
}

impl ResultSink {
    /// The name of its query.
    #[must_use]
    pub fn query(&self) -> &str {
        &self.query.name
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.sink.name
    }

    /// What no other sink of the database ever has.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.sink.number
    }

    /// Where it leads.
    #[must_use]
    pub fn definition(&self) -> &SinkDefinition {
        &self.sink.definition
    }

    /// How far it is.
    #[must_use]
    pub fn delivered(&self) -> Delivered {
        *self.sink.delivered.lock()
    }

    /// Whether it and its query are there still.
    #[must_use]
    pub fn is_there(&self) -> bool {
        let names = self.database.inner().streams.names.read();
        let named = names.queries.get(&self.query.name);
        let is_its = |query: &Arc<Continuous>| Arc::ptr_eq(query, &self.query);
        let sinks = self.query.sinks.read();
        named.is_some_and(is_its) && sinks.iter().any(|sink| Arc::ptr_eq(sink, &self.sink))
    }

    /// The results after the last one that it got.
    #[must_use]
    pub fn results(&self) -> ContinuousResults {
        let log = &self.query.log;
        ContinuousResults {
            // Where nothing is synced, a crash of the machine takes results that were delivered.
            after: self.delivered().sequence.min(log.last()),
            reader: log.new_reader(),
            waits: false,
            query: Arc::clone(&self.query),
        }
    }

    /// Notes how far it is, which survives with whatever is synced next, or when it is
    /// [settled](Self::settle).
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`] if the log takes nothing: it is known until the database is closed.
    pub fn deliver(&self, delivered: Delivered) -> Result<(), EngineError> {
        let inner = self.database.inner();
        {
            let _cut = inner.streams.cut.read();
            *self.sink.delivered.lock() = delivered;
            let is_there = |sink: &Arc<Sink>| Arc::ptr_eq(sink, &self.sink);
            if !self.query.sinks.read().iter().any(is_there) {
                return Ok(());
            }
            if let Some(journal) = inner.journal_of_query(&self.query) {
                journal.append(&Record::Delivered {
                    query: self.query.number,
                    sink: self.sink.number,
                    delivered,
                })?;
            }
        }
        inner.limit_journal();
        Ok(())
    }

    /// Has what was noted survive a kill, where the results of its query do.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`] if the log takes nothing.
    pub fn settle(&self) -> Result<(), EngineError> {
        match self.database.inner().journal_of_query(&self.query) {
            Some(journal) => journal.sync_all(),
            None => Ok(()),
        }
    }
}
