//! A server as a process of its own, which can be killed.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// The program, if there is one with the clients that the tests need.
pub(crate) fn program() -> Result<String, String> {
    std::env::var("JINDOU_BIN").map_err(|_| {
        "JINDOU_BIN names no program built with the features kafka and mqtt; `cargo xtask test --brokers` \
         does"
            .to_owned()
    })
}

pub(crate) struct Serving {
    child: Child,
    url: String,
    agent: ureq::Agent,
}

impl Serving {
    /// Serves the store in a folder, and may connect to a broker.
    pub(crate) fn start(program: &str, store: &Path, broker: &str) -> Self {
        let mut child = Command::new(program)
            .args([
                "serve",
                "--bind",
                "127.0.0.1:0",
                "--allow-broker",
                broker,
                "--location",
            ])
            .arg(store)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program is there");
        let mut said = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut all = String::new();
        let address = loop {
            let mut line = String::new();
            assert_ne!(
                said.read_line(&mut line).expect("it is text"),
                0,
                "it ended: {all}"
            );
            if let Some((_, rest)) = line.split_once("http://") {
                break rest.split('/').next().expect("there is a first").to_owned();
            }
            all.push_str(&line);
        };
        // The rest is shown where a test fails.
        std::thread::spawn(move || {
            let mut rest = String::new();
            let _read = said.read_to_string(&mut rest);
            print!("{rest}");
        });
        let config = ureq::Agent::config_builder().http_status_as_error(false);
        Self {
            child,
            url: format!("http://{address}"),
            agent: config.build().into(),
        }
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it was started");
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn end(mut self) {
        let id = self.child.id().to_string();
        let asked = Command::new("kill")
            .arg(id)
            .status()
            .expect("there is kill");
        assert!(asked.success());
        assert!(self.child.wait().expect("it was started").success());
    }

    pub(crate) fn put(&self, path: &str, body: &str) -> (u16, String) {
        let request = self.agent.put(format!("{}{path}", self.url));
        let kind = if body.starts_with('{') {
            "application/json"
        } else {
            "text/plain"
        };
        let mut answer = request.content_type(kind).send(body).expect("it answers");
        let text = answer.body_mut().read_to_string().expect("it is text");
        (answer.status().as_u16(), text)
    }

    #[track_caller]
    pub(crate) fn makes(&self, path: &str, body: &str) {
        let (status, text) = self.put(path, body);
        assert_eq!(status, 201, "{text}");
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        serde_json::from_str(&self.text(path)).expect("it is JSON")
    }

    pub(crate) fn text(&self, path: &str) -> String {
        let request = self.agent.get(format!("{}{path}", self.url));
        let mut answer = request.call().expect("it answers");
        let text = answer.body_mut().read_to_string().expect("it is text");
        assert_eq!(answer.status().as_u16(), 200, "{text}");
        text
    }

    pub(crate) fn post(&self, path: &str) {
        let request = self.agent.post(format!("{}{path}", self.url));
        let answer = request.send_empty().expect("it answers");
        assert_eq!(answer.status().as_u16(), 204);
    }

    /// Pushes lines.
    pub(crate) fn push(&self, path: &str, lines: &str) {
        let request = self.agent.post(format!("{}{path}", self.url));
        let answer = request
            .content_type("text/tab-separated-values")
            .send(lines);
        assert_eq!(answer.expect("it answers").status().as_u16(), 200);
    }

    pub(crate) fn delete(&self, path: &str) -> u16 {
        let request = self.agent.delete(format!("{}{path}", self.url));
        request.call().expect("it answers").status().as_u16()
    }

    /// The rows of a query, each with its values, in order.
    pub(crate) fn rows(&self, query: &str) -> Vec<Vec<String>> {
        let request = self.agent.post(format!("{}/query?format=json", self.url));
        let mut answer = request
            .content_type("application/sparql-query")
            .send(query)
            .expect("it answers");
        let body = answer.body_mut().with_config().limit(1 << 30);
        let text = body.read_to_string().expect("it is text");
        rows(&serde_json::from_str(&text).expect("it is JSON"))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for path in ["streams", "continuous", "continuous/q/sinks"] {
                let asked = self.agent.get(format!("{}/{path}", self.url)).call();
                let said = asked.map(|mut answer| answer.body_mut().read_to_string());
                println!("{path}: {said:?}");
            }
        }
        // It may have ended.
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// The values of all rows of a result, in order.
pub(crate) fn rows(result: &Value) -> Vec<Vec<String>> {
    let names = result["head"]["vars"].as_array().expect("it has variables");
    let bindings = result["results"]["bindings"]
        .as_array()
        .expect("it has rows");
    let cell = |row: &Value, name: &Value| {
        let value = &row[name.as_str().expect("a name")]["value"];
        value.as_str().unwrap_or_default().to_owned()
    };
    let row = |row: &Value| names.iter().map(|name| cell(row, name)).collect();
    let mut rows: Vec<Vec<String>> = bindings.iter().map(row).collect();
    rows.sort();
    rows
}
