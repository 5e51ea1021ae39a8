//! Does loading pass the W3C's RDF 1.1 test suites?
//!
//! Runs the manifests for N-Triples, N-Quads, Turtle, TriG and RDF/XML.

use jindou_conformance::record::{Counts, record};
use jindou_ingest::{Format, IngestError, LoadOptions, Progress, QuadSink, Source, load};
use oxrdf::dataset::CanonicalizationAlgorithm;
use oxrdf::vocab::rdf;
use oxrdf::{Dataset, Graph, NamedNode, NamedNodeRef, NamedOrBlankNodeRef, QuadRef, TermRef};
use oxttl::{NQuadsParser, TurtleParser};
use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::fs::File;
use std::io::Read;
use std::num::NonZeroUsize;

const BASE: &str = "https://w3c.github.io/rdf-tests/";
const MF: &str = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#";

/// Files of the archive by path.
type Files = HashMap<String, Vec<u8>>;

fn files() -> Option<Files> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/data/w3c/rdf11.tar.zst"
    );
    let file = File::open(path).ok()?;
    let mut archive = tar::Archive::new(zstd::Decoder::new(file).unwrap());
    let mut files = Files::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().to_str().unwrap().to_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        files.insert(name, bytes);
    }
    Some(files)
}

struct Collect(Dataset);

impl QuadSink for Collect {
    type Error = Infallible;

    fn quad(&mut self, quad: QuadRef<'_>) -> Result<(), Infallible> {
        self.0.insert(quad);
        Ok(())
    }
}

fn read(files: &Files, iri: &str, chunk_bytes: usize) -> Result<Dataset, IngestError> {
    let path = iri
        .strip_prefix(BASE)
        .expect("a test file is below the base");
    let bytes = files
        .get(path)
        .unwrap_or_else(|| panic!("{path} is not in the archive"));
    // What is wrong in one format may be right in another, which is not the question.
    let format = Format::from_file_name(path)
        .0
        .expect("the ending is of a format");
    let source = Source::bytes(path, bytes.as_slice())
        .with_format(format)
        .with_base_iri(iri);
    let options = LoadOptions {
        threads: NonZeroUsize::new(2).unwrap(),
        chunk_bytes: NonZeroUsize::new(chunk_bytes).unwrap(),
        ..LoadOptions::default()
    };
    let (sinks, _) = load(
        vec![source],
        &options,
        |_| Collect(Dataset::new()),
        &Progress::default(),
    )?;
    Ok(sinks
        .into_iter()
        .flat_map(|s| s.0.iter().map(|q| q.into_owned()).collect::<Vec<_>>())
        .collect())
}

fn expected(files: &Files, iri: &str) -> Dataset {
    let bytes = &files[iri.strip_prefix(BASE).unwrap()];
    NQuadsParser::new()
        .for_slice(bytes)
        .collect::<Result<_, _>>()
        .unwrap()
}

/// A test of a manifest: its kind, what to read, and what should come of it.
struct Test {
    iri: String,
    kind: String,
    action: String,
    result: Option<String>,
}

fn mf(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{MF}{name}"))
}

fn object<'a>(
    graph: &'a Graph,
    subject: NamedOrBlankNodeRef<'a>,
    predicate: NamedNodeRef<'a>,
) -> Option<TermRef<'a>> {
    graph.object_for_subject_predicate(subject, predicate)
}

fn iri_of(term: TermRef<'_>) -> String {
    match term {
        TermRef::NamedNode(node) => node.as_str().to_owned(),
        other => panic!("{other} should be an IRI"),
    }
}

