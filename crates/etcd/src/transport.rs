//! How does a request get an answer from one of the endpoints?
//!
//! They are tried in turn, beginning with the last that worked. What may have been handled is not sent again
//! if it changes something: who asked hears that the outcome is unknown.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use ureq::http::{Response, header};
use ureq::tls::TlsConfig;
use ureq::{Agent, Body};

use crate::options::{Options, User};
use crate::unsent::{agent, is_unsent};
use crate::wire::{Refusal, TokenAnswer, parse};
use crate::{Cause, Error, secured};

/// The most bytes that are read of an answer, or of a message of a watch.
pub const MOST_ANSWER_BYTES: usize = 16 << 20;

/// Has a member refuse at once what it cannot do without a leader, instead of holding it.
const NEEDS_LEADER: (&str, &str) = ("Grpc-Metadata-hasleader", "true");
const NO_LEADER: &str = "etcdserver: no leader";

/// Status codes of gRPC: <https://grpc.io/docs/guides/status-codes/>.
mod code {
    pub(super) const INVALID_ARGUMENT: u32 = 3;
    pub(super) const NOT_FOUND: u32 = 5;
    pub(super) const ALREADY_EXISTS: u32 = 6;
    pub(super) const PERMISSION_DENIED: u32 = 7;
    pub(super) const RESOURCE_EXHAUSTED: u32 = 8;
    pub(super) const FAILED_PRECONDITION: u32 = 9;
    pub(super) const OUT_OF_RANGE: u32 = 11;
    pub(super) const UNIMPLEMENTED: u32 = 12;
    pub(super) const UNAUTHENTICATED: u32 = 16;
}

/// Whether a request may be handled twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resend {
    /// It changes nothing, or nothing that matters, or the same again.
    Always,
    /// It goes to another endpoint only if the one before cannot have handled it.
    IfUnsent,
}

/// How long endpoints may take.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    /// For the whole answer.
    Whole(Duration),
    /// For the begin of a stream, and for each pause in it.
    Stream { begin: Duration, pause: Duration },
}

/// Why an endpoint did not do what it was asked for.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It did not handle it; another one may.
    Unsent(Cause),
    /// It may have handled it.
    Lost(Cause),
    /// It says no, and others would.
    Refused(Refusal),
    /// It does not know who asks.
    Unauthenticated(Refusal),
}

/// What is known of etcd, by all that one client does.
struct Shared {
    options: Options,
    tls: TlsConfig,
    /// The place of the endpoint to begin with.
    first: AtomicUsize,
    token: Mutex<Token>,
}

/// What says who asks.
#[derive(Clone, PartialEq, Eq)]
enum Token {
    Unknown,
    /// etcd does not want to know.
    NotNeeded,
    Known(Arc<str>),
}

/// The way to etcd. Clones share its connections.
#[derive(Clone)]
pub(crate) struct Transport {
    shared: Arc<Shared>,
    agent: Agent,
}

impl Transport {
    /// # Errors
    /// Those of [`secured::configuration`].
    pub(crate) fn new(options: Options) -> Result<Self, Error> {
        let patience = Patience::Whole(options.timeout);
        let shared = Arc::new(Shared {
            tls: secured::configuration(&options)?,
            options,
            first: AtomicUsize::new(0),
            token: Mutex::new(Token::Unknown),
        });
        let agent = shared.agent(patience);
        Ok(Self { shared, agent })
    }

