//! What is the body of an answer: bytes that are there, or those of a node as they come?
//!
//! No more of a node's answer is held than what its connection reads at once. Only its beginning is kept back, until it
//! is whole, or long, or some time has passed: so long another node can be asked instead.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep, timeout_at};

use super::node::{Node, UnderwayAt};
use super::nodes::said_of;
use super::way::AnswerKind;
use crate::body::Body;
use crate::connections::Underway;

/// Answers up to this size, in bytes, are passed on when they are whole, if that is not longer than this after they
/// began; those that say that they are no longer, whenever that is.
const WHOLE_BYTES: u64 = 64 << 10;
const WHOLE_TIME: Duration = Duration::from_millis(100);

/// The body of an answer.
pub(super) struct Answer {
    parts: VecDeque<Bytes>,
    rest: Option<Passing>,
    /// It may pause for ever.
    is_endless: bool,
    /// The client's connection answers until this is dropped.
    _underway: Option<Underway>,
}

/// The body of a node's answer.
pub(super) struct Passing {
    body: Incoming,
    /// How long it may pause, if not for ever.
    patience: Option<Duration>,
    timer: Option<Pin<Box<Sleep>>>,
    lost: Pin<Box<dyn Future<Output = ()> + Send>>,
    _underway: UnderwayAt,
}

/// An answer that is not whole; the connection is cut so that the client knows.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Cut(String);

impl Passing {
    pub(super) fn new(
        body: Incoming,
        node: &Node,
        patience: Option<Duration>,
        underway: UnderwayAt,
    ) -> Self {
        Self {
            body,
            patience,
            timer: None,
            lost: Box::pin(node.until_lost()),
            _underway: underway,
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Cut>>> {
        loop {
            match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    self.timer = None;
                    if let Ok(data) = frame.into_data() {
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(Some(Err(Cut(said_of(&error)))));
                }
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => {
                    ready!(self.poll_given_up(context));
                    let message = "it has not gone on for too long".to_owned();
                    return Poll::Ready(Some(Err(Cut(message))));
                }
            }
        }
    }

    /// Ready once nothing more is waited for.
    fn poll_given_up(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.lost.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let Some(patience) = self.patience else {
            return Poll::Pending;
        };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(patience)));
        timer.as_mut().poll(context)
    }
}

impl Answer {
    /// One that the proxy gives itself.
    pub(super) fn own(body: Body) -> Self {
        let parts = match body {
            Body::Whole(bytes) if !bytes.is_empty() => VecDeque::from([bytes]),
            _ => VecDeque::new(),
        };
        Self::whole(parts, AnswerKind::AtOnce)
    }

    /// The same, while which is sent a client's connection answers. Where an answer may pause for ever, a client that
    /// is gone would be noticed by what comes next only, whenever that is.
    pub(super) fn attended(self, underway: Underway) -> Self {
        underway.answers(self.is_endless && self.rest.is_some());
        Self {
            _underway: Some(underway),
            ..self
        }
    }

    /// A node's, once as much of it is there as is to be.
    ///
    /// # Errors
    /// A node that is lost before.
    pub(super) async fn begin(mut rest: Passing, kind: AnswerKind) -> Result<Self, Cut> {
        let (mut parts, mut held) = (VecDeque::new(), 0);
        let exact = rest.body.size_hint().exact();
        let is_short = exact.is_some_and(|bytes| bytes <= WHOLE_BYTES);
        let end = Instant::now() + WHOLE_TIME;
        while kind == AnswerKind::Awaited && held < WHOLE_BYTES && !rest.body.is_end_stream() {
            let next = poll_fn(|context| rest.poll(context));
            let part = match is_short || parts.is_empty() {
                true => next.await,
                false => match timeout_at(end, next).await {
                    Ok(part) => part,
                    Err(_) => break,
                },
            };
            let Some(part) = part.transpose()? else {
                return Ok(Self::whole(parts, kind));
            };
            held += part.len() as u64;
            parts.push_back(part);
        }
        let is_whole = rest.body.is_end_stream();
        Ok(Self {
            rest: (!is_whole).then_some(rest),
            ..Self::whole(parts, kind)
        })
    }

    fn whole(parts: VecDeque<Bytes>, kind: AnswerKind) -> Self {
        Self {
            parts,
            rest: None,
            is_endless: kind == AnswerKind::Endless,
            _underway: None,
        }
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let this = self.get_mut();
        if let Some(part) = this.parts.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(part))));
        }
        let Some(rest) = &mut this.rest else {
            return Poll::Ready(None);
        };
        let part = ready!(rest.poll(context));
        if part.is_none() || rest.body.is_end_stream() {
            // The node has one request less.
            this.rest = None;
        }
        Poll::Ready(part.map(|part| part.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        let rest = self.rest.as_ref();
        self.parts.is_empty() && rest.is_none_or(|rest| rest.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let held: u64 = self.parts.iter().map(|part| part.len() as u64).sum();
        let rest = match &self.rest {
            Some(rest) => rest.body.size_hint().exact(),
            None => Some(0),
        };
        match rest {
            Some(rest) => SizeHint::with_exact(held + rest),
            None => SizeHint::default(),
        }
    }
}
