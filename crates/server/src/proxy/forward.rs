//! How does a request get an answer from a node, and from which, where one fails?
//!
//! What only reads may be asked again: another node is asked where one could not be reached, was lost before any of its
//! answer was passed on, or says that it has no time for it (503 with `Retry-After`). What may change something is sent
//! once: to another node only where nothing of it was sent to the first. Each node is asked once for one request, and no
//! third where two were lost.

use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::ext::on_informational;
use hyper::header::{
    CONTENT_LENGTH, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER,
    TRANSFER_ENCODING,
};
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request, Response, StatusCode, Uri};

use super::answer::{Answer, Passing};
use super::headers::{add_via, leave_connection};
use super::link::Unanswered;
use super::metrics::{Failing, Metrics};
use super::node::{Node, Said, UnderwayAt};
use super::nodes::{Nodes, said_of};
use super::outgoing::{Gate, Outgoing};
use super::room::{HeldBody, Payload};
use super::standing::To;
use super::url::NodeUrl;
use super::way::{AnswerKind, Way};
use crate::error::Refusal;

/// Nodes that were asked after which no redirection is followed any more.
const MOST_HOPS: usize = 3;
/// Nodes that are lost while they have a request, after which it is asked of no other: it may be the reason.
const MOST_LOST: usize = 2;
/// When to come again where no node is there, in seconds.
const AWAY_SECONDS: u32 = 1;

/// Passes requests on.
pub(super) struct Forwarder {
    pub(super) nodes: Arc<Nodes>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) timeout: Duration,
}

/// The head of a request, as nodes get it.
pub(super) struct Head {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
}

impl Head {
    /// Without what is about the client's connection.
    pub(super) fn new(method: Method, uri: &Uri, mut headers: HeaderMap) -> Self {
        if headers.contains_key(TRANSFER_ENCODING) {
            // It says nothing then, and whoever reads it would read another body.
            headers.remove(CONTENT_LENGTH);
        }
        leave_connection(&mut headers);
        add_via(&mut headers);
        // A URL that names the host goes before the header.
        let named = uri
            .authority()
            .map(|one| HeaderValue::try_from(one.as_str()));
        if let Some(Ok(named)) = named {
            headers.insert(HOST, named);
        }
        let path = uri.path_and_query().cloned();
        let path = path.unwrap_or_else(|| PathAndQuery::from_static("/"));
        Self {
            method,
            uri: path.into(),
            headers,
        }
    }

    /// The same, with a header that is about the connection to the node.
    pub(super) fn with(
        mut self,
        headers: impl IntoIterator<Item = (HeaderName, HeaderValue)>,
    ) -> Self {
        self.headers.extend(headers);
        self
    }

    fn request(&self, node: &Node, body: Outgoing) -> Request<Outgoing> {
        let gate = body.gate();
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        if let Some(gate) = gate {
            // The length of a body that is passed on is the client's to say.
            let waits = HeaderValue::from_static("100-continue");
            request.headers_mut().insert(EXPECT, waits);
            on_informational(&mut request, move |_| gate.open());
        } else {
            request.headers_mut().remove(CONTENT_LENGTH);
        }
        let headers = request.headers_mut();
        if !headers.contains_key(HOST)
            && let Ok(host) = HeaderValue::try_from(node.link.url().authority())
        {
            headers.insert(HOST, host);
        }
        request
    }
}

/// The node that left HTTP, as an extension of its answer.
#[derive(Clone)]
pub(super) struct AnsweredBy(pub(super) Arc<Node>);

/// What came of sending a request to one node.
enum Attempt {
    Answered(Response<Incoming>, UnderwayAt),
    /// Nothing was sent: here is the body.
    Refused(Outgoing, String),
    /// What the client sends ended early.
    Cut,
    Lost(String),
    Late,
}

