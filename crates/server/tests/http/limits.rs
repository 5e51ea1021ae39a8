//! Heavy queries, slow or lost clients, full servers: what is bounded, and what is cut.

use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use jindou_engine::{Config, Database, MemoryPool, SpillLimits};
use jindou_server::{Server, ServerConfig};

use crate::client::{Running, TRIPLES, encode};

/// More rows than anyone waits for.
pub(crate) const ENDLESS: &str = "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l }";
/// As much work, and not one row.
pub(crate) const FRUITLESS: &str = "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l \
                         FILTER(CONCAT(STR(?a), STR(?d), STR(?g), STR(?j)) = \"\") }";
const PRODUCT: &str = "SELECT * { ?s <http://e/p> ?o . ?t <http://e/p> ?u }";

pub(crate) fn target(query: &str, more: &str) -> String {
    format!("/query?query={}{more}", encode(query))
}

#[test]
fn a_large_result_is_streamed_whole() {
    for budget in [0, 1, 5] {
        let server = Running::with(|config| config.inline_budget = Duration::from_millis(budget));
        // The second time the text is known to be heavy.
        for _ in 0..2 {
            let answer = server.query(PRODUCT, "&format=tsv");
            assert_eq!(answer.header("transfer-encoding"), Some("chunked"));
            assert!(answer.whole);
            assert_eq!(answer.text().lines().count(), TRIPLES * TRIPLES + 1);
        }
        let answer = server.query(PRODUCT, "");
        let rows = answer.json()["results"]["bindings"]
            .as_array()
            .unwrap()
            .len();
        assert_eq!(rows, TRIPLES * TRIPLES);
    }
}

#[test]
fn a_small_result_of_a_heavy_query_has_a_length() {
    let server = Running::with(|config| config.inline_budget = Duration::ZERO);
    let answer = server.query("ASK {}", "&format=csv");
    assert_eq!(
        (answer.text().as_str(), answer.header("content-length")),
        ("true", Some("4"))
    );
    assert_eq!(server.query("nonsense", "").status, 400);
}

#[test]
fn results_come_before_the_last_is_found_and_a_lost_client_ends_the_query() {
    let server = Running::new();
    let mut connection = server.connect();
    connection.send("GET", &target(ENDLESS, "&format=tsv"), "", "");
    assert_eq!(connection.head().status, 200);
    assert!(connection.chunk().expect("a chunk").starts_with(b"?"));
    server.wait_for_metric("jindou_queries_in_flight 1");
    connection.hang_up();
    server.wait_for_metric("jindou_queries_in_flight 0");
    server.wait_for_metric("jindou_queries_total{status=\"abandoned\"} 1");
}

#[test]
fn a_client_lost_before_the_first_result_ends_the_query() {
    let server = Running::new();
    let mut connection = server.connect();
    connection.send("GET", &target(FRUITLESS, ""), "", "");
    server.wait_for_metric("jindou_queries_in_flight 1");
    server.wait_for_metric("jindou_queries_moved_total 1");
    connection.hang_up();
    server.wait_for_metric("jindou_queries_total{status=\"abandoned\"} 1");
    server.wait_for_metric("jindou_queries_in_flight 0");
}

#[test]
fn a_query_out_of_time_is_told_so_or_cut() {
    let server = Running::with(|config| config.max_timeout = Duration::from_millis(300));
    for more in ["&timeout=100ms", "&timeout=0.002", "&timeout=1000", ""] {
        let answer = server.query(FRUITLESS, more);
        assert_eq!(answer.status, 504, "{}", answer.text());
        assert!(answer.text().contains("limit"), "{}", answer.text());
    }
    server.wait_for_metric("jindou_queries_total{status=\"timeout\"} 4");
    // Long enough for first rows, also where others have all cores.
    let server = Running::with(|config| config.max_timeout = Duration::from_secs(2));
    for headers in ["", "Accept-Encoding: gzip\r\n"] {
        let answer = server.get(&target(ENDLESS, ""), headers);
        assert_eq!(answer.status, 200);
        assert!(!answer.whole, "no client takes a part for the whole");
    }
    server.wait_for_metric("jindou_queries_total{status=\"timeout\"} 2");
}

