//! Do the nodes of a cluster that is written all answer as one database with the same transactions, whichever of
//! them these come to?
#![cfg(target_os = "linux")]

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jindou_engine::ingest::{Progress, Source};
use jindou_engine::{
    ClusterOptions, Config, Database, EngineError, ForkPolicy, GraphSelection, LoadOptions,
    PeerList, Presence, QueryOptions, QueryResults, ReplicaStatus,
};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);
const NODES: usize = 3;
const PEOPLE: u64 = 200;

/// Seeds of a run; `JINDOU_SEED` sets the first one, and `JINDOU_CASES` how many there are.
fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
    };
    let first = number("JINDOU_SEED", 1);
    first..first + number("JINDOU_CASES", 6)
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (self.0 >> 33) % limit
    }

    fn person(&mut self) -> String {
        format!("<http://x/p{}>", self.below(PEOPLE + 40))
    }

    fn triple(&mut self) -> String {
        let (me, other) = (self.person(), self.person());
        match self.below(5) {
            0 => format!("{me} a <http://x/C{}>", self.below(3)),
            1 => format!("{me} <http://x/name> \"{}\"", self.below(300)),
            2 => format!("{me} <http://x/age> {}", self.below(90)),
            _ => format!("{me} <http://x/knows> {other}"),
        }
    }

    fn quads(&mut self, most: u64) -> String {
        let count = 1 + self.below(most);
        let quads = (0..count).map(|_| match self.below(4) {
            0 => format!(
                "GRAPH <http://x/g{}> {{ {} }}",
                self.below(3),
                self.triple()
            ),
            _ => format!("{} .", self.triple()),
        });
        quads.collect::<Vec<_>>().join("\n")
    }

    fn update(&mut self) -> String {
        match self.below(5) {
            0 | 1 => format!("INSERT DATA {{ {} }}", self.quads(40)),
            2 => format!("DELETE DATA {{ {} }}", self.quads(60)),
            3 => {
                let me = self.person();
                format!(
                    "DELETE {{ {me} ?p ?o }} INSERT {{ ?o <http://x/knew> {me} }} WHERE {{ {me} ?p ?o FILTER(isIRI(?o)) }}"
                )
            }
            _ => format!(
                "INSERT {{ ?a <http://x/near> ?c }} WHERE {{ ?a <http://x/knows> ?b . ?b <http://x/knows> ?c . ?c a <http://x/C{}> }}",
                self.below(3)
            ),
        }
    }
}

const QUERIES: [&str; 9] = [
    "SELECT * { <http://x/p1> <http://x/knows> ?a . ?a <http://x/knows> ?b }",
    "SELECT ?a ?c ?n { ?a a <http://x/C1> ; <http://x/knows> ?b . ?b <http://x/knows> ?c . ?c <http://x/name> ?n }",
    "SELECT ?n (COUNT(*) AS ?c) { ?a <http://x/knows> ?b . ?b <http://x/name> ?n } GROUP BY ?n",
    "SELECT * { ?a <http://x/knows>+ <http://x/p3> }",
    "SELECT * { GRAPH ?g { ?a <http://x/knows> ?b } OPTIONAL { ?b <http://x/name> ?n } }",
    "SELECT ?p (COUNT(?o) AS ?n) { ?s ?p ?o } GROUP BY ?p",
    "SELECT ?s ?n { ?s <http://x/age> ?n FILTER(?n < 30) MINUS { ?s a <http://x/C0> } }",
    "SELECT ?a ?c { ?a <http://x/near> ?c . ?c <http://x/knew> ?d }",
    "SELECT * { GRAPH <http://x/g1> { ?s ?p ?o } }",
];

/// What a query finds, in no order.
fn rows(database: &Database, query: &str) -> Result<Vec<String>, EngineError> {
    let QueryResults::Solutions(solutions) = database.query_with(query, QueryOptions::default())?
    else {
        panic!("solutions are asked for");
    };
    let mut rows = Vec::new();
    for solution in solutions {
        rows.push(format!("{:?}", solution?));
    }
    rows.sort_unstable();
    Ok(rows)
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("there is room");
    for entry in std::fs::read_dir(from).expect("it is a store") {
        let entry = entry.expect("it is there");
        std::fs::copy(entry.path(), to.join(entry.file_name())).expect("there is room");
    }
}

