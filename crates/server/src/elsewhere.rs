//! Which requests does a node of a cluster send on to another one, and how does the client hear of it?
//!
//! By 307, after which clients send the same request, with its body, to the other node. Where the list of nodes has no URL for
//! that one, its name has to do.

use hyper::header::{CONTENT_LENGTH, HeaderMap, HeaderValue, LOCATION};
use hyper::{Response, StatusCode, Uri};
use jindou_engine::Database;

use crate::body::Body;
use crate::cluster::ClusterNow;
use crate::error::Refusal;
use crate::graph_store::STORE;
use crate::respond;

/// The URL of a node's HTTP server, if the list of nodes has one.
fn url_of(database: &Database, node: &str) -> Option<String> {
    let nodes = ClusterNow::of(database)?.nodes;
    let node = nodes.into_iter().find(|one| one.name == node)?;
    Some(node.http?.trim_end_matches('/').to_owned())
}

/// Sends a client to another node with what it asked for, if the address of that one is known.
pub(crate) fn redirect(
    database: &Database,
    node: &str,
    asked: &Uri,
    message: &str,
) -> Option<Response<Body>> {
    let asked = asked.path_and_query().map_or("/", |asked| asked.as_str());
    let place = format!("{}{asked}", url_of(database, node)?);
    let place = HeaderValue::try_from(place).ok()?;
    let mut response = respond::whole("text/plain", format!("{message}\n"));
    *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
    response.headers_mut().insert(LOCATION, place);
    Some(response)
}

/// What this node hands on of a document, in bytes, where it follows another one.
pub(crate) fn most_forwarded(database: &Database) -> Option<u64> {
    database.forwarding().map(|to| to.document_bytes as u64)
}

/// The refusal of a document that is larger than what this node hands to the one that leads.
pub(crate) fn too_large_to_forward(database: &Database) -> Refusal {
    let to = database.forwarding();
    let leader = to.as_ref().and_then(|to| to.leader.as_deref());
    let limit = to.as_ref().map_or(0, |to| to.document_bytes);
    let place = match leader.map(|leader| (leader, url_of(database, leader))) {
        Some((leader, Some(url))) => format!("node {leader}, at {url}"),
        Some((leader, None)) => format!("node {leader}"),
        None => "the node that leads".to_owned(),
    };
    let message = format!(
        "the document is larger than the {limit} bytes that this node sends to the one that takes all writes: send it to {place}"
    );
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message)
}

/// Before its body is read: the answer to a request that brings a document which says itself that it is too large to be handed to
/// the node that leads.
///
/// # Errors
/// The refusal, where the address of that node is not known, and where the URL is the graph's name: at another address it would
/// be another graph.
pub(crate) fn large_document(
    database: &Database,
    headers: &HeaderMap,
    asked: &Uri,
) -> Result<Option<Response<Body>>, Refusal> {
    let length = headers.get(CONTENT_LENGTH).and_then(|it| it.to_str().ok());
    let length: Option<u64> = length.and_then(|length| length.parse().ok());
    let Some((length, to)) = length.zip(database.forwarding()) else {
        return Ok(None);
    };
    if length <= to.document_bytes as u64 {
        return Ok(None);
    }
    let refusal = too_large_to_forward(database);
    let leader = to.leader.filter(|_| asked.path() == STORE);
    let redirected = leader.and_then(|leader| redirect(database, &leader, asked, &refusal.message));
    redirected.map(Some).ok_or(refusal)
}
