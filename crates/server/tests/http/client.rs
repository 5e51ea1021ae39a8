//! A server on a socket of its own, and a client that hides nothing of the protocol.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jindou_engine::ingest::{Progress, Source};
use jindou_engine::{Config, Database};
use jindou_server::{AccessPolicy, Role, Server, ServerConfig};
use tokio::sync::oneshot;

/// Triples `http://e/s0..` with `http://e/p` to `http://e/o0..`.
pub(crate) const TRIPLES: usize = 300;

/// The data set of all tests: [`TRIPLES`] triples, three more with literals, and one in the named
/// graph `http://e/g`.
fn database(engine: Config) -> Database {
    let mut data = String::new();
    for n in 0..TRIPLES {
        data.push_str(&format!("<http://e/s{n}> <http://e/p> <http://e/o{n}> .\n"));
    }
    data.push_str(concat!(
        "<http://e/x> <http://e/name> \"Ann \\\"A\\\"\"@en .\n",
        "<http://e/x> <http://e/age> \"7\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n",
        "<http://e/x> <http://e/odd> \"a\\u0001b\" .\n",
        "<http://e/y> <http://e/in> \"graph\" <http://e/g> .\n",
    ));
    let database = Database::with_config(engine);
    let sources = vec![Source::bytes("data.nq", data.into_bytes())];
    database
        .load(sources, &Default::default(), &Progress::default())
        .expect("valid data is loaded");
    database
}

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(configure: impl FnOnce(&mut ServerConfig)) -> Self {
        Self::with_engine(Config::default(), configure)
    }

    pub(crate) fn with_engine(engine: Config, configure: impl FnOnce(&mut ServerConfig)) -> Self {
        Self::with_database(database(engine), configure)
    }

    pub(crate) fn with_database(
        database: Database,
        configure: impl FnOnce(&mut ServerConfig),
    ) -> Self {
        let mut config = ServerConfig {
            address: ([127, 0, 0, 1], 0).into(),
            shutdown_grace: Duration::from_secs(1),
            ..ServerConfig::default()
        };
        configure(&mut config);
        let (stop, stopped) = oneshot::channel();
        let (tell_address, address) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let server = Server::new(database, config);
                let listener = server.bind().await.expect("a free port");
                tell_address
                    .send(listener.local_addr().expect("bound"))
                    .expect("awaited");
                server.serve(listener, async { drop(stopped.await) }).await;
            });
        });
        let address = address.recv().expect("the server starts");
        Self {
            address,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Tells the server to stop and waits until it has.
    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the server does not panic");
        }
    }

    pub(crate) fn connect(&self) -> Connection {
        let stream = TcpStream::connect(self.address).expect("the server accepts");
        // Only so that a broken server fails a test instead of hanging it.
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .expect("a positive time");
        Connection {
            reader: BufReader::new(stream),
        }
    }

    /// One request on a connection of its own.
    pub(crate) fn send(&self, method: &str, target: &str, headers: &str, body: &str) -> Answer {
        let mut connection = self.connect();
        connection.send(method, target, headers, body);
        connection.answer(method)
    }

    pub(crate) fn get(&self, target: &str, headers: &str) -> Answer {
        self.send("GET", target, headers, "")
    }

    /// Runs a query by GET with more parameters, as in `&format=csv`.
    pub(crate) fn query(&self, query: &str, more: &str) -> Answer {
        self.get(&format!("/query?query={}{more}", encode(query)), "")
    }

    /// Asks for the metrics until one of them has this value.
    pub(crate) fn wait_for_metric(&self, line: &str) {
        let give_up = Instant::now() + Duration::from_secs(60);
        loop {
            let text = self.get("/metrics", "").text();
            if text.lines().any(|l| l == line) {
                return;
            }
            assert!(Instant::now() < give_up, "no {line} in\n{text}");
            std::thread::yield_now();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if std::thread::panicking() {
            drop(self.stop.take());
        } else {
            self.stop();
        }
    }
}

pub(crate) struct Connection<S = TcpStream> {
    pub(crate) reader: BufReader<S>,
}

impl<S: Read + Write> Connection<S> {
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.reader
            .get_mut()
            .write_all(bytes)
            .expect("the server reads");
    }

    pub(crate) fn send(&mut self, method: &str, target: &str, headers: &str, body: &str) {
        let length = match body.len() {
            0 => String::new(),
            length => format!("Content-Length: {length}\r\n"),
        };
        let host = match headers.contains("Host: ") {
            true => "",
            false => "Host: e\r\n",
        };
        let request = format!("{method} {target} HTTP/1.1\r\n{host}{length}{headers}\r\n{body}");
        self.write(request.as_bytes());
    }

    /// The head of the next answer.
    pub(crate) fn head(&mut self) -> Answer {
        let status_line = self.line();
        let status = status_line
            .split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok());
        let mut headers = Vec::new();
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let status = status.unwrap_or_else(|| panic!("a status in {status_line:?}"));
        Answer {
            status,
            headers,
            body: Vec::new(),
            whole: false,
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    /// The next answer, with as much of its body as comes.
    pub(crate) fn answer(&mut self, method: &str) -> Answer {
        let mut answer = self.head();
        if method == "HEAD" || answer.status == 204 {
            answer.whole = true;
        } else if answer.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk() {
                if chunk.is_empty() {
                    answer.whole = true;
                    break;
                }
                answer.body.extend_from_slice(&chunk);
            }
        } else {
            let length = answer
                .header("content-length")
                .expect("a length")
                .parse()
                .unwrap();
            answer.body.resize(length, 0);
            self.reader
                .read_exact(&mut answer.body)
                .expect("as much as promised");
            answer.whole = true;
        }
        answer
    }

    /// The next chunk, empty at the end; `None` if the connection ends before it.
    pub(crate) fn chunk(&mut self) -> Option<Vec<u8>> {
        let mut size = String::new();
        self.reader.read_line(&mut size).ok()?;
        let size = usize::from_str_radix(size.trim_end(), 16).ok()?;
        let mut chunk = vec![0; size + 2];
        self.reader.read_exact(&mut chunk).ok()?;
        assert_eq!(chunk.split_off(size), b"\r\n");
        Some(chunk)
    }

    /// Whether the server has closed its side, once that or a byte comes.
    pub(crate) fn ended(&mut self) -> bool {
        self.reader.fill_buf().map_or(true, <[u8]>::is_empty)
    }
}

impl Connection {
    pub(crate) fn hang_up(self) {
        self.reader
            .get_ref()
            .shutdown(Shutdown::Both)
            .expect("connected");
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Whether the body ended as it should.
    pub(crate) whole: bool,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("UTF-8")
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

/// Lets clients without credentials do what a role may, where others are known.
pub(crate) fn let_anonymous(config: &mut ServerConfig, role: Role) {
    let AccessPolicy::Known { anonymous, .. } = &mut config.access else {
        panic!("nobody is known");
    };
    *anonymous = Some(role);
}

/// Escapes all but letters and digits for a URL or form.
pub(crate) fn encode(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}
