//! SERVICE from one server to another: who may be called, and what does the client hear?

use std::io::Read;
use std::net::TcpListener;
use std::sync::mpsc::channel;
use std::time::Duration;

use jindou_engine::AddressPolicy;

use crate::client::{Answer, Running, TRIPLES};

fn calling(policy: AddressPolicy) -> Running {
    Running::with(|config| config.services = policy)
}

fn any() -> Running {
    calling(AddressPolicy::Any)
}

/// The lines of a table without its head, in order.
fn lines(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.whole);
    let mut lines: Vec<String> = answer.text().lines().skip(1).map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn two_servers_join_either_way() {
    let (near, far) = (any(), Running::new());
    let endpoint = format!("http://{}/sparql", far.address);
    // Few rows here: their values are sent.
    let few = format!(
        "SELECT ?o ?t {{ VALUES ?s {{ <http://e/s1> <http://e/s2> <http://e/none> }} \
         ?s <http://e/p> ?o SERVICE <{endpoint}> {{ ?t <http://e/p> ?o }} }}"
    );
    assert_eq!(
        lines(&near.query(&few, "&format=tsv")),
        [
            "<http://e/o1>\t<http://e/s1>",
            "<http://e/o2>\t<http://e/s2>"
        ]
    );
    // Nothing here to send: all of it comes, and is explored from.
    let all = format!(
        "SELECT (COUNT(*) AS ?n) {{ SERVICE <{endpoint}> {{ ?s <http://e/p> ?o }} \
         ?s <http://e/p> ?o }}"
    );
    assert_eq!(
        lines(&near.query(&all, "&format=csv")),
        [TRIPLES.to_string()]
    );
    // Literals arrive as they are.
    let odd =
        format!("SELECT ?v {{ SERVICE <{endpoint}> {{ <http://e/x> ?p ?v }} <http://e/x> ?p ?v }}");
    let found = lines(&near.query(&odd, "&format=tsv"));
    assert_eq!(found, ["\"Ann \\\"A\\\"\"@en", "\"a\\u0001b\"", "7"]);
    let graph = format!(
        "SELECT ?v {{ SERVICE <{endpoint}> {{ GRAPH ?g {{ ?s ?p ?v }} }} FILTER(?g = <http://e/g>) }}"
    );
    assert_eq!(lines(&near.query(&graph, "&format=tsv")), ["\"graph\""]);
}

#[test]
fn a_server_may_call_itself() {
    let server = any();
    let endpoint = format!("http://{}/query", server.address);
    let query = format!(
        "SELECT ?s {{ SERVICE <{endpoint}> {{ SERVICE <{endpoint}> {{ ?s <http://e/p> \
         <http://e/o7> }} }} }}"
    );
    assert_eq!(
        lines(&server.query(&query, "&format=tsv")),
        ["<http://e/s7>"]
    );
}

#[test]
fn nobody_is_called_unless_that_is_allowed() {
    let far = Running::new();
    let endpoint = format!("http://{}/sparql", far.address);
    let query = format!("SELECT * {{ SERVICE <{endpoint}> {{ ?s <http://e/p> ?o }} }}");
    let elsewhere = AddressPolicy::Allowed(["http://e/".parse().expect("a prefix")].into());
    for policy in [AddressPolicy::None, elsewhere] {
        let answer = calling(policy).query(&query, "");
        assert_eq!(answer.status, 403);
        let text = answer.text();
        assert!(
            text.contains(&format!("--allow-service {endpoint}")),
            "{text}"
        );
    }
    far.wait_for_metric("jindou_queries_total{status=\"ok\"} 0");
    let prefix = format!("http://{}/", far.address);
    let here = AddressPolicy::Allowed([prefix.parse().expect("a prefix")].into());
    assert_eq!(
        lines(&calling(here).query(&query, "&format=tsv")).len(),
        TRIPLES
    );
}

#[test]
fn an_error_of_the_other_server_is_told() {
    let (near, far) = (
        any(),
        Running::with(|config| config.max_timeout = Duration::from_millis(50)),
    );
    let endpoint = format!("http://{}/sparql", far.address);
    let answer = near.query(
        &format!(
            "SELECT * {{ SERVICE <http://{}/nowhere> {{ ?s ?p ?o }} }}",
            far.address
        ),
        "",
    );
    assert_eq!(answer.status, 502, "{}", answer.text());
    assert!(answer.text().contains("status 404"), "{}", answer.text());
    // What the other server cuts is not taken for the whole.
    let answer = near.query(
        &format!(
            "SELECT (COUNT(*) AS ?n) {{ SERVICE <{endpoint}> {{ ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . \
             ?j ?k ?l }} }}"
        ),
        "",
    );
    assert_eq!(answer.status, 502, "{}", answer.text());
}

#[test]
fn a_server_waits_for_another_beside_all_else() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let (asked, is_asked) = channel();
    let (hung_up, is_hung_up) = channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        asked.send(()).expect("awaited");
        // Never answers; reads until the client hangs up.
        let mut request = Vec::new();
        let _ended = stream.read_to_end(&mut request);
        hung_up.send(()).expect("awaited");
    });
    // One thread for all requests, so that one that blocked it would block all.
    let server = any();
    let query = format!("ASK {{ SERVICE <http://{address}/> {{ ?s ?p ?o }} }}");
    let mut connection = server.connect();
    let target = format!("/query?query={}", crate::client::encode(&query));
    connection.send("GET", &target, "", "");
    is_asked.recv().expect("the endpoint is asked");
    for _ in 0..20 {
        assert_eq!(server.query("ASK {}", "").status, 200);
    }
    server.wait_for_metric("jindou_queries_in_flight 1");
    // A client that goes away ends the call.
    connection.hang_up();
    is_hung_up.recv().expect("the call is ended");
    server.wait_for_metric("jindou_queries_in_flight 0");
    server.wait_for_metric("jindou_queries_total{status=\"abandoned\"} 1");
}

#[test]
fn a_plan_shows_the_query_and_calls_nobody() {
    let server = Running::new();
    let query = "SELECT * { ?s <http://e/p> ?o SERVICE <http://nobody.invalid/> { ?o ?p ?x } }";
    let answer = server.query(query, "&explain=true");
    assert_eq!(answer.status, 200);
    let text = answer.text();
    assert!(
        text.contains("service <http://nobody.invalid/> sending ?o"),
        "{text}"
    );
    assert!(
        text.contains("SELECT ?o ?p ?x WHERE { ?o ?p ?x . }"),
        "{text}"
    );
}
