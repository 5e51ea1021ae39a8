//! How do results reach a client that may read slowly, or not at all?

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use flate2::write::GzEncoder;
use jindou_engine::results::WRITER_BYTES;
use jindou_engine::{EngineError, FREE_BYTES, Reservation};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use crate::admission::Place;
use crate::body::{Chunk, QUEUED_CHUNKS};
use crate::error::Refusal;
use crate::execute::{Executor, Output, Sink, Stop};
use crate::queries::{Reason, Running, State};
use crate::respond;
use crate::threads::left;

/// A streamed chunk is sent when it has grown to this many bytes,
const CHUNK_BYTES: usize = 64 << 10;
/// or when the one before it left this long ago.
const CHUNK_AGE: Duration = Duration::from_millis(50);
/// A query whose client has not read for this long gives its place to another, as it does not
/// compute;
const PLACE_GRACE: Duration = Duration::from_millis(50);
/// and after this long it counts as stalled.
const STALL_GRACE: Duration = Duration::from_secs(1);
/// What a streamed answer may hold at once: chunks made, waiting and being written, text of which
/// they are parts, a compressor, and a writer. What no pool counts is for light queries: it is
/// counted from here on.
const STREAM_BYTES: u64 =
    ((QUEUED_CHUNKS + 4) * CHUNK_BYTES + (1280 << 10) + WRITER_BYTES) as u64 + FREE_BYTES;

/// How an answer begins.
pub(crate) enum Head {
    Whole {
        media_type: &'static str,
        bytes: Vec<u8>,
    },
    Stream {
        media_type: &'static str,
        chunks: mpsc::Receiver<Chunk>,
        memory: Option<Reservation>,
    },
    Failed(Refusal),
}

/// Sends chunks to the client as fast as it reads them.
pub(crate) struct Stream {
    executor: Arc<Executor>,
    query: Arc<Running>,
    /// While the query may compute.
    place: Option<Place>,
    /// Until the first chunk.
    head: Option<oneshot::Sender<Head>>,
    chunks: Option<mpsc::Sender<Chunk>>,
    encoder: Option<GzEncoder<Vec<u8>>>,
    gzip: bool,
    sent_at: Instant,
    rows: u64,
    /// Sent so far, before compression.
    bytes: u64,
    runtime: Handle,
}

impl Sink for Stream {
    fn rows(&mut self, rows: u64) -> Result<(), Stop> {
        self.rows = rows;
        self.executor.check_rows(rows)
    }

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
        if self.head.is_some() && !self.begin(media_type, out.len())? {
            return Ok(());
        }
        self.send_data(out)?;
        self.sent_at = Instant::now();
        self.query.sent(self.rows, self.bytes);
        self.compute_again()
    }
}

impl Stream {
    pub(crate) fn new(
        executor: Arc<Executor>,
        query: Arc<Running>,
        place: Place,
        head: oneshot::Sender<Head>,
        gzip: bool,
    ) -> Self {
        Self {
            executor,
            query,
            place: Some(place),
            head: Some(head),
            chunks: None,
            encoder: None,
            gzip,
            sent_at: Instant::now(),
            rows: 0,
            bytes: 0,
            runtime: Handle::current(),
        }
    }

    /// Bytes sent so far, before compression.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The answer has not begun.
    pub(crate) fn has_sent_nothing(&self) -> bool {
        self.head.is_some()
    }

    /// Who waits for the answer to begin, if it has not.
    pub(crate) fn take_head(&mut self) -> Option<oneshot::Sender<Head>> {
        self.head.take()
    }

    /// Tells the client that there are results, of which so many bytes wait.
    ///
    /// False, and nothing told, where others hold the memory that a stream takes: an answer that
    /// is less than a chunk goes out as a whole when it is complete.
    fn begin(&mut self, media_type: &'static str, waiting: usize) -> Result<bool, Stop> {
        let mut memory = None;
        if let Some(pool) = &self.executor.database.config().memory_pool {
            memory = pool.reserve(STREAM_BYTES);
            if memory.is_none() {
                let limit_bytes = pool.limit_bytes();
                return match waiting < CHUNK_BYTES {
                    true => Ok(false),
                    false => Err(EngineError::PoolExhausted { limit_bytes }.into()),
                };
            }
        }
        let head = self.head.take().expect("an answer begins once");
        let (sender, chunks) = mpsc::channel(QUEUED_CHUNKS);
        self.query.set_state(State::Sending);
        let begun = Head::Stream {
            media_type,
            chunks,
            memory,
        };
        head.send(begun).map_err(|_| Stop::Gone)?;
        self.chunks = Some(sender);
        self.encoder = self.gzip.then(|| respond::encoder(CHUNK_BYTES));
        Ok(true)
    }

