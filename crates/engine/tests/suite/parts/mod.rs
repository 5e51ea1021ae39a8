//! Do nodes that have their parts of a store alone answer, plan and count as one database does that has all of it?
#![cfg(target_os = "linux")]

mod order;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jindou_datagen::lubm::{HEAVY, Lubm, QUERIES as LUBM_QUERIES};
use jindou_engine::ingest::{Progress, Source};
use jindou_engine::results::{GraphFormat, GraphWriter};
use jindou_engine::{
    ClusterOptions, Config, Database, EngineError, ForkPolicy, GraphSelection, LoadOptions,
    PeerList, QueryResults, SplitProgress, StoreError,
};
use tempfile::TempDir;

const PEOPLE: usize = 300;
const NAMES: [&str; 3] = ["a", "b", "c"];
const PATIENCE: Duration = Duration::from_secs(60);

/// People who know each other and a hub, with names of several kinds, in the default graph and in named ones.
fn people() -> String {
    let person = |number: usize| format!("<http://x/p{:03}>", number % PEOPLE);
    let lines = (0..PEOPLE).map(|number| {
        let (me, next, seventh) = (person(number), person(number + 1), person(number + 7));
        let (graph, other) = (number % 11, number % 3);
        format!(
            "{me} a <http://x/Person> ; <http://x/knows> {next} , {seventh} , <http://x/hub> ; \
             <http://x/name> \"name {number}\" ; <http://x/age> {number} ; <http://x/says> \"hi\"@en .\n\
             <http://x/g{graph}> {{ {me} <http://x/likes> {seventh} , <http://x/hub> ; a <http://x/Liker> }}\n\
             <http://x/h{other}> {{ {next} <http://x/likes> {me} . {me} <http://x/age> {other} }}\n"
        )
    });
    lines.collect()
}

const QUERIES: [&str; 28] = [
    "SELECT ?s ?o { ?s <http://x/name> ?o FILTER NOT EXISTS { ?o ?q ?s } }",
    "SELECT ?s ?o ?q { ?s <http://x/age>|<http://x/knows> ?o . ?o ?q ?s }",
    "SELECT * { <http://x/late0> ?p ?o }",
    "SELECT * { ?s ?p \"late\"@de . ?s <http://x/knows>/<http://x/knows> ?o }",
    "SELECT * { GRAPH <http://x/late> { ?s ?p ?o } }",
    "SELECT * { VALUES ?o { \"gone\" \"name late\" \"name 7\" <http://x/p009> <http://x/none> 17 } ?s ?p ?o }",
    "SELECT * { <http://x/p000> <http://x/knows> ?a . ?a <http://x/knows> ?b }",
    "SELECT * { ?a <http://x/knows> <http://x/p005> ; <http://x/name> ?n }",
    "SELECT * { <http://x/p001> ?p ?o }",
    "SELECT * { ?s ?p <http://x/p002> }",
    "SELECT * { ?s ?p \"name 7\" }",
    "SELECT * { ?s <http://x/age> 17 ; <http://x/name> ?n }",
    "SELECT ?n (COUNT(*) AS ?c) { ?a <http://x/knows> ?b . ?b <http://x/knows> ?d . ?d <http://x/name> ?n } GROUP BY ?n",
    "SELECT (COUNT(*) AS ?c) { ?s ?p ?o }",
    "SELECT (COUNT(*) AS ?c) { GRAPH ?g { ?s ?p ?o } }",
    "SELECT ?p (COUNT(?o) AS ?n) { ?s ?p ?o } GROUP BY ?p",
    "SELECT DISTINCT ?p { ?s ?p ?o }",
    "SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }",
    "SELECT ?g (COUNT(*) AS ?c) { GRAPH ?g { ?s <http://x/likes> ?o } } GROUP BY ?g",
    "SELECT DISTINCT ?p { GRAPH <http://x/g3> { ?s ?p ?o } }",
    "SELECT * { GRAPH <http://x/g3> { ?s <http://x/likes> ?o } ?o <http://x/name> ?n }",
    "SELECT * { GRAPH ?g { ?a <http://x/likes> ?b . ?b <http://x/likes> ?a } }",
    "SELECT ?a { ?a <http://x/knows>+ <http://x/p003> }",
    "SELECT ?b { <http://x/p003> (<http://x/knows>/<http://x/knows>)|^<http://x/knows> ?b }",
    "SELECT (MIN(?n) AS ?least) (MAX(?n) AS ?most) (SUM(?a) AS ?sum) { ?s <http://x/name> ?n ; <http://x/age> ?a }",
    "SELECT ?s { ?s <http://x/name> ?n FILTER NOT EXISTS { ?s <http://x/knows> <http://x/p005> } } ORDER BY ?n LIMIT 10",
    "SELECT * { ?s <http://x/says> \"hi\"@en OPTIONAL { GRAPH ?g { ?s <http://x/likes> <http://x/hub> } } }",
    "ASK { ?a <http://x/knows> ?b . ?b <http://x/knows> ?c . ?c <http://x/knows> ?a }",
];

