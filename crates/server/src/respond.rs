//! How does an answer become an HTTP response?

use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::header::{
    ACCEPT_ENCODING, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ALLOW, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName,
    HeaderValue, ORIGIN, RETRY_AFTER, VARY, WWW_AUTHENTICATE,
};
use hyper::{Response, StatusCode};
use serde_json::json;

use crate::body::Body;
use crate::config::Cors;
use crate::error::Refusal;
use crate::memory::{AnswerMemory, BookedAnswer};
use crate::queries::{Client, QueryId};

/// Answers below this size, in bytes, are not worth compressing.
const GZIP_FROM: usize = 1024;

/// A document about what is wrong with a request.
const PROBLEM: &str = "application/problem+json";
/// How a client may say who it is; browsers take the first and ask for name and password.
const CHALLENGES: [&str; 2] = [
    "Basic realm=\"jindou\", charset=\"UTF-8\"",
    "Bearer realm=\"jindou\"",
];
/// Names the query of an answer.
const QUERY_ID: HeaderName = HeaderName::from_static("jindou-query-id");

/// A response with these bytes.
pub(crate) fn whole(media_type: &str, bytes: impl Into<Bytes>) -> Response<Body> {
    with_body(media_type, Body::Whole(bytes.into()))
}

/// A response with this body, 200.
pub(crate) fn with_body(media_type: &str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response
        .headers_mut()
        .insert(CONTENT_TYPE, content_type(media_type));
    response
}

/// Results that are all there, compressed if that is wanted and worth it.
///
/// Those that are not small take from `memory` what they hold until they are sent, as [`AnswerMemory::book`] does.
pub(crate) fn results(
    media_type: &str,
    bytes: Vec<u8>,
    gzip: bool,
    memory: (&AnswerMemory, Option<&Arc<Client>>),
) -> Result<Response<Body>, Refusal> {
    let mut response = if gzip && bytes.len() >= GZIP_FROM {
        let mut encoder = encoder(bytes.len() / 4);
        let compressed = encoder.write_all(&bytes).and_then(|()| encoder.finish());
        let compressed = compressed.expect("a Vec takes all");
        let mut response = whole(media_type, booked(compressed, memory)?);
        mark_gzip(&mut response);
        response
    } else {
        whole(media_type, booked(bytes, memory)?)
    };
    response
        .headers_mut()
        .insert(VARY, HeaderValue::from_static("accept, accept-encoding"));
    Ok(response)
}

/// Bytes with what they take from the pool.
struct Booked {
    bytes: Vec<u8>,
    _memory: BookedAnswer,
}

