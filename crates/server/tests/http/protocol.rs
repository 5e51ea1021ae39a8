//! Requests and answers: methods, parameters, formats, errors.

use std::io::Read;
use std::time::Duration;

use jindou_server::Cors;
use serde_json::json;

use crate::client::{Running, TRIPLES, encode};

const AGE: &str = "SELECT ?age { <http://e/x> <http://e/age> ?age }";
const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";
const TEXT: &str = "Content-Type: application/sparql-query; charset=utf-8\r\n";

fn age() -> serde_json::Value {
    json!({"head": {"vars": ["age"]}, "results": {"bindings": [{"age": {
        "type": "literal", "value": "7", "datatype": "http://www.w3.org/2001/XMLSchema#integer"
    }}]}})
}

#[test]
fn a_query_is_answered_by_get_and_both_kinds_of_post() {
    let server = Running::new();
    let form = format!("query={}", encode(AGE));
    for path in ["/", "/query", "/update", "/sparql"] {
        for answer in [
            server.get(&format!("{path}?{form}"), ""),
            server.send("POST", path, FORM, &form),
            server.send("POST", path, TEXT, AGE),
        ] {
            assert_eq!(answer.status, 200, "{}", answer.text());
            assert_eq!(
                answer.header("content-type"),
                Some("application/sparql-results+json")
            );
            assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
            assert!(
                answer.header("content-length").is_some(),
                "sent in one piece"
            );
            assert_eq!(answer.json(), age());
        }
    }
}

#[test]
fn a_connection_takes_one_request_after_the_other() {
    let server = Running::new();
    let mut connection = server.connect();
    let target = format!("/query?query={}", encode(AGE));
    for _ in 0..3 {
        connection.send("GET", &target, "", "");
        assert_eq!(connection.answer("GET").json(), age());
    }
    // And several at once.
    for _ in 0..3 {
        connection.send("GET", &target, "", "");
    }
    for _ in 0..3 {
        assert_eq!(connection.answer("GET").json(), age());
    }
    // What is refused leaves the connection in order.
    connection.send("POST", "/query", TEXT, "nonsense");
    assert_eq!(connection.answer("POST").status, 400);
    connection.send("GET", &target, "", "");
    assert_eq!(connection.answer("GET").json(), age());
}

#[test]
fn accept_and_format_choose_the_form() {
    let server = Running::new();
    let ask = "ASK { <http://e/x> <http://e/age> 7 }";
    let construct = "CONSTRUCT { ?s <http://e/q> ?o } WHERE { ?s <http://e/age> ?o }";
    let seven = "\"7\"^^<http://www.w3.org/2001/XMLSchema#integer>";
    for (query, name, media_type, body) in [
        (AGE, "csv", "text/csv", "age\r\n7\r\n".to_owned()),
        (
            AGE,
            "tsv",
            "text/tab-separated-values",
            "?age\n7\n".to_owned(),
        ),
        (
            AGE,
            "table",
            "text/plain",
            " ?age\n------\n 7\n(1 row)\n".to_owned(),
        ),
        (ask, "csv", "text/csv", "true".to_owned()),
        (ask, "text", "text/boolean", "true".to_owned()),
        (
            ask,
            "json",
            "application/sparql-results+json",
            r#"{"head":{},"boolean":true}"#.to_owned(),
        ),
        (
            construct,
            "nt",
            "application/n-triples",
            format!("<http://e/x> <http://e/q> {seven} .\n"),
        ),
        (
            construct,
            "ttl",
            "text/turtle",
            "<http://e/x> <http://e/q> 7 .\n".to_owned(),
        ),
    ] {
        let target = format!("/query?query={}", encode(query));
        let accept = format!("Accept: image/png, {media_type};q=0.5\r\n");
        for answer in [
            server.get(&format!("{target}&format={name}"), ""),
            server.get(&format!("{target}&output={name}"), "Accept: image/png\r\n"),
            server.get(&target, &accept),
        ] {
            assert_eq!(answer.status, 200, "{}", answer.text());
            assert_eq!(answer.text(), body);
            let given = answer.header("content-type").unwrap();
            assert_eq!(given.split(';').next(), Some(media_type));
        }
    }
    for (query, format, begins) in [
        (AGE, "xml", "<?xml version=\"1.0\"?><sparql "),
        (construct, "rdf", "<?xml version=\"1.0\""),
        (construct, "jsonld", "["),
        (construct, "json", "["),
        (construct, "trig", "<http://e/x>"),
        (construct, "nq", "<http://e/x>"),
        (construct, "n3", "<http://e/x>"),
    ] {
        let answer = server.query(query, &format!("&format={format}"));
        assert_eq!(answer.status, 200, "{format}: {}", answer.text());
        assert!(
            answer.text().starts_with(begins),
            "{format}: {}",
            answer.text()
        );
    }
}

