//! Random writes at random nodes, while links break, nodes are closed and opened, and stores are merged.

use std::collections::{BTreeMap, BTreeSet};

use jindou_engine::EngineError;

use crate::Random;
use crate::contents::{Contents, check_quads, contents};
use crate::net::Cluster;
use crate::random_requests::{Quad, Requests};

/// `JINDOU_CASES` asks for more.
fn seeds(default: u64) -> Vec<u64> {
    let count = std::env::var("JINDOU_CASES").ok();
    let count = count.map_or(default, |text| text.parse().expect("a number of cases"));
    (1..=count).collect()
}

struct Case {
    seed: u64,
    random: Random,
    requests: Requests,
    cluster: Cluster,
    /// What was acknowledged.
    quads: BTreeSet<Quad>,
    /// What the leader held at snapshots.
    history: BTreeMap<u64, Contents>,
}

impl Case {
    fn new(folder: &std::path::Path, seed: u64) -> Self {
        let mut random = Random(seed);
        let nodes = 2 + random.below(2) as usize;
        let mut requests = Requests {
            random: Random(seed ^ 1),
            texts: 0,
            has_large: false,
        };
        let mut quads = BTreeSet::new();
        let cluster = Cluster::with(
            folder,
            nodes,
            seed,
            move |options| {
                // Small ones, so that all ways are taken.
                options.backlog_bytes = [0, 3_000, 1 << 20][(seed % 3) as usize];
                options.window_bytes = [1, 2_000, 1 << 20][(seed / 3 % 3) as usize];
            },
            |database| {
                for _ in 0..8 {
                    let change = requests.next(&quads);
                    database.update(&change.request).expect("there is room");
                    quads = change.quads;
                }
            },
        );
        let mut case = Self {
            seed,
            random,
            requests,
            cluster,
            quads,
            history: BTreeMap::new(),
        };
        case.remember();
        case
    }

    /// Notes what the leader holds.
    fn remember(&mut self) {
        if self.cluster.is_open(0) {
            let leader = self.cluster.node(0);
            let found = contents(leader);
            self.history.insert(leader.snapshot_number().0, found);
        }
    }

    fn any_open(&mut self) -> Option<usize> {
        let open = (0..self.cluster.count()).filter(|node| self.cluster.is_open(*node));
        let open: Vec<usize> = open.collect();
        let place = self.random.below(open.len().max(1) as u64) as usize;
        open.get(place).copied()
    }

    fn any_follower(&mut self) -> usize {
        1 + self.random.below(self.cluster.count() as u64 - 1) as usize
    }

    fn write(&mut self) {
        let Some(node) = self.any_open() else { return };
        let change = self.requests.next(&self.quads);
        let seed = self.seed;
        match self.cluster.node(node).update(&change.request) {
            Ok(report) => {
                self.quads = change.quads;
                let number = self.cluster.node(node).snapshot_number();
                assert!(number >= report.snapshot, "seed {seed}: {number:?}");
                let found = contents(self.cluster.node(node));
                check_quads(
                    &found.quads,
                    &self.quads,
                    &format!("seed {seed}, node {node}"),
                );
            }
            Err(EngineError::LeaderLost { .. }) => {
                let is_led = self.cluster.is_open(0) && self.cluster.is_linked(node);
                // A link that has just begun is not known to the node yet.
                assert!(node > 0 || is_led, "seed {seed}: the leader is there");
            }
            Err(EngineError::ReadOnly { .. }) if self.cluster.ended(node).is_some() => {}
            // It was refused after it had sent the write.
            Err(EngineError::Behind { .. }) if self.cluster.ended(node).is_some() => {
                self.quads = change.quads;
            }
            Err(error) => {
                let refused = self.cluster.refused();
                panic!("seed {seed}, node {node}: {error}; {refused:?}");
            }
        }
        self.remember();
    }

    /// Each follower holds what the leader held at the same snapshot.
    fn check_prefixes(&self) {
        for node in (1..self.cluster.count()).filter(|node| self.cluster.is_open(*node)) {
            let database = self.cluster.node(node);
            let before = database.snapshot_number();
            let found = contents(database);
            if database.snapshot_number() != before {
                continue;
            }
            let known = self.history.range(..=before.0).next_back();
            let (_, expected) = known.expect("the first one is known");
            let what = format!("seed {}, node {node} at {}", self.seed, before.0);
            check_quads(&found.quads, &expected.quads, &what);
            assert_eq!(found.ids, expected.ids, "{what}");
        }
    }

    fn step(&mut self) {
        match self.random.below(24) {
            0 | 1 => {
                let node = self.any_follower();
                self.cluster.break_link(node);
            }
            2..=4 => {
                let node = self.any_follower();
                self.cluster.join(node);
            }
            5 => {
                let node = self.any_follower();
                if self.cluster.is_open(node) {
                    self.cluster.close(node);
                }
            }
            6 | 7 => self.open_one(),
            8 if self.cluster.is_open(0) => self.cluster.close(0),
            9 | 10 if self.cluster.is_open(0) => {
                let merged = self.cluster.node(0).compact();
                merged.expect("there is room");
                self.remember();
            }
            11 => {
                if let Some(node) = self.any_open() {
                    let written = self.cluster.node(node).checkpoint();
                    written.expect("there is room");
                }
            }
            12 => self.check_prefixes(),
            _ => self.write(),
        }
    }

    fn open_one(&mut self) {
        let closed = (0..self.cluster.count()).find(|node| !self.cluster.is_open(*node));
        if let Some(node) = closed {
            self.cluster.open(node);
        }
    }

    /// All nodes come back, and hold the same.
    fn settle(&mut self) {
        for node in 0..self.cluster.count() {
            if !self.cluster.is_open(node) {
                self.cluster.open(node);
            }
        }
        self.remember();
        let leader = contents(self.cluster.node(0));
        let seed = self.seed;
        check_quads(&leader.quads, &self.quads, &format!("seed {seed}, leader"));
        for node in 1..self.cluster.count() {
            self.cluster.join(node);
            if !self.cluster.catches_up(node) {
                let reason = self.cluster.ended(node).expect("it was asked");
                assert!(reason.contains("older than"), "seed {seed}: {reason}");
                self.cluster.copy_anew(node);
                assert!(self.cluster.catches_up(node), "seed {seed}");
            }
            let found = contents(self.cluster.node(node));
            let what = format!("seed {seed}, node {node}, settled");
            check_quads(&found.quads, &leader.quads, &what);
            assert_eq!(found.ids, leader.ids, "{what}");
        }
        assert_eq!(self.cluster.refused(), [""; 0], "seed {seed}");
    }
}

#[test]
fn copies_hold_the_same_under_the_same_ids_whatever_happens_between() {
    for seed in seeds(30) {
        println!("seed {seed}");
        let folder = tempfile::tempdir().expect("there is room");
        let mut case = Case::new(folder.path(), seed);
        for _ in 0..3 {
            (0..40).for_each(|_| case.step());
            case.settle();
        }
        let leader = contents(case.cluster.node(0));
        let count = case.cluster.count();
        (0..count).for_each(|node| case.cluster.close(node));
        for node in 0..count {
            let location = case.cluster.location(node);
            let what = format!("seed {seed}, node {node}, alone");
            jindou_engine::Database::verify(&location).expect(&what);
            let opened = jindou_engine::Database::open_to_read(&location, Default::default());
            let found = contents(&opened.expect(&what));
            check_quads(&found.quads, &leader.quads, &what);
            assert_eq!(found.ids, leader.ids, "{what}");
        }
    }
}
