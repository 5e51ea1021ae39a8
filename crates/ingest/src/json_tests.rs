use super::*;
use crate::pool::PARSER_STACK_BYTES;
use oxrdfio::{JsonLdProfileSet, RdfFormat, RdfParser};

fn watch(text: &str) -> Result<(), TooDeep> {
    let mut whole = JsonWatch::default();
    let told = whole.feed(text.as_bytes());
    let mut parts = JsonWatch::default();
    let by_bytes = text.bytes().try_for_each(|b| parts.feed(&[b]));
    assert_eq!(told.is_ok(), by_bytes.is_ok());
    told
}

/// A context of so many terms, each defined by the next.
fn chain(terms: usize, define: impl Fn(usize) -> String) -> String {
    let term = |n| format!("\"t{n}\":{}", define(n + 1));
    let terms: Vec<_> = (0..terms).map(term).collect();
    format!("{{{}}}", terms.join(","))
}

fn nested(open: &str, close: &str, depth: usize) -> String {
    format!("{}1{}", open.repeat(depth), close.repeat(depth))
}

/// The deepest documents of their kinds that are within the bounds.
fn deepest() -> Vec<String> {
    let (most, depth) = (MAX_DEFINITION_DEPTH, MAX_JSON_DEPTH);
    let mut documents = vec![
        format!(
            "{{\"@context\":{}}}",
            chain(most, |n| format!("\"t{n}:x\""))
        ),
        format!(
            "{{\"@context\":{}}}",
            chain(most, |n| format!(
                "{{\"@id\":\"http://e/\",\"@type\":\"t{n}\"}}"
            ))
        ),
        format!("{{\"@context\":{}}}", chain(most, |n| format!("\"t{n}\""))),
        format!(
            "{{\"http://e/p\":{{\"@type\":\"@json\",\"@value\":{}}}}}",
            nested("{\"a\":", "}", depth - 2)
        ),
        nested("[", "]", depth),
    ];
    for key in [
        "@set",
        "@list",
        "@graph",
        "@included",
        "@value",
        "@type",
        "@id",
        "@nest",
        "@index",
        "a",
        "http://e/p",
    ] {
        documents.push(nested(&format!("{{\"{key}\":"), "}", depth));
        documents.push(nested(&format!("{{\"{key}\":["), "]}", depth / 2));
        documents.push(nested(
            &format!("{{\"@id\":\"http://e/s\",\"{key}\":"),
            "}",
            depth,
        ));
    }
    let reverse = "{\"@reverse\":{\"http://e/p\":";
    documents.push(nested(reverse, "}}", depth / 2));
    // Scoped contexts, at the bottom of nested nodes.
    let scoped = nested("{\"a\":{\"@id\":\"http://e/a\",\"@context\":", "}}", most);
    let scoped = scoped.replace('1', "{}");
    documents.push(format!("{{\"@context\":{scoped}}}"));
    let levels = depth - 2 * most - 2;
    documents.push(
        nested("{\"http://e/p\":", "}", levels)
            .replace('1', &format!("{{\"@context\":{scoped},\"a\":1}}")),
    );
    documents
}

#[test]
fn what_is_within_the_bounds_takes_a_quarter_of_the_parsers_stack() {
    for document in deepest() {
        watch(&document).expect(&document);
        std::thread::Builder::new()
            .stack_size(PARSER_STACK_BYTES / 4)
            .spawn(move || {
                let format = RdfFormat::JsonLd {
                    profile: JsonLdProfileSet::empty(),
                };
                RdfParser::from_format(format)
                    .for_reader(document.as_bytes())
                    .count()
            })
            .expect("a thread")
            .join()
            .expect("an end");
    }
}

#[test]
fn what_is_beyond_the_bounds_is_refused_with_its_place() {
    let beyond = MAX_DEFINITION_DEPTH + 1;
    let refused = |text: &str| watch(text).expect_err(text);
    let error = refused(&nested("[\n", "]", MAX_JSON_DEPTH + 1));
    assert_eq!((error.line, error.column), (MAX_JSON_DEPTH as u64 + 1, 1));
    for define in [
        |n: usize| format!("\"t{n}\""),
        |n| format!("\"t{n}:x\""),
        |n| format!("{{\"@type\":\"t{n}\"}}"),
        |n| format!("{{\"@reverse\":\"t{n}:x\"}}"),
        |n| format!("\"\\u0074{n}:x\""),
    ] {
        let context = chain(beyond, define);
        refused(&format!("{{\"@context\":{context}}}"));
        refused(&format!("{{\"\\u0040context\" : [{{}}, {context}]}}"));
        refused(&format!(
            "{{\"@context\":{{\"a\":{{\"@context\":{context}}}}}}}"
        ));
    }
    // By their own names, as prefixes.
    let names: Vec<_> = (0..beyond)
        .map(|n| format!("\"{}\":{{}}", "t:".repeat(n + 1)))
        .collect();
    watch(&format!("{{\"@context\":{{{}}}}}", names.join(","))).expect("one prefix");
    let scoped = "{\"a\":{\"@context\":".repeat(beyond);
    refused(&format!(
        "{{\"@context\":{scoped}{{}}{}}}",
        "}}".repeat(beyond)
    ));
    // Half in one context, half in that of a term.
    let half = chain(beyond / 2 + 1, |n| format!("\"t{n}:x\""));
    let outer = chain(beyond / 2 + 1, |n| {
        format!("{{\"@id\":\"t{n}:x\",\"@context\":{half}}}")
    });
    refused(&format!("{{\"@context\":{outer}}}"));
    let circle = chain(beyond, |n| format!("\"t{}:x\"", n % beyond));
    refused(&format!("{{\"@context\":{circle}}}"));
}

#[test]
fn many_terms_that_hang_on_one_prefix_are_no_depth() {
    let terms: Vec<_> = (0..5_000)
        .map(|n| format!("\"t{n}\":{{\"@id\":\"s:t{n}\",\"@type\":\"@id\"}}"))
        .collect();
    let terms = terms.join(",");
    watch(&format!(
        "{{\"@context\":{{\"s\":\"http://s/\",\"id\":\"@id\",{terms}}},\"t1\":[1,\"t2:x\"]}}"
    ))
    .expect("a common context");
}
