//! Do the snapshot numbers that clients got agree with what they read, and with time?

use rustc_hash::FxHashMap;

use crate::orders::{Order, numbered};
use crate::{Anomaly, Operation, OperationId};

/// A number, and whose it is.
type Numbered = (u64, OperationId);

/// Reports acknowledged writes that have one number. Costs sorting.
pub(crate) fn reused(history: &[Operation], found: &mut impl FnMut(Anomaly)) {
    let mut numbers: Vec<Numbered> = numbered(history)
        .filter(|(_, operation)| !(operation.appends().is_empty() && operation.writes().is_empty()))
        .filter_map(|(id, operation)| Some((operation.snapshot()?, id)))
        .collect();
    numbers.sort_unstable();
    for pair in numbers.windows(2) {
        if pair[0].0 == pair[1].0 {
            found(Anomaly::SnapshotReused {
                writers: [pair[0].1, pair[1].1],
                snapshot: pair[0].0,
            });
        }
    }
}

/// What is known of the numbers that operations without one must have.
#[derive(Default)]
pub(crate) struct Bounds {
    above: FxHashMap<OperationId, Numbered>,
    at_most: FxHashMap<OperationId, Numbered>,
}

impl Bounds {
    fn narrow(&mut self, writer: OperationId, above: Option<Numbered>, at_most: Option<Numbered>) {
        if let Some(above) = above {
            let known = self.above.entry(writer).or_insert(above);
            *known = above.max(*known);
        }
        if let Some(at_most) = at_most {
            let known = self.at_most.entry(writer).or_insert(at_most);
            *known = at_most.min(*known);
        }
    }

    /// Reports operations that no number fits.
    pub(crate) fn report(self, found: &mut impl FnMut(Anomaly)) {
        let mut writers: Vec<_> = self.above.into_iter().collect();
        writers.sort_unstable_by_key(|(writer, _)| *writer);
        for (writer, above) in writers {
            if let Some(at_most) = self.at_most.get(&writer)
                && at_most.0 <= above.0
            {
                found(Anomaly::SnapshotContradiction {
                    writer,
                    above,
                    at_most: *at_most,
                });
            }
        }
    }
}

/// For each length, the greatest number before it and the least from it on.
struct Sides {
    before: Vec<Option<Numbered>>,
    from: Vec<Option<Numbered>>,
}

fn sides(history: &[Operation], order: &Order) -> Sides {
    let number = |writer: OperationId| Some((history[writer.0 as usize].snapshot()?, writer));
    let mut before = vec![None];
    for version in &order.versions {
        let last = before[before.len() - 1];
        before.push(last.max(version.writer.and_then(number)));
    }
    let unseen = order.unseen.iter();
    let mut from = vec![unseen.filter_map(|(writer, _)| number(*writer)).min()];
    for version in order.versions.iter().rev() {
        let this = version.writer.and_then(number);
        from.push(this.into_iter().chain(from[from.len() - 1]).min());
    }
    from.reverse();
    Sides { before, from }
}

