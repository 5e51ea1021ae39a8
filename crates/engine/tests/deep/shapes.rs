//! Queries as deep as the limits of the planner allow, one shape after the other.

use Answer::{Boolean, Refused, Rows};

/// What a query comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// So many solutions.
    Rows(usize),
    /// Of ASK.
    Boolean(bool),
    /// Refused with a typed error.
    Refused,
}

/// A query, with a name for messages.
pub(crate) struct Shape {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) answer: Answer,
}

/// Items of the list in the data.
pub(crate) const ITEMS: usize = 1_500;
/// Brackets that are open at once in a shape: a few less than are allowed.
pub(crate) const BRACKETS: usize = 246;
/// Bytes of a text that is planned on the caller's stack.
const SHORT: usize = 2 << 10;

pub(crate) fn shape(name: impl Into<String>, text: impl Into<String>, answer: Answer) -> Shape {
    Shape {
        name: name.into(),
        text: text.into(),
        answer,
    }
}

/// `part` in a row, with its number for `#` and the next number for `#+`.
pub(crate) fn row(part: &str, count: usize) -> String {
    (0..count)
        .map(|number| {
            let next = (number + 1).to_string();
            part.replace("#+", &next).replace('#', &number.to_string())
        })
        .collect()
}

/// `open` and `close` around each other, with the number of the level for `#` in `open`.
pub(crate) fn nest(open: &str, middle: &str, close: &str, count: usize) -> String {
    format!("{}{middle}{}", row(open, count), close.repeat(count))
}

/// As many of a part in a row as a short text has between `before` and `after`.
fn short_row(before: &str, part: &str, after: &str) -> String {
    let mut text = before.to_owned();
    for number in 0.. {
        let next = part.replace('#', &number.to_string());
        if text.len() + next.len() + after.len() > SHORT {
            break;
        }
        text += &next;
    }
    text + after
}

/// An RDF collection that holds an item `count` times.
pub(crate) fn collection(item: &str, count: usize) -> String {
    format!("({})", format!("{item} ").repeat(count))
}

fn ask(pattern: &str) -> String {
    format!("ASK {{ {pattern} }}")
}

fn select(pattern: &str) -> String {
    format!("SELECT * {{ {pattern} }}")
}

/// Lists of patterns: chains of steps, and joins of parts that share no variable.
pub(crate) fn patterns() -> Vec<Shape> {
    let list = |count| ask(&format!("?s ?p {}", collection("100", count)));
    let chain = row("?x# <e:p> ?x#+ .", 4_095);
    let after = |pattern: String| select(&format!("?x0 <e:p> ?z {pattern}"));
    vec![
        shape("collection", list(ITEMS), Boolean(true)),
        shape(
            "other collection",
            ask(&format!(
                "?s ?p {}",
                collection("100", ITEMS).replacen("100", "101", 1)
            )),
            Boolean(false),
        ),
        shape("longest collection", list(2_047), Boolean(false)),
        shape("too long a collection", list(2_048), Refused),
        shape("chain", select(&format!("?y <e:p> ?x0 . {chain}")), Rows(1)),
        shape("star", select(&row("?x <e:p> ?y# .", 1_000)), Rows(1)),
        shape(
            "unconnected",
            select(&row("?x# <e:p> ?y# .", 1_000)),
            Rows(1),
        ),
        shape(
            "constants",
            ask(&row("<e:a> <e:p> ?y# .", 4_096)),
            Boolean(true),
        ),
        shape(
            "a chain in EXISTS",
            after(format!("FILTER EXISTS {{ {chain} }}")),
            Rows(1),
        ),
        shape(
            "a chain in OPTIONAL",
            after(format!("OPTIONAL {{ {chain} }}")),
            Rows(1),
        ),
        shape(
            "a chain in UNION",
            after(format!(
                "{{ {} }} UNION {{}}",
                row("?x# <e:p> ?x#+ .", 1_500)
            )),
            Rows(2),
        ),
        shape(
            "a chain in MINUS",
            after(format!("MINUS {{ {chain} }}")),
            Rows(0),
        ),
        shape(
            "a list constructed",
            format!(
                "CONSTRUCT {{ ?x <e:made> {} }} {{ ?x <e:p> ?x }}",
                collection("?x", 1_000)
            ),
            Rows(2_001),
        ),
        shape(
            "blank nodes",
            ask(&format!(
                "<e:a> {}",
                nest("<e:p> [ ", "<e:p> <e:a>", "]", BRACKETS)
            )),
            Boolean(true),
        ),
    ]
}