#[test]
fn a_client_that_does_not_read_is_dropped() {
    let server = Running::with(|config| config.write_timeout = Duration::from_millis(100));
    let mut connection = server.connect();
    connection.send("GET", &target(ENDLESS, ""), "", "");
    server.wait_for_metric("jindou_queries_total{status=\"abandoned\"} 1");
    server.wait_for_metric("jindou_queries_in_flight 0");
}

#[test]
fn a_full_server_says_when_to_come_again_and_answers_light_queries() {
    let server = Running::with(|config| {
        config.heavy_queries = 1;
        config.queued_queries = 1;
    });
    let mut first = server.connect();
    first.send("GET", &target(FRUITLESS, ""), "", "");
    server.wait_for_metric("jindou_heavy_queries{state=\"computing\"} 1");
    let mut second = server.connect();
    second.send("GET", &target(ENDLESS, ""), "", "");
    server.wait_for_metric("jindou_heavy_queries{state=\"queued\"} 1");
    let answer = server.query(FRUITLESS, "");
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert_eq!(answer.header("retry-after"), Some("5"));
    server.wait_for_metric("jindou_rejected_total{reason=\"queue_full\"} 1");
    assert_eq!(server.query("ASK {}", "").status, 200);
    assert_eq!(server.get("/health", "").status, 200);
    first.hang_up();
    assert_eq!(second.head().status, 200, "the next has its turn");
    second.hang_up();
    server.wait_for_metric("jindou_queries_in_flight 0");
}

#[test]
fn who_waits_for_too_long_or_goes_away_leaves_the_queue() {
    let server = Running::with(|config| {
        config.heavy_queries = 1;
        config.queue_wait = Duration::from_millis(20);
    });
    let mut first = server.connect();
    first.send("GET", &target(FRUITLESS, ""), "", "");
    server.wait_for_metric("jindou_heavy_queries{state=\"computing\"} 1");
    let answer = server.query(FRUITLESS, "");
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (503, Some("5"))
    );
    server.wait_for_metric("jindou_rejected_total{reason=\"queue_wait\"} 1");
    server.wait_for_metric("jindou_heavy_queries{state=\"queued\"} 0");

    let server = Running::with(|config| config.heavy_queries = 1);
    let mut first = server.connect();
    first.send("GET", &target(FRUITLESS, ""), "", "");
    server.wait_for_metric("jindou_heavy_queries{state=\"computing\"} 1");
    let mut second = server.connect();
    second.send("GET", &target(FRUITLESS, ""), "", "");
    server.wait_for_metric("jindou_heavy_queries{state=\"queued\"} 1");
    second.hang_up();
    server.wait_for_metric("jindou_heavy_queries{state=\"queued\"} 0");
    server.wait_for_metric("jindou_queries_total{status=\"abandoned\"} 1");
    server.wait_for_metric("jindou_queries_in_flight 1");
}

#[test]
fn a_query_whose_client_does_not_read_gives_its_turn_away() {
    let server = Running::with(|config| config.heavy_queries = 1);
    let mut slow = server.connect();
    slow.send("GET", &target(ENDLESS, ""), "", "");
    assert_eq!(slow.head().status, 200);
    server.wait_for_metric("jindou_heavy_queries{state=\"stalled\"} 1");
    let rows = server.query(PRODUCT, "&format=tsv");
    assert_eq!(rows.text().lines().count(), TRIPLES * TRIPLES + 1);
    // It goes on where it was once its client reads.
    for _ in 0..1000 {
        assert!(slow.chunk().is_some_and(|chunk| !chunk.is_empty()));
    }
    slow.hang_up();
    server.wait_for_metric("jindou_queries_in_flight 0");
}

#[test]
fn of_too_many_clients_that_do_not_read_the_longest_is_dropped() {
    let server = Running::with(|config| {
        config.heavy_queries = 1;
        config.stalled_queries = 1;
    });
    let mut first = server.connect();
    first.send("GET", &target(ENDLESS, ""), "", "");
    let id = first.head().header("jindou-query-id").unwrap().to_owned();
    server.wait_for_metric("jindou_heavy_queries{state=\"stalled\"} 1");
    let mut second = server.connect();
    second.send("GET", &target(ENDLESS, ""), "", "");
    assert_eq!(second.head().status, 200);
    server.wait_for_metric("jindou_queries_total{status=\"abandoned\"} 1");
    while first.chunk().is_some_and(|chunk| !chunk.is_empty()) {}
    assert!(first.ended());
    let why = server.get(&format!("/queries/{id}"), "").json();
    assert!(
        why["error"].as_str().unwrap().contains("did not read"),
        "{why}"
    );
    assert!(second.chunk().is_some());
}

