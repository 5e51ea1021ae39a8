//! How do clients of streams speak to a server: requests with their answers, readers of events, and frames of
//! WebSockets?

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use crate::BenchError;
use crate::http::{Connection, HttpError};

/// The media type of lines with times.
pub(super) const LINES: &str = "text/tab-separated-values";
/// How long a reader of events waits for the next one.
const EVENT_WITHIN: Duration = Duration::from_secs(20);
/// How long the answer to a body that is refused may take to come, or a connection to end.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// Bytes of an answer that are looked at.
const LOOKED_AT: usize = 4 << 10;
/// The longest refusal that is one clear line.
const CLEAR_BYTES: usize = 600;

/// Status and body of an answer.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: String,
}

/// A client with one connection.
pub(super) struct Client {
    address: SocketAddr,
    connection: Option<Connection>,
}

impl Client {
    pub(super) fn new(address: SocketAddr) -> Self {
        Self {
            address,
            connection: None,
        }
    }

    /// One request and its answer.
    ///
    /// # Errors
    /// [`BenchError::Http`].
    pub(super) fn ask(
        &mut self,
        (method, path): (&str, &str),
        media_type: &str,
        body: &[u8],
    ) -> Result<Answer, BenchError> {
        let address = self.address;
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => self.connection.insert(Connection::open(address)?),
        };
        let asked = exchange(connection, address, (method, path), media_type, body);
        if asked.is_err() {
            self.connection = None;
        }
        Ok(asked?)
    }

    pub(super) fn put_stream(&mut self, name: &str, more: &str) -> Result<Answer, BenchError> {
        let definition = format!("{{\"iri\":\"http://e/{name}\"{more}}}");
        let path = format!("/streams/{name}");
        self.ask(("PUT", &path), "application/json", definition.as_bytes())
    }

    pub(super) fn register(&mut self, name: &str, text: &str) -> Result<Answer, BenchError> {
        let path = format!("/continuous/{name}");
        self.ask(("PUT", &path), "application/sparql-query", text.as_bytes())
    }

    pub(super) fn push(&mut self, stream: &str, lines: &str) -> Result<Answer, BenchError> {
        let path = format!("/streams/{stream}");
        self.ask(("POST", &path), LINES, lines.as_bytes())
    }

    pub(super) fn heartbeat(&mut self, stream: &str, time: &str) -> Result<Answer, BenchError> {
        let path = format!("/streams/{stream}/heartbeat?time={time}");
        self.ask(("POST", &path), "", b"")
    }

    pub(super) fn delete(&mut self, path: &str) -> Result<Answer, BenchError> {
        self.ask(("DELETE", path), "", b"")
    }
}

fn exchange(
    connection: &mut Connection,
    address: SocketAddr,
    (method, path): (&str, &str),
    media_type: &str,
    body: &[u8],
) -> Result<Answer, HttpError> {
    let kind = match media_type {
        "" => String::new(),
        kind => format!("Content-Type: {kind}\r\n"),
    };
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\n{kind}Content-Length: {}\r\n\r\n",
        body.len()
    );
    let mut request = head.into_bytes();
    request.extend_from_slice(body);
    connection.send(&request)?;
    let mut text = Vec::new();
    let answer = connection.receive(|piece| text.extend_from_slice(piece))?;
    Ok(Answer {
        status: answer.status,
        body: String::from_utf8_lossy(&text).into_owned(),
    })
}

/// What a server said to an attack.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// How often which status came to what.
    pub(super) answers: BTreeMap<String, u64>,
    /// The first refusal of each kind.
    pub(super) said: BTreeMap<String, String>,
    /// What should not have been.
    pub(super) wrong: Vec<String>,
}

/// Mistakes that are listed.
const MOST_WRONG: usize = 8;

impl Told {
    /// Notes an answer to something, of which these statuses are right.
    pub(super) fn expect(&mut self, what: &str, right: &[u16], answer: &Answer) {
        let kind = format!("{what}: {}", answer.status);
        *self.answers.entry(kind.clone()).or_default() += 1;
        let line = answer.body.trim_end();
        if answer.status >= 400 {
            let is_clear = !line.is_empty() && !line.contains('\n') && line.len() <= CLEAR_BYTES;
            if !is_clear {
                let begin: String = line.chars().take(80).collect();
                self.wrong(format!("{kind}, which is not one clear line: {begin:?}"));
            }
            self.said.entry(kind).or_insert_with(|| line.to_owned());
        }
        if !right.contains(&answer.status) {
            let begin: String = line.chars().take(200).collect();
            self.wrong(format!("{what} was answered {}: {begin}", answer.status));
        }
    }

    /// Counts what is no answer of HTTP.
    pub(super) fn count(&mut self, what: &str) {
        *self.answers.entry(what.to_owned()).or_default() += 1;
    }

