//! What does a request ask for, by the SPARQL 1.1 Protocol?

use std::str::FromStr;
use std::time::Duration;

use oxrdf::NamedNode;

use crate::error::Refusal;

/// Names of formats that are looked at.
const MOST_FORMATS: usize = 8;

/// The parameters of a request, from its URL, its form, or both.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Parameters {
    pub(crate) query: Option<String>,
    pub(crate) default_graphs: Vec<NamedNode>,
    pub(crate) named_graphs: Vec<NamedNode>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) threads: Option<usize>,
    /// The names of formats, the one to be preferred first.
    pub(crate) formats: Vec<String>,
    pub(crate) profile: Option<bool>,
    pub(crate) explain: Option<bool>,
    pub(crate) union_default_graph: Option<bool>,
}

/// The parameters of an update, from its URL, its form, or both.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct UpdateParameters {
    pub(crate) update: Option<String>,
    pub(crate) using_graphs: Vec<NamedNode>,
    pub(crate) using_named_graphs: Vec<NamedNode>,
    pub(crate) union_default_graph: Option<bool>,
    pub(crate) return_delta: Option<bool>,
    pub(crate) timeout: Option<Duration>,
}

impl Parameters {
    /// Adds what an `application/x-www-form-urlencoded` string says. Parameters that mean nothing
    /// here are passed over.
    pub(crate) fn add(&mut self, encoded: &str) -> Result<(), Refusal> {
        for_each(encoded, |name, value| {
            match name {
                "query" => set(&mut self.query, name, without_mark(value()?))?,
                "default-graph-uri" => self.default_graphs.extend(graph(name, value()?)?),
                "named-graph-uri" => self.named_graphs.extend(graph(name, value()?)?),
                "timeout" => set_timeout(&mut self.timeout, &value()?)?,
                "threads" => set_threads(&mut self.threads, &value()?)?,
                "format" | "output" | "results" => {
                    // Whatever it is, it is no reason to refuse a query.
                    let value = value().unwrap_or_default();
                    let is_new = !value.is_empty() && !self.formats.contains(&value);
                    if is_new && self.formats.len() < MOST_FORMATS {
                        self.formats.push(value);
                    }
                }
                "profile" => set(&mut self.profile, name, switch(name, &value()?)?)?,
                "explain" => set(&mut self.explain, name, switch(name, &value()?)?)?,
                "union-default-graph" => {
                    set(
                        &mut self.union_default_graph,
                        name,
                        switch(name, &value()?)?,
                    )?;
                }
                "update" => return Err(both()),
                "using-graph-uri" | "using-named-graph-uri" if graph(name, value()?)?.is_some() => {
                    return Err(Refusal::bad_request(format!(
                        "the parameter {name} is of updates; a query's dataset is given by \
                         default-graph-uri and named-graph-uri"
                    )));
                }
                _ => {}
            }
            Ok(())
        })
    }
}

impl UpdateParameters {
    /// As [`Parameters::add`].
    pub(crate) fn add(&mut self, encoded: &str) -> Result<(), Refusal> {
        for_each(encoded, |name, value| {
            match name {
                "update" => set(&mut self.update, name, without_mark(value()?))?,
                "using-graph-uri" => self.using_graphs.extend(graph(name, value()?)?),
                "using-named-graph-uri" => self.using_named_graphs.extend(graph(name, value()?)?),
                "union-default-graph" => {
                    set(
                        &mut self.union_default_graph,
                        name,
                        switch(name, &value()?)?,
                    )?;
                }
                "return-delta" => {
                    set(&mut self.return_delta, name, switch(name, &value()?)?)?;
                }
                "timeout" => set_timeout(&mut self.timeout, &value()?)?,
                "query" => return Err(both()),
                "default-graph-uri" | "named-graph-uri" if graph(name, value()?)?.is_some() => {
                    return Err(Refusal::bad_request(format!(
                        "the parameter {name} is of queries; an update's dataset is given by \
                         using-graph-uri and using-named-graph-uri"
                    )));
                }
                _ => {}
            }
            Ok(())
        })
    }
}

