//! Updates: transactions that follow one another, survive their process, and hold up no reader.

use std::collections::BTreeSet;

use jindou_engine::{Config, Database, EngineError, MergePolicy, QueryResults, UpdateOptions};

fn rows(database: &Database, query: &str) -> BTreeSet<String> {
    match database.query(query).unwrap() {
        QueryResults::Solutions(solutions) => solutions
            .map(|solution| {
                let solution = solution.unwrap();
                let terms: Vec<String> = solution
                    .iter()
                    .map(|(name, term)| format!("{name}={term}"))
                    .collect();
                terms.join(" ")
            })
            .collect(),
        other => panic!("{other:?}"),
    }
}

fn all(database: &Database) -> BTreeSet<String> {
    let mut quads = rows(database, "SELECT * { ?s ?p ?o }");
    quads.extend(rows(database, "SELECT * { GRAPH ?g { ?s ?p ?o } }"));
    quads
}

const PREFIX: &str = "PREFIX : <http://example.org/>";

fn update(database: &Database, text: &str) -> (u64, u64) {
    let report = database.update(&format!("{PREFIX} {text}")).unwrap();
    (report.inserted, report.deleted)
}

fn config() -> Config {
    let mut config = Config::default();
    config.merge = MergePolicy::never();
    config
}

#[test]
fn every_operation_does_what_it_says() {
    let database = Database::with_config(config());
    assert_eq!(
        update(
            &database,
            "INSERT DATA { :a :p :b, 1 . GRAPH :g { :a :p 'x'@en } }"
        ),
        (3, 0)
    );
    assert_eq!(update(&database, "INSERT DATA { :a :p :b }"), (0, 0));
    assert_eq!(
        update(
            &database,
            "DELETE DATA { :a :p 1 . :a :p 2 . :never :seen :before }"
        ),
        (0, 1)
    );
    assert_eq!(
        update(
            &database,
            "DELETE { :a :p ?o } INSERT { ?o :q :a, _:x . _:x :r ?o } WHERE { :a :p ?o }"
        ),
        (3, 1)
    );
    assert_eq!(
        rows(&database, &format!("{PREFIX} SELECT * {{ ?b :r :b }}")).len(),
        1
    );
    assert_eq!(update(&database, "COPY :g TO :h"), (1, 0));
    assert_eq!(update(&database, "MOVE :h TO DEFAULT"), (1, 4));
    assert_eq!(
        rows(&database, "SELECT * { ?s ?p ?o }")
            .into_iter()
            .collect::<Vec<_>>(),
        ["s=<http://example.org/a> p=<http://example.org/p> o=\"x\"@en"]
    );
    assert_eq!(update(&database, "CREATE GRAPH :empty"), (0, 0));
    assert_eq!(
        rows(&database, "SELECT ?g { GRAPH ?g {} }"),
        BTreeSet::from(
            ["g=<http://example.org/empty>", "g=<http://example.org/g>"].map(str::to_owned)
        )
    );
    let absent = database.update("DROP GRAPH <http://example.org/none>");
    assert!(
        matches!(absent, Err(EngineError::GraphAbsent { .. })),
        "{absent:?}"
    );
    let exists = database.update(&format!(
        "{PREFIX} INSERT DATA {{ :z :z :z }}; CREATE GRAPH :g"
    ));
    assert!(
        matches!(exists, Err(EngineError::GraphExists { .. })),
        "{exists:?}"
    );
    assert_eq!(
        rows(&database, &format!("{PREFIX} SELECT * {{ :z ?p ?o }}")).len(),
        0
    );
    assert_eq!(
        update(
            &database,
            "CLEAR GRAPH :g; DROP SILENT GRAPH :none; DROP GRAPH :empty"
        ),
        (0, 1)
    );
    assert_eq!(rows(&database, "SELECT ?g { GRAPH ?g {} }").len(), 1);
    assert_eq!(update(&database, "DROP ALL"), (0, 1));
    assert_eq!(all(&database).len(), 0);
}

#[test]
fn a_request_is_executed_as_a_whole_or_not_at_all() {
    let database = Database::with_config(config());
    update(&database, "INSERT DATA { :a :p 1 }");
    let before = all(&database);
    let failed = database.update(&format!(
        "{PREFIX} DELETE WHERE {{ ?s ?p ?o }}; INSERT DATA {{ :b :p 2 }}; LOAD <file:///none>"
    ));
    assert!(failed.is_err());
    assert_eq!(all(&database), before);
}

