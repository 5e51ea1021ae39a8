//! Parsing holds no more memory than is reserved for it: counted by the allocator.

mod common;

use common::Flat;
use jindou_counting::peak;
use jindou_plan::{Limits, parse_update_within, plan_within};

/// Bytes that are held without having been reserved, as for every query.
const FREE: u64 = 64 << 10;

/// One test, as there is one counter.
#[test]
fn parsing_holds_no_more_than_is_reserved() {
    let n = 2000;
    let times = |part: &str| part.repeat(n);
    let numbered =
        |part: &str| -> String { (0..n).map(|i| part.replace('#', &i.to_string())).collect() };
    for (name, text) in [
        ("objects", format!("ASK {{ ?s ?p {}2 }}", times("1,"))),
        (
            "distinct objects",
            format!("ASK {{ ?s ?p {}2 }}", numbered("#,")),
        ),
        ("list", format!("ASK {{ ?s ?p ({}) }}", times("1 "))),
        ("blanks", format!("ASK {{ ?s ?p {}[] }}", times("[],"))),
        ("properties", format!("ASK {{ {} }}", times("[?p 1]."))),
        (
            "values",
            format!("ASK {{ VALUES ?x {{ {} }} }}", times("1 ")),
        ),
        (
            "rows",
            format!("ASK {{ VALUES (?x) {{ {} }} }}", times("(1)")),
        ),
        ("sum", format!("ASK {{ FILTER(1{}) }}", times("+1"))),
        ("or", format!("ASK {{ FILTER(?a{}) }}", numbered("||?x#"))),
        ("in", format!("ASK {{ FILTER(?a IN ({}1)) }}", times("1,"))),
        (
            "unions",
            format!("ASK {{ {{}}{} }}", times("UNION{?s ?p 1}")),
        ),
        (
            "filters",
            format!("ASK {{ ?s ?p ?o {} }}", times("FILTER(?s)")),
        ),
        (
            "optionals",
            format!("ASK {{ {} }}", "OPTIONAL{?s ?p 1}".repeat(200)),
        ),
        ("paths", format!("ASK {{ ?s a{} ?o }}", times("/a"))),
        ("alternatives", format!("ASK {{ ?s a{} ?o }}", times("|a"))),
        ("columns", format!("SELECT {} {{}}", numbered("(1 AS ?x#)"))),
        (
            "template",
            format!("CONSTRUCT {{ ?s ?p ({}) }} {{ ?s ?p ?o }}", times("1 ")),
        ),
        (
            "prefix",
            format!(
                "PREFIX e:<a:{}> ASK {{ ?s ?p {}e:b }}",
                "x".repeat(4000),
                numbered("e:#,")
            ),
        ),
    ] {
        let mut reserved = 0;
        let (held, made) = peak(|| {
            let reserve = &mut |bytes| {
                reserved += bytes as u64;
                true
            };
            let is_over = &|| false;
            plan_within(&text, None, None, &Flat, Limits { reserve, is_over }).is_ok()
        });
        println!(
            "{name}: {made} {held} bytes for {} of text, {} times; {reserved} reserved",
            text.len(),
            held / text.len() as u64,
        );
        assert!(held <= reserved + FREE, "{name}");
    }
    // Data takes next to nothing, however long it is.
    for (name, data) in [
        ("list", format!("<a:s> <a:p> ({})", "1 ".repeat(1 << 19))),
        ("objects", format!("<a:s> <a:p> {}1", "1,".repeat(1 << 19))),
        ("blanks", format!("<a:s> <a:p> {}1", "[],".repeat(1 << 19))),
    ] {
        let text = format!("INSERT DATA {{ {data} }}");
        let mut reserved = 0;
        let (held, made) = peak(|| {
            let reserve = &mut |bytes| {
                reserved += bytes as u64;
                true
            };
            let is_over = &|| false;
            parse_update_within(&text, None, (None, false), Limits { reserve, is_over }).is_ok()
        });
        println!(
            "data, {name}: {held} bytes for {}, {reserved} reserved",
            text.len()
        );
        assert!(made && held < 16 << 10 && reserved < 32 << 10, "{name}");
    }
}