#[test]
fn what_cannot_be_had_is_not_acceptable_and_the_rest_is_listed() {
    let server = Running::new();
    let construct = "CONSTRUCT WHERE { ?s <http://e/age> ?o }";
    for (query, more, headers, listed) in [
        (AGE, "", "Accept: image/png\r\n", "text/csv"),
        (
            AGE,
            "",
            "Accept: image/*, text/turtle;q=0.9, */*;q=0\r\n",
            "text/csv",
        ),
        (
            AGE,
            "&format=ttl",
            "Accept: text/turtle\r\n",
            "application/vnd.apache.parquet",
        ),
        ("ASK {}", "", "Accept: text/turtle\r\n", "text/boolean"),
        (construct, "", "Accept: text/csv\r\n", "text/n3"),
    ] {
        let answer = server.get(&format!("/query?query={}{more}", encode(query)), headers);
        assert_eq!(answer.status, 406, "{query} {more} {headers}");
        assert!(answer.text().contains(listed), "{}", answer.text());
    }
    // XML has no U+0001, and no other value is put in its place.
    let answer = server.query("SELECT ?o { ?s <http://e/odd> ?o }", "&format=xml");
    assert_eq!(answer.status, 406);
    assert!(answer.text().contains("U+0001"), "{}", answer.text());
}

#[test]
fn the_first_format_that_fits_counts_and_none_that_does_not() {
    let server = Running::new();
    let construct = "CONSTRUCT WHERE { ?s <http://e/age> ?o }";
    for (query, more, headers, given) in [
        (
            AGE,
            "&format=json&output=json&results=json",
            "",
            "application/sparql-results+json",
        ),
        (
            AGE,
            "&format=xml&output=csv&format=json",
            "",
            "application/sparql-results+xml",
        ),
        (AGE, "&format=turtle&output=csv", "", "text/csv"),
        (AGE, "&results=tsv", "", "text/tab-separated-values"),
        // SPARQLWrapper says the same in three parameters, also what is of no use.
        (
            AGE,
            "&format=turtle&output=turtle&results=turtle",
            "Accept: */*\r\n",
            "application/sparql-results+json",
        ),
        (
            construct,
            "&format=tsv&output=tsv&results=tsv",
            "Accept: application/turtle,text/turtle,application/rdf+xml;q=0.5\r\n",
            "text/turtle",
        ),
        (
            construct,
            "&format=rdf+xml&output=rdf+xml&results=rdf+xml",
            "",
            "application/rdf+xml",
        ),
        (
            AGE,
            "&format=json-ld&output=json-ld&results=json-ld",
            "Accept: */*\r\n",
            "application/sparql-results+json",
        ),
        (
            AGE,
            "&format=nonsense&output=json-ld&results=csv",
            "",
            "text/csv",
        ),
        (construct, "&format=csv&output=ttl", "", "text/turtle"),
        (
            construct,
            "&format=application/rdf+xml",
            "",
            "application/rdf+xml",
        ),
    ] {
        let answer = server.get(&format!("/query?query={}{more}", encode(query)), headers);
        assert_eq!(answer.status, 200, "{query} {more}: {}", answer.text());
        let kind = answer.header("content-type").unwrap();
        assert_eq!(kind.split(';').next(), Some(given), "{query} {more}");
    }
}

/// Clients send what is of use to other servers, and say in `Accept` what they can read.
#[test]
fn a_format_that_does_not_fit_the_form_of_the_query_is_passed_over() {
    let server = Running::new();
    let construct = "CONSTRUCT WHERE { ?s <http://e/age> ?o }";
    let (json, csv) = ("application/sparql-results+json", "Accept: text/csv\r\n");
    for (query, more, headers, given) in [
        (AGE, "&format=foo", csv, "text/csv"),
        (AGE, "&format=foo&output=", "", json),
        (AGE, "&output=ttl", "", json),
        (AGE, "&format=foo&output=bar&results=%ff", csv, "text/csv"),
        (AGE, "&format=json&format=xml&output=xml", csv, json),
        (AGE, "&format=ttl&format=csv", "", "text/csv"),
        (AGE, "&format=text/turtle", "", json),
        ("ASK {}", "&format=parquet", "", json),
        (construct, "&format=csv", "", "text/turtle"),
        (
            construct,
            "&format=csv",
            "Accept: application/n-triples\r\n",
            "application/n-triples",
        ),
        (
            construct,
            "&format=json&format=turtle&output=turtle",
            "",
            "application/ld+json",
        ),
    ] {
        let form = format!("query={}{more}", encode(query));
        for answer in [
            server.get(&format!("/query?{form}"), headers),
            server.send("POST", "/query", &format!("{FORM}{headers}"), &form),
        ] {
            assert_eq!(answer.status, 200, "{query} {more}: {}", answer.text());
            let kind = answer.header("content-type").expect("a type");
            assert_eq!(kind.split(';').next(), Some(given), "{query} {more}");
        }
    }
}

