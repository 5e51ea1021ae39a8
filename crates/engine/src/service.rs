//! How are other SPARQL endpoints called?
//!
//! By the SPARQL 1.1 Protocol: the query in a POST, the results in JSON, XML or TSV. A call has a
//! thread of its own, which reads and parses; whoever waits for its rows can stop at any time,
//! and then the connection is shut and the thread ends.

use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use jindou_exec::{ServiceCall, ServiceCaller, ServiceError, ServiceNext, ServiceRows, Services};
use oxiri::Iri;
use oxrdf::Term;
use sparesults::{
    QueryResultsFormat, QueryResultsParseError, QueryResultsParser, ReaderQueryResultsParserOutput,
};
use ureq::http::{Response, Uri, header};
use ureq::{Agent, Body};

use crate::policy::{ServicePolicy, address};
use crate::{Config, QueryOptions};

/// Redirections that are followed.
const MOST_REDIRECTIONS: usize = 5;
/// Solutions handed over at once,
const BATCH_ROWS: usize = 512;
/// or fewer, if their text has this many bytes.
const BATCH_BYTES: usize = 64 << 10;
/// Batches that may wait for the reader.
const WAITING_BATCHES: usize = 4;
/// Bytes of an error's message that are read,
const EXCERPT_BYTES: u64 = 2048;
/// and characters of it that are told.
const EXCERPT_CHARS: usize = 300;

const ACCEPT: &str = "application/sparql-results+json, application/sparql-results+xml;q=0.8, \
                      text/tab-separated-values;q=0.5";

/// How a query calls services, by the settings of the database and its own.
pub(crate) fn services(config: &Config, options: &QueryOptions) -> Services {
    let policies = [
        config.services.clone(),
        options.services.clone().unwrap_or_default(),
    ];
    Services {
        caller: Arc::new(Guarded {
            policies,
            own: config.service_caller.clone(),
            connect_timeout: config.service_connect_timeout,
        }),
        timeout: config.service_timeout,
        response_bytes: config.service_response_bytes,
    }
}

/// Calls what all policies allow.
#[derive(Debug)]
struct Guarded {
    policies: [ServicePolicy; 2],
    /// What is called instead of the network.
    own: Option<Arc<dyn ServiceCaller>>,
    connect_timeout: Duration,
}

impl ServiceCaller for Guarded {
    fn call(&self, call: &ServiceCall<'_>) -> Result<Box<dyn ServiceRows>, ServiceError> {
        let first = allowed(&self.policies, call.endpoint)?;
        if let Some(own) = &self.own {
            return own.call(call);
        }
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // Each address must be allowed, so redirections are followed here.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .user_agent(concat!("jindou/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(self.connect_timeout))
            .build();
        let agent = config.new_agent();
        let received = Arc::new(AtomicU64::new(0));
        let job = Job {
            agent: agent.clone(),
            policies: self.policies.clone(),
            address: first,
            form: form(call.query),
            variables: call.variables.to_vec(),
            connect_timeout: self.connect_timeout,
            timeout: call.timeout,
            deadline: Instant::now() + call.timeout,
            response_bytes: call.response_bytes,
            received: Arc::clone(&received),
            broken: Arc::default(),
        };
        let (sender, receiver) = sync_channel(WAITING_BATCHES);
        thread::Builder::new()
            .name("jindou-service".to_owned())
            .spawn(move || job.run(&sender))
            .map_err(|error| ServiceError::Unreachable {
                reason: format!("no thread for the call: {error}"),
            })?;
        Ok(Box::new(Rows {
            agent: Some(agent),
            receiver,
            received,
        }))
    }
}

/// The address of an endpoint that may be called.
fn allowed(policies: &[ServicePolicy], iri: &str) -> Result<Uri, ServiceError> {
    if policies.contains(&ServicePolicy::None) {
        return Err(ServiceError::NotAllowed);
    }
    let address = address(iri)?;
    if policies.iter().all(|policy| policy.allows(&address)) {
        Ok(address)
    } else {
        Err(ServiceError::NotAllowed)
    }
}

/// The body of the request.
fn form(query: &str) -> String {
    let mut form = String::with_capacity(query.len() + query.len() / 2 + 6);
    form.push_str("query=");
    for byte in query.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                form.push(char::from(byte));
            }
            b' ' => form.push('+'),
            byte => form.push_str(&format!("%{byte:02X}")),
        }
    }
    form
}

enum Message {
    Rows(Vec<Vec<Option<Term>>>),
    End,
    Failed(ServiceError),
}

