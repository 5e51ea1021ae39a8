//! How are other SPARQL endpoints called?
//!
//! By the SPARQL 1.1 Protocol: the query in a POST, the results in JSON, XML or TSV. A call has a
//! thread of its own, which reads and parses; whoever waits for its rows can stop at any time,
//! and then the connection is shut and the thread ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use jindou_exec::{ServiceCall, ServiceCaller, ServiceError, ServiceNext, ServiceRows, Services};
use oxrdf::Term;
use sparesults::{
    QueryResultsFormat, QueryResultsParseError, QueryResultsParser, ReaderQueryResultsParserOutput,
};
use ureq::http::{Response, Uri, header};
use ureq::{Agent, Body};

use crate::policy::AddressPolicy;
use crate::web::{Ask, Web, WebLimits, excerpt, media_type};
use crate::{Config, QueryOptions};

/// Solutions handed over at once,
const BATCH_ROWS: usize = 512;
/// or fewer, if their text has this many bytes.
const BATCH_BYTES: usize = 64 << 10;
/// Batches that may wait for the reader.
const WAITING_BATCHES: usize = 4;

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
    policies: [AddressPolicy; 2],
    /// What is called instead of the network.
    own: Option<Arc<dyn ServiceCaller>>,
    connect_timeout: Duration,
}

impl ServiceCaller for Guarded {
    fn call(&self, call: &ServiceCall<'_>) -> Result<Box<dyn ServiceRows>, ServiceError> {
        let limits = WebLimits {
            policies: self.policies.to_vec(),
            connect_timeout: self.connect_timeout,
            timeout: Some(call.timeout),
            response_bytes: call.response_bytes,
        };
        let address = limits.allowed(call.endpoint)?;
        if let Some(own) = &self.own {
            return own.call(call);
        }
        let web = Web::new(limits);
        let (agent, received) = (web.agent(), web.received());
        let job = Job {
            web,
            form: form(call.query),
            variables: call.variables.to_vec(),
        };
        let (sender, receiver) = sync_channel(WAITING_BATCHES);
        thread::Builder::new()
            .name("jindou-service".to_owned())
            .spawn(move || job.run(address, &sender))
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
    web: Web,
    form: String,
    variables: Vec<String>,
}

/// The reader of the rows is gone.
struct Gone;

impl Job {
    fn run(self, address: Uri, sender: &SyncSender<Message>) {
        let last = match self.answer(address, sender) {
            Ok(Ok(())) => Message::End,
            Ok(Err(Gone)) => return,
            Err(error) => Message::Failed(error),
        };
        // Nobody to tell is all right: the query ended.
        let _told = sender.send(last);
    }

    fn answer(
        &self,
        address: Uri,
        sender: &SyncSender<Message>,
    ) -> Result<Result<(), Gone>, ServiceError> {
        let ask = Ask {
            accept: ACCEPT,
            form: Some(&self.form),
            if_none_match: None,
        };
        let (response, _) = self.web.respond(address, ask)?;
        let (format, response) = self.format(response)?;
        self.read(format, response, sender)
    }

    /// The format of the answer, if it is one.
    fn format(
        &self,
        mut response: Response<Body>,
    ) -> Result<(QueryResultsFormat, Response<Body>), ServiceError> {
        let status = response.status();
        let media_type = media_type(&response).unwrap_or("no media type").to_owned();
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
        let reader = self.web.body(response);
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
        match self.web.broken() {
            Some(broken) => broken.into(),
            None => ServiceError::Malformed {
                reason: error.to_string(),
            },
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