impl Forwarder {
    /// Has a request answered.
    ///
    /// # Errors
    /// That no node answered it, and what is known of what was done.
    pub(super) async fn forward(
        &self,
        head: &Head,
        payload: Payload,
        way: Way,
    ) -> Result<Response<Answer>, Refusal> {
        let mut course = Course::new(payload, way);
        while let Some((node, body)) = course.next(&self.nodes) {
            if course.tried.len() > 1 {
                self.metrics.retried();
            }
            let attempt = self.attempt(&node, head.request(&node, body)).await;
            if let Some(answer) = self.take(&mut course, &node, attempt).await? {
                return Ok(answer);
            }
        }
        if let Some((response, node, underway)) = course.busy {
            let passed = self.begin(response, &node, underway, AnswerKind::AtOnce);
            let lost = |reason| Refusal::new(StatusCode::BAD_GATEWAY, reason);
            return passed.await.map_err(lost);
        }
        Err(match course.sending.is_over() {
            true => cut(&course.failures),
            false => self.none_there(&course.failures),
        })
    }

    /// The answer that came of an attempt; none where another is to be made.
    async fn take(
        &self,
        course: &mut Course,
        node: &Arc<Node>,
        attempt: Attempt,
    ) -> Result<Option<Response<Answer>>, Refusal> {
        let way = course.way;
        let (response, underway) = match attempt {
            Attempt::Answered(response, underway) => (response, underway),
            Attempt::Refused(body, reason) => {
                self.failed(node, Failing::Refused, &reason);
                course.failures.push(format!("{}: {reason}", node.name()));
                course.sending.give_back(body);
                return Ok(None);
            }
            Attempt::Cut => {
                let message = "the body ended early, or took too long to arrive";
                return Err(Refusal::bad_request(message));
            }
            Attempt::Lost(reason) => return self.lost(course, node, &reason).map(|()| None),
            Attempt::Late => {
                self.metrics.failed(node.name(), Failing::Late);
                return Err(self.late(node, way));
            }
        };
        self.metrics.answered(node.name(), response.status());
        if let Some(to) = self.leads_to(&response) {
            if course.sending.is_over() || course.tried.len() > MOST_HOPS {
                return Err(moved(node, &to));
            }
            course.next = Some(to);
            return Ok(None);
        }
        if way.repeats && way.to == To::Any && is_busy(&response) {
            course.busy = Some((response, Arc::clone(node), underway));
            return Ok(None);
        }
        match self.begin(response, node, underway, way.answer).await {
            Ok(answer) => Ok(Some(answer)),
            Err(reason) => self.lost(course, node, &reason).map(|()| None),
        }
    }

    /// A node was lost while it had a request, which another one may be asked, if that is no error.
    fn lost(&self, course: &mut Course, node: &Arc<Node>, reason: &str) -> Result<(), Refusal> {
        self.failed(node, Failing::Lost, reason);
        if !course.way.repeats {
            return Err(maybe_done(node, reason));
        }
        course.failures.push(format!("{}: {reason}", node.name()));
        course.lost += 1;
        match course.lost < MOST_LOST {
            true => Ok(()),
            false => Err(all_lost(&course.failures)),
        }
    }

    /// Has a request answered by the one node that knows what it is about: the others answer 404.
    pub(super) async fn forward_to_each(&self, head: &Head) -> Result<Response<Answer>, Refusal> {
        let mut failures = Vec::new();
        let mut unknown = None;
        for node in self.nodes.standing().there() {
            let request = head.request(node, Outgoing::empty());
            let (response, underway) = match self.attempt(node, request).await {
                Attempt::Answered(response, underway) => (response, underway),
                Attempt::Refused(_, reason) | Attempt::Lost(reason) => {
                    self.failed(node, Failing::Lost, &reason);
                    failures.push(format!("{}: {reason}", node.name()));
                    continue;
                }
                Attempt::Cut => return Err(Refusal::internal()),
                Attempt::Late => return Err(self.late(node, Way::READ)),
            };
            self.metrics.answered(node.name(), response.status());
            let is_unknown = response.status() == StatusCode::NOT_FOUND;
            match self
                .begin(response, node, underway, AnswerKind::Awaited)
                .await
            {
                Ok(answer) if is_unknown => unknown = Some(answer),
                Ok(answer) => return Ok(answer),
                Err(reason) => failures.push(format!("{}: {reason}", node.name())),
            }
        }
        unknown.ok_or_else(|| self.none_there(&failures))
    }

