//! A node that does what a test says: it answers `/cluster` as it is told to, and all else by a function.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// How long anything is waited for that is to happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A request as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    /// With names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(one, _)| one == name);
        found.next().map(|(_, value)| &**value)
    }
}

/// What a node does with a request.
pub(crate) enum Reply {
    /// Sends these bytes, and goes on with the connection.
    Bytes(Vec<u8>),
    /// Sends these bytes and ends the connection.
    End(Vec<u8>),
    /// Sends these bytes and resets the connection.
    Reset(Vec<u8>),
    /// Sends a head, and each part once it comes; ends the connection with the last.
    Parts(Vec<u8>, Receiver<Vec<u8>>),
    /// Sends bytes and hands the connection over.
    Take(Vec<u8>, Box<dyn FnOnce(TcpStream) + Send>),
}

/// An answer with a length.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> Reply {
    let length = body.len();
    let text = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{headers}\r\n{body}");
    Reply::Bytes(text.into_bytes())
}

type Script = dyn Fn(&Asked) -> Reply + Send + Sync;

struct Shared {
    /// What it says at `/cluster`, if it answers there.
    cluster: Mutex<Option<String>>,
    script: Box<Script>,
    /// Whether it answers by the head of a request, without its body.
    by_head: bool,
    asked: Mutex<Vec<Asked>>,
    /// How it was asked for `/cluster` last.
    asked_how: Mutex<Asked>,
    changed: Condvar,
    is_stopped: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

pub(crate) struct Node {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

impl Node {
    pub(crate) fn new(script: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self::start(Box::new(script), false)
    }

    /// One that answers without reading what a request brings.
    pub(crate) fn by_head(script: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self::start(Box::new(script), true)
    }

    fn start(script: Box<Script>, by_head: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared {
            cluster: Mutex::default(),
            script,
            by_head,
            asked: Mutex::default(),
            asked_how: Mutex::default(),
            changed: Condvar::new(),
            is_stopped: AtomicBool::new(false),
            open: Mutex::default(),
        });
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if serving.is_stopped.load(SeqCst) {
                    return;
                }
                let stream = stream.expect("a connection");
                let kept = stream.try_clone().expect("it is open");
                serving.open.lock().unwrap().push(kept);
                let serving = Arc::clone(&serving);
                thread::spawn(move || serving.serve(stream));
            }
        });
        Self { address, shared }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on it says this at `/cluster`.
    pub(crate) fn says(&self, told: impl Into<String>) {
        *self.shared.cluster.lock().unwrap() = Some(told.into());
    }

    /// All that it was asked but `/cluster`.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// How it was asked for `/cluster` last.
    pub(crate) fn asked_how(&self) -> Asked {
        self.shared.asked_how.lock().unwrap().clone()
    }

    /// Waits until it was asked so often.
    #[track_caller]
    pub(crate) fn wait_until_asked(&self, count: usize) {
        let asked = self.shared.asked.lock().unwrap();
        let waited = self
            .shared
            .changed
            .wait_timeout_while(asked, PATIENCE, |asked| asked.len() < count);
        let (asked, waited) = waited.unwrap();
        assert!(!waited.timed_out(), "{asked:?}");
    }

    /// Ends all connections, and takes no more.
    pub(crate) fn stop(&self) {
        self.shared.is_stopped.store(true, SeqCst);
        // Its listener goes once it sees that.
        let _woken = TcpStream::connect(self.address);
        for stream in self.shared.open.lock().unwrap().drain(..) {
            let _closed = stream.shutdown(Shutdown::Both);
        }
        while TcpStream::connect(self.address).is_ok() {
            thread::yield_now();
        }
    }
}

