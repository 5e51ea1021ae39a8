//! LOAD of documents of the web that are compressed, moved, cut short, endless or gone: what is in
//! the graph then, and what does the update say?

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::endpoint::{Endpoint, LONG, response};
use jindou_engine::{
    AddressPolicy, CancellationToken, Config, Database, EngineError, QueryResults, UpdateOptions,
    WebError,
};

const TURTLE: &str = "text/turtle; charset=utf-8";

fn database(configure: impl FnOnce(&mut Config)) -> Database {
    let mut config = Config::default();
    configure(&mut config);
    Database::with_config(config)
}

fn ask(database: &Database, pattern: &str) -> bool {
    match database.query(&format!("ASK {{ {pattern} }}")) {
        Ok(QueryResults::Boolean(answer)) => answer,
        other => panic!("{pattern}: {:?}", other.err()),
    }
}

fn load(iri: &str) -> String {
    format!("LOAD <{iri}>")
}

/// Why the document of an update could not be had.
fn trouble(database: &Database, update: &str) -> WebError {
    match database.update(update) {
        Err(EngineError::Document { source, .. }) => source,
        other => panic!("{update}: {other:?}"),
    }
}

#[test]
fn a_document_is_read_by_its_media_type_or_its_name() {
    let turtle = "<#a> <p> 1 .";
    let xml = "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/'>\
               <rdf:Description rdf:about='http://e/s'><e:p>1</e:p></rdf:Description></rdf:RDF>";
    let triples = "<http://e/s> <http://e/p> \"1\" .\n";
    for (path, media_type, body, expected) in [
        ("/a", TURTLE, turtle, "<@/a#a> <@/p> 1"),
        ("/x/a.nt", TURTLE, turtle, "<@/x/a.nt#a> <@/x/p> 1"),
        ("/a.ttl", "text/plain", turtle, "<@/a.ttl#a> <@/p> 1"),
        ("/a.ttl?v=1", "application/octet-stream", turtle, "?s ?p 1"),
        ("/a", "text/plain", triples, "<http://e/s> <http://e/p> '1'"),
        (
            "/a.xml",
            "application/xml",
            xml,
            "<http://e/s> <http://e/p> '1'",
        ),
        (
            "/a",
            "application/rdf+xml",
            xml,
            "<http://e/s> <http://e/p> '1'",
        ),
        (
            "/a.nt",
            "text/xml",
            triples,
            "<http://e/s> <http://e/p> '1'",
        ),
        (
            "/a",
            "application/ld+json",
            "{\"@id\":\"#a\",\"http://e/p\":1}",
            "<@/a#a> ?p 1",
        ),
    ] {
        let server = Endpoint::answering(&[response("200 OK", "", media_type, body)]);
        let database = database(|_| {});
        let report = database.update(&load(&server.at(path))).expect(path);
        assert_eq!(report.inserted, 1, "{path}");
        let expected = expected.replace('@', &server.at(""));
        assert!(ask(&database, &expected), "{path} {media_type}: {expected}");
        let request = server.request();
        assert!(
            request.starts_with(&format!("GET {path} HTTP/1.1\r\n")),
            "{request}"
        );
        assert!(
            request.to_ascii_lowercase().contains("accept: text/turtle"),
            "{request}"
        );
    }
}

#[test]
fn a_compressed_document_is_unpacked() {
    let mut packed = Vec::new();
    let text = b"<http://e/s> <http://e/p> \"1\" .\n";
    zstd::stream::copy_encode(&text[..], &mut packed, 1).expect("it is packed");
    let server = Endpoint::new(vec![Box::new(move |mut stream: TcpStream| {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/zstd\r\nContent-Length: {}\r\n\r\n",
            packed.len()
        );
        stream.write_all(head.as_bytes()).expect("the client reads");
        stream.write_all(&packed).expect("the client reads");
    })]);
    let database = database(|_| {});
    database
        .update(&load(&server.at("/data.nt.zst")))
        .expect("it is loaded");
    assert!(ask(&database, "<http://e/s> <http://e/p> '1'"));
}

#[test]
fn the_last_address_is_the_base_and_the_graph_is_the_named_one() {
    let target = Endpoint::answering(&[response("200 OK", "", TURTLE, "<a> <p> <> .")]);
    let location = format!("Location: {}\r\n", target.at("/there/b"));
    let first = Endpoint::answering(&[response("303 See Other", &location, "text/plain", "")]);
    let database = database(|_| {});
    let update = format!("LOAD <{}> INTO GRAPH <http://e/g>", first.at("/here"));
    database.update(&update).expect("it is loaded");
    let (there, itself) = (target.at("/there/"), target.at("/there/b"));
    let pattern = format!("GRAPH <http://e/g> {{ <{there}a> <{there}p> <{itself}> }}");
    assert!(ask(&database, &pattern), "{pattern}");
    assert!(!ask(&database, "?s ?p ?o"), "nothing in the default graph");
}

