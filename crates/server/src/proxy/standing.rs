//! Which node gets the next request?
//!
//! A query goes to one that is in sync with the fewest requests under way, in turn where several have as few; where
//! none is in sync, to one that is there, as that waits until it knows again what is so. What only one node does goes to
//! the one that leads; while nobody knows which that is, to any, which hands it on or says where.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::node::{Node, Said};
use crate::cluster_told::{ClusterTold, is_in_sync, leader};

/// How a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// Nothing is sent to it.
    Away,
    There,
    InSync,
}

/// Who is to answer a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    Any,
    Leader,
}

/// All nodes at one moment.
pub(super) struct Standing {
    nodes: Vec<(Arc<Node>, Rank)>,
    leader: Option<usize>,
}

impl Standing {
    pub(super) fn of(nodes: Vec<Arc<Node>>) -> Self {
        let said: Vec<Said> = nodes.iter().map(|node| node.said()).collect();
        let told: Vec<&ClusterTold> = said.iter().filter_map(told).collect();
        let name = leader(&told);
        let is_leader =
            |said: &Said| self::told(said).is_some_and(|told| Some(&*told.node) == name);
        let leader = said.iter().position(is_leader);
        let rank = |said: &Said| match said {
            Said::Told(one) if is_in_sync(one, &told) => Rank::InSync,
            Said::Told(_) | Said::Withheld(_) => Rank::There,
            Said::Nothing | Said::Away(_) => Rank::Away,
        };
        let ranks: Vec<Rank> = said.iter().map(rank).collect();
        Self {
            nodes: nodes.into_iter().zip(ranks).collect(),
            leader,
        }
    }

    /// The next node of those that were not tried.
    pub(super) fn choose(
        &self,
        to: To,
        tried: &[Arc<Node>],
        turn: &AtomicUsize,
    ) -> Option<Arc<Node>> {
        let is_left = |node: &Arc<Node>| !tried.iter().any(|one| Arc::ptr_eq(one, node));
        if to == To::Leader
            && let Some(number) = self.leader
            && is_left(&self.nodes[number].0)
        {
            return Some(Arc::clone(&self.nodes[number].0));
        }
        let left = self.nodes.iter().filter(|(node, _)| is_left(node));
        let best = left.clone().map(|(_, rank)| *rank).max()?;
        if best == Rank::Away {
            return None;
        }
        let best = left.filter(|(_, rank)| *rank == best);
        let mut best: Vec<_> = best.map(|(node, _)| node).collect();
        let begin = turn.fetch_add(1, Relaxed) % best.len();
        best.rotate_left(begin);
        let least = best.into_iter().min_by_key(|node| node.underway());
        least.cloned()
    }

    /// All that are there, each of which may have what is asked for.
    pub(super) fn there(&self) -> impl Iterator<Item = &Arc<Node>> {
        let there = self.nodes.iter().filter(|(_, rank)| *rank != Rank::Away);
        there.map(|(node, _)| node)
    }

    pub(super) fn nodes(&self) -> &[(Arc<Node>, Rank)] {
        &self.nodes
    }

    pub(super) fn leader(&self) -> Option<&Arc<Node>> {
        self.leader.map(|number| &self.nodes[number].0)
    }
}

fn told(said: &Said) -> Option<&ClusterTold> {
    match said {
        Said::Told(told) => Some(told),
        Said::Nothing | Said::Withheld(_) | Said::Away(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::link::Link;
    use super::*;

    fn node(number: usize, said: Said) -> Arc<Node> {
        let url = format!("http://127.0.0.1:{}", number + 1);
        let node = Node::new(Link::new(url.parse().expect("a URL"), None), true);
        node.note(said, Instant::now());
        Arc::new(node)
    }

    fn says(text: &str) -> Said {
        Said::Told(
            serde_json::from_str::<ClusterTold>(text)
                .expect("JSON")
                .into(),
        )
    }

    fn three() -> Vec<Arc<Node>> {
        let follows = |name: &str| {
            let copy = r#""copy":{"leader":"b","is_led":true,"term":1}"#;
            says(&format!(r#"{{"node":"{name}",{copy}}}"#))
        };
        let leads =
            r#"{"node":"b","copy":{"leader":"b","term":1,"in_sync":["b","c"],"followers":[]}}"#;
        let said = [follows("a"), says(leads), follows("c")];
        said.into_iter()
            .enumerate()
            .map(|(at, said)| node(at, said))
            .collect()
    }

    fn name(node: Option<Arc<Node>>) -> String {
        node.map_or_else(|| "none".to_owned(), |node| node.name())
    }

    #[test]
    fn queries_go_to_nodes_in_sync_with_the_fewest_requests_and_in_turn() {
        let nodes = three();
        let (standing, turn) = (Standing::of(nodes.clone()), AtomicUsize::new(0));
        let next = |tried: &[Arc<Node>]| name(standing.choose(To::Any, tried, &turn));
        let mut chosen: Vec<String> = (0..6).map(|_| next(&[])).collect();
        chosen.sort_unstable();
        assert_eq!(chosen[0], "b", "a is behind: {chosen:?}");
        assert_eq!(chosen[5], "c", "each has its turn: {chosen:?}");
        let underway = nodes[1].begin();
        assert!((0..6).all(|_| next(&[]) == "c"));
        drop(underway);
        let tried = [Arc::clone(&nodes[1]), Arc::clone(&nodes[2])];
        assert_eq!(next(&tried[..1]), "c");
        assert_eq!(next(&tried), "a", "rather than none");
        assert_eq!(next(&nodes), "none");
    }

    #[test]
    fn what_one_node_does_goes_to_the_one_that_leads_and_to_others_where_that_fails() {
        let nodes = three();
        let turn = AtomicUsize::new(0);
        let standing = Standing::of(nodes.clone());
        let next = |standing: &Standing, tried: &[Arc<Node>]| {
            name(standing.choose(To::Leader, tried, &turn))
        };
        assert!((0..6).all(|_| next(&standing, &[]) == "b"));
        assert_eq!(next(&standing, &nodes[1..2]), "c");
        nodes[1].note(Said::Away("refused".to_owned()), Instant::now());
        let standing = Standing::of(nodes.clone());
        assert!(standing.leader().is_none());
        assert_ne!(next(&standing, &[]), "b");
        for node in &nodes {
            node.note(Said::Away("refused".to_owned()), Instant::now());
        }
        assert_eq!(next(&Standing::of(nodes), &[]), "none");
    }
}
