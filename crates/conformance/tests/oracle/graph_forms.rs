//! Do named graphs answer as the default graph does?
//!
//! Queries about a default graph are asked of the same data in named graphs, in each form of
//! [`GraphForm`] that has the same answer: the W3C query suites, LUBM, WatDiv and SSB, and random
//! queries on random data, which `JINDOU_SEED` and `JINDOU_CASES` set as for the differential
//! tests. The data is loaded at once, or half of it is, with the rest written by updates; then the
//! changes are folded, and merged. Or some predicates are merged after each update.

use jindou_conformance::cases::setting;
use jindou_conformance::data::{read_tar_zstd, read_zstd, require};
use jindou_conformance::differential::{
    LargeCase, Outcome, compare, compare_to_definitions, default_graph_case,
    large_default_graph_case,
};
use jindou_conformance::engines::settings;
use jindou_conformance::engines::{Endpoints, load_quads_with};
use jindou_conformance::graph_check::{Baseline, Expected, NoAnswer, Stores};
use jindou_conformance::graph_form::GraphForm;
use jindou_conformance::graph_history::History;
use jindou_conformance::graph_placement::{Everywhere, nothing_everywhere};
use jindou_conformance::manifest::{self, BASE, Test};
use jindou_conformance::shrink::{Case, shrink};
use jindou_engine::{Config, EngineError};
use oxrdf::{Dataset, NamedNode, Quad};
use oxrdfio::{RdfFormat, RdfParser};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const DEFAULT_SEED: u64 = 1;
const DEFAULT_CASES: u64 = 150;

/// Fewer cases than this need not have results in every form.
const FEW_CASES: u64 = 100;

/// Small cases for each large one.
const SMALL_FOR_LARGE: u64 = 75;
/// Data sets of more quads are written with merges in parts only where the number of cases is set.
const QUADS_FEW: usize = 1_000;
/// Time that a query over much data may take; it is left out if it takes longer.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// Failures shown; a test of random cases stops after as many.
const FAILURES_SHOWN: usize = 5;

/// Answers compared by form.
#[derive(Default)]
struct Tally {
    forms: BTreeMap<GraphForm, Counts>,
    /// Queries without a right answer to compare with, by reason.
    queries: BTreeMap<String, usize>,
    failures: Vec<String>,
}

#[derive(Default)]
struct Counts {
    same: usize,
    with_results: usize,
    different: usize,
    time: Duration,
    left_out: BTreeMap<String, usize>,
}

impl Tally {
    /// Asks one query in all forms.
    fn check(&mut self, name: &str, expected: &Expected<'_>, stores: &Stores) {
        for form in GraphForm::ALL {
            let counts = self.forms.entry(form).or_default();
            let started = Instant::now();
            let checked = expected.check(form, stores);
            counts.time += started.elapsed();
            match checked {
                Ok(None) => {
                    counts.same += 1;
                    counts.with_results += usize::from(expected.is_something(form));
                }
                Ok(Some(reason)) => {
                    counts.different += 1;
                    self.failures.push(format!("{name}, {reason}"));
                }
                Err(reason) => *counts.left_out.entry(reason.to_string()).or_default() += 1,
            }
        }
    }

    fn leave_out(&mut self, reason: &NoAnswer) {
        let reason = match reason {
            NoAnswer::Refused(EngineError::Unsupported { feature, .. }) => {
                format!("refused: {feature}")
            }
            other => other.to_string(),
        };
        *self.queries.entry(reason).or_default() += 1;
    }

    fn print(&self) {
        println!(
            "{:<24}{:>8}{:>14}{:>11}{:>12}",
            "form", "same", "with results", "different", "time"
        );
        for (form, counts) in &self.forms {
            println!(
                "{form:<24}{:>8}{:>14}{:>11}{:>9} ms",
                counts.same,
                counts.with_results,
                counts.different,
                counts.time.as_millis()
            );
            for (reason, count) in &counts.left_out {
                println!("    left out: {count:>4}  {reason}");
            }
        }
        for (reason, count) in &self.queries {
            println!("queries left out: {count:>4}  {reason}");
        }
    }

    /// # Panics
    /// If an answer is wrong.
    fn finish(&self) {
        self.print();
        assert!(
            self.failures.is_empty(),
            "{} answers differ:\n{}",
            self.failures.len(),
            self.failures[..self.failures.len().min(FAILURES_SHOWN)].join("\n\n")
        );
    }

