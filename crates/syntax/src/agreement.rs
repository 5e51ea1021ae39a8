//! Does another parser accept the same texts, and where does it not, why?
//!
//! `spargebra` reads characters and goes back; we read the longest tokens that fit. So it is given
//! the tokens apart from each other, as the grammar has them. What is different then is one of the
//! kinds below, each with its reason.

use spargebra::SparqlParser;

use crate::keywords::Keyword;
use crate::lexer::{Kind, Lexer, Token};
use crate::random::{Random, Writer, mutated};
use crate::{Error, Options, parse_query, parse_update};

const BASE: &str = "http://base/folder/document?query";

/// Texts of which a sample is always tried; a number in this variable tries as many.
const SAMPLE: usize = 4000;
/// Texts of which nobody knows why they are different that are shown.
const MOST_SHOWN: usize = 12;
const VARIABLE: &str = "JINDOU_SYNTAX_TEXTS";

fn ours(text: &str, is_update: bool) -> Result<(), Error> {
    let options = Options {
        base: Some(BASE),
        ..Options::default()
    };
    match is_update {
        true => parse_update(text, options).map(drop),
        false => parse_query(text, options).map(drop),
    }
}

fn theirs(text: &str, is_update: bool) -> Result<(), String> {
    let parser = SparqlParser::new().with_base_iri(BASE).expect("a base");
    match is_update {
        true => parser
            .parse_update(text)
            .map(drop)
            .map_err(|error| error.to_string()),
        false => parser
            .parse_query(text)
            .map(drop)
            .map_err(|error| error.to_string()),
    }
}

fn tokens(text: &str) -> Vec<(Token, &str)> {
    let mut lexer = Lexer::new(text, 0);
    let mut tokens = Vec::new();
    loop {
        let token = lexer.next();
        if token.kind == Kind::End {
            return tokens;
        }
        tokens.push((token, token.of(text)));
    }
}

/// The tokens so that the other parser reads them as they are.
fn apart(tokens: &[(Token, &str)]) -> String {
    let mut text = String::new();
    let mut before = Kind::End;
    for (token, written) in tokens {
        match (before, token.kind) {
            // It has no white space before some brackets.
            (Kind::Word, Kind::OpenParen | Kind::Nil) => (),
            // It takes brackets with a comment inside for empty ones.
            (Kind::OpenParen, Kind::CloseParen) | (Kind::OpenBracket, Kind::CloseBracket) => {
                text.push_str(" #\n");
            }
            // It takes a sign, white space and a number for a number.
            (Kind::Plus | Kind::Minus, Kind::Integer | Kind::Decimal | Kind::Double) => {
                text.push_str(" (");
            }
            _ => text.push(' '),
        }
        match token.kind {
            // It has booleans in lower case only.
            Kind::Word
                if matches!(
                    Keyword::of(written.as_bytes()),
                    Keyword::True | Keyword::False
                ) =>
            {
                text.push_str(&written.to_ascii_lowercase());
            }
            // Points in names it has once, and no characters above 16 bits; and it takes the
            // beginning of a name for a keyword.
            Kind::Name => {
                let colon = token.extra as usize & 0xffff;
                let (prefix, local) = written.split_at(colon + 1);
                let begins = |length| Keyword::of(&prefix.as_bytes()[..length]) != Keyword::None;
                if (1..prefix.len()).any(begins) {
                    text.push_str("zz");
                }
                text.push_str(prefix);
                let has_points = local.matches('.').count() > 1;
                text.push_str(&if has_points {
                    local.replace('.', "")
                } else {
                    local.to_owned()
                });
            }
            Kind::Variable => {
                let plain: String = written
                    .chars()
                    .map(|c| if c > '\u{ffff}' { 'z' } else { c })
                    .collect();
                text.push_str(&plain);
            }
            // It is closed on no other line.
            Kind::Unclosed => {
                text.push_str(written);
                text.push('\n');
            }
            _ => text.push_str(written),
        }
        if matches!(before, Kind::Plus | Kind::Minus)
            && matches!(token.kind, Kind::Integer | Kind::Decimal | Kind::Double)
        {
            text.push(')');
        }
        before = token.kind;
    }
    text
}

