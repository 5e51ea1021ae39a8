//! Do streams and continuous queries go on, and say the same, whichever node leads?
//!
//! A producer sends what it was not told of again, and a consumer reads what it has not read, at whoever leads: what it
//! reads must be what a database alone finds, each result once. `JINDOU_SEED` is the first seed, `JINDOU_CASES` the
//! number of cases.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use jindou_engine::{
    Database, EngineError, NextResult, Predicates, Producer, StreamDefinition, TupleFormat,
};

use crate::Random;
use crate::net::{Cluster, LONG};

const QUERIES: [(&str, &str); 3] = [
    (
        "joined",
        "SELECT ?a ?n FROM STREAM <http://e/s> [RANGE 300ms STEP 100ms] \
         WHERE { GRAPH ?w { ?a <http://e/at> ?place } ?a <http://e/name> ?n } ORDER BY ?a ?n",
    ),
    (
        "counted",
        "SELECT ?place (COUNT(*) AS ?c) FROM STREAM <http://e/s> [RANGE 500ms STEP 100ms] \
         WHERE { ?a <http://e/at> ?place } GROUP BY ?place ORDER BY ?place",
    ),
    (
        "new",
        "REGISTER ISTREAM new AS SELECT ?a FROM STREAM <http://e/s> [RANGE 200ms STEP 100ms] \
         WHERE { ?a <http://e/name> ?n } ORDER BY ?a",
    ),
];

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("it is a number"))
}

fn definition(is_durable: bool) -> StreamDefinition {
    let mut definition = StreamDefinition::new("http://e/s");
    definition.durable = is_durable;
    definition.timeless = Some(Predicates::Some(vec!["http://e/name".to_owned()]));
    definition
}

/// What comes within a tenth of a second: who is where, and names, which are stored.
fn tuples(random: &mut Random, batch: u64) -> Vec<u8> {
    let mut lines = String::new();
    for _ in 0..random.below(6) {
        let time = batch * 100 + random.below(100);
        let (person, place) = (random.below(20), random.below(4));
        let said = match random.below(3) {
            0 => format!("<http://e/p{person}> <http://e/name> \"n{batch}\" ."),
            _ => format!("<http://e/p{person}> <http://e/at> <http://e/place{place}> ."),
        };
        lines += &format!("{time}\t{said}\n");
    }
    lines.into_bytes()
}

