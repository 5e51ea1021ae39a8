//! Does the engine answer random queries over random data as oxigraph does, and as SPARQL defines?
//!
//! `JINDOU_SEED` sets the first seed, `JINDOU_CASES` the number of cases; one case is one data set
//! and one query. A failure prints its seed, and a smaller case that fails too:
//! `JINDOU_SEED=<seed> JINDOU_CASES=1` runs it alone.

use jindou_conformance::cases::setting;
use jindou_conformance::common_ground::common_ground;
use jindou_conformance::differential::{LargeCase, Loaded, Outcome, bold_case, case, large_case};
use jindou_conformance::shrink::{Case, shrink};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const DEFAULT_SEED: u64 = 1;
const DEFAULT_CASES: u64 = 400;
/// Cases for each that is asked of data that came by updates with merges, too.
const CASES_FOR_MERGED: u64 = 4;

/// Small cases for each large one.
const SMALL_FOR_LARGE: u64 = 80;

/// Failures shown before a test stops.
const FAILURES_SHOWN: usize = 5;

/// How the data came into the database.
#[derive(Clone, Copy, PartialEq)]
enum Came {
    /// By one load.
    Loaded,
    /// By updates, each followed by a merge of half of the predicates that had changed.
    MergedInParts,
}

/// What a case is compared with.
#[derive(Clone, Copy, PartialEq)]
enum By {
    Oracle,
    Definitions,
}

impl By {
    fn case(self, seed: u64) -> Case {
        match self {
            Self::Oracle => case(seed),
            Self::Definitions => bold_case(seed),
        }
    }

    fn outcome(self, case: &Case, came: Came) -> Outcome {
        let made = match came {
            Came::Loaded => Loaded::new(&case.quads),
            Came::MergedInParts => Loaded::merged_in_parts(&case.quads),
        };
        let loaded = match made {
            Ok(loaded) => loaded,
            Err(reason) => return Outcome::Different(format!("the data does not load: {reason}")),
        };
        match self {
            Self::Oracle => loaded.compare(&case.query),
            Self::Definitions => loaded.compare_to_definitions(&case.query),
        }
    }

    fn fails(self, case: &Case, came: Came) -> bool {
        (self == Self::Definitions || common_ground(&case.query.pattern))
            && matches!(self.outcome(case, came), Outcome::Different(_))
    }

    /// The failing case of `seed`, shrunk and told.
    fn report(self, seed: u64, case: Case, came: Came) -> String {
        let shrunk = shrink(case, &mut |case| self.fails(case, came));
        let mut text = format!("seed {seed}, shrunk:\n");
        for quad in &shrunk.quads {
            writeln!(text, "{quad} .").expect("writing to a string never fails");
        }
        write!(text, "{}", shrunk.query).expect("writing to a string never fails");
        if let Outcome::Different(reason) = self.outcome(&shrunk, came) {
            text.push_str(&reason);
        }
        text
    }

    fn run(self, came: Came) {
        let first = setting("JINDOU_SEED", DEFAULT_SEED);
        let cases = setting("JINDOU_CASES", DEFAULT_CASES);
        let cases = match came {
            Came::Loaded => cases,
            Came::MergedInParts => cases.div_ceil(CASES_FOR_MERGED),
        };
        let mut failures = Vec::new();
        let mut unsupported: BTreeMap<String, u64> = BTreeMap::new();
        let mut with_results = 0;
        let mut too_large = 0;
        let mut with_paths = 0;
        for seed in first..first + cases {
            let case = self.case(seed);
            with_paths += u64::from(case.query.pattern.has_path());
            match self.outcome(&case, came) {
                Outcome::Same { something } => with_results += u64::from(something),
                Outcome::Unsupported(feature) => *unsupported.entry(feature).or_default() += 1,
                Outcome::TooLarge => too_large += 1,
                Outcome::Invalid(reason) => {
                    panic!("seed {seed} made a wrong query: {reason}\n{}", case.query)
                }
                Outcome::Different(_) => {
                    failures.push(self.report(seed, case, came));
                    if failures.len() == FAILURES_SHOWN {
                        break;
                    }
                }
            }
        }
        println!(
            "{cases} cases from seed {first}, {with_results} with results, {with_paths} with \
             paths, {too_large} too large"
        );
        for (feature, count) in &unsupported {
            println!("unsupported: {count:>4}  {feature}");
        }
        assert!(
            with_results > cases / 4 || cases < 100 || !failures.is_empty(),
            "few queries had results: little was tested"
        );
        assert!(
            failures.is_empty(),
            "answers differ:\n{}",
            failures.join("\n\n")
        );
    }
}

#[test]
fn random_queries_are_answered_as_by_the_oracle() {
    By::Oracle.run(Came::Loaded);
}

#[test]
fn random_queries_are_answered_as_defined() {
    By::Definitions.run(Came::Loaded);
}

#[test]
fn random_queries_after_merges_in_parts_are_answered_as_by_the_oracle_and_as_defined() {
    By::Oracle.run(Came::MergedInParts);
    By::Definitions.run(Came::MergedInParts);
}

/// Batches, threads and temporary files have a part in these; the oracle then takes what memory it
/// likes, so its limit is set outside:
/// `ulimit -v 8000000; cargo test -p jindou-conformance --test oracle differential:: -- --ignored --nocapture`
#[test]
#[ignore = "the oracle may take all memory that there is"]
fn random_queries_over_much_data_are_answered_as_by_the_oracle() {
    let first = setting("JINDOU_SEED", DEFAULT_SEED);
    let cases = setting("JINDOU_CASES", DEFAULT_CASES).div_ceil(SMALL_FOR_LARGE);
    let (mut same, mut with_results, mut skipped) = (0, 0, 0);
    for seed in first..first + cases {
        let LargeCase {
            quads,
            config,
            queries,
        } = large_case(seed);
        let load = |quads: &[_]| Loaded::with_config(quads, config.clone());
        let loaded = load(&quads).unwrap_or_else(|reason| panic!("seed {seed}: {reason}"));
        for query in queries {
            let reason = match loaded.compare_much(&query) {
                Outcome::Same { something } => {
                    same += 1;
                    with_results += u64::from(something);
                    continue;
                }
                Outcome::Unsupported(_) | Outcome::TooLarge => {
                    skipped += 1;
                    continue;
                }
                Outcome::Invalid(reason) | Outcome::Different(reason) => reason,
            };
            println!("seed {seed}: {reason}\n{query}");
            let case = Case {
                quads: quads.clone(),
                query,
            };
            let fails = |case: &Case| {
                common_ground(&case.query.pattern)
                    && load(&case.quads).is_ok_and(|loaded| {
                        matches!(loaded.compare_much(&case.query), Outcome::Different(_))
                    })
            };
            let shrunk = shrink(case, &mut |case| fails(case));
            let count = shrunk.quads.len();
            for quad in shrunk.quads.iter().take(100) {
                println!("{quad} .");
            }
            panic!(
                "seed {seed}, shrunk to {count} quads with {} threads and {} bytes for a query:\n{}",
                config.threads, config.query_memory_bytes, shrunk.query
            );
        }
    }
    println!(
        "{cases} data sets from seed {first}, {same} queries, {with_results} with results, \
         {skipped} too large"
    );
    assert!(with_results > same / 4, "little was tested");
}
