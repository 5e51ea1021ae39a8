//! Is each anomaly named in the smallest history that has it?

use jindou_history::{
    AnomalyName, Check, CycleClass, HistoryError, Key, Kind, Level, Operation, OperationId,
    Outcome, Value, check,
};

use crate::{LEVELS, report};

const A: Key = Key(0);
const B: Key = Key(1);

fn append(values: &[(Key, u64)]) -> Kind {
    let appends = values.iter().map(|(key, value)| (*key, Value(*value)));
    Kind::Append {
        appends: appends.collect(),
    }
}

fn list(values: &[u64]) -> Vec<Value> {
    values.iter().copied().map(Value).collect()
}

fn read(lists: &[(Key, &[u64])]) -> Kind {
    Kind::Read {
        keys: lists.iter().map(|(key, _)| *key).collect(),
        lists: lists.iter().map(|(_, values)| list(values)).collect(),
    }
}

fn read_append(lists: &[(Key, &[u64])], values: &[(Key, u64)]) -> Kind {
    let Kind::Read { keys, lists } = read(lists) else {
        unreachable!("that is what it makes");
    };
    let Kind::Append { appends } = append(values) else {
        unreachable!("that is what it makes");
    };
    Kind::ReadAppend {
        keys,
        lists: Some(lists),
        appends,
    }
}

fn done(kind: Kind, begun: u64, ended: u64, snapshot: Option<u64>) -> Operation {
    Operation {
        client: 0,
        begun,
        ended: Some(ended),
        kind,
        outcome: Outcome::Done { snapshot },
    }
}

/// All at once: no edge of real time.
fn at_once(kinds: Vec<Kind>) -> Vec<Operation> {
    let kinds = kinds.into_iter();
    kinds.map(|kind| done(kind, 0, 100, None)).collect()
}

/// One after the other, with these numbers.
fn in_turn(kinds: Vec<(Kind, Option<u64>)>) -> Vec<Operation> {
    let times = (0..).map(|n| n * 10);
    let operation = |(at, (kind, number))| done(kind, at, at + 5, number);
    times.zip(kinds).map(operation).collect()
}

#[track_caller]
fn excluded_from(history: &[Operation], name: AnomalyName, from: Level) {
    for level in LEVELS {
        let report = report(history, level);
        let said = report.explain(history);
        assert_eq!(report.has(name), level >= from, "{name}: {said}");
        assert_eq!(report.is_clean(), level < from, "{name}: {said}");
    }
}

const ALL: Level = Level::SnapshotIsolation;
const STRONG: Level = Level::StrongSnapshotIsolation;
const STRICT: Level = Level::StrictSerializable;

#[test]
fn writes_in_two_orders_are_g0() {
    let history = at_once(vec![
        append(&[(A, 1), (B, 2)]),
        append(&[(A, 3), (B, 4)]),
        read(&[(A, &[1, 3])]),
        read(&[(B, &[4, 2])]),
    ]);
    excluded_from(&history, AnomalyName::Cycle(CycleClass::G0), ALL);
}

#[test]
fn reading_each_other_is_g1c() {
    let history = at_once(vec![
        read_append(&[(B, &[2])], &[(A, 1)]),
        read_append(&[(A, &[1])], &[(B, 2)]),
    ]);
    excluded_from(&history, AnomalyName::Cycle(CycleClass::G1c), ALL);
}

#[test]
fn reading_one_effect_and_not_an_earlier_one_is_g_single() {
    let history = at_once(vec![
        append(&[(A, 1)]),
        read_append(&[(A, &[1])], &[(B, 2)]),
        read(&[(A, &[]), (B, &[2])]),
    ]);
    excluded_from(&history, AnomalyName::Cycle(CycleClass::GSingle), ALL);
}

#[test]
fn two_reads_that_disagree_on_the_order_of_two_writes_are_no_snapshots() {
    let history = at_once(vec![
        append(&[(A, 1)]),
        append(&[(B, 2)]),
        read(&[(A, &[1]), (B, &[])]),
        read(&[(A, &[]), (B, &[2])]),
    ]);
    excluded_from(&history, AnomalyName::Cycle(CycleClass::GNonadjacent), ALL);
}

