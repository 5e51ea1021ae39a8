//! The results of a continuous query: which are kept for whom, and who is waiting for the next one?

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rustc_hash::FxHashMap;

use super::answer::Answer;
use super::continuous::Continuous;
use super::held::Held;
use super::rows::Rows;

/// Results that are kept for those who come later, and bytes of these.
const MOST_RESULTS: usize = 1_000;
const MOST_BYTES: usize = 16 << 20;
/// Those that are kept for readers that wait for each, and bytes of these.
const MOST_WAITED_FOR: usize = 100_000;
const MOST_BYTES_WAITED_FOR: usize = 256 << 20;

/// A result of a continuous query.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContinuousResult {
    /// The instant; of a query without windows, the time of the clock.
    pub instant_ms: i64,
    /// Counts the results of the query, from 1.
    pub sequence: u64,
    /// What each window held.
    pub windows: Arc<[ResultWindow]>,
    /// The number of the snapshot of the stored graph.
    pub snapshot: u64,
    /// What was found, or why nothing could be. Of a query without windows, what a transaction added,
    /// unless its text says otherwise.
    pub answer: Result<Answer, String>,
    /// Of a query without windows, the rows that the transaction removed.
    pub removed: Option<Rows>,
    /// Its bytes are counted as long as somebody has it.
    pub(super) held: Option<Arc<Held>>,
}

/// A window of a query, and what it held at an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResultWindow {
    /// Its own name, or else that of its stream.
    pub name: Arc<str>,
    /// What it held.
    pub held: HeldTuples,
}

/// The tuples that a window held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldTuples {
    /// None came before this time.
    pub from_ms: i64,
    /// All came before this time.
    pub until_ms: i64,
    /// Of a window of a number of tuples, the numbers of the first and the last one in their stream, if
    /// it held any.
    pub numbers: Option<(u64, u64)>,
}

impl ContinuousResult {
    pub(super) fn bytes(&self) -> usize {
        let rows = self.answer.as_ref().ok().and_then(Answer::rows);
        let rows = rows.into_iter().chain(&self.removed);
        size_of::<Self>() + rows.map(Rows::bytes).sum::<usize>()
    }
}

/// A reader of a continuous query's results.
///
/// A thread waits with [`next_within`](Self::next_within), a task with [`poll_next`](Self::poll_next).
pub struct ContinuousResults {
    pub(super) query: Arc<Continuous>,
    pub(super) after: u64,
    /// Its number among the readers of the query.
    pub(super) reader: u64,
    /// Results are kept for it.
    pub(super) waits: bool,
}

impl ContinuousResults {
    /// The next result, waited for as long as said.
    pub fn next_within(&mut self, wait: Duration) -> NextResult {
        let next = self.query.log.next(self.after, wait);
        self.pass(&next);
        next
    }

    /// The next result; never [`NextResult::None`]. A task that finds none is woken when there is one.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<NextResult> {
        let next = self.query.log.poll(self.after, self.reader, context);
        if let Poll::Ready(next) = &next {
            self.pass(next);
        }
        next
    }

    /// Has results kept for this reader until it has had them, as far as that goes: up to 100,000, and up to
    /// 256 MiB, of the query, and as long as all results of all queries take no more memory than they may.
    /// Queries do not wait for it: where that does not do, it misses the oldest all the same.
    pub fn wait_for_each(&mut self) {
        self.waits = true;
        self.query.log.keep_for(self.reader, self.after);
    }

    fn pass(&mut self, next: &NextResult) {
        if let NextResult::Result(result, _) = next {
            self.after = result.sequence;
            if self.waits {
                self.query.log.keep_for(self.reader, self.after);
            }
        }
    }
}

impl Drop for ContinuousResults {
    fn drop(&mut self) {
        self.query.log.forget_reader(self.reader);
    }
}

/// The last results of a query, for any number of readers at their own pace.
#[derive(Default)]
pub(super) struct ResultLog {
    results: Mutex<Kept>,
    came: Condvar,
    next_reader: AtomicU64,
}

#[derive(Default)]
struct Kept {
    results: VecDeque<Arc<ContinuousResult>>,
    bytes: usize,
    /// The number of the last result, kept or not.
    last: u64,
    is_over: bool,
    /// Tasks that wait for the next result, by the numbers of their readers.
    waiting: FxHashMap<u64, Waker>,
    /// Readers for which all results after a number are kept.
    wanted: FxHashMap<u64, u64>,
}

/// What a reader of results gets next.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NextResult {
    /// The result, and how many before it the reader was too slow for.
    Result(Arc<ContinuousResult>, u64),
    /// None came in time.
    None,
    /// The query is gone: there will be no more.
    Over,
}

impl ResultLog {
    pub(super) fn push(&self, result: Arc<ContinuousResult>) {
        let mut kept = self.results.lock();
        kept.bytes += result.bytes();
        kept.last = result.sequence;
        kept.results.push_back(result);
        kept.trim();
        let waiting = std::mem::take(&mut kept.waiting);
        drop(kept);
        self.wake(waiting);
    }

    /// Bytes of the results that are kept.
    pub(super) fn bytes(&self) -> usize {
        self.results.lock().bytes
    }

