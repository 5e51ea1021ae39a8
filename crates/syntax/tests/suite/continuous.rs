//! What the tree says of continuous queries: each production, the three forms, and the benchmarks'
//! own texts.

use std::path::PathBuf;

use jindou_syntax::continuous::{
    CatalogueName, Extent, Output, Registration, RegistrationKind, Window, WindowRole,
};
use jindou_syntax::tree::{Element, ExpressionKind, Form, Group, Name, Projection, Span};
use jindou_syntax::{Error, Options, parse_continuous, parse_query, parse_update};

fn parsed(text: &str) -> Registration<'_> {
    parse_continuous(text, Options::default()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> Error {
    match parse_continuous(text, Options::default()) {
        Ok(registration) => panic!("{text}: {registration:?}"),
        Err(error) => error,
    }
}

fn at(text: &str, span: Span) -> &str {
    &text[span.start as usize..span.end as usize]
}

fn said(name: &CatalogueName<'_>) -> String {
    match name {
        CatalogueName::Iri(iri) => format!("<{}>", iri.value),
        CatalogueName::Bare(bare) => bare.name.to_owned(),
    }
}

/// The role, the stream and the extent of a window.
fn window(window: &Window<'_>) -> String {
    let role = match &window.role {
        WindowRole::Default => "default".to_owned(),
        WindowRole::Graph => "graph".to_owned(),
        WindowRole::DefaultAndGraph => "both".to_owned(),
        WindowRole::Named(name) => format!("<{}>", name.value),
    };
    let extent = match window.extent {
        Extent::Time { range, step: None } => format!("{}", range.ms),
        Extent::Time {
            range,
            step: Some(step),
        } => format!("{} by {}", range.ms, step.ms),
        Extent::Tumbling { range } => format!("{} tumbling", range.ms),
        Extent::Count {
            triples,
            step: None,
        } => format!("{triples} triples"),
        Extent::Count {
            triples,
            step: Some(step),
        } => format!("{triples} triples by {step}"),
    };
    format!("{role} {} {extent}", said(&window.stream))
}

fn windows(text: &str) -> Vec<String> {
    parsed(text).windows.iter().map(window).collect()
}

/// The extent of a window that is written so.
fn extent(written: &str) -> String {
    let text = format!("ASK FROM STREAM <s:> {written} {{}}");
    let said = windows(&text).remove(0);
    said.strip_prefix("default <s:> ")
        .expect("a role")
        .to_owned()
}

fn group<'r, 't>(registration: &'r Registration<'t>) -> &'r Group<'t> {
    match &registration.query.form {
        Form::Select(select) => &select.group,
        Form::Ask { group, .. } | Form::Construct { group, .. } => group,
        form => panic!("{form:?}"),
    }
}

#[test]
fn rsp_ql_registers_an_output_over_named_windows() {
    let text = "PREFIX : <http://e/>
        REGISTER RSTREAM :out COMPUTED EVERY PT1S AS
        SELECT ?s
        FROM NAMED WINDOW :w ON :readings [RANGE PT10S STEP PT5S]
        FROM NAMED WINDOW :v ON STREAM <http://e/alarms> [RANGE \"PT1M\"^^xsd:duration]
        FROM :sites
        WHERE { ?s :site ?x . WINDOW :w { ?s :value ?o } WINDOW ?any { ?s ?p ?o } }";
    let text = format!("PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> {text}");
    let registration = parsed(&text);
    assert_eq!(registration.kind, RegistrationKind::Stream);
    assert_eq!(registration.output, Some(Output::RStream));
    let name = registration.name.as_ref().map(said);
    assert_eq!(name.as_deref(), Some("<http://e/out>"));
    let every = registration.every.expect("COMPUTED EVERY");
    assert_eq!((every.ms, at(&text, every.span)), (1_000, "PT1S"));
    assert_eq!(
        windows(&text),
        [
            "<http://e/w> <http://e/readings> 10000 by 5000",
            "<http://e/v> <http://e/alarms> 60000"
        ]
    );
    let dataset = registration.query.dataset.as_ref().expect("FROM");
    assert_eq!(dataset.default[0].value, "http://e/sites");
    let [
        Element::Triples(_),
        Element::Window(Name::Iri(iri), inside),
        Element::Window(Name::Variable(variable), _),
    ] = &*group(&registration).elements
    else {
        panic!("{registration:?}");
    };
    assert_eq!((&*iri.value, variable.name), ("http://e/w", "any"));
    assert!(matches!(*inside.elements, [Element::Triples(_)]));
}

#[test]
fn the_output_is_said_by_register_or_by_the_query() {
    for (text, output, kind) in [
        (
            "REGISTER ISTREAM <o:> AS ASK {}",
            Some(Output::IStream),
            RegistrationKind::Stream,
        ),
        (
            "register dstream <o:> as ASK {}",
            Some(Output::DStream),
            RegistrationKind::Stream,
        ),
        (
            "REGISTER STREAM <o:> AS CONSTRUCT ISTREAM { ?s a ?o } WHERE { ?s a ?o }",
            Some(Output::IStream),
            RegistrationKind::Stream,
        ),
        (
            "SELECT RSTREAM * {}",
            Some(Output::RStream),
            RegistrationKind::Query,
        ),
        (
            "REGISTER QUERY q AS SELECT * {}",
            None,
            RegistrationKind::Query,
        ),
        (
            "REGISTER STREAM q AS CONSTRUCT WHERE {}",
            None,
            RegistrationKind::Stream,
        ),
    ] {
        let registration = parsed(text);
        assert_eq!(registration.output, output, "{text}");
        assert_eq!(registration.kind, kind, "{text}");
    }
    refused("REGISTER RSTREAM <o:> AS SELECT ISTREAM * {}");
    refused("SELECT * { { SELECT RSTREAM * {} } }");
}

#[test]
fn c_sparql_registers_queries_and_streams() {
    for (header, name, every) in [
        ("REGISTER QUERY q AS", "q", None),
        ("register stream Q1_win-2 as", "Q1_win-2", None),
        ("REGISTER QUERY q COMPUTED EVERY 10s AS", "q", Some(10_000)),
        ("REGISTER QUERY q COMPUTE EVERY 1 m AS", "q", Some(60_000)),
        (
            "REGISTER STREAM <http://e/s> COMPUTED EVERY 100MS AS",
            "<http://e/s>",
            Some(100),
        ),
        (
            "BASE <http://e/> PREFIX p: <p#> REGISTER QUERY p:q AS",
            "<http://e/p#q>",
            None,
        ),
        // A name may be made of keywords, and be a word of the header.
        ("REGISTER QUERY InAs AS", "InAs", None),
        ("REGISTER QUERY Register AS", "Register", None),
        ("REGISTER QUERY query", "query", None),
    ] {
        let text = format!("{header} BASE <http://b/> SELECT * FROM STREAM <s> [RANGE 1s] {{}}");
        let registration = parsed(&text);
        let said = registration.name.as_ref().map(said);
        assert_eq!(said.as_deref(), Some(name), "{text}");
        assert_eq!(registration.every.map(|every| every.ms), every, "{text}");
        assert_eq!(windows(&text), ["default <http://b/s> 1000"], "{text}");
    }
    for query in [
        "ASK {}",
        "DESCRIBE <a:>",
        "CONSTRUCT { ?s a ?o } { ?s a ?o }",
    ] {
        parsed(&format!("REGISTER STREAM s AS {query}"));
    }
}

#[test]
fn windows_of_the_default_graph_and_of_named_graphs_are_told_apart() {
    let text = "SELECT * FROM <g:1> FROM STREAM <s:1> [RANGE 3s STEP 1s] FROM NAMED <g:2>
        FROM NAMED STREAM <s:2> [RANGE TRIPLES 10] from named s3 [range 1s tumbling]
        WHERE { GRAPH <s:2> { ?s ?p ?o } }";
    let registration = parsed(text);
    assert_eq!(
        windows(text),
        [
            "default <s:1> 3000 by 1000",
            "graph <s:2> 10 triples",
            "graph s3 1000 tumbling"
        ]
    );
    let span = registration.windows[0].span;
    assert_eq!(at(text, span), "FROM STREAM <s:1> [RANGE 3s STEP 1s]");
    let dataset = registration.query.dataset.as_ref().expect("FROM");
    assert_eq!(dataset.default[0].value, "g:1");
    assert_eq!(dataset.named[0].value, "g:2");
    assert!(matches!(
        *group(&registration).elements,
        [Element::Graph(Name::Iri(_), _)]
    ));
}

#[test]
fn the_form_of_wukong_s_has_names_of_the_catalogue() {
    // Figure 2 of the paper, with IRIs for predicates.
    let text = "REGISTER QUERY QC
        SELECT ?X ?Y ?Z
        FROM Tweet_Stream [RANGE 10s STEP 1s]
        FROM Like_Stream [RANGE 5s STEP 1s]
        FROM X-Lab
        FROM NAMED Y-Lab
        WHERE {
            GRAPH Tweet_Stream { ?X <e:po> ?Z }
            GRAPH X-Lab { ?X <e:fo> ?Y }
            GRAPH Like_Stream { ?Y <e:li> ?Z }
        }";
    let registration = parsed(text);
    assert_eq!(registration.name.as_ref().map(said).as_deref(), Some("QC"));
    assert_eq!(
        windows(text),
        [
            "both Tweet_Stream 10000 by 1000",
            "both Like_Stream 5000 by 1000"
        ]
    );
    assert_eq!(registration.query.dataset, None);
    let graphs = &registration.graphs;
    assert_eq!(
        (graphs.default[0].name, graphs.named[0].name),
        ("X-Lab", "Y-Lab")
    );
    assert_eq!(at(text, graphs.default[0].span), "X-Lab");
    let names = group(&registration)
        .elements
        .iter()
        .map(|element| match element {
            Element::BareGraph(name, _) => name.name,
            element => panic!("{element:?}"),
        });
    let names: Vec<&str> = names.collect();
    assert_eq!(names, ["Tweet_Stream", "X-Lab", "Like_Stream"]);
}

#[test]
fn extents_are_read_in_all_their_writings() {
    for (written, expected) in [
        ("[RANGE 3s STEP 1s]", "3000 by 1000"),
        ("[ range 100 ms step 10 MS ]", "100 by 10"),
        ("[RANGE 2h STEP 30m]", "7200000 by 1800000"),
        ("[RANGE 1D]", "86400000"),
        ("[RANGE 10s TUMBLING]", "10000 tumbling"),
        ("[RANGE PT10S STEP PT0.5S]", "10000 by 500"),
        ("[RANGE PT1m10s STEP pt30s]", "70000 by 30000"),
        ("[RANGE P1DT1H TUMBLING]", "90000000 tumbling"),
        (
            "[RANGE '''PT1S'''^^<http://www.w3.org/2001/XMLSchema#dayTimeDuration>]",
            "1000",
        ),
        ("[RANGE 9223372036854775807ms]", "9223372036854775807"),
        ("[TRIPLES 100]", "100 triples"),
        ("[RANGE TRIPLES 100]", "100 triples"),
        ("[TRIPLES 100 STEP 10]", "100 triples by 10"),
        ("[RANGE #c\n TRIPLES\n100 STEP 1]", "100 triples by 1"),
    ] {
        assert_eq!(extent(written), expected, "{written}");
    }
}

#[test]
fn windows_are_matched_wherever_groups_are() {
    let text = "SELECT * FROM NAMED WINDOW <w:> ON s [RANGE 1s] WHERE {
        ?a ?b ?c WINDOW <w:> { ?s ?p ?o . FILTER(?o > 1) WINDOW ?v { ?s ?p ?q } }
        FILTER NOT EXISTS { window <w:> { ?x ?y ?z } }
        OPTIONAL { WINDOW ?g { ?d ?e ?f } } . { WINDOW <w:> {} } UNION { WINDOW <w:> {} }
    }";
    let registration = parsed(text);
    // A variable of WINDOW is in scope as that of GRAPH is.
    let Form::Select(select) = &registration.query.form else {
        panic!("{registration:?}");
    };
    let Projection::All(variables) = &select.projection else {
        panic!("{select:?}");
    };
    let names: Vec<&str> = variables.iter().map(|variable| variable.name).collect();
    assert_eq!(
        names,
        ["a", "b", "c", "s", "p", "o", "v", "q", "g", "d", "e", "f"]
    );
}

