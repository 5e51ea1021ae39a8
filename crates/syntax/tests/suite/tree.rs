//! What the tree says of a text, where it is easily wrong.

use jindou_syntax::tree::{
    Element, Expression, ExpressionKind, Factor, Form, Group, Literal, LiteralKind, Name,
    OperationKind, Path, Predicate, Projection, Query, Select, Sign, Span, Term,
};
use jindou_syntax::{Error, Options, parse_query, parse_update};

const PREFIXES: &str = "PREFIX : <http://e/> ";

fn query(text: &str) -> Query<'_> {
    let options = Options {
        base: Some("http://base/a/b"),
        ..Options::default()
    };
    parse_query(text, options).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> String {
    match parse_query(text, Options::default()) {
        Ok(query) => panic!("{text}: {query:?}"),
        Err(error) => error.to_string(),
    }
}

fn select<'q, 't>(query: &'q Query<'t>) -> &'q Select<'t> {
    match &query.form {
        Form::Select(select) => select,
        form => panic!("{form:?}"),
    }
}

fn elements<'q, 't>(query: &'q Query<'t>) -> &'q [Element<'t>] {
    match &query.form {
        Form::Select(select) => &select.group.elements,
        Form::Ask { group, .. } | Form::Construct { group, .. } => &group.elements,
        form => panic!("{form:?}"),
    }
}

/// A term, with blank nodes by their numbers.
fn said(term: &Term<'_>) -> String {
    match term {
        Term::Variable(variable) => format!("?{}", variable.name),
        Term::Iri(iri) => {
            let rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
            iri.value.replace(rdf, "rdf:").replace("http://e/", ":")
        }
        Term::Literal(literal) => format!("'{}'", literal.value),
        Term::Blank(blank) => format!("_:{}", blank.id),
        Term::Triple(triple) => {
            let terms: Vec<String> = triple.terms.iter().map(said).collect();
            format!("<<({})>>", terms.join(" "))
        }
    }
}

fn triples(text: &str) -> Vec<String> {
    let text = format!("{PREFIXES}ASK {{ {text} }}");
    let query = query(&text);
    let [Element::Triples(triples)] = elements(&query) else {
        panic!("{query:?}");
    };
    let said = triples.iter().map(|triple| {
        let predicate = match &triple.predicate {
            Predicate::Name(Name::Variable(variable)) => format!("?{}", variable.name),
            Predicate::Name(Name::Iri(iri)) => said(&Term::Iri(iri.clone())),
            Predicate::Path(path) => format!("{path:?}")
                .split(['(', ' '])
                .next()
                .map_or_else(String::new, str::to_owned),
        };
        format!(
            "{} {predicate} {}",
            said(&triple.subject),
            said(&triple.object)
        )
    });
    said.collect()
}

#[test]
fn abbreviations_are_written_out() {
    assert_eq!(
        triples("?s a 1, 2 ; :p 3 ."),
        ["?s rdf:type '1'", "?s rdf:type '2'", "?s :p '3'"]
    );
    assert_eq!(triples("[ :p 1 ] :q 2"), ["_:1 :p '1'", "_:1 :q '2'"]);
    assert_eq!(
        triples("?s :p (1 2)"),
        [
            "_:1 rdf:first '1'",
            "_:1 rdf:rest _:2",
            "_:2 rdf:first '2'",
            "_:2 rdf:rest rdf:nil",
            "?s :p _:1"
        ]
    );
    assert_eq!(triples("() :p ()"), ["rdf:nil :p rdf:nil"]);
    assert_eq!(
        triples("_:a :p _:b . _:a :q []"),
        ["_:1 :p _:2", "_:1 :q _:3"]
    );
}

