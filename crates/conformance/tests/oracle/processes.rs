//! Do real server processes that are nodes of a cluster answer as one database in this process does?
//!
//! `cargo xtask test --cluster` runs this with the program that `JINDOU_BIN` names. Each data set is asked of 1, 2, 3
//! and 5 servers: on one host, whose memory they map, and over TCP, each at a host of its own. `JINDOU_SEED` sets the
//! first seed, `JINDOU_CASES` the number of random data sets and sequences of updates.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};

use jindou_conformance::answer::{Answer, row_text};
use jindou_conformance::cases::seeds;
use jindou_conformance::contents::{as_data, quads};
use jindou_conformance::data::require;
use jindou_conformance::differential::differ;
use jindou_conformance::engines::{ask, guarded};
use jindou_conformance::isomorphism::isomorphic;
use jindou_conformance::processes::{Cluster, Use, Way, program};
use jindou_conformance::random::Random;
use jindou_conformance::random_data::{Profile, dataset};
use jindou_conformance::random_query::{bold_query, query};
use jindou_conformance::random_update::{Step, sequence};
use jindou_engine::ingest::{Progress, Source};
use jindou_engine::{Config, Database, LoadOptions};
use oxrdf::Quad;
use tempfile::TempDir;

/// Random data sets, and sequences of updates.
const DEFAULT_CASES: u64 = 6;
/// Random queries of a data set.
const QUERIES: usize = 150;
/// Updates of a sequence, at most.
const UPDATES: usize = 20;
const COUNTS: [usize; 4] = [1, 2, 3, 5];

/// A folder with a store of some sources.
fn store(sources: Vec<Source>) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let location = folder.path().join("store");
    let (options, progress) = (LoadOptions::default(), Progress::default());
    Database::create(&location, sources, &options, &progress, Config::default()).expect("it loads");
    folder
}

fn of_quads(quads: &[Quad]) -> Source {
    let lines: String = quads.iter().map(|quad| format!("{quad} .\n")).collect();
    Source::bytes("data.nq", lines.into_bytes())
}

/// The store of a folder in this process.
fn one(folder: &Path) -> Database {
    Database::open_to_read(&folder.join("store"), Config::default()).expect("it opens")
}

/// Calls `check` with each cluster that serves a store: each number of servers, over mapped memory and over TCP.
fn on_servers(
    program: &Path,
    (folder, is_for): (&Path, Use),
    mut check: impl FnMut(&Cluster, &str),
) {
    for way in [Way::Mapped, Way::Hosts] {
        for count in COUNTS {
            match Cluster::start(program, (folder, is_for), count, way) {
                Ok(cluster) => check(&cluster, &format!("{count} servers, {way:?}")),
                Err(why) => {
                    println!("SKIPPED: servers at hosts of their own ({why})");
                    break;
                }
            }
        }
    }
}

fn sorted(answer: &Answer) -> Vec<String> {
    let Answer::Solutions(table) = answer else {
        panic!("{} of a SELECT", answer.kind());
    };
    let mut rows: Vec<String> = table.rows.iter().map(|row| row_text(row)).collect();
    rows.sort_unstable();
    rows
}

/// Asks servers all queries of a published data set, each at one node after the other.
fn published(data: &Path, queries: &[PathBuf]) {
    let Some(program) = program() else { return };
    let folder = store(vec![Source::path(data)]);
    let one = one(folder.path());
    let read = |path: &PathBuf| fs::read_to_string(path).expect("the query can be read");
    let texts: Vec<String> = queries.iter().map(read).collect();
    assert!(!texts.is_empty(), "{}: no queries", data.display());
    let expected = texts.iter().map(|text| ask(&one, text, None));
    let expected: Vec<_> = expected
        .map(|answer| sorted(&answer.expect("it is answered")))
        .collect();
    let mut asked = 0;
    on_servers(&program, (folder.path(), Use::Read), |cluster, servers| {
        for (path, (text, expected)) in queries.iter().zip(texts.iter().zip(&expected)) {
            let node = asked % cluster.count();
            asked += 1;
            let answer = cluster.ask(node, text);
            let answer = answer.unwrap_or_else(|said| panic!("{servers}: {path:?}: {said}"));
            let is_same = sorted(&answer) == *expected;
            assert!(is_same, "{servers}, node {node}: {}", path.display());
        }
    });
    println!("{asked} answers of servers are those of one database");
}

/// The queries of a folder, in the order of their names.
fn queries_in(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).expect("the folder can be read");
    let paths = files.map(|file| file.expect("the folder can be read").path());
    let is_query = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(prefix) && name.ends_with(".rq")
    };
    let mut paths: Vec<PathBuf> = paths.filter(is_query).collect();
    paths.sort_unstable();
    paths
}

