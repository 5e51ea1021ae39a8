//! How is a server of ours run in this process, and asked without a library in between?

use jindou_engine::Database;
use jindou_server::{Server, ServerConfig};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long an answer may take, so that a broken server fails a test instead of hanging it.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest body that is read, in bytes.
const BODY_LIMIT_BYTES: usize = 64 << 20;

/// A server on a port of its own on the loopback device; it stops when this is dropped.
pub struct Served {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// An answer over HTTP.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    /// Such as 200.
    pub status: u16,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body, without its encoding into chunks.
    pub body: Vec<u8>,
}

impl Reply {
    /// The first header of this name, which is in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The media type of the body in lower case, without parameters; empty if it is not told.
    #[must_use]
    pub fn media_type(&self) -> String {
        let told = self.header("content-type").unwrap_or_default();
        let kind = told.split(';').next().unwrap_or_default();
        kind.trim().to_ascii_lowercase()
    }

    /// The body, for messages.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Served {
    /// Serves a database with the default settings.
    ///
    /// # Panics
    /// When the server cannot be started.
    #[must_use]
    pub fn start(database: Database) -> Self {
        let config = ServerConfig {
            address: ([127, 0, 0, 1], 0).into(),
            shutdown_grace: Duration::from_secs(1),
            ..ServerConfig::default()
        };
        let (stop, stopped) = oneshot::channel();
        let (tell_address, address) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(1)
                .enable_all()
                .build()
                .expect("a runtime starts");
            runtime.block_on(async {
                let server = Server::new(database, config);
                let listener = server.bind().await.expect("a port is free");
                let address = listener.local_addr().expect("it is bound");
                tell_address.send(address).expect("somebody waits");
                server.serve(listener, async { drop(stopped.await) }).await;
            });
        });
        Self {
            address: address.recv().expect("the server starts"),
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// One request on a connection of its own, with nothing in its head but `Host`, the length of
    /// its body, and `headers`.
    ///
    /// # Errors
    /// When the connection fails, or the answer is no HTTP.
    pub fn send(
        &self,
        host: &str,
        method: &str,
        target: &str,
        headers: &[(String, String)],
        body: &[u8],
    ) -> io::Result<Reply> {
        request(self.address, host, (method, target), headers, body)
    }
}

/// One request to a server anywhere, as [`Served::send`].
///
/// # Errors
/// As there.
pub fn request(
    address: SocketAddr,
    host: &str,
    (method, target): (&str, &str),
    headers: &[(String, String)],
    body: &[u8],
) -> io::Result<Reply> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut head = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n");
    head.push_str("Connection: close\r\n");
    if !body.is_empty() {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let mut connection = BufReader::new(stream);
    connection.get_mut().write_all(head.as_bytes())?;
    connection.get_mut().write_all(body)?;
    reply(&mut connection, method)
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            assert!(!matches!(ended, Some(Err(_))), "the server panicked");
        }
    }
}

fn reply(connection: &mut impl BufRead, method: &str) -> io::Result<Reply> {
    let status_line = line(connection)?;
    let status = status_line.split(' ').nth(1).and_then(|s| s.parse().ok());
    let status = status.ok_or_else(|| wrong(format!("no status in {status_line:?}")))?;
    let mut reply = Reply {
        status,
        ..Reply::default()
    };
    loop {
        let header = line(connection)?;
        let Some((name, value)) = header.split_once(':') else {
            break;
        };
        let header = (name.to_ascii_lowercase(), value.trim().to_owned());
        reply.headers.push(header);
    }
    if method == "HEAD" || status == 204 {
        return Ok(reply);
    }
    if reply.header("transfer-encoding") == Some("chunked") {
        loop {
            let size = line(connection)?;
            let size = usize::from_str_radix(&size, 16);
            let size = size.map_err(|_| wrong("a chunk without a size"))?;
            read(connection, size, &mut reply.body)?;
            line(connection)?;
            if size == 0 {
                return Ok(reply);
            }
        }
    }
    let length = reply.header("content-length").and_then(|l| l.parse().ok());
    let length = length.ok_or_else(|| wrong("a body without a length"))?;
    read(connection, length, &mut reply.body)?;
    Ok(reply)
}

fn read(connection: &mut impl Read, length: usize, body: &mut Vec<u8>) -> io::Result<()> {
    let start = body.len();
    if start + length > BODY_LIMIT_BYTES {
        return Err(wrong("the body is too long"));
    }
    body.resize(start + length, 0);
    connection.read_exact(&mut body[start..])
}

fn line(connection: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    connection.read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

fn wrong(message: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_put_together_and_cut_answers_are_errors() {
        let bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: Text/Turtle; \
            charset=utf-8\r\n\r\n3\r\nabc\r\na\r\n0123456789\r\n0\r\n\r\n";
        let whole = reply(&mut &bytes[..], "GET").expect("it is well formed");
        assert_eq!(
            (whole.status, whole.text().as_str()),
            (200, "abc0123456789")
        );
        assert_eq!(whole.media_type(), "text/turtle");
        for end in 0..bytes.len() - 4 {
            assert!(reply(&mut &bytes[..end], "GET").is_err(), "{end}");
        }
    }
}
