//! Do the nodes of a cluster look like one server through a proxy, also where they fail? The nodes are scripts.

mod answers;
mod bodies;
mod client;
mod failures;
mod node;
mod same;
mod ways;

use client::Proxied;
use node::{Asked, Node, Reply, answer, told};

/// A query and an update that are right.
const QUERY: &str = "ASK {}";
const UPDATE: &str = "CLEAR ALL";

/// Answers with its name.
fn says_name(name: &'static str) -> impl Fn(&Asked) -> Reply + Send + Sync {
    move |_| answer("200 OK", "", name)
}

/// Has nodes say that they are a, b ..., of which the first leads and all are in sync.
fn unite(nodes: &[&Node]) {
    let names: Vec<&str> = ["a", "b", "c"][..nodes.len()].to_vec();
    unite_with(nodes, &names);
}

/// The same where these are in sync.
fn unite_with(nodes: &[&Node], in_sync: &[&str]) {
    let names = &["a", "b", "c"][..nodes.len()];
    let urls = nodes.iter().map(|node| node.url());
    let list: Vec<(&str, String)> = names.iter().copied().zip(urls).collect();
    for (node, name) in nodes.iter().zip(names) {
        node.says(told(name, "a", in_sync, &list));
    }
}

/// Two nodes that answer so, and a proxy before them.
fn two(
    a: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    b: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
) -> (Node, Node, Proxied) {
    let (a, b) = (Node::new(a), Node::new(b));
    unite(&[&a, &b]);
    let proxied = Proxied::before(&[&a, &b]);
    (a, b, proxied)
}
