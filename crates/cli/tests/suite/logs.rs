//! Do the options of logs do what they say, and can logs be rotated?

use std::fs::read_to_string;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use serde_json::Value;

/// A server, which ends with this.
struct Served {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStderr>>,
    address: String,
}

impl Served {
    fn new(folder: &Path, options: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_jindou"))
            .current_dir(folder)
            .args(["serve", "--bind", "127.0.0.1:0"])
            .args(options)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines.by_ref().find_map(|line| {
            let line = line.unwrap();
            let (_, rest) = line.split_once("serving at http://")?;
            Some(rest.split('/').next().unwrap().to_owned())
        });
        let address = address.expect("it serves");
        Self {
            child,
            lines,
            address,
        }
    }

    fn ask(&self, path: &str) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: e\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }

    #[cfg(unix)]
    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([name, &pid]).status().unwrap();
        assert!(sent.success());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(unix)]
#[test]
fn logs_are_whole_at_the_end_and_opened_again_on_a_hangup() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let served = &mut Served::new(
        at,
        &[
            "--access-log",
            "access",
            "--slow-queries",
            "0.000001s",
            "--slow-query-log",
            "slow",
            "--log-format",
            "json",
        ],
    );
    served.ask("/query?query=ASK%7B%7D");
    while std::fs::metadata(at.join("access")).unwrap().len() == 0 {
        std::thread::yield_now();
    }
    std::fs::rename(at.join("access"), at.join("access.1")).unwrap();
    served.signal("-HUP");
    while !at.join("access").exists() {
        std::thread::yield_now();
    }
    served.ask("/query?query=ASK%7B%20%7D");
    served.signal("-TERM");
    assert!(served.child.wait().unwrap().success());
    for (file, count) in [("access.1", 1), ("access", 1), ("slow", 2)] {
        let text = read_to_string(at.join(file)).unwrap();
        let lines = text.lines().map(serde_json::from_str);
        let lines: Vec<Value> = lines.collect::<Result<_, _>>().unwrap();
        assert_eq!(lines.len(), count, "{file}: {text}");
        let field = match file {
            "slow" => "query",
            _ => "path",
        };
        assert!(lines.iter().all(|line| line[field].is_string()), "{text}");
    }
    for line in served.lines.by_ref() {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        assert!(line["message"].is_string(), "{line}");
    }
}

#[test]
fn a_log_may_go_to_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    let both = [
        "--access-log",
        "-",
        "--slow-query-log",
        "-",
        "--slow-queries",
        "0",
    ];
    let mut served = Served::new(folder.path(), &both);
    served.ask("/query?query=ASK%7B%7D");
    let lines = BufReader::new(served.child.stdout.take().unwrap()).lines();
    let mut lines: Vec<String> = lines.map(Result::unwrap).take(2).collect();
    lines.sort();
    assert!(lines[0].starts_with("127.0.0.1 - - ["), "{lines:?}");
    let slow = &lines[1];
    assert!(
        slow.starts_with("time=") && slow.ends_with(" query=\"ASK{}\""),
        "{lines:?}"
    );
}

#[test]
fn a_log_that_cannot_be_written_ends_the_start() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, said) in [
        (
            &["--access-log", "no/log"][..],
            "--access-log no/log: No such file",
        ),
        (&["--slow-queries", "1s"], "--slow-query-log <FILE>"),
        (&["--slow-query-log", "-"], "--slow-queries <TIME>"),
        (
            &["--slow-queries", "-1", "--slow-query-log", "-"],
            "give more than 0 seconds",
        ),
        (&["--log-format", "xml"], "possible values: text, json"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jindou"));
        command.current_dir(folder.path()).arg("serve");
        let output = command.args(arguments).output().unwrap();
        assert!(!output.status.success());
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains(said), "{arguments:?}: {told}");
    }
}
