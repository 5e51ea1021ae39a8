//! No query ends the process, however deep it is and however small the stack of its thread: it is
//! answered, or refused with a typed error.

mod shapes;

use std::thread;

use jindou_engine::{Config, Database, EngineError, MergePolicy, QueryOptions, QueryResults};
use shapes::{Answer, BRACKETS, ITEMS, Shape, collection, nest, row};

/// The stack of a thread of a program that asked for nothing else, and of a test.
const STACK_BYTES: usize = 2 << 20;

fn config() -> Config {
    let mut config = Config::default();
    config.merge = MergePolicy::never();
    config
}

/// A loop, two numbers and a list.
fn database() -> Database {
    let database = Database::with_config(config());
    let list = collection("100", ITEMS);
    let data = format!(
        "INSERT DATA {{ <e:a> <e:p> <e:a> ; <e:q> 1, 2 ; <e:list> {list} .
         GRAPH <e:g> {{ <e:a> <e:p> <e:a> }} }}"
    );
    database.update(&data).unwrap();
    database
}

fn on_small_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let small = thread::Builder::new().stack_size(STACK_BYTES);
        let handle = small.spawn_scoped(scope, work).unwrap();
        handle.join().unwrap()
    })
}

fn refused(error: &EngineError) -> Answer {
    match error {
        EngineError::InvalidQuery { message } if message.contains("too large") => Answer::Refused,
        error => panic!("{error}"),
    }
}

fn answer(database: &Database, text: &str, options: QueryOptions) -> Answer {
    let profile = options.profile;
    match database.query_with(text, options) {
        Ok(QueryResults::Boolean(answer)) => Answer::Boolean(answer),
        Ok(QueryResults::Solutions(mut solutions)) => {
            let mut rows = 0;
            for solution in solutions.by_ref() {
                match solution {
                    Ok(_) => rows += 1,
                    Err(error) => return refused(&error),
                }
            }
            assert_eq!(solutions.profile().unwrap().is_some(), profile);
            Answer::Rows(rows)
        }
        Ok(QueryResults::Graph(graph)) => Answer::Rows(graph.map(Result::unwrap).count()),
        Err(error) => refused(&error),
    }
}

/// Asks, profiles and explains each on a small stack.
fn check(shapes: Vec<Shape>) {
    let database = database();
    for shape in shapes {
        let Shape {
            name,
            text,
            answer: expected,
        } = &shape;
        // Where a stack overflows, this is all that is left to see.
        println!("{name}");
        for profile in [false, true] {
            let options = QueryOptions {
                profile,
                ..QueryOptions::default()
            };
            let found = on_small_stack(|| answer(&database, text, options));
            assert_eq!(found, *expected, "{name}, profile: {profile}");
        }
        match on_small_stack(|| database.explain(text)) {
            Ok(explained) => assert!(explained.contains("cost"), "{name}"),
            Err(error) => assert_eq!(refused(&error), *expected, "{name}"),
        }
    }
}

#[test]
fn long_chains_of_patterns_are_answered() {
    check(shapes::patterns());
}

#[test]
fn deep_groups_are_answered() {
    check(shapes::groups());
}

#[test]
fn subqueries_and_computed_columns_are_answered() {
    check(shapes::selects());
}

#[test]
fn long_and_deep_paths_are_answered() {
    check(shapes::paths());
}

#[test]
fn deep_expressions_are_answered() {
    check(shapes::expressions());
}

#[test]
fn short_texts_are_planned_on_the_stack_of_their_thread() {
    check(shapes::short_texts());
}

#[test]
fn deep_updates_are_executed() {
    let database = database();
    let update = |text: &str| {
        let report = on_small_stack(|| database.update(text)).unwrap();
        (report.inserted, report.deleted)
    };
    let chain = row("?x# <e:p> ?x#+ .", 4_000);
    let list = collection("100", ITEMS);
    let made = format!("INSERT {{ ?x0 <e:made> ?x4000 }} WHERE {{ {chain} }}");
    assert_eq!(update(&made), (1, 0));
    let optionals = row("OPTIONAL { ?x <e:none> ?y# }", 500);
    let deleted = format!("DELETE {{ ?x <e:made> ?x }} WHERE {{ ?x <e:made> ?x {optionals} }}");
    assert_eq!(update(&deleted), (0, 1));
    let data = format!(
        "INSERT DATA {{ <e:b> <e:list> {} }}",
        collection("1", 50_000)
    );
    assert_eq!(update(&data), (100_001, 0));
    let nested = nest("<e:p> [ ", "<e:p> <e:b>", "]", BRACKETS);
    assert_eq!(
        update(&format!("INSERT DATA {{ <e:b> {nested} }}")),
        (BRACKETS as u64 + 1, 0)
    );
    let deleted = format!("DELETE {{ ?s ?p ?o }} WHERE {{ ?s <e:list> {list} . ?s ?p ?o }}");
    assert_eq!(update(&deleted), (0, 4));
    let ands = row("?x != -# && ", 8_000);
    let made = format!("INSERT {{ ?x <e:q> 3 }} WHERE {{ ?x <e:p> ?x FILTER({ands} true) }}");
    assert_eq!(update(&made), (0, 0));
}

