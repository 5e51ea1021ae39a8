//! How is the body of a request read, and who pays for its memory?
//!
//! What is larger than [`UNRESERVED_BYTES`] takes from the pool that all queries share, before it is
//! kept: clients that send slowly, or never the last byte, hold no more than was counted.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::Request;
use hyper::StatusCode;
use hyper::body::{Body as _, Incoming};
use hyper::header::HeaderMap;
use jindou_engine::{MemoryPool, Reservation, SpillLimits};
use tokio::time::Instant;

use crate::connections::Peer;
use crate::decode::{Coding, MARK_BYTES};
use crate::elsewhere;
use crate::error::Refusal;
use crate::metrics::Rejected;
use crate::service::{Service, content_type};
use crate::spool::{self, Spool, Spooled};
use crate::stopping::{self, Phase};

/// Buffers up to this size, in bytes, are not reserved: the number of connections bounds them.
pub(crate) const UNRESERVED_BYTES: usize = 16 << 10;
/// The next size of a buffer, after which it is as long as the body may be.
const FEW_BYTES: usize = 512 << 10;
/// Bodies up to this size, in bytes, come in on the threads that read light requests.
const SHORT_BODY_BYTES: usize = 64 << 10;
/// Documents up to this size, in bytes, are kept in memory.
const DOCUMENT_BYTES: usize = 16 << 20;
/// Bytes of a body that have the time of one, in which they must come.
const TIMED_BYTES: u64 = 16 << 20;
/// Bytes reserved at once.
const GRANULE_BYTES: usize = 64 << 10;
/// What a parameter of a form takes beside its text, in bytes.
const PARAMETER_BYTES: usize = 64;

/// A request's body, with its reservation if it is large.
#[derive(Default)]
pub(crate) struct Received {
    pub(crate) bytes: Vec<u8>,
    /// To live as long as the bytes, or the text made of them.
    pub(crate) memory: Option<Reservation>,
    reserved_bytes: usize,
}

impl Received {
    /// Makes room for `more` bytes of `most` at most.
    ///
    /// What is reserved follows what has come. The buffer is moved twice at most: pages of it
    /// that nothing was written to are no memory, but those of a smaller buffer would be.
    fn make_room(
        &mut self,
        more: usize,
        most: usize,
        pool: Option<&Arc<MemoryPool>>,
    ) -> Result<(), Refusal> {
        let (length, capacity) = (self.bytes.len(), self.bytes.capacity());
        let needed = length + more;
        if needed > UNRESERVED_BYTES && needed > self.reserved_bytes {
            let next = needed.next_multiple_of(GRANULE_BYTES).min(needed.max(most));
            reserve(&mut self.memory, next - self.reserved_bytes, pool)?;
            self.reserved_bytes = next;
        }
        if needed > capacity {
            let steps = [UNRESERVED_BYTES, FEW_BYTES, most];
            let next = steps.into_iter().find(|step| *step >= needed);
            self.bytes.reserve_exact(next.unwrap_or(needed) - length);
        }
        Ok(())
    }

    /// The body as text, which is the same buffer.
    pub(crate) fn into_text(self) -> Result<(String, Option<Reservation>), Refusal> {
        let text = String::from_utf8(self.bytes)
            .map_err(|_| Refusal::bad_request("the body is not UTF-8"))?;
        Ok((text, self.memory))
    }
}

/// Takes bytes from the pool, beside those of a reservation that is there.
pub(crate) fn reserve(
    memory: &mut Option<Reservation>,
    bytes: usize,
    pool: Option<&Arc<MemoryPool>>,
) -> Result<(), Refusal> {
    let Some(pool) = pool else {
        return Ok(());
    };
    let taken = match memory {
        Some(memory) => memory.try_grow(bytes as u64),
        None => {
            *memory = pool.reserve(bytes as u64);
            memory.is_some()
        }
    };
    match taken {
        true => Ok(()),
        false => Err(Refusal::pool_exhausted(pool.limit_bytes())),
    }
}

/// What may be kept of a body, and where.
#[derive(Clone, Copy)]
struct Bounds {
    /// In memory, in bytes.
    memory_bytes: usize,
    /// Whether more goes to a temporary file.
    spools: bool,
    /// Whether it is a document of RDF, which may begin with the mark of its compression.
    is_document: bool,
    /// In all, in bytes, where this node hands it on.
    forwarded_bytes: Option<u64>,
    /// What is advised where it is too large.
    advice: &'static str,
}

