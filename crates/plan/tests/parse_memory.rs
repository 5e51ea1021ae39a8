//! Parsing holds no more memory than is reserved for it: counted by the allocator.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use common::Flat;
use jindou_plan::{Planner, PlannerConfig, parse_update_within, plan, tree_bytes};

/// Counts what is held, and the most that was.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all is left to the system's allocator; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Relaxed) + layout.size();
        MOST.fetch_max(held, Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes held while `work` ran, beyond those before.
fn most<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = HELD.load(Relaxed);
    MOST.store(before, Relaxed);
    let made = work();
    (MOST.load(Relaxed) - before, made)
}

/// Texts of few tokens, of which one or some are very long.
fn long_tokens() {
    let x = "x".repeat(1 << 18);
    let half = "x".repeat(1 << 17);
    let few = |part: &str, n: usize| part.repeat(n);
    let nested =
        |inner: &str, n: usize| format!("{}{inner}{}", "{SELECT*".repeat(n), "}".repeat(n));
    for (name, text) in [
        ("string", format!("ASK {{ ?s ?p \"{x}\" }}")),
        ("long string", format!("ASK {{ ?s ?p '''{x}''' }}")),
        (
            "escapes",
            format!("ASK {{ ?s ?p \"{}\" }}", few("\\n", 1 << 17)),
        ),
        (
            "unicode escapes",
            format!("ASK {{ ?s ?p \"{}\" }}", few("\\u0061", 1 << 16)),
        ),
        ("tagged", format!("ASK {{ ?s ?p \"{x}\"@en }}")),
        ("typed", format!("ASK {{ ?s ?p \"{half}\"^^<a:{half}> }}")),
        ("number", format!("ASK {{ ?s ?p {} }}", few("1", 1 << 18))),
        (
            "decimal",
            format!("ASK {{ ?s ?p 1.{} }}", few("1", 1 << 18)),
        ),
        ("IRI", format!("ASK {{ ?s ?p <a:{x}> }}")),
        ("predicate", format!("ASK {{ ?s <a:{x}> ?o }}")),
        ("type", format!("ASK {{ ?s a <a:{x}> }}")),
        ("graph", format!("ASK {{ GRAPH <a:{x}> {{ ?s ?p ?o }} }}")),
        ("path", format!("ASK {{ ?s <a:{x}>+ ?o }}")),
        (
            "negated path",
            format!("ASK {{ ?s !(<a:{half}>|^<b:{half}>) ?o }}"),
        ),
        (
            "dataset",
            format!("ASK FROM <a:{half}> FROM NAMED <b:{half}> {{ ?s ?p ?o }}"),
        ),
        (
            "service",
            format!("ASK {{ SERVICE <a:{x}> {{ ?s ?p ?o }} }}"),
        ),
        (
            "service that asks",
            format!("ASK {{ SERVICE <a:b> {{ ?s ?p \"{x}\" }} }}"),
        ),
        (
            "service of variables",
            format!("ASK {{ SERVICE <a:b> {{ ?s ?{half} ?{half} }} }}"),
        ),
        ("name", format!("PREFIX e:<a:> ASK {{ ?s ?p e:{x} }}")),
        (
            "escaped name",
            format!("PREFIX e:<a:> ASK {{ ?s ?p e:{} }}", few("\\-", 1 << 16)),
        ),
        ("label", format!("ASK {{ ?s ?p _:{x} }}")),
        ("base", format!("BASE <a:{x}> ASK {{ ?s ?p <b> }}")),
        ("comment", format!("ASK {{ ?s ?p 1 }} #{x}")),
        ("space", format!("ASK {{ ?s ?p{}1 }}", few(" ", 1 << 18))),
        ("variable", format!("ASK {{ ?s ?p ?{x} }}")),
        ("variable of all", format!("SELECT * {{ ?s ?p ?{x} }}")),
        (
            "variable twice",
            format!("SELECT ?{half} {{ ?s ?p ?{half} }}"),
        ),
        (
            "variable of some",
            format!(
                "SELECT ?{half} {{ ?s ?p ?{half} }} GROUP BY ?{half} ORDER BY ?{half} HAVING(?{half} > 1)"
            ),
        ),
        (
            "grouped",
            format!("SELECT (SUM(?{half}) AS ?n) {{ ?s ?p ?{half} }} GROUP BY ?s"),
        ),
        ("bound", format!("SELECT * {{ BIND(1 AS ?{x}) }}")),
        (
            "exists",
            format!("SELECT * {{ ?s ?p ?{half} FILTER EXISTS {{ ?s ?q ?{half} }} }}"),
        ),
        (
            "minus",
            format!("SELECT * {{ ?s ?p ?{half} MINUS {{ ?s ?q ?{half} }} }}"),
        ),
        (
            "optional",
            format!("SELECT * {{ ?s ?p ?{half} OPTIONAL {{ ?s ?q ?{half} }} }}"),
        ),
        (
            "values",
            format!("ASK {{ VALUES ?{half} {{ \"{half}\" }} }}"),
        ),
        ("filter", format!("ASK {{ ?s ?p ?o FILTER(?o = \"{x}\") }}")),
        (
            "regex",
            format!("ASK {{ ?s ?p ?o FILTER(REGEX(?o, \"{x}\")) }}"),
        ),
        (
            "concat",
            format!("SELECT (CONCAT(\"{half}\", ?o) AS ?c) {{ ?s ?p ?o }}"),
        ),
        (
            "separator",
            format!("SELECT (GROUP_CONCAT(?o ; SEPARATOR=\"{x}\") AS ?c) {{ ?s ?p ?o }}"),
        ),
        (
            "function",
            format!("SELECT (<a:{x}>(?o) AS ?c) {{ ?s ?p ?o }}"),
        ),
        (
            "template",
            format!("CONSTRUCT {{ ?s <a:{half}> \"{half}\" }} {{ ?s ?p ?o }}"),
        ),
        ("describe", format!("DESCRIBE <a:{x}>")),
        ("error", format!("ASK {{ ?s ?p \"{x}\" \"\" }}")),
        ("error in a word", format!("ASK {{ {x} }}")),
        ("error in an IRI", format!("ASK {{ ?s ?p <a b{x}> }}")),
        (
            "comparison",
            format!("ASK {{ ?s ?p ?o FILTER(?o<?p&&\"{x}\">?o) }}"),
        ),
        (
            "comparison without space",
            format!("ASK {{ ?s ?p ?o FILTER(1<?{half}&&?{half}>1) }}"),
        ),
        (
            "nested",
            format!("SELECT * {}", nested(&format!("{{?s ?p ?{x}}}"), 200)),
        ),
        (
            "services nested",
            format!(
                "ASK {{ {} ?s ?p \"{half}\" {} }}",
                few("SERVICE<a:b>{", 30),
                few("}", 30)
            ),
        ),
        (
            "service of all",
            format!(
                "ASK {{ SERVICE <a:b> {{ {} }} }}",
                nested(&format!("{{?s ?p ?{half}}}"), 100)
            ),
        ),
        (
            "nested groups",
            format!("SELECT * {}{{?s ?p ?{x}}}{}", few("{", 200), few("}", 200)),
        ),
        (
            "unions",
            format!(
                "SELECT * {{ {{?s ?p ?{x}}} {} }}",
                few("UNION{?s ?p ?o}", 100)
            ),
        ),
        (
            "optionals",
            format!(
                "SELECT * {{ ?s ?p ?{x} {} }}",
                few("OPTIONAL{?s ?p ?o}", 100)
            ),
        ),
        (
            "many variables nested",
            format!(
                "SELECT * {}",
                nested(&format!("{{?s ?p {}}}", numbered(2000, "?v#,")), 200)
            ),
        ),
    ] {
        measured(name, &text);
    }
}

