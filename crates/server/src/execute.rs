//! How does a query run, and how do its results reach the client?
//!
//! First on the thread that read the request, with a budget of time and of bytes. If that is not
//! enough, what it found is dropped and the query starts over on a thread of its own, once it has
//! a place among the heavy ones, and streams. Nothing was sent until then, so starting over is not
//! seen; it costs at most the budget, and only once for a text that stays remembered as heavy. In
//! return a light query hops between no threads and waits for no heavy one, and a heavy one delays
//! others by no more than the budget.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::{Response, StatusCode};
use jindou_engine::results::{
    BooleanFormat, GraphFormat, GraphWriter, ResultsError, SolutionsFormat, SolutionsWriter,
    WriteError, write_boolean,
};
use jindou_engine::{
    AddressPolicy, Database, EngineError, Graph, MemoryPool, QueryClass, QueryOptions,
    QueryResults, Reservation, Solutions,
};
use oxrdf::NamedNode;
use tokio::sync::{Semaphore, oneshot};

use crate::admission::{Admission, Place};
use crate::body::{Body, CancelOnDrop};
use crate::choice::choose;
use crate::config::ServerConfig;
use crate::error::Refusal;
use crate::graph_store::{self, Stored};
use crate::heavy_texts::HeavyTexts;
use crate::memory::AnswerMemory;
use crate::metrics::{Ending, Metrics, Rejected};
use crate::protocol::Parameters;
use crate::queries::{Client, Kind, Listed, Queries, Reason, Running};
use crate::respond;
use crate::slow_queries::SlowQueries;
use crate::stream::{Head, Stream};
use crate::threads::{PLAIN_TEXT_BYTES, Purpose, Stopwatch, Threads, left};

/// The largest answer found and sent at once, in bytes.
const INLINE_BYTES: usize = 256 << 10;
/// The longest text of a query that may be light.
const LIGHT_TEXT_BYTES: usize = 64 << 10;
/// Cores for each long text that is planned at the same time: parsing cannot be interrupted, and
/// what is planned is to get on meanwhile.
const CORES_PER_LONG_TEXT: usize = 2;
/// Rows that a query may be planned to handle and still be tried on the thread that read it; far
/// above what that has time for, as plans may be wrong.
const INLINE_COST: f64 = 2e7;
/// The same while heavy queries wait: then a query that is planned to be heavy is not tried first,
/// since many that are refused in the end would keep light ones from these threads.
const INLINE_COST_WHEN_FULL: f64 = 1e5;
/// How often a query is tried there when others had the core for most of its time, or when heavy
/// queries wait.
const INLINE_TRIES: usize = 3;
/// Times the budget of the thread that reads requests that a long text has for being planned and
/// run on another: it keeps nobody waiting but other long texts.
const LONG_BUDGETS: u32 = 10;

/// What all requests share.
pub(crate) struct Executor {
    pub(crate) database: Database,
    pub(crate) metrics: Metrics,
    /// Of answers that are there as a whole.
    pub(crate) answers: AnswerMemory,
    pub(crate) queries: Arc<Queries>,
    pub(crate) admission: Admission,
    /// The gate of what changes the database.
    pub(crate) updates: Admission,
    pub(crate) inline_budget: Duration,
    pub(crate) threads: Arc<Threads>,
    pub(crate) write_timeout: Duration,
    pub(crate) services: AddressPolicy,
    pub(crate) max_rows: Option<u64>,
    pub(crate) slow_queries: Option<SlowQueries>,
    /// Of threads of heavy queries.
    heavy_purpose: Purpose,
    heavy: HeavyTexts,
    /// The gate of texts that may be light, but are too long for the thread that read them.
    long: Arc<Semaphore>,
}

/// What is to be read.
pub(crate) enum Asked {
    /// What the query of the parameters says.
    Query,
    /// A graph as a whole, or all of them; the query of the parameters only names it.
    Stored(Stored),
}

