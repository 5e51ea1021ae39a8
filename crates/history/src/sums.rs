//! Do counters show what was added to them, and do accounts keep their total?
//!
//! Values of counters are not unique, so no order follows from them; but a sum must lie between what is
//! acknowledged and what was asked for.

use rustc_hash::FxHashMap;

use crate::{Key, OperationId, Outcome};

/// What was asked of counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SumKind {
    /// Adds to counters.
    Increment {
        /// Each key once.
        by: Vec<(Key, u32)>,
    },
    /// Reads counters.
    Read {
        /// Each once.
        keys: Vec<Key>,
        /// What was read, by key; empty unless the operation is done.
        sums: Vec<i64>,
    },
}

/// An operation on counters as its client saw it, with the times of [`crate::Operation`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SumOperation {
    /// When the client asked, in nanoseconds.
    pub begun: u64,
    /// When the client heard the outcome; known where the operation is done.
    pub ended: Option<u64>,
    /// What was asked.
    pub kind: SumKind,
    /// What was heard.
    pub outcome: Outcome,
}

/// A sum that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SumAnomaly {
    /// What was acknowledged is missing.
    #[error("{read} read {sum} of {key}, and {acknowledged} was acknowledged before it began")]
    TooLittle {
        /// Who read.
        read: OperationId,
        /// Which counter.
        key: Key,
        /// What was read.
        sum: i64,
        /// What was acknowledged before the read began.
        acknowledged: i64,
    },
    /// More than anybody asked for.
    #[error("{read} read {sum} of {key}, and {asked} at most was asked for before it ended")]
    TooMuch {
        /// Who read.
        read: OperationId,
        /// Which counter.
        key: Key,
        /// What was read.
        sum: i64,
        /// What may have been added before the read ended.
        asked: i64,
    },
    /// The accounts' total is another one.
    #[error("accounts have {sum} together, not {total}")]
    Total {
        /// What they have.
        sum: i64,
        /// What they have to have.
        total: i64,
    },
    /// An account was overdrawn, which each transfer excludes.
    #[error("account {key} has {balance}")]
    Overdrawn {
        /// Which account.
        key: Key,
        /// What it has.
        balance: i64,
    },
}

/// What was added to one counter, by time.
#[derive(Default)]
struct Added {
    /// By acknowledgement, and from then on the sum.
    acknowledged: Vec<(u64, i64)>,
    /// By begin, failed increments aside, and from then on the sum.
    asked: Vec<(u64, i64)>,
}

fn accumulate(by_time: &mut [(u64, i64)]) {
    by_time.sort_unstable();
    for place in 1..by_time.len() {
        by_time[place].1 += by_time[place - 1].1;
    }
}

/// The sum of what has a time before this one.
fn sum_before(by_time: &[(u64, i64)], time: u64) -> i64 {
    let count = by_time.partition_point(|(at, _)| *at < time);
    count.checked_sub(1).map_or(0, |last| by_time[last].1)
}

/// Counters begin at 0. Each read shows at least what was acknowledged before it began, if `strong`, or if it is final:
/// begun at `finals_from` or later; and at most what was asked for before it ended. Costs sorting.
#[must_use]
pub fn check_counters(
    history: &[SumOperation],
    strong: bool,
    finals_from: Option<u64>,
) -> Vec<SumAnomaly> {
    let mut counters: FxHashMap<Key, Added> = FxHashMap::default();
    for operation in history {
        let SumKind::Increment { by } = &operation.kind else {
            continue;
        };
        for (key, amount) in by {
            let added = counters.entry(*key).or_default();
            let amount = i64::from(*amount);
            match (operation.outcome, operation.ended) {
                (Outcome::Failed, _) => continue,
                (Outcome::Done { .. }, Some(ended)) => added.acknowledged.push((ended, amount)),
                _ => {}
            }
            added.asked.push((operation.begun, amount));
        }
    }
    for added in counters.values_mut() {
        accumulate(&mut added.acknowledged);
        accumulate(&mut added.asked);
    }
    let mut anomalies = Vec::new();
    for (id, operation) in (0..).map(OperationId).zip(history) {
        let (SumKind::Read { keys, sums }, Outcome::Done { .. }) =
            (&operation.kind, operation.outcome)
        else {
            continue;
        };
        let must_show = strong || finals_from.is_some_and(|from| operation.begun >= from);
        for (key, sum) in keys.iter().zip(sums) {
            let bounds = bounds(counters.get(key), operation, must_show);
            anomalies.extend(outside(bounds, id, *key, *sum));
        }
    }
    anomalies
}