    fn send_data(&mut self, out: &mut Vec<u8>) -> Result<(), Stop> {
        self.bytes += out.len() as u64;
        let mut bytes = Bytes::from(match &mut self.encoder {
            None => std::mem::replace(out, Vec::with_capacity(CHUNK_BYTES + 4096)),
            Some(encoder) => {
                let written = encoder.write_all(out).and_then(|()| encoder.flush());
                written.expect("a Vec takes all");
                out.clear();
                std::mem::take(encoder.get_mut())
            }
        });
        // Several threads may have written more at once than should wait for the client.
        while bytes.len() > 2 * CHUNK_BYTES {
            self.send(Chunk::Data(bytes.split_to(CHUNK_BYTES)))?;
        }
        self.send(Chunk::Data(bytes))
    }

    /// Waits for room, but not for a client that stopped reading.
    fn send(&mut self, chunk: Chunk) -> Result<(), Stop> {
        let chunks = self.chunks.as_ref().expect("the head was sent");
        let chunk = match chunks.try_send(chunk) {
            Ok(()) => return Ok(()),
            Err(mpsc::error::TrySendError::Closed(_)) => return Err(Stop::Gone),
            Err(mpsc::error::TrySendError::Full(chunk)) => chunk,
        };
        let (chunks, runtime) = (chunks.clone(), self.runtime.clone());
        runtime.block_on(self.send_slowly(&chunks, chunk))
    }

    async fn send_slowly(
        &mut self,
        chunks: &mpsc::Sender<Chunk>,
        chunk: Chunk,
    ) -> Result<(), Stop> {
        let patience = self.executor.write_timeout;
        let query = Arc::clone(&self.query);
        if let Some(room) = room(chunks, &query, PLACE_GRACE.min(patience)).await? {
            room.send(chunk);
            return Ok(());
        }
        self.place = None;
        let grace = STALL_GRACE.min(patience).saturating_sub(PLACE_GRACE);
        if let Some(room) = room(chunks, &query, grace).await? {
            room.send(chunk);
            return Ok(());
        }
        let executor = Arc::clone(&self.executor);
        let _stalled = executor.admission.stalled(&query, &executor.queries);
        match room(chunks, &query, patience.saturating_sub(STALL_GRACE)).await? {
            Some(room) => {
                room.send(chunk);
                Ok(())
            }
            None => {
                query.cancel(Reason::Stalled);
                Err(Stop::Gone)
            }
        }
    }

    /// Waits for a place among those that compute, if it was given away.
    fn compute_again(&mut self) -> Result<(), Stop> {
        if self.place.is_none() {
            let entered = self.executor.admission.enter_again(&self.query);
            self.place = self.runtime.block_on(entered);
            if self.place.is_none() {
                return Err(why_ended(&self.query));
            }
        }
        Ok(())
    }

    /// Sends what is left.
    pub(crate) fn finish(&mut self, mut output: Output) -> Result<(), Stop> {
        // Nothing is left to compute.
        self.place = None;
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

    /// Whether the client has yet to read all that may wait for it.
    pub(crate) fn is_behind(&self) -> bool {
        self.chunks
            .as_ref()
            .is_some_and(|chunks| chunks.capacity() == 0)
    }
}

/// Waits until there is room for a chunk; `None` when there is none in time.
async fn room<'a>(
    chunks: &'a mpsc::Sender<Chunk>,
    query: &Running,
    patience: Duration,
) -> Result<Option<mpsc::Permit<'a, Chunk>>, Stop> {
    let own = left(query.started, query.limit);
    tokio::select! {
        room = chunks.reserve() => room.map(Some).map_err(|_| Stop::Gone),
        _ = query.until_cancelled() => Err(why_ended(query)),
        () = tokio::time::sleep(patience.min(own)) => match own <= patience {
            true => Err(why_ended(query)),
            false => Ok(None),
        },
    }
}

/// Why a query ended while it did not compute.
fn why_ended(query: &Running) -> Stop {
    match query.reason() {
        Some(_) => Stop::Engine(EngineError::Cancelled),
        None => Stop::Engine(EngineError::Timeout { limit: query.limit }),
    }
}
