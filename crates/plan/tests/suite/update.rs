//! Update requests read as the operations that they say, and what is wrong with them is said.

use crate::common::Flat;
use jindou_plan::physical::{Constant, Dataset, Form, Plan, Slot, TemplateSlot, Var};
use jindou_plan::{
    DataTerm, GraphTarget, Modify, Operation, PlanError, Span, SyntaxError, TemplateQuad,
    TransferKind, parse_update,
};
use oxrdf::NamedNode;

fn parse(text: &str) -> Vec<Operation<'_>> {
    match parse_update(text, None, None) {
        Ok(update) => update.operations,
        Err(error) => panic!("{text}: {error}"),
    }
}

fn refused(text: &str) -> PlanError {
    match parse_update(text, None, None) {
        Ok(update) => panic!("{text}: {update:?}"),
        Err(error) => error,
    }
}

/// Line, column and message of a syntax error.
fn wrong(text: &str) -> (usize, usize, String) {
    match refused(text) {
        PlanError::Syntax {
            line,
            column,
            message,
            ..
        } => (line, column, message),
        other => panic!("{text}: {other}"),
    }
}

fn iri(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("http://e/{name}"))
}

fn modify(text: &str) -> Modify {
    match parse(text).pop() {
        Some(Operation::Modify(modify)) => modify,
        other => panic!("{text}: {other:?}"),
    }
}

/// A template with the names that its plan has.
fn written(plan: &Plan, quad: &TemplateQuad) -> String {
    let var = |var: Var| format!("?{}", plan.variables[var.index()]);
    let constant = |id: usize| match &plan.constants[id] {
        Constant::Fixed(term) => term.to_string().replace("http://e/", ""),
        other => panic!("{other:?}"),
    };
    let slot = |slot| match slot {
        TemplateSlot::Var(v) => var(v),
        TemplateSlot::Const(id) => constant(id.index()),
        TemplateSlot::Blank(number) => format!("_:{number}"),
    };
    let graph = match quad.graph {
        None => "default".to_owned(),
        Some(Slot::Var(v)) => var(v),
        Some(Slot::Const(id)) => constant(id.index()),
    };
    let [s, p, o] = [
        quad.triple.subject,
        quad.triple.predicate,
        quad.triple.object,
    ]
    .map(slot);
    format!("{graph} {s} {p} {o}")
}

fn templates(text: &str) -> (Vec<String>, Vec<String>, Vec<String>) {
    let modify = modify(text);
    let prepared = modify.plan(&Flat).expect("a plan");
    let plan = &prepared.plan;
    let Form::Select(columns) = &plan.form else {
        panic!("{:?}", plan.form);
    };
    let all = |quads: &[TemplateQuad]| quads.iter().map(|quad| written(plan, quad)).collect();
    let columns = columns.iter();
    (
        all(&modify.delete),
        all(&modify.insert),
        columns.map(|v| plan.variables[v.index()].clone()).collect(),
    )
}

#[test]
fn a_text_without_operations_is_a_request() {
    for text in [
        "",
        "  # nothing\n",
        "PREFIX e: <http://e/>",
        "BASE <http://e/> ",
    ] {
        assert_eq!(parse(text), [], "{text}");
    }
    assert_eq!(parse("ADD <http://e/g> TO <http://e/g>"), []);
}

/// The quads of the data of an operation, as text.
fn quads(operation: &Operation<'_>) -> Vec<String> {
    let (Operation::InsertData(data) | Operation::DeleteData(data)) = operation else {
        panic!("{operation:?}");
    };
    let term = |term: DataTerm<'_>| match term {
        DataTerm::Iri(iri) => format!("<{}>", iri.replace("http://e/", "")),
        DataTerm::Literal(literal) => literal.to_string(),
        DataTerm::Label(label) => format!("_:{label}"),
        DataTerm::Anonymous(number) => format!("_:{number}"),
    };
    let mut quads = Vec::new();
    let read = data.for_each::<SyntaxError>(&mut |quad| {
        let graph = quad
            .graph
            .map_or(String::new(), |graph| term(DataTerm::Iri(graph)));
        let predicate = term(DataTerm::Iri(quad.predicate));
        let (subject, object) = (term(quad.subject), term(quad.object));
        quads.push(
            format!("{subject} {predicate} {object} {graph}")
                .trim()
                .to_owned(),
        );
        Ok(())
    });
    read.expect("it was read before");
    quads
}

