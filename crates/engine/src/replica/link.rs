//! How does a message go to another node in pieces that nothing comes between?

use std::sync::Arc;

use jindou_model::NodeId;
use parking_lot::Mutex;

use super::ReplicaWay;
use super::wire::{Head, pieces};

/// This node's end of what goes to another one.
pub(super) struct Link {
    to: NodeId,
    way: Arc<dyn ReplicaWay>,
    /// Held while the pieces of a message are sent; true once it has ended.
    sending: Mutex<bool>,
}

impl Link {
    pub(super) fn new(to: NodeId, way: &Arc<dyn ReplicaWay>) -> Self {
        Self {
            to,
            way: Arc::clone(way),
            sending: Mutex::new(false),
        }
    }

    pub(super) fn to(&self) -> NodeId {
        self.to
    }

    /// Sends a message; false once the link has ended.
    pub(super) fn send(&self, head: &Head, body: &[&[u8]]) -> bool {
        let pieces = pieces(head, body);
        let has_ended = self.sending.lock();
        let mut pieces = pieces.into_iter();
        !*has_ended && pieces.all(|piece| self.way.send(self.to, piece))
    }

    /// Sends nothing any more: what is left of a message is none of the next link's.
    pub(super) fn end(&self) {
        *self.sending.lock() = true;
    }
}
