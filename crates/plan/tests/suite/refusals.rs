//! What is not supported is refused by name, and errors say where they are.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::common::Flat;
use jindou_plan::{PlanError, Planner, PlannerConfig, plan};

fn refused(text: &str) -> PlanError {
    plan(text, None, None, &Flat).expect_err(text)
}

#[test]
fn unsupported_features_are_named() {
    for (text, feature, line, column) in [
        (
            "SELECT (<http://e/f>(?x) AS ?y) { ?x ?p ?o }",
            "custom function <http://e/f>",
            1,
            9,
        ),
        (
            "ASK {\n ?é ?p <<( <a:s> <a:p> ?o )>> }",
            "triple terms",
            2,
            8,
        ),
        ("ASK { << <a:s> <a:p> ?o >> ?p ?x }", "triple terms", 1, 7),
        ("ASK { ?s ?p ?o {| ?q ?x |} }", "triple terms", 1, 16),
        (
            "ASK { ?x ?p 'a'@en--ltr }",
            "literals with a base direction",
            1,
            13,
        ),
        ("SELECT (langdir (?x) AS ?y) {}", "LANGDIR", 1, 9),
        ("ASK { FILTER(!isTRIPLE(?x)) }", "ISTRIPLE", 1, 15),
    ] {
        let feature = feature.to_owned();
        let expected = PlanError::Unsupported {
            feature,
            line,
            column,
        };
        assert_eq!(refused(text), expected, "{text}");
    }
}

#[test]
fn updates_are_told_from_queries() {
    for text in [
        "INSERT DATA { <a:a> <a:b> <a:c> }",
        "PREFIX ex: <http://e/> DELETE WHERE { ?x ex:p ?y }",
        "INSERT DATA { <a:a> <a:b> TRUE }",
        "CLEAR ALL",
    ] {
        assert_eq!(refused(text), PlanError::Update, "{text}");
    }
}

#[test]
fn a_plan_that_nobody_wants_any_more_is_given_up() {
    let chain = "<http://e/p>/".repeat(300);
    let text = format!("ASK {{ ?s {chain}<http://e/p> ?o }}");
    let planner = Planner::new(&PlannerConfig::default());
    for patience in [0, 1, 100] {
        let asked = AtomicUsize::new(0);
        let is_over = || asked.fetch_add(1, Relaxed) >= patience;
        let made = planner.prepare_until(&text, None, None, &Flat, &is_over);
        assert_eq!(made.err(), Some(PlanError::Interrupted));
        // Once over, nobody is asked again: what is left is not planned with care.
        assert!(asked.load(Relaxed) <= patience + 2);
    }
    assert_eq!(planner.cached_plans(), 0);
    assert!(planner.prepare(&text, None, None, &Flat).is_ok());
}

#[test]
fn syntax_errors_have_a_position() {
    let PlanError::Syntax { line, column, .. } = refused("SELECT *\nWHERE { ?x ?y }") else {
        panic!("not a syntax error");
    };
    // The parser tells the furthest place that it looked at.
    assert_eq!(line, 2);
    assert!((15..=16).contains(&column), "{column}");
    for text in [
        "",
        "   # only a comment",
        "SELECT",
        "SELECT * { ?x ex:p ?y }",
        "hello",
    ] {
        assert!(matches!(refused(text), PlanError::Syntax { .. }), "{text}");
    }
}

#[test]
fn syntax_errors_can_be_read() {
    let said = |text: &str| match refused(text) {
        PlanError::Syntax { message, .. } => message,
        other => panic!("{text}: {other}"),
    };
    assert_eq!(
        said("SELECT * { ?s ?p }"),
        "expected a term (variable, IRI, literal or blank node) in the object of a triple, found '}'"
    );
    assert_eq!(
        said("SELECT * { ?s ?p ?o"),
        "expected '.', ';', ',' or '}' in a graph pattern, found the end of the query"
    );
    assert_eq!(
        said("SELECT ?x (1 AS ?x) { ?y ?p ?o }"),
        "?x is a column twice"
    );
}

#[test]
fn errors_have_a_hint() {
    let PlanError::Syntax { hint, .. } = refused("SELCT * {}") else {
        panic!("not a syntax error");
    };
    assert_eq!(hint.as_deref(), Some("did you mean SELECT?"));
    let said = refused("SELCT * {}").to_string();
    assert!(said.ends_with("; did you mean SELECT?"), "{said}");
}

