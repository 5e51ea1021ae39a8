//! May a client do what it asks for?
//!
//! [`needed`] is the table of what each [`Route`] and method needs, the same for all requests and
//! looked at before any of them is dispatched. To verify a password takes some ten milliseconds, so what
//! was verified is remembered by a keyed hash of the header; the key lives as long as the process, and
//! neither passwords nor tokens are kept.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, StatusCode};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;

use crate::buckets::Buckets;
use crate::config::{AccessPolicy, ServerConfig};
use crate::credentials::{Entries, Role, User};
use crate::error::Refusal;
use crate::execute::no_thread;
use crate::queries::Client;
use crate::route::Route;
use crate::streams::Endpoint;
use crate::websocket;

/// Headers that are remembered at most.
const MOST_REMEMBERED: usize = 1024;
/// The longest header that is looked at, in bytes.
const MOST_HEADER_BYTES: usize = 1024;
/// Passwords that are verified at once: each takes a core, and 19 MiB by default.
const VERIFIED_AT_ONCE: usize = 2;
/// Wrong tries that an address has at once,
const WRONG_TRIES: u32 = 10;
/// and after how long it has one more.
const WRONG_INTERVAL: Duration = Duration::from_secs(6);

/// What a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing: anybody may ask.
    Nothing,
    Role(Role),
}

/// Who sent a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// `None` for an anonymous client.
    pub(crate) user: Option<User>,
    /// What it may do, if anything.
    pub(crate) role: Option<Role>,
}

/// Decides about requests.
pub(crate) struct Access {
    policy: AccessPolicy,
    key: [u8; 32],
    remembered: Mutex<Remembered>,
    verifying: Semaphore,
    wrong: Buckets,
    requests: Option<Buckets>,
}

/// What was verified with these entries.
struct Remembered {
    entries: Option<Arc<Entries>>,
    users: HashMap<[u8; 32], User>,
}

impl Access {
    pub(crate) fn new(config: &ServerConfig) -> Self {
        let mut key = [0; 32];
        getrandom::fill(&mut key).expect("the system has random numbers");
        let of_rate = |rate: std::num::NonZeroU32| {
            Buckets::new(rate.get(), Duration::from_secs(1) / rate.get())
        };
        Self {
            policy: config.access.clone(),
            key,
            remembered: Mutex::new(Remembered {
                entries: None,
                users: HashMap::new(),
            }),
            verifying: Semaphore::new(VERIFIED_AT_ONCE),
            wrong: Buckets::new(WRONG_TRIES, WRONG_INTERVAL),
            requests: config.requests_per_second.map(of_rate),
        }
    }

    /// Counts a request of an address, unless there were too many.
    pub(crate) fn check_rate(&self, address: IpAddr) -> Result<(), Refusal> {
        let Some(requests) = &self.requests else {
            return Ok(());
        };
        let taken = requests.take(address, Instant::now());
        taken.map_err(|wait| too_many("too many requests from this address", wait))
    }

    /// Who sent a request, which may do what the request asks for.
    pub(crate) async fn authorize<B>(
        &self,
        route: &Route,
        request: &Request<B>,
        client: &Client,
    ) -> Result<Identity, Refusal> {
        let Need::Role(needed) = needed(route, request) else {
            return Ok(self.anonymous());
        };
        let identity = self.identify(request, client.address().ip()).await?;
        let user = identity.user.as_ref();
        client.set_user(user.map(|user| Arc::clone(&user.name)));
        identity.check(needed).map(|()| identity)
    }

    fn anonymous(&self) -> Identity {
        Identity {
            user: None,
            role: self.policy.anonymous(),
        }
    }

    async fn identify<B>(
        &self,
        request: &Request<B>,
        address: IpAddr,
    ) -> Result<Identity, Refusal> {
        let mut headers = request.headers().get_all(AUTHORIZATION).iter();
        let (Some(credentials), Some(header)) = (self.policy.credentials(), headers.next()) else {
            return Ok(self.anonymous());
        };
        if headers.next().is_some() {
            let message = "there is more than one header Authorization";
            return Err(Refusal::bad_request(message));
        }
        let entries = credentials.entries();
        let key = self.key_of(header);
        let user = match self.recall(&entries, &key) {
            Some(user) => user,
            None => {
                let user = self.verify(&entries, header, &key, address).await?;
                self.remember(&entries, key, &user);
                user
            }
        };
        Ok(Identity {
            role: Some(user.role),
            user: Some(user),
        })
    }

