//! How does a query run, and how do its results reach the client?
//!
//! First on the thread that read the request, with a budget of time and of bytes. If that is not
//! enough, what it found is dropped and the query starts over on a thread of its own, where it
//! streams. Nothing was sent until then, so starting over is not seen; it costs at most the
//! budget, and only once for a text that stays remembered as heavy. In return a light query hops
//! between no threads, and a heavy one delays others by no more than the budget.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytes::Bytes;
use flate2::write::GzEncoder;
use hyper::{Response, StatusCode};
use jindou_engine::results::{
    BooleanFormat, GraphFormat, GraphWriter, Offer, ResultsError, SolutionsFormat, SolutionsWriter,
    negotiate, write_boolean,
};
use jindou_engine::{
    CancellationToken, Database, EngineError, Graph, QueryOptions, QueryResults, ServicePolicy,
    Solutions,
};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use crate::body::{Body, CancelOnDrop, Chunk, QUEUED_CHUNKS};
use crate::error::Refusal;
use crate::metrics::{Ending, Metrics};
use crate::protocol::Parameters;
use crate::respond;

/// The largest answer found and sent at once, in bytes.
const INLINE_BYTES: usize = 256 << 10;
/// A streamed chunk is sent when it has grown to this many bytes,
const CHUNK_BYTES: usize = 64 << 10;
/// or when the one before it left this long ago.
const CHUNK_AGE: Duration = Duration::from_millis(50);
/// Texts of heavy queries remembered.
const HEAVY_SLOTS: usize = 1024;

/// What all requests share.
pub(crate) struct Executor {
    pub(crate) database: Database,
    pub(crate) metrics: Metrics,
    pub(crate) max_queries: usize,
    pub(crate) inline_budget: Duration,
    pub(crate) write_timeout: Duration,
    services: ServicePolicy,
    heavy: HeavyTexts,
}

/// One query, ready to run.
pub(crate) struct Query {
    pub(crate) parameters: Parameters,
    /// The request's `Accept`, empty if it has none.
    pub(crate) accept: String,
    pub(crate) gzip: bool,
    /// From its arrival.
    pub(crate) limit: Duration,
}

/// Counts a query as under way for as long as it lives.
struct UnderWay(Arc<Executor>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.metrics.leave();
    }
}

impl Executor {
    pub(crate) fn new(
        database: Database,
        max_queries: usize,
        inline_budget: Duration,
        write_timeout: Duration,
        services: ServicePolicy,
    ) -> Self {
        let (metrics, heavy) = (Metrics::new(), HeavyTexts::new());
        Self {
            database,
            metrics,
            max_queries,
            inline_budget,
            write_timeout,
            services,
            heavy,
        }
    }

    /// Runs a query to an answer, or to the first chunk of one.
    pub(crate) async fn answer(self: &Arc<Self>, query: Query) -> Result<Response<Body>, Refusal> {
        let started = Instant::now();
        let response = self.run(query, started).await;
        if let Err(refusal) = &response {
            self.finished(Ending::of(refusal.status), started, 0, 0);
        }
        response
    }

