//! Does a graph read back that is written with prefixes, nested blank nodes and lists, as a parser that is
//! not ours reads it?

use oxrdf::dataset::CanonicalizationAlgorithm;
use oxrdf::{
    BlankNode, Dataset, GraphName, Literal, NamedNode, NamedOrBlankNode, NamedOrBlankNodeRef, Quad,
    Term,
};
use oxrdfio::{JsonLdProfileSet, RdfFormat, RdfParser};
use proptest::prelude::*;

use super::escape::not_xml;
use super::*;

const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
const FORMATS: [(GraphFormat, RdfFormat); 5] = [
    (GraphFormat::Turtle, RdfFormat::Turtle),
    (GraphFormat::TriG, RdfFormat::TriG),
    (GraphFormat::N3, RdfFormat::N3),
    (GraphFormat::RdfXml, RdfFormat::RdfXml),
    (
        GraphFormat::JsonLd,
        RdfFormat::JsonLd {
            profile: JsonLdProfileSet::empty(),
        },
    ),
];

/// Some of which hide each other, or are called as what they may not be called in one format.
const PREFIXES: [(&str, &str); 12] = [
    ("", "http://e/"),
    ("e", "http://e/a"),
    ("rdf", RDF),
    ("ns", "http://e/é#"),
    ("é.1", "http://x/"),
    ("http", "http://h/"),
    ("urn", "http://u/"),
    ("u", "urn:"),
    ("xmlns", "http://e/ns/"),
    ("xsd", "http://www.w3.org/2001/XMLSchema#"),
    ("other", "http://e/"),
    ("its", "http://i/"),
];

fn iri(text: &str) -> NamedNode {
    NamedNode::new(text).expect("it is an IRI")
}

fn node() -> impl Strategy<Value = NamedOrBlankNode> {
    let iris = vec![
        "http://e/",
        "http://e/a",
        "http://e/a.b.",
        "http://e/-x~",
        "http://e/é#漢",
        "http://e/a/b",
        "http://e/a%20b,c",
        "http://x//y",
        "http://x/1",
        "http://h/a",
        "urn:x:y",
        "mailto:a@b",
        "http://u/?q=(1)&b",
    ];
    prop_oneof![
        1 => prop::sample::select(iris).prop_map(|text| iri(text).into()),
        2 => (0..9_usize).prop_map(|n| BlankNode::new_unchecked(format!("f{n}-{n}")).into()),
    ]
}

fn predicate() -> impl Strategy<Value = NamedNode> {
    let rdf = |name: &str| format!("{RDF}{name}");
    let iris = vec![
        rdf("type"),
        rdf("first"),
        rdf("rest"),
        "http://e/p".to_owned(),
        "http://e/ns/q".to_owned(),
        "http://x/a.b-c".to_owned(),
        "urn:p".to_owned(),
    ];
    prop::sample::select(iris).prop_map(|text| iri(&text))
}

fn literal() -> impl Strategy<Value = Literal> {
    let value = prop_oneof![
        any::<String>(),
        "[ \t\r\n\"'\\\\a.]{0,12}",
        "[+-]?[0-9]{0,2}[.]?[0-9]{0,2}(e[+-]?[0-9])?",
        Just("true".to_owned()),
    ];
    (value, 0..6_usize).prop_map(|(value, kind)| match kind {
        0 => Literal::new_language_tagged_literal_unchecked(value, "en-gb"),
        1 => Literal::new_typed_literal(value, iri("http://e/type")),
        2..=4 => {
            let name = ["integer", "decimal", "double"][kind - 2];
            let datatype = format!("http://www.w3.org/2001/XMLSchema#{name}");
            Literal::new_typed_literal(value, iri(&datatype))
        }
        _ => Literal::new_simple_literal(value),
    })
}

