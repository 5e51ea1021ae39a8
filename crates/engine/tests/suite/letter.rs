//! What queries say by the letter of the specification, where engines differ.

use jindou_engine::{Database, EngineError, QueryResults};

const DATA: &str = "PREFIX : <http://e/> INSERT DATA {
    :a :p 1, 2, 3 . :b :p 5 . :c :p 6, 7 . :a :q :b }";

fn database() -> Database {
    let database = Database::new();
    database.update(DATA).expect("an update");
    database
}

/// The solutions of a query in their order, or its triples in any, or its answer.
fn answer(database: &Database, query: &str) -> Result<Vec<String>, EngineError> {
    let short = |text: String| {
        text.replace("http://e/", "")
            .replace("^^<http://www.w3.org/2001/XMLSchema#integer>", "")
    };
    Ok(
        match database.query(&format!("PREFIX : <http://e/> {query}"))? {
            QueryResults::Solutions(solutions) => {
                let names = solutions.variables().to_vec();
                let mut rows = Vec::new();
                for solution in solutions {
                    let solution = solution?;
                    let cell =
                        |name: &String| solution.get(name).map_or("-".into(), ToString::to_string);
                    let cells: Vec<String> = names.iter().map(cell).collect();
                    rows.push(short(cells.join(" ")));
                }
                rows
            }
            QueryResults::Boolean(answer) => vec![answer.to_string()],
            QueryResults::Graph(graph) => {
                let mut triples = Vec::new();
                for triple in graph {
                    triples.push(short(triple?.to_string()));
                }
                triples.sort();
                triples
            }
        },
    )
}

#[test]
fn every_form_takes_groups() {
    let database = database();
    for (query, expected) in [
        (
            "ASK { ?s :p ?o } GROUP BY ?s HAVING (COUNT(*) > 2)",
            &["true"][..],
        ),
        (
            "ASK { ?s :p ?o } GROUP BY ?s HAVING (COUNT(*) > 3)",
            &["false"],
        ),
        ("ASK { ?s :p ?o } HAVING (SUM(?o) = 24)", &["true"]),
        (
            "CONSTRUCT { ?s :all ?n } WHERE { ?s :p ?o } GROUP BY ?s (1 AS ?n) HAVING (COUNT(*) > 1) \
             ORDER BY DESC(SUM(?o)) LIMIT 1",
            &["<c> <all> \"1\""],
        ),
        (
            "DESCRIBE ?s { ?s :p ?o } GROUP BY ?s ORDER BY DESC(COUNT(?o)) LIMIT 1",
            &[
                "<a> <p> \"1\"",
                "<a> <p> \"2\"",
                "<a> <p> \"3\"",
                "<a> <q> <b>",
            ],
        ),
        (
            "SELECT ?s { ?s :p ?o } GROUP BY ?s ORDER BY SUM(?o)",
            &["<b>", "<a>", "<c>"],
        ),
    ] {
        assert_eq!(answer(&database, query).expect(query), expected, "{query}");
    }
}

#[test]
fn columns_are_known_to_those_after_them_and_to_having() {
    let database = database();
    for (query, expected) in [
        (
            "SELECT ?s (SUM(?o) AS ?t) (?t * 2 AS ?d) { ?s :p ?o } GROUP BY ?s ORDER BY ?d",
            &["<b> \"5\" \"10\"", "<a> \"6\" \"12\"", "<c> \"13\" \"26\""][..],
        ),
        (
            "SELECT ?s (SUM(?o) AS ?t) (?t * 2 AS ?d) (COUNT(*) AS ?n) { ?s :p ?o } GROUP BY ?s \
             HAVING (?d > 10) (?n < 3)",
            &["<c> \"13\" \"26\" \"2\""],
        ),
        (
            "SELECT ?t { { SELECT (SUM(?o) AS ?t) { ?s :p ?o } GROUP BY ?s HAVING (?t < 6) } }",
            &["\"5\""],
        ),
    ] {
        assert_eq!(answer(&database, query).expect(query), expected, "{query}");
    }
}

