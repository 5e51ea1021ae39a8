//! What does a node say of its cluster, to a program that asks several of them?
//!
//! Each knows for certain only of itself, and the one that leads which others are in sync: so what several say is
//! looked at together ([`leader`], [`is_in_sync`]).

use serde::Deserialize;

/// The answer of a node at `/cluster`. What is not here is of other versions, or of no interest to others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ClusterTold {
    /// The name of the node that says so.
    pub node: String,
    /// The last transaction that queries see there.
    pub snapshot: Option<u64>,
    /// How its copy stands; none where the store is only read.
    pub copy: Option<CopyTold>,
    /// All nodes, as its list has them.
    pub nodes: Vec<NodeTold>,
}

/// How a node's copy of a store that is written stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CopyTold {
    /// The node that leads, once that is known.
    pub leader: Option<String>,
    /// Whether that is there, of a node that follows.
    pub is_led: bool,
    /// Why it takes no transactions any more, if it does not.
    pub ended: Option<String>,
    /// Grows each time that another node begins to lead.
    pub term: u64,
    /// The nodes that transactions wait for, as far as it is known there.
    pub in_sync: Vec<String>,
    /// The others, where it leads itself.
    pub followers: Option<Vec<FollowerTold>>,
}

/// How a follower stands, as the node that leads has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct FollowerTold {
    /// Its name.
    pub name: String,
    /// Whether transactions wait for it.
    pub is_awaited: bool,
    /// The last transaction that it has, if it is there.
    pub snapshot: Option<u64>,
}

/// One node, as another has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct NodeTold {
    /// Its name.
    pub name: String,
    /// Where nodes reach it.
    pub address: String,
    /// The URL of its HTTP server, if the list has one.
    pub http: Option<String>,
    /// Shards that it holds.
    pub shards: u64,
    /// `here`, `mapped`, `tcp` or `away`.
    pub state: String,
    /// Why it is away, if it is.
    pub reason: Option<String>,
}

impl ClusterTold {
    /// Whether it says of itself that it leads.
    #[must_use]
    pub fn leads(&self) -> bool {
        let copy = self.copy.as_ref();
        copy.is_some_and(|copy| {
            copy.followers.is_some() && copy.leader.as_ref() == Some(&self.node)
        })
    }

    /// Whether it follows a leader that is there.
    #[must_use]
    pub fn follows(&self) -> bool {
        let copy = self.copy.as_ref();
        copy.is_some_and(|copy| copy.is_led && copy.ended.is_none() && !self.leads())
    }

    fn term(&self) -> u64 {
        self.copy.as_ref().map_or(0, |copy| copy.term)
    }
}

impl CopyTold {
    /// Whether transactions wait for a node, by what this one knows.
    fn awaits(&self, name: &str) -> bool {
        let followers = self.followers.iter().flatten();
        self.leader.as_deref() == Some(name) || self.in_sync.iter().any(|one| one == name) || {
            followers
        }
        .any(|one| one.is_awaited && one.name == name)
    }
}

/// The name of the node that leads, by what several say: one that was deposed and does not know it yet has an
/// earlier term.
#[must_use]
pub fn leader<'t>(told: &[&'t ClusterTold]) -> Option<&'t str> {
    let knows = told.iter().filter(|one| one.leads() || one.follows());
    let latest = knows.max_by_key(|one| (one.term(), one.leads()))?;
    latest.copy.as_ref()?.leader.as_deref()
}

/// Whether a node that answered is in sync, by what it and the one that leads say: always where the store is only
/// read.
#[must_use]
pub fn is_in_sync(node: &ClusterTold, told: &[&ClusterTold]) -> bool {
    let Some(own) = &node.copy else {
        return true;
    };
    let leader = leader(told);
    if leader == Some(&node.node) {
        return node.leads();
    }
    if !node.follows() {
        return false;
    }
    // What the one that leads knows counts, where that answered.
    let leading = told
        .iter()
        .find(|one| one.leads() && Some(&*one.node) == leader);
    let known = leading.and_then(|one| one.copy.as_ref()).unwrap_or(own);
    known.awaits(&node.node)
}

