//! How is a store copied, or are its changes merged, that a server has open, and what may clients
//! do to the socket by which they ask for it?
#![cfg(unix)]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use tempfile::TempDir;

const DATA: &str = "<http://e/a> <http://e/p> <http://e/b> .\n";

/// Far longer than anything takes: who does not answer should fail, not hang.
const LONG: Duration = Duration::from_secs(60);

fn output(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jindou"));
    command.current_dir(folder).args(arguments);
    command.output().unwrap()
}

/// What a command prints, on standard output and then on standard error.
#[track_caller]
fn run(folder: &Path, arguments: &[&str]) -> String {
    let output = output(folder, arguments);
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success(), "{arguments:?}: {said}");
    said
}

#[track_caller]
fn refused(folder: &Path, arguments: &[&str], parts: &[&str]) {
    let output = output(folder, arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_says(&said, parts);
}

#[track_caller]
fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
}

/// A folder with a store of one triple.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("data.nt"), DATA).unwrap();
    run(folder.path(), &["load", "--location", "store", "data.nt"]);
    folder
}

fn backup(folder: &Path, to: &str) -> String {
    run(folder, &["backup", "--location", "store", "--to", to])
}

/// How many triples a store holds, which nobody has open.
fn count(folder: &Path, location: &str) -> u64 {
    let query = "SELECT (COUNT(*) AS ?n) WHERE { ?s ?p ?o }";
    let arguments = ["query", "--location", location, "--query", query];
    let answer = run(
        folder,
        &[&arguments[..], &["--results-format", "csv"]].concat(),
    );
    answer.lines().nth(1).unwrap().parse().unwrap()
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

/// A server, which ends however the test ends.
struct Serving {
    child: Child,
    /// What it says on standard error.
    said: BufReader<ChildStderr>,
    /// What it said before it served.
    first: String,
    address: String,
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended by itself, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Serving {
    fn start(folder: &Path, location: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_jindou"))
            .current_dir(folder)
            .args(["serve", "--location", location, "--bind", "127.0.0.1:0"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut first = String::new();
        let address = loop {
            let begin = first.len();
            assert_ne!(said.read_line(&mut first).unwrap(), 0, "{first}");
            if let Some((_, rest)) = first[begin..].split_once("http://") {
                break rest.split('/').next().unwrap().to_owned();
            }
        };
        Self {
            child,
            said,
            first,
            address,
        }
    }

    /// Ends it as service managers do; gives what it said at last.
    fn end(mut self) -> String {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status().unwrap();
        assert!(sent.success());
        let mut rest = String::new();
        self.said.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success(), "{rest}");
        rest
    }
}

/// Has the server at an address do an update, and waits until that is acknowledged.
fn update(address: &str, update: &str) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    write!(
        stream,
        "POST /update HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/sparql-update\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{update}",
        update.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
}

#[test]
fn a_served_store_is_backed_up_while_updates_come_in() {
    let folder = folder();
    let path = folder.path();
    let server = Serving::start(path, "store");
    assert!(!server.first.contains("warning"), "{}", server.first);
    let address = &server.address;
    let (before, said) = std::thread::scope(|scope| {
        let (acknowledged, acknowledgements) = mpsc::channel();
        // Until nobody wants to know any more.
        scope.spawn(move || {
            for number in 1_u64.. {
                let triple = format!("<http://e/s{number}> <http://e/n> {number}");
                update(address, &format!("INSERT DATA {{ {triple} }}"));
                if acknowledged.send(number).is_err() {
                    break;
                }
            }
        });
        let wait = || acknowledgements.recv_timeout(LONG).unwrap();
        assert_eq!(wait(), 1);
        let second = wait();
        let before = acknowledgements.try_iter().last().unwrap_or(second);
        let said = backup(path, "copies/monday");
        // Both what came in meanwhile and what comes in afterwards.
        let last = acknowledgements.try_iter().last().unwrap_or(before);
        assert!(wait() > last);
        (before, said)
    });
    assert_says(
        &said,
        &["wrote ", " quads, ", "shares", "to copies/monday in"],
    );
    run(path, &["verify", "--location", "copies/monday"]);
    let triples = count(path, "copies/monday");
    assert!(triples > before, "{triples} triples after {before} updates");
    assert_says(&said.replace(',', ""), &[&format!("wrote {triples} quads")]);
    assert!(!path.join("copies/monday/control.sock").exists());
    // It is the store of one moment: the updates up to one, and none after it.
    let last = triples - 1;
    let ask = format!("ASK {{ <http://e/s{last}> ?p {last} }}");
    let arguments = ["query", "--location", "copies/monday", "--query", &ask];
    assert_eq!(run(path, &arguments), "true\n");
    let again = ["backup", "--location", "store", "--to", "copies/monday"];
    refused(path, &again, &["copies/monday", "not empty"]);
    server.end();
}

#[test]
fn the_socket_is_there_for_its_owner_while_the_server_is() {
    let folder = folder();
    let path = folder.path();
    let socket = path.join("store/control.sock");
    let server = Serving::start(path, "store");
    assert!(is_socket(&socket));
    let mode = fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    server.end();
    assert!(!socket.exists());
    // Also where the store is made for the server.
    let server = Serving::start(path, "new");
    run(path, &["backup", "--location", "new", "--to", "copy"]);
    server.end();
    assert_eq!(count(path, "copy"), 0);
}

#[test]
fn the_socket_of_a_killed_server_is_in_nobodys_way() {
    let folder = folder();
    let path = folder.path();
    let socket = path.join("store/control.sock");
    drop(Serving::start(path, "store"));
    assert!(is_socket(&socket), "the test needs a socket that is left");
    let verified = run(path, &["verify", "--location", "store"]);
    assert!(!verified.contains("control.sock"), "{verified}");
    run(path, &["compact", "--location", "store"]);
    run(path, &["load", "--location", "store", "data.nt"]);
    backup(path, "first");
    run(
        path,
        &["restore", "--from", "store", "--location", "second"],
    );
    for copy in ["first", "second"] {
        assert!(!is_socket(&path.join(copy).join("control.sock")));
        assert_eq!(count(path, copy), 1);
    }
    assert!(is_socket(&socket), "no server took it");
    let server = Serving::start(path, "store");
    assert!(!server.first.contains("warning"), "{}", server.first);
    backup(path, "third");
    server.end();
    assert!(!socket.exists());
}

#[test]
fn a_store_may_have_a_path_too_long_for_a_socket() {
    let folder = folder();
    let long = folder.path().join("a".repeat(120)).join("b".repeat(120));
    fs::create_dir_all(&long).unwrap();
    fs::rename(folder.path().join("store"), long.join("store")).unwrap();
    let store = long.join("store");
    let location = store.to_str().unwrap();
    let server = Serving::start(folder.path(), location);
    if !cfg!(target_os = "linux") {
        assert_says(&server.first, &["warning: ", "control.sock"]);
        return;
    }
    let mode = fs::metadata(store.join("control.sock")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    let arguments = ["backup", "--location", location, "--to", "copy"];
    run(folder.path(), &arguments);
    server.end();
    assert!(!store.join("control.sock").exists());
    assert_eq!(count(folder.path(), "copy"), 1);
}

/// A connection to the socket of the store.
fn connect(folder: &Path) -> UnixStream {
    let stream = UnixStream::connect(folder.join("store/control.sock")).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.set_write_timeout(Some(LONG)).unwrap();
    stream
}

#[test]
fn whatever_is_sent_to_the_socket_the_server_goes_on() {
    let folder = folder();
    let path = folder.path();
    let server = Serving::start(path, "store");
    let reply = |sent: &[u8]| {
        let mut stream = connect(path);
        // The server may have had enough before all is sent.
        let _ = stream.write_all(sent);
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        let reply: serde_json::Value = serde_json::from_str(&line).unwrap();
        reply["error"].as_str().unwrap().to_owned()
    };
    for garbage in [
        &b"backup, please\n"[..],
        b"\n",
        b"\xff\0\n",
        b"{\"drop\": {}}\n",
        b"{\"compact\": {\"to\": 1}}\n",
    ] {
        assert_says(&reply(garbage), &["not understood"]);
    }
    let relative = br#"{"backup": {"to": "copy"}}"#;
    assert_says(&reply(&[relative, &b"\n"[..]].concat()), &["absolute path"]);
    assert_says(&reply(&vec![b'x'; 1 << 20]), &["longer than 65536 bytes"]);
    // Gone at once, in the middle of a line, and before the answer.
    drop(connect(path));
    connect(path).write_all(&relative[..9]).unwrap();
    connect(path).write_all(b"?\n").unwrap();
    let silent: Vec<UnixStream> = (0..4).map(|_| connect(path)).collect();
    update(
        &server.address,
        "INSERT DATA { <http://e/c> <http://e/p> 1 }",
    );
    backup(path, "copy");
    assert_eq!(count(path, "copy"), 2);
    // Nor does anyone who says nothing keep it from ending.
    assert_says(&server.end(), &["Ctrl-C again"]);
    drop(silent);
}

#[test]
fn a_store_in_use_by_something_without_a_socket_is_not_backed_up() {
    let folder = folder();
    let path = folder.path();
    let store = path.join("store");
    let held = jindou_engine::Database::open(&store, jindou_engine::Config::default()).unwrap();
    let arguments = ["backup", "--location", "store", "--to", "copy"];
    let parts = ["store", "another process is using", "a server does it"];
    refused(path, &arguments, &parts);
    refused(path, &["compact", "--location", "store"], &parts);
    // One that nobody listens at.
    drop(UnixListener::bind(store.join("control.sock")).unwrap());
    refused(path, &arguments, &[&parts[..], &["refused"]].concat());
    drop(held);
    let left = fs::read_dir(path).unwrap();
    let names = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(!names.into_iter().any(|name| name.contains("copy")));
}

/// As of a process that is killed while it makes a backup.
#[test]
fn a_server_that_goes_away_is_no_success() {
    let folder = folder();
    let path = folder.path();
    let store = path.join("store");
    let held = jindou_engine::Database::open(&store, jindou_engine::Config::default()).unwrap();
    let listener = UnixListener::bind(store.join("control.sock")).unwrap();
    let hang_up = std::thread::spawn(move || drop(listener.accept().unwrap()));
    let arguments = ["backup", "--location", "store", "--to", "copy"];
    refused(path, &arguments, &["the server was gone", "copy"]);
    hang_up.join().unwrap();
    drop(held);
}

#[test]
fn a_file_of_the_sockets_name_is_left_alone_and_the_store_is_served() {
    let folder = folder();
    let path = folder.path();
    let file = path.join("store/control.sock");
    fs::write(&file, "mine").unwrap();
    let server = Serving::start(path, "store");
    let warnings: Vec<&str> = server
        .first
        .lines()
        .filter(|l| l.contains("warning"))
        .collect();
    assert_eq!(warnings.len(), 1, "{}", server.first);
    assert_says(warnings[0], &["control.sock", "jindou backup"]);
    update(
        &server.address,
        "INSERT DATA { <http://e/c> <http://e/p> 1 }",
    );
    let arguments = ["backup", "--location", "store", "--to", "copy"];
    refused(path, &arguments, &["another process is using"]);
    server.end();
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    assert_eq!(count(path, "store"), 2);
}

#[test]
fn the_changes_of_a_served_store_are_merged() {
    let folder = folder();
    let path = folder.path();
    let server = Serving::start(path, "store");
    let base = |merge: u64| path.join(format!("store/base-1-{merge}.jnd"));
    let compact = ["compact", "--location", "store"];
    assert_says(&run(path, &compact), &["no changes", "on disk"]);
    update(
        &server.address,
        "INSERT DATA { <http://e/c> <http://e/p> 1 }",
    );
    assert!(base(0).exists());
    assert_says(
        &run(path, &compact),
        &[
            "merged 1 added or removed quads in ",
            "has 2 quads; ",
            "on disk",
        ],
    );
    assert!(base(1).exists() && !base(0).exists());
    // Updates go to what was merged.
    update(
        &server.address,
        "INSERT DATA { <http://e/d> <http://e/p> 1 }",
    );
    assert_says(
        &run(path, &compact),
        &["merged 1 added or removed quads in ", "has 3 quads; "],
    );
    assert_says(&run(path, &compact), &["no changes"]);
    server.end();
    run(path, &["verify", "--location", "store"]);
    assert_eq!(count(path, "store"), 3);
}

#[test]
fn whoever_asks_for_a_merge_may_go_away() {
    let folder = folder();
    let path = folder.path();
    let server = Serving::start(path, "store");
    update(
        &server.address,
        "INSERT DATA { <http://e/c> <http://e/p> 1 }",
    );
    connect(path).write_all(b"{\"compact\": {}}\n").unwrap();
    // Two merges are made one after the other; the first, or else the second, had the change.
    run(path, &["compact", "--location", "store"]);
    assert!(path.join("store/base-1-1.jnd").exists());
    update(
        &server.address,
        "INSERT DATA { <http://e/d> <http://e/p> 1 }",
    );
    server.end();
    assert_eq!(count(path, "store"), 3);
}

#[test]
fn a_server_that_goes_away_before_it_has_merged_is_no_success() {
    let folder = folder();
    let path = folder.path();
    let store = path.join("store");
    let held = jindou_engine::Database::open(&store, jindou_engine::Config::default()).unwrap();
    let listener = UnixListener::bind(store.join("control.sock")).unwrap();
    let hang_up = std::thread::spawn(move || drop(listener.accept().unwrap()));
    let arguments = ["compact", "--location", "store"];
    refused(path, &arguments, &["the server was gone", "merge"]);
    hang_up.join().unwrap();
    drop(held);
}
