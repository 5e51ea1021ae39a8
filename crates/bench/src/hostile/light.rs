//! How long do light queries take while other things happen?

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use jindou_datagen::lubm::Lubm;

use super::report::LightUnder;
use crate::BenchError;
use crate::http::{Connection, HttpError};
use crate::light::mixed_requests;
use crate::timing::Timing;

/// Connections, each with one query at a time.
const CONNECTIONS: usize = 4;
/// From the beginning of one query to that of the next on a connection: 1,000 queries a second
/// in all, so that the figures are those of queries and not of a queue of them.
const PACE: Duration = Duration::from_millis(4);
/// Queries drawn for each connection.
const DRAWN: usize = 3000;
/// Seed of the draws.
const SEED: u64 = 50;

struct Part {
    times: Vec<Duration>,
    failed: u64,
    first_failure: Option<String>,
}

/// Sends light queries for so long.
pub(super) fn run(
    address: SocketAddr,
    data: Lubm,
    length: Duration,
) -> Result<LightUnder, BenchError> {
    let begun = Instant::now();
    run_while(address, data, &|| begun.elapsed() < length)
}

/// Sends light queries until it is stopped.
pub(super) fn run_until(
    address: SocketAddr,
    data: Lubm,
    stop: &AtomicBool,
) -> Result<LightUnder, BenchError> {
    run_while(address, data, &|| !stop.load(Relaxed))
}

fn run_while(
    address: SocketAddr,
    data: Lubm,
    goes_on: &(dyn Fn() -> bool + Sync),
) -> Result<LightUnder, BenchError> {
    let draws = (0..CONNECTIONS)
        .map(|number| mixed_requests(address, data, SEED + number as u64, DRAWN))
        .collect::<Result<Vec<_>, _>>()?;
    let parts: Vec<Part> = std::thread::scope(|scope| {
        let threads: Vec<_> = draws
            .iter()
            .map(|requests| {
                let thread = std::thread::Builder::new().name("light".to_owned());
                thread.spawn_scoped(scope, move || drive(address, requests, goes_on))
            })
            .collect();
        let parts = threads.into_iter().map(|thread| {
            thread
                .map_err(|_| BenchError::Thread)?
                .join()
                .map_err(|_| BenchError::Thread)
        });
        parts.collect::<Result<_, _>>()
    })?;
    let mut times = Vec::new();
    let (mut failed, mut first_failure) = (0, None);
    for part in parts {
        times.extend(part.times);
        failed += part.failed;
        first_failure = first_failure.or(part.first_failure);
    }
    if times.is_empty() {
        return Err(BenchError::NoLight {
            reason: first_failure.unwrap_or_else(|| "none was sent".to_owned()),
        });
    }
    let max = times.iter().max().copied().unwrap_or_default();
    Ok(LightUnder {
        timing: Timing::of(times),
        max_ms: max.as_secs_f64() * 1e3,
        failed,
        first_failure,
    })
}

fn drive(address: SocketAddr, requests: &[Vec<u8>], goes_on: &dyn Fn() -> bool) -> Part {
    // What is measured is how long the server takes, not this thread's waiting for a core; older
    // systems know no short turns.
    let _ = jindou_fabric::schedule::take_short_turns();
    let mut part = Part {
        times: Vec::new(),
        failed: 0,
        first_failure: None,
    };
    let mut connection = None;
    let mut due = Instant::now();
    for request in requests.iter().cycle() {
        if !goes_on() {
            break;
        }
        let now = Instant::now();
        // What was late is not made up for: no burst follows a slow answer.
        due = (due + PACE).max(now);
        match answered(&mut connection, address, request) {
            Ok(time) => part.times.push(time),
            Err(error) => {
                part.failed += 1;
                part.first_failure.get_or_insert_with(|| error.to_string());
                connection = None;
            }
        }
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    part
}

fn answered(
    connection: &mut Option<Connection>,
    address: SocketAddr,
    request: &[u8],
) -> Result<Duration, HttpError> {
    let open = match connection {
        Some(open) => open,
        None => connection.insert(Connection::open(address)?),
    };
    let begun = Instant::now();
    open.lines(request)?;
    Ok(begun.elapsed())
}
