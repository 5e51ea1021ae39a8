//! What does the query page show of a result?

use std::process::Command;

use crate::client::Running;

/// What the page says of a query's result, how many rows it shows, the first and last of them, what
/// is marked in the query, and the query after a reload. None, and a line that says so, where there
/// is nothing to run its script with.
fn shown(server: &Running, query: &str, form: &str) -> Option<Vec<String>> {
    const FOLDER: &str = env!("CARGO_MANIFEST_DIR");
    let ran = Command::new("node")
        .arg(format!("{FOLDER}/tests/http/page.js"))
        .arg(format!("{FOLDER}/src/page.html"))
        .arg(format!("http://{}", server.address))
        .arg(query)
        .arg(form)
        // Numbers are written as in English.
        .env("LC_ALL", "C")
        .output();
    let ran = match ran {
        Ok(ran) => ran,
        Err(error) => {
            println!("SKIPPED: what the query page shows (node: {error})");
            return None;
        }
    };
    let said = String::from_utf8_lossy(&ran.stdout);
    let wrong = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{query}: {wrong}");
    Some(said.lines().map(str::to_owned).collect())
}

#[test]
fn the_page_shows_the_first_rows_of_a_large_result_and_says_so() {
    let server = Running::with(|_| {});
    let query = |rows: usize| {
        let numbers: Vec<_> = (1..=rows).map(|n| n.to_string()).collect();
        format!("SELECT ?n {{ VALUES ?n {{ {} }} }}", numbers.join(" "))
    };
    for (rows, said, count) in [
        (5_000, "The first 1,000 rows; there are more", 1_000),
        (1_001, "The first 1,000 rows; there are more", 1_000),
        (1_000, "1,000 rows", 1_000),
        (1, "1 row", 1),
    ] {
        let query = query(rows);
        let Some(shown) = shown(&server, &query, "") else {
            return;
        };
        let count = count.to_string();
        let expected = [said, &count, "1", &count, "", &query];
        assert_eq!(shown, expected, "{rows} rows");
    }
    // Nobody reads the rest of what was cut.
    server.wait_for_metric("jindou_queries_in_flight 0");
    let Some(wrong) = shown(&server, "SELECT ?s {", "") else {
        return;
    };
    assert!(wrong[0].starts_with("line 1"), "{wrong:?}");
}

#[test]
fn the_page_marks_a_mistake_also_behind_characters_of_two_units() {
    let server = Running::new();
    for (query, marked) in [
        ("ASK { ?s ?p '\u{1f600}\u{1f600}' ] }", "]"),
        (
            "# \u{1f600}\u{1f600}\nASK { '\u{1f600}e\u{301}\u{1f600}' ?p ] }",
            "]",
        ),
        ("ASK { ?s ?p \u{1f600} }", "\u{1f600}"),
    ] {
        let Some(shown) = shown(&server, query, "") else {
            return;
        };
        assert!(shown[0].starts_with("line "), "{shown:?}");
        assert_eq!(shown[4], marked, "{shown:?}");
    }
}

#[test]
fn the_page_says_that_a_form_is_of_other_results() {
    let server = Running::new();
    let Some(shown) = shown(&server, "SELECT * { ?s ?p ?o }", "ttl") else {
        return;
    };
    assert!(
        shown[0]
            .contains("not available as text/turtle; available: application/sparql-results+json,"),
        "{shown:?}"
    );
    let Some(shown) = self::shown(&server, "CONSTRUCT WHERE { ?s ?p ?o }", "ttl") else {
        return;
    };
    assert!(shown[0].ends_with(" characters"), "{shown:?}");
}

#[test]
fn the_page_shows_iris_by_prefixes_of_the_query_and_of_the_store_with_the_whole_beside() {
    let server = Running::new();
    let put = server.send(
        "PUT",
        "/prefixes",
        "Content-Type: application/json\r\n",
        r#"{"s": "http://store/", "q": "http://other/", "deep": "http://store/deep/"}"#,
    );
    assert_eq!(put.status, 204, "{}", put.text());
    for (iri, expected) in [
        ("http://store/a", "s:a = http://store/a"),
        ("http://store/deep/a.b", "deep:a.b = http://store/deep/a.b"),
        ("http://store/a/b", "http://store/a/b"),
        ("http://query/a", "q:a = http://query/a"),
        ("http://other/a", "http://other/a"),
        ("urn:x", "<urn:x>"),
    ] {
        let query = format!("PREFIX q: <http://query/> SELECT ?x {{ VALUES ?x {{ <{iri}> }} }}");
        let Some(shown) = shown(&server, &query, "") else {
            return;
        };
        assert_eq!(shown[2], expected, "{shown:?}");
    }
}
