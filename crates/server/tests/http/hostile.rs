//! Requests and queries made to hurt: each is answered or refused, and leaves nothing behind.

use std::io::Read;

use crate::client::Running;

const TEXT: &str = "Content-Type: application/sparql-query\r\n";

fn post(server: &Running, query: &str) -> (u16, String) {
    let answer = server.send("POST", "/query?timeout=60", TEXT, query);
    assert!(answer.whole);
    (answer.status, answer.text())
}

/// The server answers as if nothing had been.
fn unharmed(server: &Running) {
    server.wait_for_metric("jindou_queries_in_flight 0");
    assert_eq!(
        server.query("ASK { ?s ?p ?o }", "&format=csv").text(),
        "true"
    );
}

#[test]
fn deep_nesting_is_refused_wherever_it_is() {
    let server = Running::new();
    let deep = |open: &str, inner: &str, close: &str| {
        let (open, close) = (open.repeat(10_000), close.repeat(10_000));
        format!("{open}{inner}{close}")
    };
    for query in [
        format!("SELECT * {{ ?s ?p ?o FILTER({}) }}", deep("(", "?o", ")")),
        format!(
            "SELECT * {{ ?s ?p ?o FILTER({} > 1) }}",
            deep("(1+", "1", ")")
        ),
        format!("SELECT * {}", deep("{", "?s ?p ?o", "}")),
        format!("SELECT * {}", deep("{ OPTIONAL ", "{ ?s ?p ?o }", "}")),
        format!("SELECT * {{ ?s {} ?o }}", deep("(", "<http://e/p>", ")*")),
        format!("SELECT * {{ ?s ?p {} }}", deep("[ ?q ", "1", "]")),
        format!("SELECT * {{ ?s ?p {} }}", deep("( ", "1", ")")),
        format!(
            "SELECT * {{ FILTER {} }}",
            deep("NOT EXISTS { FILTER ", "(true)", "}")
        ),
        format!(
            "SELECT * {{ {} }}",
            deep("{ SELECT * ", "{ ?s ?p ?o }", "}")
        ),
        "(".repeat(100_000),
        "SELECT * {".repeat(10_000),
    ] {
        let (status, text) = post(&server, &query);
        assert_eq!(status, 400, "{}: {text}", &query[..60]);
        assert!(text.len() < 1000, "a refusal does not repeat the query");
    }
    unharmed(&server);
}

#[test]
fn long_chains_of_operators_are_answered_or_refused() {
    let server = Running::new();
    for query in [
        format!("SELECT (({}1) AS ?x) {{}}", "1+".repeat(10_000)),
        format!("ASK {{ FILTER({}true) }}", "true && ".repeat(10_000)),
        format!("ASK {{ FILTER({}true) }}", "!".repeat(10_000)),
        format!("ASK {{ {} {{}} }}", "{} UNION ".repeat(10_000)),
        format!(
            "ASK {{ ?s {}<http://e/p> ?o }}",
            "<http://e/p>/".repeat(2_000)
        ),
        format!(
            "ASK {{ ?s {}<http://e/p> ?o }}",
            "<http://e/p>|".repeat(10_000)
        ),
        format!("ASK {{ {} }}", "OPTIONAL { ?s ?p ?o }".repeat(2_000)),
    ] {
        let (status, text) = post(&server, &query);
        let refused = (400..=504).contains(&status) && text.len() < 1000;
        assert!(
            status == 200 || refused,
            "{}: {status} {text}",
            &query[..60]
        );
        assert_ne!(status, 500, "{}", &query[..60]);
    }
    unharmed(&server);
}

#[test]
fn chains_of_any_length_leave_the_stack_whole() {
    let server = Running::new();
    for bytes in [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000] {
        for link in [
            "!",
            "- ",
            "1+",
            "1*",
            "true&&",
            "true||",
            "1=",
            "{}UNION",
            "OPTIONAL{}",
            "MINUS{}",
            "FILTER(1)",
            "a|",
            "a/",
            "^",
        ] {
            eprintln!("{link} {bytes}");
            let chain = link.repeat(bytes / link.len());
            let query = match link {
                "{}UNION" => format!("ASK {{ {chain} {{}} }}"),
                "OPTIONAL{}" | "MINUS{}" | "FILTER(1)" => format!("ASK {{ {chain} }}"),
                "a|" | "a/" | "^" => format!("ASK {{ ?s {chain}a ?o }}"),
                _ => format!("ASK {{ FILTER({chain}1) }}"),
            };
            let (status, text) = post(&server, &query);
            assert!(status != 500, "{link} {bytes}: {status} {text}");
        }
    }
    unharmed(&server);
}

