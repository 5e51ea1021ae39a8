//! Threads for queries that take long: those who push tuples do not wait for them.
//!
//! A query that takes some milliseconds does not wait for one that takes a minute either: it has a thread
//! that gives up whatever takes longer than a [`TURN`], and leaves it to the others from then on.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::{Duration, Instant};

use jindou_exec::CancellationToken;
use parking_lot::{Condvar, Mutex};

use super::continuous::Continuous;
use super::evaluate::Turn;
use super::stream::Stream;
use crate::database::Inner;

/// How long a query is evaluated before others have their turn, and an evaluation may take that is not slow.
const TURN: Duration = Duration::from_millis(50);

/// How often streams forget what was read, while there are queries to evaluate: it asks all readers of a stream,
/// and whoever registers or drops one waits meanwhile.
const FORGET_EVERY: Duration = Duration::from_secs(1);

/// Threads that evaluate queries, begun when there is something to do.
#[derive(Default)]
pub(crate) struct Pool {
    state: Mutex<PoolState>,
    ready: Condvar,
    /// Who is at which query.
    turns: Mutex<Vec<TurnUnderWay>>,
    /// Ends what is under way.
    cancellation: CancellationToken,
}

#[derive(Default)]
struct PoolState {
    brief: LaneState,
    slow: LaneState,
    is_stopped: bool,
}

#[derive(Default)]
struct LaneState {
    /// Each of them is nobody else's until its turn is over.
    queue: VecDeque<Arc<Continuous>>,
    threads: Vec<JoinHandle<()>>,
}

/// For which queries is a thread?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lane {
    /// For those whose evaluations take no longer than a [`TURN`], as far as is known.
    Brief,
    Slow,
}

impl Lane {
    fn of(query: &Continuous) -> Self {
        match query.is_slow.load(Relaxed) {
            true => Self::Slow,
            false => Self::Brief,
        }
    }

    /// Whether a query is slow, by a turn with so many evaluations that took so long together; `None` if that
    /// says nothing of it, as where nothing was due.
    fn finds_slow(self, is_done: bool, evaluations: u64, took: Duration) -> Option<bool> {
        let evaluations = u32::try_from(evaluations).unwrap_or(u32::MAX);
        match (self, evaluations) {
            // It was given up.
            (Self::Brief, 0) => (!is_done).then_some(true),
            (Self::Brief, _) => Some(false),
            (Self::Slow, 0) => None,
            (Self::Slow, _) => Some(took >= TURN.saturating_mul(evaluations)),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Brief => "brief",
            Self::Slow => "slow",
        }
    }
}

impl PoolState {
    fn lane(&mut self, lane: Lane) -> &mut LaneState {
        match lane {
            Lane::Brief => &mut self.brief,
            Lane::Slow => &mut self.slow,
        }
    }
}

/// Streams of which queries have read something. To forget that asks all readers of a stream, so it is done for
/// many queries at once.
struct Unforgotten {
    streams: Vec<Arc<Stream>>,
    last: Instant,
}

impl Default for Unforgotten {
    fn default() -> Self {
        Self {
            streams: Vec::new(),
            last: Instant::now(),
        }
    }
}

impl Unforgotten {
    fn add(&mut self, query: &Continuous) {
        for stream in &query.streams {
            if !self.streams.iter().any(|known| Arc::ptr_eq(known, stream)) {
                self.streams.push(Arc::clone(stream));
            }
        }
    }

    fn is_due(&self) -> bool {
        self.last.elapsed() >= FORGET_EVERY
    }

    fn forget(&mut self) {
        self.streams
            .drain(..)
            .for_each(|stream| stream.forget_read());
        self.last = Instant::now();
    }
}

/// A thread that evaluates a query, which is ended if the query goes.
struct TurnUnderWay {
    thread: ThreadId,
    query: u64,
    cancellation: CancellationToken,
}

impl Pool {
    /// What ends the evaluation that the calling thread begins: that of its turn, if it has one, or else
    /// what ends all.
    pub(super) fn cancellation(&self) -> CancellationToken {
        let thread = thread::current().id();
        let turns = self.turns.lock();
        let own = turns.iter().find(|turn| turn.thread == thread);
        own.map_or(&self.cancellation, |turn| &turn.cancellation)
            .clone()
    }

    /// Ends what is under way of a query.
    pub(super) fn end_turns_of(&self, query: u64) {
        let turns = self.turns.lock();
        let its = turns.iter().filter(|turn| turn.query == query);
        its.for_each(|turn| turn.cancellation.cancel());
    }