    /// The same, with other connections.
    pub(crate) fn with_patience(&self, patience: Patience) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            agent: self.shared.agent(patience),
        }
    }

    /// What ends all that this one waits for, from another thread.
    pub(crate) fn agent(&self) -> Agent {
        self.agent.clone()
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.shared.options.timeout
    }

    /// Asks for something, and reads the answer as a whole.
    ///
    /// # Errors
    /// [`Error::NoAnswer`], [`Error::Refused`], [`Error::TooLarge`]; [`Error::Unknown`] of what may not be sent
    /// again.
    pub(crate) fn ask<T>(
        &self,
        resend: Resend,
        path: &str,
        request: &Json,
        read: impl Fn(&[u8]) -> Result<T, Cause>,
    ) -> Result<T, Error> {
        self.open(resend, path, request, |mut response| {
            let bytes = whole(&mut response)?;
            Ok(read(&bytes)?)
        })
    }

    /// Asks for something, of which `begin` decides whether it succeeded.
    ///
    /// # Errors
    /// Those of [`Transport::ask`].
    pub(crate) fn open<T>(
        &self,
        resend: Resend,
        path: &str,
        request: &Json,
        begin: impl Fn(Response<Body>) -> Result<T, Failure>,
    ) -> Result<T, Error> {
        let endpoints = self.shared.options.endpoints.as_slice();
        let first = self.shared.first.load(Ordering::Relaxed);
        let mut tried = 0;
        loop {
            let place = (first + tried) % endpoints.len();
            let endpoint = &endpoints[place];
            let failure = match self.try_one(endpoint, path, request, &begin) {
                Ok(value) => {
                    self.shared.first.store(place, Ordering::Relaxed);
                    return Ok(value);
                }
                Err(failure) => failure,
            };
            tried += 1;
            let is_last = tried == endpoints.len();
            if let Some(error) = failure.decided(endpoint, resend, is_last) {
                // The next call begins elsewhere.
                let next = (place + 1) % endpoints.len();
                self.shared.first.store(next, Ordering::Relaxed);
                return Err(error);
            }
        }
    }

    /// Asks one endpoint; if it does not know who asks, once more with a new token.
    fn try_one<T>(
        &self,
        endpoint: &str,
        path: &str,
        request: &Json,
        begin: &impl Fn(Response<Body>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let token = self.token(endpoint)?;
        let begun = self.post(endpoint, path, request, &token).and_then(begin);
        let Err(Failure::Unauthenticated(refusal)) = begun else {
            return begun;
        };
        if self.shared.options.user.is_none() {
            return Err(Failure::Refused(refusal));
        }
        self.forget(&token);
        let token = self.token(endpoint)?;
        self.post(endpoint, path, request, &token).and_then(begin)
    }

    /// What says who asks, which may have to be asked for. That fails before the request itself is sent.
    fn token(&self, endpoint: &str) -> Result<Token, Failure> {
        let Some(User { name, password }) = &self.shared.options.user else {
            return Ok(Token::NotNeeded);
        };
        let known = self.shared.token.lock().clone();
        if known != Token::Unknown {
            return Ok(known);
        }
        let request = json!({ "name": name, "password": password });
        let answer = self.post(endpoint, "/v3/auth/authenticate", &request, &Token::Unknown);
        let token = match answer.and_then(|mut response| whole(&mut response)) {
            Ok(bytes) => {
                let answer: TokenAnswer = parse(&bytes).map_err(Failure::Unsent)?;
                Token::Known(answer.token.into())
            }
            Err(Failure::Refused(refusal)) if refusal.message.contains("is not enabled") => {
                Token::NotNeeded
            }
            Err(Failure::Lost(cause)) => return Err(Failure::Unsent(cause)),
            Err(Failure::Unauthenticated(refusal)) => return Err(Failure::Refused(refusal)),
            Err(failure) => return Err(failure),
        };
        *self.shared.token.lock() = token.clone();
        Ok(token)
    }

    fn forget(&self, token: &Token) {
        let mut known = self.shared.token.lock();
        // Another thread may have a new one already.
        if *known == *token {
            *known = Token::Unknown;
        }
    }

    /// Sends a request; a response that it gives is a success.
    fn post(
        &self,
        endpoint: &str,
        path: &str,
        request: &Json,
        token: &Token,
    ) -> Result<Response<Body>, Failure> {
        let mut post = self
            .agent
            .post(format!("{endpoint}{path}"))
            .header(header::CONTENT_TYPE, "application/json")
            .header(NEEDS_LEADER.0, NEEDS_LEADER.1);
        if let Token::Known(token) = token {
            post = post.header(header::AUTHORIZATION, &**token);
        }
        let mut response = post.send(request.to_string())?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status().as_u16();
        let bytes = whole(&mut response)?;
        Err(match Refusal::read(&bytes) {
            Some(refusal) => refusal.into(),
            None => Failure::Lost(Cause::Status(status)),
        })
    }
}

