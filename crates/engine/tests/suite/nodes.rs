//! When do rows of a query go to other nodes, how many, and what becomes of a query whose sub-queries
//! fail or whose reader has enough?

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use jindou_engine::ingest::{Progress, Source};
use jindou_engine::{
    CancellationToken, Config, Database, EngineError, ForkPolicy, Forked, LoadOptions,
    MessageLimits, QueryOptions, QueryResults, Shards,
};

/// So many that reading their lists is more work than to send them to where these are.
const PEOPLE: usize = 15_000;
const NODES: u32 = 3;

/// Each knows the next and the seventh after them, and everybody is a person with a name.
fn text() -> String {
    let person = |number: usize| format!("<http://x/p{:05}>", number % PEOPLE);
    let lines = (0..PEOPLE).map(|number| {
        let (me, next, seventh) = (person(number), person(number + 1), person(number + 7));
        format!(
            "{me} a <http://x/Person> ; <http://x/knows> {next} , {seventh} ; <http://x/name> \"{number}\" .\n"
        )
    });
    lines.collect()
}

fn database(policy: ForkPolicy, nodes: u32) -> Database {
    database_with(policy, nodes, None)
}

/// One whose sub-queries are handed over as they are, and one where they go as messages.
fn both_ways(policy: ForkPolicy) -> [Database; 2] {
    [None, Some(MessageLimits::default())].map(|messages| database_with(policy, NODES, messages))
}

/// [`both_ways`], and so without the history of rows, which stays where they were forked.
fn all_ways(policy: ForkPolicy) -> Vec<Database> {
    let messages = [None, Some(MessageLimits::default())];
    let without = messages.map(|messages| loaded(policy, (messages, 0), &text()));
    both_ways(policy).into_iter().chain(without).collect()
}

fn config(policy: ForkPolicy, nodes: u32, messages: Option<MessageLimits>) -> Config {
    let mut config = Config::default();
    config.fork_messages = messages;
    config.shards = Shards::new(8).expect("a power of two");
    config.nodes = nodes;
    config.fork_policy = policy;
    config
}

fn database_with(policy: ForkPolicy, nodes: u32, messages: Option<MessageLimits>) -> Database {
    load(config(policy, nodes, messages), &text())
}

/// Data on nodes that send so many bytes of histories along.
fn loaded(
    policy: ForkPolicy,
    (messages, history_bytes): (Option<MessageLimits>, usize),
    text: &str,
) -> Database {
    let mut config = config(policy, NODES, messages);
    config.fork_history_bytes = history_bytes;
    load(config, text)
}

fn load(config: Config, text: &str) -> Database {
    let database = Database::with_config(config);
    let source = Source::bytes("people.ttl", text.as_bytes().to_vec());
    database
        .load(vec![source], &LoadOptions::default(), &Progress::default())
        .expect("it loads");
    database
}

/// The rows of a query, and its sub-queries.
fn asked(database: &Database, query: &str) -> Result<(usize, Forked), EngineError> {
    asked_with(database, query, QueryOptions::default())
}

fn asked_with(
    database: &Database,
    query: &str,
    options: QueryOptions,
) -> Result<(usize, Forked), EngineError> {
    let QueryResults::Solutions(mut solutions) = database.query_with(query, options)? else {
        panic!("a SELECT");
    };
    let mut rows = 0;
    for solution in &mut solutions {
        solution?;
        rows += 1;
    }
    Ok((rows, solutions.forked()))
}

const LIGHT: &str = "SELECT * { <http://x/p00000> <http://x/knows> ?a . ?a <http://x/knows> ?b }";
const HEAVY: &str = "SELECT ?a ?c { ?a a <http://x/Person> ; <http://x/knows> ?b . ?b <http://x/knows> ?c . ?c <http://x/name> ?n }";
/// Three who know each other in a circle: nobody does.
const CIRCLES: &str =
    "SELECT ?a ?c { ?a <http://x/knows> ?b . ?b <http://x/knows> ?c . ?c <http://x/knows> ?a }";

#[test]
fn what_is_read_in_place_asks_no_other_node() {
    let database = database(ForkPolicy::InPlace, NODES);
    for (query, rows) in [(LIGHT, 4), (HEAVY, 4 * PEOPLE)] {
        assert_eq!(asked(&database, query).unwrap(), (rows, Forked::default()));
    }
}