/// Which graph a request to the graph store is about, by its parameters.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum GraphParameter {
    Default,
    Named(NamedNode),
    /// They do not say.
    None,
}

impl GraphParameter {
    pub(crate) fn of(encoded: &str) -> Result<Self, Refusal> {
        let mut found = Self::None;
        for pair in encoded.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let graph = match name {
                "default" if value.is_empty() => Self::Default,
                "default" => {
                    return Err(Refusal::bad_request("the parameter default takes no value"));
                }
                "graph" => {
                    // An IRI has no spaces, so a plus sign that was not encoded is one.
                    let value = decode(&value.replace('+', "%2B")).ok_or_else(|| {
                        Refusal::bad_request("the parameter graph is badly encoded")
                    })?;
                    Self::Named(iri(name, value)?)
                }
                _ => continue,
            };
            if found != Self::None {
                return Err(Refusal::bad_request(
                    "a request is about one graph: give graph or default, and once",
                ));
            }
            found = graph;
        }
        Ok(found)
    }
}

/// Decodes the names of an `application/x-www-form-urlencoded` string, and values when asked.
pub(crate) fn for_each(
    encoded: &str,
    mut each: impl FnMut(&str, &dyn Fn() -> Result<String, Refusal>) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    for pair in encoded.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decode(name)
            .ok_or_else(|| Refusal::bad_request("a parameter's name is badly encoded"))?;
        let value = || {
            decode(value).ok_or_else(|| {
                Refusal::bad_request(format!("the parameter {name} is badly encoded"))
            })
        };
        each(&name, &value)?;
    }
    Ok(())
}

/// The number that a parameter of a URL has, which is `what`, if it is given.
pub(crate) fn number<T: FromStr>(
    encoded: &str,
    wanted: &str,
    what: &str,
) -> Result<Option<T>, Refusal> {
    let mut number = None;
    for_each(encoded, |name, value| {
        if name != wanted {
            return Ok(());
        }
        let value = value()?;
        let parsed = value
            .parse()
            .map_err(|_| Refusal::bad_request(format!("{wanted} is {what}, not {value:?}")))?;
        match number.replace(parsed) {
            None => Ok(()),
            Some(_) => {
                let message = format!("the parameter {wanted} is given more than once");
                Err(Refusal::bad_request(message))
            }
        }
    })?;
    Ok(number)
}

/// Whether one of the parameters has this name, which needs no escapes.
pub(crate) fn names(encoded: &str, name: &str) -> bool {
    encoded
        .split('&')
        .any(|pair| pair.split('=').next() == Some(name))
}

/// A text without the byte order mark that some editors put before it.
pub(crate) fn without_mark(mut text: String) -> String {
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    text
}

/// Whether a text begins as an update does, behind its PREFIX and BASE declarations.
pub(crate) fn begins_as_update(text: &str) -> bool {
    const UPDATES: [&str; 11] = [
        "insert", "delete", "with", "load", "clear", "drop", "create", "add", "move", "copy",
        "using",
    ];
    first_word(text).is_some_and(|word| UPDATES.contains(&&*word))
}

/// Whether a text begins as a query does.
pub(crate) fn begins_as_query(text: &str) -> bool {
    let forms = ["select", "ask", "construct", "describe"];
    first_word(text).is_some_and(|word| forms.contains(&&*word))
}

/// The first word behind the declarations and comments, in lower case.
fn first_word(text: &str) -> Option<String> {
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        if rest.starts_with('#') {
            rest = rest.split_once(['\n', '\r'])?.1;
            continue;
        }
        let end = rest.find(|c: char| !c.is_ascii_alphabetic());
        let word = rest[..end.unwrap_or(rest.len())].to_ascii_lowercase();
        match &*word {
            // Both end with an IRI.
            "prefix" | "base" => rest = rest.split_once('>')?.1,
            _ => return Some(word).filter(|word| !word.is_empty()),
        }
    }
}