#[test]
fn bodies_that_never_end_take_no_more_than_the_pool_has() {
    const POOL_BYTES: u64 = 8 << 20;
    let pool = Arc::new(MemoryPool::new(POOL_BYTES));
    let mut engine = Config::default();
    engine.memory_pool = Some(Arc::clone(&pool));
    let server = Running::with_engine(engine, |_| {});
    let length = 3 << 20;
    let head = format!(
        "POST /update HTTP/1.1\r\nHost: e\r\nContent-Type: application/sparql-update\r\n\
         Content-Length: {length}\r\n\r\n"
    );
    let text = "#".repeat(length - 1);
    // Each lacks its last byte.
    let unfinished: Vec<_> = (0..2)
        .map(|_| {
            let mut connection = server.connect();
            connection.write(head.as_bytes());
            connection.write(text.as_bytes());
            connection
        })
        .collect();
    server.wait_for_metric(&format!("jindou_query_memory_bytes {}", 2 * length));
    let mut one_more = server.connect();
    one_more.write(head.as_bytes());
    // More than is left.
    one_more.write(&text.as_bytes()[..(2 << 20) + (1 << 18)]);
    let answer = one_more.answer("POST");
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert_eq!(answer.header("retry-after"), Some("5"));
    assert!(pool.held_bytes() <= POOL_BYTES);
    server.wait_for_metric("jindou_rejected_total{reason=\"memory\"} 1");
    let small = server.send(
        "POST",
        "/update",
        "Content-Type: application/sparql-update\r\n",
        "",
    );
    assert_eq!(small.status, 204, "{}", small.text());
    drop(unfinished);
    server.wait_for_metric("jindou_query_memory_bytes 0");
}

#[test]
fn forms_and_documents_give_back_what_they_took() {
    let pool = Arc::new(MemoryPool::new(8 << 20));
    let mut engine = Config::default();
    engine.memory_pool = Some(Arc::clone(&pool));
    let server = Running::with_engine(engine, |_| {});
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let long = "+".repeat(100 << 10);
    let answer = server.send("POST", "/query", form, &format!("query=ASK{long}%7B%7D"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let many = format!("query=ASK+%7B%7D{}", "&a".repeat(100_000));
    assert_eq!(server.send("POST", "/query", form, &many).status, 200);
    let turtle = "Content-Type: text/turtle\r\n";
    let graph = format!("<http://e/a> <http://e/b> 1 .{}", " ".repeat(1 << 20));
    assert_eq!(
        server
            .send("PUT", "/store?graph=http://e/new", turtle, &graph)
            .status,
        201
    );
    server.wait_for_metric("jindou_query_memory_bytes 0");
    // Twice the form is more than there is.
    let refused = format!("query=ASK{}%7B%7D", "+".repeat(6 << 20));
    let answer = server.send("POST", "/query", form, &refused);
    assert_eq!(answer.status, 503, "{}", answer.text());
    server.wait_for_metric("jindou_query_memory_bytes 0");
}

/// Some 30 kB in several batches.
const LIGHT: &str = "SELECT * { { ?a ?b ?c } UNION { ?d ?e ?f } }";

#[test]
fn light_answers_come_while_others_hold_all_memory() {
    for budget in [0, 1000] {
        let pool = Arc::new(MemoryPool::new(8 << 20));
        let mut engine = Config::default();
        engine.memory_pool = Some(Arc::clone(&pool));
        let server = Running::with_engine(engine, |config| {
            config.inline_budget = Duration::from_millis(budget);
        });
        let all = pool.reserve(8 << 20).expect("nobody else has any");
        for headers in ["", "Accept-Encoding: gzip\r\n"] {
            let answer = server.send("GET", &target(LIGHT, "&format=csv"), headers, "");
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
        let answer = server.query(LIGHT, "&format=csv");
        assert_eq!(answer.text().lines().count(), 2 * (TRIPLES + 3) + 1);
        let refused = server.query(PRODUCT, "&format=csv");
        assert_eq!(refused.status, 503, "{}", refused.text());
        drop(all);
        assert_eq!(server.query(PRODUCT, "&format=csv").status, 200);
    }
}

/// Takes from what all queries share, whatever it is allowed itself.
const HOLDING: &str = "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i } ORDER BY ?a ?d ?g ?b ?e";

#[test]
fn memory_that_all_queries_share_is_never_exceeded_and_always_given_back() {
    let pool = Arc::new(MemoryPool::new(4 << 20));
    let mut engine = Config::default();
    engine.memory_pool = Some(Arc::clone(&pool));
    let server = Running::with_engine(engine, |config| config.heavy_queries = 4);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let answer = server.query(HOLDING, "");
                assert_eq!(answer.status, 503, "{}", answer.text());
                assert_eq!(answer.header("retry-after"), Some("5"));
                assert!(answer.text().contains("all queries together"));
            });
        }
        for _ in 0..20 {
            assert_eq!(server.query("ASK {}", "").status, 200);
        }
    });
    server.wait_for_metric("jindou_query_memory_bytes 0");
    server.wait_for_metric("jindou_rejected_total{reason=\"memory\"} 4");
    let one = server.query(PRODUCT, "&format=tsv");
    assert_eq!(one.status, 200, "{}", one.text());
    assert_eq!(one.text().lines().count(), TRIPLES * TRIPLES + 1);

    let mut engine = Config::default();
    engine.query_memory_bytes = 1 << 20;
    engine.spill = SpillLimits::off();
    let server = Running::with_engine(engine, |_| {});
    let answer = server.query(HOLDING, "");
    assert_eq!((answer.status, answer.header("retry-after")), (503, None));
    assert!(
        answer.text().contains("more memory than its limit"),
        "{}",
        answer.text()
    );
}

