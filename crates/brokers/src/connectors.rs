//! Which threads read sources and feed sinks, and how are they?

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use jindou_engine::{Database, ResultSink, SinkDefinition, SourceDefinition, StreamFeed};
use parking_lot::Mutex;

use crate::client;
use crate::error::Refused;
use crate::policy::BrokerPolicy;
use crate::sink::SinkJob;
use crate::source::SourceJob;
use crate::status::{Connection, SinkStatus, SourceStatus};
use crate::stop::Stop;

/// Sources and sinks of a server, at most: each has a thread, and a client with some more.
const MOST_CONNECTIONS: usize = 64;

/// The sources and sinks of a database, each with a thread while it runs.
///
/// Nothing is connected before [`start`](Self::start), nor after [`stop`](Self::stop).
pub struct Connectors {
    database: Database,
    policy: BrokerPolicy,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_running: bool,
    /// By the numbers of streams.
    sources: BTreeMap<u64, Running<SourceJob>>,
    /// By the numbers of sinks.
    sinks: BTreeMap<u64, Running<SinkJob>>,
    /// Threads that were asked to end.
    ending: Vec<JoinHandle<()>>,
}

struct Running<J> {
    job: Arc<J>,
    /// None where it was refused.
    thread: Option<JoinHandle<()>>,
}

impl Connectors {
    /// Those of a database, which may connect to some brokers.
    #[must_use]
    pub fn new(database: Database, policy: BrokerPolicy) -> Self {
        Self {
            database,
            policy,
            state: Mutex::default(),
        }
    }