    /// Forgets the oldest result; false if there is none.
    pub(super) fn drop_oldest(&self) -> bool {
        let mut kept = self.results.lock();
        let gone = kept.results.pop_front();
        kept.bytes -= gone.as_ref().map_or(0, |gone| gone.bytes());
        gone.is_some()
    }

    fn wake(&self, waiting: FxHashMap<u64, Waker>) {
        self.came.notify_all();
        waiting.into_values().for_each(Waker::wake);
    }

    pub(super) fn end(&self) {
        let mut kept = self.results.lock();
        kept.is_over = true;
        let waiting = std::mem::take(&mut kept.waiting);
        drop(kept);
        self.wake(waiting);
    }

    /// A number that no other reader has.
    pub(super) fn new_reader(&self) -> u64 {
        self.next_reader.fetch_add(1, Relaxed)
    }

    /// Nobody waits as this reader any more.
    pub(super) fn forget_reader(&self, reader: u64) {
        let mut kept = self.results.lock();
        kept.waiting.remove(&reader);
        if kept.wanted.remove(&reader).is_some() {
            kept.trim();
        }
    }

    /// Keeps all results after a number for a reader.
    fn keep_for(&self, reader: u64, after: u64) {
        let mut kept = self.results.lock();
        kept.wanted.insert(reader, after);
        kept.trim();
    }

    /// The number of the last result; 0 before the first.
    pub(super) fn last(&self) -> u64 {
        self.results.lock().last
    }

    /// All that are kept, the oldest first.
    pub(super) fn all(&self) -> Vec<Arc<ContinuousResult>> {
        self.results.lock().results.iter().cloned().collect()
    }

    /// The first result that is kept after a number, waited for as long as said.
    pub(super) fn next(&self, after: u64, wait: Duration) -> NextResult {
        let until = Instant::now() + wait;
        let mut kept = self.results.lock();
        loop {
            match kept.next(after) {
                NextResult::None if !wait.is_zero() => {}
                next => return next,
            }
            if self.came.wait_until(&mut kept, until).timed_out() {
                return NextResult::None;
            }
        }
    }

    /// The first result that is kept after a number; a task that finds none is woken when one comes.
    pub(super) fn poll(
        &self,
        after: u64,
        reader: u64,
        context: &mut Context<'_>,
    ) -> Poll<NextResult> {
        let mut kept = self.results.lock();
        match kept.next(after) {
            NextResult::None => {
                kept.waiting.insert(reader, context.waker().clone());
                Poll::Pending
            }
            next => Poll::Ready(next),
        }
    }
}

impl Kept {
    /// Forgets the oldest results, as many as are too many.
    fn trim(&mut self) {
        while let Some(oldest) = self.results.front() {
            let (results, bytes) = (self.results.len(), self.bytes);
            let is_over = |most, most_bytes| results > most || bytes > most_bytes && results > 1;
            let is_wanted = || self.wanted.values().any(|after| *after < oldest.sequence);
            if !is_over(MOST_RESULTS, MOST_BYTES)
                || !is_over(MOST_WAITED_FOR, MOST_BYTES_WAITED_FOR) && is_wanted()
            {
                return;
            }
            self.bytes -= oldest.bytes();
            self.results.pop_front();
        }
    }

    fn next(&self, after: u64) -> NextResult {
        let first = self.results.front().map_or(0, |result| result.sequence);
        let place = (after + 1).saturating_sub(first) as usize;
        match self.results.get(place).filter(|_| first > 0) {
            Some(result) => {
                let missed = result.sequence - after - 1;
                NextResult::Result(Arc::clone(result), missed)
            }
            None if self.is_over => NextResult::Over,
            None => NextResult::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(sequence: u64) -> Arc<ContinuousResult> {
        Arc::new(ContinuousResult {
            instant_ms: 0,
            sequence,
            windows: Arc::default(),
            snapshot: 0,
            answer: Ok(Answer::Boolean(true)),
            removed: None,
            held: None,
        })
    }

    fn next(log: &ResultLog, after: u64) -> (u64, u64) {
        match log.next(after, Duration::ZERO) {
            NextResult::Result(result, missed) => (result.sequence, missed),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn results_are_kept_for_who_waits_for_each_and_bounded() {
        let log = ResultLog::default();
        let last = MOST_RESULTS as u64 + 500;
        log.keep_for(1, 0);
        (1..=last).for_each(|sequence| log.push(result(sequence)));
        assert_eq!(next(&log, 0), (1, 0));
        log.keep_for(1, 400);
        // What it has had goes; what others have not had is nobody's concern.
        assert_eq!(next(&log, 0), (401, 400));
        log.keep_for(2, 450);
        log.forget_reader(1);
        assert_eq!(next(&log, 0), (451, 450));
        log.forget_reader(2);
        assert_eq!(next(&log, 0), (501, 500));
        log.keep_for(3, last);
        let end = last + MOST_WAITED_FOR as u64 + 7;
        (last + 1..=end).for_each(|sequence| log.push(result(sequence)));
        assert_eq!(next(&log, last), (last + 8, 7));
        log.forget_reader(3);
        assert_eq!(log.all().len(), MOST_RESULTS);
        let bytes: usize = log.all().iter().map(|result| result.bytes()).sum();
        assert_eq!(log.bytes(), bytes);
    }
}
