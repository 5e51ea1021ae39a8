//! What does a client send, and what becomes of it?

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use jindou_datagen::lubm::Lubm;
use serde::Serialize;

use super::ledger::Updates;
use crate::BenchError;
use crate::http::{Connection, HttpError, SAID_BYTES, update_request};
use crate::light::mixed_requests;
use crate::serving::UPDATE_PATH;

/// How long a client waits for an answer.
pub(super) const SILENCE: Duration = Duration::from_secs(30);
/// Light queries drawn for each server, held whole.
const DRAWN: usize = 3000;
/// Seed of the draws of the first server.
const SEED: u64 = 60;

/// What a request came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    /// Answered with another status.
    Refused {
        status: u16,
        /// How the answer begins.
        said: String,
    },
    /// There is no whole answer, and why: nothing was connected, the connection ended, or nothing came for
    /// [`SILENCE`].
    Cut(String),
}

impl Outcome {
    fn of(error: HttpError) -> Self {
        match error {
            HttpError::Status { status, said } => Self::Refused { status, said },
            error @ (HttpError::Io(_) | HttpError::Malformed(_)) => Self::Cut(error.to_string()),
        }
    }

    /// Why the request failed.
    pub(super) fn failure(&self) -> Option<String> {
        match self {
            Self::Done => None,
            Self::Refused { status, said } => Some(format!("{status}: {said}")),
            Self::Cut(reason) => Some(reason.clone()),
        }
    }
}

/// Requests that failed, by how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Failed {
    /// Answered with this status.
    pub by_status: BTreeMap<u16, u64>,
    /// Without a whole answer.
    pub cut: u64,
    /// Why the first of them failed.
    pub first: Option<String>,
}

impl Failed {
    pub(super) fn note(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Done => {}
            Outcome::Refused { status, .. } => *self.by_status.entry(*status).or_default() += 1,
            Outcome::Cut(_) => self.cut += 1,
        }
        if self.first.is_none() {
            self.first = outcome.failure();
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (status, count) in &other.by_status {
            *self.by_status.entry(*status).or_default() += count;
        }
        self.cut += other.cut;
        if self.first.is_none() {
            self.first.clone_from(&other.first);
        }
    }

    /// All.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.by_status.values().sum::<u64>() + self.cut
    }
}

impl Display for Failed {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let by_status = self.by_status.iter();
        let mut parts: Vec<String> = by_status
            .map(|(status, count)| format!("{count} by {status}"))
            .collect();
        if self.cut > 0 {
            parts.push(format!("{} cut", self.cut));
        }
        match parts.is_empty() {
            true => f.write_str("0"),
            false => f.write_str(&parts.join(", ")),
        }
    }
}

/// A connection to a server, opened anew after each failure.
pub(super) struct Client {
    address: SocketAddr,
    connection: Option<Connection>,
    /// Why the last request could not be sent.
    unsent: Option<HttpError>,
}

impl Client {
    pub(super) fn of(address: SocketAddr) -> Self {
        Self {
            address,
            connection: None,
            unsent: None,
        }
    }

    /// Ends the connection: the server has been killed.
    pub(super) fn disconnect(&mut self) {
        self.connection = None;
    }

    /// Sends a request. What becomes of it, though it could not be sent, is [received](Self::receive) later.
    pub(super) fn send(&mut self, request: &[u8]) {
        self.unsent = self.try_send(request).err();
    }

    fn try_send(&mut self, request: &[u8]) -> Result<(), HttpError> {
        let connection = match &mut self.connection {
            Some(open) => open,
            none => none.insert(Connection::open_within(self.address, SILENCE)?),
        };
        connection.send(request)
    }

    /// What became of the request that was sent last, and the lines of its answer.
    pub(super) fn receive(&mut self) -> (Outcome, u64) {
        let mut lines = 0;
        let outcome = match self.try_receive(&mut lines) {
            Ok(()) => Outcome::Done,
            Err(error) => Outcome::of(error),
        };
        if matches!(outcome, Outcome::Cut(_)) {
            self.connection = None;
        }
        (outcome, lines)
    }

    fn try_receive(&mut self, lines: &mut u64) -> Result<(), HttpError> {
        if let Some(error) = self.unsent.take() {
            return Err(error);
        }
        let closed = HttpError::Malformed("nothing was sent");
        let connection = self.connection.as_mut().ok_or(closed)?;
        let mut said = Vec::new();
        let answer = connection.receive(|piece| {
            *lines += memchr::memchr_iter(b'\n', piece).count() as u64;
            let more = piece.len().min(SAID_BYTES.saturating_sub(said.len()));
            said.extend_from_slice(&piece[..more]);
        })?;
        match answer.status {
            200..300 => Ok(()),
            status => Err(HttpError::refused(status, &said)),
        }
    }

    /// What becomes of a request.
    pub(super) fn ask(&mut self, request: &[u8]) -> Outcome {
        self.send(request);
        self.receive().0
    }

    /// What becomes of the next update, of one triple.
    pub(super) fn update(&mut self, updates: &mut Updates<'_>) -> Outcome {
        let update = updates.next();
        let text = format!("INSERT DATA {{ {} }}", update.triple());
        let outcome = self.ask(&update_request(self.address, UPDATE_PATH, &text));
        updates.note(update, &outcome);
        outcome
    }
}

/// Ends clients, however that ends which they are for.
pub(super) struct EndOnDrop<'a>(pub(super) &'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// The light queries that clients of each server ask.
pub(super) fn drawn(addresses: &[SocketAddr], data: Lubm) -> Result<Vec<Vec<Vec<u8>>>, BenchError> {
    let numbered = (SEED..).zip(addresses);
    numbered
        .map(|(seed, address)| mixed_requests(*address, data, seed, DRAWN))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_by_how() {
        let mut failed = Failed::default();
        assert_eq!(failed.to_string(), "0");
        let refused = |status| Outcome::Refused {
            status,
            said: "no".to_owned(),
        };
        let cut = Outcome::Cut("it ended".to_owned());
        for outcome in [Outcome::Done, refused(504), cut, refused(503), refused(503)] {
            failed.note(&outcome);
        }
        assert_eq!(failed.to_string(), "2 by 503, 1 by 504, 1 cut");
        assert_eq!(failed.first.as_deref(), Some("504: no"));
        let mut twice = failed.clone();
        twice.add(&failed);
        assert_eq!((failed.count(), twice.count()), (4, 8));
    }

    #[test]
    fn where_no_server_is_a_request_is_cut() {
        let address = crate::cluster::servers::free_addresses(1).unwrap()[0];
        let outcome = Client::of(address).ask(b"GET / HTTP/1.1\r\n\r\n");
        assert!(matches!(outcome, Outcome::Cut(_)), "{outcome:?}");
    }
}