/// For what is stored, in whatever way it came.
const LOAD_ADVICE: &str = "`jindou load` reads files of any size";
/// For events of streams.
const REPLAY_ADVICE: &str = "`jindou stream replay` sends files in parts";

/// Keeps a body that is decompressed.
struct Keeper<'a> {
    service: &'a Service,
    bounds: Bounds,
    received: Received,
    /// What is known to be enough, in bytes.
    most: usize,
    spool: Option<Spool>,
    /// Why no more is kept: the error that a decoder hands on says less.
    refusal: Option<Refusal>,
}

impl Keeper<'_> {
    fn kept_bytes(&self) -> u64 {
        let spooled = self.spool.as_ref().map_or(0, Spool::written_bytes);
        spooled + self.received.bytes.len() as u64
    }

    fn keep(&mut self, data: &[u8]) -> Result<(), Refusal> {
        let bytes = self.kept_bytes() + data.len() as u64;
        if self.bounds.forwarded_bytes.is_some_and(|most| bytes > most) {
            let database = &self.service.executor.database;
            return Err(elsewhere::too_large_to_forward(database));
        }
        if let Some(spool) = &mut self.spool {
            return self.service.count_spooled(spool.write(data));
        }
        if data.len() <= self.bounds.memory_bytes - self.received.bytes.len() {
            let pool = self.service.pool();
            let metrics = &self.service.executor.metrics;
            self.received
                .make_room(data.len(), self.most, pool)
                .inspect_err(|_| metrics.rejected(Rejected::Memory))?;
            self.received.bytes.extend_from_slice(data);
            return Ok(());
        }
        if !self.bounds.spools {
            return Err(self.service.too_large(self.bounds.advice));
        }
        let mut spool = self.service.spools.open()?;
        self.service
            .count_spooled(spool.write(&self.received.bytes))?;
        self.received = Received::default();
        let spool = self.spool.insert(spool);
        self.service.count_spooled(spool.write(data))
    }
}