/// One query, ready to run.
pub(crate) struct Query {
    pub(crate) asked: Asked,
    pub(crate) parameters: Parameters,
    /// What relative IRIs are resolved against; without it they are refused.
    pub(crate) base: Option<NamedNode>,
    /// The request's `Accept`, empty if it has none.
    pub(crate) accept: String,
    pub(crate) gzip: bool,
    /// From its arrival.
    pub(crate) limit: Duration,
    pub(crate) client: Arc<Client>,
    /// What the parameters take, if that is much.
    pub(crate) _memory: Option<Reservation>,
}

/// What came of a query on the thread that read it.
enum Tried {
    Answered(Response<Body>),
    /// It is, or seems, too long for this thread.
    Apart,
}

/// Counts a query whose client goes away while it waits for its turn.
pub(crate) struct Waiting<'a> {
    pub(crate) executor: &'a Executor,
    pub(crate) query: &'a Arc<Running>,
    pub(crate) over: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.executor.finished(Ending::Abandoned, self.query, 0, 0);
        }
    }
}

impl Executor {
    pub(crate) fn new(database: Database, config: &ServerConfig) -> Self {
        let answers = AnswerMemory::new(database.config().memory_pool.as_ref());
        Self {
            database,
            metrics: Metrics::new(),
            answers,
            queries: Arc::new(Queries::new()),
            admission: Admission::new(
                "heavy queries",
                config.heavy_queries,
                config.queued_queries,
                config.queue_wait,
                config.stalled_queries,
            ),
            updates: Admission::new(
                "updates",
                config.updates,
                config.queued_updates,
                config.queue_wait,
                0,
            ),
            inline_budget: config.inline_budget,
            threads: Arc::default(),
            write_timeout: config.write_timeout,
            max_rows: config.max_rows,
            slow_queries: config.slow_queries.clone(),
            services: config.services.clone(),
            heavy_purpose: Purpose::Heavy(config.heavy_priority),
            heavy: HeavyTexts::new(),
            long: Arc::new(Semaphore::new(long_texts())),
        }
    }

    /// Runs a query to an answer, or to the first chunk of one.
    pub(crate) async fn answer(self: &Arc<Self>, query: Query) -> Result<Response<Body>, Refusal> {
        let client = Arc::clone(&query.client);
        let listed = self
            .queries
            .list(Kind::Query, query.text(), Some(client), query.limit);
        let running = Arc::clone(&listed);
        match self.run(query, listed).await {
            Ok(mut response) => {
                respond::name(&mut response, running.id);
                Ok(response)
            }
            Err(refusal) => {
                self.finished(Ending::of(refusal.status), &running, 0, 0);
                Err(refusal.of(running.id))
            }
        }
    }

    async fn run(
        self: &Arc<Self>,
        mut query: Query,
        mut listed: Listed,
    ) -> Result<Response<Body>, Refusal> {
        let length = query.text().len();
        // One that is to use several threads is not tried on this one.
        let several = query.parameters.threads.is_some_and(|threads| threads > 1);
        let light = !self.inline_budget.is_zero()
            && !several
            && length <= LIGHT_TEXT_BYTES
            && !self.heavy.has(self.heavy.place(query.text()));
        if light {
            let tried = if length <= PLAIN_TEXT_BYTES {
                self.run_inline(&query, &listed, self.inline_budget, INLINE_TRIES)
            } else {
                let tried;
                (query, listed, tried) = self.run_long(query, listed).await?;
                tried
            };
            match tried? {
                Tried::Answered(response) => return Ok(response),
                Tried::Apart => {}
            }
        }
        self.metrics.moved();
        self.run_apart(query, listed).await
    }

