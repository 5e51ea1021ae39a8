//! What do streams, and continuous queries over them, cost the one-shot queries beside them?
//!
//! One thread asks LSBench's queries of the stored graph, one after the other; those two of six that ask
//! for photos and likes, which only the streams have, are other ones about friends. Another pushes the streams,
//! a batch each tenth of a second of the clock: in every third second not at all, in the next one with all
//! continuous queries paused, in the third one with them. What is compared lies so near in time that what
//! else the machine does falls on all alike.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use jindou_datagen::lsbench::{Lsbench, STORED_GRAPH_IRI};
use jindou_engine::Database;
use serde::{Deserialize, Serialize};

use super::feed::Feed;
use super::{BATCH_MS, Options};
use crate::BenchError;
use crate::run::as_ids;
use crate::timing::Timing;

/// Seconds of a round: one for each [`Beside`].
const ROUND_SECONDS: u64 = 3;

/// What happens beside one-shot queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    Nothing,
    Streams,
    StreamsAndQueries,
}

const BESIDE: [Beside; 3] = [Beside::Nothing, Beside::Streams, Beside::StreamsAndQueries];

/// A one-shot query, its name and its pattern.
const QUERIES: [(&str, &str); 6] = [
    ("S1", "USER ?p ?o ."),
    (
        "S2",
        "?user sioc:account_of PERSON . ?user sioc:creator_of ?post .",
    ),
    (
        "S3",
        "?user sioc:account_of PERSON . ?user foaf:knows ?friend . ?friend sioc:creator_of ?post .",
    ),
    (
        "group",
        "GROUP sioc:has_member ?one . ?one foaf:knows ?other . ?other sioc:account_of ?profile .",
    ),
    (
        "S5",
        "USER foaf:knows ?user . ?user sioc:account_of ?profile . ?profile foaf:gender ?gender . \
         ?profile foaf:birthday ?day . ?profile sioc:email ?email .",
    ),
    (
        "near",
        "?one foaf:knows ?other . ?one sioc:account_of ?near . ?near foaf:based_near ?place . \
         ?other sioc:account_of ?far . ?far foaf:based_near ?place .",
    ),
];

/// A one-shot query, beside what happens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OneShotFigures {
    /// Its name.
    pub name: String,
    /// Rows of an answer.
    pub rows: u64,
    /// Beside nothing,
    pub alone: Timing,
    /// beside the streams,
    pub streams: Timing,
    /// and beside the streams and all continuous queries.
    pub queries: Timing,
}

/// How long it measures: whole rounds.
pub(super) fn seconds(options: &Options) -> u64 {
    options.seconds.next_multiple_of(ROUND_SECONDS)
}

/// Measures one-shot queries for [`seconds`].
pub(super) fn measure(
    database: &Database,
    data: &Lsbench,
    options: &Options,
) -> Result<Vec<OneShotFigures>, BenchError> {
    let rounds = seconds(options) / ROUND_SECONDS;
    let (beside, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| ask(database, options, &beside, &is_over));
        let fed = feed(database, data, options, rounds, &beside);
        is_over.store(true, SeqCst);
        let figures = asking.join().expect("it does not panic");
        fed.and(figures)
    })
}

/// Pushes the streams at the pace of the clock.
fn feed(
    database: &Database,
    data: &Lsbench,
    options: &Options,
    rounds: u64,
    beside: &AtomicUsize,
) -> Result<(), BenchError> {
    let second = Duration::from_secs(1);
    let mut feed = Feed::new(data, options, rounds * (ROUND_SECONDS - 1))?;
    let names: Vec<String> = database
        .continuous_queries()
        .into_iter()
        .map(|one| one.name)
        .collect();
    for _ in 0..rounds {
        for (number, what) in BESIDE.iter().enumerate() {
            for name in &names {
                database.set_paused(name, *what != Beside::StreamsAndQueries)?;
            }
            beside.store(number, SeqCst);
            let begun = Instant::now();
            let mut due = Duration::ZERO;
            while due < second && *what != Beside::Nothing {
                let Some(mut batch) = feed.next_batch() else {
                    break;
                };
                due += Duration::from_millis(BATCH_MS);
                std::thread::sleep(due.saturating_sub(begun.elapsed()));
                batch.push(database)?;
                batch.complete(database)?;
            }
            std::thread::sleep(second.saturating_sub(begun.elapsed()));
        }
    }
    Ok(())
}

/// Asks the queries in turn until it is over.
fn ask(
    database: &Database,
    options: &Options,
    beside: &AtomicUsize,
    is_over: &AtomicBool,
) -> Result<Vec<OneShotFigures>, BenchError> {
    let mut times: Vec<[Vec<Duration>; BESIDE.len()]> = vec![Default::default(); QUERIES.len()];
    let mut rows = [0; QUERIES.len()];
    let mut asked = 0_u32;
    while !is_over.load(SeqCst) {
        for (number, (_, pattern)) in QUERIES.iter().enumerate() {
            let text = text(pattern, asked.wrapping_mul(2_654_435_761) % options.users);
            let before = beside.load(SeqCst);
            let begun = Instant::now();
            let outcome = as_ids(database, &text, 1)?;
            let took = begun.elapsed();
            // What came between two kinds of seconds is of neither.
            if before == beside.load(SeqCst) {
                times[number][before].push(took);
                rows[number] = outcome.rows.max(rows[number]);
            }
        }
        asked = asked.wrapping_add(1);
    }
    let figures = QUERIES
        .iter()
        .zip(times)
        .zip(rows)
        .filter_map(|(((name, _), times), rows)| {
            let is_measured = times.iter().all(|times| !times.is_empty());
            is_measured.then(|| {
                let [alone, streams, queries] = times.map(Timing::of);
                OneShotFigures {
                    name: (*name).to_owned(),
                    rows,
                    alone,
                    streams,
                    queries,
                }
            })
        });
    Ok(figures.collect())
}

/// The text of a query of the stored graph that starts at a user.
fn text(pattern: &str, user: u32) -> String {
    let named =
        |kind: &str, letter: char| format!("<http://www.ins.cwi.nl/sib/{kind}/{letter}{user}>");
    let pattern = pattern
        .replace("USER", &named("user", 'u'))
        .replace("PERSON", &named("person", 'p'))
        .replace("GROUP", "<http://www.ins.cwi.nl/sib/group/g1>");
    format!(
        "PREFIX sib: <http://www.ins.cwi.nl/sib/vocabulary/> PREFIX sioc: <http://rdfs.org/sioc/ns#> \
         PREFIX foaf: <http://xmlns.com/foaf/0.1/> SELECT * FROM <{STORED_GRAPH_IRI}> WHERE {{ {pattern} }}"
    )
}
