//! Which answer does a result file of a W3C test expect?

use crate::answer::{Answer, Table};
use crate::manifest::{ManifestError, parse_graph};
use jindou_engine::results::{BooleanFormat, SolutionsFormat, SolutionsWriter, write_boolean};
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{Graph, NamedNode, NamedOrBlankNode, NamedOrBlankNodeRef, Term, TermRef, Triple};
use sparesults::{
    QueryResultsFormat, QueryResultsParser, QueryResultsSerializer, SliceQueryResultsParserOutput,
};
use std::collections::BTreeMap;

const RS: &str = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#";

/// What a result file keeps of the terms of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fidelity {
    /// Everything.
    Exact,
    /// Numbers are abbreviated (TSV): their value and type.
    Values,
    /// Only text (CSV): compare with [`as_csv`] of the answer.
    Text,
}

/// What a test expects.
#[derive(Debug, Clone)]
pub struct Expected {
    /// The answer.
    pub answer: Answer,
    /// Whether the rows have to come in this order.
    pub ordered: bool,
    /// What the file keeps of terms.
    pub fidelity: Fidelity,
}

/// Reads an expected result: SPARQL XML, JSON, TSV or CSV by its name, or RDF, which is a result
/// set of the DAWG vocabulary or else the expected graph itself.
///
/// # Errors
/// When it is absent or malformed.
pub fn read(files: &BTreeMap<String, Vec<u8>>, path: &str) -> Result<Expected, ManifestError> {
    if !["srx", "srj", "tsv", "csv"].contains(&extension(path)) {
        return from_graph(files, path);
    }
    let bytes = files
        .get(path)
        .ok_or_else(|| ManifestError::Absent(path.to_owned()))?;
    read_bytes(path, bytes)
}

fn extension(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(_, extension)| extension)
}

/// An answer as our engine writes it in the format that the name of a file tells; `None` if that is
/// no format of results.
///
/// # Panics
/// When our engine cannot write it.
#[must_use]
pub fn write_as(answer: &Answer, path: &str) -> Option<Vec<u8>> {
    let (solutions, boolean) = match extension(path) {
        "srx" => (SolutionsFormat::Xml, BooleanFormat::Xml),
        "srj" => (SolutionsFormat::Json, BooleanFormat::Json),
        "tsv" => (SolutionsFormat::Tsv, BooleanFormat::Tsv),
        "csv" => (SolutionsFormat::Csv, BooleanFormat::Csv),
        _ => return None,
    };
    let mut out = Vec::new();
    match answer {
        Answer::Boolean(value) => write_boolean(&mut out, boolean, *value),
        Answer::Solutions(table) => {
            let mut writer = SolutionsWriter::new(solutions, &table.variables);
            let mut write = || {
                writer.start(&mut out)?;
                for row in &table.rows {
                    let cells = row
                        .iter()
                        .map(|cell| cell.as_ref().map(|t| t.as_ref().into()));
                    writer.row(&mut out, cells)?;
                }
                writer.finish(&mut out)
            };
            write().expect("the answer can be written");
        }
        Answer::Graph(_) => return None,
    }
    Some(out)
}

/// Reads results in the format that the name `path` tells.
///
/// # Errors
/// When they are malformed, or the name tells no format of results.
pub fn read_bytes(path: &str, bytes: &[u8]) -> Result<Expected, ManifestError> {
    let malformed = |reason: String| ManifestError::Malformed {
        path: path.to_owned(),
        reason,
    };
    let format = match extension(path) {
        "srx" => QueryResultsFormat::Xml,
        "srj" => QueryResultsFormat::Json,
        "tsv" => QueryResultsFormat::Tsv,
        "csv" => return csv_table(bytes).map_err(malformed),
        _ => return Err(malformed("the name tells no format of results".to_owned())),
    };
    let parsed = QueryResultsParser::from_format(format)
        .for_slice(bytes)
        .map_err(|error| malformed(error.to_string()))?;
    let answer = match parsed {
        SliceQueryResultsParserOutput::Boolean(value) => Answer::Boolean(value),
        SliceQueryResultsParserOutput::Solutions(solutions) => {
            let variables = solutions
                .variables()
                .iter()
                .map(|variable| variable.as_str().to_owned())
                .collect();
            let rows = solutions
                .map(|solution| solution.map(|solution| solution.values().to_vec()))
                .collect::<Result<_, _>>()
                .map_err(|error| malformed(error.to_string()))?;
            Answer::Solutions(Table { variables, rows })
        }
    };
    Ok(Expected {
        answer,
        ordered: false,
        fidelity: if extension(path) == "tsv" {
            Fidelity::Values
        } else {
            Fidelity::Exact
        },
    })
}

fn rs(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{RS}{name}"))
}

fn from_graph(files: &BTreeMap<String, Vec<u8>>, path: &str) -> Result<Expected, ManifestError> {
    let triples: Vec<Triple> = parse_graph(files, path)?
        .into_iter()
        .map(Triple::from)
        .collect();
    let graph: Graph = triples.iter().collect();
    let set = graph
        .subjects_for_predicate_object(rdf::TYPE, &rs("ResultSet"))
        .next();
    let Some(set) = set else {
        return Ok(Expected {
            answer: Answer::graph(triples),
            ordered: false,
            fidelity: Fidelity::Exact,
        });
    };
    if let Some(TermRef::Literal(value)) = graph.object_for_subject_predicate(set, &rs("boolean")) {
        return Ok(Expected {
            answer: Answer::Boolean(value.value() == "true"),
            ordered: false,
            fidelity: Fidelity::Exact,
        });
    }
    result_set(&graph, set).map_err(|reason| ManifestError::Malformed {
        path: path.to_owned(),
        reason,
    })
}