fn both() -> Refusal {
    Refusal::bad_request("a request is a query or an update; this one has both parameters")
}

fn set<T>(place: &mut Option<T>, name: &str, value: T) -> Result<(), Refusal> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Refusal::bad_request(format!(
            "the parameter {name} is given more than once"
        ))),
    }
}

/// Sets a limit of time, unless it is left to the server.
fn set_timeout(place: &mut Option<Duration>, value: &str) -> Result<(), Refusal> {
    match duration(value)? {
        Some(limit) => set(place, "timeout", limit),
        None => Ok(()),
    }
}

/// Sets how many threads are used, unless it is left to the server.
fn set_threads(place: &mut Option<usize>, value: &str) -> Result<(), Refusal> {
    if value.is_empty() {
        return Ok(());
    }
    match value.parse() {
        Ok(threads) if threads > 0 => set(place, "threads", threads),
        _ => Err(Refusal::bad_request(format!(
            "threads is a number from 1 on, not {value:?}"
        ))),
    }
}

/// A graph, unless the value is empty: clients send such for what was not chosen.
fn graph(name: &str, value: String) -> Result<Option<NamedNode>, Refusal> {
    match value.is_empty() {
        true => Ok(None),
        false => iri(name, value).map(Some),
    }
}

fn iri(name: &str, value: String) -> Result<NamedNode, Refusal> {
    NamedNode::new(value)
        .map_err(|error| Refusal::bad_request(format!("{name} is not an absolute IRI: {error}")))
}

fn switch(name: &str, value: &str) -> Result<bool, Refusal> {
    match value {
        "true" | "1" | "" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(Refusal::bad_request(format!(
            "{name} is true or false, not {value:?}"
        ))),
    }
}

/// `2`, `2.5`, `2.5s` or `250ms`; `None` for zero and for nothing.
fn duration(value: &str) -> Result<Option<Duration>, Refusal> {
    if value.is_empty() {
        return Ok(None);
    }
    let (number, unit) = match (value.strip_suffix("ms"), value.strip_suffix('s')) {
        (Some(number), _) => (number, 1e-3),
        (None, Some(number)) => (number, 1.0),
        (None, None) => (value, 1.0),
    };
    let seconds: Option<f64> = number.trim().parse().ok();
    let duration = seconds
        .filter(|&seconds| seconds >= 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds * unit).ok());
    match duration {
        // What rounds to nothing was asked for all the same.
        Some(Duration::ZERO) if seconds != Some(0.0) => Ok(Some(Duration::from_nanos(1))),
        Some(Duration::ZERO) => Ok(None),
        Some(duration) => Ok(Some(duration)),
        None => Err(Refusal::bad_request(format!(
            "timeout is a number of seconds, as in 2.5 or 250ms, not {value:?}"
        ))),
    }
}

