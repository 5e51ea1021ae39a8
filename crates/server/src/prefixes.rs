//! How are the prefixes that the database knows read and replaced?
//!
//! `GET /prefixes` gives an object of JSON, name to IRI, or declarations in Turtle; `PUT` takes the same
//! in the place of all that there are. The empty object alone removes all: a body that is empty, or
//! declares nothing, is rather a file that was not found.

use std::collections::BTreeMap;

use hyper::body::Incoming;
use hyper::header::{HeaderValue, VARY};
use hyper::{Method, Request, Response, StatusCode};
use jindou_engine::results::{Offer, negotiate};
use jindou_engine::{PrefixError, PrefixTable};

use crate::body::Body;
use crate::error::Refusal;
use crate::respond;
use crate::service::{Service, accept, content_type, media_type};

pub(crate) const PREFIXES: &str = "/prefixes";
pub(crate) const METHODS: &str = "GET, HEAD, PUT, OPTIONS";

const JSON: &str = "application/json";
const TURTLE: &str = "text/turtle";
/// No table is longer, in either format.
const MOST_BYTES: usize = 4 * PrefixTable::MOST * PrefixTable::MOST_BYTES;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Json,
    Turtle,
}

const OFFERS: &[Offer<Format>] = &[
    Offer::new(JSON, Format::Json),
    Offer::new(TURTLE, Format::Turtle),
];

impl Service {
    /// Answers a request about prefixes.
    pub(crate) async fn prefixes(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Refusal> {
        match *request.method() {
            Method::GET | Method::HEAD => self.read_prefixes(&request),
            Method::PUT => {
                self.check_write(&request)?;
                self.replace_prefixes(request).await
            }
            _ => Err(Refusal::method(METHODS)),
        }
    }

    fn read_prefixes(&self, request: &Request<Incoming>) -> Result<Response<Body>, Refusal> {
        let accept = accept(request.headers());
        let chosen = negotiate(&accept, OFFERS).ok_or_else(|| {
            let message =
                format!("prefixes are not available as {accept}; available: {JSON}, {TURTLE}");
            Refusal::new(StatusCode::NOT_ACCEPTABLE, message)
        })?;
        let table = self.executor.database.prefixes();
        let text = match chosen.format {
            Format::Turtle => table.to_turtle(),
            Format::Json => {
                let object: BTreeMap<&str, &str> = table.iter().collect();
                serde_json::to_string(&object).map_err(|_| Refusal::internal())?
            }
        };
        let mut response = respond::whole(chosen.media_type, text);
        let headers = response.headers_mut();
        headers.insert(VARY, HeaderValue::from_static("accept"));
        Ok(response)
    }

    async fn replace_prefixes(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Refusal> {
        let kind = media_type(&content_type(request.headers())?);
        let format = OFFERS.iter().find(|offer| offer.media_type == kind);
        let format = format.ok_or_else(|| {
            let said = match kind.as_str() {
                "" => "no Content-Type says in which format the prefixes are".to_owned(),
                kind => format!("prefixes are not read as {kind}"),
            };
            let message = format!("{said}; they may be {JSON} or {TURTLE}");
            Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
        })?;
        let body = self.receive(request).await?;
        if body.bytes.len() > MOST_BYTES {
            let message = format!("no table of prefixes has more than {MOST_BYTES} bytes");
            return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message));
        }
        let table = table(format.format, &body.bytes)?;
        let replace = |database: &jindou_engine::Database| database.set_prefixes(table);
        self.executor.ask(replace).await?;
        Ok(respond::nothing())
    }
}

/// The prefixes that a body has.
fn table(format: Format, body: &[u8]) -> Result<PrefixTable, Refusal> {
    if body.trim_ascii().is_empty() {
        return Err(refused(PrefixError::Empty));
    }
    match format {
        Format::Turtle => PrefixTable::of_turtle(body).map_err(refused),
        Format::Json => {
            let object: BTreeMap<String, String> =
                serde_json::from_slice(body).map_err(|error| {
                    let message = format!("the prefixes are no object of names and IRIs: {error}");
                    Refusal::bad_request(message)
                })?;
            let mut table = PrefixTable::default();
            for (name, iri) in &object {
                table.set(name, iri).map_err(refused)?;
            }
            Ok(table)
        }
    }
}

/// What the client is told of prefixes that cannot be.
fn refused(error: PrefixError) -> Refusal {
    let said = match error {
        PrefixError::Empty => format!(
            "{error}, so nothing was changed; a prefix is removed by a table without it, and all of them \
             by the object {{}} as {JSON}"
        ),
        error => error.to_string(),
    };
    Refusal::bad_request(said)
}
