//! Evaluates what is due.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use jindou_exec::GraphSource;
use jindou_plan::Prepared;
use jindou_store::window::{Bounds, RingSnapshot};
use jindou_stream::{WindowedFigures, WindowedGraph};

use super::answer::{Answer, Rows};
use super::continuous::{Continuous, ContinuousResult, Planned, State};
use super::stream::Stream;
use crate::graph::StoredGraph;
use crate::query::Running;
use crate::{Database, EngineError, QueryOptions};

/// A plan is made anew when there is so many times as much, or as little, as when it was made.
const REPLAN: u64 = 4;
/// So many more or less do not matter.
const FEW: u64 = 64;

impl Database {
    /// Evaluates all queries at all instants at which their windows are complete.
    pub(super) fn evaluate_due(&self) {
        let queries: Vec<Arc<Continuous>> = {
            let names = self.inner().streams.names.read();
            names.queries.values().cloned().collect()
        };
        for query in &queries {
            self.evaluate_query(query);
        }
        self.forget_read();
    }

    fn evaluate_query(&self, query: &Continuous) {
        let mut state = query.state.lock();
        while let Some(instant_ms) = query.due(&state) {
            if query.is_gone.load(Relaxed) {
                return;
            }
            if !query.is_paused.load(Relaxed) {
                self.evaluate_at(query, &mut state, instant_ms);
            }
            state.last_ms = Some(instant_ms);
        }
    }

    fn evaluate_at(&self, query: &Continuous, state: &mut State, instant_ms: i64) {
        let begun = Instant::now();
        // It has all that the windows have: these are complete.
        let graph = self.graph();
        let windows = windows_at(query, instant_ms);
        let found = self.find(query, state, &graph, &windows);
        let found = found.map(|answer| query.output(state, answer));
        state.sequence += 1;
        let rows = found
            .as_ref()
            .ok()
            .map(|answer| answer.rows().map_or(1, Rows::len));
        query.note(rows, begun.elapsed());
        let names = query
            .query
            .windows
            .iter()
            .map(|window| window.name.as_str().to_owned());
        let bounds = windows
            .iter()
            .map(|(_, bounds)| (bounds.from_ms, bounds.until_ms));
        query.log.push(ContinuousResult {
            instant_ms,
            sequence: state.sequence,
            windows: names
                .zip(bounds)
                .map(|(name, (from, until))| (name, from, until))
                .collect(),
            snapshot: graph.snapshot.number().0,
            answer: found.map_err(|error| error.to_string()),
        });
    }

    fn find(
        &self,
        query: &Continuous,
        state: &mut State,
        graph: &Arc<StoredGraph>,
        windows: &[(RingSnapshot, Bounds)],
    ) -> Result<Answer, EngineError> {
        let inner = self.inner();
        graph.read(|| {
            let stored = inner.shards.source(graph, &inner.config)?;
            let default = query.query.default_windows();
            let windowed = Arc::new(WindowedGraph::new(stored, windows, default));
            let forgotten = inner.streams.forgotten.load(Relaxed);
            let prepared = plan(query, state, forgotten, (graph, &windowed))?;
            let options = QueryOptions::default();
            let source: Arc<dyn GraphSource> = windowed;
            let place = (Instant::now(), inner.next_seed());
            let running = Running::start(
                (Arc::clone(graph), source),
                prepared,
                &options,
                &inner.config,
                &inner.workers,
                place,
            )?;
            Answer::read(running.into_results()?)
        })?
    }

    /// Forgets tuples that no query will read any more.
    fn forget_read(&self) {
        let names = self.inner().streams.names.read();
        for stream in names.streams.values() {
            let Some(stable_ms) = stream.stable_ms() else {
                continue;
            };
            let mut from_ms = stable_ms;
            for query in names.queries.values() {
                from_ms = from_ms.min(needed_from(query, stream).unwrap_or(from_ms));
            }
            stream.ring.lock().forget_before(from_ms);
        }
    }
}

/// The earliest time that the next instant of a query needs of a stream; `None` if it does not read
/// it.
fn needed_from(query: &Continuous, stream: &Arc<Stream>) -> Option<i64> {
    let reads = query.streams.iter().any(|one| Arc::ptr_eq(one, stream));
    if !reads {
        return None;
    }
    // Whoever evaluates it now needs what is there.
    let last = query
        .state
        .try_lock()
        .map_or(Some(i64::MIN), |state| state.last_ms);
    let reach = query.schedule.reach_ms();
    Some(last.map_or(i64::MIN, |last| last.saturating_sub_unsigned(reach)))
}

fn windows_at(query: &Continuous, instant_ms: i64) -> Vec<(RingSnapshot, Bounds)> {
    let streams = query.streams.iter().enumerate();
    let windows = streams.map(|(window, stream)| {
        let snapshot = stream.ring.lock().snapshot();
        (snapshot, query.bounds(window, instant_ms))
    });
    windows.collect()
}

/// The plan of a query: the last one, unless there is much more or less of everything now.
fn plan(
    query: &Continuous,
    state: &mut State,
    forgotten: u64,
    (graph, windowed): (&Arc<StoredGraph>, &Arc<WindowedGraph>),
) -> Result<Prepared<'static>, EngineError> {
    let numbers = 0..query.streams.len() as u16;
    let tuples = numbers.map(|number| windowed.window(number).tuples()).sum();
    let quads = graph.snapshot.triples() + graph.snapshot.named_quads();
    let generation = graph.snapshot.generation();
    let is_like = |now: u64, then: u64| now <= REPLAN * then + FEW && then <= REPLAN * now + FEW;
    if let Some(planned) = &state.plan
        && is_like(tuples, planned.tuples)
        && is_like(quads, planned.quads)
        && (generation, forgotten) == (planned.generation, planned.forgotten)
    {
        return Ok(planned.prepared.clone());
    }
    let figures = WindowedFigures::new(&**graph, windowed);
    let prepared = query.query.plan_until(&figures, &|| false)?;
    state.plan = Some(Planned {
        prepared: prepared.clone(),
        tuples,
        quads,
        generation,
        forgotten,
    });
    Ok(prepared)
}
