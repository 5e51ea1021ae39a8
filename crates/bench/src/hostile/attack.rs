//! Which queries try to take the server down?

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::report::AttackFigures;
use crate::BenchError;
use crate::http::{Connection, HttpError};

/// How long each may take, in seconds; the server's own limit is above it.
const TIMEOUT_SECONDS: u32 = 20;
/// Between two that are refused at once.
const PAUSE: Duration = Duration::from_millis(50);
/// Clients of each kind.
const EACH: usize = 2;

/// A cross product of everything, without one row.
pub(super) const CROSS: &str = "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . \
     FILTER(STRLEN(STR(?a)) + STRLEN(STR(?f)) + STRLEN(STR(?i)) < 0) }";
/// A transitive closure over everything, both ways: from everything to everything.
pub(super) const CLOSURE: &str =
    "SELECT (COUNT(*) AS ?n) { ?a (!<http://e/none>|^!<http://e/none>)+ ?b }";
/// Everything, in order.
pub(super) const ORDER: &str = "SELECT * { ?s ?p ?o } ORDER BY ?o ?s DESC(?p)";
/// More than any memory, in order.
pub(super) const ORDER_CROSS: &str = "SELECT * { ?a ?b ?c . ?d ?e ?f } ORDER BY ?f ?c ?a";
/// More terms than any memory.
pub(super) const TERMS: &str =
    "SELECT (COUNT(?x) AS ?n) { ?a ?b ?c . ?d ?e ?f BIND(CONCAT(STR(?a), STR(?f)) AS ?x) }";
/// More groups than any memory.
pub(super) const GROUPS: &str =
    "SELECT ?a ?f (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f } GROUP BY ?a ?f";

/// The name of the kind that a query is of, by the text that the server shows of it.
pub(super) fn name_of(shown: &str) -> &'static str {
    let kinds = kinds().into_iter();
    let mut same =
        kinds.filter(|(_, text)| shown.starts_with(&text[..text.len().min(SHOWN_BYTES)]));
    same.next().map_or("a slow client's", |(name, _)| name)
}

/// Bytes of a query by which it is told from others.
const SHOWN_BYTES: usize = 1024;

/// All kinds with their names.
fn kinds() -> Vec<(&'static str, String)> {
    let nested = |count| format!("{}1{}", "(".repeat(count), ")".repeat(count));
    let values: String = (0..10_000).map(|n| format!("<http://e/{n}> ")).collect();
    vec![
        ("cross product", CROSS.to_owned()),
        ("transitive closure", CLOSURE.to_owned()),
        ("order of everything", ORDER.to_owned()),
        ("order of a cross product", ORDER_CROSS.to_owned()),
        ("terms of a cross product", TERMS.to_owned()),
        ("groups of a cross product", GROUPS.to_owned()),
        (
            "10,000 parentheses",
            format!("ASK {{ FILTER({}) }}", nested(10_000)),
        ),
        (
            "10,000 values",
            format!("SELECT * {{ VALUES ?s {{ {values} }} ?s ?p ?o }}"),
        ),
        (
            "2,000 joins",
            format!(
                "ASK {{ ?s {}<http://e/p> ?o }}",
                "<http://e/p>/".repeat(2_000)
            ),
        ),
        (
            "8,000 negations",
            format!("ASK {{ FILTER({}true) }}", "!".repeat(8_000)),
        ),
    ]
}

/// Clients under way.
pub(super) struct Attacks {
    threads: Vec<(&'static str, JoinHandle<BTreeMap<String, u64>>)>,
}

/// Starts clients that send these queries again and again until told to stop.
pub(super) fn start(address: SocketAddr, stop: &Arc<AtomicBool>) -> Attacks {
    let mut threads = Vec::new();
    for (name, query) in kinds() {
        for number in 0..EACH {
            let (query, stop) = (query.clone(), Arc::clone(stop));
            let work = move || attack(address, &query, number, &stop);
            threads.push((name, std::thread::spawn(work)));
        }
    }
    Attacks { threads }
}

impl Attacks {
    /// Waits for all, and adds up what they were told.
    pub(super) fn join(self) -> Result<Vec<AttackFigures>, BenchError> {
        let mut figures: Vec<AttackFigures> = Vec::new();
        for (name, thread) in self.threads {
            let answers = thread.join().map_err(|_| BenchError::Thread)?;
            match figures.last_mut().filter(|last| last.name == name) {
                Some(last) => {
                    for (status, count) in answers {
                        *last.answers.entry(status).or_default() += count;
                    }
                }
                None => figures.push(AttackFigures {
                    name: name.to_owned(),
                    answers,
                }),
            }
        }
        Ok(figures)
    }
}

/// A request for a query, whose text is made another each time so that nothing remembers it.
pub(super) fn hostile_request(address: SocketAddr, query: &str, nonce: &str) -> Vec<u8> {
    let query = format!("{query} # {nonce}");
    format!(
        "POST /sparql?timeout={TIMEOUT_SECONDS} HTTP/1.1\r\nHost: {address}\r\n\
         Content-Type: application/sparql-query\r\nContent-Length: {}\r\n\r\n{query}",
        query.len()
    )
    .into_bytes()
}

fn attack(
    address: SocketAddr,
    query: &str,
    client: usize,
    stop: &AtomicBool,
) -> BTreeMap<String, u64> {
    let mut answers = BTreeMap::new();
    let mut number = 0_u64;
    while !stop.load(Relaxed) {
        number += 1;
        let request = hostile_request(address, query, &format!("{client} {number}"));
        let begun = Instant::now();
        let told = match exchange(address, &request, stop) {
            Ok(Some(status)) => status.to_string(),
            // Given up because the measurement is over.
            Ok(None) => break,
            Err(_) => "cut".to_owned(),
        };
        *answers.entry(told).or_default() += 1;
        std::thread::sleep(PAUSE.saturating_sub(begun.elapsed()));
    }
    answers
}

/// How often a client that waits looks whether it should go on.
const LOOK: Duration = Duration::from_millis(200);

/// Sends a request and reads its answer; `None` when told to stop before that.
fn exchange(
    address: SocketAddr,
    request: &[u8],
    stop: &AtomicBool,
) -> Result<Option<u16>, HttpError> {
    let mut connection = Connection::open(address)?;
    connection.send(request)?;
    if !connection.wait_for_answer(LOOK, || !stop.load(Relaxed))? {
        return Ok(None);
    }
    connection.receive(|_| ()).map(|answer| Some(answer.status))
}
