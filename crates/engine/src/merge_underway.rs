//! How much may writers bring beside a merge that is under way?
//!
//! Where the changes have outgrown what a merge is meant for, writers wait, as memory has to be bounded. After one large
//! transaction they would wait for all of its merge, whatever they bring; so what is little beside that goes on.

use jindou_model::PredicateId;
use jindou_store::Snapshot;
use rustc_hash::FxHashSet;

use crate::database::Inner;
use crate::merge::{Growth, MergePolicy};

/// While a merge runs, writers may add this fraction of the changes that it merges (one in so many), or as much as makes a
/// merge due if that is more.
const BESIDE_SHARE: u64 = 4;

/// What a merge that is under way takes.
pub(crate) struct MergeUnderway {
    start: Snapshot,
    /// All that had come when it began.
    begun: Growth,
    /// Changes of predicates that it does not take; it takes all terms.
    left_changes: u64,
}

impl MergeUnderway {
    /// A merge of these predicates of a snapshot, which begins now.
    pub(crate) fn new(start: &Snapshot, predicates: &[PredicateId]) -> Self {
        let taken: FxHashSet<PredicateId> = predicates.iter().copied().collect();
        let changed = start.changed_predicates().into_iter();
        let left = changed.filter(|one| !taken.contains(&one.predicate));
        Self {
            start: start.clone(),
            begun: Growth::of(start),
            left_changes: left.map(|one| one.changes).sum(),
        }
    }

    /// Whether a writer with so many changes may go on while the merge runs: if what came since it began, with these, is
    ///
    /// - at most a quarter of what the merge takes, or what makes a merge due if that is more: changes and bytes of terms each, and
    /// - not overdue when the merge has ended, with what it leaves.
    ///
    /// So there is never more than a quarter beyond what there was when it began, or than what a merge is meant for. Terms of what
    /// is yet to come are not known, and counted for the next writer.
    pub(crate) fn takes(&self, policy: &MergePolicy, latest: &Snapshot, brings: u64) -> bool {
        // The latest one may be upon what was merged already.
        if !latest.is_of_generation_of(&self.start) {
            return false;
        }
        let since = Growth::of(latest).since(self.begun);
        let since = Growth {
            changes: since.changes.saturating_add(brings),
            ..since
        };
        let taken_changes = self.begun.changes.saturating_sub(self.left_changes);
        let is_little = |since: u64, taken: u64, due: u64| since <= due.max(taken / BESIDE_SHARE);
        let after = Growth {
            changes: since.changes.saturating_add(self.left_changes),
            ..since
        };
        is_little(since.changes, taken_changes, policy.changes)
            && is_little(since.term_bytes, self.begun.term_bytes, policy.term_bytes)
            && !policy.is_overdue_at(latest, after)
    }
}

/// Ends the note that a merge is under way.
pub(crate) struct UnderwayNote<'a>(&'a Inner);

impl Drop for UnderwayNote<'_> {
    fn drop(&mut self) {
        let merge = self.0.underway.lock().take();
        assert!(merge.is_some(), "a merge ends once");
    }
}

impl Inner {
    /// Notes that a merge is under way, until what this returns is dropped.
    pub(crate) fn note_underway(&self, merge: MergeUnderway) -> UnderwayNote<'_> {
        let before = self.underway.lock().replace(merge);
        assert!(before.is_none(), "merges come one after the other");
        // Who waits for it may go on beside it.
        self.signal.tell_attempted();
        UnderwayNote(self)
    }

    /// Whether a writer has to wait for a merge, by the number of changes that it is known to bring.
    pub(crate) fn must_wait_for_merge(&self, brings: u64) -> bool {
        let policy = &self.config.merge;
        let of_load = self.load_bytes.load(std::sync::atomic::Ordering::Relaxed);
        let latest = &self.graph.load().snapshot;
        let takes = |merge: &MergeUnderway| merge.takes(policy, latest, brings);
        policy.is_overdue(latest, of_load) && !self.underway.lock().as_ref().is_some_and(takes)
    }
}
