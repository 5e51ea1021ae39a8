//! A query without windows: of which transactions does it hear, and what does it tell of each?
//!
//! Whoever appends a transaction notes the snapshots before and after it, in their order, while it
//! holds the writer's lock. Once readers may see it, it is offered to each subscription, which takes it
//! if it changed something that the query reads. Each that was taken is evaluated on exactly its own
//! snapshot, after those before it, as other continuous queries are at their instants; only a
//! subscription that falls far behind has several of them as one.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

use jindou_model::SnapshotNumber;
use jindou_plan::{ContinuousQuery, Output, StoredRead};
use jindou_store::{LayerKind, Snapshot};
use parking_lot::Mutex;

use super::answer::Answer;
use super::continuous::{Continuous, State};
use super::evaluate::LONG;
use super::held::{Held, bytes_of};
use super::readers::{Kinds, Readers};
use super::result_log::ContinuousResult;
use super::rows::Rows;
use crate::EngineError;
use crate::database::Inner;
use crate::graph::StoredGraph;

/// Transactions that a subscription is behind at most; with one more, all of them become one difference.
const MOST_WAITING: usize = 256;

/// A transaction, as subscriptions see it.
struct Change {
    before: Snapshot,
    after: Arc<StoredGraph>,
}

/// The transactions of which subscriptions are yet to hear.
#[derive(Default)]
pub(crate) struct Published {
    watchers: AtomicUsize,
    /// In the order of the log, shown to readers or not yet.
    changes: Mutex<VecDeque<Change>>,
    /// Held while changes are offered, one after the other.
    subscriptions: Mutex<Readers>,
}

impl Published {
    /// Notes a transaction. The writer's lock is held.
    pub(crate) fn note(&self, before: &Snapshot, after: &Snapshot) {
        if self.watchers.load(SeqCst) == 0 {
            return;
        }
        self.changes.lock().push_back(Change {
            before: before.clone(),
            after: Arc::new(StoredGraph {
                snapshot: after.clone(),
            }),
        });
    }

    /// The next change that readers may see.
    fn next(&self, shown: SnapshotNumber) -> Option<Change> {
        let mut changes = self.changes.lock();
        let first = changes.front()?;
        match first.after.snapshot.number() <= shown {
            true => changes.pop_front(),
            false => None,
        }
    }

    /// Ends a subscription.
    pub(super) fn remove(&self, query: &Continuous) {
        if self.subscriptions.lock().remove(query, Kinds::NONE) {
            self.watchers.fetch_sub(1, SeqCst);
        }
    }
}

impl Change {
    /// True if it may have changed something of what is read.
    fn touches(&self, reads: &[StoredRead]) -> bool {
        let (before, after) = (&self.before, &self.after.snapshot);
        if !after.is_of_generation_of(before) || before.base().merges() != after.base().merges() {
            return true;
        }
        let has_changed = |read: &StoredRead| {
            let Some(iri) = &read.predicate else {
                return true;
            };
            // What no quad has is no predicate.
            let Some(predicate) = after.find_predicate(iri.as_str()) else {
                return false;
            };
            let layers = [
                (read.default, LayerKind::Default),
                (read.named, LayerKind::Named),
            ];
            let mut layers = layers.into_iter().filter(|(is_read, _)| *is_read);
            layers.any(|(_, layer)| {
                before.version_of(layer, predicate) != after.version_of(layer, predicate)
            })
        };
        reads.iter().any(has_changed)
    }
}

/// What a query without windows has beside others.
pub(super) struct Subscription {
    reads: Vec<StoredRead>,
    waiting: Mutex<Waiting>,
}

/// Snapshots on which a subscription is to be evaluated.
#[derive(Default)]
struct Waiting {
    /// It began with this one: what came before is in its first answer.
    begin: Option<SnapshotNumber>,
    /// The last of several that become one difference, before all others.
    gap: Option<Next>,
    graphs: VecDeque<Arc<StoredGraph>>,
}

