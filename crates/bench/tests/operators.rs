//! Is the report of operators complete, and does it tell what is absent and what is wrong?

use std::path::PathBuf;
use std::time::Duration;

use jindou_bench::BenchError;
use jindou_bench::figure::Figure;
use jindou_bench::operators::{
    Answer, DataSet, Engine, Family, Jindou, OperatorReport, Options, held, measure,
};

fn small(folder: &std::path::Path) -> Options {
    Options {
        universities: 1,
        folder: folder.to_owned(),
        sets: folder.join("none"),
        load_threads: 2,
        budget: Duration::from_millis(1),
        ..Options::default()
    }
}

#[test]
fn a_report_has_every_query_of_the_data_that_is_there_and_names_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let report = measure(
        &small(folder.path()),
        &mut [&mut Jindou::new(Some(1))],
        |_| {},
    )
    .unwrap();
    let lubm = held().filter(|query| query.data == DataSet::Lubm).count();
    assert_eq!(report.queries.len(), lubm);
    assert!(report.is_right(), "{report}");
    for query in &report.queries {
        assert!(
            matches!(query.engines[..], [Figure::Timed { .. }]),
            "{query:?}"
        );
    }
    let skipped: Vec<DataSet> = report.skipped.iter().map(|skipped| skipped.data).collect();
    assert_eq!(skipped, [DataSet::Watdiv, DataSet::Ssb]);
    let text = report.to_string();
    assert!(text.contains("SKIPPED: watdiv"), "{text}");
    assert!(text.contains("NOT CHECKED"), "{text}");
    assert!(!text.contains("ratio"), "{text}");

    let json = serde_json::to_string(&report).unwrap();
    let read: OperatorReport = serde_json::from_str(&json).unwrap();
    assert_eq!(read.record(), report.record());
}

#[test]
fn families_and_names_narrow_the_choice() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        families: vec![Family::Scan, Family::Path],
        only: Some("count".to_owned()),
        ..small(folder.path())
    };
    let report = measure(&options, &mut [&mut Jindou::new(None)], |_| {}).unwrap();
    assert_eq!(report.queries.len(), 7);
    assert!(report.skipped.is_empty());
}

/// Ours, but one row short, or given up, or refusing.
struct Flawed {
    engine: Jindou,
    flaw: Flaw,
}

enum Flaw {
    RowShort,
    GivesUp,
    Refuses,
}

impl Engine for Flawed {
    fn name(&self) -> &'static str {
        "flawed"
    }

    fn load(&mut self, files: &[PathBuf], threads: usize) -> Result<u64, BenchError> {
        self.engine.load(files, threads)
    }

    fn answer(&mut self, text: &str, limit: Duration) -> Result<Option<Answer>, BenchError> {
        let answer = self.engine.answer(text, limit)?;
        match self.flaw {
            Flaw::RowShort => Ok(answer.map(|answer| Answer {
                rows: answer.rows - 1,
                ..answer
            })),
            Flaw::GivesUp => Ok(None),
            Flaw::Refuses => Err(BenchError::Peer {
                reason: "not today".to_owned(),
            }),
        }
    }

    fn run(&mut self, text: &str, limit: Duration) -> Result<Option<()>, BenchError> {
        self.engine.run(text, limit)
    }
}

fn beside(flaw: Flaw) -> OperatorReport {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        only: Some("count ?p?".to_owned()),
        ..small(folder.path())
    };
    let mut ours = Jindou::new(Some(1));
    let mut other = Flawed {
        engine: Jindou::new(Some(1)),
        flaw,
    };
    measure(&options, &mut [&mut ours, &mut other], |_| {}).unwrap()
}

#[test]
fn an_answer_that_differs_is_wrong_loudly() {
    let report = beside(Flaw::RowShort);
    assert!(!report.is_right());
    let text = report.to_string();
    assert!(
        text.contains("WRONG: count ?p?: flawed has 0 rows, not 1"),
        "{text}"
    );
}

#[test]
fn an_engine_that_gives_up_bounds_the_ratio_and_is_not_wrong() {
    let report = beside(Flaw::GivesUp);
    assert!(report.is_right());
    assert!(report.queries[0].ratio().unwrap().at_least);
    let text = report.to_string();
    assert!(text.contains("> 20 s"), "{text}");
}

#[test]
fn an_engine_that_fails_is_told_by_name() {
    let report = beside(Flaw::Refuses);
    assert!(!report.is_right());
    assert!(report.to_string().contains("not today"));
}