#[test]
fn reified_triples_and_annotations_are_written_out() {
    assert_eq!(
        triples("<< ?s :p 1 >> :q 2"),
        ["_:1 rdf:reifies <<(?s :p '1')>>", "_:1 :q '2'"]
    );
    assert_eq!(
        triples("<< ?s :p 1 ~ :r >>"),
        [":r rdf:reifies <<(?s :p '1')>>"]
    );
    assert_eq!(
        triples("?s :p 1 ~ :r {| :q 2 |} ~ {| :q 3 |}, 4"),
        [
            "?s :p '1'",
            ":r rdf:reifies <<(?s :p '1')>>",
            ":r :q '2'",
            "_:1 rdf:reifies <<(?s :p '1')>>",
            "_:1 :q '3'",
            "?s :p '4'",
        ]
    );
    assert_eq!(
        triples("?s :p 1 {| :q 2 |} {| :q 3 ; |} ; :x 5"),
        [
            "?s :p '1'",
            "_:1 rdf:reifies <<(?s :p '1')>>",
            "_:1 :q '2'",
            "_:2 rdf:reifies <<(?s :p '1')>>",
            "_:2 :q '3'",
            "?s :x '5'",
        ]
    );
    assert_eq!(
        triples("?s :p <<( ?a :b <<( ?c :d 'e' )>> )>>"),
        ["?s :p <<(?a :b <<(?c :d 'e')>>)>>"]
    );
}

#[test]
fn filters_do_not_end_a_basic_graph_pattern() {
    let text = format!(
        "{PREFIXES}SELECT * {{ _:a :p ?x FILTER(?x) _:a :q ?y . FILTER EXISTS {{ ?x :r _:c }} ?y :p _:a OPTIONAL {{}} ?z :p 1 }}"
    );
    let query = query(&text);
    let kinds: Vec<&str> = elements(&query)
        .iter()
        .map(|element| match element {
            Element::Triples(triples) if triples.len() == 3 => "three triples",
            Element::Triples(_) => "triples",
            Element::Filter(_) => "filter",
            Element::Optional(_) => "optional",
            _ => "other",
        })
        .collect();
    assert_eq!(
        kinds,
        ["three triples", "filter", "filter", "optional", "triples"]
    );
    for text in [
        "ASK { _:a ?p ?o OPTIONAL { _:a ?p ?o } }",
        "ASK { _:a ?p ?o BIND(1 AS ?x) _:a ?p ?o }",
        "ASK { _:a ?p ?o { _:b ?p ?o } _:a ?p ?o }",
        "ASK { { _:a ?p ?o } UNION { _:a ?p ?o } }",
        "ASK { _:a ?p ?o FILTER EXISTS { _:a ?p ?o } }",
    ] {
        assert_eq!(
            refused(text),
            "the blank node _:a is used in two graph patterns",
            "{text}"
        );
    }
}

fn filter(text: &str) -> Expression<'static> {
    let text = format!("{PREFIXES}ASK {{ FILTER({text}) }}");
    let query = query(Box::leak(text.into_boxed_str()));
    let [Element::Filter(filter)] = elements(&query) else {
        panic!("{query:?}");
    };
    filter.clone()
}

fn written(expression: &Expression<'_>) -> String {
    use ExpressionKind as E;
    let list = |list: &[Expression<'_>], sign: &str| {
        let parts: Vec<String> = list.iter().map(written).collect();
        format!("({})", parts.join(sign))
    };
    match &expression.kind {
        E::Variable(variable) => variable.name.to_owned(),
        E::Iri(iri) => iri.value.to_string(),
        E::Literal(literal) => literal.value.to_string(),
        E::Or(operands) => list(operands, "||"),
        E::And(operands) => list(operands, "&&"),
        E::Compare(_, operands) => list(&operands[..], "?"),
        E::Sum(first, rest) => {
            let rest = rest.iter().map(|(sign, operand)| {
                let sign = if *sign == Sign::Plus { '+' } else { '-' };
                format!("{sign}{}", written(operand))
            });
            format!("({}{})", written(first), rest.collect::<String>())
        }
        E::Product(first, rest) => {
            let rest = rest.iter().map(|(factor, operand)| {
                let sign = if *factor == Factor::Times { '*' } else { '/' };
                format!("{sign}{}", written(operand))
            });
            format!("({}{})", written(first), rest.collect::<String>())
        }
        E::Not(operand) => format!("!{}", written(operand)),
        E::Signed(Sign::Plus, operand) => format!("+{}", written(operand)),
        E::Signed(Sign::Minus, operand) => format!("-{}", written(operand)),
        E::In {
            negated,
            operand,
            list: items,
        } => {
            format!(
                "({} {} {})",
                written(operand),
                if *negated { "not in" } else { "in" },
                list(items, ",")
            )
        }
        E::Call(function, arguments) => format!("{function:?}{}", list(arguments, ",")),
        other => format!("{other:?}"),
    }
}

