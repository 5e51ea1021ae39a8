//! Is the work linear in the text whatever is repeated or nested, and does it stay in its stack?

use crate::parser::Parser;
use crate::random::{Random, Writer, mutated};
use crate::{Error, MAX_NESTING, Options, parse_query, parse_update};

/// Texts as what is before, what is repeated (`#` is a number), what is between, and after.
const REPEATED: &[(&str, &str, &str, &str)] = &[
    ("", "PREFIX p#: <http://e/#>", "\n", "ASK {}"),
    ("", "BASE <http://e/#/>", "\n", "ASK {}"),
    ("", "VERSION '1.2'", "\n", "ASK {}"),
    ("SELECT ", "?x#", " ", " {}"),
    ("SELECT ", "(1 AS ?x#)", "", " {}"),
    ("SELECT ", "(COUNT(?y#) AS ?x#)", "", " {}"),
    ("SELECT ", "(?x + COUNT(*) AS ?x#)", "", " {} GROUP BY ?x"),
    ("SELECT * ", "FROM <http://e/#>", "", " {}"),
    ("ASK { ", "?s# ?p# ?o#", ".", " }"),
    ("SELECT * { ", "?s# ?p# ?o#", ".", " }"),
    ("ASK { ?s ?p ", "?o#", ",", " }"),
    ("ASK { ?s ?p 1", ";", "", " }"),
    ("ASK { ?s ", "?p# 1", ";", " }"),
    ("ASK { ?s ?p (", "?o#", " ", ") }"),
    ("ASK { ", "[ ?p ?o# ]", ".", " }"),
    ("ASK { ", "_:b# ?p _:b#", " .", " }"),
    ("ASK { ", "<< ?s# ?p ?o >>", ".", " }"),
    ("ASK { ?s ?p ?o ", "~ ?r# {| ?q ?z# |}", "", " }"),
    ("ASK { ?s ?p ", "<<( ?s# a 'x' )>>", ",", " }"),
    ("ASK { ?s a", "/a", "", " ?o }"),
    ("ASK { ?s a", "|^a*", "", " ?o }"),
    ("ASK { ?s !(a", "|^<http://e/#>", "", ") ?o }"),
    ("ASK { ", "OPTIONAL { ?s ?p ?o# }", "", " }"),
    ("ASK { ", "{ ?s ?p ?o# }", "UNION", " }"),
    ("SELECT * { ", "{ SELECT * { ?s ?p ?o# } }", "", " }"),
    (
        "SELECT * { ",
        "{ SELECT (COUNT(*) AS ?c#) { ?s ?p ?o# } }",
        "",
        " }",
    ),
    ("ASK { ", "MINUS { ?s ?p ?o# }", "", " }"),
    ("ASK { ", "GRAPH ?g# { ?s ?p ?o }", "", " }"),
    ("ASK { ", "SERVICE ?g# { ?s ?p ?o }", "", " }"),
    ("ASK { ", "BIND(1 AS ?x#)", "", " }"),
    ("ASK { ?s ?p ?o ", "FILTER(?x#)", "", " }"),
    ("ASK { ?s ?p ?o ", "FILTER(?x#) ?s ?p ?y# .", "", " }"),
    ("ASK { ?s ?p ?o ", "FILTER EXISTS { ?s ?p ?x# }", "", " }"),
    ("ASK { VALUES ?x { ", "'#'", " ", " } }"),
    ("ASK { VALUES (", "?x#", " ", ") {} }"),
    ("ASK { VALUES (?x ?y) { ", "(# UNDEF)", "", " } }"),
    ("ASK { ", "VALUES ?x# { 1 }", "", " }"),
    ("ASK { FILTER(?x ", "|| ?x#", "", ") }"),
    ("ASK { FILTER(?x ", "&& ?x# = 1", "", ") }"),
    ("ASK { FILTER(1 ", "+1", "", ") }"),
    ("ASK { FILTER(1 ", "- ?x#", "", ") }"),
    ("ASK { FILTER(1 ", "* ?x#", "", ") }"),
    ("ASK { FILTER(", "!", "", "?x) }"),
    ("ASK { FILTER(?x IN (1", ",?x#", "", ")) }"),
    ("ASK { FILTER(COALESCE(1", ",?x#", "", ")) }"),
    ("ASK { FILTER(<http://e/f>(1", ",?x#", "", ")) }"),
    ("SELECT (SUM(?x) AS ?y) {} GROUP BY ", "?x#", " ", ""),
    ("SELECT ?x0 {} GROUP BY ", "(1 AS ?x#)", " ", ""),
    ("ASK {} HAVING ", "(?x#)", " ", ""),
    ("ASK {} ORDER BY ", "DESC(?x#)", " ", ""),
    ("DESCRIBE ", "?x#", " ", " {}"),
    ("CONSTRUCT { ", "?s# ?p _:b#", " .", " } {}"),
    ("CONSTRUCT WHERE { ", "?s# ?p _:b#", " .", " }"),
    ("ASK { ?s ?p '", "x\\n", "", "' }"),
    ("ASK { ?s ?p '''", "x\\n''\n", "", "''' }"),
    ("ASK { ?s ?p <http://e/", "\\u0061", "", "> }"),
    (
        "PREFIX e: <http://e/> ASK { ?s ?p e:x",
        "%41.\\-",
        "",
        "x }",
    ),
    ("ASK {", " ", "#<'\"\n", "}"),
    ("ASK { ?s ?p ", "?o.?o ?p ", "", "1 }"),
    // Not grammatical, but read to some end.
    ("ASK { ?s ?p ", "a.", "", "?o }"),
    ("ASK { ?s ?p ", "a-b.", "", "?o }"),
    ("ASK { FILTER(1 ", "<a", "", ") }"),
    ("ASK { ", "'''", "'", " }"),
    ("ASK { ", "SELECT", "", " }"),
    ("", "(", " ", ""),
    ("ASK { ?s ?p ( ", "(", " ", ""),
];

