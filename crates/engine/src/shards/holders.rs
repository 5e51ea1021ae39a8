//! How is the node called that a query lacks, or that has the shard that it lacks? The one that the list of the cluster gives it, where the
//! process is a node of one.

#[cfg(target_os = "linux")]
use std::sync::Arc;

#[cfg(target_os = "linux")]
use jindou_cluster::Member;
#[cfg(target_os = "linux")]
use jindou_model::{NodeId, ShardId};

use crate::EngineError;

/// The names of the nodes that hold shards; of none where all shards are of this process.
#[derive(Clone, Default)]
pub(crate) struct Holders {
    #[cfg(target_os = "linux")]
    member: Option<Arc<Member>>,
}

impl Holders {
    #[cfg(target_os = "linux")]
    pub(super) fn of(member: &Arc<Member>) -> Self {
        Self {
            member: Some(Arc::clone(member)),
        }
    }

    /// The error with the name of the node that it is about, or that has the shard that it is about. Where one was lost
    /// its member hears of it, which may have met that node's end with no more than this.
    pub(crate) fn name(&self, error: EngineError) -> EngineError {
        #[cfg(target_os = "linux")]
        if let Some(member) = self.member.as_ref().filter(|_| error.is_of_other_node()) {
            member.miss();
        }
        match error {
            EngineError::ShardLost { shard, node: None } => EngineError::ShardLost {
                shard,
                node: self.holder(shard),
            },
            EngineError::NodeLost { node, name: None } => EngineError::NodeLost {
                node,
                name: self.name_of(node),
            },
            error => error,
        }
    }

    #[cfg(target_os = "linux")]
    fn holder(&self, shard: u32) -> Option<String> {
        let member = self.member.as_ref()?;
        let node = member.map().holder(ShardId(shard));
        Some(member.name(node).to_owned())
    }

    #[cfg(target_os = "linux")]
    fn name_of(&self, node: u32) -> Option<String> {
        let member = self.member.as_ref()?;
        Some(member.name(NodeId(node)).to_owned())
    }

    #[cfg(not(target_os = "linux"))]
    fn holder(&self, _: u32) -> Option<String> {
        None
    }

    #[cfg(not(target_os = "linux"))]
    fn name_of(&self, _: u32) -> Option<String> {
        None
    }
}
