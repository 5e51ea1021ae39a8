//! How is a running server asked over HTTP?
//!
//! It may be any server, and a mistaken one: what it refuses is read up to a bound, and it is waited for no
//! longer than something could take.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::CertificateDer;
use rustls::{CertificateError, ClientConfig, RootCertStore};
use serde::Deserialize;
use serde_json::Value;
use ureq::http::{Request, Response, header};
use ureq::tls::{PemItem, TlsConfig, parse_pem};
use ureq::{Agent, AsSendBody, Body, BodyReader};

use super::secured;
use super::trust::trusting;
use crate::failure::{WrongQuery, excerpt};
use crate::stream_args::{DEFAULT_URL, IdentityArguments, ServerArguments};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a server may do nothing that is asked for something,
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// and one that is to change something, which it answers once that is done: by default an evaluation takes 60 s
/// at most, and a push may complete several.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(600);
/// What is read of an answer that refuses something, in bytes.
const MOST_REFUSAL_BYTES: u64 = 64 << 10;
/// Errors come as problem documents (RFC 9457), which have line and column.
const ACCEPT: &str = "application/json, text/event-stream, application/problem+json";
/// Bodies from this size on, in bytes, are sent once the server says that it takes them: one that refuses them
/// by their length hangs up, which would otherwise be all that is known.
const ANNOUNCED_BYTES: usize = 1 << 20;
/// Says which event was seen last.
const LAST_EVENT_ID: &str = "Last-Event-ID";
/// Pause before something is sent again, where the server does not say how long.
const DEFAULT_PAUSE: Duration = Duration::from_secs(1);

/// A server.
pub(crate) struct Client {
    agent: Agent,
    url: String,
    /// Nobody named it.
    is_default: bool,
    authorization: Option<String>,
    patience: Option<Duration>,
}

/// How a server is asked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asking {
    /// How long a request may take as a whole; as long as it does if nothing is said.
    pub(crate) limit: Option<Duration>,
    /// How long the server may do nothing meanwhile, if not what is usual for what it is asked.
    pub(crate) patience: Option<Duration>,
    /// Whether any certificate will do.
    pub(crate) trusts_any: bool,
}

/// How long an answer that has begun may pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pauses {
    /// As results do that come when there are some.
    Any,
    /// As long as its begin may take.
    Bounded,
}

/// What a server refused.
#[derive(Debug)]
pub(super) struct Refused {
    status: u16,
    retry_after: Option<Duration>,
    problem: Problem,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Problem {
    detail: String,
    line: Option<usize>,
    column: Option<usize>,
}

/// What came of a request.
pub(super) type Asked<T> = anyhow::Result<Result<T, Refused>>;

impl Client {
    /// # Errors
    /// A file of certificates that cannot be used.
    pub(crate) fn new(server: &ServerArguments) -> anyhow::Result<Self> {
        Self::asking(server, Asking::default())
    }

    /// # Errors
    /// A file of certificates that cannot be used.
    pub(crate) fn asking(server: &ServerArguments, asking: Asking) -> anyhow::Result<Self> {
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_resolve(Some(CONNECT_TIMEOUT))
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(asking.limit)
            .proxy(None);
        if asking.trusts_any {
            let any = TlsConfig::builder().disable_verification(true);
            config = config.tls_config(any.build());
        }
        let agent = match &server.identity.ca {
            Some(file) => secured::agent(config.build(), trusting_file(file)?),
            None => config.build().new_agent(),
        };
        let url = server.url.as_deref().unwrap_or(DEFAULT_URL);
        Ok(Self {
            agent,
            url: url.to_owned(),
            is_default: url == DEFAULT_URL,
            authorization: authorization(&server.identity),
            patience: asking.patience,
        })
    }

    /// # Errors
    /// A server that cannot be reached, and what it refuses.
    pub(crate) fn get(&self, path: &str) -> anyhow::Result<Value> {
        let reply = self.ask("GET", path, None)?.map_err(Refused::error)?;
        serde_json::from_str(&reply).with_context(|| format!("{}{path}: no JSON", self.url))
    }