    /// Tries a query within the budget of this thread. While heavy ones wait, the benefit of the
    /// doubt costs less than a light query that has to wait for them: it is tried again.
    fn run_inline(
        &self,
        query: &Query,
        listed: &Listed,
        budget: Duration,
        tries: usize,
    ) -> Result<Tried, Refusal> {
        let place = self.heavy.place(query.text());
        for _ in 0..tries {
            let full = self.admission.is_full();
            let watch = Stopwatch::start();
            match self.try_once(query, listed, budget, full)? {
                Some(Tried::Answered(response)) => {
                    self.heavy.forget(place);
                    return Ok(Tried::Answered(response));
                }
                Some(apart) => return Ok(apart),
                // On a busy machine most of the time may have been others'.
                None if watch.elapsed() * 2 < budget => {}
                None => {
                    self.heavy.proved(place);
                    if !full || self.heavy.has(place) {
                        break;
                    }
                }
            }
        }
        Ok(Tried::Apart)
    }

    /// `None` when the time was up.
    fn try_once(
        &self,
        query: &Query,
        listed: &Listed,
        budget: Duration,
        full: bool,
    ) -> Result<Option<Tried>, Refusal> {
        let max_cost = if full {
            INLINE_COST_WHEN_FULL
        } else {
            INLINE_COST
        };
        let options = QueryOptions {
            timeout: Some(budget.min(left(listed.started, query.limit))),
            cancellation: Some(listed.token()),
            progress: Some(listed.new_progress()),
            max_cost: Some(max_cost),
            must_not_wait: true,
            threads: Some(1),
            ..query.options()
        };
        let mut sink = Inline(self);
        match guarded(|| run(&self.database, query, options, &mut sink)) {
            Ok(Output {
                media_type,
                bytes,
                rows,
            }) => {
                let length = bytes.len() as u64;
                let response = self.whole(media_type, bytes, query.gzip, &query.client)?;
                self.finished(Ending::Ok, listed, rows, length);
                Ok(Some(Tried::Answered(response)))
            }
            Err(Stop::Full) => {
                self.heavy.remember(self.heavy.place(query.text()));
                Ok(Some(Tried::Apart))
            }
            // Only planned to be, which is no proof; and one with SERVICE waits for others, which
            // this thread must not.
            Err(Stop::Engine(EngineError::TooCostly { .. } | EngineError::WouldWait)) => {
                Ok(Some(Tried::Apart))
            }
            Err(Stop::Engine(EngineError::Timeout { .. })) if query.limit > budget => Ok(None),
            // Another thread asks again.
            Err(Stop::Engine(error)) if error.is_of_other_node() => Ok(Some(Tried::Apart)),
            Err(stop) => Err(self.refusal(stop, listed)),
        }
    }

    /// [`Executor::run_inline`] for a text that is too long for this thread, on another.
    async fn run_long(
        self: &Arc<Self>,
        query: Query,
        listed: Listed,
    ) -> Result<(Query, Listed, Result<Tried, Refusal>), Refusal> {
        // Who goes away takes it along.
        let cancel = CancelOnDrop::of(&listed);
        let place = Arc::clone(&self.long).acquire_owned().await;
        let place = place.expect("the gate is never closed");
        let (sender, tried) = oneshot::channel();
        let executor = Arc::clone(self);
        let work = move || {
            let _here = listed.executed_here(executor.heavy_purpose);
            let budget = executor.inline_budget * LONG_BUDGETS;
            // It was planned on yet another thread, and would be again.
            let tried = executor.run_inline(&query, &listed, budget, 1);
            drop(place);
            // Nobody waits if the client is gone.
            let _ = sender.send((query, listed, tried));
        };
        self.threads
            .spawn("long-query", self.heavy_purpose, work)
            .map_err(|error| no_thread(&error))?;
        let tried = tried.await.map_err(|_| Refusal::internal())?;
        cancel.release();
        Ok(tried)
    }

