//! Which W3C suites are there, and which of them are not run?
//!
//! The names of all suites of the archives are recorded, so that the table of their results cannot
//! lack one; those about other things than this database does are recorded as skipped.

use jindou_conformance::data::{read_tar_zstd, require};
use jindou_conformance::manifest;
use jindou_conformance::record::{Counts, record, record_suites};
use std::collections::BTreeSet;

const ARCHIVES: [(&str, &str); 2] = [
    ("w3c/sparql10-sparql11.tar.zst", "sparql/"),
    ("w3c/rdf11.tar.zst", "rdf/"),
];

const ENTAILS: &str = "asks what follows from statements; queries here match what is stated";

/// Suites that are not run, and why.
const SKIPPED: [(&str, &str, &str); 3] = [
    (
        "SPARQL 1.1 Entailment Regimes",
        "sparql11/entailment",
        ENTAILS,
    ),
    ("RDF 1.1 Semantics", "rdf11/rdf-mt", ENTAILS),
    ("RDF 1.1 Semantics", "rdf11/rdf-mt/az-tests", ENTAILS),
];

#[test]
fn every_suite_of_the_archives_is_on_record() {
    let mut suites = BTreeSet::new();
    for (archive, prefix) in ARCHIVES {
        let Some(path) = require("the list of W3C suites", archive) else {
            return;
        };
        let files = read_tar_zstd(&path).expect("the archive unpacks");
        for path in files.keys() {
            let suite = path
                .strip_prefix(prefix)
                .and_then(|path| path.strip_suffix("/manifest.ttl"));
            // A manifest further up lists those below it.
            suites.extend(suite.filter(|s| s.contains('/')).map(ToOwned::to_owned));
        }
        for (group, suite, reason) in SKIPPED {
            let path = format!("{prefix}{suite}/manifest.ttl");
            if !files.contains_key(&path) {
                continue;
            }
            let tests = manifest::tests(&files, &path).expect("the manifest can be read");
            let mut counts = Counts::default();
            tests.iter().for_each(|_| counts.skip(reason));
            record(group, suite, &counts);
        }
    }
    println!("{} suites", suites.len());
    assert!(suites.len() > 60, "only {} suites", suites.len());
    record_suites(&suites);
}
