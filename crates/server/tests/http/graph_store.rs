//! Does the server keep the SPARQL 1.1 Graph Store HTTP Protocol, and does it describe itself?

use crate::client::{Answer, Running, TRIPLES};

const TURTLE: &str = "Content-Type: text/turtle\r\n";
const LINES: &str = "Accept: application/n-triples\r\n";
/// A graph of the server's own names, and the path at which it is.
const OWN: &str = "/store/people/1";

fn put(server: &Running, target: &str, body: &str) -> u16 {
    let answer = server.send("PUT", target, TURTLE, body);
    assert!(answer.status < 300, "{}", answer.text());
    answer.status
}

fn lines(server: &Running, target: &str) -> Vec<String> {
    let answer = server.get(target, LINES);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("content-type"), Some("application/n-triples"));
    let mut lines: Vec<_> = answer.text().lines().map(ToOwned::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn a_graph_is_the_same_by_parameter_and_by_its_own_url() {
    let server = Running::new();
    assert_eq!(put(&server, OWN, "<#me> <name> 'Ann' ."), 201);
    let line = "<http://e/store/people/1#me> <http://e/store/people/name> \"Ann\" .";
    let parameter = "/store?graph=http%3A%2F%2Fe%2Fstore%2Fpeople%2F1";
    assert_eq!(lines(&server, OWN), [line]);
    assert_eq!(lines(&server, parameter), [line]);
    assert_eq!(put(&server, parameter, "<#me> <name> 'Bob' ."), 204);
    assert_eq!(lines(&server, OWN), [line.replace("Ann", "Bob")]);
    let answer = server.send("POST", OWN, TURTLE, "<#me> <age> 7 .");
    assert_eq!(
        (answer.status, answer.header("jindou-inserted")),
        (204, Some("1"))
    );
    assert_eq!(lines(&server, OWN).len(), 2);
    assert_eq!(server.send("DELETE", OWN, "", "").status, 204);
    for answer in [
        server.get(OWN, ""),
        server.send("DELETE", parameter, "", ""),
        server.send("HEAD", OWN, "", ""),
    ] {
        assert_eq!(answer.status, 404);
    }
}

#[test]
fn the_default_graph_is_always_there() {
    let server = Running::new();
    assert_eq!(lines(&server, "/store?default").len(), TRIPLES + 3);
    assert_eq!(
        put(&server, "/store?default", "<http://e/a> <http://e/b> <c> ."),
        204
    );
    assert_eq!(
        lines(&server, "/store?default"),
        ["<http://e/a> <http://e/b> <http://e/c> ."]
    );
    assert_eq!(
        lines(&server, "/store?graph=http://e/g").len(),
        1,
        "others are left alone"
    );
    assert_eq!(server.send("DELETE", "/store?default", "", "").status, 204);
    assert!(lines(&server, "/store?default").is_empty());
}

#[test]
fn an_empty_graph_is_there_once_it_was_put() {
    let server = Running::new();
    let target = "/store?graph=urn:a%20empty";
    assert_eq!(server.get(target, "").status, 400, "a space is in no IRI");
    let target = "/store?graph=urn:a+empty";
    let put = |headers: &str| server.send("PUT", target, headers, "").status;
    assert_eq!(put(TURTLE), 201);
    assert_eq!(put(""), 204);
    assert!(lines(&server, target).is_empty());
    let head = server.send("HEAD", target, "Accept: application/rdf+xml\r\n", "");
    assert_eq!(
        (head.status, head.header("content-type")),
        (200, Some("application/rdf+xml"))
    );
}

#[test]
fn a_graph_without_a_name_is_given_one() {
    let server = Running::new();
    let create = || {
        let answer = server.send("POST", "/store", TURTLE, "<> <http://e/p> 1 .");
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer.header("location").expect("it is told").to_owned()
    };
    let (one, two) = (create(), create());
    assert_ne!(one, two);
    let path = one.strip_prefix("http://e").expect("it is of this server");
    let typed = "\"1\"^^<http://www.w3.org/2001/XMLSchema#integer>";
    assert_eq!(
        lines(&server, path),
        [format!("<{one}> <http://e/p> {typed} .")]
    );
}

#[test]
fn graphs_are_read_and_written_in_many_formats() {
    let server = Running::new();
    for (kind, body) in [
        ("application/n-triples", "<http://e/a> <http://e/p> \"x\" ."),
        ("application/n-quads", "<http://e/a> <http://e/p> \"x\" ."),
        ("application/trig", "{ <a> <p> 'x' }"),
        ("text/turtle; charset=UTF-8", "<a> <p> 'x' ."),
        (
            "application/ld+json",
            r#"{"@id": "http://e/a", "http://e/p": "x"}"#,
        ),
        (
            "application/rdf+xml",
            "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' \
          xmlns:e='http://e/'><rdf:Description rdf:about='a'><e:p>x</e:p></rdf:Description></rdf:RDF>",
        ),
    ] {
        let headers = format!("Content-Type: {kind}\r\n");
        let answer = server.send("PUT", "/store?graph=http://e/h", &headers, body);
        assert!(answer.status < 300, "{kind}: {}", answer.text());
        let line = "<http://e/a> <http://e/p> \"x\" .";
        assert_eq!(lines(&server, "/store?graph=http://e/h"), [line], "{kind}");
    }
    for kind in [
        "text/turtle",
        "application/rdf+xml",
        "application/ld+json",
        "application/n-quads",
    ] {
        let accept = format!("Accept: {kind}\r\n");
        let answer = server.get("/store?graph=http://e/h", &accept);
        let told = answer.header("content-type").expect("a type").to_owned();
        assert_eq!((answer.status, told.split(';').next()), (200, Some(kind)));
        let back = format!("Content-Type: {kind}\r\n");
        let answer = server.send("PUT", "/store?graph=http://e/i", &back, &answer.text());
        assert!(answer.status < 300, "{kind}: {}", answer.text());
        assert_eq!(lines(&server, "/store?graph=http://e/i").len(), 1, "{kind}");
    }
    assert_eq!(
        server.get("/store?default", "Accept: image/png\r\n").status,
        406
    );
}

#[test]
fn a_form_of_files_is_added_at_once() {
    let server = Running::new();
    let body = "--x\r\nContent-Disposition: form-data; name=\"a\"; filename=\"a.ttl\"\r\n\r\n\
                _:b <p> 1 .\r\n--x\r\nContent-Disposition: form-data; name=\"b\"\r\n\
                Content-Type: application/n-triples\r\n\r\n_:b <http://e/p> \"2\" .\r\n--x--\r\n";
    let kind = "Content-Type: multipart/form-data; boundary=x\r\n";
    let answer = server.send("POST", "/store?graph=http://e/h", kind, body);
    assert_eq!(answer.status, 201, "{}", answer.text());
    assert_eq!(
        answer.header("jindou-inserted"),
        Some("2"),
        "two blank nodes"
    );
}

#[test]
fn what_is_wrong_is_told_and_changes_nothing() {
    let server = Running::new();
    for (method, target, headers, body, status, told) in [
        (
            "PUT",
            "/store?graph=http://e/g",
            TURTLE,
            "<a> <b> .\n<c>",
            400,
            "line 1, column 9",
        ),
        (
            "PUT",
            "/store?graph=http://e/g",
            "Content-Type: application/trig\r\n",
            "<h> { <a> <b> 1 }",
            400,
            "dataset",
        ),
        (
            "PUT",
            "/store?graph=http://e/g",
            "Content-Type: text/html\r\n",
            "<p>",
            415,
            "text/turtle",
        ),
        (
            "PUT",
            "/store?graph=http://e/g",
            "",
            "hello",
            415,
            "Content-Type",
        ),
        (
            "PUT",
            "/store?graph=http://e/g",
            "Content-Type: multipart/form-data\r\n",
            "--x",
            400,
            "boundary",
        ),
        ("PUT", "/store", TURTLE, "", 400, "?graph=IRI"),
        ("PUT", "/store", "", "", 400, "?graph=IRI"),
        ("DELETE", "/store", "", "", 400, "CLEAR ALL"),
        ("GET", "/store?graph=a", "", "", 400, "absolute"),
        (
            "GET",
            "/store?graph=http://e/g&default",
            "",
            "",
            400,
            "one graph",
        ),
        (
            "GET",
            "/store/a?default",
            "",
            "",
            400,
            "names a graph itself",
        ),
        (
            "PATCH",
            "/store?default",
            "Content-Type: application/sparql-update\r\n",
            "CLEAR ALL",
            405,
            "PUT",
        ),
    ] {
        let answer = server.send(method, target, headers, body);
        let text = answer.text();
        assert_eq!(answer.status, status, "{method} {target}: {text}");
        assert!(text.contains(told), "{method} {target}: {text}");
    }
    assert_eq!(lines(&server, "/store?graph=http://e/g").len(), 1);
}

#[test]
fn large_graphs_stream() {
    let server = Running::new();
    let body: String = (0..40_000)
        .map(|n| format!("<http://e/s{n}> <http://e/p> \"{n}\" .\n"))
        .collect();
    assert_eq!(put(&server, "/store?graph=http://e/large", &body), 201);
    let answer = server.get("/store?graph=http://e/large", LINES);
    assert_eq!(answer.header("transfer-encoding"), Some("chunked"));
    assert!(answer.whole);
    assert_eq!(answer.text().lines().count(), 40_000);
}

const QUADS: &str = "Accept: application/n-quads\r\n";

/// The whole dataset, as sorted lines.
fn dataset(server: &Running) -> Vec<String> {
    let answer = server.get("/store", QUADS);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let mut lines: Vec<_> = answer.text().lines().map(ToOwned::to_owned).collect();
    lines.sort();
    lines
}

/// Sends a dataset; gives the quads inserted and deleted.
fn send_dataset(server: &Running, method: &str, kind: &str, body: &str) -> [u64; 2] {
    let answer = server.send(method, "/store", &format!("Content-Type: {kind}\r\n"), body);
    assert_eq!(answer.status, 204, "{}", answer.text());
    assert_eq!(answer.header("location"), None);
    ["jindou-inserted", "jindou-deleted"].map(|name| {
        answer
            .header(name)
            .expect("it is there")
            .parse()
            .expect("a number")
    })
}

#[test]
fn a_dataset_is_read_as_a_whole() {
    let server = Running::new();
    assert_eq!(dataset(&server).len(), TRIPLES + 4);
    let in_graph = |line: &String| line.ends_with("<http://e/g> .");
    assert_eq!(
        dataset(&server)
            .iter()
            .filter(|line| in_graph(line))
            .count(),
        1
    );
    for (accept, kind) in [
        ("", "application/trig"),
        ("Accept: */*\r\n", "application/trig"),
        (QUADS, "application/n-quads"),
        ("Accept: application/ld+json\r\n", "application/ld+json"),
        (
            "Accept: text/turtle,application/n-quads;q=0.1\r\n",
            "application/n-quads",
        ),
    ] {
        for method in ["GET", "HEAD"] {
            let answer = server.send(method, "/store", accept, "");
            let given = answer.header("content-type").expect("a type");
            assert_eq!((answer.status, given.split(';').next()), (200, Some(kind)));
        }
    }
    for method in ["GET", "HEAD"] {
        let turtle = server.send(method, "/store", "Accept: text/turtle\r\n", "");
        assert_eq!(turtle.status, 406, "it has no named graphs");
    }
}

#[test]
fn a_dataset_is_replaced_and_added_to_as_a_whole() {
    let server = Running::new();
    let before = server.get("/store", "").text();
    let held = (TRIPLES + 4) as u64;
    let put = "<http://e/a> <http://e/p> \"1\" <http://e/h> .\n<http://e/a> <http://e/p> \"2\" .\n";
    assert_eq!(
        send_dataset(&server, "PUT", "application/n-quads", put),
        [2, held]
    );
    let mut expected: Vec<&str> = put.lines().collect();
    expected.sort_unstable();
    assert_eq!(dataset(&server), expected);
    assert_eq!(
        server.get("/store?graph=http://e/g", "").status,
        404,
        "it is gone"
    );
    let post = "<a> <p> '3' . <http://e/h> { <a> <p> '1', '4' } _:g { <a> <p> '5' }";
    assert_eq!(
        send_dataset(&server, "POST", "application/trig", post),
        [3, 0]
    );
    assert_eq!(dataset(&server).len(), 5);
    assert_eq!(lines(&server, "/store?graph=http://e/h").len(), 2);
    assert!(dataset(&server).contains(&"<http://e/a> <http://e/p> \"3\" .".to_owned()));
    let json = r#"[{"@id": "http://e/a", "http://e/p": "6"},
        {"@id": "http://e/h", "@graph": [{"@id": "http://e/a", "http://e/p": "7"}]}]"#;
    assert_eq!(
        send_dataset(&server, "POST", "application/ld+json", json),
        [2, 0]
    );
    assert_eq!(lines(&server, "/store?graph=http://e/h").len(), 3);
    assert_eq!(
        send_dataset(&server, "PUT", "application/ld+json", json),
        [2, 7]
    );
    assert_eq!(
        send_dataset(&server, "POST", "application/trig", post),
        [4, 0]
    );
    // One that is wrong changes nothing.
    let kind = "Content-Type: application/trig\r\n";
    for method in ["PUT", "POST"] {
        let wrong = server.send(method, "/store", kind, "<a> <p> 7 . <g> { <a> <p> }");
        assert_eq!(wrong.status, 400, "{}", wrong.text());
    }
    assert_eq!(dataset(&server).len(), 6);
    // And what was read can be put back.
    assert_eq!(
        send_dataset(&server, "PUT", "application/trig", &before),
        [held, 6]
    );
    assert_eq!(dataset(&server).len() as u64, held);
    assert_eq!(
        send_dataset(&server, "PUT", "application/trig", ""),
        [0, held]
    );
    assert!(dataset(&server).is_empty());
}

