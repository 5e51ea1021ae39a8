//! Does the engine pass the W3C SPARQL 1.1 update evaluation suites, wherever the data lies?
//!
//! Each test is run with its data in the base, in the changes, and in both with tombstones; what
//! the request leaves is compared at once, and again after it was merged: at once, or first half of
//! the predicates and then the others.

use jindou_conformance::contents::{as_data, graphs, quads, row_of};
use jindou_conformance::data::{read_tar_zstd, require};
use jindou_conformance::engines::{guarded, load_quads_with, settings};
use jindou_conformance::isomorphism::isomorphic;
use jindou_conformance::manifest::BASE;
use jindou_conformance::record::{Counts, record};
use jindou_conformance::update_differential::half;
use jindou_conformance::update_suite::{Holdings, UpdateTest, update_tests};
use jindou_engine::{Config, Database, EngineError, MergePolicy, UpdateOptions};
use oxrdf::{Literal, NamedNode, NamedOrBlankNode, Quad, Term};
use std::collections::BTreeMap;

const SUITES: &[&str] = &[
    "add",
    "basic-update",
    "clear",
    "copy",
    "delete",
    "delete-data",
    "delete-insert",
    "delete-where",
    "drop",
    "move",
    "update-silent",
];

/// Where the data of a test lies before its request.
#[derive(Debug, Clone, Copy)]
enum Placement {
    /// In the base, by a bulk load.
    Loaded,
    /// In the changes, by INSERT DATA.
    Inserted,
    /// In the base, by INSERT DATA and a merge.
    Merged,
    /// Each second quad in the base, the others in the changes, with other quads of the base
    /// deleted again.
    Mixed,
    /// As changes upon an empty base, inserted, deleted, and inserted again.
    Reinserted,
    /// One quad after the other, each time with half of the predicates merged.
    MergedInParts,
}

const PLACEMENTS: &[Placement] = &[
    Placement::Loaded,
    Placement::Inserted,
    Placement::Merged,
    Placement::Mixed,
    Placement::Reinserted,
    Placement::MergedInParts,
];

type Files = BTreeMap<String, Vec<u8>>;

fn config() -> Config {
    let mut config = settings();
    config.merge = MergePolicy::never();
    config.threads = 1;
    config
}

fn insert(database: &Database, quads: &[Quad]) -> Result<(), EngineError> {
    database
        .update(&format!("INSERT DATA {{\n{}}}", as_data(quads)))
        .map(drop)
}

/// Deletes what a test without blank nodes holds, and puts it back.
fn delete_and_insert(database: &Database, quads: &[Quad]) -> Result<(), EngineError> {
    database.update(&format!("DELETE DATA {{\n{}}}", as_data(quads)))?;
    insert(database, quads)
}

fn has_blank(quad: &Quad) -> bool {
    matches!(quad.subject, NamedOrBlankNode::BlankNode(_))
        || matches!(quad.object, Term::BlankNode(_))
}

/// The same quads with another literal as object, which are no quads of any test.
fn strangers(quads: &[Quad]) -> Vec<Quad> {
    let stranger = |quad: &Quad| Quad {
        object: Literal::new_simple_literal("a stranger").into(),
        ..quad.clone()
    };
    quads.iter().map(stranger).collect()
}

fn place(quads: &[Quad], placement: Placement) -> Result<Database, EngineError> {
    match placement {
        Placement::Loaded => load_quads_with(quads, config()),
        Placement::Inserted => {
            let database = Database::with_config(config());
            insert(&database, quads)?;
            Ok(database)
        }
        Placement::Merged => {
            let database = Database::with_config(config());
            insert(&database, quads)?;
            database.compact()?;
            Ok(database)
        }
        Placement::Mixed => {
            // A blank node's quads stay together: it has one label in one request only.
            let (mut base, mut changes) = (Vec::new(), Vec::new());
            for (index, quad) in quads.iter().enumerate() {
                let is_base = index % 2 == 0 || has_blank(quad);
                let part = if is_base { &mut base } else { &mut changes };
                part.push(quad.clone());
            }
            base.extend(strangers(quads));
            let database = load_quads_with(&base, config())?;
            insert(&database, &changes)?;
            for pattern in ["?s ?p 'a stranger'", "GRAPH ?g { ?s ?p 'a stranger' }"] {
                database.update(&format!("DELETE WHERE {{ {pattern} }}"))?;
            }
            Ok(database)
        }
        Placement::Reinserted => {
            let (blank, ground): (Vec<Quad>, Vec<Quad>) =
                quads.iter().cloned().partition(has_blank);
            let database = Database::with_config(config());
            insert(&database, &blank)?;
            insert(&database, &ground)?;
            delete_and_insert(&database, &ground)?;
            database.compact()?;
            delete_and_insert(&database, &ground)?;
            Ok(database)
        }
        Placement::MergedInParts => {
            let (blank, ground): (Vec<Quad>, Vec<Quad>) =
                quads.iter().cloned().partition(has_blank);
            let database = Database::with_config(config());
            insert(&database, &blank)?;
            for (step, quad) in (0..).zip(ground.chunks(1)) {
                insert(&database, quad)?;
                database.compact_some(&half(step))?;
            }
            Ok(database)
        }
    }
}

