//! Do processes that load together each get their part, and does none of them get one when another fails?

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Stdio};

use super::{NAMES, Node, QUERIES, jindou, said, sorted, succeeds};

/// A folder with a list of nodes and files of theirs.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let nodes = NAMES.iter().map(|name| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        format!("[[node]]\nname = \"{name}\"\naddress = \"{address}\"\n")
    });
    let list = format!("shards = 16\n{}", nodes.collect::<String>());
    fs::write(at.join("nodes.toml"), list).unwrap();
    let line = |n: usize| {
        let (next, graph) = ((n * 7) % 400, n % 5);
        format!(
            "<http://x/p{n}> <http://x/knows> <http://x/p{next}> .\n\
             <http://x/p{n}> <http://x/name> \"name {n}\" .\n\
             _:b{} <http://x/of> <http://x/p{n}> <http://x/g{graph}> .\n",
            n % 9
        )
    };
    fs::write(at.join("lines.nq"), (0..400).map(line).collect::<String>()).unwrap();
    let turtle = "@prefix x: <http://x/> . x:p1 a x:Person ; x:knows [ x:name \"nobody\" ] .";
    fs::write(at.join("more.ttl"), turtle).unwrap();
    folder
}

fn begin(folder: &Path, name: &str, to: &str, more: &[&str]) -> Child {
    jindou(folder)
        .args([
            "load",
            "--peers",
            "nodes.toml",
            "--node",
            name,
            "--location",
            to,
        ])
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

const FILES: [&str; 2] = ["lines.nq", "more.ttl"];

#[test]
fn processes_that_load_together_have_one_store() {
    let folder = folder();
    let at = folder.path();
    succeeds(at, &["load", "--location", "store", FILES[0], FILES[1]]);
    let nodes = NAMES.map(|name| begin(at, name, &format!("parts/{name}"), &FILES));
    for node in nodes {
        let output = node.wait_with_output().unwrap();
        let said = said(&output);
        assert!(output.status.success(), "{said}");
        assert!(
            said.contains("there are 803 triples and 400 quads of named graphs"),
            "{said}"
        );
        assert!(said.contains("the part of node"), "{said}");
    }
    for name in NAMES {
        succeeds(at, &["verify", "--location", &format!("parts/{name}")]);
    }
    let dump = sorted(&succeeds(at, &["dump", "--location", "store"]));
    let nodes = NAMES.map(|name| Node::start_at(at, &format!("parts/{name}"), name, &[]));
    for (number, node) in nodes.iter().enumerate() {
        let all = "all 3 nodes of the cluster are there";
        node.lines
            .wait_for("all are there", |line| (line == all).then_some(()));
        for (query, format, media_type) in QUERIES {
            let command = [
                "query",
                "--location",
                "store",
                "--results-format",
                format,
                "--query",
                query,
            ];
            let (status, text) = node.ask(query, media_type);
            assert_eq!(status, 200, "{query}: {text}");
            let expected = sorted(&succeeds(at, &command));
            assert_eq!(sorted(&text), expected, "node {number}: {query}");
        }
        let (status, text) = node.get("/store", "application/n-quads");
        assert_eq!(status, 200, "{text}");
        assert_eq!(sorted(&text), dump, "node {number}");
    }
}

/// What processes say of which none gets a part.
fn all_fail(folder: &Path, nodes: [Child; 3]) -> [String; 3] {
    let said = nodes.map(|node| {
        let output = node.wait_with_output().unwrap();
        assert!(!output.status.success(), "{}", said(&output));
        said(&output)
    });
    let left: Vec<_> = fs::read_dir(folder.join("parts"))
        .map(|entries| entries.map(|entry| entry.unwrap().file_name()).collect())
        .unwrap_or_default();
    assert!(left.is_empty(), "{left:?}");
    said
}

#[test]
fn none_gets_a_part_where_one_fails() {
    let folder = folder();
    let at = folder.path();
    fs::write(at.join("bad.nt"), "<http://x/a> <http://x/b> .\n").unwrap();
    let files = ["lines.nq", "bad.nt"];
    let told = all_fail(
        at,
        NAMES.map(|name| begin(at, name, &format!("parts/{name}"), &files)),
    );
    assert!(
        told.iter().any(|said| said.contains("bad.nt:1:27")),
        "{told:?}"
    );
    assert!(
        told.iter()
            .any(|said| said.contains("failed, and nothing was made: bad.nt:1:27")),
        "{told:?}"
    );
    // Two have other files.
    let mine = |number: usize| if number == 0 { &FILES[..1] } else { &FILES[..] };
    let nodes = [0, 1, 2].map(|n| begin(at, NAMES[n], &format!("parts/{}", NAMES[n]), mine(n)));
    let told = all_fail(at, nodes);
    assert!(
        told[0].contains("give all nodes the same files and options"),
        "{told:?}"
    );
    // Nor where one cannot put it into its place, or is killed while they load: and all say so.
    fs::create_dir_all(at.join("taken/x")).unwrap();
    let place = |n: usize| {
        if n == 0 {
            "taken".to_owned()
        } else {
            format!("parts/{}", NAMES[n])
        }
    };
    all_fail(
        at,
        [0, 1, 2].map(|n| begin(at, NAMES[n], &place(n), &["--meet-within", "1s", FILES[0]])),
    );
    let line = |n: usize| format!("<http://x/p{n}> <http://x/name> \"name {n}\" .\n");
    fs::write(
        at.join("long.nt"),
        (0..300_000).map(line).collect::<String>(),
    )
    .unwrap();
    let [mut killed, one, other] = [0, 1, 2].map(|n| {
        begin(
            at,
            NAMES[n],
            &format!("parts/{}", NAMES[n]),
            &["--meet-within", "3s", "long.nt"],
        )
    });
    while !fs::read_dir(at.join("parts")).is_ok_and(|entries| entries.count() == 3) {
        std::thread::yield_now();
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    for node in [one, other] {
        let output = node.wait_with_output().unwrap();
        assert!(!output.status.success(), "{}", said(&output));
        assert!(!said(&output).is_empty());
    }
    fs::remove_dir_all(at.join("parts")).unwrap();
    // One is killed as soon as it waits for the others.
    let mut killed = begin(at, NAMES[2], "parts/c", &FILES);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let more = ["--meet-within", "1s", FILES[0]];
    let node = begin(at, NAMES[0], "parts/a", &more)
        .wait_with_output()
        .unwrap();
    assert!(
        said(&node).contains("b, c not there after 1 s"),
        "{}",
        said(&node)
    );
}

#[test]
fn what_cannot_be_loaded_together_is_refused_by_name() {
    let folder = folder();
    let at = folder.path();
    let refused = |more: &[&str], expected: &str| {
        let output = jindou(at).arg("load").args(more).output().unwrap();
        assert!(!output.status.success(), "{more:?}");
        assert!(
            said(&output).contains(expected),
            "{more:?}: {}",
            said(&output)
        );
    };
    let base = [
        "--peers",
        "nodes.toml",
        "--node",
        "a",
        "--location",
        "parts/a",
    ];
    let with = |more: &[&'static str]| [&base[..], more].concat();
    refused(
        &with(&["-", "--format", "nt"]),
        "standard input is of one process",
    );
    refused(&with(&["none.nt"]), "none.nt");
    refused(&with(&["/dev/null", "--format", "nt"]), "no regular file");
    refused(
        &["--peers", "nodes.toml", "--location", "p", "lines.nq"],
        "--node",
    );
    refused(
        &[
            "--peers",
            "nodes.toml",
            "--node",
            "z",
            "--location",
            "p",
            "lines.nq",
        ],
        "--node",
    );
    fs::create_dir(at.join("full")).unwrap();
    fs::write(at.join("full/file"), "x").unwrap();
    refused(
        &[
            "--peers",
            "nodes.toml",
            "--node",
            "a",
            "--location",
            "full",
            "lines.nq",
        ],
        "it is there and not empty",
    );
}
