//! Do servers with the parts of a store answer as one with the whole does, and do other commands refuse a part?

use std::fs;
use std::path::Path;

use super::{NAMES, Node, QUERIES, folder, jindou, said, something_went_between, sorted, succeeds};

/// What a command says that fails.
#[track_caller]
fn fails(folder: &Path, arguments: &[&str]) -> String {
    let output = jindou(folder).args(arguments).output().unwrap();
    assert!(!output.status.success(), "{arguments:?}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    said(&output)
}

fn split(folder: &Path) -> String {
    let arguments = [
        "cluster",
        "split",
        "--location",
        "store",
        "--peers",
        "nodes.toml",
        "--to",
        "parts",
    ];
    succeeds(folder, &arguments)
}

#[test]
fn servers_with_parts_answer_what_the_store_does() {
    let folder = folder();
    let at = folder.path();
    let table = split(at);
    for name in NAMES.into_iter().chain(["all parts", "the store"]) {
        assert!(
            table
                .lines()
                .any(|line| line.trim_start().starts_with(name)),
            "{table}"
        );
    }
    let mut made: Vec<_> = fs::read_dir(at.join("parts"))
        .unwrap()
        .map(|it| it.unwrap().file_name())
        .collect();
    made.sort_unstable();
    assert_eq!(made, NAMES);
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
            let expected = sorted(&succeeds(at, &command));
            let (status, text) = node.ask(query, media_type);
            assert_eq!(status, 200, "{query}: {text}");
            assert_eq!(sorted(&text), expected, "node {number}: {query}");
        }
        let (status, text) = node.get("/store", "application/n-quads");
        assert_eq!(status, 200, "{text}");
        assert_eq!(sorted(&text), dump, "node {number}");
        let (status, text) = super::update(&node.url, "INSERT DATA { <e:s> <e:p> <e:o> }");
        assert_eq!(status, 403, "{text}");
    }
    something_went_between(&nodes[0]);
}

#[test]
fn a_part_is_taken_for_a_store_by_no_command() {
    let folder = folder();
    let at = folder.path();
    split(at);
    let is = "node b, 2 of 3, with 5 of 16 shards";
    let query = ["--query", "ASK {}"];
    let refused: [&[&str]; 12] = [
        &["query", "--location", "parts/b", query[0], query[1]],
        &["explain", "--location", "parts/b", query[0], query[1]],
        &["update", "--location", "parts/b", "--update", "CLEAR ALL"],
        &["dump", "--location", "parts/b", "--output", "dump.nq"],
        &["load", "--location", "parts/b", "data.trig"],
        &["compact", "--location", "parts/b"],
        &["backup", "--location", "parts/b", "--to", "copy"],
        &["restore", "--from", "parts/b", "--location", "copy"],
        &["serve", "--location", "parts/b", "--bind", "127.0.0.1:0"],
        &[
            "serve",
            "--read-only",
            "--location",
            "parts/b",
            "--bind",
            "127.0.0.1:0",
        ],
        &[
            "serve",
            "--location",
            "parts/b",
            "--bind",
            "127.0.0.1:0",
            "--peers",
            "nodes.toml",
            "--node",
            "b",
        ],
        &[
            "cluster",
            "split",
            "--location",
            "parts/b",
            "--peers",
            "nodes.toml",
            "--to",
            "again",
        ],
    ];
    for arguments in refused {
        let told = fails(at, arguments);
        assert!(told.contains(is), "{arguments:?}: {told}");
        assert!(
            told.contains("serve --location parts/b --read-only --peers FILE --node b"),
            "{told}"
        );
    }
    for absent in ["copy", "again", "dump.nq"] {
        assert!(!at.join(absent).exists(), "{absent}");
    }
    let other = [
        "serve",
        "--read-only",
        "--bind",
        "127.0.0.1:0",
        "--peers",
        "nodes.toml",
        "--node",
        "a",
    ];
    let told = fails(at, &[&other[..], &["--location", "parts/b"]].concat());
    assert!(
        told.contains(is) && told.contains("node a, 1 of 3, with 6 of 16 shards"),
        "{told}"
    );
    for command in ["stats", "verify"] {
        let told = succeeds(at, &[command, "--location", "parts/b"]);
        assert!(told.contains(is), "{told}");
    }
}

#[test]
fn what_cannot_be_split_leaves_nothing() {
    let folder = folder();
    let at = folder.path();
    let split = [
        "cluster",
        "split",
        "--location",
        "store",
        "--peers",
        "nodes.toml",
        "--to",
    ];
    fs::create_dir(at.join("taken")).unwrap();
    fs::write(at.join("taken/file"), "").unwrap();
    let told = fails(at, &[&split[..], &["taken"]].concat());
    assert!(told.contains("it is there and not empty"), "{told}");
    let crowded: String = (0..20)
        .map(|n| {
            format!(
                "[[node]]\nname = \"n{n}\"\naddress = \"127.0.0.1:{}\"\n",
                7000 + n
            )
        })
        .collect();
    fs::write(at.join("crowded.toml"), format!("shards = 16\n{crowded}")).unwrap();
    let told = fails(
        at,
        &[
            "cluster",
            "split",
            "--location",
            "store",
            "--peers",
            "crowded.toml",
            "--to",
            "parts",
        ],
    );
    assert!(told.contains("20 nodes for 16 shards"), "{told}");
    succeeds(
        at,
        &[
            "update",
            "--location",
            "store",
            "--update",
            "INSERT DATA { <e:s> <e:p> <e:o> }",
        ],
    );
    let told = fails(at, &[&split[..], &["parts"]].concat());
    assert!(told.contains("jindou compact --location store"), "{told}");
    assert!(!at.join("parts").exists());
    let left = fs::read_dir(at).unwrap().map(|it| it.unwrap().file_name());
    let mut left = left.map(|name| name.to_string_lossy().into_owned());
    assert!(!left.any(|name| name.contains("partial")));
    succeeds(at, &["compact", "--location", "store"]);
    succeeds(at, &[&split[..], &["parts"]].concat());
}
