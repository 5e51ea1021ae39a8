//! How are requests sent to the web, where the settings allow it?
//!
//! Each address must be allowed, those of redirections too; a request has limits of time and size;
//! and shutting the agent ends it from outside.

use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use jindou_exec::ServiceError;
use oxiri::Iri;
use ureq::http::{Response, Uri, header};
use ureq::{Agent, Body};

use crate::policy::{AddressPolicy, address};

/// Redirections that are followed.
const MOST_REDIRECTIONS: usize = 5;
/// Bytes of an error's message that are read,
const EXCERPT_BYTES: u64 = 2048;
/// and characters of it that are told.
const EXCERPT_CHARS: usize = 300;

/// Why a request was not answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WebError {
    /// The settings do not allow to send it.
    #[error("requests to it are not allowed here")]
    NotAllowed,
    /// It is no address of HTTP.
    #[error("this is no address of the web: {reason}")]
    NoAddress {
        /// Why not.
        reason: String,
    },
    /// It could not be reached, or the connection broke.
    #[error("it cannot be reached: {reason}")]
    Unreachable {
        /// Why.
        reason: String,
    },
    /// It took too long.
    #[error("it took longer than {} s", limit.as_secs_f64())]
    Timeout {
        /// The limit.
        limit: Duration,
    },
    /// It refused, or failed.
    #[error("it answered with status {status}{}", after(body))]
    Status {
        /// The status of HTTP.
        status: u16,
        /// How its message begins.
        body: String,
    },
    /// It answered with something other than what was asked for.
    #[error(
        "it answered with {found}, which is no format of RDF that is read here{}",
        after(body)
    )]
    MediaType {
        /// The media type.
        found: String,
        /// How the answer begins.
        body: String,
    },
    /// Its answer is not as it should be.
    #[error("its answer is wrong: {reason}")]
    Malformed {
        /// What is wrong.
        reason: String,
    },
    /// Its answer is too large.
    #[error("its answer is larger than {limit_bytes} bytes")]
    TooLarge {
        /// The limit.
        limit_bytes: u64,
    },
}

/// The beginning of a message behind what it belongs to.
fn after(text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!(": {text}"),
    }
}

impl From<WebError> for ServiceError {
    fn from(error: WebError) -> Self {
        match error {
            WebError::NotAllowed => Self::NotAllowed,
            WebError::NoAddress { reason } => Self::NoEndpoint { reason },
            WebError::Unreachable { reason } => Self::Unreachable { reason },
            WebError::Timeout { limit } => Self::Timeout { limit },
            WebError::Status { status, body } => Self::Status { status, body },
            WebError::MediaType { found, body } => Self::MediaType { found, body },
            WebError::Malformed { reason } => Self::Malformed { reason },
            WebError::TooLarge { limit_bytes } => Self::TooLarge { limit_bytes },
        }
    }
}

/// What a request may do.
#[derive(Clone, Debug)]
pub(crate) struct WebLimits {
    /// All of these must allow an address.
    pub(crate) policies: Vec<AddressPolicy>,
    pub(crate) connect_timeout: Duration,
    /// Time for the request and its answer.
    pub(crate) timeout: Option<Duration>,
    /// Bytes of the answer.
    pub(crate) response_bytes: u64,
}

impl WebLimits {
    /// The address of an IRI that requests may be sent to.
    ///
    /// # Errors
    /// [`WebError::NotAllowed`] and [`WebError::NoAddress`].
    pub(crate) fn allowed(&self, iri: &str) -> Result<Uri, WebError> {
        if self.policies.contains(&AddressPolicy::None) {
            return Err(WebError::NotAllowed);
        }
        let address = address(iri)?;
        match self.policies.iter().all(|policy| policy.allows(&address)) {
            true => Ok(address),
            false => Err(WebError::NotAllowed),
        }
    }
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'a> {
    /// The media types that can be read.
    pub(crate) accept: &'a str,
    /// By a POST of this form, or by a GET if there is none.
    pub(crate) form: Option<&'a str>,
    /// The version that is there already: of the same one, nothing but that comes.
    pub(crate) if_none_match: Option<&'a str>,
}

/// A request under way.
pub(crate) struct Web {
    agent: Agent,
    limits: WebLimits,
    deadline: Option<Instant>,
    received: Arc<AtomicU64>,
    /// Why the answer could not be read on.
    broken: OnceLock<WebError>,
}

