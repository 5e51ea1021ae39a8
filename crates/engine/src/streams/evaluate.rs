//! Evaluates what is due.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::{Duration, Instant};

use jindou_exec::{GraphSource, MaterializedRows};
use jindou_plan::Prepared;
use jindou_store::window::{Bounds, RingSnapshot};
use jindou_stream::{SlidingWindow, WindowedGraph};
use oxrdf::Quad;

use super::answer::Answer;
use super::continuous::{Continuous, State};
use super::gap::{end_of_gap, is_idle};
use super::held::bytes_of;
use super::incremental::{At, Keeping};
use super::interruption::Interruption;
use super::plans::{Figures, Plans};
use super::result_log::ContinuousResult;
use super::rows::Rows;
use super::stream::Stream;
use super::tuples::Tuples;
use crate::database::Inner;
use crate::graph::StoredGraph;
use crate::query::Running;
use crate::request_memory::RequestMemory;
use crate::shards::Asked;
use crate::{EngineError, QueryOptions};

/// A result is given for so many idle instants in a row, and for none of those after them until a window
/// over time has a tuple, or another one slides: a stream may leap by years.
const MOST_EMPTY: u32 = 1_000;

/// An evaluation that takes longer is long: those that follow are made by threads of their own.
pub(super) const LONG: Duration = Duration::from_millis(2);
/// One that proves to be long is given up after this time, and made by such a thread.
const GIVEN_UP: Duration = Duration::from_millis(10);

/// Whoever pushes tuples evaluates light queries for about so long; others then do the rest.
const TOGETHER: Duration = Duration::from_millis(100);

/// How long a thread is at a query.
#[derive(Clone, Copy, Default)]
pub(super) struct Turn {
    /// Evaluations that begin after this time are left to the next turn.
    pub(super) most: Option<Duration>,
    /// An evaluation that takes longer is given up; otherwise it has the limit of any query.
    pub(super) limit: Option<Duration>,
}

impl Inner {
    /// Has the queries that read a stream evaluated at all instants at which their windows are
    /// complete, and forgets what none of them will read any more. Costs what is due, however many
    /// queries there are.
    pub(super) fn wake_readers(self: &Arc<Self>, stream: &Stream) {
        let due = stream.take_due();
        if !due.is_empty() {
            self.evaluate_shapes(&due);
            let begun = Instant::now();
            for query in &due {
                self.wake_by(query, begun.elapsed() < TOGETHER);
            }
            // All together: what the first of them waits for, the device has done for the others.
            due.iter().for_each(|query| self.let_results_leave(query));
        }
        stream.forget_after(due.len());
        // What they read of others is not needed any more either, though nothing came there.
        for (other, readers) in others_of(&due, stream) {
            other.forget_after(readers);
        }
    }

    /// Has a query evaluated: by this thread, unless another one is at it or it takes long and there
    /// are threads for that.
    pub(super) fn wake(self: &Arc<Self>, query: &Arc<Continuous>) {
        self.wake_by(query, true);
    }

    /// The same, by this thread only if it may.
    fn wake_by(self: &Arc<Self>, query: &Arc<Continuous>, may_evaluate: bool) {
        if query.wakes.fetch_add(1, SeqCst) > 0 {
            return;
        }
        let threads = self.config.continuous_threads;
        if threads == 0 {
            self.finish(query);
            return;
        }
        let is_light = may_evaluate && !query.is_long.load(Relaxed);
        let short = Turn {
            most: Some(LONG),
            limit: Some(GIVEN_UP),
        };
        if is_light && self.take_turn_of(query, short) {
            return;
        }
        if !self.streams.pool.submit(self, threads, query) {
            self.finish(query);
        }
    }

    /// Evaluates a query that is nobody else's until it is not due any more.
    pub(super) fn finish(self: &Arc<Self>, query: &Arc<Continuous>) {
        // Without a limit an attempt is given up only where a test has it interrupted.
        while !self.take_turn_of(query, Turn::default()) {}
    }

