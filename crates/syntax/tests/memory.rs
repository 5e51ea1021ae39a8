//! Parsing holds no more memory than is reserved for it, and not much less: counted by the
//! allocator.

use jindou_counting::peak;
use jindou_syntax::{Error, MAX_WINDOWS, Options, parse_continuous, parse_query, parse_update};

type Parse = fn(&str, Options<'_>) -> Result<(), Error>;

const QUERY: Parse = |text, options| parse_query(text, options).map(drop);
const UPDATE: Parse = |text, options| parse_update(text, options).map(drop);
const CONTINUOUS: Parse = |text, options| parse_continuous(text, options).map(drop);

/// One test, as there is one counter.
#[test]
fn what_is_reserved_is_held() {
    let n = 5000;
    let times = |part: &str| part.repeat(n);
    let numbered =
        |part: &str| -> String { (0..n).map(|i| part.replace('#', &i.to_string())).collect() };
    let queries = [
        ("objects", format!("ASK {{ ?s ?p {}2 }}", times("1,"))),
        ("list", format!("ASK {{ ?s ?p ({}) }}", times("1 "))),
        ("blanks", format!("ASK {{ ?s ?p {}[] }}", times("[],"))),
        ("labels", format!("ASK {{ {} }}", numbered("_:b# ?p 1 ."))),
        ("properties", format!("ASK {{ {} }}", times("[?p 1]."))),
        (
            "triple terms",
            format!("ASK {{ ?s ?p {}1 }}", times("<<(?s ?p 1)>>,")),
        ),
        (
            "annotations",
            format!("ASK {{ ?s ?p 1 {} }}", times("{| a 1 |}")),
        ),
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
        ("calls", format!("ASK {{ FILTER(1{}) }}", times("+STR(1)"))),
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
            format!("ASK {{ {} }}", times("OPTIONAL{?s ?p 1}")),
        ),
        (
            "exists",
            format!("ASK {{ {} }}", times("FILTER EXISTS{?s ?p 1}")),
        ),
        (
            "selects",
            format!("ASK {{ {} }}", numbered("{SELECT*{?x# ?p 1}}")),
        ),
        ("paths", format!("ASK {{ ?s a{} ?o }}", times("/a"))),
        (
            "alternatives",
            format!("ASK {{ ?s a{} ?o }}", times("|^a*")),
        ),
        ("negated", format!("ASK {{ ?s !(a{}) ?o }}", times("|^a"))),
        ("columns", format!("SELECT {} {{}}", numbered("(1 AS ?x#)"))),
        (
            "variables",
            format!("SELECT * {{ {} }}", numbered("?x# ?p ?y# .")),
        ),
        (
            "sums",
            format!("SELECT {} {{}}", numbered("(SUM(?y) AS ?x#)")),
        ),
        (
            "keys",
            format!("SELECT (1 AS ?x) {{}} GROUP BY {}", numbered("?x# ")),
        ),
        (
            "template",
            format!("CONSTRUCT {{ ?s ?p ({}) }} {{ ?s ?p ?o }}", times("1 ")),
        ),
        (
            "short construct",
            format!("CONSTRUCT WHERE {{ {} }}", times("?s ?p ?o .")),
        ),
        (
            "prefixes",
            format!("{} ASK {{}}", numbered("PREFIX p#: <http://e/#>")),
        ),
        (
            "escapes",
            format!(
                "ASK {{ ?s ?p {}1 }}",
                times("'\\u0061',<http://e/\\u0061>,")
            ),
        ),
        (
            "names",
            format!(
                "PREFIX e: <a:{}> ASK {{ e:s ?p {}e:b }}",
                "x".repeat(400),
                numbered("e:#,")
            ),
        ),
        (
            "nested",
            format!("ASK {{ FILTER{}1{} }}", "(1+".repeat(250), ")".repeat(250)),
        ),
    ];
    let updates = [
        ("operations", times("CLEAR ALL;")),
        (
            "modify",
            times("DELETE { ?s ?p 1 } INSERT { ?s ?p 2 } WHERE { ?s ?p ?o };"),
        ),
        (
            "quads",
            format!(
                "DELETE WHERE {{ {} }}",
                times("GRAPH <http://e/g> { ?s ?p ?o }")
            ),
        ),
        ("bases", numbered("BASE <http://e/#/> CLEAR ALL;")),
        (
            "labels",
            format!(
                "INSERT DATA {{}} ; INSERT DATA {{ {} }}",
                numbered("_:b# a 1 .")
            ),
        ),
    ];
    let windows: String = (0..MAX_WINDOWS)
        .map(|i| format!("FROM NAMED WINDOW <http://e/{i}> ON s [RANGE 1s]"))
        .collect();
    let continuous = [
        ("windows", format!("ASK {windows} {{}}")),
        (
            "bare graphs",
            format!("ASK {} {{}}", numbered(" FROM Bare#")),
        ),
        (
            "graphs",
            format!("ASK {{ {} }}", times("GRAPH Bare {?s ?p 1}")),
        ),
        (
            "window patterns",
            format!("ASK {{ {} }}", times("WINDOW ?w {?s ?p 1}")),
        ),
    ];
    let queries = queries.into_iter().map(|(name, text)| (name, text, QUERY));
    let updates = updates.map(|(name, text)| (name, text, UPDATE));
    let continuous = continuous.map(|(name, text)| (name, text, CONTINUOUS));
    for (name, text, parse) in queries.chain(updates).chain(continuous) {
        let mut reserved = 0;
        let (held, made) = peak(|| {
            let mut reserve = |bytes| {
                reserved += bytes as u64;
                true
            };
            let options = Options {
                base: Some("http://e/"),
                reserve: Some(&mut reserve),
                ..Options::default()
            };
            parse(&text, options)
        });
        assert_eq!(made, Ok(()), "{name}");
        println!(
            "{name}: {held} bytes held of {reserved}, for {} of text",
            text.len()
        );
        assert!(held <= reserved, "{name}: {held} held, {reserved} reserved");
        assert!(
            reserved <= 2 * held,
            "{name}: {held} held, {reserved} reserved"
        );
        // Refused, parsing ends.
        let mut left = reserved / 2;
        let (held, made) = peak(|| {
            let mut reserve = |bytes| {
                let is_left = left >= bytes as u64;
                left -= if is_left { bytes as u64 } else { 0 };
                is_left
            };
            let options = Options {
                base: Some("http://e/"),
                reserve: Some(&mut reserve),
                ..Options::default()
            };
            parse(&text, options)
        });
        assert_eq!(made, Err(Error::MemoryRefused), "{name}");
        assert!(
            held <= reserved / 2 + 1024,
            "{name}: {held} held, half of {reserved} reserved"
        );
    }
    // Data takes next to nothing, however long it is, both when it is checked and when it is read.
    for (name, data) in [
        ("list", format!("<a:s> <a:p> ({})", "1 ".repeat(1 << 19))),
        ("objects", format!("<a:s> <a:p> {}1", "1,".repeat(1 << 19))),
        ("blanks", format!("<a:s> <a:p> {}1", "[],".repeat(1 << 19))),
        (
            "labels",
            (0..1 << 15).map(|i| format!("_:b{i} <a:p> 1.")).collect(),
        ),
        (
            "nested",
            "<a:s> <a:p> ([ <a:q> 'x'@en, 'y'^^<a:t> ]).".repeat(1 << 15),
        ),
        ("graphs", "GRAPH <a:g> { <a:s> <a:p> 1 }".repeat(1 << 15)),
    ] {
        let text = format!("INSERT DATA {{ {data} }}");
        let (held, quads) = peak(|| {
            let operations = parse_update(&text, Options::default()).expect(name);
            let mut quads = 0;
            for operation in &operations {
                if let jindou_syntax::tree::OperationKind::InsertData(data) = &operation.kind {
                    data.for_each::<Error>(&mut |_| {
                        quads += 1;
                        Ok(())
                    })
                    .expect(name);
                }
            }
            quads
        });
        println!(
            "{name}: {held} bytes for {quads} quads of {} of text",
            text.len()
        );
        assert!(held < 8 << 10 && quads >= 1 << 15, "{name}: {held} {quads}");
    }
}
