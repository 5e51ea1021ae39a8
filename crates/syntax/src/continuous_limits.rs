//! Do continuous queries keep the bounds of queries, does no text of theirs panic, and is each
//! query without windows the same as before?

use crate::continuous::Registration;
use crate::lexer::{Kind, Lexer};
use crate::parser::Parser;
use crate::random::{Random, Writer, mutated};
use crate::{Error, MAX_NESTING, MAX_WINDOWS, Options, parse_continuous, parse_query};

const BASE: &str = "http://base/folder/document?query";

fn read(text: &str) -> Result<Registration<'_>, Error> {
    let options = Options {
        base: Some(BASE),
        ..Options::default()
    };
    parse_continuous(text, options)
}

/// Looks at bytes and steps over variables that reading a text takes.
fn work(text: &str) -> (u64, Result<(), Error>) {
    let Ok(mut parser) = Parser::new(text, "query", Options::default()) else {
        return (0, Err(Error::MemoryRefused));
    };
    let read = parser.registration().map(drop);
    let work = parser.lexer.looks + parser.scope.steps;
    (work, read.map_err(|failure| *failure))
}

#[test]
fn work_is_linear_in_what_is_repeated() {
    let header = "REGISTER QUERY q AS SELECT * FROM NAMED WINDOW <e:w> ON s [RANGE 1s]";
    let pattern = format!("{header} {{ ");
    for (before, repeated, after) in [
        ("ASK ", "FROM X-Lab ", "{}"),
        ("ASK ", "FROM NAMED <http://e/#> ", "{}"),
        ("ASK { ", "GRAPH Tweet-Stream { ?s# ?p ?o } ", "}"),
        (header, "", "{ ?s ?p ?o }"),
        (&pattern, "WINDOW <e:w> { ?s# ?p ?o } ", "}"),
        (&pattern, "WINDOW ?w# {} ", "}"),
        ("ASK { FILTER(1 ", "+ timestamp(?x#)", ") }"),
        ("REGISTER QUERY a", "-b", " AS ASK {}"),
        ("REGISTER QUERY ", "InAs", " AS ASK {}"),
    ] {
        for count in [1000, 20_000] {
            let parts = (0..count).map(|number| repeated.replace('#', &number.to_string()));
            let text = format!("{before}{}{after}", parts.collect::<String>());
            let (work, read) = work(&text);
            assert_eq!(read, Ok(()), "{before} {repeated}");
            let most = 4 * text.len() as u64 + 100;
            assert!(
                work <= most,
                "{before} {repeated}: {work} for {}",
                text.len()
            );
        }
    }
}

#[test]
fn windows_are_bounded() {
    let clauses = |count| -> String {
        let each = (0..count).map(|i| format!("FROM NAMED WINDOW <w:{i}> ON s [RANGE 1s] "));
        each.collect()
    };
    let text = format!("ASK {} {{}}", clauses(MAX_WINDOWS));
    let registration = read(&text).expect("as many as there may be");
    assert_eq!(registration.windows.len(), MAX_WINDOWS);
    let text = format!("ASK {} {{}}", clauses(MAX_WINDOWS + 1));
    match read(&text) {
        Err(Error::TooLarge { span, limit, .. }) => {
            assert_eq!(limit, MAX_WINDOWS);
            assert_eq!(Some(span.start as usize), text.rfind('['));
        }
        read => panic!("{read:?}"),
    }
}

