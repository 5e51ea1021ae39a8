//! One triple pattern: `s`, `p` and `o` stand for a constant in its place, `?` for a variable.

use crate::operators::catalogue::{DataSet, Family, Query};

const fn lubm(name: &'static str, text: &'static str) -> Query {
    Query::new(Family::Scan, DataSet::Lubm, name, text)
}

pub(super) const QUERIES: &[Query] = &[
    lubm("count ???", "SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }"),
    lubm(
        "count s??",
        "SELECT (COUNT(*) AS ?n) WHERE { <http://www.Department0.University0.edu/FullProfessor0> ?p ?o }",
    ),
    lubm(
        "count ?p?",
        "SELECT (COUNT(*) AS ?n) WHERE { ?s ub:takesCourse ?o }",
    ),
    lubm(
        "count ??o",
        "SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ub:UndergraduateStudent }",
    ),
    lubm(
        "count sp?",
        "SELECT (COUNT(*) AS ?n)
         WHERE { <http://www.Department0.University0.edu/FullProfessor0> ub:teacherOf ?o }",
    ),
    lubm(
        "count s?o",
        "SELECT (COUNT(*) AS ?n)
         WHERE { <http://www.Department0.University0.edu/FullProfessor0> ?p d0: }",
    ),
    lubm(
        "count ?po",
        "SELECT (COUNT(*) AS ?n) WHERE { ?s rdf:type ub:Publication }",
    ),
    lubm(
        "rows s??",
        "SELECT ?p ?o WHERE { <http://www.Department0.University0.edu/FullProfessor0> ?p ?o }",
    ),
    lubm("rows ?p?", "SELECT ?s ?o WHERE { ?s ub:takesCourse ?o }"),
    lubm(
        "rows ??o",
        "SELECT ?s ?p WHERE { ?s ?p ub:UndergraduateStudent }",
    ),
    lubm(
        "rows sp?",
        "SELECT ?o WHERE { <http://www.Department0.University0.edu/FullProfessor0> ub:teacherOf ?o }",
    ),
    lubm(
        "rows s?o",
        "SELECT ?p WHERE { <http://www.Department0.University0.edu/FullProfessor0> ?p d0: }",
    ),
    lubm("rows ?po", "SELECT ?s WHERE { ?s rdf:type ub:Publication }"),
    lubm(
        "ask spo",
        "ASK { <http://www.Department0.University0.edu/FullProfessor0> ub:worksFor d0: }",
    ),
];
