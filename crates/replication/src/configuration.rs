//! What is kept outside of who leads and who is in sync?

use std::collections::BTreeSet;

use jindou_model::NodeId;

/// Who leads, and who has all that clients were told of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// Grows by one with each leader, and each time that one has ended and begins again.
    pub term: u64,
    /// The node that orders transactions.
    pub leader: NodeId,
    /// The nodes in sync, the leader among them.
    pub in_sync: BTreeSet<NodeId>,
}

/// A configuration as it is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Versioned {
    /// Grows with each change of what is kept; 0 where nothing is yet.
    pub version: u64,
    /// What is kept.
    pub configuration: Configuration,
}

impl Configuration {
    /// The first one: of a node alone.
    pub(crate) fn first(leader: NodeId) -> Self {
        Self {
            term: 1,
            leader,
            in_sync: BTreeSet::from([leader]),
        }
    }

    /// The one in which `leader` leads next, of those in sync that are not `without`.
    pub(crate) fn led_by(&self, leader: NodeId, without: Option<NodeId>) -> Self {
        let others = self.in_sync.iter().copied();
        Self {
            term: self.term + 1,
            leader,
            in_sync: others.filter(|node| Some(*node) != without).collect(),
        }
    }

    /// The same with other nodes in sync.
    pub(crate) fn with(&self, in_sync: BTreeSet<NodeId>) -> Self {
        Self {
            in_sync,
            ..self.clone()
        }
    }
}
