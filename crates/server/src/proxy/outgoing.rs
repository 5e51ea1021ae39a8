//! What is the body of a request to a node: bytes that are held, or those of the client as they come?
//!
//! Those of the client are sent once the node says that it takes them (`Expect: 100-continue`): one that refuses a
//! request by its head would otherwise close the connection before its answer was read.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Sleep, sleep};

use super::room::Room;

/// How long a node may take to say that it takes a body, after which it is sent (RFC 9110, section 10.1.1).
const GATE_TIME: Duration = Duration::from_secs(1);

/// The body of a request to a node.
pub(super) enum Outgoing {
    /// Bytes that others hold, too; empty once they were handed on.
    Held(Bytes),
    Passed(Box<Passed>),
}

/// A body that comes from a client.
pub(super) struct Passed {
    /// What came of it before it was clear that it is not held.
    first: VecDeque<Bytes>,
    /// What that takes, until it is handed on.
    room: Option<Room>,
    rest: Incoming,
    /// How long the client may pause.
    patience: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    gate: Arc<Gate>,
}

/// Whether a node takes a body, and how far that is.
#[derive(Default)]
pub(super) struct Gate {
    is_open: AtomicBool,
    waiting: AtomicWaker,
    handed_on: AtomicU64,
}

impl Gate {
    pub(super) fn open(&self) {
        self.is_open.store(true, Relaxed);
        self.waiting.wake();
    }

    /// How often something was handed on.
    pub(super) fn handed_on(&self) -> u64 {
        self.handed_on.load(Relaxed)
    }

    fn poll(&self, context: &Context<'_>) -> Poll<()> {
        self.waiting.register(context.waker());
        match self.is_open.load(Relaxed) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

impl Outgoing {
    pub(super) fn empty() -> Self {
        Self::Held(Bytes::new())
    }

    /// One that comes, after what is there of it, from a client that pauses no longer than that.
    pub(super) fn passed(
        (first, room): (VecDeque<Bytes>, Option<Room>),
        rest: Incoming,
        patience: Duration,
    ) -> Self {
        Self::Passed(Box::new(Passed {
            first,
            room,
            rest,
            patience,
            timer: None,
            gate: Arc::default(),
        }))
    }

    /// What it waits for, if it does.
    pub(super) fn gate(&self) -> Option<Arc<Gate>> {
        match self {
            Self::Held(_) => None,
            Self::Passed(passed) => Some(Arc::clone(&passed.gate)),
        }
    }
}

impl Passed {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.gate.poll(context).is_pending() {
            ready!(self.poll_timer(GATE_TIME, context));
            self.gate.open();
        }
        if let Some(first) = self.first.pop_front() {
            self.timer = None;
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        drop(self.room.take());
        loop {
            match Pin::new(&mut self.rest).poll_frame(context) {
                Poll::Ready(frame) => {
                    self.timer = None;
                    match frame {
                        Some(Ok(frame)) if frame.is_data() => return Poll::Ready(Some(Ok(frame))),
                        // What follows a body is about its connection.
                        Some(Ok(_)) => {}
                        Some(Err(error)) => {
                            return Poll::Ready(Some(Err(io::Error::other(error))));
                        }
                        None => return Poll::Ready(None),
                    }
                }
                Poll::Pending => {
                    ready!(self.poll_timer(self.patience, context));
                    return Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())));
                }
            }
        }
    }

    fn poll_timer(&mut self, limit: Duration, context: &mut Context<'_>) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(limit)));
        timer.as_mut().poll(context)
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Self::Held(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Held(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Passed(passed) => {
                let frame = ready!(passed.poll(context));
                passed.gate.handed_on.fetch_add(1, Relaxed);
                Poll::Ready(frame)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Held(bytes) => bytes.is_empty(),
            Self::Passed(passed) => passed.first.is_empty() && passed.rest.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Held(bytes) => SizeHint::with_exact(bytes.len() as u64),
            // The header says it, where the client does.
            Self::Passed(_) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    #[test]
    fn a_gate_stays_open() {
        let gate = Gate::default();
        let context = Context::from_waker(Waker::noop());
        assert!(gate.poll(&context).is_pending());
        gate.open();
        assert!(gate.poll(&context).is_ready());
        assert!(gate.poll(&context).is_ready());
    }
}
