//! How does a node get a copy of the leader's store, as it has none or one that is too old? The leader makes a backup within
//! its own folder, whose large files are links, and sends that. Its log keeps what follows until the node is there.

use std::io;
use std::sync::Arc;

use jindou_model::{NodeId, SnapshotNumber};
use jindou_store::{Directory, Partial, StoreFile};

use super::Role;
use super::copy_wire::{self, CopyHead};
use super::group::Group;
use super::leader::Leader;
use crate::database::Inner;
use crate::deadline::Deadline;
use crate::{Database, EngineError};

/// What the copy on its way to another node is called in the folder of the store.
const PLACE: &str = "copy";

/// Removes what is left of copies that were on their way when the process ended.
pub(super) fn remove_leftovers(location: &Directory) {
    Partial::remove_leftovers(&location.path().join(PLACE));
}

/// A copy, until it was sent.
struct Made {
    place: Partial,
    snapshot: SnapshotNumber,
    files: Vec<StoreFile>,
}

impl Group {
    /// As [`Replica::give_copy`](super::Replica::give_copy).
    pub(super) fn give_copy(&self, to: NodeId, out: &mut dyn io::Write) -> io::Result<()> {
        let mut refused = |reason: String, leader| CopyHead::Refused { reason, leader }.write(out);
        let role = self.role();
        let Role::Leader(leader) = &*role else {
            let leader = self.leader().map(|(node, _)| self.options.name(node));
            let reason = match &leader {
                Some(name) => format!("node {name} leads, and gives copies of the store"),
                None => "it does not know which node leads".to_owned(),
            };
            return refused(reason, leader);
        };
        let Some(inner) = leader.inner.upgrade() else {
            return refused("it ends".to_owned(), None);
        };
        let name = self.options.name(to);
        if !leader.hold_for_copy(to, inner.graph.load().snapshot.number()) {
            let reason = "it gives a copy of the store to another node just now".to_owned();
            return refused(reason, None);
        }
        let over = Over { leader, to };
        let made = match make(inner) {
            Ok(made) => made,
            Err(error) => {
                tracing::error!(%error, "no copy of the store can be made for node {name}");
                return refused(format!("it cannot make a copy of the store: {error}"), None);
            }
        };
        tracing::info!("node {name} gets a copy of the store");
        let rate = self.options.copy_rate;
        let path = made.place.directory().path();
        copy_wire::send(path, made.snapshot, &made.files, rate, out)?;
        over.was_sent();
        Ok(())
    }
}

/// A copy of what readers see now.
fn make(inner: Arc<Inner>) -> Result<Made, EngineError> {
    let location = inner.directory.as_ref().expect("a copy is stored");
    let place = Partial::begin_beside(&location.path().join(PLACE))?;
    let database = Database::within(inner);
    let (snapshot, _) = database.copy_into(&place, &Deadline::never())?;
    let files = place.directory().files()?;
    Ok(Made {
        snapshot: snapshot.number(),
        files,
        place,
    })
}

/// Lets the log go on however the copy ends.
struct Over<'l> {
    leader: &'l Leader,
    to: NodeId,
}

impl Over<'_> {
    fn was_sent(self) {
        self.leader.copy_is_over(self.to, true);
        std::mem::forget(self);
    }
}

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.leader.copy_is_over(self.to, false);
    }
}