#[test]
fn a_dataset_is_read_and_written_within_the_limits_of_queries() {
    let server = Running::with(|config| config.max_rows = Some(3));
    assert_ne!(server.get("/store", QUADS).status, 200);
    let server = Running::with(|config| config.read_only = true);
    let kind = "Content-Type: application/trig\r\n";
    for method in ["PUT", "POST"] {
        assert_eq!(server.send(method, "/store", kind, "").status, 403);
    }
    assert_eq!(dataset(&server).len(), TRIPLES + 4);
}

fn description(server: &Running, headers: &str) -> Answer {
    server.get("/query", headers)
}

#[test]
fn the_service_describes_itself_to_programs() {
    let server = Running::new();
    let text = description(&server, LINES).text();
    let sd = "<http://www.w3.org/ns/sparql-service-description#";
    for line in [
        format!("<http://e/query> {sd}endpoint> <http://e/query> ."),
        format!("<http://e/query> {sd}supportedLanguage> {sd}SPARQL11Query> ."),
        format!("<http://e/query> {sd}supportedLanguage> {sd}SPARQL11Update> ."),
        format!("{sd}resultFormat> <http://www.w3.org/ns/formats/SPARQL_Results_JSON> ."),
        format!("{sd}inputFormat> <http://www.w3.org/ns/formats/RDF_XML> ."),
    ] {
        assert!(text.contains(&line), "no {line} in\n{text}");
    }
    assert!(!text.contains("BasicFederatedQuery"), "it may call nobody");
    for kind in ["text/turtle", "application/rdf+xml", "application/ld+json"] {
        let answer = description(&server, &format!("Accept: {kind}\r\n"));
        let told = answer.header("content-type").expect("a type");
        assert_eq!((answer.status, told.split(';').next()), (200, Some(kind)));
    }
    let page = description(
        &server,
        "Accept: text/html,application/xml;q=0.9,*/*;q=0.8\r\n",
    );
    assert_eq!((page.status, page.header("location")), (303, Some("/")));
    assert_eq!(
        server.get("/query?timeout=1", "").status,
        400,
        "a query is missing"
    );
    let server = Running::with(|config| {
        config.services = jindou_engine::AddressPolicy::Any;
        config.public_url = Some("https://example.org/data/".to_owned());
    });
    let text = description(&server, LINES).text();
    assert!(text.contains("BasicFederatedQuery"));
    assert!(
        text.contains("endpoint> <https://example.org/data/query> ."),
        "{text}"
    );
}

