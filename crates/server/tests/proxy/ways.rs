//! Which node is asked for what?

use std::collections::BTreeMap;
use std::sync::mpsc::channel;

use crate::client::{Proxied, post};
use crate::node::{Node, Reply, answer, told};
use crate::{QUERY, UPDATE, says_name, two, unite, unite_with};

#[test]
fn queries_go_to_all_nodes_in_sync_in_turn() {
    let nodes = ["a", "b", "c"].map(|name| Node::new(says_name(name)));
    let nodes = nodes.each_ref();
    unite_with(&nodes, &["a", "c"]);
    let proxied = Proxied::before(&nodes);
    let mut answers = BTreeMap::new();
    for _ in 0..10 {
        let answer = proxied.query(QUERY);
        assert_eq!(answer.status, 200, "{}", answer.text());
        *answers.entry(answer.text()).or_insert(0) += 1;
    }
    let expected = [("a".to_owned(), 5), ("c".to_owned(), 5)];
    assert_eq!(answers, BTreeMap::from(expected), "b is behind");
    let counted = proxied.metrics("jindou_proxy_requests_total");
    assert_eq!(counted.len(), 2, "{counted:?}");
    assert!(
        counted
            .iter()
            .all(|line| line.ends_with(",code=\"200\"} 5")),
        "{counted:?}"
    );
    assert_eq!(
        proxied.metrics("jindou_proxy_nodes"),
        [
            "jindou_proxy_nodes{state=\"in_sync\"} 2",
            "jindou_proxy_nodes{state=\"behind\"} 1",
            "jindou_proxy_nodes{state=\"away\"} 0",
        ]
    );
}

#[test]
fn a_query_goes_to_the_node_with_the_fewest_under_way() {
    let (end, ended) = channel();
    let ended = std::sync::Mutex::new(Some(ended));
    let head = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n".to_vec();
    let slow = move |_: &crate::node::Asked| match ended.lock().unwrap().take() {
        Some(parts) => Reply::Parts(head.clone(), parts),
        None => answer("200 OK", "", "a"),
    };
    let (a, _b, proxied) = two(slow, says_name("b"));
    std::thread::scope(|scope| {
        // Where all have as many, the first one is the first.
        let asked = scope.spawn(|| proxied.query(QUERY));
        a.wait_until_asked(1);
        for _ in 0..6 {
            assert_eq!(proxied.query(QUERY).text(), "b");
        }
        assert_eq!(
            proxied.metrics("jindou_proxy_underway{node=\"a\"}"),
            ["jindou_proxy_underway{node=\"a\"} 1"]
        );
        end.send(b"late".to_vec()).unwrap();
        drop(end);
        assert_eq!(asked.join().unwrap().text(), "late");
    });
    assert_eq!(a.asked().len(), 1);
}

#[test]
fn what_changes_something_goes_to_the_node_that_leads() {
    let (a, b, proxied) = two(says_name("a"), says_name("b"));
    let tuples = "text/tab-separated-values";
    for _ in 0..3 {
        assert_eq!(proxied.update(UPDATE).text(), "a");
        let form = "application/x-www-form-urlencoded";
        assert_eq!(
            proxied.post("/sparql", form, "update=CLEAR+ALL").text(),
            "a"
        );
        assert_eq!(
            proxied.post("/store?default", "text/turtle", "").text(),
            "a"
        );
        assert_eq!(proxied.post("/streams/s", tuples, "").text(), "a");
        assert_eq!(proxied.get("/continuous").text(), "a");
    }
    assert_eq!(b.asked(), []);
    assert_eq!(a.asked().len(), 15);
}

#[test]
fn nodes_are_learnt_from_the_list_of_one() {
    let (a, b) = (Node::new(says_name("a")), Node::new(says_name("b")));
    unite(&[&a, &b]);
    let proxied = Proxied::with(&[a.url()], |_| {});
    let answers: Vec<String> = (0..2).map(|_| proxied.query(QUERY).text()).collect();
    assert!(answers.contains(&"b".to_owned()), "{answers:?}");
    let health = proxied.get("/health");
    let told: serde_json::Value = serde_json::from_str(&health.text()).unwrap();
    assert_eq!(health.status, 200);
    assert_eq!(
        told,
        serde_json::json!({ "status": "ok", "nodes": ["a", "b"] })
    );
}