    async fn run(
        self: &Arc<Self>,
        query: Query,
        started: Instant,
    ) -> Result<Response<Body>, Refusal> {
        if !self.metrics.enter(self.max_queries) {
            return Err(Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                format!(
                    "{} queries are under way, which is all this server runs",
                    self.max_queries
                ),
            ));
        }
        let under_way = UnderWay(Arc::clone(self));
        let text = query.parameters.query.as_deref().unwrap_or_default();
        let heavy = self.heavy.slot(text);
        if !self.inline_budget.is_zero() && !self.heavy.has(heavy) {
            if let Some(response) = self.run_inline(&query, started)? {
                return Ok(response);
            }
            self.heavy.remember(heavy);
        }
        self.metrics.moved();
        self.run_apart(query, started, under_way).await
    }

    /// The answer, or `None` when the query is too long for this thread.
    fn run_inline(
        &self,
        query: &Query,
        started: Instant,
    ) -> Result<Option<Response<Body>>, Refusal> {
        let options = QueryOptions {
            timeout: Some(self.inline_budget.min(query.limit)),
            threads: Some(1),
            must_not_wait: true,
            ..query.options()
        };
        let mut sink = Inline;
        match guarded(|| run(&self.database, query, options, &mut sink)) {
            Ok(Output {
                media_type,
                bytes,
                rows,
            }) => {
                self.finished(Ending::Ok, started, rows, bytes.len() as u64);
                Ok(Some(respond::results(media_type, bytes, query.gzip)))
            }
            // One with SERVICE waits for others, which this thread must not.
            Err(Stop::Full | Stop::Engine(EngineError::WouldWait)) => Ok(None),
            Err(Stop::Engine(EngineError::Timeout { .. })) if query.limit > self.inline_budget => {
                Ok(None)
            }
            Err(stop) => Err(stop.into()),
        }
    }

    async fn run_apart(
        self: &Arc<Self>,
        query: Query,
        started: Instant,
        under_way: UnderWay,
    ) -> Result<Response<Body>, Refusal> {
        let token = CancellationToken::new();
        let waiting = CancelOnDrop(token.clone());
        let (head_sender, head) = oneshot::channel();
        let gzip = query.gzip;
        let executor = Arc::clone(self);
        let runtime = Handle::current();
        tokio::task::spawn_blocking(move || {
            let sink = Stream {
                head: Some(head_sender),
                chunks: None,
                encoder: None,
                gzip,
                sent_at: Instant::now(),
                bytes: 0,
                write_timeout: executor.write_timeout,
                runtime,
            };
            executor.stream(&query, token, sink, started);
            drop(under_way);
        });
        match head.await {
            Ok(Head::Whole { media_type, bytes }) => Ok(respond::results(media_type, bytes, gzip)),
            Ok(Head::Stream { media_type, chunks }) => {
                let body = Body::Stream {
                    chunks,
                    _query: waiting,
                };
                Ok(respond::stream(media_type, body, gzip))
            }
            Ok(Head::Failed(refusal)) => Err(refusal),
            Err(_) => Err(Refusal::internal()),
        }
    }

    /// Runs a query on this thread, which it may block, and sends what it finds.
    fn stream(&self, query: &Query, token: CancellationToken, mut sink: Stream, started: Instant) {
        let options = QueryOptions {
            timeout: Some(query.limit.saturating_sub(started.elapsed())),
            cancellation: Some(token.clone()),
            services: Some(self.services.clone()),
            ..query.options()
        };
        let began = Instant::now();
        let result = guarded(|| run(&self.database, query, options, &mut sink)).map_err(|stop| {
            match stop {
                // The limit the client knows, not what was left of it.
                Stop::Engine(EngineError::Timeout { .. }) => {
                    Stop::Engine(EngineError::Timeout { limit: query.limit })
                }
                stop => stop,
            }
        });
        match result {
            Ok(output) => {
                let rows = output.rows;
                let bytes = sink.bytes + output.bytes.len() as u64;
                // It only seemed heavy: the machine was busy, or the data changed.
                if began.elapsed() < self.inline_budget && bytes <= INLINE_BYTES as u64 {
                    let text = query.parameters.query.as_deref().unwrap_or_default();
                    self.heavy.forget(self.heavy.slot(text));
                }
                let ending = match sink.finish(output) {
                    Ok(()) => Ending::Ok,
                    Err(_) => Ending::Abandoned,
                };
                self.finished(ending, started, rows, bytes);
            }
            Err(stop) => match sink.head.take() {
                // Whoever waits counts it; nobody does if the client is gone.
                Some(head) => {
                    if head.send(Head::Failed(stop.into())).is_err() {
                        self.finished(Ending::Abandoned, started, 0, 0);
                    }
                }
                None => {
                    let gone = token.is_cancelled() || matches!(stop, Stop::Gone);
                    let refusal = Refusal::from(stop);
                    let ending = if gone {
                        Ending::Abandoned
                    } else {
                        Ending::of(refusal.status)
                    };
                    if !gone {
                        tracing::warn!(
                            status = refusal.status.as_u16(),
                            "results cut short: {}",
                            refusal.message
                        );
                    }
                    self.finished(ending, started, 0, sink.bytes);
                }
            },
        }
    }

    fn finished(&self, ending: Ending, started: Instant, rows: u64, bytes: u64) {
        let elapsed = started.elapsed();
        self.metrics.record(ending, elapsed, rows, bytes);
        tracing::debug!(ending = ending.name(), rows, bytes, ?elapsed, "query");
    }
}

impl Query {
    fn options(&self) -> QueryOptions {
        QueryOptions {
            default_graphs: self.parameters.default_graphs.clone(),
            named_graphs: self.parameters.named_graphs.clone(),
            profile: self.profile(),
            ..QueryOptions::default()
        }
    }

    fn profile(&self) -> bool {
        self.parameters.profile == Some(true)
    }
}

/// Texts that proved too long for the thread that reads requests, by their hashes. A newer one
/// replaces an older one in its slot.
struct HeavyTexts {
    hasher: RandomState,
    slots: Box<[AtomicU64]>,
}

