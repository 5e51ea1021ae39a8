use jindou_syntax::tree::Form;
use jindou_syntax::{Options, parse_query};

use super::*;

fn group(text: &str) -> Group<'_> {
    let parsed = parse_query(text, Options::default());
    match parsed
        .unwrap_or_else(|error| panic!("{text}: {error}"))
        .form
    {
        Form::Select(select) => select.group,
        other => panic!("no SELECT: {other:?}"),
    }
}

/// What stands between the outermost braces, written and parsed again until nothing changes.
fn written(inner: &str) -> String {
    let text = format!("BASE <http://e/> PREFIX : <http://e/> SELECT * {{ {inner} }}");
    let once = contents(&group(&text), false).pattern;
    let again = format!("SELECT * {{ {once} }}");
    assert_eq!(contents(&group(&again), false).pattern, once, "{again}");
    once.replace("http://e/", "")
}

#[test]
fn groups_keep_their_braces() {
    for text in [
        "{ ?s <p> ?o . FILTER((?x > ?o)) } ?s <q> ?x .",
        "?s <q> ?x . OPTIONAL { { ?s <p> ?o . FILTER(BOUND(?x)) } }",
        "?s <q> ?x . OPTIONAL { ?s <p> ?o . FILTER(BOUND(?x)) }",
        "?a <p> ?b . MINUS { ?b <p> ?c . } { ?a <q> ?d . } UNION { ?b <q> ?d . } UNION \
         { ?x <r> ?d . }",
        "GRAPH ?g { ?a <p> ?b . BIND(?b AS ?x) } VALUES ( ?a ?b ) { ( <a> UNDEF ) }",
        "SERVICE SILENT ?e { ?a <p> ?b . } { SELECT DISTINCT ?a WHERE { ?a <p> ?b . } \
         ORDER BY ASC(?b) LIMIT 3 }",
        "{ SELECT ?a (COUNT(*) AS ?n) WHERE { ?a <p> ?b . } GROUP BY ?a (STR(?b) AS ?c) \
         HAVING (COUNT(*)) OFFSET 2 }",
        "{ SELECT * WHERE { ?a <p> ?b . } VALUES ( ) { ( ) ( ) } }",
    ] {
        assert_eq!(written(text), text);
    }
}

#[test]
fn every_operation_has_its_brackets() {
    for (text, expected) in [
        (
            "((?a + ?a) * ?a) = (?a - (?a - ?a) + 1)",
            "(((?a + ?a) * ?a) = (?a - (?a - ?a) + \
             \"1\"^^<http://www.w3.org/2001/XMLSchema#integer>))",
        ),
        (
            "!(?a = ?s) && -?a NOT IN (?s, ?a) && NOT EXISTS { ?s :q ?a }",
            "((! ((?a = ?s))) && ((- (?a)) NOT IN (?s, ?a)) && (NOT EXISTS { ?s <q> ?a . } ))",
        ),
        (
            "encode_for_uri(?a) != Substr(\"\\\"\", :f(?a), 2.5) || isIRI(?s)",
            "((ENCODE_FOR_URI(?a) != SUBSTR(\"\\\"\", <f>(?a), \
             \"2.5\"^^<http://www.w3.org/2001/XMLSchema#decimal>)) || ISIRI(?s))",
        ),
    ] {
        let text = format!("?s :p ?a FILTER({text})");
        assert_eq!(written(&text), format!("?s <p> ?a . FILTER({expected})"));
    }
    let text = "{ SELECT (GROUP_CONCAT(DISTINCT ?b ; SEPARATOR = '\"') AS ?t) { ?a :p ?b } }";
    assert!(written(text).contains("GROUP_CONCAT(DISTINCT ?b ; SEPARATOR = \"\\\"\")"));
}

#[test]
fn paths_and_blank_nodes_stay_in_one_group() {
    let path = written("?a :p/:q* ?b . ?b (:r|!(:s|^:t))+ [ :u ?c ; ^:v (1) ]");
    assert!(!path.contains('{'), "{path}");
    let path = written("?a ^(:p?)/!a ?b");
    let type_ = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>";
    assert_eq!(path, format!("?a ((^(<p>?)) / !({type_})) ?b ."));
}

#[test]
fn what_is_certainly_bound_is_known() {
    let text = "PREFIX : <http://e/> SELECT * { ?a :p ?b OPTIONAL { ?b :p ?c } BIND(?b AS ?d) \
                BIND(?b + 1 AS ?e) VALUES (?f ?g) { (1 2) (UNDEF 3) } GRAPH ?h { ?i :p [] } \
                { ?j :p ?k } UNION { ?k :p ?l } { SELECT ?m (1 AS ?n) { ?m :p ?o } } \
                SERVICE SILENT ?q { ?r :p ?r } MINUS { ?s :p ?a } }";
    let group = group(text);
    let mut names: Vec<&str> = certain(&group).into_iter().collect();
    names.sort_unstable();
    assert_eq!(names, ["a", "b", "d", "g", "h", "i", "k", "m", "n"]);
    let all = visible(&group).join("");
    assert_eq!(all, "abcdefghijklmnqr");
    assert!(!is_plain(&group));
}

#[test]
fn values_are_given_to_the_variables_of_each_group() {
    let text = "SELECT * { ?a <a:p> ?b FILTER(?x > 1 && EXISTS { ?y <a:p> ?z }) OPTIONAL { ?b ?p ?c \
                FILTER(?x = ?c) } { SELECT ?d { ?d <a:p> ?x } } { SELECT ?e { ?e <a:p> ?d } } }";
    let written = contents(&group(text), true);
    let (written, openings) = (written.pattern, written.openings);
    let openings: Vec<(&str, String)> = openings
        .iter()
        .map(|(at, names)| (&written[*at..at + 3], names.join("")))
        .collect();
    let expected = [
        ("?a ", "abxyz"),
        ("?y ", "yz"),
        ("?b ", "bpcx"),
        ("?d ", "d"),
        ("?e ", "e"),
    ];
    let expected = expected.map(|(text, names)| (text, names.to_owned()));
    assert_eq!(openings, expected);
}

#[test]
fn a_name_that_nothing_binds_is_found() {
    assert_eq!(unused("?x ?row1 ?rows0"), "row0");
    assert_eq!(unused("?row0 ?row2 row1"), "row3");
}