#[test]
fn an_endpoint_may_be_named_with_a_slash_at_the_end() {
    let server = Running::new();
    for path in ["/query/", "/sparql/"] {
        let answer = server.get(&format!("{path}?query={}", encode(AGE)), "");
        assert_eq!(answer.json(), age(), "{path}");
    }
    let update = "CLEAR GRAPH <http://e/g>";
    let headers = "Content-Type: application/sparql-update\r\n";
    assert_eq!(server.send("POST", "/update/", headers, update).status, 204);
    assert_eq!(server.get("/health/", "").status, 200);
    assert_eq!(server.get("/query//", "").status, 404);
    // It is an endpoint of updates to those that may not send any, too.
    let server = Running::with(|config| config.read_only = true);
    assert_eq!(server.send("POST", "/update/", headers, update).status, 403);
}

#[test]
fn parameters_left_empty_are_as_if_they_were_not_there() {
    let server = Running::with(|config| config.max_timeout = Duration::from_secs(5));
    let more = "&default-graph-uri=&named-graph-uri=&timeout=&format=";
    assert_eq!(server.query(AGE, more).json(), age());
    assert_eq!(server.query(AGE, "&timeout=0").json(), age());
    assert_eq!(server.query(AGE, "&timeout=0ms&timeout=").json(), age());
    assert_eq!(server.query(AGE, "&timeout=-1").status, 400);
    let update = encode("CLEAR GRAPH <http://e/g>");
    let empty = "default-graph-uri=&named-graph-uri=&using-graph-uri=&using-named-graph-uri=";
    let body = format!("update={update}&timeout=0&{empty}");
    assert_eq!(server.send("POST", "/update", FORM, &body).status, 204);
}

#[test]
fn the_root_answers_queries_and_shows_the_page_without_one() {
    let server = Running::new();
    let form = format!("query={}", encode(AGE));
    assert_eq!(server.get(&format!("/?{form}"), "").json(), age());
    assert_eq!(server.send("POST", "/", FORM, &form).json(), age());
    assert_eq!(server.send("POST", "/", TEXT, AGE).json(), age());
    for target in ["/", "/?", "/?lang=en"] {
        assert!(
            server.get(target, "").text().contains("<textarea"),
            "{target}"
        );
    }
}

#[test]
fn a_byte_order_mark_is_skipped() {
    let server = Running::new();
    let marked = format!("\u{feff}{AGE}");
    assert_eq!(server.query(&marked, "").json(), age());
    assert_eq!(server.send("POST", "/query", TEXT, &marked).json(), age());
    let update = "Content-Type: application/sparql-update\r\n";
    let marked = "\u{feff}CLEAR GRAPH <http://e/g>";
    assert_eq!(server.send("POST", "/update", update, marked).status, 204);
    let wrong = server.send("POST", "/query", TEXT, "\u{feff}SELECT ?x { ?x <p ?y }");
    assert!(
        wrong.text().starts_with("line 1, column 16"),
        "{}",
        wrong.text()
    );
}

