//! Is what comes to an endpoint of SPARQL a query or an update, and does its text follow the grammar?
//!
//! What is wrong is said here as a node says it, so that no node is asked. What a node might see otherwise is passed on:
//! a prefix that is not declared, of which it may know what it stands for; requests of pages of other origins, to which
//! it says whether they may read the answer; and bodies that are too large to be held.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::sync::Arc;

use bytes::Bytes;
use hyper::Method;
use hyper::header::{HOST, ORIGIN};
use hyper::http::request::Parts;
use jindou_engine::{Grammar, check_query, check_update};
use oxrdf::NamedNode;
use tokio::sync::Semaphore;

use crate::decode::Coding;
use crate::error::Refusal;
use crate::operation::{Operation, Posted, refused_query, refused_update};
use crate::protocol::{begins_as_query, begins_as_update};
use crate::receive::check_charset;
use crate::route::Route;
use crate::service::{asks_nothing, content_type, media_type};

/// Texts up to this size, in bytes, are parsed by the thread that read them.
const SHORT_BYTES: usize = 16 << 10;
/// Memory for the tree of a text, as a multiple of the largest body that is held.
const TREE_TIMES: usize = 32;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Query,
    Update,
}

/// Looks at requests before they are sent to a node.
pub(super) struct Checks {
    /// As clients see it.
    scheme: &'static str,
    most_bytes: usize,
    /// For long texts, one for each core.
    places: Arc<Semaphore>,
}

impl Checks {
    /// Of texts of so many bytes at most, at a proxy that speaks TLS or not.
    pub(super) fn new(most_bytes: usize, is_tls: bool) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self {
            scheme: if is_tls { "https" } else { "http" },
            most_bytes,
            places: Arc::new(Semaphore::new(cores)),
        }
    }

    /// What the head of a request says that it asks for; none where its body says it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn of_head(parts: &Parts) -> Result<Option<Asked>, Refusal> {
        let encoded = parts.uri.query().unwrap_or_default();
        let asked = Self::of_head_alone(parts, encoded);
        match asked {
            // A node says whether a page may read what is wrong.
            Err(_) if parts.headers.contains_key(ORIGIN) => Ok(Some(Asked::Query)),
            asked => asked,
        }
    }

    fn of_head_alone(parts: &Parts, encoded: &str) -> Result<Option<Asked>, Refusal> {
        if parts.method != Method::POST {
            return Ok(Some(Asked::Query));
        }
        let kind = media_type(&content_type(&parts.headers)?);
        Ok(match Posted::of(&kind, encoded)? {
            Posted::Form => None,
            Posted::Text(Operation::Query(_)) => Some(Asked::Query),
            Posted::Text(Operation::Update(_)) => Some(Asked::Update),
        })
    }

    /// What a request asks for whose body is held.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) async fn of_whole(&self, parts: &Parts, body: &Bytes) -> Result<Asked, Refusal> {
        let coding = Coding::of(&parts.headers);
        let is_short = body.len() <= SHORT_BYTES && matches!(coding, Ok(Coding::Identity));
        let check = Check {
            head: parts.clone(),
            body: body.clone(),
            scheme: self.scheme,
            most_bytes: self.most_bytes,
        };
        if is_short {
            return check.run();
        }
        let place = Arc::clone(&self.places).acquire_owned().await;
        let _place = place.map_err(|_| Refusal::internal())?;
        let run = tokio::task::spawn_blocking(move || check.run());
        run.await.map_err(|_| Refusal::internal())?
    }
}

/// A request that is looked at.
struct Check {
    head: Parts,
    body: Bytes,
    scheme: &'static str,
    most_bytes: usize,
}

impl Check {
    fn run(&self) -> Result<Asked, Refusal> {
        // What cannot be seen here goes where both are done.
        let otherwise = match self.head.method {
            Method::POST => Asked::Update,
            _ => Asked::Query,
        };
        let operation = match self.operation() {
            Ok(Some(operation)) => operation,
            Ok(None) => return Ok(otherwise),
            Err(_) if self.is_of_page() => return Ok(otherwise),
            Err(refusal) => return Err(refusal),
        };
        let asked = match &operation {
            Operation::Query(_) => Asked::Query,
            Operation::Update(_) => Asked::Update,
        };
        match self.checked(&operation) {
            Err(refusal) if !self.is_of_page() => Err(refusal),
            _ => Ok(asked),
        }
    }