fn quads() -> impl Strategy<Value = Vec<Quad>> {
    let object = prop_oneof![
        4 => node().prop_map(Term::from),
        1 => Just(iri(&format!("{RDF}nil")).into()),
        2 => literal().prop_map(Term::from),
    ];
    let graph = prop_oneof![
        6 => Just(GraphName::DefaultGraph),
        2 => node().prop_map(GraphName::from),
    ];
    let quad = (node(), predicate(), object, graph).prop_map(|(s, p, o, g)| Quad::new(s, p, o, g));
    // Lists of blank nodes with labels of their own, some of which are elements of others.
    let list = (
        0..6_usize,
        prop::collection::vec(literal(), 0..5),
        any::<bool>(),
        node(),
    );
    let lists = prop::collection::vec(list, 0..3);
    (prop::collection::vec(quad, 0..16), lists).prop_map(|(mut quads, lists)| {
        for (number, (nested, elements, is_named, holder)) in lists.into_iter().enumerate() {
            let cell = |at: usize| BlankNode::new_unchecked(format!("l{number}x{at}"));
            let graph: GraphName = match is_named {
                true => iri("http://e/g").into(),
                false => GraphName::DefaultGraph,
            };
            let rdf = |name: &str| iri(&format!("{RDF}{name}"));
            let mut add = |s: NamedOrBlankNode, p: NamedNode, o: Term| {
                quads.push(Quad::new(s, p, o, graph.clone()));
            };
            let count = elements.len();
            for (at, element) in elements.into_iter().enumerate() {
                let rest: Term = match at + 1 == count {
                    true => rdf("nil").into(),
                    false => cell(at + 1).into(),
                };
                let first: Term = match nested == at && number > 0 {
                    true => BlankNode::new_unchecked(format!("l{}x0", number - 1)).into(),
                    false => element.into(),
                };
                add(cell(at).into(), rdf("rest"), rest);
                add(cell(at).into(), rdf("first"), first);
            }
            if nested < 4 {
                add(holder, iri("http://e/list"), cell(0).into());
            }
        }
        quads
    })
}

fn written(format: GraphFormat, quads: &[Quad], names: &Names, most: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = GraphWriter::new(format)
        .with_names(names.clone())
        .with_memory(None, most);
    for quad in quads {
        let graph = match &quad.graph_name {
            GraphName::DefaultGraph => None,
            GraphName::NamedNode(node) => Some(TermText::Iri(node.as_str())),
            GraphName::BlankNode(node) => Some(TermText::Blank(node.as_str())),
        };
        let subject = match quad.subject.as_ref() {
            NamedOrBlankNodeRef::NamedNode(node) => TermText::Iri(node.as_str()),
            NamedOrBlankNodeRef::BlankNode(node) => TermText::Blank(node.as_str()),
        };
        let text = QuadText {
            subject,
            predicate: quad.predicate.as_str(),
            object: quad.object.as_ref().into(),
            graph,
        };
        writer.quad(&mut out, text).expect("the format holds it");
    }
    assert_eq!(writer.triples(), quads.len() as u64);
    writer.finish(&mut out).expect("the format holds it");
    out
}

fn read(format: RdfFormat, text: &[u8]) -> Dataset {
    let shown = || String::from_utf8_lossy(text);
    let quads = RdfParser::from_format(format).for_slice(text);
    quads
        .map(|quad| quad.unwrap_or_else(|error| panic!("{error}\n{}", shown())))
        .collect()
}

fn canonical(mut dataset: Dataset) -> Dataset {
    dataset.canonicalize(CanonicalizationAlgorithm::Unstable);
    dataset
}

fn names(pairs: &[(&str, &str)]) -> Names {
    Names::new(
        pairs
            .iter()
            .map(|(name, iri)| ((*name).to_owned(), (*iri).to_owned())),
    )
}