/// Groups beside each other and in each other.
pub(crate) fn groups() -> Vec<Shape> {
    let on = |pattern: String| select(&format!("?x <e:p> ?x {pattern}"));
    let beside = |part: &str, count| on(row(part, count));
    let nested = |open: &str, close: &str| on(nest(open, "", close, BRACKETS));
    vec![
        shape(
            "optionals",
            beside("OPTIONAL { ?x <e:p> ?y# }", 510),
            Rows(1),
        ),
        shape(
            "too many optionals",
            beside("OPTIONAL { ?x <e:p> ?y# }", 600),
            Refused,
        ),
        shape(
            "optionals apart",
            select(&row("OPTIONAL { ?x# <e:p> ?x#+ }", 510)),
            Rows(1),
        ),
        shape(
            "optionals nested",
            nested("OPTIONAL { ?x <e:p> ?y# ", "}"),
            Rows(1),
        ),
        shape(
            "optionals nested apart",
            select(&nest("OPTIONAL { ?x# <e:q> ?x#+ ", "", "}", BRACKETS)),
            Rows(2),
        ),
        shape(
            "optionals nested with conditions",
            on(nest(
                "OPTIONAL { ?x <e:p> ?y# FILTER(EXISTS { ?x <e:p> ?z } || ?x = 1) ",
                "",
                "}",
                100,
            )),
            Rows(1),
        ),
        shape(
            "unions",
            on(format!("{{}} {}", row("UNION { ?x <e:p> ?y# }", 1_000))),
            Rows(1_001),
        ),
        shape(
            "unions apart",
            select(&format!("{{}} {}", row("UNION { ?x <e:p> ?y# }", 1_000))),
            Rows(1_001),
        ),
        shape(
            "unions beside each other",
            beside("{ ?x <e:p> ?y# } UNION { ?x <e:none> ?y# }", 500),
            Rows(1),
        ),
        shape(
            "groups",
            beside("{ ?x <e:p> ?y# FILTER(!bound(?z#)) }", 500),
            Rows(1),
        ),
        shape(
            "groups apart",
            beside(
                "{ OPTIONAL { ?x <e:p> ?y } OPTIONAL { ?y <e:p> ?z# } }",
                400,
            ),
            Rows(1),
        ),
        shape(
            "groups nested",
            nested("{ ?x <e:p> ?y# FILTER(!bound(?z#)) ", "}"),
            Rows(1),
        ),
        shape("minus", beside("MINUS { ?x <e:none> ?y# }", 510), Rows(1)),
        shape(
            "minus apart",
            beside("MINUS { ?x <e:none> ?y# OPTIONAL { ?x <e:none> ?y } }", 500),
            Rows(1),
        ),
        shape(
            "minus nested",
            nested("MINUS { ?x <e:none> ?y# ", "}"),
            Rows(1),
        ),
        shape(
            "exists",
            beside("FILTER EXISTS { ?x <e:p> ?y# }", 480),
            Rows(1),
        ),
        shape(
            "exists nested",
            nested("FILTER EXISTS { ?x <e:p> ?y# ", "}"),
            Rows(1),
        ),
        shape(
            "exists given",
            nested(
                "FILTER EXISTS { OPTIONAL { ?x <e:p> ?y# } OPTIONAL { ?y# <e:p> ?x } ",
                "}",
            ),
            Rows(1),
        ),
        shape(
            "exists in an expression",
            on(format!(
                "FILTER({} false)",
                row("EXISTS { ?x <e:p> ?y# } || ", 400)
            )),
            Rows(1),
        ),
        shape("values", beside("VALUES ?y# { 1 }", 500), Rows(1)),
        shape(
            "values that are compatible",
            beside("VALUES (?x ?y#) { (UNDEF 1) }", 100),
            Rows(1),
        ),
        shape(
            "filters",
            on(format!("FILTER({} true)", row("?x != # && ", 4_000))),
            Rows(1),
        ),
        shape(
            "filters of a predicate",
            select(&format!(
                "<e:a> ?y ?o {}",
                row("FILTER(?y != <e:p#>)", 2_000)
            )),
            Rows(4),
        ),
        shape(
            "graphs nested",
            select(&nest("GRAPH ?g# { <e:a> ?p# ?o# ", "", "}", BRACKETS)),
            Rows(1),
        ),
    ]
}