    fn is_of_page(&self) -> bool {
        self.head.headers.contains_key(ORIGIN)
    }

    /// None where it is not to be seen here.
    fn operation(&self) -> Result<Option<Operation>, Refusal> {
        let encoded = self.head.uri.query().unwrap_or_default();
        if self.head.method != Method::POST {
            let is_home = Route::of(self.head.uri.path()) == Route::Home;
            return match asks_nothing(is_home, encoded) {
                true => Ok(None),
                false => Operation::of_url(encoded).map(Some),
            };
        }
        check_charset(&self.head.headers)?;
        let kind = media_type(&content_type(&self.head.headers)?);
        let posted = Posted::of(&kind, encoded)?;
        let Some(text) = self.text()? else {
            return Ok(match posted {
                Posted::Form => None,
                Posted::Text(operation) => Some(operation),
            });
        };
        match posted {
            Posted::Form => Operation::of_form(encoded, &text).map(Some),
            Posted::Text(operation) => operation.with_text(text).map(Some),
        }
    }

    /// The body, decompressed; none where that is too long, or no text.
    fn text(&self) -> Result<Option<String>, Refusal> {
        let coding = Coding::of(&self.head.headers)?;
        let bytes = match coding {
            Coding::Identity => Some(self.body.to_vec()),
            coding => decoded(coding, &self.body, self.most_bytes).ok(),
        };
        Ok(bytes.and_then(|bytes| String::from_utf8(bytes).ok()))
    }

    fn checked(&self, operation: &Operation) -> Result<(), Refusal> {
        let Some(base) = self.base() else {
            return Ok(());
        };
        let tree_bytes = self.most_bytes.saturating_mul(TREE_TIMES);
        match operation {
            Operation::Query(parameters) => {
                let Some(text) = &parameters.query else {
                    return Ok(());
                };
                let checked = check_query(text, Some(&base), tree_bytes);
                let is_update = || begins_as_update(text);
                refused(checked, |refusal| refused_query(is_update(), refusal))
            }
            Operation::Update(parameters) => {
                let Some(text) = &parameters.update else {
                    return Ok(());
                };
                let checked = check_update(text, Some(&base), tree_bytes);
                let is_query = || begins_as_query(text);
                refused(checked, |refusal| refused_update(is_query(), refusal))
            }
        }
    }

    /// The IRI of the endpoint, as a node has it that is not told another; none without a usable name of the host.
    fn base(&self) -> Option<String> {
        let authority = self.head.uri.authority().map(|one| one.as_str());
        let host = || self.head.headers.get(HOST)?.to_str().ok();
        let host = authority.or_else(host)?;
        let base = format!("{}://{host}{}", self.scheme, self.head.uri.path());
        NamedNode::new(base).ok().map(NamedNode::into_string)
    }
}

fn refused(checked: Grammar, advise: impl FnOnce(Refusal) -> Refusal) -> Result<(), Refusal> {
    match checked {
        Grammar::Right | Grammar::Unknown => Ok(()),
        Grammar::Wrong(error) => Err(advise(error.into())),
    }
}

/// What a body stands for, if that is no longer than so many bytes.
fn decoded(coding: Coding, body: &[u8], most_bytes: usize) -> io::Result<Vec<u8>> {
    let mut decoder = coding.decoder(Bounded {
        bytes: Vec::new(),
        most_bytes,
    })?;
    for part in body.chunks(coding.step()) {
        decoder.write(part)?;
    }
    decoder.finish()?;
    Ok(std::mem::take(&mut decoder.sink().bytes))
}

/// Takes so many bytes.
struct Bounded {
    bytes: Vec<u8>,
    most_bytes: usize,
}

impl Write for Bounded {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        if part.len() > self.most_bytes - self.bytes.len() {
            return Err(io::Error::other("more than may be held"));
        }
        self.bytes.extend_from_slice(part);
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use hyper::{Request, StatusCode};

    use super::*;

    const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
    const QUERY: (&str, &str) = ("content-type", "application/sparql-query");
    const UPDATE: (&str, &str) = ("content-type", "application/sparql-update");
    const PAGE: (&str, &str) = ("origin", "https://a.example");

    /// Status, line and column, and text of what is wrong.
    type Wrong = (u16, Option<(u64, Option<u64>)>, String);

