//! Which HTTP requests does a W3C manifest of protocol tests hold, and which answers do they want?
//!
//! The manifests of the SPARQL Protocol and of the Graph Store Protocol describe each exchange in
//! the W3C's vocabulary of HTTP (`ht:requests`, `ht:resp`), with a few terms of their own for what
//! is expected. A term that is not known here is an error, so that no expectation is passed over.

use crate::manifest::{ManifestError, file, list, mf, parse_graph};
use oxrdf::vocab::{rdf, rdfs};
use oxrdf::{Graph, NamedNode, NamedOrBlankNode, NamedOrBlankNodeRef, Term, TermRef};
use std::collections::{BTreeMap, BTreeSet};

const HT: &str = "http://www.w3.org/2011/http#";
const CNT: &str = "http://www.w3.org/2011/content#";
const STATUS: &str = "http://www.w3.org/2011/http-statusCodes#";
const UT: &str = "http://www.w3.org/2009/sparql/tests/test-update#";

/// One test: requests to be made one after another of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExchangeTest {
    /// The IRI of the test.
    pub iri: String,
    /// Its name, for messages.
    pub name: String,
    /// Local names of the features that a server needs for it, such as `POSTGraphCreation`.
    pub requires: BTreeSet<String>,
    /// What the store holds before: names of graphs, and the paths of their files.
    pub graphs: Vec<(String, String)>,
    /// The requests, with what is expected of each answer.
    pub exchanges: Vec<Exchange>,
}

/// A request and the answer that it should get.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exchange {
    /// Such as `GET`.
    pub method: String,
    /// The path with its parameters, as the manifest has it: `/sparql/...` or `/gsp...`.
    pub target: String,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// In the encoding that the manifest asks for; empty if there is none.
    pub body: Vec<u8>,
    /// What should come of it.
    pub expected: Expected,
}

/// What is expected of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expected {
    /// Any of these.
    pub statuses: Vec<Status>,
    /// The answer to ASK.
    pub boolean: Option<bool>,
    /// What the body is.
    pub form: Option<Form>,
    /// The answer has a `Location`, whose value stands for this text in later requests.
    pub location: Option<String>,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// A document that means the same as the body.
    pub document: Option<String>,
}

/// A status that is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// This one.
    Is(u16),
    /// One of this hundred.
    Class(u16),
}

impl Status {
    /// Whether `status` is this.
    #[must_use]
    pub fn holds(self, status: u16) -> bool {
        match self {
            Self::Is(expected) => expected == status,
            Self::Class(hundred) => status / 100 == hundred,
        }
    }
}

/// What kind of body is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Of ASK.
    Boolean,
    /// Of SELECT.
    Tabular,
    /// A graph.
    Rdf,
}

/// The tests that the manifest at `path` describes: first those that it lists, in its order, then
/// those that it forgets to list. Included manifests are not followed.
///
/// # Errors
/// When the manifest is absent or malformed, or says something that is not known here.
pub fn exchange_tests(
    files: &BTreeMap<String, Vec<u8>>,
    path: &str,
) -> Result<Vec<ExchangeTest>, ManifestError> {
    let graph: Graph = parse_graph(files, path)?
        .into_iter()
        .map(oxrdf::Triple::from)
        .collect();
    let reader = Reader { graph, path };
    let entries = reader.graph.triples_for_predicate(&mf("entries")).next();
    let mut nodes = match entries.map(|triple| triple.object) {
        Some(TermRef::BlankNode(entries)) => list(&reader.graph, entries.into()),
        _ => Vec::new(),
    };
    for kind in ["ProtocolTest", "GraphStoreProtocolTest"] {
        let kind = mf(kind);
        let described = reader
            .graph
            .subjects_for_predicate_object(rdf::TYPE, kind.as_ref());
        let mut described: Vec<Term> = described.map(|test| test.into_owned().into()).collect();
        described.sort_by_key(ToString::to_string);
        described.retain(|test| !nodes.contains(test));
        nodes.extend(described);
    }
    nodes.iter().map(|node| reader.test(node)).collect()
}

struct Reader<'a> {
    graph: Graph,
    path: &'a str,
}