impl io::Write for Keeper<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match self.keep(data) {
            Ok(()) => Ok(data.len()),
            Err(refusal) => {
                self.refusal = Some(refusal);
                Err(io::Error::other("no more is kept"))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A document that a request brought.
pub(crate) enum Document {
    InMemory(Received),
    InFile(Spooled),
}

impl Service {
    /// Reads a request's body, decompressed. Reserves what its buffer takes, as it grows.
    pub(crate) async fn receive(&self, request: Request<Incoming>) -> Result<Received, Refusal> {
        self.receive_in_memory(request, LOAD_ADVICE).await
    }

    /// As [`Self::receive`], of events of a stream.
    pub(crate) async fn receive_events(
        &self,
        request: Request<Incoming>,
    ) -> Result<Received, Refusal> {
        self.receive_in_memory(request, REPLAY_ADVICE).await
    }

    async fn receive_in_memory(
        &self,
        request: Request<Incoming>,
        advice: &'static str,
    ) -> Result<Received, Refusal> {
        let bounds = Bounds {
            memory_bytes: self.config.max_body_bytes,
            spools: false,
            is_document: false,
            forwarded_bytes: None,
            advice,
        };
        match self.receive_within(request, bounds).await? {
            Document::InMemory(received) => Ok(received),
            Document::InFile(_) => Err(Refusal::internal()),
        }
    }

    /// Reads a document, decompressed, which goes to a temporary file where it is large.
    pub(crate) async fn receive_document(
        &self,
        request: Request<Incoming>,
    ) -> Result<Document, Refusal> {
        let most = self.config.max_body_bytes;
        let spools = self.spill().bytes > most as u64;
        let bounds = Bounds {
            memory_bytes: match spools {
                true => most.min(DOCUMENT_BYTES),
                false => most,
            },
            spools,
            is_document: true,
            forwarded_bytes: elsewhere::most_forwarded(&self.executor.database),
            advice: LOAD_ADVICE,
        };
        self.receive_within(request, bounds).await
    }

    async fn receive_within(
        &self,
        request: Request<Incoming>,
        bounds: Bounds,
    ) -> Result<Document, Refusal> {
        check_charset(request.headers())?;
        let coding = Coding::of(request.headers())?;
        let peer = request.extensions().get().cloned();
        self.receive_all(request.into_body(), coding, bounds, peer)
            .await
    }

    async fn receive_all(
        &self,
        mut body: Incoming,
        mut coding: Coding,
        bounds: Bounds,
        peer: Option<Arc<Peer>>,
    ) -> Result<Document, Refusal> {
        let size = body.size_hint();
        self.check_size(size.lower(), bounds)?;
        let mut end = Instant::now() + self.config.idle_timeout;
        let mut head = None;
        if bounds.is_document && coding == Coding::Identity {
            let begin = self.first_bytes(&mut body, end).await?;
            coding = Coding::of_document(&begin);
            head = Some(begin);
        }
        let limit = bounds.memory_bytes;
        // A length that was announced is known to be enough.
        let announced = size.upper().filter(|_| coding == Coding::Identity);
        let most = announced.map_or(limit, |upper| upper.min(limit as u64) as usize);
        let mut held = None;
        reserve(&mut held, coding.held_bytes(), self.pool())
            .inspect_err(|_| self.executor.metrics.rejected(Rejected::Memory))?;
        let keeper = Keeper {
            service: self,
            bounds,
            received: Received::default(),
            most,
            spool: None,
            refusal: None,
        };
        let mut decoder = coding.decoder(keeper).map_err(|_| Refusal::internal())?;
        let mut long = None;
        let mut in_time = TIMED_BYTES;
        loop {
            let frame = match head.take() {
                Some(begin) => begin,
                None => match self.frame(&mut body, end).await? {
                    Some(frame) => frame,
                    None => break,
                },
            };
            for data in frame.chunks(coding.step()) {
                let before = decoder.sink().kept_bytes();
                let written = decoder.write(data);
                let keeper = decoder.sink();
                check(coding, written, keeper)?;
                let kept = keeper.kept_bytes();
                if kept > in_time {
                    // Whoever sends a large document has time for each part of it.
                    end = Instant::now() + self.config.idle_timeout;
                    in_time = kept + TIMED_BYTES;
                }
                if kept > SHORT_BODY_BYTES as u64 && long.is_none() {
                    long = peer.as_ref().map(Peer::begin_long);
                    // The connection moves: see `apart`.
                    tokio::task::yield_now().await;
                } else if kept - before > SHORT_BODY_BYTES as u64 {
                    tokio::task::yield_now().await;
                }
            }
        }
        let finished = decoder.finish();
        check(coding, finished, decoder.sink())?;
        if long.take().is_some() {
            tokio::task::yield_now().await;
        }
        let keeper = decoder.sink();
        match keeper.spool.take() {
            Some(spool) => Ok(Document::InFile(spool.finish()?)),
            None => Ok(Document::InMemory(std::mem::take(&mut keeper.received))),
        }
    }

    /// The first bytes of a body: as many as say how it is compressed, or more, or all.
    async fn first_bytes(&self, body: &mut Incoming, end: Instant) -> Result<Bytes, Refusal> {
        let Some(first) = self.frame(body, end).await? else {
            return Ok(Bytes::new());
        };
        if first.len() >= MARK_BYTES {
            return Ok(first);
        }
        let mut head = BytesMut::from(&*first);
        while head.len() < MARK_BYTES {
            match self.frame(body, end).await? {
                Some(frame) => head.extend_from_slice(&frame),
                None => break,
            }
        }
        Ok(head.freeze())
    }

    /// Decompresses a part of a form, if it is compressed, to `most_bytes` at most.
    pub(crate) async fn unpack(
        &self,
        part: &[u8],
        most_bytes: usize,
    ) -> Result<Option<Received>, Refusal> {
        let coding = Coding::of_document(part);
        if coding == Coding::Identity {
            return Ok(None);
        }
        let mut held = None;
        reserve(&mut held, coding.held_bytes(), self.pool())
            .inspect_err(|_| self.executor.metrics.rejected(Rejected::Memory))?;
        let keeper = Keeper {
            service: self,
            bounds: Bounds {
                memory_bytes: most_bytes,
                spools: false,
                is_document: true,
                forwarded_bytes: None,
                advice: LOAD_ADVICE,
            },
            received: Received::default(),
            most: most_bytes,
            spool: None,
            refusal: None,
        };
        let mut decoder = coding.decoder(keeper).map_err(|_| Refusal::internal())?;
        let mut at_pause = 0;
        for data in part.chunks(coding.step()) {
            let written = decoder.write(data);
            let keeper = decoder.sink();
            check(coding, written, keeper)?;
            if keeper.kept_bytes() - at_pause > SHORT_BODY_BYTES as u64 {
                at_pause = keeper.kept_bytes();
                tokio::task::yield_now().await;
            }
        }
        let finished = decoder.finish();
        check(coding, finished, decoder.sink())?;
        Ok(Some(std::mem::take(&mut decoder.sink().received)))
    }

    /// The next bytes of a body, if they come before `end`.
    async fn frame(&self, body: &mut Incoming, end: Instant) -> Result<Option<Bytes>, Refusal> {
        loop {
            let frame = tokio::select! {
                biased;
                frame = tokio::time::timeout_at(end, body.frame()) => frame,
                () = self.stopping.until(Phase::Refuses) => return Err(stopping::refused()),
            };
            let frame = frame.map_err(|_| {
                let message = "the body took too long to arrive";
                Refusal::new(StatusCode::REQUEST_TIMEOUT, message)
            })?;
            let Some(frame) = frame else {
                return Ok(None);
            };
            let frame = frame.map_err(|_| Refusal::bad_request("the body ended early"))?;
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
    }

    /// Refuses what says itself that it is too large.
    fn check_size(&self, bytes: u64, bounds: Bounds) -> Result<(), Refusal> {
        let spill = self.spill().bytes;
        match bounds.spools {
            true if bytes > spill => Err(spool::too_large(spill)),
            false if bytes > bounds.memory_bytes as u64 => Err(self.too_large(bounds.advice)),
            _ => Ok(()),
        }
    }

    fn too_large(&self, advice: &str) -> Refusal {
        let limit = self.config.max_body_bytes;
        let message =
            format!("the body is larger than the {limit} bytes that --max-body sets; {advice}");
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    }

    /// Counts a request for whose document there is no room beside others.
    fn count_spooled(&self, written: Result<(), Refusal>) -> Result<(), Refusal> {
        written.inspect_err(|refusal| {
            if refusal.status == StatusCode::SERVICE_UNAVAILABLE {
                self.executor.metrics.rejected(Rejected::Memory);
            }
        })
    }

    fn spill(&self) -> &SpillLimits {
        &self.executor.database.config().spill
    }

    /// Reads a request's body, which is text.
    pub(crate) async fn receive_text(
        &self,
        request: Request<Incoming>,
    ) -> Result<(String, Option<Reservation>), Refusal> {
        self.receive(request).await?.into_text()
    }

    /// Reads a form and hands it to `decode`, which keeps parts of it; gives the reservation of these,
    /// too.
    pub(crate) async fn receive_form<T>(
        &self,
        request: Request<Incoming>,
        decode: impl FnOnce(&str) -> Result<T, Refusal>,
    ) -> Result<(T, Option<Reservation>), Refusal> {
        let (form, _memory) = self.receive_text(request).await?;
        // What is decoded is no longer than the form, and the form is there until it is decoded.
        let parameters = form.bytes().filter(|&byte| byte == b'&').count() + 1;
        let kept = self.reserve_large(form.len() + parameters * PARAMETER_BYTES)?;
        Ok((decode(&form)?, kept))
    }

    /// A reservation of bytes that are not few.
    pub(crate) fn reserve_large(&self, bytes: usize) -> Result<Option<Reservation>, Refusal> {
        let mut memory = None;
        if bytes > UNRESERVED_BYTES {
            reserve(&mut memory, bytes, self.pool())
                .inspect_err(|_| self.executor.metrics.rejected(Rejected::Memory))?;
        }
        Ok(memory)
    }

    pub(crate) fn pool(&self) -> Option<&Arc<MemoryPool>> {
        self.executor.database.config().memory_pool.as_ref()
    }
}

/// The refusal that made a decoder fail, or what is wrong with what it read.
fn check(coding: Coding, done: io::Result<()>, keeper: &mut Keeper<'_>) -> Result<(), Refusal> {
    done.map_err(|error| {
        let refusal = keeper.refusal.take();
        refusal.unwrap_or_else(|| coding.malformed(&error))
    })
}

/// Text is in UTF-8.
pub(crate) fn check_charset(headers: &HeaderMap) -> Result<(), Refusal> {
    let kind = content_type(headers)?;
    let mut parameters = kind.split(';').skip(1).filter_map(|p| p.split_once('='));
    let charset = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    let charset = charset.map_or("utf-8", |(_, value)| value.trim().trim_matches('"'));
    if ["utf-8", "utf8", "us-ascii"]
        .iter()
        .any(|known| charset.eq_ignore_ascii_case(known))
    {
        return Ok(());
    }
    let message = format!("a body is in UTF-8, not in {charset}");
    Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message))
}
