//! Does the engine pass the W3C SPARQL 1.0 and 1.1 query suites?
//!
//! A test that needs a feature the engine refuses by name is counted as unsupported, under that
//! name. Everything else must pass.
//! An answer that is expected in a file of results is also written in that file's format, and has
//! to be the expected one when it is read back.

use jindou_conformance::answer::{self, Answer, Table};
use jindou_conformance::data::{read_tar_zstd, require};
use jindou_conformance::engines::{Endpoints, ask, guarded, load_quads_calling};
use jindou_conformance::isomorphism::isomorphic;
use jindou_conformance::manifest::{self, BASE, Test};
use jindou_conformance::record::{Counts, record};
use jindou_conformance::result_file::{self, Expected, Fidelity};
use jindou_engine::{Database, EngineError};
use oxrdf::{NamedNode, Term};
use spargebra::algebra::GraphPattern;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The suites of queries, in the order of the W3C's own lists. Update, protocol, service
/// description and entailment are about other things than one-shot queries.
const SUITES: &[&str] = &[
    "sparql10/basic",
    "sparql10/triple-match",
    "sparql10/open-world",
    "sparql10/algebra",
    "sparql10/bnode-coreference",
    "sparql10/optional",
    "sparql10/optional-filter",
    "sparql10/graph",
    "sparql10/dataset",
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
    "sparql10/syntax-sparql1",
    "sparql10/syntax-sparql2",
    "sparql10/syntax-sparql3",
    "sparql10/syntax-sparql4",
    "sparql10/syntax-sparql5",
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
    "sparql11/syntax-fed",
    "sparql11/syntax-query",
];

/// Tests whose expected file does not write its terms as the data does: the end of the test's IRI,
/// and what is written otherwise. Their literals are compared by type and value.
const BY_VALUE: &[(&str, &str)] = &[(
    "data-sparql11/cast/manifest#cast-decimal",
    "the file says 0.0 of type double where the data has 0E1",
)];

type Files = BTreeMap<String, Vec<u8>>;

/// Tests of evaluation whose answer is expected as XML; the W3C has no suite of that format's own.
const XML_GROUP: &str = "SPARQL Query Results XML Format (the tests above that expect it)";

/// What a test of syntax shows of a query that calls a function that this engine does not have.
const GRAMMATICAL: &str = "queries that call a function of another IRI are read as the grammar has it \
     and refused when they are planned, as this engine has no such function; tests of syntax count \
     them as passed";

/// How a refusal of a function begins that the grammar allows to be called.
const CUSTOM_FUNCTION: &str = "custom function ";