#[test]
fn terms_that_a_query_computes_are_bounded_though_no_operator_holds_them() {
    let mut engine = Config::default();
    engine.query_memory_bytes = 8 << 20;
    let server = Running::with_engine(engine, |_| {});
    let computing = "SELECT (COUNT(?x) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i \
                     BIND(CONCAT(STR(?a), STR(?d), STR(?g), STR(?c), STR(?f)) AS ?x) }";
    let answer = server.query(computing, "");
    assert_eq!(answer.status, 503, "{}", answer.text());
}

#[test]
fn answers_that_wait_for_slow_clients_are_counted() {
    let pool = Arc::new(MemoryPool::new(8 << 20));
    let mut engine = Config::default();
    engine.memory_pool = Some(Arc::clone(&pool));
    let server = Running::with_engine(engine, |_| {});
    let mut slow = server.connect();
    slow.send("GET", &target(ENDLESS, ""), "", "");
    assert_eq!(slow.head().status, 200);
    assert!(pool.held_bytes() > 0);
    slow.hang_up();
    server.wait_for_metric("jindou_query_memory_bytes 0");
}

#[test]
fn a_result_of_too_many_rows_is_an_error_and_never_cut() {
    let server = Running::with(|config| config.max_rows = Some(TRIPLES as u64));
    let all = "SELECT * { ?s <http://e/p> ?o }";
    assert_eq!(server.query(all, "").status, 200);
    for query in [
        "SELECT * { ?s ?p ?o }",
        "CONSTRUCT WHERE { ?s ?p ?o }",
        "DESCRIBE ?s { ?s ?p ?o }",
    ] {
        let answer = server.query(query, "");
        assert_eq!(answer.status, 422, "{}", answer.text());
        assert!(answer.text().contains("more than 300 rows"));
    }
    let server = Running::with(|config| {
        config.max_rows = Some(20_000);
        config.inline_budget = Duration::ZERO;
    });
    for format in ["tsv", "json", "csv", "xml"] {
        let answer = server.query(PRODUCT, &format!("&format={format}"));
        assert_eq!(answer.status, 200);
        assert!(!answer.whole, "no client takes a part for the whole");
        let id = answer.header("jindou-query-id").unwrap();
        let why = server.get(&format!("/queries/{id}"), "").json();
        assert_eq!(why["status"], 422, "{why}");
        assert!(
            why["error"]
                .as_str()
                .unwrap()
                .contains("more than 20000 rows")
        );
    }
    server.wait_for_metric("jindou_rejected_total{reason=\"rows\"} 4");
}

