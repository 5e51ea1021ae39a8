//! Are whole graphs replaced, added to and dropped as one transaction each?

use std::io::{Cursor, Read};
use std::sync::Arc;

use jindou_engine::ingest::{Format, Source};
use jindou_engine::{
    CancellationToken, Config, Database, EngineError, GraphReport, MemoryPool, UpdateOptions,
};
use oxrdf::NamedNode;

fn graph() -> NamedNode {
    NamedNode::new_unchecked("http://e/g")
}

fn document(text: &str) -> Vec<Source> {
    let source = Source::bytes("a document", text).with_format(Format::TriG);
    vec![source.with_base_iri("http://e/base")]
}

fn lines(database: &Database, graph: Option<&NamedNode>) -> Option<Vec<String>> {
    let mut lines = Vec::new();
    let visited = database.for_each_quad_in(graph, |quad| {
        lines.push(format!(
            "{:?} {} {:?}",
            quad.subject, quad.predicate, quad.object
        ));
        Ok::<(), EngineError>(())
    });
    visited.expect("nothing fails").map(|_| {
        lines.sort();
        lines
    })
}

#[test]
fn a_graph_is_made_replaced_added_to_and_dropped() {
    let database = Database::new();
    let (graph, options) = (graph(), UpdateOptions::default());
    assert_eq!(lines(&database, Some(&graph)), None);
    let put = |text: &str| {
        let done = database.replace_graph(Some(&graph), document(text), &options);
        let done = done.expect("a graph is put");
        (done.existed, done.update.inserted, done.update.deleted)
    };
    assert_eq!(put("<#a> <#p> 1 , 2 ."), (false, 2, 0));
    assert_eq!(put("<#b> <#p> 3 ."), (true, 1, 2));
    assert_eq!(lines(&database, Some(&graph)).expect("there").len(), 1);
    let done = database.add_to_graph(Some(&graph), document("<#b> <#p> 3, 4 ."), &options);
    let done = done.expect("a graph is added to");
    assert_eq!((done.existed, done.update.inserted), (true, 1));
    assert_eq!(lines(&database, Some(&graph)).expect("there").len(), 2);
    assert_eq!(
        lines(&database, None),
        Some(Vec::new()),
        "the default graph is untouched"
    );
    let dropped = database
        .drop_graph(Some(&graph), &options)
        .expect("it is there");
    assert_eq!(dropped.deleted, 2);
    assert_eq!(lines(&database, Some(&graph)), None);
    let again = database.drop_graph(Some(&graph), &options);
    assert!(
        matches!(again, Err(EngineError::GraphAbsent { .. })),
        "{again:?}"
    );
}

#[test]
fn a_graph_may_be_empty_and_is_there_all_the_same() {
    let database = Database::new();
    let (graph, options) = (graph(), UpdateOptions::default());
    for existed in [false, true] {
        let done = database.replace_graph(Some(&graph), document(""), &options);
        assert_eq!(done.expect("nothing is put").existed, existed);
        assert_eq!(lines(&database, Some(&graph)), Some(Vec::new()));
    }
}

#[test]
fn the_default_graph_is_always_there_and_is_emptied_when_dropped() {
    let database = Database::new();
    let options = UpdateOptions::default();
    let done = database.replace_graph(None, document("<#a> <#p> _:b ."), &options);
    assert!(done.expect("it is put").existed);
    assert_eq!(lines(&database, None).expect("there").len(), 1);
    assert_eq!(
        database.drop_graph(None, &options).expect("there").deleted,
        1
    );
    assert_eq!(lines(&database, None), Some(Vec::new()));
}

#[test]
fn blank_nodes_of_two_documents_are_different() {
    let database = Database::new();
    let options = UpdateOptions::default();
    let both = [document("_:b <#p> 1 ."), document("_:b <#p> 1 .")]
        .into_iter()
        .flatten();
    let done = database.add_to_graph(None, both.collect(), &options);
    assert_eq!(done.expect("both are read").update.inserted, 2);
    let done = database.add_to_graph(None, document("_:b <#p> 1 ."), &options);
    assert_eq!(done.expect("it is read").update.inserted, 1);
}

#[test]
fn what_is_wrong_changes_nothing() {
    let database = Database::new();
    let (graph, options) = (graph(), UpdateOptions::default());
    let named = database.replace_graph(Some(&graph), document("<#g> { <#a> <#p> 1 }"), &options);
    assert!(
        matches!(named, Err(EngineError::InvalidQuery { .. })),
        "{named:?}"
    );
    let wrong = database.replace_graph(Some(&graph), document("<#a> <#p> .\n"), &options);
    assert!(matches!(wrong, Err(EngineError::Ingest(_))), "{wrong:?}");
    let token = CancellationToken::new();
    token.cancel();
    let cancelled = UpdateOptions {
        cancellation: Some(token),
        ..UpdateOptions::default()
    };
    let ended = database.replace_graph(Some(&graph), document("<#a> <#p> 1 ."), &cancelled);
    assert!(matches!(ended, Err(EngineError::Cancelled)), "{ended:?}");
    let ended = database.update_with("INSERT DATA { <http://e/a> <http://e/p> 1 }", cancelled);
    assert!(matches!(ended, Err(EngineError::Cancelled)), "{ended:?}");
    assert_eq!(lines(&database, Some(&graph)), None);
    assert_eq!(lines(&database, None), Some(Vec::new()));
}