enum Outcome {
    Passed,
    /// With what has to be known of it.
    Noted(&'static str),
    Unsupported(String),
    Skipped(&'static str),
    Failed(String),
}

#[derive(Default)]
struct Tally {
    passed: usize,
    unsupported: usize,
    skipped: usize,
    failed: usize,
}

#[test]
fn the_sparql_query_suites_pass() {
    let Some(archive) = require("W3C SPARQL suites", "w3c/sparql10-sparql11.tar.zst") else {
        return;
    };
    let files = read_tar_zstd(&archive).expect("the archive unpacks");
    let mut features: BTreeMap<String, usize> = BTreeMap::new();
    let mut skips: BTreeMap<&str, usize> = BTreeMap::new();
    let mut failures = Vec::new();
    let mut total = Tally::default();
    let mut records: BTreeMap<(String, &str), Counts> = BTreeMap::new();
    println!(
        "{:<36}{:>8}{:>13}{:>9}{:>8}",
        "suite", "passed", "unsupported", "skipped", "failed"
    );
    for suite in SUITES {
        let path = format!("sparql/{suite}/manifest.ttl");
        let tests = manifest::tests(&files, &path).expect("the manifest can be read");
        assert!(!tests.is_empty(), "{suite} has no tests");
        let mut tally = Tally::default();
        for test in &tests {
            let outcome = guarded(|| run(&files, test)).unwrap_or_else(Outcome::Failed);
            for group in groups(suite, test) {
                count(records.entry((group, suite)).or_default(), &outcome);
            }
            match outcome {
                Outcome::Passed | Outcome::Noted(_) => tally.passed += 1,
                Outcome::Unsupported(feature) => {
                    tally.unsupported += 1;
                    *features.entry(feature).or_default() += 1;
                }
                Outcome::Skipped(reason) => {
                    tally.skipped += 1;
                    *skips.entry(reason).or_default() += 1;
                }
                Outcome::Failed(reason) => {
                    tally.failed += 1;
                    failures.push(format!("{} ({}): {reason}", test.iri, test.name));
                }
            }
        }
        print_line(suite, &tally);
        total.passed += tally.passed;
        total.unsupported += tally.unsupported;
        total.skipped += tally.skipped;
        total.failed += tally.failed;
    }
    print_line("total", &total);
    print_counts("unsupported", &features);
    print_counts("skipped", &skips);
    for ((group, suite), counts) in &records {
        record(group, suite, counts);
    }
    assert!(
        failures.is_empty(),
        "{} failed:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// The headings under which a test is counted in the table of all suites.
fn groups(suite: &str, test: &Test) -> Vec<String> {
    let version = match suite.starts_with("sparql10") {
        true => "SPARQL 1.0",
        false => "SPARQL 1.1",
    };
    let is_syntax = test.kind.contains("Syntax");
    let group = match suite.split_once('/').map_or("", |(_, name)| name) {
        "csv-tsv-res" => "SPARQL 1.1 Query Results CSV and TSV Formats".to_owned(),
        "json-res" => "SPARQL 1.1 Query Results JSON Format".to_owned(),
        "service" => "SPARQL 1.1 Federated Query evaluation".to_owned(),
        "syntax-fed" => "SPARQL 1.1 Federated Query syntax".to_owned(),
        _ if is_syntax => format!("{version} query syntax"),
        _ => format!("{version} query evaluation"),
    };
    let result = test.result.as_deref().unwrap_or_default();
    match result.ends_with(".srx") {
        true => vec![group, XML_GROUP.to_owned()],
        false => vec![group],
    }
}

fn count(counts: &mut Counts, outcome: &Outcome) {
    match outcome {
        Outcome::Passed => counts.passed += 1,
        Outcome::Noted(note) => {
            counts.passed += 1;
            counts.notes.insert((*note).to_owned());
        }
        Outcome::Failed(_) => counts.failed += 1,
        Outcome::Unsupported(feature) => counts.skip(format!("refused by name: {feature}")),
        Outcome::Skipped(reason) => counts.skip(*reason),
    }
}

fn print_line(name: &str, tally: &Tally) {
    println!(
        "{name:<36}{:>8}{:>13}{:>9}{:>8}",
        tally.passed, tally.unsupported, tally.skipped, tally.failed
    );
}

fn print_counts(what: &str, counts: &BTreeMap<impl AsRef<str>, usize>) {
    for (name, count) in counts {
        println!("{what}: {count:>4}  {}", name.as_ref());
    }
}

fn run(files: &Files, test: &Test) -> Outcome {
    if test.needs_entailment {
        return Outcome::Skipped("needs an entailment regime");
    }
    let result = match test.kind.as_str() {
        "QueryEvaluationTest" | "CSVResultFormatTest" => evaluate(files, test),
        "PositiveSyntaxTest" | "PositiveSyntaxTest11" => parse(files, test, true),
        "NegativeSyntaxTest" | "NegativeSyntaxTest11" => parse(files, test, false),
        "PositiveUpdateSyntaxTest" | "NegativeUpdateSyntaxTest" | "UpdateEvaluationTest" => {
            return Outcome::Skipped("is a test of updates");
        }
        other => Err(Failure::Wrong(format!(
            "a test of the unknown kind {other}"
        ))),
    };
    match result {
        Ok(()) => Outcome::Passed,
        Err(Failure::Unsupported(feature))
            if test.kind.starts_with("PositiveSyntax") && feature.starts_with(CUSTOM_FUNCTION) =>
        {
            Outcome::Noted(GRAMMATICAL)
        }
        Err(Failure::Unsupported(feature)) => Outcome::Unsupported(feature),
        Err(Failure::Wrong(reason)) => Outcome::Failed(reason),
    }
}

enum Failure {
    Unsupported(String),
    Wrong(String),
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Unsupported { feature, .. } => Self::Unsupported(feature),
            other => Self::Wrong(format!("the engine says: {other}")),
        }
    }
}

impl From<manifest::ManifestError> for Failure {
    fn from(error: manifest::ManifestError) -> Self {
        Self::Wrong(error.to_string())
    }
}

fn text<'a>(files: &'a Files, path: &str) -> Result<&'a str, Failure> {
    let bytes = files
        .get(path)
        .ok_or_else(|| Failure::Wrong(format!("{path} is not in the archive")))?;
    std::str::from_utf8(bytes).map_err(|error| Failure::Wrong(format!("{path}: {error}")))
}

