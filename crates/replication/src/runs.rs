//! Up to which snapshot do two logs have the same transactions?

use jindou_model::SnapshotNumber;

/// Where transactions that one process made begin: its number, which no other one has, and its first snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunStart {
    /// The number.
    pub id: u64,
    /// The first snapshot that it made, or would have made.
    pub first: SnapshotNumber,
}

/// The last snapshot up to which two logs, each of these runs and up to this snapshot, have the same transactions.
/// `None` where that is not known: no run is of both, though both have some, or one has some and the other none.
///
/// Within a run all transactions are one process's, in one order: so two logs that have a run both have what is before it,
/// and of it what the shorter one has.
#[must_use]
pub fn common_snapshot(
    one: (&[RunStart], SnapshotNumber),
    other: (&[RunStart], SnapshotNumber),
) -> Option<SnapshotNumber> {
    let last_common = one.0.iter().rposition(|run| other.0.contains(run))?;
    let run = one.0[last_common];
    let in_other = other.0.iter().position(|it| *it == run)?;
    let ends = [end(one, last_common), end(other, in_other)];
    ends.into_iter().min()
}

/// The last snapshot of a log that a run of it made, or the one before it.
fn end((runs, last): (&[RunStart], SnapshotNumber), at: usize) -> SnapshotNumber {
    match runs.get(at + 1) {
        Some(next) => last.min(SnapshotNumber(next.first.0.saturating_sub(1))),
        None => last,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(starts: &[(u64, u64)]) -> Vec<RunStart> {
        let run = |(id, first): &(u64, u64)| RunStart {
            id: *id,
            first: SnapshotNumber(*first),
        };
        starts.iter().map(run).collect()
    }

    fn common(one: (&[(u64, u64)], u64), other: (&[(u64, u64)], u64)) -> Option<u64> {
        let (one_runs, other_runs) = (runs(one.0), runs(other.0));
        let number = SnapshotNumber;
        let there = common_snapshot((&one_runs, number(one.1)), (&other_runs, number(other.1)));
        let back = common_snapshot((&other_runs, number(other.1)), (&one_runs, number(one.1)));
        assert_eq!(there, back);
        there.map(|it| it.0)
    }

    #[test]
    fn logs_agree_up_to_where_their_last_common_run_ends_in_one_of_them() {
        let first: &[(u64, u64)] = &[(7, 1)];
        let one: &[(u64, u64)] = &[(7, 1), (8, 11)];
        let other: &[(u64, u64)] = &[(7, 1), (9, 10)];
        assert_eq!(common((first, 5), (first, 9)), Some(5));
        assert_eq!(common((first, 14), (one, 20)), Some(10));
        assert_eq!(common((one, 20), (other, 20)), Some(9));
        assert_eq!(common((one, 20), (one, 13)), Some(13));
        // A run that has begun and made nothing yet.
        assert_eq!(common((one, 10), (other, 9)), Some(9));
        assert_eq!(common((&[(5, 1)], 3), (one, 20)), None);
        assert_eq!(common((&[], 3), (one, 20)), None);
    }
}