    /// Opens an answer of events, after the one that was seen last, if one was: it goes on, with pauses of
    /// any length once it has begun.
    ///
    /// # Errors
    /// A server that cannot be reached.
    pub(super) fn open(&self, path: &str, last_event: Option<&str>) -> Asked<BodyReader<'static>> {
        let headers = last_event.map(|id| (LAST_EVENT_ID, id.to_owned()));
        let response = self.send(("GET", path), None, headers, Pauses::Any)?;
        let opened = self.refused(path, response)?;
        Ok(opened.map(|response| {
            let body = response.into_body().into_with_config();
            body.limit(u64::MAX).reader()
        }))
    }

    /// Sends something, with its media type, and reads the answer.
    ///
    /// # Errors
    /// A server that cannot be reached.
    pub(super) fn ask(
        &self,
        method: &str,
        path: &str,
        body: Option<(&str, &[u8])>,
    ) -> Asked<String> {
        self.ask_as(None, (method, path), body)
    }

    /// As [`Client::ask`], as the how-manyth thing of a producer.
    ///
    /// # Errors
    /// A server that cannot be reached.
    pub(super) fn ask_as(
        &self,
        producer: Option<(&str, u64)>,
        (method, path): (&str, &str),
        body: Option<(&str, &[u8])>,
    ) -> Asked<String> {
        let headers = producer.map(|(name, sequence)| {
            [
                ("Producer", name.to_owned()),
                ("Sequence", sequence.to_string()),
            ]
        });
        let headers = headers.into_iter().flatten();
        let response = self.send((method, path), body, headers, Pauses::Bounded)?;
        Ok(match self.refused(path, response)? {
            Ok(mut response) => Ok(self.text(path, &mut response)?),
            Err(refused) => Err(refused),
        })
    }

