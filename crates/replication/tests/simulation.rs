//! Is what a client was told of ever lost, or unseen by a reader that came later, whatever nodes, links and the keeper do?
//!
//! All nodes are played in one thread and in a time of its own, from a seed: links that are cut without a word, nodes that end
//! and begin again without what was not on their device, clocks that go at different rates, a keeper that
//! answers late, or has done what it never said, or is gone. At the end all comes back, and then the nodes must be whole
//! again within a bounded time.
//!
//! `JINDOU_SEED` sets the first seed, `JINDOU_CASES` the number of cases; a failure prints its seed, and
//! `JINDOU_SEED=<seed> JINDOU_CASES=1` runs it alone. Thousands:
//! `JINDOU_CASES=20000 cargo test -p jindou-replication --test simulation`

#[path = "simulation/seen.rs"]
mod seen;
#[path = "simulation/world.rs"]
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use world::{Came, Hardships, World};

const DEFAULT_SEED: u64 = 1;
const DEFAULT_CASES: u64 = 400;
const FAILURES_SHOWN: usize = 3;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| {
        text.parse()
            .unwrap_or_else(|error| panic!("{name}={text}: {error}"))
    })
}

/// Plays a case for each seed, and says what the cases came to together.
fn play(name: &str, hardships: impl Fn(u64) -> Hardships) -> Came {
    let first = setting("JINDOU_SEED", DEFAULT_SEED);
    let cases = setting("JINDOU_CASES", DEFAULT_CASES);
    println!("{name}: seed {first}, {cases} cases (JINDOU_SEED, JINDOU_CASES)");
    let mut failed = Vec::new();
    let mut all = Came::default();
    for seed in first..first + cases {
        let case = || World::new(seed, hardships(seed)).play();
        match catch_unwind(AssertUnwindSafe(case)) {
            Ok(came) => all.add(&came),
            Err(_) => failed.push(seed),
        }
        if failed.len() >= FAILURES_SHOWN {
            break;
        }
    }
    println!("{name}: {all:?}");
    assert!(
        failed.is_empty(),
        "failed with the seeds {failed:?}; JINDOU_SEED={} JINDOU_CASES=1 cargo test -p jindou-replication --test \
         simulation {name} runs the first alone",
        failed[0]
    );
    all
}

#[test]
fn nothing_that_was_acknowledged_is_lost_or_unseen() {
    let came = play(
        "nothing_that_was_acknowledged_is_lost_or_unseen",
        Hardships::of,
    );
    if setting("JINDOU_CASES", DEFAULT_CASES) >= DEFAULT_CASES {
        // That it was hard, too.
        assert!(came.acknowledged > 10 * DEFAULT_CASES, "{came:?}");
        assert!(came.current_reads > 10 * DEFAULT_CASES, "{came:?}");
        assert!(came.terms > 2 * DEFAULT_CASES, "{came:?}");
        assert!(came.rolled_back > 0, "{came:?}");
        assert!(came.resigned > 0, "{came:?}");
        assert!(came.unknown > 0, "{came:?}");
    }
}

/// A node is lost while others are well: another one leads, and answers writes, within two seconds.
#[test]
fn another_node_leads_within_two_seconds() {
    let came = play("another_node_leads_within_two_seconds", Hardships::one_end);
    assert!(came.slowest_takeover.as_millis() < 2000, "{came:?}");
}