    /// What a request is taken for, or what is wrong with it.
    fn asked(
        (method, uri): (&str, &str),
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Asked, Wrong> {
        let mut request = Request::builder().method(method).uri(uri);
        request = request.header(HOST, "db.example");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).expect("a request").into_parts();
        let check = Check {
            head,
            body: body.into(),
            scheme: "http",
            most_bytes: 1000,
        };
        check.run().map_err(|refusal| {
            let place = refusal.mistake.map(|at| (at.line, at.column));
            (refusal.status.as_u16(), place, refusal.message.into_owned())
        })
    }

    const POST: (&str, &str) = ("POST", "/query");

    #[test]
    fn queries_are_told_from_updates() {
        assert_eq!(asked(POST, &[QUERY], "ASK {}"), Ok(Asked::Query));
        assert_eq!(asked(POST, &[UPDATE], "CLEAR ALL"), Ok(Asked::Update));
        assert_eq!(asked(POST, &[FORM], "query=ASK+%7B%7D"), Ok(Asked::Query));
        assert_eq!(asked(POST, &[FORM], "update=CLEAR+ALL"), Ok(Asked::Update));
        assert_eq!(
            asked(("GET", "/?query=ASK+%7B%7D"), &[], ""),
            Ok(Asked::Query)
        );
        assert_eq!(asked(("GET", "/"), &[], ""), Ok(Asked::Query), "the page");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let said = asked(POST, &[QUERY], "ASK {\n ?s ?p }").expect_err("it lacks an object");
        assert_eq!((said.0, said.1), (400, Some((2, Some(8)))), "{}", said.2);
        assert!(said.2.starts_with("line 2, column 8: "), "{}", said.2);
        let said = asked(POST, &[QUERY], "CLEAR ALL").expect_err("it is an update");
        assert!(said.2.contains("application/sparql-update"), "{}", said.2);
        let said = asked(POST, &[UPDATE], "ASK {}").expect_err("it is a query");
        assert!(said.2.contains("application/sparql-query"), "{}", said.2);
        for (request, headers, body, status) in [
            (POST, &[FORM][..], "a=b", 400),
            (POST, &[FORM], "query=a&update=b", 400),
            (POST, &[("content-type", "text/plain")], "ASK {}", 415),
            (POST, &[QUERY, ("content-encoding", "lzw")], "ASK {}", 415),
            (("GET", "/query?update=CLEAR+ALL"), &[], "", 405),
            (("GET", "/query?query=%"), &[], "", 400),
        ] {
            let said = asked(request, headers, body).expect_err(body);
            assert_eq!(said.0, status, "{body}: {}", said.2);
        }
    }

    #[test]
    fn what_a_node_may_see_otherwise_is_passed_on() {
        let undeclared = "ASK { ?a foaf:knows ?b }";
        assert_eq!(asked(POST, &[QUERY], undeclared), Ok(Asked::Query));
        assert_eq!(asked(POST, &[QUERY, PAGE], "SELCT"), Ok(Asked::Query));
        assert_eq!(asked(POST, &[FORM, PAGE], "a=b"), Ok(Asked::Update));
        assert_eq!(asked(POST, &[QUERY], vec![0xff]), Ok(Asked::Query));
        assert_eq!(asked(POST, &[FORM], vec![0xff]), Ok(Asked::Update));
        // A relative IRI has a base.
        assert_eq!(asked(POST, &[QUERY], "ASK { <a> ?p ?o }"), Ok(Asked::Query));
    }

    #[test]
    fn bodies_are_decompressed_up_to_a_bound() {
        let gzip = |text: &str| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(text.as_bytes()).expect("a Vec takes all");
            encoder.finish().expect("a Vec takes all")
        };
        let headers = [QUERY, ("content-encoding", "gzip")];
        assert_eq!(asked(POST, &headers, gzip("ASK {}")), Ok(Asked::Query));
        let said = asked(POST, &headers, gzip("ASK {")).expect_err("it does not end");
        assert_eq!(said.0, StatusCode::BAD_REQUEST);
        let long = format!("ASK {{ {}", " ".repeat(1000));
        assert_eq!(
            asked(POST, &headers, gzip(&long)),
            Ok(Asked::Query),
            "too long"
        );
        assert_eq!(asked(POST, &headers, "ASK {}"), Ok(Asked::Query), "no gzip");
    }
}