/// Reports where numbers fall along an order, and reads that do not show exactly what has a number up to theirs;
/// notes what follows for writes without one. What a transaction read that wrote is looked at only if it
/// `reads_before_itself`, from the state just before its number. Costs versions and readings.
pub(crate) fn of_order(
    history: &[Operation],
    order: &Order,
    reads_before_itself: bool,
    bounds: &mut Bounds,
    found: &mut impl FnMut(Anomaly),
) {
    let key = order.key;
    let Sides { before, from } = sides(history, order);
    for (position, version) in order.versions.iter().enumerate() {
        if let Some(writer) = version.writer
            && let Some(number) = history[writer.0 as usize].snapshot()
            && let Some(above) = before[position].filter(|(above, _)| *above > number)
        {
            found(Anomaly::SnapshotOrder {
                writers: [above.1, writer],
                key,
                snapshots: [above.0, number],
            });
        }
    }
    // By length, the greatest and the least snapshot of a read of it.
    let mut greatest: Vec<Option<Numbered>> = vec![None; order.versions.len() + 1];
    let mut least = greatest.clone();
    for reading in &order.readings {
        let (read, length) = (reading.read, reading.length);
        let Some(snapshot) = snapshot_read(&history[read.0 as usize], reads_before_itself) else {
            continue;
        };
        greatest[length] = greatest[length].max(Some((snapshot, read)));
        least[length] = least[length].into_iter().chain([(snapshot, read)]).min();
        let mut wrong = |(number, writer), shown| {
            found(Anomaly::SnapshotRead {
                read,
                snapshot,
                writer,
                key,
                number,
                shown,
            });
        };
        if let Some(shown) = before[length].filter(|(number, _)| *number > snapshot) {
            wrong(shown, true);
        }
        if let Some(hidden) = from[length].filter(|(number, _)| *number <= snapshot) {
            wrong(hidden, false);
        }
    }
    for length in 1..greatest.len() {
        greatest[length] = greatest[length].max(greatest[length - 1]);
        let mirrored = greatest.len() - 1 - length;
        let least_after = least[mirrored].into_iter().chain(least[mirrored + 1]);
        least[mirrored] = least_after.min();
    }
    for (position, version) in order.versions.iter().enumerate() {
        let Some(writer) = version.writer else {
            continue;
        };
        if history[writer.0 as usize].snapshot().is_some() {
            continue;
        }
        // A read of this length or less does not show it.
        let above = before[position].max(greatest[position]);
        let next = from[position + 1].map(|(number, next)| (number.saturating_sub(1), next));
        let at_most = next.into_iter().chain(least[position + 1]).min();
        bounds.narrow(writer, above, at_most);
    }
}

/// The snapshot at which an operation read, if that is known.
fn snapshot_read(operation: &Operation, reads_before_itself: bool) -> Option<u64> {
    let number = operation.snapshot()?;
    match operation.appends().is_empty() && operation.writes().is_empty() {
        true => Some(number),
        false if reads_before_itself => number.checked_sub(1),
        false => None,
    }
}

/// Reports clients whose numbers go back. Costs sorting.
pub(crate) fn clients(history: &[Operation], found: &mut impl FnMut(Anomaly)) {
    let mut by_client: Vec<(u32, u64, OperationId, u64)> = numbered(history)
        .filter_map(|(id, o)| Some((o.client, o.begun, id, o.snapshot()?)))
        .collect();
    by_client.sort_unstable();
    let mut greatest: Option<(u32, Numbered)> = None;
    for (client, _, id, number) in by_client {
        match greatest {
            Some((of, (above, earlier))) if of == client && above > number => {
                found(Anomaly::ClientWentBack {
                    operations: [earlier, id],
                    snapshots: [above, number],
                });
            }
            _ => greatest = Some((client, (number, id))),
        }
    }
}

/// Reports operations whose number is below that of one acknowledged before they began. Costs sorting.
pub(crate) fn monotonic(history: &[Operation], found: &mut impl FnMut(Anomaly)) {
    let mut events = Vec::with_capacity(2 * history.len());
    for (id, operation) in numbered(history) {
        if let (Some(number), Some(ended)) = (operation.snapshot(), operation.acknowledged()) {
            events.push((operation.begun, false, id, number));
            events.push((ended, true, id, number));
        }
    }
    // At one instant what begins comes first, as it did not begin after the end.
    events.sort_unstable();
    let mut greatest: Option<Numbered> = None;
    for (_, ends, id, number) in events {
        if ends {
            greatest = greatest.max(Some((number, id)));
        } else if let Some((above, earlier)) = greatest.filter(|(above, _)| *above > number) {
            found(Anomaly::NotMonotonic {
                operations: [earlier, id],
                snapshots: [above, number],
            });
        }
    }
}