#[cfg(test)]
mod tests {
    use jindou_engine::ReplicaStatus;

    use super::*;
    use crate::cluster::tests::example;

    fn told(text: &str) -> ClusterTold {
        serde_json::from_str(text).expect("it is JSON")
    }

    fn leads(name: &str, term: u64, in_sync: &str) -> ClusterTold {
        told(&format!(
            r#"{{"node":"{name}","copy":{{"leader":"{name}","term":{term},"in_sync":[{in_sync}],"followers":[]}}}}"#
        ))
    }

    fn follows(
        name: &str,
        leader: &str,
        (term, is_led): (u64, bool),
        in_sync: &str,
    ) -> ClusterTold {
        told(&format!(
            r#"{{"node":"{name}","copy":{{"leader":"{leader}","is_led":{is_led},"term":{term},"in_sync":[{in_sync}]}}}}"#
        ))
    }

    #[test]
    fn what_a_node_says_is_read() {
        let mut now = example();
        now.copy = Some(ReplicaStatus::Follows {
            leader: Some("b".to_owned()),
            is_led: true,
            ended: None,
        });
        let read: ClusterTold = serde_json::from_value(now.json()).expect("it is read");
        assert_eq!((&*read.node, read.snapshot), ("a", Some(7)));
        assert_eq!(read.nodes[1].http.as_deref(), Some("http://b.example:7878"));
        assert_eq!(&*read.nodes[1].state, "away");
        assert_eq!(read.nodes[1].reason.as_deref(), Some("no route to host"));
        assert_eq!((read.nodes[0].shards, &*read.nodes[0].state), (32, "here"));
        assert!(read.follows() && !read.leads());
        now.copy = Some(ReplicaStatus::Leads {
            followers: Vec::new(),
        });
        let mut leading = now.json();
        leading["copy"]["term"] = 3.into();
        let read: ClusterTold = serde_json::from_value(leading).expect("it is read");
        assert!(read.leads() && !read.follows());
        assert_eq!(leader(&[&read]), Some("a"));
        now.copy = None;
        let read: ClusterTold = serde_json::from_value(now.json()).expect("it is read");
        assert!(is_in_sync(&read, &[&read]) && leader(&[&read]).is_none());
    }

    #[test]
    fn a_deposed_leader_does_not_count() {
        let old = leads("a", 1, r#""a","b","c""#);
        let new = leads("b", 2, r#""b","c""#);
        let third = follows("c", "b", (2, true), r#""b""#);
        let all = [&old, &new, &third];
        assert_eq!(leader(&all), Some("b"));
        assert!(!is_in_sync(&old, &all));
        assert!(is_in_sync(&new, &all));
        assert!(is_in_sync(&third, &all), "the one that leads knows better");
        assert_eq!(
            leader(&[&old, &third]),
            Some("b"),
            "though it did not answer"
        );
        assert!(
            !is_in_sync(&third, &[&old, &third]),
            "by what it knows itself"
        );
        assert_eq!(leader(&[]), None);
    }

    #[test]
    fn one_that_hears_of_no_leader_is_not_in_sync() {
        let alone = follows("b", "a", (1, false), r#""a","b""#);
        assert_eq!(leader(&[&alone]), None);
        assert!(!is_in_sync(&alone, &[&alone]));
        let mut ended = follows("b", "a", (1, true), r#""a","b""#);
        let leading = leads("a", 1, r#""a","b""#);
        assert!(is_in_sync(&ended, &[&leading, &ended]));
        ended.copy.as_mut().expect("it has one").ended = Some("another store".to_owned());
        assert!(!is_in_sync(&ended, &[&leading, &ended]));
        let behind = follows("c", "a", (1, true), r#""a","c""#);
        assert!(!is_in_sync(&behind, &[&leading, &behind]));
    }
}