fn list() -> (PeerList, Vec<TcpListener>) {
    let listeners: Vec<TcpListener> = (0..NODES)
        .map(|_| TcpListener::bind("127.0.0.1:0").expect("a port"))
        .collect();
    let nodes = listeners.iter().enumerate().map(|(number, listener)| {
        let address = listener.local_addr().expect("it has one");
        format!("[[node]]\nname = \"n{number}\"\naddress = \"{address}\"\n")
    });
    let text = format!("shards = 16\n{}", nodes.collect::<String>());
    (PeerList::parse(&text).expect("a list"), listeners)
}

struct Cluster {
    nodes: Vec<Database>,
    /// One database, with the same transactions.
    model: Database,
    _folder: TempDir,
}

impl Cluster {
    fn start(text: &str, policy: ForkPolicy, maps_memory: bool) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name: &str| -> PathBuf { folder.path().join(name) };
        let source = || vec![Source::bytes("data.trig", text.as_bytes().to_vec())];
        let (options, progress) = (LoadOptions::default(), Progress::default());
        let created = Database::create(
            &place("n0"),
            source(),
            &options,
            &progress,
            Config::default(),
        );
        drop(created.expect("it loads"));
        for number in 1..NODES {
            copy(&place("n0"), &place(&format!("n{number}")));
        }
        let model = Database::with_config(Config::default());
        model.load(source(), &options, &progress).expect("it loads");
        let nodes = nodes(folder.path(), policy, maps_memory);
        Self {
            nodes,
            model,
            _folder: folder,
        }
    }
}

/// A node over its copy in a folder.
fn node(
    folder: &Path,
    peers: &PeerList,
    (number, listener): (usize, Option<TcpListener>),
    (policy, maps_memory): (ForkPolicy, bool),
) -> Database {
    let mut config = Config::default();
    config.fork_policy = policy;
    config.is_replicated = true;
    let name = format!("n{number}");
    let database = Database::open(&folder.join(&name), config).expect("it opens");
    let options = ClusterOptions {
        peers: peers.clone(),
        secret: None,
        node: peers.node(&name).expect("it is in the list"),
        maps_memory,
        listener,
        keeper: None,
        max_staleness: None,
    };
    database.join(options).expect("it joins");
    database
}

/// Nodes over the copies in a folder, which have met.
fn nodes(folder: &Path, policy: ForkPolicy, maps_memory: bool) -> Vec<Database> {
    let (peers, listeners) = list();
    let listeners = listeners.into_iter().map(Some).enumerate();
    let start = |place| node(folder, &peers, place, (policy, maps_memory));
    let nodes: Vec<Database> = listeners.map(start).collect();
    wait_for_all(&nodes);
    nodes
}

/// Waits until all nodes have met, and transactions wait for all of them.
fn wait_for_all(nodes: &[Database]) {
    for node in nodes {
        assert!(node.wait_for_cluster(PATIENCE), "{:?}", node.cluster());
    }
    let begun = std::time::Instant::now();
    // One that is refused is never waited for.
    let is_done = |node: &Database| match node.replica_status() {
        Some(ReplicaStatus::Follows { is_led, ended, .. }) => is_led || ended.is_some(),
        _ => true,
    };
    loop {
        let status = nodes[0].replica_status();
        let awaited = match &status {
            Some(ReplicaStatus::Leads { followers }) => {
                followers.iter().filter(|it| it.is_awaited).count()
            }
            _ => panic!("the first node leads: {status:?}"),
        };
        let ended = nodes.iter().filter(|node| {
            let status = node.replica_status();
            matches!(status, Some(ReplicaStatus::Follows { ended: Some(_), .. }))
        });
        if awaited + ended.count() + 1 == nodes.len() && nodes.iter().all(is_done) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{status:?}");
        std::thread::yield_now();
    }
}

/// Waits until each node reads the lists of all predicates of the others one-sided.
fn wait_until_alike(nodes: &[Database], note: &str) {
    let begun = std::time::Instant::now();
    let is_alike = |node: &Database| {
        let status = node.cluster().expect("it is a node").into_iter();
        let mut others = status.filter(|status| status.presence != Presence::Here);
        others.all(|status| status.predicates > 0 && status.alike == status.predicates)
    };
    while !nodes.iter().all(is_alike) {
        let status: Vec<_> = nodes.iter().map(Database::cluster).collect();
        assert!(begun.elapsed() < PATIENCE, "{note}: {status:#?}");
        std::thread::yield_now();
    }
}