#[test]
fn what_cannot_be_had_changes_nothing_and_silence_passes_over_it() {
    let closed = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let nobody = format!("http://{}/a.ttl", closed.local_addr().expect("it is bound"));
    drop(closed);
    type Check = fn(&WebError) -> bool;
    let cases: [(String, Check); 5] = [
        (
            response("404 Not Found", "", "text/html", "no such\n<b>page</b>"),
            |e| matches!(e, WebError::Status { status: 404, body } if body.contains("no such <b>")),
        ),
        (
            response("200 OK", "", "text/html", "<html>"),
            |e| matches!(e, WebError::MediaType { found, .. } if found == "text/html"),
        ),
        (
            response("302 Found", "Location: file:///etc/passwd\r\n", TURTLE, ""),
            |e| matches!(e, WebError::NoAddress { .. }),
        ),
        (response("302 Found", "", TURTLE, ""), |e| {
            matches!(e, WebError::Malformed { .. })
        }),
        (
            // Half of what it says it has.
            response("200 OK", "", TURTLE, "<#a> <#p> 1 . <#b> <#p> 2 .")
                .replace("<#b> <#p> 2 .", ""),
            |e| matches!(e, WebError::Unreachable { .. }),
        ),
    ];
    for (answer, is_right) in cases {
        let server = Endpoint::answering(&[answer.clone(), answer.clone()]);
        let database = database(|_| {});
        let update = |silent: &str| {
            let iri = server.at("/a");
            format!("INSERT DATA {{ <http://e/x> <http://e/p> 0 }}; LOAD {silent} <{iri}>")
        };
        let error = trouble(&database, &update(""));
        assert!(is_right(&error), "{answer}: {error:?}");
        assert!(!ask(&database, "?s ?p ?o"), "{answer}");
        let report = database.update(&update("SILENT")).expect("it is silent");
        assert_eq!(report.inserted, 1, "{answer}");
    }
    let error = trouble(&database(|_| {}), &load(&nobody));
    assert!(matches!(error, WebError::Unreachable { .. }), "{error}");
}

#[test]
fn a_document_with_a_mistake_tells_its_line() {
    let body = "<#a> <#p> 1 .\n<#a> <#p> nonsense .";
    let server = Endpoint::answering(&[response("200 OK", "", TURTLE, body)]);
    let database = database(|_| {});
    let error = database
        .update(&load(&server.at("/a")))
        .expect_err("a mistake");
    let told = error.to_string();
    assert!(matches!(error, EngineError::Ingest(_)), "{told}");
    assert!(told.contains('2'), "the line is told: {told}");
    assert!(!ask(&database, "?s ?p ?o"));
}

#[test]
fn only_what_the_policy_allows_is_read_redirections_included() {
    let target = Endpoint::answering(&[response("200 OK", "", TURTLE, "<a> <p> 1 .")]);
    let location = format!("Location: {}\r\n", target.at("/b"));
    let moved = response("301 Moved Permanently", &location, "text/plain", "");
    let first = Endpoint::answering(&[moved.clone(), moved]);
    let allowed = |servers: &[&Endpoint]| {
        let prefix = |server: &&Endpoint| server.at("/").parse().expect("a prefix");
        AddressPolicy::Allowed(servers.iter().map(prefix).collect::<Vec<_>>().into())
    };
    let none = database(|config| config.load_addresses = AddressPolicy::None);
    let error = none
        .update(&load(&first.at("/a")))
        .expect_err("not allowed");
    assert!(matches!(error, EngineError::Forbidden { .. }), "{error}");
    let strict = database(|config| config.load_addresses = allowed(&[&first]));
    let error = trouble(&strict, &load(&first.at("/a")));
    assert!(
        error.to_string().contains("may not be called here"),
        "{error}"
    );
    let error = strict
        .update(&load(&target.at("/b")))
        .expect_err("not allowed");
    assert!(matches!(error, EngineError::Forbidden { .. }), "{error}");
    assert!(target.asked.try_recv().is_err(), "it was never asked");
    let both = database(|config| config.load_addresses = allowed(&[&first, &target]));
    both.update(&load(&first.at("/a"))).expect("both allowed");
    assert!(ask(&both, "?s ?p 1"));
    for other in ["ftp://127.0.0.1/a.ttl", "urn:a:b", "file:a.ttl"] {
        let text = format!("LOAD SILENT <{other}> ;\n{}", load(other));
        let error = both.update(&text).expect_err("not supported");
        let EngineError::Unsupported {
            place: Some(place), ..
        } = error
        else {
            panic!("{error}");
        };
        assert_eq!((place.line, place.column), (2, 6), "{other}");
    }
}