impl Web {
    /// A request, whose time begins now.
    pub(crate) fn new(limits: WebLimits) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // Each address must be allowed, so redirections are followed here.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .user_agent(concat!("jindou/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(limits.connect_timeout))
            .build();
        Self {
            agent: config.new_agent(),
            deadline: limits.timeout.map(|timeout| Instant::now() + timeout),
            limits,
            received: Arc::default(),
            broken: OnceLock::new(),
        }
    }

    /// What shuts its connections.
    pub(crate) fn agent(&self) -> Agent {
        self.agent.clone()
    }

    /// The bytes of the answer that have come.
    pub(crate) fn received(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.received)
    }

    /// The response that is no redirection, and the address that gave it.
    ///
    /// # Errors
    /// Where it cannot be had; any status is a response.
    pub(crate) fn respond(
        &self,
        mut address: Uri,
        mut ask: Ask<'_>,
    ) -> Result<(Response<Body>, Uri), WebError> {
        for _ in 0..=MOST_REDIRECTIONS {
            let now = Instant::now();
            let left = self
                .deadline
                .map(|deadline| deadline.saturating_duration_since(now));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(self.timed_out());
            }
            let response = match ask.form {
                Some(form) => self
                    .agent
                    .post(&address)
                    .header(header::ACCEPT, ask.accept)
                    .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
                    .config()
                    .timeout_global(left)
                    .build()
                    .send(form),
                None => {
                    let mut request = self.agent.get(&address).header(header::ACCEPT, ask.accept);
                    if let Some(version) = ask.if_none_match {
                        request = request.header(header::IF_NONE_MATCH, version);
                    }
                    request.config().timeout_global(left).build().call()
                }
            };
            let response = response.map_err(|error| self.failed(&error))?;
            match response.status().as_u16() {
                301 | 302 | 307 | 308 => (),
                303 => ask.form = None,
                _ => return Ok((response, address)),
            }
            address = self.redirected(&address, &response)?;
        }
        Err(WebError::Unreachable {
            reason: format!("more than {MOST_REDIRECTIONS} redirections"),
        })
    }

    fn redirected(&self, from: &Uri, response: &Response<Body>) -> Result<Uri, WebError> {
        let wrong = |reason: String| WebError::Malformed { reason };
        let location = response
            .headers()
            .get(header::LOCATION)
            .and_then(|location| location.to_str().ok())
            .ok_or_else(|| wrong("a redirection without an address".to_owned()))?;
        let resolved = Iri::parse(from.to_string())
            .and_then(|from| from.resolve(location))
            .map_err(|error| wrong(format!("a redirection to {location}: {error}")))?;
        let allowed = self.limits.allowed(resolved.as_str());
        allowed.map_err(|error| match error {
            WebError::NotAllowed => WebError::Unreachable {
                reason: format!("it redirects to <{resolved}>, which may not be called here"),
            },
            other => other,
        })
    }

    /// The bytes of an answer, as far as its limits allow.
    pub(crate) fn body(&self, response: Response<Body>) -> impl Read {
        Counted {
            inner: response.into_body().into_reader(),
            web: self,
        }
    }

    /// Why [`Web::body`] could not be read on, if it could not.
    pub(crate) fn broken(&self) -> Option<WebError> {
        self.broken.get().cloned()
    }

    fn failed(&self, error: &ureq::Error) -> WebError {
        match error {
            ureq::Error::Timeout(ureq::Timeout::Resolve | ureq::Timeout::Connect) => {
                let limit = self.limits.connect_timeout.as_secs_f64();
                WebError::Unreachable {
                    reason: format!("no connection within {limit} s"),
                }
            }
            ureq::Error::Timeout(_) => self.timed_out(),
            ureq::Error::BadUri(reason) => WebError::NoAddress {
                reason: reason.clone(),
            },
            other => WebError::Unreachable {
                reason: other.to_string(),
            },
        }
    }

    fn timed_out(&self) -> WebError {
        WebError::Timeout {
            limit: self.limits.timeout.unwrap_or_default(),
        }
    }
}

/// What a response says it is in.
pub(crate) fn media_type(response: &Response<Body>) -> Option<&str> {
    let value = response.headers().get(header::CONTENT_TYPE)?;
    value.to_str().ok()
}

/// How a message begins, on one line.
pub(crate) fn excerpt(body: &mut Body) -> String {
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
    web: &'a Web,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let web = self.web;
        let count = self.inner.read(buffer).inspect_err(|error| {
            let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
            let failed = match inner {
                Some(error) => web.failed(error),
                None => WebError::Unreachable {
                    reason: format!("the connection broke: {error}"),
                },
            };
            // The first reason counts.
            let _known = web.broken.set(failed);
        })?;
        let received = web.received.fetch_add(count as u64, Ordering::Relaxed) + count as u64;
        if received > web.limits.response_bytes {
            let error = WebError::TooLarge {
                limit_bytes: web.limits.response_bytes,
            };
            let _known = web.broken.set(error.clone());
            return Err(std::io::Error::other(error));
        }
        Ok(count)
    }
}