#[test]
fn what_is_wrong_is_a_document_for_those_who_ask() {
    let server = Running::new();
    let accept = "Accept: text/csv, application/problem+json;q=0.5\r\n";
    let query = encode("SELECT *\n{ ?s ?p ?o FILTR(?o) }");
    let answer = server.get(&format!("/query?query={query}"), accept);
    assert_eq!(answer.status, 400);
    assert_eq!(
        answer.header("content-type"),
        Some("application/problem+json")
    );
    let problem = answer.json();
    assert_eq!(problem["status"], 400);
    assert_eq!(
        (&problem["line"], &problem["column"]),
        (&2.into(), &12.into())
    );
    let detail = problem["detail"].as_str().expect("a detail");
    assert!(detail.starts_with("line 2, column 12: "), "{detail}");
    assert_eq!(problem["hint"], "did you mean FILTER?");
    // Documents and events as well, these without a column.
    let accept_problem = "Accept: application/problem+json\r\n";
    let stream = r#"{"iri":"http://e/s"}"#;
    let json = "Content-Type: application/json\r\n";
    assert!(server.send("PUT", "/streams/s", json, stream).status < 300);
    let turtle = "text/turtle";
    let tuples = "text/tab-separated-values";
    for (target, kind, body, column) in [
        ("/store?default", turtle, "<http://e/a>\n a .", Some(4)),
        (
            "/streams/s",
            tuples,
            "1\t<a:a> <a:b> 'c' .\n2 <a:a> <a:b> <a:c> .\n",
            None,
        ),
    ] {
        let headers = format!("{accept_problem}Content-Type: {kind}\r\n");
        let problem = server.send("POST", target, &headers, body).json();
        let place = (&problem["line"], &problem["column"]);
        assert_eq!(place, (&2.into(), &column.into()), "{problem}");
    }
    let absent = server.get("/nothing", accept).json();
    assert_eq!(
        (&absent["status"], &absent["line"]),
        (&404.into(), &serde_json::Value::Null)
    );
    // Others get a line.
    let line = server.query("SELCT", "").text();
    assert!(
        line.starts_with("line 1, column 1: ") && line.ends_with("; did you mean SELECT?\n"),
        "{line}"
    );
}

#[test]
fn people_get_the_page_and_programs_the_description_of_the_endpoint() {
    let server = Running::new();
    let html = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n";
    assert_eq!(server.get("/query", html).status, 303);
    for accept in [
        "Accept: application/n-triples,text/turtle;q=0.8,text/html;q=0.1\r\n",
        "Accept: text/html, application/n-triples\r\n",
        "Accept: application/n-triples, */*;q=0.1\r\n",
    ] {
        for (path, other) in [("query", "sparql"), ("sparql", "query")] {
            let answer = server.get(&format!("/{path}"), accept);
            assert_eq!(answer.status, 200, "{accept}");
            let text = answer.text();
            assert!(text.contains(&format!("<http://e/{path}>")), "{text}");
            assert!(!text.contains(&format!("<http://e/{other}>")), "{text}");
        }
    }
}

#[test]
fn a_page_changes_nothing_by_a_name_that_may_be_anothers() {
    let update = "Content-Type: application/sparql-update\r\n";
    let clear = |server: &Running, host: &str, origin: &str| {
        let headers = format!("Host: {host}\r\nOrigin: {origin}\r\n{update}");
        let told = server.send("POST", "/update", &headers, "CLEAR GRAPH <http://e/none2>");
        (told.status, told.text())
    };
    let any = |config: &mut jindou_server::ServerConfig| config.cors = Cors::Any;
    let server = Running::with(any);
    let (status, text) = clear(&server, "evil:7878", "http://evil:7878");
    assert_eq!(status, 403, "{text}");
    assert!(text.contains("--cors-origin"), "{text}");
    assert_eq!(clear(&server, "127.0.0.1:7878", "http://evil:7878").0, 403);
    assert_eq!(
        clear(&server, "127.0.0.1.evil.org", "http://127.0.0.1.evil.org").0,
        403
    );
    for own in [
        "127.0.0.1:7878",
        "localhost:7878",
        "[::1]:7878",
        "192.168.1.2",
    ] {
        let (status, text) = clear(&server, own, &format!("http://{own}"));
        assert_eq!(status, 404, "{own}: {text}");
    }
    let server = Running::with(|config| config.public_url = Some("https://db.example/".into()));
    assert_eq!(clear(&server, "db.example", "https://db.example").0, 404);
    assert_eq!(
        clear(&server, "db.example:80", "http://db.example:80").0,
        404
    );
    assert_eq!(clear(&server, "evil", "http://evil").0, 403);
}