impl HeavyTexts {
    fn new() -> Self {
        Self {
            hasher: RandomState::new(),
            slots: (0..HEAVY_SLOTS).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn slot(&self, text: &str) -> (usize, u64) {
        // 0 is an empty slot.
        let hash = self.hasher.hash_one(text).max(1);
        (hash as usize % HEAVY_SLOTS, hash)
    }

    fn has(&self, (slot, hash): (usize, u64)) -> bool {
        self.slots[slot].load(Relaxed) == hash
    }

    fn remember(&self, (slot, hash): (usize, u64)) {
        self.slots[slot].store(hash, Relaxed);
    }

    fn forget(&self, (slot, _): (usize, u64)) {
        self.slots[slot].store(0, Relaxed);
    }
}

/// Why results end early.
enum Stop {
    Engine(EngineError),
    Results(ResultsError),
    Refused(Refusal),
    /// There are more than fit in one answer.
    Full,
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

impl From<Stop> for Refusal {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Engine(error) => error.into(),
            Stop::Results(error) => error.into(),
            Stop::Refused(refusal) => refusal,
            Stop::Gone => EngineError::Cancelled.into(),
            Stop::Full | Stop::Panicked => Self::internal(),
        }
    }
}

/// A query that panics fails alone.
fn guarded<T>(run: impl FnOnce() -> Result<T, Stop>) -> Result<T, Stop> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        tracing::error!("a query panicked");
        Err(Stop::Panicked)
    })
}

/// Takes results while they are found.
trait Sink {
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
struct Output {
    media_type: &'static str,
    bytes: Vec<u8>,
    rows: u64,
}

/// Keeps everything, up to a limit.
struct Inline;

impl Sink for Inline {
    fn offer(&mut self, _: &'static str, out: &mut Vec<u8>, _: bool) -> Result<(), Stop> {
        if out.len() > INLINE_BYTES {
            Err(Stop::Full)
        } else {
            Ok(())
        }
    }
}

/// How an answer begins.
enum Head {
    Whole {
        media_type: &'static str,
        bytes: Vec<u8>,
    },
    Stream {
        media_type: &'static str,
        chunks: mpsc::Receiver<Chunk>,
    },
    Failed(Refusal),
}

/// Sends chunks to the client as fast as it reads them.
struct Stream {
    /// Until the first chunk.
    head: Option<oneshot::Sender<Head>>,
    chunks: Option<mpsc::Sender<Chunk>>,
    encoder: Option<GzEncoder<Vec<u8>>>,
    gzip: bool,
    sent_at: Instant,
    /// Sent so far, before compression.
    bytes: u64,
    write_timeout: Duration,
    runtime: Handle,
}

impl Sink for Stream {
    fn offer(
        &mut self,
        media_type: &'static str,
        out: &mut Vec<u8>,
        batch: bool,
    ) -> Result<(), Stop> {
        let due = out.len() >= CHUNK_BYTES
            || (batch && (self.head.is_some() || self.sent_at.elapsed() >= CHUNK_AGE));
        if !due || out.is_empty() {
            return Ok(());
        }
        if let Some(head) = self.head.take() {
            let (sender, chunks) = mpsc::channel(QUEUED_CHUNKS);
            head.send(Head::Stream { media_type, chunks })
                .map_err(|_| Stop::Gone)?;
            self.chunks = Some(sender);
            self.encoder = self.gzip.then(|| respond::encoder(CHUNK_BYTES));
        }
        self.send_data(out)?;
        self.sent_at = Instant::now();
        Ok(())
    }
}

impl Stream {
    fn send_data(&mut self, out: &mut Vec<u8>) -> Result<(), Stop> {
        self.bytes += out.len() as u64;
        let bytes = match &mut self.encoder {
            None => std::mem::replace(out, Vec::with_capacity(CHUNK_BYTES + 4096)),
            Some(encoder) => {
                let written = encoder.write_all(out).and_then(|()| encoder.flush());
                written.expect("a Vec takes all");
                out.clear();
                std::mem::take(encoder.get_mut())
            }
        };
        self.send(Chunk::Data(bytes.into()))
    }