#[test]
fn lubm_is_answered_by_servers_as_by_one_database() {
    if let Some(folder) = require("LUBM 1", "lubm") {
        let queries = queries_in(&folder, "lubm_q");
        published(&folder.join("lubm-1.nt.zst"), &queries);
    }
}

#[test]
fn watdiv_is_answered_by_servers_as_by_one_database() {
    if let Some(folder) = require("WatDiv", "watdiv") {
        let queries = queries_in(&folder.join("queries"), "");
        published(&folder.join("watdiv.1.nt.zst"), &queries);
    }
}

#[test]
fn ssb_is_answered_by_servers_as_by_one_database() {
    if let Some(folder) = require("SSB", "ssb") {
        let queries = queries_in(&folder.join("queries_sparql"), "");
        published(&folder.join("ssb.sf0.01.nt.zst"), &queries);
    }
}

#[test]
fn random_queries_are_answered_by_servers_as_by_one_database() {
    let Some(program) = program() else { return };
    let (mut answered, mut refused) = (0, 0);
    for seed in seeds(DEFAULT_CASES) {
        let mut random = Random::new(seed);
        let profile = Profile {
            blanks: false,
            other_spellings: false,
            graphs: true,
            ..Profile::random(&mut random)
        };
        let folder = store(vec![of_quads(&dataset(&mut random, profile))]);
        let one = one(folder.path());
        let queries = (0..QUERIES).map(|number| match number % 2 {
            0 => query(&mut random, profile),
            _ => bold_query(&mut random, profile),
        });
        let queries: Vec<_> = queries
            .filter_map(|query| {
                let whole = guarded(|| ask(&one, &query.unordered().to_string(), None));
                // What makes too much of a query is a matter of other tests.
                Some((query, whole.ok()?))
            })
            .collect();
        on_servers(&program, (folder.path(), Use::Read), |cluster, servers| {
            for (number, (query, whole)) in queries.iter().enumerate() {
                let node = number % cluster.count();
                let found = cluster.ask(node, &query.to_string());
                let reason = match (whole, &found) {
                    (Ok(whole), Ok(found)) => differ(query, whole, found),
                    (Ok(_), Err(said)) => Some(said.clone()),
                    (Err(error), Ok(_)) => Some(format!("an answer, and not: {error}")),
                    (Err(_), Err(_)) => {
                        refused += 1;
                        continue;
                    }
                };
                answered += 1;
                if let Some(reason) = reason {
                    panic!("seed {seed}, {servers}, node {node}: {query}\n{reason}");
                }
            }
        });
    }
    println!("{answered} queries were answered alike, {refused} refused by all");
    assert!(answered > 0);
}

/// The quads that a node has, as rows.
fn contents(cluster: &Cluster, node: usize) -> Vec<Vec<Option<oxrdf::Term>>> {
    let queries = [
        "SELECT ?s ?p ?o ?g { ?s ?p ?o }",
        "SELECT ?s ?p ?o ?g { GRAPH ?g { ?s ?p ?o } }",
    ];
    let rows = queries.map(|query| match cluster.ask(node, query) {
        Ok(Answer::Solutions(table)) => table.rows,
        other => panic!("node {node}: {other:?}"),
    });
    rows.concat()
}

#[test]
fn random_updates_at_any_server_leave_all_with_what_one_database_has() {
    let Some(program) = program() else { return };
    let (mut made, mut refused) = (0, 0);
    for seed in seeds(DEFAULT_CASES) {
        let sequence = sequence(seed);
        let updates = sequence.steps.iter().filter_map(|step| match step {
            Step::Update(text) => Some(text.clone()),
            Step::Load(quads) => Some(format!("INSERT DATA {{ {} }}", as_data(quads))),
            _ => None,
        });
        let updates: Vec<String> = updates.take(UPDATES).collect();
        let folder = store(vec![of_quads(&sequence.quads)]);
        on_servers(&program, (folder.path(), Use::Write), |cluster, servers| {
            let one = Database::new();
            let (options, progress) = (LoadOptions::default(), Progress::default());
            one.load(vec![of_quads(&sequence.quads)], &options, &progress)
                .expect("it loads");
            let mut random = Random::new(seed);
            for text in &updates {
                let node = random.below(cluster.count());
                let place = format!("seed {seed}, {servers}, node {node}: {text}");
                match (one.update(text), cluster.update(node, text)) {
                    (Ok(_), Ok(())) => made += 1,
                    (Err(_), Err(_)) => refused += 1,
                    (ours, theirs) => panic!("{place}: {:?}, {theirs:?}", ours.map(|_| ())),
                }
                let expected = quads(&one).expect("it is answered");
                for other in 0..cluster.count() {
                    let found = contents(cluster, other);
                    let is_same = isomorphic(&expected, &found, false);
                    assert!(is_same, "{place}: node {other} has something else");
                }
            }
        });
    }
    println!("{made} updates were made alike, {refused} refused by all");
    assert!(made > 0);
}
