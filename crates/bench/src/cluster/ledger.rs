//! Is every update that was acknowledged there in the end, and none that was refused?
//!
//! Each update inserts one triple that no other does, whose subject names the client and the update.

use std::fmt::{self, Display, Formatter};
use std::net::SocketAddr;
use std::path::Path;

use jindou_engine::{Config, Database, QueryResults};
use oxrdf::Term;
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use serde::Serialize;

use super::client::{Outcome, SILENCE};
use crate::BenchError;
use crate::http::{Connection, HttpError, query_request};
use crate::serving::QUERY_PATH;

const BASE: &str = "http://example.org/update/";
const MADE: &str = "http://example.org/made";
/// What asks for all of these triples.
const ALL: &str = "SELECT ?s { ?s <http://example.org/made> ?n }";

/// An update by one of the clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Update {
    client: u32,
    number: u32,
}

impl Display for Update {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{BASE}{}/{}", self.client, self.number)
    }
}

impl Update {
    /// The triple that it inserts.
    pub(super) fn triple(self) -> String {
        format!("<{self}> <{MADE}> {} .", self.number)
    }

    fn of(iri: &str) -> Option<Self> {
        let (client, number) = iri.strip_prefix(BASE)?.split_once('/')?;
        Some(Self {
            client: client.parse().ok()?,
            number: number.parse().ok()?,
        })
    }
}

/// What became of all updates to one store, or to one cluster.
#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    clients: u32,
    acknowledged: FxHashSet<Update>,
    refused: FxHashSet<Update>,
    /// Of which clients do not know whether they were made.
    unknown: u64,
}

/// How many updates there were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct UpdateCounts {
    /// Acknowledged, and found at each server in the end.
    pub acknowledged: u64,
    /// Refused as not made, and found nowhere.
    pub refused: u64,
    /// Whose clients do not know whether they were made: the answer was 504, or the connection was lost.
    pub unknown: u64,
}

/// The updates of a client, one after another.
pub(super) struct Updates<'l> {
    ledger: &'l Ledger,
    next: Update,
}

impl Ledger {
    /// Those of another client.
    pub(super) fn updates(&self) -> Updates<'_> {
        let mut entries = self.0.lock();
        entries.clients += 1;
        let next = Update {
            client: entries.clients,
            number: 0,
        };
        Updates { ledger: self, next }
    }

    fn note(&self, update: Update, outcome: &Outcome) {
        let mut entries = self.0.lock();
        let is_new = match outcome {
            Outcome::Done => entries.acknowledged.insert(update),
            // As docs/cluster.md has it: nothing was changed.
            Outcome::Refused {
                status: 503 | 400..=499,
                ..
            } => entries.refused.insert(update),
            Outcome::Refused { .. } | Outcome::Cut(_) => {
                entries.unknown += 1;
                true
            }
        };
        assert!(is_new, "{update} was sent once");
    }

    pub(super) fn counts(&self) -> UpdateCounts {
        let entries = self.0.lock();
        UpdateCounts {
            acknowledged: entries.acknowledged.len() as u64,
            refused: entries.refused.len() as u64,
            unknown: entries.unknown,
        }
    }

    /// Whether a server has what it is to have.
    ///
    /// # Errors
    /// [`BenchError::UpdateLost`], [`BenchError::UpdateNotRefused`]; [`BenchError::Http`].
    pub(super) fn check_server(&self, name: &str, address: SocketAddr) -> Result<(), BenchError> {
        let mut connection = Connection::open_within(address, SILENCE)?;
        connection.send(&query_request(address, QUERY_PATH, ALL))?;
        let mut body = Vec::new();
        let answer = connection.receive(|piece| body.extend_from_slice(piece))?;
        if answer.status != 200 {
            return Err(HttpError::refused(answer.status, &body).into());
        }
        let text = String::from_utf8_lossy(&body);
        // The first line names the variable.
        let held = text.lines().skip(1).filter_map(|line| {
            let iri = line.strip_prefix('<')?.strip_suffix('>')?;
            Update::of(iri)
        });
        self.check(&format!("server {name}"), &held.collect())
    }

    /// Whether a store that no server has open any more has it.
    ///
    /// # Errors
    /// [`BenchError::UpdateLost`], [`BenchError::UpdateNotRefused`]; [`BenchError::Engine`].
    pub(super) fn check_store(&self, name: &str, store: &Path) -> Result<(), BenchError> {
        let database = Database::open_to_read(store, Config::default())?;
        let QueryResults::Solutions(solutions) = database.query(ALL)? else {
            return Err(BenchError::NotSolutions { query: ALL.into() });
        };
        let mut held = FxHashSet::default();
        for solution in solutions {
            if let Some(Term::NamedNode(node)) = solution?.get("s") {
                held.extend(Update::of(node.as_str()));
            }
        }
        self.check(&format!("the store of server {name}"), &held)
    }

    fn check(&self, place: &str, held: &FxHashSet<Update>) -> Result<(), BenchError> {
        let entries = self.0.lock();
        let mut lost = entries.acknowledged.difference(held);
        if let Some(first) = lost.next() {
            return Err(BenchError::UpdateLost {
                place: place.to_owned(),
                lost: 1 + lost.count() as u64,
                acknowledged: entries.acknowledged.len() as u64,
                first: first.to_string(),
            });
        }
        let mut made = entries.refused.intersection(held);
        match made.next() {
            None => Ok(()),
            Some(first) => Err(BenchError::UpdateNotRefused {
                place: place.to_owned(),
                made: 1 + made.count() as u64,
                first: first.to_string(),
            }),
        }
    }
}

