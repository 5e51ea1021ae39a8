//! Which queries are looked at once a stream is stable up to a time?
//!
//! A query that is not due waits for one of its streams, the least stable one, to be stable up to the instant
//! before which the query cannot be due. It is in the queue of that stream alone. Whoever makes the stream
//! stable up to there looks at the query, which then is due or waits for another stream. So what completes no
//! instant looks at no query, however many read the stream.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::continuous::Continuous;
use super::readers::looks;
use super::stream::Stream;

/// The queries of a stream that wait for it.
#[derive(Default)]
pub(super) struct Due {
    /// By the time up to which the stream is to be stable, and by their numbers.
    waiting: BTreeMap<(i64, u64), Arc<Continuous>>,
    /// Those to be looked at with whatever comes next: of some it is not known what they wait for, others could
    /// not do what was due.
    again: BTreeMap<u64, Arc<Continuous>>,
}

/// Where a query waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Waiting {
    /// In no queue by time: somebody looks at it, or will.
    #[default]
    Nowhere,
    /// For the stream of a window, by its number, to be stable up to a time.
    For(usize, i64),
    /// It is not registered any more.
    Gone,
}

/// What lets a query be due.
enum Awaited {
    /// A stream, by the number of a window, that is stable up to a time.
    Stable(usize, i64),
    /// It is not known yet.
    Anything,
    /// Nothing.
    Nothing,
}

impl Due {
    /// Takes those to be looked at when the stream is stable up to a time, in the order in which they were
    /// registered.
    pub(super) fn take(&mut self, stable_ms: Option<i64>) -> Vec<Arc<Continuous>> {
        let mut taken: Vec<Arc<Continuous>> = Vec::new();
        while let Some(stable_ms) = stable_ms
            && let Some(first) = self.waiting.first_entry()
            && first.key().0 <= stable_ms
        {
            taken.push(first.remove());
        }
        taken.extend(std::mem::take(&mut self.again).into_values());
        taken.iter().for_each(|_| looks::note());
        taken.sort_by_key(|query| query.number);
        taken.dedup_by_key(|query| query.number);
        taken
    }

    fn remove(&mut self, query: &Continuous) {
        self.again.remove(&query.number);
    }
}

impl Stream {
    /// Takes the queries to be looked at now.
    pub(super) fn take_due(&self) -> Vec<Arc<Continuous>> {
        let mut due = self.due.lock();
        // Whoever puts a query into the queue looks at this after that.
        due.take(self.stable_ms())
    }
}

impl Continuous {
    /// Has it be looked at with whatever comes next of its streams.
    pub(super) fn look_again(self: &Arc<Self>) {
        let waiting = self.waiting.lock();
        if *waiting != Waiting::Gone {
            self.add_to_again();
        }
    }

    fn add_to_again(self: &Arc<Self>) {
        for stream in &self.streams {
            let mut due = stream.due.lock();
            due.again.insert(self.number, Arc::clone(self));
        }
    }

    /// Has it wait for its streams, from when it is registered.
    pub(super) fn enter_queues(self: &Arc<Self>) {
        let mut waiting = self.waiting.lock();
        self.leave_queue(&mut waiting);
        *waiting = Waiting::Nowhere;
        self.add_to_again();
    }

    /// Has it wait for nothing any more.
    pub(super) fn leave_queues(&self) {
        let mut waiting = self.waiting.lock();
        self.leave_queue(&mut waiting);
        for stream in &self.streams {
            stream.due.lock().remove(self);
        }
        *waiting = Waiting::Gone;
    }

    fn leave_queue(&self, waiting: &mut Waiting) {
        if let Waiting::For(window, instant_ms) = *waiting {
            let mut due = self.streams[window].due.lock();
            due.waiting.remove(&(instant_ms, self.number));
            *waiting = Waiting::Nowhere;
        }
    }

    /// Has it wait until it may be due, by whoever has looked at it; false if it may be now.
    pub(super) fn wait(self: &Arc<Self>) -> bool {
        let mut waiting = self.waiting.lock();
        if *waiting == Waiting::Gone {
            return true;
        }
        self.leave_queue(&mut waiting);
        let (window, instant_ms) = match self.awaited() {
            Awaited::Stable(window, instant_ms) => (window, instant_ms),
            Awaited::Anything => {
                self.add_to_again();
                return true;
            }
            Awaited::Nothing => return true,
        };
        let stream = &self.streams[window];
        let place = (instant_ms, self.number);
        stream.due.lock().waiting.insert(place, Arc::clone(self));
        *waiting = Waiting::For(window, instant_ms);
        // Whoever made it stable before the query was there did not see it.
        match stream.stable_ms() {
            Some(stable_ms) if instant_ms <= stable_ms => {
                self.leave_queue(&mut waiting);
                false
            }
            _ => true,
        }
    }

