//! Does a node come to have the store of the one that leads by itself, where it has none or one that is too old?

use std::path::Path;

use serde_json::Value;

use super::elected::{Etcd, leader, start_with};
use super::{NAMES, Node, ask, folder, get, jindou, listen, said, succeeds, update, wait_for};

const COUNT: &str = "SELECT (COUNT(*) AS ?n) { ?s <http://x/n> ?o }";

fn insert(url: &str, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let text = format!("INSERT DATA {{ <http://x/s{number}> <http://x/n> {number} }}");
        wait_for("an update is acknowledged", || {
            let (status, _) = update(url, &text);
            (status == 204 || status == 200).then_some(())
        });
    }
}

/// Waits until a node answers that there are so many.
fn wait_for_count(url: &str, count: u32) {
    let expected = format!("n\r\n{count}\r\n");
    wait_for(&format!("{url} has {count}"), || {
        let (status, text) = ask(url, COUNT, "text/csv");
        (status == 200 && text == expected).then_some(())
    });
}

/// The names of the nodes that are in sync, as a node has it.
fn in_sync(url: &str) -> usize {
    let (_, text) = get(url, "/cluster", "application/json");
    let told: Value = serde_json::from_str(&text).unwrap_or_default();
    told["copy"]["in_sync"].as_array().map_or(0, Vec::len)
}

/// Whether what was merged is the base of the store in a folder: its log has nothing from before.
fn has_merged(location: &Path) -> bool {
    let current = std::fs::read_to_string(location.join("CURRENT")).unwrap();
    // The version, the generation, merges.
    current.split(' ').nth(2) != Some("0")
}

#[test]
fn a_node_copies_the_store_that_it_lacks_and_the_one_that_it_cannot_follow() {
    let Some(mut etcd) = Etcd::new() else { return };
    let folder = folder();
    let at = folder.path();
    etcd.start(at);
    succeeds(at, &["backup", "--location", "store", "--to", "a"]);
    let ports = NAMES.map(|_| listen().local_addr().unwrap().port());
    let start = |number: usize, options: &[&str]| {
        start_with(at, NAMES[number], (&etcd, ports[number]), options)
    };
    let mut nodes: Vec<Option<Node>> = vec![Some(start(0, &[])), None, None];
    let url = nodes[0].as_ref().unwrap().url.clone();
    insert(&url, 0..10);
    // These have no folder.
    for number in [1, 2] {
        let node = start(number, &[]);
        node.lines.wait_for("it says what it has copied", |line| {
            line.starts_with("copied the store of node a: snapshot ")
                .then_some(())
        });
        wait_for_count(&node.url, 10);
        nodes[number] = Some(node);
    }
    wait_for("all are in sync", || (in_sync(&url) == 3).then_some(()));
    // One is away until the logs of the others lack what it has to get.
    nodes[2] = None;
    insert(&url, 10..20);
    succeeds(at, &["compact", "--location", "a"]);
    wait_for("the follower has merged", || {
        has_merged(&at.join("b")).then_some(())
    });
    insert(&url, 20..30);
    nodes[0] = None;
    let url = nodes[1].as_ref().unwrap().url.clone();
    wait_for("the other one leads", || {
        (leader(&nodes[1..]).as_deref() == Some("b")).then_some(())
    });
    insert(&url, 30..40);
    let node = start(2, &[]);
    node.lines.wait_for("it says why", |line| {
        line.contains("older than what node b still has in its log")
            .then_some(())
    });
    node.lines.wait_for("it begins anew", |line| {
        line.starts_with("copied the store of node b: snapshot ")
            .then_some(())
    });
    wait_for("it serves", || {
        let health = ureq::get(format!("{}/health", node.url)).call();
        health.ok()
    });
    wait_for_count(&node.url, 40);
    nodes[2] = Some(node);
    // What one that leads has is not for itself, but asked for it is for others.
    nodes[0] = Some(start(0, &["--copy-anew"]));
    wait_for("all are in sync", || (in_sync(&url) == 3).then_some(()));
    insert(&url, 40..50);
    for node in nodes.iter().flatten() {
        wait_for_count(&node.url, 50);
    }
    drop(nodes);
    for name in NAMES {
        succeeds(at, &["verify", "--location", name]);
    }
    let left = std::fs::read_dir(at).unwrap();
    let left = left.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let left: Vec<String> = left.filter(|name| name.starts_with('.')).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_node_that_nobody_gives_a_copy_says_so() {
    let folder = folder();
    let at = folder.path();
    let serve = |name: &str| {
        let mut command = jindou(at);
        command.args(["serve", "--location", name, "--peers", "nodes.toml"]);
        command.args(["--node", name, "--bind", "127.0.0.1:0"]);
        command
    };
    // The first one leads by the list.
    let output = serve("a").output().unwrap();
    assert!(!output.status.success());
    assert!(
        said(&output).contains("the first node of the list leads"),
        "{}",
        said(&output)
    );
    assert!(!at.join("a").exists());
    let mut child = serve("b")
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = super::Lines::of(child.stderr.take().unwrap());
    let _process = super::Process(child);
    lines.wait_for("it says whom it waits for", |line| {
        let rest = line.strip_prefix("node b waits for a copy of the store: a (")?;
        rest.contains("c (").then_some(())
    });
    assert!(!at.join("b").exists());
}
