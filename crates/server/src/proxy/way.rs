//! What is a request about, and so which node is to answer it, and may it be asked twice?

use hyper::Method;

use super::standing::To;
use crate::route::Route;
use crate::streams::Endpoint;

/// How a request is passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) to: To,
    /// Whether another node may be asked where one did not answer it.
    pub(super) repeats: bool,
    /// What is known of its answer.
    pub(super) answer: AnswerKind,
}

/// What is known of an answer before it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerKind {
    /// It is passed on once some of it is there, so that another node can be asked before.
    Awaited,
    /// It is passed on as soon as it has begun.
    AtOnce,
    /// So is this, which may pause for ever.
    Endless,
}

impl Way {
    pub(super) const READ: Self = Self {
        to: To::Any,
        repeats: true,
        answer: AnswerKind::Awaited,
    };
    pub(super) const WRITE: Self = Self {
        to: To::Leader,
        repeats: false,
        answer: AnswerKind::AtOnce,
    };
}

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Demand {
    Health,
    Metrics,
    /// The list of queries under way, of which each node has its own.
    Queries,
    /// One of these, which one of the nodes has.
    OfQuery,
    /// A query or an update.
    Sparql,
    Passed(Way),
}

impl Demand {
    /// By what its path names and its method; a socket is one that is to be a WebSocket.
    pub(super) fn of(route: &Route, method: &Method, is_socket: bool) -> Self {
        let reads = matches!(*method, Method::GET | Method::HEAD);
        // What a browser asks before it asks.
        if method == Method::OPTIONS && !matches!(route, Route::Streams(_)) {
            return Self::Passed(Way::READ);
        }
        match route {
            Route::Health => Self::Health,
            Route::Metrics => Self::Metrics,
            Route::Queries => Self::Queries,
            Route::Query(_) if reads || method == Method::DELETE => Self::OfQuery,
            Route::Home | Route::Sparql if reads || method == Method::POST => Self::Sparql,
            Route::Streams(endpoint) => Self::Passed(Way {
                to: To::Leader,
                repeats: (reads || method == Method::OPTIONS) && !is_socket,
                answer: match endpoint {
                    Endpoint::Results(_) => AnswerKind::Endless,
                    _ if is_socket => AnswerKind::Endless,
                    _ => AnswerKind::AtOnce,
                },
            }),
            _ if reads => Self::Passed(Way::READ),
            _ => Self::Passed(Way::WRITE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_endpoint_and_method_has_its_way() {
        let demand = |line: &str| {
            let (method, path) = line.split_once(' ').expect("two words");
            let method = Method::from_bytes(method.as_bytes()).expect("a method");
            Demand::of(&Route::of(path), &method, false)
        };
        let at_leader = |repeats, answer| {
            Demand::Passed(Way {
                to: To::Leader,
                repeats,
                answer,
            })
        };
        for (lines, expected) in [
            ("GET /health|POST /health/", Demand::Health),
            ("GET /metrics", Demand::Metrics),
            ("GET /queries|DELETE /queries", Demand::Queries),
            ("GET /queries/1|DELETE /queries/1", Demand::OfQuery),
            (
                "GET /|GET /query|POST /update|POST /sparql/|HEAD /query",
                Demand::Sparql,
            ),
            (
                "GET /store|HEAD /store/a|GET /prefixes|GET /cluster|GET /live|GET /nothing|\
                 OPTIONS /update|OPTIONS /store|OPTIONS /health|OPTIONS /queries",
                Demand::Passed(Way::READ),
            ),
            (
                "PUT /store|POST /store?default|DELETE /store/a|PUT /prefixes|PUT /query|PATCH /store|\
                 POST /nothing|PUT /queries/1",
                Demand::Passed(Way::WRITE),
            ),
            (
                "GET /streams|GET /continuous/q|HEAD /streams/s|OPTIONS /streams/s",
                at_leader(true, AnswerKind::AtOnce),
            ),
            (
                "POST /streams/s|PUT /continuous/q|DELETE /streams/s|POST /continuous/q/pause",
                at_leader(false, AnswerKind::AtOnce),
            ),
            (
                "GET /continuous/q/results",
                at_leader(true, AnswerKind::Endless),
            ),
        ] {
            for line in lines.split('|') {
                assert_eq!(demand(line), expected, "{line}");
            }
        }
        let socket = Demand::of(&Route::of("/streams/s"), &Method::GET, true);
        assert_eq!(socket, at_leader(false, AnswerKind::Endless));
    }
}
