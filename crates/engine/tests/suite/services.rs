//! SERVICE against endpoints that are slow, wrong, endless or gone: what does the query say, and
//! what is sent to them?
//!
//! The endpoints are sockets on this machine that answer with prepared bytes.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use crate::endpoint::{Endpoint, LONG, response};

use jindou_engine::ingest::{Progress, Source};
use jindou_engine::{
    AddressPolicy, CancellationToken, Config, Database, EngineError, LoadOptions, QueryOptions,
    QueryResults, ServiceError,
};

const JSON: &str = "application/sparql-results+json";

/// The query that an endpoint was asked next.
fn query_of(endpoint: &Endpoint) -> String {
    let request = endpoint.request();
    let (_, form) = request.split_once("\r\n\r\n").expect("a body");
    decoded(form.strip_prefix("query=").expect("a form"))
}

fn decoded(form: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = form.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [rest.next().expect("a digit"), rest.next().expect("a digit")];
                let digits = std::str::from_utf8(&digits).expect("digits");
                u8::from_str_radix(digits, 16).expect("digits")
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).expect("a query is UTF-8")
}

/// Results in JSON; each row is a list of `name`, `type:value`.
fn json(names: &[&str], rows: &[&[(&str, &str)]]) -> String {
    let list: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    let cell = |(name, term): &(&str, &str)| {
        let (kind, value) = term.split_once(' ').expect("a kind and a value");
        format!("\"{name}\":{{\"type\":\"{kind}\",\"value\":\"{value}\"}}")
    };
    let row = |row: &&[(&str, &str)]| {
        let cells: Vec<String> = row.iter().map(cell).collect();
        format!("{{{}}}", cells.join(","))
    };
    let rows: Vec<String> = rows.iter().map(row).collect();
    format!(
        "{{\"head\":{{\"vars\":[{}]}},\"results\":{{\"bindings\":[{}]}}}}",
        list.join(","),
        rows.join(",")
    )
}

fn database(configure: impl FnOnce(&mut Config)) -> Database {
    let mut config = Config::default();
    configure(&mut config);
    let database = Database::with_config(config);
    let data = "@prefix : <http://e/> . :a :p 1 . :b :p 2 . _:c :p 3 . :a :at <http://e/none> .";
    let source = Source::bytes("data.ttl", data.as_bytes().to_vec());
    database
        .load(vec![source], &LoadOptions::default(), &Progress::default())
        .expect("the data loads");
    database
}

fn rows(database: &Database, query: &str) -> Result<Vec<String>, EngineError> {
    rows_with(database, query, QueryOptions::default())
}

fn rows_with(
    database: &Database,
    query: &str,
    options: QueryOptions,
) -> Result<Vec<String>, EngineError> {
    let text = format!("PREFIX : <http://e/> {query}");
    let QueryResults::Solutions(solutions) = database.query_with(&text, options)? else {
        panic!("no SELECT: {query}")
    };
    let names = solutions.variables().to_vec();
    let mut rows = Vec::new();
    for solution in solutions {
        let solution = solution?;
        let cell = |name: &String| solution.get(name).map_or("-".to_owned(), |t| t.to_string());
        let cells: Vec<String> = names.iter().map(cell).collect();
        rows.push(cells.join(" ").replace("http://e/", ""));
    }
    rows.sort();
    Ok(rows)
}

fn failure(database: &Database, query: &str) -> (String, ServiceError) {
    match rows(database, query) {
        Err(EngineError::Service { endpoint, source }) => (endpoint, source),
        other => panic!("{query}: {other:?}"),
    }
}

