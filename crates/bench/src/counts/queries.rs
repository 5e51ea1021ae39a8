//! The queries: counts of what is at the ends of edges, and closures.

/// What a query asks.
pub(super) type Named = (&'static str, &'static str);

/// Counts of ends, of kinds and groups of them.
pub(super) const COUNTS: [Named; 12] = [
    ("subjects", "SELECT (COUNT(DISTINCT ?s) AS ?n) { ?s ?p ?o }"),
    ("objects", "SELECT (COUNT(DISTINCT ?o) AS ?n) { ?s ?p ?o }"),
    (
        "predicates",
        "SELECT (COUNT(DISTINCT ?p) AS ?n) { ?s ?p ?o }",
    ),
    (
        "literals",
        "SELECT (COUNT(DISTINCT ?o) AS ?n) { ?s ?p ?o FILTER(isLiteral(?o)) }",
    ),
    (
        "IRIs",
        "SELECT (COUNT(DISTINCT ?o) AS ?n) { ?s ?p ?o FILTER(isIRI(?o)) }",
    ),
    (
        "blank nodes",
        "SELECT (COUNT(DISTINCT ?s) AS ?n) { ?s ?p ?o FILTER(isBlank(?s)) }",
    ),
    ("statements", "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"),
    (
        "by predicate",
        "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p",
    ),
    (
        "subjects by predicate",
        "SELECT ?p (COUNT(DISTINCT ?s) AS ?n) { ?s ?p ?o } GROUP BY ?p",
    ),
    (
        "by class",
        "SELECT ?c (COUNT(?s) AS ?n) { ?s a ?c } GROUP BY ?c",
    ),
    (
        "by datatype",
        "SELECT ?d (COUNT(?o) AS ?n) { ?s ?p ?o FILTER(isLiteral(?o)) } GROUP BY (DATATYPE(?o) AS ?d)",
    ),
    (
        "by language",
        "SELECT ?l (COUNT(?o) AS ?n) { ?s ?p ?o FILTER(isLiteral(?o)) } GROUP BY (LANG(?o) AS ?l)",
    ),
];

/// Closures over the graphs of [`super::made`].
pub(super) const CLOSURES: [Named; 6] = [
    (
        "knows+",
        "PREFIX m: <http://made/> SELECT (COUNT(*) AS ?n) { ?s m:knows+ ?o }",
    ),
    (
        "knows*",
        "PREFIX m: <http://made/> SELECT (COUNT(*) AS ?n) { ?s m:knows* ?o }",
    ),
    (
        "broader+",
        "PREFIX m: <http://made/> SELECT (COUNT(*) AS ?n) { ?s m:broader+ ?o }",
    ),
    (
        "(knows|broader)+",
        "PREFIX m: <http://made/> SELECT (COUNT(*) AS ?n) { ?s (m:knows|m:broader)+ ?o }",
    ),
    (
        "behind a join",
        "PREFIX m: <http://made/> SELECT (COUNT(*) AS ?n) { ?a m:knows ?b . ?b m:knows ?c . ?c m:knows+ ?o }",
    ),
    (
        "from one",
        "PREFIX m: <http://made/> SELECT (COUNT(*) AS ?n) { m:c0 m:broader+ ?o }",
    ),
];
