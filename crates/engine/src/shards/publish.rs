//! Who tells the other nodes of the base that a merge made?
//!
//! A thread that waits for the next one, cuts what of it was merged into the shards of this node, and lets the others
//! read that.

use std::sync::{Arc, Weak};
use std::thread::{Builder, JoinHandle};

use jindou_cluster::Member;

use super::snapshots::Snapshots;

/// The thread, until this is dropped.
pub(super) struct Publishing {
    snapshots: Arc<Snapshots>,
    thread: Option<JoinHandle<()>>,
}

impl Publishing {
    /// Tells the peers of a member of each base that there is after the first one.
    ///
    /// # Errors
    /// Why there is no thread.
    pub(super) fn start(member: &Arc<Member>, snapshots: &Arc<Snapshots>) -> std::io::Result<Self> {
        let (weak, seen_by) = (Arc::downgrade(member), Arc::clone(snapshots));
        let run = move || publish(&weak, &seen_by);
        let thread = Builder::new()
            .name("jindou-publish".to_owned())
            .spawn(run)?;
        Ok(Self {
            snapshots: Arc::clone(snapshots),
            thread: Some(thread),
        })
    }
}

impl Drop for Publishing {
    fn drop(&mut self) {
        self.snapshots.end_waiting();
        if let Some(thread) = self.thread.take() {
            // What it panicked with was printed.
            let _ended = thread.join();
        }
    }
}

fn publish(member: &Weak<Member>, snapshots: &Snapshots) {
    let mut seen = 1;
    while let Some(bases) = snapshots.wait_for_base(seen) {
        seen = bases;
        let base = match snapshots.last_base() {
            Ok(base) => base,
            Err(error) => {
                tracing::error!(%error, "what was merged is not published: other nodes ask for it");
                continue;
            }
        };
        let Some(member) = member.upgrade() else {
            return;
        };
        member.publish(base);
    }
}