#[test]
fn values_of_the_rows_are_sent_and_answers_joined() {
    let answer = json(
        &["x", "n"],
        &[
            &[("n", "literal Ann"), ("x", "uri http://e/a")],
            &[("n", "literal Zoe"), ("x", "uri http://e/z")],
        ],
    );
    let endpoint = Endpoint::answering(&[response("200 OK", "", JSON, &answer)]);
    let query = format!(
        "SELECT ?x ?v ?n {{ ?x :p ?v SERVICE <{}> {{ ?x :name ?n }} }}",
        endpoint.at("/sparql")
    );
    let found = rows(&database(|_| {}), &query).expect("an answer");
    let integer = "<http://www.w3.org/2001/XMLSchema#integer>";
    assert_eq!(found, [format!("<a> \"1\"^^{integer} \"Ann\"")]);
    let sent = query_of(&endpoint);
    // Not the blank node, which the endpoint cannot know.
    let values = sent
        .strip_prefix("SELECT ?x ?n WHERE { VALUES ( ?x ) { ")
        .and_then(|rest| rest.strip_suffix(" } ?x <http://e/name> ?n . }"))
        .expect(&sent);
    let mut values: Vec<&str> = values.split(" ) ( ").collect();
    values.sort_unstable();
    assert_eq!(values.join(" "), "( <http://e/a> <http://e/b> )");
}

#[test]
fn blank_nodes_of_an_answer_are_the_same_within_it_only() {
    let body = json(
        &["x", "y"],
        &[
            &[("x", "bnode b"), ("y", "bnode b")],
            &[("x", "bnode b"), ("y", "bnode c")],
        ],
    );
    let responses = [
        response("200 OK", "", JSON, &body),
        response("200 OK", "", JSON, &body),
    ];
    let endpoint = Endpoint::answering(&responses);
    let iri = endpoint.at("/sparql");
    let same = format!("SELECT ?z {{ SERVICE <{iri}> {{ ?x :q ?y }} FILTER(?x = ?y) }}");
    assert_eq!(rows(&database(|_| {}), &same).expect("an answer"), ["-"]);
    let endpoint = Endpoint::answering(&responses);
    let iri = endpoint.at("/sparql");
    let two = format!(
        "SELECT ?x {{ SERVICE <{iri}> {{ ?x :q ?y }} {{ SELECT ?x {{ SERVICE <{iri}> \
         {{ ?x :r ?y }} }} }} }}"
    );
    assert_eq!(
        rows(&database(|_| {}), &two).expect("an answer"),
        [""; 0],
        "nodes of two answers are never the same"
    );
}

#[test]
fn xml_and_tables_are_read_too() {
    let xml = "<sparql xmlns=\"http://www.w3.org/2005/sparql-results#\"><head><variable \
               name=\"x\"/></head><results><result><binding name=\"x\"><literal \
               xml:lang=\"en\">one</literal></binding></result></results></sparql>";
    let cases = [
        ("application/sparql-results+xml", xml),
        (
            "text/tab-separated-values; charset=utf-8",
            "?x\n\"one\"@en\n",
        ),
    ];
    for (media_type, body) in cases {
        let endpoint = Endpoint::answering(&[response("200 OK", "", media_type, body)]);
        let query = format!(
            "SELECT ?x {{ SERVICE <{}> {{ :a :q ?x }} }}",
            endpoint.at("/sparql")
        );
        let found = rows(&database(|_| {}), &query).expect(media_type);
        assert_eq!(found, ["\"one\"@en"]);
    }
}

