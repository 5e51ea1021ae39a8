//! May a client do what it asks for?
//!
//! [`needed`] is the table of what each [`Route`] and method needs, the same for all requests and
//! looked at before any of them is dispatched. To verify a password takes some ten milliseconds, so what
//! was verified is remembered by a keyed hash of the header, until its line of the file changes; the key
//! lives as long as the process, and neither passwords nor tokens are kept. Passwords wait for each other,
//! tokens for nobody.

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
use crate::credentials::{Claim, Entries, Role, User, hash_token};
use crate::error::Refusal;
use crate::execute::no_thread;
use crate::queries::Client;
use crate::route::Route;
use crate::streams::Endpoint;
use crate::tries::Tries;
use crate::websocket;

/// Headers that are remembered at most.
const MOST_REMEMBERED: usize = 1024;
/// The longest header that is looked at, in bytes.
const MOST_HEADER_BYTES: usize = 1024;
/// Passwords that are verified at once: each takes a core, and 19 MiB by default.
const VERIFIED_AT_ONCE: usize = 2;

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
    wrong: Tries,
    requests: Option<Buckets>,
}

/// What was verified, which these entries say, too.
struct Remembered {
    entries: Option<Arc<Entries>>,
    users: HashMap<[u8; 32], Known>,
}

/// Somebody who was verified, by a line.
struct Known {
    user: User,
    claim: Claim,
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
            wrong: Tries::new(),
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
        self.follow(&entries);
        let key = self.key_of(header);
        let user = match self.recall(&entries, &key) {
            Some(user) => user,
            None => self.verify(&entries, header, &key, address).await?,
        };
        Ok(Identity {
            role: Some(user.role),
            user: Some(user),
        })
    }

    /// Forgets what is about lines that these entries have not as those before: who was verified by one,
    /// and who was not.
    fn follow(&self, entries: &Arc<Entries>) {
        let mut remembered = self.lock();
        let Some(before) = remembered.entries.replace(Arc::clone(entries)) else {
            return;
        };
        if !Arc::ptr_eq(&before, entries) {
            let has_changed = |claim: &Claim| !entries.says_as(&before, claim);
            remembered
                .users
                .retain(|_, known| !has_changed(&known.claim));
            self.wrong.forget(has_changed, Instant::now());
        }
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
        let (claim, verified) = match given {
            // By no slow hash.
            Given::Token(hash) => {
                self.check_tries(address)?;
                (Claim::Token(hash), entries.bearer(&hash))
            }
            Given::Password { name, password } => {
                let place = self.verifying.acquire().await;
                let _place = place.expect("the semaphore is never closed");
                // Another request may have brought the same meanwhile, or used up the tries.
                if let Some(user) = self.recall(entries, key) {
                    return Ok(user);
                }
                self.check_tries(address)?;
                let claim = Claim::Name(name.as_str().into());
                let entries = Arc::clone(entries);
                let verify = move || entries.user(&name, &password);
                let verified = tokio::task::spawn_blocking(verify).await;
                let verified = verified.map_err(|error| no_thread(&std::io::Error::other(error)));
                (claim, verified?)
            }
        };
        match verified {
            // Where the file was read again meanwhile, it may say otherwise: see `follow`.
            Some(user) => {
                self.remember(entries, *key, &user, claim);
                Ok(user)
            }
            None => {
                tracing::warn!(%address, "a wrong name, password or token");
                // As above.
                if self.lock().is_of(entries) {
                    self.wrong.count(address, claim, Instant::now());
                }
                Err(unauthorized(
                    "no user has this name and password, or this token",
                ))
            }
        }
    }

    fn check_tries(&self, address: IpAddr) -> Result<(), Refusal> {
        let limited = |wait| too_many("too many wrong names, passwords or tokens", wait);
        self.wrong.check(address, Instant::now()).map_err(limited)
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
        let known = remembered.users.get(key)?;
        remembered.is_of(entries).then(|| known.user.clone())
    }

    fn remember(&self, entries: &Arc<Entries>, key: [u8; 32], user: &User, claim: Claim) {
        let mut remembered = self.lock();
        if !remembered.is_of(entries) {
            return;
        }
        if remembered.users.len() >= MOST_REMEMBERED {
            remembered.users.clear();
        }
        let user = user.clone();
        remembered.users.insert(key, Known { user, claim });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Remembered> {
        self.remembered
            .lock()
            .expect("nobody panics while it has it")
    }
}