impl Reader<'_> {
    fn malformed(&self, reason: impl Into<String>) -> ManifestError {
        ManifestError::Malformed {
            path: self.path.to_owned(),
            reason: reason.into(),
        }
    }

    fn test(&self, node: &Term) -> Result<ExchangeTest, ManifestError> {
        let Term::NamedNode(node) = node else {
            return Err(self.malformed(format!("{node} is listed as a test")));
        };
        let of = |predicate: NamedNode| self.graph.object_for_subject_predicate(node, &predicate);
        let Some(TermRef::Literal(name)) = of(mf("name")) else {
            return Err(self.malformed(format!("{node} has no name")));
        };
        let Some(TermRef::BlankNode(action)) = of(mf("action")) else {
            return Err(self.malformed(format!("{node} has no action")));
        };
        let requires = mf("requires");
        let requires = self.graph.objects_for_subject_predicate(node, &requires);
        let exchanges = self.members(action.into(), "requests")?;
        if exchanges.is_empty() {
            return Err(self.malformed(format!("{node} makes no requests")));
        }
        Ok(ExchangeTest {
            iri: node.as_str().to_owned(),
            name: name.value().to_owned(),
            requires: requires.map(local_name).collect(),
            graphs: self.graphs(node)?,
            exchanges: exchanges
                .iter()
                .map(|request| self.exchange(request.as_ref()))
                .collect::<Result<_, _>>()?,
        })
    }

    /// The graphs that a test starts with.
    fn graphs(&self, test: &NamedNode) -> Result<Vec<(String, String)>, ManifestError> {
        let predicate = NamedNode::new_unchecked(format!("{UT}graphData"));
        let mut graphs = Vec::new();
        for data in self.graph.objects_for_subject_predicate(test, &predicate) {
            let data = node(data).ok_or_else(|| self.malformed("graph data is a literal"))?;
            let graph = NamedNode::new_unchecked(format!("{UT}graph"));
            let path = self.graph.object_for_subject_predicate(data, &graph);
            let name = self.graph.object_for_subject_predicate(data, rdfs::LABEL);
            match (path.and_then(file), name) {
                (Some(path), Some(TermRef::Literal(name))) => {
                    graphs.push((name.value().to_owned(), path));
                }
                _ => return Err(self.malformed(format!("{test} has graph data without a name"))),
            }
        }
        Ok(graphs)
    }

    fn exchange(&self, request: NamedOrBlankNodeRef<'_>) -> Result<Exchange, ManifestError> {
        let response = self
            .object(request, &ht("resp"))
            .and_then(node)
            .ok_or_else(|| self.malformed("a request without a response"))?;
        Ok(Exchange {
            method: self.required(request, "methodName")?,
            target: self.required(request, "absolutePath")?,
            headers: self.headers(request)?,
            body: match self.body(request)? {
                None => Vec::new(),
                Some((text, encoding)) => match encoding.as_str() {
                    "UTF-8" => text.into_bytes(),
                    "UTF-16" => utf16(&text),
                    other => return Err(self.malformed(format!("a body in {other}"))),
                },
            },
            expected: self.expected(response)?,
        })
    }

    fn expected(&self, response: NamedOrBlankNodeRef<'_>) -> Result<Expected, ManifestError> {
        let known = [
            "expectedStatus",
            "expectedBoolean",
            "expectedFormat",
            "expectedLocation",
        ]
        .map(mf)
        .into_iter()
        .chain([ht("headers"), ht("body"), rdf::TYPE.into_owned()])
        .collect::<Vec<_>>();
        for triple in self.graph.triples_for_subject(response) {
            if !known.iter().any(|known| known.as_ref() == triple.predicate) {
                return Err(self.malformed(format!("{} is not known", triple.predicate)));
            }
        }
        let text = |name| self.text(response, &mf(name));
        let statuses = mf("expectedStatus");
        let statuses = self
            .graph
            .objects_for_subject_predicate(response, &statuses);
        let expected = Expected {
            statuses: statuses
                .map(|status| self.status(status))
                .collect::<Result<_, _>>()?,
            boolean: match text("expectedBoolean").as_deref() {
                None => None,
                Some("true") => Some(true),
                Some("false") => Some(false),
                Some(other) => return Err(self.malformed(format!("{other} is no boolean"))),
            },
            form: match text("expectedFormat").as_deref() {
                None => None,
                Some("boolean") => Some(Form::Boolean),
                Some("tabular") => Some(Form::Tabular),
                Some("RDF") => Some(Form::Rdf),
                Some(other) => return Err(self.malformed(format!("no form of answer is {other}"))),
            },
            location: text("expectedLocation"),
            headers: self.headers(response)?,
            document: self.body(response)?.map(|(text, _)| text),
        };
        if expected.statuses.is_empty() {
            return Err(self.malformed("an answer of any status"));
        }
        Ok(expected)
    }

    fn status(&self, status: TermRef<'_>) -> Result<Status, ManifestError> {
        match local_name(status).as_str() {
            "OK" => Ok(Status::Is(200)),
            "Created" => Ok(Status::Is(201)),
            "NoContent" => Ok(Status::Is(204)),
            "NotFound" => Ok(Status::Is(404)),
            "StatusCode2xx" => Ok(Status::Class(2)),
            "StatusCode3xx" => Ok(Status::Class(3)),
            "StatusCode4xx" => Ok(Status::Class(4)),
            _ => Err(self.malformed(format!("the status {status} is not known"))),
        }
    }

    fn headers(
        &self,
        message: NamedOrBlankNodeRef<'_>,
    ) -> Result<Vec<(String, String)>, ManifestError> {
        let headers = self.members(message, "headers")?;
        let read = |header: &NamedOrBlankNode| {
            let name = self.required(header.as_ref(), "fieldName")?;
            let value = self.required(header.as_ref(), "fieldValue")?;
            Ok((name.to_ascii_lowercase(), value))
        };
        headers.iter().map(read).collect()
    }

    /// A body's text, and the encoding that it should have.
    fn body(
        &self,
        message: NamedOrBlankNodeRef<'_>,
    ) -> Result<Option<(String, String)>, ManifestError> {
        let Some(body) = self.object(message, &ht("body")) else {
            return Ok(None);
        };
        let body = node(body).ok_or_else(|| self.malformed("a body is a literal"))?;
        let part = |name: &str| {
            let predicate = NamedNode::new_unchecked(format!("{CNT}{name}"));
            self.text(body, &predicate)
                .ok_or_else(|| self.malformed(format!("a body has no {name}")))
        };
        Ok(Some((part("chars")?, part("characterEncoding")?)))
    }

    /// The members of the list that is the value of `ht:name`; none if there is no list.
    fn members(
        &self,
        subject: NamedOrBlankNodeRef<'_>,
        name: &str,
    ) -> Result<Vec<NamedOrBlankNode>, ManifestError> {
        let Some(start) = self.object(subject, &ht(name)) else {
            return Ok(Vec::new());
        };
        let start = node(start).ok_or_else(|| self.malformed(format!("{name} is no list")))?;
        let own = |term: Term| match term {
            Term::NamedNode(node) => Ok(node.into()),
            Term::BlankNode(node) => Ok(node.into()),
            Term::Literal(_) => Err(self.malformed(format!("a literal in the list {name}"))),
        };
        list(&self.graph, start).into_iter().map(own).collect()
    }

    fn object(
        &self,
        subject: NamedOrBlankNodeRef<'_>,
        predicate: &NamedNode,
    ) -> Option<TermRef<'_>> {
        self.graph.object_for_subject_predicate(subject, predicate)
    }

    fn text(&self, subject: NamedOrBlankNodeRef<'_>, predicate: &NamedNode) -> Option<String> {
        match self.object(subject, predicate) {
            Some(TermRef::Literal(literal)) => Some(literal.value().to_owned()),
            _ => None,
        }
    }

    fn required(
        &self,
        subject: NamedOrBlankNodeRef<'_>,
        name: &str,
    ) -> Result<String, ManifestError> {
        self.text(subject, &ht(name))
            .ok_or_else(|| self.malformed(format!("a message without {name}")))
    }
}