#[test]
fn an_error_is_told_with_its_beginning() {
    let long = "out of luck ".repeat(100);
    for (response, expected) in [
        (
            response("500 Internal Server Error", "", "text/plain", &long),
            "it answered with status 500: out of luck out of",
        ),
        (
            response("200 OK", "", "text/html", "<h1>Welcome</h1>"),
            "it answered with text/html, which is no format of SPARQL results that is read here: \
             <h1>Welcome</h1>",
        ),
        (
            response("200 OK", "", "text/csv", "x\r\n1\r\n"),
            "it answered with text/csv, which is no format",
        ),
        (
            response("200 OK", "", JSON, "{\"head\":{},\"boolean\":true}"),
            "a truth value where solutions were asked for",
        ),
        (
            response(
                "200 OK",
                "",
                JSON,
                "{\"head\":{\"vars\":[\"x\"]},\"results\":",
            ),
            "its answer is wrong",
        ),
        (
            response("200 OK", "", JSON, &json(&["x"], &[&[]])),
            "?x is unbound, where every solution binds it",
        ),
        (
            // Nothing marks the end of a table whose connection ends.
            "HTTP/1.1 200 OK\r\nContent-Type: text/tab-separated-values\r\n\
             Connection: close\r\n\r\n?x\n<http://e/a>\n"
                .to_owned(),
            "nothing tells where its table ends",
        ),
        (
            // The connection ends before the last chunk.
            "HTTP/1.1 200 OK\r\nContent-Type: text/tab-separated-values\r\n\
             Transfer-Encoding: chunked\r\n\r\n3\r\n?x\n\r\n"
                .to_owned(),
            "the connection broke",
        ),
    ] {
        let endpoint = Endpoint::answering(std::slice::from_ref(&response));
        let query = format!(
            "SELECT ?x {{ SERVICE <{}> {{ :a :q ?x }} }}",
            endpoint.at("/sparql")
        );
        let (named, error) = failure(&database(|_| {}), &query);
        assert_eq!(named, format!("<{}>", endpoint.at("/sparql")));
        assert!(error.to_string().contains(expected), "{error}");
        assert!(error.to_string().len() < 500, "{error}");
        // A silent one is as if nothing had been asked.
        let endpoint = Endpoint::answering(&[response]);
        let query = format!(
            "SELECT ?v ?x {{ :a :p ?v SERVICE SILENT <{}> {{ :a :q ?x }} }}",
            endpoint.at("/sparql")
        );
        let found = rows(&database(|_| {}), &query).expect("it is silent");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].ends_with(" -"), "{found:?}");
    }
}

/// An address that refuses connections.
fn closed() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    format!("http://{address}/")
}

#[test]
fn a_closed_port_is_unreachable_and_silence_keeps_the_rows() {
    let database = database(|_| {});
    let closed = closed();
    let (endpoint, error) = failure(
        &database,
        &format!("SELECT * {{ ?x :p ?v SERVICE <{closed}> {{ ?x :q ?y }} }}"),
    );
    assert_eq!(endpoint, format!("<{closed}>"));
    assert!(matches!(error, ServiceError::Unreachable { .. }), "{error}");
    for query in [
        "SELECT ?v { ?x :p ?v SERVICE SILENT <E> { ?x :q ?y } }",
        "SELECT ?v { ?x :p ?v OPTIONAL { SERVICE SILENT <E> { ?x :q ?y } } }",
        "SELECT ?v { SERVICE SILENT <E> { ?x :q ?y } ?x :p ?v }",
        "SELECT ?v { ?x :p ?v BIND(<E> AS ?e) SERVICE SILENT ?e { ?x :q ?y } }",
    ] {
        let found = rows(&database, &query.replace("<E>", &format!("<{closed}>")));
        assert_eq!(found.expect(query).len(), 3, "{query}");
    }
    // No rows, no call.
    let query = format!("SELECT * {{ ?x :none ?v SERVICE <{closed}> {{ ?x :q ?y }} }}");
    assert_eq!(rows(&database, &query).expect("no call"), [""; 0]);
}

#[test]
fn an_endpoint_in_a_variable_is_asked_once_for_its_rows() {
    let answer = |x: &str, n: &str| {
        let body = json(&["x", "n"], &[&[("x", x), ("n", n)]]);
        response("200 OK", "", JSON, &body)
    };
    let one = Endpoint::answering(&[answer("uri http://e/a", "literal one")]);
    let two = Endpoint::answering(&[answer("uri http://e/b", "literal two")]);
    let query = format!(
        "SELECT ?x ?n {{ VALUES (?x ?e) {{ (:a <{0}>) (:c <{0}>) (:b <{1}>) }} \
         SERVICE ?e {{ ?x :q ?n }} }}",
        one.at("/sparql"),
        two.at("/sparql")
    );
    let found = rows(&database(|_| {}), &query).expect("two answers");
    assert_eq!(found, ["<a> \"one\"", "<b> \"two\""]);
    let first = query_of(&one);
    assert!(
        first.contains("<http://e/a>") && first.contains("<http://e/c>"),
        "{first}"
    );
    assert!(!first.contains("<http://e/b>"), "{first}");
    assert!(query_of(&two).contains("( <http://e/b> )"));
}

