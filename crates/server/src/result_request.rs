//! Which results does a reader want, and what becomes of it where it is too slow for some?

use hyper::Request;
use hyper::body::Incoming;
use hyper::header::HeaderName;
use jindou_engine::{ContinuousResults, Database, EngineError};

use crate::error::Refusal;
use crate::protocol;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// What becomes of a reader that is too slow for some results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slow {
    /// It misses them.
    Drop,
    /// It is told, and nothing more.
    Disconnect,
    /// Results are kept for it, more than for others; where that does not do, it is told, and nothing more.
    Wait,
}

impl Slow {
    /// The parameter `slow`.
    pub(crate) fn of(parameters: &str) -> Result<Self, Refusal> {
        let slow: Option<String> =
            protocol::number(parameters, "slow", "drop, disconnect or wait")?;
        match slow.as_deref() {
            None | Some("drop") => Ok(Self::Drop),
            Some("disconnect") => Ok(Self::Disconnect),
            Some("wait") => Ok(Self::Wait),
            Some(other) => {
                let message = format!("slow is drop, disconnect or wait, not {other:?}");
                Err(Refusal::bad_request(message))
            }
        }
    }
}

/// After which result a client reads.
#[derive(Clone, Copy)]
pub(crate) enum Begin {
    /// After the one with this number, or from now on.
    After(Option<u64>),
    /// After the last one that it has seen, as a browser says that connects again.
    Seen(u64),
}

impl Begin {
    /// What a browser says goes before what its address says.
    pub(crate) fn of(request: &Request<Incoming>) -> Result<Self, Refusal> {
        if let Some(id) = request.headers().get(LAST_EVENT_ID) {
            let sequence = id.to_str().ok().and_then(sequence);
            return match sequence {
                Some(sequence) => Ok(Self::Seen(sequence)),
                None => Err(Refusal::bad_request(
                    "the header Last-Event-ID is no id of a result, as in 1700000000000:7",
                )),
            };
        }
        let parameters = request.uri().query().unwrap_or_default();
        let what = "the number of a result (0: all that are kept)";
        protocol::number(parameters, "after", what).map(Self::After)
    }

    pub(crate) fn results_of(
        self,
        database: &Database,
        name: &str,
    ) -> Result<ContinuousResults, EngineError> {
        match self {
            Self::After(after) => database.results_of(name, after),
            // A query that began anew, as with a server, has not given it: whoever is refused then never
            // connects again.
            Self::Seen(sequence) => match database.results_of(name, Some(sequence)) {
                Err(EngineError::NoSuchResult { .. }) => database.results_of(name, None),
                results => results,
            },
        }
    }
}

/// The number in `INSTANT:SEQUENCE`.
fn sequence(id: &str) -> Option<u64> {
    let (instant, sequence) = id.trim().split_once(':')?;
    instant.parse::<i64>().ok()?;
    sequence.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_an_instant_and_a_number() {
        assert_eq!(sequence("1700000000000:7"), Some(7));
        assert_eq!(sequence("-5:1"), Some(1));
        for wrong in ["", "7", ":7", "a:7", "5:", "5:-1", "5:7:8"] {
            assert_eq!(sequence(wrong), None, "{wrong}");
        }
    }
}