/// The reading end of a call.
struct Rows {
    /// Until the call is ended.
    agent: Option<Agent>,
    receiver: Receiver<Message>,
    received: Arc<AtomicU64>,
}

impl ServiceRows for Rows {
    fn next(&mut self, wait: Duration) -> Result<ServiceNext, ServiceError> {
        match self.receiver.recv_timeout(wait) {
            Ok(Message::Rows(rows)) => Ok(ServiceNext::Rows(rows)),
            Ok(Message::End) => Ok(ServiceNext::End),
            Ok(Message::Failed(error)) => Err(error),
            Err(RecvTimeoutError::Timeout) => Ok(ServiceNext::Waiting),
            // Its thread panicked: what is missing must not be taken for the end.
            Err(RecvTimeoutError::Disconnected) => Err(ServiceError::Unreachable {
                reason: "an internal error ended the call".to_owned(),
            }),
        }
    }

    fn received_bytes(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        if let Some(agent) = self.agent.take() {
            agent.shutdown();
        }
    }
}

/// One call, on its thread.
struct Job {
    agent: Agent,
    policies: [ServicePolicy; 2],
    address: Uri,
    form: String,
    variables: Vec<String>,
    connect_timeout: Duration,
    timeout: Duration,
    deadline: Instant,
    response_bytes: u64,
    received: Arc<AtomicU64>,
    /// Why the answer could not be read on.
    broken: Arc<OnceLock<ServiceError>>,
}

/// The reader of the rows is gone.
struct Gone;

impl Job {
    fn run(mut self, sender: &SyncSender<Message>) {
        let last = match self.answer(sender) {
            Ok(Ok(())) => Message::End,
            Ok(Err(Gone)) => return,
            Err(error) => Message::Failed(error),
        };
        // Nobody to tell is all right: the query ended.
        let _told = sender.send(last);
    }

    fn answer(&mut self, sender: &SyncSender<Message>) -> Result<Result<(), Gone>, ServiceError> {
        let response = self.response()?;
        let (format, response) = self.format(response)?;
        self.read(format, response, sender)
    }

