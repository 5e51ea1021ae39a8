//! Does a graph that several nodes have answer as one does, however rows get to their keys?
//!
//! `JINDOU_SEED` sets the first seed, `JINDOU_CASES` the number of cases, as in `differential`; and
//! `JINDOU_NODES=3` runs all other tests of this crate on nodes, which is the long form of these; with
//! `JINDOU_FORKS=1` all rows go to where their keys are, and with `JINDOU_FORK_MESSAGES=1` they go as messages,
//! as between processes, and with `JINDOU_TERMS=dealt` each node has only its part of the terms.

use jindou_conformance::cases::{compare_to_definitions, seeds};
use jindou_conformance::common_ground::common_ground;
use jindou_conformance::differential::{Loaded, Outcome, bold_case, case};
use jindou_conformance::elsewhere::Elsewhere;
use jindou_conformance::unready::{Unready, UnreadyTerms};
use jindou_engine::{
    BetweenShards, BetweenTerms, Config, EngineError, ForkPolicy, MessageLimits, NodeFabric, Shards,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const DEFAULT_CASES: u64 = 200;
const SHARDS: u32 = 8;
/// Rows leave their history behind wherever that is a byte; where it is some rows; and never.
const HISTORY_BYTES: [usize; 4] = [0, 64, 0, usize::MAX];

/// Of a seed: two to five nodes, one of the ways in which rows get to their keys, with how much history, one of
/// those in which nodes reach each other's memory, who scans index vertices, and whether each has all terms or
/// its part of them.
fn config(seed: u64) -> Config {
    let policies = [
        ForkPolicy::Dynamic,
        ForkPolicy::ForkJoin,
        ForkPolicy::InPlace,
        ForkPolicy::ForkJoin,
    ];
    let mut config = Config::default();
    config.shards = Shards::new(SHARDS).expect("a power of two");
    config.nodes = [2, 3, 5][(seed % 3) as usize];
    config.fork_policy = policies[(seed / 3 % 4) as usize];
    config.node_fabric =
        [NodeFabric::Local, NodeFabric::SharedMemory, NodeFabric::Tcp][(seed / 2 % 3) as usize];
    config.fork_history_bytes = HISTORY_BYTES[(seed / 2 % 4) as usize];
    config.splits_scans = seed % 7 < 5;
    config.fork_lend_rows = [1, 4, 256][(seed / 3 % 3) as usize];
    config.threads = 4;
    config.reads_one_sided = seed % 11 < 9;
    config.deal_terms = seed % 4 < 2;
    config.dealt_terms_bytes = [0, 1 << 10, 16 << 20][(seed / 4 % 3) as usize];
    // Sub-queries and all other tables go by way of bytes in one case of five.
    if seed.is_multiple_of(5) {
        config.transport = Some(Elsewhere::new().transport());
    }
    config
}

/// [`config`] with sub-queries as they are, and as messages, if there are any. Few tables may be on the way,
/// so that senders wait.
fn both_ways(seed: u64) -> Vec<Config> {
    let as_they_are = config(seed);
    let mut as_messages = as_they_are.clone();
    as_messages.fork_messages = Some(MessageLimits {
        waiting_tables: 1 + (seed % 3) as usize,
        ..MessageLimits::default()
    });
    match as_they_are.fork_policy {
        ForkPolicy::InPlace => vec![as_they_are],
        _ => vec![as_they_are, as_messages],
    }
}

#[test]
fn random_queries_are_answered_as_defined() {
    for seed in seeds(DEFAULT_CASES) {
        for config in both_ways(seed) {
            compare_to_definitions(seed, bold_case(seed), &config);
        }
    }
}

#[test]
fn nodes_that_are_not_ready_are_asked_again_until_the_answer_is_whole() {
    for seed in seeds(DEFAULT_CASES) {
        let mut unready = both_ways(seed).remove((seed / 12 % 2) as usize % both_ways(seed).len());
        let made = AtomicU64::new(0);
        unready.between_shards = Some(BetweenShards(Arc::new(move |_, rows| {
            let seed = seed ^ (made.fetch_add(1, Ordering::Relaxed) << 32);
            Some(Arc::new(Unready::with_chance(rows, seed, None, 10)))
        })));
        compare_to_definitions(seed, bold_case(seed), &unready);
    }
}

#[test]
fn terms_of_nodes_that_are_not_ready_are_asked_again_until_the_answer_is_whole() {
    for seed in seeds(DEFAULT_CASES) {
        let mut unready = both_ways(seed).remove((seed / 12 % 2) as usize % both_ways(seed).len());
        unready.deal_terms = true;
        let made = AtomicU64::new(0);
        unready.between_terms = Some(BetweenTerms(Arc::new(move |terms| {
            let seed = seed ^ (made.fetch_add(1, Ordering::Relaxed) << 32);
            Arc::new(UnreadyTerms::new(terms, seed, None))
        })));
        compare_to_definitions(seed, bold_case(seed), &unready);
    }
}

#[test]
fn random_queries_are_answered_as_by_the_oracle() {
    for seed in seeds(DEFAULT_CASES) {
        let case = case(seed);
        for config in both_ways(seed) {
            let loaded = Loaded::with_config(&case.quads, config).expect("it loads");
            if let Outcome::Different(reason) = loaded.compare(&case.query)
                && common_ground(&case.query.pattern)
            {
                panic!("seed {seed}: {}\n{reason}", case.query);
            }
        }
    }
}

#[test]
fn a_lost_shard_ends_the_queries_that_need_it_and_no_other() {
    let (mut lost, mut whole) = (0, 0);
    for seed in seeds(DEFAULT_CASES) {
        let case = bold_case(seed);
        let text = case.query.to_string();
        let count = |config| {
            let loaded = Loaded::with_config(&case.quads, config).expect("it loads");
            loaded.count_rows(&text)
        };
        let Ok(expected) = count(Config::default()) else {
            continue;
        };
        let of_seed = (seed % u64::from(SHARDS)) as u32;
        for mut without in both_ways(seed) {
            without.between_shards = Some(BetweenShards(Arc::new(move |shard, rows| {
                (shard.0 != of_seed).then_some(rows)
            })));
            match count(without) {
                Ok(rows) => {
                    assert_eq!(rows, expected, "seed {seed}: {text}");
                    whole += 1;
                }
                Err(EngineError::ShardLost { shard, .. }) => {
                    assert_eq!(shard, of_seed, "seed {seed}: {text}");
                    lost += 1;
                }
                Err(error) => panic!("seed {seed}: {error}: {text}"),
            }
        }
    }
    println!("{lost} queries met the loss, {whole} did without");
    assert!(lost > 0 && whole > 0);
}