    /// The calling thread has a turn with a query.
    fn begin_turn(&self, query: &Continuous) {
        let turn = TurnUnderWay {
            thread: thread::current().id(),
            query: query.number,
            cancellation: CancellationToken::new(),
        };
        let mut turns = self.turns.lock();
        if self.cancellation.is_cancelled() {
            turn.cancellation.cancel();
        }
        turns.push(turn);
    }

    fn end_turn(&self) {
        let thread = thread::current().id();
        self.turns.lock().retain(|turn| turn.thread != thread);
    }

    /// Has a query evaluated by a thread: one of so many for those that are slow, or one more for the others.
    /// False if there is none, and none can be started.
    pub(super) fn submit(
        self: &Arc<Self>,
        inner: &Arc<Inner>,
        most_threads: usize,
        query: &Arc<Continuous>,
    ) -> bool {
        let lane = Lane::of(query);
        let most = match lane {
            Lane::Brief => 1,
            Lane::Slow => most_threads,
        };
        let mut state = self.state.lock();
        if state.is_stopped {
            return false;
        }
        let threads = &mut state.lane(lane).threads;
        if threads.len() < most {
            let (pool, inner) = (Arc::clone(self), Arc::downgrade(inner));
            let name = format!("jindou-{}-{}", lane.name(), threads.len());
            match thread::Builder::new()
                .name(name)
                .spawn(move || pool.work(&inner, lane))
            {
                Ok(thread) => threads.push(thread),
                Err(error) => tracing::warn!("no thread for continuous queries: {error}"),
            }
        }
        if threads.is_empty() {
            return false;
        }
        state.lane(lane).queue.push_back(Arc::clone(query));
        drop(state);
        self.ready.notify_all();
        true
    }

    fn work(self: &Arc<Self>, inner: &Weak<Inner>, lane: Lane) {
        let mut unforgotten = Unforgotten::default();
        while let Some(query) = self.next(lane) {
            let Some(inner) = inner.upgrade() else {
                return;
            };
            let turn = Turn {
                most: Some(TURN),
                limit: (lane == Lane::Brief).then_some(TURN),
            };
            let executions = || query.figures.executions.load(Relaxed);
            let (begun, before) = (Instant::now(), executions());
            self.begin_turn(&query);
            let is_done = inner.take_turn_of(&query, turn);
            self.end_turn();
            let evaluated = executions() - before;
            if let Some(is_slow) = lane.finds_slow(is_done, evaluated, begun.elapsed()) {
                query.is_slow.store(is_slow, Relaxed);
            }
            inner.let_results_leave(&query);
            // Whoever pushed tuples did not wait for this one.
            unforgotten.add(&query);
            if self.is_idle(lane) || unforgotten.is_due() {
                unforgotten.forget();
                inner.limit_journal();
            }
            let threads = inner.config.continuous_threads;
            if !is_done && !self.submit(&inner, threads, &query) && !self.is_stopped() {
                inner.finish(&query);
            }
        }
    }

    fn next(&self, lane: Lane) -> Option<Arc<Continuous>> {
        let mut state = self.state.lock();
        loop {
            if state.is_stopped {
                return None;
            }
            match state.lane(lane).queue.pop_front() {
                Some(query) => return Some(query),
                None => self.ready.wait(&mut state),
            }
        }
    }

    fn is_idle(&self, lane: Lane) -> bool {
        self.state.lock().lane(lane).queue.is_empty()
    }

    fn is_stopped(&self) -> bool {
        self.state.lock().is_stopped
    }

    /// Ends all threads, and waits until they have ended.
    pub(crate) fn stop(&self) {
        let threads = {
            let mut state = self.state.lock();
            state.is_stopped = true;
            let slow = std::mem::take(&mut state.slow.threads);
            state
                .brief
                .threads
                .drain(..)
                .chain(slow)
                .collect::<Vec<_>>()
        };
        {
            let turns = self.turns.lock();
            self.cancellation.cancel();
            turns.iter().for_each(|turn| turn.cancellation.cancel());
        }
        self.ready.notify_all();
        for thread in threads {
            // What it panicked with was printed.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_without_an_evaluation_does_not_say_that_a_query_is_not_slow() {
        let [brief, long] = [Duration::from_millis(1), TURN * 3];
        assert_eq!(Lane::Slow.finds_slow(true, 0, brief), None);
        assert_eq!(Lane::Slow.finds_slow(true, 1, brief), Some(false));
        assert_eq!(Lane::Slow.finds_slow(false, 1, long), Some(true));
        assert_eq!(Lane::Slow.finds_slow(true, 4, long), Some(false));
        assert_eq!(Lane::Brief.finds_slow(true, 0, brief), None);
        assert_eq!(Lane::Brief.finds_slow(false, 0, long), Some(true));
        assert_eq!(Lane::Brief.finds_slow(false, 2, long), Some(false));
    }
}