/// A snapshot that is to be evaluated.
struct Next {
    graph: Arc<StoredGraph>,
    /// So many transactions were skipped on the way to it, as the query was too slow.
    skipped: u64,
}

impl Waiting {
    fn take(&mut self) -> Option<Next> {
        self.gap.take().or_else(|| {
            let graph = self.graphs.pop_front()?;
            Some(Next { graph, skipped: 0 })
        })
    }

    /// Puts back what was taken.
    fn put_back(&mut self, next: Next) {
        match &mut self.gap {
            Some(gap) => gap.skipped += next.skipped.max(1),
            None if next.skipped == 0 => self.graphs.push_front(next.graph),
            None => self.gap = Some(next),
        }
    }

    /// Makes all that wait one difference; `is_slow` if that is the query's own fault.
    fn fold(&mut self, is_slow: bool) {
        let Some(graph) = self.graphs.pop_back() else {
            return;
        };
        let before = self.gap.take().map_or(0, |gap| gap.skipped);
        let skipped = match is_slow {
            true => before + self.graphs.len() as u64 + 1,
            false => before,
        };
        self.graphs.clear();
        self.gap = Some(Next { graph, skipped });
    }
}

impl Subscription {
    /// # Errors
    /// [`EngineError::Unsupported`] by name.
    pub(super) fn new(query: &ContinuousQuery) -> Result<Self, EngineError> {
        let refused = match query {
            query if query.every_ms.is_some() => "COMPUTED EVERY of a query without windows",
            query if query.publishes => "REGISTER STREAM of a query without windows",
            query if query.calls_services() => "SERVICE in a query without windows",
            query => {
                return Ok(Self {
                    reads: query.stored_reads(),
                    waiting: Mutex::default(),
                });
            }
        };
        Err(EngineError::Unsupported {
            feature: refused.to_owned(),
            place: None,
        })
    }

    fn offer(&self, change: &Change, is_paused: bool) {
        let is_new = {
            let begin = self.waiting.lock().begin;
            begin.is_some_and(|begin| change.after.snapshot.number() > begin)
        };
        if !is_new || !change.touches(&self.reads) {
            return;
        }
        let mut waiting = self.waiting.lock();
        waiting.graphs.push_back(Arc::clone(&change.after));
        if is_paused || waiting.graphs.len() > MOST_WAITING {
            waiting.fold(!is_paused);
        }
    }

    fn is_settled(&self) -> bool {
        let waiting = self.waiting.lock();
        waiting.gap.is_none() && waiting.graphs.is_empty()
    }
}

impl fmt::Display for Subscription {
    /// What it reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.reads.iter().any(|read| read.predicate.is_none()) {
            return f.write_str("any quad");
        }
        f.write_str("quads with one of these predicates:")?;
        let predicates = self.reads.iter().filter_map(|read| read.predicate.as_ref());
        predicates
            .into_iter()
            .try_for_each(|iri| write!(f, " {iri}"))
    }
}

impl Inner {
    /// Has a subscription begin with all that its query finds now.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`] if the log failed.
    pub(super) fn begin_subscription(
        self: &Arc<Self>,
        query: &Arc<Continuous>,
    ) -> Result<(), EngineError> {
        let Some(subscription) = &query.subscription else {
            return Ok(());
        };
        {
            let mut writer = self.writer.lock();
            // Its first answer is to last.
            if let Some((log, ticket)) = writer.last.clone()
                && let Err(error) = log.sync(ticket)
            {
                return Err(writer.refused(error));
            }
            let graph = Arc::new(StoredGraph {
                snapshot: writer.latest.clone(),
            });
            let mut waiting = subscription.waiting.lock();
            waiting.begin = Some(graph.snapshot.number());
            waiting.graphs.push_back(graph);
            let published = &self.streams.published;
            published.watchers.fetch_add(1, SeqCst);
            drop(waiting);
            published.subscriptions.lock().add(query, Kinds::NONE);
        }
        self.wake(query);
        Ok(())
    }

