//! Where etcd keeps the list of nodes: do nodes come and go while clients ask and write, with all that was acknowledged?

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread;

use serde_json::Value;

use super::elected::Etcd;
use super::{EndOnDrop, Node, agent, ask, folder, get, jindou, listen, said, succeeds, wait_for};

const COUNT: &str = "SELECT (COUNT(*) AS ?n) { ?s <http://x/n> ?o }";
/// A join whose rows are all over the nodes.
const JOIN: &str =
    "SELECT (COUNT(*) AS ?n) { ?s <http://x/n> ?o . ?s <http://x/of> ?t . ?t <http://x/is> ?u }";

/// A node that adds itself to the list.
fn serve(folder: &Path, name: &str, (etcd, port): (&Etcd, u16)) -> Command {
    let mut command = jindou(folder);
    command.args(["serve", "--location", name, "--node", name]);
    command.args(["--cluster", &etcd.url, "--bind", "127.0.0.1:0"]);
    command.args(["--advertise", &format!("127.0.0.1:{port}")]);
    // Joins go on beside whatever else this machine does.
    command.args(["--heavy-priority", "same"]);
    command
}

/// The shards of each node, by name, as one of them has it.
fn shards(url: &str) -> Vec<(String, u64)> {
    let (_, text) = get(url, "/cluster", "application/json");
    let told: Value = serde_json::from_str(&text).unwrap_or_default();
    let nodes = told["nodes"].as_array().cloned().unwrap_or_default();
    let of = |node: &Value| {
        let state = node["state"].as_str().unwrap_or_default();
        let name = node["name"].as_str().unwrap_or_default().to_owned();
        let shards = node["shards"].as_u64().unwrap_or_default();
        (state != "away").then_some((name, shards))
    };
    nodes.iter().filter_map(of).collect()
}

/// Waits until a node has these others, with so many shards.
fn wait_for_shards(node: &Node, expected: &[(&str, u64)]) {
    wait_for(&format!("{expected:?} at {}", node.url), || {
        let found = shards(&node.url);
        let found: Vec<(&str, u64)> = found.iter().map(|(name, n)| (&**name, *n)).collect();
        (found == expected).then_some(())
    });
}

fn count(url: &str, query: &str) -> (u16, String) {
    let (status, text) = ask(url, query, "text/csv");
    (
        status,
        text.trim_start_matches("n\r\n").trim_end().to_owned(),
    )
}

/// Clients that write and ask until they are to end.
struct Clients {
    is_over: AtomicBool,
    acknowledged: AtomicU32,
    asked: AtomicU32,
}

impl Clients {
    /// Inserts what is one more each time, at one node or, where that does not take it, another one.
    fn write(&self, urls: &[&str]) {
        let mut next = 0;
        while !self.is_over.load(Relaxed) {
            let text = format!(
                "INSERT DATA {{ <http://x/s{next}> <http://x/n> {next} ; <http://x/of> <http://x/t{0}> . \
                 <http://x/t{0}> <http://x/is> <http://x/u> }}",
                next % 50
            );
            // One that has left is not there any more.
            let is_done = urls.iter().any(|url| {
                let request = agent().post(format!("{url}/update"));
                let request = request.header("Content-Type", "application/sparql-update");
                request
                    .send(&text)
                    .is_ok_and(|answer| answer.status().is_success())
            });
            if is_done {
                next += 1;
                self.acknowledged.store(next, Relaxed);
            }
        }
    }

    /// Counts at nodes that are there all the time: each time all that was acknowledged before, and no error.
    fn ask(&self, urls: &[&str]) {
        while !self.is_over.load(Relaxed) {
            for url in urls {
                for query in [COUNT, JOIN] {
                    let before = self.acknowledged.load(Relaxed);
                    let (status, found) = count(url, query);
                    assert_eq!(status, 200, "{url}: {found}");
                    let found: u32 = found.parse().expect("it is a number");
                    assert!(found >= before, "{url}: {found} of {before}, {query}");
                    self.asked.fetch_add(1, Relaxed);
                }
            }
        }
    }
}