#[test]
fn an_iri_that_looks_like_comparisons_is_told() {
    let text = "SELECT * {\n ?x <a:(p)> ?y # <(a)>\n FILTER(?é=<a:b,c>&&?x<?a&&?b>?y) }";
    for base in [None, Some("http://e/")] {
        let error = plan(text, base, None, &Flat).expect_err(text);
        assert_eq!(
            error.to_string(),
            "syntax error at line 3, column 23: <?a&&?b> is read as an IRI; \
             spaces around < and > make comparisons of it"
        );
    }
    let spaced = text.replace("?x<?a&&?b>?y", "?x < ?a&&?b > ?y");
    assert!(plan(&spaced, None, None, &Flat).is_ok(), "{spaced}");
}

#[test]
fn an_error_behind_a_boolean_in_upper_case_is_at_its_place() {
    let place = |text: &str| match refused(text) {
        PlanError::Syntax {
            line,
            column,
            message,
            ..
        } => (line, column, message),
        other => panic!("{text}: {other}"),
    };
    let text = "SELECT * {\n ?é ?p TRUE FILTER(False) ?s ?p }";
    assert_eq!(
        place(text),
        place(&text.replace("TRUE", "true").replace("False", "false"))
    );
    assert_eq!((place(text).0, place(text).1), (2, 33));
}

#[test]
fn a_bad_base_is_told() {
    let error = plan("ASK {}", Some("not an iri"), None, &Flat).expect_err("a bad base");
    assert!(matches!(error, PlanError::Base { .. }), "{error}");
}

#[test]
fn deep_texts_are_refused_or_planned_but_never_overflow() {
    let nested = |depth: usize, open: &str, middle: &str, close: &str| {
        format!("{}{middle}{}", open.repeat(depth), close.repeat(depth))
    };
    for text in [
        format!("ASK {}", nested(100_000, "{", "", "}")),
        format!("SELECT * {{ FILTER({}) }}", nested(100_000, "(", "1", ")")),
        format!("SELECT * {{ FILTER({}) }}", nested(600, "1 + (", "1", ")")),
        format!(
            "SELECT * {{ ?x ?y ?z {} }}",
            nested(2000, "OPTIONAL { ?x ?y ?z ", "", "}")
        ),
        format!(
            "SELECT * {{ ?x {} ?y }}",
            nested(100_000, "(", "<p:p>", ")*")
        ),
        format!("SELECT * {{ ?x (<p:p>{}) ?y }}", "|<p:p>".repeat(5000)),
        format!("SELECT * {{ ?x (<p:p>{})* ?y }}", "/<p:p>".repeat(20_000)),
    ] {
        let error = refused(&text);
        assert!(matches!(error, PlanError::TooLarge { .. }), "{error}");
    }
    let many = |count: usize, pattern: fn(usize) -> String| -> String {
        (0..count).map(pattern).collect()
    };
    let error = refused(&format!(
        "SELECT * {{ {} }}",
        many(5000, |i| format!("?x <p:{i}> ?y . "))
    ));
    assert!(matches!(error, PlanError::TooLarge { .. }), "{error}");
    for text in [
        format!(
            "SELECT * {{ {} }}",
            many(1000, |i| format!("?x <p:{i}> ?y{i} . "))
        ),
        format!(
            "SELECT * {{ {} }}",
            many(60, |i| format!("?x <p:{i}> ?y{i} . "))
        ),
        format!(
            "SELECT * {{ {} }}",
            many(1000, |i| format!("?x{i} <p:p> ?x{} . ", i + 1))
        ),
        format!(
            "SELECT * {{ {} }}",
            many(200, |i| format!("?x{} ?p ?y{i} . ", i % 9))
        ),
        format!(
            "SELECT * {{ ?x (<p:p>{}) ?y . ?y <p:q> ?z }}",
            "|<p:p>".repeat(1000)
        ),
        format!("SELECT * {{ ?x <p:p>{} ?y }}", "/<p:p>*".repeat(200)),
        format!("SELECT * {{ ?x {} ?y }}", nested(100, "(", "<p:p>", ")+")),
        format!("SELECT * {{ FILTER(1{}) }}", " || 1".repeat(20_000)),
        format!("SELECT * {{ FILTER(1{}) }}", " + 1".repeat(20_000)),
        format!("SELECT * {{ FILTER(1{}) }}", " * 1 / 1".repeat(10_000)),
        format!(
            "SELECT * {{ ?x ?y ?z {} }}",
            "OPTIONAL { ?x ?y ?z }".repeat(500)
        ),
        format!(
            "SELECT * {{ ?x ?y ?z {} }}",
            "MINUS { ?x ?y ?w }".repeat(500)
        ),
        format!(
            "SELECT * {{ ?x ?y ?z {} }}",
            "FILTER EXISTS { ?x ?y ?w }".repeat(500)
        ),
        format!(
            "SELECT * {{ {} }}",
            nested(250, "{ ?x ?y ?z OPTIONAL ", "{}", "}")
        ),
        format!("SELECT * {{ FILTER({}) }}", nested(250, "!(", "1", ")")),
        format!("SELECT * {{ FILTER(1{}) }}", " + 1".repeat(500)),
        format!("SELECT * {{ FILTER({}) }}", "1 - ".repeat(500) + "1"),
        format!("SELECT * {{ {{}} {} }}", "UNION { ?x ?y ?z }".repeat(500)),
        format!(
            "SELECT * {{ {} }}",
            nested(100, "{ ?x ?y ?z OPTIONAL ", "{}", "}")
        ),
        format!(
            "SELECT * {{ {} }}",
            nested(100, "?x ?y ?z FILTER EXISTS {", "", "}")
        ),
        format!(
            "SELECT * {{ {} }}",
            nested(
                60,
                "?x ?y ?z FILTER EXISTS { {} MINUS { ?z ?x ?w MINUS {?w ?x ?z} } OPTIONAL { ?x ?y ?z { SELECT DISTINCT ?y { ?x ?y ?z } } } ",
                "",
                "}"
            )
        ),
        format!(
            "SELECT * {{ {} }}",
            nested(
                60,
                "{ SELECT DISTINCT ?x { ?x ?y ?z MINUS { ?y ?z ?w ",
                "",
                "} } }"
            )
        ),
        format!(
            "SELECT * {{ {} }}",
            nested(
                60,
                "?x ?y ?z OPTIONAL { ?x ?y ?w FILTER(EXISTS { ?x ?z ?w } || ?w = 1) } FILTER NOT EXISTS { ",
                "",
                "}"
            )
        ),
    ] {
        plan(&text, None, None, &Flat).expect("a plan");
    }
}