    async fn verify(
        &self,
        entries: &Arc<Entries>,
        header: &HeaderValue,
        key: &[u8; 32],
        address: IpAddr,
    ) -> Result<User, Refusal> {
        let given = Given::of(header).ok_or_else(|| {
            unauthorized("the header Authorization is neither Basic nor Bearer, or is malformed")
        })?;
        let place = self.verifying.acquire().await;
        let _place = place.expect("the semaphore is never closed");
        // Another request may have brought the same meanwhile, or used up the tries.
        if let Some(user) = self.recall(entries, key) {
            return Ok(user);
        }
        let limited = |wait| too_many("too many wrong names, passwords or tokens", wait);
        self.wrong.check(address, Instant::now()).map_err(limited)?;
        let entries = Arc::clone(entries);
        let verified = tokio::task::spawn_blocking(move || given.verify(&entries)).await;
        let verified = verified.map_err(|error| no_thread(&std::io::Error::other(error)))?;
        verified.ok_or_else(|| {
            tracing::warn!(%address, "a wrong name, password or token");
            // What is counted here is at most as many more as are verified at once.
            let _ = self.wrong.take(address, Instant::now());
            unauthorized("no user has this name and password, or this token")
        })
    }

    /// Not to be found out from outside, so it need not be an HMAC: the key is secret, and so is what
    /// comes of it.
    fn key_of(&self, header: &HeaderValue) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(self.key);
        hash.update(header.as_bytes());
        hash.finalize().into()
    }

    fn recall(&self, entries: &Arc<Entries>, key: &[u8; 32]) -> Option<User> {
        let remembered = self.lock();
        let is_current = remembered
            .entries
            .as_ref()
            .is_some_and(|known| Arc::ptr_eq(known, entries));
        remembered.users.get(key).filter(|_| is_current).cloned()
    }

    fn remember(&self, entries: &Arc<Entries>, key: [u8; 32], user: &User) {
        let mut remembered = self.lock();
        let is_current = remembered
            .entries
            .as_ref()
            .is_some_and(|known| Arc::ptr_eq(known, entries));
        if !is_current || remembered.users.len() >= MOST_REMEMBERED {
            remembered.users.clear();
            remembered.entries = Some(Arc::clone(entries));
        }
        remembered.users.insert(key, user.clone());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Remembered> {
        self.remembered
            .lock()
            .expect("nobody panics while it has it")
    }
}

impl Identity {
    /// Fails unless somebody has this role.
    pub(crate) fn check(&self, needed: Role) -> Result<(), Refusal> {
        match (&self.user, self.role) {
            (_, Some(role)) if role >= needed => Ok(()),
            (None, _) => Err(unauthorized(&format!(
                "this needs a name and a password, or a token, of the role {needed}"
            ))),
            (Some(user), _) => {
                let (name, role) = (&user.name, user.role);
                let message = format!("this needs the role {needed}; {name} has {role}");
                Err(Refusal::new(StatusCode::FORBIDDEN, message))
            }
        }
    }
}

/// What a header has.
enum Given {
    Password { name: String, password: Vec<u8> },
    Token(Vec<u8>),
}

impl Given {
    fn of(header: &HeaderValue) -> Option<Self> {
        let value = header.to_str().ok()?;
        if value.len() > MOST_HEADER_BYTES {
            return None;
        }
        let (scheme, given) = value.split_once(' ')?;
        let given = given.trim();
        if scheme.eq_ignore_ascii_case("bearer") {
            return Some(Self::Token(given.as_bytes().to_vec()));
        }
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let bytes = STANDARD.decode(given).ok()?;
        let colon = bytes.iter().position(|&byte| byte == b':')?;
        Some(Self::Password {
            name: String::from_utf8(bytes[..colon].to_vec()).ok()?,
            password: bytes[colon + 1..].to_vec(),
        })
    }

    fn verify(&self, entries: &Entries) -> Option<User> {
        match self {
            Self::Password { name, password } => entries.user(name, password),
            Self::Token(token) => entries.bearer(token),
        }
    }
}