#[test]
fn a_page_reads_nothing_of_a_local_server_by_a_name_that_may_be_anothers() {
    let server = Running::new();
    let target = format!("/query?query={}", encode(AGE));
    let browser = [
        "Origin: http://evil:7878\r\n",
        "Sec-Fetch-Site: same-origin\r\n",
        "Accept-Language: en\r\n",
        "User-Agent: Mozilla/5.0 (X11)\r\n",
    ];
    for headers in browser {
        let by = |host: &str| {
            let headers = format!("Host: {host}\r\n{headers}");
            server.get(&target, &headers).status
        };
        assert_eq!(by("evil:7878"), 403, "{headers}");
        assert_eq!(
            (by("127.0.0.1:7878"), by("localhost")),
            (200, 200),
            "{headers}"
        );
    }
    // Programs choose their names themselves.
    let plain = "Host: evil:7878\r\nUser-Agent: curl/8.0\r\nAccept: */*\r\n";
    assert_eq!(server.get(&target, plain).status, 200);
    let server = Running::with(|config| config.public_url = Some("http://db.example".into()));
    let named = format!("Host: db.example\r\n{}", browser[1]);
    assert_eq!(server.get(&target, &named).status, 200);
}

#[test]
fn any_page_may_read_by_default_only_what_listens_to_this_machine() {
    let origin = "Host: 127.0.0.1\r\nOrigin: https://a.example\r\n";
    let allowed = |server: &Running| {
        let answer = server.get("/health", origin);
        answer
            .header("access-control-allow-origin")
            .map(str::to_owned)
    };
    assert_eq!(allowed(&Running::new()).as_deref(), Some("*"));
}

#[test]
fn wrong_requests_are_told_what_is_wrong() {
    let server = Running::new();
    let query = format!("query={}", encode(AGE));
    for (method, target, headers, body, status, told) in [
        (
            "GET",
            format!("/query?{query}&{query}"),
            "",
            "",
            400,
            "more than once",
        ),
        (
            "POST",
            format!("/query?{query}"),
            TEXT,
            AGE,
            400,
            "in the URL and in the body",
        ),
        (
            "POST",
            format!("/query?{query}"),
            FORM,
            &query,
            400,
            "more than once",
        ),
        (
            "POST",
            "/query".to_owned(),
            FORM,
            "a=b",
            400,
            "query is missing",
        ),
        (
            "GET",
            "/query?query=%ff".to_owned(),
            "",
            "",
            400,
            "badly encoded",
        ),
        (
            "GET",
            format!("/query?{query}&timeout=soon"),
            "",
            "",
            400,
            "timeout",
        ),
        (
            "GET",
            format!("/query?{query}&default-graph-uri=here"),
            "",
            "",
            400,
            "absolute IRI",
        ),
        (
            "POST",
            "/query".to_owned(),
            "",
            AGE,
            415,
            "application/sparql-query",
        ),
        (
            "POST",
            "/query".to_owned(),
            "Content-Type: text/plain\r\n",
            AGE,
            415,
            "form-urlencoded",
        ),
        ("DELETE", "/query".to_owned(), "", "", 405, "POST"),
        ("POST", "/health".to_owned(), TEXT, AGE, 405, "GET"),
        (
            "GET",
            "/update?update=CLEAR+ALL".to_owned(),
            "",
            "",
            405,
            "POST",
        ),
        ("GET", "/?update=CLEAR+ALL".to_owned(), "", "", 405, "POST"),
        ("DELETE", "/update".to_owned(), "", "", 405, "POST"),
        ("GET", "/nowhere".to_owned(), "", "", 404, "/query"),
    ] {
        let answer = server.send(method, &target, headers, body);
        let text = answer.text();
        assert_eq!(answer.status, status, "{method} {target}: {text}");
        assert!(text.contains(told), "{method} {target}: {text}");
        assert_eq!(text.matches('\n').count(), 1, "one line: {text}");
        assert_eq!(answer.header("allow").is_some(), status == 405);
    }
}

#[test]
fn wrong_queries_are_told_where_and_lacking_features_by_name() {
    let server = Running::new();
    let answer = server.query("SELECT ?x\nWHERE { ?x <p ?y }", "");
    assert_eq!(answer.status, 400);
    assert!(
        answer.text().starts_with("line 2, column "),
        "{}",
        answer.text()
    );
    assert_eq!(
        answer.header("content-type"),
        Some("text/plain; charset=utf-8")
    );

    let answer = server.query("SELECT (LANGDIR(?o) AS ?d) { ?s ?p ?o }", "");
    assert_eq!(answer.status, 501);
    let said = "not supported: LANGDIR (line 1, column 9)\n";
    assert_eq!(answer.text(), said);
}