    fn send(
        &self,
        (method, path): (&str, &str),
        body: Option<(&str, &[u8])>,
        headers: impl IntoIterator<Item = (&'static str, String)>,
        pauses: Pauses,
    ) -> anyhow::Result<Response<Body>> {
        let address = format!("{}{path}", self.url);
        let mut request = Request::builder()
            .method(method)
            .uri(&address)
            .header(header::ACCEPT, ACCEPT);
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        if let Some((media_type, _)) = body {
            request = request.header(header::CONTENT_TYPE, media_type);
        }
        if body.is_some_and(|(_, bytes)| bytes.len() > ANNOUNCED_BYTES) {
            request = request.header(header::EXPECT, "100-continue");
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let wrong = || format!("{address}: no address of a server");
        let usual = match method {
            "GET" => READ_TIMEOUT,
            _ => CHANGE_TIMEOUT,
        };
        let patience = Some(self.patience.unwrap_or(usual));
        let sent = match (method, body) {
            (_, Some((_, bytes))) => {
                self.run(request.body(bytes).with_context(wrong)?, patience, pauses)
            }
            ("POST", None) => {
                let nothing: &[u8] = &[];
                self.run(request.body(nothing).with_context(wrong)?, patience, pauses)
            }
            (_, None) => self.run(request.body(()).with_context(wrong)?, patience, pauses),
        };
        // As text: a connection that breaks is not standard output's, whose reader wants no more.
        sent.map_err(|error| match (distrust(&error), self.is_default) {
            (Some(reason), _) => anyhow!("{address}: {reason}"),
            (None, true) => anyhow!(
                "{address}: {error}; start a server with `jindou serve`, or name its address with --url"
            ),
            (None, false) => anyhow!("{address}: {error}; is a server there?"),
        })
    }

    fn run<S: AsSendBody>(
        &self,
        request: Request<S>,
        patience: Option<Duration>,
        pauses: Pauses,
    ) -> Result<Response<Body>, ureq::Error> {
        let request = self.agent.configure_request(request);
        let request = request
            .timeout_recv_response(patience)
            .timeout_per_write(patience);
        let request = match pauses {
            Pauses::Any => request,
            Pauses::Bounded => request.timeout_per_read(patience),
        };
        self.agent.run(request.build())
    }

    fn refused(
        &self,
        path: &str,
        mut response: Response<Body>,
    ) -> anyhow::Result<Result<Response<Body>, Refused>> {
        let status = response.status();
        if status.is_success() {
            return Ok(Ok(response));
        }
        let seconds = response.headers().get(header::RETRY_AFTER);
        let seconds = seconds.and_then(|seconds| seconds.to_str().ok()?.parse().ok());
        let text = self.refusal_text(path, &mut response)?;
        // Other JSON, such as what says that a server is not well, is no problem document.
        let problem = serde_json::from_str(&text).ok();
        let problem = problem.filter(|problem: &Problem| !problem.detail.is_empty());
        let problem = problem.unwrap_or_else(|| Problem {
            detail: format!("{}{path}: {status}: {}", self.url, text.trim()),
            ..Problem::default()
        });
        Ok(Err(Refused {
            status: status.as_u16(),
            retry_after: seconds.map(Duration::from_secs),
            problem,
        }))
    }

    /// The beginning of an answer that refuses something: a mistaken address may have one without an end.
    fn refusal_text(&self, path: &str, response: &mut Response<Body>) -> anyhow::Result<String> {
        let whole = response.body_mut().with_config().limit(u64::MAX).reader();
        let mut text = Vec::new();
        let read = whole.take(MOST_REFUSAL_BYTES).read_to_end(&mut text);
        // As text: a connection that breaks is not standard output's, whose reader wants no more.
        read.map_err(|error| anyhow!("{}{path}: {error}", self.url))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    fn text(&self, path: &str, response: &mut Response<Body>) -> anyhow::Result<String> {
        let text = response.body_mut().with_config().limit(u64::MAX);
        text.read_to_string()
            .map_err(|error| anyhow!("{}{path}: {error}", self.url))
    }
}

/// Why the certificate of a server is not trusted, with what to do, if that is what is wrong.
fn distrust(error: &ureq::Error) -> Option<String> {
    let wrong = match error {
        ureq::Error::Io(error) => error.get_ref()?.downcast_ref::<rustls::Error>()?,
        ureq::Error::Rustls(error) => error,
        _ => return None,
    };
    let rustls::Error::InvalidCertificate(reason) = wrong else {
        return None;
    };
    match reason {
        CertificateError::UnknownIssuer | CertificateError::Other(_) => Some(
            "the certificate of the server leads to none that is trusted here; name it, or that of its \
             authority, by --ca FILE"
                .to_owned(),
        ),
        reason => Some(format!("the certificate of the server is wrong: {reason}")),
    }
}

/// All certificates of a file; there is at least one.
fn certificates(file: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let text = std::fs::read(file)?;
    let mut found = Vec::new();
    for item in parse_pem(&text) {
        if let PemItem::Certificate(certificate) = item? {
            found.push(CertificateDer::from(certificate.der().to_vec()));
        }
    }
    if found.is_empty() {
        bail!("no certificate in PEM is in it");
    }
    Ok(found)
}

/// What a connection is made with that trusts the certificates of a file alone.
fn trusting_file(file: &Path) -> anyhow::Result<Arc<ClientConfig>> {
    let tls = certificates(file).and_then(trusting);
    tls.with_context(|| format!("--ca {}", file.display()))
}

/// What a connection is made with that trusts what was named, or the web's authorities.
///
/// # Errors
/// A file of certificates that cannot be used.
pub(crate) fn trust(identity: &IdentityArguments) -> anyhow::Result<Arc<ClientConfig>> {
    if let Some(file) = &identity.ca {
        return trusting_file(file);
    }
    let roots = webpki_roots::TLS_SERVER_ROOTS.to_vec();
    let roots = RootCertStore { roots };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(rustls::ALL_VERSIONS)?
        .with_root_certificates(roots);
    Ok(Arc::new(config.with_no_client_auth()))
}

/// Who asks, as a header says it.
pub(crate) fn authorization(server: &IdentityArguments) -> Option<String> {
    let of_user = |user: &String| format!("Basic {}", STANDARD.encode(user));
    let of_token = |token: &String| format!("Bearer {token}");
    let token = server.token.as_ref().map(of_token);
    token.or_else(|| server.user.as_ref().map(of_user))
}

impl Refused {
    pub(super) fn error(self) -> anyhow::Error {
        anyhow!(self.problem.detail)
    }

    /// The same, where a text was refused that `name` has.
    pub(super) fn error_in(self, text: &str, name: &str) -> anyhow::Error {
        match (self.problem.line, self.problem.column) {
            (Some(line), Some(column)) => WrongQuery {
                said: format!("{name}, {}", self.problem.detail),
                excerpt: excerpt(text, line, column),
            }
            .into(),
            (Some(line), None) => anyhow!("{name}, line {line}: {}", self.reason()),
            _ => self.error(),
        }
    }

    /// The line of what was sent that is wrong, where it is known.
    pub(super) fn line(&self) -> Option<usize> {
        self.problem.line
    }

    /// What is wrong, without where in what was sent.
    pub(super) fn reason(&self) -> &str {
        let detail = &*self.problem.detail;
        let Some(line) = self.problem.line else {
            return detail;
        };
        let place = match self.problem.column {
            Some(column) => format!("line {line}, column {column}: "),
            None => format!("line {line}: "),
        };
        let reason = detail.split_once(&place).map_or(detail, |(_, rest)| rest);
        // The number of an event counts from the begin of what was sent, too.
        let event = reason
            .strip_prefix("event ")
            .and_then(|rest| rest.split_once(": "));
        match event {
            Some((number, rest)) if number.parse::<u64>().is_ok() => rest,
            _ => reason,
        }
    }

    /// How long to wait before the same is sent again, if that may help.
    pub(super) fn pause(&self) -> Option<Duration> {
        (self.status == 503).then(|| self.retry_after.unwrap_or(DEFAULT_PAUSE))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;

    use super::*;

    /// A client of a server that gives one answer to whatever it is asked, if it gives one, and hangs up when
    /// the client has.
    fn asked<T>(answer: Option<Vec<u8>>, ask: impl FnOnce(Client) -> T) -> T {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let server = ServerArguments {
            url: Some(format!("http://{}", listener.local_addr().expect("a port"))),
            identity: IdentityArguments::default(),
        };
        let client = Client::asking(
            &server,
            Asking {
                // An answer is there at once, or never.
                patience: Some(Duration::from_millis(match answer {
                    Some(_) => 60_000,
                    None => 100,
                })),
                ..Asking::default()
            },
        );
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let (mut stream, _) = listener.accept().expect("a client");
                if let Some(answer) = answer {
                    let mut request = [0; 1024];
                    let _read = stream.read(&mut request).expect("a request");
                    // It need not be read to its end.
                    let _written = stream.write_all(&answer);
                }
                let _hung_up = stream.read_to_end(&mut Vec::new());
            });
            ask(client.expect("nothing is wrong"))
        })
    }