fn text_of(term: &Term) -> &str {
    match term {
        Term::NamedNode(node) => node.as_str(),
        Term::BlankNode(node) => node.as_str(),
        Term::Literal(literal) => literal.value(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn graphs_read_back_with_any_prefixes_and_any_memory(
        quads in quads(),
        chosen in prop::sample::subsequence(PREFIXES.to_vec(), 0..=PREFIXES.len()),
        most in prop_oneof![Just(usize::MAX), Just(0), 300_usize..6000],
    ) {
        let names = names(&chosen);
        for (format, theirs) in FORMATS {
            let mut quads = quads.clone();
            if !format.has_named_graphs() {
                quads.iter_mut().for_each(|quad| quad.graph_name = GraphName::DefaultGraph);
            }
            if format == GraphFormat::RdfXml {
                quads.retain(|quad| not_xml(text_of(&quad.object)).is_none());
            }
            let text = written(format, &quads, &names, most);
            let found = read(theirs, &text);
            let expected: Dataset = quads.iter().cloned().collect();
            prop_assert_eq!(
                canonical(found), canonical(expected),
                "{}\n{}", format.name(), String::from_utf8_lossy(&text)
            );
        }
    }
}

fn turtle(text: &str) -> Vec<Quad> {
    let quads = RdfParser::from_format(RdfFormat::TriG).for_slice(text.as_bytes());
    quads.collect::<Result<_, _>>().expect("it is TriG")
}

#[test]
fn a_small_graph_is_laid_out_as_a_person_would_do_it() {
    let text = r#"@prefix e: <http://e/> . @prefix x: <http://unused/> .
        _:a e:name "A" . e:s e:p e:o, 1, 2.5, true ; a e:T ; e:to _:a .
        _:a e:list (1 (e:a "b") []) ; e:text """two
lines "quoted" """@en .
        e:empty e:list () . [] e:twice _:b . _:b e:q _:b . e:c e:twice _:b . e:s e:at <http://e/a/b> ."#;
    let names = names(&[("e", "http://e/"), ("x", "http://unused/")]);
    let found = written(GraphFormat::Turtle, &turtle(text), &names, usize::MAX);
    let found = String::from_utf8(found).expect("it is text");
    let label = found
        .split("e:twice ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    let expected = r#"@prefix e: <http://e/> .

e:s a e:T ;
    e:p e:o, 1, 2.5, true ;
    e:to [
        e:name "A" ;
        e:list ( 1 ( e:a "b" ) [] ) ;
        e:text """two
lines "quoted" """@en
    ] ;
    e:at <http://e/a/b> .

e:empty e:list () .

[] e:twice LABEL .

LABEL e:q LABEL .

e:c e:twice LABEL .
"#;
    assert_eq!(
        found,
        expected.replace("LABEL", label.expect("a node has a label"))
    );
}

#[test]
fn trig_has_a_block_for_each_graph_and_nests_nothing_across_them() {
    let text = r"@prefix e: <http://e/> . e:a e:p _:b . e:g { e:a e:p _:c . _:c e:q 1 . _:b e:q 2 }
        e:d e:p 3 . _:d { _:d e:p _:e }";
    let found = written(
        GraphFormat::TriG,
        &turtle(text),
        &names(&[("e", "http://e/")]),
        usize::MAX,
    );
    let found = String::from_utf8(found).expect("it is text");
    let labels: Vec<&str> = found
        .split("_:")
        .skip(1)
        .map(|rest| &rest[..rest.find(' ').unwrap_or(0)])
        .collect();
    let [b, b_again, d, d_again] = labels[..] else {
        panic!("{found}")
    };
    assert_eq!((b, d), (b_again, d_again), "{found}");
    let expected = "@prefix e: <http://e/> .\n\ne:a e:p _:B .\n\ne:d e:p 3 .\n\ne:g {\n    \
        e:a e:p [\n            e:q 1\n        ] .\n\n    _:B e:q 2 .\n}\n\n_:D {\n    _:D e:p [] .\n}\n";
    assert_eq!(found, expected.replace('B', b).replace('D', d));
}

#[test]
fn rdf_xml_declares_what_its_elements_use_and_rdf() {
    let text = "@prefix e: <http://e/> . @prefix n: <http://n/> .
        <http://s/a> a e:T ; n:p \" xmlns:its='http://www.w3.org/2005/11/its'\" .";
    let its = ("its", "http://www.w3.org/2005/11/its#");
    let all = [
        ("e", "http://e/"),
        ("n", "http://n/"),
        ("s", "http://s/"),
        its,
    ];
    let declared = |quads: &[Quad]| -> Vec<String> {
        let found = written(GraphFormat::RdfXml, quads, &names(&all), usize::MAX);
        read(RdfFormat::RdfXml, &found);
        let found = String::from_utf8(found).expect("it is text");
        let (_, root) = found.split_once("<rdf:RDF").expect("a root");
        let (root, _) = root.split_once('>').expect("its end");
        let names = root.split(" xmlns:").skip(1);
        names
            .map(|rest| rest.split('=').next().unwrap_or_default().to_owned())
            .collect()
    };
    assert_eq!(declared(&turtle(text)), ["e", "n", "rdf"]);
    assert_eq!(declared(&[]), ["rdf"]);
    let of_its = "<http://s/a> <http://www.w3.org/2005/11/its#p> <http://www.w3.org/2005/11/its> .";
    assert_eq!(declared(&turtle(of_its)), ["rdf"]);
}

#[test]
fn beyond_its_memory_a_graph_is_written_as_it_comes_with_all_prefixes() {
    let text = "@prefix e: <http://e/> . e:a e:p e:b, e:c ; e:q _:d . _:d e:p 1 . e:a e:p 2 . e:g { e:a a e:b }";
    let pairs: Vec<(String, String)> = (0..150)
        .map(|n| (format!("n{n}"), format!("http://n/{n}/")))
        .chain([("e".to_owned(), "http://e/".to_owned())])
        .collect();
    let found = written(GraphFormat::TriG, &turtle(text), &Names::new(pairs), 0);
    let found = String::from_utf8(found).expect("it is text");
    let (head, body) = found.split_once("\n\n").expect("declarations end");
    // The prefix of the first quad, and as many others as are declared unused.
    assert_eq!(head.lines().count(), 101, "{head}");
    let label = body
        .split("_:")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    let expected =
        "e:a e:p e:b, e:c ;\n    e:q _:D .\n_:D e:p 1 .\ne:a e:p 2 .\ne:g {\n    e:a a e:b .\n}\n";
    assert_eq!(
        body,
        expected.replace('D', label.expect("a node has a label"))
    );
}

/// What is nested as deeply as it likes, and lists as long as they like, need no stack of that size.
#[test]
fn long_lists_and_deep_nests_are_written_on_a_small_stack() {
    let count = 20_000;
    let p = iri("http://e/p");
    let blank = |n: usize| BlankNode::new_unchecked(format!("b{n}"));
    let nest: Vec<Quad> = (0..count)
        .map(|n| Quad::new(blank(n), p.clone(), blank(n + 1), GraphName::DefaultGraph))
        .collect();
    let cycle = Quad::new(blank(count), p.clone(), blank(0), GraphName::DefaultGraph);
    let (first, rest) = (iri(&format!("{RDF}first")), iri(&format!("{RDF}rest")));
    let mut list = Vec::new();
    for n in 0..count {
        let next: Term = match n + 1 == count {
            true => iri(&format!("{RDF}nil")).into(),
            false => blank(n + 1).into(),
        };
        list.push(Quad::new(
            blank(n),
            rest.clone(),
            next,
            GraphName::DefaultGraph,
        ));
        list.push(Quad::new(
            blank(n),
            first.clone(),
            Literal::from(7),
            GraphName::DefaultGraph,
        ));
    }
    let with_holder = |mut quads: Vec<Quad>, quad: Quad| {
        quads.push(quad);
        quads
    };
    let head = Quad::new(
        iri("http://e/s"),
        p.clone(),
        blank(0),
        GraphName::DefaultGraph,
    );
    let cases = [
        nest.clone(),
        with_holder(nest, cycle),
        with_holder(list.clone(), head),
        list,
    ];
    std::thread::scope(|scope| {
        let small = std::thread::Builder::new().stack_size(256 << 10);
        let check = || {
            for quads in &cases {
                let text = written(GraphFormat::Turtle, quads, &Names::default(), usize::MAX);
                assert_eq!(read(RdfFormat::Turtle, &text).len(), quads.len());
            }
            let one_line = written(
                GraphFormat::Turtle,
                &cases[2],
                &Names::default(),
                usize::MAX,
            );
            assert_eq!(one_line.iter().filter(|byte| **byte == b'\n').count(), 1);
        };
        let checked = small.spawn_scoped(scope, check).expect("a thread").join();
        checked.expect("all were written");
    });
}

#[test]
fn xml_and_json_declare_the_prefixes_that_they_use() {
    let text = "@prefix e: <http://e/> . <http://h/s> a <http://h/T> ; e:p <http://x/a> ; <http://z/q> 1 .";
    let names = names(&[
        ("e", "http://e/"),
        ("h", "http://h/"),
        ("x", "http://x/"),
        ("z", "http://y/"),
    ]);
    let quads = turtle(text);
    let xml = written(GraphFormat::RdfXml, &quads, &names, usize::MAX);
    let xml = String::from_utf8(xml).expect("it is text");
    assert!(
        xml.contains(r#"xmlns:e="http://e/""#) && xml.contains("<e:p "),
        "{xml}"
    );
    assert!(xml.contains("<h:T ") && !xml.contains("xmlns:x="), "{xml}");
    let json = written(GraphFormat::JsonLd, &quads, &names, usize::MAX);
    let expected = concat!(
        r#"{"@context":{"e":"http://e/","h":"http://h/","x":"http://x/","#,
        r#""xsd":"http://www.w3.org/2001/XMLSchema#"},"@graph":[{"@id":"h:s","@type":["h:T"],"#,
        r#""e:p":[{"@id":"x:a"}],"http://z/q":[{"@type":"xsd:integer","@value":"1"}]}]}"#,
    );
    let json = String::from_utf8(json).expect("it is text");
    assert_eq!(
        json,
        expected
            .replace(r#","xsd":"http://www.w3.org/2001/XMLSchema#""#, "")
            .replace("xsd:integer", "http://www.w3.org/2001/XMLSchema#integer")
    );
}

#[test]
fn a_pool_without_memory_ends_the_gathering_and_nothing_else() {
    let quads: Vec<Quad> = (0..20_000)
        .map(|n| {
            let subject = iri(&format!("http://e/{}", n % 100));
            Quad::new(
                subject,
                iri(&format!("http://e/p{}", n / 100)),
                Literal::from(n),
                GraphName::DefaultGraph,
            )
        })
        .collect();
    let write = |limit: u64| {
        let pool = std::sync::Arc::new(jindou_exec::MemoryPool::new(limit));
        let mut out = Vec::new();
        let mut writer = GraphWriter::new(GraphFormat::Turtle).with_memory(Some(&pool), 64 << 20);
        let mut most = 0;
        for quad in &quads {
            let triple: oxrdf::TripleRef<'_> = quad.as_ref().into();
            writer.triple(&mut out, triple).expect("Turtle holds it");
            most = most.max(pool.held_bytes());
        }
        writer.finish(&mut out).expect("Turtle holds it");
        assert!(most <= limit && pool.held_bytes() == 0, "{most} of {limit}");
        assert_eq!(read(RdfFormat::Turtle, &out).len(), quads.len());
        String::from_utf8(out)
            .expect("it is text")
            .matches(" .\n")
            .count()
    };
    assert_eq!(write(1 << 30), 100, "a statement for each subject");
    assert!(write(1 << 20) > 1000, "statements as they came");
}
