//! In which order did a key get its versions, and which of them does each read show?
//!
//! A version is a value that was appended to a list or written to a register. A read shows a number of
//! versions, its length: the first ones of the order. What no read shows comes after what one shows.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{Anomaly, Key, Operation, OperationId, Value};

/// A value, and who wrote it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version {
    pub(crate) value: Value,
    /// `None` for garbage and for what a failed operation wrote: both are reported where they are found.
    pub(crate) writer: Option<OperationId>,
}

/// A read that shows the first versions of an order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) read: OperationId,
    /// How many versions it shows.
    pub(crate) length: usize,
}

/// The versions of one key.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) key: Key,
    /// Those that a read shows, in order.
    pub(crate) versions: Vec<Version>,
    /// Those of committed operations that no read shows, in unknown order, by their acknowledgement.
    pub(crate) unseen: Vec<(OperationId, Value)>,
    pub(crate) readings: Vec<Reading>,
    /// What reads show that are not the beginning of this order.
    pub(crate) strays: Vec<(OperationId, Vec<Value>)>,
}

/// Who wrote each value of a family of keys, and where.
pub(crate) type Writers = FxHashMap<Value, (OperationId, Key)>;

/// The orders of all lists, and what is wrong with the lists themselves.
pub(crate) struct Lists {
    pub(crate) orders: Vec<Order>,
    /// By operation, if it is known to have taken effect.
    pub(crate) committed: Vec<bool>,
}

/// Derives them. `committed` has the acknowledged operations, and gets those of which a value was read.
/// Costs the values of all lists that were read.
pub(crate) fn of_lists(
    history: &[Operation],
    writers: &Writers,
    mut committed: Vec<bool>,
    found: &mut impl FnMut(Anomaly),
) -> Lists {
    let mut keys: FxHashMap<Key, Vec<(OperationId, &[Value])>> = FxHashMap::default();
    for (id, operation) in numbered(history) {
        if committed[id.0 as usize] {
            for (key, list) in operation.lists() {
                for (_, value) in operation.appends().iter().filter(|(at, _)| *at == key) {
                    if list.contains(value) {
                        let value = *value;
                        found(Anomaly::FutureRead {
                            read: id,
                            key,
                            value,
                        });
                    }
                }
                keys.entry(key).or_default().push((id, list));
            }
        }
    }
    for (_, key) in writers.values() {
        keys.entry(*key).or_default();
    }
    let mut keys: Vec<_> = keys.into_iter().collect();
    keys.sort_unstable_by_key(|(key, _)| *key);
    let mut orders: Vec<Order> = keys
        .into_iter()
        .map(|(key, reads)| order(history, writers, key, &reads, found))
        .collect();
    let shown = |order: &Order| -> Vec<OperationId> {
        order.versions.iter().filter_map(|v| v.writer).collect()
    };
    for writer in orders.iter().flat_map(shown) {
        committed[writer.0 as usize] = true;
    }
    add_unseen(history, &committed, &mut orders);
    Lists { orders, committed }
}

/// Operations with their ids.
pub(crate) fn numbered(history: &[Operation]) -> impl Iterator<Item = (OperationId, &Operation)> {
    (0..).map(OperationId).zip(history)
}

fn order(
    history: &[Operation],
    writers: &Writers,
    key: Key,
    reads: &[(OperationId, &[Value])],
    found: &mut impl FnMut(Anomaly),
) -> Order {
    let longest = reads.iter().rev().max_by_key(|(_, list)| list.len());
    let (longest_read, longest) = longest.copied().unwrap_or((OperationId(0), &[]));
    let mut order = Order {
        key,
        versions: versions(history, writers, key, (longest_read, longest), found),
        unseen: Vec::new(),
        readings: Vec::with_capacity(reads.len()),
        strays: Vec::new(),
    };
    for (read, list) in reads {
        if longest.starts_with(list) {
            let length = list.len();
            order.readings.push(Reading {
                read: *read,
                length,
            });
            continue;
        }
        // The values themselves may be wrong, too.
        versions(history, writers, key, (*read, list), found);
        order.strays.push((*read, list.to_vec()));
        let same = list.iter().zip(longest).take_while(|(a, b)| a == b);
        found(Anomaly::IncompatibleOrder {
            reads: [*read, longest_read],
            key,
            position: same.count(),
        });
    }
    order
}

/// The versions that a list shows, each value once.
fn versions(
    history: &[Operation],
    writers: &Writers,
    key: Key,
    (read, list): (OperationId, &[Value]),
    found: &mut impl FnMut(Anomaly),
) -> Vec<Version> {
    let mut seen = FxHashSet::default();
    let version = |value: &Value| {
        let value = *value;
        if !seen.insert(value) {
            found(Anomaly::DuplicateValue { read, key, value });
        }
        let writer = writer_of(history, writers, (read, key, value), found);
        Version { value, writer }
    };
    list.iter().map(version).collect()
}

/// Who wrote a value that was read, unless that is an anomaly.
pub(crate) fn writer_of(
    history: &[Operation],
    writers: &Writers,
    (read, key, value): (OperationId, Key, Value),
    found: &mut impl FnMut(Anomaly),
) -> Option<OperationId> {
    match writers.get(&value) {
        Some((writer, at)) if *at == key => {
            let failed = history[writer.0 as usize].outcome == crate::Outcome::Failed;
            if failed {
                let writer = *writer;
                found(Anomaly::AbortedRead {
                    read,
                    writer,
                    key,
                    value,
                });
            }
            (!failed).then_some(*writer)
        }
        _ => {
            found(Anomaly::GarbageValue { read, key, value });
            None
        }
    }
}

fn add_unseen(history: &[Operation], committed: &[bool], orders: &mut [Order]) {
    let shown: FxHashSet<Value> = orders
        .iter()
        .flat_map(|order| order.versions.iter().map(|version| version.value))
        .collect();
    let place: FxHashMap<Key, usize> = (0..)
        .zip(orders.iter())
        .map(|(place, o)| (o.key, place))
        .collect();
    for (id, operation) in numbered(history) {
        for (key, value) in operation.appends() {
            if committed[id.0 as usize] && !shown.contains(value) {
                orders[place[key]].unseen.push((id, *value));
            }
        }
    }
    for order in orders {
        sort_unseen(history, order);
    }
}

/// Those acknowledged first come first; those of unknown outcome last.
pub(crate) fn sort_unseen(history: &[Operation], order: &mut Order) {
    let acknowledged = |id: OperationId| history[id.0 as usize].acknowledged();
    order
        .unseen
        .sort_by_key(|(id, _)| (acknowledged(*id).unwrap_or(u64::MAX), *id));
}