impl Shared {
    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream);
        while let Some(mut asked) = read_head(&mut reader) {
            if asked.path == "/cluster" && asked.method == "GET" {
                *self.asked_how.lock().unwrap() = asked;
                let told = self.cluster.lock().unwrap().clone();
                let reply = match told {
                    Some(told) => answer("200 OK", "", &told),
                    None => answer("404 Not Found", "", ""),
                };
                if !self.reply(&mut reader, reply) {
                    return;
                }
                continue;
            }
            if !self.by_head {
                if asked.header("expect").is_some() {
                    let go_on = b"HTTP/1.1 100 Continue\r\n\r\n";
                    reader.get_mut().write_all(go_on).expect("it waits");
                }
                if read_body(&mut reader, &mut asked).is_none() {
                    return;
                }
            }
            let reply = (self.script)(&asked);
            self.asked.lock().unwrap().push(asked);
            self.changed.notify_all();
            if !self.reply(&mut reader, reply) {
                return;
            }
            if self.by_head {
                let _closed = reader.get_ref().shutdown(Shutdown::Both);
                return;
            }
        }
    }

    /// False where the connection is over.
    fn reply(&self, reader: &mut BufReader<TcpStream>, reply: Reply) -> bool {
        let stream = reader.get_mut();
        match reply {
            Reply::Bytes(bytes) => stream.write_all(&bytes).is_ok(),
            Reply::End(bytes) => {
                let _sent = stream.write_all(&bytes);
                let _closed = stream.shutdown(Shutdown::Both);
                false
            }
            Reply::Reset(bytes) => {
                let _sent = stream.write_all(&bytes);
                socket2::SockRef::from(&*stream)
                    .set_linger(Some(Duration::ZERO))
                    .expect("it can be reset");
                // The other handle, which a stop would use.
                let address = stream.peer_addr().ok();
                let mut open = self.open.lock().unwrap();
                open.retain(|one| one.peer_addr().ok() != address);
                false
            }
            Reply::Parts(head, parts) => {
                let mut is_open = stream.write_all(&head).is_ok();
                while let Ok(part) = parts.recv() {
                    is_open = is_open && stream.write_all(&part).is_ok();
                }
                let _closed = stream.shutdown(Shutdown::Both);
                false
            }
            Reply::Take(bytes, take) => {
                if stream.write_all(&bytes).is_ok() {
                    take(stream.try_clone().expect("it is open"));
                }
                let _closed = stream.shutdown(Shutdown::Both);
                false
            }
        }
    }
}

fn read_head(reader: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    reader
        .read_line(&mut line)
        .ok()
        .filter(|&bytes| bytes > 0)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let mut asked = Asked {
        method: words.next()?,
        path: words.next()?,
        ..Asked::default()
    };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim_end();
        if line.is_empty() {
            return Some(asked);
        }
        let (name, value) = line.split_once(": ")?;
        asked.headers.push((name.to_lowercase(), value.to_owned()));
    }
}

fn read_body(reader: &mut BufReader<TcpStream>, asked: &mut Asked) -> Option<()> {
    if asked.header("transfer-encoding") == Some("chunked") {
        loop {
            let mut size = String::new();
            reader.read_line(&mut size).ok()?;
            let size = usize::from_str_radix(size.trim(), 16).ok()?;
            let mut chunk = vec![0; size + 2];
            reader.read_exact(&mut chunk).ok()?;
            if size == 0 {
                return Some(());
            }
            asked.body.extend_from_slice(&chunk[..size]);
        }
    }
    let length = asked
        .header("content-length")
        .map_or(0, |length| length.parse().unwrap_or(0));
    asked.body = vec![0; length];
    reader.read_exact(&mut asked.body).ok()
}

/// What a node says of its cluster: who it is, who leads, whom that waits for, and where all are.
pub(crate) fn told(name: &str, leader: &str, in_sync: &[&str], nodes: &[(&str, String)]) -> String {
    let quoted = |names: &[&str]| {
        let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
        quoted.join(",")
    };
    let nodes: Vec<String> = nodes
        .iter()
        .map(|(name, http)| format!(r#"{{"name":"{name}","http":"{http}"}}"#))
        .collect();
    let rest = match name == leader {
        true => r#""followers":[]"#,
        false => r#""is_led":true"#,
    };
    format!(
        r#"{{"node":"{name}","copy":{{"leader":"{leader}","term":1,"in_sync":[{}],{rest}}},"nodes":[{}]}}"#,
        quoted(in_sync),
        nodes.join(",")
    )
}