#[test]
fn a_reader_keeps_its_snapshot_through_updates_and_merges() {
    let database = Database::with_config(config());
    for number in 0..5_000 {
        if number % 100 == 0 {
            let data: String = (number..number + 100)
                .map(|n| format!(":s{n} :p {n} . :s{n} a :T{} .", n % 3))
                .collect();
            update(&database, &format!("INSERT DATA {{ {data} }}"));
        }
    }
    let QueryResults::Solutions(mut reader) = database
        .query("SELECT * { ?s <http://example.org/p> ?o }")
        .unwrap()
    else {
        panic!("SELECT gives solutions");
    };
    let first = reader.next_batch().unwrap().unwrap().rows();
    update(
        &database,
        "DELETE { ?s :p ?o } WHERE { ?s :p ?o FILTER(?o < 2500) }",
    );
    assert!(database.compact().unwrap());
    update(&database, "DELETE WHERE { ?s ?p ?o }");
    assert!(database.compact().unwrap());
    let mut found = first;
    while let Some(batch) = reader.next_batch().unwrap() {
        found += batch.rows();
    }
    assert_eq!(found, 5_000);
    assert_eq!(all(&database).len(), 0);
}

#[test]
fn a_stored_database_comes_back_after_updates_checkpoints_and_merges() {
    let folder = tempfile::tempdir().unwrap();
    let location = folder.path().join("store");
    let mut expected = BTreeSet::new();
    for round in 0..6 {
        let database = Database::open_or_create(&location, config()).unwrap();
        assert_eq!(all(&database), expected, "round {round}");
        for number in 0..20 {
            let text = format!(
                "INSERT DATA {{ :s{round} :p{number} 'text {number}', {number}, :o{number}, [ :q :r ] .
                                GRAPH :g{round} {{ :s{number} :p :o }} }};
                 DELETE WHERE {{ :s{round} :p{} ?o }}",
                number / 2
            );
            update(&database, &text);
            match (round, number) {
                (1 | 3, 10) => database.checkpoint().unwrap(),
                (2 | 3, 15) => assert!(database.compact().unwrap()),
                _ => {}
            }
        }
        if round % 2 == 1 {
            update(&database, "DROP GRAPH :g0; CREATE SILENT GRAPH :empty");
            update(&database, "INSERT DATA { GRAPH :g0 { :x :y :z } }");
        }
        expected = all(&database);
        assert_eq!(
            rows(
                &database,
                "SELECT ?g { GRAPH <http://example.org/empty> {} }"
            )
            .len(),
            usize::from(round > 0)
        );
    }
}

#[test]
fn a_second_checkpoint_without_transactions_between_keeps_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let location = folder.path().join("store");
    let mut expected = BTreeSet::new();
    for round in 0..3 {
        let database = Database::open_or_create(&location, config()).unwrap();
        assert_eq!(all(&database), expected, "round {round}");
        database.checkpoint().unwrap();
        update(&database, &format!("INSERT DATA {{ :s{round} :p :o }}"));
        database.checkpoint().unwrap();
        database.checkpoint().unwrap();
        expected = all(&database);
        assert_eq!(expected.len(), round + 1);
    }
}

#[test]
fn writers_on_many_threads_follow_one_another_while_merges_run() {
    let database = Database::with_config(config());
    update(&database, "INSERT DATA { :counter :value 0 }");
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let database = &database;
            scope.spawn(move || {
                for number in 0..50 {
                    let text = format!(
                        "DELETE {{ :counter :value ?v }} INSERT {{ :counter :value ?w . :w{writer} :did {number} }}
                         WHERE {{ :counter :value ?v BIND(?v + 1 AS ?w) }}"
                    );
                    update(database, &text);
                }
            });
        }
        let database = &database;
        scope.spawn(move || {
            for _ in 0..10 {
                database.compact().unwrap();
                // Whatever snapshot it is, it is one: as many marks as the counter says.
                let marks = "SELECT ?v (COUNT(?n) AS ?c) { ?k :value ?v OPTIONAL { ?w :did ?n } } GROUP BY ?v";
                for row in rows(database, &format!("{PREFIX} {marks}")) {
                    let numbers: Vec<&str> = row.split('"').collect();
                    assert_eq!(numbers[1], numbers[3], "{row}");
                }
            }
        });
    });
    let value = rows(
        &database,
        &format!("{PREFIX} SELECT ?v {{ :counter :value ?v }}"),
    );
    assert!(value.iter().all(|row| row.contains("\"200\"")), "{value:?}");
}

