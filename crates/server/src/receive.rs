//! How is the body of a request read, and who pays for its memory?
//!
//! What is larger than [`UNRESERVED_BYTES`] takes from the pool that all queries share, before it is
//! kept: clients that send slowly, or never the last byte, hold no more than was counted.

use std::sync::Arc;

use http_body_util::BodyExt;
use hyper::Request;
use hyper::StatusCode;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_ENCODING, HeaderMap};
use jindou_engine::{MemoryPool, Reservation};

use crate::connections::Peer;
use crate::error::Refusal;
use crate::metrics::Rejected;
use crate::service::{Service, content_type};

/// Buffers up to this size, in bytes, are not reserved: the number of connections bounds them.
pub(crate) const UNRESERVED_BYTES: usize = 16 << 10;
/// The next size of a buffer, after which it is as long as the body may be.
const FEW_BYTES: usize = 512 << 10;
/// Bodies up to this size, in bytes, come in on the threads that read light requests.
const SHORT_BODY_BYTES: usize = 64 << 10;
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

impl Service {
    /// Reads a request's body. Reserves what its buffer takes, as it grows.
    pub(crate) async fn receive(&self, request: Request<Incoming>) -> Result<Received, Refusal> {
        check_encoding(request.headers())?;
        let peer = request.extensions().get().cloned();
        let read = self.receive_all(request.into_body(), peer);
        let timeout = tokio::time::timeout(self.config.idle_timeout, read).await;
        timeout.unwrap_or_else(|_| {
            Err(Refusal::new(
                StatusCode::REQUEST_TIMEOUT,
                "the body took too long to arrive",
            ))
        })
    }

    async fn receive_all(
        &self,
        mut body: Incoming,
        peer: Option<Arc<Peer>>,
    ) -> Result<Received, Refusal> {
        let limit = self.config.max_body_bytes;
        let too_large = || {
            let message = format!(
                "the body is larger than the {limit} bytes that --max-body sets; LOAD reads larger \
                 files, where --allow-load names them"
            );
            Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message)
        };
        let size = body.size_hint();
        if size.lower() > limit as u64 {
            return Err(too_large());
        }
        // A length that was announced is known to be enough.
        let most = size.upper().map_or(limit, |upper| upper as usize);
        let mut received = Received::default();
        let mut long = None;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Refusal::bad_request("the body ended early"))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if data.len() > limit - received.bytes.len() {
                return Err(too_large());
            }
            received
                .make_room(data.len(), most, self.pool())
                .inspect_err(|_| self.executor.metrics.rejected(Rejected::Memory))?;
            received.bytes.extend_from_slice(&data);
            if received.bytes.len() > SHORT_BODY_BYTES && long.is_none() {
                long = peer.as_ref().map(Peer::begin_long);
                // The connection moves: see `apart`.
                tokio::task::yield_now().await;
            }
        }
        if long.take().is_some() {
            tokio::task::yield_now().await;
        }
        Ok(received)
    }

    /// Reads a request's body, which is text.
    pub(crate) async fn receive_text(
        &self,
        request: Request<Incoming>,
    ) -> Result<(String, Option<Reservation>), Refusal> {
        self.receive(request).await?.into_text()
    }

    /// Reads a form and hands it to `add`, which keeps parts of it; gives the reservation of these.
    pub(crate) async fn receive_form(
        &self,
        request: Request<Incoming>,
        add: impl FnOnce(&str) -> Result<(), Refusal>,
    ) -> Result<Option<Reservation>, Refusal> {
        let (form, _memory) = self.receive_text(request).await?;
        // What is decoded is no longer than the form, and the form is there until it is decoded.
        let parameters = form.bytes().filter(|&byte| byte == b'&').count() + 1;
        let kept = self.reserve_large(form.len() + parameters * PARAMETER_BYTES)?;
        add(&form)?;
        Ok(kept)
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

/// Text is sent as it is, in UTF-8.
fn check_encoding(headers: &HeaderMap) -> Result<(), Refusal> {
    let unsupported =
        |message: String| Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    if let Some(coding) = headers.get(CONTENT_ENCODING)
        && !coding.as_bytes().eq_ignore_ascii_case(b"identity")
    {
        return unsupported("a body with a Content-Encoding is not taken".to_owned());
    }
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
    unsupported(format!("a body is in UTF-8, not in {charset}"))
}
