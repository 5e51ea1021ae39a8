//! Which request is answered by the proxy itself, and which is passed on, and how?

use std::sync::{Arc, Mutex};

use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue, UPGRADE};
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode};
use serde_json::json;

use super::answer::Answer;
use super::config::ProxyConfig;
use super::forward::{AnsweredBy, Forwarder, Head};
use super::headers::came_through_proxy;
use super::metrics::Metrics;
use super::nodes::Nodes;
use super::room::{Holding, Payload};
use super::sparql::{Asked, Checks};
use super::standing::To;
use super::tunnel::Tunnel;
use super::way::{Demand, Way};
use crate::body::Body;
use crate::connections::Peer;
use crate::error::Refusal;
use crate::respond;
use crate::route::Route;
use crate::service::{accept, full};
use crate::websocket;

/// Answers requests of all connections.
pub(super) struct Gateway {
    pub(super) config: ProxyConfig,
    pub(super) forwarder: Forwarder,
    holding: Holding,
    checks: Checks,
}

/// What follows on a connection that leaves HTTP, if it does.
#[derive(Default)]
pub(super) struct Left(Mutex<Option<Tunnel>>);

impl Left {
    pub(super) fn take(&self) -> Option<Tunnel> {
        self.0.lock().expect("nobody panics while it has it").take()
    }

    fn put(&self, tunnel: Tunnel) {
        *self.0.lock().expect("nobody panics while it has it") = Some(tunnel);
    }
}

impl Gateway {
    pub(super) fn new(config: ProxyConfig) -> Self {
        let nodes = Nodes::new(config.clone());
        let (each, all) = (config.body_bytes, config.all_body_bytes);
        Self {
            forwarder: Forwarder {
                nodes: Arc::new(nodes),
                metrics: Arc::new(Metrics::new()),
                timeout: config.timeout,
            },
            holding: Holding::new(each, all, config.idle_timeout),
            checks: Checks::new(each, config.tls.is_some()),
            config,
        }
    }