const GRAPHS: [&str; 3] = [
    "DESCRIBE <http://x/p004>",
    "DESCRIBE ?s { ?s <http://x/age> 17 }",
    "CONSTRUCT { ?c <http://x/knownBy> ?a } { ?a <http://x/knows> ?b . ?b <http://x/knows> ?c }",
];

/// What a query finds, in no order.
fn rows(database: &Database, query: &str) -> Result<Vec<String>, EngineError> {
    let mut rows = rows_in_order(database, query)?;
    rows.sort_unstable();
    Ok(rows)
}

/// What a query finds, in its order.
fn rows_in_order(database: &Database, query: &str) -> Result<Vec<String>, EngineError> {
    let mut rows = Vec::new();
    match database.query(query)? {
        QueryResults::Boolean(value) => rows.push(value.to_string()),
        QueryResults::Solutions(solutions) => {
            for solution in solutions {
                rows.push(format!("{:?}", solution?));
            }
        }
        QueryResults::Graph(graph) => {
            for triple in graph {
                rows.push(triple?.to_string());
            }
        }
    }
    Ok(rows)
}

/// All quads of a database as lines, in no order, and how they were counted.
fn dump(database: &Database, graphs: &GraphSelection) -> Result<(u64, Vec<String>), EngineError> {
    let mut writer = GraphWriter::new(GraphFormat::NQuads);
    let mut text = Vec::new();
    let visited = database.for_each_quad(graphs, |quad| {
        writer.quad(&mut text, quad).expect("memory takes it");
        Ok::<(), EngineError>(())
    })?;
    writer.finish(&mut text).expect("memory takes it");
    let text = String::from_utf8(text).expect("it is UTF-8");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    Ok((visited, lines))
}

/// Makes a store of a text in a folder.
fn make(location: &Path, name: &str, text: String) {
    let source = Source::bytes(name, text.into_bytes());
    let (options, progress) = (LoadOptions::default(), Progress::default());
    let made = Database::create(
        location,
        vec![source],
        &options,
        &progress,
        Config::default(),
    );
    made.expect("it loads");
}

/// What came after the load: terms in tables of their own, some of which nothing uses any more.
const LATER: [&str; 3] = [
    "INSERT DATA { <http://x/late0> <http://x/knows> <http://x/p003> , <http://x/late1> ; a <http://x/Late> ; \
     <http://x/name> \"name late\" , \"late\"@de ; <http://x/met> <http://x/p009> . \
     GRAPH <http://x/late> { <http://x/late1> <http://x/likes> <http://x/hub> } }",
    "INSERT DATA { <http://x/gone> <http://x/name> \"gone\" , \"gone, too\" }",
    "DELETE WHERE { <http://x/gone> ?p ?o }",
];

/// Makes the store of a text in a folder, and adds to it what came later, which is merged.
fn make_in_steps(location: &Path, name: &str, text: String) {
    make(location, name, text);
    let database = Database::open(location, Config::default()).expect("it opens");
    for update in LATER {
        database.update(update).expect("nothing is in the way");
        database.compact().expect("it merges");
    }
}

/// A folder with the store of a text.
fn store(name: &str, text: String) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let location = folder.path().join("store");
    make(&location, name, text);
    (folder, location)
}

/// A list of so many shards and of nodes with these names, and what listens at their ports.
fn list(shards: u32, names: &[&str]) -> (PeerList, Vec<TcpListener>) {
    let listeners: Vec<TcpListener> = names
        .iter()
        .map(|_| TcpListener::bind("127.0.0.1:0").expect("a port"))
        .collect();
    let nodes = names.iter().zip(&listeners).map(|(name, listener)| {
        let address = listener.local_addr().expect("it has one");
        format!("[[node]]\nname = \"{name}\"\naddress = \"{address}\"\n")
    });
    let text = format!("shards = {shards}\n{}", nodes.collect::<String>());
    (PeerList::parse(&text).expect("a list"), listeners)
}