#[test]
fn expressions_are_chains() {
    for (text, tree) in [
        ("?x || ?y || ?z && ?a", "(x||y||(z&&a))"),
        ("?x - 1 - 2", "(x-1-2)"),
        ("?x -1", "(x-1)"),
        ("?x -1*2/3 +4", "(x-(1*2/3)+4)"),
        ("?x*-1", "(x*-1)"),
        ("- -1", "--1"),
        ("-?x", "-x"),
        ("!!?x", "!!x"),
        ("! ! !?x", "!x"),
        ("!!!!!?x = 1", "(!x?1)"),
        (
            "?x IN (1, 2) && ?y NOT IN ()",
            "((x in (1,2))&&(y not in ()))",
        ),
        ("(?x + 1) * 2", "((x+1)*2)"),
        ("?x < 1", "(x?1)"),
        ("?x<<http://e/a>", "(x?http://e/a)"),
        ("STR(?x)<1 &&2>1", "((Str(x)?1)&&(2?1))"),
        ("TRUE||False", "(true||false)"),
        ("COALESCE()", "Coalesce()"),
    ] {
        assert_eq!(written(&filter(text)), tree, "{text}");
    }
    let sum = filter("?x -1");
    let ExpressionKind::Sum(_, rest) = &sum.kind else {
        panic!("{sum:?}");
    };
    let ExpressionKind::Literal(Literal { span, kind, .. }) = &rest[0].1.kind else {
        panic!("{sum:?}");
    };
    assert_eq!((span.end - span.start, kind), (1, &LiteralKind::Integer));
}

#[test]
fn places_are_those_of_the_text() {
    let text = "SELECT (1+ 2 AS ?x) { ?s <p> 'o'@EN . FILTER((?s)) } LIMIT 3";
    let query = query(text);
    let of = |span: Span| &text[span.start as usize..span.end as usize];
    let select = select(&query);
    assert_eq!(of(select.span), text);
    assert_eq!(of(select.group.span), "{ ?s <p> 'o'@EN . FILTER((?s)) }");
    let Projection::Columns(columns) = &select.projection else {
        panic!("{select:?}");
    };
    assert_eq!(of(columns[0].variable.span), "?x");
    assert_eq!(
        columns[0].expression.as_ref().map(|sum| of(sum.span)),
        Some("1+ 2")
    );
    let [Element::Triples(triples), Element::Filter(filter)] = &select.group.elements[..] else {
        panic!("{select:?}");
    };
    assert_eq!(of(filter.span), "?s");
    let Predicate::Name(Name::Iri(iri)) = &triples[0].predicate else {
        panic!("{triples:?}");
    };
    assert_eq!((of(iri.span), &*iri.value), ("<p>", "http://base/a/p"));
    let Term::Literal(literal) = &triples[0].object else {
        panic!("{triples:?}");
    };
    assert_eq!(of(literal.span), "'o'@EN");
    assert!(matches!(&literal.kind, LiteralKind::Language { tag, direction: None } if tag == "en"));
}

#[test]
fn stars_show_what_is_in_scope_in_the_order_of_the_text() {
    for (text, shown) in [
        ("SELECT * { ?s ?p ?o }", "s p o"),
        ("SELECT * { ?o ?p ?s OPTIONAL { ?s ?q ?r } }", "o p s q r"),
        (
            "SELECT * { ?s ?p ?o MINUS { ?a ?b ?c } FILTER(?d) }",
            "s p o",
        ),
        (
            "SELECT * { FILTER EXISTS { ?a ?b ?c } BIND(?x AS ?y) VALUES (?v ?w) {} }",
            "y v w",
        ),
        (
            "SELECT * { { SELECT ?z (1 AS ?y) { ?x ?z 1 } } ?x ?q 2 }",
            "z y x q",
        ),
        (
            "SELECT * { { SELECT * { ?x ?z 1 FILTER(?f) } } GRAPH ?g { ?s ?x 1 } }",
            "x z g s",
        ),
        ("SELECT * { ?s ?p ?o } VALUES ?v { 1 }", "s p o v"),
        (
            "SELECT * { SERVICE ?e { ?s ?p <<( ?t ?u 'v' )>> } }",
            "e s p t u",
        ),
        ("SELECT * { ?s <a>/<b> ?o . ?s ?p [ ?q ?r ] }", "s o p q r"),
        ("SELECT * { { ?a ?b 1 } UNION { ?c ?b 2 } }", "a b c"),
    ] {
        let query = query(text);
        let Projection::All(variables) = &select(&query).projection else {
            panic!("{query:?}");
        };
        let names: Vec<&str> = variables.iter().map(|variable| variable.name).collect();
        assert_eq!(names.join(" "), shown, "{text}");
    }
}

