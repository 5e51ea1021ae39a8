//! What does one batch cost, stream by stream and query by query?

use std::time::{Duration, Instant};

use jindou_datagen::lsbench::Stream;
use jindou_engine::Database;

use super::feed::Batch;
use super::queries::Query;
use super::setup;
use crate::BenchError;

/// A registered query whose evaluations are looked at one by one.
struct Watched {
    query: &'static Query,
    name: String,
    executions: u64,
    seconds: f64,
}

/// Queries that are looked at. Between two looks each is evaluated once at most.
#[derive(Default)]
pub(super) struct Watch {
    queries: Vec<Watched>,
}

/// What a batch has cost.
pub(super) struct Step {
    /// What pushing the tuples of each stream took: they are parsed and wait,
    pub(super) pushing: [Duration; 5],
    /// and what became of the batch of each stream then, without evaluations: terms, stored graph, windows.
    pub(super) indexing: [Duration; 5],
    /// Evaluations, each of the query of this number.
    pub(super) evaluated: Vec<(usize, Duration)>,
}

impl Watch {
    /// Looks at so many queries of a class, which are registered.
    pub(super) fn add(&mut self, query: &'static Query, many: u32) {
        self.queries.extend((0..many).map(|number| Watched {
            query,
            name: setup::name(query, number),
            executions: 0,
            seconds: 0.0,
        }));
    }

    /// The class of a query.
    pub(super) fn class(&self, number: usize) -> &'static Query {
        self.queries[number].query
    }

    /// Pushes and completes a batch.
    pub(super) fn step(
        &mut self,
        database: &Database,
        mut batch: Batch,
    ) -> Result<Step, BenchError> {
        let mut step = Step {
            pushing: [Duration::ZERO; 5],
            indexing: [Duration::ZERO; 5],
            evaluated: Vec::new(),
        };
        for stream in Stream::ALL {
            let begun = Instant::now();
            batch.push_of(stream, database)?;
            step.pushing[stream as usize] = begun.elapsed();
        }
        for stream in Stream::ALL {
            let begun = Instant::now();
            batch.complete_of(stream, database)?;
            let took = begun.elapsed();
            let before = step.evaluated.len();
            self.look(database, stream, &mut step.evaluated);
            let evaluating: Duration = step.evaluated[before..].iter().map(|one| one.1).sum();
            step.indexing[stream as usize] = took.saturating_sub(evaluating);
        }
        Ok(step)
    }

    /// Which queries were evaluated when a stream's batch was complete.
    fn look(&mut self, database: &Database, stream: Stream, out: &mut Vec<(usize, Duration)>) {
        let due = self.queries.iter_mut().enumerate();
        for (number, watched) in due.filter(|(_, one)| one.query.last_stream() == stream) {
            let Some(status) = database.continuous_query(&watched.name) else {
                continue;
            };
            if status.executions > watched.executions {
                let took = (status.seconds - watched.seconds).max(0.0);
                out.push((number, Duration::from_secs_f64(took)));
            }
            (watched.executions, watched.seconds) = (status.executions, status.seconds);
        }
    }
}

impl Step {
    /// What a consumer of a query would wait for if nothing else were there: batches of the streams that the
    /// query reads, and its evaluation.
    pub(super) fn until_result(&self, query: &Query, evaluation: Duration) -> Duration {
        let batches = query.windows.iter();
        let batches = batches.map(|stream| self.indexing[*stream as usize]);
        batches.sum::<Duration>() + evaluation
    }
}
