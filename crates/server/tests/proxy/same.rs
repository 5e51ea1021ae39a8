//! Is what is wrong with a request said by a proxy as a server says it?

use jindou_engine::Database;
use jindou_server::{Server, ServerConfig};
use tokio::sync::oneshot;

use crate::client::{Answer, Proxied, post};
use crate::node::Node;
use crate::{says_name, unite};

/// A server of nothing.
struct Served {
    address: std::net::SocketAddr,
    _stop: oneshot::Sender<()>,
}

impl Served {
    fn new() -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let config = ServerConfig {
                    address: ([127, 0, 0, 1], 0).into(),
                    ..ServerConfig::default()
                };
                let server = Server::new(Database::new(), config);
                let listener = server.bind().await.expect("a free port");
                tell.send(listener.local_addr().expect("bound"))
                    .expect("awaited");
                server.serve(listener, async { drop(stopped.await) }).await;
            });
        });
        Self {
            address: told.recv().expect("it serves"),
            _stop: stop,
        }
    }

    fn send(&self, request: &str) -> Answer {
        let mut stream = std::net::TcpStream::connect(self.address).expect("it listens");
        std::io::Write::write_all(&mut stream, request.as_bytes()).expect("it reads");
        let mut reader = std::io::BufReader::new(stream);
        let mut answer = crate::client::read_head(&mut reader).expect("there is an answer");
        let read = crate::client::read_body(&mut reader, &mut answer);
        answer.is_whole = read.is_some();
        answer
    }
}

#[test]
fn what_is_wrong_is_said_as_a_server_says_it() {
    let served = Served::new();
    let a = Node::new(says_name("a"));
    unite(&[&a]);
    let proxied = Proxied::before(&[&a]);
    let (query, update) = ("application/sparql-query", "application/sparql-update");
    let form = "application/x-www-form-urlencoded";
    let posted = |kind: &str, accept: &str, body: &str| {
        post(
            "/query?timeout=1",
            &format!("Content-Type: {kind}\r\nAccept: {accept}\r\n"),
            body,
        )
    };
    let got = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: db.example\r\n\r\n");
    let problem = "application/problem+json";
    for request in [
        posted(query, "*/*", "SELCT * {}"),
        posted(query, problem, "SELCT * {}"),
        posted(query, "*/*", "SELECT * {\n  ?s ?p }"),
        posted(query, problem, "SELECT * {\n  ?s ?p }"),
        posted(query, "*/*", "SELECT (1 AS ?a) ?a { ?a ?b \"\u{e9}\n\" }"),
        posted(query, "*/*", "INSERT DATA { <a> <b> 1 }"),
        posted(query, problem, ""),
        posted(update, "*/*", "INSERT DATA { <a> <b> }"),
        posted(update, problem, "INSERT DATA { <a> ?b 1 }"),
        posted(update, "*/*", "ASK {}"),
        posted(form, "*/*", "query=SELCT"),
        posted(form, "*/*", "update=SELCT"),
        posted(form, "*/*", "query=ASK+%7B%7D&update=CLEAR+ALL"),
        posted(form, "*/*", "quary=x"),
        posted(form, "*/*", "query=%zz"),
        posted("text/plain", "*/*", "ASK {}"),
        posted("application/sparql-query; charset=latin1", "*/*", "ASK {}"),
        post(
            "/query?timeout=soon",
            &format!("Content-Type: {query}\r\n"),
            "ASK {}",
        ),
        got("/query?query=SELCT"),
        got("/?query=ASK+%7B"),
        got("/query?update=CLEAR+ALL"),
        got("/sparql?query=a&query=b"),
        got("/query?default-graph-uri=x&query=ASK+%7B%7D"),
        got("/query?quary=x"),
    ] {
        let (here, there) = (proxied.send(&request), served.send(&request));
        assert!(there.status >= 400, "{request}: {}", there.text());
        assert_eq!(
            (here.status, here.text()),
            (there.status, there.text()),
            "{request}"
        );
        for name in ["content-type", "allow", "vary"] {
            assert_eq!(here.header(name), there.header(name), "{request}: {name}");
        }
    }
    let asked: Vec<String> = a.asked().iter().map(|one| one.path.clone()).collect();
    assert_eq!(asked, [""; 0], "no node was");
}

#[test]
fn what_a_server_may_know_more_of_is_passed_on() {
    let a = Node::new(says_name("a"));
    unite(&[&a]);
    let proxied = Proxied::before(&[&a]);
    let undeclared = proxied.query("ASK { ?a foaf:knows ?b }");
    assert_eq!(
        (undeclared.status, undeclared.text()),
        (200, "a".to_owned())
    );
    // A page of another origin, which may perhaps not read what is wrong.
    let kind = "Content-Type: application/sparql-query\r\nOrigin: https://e.example\r\n";
    let of_page = proxied.send(post("/query", kind, "SELCT"));
    assert_eq!((of_page.status, of_page.text()), (200, "a".to_owned()));
    assert_eq!(a.asked().len(), 2);
}
