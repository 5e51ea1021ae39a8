//! Commands that only read a store: do they stand each other's company, and stores that they may not
//! write?
#![cfg(unix)]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use jindou_engine::{Config, Database};
use tempfile::TempDir;

const TURTLE: &str = "<http://e/a> <http://e/p> 1, 2 .";
const READS: [&[&str]; 5] = [
    &[
        "query",
        "--location",
        "store",
        "--query",
        "SELECT * { ?s ?p ?o }",
    ],
    &[
        "explain",
        "--location",
        "store",
        "--query",
        "SELECT * { ?s ?p ?o }",
    ],
    &["dump", "--location", "store"],
    &["stats", "--location", "store"],
    &["verify", "--location", "store"],
];

/// A folder that anybody may look into, with a store that has changes in its log.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(path.join("data.ttl"), TURTLE).unwrap();
    succeeds(command(path, &["load", "--location", "store", "data.ttl"]));
    let update = "INSERT DATA { <http://e/a> <http://e/p> 3 }";
    succeeds(command(
        path,
        &["update", "--location", "store", "--update", update],
    ));
    folder
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jindou"));
    command.current_dir(folder).args(arguments);
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn succeeds(mut command: Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn fails(mut command: Command, part: &str) {
    let output = command.output().unwrap();
    let said = said(&output);
    assert!(!output.status.success() && said.contains(part), "{said}");
}

/// Takes a command's rights away, if those are such that a file's permissions do not count.
fn unprivileged(mut command: Command) -> Command {
    const NOBODY: u32 = 65534;
    if fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0) {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

#[test]
fn commands_that_read_need_no_store_of_their_own() {
    let folder = folder();
    let path = folder.path();
    let held = Database::open_to_copy(&path.join("store"), Config::default()).unwrap();
    for arguments in READS {
        succeeds(command(path, arguments));
    }
    succeeds(command(
        path,
        &["backup", "--location", "store", "--to", "copy"],
    ));
    let update = ["update", "--location", "store", "--update", "CLEAR ALL"];
    for arguments in [
        &update[..],
        &["load", "--location", "store", "data.ttl"],
        &["compact", "--location", "store"],
    ] {
        fails(
            command(path, arguments),
            "another process is using this store",
        );
    }
    drop(held);
    let held = Database::open(&path.join("store"), Config::default()).unwrap();
    for arguments in READS {
        succeeds(command(path, arguments));
    }
    drop(held);
    assert_eq!(succeeds(command(path, READS[2])).lines().count(), 3);
}

#[test]
fn a_store_that_may_not_be_written_can_be_read_and_served() {
    let folder = folder();
    let path = folder.path();
    let store = path.join("store");
    let probe = unprivileged(command(path, &["--version"])).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        println!("SKIPPED: a store that may not be written (another user may not run the program)");
        return;
    }
    let set = |place: &Path, mode| {
        fs::set_permissions(place, fs::Permissions::from_mode(mode)).unwrap();
    };
    for entry in fs::read_dir(&store).unwrap() {
        set(&entry.unwrap().path(), 0o444);
    }
    set(&store, 0o555);
    for arguments in READS {
        succeeds(unprivileged(command(path, arguments)));
    }
    let serve = ["serve", "--location", "store", "--bind", "127.0.0.1:0"];
    fails(
        unprivileged(command(path, &serve)),
        "--read-only serves a store",
    );
    let serve = [&serve[..], &["--read-only"]].concat();
    let servers = [(); 2].map(|()| Served::start(unprivileged(command(path, &serve))));
    for server in &servers {
        assert!(server.line.contains("no updates"), "{}", server.line);
        let answer = server.send("GET /query?query=ASK%7B%3Fs+%3Fp+3%7D");
        assert!(answer.ends_with(r#""boolean":true}"#), "{answer}");
        let answer = server.send("PUT /store?default");
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    }
    drop(servers);
    set(&store, 0o755);
}

#[test]
fn files_are_not_loaded_into_a_store_that_is_served_without_writing_it() {
    let folder = folder();
    let serve = ["serve", "--read-only", "--location", "store", "data.ttl"];
    let serve = [&serve[..], &["--bind", "127.0.0.1:0"]].concat();
    fails(command(folder.path(), &serve), "--read-only changes none");
}

/// A server that ends with this.
struct Served {
    child: Child,
    line: String,
    address: String,
    /// Open for what else it says.
    _lines: BufReader<ChildStderr>,
}

impl Served {
    fn start(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        lines.read_line(&mut line).unwrap();
        let address = line
            .split_once("http://")
            .and_then(|(_, rest)| rest.split_once('/'));
        let address = address.unwrap_or_else(|| panic!("{line}")).0.to_owned();
        Self {
            child,
            line,
            address,
            _lines: lines,
        }
    }

    fn send(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = "HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        stream
            .write_all(format!("{request} {head}").as_bytes())
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.trim_end().to_owned()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