fn bounds(added: Option<&Added>, read: &SumOperation, must_show: bool) -> (i64, i64) {
    let Some(added) = added else { return (0, 0) };
    let least = match must_show {
        true => sum_before(&added.acknowledged, read.begun),
        false => 0,
    };
    // What begins at the instant at which a read ends may be in it: clocks are coarse.
    let until = read.ended.unwrap_or(u64::MAX).saturating_add(1);
    (least, sum_before(&added.asked, until))
}

fn outside((least, most): (i64, i64), read: OperationId, key: Key, sum: i64) -> Option<SumAnomaly> {
    if sum < least {
        let acknowledged = least;
        return Some(SumAnomaly::TooLittle {
            read,
            key,
            sum,
            acknowledged,
        });
    }
    let asked = most;
    (sum > most).then_some(SumAnomaly::TooMuch {
        read,
        key,
        sum,
        asked,
    })
}

/// What one read of all accounts has to show: their total, whatever was transferred, and no debts.
#[must_use]
pub fn check_accounts(balances: &[(Key, i64)], total: i64) -> Vec<SumAnomaly> {
    let sum = balances.iter().map(|(_, balance)| balance).sum();
    let overdrawn = balances.iter().filter(|(_, balance)| *balance < 0);
    let overdrawn = overdrawn.map(|&(key, balance)| SumAnomaly::Overdrawn { key, balance });
    let other = (sum != total).then_some(SumAnomaly::Total { sum, total });
    other.into_iter().chain(overdrawn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DONE: Outcome = Outcome::Done { snapshot: None };

    fn add(begun: u64, ended: u64, amount: u32, outcome: Outcome) -> SumOperation {
        let by = vec![(Key(0), amount)];
        SumOperation {
            begun,
            ended: Some(ended),
            kind: SumKind::Increment { by },
            outcome,
        }
    }

    fn read(begun: u64, ended: u64, sum: i64) -> SumOperation {
        let (keys, sums) = (vec![Key(0)], vec![sum]);
        SumOperation {
            begun,
            ended: Some(ended),
            kind: SumKind::Read { keys, sums },
            outcome: DONE,
        }
    }

    #[test]
    fn a_counter_lies_between_what_is_acknowledged_and_what_was_asked_for() {
        let added = [
            add(0, 10, 1, DONE),
            add(5, 15, 2, Outcome::Unknown),
            add(6, 16, 4, Outcome::Failed),
            add(30, 40, 8, DONE),
        ];
        for (begun, sums) in [(8, 0..=3), (20, 1..=3), (35, 1..=11), (50, 9..=11)] {
            for sum in -1..14 {
                let mut history = added.to_vec();
                history.push(read(begun, begun + 1, sum));
                let clean = check_counters(&history, true, None).is_empty();
                assert_eq!(clean, sums.contains(&sum), "{sum} at {begun}");
            }
        }
    }

    #[test]
    fn a_weak_read_may_miss_what_is_acknowledged_unless_it_is_final() {
        let history = [add(0, 1, 1, DONE), read(5, 6, 0)];
        assert_eq!(check_counters(&history, false, None), []);
        assert_eq!(check_counters(&history, false, Some(5)).len(), 1);
    }

    #[test]
    fn accounts_keep_their_total_and_have_no_debts() {
        assert_eq!(check_accounts(&[(Key(0), 4), (Key(1), 6)], 10), []);
        assert_eq!(check_accounts(&[(Key(0), 4), (Key(1), 5)], 10).len(), 1);
        assert_eq!(check_accounts(&[(Key(0), -4), (Key(1), 14)], 10).len(), 1);
    }
}