/// SELECT in SELECT, and what a SELECT computes.
pub(crate) fn selects() -> Vec<Shape> {
    let on = |pattern: String| select(&format!("?x <e:p> ?x {pattern}"));
    let numbers =
        |columns: String, more: String| format!("SELECT {columns} {{ ?x <e:q> ?y }} {more}");
    vec![
        shape(
            "subqueries",
            on(nest(
                "{ SELECT DISTINCT ?x { ?x <e:p> ?y# ",
                "",
                "} ORDER BY ?x LIMIT 9 }",
                120,
            )),
            Rows(1),
        ),
        shape(
            "subqueries that group",
            on(nest(
                "{ SELECT ?x (COUNT(*) AS ?n#) { ?x <e:p> ?y# ",
                "",
                "} GROUP BY ?x HAVING(COUNT(*) > 0) }",
                60,
            )),
            Rows(1),
        ),
        shape(
            "subqueries in NOT EXISTS",
            on(nest(
                "FILTER NOT EXISTS { { SELECT DISTINCT ?x { ?x <e:p> ?y# ",
                "",
                "} LIMIT 3 } }",
                80,
            )),
            Rows(1),
        ),
        shape(
            "subqueries in graphs",
            select(&nest(
                "GRAPH ?g# { { SELECT DISTINCT ?x { ?x ?y# ?z ",
                "",
                "} LIMIT 3 } }",
                80,
            )),
            Rows(1),
        ),
        shape("binds", on(row("BIND(1 + # AS ?y#)", 508)), Rows(1)),
        shape(
            "binds of each other",
            on("BIND(1 AS ?y0)".to_owned() + &row("BIND(?y# + 1 AS ?y#+)", 505)),
            Rows(1),
        ),
        shape(
            "binds side by side",
            on(row("BIND(1 + # AS ?y#)", 4_200)),
            Rows(1),
        ),
        shape(
            "columns",
            numbers(
                "(1 AS ?c0)".to_owned() + &row("(?c# + ?y AS ?c#+)", 500),
                String::new(),
            ),
            Rows(2),
        ),
        shape(
            "aggregates",
            numbers(row("(SUM(?y + #) AS ?s#)", 500), String::new()),
            Rows(1),
        ),
        shape(
            "having",
            numbers(
                "?x".to_owned(),
                format!(
                    "GROUP BY ?x HAVING({} true)",
                    row("COUNT(?y) > -# && ", 500)
                ),
            ),
            Rows(1),
        ),
        shape(
            "group keys",
            numbers(
                "(COUNT(*) AS ?n)".to_owned(),
                format!("GROUP BY {}", row("(?y + # AS ?k#) ", 500)),
            ),
            Rows(2),
        ),
        shape(
            "order keys",
            numbers(
                "*".to_owned(),
                format!("ORDER BY {}", row("(?y + #) ", 2_000)),
            ),
            Rows(2),
        ),
    ]
}

