//! What does a server that stops do with requests that it has not answered?
//!
//! First it lets them end. Then queries and updates are cancelled, and bodies are read no further: each of these requests is
//! refused, with its reason, by the code that has it. What has no answer after that, as its thread does not look whether
//! it is cancelled, is answered without it. So a client hears why its request failed, and the server ends within a bounded time.

use std::time::Duration;

use hyper::StatusCode;
use tokio::sync::watch;

use crate::error::Refusal;

/// How long cancelled requests may take until they are answered.
pub(crate) const ANSWER_GRACE: Duration = Duration::from_secs(5);

/// When to come again to a server that stops, in seconds: it may be one that starts anew.
const STOPPED_SECONDS: u32 = 5;

/// What clients are told.
pub(crate) const STOPPED: &str = "this server stops, or starts anew, and waited for the request as long as it may; try again \
     later, or at another node of its cluster";

/// How far a server has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Requests may end, also while it stops.
    LetsEnd,
    /// They are refused, wherever they are.
    Refuses,
    /// They are answered without those who have them.
    GivesUp,
}

/// How far a server has stopped, for whoever waits for it.
pub(crate) struct Stopping(watch::Sender<Phase>);

impl Stopping {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(Phase::LetsEnd))
    }

    /// Goes on to a phase, and tells all who wait for it.
    pub(crate) fn go_on_to(&self, phase: Phase) {
        let before = self.0.send_replace(phase);
        assert!(before < phase, "a server stops once");
    }

    /// Waits until the server has come to a phase.
    pub(crate) async fn until(&self, phase: Phase) {
        let mut now = self.0.subscribe();
        // The sender is `self`'s.
        let _is_there = now.wait_for(|now| *now >= phase).await;
    }
}

/// For a request that did nothing.
pub(crate) fn refused() -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, STOPPED).come_again(STOPPED_SECONDS)
}

/// For a request that may have done what it asked for.
pub(crate) fn given_up() -> Refusal {
    let message = "this server stops, or starts anew, before the request has ended; if it changes something, that may be done \
         or not";
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message)
}