fn base(test: &Test) -> NamedNode {
    NamedNode::new_unchecked(format!("{BASE}{}", test.query))
}

fn parse(files: &Files, test: &Test, valid: bool) -> Result<(), Failure> {
    let query = text(files, &test.query)?;
    // There are no endpoints, so that nothing is called.
    let database = Database::with_config(Endpoints::new().config());
    let answer = ask(&database, query, Some(&base(test)));
    match (answer, valid) {
        (Ok(_) | Err(EngineError::Service { .. }), true)
        | (Err(EngineError::Syntax { .. } | EngineError::InvalidQuery { .. }), false) => Ok(()),
        (Err(error), true) => Err(error.into()),
        (Ok(_) | Err(EngineError::Service { .. }), false) => {
            Err(Failure::Wrong(format!("accepted, but is wrong:\n{query}")))
        }
        (Err(error @ EngineError::Unsupported { .. }), false) => Err(error.into()),
        (Err(error), false) => Err(Failure::Wrong(format!(
            "refused for another reason: {error}"
        ))),
    }
}

fn evaluate(files: &Files, test: &Test) -> Result<(), Failure> {
    let query = text(files, &test.query)?;
    let quads = manifest::dataset(files, test, query)?;
    let result = test
        .result
        .as_deref()
        .ok_or_else(|| Failure::Wrong("the test names no result".to_owned()))?;
    let expected = result_file::read(files, result)?;
    let endpoints = Endpoints::new();
    let mut databases = BTreeMap::new();
    for (endpoint, paths) in &test.service_data {
        let mut quads = Vec::new();
        for path in paths {
            quads.extend(manifest::parse_graph(files, path)?);
        }
        let database = load_quads_calling(&quads, &endpoints)?;
        databases.insert(endpoint.clone(), database);
    }
    endpoints.serve(databases);
    let database = load_quads_calling(&quads, &endpoints)?;
    let actual = ask(&database, query, Some(&base(test)))?;
    let computed = computed_variables(query, &base(test));
    let wrong = |what: &str, actual: &Answer| {
        Err(Failure::Wrong(format!(
            "{what}\n{query}\nexpected{}:\n{}got:\n{actual}",
            match expected.ordered {
                true => " in this order",
                false => "",
            },
            expected.answer
        )))
    };
    if !matches(test, &actual, &expected, &computed) {
        return wrong("another answer", &actual);
    }
    let Some(bytes) = result_file::write_as(&actual, result) else {
        return Ok(());
    };
    let written = result_file::read_bytes(result, &bytes)?.answer;
    match matches(test, &written, &expected, &computed) {
        true => Ok(()),
        false => wrong("another answer once it is written and read back", &written),
    }
}