#[test]
fn variables_are_judged_by_their_scope() {
    for text in [
        "SELECT (1 AS ?o) { ?s ?p 1 MINUS { ?o ?p 1 } }",
        "SELECT * { ?s ?p 1 MINUS { ?o ?p 1 } BIND(1 AS ?o) }",
        "SELECT * { BIND(1 AS ?x) { BIND(2 AS ?x) } }",
        "SELECT * { { SELECT ?s { ?s ?p ?o } } BIND(1 AS ?o) }",
        "SELECT (SUM(?x) AS ?s) (?s / 2 AS ?h) { ?a ?b ?x }",
        "SELECT ?a (SUM(?x) AS ?s) { ?a ?b ?x } GROUP BY ?a HAVING(?s > 1) ORDER BY ?s",
        "SELECT (?k + 1 AS ?l) { ?a ?b ?x } GROUP BY (?x AS ?k)",
        "SELECT ?x { ?a ?b ?x } GROUP BY (?x)",
        "SELECT (123 AS ?z) { ?s <http://e/p> ?z } GROUP BY ?s",
        "ASK { ?s ?p ?o } GROUP BY ?s HAVING(COUNT(*) > 1) ORDER BY SUM(?o) LIMIT 1",
        "DESCRIBE ?s { ?s ?p ?o } GROUP BY ?s HAVING(COUNT(*) > 1)",
        "CONSTRUCT WHERE { ?s ?p ?o } GROUP BY ?s ORDER BY COUNT(*)",
        "SELECT (COUNT(*) AS ?n) { ?s ?p ?o } ORDER BY COUNT(*)",
        "SELECT ?s { ?s ?p ?o } ORDER BY ?o",
        "SELECT (EXISTS { ?s ?p ?o } AS ?e) (COUNT(*) AS ?n) {}",
    ] {
        query(text);
    }
    for (text, message) in [
        (
            "SELECT * { ?s ?p ?o { ?x ?y ?z } BIND(1 AS ?z) }",
            "BIND assigns ?z, which has a value there already",
        ),
        (
            "SELECT ?p { ?s ?p ?o } GROUP BY ?s",
            "?p is neither in GROUP BY nor in an aggregate",
        ),
        (
            "SELECT (?h AS ?g) (COUNT(*) AS ?h) {}",
            "?h is neither in GROUP BY nor in an aggregate",
        ),
        (
            "SELECT ?s { ?s ?p ?o } ORDER BY COUNT(*)",
            "?s is neither in GROUP BY nor in an aggregate",
        ),
        (
            "SELECT (BOUND(?p) AS ?b) { ?s ?p ?o } GROUP BY ?s",
            "?p is neither in GROUP BY nor in an aggregate",
        ),
        (
            "DESCRIBE ?p { ?s ?p ?o } GROUP BY ?s",
            "?p is neither in GROUP BY nor in an aggregate",
        ),
        ("SELECT (1 AS ?x) (2 AS ?x) {}", "?x is a column twice"),
        (
            "SELECT * {} HAVING(COUNT(*) > 1)",
            "SELECT * cannot stand where solutions are grouped",
        ),
        (
            "SELECT (1 AS ?z) {} GROUP BY ?z",
            "AS assigns ?z, which GROUP BY, or VALUES at the end, binds already",
        ),
        (
            "SELECT (1 AS ?v) {} VALUES ?v {}",
            "AS assigns ?v, which the WHERE clause has already",
        ),
        (
            "SELECT (1 AS ?x) { { SELECT (COUNT(COUNT(*)) AS ?n) {} } }",
            "the aggregate COUNT stands inside another",
        ),
        (
            "SELECT (EXISTS { FILTER(COUNT(*)) } AS ?e) {}",
            "the aggregate COUNT cannot stand in a FILTER",
        ),
        (
            "SELECT * { { SELECT (1 AS ?n) { BIND(SUM(?x) AS ?y) } } }",
            "the aggregate SUM cannot stand in BIND",
        ),
        ("ASK { VALUES (?a ?a) {} }", "VALUES has ?a twice"),
    ] {
        assert_eq!(refused(text), message, "{text}");
    }
}

