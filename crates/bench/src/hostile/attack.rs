//! Which requests try to take the server down?

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

/// The name of the kind that a request is of, by the text that the server shows of it.
pub(super) fn name_of(shown: &str) -> &'static str {
    let kinds = kinds().into_iter();
    let mut same = kinds.filter(|kind| match &kind.sent {
        Sent::Query(text) | Sent::Update(text) => {
            shown.starts_with(&text[..text.len().min(SHOWN_BYTES)])
        }
        Sent::Document { .. } => false,
    });
    same.next().map_or("another client's", |kind| kind.name)
}

/// Length of the prefix, in bytes, that identifies a request's kind.
const SHOWN_BYTES: usize = 1024;

/// What one kind of client sends again and again.
#[derive(Clone)]
struct Attack {
    name: &'static str,
    sent: Sent,
}

#[derive(Clone)]
enum Sent {
    Query(String),
    /// Refused as a whole, or replacing what it wrote before: the data stays as large as it is.
    Update(String),
    /// PUT as a graph of its own; its body is refused.
    Document {
        media_type: &'static str,
        body: String,
    },
}

/// Ends a transaction with 409: the second of these finds the graph of the first.
const CONFLICT: &str = "; CREATE GRAPH <http://e/twice> ; CREATE GRAPH <http://e/twice>";

/// All kinds.
fn kinds() -> Vec<Attack> {
    let queries = queries().into_iter().map(|(name, text)| Attack {
        name,
        sent: Sent::Query(text),
    });
    let updates = updates().into_iter().map(|(name, text)| Attack {
        name,
        sent: Sent::Update(text),
    });
    queries.chain(updates).chain(documents()).collect()
}

fn queries() -> Vec<(&'static str, String)> {
    let nested = |count| format!("{}1{}", "(".repeat(count), ")".repeat(count));
    let numbered =
        |count: usize, part: &dyn Fn(usize) -> String| -> String { (0..count).map(part).collect() };
    let values = numbered(10_000, &|n| format!("<http://e/{n}> "));
    let optionals = numbered(400, &|n| format!("OPTIONAL {{ ?s ?p{n} ?v{n} }} "));
    let columns = numbered(60_000, &|n| format!("(1 AS ?x{n}) "));
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
        (
            "400 OPTIONALs",
            format!("SELECT * {{ ?s a ?type {optionals}}} LIMIT 1"),
        ),
        ("60,000 columns", format!("SELECT {columns}{{}}")),
        (
            "computed patterns",
            "SELECT (COUNT(*) AS ?n) { ?s ?p ?o \
             FILTER(REGEX(STR(?o), CONCAT(\"(a{1,50}){1,50}\", STR(?s)))) }"
                .to_owned(),
        ),
    ]
}

fn updates() -> Vec<(&'static str, String)> {
    let integers: String = (0..400_000).map(|n| format!("{n} ")).collect();
    let refused = |data: &str| format!("INSERT DATA {{ {data} }} {CONFLICT}");
    vec![
        (
            "a long list, refused",
            refused(&format!("<http://e/s> <http://e/p> ({integers})")),
        ),
        (
            "a million blank nodes, refused",
            refused(&format!(
                "<http://e/s> <http://e/p> {}[]",
                "[],".repeat(1_000_000)
            )),
        ),
        (
            "new terms, refused",
            refused(&format!(
                "<http://e/s> <http://e/p> \"{}\"",
                "text ".repeat(1 << 20)
            )),
        ),
        (
            "a literal replaced",
            format!(
                "DELETE WHERE {{ <http://e/replaced> <http://e/p> ?o }} ; \
                 INSERT {{ <http://e/replaced> <http://e/p> ?text }} \
                 WHERE {{ BIND(CONCAT(STR(UUID()), \"{}\") AS ?text) }}",
                "text ".repeat(4_096)
            ),
        ),
    ]
}

fn documents() -> Vec<Attack> {
    let chain: String = (0..2_000)
        .map(|n| format!("\"t{n}\":\"t{}:x\",", n + 1))
        .collect();
    let attributes: String = (0..300_000).map(|n| format!(" a:b{n}=\"\"")).collect();
    let document = |name, media_type, body| Attack {
        name,
        sent: Sent::Document { media_type, body },
    };
    vec![
        document(
            "JSON-LD, a chain of terms",
            "application/ld+json",
            format!("{{\"@context\":{{{chain}\"z\":\"http://e/\"}},\"t0:a\":1}}"),
        ),
        document(
            "JSON-LD, nested",
            "application/ld+json",
            format!("{}1{}", "{\"@graph\":[".repeat(20_000), "]}".repeat(20_000)),
        ),
        document(
            "RDF/XML, 300,000 attributes",
            "application/rdf+xml",
            format!(
                "<r:RDF xmlns:r=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" \
                 xmlns:a=\"http://e/\"><r:Description{attributes}/>"
            ),
        ),
        document(
            "Turtle, a long list without its end",
            "text/turtle",
            format!("<http://e/s> <http://e/p> ({}", "1 ".repeat(2 << 20)),
        ),
    ]
}

/// Clients under way.
pub(super) struct Attacks {
    threads: Vec<(&'static str, JoinHandle<BTreeMap<String, u64>>)>,
}

/// Lets all others have the cores first: clients who mean harm have machines of their own, and the
/// light ones that are measured shall not wait for what these take to send.
pub(super) fn give_way() {
    jindou_server::HeavyPriority::Idle.take();
}

/// Starts clients that send these queries again and again until told to stop.
pub(super) fn start(address: SocketAddr, stop: &Arc<AtomicBool>) -> Attacks {
    let mut threads = Vec::new();
    for kind in kinds() {
        for number in 0..EACH {
            let (sent, stop) = (kind.sent.clone(), Arc::clone(stop));
            let work = move || {
                give_way();
                attack(address, &sent, number, &stop)
            };
            threads.push((kind.name, std::thread::spawn(work)));
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
    let sent = Sent::Query(query.to_owned());
    sent.request(address, nonce)
}

impl Sent {
    fn request(&self, address: SocketAddr, nonce: &str) -> Vec<u8> {
        let limited = |path| format!("POST {path}?timeout={TIMEOUT_SECONDS}");
        let (line, media_type, text) = match self {
            Self::Query(text) => (limited("/sparql"), "application/sparql-query", text),
            Self::Update(text) => (limited("/update"), "application/sparql-update", text),
            Self::Document { media_type, body } => {
                let line = "PUT /store?graph=http://e/refused".to_owned();
                (line, *media_type, body)
            }
        };
        let note = match self {
            Self::Query(_) | Self::Update(_) => format!(" # {nonce}"),
            Self::Document { .. } => String::new(),
        };
        format!(
            "{line} HTTP/1.1\r\nHost: {address}\r\nContent-Type: {media_type}\r\n\
             Content-Length: {}\r\n\r\n{text}{note}",
            text.len() + note.len()
        )
        .into_bytes()
    }
}

fn attack(
    address: SocketAddr,
    sent: &Sent,
    client: usize,
    stop: &AtomicBool,
) -> BTreeMap<String, u64> {
    let mut answers = BTreeMap::new();
    let mut number = 0_u64;
    while !stop.load(Relaxed) {
        number += 1;
        let request = sent.request(address, &format!("{client} {number}"));
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