fn options(
    peers: &PeerList,
    name: &str,
    listener: Option<TcpListener>,
    maps_memory: bool,
) -> ClusterOptions {
    ClusterOptions {
        peers: peers.clone(),
        secret: None,
        node: peers.node(name).expect("it is in the list"),
        maps_memory,
        listener,
        keeper: None,
        max_staleness: None,
    }
}

/// The nodes of a list, which have met: each with what is in its folder.
fn cluster(
    (peers, listeners): (&PeerList, Vec<TcpListener>),
    locations: &[PathBuf],
    policy: ForkPolicy,
    maps_memory: bool,
) -> Vec<Database> {
    let nodes = peers.peers().iter().zip(listeners).zip(locations);
    let nodes = nodes.map(|((peer, listener), location)| {
        let mut config = Config::default();
        config.fork_policy = policy;
        let database = Database::open_to_join(location, config).expect("it opens");
        let joined = database.join(options(peers, &peer.name, Some(listener), maps_memory));
        joined.expect("it joins");
        database
    });
    let nodes: Vec<Database> = nodes.collect();
    for node in &nodes {
        assert!(node.wait_for_cluster(PATIENCE), "{:?}", node.cluster());
    }
    nodes
}

fn split(location: &Path, peers: &PeerList, to: &Path) -> Vec<PathBuf> {
    let report =
        Database::split(location, peers, to, &SplitProgress::default()).expect("it is split");
    let edges: u64 = report.parts.iter().map(|part| part.bytes.edges).sum();
    assert!(edges > 0 && report.whole.edges > 0);
    report
        .parts
        .iter()
        .map(|part| to.join(&part.name))
        .collect()
}

/// The plan of a query, with the rows expected.
fn plan(database: &Database, query: &str) -> String {
    database
        .explain(query)
        .unwrap_or_else(|error| panic!("{query}: {error}"))
}

#[test]
fn nodes_with_parts_answer_and_plan_as_one_database_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let location = folder.path().join("store");
    make_in_steps(&location, "people.trig", people());
    let one = Database::open_to_read(&location, Config::default()).expect("it opens");
    let ways = [
        (ForkPolicy::Dynamic, true),
        (ForkPolicy::InPlace, false),
        (ForkPolicy::ForkJoin, true),
        (ForkPolicy::ForkJoin, false),
    ];
    for (number, (policy, maps_memory)) in ways.into_iter().enumerate() {
        let (peers, listeners) = list(16, &NAMES);
        let mut locations = split(
            &location,
            &peers,
            &folder.path().join(format!("parts-{number}")),
        );
        if number == 3 {
            // One has a whole copy.
            locations[1] = folder.path().join("copy");
            let whole = Database::open_to_copy(&location, Config::default()).expect("it opens");
            whole.backup(&locations[1]).expect("it is copied");
        }
        let nodes = cluster((&peers, listeners), &locations, policy, maps_memory);
        for (place, node) in nodes.iter().enumerate() {
            for query in QUERIES.iter().chain(&GRAPHS) {
                let what = format!("{policy:?}, {maps_memory}, node {place}: {query}");
                let expected = rows(&one, query).unwrap();
                assert_eq!(rows(node, query).expect(&what), expected, "{what}");
                assert_eq!(plan(node, query), plan(&one, query), "{what}");
            }
            let selections = [
                GraphSelection::All,
                GraphSelection::Default,
                GraphSelection::Named(oxrdf::NamedNode::new_unchecked("http://x/g3").into()),
            ];
            for graphs in &selections {
                assert_eq!(
                    dump(node, graphs).unwrap(),
                    dump(&one, graphs).unwrap(),
                    "{graphs:?}"
                );
            }
            assert_eq!(node.quad_counts(), one.quad_counts());
            assert_eq!(node.graph_sizes(20), one.graph_sizes(20));
            let [of_node, of_one] = [node, &one].map(Database::statistics);
            let counts = |of: &jindou_engine::DatabaseStatistics| {
                let each = of
                    .predicates
                    .iter()
                    .map(|it| (it.iri.clone(), it.triples, it.subjects, it.objects));
                each.collect::<Vec<_>>()
            };
            assert_eq!(counts(&of_node), counts(&of_one));
            let is_part = number != 3 || place != 1;
            assert_eq!(of_node.part.is_some(), is_part);
            assert!(!is_part || of_node.segment_bytes < of_one.segment_bytes);
            // Each reads the lists of the others where they lie: their digests are the same.
            let status = node.cluster().expect("it is a node");
            for other in status.iter().filter(|other| other.node.0 as usize != place) {
                assert!(other.predicates > 0);
                assert_eq!(other.alike, other.predicates, "{}", other.name);
            }
        }
    }
}

