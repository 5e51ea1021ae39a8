//! Which nodes are in the cluster that the database is one of, and what goes between them? What the database
//! says of them at this moment, as JSON, or as a page that asks for that again and again.

use hyper::header::{HeaderMap, HeaderValue, VARY};
use hyper::{Response, StatusCode};
use jindou_engine::results::{Offer, negotiate};
use jindou_engine::{Database, RemoteReads, ReplicaAgreement, ReplicaStatus, SnapshotNumber};
use serde_json::{Value, json};

use crate::body::Body;
use crate::error::Refusal;
use crate::respond;
use crate::service::accept;

pub(crate) const CLUSTER: &str = "/cluster";

const PAGE: &str = include_str!("cluster.html");
const JSON: &str = "application/json";
const HTML: &str = "text/html";

/// The cluster as one of its nodes sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClusterNow {
    /// All of them, this one too.
    pub(crate) nodes: Vec<NodeNow>,
    /// What this one has read of others, and asked them, since it began.
    pub(crate) reads: RemoteReads,
    /// How its copy of the store stands, of a store that is written.
    pub(crate) copy: Option<ReplicaStatus>,
    /// What the copies agree on, as far as it is known here.
    pub(crate) agreement: Option<ReplicaAgreement>,
    /// What queries see here.
    pub(crate) snapshot: SnapshotNumber,
}

/// A node of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeNow {
    pub(crate) name: String,
    pub(crate) address: String,
    /// The URL of its HTTP server, if the list has one.
    pub(crate) http: Option<String>,
    pub(crate) shards: usize,
    pub(crate) state: NodeState,
    /// Predicates whose lists are read one-sided, of so many.
    pub(crate) read: (usize, usize),
    /// What went from here to it since it was met last,
    pub(crate) sent: MailNow,
    /// and what came from it.
    pub(crate) received: MailNow,
}

/// Messages of sub-queries that went one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MailNow {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

/// Whether a node is there, and how its memory is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NodeState {
    /// It is the one that says so.
    Here,
    Mapped,
    Tcp,
    /// With the reason of the last try.
    Away(String),
}

impl NodeState {
    /// The names of all.
    pub(crate) const NAMES: [&'static str; 4] = ["here", "mapped", "tcp", "away"];

    pub(crate) fn name(&self) -> &'static str {
        let number = match self {
            Self::Here => 0,
            Self::Mapped => 1,
            Self::Tcp => 2,
            Self::Away(_) => 3,
        };
        Self::NAMES[number]
    }
}

impl ClusterNow {
    /// None where the database is no node of a cluster.
    pub(crate) fn of(database: &Database) -> Option<Self> {
        Some(Self {
            nodes: nodes(database)?,
            reads: database.remote_reads(),
            copy: database.replica_status(),
            agreement: database.replica_agreement(),
            snapshot: database.snapshot_number(),
        })
    }

    /// The names of the nodes that are away.
    pub(crate) fn away(&self) -> Vec<&str> {
        let is_away = |node: &&NodeNow| matches!(node.state, NodeState::Away(_));
        let away = self.nodes.iter().filter(is_away);
        away.map(|node| &*node.name).collect()
    }

    pub(crate) fn json(&self) -> Value {
        let is_here = |node: &&NodeNow| node.state == NodeState::Here;
        let here = self.nodes.iter().find(is_here).map(|node| &node.name);
        let RemoteReads {
            reads,
            bytes,
            batches,
            calls,
            messages,
            message_bytes,
        } = self.reads;
        let mut copy = self.copy.as_ref().map(|copy| told_of_copy(copy, here));
        if let (Some(copy), Some(agreement)) = (&mut copy, &self.agreement) {
            copy["term"] = json!(agreement.term);
            copy["in_sync"] = json!(agreement.in_sync);
            copy["committed"] = json!(agreement.committed.0);
        }
        json!({
            "node": here,
            "snapshot": self.snapshot.0,
            "copy": copy,
            "shards": self.nodes.iter().map(|node| node.shards).sum::<usize>(),
            "nodes": self.nodes.iter().map(NodeNow::json).collect::<Vec<_>>(),
            "reads": {
                "reads": reads,
                "bytes": bytes,
                "batches": batches,
                "calls": calls,
                "messages": messages,
                "message_bytes": message_bytes,
            },
        })
    }
}

/// How a copy of a store that is written stands.
fn told_of_copy(copy: &ReplicaStatus, here: Option<&String>) -> Value {
    match copy {
        ReplicaStatus::Leads { followers } => {
            let followers = followers.iter().map(|follower| {
                json!({
                    "name": follower.name,
                    "snapshot": follower.applied.map(|number| number.0),
                    "is_awaited": follower.is_awaited,
                })
            });
            json!({ "leader": here, "followers": followers.collect::<Vec<_>>() })
        }
        ReplicaStatus::Follows {
            leader,
            is_led,
            ended,
        } => json!({ "leader": leader, "is_led": is_led, "ended": ended }),
        // Another version's.
        _ => Value::Null,
    }
}

