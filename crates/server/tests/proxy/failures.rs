//! What does a client hear where a node fails?

use std::sync::mpsc::channel;
use std::time::Duration;

use crate::client::Proxied;
use crate::node::{Asked, Node, Reply, answer};
use crate::{QUERY, UPDATE, says_name, two, unite};

/// Asks until both nodes were, or one is away; all is answered by b.
#[track_caller]
fn b_answers_for_a(a: &Node, proxied: &Proxied) {
    for _ in 0..4 {
        let answer = proxied.query(QUERY);
        assert_eq!((answer.status, answer.text()), (200, "b".to_owned()));
    }
    assert!(!a.asked().is_empty(), "it was asked, too");
    let retries = proxied.metrics("jindou_proxy_retries_total");
    assert_ne!(retries, ["jindou_proxy_retries_total 0"]);
}

#[test]
fn a_query_is_asked_of_another_node_where_one_hangs_up() {
    let (a, _b, proxied) = two(|_| Reply::Reset(Vec::new()), says_name("b"));
    b_answers_for_a(&a, &proxied);
}

#[test]
fn a_query_is_asked_of_another_node_where_one_is_lost_within_a_short_answer() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf of it";
    let (a, _b, proxied) = two(|_| Reply::End(head.into()), says_name("b"));
    b_answers_for_a(&a, &proxied);
}

#[test]
fn a_query_is_asked_of_another_node_where_one_has_no_time() {
    let busy = |_: &Asked| answer("503 Service Unavailable", "Retry-After: 5\r\n", "busy");
    let (a, _b, proxied) = two(busy, says_name("b"));
    b_answers_for_a(&a, &proxied);
}

#[test]
fn an_answer_that_no_node_has_time_is_passed_on() {
    let busy = |_: &Asked| answer("503 Service Unavailable", "Retry-After: 5\r\n", "busy");
    let (a, b, proxied) = two(busy, busy);
    let answer = proxied.query(QUERY);
    assert_eq!((answer.status, answer.text()), (503, "busy".to_owned()));
    assert_eq!(answer.header("retry-after"), Some("5"));
    assert_eq!((a.asked().len(), b.asked().len()), (1, 1));
}

#[test]
fn what_a_query_needs_too_much_of_is_not_asked_of_all() {
    let too_much = |_: &Asked| answer("503 Service Unavailable", "", "it needs more memory");
    let (a, b, proxied) = two(too_much, too_much);
    assert_eq!(proxied.query(QUERY).status, 503);
    assert_eq!(a.asked().len() + b.asked().len(), 1);
}

#[test]
fn a_node_that_is_gone_is_not_missed() {
    let (a, b, proxied) = two(says_name("a"), says_name("b"));
    assert_eq!(proxied.query(QUERY).status, 200);
    a.stop();
    for _ in 0..4 {
        assert_eq!(proxied.query(QUERY).text(), "b");
    }
    proxied.wait_for_metric("jindou_proxy_nodes{state=\"away\"} 1");
    // It leads no more, and nothing was sent to it.
    assert_eq!(proxied.update(UPDATE).text(), "b");
    b.stop();
    let none = proxied.query(QUERY);
    assert_eq!(none.status, 503);
    assert!(none.header("retry-after").is_some());
    assert!(none.text().starts_with("no node "), "{}", none.text());
    proxied.wait_for_metric("jindou_proxy_nodes{state=\"away\"} 2");
    let health = proxied.get("/health");
    assert_eq!(health.status, 503);
    assert!(health.text().contains("\"failing\""), "{}", health.text());
}

#[test]
fn an_update_is_sent_once_and_its_client_hears_that_nobody_knows() {
    let (a, b, proxied) = two(|_| Reply::Reset(Vec::new()), says_name("b"));
    let answer = proxied.update(UPDATE);
    assert_eq!(answer.status, 502);
    let said = answer.text();
    assert!(
        said.starts_with("node a was lost after this was sent to it"),
        "{said}"
    );
    assert!(said.contains("it may have been done, or not"), "{said}");
    assert_eq!((a.asked().len(), b.asked().len()), (1, 0));
}