impl Shared {
    fn agent(&self, patience: Patience) -> Agent {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // Whoever answers with one is no etcd.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .user_agent(concat!("jindou/", env!("CARGO_PKG_VERSION")))
            .tls_config(self.tls.clone());
        let config = match patience {
            Patience::Whole(time) => config.timeout_global(Some(time)),
            Patience::Stream { begin, pause } => config
                .timeout_resolve(Some(begin))
                .timeout_connect(Some(begin))
                .timeout_send_request(Some(begin))
                .timeout_send_body(Some(begin))
                .timeout_recv_response(Some(begin))
                .timeout_per_read(Some(pause)),
        };
        agent(config.build())
    }
}

impl Failure {
    /// What the caller hears, if no other endpoint is to be tried.
    fn decided(self, endpoint: &str, resend: Resend, is_last: bool) -> Option<Error> {
        let endpoint = endpoint.to_owned();
        Some(match self {
            Self::Refused(Refusal { code, message })
            | Self::Unauthenticated(Refusal { code, message }) => Error::Refused {
                endpoint,
                code,
                message,
            },
            Self::Lost(source) if resend == Resend::IfUnsent => Error::Unknown { endpoint, source },
            Self::Lost(Cause::TooLarge { limit_bytes }) => Error::TooLarge { limit_bytes },
            Self::Lost(source) | Self::Unsent(source) if is_last => {
                Error::NoAnswer { endpoint, source }
            }
            Self::Lost(source) | Self::Unsent(source) => {
                tracing::debug!(endpoint, %source, "another endpoint of etcd is tried");
                return None;
            }
        })
    }
}

impl From<ureq::Error> for Failure {
    fn from(error: ureq::Error) -> Self {
        match is_unsent(&error) {
            true => Self::Unsent(error.into()),
            false => Self::Lost(error.into()),
        }
    }
}

impl From<Cause> for Failure {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Unavailable { code, message } => Refusal { code, message }.into(),
            cause => Self::Lost(cause),
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let Refusal { code, message } = &refusal;
        if *code == code::UNAUTHENTICATED || wants_token(message) {
            return Self::Unauthenticated(refusal);
        }
        match *code {
            code::INVALID_ARGUMENT
            | code::NOT_FOUND
            | code::ALREADY_EXISTS
            | code::PERMISSION_DENIED
            | code::RESOURCE_EXHAUSTED
            | code::FAILED_PRECONDITION
            | code::OUT_OF_RANGE
            | code::UNIMPLEMENTED => Self::Refused(refusal),
            code => {
                let is_unsent = *message == NO_LEADER;
                let message = refusal.message;
                let cause = Cause::Unavailable { code, message };
                match is_unsent {
                    true => Self::Unsent(cause),
                    false => Self::Lost(cause),
                }
            }
        }
    }
}

/// Whether a token is missing, was forgotten by a member that was restarted, or is older than the rights.
fn wants_token(message: &str) -> bool {
    [
        "user name is empty",
        "invalid auth token",
        "revision of auth store is old",
    ]
    .iter()
    .any(|known| message.contains(known))
}

fn whole(response: &mut Response<Body>) -> Result<Vec<u8>, Failure> {
    let body = response.body_mut().with_config();
    Ok(body.limit(MOST_ANSWER_BYTES as u64).read_to_vec()?)
}

#[cfg(test)]
mod tests;
