//! Which keys change, in which order, whatever happens to the connection?
//!
//! A connection on which nothing came for some seconds may be dead, and etcd itself says something in a quiet
//! time only every ten minutes. So the watch is then begun anew, at the revision after the last event.

mod sequence;

use std::time::Duration;

use serde_json::json;
use ureq::BodyReader;

use self::sequence::{Sequence, Step};
use crate::lines::Lines;
use crate::transport::{Failure, Patience, Resend, Transport};
use crate::wire::{
    Refusal, Revision, Value, WatchMessage, encode, malformed, parse_streamed, range_end,
    range_start,
};
use crate::worker::{Ending, Worker};
use crate::{Cause, Error, MOST_ANSWER_BYTES};

/// How long nothing may come before the watch is begun anew.
pub(crate) const QUIET: Duration = Duration::from_secs(5);
/// The first pause after a connection could not be made, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const MOST_PAUSE: Duration = Duration::from_secs(2);

/// What is heard of keys.
#[derive(Debug)]
pub enum Event {
    /// A key was written.
    Put {
        /// The key.
        key: Vec<u8>,
        /// What it has, and the revision that wrote it.
        value: Value,
    },
    /// A key was removed, by somebody or by the end of its lease.
    Deleted {
        /// The key.
        key: Vec<u8>,
        /// The revision that removed it.
        revision: Revision,
    },
    /// Changes up to this revision are forgotten, and some of them may not have been heard. This is the last
    /// event: read everything anew ([`crate::Client::get_all`]) and watch from there.
    ///
    /// Where keys did not change for long, nothing was missed though this is said.
    Compacted(Revision),
    /// No endpoint can be watched at present; this is why. What changes meanwhile is heard afterwards.
    Away(Error),
    /// One can again.
    Back,
}

/// Hears of changes until it is dropped.
#[must_use = "it ends when it is dropped"]
pub struct Watch {
    _worker: Worker,
}

impl Watch {
    pub(crate) fn start(
        transport: &Transport,
        prefix: &[u8],
        after: Revision,
        quiet: Duration,
        on_event: impl FnMut(Event) + Send + 'static,
    ) -> Result<Self, Error> {
        let transport = transport.with_patience(Patience::Stream {
            begin: transport.timeout(),
            pause: quiet,
        });
        let agent = transport.agent();
        let watching = Watching {
            transport,
            prefix: prefix.to_vec(),
            sequence: Sequence::new(prefix, after),
            on_event,
        };
        let run = move |ending: &Ending| watching.run(ending);
        let worker = Worker::start("etcd-watch", agent, run)?;
        Ok(Self { _worker: worker })
    }
}

type Stream = Lines<BodyReader<'static>>;

/// What the thread of a watch does.
struct Watching<F> {
    transport: Transport,
    prefix: Vec<u8>,
    sequence: Sequence,
    on_event: F,
}

/// Why a stream is not followed any more.
enum End {
    /// The thread is to end, or nothing more is to be had.
    Over,
    /// Nothing came for some time.
    Quiet,
    /// It may have had events.
    Broken { had_events: bool, cause: Cause },
}

impl<F: FnMut(Event)> Watching<F> {
    fn run(mut self, ending: &Ending) {
        let mut pauses = Pauses::default();
        let mut is_away = false;
        while !ending.is_over() {
            match self.open() {
                Ok((stream, message)) => {
                    if std::mem::take(&mut is_away) {
                        (self.on_event)(Event::Back);
                    }
                    match self.follow(ending, stream, message) {
                        End::Over => return,
                        End::Quiet => pauses = Pauses::default(),
                        End::Broken { had_events, cause } => {
                            tracing::debug!(%cause, "a watch of etcd broke, and is begun anew");
                            if had_events {
                                pauses = Pauses::default();
                            }
                        }
                    }
                }
                // Ended from another thread.
                Err(_) if ending.is_over() => return,
                Err(error) if is_away => tracing::debug!(%error, "etcd is still away"),
                Err(error) => {
                    is_away = true;
                    (self.on_event)(Event::Away(error));
                }
            }
            ending.wait(pauses.next());
        }
    }

    /// Opens a stream at the revision that is next; with its first message, which says that etcd watches.
    fn open(&self) -> Result<(Stream, WatchMessage), Error> {
        let request = json!({ "create_request": {
            "key": encode(range_start(&self.prefix)),
            "range_end": encode(&range_end(&self.prefix)),
            "start_revision": self.sequence.next().0.to_string(),
            "fragment": true,
        }});
        self.transport
            .open(Resend::Always, "/v3/watch", &request, |response| {
                let body = response.into_body().into_with_config();
                let reader = body.limit(u64::MAX).reader();
                let mut lines = Lines::new(reader, MOST_ANSWER_BYTES);
                let ended = || malformed("a watch without a message");
                let line = lines.next()?.ok_or_else(ended)?;
                let message: WatchMessage = parse_streamed(line)?;
                match message {
                    WatchMessage {
                        compact_revision: 1..,
                        ..
                    } => Ok((lines, message)),
                    WatchMessage { canceled: true, .. } => Err(canceled(message)),
                    WatchMessage { created: true, .. } => Ok((lines, message)),
                    _ => Err(malformed("a watch that does not begin").into()),
                }
            })
    }

    fn follow(&mut self, ending: &Ending, mut stream: Stream, first: WatchMessage) -> End {
        let mut had_events = false;
        let mut message = first;
        loop {
            match self.sequence.take(message) {
                Ok(Step::Events(events)) => {
                    for event in events {
                        if ending.is_over() {
                            return End::Over;
                        }
                        had_events = true;
                        (self.on_event)(event);
                    }
                }
                Ok(Step::Compacted(revision)) => {
                    if !ending.is_over() {
                        (self.on_event)(Event::Compacted(revision));
                    }
                    return End::Over;
                }
                Err(cause) => return End::Broken { had_events, cause },
            }
            message = match next_message(&mut stream) {
                Ok(message) => message,
                Err(cause) if is_quiet(&cause) => return End::Quiet,
                Err(cause) => return End::Broken { had_events, cause },
            };
        }
    }
}

fn next_message(stream: &mut Stream) -> Result<WatchMessage, Cause> {
    match stream.next()? {
        Some(line) => parse_streamed(line),
        None => Err(malformed("it ends")),
    }
}

/// Why etcd does not watch. Only later versions say more than that it is not allowed where a token is old.
fn canceled(message: WatchMessage) -> Failure {
    let reason = message.cancel_reason;
    match reason.contains("permission denied") {
        true => Failure::Unauthenticated(Refusal {
            code: 7,
            message: reason,
        }),
        false => malformed(format!("it ends the watch: {reason}")).into(),
    }
}

fn is_quiet(cause: &Cause) -> bool {
    let Cause::Connection(error) = cause else {
        return false;
    };
    matches!(error.downcast_ref(), Some(ureq::Error::Timeout(_)))
}

/// None after the first failure, and then longer and longer ones.
#[derive(Default)]
struct Pauses {
    last: Option<Duration>,
}

impl Pauses {
    fn next(&mut self) -> Duration {
        let next = match self.last {
            None => Duration::ZERO,
            Some(Duration::ZERO) => FIRST_PAUSE,
            Some(last) => (last * 2).min(MOST_PAUSE),
        };
        self.last = Some(next);
        next
    }
}

#[cfg(test)]
mod tests;
