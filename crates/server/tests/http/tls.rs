//! Does the server speak HTTPS as it speaks HTTP, and with the certificate that it was given last?

use std::io::{BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jindou_server::{ServerConfig, Tls};
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use tempfile::TempDir;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::client::{Answer, Connection, Running, encode};
use crate::limits::{ENDLESS, FRUITLESS, target};

type Stream = StreamOwned<ClientConnection, TcpStream>;

/// Of clients that know one certificate.
type Known = Arc<ClientConfig>;

/// A server with a certificate in files.
struct Secured {
    folder: TempDir,
    tls: Tls,
    server: Running,
    known: Known,
}

fn made() -> CertifiedKey<KeyPair> {
    generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate")
}

fn knowing(certificate: &CertificateDer<'static>) -> Known {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).expect("a certificate");
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions of the provider")
        .with_root_certificates(roots);
    let mut config = config.with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Arc::new(config)
}

/// Puts a new certificate and its key into a folder.
fn renew(folder: &Path) -> Known {
    let made = made();
    std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem()).expect("written");
    std::fs::write(folder.join("certificate.pem"), made.cert.pem()).expect("written");
    knowing(made.cert.der())
}

fn secured(configure: impl FnOnce(&mut ServerConfig)) -> Secured {
    let folder = tempfile::tempdir().expect("a folder");
    let known = renew(folder.path());
    let (certificate, key) = (
        folder.path().join("certificate.pem"),
        folder.path().join("key.pem"),
    );
    let tls = Tls::read(certificate, key).expect("they are right");
    let given = tls.clone();
    let server = Running::with(|config| {
        config.tls = Some(given);
        configure(config);
    });
    Secured {
        folder,
        tls,
        server,
        known,
    }
}

impl Secured {
    fn connect(&self) -> Connection<Stream> {
        self.connect_as(&self.known).expect("it is known")
    }

