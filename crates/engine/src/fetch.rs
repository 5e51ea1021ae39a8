//! How does LOAD get a document from the web?
//!
//! By a GET on a thread of its own, which hands over what it reads; whoever parses it looks at the
//! clock while it waits, and then the connection is shut and the thread ends.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use jindou_ingest::{Format, Source};
use ureq::http::{Response, Uri};
use ureq::{Agent, Body};

use crate::deadline::Deadline;
use crate::web::{Ask, Web, WebError, WebLimits, excerpt, media_type};
use crate::{Config, EngineError};

/// Most bytes handed over at once,
const PART_BYTES: usize = 64 << 10;
/// and how many of these may wait for the parser.
const WAITING_PARTS: usize = 4;
/// How long the parser waits between two looks at the clock.
const LOOK: Duration = Duration::from_millis(20);

const ACCEPT: &str = "text/turtle, application/n-triples;q=0.9, application/trig;q=0.9, \
                      application/n-quads;q=0.9, application/rdf+xml;q=0.8, \
                      application/ld+json;q=0.6, */*;q=0.1";

/// A document that is being read, and what went wrong with it.
pub(crate) struct Fetched {
    pub(crate) source: Source,
    pub(crate) trouble: Trouble,
}

/// Why a document could not be read to its end.
#[derive(Clone, Default)]
pub(crate) struct Trouble(Arc<OnceLock<WebError>>);

impl Trouble {
    /// What it was, if the web was to blame.
    pub(crate) fn error(&self) -> Option<WebError> {
        self.0.get().cloned()
    }
}

/// The document at an address, whose head is there when this returns. Reading its body ends with an
/// error once `deadline` is over.
///
/// # Errors
/// [`EngineError::Forbidden`], [`EngineError::Document`], or those of the deadline.
pub(crate) fn fetch(
    iri: &str,
    config: &Config,
    deadline: &Deadline,
) -> Result<Fetched, EngineError> {
    let failed = |source| EngineError::Document {
        address: iri.to_owned(),
        source,
    };
    let limits = WebLimits {
        policies: vec![config.load_addresses.clone()],
        connect_timeout: config.service_connect_timeout,
        timeout: deadline.left()?,
        response_bytes: config.load_response_bytes,
    };
    let address = limits.allowed(iri).map_err(|error| match error {
        WebError::NotAllowed => EngineError::Forbidden {
            what: format!("LOAD <{iri}>"),
        },
        other => failed(other),
    })?;
    let web = Web::new(limits);
    let (sender, receiver) = sync_channel(WAITING_PARTS);
    let mut parts = Parts {
        agent: Some(web.agent()),
        receiver: Some(receiver),
        deadline: deadline.clone(),
        silence: config.service_timeout,
        trouble: Trouble::default(),
        part: Vec::new(),
        at: 0,
    };
    thread::Builder::new()
        .name("jindou-load".to_owned())
        .spawn(move || get(&web, address, &sender))
        .map_err(|error| {
            failed(WebError::Unreachable {
                reason: format!("no thread for it: {error}"),
            })
        })?;
    let trouble = parts.trouble.clone();
    let head = match parts.wait() {
        Ok(Some(Part::Head(head))) => head,
        Ok(_) => unreachable!("the head comes first"),
        Err(_) => {
            deadline.left()?;
            return Err(failed(trouble.error().unwrap_or_else(broken)));
        }
    };
    Ok(Fetched {
        source: head
            .format
            .of(Source::reader(head.name, parts).with_base_iri(head.base)),
        trouble,
    })
}

/// What comes from the thread that reads.
enum Part {
    Head(Head),
    Bytes(Vec<u8>),
    End,
    Failed(WebError),
}

struct Head {
    /// As a file's: its ending may tell the compression.
    name: String,
    format: Told,
    /// The address that was read at last.
    base: String,
}

/// The parser is gone.
struct Gone;

fn get(web: &Web, address: Uri, sender: &SyncSender<Part>) {
    let last = match read(web, address, sender) {
        Ok(Ok(())) => Part::End,
        Ok(Err(Gone)) => return,
        Err(error) => Part::Failed(error),
    };
    // Nobody to tell is all right: the update ended.
    let _told = sender.send(last);
}