#[test]
fn health_and_metrics_tell_what_failed_in_the_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let location = folder.path().join("store");
    let database = Database::open_or_create(&location, Config::default()).expect("a new store");
    let server = Running::with_database(database.clone(), |_| {});
    assert_eq!(server.get("/health", "").status, 200);
    let update = "Content-Type: application/sparql-update\r\n";
    let insert = "INSERT DATA { <http://e/a> <http://e/b> 1 }";
    assert_eq!(server.send("POST", "/update", update, insert).status, 204);
    std::fs::remove_dir_all(&location).expect("it was there");
    assert!(database.compact().is_err());
    let answer = server.get("/health", "");
    assert_eq!(answer.status, 503);
    assert!(
        answer.text().contains("cannot be merged"),
        "{}",
        answer.text()
    );
    server.wait_for_metric("jindou_store_failed{part=\"maintenance\"} 1");
    server.wait_for_metric("jindou_store_failed{part=\"log\"} 0");
    assert_eq!(server.query("ASK {}", "").status, 200);
}

#[test]
fn beyond_the_limit_the_longest_idle_connection_gives_way() {
    let server = Running::with(|config| config.max_connections = 2);
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut connection = server.connect();
        connection.send("GET", &target("ASK {}", ""), "", "");
        assert_eq!(connection.answer("GET").status, 200);
        open.push(connection);
    }
    // The first is used once more, so the second is idle for longest.
    open[0].send("GET", "/health", "", "");
    assert_eq!(open[0].answer("GET").status, 200);
    let mut third = server.connect();
    third.send("GET", &target("ASK {}", ""), "", "");
    assert_eq!(third.answer("GET").status, 200);
    assert!(open[1].ended());
    open[0].send("GET", "/health", "", "");
    assert_eq!(open[0].answer("GET").status, 200);
}

#[test]
fn health_and_metrics_answer_while_all_connections_are_busy() {
    let server = Running::with(|config| config.max_connections = 1);
    let mut busy = server.connect();
    busy.send("GET", &target(FRUITLESS, ""), "", "");
    server.wait_for_metric("jindou_queries_in_flight 1");
    for _ in 0..20 {
        let answer = server.get("/health", "");
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("connection"), Some("close"));
    }
    let refused = server.query("ASK {}", "");
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (503, Some("1"))
    );
    // Silent ones do not take the places of those that watch.
    let _silent: Vec<_> = (0..20).map(|_| server.connect()).collect();
    assert_eq!(server.get("/health", "").status, 200);
    busy.hang_up();
    server.wait_for_metric("jindou_queries_in_flight 0");
}

#[test]
fn a_client_that_only_ended_its_sending_side_gets_its_answer() {
    let server = Running::with(|config| config.inline_budget = Duration::ZERO);
    let quick = target("ASK {}", "&format=csv");
    let long = target(&format!("{PRODUCT} ORDER BY ?u ?t LIMIT 3"), "&format=csv");
    for target in [quick, long] {
        let mut connection = server.connect();
        connection.send("GET", &target, "", "");
        let stream = connection.reader.get_ref();
        stream
            .shutdown(std::net::Shutdown::Write)
            .expect("connected");
        let answer = loop {
            let answer = connection.head();
            if answer.status != 100 {
                break answer;
            }
        };
        assert_eq!(answer.status, 200);
    }
    // One that sent a body, too.
    let mut connection = server.connect();
    connection.send(
        "POST",
        "/query",
        "Content-Type: application/sparql-query\r\n",
        "ASK {}",
    );
    let stream = connection.reader.get_ref();
    stream
        .shutdown(std::net::Shutdown::Write)
        .expect("connected");
    assert_eq!(connection.head().status, 200);
    // It is asked whether it is there, and its query goes on.
    let mut waiting = server.connect();
    waiting.send("GET", &target(FRUITLESS, ""), "", "");
    let stream = waiting.reader.get_ref();
    stream
        .shutdown(std::net::Shutdown::Write)
        .expect("connected");
    for _ in 0..2 {
        assert_eq!(waiting.head().status, 100);
    }
    server.wait_for_metric("jindou_queries_in_flight 1");
    waiting.hang_up();
    server.wait_for_metric("jindou_queries_in_flight 0");
}