#[test]
fn an_update_calls_only_endpoints_that_it_may() {
    let database = Database::new();
    let options = UpdateOptions {
        services: Some(jindou_engine::AddressPolicy::None),
        ..UpdateOptions::default()
    };
    let text = "INSERT { ?s ?p ?o } WHERE { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }";
    let refused = database.update_with(text, options);
    assert!(
        matches!(refused, Err(EngineError::ServiceNotAllowed { .. })),
        "{refused:?}"
    );
}

/// As [`document`], of a length that nobody knows: it is not held as one.
fn large_document(text: &str) -> Vec<Source> {
    let source = Source::reader("a document", Cursor::new(text.to_owned().into_bytes()));
    let source = source.with_format(Format::TriG);
    vec![source.with_base_iri("http://e/base")]
}

/// So many statements of Turtle, of which each shares most with those before it.
fn statements(count: usize, seed: usize) -> String {
    let line = |n: usize| {
        let subject = (n * 7 + seed) % 97;
        format!("<#s{subject}> <#p{}> \"{}\" .\n", n % 5, (n + seed) % 1000)
    };
    (0..count).map(line).collect()
}

#[derive(Clone, Copy, Debug)]
enum Write {
    Replace,
    Add,
    ReplaceDataset,
    AddDataset,
}

fn write(
    database: &Database,
    write: Write,
    graph: Option<&NamedNode>,
    documents: Vec<Source>,
) -> (bool, u64, u64) {
    let options = UpdateOptions::default();
    let done = match write {
        Write::Replace => database.replace_graph(graph, documents, &options),
        Write::Add => database.add_to_graph(graph, documents, &options),
        Write::ReplaceDataset => database
            .replace_dataset(documents, &options)
            .map(GraphReport::of_dataset),
        Write::AddDataset => database
            .add_to_dataset(documents, &options)
            .map(GraphReport::of_dataset),
    };
    let done = done.expect("the document is sound");
    assert_eq!(done.update.snapshot, database.snapshot_number());
    (done.existed, done.update.inserted, done.update.deleted)
}

#[test]
fn large_documents_do_what_short_ones_do() {
    let graph = graph();
    let dataset =
        |count, seed| format!("{0} <#g> {{ {0} }} <#h> {{ {0} }}", statements(count, seed));
    let steps = [
        // Into nothing, onto much, and little onto much; with repeats; nothing at all.
        (Write::Replace, Some(&graph), statements(300, 1)),
        (Write::Add, None, statements(200, 2)),
        (Write::Add, None, statements(250, 2)),
        (Write::Add, Some(&graph), statements(5, 3)),
        (Write::Replace, None, statements(100, 4)),
        (Write::Replace, Some(&graph), statements(3, 5)),
        (Write::Replace, Some(&graph), String::new()),
        (Write::Replace, Some(&graph), statements(200, 6)),
        (Write::AddDataset, None, dataset(150, 7)),
        (Write::ReplaceDataset, None, dataset(160, 8)),
        (Write::ReplaceDataset, None, String::new()),
        (Write::Add, None, String::new()),
        (Write::ReplaceDataset, None, dataset(100, 9)),
    ];
    for first in 0..steps.len() {
        let (short, large) = (Database::new(), Database::new());
        for (place, (what, target, text)) in steps[first..].iter().enumerate() {
            let one = write(&short, *what, *target, document(text));
            let other = write(&large, *what, *target, large_document(text));
            assert_eq!(one, other, "step {place} after {first}: {what:?}");
            for name in [None, Some(&graph)] {
                assert_eq!(
                    lines(&short, name),
                    lines(&large, name),
                    "{place} after {first}"
                );
            }
        }
    }
}

#[test]
fn blank_nodes_of_large_documents_are_different() {
    let database = Database::new();
    let options = UpdateOptions::default();
    let text = format!("{} _:b <#q> 1 .", statements(200, 0));
    let both = [large_document(&text), large_document(&text)]
        .into_iter()
        .flatten();
    let done = database.add_to_graph(None, both.collect(), &options);
    let once = done.expect("both are read").update.inserted - 1;
    for text in [&text[..], "_:b <#q> 1 ."] {
        let done = database.add_to_graph(None, large_document(text), &options);
        assert_eq!(
            done.expect("it is read").update.inserted,
            1,
            "beside {once}"
        );
    }
}