#[test]
fn timestamp_is_the_function_of_c_sparql_with_and_without_a_prefix() {
    let text = "PREFIX f: <http://larkc.eu/csparql/sparql/jena/ext#>
        SELECT (timestamp(?s) AS ?t) {
            ?s ?p ?o FILTER(f:timestamp(?s, ?p, ?o) < Timestamp (?o)) FILTER timestamp(?s)
        } ORDER BY timestamp(?o)";
    let registration = parsed(text);
    let iri = "http://larkc.eu/csparql/sparql/jena/ext#timestamp";
    let filters = group(&registration)
        .elements
        .iter()
        .filter_map(|element| match element {
            Element::Filter(filter) => Some(filter),
            _ => None,
        });
    for filter in filters {
        let calls = match &filter.kind {
            ExpressionKind::Compare(_, operands) => &operands[..],
            _ => std::slice::from_ref(filter),
        };
        for call in calls {
            match &call.kind {
                ExpressionKind::Function(name, _) => assert_eq!(name.value, iri),
                kind => panic!("{kind:?}"),
            }
        }
    }
    assert!(parse_query("ASK { FILTER(timestamp(?s)) }", Options::default()).is_err());
}

#[test]
fn the_words_of_continuous_queries_are_no_keywords_of_others() {
    for text in [
        "SELECT * FROM STREAM <s:> [RANGE 1s] {}",
        "SELECT * FROM NAMED WINDOW <w:> ON <s:> [RANGE 1s] {}",
        "REGISTER QUERY q AS SELECT * {}",
        "SELECT * { WINDOW <w:> { ?s ?p ?o } }",
        "SELECT * { GRAPH Bare { ?s ?p ?o } }",
        "SELECT * FROM Bare {}",
        "SELECT RSTREAM * {}",
        "CONSTRUCT ISTREAM {} {}",
    ] {
        let error = parse_query(text, Options::default()).expect_err(text);
        assert!(matches!(error, Error::Syntax { .. }), "{text}: {error:?}");
        let update = text
            .replace("SELECT *", "DELETE {}")
            .replace("FROM", "USING");
        assert!(
            parse_update(&update, Options::default()).is_err(),
            "{update}"
        );
    }
    // Nor are they in names.
    let text = "PREFIX window: <w:> PREFIX stream: <s:> SELECT ?range ?step
        FROM stream:x FROM NAMED window:y { ?range window:every ?step . GRAPH stream:z {} }";
    let registration = parsed(text);
    assert!(registration.windows.is_empty());
    assert_eq!(
        Ok(&registration.query),
        parse_query(text, Options::default()).as_ref()
    );
}

