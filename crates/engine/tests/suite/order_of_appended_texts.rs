//! Do ORDER BY, MIN and MAX give what a sort of the texts gives, whatever was appended, merged or
//! numbered anew since, for queries of all ages, and whoever finds out the order?

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use jindou_engine::ingest::{Format, LoadOptions, Progress, Source};
use jindou_engine::{
    CancellationToken, Config, Database, EngineError, MergePolicy, QueryOptions, QueryResults,
    SpillLimits,
};
use proptest::prelude::*;

fn line(text: &str) -> String {
    format!("<http://e/s> <http://e/p> \"{text}\" .\n")
}

fn load(mut config: Config, texts: &[String]) -> Database {
    config.merge = MergePolicy::never();
    let database = Database::with_config(config);
    let text: String = texts.iter().map(|text| line(text)).collect();
    let source = Source::bytes("data.nt", text).with_format(Format::NTriples);
    let (options, progress) = (LoadOptions::default(), Progress::default());
    database.load(vec![source], &options, &progress).unwrap();
    database
}

fn append(database: &Database, texts: &[String]) {
    let mut update = "INSERT DATA {\n".to_owned();
    for text in texts {
        update.write_str(&line(text)).unwrap();
    }
    update.push('}');
    database.update(&update).unwrap();
}

fn texts(results: QueryResults) -> Result<Vec<String>, EngineError> {
    let QueryResults::Solutions(solutions) = results else {
        panic!("SELECT has solutions");
    };
    let text = |solution: jindou_engine::Solution| {
        let term = solution.get("t").map(ToString::to_string);
        term.unwrap_or_default().trim_matches('"').to_owned()
    };
    solutions.map(|solution| solution.map(text)).collect()
}

const ALL: &str = "SELECT ?t { ?s <http://e/p> ?t } ORDER BY ?t";
const LAST: &str = "SELECT ?t { ?s <http://e/p> ?t } ORDER BY DESC(?t) LIMIT 7";
const LEAST: &str = "SELECT (MIN(?x) AS ?t) { ?s <http://e/p> ?x }";
const GREATEST: &str = "SELECT (MAX(?x) AS ?t) { ?s <http://e/p> ?x }";

/// What the queries give for texts in order.
fn right(sorted: &[String]) -> [Vec<String>; 4] {
    let end = |text: Option<&String>| vec![text.cloned().unwrap_or_default()];
    [
        sorted.to_vec(),
        sorted.iter().rev().take(7).cloned().collect(),
        end(sorted.first()),
        end(sorted.last()),
    ]
}

fn asked(database: &Database) -> [QueryResults; 4] {
    [ALL, LAST, LEAST, GREATEST].map(|query| database.query(query).unwrap())
}

fn sorted(texts: &[String]) -> Vec<String> {
    let mut sorted = texts.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted
}

#[derive(Clone, Debug)]
enum Step {
    Append(Vec<String>),
    Remove(usize),
    Compact,
    Renumber,
    /// A query of now that is answered at the end, or at once.
    Ask(bool),
}

fn some_texts(most: usize) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[ab]{0,7}|z[a-c]{3}", 0..most)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => some_texts(60).prop_map(Step::Append),
        1 => (0..5_usize).prop_map(Step::Remove),
        1 => Just(Step::Compact),
        1 => Just(Step::Renumber),
        4 => any::<bool>().prop_map(Step::Ask),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn queries_of_all_ages_give_what_a_sort_of_the_texts_gives(
        loaded in some_texts(60),
        steps in prop::collection::vec(step(), 1..20),
    ) {
        let mut now = sorted(&loaded);
        let database = load(Config::default(), &now);
        let mut waiting = Vec::new();
        let answered = |results: [QueryResults; 4], right: [Vec<String>; 4]| {
            for (results, right) in results.into_iter().zip(right) {
                assert_eq!(texts(results).unwrap(), right);
            }
        };
        for step in steps {
            match step {
                Step::Append(texts) => {
                    append(&database, &texts);
                    now.extend(texts);
                    now = sorted(&now);
                }
                Step::Remove(first) => {
                    let gone: Vec<String> = now.iter().skip(first).step_by(4).cloned().collect();
                    let data: String = gone.iter().map(|text| line(text)).collect();
                    database.update(&format!("DELETE DATA {{ {data} }}")).unwrap();
                    now.retain(|text| !gone.contains(text));
                }
                Step::Compact => drop(database.compact().unwrap()),
                Step::Renumber => database.renumber_within(None).unwrap(),
                Step::Ask(true) => waiting.push((asked(&database), right(&now))),
                Step::Ask(false) => answered(asked(&database), right(&now)),
            }
        }
        answered(asked(&database), right(&now));
        // The last ones first.
        while let Some((results, right)) = waiting.pop() {
            answered(results, right);
        }
    }
}

