//! Data is read as the parser of patterns reads it, and what is wrong with it is refused.

use std::collections::BTreeMap;

use jindou_syntax::data::DataTerm;
use jindou_syntax::tree::OperationKind;
use jindou_syntax::{Error, Options, parse_update, position};
use oxrdf::{NamedOrBlankNode, Term};
use spargebra::term::{GraphName, GroundTerm};
use spargebra::{GraphUpdateOperation, SparqlParser};

const BASE: &str = "http://base/folder/document?query";
const PROLOGUE: &str =
    "PREFIX e: <http://e/> PREFIX : <relative/> BASE <deeper/> PREFIX é.x: <http://é/x#>\n";

/// Subject, predicate, object and graph; blank nodes without a label begin with `_:_`.
type Quad = [String; 4];

fn ours(text: &str) -> Result<Vec<Quad>, Error> {
    let options = Options {
        base: Some(BASE),
        ..Options::default()
    };
    let operations = parse_update(text, options)?;
    let mut quads = Vec::new();
    let term = |term: DataTerm<'_>| match term {
        DataTerm::Iri(iri) => format!("<{iri}>"),
        DataTerm::Literal(literal) => literal.to_string(),
        DataTerm::Label(label) => format!("_:{label}"),
        DataTerm::Anonymous(number) => format!("_:_{number}"),
    };
    for operation in &operations {
        if let OperationKind::InsertData(data) | OperationKind::DeleteData(data) = &operation.kind {
            data.for_each::<Error>(&mut |quad| {
                let predicate = format!("<{}>", quad.predicate);
                let graph = quad.graph.map(|graph| format!("<{graph}>"));
                quads.push([
                    term(quad.subject),
                    predicate,
                    term(quad.object),
                    graph.unwrap_or_default(),
                ]);
                Ok(())
            })?;
        }
    }
    Ok(quads)
}

fn theirs(text: &str) -> Option<Vec<Quad>> {
    let parser = SparqlParser::new().with_base_iri(BASE).expect("a base");
    let update = parser.parse_update(text).ok()?;
    let label = |node: &oxrdf::BlankNode| match node.as_str() {
        // The parser's own labels have 32 digits or nearly so.
        own if own.len() > 20 => format!("_:_{own}"),
        own => format!("_:{own}"),
    };
    let graph = |name: &GraphName| match name {
        GraphName::NamedNode(node) => node.to_string(),
        GraphName::DefaultGraph => String::new(),
    };
    let mut quads = Vec::new();
    for operation in update.operations {
        match operation {
            GraphUpdateOperation::InsertData { data } => {
                quads.extend(data.iter().map(|quad| {
                    let subject = match &quad.subject {
                        NamedOrBlankNode::NamedNode(node) => node.to_string(),
                        NamedOrBlankNode::BlankNode(node) => label(node),
                    };
                    let object = match &quad.object {
                        Term::BlankNode(node) => label(node),
                        other => other.to_string(),
                    };
                    let predicate = quad.predicate.to_string();
                    [subject, predicate, object, graph(&quad.graph_name)]
                }));
            }
            GraphUpdateOperation::DeleteData { data } => {
                quads.extend(data.iter().map(|quad| {
                    let object = match &quad.object {
                        GroundTerm::NamedNode(node) => node.to_string(),
                        GroundTerm::Literal(literal) => literal.to_string(),
                    };
                    let (subject, predicate) = (&quad.subject, &quad.predicate);
                    [
                        subject.to_string(),
                        predicate.to_string(),
                        object,
                        graph(&quad.graph_name),
                    ]
                }));
            }
            other => panic!("{other:?}"),
        }
    }
    Some(quads)
}

