//! Is a copy of a store one that has nothing but what the leader has?

use jindou_model::SnapshotNumber;
use jindou_replication::{RunStart, common_snapshot};
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

    /// The last snapshot up to which a copy has what the leader has, which is at `last`: the copy is at `number`, and its
    /// transactions were made by these runs. One that is a copy for the first time says what it holds. `None` if the
    /// copy is of another store.
    pub(super) fn common(
        &self,
        last: SnapshotNumber,
        (number, runs): (SnapshotNumber, &[(u64, u64)]),
        digest: Option<u64>,
    ) -> Option<SnapshotNumber> {
        if let Some(digest) = digest {
            // Who made what was there before the first run is not known, so it is compared.
            return (self.0.begun() == Some(Begun { number, digest })).then_some(number);
        }
        let start = |(id, first): &(u64, u64)| RunStart {
            id: *id,
            first: SnapshotNumber(*first),
        };
        let theirs: Vec<RunStart> = runs.iter().map(start).collect();
        let own: Vec<RunStart> = numbers(&self.0).iter().map(start).collect();
        common_snapshot((&own, last), (&theirs, number))
    }

    pub(super) fn head(&self, term: u64) -> Head {
        Head::History {
            term,
            runs: numbers(&self.0),
            begun: self.0.begun().map(|begun| (begun.number.0, begun.digest)),
        }
    }
}

/// The ids of the runs, and their first snapshots.
pub(super) fn numbers(history: &History) -> Vec<(u64, u64)> {
    let runs = history.runs().iter();
    runs.map(|run| (run.id, run.first.0)).collect()
}

/// The history that [`Head::History`] says.
pub(super) fn history_of(runs: Vec<(u64, u64)>, begun: Option<(u64, u64)>) -> History {
    let runs = runs.into_iter().map(|(id, first)| Run {
        id,
        first: SnapshotNumber(first),
    });
    let history = History::of(runs.collect());
    match begun {
        Some((number, digest)) => history.with_begun(Begun {
            number: SnapshotNumber(number),
            digest,
        }),
        None => history,
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