#[test]
fn ten_thousand_values_are_answered() {
    let server = Running::new();
    let values: String = (0..10_000).map(|n| format!("<http://e/s{n}> ")).collect();
    let query = format!("SELECT ?o {{ VALUES ?s {{ {values} }} ?s <http://e/p> ?o }}");
    let (status, text) = post(&server, &query);
    assert_eq!(status, 200, "{text}");
    let rows = text.matches("\"uri\"").count();
    assert_eq!(rows, crate::client::TRIPLES);
    let values: String = (0..10_000).map(|n| format!("{n}, ")).collect();
    let (status, text) = post(&server, &format!("ASK {{ FILTER(9999 IN ({values} -1)) }}"));
    assert!(status == 200 && text.contains("true"), "{status} {text}");
    unharmed(&server);
}

#[test]
fn huge_literals_are_answered_or_refused() {
    let server = Running::new();
    let (status, text) = post(
        &server,
        &format!("SELECT (STRLEN(\"{}\") AS ?n) {{}}", "a".repeat(1 << 20)),
    );
    assert!(status == 200 && text.contains("1048576"), "{status}");
    let (status, text) = post(
        &server,
        &format!("ASK {{ ?s ?p \"{}\" }}", "a".repeat(8 << 20)),
    );
    assert!(status == 200 && text.contains("false"), "{status} {text}");
    let (status, _) = post(&server, &format!("ASK {{ ?s ?p {} }}", "9".repeat(1 << 20)));
    assert_eq!(status, 200);
    // A literal that grows by itself meets the memory of its query, or its time.
    let doubled: String = (0..60)
        .map(|n| format!("BIND(CONCAT(?x{n}, ?x{n}) AS ?x{})", n + 1))
        .collect();
    let query = format!("SELECT (STRLEN(?x60) AS ?n) {{ BIND(\"ab\" AS ?x0) {doubled} }}");
    let (status, text) = post(&server, &query);
    // 501 names the limit of one literal's length.
    assert_eq!(status, 501, "{text}");
    assert!(text.contains("CONCAT made more than"), "{text}");
    unharmed(&server);
}

#[test]
fn what_is_not_http_is_refused_or_dropped() {
    let server = Running::new();
    let many_headers = format!(
        "GET /health HTTP/1.1\r\n{}\r\n",
        (0..1000)
            .map(|n| format!("X-{n}: y\r\n"))
            .collect::<String>()
    );
    for bytes in [
        &b"\r\n\r\n"[..],
        b"nonsense\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /health HTTP/9.9\r\n\r\n",
        b"GET /query?query=%00%ff%zz HTTP/1.1\r\nHost: e\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"POST /query HTTP/1.1\r\nHost: e\r\nContent-Length: -5\r\n\r\n",
        b"POST /query HTTP/1.1\r\nHost: e\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"POST /query HTTP/1.1\r\nHost: e\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        b"POST /query HTTP/1.1\r\nHost: e\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /health HTTP/1.1\r\nbad header\r\n\r\n",
        b"GET /health HTTP/1.1\r\nA: \x00\r\n\r\n",
        many_headers.as_bytes(),
    ] {
        let mut connection = server.connect();
        connection.write(bytes);
        // The server may have closed the connection already, which is as good an answer.
        let _ = connection
            .reader
            .get_ref()
            .shutdown(std::net::Shutdown::Write);
        let mut said = Vec::new();
        // It may also be reset, as some of what was sent is never read.
        let read = connection.reader.read_to_end(&mut said);
        let said = String::from_utf8_lossy(&said);
        let refused = said.is_empty() || said.starts_with("HTTP/1.1 4");
        assert!(
            refused,
            "{read:?} {said} to {}",
            String::from_utf8_lossy(bytes)
        );
    }
    unharmed(&server);
}