#[test]
fn an_update_is_no_continuous_query() {
    for text in [
        "INSERT DATA {}",
        "REGISTER QUERY q AS DELETE WHERE { ?s ?p ?o }",
    ] {
        assert!(matches!(refused(text), Error::IsUpdate { .. }), "{text}");
    }
}

#[test]
fn what_other_languages_have_is_refused_by_name() {
    for (text, what, place) in [
        ("REGISTER QUERY q ON UPDATE AS ASK {}", "ON UPDATE", "ON"),
        (
            "REGISTER QUERY q COMPUTED ON UPDATE AS ASK {}",
            "ON UPDATE",
            "ON",
        ),
        (
            "REGISTER STREAM <s:> UNDER ENTAILMENT REGIME <r:> AS ASK {}",
            "UNDER ENTAILMENT REGIME",
            "UNDER",
        ),
        (
            "SELECT * {} AGGREGATE { (?n, COUNT, {?s}) }",
            "AGGREGATE of C-SPARQL",
            "AGGREGATE",
        ),
        ("ASK FROM STREAM <s:> [NOW] {}", "[NOW]", "NOW"),
        ("ASK FROM STREAM <s:> [RANGE now] {}", "[NOW]", "now"),
        ("ASK FROM STREAM <s:> [ALL] {}", "[ALL]", "ALL"),
        (
            "ASK FROM STREAM <s:> [RANGE UNBOUNDED] {}",
            "without an end",
            "UNBOUNDED",
        ),
        (
            "ASK FROM STREAM <s:> [RANGE 1s SLIDE 1s] {}",
            "SLIDE",
            "SLIDE",
        ),
        ("ASK FROM STREAM <s:> [ITEM 10] {}", "items", "ITEM"),
        ("ASK FROM s [FROM NOW-PT1H TO NOW] {}", "past", "FROM NOW"),
        (
            "ASK { STREAM <s:> [NOW] { ?s ?p ?o } }",
            "STREAM of CQELS",
            "STREAM",
        ),
        (
            "ASK { ?s ?p ?o STREAM <s:> [NOW] {} }",
            "STREAM of CQELS",
            "STREAM",
        ),
        (
            "ASK { { ?s ?p ?o } SEQ { ?s ?p ?q } }",
            "SEQ of EP-SPARQL",
            "SEQ",
        ),
        ("ASK { ?s ?p ?o . EQUALS {} }", "EQUALS", "EQUALS"),
        (
            "ASK { FILTER(?x) OPTIONALSEQ {} }",
            "OPTIONALSEQ",
            "OPTIONALSEQ",
        ),
    ] {
        let error = refused(text);
        let Error::Unsupported { span, what: named } = error else {
            panic!("{text}: {error:?}");
        };
        assert!(named.contains(what), "{text}: {named}");
        let start = text.rfind(place).expect("it is there");
        assert_eq!(span.start as usize, start, "{text}");
        assert!(place.starts_with(at(text, span)), "{text}");
    }
}