/// Decodes one name or value; `None` when an escape is broken or the bytes are not UTF-8, since
/// another query than the client's must not be answered.
fn decode(encoded: &str) -> Option<String> {
    if !encoded.bytes().any(|byte| byte == b'%' || byte == b'+') {
        return Some(encoded.to_owned());
    }
    let mut decoded = Vec::with_capacity(encoded.len());
    let mut bytes = encoded.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => hex(bytes.next()?)? << 4 | hex(bytes.next()?)?,
            byte => byte,
        });
    }
    String::from_utf8(decoded).ok()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::StatusCode;

    fn parse(encoded: &str) -> Result<Parameters, Refusal> {
        let mut parameters = Parameters::default();
        parameters.add(encoded).map(|()| parameters)
    }

    #[test]
    fn parameters_are_decoded() {
        let parameters = parse(
            "query=ASK+%7B%7D%20%23%c3%a9%26%3D&named-graph-uri=http%3A%2F%2Fe%2Fa&other=1&\
             named-graph-uri=http://e/b&timeout=250ms&threads=2&profile=true",
        )
        .unwrap();
        assert_eq!(parameters.query.as_deref(), Some("ASK {} #é&="));
        assert_eq!(parameters.named_graphs.len(), 2);
        assert_eq!(parameters.timeout, Some(Duration::from_millis(250)));
        assert_eq!(parameters.threads, Some(2));
        assert_eq!(parameters.profile, Some(true));
        assert_eq!(parameters.explain, None);
        let left_open = parse("query=ASK&threads=&timeout=").unwrap();
        assert_eq!((left_open.threads, left_open.timeout), (None, None));
    }

    #[test]
    fn wrong_parameters_are_bad_requests() {
        for encoded in [
            "query=%",
            "query=%2",
            "query=%zz",
            "query=%ff",
            "query=a&query=b",
            "timeout=x",
            "timeout=-1",
            "timeout=nan",
            "timeout=1e300",
            "timeout=inf",
            "threads=0",
            "threads=-1",
            "threads=many",
            "threads=1&threads=2",
            "default-graph-uri=a",
            "profile=yes",
        ] {
            let refusal = parse(encoded).expect_err(encoded);
            assert_eq!(refusal.status, StatusCode::BAD_REQUEST, "{encoded}");
        }
    }

    #[test]
    fn durations_have_units() {
        for (text, millis) in [("2", 2000), ("1.5", 1500), ("1.5s", 1500), ("20ms", 20)] {
            assert_eq!(
                duration(text).unwrap(),
                Some(Duration::from_millis(millis)),
                "{text}"
            );
        }
    }

    #[test]
    fn queries_and_updates_are_not_taken_for_each_other() {
        let query = parse("update=CLEAR+ALL").unwrap_err();
        assert_eq!(query.status, StatusCode::BAD_REQUEST);
        assert!(query.message.contains("both"));
        for wrong in [
            "query=ASK+%7B%7D",
            "update=a&update=b",
            "default-graph-uri=http://e/a",
            "using-graph-uri=a",
            "return-delta=json",
            "return-delta=true&return-delta=true",
        ] {
            let refusal = UpdateParameters::default().add(wrong).expect_err(wrong);
            assert_eq!(refusal.status, StatusCode::BAD_REQUEST, "{wrong}");
        }
        let mut update = UpdateParameters::default();
        update
            .add("update=CLEAR+ALL&using-graph-uri=http://e/a&using-named-graph-uri=http://e/b")
            .unwrap();
        assert_eq!(update.update.as_deref(), Some("CLEAR ALL"));
        assert_eq!(
            (update.using_graphs.len(), update.using_named_graphs.len()),
            (1, 1)
        );
    }

    #[test]
    fn texts_are_told_apart_by_their_first_word() {
        let prologue = "# a comment > here\nPREFIX select: <http://e/>\nbase<http://e/#insert> ";
        assert!(begins_as_update(&format!("{prologue}INSERT DATA {{}}")));
        assert!(begins_as_query(&format!("{prologue}Select * {{}}")));
        for neither in ["", "{", "# only a comment", "PREFIX a:", "SELECTION"] {
            assert!(
                !begins_as_update(neither) && !begins_as_query(neither),
                "{neither}"
            );
        }
    }

    #[test]
    fn the_graph_of_a_request_is_decoded_once() {
        let graph = |encoded| GraphParameter::of(encoded);
        let named = |iri: &str| GraphParameter::Named(NamedNode::new_unchecked(iri));
        assert_eq!(graph("default").unwrap(), GraphParameter::Default);
        assert_eq!(
            graph("graph=http%3A%2F%2Fe%2F%2531").unwrap(),
            named("http://e/%31")
        );
        assert_eq!(graph("graph=urn:a+b&other=1").unwrap(), named("urn:a+b"));
        assert_eq!(graph("").unwrap(), GraphParameter::None);
        for wrong in [
            "default&graph=http://e/",
            "graph=a",
            "graph=%",
            "default=1",
            "default&default",
        ] {
            assert_eq!(
                graph(wrong).expect_err(wrong).status,
                StatusCode::BAD_REQUEST
            );
        }
    }
}