/// Reads and calls of light queries at a node, which are answered as by the model.
fn light_queries(node: &Database, model: &Database, note: &str) -> (u64, u64) {
    let before = node.remote_reads();
    for person in 0..20 {
        let query = format!(
            "SELECT ?a ?b {{ <http://x/p{person}> <http://x/knows> ?a . ?a <http://x/knows> ?b }}"
        );
        let expected = rows(model, &query).expect("it is right");
        let found = rows(node, &query).unwrap_or_else(|error| panic!("{note}: {query}: {error}"));
        assert_eq!(found, expected, "{note}: {query}");
    }
    let since = node.remote_reads().since(before);
    (since.reads, since.calls)
}

/// Asks light queries at each node until they take reads and no calls, once all have merged and have heard of that.
fn wait_until_read(nodes: &[Database], model: &Database, note: &str) {
    let begun = std::time::Instant::now();
    for (number, node) in nodes.iter().enumerate() {
        loop {
            let (reads, calls) = light_queries(node, model, note);
            if reads > 0 && calls == 0 {
                break;
            }
            let status = node.cluster();
            assert!(
                begun.elapsed() < PATIENCE,
                "{note}, node {number}: {reads} reads, {calls} calls, {status:#?}"
            );
        }
    }
    wait_until_alike(nodes, note);
}

/// Each person knows three others; the same ones whatever the number is.
fn acquaintances() -> String {
    let knows = |n: u64| {
        let others = (1..4).map(|k| {
            format!(
                "<http://x/p{n}> <http://x/knows> <http://x/p{}> .",
                (n * 7 + k * 31) % 60
            )
        });
        others.collect::<String>()
    };
    (0..60).map(knows).collect()
}

/// Changes the lists of all that the light queries are about.
fn new_acquaintances(round: u64) -> String {
    let knows = |n: u64| {
        format!(
            "<http://x/p{n}> <http://x/knows> <http://x/p{}> .",
            60 + (n + round) % 60
        )
    };
    let quads: String = (0..60).map(knows).collect();
    format!("INSERT DATA {{ {quads} <http://x/round> <http://x/is> {round} }}")
}

#[test]
fn lists_are_read_one_sided_again_after_each_merge() {
    for maps_memory in [true, false] {
        let cluster = Cluster::start(&acquaintances(), ForkPolicy::InPlace, maps_memory);
        let (nodes, model) = (&cluster.nodes, &cluster.model);
        for round in 0..4 {
            let note = format!("mapped: {maps_memory}, merges: {round}");
            wait_until_read(nodes, model, &note);
            let update = new_acquaintances(round);
            model.update(&update).expect("it is right");
            let at = &nodes[round as usize % NODES];
            at.update(&update).expect("all are there");
            for node in nodes {
                let (_, calls) = light_queries(node, model, &note);
                assert!(calls > 0, "{note}: the lists changed");
            }
            nodes[0].compact().expect("there is room");
        }
    }
}

/// The last node is ended, and misses a merge; its copy is then as it was when it ended, or before it had merged.
/// Each snapshot is cut into shards, and what changed is asked for: more than that is a query of one node alone.
#[test]
fn queries_of_much_that_is_not_merged_are_answered_by_each_node_alone() {
    let cluster = Cluster::start(&acquaintances(), ForkPolicy::InPlace, true);
    let (nodes, model) = (&cluster.nodes, &cluster.model);
    wait_until_read(nodes, model, "loaded");
    let triples = (0..5_000).map(|n| format!("<http://x/m{n}> <http://x/knows> <http://x/p0> ."));
    let update = format!("INSERT DATA {{ {} }}", triples.collect::<String>());
    for database in [&nodes[1], model] {
        database.update(&update).expect("it is right");
    }
    for node in nodes {
        assert_eq!(light_queries(node, model, "not merged"), (0, 0));
    }
    nodes[0].compact().expect("it leads");
    wait_until_read(nodes, model, "merged");
}