#[test]
fn parts_of_lubm_answer_its_queries() {
    let mut text = Vec::new();
    Lubm::new(1, 0).write(&mut text).expect("memory takes it");
    let (folder, location) = store("lubm.nt", String::from_utf8(text).expect("it is UTF-8"));
    let one = Database::open_to_read(&location, Config::default()).expect("it opens");
    for names in [&NAMES[..1], &NAMES[..2], &NAMES] {
        let (peers, listeners) = list(8, names);
        let parts = split(
            &location,
            &peers,
            &folder.path().join(format!("parts-{}", names.len())),
        );
        let nodes = cluster((&peers, listeners), &parts, ForkPolicy::Dynamic, true);
        for (name, query) in LUBM_QUERIES {
            let (expected, planned) = (rows(&one, query).unwrap(), plan(&one, query));
            assert!(!expected.is_empty() || HEAVY.contains(&name), "{name}");
            for node in &nodes {
                assert_eq!(
                    rows(node, query).unwrap(),
                    expected,
                    "{} nodes: {name}",
                    names.len()
                );
                assert_eq!(plan(node, query), planned, "{} nodes: {name}", names.len());
            }
        }
    }
}

#[test]
fn a_part_is_opened_by_its_own_node_of_its_own_list_alone() {
    let (folder, location) = store("people.trig", people());
    let (peers, mut listeners) = list(16, &NAMES);
    let parts = split(&location, &peers, &folder.path().join("parts"));
    let part = &parts[1];
    let is_part = |error: &EngineError| {
        let said = error.to_string();
        assert!(
            said.contains("node b, 2 of 3, with 5 of 16 shards"),
            "{said}"
        );
        matches!(error, EngineError::Store(StoreError::NodePart { .. }))
    };
    type Open = fn(&Path, Config) -> Result<Database, EngineError>;
    let ways: [Open; 4] = [
        Database::open,
        Database::open_to_read,
        Database::open_to_copy,
        Database::open_or_create,
    ];
    for open in ways {
        let refused = open(part, Config::default()).expect_err("it is a part");
        assert!(is_part(&refused), "{refused}");
    }
    let restored = Database::restore(part, &folder.path().join("restored"));
    assert!(is_part(&restored.expect_err("it is a part")));
    assert_eq!(
        Database::verify(part).unwrap().part.unwrap().of,
        "node b, 2 of 3, with 5 of 16 shards"
    );
    // Not before it is the node.
    let database = Database::open_to_join(part, Config::default()).unwrap();
    assert!(is_part(
        &database.query("ASK {}").expect_err("it is no node")
    ));
    assert!(is_part(
        &database.explain("ASK {}").expect_err("it is no node")
    ));
    assert!(is_part(
        &dump(&database, &GraphSelection::All).expect_err("it is no node")
    ));
    let others = [
        list(16, &["a", "c", "b"]),
        list(16, &["a", "b"]),
        list(32, &NAMES),
        list(16, &["b", "a", "c"]),
    ];
    for (other, _held) in &others {
        let refused = database
            .join(options(other, "b", None, true))
            .expect_err("it is another list");
        let EngineError::PartOfOther { part, asked } = &refused else {
            panic!("{refused}");
        };
        assert_eq!(part, "node b, 2 of 3, with 5 of 16 shards");
        assert_ne!(part, asked);
    }
    let refused = database
        .join(options(&peers, "a", None, true))
        .expect_err("it is another node");
    assert!(
        matches!(refused, EngineError::PartOfOther { .. }),
        "{refused}"
    );
    database
        .join(options(&peers, "b", Some(listeners.remove(1)), true))
        .expect("it is the node");
}
