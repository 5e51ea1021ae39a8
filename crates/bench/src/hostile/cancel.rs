//! How long does work go on after it was cancelled?

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::attack::{CLOSURE, CROSS, GROUPS, ORDER_CROSS, TERMS, hostile_request, name_of};
use super::report::{CancelFigures, Leftover};
use super::server::request;
use crate::BenchError;
use crate::http::Connection;

/// How long a query of the mix runs before it is cancelled.
const HEAD_START: Duration = Duration::from_millis(500);
/// How long queries of each kind run in each way when nothing else runs: until they begin, until
/// their memory is full, and until they have put things on disk.
const HEAD_STARTS: [Duration; 3] = [
    Duration::from_millis(300),
    Duration::from_millis(1000),
    Duration::from_millis(3000),
];
/// Between two looks whether a query has begun.
const LOOK: Duration = Duration::from_millis(20);
/// Between two looks whether one has ended.
const GLANCE: Duration = Duration::from_micros(500);
/// How long a query may wait for its turn; it is given up then.
const PATIENCE: Duration = Duration::from_secs(25);
/// How long it may go on at most before that is an error.
const LONGEST: Duration = Duration::from_secs(30);

/// Distinct rows, more than any memory holds.
const DISTINCT: &str = "SELECT DISTINCT ?a ?f { ?a ?b ?c . ?d ?e ?f }";

const KINDS: [(&str, &str); 6] = [
    ("cross product", CROSS),
    ("transitive closure", CLOSURE),
    ("order of a cross product", ORDER_CROSS),
    ("terms of a cross product", TERMS),
    ("groups of a cross product", GROUPS),
    ("distinct rows of a cross product", DISTINCT),
];

#[derive(Clone, Copy)]
enum Way {
    Delete,
    Close,
}

impl Way {
    const ALL: [Self; 2] = [Self::Delete, Self::Close];

    const fn name(self) -> &'static str {
        match self {
            Self::Delete => "DELETE",
            Self::Close => "closed",
        }
    }
}

/// Ends one heavy query of the mix after the other until told to stop: its own would hardly have
/// their turn.
pub(super) fn start_beside(
    address: SocketAddr,
    stop: &Arc<AtomicBool>,
) -> JoinHandle<Vec<CancelFigures>> {
    let stop = Arc::clone(stop);
    std::thread::spawn(move || {
        let mut figures: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        while !stop.load(Relaxed) {
            // A connection that fails is told by the light queries, which count it.
            if let Ok(Some((name, time))) = end_any(address) {
                let times = figures.entry(name).or_default();
                times.push(time.as_secs_f64() * 1e3);
            }
            std::thread::sleep(HEAD_START);
        }
        let figures = figures.into_iter().map(|(name, ms)| CancelFigures {
            name: format!("{name} by DELETE"),
            ms,
        });
        sorted(figures.collect())
    })
}

/// Ends the query that has computed for longest, if one has for a while.
fn end_any(address: SocketAddr) -> Result<Option<(&'static str, Duration)>, BenchError> {
    let mut observer = Connection::open(address)?;
    let list = list(&mut observer, address)?;
    let queries = list["queries"].as_array().cloned().unwrap_or_default();
    let computes = queries.iter().find(|query| {
        let elapsed = query["elapsed_seconds"].as_f64().unwrap_or_default();
        query["state"] == "running"
            && query["class"] == "heavy"
            && query["batches"].as_u64() > Some(0)
            && elapsed > HEAD_START.as_secs_f64()
    });
    let Some(query) = computes else {
        return Ok(None);
    };
    let name = name_of(query["query"].as_str().unwrap_or_default());
    let id = query["id"].as_str().unwrap_or_default();
    let path = format!("/queries/{id}");
    let begun = Instant::now();
    let (status, _) = request(&mut observer, address, "DELETE", &path)?;
    if status != 204 {
        return Ok(None);
    }
    let time = until_gone(&mut observer, address, &path, begun, false)?;
    Ok(Some((name, time)))
}

