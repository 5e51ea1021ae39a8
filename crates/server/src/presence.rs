//! Is a client still there that has said all that it has to say?
//!
//! A client may end its sending side after a request and still wait for the answer. One that has
//! closed its connection looks the same until something is sent to it: its system then says that
//! nobody is there. So an interim response, 100 Continue, is sent to the former now and then,
//! which HTTP/1.1 lets clients pass over in any number. To clients of HTTP/1.0, and once an answer
//! has begun, nothing can be sent in between: there a client that is gone is noticed by the next
//! write, or its query ends by its time limit.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::ReadBuf;
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

use crate::connections::Activity;

const INTERIM: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// Time from the end of what a client sends to the first look whether it is there, which doubles
/// for each next one,
const FIRST_LOOK: Duration = Duration::from_millis(10);
/// up to this.
const LAST_LOOK: Duration = Duration::from_secs(10);

/// What is known of one client while it waits for an answer.
#[derive(Default)]
pub(crate) struct Presence {
    /// Its sending side has ended.
    has_ended: bool,
    looks: u32,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Presence {
    /// Looks after the client, when nothing waits to be sent to it; fails once it is gone.
    pub(crate) fn poll(
        &mut self,
        stream: &TcpStream,
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
            let mut byte = [0];
            match stream.poll_peek(context, &mut ReadBuf::new(&mut byte)) {
                Poll::Ready(Ok(0)) => self.has_ended = true,
                Poll::Ready(Ok(_)) | Poll::Pending => return Ok(()),
                Poll::Ready(Err(error)) => return Err(error),
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
            if let Some(error) = stream.take_error()? {
                return Err(error);
            }
            if activity == Activity::Waiting {
                match stream.try_write(INTERIM) {
                    Ok(written) if written == INTERIM.len() => {}
                    Ok(_) => return Err(io::ErrorKind::WriteZero.into()),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
}