#[test]
fn a_client_of_http_1_0_that_ended_its_sending_side_gets_its_answer() {
    let server = Running::with(|config| config.inline_budget = Duration::ZERO);
    let long = format!("{PRODUCT} ORDER BY ?u ?t LIMIT 3");
    for query in ["ASK {}", &long] {
        let get = format!("GET {} HTTP/1.0\r\n\r\n", target(query, "&format=csv"));
        let kept = get.replace("\r\n\r\n", "\r\nConnection: keep-alive\r\n\r\n");
        let post = format!(
            "POST /query HTTP/1.0\r\nAccept: text/csv\r\nContent-Length: {}\r\n\
             Content-Type: application/sparql-query\r\n\r\n{query}",
            query.len()
        );
        for request in [get, kept, post] {
            let mut connection = server.connect();
            connection.write(request.as_bytes());
            let stream = connection.reader.get_ref();
            stream
                .shutdown(std::net::Shutdown::Write)
                .expect("connected");
            let mut answer = String::new();
            std::io::Read::read_to_string(&mut connection.reader, &mut answer).expect("text");
            assert!(answer.starts_with("HTTP/1.0 200 "), "{query}: {answer:?}");
            assert!(!answer.ends_with("\r\n\r\n"), "{query}: {answer:?}");
        }
    }
}

/// All that comes for a request of HTTP/1.0, and how it ends.
fn read_1_0(server: &Running, target: &str) -> (Vec<u8>, std::io::Result<usize>) {
    let mut connection = server.connect();
    connection.write(format!("GET {target} HTTP/1.0\r\n\r\n").as_bytes());
    let mut answer = Vec::new();
    let ended = std::io::Read::read_to_end(&mut connection.reader, &mut answer);
    (answer, ended)
}

#[test]
fn a_cut_answer_without_a_length_does_not_end_as_a_whole_one() {
    let server = Running::with(|config| {
        config.max_rows = Some(20_000);
        config.inline_budget = Duration::ZERO;
    });
    for format in ["tsv", "json", "csv", "arrow"] {
        let (answer, ended) = read_1_0(&server, &target(PRODUCT, &format!("&format={format}")));
        assert!(answer.starts_with(b"HTTP/1.0 200 "), "{format}");
        let error = ended.expect_err("no client takes a part for the whole");
        assert_eq!(
            error.kind(),
            std::io::ErrorKind::ConnectionReset,
            "{format}"
        );
    }
    let (_, ended) = read_1_0(&server, &target(ENDLESS, "&format=csv&timeout=0.2s"));
    assert!(ended.is_err());
    let whole = format!("{PRODUCT} LIMIT 15000");
    let (answer, ended) = read_1_0(&server, &target(&whole, "&format=csv"));
    assert_eq!(ended.expect("it is whole"), answer.len());
    let body = String::from_utf8(answer).expect("text");
    let (_, body) = body.split_once("\r\n\r\n").expect("a head");
    assert_eq!(body.lines().count(), 15_001);
}

#[test]
fn idle_connections_are_closed() {
    let server = Running::with(|config| config.idle_timeout = Duration::from_millis(50));
    let mut silent = server.connect();
    let mut used = server.connect();
    used.send("GET", "/health", "", "");
    assert_eq!(used.answer("GET").status, 200);
    let mut halfway = server.connect();
    halfway.write(b"GET /health HT");
    let mut bodiless = server.connect();
    let headers = "Content-Type: application/sparql-query\r\nContent-Length: 10\r\n";
    bodiless.send("POST", "/query", headers, "");
    assert_eq!(bodiless.answer("POST").status, 408);
    assert!(used.ended());
    // What these are told before the end is the HTTP library's choice.
    while !silent.ended() {
        let read = silent.reader.buffer().len();
        std::io::BufRead::consume(&mut silent.reader, read);
    }
    while !halfway.ended() {
        let read = halfway.reader.buffer().len();
        std::io::BufRead::consume(&mut halfway.reader, read);
    }
}

