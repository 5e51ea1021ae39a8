//! Is a copy of a store one that has nothing but what the leader has?

use jindou_model::SnapshotNumber;
use jindou_store::{Begun, Directory, History, Run, Snapshot, StoreError, Transaction};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::wire::Head;

/// Who made the leader's transactions.
pub(super) struct Lineage(History);

impl Lineage {
    /// That of a leader with this history.
    pub(super) fn new(history: History) -> Self {
        Self(history)
    }

    /// True if a copy at this snapshot, which the run made, has nothing that the leader does not have. One that
    /// is a copy for the first time says what it holds.
    pub(super) fn has(
        &self,
        number: SnapshotNumber,
        run: Option<Run>,
        digest: Option<u64>,
    ) -> bool {
        // Who made what was there before the first run is not known, so it is compared.
        let is_same = match digest {
            Some(digest) => self.0.begun() == Some(Begun { number, digest }),
            None => true,
        };
        is_same && self.0.leads_from(number, run)
    }

    pub(super) fn head(&self) -> Head {
        let runs = self.0.runs().iter();
        Head::History(runs.map(|run| (run.id, run.first.0)).collect())
    }
}

/// The history of a store that leads: at the first time it says what it began with.
///
/// # Errors
/// What the operating system says, and a file that is not as it was written.
pub(super) fn of_leader(directory: &Directory, latest: &Snapshot) -> Result<History, StoreError> {
    let history = History::read(directory)?.unwrap_or_default();
    if history.runs().len() > 1 || history.begun().is_some() {
        return Ok(history);
    }
    let history = history.with_begun(Begun {
        number: latest.number(),
        digest: digest(latest),
    });
    history.write(directory)?;
    Ok(history)
}

/// What a store holds, of files with the same bytes the same. Costs what changed since the last merge.
pub(super) fn digest(snapshot: &Snapshot) -> u64 {
    let mut bytes = Vec::new();
    Transaction::from_base(snapshot).encode(&mut bytes);
    xxh3_64_with_seed(&bytes, snapshot.base().edges_digest().unwrap_or_default())
}
