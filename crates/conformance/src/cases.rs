//! Which random cases does a test run, and what does it tell of one that fails?

use jindou_engine::Config;

use crate::differential::{Loaded, Outcome};
use crate::shrink::{Case, shrink};

/// A number of the environment, or this one.
///
/// # Panics
/// If it is no number.
#[must_use]
pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| {
        text.parse()
            .unwrap_or_else(|error| panic!("{name}={text}: {error}"))
    })
}

/// The seeds of a run: `JINDOU_SEED` sets the first one, 1 otherwise, and `JINDOU_CASES` their number.
#[must_use]
pub fn seeds(cases: u64) -> std::ops::Range<u64> {
    let first = setting("JINDOU_SEED", 1);
    first..first + setting("JINDOU_CASES", cases)
}

/// Compares with the definitions, and tells a smaller case that fails, too.
///
/// # Panics
/// If the answers differ.
pub fn compare_to_definitions(seed: u64, case: Case, config: &Config) {
    let outcome = |case: &Case| {
        let loaded = Loaded::with_config(&case.quads, config.clone()).expect("it loads");
        loaded.compare_to_definitions(&case.query)
    };
    if !matches!(outcome(&case), Outcome::Different(_)) {
        return;
    }
    let shrunk = shrink(case, &mut |case| {
        matches!(outcome(case), Outcome::Different(_))
    });
    for quad in &shrunk.quads {
        println!("{quad} .");
    }
    panic!(
        "seed {seed}, shrunk: {}\n{:?}",
        shrunk.query,
        outcome(&shrunk)
    );
}