#[test]
fn paths_are_vectors() {
    let text =
        format!("{PREFIXES}ASK {{ ?s :a/^:b*/(:c|!(:d|^:e)|!()) ?o . ?s (:p) ?o . ?s !a ?o }}");
    let query = query(&text);
    let [Element::Triples(triples)] = elements(&query) else {
        panic!("{query:?}");
    };
    let Predicate::Path(Path::Sequence(steps)) = &triples[0].predicate else {
        panic!("{triples:?}");
    };
    assert!(matches!(&steps[1], Path::Inverse(path) if matches!(**path, Path::ZeroOrMore(_))));
    let Path::Alternative(choices) = &steps[2] else {
        panic!("{steps:?}");
    };
    assert!(
        matches!(&choices[1], Path::Negated { forward, inverse } if (forward.len(), inverse.len()) == (1, 1))
    );
    assert!(
        matches!(&choices[2], Path::Negated { forward, inverse } if (forward.len(), inverse.len()) == (0, 0))
    );
    assert!(matches!(
        &triples[1].predicate,
        Predicate::Name(Name::Iri(_))
    ));
    assert!(matches!(
        &triples[2].predicate,
        Predicate::Path(Path::Negated { .. })
    ));
}

#[test]
fn operations_have_their_own_prologue() {
    let text = "PREFIX e: <http://1/> CLEAR GRAPH e:g ; BASE <http://2/> LOAD <a> INTO GRAPH <b> ;
        PREFIX e: <http://3/> DELETE { GRAPH ?g { e:s ?p 1 } ?s ?p 2 } INSERT { _:a e:p _:a } USING e:u WHERE { _:a ?p ?s } ;
        DELETE WHERE { ?s ?p ?o GRAPH e:g { ?s ?p 1 . } } ; COPY DEFAULT TO e:g ;";
    let operations = parse_update(text, Options::default()).expect("an update");
    let bases: Vec<_> = operations
        .iter()
        .map(|operation| operation.base.as_deref())
        .collect();
    let base = Some("http://2/");
    assert_eq!(bases, [None, base, base, base, base]);
    let OperationKind::Load {
        source,
        destination,
        ..
    } = &operations[1].kind
    else {
        panic!("{operations:?}");
    };
    assert_eq!(source.value, "http://2/a");
    assert_eq!(
        destination.as_ref().map(|iri| &*iri.value),
        Some("http://2/b")
    );
    let OperationKind::Modify(modify) = &operations[2].kind else {
        panic!("{operations:?}");
    };
    let delete = modify.delete.as_ref().expect("a template");
    assert_eq!(
        (delete[0].graph.is_some(), delete[1].graph.is_some()),
        (true, false)
    );
    let insert = modify.insert.as_ref().expect("a template");
    let (Term::Blank(subject), Term::Blank(object)) =
        (&insert[0].triple.subject, &insert[0].triple.object)
    else {
        panic!("{insert:?}");
    };
    assert_eq!(subject.id, object.id);
    let Group { elements, .. } = &modify.group;
    let [Element::Triples(triples)] = &elements[..] else {
        panic!("{elements:?}");
    };
    assert!(matches!(&triples[0].subject, Term::Blank(blank) if blank.id != subject.id));
    assert!(matches!(&operations[3].kind, OperationKind::DeleteWhere(quads) if quads.len() == 2));
    let span = operations[4].span;
    assert_eq!(
        &text[span.start as usize..span.end as usize],
        "COPY DEFAULT TO e:g"
    );
    let wheres = "DELETE {} WHERE { _:a ?p 1 } ; DELETE {} WHERE { _:a ?p 1 }";
    assert!(parse_update(wheres, Options::default()).is_err());
    assert_eq!(
        parse_update(" # nothing\n", Options::default()),
        Ok(Vec::new())
    );
}

#[test]
fn requests_of_the_other_kind_are_named() {
    let update = "PREFIX e: <http://e/> INSERT DATA {}";
    let span = Span { start: 22, end: 28 };
    assert_eq!(
        parse_query(update, Options::default()),
        Err(Error::IsUpdate { span })
    );
    let query = "ASK {}";
    let span = Span { start: 0, end: 3 };
    assert_eq!(
        parse_update(query, Options::default()),
        Err(Error::IsQuery { span })
    );
    let options = Options {
        base: Some("no base"),
        ..Options::default()
    };
    assert!(matches!(
        parse_query(query, options),
        Err(Error::Base { .. })
    ));
}

