//! Streams and continuous queries: how does a tuple become part of the data, and when is a query told?
//!
//! A tuple waits in its stream until its batch is complete. A batch is one transaction: its terms get
//! ids, its timeless tuples are stored, and all that a query may read becomes a run of the stream's
//! ring. Then the stream is stable up to the end of the batch, and whatever query has all its windows
//! complete is evaluated, over the latest snapshot, which has all that these windows have.

mod absorb;
mod answer;
mod brought;
mod bytes;
mod catalogue;
mod continuous;
mod copied;
mod due;
mod evaluate;
mod events;
mod feed;
mod formats;
mod gap;
mod held;
mod histogram;
mod incremental;
mod input;
mod instants;
mod interruption;
mod journal;
mod late;
mod leaving;
mod plans;
mod pool;
mod readers;
mod records;
#[cfg(test)]
mod records_tests;
mod recover;
mod registrations;
mod result_log;
mod rings;
mod rows;
mod shapes;
mod sinks;
mod solutions;
mod state;
mod stream;
mod subscription;
mod tick;
mod together;
mod tuples;
mod written;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use jindou_model::TermId;
use parking_lot::{Mutex, RwLock};

pub use answer::Answer;
use catalogue::Names;
use continuous::Continuous;
pub use continuous::{AnswerForm, ContinuousStatus};
pub(crate) use copied::{Copied, check_said};
pub use events::EventError;
pub use events::milliseconds_of;
pub use feed::{FeedMessage, FeedReport, MOST_NOTES_BYTES, StreamFeed};
pub use formats::TupleFormat;
pub use input::{Producer, PushReport};
pub(crate) use journal::Revocation;
pub(crate) use pool::Pool;
pub use result_log::{ContinuousResult, ContinuousResults, HeldTuples, NextResult, ResultWindow};
pub use rows::Rows;
pub use sinks::{Delivered, ResultSink};
use stream::Stream;
pub use stream::StreamStatus;
pub(crate) use subscription::Published;
pub(crate) use tuples::{ObjectKey, TupleKeys};

use crate::database::Inner;
use crate::replica::Anew;
use crate::{Database, EngineError};

/// Streams and continuous queries of a database, by their names.
#[derive(Default)]
pub(crate) struct Streams {
    names: RwLock<Names>,
    staged: absorb::Staged,
    pub(crate) pool: Arc<Pool>,
    held_results: Arc<held::HeldResults>,
    registrations: Arc<registrations::Registrations>,
    /// The store has streams, and was opened to be read only.
    pub(crate) are_resting: AtomicBool,
    /// What they were was read all the same.
    are_shown: AtomicBool,
    /// Transactions of which queries without windows are yet to hear.
    pub(crate) published: Arc<Published>,
    /// Terms that only streams have.
    candidates: Mutex<Vec<TermId>>,
    /// Of the terms that a merge found unused, those that windows have.
    held_by: Mutex<brought::HeldBy>,
    /// How often ids were taken from terms, which plans remember.
    forgotten: AtomicU64,
    /// Queries that are registered, and are yet to begin: there was no room for the word that they do.
    unbegun: Mutex<Vec<Arc<Continuous>>>,
    /// What was done, for the store to be opened again.
    journal: OnceLock<Arc<journal::Journal>>,
    /// What this copy of a store has of them, where it is one of several.
    pub(crate) copied: OnceLock<Arc<Copied>>,
    /// Whether they go on here, where this is one of several copies.
    led: Mutex<Led>,
    /// Held to read while something that a state has is said in the journal and done in memory. Taken
    /// before `names`, and after any [`Stream::closing`].
    cut: RwLock<()>,
    /// How many attempts tests might have had interrupted.
    attempts: AtomicU64,
    /// Held while a state is written.
    writing_state: Mutex<()>,
}

/// Whether the streams of a copy of a store go on at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Led {
    /// It does not lead.
    #[default]
    Elsewhere,
    /// What they were is being read.
    Beginning,
    Here,
    /// They cannot, for this reason.
    Failed(String),
}

impl Streams {
    /// Bytes of the windows of all streams, and of what waits to enter them.
    pub(crate) fn bytes(&self) -> u64 {
        let names = self.names.read();
        names.streams.values().map(|stream| stream.bytes()).sum()
    }

    /// Ids were taken from terms: plans made before are not used any more.
    pub(crate) fn forget_plans(&self) {
        self.forgotten.fetch_add(1, Relaxed);
    }

    /// True if there is a stream or a continuous query.
    pub(crate) fn are_some(&self) -> bool {
        let names = self.names.read();
        !names.streams.is_empty() || !names.queries.is_empty()
    }

    /// They go on at another copy of the store from now on: true if that is as if there never were any here, so that
    /// they can be taken over again.
    pub(crate) fn end_leading(&self) -> bool {
        let mut led = self.led.lock();
        let was_none = matches!(*led, Led::Here) && !self.are_some();
        let was_none = was_none && self.journal.get().is_none();
        if was_none {
            *led = Led::Elsewhere;
        }
        was_none || *led == Led::Elsewhere
    }

