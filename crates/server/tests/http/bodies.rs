//! Bodies of requests: compressed ones, large ones, and those that are neither what they say nor of a
//! size that is taken.

use std::io::Write;
use std::sync::Arc;

use jindou_engine::{Config, MemoryPool, SpillLimits};

use crate::client::{Answer, Running, encode};

const ASK: &str = "ASK { <http://e/x> <http://e/age> 7 }";
const QUERY: &str = "Content-Type: application/sparql-query\r\n";
const UPDATE: &str = "Content-Type: application/sparql-update\r\n";
const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";
const LINES: &str = "Content-Type: application/n-triples\r\n";

/// [`ASK`], a form with it, an update, and a triple, as another program compresses them by brotli.
const BROTLI_ASK: &str = "0b128041534b207b203c687474703a2f2f652f783e203c687474703a2f2f652f6167653e20\
                          37207d03";
const BROTLI_UPDATE: &str = "8b1180494e534552542044415441207b203c75726e3a613e203c75726e3a623e2022627\
                             222207d03";
const BROTLI_TRIPLE: &str = "0b0b803c75726e3a613e203c75726e3a623e2022627222202e0a03";
/// 32 MiB of `#`.
const BROTLI_BOMB: &str = "cbffff3ff82546e2b14020f7fe8fffff7ff04b00c4611180eefd1fffffffe0970088c30200\
                           ddfbbffcffffc32f0110870500baf77f";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().collect();
    let pairs = digits.chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).expect("ASCII");
        u8::from_str_radix(pair, 16).expect("hexadecimal digits")
    });
    pairs.collect()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(text).expect("a Vec takes all");
    encoder.finish().expect("a Vec takes all")
}

fn zstd(text: &[u8]) -> Vec<u8> {
    zstd::encode_all(text, 3).expect("a Vec takes all")
}

/// Sends a body with a length, or in chunks.
fn send(server: &Running, method: &str, target: &str, headers: &str, body: &[u8]) -> Answer {
    let mut connection = server.connect();
    let head = format!("{headers}Content-Length: {}\r\n", body.len());
    connection.send(method, target, &head, "");
    connection.write(body);
    connection.answer(method)
}

fn coded(kind: &str, coding: &str) -> String {
    format!("{kind}Content-Encoding: {coding}\r\n")
}