fn tests(files: &Files, suite: &str) -> Vec<Test> {
    let path = format!("rdf/rdf11/{suite}/manifest.ttl");
    let base = format!("{BASE}{path}");
    let graph: Graph = TurtleParser::new()
        .with_base_iri(&base)
        .unwrap()
        .for_slice(&files[&path])
        .collect::<Result<_, _>>()
        .unwrap();
    let (entries, action, result) = (mf("entries"), mf("action"), mf("result"));
    let manifest = graph
        .subjects_for_predicate_object(rdf::TYPE, &mf("Manifest"))
        .next()
        .unwrap();
    let mut rest = object(&graph, manifest, entries.as_ref()).unwrap();
    let mut tests = Vec::new();
    while let TermRef::BlankNode(cell) = rest {
        let test = match object(&graph, cell.into(), rdf::FIRST).unwrap() {
            TermRef::NamedNode(test) => test,
            other => panic!("{other} should be a test"),
        };
        let kind = object(&graph, test.into(), rdf::TYPE).map(iri_of);
        tests.push(Test {
            iri: test.as_str().to_owned(),
            kind: kind.unwrap_or_else(|| panic!("{test} is listed but not described")),
            action: iri_of(object(&graph, test.into(), action.as_ref()).unwrap()),
            result: object(&graph, test.into(), result.as_ref()).map(iri_of),
        });
        rest = object(&graph, cell.into(), rdf::REST).unwrap();
    }
    tests
}

fn run(files: &Files, test: &Test, chunk_bytes: usize) -> Result<(), String> {
    let found = read(files, &test.action, chunk_bytes);
    let kind = test.kind.rsplit('#').next().unwrap();
    if kind.ends_with("NegativeSyntax") {
        return match found {
            Err(IngestError::Syntax(_)) => Ok(()),
            Err(error) => Err(format!("refused, but not for its syntax: {error}")),
            Ok(_) => Err("accepted, but should not be".to_owned()),
        };
    }
    let mut found = found.map_err(|error| format!("refused: {error}"))?;
    if kind.ends_with("PositiveSyntax") {
        return Ok(());
    }
    assert!(
        kind.ends_with("Eval"),
        "{}: a test of kind {kind} is new",
        test.iri
    );
    let mut expected = expected(
        files,
        test.result.as_ref().expect("an evaluation has a result"),
    );
    found.canonicalize(CanonicalizationAlgorithm::Unstable);
    expected.canonicalize(CanonicalizationAlgorithm::Unstable);
    if found == expected {
        Ok(())
    } else {
        Err(format!(
            "wrong quads.\nfound:\n{found}\nexpected:\n{expected}"
        ))
    }
}

fn run_suite(suite: &str, at_least: usize) {
    let Some(files) = files() else {
        println!("SKIPPED: the W3C suite {suite} (…/shared/data is absent)");
        return;
    };
    let mut passed: BTreeMap<String, usize> = BTreeMap::new();
    let mut counts = Counts::default();
    let mut failures = Vec::new();
    let tests = tests(&files, suite);
    for test in &tests {
        // Chunks of a line each as well as one chunk.
        let outcome = run(&files, test, 1).and_then(|()| run(&files, test, 1 << 20));
        match outcome {
            Ok(()) => *passed.entry(test.kind.clone()).or_default() += 1,
            Err(what) => failures.push(format!("{}: {what}", test.iri)),
        }
    }
    let kinds: Vec<_> = passed
        .iter()
        .map(|(kind, n)| format!("{n} {}", kind.rsplit('#').next().unwrap()))
        .collect();
    println!(
        "{suite}: {} tests, passed {}",
        tests.len(),
        kinds.join(", ")
    );
    counts.passed = passed.values().sum();
    counts.failed = failures.len();
    record("RDF 1.1 formats", &format!("rdf11/{suite}"), &counts);
    assert!(
        failures.is_empty(),
        "{} failed:\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert!(tests.len() >= at_least, "only {} tests found", tests.len());
}

#[test]
fn n_triples_suite_passes() {
    run_suite("rdf-n-triples", 70);
}

#[test]
fn n_quads_suite_passes() {
    run_suite("rdf-n-quads", 87);
}

#[test]
fn turtle_suite_passes() {
    run_suite("rdf-turtle", 313);
}

#[test]
fn trig_suite_passes() {
    run_suite("rdf-trig", 356);
}

#[test]
fn rdf_xml_suite_passes() {
    run_suite("rdf-xml", 166);
}
