//! What do the nodes of a cluster say of each other?

use std::net::SocketAddr;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::servers::{Server, wait_for};
use crate::BenchError;
use crate::http::{Connection, HttpError};

/// How long a node may take to say it.
const SILENCE: Duration = Duration::from_secs(10);

/// What a node says at `/cluster`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Told {
    pub(super) copy: Option<Standing>,
    nodes: Vec<Seen>,
}

/// How its copy of the store stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Standing {
    pub(super) leader: Option<String>,
    /// At one that follows: whether the leader is there.
    is_led: Option<bool>,
    #[serde(default)]
    pub(super) in_sync: Vec<String>,
    /// The number of the last transaction that all in sync have.
    #[serde(default)]
    pub(super) committed: u64,
}

/// A node as another sees it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Seen {
    name: String,
    state: String,
    shards: u64,
}

/// What a node says at `/health`.
#[derive(Debug, Deserialize)]
struct Health {
    #[serde(default)]
    nodes_away: Vec<String>,
}

impl Told {
    /// The name of the leader, if all of so many nodes are there and in sync.
    fn leader_of_whole(&self, nodes: usize) -> Option<&str> {
        let copy = self.copy.as_ref()?;
        let is_here = |node: &Seen| node.state != "away" && node.shards > 0;
        let are_here = self.nodes.len() == nodes && self.nodes.iter().all(is_here);
        let is_whole = are_here && copy.in_sync.len() == nodes && copy.is_led != Some(false);
        is_whole.then_some(copy.leader.as_deref())?
    }

    /// Whether a leader is there, and transactions wait for another node no more.
    pub(super) fn is_led_without(&self, name: &str) -> bool {
        let leader = self.copy.as_ref().and_then(|copy| {
            let leader = copy.leader.as_deref()?;
            (copy.is_led != Some(false)).then_some(leader)
        });
        leader.is_some_and(|leader| leader != name) && !self.has_in_sync(name)
    }

    /// Whether a node is one of the cluster,
    pub(super) fn has(&self, name: &str) -> bool {
        self.nodes.iter().any(|node| node.name == name)
    }

    /// and is there, and holds shards.
    pub(super) fn holds_shards(&self, name: &str) -> bool {
        let holds = |node: &Seen| node.name == name && node.state != "away" && node.shards > 0;
        self.nodes.iter().any(holds)
    }

    /// Whether transactions wait for a node, which has all that is committed.
    pub(super) fn has_in_sync(&self, name: &str) -> bool {
        let copy = self.copy.as_ref();
        copy.is_some_and(|copy| copy.in_sync.iter().any(|one| one == name))
    }
}

/// Somebody who asks a node, over a connection that is opened anew where it fails.
pub(super) struct Watcher {
    address: SocketAddr,
    connection: Option<Connection>,
}

impl Watcher {
    pub(super) fn of(address: SocketAddr) -> Self {
        Self {
            address,
            connection: None,
        }
    }

    /// What it says of the cluster; none where there is no answer.
    pub(super) fn cluster(&mut self) -> Option<Told> {
        self.get("/cluster")
    }

    /// Whether it says that a node is away.
    pub(super) fn has_lost(&mut self, name: &str) -> bool {
        let health: Option<Health> = self.get("/health");
        health.is_some_and(|health| health.nodes_away.iter().any(|one| one == name))
    }

    fn get<T: DeserializeOwned>(&mut self, path: &str) -> Option<T> {
        let body = self.body(path);
        if body.is_err() {
            self.connection = None;
        }
        serde_json::from_slice(&body.ok()?).ok()
    }

    fn body(&mut self, path: &str) -> Result<Vec<u8>, HttpError> {
        let connection = match &mut self.connection {
            Some(open) => open,
            none => none.insert(Connection::open_within(self.address, SILENCE)?),
        };
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAccept: application/json\r\n\r\n",
            self.address
        );
        connection.send(head.as_bytes())?;
        let mut body = Vec::new();
        let answer = connection.receive(|piece| body.extend_from_slice(piece))?;
        match answer.status {
            200 => Ok(body),
            status => Err(HttpError::refused(status, &body)),
        }
    }
}

/// Waits until each of some servers says that all of them are there and in sync, and the same one leads: which one.
///
/// # Errors
/// [`BenchError::Child`] if one of them ended, [`BenchError::Overdue`].
pub(super) fn wait_until_whole(servers: &mut [Server]) -> Result<usize, BenchError> {
    let mut watchers: Vec<Watcher> = (servers.iter())
        .map(|server| Watcher::of(server.address))
        .collect();
    wait_for("the nodes were not all in sync", || {
        servers.iter_mut().try_for_each(Server::check_it_runs)?;
        let told: Vec<Option<Told>> = watchers.iter_mut().map(Watcher::cluster).collect();
        let leaders = told.iter().map(|told| {
            let leader = told.as_ref()?.leader_of_whole(servers.len())?;
            servers.iter().position(|server| server.name == leader)
        });
        let leaders: Option<Vec<usize>> = leaders.collect();
        Ok(leaders.and_then(|leaders| {
            let (first, others) = leaders.split_first()?;
            others.iter().all(|other| other == first).then_some(*first)
        }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(copy: &str, states: [&str; 2]) -> Told {
        let [a, b] = states;
        let text = format!(
            r#"{{"copy":{copy},"shards":64,"nodes":[{{"name":"a","state":"{a}","shards":32}},{{"name":"b","state":"{b}","shards":32}}]}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_cluster_is_whole_when_all_are_there_and_in_sync_and_one_leads() {
        let whole = r#"{"leader":"b","is_led":true,"in_sync":["a","b"],"committed":7}"#;
        let all = ["here", "mapped"];
        assert_eq!(told(whole, all).leader_of_whole(2), Some("b"));
        assert_eq!(told(whole, ["here", "away"]).leader_of_whole(2), None);
        let behind = r#"{"leader":"b","in_sync":["b"],"committed":7}"#;
        assert_eq!(told(behind, all).leader_of_whole(2), None);
        assert!(told(behind, all).has_in_sync("b") && !told(behind, all).has_in_sync("a"));
        let led_no_more = whole.replace("true", "false");
        assert_eq!(told(&led_no_more, all).leader_of_whole(2), None);
        assert!(told(behind, all).is_led_without("a"));
        assert!(!told(behind, all).is_led_without("b") && !told(whole, all).is_led_without("a"));
        assert_eq!(told("null", all).leader_of_whole(2), None);
    }
}
