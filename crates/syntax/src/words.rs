//! What was likely meant by a word that does not fit?
//!
//! A similar word is suggested only if it fits in the same place: what is far-fetched there leads
//! astray.

use crate::functions::{aggregate, builtin};
use crate::hints::shown;
use crate::keywords::{KEYWORDS, Keyword};
use crate::parser::Parser;

/// Longest word in characters for which a similar one is looked for.
const MOST_COMPARED: usize = 20;

pub(crate) const NEGATION: &str = "an expression is negated by !";
/// How a computed column is written.
pub(crate) const COMPUTED: &str = "a computed column is (expression AS ?name)";

/// What begins an element of a group.
const ELEMENTS: &[&str] = &[
    "OPTIONAL", "MINUS", "GRAPH", "SERVICE", "FILTER", "BIND", "VALUES", "UNION",
];
/// What may follow WHERE.
const MODIFIERS: &[&str] = &["GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "VALUES"];
const OPERATIONS: &[&str] = &[
    "INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY", "WITH",
];

/// Functions by the names that other languages have for them.
const FOREIGN: &[(&str, &str)] = &[
    ("AVERAGE", "AVG"),
    ("CEILING", "CEIL"),
    ("ENDSWITH", "STRENDS"),
    ("IFNULL", "COALESCE"),
    ("LEN", "STRLEN"),
    ("LENGTH", "STRLEN"),
    ("LOWER", "LCASE"),
    ("NVL", "COALESCE"),
    ("RANDOM", "RAND"),
    ("STARTSWITH", "STRSTARTS"),
    ("SUBSTRING", "SUBSTR"),
    ("TOLOWER", "LCASE"),
    ("TOUPPER", "UCASE"),
    ("UPPER", "UCASE"),
];

/// What would mend that the next token is a word, and none of `fits` in `what`.
pub(crate) fn hint(parser: &Parser<'_, '_>, what: &str, fits: &[&str]) -> Option<String> {
    let word = parser.token.of(parser.text);
    let is_call = is_call(parser);
    let upper = word.to_ascii_uppercase();
    let hint = of_other_languages(&upper, what, fits);
    let hint = hint.or_else(|| of_continuous_queries(parser, &upper, what));
    if let Some(hint) = hint {
        return Some(hint.to_owned());
    }
    match parser.keyword {
        Keyword::None => (),
        Keyword::Union if what == "a graph pattern" => {
            return Some("UNION stands between groups: { ... } UNION { ... }".to_owned());
        }
        Keyword::As if what == "the SELECT clause" => return Some(COMPUTED.to_owned()),
        _ if is_call && what == "the SELECT clause" && parser.at_call() => {
            return Some(COMPUTED.to_owned());
        }
        _ => return None,
    }
    if fits == ["EXISTS"] {
        let like = closest(&upper, ["EXISTS"].into_iter()).map(meant);
        return like.or_else(|| Some(NEGATION.to_owned()));
    }
    let foreign = FOREIGN.iter().find(|(name, _)| *name == upper);
    if let Some((_, ours)) = foreign.filter(|_| is_call && fits.contains(&"a function")) {
        return Some(meant(ours));
    }
    if fits == ["a prefix with a colon"] {
        return Some(format!("the prefix is written {}:", shown(word)));
    }
    let mut words = fitting(is_call, what, fits);
    if parser.clauses.is_some() && what == "a graph pattern" {
        words.push("WINDOW");
    }
    let similar = closest(&upper, words.into_iter()).map(meant);
    similar.or_else(|| plain_word(word, fits).filter(|_| !is_call))
}

/// Whether the token is followed by what a call's arguments begin with.
pub(crate) fn is_call(parser: &Parser<'_, '_>) -> bool {
    let rest = &parser.text[parser.token.span.end as usize..];
    rest.trim_start().starts_with('(')
}

/// What the words of SQL and of programs are here.
fn of_other_languages(upper: &str, what: &str, fits: &[&str]) -> Option<&'static str> {
    let is_expression = what == "an expression";
    let is_operator = is_expression && fits.contains(&"an operator");
    match upper {
        "AND" if is_operator => Some("'and' is written &&"),
        "OR" if is_operator => Some("'or' is written ||"),
        "AND" if what == "a graph pattern" => {
            Some("patterns beside each other all have to match, without AND")
        }
        "OR" if what == "a graph pattern" => Some("alternatives are { ... } UNION { ... }"),
        "NULL" if is_expression => Some("there is no null: BOUND(?x) says whether ?x has a value"),
        "NULL" if what.ends_with("VALUES") => Some("no value is written UNDEF"),
        "IS" if is_operator => {
            Some("values are compared by =, and BOUND(?x) says whether ?x has one")
        }
        "LIKE" if is_operator || fits == ["IN"] => {
            Some("patterns are matched by REGEX or CONTAINS")
        }
        "OPTION" if what == "a graph pattern" => Some("did you mean OPTIONAL?"),
        "TOP" if what == "the SELECT clause" => {
            Some("LIMIT at the end says how many rows there are")
        }
        _ => None,
    }
}

