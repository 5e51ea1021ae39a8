//! Is the report of merges complete and right?

use std::path::Path;
use std::time::Duration;

use jindou_bench::merges::{MergeReport, Options, Scenario, measure};
use jindou_engine::MergePolicy;
use serde_json::Value;

/// Triples of one university with seed 0.
const TRIPLES: u64 = 100_543;

/// One university, and a background that merges after little.
fn quick(folder: &Path, only: Scenario) -> Options {
    let mut merge = MergePolicy::default();
    merge.changes = 2_000;
    merge.idle = Duration::from_millis(50);
    merge.idle_changes = 100;
    Options {
        only: Some(only),
        triples: 3_000,
        stream_universities: 1,
        duration: Duration::from_millis(400),
        clients: 2,
        runs: 2,
        literals: 600,
        transactions: 400,
        live: 48,
        merge,
        folder: folder.to_owned(),
        ..Options::new(1)
    }
}

/// The report; no store may stay behind, and it must survive JSON.
fn report(only: Scenario, change: impl FnOnce(&mut Options)) -> MergeReport {
    let folder = tempfile::tempdir().unwrap();
    let mut options = quick(folder.path(), only);
    change(&mut options);
    let mut steps = Vec::new();
    let report = measure(&options, |step| steps.push(step.to_owned())).unwrap();
    assert!(!steps.is_empty());
    let left = std::fs::read_dir(folder.path()).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    let is_data = |name: &&std::ffi::OsString| !name.to_string_lossy().starts_with("lubm-");
    assert_eq!(left.iter().find(is_data), None);
    let json = serde_json::to_string(&report).unwrap();
    let read: MergeReport = serde_json::from_str(&json).unwrap();
    assert_eq!(counts(&read), counts(&report));
    report
}

/// The report without what is measured in fractions: JSON may lose their last bit.
fn counts(report: &MergeReport) -> Value {
    fn empty(value: &mut Value) {
        match value {
            Value::Number(number) if number.is_f64() => *value = Value::Null,
            Value::Array(values) => values.iter_mut().for_each(empty),
            Value::Object(fields) => fields.values_mut().for_each(empty),
            _ => {}
        }
    }
    let mut value = serde_json::to_value(report).unwrap();
    empty(&mut value);
    value
}

#[test]
fn a_merge_of_one_predicate_is_measured_alone_and_beside_queries() {
    let report = report(Scenario::Single, |_| {});
    assert!(report.stream.is_none() && report.churn.is_empty());
    let text = report.to_string();
    let single = report.single.unwrap();
    assert_eq!((single.triples, single.inserted), (TRIPLES, 3_000));
    let rows: Vec<_> = single
        .queries
        .iter()
        .map(|q| (q.name.as_str(), q.rows))
        .collect();
    assert_eq!(rows, [("q4", 10), ("q5", 10), ("q6", 125)]);
    assert!(single.queries.iter().all(|q| q.beside.runs > 0));
    assert!(single.alone.written_bytes > 0 && single.beside.written_bytes > 0);
    for said in ["alone", "beside queries", "ratio p50", "q6"] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn a_stream_leaves_what_a_fresh_load_has() {
    let report = report(Scenario::Stream, |_| {});
    let text = report.to_string();
    let stream = report.stream.unwrap();
    assert!(stream.has_settled && stream.transactions >= 2);
    assert_eq!(
        stream.inserted + stream.deleted,
        1_000 * stream.transactions
    );
    assert_eq!(stream.triples, TRIPLES + stream.inserted - stream.deleted);
    assert!(stream.merges + stream.merges_after > 0, "{text}");
    assert_eq!(stream.tenths.len(), 10);
    assert!(stream.queries[0].rows > 0 && stream.queries[0].beside.runs > 0);
    assert_eq!(stream.after_stream.len(), 7);
    assert_eq!(stream.after_renumbering.len(), 7);
    let q4 = |queries: &[jindou_bench::merges::Compared]| (queries[3].rows, queries[3].fresh.runs);
    assert_eq!(q4(&stream.after_stream), q4(&stream.after_renumbering));
    // Professors of the stream work for all departments.
    assert!(q4(&stream.after_stream).0 > 10);
    for said in [
        "merges meanwhile",
        "numbered anew",
        "B/triple",
        "first",
        "q7",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn what_is_inserted_and_deleted_is_told_by_tenths() {
    let report = report(Scenario::Churn, |options| options.on_lubm = true);
    let text = report.to_string();
    assert_eq!(report.churn.len(), 2);
    for (churn, universities) in report.churn.iter().zip([0, 1]) {
        assert_eq!(churn.universities, universities);
        assert_eq!((churn.transactions, churn.live), (400, 48));
        assert_eq!(churn.tenths.len(), 10);
        let is_known = |tenth: &jindou_bench::merges::Tenth| {
            let peak = tenth.peak;
            peak.disk_bytes > 0 && peak.memory.all_bytes > 0 && tenth.longest_ms > 0.0
        };
        assert!(churn.tenths.iter().all(is_known), "{text}");
        // Each live transaction has a vertex and a literal of its own.
        let last = churn.tenths[9].peak;
        assert!(last.held_bytes > 0 && last.terms >= 2 * 48, "{text}");
        assert!(churn.early_and_late().is_some());
    }
    for said in ["an empty store", "LUBM, 1 universities", "tenth", "ratio"] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn order_by_of_appended_literals_is_that_of_a_fresh_load() {
    let report = report(Scenario::Order, |_| {});
    let text = report.to_string();
    let order = report.order.unwrap();
    assert_eq!((order.literals, order.appended), (600, 60));
    let stores = order.stores.iter();
    let stores: Vec<_> = stores.map(|s| (s.texts.as_str(), s.merges)).collect();
    let expected = [("between", 0), ("between", 4), ("behind", 0), ("behind", 4)];
    assert_eq!(stores, expected);
    for store in &order.stores {
        let rows: Vec<u64> = store.queries.iter().map(|query| query.rows).collect();
        assert_eq!(rows, [10, 10, 600, 600, 600, 600, 1, 12, 600]);
    }
    assert!(text.contains("min-each"), "{text}");
}

#[test]
fn vertices_that_are_typed_later_answer_as_a_fresh_load_does() {
    let report = report(Scenario::Birth, |_| {});
    let text = report.to_string();
    let birth = report.birth.unwrap();
    assert_eq!(birth.triples, TRIPLES);
    assert!(birth.transactions > TRIPLES / 1000 && birth.has_settled);
    assert!(birth.typed.disk_bytes > 0 && birth.fresh.disk_bytes > 0);
    assert_eq!(birth.queries.len(), 7);
    assert!(text.contains("typed later"), "{text}");
}
