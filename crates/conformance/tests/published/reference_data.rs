//! Do the benchmarks with known answers come out right: LUBM, WatDiv, SSB, CityBench's static data?

use jindou_conformance::answer::{Answer, Table, row_text};
use jindou_conformance::data::require;
use jindou_conformance::engines::{ask, load, load_files};
use jindou_engine::Database;
use jindou_engine::ingest::Source;
use oxrdf::Term;
use oxrdf::vocab::xsd;
use oxrdfio::{RdfFormat, RdfParser};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("the file can be read")).expect("it is JSON")
}

fn solutions(database: &Database, path: &Path) -> Table {
    let query = fs::read_to_string(path).expect("the query can be read");
    match ask(database, &query, None) {
        Ok(Answer::Solutions(table)) => table,
        Ok(other) => panic!("{} answered {}", path.display(), other.kind()),
        Err(error) => panic!("{}: {error}\n{query}", path.display()),
    }
}

fn triples(database: &Database) -> u64 {
    serde_json::to_value(database.statistics()).expect("statistics are JSON")["triples"]
        .as_u64()
        .expect("statistics count the triples")
}

fn lubm(universities: &str) {
    let Some(folder) = require(&format!("LUBM {universities}"), "lubm") else {
        return;
    };
    let expected = &json(&folder.join("counts.json"))[universities];
    let data = folder.join(format!("lubm-{universities}.nt.zst"));
    let database = load_files(&[&data]).expect("the data loads");
    assert_eq!(Some(triples(&database)), expected["triples"].as_u64());
    for number in 1..=7 {
        let table = solutions(&database, &folder.join(format!("lubm_q{number}.rq")));
        assert_eq!(
            Some(table.rows.len() as u64),
            expected[format!("q{number}")].as_u64(),
            "rows of q{number}"
        );
    }
}

#[test]
fn lubm_1_has_the_published_counts() {
    lubm("1");
}

#[test]
fn lubm_10_has_the_published_counts() {
    lubm("10");
}

/// The hash of WatDiv's `answers.json`: each row is its terms in N-Triples form in the order of the
/// SELECT clause, separated by one space; the rows are sorted by their bytes and joined by line
/// feeds, without one at the end; SHA-256 of that in lower-case hexadecimal.
fn hash_of_sorted_rows(table: &Table) -> String {
    let mut rows: Vec<_> = table.rows.iter().map(|row| row_text(row)).collect();
    rows.sort_unstable();
    Sha256::digest(rows.join("\n").as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[test]
fn watdiv_answers_have_the_published_counts_and_hashes() {
    let Some(folder) = require("WatDiv", "watdiv") else {
        return;
    };
    let answers = json(&folder.join("answers.json"));
    let answers = answers.as_object().expect("answers by query");
    assert_eq!(answers.len(), 88);
    let database = load_files(&[&folder.join("watdiv.1.nt.zst")]).expect("the data loads");
    let mut wrong = Vec::new();
    for (name, expected) in answers {
        let table = solutions(&database, &folder.join(format!("queries/{name}.rq")));
        if Some(table.rows.len() as u64) != expected["count"].as_u64() {
            wrong.push(format!(
                "{name}: {} rows, not {}",
                table.rows.len(),
                expected["count"]
            ));
        } else if Some(hash_of_sorted_rows(&table).as_str())
            != expected["sha256_sorted_rows"].as_str()
        {
            wrong.push(format!("{name}: as many rows, but others"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether a term is what the JSON value says: a number an `xsd:integer`, a text an `xsd:string`.
fn is_value(term: Option<&Term>, expected: &Value) -> bool {
    let Some(Term::Literal(literal)) = term else {
        return false;
    };
    match expected {
        Value::Number(number) => {
            literal.datatype() == xsd::INTEGER && literal.value() == number.to_string()
        }
        Value::String(text) => literal.datatype() == xsd::STRING && literal.value() == text,
        _ => panic!("the answers hold {expected}"),
    }
}

#[test]
fn ssb_answers_are_exact_and_in_order() {
    let Some(folder) = require("SSB", "ssb") else {
        return;
    };
    let answers = json(&folder.join("answers.json"));
    let answers = answers.as_object().expect("answers by query");
    assert_eq!(answers.len(), 13);
    let database = load_files(&[&folder.join("ssb.sf0.01.nt.zst")]).expect("the data loads");
    for (name, expected) in answers {
        let table = solutions(&database, &folder.join(format!("queries_sparql/{name}.rq")));
        let columns: Vec<_> = expected["columns"]
            .as_array()
            .expect("names of columns")
            .iter()
            .map(|column| column.as_str().expect("a name").to_owned())
            .collect();
        assert_eq!(table.variables, columns, "columns of {name}");
        let rows = expected["rows"].as_array().expect("rows");
        assert_eq!(table.rows.len(), rows.len(), "rows of {name}");
        for (index, (row, expected)) in table.rows.iter().zip(rows).enumerate() {
            let expected = expected.as_array().expect("a row");
            assert!(
                row.iter()
                    .zip(expected)
                    .all(|(term, value)| is_value(term.as_ref(), value)),
                "row {index} of {name} is {}, not {expected:?}",
                row_text(row)
            );
        }
    }
}

/// The files of RDF below `folder`, with the format each is in.
fn rdf_files(folder: &Path) -> Vec<(PathBuf, RdfFormat)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            found.extend(rdf_files(&path));
            continue;
        }
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("n3" | "ttl") => found.push((path, RdfFormat::Turtle)),
            Some("owl" | "rdf") => found.push((path, RdfFormat::RdfXml)),
            _ => {}
        }
    }
    found.sort_by(|(left, _), (right, _)| left.cmp(right));
    found
}

#[test]
fn citybench_static_data_loads_whole() {
    let Some(folder) = require("CityBench", "citybench/static") else {
        return;
    };
    let files = rdf_files(&folder);
    assert!(!files.is_empty());
    for (path, format) in &files {
        let bytes = fs::read(path).expect("the file can be read");
        let expected: HashSet<_> = RdfParser::from_format(*format)
            .with_base_iri("http://example.org/")
            .expect("an IRI")
            .for_slice(&bytes)
            .collect::<Result<_, _>>()
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        // The files are called .n3 and .owl, but are Turtle and RDF/XML: each is loaded as what it
        // is, alone, since the same blank node label in two files is two nodes.
        let name = format!("data.{}", format.file_extension());
        let database = load(vec![
            Source::bytes(name, bytes).with_base_iri("http://example.org/"),
        ])
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(
            triples(&database),
            expected.len() as u64,
            "distinct triples of {}",
            path.display()
        );
    }
}