#[test]
fn a_lacking_feature_has_its_place_in_a_problem_document() {
    let server = Running::new();
    let accept = "Accept: application/problem+json\r\n";
    let sparql = |kind| format!("Content-Type: application/sparql-{kind}\r\n{accept}");
    for (path, kind, text, place) in [
        (
            "/query",
            "query",
            "SELECT\n(LANGDIR(?o) AS ?d) { ?s ?p ?o }",
            (2, 2),
        ),
        ("/update", "update", "CLEAR ALL ;\nLOAD <urn:a:b>", (2, 6)),
    ] {
        let answer = server.send("POST", path, &sparql(kind), text);
        assert_eq!(answer.status, 501, "{}", answer.text());
        let problem = answer.json();
        assert_eq!(
            (&problem["line"], &problem["column"]),
            (&place.0.into(), &place.1.into()),
            "{problem}"
        );
    }
}

#[test]
fn an_update_is_executed_at_every_endpoint() {
    let server = Running::new();
    let text = "Content-Type: application/sparql-update; charset=UTF-8\r\n";
    for (number, path) in ["/", "/query", "/update", "/sparql", "/sparql/"]
        .into_iter()
        .enumerate()
    {
        let insert = |object| format!("INSERT DATA {{ <s> <http://e/{number}> '{object}' }}");
        let form = format!("update={}&format=json&output=json", encode(&insert("form")));
        for answer in [
            server.send("POST", path, text, &insert("text")),
            server.send("POST", path, FORM, &form),
        ] {
            assert_eq!(answer.status, 204, "{path}: {}", answer.text());
            assert_eq!(answer.header("jindou-inserted"), Some("1"), "{path}");
        }
        let found = format!("SELECT ?o {{ ?s <http://e/{number}> ?o }} ORDER BY ?o");
        let answer = server.query(&found, "&format=csv");
        assert_eq!(answer.text(), "o\r\nform\r\ntext\r\n", "{path}");
    }
    let server = Running::with(|config| config.read_only = true);
    for path in ["/", "/query", "/update", "/sparql"] {
        let refused = server.send("POST", path, FORM, "update=CLEAR+ALL");
        assert_eq!(refused.status, 403, "{path}");
        assert_eq!(server.send("POST", path, text, "CLEAR ALL").status, 403);
    }
    assert!(server.query(AGE, "").json() == age());
}

#[test]
fn an_update_as_a_query_is_told_how_to_be_sent() {
    let server = Running::new();
    for query in ["CLEAR ALL", "PREFIX : <http://e/> INSERT DATA { :a :b 1"] {
        let answer = server.query(query, "");
        assert_eq!(answer.status, 400);
        let said = answer.text();
        assert!(said.contains("application/sparql-update"), "{said}");
    }
    let told = server.query("CLEAR ALL", "").text();
    assert!(told.contains("this is an update"), "{told}");
}

#[test]
fn the_protocol_names_the_dataset() {
    let server = Running::new();
    let graph = encode("http://e/g");
    let objects = "SELECT ?o { ?s <http://e/in> ?o }";
    assert_eq!(server.query(objects, "&format=csv").text(), "o\r\n");
    let more = format!("&format=csv&default-graph-uri={graph}");
    assert_eq!(server.query(objects, &more).text(), "o\r\ngraph\r\n");
    let more = "&format=csv&union-default-graph=true";
    assert_eq!(server.query(objects, more).text(), "o\r\ngraph\r\n");
    assert_eq!(
        server.query(objects, "&union-default-graph=perhaps").status,
        400
    );
    let graphs = "SELECT ?g { GRAPH ?g { ?s <http://e/in> ?o } }";
    let more = format!("&format=csv&named-graph-uri=http://e/none&named-graph-uri={graph}");
    assert_eq!(server.query(graphs, &more).text(), "g\r\nhttp://e/g\r\n");
    let body = format!("query={}&default-graph-uri={graph}", encode(graphs));
    let answer = server.send("POST", "/query?format=csv", FORM, &body);
    assert_eq!(
        answer.text(),
        "g\r\n",
        "the dataset has no named graph then"
    );
}

#[test]
fn relative_iris_are_resolved_against_the_endpoint() {
    let server = Running::new();
    for path in ["/query", "/sparql"] {
        let ask =
            format!("ASK {{ FILTER(STR(<>) = 'http://e{path}' && STR(<s>) = 'http://e/s') }}");
        let answer = server.get(&format!("{path}?query={}", encode(&ask)), "");
        assert_eq!(
            (answer.status, answer.text().contains("true")),
            (200, true),
            "{path}"
        );
    }
    let answer = server.query("SELECT * { <s0> <p> ?o }", "&explain=true");
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(
        server
            .query("BASE <http://e/> ASK { <s0> <p> <o0> }", "")
            .json()["boolean"],
        true
    );
}

