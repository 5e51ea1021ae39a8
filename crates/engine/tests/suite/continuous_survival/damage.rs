//! Files of the log of streams that are not as they were written.

use std::fs;
use std::path::Path;

use jindou_engine::{Database, EngineError};

use super::{config, durable, open, push, results};

fn store(location: &Path) -> Vec<String> {
    let database = open(location);
    database.create_stream("s", durable("http://e/s")).unwrap();
    let text = "SELECT ?x FROM STREAM <http://e/s> [RANGE 1s STEP 500ms] WHERE { ?x ?p ?y }";
    database.register("q", text).unwrap();
    for number in 0..10 {
        let line = format!(
            "{}\t<http://e/{number}> <http://e/p> \"a text\" .\n",
            number * 200
        );
        push(&database, "s", &line);
    }
    results(&database, "q", 0)
}

fn refused(location: &Path) -> String {
    let opened = Database::open(location, config());
    match opened.err() {
        Some(error @ EngineError::Corrupt { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn damage_is_named_with_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let location = folder.path().join("store");
    let seen = store(&location);
    for name in ["log-1-1.jnd", "state-1.jnd"] {
        let path = location.join("streams").join(name);
        let whole = fs::read(&path).unwrap();
        let used = whole.iter().rposition(|byte| *byte != 0).unwrap();
        for part in 1..20 {
            let mut damaged = whole.clone();
            let place = used * part / 20;
            damaged[place] ^= 0x10;
            if name.starts_with("log") && (512..5000).contains(&place) {
                // Of the two promises of its length one is enough.
                continue;
            }
            fs::write(&path, &damaged).unwrap();
            let error = refused(&location);
            assert!(error.contains(name), "{error}");
            assert!(Database::verify(&location).is_err());
        }
        fs::write(&path, &whole[..used / 2]).unwrap();
        assert!(refused(&location).contains(name));
        fs::remove_file(&path).unwrap();
        assert!(Database::open(&location, config()).is_err());
        fs::write(&path, &whole).unwrap();
    }
    assert_eq!(results(&open(&location), "q", 0), seen);
}

#[test]
fn what_a_crash_left_at_the_end_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let location = folder.path().join("store");
    let seen = store(&location);
    let path = location.join("streams/log-1-1.jnd");
    let mut torn = fs::read(&path).unwrap();
    let used = torn.iter().rposition(|byte| *byte != 0).unwrap();
    let behind = used + 16 - used % 8;
    torn[behind..behind + 100].fill(0x5a);
    fs::write(&path, &torn).unwrap();
    Database::verify(&location).unwrap();
    assert_eq!(results(&open(&location), "q", 0), seen);
    push(
        &open(&location),
        "s",
        "3000\t<http://e/a> <http://e/p> \"a text\" .\n",
    );
}