    async fn attempt(&self, node: &Arc<Node>, request: Request<Outgoing>) -> Attempt {
        let underway = node.begin();
        let lost = node.until_lost();
        let late = self.until_late(request.body().gate());
        tokio::select! {
            biased;
            answered = node.link.send(request) => match answered {
                Ok(response) => Attempt::Answered(response, underway),
                Err(Unanswered::Unsent(request, error)) => {
                    Attempt::Refused(request.into_body(), error.to_string())
                }
                Err(Unanswered::Body) => Attempt::Cut,
                Err(Unanswered::Lost(error)) => Attempt::Lost(said_of(&error)),
            },
            () = lost => Attempt::Lost("it has not answered for too long".to_owned()),
            () = late => Attempt::Late,
        }
    }

    /// Done once a node has taken too long: since something of a body was handed to it, if it is passed on.
    async fn until_late(&self, gate: Option<Arc<Gate>>) {
        let handed_on = || gate.as_ref().map_or(0, |gate| gate.handed_on());
        let mut before = handed_on();
        loop {
            tokio::time::sleep(self.timeout).await;
            let now = handed_on();
            if now == before {
                return;
            }
            before = now;
        }
    }

    /// The answer to a client, once as much of it is there as is to be.
    async fn begin(
        &self,
        response: Response<Incoming>,
        node: &Arc<Node>,
        underway: UnderwayAt,
        kind: AnswerKind,
    ) -> Result<Response<Answer>, String> {
        let (mut head, body) = response.into_parts();
        match head.status {
            StatusCode::SWITCHING_PROTOCOLS => {
                head.extensions.insert(AnsweredBy(Arc::clone(node)));
            }
            _ => leave_connection(&mut head.headers),
        }
        let patience = (kind != AnswerKind::Endless).then_some(self.timeout);
        let rest = Passing::new(body, node, patience, underway);
        let answer = Answer::begin(rest, kind)
            .await
            .map_err(|cut| cut.to_string())?;
        Ok(Response::from_parts(head, answer))
    }

    /// The node that another one sends clients to.
    fn leads_to(&self, response: &Response<Incoming>) -> Option<Arc<Node>> {
        if response.status() != StatusCode::TEMPORARY_REDIRECT {
            return None;
        }
        let location = response.headers().get(LOCATION)?.to_str().ok()?;
        self.nodes.at(&NodeUrl::of_location(location)?)
    }

    fn failed(&self, node: &Arc<Node>, why: Failing, reason: &str) {
        self.metrics.failed(node.name(), why);
        self.nodes.failed(node, reason.to_owned());
    }

    fn late(&self, node: &Node, way: Way) -> Refusal {
        let (name, limit) = (node.name(), self.timeout);
        let message = match way.repeats {
            true => format!("node {name} did not answer within the {limit:?} that --timeout sets"),
            false => format!(
                "node {name} did not answer within the {limit:?} that --timeout sets: what it was asked to do may \
                 have been done, or be done yet"
            ),
        };
        Refusal::new(StatusCode::GATEWAY_TIMEOUT, message)
    }

    /// No node is there, or none of those that are could be reached.
    fn none_there(&self, failures: &[String]) -> Refusal {
        let message = match failures {
            [] => format!("no node is there: {}", self.away().join("; ")),
            failures => format!("no node could be asked: {}", failures.join("; ")),
        };
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message).come_again(AWAY_SECONDS)
    }

    /// The nodes that are away, and why.
    pub(super) fn away(&self) -> Vec<String> {
        let standing = self.nodes.standing();
        let said = standing.nodes().iter().map(|(node, _)| (node, node.said()));
        let away = said.filter_map(|(node, said)| match said {
            Said::Nothing => Some(format!("{}: it was not asked yet", node.name())),
            Said::Away(reason) => Some(format!("{}: {reason}", node.name())),
            Said::Told(_) | Said::Withheld(_) => None,
        });
        away.collect()
    }

    /// The nodes that are there and do not say how they are, and why.
    pub(super) fn silent(&self) -> Vec<String> {
        let standing = self.nodes.standing();
        let said = standing.nodes().iter().map(|(node, _)| (node, node.said()));
        let silent = said.filter_map(|(node, said)| match said {
            Said::Withheld(reason) => Some(format!("{}: {reason}", node.name())),
            Said::Told(_) | Said::Nothing | Said::Away(_) => None,
        });
        silent.collect()
    }
}