#[test]
fn rows_go_to_their_keys_where_that_is_less_work() {
    for database in both_ways(ForkPolicy::Dynamic) {
        let (rows, forked) = asked(&database, LIGHT).unwrap();
        assert_eq!((rows, forked), (4, Forked::default()), "two keys are read");
        let (rows, forked) = asked(&database, CIRCLES).unwrap();
        assert_eq!(rows, 0);
        assert!(forked.sub_queries >= u64::from(NODES - 1), "{forked:?}");
        let (rows, forked) = asked(&database, HEAVY).unwrap();
        assert_eq!(rows, 4 * PEOPLE);
        assert_eq!(
            forked,
            Forked::default(),
            "more rows than lists would come back"
        );
        wait_until_nothing_is_held(&database);
    }
}

#[test]
fn all_rows_whose_keys_are_elsewhere_go_there_if_they_must() {
    for database in both_ways(ForkPolicy::ForkJoin) {
        let (rows, forked) = asked(&database, LIGHT).unwrap();
        assert_eq!(rows, 4);
        // The constant, and each of two people, is here or elsewhere, by the node at which the query began.
        assert!((1..=5).contains(&forked.rows), "{forked:?}");
        let (rows, forked) = asked(&database, HEAVY).unwrap();
        assert_eq!(rows, 4 * PEOPLE);
        // The two scans of other nodes; and neighbours have numbers of which one is 1 or 7 more, so that
        // none of them is on the same one of three nodes: one step of the two goes there with all rows.
        assert_eq!(forked.rows, 2 + 2 * PEOPLE as u64, "{forked:?}");
        wait_until_nothing_is_held(&database);
    }
}

/// Waits for what nodes still do for queries that have ended.
fn wait_until_nothing_is_held(database: &Database) {
    let begin = Instant::now();
    loop {
        let held = database.held_for_others();
        if held.iter().all(|(queries, chains)| queries + chains == 0) {
            return;
        }
        let is_late = begin.elapsed() > Duration::from_secs(60);
        assert!(!is_late, "queries, and chains, by node: {held:?}");
        std::thread::yield_now();
    }
}

#[test]
fn one_query_has_one_now_and_no_uuid_twice_wherever_its_rows_are() {
    for database in all_ways(ForkPolicy::ForkJoin) {
        let query = "SELECT ?t ?u { ?a a <http://x/Person> ; <http://x/knows> ?b . \
                     ?b <http://x/knows> ?c BIND(NOW() AS ?t) BIND(UUID() AS ?u) }";
        let QueryResults::Solutions(solutions) = database.query(query).unwrap() else {
            panic!("a SELECT");
        };
        let (mut times, mut uuids) = (BTreeSet::new(), BTreeSet::new());
        for solution in solutions {
            let solution = solution.unwrap();
            times.insert(solution.get("t").unwrap().to_string());
            uuids.insert(solution.get("u").unwrap().to_string());
        }
        assert_eq!(times.len(), 1);
        assert_eq!(uuids.len(), 4 * PEOPLE);
    }
}

#[test]
fn a_reader_that_has_enough_ends_all_sub_queries() {
    let query = format!("{HEAVY} LIMIT 5");
    for database in all_ways(ForkPolicy::ForkJoin) {
        for _ in 0..20 {
            assert_eq!(asked(&database, &query).unwrap().0, 5);
        }
        // One that stops in the middle leaves nothing behind that would keep the next from its answer.
        for _ in 0..20 {
            let QueryResults::Solutions(mut solutions) = database.query(HEAVY).unwrap() else {
                panic!("a SELECT");
            };
            assert!(solutions.next().is_some());
        }
        wait_until_nothing_is_held(&database);
        assert_eq!(asked(&database, HEAVY).unwrap().0, 4 * PEOPLE);
    }
}

#[test]
fn what_no_array_says_other_nodes_are_asked_by_messages() {
    let database = database(ForkPolicy::InPlace, NODES);
    assert_eq!(database.remote_reads().messages, 0);
    let edges = |graph: &str, step: usize| {
        let edge = |number: usize| {
            let (from, to) = (number, (number + step) % 100);
            format!("<http://x/p{from:04}> <http://x/knows> <http://x/p{to:04}> . ")
        };
        let edges: String = (0..100).map(edge).collect();
        format!("GRAPH <http://x/{graph}> {{ {edges} }} ")
    };
    let update = format!("INSERT DATA {{ {} {} }}", edges("g", 1), edges("h", 2));
    database.update(&update).unwrap();
    let query =
        "SELECT * { GRAPH <http://x/g> { ?a <http://x/knows> ?b . ?b <http://x/knows> ?c } }";
    assert_eq!(asked(&database, query).unwrap().0, 100);
    let reads = database.remote_reads();
    assert!(reads.calls > 0, "{reads:?}");
    assert!(reads.messages >= 2 && reads.message_bytes > 0, "{reads:?}");
}