    /// The plan of a query as text. It is not run; planning it may take long.
    pub(crate) async fn explain(self: &Arc<Self>, query: Query) -> Result<Response<Body>, Refusal> {
        let client = Arc::clone(&query.client);
        let listed = self
            .queries
            .list(Kind::Query, query.text(), Some(client), query.limit);
        let running = Arc::clone(&listed);
        let _cancel = CancelOnDrop::of(&listed);
        let explained = match self.explain_listed(query, listed).await {
            Ok(plan) => {
                self.finished(Ending::Ok, &running, 0, plan.len() as u64);
                Ok(respond::whole("text/plain", plan))
            }
            Err(refusal) => {
                self.finished(Ending::of(refusal.status), &running, 0, 0);
                Err(refusal)
            }
        };
        explained.map_err(|refusal| refusal.of(running.id))
    }

    async fn explain_listed(
        self: &Arc<Self>,
        query: Query,
        listed: Listed,
    ) -> Result<String, Refusal> {
        let place = Arc::clone(&self.long).acquire_owned().await;
        let place = place.expect("the gate is never closed");
        let (sender, planned) = oneshot::channel();
        let executor = Arc::clone(self);
        let work = move || {
            let options = QueryOptions {
                timeout: Some(left(listed.started, query.limit)),
                cancellation: Some(listed.token()),
                ..query.options()
            };
            let explain = || Ok(executor.database.explain_with(query.text(), &options)?);
            let plan = guarded(explain).map_err(|stop| executor.refusal(stop, &listed));
            drop(place);
            drop(listed);
            // Nobody waits if the client is gone.
            let _ = sender.send(plan);
        };
        self.threads
            .spawn("explain", self.heavy_purpose, work)
            .map_err(|error| no_thread(&error))?;
        planned.await.map_err(|_| Refusal::internal())?
    }

    async fn run_apart(
        self: &Arc<Self>,
        query: Query,
        listed: Listed,
    ) -> Result<Response<Body>, Refusal> {
        listed.set_heavy();
        let running = Arc::clone(&listed);
        let waiting = CancelOnDrop::of(&listed);
        let mut queueing = Waiting {
            executor: self,
            query: &running,
            over: false,
        };
        let place = self.admission.enter(&running, &self.metrics).await;
        queueing.over = true;
        let (gzip, client) = (query.gzip, Arc::clone(&query.client));
        let head = self.start(query, listed, place?)?;
        match head.await {
            Ok(Head::Whole { media_type, bytes }) => self.whole(media_type, bytes, gzip, &client),
            Ok(Head::Stream {
                media_type,
                chunks,
                memory,
            }) => {
                let body = Body::Stream {
                    chunks,
                    _query: waiting,
                    _memory: memory,
                };
                Ok(respond::stream(media_type, body, gzip))
            }
            Ok(Head::Failed(refusal)) => Err(refusal),
            Err(_) => Err(Refusal::internal()),
        }
    }

    /// Starts a query on a thread of its own.
    fn start(
        self: &Arc<Self>,
        query: Query,
        listed: Listed,
        place: Place,
    ) -> Result<oneshot::Receiver<Head>, Refusal> {
        let (sender, head) = oneshot::channel();
        let sink = Stream::new(
            Arc::clone(self),
            Arc::clone(&listed),
            place,
            sender,
            query.gzip,
        );
        let executor = Arc::clone(self);
        let work = move || {
            let _here = listed.executed_here(executor.heavy_purpose);
            executor.stream(&query, &listed, sink);
            // From here on nothing of the query is left.
            drop(listed);
        };
        let started = self.threads.spawn("heavy-query", self.heavy_purpose, work);
        started.map(|()| head).map_err(|error| no_thread(&error))
    }

