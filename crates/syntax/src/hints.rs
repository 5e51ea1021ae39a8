//! How is a mistake put into words, and what would mend it?

use crate::chars::{is_base, is_inner};
use crate::lexer::Kind;
use crate::parser::Parser;
use crate::prefixes::PREFIXES;
use crate::words;

/// Most characters of a text that a message shows.
const MOST_SHOWN: usize = 40;

/// A part of the text as a message shows it.
pub(crate) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(MOST_SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// What is next in the text, for a message.
pub(crate) fn found(parser: &Parser<'_, '_>) -> String {
    let written = parser.token.of(parser.text);
    match parser.token.kind {
        Kind::End => format!("the end of the {}", parser.whole),
        Kind::String => format!("the string {}", shown(written)),
        Kind::Unknown => match written.chars().next() {
            Some(c) if c.is_control() || c.is_whitespace() || INVISIBLE.contains(&c) => {
                format!("the character U+{:04X}", u32::from(c))
            }
            _ => format!("'{}'", shown(written)),
        },
        _ => format!("'{}'", shown(written)),
    }
}

/// The parts of a list as they are said.
pub(crate) fn list(parts: &[&str]) -> String {
    match parts {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// A number of things.
pub(crate) fn count(number: usize, thing: &str) -> String {
    match number {
        0 => format!("no {thing}s"),
        1 => format!("one {thing}"),
        _ => format!("{number} {thing}s"),
    }
}

/// How a bracket or sign is written, for a message.
pub(crate) const fn sign(kind: Kind) -> &'static str {
    match kind {
        Kind::OpenBrace => "'{'",
        Kind::CloseBrace => "'}'",
        Kind::OpenParen => "'('",
        Kind::CloseParen => "')'",
        Kind::OpenBracket => "'['",
        Kind::CloseBracket => "']'",
        Kind::OpenAnnotation => "'{|'",
        Kind::CloseAnnotation => "'|}'",
        Kind::OpenReified => "'<<'",
        Kind::CloseReified => "'>>'",
        Kind::OpenTriple => "'<<('",
        Kind::CloseTriple => "')>>'",
        Kind::Comma => "','",
        Kind::Equal => "'='",
        Kind::Semicolon => "';'",
        _ => "another sign",
    }
}

/// Characters that leave no trace in a message.
const INVISIBLE: [char; 5] = ['\u{ad}', '\u{200b}', '\u{200e}', '\u{200f}', '\u{feff}'];

/// What would mend that the next token is none of `fits` in `what`, if that can be guessed.
pub(crate) fn hint(parser: &Parser<'_, '_>, what: &str, fits: &[&str]) -> Option<String> {
    let written = parser.token.of(parser.text);
    let rest = &parser.text[parser.token.span.start as usize..];
    let before = &parser.text[..parser.token.span.start as usize];
    if before.ends_with(['\'', '"'])
        && matches!(parser.token.kind, Kind::Word | Kind::Name | Kind::String)
    {
        return Some(r#"a quote inside of a string is written \' or \""#.to_owned());
    }
    match parser.token.kind {
        Kind::OpenReified if what == "an expression" => {
            Some("a triple term of an expression is written <<( ... )>>".to_owned())
        }
        Kind::Dot => {
            unclosed_hint(parser).filter(|_| fits.iter().any(|fit| matches!(*fit, "']'" | "')'")))
        }
        Kind::CloseBrace if parser.innermost().is_none() => {
            Some("there is one '}' more than there are '{'".to_owned())
        }
        Kind::Word => words::hint(parser, what, fits),
        Kind::Iri | Kind::Name if what == "the SELECT clause" && words::is_call(parser) => {
            Some(words::COMPUTED.to_owned())
        }
        Kind::Variable | Kind::OpenParen if fits == ["EXISTS"] => Some(words::NEGATION.to_owned()),
        Kind::Name => name_hint(written, fits),
        Kind::Less => iri_hint(rest),
        Kind::Iri if written == "<>" && fits.contains(&"an operator") => {
            Some("did you mean !=?".to_owned())
        }
        Kind::Equal if before.ends_with('=') => Some("equality is one =".to_owned()),
        Kind::Caret if before.ends_with(['\'', '"']) => Some("a datatype follows ^^".to_owned()),
        Kind::Comma => comma_hint(before, what, fits),
        Kind::Language => declaration_hint(written),
        Kind::Unknown => unknown_hint(written, rest),
        Kind::End => unclosed_hint(parser),
        Kind::CloseBrace | Kind::CloseParen | Kind::CloseBracket => {
            unclosed_hint(parser).filter(|_| !closes(parser))
        }
        _ => None,
    }
}

/// How things are separated where no comma stands.
fn comma_hint(before: &str, what: &str, fits: &[&str]) -> Option<String> {
    let separated = match what {
        "VALUES" if fits.contains(&"'{'") => {
            return Some("several variables stand between brackets: (?x ?y)".to_owned());
        }
        "VALUES" if fits.contains(&"a variable") => "variables are",
        "the SELECT clause" => "columns are",
        "ORDER BY" | "GROUP BY" => "keys are",
        "the DESCRIBE clause" => "what is described is",
        "VALUES" if before.trim_end().ends_with(')') => "rows are",
        "VALUES" | "a row of VALUES" => "values are",
        "a list" => "items are",
        "LIMIT" => return Some("LIMIT n OFFSET m leaves the first m out".to_owned()),
        _ => return None,
    };
    Some(format!("{separated} separated by spaces"))
}

/// Whether the next token closes the innermost bracket that is open.
fn closes(parser: &Parser<'_, '_>) -> bool {
    let Some(open) = parser.innermost() else {
        return true;
    };
    let close = match parser.text.as_bytes().get(open as usize) {
        Some(b'{') => Kind::CloseBrace,
        Some(b'(') => Kind::CloseParen,
        Some(b'[') => Kind::CloseBracket,
        _ => Kind::CloseReified,
    };
    parser.token.kind == close
}

fn unclosed_hint(parser: &Parser<'_, '_>) -> Option<String> {
    let open = parser.innermost()?;
    let rest = &parser.text[open as usize..];
    let signs = ["<<(", "<<", "{|", "{", "(", "["];
    let sign = signs.iter().find(|sign| rest.starts_with(**sign))?;
    Some(format!(
        "the '{sign}' at {} is not closed",
        parser.place(open)
    ))
}

fn name_hint(name: &str, fits: &[&str]) -> Option<String> {
    let is_statement = fits.contains(&"SELECT");
    (name.starts_with("http:") || name.starts_with("https:"))
        .then(|| "IRIs stand between < and >".to_owned())
        .or_else(|| {
            is_statement.then(|| "prefixes are declared by PREFIX before the query".to_owned())
        })
}

fn declaration_hint(written: &str) -> Option<String> {
    let is = |word: &str| written[1..].eq_ignore_ascii_case(word);
    (is("prefix") || is("base")).then(|| {
        let word = written[1..].to_ascii_uppercase();
        format!("SPARQL writes {word} without @, and no point after it")
    })
}

/// What keeps `<...>` from being an IRI.
fn iri_hint(rest: &str) -> Option<String> {
    let line = rest.lines().next()?;
    let scheme: String = line[1..]
        .chars()
        .take_while(char::is_ascii_alphanumeric)
        .collect();
    if scheme.is_empty() || !line[1 + scheme.len()..].starts_with(':') {
        return None;
    }
    let Some(end) = line.find('>') else {
        return Some("an IRI ends with >".to_owned());
    };
    let inside = &line[1..end];
    let odd = inside
        .chars()
        .find(|c| *c <= ' ' || "<\"{}|^`\\".contains(*c))?;
    let odd = match odd {
        ' ' => "a space".to_owned(),
        '\\' => "a backslash".to_owned(),
        odd if odd.is_control() => format!("the character {}", odd.escape_unicode()),
        odd => format!("'{odd}'"),
    };
    Some(format!("<{}> is not an IRI as it has {odd}", shown(inside)))
}

fn unknown_hint(written: &str, rest: &str) -> Option<String> {
    let first = written.chars().next()?;
    match first {
        '&' => Some("'and' is written &&".to_owned()),
        '\u{201c}' | '\u{201d}' | '\u{2018}' | '\u{2019}' | '\u{ab}' | '\u{bb}' | '`' => {
            Some("strings stand between straight quotes, \" or '".to_owned())
        }
        '\u{a0}' | '\u{feff}' | '\u{200b}' | '\u{2003}' | '\u{2009}' | '\u{3000}' => {
            Some("white space is spaces, tabs and ends of lines".to_owned())
        }
        '\\' if rest.starts_with("\\u") || rest.starts_with("\\U") => {
            Some("codepoint escapes stand in strings and IRIs only".to_owned())
        }
        '@' => Some("a language tag stands directly after @".to_owned()),
        '_' => Some("a blank node has a label after _:".to_owned()),
        '$' => Some("a variable has a name after $".to_owned()),
        '\u{2260}' => Some("did you mean !=?".to_owned()),
        '\u{2264}' => Some("did you mean <=?".to_owned()),
        '\u{2265}' => Some("did you mean >=?".to_owned()),
        '%' => Some("there is no operator for remainders".to_owned()),
        first if is_inner(first) && !is_base(first) => None,
        _ => None,
    }
}

/// The IRI that a prefix usually stands for.
pub(crate) fn usual_iri(prefix: &str) -> Option<&'static str> {
    let found = PREFIXES.iter().find(|(name, _)| *name == prefix);
    found.map(|(_, iri)| *iri)
}