/// Two vertices, each with an edge to both: a chain of n edges has 2^(n + 1) solutions.
fn doubling(threads: usize) -> Database {
    let mut config = config();
    config.threads = threads;
    let database = Database::with_config(config);
    let data = "INSERT DATA { <e:a> <e:d> <e:a>, <e:b> ; <e:same> <e:a> .
                <e:b> <e:d> <e:a>, <e:b> ; <e:same> <e:b> }";
    database.update(data).unwrap();
    database
}

fn first_number(database: &Database, text: &str, options: QueryOptions) -> String {
    match database.query_with(text, options).unwrap() {
        QueryResults::Solutions(mut solutions) => {
            let solution = solutions.next().unwrap().unwrap();
            let (_, term) = solution.iter().next().unwrap();
            term.to_string()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn pieces_of_a_chain_hand_on_all_tables() {
    const INTEGER: &str = "\"^^<http://www.w3.org/2001/XMLSchema#integer>";
    let database = doubling(1);
    let edges = row("?x# <e:d> ?x#+ .", 13);
    let same = row("?x13 <e:same> ?y# .", 40);
    let filters = row("FILTER(?x13 != <e:none#>)", 40);
    let optionals = row("OPTIONAL { ?x3 <e:same> ?z# . ?z# <e:d> <e:a> }", 20);
    let union = "{ ?x0 <e:same> <e:a> } UNION { ?x0 <e:same> <e:b> } UNION { ?x1 <e:same> <e:b> }";
    let all = 1 << 14;
    for (more, rows) in [
        (same.clone(), all),
        (filters.clone(), all),
        (optionals.clone(), all),
        (format!("{same} {union}"), all + all / 2),
        (
            format!(
                "{same} MINUS {{ ?x13 <e:same> <e:a> . {} }}",
                row("?x13 <e:same> ?m# .", 40)
            ),
            all / 2,
        ),
        (
            format!("FILTER EXISTS {{ ?x13 <e:same> <e:a> . {same} }} {filters}"),
            all / 2,
        ),
        (
            format!("OPTIONAL {{ {same} ?y39 <e:d> ?w }} {optionals}"),
            2 * all,
        ),
    ] {
        for profile in [false, true] {
            let options = QueryOptions {
                profile,
                ..QueryOptions::default()
            };
            let text = format!("SELECT (COUNT(*) AS ?n) {{ {edges} {more} }}");
            let counted = first_number(&database, &text, options.clone());
            assert_eq!(counted, format!("\"{rows}{INTEGER}"), "{text}");
            let text = format!("SELECT * {{ {edges} {more} }}");
            assert_eq!(
                answer(&database, &text, options),
                Answer::Rows(rows),
                "{text}"
            );
        }
    }
}

#[test]
fn a_limit_ends_a_chain_of_pieces_early() {
    let database = doubling(1);
    let rows_of = |limit: &str| {
        let options = QueryOptions {
            profile: true,
            ..QueryOptions::default()
        };
        let chain = row("?x# <e:d> ?x#+ .", 16);
        let same = row("?x16 <e:same> ?y# .", 40);
        let text = format!("SELECT * {{ {chain} {same} }} {limit}");
        let Ok(QueryResults::Solutions(mut solutions)) = database.query_with(&text, options) else {
            panic!("no solutions");
        };
        assert!(solutions.by_ref().all(|solution| solution.is_ok()));
        let profile = solutions.profile().unwrap().unwrap();
        // The third column from the right is of rows: expected, found, time and its unit.
        let found = profile.lines().filter_map(|line| {
            let mut words = line.split_whitespace().rev();
            let unit = words.next()?;
            let time = words.next()?;
            (matches!(unit, "ns" | "us" | "ms") && time.parse::<u64>().is_ok())
                .then(|| words.next()?.replace(',', "").parse::<u64>().ok())?
        });
        found.sum::<u64>()
    };
    let (all, some) = (rows_of(""), rows_of("LIMIT 1"));
    assert!(
        all > 1 << 17 && some < all / 8,
        "{some} of {all} rows were made"
    );
}

#[test]
fn threads_that_share_a_deep_plan_find_what_one_finds() {
    let text = {
        let scan = "?x <e:n> ?n .";
        let nested = nest("OPTIONAL { ?x <e:n> ?n# . ?n# <e:back> ?b# ", "", "}", 60);
        format!("SELECT (COUNT(*) AS ?c) {{ {scan} {nested} }}")
    };
    let counts = [1, 2].map(|threads| {
        let mut config = config();
        config.threads = threads;
        let database = Database::with_config(config);
        let data = row("<e:s#> <e:n> <e:n#> . <e:n#> <e:back> <e:s#> .", 6_000);
        database
            .update(&format!("INSERT DATA {{ {data} }}"))
            .unwrap();
        on_small_stack(|| first_number(&database, &text, QueryOptions::default()))
    });
    assert_eq!(counts[0], counts[1]);
    assert!(counts[0].contains("6000"), "{}", counts[0]);
}