    /// As [`Tally::finish`], for what has answers with results.
    ///
    /// # Panics
    /// If a form was asked, but never had results.
    fn finish_with_results(&self) {
        self.finish();
        assert!(!self.forms.is_empty(), "nothing was compared");
        for (form, counts) in &self.forms {
            let is_tested = counts.with_results > 0;
            assert!(is_tested, "{form}: no results were compared");
        }
    }
}

/// Calls `check` with the data in named graphs after each history.
fn after_each_history(
    quads: &[Quad],
    everywhere: Everywhere,
    config: &Config,
    check: &mut dyn FnMut(History, &Stores),
) -> Result<(), EngineError> {
    check(History::Loaded, &Stores::loaded(quads, everywhere, config)?);
    let stores = Stores::updated(quads, everywhere, config)?;
    check(History::Updated, &stores);
    stores.fold()?;
    check(History::Folded, &stores);
    stores.merge()?;
    check(History::Merged, &stores);
    drop(stores);
    if quads.len() > QUADS_FEW && std::env::var_os("JINDOU_CASES").is_none() {
        return Ok(());
    }
    let stores = Stores::merged_in_parts(quads, everywhere, config)?;
    check(History::MergedInParts, &stores);
    Ok(())
}

/// A query with its name, for messages.
struct Named {
    name: String,
    text: String,
}

/// The queries of a folder whose names `is_wanted`, sorted by name.
fn queries(folder: &Path, is_wanted: &dyn Fn(&str) -> bool) -> Vec<Named> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the folder can be read").path();
        let name = path.file_stem().and_then(|name| name.to_str());
        let name = name.expect("a name").to_owned();
        if path.extension().is_some_and(|extension| extension == "rq") && is_wanted(&name) {
            let text = fs::read_to_string(&path).expect("the query can be read");
            found.push(Named { name, text });
        }
    }
    found.sort_by(|left, right| left.name.cmp(&right.name));
    found
}

/// The quads of a compressed file of N-Triples whose lines `is_wanted`.
fn lines(path: &Path, is_wanted: &dyn Fn(&[u8]) -> bool) -> Vec<Quad> {
    let bytes = read_zstd(path).expect("the data can be read");
    let wanted: Vec<u8> = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| is_wanted(line))
        .flatten()
        .copied()
        .collect();
    RdfParser::from_format(RdfFormat::NTriples)
        .for_slice(&wanted)
        .collect::<Result<_, _>>()
        .expect("the data is N-Triples")
}

fn check_benchmark(quads: &[Quad], everywhere: Everywhere, queries: &[Named]) {
    let mut tally = Tally::default();
    let started = Instant::now();
    let config = settings();
    let baseline = Baseline::new(quads, everywhere, &config).expect("the data loads");
    let expected = |query: &Named| {
        Expected::of_text(&baseline, &query.text, None)
            .unwrap_or_else(|reason| panic!("{}: {reason}\n{}", query.name, query.text))
    };
    let expected: Vec<_> = queries.iter().map(expected).collect();
    println!(
        "{} triples, {:?} for right answers",
        quads.len(),
        started.elapsed()
    );
    after_each_history(quads, everywhere, &config, &mut |history, stores| {
        let asked = Instant::now();
        for (query, expected) in queries.iter().zip(&expected) {
            tally.check(&format!("{} {history:?}", query.name), expected, stores);
        }
        println!(
            "{history:?}: asked in {:?}, {:?} in all",
            asked.elapsed(),
            started.elapsed()
        );
    })
    .expect("the data can be written");
    tally.finish_with_results();
}

#[test]
fn lubm_is_answered_from_named_graphs() {
    let Some(folder) = require("LUBM 1 in named graphs", "lubm") else {
        return;
    };
    // Ten of 15 departments.
    let is_wanted = |line: &[u8]| !contains(line, b"Department1");
    let quads = lines(&folder.join("lubm-1.nt.zst"), &is_wanted);
    check_benchmark(
        &quads,
        nothing_everywhere,
        &queries(&folder, &|name| name.starts_with("lubm_q")),
    );
}

#[test]
fn watdiv_is_answered_from_named_graphs() {
    let Some(folder) = require("WatDiv in named graphs", "watdiv") else {
        return;
    };
    let quads = lines(&folder.join("watdiv.1.nt.zst"), &|_| true);
    check_benchmark(
        &quads,
        nothing_everywhere,
        &queries(&folder.join("queries"), &|_| true),
    );
}

fn contains(line: &[u8], part: &[u8]) -> bool {
    line.windows(part.len()).any(|window| window == part)
}

/// How lines about a date begin.
const DATE: &[u8] = b"<http://example.org/ssb/date/";