#[test]
fn explain_and_profile_are_given_where_they_can_be() {
    let server = Running::new();
    let answer = server.query(AGE, "&explain=true");
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    assert!(!answer.body.is_empty());
    assert_eq!(server.query("SELECT", "&explain=true").status, 400);
    assert_eq!(server.query(AGE, "&threads=1").status, 200);
    let refused = server.query(AGE, "&threads=0");
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("threads"), "{}", refused.text());

    let answer = server.query(AGE, "&profile=true").json();
    assert_eq!(answer["results"], age()["results"]);
    assert!(!answer["profile"].as_str().expect("a string").is_empty());
    assert!(
        server
            .query(AGE, "&profile=false")
            .json()
            .get("profile")
            .is_none()
    );
    for (query, more) in [
        (AGE, "&format=csv"),
        ("ASK {}", ""),
        ("CONSTRUCT WHERE {}", ""),
    ] {
        let answer = server.query(query, &format!("&profile=true{more}"));
        assert_eq!(answer.status, 400, "{query}");
        assert!(
            answer.text().to_lowercase().contains("json"),
            "{}",
            answer.text()
        );
    }
}

#[test]
fn head_is_get_without_the_body_and_options_tell_the_methods() {
    let server = Running::new();
    let mut connection = server.connect();
    let target = format!("/query?query={}", encode(AGE));
    for path in [&*target, "/health", "/"] {
        connection.send("GET", path, "", "");
        let get = connection.answer("GET");
        connection.send("HEAD", path, "", "");
        let head = connection.answer("HEAD");
        assert_eq!((head.status, get.status), (200, 200));
        assert_eq!(head.header("content-type"), get.header("content-type"));
        assert_eq!(head.header("content-length"), get.header("content-length"));
    }
    connection.send("OPTIONS", "/query", "", "");
    let answer = connection.answer("OPTIONS");
    assert_eq!(answer.status, 204);
    assert_eq!(answer.header("allow"), Some("GET, HEAD, POST, OPTIONS"));

    let preflight = "Host: localhost\r\nOrigin: https://a.example\r\nAccess-Control-Request-Method: POST\r\n\
                     Access-Control-Request-Headers: content-type\r\n";
    connection.send("OPTIONS", "/query", preflight, "");
    let answer = connection.answer("OPTIONS");
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    assert!(
        answer
            .header("access-control-allow-methods")
            .unwrap()
            .contains("POST")
    );
    assert_eq!(
        answer.header("access-control-allow-headers"),
        Some("content-type")
    );
}

#[test]
fn other_origins_read_answers_only_as_configured() {
    let origin = |name: &str| format!("Host: localhost\r\nOrigin: https://{name}.example\r\n");
    let allowed = |server: &Running, name: &str| {
        let answer = server.get("/health", &origin(name));
        answer
            .header("access-control-allow-origin")
            .map(str::to_owned)
    };
    let server = Running::with(|config| {
        config.cors = Cors::Origins(vec!["https://a.example".into()]);
    });
    assert_eq!(allowed(&server, "a").as_deref(), Some("https://a.example"));
    assert_eq!(allowed(&server, "b"), None);
    let server = Running::with(|config| config.cors = Cors::None);
    assert_eq!(allowed(&server, "a"), None);
}

/// A page that may read anything may change nothing; but it may read why.
#[test]
fn a_page_may_read_why_it_may_not_write() {
    let origin = "Host: 127.0.0.1:7878\r\nOrigin: https://a.example\r\n";
    let update = format!("{origin}Content-Type: application/sparql-update\r\n");
    let form = format!("{origin}{FORM}");
    let turtle = format!("{origin}Content-Type: text/turtle\r\n");
    let clear = "CLEAR GRAPH <http://e/g>";
    let encoded = format!("update={}", encode(clear));
    let server = Running::new();
    for (method, path, headers, body) in [
        ("POST", "/update", &update, clear),
        ("POST", "/query", &update, clear),
        ("POST", "/update", &form, &encoded),
        ("POST", "/", &form, &encoded),
        ("PUT", "/store?graph=http://e/g", &turtle, ""),
        ("DELETE", "/store?graph=http://e/g", &turtle, ""),
        ("PUT", "/streams/s", &turtle, ""),
    ] {
        let preflight = format!("{origin}Access-Control-Request-Method: {method}\r\n");
        let may = server.send("OPTIONS", path, &preflight, "");
        let refused = server.send(method, path, headers, body);
        for answer in [&may, &refused] {
            let allowed = answer.header("access-control-allow-origin");
            assert_eq!(allowed, Some("*"), "{method} {path}");
        }
        assert_eq!((may.status, refused.status), (204, 403), "{method} {path}");
        let said = refused.text();
        assert!(said.contains("--cors-origin"), "{said}");
    }
    assert_eq!(server.get("/store?graph=http://e/g", "").status, 200);
    let list = server.send("GET", "/queries", origin, "");
    assert_eq!(list.header("access-control-allow-origin"), None);
    let server = Running::with(|config| {
        config.cors = Cors::Origins(vec!["https://a.example".into()]);
    });
    let done = server.send("POST", "/update", &update, clear);
    let own = done.header("access-control-allow-origin");
    assert_eq!((done.status, own), (204, Some("https://a.example")));
}