/// Waits until a query is not in the list any more, and its memory is back if that is asked for.
fn until_gone(
    observer: &mut Connection,
    address: SocketAddr,
    path: &str,
    begun: Instant,
    memory: bool,
) -> Result<Duration, BenchError> {
    loop {
        let (status, text) = request(observer, address, "GET", path)?;
        let gone = status == 404 || text.contains("\"failed\"");
        if gone && (!memory || list(observer, address)?["memory_bytes"] == 0) {
            return Ok(begun.elapsed());
        }
        if begun.elapsed() > LONGEST {
            return Ok(LONGEST);
        }
        std::thread::sleep(GLANCE);
    }
}

/// How long it takes until nothing is left of requests whose clients have gone: none is in the
/// list, and the memory of all is back.
pub(super) fn until_idle(address: SocketAddr) -> Result<Leftover, BenchError> {
    let mut observer = Connection::open(address)?;
    let begun = Instant::now();
    let mut leftover = Leftover::default();
    loop {
        let list = list(&mut observer, address)?;
        let queries = list["queries"].as_array().cloned().unwrap_or_default();
        let memory_bytes = list["memory_bytes"].as_u64().unwrap_or_default();
        if queries.is_empty() && memory_bytes == 0 || begun.elapsed() > LONGEST {
            return Ok(leftover);
        }
        leftover.ms = begun.elapsed().as_secs_f64() * 1e3;
        leftover.bytes = memory_bytes;
        if let Some(query) = queries.first() {
            leftover.name = name_of(query["query"].as_str().unwrap_or_default()).to_owned();
        }
        std::thread::sleep(LOOK);
    }
}

/// Cancels queries when nothing else runs, and waits for their memory, too.
pub(super) fn alone(address: SocketAddr) -> Result<Vec<CancelFigures>, BenchError> {
    let mut figures = all();
    for number in 0..HEAD_STARTS.len() * figures.len() {
        let kind = number % figures.len();
        let head_start = HEAD_STARTS[number / figures.len()];
        let time = cancelled(address, kind, head_start, &format!("alone {number}"))?;
        // One that met its own bounds before tells nothing.
        figures[kind]
            .ms
            .extend(time.map(|time| time.as_secs_f64() * 1e3));
    }
    Ok(sorted(figures))
}

fn all() -> Vec<CancelFigures> {
    let ways = Way::ALL.iter();
    ways.flat_map(|way| {
        KINDS.iter().map(|(name, _)| CancelFigures {
            name: format!("{name} by {}", way.name()),
            ms: Vec::new(),
        })
    })
    .collect()
}

fn sorted(mut figures: Vec<CancelFigures>) -> Vec<CancelFigures> {
    for kind in &mut figures {
        kind.ms.sort_by(f64::total_cmp);
    }
    figures
}

/// Starts a query, cancels it, and tells how long it went on; `None` if it never computed.
fn cancelled(
    address: SocketAddr,
    kind: usize,
    head_start: Duration,
    nonce: &str,
) -> Result<Option<Duration>, BenchError> {
    let way = Way::ALL[kind / KINDS.len()];
    let (_, query) = KINDS[kind % KINDS.len()];
    let mut connection = Connection::open(address)?;
    connection.send(&hostile_request(address, query, nonce))?;
    let mut observer = Connection::open(address)?;
    let begun = Instant::now();
    let id = loop {
        let list = list(&mut observer, address)?;
        let queries = list["queries"].as_array().cloned().unwrap_or_default();
        let own = queries.iter().find(|query| {
            let text = query["query"].as_str().unwrap_or_default();
            text.ends_with(&format!("# {nonce}"))
        });
        let computes = own.filter(|own| own["state"] == "running" && own["class"] == "heavy");
        if let Some(own) = computes {
            break own["id"].as_str().unwrap_or_default().to_owned();
        }
        if begun.elapsed() > PATIENCE {
            return Ok(None);
        }
        std::thread::sleep(LOOK);
    };
    std::thread::sleep(head_start);
    let path = format!("/queries/{id}");
    let cancelled = Instant::now();
    match way {
        Way::Delete => {
            let (status, _) = request(&mut observer, address, "DELETE", &path)?;
            if status != 204 {
                // It ended by itself: its memory or its time was up.
                return Ok(None);
            }
        }
        Way::Close => drop(connection),
    }
    until_gone(&mut observer, address, &path, cancelled, true).map(Some)
}

fn list(observer: &mut Connection, address: SocketAddr) -> Result<Value, BenchError> {
    let (_, text) = request(observer, address, "GET", "/queries")?;
    Ok(serde_json::from_str(&text).unwrap_or_default())
}