    /// Whether a stream may have a source.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn check_source(&self, source: &SourceDefinition) -> Result<(), Refused> {
        client::check(source.protocol())?;
        if let SourceDefinition::Ldes(ldes) = source {
            let checked = self.database.check_page(&ldes.url);
            return checked.map_err(|reason| Refused::Page {
                url: ldes.url.clone(),
                reason,
            });
        }
        self.policy.check(source.addresses())
    }

    /// Whether a query may have a sink.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn check_sink(&self, sink: &SinkDefinition) -> Result<(), Refused> {
        client::check(sink.protocol())?;
        self.policy.check(sink.addresses())
    }

    /// Whether there may be one more.
    ///
    /// # Errors
    /// [`Refused::TooMany`].
    pub fn check_room(&self) -> Result<(), Refused> {
        let state = self.state.lock();
        match state.sources.len() + state.sinks.len() < MOST_CONNECTIONS {
            true => Ok(()),
            false => Err(Refused::TooMany {
                most: MOST_CONNECTIONS,
            }),
        }
    }

    /// Begins to read sources and to feed sinks.
    pub fn start(&self) {
        self.state.lock().is_running = true;
        self.update();
    }

    /// Has each source and each sink that is there run, and no other: to be called after streams, queries
    /// or sinks were made or dropped.
    pub fn update(&self) {
        let mut state = self.state.lock();
        if !state.is_running {
            return;
        }
        let feeds: BTreeMap<u64, StreamFeed> = {
            let feeds = self.database.feeds().into_iter();
            feeds.map(|feed| (feed.number(), feed)).collect()
        };
        let sinks: BTreeMap<u64, ResultSink> = {
            let sinks = self.database.sinks().into_iter();
            sinks.map(|sink| (sink.number(), sink)).collect()
        };
        state.keep(
            |number| feeds.contains_key(&number),
            |number| sinks.contains_key(&number),
        );
        for (number, feed) in feeds {
            if !state.sources.contains_key(&number) {
                let running = self.read(feed, state.has_room());
                state.sources.insert(number, running);
            }
        }
        for (number, sink) in sinks {
            if !state.sinks.contains_key(&number) {
                let running = self.write(sink, state.has_room());
                state.sinks.insert(number, running);
            }
        }
    }

    /// Ends those whose stream, query or sink was dropped: what [`update`](Self::update) does, where nothing was
    /// made, at a cost that does not grow with what is left.
    pub fn end_dropped(&self) {
        let mut state = self.state.lock();
        let gone: Vec<u64> = {
            let sources = state.sources.iter();
            let gone = sources.filter(|(_, running)| !running.job.feed.is_there());
            gone.map(|(number, _)| *number).collect()
        };
        let gone_sinks: Vec<u64> = {
            let sinks = state.sinks.iter();
            let gone = sinks.filter(|(_, running)| !running.job.sink.is_there());
            gone.map(|(number, _)| *number).collect()
        };
        if !gone.is_empty() || !gone_sinks.is_empty() {
            state.keep(
                |number| !gone.contains(&number),
                |number| !gone_sinks.contains(&number),
            );
        }
    }

    fn read(&self, feed: StreamFeed, has_room: Result<(), Refused>) -> Running<SourceJob> {
        let allowed = has_room.and_then(|()| self.check_source(feed.source()));
        let job = Arc::new(SourceJob {
            database: self.database.clone(),
            pool: self.database.config().memory_pool.clone(),
            stop: Stop::default(),
            status: Mutex::default(),
            feed,
        });
        let running = Arc::clone(&job);
        let thread = started(allowed, "stream-source", move || running.run());
        if let Err(error) = &thread {
            tracing::warn!(stream = job.feed.name(), error, "a source is not read");
            let mut status = job.status.lock();
            status.connection = Connection::Refused;
            status.error = Some(error.clone());
        }
        Running {
            job,
            thread: thread.ok(),
        }
    }

    fn write(&self, sink: ResultSink, has_room: Result<(), Refused>) -> Running<SinkJob> {
        let allowed = has_room.and_then(|()| self.check_sink(sink.definition()));
        let job = Arc::new(SinkJob {
            stop: Stop::default(),
            status: Mutex::default(),
            settled: Mutex::default(),
            sink,
        });
        let running = Arc::clone(&job);
        let thread = started(allowed, "stream-sink", move || running.run());
        if let Err(error) = &thread {
            let (query, sink) = (job.sink.query(), job.sink.name());
            tracing::warn!(query, sink, error, "results are not delivered");
            let mut status = job.status.lock();
            status.connection = Connection::Refused;
            status.error = Some(error.clone());
        }
        Running {
            job,
            thread: thread.ok(),
        }
    }

    /// How the source of a stream is; `None` if it has none, or none is read.
    #[must_use]
    pub fn source(&self, stream: &str) -> Option<SourceStatus> {
        let state = self.state.lock();
        let mut sources = state.sources.values();
        let running = sources.find(|running| running.job.feed.name() == stream)?;
        let status = running.job.status.lock().clone();
        Some(status)
    }

    /// How a sink is; `None` if there is none of this number, or it is not fed.
    #[must_use]
    pub fn sink(&self, number: u64) -> Option<SinkStatus> {
        let state = self.state.lock();
        let status = state.sinks.get(&number)?.job.status.lock().clone();
        Some(status)
    }

    /// Ends all of them, and waits until they have ended.
    pub fn stop(&self) {
        let ending = {
            let mut state = self.state.lock();
            state.is_running = false;
            state.keep(|_| false, |_| false);
            std::mem::take(&mut state.ending)
        };
        for thread in ending {
            // What it was about is said in the log.
            let _ended = thread.join();
        }
    }
}

impl Drop for Connectors {
    fn drop(&mut self) {
        self.stop();
    }
}

impl State {
    fn has_room(&self) -> Result<(), Refused> {
        let threads = self
            .sources
            .values()
            .filter(|one| one.thread.is_some())
            .count()
            + self
                .sinks
                .values()
                .filter(|one| one.thread.is_some())
                .count();
        match threads < MOST_CONNECTIONS {
            true => Ok(()),
            false => Err(Refused::TooMany {
                most: MOST_CONNECTIONS,
            }),
        }
    }

    /// Asks those to end that are not to be kept.
    fn keep(&mut self, source: impl Fn(u64) -> bool, sink: impl Fn(u64) -> bool) {
        self.ending.retain(|thread| !thread.is_finished());
        let gone = self.sources.extract_if(.., |number, _| !source(*number));
        for (_, running) in gone {
            running.job.stop.set();
            self.ending.extend(running.thread);
        }
        let gone = self.sinks.extract_if(.., |number, _| !sink(*number));
        for (_, running) in gone {
            running.job.stop.set();
            self.ending.extend(running.thread);
        }
    }
}

/// Starts a thread, if that is allowed.
///
/// # Errors
/// Why there is none.
fn started(
    allowed: Result<(), Refused>,
    name: &str,
    run: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, String> {
    allowed.map_err(|refused| refused.to_string())?;
    let started = Builder::new().name(name.to_owned()).spawn(run);
    started.map_err(|error| format!("no thread can be started: {error}"))
}