    /// Runs a query on this thread, which it may block, and sends what it finds.
    fn stream(&self, query: &Query, listed: &Listed, mut sink: Stream) {
        let started = listed.started;
        let options = QueryOptions {
            timeout: Some(left(started, query.limit)),
            cancellation: Some(listed.token()),
            progress: Some(listed.new_progress()),
            services: Some(self.services.clone()),
            class: QueryClass::Heavy,
            ..query.options()
        };
        let began = Instant::now();
        let mut result = guarded(|| run(&self.database, query, options.clone(), &mut sink));
        // Of what was found nothing was sent: the node's own copy answers it all, if it has a whole one.
        if let Err(Stop::Engine(error)) = &result
            && error.is_of_other_node()
            && sink.has_sent_nothing()
            && self.can_answer_alone()
        {
            let options = QueryOptions {
                alone: true,
                timeout: Some(left(started, query.limit)),
                ..options
            };
            result = guarded(|| run(&self.database, query, options, &mut sink));
        }
        let result = result.map_err(|stop| {
            match stop {
                // The limit the client knows, not what was left of it.
                Stop::Engine(EngineError::Timeout { .. }) => {
                    Stop::Engine(EngineError::Timeout { limit: query.limit })
                }
                stop => stop,
            }
        });
        let result = result.and_then(|output| {
            let rows = output.rows;
            let bytes = sink.bytes() + output.bytes.len() as u64;
            // It only seemed heavy: the machine was busy, or the data changed.
            if began.elapsed() < self.inline_budget && bytes <= INLINE_BYTES as u64 {
                self.heavy.forget(self.heavy.place(query.text()));
            }
            sink.finish(output).map(|()| (rows, bytes))
        });
        match result {
            Ok((rows, bytes)) => self.finished(Ending::Ok, listed, rows, bytes),
            Err(stop) => self.failed(stop, listed, sink),
        }
    }

    /// Whether this is a node of a cluster whose copy of the store can answer by itself.
    fn can_answer_alone(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.database.can_answer_alone();
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// Tells the client that its query failed, as well as that can still be done.
    fn failed(&self, stop: Stop, listed: &Listed, mut sink: Stream) {
        let gone = matches!(stop, Stop::Gone);
        let refusal = self.refusal(stop, listed);
        if let Some(head) = sink.take_head() {
            // Whoever waits counts it; nobody does if the client is gone.
            if head.send(Head::Failed(refusal)).is_err() {
                self.finished(Ending::Abandoned, listed, 0, 0);
            }
            return;
        }
        let ending = match listed.reason() {
            Some(Reason::Gone | Reason::Stalled) => Ending::Abandoned,
            None if gone => Ending::Abandoned,
            _ => Ending::of(refusal.status),
        };
        if ending != Ending::Abandoned || listed.reason() == Some(Reason::Stalled) {
            let status = refusal.status.as_u16();
            self.queries.failed(listed.id, status, &refusal.message);
            tracing::warn!(status, id = %listed.id, "results cut short: {}", refusal.message);
        }
        // A client that does not read would not see the end for long.
        if sink.is_behind() {
            listed.cut();
        }
        self.finished(ending, listed, 0, sink.bytes());
    }

    fn refusal(&self, stop: Stop, query: &Running) -> Refusal {
        match stop {
            Stop::Gone | Stop::Engine(EngineError::Cancelled) => {
                Refusal::cancelled(query.reason().unwrap_or(Reason::Gone))
            }
            Stop::TooManyRows { limit } => {
                self.metrics.rejected(Rejected::Rows);
                Refusal::too_many_rows(limit)
            }
            Stop::Engine(error) => {
                if matches!(
                    error,
                    EngineError::MemoryExceeded { .. }
                        | EngineError::PoolExhausted { .. }
                        | EngineError::SpillExceeded { .. }
                        | EngineError::Spill { .. }
                ) {
                    self.metrics.rejected(Rejected::Memory);
                }
                error.into()
            }
            Stop::Results(error) => error.into(),
            Stop::Refused(refusal) => refusal,
            Stop::Full | Stop::Panicked => Refusal::internal(),
        }
    }

    /// Results that are all there; large ones are held against the memory of all queries until
    /// they are sent.
    fn whole(
        &self,
        media_type: &str,
        bytes: Vec<u8>,
        gzip: bool,
        client: &Arc<Client>,
    ) -> Result<Response<Body>, Refusal> {
        respond::results(media_type, bytes, gzip, (&self.answers, Some(client)))
            .inspect_err(|_| self.metrics.rejected(Rejected::Memory))
    }

    /// Fails once a result has more rows than the server gives.
    pub(crate) fn check_rows(&self, rows: u64) -> Result<(), Stop> {
        match self.max_rows {
            Some(limit) if rows > limit => Err(Stop::TooManyRows { limit }),
            _ => Ok(()),
        }
    }

    fn finished(&self, ending: Ending, query: &Arc<Running>, rows: u64, bytes: u64) {
        let elapsed = query.started.elapsed();
        self.metrics.record(ending, elapsed, rows, bytes);
        if let Some(slow) = &self.slow_queries {
            slow.ended(query, ending, elapsed, rows);
        }
        tracing::debug!(ending = ending.name(), rows, bytes, ?elapsed, "query");
    }
}

fn long_texts() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (cores / CORES_PER_LONG_TEXT).max(1)
}

