//! Is a client still there that has said all that it has to say?
//!
//! A client may end its sending side after a request and still wait for the answer. One that has
//! closed its connection looks the same until something is sent to it: its system then says that
//! nobody is there. So an interim response, 100 Continue, is sent to the former now and then,
//! which HTTP/1.1 lets clients pass over in any number. To clients of HTTP/1.0, and once an answer
//! has begun, nothing can be sent in between: there a client that is gone is noticed by the next
//! write, or its query ends by its time limit. Where an answer has no end and no such limit, and
//! may send nothing for long, the end of what the client sends is taken for its own.
//!
//! And does a client see that an answer is not whole? One of HTTP/1.0 knows the end of a streamed
//! answer by that of the connection. So a connection that owes part of one is reset, not closed.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::connections::{Activity, Peer};
use crate::queries::Client;
use crate::wire::Wire;

const INTERIM: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// Time from the end of what a client sends to the first look whether it is there, which doubles
/// for each next one,
const FIRST_LOOK: Duration = Duration::from_millis(10);
/// up to this.
const LAST_LOOK: Duration = Duration::from_secs(10);

/// A connection whose flushes fail once a client that waits for an answer is gone.
pub(crate) struct Attended {
    wire: Wire,
    peer: Arc<Peer>,
    client: Arc<Client>,
    presence: Presence,
    /// Some of an answer was written, and not the whole, or it is not known to be.
    owes: bool,
}

/// What is known of one client while it waits for an answer.
#[derive(Default)]
struct Presence {
    /// Its sending side has ended.
    has_ended: bool,
    looks: u32,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Presence {
    /// Looks after the client, when nothing waits to be sent to it; fails once it is gone.
    fn poll(
        &mut self,
        wire: &mut Wire,
        activity: Activity,
        context: &mut Context<'_>,
    ) -> io::Result<()> {
        if activity == Activity::Idle {
            if self.has_ended {
                *self = Self::default();
            }
            return Ok(());
        }
        if !self.has_ended {
            match wire.poll_ended(context)? {
                Poll::Ready(true) if activity == Activity::AnsweringForEver => {
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
                Poll::Ready(true) => self.has_ended = true,
                Poll::Ready(false) | Poll::Pending => return Ok(()),
            }
        }
        loop {
            let wait = FIRST_LOOK.saturating_mul(1 << self.looks.min(16));
            let timer = self
                .timer
                .get_or_insert_with(|| Box::pin(sleep(wait.min(LAST_LOOK))));
            if timer.as_mut().poll(context).is_pending() {
                return Ok(());
            }
            self.timer = None;
            self.looks += 1;
            if let Some(error) = wire.take_error()? {
                return Err(error);
            }
            if activity == Activity::Waiting {
                wire.say(INTERIM, context)?;
            }
        }
    }
}

impl Attended {
    pub(crate) fn new(wire: Wire, peer: &Arc<Peer>, client: &Arc<Client>) -> Self {
        Self {
            wire,
            peer: Arc::clone(peer),
            client: Arc::clone(client),
            presence: Presence::default(),
            owes: false,
        }
    }

    /// Notes that something was written.
    fn note(&mut self, written: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(1..)) = written {
            self.owes |= self.peer.activity() != Activity::Idle;
            self.client.note_reading(Instant::now());
        }
    }
}

impl Drop for Attended {
    fn drop(&mut self) {
        if self.owes {
            self.wire.reset();
        }
    }
}

impl AsyncRead for Attended {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_read(context, buffer)
    }
}

impl AsyncWrite for Attended {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.wire).poll_write(context, bytes);
        self.note(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.wire).poll_write_vectored(context, slices);
        self.note(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.wire.is_write_vectored()
    }

    /// Comes whenever the HTTP library has been at the connection and has nothing left to write.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.wire).poll_flush(context))?;
        let activity = self.peer.activity();
        self.owes &= activity != Activity::Idle;
        let Self { wire, presence, .. } = &mut *self;
        Poll::Ready(presence.poll(wire, activity, context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = ready!(Pin::new(&mut self.wire).poll_shutdown(context));
        self.owes &= ended.is_err();
        Poll::Ready(ended)
    }
}