#[test]
fn an_update_obeys_its_dataset_and_its_time() {
    let database = Database::with_config(config());
    update(
        &database,
        "INSERT DATA { :d :p 1 GRAPH :g { :g :p 2 } GRAPH :h { :h :p 3 } }",
    );
    let options = UpdateOptions {
        using_graphs: vec![oxrdf::NamedNode::new("http://example.org/g").unwrap()],
        ..UpdateOptions::default()
    };
    let text = format!("{PREFIX} INSERT {{ :found :o ?o }} WHERE {{ ?s :p ?o }}");
    database.update_with(&text, options).unwrap();
    assert_eq!(
        rows(&database, &format!("{PREFIX} SELECT ?o {{ :found :o ?o }}")),
        BTreeSet::from(["o=\"2\"^^<http://www.w3.org/2001/XMLSchema#integer>".to_owned()])
    );
    update(
        &database,
        "WITH :h DELETE { ?s :p ?o } INSERT { ?s :q ?o } WHERE { ?s :p ?o }",
    );
    assert_eq!(
        rows(
            &database,
            &format!("{PREFIX} SELECT * {{ GRAPH :h {{ :h :q ?o }} }}")
        )
        .len(),
        1
    );
    let options = UpdateOptions {
        timeout: Some(std::time::Duration::ZERO),
        ..UpdateOptions::default()
    };
    let late = database.update_with(&format!("{PREFIX} DELETE WHERE {{ ?s ?p ?o }}"), options);
    assert!(matches!(late, Err(EngineError::Timeout { .. })), "{late:?}");
}

#[test]
fn a_predicate_that_becomes_a_vertex_is_a_term_of_the_graph() {
    let database = Database::with_config(config());
    update(
        &database,
        "INSERT DATA { :v0 :p2 :v0 . :v5 :p1 :v2 . :v1 :p0 :v3 . :g0 :p0 :p2 . :p2 a :Property }",
    );
    let ask = |database: &Database, pattern: &str| {
        rows(database, &format!("{PREFIX} SELECT * {{ {pattern} }}")).len()
    };
    for _ in 0..2 {
        assert_eq!(ask(&database, "?x :p0 ?y . ?y :p1* ?z"), 2);
        assert_eq!(ask(&database, ":p2 ?p ?o"), 1);
        assert_eq!(ask(&database, "?s ?p :p2"), 1);
        assert_eq!(ask(&database, "?x a :Property . ?s ?x ?o"), 1);
        assert_eq!(ask(&database, ":p2 :p1? ?y"), 1);
        database.compact().unwrap();
    }
}

#[test]
fn quads_of_graphs_named_by_blank_nodes_are_changed_as_others() {
    let database = Database::with_config(config());
    update(&database, "INSERT DATA { _:x :names 1, 'x' . :g :names 2 }");
    let fill = "INSERT { GRAPH ?g { :s :p ?n } } WHERE { ?g :names ?n }";
    assert_eq!(update(&database, fill), (3, 0));
    // No graph is called as a literal is.
    let fill = "INSERT { GRAPH ?n { :s :p ?n } } WHERE { ?g :names ?n }";
    assert_eq!(update(&database, fill), (0, 0));
    let change = "DELETE { GRAPH ?g { ?s ?p 'x' } } INSERT { GRAPH ?g { ?s ?p 'y', 'z' } } \
                  WHERE { GRAPH ?g { ?s ?p 'x' } }";
    for round in 0..2 {
        assert_eq!(
            update(&database, change),
            if round == 0 { (2, 1) } else { (0, 0) }
        );
        database.compact().unwrap();
    }
    let all = "DELETE WHERE { GRAPH ?g { ?s ?p ?o } }";
    assert_eq!(update(&database, all), (0, 4));
}
