//! How does a message go to another node in pieces, between which none comes but what is sent ahead?

use std::sync::Arc;

use jindou_model::NodeId;
use parking_lot::{Mutex, RwLock};

use super::ReplicaWay;
use super::wire::{Head, alone, pieces};

/// This node's end of what goes to another one.
pub(super) struct Link {
    to: NodeId,
    way: Arc<dyn ReplicaWay>,
    /// Held while the pieces of a message are sent.
    sending: Mutex<()>,
    has_ended: RwLock<bool>,
}

impl Link {
    pub(super) fn new(to: NodeId, way: &Arc<dyn ReplicaWay>) -> Self {
        Self {
            to,
            way: Arc::clone(way),
            sending: Mutex::default(),
            has_ended: RwLock::default(),
        }
    }

    pub(super) fn to(&self) -> NodeId {
        self.to
    }

    /// Sends a message; false once the link has ended.
    pub(super) fn send(&self, head: &Head, body: &[&[u8]]) -> bool {
        let pieces = pieces(head, body);
        let _in_one = self.sending.lock();
        pieces.into_iter().all(|piece| {
            let has_ended = self.has_ended.read();
            !*has_ended && self.way.send(self.to, piece)
        })
    }

    /// Sends a message without a body before those that wait, between the pieces of one; false once the link has ended.
    pub(super) fn send_ahead(&self, head: &Head) -> bool {
        let piece = alone(head);
        let has_ended = self.has_ended.read();
        !*has_ended && self.way.send_ahead(self.to, piece)
    }

    /// Sends nothing any more: what is left of a message is none of the next link's.
    pub(super) fn end(&self) {
        *self.has_ended.write() = true;
    }
}
