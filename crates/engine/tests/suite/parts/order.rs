//! Do nodes with parts order and compare terms as one database does, and of how many do they ask the others?

use std::path::Path;

use jindou_engine::{Config, Database, ForkPolicy};

use super::{NAMES, cluster, list, make, rows_in_order, split};

const PEOPLE: usize = 3_000;
/// What the messages may have by which a few terms are asked for; all e-mails together have some 100,000 bytes.
const FEW_BYTES: u64 = 4_000;

/// Values of all kinds, of which many have the same text, one for each subject.
fn value(number: usize) -> String {
    let text = format!("{:04}", number / 12);
    match number % 12 {
        0 => format!("\"{text}\""),
        1 => format!("\"{text}\"@en"),
        2 => format!("\"{text}\"@de-AT"),
        3 => format!("\"{text}\"^^<http://x/type>"),
        4 => format!("\"{text}\"^^<http://www.w3.org/2001/XMLSchema#integer>"),
        5 => format!("{}", number as i64 - 1_000),
        6 => format!("{}.5", number),
        7 => format!("{number}e-3"),
        8 => format!(
            "\"{}-02-03\"^^<http://www.w3.org/2001/XMLSchema#date>",
            1_500 + number
        ),
        9 => format!(
            "\"2024-02-03T01:02:{:02}.{number:04}12345Z\"^^<http://www.w3.org/2001/XMLSchema#dateTime>",
            number % 60
        ),
        10 => format!("_:b{number}"),
        _ => format!("<http://y/{text}>"),
    }
}

fn people(numbers: std::ops::Range<usize>) -> String {
    let lines = numbers.map(|number| {
        let (me, group) = (format!("<http://x/p{number}>"), number % 7);
        format!(
            "{me} <http://x/email> \"user{}@dept{group}.example.org\" ; <http://x/in> <http://x/g{group}> ; \
             <http://x/value> {} ; <http://x/text> \"text {}\"{} .\n",
            number * 7919 % 100_003,
            value(number),
            number % 900,
            ["", "@en", "@fr"][number % 3],
        )
    });
    lines.collect()
}

/// Makes a store whose terms were loaded, and some of which came later.
fn make_store(location: &Path, with_later: bool) {
    make(location, "people.ttl", people(0..PEOPLE));
    if with_later {
        let database = Database::open(location, Config::default()).expect("it opens");
        for begin in [PEOPLE, PEOPLE + 200] {
            let data = people(begin..begin + 200);
            let update = format!("INSERT DATA {{ {data} }}");
            database.update(&update).expect("nothing is in the way");
            database.compact().expect("it merges");
        }
    }
}

const ORDERED: [&str; 17] = [
    "SELECT ?s ?v { ?s <http://x/value> ?v } ORDER BY ?v ?s",
    "SELECT ?s ?v { ?s <http://x/value> ?v } ORDER BY DESC(?v) ?s",
    "SELECT ?s ?v { ?s <http://x/value> ?v } ORDER BY ?v ?s LIMIT 700 OFFSET 900",
    "SELECT ?s ?t { ?s <http://x/text> ?t } ORDER BY DESC(?t) DESC(?s)",
    "SELECT ?s ?v ?t { ?s <http://x/value> ?v ; <http://x/text> ?t } ORDER BY ?t DESC(?v) LIMIT 100",
    "SELECT ?e { ?s <http://x/email> ?e } ORDER BY ?e",
    "SELECT ?e { ?s <http://x/email> ?e } ORDER BY DESC(?e) LIMIT 10",
    "SELECT DISTINCT ?t { ?s <http://x/text> ?t } ORDER BY ?t LIMIT 20",
    "SELECT DISTINCT ?t { ?s <http://x/text> ?t ; <http://x/in> <http://x/g3> } ORDER BY DESC(?t)",
    "SELECT (MIN(?e) AS ?least) (MAX(?e) AS ?most) { ?s <http://x/email> ?e }",
    "SELECT (MIN(?v) AS ?least) (MAX(?v) AS ?most) { ?s <http://x/value> ?v FILTER(!ISBLANK(?v)) }",
    "SELECT ?g (MIN(?e) AS ?a) (MAX(?e) AS ?b) (MAX(?t) AS ?c) { ?s <http://x/email> ?e ; <http://x/text> ?t ; \
     <http://x/in> ?g } GROUP BY ?g ORDER BY ?g",
    "SELECT (MIN(?s) AS ?a) (MAX(?s) AS ?b) (MAX(?o) AS ?c) { ?s <http://x/email>|<http://x/value> ?o }",
    "SELECT ?e { ?s <http://x/email> ?e FILTER(?e < \"user3\" && ?e >= \"user12\") } ORDER BY ?e",
    "SELECT ?s ?v { ?s <http://x/value> ?v FILTER(?v < 40) } ORDER BY ?v ?s",
    "SELECT ?s ?v { ?s <http://x/value> ?v FILTER(?v > \"1700-01-01\"^^<http://www.w3.org/2001/XMLSchema#date>) } \
     ORDER BY ?v ?s",
    "SELECT ?a ?b { ?a <http://x/email> ?e ; <http://x/in> <http://x/g1> . ?b <http://x/email> ?f ; \
     <http://x/in> <http://x/g2> FILTER(?e > ?f && ?e < \"user2\") } ORDER BY ?e ?f LIMIT 50",
];

