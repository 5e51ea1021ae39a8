//! Threads for queries that take long: those who push tuples do not wait for them.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
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

impl Pool {
    /// What ends the evaluations of the pool.
    pub(super) fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
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
            let is_done = inner.take_turn_of(&query, turn);
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
        self.cancellation.cancel();
        self.ready.notify_all();
        for thread in threads {
            // What it panicked with was printed.
            let _ = thread.join();
        }
    }
}
