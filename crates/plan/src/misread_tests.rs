use spargebra::{Query, SparqlParser};

use super::*;

fn parser() -> SparqlParser {
    SparqlParser::new()
        .with_base_iri("http://e/")
        .expect("an IRI")
        .with_prefix("ex", "http://e/")
        .expect("an IRI")
        .with_prefix("z", "http://z/")
        .expect("an IRI")
}

fn parsed(text: &str) -> Result<Query, Wrong> {
    parse_tokens(text, |text| parser().parse_query(text))
}

fn filter(expression: &str) -> String {
    format!("SELECT * {{ ?a ex:p ?b FILTER({expression}) }}")
}

#[test]
fn booleans_are_keywords_in_all_cases() {
    for (text, lowered) in [
        ("SELECT (TRUE AS ?x) {}", "SELECT (true AS ?x) {}"),
        ("{ ?x ?y True, fALSE. }", "{ ?x ?y true, false. }"),
        ("{ ?x ?y TRUE.?z ?y true }", "{ ?x ?y true.?z ?y true }"),
        ("FILTER(?x-TRUE<+FALSE-1)", "FILTER(?x-true<+false-1)"),
        ("(!TRUE&&?x||?x=FALSE)", "(!true&&?x||?x=false)"),
        (
            "'True' True # True\n\"\"\"True\"\"\"",
            "'True' true # True\n\"\"\"True\"\"\"",
        ),
        ("(?x<TRUE)", "(?x<true)"),
    ] {
        assert_eq!(
            with_lower_booleans(text).as_deref(),
            Some(lowered),
            "{text}"
        );
    }
}

#[test]
fn what_only_looks_like_a_boolean_stays() {
    for text in [
        "true false true.",
        "?TRUE $True ?x.?False",
        "'x'@True \"x\"@en-True 'x'@True-x",
        "True:x x:True x:y.True :True True.x:y x:a-True",
        "_:True _:x-True _:x.True",
        "True:f(?x) x:True(?x)",
        "PREFIX True: <http://e/True>",
        "<True> <http://e/-True>",
        "'True' \"x True\" '''True ' True''' 'x\\' True'",
        "# True",
        "TRUEx xTRUE TRUE_ TRUE1 untrue é\u{e9}TRUE",
    ] {
        assert_eq!(with_lower_booleans(text), None, "{text}");
    }
}

#[test]
fn booleans_in_upper_case_mean_the_same() {
    for text in [
        "SELECT (@ AS ?TRUE) { ?TRUE ex:True @ . ?s ex:p 'True'@TRUE FILTER(@ && ?x != @) }",
        "ASK { VALUES ?x { @ UNDEF } ?True ?x _:True }",
        "CONSTRUCT { ?s ex:p @ } WHERE { ?s ex:p ?o OPTIONAL { ?s ex:q @ } }",
    ] {
        let lower = parsed(&text.replace('@', "true").replace("'True'true", "'True'@")).ok();
        assert!(parsed(&text.replace('@', "TRUE")).ok() == lower, "{text}");
    }
}

#[test]
fn an_error_behind_a_boolean_is_the_one_that_counts() {
    let text = "SELECT * {\n ?x ex:p TRUE .\n ?x ex:p True ; nonsense }";
    let Err(Wrong::Parser(error)) = parsed(text) else {
        panic!("not refused");
    };
    let message = error.to_string();
    assert!(message.starts_with("error at 3:25: "), "{message}");
}

/// The IRI of a text that is taken for operators.
fn comparison(text: &str) -> Option<&str> {
    match parsed(text) {
        Ok(_) => None,
        Err(Wrong::Comparison(iri)) => Some(&text[iri]),
        Err(Wrong::Parser(error)) => panic!("{text}: {error}"),
    }
}

#[test]
fn the_longest_token_is_taken() {
    for (expression, iri) in [
        ("?x<?a&&?b>?y", "<?a&&?b>"),
        ("?x<=?a&&?b>=?y", "<=?a&&?b>"),
        ("COALESCE(?x<?a,?b>?y)", "<?a,?b>"),
        ("(?x<?a)=(?b>?y)", "<?a)=(?b>"),
        ("?x<(?b>?y)", "<(?b>"),
        ("?x<STR(?b>?y)", "<STR(?b>"),
        ("?x<'a>b'", "<'a>"),
        ("?x<?b#>\n", "<?b#>"),
        ("?x IN(<a,b>,<(c)>)||?x<?y&&1>2||?x=<(d)>", "<?y&&1>"),
    ] {
        let text = filter(expression);
        assert!(parser().parse_query(&text).is_ok(), "{text}");
        assert_eq!(comparison(&text), Some(iri), "{text}");
    }
}