#[test]
fn nesting_is_bounded_and_fits_a_small_stack() {
    let nested = || {
        for open in [
            "{ WINDOW ?w ",
            "{ GRAPH Bare ",
            "{ FILTER EXISTS { WINDOW ?w ",
        ] {
            for (levels, fits) in [(100, true), (MAX_NESTING + 1, false), (50_000, false)] {
                let close = "}".repeat(open.matches('{').count());
                let text = format!("ASK {}{{}}{}", open.repeat(levels), close.repeat(levels));
                match (read(&text), fits) {
                    (Ok(_), true) => (),
                    (Err(Error::TooLarge { limit, .. }), false) => assert_eq!(limit, MAX_NESTING),
                    (read, _) => panic!("{open} {levels}: {:?}", read.map(drop)),
                }
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    thread
        .spawn(nested)
        .expect("a thread")
        .join()
        .expect("no panic");
}

#[test]
fn parsing_ends_where_memory_or_patience_does() {
    let clauses: String = (0..MAX_WINDOWS)
        .map(|i| format!("FROM NAMED <http://e/{i}> [RANGE 1s] FROM Bare{i} "))
        .collect();
    let text = format!("ASK {clauses} {{}}");
    let mut left = 4_000_usize;
    let mut reserve = |bytes| {
        let rest = left.checked_sub(bytes);
        left = rest.unwrap_or(left);
        rest.is_some()
    };
    let options = Options {
        reserve: Some(&mut reserve),
        ..Options::default()
    };
    assert_eq!(parse_continuous(&text, options), Err(Error::MemoryRefused));
    let text = format!("ASK {{ {} }}", "GRAPH Bare {} ".repeat(5_000));
    let is_over = || true;
    let options = Options {
        is_over: Some(&is_over),
        ..Options::default()
    };
    assert_eq!(parse_continuous(&text, options), Err(Error::Interrupted));
}

#[test]
fn a_query_without_windows_is_read_as_before() {
    let seed = 0x5eed_c0ff;
    println!("seed {seed:#x}");
    let mut random = Random(seed);
    let mut accepted = 0;
    for number in 0..4000 {
        let mut text = Writer::new(&mut random, number % 8 == 0).query();
        if number % 2 == 1 {
            text = mutated(&mut random, &text);
        }
        let options = Options {
            base: Some(BASE),
            ..Options::default()
        };
        let query = parse_query(&text, options);
        match (read(&text), query) {
            (Ok(registration), Ok(query)) => {
                assert_eq!(registration.query, query, "{text}");
                assert!(registration.windows.is_empty() && registration.name.is_none());
                accepted += 1;
            }
            // A mistake may have made a bare name of an IRI.
            (Ok(registration), Err(error)) => {
                let graphs = &registration.graphs;
                let has_bare = !graphs.default.is_empty() || !graphs.named.is_empty();
                let in_pattern = format!("{registration:?}").contains("BareGraph");
                assert!(has_bare || in_pattern, "{text}: {error}");
            }
            (Err(error), Ok(_)) => panic!("{text}: {error}"),
            (Err(_), Err(_)) => (),
        }
    }
    assert!(accepted > 1000, "{accepted}");
}

/// Texts of all forms, whose tokens are cut and doubled.
const TEXTS: &[&str] = &[
    "PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> \
     REGISTER RSTREAM :o COMPUTED EVERY \"PT1S\"^^xsd:duration AS SELECT ?s (COUNT(*) AS ?n) \
     FROM NAMED WINDOW :w ON STREAM :s [RANGE PT10S STEP PT0.5S] \
     FROM NAMED WINDOW :v ON t-1 [TRIPLES 10 STEP 2] FROM :g FROM NAMED :h \
     WHERE { ?s :p ?o . WINDOW :w { ?s :q 'o'@en } WINDOW ?x { ?s ?y 1 } } GROUP BY ?s",
    "REGISTER STREAM InAs COMPUTED EVERY 10 ms AS BASE <http://e/> CONSTRUCT { ?s <p> ?o } \
     FROM STREAM <s> [RANGE 1h TUMBLING] FROM NAMED STREAM <t> [RANGE TRIPLES 5] FROM <g> \
     WHERE { GRAPH <t> { ?s <p> ?o } FILTER(timestamp(?s) > 5) }",
    "REGISTER QUERY QC SELECT * FROM Tweet_Stream [RANGE 10s STEP 1s] FROM X-Lab \
     FROM NAMED Y-Lab WHERE { GRAPH Tweet_Stream { ?x ?p ?z } GRAPH X-Lab { ?x ?f ?y } }",
];

/// A text with tokens cut, doubled, moved, or taken from another.
fn shuffled(random: &mut Random, text: &str) -> String {
    let mut lexer = Lexer::new(text, 0);
    let mut tokens = Vec::new();
    loop {
        let token = lexer.next();
        if token.kind == Kind::End {
            break;
        }
        tokens.push(token.of(text));
    }
    for _ in 0..=random.below(3) {
        let at = random.below(tokens.len());
        match random.below(4) {
            0 => {
                tokens.remove(at);
            }
            1 => tokens.insert(at, tokens[at]),
            2 => {
                let other = random.below(tokens.len());
                tokens.swap(at, other);
            }
            _ => {
                let token = random.of(&[
                    "REGISTER",
                    "STREAM",
                    "WINDOW",
                    "[",
                    "]",
                    "RANGE",
                    "STEP",
                    "-",
                    "PT1S",
                    "0s",
                    "10",
                    "s",
                    "TRIPLES",
                    "TUMBLING",
                    "ON",
                    "AS",
                    "NOW",
                    "X-Y",
                    "<http://e/x>",
                    "{",
                    "}",
                    "'PT0S'",
                    "-PT1S",
                    "RSTREAM",
                    "P1Y",
                    "PT.",
                    "99999999999999999999d",
                ]);
                tokens.insert(at, token);
            }
        }
    }
    let space = random.of(&[" ", " ", "\n", "", " #c\n"]);
    tokens.join(space)
}

#[test]
fn no_text_of_cut_and_doubled_tokens_panics() {
    let seed = 0x5eed_57ea;
    println!("seed {seed:#x}");
    let mut random = Random(seed);
    let mut refused = 0;
    for _ in 0..20_000 {
        let text = random.of(TEXTS);
        assert!(read(text).is_ok(), "{text}");
        let text = shuffled(&mut random, text);
        let Err(error) = read(&text) else {
            continue;
        };
        refused += 1;
        assert!(!error.to_string().is_empty());
        let span = error.span().expect("a place");
        assert!(span.start <= span.end, "{text}");
        assert!(
            text.get(span.start as usize..span.end as usize).is_some(),
            "{text}"
        );
    }
    assert!(refused > 10_000, "{refused}");
}
