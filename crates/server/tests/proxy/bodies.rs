//! How do bodies of requests get to nodes: held, or as they come?

use std::io::Write as _;

use crate::client::{Proxied, post};
use crate::node::{Asked, Node, Reply, answer};
use crate::{QUERY, says_name, unite};

/// What is held of a body in these tests, in bytes.
const HELD_BYTES: usize = 1000;

fn before(nodes: &[&Node]) -> Proxied {
    unite(nodes);
    let urls: Vec<String> = nodes.iter().map(|node| node.url()).collect();
    Proxied::with(&urls, |config| config.body_bytes = HELD_BYTES)
}

#[test]
fn a_large_document_goes_to_the_node_that_leads_as_it_comes() {
    let (a, b) = (Node::new(says_name("a")), Node::new(says_name("b")));
    let proxied = before(&[&a, &b]);
    let document = "x".repeat(3 << 20);
    let kind = "Content-Type: text/turtle\r\nContent-Encoding: identity\r\n";
    let answer = proxied.send(post("/store?default", kind, &document));
    assert_eq!((answer.status, answer.text()), (200, "a".to_owned()));
    let chunked = format!(
        "PUT /store?default HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{document}\r\n0\r\n\r\n",
        document.len()
    );
    assert_eq!(proxied.send(chunked).text(), "a");
    let asked = a.asked();
    assert_eq!(asked.len(), 2);
    let length = document.len().to_string();
    assert_eq!(asked[0].header("content-length"), Some(&*length));
    assert_eq!(asked[0].header("content-encoding"), Some("identity"));
    for one in &asked {
        assert!(one.body == document.as_bytes(), "{} bytes", one.body.len());
    }
    assert_eq!(b.asked(), []);
    assert_eq!(
        proxied.metrics("jindou_proxy_held_bytes"),
        ["jindou_proxy_held_bytes 0"]
    );
}

#[test]
fn a_node_may_refuse_a_large_document_by_its_head() {
    let a = Node::by_head(|_| {
        let text =
            b"HTTP/1.1 413 Payload Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig";
        Reply::Bytes(text.to_vec())
    });
    let proxied = before(&[&a]);
    // Nothing of it is sent before the answer.
    let mut stream = proxied.connect();
    let head = "PUT /store?default HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\nExpect: 100-continue\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut reader = std::io::BufReader::new(stream);
    let mut first = String::new();
    std::io::BufRead::read_line(&mut reader, &mut first).unwrap();
    assert_eq!(first, "HTTP/1.1 413 Payload Too Large\r\n");
}

#[test]
fn a_large_query_is_not_parsed_here_and_asked_once() {
    let (a, b) = (
        Node::new(|_| Reply::Reset(Vec::new())),
        Node::new(|_| Reply::Reset(Vec::new())),
    );
    let proxied = before(&[&a, &b]);
    let wrong = format!("SELCT {}", " ".repeat(HELD_BYTES));
    let answer = proxied.query(&wrong);
    assert_eq!(answer.status, 502);
    assert!(answer.text().contains("send it again"), "{}", answer.text());
    assert_eq!(a.asked().len() + b.asked().len(), 1);
    assert_eq!(proxied.query("SELCT").status, 400);
}

#[test]
fn a_form_too_large_to_be_seen_goes_to_the_node_that_leads() {
    let (a, b) = (Node::new(says_name("a")), Node::new(says_name("b")));
    let proxied = before(&[&a, &b]);
    let form = format!("query=ASK+%7B%7D&more={}", "x".repeat(HELD_BYTES));
    for _ in 0..3 {
        let answer = proxied.post("/query", "application/x-www-form-urlencoded", &form);
        assert_eq!(answer.text(), "a");
    }
    assert_eq!(b.asked(), []);
}

#[test]
fn a_body_that_ends_early_is_the_clients_mistake() {
    let a = Node::new(says_name("a"));
    let proxied = before(&[&a]);
    for length in [HELD_BYTES, HELD_BYTES * 10] {
        let mut stream = proxied.connect();
        let head = format!(
            "POST /store HTTP/1.1\r\nHost: x\r\nContent-Type: application/trig\r\nContent-Length: {length}\r\n\r\nhalf"
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut first = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stream), &mut first).unwrap();
        assert_eq!(first, "HTTP/1.1 400 Bad Request\r\n", "of {length} bytes");
    }
    assert_eq!(a.asked(), []);
    // The node is as it was.
    assert_eq!(proxied.metrics("jindou_proxy_failures"), [""; 0]);
    assert_eq!(proxied.query(QUERY).text(), "a");
}

#[test]
fn bodies_that_find_no_room_are_passed_on() {
    let a = Node::new(|asked: &Asked| answer("200 OK", "", &asked.body.len().to_string()));
    unite(&[&a]);
    let proxied = Proxied::with(&[a.url()], |config| {
        config.body_bytes = 1 << 20;
        config.all_body_bytes = 1;
    });
    let query = format!("ASK {{}} # {}", "x".repeat(100_000));
    assert_eq!(proxied.query(&query).text(), query.len().to_string());
    assert_eq!(
        proxied.query("SELCT").status,
        400,
        "a granule is always there"
    );
}