    /// Evaluates a query that is nobody else's for about so long; false if it is not done then, and it
    /// is this thread's still.
    pub(super) fn take_turn_of(self: &Arc<Self>, query: &Arc<Continuous>, turn: Turn) -> bool {
        let begun = Instant::now();
        let is_over = || turn.most.is_some_and(|most| begun.elapsed() >= most);
        loop {
            let wakes = query.wakes.load(SeqCst);
            let is_settled = match self.evaluate_query(query, turn.limit, &is_over) {
                Looked::Unfinished => return false,
                Looked::Refused => {
                    query.look_again();
                    true
                }
                Looked::Finished => query.subscription.is_some() || query.wait(),
            };
            if !is_settled {
                continue;
            }
            let settled = query.wakes.compare_exchange(wakes, 0, SeqCst, SeqCst);
            if settled.is_ok() {
                break;
            }
        }
        true
    }

    /// Evaluates a query at the instants that are due.
    fn evaluate_query(
        self: &Arc<Self>,
        query: &Continuous,
        limit: Option<Duration>,
        is_over: &dyn Fn() -> bool,
    ) -> Looked {
        let finished = |is_done: bool| match is_done {
            true => Looked::Finished,
            false => Looked::Unfinished,
        };
        if let Some(subscription) = &query.subscription {
            let settled = self.evaluate_subscription((query, subscription), limit, is_over);
            return finished(settled);
        }
        let mut state = query.state.lock();
        while let Some(instant_ms) = query.due(&state) {
            if query.is_gone.load(Relaxed) {
                return Looked::Finished;
            }
            let mut last_ms = instant_ms;
            if query.is_paused.load(Relaxed) {
                last_ms = last_ms.max(query.stable_ms().unwrap_or(last_ms));
            } else {
                let windows = windows_at(query, instant_ms);
                let is_idle = is_idle(query, query.last_of(&state), &windows);
                if is_idle && state.empty >= MOST_EMPTY {
                    last_ms = last_ms.max(end_of_gap(query, &windows));
                } else {
                    let empty = if is_idle { state.empty + 1 } else { 0 };
                    let at = (instant_ms, empty, windows.as_slice());
                    let answer = match self.evaluate_at(query, &mut state, at, limit) {
                        Evaluated::Result(answer) => answer,
                        Evaluated::GivenUp => {
                            query.is_long.store(true, Relaxed);
                            return Looked::Unfinished;
                        }
                        Evaluated::NotKept => return Looked::Refused,
                    };
                    self.publish_answer(query, &answer);
                    state.empty = empty;
                }
            }
            query.pass(&mut state, last_ms);
            if is_over() {
                return finished(query.due(&state).is_none());
            }
        }
        Looked::Finished
    }

    /// Makes an answer tuples of the stream that the query makes, if it makes one.
    pub(super) fn publish_answer(self: &Arc<Self>, query: &Continuous, answer: &ContinuousResult) {
        let Some(stream) = &query.publishes else {
            return;
        };
        let instant_ms = answer.instant_ms;
        let rows = answer.answer.as_ref().ok().and_then(Answer::rows);
        let mut triples: Vec<Quad> = rows.into_iter().flat_map(Rows::triples).collect();
        let pushed = self.name_blank_nodes(&mut triples).and_then(|scope| {
            let mut tuples = Tuples::default();
            tuples.set_scope(scope);
            for triple in &triples {
                tuples.push(instant_ms, triple.as_ref());
            }
            let name = publisher(query);
            let by = query.is_durable.then_some((&*name, answer.sequence));
            if !tuples.is_empty() {
                self.put_tuples(stream, tuples, by.as_slice())?;
            }
            // What comes next has a later time.
            self.heartbeat_of(stream, instant_ms.saturating_add(1))
        });
        if let Err(error) = pushed {
            query.figures.failures.fetch_add(1, Relaxed);
            tracing::warn!(query = query.name, %error, "results are not published");
        }
    }