    /// The answer to a request; what is wrong with it is an answer too.
    pub(super) async fn respond(
        &self,
        request: Request<Incoming>,
        peer: &Arc<Peer>,
        left: &Left,
    ) -> Response<Answer> {
        let as_problem = respond::wants_problem(&accept(request.headers()));
        let mut response = match self.route(request, peer, left).await {
            Ok(response) => response,
            Err(refusal) => {
                tracing::debug!(status = refusal.status.as_u16(), "{}", refusal.message);
                self.forwarder.metrics.refused(refusal.status);
                respond::refusal(&refusal, as_problem).map(Answer::own)
            }
        };
        if peer.is_spare() {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        response
    }

    async fn route(
        &self,
        request: Request<Incoming>,
        peer: &Arc<Peer>,
        left: &Left,
    ) -> Result<Response<Answer>, Refusal> {
        if came_through_proxy(request.headers()) {
            return Err(Refusal::new(
                StatusCode::LOOP_DETECTED,
                "this came through a proxy of this kind, which is to name nodes by their own URLs, and no proxy",
            ));
        }
        let route = Route::of(request.uri().path());
        let is_socket = websocket::is_asked_for(&request);
        let demand = Demand::of(&route, request.method(), is_socket);
        // Whoever watches the proxy must be able to when it is busy.
        let watches = matches!(demand, Demand::Health | Demand::Metrics);
        if !watches && peer.is_confined().await {
            return Err(full());
        }
        match demand {
            Demand::Health => own(request.method(), self.health()),
            Demand::Metrics => {
                let standing = self.forwarder.nodes.standing();
                let held = self.holding.held_bytes();
                let text = self.forwarder.metrics.text(standing, held);
                let response = respond::whole("text/plain; version=0.0.4", text);
                own(request.method(), response)
            }
            Demand::Queries => Err(self.queries()),
            Demand::OfQuery => {
                let (parts, _) = request.into_parts();
                let head = Head::new(parts.method, &parts.uri, parts.headers);
                self.forwarder.forward_to_each(&head).await
            }
            Demand::Sparql => self.sparql(request).await,
            Demand::Passed(way) if is_socket && way.to == To::Leader => {
                self.socket(request, way, left).await
            }
            Demand::Passed(way) => self.pass(request, way).await,
        }
    }

    /// A query or an update.
    async fn sparql(&self, request: Request<Incoming>) -> Result<Response<Answer>, Refusal> {
        let (parts, body) = request.into_parts();
        // What is not taken is not read first.
        let by_head = Checks::of_head(&parts)?;
        let payload = self.holding.take(body).await?;
        let asked = match &payload {
            Payload::Held(body) => self.checks.of_whole(&parts, &body.bytes).await?,
            // Whatever a form has, the node that leads answers it.
            Payload::Passed(_) => by_head.unwrap_or(Asked::Update),
        };
        let way = match asked {
            Asked::Query => Way::READ,
            Asked::Update => Way::WRITE,
        };
        let head = Head::new(parts.method, &parts.uri, parts.headers);
        self.forwarder.forward(&head, payload, way).await
    }

    async fn pass(
        &self,
        request: Request<Incoming>,
        way: Way,
    ) -> Result<Response<Answer>, Refusal> {
        let (parts, body) = request.into_parts();
        let payload = self.holding.take(body).await?;
        let head = Head::new(parts.method, &parts.uri, parts.headers);
        self.forwarder.forward(&head, payload, way).await
    }

    /// A request that leaves HTTP, if a node does.
    async fn socket(
        &self,
        mut request: Request<Incoming>,
        way: Way,
        left: &Left,
    ) -> Result<Response<Answer>, Refusal> {
        let client: OnUpgrade = hyper::upgrade::on(&mut request);
        let (parts, _) = request.into_parts();
        let head = Head::new(parts.method, &parts.uri, parts.headers).with([
            (CONNECTION, HeaderValue::from_static("upgrade")),
            (UPGRADE, HeaderValue::from_static("websocket")),
        ]);
        let payload = Payload::Held(Default::default());
        let mut response = self.forwarder.forward(&head, payload, way).await?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let node = hyper::upgrade::on(&mut response);
            if let Some(AnsweredBy(at)) = response.extensions_mut().remove() {
                left.put(Tunnel::new(client, node, &at));
            }
        }
        Ok(response)
    }

    /// 503 where no node is there, with the reasons. That some are away is told, too.
    fn health(&self) -> Response<Body> {
        let standing = self.forwarder.nodes.standing();
        let there: Vec<String> = standing.there().map(|node| node.name()).collect();
        let away = self.forwarder.away();
        if there.is_empty() {
            let told = json!({ "status": "failing", "reasons": away });
            let mut response = respond::whole("application/json", told.to_string());
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            return response;
        }
        let mut told = json!({ "status": "ok", "nodes": there });
        if !away.is_empty() {
            told["away"] = json!(away);
        }
        let silent = self.forwarder.silent();
        if !silent.is_empty() {
            told["silent"] = json!(silent);
        }
        respond::whole("application/json", told.to_string())
    }

    /// Each node has its own list.
    fn queries(&self) -> Refusal {
        let standing = self.forwarder.nodes.standing();
        let lists = standing.nodes().iter();
        let lists: Vec<String> = lists
            .map(|(node, _)| format!("{}/queries", node.link.url()))
            .collect();
        let message = format!(
            "each node lists the queries that it has: {}; one is found here by its id, as /queries/ID",
            lists.join(", ")
        );
        Refusal::new(StatusCode::NOT_IMPLEMENTED, message)
    }
}

/// An answer of the proxy's own to what only reads.
fn own(method: &Method, response: Response<Body>) -> Result<Response<Answer>, Refusal> {
    match *method {
        Method::GET | Method::HEAD => Ok(response.map(Answer::own)),
        _ => Err(Refusal::method("GET, HEAD, OPTIONS")),
    }
}
