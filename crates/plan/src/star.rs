//! `SELECT *`: in which order do people expect its columns?
//!
//! The specification leaves it open and the parser sorts by name; a table reads better in the
//! order in which the text names its variables.

use memchr::memmem;
use oxrdf::Variable;

/// Puts the variables of `SELECT *` in the order in which the text names them first; leaves those
/// of any other text alone.
pub(crate) fn order_variables(text: &str, variables: &mut [Variable]) {
    if selects_all(text) {
        variables.sort_by_key(|variable| first_place(text, variable.as_str()));
    }
}

/// True if the query, behind its prologue, begins with `SELECT *`.
fn selects_all(text: &str) -> bool {
    let mut rest = skip_blank(text);
    loop {
        let (word, behind) = word(rest);
        if word.eq_ignore_ascii_case("base") || word.eq_ignore_ascii_case("prefix") {
            let Some(end) = behind.find('>') else {
                return false;
            };
            rest = skip_blank(&behind[end + 1..]);
            continue;
        }
        if !word.eq_ignore_ascii_case("select") {
            return false;
        }
        let list = skip_blank(behind);
        return list.starts_with('*');
    }
}

fn word(text: &str) -> (&str, &str) {
    text.split_at(
        text.find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(text.len()),
    )
}

/// The text behind blanks, comments, and the words that may stand before the list.
fn skip_blank(text: &str) -> &str {
    let mut rest = text.trim_start();
    loop {
        if let Some(comment) = rest.strip_prefix('#') {
            rest = comment
                .split_once(['\n', '\r'])
                .map_or("", |(_, behind)| behind)
                .trim_start();
            continue;
        }
        let (word, behind) = word(rest);
        if word.eq_ignore_ascii_case("distinct") || word.eq_ignore_ascii_case("reduced") {
            rest = behind.trim_start();
            continue;
        }
        return rest;
    }
}

/// Where the text names a variable first; behind everything if it does not.
fn first_place(text: &str, name: &str) -> usize {
    let bytes = text.as_bytes();
    memmem::find_iter(bytes, name.as_bytes())
        .find(|place| {
            let before = place.checked_sub(1).map(|before| bytes[before]);
            let behind = text[place + name.len()..].chars().next();
            matches!(before, Some(b'?' | b'$'))
                && behind.is_none_or(|c| !c.is_alphanumeric() && c != '_')
        })
        .unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(text: &str, names: &[&str]) -> Vec<String> {
        let mut variables: Vec<Variable> = names
            .iter()
            .map(|name| Variable::new_unchecked(*name))
            .collect();
        order_variables(text, &mut variables);
        variables
            .into_iter()
            .map(|variable| variable.as_str().to_owned())
            .collect()
    }

    #[test]
    fn columns_come_as_the_text_names_them() {
        let text = "PREFIX : <http://e.org/> # ?a\nselect  distinct * { ?sub :p ?s . $b ?o ?sub }";
        assert_eq!(
            ordered(text, &["b", "o", "s", "sub"]),
            ["sub", "s", "b", "o"]
        );
    }

    #[test]
    fn named_columns_stay_where_they_are() {
        assert_eq!(
            ordered("SELECT ?o ?s { ?s ?p ?o }", &["o", "s"]),
            ["o", "s"]
        );
        assert_eq!(ordered("", &["o", "s"]), ["o", "s"]);
        assert_eq!(ordered("BASE <x", &["o", "s"]), ["o", "s"]);
    }
}