/// A term with what is said of it in the place of a blank node without a label.
fn written(term: &str, said: &BTreeMap<&str, Vec<&Quad>>) -> String {
    if !term.starts_with("_:_") {
        return term.to_owned();
    }
    let quads = said.get(term).into_iter().flatten();
    let mut inside: Vec<String> = quads
        .map(|[_, p, o, g]| format!("{p} {} {g}", written(o, said)))
        .collect();
    inside.sort();
    format!("[{}]", inside.join(";"))
}

/// The quads in order, without labels that the parsers gave: such a node is the object of one quad
/// at most.
fn canonical(quads: &[Quad]) -> Vec<String> {
    let mut said: BTreeMap<&str, Vec<&Quad>> = BTreeMap::new();
    let mut objects = BTreeMap::new();
    for quad in quads {
        said.entry(&quad[0]).or_default().push(quad);
        *objects.entry(quad[2].as_str()).or_insert(0) += 1;
    }
    let is_inside = |term: &str| term.starts_with("_:_") && objects.contains_key(term);
    let top = quads.iter().filter(|quad| !is_inside(&quad[0]));
    let mut lines: Vec<String> = top
        .map(|[s, p, o, g]| format!("{} {p} {} {g}", written(s, &said), written(o, &said)))
        .collect();
    lines.sort();
    lines
}

/// The same numbers on all machines.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    fn space(&mut self) -> &'static str {
        self.of(&[" ", "  ", "\n", "\t", " # ; } a comment\r\n", " "])
    }

    fn iri(&mut self) -> &'static str {
        self.of(&[
            "<http://e/a>",
            "<a/../b>",
            "<#x>",
            "<>",
            "<//other/y>",
            "<http://e/\\u00e9\\U000000e9>",
            "e:local ",
            "e: ",
            ":a.b ",
            "e:1-2_3 ",
            "e:a%20b\\~\\(c\\) ",
            "é.x:ü:z ",
        ])
    }

    fn literal(&mut self) -> &'static str {
        self.of(&[
            "5",
            "-5",
            "+05",
            "1.50",
            ".5",
            "-.5e3",
            "1e0",
            "1.E-2",
            "true",
            "false",
            "''",
            "\"\"",
            "'a b'",
            "\"it's\"",
            "'''x'y''z\n\"'''",
            "\"\"\"\n\"a\"\" \"\"\"",
            "'x'@en",
            "'x' @EN-us",
            "'x'@de-1996",
            "'5'^^e:t ",
            "'5' ^^ <t>",
            "'\\t\\n\\r\\b\\f\\\"\\'\\\\'",
            "'\\u00e9\\U0001F600'",
            "'x'^^<http://www.w3.org/2001/XMLSchema#string>",
            "'é😀'",
            "'''''a'''",
            "'# no comment'",
        ])
    }

    fn object(&mut self, depth: usize, has_blanks: bool, out: &mut String) {
        match self.below(if has_blanks && depth < 4 { 10 } else { 5 }) {
            0 | 1 => out.push_str(self.iri()),
            2 | 3 => out.push_str(self.literal()),
            4 => out.push_str(self.of(&["()", "( )"])),
            5 => out.push_str(self.of(&["[]", "[\n]", "_:a ", "_:b.c-d ", "_:0 "])),
            6 | 7 => {
                out.push('[');
                self.properties(depth + 1, has_blanks, out);
                out.push(']');
            }
            _ => {
                out.push('(');
                for _ in 0..=self.below(4) {
                    out.push_str(self.space());
                    self.object(depth + 1, has_blanks, out);
                }
                out.push_str(self.space());
                out.push(')');
            }
        }
    }

    fn properties(&mut self, depth: usize, has_blanks: bool, out: &mut String) {
        for number in 0..=self.below(3) {
            if number > 0 {
                out.push_str(self.of(&[";", " ;", "; ;", " ; # c\n;"]));
            }
            out.push_str(self.space());
            match self.below(4) {
                0 => out.push_str("a "),
                _ => out.push_str(self.iri()),
            }
            for number in 0..=self.below(3) {
                if number > 0 {
                    out.push_str(self.of(&[",", " ,"]));
                }
                out.push_str(self.space());
                self.object(depth, has_blanks, out);
            }
        }
        out.push_str(self.of(&["", " ", ";", " ; ; "]));
    }

    fn triples(&mut self, has_blanks: bool, out: &mut String) {
        for _ in 0..self.below(4) {
            let mut subject = String::new();
            match self.below(if has_blanks { 5 } else { 2 }) {
                0 | 1 => subject.push_str(self.iri()),
                2 => subject.push_str(self.of(&["[]", "_:a ", "_:c ", "()"])),
                _ => {
                    while !subject.starts_with(['[', '(']) {
                        subject.clear();
                        self.object(0, true, &mut subject);
                    }
                }
            }
            out.push_str(&subject);
            // Brackets with something in them need no properties.
            let is_alone = subject.starts_with(['[', '(']) && subject.trim().len() > 3;
            if !is_alone || self.below(2) == 0 {
                self.properties(0, has_blanks, out);
            }
            out.push_str(self.of(&[" .", " . ", "\n."]));
        }
    }

    fn update(&mut self) -> String {
        let has_blanks = self.below(4) > 0;
        let mut out = PROLOGUE.to_owned();
        out.push_str(match has_blanks {
            true => self.of(&["INSERT DATA {", "insert # c\n data{", "INSERTDATA {"]),
            false => self.of(&["DELETE DATA {", "Delete\nData {"]),
        });
        for _ in 0..self.below(4) {
            self.triples(has_blanks, &mut out);
            if self.below(2) == 0 {
                out.push_str(self.of(&[" GRAPH ", "\ngraph\n"]));
                out.push_str(self.iri());
                out.push_str(" {");
                self.triples(has_blanks, &mut out);
                out.push_str(self.of(&["}", " } .", "\n}\n"]));
            }
        }
        out.push_str(self.of(&["}", " } ", "} ;", "} # the end"]));
        out
    }
}