/// Property paths.
pub(crate) fn paths() -> Vec<Shape> {
    let on = |path: String| ask(&format!("<e:a> {path} <e:a>"));
    let joined = |edge: &str, between: &str, count: usize| vec![edge; count].join(between);
    vec![
        shape("sequence", on(joined("<e:p>", "/", 510)), Boolean(true)),
        shape(
            "too long a sequence",
            on(joined("<e:p>", "/", 20_000)),
            Refused,
        ),
        shape(
            "inverse sequence",
            on(format!("^({})", joined("<e:p>", "/", 505))),
            Boolean(true),
        ),
        shape(
            "alternatives",
            on(joined("<e:p>", "|", 4_000)),
            Boolean(true),
        ),
        shape(
            "too many alternatives",
            on(joined("<e:p>", "|", 20_000)),
            Refused,
        ),
        shape(
            "repeated sequence",
            on(format!("({})*", joined("<e:p>", "/", 256))),
            Boolean(true),
        ),
        shape(
            "repeated alternatives",
            on(format!("({})+", joined("<e:p>", "|", 256))),
            Boolean(true),
        ),
        shape(
            "too long a repeated sequence",
            on(format!("({})*", joined("<e:p>", "/", 257))),
            Refused,
        ),
        shape("repetitions", on(joined("<e:p>*", "/", 500)), Boolean(true)),
        shape(
            "nested repetitions",
            on(nest("(", "<e:p>", ")+", BRACKETS)),
            Boolean(true),
        ),
        shape(
            "nested inverses",
            on(nest("^(", "<e:p>", ")", BRACKETS)),
            Boolean(true),
        ),
        shape(
            "nested sequences",
            on(nest("(<e:p>/", "<e:p>", ")?", BRACKETS)),
            Boolean(true),
        ),
        shape(
            "nested alternatives",
            on(nest("(<e:p>|", "<e:p>", "/<e:p>)", 60)),
            Boolean(true),
        ),
        shape(
            "negated set",
            on(format!("!({} <e:n>)", row("<e:n#>|", 4_000))),
            Boolean(true),
        ),
    ]
}

/// Expressions of a filter, a column and an order.
pub(crate) fn expressions() -> Vec<Shape> {
    type Query = fn(String) -> String;
    let places: [(&str, Query); 3] = [
        ("filter", |e| {
            format!("SELECT * {{ ?x <e:q> ?y FILTER({e}) }}")
        }),
        ("bind", |e| {
            format!("SELECT * {{ ?x <e:q> ?y BIND({e} AS ?z) }}")
        }),
        ("order", |e| {
            format!("SELECT * {{ ?x <e:q> ?y }} ORDER BY ({e})")
        }),
    ];
    let deep = |open: &str, close: &str| nest(open, "?y", close, BRACKETS);
    let cast = "<http://www.w3.org/2001/XMLSchema#string>(";
    let expressions = [
        ("brackets", deep("(", ")")),
        ("sums", deep("(1 + ", ")")),
        ("sum", "?y".to_owned() + &" + 1".repeat(500)),
        ("product", "2".to_owned() + &" * 1".repeat(500)),
        ("negations", deep("-(", ")")),
        ("nots", nest("!(", "?y", ")", 200)),
        ("ors", row("?y = -# || ", 4_000) + "true"),
        ("ands", row("?y != -# && ", 4_000) + "true"),
        (
            "ors of ands",
            nest("(?y != 9 && (?y = 7 || ", "true", "))", BRACKETS / 2),
        ),
        (
            "ors of ands of variables",
            nest("(?x != ?y && (?x = ?y || ", "true", "))", BRACKETS / 2),
        ),
        ("comparisons", nest("(true = ", "true", ")", BRACKETS)),
        ("lists", nest("(?y IN (?y, ", "?y", "))", BRACKETS / 2)),
        ("list", format!("?y IN ({} ?y)", row("-#, ", 4_000))),
        ("ifs", deep("IF(?y = 7, ?y, ", ")")),
        ("conditions", deep("IF(", ", ?y, ?x)")),
        ("coalesces", deep("COALESCE(?x + 1, ", ")")),
        ("calls", deep("STR(", ")")),
        ("texts", nest("CONCAT(STR(?y), ", "STR(?y)", ")", BRACKETS)),
        (
            "casts",
            cast.repeat(BRACKETS) + "?y" + &")".repeat(BRACKETS),
        ),
        ("text", format!("CONCAT({} '')", row("STR(?y), ", 4_000))),
        (
            "exists",
            nest("EXISTS { ?x <e:q> ?y FILTER(1 = 1 && ", "true", ")}", 80),
        ),
        ("constants", nest("(1 + ", "1", ")", BRACKETS)),
    ];
    let mut shapes = Vec::new();
    for (place, of) in places {
        for (name, expression) in &expressions {
            shapes.push(shape(
                format!("{name} in {place}"),
                of(expression.clone()),
                Rows(2),
            ));
        }
        let long = "?y".to_owned() + &" + 1".repeat(20_000);
        shapes.push(shape(format!("a long sum in {place}"), of(long), Rows(2)));
        let nots = "!".repeat(100_000) + "?y";
        shapes.push(shape(format!("many nots in {place}"), of(nots), Rows(2)));
    }
    shapes
}

