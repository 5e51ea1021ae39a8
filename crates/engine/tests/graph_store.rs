//! Are whole graphs replaced, added to and dropped as one transaction each?

use jindou_engine::ingest::{Format, Source};
use jindou_engine::{CancellationToken, Database, EngineError, UpdateOptions};
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