#[test]
fn compressed_bodies_are_taken_everywhere() {
    let server = Running::new();
    let form = format!("query={}", encode(ASK));
    for (coding, query) in [
        ("gzip", gzip(ASK.as_bytes())),
        ("x-gzip", gzip(ASK.as_bytes())),
        ("zstd", zstd(ASK.as_bytes())),
        ("br", bytes(BROTLI_ASK)),
        ("identity", ASK.as_bytes().to_vec()),
    ] {
        let answer = send(&server, "POST", "/query", &coded(QUERY, coding), &query);
        assert_eq!(answer.status, 200, "{coding}: {}", answer.text());
        assert_eq!(answer.json()["boolean"], true, "{coding}");
    }
    let answer = send(
        &server,
        "POST",
        "/query",
        &coded(FORM, "zstd"),
        &zstd(form.as_bytes()),
    );
    assert_eq!(answer.json()["boolean"], true);
    let insert = |object: &str| format!("INSERT DATA {{ <urn:a> <urn:b> \"{object}\" }}");
    let line = |object: &str| format!("<urn:a> <urn:b> \"{object}\" .\n");
    for (coding, update, triple) in [
        (
            "gzip",
            gzip(insert("gzip").as_bytes()),
            gzip(line("gzip").as_bytes()),
        ),
        (
            "zstd",
            zstd(insert("zstd").as_bytes()),
            zstd(line("zstd").as_bytes()),
        ),
        ("br", bytes(BROTLI_UPDATE), bytes(BROTLI_TRIPLE)),
    ] {
        let answer = send(&server, "POST", "/update", &coded(UPDATE, coding), &update);
        assert_eq!(
            (answer.status, answer.header("jindou-inserted")),
            (204, Some("1"))
        );
        let target = "/store?graph=http://e/h";
        let answer = send(&server, "PUT", target, &coded(LINES, coding), &triple);
        assert!(answer.status < 300, "{coding}: {}", answer.text());
        let read = server.get(target, "Accept: application/n-triples\r\n");
        assert_eq!(read.text(), line(coding));
    }
    // Members and frames follow one another.
    let (begin, end) = ASK.split_at(10);
    for (coding, mut body, rest) in [
        ("gzip", gzip(begin.as_bytes()), gzip(end.as_bytes())),
        ("zstd", zstd(begin.as_bytes()), zstd(end.as_bytes())),
    ] {
        body.extend(rest);
        let answer = send(&server, "POST", "/query", &coded(QUERY, coding), &body);
        assert_eq!(answer.status, 200, "{coding}: {}", answer.text());
    }
    let json = "Content-Type: application/json\r\n";
    let stream = server.send("PUT", "/streams/s", json, r#"{"iri":"http://e/s"}"#);
    assert!(stream.status < 300, "{}", stream.text());
    let kind = "Content-Type: text/tab-separated-values\r\n";
    let tuple = gzip(b"1000\t<http://e/a> <http://e/b> \"1\" .\n");
    let answer = send(&server, "POST", "/streams/s", &coded(kind, "gzip"), &tuple);
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[test]
fn a_body_that_is_not_what_it_says_is_refused() {
    let server = Running::new();
    for (coding, body) in [
        ("gzip", gzip(ASK.as_bytes())),
        ("zstd", zstd(ASK.as_bytes())),
        ("br", bytes(BROTLI_ASK)),
    ] {
        for wrong in [&body[..body.len() - 2], ASK.as_bytes(), b""] {
            let answer = send(&server, "POST", "/query", &coded(QUERY, coding), wrong);
            let said = answer.text();
            assert_eq!(answer.status, 400, "{coding} {wrong:?}: {said}");
            assert!(said.contains(&format!("no whole {coding}")), "{said}");
        }
    }
    for coding in ["deflate", "gzip, br", "compress"] {
        let answer = send(&server, "POST", "/query", &coded(QUERY, coding), b"x");
        assert_eq!(answer.status, 415, "{coding}");
        assert!(
            answer.text().contains("gzip, zstd, br"),
            "{}",
            answer.text()
        );
    }
}

/// 32 MiB in a few bytes, by each coding.
fn bombs() -> [(&'static str, Vec<u8>); 3] {
    let text = vec![b'#'; 32 << 20];
    [
        ("gzip", gzip(&text)),
        ("zstd", zstd(&text)),
        ("br", bytes(BROTLI_BOMB)),
    ]
}

#[test]
fn what_a_bomb_stands_for_is_counted_from_its_first_byte() {
    let server = Running::with(|config| config.max_body_bytes = 1 << 20);
    for (coding, bomb) in bombs() {
        assert!(bomb.len() < 64 << 10, "it is no bomb");
        let answer = send(&server, "POST", "/query", &coded(QUERY, coding), &bomb);
        let said = answer.text();
        assert_eq!(answer.status, 413, "{coding}: {said}");
        assert!(said.contains("--max-body"), "{said}");
    }
    // The memory of all is asked for what is decompressed, too.
    let pool = Arc::new(MemoryPool::new(24 << 20));
    let mut engine = Config::default();
    engine.memory_pool = Some(Arc::clone(&pool));
    let server = Running::with_engine(engine, |_| {});
    for (coding, bomb) in bombs() {
        let answer = send(&server, "POST", "/query", &coded(QUERY, coding), &bomb);
        assert_eq!(answer.status, 503, "{coding}: {}", answer.text());
    }
    assert_eq!(pool.held_bytes(), 0);
}

#[test]
fn a_document_that_says_more_than_a_request_may_hold_is_refused_with_the_option_that_raises_it() {
    let mut engine = Config::default();
    engine.query_memory_bytes = 4 << 20;
    let server = Running::with_engine(engine, |_| {});
    let lines: String = (0..100_000)
        .map(|n| format!("<http://e/s{n}> <http://e/p> \"{n}\" .\n"))
        .collect();
    let target = "/store?graph=http://e/large";
    let answer = send(
        &server,
        "PUT",
        target,
        &coded(LINES, "gzip"),
        &gzip(lines.as_bytes()),
    );
    let said = answer.text();
    assert_eq!(answer.status, 413, "{said}");
    assert!(said.contains("--query-memory"), "{said}");
}

/// A server that keeps 64 KiB of a body in memory, and `bytes` in a temporary file.
fn spooling(bytes: u64) -> (tempfile::TempDir, Running) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut engine = Config::default();
    engine.spill = SpillLimits::new(folder.path(), bytes);
    let server = Running::with_engine(engine, |config| config.max_body_bytes = 64 << 10);
    (folder, server)
}

#[test]
fn a_document_of_the_graph_store_may_be_larger_than_other_bodies() {
    const COUNT: usize = 20_000;
    let (folder, server) = spooling(8 << 20);
    let lines: String = (0..COUNT)
        .map(|n| format!("<http://e/s{n}> <http://e/p> \"{n}\" .\n"))
        .collect();
    assert!(lines.len() > 64 << 10);
    let target = "/store?graph=http://e/large";
    let plain = lines.as_bytes().to_vec();
    for (method, coding, body, inserted) in [
        ("PUT", "identity", plain, COUNT),
        ("PUT", "gzip", gzip(lines.as_bytes()), COUNT),
        ("POST", "zstd", zstd(lines.as_bytes()), 0),
    ] {
        let answer = send(&server, method, target, &coded(LINES, coding), &body);
        assert!(answer.status < 300, "{coding}: {}", answer.text());
        let inserted = inserted.to_string();
        assert_eq!(
            answer.header("jindou-inserted"),
            Some(&*inserted),
            "{coding}"
        );
    }
    let read = server.get(target, "Accept: application/n-triples\r\n");
    assert_eq!(read.text().lines().count(), COUNT);
    // What is wrong is told with its line, and changes nothing.
    let wrong = format!("{lines}<http://e/s> <http://e/p>\n");
    let answer = send(&server, "PUT", target, LINES, wrong.as_bytes());
    let said = answer.text();
    assert_eq!(answer.status, 400, "{said}");
    assert!(said.starts_with(&format!("line {}", COUNT + 1)), "{said}");
    let ask = format!(
        "ASK {{ GRAPH <http://e/large> {{ <http://e/s{}> ?p ?o }} }}",
        COUNT - 1
    );
    assert_eq!(server.query(&ask, "").json()["boolean"], true);
    let left = std::fs::read_dir(folder.path())
        .expect("it is there")
        .count();
    assert_eq!(left, 0, "temporary files have no names");
}

#[test]
fn a_document_whose_terms_all_requests_together_may_not_hold_is_refused_with_the_option() {
    let folder = tempfile::tempdir().expect("a folder");
    let pool = Arc::new(MemoryPool::new(6 << 20));
    let mut engine = Config::default();
    engine.spill = SpillLimits::new(folder.path(), 64 << 20);
    engine.memory_pool = Some(Arc::clone(&pool));
    let server = Running::with_engine(engine, |config| config.max_body_bytes = 64 << 10);
    // Each line fits into a chunk, and there are far too few to be looked at by their number.
    let long = "x".repeat(500_000);
    let lines: String = (0..32)
        .map(|n| format!("<http://e/{n}/{long}> <http://e/p> <http://e/o> .\n"))
        .collect();
    let target = "/store?graph=http://e/large";
    let answer = send(&server, "PUT", target, LINES, lines.as_bytes());
    let said = answer.text();
    assert_eq!(answer.status, 413, "{said}");
    assert!(
        said.contains("--memory") && said.contains("`jindou load`"),
        "{said}"
    );
    assert_eq!(server.get(target, "").status, 404, "nothing is left of it");
    server.wait_for_metric("jindou_query_memory_bytes 0");
}

#[test]
fn a_document_beyond_its_bound_is_refused_with_the_option_that_raises_it() {
    let (_folder, server) = spooling(1 << 20);
    let target = "/store?graph=http://e/large";
    for (coding, bomb) in bombs() {
        let answer = send(&server, "PUT", target, &coded(LINES, coding), &bomb);
        let said = answer.text();
        assert_eq!(answer.status, 413, "{coding}: {said}");
        assert!(said.contains("--spill-limit"), "{said}");
    }
    let announced = format!("{LINES}Content-Length: 5000000\r\n");
    let mut connection = server.connect();
    connection.send("PUT", target, &announced, "");
    let answer = connection.answer("PUT");
    let said = answer.text();
    assert_eq!(answer.status, 413);
    assert!(
        said.contains("--spill-limit") && said.contains("`jindou load`"),
        "{said}"
    );
    // Without temporary files, the bound is that of other bodies.
    let (_folder, server) = spooling(0);
    let answer = send(&server, "PUT", target, LINES, &vec![b'#'; 65 << 10]);
    assert_eq!(answer.status, 413);
    assert!(answer.text().contains("--max-body"), "{}", answer.text());
    // A format that is not read is refused before the document is.
    let html = "Content-Type: text/html\r\nContent-Length: 5000000\r\n";
    let mut connection = server.connect();
    connection.send("PUT", target, html, "");
    assert_eq!(connection.answer("PUT").status, 415);
}

#[test]
fn documents_that_wait_together_are_within_the_bound_of_one() {
    let (_folder, server) = spooling(1 << 20);
    let target = "/store?graph=http://e/large";
    let line = "<http://e/s> <http://e/p> <http://e/o> .\n";
    let document = line.repeat((700 << 10) / line.len());
    let announced = format!("{LINES}Content-Length: {}\r\n", document.len());
    let mut slow = server.connect();
    slow.send("PUT", target, &announced, "");
    slow.write(&document.as_bytes()[1..]);
    server.wait_for_metric(&format!("jindou_spooled_bytes {}", document.len() - 1));
    let refused = send(&server, "PUT", target, LINES, document.as_bytes());
    let said = refused.text();
    assert_eq!(refused.status, 503, "{said}");
    assert!(said.contains("--spill-limit"), "{said}");
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    server.wait_for_metric("jindou_rejected_total{reason=\"memory\"} 1");
    // The last byte of the first, which is no triple and so leaves the bytes to others.
    slow.write(b"\n");
    assert_eq!(slow.answer("PUT").status, 400);
    server.wait_for_metric("jindou_spooled_bytes 0");
    let answer = send(&server, "PUT", target, LINES, document.as_bytes());
    assert!(answer.status < 300, "{}", answer.text());
}

#[test]
fn the_text_of_a_query_may_have_many_megabytes() {
    let server = Running::new();
    let comment = format!("{}\n{ASK}", "#".repeat(40 << 20));
    let long = format!("'{}' ", "a".repeat(20_000));
    let values = long.repeat(500);
    let values = format!("ASK {{ VALUES ?x {{ {values} 7 }} ?s <http://e/age> ?x }}");
    assert!(values.len() > 8 << 20);
    for text in [comment, values] {
        let answer = send(&server, "POST", "/query?timeout=60", QUERY, text.as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.json()["boolean"], true);
    }
    let more = vec![b'#'; 65 << 20];
    let answer = send(
        &server,
        "POST",
        "/query",
        &coded(QUERY, "zstd"),
        &zstd(&more),
    );
    assert_eq!(answer.status, 413);
    assert!(
        answer.text().contains("67108864 bytes that --max-body"),
        "{}",
        answer.text()
    );
}

#[test]
fn compressed_documents_are_taken_whether_a_header_says_so_or_not() {
    let server = Running::new();
    let line = "<urn:a> <urn:b> \"c\" .\n";
    let target = "/store?graph=http://e/h";
    let gzip_kind = "Content-Type: application/gzip\r\n";
    let zstd_kind = "Content-Type: application/zstd\r\n";
    for (kind, body) in [
        (LINES, gzip(line.as_bytes())),
        (LINES, zstd(line.as_bytes())),
        (gzip_kind, gzip(line.as_bytes())),
        (zstd_kind, zstd(line.as_bytes())),
        // Plain text, whatever its type says.
        (gzip_kind, line.as_bytes().to_vec()),
    ] {
        let answer = send(&server, "PUT", target, kind, &body);
        assert!(answer.status < 300, "{kind}: {}", answer.text());
        let read = server.get(target, "Accept: application/n-triples\r\n");
        assert_eq!(read.text(), line, "{kind}");
        assert_eq!(server.send("DELETE", target, "", "").status, 204);
    }
    // Whose mark comes in pieces.
    let mut connection = server.connect();
    let head = format!("{LINES}Transfer-Encoding: chunked\r\n");
    connection.send("PUT", target, &head, "");
    for piece in gzip(line.as_bytes()).chunks(1) {
        connection.write(b"1\r\n");
        connection.write(piece);
        connection.write(b"\r\n");
    }
    connection.write(b"0\r\n\r\n");
    assert_eq!(connection.answer("PUT").status, 201);
    let cut = gzip(line.as_bytes());
    let answer = send(&server, "PUT", target, LINES, &cut[..cut.len() - 2]);
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("no whole gzip"), "{}", answer.text());
}

/// A form with files.
fn form(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, bytes) in files {
        let head = format!(
            "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"{name}\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        );
        body.extend(head.bytes());
        body.extend(bytes);
        body.extend(b"\r\n");
    }
    body.extend(b"--B--\r\n");
    body
}