    /// The result at an instant, which is the last of so many idle ones.
    fn evaluate_at(
        &self,
        query: &Continuous,
        state: &mut State,
        (instant_ms, empty, windows): (i64, u32, &[(RingSnapshot, Bounds)]),
        limit: Option<Duration>,
    ) -> Evaluated {
        let begun = Instant::now();
        // It has all that the windows have: these are complete.
        let graph = self.graph.load_full();
        let at = (&graph, windows, instant_ms);
        let interruption = self.streams.interruption(&self.config);
        let limits = (limit, interruption.as_ref());
        let find = AssertUnwindSafe(|| self.find(query, state, at, limits));
        // Whoever pushes tuples is not to end with a query of others.
        let found = catch_unwind(find).unwrap_or(Err(EngineError::Internal));
        let is_limited = limit.is_some() || interruption.is_some();
        if is_limited && matches!(found, Err(EngineError::Timeout { .. })) {
            return Evaluated::GivenUp;
        }
        let took = begun.elapsed();
        query.is_long.store(took >= LONG, Relaxed);
        let at = (instant_ms, empty, windows);
        self.deliver(query, state, at, (&graph, found, took))
    }

    /// Makes what was found in some time a result, which is the last of so many idle ones, and gives it
    /// to readers.
    pub(super) fn deliver(
        &self,
        query: &Continuous,
        state: &mut State,
        (instant_ms, empty, windows): (i64, u32, &[(RingSnapshot, Bounds)]),
        (graph, found, took): (&StoredGraph, Result<Answer, EngineError>, Duration),
    ) -> Evaluated {
        let before = state.before.clone();
        let found = found.map_err(|error| error.to_string());
        let found = found.and_then(|answer| {
            let given = query.output(state, answer);
            let remembered = state.before.as_deref().and_then(Answer::rows);
            let held = self.hold_result(query, bytes_of(given.rows()))?;
            let remembered = self.hold_result(query, bytes_of(remembered))?;
            state.before_held = Some(remembered);
            Ok((given, held))
        });
        let (found, held) = match found {
            Ok((given, held)) => (Ok(given), Some(held)),
            Err(error) => {
                state.before.clone_from(&before);
                (Err(error), None)
            }
        };
        let rows = found
            .as_ref()
            .ok()
            .map(|answer| answer.rows().map_or(1, Rows::len));
        query.note(rows, took);
        let result = Arc::new(ContinuousResult {
            instant_ms,
            sequence: state.sequence + 1,
            windows: query.result_windows(windows, instant_ms),
            snapshot: graph.snapshot.number().0,
            answer: found,
            removed: None,
            held,
        });
        if let Err(error) = self.note_result(query, state, empty, &result) {
            state.before = before;
            query.figures.failures.fetch_add(1, Relaxed);
            tracing::warn!(query = query.name, %error, "a result is not kept");
            // These are ahead of what is known.
            state.keeping.kept = None;
            return Evaluated::NotKept;
        }
        state.sequence += 1;
        Evaluated::Result(result)
    }

