//! Is a client let do what its credentials allow, and nothing else?

use std::path::PathBuf;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jindou_server::{AccessPolicy, Credentials, Role, ServerConfig, hash_password, new_token};
use tempfile::TempDir;

use crate::client::{Answer, Running, encode, let_anonymous};
use crate::limits::{ENDLESS, target};

const ASK: &str = "ASK { ?s ?p ?o }";
const INSERT: &str = "INSERT DATA { <http://e/new> <http://e/p> 1 }";
const SPARQL_UPDATE: &str = "Content-Type: application/sparql-update\r\n";

/// A file with a user of each role, whose password is its role, and a server that knows them.
struct Guarded {
    _folder: TempDir,
    file: PathBuf,
    lines: String,
    credentials: Credentials,
    server: Running,
    token: String,
}

fn guarded(configure: impl FnOnce(&mut ServerConfig)) -> Guarded {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("credentials");
    let mut lines = "# name:role:hash\n".to_owned();
    for role in ["read", "write", "admin"] {
        let hash = hash_password(role.as_bytes()).expect("a hash");
        lines.push_str(&format!("{role}er:{role}:{hash}\n"));
    }
    let (token, hash) = new_token().expect("a token");
    lines.push_str(&format!("token:bot:write:{hash}\n"));
    std::fs::write(&file, &lines).expect("written");
    let credentials = Credentials::read(&file).expect("it is right");
    let known = credentials.clone();
    let server = Running::with(|config| {
        config.access = AccessPolicy::known(known);
        configure(config);
    });
    Guarded {
        _folder: folder,
        file,
        lines,
        credentials,
        server,
        token,
    }
}

fn basic(name: &str, password: &str) -> String {
    let given = STANDARD.encode(format!("{name}:{password}"));
    format!("Authorization: Basic {given}\r\n")
}

/// As the user of a role.
fn of(role: &str) -> String {
    basic(&format!("{role}er"), role)
}

fn ask(server: &Running, headers: &str) -> Answer {
    server.get(&format!("/query?query={}", encode(ASK)), headers)
}

#[test]
fn a_client_without_credentials_is_asked_for_them() {
    let guarded = guarded(|_| {});
    let refused = ask(&guarded.server, "");
    assert_eq!(refused.status, 401);
    let challenge = refused.header("www-authenticate").expect("a challenge");
    assert!(
        challenge.starts_with("Basic realm=\"jindou\""),
        "{challenge}"
    );
    assert!(
        refused.text().contains("the role read"),
        "{}",
        refused.text()
    );
    for path in ["/", "/live", "/store", "/streams", "/nothing"] {
        assert_eq!(guarded.server.get(path, "").status, 401, "{path}");
    }
    assert_eq!(guarded.server.get("/health", "").status, 200);
    let preflight =
        "Host: localhost\r\nOrigin: http://localhost\r\nAccess-Control-Request-Method: POST\r\n";
    let options = guarded.server.send("OPTIONS", "/query", preflight, "");
    assert_eq!(options.status, 204);
}

#[test]
fn each_role_may_do_what_those_below_it_may() {
    let Guarded { server, .. } = &guarded(|_| {});
    let definition = r#"{"iri":"http://e/stream"}"#;
    let json = "Content-Type: application/json\r\n";
    let lines = "Content-Type: text/tab-separated-values\r\n";
    let text = "Content-Type: text/turtle\r\n";
    for (method, path, headers, body, least) in [
        ("GET", "/", "", "", 0),
        ("GET", "/live", "", "", 0),
        ("GET", "/query?query=ASK%7B%7D", "", "", 0),
        ("GET", "/store?default", "", "", 0),
        ("GET", "/streams", "", "", 0),
        ("POST", "/update", SPARQL_UPDATE, INSERT, 1),
        (
            "POST",
            "/store?default",
            text,
            "<http://e/a> <http://e/b> 1 .",
            1,
        ),
        ("PUT", "/streams/s", json, definition, 2),
        (
            "POST",
            "/streams/s",
            lines,
            "1\t<http://e/a> <http://e/b> <http://e/c> .\n",
            1,
        ),
        ("GET", "/streams/s", "", "", 0),
        ("DELETE", "/streams/s", "", "", 2),
        ("GET", "/metrics", "", "", 2),
        ("GET", "/queries", "", "", 2),
    ] {
        for (level, role) in ["read", "write", "admin"].into_iter().enumerate() {
            let headers = format!("{headers}{}", of(role));
            let answer = server.send(method, path, &headers, body);
            let what = format!("{role}: {method} {path}");
            if level < least {
                assert_eq!(answer.status, 403, "{what}");
                let needed = ["read", "write", "admin"][least];
                let said = format!("needs the role {needed}; {role}er has {role}");
                assert!(answer.text().contains(&said), "{what}: {}", answer.text());
            } else {
                assert!(
                    answer.status < 300 || answer.status == 404,
                    "{what}: {answer:?}"
                );
            }
        }
    }
}

#[test]
fn a_reader_lists_no_queries_however_many_slashes_it_writes() {
    let Guarded { server, .. } = &guarded(|config| let_anonymous(config, Role::Read));
    for path in ["/queries", "/queries/", "/queries//", "/queries///"] {
        for headers in [String::new(), of("read"), of("admin")] {
            let answer = server.get(path, &headers);
            let text = answer.text();
            let lists = text.contains("\"queries\"");
            let may = headers == of("admin") && !path.ends_with("//");
            assert_eq!(lists, may, "{path} {headers}: {} {text}", answer.status);
        }
    }
}