#[test]
fn an_aggregate_has_none_inside() {
    for query in [
        "SELECT (SUM(COUNT(?o)) AS ?n) { ?s :p ?o }",
        "SELECT (1 AS ?n) { ?s :p ?o } HAVING (MAX(1 + MIN(?o)) > 0)",
        "SELECT * { ?s :p ?o FILTER(COUNT(?o) > 1) }",
    ] {
        let error = answer(&database(), query).expect_err(query);
        assert!(matches!(error, EngineError::Syntax { .. }), "{error}");
    }
}

#[test]
fn what_has_no_value_is_in_no_list_and_outside_of_none() {
    let database = database();
    for (filter, count) in [
        ("?unbound IN ()", 0),
        ("?unbound NOT IN ()", 0),
        ("(1/0) NOT IN ()", 0),
        ("?o NOT IN ()", 6),
        ("COALESCE(?unbound IN (), true)", 6),
    ] {
        let query = format!("SELECT * {{ ?s :p ?o FILTER({filter}) }}");
        assert_eq!(
            answer(&database, &query).expect(filter).len(),
            count,
            "{filter}"
        );
    }
}

#[test]
fn a_graph_that_is_absent_is_neither_copied_nor_moved() {
    let database = database();
    let all = || {
        let mut all = answer(
            &database,
            "SELECT * { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }",
        )
        .expect("an answer");
        all.sort();
        all
    };
    let before = all();
    for operation in ["COPY", "MOVE"] {
        for target in ["DEFAULT", "<http://e/g>"] {
            let text = format!("{operation} <http://e/none> TO {target}");
            let error = database.update(&text).expect_err(&text);
            assert!(matches!(error, EngineError::GraphAbsent { .. }), "{error}");
            let text = text.replacen(' ', " SILENT ", 1);
            let report = database.update(&text).expect(&text);
            assert_eq!((report.inserted, report.deleted), (0, 0), "{text}");
            assert_eq!(all(), before, "{text}");
        }
    }
    database
        .update("CREATE GRAPH <http://e/empty>; COPY <http://e/empty> TO DEFAULT")
        .expect("a graph that is there");
    assert_eq!(all(), [""; 0]);
}

#[test]
fn many_elements_side_by_side_are_no_nesting() {
    let database = database();
    let times = |part: &str, count: usize| part.repeat(count);
    let numbered = |part: &str, count: usize| -> String {
        (0..count)
            .map(|n| part.replace('#', &n.to_string()))
            .collect()
    };
    for query in [
        format!(
            "SELECT (COUNT(*) AS ?n) {{ :b :p ?o {} }}",
            times("FILTER(?o > 4)", 200)
        ),
        format!(
            "SELECT (COUNT(*) AS ?n) {{ :b :p ?o {} }}",
            times("{} ", 5000)
        ),
        format!(
            "SELECT (COUNT(*) AS ?n) {{ :b :p ?o {} }}",
            numbered("BIND(?o AS ?x#) ", 200)
        ),
        format!(
            "SELECT (COUNT(*) AS ?n) {{ :b :p ?o {} }}",
            times("VALUES ?o { 5 6 } ", 200)
        ),
        format!(
            "SELECT (COUNT(*) AS ?n) {{ :b :p ?o {} }}",
            times("OPTIONAL { ?o :p ?p } ", 100)
        ),
        format!(
            "SELECT (COUNT(*) AS ?n) {{ :b :p ?o FILTER({} false) }}",
            times("?o = 5 || ", 5000)
        ),
        format!(
            "SELECT (COUNT(*) AS ?n) {{ {{ :b :p ?o }} {} }}",
            times("UNION { :b :q ?o } ", 2000)
        ),
    ] {
        let answer = answer(&database, &query);
        assert_eq!(answer.expect(&query[..80]), ["\"1\""], "{}", &query[..80]);
    }
    let columns = numbered("(?o + # AS ?x#) ", 200);
    let query = format!("SELECT {columns} {{ :b :p ?o }}");
    assert_eq!(answer(&database, &query).expect("an answer").len(), 1);
    for query in [
        format!("ASK {{ {} }}", times("OPTIONAL { ?o :p ?p } ", 20_000)),
        format!("ASK {{ :b :p ?o {} }}", times("MINUS { ?o :p ?p } ", 600)),
    ] {
        let error = answer(&database, &query).expect_err("too high");
        let said = error.to_string();
        assert!(
            said.contains("512 patterns that build on each other"),
            "{said}"
        );
    }
}