fn differences(database: &Database, expected: &Holdings) -> Result<(), String> {
    let actual = quads(database).map_err(|error| error.to_string())?;
    let rows: Vec<_> = expected.quads.iter().map(row_of).collect();
    if !isomorphic(&actual, &rows, false) {
        return Err(format!(
            "other quads\nexpected:\n{}got:\n{}",
            as_data(&expected.quads),
            actual
                .iter()
                .map(|row| format!("{row:?}\n"))
                .collect::<String>()
        ));
    }
    let actual = graphs(database).map_err(|error| error.to_string())?;
    if actual != expected.graphs {
        return Err(format!(
            "other graphs: expected {:?}, got {actual:?}",
            expected.graphs
        ));
    }
    Ok(())
}

fn run(files: &Files, test: &UpdateTest, placement: Placement) -> Result<(), String> {
    let told = |error: EngineError| error.to_string();
    let request = files.get(&test.request).ok_or("the request is absent")?;
    let request = std::str::from_utf8(request).map_err(|error| error.to_string())?;
    let database = place(&test.before.quads, placement).map_err(told)?;
    differences(&database, &test.before).map_err(|reason| format!("before: {reason}"))?;
    let options = UpdateOptions {
        base: Some(NamedNode::new_unchecked(format!("{BASE}{}", test.request))),
        ..UpdateOptions::default()
    };
    database
        .update_with(request, options)
        .map_err(|error| format!("{error}\n{request}"))?;
    differences(&database, &test.after).map_err(|reason| format!("{reason}\n{request}"))?;
    if matches!(placement, Placement::Reinserted | Placement::MergedInParts) {
        database.compact_some(&half(0)).map_err(told)?;
        differences(&database, &test.after)
            .map_err(|reason| format!("after half of the merge: {reason}\n{request}"))?;
    }
    database.compact().map_err(told)?;
    differences(&database, &test.after)
        .map_err(|reason| format!("after the merge: {reason}\n{request}"))
}

#[test]
fn the_update_evaluation_suites_pass() {
    let Some(archive) = require("W3C SPARQL suites", "w3c/sparql10-sparql11.tar.zst") else {
        return;
    };
    let files = read_tar_zstd(&archive).expect("the archive unpacks");
    let mut failures = Vec::new();
    let mut total = 0;
    for suite in SUITES {
        let path = format!("sparql/sparql11/{suite}/manifest.ttl");
        let tests = update_tests(&files, &path).expect("the manifest can be read");
        assert!(!tests.is_empty(), "{suite} has no tests");
        let mut counts = Counts::default();
        for test in &tests {
            let before = failures.len();
            for placement in PLACEMENTS {
                let outcome = guarded(|| run(&files, test, *placement)).and_then(|result| result);
                if let Err(reason) = outcome {
                    failures.push(format!(
                        "{} ({}), {placement:?}: {reason}",
                        test.iri, test.name
                    ));
                }
            }
            if failures.len() == before {
                counts.passed += 1;
            } else {
                counts.failed += 1;
            }
        }
        println!(
            "{suite:<20}{:>4} passed{:>4} failed",
            counts.passed, counts.failed
        );
        total += counts.passed;
        record(
            "SPARQL 1.1 update evaluation",
            &format!("sparql11/{suite}"),
            &counts,
        );
    }
    println!("{total} tests passed, each in {} ways", PLACEMENTS.len());
    assert!(
        failures.is_empty(),
        "{} failed:\n{}",
        failures.len(),
        failures.join("\n")
    );
}