    /// The response that is no redirection.
    fn response(&mut self) -> Result<Response<Body>, ServiceError> {
        let mut posts = true;
        for _ in 0..=MOST_REDIRECTIONS {
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.timed_out());
            }
            let response = if posts {
                self.agent
                    .post(&self.address)
                    .header(header::ACCEPT, ACCEPT)
                    .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
                    .config()
                    .timeout_global(Some(left))
                    .build()
                    .send(self.form.as_str())
            } else {
                self.agent
                    .get(&self.address)
                    .header(header::ACCEPT, ACCEPT)
                    .config()
                    .timeout_global(Some(left))
                    .build()
                    .call()
            };
            let response = response.map_err(|error| self.failed(&error))?;
            match response.status().as_u16() {
                301 | 302 | 307 | 308 => (),
                303 => posts = false,
                _ => return Ok(response),
            }
            self.address = self.redirected(&response)?;
        }
        Err(ServiceError::Unreachable {
            reason: format!("more than {MOST_REDIRECTIONS} redirections"),
        })
    }

    fn redirected(&self, response: &Response<Body>) -> Result<Uri, ServiceError> {
        let wrong = |reason: String| ServiceError::Malformed { reason };
        let location = response
            .headers()
            .get(header::LOCATION)
            .and_then(|location| location.to_str().ok())
            .ok_or_else(|| wrong("a redirection without an address".to_owned()))?;
        let resolved = Iri::parse(self.address.to_string())
            .and_then(|from| from.resolve(location))
            .map_err(|error| wrong(format!("a redirection to {location}: {error}")))?;
        allowed(&self.policies, resolved.as_str()).map_err(|error| match error {
            ServiceError::NotAllowed => ServiceError::Unreachable {
                reason: format!("it redirects to <{resolved}>, which may not be called here"),
            },
            other => other,
        })
    }

    /// The format of the answer, if it is one.
    fn format(
        &self,
        mut response: Response<Body>,
    ) -> Result<(QueryResultsFormat, Response<Body>), ServiceError> {
        let status = response.status();
        let media_type = response
            .headers()
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or("no media type")
            .to_owned();
        if !status.is_success() {
            return Err(ServiceError::Status {
                status: status.as_u16(),
                body: excerpt(response.body_mut()),
            });
        }
        // CSV does not tell what kind of term a value is.
        let format = QueryResultsFormat::from_media_type(&media_type)
            .filter(|format| *format != QueryResultsFormat::Csv);
        let Some(format) = format else {
            return Err(ServiceError::MediaType {
                found: media_type,
                body: excerpt(response.body_mut()),
            });
        };
        let tells_its_end = response.headers().contains_key(header::CONTENT_LENGTH)
            || response.headers().contains_key(header::TRANSFER_ENCODING);
        if format == QueryResultsFormat::Tsv && !tells_its_end {
            return Err(ServiceError::Malformed {
                reason: "nothing tells where its table ends".to_owned(),
            });
        }
        Ok((format, response))
    }

    fn read(
        &self,
        format: QueryResultsFormat,
        response: Response<Body>,
        sender: &SyncSender<Message>,
    ) -> Result<Result<(), Gone>, ServiceError> {
        let reader = Counted {
            inner: response.into_body().into_reader(),
            job: self,
        };
        let parser = QueryResultsParser::from_format(format);
        let solutions = match parser.for_reader(reader) {
            Ok(ReaderQueryResultsParserOutput::Solutions(solutions)) => solutions,
            Ok(ReaderQueryResultsParserOutput::Boolean(_)) => {
                return Err(ServiceError::Malformed {
                    reason: "a truth value where solutions were asked for".to_owned(),
                });
            }
            Err(error) => return Err(self.unreadable(&error)),
        };
        let mut rows = Vec::new();
        let mut bytes = 0;
        for solution in solutions {
            let solution = solution.map_err(|error| self.unreadable(&error))?;
            let row: Vec<Option<Term>> = self
                .variables
                .iter()
                .map(|name| solution.get(name.as_str()).cloned())
                .collect();
            bytes += row.iter().flatten().map(text_bytes).sum::<usize>();
            rows.push(row);
            if rows.len() == BATCH_ROWS || bytes > BATCH_BYTES {
                bytes = 0;
                if sender
                    .send(Message::Rows(std::mem::take(&mut rows)))
                    .is_err()
                {
                    return Ok(Err(Gone));
                }
            }
        }
        if !rows.is_empty() && sender.send(Message::Rows(rows)).is_err() {
            return Ok(Err(Gone));
        }
        Ok(Ok(()))
    }

    fn unreadable(&self, error: &QueryResultsParseError) -> ServiceError {
        self.broken
            .get()
            .cloned()
            .unwrap_or_else(|| ServiceError::Malformed {
                reason: error.to_string(),
            })
    }

    fn failed(&self, error: &ureq::Error) -> ServiceError {
        match error {
            ureq::Error::Timeout(ureq::Timeout::Resolve | ureq::Timeout::Connect) => {
                let limit = self.connect_timeout.as_secs_f64();
                ServiceError::Unreachable {
                    reason: format!("no connection within {limit} s"),
                }
            }
            ureq::Error::Timeout(_) => self.timed_out(),
            ureq::Error::BadUri(reason) => ServiceError::NoEndpoint {
                reason: reason.clone(),
            },
            other => ServiceError::Unreachable {
                reason: other.to_string(),
            },
        }
    }

    fn timed_out(&self) -> ServiceError {
        ServiceError::Timeout {
            limit: self.timeout,
        }
    }
}

/// About the bytes that a term holds.
fn text_bytes(term: &Term) -> usize {
    match term {
        Term::NamedNode(node) => node.as_str().len(),
        Term::BlankNode(node) => node.as_str().len(),
        Term::Literal(literal) => literal.value().len() + literal.datatype().as_str().len(),
    }
}

/// How a message begins, on one line.
fn excerpt(body: &mut Body) -> String {
    let mut bytes = Vec::new();
    // What cannot be read is not told; the status is.
    let _ended = body.as_reader().take(EXCERPT_BYTES).read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let mut excerpt: String = line.chars().take(EXCERPT_CHARS).collect();
    if excerpt.len() < line.len() {
        excerpt.push_str("...");
    }
    excerpt
}

/// Counts the bytes of an answer, up to a limit.
struct Counted<'a, R> {
    inner: R,
    job: &'a Job,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let job = self.job;
        let count = self.inner.read(buffer).inspect_err(|error| {
            let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
            let failed = match inner {
                Some(error) => job.failed(error),
                None => ServiceError::Unreachable {
                    reason: format!("the connection broke: {error}"),
                },
            };
            // The first reason counts.
            let _known = job.broken.set(failed);
        })?;
        let received = job.received.fetch_add(count as u64, Ordering::Relaxed) + count as u64;
        if received > job.response_bytes {
            let error = ServiceError::TooLarge {
                limit_bytes: job.response_bytes,
            };
            let _known = job.broken.set(error.clone());
            return Err(std::io::Error::other(error));
        }
        Ok(count)
    }
}