/// Why we accept what the other parser does not.
fn why_accepted(tokens: &[(Token, &str)], message: &str) -> Option<&'static str> {
    let kind = |kinds: &[Kind]| tokens.iter().any(|(token, _)| kinds.contains(&token.kind));
    let word = |words: &[&str]| {
        tokens.iter().any(|(token, written)| {
            token.kind == Kind::Word && words.iter().any(|word| written.eq_ignore_ascii_case(word))
        })
    };
    let follows = |first: Kind, second: &[Kind]| {
        tokens
            .windows(2)
            .any(|pair| pair[0].0.kind == first && second.contains(&pair[1].0.kind))
    };
    let has_direction = tokens
        .iter()
        .any(|(token, written)| token.kind == Kind::Language && written.contains("--"));
    let is_grouped = word(&[
        "GROUP",
        "COUNT",
        "SUM",
        "MIN",
        "MAX",
        "AVG",
        "SAMPLE",
        "GROUP_CONCAT",
    ]);
    if kind(&[
        Kind::OpenReified,
        Kind::OpenTriple,
        Kind::Tilde,
        Kind::OpenAnnotation,
    ]) || has_direction
        || follows(Kind::Not, &[Kind::Not, Kind::Plus, Kind::Minus])
        || word(&[
            "VERSION",
            "LANGDIR",
            "HASLANG",
            "HASLANGDIR",
            "STRLANGDIR",
            "TRIPLE",
            "SUBJECT",
            "PREDICATE",
            "OBJECT",
            "ISTRIPLE",
        ])
    {
        return Some("SPARQL 1.2");
    }
    let base = oxiri::Iri::parse(BASE).expect("a base");
    let is_odd = |(token, written): &(Token, &str)| match token.kind {
        Kind::Iri => base.resolve(&written[1..written.len() - 1]).is_err(),
        Kind::Language => oxilangtag::LanguageTag::parse(&written[1..]).is_err(),
        _ => false,
    };
    if tokens.iter().any(is_odd) {
        return Some("IRIs and language tags that data may hold");
    }
    if follows(Kind::Not, &[Kind::Nil]) {
        return Some("an empty negated property set");
    }
    if is_grouped && word(&["ASK", "CONSTRUCT", "DESCRIBE"]) {
        return Some("aggregates and GROUP BY outside of SELECT");
    }
    if is_grouped && message.contains("unbound") {
        return Some("columns that use columns before, and names of keys");
    }
    if is_grouped && message.contains("overrides") {
        return Some("names of keys");
    }
    if word(&["DESCRIBE"]) && (message.contains("Duplicated") || message.contains("<unreported>")) {
        return Some("a variable that is described twice");
    }
    if kind(&[Kind::Label]) && word(&["EXISTS"]) {
        return Some("filters do not end a basic graph pattern");
    }
    if kind(&[Kind::Semicolon])
        && word(&["PREFIX", "BASE"])
        && word(&[
            "INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "ADD", "MOVE", "COPY", "CREATE", "WITH",
        ])
    {
        return Some("a prologue before each operation");
    }
    None
}

/// Why we refuse what the other parser accepts.
fn why_refused(tokens: &[(Token, &str)], error: &Error) -> Option<&'static str> {
    let word = |words: &[&str]| {
        tokens.iter().any(|(token, written)| {
            token.kind == Kind::Word && words.iter().any(|word| written.eq_ignore_ascii_case(word))
        })
    };
    let message = error.to_string();
    let hint = error.hint().unwrap_or_default();
    if message.starts_with("the aggregate") {
        return Some("aggregates where none may stand");
    }
    if message.contains("neither in GROUP BY") {
        return Some("ungrouped variables in BOUND and COALESCE, or keys under another name");
    }
    if message.contains("is used in two graph patterns") {
        return Some("labels in two basic graph patterns or WHERE clauses");
    }
    if message.contains("which is not an IRI") {
        return Some("the longest name is no IRI");
    }
    if message.contains("is read as an IRI") {
        return Some("the longest token is an IRI");
    }
    let alone = matches!(tokens, [.., (last, _)] if last.kind == Kind::Semicolon);
    if alone && message.contains("an operation such as") {
        return Some("a semicolon without an operation");
    }
    if word(&["LATERAL", "ADJUST"]) {
        return Some("extensions");
    }
    // It goes back behind a `;` to where a point would have to be.
    let at = error.span().map_or(0, |span| span.start);
    let before: Vec<Kind> = tokens
        .iter()
        .filter(|(token, _)| token.span.start < at)
        .map(|(token, _)| token.kind)
        .collect();
    let after_semicolon = matches!(
        before[..],
        [.., Kind::Semicolon, Kind::Variable | Kind::Iri | Kind::Name]
    );
    if after_semicolon && message.contains("the object of a triple") {
        return Some("triples without a point between them");
    }
    if message.contains("expected '.', ';', ','") || hint.starts_with("a '.' separates") {
        return Some("triples without a point between them");
    }
    None
}