#[test]
fn what_is_wrong_with_a_large_document_changes_nothing() {
    let database = Database::new();
    let (graph, options) = (graph(), UpdateOptions::default());
    let much = statements(20_000, 0);
    let named = format!("{much} <#g> {{ <#a> <#p> 1 }}");
    let named = database.replace_graph(Some(&graph), large_document(&named), &options);
    assert!(
        matches!(named, Err(EngineError::InvalidQuery { .. })),
        "{named:?}"
    );
    let broken = format!("{much} <#a> <#p> .");
    let broken = database.add_to_graph(None, large_document(&broken), &options);
    let told = broken.expect_err("it is broken").to_string();
    assert!(told.contains(":20001:"), "{told}");
    let cancellation = CancellationToken::new();
    cancellation.cancel();
    let options = UpdateOptions {
        cancellation: Some(cancellation),
        ..UpdateOptions::default()
    };
    let cancelled = database.add_to_graph(None, large_document(&much), &options);
    assert!(
        matches!(cancelled, Err(EngineError::Cancelled)),
        "{cancelled:?}"
    );
    assert_eq!(lines(&database, None), Some(Vec::new()));
    assert_eq!(lines(&database, Some(&graph)), None);
}

/// It may need more than one query, and no more than all.
#[test]
fn a_large_document_is_counted_against_the_pool() {
    let text = statements(200_000, 0);
    let with_pool = |bytes: u64| {
        let pool = Arc::new(MemoryPool::new(bytes));
        let mut config = Config::default();
        config.query_memory_bytes = 64 << 10;
        config.memory_pool = Some(Arc::clone(&pool));
        let database = Database::with_config(config);
        let done = database.add_to_graph(None, large_document(&text), &UpdateOptions::default());
        assert!(pool.reserve(bytes).is_some(), "all of it was given back");
        (database, done)
    };
    let (database, done) = with_pool(64 << 20);
    let done = done.expect("all together have the room");
    assert_eq!(
        done.update.inserted,
        lines(&database, None).expect("there").len() as u64
    );
    let (database, done) = with_pool(3 << 20);
    assert!(
        matches!(done, Err(EngineError::DocumentBeyondPool { .. })),
        "{done:?}"
    );
    assert_eq!(lines(&database, None), Some(Vec::new()));
}

/// A little that becomes a transaction, as it is beside much.
#[test]
fn long_terms_of_a_large_document_that_becomes_a_transaction_are_counted() {
    let pool = Arc::new(MemoryPool::new(16 << 20));
    let mut config = Config::default();
    config.memory_pool = Some(Arc::clone(&pool));
    let database = Database::with_config(config);
    let options = UpdateOptions::default();
    let much = database.add_to_graph(None, large_document(&statements(2000, 0)), &options);
    let number = much.expect("there is room").update.snapshot;
    // Twice or so in the account of the document, and three times in that of the transaction.
    let long = |bytes: usize| -> String {
        let text = "x".repeat(bytes);
        (0..100)
            .map(|n| format!("<#a> <#p> \"{n}{text}\" .\n"))
            .collect()
    };
    let done = database.add_to_graph(None, large_document(&long(40_000)), &options);
    assert!(
        matches!(done, Err(EngineError::PoolExhausted { .. })),
        "{done:?}"
    );
    assert_eq!((database.snapshot_number(), pool.held_bytes()), (number, 0));
    let done = database.add_to_graph(None, large_document(&long(4000)), &options);
    assert_eq!(done.expect("there is room").update.inserted, 100);
}

/// Commits something else before its first byte comes.
struct Beside {
    bytes: Cursor<Vec<u8>>,
    commit: Option<Box<dyn FnOnce() + Send>>,
}

impl Read for Beside {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if let Some(commit) = self.commit.take() {
            commit();
        }
        self.bytes.read(buffer)
    }
}

#[test]
fn a_graph_that_is_replaced_has_nothing_that_others_added_meanwhile() {
    let database = Database::new();
    let options = UpdateOptions::default();
    let others = "INSERT DATA { <http://e/x> <http://e/p> 1 }";
    database
        .update("INSERT DATA { GRAPH <http://e/h> { <http://e/x> <http://e/p> 0 } }")
        .expect("it is well formed");
    let beside = database.clone();
    let source = Source::reader(
        "a document",
        Beside {
            bytes: Cursor::new(statements(500, 0).into_bytes()),
            commit: Some(Box::new(move || {
                drop(beside.update(others).expect("nobody waits"))
            })),
        },
    );
    let source = source
        .with_format(Format::Turtle)
        .with_base_iri("http://e/base");
    let done = database
        .replace_graph(None, vec![source], &options)
        .expect("it is put");
    assert_eq!((done.update.inserted, done.update.deleted), (500, 1));
    let left = lines(&database, None).expect("there");
    assert!(
        !left.iter().any(|line| line.contains("http://e/x")),
        "{left:?}"
    );
}
