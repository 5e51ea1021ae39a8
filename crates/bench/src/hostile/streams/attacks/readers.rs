//! Consumers that ask for results, by events and by WebSockets, and never read any.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::{Ground, line, made};
use crate::BenchError;
use crate::hostile::streams::client::{Answer, Client, Told, socket};

/// Tuples of a batch, all of which each result has.
const TUPLES: u64 = 2_000;
/// From one batch to the next: it is not the flood that hurts.
const PACE: Duration = Duration::from_millis(50);

pub(super) fn run(ground: &Ground) -> Result<Told, BenchError> {
    let mut client = Client::new(ground.address);
    let mut told = Told::default();
    made(&mut client, "loud", "")?;
    let text =
        "SELECT ?x ?y FROM STREAM <http://e/loud> [RANGE 100ms] WHERE { ?x <http://e/p> ?y }";
    told.expect("registering", &[201], &client.register("loud", text)?);
    let mut held: Vec<TcpStream> = Vec::new();
    for number in 0..ground.clients {
        let asked = match number % 2 {
            0 => events(ground),
            _ => socket(ground.address, "/continuous/loud/results?after=0"),
        };
        match asked {
            Ok(Ok(stream)) => {
                told.count("readers");
                held.push(stream);
            }
            Ok(Err(refused)) => told.expect("one reader more", &[503], &refused),
            Err(_) => told.count("no connection"),
        }
    }
    let begun = Instant::now();
    let mut time_ms = 0;
    while begun.elapsed() < ground.length {
        let at = Instant::now();
        time_ms += 100;
        let lines: String = (0..TUPLES).map(|tuple| line(time_ms, tuple)).collect();
        told.expect("a push", &[200], &client.push("loud", &lines)?);
        std::thread::sleep(PACE.saturating_sub(at.elapsed()));
    }
    drop(held);
    told.expect("dropping", &[204], &client.delete("/continuous/loud")?);
    told.expect("dropping", &[204], &client.delete("/streams/loud")?);
    Ok(told)
}

/// Asks for events, and reads no more than how the answer begins.
fn events(ground: &Ground) -> std::io::Result<Result<TcpStream, Answer>> {
    let mut stream = TcpStream::connect(ground.address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let head = format!(
        "GET /continuous/loud/results?after=0 HTTP/1.1\r\nHost: {}\r\n\r\n",
        ground.address
    );
    stream.write_all(head.as_bytes())?;
    let mut begin = [0; 12];
    stream.read_exact(&mut begin)?;
    if begin.ends_with(b"200") {
        return Ok(Ok(stream));
    }
    let mut rest = [0; 2048];
    let read = stream.read(&mut rest)?;
    let text = String::from_utf8_lossy(&rest[..read]).into_owned();
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let status = String::from_utf8_lossy(&begin[9..]).parse().unwrap_or(0);
    Ok(Err(Answer {
        status,
        body: body.to_owned(),
    }))
}
