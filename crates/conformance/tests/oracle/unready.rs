//! Does a graph that is not ready, or that answers in pieces, give the whole answer, and one that has
//! lost a part a typed error?
//!
//! `JINDOU_SEED` sets the first seed, `JINDOU_CASES` the number of cases, as in `differential`.

use jindou_conformance::cases::seeds;
use jindou_conformance::differential::{Loaded, Outcome, bold_case};
use jindou_conformance::unready::{LOST, Unready, UnreadyTerms};
use jindou_engine::{Between, BetweenTerms, Config, EngineError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const DEFAULT_CASES: u64 = 400;

/// Settings with such a graph before each query's.
fn config(seed: u64, until_lost: Option<u64>) -> Config {
    let queries = AtomicU64::new(0);
    let mut config = Config::default();
    config.between = Some(Between(Arc::new(move |graph| {
        let query = queries.fetch_add(1, Ordering::Relaxed);
        Arc::new(Unready::new(graph, seed ^ (query << 32), until_lost))
    })));
    config
}

/// Settings with such a dictionary before each query's.
fn config_of_terms(seed: u64, until_lost: Option<u64>) -> Config {
    let queries = AtomicU64::new(0);
    let mut config = Config::default();
    config.between_terms = Some(BetweenTerms(Arc::new(move |terms| {
        let query = queries.fetch_add(1, Ordering::Relaxed);
        let seed = seed ^ (query << 32);
        Arc::new(UnreadyTerms::new(terms, seed, until_lost))
    })));
    config
}

#[test]
fn terms_that_are_not_ready_are_asked_again_until_the_answer_is_whole() {
    for seed in seeds(DEFAULT_CASES) {
        let case = bold_case(seed);
        let config = config_of_terms(seed, None);
        let loaded = Loaded::with_config(&case.quads, config).expect("it loads");
        if let Outcome::Different(reason) = loaded.compare_to_definitions(&case.query) {
            panic!("seed {seed}: {}\n{reason}", case.query);
        }
    }
}

#[test]
fn what_is_not_ready_is_asked_again_until_the_answer_is_whole() {
    for seed in seeds(DEFAULT_CASES) {
        let case = bold_case(seed);
        let loaded = Loaded::with_config(&case.quads, config(seed, None)).expect("it loads");
        if let Outcome::Different(reason) = loaded.compare_to_definitions(&case.query) {
            panic!("seed {seed}: {}\n{reason}", case.query);
        }
    }
}

#[test]
fn a_lost_shard_ends_the_queries_that_need_it_and_no_other() {
    lost_after(20, &config);
}

#[test]
fn a_lost_part_of_the_dictionary_ends_the_queries_that_need_it_and_no_other() {
    lost_after(12, &config_of_terms);
}

/// Queries whose shard is lost after fewer calls than this, with settings of a seed and a number of calls.
fn lost_after(calls: u64, config: &dyn Fn(u64, Option<u64>) -> Config) {
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
        match count(config(seed, Some(seed % calls))) {
            Ok(rows) => {
                assert_eq!(rows, expected, "seed {seed}: {text}");
                whole += 1;
            }
            Err(EngineError::ShardLost { shard, .. }) => {
                assert_eq!(shard, LOST);
                lost += 1;
            }
            Err(error) => panic!("seed {seed}: {error}: {text}"),
        }
    }
    println!("{lost} queries met the loss, {whole} did without");
    assert!(lost > 0 && whole > 0);
}