/// Judges a text; the kind of difference if there is one, or all about it if it is of no kind.
fn compare(text: &str, is_update: bool) -> Result<Option<&'static str>, String> {
    let ours = ours(text, is_update);
    let tokens = tokens(text);
    let apart = apart(&tokens);
    let theirs = theirs(&apart, is_update);
    let explained = match (&ours, &theirs) {
        (Ok(()), Ok(())) | (Err(_), Err(_)) => return Ok(None),
        (Ok(()), Err(message)) => why_accepted(&tokens, message),
        (Err(error), Ok(())) => why_refused(&tokens, error),
    };
    match explained {
        Some(kind) => Ok(Some(kind)),
        None => Err(format!(
            "{text}\nas {apart}\nours {ours:?}\ntheirs {theirs:?}"
        )),
    }
}

#[test]
fn another_parser_accepts_the_same_texts() {
    let count = std::env::var(VARIABLE)
        .ok()
        .and_then(|count| count.parse().ok());
    let count = count.unwrap_or(SAMPLE);
    let seed = 0x5eed_0f5c_7a11;
    println!("seed {seed:#x}, {count} texts");
    let mut random = Random(seed);
    let mut kinds = std::collections::BTreeMap::<&str, usize>::new();
    let (mut accepted, mut refused) = (0, 0);
    let mut different = Vec::new();
    for number in 0..count {
        let has_new = number % 8 == 0;
        let is_update = number % 4 == 1;
        let mut writer = Writer::new(&mut random, has_new);
        let mut text = match is_update {
            true => writer.update(),
            false => writer.query(),
        };
        if number % 2 == 1 {
            text = mutated(&mut random, &text);
        }
        match ours(&text, is_update).is_ok() {
            true => accepted += 1,
            false => refused += 1,
        }
        match compare(&text, is_update) {
            Ok(None) => (),
            Ok(Some(kind)) => *kinds.entry(kind).or_default() += 1,
            Err(unexplained) if different.len() < MOST_SHOWN => different.push(unexplained),
            Err(_) => (),
        }
    }
    println!("{accepted} accepted, {refused} refused; different: {kinds:#?}");
    assert!(
        different.is_empty(),
        "seed {seed:#x}\n{}",
        different.join("\n\n")
    );
    assert!(accepted > count / 4 && refused > count / 4);
}

#[test]
fn errors_have_a_place_in_the_text() {
    let seed = 0x5eed_a9a7;
    println!("seed {seed:#x}");
    let mut random = Random(seed);
    for _ in 0..2000 {
        let text = Writer::new(&mut random, true).query();
        let text = mutated(&mut random, &text);
        let is_update = false;
        let Err(error) = ours(&text, is_update) else {
            continue;
        };
        // An error is at a place of the text, and a character begins there.
        if let Some(span) = error.span() {
            assert!(
                span.start <= span.end && span.end as usize <= text.len(),
                "{text}"
            );
            assert!(
                text.get(span.start as usize..span.end as usize).is_some(),
                "{text}"
            );
            let (line, column) = crate::position(&text, span.start);
            assert!(
                line >= 1 && column >= 1 && line <= text.lines().count() + 1,
                "{text}"
            );
        }
    }
}
