//! How do answers come through: as they come, whole or cut, and with what is said of them?

use std::io::{BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::channel;

use crate::client::{read_chunk, read_head};
use crate::node::{Asked, PATIENCE, Reply, answer};
use crate::{QUERY, says_name, two};

#[test]
fn headers_come_through_both_ways_but_those_of_the_connection() {
    let headers = "ETag: \"x\"\r\nContent-Encoding: gzip\r\nVary: accept\r\nJindou-Query-Id: 1\r\n\
                   Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n";
    let replies = move |_: &Asked| answer("200 OK", headers, "body");
    let (a, b, proxied) = two(replies, replies);
    let request = "GET /query?query=ASK+%7B%7D HTTP/1.1\r\nHost: db.example:80\r\nAccept: text/csv\r\n\
                   Authorization: Basic x\r\nAccept-Encoding: gzip\r\nIf-None-Match: \"y\"\r\n\
                   Connection: X-Own\r\nX-Own: 1\r\nTE: trailers\r\nProxy-Authorization: z\r\n\r\n";
    let answer = proxied.send(request);
    assert_eq!(
        (answer.status, answer.text(), answer.is_whole),
        (200, "body".to_owned(), true)
    );
    for (name, value) in [
        ("etag", Some("\"x\"")),
        ("content-encoding", Some("gzip")),
        ("content-length", Some("4")),
        ("jindou-query-id", Some("1")),
        ("x-hop", None),
        ("keep-alive", None),
    ] {
        assert_eq!(answer.header(name), value, "{name}");
    }
    let asked = [a.asked(), b.asked()].concat();
    for (name, value) in [
        ("host", Some("db.example:80")),
        ("accept", Some("text/csv")),
        ("authorization", Some("Basic x")),
        ("accept-encoding", Some("gzip")),
        ("if-none-match", Some("\"y\"")),
        ("via", Some("1.1 jindou-proxy")),
        ("x-own", None),
        ("te", None),
        ("proxy-authorization", None),
        ("connection", None),
    ] {
        assert_eq!(asked[0].header(name), value, "{name}");
    }
    assert_eq!(asked[0].path, "/query?query=ASK+%7B%7D");
}

#[test]
fn the_answer_to_head_has_a_length_and_no_body() {
    let replies =
        |_: &Asked| Reply::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n".to_vec());
    let (_a, _b, proxied) = two(replies, replies);
    let mut stream = proxied.connect();
    // The second one comes right after the first.
    let head = "HEAD /store?default HTTP/1.1\r\nHost: x\r\n\r\n";
    write!(stream, "{head}{head}").unwrap();
    let mut reader = BufReader::new(stream);
    for _ in 0..2 {
        let answer = read_head(&mut reader).expect("there is an answer");
        assert_eq!(
            (answer.status, answer.header("content-length")),
            (200, Some("100"))
        );
    }
}

#[test]
fn events_come_as_they_are_sent() {
    let (send, sent) = channel::<Vec<u8>>();
    let sent = std::sync::Mutex::new(Some(sent));
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    let events = move |_: &Asked| match sent.lock().unwrap().take() {
        Some(parts) => Reply::Parts(head.into(), parts),
        None => Reply::Reset(Vec::new()),
    };
    let (_a, b, proxied) = two(events, says_name("b"));
    let mut stream = proxied.connect();
    let request = "GET /continuous/q/results HTTP/1.1\r\nHost: x\r\nLast-Event-ID: 7\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    // The head comes before any event does.
    let answer = read_head(&mut reader).expect("there is an answer");
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    for number in 0..3 {
        let event = format!("data: {number}\n\n");
        send.send(format!("{:x}\r\n{event}\r\n", event.len()).into_bytes())
            .unwrap();
        let chunk = read_chunk(&mut reader).expect("it goes on");
        assert_eq!(chunk, Some(event.into_bytes()));
    }
    // The node goes: that is no end of the events.
    drop(send);
    assert_eq!(read_chunk(&mut reader), None);
    assert_eq!(b.asked(), [], "nobody else has these events");
}

#[test]
fn a_long_answer_that_is_cut_is_cut_for_the_client() {
    // More than is kept back.
    let part = "x".repeat(128 << 10);
    let head = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{part}\r\n",
        part.len()
    );
    let cut = move |_: &Asked| Reply::End(head.clone().into_bytes());
    let (a, b, proxied) = two(cut.clone(), cut);
    let answer = proxied.query(QUERY);
    assert_eq!((answer.status, answer.is_whole), (200, false));
    assert_eq!(a.asked().len() + b.asked().len(), 1);
    // A client of HTTP/1.0 would take the end of the connection for that of the answer.
    let mut stream = proxied.connect();
    let request = "GET /query?query=ASK+%7B%7D HTTP/1.0\r\nHost: x\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let read = stream.read_to_end(&mut Vec::new());
    read.expect_err("it is reset");
}

const LONG_BYTES: u64 = 256 << 20;
/// What systems and the proxy may have of an answer that its client did not read, with room to spare.
const UNDERWAY_BYTES: u64 = 48 << 20;

#[test]
fn an_answer_of_any_length_is_not_held() {
    let written = Arc::new(AtomicU64::new(0));
    let counts = Arc::clone(&written);
    let long = move |_: &Asked| {
        let counts = Arc::clone(&counts);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LONG_BYTES}\r\n\r\n");
        Reply::Take(
            head.into_bytes(),
            Box::new(move |stream| write_all(stream, &counts)),
        )
    };
    let (_a, _b, proxied) = two(long.clone(), long);
    let mut stream = proxied.connect();
    let request = "GET /query?query=ASK+%7B%7D HTTP/1.1\r\nHost: x\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    assert_eq!(
        read_head(&mut reader).expect("there is an answer").status,
        200
    );
    let mut part = vec![0; 1 << 20];
    for read in 1..=LONG_BYTES >> 20 {
        reader.read_exact(&mut part).expect("it goes on");
        let ahead = written.load(SeqCst).saturating_sub(read << 20);
        assert!(
            ahead <= UNDERWAY_BYTES,
            "{ahead} bytes ahead after {read} MiB"
        );
    }
    proxied.wait_for_metric("jindou_proxy_underway{node=\"a\"} 0");
}

fn write_all(mut stream: TcpStream, written: &AtomicU64) {
    let part = vec![b'x'; 64 << 10];
    for _ in 0..LONG_BYTES / part.len() as u64 {
        stream.write_all(&part).expect("it is read");
        written.fetch_add(part.len() as u64, SeqCst);
    }
}

#[test]
fn a_websocket_goes_through() {
    let switches = |asked: &Asked| {
        let is_asked = asked.header("upgrade") == Some("websocket");
        assert!(
            is_asked && asked.header("connection") == Some("upgrade"),
            "{asked:?}"
        );
        let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\
                    Sec-WebSocket-Accept: x\r\n\r\n";
        Reply::Take(
            head.into(),
            Box::new(|mut stream| {
                // An echo.
                let mut echo = stream.try_clone().expect("it is open");
                let _ended = std::io::copy(&mut stream, &mut echo);
            }),
        )
    };
    let (_a, _b, proxied) = two(switches, says_name("b"));
    let mut stream = proxied.connect();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = "GET /continuous/q/results HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let answer = read_head(&mut reader).expect("there is an answer");
    assert_eq!(
        (answer.status, answer.header("sec-websocket-accept")),
        (101, Some("x"))
    );
    for _ in 0..3 {
        reader.get_mut().write_all(b"ping").unwrap();
        let mut echo = [0; 4];
        reader.read_exact(&mut echo).unwrap();
        assert_eq!(&echo, b"ping");
    }
}