#[test]
fn requests_beyond_the_limits_are_refused() {
    let server = Running::with(|config| {
        config.max_body_bytes = 1000;
        config.max_uri_bytes = 9_000;
        config.max_header_bytes = 10_000;
    });
    let text = "Content-Type: application/sparql-query\r\n";
    assert_eq!(
        server
            .send("POST", "/query", text, &"#".repeat(1001))
            .status,
        413
    );
    let chunked = "Content-Type: application/sparql-query\r\nTransfer-Encoding: chunked\r\n";
    let mut connection = server.connect();
    connection.send("POST", "/query", chunked, "");
    connection.write(format!("400\r\n{}\r\n0\r\n\r\n", "#".repeat(0x400)).as_bytes());
    assert_eq!(connection.answer("POST").status, 413);
    let long = target(&"#".repeat(3_200), "");
    let answer = server.get(&long, "");
    assert_eq!(answer.status, 414);
    assert!(answer.text().contains("POST"), "{}", answer.text());
    let long = target(&"#".repeat(20_000), "");
    assert_eq!(server.get(&long, "").status, 431);
    assert_eq!(
        server
            .query(&format!("ASK {{}} #{}", "a".repeat(8000)), "")
            .status,
        200
    );
}

#[test]
fn a_stopping_server_ends_what_is_under_way() {
    let mut server = Running::with(|config: &mut ServerConfig| {
        config.shutdown_grace = Duration::from_millis(50);
    });
    let mut streaming = server.connect();
    streaming.send("GET", &target(ENDLESS, ""), "", "");
    assert_eq!(streaming.head().status, 200);
    let mut idle = server.connect();
    idle.send("GET", "/health", "", "");
    assert_eq!(idle.answer("GET").status, 200);
    server.stop();
    assert!(idle.ended());
    while streaming.chunk().is_some_and(|chunk| !chunk.is_empty()) {}
    assert!(streaming.ended());
}

#[test]
fn a_stopping_server_answers_what_it_ends() {
    let mut server = Running::with(|config| {
        config.shutdown_grace = Duration::from_millis(1);
        config.heavy_queries = 1;
    });
    let mut computing = server.connect();
    computing.send("GET", &target(FRUITLESS, ""), "", "");
    server.wait_for_metric("jindou_heavy_queries{state=\"computing\"} 1");
    let mut queued = server.connect();
    queued.send("GET", &target(FRUITLESS, ""), "", "");
    server.wait_for_metric("jindou_heavy_queries{state=\"queued\"} 1");
    let mut updating = server.connect();
    let update = format!(
        "INSERT {{ <http://e/new> <http://e/p> ?a }} {}",
        FRUITLESS.replace("SELECT *", "WHERE")
    );
    let kind = "Content-Type: application/sparql-update\r\n";
    updating.send("POST", "/update", kind, &update);
    server.wait_for_metric("jindou_queries_in_flight 3");
    // It waits for a body of which the last byte never comes: who is asked to go on has a request that is read.
    let mut uploading = server.connect();
    let head = "Content-Type: text/turtle\r\nContent-Length: 3\r\nExpect: 100-continue\r\n";
    uploading.send("PUT", "/store?default", head, "");
    assert_eq!(uploading.head().status, 100);
    uploading.write(b"# ");
    server.stop();
    for connection in [&mut computing, &mut queued, &mut updating, &mut uploading] {
        let answer = connection.answer("GET");
        assert_eq!(answer.status, 503, "{}", answer.text());
        assert_eq!(answer.header("retry-after"), Some("5"));
        let text = answer.text();
        assert!(text.contains("this server stops, or starts anew"), "{text}");
        assert!(answer.whole && connection.ended());
    }
}

#[test]
fn clients_that_come_at_once_wait_to_be_accepted() {
    const CLIENTS: usize = 500;
    let most = std::fs::read_to_string("/proc/sys/net/core/somaxconn");
    let most = most.ok().and_then(|most| most.trim().parse().ok());
    if most.is_none_or(|most: usize| most < CLIENTS) {
        println!("SKIPPED: clients that come at once (the system lets fewer wait)");
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let config = ServerConfig {
        address: ([127, 0, 0, 1], 0).into(),
        ..ServerConfig::default()
    };
    let server = Server::new(Database::new(), config);
    let listener = runtime.block_on(server.bind()).expect("a free port");
    let address = listener.local_addr().expect("bound");
    // Nobody accepts them: where fewer may wait, the next one never gets through.
    let patience = Duration::from_secs(30);
    let connect = |_| TcpStream::connect_timeout(&address, patience).expect("it may wait");
    let open: Vec<TcpStream> = (0..CLIENTS).map(connect).collect();
    assert_eq!(open.len(), CLIENTS);
}