#[test]
fn large_answers_are_compressed_for_those_who_accept_it() {
    let server = Running::new();
    let all = format!(
        "/query?format=csv&query={}",
        encode("SELECT * { ?s <http://e/p> ?o }")
    );
    let product = "SELECT * { ?s <http://e/p> ?o . ?t <http://e/p> ?u }";
    let streamed = format!("/query?format=csv&query={}", encode(product));
    for target in [all, streamed] {
        let plain = server.get(&target, "Accept-Encoding: gzip;q=0, br\r\n");
        assert_eq!(plain.header("content-encoding"), None);
        let packed = server.get(&target, "Accept-Encoding: br, gzip\r\n");
        assert_eq!(packed.header("content-encoding"), Some("gzip"));
        assert!(packed.whole && packed.body.len() < plain.body.len() / 2);
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(&*packed.body)
            .read_to_end(&mut unpacked)
            .unwrap();
        let sorted = |bytes: &[u8]| {
            let mut lines: Vec<_> = bytes.split(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
            lines.sort();
            lines
        };
        assert!(sorted(&unpacked) == sorted(&plain.body));
    }
    let small = format!("/query?query={}", encode(AGE));
    let answer = server.get(&small, "Accept-Encoding: gzip\r\n");
    assert_eq!(answer.header("content-encoding"), None);
    let server = Running::with(|config| config.gzip = false);
    let all = format!("/query?query={}", encode("SELECT * { ?s <http://e/p> ?o }"));
    assert_eq!(
        server
            .get(&all, "Accept-Encoding: gzip\r\n")
            .header("content-encoding"),
        None
    );
}

#[test]
fn page_health_and_metrics_are_there() {
    let server = Running::new();
    let page = server.get("/", "");
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert!(page.text().contains("<textarea"));
    assert_eq!(server.get("/health", "").json(), json!({"status": "ok"}));

    server.query(AGE, "");
    server.query("nonsense", "");
    let text = server.get("/metrics", "").text();
    for line in [
        "jindou_queries_total{status=\"ok\"} 1",
        "jindou_queries_total{status=\"refused\"} 1",
        "jindou_query_duration_seconds_count 2",
        "jindou_queries_in_flight 0",
        "jindou_rows_total 1",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
    }
    let triples = text
        .lines()
        .find_map(|l| l.strip_prefix("jindou_triples{graph=\"default\"} "))
        .unwrap();
    assert!(triples.parse::<usize>().unwrap() >= TRIPLES);
    for line in [
        "jindou_triples{graph=\"http://e/g\"} 1",
        "jindou_triples{graph=\"other\"} 0",
        "jindou_responses_total{code=\"400\"} 1",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
    }
}

#[test]
fn a_request_says_once_for_which_server_it_is() {
    let server = Running::new();
    let target = format!("/query?query={}", encode(AGE));
    let status = |headers: &str| server.get(&target, headers).status;
    let (own, other) = ("Host: 127.0.0.1\r\n", "Host: evil.example\r\n");
    assert_eq!(status(own), 200);
    assert_eq!(status(&format!("{own}{other}")), 400);
    let origins = "Origin: http://127.0.0.1\r\nOrigin: http://evil.example\r\n";
    assert_eq!(status(&format!("{own}{origins}")), 400);
    let mut connection = server.connect();
    connection.write(format!("GET {target} HTTP/1.1\r\n\r\n").as_bytes());
    assert_eq!(connection.head().status, 400);
    let mut connection = server.connect();
    connection.write(format!("GET {target} HTTP/1.0\r\n\r\n").as_bytes());
    assert_eq!(connection.head().status, 200);
}