#[test]
fn comparisons_and_iris_are_told_apart() {
    for expression in [
        "?x < ?a&&?b>?y",
        "?x<?a &&?b>?y",
        "?x<?a&& ?b>?y",
        "?x<?a||?b>?y",
        "?x<ex:a\\,b&&?c>?y",
        "?x<\"a\"&&?b>?y",
        "?x=<http://en.wikipedia.org/wiki/A_(b)>",
        "?x=<A_(b)>&&?y=<a,b>&&?z=<a'b>&&<a&&b>=?z",
        "?x IN(<A_(b)>,<#a>,<urn:x:(y),z>)",
        "<A_(b)><<(c)>",
        "EXISTS { ?a <A_(b)> <#c> . ?a (<(p)>|<p,q>)* (<#d> '1'^^<(x)>) }",
        "?x<1&&'<'=\"a>,b\"",
        "?x<1 #&&?b>\n",
        "?x<'\\''&&?b>?y",
    ] {
        assert_eq!(comparison(&filter(expression)), None, "{expression}");
    }
}

#[test]
fn most_texts_are_parsed_once() {
    for (expression, parses) in [
        ("?x < ?y && ?y > ?z", 1),
        ("?x=<http://en.wikipedia.org/wiki/A_(b)#c,'d&&e>", 1),
        ("?x=<urn:x:y>", 1),
        ("EXISTS { ?a <#p> <A_(b)> }", 1),
        ("?x='<a,b>'", 1),
        ("?x=<urn:x:(y)>", 2),
    ] {
        let count = std::cell::Cell::new(0);
        let parsed = parse_tokens(&filter(expression), |text| {
            count.set(count.get() + 1);
            parser().parse_query(text)
        });
        assert!(parsed.is_ok(), "{expression}");
        assert_eq!(count.get(), parses, "{expression}");
    }
}

#[test]
fn the_message_shows_the_iri() {
    let message = |text: &str| comparison_message(text, 1..text.len());
    assert_eq!(
        message("x<a&&b>"),
        "<a&&b> is read as an IRI; spaces around < and > make comparisons of it"
    );
    let long = format!("x<é&&{}>", "é".repeat(60));
    assert!(message(&long).starts_with(&format!("<é&&{}… is", "é".repeat(36))));
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % bound
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    /// An expression with few spaces, and without `||` and double quotes, of which IRIs have none.
    fn expression(&mut self, depth: usize) -> String {
        const LEAVES: &[&str] = &[
            "?a",
            "?b",
            "1",
            "'s'",
            "'>'",
            "'<'",
            "\"t\"",
            "true",
            "ex:n",
            "<u>",
            "<a,b>",
            "<A_(b)>",
            "<#c>",
            "<http://e/(d)>",
            "<urn:e:'f>",
        ];
        const SIGNS: &[&str] = &[
            "<", "<", "<", ">", ">", "<=", ">=", "=", "&&", "+", "*", "||",
        ];
        const SPACES: &[&str] = &["", "", "", "", "", "", "", " ", "#>\n"];
        if depth == 0 {
            return self.of(LEAVES).to_owned();
        }
        let one = self.expression(depth - 1);
        let other_depth = self.below(depth);
        let other = self.expression(other_depth);
        let (left, right) = (self.of(SPACES), self.of(SPACES));
        match self.below(9) {
            0..5 => format!("{one}{left}{}{right}{other}", self.of(SIGNS)),
            5 => format!("({one}{left})"),
            6 => format!("COALESCE({one},{left}{other})"),
            7 => format!("{one} IN({left}{other})"),
            _ => format!("(!{one}&&EXISTS{{?a<p>{left}?b FILTER({other}{right})}})"),
        }
    }
}

/// The text with a prefixed name for every IRI.
fn with_prefixed_names(text: &str) -> String {
    let mut rest = text;
    let mut replaced = String::new();
    while let Some(first) = rest.chars().next() {
        let inside = rest[1..].find(|c: char| c <= ' ' || "<>\"{}|^`\\".contains(c));
        let end_at = |end: Option<usize>| end.map_or(rest.len(), |end| end + 1);
        let length = match (first, inside) {
            ('<', Some(inside)) if rest[1 + inside..].starts_with('>') => {
                replaced.push_str(" z:z ");
                rest = &rest[inside + 2..];
                continue;
            }
            ('\'' | '"', _) => end_at(rest[1..].find(first).map(|end| end + 1)),
            ('#', _) => end_at(rest.find('\n')),
            _ => first.len_utf8(),
        };
        replaced.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    replaced
}

#[test]
fn exactly_the_texts_are_accepted_that_have_no_iri_for_operators() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut accepted, mut misread) = (0, 0);
    for _ in 0..20_000 {
        let depth = 1 + random.below(4);
        let text = filter(&random.expression(depth));
        let is_right = parser().parse_query(&with_prefixed_names(&text)).is_ok();
        assert_eq!(parsed(&text).is_ok(), is_right, "{text}");
        accepted += usize::from(is_right);
        misread += usize::from(!is_right && parser().parse_query(&text).is_ok());
    }
    assert!(accepted > 1000 && misread > 100, "{accepted} {misread}");
}
