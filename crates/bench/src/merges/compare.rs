//! Are answers those of a fresh load, and how much longer do they take?

use std::time::{Duration, Instant};

use jindou_engine::{Database, QueryOptions};

use super::report::Compared;
use crate::operators::{Answer, Check, answer_of};
use crate::timing::Timing;
use crate::{BenchError, run};

/// What takes less is run once before each timed run, for the caches that the other store just
/// filled.
const CHEAP: Duration = Duration::from_millis(20);

/// Times queries on a fresh load and on another store with the same data by turns, after their
/// answers were compared by `check`. `way` says in errors what the other store is.
///
/// # Errors
/// [`BenchError::RowsDiffer`], [`BenchError::AnswersDiffer`], [`BenchError::Engine`].
pub(super) fn compare(
    fresh: &Database,
    other: &Database,
    (way, check): (&'static str, Check),
    queries: &[(&'static str, &'static str)],
    runs: u32,
    note: &mut impl FnMut(&str),
) -> Result<Vec<Compared>, BenchError> {
    let each = queries.iter().map(|&(name, text)| {
        note(&format!("{name} {way}"));
        let (right, found) = (answer(fresh, text)?, answer(other, text)?);
        run::check_rows(name, way, right.rows, found.rows)?;
        if !found.same(&right, check) {
            let query = name.to_owned();
            return Err(BenchError::AnswersDiffer { query, way });
        }
        let [fresh, other] = by_turns([fresh, other], (name, text, right.rows), way, runs)?;
        Ok(Compared {
            name: name.to_owned(),
            rows: right.rows,
            fresh,
            other,
        })
    });
    each.collect()
}

fn answer(database: &Database, text: &str) -> Result<Answer, BenchError> {
    let answer = answer_of(database, text, QueryOptions::default())?;
    Ok(answer.expect("a query without a limit ends"))
}

fn by_turns(
    stores: [&Database; 2],
    (name, text, rows): (&str, &str, u64),
    way: &'static str,
    runs: u32,
) -> Result<[Timing; 2], BenchError> {
    let mut times = [Vec::new(), Vec::new()];
    let run = |database: &Database| {
        let begin = Instant::now();
        let outcome = run::as_ids(database, text, 1)?;
        let time = begin.elapsed();
        run::check_rows(name, way, rows, outcome.rows)?;
        Ok::<Duration, BenchError>(time)
    };
    for _ in 0..runs.max(1) {
        for (database, times) in stores.into_iter().zip(&mut times) {
            if times.last().is_none_or(|&last| last < CHEAP) {
                run(database)?;
            }
            times.push(run(database)?);
        }
    }
    Ok(times.map(Timing::of))
}