#[test]
fn who_has_the_id_of_a_query_may_end_it() {
    let Guarded { server, .. } = &guarded(|_| {});
    let mut connection = server.connect();
    connection.send("GET", &target(ENDLESS, ""), &of("write"), "");
    let head = connection.head();
    let id = head.header("jindou-query-id").expect("an id");
    let path = format!("/queries/{id}");
    assert_eq!(server.send("DELETE", &path, "", "").status, 401);
    let ended = server.send("DELETE", &path, &of("read"), "");
    assert_eq!(ended.status, 204);
}

#[test]
fn an_update_needs_the_role_wherever_it_is_sent() {
    let Guarded { server, .. } = &guarded(|_| {});
    for path in ["/query", "/sparql", "/", "/update"] {
        let headers = format!("{SPARQL_UPDATE}{}", of("read"));
        assert_eq!(
            server.send("POST", path, &headers, INSERT).status,
            403,
            "{path}"
        );
    }
    let form = format!(
        "Content-Type: application/x-www-form-urlencoded\r\n{}",
        of("read")
    );
    let body = format!("update={}", encode(INSERT));
    for path in ["/query", "/update"] {
        let answer = server.send("POST", path, &form, &body);
        assert!(answer.status >= 400, "{path}: {}", answer.status);
    }
    let new = server.get(
        "/query?query=ASK%7B%3Chttp%3A%2F%2Fe%2Fnew%3E%20%3Fp%20%3Fo%7D",
        &of("read"),
    );
    assert_eq!(new.json()["boolean"], false);
}

#[test]
fn a_token_is_as_good_as_a_name_and_a_password() {
    let Guarded { server, token, .. } = &guarded(|_| {});
    let bearer = format!("Authorization: Bearer {token}\r\n");
    assert_eq!(ask(server, &bearer).status, 200);
    let update = format!("{SPARQL_UPDATE}{bearer}");
    assert_eq!(server.send("POST", "/update", &update, INSERT).status, 204);
    assert_eq!(server.get("/metrics", &bearer).status, 403);
    let wrong = format!("Authorization: Bearer x{token}\r\n");
    assert_eq!(ask(server, &wrong).status, 401);
}

#[test]
fn what_is_wrong_is_not_taken_for_an_anonymous_client() {
    let Guarded { server, .. } = &guarded(|config| let_anonymous(config, Role::Read));
    assert_eq!(ask(server, "").status, 200);
    let update = server.send("POST", "/update", SPARQL_UPDATE, INSERT);
    assert_eq!(update.status, 401);
    for wrong in [
        basic("reader", "wrong"),
        basic("nobody", "read"),
        "Authorization: Basic !\r\n".to_owned(),
        "Authorization: Digest x\r\n".to_owned(),
    ] {
        assert_eq!(ask(server, &wrong).status, 401, "{wrong}");
    }
    let twice = format!("{}{}", of("read"), of("read"));
    assert_eq!(ask(server, &twice).status, 400);
}

#[test]
fn wrong_tries_of_an_address_are_limited_and_known_clients_go_on() {
    let Guarded { server, .. } = &guarded(|_| {});
    assert_eq!(ask(server, &of("read")).status, 200);
    let mut tries = 0;
    let limited = loop {
        let answer = ask(server, &basic("reader", &format!("wrong{tries}")));
        if answer.status == 429 {
            break answer;
        }
        assert_eq!(answer.status, 401);
        tries += 1;
        // More than the burst: one comes back every six seconds.
        assert!(tries < 50, "never limited");
    };
    assert!(tries >= 10, "{tries}");
    let wait: u32 = limited
        .header("retry-after")
        .expect("a time")
        .parse()
        .expect("seconds");
    assert!((1..=6).contains(&wait), "{wait}");
    assert_eq!(ask(server, &of("read")).status, 200, "it is known");
}

#[test]
fn a_file_that_changes_is_read_again_and_one_that_is_wrong_is_not_taken() {
    let guarded = guarded(|_| {});
    let server = &guarded.server;
    assert_eq!(ask(server, &of("read")).status, 200);
    std::fs::write(&guarded.file, "reader:read:plain\n").expect("written");
    let error = guarded
        .credentials
        .reread()
        .expect_err("no hash")
        .to_string();
    assert!(error.contains("line 1"), "{error}");
    assert_eq!(ask(server, &of("read")).status, 200, "as they were");
    let kept: String = guarded
        .lines
        .lines()
        .filter(|line| !line.starts_with("reader"))
        .map(|line| format!("{line}\n"))
        .collect();
    std::fs::write(&guarded.file, kept).expect("written");
    // Nobody tells the server.
    let give_up = Instant::now() + Duration::from_secs(60);
    while ask(server, &of("read")).status != 401 {
        assert!(Instant::now() < give_up, "never read again");
        std::thread::yield_now();
    }
    assert_eq!(ask(server, &of("admin")).status, 200);
}

#[test]
fn an_address_asks_as_often_as_it_may() {
    let server = Running::with(|config| {
        config.requests_per_second = std::num::NonZeroU32::new(2);
    });
    let mut connection = server.connect();
    let mut limited = None;
    for _ in 0..50 {
        connection.send("GET", "/live", "", "");
        let answer = connection.answer("GET");
        if answer.status == 429 {
            limited = Some(answer);
            break;
        }
        assert_eq!(answer.status, 200);
    }
    let limited = limited.expect("fifty take no twenty-five seconds");
    assert_eq!(limited.header("retry-after"), Some("1"));
    assert_eq!(server.get("/health", "").status, 200);
}
