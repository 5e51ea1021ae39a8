//! How are queries sent over HTTP/1.1 and answers read, with little work beside the server's?
//!
//! A client for measurements: keep-alive, bodies by length or in chunks, nothing else.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Bytes of an answer held at a time; a head or a line must fit.
const BUFFER_BYTES: usize = 64 << 10;
/// Bytes of a refusal's body that its error shows.
pub(crate) const SAID_BYTES: usize = 256;
/// How long an answer may keep silent.
const SILENCE: Duration = Duration::from_secs(120);

/// Why an exchange failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The connection failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The answer is not HTTP/1.1 as this client knows it.
    #[error("the answer is malformed: {0}")]
    Malformed(&'static str),
    /// The server refused the request.
    #[error("the server answered with status {status}: {said}")]
    Status {
        /// Of the answer.
        status: u16,
        /// How its body begins.
        said: String,
    },
}

impl HttpError {
    /// A refusal whose body begins with these bytes.
    pub(crate) fn refused(status: u16, body: &[u8]) -> Self {
        let body = &body[..body.len().min(SAID_BYTES)];
        let said = String::from_utf8_lossy(body).trim_end().to_owned();
        Self::Status { status, said }
    }
}

/// One connection, kept open from request to request.
pub struct Connection<S = TcpStream> {
    stream: S,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

/// The head of an answer, and how long its body was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Bytes of the body, after chunks are joined.
    pub body_bytes: u64,
}

enum Body {
    Empty,
    Length(u64),
    Chunked,
}

/// A request that asks this server for the answer of a query as TSV.
#[must_use]
pub fn query_request(host: SocketAddr, path: &str, query: &str) -> Vec<u8> {
    query_request_with(host, path, query, "")
}

/// The same with more headers, each with the end of its line.
#[must_use]
pub fn query_request_with(host: SocketAddr, path: &str, query: &str, headers: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/sparql-query\r\n\
         Accept: text/tab-separated-values\r\n{headers}Content-Length: {}\r\n\r\n{query}",
        query.len()
    )
    .into_bytes()
}

/// A request that asks this server for an update.
#[must_use]
pub fn update_request(host: SocketAddr, path: &str, update: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/sparql-update\r\n\
         Content-Length: {}\r\n\r\n{update}",
        update.len()
    )
    .into_bytes()
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(address: SocketAddr) -> Result<Self, HttpError> {
        Self::open_within(address, SILENCE)
    }

    /// Connects to a server that may be lost: neither that nor any piece of an answer may take longer.
    ///
    /// # Errors
    /// What the system says.
    pub fn open_within(address: SocketAddr, silence: Duration) -> Result<Self, HttpError> {
        let stream = TcpStream::connect_timeout(&address, silence)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(silence))?;
        stream.set_write_timeout(Some(silence))?;
        Ok(Self::over(stream))
    }
}

impl Connection {
    /// Waits until an answer begins or the connection ends; looks every `look` whether to `go_on`,
    /// and is false if not.
    ///
    /// # Errors
    /// [`HttpError::Io`].
    pub fn wait_for_answer(
        &mut self,
        look: Duration,
        go_on: impl Fn() -> bool,
    ) -> Result<bool, HttpError> {
        self.stream.set_read_timeout(Some(look))?;
        let begun = loop {
            match self.stream.peek(&mut [0]) {
                Ok(_) => break true,
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                    ) =>
                {
                    if !go_on() {
                        break false;
                    }
                }
                Err(error) => return Err(error.into()),
            }
        };
        self.stream.set_read_timeout(Some(SILENCE))?;
        Ok(begun)
    }
}

impl<S: Read + Write> Connection<S> {
    /// A connection over this stream.
    pub fn over(stream: S) -> Self {
        let buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
        Self {
            stream,
            buffer,
            start: 0,
            end: 0,
        }
    }

    /// Sends a whole request.
    ///
    /// # Errors
    /// [`HttpError::Io`].
    pub fn send(&mut self, request: &[u8]) -> Result<(), HttpError> {
        Ok(self.stream.write_all(request)?)
    }