    /// What it waits for. It is due at an instant when all its streams are stable up to there, so it is not
    /// before the least stable one is.
    fn awaited(&self) -> Awaited {
        if self.begins.get().is_none() {
            return Awaited::Anything;
        }
        let stable = self.streams.iter().map(|stream| stream.stable_ms());
        // A stream before its first batch comes first.
        let Some((window, least_ms)) = (0..).zip(stable).min_by_key(|(_, stable)| *stable) else {
            return Awaited::Nothing;
        };
        let Some(least_ms) = least_ms else {
            return Awaited::Stable(window, i64::MIN);
        };
        let instant_ms = if self.schedule.follows_tuples() {
            // Its instants come with the tuples before these.
            least_ms.checked_add(1)
        } else {
            let last_ms = match self.last_ms.load(Relaxed) {
                // Tuples that are yet to come are no earlier than that.
                i64::MIN => self
                    .begin_ms()
                    .map_or(least_ms, |begin| begin.min(least_ms)),
                last_ms => last_ms,
            };
            self.schedule.next(last_ms)
        };
        instant_ms.map_or(Awaited::Nothing, |instant_ms| {
            Awaited::Stable(window, instant_ms)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jindou_stream::StreamDefinition;

    use super::looks;
    use crate::{Database, NextResult, TupleFormat};

    fn database(streams: &[&str]) -> Database {
        let database = Database::new();
        for name in streams {
            let definition = StreamDefinition::new(format!("http://e/{name}"));
            database.create_stream(name, definition).expect("it is new");
        }
        database
    }

    fn register(database: &Database, name: &str, windows: &str) {
        let text = format!("ASK {windows} WHERE {{ <http://e/{name}> ?p ?o }}");
        let registered = database.register(name, &text);
        assert!(registered.expect("it is sound"));
    }

    fn push(database: &Database, stream: &str, time_ms: i64) {
        let line = format!("{time_ms}\t<http://e/s> <http://e/p> <http://e/o{time_ms}> .\n");
        let pushed = database.push(stream, TupleFormat::Lines, None, line.into_bytes());
        pushed.expect("it is sound");
    }

    fn instants(database: &Database, name: &str) -> Vec<i64> {
        let mut reader = database.results_of(name, Some(0)).expect("it is there");
        let mut instants = Vec::new();
        while let NextResult::Result(result, _) = reader.next_within(Duration::ZERO) {
            instants.push(result.instant_ms);
        }
        instants
    }

    #[test]
    fn what_completes_no_instant_looks_at_no_query() {
        let database = database(&["s"]);
        let window =
            |seconds: u32| format!("FROM STREAM <http://e/s> [RANGE {seconds}s STEP {seconds}s]");
        for number in 0..300 {
            register(&database, &format!("q{number}"), &window(100));
        }
        register(&database, "often", &window(1));
        push(&database, "s", 10);
        push(&database, "s", 110);
        let looked = |act: &dyn Fn()| {
            looks::take();
            act();
            looks::take()
        };
        // Neither a tuple for a batch that is open, nor one that completes a batch.
        assert_eq!(looked(&|| push(&database, "s", 120)), 0);
        assert_eq!(looked(&|| push(&database, "s", 310)), 0);
        assert_eq!(
            looked(&|| database.heartbeat("s", 420).expect("it is sound")),
            0
        );
        let one = looked(&|| push(&database, "s", 1_010));
        assert_eq!(one, 1);
        assert_eq!(instants(&database, "often"), [1_000]);
        let all = looked(&|| push(&database, "s", 100_010));
        assert!(all > 300, "{all}");
        for name in ["q0", "q299"] {
            assert_eq!(instants(&database, name), [100_000]);
        }
    }

    #[test]
    fn a_query_waits_for_the_stream_that_is_behind() {
        let database = database(&["a", "b"]);
        let windows = "FROM STREAM <http://e/a> [RANGE 1s] FROM STREAM <http://e/b> [RANGE 2s]";
        register(&database, "q", windows);
        push(&database, "a", 10);
        for time_ms in [1_010, 2_010, 3_010] {
            push(&database, "a", time_ms);
        }
        assert!(instants(&database, "q").is_empty());
        push(&database, "b", 500);
        looks::take();
        for time_ms in [4_010, 5_010] {
            push(&database, "a", time_ms);
        }
        assert_eq!(looks::take(), 0);
        push(&database, "b", 2_100);
        assert_eq!(instants(&database, "q"), [1_000, 2_000]);
        push(&database, "b", 9_000);
        assert_eq!(
            instants(&database, "q"),
            [1_000, 2_000, 3_000, 4_000, 5_000]
        );
        database.heartbeat("a", 7_000).expect("it is sound");
        assert_eq!(instants(&database, "q").last(), Some(&7_000));
    }

    #[test]
    fn queries_that_are_dropped_are_in_no_queue() {
        let database = database(&["a", "b"]);
        for name in ["waits", "new"] {
            let windows = "FROM STREAM <http://e/a> [RANGE 1s] FROM STREAM <http://e/b> [RANGE 2s]";
            register(&database, name, windows);
            if name == "waits" {
                push(&database, "a", 10);
                push(&database, "b", 1_010);
            }
        }
        for name in ["waits", "new"] {
            assert!(database.unregister(name).expect("it is there"));
        }
        for name in ["a", "b"] {
            let stream = database.known_stream(name).expect("it is there");
            let due = stream.due.lock();
            assert!(due.waiting.is_empty() && due.again.is_empty());
        }
    }
}
