//! Who pays for the messages of a socket while they come in?
//!
//! The library gathers a message whole. What has come in since the last whole one is counted here, and
//! reserved as bodies are: clients that send slowly, or never the last byte, hold no more than that.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use jindou_engine::{MemoryPool, Reservation};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use crate::receive::{UNRESERVED_BYTES, reserve};

/// Bytes reserved at once.
const GRANULE_BYTES: usize = 64 << 10;

/// A connection that left HTTP.
pub(crate) struct Metered {
    stream: TokioIo<Upgraded>,
    pool: Option<Arc<MemoryPool>>,
    /// Since the last whole message.
    received_bytes: usize,
    reserved_bytes: usize,
    memory: Option<Reservation>,
}

impl Metered {
    pub(crate) fn new(stream: Upgraded, pool: Option<Arc<MemoryPool>>) -> Self {
        Self {
            stream: TokioIo::new(stream),
            pool,
            received_bytes: 0,
            reserved_bytes: 0,
            memory: None,
        }
    }

    /// A message is whole: what it takes is its owner's business, and this gives its reservation up.
    pub(crate) fn settle(&mut self) -> Option<Reservation> {
        (self.received_bytes, self.reserved_bytes) = (0, 0);
        self.memory.take()
    }

    /// Reads to the end of what the client sends, and keeps nothing.
    pub(crate) async fn discard(&mut self) {
        let mut part = [0; 4096];
        while let Ok(1..) = self.stream.read(&mut part).await {}
    }

    fn count(&mut self, bytes: usize) -> io::Result<()> {
        self.received_bytes += bytes;
        if self.received_bytes <= UNRESERVED_BYTES.max(self.reserved_bytes) {
            return Ok(());
        }
        let next = self.received_bytes.next_multiple_of(GRANULE_BYTES);
        let more = next - self.reserved_bytes;
        let reserved = reserve(&mut self.memory, more, self.pool.as_ref());
        reserved.map_err(|refusal| io::Error::new(io::ErrorKind::OutOfMemory, refusal.message))?;
        self.reserved_bytes = next;
        Ok(())
    }
}

impl AsyncRead for Metered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buf))?;
        let count = buf.filled().len() - before;
        Poll::Ready(self.count(count))
    }
}

impl AsyncWrite for Metered {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