    #[test]
    fn a_server_that_does_not_answer_is_given_up() {
        for method in ["GET", "POST", "PUT"] {
            let body = (method != "GET").then_some(("text/plain", &b"x"[..]));
            let reply = asked(None, |client| client.ask(method, "/streams", body));
            let said = reply.expect_err("no answer").to_string();
            assert!(said.contains("timeout"), "{method}: {said}");
        }
        let opened = asked(None, |client| {
            client.open("/continuous/q/results", None).map(drop)
        });
        assert!(
            opened
                .expect_err("no answer")
                .to_string()
                .contains("timeout")
        );
    }

    #[test]
    fn a_refusal_without_an_end_is_read_to_a_bound() {
        const MUCH: usize = 16 << 20;
        let mut answer =
            format!("HTTP/1.1 404 Not Found\r\nContent-Length: {MUCH}\r\n\r\n").into_bytes();
        answer.resize(answer.len() + MUCH, b'x');
        let said = asked(Some(answer), |client| client.get("/streams"));
        let said = said.expect_err("it is refused").to_string();
        let bytes = said.matches('x').count() as u64;
        assert!(
            (1 << 10..=MOST_REFUSAL_BYTES).contains(&bytes),
            "{bytes} bytes"
        );
        assert!(said.contains("404 Not Found"), "{}", &said[..100]);
    }

    #[test]
    fn a_reason_is_what_follows_the_place() {
        for (detail, line, column, reason) in [
            (
                "line 2, column 32: no object",
                Some(2),
                Some(32),
                "no object",
            ),
            (
                "readings: line 2: event 2: too far: ahead",
                Some(2),
                None,
                "too far: ahead",
            ),
            (
                "readings: line 2: an event 2: x",
                Some(2),
                None,
                "an event 2: x",
            ),
            (
                "there is no stream line 2: x",
                None,
                None,
                "there is no stream line 2: x",
            ),
            ("another form", Some(2), None, "another form"),
        ] {
            let refused = Refused {
                status: 400,
                retry_after: None,
                problem: Problem {
                    detail: detail.to_owned(),
                    line,
                    column,
                },
            };
            assert_eq!(refused.reason(), reason);
        }
    }
}
