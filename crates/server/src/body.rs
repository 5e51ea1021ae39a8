//! What is the body of a response: bytes that are there, or chunks as they come?

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use jindou_engine::Reservation;
use tokio::sync::mpsc;

use crate::access_log::Entry;
use crate::connections::Underway;
use crate::queries::{Reason, Running};

/// Chunks that wait for a slow client, at most.
pub(crate) const QUEUED_CHUNKS: usize = 4;

/// A part of a streamed body.
pub(crate) enum Chunk {
    Data(Bytes),
    /// Data that ends a message, where the body has such.
    Last(Bytes),
    /// The body is whole. A channel that closes without it was cut short.
    End,
}

/// Cancels a query when whoever waits for it goes away.
pub(crate) struct CancelOnDrop(Option<Arc<Running>>);

impl CancelOnDrop {
    pub(crate) fn of(query: &Arc<Running>) -> Self {
        Self(Some(Arc::clone(query)))
    }

    /// Lets the query go on.
    pub(crate) fn release(mut self) {
        self.0 = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(query) = &self.0 {
            query.cancel(Reason::Gone);
        }
    }
}

/// The query behind a streamed body failed; the connection is cut so that the client knows.
#[derive(Debug, thiserror::Error)]
#[error("the results were cut short")]
pub(crate) struct CutShort;

/// A response's body.
pub(crate) enum Body {
    Whole(Bytes),
    /// That of an answer to HEAD, whose length nobody knows.
    Unsent,
    Stream {
        chunks: mpsc::Receiver<Chunk>,
        _query: CancelOnDrop,
        /// What the chunks may hold.
        _memory: Option<Reservation>,
    },
    /// Events as they come.
    Events(mpsc::Receiver<Chunk>),
    /// Results without end, between which nothing can be sent that is none.
    Results(mpsc::Receiver<Chunk>),
}

impl Body {
    pub(crate) fn empty() -> Self {
        Self::Whole(Bytes::new())
    }

    /// True where a client that is gone would be noticed by the next result only.
    pub(crate) fn waits_in_silence(&self) -> bool {
        matches!(self, Self::Results(_))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = CutShort;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutShort>>> {
        match self.get_mut() {
            Self::Unsent => Poll::Ready(None),
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Stream { chunks, .. } | Self::Events(chunks) | Self::Results(chunks) => {
                chunks.poll_recv(context).map(|chunk| match chunk {
                    Some(Chunk::Data(bytes) | Chunk::Last(bytes)) => Some(Ok(Frame::data(bytes))),
                    Some(Chunk::End) => None,
                    None => Some(Err(CutShort)),
                })
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Unsent | Self::Stream { .. } | Self::Events(_) | Self::Results(_) => {
                SizeHint::default()
            }
        }
    }
}

/// A body of an answer, with the note that it is under way.
pub(crate) struct Sending {
    pub(crate) body: Body,
    /// What the access log will say of it.
    pub(crate) entry: Option<Entry>,
    pub(crate) _underway: Underway,
}

impl http_body::Body for Sending {
    type Data = Bytes;
    type Error = CutShort;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutShort>>> {
        let Self { body, entry, .. } = self.get_mut();
        let frame = Pin::new(&mut *body).poll_frame(context);
        if let (Some(entry), Poll::Ready(frame)) = (entry, &frame) {
            match frame {
                Some(Ok(frame)) => {
                    entry.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
                    // Nobody asks for more once that is known.
                    entry.whole |= body.is_end_stream();
                }
                Some(Err(_)) => {}
                None => entry.whole = true,
            }
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