impl Remembered {
    fn is_of(&self, entries: &Arc<Entries>) -> bool {
        let known = self.entries.as_ref();
        known.is_some_and(|known| Arc::ptr_eq(known, entries))
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
    Password {
        name: String,
        password: Vec<u8>,
    },
    /// By its hash.
    Token([u8; 32]),
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
            return Some(Self::Token(hash_token(given.as_bytes())));
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
    use base64::engine::general_purpose::STANDARD;
    use futures_util::FutureExt as _;

    use super::*;
    use crate::credentials::{Credentials, hash_password, new_token};

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn request(authorization: &str) -> Request<()> {
        let request = Request::builder().header(AUTHORIZATION, authorization);
        request.body(()).expect("a request")
    }

    fn basic(name: &str, password: &str) -> String {
        format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))
    }

    /// A file of credentials that says this, and what decides by it.
    fn access(lines: &str) -> (tempfile::TempDir, Credentials, Access) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("credentials");
        std::fs::write(&path, lines).expect("written");
        let credentials = Credentials::read(path).expect("it is right");
        let access = Access::new(&ServerConfig {
            access: AccessPolicy::known(credentials.clone()),
            ..ServerConfig::default()
        });
        (folder, credentials, access)
    }

    #[test]
    fn a_token_waits_for_no_password() {
        let (token, hash) = new_token().expect("a token");
        let (_folder, _, access) = access(&format!("token:bot:read:{hash}\n"));
        let _all = access.verifying.try_acquire_many(VERIFIED_AT_ONCE as u32);
        for (token, is_right) in [(token.as_str(), true), ("wrong", false)] {
            let request = request(&format!("Bearer {token}"));
            let identified = access.identify(&request, HERE).now_or_never();
            let identified = identified.expect("it waits for nothing");
            assert_eq!(identified.is_ok(), is_right, "{token}");
        }
        let request = request(&basic("ann", "x"));
        let identified = access.identify(&request, HERE).now_or_never();
        assert!(identified.is_none(), "passwords wait");
    }

    #[tokio::test]
    async fn a_file_that_changes_is_followed_line_by_line() {
        let hash = |password: &str| hash_password(password.as_bytes()).expect("a hash");
        let (old, new, bobs) = (hash("old"), hash("new"), hash("b"));
        let (folder, credentials, access) = access(&format!("ann:read:{old}\nbob:read:{bobs}\n"));
        let identify = async |name: &str, password: &str| {
            let request = request(&basic(name, password));
            let identified = access.identify(&request, HERE).await;
            identified
                .map(drop)
                .map_err(|refusal| refusal.status.as_u16())
        };
        assert_eq!(identify("bob", "b").await, Ok(()));
        assert_eq!(identify("ann", "old").await, Ok(()));
        let limited = loop {
            match identify("ann", "new").await {
                Err(401) => {}
                other => break other,
            }
        };
        assert_eq!(limited, Err(429));
        let path = folder.path().join("credentials");
        std::fs::write(path, format!("ann:read:{new}\nbob:read:{bobs}\n")).expect("written");
        credentials.reread().expect("it is right");
        let remembered = || access.lock().users.len();
        assert_eq!(remembered(), 2);
        assert_eq!(identify("bob", "b").await, Ok(()));
        assert_eq!(remembered(), 1, "bob is, who has not changed");
        assert_eq!(identify("ann", "new").await, Ok(()));
        assert_eq!(identify("ann", "old").await, Err(401));
    }

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
                "GET /|GET /live|GET /cluster|GET /query?query=x|POST /query|POST /sparql/|POST /|GET /update|\
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