#[test]
fn lists_of_many_keys_are_read_once() {
    const PAIRS: usize = 2000;
    // Each pair has 20 whom both of it know, and 5 more that one of them knows.
    let lines = (0..PAIRS).map(|pair| {
        let known = |by: &str, last: usize| {
            let one = |number| {
                format!("<http://x/k{pair}_{number}> <http://x/{by}> <http://x/{by}{pair}> .\n")
            };
            (0..last).map(one).collect::<String>()
        };
        let pair = format!("<http://x/left{pair}> <http://x/beside> <http://x/right{pair}> .\n");
        pair + &known("left", 20) + &known("right", 25)
    });
    let config = config(ForkPolicy::InPlace, NODES, None);
    let database = load(config, &lines.collect::<String>());
    let reads_of = |patterns: &str| {
        let before = database.remote_reads();
        let query = format!("SELECT * {{ ?l <http://x/beside> ?r . {patterns} }}");
        assert_eq!(asked(&database, &query).unwrap().0, 20 * PAIRS);
        database.remote_reads().since(before).reads as usize
    };
    // The pairs, then bounds and neighbours of each list, with some that are read ahead and for which no room is left.
    let reads = reads_of("?k <http://x/left> ?l");
    assert!((PAIRS..=5 * PAIRS).contains(&reads), "{reads}");
    // The bounds of both lists to see which is shorter, those and what that has, those and what the other has.
    let reads = reads_of("?k <http://x/left> ?l ; <http://x/right> ?r");
    assert!((PAIRS..=12 * PAIRS).contains(&reads), "{reads}");
}

#[test]
fn what_ends_a_sub_query_ends_the_query_by_its_name() {
    let product = "SELECT (COUNT(*) AS ?n) { ?a <http://x/knows> ?b . ?c <http://x/knows> ?d . \
                   FILTER(STR(?a) < STR(?d)) }";
    for database in all_ways(ForkPolicy::ForkJoin) {
        let limit = Duration::from_millis(100);
        let timed = QueryOptions {
            timeout: Some(limit),
            ..QueryOptions::default()
        };
        // The limit is the query's, wherever it was met.
        let ended = asked_with(&database, product, timed);
        assert!(
            matches!(ended, Err(EngineError::Timeout { limit: of }) if of == limit),
            "{ended:?}"
        );
        let cancellation = CancellationToken::new();
        cancellation.cancel();
        let cancelled = QueryOptions {
            cancellation: Some(cancellation),
            ..QueryOptions::default()
        };
        let ended = asked_with(&database, HEAVY, cancelled);
        assert!(matches!(ended, Err(EngineError::Cancelled)), "{ended:?}");
        wait_until_nothing_is_held(&database);
        assert_eq!(asked(&database, HEAVY).unwrap().0, 4 * PEOPLE);
    }
}

#[test]
fn a_query_that_is_cancelled_while_others_work_for_it_ends_there_too() {
    let [_, database] = both_ways(ForkPolicy::ForkJoin);
    let product = "SELECT (COUNT(*) AS ?n) { ?a a <http://x/Person> ; <http://x/knows> ?b . \
                   ?b <http://x/knows> ?x . FILTER EXISTS { ?c <http://x/knows> ?d . \
                   FILTER(STR(?x) > STR(?d) && STRLEN(STR(?x)) < 3) } }";
    let cancellation = CancellationToken::new();
    let options = QueryOptions {
        cancellation: Some(cancellation.clone()),
        ..QueryOptions::default()
    };
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| asked_with(&database, product, options));
        // Once another node has a part of it.
        while database.held_for_others().iter().all(|held| held.0 == 0) && !asking.is_finished() {
            std::thread::yield_now();
        }
        cancellation.cancel();
        let ended = asking.join().expect("it ends");
        assert!(matches!(ended, Err(EngineError::Cancelled)), "{ended:?}");
    });
    wait_until_nothing_is_held(&database);
}

#[test]
fn one_table_on_the_way_is_enough_for_chains_that_feed_each_other() {
    let limits = MessageLimits {
        waiting_tables: 1,
        ..MessageLimits::default()
    };
    let fed = "SELECT ?a ?d { \
               { ?a a <http://x/Person> ; <http://x/knows> ?b . ?b <http://x/knows> ?c } UNION \
               { ?c a <http://x/Person> ; <http://x/knows> ?b . ?b <http://x/knows> ?a } \
               ?c <http://x/knows> ?d . ?d <http://x/name> ?n }";
    let expected = asked(&database(ForkPolicy::InPlace, NODES), fed).unwrap().0;
    assert!(expected > 10 * PEOPLE);
    let as_they_are = database(ForkPolicy::ForkJoin, NODES);
    let as_messages = database_with(ForkPolicy::ForkJoin, NODES, Some(limits));
    let without_history = loaded(ForkPolicy::ForkJoin, (Some(limits), 0), &text());
    for database in [as_they_are, as_messages, without_history] {
        for query in [fed, HEAVY] {
            let rows = asked(&database, query).unwrap().0;
            assert_eq!(rows, if query == fed { expected } else { 4 * PEOPLE });
        }
        wait_until_nothing_is_held(&database);
    }
}