#[test]
fn inserted_data_has_blank_nodes_of_its_own() {
    let text = "PREFIX e: <http://e/>
        INSERT DATA { _:a e:p _:b, 5 . GRAPH e:g { _:b e:p [] } e:s e:p _:a } ;
        INSERT DATA { _:c e:p 'x'@EN }";
    let operations = parse(text);
    assert!(
        operations
            .iter()
            .all(|operation| matches!(operation, Operation::InsertData(_)))
    );
    let integer = "\"5\"^^<http://www.w3.org/2001/XMLSchema#integer>";
    assert_eq!(
        quads(&operations[0]),
        [
            "_:a <p> _:b",
            &format!("_:a <p> {integer}"),
            "_:b <p> _:0 <g>",
            "<s> <p> _:a",
        ]
    );
    assert_eq!(quads(&operations[1]), ["_:c <p> \"x\"@en"]);
}

#[test]
fn deleted_data_is_ground() {
    let text = "PREFIX e: <http://e/> DELETE DATA { e:s e:p 01 . GRAPH e:g { e:s e:p e:o } }";
    let operations = parse(text);
    assert!(matches!(&*operations, [Operation::DeleteData(_)]));
    let number = "\"01\"^^<http://www.w3.org/2001/XMLSchema#integer>";
    assert_eq!(
        quads(&operations[0]),
        [&*format!("<s> <p> {number}"), "<s> <p> <o> <g>"]
    );
}

#[test]
fn graphs_are_managed() {
    let text = "PREFIX e: <http://e/>
        LOAD e:doc; LOAD SILENT e:doc INTO GRAPH e:g; CREATE GRAPH e:g; CREATE SILENT GRAPH e:g;
        CLEAR ALL; CLEAR SILENT NAMED; CLEAR DEFAULT; DROP GRAPH e:g; DROP SILENT ALL ;";
    let load = |silent, start, destination| Operation::Load {
        silent,
        source: iri("doc"),
        place: Span {
            start,
            end: start + 5,
        },
        destination,
    };
    let create = |silent| Operation::Create {
        silent,
        graph: iri("g"),
    };
    let clear = |silent, target| Operation::Clear { silent, target };
    let drop = |silent, target| Operation::Drop { silent, target };
    assert_eq!(
        parse(text),
        [
            load(false, 35, None),
            load(true, 54, Some(iri("g"))),
            create(false),
            create(true),
            clear(false, GraphTarget::All),
            clear(true, GraphTarget::Named),
            clear(false, GraphTarget::Default),
            drop(false, GraphTarget::Graph(iri("g"))),
            drop(true, GraphTarget::All),
        ]
    );
}

#[test]
fn templates_have_variables_constants_and_blank_nodes() {
    let text = "PREFIX e: <http://e/>
        DELETE { ?s e:p ?o . GRAPH ?g { ?s ?p 5 } GRAPH e:h { e:s e:p ?never } }
        INSERT { _:a e:p _:b . GRAPH ?g { _:a e:q 'x' } }
        WHERE { GRAPH ?g { ?s ?p ?o } BIND(STR(?o) AS ?other) }";
    let (delete, insert, columns) = templates(text);
    assert_eq!(
        delete,
        [
            "default ?s <p> ?o",
            "?g ?s ?p \"5\"^^<http://www.w3.org/2001/XMLSchema#integer>",
            "<h> <s> <p> ?never",
        ]
    );
    assert_eq!(insert, ["default _:0 <p> _:1", "?g _:0 <q> \"x\""]);
    assert_eq!(columns, ["s", "o", "p", "g", "never"]);
}

#[test]
fn with_is_the_graph_of_templates_that_name_none() {
    for using in ["", "USING <http://e/u>"] {
        let text = format!(
            "PREFIX e: <http://e/> WITH e:w DELETE {{ ?s e:p ?o }}
             INSERT {{ ?s e:p ?o . GRAPH e:h {{ ?s e:p ?o }} }} {using} WHERE {{ ?s e:q ?o }}"
        );
        let (delete, insert, _) = templates(&text);
        assert_eq!(delete, ["<w> ?s <p> ?o"]);
        assert_eq!(insert, ["<w> ?s <p> ?o", "<h> ?s <p> ?o"]);
    }
}