pub(crate) fn no_thread(error: &io::Error) -> Refusal {
    tracing::error!(%error, "no thread for a query");
    let message = "the operating system has no thread for this query";
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message).come_again(1)
}

impl Query {
    fn text(&self) -> &str {
        self.parameters.query.as_deref().unwrap_or_default()
    }

    fn options(&self) -> QueryOptions {
        QueryOptions {
            default_graphs: self.parameters.default_graphs.clone(),
            named_graphs: self.parameters.named_graphs.clone(),
            union_default_graph: self.parameters.union_default_graph,
            base: self.base.clone(),
            profile: self.profile(),
            threads: self.parameters.threads,
            ..QueryOptions::default()
        }
    }

    fn profile(&self) -> bool {
        self.parameters.profile == Some(true)
    }
}

/// Why results end early.
pub(crate) enum Stop {
    Engine(EngineError),
    Results(ResultsError),
    Refused(Refusal),
    /// There are more than fit in one answer.
    Full,
    /// There are more than the server gives.
    TooManyRows {
        limit: u64,
    },
    /// The client went away, or does not read.
    Gone,
    /// A bug of ours, logged.
    Panicked,
}

impl From<EngineError> for Stop {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

impl From<ResultsError> for Stop {
    fn from(error: ResultsError) -> Self {
        Self::Results(error)
    }
}

impl From<WriteError> for Stop {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Query(error) => Self::Engine(error),
            WriteError::Results(error) => Self::Results(error),
            other => {
                tracing::error!(%other, "an error that this server does not know");
                Self::Panicked
            }
        }
    }
}

/// A query that panics fails alone.
pub(crate) fn guarded<T>(run: impl FnOnce() -> Result<T, Stop>) -> Result<T, Stop> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        tracing::error!("a query panicked");
        Err(Stop::Panicked)
    })
}

/// Takes results while they are found.
pub(crate) trait Sink {
    /// Is told how many rows were written so far, and may have enough.
    fn rows(&mut self, rows: u64) -> Result<(), Stop>;

    /// Looks at what has been written and may take it away. `batch` tells that the engine has to
    /// be asked for more before there is more to write.
    fn offer(
        &mut self,
        media_type: &'static str,
        out: &mut Vec<u8>,
        batch: bool,
    ) -> Result<(), Stop>;
}

/// What is left to send at the end.
pub(crate) struct Output {
    pub(crate) media_type: &'static str,
    pub(crate) bytes: Vec<u8>,
    pub(crate) rows: u64,
}

/// Keeps everything, up to a limit.
struct Inline<'a>(&'a Executor);