fn read(web: &Web, address: Uri, sender: &SyncSender<Part>) -> Result<Result<(), Gone>, WebError> {
    let ask = Ask {
        accept: ACCEPT,
        form: None,
        if_none_match: None,
    };
    let (mut response, address) = web.respond(address, ask)?;
    let status = response.status();
    if !status.is_success() {
        return Err(WebError::Status {
            status: status.as_u16(),
            body: excerpt(response.body_mut()),
        });
    }
    let format = format_of(&response, &address);
    let Some(format) = format else {
        let found = media_type(&response).unwrap_or("no media type").to_owned();
        return Err(WebError::MediaType {
            found,
            body: excerpt(response.body_mut()),
        });
    };
    let head = Head {
        name: address.path().to_owned(),
        format,
        base: address.to_string(),
    };
    if sender.send(Part::Head(head)).is_err() {
        return Ok(Err(Gone));
    }
    let mut body = web.body(response);
    loop {
        // What is there goes on at once: a slow server is not a silent one.
        let mut part = vec![0; PART_BYTES];
        let read = body.read(&mut part).map_err(|error| {
            web.broken().unwrap_or_else(|| WebError::Unreachable {
                reason: error.to_string(),
            })
        });
        match read? {
            0 => return Ok(Ok(())),
            count => part.truncate(count),
        }
        if sender.send(Part::Bytes(part)).is_err() {
            return Ok(Err(Gone));
        }
    }
}

/// What is told of a document's format.
enum Told {
    Format(Format),
    /// Nothing that must hold; the document says it.
    Vaguely(Option<Format>),
}

impl Told {
    fn of(&self, source: Source) -> Source {
        match self {
            Self::Format(format) => source.with_format(*format),
            Self::Vaguely(Some(likely)) => source.with_likely_format(*likely),
            Self::Vaguely(None) => source,
        }
    }
}

/// The format of a document, by its media type; by the ending of its path, and by how it begins, where
/// that is vague.
fn format_of(response: &Response<Body>, address: &Uri) -> Option<Told> {
    let told = media_type(response).unwrap_or_default();
    let (named, _) = Format::from_file_name(address.path());
    let by_type = || Format::from_name(told).ok();
    match Format::is_vague(told) {
        true => Some(Told::Vaguely(named.or_else(by_type))),
        false => by_type().map(Told::Format),
    }
}

/// The reading end.
struct Parts {
    /// Until it is shut.
    agent: Option<Agent>,
    /// Until the end has come.
    receiver: Option<Receiver<Part>>,
    deadline: Deadline,
    /// How long nothing may come.
    silence: Duration,
    trouble: Trouble,
    part: Vec<u8>,
    /// So much of the part is read.
    at: usize,
}

impl Parts {
    /// What comes next; nothing at the end.
    ///
    /// # Errors
    /// If nothing comes in time, or [`Trouble`] is noted.
    fn wait(&mut self) -> io::Result<Option<Part>> {
        let Some(receiver) = &self.receiver else {
            return Ok(None);
        };
        let begin = Instant::now();
        let failed = |error: WebError| {
            let _known = self.trouble.0.set(error.clone());
            Err(io::Error::other(error))
        };
        loop {
            match receiver.recv_timeout(LOOK) {
                Ok(Part::End) => {
                    self.receiver = None;
                    return Ok(None);
                }
                Ok(Part::Failed(error)) => return failed(error),
                Ok(part) => return Ok(Some(part)),
                Err(RecvTimeoutError::Disconnected) => return failed(broken()),
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(error) = self.deadline.left() {
                        return Err(io::Error::new(io::ErrorKind::TimedOut, error));
                    }
                    if begin.elapsed() > self.silence {
                        let limit = self.silence;
                        return failed(WebError::Timeout { limit });
                    }
                }
            }
        }
    }
}

/// Its thread panicked: what is missing must not be taken for the end.
fn broken() -> WebError {
    WebError::Unreachable {
        reason: "an internal error ended the request".to_owned(),
    }
}

impl Read for Parts {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.part.len() {
            if let Err(error) = self.deadline.left() {
                return Err(io::Error::new(io::ErrorKind::TimedOut, error));
            }
            (self.part, self.at) = match self.wait()? {
                Some(Part::Bytes(part)) => (part, 0),
                None => return Ok(0),
                Some(_) => unreachable!("bytes follow the head"),
            };
        }
        let count = buffer.len().min(self.part.len() - self.at);
        buffer[..count].copy_from_slice(&self.part[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        if let Some(agent) = self.agent.take() {
            agent.shutdown();
        }
    }
}
