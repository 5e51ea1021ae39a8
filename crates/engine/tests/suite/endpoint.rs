//! A server on this machine that answers with prepared bytes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Far longer than anything here takes, unless it never ends.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A socket that answers each request in turn; what it was asked comes out at the other end.
pub(crate) struct Endpoint {
    pub(crate) address: SocketAddr,
    pub(crate) asked: Receiver<String>,
}

impl Endpoint {
    /// One answer for each connection, written by these.
    pub(crate) fn new(answers: Vec<Box<dyn FnOnce(TcpStream) + Send>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (sender, asked) = channel();
        std::thread::spawn(move || {
            for answer in answers {
                let (stream, _) = listener.accept().expect("a connection");
                let request = read_request(&stream);
                // The test may have seen enough.
                let _asked = sender.send(request);
                answer(stream);
            }
        });
        Self { address, asked }
    }

    /// Prepared responses, one for each request.
    pub(crate) fn answering(responses: &[String]) -> Self {
        let write = |response: &String| -> Box<dyn FnOnce(TcpStream) + Send> {
            let response = response.clone();
            Box::new(move |mut stream| {
                // The client may have gone.
                let _written = stream.write_all(response.as_bytes());
            })
        };
        Self::new(responses.iter().map(write).collect())
    }

    /// The address of a path.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The request that came next.
    pub(crate) fn request(&self) -> String {
        self.asked.recv_timeout(LONG).expect("a request")
    }
}

fn read_request(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut request = String::new();
    let mut length = 0;
    loop {
        let before = request.len();
        reader.read_line(&mut request).expect("a line");
        let line = request[before..].trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    request + std::str::from_utf8(&body).expect("a form is ASCII")
}

pub(crate) fn response(status: &str, headers: &str, media_type: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\n{headers}Content-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}
