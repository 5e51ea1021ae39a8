//! Is the report of CityBench complete, and what is said where the data are not?

use std::fs;
use std::path::Path;

use jindou_bench::BenchError;
use jindou_bench::citybench::{Options, measure};

const QUERY: &str = "\
select ?obs ?v from stream <http://city/events#Traffic1> [range 3000ms step 1s]
FROM <http://127.0.0.1:9000/RDF/Sensors.rdf>
where { ?sensor a <http://city/Sensor> . { ?obs <http://city/by> ?sensor . ?obs <http://city/value> ?v . } }";

/// Two queries over one stream each, of which one is of other tuples than are stored.
fn city(folder: &Path) {
    for part in ["queries/csparql", "streams", "static"] {
        fs::create_dir_all(folder.join(part)).unwrap();
    }
    let texts = folder.join("queries/csparql");
    fs::write(texts.join("Q10.txt"), QUERY).unwrap();
    let other = QUERY.replace("Traffic1", "Traffic2");
    fs::write(texts.join("Q2.txt"), other).unwrap();
    fs::write(texts.join("README"), "no query").unwrap();
    let stored = "<http://city/s1> a <http://city/Sensor> .";
    fs::write(folder.join("static/Sensors.n3"), stored).unwrap();
    for sensor in 1..=2 {
        let lines = (0..4).map(|second| {
            let time_ms = 1_406_880_000_000_u64 + second * 1000;
            let observation = format!("<http://city/o{sensor}_{second}>");
            format!(
                "{time_ms}\t{observation} <http://city/by> <http://city/s{sensor}> .\n\
                 {time_ms}\t{observation} <http://city/value> \"{second}\" .\n"
            )
        });
        let lines: String = lines.collect();
        let packed = zstd::encode_all(lines.as_bytes(), 0).unwrap();
        let file = format!("streams/Traffic{sensor}.tnt.zst");
        fs::write(folder.join(file), packed).unwrap();
    }
}

#[test]
fn every_query_is_evaluated_at_each_instant_though_the_data_are_short() {
    let folder = tempfile::tempdir().unwrap();
    city(folder.path());
    let mut options = Options::new(folder.path());
    options.seconds = 20;
    let report = measure(&options, |_| {}).unwrap();
    assert_eq!((report.stored, report.streams), (1, 2));
    // Four tuples a second, of both streams.
    assert_eq!(report.tuples, 80);
    let names: Vec<&str> = report.queries.iter().map(|query| &*query.name).collect();
    assert_eq!(names, ["Q2", "Q10"]);
    for query in &report.queries {
        assert_eq!((query.instants, query.failures), (20, 0), "{query:?}");
    }
    // After the first two instants, three observations are in each window.
    assert_eq!(report.queries[1].rows, 1 + 2 + 18 * 3);
    assert_eq!(report.queries[0].rows, 0);
    let mean = report.geometric_mean_us().unwrap();
    assert!(mean > 0.0);
    let text = report.to_string();
    assert!(text.contains("geometric mean of the medians") && text.contains("Q10"));
    let json = serde_json::to_string(&report).unwrap();
    assert!(json.contains("\"median_us\""));

    options.only = Some("Q10".to_owned());
    let report = measure(&options, |_| {}).unwrap();
    assert_eq!((report.queries.len(), report.streams), (1, 1));
}

#[test]
fn what_a_folder_lacks_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let absent = |path: &str, options: &Options| {
        let error = measure(options, |_| {}).unwrap_err();
        assert!(matches!(error, BenchError::NoData { .. }), "{error}");
        assert!(error.to_string().contains(path), "{error}");
    };
    absent("nowhere", &Options::new(folder.path().join("nowhere")));
    let mut options = Options::new(folder.path());
    absent("queries/csparql", &options);
    city(folder.path());
    fs::remove_file(folder.path().join("streams/Traffic2.tnt.zst")).unwrap();
    absent("Traffic2", &options);
    options.only = Some("Q10".to_owned());
    fs::remove_file(folder.path().join("static/Sensors.n3")).unwrap();
    absent("Sensors", &options);
    options.only = Some("Q3".to_owned());
    let error = measure(&options, |_| {}).unwrap_err();
    assert_eq!(error.to_string(), "there is no query Q3; there are Q2, Q10");
}