/// That the word is one of continuous queries, which the text is not.
fn of_continuous_queries(parser: &Parser<'_, '_>, upper: &str, what: &str) -> Option<&'static str> {
    if parser.clauses.is_some() {
        return None;
    }
    match (upper, what) {
        ("REGISTER", "a query" | "an update") => Some("REGISTER begins a continuous query"),
        ("STREAM", "FROM") => Some("only continuous queries have FROM STREAM"),
        ("WINDOW", "FROM" | "a graph pattern") => Some("only continuous queries have WINDOW"),
        _ => None,
    }
}

/// The words that could stand in a place: those that are named, and those of which a group is.
fn fitting<'f>(is_call: bool, what: &str, fits: &[&'f str]) -> Vec<&'f str> {
    let is_word = |word: &&str| {
        !matches!(*word, "IRI" | "SPARQL") && word.bytes().all(|byte| byte.is_ascii_uppercase())
    };
    let named = fits.iter().flat_map(|fit| fit.split(' ')).filter(is_word);
    let mut words: Vec<&str> = named.collect();
    if what == "a graph pattern" || what == "a nested SELECT" {
        words.extend(ELEMENTS);
    }
    if what == "the SELECT clause" {
        words.extend(["DISTINCT", "REDUCED", "FROM"]);
    }
    if matches!(
        what,
        "VALUES" | "a row of VALUES" | "the object of a triple"
    ) {
        words.extend(["TRUE", "FALSE"]);
    }
    for fit in fits {
        match *fit {
            "a function" if is_call => {
                let functions = KEYWORDS.iter().filter(|(keyword, text)| {
                    let is_function = builtin(*keyword).is_some() || aggregate(*keyword).is_some();
                    is_function && text.len() > 2
                });
                words.extend(functions.map(|(_, text)| *text));
            }
            "a function" => words.push("EXISTS"),
            "a value" => words.extend(["TRUE", "FALSE"]),
            "an operator" => words.extend(["IN", "NOT"]),
            "the end of the query" => words.extend(MODIFIERS),
            "the end of the update" | "an operation such as INSERT or DELETE" => {
                words.extend(OPERATIONS);
            }
            _ => (),
        }
    }
    words
}

/// What a word without `?`, quotes or brackets may have been meant as.
fn plain_word(word: &str, fits: &[&str]) -> Option<String> {
    let word = shown(word);
    match fits {
        ["a variable", "a value", ..] => Some(format!(
            "a string is written \"{word}\", a variable ?{word}"
        )),
        // It may be meant as a variable or as an IRI.
        ["a variable", "an IRI", ..] => None,
        ["a variable", ..] => Some(format!("a variable is written ?{word}")),
        _ => None,
    }
}

fn meant(word: &str) -> String {
    format!("did you mean {word}?")
}

/// The name that is most like a word, if one is like it.
pub(crate) fn closest<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let length = word.chars().count();
    if !(2..=MOST_COMPARED).contains(&length) {
        return None;
    }
    let most = if length < 5 { 1 } else { 2 };
    names
        .filter(|name| name.len() <= 2 * MOST_COMPARED)
        .map(|name| (distance(word, name), name))
        .filter(|(distance, name)| *distance <= most && *distance < name.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Least insertions, removals, replacements and swaps of neighbours that make `b` of `a`, in any
/// case.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.to_ascii_uppercase().chars().collect();
    let b: Vec<char> = b.to_ascii_uppercase().chars().collect();
    let mut before_last = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                let swapped: usize = before_last[j - 2];
                least = least.min(swapped + 1);
            }
            row.push(least);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_found() {
        let names = ["SELECT", "FILTER", "STRSTARTS", "SUM"];
        for (word, like) in [
            ("SELCT", Some("SELECT")),
            ("slecet", Some("SELECT")),
            ("FLITER", Some("FILTER")),
            ("STARTSWITH", None),
            ("SUMM", Some("SUM")),
            ("X", None),
        ] {
            assert_eq!(closest(word, names.into_iter()), like, "{word}");
        }
    }
}