impl NodeNow {
    fn json(&self) -> Value {
        let mail = |mail: MailNow| json!({ "messages": mail.messages, "bytes": mail.bytes });
        let mut told = json!({
            "name": self.name,
            "address": self.address,
            "http": self.http,
            "shards": self.shards,
            "state": self.state.name(),
            "read": { "predicates": self.read.0, "of": self.read.1 },
            "sent": mail(self.sent),
            "received": mail(self.received),
        });
        if let NodeState::Away(reason) = &self.state {
            told["reason"] = json!(reason);
        }
        told
    }
}

/// JSON, or the page where a client prefers that.
///
/// # Errors
/// 404 where the database is no node.
pub(crate) fn respond(database: &Database, headers: &HeaderMap) -> Result<Response<Body>, Refusal> {
    let now = ClusterNow::of(database).ok_or_else(|| {
        let message = "this server is no node of a cluster; `jindou serve --peers FILE --node NAME` \
                       starts one";
        Refusal::new(StatusCode::NOT_FOUND, message)
    })?;
    let offers = [Offer::new(JSON, ()), Offer::new(HTML, ())];
    let accept = accept(headers);
    let chosen = negotiate(&accept, &offers).map(|offer| offer.media_type);
    let mut response = match chosen {
        Some(HTML) => respond::whole(HTML, PAGE),
        _ => respond::whole(JSON, now.json().to_string()),
    };
    let vary = HeaderValue::from_static("accept");
    response.headers_mut().insert(VARY, vary);
    Ok(response)
}

#[cfg(target_os = "linux")]
fn nodes(database: &Database) -> Option<Vec<NodeNow>> {
    use jindou_engine::{MailCounts, MemberStatus, Presence};
    let mail = |counts: MailCounts| MailNow {
        messages: counts.messages,
        bytes: counts.bytes,
    };
    let node = |status: MemberStatus| NodeNow {
        name: status.name,
        address: status.address,
        http: status.http,
        shards: status.shards,
        state: match status.presence {
            Presence::Here => NodeState::Here,
            Presence::Mapped => NodeState::Mapped,
            Presence::ByTcp => NodeState::Tcp,
            Presence::Away(reason) => NodeState::Away(reason),
        },
        read: (status.alike, status.predicates),
        sent: mail(status.sent),
        received: mail(status.received),
    };
    Some(database.cluster()?.into_iter().map(node).collect())
}

/// There are no nodes on other systems.
#[cfg(not(target_os = "linux"))]
fn nodes(_: &Database) -> Option<Vec<NodeNow>> {
    None
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Two nodes, of which one is away.
    pub(crate) fn example() -> ClusterNow {
        let node = |name: &str, state, sent| NodeNow {
            name: name.to_owned(),
            address: format!("{name}.example:7900"),
            http: (name == "b").then(|| "http://b.example:7878".to_owned()),
            shards: 32,
            state,
            read: (0, 7),
            sent,
            received: MailNow::default(),
        };
        let sent = MailNow {
            messages: 2,
            bytes: 90,
        };
        let reason = "no route to host".to_owned();
        let here = node("a", NodeState::Here, MailNow::default());
        let away = node("b", NodeState::Away(reason), sent);
        ClusterNow {
            nodes: vec![here, away],
            reads: RemoteReads {
                reads: 3,
                bytes: 70,
                batches: 1,
                ..RemoteReads::default()
            },
            copy: None,
            agreement: None,
            snapshot: SnapshotNumber(7),
        }
    }

    #[test]
    fn json_names_the_node_and_says_why_another_is_away() {
        let now = example();
        assert_eq!(now.away(), ["b"]);
        let told = now.json();
        assert_eq!(told["node"], "a");
        assert_eq!(told["shards"], 64);
        assert_eq!(told["nodes"][0]["reason"], Value::Null);
        assert_eq!(told["nodes"][0]["state"], "here");
        assert_eq!(told["nodes"][1]["state"], "away");
        assert_eq!(told["nodes"][1]["reason"], "no route to host");
        assert_eq!(told["nodes"][1]["http"], "http://b.example:7878");
        assert_eq!(told["nodes"][1]["sent"]["bytes"], 90);
        assert_eq!(told["nodes"][1]["read"]["predicates"], 0);
        assert_eq!(told["nodes"][1]["read"]["of"], 7);
        assert_eq!(told["reads"]["bytes"], 70);
    }

    #[test]
    fn who_is_no_node_says_so() {
        let refused = respond(&Database::new(), &HeaderMap::new());
        let refusal = refused.err().expect("it is no node");
        assert_eq!(refusal.status, StatusCode::NOT_FOUND);
        assert!(refusal.message.contains("no node of a cluster"));
    }
}