    /// Has subscriptions evaluated after all transactions that readers see now, by this thread or
    /// those for queries that take long.
    pub(crate) fn tell_subscriptions(self: &Arc<Self>) {
        let published = &self.streams.published;
        let due: Vec<Arc<Continuous>> = {
            let subscriptions = published.subscriptions.lock();
            let shown = self.graph.load().snapshot.number();
            while let Some(change) = published.next(shown) {
                let offered = subscriptions.iter();
                let offered =
                    offered.filter_map(|query| Some((query, query.subscription.as_ref()?)));
                offered.for_each(|(query, it)| it.offer(&change, query.is_paused()));
            }
            let is_due = |query: &&Arc<Continuous>| {
                (query.subscription.as_ref()).is_some_and(|it| !it.is_settled())
            };
            subscriptions.iter().filter(is_due).cloned().collect()
        };
        due.iter().for_each(|query| self.wake(query));
    }

    /// Evaluates a subscription on all snapshots that wait; false if it ended before, as its time was
    /// over.
    pub(super) fn evaluate_subscription(
        &self,
        (query, subscription): (&Continuous, &Subscription),
        limit: Option<Duration>,
        is_over: &dyn Fn() -> bool,
    ) -> bool {
        let mut state = query.state.lock();
        loop {
            if query.is_gone.load(Relaxed) {
                return true;
            }
            if query.is_paused() {
                subscription.waiting.lock().fold(false);
                return true;
            }
            let taken = subscription.waiting.lock().take();
            let Some(next) = taken else {
                return true;
            };
            let begun = Instant::now();
            let instant_ms = self.config.clock.now_ms();
            let at = (&next.graph, &[][..], instant_ms);
            let find = AssertUnwindSafe(|| self.find(query, &mut state, at, (limit, None)));
            // Whoever updates is not to end with a query of others.
            let found = catch_unwind(find).unwrap_or(Err(EngineError::Internal));
            if limit.is_some() && matches!(found, Err(EngineError::Timeout { .. })) {
                subscription.waiting.lock().put_back(next);
                query.is_long.store(true, Relaxed);
                return false;
            }
            let took = begun.elapsed();
            query.is_long.store(took >= LONG, Relaxed);
            query.pass(&mut state, instant_ms);
            self.tell(query, &mut state, &next, (instant_ms, took), found);
            if is_over() {
                return subscription.is_settled();
            }
        }
    }

    /// Gives readers what a transaction added and removed, if it did.
    fn tell(
        &self,
        query: &Continuous,
        state: &mut State,
        next: &Next,
        (instant_ms, took): (i64, Duration),
        found: Result<Answer, EngineError>,
    ) {
        if next.skipped > 0 {
            let message = format!(
                "{} transactions were skipped, as the query was too slow: the next result has what all \
                 of them changed",
                next.skipped
            );
            give(query, state, next, instant_ms, Err(message));
        }
        let answer = match found {
            Ok(answer) => answer,
            Err(error) => {
                query.note(None, took);
                return give(query, state, next, instant_ms, Err(error.to_string()));
            }
        };
        let given = difference(query.query.output, state.before.as_deref(), &answer);
        let count = |(answer, removed): &(Answer, Option<Rows>)| {
            answer.rows().map_or(1, Rows::len) + removed.as_ref().map_or(0, Rows::len)
        };
        query.note(Some(given.as_ref().map_or(0, count)), took);
        match self.hold_result(query, bytes_of(answer.rows())) {
            // The difference from what was told last is told once there is room.
            Err(message) => return give(query, state, next, instant_ms, Err(message)),
            Ok(remembered) => state.before_held = Some(remembered),
        }
        let Some((given, removed)) = given else {
            state.before = Some(Arc::new(answer));
            return;
        };
        match self.hold_result(query, bytes_of(given.rows().into_iter().chain(&removed))) {
            Err(message) => give(query, state, next, instant_ms, Err(message)),
            Ok(held) => {
                state.before = Some(Arc::new(answer));
                give(query, state, next, instant_ms, Ok((given, removed, held)));
            }
        }
    }
}

/// What readers get: an answer, what was removed, and the count of their bytes.
type Given = (Answer, Option<Rows>, Arc<Held>);

