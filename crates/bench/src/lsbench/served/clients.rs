//! How do many clients read results as they come, with little work beside the server's?
//!
//! One thread reads all connections. Requests are of HTTP/1.0, so that events come without chunks.

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::Named;
use crate::BenchError;
use crate::http::HttpError;

/// How long after the last push clients wait for the last result.
const LAST: Duration = Duration::from_secs(10);
/// Bytes of an event, at most.
const MOST_BYTES: usize = 16 << 20;

/// A result that was read.
#[derive(Debug)]
pub(super) struct Arrival {
    /// The number of the client.
    pub(super) reader: usize,
    pub(super) instant_ms: i64,
    /// Results before it that the client was too slow for.
    pub(super) missed: u64,
    pub(super) at: Instant,
}

/// Clients that read.
pub(super) struct Clients {
    stop: watch::Sender<bool>,
    thread: JoinHandle<Result<Vec<Arrival>, BenchError>>,
}

impl Clients {
    /// Has each query read by a client up to an instant, and waits until all have an answer.
    pub(super) fn connect(
        server: SocketAddr,
        queries: &[Named],
        last_ms: i64,
    ) -> Result<Self, BenchError> {
        let names: Vec<String> = queries.iter().map(|(_, name)| name.clone()).collect();
        let (stop, stopped) = watch::channel(false);
        let (ready, is_ready) = sync_channel(1);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let runtime = runtime.map_err(BenchError::io("the clients' event loop"))?;
            runtime.block_on(async {
                let mut tasks = Vec::new();
                for (number, name) in names.into_iter().enumerate() {
                    let reading = Reading::begin(server, &name, number).await?;
                    tasks.push(tokio::spawn(reading.read(last_ms, stopped.clone())));
                }
                // Whoever measures may be gone already.
                let _ = ready.send(());
                let mut all = Vec::new();
                for task in tasks {
                    all.extend(task.await.map_err(|_| BenchError::Thread)??);
                }
                Ok(all)
            })
        });
        let clients = Self { stop, thread };
        match wait(&is_ready) {
            true => Ok(clients),
            // It ended before: its own error says why.
            false => match clients.end() {
                Ok(_) => Err(BenchError::Thread),
                Err(error) => Err(error),
            },
        }
    }

    /// Waits until each has read its last result, for a while, and gives what was read.
    pub(super) fn end(self) -> Result<Vec<Arrival>, BenchError> {
        self.stop.send_replace(true);
        self.thread.join().map_err(|_| BenchError::Thread)?
    }
}

fn wait(ready: &Receiver<()>) -> bool {
    ready.recv().is_ok()
}

/// One client.
struct Reading {
    number: usize,
    stream: TcpStream,
    /// What was read of an event that is not whole.
    text: Vec<u8>,
}

impl Reading {
    async fn begin(server: SocketAddr, name: &str, number: usize) -> Result<Self, HttpError> {
        let mut stream = TcpStream::connect(server).await?;
        let request = format!(
            "GET /continuous/{name}/results HTTP/1.0\r\nHost: {server}\r\nAccept: text/event-stream\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut reading = Self {
            number,
            stream,
            text: Vec::new(),
        };
        let head = loop {
            if let Some(end) = memchr::memmem::find(&reading.text, b"\r\n\r\n") {
                break reading.text.drain(..end + 4).collect::<Vec<u8>>();
            }
            if reading.more().await? == 0 {
                return Err(HttpError::Malformed("a head that ends early"));
            }
        };
        match head.get(9..12) {
            Some(b"200") => Ok(reading),
            Some(status) => {
                let status = std::str::from_utf8(status)
                    .ok()
                    .and_then(|text| text.parse().ok());
                Err(HttpError::refused(status.unwrap_or(0), &reading.text))
            }
            None => Err(HttpError::Malformed("no status line")),
        }
    }

    async fn more(&mut self) -> Result<usize, HttpError> {
        if self.text.len() > MOST_BYTES {
            return Err(HttpError::Malformed("an event without an end"));
        }
        Ok(self.stream.read_buf(&mut self.text).await?)
    }

    /// Reads up to the result of an instant, or for a while after it is told to stop.
    async fn read(
        mut self,
        last_ms: i64,
        mut stopped: watch::Receiver<bool>,
    ) -> Result<Vec<Arrival>, BenchError> {
        let mut arrivals: Vec<Arrival> = Vec::new();
        let is_over = async move {
            // Whoever measures may be gone, which is a reason to stop as well.
            let _ = stopped.wait_for(|stops| *stops).await;
            tokio::time::sleep(LAST).await;
        };
        tokio::pin!(is_over);
        while arrivals.last().is_none_or(|last| last.instant_ms < last_ms) {
            let read = tokio::select! {
                read = self.more() => read?,
                () = &mut is_over => break,
            };
            if read == 0 {
                let early = io::Error::from(io::ErrorKind::UnexpectedEof);
                return Err(HttpError::Io(early).into());
            }
            self.take_events(&mut arrivals)?;
        }
        Ok(arrivals)
    }

    /// Takes the events that are whole.
    fn take_events(&mut self, arrivals: &mut Vec<Arrival>) -> Result<(), HttpError> {
        let at = Instant::now();
        while let Some(end) = memchr::memmem::find(&self.text, b"\n\n") {
            let event: Vec<u8> = self.text.drain(..end + 2).collect();
            if let Some((instant_ms, missed)) = parse(&event)? {
                arrivals.push(Arrival {
                    reader: self.number,
                    instant_ms,
                    missed,
                    at,
                });
            }
        }
        Ok(())
    }
}

/// The instant of an event, and how many were missed before it; `None` of a comment.
fn parse(event: &[u8]) -> Result<Option<(i64, u64)>, HttpError> {
    if event.starts_with(b":") {
        return Ok(None);
    }
    let text = std::str::from_utf8(event);
    let text = text.map_err(|_| HttpError::Malformed("an event that is no text"))?;
    if !text.starts_with("event: result\n") {
        return Err(HttpError::Malformed("an event that is no result"));
    }
    let id = text.lines().find_map(|line| line.strip_prefix("id: "));
    let instant = id.and_then(|id| id.split_once(':')?.0.parse().ok());
    let instant = instant.ok_or(HttpError::Malformed("an event without an id"))?;
    let missed = text.split_once("\"missed\":").map_or(0, |(_, rest)| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        rest[..digits].parse().unwrap_or(0)
    });
    Ok(Some((instant, missed)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_say_their_instant_and_what_was_missed() {
        let event =
            b"event: result\nid: 2000:2\ndata: {\"instant\":2000,\"missed\":17,\"x\":[]}\n\n";
        assert_eq!(parse(event).unwrap(), Some((2000, 17)));
        assert_eq!(parse(b": \n\n").unwrap(), None);
        for wrong in [
            &b"event: error\nid: 1:1\ndata: {}\n\n"[..],
            b"event: result\n\n",
        ] {
            assert!(parse(wrong).is_err());
        }
    }
}