/// The texts in folders of the benchmarks' data, by the names of their files; none, said aloud,
/// where they are absent.
fn texts_in(folders: &[&str]) -> Option<Vec<(String, String)>> {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let mut texts = Vec::new();
    for folder in folders {
        let Ok(entries) = std::fs::read_dir(data.join(folder)) else {
            println!("SKIPPED: texts of {folder} (../shared/data is absent)");
            return None;
        };
        for entry in entries {
            let path = entry.expect("a folder is read").path();
            let name = path.file_name().expect("a name").to_string_lossy();
            let text = std::fs::read_to_string(&path).expect("a text");
            texts.push((name.into_owned(), text));
        }
    }
    texts.sort();
    Some(texts)
}

const BENCHMARKS: &[&str] = &["lsbench/queries/continuous", "citybench/queries/csparql"];

/// The windows of a text whose clauses are all `FROM STREAM <s> [RANGE r STEP t]`, by searching.
fn searched_windows(text: &str) -> Vec<String> {
    let words = [("STREAM", "stream"), ("RANGE", "range"), ("STEP", "step")];
    let text = words.iter().fold(text.to_owned(), |text, (upper, lower)| {
        text.replace(upper, lower)
    });
    let ms = |written: &str| {
        let (number, unit_ms) = match written.strip_suffix("ms") {
            Some(number) => (number, 1),
            None => (written.strip_suffix('s').expect("seconds"), 1_000),
        };
        number.parse::<u64>().expect("a number") * unit_ms
    };
    let clauses = text.split(" stream <").skip(1).map(|clause| {
        let (stream, rest) = clause.split_once("> [range ").expect("a window");
        let (range, rest) = rest.split_once(" step ").expect("a step");
        let (step, _) = rest.split_once(']').expect("a bracket");
        format!("default <{stream}> {} by {}", ms(range), ms(step))
    });
    clauses.collect()
}