#[test]
fn nodes_come_and_go_while_clients_ask_and_write() {
    let Some(mut etcd) = Etcd::new() else { return };
    let folder = folder();
    let at = folder.path();
    etcd.start(at);
    let ports: Vec<u16> = (0..4)
        .map(|_| listen().local_addr().unwrap().port())
        .collect();
    let start = |number: usize| {
        let name = ["a", "b", "c", "d"][number];
        Node::of(serve(at, name, (&etcd, ports[number])))
    };
    // The first one begins with a store that has nothing, and others copy that.
    let mut a = start(0);
    let (b, c) = (start(1), start(2));
    let three = [("a", 22), ("b", 21), ("c", 21)];
    for node in [&a, &b, &c] {
        wait_for_shards(node, &three);
    }
    let clients = Clients {
        is_over: AtomicBool::new(false),
        acknowledged: AtomicU32::new(0),
        asked: AtomicU32::new(0),
    };
    let (acknowledged, asked) = (&clients.acknowledged, &clients.asked);
    let more = |when: &str, what: &AtomicU32| {
        let before = what.load(Relaxed);
        wait_for(&format!("clients go on {when}"), || {
            (what.load(Relaxed) > before + 20).then_some(())
        });
    };
    let d = thread::scope(|scope| {
        let _end = EndOnDrop(&clients.is_over);
        let (all, stay) = ([&*a.url, &*b.url, &*c.url], [&*b.url, &*c.url]);
        let clients = &clients;
        scope.spawn(move || clients.write(&all));
        scope.spawn(move || clients.ask(&stay));
        more("at first", acknowledged);
        let d = start(3);
        for node in [&a, &b, &c, &d] {
            wait_for_shards(node, &[("a", 16), ("b", 16), ("c", 16), ("d", 16)]);
        }
        more("with a fourth node", acknowledged);
        more("with a fourth node, asking", asked);
        // The one that leads.
        succeeds(at, &["cluster", "drain", "a", "--cluster", &etcd.url]);
        for node in [&b, &c, &d] {
            wait_for_shards(node, &[("b", 22), ("c", 21), ("d", 21)]);
        }
        more("without the one that led", acknowledged);
        more("without the one that led, asking", asked);
        d
    });
    let ended = wait_for("it ends by itself", || a.process.0.try_wait().unwrap());
    assert!(ended.success(), "{ended}");
    let all = clients.acknowledged.load(Relaxed);
    for node in [&b, &c, &d] {
        wait_for("all that was acknowledged is there", || {
            let found: u32 = count(&node.url, JOIN).1.parse().ok()?;
            (found >= all).then_some(())
        });
    }
    // It is let in again by name, and not before.
    let output = serve(at, "a", (&etcd, ports[0])).output().unwrap();
    let told = said(&output);
    assert!(
        told.contains("`jindou cluster add a` lets it in again"),
        "{told}"
    );
    succeeds(at, &["cluster", "add", "a", "--cluster", &etcd.url]);
    let a = start(0);
    wait_for_shards(&a, &[("a", 16), ("b", 16), ("c", 16), ("d", 16)]);
    assert_eq!(count(&a.url, COUNT), count(&b.url, COUNT));
    // One that was killed is taken out without it.
    drop(d);
    succeeds(
        at,
        &["cluster", "drain", "d", "--dead", "--cluster", &etcd.url],
    );
    for node in [&a, &b, &c] {
        wait_for_shards(node, &three);
    }
    assert_eq!(count(&a.url, JOIN), count(&c.url, JOIN));
}

#[test]
fn a_first_node_that_ended_before_it_had_a_store_begins_with_one_later() {
    let Some(mut etcd) = Etcd::new() else { return };
    let folder = folder();
    let at = folder.path();
    etcd.start(at);
    let port = || listen().local_addr().unwrap().port();
    let (first, second) = (port(), port());
    let address = format!("127.0.0.1:{second}");
    let add = ["cluster", "add", "b", "--cluster", &etcd.url];
    let add = [&add[..], &["--advertise", &address]].concat();
    // What is wrong otherwise is seen before it is in the list.
    let mut wrong = serve(at, "a", (&etcd, first));
    let output = wrong.args(["--credentials", "absent"]).output().unwrap();
    assert!(said(&output).contains("absent"), "{}", said(&output));
    let output = jindou(at).args(&add).output().unwrap();
    assert!(said(&output).contains("no list"), "{}", said(&output));
    // That there can be no store is not, and others are in it before that one comes back.
    std::fs::write(at.join("a"), "no folder").unwrap();
    let output = serve(at, "a", (&etcd, first)).output().unwrap();
    assert!(!output.status.success(), "{}", said(&output));
    std::fs::remove_file(at.join("a")).unwrap();
    succeeds(at, &add);
    let a = Node::of(serve(at, "a", (&etcd, first)));
    let b = Node::of(serve(at, "b", (&etcd, second)));
    for node in [&a, &b] {
        wait_for_shards(node, &[("a", 32), ("b", 32)]);
    }
    // Once it has led, it begins with no other store.
    drop(a);
    std::fs::rename(at.join("a"), at.join("lost")).unwrap();
    let a = Node::of(serve(at, "a", (&etcd, first)));
    a.lines.wait_for("it copies the store", |line| {
        line.starts_with("copied the store of node b").then_some(())
    });
    for node in [&a, &b] {
        wait_for_shards(node, &[("a", 32), ("b", 32)]);
    }
}