#[test]
fn paths_of_too_many_edges_are_refused() {
    let path = |edges: usize| {
        let edges = vec!["<p:p>"; edges].join("|");
        format!("SELECT * {{ ?x ({edges})* ?y }}")
    };
    let error = refused(&path(257));
    assert!(
        matches!(error, PlanError::TooLarge { limit: 256, .. }),
        "{error}"
    );
    plan(&path(256), None, None, &Flat).expect("a plan");
}

#[test]
fn rows_of_more_columns_than_can_be_numbered_are_refused() {
    let columns = PlanError::TooLarge {
        what: "columns",
        limit: 65535,
    };
    let order = |keys: usize| format!("SELECT * {{}} ORDER BY {}", "(1)".repeat(keys));
    assert_eq!(refused(&order(70_000)), columns);
    assert_eq!(refused(&order(65_536)), columns);
    assert!(plan(&order(65_535), None, None, &Flat).is_ok());
    // The columns of the pattern count too, and those that are no keys.
    let nested = format!(
        "ASK {{ {{ SELECT * {{ ?s ?p ?o }} ORDER BY {} LIMIT 1 }} }}",
        "(1)".repeat(65_533)
    );
    assert_eq!(refused(&nested), columns);
    let variables: String = (0..65_535)
        .map(|number| format!("(1 AS?a{number})"))
        .collect();
    assert_eq!(
        refused(&format!("SELECT DISTINCT {variables} {{}}")),
        columns
    );
    let optional = format!("SELECT {variables} {{ OPTIONAL {{}} }}");
    assert_eq!(refused(&optional), columns);
    // Variables are no keys that are computed.
    let variables = format!("SELECT * {{ ?s ?p ?o }} ORDER BY {}", "?s ".repeat(70_000));
    assert!(plan(&variables, None, None, &Flat).is_ok());
}

#[test]
fn more_patterns_to_join_than_operators_may_be_nested_are_refused() {
    let patterns = PlanError::TooLarge {
        what: "patterns to join",
        limit: 65535,
    };
    for part in [
        "SERVICE<a:>{}",
        "GRAPH<a:>{}",
        "{}UNION{}",
        "VALUES?a{UNDEF}",
    ] {
        assert_eq!(
            refused(&format!("ASK {{ {} }}", part.repeat(65_536))),
            patterns,
            "{part}"
        );
    }
}