/// True if the parser of patterns refuses the triples in a graph, where it insists on points.
fn lacks_a_point(text: &str) -> bool {
    let data = text[PROLOGUE.len()..].find('{').expect("a block") + PROLOGUE.len() + 1;
    let has_graphs = text[data..].to_ascii_lowercase().contains("graph");
    let end = text.rfind('}').expect("a block");
    let inside = &text[data..end];
    has_graphs || theirs(&format!("{} GRAPH e:g {{ {inside}\n}} }}", &text[..data])).is_none()
}

/// The text of a DELETE DATA as that of an INSERT DATA.
fn as_insert(text: &str) -> String {
    let operation = PROLOGUE.len();
    let word = text[operation..].to_ascii_lowercase().find("delete");
    let mut text = text.to_owned();
    if let Some(at) = word.map(|at| operation + at) {
        text.replace_range(at..at + "delete".len(), "insert");
    }
    text
}

fn assert_same(text: &str) -> bool {
    match (ours(text), theirs(text)) {
        (Ok(ours), Some(theirs)) => {
            assert_eq!(canonical(&ours), canonical(&theirs), "{text}");
            true
        }
        (Err(Error::Syntax { span, .. }), None) => {
            let (line, column) = position(text, span.start);
            assert!(line >= 1 && column >= 1 && line <= text.lines().count() + 1);
            false
        }
        // The parser of patterns goes back to where it can do without a point between triples,
        // which SPARQL does not allow.
        (Err(Error::Syntax { .. }), Some(_)) if lacks_a_point(text) => false,
        // Terms that no parser reads but those of data may be removed, and not inserted.
        (Ok(_), None) if ours(&as_insert(text)).is_err() => false,
        (ours, theirs) => panic!("{text}\n{ours:?}\n{theirs:?}"),
    }
}