#[test]
fn a_variable_that_is_named_again_is_one_column() {
    let database = database();
    let columns = |query: &str| {
        let query = format!("PREFIX : <http://e/> {query}");
        match database.query(&query).expect(&query) {
            QueryResults::Solutions(solutions) => solutions.variables().join(" "),
            _ => panic!("no table: {query}"),
        }
    };
    for (query, expected) in [
        ("SELECT ?s ?s { ?s :q ?o }", "s"),
        ("SELECT ?s ?s ?o ?s { ?s :q ?o }", "s o"),
        ("SELECT DISTINCT ?o ?s ?o { ?s :q ?o }", "o s"),
        ("SELECT (1 AS ?x) ?s ?x { ?s :q ?o }", "x s"),
        (
            "SELECT ?s ?s (COUNT(*) AS ?n) ?n { ?s :q ?o } GROUP BY ?s",
            "s n",
        ),
        ("SELECT * { { SELECT ?s ?s { ?s :q ?o } } }", "s"),
        ("SELECT ?o ?o { { SELECT ?s ?o ?s { ?s :q ?o } } }", "o"),
        ("SELECT ?absent ?absent ?s { ?s :q ?o }", "absent s"),
    ] {
        assert_eq!(columns(query), expected, "{query}");
        assert_eq!(answer(&database, query).expect(query).len(), 1, "{query}");
    }
    let insert = "PREFIX : <http://e/> INSERT { ?s :r ?o } WHERE { SELECT ?s ?o ?s { ?s :q ?o } }";
    database.update(insert).expect("an update");
    assert_eq!(
        answer(&database, "ASK { :a :r :b }").expect("ASK"),
        ["true"]
    );
    let refused = database
        .query("SELECT ?x (1 AS ?x) {}")
        .expect_err("a column twice");
    assert!(
        refused.to_string().contains("?x is a column twice"),
        "{refused}"
    );
}

/// Each IRI of FROM NAMED provides a named graph (SPARQL 1.1, 13.2.2), also one that no quad is in; without
/// a clause the named graphs are those with quads.
#[test]
fn a_graph_that_the_dataset_names_is_there_without_quads() {
    let database = database();
    let insert = "PREFIX : <http://e/> INSERT DATA { GRAPH :g { :x :p 1 } }";
    database.update(insert).expect("an update");
    for (query, expected) in [
        ("ASK FROM NAMED :none { GRAPH :none {} }", &["true"][..]),
        ("ASK FROM NAMED :a { GRAPH :a {} }", &["true"]),
        ("ASK FROM NAMED :none { GRAPH :g {} }", &["false"]),
        ("ASK FROM :none { GRAPH :none {} }", &["false"]),
        ("ASK { GRAPH :none {} }", &["false"]),
        ("ASK { GRAPH :g {} }", &["true"]),
        (
            "SELECT ?g FROM NAMED :none FROM NAMED :g { GRAPH ?g {} } ORDER BY ?g",
            &["<g>", "<none>"],
        ),
        (
            "SELECT ?g ?o FROM NAMED :none FROM NAMED :g { GRAPH ?g { OPTIONAL { :x :p ?o } } } ORDER BY ?g",
            &["<g> \"1\"", "<none> -"],
        ),
        (
            "SELECT ?g ?y FROM NAMED :none { GRAPH ?g { :z :p* ?y } }",
            &["<none> <z>"],
        ),
        (
            "SELECT ?g ?y FROM NAMED :none { GRAPH ?g { BIND(1 AS ?y) MINUS { ?s ?p ?o } } }",
            &["<none> \"1\""],
        ),
        (
            "SELECT ?g FROM NAMED :none { VALUES ?g { :none :g } GRAPH ?g {} }",
            &["<none>"],
        ),
        ("SELECT ?g FROM NAMED :none { GRAPH ?g { ?s ?p ?o } }", &[]),
    ] {
        assert_eq!(answer(&database, query).unwrap(), expected, "{query}");
    }
}
