//! Which continuous queries read a stream, or hear of transactions?
//!
//! There may be a hundred thousand of them, and each may go alone: to add or drop one must not ask the others.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::continuous::Continuous;

/// Queries in the order of their numbers, in which they were registered.
#[derive(Default)]
pub(super) struct Readers {
    by_number: BTreeMap<u64, Arc<Continuous>>,
    /// How many of them have windows of each kind.
    with_times: usize,
    with_numbers: usize,
}

/// Of which kinds are the windows that a query has of a stream?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kinds {
    /// It has windows over time.
    pub(super) times: bool,
    /// It has windows of a number of tuples.
    pub(super) numbers: bool,
}

impl Kinds {
    /// Of a query without windows.
    pub(super) const NONE: Self = Self {
        times: false,
        numbers: false,
    };
}

impl Readers {
    /// Adds a query that has windows of these kinds; nothing if it is there.
    pub(super) fn add(&mut self, query: &Arc<Continuous>, kinds: Kinds) {
        let known = self.by_number.insert(query.number, Arc::clone(query));
        if known.is_none() {
            self.with_times += usize::from(kinds.times);
            self.with_numbers += usize::from(kinds.numbers);
        }
    }

    /// Takes a query away that was added with these kinds; false if it is not there.
    pub(super) fn remove(&mut self, query: &Continuous, kinds: Kinds) -> bool {
        let is_known = self.by_number.remove(&query.number).is_some();
        if is_known {
            self.with_times -= usize::from(kinds.times);
            self.with_numbers -= usize::from(kinds.numbers);
        }
        is_known
    }

    /// Of which kinds their windows are.
    pub(super) fn kinds(&self) -> Kinds {
        Kinds {
            times: self.with_times > 0,
            numbers: self.with_numbers > 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_number.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_number.is_empty()
    }

    /// The one that was registered first.
    pub(super) fn first(&self) -> Option<&Arc<Continuous>> {
        self.by_number.first_key_value().map(|(_, query)| query)
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Continuous>> {
        self.by_number.values().inspect(|_| looks::note())
    }
}

/// How many readers has a thread looked at, one after the other? Tests count that.
#[cfg(test)]
pub(super) mod looks {
    use std::cell::Cell;

    thread_local! {
        static COUNT: Cell<u64> = const { Cell::new(0) };
    }

    pub(in super::super) fn note() {
        COUNT.set(COUNT.get() + 1);
    }

    /// So many since the last call.
    pub(in super::super) fn take() -> u64 {
        COUNT.take()
    }
}

#[cfg(not(test))]
pub(super) mod looks {
    #[inline]
    pub(in super::super) fn note() {}
}

#[cfg(test)]
mod tests {
    use jindou_stream::StreamDefinition;

    use super::looks;
    use crate::{Database, TupleFormat};

    /// Readers and streams that were looked at while so many queries, of two streams, were dropped.
    fn looks_of_dropping(queries: usize) -> u64 {
        let database = Database::new();
        for name in ["s", "t"] {
            let definition = StreamDefinition::new(format!("http://e/{name}"));
            database.create_stream(name, definition).expect("it is new");
        }
        for number in 0..queries {
            let text = match number % 3 {
                0 => format!("ASK {{ <http://e/{number}> ?p ?o }}"),
                window => format!(
                    "SELECT ?o FROM STREAM <http://e/s> [RANGE {window}s STEP 1s] \
                     FROM STREAM <http://e/t> [TRIPLES 5] WHERE {{ <http://e/{number}> ?p ?o }}"
                ),
            };
            let registered = database.register(&format!("q{number}"), &text);
            assert!(registered.expect("it is sound"));
        }
        for name in ["s", "t"] {
            let line = b"1\t<http://e/1> <http://e/p> <http://e/o> .\n".to_vec();
            let pushed = database.push(name, TupleFormat::Lines, None, line);
            pushed.expect("it is sound");
        }
        looks::take();
        for number in 0..queries {
            let dropped = database.unregister(&format!("q{number}"));
            assert!(dropped.expect("nobody reads it"));
        }
        let looked = looks::take();
        assert!(database.drop_stream("s").expect("nobody reads it"));
        looked
    }

    #[test]
    fn to_drop_a_query_asks_no_other_one() {
        let [few, many] = [60, 600].map(looks_of_dropping);
        assert!(many <= 10 * few + 10, "{few} looks for 60, {many} for 600");
        // The counter counts: all are asked when the first batch comes.
        let database = Database::new();
        let definition = StreamDefinition::new("http://e/s");
        database.create_stream("s", definition).expect("it is new");
        let text = "ASK FROM STREAM <http://e/s> [RANGE 1s] WHERE { ?x ?p ?y }";
        for number in 0..20 {
            let registered = database.register(&format!("q{number}"), text);
            registered.expect("it is sound");
        }
        looks::take();
        database.heartbeat("s", 100).expect("it is sound");
        assert!(looks::take() >= 20);
    }
}