impl AsRef<[u8]> for Booked {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

fn booked(
    bytes: Vec<u8>,
    (memory, client): (&AnswerMemory, Option<&Arc<Client>>),
) -> Result<Bytes, Refusal> {
    Ok(match memory.book(bytes.len(), client)? {
        None => bytes.into(),
        Some(memory) => Bytes::from_owner(Booked {
            bytes,
            _memory: memory,
        }),
    })
}

/// Names the query in its answer, so that its client can ask for it or end it.
pub(crate) fn name(response: &mut Response<Body>, query: QueryId) {
    let value = HeaderValue::from_str(&query.to_string()).expect("digits are ASCII");
    response.headers_mut().insert(QUERY_ID, value);
}

/// Results as they come; the sender compresses them if `gzip`.
pub(crate) fn stream(media_type: &str, body: Body, gzip: bool) -> Response<Body> {
    let mut response = with_body(media_type, body);
    response
        .headers_mut()
        .insert(VARY, HeaderValue::from_static("accept, accept-encoding"));
    if gzip {
        mark_gzip(&mut response);
    }
    response
}

fn mark_gzip(response: &mut Response<Body>) {
    response
        .headers_mut()
        .insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
}

/// A compressor for results: the fastest level, as links to databases are fast.
pub(crate) fn encoder(capacity: usize) -> GzEncoder<Vec<u8>> {
    GzEncoder::new(Vec::with_capacity(capacity), Compression::fast())
}

/// Whether the client asks for what is wrong with its request as a document (RFC 9457).
pub(crate) fn wants_problem(accept: &str) -> bool {
    let named = accept
        .split(',')
        .filter_map(|range| range.split(';').next());
    named
        .map(str::trim)
        .any(|media_type| media_type.eq_ignore_ascii_case(PROBLEM))
}

/// A refusal as one line of plain text, or as a document about the problem.
pub(crate) fn refusal(refusal: &Refusal, as_problem: bool) -> Response<Body> {
    let mut line = refusal.message.replace(['\r', '\n'], " ");
    let mut response = if as_problem {
        whole(PROBLEM, problem(refusal, &line))
    } else {
        line.push('\n');
        whole("text/plain", line)
    };
    let vary = HeaderValue::from_static("accept, accept-encoding");
    response.headers_mut().insert(VARY, vary);
    *response.status_mut() = refusal.status;
    if let Some(allow) = refusal.allow {
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static(allow));
    }
    if refusal.challenge {
        for challenge in CHALLENGES.map(HeaderValue::from_static) {
            response.headers_mut().append(WWW_AUTHENTICATE, challenge);
        }
    }
    if let Some(seconds) = refusal.retry_after {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    if let Some(query) = refusal.query {
        name(&mut response, query);
    }
    response
}

fn problem(refusal: &Refusal, detail: &str) -> String {
    let mut problem = json!({
        "type": "about:blank",
        "title": refusal.status.canonical_reason(),
        "status": refusal.status.as_u16(),
        "detail": detail,
    });
    if let Some(mistake) = &refusal.mistake {
        problem["line"] = mistake.line.into();
        if let Some(column) = mistake.column {
            problem["column"] = column.into();
        }
        if let Some(hint) = &mistake.hint {
            problem["hint"] = hint.as_str().into();
        }
    }
    problem.to_string()
}

fn content_type(media_type: &str) -> HeaderValue {
    let value = if media_type.starts_with("text/") {
        HeaderValue::from_str(&format!("{media_type}; charset=utf-8"))
    } else {
        HeaderValue::from_str(media_type)
    };
    value.expect("our media types are plain ASCII")
}

/// Whether the client takes gzip.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| {
            value.split(',').any(|coding| {
                let (name, parameters) = coding.split_once(';').unwrap_or((coding, ""));
                let refused = parameters
                    .trim()
                    .strip_prefix("q=")
                    .is_some_and(|quality| quality.parse() == Ok(0.0_f32));
                name.trim().eq_ignore_ascii_case("gzip") && !refused
            })
        })
}

/// An answer that says no more than that it was done.
pub(crate) fn nothing() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// The answer to OPTIONS for a path that takes the methods `allow`: also a CORS preflight's.
pub(crate) fn options(allow: &'static str, request: &HeaderMap) -> Response<Body> {
    let mut response = nothing();
    let headers = response.headers_mut();
    headers.insert(ALLOW, HeaderValue::from_static(allow));
    if request.contains_key(ORIGIN) {
        headers.insert(
            ACCESS_CONTROL_ALLOW_METHODS,
            HeaderValue::from_static(allow),
        );
        if let Some(wanted) = request.get(ACCESS_CONTROL_REQUEST_HEADERS) {
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
        }
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    }
    response
}

/// Tells browsers whether the page that asks may read the answer.
pub(crate) fn allow_origin(
    cors: &Cors,
    origin: Option<&HeaderValue>,
    response: &mut Response<Body>,
) {
    let headers = response.headers_mut();
    if !matches!(cors, Cors::None | Cors::Local) && headers.contains_key(QUERY_ID) {
        let exposed = HeaderValue::from_name(QUERY_ID);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
    match (cors, origin) {
        (Cors::None | Cors::Local, _) => {}
        (Cors::Any, _) => {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        }
        (Cors::Origins(origins), Some(origin)) => {
            headers.append(VARY, HeaderValue::from_static("origin"));
            if origins
                .iter()
                .any(|allowed| allowed.as_bytes() == origin.as_bytes())
            {
                headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            }
        }
        (Cors::Origins(_), None) => {
            headers.append(VARY, HeaderValue::from_static("origin"));
        }
    }
}