const UPDATES: &[(&str, &str, &str, &str)] = &[
    ("", "INSERT DATA { <http://e/s> a # }", ";", ""),
    (
        "",
        "PREFIX p#: <http://e/#> BASE <http://e/#> INSERT DATA { _:b# a p#:x }",
        ";",
        "",
    ),
    ("", "CLEAR ALL", ";", ""),
    (
        "",
        "DELETE { ?s ?p # } INSERT { ?s ?p _:b# } WHERE { ?s ?p ?o# }",
        ";",
        "",
    ),
    ("INSERT DATA {", "<http://e/#> a (1 2), [ a 3 ]", ".", "}"),
    (
        "INSERT DATA { GRAPH <http://e/g> {",
        "<http://e/#> a <<( <http://e/#> a 1 )>>",
        ".",
        "} }",
    ),
    ("INSERT DATA {", "GRAPH <http://e/#> { _:b# a 1 }", "", "}"),
    (
        "DELETE DATA { <http://e/#> a ",
        "'#'^^<http://e/t>",
        ",",
        "}",
    ),
    ("DELETE WHERE {", "GRAPH ?g# { ?s ?p ?o }", "", "}"),
    ("INSERT { ?s ?p ", "(1 2)", ",", " } WHERE {}"),
    ("INSERT {} ", "USING <http://e/#>", "", " WHERE {}"),
];

fn written(&(before, repeated, between, after): &(&str, &str, &str, &str), count: usize) -> String {
    let mut text = before.to_owned();
    for number in 0..count {
        if number > 0 {
            text.push_str(between);
        }
        text.push_str(&repeated.replace('#', &number.to_string()));
    }
    text + after
}

/// What reading a text takes: looks at bytes, and steps over variables in scope.
fn work(text: &str, is_update: bool) -> (u64, Result<(), Error>) {
    let Ok(mut parser) = Parser::new(text, "text", Options::default()) else {
        return (0, Err(Error::MemoryRefused));
    };
    let read = match is_update {
        true => parser.update().map(drop),
        false => parser.query().map(drop),
    };
    let work = parser.lexer.looks + parser.scope.steps;
    (work, read.map_err(|failure| *failure))
}

#[test]
fn work_is_linear_in_what_is_repeated() {
    for (parts, is_update) in REPEATED
        .iter()
        .map(|parts| (parts, false))
        .chain(UPDATES.iter().map(|parts| (parts, true)))
    {
        for count in [1000, 100_000] {
            let text = written(parts, count);
            let (work, read) = work(&text, is_update);
            let most = 4 * text.len() as u64 + 100;
            assert!(work <= most, "{parts:?}: {work} for {} bytes", text.len());
            let is_wrong = matches!(parts.1, "a." | "a-b." | "<a" | "'''" | "SELECT" | "(");
            assert_eq!(read.is_err(), is_wrong, "{parts:?} {read:?}");
        }
    }
}