/// What a request needs, by its route and method. What is not named here is for administrators, unless it
/// only reads.
pub(crate) fn needed<B>(route: &Route, request: &Request<B>) -> Need {
    let method = request.method();
    let reads = matches!(*method, Method::GET | Method::HEAD);
    let posts = method == Method::POST;
    // Browsers ask so whether they may ask, without credentials; it tells which methods there are.
    if method == Method::OPTIONS {
        return Need::Nothing;
    }
    Need::Role(match route {
        Route::Health if reads => return Need::Nothing,
        Route::Metrics | Route::Queries => Role::Admin,
        // What a form asks for is known once it was read: `Service::sparql` checks it again then.
        Route::Home | Route::Sparql if reads || posts => match is_update(request) {
            true => Role::Write,
            false => Role::Read,
        },
        // Nobody can guess the id: who has it asked the query, or may list all of them.
        Route::Query(_) => Role::Read,
        Route::Prefixes if method == Method::PUT => Role::Write,
        Route::Store if !reads => Role::Write,
        Route::Streams(Endpoint::Stream(_)) if websocket::is_asked_for(request) => Role::Write,
        Route::Streams(Endpoint::Stream(_) | Endpoint::Heartbeat(_)) if posts => Role::Write,
        _ if reads => Role::Read,
        _ => Role::Admin,
    })
}

/// Whether a body is an update, wherever it is sent.
fn is_update<B>(request: &Request<B>) -> bool {
    let kind = request.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/sparql-update")
}

fn unauthorized(message: &str) -> Refusal {
    Refusal {
        challenge: true,
        ..Refusal::new(StatusCode::UNAUTHORIZED, message.to_owned())
    }
}

fn too_many(what: &str, wait: Duration) -> Refusal {
    let seconds = wait.as_secs_f64().ceil().max(1.) as u32;
    let message = format!("{what}; try again in {seconds} s");
    Refusal::new(StatusCode::TOO_MANY_REQUESTS, message).come_again(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_endpoint_and_method_has_its_role() {
        use Role::{Admin, Read, Write};
        let need = |line: &str| {
            let (method, path) = line.split_once(' ').expect("two words");
            let request = Request::builder().method(method).uri(path);
            let request = request.body(()).expect("a request");
            needed(&Route::of(request.uri().path()), &request)
        };
        for (lines, role) in [
            (
                "GET /|GET /live|GET /query?query=x|POST /query|POST /sparql/|POST /|GET /update|\
                 POST /update|POST /update/|GET /store|\
                 HEAD /store?default|GET /store/g|GET /streams|GET /streams/s|GET /streams/s/late|\
                 GET /continuous/q|GET /continuous/q/results|GET /continuous/q/sinks|\
                 DELETE /queries/1|GET /queries/1|GET /nothing|GET /prefixes|HEAD /prefixes/",
                Read,
            ),
            (
                "PUT /store|POST /store?default|DELETE /store/g|PUT /prefixes|PUT /prefixes/|\
                 POST /streams/s|POST /streams/s/heartbeat",
                Write,
            ),
            (
                "PUT /streams/s|DELETE /streams/s|PUT /continuous/q|DELETE /continuous/q|\
                 POST /continuous/q/pause|POST /continuous/q/resume|PUT /continuous/q/sinks/k|\
                 DELETE /continuous/q/sinks/k|GET /metrics|GET /metrics/|GET /queries|GET /queries/|\
                 DELETE /queries|POST /nothing|PUT /query|PATCH /streams/s|DELETE /prefixes",
                Admin,
            ),
        ] {
            for line in lines.split('|') {
                assert_eq!(need(line), Need::Role(role), "{line}");
            }
        }
        for line in ["GET /health", "GET /health/", "OPTIONS /update"] {
            assert_eq!(need(line), Need::Nothing, "{line}");
        }
        for path in ["/", "/query", "/sparql", "/update", "/update/"] {
            let update = Request::builder()
                .method("POST")
                .uri(path)
                .header("Content-Type", "Application/SPARQL-Update; charset=utf-8");
            let update = update.body(()).expect("a request");
            assert_eq!(
                needed(&Route::of(path), &update),
                Need::Role(Write),
                "{path}"
            );
        }
    }
}
