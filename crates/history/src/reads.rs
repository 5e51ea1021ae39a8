//! What is wrong with a read, or with the write that it should show, without looking at cycles?

use rustc_hash::{FxHashMap, FxHashSet};

use crate::orders::{Order, Reading};
use crate::registers::Links;
use crate::{Anomaly, Key, Operation, OperationId, Value};

/// Where a value is in its order.
pub(crate) type Positions = FxHashMap<Value, usize>;

/// The position of each value that a read shows.
pub(crate) fn positions(orders: &[Order]) -> Positions {
    let versions = orders
        .iter()
        .flat_map(|order| order.versions.iter().enumerate());
    versions
        .map(|(position, version)| (version.value, position))
        .collect()
}

/// Reports lists that end amid what one operation appended. Costs the readings.
pub(crate) fn intermediate(history: &[Operation], order: &Order, found: &mut impl FnMut(Anomaly)) {
    for Reading { read, length } in order.readings.iter().copied() {
        let Some(last) = length.checked_sub(1).map(|at| order.versions[at]) else {
            continue;
        };
        let Some(writer) = last.writer.filter(|writer| *writer != read) else {
            continue;
        };
        let appends = &history[writer.0 as usize].appends();
        let of_key = appends.iter().rev().find(|(key, _)| *key == order.key);
        if of_key.is_some_and(|(_, value)| *value != last.value) {
            found(Anomaly::IntermediateRead {
                read,
                writer,
                key: order.key,
                value: last.value,
            });
        }
    }
}

/// Whether a read of a list shows all versions up to a length, or a register the last of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shows {
    All,
    Last,
}

/// Reports reads that show a part of what one operation wrote. Costs the values that reads of several keys show.
pub(crate) fn partial(
    history: &[Operation],
    orders: &[Order],
    positions: &Positions,
    shows: Shows,
    found: &mut impl FnMut(Anomaly),
) {
    let mut of_read: FxHashMap<OperationId, Vec<(&Order, usize)>> = FxHashMap::default();
    for order in orders {
        for reading in &order.readings {
            let lengths = of_read.entry(reading.read).or_default();
            lengths.push((order, reading.length));
        }
    }
    let mut reads: Vec<_> = of_read.into_iter().collect();
    reads.sort_unstable_by_key(|(read, _)| *read);
    for (read, lengths) in reads.into_iter().filter(|(_, lengths)| lengths.len() > 1) {
        let anomaly = lengths.iter().find_map(|(order, length)| {
            let from = match shows {
                Shows::All => 0,
                Shows::Last => length.saturating_sub(1),
            };
            let mut shown = order.versions[from..*length].iter();
            shown.find_map(|version| {
                let writer = version.writer.filter(|writer| *writer != read)?;
                let missing = missing(&history[writer.0 as usize], &lengths, positions)?;
                Some(Anomaly::PartialRead {
                    read,
                    writer,
                    shown: (order.key, version.value),
                    missing,
                })
            })
        });
        anomaly.into_iter().for_each(&mut *found);
    }
}

/// What an operation wrote to one of these keys and is not among so many first versions of it.
fn missing(
    writer: &Operation,
    lengths: &[(&Order, usize)],
    positions: &Positions,
) -> Option<(Key, Value)> {
    let written = match writer.appends() {
        [] => writer.writes(),
        appends => appends,
    };
    let is_missing = |(key, value): &&(Key, Value)| {
        let read = lengths.iter().find(|(order, _)| order.key == *key);
        read.is_some_and(|(_, length)| positions.get(value).is_none_or(|at| at >= length))
    };
    // An operation with one value has nothing besides what is shown.
    (written.len() > 1)
        .then(|| written.iter().find(is_missing).copied())
        .flatten()
}

/// Reports pairs that read one version of a key and both wrote it. Costs the readings.
pub(crate) fn lost_updates(history: &[Operation], order: &Order, found: &mut impl FnMut(Anomaly)) {
    let mut first: FxHashMap<usize, OperationId> = FxHashMap::default();
    for Reading { read, length } in order.readings.iter().copied() {
        let operation = &history[read.0 as usize];
        let mut written = operation.appends().iter().chain(operation.writes());
        if !written.any(|(key, _)| *key == order.key) {
            continue;
        }
        let one = *first.entry(length).or_insert(read);
        if one != read {
            let last = length.checked_sub(1);
            found(Anomaly::LostUpdate {
                writers: [one, read],
                key: order.key,
                version: last.map(|at| order.versions[at].value),
            });
        }
    }
}

