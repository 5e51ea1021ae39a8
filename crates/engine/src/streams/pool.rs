//! Threads for queries that take long: those who push tuples do not wait for them.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::Duration;

use jindou_exec::CancellationToken;
use parking_lot::{Condvar, Mutex};

use super::continuous::Continuous;
use super::evaluate::Turn;
use crate::database::Inner;

/// How long a query is evaluated before others have their turn.
const TURN: Duration = Duration::from_millis(50);

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
    /// Each of them is nobody else's until its turn is over.
    queue: VecDeque<Arc<Continuous>>,
    threads: Vec<JoinHandle<()>>,
    is_stopped: bool,
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

    /// Has a query evaluated by one of so many threads; false if there is none, and none can be
    /// started.
    pub(super) fn submit(
        self: &Arc<Self>,
        inner: &Arc<Inner>,
        most_threads: usize,
        query: &Arc<Continuous>,
    ) -> bool {
        let mut state = self.state.lock();
        if state.is_stopped {
            return false;
        }
        if state.threads.len() < most_threads {
            let (pool, inner) = (Arc::clone(self), Arc::downgrade(inner));
            let name = format!("jindou-stream-{}", state.threads.len());
            match thread::Builder::new()
                .name(name)
                .spawn(move || pool.work(&inner))
            {
                Ok(thread) => state.threads.push(thread),
                Err(error) => tracing::warn!("no thread for continuous queries: {error}"),
            }
        }
        if state.threads.is_empty() {
            return false;
        }
        state.queue.push_back(Arc::clone(query));
        drop(state);
        self.ready.notify_one();
        true
    }

    fn work(&self, inner: &Weak<Inner>) {
        while let Some(query) = self.next() {
            let Some(inner) = inner.upgrade() else {
                return;
            };
            let turn = Turn {
                most: Some(TURN),
                limit: None,
            };
            self.begin_turn(&query);
            let is_done = inner.take_turn_of(&query, turn);
            self.end_turn();
            inner.let_results_leave(&query);
            // Whoever pushed tuples did not wait for this one.
            query.streams.iter().for_each(|stream| stream.forget_read());
            inner.limit_journal();
            if !is_done {
                self.state.lock().queue.push_back(query);
            }
        }
    }

    fn next(&self) -> Option<Arc<Continuous>> {
        let mut state = self.state.lock();
        loop {
            if state.is_stopped {
                return None;
            }
            match state.queue.pop_front() {
                Some(query) => return Some(query),
                None => self.ready.wait(&mut state),
            }
        }
    }

    /// Ends all threads, and waits until they have ended.
    pub(crate) fn stop(&self) {
        let threads = {
            let mut state = self.state.lock();
            state.is_stopped = true;
            std::mem::take(&mut state.threads)
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