    fn connect_as(&self, known: &Known) -> std::io::Result<Connection<Stream>> {
        let stream = TcpStream::connect(self.server.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let name = ServerName::try_from("localhost").expect("a name");
        let client = ClientConnection::new(Arc::clone(known), name).expect("a client");
        let mut stream = StreamOwned::new(client, stream);
        stream.conn.complete_io(&mut stream.sock)?;
        Ok(Connection {
            reader: BufReader::new(stream),
        })
    }

    fn get(&self, target: &str, headers: &str) -> Answer {
        let mut connection = self.connect();
        connection.send("GET", target, headers, "");
        connection.answer("GET")
    }

    fn wait_for_metric(&self, line: &str) {
        let give_up = Instant::now() + Duration::from_secs(60);
        loop {
            let text = self.get("/metrics", "").text();
            if text.lines().any(|l| l == line) {
                return;
            }
            assert!(Instant::now() < give_up, "no {line} in\n{text}");
        }
    }
}

/// Ends what a client sends, as TLS says it.
fn close_notify(connection: &mut Connection<Stream>) {
    let stream = connection.reader.get_mut();
    stream.conn.send_close_notify();
    stream
        .conn
        .complete_io(&mut stream.sock)
        .expect("it is sent");
}

#[test]
fn a_kept_connection_takes_queries_and_updates() {
    let secured = secured(|_| {});
    let mut connection = secured.connect();
    let spoken = connection.reader.get_ref().conn.alpn_protocol();
    assert_eq!(spoken, Some(&b"http/1.1"[..]));
    let update = "INSERT DATA { <http://e/new> <http://e/p> <relative> }";
    let kind = "Content-Type: application/sparql-update\r\n";
    connection.send("POST", "/update", kind, update);
    assert_eq!(connection.answer("POST").status, 204);
    let ask = "SELECT ?o { <http://e/new> ?p ?o }";
    for _ in 0..2 {
        connection.send("GET", &target(ask, "&format=csv"), "", "");
        let answer = connection.answer("GET");
        assert_eq!(answer.status, 200);
        // What clients see of the server is its address.
        assert_eq!(answer.text(), "o\r\nhttps://e/relative\r\n");
    }
    let product = "SELECT * { ?s <http://e/p> ?o . ?t <http://e/p> ?u }";
    connection.send("GET", &target(product, "&format=tsv"), "", "");
    let answer = connection.answer("GET");
    assert!(answer.whole && answer.header("transfer-encoding") == Some("chunked"));
    assert_eq!(answer.text().lines().count(), 301 * 301 + 1);
    // Two at once: the second is read while the first is answered.
    let asked = format!("GET {} HTTP/1.1\r\nHost: e\r\n\r\n", target("ASK {}", ""));
    connection.write(asked.repeat(2).as_bytes());
    for _ in 0..2 {
        assert_eq!(connection.answer("GET").json()["boolean"], true);
    }
}

#[test]
fn a_client_that_ended_its_sending_side_is_answered_and_one_that_is_gone_is_noticed() {
    let secured = secured(|config| config.inline_budget = Duration::ZERO);
    let mut ended = secured.connect();
    ended.send("GET", &target("ASK {}", "&format=csv"), "", "");
    close_notify(&mut ended);
    let answer = loop {
        let answer = ended.head();
        if answer.status != 100 {
            break answer;
        }
    };
    assert_eq!(answer.status, 200);
    let mut waiting = secured.connect();
    waiting.send("GET", &target(FRUITLESS, ""), "", "");
    close_notify(&mut waiting);
    for _ in 0..2 {
        assert_eq!(waiting.head().status, 100);
    }
    secured.wait_for_metric("jindou_queries_in_flight 1");
    let cut = waiting.reader.get_ref().sock.shutdown(Shutdown::Both);
    cut.expect("connected");
    secured.wait_for_metric("jindou_queries_total{status=\"abandoned\"} 1");
    // One that does not say that it ends is gone at once.
    let mut broken = secured.connect();
    broken.send("GET", &target(FRUITLESS, ""), "", "");
    secured.wait_for_metric("jindou_queries_in_flight 1");
    let cut = broken.reader.get_ref().sock.shutdown(Shutdown::Write);
    cut.expect("connected");
    secured.wait_for_metric("jindou_queries_total{status=\"abandoned\"} 2");
}

#[test]
fn a_client_that_does_not_read_is_dropped() {
    let secured = secured(|config| config.write_timeout = Duration::from_millis(100));
    let mut connection = secured.connect();
    connection.send("GET", &target(ENDLESS, ""), "", "");
    secured.wait_for_metric("jindou_queries_total{status=\"abandoned\"} 1");
}

#[test]
fn a_renewed_certificate_is_taken_and_one_that_is_wrong_changes_nothing() {
    let secured = secured(|_| {});
    let mut before = secured.connect();
    let (key, certificate) = (
        secured.folder.path().join("key.pem"),
        secured.folder.path().join("certificate.pem"),
    );
    let old = std::fs::read(&key).expect("a key");
    std::fs::write(&key, made().signing_key.serialize_pem()).expect("written");
    let error = secured.tls.reread().expect_err("another key").to_string();
    assert!(
        error.contains("key.pem: the key does not belong"),
        "{error}"
    );
    std::fs::write(&key, &old).expect("written");
    std::fs::write(&certificate, "nothing\n").expect("written");
    let error = secured.tls.reread().expect_err("no PEM").to_string();
    assert!(
        error.contains("certificate.pem: no certificate in PEM"),
        "{error}"
    );
    assert_eq!(secured.get("/health", "").status, 200, "as it was");
    // Nobody tells the server.
    let renewed = renew(secured.folder.path());
    let give_up = Instant::now() + Duration::from_secs(60);
    while secured.connect_as(&renewed).is_err() {
        assert!(Instant::now() < give_up, "never read again");
    }
    assert!(secured.connect_as(&secured.known).is_err());
    before.send("GET", "/health", "", "");
    assert_eq!(before.answer("GET").status, 200, "it was there before");
}

#[test]
fn a_handshake_has_as_long_as_a_head_and_gives_way_to_others() {
    let short = secured(|config| config.idle_timeout = Duration::from_millis(50));
    for begun in [&b""[..], b"\x16\x03\x01\x02\x00\x01"] {
        let mut silent = TcpStream::connect(short.server.address).expect("it accepts");
        silent.write_all(begun).expect("it reads");
        let patience = Some(Duration::from_secs(60));
        silent.set_read_timeout(patience).expect("a positive time");
        assert_eq!(silent.read(&mut [0]).expect("the end"), 0);
    }
    let full = secured(|config| config.max_connections = 1);
    let mut silent = TcpStream::connect(full.server.address).expect("it accepts");
    let answer = full.get(&target("ASK {}", ""), "");
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(silent.read(&mut [0]).expect("the end"), 0);
}

#[test]
fn http_without_tls_is_told_so() {
    let secured = secured(|_| {});
    for (method, body) in [("GET", String::new()), ("POST", "x".repeat(1 << 20))] {
        let path = format!("/query?query={}", encode("ASK {}"));
        let mut connection = secured.server.connect();
        // A long body is not read to its end.
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: e\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        connection.write(request.as_bytes());
        let answer = connection.answer(method);
        assert_eq!(answer.status, 400);
        assert!(answer.text().contains("https://"), "{}", answer.text());
    }
    assert_eq!(secured.get("/health", "").status, 200);
}

#[test]
fn files_that_cannot_be_used_are_named_with_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, other) = (made(), made());
    let key = one.signing_key.serialize_pem();
    let encrypted = key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    let broken = key.replace("-----END", "-----ENd");
    for (certificate, key, said) in [
        (None, Some(&*key), "certificate: No such file"),
        (Some(&*one.cert.pem()), None, "key: No such file"),
        (Some("# none\n"), Some(&key), "certificate: no certificate"),
        (Some(&key), Some(&key), "certificate: no certificate"),
        (Some(&one.cert.pem()), Some(""), "key: no unencrypted"),
        (
            Some(&one.cert.pem()),
            Some(&encrypted),
            "key: no unencrypted",
        ),
        (
            Some(&one.cert.pem()),
            Some(&broken),
            "key: a section of PEM",
        ),
        (Some(&other.cert.pem()), Some(&key), "key: the key does not"),
    ] {
        let files = [("certificate", certificate), ("key", key)];
        let paths = files.map(|(name, text)| {
            let path = folder.path().join(name);
            let _absent = std::fs::remove_file(&path);
            if let Some(text) = text {
                std::fs::write(&path, text).expect("written");
            }
            path
        });
        let [certificate, key] = paths;
        let error = Tls::read(certificate, key).expect_err(said).to_string();
        assert!(error.contains(said), "{said}: {error}");
    }
}
