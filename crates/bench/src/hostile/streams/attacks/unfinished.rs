//! Producers that send half of a body, and then nothing: their connections stay.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::{Ground, line, made};
use crate::BenchError;
use crate::hostile::streams::client::{Client, LINES, Told};

/// Bytes that a body is said to have, of which half is sent.
const BODY_BYTES: usize = 4 << 20;
/// How long a producer waits for the server to take what it sends.
const TAKEN_WITHIN: Duration = Duration::from_millis(500);
/// How long an answer that is on its way takes.
const LOOK: Duration = Duration::from_millis(10);

pub(super) fn run(ground: &Ground) -> Result<Told, BenchError> {
    let mut client = Client::new(ground.address);
    let mut told = Told::default();
    made(&mut client, "half", "")?;
    let begun = Instant::now();
    let half: Vec<u8> = line(1, 1)
        .into_bytes()
        .into_iter()
        .cycle()
        .take(BODY_BYTES / 2)
        .collect();
    let mut held: Vec<TcpStream> = Vec::new();
    for _ in 0..ground.clients {
        match begin(ground, &half) {
            Ok(stream) => held.push(stream),
            Err(_) => told.count("no connection"),
        }
    }
    // Others are answered meanwhile, or told why not.
    let mut tuple = 0;
    while begun.elapsed() < ground.length {
        tuple += 1;
        let answer = client.push("half", &line(tuple, tuple))?;
        told.expect("a short push beside", &[200], &answer);
        std::thread::sleep(LOOK);
    }
    for mut stream in held {
        let mut answer = [0; 512];
        let _ = stream.set_read_timeout(Some(LOOK));
        match stream.read(&mut answer) {
            Ok(0) => told.count("closed"),
            Ok(read) => {
                let text = String::from_utf8_lossy(&answer[..read]).into_owned();
                told.count(text.get(9..12).unwrap_or("?"));
            }
            Err(error) if is_silent(error.kind()) => told.count("held"),
            Err(_) => told.count("cut"),
        }
    }
    told.expect("dropping", &[204], &client.delete("/streams/half")?);
    Ok(told)
}

fn is_silent(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

fn begin(ground: &Ground, half: &[u8]) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(ground.address)?;
    stream.set_write_timeout(Some(TAKEN_WITHIN))?;
    let head = format!(
        "POST /streams/half HTTP/1.1\r\nHost: {}\r\nContent-Type: {LINES}\r\n\
         Content-Length: {BODY_BYTES}\r\n\r\n",
        ground.address
    );
    stream.write_all(head.as_bytes())?;
    // One that is refused hears so later.
    let _ = stream.write_all(half);
    Ok(stream)
}