fn ht(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{HT}{name}"))
}

fn node(term: TermRef<'_>) -> Option<NamedOrBlankNodeRef<'_>> {
    match term {
        TermRef::NamedNode(node) => Some(node.into()),
        TermRef::BlankNode(node) => Some(node.into()),
        TermRef::Literal(_) => None,
    }
}

fn local_name(term: TermRef<'_>) -> String {
    let text = match term {
        TermRef::NamedNode(node) => node.as_str(),
        _ => return term.to_string(),
    };
    match text.strip_prefix(STATUS) {
        Some(status) => status.to_owned(),
        None => text.rsplit(['#', '/']).next().unwrap_or(text).to_owned(),
    }
}

/// Big-endian, with a byte order mark.
fn utf16(text: &str) -> Vec<u8> {
    let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
    units.flat_map(u16::to_be_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = r#"
        @prefix : <http://e/#> .
        @prefix mf: <http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#> .
        @prefix cnt: <http://www.w3.org/2011/content#> .
        @prefix ht: <http://www.w3.org/2011/http#> .
        @prefix hts: <http://www.w3.org/2011/http-statusCodes#> .
        @prefix ut: <http://www.w3.org/2009/sparql/tests/test-update#> .
        @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
        <> mf:entries (:one) .
        :forgotten a mf:ProtocolTest ; mf:name "forgotten" ; mf:action [ ht:requests ([
            ht:methodName "HEAD" ; ht:absolutePath "/b" ;
            ht:resp [ mf:expectedStatus hts:NotFound, hts:StatusCode3xx ] ]) ] .
        :one a mf:ProtocolTest ; mf:name "one" ; mf:requires mf:Luck ;
            ut:graphData [ ut:graph <data.nt> ; rdfs:label "http://e/g" ] ;
            mf:action [ ht:requests ([
                ht:methodName "POST" ; ht:absolutePath "/a" ;
                ht:body [ cnt:chars "ab" ; cnt:characterEncoding "UTF-16" ] ;
                ht:headers ([ ht:fieldName "Content-Type" ; ht:fieldValue "text/plain" ]) ;
                ht:resp [ a ht:Response ; mf:expectedStatus hts:StatusCode2xx ;
                    mf:expectedBoolean false ; mf:expectedFormat "boolean" ] ]) ] ."#;

    fn read(text: &str) -> Result<Vec<ExchangeTest>, ManifestError> {
        let files = BTreeMap::from([("m/manifest.ttl".to_owned(), text.as_bytes().to_vec())]);
        exchange_tests(&files, "m/manifest.ttl")
    }

    #[test]
    fn requests_and_expectations_are_read_and_forgotten_tests_come_last() {
        let tests = read(MANIFEST).expect("it is well formed");
        let [one, forgotten] = &tests[..] else {
            panic!("{} tests", tests.len());
        };
        assert_eq!(one.graphs, [("http://e/g".into(), "m/data.nt".into())]);
        assert!(one.requires.contains("Luck"));
        let exchange = &one.exchanges[0];
        assert_eq!(exchange.body, b"\xFE\xFF\0a\0b");
        assert_eq!(
            exchange.headers,
            [("content-type".to_owned(), "text/plain".to_owned())]
        );
        assert_eq!(exchange.expected.boolean, Some(false));
        assert_eq!(exchange.expected.form, Some(Form::Boolean));
        assert!(exchange.expected.statuses[0].holds(204));
        let statuses = &forgotten.exchanges[0].expected.statuses;
        assert!(statuses.iter().any(|status| status.holds(404)));
        assert!(!statuses.iter().any(|status| status.holds(400)));
    }

    #[test]
    fn expectations_that_are_not_known_are_errors() {
        for (from, to) in [
            ("hts:NotFound", "hts:Gone"),
            ("mf:expectedBoolean", "mf:expectedMood"),
            ("expectedFormat \"boolean\"", "expectedFormat \"song\""),
            ("mf:expectedStatus hts:StatusCode2xx ;", ""),
            ("UTF-16", "EBCDIC"),
        ] {
            assert!(MANIFEST.contains(from));
            assert!(read(&MANIFEST.replace(from, to)).is_err(), "{to}");
        }
    }
}