fn is_order_line(line: &[u8]) -> bool {
    line.starts_with(b"<http://example.org/ssb/lineorder/")
}

#[test]
fn ssb_is_answered_from_named_graphs() {
    let Some(folder) = require("SSB in named graphs", "ssb") else {
        return;
    };
    // Two lines of one of ten orders, and of dates what is asked; what lines refer to is in each
    // graph.
    let has_one_of = |line: &[u8], parts: &[&[u8]]| parts.iter().any(|part| contains(line, part));
    let is_wanted = |line: &[u8]| match line {
        line if is_order_line(line) => has_one_of(line, &[b"7-1>", b"7-2>"]),
        line if line.starts_with(DATE) => has_one_of(line, &[b"#d_year", b"#d_weeknuminyear"]),
        _ => true,
    };
    let quads = lines(&folder.join("ssb.sf0.01.nt.zst"), &is_wanted);
    check_benchmark(
        &quads,
        |quad| !is_order_line(quad.subject.to_string().as_bytes()),
        &queries(&folder.join("queries_sparql"), &|_| true),
    );
}

/// The query suites of the W3C that evaluate queries; those about graphs are left out by query.
const SUITES: &[&str] = &[
    "sparql10/basic",
    "sparql10/triple-match",
    "sparql10/open-world",
    "sparql10/algebra",
    "sparql10/bnode-coreference",
    "sparql10/optional",
    "sparql10/optional-filter",
    "sparql10/type-promotion",
    "sparql10/cast",
    "sparql10/boolean-effective-value",
    "sparql10/bound",
    "sparql10/expr-builtin",
    "sparql10/expr-ops",
    "sparql10/expr-equals",
    "sparql10/regex",
    "sparql10/i18n",
    "sparql10/construct",
    "sparql10/ask",
    "sparql10/distinct",
    "sparql10/sort",
    "sparql10/solution-seq",
    "sparql10/reduced",
    "sparql11/aggregates",
    "sparql11/bind",
    "sparql11/bindings",
    "sparql11/cast",
    "sparql11/construct",
    "sparql11/csv-tsv-res",
    "sparql11/exists",
    "sparql11/functions",
    "sparql11/grouping",
    "sparql11/json-res",
    "sparql11/negation",
    "sparql11/project-expression",
    "sparql11/property-path",
    "sparql11/service",
    "sparql11/subquery",
];

type Files = BTreeMap<String, Vec<u8>>;

#[test]
fn the_w3c_query_suites_are_answered_from_named_graphs() {
    let Some(archive) = require(
        "W3C SPARQL suites in named graphs",
        "w3c/sparql10-sparql11.tar.zst",
    ) else {
        return;
    };
    let files = read_tar_zstd(&archive).expect("the archive unpacks");
    let mut tally = Tally::default();
    for suite in SUITES {
        let path = format!("sparql/{suite}/manifest.ttl");
        for test in manifest::tests(&files, &path).expect("the manifest can be read") {
            let is_evaluated = matches!(
                test.kind.as_str(),
                "QueryEvaluationTest" | "CSVResultFormatTest"
            );
            if is_evaluated && !test.needs_entailment {
                check_test(&mut tally, &files, &test);
            }
        }
    }
    tally.finish_with_results();
}

fn check_test(tally: &mut Tally, files: &Files, test: &Test) {
    let query = std::str::from_utf8(&files[&test.query]).expect("the query is text");
    if !test.graph_data.is_empty() {
        *tally
            .queries
            .entry("has named graphs".to_owned())
            .or_default() += 1;
        return;
    }
    let base = NamedNode::new_unchecked(format!("{BASE}{}", test.query));
    let quads = manifest::dataset(files, test, query).expect("the data can be read");
    let endpoints = Endpoints::new();
    let mut databases = BTreeMap::new();
    for (endpoint, paths) in &test.service_data {
        let mut quads = Vec::new();
        for path in paths {
            quads.extend(manifest::parse_graph(files, path).expect("the data can be read"));
        }
        let database = load_quads_with(&quads, endpoints.config()).expect("the data loads");
        databases.insert(endpoint.clone(), database);
    }
    endpoints.serve(databases);
    let config = endpoints.config();
    let baseline = Baseline::new(&quads, nothing_everywhere, &config).expect("the data loads");
    let expected = match Expected::of_text(&baseline, query, Some(&base)) {
        Ok(expected) => expected,
        Err(reason) => return tally.leave_out(&reason),
    };
    after_each_history(
        &quads,
        nothing_everywhere,
        &config,
        &mut |history, stores| {
            tally.check(&format!("{} {history:?}", test.iri), &expected, stores);
        },
    )
    .expect("the data can be written");
}