/// Texts as what is before, what opens, what is inside, what closes, and after; and how many
/// brackets are open outside.
const NESTED: &[(&str, &str, &str, &str, &str, usize)] = &[
    ("ASK ", "{", "", "}", "", 0),
    ("ASK { FILTER", "(", "1", ")", "}", 1),
    ("ASK { FILTER", "(!", "?x", ")", "}", 1),
    ("ASK { FILTER", "(1+2*-3<?x&&?y||", "?x", ")", "}", 1),
    ("ASK { FILTER(", "STR(", "?x", ")", ")}", 2),
    ("ASK { FILTER(", "REGEX('a',", "?x", ")", ")}", 2),
    ("ASK { FILTER(", "REPLACE(1,2,", "?x", ")", ")}", 2),
    ("ASK { FILTER(", "IF(1,2,", "?x", ")", ")}", 2),
    ("ASK { FILTER(", "<http://e/f>(1,", "?x", ")", ")}", 2),
    ("ASK { FILTER(", "1 IN (2,", "?x", ")", ")}", 2),
    ("ASK { FILTER(?x = ", "<<( ?s ?p ", "?x", ")>>", ")}", 2),
    (
        "ASK { VALUES ?x { ",
        "<<( <http://e/s> a ",
        "1",
        ")>>",
        "}}",
        2,
    ),
    ("ASK { ?s ?p ", "(", "1", ")", "}", 1),
    ("ASK { ?s ?p ", "[ ?p ", "1", "]", "}", 1),
    ("ASK { ?s ?p ", "<< ?s ?p ", "1", ">>", "}", 1),
    ("ASK { ", "<< ", "?s", " ?p 1 >>", "}", 1),
    ("ASK { ?s ?p ", "<<( ?s ?p ", "1", ")>>", "}", 1),
    ("ASK { ?s ?p ?o ", "{| ?p ?o ", "", "|}", "}", 1),
    ("ASK { ?s ", "(", "a", ")", " ?o }", 1),
    ("ASK { ?s ", "^(", "a", ")*", " ?o }", 1),
    ("ASK { ?s ", "(a/^", "a", "|a)*", " ?o }", 1),
    ("ASK ", "{ OPTIONAL ", "{}", "}", "", 1),
    ("ASK ", "{ {} UNION ", "{}", "}", "", 1),
    ("ASK ", "{ MINUS ", "{}", "}", "", 1),
    ("ASK ", "{ GRAPH ?g ", "{}", "}", "", 1),
    ("ASK ", "{ FILTER EXISTS ", "{}", "}", "", 1),
    ("ASK ", "{ FILTER NOT EXISTS ", "{}", "}", "", 1),
    ("ASK ", "{ SELECT * ", "{}", "}", "", 1),
    ("ASK ", "{ SELECT (COUNT(*) AS ?x) ", "{}", "}", "", 2),
    ("CONSTRUCT { ?s ?p ", "(", "1", ")", "} {}", 1),
];

const NESTED_DATA: &[(&str, &str, &str, &str, &str, usize)] = &[
    ("INSERT DATA { <http://e/s> a ", "(", "1", ")", "}", 1),
    ("INSERT DATA { <http://e/s> a ", "[ a ", "1", "]", "}", 1),
    (
        "INSERT DATA { <http://e/s> a ",
        "<<( <http://e/s> a ",
        "1",
        ")>>",
        "}",
        1,
    ),
    (
        "INSERT DATA { <http://e/s> a 1 ",
        "{| a 1 ",
        "",
        "|}",
        "}",
        1,
    ),
    ("INSERT { ?s ?p ", "(", "1", ")", "} WHERE {}", 1),
];

