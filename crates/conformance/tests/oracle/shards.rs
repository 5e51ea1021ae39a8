//! Does a graph in eight virtual shards answer as one does, whatever a shard does?
//!
//! `JINDOU_SEED` sets the first seed, `JINDOU_CASES` the number of cases, as in `differential`; and
//! `JINDOU_SHARDS=8` runs all other tests of this crate in shards, which is the long form of these.

use jindou_conformance::cases::{compare_to_definitions, seeds};
use jindou_conformance::common_ground::common_ground;
use jindou_conformance::differential::{Loaded, Outcome, bold_case, case};
use jindou_conformance::unready::Unready;
use jindou_engine::{BetweenShards, Config, EngineError, Shards};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const DEFAULT_CASES: u64 = 200;
const SHARDS: u32 = 8;

fn config(count: u32) -> Config {
    let mut config = Config::default();
    config.shards = Shards::new(count).expect("a power of two");
    config
}

/// Eight shards each of which answers in small pieces, and one call in ten not at once.
fn unready(seed: u64) -> Config {
    let mut config = config(SHARDS);
    let made = AtomicU64::new(0);
    config.between_shards = Some(BetweenShards(Arc::new(move |_, rows| {
        let seed = seed ^ (made.fetch_add(1, Ordering::Relaxed) << 32);
        Some(Arc::new(Unready::with_chance(rows, seed, None, 10)))
    })));
    config
}

fn without(lost: u32) -> Config {
    let mut config = config(SHARDS);
    config.between_shards = Some(BetweenShards(Arc::new(move |shard, rows| {
        (shard.0 != lost).then_some(rows)
    })));
    config
}

#[test]
fn random_queries_are_answered_as_defined() {
    for seed in seeds(DEFAULT_CASES) {
        let count = [2, 8, 8, 64][seed as usize % 4];
        compare_to_definitions(seed, bold_case(seed), &config(count));
    }
}

#[test]
fn random_queries_are_answered_as_by_the_oracle() {
    for seed in seeds(DEFAULT_CASES) {
        let case = case(seed);
        let loaded = Loaded::with_config(&case.quads, config(SHARDS)).expect("it loads");
        if let Outcome::Different(reason) = loaded.compare(&case.query)
            && common_ground(&case.query.pattern)
        {
            panic!("seed {seed}: {}\n{reason}", case.query);
        }
    }
}

#[test]
fn shards_that_are_not_ready_are_asked_again_until_the_answer_is_whole() {
    for seed in seeds(DEFAULT_CASES) {
        compare_to_definitions(seed, bold_case(seed), &unready(seed));
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
        match count(without(of_seed)) {
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
    println!("{lost} queries met the loss, {whole} did without");
    assert!(lost > 0 && whole > 0);
}
