//! Does a database that lives through random updates hold and answer what oxigraph does?
//!
//! `JINDOU_SEED` sets the first seed, `JINDOU_CASES` the number of cases; one case is one database
//! and a sequence of updates, queries, merges, checkpoints, loads and reopenings. A failure prints
//! its seed, and a shorter sequence that fails too: `JINDOU_SEED=<seed> JINDOU_CASES=1` runs it
//! alone. Some of the cases are lived through again with merges forced after each request, of all
//! predicates that changed or of half of them.

use jindou_conformance::cases::setting;
use jindou_conformance::random_update::{Sequence, Step, sequence};
use jindou_conformance::update_differential::{Compared, Forced, run, shrink};
use std::fmt::Write as _;

const DEFAULT_SEED: u64 = 1;
const DEFAULT_CASES: u64 = 60;
/// Cases for each that is lived through with forced merges as well.
const CASES_FOR_FORCED: u64 = 4;

/// Failures shown before the test stops.
const FAILURES_SHOWN: usize = 4;

/// The failing sequence of `seed`, shrunk and told.
fn report(seed: u64, sequence: Sequence, forced: Forced) -> String {
    let first = run(&sequence, forced).err();
    let shrunk = shrink(sequence, forced);
    let mut text = format!("seed {seed}, {forced:?}, shrunk: {:?}\n", shrunk.setting);
    let mut line = |what: &dyn std::fmt::Display| {
        writeln!(text, "{what}").expect("writing to a string never fails");
    };
    for quad in &shrunk.quads {
        line(&format_args!("{quad} ."));
    }
    for (index, step) in shrunk.steps.iter().enumerate() {
        match step {
            Step::Update(request) => line(&format_args!("-- {index}: update\n{request}")),
            Step::Defined(query) => line(&format_args!("-- {index}: query\n{query}")),
            Step::Query(query) => line(&format_args!("-- {index}: query\n{query}")),
            Step::Select(query) => line(&format_args!("-- {index}: query\n{query}")),
            other => line(&format_args!("-- {index}: {other:?}")),
        }
    }
    match (run(&shrunk, forced), first) {
        (Err(parting), _) => line(&parting),
        (Ok(_), Some(parting)) => line(&format_args!("not each time; at first, {parting}")),
        (Ok(_), None) => line(&"not each time"),
    }
    text
}

/// Lives through some sequences from the first seed on, one of `every` of those that are set.
fn live(every: u64, forced: impl Fn(u64) -> Forced) -> Compared {
    let first = setting("JINDOU_SEED", DEFAULT_SEED);
    let cases = setting("JINDOU_CASES", DEFAULT_CASES).div_ceil(every);
    let mut total = Compared::default();
    let mut failures = Vec::new();
    for seed in first..first + cases {
        let (sequence, forced) = (sequence(seed), forced(seed));
        match run(&sequence, forced) {
            Ok(compared) => {
                total.updates += compared.updates;
                total.refused += compared.refused;
                total.queries += compared.queries;
                total.with_results += compared.with_results;
                total.merges += compared.merges;
                total.reopened += compared.reopened;
            }
            Err(parting) => {
                println!("seed {seed}, {forced:?}: {parting}");
                failures.push(report(seed, sequence, forced));
                if failures.len() == FAILURES_SHOWN {
                    break;
                }
            }
        }
    }
    println!("{cases} cases from seed {first}: {total:?}");
    assert!(
        (total.updates > 0 && total.with_results > 0) || cases < 20 || !failures.is_empty(),
        "nothing was tested"
    );
    assert!(
        failures.is_empty(),
        "the engines part:\n{}",
        failures.join("\n\n")
    );
    total
}

#[test]
fn random_updates_leave_what_the_oracle_has() {
    live(1, |_| Forced::Nothing);
}

#[test]
fn random_updates_with_a_merge_after_each_leave_what_the_oracle_has() {
    let total = live(CASES_FOR_FORCED, |_| Forced::All);
    assert!(total.merges > total.updates / 3, "{total:?}");
}

#[test]
fn random_updates_with_half_of_all_predicates_merged_after_each_leave_what_the_oracle_has() {
    let total = live(CASES_FOR_FORCED, Forced::Half);
    assert!(total.merges > total.updates / 3, "{total:?}");
}