#[test]
fn a_node_that_missed_a_merge_answers_right_and_reads_one_sided_again() {
    for (case, (keeps_copy, ends_all)) in [(true, false), (false, false), (false, true)]
        .into_iter()
        .enumerate()
    {
        let note = format!("case {case}");
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name: &str| folder.path().join(name);
        let (options, progress) = (LoadOptions::default(), Progress::default());
        let source = || vec![Source::bytes("data.trig", acquaintances().into_bytes())];
        drop(Database::create(
            &place("n0"),
            source(),
            &options,
            &progress,
            Config::default(),
        ));
        (1..NODES).for_each(|number| copy(&place("n0"), &place(&format!("n{number}"))));
        let model = Database::with_config(Config::default());
        model.load(source(), &options, &progress).expect("it loads");
        let how = (ForkPolicy::InPlace, true);
        let (peers, listeners) = list();
        let mut nodes: Vec<Database> = (listeners.into_iter().map(Some).enumerate())
            .map(|at| node(folder.path(), &peers, at, how))
            .collect();
        let change = |nodes: &[Database], round: u64| {
            let update = new_acquaintances(round);
            model.update(&update).expect("it is right");
            nodes[1].update(&update).expect("the leader is there");
        };
        wait_for_all(&nodes);
        change(&nodes, 0);
        let end_last = |nodes: &mut Vec<Database>| {
            drop(nodes.pop());
            for database in nodes {
                assert!(database.wait_for_lost_node(PATIENCE), "{note}");
            }
        };
        end_last(&mut nodes);
        if !keeps_copy {
            copy(&place("n2"), &place("before"));
            nodes.push(node(folder.path(), &peers, (2, None), how));
            wait_for_all(&nodes);
        }
        nodes[0].compact().expect("there is room");
        if !keeps_copy {
            wait_until_read(&nodes, &model, &note);
            end_last(&mut nodes);
            std::fs::remove_dir_all(place("n2")).expect("it is there");
            std::fs::rename(place("before"), place("n2")).expect("it is there");
        }
        if ends_all {
            nodes.clear();
            nodes.extend((0..2).map(|number| node(folder.path(), &peers, (number, None), how)));
        }
        nodes.push(node(folder.path(), &peers, (2, None), how));
        wait_for_all(&nodes);
        wait_until_read(&nodes, &model, &note);
        // And so after the next merge.
        change(&nodes, 1);
        nodes[0].compact().expect("there is room");
        wait_until_read(&nodes, &model, &note);
    }
}

const POLICIES: [ForkPolicy; 3] = [
    ForkPolicy::Dynamic,
    ForkPolicy::InPlace,
    ForkPolicy::ForkJoin,
];

#[test]
fn all_nodes_answer_as_one_database_does_after_each_update() {
    for seed in seeds() {
        let (policy, maps_memory) = (POLICIES[seed as usize % 3], seed % 2 == 0);
        let mut random = Random(seed);
        let text = format!("{}\n", random.quads(900).replace("GRAPH", ""));
        let cluster = Cluster::start(&text, policy, maps_memory);
        for step in 0..12 {
            let note = format!("seed {seed}, step {step}");
            let update = random.update();
            let expected = cluster.model.update(&update).expect("it is right");
            let at = random.below(NODES as u64) as usize;
            let done = cluster.nodes[at].update(&update);
            let done = done.unwrap_or_else(|error| panic!("{note}: {update}: {error}"));
            assert_eq!(
                (done.inserted, done.deleted),
                (expected.inserted, expected.deleted),
                "{note}: {update}"
            );
            // The other nodes merge while they are asked.
            if random.below(3) == 0 {
                cluster.nodes[0].compact().expect("there is room");
            }
            for query in QUERIES {
                let expected = rows(&cluster.model, query).expect("it is right");
                for (number, node) in cluster.nodes.iter().enumerate() {
                    let found = rows(node, query);
                    let found = found.unwrap_or_else(|error| panic!("{note}: {query}: {error}"));
                    assert_eq!(found, expected, "{note}, node {number}: {query}");
                }
            }
        }
    }
}

/// Three subjects, which mostly are of three nodes, always have the same number.
#[test]
fn queries_see_whole_transactions_while_others_are_made_at_all_nodes() {
    const UPDATES: u64 = 120;
    let numbered = |number: u64| -> String {
        let subjects = (0..3).map(|s| format!("<http://x/s{s}> <http://x/is> {number} ."));
        subjects.collect()
    };
    let cluster = Cluster::start(&numbered(0), ForkPolicy::Dynamic, true);
    let is_over = AtomicBool::new(false);
    let query = "SELECT ?a ?b ?c { <http://x/s0> <http://x/is> ?a . <http://x/s1> <http://x/is> ?b . <http://x/s2> <http://x/is> ?c }";
    std::thread::scope(|scope| {
        let readers: Vec<_> = (cluster.nodes.iter())
            .map(|node| {
                scope.spawn(|| {
                    let mut answers = 0_u64;
                    while !is_over.load(Ordering::SeqCst) {
                        let rows = rows(node, query).expect("all nodes are there");
                        assert_eq!(rows.len(), 1, "{rows:?}");
                        let numbers: Vec<&str> = rows[0].split("value: ").skip(1).collect();
                        let first = numbers.first().map(|text| text.split('"').nth(1));
                        let alike = |text: &&str| Some(text.split('"').nth(1)) == first;
                        assert!(numbers.iter().all(alike), "{rows:?}");
                        answers += 1;
                    }
                    answers
                })
            })
            .collect();
        let writers: Vec<_> = (cluster.nodes.iter())
            .map(|node| {
                scope.spawn(|| {
                    for _ in 0..UPDATES / NODES as u64 {
                        let update = "DELETE { ?s <http://x/is> ?n } INSERT { ?s <http://x/is> ?next } WHERE { ?s <http://x/is> ?n BIND(?n + 1 AS ?next) }";
                        let done = node.update(update).expect("all nodes are there");
                        assert_eq!((done.inserted, done.deleted), (3, 3));
                    }
                })
            })
            .collect();
        // Queries are under way while the nodes merge.
        while !writers
            .iter()
            .all(std::thread::ScopedJoinHandle::is_finished)
        {
            cluster.nodes[0].compact().expect("there is room");
        }
        for writer in writers {
            writer.join().expect("it does not panic");
        }
        is_over.store(true, Ordering::SeqCst);
        for reader in readers {
            assert!(reader.join().expect("it does not panic") > 0);
        }
    });
    let last = format!("SELECT ?s {{ ?s <http://x/is> {UPDATES} }}");
    for node in &cluster.nodes {
        assert_eq!(rows(node, &last).expect("all nodes are there").len(), 3);
    }
}

