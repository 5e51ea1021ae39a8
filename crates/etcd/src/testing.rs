//! What does a server answer that is not well?
//!
//! A server for tests: it answers each request as it is told, breaks off where it is told, and says what it
//! was asked.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::{Client, Options};

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a request is answered with.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// A success with a body.
    Json(String),
    /// A status and a body.
    Status(u16, String),
    /// These bytes, and then the connection ends.
    Raw(Vec<u8>),
    /// These bytes, and then nothing more; the connection stays.
    Held(Vec<u8>),
}

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) body: String,
    /// In lower case.
    pub(crate) headers: String,
}

/// A server that ends when it is dropped.
pub(crate) struct Fake {
    state: Arc<State>,
    port: u16,
    thread: Option<JoinHandle<()>>,
}

struct State {
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Default)]
struct Inner {
    /// What comes next; the last one stays.
    replies: VecDeque<Reply>,
    asked: Vec<Asked>,
    connections: Vec<TcpStream>,
    /// Connections whose client has gone.
    ended: usize,
    is_over: bool,
}

/// A success with a body in pieces, as a stream begins: what may come after it is not there yet.
pub(crate) fn streamed(lines: &[&str]) -> Vec<u8> {
    let mut bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for line in lines {
        let size = line.len() + 1;
        bytes.extend(format!("{size:x}\r\n{line}\n\r\n").into_bytes());
    }
    bytes
}

impl Fake {
    /// A server that gives these replies, one after the other, and then the last one forever.
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let inner = Inner {
            replies: replies.into_iter().collect(),
            ..Inner::default()
        };
        let state = Arc::new(State {
            inner: Mutex::new(inner),
            changed: Condvar::new(),
        });
        let thread = {
            let state = Arc::clone(&state);
            thread::spawn(move || state.accept(&listener))
        };
        Self {
            state,
            port,
            thread: Some(thread),
        }
    }

    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What was asked up to now.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.state.inner.lock().asked.clone()
    }

    /// Waits until so much was asked.
    pub(crate) fn wait_asked(&self, count: usize) {
        self.wait_for("requests", |inner| inner.asked.len() >= count);
    }

    /// Waits until the client has closed so many connections.
    pub(crate) fn wait_ended(&self, count: usize) {
        self.wait_for("ends of connections", |inner| inner.ended >= count);
    }

    fn wait_for(&self, what: &str, is_there: impl Fn(&Inner) -> bool) {
        let until = Instant::now() + PATIENCE;
        let mut inner = self.state.inner.lock();
        while !is_there(&inner) {
            let waited = self.state.changed.wait_until(&mut inner, until);
            assert!(!waited.timed_out(), "{what}: not within {PATIENCE:?}");
        }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let connections = {
            let mut inner = self.state.inner.lock();
            inner.is_over = true;
            std::mem::take(&mut inner.connections)
        };
        for connection in connections {
            let _gone = connection.shutdown(Shutdown::Both);
        }
        // Wakes the thread.
        let _gone = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the server did not panic");
        }
    }
}

impl State {
    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        let mut threads = Vec::new();
        for connection in listener.incoming() {
            let connection = connection.expect("a connection");
            let mut inner = self.inner.lock();
            if inner.is_over {
                break;
            }
            inner
                .connections
                .push(connection.try_clone().expect("a descriptor"));
            drop(inner);
            let state = Arc::clone(self);
            threads.push(thread::spawn(move || state.serve(&connection)));
        }
        for thread in threads {
            thread.join().expect("the server did not panic");
        }
    }

    fn serve(&self, connection: &TcpStream) {
        let mut reader = BufReader::new(connection);
        while let Some(asked) = read_request(&mut reader) {
            let reply = {
                let mut inner = self.inner.lock();
                inner.asked.push(asked);
                self.changed.notify_all();
                match inner.replies.len() {
                    1 => inner.replies[0].clone(),
                    _ => inner.replies.pop_front().expect("there is a reply"),
                }
            };
            let (bytes, is_held) = match reply {
                Reply::Json(body) => (response(200, &body), true),
                Reply::Status(status, body) => (response(status, &body), true),
                Reply::Raw(bytes) => (bytes, false),
                Reply::Held(bytes) => (bytes, true),
            };
            // The client may be gone.
            let sent = (&mut &*connection).write_all(&bytes);
            if !is_held || sent.is_err() {
                break;
            }
        }
        let _gone = connection.shutdown(Shutdown::Both);
        self.inner.lock().ended += 1;
        self.changed.notify_all();
    }
}

fn response(status: u16, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} Text\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
}

fn read_request(reader: &mut BufReader<&TcpStream>) -> Option<Asked> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let path = head.split(' ').nth(1)?.to_owned();
    let headers = head.to_lowercase();
    let length = headers.split("content-length: ").nth(1)?;
    let length = length.split("\r\n").next()?.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Asked {
        path,
        body: String::from_utf8(body).ok()?,
        headers,
    })
}

/// A port at which nobody listens.
pub(crate) fn closed_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// A client of these, for which an answer takes no longer than this.
pub(crate) fn client_of(endpoints: &[String], timeout: Duration) -> Client {
    let mut options = Options::new(endpoints.join(",").parse().expect("endpoints"));
    options.timeout = timeout;
    Client::new(options).expect("options")
}

/// A short time: for answers that never come.
pub(crate) const SOON: Duration = Duration::from_secs(1);
/// A long time: for answers that come.
pub(crate) const LONG: Duration = Duration::from_secs(20);
/// No test takes so long: for what has to end before its time.
pub(crate) const NEVER: Duration = Duration::from_secs(3600);