/// Checks a case after all histories, against the oracle as well: false if there is nothing to
/// compare, or little enough.
fn check_case(tally: &mut Tally, name: &str, case: &Case, is_bold: bool) -> bool {
    let config = settings();
    let baseline = match Baseline::new(&case.quads, nothing_everywhere, &config) {
        Ok(baseline) => baseline,
        Err(error) => {
            tally.failures.push(format!("{name}: {error}"));
            return true;
        }
    };
    let outcome = match is_bold {
        true => compare_to_definitions(&baseline.whole, &case.quads, &[], &case.query),
        false => {
            let dataset: Dataset = case.quads.iter().collect();
            compare(&baseline.whole, &dataset, &case.query)
        }
    };
    match outcome {
        Outcome::Same { .. } => {}
        Outcome::Unsupported(feature) if feature.starts_with("open") => {}
        Outcome::Different(reason) => {
            tally
                .failures
                .push(format!("{name}, default graph: {reason}"));
            return true;
        }
        Outcome::Unsupported(_) | Outcome::TooLarge | Outcome::Invalid(_) => return false,
    }
    let expected = match Expected::of_generated(&baseline, &case.query) {
        Ok(expected) => expected,
        Err(reason) => {
            tally.leave_out(&reason);
            return false;
        }
    };
    after_each_history(
        &case.quads,
        nothing_everywhere,
        &config,
        &mut |history, stores| {
            tally.check(&format!("{name} {history:?}"), &expected, stores);
        },
    )
    .expect("the data can be written");
    true
}

/// Batches, threads and temporary files have a part in these.
#[test]
fn random_queries_over_much_data_are_answered_from_named_graphs() {
    let first = setting("JINDOU_SEED", DEFAULT_SEED);
    let cases = setting("JINDOU_CASES", DEFAULT_CASES).div_ceil(SMALL_FOR_LARGE);
    let mut tally = Tally::default();
    for seed in first..first + cases {
        let mut case = large_default_graph_case(seed);
        case.config.query_timeout = Some(TIME_LIMIT);
        let LargeCase {
            quads,
            config,
            queries,
        } = case;
        let baseline = Baseline::new(&quads, nothing_everywhere, &config).expect("the data loads");
        let mut asked = Vec::new();
        for query in &queries {
            match Expected::of_generated(&baseline, query) {
                Ok(expected) => asked.push(expected),
                Err(reason) => tally.leave_out(&reason),
            }
        }
        after_each_history(
            &quads,
            nothing_everywhere,
            &config,
            &mut |history, stores| {
                for (number, expected) in asked.iter().enumerate() {
                    let name = format!("seed {seed} query {number} {history:?}");
                    tally.check(&name, expected, stores);
                }
            },
        )
        .expect("the data can be written");
    }
    println!("{cases} data sets from seed {first}");
    tally.finish();
}

/// The failing case of a seed, shrunk.
fn report(name: &str, case: Case, is_bold: bool) -> String {
    let failures = |case: &Case| {
        let mut tally = Tally::default();
        check_case(&mut tally, name, case, is_bold);
        tally.failures
    };
    let shrunk = shrink(case, &mut |case| !failures(case).is_empty());
    let mut text = format!("{name}, shrunk:\n");
    for quad in &shrunk.quads {
        writeln!(text, "{quad} .").expect("writing to a string never fails");
    }
    writeln!(text, "{}", shrunk.query).expect("writing to a string never fails");
    text.push_str(failures(&shrunk).first().map_or("", String::as_str));
    text
}

#[test]
fn random_queries_are_answered_from_named_graphs() {
    let first = setting("JINDOU_SEED", DEFAULT_SEED);
    let cases = setting("JINDOU_CASES", DEFAULT_CASES);
    let mut tally = Tally::default();
    let mut compared = 0;
    let mut failures = Vec::new();
    for seed in first..first + cases {
        let (case, is_bold) = default_graph_case(seed);
        let name = format!("seed {seed}");
        compared += u64::from(check_case(&mut tally, &name, &case, is_bold));
        if !tally.failures.is_empty() {
            tally.failures.clear();
            failures.push(report(&name, case, is_bold));
            if failures.len() == FAILURES_SHOWN {
                break;
            }
        }
    }
    println!("{cases} cases from seed {first}, {compared} compared");
    tally.failures = failures;
    match cases < FEW_CASES {
        true => tally.finish(),
        false => tally.finish_with_results(),
    }
}
