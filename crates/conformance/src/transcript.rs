//! Which exchanges does the prose of the older graph store suite hold?
//!
//! The suite `http-rdf-update`, which the W3C keeps but has replaced, shows each test as the text
//! of a request and of its answer, in Markdown. Its tests follow on each other, and some of what it
//! shows cannot be right; [`Repair`] says what is read otherwise, each time with the reason.

use crate::exchange::{Exchange, Expected, Status};
use crate::manifest::{ManifestError, list, mf, parse_graph};
use oxrdf::vocab::rdfs;
use oxrdf::{Graph, Term, TermRef};
use std::collections::BTreeMap;

/// A test as prose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcript {
    /// The IRI of the test.
    pub iri: String,
    /// Its name, for messages.
    pub name: String,
    /// What it shows, in Markdown.
    pub text: String,
}

/// What is read otherwise than the suite shows it.
#[derive(Debug, Clone, Copy)]
pub struct Repair {
    /// The local name of the test.
    pub test: &'static str,
    /// What is wrong with it.
    pub reason: &'static str,
    /// What stands there, and what should.
    pub replace: &'static [(&'static str, &'static str)],
    /// A request that has to come before: method, target and body in Turtle.
    pub before: Option<(&'static str, &'static str, &'static str)>,
}

/// The tests that the manifest at `path` lists, in its order.
///
/// # Errors
/// When the manifest is absent or malformed, or a test shows no exchange.
pub fn transcripts(
    files: &BTreeMap<String, Vec<u8>>,
    path: &str,
) -> Result<Vec<Transcript>, ManifestError> {
    let malformed = |reason: String| ManifestError::Malformed {
        path: path.to_owned(),
        reason,
    };
    let graph: Graph = parse_graph(files, path)?
        .into_iter()
        .map(oxrdf::Triple::from)
        .collect();
    let entries = graph.triples_for_predicate(&mf("entries")).next();
    let Some(TermRef::BlankNode(entries)) = entries.map(|triple| triple.object) else {
        return Err(malformed("it lists no tests".to_owned()));
    };
    let read = |test: Term| {
        let Term::NamedNode(test) = test else {
            return Err(malformed(format!("{test} is listed as a test")));
        };
        let Some(TermRef::Literal(name)) = graph.object_for_subject_predicate(&test, &mf("name"))
        else {
            return Err(malformed(format!("{test} has no name")));
        };
        let mut comments = graph.objects_for_subject_predicate(&test, rdfs::COMMENT);
        let text = comments.find_map(|comment| match comment {
            TermRef::Literal(comment) if comment.value().contains(REQUEST) => Some(comment.value()),
            _ => None,
        });
        Ok(Transcript {
            name: name.value().to_owned(),
            text: text
                .ok_or_else(|| malformed(format!("{test} shows no request")))?
                .to_owned(),
            iri: test.into_string(),
        })
    };
    list(&graph, entries.into()).into_iter().map(read).collect()
}

const REQUEST: &str = "#### Request";
const RESPONSE: &str = "#### Response";

impl Transcript {
    /// The local name of the test.
    #[must_use]
    pub fn local_name(&self) -> &str {
        self.iri.rsplit('#').next().unwrap_or(&self.iri)
    }

