//! Is a copy of a store one that has nothing but what the leader has?

use jindou_model::SnapshotNumber;
use jindou_store::{History, Run, Snapshot, Transaction};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::wire::Head;

/// Who made the leader's transactions.
pub(super) struct Lineage {
    history: History,
    /// Where the store leads a cluster for the first time: the snapshot that it began with, and what that holds.
    begun: Option<(SnapshotNumber, u64)>,
}

impl Lineage {
    /// That of a leader with this history, whose last run is its own and begins behind `latest`.
    pub(super) fn new(history: History, latest: &Snapshot) -> Self {
        let is_first = history.runs().len() == 1;
        Self {
            history,
            begun: is_first.then(|| (latest.number(), digest(latest))),
        }
    }

    /// True if a copy at this snapshot, which the run made, has nothing that the leader does not have. One that
    /// is a copy for the first time says what it holds.
    pub(super) fn has(
        &self,
        number: SnapshotNumber,
        run: Option<Run>,
        digest: Option<u64>,
    ) -> bool {
        // Who made what was there before is not known, so it is compared.
        let is_same = match (self.begun, digest) {
            (Some(begun), Some(digest)) => begun == (number, digest),
            _ => true,
        };
        is_same && self.history.leads_from(number, run)
    }

    pub(super) fn head(&self) -> Head {
        let runs = self.history.runs().iter();
        Head::History(runs.map(|run| (run.id, run.first.0)).collect())
    }
}

/// What a store holds, of files with the same bytes the same. Costs what changed since the last merge.
pub(super) fn digest(snapshot: &Snapshot) -> u64 {
    let mut bytes = Vec::new();
    Transaction::from_base(snapshot).encode(&mut bytes);
    xxh3_64_with_seed(&bytes, snapshot.base().edges_digest().unwrap_or_default())
}