    pub(super) fn wrong(&mut self, what: String) {
        if self.wrong.len() < MOST_WRONG && !self.wrong.contains(&what) {
            self.wrong.push(what);
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        for (kind, count) in other.answers {
            *self.answers.entry(kind).or_default() += count;
        }
        for (kind, line) in other.said {
            self.said.entry(kind).or_insert(line);
        }
        other.wrong.into_iter().for_each(|wrong| self.wrong(wrong));
    }
}

/// A reader of results, by server-sent events.
pub(super) struct Events {
    lines: BufReader<TcpStream>,
}

/// A result: its instant, and the line of its data.
pub(super) struct Event {
    pub(super) instant_ms: i64,
    pub(super) data: String,
}

impl Events {
    /// Begins to read the results of a query from now on.
    ///
    /// # Errors
    /// What the system says; a status other than 200.
    pub(super) fn of(address: SocketAddr, query: &str) -> io::Result<Self> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(EVENT_WITHIN))?;
        let head = format!("GET /continuous/{query}/results HTTP/1.1\r\nHost: {address}\r\n\r\n");
        stream.write_all(head.as_bytes())?;
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        lines.read_line(&mut line)?;
        match line.contains(" 200 ") {
            true => Ok(Self { lines }),
            false => Err(io::Error::other(line)),
        }
    }

    /// The next result. Ends of chunks stand between events, and are passed over.
    ///
    /// # Errors
    /// What the system says; none came in time.
    pub(super) fn next(&mut self) -> io::Result<Event> {
        let mut instant_ms = None;
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(id) = line.strip_prefix("id: ") {
                instant_ms = id
                    .split(':')
                    .next()
                    .and_then(|instant| instant.parse().ok());
            } else if let (Some(data), Some(instant_ms)) = (line.strip_prefix("data: "), instant_ms)
            {
                let data = data.trim_end().to_owned();
                return Ok(Event { instant_ms, data });
            }
        }
    }
}

/// Asks for a WebSocket; the connection behind the answer, if it is one.
///
/// # Errors
/// What the system says.
pub(super) fn socket(address: SocketAddr, path: &str) -> io::Result<Result<TcpStream, Answer>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    let mut begin = Vec::new();
    let mut byte = [0];
    while !begin.ends_with(b"\r\n\r\n") && begin.len() < LOOKED_AT {
        match stream.read(&mut byte)? {
            0 => break,
            _ => begin.push(byte[0]),
        }
    }
    if begin.starts_with(b"HTTP/1.1 101 ") {
        return Ok(Ok(stream));
    }
    let answer = rest_of_answer(begin, &mut stream);
    Ok(Err(answer))
}

/// The head of a frame of text of this length, with a mask of zeros.
pub(super) fn frame_head(length: u64) -> Vec<u8> {
    let mut head = vec![0x81, 0x80 | 127];
    head.extend_from_slice(&length.to_be_bytes());
    head.extend_from_slice(&[0; 4]);
    head
}

/// Sends a request whose body may never be taken, and gives the answer, whenever it comes: while the body
/// is sent, or after it. `piece` gives what comes next, until there is nothing more.
///
/// # Errors
/// What the system says, if no answer comes.
pub(super) fn send_until_answered(
    mut stream: TcpStream,
    mut piece: impl FnMut() -> Option<Vec<u8>>,
) -> io::Result<(Answer, u64)> {
    let mut reader = stream.try_clone()?;
    reader.set_read_timeout(Some(ANSWER_WITHIN))?;
    stream.set_write_timeout(Some(ANSWER_WITHIN))?;
    let answered = std::thread::spawn(move || {
        let mut begin = vec![0; LOOKED_AT];
        let read = reader.read(&mut begin)?;
        begin.truncate(read);
        Ok::<_, io::Error>(rest_of_answer(begin, &mut reader))
    });
    let mut sent = 0;
    while !answered.is_finished()
        && let Some(next) = piece()
    {
        if stream.write_all(&next).is_err() {
            break;
        }
        sent += next.len() as u64;
    }
    let answer = answered.join().map_err(|_| io::Error::other("a panic"))?;
    let _ = stream.shutdown(Shutdown::Both);
    Ok((answer?, sent))
}

/// The answer, or close frame, that begins with these bytes and ends with the connection.
fn rest_of_answer(mut begin: Vec<u8>, stream: &mut TcpStream) -> Answer {
    let _ = stream.set_read_timeout(Some(Duration::from_millis(500)));
    let mut more = [0; LOOKED_AT];
    while begin.len() < LOOKED_AT && !is_whole(&begin) {
        match stream.read(&mut more) {
            Ok(0) | Err(_) => break,
            Ok(read) => begin.extend_from_slice(&more[..read]),
        }
    }
    if let [0x88, length, high, low, reason @ ..] = &*begin {
        let reason = &reason[..reason.len().min(usize::from(*length).saturating_sub(2))];
        return Answer {
            status: u16::from_be_bytes([*high, *low]),
            body: String::from_utf8_lossy(reason).into_owned(),
        };
    }
    let text = String::from_utf8_lossy(&begin);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.get(9..12).and_then(|status| status.parse().ok());
    Answer {
        status: status.unwrap_or(0),
        body: body.to_owned(),
    }
}

/// Whether an answer has all of the body that its head announces; a close frame is one.
fn is_whole(bytes: &[u8]) -> bool {
    if bytes.first() == Some(&0x88) {
        return bytes.len() >= 2 && bytes.len() >= 2 + usize::from(bytes[1] & 0x7f);
    }
    let text = String::from_utf8_lossy(bytes);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let lengths = head.lines().filter_map(|line| line.split_once(": "));
    let mut lengths = lengths.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = lengths.next().and_then(|(_, length)| length.parse().ok());
    length.is_some_and(|length: usize| body.len() >= length)
}