#[test]
fn equal_constants_of_templates_share_a_number() {
    let quads = "<http://e/s> <http://e/p> 'o' . ".repeat(30_000);
    let modify = modify(&format!("INSERT {{ {quads} }} WHERE {{}}"));
    assert_eq!(modify.insert.len(), 30_000);
    assert_eq!(modify.plan(&Flat).expect("a plan").plan.constants.len(), 3);
}

#[test]
fn copy_move_and_add_are_what_they_stand_for() {
    let name = |target: &GraphTarget| match target {
        GraphTarget::Graph(graph) => graph.as_str().replace("http://e/", ""),
        other => format!("{other:?}"),
    };
    use TransferKind::{Add, Copy, Move};
    for (text, kind, silent, graphs) in [
        ("ADD <http://e/a> TO <http://e/b>", Add, false, "a b <b>"),
        (
            "COPY DEFAULT TO GRAPH <http://e/b>",
            Copy,
            false,
            "Default b <b>",
        ),
        (
            "MOVE SILENT <http://e/a> TO DEFAULT",
            Move,
            true,
            "a Default default",
        ),
    ] {
        let Some(Operation::Transfer(transfer)) = parse(text).pop() else {
            panic!("{text}");
        };
        assert_eq!((transfer.kind, transfer.silent), (kind, silent), "{text}");
        let plan = transfer.copy.plan(&Flat).expect("a plan").plan;
        let inserted = written(&plan, &transfer.copy.insert[0]);
        let graph = inserted.split(' ').next().unwrap_or_default();
        let all = format!("{} {} {graph}", name(&transfer.from), name(&transfer.to));
        assert_eq!(all, graphs, "{text}");
    }
}