#[test]
fn an_endpoint_must_be_bound_to_an_iri_of_http() {
    let database = database(|_| {});
    let (endpoint, error) = failure(&database, "SELECT * { SERVICE ?e { ?x :q ?y } }");
    assert_eq!((endpoint.as_str(), error), ("?e", ServiceError::Unbound));
    let (endpoint, error) = failure(&database, "SELECT * { ?x :p ?e SERVICE ?e { ?x :q ?y } }");
    assert!(endpoint.starts_with('"'), "{endpoint}");
    assert!(matches!(error, ServiceError::NoEndpoint { .. }), "{error}");
    let (_, error) = failure(
        &database,
        "SELECT * { SERVICE <file:///etc/passwd> { ?x :q ?y } }",
    );
    assert!(matches!(error, ServiceError::NoEndpoint { .. }), "{error}");
    for (query, count) in [
        ("SELECT * { SERVICE SILENT ?e { ?x :q ?y } }", 1),
        (
            "SELECT * { ?x :p ?v OPTIONAL { ?x :at ?e } SERVICE SILENT ?e { ?x :q ?y } }",
            3,
        ),
        ("SELECT * { ?x :p ?e SERVICE SILENT ?e { ?x :q ?y } }", 3),
    ] {
        let options = QueryOptions {
            services: Some(AddressPolicy::None),
            ..QueryOptions::default()
        };
        let found = rows_with(&database, query, options).expect(query);
        assert_eq!(found.len(), count, "{query}: {found:?}");
    }
}

/// Answers nothing, for as long as the client stays.
fn mute() -> Endpoint {
    Endpoint::new(vec![Box::new(|mut stream: TcpStream| {
        let mut byte = [0];
        // It ends, or fails, once the client has hung up.
        let _ended = stream.read(&mut byte);
    })])
}

#[test]
fn an_endpoint_that_never_answers_costs_no_more_than_its_time() {
    let endpoint = mute();
    let query = format!(
        "SELECT * {{ SERVICE <{}> {{ ?x :q ?y }} }}",
        endpoint.at("/sparql")
    );
    let limit = Duration::from_millis(200);
    let (_, error) = failure(&database(|config| config.service_timeout = limit), &query);
    assert_eq!(error, ServiceError::Timeout { limit });
    // Where the query has less time, it is the query that ends, silent or not.
    for silent in ["", "SILENT "] {
        let endpoint = mute();
        let options = QueryOptions {
            timeout: Some(limit),
            ..QueryOptions::default()
        };
        let query = format!(
            "SELECT * {{ SERVICE {silent}<{}> {{ ?x :q ?y }} }}",
            endpoint.at("/sparql")
        );
        let error = rows_with(&database(|_| {}), &query, options).expect_err("no time");
        assert!(matches!(error, EngineError::Timeout { .. }), "{error}");
    }
}

#[test]
fn cancelling_a_query_hangs_up() {
    let (sender, hung_up) = channel();
    let endpoint = Endpoint::new(vec![Box::new(move |mut stream: TcpStream| {
        stream
            .set_read_timeout(Some(LONG))
            .expect("a positive time");
        let ended = stream.read(&mut [0]);
        sender
            .send(ended.map_or(true, |count| count == 0))
            .expect("awaited");
    })]);
    let query = format!(
        "SELECT * {{ SERVICE SILENT <{}> {{ ?x :q ?y }} }}",
        endpoint.at("/sparql")
    );
    let token = CancellationToken::new();
    let options = QueryOptions {
        cancellation: Some(token.clone()),
        ..QueryOptions::default()
    };
    let running = std::thread::spawn(move || {
        rows_with(
            &database(|config| config.service_timeout = LONG),
            &query,
            options,
        )
    });
    query_of(&endpoint);
    let begin = Instant::now();
    token.cancel();
    let error = running.join().expect("no panic").expect_err("cancelled");
    assert!(matches!(error, EngineError::Cancelled), "{error}");
    assert!(hung_up.recv_timeout(LONG).expect("it hung up"));
    assert!(begin.elapsed() < LONG, "long before the call's own end");
}