#[test]
fn a_message_that_is_too_large_ends_its_query_by_name() {
    let limits = MessageLimits {
        message_bytes: 4096,
        ..MessageLimits::default()
    };
    let database = database_with(ForkPolicy::ForkJoin, NODES, Some(limits));
    assert_eq!(asked(&database, LIGHT).unwrap().0, 4);
    let ended = asked(&database, HEAVY);
    assert!(
        matches!(ended, Err(EngineError::SubQuery { .. })),
        "{ended:?}"
    );
    wait_until_nothing_is_held(&database);
}

/// Everybody has three names, and a city is in a land.
fn citizens() -> String {
    let person = |number: usize| {
        format!(
            "<http://x/p{number:05}> a <http://x/Person> ; <http://x/first> \"a{number}\" ; \
             <http://x/middle> \"b{number}\" ; <http://x/last> \"c{number}\" .\n"
        )
    };
    let city = "<http://x/city> <http://x/in> <http://x/land> .\n".to_owned();
    (0..PEOPLE).map(person).chain([city]).collect()
}

#[test]
fn a_history_that_is_larger_than_it_may_be_stays_and_is_joined_with_what_is_found() {
    // The names are read where people are, and the land where the city is.
    const WIDE: &str = "SELECT * { ?a a <http://x/Person> ; <http://x/first> ?f ; <http://x/middle> ?m ; \
                        <http://x/last> ?l BIND(<http://x/city> AS ?c) OPTIONAL { ?c <http://x/in> ?land } }";
    let answer = |database: &Database| {
        let QueryResults::Solutions(mut solutions) = database.query(WIDE).unwrap() else {
            panic!("a SELECT");
        };
        let rows = solutions.by_ref();
        let mut rows: Vec<String> = rows.map(|row| format!("{:?}", row.unwrap())).collect();
        rows.sort_unstable();
        (rows, solutions.forked())
    };
    let text = citizens();
    for messages in [None, Some(MessageLimits::default())] {
        let asked = |history_bytes| {
            let of_history = (messages, history_bytes);
            let database = loaded(ForkPolicy::ForkJoin, of_history, &text);
            let answer = answer(&database);
            wait_until_nothing_is_held(&database);
            answer
        };
        let (rows, whole) = asked(usize::MAX);
        assert_eq!(rows.len(), PEOPLE);
        let (by_default, sent) = asked(Config::default().fork_history_bytes);
        assert!(
            by_default == rows,
            "other rows with what is sent by default"
        );
        assert!(sent.bytes <= whole.bytes, "{sent:?} and {whole:?}");
        let (joined, without) = asked(0);
        assert!(joined == rows, "other rows without histories");
        // Of five columns only the city goes, once a table.
        assert!(
            10 * without.bytes < whole.bytes,
            "{without:?} and {whole:?}"
        );
    }
}

#[test]
fn more_nodes_than_shards_are_refused_by_name() {
    let database = database(ForkPolicy::Dynamic, 9);
    let error = asked(&database, LIGHT).unwrap_err();
    assert!(matches!(error, EngineError::Nodes(_)), "{error}");
    assert_eq!(
        error.to_string(),
        "9 nodes for 8 shards: each node holds at least one"
    );
}

#[test]
fn a_profile_says_how_many_rows_went() {
    for database in both_ways(ForkPolicy::ForkJoin) {
        let options = QueryOptions {
            profile: true,
            ..QueryOptions::default()
        };
        let QueryResults::Solutions(mut solutions) = database.query_with(HEAVY, options).unwrap()
        else {
            panic!("a SELECT");
        };
        assert_eq!(solutions.by_ref().count(), 4 * PEOPLE);
        let profile = solutions.profile().unwrap().unwrap();
        let last = profile.lines().last().unwrap();
        assert!(
            last.starts_with("sub-queries at other nodes: "),
            "{profile}"
        );
        // Rows of all nodes are counted where they were found.
        assert!(profile.contains("60,000"), "{profile}");
    }
}