#[test]
fn the_longest_token_is_taken() {
    let filter =
        |expression: &str| format!("BASE <http://e/> SELECT * {{ ?a a ?b FILTER({expression}) }}");
    for (expression, iri) in [
        ("?x<?a&&?b>?y", "<?a&&?b>"),
        ("?x<=?a&&?b>=?y", "<=?a&&?b>"),
        ("COALESCE(?x<?a,?b>?y)", "<?a,?b>"),
        ("(?x<?a)=(?b>?y)", "<?a)=(?b>"),
        ("?x<(?b>?y)", "<(?b>"),
        ("?x<STR(?b>?y)", "<STR(?b>"),
        ("?x<'a>b'", "<'a>"),
        ("?x<?b#>\n", "<?b#>"),
    ] {
        let message =
            format!("{iri} is read as an IRI; spaces around < and > make comparisons of it");
        assert_eq!(refused(&filter(expression)), message);
    }
    for expression in [
        "?x < ?a&&?b>?y",
        "?x<?a &&?b>?y",
        "?x<?a&&?b >?y",
        "?x<?a||?b>?y",
        "?x=<http://en.wikipedia.org/wiki/A_(b)>",
        "?x=<A_(b)>&&?y=<a,b>&&?z=<a'b>&&<a&&b>=?z",
        "<A_(b)><<(c)>",
        "?x<1&&'<'=\"a>,b\"",
        "?x<1 #&&?b>\n",
        "?x<'\\''&&?b>?y",
    ] {
        query(&filter(expression));
    }
}

#[test]
fn odd_terms_may_be_asked_for_and_removed_but_not_inserted() {
    for term in [
        "<http://e/[x]>",
        "<http://e/%zz>",
        "<http://e/#a#b>",
        "<http://e:port/>",
        "p:a\\%",
        "'x'@zh-classical",
        "'x'@englishlanguage",
    ] {
        let declared = "PREFIX p: <http://e/[/> ";
        let asked = format!("{declared} SELECT * {{ ?s ?p {term} FILTER(?s = {term}) }}");
        assert!(parse_query(&asked, Options::default()).is_ok(), "{asked}");
        let options = Options {
            base: Some("http://base/"),
            ..Options::default()
        };
        assert!(parse_query(&asked, options).is_ok(), "{asked}");
        for (before, after, is_read) in [
            ("DELETE DATA { <http://e/s> <http://e/p> ", "}", true),
            ("DELETE WHERE { ?s ?p ", "}", true),
            ("DELETE { ?s ?p ", "} WHERE { ?s ?p ?o }", true),
            ("INSERT DATA { <http://e/s> <http://e/p> ", "}", false),
            ("INSERT { ?s ?p ", "} WHERE { ?s ?p ?o }", false),
            (
                "DELETE { ?s ?p ?o } INSERT { ?s ?p ",
                "} WHERE { ?s ?p ?o }",
                false,
            ),
        ] {
            let update = format!("{declared} {before}{term}{after}");
            let read = parse_update(&update, Options::default());
            assert_eq!(read.is_ok(), is_read, "{update}");
            // What follows is judged by itself.
            let update = format!("{update} ; DELETE WHERE {{ ?s ?p {term} }}");
            let read = parse_update(&update, Options::default());
            assert_eq!(read.is_ok(), is_read, "{update}");
        }
    }
    for wrong in [
        "<a b>",
        "<http://e/{x}>",
        "<http://e/|>",
        "<[x]>",
        "'x'@en_US",
        "'x'@-en",
    ] {
        let asked = format!("SELECT * {{ ?s ?p {wrong} }}");
        assert!(parse_query(&asked, Options::default()).is_err(), "{asked}");
    }
    // A name that is an IRI only by its prefix is none to insert.
    let named = "PREFIX p: <http://e/[/> INSERT DATA { p:s p:p p:o }";
    assert!(parse_update(named, Options::default()).is_err());
}

#[test]
fn dots_of_a_base_are_resolved_before_anything_else_is() {
    let text = "BASE <http://e/a/../b/> SELECT * { ?s ?p <c> }";
    let read = format!("{:?}", query(text));
    assert!(read.contains("http://e/b/c"), "{read}");
}
