//! Is one address enough for clients of a cluster, while a node is killed and comes back? And does a person see how its
//! nodes are?

use std::path::Path;
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::Value;

use super::{
    EndOnDrop, KILLS, NAMES, Node, PEOPLE, QUERIES, ask, folder, get, jindou, listen, said, sorted,
    succeeds, update, wait_for,
};

/// Copies of a store, of which the first node of the list leads, at ports that stay.
pub(crate) struct Copies<'a> {
    pub(crate) folder: &'a Path,
    ports: [u16; 3],
}

impl<'a> Copies<'a> {
    pub(crate) fn new(folder: &'a Path) -> Self {
        for name in NAMES {
            succeeds(folder, &["backup", "--location", "store", "--to", name]);
        }
        let ports = NAMES.map(|_| listen().local_addr().unwrap().port());
        Self { folder, ports }
    }

    pub(crate) fn start(&self, number: usize) -> Node {
        let (name, port) = (NAMES[number], self.ports[number]);
        let mut command = jindou(self.folder);
        command.args([
            "serve",
            "--location",
            name,
            "--peers",
            "nodes.toml",
            "--node",
            name,
        ]);
        command.args(["--bind", &format!("127.0.0.1:{port}")]);
        Node::of(command)
    }

    pub(crate) fn urls(&self) -> [String; 3] {
        self.ports.map(|port| format!("http://127.0.0.1:{port}"))
    }

    /// A proxy before all of them.
    fn proxy(&self) -> Node {
        let mut command = jindou(self.folder);
        command
            .args(["proxy", "--bind", "127.0.0.1:0"])
            .args(self.urls());
        Node::started(command, "a proxy at ")
    }

    fn status(&self, options: &[&str]) -> Output {
        let mut command = jindou(self.folder);
        command
            .args(["cluster", "status"])
            .args(options)
            .args(self.urls());
        command.output().unwrap()
    }

    pub(crate) fn wait_until_whole(&self) {
        wait_for("all copies are in sync", || {
            self.status(&[]).status.success().then_some(())
        });
    }
}

#[test]
fn no_query_fails_while_a_node_behind_a_proxy_is_killed_and_comes_back() {
    let folder = folder();
    let copies = Copies::new(folder.path());
    let mut nodes = [0, 1, 2].map(|number| Some(copies.start(number)));
    copies.wait_until_whole();
    let proxy = copies.proxy();
    let expected = QUERIES.map(|(query, _, media_type)| {
        let (status, text) = proxy.ask(query, media_type);
        assert_eq!(status, 200, "{query}: {text}");
        sorted(&text)
    });
    assert_eq!(expected[1].len(), 1 + 4 * PEOPLE);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (is_over, expected, url) = (&is_over, &expected, &proxy.url);
        let ask_all = move || {
            let mut answered = 0;
            while !is_over.load(Ordering::Relaxed) {
                for ((query, _, media_type), expected) in QUERIES.iter().zip(expected) {
                    let (status, text) = ask(url, query, media_type);
                    assert_eq!((status, &sorted(&text)), (200, expected), "{query}: {text}");
                    answered += 1;
                }
            }
            answered
        };
        let askers = [0; 3].map(|_| scope.spawn(ask_all));
        // Nobody asks for ever where this fails.
        let _end = EndOnDrop(is_over);
        for round in 0..KILLS {
            let number = 1 + round % 2;
            // SIGKILL.
            nodes[number] = None;
            wait_for("the proxy misses it", || {
                let (status, text) = get(url, "/health", "*/*");
                assert_eq!(status, 200, "{text}");
                text.contains("\"away\"").then_some(())
            });
            let insert = format!("INSERT DATA {{ <http://new/s> <http://new/p> {round} }}");
            let (status, text) = update(url, &insert);
            assert_eq!(status, 204, "{text}");
            let is_there = format!("ASK {{ <http://new/s> <http://new/p> {round} }}");
            // Wherever it is asked.
            for _ in NAMES {
                let (status, text) = ask(url, &is_there, "text/csv");
                assert!(status == 200 && text.contains("true"), "{status}: {text}");
            }
            nodes[number] = Some(copies.start(number));
            copies.wait_until_whole();
        }
        is_over.store(true, Ordering::Relaxed);
        for asker in askers {
            assert!(asker.join().unwrap() > 0);
        }
    });
    let (_, metrics) = get(&proxy.url, "/metrics", "*/*");
    for name in NAMES {
        let counted = format!("jindou_proxy_requests_total{{node=\"{name}\",code=\"200\"}} ");
        assert!(metrics.contains(&counted), "{metrics}");
    }
    let wrong = proxy.ask("SELCT", "*/*");
    assert_eq!(wrong, nodes[0].as_ref().unwrap().ask("SELCT", "*/*"));
}