/// An answer without end, until the client hangs up.
fn endless() -> Endpoint {
    Endpoint::new(vec![Box::new(|mut stream: TcpStream| {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {JSON}\r\nConnection: close\r\n\r\n\
             {{\"head\":{{\"vars\":[\"x\"]}},\"results\":{{\"bindings\":[\
             {{\"x\":{{\"type\":\"literal\",\"value\":\"1\"}}}}"
        );
        let more = ",{\"x\":{\"type\":\"literal\",\"value\":\"1\"}}".repeat(1000);
        let mut written = stream.write_all(head.as_bytes());
        while written.is_ok() {
            written = stream.write_all(more.as_bytes());
        }
    })])
}

#[test]
fn an_endless_answer_is_bounded() {
    let query = |endpoint: &Endpoint, silent: &str| {
        format!(
            "SELECT * {{ SERVICE {silent}<{}> {{ :a :q ?x }} }}",
            endpoint.at("/sparql")
        )
    };
    let bytes = 1 << 20;
    let small = database(|config| config.service_response_bytes = bytes);
    let endpoint = endless();
    match rows(&small, &query(&endpoint, "")) {
        Err(EngineError::Service { source, .. }) => {
            assert_eq!(source, ServiceError::TooLarge { limit_bytes: bytes });
        }
        other => panic!("{other:?}"),
    }
    let endpoint = endless();
    let silent = rows(&small, &query(&endpoint, "SILENT ")).expect("it is silent");
    assert_eq!(silent, ["-"]);
    // The query's own memory pays, too, and silence does not help.
    let poor = database(|config| config.query_memory_bytes = 1 << 20);
    for silent in ["", "SILENT "] {
        let endpoint = endless();
        let error = rows(&poor, &query(&endpoint, silent)).expect_err("too much");
        assert!(
            matches!(error, EngineError::MemoryExceeded { .. }),
            "{error}"
        );
    }
}

#[test]
fn only_what_the_policy_allows_is_called_redirections_included() {
    let body = json(&["x"], &[&[("x", "literal found")]]);
    let answer = response("200 OK", "", JSON, &body);
    let target = Endpoint::answering(&[answer.clone(), answer]);
    let moved = |status: &str| {
        let location = format!("Location: http://{}/other\r\n", target.address);
        Endpoint::answering(&[response(status, &location, "text/plain", "")])
    };
    let allowed = |endpoint: &Endpoint, more: &[&Endpoint]| {
        let prefixes = [endpoint].into_iter().chain(more.iter().copied());
        let prefix = |e: &Endpoint| format!("http://{}", e.address).parse().expect("a prefix");
        AddressPolicy::Allowed(prefixes.map(prefix).collect::<Vec<_>>().into())
    };
    let query = |iri: &str| format!("SELECT * {{ SERVICE <{iri}> {{ :a :q ?x }} }}");
    for status in ["307 Temporary Redirect", "301 Moved Permanently"] {
        let first = moved(status);
        let database = database(|config| config.services = allowed(&first, &[&target]));
        assert_eq!(
            rows(&database, &query(&first.at("/sparql"))).expect("both allowed"),
            ["\"found\""]
        );
        assert!(query_of(&target).contains("<http://e/q>"));
    }
    let first = moved("302 Found");
    let strict = database(|config| config.services = allowed(&first, &[]));
    let (_, error) = failure(&strict, &query(&first.at("/sparql")));
    assert!(
        error.to_string().contains("may not be called here"),
        "{error}"
    );
    let error = rows(&strict, &query(&target.at("/sparql"))).expect_err("not allowed");
    assert!(
        matches!(error, EngineError::ServiceNotAllowed { .. }),
        "{error}"
    );
    // A query may narrow what the database allows, and not widen it.
    let options = QueryOptions {
        services: Some(AddressPolicy::Any),
        ..QueryOptions::default()
    };
    let error =
        rows_with(&strict, &query(&target.at("/sparql")), options).expect_err("not allowed");
    assert!(
        matches!(error, EngineError::ServiceNotAllowed { .. }),
        "{error}"
    );
    assert!(target.asked.try_recv().is_err(), "it was never asked");
}

#[test]
fn a_loop_of_redirections_ends() {
    let here = response("302 Found", "Location: /sparql\r\n", "text/plain", "");
    let endpoint = Endpoint::answering(&vec![here; 6]);
    let (_, error) = failure(
        &database(|_| {}),
        &format!(
            "SELECT * {{ SERVICE <{}> {{ :a :q ?x }} }}",
            endpoint.at("/sparql")
        ),
    );
    assert!(
        error.to_string().contains("more than 5 redirections"),
        "{error}"
    );
}

#[test]
fn a_thread_that_must_not_wait_is_told_before_any_call() {
    let options = QueryOptions {
        must_not_wait: true,
        ..QueryOptions::default()
    };
    let query = "SELECT * { ?x :p ?v FILTER EXISTS { SERVICE <http://e/none> { ?x :q ?y } } }";
    let error = rows_with(&database(|_| {}), query, options.clone()).expect_err("it waits");
    assert!(matches!(error, EngineError::WouldWait), "{error}");
    assert!(rows_with(&database(|_| {}), "SELECT * { ?x :p ?v }", options).is_ok());
}

#[test]
fn a_service_in_exists_sees_the_values_of_the_row() {
    let found = json(
        &["y", "n"],
        &[&[("y", "uri http://e/y"), ("n", "literal 7")]],
    );
    let none = json(&["y", "n"], &[]);
    let endpoint = Endpoint::answering(&[
        response("200 OK", "", JSON, &found),
        response("200 OK", "", JSON, &none),
    ]);
    let query = format!(
        "SELECT ?x {{ ?x :p ?v FILTER(?v < 3) FILTER EXISTS {{ SERVICE <{}> {{ ?y :q ?n \
         OPTIONAL {{ ?y :r ?x }} FILTER(?n > ?v) }} }} }}",
        endpoint.at("/sparql")
    );
    let found = rows(&database(|_| {}), &query).expect("an answer");
    assert_eq!(found.len(), 1, "{found:?}");
    let mut sent = [query_of(&endpoint), query_of(&endpoint)];
    sent.sort();
    for (sent, (number, name)) in sent.iter().zip([(1, "a"), (2, "b")]) {
        let expected = format!(
            "{{ VALUES ?v {{ \"{number}\"^^<http://www.w3.org/2001/XMLSchema#integer> }} \
             ?y <http://e/q> ?n . OPTIONAL {{ VALUES ?x {{ <http://e/{name}> }} \
             ?y <http://e/r> ?x . }} FILTER((?n > ?v)) }}"
        );
        assert!(sent.contains(&expected), "{sent}");
    }
}

#[test]
fn many_rows_are_not_sent() {
    let mut data = String::new();
    for number in 0..17_000 {
        data.push_str(&format!(
            "<http://e/n{number}> <http://e/many> \"{number}\" .\n"
        ));
    }
    let database = database(|_| {});
    let source = Source::bytes("many.nt", data.into_bytes());
    database
        .load(vec![source], &LoadOptions::default(), &Progress::default())
        .expect("the data loads");
    let body = json(
        &["x", "n"],
        &[
            &[("x", "uri http://e/n16999"), ("n", "literal last")],
            &[("x", "uri http://e/elsewhere"), ("n", "literal no")],
        ],
    );
    let all = response("200 OK", "", JSON, &body);
    let endpoint = Endpoint::answering(std::slice::from_ref(&all));
    let query = |endpoint: &Endpoint, filter: &str| {
        format!(
            "SELECT ?v ?n {{ {{ SELECT * {{ ?x :many ?v {filter} }} LIMIT 100000 }} \
             SERVICE <{}> {{ ?x :name ?n }} }}",
            endpoint.at("/sparql")
        )
    };
    let found = rows(&database, &query(&endpoint, "")).expect("an answer");
    assert_eq!(found, ["\"16999\" \"last\""]);
    assert_eq!(
        query_of(&endpoint),
        "SELECT ?x ?n WHERE { ?x <http://e/name> ?n . }"
    );
    // Fewer go along, five hundred at a time.
    let endpoint = Endpoint::answering(&vec![all; 3]);
    let found = rows(&database, &query(&endpoint, "FILTER(STRSTARTS(?v, '16'))"));
    // The same answer comes each time here; an endpoint would heed the values.
    assert_eq!(found.expect("answers").len(), 3);
    let sent: Vec<usize> = (0..3)
        .map(|_| query_of(&endpoint).matches(" ) (").count() + 1)
        .collect();
    assert_eq!(sent, [500, 500, 111]);
}