/// Texts that are as short as those of light queries, and as deep as these can be.
pub(crate) fn short_texts() -> Vec<Shape> {
    let mut shapes = Vec::new();
    let mut add = |before: &str, part: &str, after: &str, answer| {
        let text = short_row(before, part, after);
        shapes.push(shape(format!("short {part}"), text, answer));
    };
    add("ASK{", "OPTIONAL{?q ?w ?e}", "}", Boolean(true));
    add("ASK{", "OPTIONAL{?x?y?#}", "}", Boolean(true));
    add("ASK{", "MINUS{}", "}", Boolean(true));
    add("ASK{?x<e:p>?x ", "MINUS{?x?x?x}", "}", Boolean(true));
    add("ASK{{}", "UNION{}", "}", Boolean(true));
    add("ASK{", "{?x?y?z}", "}", Boolean(true));
    add("ASK{", "[]<e:p>[].", "}", Boolean(true));
    add("ASK{?s?p(", "1 ", ")}", Boolean(false));
    add("ASK{", "BIND(1AS?a#)", "}", Boolean(true));
    add("ASK{", "FILTER(1)", "}", Boolean(true));
    add(
        "ASK{?x <e:p> ?y ",
        "FILTER EXISTS{?x ?y ?z}",
        "}",
        Boolean(false),
    );
    add("ASK{", "VALUES?x{1}", "}", Boolean(true));
    add("ASK{FILTER(1", "+1", ")}", Boolean(true));
    add("ASK{FILTER(1=1", "||1=0", ")}", Boolean(true));
    add("ASK{FILTER(1", "&&1", ")}", Boolean(true));
    add("ASK{<e:a> <e:p>", "/<e:p>", " ?y}", Boolean(true));
    add("ASK{?x a", "/a", " ?y}", Boolean(false));
    add("ASK{?x a", "|a", " ?y}", Boolean(false));
    add("ASK{?x(a", "/a", ")*?y}", Refused);
    add("SELECT(1AS?a)", "(1AS?a#)", "{}", Rows(1));
    add("SELECT*{}ORDER BY", "(1+1)", "", Rows(1));
    add("ASK{", "{SELECT*{}LIMIT 1}", "}", Boolean(true));
    add("ASK{", "GRAPH?g{?x?y?z}", "}", Boolean(true));
    shapes.push(shape(
        "short braces",
        ask(&nest("{", "", "}", 15)),
        Boolean(true),
    ));
    shapes
}
