//! Is the report of named graphs complete and right?

use std::path::Path;
use std::time::Duration;

use jindou_bench::figure::Figure;
use jindou_bench::graphs::{Form, GraphReport, Layout, Options, measure};

/// Triples of one university with seed 0.
const TRIPLES: u64 = 100_543;

/// One light query, which is answered in any layout.
fn quick(folder: &Path) -> Options {
    Options {
        runs: 1,
        limit: Duration::from_secs(600),
        only: Some("q5".to_owned()),
        load_threads: 2,
        folder: folder.to_owned(),
        ..Options::new(1)
    }
}

#[test]
fn every_layout_is_loaded_and_asked_in_each_of_its_forms() {
    let folder = tempfile::tempdir().unwrap();
    let mut steps = Vec::new();
    let report = measure(&quick(folder.path()), |step| steps.push(step.to_owned())).unwrap();
    assert!(report.is_right(), "{report}");

    let layouts: Vec<_> = report
        .layouts
        .iter()
        .map(|held| (held.layout, held.graphs, held.quads))
        .collect();
    assert_eq!(
        layouts,
        [
            (Layout::DefaultGraph, 0, TRIPLES),
            (Layout::OneGraph, 1, TRIPLES),
            (Layout::GraphPerUniversity, 1, TRIPLES),
            (Layout::RandomGraph, 1_000, TRIPLES),
            (Layout::RepeatedInGraphs, 200, 20 * TRIPLES),
        ]
    );
    assert!(report.layouts.iter().all(|held| held.held_bytes > 0));

    let rows: Vec<_> = report
        .queries
        .iter()
        .map(|query| {
            let rows = query.forms.iter().map(|form| (form.form, form.rows));
            (query.layout, rows.collect::<Vec<_>>())
        })
        .collect();
    let of = |forms: &[Form]| -> Vec<_> { forms.iter().map(|&form| (form, Some(10))).collect() };
    let [default, graph, any] = [Form::DefaultGraph, Form::Graph, Form::AnyGraph];
    assert_eq!(
        rows[..3],
        [
            (Layout::OneGraph, of(&[default, graph, any, Form::From])),
            (
                Layout::GraphPerUniversity,
                of(&[default, graph, any, Form::MergeOfAll, Form::Union])
            ),
            (
                Layout::RandomGraph,
                of(&[default, Form::AnyGraphEach, Form::MergeOfAll, Form::Union])
            ),
        ]
    );
    let (layout, repeated) = &rows[3];
    assert_eq!(*layout, Layout::RepeatedInGraphs);
    assert_eq!(repeated[2], (Form::AnyGraph, Some(200)));
    assert_eq!(repeated[3], (Form::MergeOfAll, Some(10)));

    assert!(steps.iter().any(|step| step == "random-graph: q5"));
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 0, "generated files are removed");

    let json = serde_json::to_string(&report).unwrap();
    let again: GraphReport = serde_json::from_str(&json).unwrap();
    assert_eq!(again.to_string(), report.to_string());
    let text = report.to_string();
    for expected in ["repeated-in-graphs", "GRAPH ?g each", "B/quad", "geometric"] {
        assert!(text.contains(expected), "{expected} is not in:\n{text}");
    }
}

#[test]
fn a_query_that_is_cut_is_not_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        limit: Duration::ZERO,
        layouts: vec![Layout::OneGraph],
        ..quick(folder.path())
    };
    let report = measure(&options, |_| ()).unwrap();
    assert!(report.is_right(), "{report}");
    for form in &report.queries[0].forms {
        assert_eq!(form.rows, None);
        assert!(matches!(form.figure, Figure::GaveUp { .. }), "{form:?}");
    }
}

#[test]
#[cfg(feature = "peers")]
fn both_engines_agree_on_a_named_graph() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("figures.json");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_bench-peers"))
        .args(["graphs", "--universities", "1", "--runs", "1"])
        .args(["--only", "q5", "--json"])
        .arg(&json)
        .arg("--data")
        .arg(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let figures = std::fs::read_to_string(json).unwrap();
    let figures: serde_json::Value = serde_json::from_str(&figures).unwrap();
    assert_eq!(figures["quads"], TRIPLES);
    for (place, form) in ["graph", "any-graph"].iter().enumerate() {
        let query = &figures["queries"][place];
        assert_eq!(query["form"], *form);
        assert_eq!(query["rows"], 10);
        for engine in ["jindou", "oxigraph"] {
            assert_eq!(query[engine]["outcome"], "timed");
        }
    }
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("ratio") && text.contains("GRAPH ?g"),
        "{text}"
    );
}
