//! Do the command and the server give the published counts of LUBM?

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// The reference data, or `None`, said aloud, where it is absent.
fn lubm() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/lubm");
    if folder.join("counts.json").is_file() {
        return Some(folder);
    }
    println!("SKIPPED: LUBM counts by the command and over HTTP (../shared/data is absent)");
    None
}

fn jindou(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jindou"));
    command.args(arguments);
    command
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the folder's name is UTF-8")
}

struct Serving(Child, String);

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended by itself; then the test has failed already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server of the store on a port that the system picks.
fn serve(store: &Path) -> Serving {
    let mut child = jindou(&["serve", "--location", text(store), "--bind", "127.0.0.1:0"])
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said: Box<dyn Read + Send> = Box::new(child.stderr.take().unwrap());
    let also: Box<dyn Read + Send> = Box::new(child.stdout.take().unwrap());
    let (sender, receiver) = std::sync::mpsc::channel();
    for stream in [said, also] {
        let sender = sender.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                if let Some((_, rest)) = line.split_once("http://") {
                    let address = rest.split('/').next().unwrap_or_default().to_owned();
                    // Only the first address is waited for.
                    let _ = sender.send(address);
                }
            }
        });
    }
    drop(sender);
    let address = receiver.recv().expect("the server tells its address");
    Serving(child, address)
}

/// The rows of a query over HTTP, counted by their lines in TSV.
fn rows_over_http(address: &str, query: &str) -> u64 {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /query HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Accept: text/tab-separated-values\r\nContent-Type: application/sparql-query\r\n\
         Content-Length: {}\r\n\r\n{query}",
        query.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let terms = answer.lines().filter(|line| line.starts_with('<')).count();
    terms as u64
}

#[test]
fn the_command_and_the_server_give_the_published_counts() {
    let Some(data) = lubm() else { return };
    let counts: Value =
        serde_json::from_slice(&std::fs::read(data.join("counts.json")).unwrap()).unwrap();
    for universities in ["1", "10"] {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store");
        let file = data.join(format!("lubm-{universities}.nt.zst"));
        let loaded = jindou(&["load", "--location", text(&store), text(&file)])
            .output()
            .unwrap();
        assert!(
            loaded.status.success(),
            "{}",
            String::from_utf8_lossy(&loaded.stderr)
        );
        for number in 1..=7 {
            let query = data.join(format!("lubm_q{number}.rq"));
            let asked = [
                "query",
                "--location",
                text(&store),
                "--query-file",
                text(&query),
            ];
            let answer = jindou(&asked)
                .args(["--results-format", "tsv"])
                .output()
                .unwrap();
            let rows = String::from_utf8(answer.stdout).unwrap().lines().count() as u64 - 1;
            let expected = counts[universities][format!("q{number}")].as_u64().unwrap();
            assert_eq!(
                rows, expected,
                "q{number} of LUBM({universities}) by the command"
            );
        }
        let serving = serve(&store);
        for number in 1..=7 {
            let query = std::fs::read_to_string(data.join(format!("lubm_q{number}.rq"))).unwrap();
            let expected = counts[universities][format!("q{number}")].as_u64().unwrap();
            let rows = rows_over_http(&serving.1, &query);
            assert_eq!(
                rows, expected,
                "q{number} of LUBM({universities}) over HTTP"
            );
        }
    }
}