/// The one that leads and another one, at once: neither leads on its way out, and nothing is acknowledged by one that has left.
#[test]
fn of_three_nodes_two_are_drained_at_once_and_the_third_has_all() {
    let Some(mut etcd) = Etcd::new() else { return };
    let folder = folder();
    let at = folder.path();
    etcd.start(at);
    let ports: Vec<u16> = (0..3)
        .map(|_| listen().local_addr().unwrap().port())
        .collect();
    let start = |number: usize| {
        let name = ["a", "b", "c"][number];
        Node::of(serve(at, name, (&etcd, ports[number])))
    };
    let mut a = start(0);
    let (mut b, c) = (start(1), start(2));
    for node in [&a, &b, &c] {
        wait_for_shards(node, &[("a", 22), ("b", 21), ("c", 21)]);
    }
    let clients = Clients {
        is_over: AtomicBool::new(false),
        acknowledged: AtomicU32::new(0),
        asked: AtomicU32::new(0),
    };
    thread::scope(|scope| {
        let _end = EndOnDrop(&clients.is_over);
        let clients = &clients;
        let (all, stays) = ([&*a.url, &*b.url, &*c.url], [&*c.url]);
        scope.spawn(move || clients.write(&all));
        scope.spawn(move || clients.ask(&stays));
        let acknowledged = || clients.acknowledged.load(Relaxed);
        wait_for("clients write", || (acknowledged() > 20).then_some(()));
        let drains = ["a", "b"].map(|name| {
            let url = &*etcd.url;
            scope.spawn(move || succeeds(at, &["cluster", "drain", name, "--cluster", url]))
        });
        for drain in drains {
            drain.join().unwrap();
        }
        wait_for_shards(&c, &[("c", 64)]);
        let before = acknowledged();
        wait_for("clients write at the third", || {
            (acknowledged() > before + 20).then_some(())
        });
    });
    for node in [&mut a, &mut b] {
        let ended = wait_for("it ends by itself", || node.process.0.try_wait().unwrap());
        assert!(ended.success(), "{ended}");
    }
    let found: u32 = count(&c.url, COUNT).1.parse().unwrap();
    assert!(found >= clients.acknowledged.load(Relaxed), "{found}");
    // It has all of the last one, too.
    let dead = jindou(at)
        .args(["cluster", "drain", "c", "--dead", "--cluster", &etcd.url])
        .output()
        .unwrap();
    assert!(
        said(&dead).contains("node c is the only one that holds shards"),
        "{}",
        said(&dead)
    );
}

#[test]
fn what_the_list_of_nodes_does_not_take_is_said() {
    let Some(mut etcd) = Etcd::new() else { return };
    let folder = folder();
    let at = folder.path();
    etcd.start(at);
    let port = listen().local_addr().unwrap().port();
    let cluster = |arguments: &[&str]| {
        let mut command = jindou(at);
        command
            .arg("cluster")
            .args(arguments)
            .args(["--cluster", &etcd.url]);
        let output = command.output().unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        said(&output)
    };
    let none = cluster(&["drain", "a"]);
    assert!(
        none.contains("etcd has no list of nodes of this cluster"),
        "{none}"
    );
    let a = Node::of(serve(at, "a", (&etcd, port)));
    wait_for_shards(&a, &[("a", 64)]);
    for (arguments, part) in [
        (
            &["drain", "a"][..],
            "node a is the only one that holds shards",
        ),
        (&["drain", "x"], "no node is named \"x\": there are a"),
        (&["add", "a"], "node a is in the cluster: it holds shards"),
        (&["add", "b"], "say where it is reached with --advertise"),
        (
            &["add", "b", "--advertise", "nowhere"],
            "\"nowhere\" is no address of a node",
        ),
    ] {
        let told = cluster(arguments);
        assert!(told.contains(part), "{arguments:?}: {told}");
    }
    let node = |arguments: &[&str]| {
        let mut command = jindou(at);
        command.args(["serve", "--bind", "127.0.0.1:0", "--cluster", &etcd.url]);
        let output = command.args(arguments).output().unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        said(&output)
    };
    let own = format!("127.0.0.1:{port}");
    for (arguments, part) in [
        (
            &["--location", "b", "--node", "b"][..],
            "--advertise HOST:PORT",
        ),
        (
            &["--node", "b", "--advertise", "127.0.0.1:1"],
            "give its folder with --location",
        ),
        (
            &[
                "--location",
                "b",
                "--node",
                "b",
                "--advertise",
                "10.0.0.1:1",
            ],
            "--cluster-secret: a secret is needed where nodes are reached over a network, as at 10.0.0.1:1",
        ),
        (
            &["--location", "b", "--node", "b", "--advertise", &own],
            "--advertise: cannot listen at 127.0.0.1:",
        ),
    ] {
        let told = node(arguments);
        assert!(told.contains(part), "{arguments:?}: {told}");
    }
    // It runs already.
    let other = format!("127.0.0.1:{}", listen().local_addr().unwrap().port());
    let told = node(&["--location", "b", "--node", "a", "--advertise", &other]);
    assert!(
        told.contains(&format!("node a runs at {own}; end it before")),
        "{told}"
    );
    drop(a);
    // Its store is lost: a new one would have none of what clients were told of.
    std::fs::rename(at.join("a"), at.join("lost")).unwrap();
    let told = node(&["--location", "a", "--node", "a", "--advertise", &own]);
    assert!(
        told.contains("node a is the only one that is to have it"),
        "{told}"
    );
}