    /// Reads one answer to its end, and hands its body to `take` in pieces.
    ///
    /// # Errors
    /// [`HttpError::Io`], [`HttpError::Malformed`]; a status is not looked at.
    pub fn receive(&mut self, mut take: impl FnMut(&[u8])) -> Result<Answer, HttpError> {
        let (status, body) = self.head()?;
        let body_bytes = match body {
            Body::Empty => 0,
            Body::Length(length) => {
                self.pass(length, &mut take)?;
                length
            }
            Body::Chunked => self.chunks(&mut take)?,
        };
        Ok(Answer { status, body_bytes })
    }

    /// Sends a request, reads the answer, and counts the ends of lines in its body.
    ///
    /// # Errors
    /// As [`receive`](Self::receive); [`HttpError::Status`] unless the status is 200.
    pub fn lines(&mut self, request: &[u8]) -> Result<(Answer, u64), HttpError> {
        self.send(request)?;
        self.receive_lines()
    }

    /// [`lines`](Self::lines), for a request sent before.
    ///
    /// # Errors
    /// As there.
    pub fn receive_lines(&mut self) -> Result<(Answer, u64), HttpError> {
        let (mut lines, mut said) = (0, Vec::new());
        let answer = self.receive(|piece| {
            lines += memchr::memchr_iter(b'\n', piece).count() as u64;
            let more = piece.len().min(SAID_BYTES - said.len());
            said.extend_from_slice(&piece[..more]);
        })?;
        match answer.status {
            200 => Ok((answer, lines)),
            status => Err(HttpError::refused(status, &said)),
        }
    }

    fn head(&mut self) -> Result<(u16, Body), HttpError> {
        loop {
            let status = status(self.line()?)?;
            let mut body = None;
            loop {
                let line = self.line()?;
                if line.is_empty() {
                    break;
                }
                let (name, value) = header(line)?;
                if name.eq_ignore_ascii_case("transfer-encoding") {
                    if !value.eq_ignore_ascii_case("chunked") {
                        return Err(HttpError::Malformed("an unknown transfer encoding"));
                    }
                    body = Some(Body::Chunked);
                } else if name.eq_ignore_ascii_case("content-length")
                    // A length beside chunks does not count (RFC 9112, section 6.3).
                    && body.is_none()
                {
                    let length = value.parse();
                    let bad = |_| HttpError::Malformed("a length that is no number");
                    body = Some(Body::Length(length.map_err(bad)?));
                }
            }
            match (status, body) {
                // An interim answer: the real one follows.
                (100..200, _) => {}
                (204 | 304, _) => return Ok((status, Body::Empty)),
                (_, Some(body)) => return Ok((status, body)),
                (_, None) => return Err(HttpError::Malformed("neither a length nor chunks")),
            }
        }
    }

    fn chunks(&mut self, take: &mut impl FnMut(&[u8])) -> Result<u64, HttpError> {
        let mut total = 0;
        loop {
            let size = chunk_size(self.line()?)?;
            if size == 0 {
                while !self.line()?.is_empty() {}
                return Ok(total);
            }
            self.pass(size, take)?;
            if !self.line()?.is_empty() {
                return Err(HttpError::Malformed("a chunk longer than its size"));
            }
            total += size;
        }
    }

    /// Hands the next `left` bytes over.
    fn pass(&mut self, mut left: u64, take: &mut impl FnMut(&[u8])) -> Result<(), HttpError> {
        while left > 0 {
            if self.start == self.end {
                self.fill()?;
            }
            let held = self.end - self.start;
            let piece = usize::try_from(left).map_or(held, |left| left.min(held));
            take(&self.buffer[self.start..self.start + piece]);
            self.start += piece;
            left -= piece as u64;
        }
        Ok(())
    }

    /// The next line without its end.
    fn line(&mut self) -> Result<&[u8], HttpError> {
        let mut searched = 0;
        let length = loop {
            let held = &self.buffer[self.start..self.end];
            if let Some(at) = memchr::memchr(b'\n', &held[searched..]) {
                break searched + at;
            }
            searched = held.len();
            self.fill()?;
        };
        let line = &self.buffer[self.start..self.start + length];
        self.start += length + 1;
        Ok(line.strip_suffix(b"\r").unwrap_or(line))
    }