    /// Whether they go on here, where this is one of several copies of a store.
    ///
    /// # Errors
    /// [`EngineError::StreamsElsewhere`]; [`EngineError::StreamsBegin`]; [`EngineError::StreamsFailed`].
    pub(crate) fn check_led(&self, leader: impl FnOnce() -> String) -> Result<(), EngineError> {
        match &*self.led.lock() {
            Led::Here => Ok(()),
            Led::Elsewhere => Err(EngineError::StreamsElsewhere { node: leader() }),
            Led::Beginning => Err(EngineError::StreamsBegin),
            Led::Failed(reason) => Err(EngineError::StreamsFailed {
                reason: reason.clone(),
            }),
        }
    }
}

impl Inner {
    /// Has the streams go on here, as this copy of the store leads: at once where there are none, else by a thread of
    /// its own, which makes transactions.
    ///
    /// # Errors
    /// [`EngineError::Thread`].
    pub(crate) fn begin_leading_streams(self: &Arc<Self>) -> Result<(), EngineError> {
        let Some(copied) = self.streams.copied.get() else {
            return Ok(());
        };
        {
            let mut led = self.streams.led.lock();
            if *led != Led::Elsewhere {
                return Ok(());
            }
            if self.streams.are_some() || self.streams.journal.get().is_some() {
                // One was being made while this copy ceased to lead.
                if let Some(group) = self.group() {
                    let reason = "a stream was being made when another node began to lead";
                    group.begin_anew(Anew::Opened, format!("{reason}: it begins anew"));
                }
                return Ok(());
            }
            *led = match copied.is_empty() {
                true => Led::Here,
                false => Led::Beginning,
            };
            if *led == Led::Here {
                return Ok(());
            }
        }
        let (inner, copied) = (Arc::downgrade(self), Arc::clone(copied));
        let thread = std::thread::Builder::new().name("jindou-streams".to_owned());
        let begun = thread.spawn(move || {
            let Some(inner) = inner.upgrade() else {
                return;
            };
            let taken = Database::within(Arc::clone(&inner)).take_over_streams(&copied);
            if let Err(error) = &taken {
                tracing::error!(%error, "the streams do not go on");
            }
            *inner.streams.led.lock() = match taken {
                Ok(()) => Led::Here,
                Err(error) => Led::Failed(error.to_string()),
            };
        });
        begun.map_err(|source| EngineError::Thread { source })?;
        Ok(())
    }
}

impl Database {
    /// True if the store was opened to be read only and has streams: neither they nor continuous queries
    /// are there, until they are [shown](Self::show_resting_streams), or it is opened to be written.
    #[must_use]
    pub fn has_resting_streams(&self) -> bool {
        let streams = &self.inner().streams;
        streams.are_resting.load(Relaxed) && !streams.are_shown.load(Relaxed)
    }

    /// # Errors
    /// [`EngineError::ReadOnly`] where streams rest; [`EngineError::Cluster`] where there can be none.
    pub(crate) fn check_streams_awake(&self) -> Result<(), EngineError> {
        self.inner().check_may_stream()?;
        match self.inner().streams.are_resting.load(Relaxed) {
            true => self.check_names_writable(),
            false => Ok(()),
        }
    }

    /// That streams and continuous queries go on at this database, and not at another copy of its store.
    ///
    /// # Errors
    /// [`EngineError::StreamsElsewhere`]; [`EngineError::StreamsBegin`]; [`EngineError::StreamsFailed`].
    pub fn check_streams_here(&self) -> Result<(), EngineError> {
        self.inner().check_may_stream()
    }

    /// About the bytes of what [`Database::streams`] and [`Database::continuous_queries`] say, as text.
    #[must_use]
    pub fn catalogue_bytes(&self) -> u64 {
        self.inner().streams.registrations.status_bytes()
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
        Ok(self.known_stream(name)?.late())
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

    /// How a continuous query is evaluated, as its last plans have it: which part of it is incremental,
    /// or why none is. `None` before its first instant.
    ///
    /// # Errors
    /// [`EngineError::NotFound`]; [`EngineError::NoStack`].
    pub fn explain_continuous(&self, name: &str) -> Result<Option<String>, EngineError> {
        let query = self.known_query(name)?;
        let plans = query.plans.lock().clone();
        let text = plans.map(|plans| match &query.subscription {
            None => plans.explain(),
            Some(subscription) => {
                let plan = plans.whole.explain()?;
                Ok(format!(
                    "computed after each transaction that changes {subscription}\n{plan}"
                ))
            }
        });
        text.transpose()
    }

    /// What the answers of a continuous query are.
    ///
    /// # Errors
    /// [`EngineError::NotFound`].
    pub fn answer_form(&self, name: &str) -> Result<AnswerForm, EngineError> {
        Ok(self.known_query(name)?.form())
    }

    /// The results of a continuous query after one that was seen, or from now on.
    ///
    /// # Errors
    /// [`EngineError::NotFound`]; [`EngineError::NoSuchResult`] if that one has not been yet, as when it
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
            return Err(EngineError::NoSuchResult {
                name: name.to_owned(),
                after,
                last,
            });
        }
        let reader = query.log.new_reader();
        Ok(ContinuousResults {
            query,
            after,
            reader,
            waits: false,
        })
    }

    fn known_query(&self, name: &str) -> Result<Arc<Continuous>, EngineError> {
        self.inner().streams.names.read().query(name)
    }
}