#[test]
fn compressed_files_of_a_form_are_taken_within_the_bounds_of_a_body() {
    let kind = "Content-Type: multipart/form-data; boundary=B\r\n";
    let server = Running::with(|config| config.max_body_bytes = 64 << 10);
    let line = |object: &str| format!("<urn:a> <urn:b> \"{object}\" .\n").into_bytes();
    let files = [
        ("a.nt.gz", gzip(&line("gzip"))),
        ("b.ttl.zst", zstd(&line("zstd"))),
        ("c.gz", line("plain")),
    ];
    let answer = send(&server, "POST", "/store?default", kind, &form(&files));
    assert_eq!(answer.status, 204, "{}", answer.text());
    assert_eq!(answer.header("jindou-inserted"), Some("3"));
    // Each of which may be there alone.
    let large = gzip(&vec![b'#'; 40 << 10]);
    let one = form(&[("a.nt.gz", large.clone())]);
    let answer = send(&server, "POST", "/store?default", kind, &one);
    assert_eq!(answer.status, 204, "{}", answer.text());
    let two = form(&[("a.nt.gz", large.clone()), ("b.nt.gz", large)]);
    let answer = send(&server, "POST", "/store?default", kind, &two);
    let said = answer.text();
    assert_eq!(answer.status, 413, "{said}");
    assert!(said.contains("--max-body"), "{said}");
}

#[test]
fn a_document_that_stands_for_more_than_the_limit_is_refused_without_a_header_as_well() {
    let (_folder, server) = spooling(1 << 20);
    let bomb = gzip(&vec![b'#'; 8 << 20]);
    assert!(bomb.len() < 64 << 10);
    let answer = send(&server, "PUT", "/store?default", LINES, &bomb);
    let said = answer.text();
    assert_eq!(answer.status, 413, "{said}");
    assert!(said.contains("--spill-limit"), "{said}");
}
