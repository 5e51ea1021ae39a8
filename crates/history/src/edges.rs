//! Which transaction comes before which, by what they read and wrote?

use crate::orders::{Order, Writers};
use crate::registers::Links;
use crate::{Dependency, Edge, Operation, OperationId, Value};

/// Anti-dependencies that are noted from one read to versions in unknown order: to the first acknowledged ones.
/// With more of them, edges would be reads times writes.
const MOST_IN_UNKNOWN_ORDER: usize = 8;

/// Adds an edge unless it begins where it ends.
fn add(edges: &mut Vec<Edge>, from: OperationId, to: OperationId, why: Dependency) {
    if from != to {
        edges.push(Edge { from, to, why });
    }
}

/// The edges of one order. Costs its versions and readings.
pub(crate) fn of_order(order: &Order, edges: &mut Vec<Edge>) {
    let key = order.key;
    for pair in order.versions.windows(2) {
        if let (Some(first), Some(then)) = (pair[0].writer, pair[1].writer) {
            let why = Dependency::Write {
                key,
                first: pair[0].value,
                then: pair[1].value,
            };
            add(edges, first, then, why);
        }
    }
    let unseen = || order.unseen.iter().take(MOST_IN_UNKNOWN_ORDER);
    if let Some(last) = order.versions.last()
        && let Some(first) = last.writer
    {
        for (to, then) in unseen() {
            let why = Dependency::Write {
                key,
                first: last.value,
                then: *then,
            };
            add(edges, first, *to, why);
        }
    }
    for reading in &order.readings {
        let last = reading.length.checked_sub(1).map(|at| order.versions[at]);
        if let Some(last) = last
            && let Some(writer) = last.writer
        {
            let value = last.value;
            add(edges, writer, reading.read, Dependency::Read { key, value });
        }
        let mut without = |writer, missing| {
            let why = Dependency::AntiDependency { key, missing };
            add(edges, reading.read, writer, why);
        };
        match order.versions.get(reading.length) {
            Some(next) => next
                .writer
                .into_iter()
                .for_each(|writer| without(writer, next.value)),
            None => unseen().for_each(|(writer, missing)| without(*writer, *missing)),
        }
    }
}

/// The edges of a register in unknown order. Costs its reads, and those that replaced what they read.
pub(crate) fn of_links(
    history: &[Operation],
    links: &Links,
    writers: &Writers,
    edges: &mut Vec<Edge>,
) {
    let key = links.key;
    let writer = |value: Option<Value>| value.map(|value| (writers[&value].0, value));
    for (value, readers) in &links.readers {
        for reader in readers {
            if let Some((writer, value)) = writer(*value) {
                add(edges, writer, *reader, Dependency::Read { key, value });
            }
        }
        let mut next: Vec<_> = links.replaced.get(value).cloned().unwrap_or_default();
        if value.is_none() {
            // What shows nothing comes before all writes.
            next.extend(&links.writes);
        }
        let acknowledged = |id: OperationId| history[id.0 as usize].acknowledged();
        next.sort_by_key(|(id, _)| acknowledged(*id).unwrap_or(u64::MAX));
        next.truncate(MOST_IN_UNKNOWN_ORDER);
        for (to, missing) in next {
            for reader in readers {
                let why = Dependency::AntiDependency { key, missing };
                add(edges, *reader, to, why);
            }
        }
    }
    for (value, replaced) in &links.replaced {
        let Some((first_writer, first)) = writer(*value) else {
            continue;
        };
        for (to, then) in replaced {
            let then = *then;
            let why = Dependency::Write { key, first, then };
            add(edges, first_writer, *to, why);
        }
    }
}

/// An edge from each operation that `is_first` to those that began after it was acknowledged, but for what other edges imply.
/// Costs sorting, and operations times those that run at the same time.
pub(crate) fn of_real_time(
    history: &[Operation],
    committed: &[bool],
    is_first: impl Fn(&Operation) -> bool,
    edges: &mut Vec<Edge>,
) {
    let mut events = Vec::with_capacity(2 * history.len());
    for (id, operation) in crate::orders::numbered(history) {
        if committed[id.0 as usize] {
            // At one instant what begins comes first: it began no later than the other ended.
            events.push((operation.begun, false, id));
            let ended = operation.acknowledged().filter(|_| is_first(operation));
            events.extend(ended.map(|ended| (ended, true, id)));
        }
    }
    events.sort_unstable();
    // Ended, and before no other that ended.
    let mut frontier: Vec<(OperationId, u64)> = Vec::new();
    for (at, ends, id) in events {
        if ends {
            let begun = history[id.0 as usize].begun;
            // Whoever begins from now on comes after this one, and so after what ended before it began.
            frontier.retain(|(_, ended)| *ended >= begun);
            frontier.push((id, at));
            continue;
        }
        for (earlier, ended) in &frontier {
            let by_ns = at - ended;
            if by_ns > 0 {
                add(edges, *earlier, id, Dependency::RealTime { by_ns });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Outcome};
    use proptest::prelude::*;

    fn operation((begun, took): (u64, u64)) -> Operation {
        Operation {
            client: 0,
            begun,
            ended: Some(begun + took),
            kind: Kind::Append {
                appends: Vec::new(),
            },
            outcome: Outcome::Done { snapshot: None },
        }
    }

    proptest! {
        #[test]
        fn edges_of_real_time_imply_exactly_who_ended_before_whom(
            times in proptest::collection::vec((0..40_u64, 0..20_u64), 1..14),
        ) {
            let history: Vec<Operation> = times.into_iter().map(operation).collect();
            let count = history.len();
            let mut edges = Vec::new();
            of_real_time(&history, &vec![true; count], |_| true, &mut edges);
            let mut implied = vec![vec![false; count]; count];
            for edge in &edges {
                implied[edge.from.0 as usize][edge.to.0 as usize] = true;
            }
            for via in 0..count {
                for from in 0..count {
                    for to in 0..count {
                        implied[from][to] |= implied[from][via] && implied[via][to];
                    }
                }
            }
            for from in 0..count {
                for to in 0..count {
                    let before = history[from].ended.unwrap() < history[to].begun;
                    prop_assert_eq!(implied[from][to], before);
                }
            }
        }
    }

    #[test]
    fn edges_of_real_time_are_few_however_long_the_history() {
        let four_at_a_time = (0..10_000).map(|n| operation((n * 10, 35)));
        let history: Vec<Operation> = four_at_a_time.collect();
        let mut edges = Vec::new();
        of_real_time(&history, &vec![true; history.len()], |_| true, &mut edges);
        assert!(edges.len() <= 4 * history.len(), "{}", edges.len());
    }
}