#[test]
fn an_answer_that_has_no_time_for_an_update_is_passed_on() {
    let busy = |_: &Asked| {
        answer(
            "503 Service Unavailable",
            "Retry-After: 5\r\n",
            "nobody leads",
        )
    };
    let (_a, b, proxied) = two(busy, says_name("b"));
    let answer = proxied.update(UPDATE);
    assert_eq!(
        (answer.status, answer.text()),
        (503, "nobody leads".to_owned())
    );
    assert_eq!(b.asked(), []);
}

#[test]
fn a_node_that_takes_too_long_is_told_of() {
    let (end, ended) = channel::<Vec<u8>>();
    let ended = std::sync::Mutex::new(Some(ended));
    // It answers nothing until the end of the test.
    let silent = move |_: &Asked| match ended.lock().unwrap().take() {
        Some(parts) => Reply::Parts(Vec::new(), parts),
        None => Reply::Reset(Vec::new()),
    };
    let a = Node::new(silent);
    unite(&[&a]);
    let limit =
        |config: &mut jindou_server::ProxyConfig| config.timeout = Duration::from_millis(20);
    let proxied = Proxied::with(&[a.url()], limit);
    let answer = proxied.update(UPDATE);
    assert_eq!(answer.status, 504);
    assert_eq!(
        answer.text(),
        "node a did not answer within the 20ms that --timeout sets: what it was asked to do may have been done, or be \
         done yet\n"
    );
    drop(end);
    let silent = Node::new(move |_| Reply::Parts(Vec::new(), never()));
    unite(&[&silent]);
    let proxied = Proxied::with(&[silent.url()], limit);
    let answer = proxied.query(QUERY);
    assert_eq!(answer.status, 504);
    assert_eq!(
        answer.text(),
        "node a did not answer within the 20ms that --timeout sets\n"
    );
}

/// What ends with the process.
fn never() -> std::sync::mpsc::Receiver<Vec<u8>> {
    let (send, receive) = channel();
    std::mem::forget(send);
    receive
}

#[test]
fn a_client_that_goes_takes_its_request_along() {
    let (tell, told) = channel();
    let waits = move |_: &Asked| {
        let tell = tell.clone();
        Reply::Take(
            Vec::new(),
            Box::new(move |mut stream| {
                // Until the proxy closes it.
                let ended = std::io::Read::read(&mut stream, &mut [0]);
                tell.send(matches!(ended, Ok(0) | Err(_))).unwrap();
            }),
        )
    };
    let (a, b, proxied) = two(waits.clone(), waits);
    let mut stream = proxied.connect();
    let request = crate::client::post(
        "/query",
        "Content-Type: application/sparql-query\r\n",
        QUERY,
    );
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    while a.asked().len() + b.asked().len() == 0 {
        std::thread::yield_now();
    }
    drop(stream);
    assert!(told.recv_timeout(crate::node::PATIENCE).unwrap());
    assert_eq!(
        a.asked().len() + b.asked().len(),
        1,
        "nobody asks again for it"
    );
}

#[test]
fn a_query_under_which_two_nodes_are_lost_is_asked_of_no_third() {
    let nodes = ["a", "b", "c"].map(|_| Node::new(|_| Reply::Reset(Vec::new())));
    let nodes = nodes.each_ref();
    unite(&nodes);
    let proxied = Proxied::before(&nodes);
    let answer = proxied.query(QUERY);
    assert_eq!(answer.status, 502);
    let said = answer.text();
    assert!(
        said.starts_with("2 nodes were lost while they had this"),
        "{said}"
    );
    let asked: usize = nodes.iter().map(|node| node.asked().len()).sum();
    assert_eq!(asked, 2);
}