/// How far a request is.
struct Course {
    way: Way,
    sending: Sending,
    /// The nodes that were asked.
    tried: Vec<Arc<Node>>,
    /// The one that is to be next, if that is known.
    next: Option<Arc<Node>>,
    failures: Vec<String>,
    /// Nodes that were lost while they had it.
    lost: usize,
    /// An answer that says that a node has no time, to be passed on where no other has.
    busy: Option<(Response<Incoming>, Arc<Node>, UnderwayAt)>,
}

impl Course {
    fn new(payload: Payload, way: Way) -> Self {
        Self {
            way,
            sending: Sending::new(payload),
            tried: Vec::new(),
            next: None,
            failures: Vec::new(),
            lost: 0,
            busy: None,
        }
    }

    /// The next node, and what it is sent; none where there is no other, or nothing that can be sent.
    fn next(&mut self, nodes: &Nodes) -> Option<(Arc<Node>, Outgoing)> {
        let next = self.next.take();
        let node = next.or_else(|| nodes.choose(self.way.to, &self.tried))?;
        let body = self.sending.take()?;
        self.tried.push(Arc::clone(&node));
        Some((node, body))
    }
}

/// The body of a request, for each time that it is sent.
enum Sending {
    Held(HeldBody),
    Passed(Option<Outgoing>),
}

impl Sending {
    fn new(payload: Payload) -> Self {
        match payload {
            Payload::Held(body) => Self::Held(body),
            Payload::Passed(body) => Self::Passed(Some(body)),
        }
    }

    /// None where it was sent, and cannot be again.
    fn take(&mut self) -> Option<Outgoing> {
        match self {
            Self::Held(body) => Some(body.outgoing()),
            Self::Passed(body) => body.take(),
        }
    }

    /// Nothing of it was sent.
    fn give_back(&mut self, unsent: Outgoing) {
        if let Self::Passed(body) = self {
            *body = Some(unsent);
        }
    }

    fn is_over(&self) -> bool {
        matches!(self, Self::Passed(None))
    }
}

/// Whether a node says that it has no time, or not now. What needs more than any of them has is not asked of all.
fn is_busy(response: &Response<Incoming>) -> bool {
    let is_unavailable = response.status() == StatusCode::SERVICE_UNAVAILABLE;
    is_unavailable && response.headers().contains_key(RETRY_AFTER)
}

/// It was sent, and there is no answer.
fn maybe_done(node: &Node, reason: &str) -> Refusal {
    let name = node.name();
    let message = format!(
        "node {name} was lost after this was sent to it ({reason}): it may have been done, or not; look before it is \
         sent again"
    );
    Refusal::new(StatusCode::BAD_GATEWAY, message)
}

/// Nodes were lost one after the other while they had a query.
fn all_lost(failures: &[String]) -> Refusal {
    let message = format!(
        "{MOST_LOST} nodes were lost while they had this, which is not asked of another: {}",
        failures.join("; ")
    );
    Refusal::new(StatusCode::BAD_GATEWAY, message)
}

/// A query whose body was not held was sent, and there is no answer.
fn cut(failures: &[String]) -> Refusal {
    let message = format!(
        "the node that this was sent to was lost ({}), and its body is too large to be held for another; send it again",
        failures.join("; ")
    );
    Refusal::new(StatusCode::BAD_GATEWAY, message)
}

/// A node did nothing but say who does it, and the body is gone.
fn moved(node: &Node, to: &Node) -> Refusal {
    let message = format!(
        "node {} does not lead any more, and did nothing; {} does: send this again",
        node.name(),
        to.name()
    );
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message).come_again(AWAY_SECONDS)
}