#[test]
fn the_texts_of_the_benchmarks_are_read() {
    let Some(texts) = texts_in(BENCHMARKS) else {
        return;
    };
    let (mut headers, mut asks, mut all_windows) = (0, 0, 0);
    for (name, text) in &texts {
        let registration = parsed(text);
        headers += usize::from(registration.name.is_some());
        asks += usize::from(matches!(registration.query.form, Form::Ask { .. }));
        all_windows += registration.windows.len();
        assert_eq!(windows(text), searched_windows(text), "{name}");
        assert_eq!(
            registration.windows.is_empty(),
            name.ends_with(".rq"),
            "{name}"
        );
        if name.ends_with(".rq") {
            let query = parse_query(text, Options::default());
            assert_eq!(Ok(&registration.query), query.as_ref(), "{name}");
        }
    }
    println!("{} texts, {all_windows} windows", texts.len());
    // LSBench's L1 to L6 have a header, no text of CityBench has one.
    assert_eq!((texts.len(), headers, asks), (31, 6, 1));
}

#[test]
fn the_texts_of_cqels_are_refused_by_name() {
    let Some(texts) = texts_in(&["citybench/queries/cqels"]) else {
        return;
    };
    for (name, text) in &texts {
        // Some have relative IRIs before that.
        let options = Options {
            base: Some("http://e/"),
            ..Options::default()
        };
        let read = parse_continuous(text, options);
        let Err(Error::Unsupported { span, what }) = read else {
            panic!("{name}: {read:?}");
        };
        assert!(what.starts_with("STREAM of CQELS"), "{name}: {what}");
        assert_eq!(at(text, span).to_lowercase(), "stream", "{name}");
    }
    assert_eq!(texts.len(), 18);
}