fn numbered(n: usize, part: &str) -> String {
    let list: String = (0..n).map(|i| part.replace('#', &i.to_string())).collect();
    list.trim_end_matches(',').to_owned()
}

/// Plans a text, and says what that held.
fn measured(name: &str, text: &str) {
    let bound = tree_bytes(text);
    let planner = Planner::new(&PlannerConfig::default());
    for (how, (held, made)) in [
        ("planned", most(|| plan(text, None, None, &Flat).is_ok())),
        (
            "prepared",
            most(|| planner.prepare(text, None, None, &Flat).is_ok()),
        ),
    ] {
        println!(
            "{name}, {how}: {made} {held} bytes for {} of text, {:.1} times; bound {bound}",
            text.len(),
            held as f64 / text.len() as f64
        );
        assert!(held <= bound, "{name}, {how}");
    }
}

/// Updates with long tokens outside of data.
fn long_updates() {
    let x = "x".repeat(1 << 18);
    for (name, text) in [
        (
            "insert",
            format!("INSERT {{ ?s <a:{x}> \"{x}\" }} WHERE {{ ?s ?p ?o }}"),
        ),
        (
            "delete",
            format!("DELETE {{ ?s ?{x} <a:{x}> }} WHERE {{ ?s ?{x} ?o }}"),
        ),
        (
            "delete where",
            format!("DELETE WHERE {{ ?s <a:{x}> \"{x}\" }}"),
        ),
        (
            "with",
            format!("WITH <a:{x}> INSERT {{ ?s ?p 1 }} USING <b:{x}> WHERE {{ ?s ?p ?o }}"),
        ),
        (
            "list",
            format!(
                "INSERT {{ ?s ?p ({}) }} WHERE {{ ?s ?p ?o }}",
                "1 ".repeat(2000)
            ),
        ),
        ("clear", format!("CLEAR GRAPH <a:{x}>")),
        ("load", format!("LOAD <a:{x}> INTO GRAPH <b:{x}>")),
    ] {
        let mut reserved = 0;
        let (held, made) = most(|| {
            let reserve = &mut |bytes| {
                reserved += bytes;
                true
            };
            parse_update_within(&text, None, None, reserve).is_ok()
        });
        println!(
            "update, {name}: {made} {held} bytes for {}, {reserved} reserved",
            text.len()
        );
        assert!(held <= reserved, "{name}");
    }
}

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
        let (held, made) = most(|| plan(&text, None, None, &Flat).is_ok());
        let bound = tree_bytes(&text);
        println!(
            "{name}: {made} {held} bytes for {} of text, {} times; bound {bound}",
            text.len(),
            held / text.len(),
        );
        assert!(held <= bound, "{name}");
    }
    long_tokens();
    long_updates();
    // Data takes next to nothing, however long it is.
    for (name, data) in [
        ("list", format!("<a:s> <a:p> ({})", "1 ".repeat(1 << 19))),
        ("objects", format!("<a:s> <a:p> {}1", "1,".repeat(1 << 19))),
        ("blanks", format!("<a:s> <a:p> {}1", "[],".repeat(1 << 19))),
    ] {
        let text = format!("INSERT DATA {{ {data} }}");
        let mut reserved = 0;
        let (held, made) = most(|| {
            let reserve = &mut |bytes| {
                reserved += bytes;
                true
            };
            parse_update_within(&text, None, None, reserve).is_ok()
        });
        println!(
            "data, {name}: {held} bytes for {}, {reserved} reserved",
            text.len()
        );
        assert!(made && held < 16 << 10 && reserved < 16 << 10, "{name}");
    }
}
