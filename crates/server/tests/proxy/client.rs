//! A proxy at a port of its own, and a client that hides nothing of the protocol.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use jindou_server::{Proxy, ProxyConfig};
use tokio::sync::oneshot;

use crate::node::{Node, PATIENCE};

/// A proxy that ends when this is dropped.
pub(crate) struct Proxied {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Proxied {
    /// One that was started with all of these nodes.
    pub(crate) fn before(nodes: &[&Node]) -> Self {
        let urls: Vec<String> = nodes.iter().map(|node| node.url()).collect();
        Self::with(&urls, |_| {})
    }

    pub(crate) fn with(urls: &[String], configure: impl FnOnce(&mut ProxyConfig)) -> Self {
        let mut config = ProxyConfig {
            address: ([127, 0, 0, 1], 0).into(),
            nodes: urls.iter().map(|url| url.parse().expect("a URL")).collect(),
            shutdown_grace: Duration::ZERO,
            ..ProxyConfig::default()
        };
        configure(&mut config);
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let proxy = Proxy::new(config);
                let listener = proxy.bind().expect("a free port");
                proxy.until_asked().await;
                tell.send(listener.local_addr().expect("bound"))
                    .expect("awaited");
                proxy.serve(listener, async { drop(stopped.await) }).await;
            });
        });
        Self {
            address: told.recv().expect("it serves"),
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("it is open");
        stream
    }

    /// Sends a request, and reads the answer to its end.
    #[track_caller]
    pub(crate) fn send(&self, request: impl AsRef<[u8]>) -> Answer {
        let mut stream = self.connect();
        stream.write_all(request.as_ref()).expect("it reads");
        let mut reader = BufReader::new(stream);
        let mut answer = read_head(&mut reader).expect("there is an answer");
        answer.is_whole = read_body(&mut reader, &mut answer).is_some();
        answer
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: db.example\r\n\r\n"))
    }

    #[track_caller]
    pub(crate) fn query(&self, text: &str) -> Answer {
        self.post("/query", "application/sparql-query", text)
    }

    #[track_caller]
    pub(crate) fn update(&self, text: &str) -> Answer {
        self.post("/update", "application/sparql-update", text)
    }

    #[track_caller]
    pub(crate) fn post(&self, path: &str, kind: &str, body: &str) -> Answer {
        self.send(post(path, &format!("Content-Type: {kind}\r\n"), body))
    }

    /// The lines of `/metrics` that begin so.
    pub(crate) fn metrics(&self, beginning: &str) -> Vec<String> {
        let text = self.get("/metrics").text();
        let lines = text.lines().filter(|line| line.starts_with(beginning));
        lines.map(str::to_owned).collect()
    }

    /// Waits until it says of itself what is wanted.
    #[track_caller]
    pub(crate) fn wait_for_metric(&self, line: &str) {
        let begun = std::time::Instant::now();
        while !self.metrics(line).iter().any(|told| told == line) {
            assert!(
                begun.elapsed() < PATIENCE,
                "{line} in {:?}",
                self.metrics("jindou")
            );
            std::thread::yield_now();
        }
    }
}

impl Drop for Proxied {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            ended.expect("it was started").expect("it does not panic");
        }
    }
}

pub(crate) fn post(path: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: db.example\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    )
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// With names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) is_whole: bool,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(one, _)| one == name);
        found.next().map(|(_, value)| &**value)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

pub(crate) fn read_head(reader: &mut BufReader<TcpStream>) -> Option<Answer> {
    let mut line = String::new();
    reader
        .read_line(&mut line)
        .ok()
        .filter(|&bytes| bytes > 0)?;
    let status = line.split(' ').nth(1)?.parse().ok()?;
    let mut answer = Answer {
        status,
        ..Answer::default()
    };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim_end();
        if line.is_empty() && status == 100 {
            return read_head(reader);
        }
        if line.is_empty() {
            return Some(answer);
        }
        let (name, value) = line.split_once(": ")?;
        answer.headers.push((name.to_lowercase(), value.to_owned()));
    }
}

/// None where it ends before its end.
pub(crate) fn read_body(reader: &mut BufReader<TcpStream>, answer: &mut Answer) -> Option<()> {
    if answer.header("transfer-encoding") == Some("chunked") {
        while let Some(chunk) = read_chunk(reader)? {
            answer.body.extend_from_slice(&chunk);
        }
        return Some(());
    }
    let length = answer
        .header("content-length")
        .map_or(0, |length| length.parse().unwrap_or(0));
    let mut body = vec![0; length];
    let read = reader.read_exact(&mut body);
    answer.body = body;
    read.ok()
}

/// The next chunk; none of it where it is the last, and none at all where the connection ended.
pub(crate) fn read_chunk(reader: &mut BufReader<TcpStream>) -> Option<Option<Vec<u8>>> {
    let mut size = String::new();
    reader.read_line(&mut size).ok()?;
    let size = usize::from_str_radix(size.trim(), 16).ok()?;
    let mut chunk = vec![0; size + 2];
    reader.read_exact(&mut chunk).ok()?;
    chunk.truncate(size);
    Some((size > 0).then_some(chunk))
}