/// One text of each form, for tests without data.
const FORMS: &[&str] = &[
    "PREFIX : <http://e/> REGISTER ISTREAM :o COMPUTED EVERY PT0.5S AS SELECT ?s \
     FROM NAMED WINDOW :w ON :s [RANGE PT10S STEP PT5S] WHERE { WINDOW :w { ?s :p 'o'@en } }",
    "REGISTER STREAM s-1 COMPUTED EVERY 10 s AS PREFIX : <http://e/> CONSTRUCT { ?s :p ?o } \
     FROM NAMED STREAM :s [RANGE TRIPLES 10] FROM <g:> WHERE { GRAPH :s { ?s :p ?o } }",
    "REGISTER QUERY QC SELECT ?x FROM T_S [RANGE 10s STEP 1s] FROM X-Lab \
     WHERE { GRAPH T_S { ?x <p:> 1.5 } GRAPH X-Lab { ?x ?y ?z } FILTER(timestamp(?x) > 1) }",
];

#[test]
fn no_beginning_of_a_text_is_one() {
    let own = FORMS.iter().map(|text| (String::new(), (*text).to_owned()));
    for (name, text) in own.chain(texts_in(BENCHMARKS).unwrap_or_default()) {
        let end = text.rfind('}').expect("a pattern");
        for (cut, _) in text.char_indices() {
            let beginning = &text[..cut];
            let read = parse_continuous(beginning, Options::default());
            // What follows the pattern may be left out.
            if cut <= end {
                let error = read.expect_err(&name);
                let span = error.span().expect("a place");
                assert!(
                    span.start <= span.end && span.end as usize <= cut,
                    "{beginning}"
                );
            }
        }
    }
}