    fn fill(&mut self) -> Result<(), HttpError> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            return Err(HttpError::Malformed("a line longer than the buffer"));
        }
        match self.stream.read(&mut self.buffer[self.end..])? {
            0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            read => {
                self.end += read;
                Ok(())
            }
        }
    }
}

fn status(line: &[u8]) -> Result<u16, HttpError> {
    line.strip_prefix(b"HTTP/1.1 ")
        .and_then(|rest| std::str::from_utf8(rest.get(..3)?).ok()?.parse().ok())
        .ok_or(HttpError::Malformed("no status line of HTTP/1.1"))
}

fn header(line: &[u8]) -> Result<(&str, &str), HttpError> {
    let text = std::str::from_utf8(line);
    let text = text.map_err(|_| HttpError::Malformed("a header that is no text"))?;
    let parts = text.split_once(':');
    let (name, value) = parts.ok_or(HttpError::Malformed("a header without a colon"))?;
    Ok((name, value.trim()))
}

fn chunk_size(line: &[u8]) -> Result<u64, HttpError> {
    let digits = line.split(|&b| b == b';').next().unwrap_or_default();
    let digits = std::str::from_utf8(digits.trim_ascii()).unwrap_or_default();
    u64::from_str_radix(digits, 16).map_err(|_| HttpError::Malformed("a chunk without a size"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives what it holds in pieces of at most so many bytes, and swallows what is written.
    struct Trickle<'a>(&'a [u8], usize);

    impl Read for Trickle<'_> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let limit = self.1.min(buf.len());
            self.0.read(&mut buf[..limit])
        }
    }

    impl Write for Trickle<'_> {
        fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
            Ok(buf.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    const TWO: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nA: b\r\n\
        transfer-encoding: Chunked\r\n\r\n5;x=1\r\nab\ncd\r\n0A\r\n0123456\r\n9\r\n0\r\nT: u\r\n\r\n\
        HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nno!\nHTTP/1.1 204 No Content\r\n\r\n";

    #[test]
    fn answers_are_told_apart_wherever_reads_end() {
        for piece in 1..=TWO.len() {
            let mut connection = Connection::over(Trickle(TWO, piece));
            let mut body = Vec::new();
            let answer = connection.receive(|b| body.extend_from_slice(b)).unwrap();
            assert_eq!((answer.status, answer.body_bytes), (200, 15));
            assert_eq!(body, b"ab\ncd0123456\r\n9");
            let missing = connection.receive_lines();
            assert!(matches!(
                missing,
                Err(HttpError::Status { status: 404, .. })
            ));
            let empty = connection.receive(|_| ()).unwrap();
            assert_eq!((empty.status, empty.body_bytes), (204, 0));
            let end = connection.receive(|_| ());
            assert!(
                matches!(end, Err(HttpError::Io(e)) if e.kind() == io::ErrorKind::UnexpectedEof)
            );
        }
    }

    #[test]
    fn malformed_answers_are_refused() {
        for text in [
            &b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"[..],
            b"HTTP/1.1 200 OK\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxy\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
            b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        ] {
            let outcome = Connection::over(Trickle(text, 3)).receive(|_| ());
            assert!(
                matches!(outcome, Err(HttpError::Malformed(_))),
                "{outcome:?}"
            );
        }
        let endless = vec![b'x'; 2 * BUFFER_BYTES];
        let outcome = Connection::over(Trickle(&endless, 1000)).receive(|_| ());
        assert!(matches!(outcome, Err(HttpError::Malformed(_))));
    }

    #[test]
    fn a_request_says_how_long_its_query_is() {
        let host = "127.0.0.1:7878".parse().unwrap();
        let request = String::from_utf8(query_request(host, "/sparql", "ASK {}")).unwrap();
        assert!(request.starts_with("POST /sparql HTTP/1.1\r\nHost: 127.0.0.1:7878\r\n"));
        assert!(request.ends_with("Content-Length: 6\r\n\r\nASK {}"));
    }
}