impl Sink for Inline<'_> {
    fn rows(&mut self, rows: u64) -> Result<(), Stop> {
        self.0.check_rows(rows)
    }

    fn offer(&mut self, _: &'static str, out: &mut Vec<u8>, _: bool) -> Result<(), Stop> {
        if out.len() > INLINE_BYTES {
            Err(Stop::Full)
        } else {
            Ok(())
        }
    }
}

/// Evaluates a query and writes its results to `sink`; what is returned is left to be sent.
fn run(
    database: &Database,
    query: &Query,
    options: QueryOptions,
    sink: &mut impl Sink,
) -> Result<Output, Stop> {
    if let Asked::Stored(stored) = &query.asked {
        return graph_store::run(database, stored, query, &options, sink);
    }
    match database.query_with(query.text(), options)? {
        QueryResults::Solutions(solutions) => run_solutions(solutions, query, sink),
        QueryResults::Boolean(value) => {
            let (media_type, format) = choose(
                query,
                "ASK",
                BooleanFormat::OFFERS,
                BooleanFormat::from_name,
                |format| format.media_type(),
            )?;
            refuse_profile(query, "ASK")?;
            let mut bytes = Vec::with_capacity(128);
            write_boolean(&mut bytes, format, value);
            Ok(Output {
                media_type,
                bytes,
                rows: 1,
            })
        }
        QueryResults::Graph(graph) => {
            let pool = database.config().memory_pool.as_ref();
            run_graph(graph, pool, query, sink)
        }
    }
}

fn run_solutions(
    mut solutions: Solutions,
    query: &Query,
    sink: &mut impl Sink,
) -> Result<Output, Stop> {
    let (media_type, format) = choose(
        query,
        "SELECT",
        SolutionsFormat::OFFERS,
        SolutionsFormat::from_name,
        |format| format.media_type(),
    )?;
    if query.profile() && format != SolutionsFormat::Json {
        return Err(ResultsError::NoProfile { format }.into());
    }
    let mut writer = SolutionsWriter::new(format, solutions.variables());
    let mut out = Vec::with_capacity(4096);
    writer.start(&mut out)?;
    while let Some(step) = writer.advance(&mut out, &mut solutions)? {
        sink.rows(writer.rows())?;
        if step.waits {
            writer.pause(&mut out)?;
        }
        sink.offer(media_type, &mut out, step.waits)?;
    }
    match solutions.profile()? {
        Some(profile) if query.profile() => writer.finish_with_profile(&mut out, &profile)?,
        _ => writer.finish(&mut out)?,
    }
    Ok(Output {
        media_type,
        bytes: out,
        rows: writer.rows(),
    })
}

fn run_graph(
    mut graph: Graph,
    pool: Option<&Arc<MemoryPool>>,
    query: &Query,
    sink: &mut impl Sink,
) -> Result<Output, Stop> {
    const FORM: &str = "CONSTRUCT and DESCRIBE";
    let (media_type, format) = choose(
        query,
        FORM,
        GraphFormat::OFFERS,
        GraphFormat::from_name,
        |format| format.media_type(),
    )?;
    refuse_profile(query, FORM)?;
    let mut writer = GraphWriter::new(format).with_memory(pool, graph_store::MOST_GATHERED_BYTES);
    let mut out = Vec::with_capacity(4096);
    while let Some(step) = writer.advance(&mut out, &mut graph)? {
        sink.rows(writer.triples())?;
        if step.waits {
            writer.pause(&mut out)?;
        }
        sink.offer(media_type, &mut out, step.waits)?;
    }
    let rows = writer.triples();
    writer.finish(&mut out)?;
    Ok(Output {
        media_type,
        bytes: out,
        rows,
    })
}

fn refuse_profile(query: &Query, form: &str) -> Result<(), Stop> {
    if query.profile() {
        let message = format!("profile=true is for SELECT with results in JSON, not for {form}");
        return Err(Stop::Refused(Refusal::bad_request(message)));
    }
    Ok(())
}