/// Results of each query by their numbers: when, and what.
type Results = BTreeMap<(&'static str, u64), (i64, String)>;

/// Reads what is there after what was read.
fn read(database: &Database, seen: &mut BTreeMap<&'static str, u64>, results: &mut Results) {
    for (name, _) in QUERIES {
        let last = seen.entry(name).or_default();
        // A node that began to lead may not have read what was there.
        let Ok(mut reader) = database.results_of(name, Some(*last)) else {
            return;
        };
        while let NextResult::Result(result, missed) = reader.next_within(Duration::ZERO) {
            assert_eq!(missed, 0, "{name}");
            assert_eq!(result.sequence, *last + 1, "{name}");
            *last = result.sequence;
            let said = (result.instant_ms, format!("{:?}", result.answer));
            let before = results.insert((name, result.sequence), said);
            assert!(before.is_none(), "{name}: each is read once");
        }
    }
}

/// Nodes, of which one at a time is in trouble.
struct Play {
    cluster: Cluster,
    random: Random,
    closed: Option<usize>,
    cut_off: Option<usize>,
    seen: BTreeMap<&'static str, u64>,
    results: Results,
}

impl Play {
    /// Does something at the node that leads until that is done.
    fn until_done<T>(&mut self, act: impl Fn(&Database) -> Result<T, EngineError>) -> T {
        let begun = Instant::now();
        let mut last = None;
        loop {
            self.cluster.begin_anew();
            self.copy_anew();
            if let Some(leader) = self.cluster.leads() {
                match act(self.cluster.node(leader)) {
                    Ok(done) => return done,
                    Err(
                        error @ (EngineError::StreamsElsewhere { .. }
                        | EngineError::StreamsBegin
                        | EngineError::LeaderChanged
                        | EngineError::LeaderLost { .. }
                        | EngineError::WriteUnknown { .. }
                        | EngineError::NotFound { .. }),
                    ) => last = Some(error),
                    Err(error) => panic!("{error}"),
                }
            }
            if begun.elapsed() > LONG / 20 {
                // The others may not have been in sync when it was closed or cut off.
                self.heal();
            }
            assert!(
                begun.elapsed() < LONG,
                "{last:?} {:?}",
                self.cluster.standings()
            );
            std::thread::yield_now();
        }
    }

    /// Ends the trouble, if there is some.
    fn heal(&mut self) -> bool {
        if let Some(node) = self.closed.take() {
            self.cluster.open(node);
            return true;
        }
        if let Some(node) = self.cut_off.take() {
            self.cluster.join(node);
            return true;
        }
        false
    }

    fn trouble(&mut self) {
        if self.heal() {
            return;
        }
        let Some(leader) = self.cluster.leads() else {
            return;
        };
        let node = self.random.below(3) as usize;
        match self.random.below(8) {
            0 | 1 => {
                self.cluster.close(leader);
                self.closed = Some(leader);
            }
            2 => {
                self.cluster.close(node);
                self.closed = Some(node);
            }
            3 | 4 => {
                self.cluster.break_link(node);
                self.cut_off = Some(node);
            }
            5 => self.cluster.node(node).checkpoint().expect("there is room"),
            6 => {
                let cut = self.cluster.node(node).cut_stream_log();
                cut.expect("there is room");
            }
            _ => {
                // Only who leads says when.
                let _ = self.cluster.node(leader).compact();
            }
        }
    }

    /// Copies stores that are too old to follow.
    fn copy_anew(&mut self) {
        for node in 0..3 {
            let is_open = self.cluster.is_open(node);
            if is_open && self.cluster.ended(node).is_some() && self.cluster.leads().is_some() {
                self.cluster.copy_anew(node);
            }
        }
    }

    fn read(&mut self) {
        if let Some(leader) = self.cluster.leads() {
            let node = self.cluster.node(leader);
            read(node, &mut self.seen, &mut self.results);
        }
    }
}

fn play(seed: u64, batches: u64) {
    let folder = tempfile::tempdir().expect("there is room");
    let alone = Database::new();
    alone
        .create_stream("s", definition(false))
        .expect("it is sound");
    let mut play = Play {
        cluster: Cluster::elected(folder.path(), 3, seed),
        random: Random(seed),
        closed: None,
        cut_off: None,
        seen: BTreeMap::new(),
        results: Results::new(),
    };
    play.until_done(|leader| leader.create_stream("s", definition(true)));
    for (name, text) in QUERIES {
        alone.register(name, text).expect("it is sound");
        play.until_done(|leader| leader.register(name, text));
    }
    for batch in 1..=batches {
        let text = tuples(&mut play.random, batch);
        let (format, by) = (TupleFormat::Lines, |sequence| Producer {
            name: "p",
            sequence,
        });
        let push = |database: &Database, text: Vec<u8>| {
            database.push_once("s", by(batch), format, None, text)
        };
        push(&alone, text.clone()).expect("it is sound");
        play.until_done(|leader| push(leader, text.clone()));
        if play.random.below(4) == 0 {
            play.trouble();
        }
        play.read();
    }
    play.trouble();
    let end = i64::try_from(batches + 1).expect("there are few") * 100;
    alone.heartbeat("s", end).expect("it is sound");
    play.until_done(|leader| leader.heartbeat("s", end));
    let mut expected = Results::new();
    read(&alone, &mut BTreeMap::new(), &mut expected);
    let begun = Instant::now();
    while play.results.len() < expected.len() {
        assert!(begun.elapsed() < LONG, "seed {seed}: results are missing");
        play.cluster.begin_anew();
        play.read();
        std::thread::yield_now();
    }
    for (of, found) in &play.results {
        assert_eq!(Some(found), expected.get(of), "seed {seed}: {of:?}");
    }
    // The facts, too, at each node.
    play.heal();
    let facts = alone.quad_counts().triples;
    let begun = Instant::now();
    while (0..3).any(|node| play.cluster.node(node).quad_counts().triples != facts) {
        let standings = play.cluster.standings();
        assert!(
            begun.elapsed() < LONG,
            "seed {seed}: facts are missing: {standings:?}"
        );
        play.cluster.begin_anew();
        play.copy_anew();
        std::thread::yield_now();
    }
}

#[test]
fn results_are_those_of_one_database_whoever_leads() {
    let first = setting("JINDOU_SEED", 1);
    for seed in first..first + setting("JINDOU_CASES", 3) {
        println!("JINDOU_SEED={seed} JINDOU_CASES=1 replays this one");
        play(seed, 60);
    }
}

#[test]
fn a_node_that_follows_says_where_streams_are() {
    let folder = tempfile::tempdir().expect("there is room");
    let cluster = Cluster::new(folder.path(), 2, 1, |_| ());
    let says = |error: &EngineError| matches!(error, EngineError::StreamsElsewhere { node } if node == "n0");
    // Until it has heard of the leader, it says that there is one.
    let begun = Instant::now();
    loop {
        let refused = cluster.node(1).create_stream("s", definition(true));
        if refused.as_ref().is_err_and(says) {
            break;
        }
        let is_elsewhere = matches!(refused, Err(EngineError::StreamsElsewhere { .. }));
        assert!(is_elsewhere && begun.elapsed() < LONG, "{refused:?}");
    }
    let made = cluster.node(0).create_stream("s", definition(true));
    assert!(made.expect("it leads"));
    let text = b"10\t<http://e/a> <http://e/name> \"b\" .\n".to_vec();
    let refused = (cluster.node(1)).push("s", TupleFormat::Lines, None, text);
    assert!(refused.as_ref().is_err_and(says), "{refused:?}");
}

/// Streams of a store that was alone, whose copies were made before some of what was said to them.
#[test]
fn streams_of_a_store_that_was_alone_go_on_as_they_were() {
    let folder = tempfile::tempdir().expect("there is room");
    let mut cluster = Cluster::with(
        folder.path(),
        3,
        1,
        |_| (),
        |database| {
            database
                .create_stream("s", definition(true))
                .expect("it is sound");
            database
                .register(QUERIES[1].0, QUERIES[1].1)
                .expect("it is sound");
            let text = b"10\t<http://e/a> <http://e/at> <http://e/b> .\n".to_vec();
            database
                .push("s", TupleFormat::Lines, None, text)
                .expect("it is sound");
        },
    );
    let begun = Instant::now();
    let leader = |cluster: &Cluster| loop {
        match cluster.node(0).heartbeat("s", 100) {
            Ok(()) => return,
            Err(EngineError::StreamsBegin) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
        assert!(begun.elapsed() < LONG);
    };
    leader(&cluster);
    let text = b"110\t<http://e/a> <http://e/at> <http://e/b> .\n".to_vec();
    let pushed = (cluster.node(0)).push("s", TupleFormat::Lines, None, text);
    pushed.expect("it leads");
    cluster.close(0);
    cluster.open(0);
    leader(&cluster);
    cluster.node(0).heartbeat("s", 200).expect("it leads");
    let results = cluster.node(0).results_of(QUERIES[1].0, Some(0));
    let mut results = results.expect("it is registered");
    let mut counts = Vec::new();
    while let NextResult::Result(result, _) = results.next_within(Duration::from_millis(200)) {
        counts.push((result.instant_ms, format!("{:?}", result.answer)));
    }
    assert_eq!(counts.len(), 2, "{counts:?}");
    assert!(counts[1].1.contains('2'), "{counts:?}");
}