fn give(
    query: &Continuous,
    state: &mut State,
    next: &Next,
    instant_ms: i64,
    given: Result<Given, String>,
) {
    state.sequence += 1;
    let (answer, removed, held) = match given {
        Ok((answer, removed, held)) => (Ok(answer), removed, Some(held)),
        Err(message) => (Err(message), None, None),
    };
    query.log.push(Arc::new(ContinuousResult {
        instant_ms,
        sequence: state.sequence,
        windows: Arc::default(),
        snapshot: next.graph.snapshot.number().0,
        answer,
        removed,
        held,
    }));
}

/// What is told of an answer after the one before it: itself or a part of it, and the rows that are
/// gone; `None` if nothing is.
fn difference(
    output: Option<Output>,
    before: Option<&Answer>,
    now: &Answer,
) -> Option<(Answer, Option<Rows>)> {
    let Some(rows) = now.rows() else {
        return (before != Some(now)).then(|| (now.clone(), None));
    };
    let nothing = Rows::default();
    let old = before.and_then(Answer::rows).unwrap_or(&nothing);
    let (added, removed) = (rows.without(old), old.without(rows));
    let tells = match output {
        None | Some(Output::RStream) => !added.is_empty() || !removed.is_empty(),
        Some(Output::IStream) => !added.is_empty(),
        Some(Output::DStream) => !removed.is_empty(),
    };
    // The first one says what all the others go on from.
    if !tells && before.is_some() {
        return None;
    }
    Some(match output {
        None => (now.with_rows(added), Some(removed)),
        Some(Output::RStream) => (now.clone(), None),
        Some(Output::IStream) => (now.with_rows(added), None),
        Some(Output::DStream) => (now.with_rows(removed), None),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Database, NextResult};

    #[test]
    fn a_subscription_that_falls_far_behind_says_what_it_skips() {
        let database = Database::new();
        let text = "SELECT ?o { <http://e/s> <http://e/p> ?o }";
        database.register("q", text).expect("it is sound");
        let query = database.known_query("q").expect("it is there");
        // Somebody is at it who takes long.
        query.wakes.store(1, SeqCst);
        for number in 0..MOST_WAITING + 10 {
            let text = format!("INSERT DATA {{ <http://e/s> <http://e/p> {number} }}");
            database.update(&text).expect("it is sound");
        }
        query.wakes.store(0, SeqCst);
        database.inner().wake(&query);
        let mut results = database.results_of("q", Some(1)).expect("it is there");
        let mut next = || match results.next_within(Duration::ZERO) {
            NextResult::Result(result, 0) => Some(result.answer.clone()),
            _ => None,
        };
        let skipped = next().and_then(Result::err).expect("it says so");
        assert!(
            skipped.starts_with("257 transactions were skipped"),
            "{skipped}"
        );
        let rows = |answer: Result<Answer, String>| answer.ok()?.rows().map(Rows::len);
        assert_eq!(next().and_then(rows), Some(MOST_WAITING + 1));
        for _ in 0..9 {
            assert_eq!(next().and_then(rows), Some(1));
        }
        assert_eq!(next(), None);
    }

    #[test]
    fn what_is_given_up_waits_before_all_others() {
        let snapshot = |number| {
            let mut snapshot = Database::new().graph().snapshot.clone();
            snapshot.set_number(SnapshotNumber(number));
            Arc::new(StoredGraph { snapshot })
        };
        let number =
            |next: Option<Next>| next.map(|next| (next.graph.snapshot.number().0, next.skipped));
        let mut waiting = Waiting::default();
        waiting
            .graphs
            .extend([snapshot(1), snapshot(2), snapshot(3)]);
        let first = waiting.take().expect("there are three");
        waiting.put_back(first);
        let first = waiting.take().expect("there are three");
        assert_eq!(first.graph.snapshot.number().0, 1);
        waiting.fold(true);
        waiting.put_back(first);
        assert_eq!(number(waiting.take()), Some((3, 3)));
        assert_eq!(number(waiting.take()), None);
    }
}
