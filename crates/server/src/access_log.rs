//! What does the access log say of a request?
//!
//! A line once the last byte of its answer was handed over, or the connection was cut before: who sent it, what
//! it asked for, without the text of a query, and what became of it.

use std::io::Write;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use chrono::{DateTime, SecondsFormat, Utc};
use http_body::Body as _;
use hyper::{Method, Request, Response};
use serde_json::json;

use crate::body::Body;
use crate::log::{Line, Log, LogFormat, push_escaped, push_word};
use crate::queries::Client;

/// Bytes of a path that a line has.
const PATH_BYTES: usize = 1024;

/// A request under way, which becomes a line when this is dropped.
pub(crate) struct Entry {
    log: Log,
    request: Option<Box<Asked>>,
    started: Instant,
    pub(crate) bytes: u64,
    /// Whether the answer ended as it should.
    pub(crate) whole: bool,
}

/// One line.
struct Asked {
    at: SystemTime,
    address: IpAddr,
    user: Option<Arc<str>>,
    method: Method,
    path: String,
    version: &'static str,
    /// None of a request whose client went before there was an answer.
    status: Option<u16>,
    bytes: u64,
    seconds: f64,
    whole: bool,
}

impl Entry {
    pub(crate) fn new<B>(log: &Log, request: &Request<B>, address: IpAddr) -> Self {
        let path = request.uri().path();
        let version = match request.version() {
            hyper::Version::HTTP_10 => "HTTP/1.0",
            _ => "HTTP/1.1",
        };
        Self {
            log: log.clone(),
            started: Instant::now(),
            bytes: 0,
            whole: false,
            request: Some(Box::new(Asked {
                at: SystemTime::now(),
                address,
                user: None,
                method: request.method().clone(),
                path: path[..path.floor_char_boundary(PATH_BYTES)].to_owned(),
                version,
                status: None,
                bytes: 0,
                seconds: 0.,
                whole: false,
            })),
        }
    }

    /// Notes that there is an answer, and to whom.
    pub(crate) fn answered(&mut self, response: &Response<Body>, client: &Client) {
        if let Some(request) = &mut self.request {
            request.status = Some(response.status().as_u16());
            request.user = client.user();
            // Nobody asks for the bytes of these, or there are none.
            let is_head = request.method == Method::HEAD;
            self.whole = is_head || response.body().is_end_stream();
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Some(mut request) = self.request.take() {
            request.bytes = self.bytes;
            request.whole = self.whole;
            request.seconds = self.started.elapsed().as_secs_f64();
            self.log.push(*request);
        }
    }
}

impl Line for Asked {
    fn write(&self, format: LogFormat, out: &mut Vec<u8>) {
        let at = DateTime::<Utc>::from(self.at);
        if format == LogFormat::Json {
            let line = json!({
                "time": at.to_rfc3339_opts(SecondsFormat::Millis, true),
                "client": self.address.to_string(),
                "user": self.user.as_deref(),
                "method": self.method.as_str(),
                "path": self.path,
                "status": self.status,
                "bytes": self.bytes,
                "seconds": self.seconds,
                "whole": self.whole,
            });
            return writeln!(out, "{line}").expect("a Vec takes all");
        }
        // The Common Log Format, and how long it took.
        let at = at.format("%d/%b/%Y:%H:%M:%S +0000");
        write!(out, "{} - ", self.address).expect("a Vec takes all");
        match &self.user {
            Some(user) => push_word(user, out),
            None => out.push(b'-'),
        }
        write!(out, " [{at}] \"{} ", self.method).expect("a Vec takes all");
        push_escaped(&self.path, out);
        // As servers do that have no status for it.
        let status = self.status.unwrap_or(499);
        let (version, bytes, seconds) = (self.version, self.bytes, self.seconds);
        write!(out, " {version}\" {status} {bytes} {seconds:.6}").expect("a Vec takes all");
        out.extend(match self.whole {
            true => &b"\n"[..],
            false => b" cut\n",
        });
    }
}