    /// Waits for room, but not for a client that stopped reading.
    fn send(&self, chunk: Chunk) -> Result<(), Stop> {
        let chunks = self.chunks.as_ref().expect("the head was sent");
        let chunk = match chunks.try_send(chunk) {
            Ok(()) => return Ok(()),
            Err(mpsc::error::TrySendError::Closed(_)) => return Err(Stop::Gone),
            Err(mpsc::error::TrySendError::Full(chunk)) => chunk,
        };
        // The timer is made inside, where the runtime is entered.
        let sent = self
            .runtime
            .block_on(async { tokio::time::timeout(self.write_timeout, chunks.send(chunk)).await });
        match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Stop::Gone),
        }
    }

    /// Sends what is left.
    fn finish(&mut self, mut output: Output) -> Result<(), Stop> {
        if let Some(head) = self.head.take() {
            let Output {
                media_type, bytes, ..
            } = output;
            return head
                .send(Head::Whole { media_type, bytes })
                .map_err(|_| Stop::Gone);
        }
        if let Some(mut encoder) = self.encoder.take() {
            let written = encoder
                .write_all(&output.bytes)
                .and_then(|()| encoder.finish());
            output.bytes = written.expect("a Vec takes all");
        }
        if !output.bytes.is_empty() {
            self.send(Chunk::Data(Bytes::from(output.bytes)))?;
        }
        self.send(Chunk::End)
    }
}

/// Evaluates a query and writes its results to `sink`; what is returned is left to be sent.
fn run(
    database: &Database,
    query: &Query,
    options: QueryOptions,
    sink: &mut impl Sink,
) -> Result<Output, Stop> {
    let text = query.parameters.query.as_deref().unwrap_or_default();
    match database.query_with(text, options)? {
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
        QueryResults::Graph(graph) => run_graph(graph, query, sink),
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
    let columns = solutions.variables().len();
    let mut writer = SolutionsWriter::new(format, solutions.variables());
    let mut out = Vec::with_capacity(4096);
    writer.start(&mut out)?;
    while let Some(batch) = solutions.next_batch()? {
        let mut decoder = solutions.decoder();
        let ids: Vec<_> = (0..columns).map(|column| batch.column(column)).collect();
        for row in 0..batch.rows() {
            writer.begin_row(&mut out);
            for column in &ids {
                writer.term(&mut out, column[row], &mut decoder)?;
            }
            writer.end_row(&mut out)?;
            sink.offer(media_type, &mut out, false)?;
        }
        writer.pause(&mut out)?;
        sink.offer(media_type, &mut out, true)?;
    }
    match solutions.profile() {
        Some(profile) if query.profile() => writer.finish_with_profile(&mut out, &profile)?,
        _ => writer.finish(&mut out)?,
    }
    Ok(Output {
        media_type,
        bytes: out,
        rows: writer.rows(),
    })
}

fn run_graph(mut graph: Graph, query: &Query, sink: &mut impl Sink) -> Result<Output, Stop> {
    const FORM: &str = "CONSTRUCT and DESCRIBE";
    let (media_type, format) = choose(
        query,
        FORM,
        GraphFormat::OFFERS,
        GraphFormat::from_name,
        |format| format.media_type(),
    )?;
    refuse_profile(query, FORM)?;
    let mut writer = GraphWriter::new(format);
    let mut out = Vec::with_capacity(4096);
    while let Some(triples) = graph.next_batch()? {
        let mut decoder = graph.decoder();
        for triple in triples {
            writer.ids(&mut out, triple, &mut decoder)?;
            sink.offer(media_type, &mut out, false)?;
        }
        writer.pause(&mut out)?;
        sink.offer(media_type, &mut out, true)?;
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

/// The format to answer in, by the parameter `format` or else by `Accept`.
fn choose<T: Copy>(
    query: &Query,
    form: &str,
    offers: &'static [Offer<T>],
    from_name: fn(&str) -> Option<T>,
    media_type: fn(T) -> &'static str,
) -> Result<(&'static str, T), Stop> {
    let offered = |offer: &Offer<T>| (offer.media_type, offer.format);
    let (chosen, asked) = match query.parameters.format.as_deref() {
        // A media type, whose + the encoding of URLs takes for a space.
        Some(name) if name.contains('/') => (
            negotiate(&name.replace(' ', "+"), offers).map(offered),
            name,
        ),
        Some(name) => (
            from_name(name).map(|format| (media_type(format), format)),
            name,
        ),
        None => (
            negotiate(&query.accept, offers).map(offered),
            query.accept.as_str(),
        ),
    };
    chosen.ok_or_else(|| {
        let available: Vec<&str> = offers.iter().map(|offer| offer.media_type).collect();
        let message = format!(
            "the results of {form} are not available as {asked}; available: {}",
            available.join(", ")
        );
        Stop::Refused(Refusal::new(StatusCode::NOT_ACCEPTABLE, message))
    })
}