#[test]
fn write_skew_is_g2() {
    let history = at_once(vec![
        read_append(&[(A, &[])], &[(B, 2)]),
        read_append(&[(B, &[])], &[(A, 1)]),
    ]);
    excluded_from(&history, AnomalyName::Cycle(CycleClass::G2), STRICT);
}

#[test]
fn reading_the_future_is_a_cycle_with_real_time() {
    let history = in_turn(vec![(read(&[(A, &[1])]), None), (append(&[(A, 1)]), None)]);
    excluded_from(
        &history,
        AnomalyName::RealTimeCycle(CycleClass::G1c),
        STRONG,
    );
}

#[test]
fn a_stale_read_says_by_how_much() {
    let history = in_turn(vec![
        (append(&[(A, 1)]), None),
        (append(&[(A, 2)]), None),
        (read(&[(A, &[])]), None),
    ]);
    excluded_from(&history, AnomalyName::StaleRead, STRONG);
    let said = report(&history, STRONG).to_string();
    let expected = "T2 read k0 without 1, of which T0 was acknowledged 15 ns before T2 began";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn values_of_a_failed_operation_and_of_nobody_are_named() {
    let mut history = at_once(vec![append(&[(A, 1)]), read(&[(A, &[1])])]);
    history[0].outcome = Outcome::Failed;
    excluded_from(&history, AnomalyName::AbortedRead, ALL);
    let history = at_once(vec![append(&[(B, 1)]), read(&[(A, &[1])])]);
    excluded_from(&history, AnomalyName::GarbageValue, ALL);
}

#[test]
fn a_transaction_that_reads_what_it_writes_after_that_is_named() {
    let history = at_once(vec![
        append(&[(A, 1)]),
        read_append(&[(A, &[1, 2])], &[(A, 2)]),
        read(&[(A, &[1, 2])]),
    ]);
    excluded_from(&history, AnomalyName::FutureRead, ALL);
    let said = report(&history, ALL).to_string();
    assert!(
        said.contains("T1 read 2 of k0, which it wrote only then"),
        "{said}"
    );
}

#[test]
fn lists_with_duplicates_or_in_two_orders_are_named() {
    let appends = append(&[(A, 1), (A, 2)]);
    let history = at_once(vec![appends.clone(), read(&[(A, &[1, 2, 1, 2])])]);
    assert!(report(&history, ALL).has(AnomalyName::DuplicateValue));
    let history = at_once(vec![appends, read(&[(A, &[1, 2])]), read(&[(A, &[2])])]);
    assert!(report(&history, ALL).has(AnomalyName::IncompatibleOrder));
}

#[test]
fn an_operation_of_unknown_outcome_may_take_effect_late_or_never() {
    let mut history = in_turn(vec![
        (append(&[(A, 1)]), None),
        (append(&[(A, 2)]), None),
        (read(&[(A, &[2])]), None),
        (read(&[(A, &[2, 1])]), None),
    ]);
    history[0].outcome = Outcome::Unknown;
    assert!(report(&history, STRICT).is_clean());
    history.pop();
    assert!(report(&history, STRICT).is_clean());
    history.push(done(read(&[(A, &[1])]), 90, 95, None));
    assert!(!report(&history, STRICT).is_clean());
}

#[test]
fn numbers_that_do_not_fit_what_was_read_are_named() {
    let reused = vec![(append(&[(A, 1)]), Some(1)), (append(&[(B, 2)]), Some(1))];
    excluded_from(&in_turn(reused), AnomalyName::SnapshotReused, ALL);
    let reads_too_much = vec![(append(&[(A, 1)]), Some(5)), (read(&[(A, &[1])]), Some(4))];
    excluded_from(&in_turn(reads_too_much), AnomalyName::SnapshotRead, ALL);
    let mut reads_too_little = in_turn(vec![
        (append(&[(A, 1)]), Some(5)),
        (read(&[(A, &[])]), Some(5)),
    ]);
    reads_too_little[1].begun = 0;
    excluded_from(&reads_too_little, AnomalyName::SnapshotRead, ALL);
    let against_the_list = vec![
        (append(&[(A, 1)]), Some(6)),
        (append(&[(A, 2)]), Some(5)),
        (read(&[(A, &[1, 2])]), Some(9)),
    ];
    excluded_from(&in_turn(against_the_list), AnomalyName::SnapshotOrder, ALL);
}

#[test]
fn a_write_of_unknown_outcome_has_one_number_in_all_lists() {
    let history = |b: u64| {
        let mut history = in_turn(vec![
            (append(&[(A, 1), (B, 2)]), None),
            (append(&[(A, 3)]), Some(5)),
            (append(&[(B, 4)]), Some(b)),
            (read(&[(A, &[1, 3]), (B, &[4, 2])]), Some(9)),
        ]);
        history[0].outcome = Outcome::Unknown;
        history
    };
    assert!(report(&history(3), ALL).is_clean());
    excluded_from(&history(6), AnomalyName::SnapshotContradiction, ALL);
}

#[test]
fn numbers_that_go_back_are_named_where_that_is_asked_for() {
    let mut history = in_turn(vec![
        (append(&[(A, 1)]), Some(2)),
        (read(&[(B, &[])]), Some(1)),
    ]);
    let mut wanted = Check::new(ALL);
    assert!(check(&history, &wanted).unwrap().is_clean());
    (wanted.clients_go_forward, wanted.monotonic) = (true, true);
    let found = check(&history, &wanted).unwrap();
    assert!(found.has(AnomalyName::ClientWentBack) && found.has(AnomalyName::NotMonotonic));
    history[1].client = 1;
    let found = check(&history, &wanted).unwrap();
    assert!(!found.has(AnomalyName::ClientWentBack) && found.has(AnomalyName::NotMonotonic));
}

#[test]
fn a_final_read_without_an_acknowledged_value_shows_a_lost_write() {
    let history = in_turn(vec![
        (append(&[(A, 1)]), None),
        (append(&[(B, 2)]), None),
        (read(&[(A, &[])]), None),
    ]);
    let mut wanted = Check::new(ALL);
    wanted.finals_from = Some(20);
    let report = check(&history, &wanted).unwrap();
    assert_eq!(report.counts()[&AnomalyName::LostWrite], 1, "{report}");
    assert_eq!(report.sizes.unchecked_for_loss, 1);
}

#[test]
fn what_is_no_history_is_refused() {
    let twice = at_once(vec![append(&[(A, 1)]), append(&[(B, 1)])]);
    let refused = HistoryError::ValueWrittenTwice {
        value: Value(1),
        first: OperationId(0),
        then: OperationId(1),
    };
    let wanted = Check::new(ALL);
    assert_eq!(check(&twice, &wanted).unwrap_err(), refused);
    let mut times = at_once(vec![append(&[(A, 1)])]);
    times[0].ended = None;
    let refused = HistoryError::Times(OperationId(0));
    assert_eq!(check(&times, &wanted).unwrap_err(), refused);
    let keys = at_once(vec![read(&[(A, &[]), (A, &[])])]);
    let refused = HistoryError::Keys(OperationId(0));
    assert_eq!(check(&keys, &wanted).unwrap_err(), refused);
}

#[test]
fn a_read_that_lacks_what_another_saw_of_an_unacknowledged_write_is_no_anomaly_where_reads_see_ahead()
 {
    let appended = append(&[(A, 1)]);
    let (seen, lacking) = (read(&[(A, &[1])]), read(&[(A, &[])]));
    // The write is acknowledged after both reads, or before the second one.
    for (ended, is_clean) in [(100, true), (5, false)] {
        let mut history = at_once(vec![appended.clone(), seen.clone(), lacking.clone()]);
        (history[0].begun, history[0].ended) = (0, Some(ended));
        (history[1].begun, history[1].ended) = (1, Some(2));
        (history[2].begun, history[2].ended) = (10, Some(20));
        let mut wanted = jindou_history::Check::new(STRONG);
        assert!(!jindou_history::check(&history, &wanted).unwrap().is_clean());
        wanted.reads_see_ahead = true;
        let report = jindou_history::check(&history, &wanted).unwrap();
        assert_eq!(report.is_clean(), is_clean, "{}", report.explain(&history));
    }
}