/// A document without end, until the client hangs up; this is told then.
fn endless(line: &'static str) -> (Endpoint, std::sync::mpsc::Receiver<()>) {
    let (sender, hung_up) = channel();
    let server = Endpoint::new(vec![Box::new(move |mut stream: TcpStream| {
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: {TURTLE}\r\nConnection: close\r\n\r\n");
        let more = line.repeat(1000);
        let mut written = stream.write_all(head.as_bytes());
        while written.is_ok() {
            written = stream.write_all(more.as_bytes());
        }
        // The test may have seen enough.
        let _told = sender.send(());
    })]);
    (server, hung_up)
}

#[test]
fn an_endless_document_is_bounded_in_bytes_memory_and_time() {
    let (server, hung_up) = endless("# nothing\n");
    let bytes = 1 << 20;
    let small = database(|config| config.load_response_bytes = bytes);
    let error = trouble(&small, &load(&server.at("/a")));
    assert_eq!(error, WebError::TooLarge { limit_bytes: bytes });
    hung_up.recv_timeout(LONG).expect("it hung up");

    let (server, hung_up) = endless("[] <p> 'a' . ");
    let poor = database(|config| config.query_memory_bytes = 1 << 20);
    let error = poor.update(&load(&server.at("/a"))).expect_err("too much");
    assert!(error.to_string().contains("may hold"), "{error}");
    hung_up.recv_timeout(LONG).expect("it hung up");

    for silent in ["", "SILENT"] {
        let (server, hung_up) = endless("# nothing\n");
        let options = UpdateOptions {
            timeout: Some(Duration::from_millis(100)),
            ..UpdateOptions::default()
        };
        let update = format!("LOAD {silent} <{}>", server.at("/a"));
        let error = database(|_| {}).update_with(&update, options);
        let error = error.expect_err("no time");
        assert!(matches!(error, EngineError::Timeout { .. }), "{error}");
        hung_up.recv_timeout(LONG).expect("it hung up");
    }
}

/// Says nothing until the client hangs up.
fn mute(head: &'static str) -> (Endpoint, std::sync::mpsc::Receiver<()>) {
    let (sender, hung_up) = channel();
    let server = Endpoint::new(vec![Box::new(move |mut stream: TcpStream| {
        stream.write_all(head.as_bytes()).expect("the client reads");
        stream
            .set_read_timeout(Some(LONG))
            .expect("a positive time");
        let ended = stream.read(&mut [0]);
        if ended.map_or(true, |count| count == 0) {
            // The test may have seen enough.
            let _told = sender.send(());
        }
    })]);
    (server, hung_up)
}

const HEAD: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/turtle\r\nContent-Length: 99\r\n\r\n<#a> ";

#[test]
fn a_silent_server_costs_no_more_than_its_time() {
    let limit = Duration::from_millis(100);
    for head in ["", HEAD] {
        let (server, hung_up) = mute(head);
        let patient = database(|config| config.service_timeout = limit);
        let error = trouble(&patient, &load(&server.at("/a")));
        assert_eq!(error, WebError::Timeout { limit });
        hung_up.recv_timeout(LONG).expect("it hung up");
    }
}

/// What has come is parsed before more does: here the mistake in it ends the wait.
#[test]
fn what_has_come_is_read_at_once() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/turtle\r\nContent-Length: 99\r\n\r\n\
                <#a> <#p> nonsense . ";
    let (server, hung_up) = mute(head);
    let patient = database(|config| config.service_timeout = LONG);
    let error = patient
        .update(&load(&server.at("/a")))
        .expect_err("a mistake");
    assert!(matches!(error, EngineError::Ingest(_)), "{error}");
    hung_up.recv_timeout(LONG).expect("it hung up");
}

#[test]
fn cancelling_an_update_hangs_up() {
    for head in ["", HEAD] {
        let (server, hung_up) = mute(head);
        let token = CancellationToken::new();
        let options = UpdateOptions {
            cancellation: Some(token.clone()),
            ..UpdateOptions::default()
        };
        let update = load(&server.at("/a"));
        let running = std::thread::spawn(move || {
            database(|config| config.service_timeout = LONG).update_with(&update, options)
        });
        server.request();
        token.cancel();
        let error = running.join().expect("no panic").expect_err("cancelled");
        assert!(matches!(error, EngineError::Cancelled), "{error}");
        hung_up.recv_timeout(LONG).expect("it hung up");
    }
}
