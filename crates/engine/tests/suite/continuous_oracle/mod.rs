//! Do continuous queries answer at every instant what an ordinary query answers that is asked of all
//! that their windows and the stored graphs have then?
//!
//! `JINDOU_SEED` sets the first seed, `JINDOU_CASES` the number of cases; one case is some streams and
//! queries, about 30 instants. A failure prints its seed, and `JINDOU_SEED=<seed> JINDOU_CASES=1` runs it
//! alone.

mod answers;
mod case;
mod fixed;
mod model;
mod published;
mod queries;
mod random;

use std::panic::{AssertUnwindSafe, catch_unwind};

use case::{Tally, play};

const DEFAULT_SEED: u64 = 1;
const DEFAULT_CASES: u64 = 66;
/// Failures shown before the test stops.
const FAILURES_SHOWN: usize = 3;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| {
        text.parse()
            .unwrap_or_else(|error| panic!("{name}={text}: {error}"))
    })
}

#[test]
fn continuous_queries_answer_as_ordinary_ones_do_at_every_instant() {
    let first = setting("JINDOU_SEED", DEFAULT_SEED);
    let cases = setting("JINDOU_CASES", DEFAULT_CASES);
    let mut tally = Tally::default();
    let mut failures = Vec::new();
    for seed in first..first + cases {
        let played = catch_unwind(AssertUnwindSafe(|| play(seed)));
        match played {
            Ok(Ok(one)) => tally.add(one),
            Ok(Err(failure)) => failures.push(failure),
            Err(_) => failures.push(format!("seed {seed}: a panic, see above")),
        }
        if failures.len() >= FAILURES_SHOWN {
            break;
        }
    }
    println!("{tally:?}");
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    let is_sample = cases >= DEFAULT_CASES;
    assert!(
        !is_sample || tally.with_rows * 6 > tally.instants,
        "{tally:?}"
    );
    assert!(
        !is_sample || tally.counted > 30 && tally.timed > 30,
        "{tally:?}"
    );
}