/// A copy that somebody changed, so that it has as many transactions as the leader, and others.
#[test]
fn a_copy_that_was_changed_by_itself_answers_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = |number: usize| folder.path().join(format!("n{number}"));
    let text = (0..40).map(|n| format!("<http://x/s{n}> <http://x/is> \"{n}\" ."));
    let source = Source::bytes("data.trig", text.collect::<String>().into_bytes());
    let (options, progress) = (LoadOptions::default(), Progress::default());
    let created = Database::create(
        &place(0),
        vec![source],
        &options,
        &progress,
        Config::default(),
    );
    drop(created.expect("it loads"));
    copy(&place(0), &place(2));
    let change = |number: usize, what: &str| {
        let database = Database::open(&place(number), Config::default()).expect("it opens");
        let update = format!("INSERT DATA {{ <http://x/new> <http://x/is> \"{what}\" }}");
        database.update(&update).expect("there is room");
    };
    change(0, "right");
    copy(&place(0), &place(1));
    change(2, "wrong");
    let found = |node: &Database| -> Result<Vec<String>, EngineError> {
        rows(node, "SELECT ?o { <http://x/new> <http://x/is> ?o }")
    };
    let all = "SELECT ?s ?o { ?s <http://x/is> ?o }";
    // The leader begins for the first time, once more, and with a copy that knows who made what.
    for (round, more) in [0, 0, 1].into_iter().enumerate() {
        let nodes = nodes(folder.path(), ForkPolicy::Dynamic, true);
        let refused = found(&nodes[2]);
        assert!(
            matches!(refused, Err(EngineError::NotFollowing { .. })),
            "round {round}: {refused:?}"
        );
        let refused = nodes[2].for_each_quad(&GraphSelection::All, |_| Ok::<(), EngineError>(()));
        assert!(
            matches!(refused, Err(EngineError::NotFollowing { .. })),
            "round {round}: {refused:?}"
        );
        // What the others can have without it is right, and nothing else is given.
        let is_right = |rows: &Vec<String>, count: usize| {
            rows.len() == count && !rows.iter().any(|row| row.contains("wrong"))
        };
        let is_lost = |error: &EngineError| {
            matches!(
                error,
                EngineError::ShardLost { .. } | EngineError::NodeLost { .. }
            )
        };
        for node in &nodes[..2] {
            for (found, count) in [(found(node), 1), (rows(node, all), 41 + more)] {
                let held = match &found {
                    Ok(rows) => is_right(rows, count),
                    Err(error) => is_lost(error),
                };
                assert!(held, "round {round}: {found:?}");
            }
        }
        assert!(
            nodes[2]
                .update("INSERT DATA { <http://a> <http://b> 1 }")
                .is_err()
        );
        drop(nodes);
        if round == 0 {
            continue;
        }
        // Now all know who made what: a copy of the first, changed by itself, while the first goes on.
        std::fs::remove_dir_all(place(2)).expect("it is there");
        copy(&place(1), &place(2));
        change(2, "wrong");
        let database = Database::open(&place(0), Config::default()).expect("it opens");
        let update = "INSERT DATA { <http://x/other> <http://x/is> \"other\" }";
        database.update(update).expect("there is room");
    }
}