#[test]
fn a_person_sees_how_the_nodes_are() {
    let folder = folder();
    let copies = Copies::new(folder.path());
    let mut nodes = [0, 1, 2].map(|number| Some(copies.start(number)));
    copies.wait_until_whole();
    let (status, text) = update(
        &copies.urls()[2],
        "INSERT DATA { <http://new/s> <http://new/p> 1 }",
    );
    assert_eq!(status, 204, "{text}");
    let whole = copies.status(&[]);
    assert!(whole.status.success(), "{}", said(&whole));
    let table = String::from_utf8(whole.stdout).unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows.len(), 4, "{table}");
    let urls = copies.urls();
    for (number, row) in rows[1..].iter().enumerate() {
        assert_eq!(
            (row[0], row[2], row[3]),
            (NAMES[number], &*urls[number], "here"),
            "{table}"
        );
        assert_eq!(row[7], if number == 0 { "6" } else { "5" }, "{table}");
    }
    assert!(
        table.contains("leads") && table.contains("follows"),
        "{table}"
    );
    nodes[1] = None;
    let failing = copies.status(&["--format", "json"]);
    assert_eq!(failing.status.code(), Some(1));
    let told: Value = serde_json::from_slice(&failing.stdout).unwrap();
    assert_eq!(told["is_whole"], false);
    assert_eq!(told["nodes"][0]["role"], "leads");
    let lines = said(&failing);
    assert!(lines.starts_with("error: "), "{lines}");
    assert!(
        lines.contains(&urls[1]) || lines.contains("b is"),
        "{lines}"
    );
    assert_eq!(lines.lines().count(), 1, "{lines}");
    let wrong = jindou(folder.path())
        .args(["cluster", "status"])
        .output()
        .unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    drop(nodes);
    let none = copies.status(&[]);
    assert_eq!(none.status.code(), Some(1));
    let table = String::from_utf8(none.stdout).unwrap();
    assert_eq!(table.lines().count(), 4, "{table}");
    assert!(table.contains("refused"), "{table}");
}

#[test]
fn what_a_proxy_cannot_use_is_told_on_one_line() {
    let folder = folder();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (options, status, part) in [
        (&["http://a:1/path"][..], 2, "is no URL of a node"),
        (&["ftp://a"], 2, "is no URL of a node"),
        (&[], 2, "<URL>"),
        (&["--bind", "0.0.0.0:0", "http://a:1"], 1, "--insecure"),
        (
            &["--bind", &taken, "http://a:1"],
            1,
            "another program has the port",
        ),
        (
            &["--ca", "none.pem", "http://a:1"],
            1,
            "error: --ca none.pem: ",
        ),
        (
            &["--tls-certificate", "none.pem", "http://a:1"],
            2,
            "--tls-key",
        ),
    ] {
        let output = jindou(folder.path())
            .arg("proxy")
            .args(options)
            .output()
            .unwrap();
        let said = said(&output);
        assert_eq!(output.status.code(), Some(status), "{options:?}: {said}");
        assert!(said.contains(part), "{options:?}: {said}");
    }
}

/// A certificate of this machine and its key, and a token that may read.
fn secure(folder: &Path) -> String {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(folder.join("c.pem"), made.cert.pem()).unwrap();
    std::fs::write(folder.join("k.pem"), made.signing_key.serialize_pem()).unwrap();
    let mut command = jindou(folder);
    command.args([
        "hash-password",
        "--name",
        "bot",
        "--role",
        "read",
        "--token",
    ]);
    let made = command.output().unwrap();
    std::fs::write(folder.join("credentials"), &made.stdout).unwrap();
    let said = said(&made);
    said.trim().rsplit(' ').next().unwrap().to_owned()
}

/// Asks over TLS, with this token.
fn ask_secured(url: &str, token: &str) -> u16 {
    let any = ureq::tls::TlsConfig::builder().disable_verification(true);
    let config = ureq::Agent::config_builder().http_status_as_error(false);
    let agent: ureq::Agent = config.tls_config(any.build()).build().into();
    let request = agent.get(format!("{url}/query?query=ASK+%7B%7D"));
    let request = request.header("Authorization", format!("Bearer {token}"));
    request.call().unwrap().status().as_u16()
}

#[test]
fn nodes_that_speak_tls_and_ask_for_credentials_are_reached() {
    let folder = folder();
    let at = folder.path();
    let token = secure(at);
    let tls = ["--tls-certificate", "c.pem", "--tls-key", "k.pem"];
    let node = Node::start(
        at,
        "a",
        &[&tls[..], &["--credentials", "credentials"]].concat(),
    );
    assert!(node.url.starts_with("https://"), "{}", node.url);
    let proxy = |with_token: bool| {
        let mut command = jindou(at);
        command.env_remove("JINDOU_TOKEN").env_remove("JINDOU_USER");
        command
            .args(["proxy", "--bind", "127.0.0.1:0", "--ca", "c.pem", &node.url])
            .args(tls);
        if with_token {
            command.env("JINDOU_TOKEN", &token);
        }
        Node::started(command, "a proxy at ")
    };
    let knowing = proxy(true);
    assert!(knowing.url.starts_with("https://"), "{}", knowing.url);
    knowing.lines.wait_for("it finds the node", |line| {
        (line == "nodes that are there: a").then_some(())
    });
    // Clients have credentials of their own.
    assert_eq!(ask_secured(&knowing.url, &token), 200);
    assert_eq!(ask_secured(&knowing.url, "other"), 401);
    let unknown = proxy(false);
    unknown.lines.wait_for("it says what it lacks", |line| {
        let is_it =
            line.starts_with("warning: ") && line.contains("401") && line.contains("--token");
        is_it.then_some(())
    });
    assert_eq!(ask_secured(&unknown.url, &token), 200);
    let status = |variable: &str| {
        let mut command = jindou(at);
        command
            .env_remove("JINDOU_TOKEN")
            .env_remove("JINDOU_USER")
            .env(variable, &token);
        command.args(["cluster", "status", "--ca", "c.pem", &node.url]);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let told = status("JINDOU_TOKEN");
    assert!(
        told.lines()
            .any(|row| row.starts_with("a ") && row.contains(" here ")),
        "{told}"
    );
    let told = status("JINDOU_OTHER");
    assert!(told.contains("a token, of the role read"), "{told}");
}
