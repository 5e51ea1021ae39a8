//! Is whoever wrote a key still there?
//!
//! A lease ends some seconds after it was last kept alive. What counts is when that was asked, not when etcd
//! answered: so it is never held to be alive here when it has ended there, as far as both clocks run alike.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::Error;
use crate::transport::{Patience, Resend, Transport};
use crate::wire::{LeaseAnswer, malformed, parse, parse_streamed};
use crate::worker::{Ending, Worker};

/// Of this part of its time a lease is kept alive, and all endpoints together may take as much to answer.
const SHARE: u32 = 3;
/// Between two rounds of all endpoints where none answered, at most.
const MOST_PAUSE: Duration = Duration::from_millis(250);

/// A lease of etcd that is kept alive. Dropping it revokes it, which may take as long as any call.
pub struct Lease {
    id: u64,
    transport: Transport,
    /// Ends before the lease is revoked.
    worker: Option<Worker>,
}

impl Lease {
    pub(crate) fn grant(
        transport: Transport,
        ttl: Duration,
        on_lost: impl FnOnce() + Send + 'static,
    ) -> Result<Self, Error> {
        let seconds = ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0);
        let request = json!({ "TTL": seconds.max(1).to_string() });
        let asked_at = Instant::now();
        // One whose answer is lost ends by itself.
        let granted: LeaseAnswer = transport.ask(
            Resend::Always,
            "/v3/lease/grant",
            &request,
            |bytes| match parse(bytes)? {
                LeaseAnswer { id: 0, .. } | LeaseAnswer { ttl_s: 0, .. } => {
                    Err(malformed("a lease without number or time"))
                }
                granted => Ok(granted),
            },
        )?;
        let ttl = Duration::from_secs(granted.ttl_s.min(MOST_TTL_S));
        let endpoints = u32::try_from(transport.endpoints()).unwrap_or(u32::MAX);
        let each = transport.timeout().min(ttl / SHARE / endpoints);
        let keeping = Keeping {
            id: granted.id,
            ttl,
            round: each * endpoints,
            expires_at: asked_at + ttl,
            transport: transport.with_patience(Patience::Whole(each)),
        };
        let mut lease = Self {
            id: granted.id,
            transport,
            worker: None,
        };
        let agent = keeping.transport.agent();
        let run = move |ending: &Ending| keeping.run(ending, on_lost);
        lease.worker = Some(Worker::start("etcd-lease", agent, run)?);
        Ok(lease)
    }

    /// etcd's number of it.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.worker = None;
        let request = json!({ "ID": self.id.to_string() });
        let revoked = self
            .transport
            .ask(Resend::Always, "/v3/lease/revoke", &request, |_| Ok(()));
        if let Err(error) = revoked {
            tracing::debug!(lease = self.id, %error, "a lease was not revoked, and ends by itself");
        }
    }
}

/// The longest time of a lease, in seconds: etcd's own bound.
const MOST_TTL_S: u64 = 9_000_000_000;

/// What the thread of a lease does.
struct Keeping {
    id: u64,
    ttl: Duration,
    /// The longest that all endpoints may take to answer.
    round: Duration,
    expires_at: Instant,
    transport: Transport,
}

impl Keeping {
    fn run(mut self, ending: &Ending, on_lost: impl FnOnce()) {
        let mut next_at = Instant::now() + self.ttl / SHARE;
        loop {
            // A round that could end too late is not begun.
            let is_late = next_at + self.round > self.expires_at;
            let wake_at = if is_late { self.expires_at } else { next_at };
            if ending.wait_until(wake_at) {
                return;
            }
            if is_late {
                return self.lose("it could not be kept alive in its time", on_lost);
            }
            let asked_at = Instant::now();
            match self.keep() {
                Ok(0) => return self.lose("etcd has ended it", on_lost),
                Ok(seconds) => {
                    self.expires_at = asked_at + Duration::from_secs(seconds.min(MOST_TTL_S));
                    next_at = asked_at + self.ttl / SHARE;
                }
                Err(_) if ending.is_over() => return,
                Err(error) => {
                    tracing::debug!(lease = self.id, %error, "a lease was not kept alive");
                    next_at = Instant::now() + MOST_PAUSE.min(self.ttl / SHARE / SHARE);
                }
            }
        }
    }

    /// The seconds that the lease has again; none if it is gone.
    fn keep(&self) -> Result<u64, Error> {
        let request = json!({ "ID": self.id.to_string() });
        self.transport
            .ask(Resend::Always, "/v3/lease/keepalive", &request, |bytes| {
                let answer: LeaseAnswer = parse_streamed(bytes)?;
                match answer.id == self.id {
                    true => Ok(answer.ttl_s),
                    false => Err(malformed("another lease than was asked about")),
                }
            })
    }

    fn lose(&self, reason: &str, on_lost: impl FnOnce()) {
        tracing::warn!(lease = self.id, reason, "a lease of etcd is lost");
        on_lost();
    }
}
