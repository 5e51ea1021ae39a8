//! Streams and continuous queries come back after a kill: nothing that was acknowledged is lost, and no
//! result is given with two contents or left out.

mod bounds;
mod damage;
mod full_disk;
mod kills;
mod mortal;
mod restarts;
mod sinks;
mod threads;

use std::path::Path;
use std::time::Duration;

use jindou_engine::{
    Answer, Config, ContinuousResult, Database, MergePolicy, NextResult, Predicates,
    StreamDefinition, TupleFormat, results::TermText,
};

/// A number from the environment, or another one.
fn environment(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name} is no number: {text}")),
        Err(_) => default,
    }
}

fn config() -> Config {
    let mut config = Config::default();
    config.threads = 1;
    config.merge = MergePolicy::never();
    config
}

fn open(location: &Path) -> Database {
    Database::open_or_create(location, config()).expect("it is whole")
}

fn durable(iri: &str) -> StreamDefinition {
    let mut definition = StreamDefinition::new(iri);
    definition.durable = true;
    definition
}

/// A durable stream whose tuples of one predicate are facts.
fn with_facts(iri: &str) -> StreamDefinition {
    let mut definition = durable(iri);
    definition.timeless = Some(Predicates::Some(vec!["http://e/fact".to_owned()]));
    definition
}

fn push(database: &Database, stream: &str, text: &str) {
    let pushed = database.push(stream, TupleFormat::Lines, None, text.as_bytes().to_vec());
    pushed.expect("it is sound");
}

/// What a result says, without what depends on updates of others: rows sorted, as an answer has no order.
fn said(result: &ContinuousResult) -> String {
    let answer = match &result.answer {
        Ok(Answer::Boolean(value)) => value.to_string(),
        Ok(answer) => {
            let rows = answer.rows().expect("it has rows").iter();
            let mut rows: Vec<String> = rows
                .map(|row| row.iter().map(|cell| cell_text(*cell)).collect())
                .collect();
            rows.sort();
            rows.join(", ")
        }
        Err(error) => format!("error: {error}"),
    };
    let windows: Vec<String> = (result.windows.iter())
        .map(|window| {
            let held = window.held;
            format!(
                "{} {}..{} {:?}",
                window.name, held.from_ms, held.until_ms, held.numbers
            )
        })
        .collect();
    format!(
        "{} at {} [{}]: {answer}",
        result.sequence,
        result.instant_ms,
        windows.join("; ")
    )
}

fn cell_text(cell: Option<TermText<'_>>) -> String {
    match cell {
        None => "- ".to_owned(),
        Some(TermText::Iri(text) | TermText::Blank(text)) => format!("{text} "),
        Some(TermText::Literal { value, .. }) => format!("{value:?} "),
    }
}

/// The results of a query after one, each the one after it.
fn results(database: &Database, query: &str, after: u64) -> Vec<String> {
    let mut results = (database.results_of(query, Some(after))).expect("what was seen is known");
    let mut all = Vec::new();
    let mut last = after;
    while let NextResult::Result(result, missed) = results.next_within(Duration::ZERO) {
        assert_eq!((missed, result.sequence), (0, last + 1), "{query}");
        last = result.sequence;
        all.push(said(&result));
    }
    all
}