/// Comunica takes the last of several endpoints for the one to ask.
#[test]
fn the_description_names_the_endpoint_that_was_asked_and_no_other() {
    let server = Running::new();
    let endpoint = "<http://www.w3.org/ns/sparql-service-description#endpoint>";
    for path in ["/", "/query", "/query/", "/sparql", "/sparql/", "/update"] {
        let text = server.get(path, LINES).text();
        let found: Vec<&str> = text.lines().filter(|l| l.contains(endpoint)).collect();
        let expected = [format!("<http://e{path}> {endpoint} <http://e{path}> .")];
        assert_eq!(found, expected, "{path}");
    }
}

#[test]
fn the_first_page_is_for_all_that_do_not_prefer_rdf() {
    let server = Running::new();
    for (accept, given) in [
        ("", "text/html"),
        ("Accept: */*\r\n", "text/html"),
        ("Accept: text/html,*/*;q=0.8\r\n", "text/html"),
        ("Accept: image/png\r\n", "text/html"),
        ("Accept: text/turtle\r\n", "text/turtle"),
        (
            "Accept: application/n-triples,text/html;q=0.2,*/*;q=0.1\r\n",
            "application/n-triples",
        ),
    ] {
        let answer = server.get("/", accept);
        let kind = answer.header("content-type").expect("a type");
        assert_eq!(
            (answer.status, kind.split(';').next()),
            (200, Some(given)),
            "{accept}"
        );
    }
}
