//! What do concurrent clients hear of a server, and does that keep to a level?
//!
//! `cargo run -p jindou-history --example record -- 127.0.0.1:7878 SEED` runs the workload against the SPARQL endpoint of an
//! empty store, by a few clients at once, and prints the report. It refuses a store that has something: values would come
//! twice, and the store may be somebody's. HTTP by hand, as that is all it takes.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jindou_history::workload::{
    Answered, DecodeError, Family, Mix, Request, Sighting, Workload, WorkloadConfig, learn, setup,
};
use jindou_history::{Check, Kind, Level, Operation, Outcome, check};

const CLIENTS: u32 = 8;
const OPERATIONS_EACH: usize = 150;
const TIMEOUT: Duration = Duration::from_secs(10);

/// What a server answered.
struct Answer {
    status: u16,
    /// The number of the snapshot that an update made, or a query read, where the server says it.
    snapshot: Option<u64>,
    text: String,
}

/// Asks one request on a connection of its own.
fn post(address: &str, is_update: bool, body: &str) -> std::io::Result<Answer> {
    let mut connection = TcpStream::connect(address)?;
    connection.set_read_timeout(Some(TIMEOUT))?;
    let (path, media_type) = match is_update {
        true => ("update", "application/sparql-update"),
        false => ("query", "application/sparql-query"),
    };
    let request = format!(
        "POST /{path} HTTP/1.0\r\nHost: {address}\r\nContent-Type: {media_type}\r\n\
         Accept: application/sparql-results+json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    connection.write_all(request.as_bytes())?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    let cut = || std::io::Error::other("the answer was cut");
    let (head, text) = answer.split_once("\r\n\r\n").ok_or_else(cut)?;
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    let snapshot = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_it = name.eq_ignore_ascii_case("jindou-snapshot");
        value.trim().parse().ok().filter(|_| is_it)
    });
    Ok(Answer {
        status: status.ok_or_else(cut)?,
        snapshot,
        text: text.to_owned(),
    })
}

/// What all clients write down.
struct Record {
    start: Instant,
    contradictions: AtomicU64,
    history: Mutex<Vec<Operation>>,
    sightings: Mutex<Vec<Sighting>>,
}

impl Record {
    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn note(&self, answered: Answered) -> Kind {
        for contradiction in &answered.contradictions {
            println!("{contradiction}");
            self.contradictions.fetch_add(1, Ordering::Relaxed);
        }
        let mut sightings = self.sightings.lock().expect("no client panicked");
        sightings.extend(answered.sightings);
        answered.kind
    }

    fn ask(&self, address: &str, client: u32, request: Request) {
        let begun = self.now();
        let answer = post(address, request.is_update(), &request.text());
        let ended = Some(self.now());
        let snapshot = answer.as_ref().map_or(None, |answer| answer.snapshot);
        let done = Outcome::Done { snapshot };
        let (kind, outcome) = match answer {
            Ok(answer) if answer.status < 300 && request.is_update() => (request.into_kind(), done),
            Ok(answer) if answer.status < 300 => match request.answered(&answer.text) {
                Ok(answered) => (self.note(answered), done),
                // A server that ends while it answers cuts the answer.
                Err(DecodeError::Json(_)) => (request.into_kind(), Outcome::Unknown),
                Err(error) => panic!("{error}: {}", answer.text),
            },
            // The request was refused; any other status may come after the update was made.
            Ok(Answer { status, text, .. }) if status < 500 => {
                println!("{status}: {text}");
                (request.into_kind(), Outcome::Failed)
            }
            _ => (request.into_kind(), Outcome::Unknown),
        };
        let operation = Operation {
            client,
            begun,
            ended,
            kind,
            outcome,
        };
        self.history
            .lock()
            .expect("no client panicked")
            .push(operation);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().ok_or("an address and a port")?;
    let seed = arguments.next().map_or(Ok(0), |seed| seed.parse())?;
    let anything = "SELECT * { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } } LIMIT 1";
    let found: serde_json::Value = serde_json::from_str(&post(&address, false, anything)?.text)?;
    let rows = found
        .pointer("/results/bindings")
        .and_then(|rows| rows.as_array());
    if !rows.is_some_and(Vec::is_empty) {
        return Err("the store is not empty".into());
    }
    for (mix, family) in [
        (Mix::LISTS, Family::List),
        (Mix::REGISTERS, Family::Register),
    ] {
        let prepared = post(&address, true, &setup(family, 64, 0))?;
        assert!(
            prepared.status < 300,
            "{}: {}",
            prepared.status,
            prepared.text
        );
        let config = WorkloadConfig {
            keys: 8,
            writes_per_key: 40,
            keys_per_operation: 4,
            mix,
        };
        run(&address, seed, config)?;
    }
    Ok(())
}

fn run(address: &str, seed: u64, config: WorkloadConfig) -> Result<(), Box<dyn std::error::Error>> {
    let is_lists = config.mix == Mix::LISTS;
    let workload = Mutex::new(Workload::new(seed, config));
    let record = Record {
        start: Instant::now(),
        contradictions: AtomicU64::new(0),
        history: Mutex::new(Vec::new()),
        sightings: Mutex::new(Vec::new()),
    };
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (record, workload) = (&record, &workload);
            scope.spawn(move || {
                for _ in 0..OPERATIONS_EACH {
                    let request = workload.lock().expect("no client panicked").request();
                    record.ask(address, client, request);
                }
            });
        }
    });
    let finals_from = record.now();
    for request in workload.into_inner()?.finals() {
        record.ask(address, CLIENTS, request);
    }
    let contradictions = record.contradictions.load(Ordering::Relaxed);
    let (mut history, sightings) = (record.history.into_inner()?, record.sightings.into_inner()?);
    let learned = match is_lists {
        true => learn(&mut history, &sightings, &[]),
        false => learn(&mut history, &[], &sightings),
    };
    let mut wanted = Check::new(Level::StrictSerializable);
    wanted.finals_from = Some(finals_from);
    let report = check(&history, &wanted)?;
    print!("seed {seed}: {}", report.explain(&history));
    println!(
        "{contradictions} contradictions; {learned} updates tell what they read; {:?}",
        report.sizes
    );
    Ok(())
}