#[test]
fn a_prologue_may_stand_before_each_operation() {
    let text = "PREFIX e: <http://wrong/>
        PREFIX e: <http://e/> # ; a comment
        CREATE GRAPH e:a ; # {
        PREFIX f: <http://e/f;> BASE <http://e/>
        CREATE GRAPH f:b ; CREATE GRAPH e:c ;
        COPY <x> TO e:y ;
        PREFIX e: <http://other/>
        CREATE GRAPH e:d ; PREFIX g: <http://g/>";
    let operations = parse(text);
    let created: Vec<&str> = operations
        .iter()
        .filter_map(|operation| match operation {
            Operation::Create { graph, .. } => Some(graph.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(
        created,
        ["http://e/a", "http://e/f;b", "http://e/c", "http://other/d"]
    );
    assert_eq!(operations.len(), 5);
}

#[test]
fn the_base_of_a_later_operation_is_its_own() {
    let text =
        "CREATE GRAPH <a> ; BASE <http://b/> INSERT { ?x ?y ?z } WHERE { BIND(IRI('c') AS ?x) }";
    let update = parse_update(text, Some("http://e/"), None).expect("an update");
    let [Operation::Create { graph, .. }, Operation::Modify(modify)] = &*update.operations else {
        panic!("{update:?}");
    };
    assert_eq!(*graph, iri("a"));
    let plan = modify.plan(&Flat).expect("a plan").plan;
    assert_eq!(plan.base, Some(NamedNode::new_unchecked("http://b/")));
}

#[test]
fn blank_nodes_are_not_deleted() {
    for (text, message) in [
        (
            "DELETE DATA { _:a <a:p> <a:o> }",
            "blank nodes are not allowed in DELETE DATA",
        ),
        (
            "DELETE WHERE { [] <a:p> <a:o> }",
            "blank nodes are not allowed in DELETE WHERE",
        ),
        (
            "DELETE { ?s <a:p> _:a } INSERT { _:b ?p ?o } WHERE { ?s ?p ?o }",
            "blank nodes are not allowed in the template of DELETE",
        ),
        (
            "INSERT DATA { ?s <a:p> <a:o> }",
            "variables are not allowed in data",
        ),
        (
            "DELETE DATA { ?s <a:p> <a:o> }",
            "variables are not allowed in data",
        ),
    ] {
        assert_eq!(wrong(text).2, message, "{text}");
    }
    // A pattern may have them.
    parse("DELETE { ?s ?p ?o } INSERT { _:a ?p [] } WHERE { ?s ?p ?o . _:a ?p [] }");
}

#[test]
fn a_blank_node_belongs_to_one_insertion() {
    let text = "INSERT DATA { _:a <a:p> <a:o> } ;\n CREATE GRAPH <a:g> ;\n";
    for more in [
        "INSERT DATA { <a:o> <a:p> _:a }",
        "INSERT DATA { GRAPH <a:g> { _:a <a:p> 5 } }",
        "PREFIX e: <a:> INSERT DATA { <a:o> <a:p> _:a }",
    ] {
        let text = format!("{text}{more}");
        let (line, column, message) = wrong(&text);
        assert_eq!(line, 3, "{text}");
        assert_eq!(column, more.find("_:a").expect("a label") + 1, "{text}");
        assert_eq!(
            message,
            "the blank node _:a is used in two INSERT DATA operations"
        );
    }
    // Templates make a new one for each solution anyway.
    parse(&format!(
        "{text} INSERT {{ _:a ?p ?o }} WHERE {{ _:a ?p ?o }}"
    ));
}

#[test]
fn syntax_errors_have_a_place_in_the_whole_text() {
    for (text, line, column) in [
        (";", 1, 1),
        ("CLEAR ALL ;;", 1, 12),
        ("CLEAR ALL ;\n PREFIX e: <a:> ; CLEAR ALL", 2, 17),
        (
            "PREFIX e: <a:> CLEAR ALL ;\n PREFIX f: <a:é> CLEAR f:g",
            2,
            24,
        ),
    ] {
        assert_eq!((wrong(text).0, wrong(text).1), (line, column), "{text}");
    }
    for text in [
        "SELECT * { ?s ?p ?o }",
        "INSERT DATA { <a:s> <a:p> }",
        "CLEAR ALL CLEAR ALL",
        "INSERT DATA { <a:s> <a:p> <a:o> ",
        "INSERT DATA { <a:s> <a:p> 'o }",
        "INSERT DATA { e:s <a:p> 'o' }",
        "} ; CLEAR ALL",
        "INSERT { ?s ?p ?o }",
        "PREFIX e: <a:> CLEAR ALL ; PREFIX f <b:> CLEAR ALL",
    ] {
        wrong(text);
    }
    let (line, _, message) = wrong("CLEAR ALL ;\nPREFIX e: <a:>\nCREATE GRAPH");
    assert_eq!(line, 3);
    assert!(
        message.ends_with("found the end of the update"),
        "{message}"
    );
}

#[test]
fn unsupported_features_are_named() {
    let text = "INSERT { ?s ?p ?x } WHERE { ?s ?p ?o BIND(<http://e/f>(?o) AS ?x) }";
    let expected = PlanError::Unsupported {
        feature: "custom function <http://e/f>".to_owned(),
        line: 1,
        column: 43,
    };
    assert_eq!(refused(text), expected);
    for (text, column) in [
        ("INSERT DATA { <a:s> <a:p> <<( <a:s> <a:p> 1 )>> }", 27),
        ("DELETE DATA { <a:s> <a:p> 'a'@en--rtl }", 30),
        ("DELETE WHERE { <a:s> <a:p> <<( <a:s> <a:p> 1 )>> }", 28),
    ] {
        let place = match refused(text) {
            PlanError::Unsupported { column, .. } => column,
            other => panic!("{text}: {other}"),
        };
        assert_eq!(place, column, "{text}");
    }
    let base = parse_update("CLEAR ALL", Some("no iri"), None);
    assert!(matches!(base, Err(PlanError::Base { .. })), "{base:?}");
}

#[test]
fn what_is_too_large_or_deep_is_refused() {
    let too_large = |text: &str| matches!(refused(text), PlanError::TooLarge { .. });
    assert!(too_large(&" ".repeat(129 << 20)));
    // Patterns may not be as long as data may be.
    let blank = " ".repeat(5 << 20);
    assert!(too_large(&format!("INSERT {{}} WHERE {{ {blank} }}")));
    let data = "<a:s> <a:p> 5 .".repeat(300_000);
    parse(&format!(
        "INSERT DATA {{ {data} }} ; INSERT {{ ?s ?p 1 }} WHERE {{ ?s ?p 5 }}"
    ));
    let nested = |depth: usize| {
        format!(
            "INSERT {{}} WHERE {{ FILTER({}1{}) }}",
            "(".repeat(depth),
            ")".repeat(depth)
        )
    };
    parse(&nested(200));
    assert!(too_large(&nested(10_000)));
    let lists = |depth| {
        format!(
            "INSERT DATA {{ <a:s> <a:p> {}{} }}",
            "(".repeat(depth),
            ")".repeat(depth)
        )
    };
    parse(&lists(200));
    assert!(too_large(&lists(10_000)));
    // Each prologue is read once.
    let prologue = format!("PREFIX e: <a:{}>", "x".repeat(40_000));
    parse(&format!("{prologue} CLEAR ALL;").repeat(80));
}

#[test]
fn brackets_in_the_strings_of_data_do_not_count() {
    let quads = "<a:s> <a:p> ':-( {[', '''(''', \"\\\"(\" ; <a:(q> 5 . # (\n".repeat(1000);
    let text = format!("INSERT DATA {{ {quads} }} ; CLEAR ALL");
    assert_eq!(parse(&text).len(), 2);
}

#[test]
fn long_data_needs_no_deep_stack() {
    let lists = format!("<a:s> <a:p> {}{} .", "(".repeat(14), ")".repeat(14));
    let quads = "<a:s> <a:p> [ <a:q> 5, 'x' ; <a:r> _:b ] .".repeat(50_000);
    let text = format!("INSERT DATA {{ {lists} {quads} }} ; DELETE DATA {{ <a:s> <a:p> 5 }}");
    let small = std::thread::Builder::new().stack_size(1 << 20);
    let parsed = small.spawn(move || parse(&text).len()).expect("a thread");
    assert_eq!(parsed.join().expect("no overflow"), 2);
}

#[test]
fn odd_texts_do_not_overrun() {
    let dataset = Dataset::default();
    for text in [
        "INSERT DATA { '",
        "INSERT DATA { \"\\",
        "'''\\",
        "e:\\",
        "<",
        "?",
        "_:",
        "\\",
        "é;é\\é",
        "DELETE DATA { _",
        "PREFIX é:\\é",
        "DELETE\n#",
        "(((;)))",
        "}};{{",
        "INSERT",
        "INSERT #",
        "ADD",
        "ADD;",
        "COPY <a:b",
        "'\\'\\'\\'\n\\'",
    ] {
        for dataset in [None, Some(&dataset)] {
            assert!(parse_update(text, None, dataset).is_err(), "{text}");
        }
    }
    // Each is looked at once, not once for each quote.
    let quotes = "'\\".repeat(1 << 20);
    assert!(parse_update(&quotes, None, None).is_err());
}

#[test]
fn a_template_without_variables_needs_one_solution() {
    use jindou_plan::physical::Operator;
    let limit = |text: &str| match modify(text).plan(&Flat).expect("a plan").plan.root.operator {
        Operator::Slice { limit, .. } => limit,
        _ => None,
    };
    assert_eq!(
        limit("INSERT { <a:s> <a:p> 1 } WHERE { ?s ?p ?o }"),
        Some(1)
    );
    assert_eq!(limit("INSERT { <a:s> <a:p> [] } WHERE { ?s ?p ?o }"), None);
    assert_eq!(limit("INSERT { <a:s> <a:p> ?o } WHERE { ?s ?p ?o }"), None);
}

#[test]
fn booleans_in_upper_case_are_booleans() {
    let text = "PREFIX True: <http://e/> INSERT DATA { True:TRUE True:p TRUE, False, 'x'@True } ;
        PREFIX e: <http://f/> DELETE { ?True e:p ?x } WHERE { ?True e:p ?x FILTER(?x || !FALSE) }";
    let lower = text
        .replace("TRUE,", "true,")
        .replace("False,", "false,")
        .replace("FALSE", "false");
    assert_ne!(text, lower);
    let (upper, written) = (parse(text), parse(&lower));
    assert_eq!(quads(&upper[0]), quads(&written[0]));
    assert_eq!(upper[1..], written[1..]);
    // The second operation is parsed with the prologue of the first.
    let text = text.replace("?x || ", "?x || ) ");
    assert_eq!(wrong(&text), wrong(&lower.replace("?x || ", "?x || ) ")));
    assert_eq!(wrong(&text).0, 2);
}

#[test]
fn an_iri_that_looks_like_comparisons_is_told() {
    let text = "PREFIX a: <a:(x,y)> INSERT DATA { a:s a:p (<a:(b)> <a:c,d>) } ;\n\
        PREFIX b: <b:> DELETE { ?é b:p ?x } WHERE { ?é b:p ?x FILTER(?é<?x&&1>?x) }";
    let message = "<?x&&1> is read as an IRI; spaces around < and > make comparisons of it";
    assert_eq!(wrong(text), (2, 64, message.to_owned()));
    assert_eq!(parse(&text.replace("<?x&&1>", " < ?x&&1 > ")).len(), 2);
}