/// A result set of the DAWG vocabulary; ordered when its solutions carry an index.
fn result_set(graph: &Graph, set: NamedOrBlankNodeRef<'_>) -> Result<Expected, String> {
    let mut variables: Vec<String> = graph
        .objects_for_subject_predicate(set, &rs("resultVariable"))
        .filter_map(|term| match term {
            TermRef::Literal(name) => Some(name.value().to_owned()),
            _ => None,
        })
        .collect();
    variables.sort();
    let mut rows = Vec::new();
    let mut ordered = false;
    for solution in graph.objects_for_subject_predicate(set, &rs("solution")) {
        let solution = node(solution)?;
        let mut row = vec![None; variables.len()];
        for binding in graph.objects_for_subject_predicate(&solution, &rs("binding")) {
            let binding = node(binding)?;
            let Some(TermRef::Literal(name)) =
                graph.object_for_subject_predicate(&binding, &rs("variable"))
            else {
                return Err("a binding without a variable".to_owned());
            };
            let position = variables
                .iter()
                .position(|variable| variable == name.value())
                .ok_or_else(|| format!("no result variable {name}"))?;
            row[position] = graph
                .object_for_subject_predicate(&binding, &rs("value"))
                .map(TermRef::into_owned);
        }
        let index = match graph.object_for_subject_predicate(&solution, &rs("index")) {
            Some(TermRef::Literal(index)) if index.datatype() == xsd::INTEGER => {
                ordered = true;
                index
                    .value()
                    .parse::<u64>()
                    .map_err(|error| error.to_string())?
            }
            _ => 0,
        };
        rows.push((index, row));
    }
    rows.sort_by_key(|(index, _)| *index);
    Ok(Expected {
        answer: Answer::Solutions(Table {
            variables,
            rows: rows.into_iter().map(|(_, row)| row).collect(),
        }),
        ordered,
        fidelity: Fidelity::Exact,
    })
}

fn node(term: TermRef<'_>) -> Result<NamedOrBlankNode, String> {
    match term {
        TermRef::NamedNode(node) => Ok(node.into_owned().into()),
        TermRef::BlankNode(node) => Ok(node.into_owned().into()),
        TermRef::Literal(literal) => Err(format!("{literal} is no node")),
    }
}

/// The answer as CSV tells it: every term a plain text, unbound an empty one.
///
/// # Panics
/// When the answer is not of solutions.
#[must_use]
pub fn as_csv(answer: &Answer) -> Table {
    let Answer::Solutions(table) = answer else {
        panic!("CSV is for solutions, not {}", answer.kind());
    };
    let variables: Vec<_> = table
        .variables
        .iter()
        .map(|name| oxrdf::Variable::new_unchecked(name.as_str()))
        .collect();
    let mut writer = QueryResultsSerializer::from_format(QueryResultsFormat::Csv)
        .serialize_solutions_to_writer(Vec::new(), variables.clone())
        .expect("writing to memory never fails");
    for row in &table.rows {
        let bindings = variables
            .iter()
            .zip(row)
            .filter_map(|(variable, term)| Some((variable, term.as_ref()?)));
        writer
            .serialize(bindings)
            .expect("writing to memory never fails");
    }
    let bytes = writer.finish().expect("writing to memory never fails");
    match csv_table(&bytes).expect("our own CSV can be read").answer {
        Answer::Solutions(table) => table,
        other => panic!("CSV told {}", other.kind()),
    }
}

/// Reads CSV (RFC 4180): a header of names, then a record a row. A text `_:label` is a blank node,
/// an empty one unbound, any other a plain literal.
fn csv_table(bytes: &[u8]) -> Result<Expected, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let mut records = csv_records(text)?.into_iter();
    let variables = records.next().ok_or("no header")?;
    let rows = records
        .map(|record| {
            if record.len() != variables.len() {
                return Err(format!("a record of {} fields", record.len()));
            }
            Ok(record.into_iter().map(csv_term).collect())
        })
        .collect::<Result<_, _>>()?;
    Ok(Expected {
        answer: Answer::Solutions(Table { variables, rows }),
        ordered: false,
        fidelity: Fidelity::Text,
    })
}

fn csv_term(text: String) -> Option<Term> {
    if text.is_empty() {
        return None;
    }
    Some(match text.strip_prefix("_:") {
        Some(label) => oxrdf::BlankNode::new_unchecked(label).into(),
        None => oxrdf::Literal::new_simple_literal(text).into(),
    })
}

fn csv_records(text: &str) -> Result<Vec<Vec<String>>, String> {
    let mut records = Vec::new();
    let mut record = Vec::new();
    let mut field = String::new();
    let mut quoted = false;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match (quoted, character) {
            (true, '"') if characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            (true, '"') => quoted = false,
            (true, other) => field.push(other),
            (false, '"') => quoted = true,
            (false, ',') => record.push(std::mem::take(&mut field)),
            (false, '\r') => {}
            (false, '\n') => {
                record.push(std::mem::take(&mut field));
                records.push(std::mem::take(&mut record));
            }
            (false, other) => field.push(other),
        }
    }
    if quoted {
        return Err("a quoted field does not end".to_owned());
    }
    if !field.is_empty() || !record.is_empty() {
        record.push(field);
        records.push(record);
    }
    Ok(records)
}