#[test]
fn a_redirection_to_another_node_is_followed_with_the_body() {
    let b = Node::new(says_name("b"));
    let url = b.url();
    let sends_on = move |asked: &crate::node::Asked| {
        let location = format!("Location: {url}{}\r\n", asked.path);
        answer("307 Temporary Redirect", &location, "elsewhere")
    };
    let a = Node::new(sends_on);
    // It was deposed, and nobody has said so yet.
    unite(&[&a, &b]);
    let proxied = Proxied::before(&[&a, &b]);
    let answer = proxied.send(post(
        "/streams/s?time=1",
        "Authorization: Bearer x\r\n",
        "tuples",
    ));
    assert_eq!((answer.status, answer.text()), (200, "b".to_owned()));
    let asked = &b.asked()[0];
    assert_eq!(
        (&*asked.path, &*asked.body),
        ("/streams/s?time=1", &b"tuples"[..])
    );
    assert_eq!(asked.header("authorization"), Some("Bearer x"));
    assert_eq!(a.asked().len(), 1);
}

#[test]
fn a_redirection_to_where_no_node_is_is_the_clients() {
    let sends_on = |_: &crate::node::Asked| {
        answer(
            "307 Temporary Redirect",
            "Location: http://elsewhere.example/streams\r\n",
            "",
        )
    };
    let (a, b, proxied) = two(sends_on, says_name("b"));
    let answer = proxied.get("/streams");
    assert_eq!(answer.status, 307);
    assert_eq!(
        answer.header("location"),
        Some("http://elsewhere.example/streams")
    );
    assert_eq!((a.asked().len(), b.asked().len()), (1, 0));
}

#[test]
fn a_query_under_way_is_found_at_the_node_that_has_it() {
    let knows = |_: &crate::node::Asked| answer("204 No Content", "", "");
    let unknown = |_: &crate::node::Asked| answer("404 Not Found", "", "no query");
    let (a, b, proxied) = two(unknown, knows);
    let delete = |path: &str| proxied.send(format!("DELETE {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
    assert_eq!(delete("/queries/0123456789abcdef").status, 204);
    assert_eq!(a.asked()[0].method, "DELETE");
    assert_eq!(b.asked()[0].path, "/queries/0123456789abcdef");
    let lists = proxied.get("/queries");
    assert_eq!(lists.status, 501);
    assert!(
        lists.text().contains(&format!("{}/queries", b.url())),
        "{}",
        lists.text()
    );
    b.stop();
    let unknown = delete("/queries/0123456789abcdef");
    assert_eq!(
        (unknown.status, unknown.text()),
        (404, "no query".to_owned())
    );
}

#[test]
fn a_proxy_is_no_node() {
    let a = Node::new(says_name("a"));
    unite(&[&a]);
    let inner = Proxied::before(&[&a]);
    let outer = Proxied::with(&[format!("http://{}", inner.address)], |_| {});
    let health = outer.get("/health");
    assert_eq!(health.status, 503);
    assert!(
        health.text().contains("it is a proxy, and no node"),
        "{}",
        health.text()
    );
}

#[test]
fn nodes_that_ask_for_credentials_are_asked_with_those_of_the_proxy() {
    let (a, b) = (Node::new(says_name("a")), Node::new(says_name("b")));
    a.says(told("a", "a", &["a"], &[("a", a.url())]));
    let proxied = Proxied::with(&[a.url(), b.url()], |config| {
        config.authorization = Some("Bearer own".try_into().unwrap());
    });
    let answer = proxied.query(QUERY);
    assert_eq!(answer.text(), "a", "b is no node of a cluster");
    assert_eq!(a.asked_how().header("authorization"), Some("Bearer own"));
    // They are not those of clients.
    assert_eq!(a.asked()[0].header("authorization"), None);
    let health = proxied.get("/health").text();
    assert!(health.contains("it is no node of a cluster"), "{health}");
}