    /// The exchange that the text shows, with `host` for `$HOST$` and the path `store` for
    /// `$GRAPHSTORE$`, after a repair.
    ///
    /// # Errors
    /// What is wrong with the text, or which part of the repair does not fit it.
    pub fn exchange(
        &self,
        repair: Option<&Repair>,
        host: &str,
        store: &str,
    ) -> Result<Exchange, String> {
        let mut text = self.text.clone();
        for (from, to) in repair.map_or(&[][..], |repair| repair.replace) {
            if !text.contains(from) {
                return Err(format!("there is no {from:?} to be repaired"));
            }
            text = text.replace(from, to);
        }
        let text = text
            .replace("/$GRAPHSTORE$", store)
            .replace("$GRAPHSTORE$", store)
            .replace("$HOST$", host);
        let (request, response) = text.split_once(RESPONSE).ok_or("no response is shown")?;
        let (_, request) = request.split_once(REQUEST).ok_or("no request is shown")?;
        let (line, headers, body) = message(request);
        let mut words = line.split_whitespace();
        let (Some(method), Some(target), Some("HTTP/1.1")) =
            (words.next(), words.next(), words.next())
        else {
            return Err(format!("{line:?} is no request"));
        };
        let is_form = headers
            .iter()
            .any(|(_, value)| value.starts_with("multipart/"));
        Ok(Exchange {
            method: method.to_owned(),
            target: target.to_owned(),
            headers,
            // What prose cannot show: the lines of a form end with both characters.
            body: match is_form {
                true => body.replace('\n', "\r\n").into(),
                false => body.into(),
            },
            expected: expected(response, method)?,
        })
    }
}

fn expected(response: &str, method: &str) -> Result<Expected, String> {
    let (line, mut headers, document) = message(response);
    let status = line.split_whitespace().next().and_then(|s| s.parse().ok());
    let status: u16 = status.ok_or_else(|| format!("{line:?} is no status"))?;
    let is_read = matches!(method, "GET" | "HEAD");
    let statuses = match (status, is_read) {
        // A write that was done has something to say or not, as the server likes.
        (200 | 204, false) => vec![Status::Is(200), Status::Is(204)],
        _ => vec![Status::Is(status)],
    };
    let location = headers.iter().position(|(name, _)| name == "location");
    let location = location.map(|at| headers.remove(at).1);
    // It is shown as dots, and an answer in chunks has none.
    headers.retain(|(name, value)| !(name == "content-length" && value == "..."));
    Ok(Expected {
        statuses,
        location,
        headers,
        document: Some(document).filter(|document| !document.is_empty()),
        ..Expected::default()
    })
}

/// The first line, the headers but `Host`, and what follows, of a block that is indented.
fn message(block: &str) -> (String, Vec<(String, String)>, String) {
    let lines = block
        .lines()
        .map(|line| line.strip_prefix("    ").unwrap_or(line));
    let mut lines = lines.skip_while(|line| line.trim().is_empty());
    let first = lines.next().unwrap_or_default().trim().to_owned();
    let headers = lines
        .by_ref()
        .map_while(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .filter(|(name, _)| name != "host")
        .collect();
    let rest: Vec<&str> = lines.collect();
    let rest = rest.join("\n");
    let rest = match rest.trim() {
        "" => String::new(),
        text => format!("{text}\n"),
    };
    (first, headers, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transcript(text: &str) -> Transcript {
        Transcript {
            iri: "http://e/#one".to_owned(),
            name: "one".to_owned(),
            text: text.to_owned(),
        }
    }

    const POST: &str = "\n#### Request\n\n    POST $GRAPHSTORE$/1 HTTP/1.1\n    Host: $HOST$\n    \
        Content-Type: multipart/form-data; boundary=b\n\n    --b\n    A: B\n\n    \
        <http://$HOST$/$GRAPHSTORE$/1>\n    --b--\n\n#### Response\n\n    200 OK\n    \
        Location: $NEW$\n    Content-Length: ...\n    ";

    #[test]
    fn requests_and_answers_are_read_from_prose() {
        let exchange = transcript(POST)
            .exchange(None, "h", "/s")
            .expect("well formed");
        assert_eq!(
            (exchange.method.as_str(), exchange.target.as_str()),
            ("POST", "/s/1")
        );
        assert_eq!(exchange.headers.len(), 1, "Host is not among them");
        assert_eq!(
            exchange.body,
            b"--b\r\nA: B\r\n\r\n<http://h/s/1>\r\n--b--\r\n"
        );
        let expected = exchange.expected;
        assert_eq!(expected.statuses, [Status::Is(200), Status::Is(204)]);
        assert_eq!(expected.location.as_deref(), Some("$NEW$"));
        assert!(expected.headers.is_empty() && expected.document.is_none());
    }

    #[test]
    fn a_repair_that_does_not_fit_is_an_error() {
        let repair = |replace| Repair {
            test: "one",
            reason: "why not",
            replace,
            before: None,
        };
        let transcript = transcript(POST);
        let repaired = |replace| transcript.exchange(Some(&repair(replace)), "h", "/s");
        let exchange = repaired(&[("200 OK", "404 Not Found")]).expect("it fits");
        assert_eq!(exchange.expected.statuses, [Status::Is(404)]);
        assert!(repaired(&[("201 Created", "200 OK")]).is_err());
    }
}
