use spargebra::{Query, SparqlParser};

use super::*;

fn pattern(text: &str) -> GraphPattern {
    let parsed = SparqlParser::new().parse_query(text);
    match parsed.unwrap_or_else(|error| panic!("{text}: {error}")) {
        Query::Select { pattern, .. } => pattern,
        other => panic!("no SELECT: {other}"),
    }
}

/// What stands between the outermost braces, written and parsed again until nothing changes.
fn written(inner: &str) -> String {
    let text = format!("PREFIX : <http://e/> SELECT * {{ {inner} }}");
    let GraphPattern::Project { inner, .. } = pattern(&text) else {
        panic!("SELECT projects")
    };
    let once = group(&inner).expect("nothing here is refused");
    let again = format!("SELECT * {{ {once} }}");
    let GraphPattern::Project { inner, .. } = pattern(&again) else {
        panic!("SELECT projects")
    };
    assert_eq!(group(&inner).expect("as before"), once, "{again}");
    once.replace("http://e/", "")
}

#[test]
fn a_filter_sees_no_more_than_it_did() {
    assert_eq!(
        written("{ ?s :p ?o FILTER(?x > 1) } ?s :q ?x"),
        "{ ?s <p> ?o . FILTER((?x > \"1\"^^<http://www.w3.org/2001/XMLSchema#integer>)) } \
         ?s <q> ?x ."
    );
    assert_eq!(
        written("?s :q ?x OPTIONAL { { ?s :p ?o FILTER(BOUND(?x)) } }"),
        "?s <q> ?x . OPTIONAL { { ?s <p> ?o . FILTER(BOUND(?x)) } }"
    );
    assert_eq!(
        written("?s :q ?x OPTIONAL { ?s :p ?o FILTER(BOUND(?x)) }"),
        "?s <q> ?x . OPTIONAL { ?s <p> ?o . FILTER(BOUND(?x)) }"
    );
}

#[test]
fn arithmetic_keeps_its_order() {
    assert_eq!(
        written("?s :p ?a FILTER(((?a + ?a) * ?a) = (?a - (?a - ?a)))"),
        "?s <p> ?a . FILTER((((?a + ?a) * ?a) = (?a - (?a - ?a))))"
    );
    assert_eq!(
        written("?s :p ?a FILTER(!(?a = ?s) && -?a IN (?s, ?a) && NOT EXISTS { ?s :q ?a })"),
        "?s <p> ?a . FILTER((((! ((?a = ?s))) && ((- (?a)) IN (?s, ?a))) && \
         (! (EXISTS { ?s <q> ?a . } ))))"
    );
}

#[test]
fn parts_that_reach_no_further_need_no_braces() {
    for (text, expected) in [
        (
            "?a :p ?b OPTIONAL { ?b :p ?c } OPTIONAL { ?c :p ?d } ?d :p ?e",
            "?a <p> ?b . OPTIONAL { ?b <p> ?c . } OPTIONAL { ?c <p> ?d . } ?d <p> ?e .",
        ),
        (
            "?a :p ?b MINUS { ?b :p ?c } { ?a :q ?d } UNION { ?b :q ?d } UNION { ?x :r ?d }",
            "?a <p> ?b . MINUS { ?b <p> ?c . } { ?a <q> ?d . } UNION { ?b <q> ?d . } UNION \
             { ?x <r> ?d . }",
        ),
        (
            "GRAPH ?g { ?a :p ?b BIND(1 AS ?x) } VALUES (?a ?b) { (:a UNDEF) }",
            "GRAPH ?g { ?a <p> ?b . BIND(\"1\"^^<http://www.w3.org/2001/XMLSchema#integer> AS ?x) } \
             VALUES ( ?a ?b ) { ( <a> UNDEF )  }",
        ),
        (
            "SERVICE SILENT ?e { ?a :p ?b } { SELECT DISTINCT ?a { ?a :p ?b } ORDER BY ?b LIMIT 3 }",
            "SERVICE SILENT ?e { ?a <p> ?b . } { SELECT DISTINCT ?a WHERE { ?a <p> ?b . } \
             ORDER BY ASC(?b) LIMIT 3 }",
        ),
    ] {
        assert_eq!(written(text), expected);
    }
}

#[test]
fn groups_are_written_with_their_aggregates() {
    // The parser makes up names for aggregates, so this text is another each time.
    let text = group(&pattern(
        "PREFIX : <http://e/> SELECT ?a (GROUP_CONCAT(DISTINCT ?b ; SEPARATOR = '\"') AS ?t) \
         { ?a :p ?b } GROUP BY ?a HAVING(COUNT(*) > 2)",
    ))
    .expect("nothing here is refused");
    pattern(&format!("SELECT * {{ {text} }}"));
    assert!(
        text.contains("GROUP_CONCAT(DISTINCT ?b ; SEPARATOR = \"\\\"\")"),
        "{text}"
    );
    assert!(
        text.contains("COUNT(*)") && text.contains("GROUP BY ?a"),
        "{text}"
    );
    // Blank nodes of a path stay in one basic graph pattern.
    let path = written("?a :p/:q* ?b . ?b (:r|!(:s|^:t))+ [ :u ?c ]");
    assert!(!path.contains('{'), "{path}");
}

#[test]
fn extensions_are_refused_by_name() {
    for (text, feature) in [
        ("SELECT * { ?s ?p ?o LATERAL { ?s ?q ?x } }", "LATERAL"),
        ("SELECT * { ?s ?p ?o FILTER(ADJUST(?o, ?p)) }", "ADJUST"),
    ] {
        assert_eq!(
            group(&pattern(text)),
            Err(PlanError::unsupported(feature)),
            "{text}"
        );
    }
}

#[test]
fn what_is_certainly_bound_is_known() {
    let text = "PREFIX : <http://e/> SELECT * { ?a :p ?b OPTIONAL { ?b :p ?c } BIND(?b AS ?d) \
                BIND(?b + 1 AS ?e) VALUES (?f ?g) { (1 2) (UNDEF 3) } GRAPH ?h { ?i :p [] } }";
    let pattern = pattern(text);
    let mut names: Vec<&str> = certain(&pattern).iter().map(|v| v.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["a", "b", "d", "g", "h", "i"]);
    assert!(!is_plain(&pattern));
}
