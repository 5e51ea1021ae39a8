//! What does a node that follows do with a document that is larger than what it hands to the leader? It reads no more of it than it
//! must, and says where to send it.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use super::proxied::Copies;
use super::{NAMES, PATIENCE, folder};

/// Bytes of a document that a follower hands on.
const MOST_BYTES: usize = 64 << 20;

/// Sends the head of a request, and `body`; the head of the answer, and its text.
fn put(
    address: &str,
    path: &str,
    headers: &str,
    body: impl FnOnce(&mut TcpStream),
) -> (String, String) {
    let mut connection = TcpStream::connect(address).unwrap();
    connection.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!(
        "PUT {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/n-triples\r\n{headers}\r\n"
    );
    connection.write_all(head.as_bytes()).unwrap();
    body(&mut connection);
    let mut reader = BufReader::new(connection);
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).unwrap() > 0, "{head}");
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
            length = value.trim().parse().unwrap();
        }
        head.push_str(&line);
    }
    let mut text = vec![0; length];
    reader.read_exact(&mut text).unwrap();
    (head, String::from_utf8(text).unwrap())
}

/// Adds the URLs of the nodes to their list.
fn tell_urls(copies: &Copies<'_>) {
    let place = copies.folder.join("nodes.toml");
    let mut list = fs::read_to_string(&place).unwrap();
    for (name, url) in NAMES.iter().zip(copies.urls()) {
        let line = format!("name = \"{name}\"\n");
        list = list.replace(&line, &format!("{line}http = \"{url}\"\n"));
    }
    fs::write(&place, list).unwrap();
}

#[test]
fn a_follower_sends_a_large_document_on_before_it_reads_it() {
    let folder = folder();
    let copies = Copies::new(folder.path());
    tell_urls(&copies);
    let _nodes = [0, 1, 2].map(|number| copies.start(number));
    copies.wait_until_whole();
    let [leader, follower, _] = copies.urls();
    let address = follower.strip_prefix("http://").unwrap();
    let too_long = format!("Content-Length: {}\r\n", MOST_BYTES + 1);
    // Nothing of the body is sent.
    let (head, text) = put(
        address,
        "/store?graph=http%3A%2F%2Fe%2Fg",
        &too_long,
        |_| {},
    );
    assert!(head.starts_with("HTTP/1.1 307 "), "{head}");
    let location = format!("location: {leader}/store?graph=http%3A%2F%2Fe%2Fg\r\n");
    assert!(head.contains(&location), "{head}");
    assert!(text.contains(&format!("node a, at {leader}")), "{text}");
    // The graph is named by the address, and would be another one elsewhere.
    let (head, text) = put(address, "/store/g", &too_long, |_| {});
    assert!(head.starts_with("HTTP/1.1 413 "), "{head}");
    assert!(text.contains(&format!("node a, at {leader}")), "{text}");
    // Nobody knows how long it is: it is read as far as it is taken.
    let (head, text) = put(
        address,
        "/store?default",
        "Transfer-Encoding: chunked\r\n",
        |to| {
            let chunk = [b"100000\r\n", &*vec![b'\n'; 1 << 20], b"\r\n"].concat();
            for _ in 0..MOST_BYTES >> 20 {
                to.write_all(&chunk).unwrap();
            }
            to.write_all(b"1\r\n\n\r\n").unwrap();
        },
    );
    assert!(head.starts_with("HTTP/1.1 413 "), "{head}");
    assert!(text.contains(&format!("node a, at {leader}")), "{text}");
    // What the follower hands on is taken.
    let triple = "<http://e/s> <http://e/p> <http://e/o> .";
    let length = format!("Content-Length: {}\r\n", triple.len());
    let (head, text) = put(address, "/store?graph=http%3A%2F%2Fe%2Fg", &length, |to| {
        to.write_all(triple.as_bytes()).unwrap();
    });
    assert!(head.starts_with("HTTP/1.1 201 "), "{head}{text}");
}