#[test]
fn nodes_with_parts_order_terms_as_one_database_does() {
    for with_later in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let location = folder.path().join("store");
        make_store(&location, with_later);
        let one = Database::open_to_read(&location, Config::default()).expect("it opens");
        for policy in [
            ForkPolicy::Dynamic,
            ForkPolicy::InPlace,
            ForkPolicy::ForkJoin,
        ] {
            let (peers, listeners) = list(16, &NAMES);
            let to = folder.path().join(format!("parts-{policy:?}"));
            let parts = split(&location, &peers, &to);
            let nodes = cluster((&peers, listeners), &parts, policy, true);
            for (place, node) in nodes.iter().enumerate() {
                for query in ORDERED {
                    let what = format!("{policy:?}, {with_later}, node {place}: {query}");
                    let expected = rows_in_order(&one, query).expect(&what);
                    assert!(!expected.is_empty(), "{what}");
                    assert!(
                        rows_in_order(node, query).expect(&what) == expected,
                        "{what}"
                    );
                }
            }
        }
    }
}

#[test]
fn nodes_ask_the_others_for_no_text_but_those_of_the_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let location = folder.path().join("store");
    make_store(&location, true);
    let (peers, listeners) = list(16, &NAMES);
    let parts = split(&location, &peers, &folder.path().join("parts"));
    let nodes = cluster((&peers, listeners), &parts, ForkPolicy::InPlace, true);
    let asked = |node: &Database, query: &str| -> u64 {
        let bytes = || -> u64 {
            let of_nodes = nodes.iter().map(|node| node.remote_reads().message_bytes);
            of_nodes.sum()
        };
        let before = bytes();
        assert!(!rows_in_order(node, query).expect(query).is_empty());
        bytes() - before
    };
    let emails = "{ ?s <http://x/email> ?t }";
    let texts = "{ ?s <http://x/text> ?t }";
    let grouped = "{ ?s <http://x/text> ?t ; <http://x/in> ?g }";
    for node in &nodes {
        for (select, pattern, order) in [
            ("?t", emails, "ORDER BY ?t LIMIT 10"),
            ("?t", emails, "ORDER BY DESC(?t) LIMIT 10"),
            ("DISTINCT ?t", texts, "ORDER BY DESC(?t) LIMIT 10"),
            ("(MIN(?t) AS ?a) (MAX(?t) AS ?b)", emails, ""),
            ("?g (MAX(?t) AS ?a)", grouped, "GROUP BY ?g ORDER BY ?g"),
        ] {
            let query = format!("SELECT {select} {pattern} {order}");
            // Lists of edges are asked for, too.
            let of_lists = format!("SELECT (COUNT(DISTINCT ?t) AS ?n) {pattern}");
            let (bytes, of_lists) = (asked(node, &query), asked(node, &of_lists));
            let is_little = bytes < of_lists + FEW_BYTES;
            assert!(
                is_little,
                "{query}: {bytes} bytes, and {of_lists} without texts"
            );
        }
        // All are asked for where all are the answer.
        let all = format!("SELECT ?t {emails} ORDER BY ?t");
        assert!(asked(node, &all) > 10 * FEW_BYTES);
    }
}