#[test]
fn nesting_is_bounded_and_fits_a_small_stack() {
    let work_of_all = || {
        let queries = NESTED.iter().map(|parts| (parts, false));
        for (parts, is_update) in queries.chain(NESTED_DATA.iter().map(|parts| (parts, true))) {
            let (before, open, inside, close, after, outside) = *parts;
            for (levels, fits) in [
                (MAX_NESTING - outside, true),
                (MAX_NESTING - outside + 1, false),
                (100_000, false),
            ] {
                let text = format!(
                    "{before}{}{inside}{}{after}",
                    open.repeat(levels),
                    close.repeat(levels)
                );
                let (work, read) = work(&text, is_update);
                assert!(work <= 4 * text.len() as u64 + 100, "{parts:?}: {work}");
                match (read, fits) {
                    (Ok(()), true) => (),
                    (Err(Error::TooLarge { limit, .. }), false) if limit == MAX_NESTING => (),
                    (read, _) => panic!("{parts:?} {levels}: {read:?}"),
                }
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    let done = thread.spawn(work_of_all).expect("a thread").join();
    if let Err(panic) = done {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn nested_star_selects_take_what_they_show() {
    let variables: String = (0..1000).map(|number| format!("?v{number} ")).collect();
    let inside = format!("VALUES ({variables}) {{}}");
    let text = format!(
        "{}{inside}{}",
        "{ SELECT * ".repeat(100) + "{",
        "}".repeat(101)
    );
    let text = format!("SELECT * {text}");
    let (work, read) = work(&text, false);
    assert_eq!(read, Ok(()));
    assert!(work < 1000 * 101 + 8 * text.len() as u64, "{work}");
}

/// How often a text that is read to its end asks whether to give up.
fn polls(read: impl FnOnce(Options<'_>)) -> usize {
    let asked = std::cell::Cell::new(0);
    let is_over = || {
        asked.set(asked.get() + 1);
        false
    };
    read(Options {
        is_over: Some(&is_over),
        ..Options::default()
    });
    asked.get()
}

#[test]
fn parsing_is_given_up_between_two_long_names() {
    let prefix = format!("PREFIX e: <http://e/{}#>", "long".repeat(10_000));
    for (inside, least) in [("?s e:p ?o . ", 1_000), ("?s <p> ?o . ", 0)] {
        let text = format!(
            "{prefix} BASE <http://e/> ASK {{ {} }}",
            inside.repeat(1_000)
        );
        let asked = polls(|options| assert!(parse_query(&text, options).is_ok()));
        let most = least + 2 + text.len() / 1_000;
        assert!((least..most).contains(&asked), "{asked}");
    }
}

#[test]
fn parsing_is_given_up_within_some_thousand_tokens() {
    let text = format!("ASK {{ {} }}", "?s ?p ?o . ".repeat(100_000));
    let asked = std::cell::Cell::new(0);
    let is_over = || {
        asked.set(asked.get() + 1);
        asked.get() == 3
    };
    let options = Options {
        is_over: Some(&is_over),
        ..Options::default()
    };
    assert_eq!(parse_query(&text, options), Err(Error::Interrupted));
    assert_eq!(asked.get(), 3);
    let data = format!("INSERT DATA {{ <http://e/s> a {}1 }}", "1,".repeat(100_000));
    let asked = polls(|options| assert!(parse_update(&data, options).is_ok()));
    assert!(asked > 40, "{asked}");
}

#[test]
fn no_text_makes_it_panic() {
    let seed = 0x5eed_f022;
    println!("seed {seed:#x}");
    let mut random = Random(seed);
    let pieces: &[&str] = &[
        "<",
        ">",
        "<<",
        "<<(",
        ")>>",
        "{|",
        "|}",
        "'",
        "\"",
        "'''",
        "\\",
        "\\u",
        "\\u00e9",
        "é",
        "\u{1F600}",
        "?",
        "$",
        "@",
        "^^",
        "_:",
        ":",
        "a:",
        "a.",
        "-",
        "+",
        ".",
        "1",
        "1.",
        "e",
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "#",
        "\n",
        "\r",
        "\0",
        " ",
        "SELECT",
        "ASK",
        "FILTER",
        "BIND",
        "INSERT DATA",
        "DELETE",
        "WHERE",
        "PREFIX",
        "BASE",
        "VALUES",
        "GROUP BY",
        "COUNT(",
        "AS",
        "?x",
        "%",
        "%4",
        "~",
        "&",
        "|",
        "*",
        "/",
        "!",
        "=",
        "\u{feff}",
        "\u{b7}",
        "\u{203f}",
    ];
    for number in 0..20_000 {
        let mut text = String::new();
        match number % 3 {
            0 => {
                for _ in 0..random.below(30) {
                    text.push_str(pieces[random.below(pieces.len())]);
                }
            }
            1 => {
                let bytes: Vec<u8> = (0..random.below(60))
                    .map(|_| u8::try_from(random.below(256)).expect("a byte"))
                    .collect();
                text = String::from_utf8_lossy(&bytes).into_owned();
            }
            _ => {
                text = Writer::new(&mut random, true).update();
                for _ in 0..3 {
                    text = mutated(&mut random, &text);
                    let cut = random.below(text.len() + 1);
                    if text.is_char_boundary(cut) && random.below(4) == 0 {
                        text.truncate(cut);
                    }
                }
            }
        }
        for made in [
            parse_query(&text, Options::default()).err(),
            parse_update(&text, Options::default()).err(),
        ]
        .into_iter()
        .flatten()
        {
            assert!(!made.to_string().is_empty());
        }
        let _ = crate::shape_of(&text);
    }
}