#[test]
fn data_is_read_as_the_parser_of_patterns_reads_it() {
    let seed = 0x5eed_da7a;
    println!("seed {seed:x}");
    let mut random = Random(seed);
    let accepted = (0..2000).filter(|_| assert_same(&random.update())).count();
    assert!(accepted > 1900, "{accepted} accepted");
}

#[test]
fn wrong_data_is_refused_as_the_parser_of_patterns_does() {
    let seed = 0xbad_da7a;
    println!("seed {seed:x}");
    let mut random = Random(seed);
    let mut refused = 0;
    for _ in 0..4000 {
        let mut text = random.update();
        for _ in 0..=random.below(2) {
            let prologue = PROLOGUE.chars().count();
            let characters: Vec<(usize, char)> = text.char_indices().skip(prologue).collect();
            let (at, removed) = characters[random.below(characters.len())];
            let put = random.of(&[
                "", ".", ";", "[", "]", "(", ")", "{", "}", "'", "<", "?x ", ":",
            ]);
            text.replace_range(at..at + removed.len_utf8(), put);
        }
        refused += usize::from(!assert_same(&text));
    }
    assert!(refused > 1000, "{refused} refused");
}

#[test]
fn labels_belong_to_one_operation() {
    let text = "INSERT DATA { _:a <http://e/p> 1 } ; INSERT DATA { _:a <http://e/p> 2 }";
    let error = ours(text).expect_err("the same label");
    let message = "the blank node _:a is used in two INSERT DATA operations";
    assert_eq!(error.to_string(), message);
    assert_eq!(error.span().map(|span| span.start), Some(51));
    let text = "INSERT DATA { _:a <http://e/p> _:a } ; INSERT DATA { _:b <http://e/p> 2 }";
    assert_eq!(ours(text).map(|quads| quads.len()), Ok(2));
}

#[test]
fn declarations_hold_from_where_they_stand() {
    let text = "PREFIX e: <http://1/> INSERT DATA { e:a e:b e:c } ;
        PREFIX e: <http://2/> BASE <http://3/> INSERT DATA { <a> e:b e:c }";
    let quads = ours(text).expect("data");
    assert_eq!(quads[0][0], "<http://1/a>");
    assert_eq!(
        quads[1],
        ["<http://3/a>", "<http://2/b>", "<http://2/c>", ""]
    );
}

#[test]
fn what_no_store_holds_yet_is_named() {
    for (data, what) in [
        (
            "<http://e/s> <http://e/p> <<( <http://e/s> <http://e/p> 1 )>>",
            "triple terms in data",
        ),
        (
            "<http://e/s> <http://e/p> 1 {| <http://e/q> 2 |}",
            "triple terms in data",
        ),
        (
            "<http://e/s> <http://e/p> 'x'@en--ltr",
            "literals with a base direction in data",
        ),
    ] {
        let text = format!("INSERT DATA {{ {data} }}");
        let operations = parse_update(&text, Options::default()).expect("an update");
        let OperationKind::InsertData(block) = &operations[0].kind else {
            panic!("{operations:?}");
        };
        assert_eq!(block.beyond().map(|(what, _)| what), Some(what));
        let read = block.for_each::<Error>(&mut |_| Ok(()));
        assert!(matches!(read, Err(Error::Unsupported { .. })), "{read:?}");
    }
}

#[test]
fn a_sink_ends_the_reading() {
    let text = "INSERT DATA { <http://e/s> <http://e/p> 1, 2, 3 }";
    let operations = parse_update(text, Options::default()).expect("an update");
    let OperationKind::InsertData(block) = &operations[0].kind else {
        panic!("{operations:?}");
    };
    let mut count = 0;
    let read = block.for_each::<Error>(&mut |_| {
        count += 1;
        match count {
            2 => Err(Error::Interrupted),
            _ => Ok(()),
        }
    });
    assert_eq!((read, count), (Err(Error::Interrupted), 2));
    assert_eq!(
        &text[block.span().start as usize..block.span().end as usize],
        &text[12..]
    );
}
