//! Which attacks are there on streams?

mod giants;
mod heavy;
mod lies;
mod readers;
mod registrations;
mod unfinished;
mod years;

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::client::{Client, Told};
use crate::BenchError;

/// Where an attack takes place, and how large it is.
pub(super) struct Ground {
    pub(super) address: SocketAddr,
    /// How long attacks go on that have no end of their own.
    pub(super) length: Duration,
    /// Queries to be registered.
    pub(super) registrations: usize,
    /// Clients that stop in the middle, or never read.
    pub(super) clients: usize,
}

/// An attack, which takes away again what it made.
pub(super) struct Attack {
    pub(super) name: &'static str,
    pub(super) run: fn(&Ground) -> Result<Told, BenchError>,
    /// It meets a server that takes bodies of up to 2 GiB.
    pub(super) takes_large: bool,
}

impl Attack {
    const fn new(name: &'static str, run: fn(&Ground) -> Result<Told, BenchError>) -> Self {
        Self {
            name,
            run,
            takes_large: false,
        }
    }
}

pub(super) const ATTACKS: [Attack; 8] = [
    Attack::new("producers that lie about time", lies::run),
    Attack::new("events of 1 GB", giants::run),
    Attack {
        takes_large: true,
        ..Attack::new(
            "events of 1 GB where bodies of 2 GiB are taken",
            giants::run,
        )
    },
    Attack::new("producers that stop in the middle", unfinished::run),
    Attack::new("windows of a year, and rings of a byte", years::run),
    Attack::new("registrations without end", registrations::run),
    Attack::new("consumers that never read", readers::run),
    Attack::new("heavy queries with small steps", heavy::run),
];

/// Bytes of the windows that the streams of an attack have.
pub(super) const STREAM_BYTES: u64 = 32 << 20;

/// Makes a stream with these members beside its IRI, or says what is wrong.
fn made(client: &mut Client, name: &str, more: &str) -> Result<(), BenchError> {
    let more = format!(",\"memory\":{STREAM_BYTES}{more}");
    let answer = client.put_stream(name, &more)?;
    match answer.status {
        201 => Ok(()),
        _ => Err(BenchError::NoLight {
            reason: answer.body,
        }),
    }
}

/// The time of the system's clock.
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as i64)
}

/// A line of a tuple.
fn line(time_ms: impl std::fmt::Display, tuple: u64) -> String {
    format!("{time_ms}\t<http://e/s{tuple}> <http://e/p> <http://e/o{tuple}> .\n")
}