impl Updates<'_> {
    /// The next one.
    pub(super) fn next(&mut self) -> Update {
        let update = self.next;
        self.next.number += 1;
        update
    }

    /// What became of one.
    pub(super) fn note(&self, update: Update, outcome: &Outcome) {
        self.ledger.note(update, outcome);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_acknowledged_must_be_there_and_what_was_refused_must_not() {
        let ledger = Ledger::default();
        let (mut one, mut other) = (ledger.updates(), ledger.updates());
        let (done, refused, unknown) = (one.next(), other.next(), one.next());
        let with = |status| Outcome::Refused {
            status,
            said: String::new(),
        };
        one.note(done, &Outcome::Done);
        other.note(refused, &with(503));
        one.note(unknown, &with(504));
        let counts = ledger.counts();
        let found = (counts.acknowledged, counts.refused, counts.unknown);
        assert_eq!(found, (1, 1, 1));
        let check = |held: &[Update]| ledger.check("x", &held.iter().copied().collect());
        assert!(check(&[done]).is_ok() && check(&[done, unknown]).is_ok());
        let lost = check(&[unknown]).unwrap_err();
        assert!(
            matches!(&lost, BenchError::UpdateLost { lost: 1, first, .. } if *first == done.to_string()),
            "{lost}"
        );
        let made = check(&[done, refused]).unwrap_err();
        assert!(matches!(made, BenchError::UpdateNotRefused { made: 1, .. }));
    }

    #[test]
    fn a_store_is_asked_for_what_it_has() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store");
        let ledger = Ledger::default();
        let mut updates = ledger.updates();
        let (made, forgotten) = (updates.next(), updates.next());
        let database = Database::open_or_create(&store, Config::default()).unwrap();
        let text = format!("INSERT DATA {{ {} }}", made.triple());
        database.update(&text).unwrap();
        drop(database);
        updates.note(made, &Outcome::Done);
        ledger.check_store("a", &store).unwrap();
        updates.note(forgotten, &Outcome::Done);
        let error = ledger.check_store("a", &store).unwrap_err();
        assert!(
            error.to_string().contains("the store of server a"),
            "{error}"
        );
        assert_eq!(Update::of(&made.to_string()), Some(made));
        assert_eq!(Update::of("http://example.org/x"), None);
    }
}