/// The same where the order is not known.
pub(crate) fn lost_updates_of_links(links: &Links, found: &mut impl FnMut(Anomaly)) {
    for (version, replaced) in &links.replaced {
        for pair in replaced.windows(2) {
            found(Anomaly::LostUpdate {
                writers: [pair[0].0, pair[1].0],
                key: links.key,
                version: *version,
            });
        }
    }
}

/// Reports acknowledged writes that no final read of their key shows, and says how many could not be
/// looked for, as there is no final read. Costs the versions, and the values of final reads.
pub(crate) fn lost_writes(
    history: &[Operation],
    order: &Order,
    finals_from: u64,
    found: &mut impl FnMut(Anomaly),
) -> usize {
    let is_final = |read: OperationId| history[read.0 as usize].begun >= finals_from;
    let readings = order.readings.iter().filter(|r| is_final(r.read));
    let longest = readings.max_by_key(|reading| reading.length);
    let strays = order.strays.iter().filter(|(read, _)| is_final(*read));
    let in_strays: FxHashSet<Value> = strays.clone().flat_map(|(_, list)| list.clone()).collect();
    let read = longest.map(|reading| reading.read);
    let Some(read) = read.or_else(|| strays.clone().next().map(|(read, _)| *read)) else {
        return order.versions.len() + order.unseen.len();
    };
    let length = longest.map_or(0, |reading| reading.length);
    let hidden = order.versions[length..].iter();
    let hidden = hidden.filter_map(|version| Some((version.writer?, version.value)));
    for (writer, value) in hidden.chain(order.unseen.iter().copied()) {
        let acknowledged = history[writer.0 as usize].acknowledged();
        if acknowledged.is_some_and(|at| at < finals_from) && !in_strays.contains(&value) {
            found(Anomaly::LostWrite {
                writer,
                read,
                key: order.key,
                value,
            });
        }
    }
    0
}

/// Reports reads without something that was acknowledged before they began. Costs versions and readings.
pub(crate) fn stale(history: &[Operation], order: &Order, found: &mut impl FnMut(Anomaly)) {
    type Earliest = Option<(u64, OperationId, Value)>;
    let acknowledged = |writer: OperationId, value| {
        let at = history[writer.0 as usize].acknowledged()?;
        Some((at, writer, value))
    };
    let earlier = |one: Earliest, other: Earliest| one.into_iter().chain(other).min();
    // By length: of what a read of this length does not show, what was acknowledged first.
    let unseen = order.unseen.iter();
    let unseen = unseen.map(|(writer, value)| acknowledged(*writer, *value));
    let mut hidden: Vec<Earliest> = vec![unseen.fold(None, earlier)];
    for version in order.versions.iter().rev() {
        let this = version
            .writer
            .and_then(|writer| acknowledged(writer, version.value));
        hidden.push(earlier(this, hidden[hidden.len() - 1]));
    }
    hidden.reverse();
    for Reading { read, length } in order.readings.iter().copied() {
        let begun = history[read.0 as usize].begun;
        if let Some((at, writer, value)) = hidden[length]
            && at < begun
        {
            found(Anomaly::StaleRead {
                read,
                writer,
                key: order.key,
                value,
                by_ns: begun - at,
            });
        }
    }
}

/// Reports reads of a register in unknown order that show a value after a write which began when the value was
/// written, and which was acknowledged before the read began. Costs sorting.
pub(crate) fn stale_of_links(
    history: &[Operation],
    links: &Links,
    written_by: impl Fn(Value) -> OperationId,
    found: &mut impl FnMut(Anomaly),
) {
    let mut writes: Vec<(u64, u64, OperationId, Value)> = links
        .writes
        .iter()
        .filter_map(|(writer, value)| {
            let operation = &history[writer.0 as usize];
            Some((operation.begun, operation.acknowledged()?, *writer, *value))
        })
        .collect();
    writes.sort_unstable();
    // From each write on, the one acknowledged first.
    let mut first: Vec<(u64, OperationId, Value)> =
        writes.iter().map(|(_, at, w, v)| (*at, *w, *v)).collect();
    for place in (1..first.len()).rev() {
        first[place - 1] = first[place - 1].min(first[place]);
    }
    for (value, readers) in &links.readers {
        let place = match value {
            None => Some(0),
            Some(value) => history[written_by(*value).0 as usize]
                .acknowledged()
                .map(|ended| writes.partition_point(|(begun, ..)| *begun <= ended)),
        };
        let Some((at, writer, value)) = place.and_then(|place| first.get(place)).copied() else {
            continue;
        };
        for read in readers {
            let begun = history[read.0 as usize].begun;
            if at < begun {
                found(Anomaly::StaleRead {
                    read: *read,
                    writer,
                    key: links.key,
                    value,
                    by_ns: begun - at,
                });
            }
        }
    }
}
