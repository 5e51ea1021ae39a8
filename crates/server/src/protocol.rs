//! What does a request ask for, by the SPARQL 1.1 Protocol?

use std::time::Duration;

use hyper::StatusCode;
use oxrdf::NamedNode;

use crate::error::Refusal;

/// The parameters of a request, from its URL, its form, or both.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Parameters {
    pub(crate) query: Option<String>,
    pub(crate) default_graphs: Vec<NamedNode>,
    pub(crate) named_graphs: Vec<NamedNode>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) format: Option<String>,
    pub(crate) profile: Option<bool>,
    pub(crate) explain: Option<bool>,
}

impl Parameters {
    /// Adds what an `application/x-www-form-urlencoded` string says. Parameters that mean nothing
    /// here are passed over.
    pub(crate) fn add(&mut self, encoded: &str) -> Result<(), Refusal> {
        for pair in encoded.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decode(name)
                .ok_or_else(|| Refusal::bad_request("a parameter's name is badly encoded"))?;
            let value = || {
                decode(value).ok_or_else(|| {
                    Refusal::bad_request(format!("the parameter {name} is badly encoded"))
                })
            };
            match &*name {
                "query" => set(&mut self.query, &name, value()?)?,
                "default-graph-uri" => self.default_graphs.push(iri(&name, value()?)?),
                "named-graph-uri" => self.named_graphs.push(iri(&name, value()?)?),
                "timeout" => set(&mut self.timeout, &name, duration(&value()?)?)?,
                "format" | "output" => set(&mut self.format, &name, value()?)?,
                "profile" => set(&mut self.profile, &name, switch(&name, &value()?)?)?,
                "explain" => set(&mut self.explain, &name, switch(&name, &value()?)?)?,
                "update" | "using-graph-uri" | "using-named-graph-uri" => return Err(update()),
                _ => {}
            }
        }
        Ok(())
    }
}

/// What is said to any update.
pub(crate) fn update() -> Refusal {
    Refusal::new(StatusCode::NOT_IMPLEMENTED, "not supported: SPARQL Update")
}

fn set<T>(place: &mut Option<T>, name: &str, value: T) -> Result<(), Refusal> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Refusal::bad_request(format!(
            "the parameter {name} is given more than once"
        ))),
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

/// `2`, `2.5`, `2.5s` or `250ms`; more than zero.
fn duration(value: &str) -> Result<Duration, Refusal> {
    let (number, unit) = match (value.strip_suffix("ms"), value.strip_suffix('s')) {
        (Some(number), _) => (number, 1e-3),
        (None, Some(number)) => (number, 1.0),
        (None, None) => (value, 1.0),
    };
    let seconds: Option<f64> = number.trim().parse().ok();
    seconds
        .filter(|&seconds| seconds > 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds * unit).ok())
        .ok_or_else(|| {
            Refusal::bad_request(format!(
                "timeout is a number of seconds above 0, as in 2.5 or 250ms, not {value:?}"
            ))
        })
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

    fn parse(encoded: &str) -> Result<Parameters, Refusal> {
        let mut parameters = Parameters::default();
        parameters.add(encoded).map(|()| parameters)
    }

    #[test]
    fn parameters_are_decoded() {
        let parameters = parse(
            "query=ASK+%7B%7D%20%23%c3%a9%26%3D&named-graph-uri=http%3A%2F%2Fe%2Fa&other=1&\
             named-graph-uri=http://e/b&timeout=250ms&profile=true",
        )
        .unwrap();
        assert_eq!(parameters.query.as_deref(), Some("ASK {} #é&="));
        assert_eq!(parameters.named_graphs.len(), 2);
        assert_eq!(parameters.timeout, Some(Duration::from_millis(250)));
        assert_eq!(parameters.profile, Some(true));
        assert_eq!(parameters.explain, None);
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
            "timeout=0",
            "timeout=-1",
            "timeout=nan",
            "timeout=1e300",
            "timeout=inf",
            "default-graph-uri=a",
            "profile=yes",
            "format=a&output=b",
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
                Duration::from_millis(millis),
                "{text}"
            );
        }
    }

    #[test]
    fn updates_are_refused_by_name() {
        assert_eq!(
            parse("update=CLEAR+ALL").unwrap_err().status,
            StatusCode::NOT_IMPLEMENTED
        );
    }
}