fn matches(test: &Test, actual: &Answer, expected: &Expected, computed: &BTreeSet<String>) -> bool {
    match (actual, &expected.answer) {
        (Answer::Boolean(left), Answer::Boolean(right)) => left == right,
        (Answer::Graph(left), Answer::Graph(right)) => {
            isomorphic(&rows_of(left), &rows_of(right), false)
        }
        (Answer::Solutions(left), Answer::Solutions(right)) => {
            if !left.same_variables(right) {
                return false;
            }
            let left = match expected.fidelity {
                Fidelity::Text => result_file::as_csv(actual),
                Fidelity::Exact | Fidelity::Values => left.clone(),
            };
            let left = left.reordered(&right.variables);
            let by_value: Vec<_> = right
                .variables
                .iter()
                .map(|name| {
                    expected.fidelity == Fidelity::Values
                        || computed.contains(name)
                        || BY_VALUE.iter().any(|(end, _)| test.iri.ends_with(end))
                })
                .collect();
            if test.lax_cardinality {
                return isomorphic(
                    &distinct(comparable(left, &by_value)),
                    &distinct(comparable(right.clone(), &by_value)),
                    false,
                );
            }
            isomorphic(
                &comparable(left, &by_value),
                &comparable(right.clone(), &by_value),
                expected.ordered,
            )
        }
        _ => false,
    }
}

fn distinct(rows: Vec<Vec<Option<Term>>>) -> Vec<Vec<Option<Term>>> {
    let mut seen = HashSet::new();
    rows.into_iter()
        .filter(|row| seen.insert(row.clone()))
        .collect()
}

/// The rows with the literals of the columns marked in `by_value` reduced to type and value.
fn comparable(table: Table, by_value: &[bool]) -> Vec<Vec<Option<Term>>> {
    table
        .rows
        .into_iter()
        .map(|row| {
            row.into_iter()
                .zip(by_value)
                .map(|(term, reduce)| {
                    if *reduce {
                        term.map(answer::by_value)
                    } else {
                        term
                    }
                })
                .collect()
        })
        .collect()
}

/// The variables whose values are computed. The suites write computed numbers in several ways, even
/// within one file (`0` and `0.0` of type decimal), so those are compared by type and value; what
/// comes from the data has to come out as written there.
fn computed_variables(query: &str, base: &NamedNode) -> BTreeSet<String> {
    let mut variables = BTreeSet::new();
    let parsed = spargebra::SparqlParser::new()
        .with_base_iri(base.as_str())
        .map(|parser| parser.parse_query(query));
    if let Ok(Ok(spargebra::Query::Select { pattern, .. })) = parsed {
        collect_computed(&pattern, &mut variables);
    }
    variables
}

fn collect_computed(pattern: &GraphPattern, variables: &mut BTreeSet<String>) {
    match pattern {
        GraphPattern::Extend {
            inner, variable, ..
        } => {
            variables.insert(variable.as_str().to_owned());
            collect_computed(inner, variables);
        }
        GraphPattern::Group {
            inner, aggregates, ..
        } => {
            variables.extend(aggregates.iter().map(|(name, _)| name.as_str().to_owned()));
            collect_computed(inner, variables);
        }
        GraphPattern::Join { left, right }
        | GraphPattern::LeftJoin { left, right, .. }
        | GraphPattern::Union { left, right }
        | GraphPattern::Minus { left, right } => {
            collect_computed(left, variables);
            collect_computed(right, variables);
        }
        GraphPattern::Filter { inner, .. }
        | GraphPattern::Graph { inner, .. }
        | GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Project { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Slice { inner, .. }
        | GraphPattern::Service { inner, .. } => collect_computed(inner, variables),
        // Patterns and values written in the query compute nothing.
        _ => {}
    }
}

fn rows_of(triples: &[oxrdf::Triple]) -> Vec<Vec<Option<Term>>> {
    triples
        .iter()
        .map(|triple| {
            vec![
                Some(triple.subject.clone().into()),
                Some(triple.predicate.clone().into()),
                Some(triple.object.clone()),
            ]
        })
        .collect()
}
