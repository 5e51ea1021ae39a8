//! Is the report of counts and closures complete and right?

use jindou_bench::counts::{Options, measure};
use jindou_bench::figure::Figure;

#[test]
fn every_count_is_the_same_with_changes_and_once_they_are_merged() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        universities: 1,
        runs: 1,
        folder: folder.path().to_owned(),
        sets: folder.path().join("absent"),
        ..Options::default()
    };
    let report = measure(&options, |_| ()).unwrap();
    assert!(report.is_right(), "{report}");
    assert_eq!(report.absent.len(), 2, "WatDiv and SSB");
    for query in &report.queries {
        assert!(query.rows.is_some_and(|rows| rows > 0), "{report}");
        for figure in [&query.first, &query.again, &query.changed, &query.merged] {
            assert!(matches!(figure, Figure::Timed { .. }), "{report}");
        }
    }
}
