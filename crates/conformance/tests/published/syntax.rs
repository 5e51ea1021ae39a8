//! Does the parser accept and refuse what the W3C suites of SPARQL 1.0, 1.1 and 1.2 ask for? Their
//! tests of syntax, and the texts of their tests of evaluation, which are grammatical.

use jindou_conformance::data::{read_tar_zstd, require};
use jindou_conformance::manifest::{self, BASE};
use jindou_syntax::{Options, parse_query, parse_update};

/// Archives, and the fewest tests that each has.
const ARCHIVES: [(&str, usize); 2] = [
    ("w3c/sparql10-sparql11.tar.zst", 900),
    ("w3c/sparql12.tar.zst", 200),
];

#[test]
fn the_syntax_suites_are_exact() {
    for (archive, least) in ARCHIVES {
        let Some(path) = require("W3C syntax suites", archive) else {
            return;
        };
        let files = read_tar_zstd(&path).expect("the archive unpacks");
        let (mut accepted, mut refused) = (0, 0);
        let mut different = Vec::new();
        let manifests = files.keys().filter(|path| path.ends_with("/manifest.ttl"));
        for manifest in manifests.filter(|path| path.starts_with("sparql/")) {
            let Ok(tests) = manifest::tests(&files, manifest) else {
                panic!("{manifest} cannot be read");
            };
            for test in tests {
                let is_update = test.query.ends_with(".ru");
                if !is_update && !test.query.ends_with(".rq") {
                    continue;
                }
                let Ok(text) = std::str::from_utf8(&files[&test.query]) else {
                    panic!("{} is not UTF-8", test.query);
                };
                let base = format!("{BASE}{}", test.query);
                let options = Options {
                    base: Some(&base),
                    ..Options::default()
                };
                let parsed = match is_update {
                    true => parse_update(text, options).map(drop),
                    false => parse_query(text, options).map(drop),
                };
                match (&parsed, test.kind.contains("Negative")) {
                    (Ok(()), false) => accepted += 1,
                    (Err(_), true) => refused += 1,
                    _ => different.push((test.iri, parsed)),
                }
            }
        }
        println!("{archive}: {accepted} accepted, {refused} refused");
        assert!(different.is_empty(), "{different:#?}");
        assert!(accepted + refused >= least, "{accepted} {refused}");
    }
}