    pub(super) fn find(
        &self,
        query: &Continuous,
        state: &mut State,
        (graph, windows, instant_ms): (&Arc<StoredGraph>, &[(RingSnapshot, Bounds)], i64),
        (limit, interruption): (Option<Duration>, Option<&Interruption>),
    ) -> Result<Answer, EngineError> {
        graph.read(|| {
            let stored = self.shards.source(graph, &self.config)?;
            let default = query.query.default_windows();
            let keeping = &mut state.keeping;
            let mut all = windows.to_vec();
            if query.overlaps {
                all.append(&mut keeping.new_tuples(query, windows));
            }
            let windowed = WindowedGraph::new(stored, &all, default);
            let windowed = Arc::new(windowed.with_times(query.tuple_times()));
            let at = At {
                graph,
                windowed: &windowed,
                windows,
                instant_ms,
                forgotten: match query.subscription {
                    // Its snapshot may be an old one.
                    Some(_) => graph.snapshot.times_forgotten(),
                    None => self.streams.forgotten.load(Relaxed),
                },
                interruption,
            };
            let plans = self.plans(query, keeping, &at)?;
            let source: Arc<dyn GraphSource> = Arc::clone(&windowed) as _;
            let graph = (Arc::clone(graph), source);
            if let Ok(incremental) = &plans.incremental {
                let memory = || {
                    let memory = RequestMemory::new(self.config.memory_pool.as_ref());
                    (memory, self.config.query_memory_bytes)
                };
                let mut execute = |plan: &Prepared<'static>| {
                    let plan = (plan.clone(), Arc::default());
                    self.start(graph.clone(), plan, limit)?.into_results()
                };
                if keeping.advance(query, incremental, &at, &memory, &mut execute)? {
                    let rows = keeping
                        .kept
                        .as_ref()
                        .map(|kept| Arc::clone(kept.solutions.given()));
                    let rest = (incremental.rest.clone(), rows.unwrap_or_default());
                    at.go_on()?;
                    let results = self.start(graph, rest, limit)?.into_results()?;
                    let read = self.read_beside(&mut state.last_rows, at.graph, |last| {
                        Answer::read(results, last, self.reading())
                    });
                    if read.is_ok() && state.keeping.had_before(instant_ms) {
                        query.figures.incremental.fetch_add(1, Relaxed);
                    }
                    return read;
                }
            }
            let whole = (plans.whole.clone(), Arc::default());
            at.go_on()?;
            let results = self.start(graph, whole, limit)?.into_results()?;
            self.read_beside(&mut state.last_rows, at.graph, |last| {
                Answer::read(results, last, self.reading())
            })
        })?
    }

    /// The plans of a query: the last ones, unless there is much more or less of everything now.
    fn plans(
        &self,
        query: &Continuous,
        keeping: &mut Keeping,
        at: &At<'_>,
    ) -> Result<Arc<Plans>, EngineError> {
        let ruled_out = keeping.ruled_out();
        let figures = Figures {
            graph: at.graph,
            windowed: at.windowed,
            forgotten: at.forgotten,
            given: keeping.given(),
        };
        let known = query.plans.lock().clone();
        let known = known.filter(|plans| plans.fit(query, &figures) && plans.agree_with(ruled_out));
        if let Some(plans) = known {
            return Ok(plans);
        }
        let plans = Plans::new(query, &figures, self.config.keep_solutions, ruled_out)?;
        if plans.incremental.is_err() {
            keeping.kept = None;
        }
        let plans = Arc::new(plans);
        *query.plans.lock() = Some(Arc::clone(&plans));
        Ok(plans)
    }

    pub(super) fn start(
        &self,
        (graph, source): (Arc<StoredGraph>, Arc<dyn GraphSource>),
        plan: (Prepared<'static>, Arc<MaterializedRows>),
        limit: Option<Duration>,
    ) -> Result<Running, EngineError> {
        let options = QueryOptions {
            timeout: limit,
            cancellation: Some(self.streams.pool.cancellation().clone()),
            ..QueryOptions::default()
        };
        let place = (Instant::now(), self.next_seed());
        let asked = Asked::in_place(graph, source);
        Running::start_over(asked, plan, &options, &self.config, &self.workers, place)
    }
}

/// The streams that queries read beside one, and how many of the queries read each.
fn others_of<'q>(queries: &'q [Arc<Continuous>], stream: &Stream) -> Vec<(&'q Stream, usize)> {
    let mut others: BTreeMap<u64, (&Stream, usize)> = BTreeMap::new();
    for query in queries {
        for (window, other) in query.streams.iter().enumerate() {
            let is_again = |before: &Arc<Stream>| before.number == other.number;
            if other.number != stream.number && !query.streams[..window].iter().any(is_again) {
                others.entry(other.number).or_insert((other, 0)).1 += 1;
            }
        }
    }
    others.into_values().collect()
}

/// What became of the instants of a query that were due.
enum Looked {
    /// It was evaluated at all of them.
    Finished,
    /// Its time was over before.
    Unfinished,
    /// The log does not take a result: that is tried again when something comes.
    Refused,
}

/// What became of an evaluation.
pub(super) enum Evaluated {
    Result(Arc<ContinuousResult>),
    /// It takes longer than it may here.
    GivenUp,
    /// The log does not take the result.
    NotKept,
}

/// As whom a query pushes its results.
pub(super) fn publisher(query: &Continuous) -> String {
    format!("query:{}", query.name)
}

pub(super) fn windows_at(query: &Continuous, instant_ms: i64) -> Vec<(RingSnapshot, Bounds)> {
    let streams = query.streams.iter().zip(&query.schedule.windows);
    let windows = streams.enumerate().map(|(number, (stream, window))| {
        let ring = match window {
            SlidingWindow::Time(_) => &stream.ring,
            SlidingWindow::Count(_) => &stream.numbered,
        };
        let snapshot = ring.lock().snapshot();
        (snapshot, query.bounds(number, instant_ms))
    });
    windows.collect()
}