fn numbered(numbers: std::ops::Range<usize>, begin: &str) -> Vec<String> {
    let text = |number: usize| format!("{begin} {:06}", number * 7919 % 100_003);
    numbers.map(text).collect()
}

#[test]
fn threads_that_ask_while_others_append_get_texts_in_order() {
    let database = load(Config::default(), &numbered(0..500, "a"));
    append(&database, &numbered(500..3_000, "b"));
    let is_done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                while !is_done.load(Relaxed) {
                    let [all, last, least, greatest] =
                        asked(&database).map(|results| texts(results).unwrap());
                    assert!(all.len() >= 3_000 && all.is_sorted_by(|a, b| a < b));
                    assert!(last.is_sorted_by(|a, b| a > b) && least[0] == all[0]);
                    assert!(greatest[0] >= all[all.len() - 1]);
                }
            });
        }
        for round in 0..8 {
            let from = 3_000 + round * 200;
            append(
                &database,
                &numbered(from..from + 200, ["b", "a"][round % 2]),
            );
            if round % 3 == 2 {
                database.compact().unwrap();
            }
        }
        is_done.store(true, Relaxed);
    });
}

#[test]
fn a_query_without_memory_for_the_order_is_answered() {
    let (loaded, appended) = (numbered(0..2_000, "a"), numbered(2_000..22_000, "b"));
    let right = right(&sorted(&[loaded.clone(), appended.clone()].concat()));
    let folder = tempfile::tempdir().unwrap();
    for spill in [SpillLimits::off(), SpillLimits::new(folder.path(), 1 << 30)] {
        let mut config = Config::default();
        // An order of 20,000 takes more.
        config.query_memory_bytes = 1_100_000;
        config.spill = spill;
        config.threads = 1;
        let database = load(config, &loaded);
        append(&database, &appended);
        for _ in 0..2 {
            // Rows that have no room without spilling are no matter of this.
            for (results, right) in asked(&database).into_iter().zip(&right).skip(1) {
                assert_eq!(texts(results).unwrap(), *right);
            }
        }
    }
}

#[test]
fn a_query_that_is_cancelled_leaves_the_order_to_the_next() {
    let (loaded, appended) = (numbered(0..2_000, "a"), numbered(2_000..22_000, "b"));
    let right = right(&sorted(&[loaded.clone(), appended.clone()].concat()));
    let database = load(Config::default(), &loaded);
    append(&database, &appended);
    for wait in 0..20 {
        let cancellation = CancellationToken::new();
        let options = QueryOptions {
            cancellation: Some(cancellation.clone()),
            ..QueryOptions::default()
        };
        let results = database.query_with(ALL, options).unwrap();
        std::thread::scope(|threads| {
            let asked = threads.spawn(|| texts(results));
            for _ in 0..wait * 50 {
                std::thread::yield_now();
            }
            cancellation.cancel();
            match asked.join().unwrap() {
                Ok(found) => assert_eq!(found, right[0]),
                Err(error) => assert!(matches!(error, EngineError::Cancelled), "{error}"),
            }
        });
    }
    for (results, right) in asked(&database).into_iter().zip(right) {
        assert_eq!(texts(results).unwrap(), right);
    }
}
