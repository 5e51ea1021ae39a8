//! In which order did a register get its values?
//!
//! A register shows one value only. Where all that wrote a register have snapshot numbers, these are the order,
//! and it is an [`Order`] like that of a list. Without them, who read a value before replacing it says what
//! follows what ([`Links`]): nothing wrong is ever concluded from that, but not all that is wrong is found.

use rustc_hash::FxHashMap;

use crate::orders::{Order, Reading, Version, Writers, numbered, sort_unseen, writer_of};
use crate::{Anomaly, Key, Operation, OperationId, Value};

/// What is known of a register of which the order is not.
pub(crate) struct Links {
    pub(crate) key: Key,
    /// By value read, `None` being the state before all writes: who read it.
    pub(crate) readers: FxHashMap<Option<Value>, Vec<OperationId>>,
    /// By value read: who replaced it, and by what.
    pub(crate) replaced: FxHashMap<Option<Value>, Vec<(OperationId, Value)>>,
    /// Who wrote, and what.
    pub(crate) writes: Vec<(OperationId, Value)>,
}

/// A register by what is known of it.
pub(crate) struct Registers {
    pub(crate) orders: Vec<Order>,
    pub(crate) links: Vec<Links>,
}

/// Derives them, and marks as committed whose values were read. Costs the reads and writes of registers,
/// and sorting them.
pub(crate) fn of_registers(
    history: &[Operation],
    writers: &Writers,
    committed: &mut [bool],
    found: &mut impl FnMut(Anomaly),
) -> Registers {
    let mut reads: FxHashMap<Key, Vec<(OperationId, Option<Value>)>> = FxHashMap::default();
    for (id, operation) in numbered(history) {
        if !committed[id.0 as usize] {
            continue;
        }
        for (key, value) in operation.registers() {
            if let Some(value) = value
                && operation.writes().contains(&(key, value))
            {
                found(Anomaly::FutureRead {
                    read: id,
                    key,
                    value,
                });
            }
            let writer = value.map(|v| writer_of(history, writers, (id, key, v), found));
            if writer != Some(None) {
                reads.entry(key).or_default().push((id, value));
            }
        }
    }
    for value in reads.values().flatten().filter_map(|(_, value)| *value) {
        committed[writers[&value].0.0 as usize] = true;
    }
    let mut writes: FxHashMap<Key, Vec<(OperationId, Value)>> = FxHashMap::default();
    for (id, operation) in numbered(history) {
        for (key, value) in operation.writes() {
            let of_key = writes.entry(*key).or_default();
            if committed[id.0 as usize] {
                of_key.push((id, *value));
            }
        }
    }
    for key in reads.keys() {
        writes.entry(*key).or_default();
    }
    let mut writes: Vec<_> = writes.into_iter().collect();
    writes.sort_unstable_by_key(|(key, _)| *key);
    let mut registers = Registers {
        orders: Vec::new(),
        links: Vec::new(),
    };
    for (key, writes) in writes {
        let reads = reads.remove(&key).unwrap_or_default();
        match by_number(history, key, &writes, &reads) {
            Some(order) => registers.orders.push(order),
            None => registers.links.push(links(history, key, writes, &reads)),
        }
    }
    registers
}

/// The order by snapshot numbers, if all have one. A write without a number was made after those that
/// the earliest snapshot that shows it has besides, and before the next.
fn by_number(
    history: &[Operation],
    key: Key,
    writes: &[(OperationId, Value)],
    reads: &[(OperationId, Option<Value>)],
) -> Option<Order> {
    let mut earliest: FxHashMap<Value, u64> = FxHashMap::default();
    for (read, value) in reads {
        let operation = &history[read.0 as usize];
        // One that writes has the number of what it wrote, which is no snapshot that it read.
        let reads_only = operation.writes().is_empty();
        let snapshot = operation.snapshot().filter(|_| reads_only);
        if let (Some(value), Some(snapshot)) = (*value, snapshot) {
            let least = earliest.entry(value).or_insert(snapshot);
            *least = snapshot.min(*least);
        }
    }
    let number = |(id, value): &(OperationId, Value)| match history[id.0 as usize].snapshot() {
        Some(number) => Some(((number, 0), *id, *value)),
        None => earliest
            .get(value)
            .map(|snapshot| ((*snapshot, 1), *id, *value)),
    };
    let mut numbered: Vec<_> = writes.iter().map(number).collect::<Option<_>>()?;
    numbered.sort_unstable_by_key(|(number, id, _)| (*number, *id));
    let lengths: FxHashMap<Value, usize> = (1..)
        .zip(&numbered)
        .map(|(length, (.., value))| (*value, length))
        .collect();
    let reading = |(read, value): &(OperationId, Option<Value>)| Reading {
        read: *read,
        length: value.map_or(0, |value| lengths[&value]),
    };
    let version = |(_, writer, value): (_, OperationId, Value)| Version {
        value,
        writer: Some(writer),
    };
    let mut order = Order {
        key,
        readings: reads.iter().map(reading).collect(),
        versions: numbered.into_iter().map(version).collect(),
        unseen: Vec::new(),
        strays: Vec::new(),
    };
    sort_unseen(history, &mut order);
    Some(order)
}

fn links(
    history: &[Operation],
    key: Key,
    writes: Vec<(OperationId, Value)>,
    reads: &[(OperationId, Option<Value>)],
) -> Links {
    let mut readers: FxHashMap<_, Vec<OperationId>> = FxHashMap::default();
    let mut replaced: FxHashMap<_, Vec<(OperationId, Value)>> = FxHashMap::default();
    for (read, value) in reads {
        readers.entry(*value).or_default().push(*read);
        let operation = &history[read.0 as usize];
        if let Some((_, by)) = operation.writes().iter().find(|(at, _)| *at == key) {
            replaced.entry(*value).or_default().push((*read, *by));
        }
    }
    Links {
        key,
        readers,
        replaced,
        writes,
    }
}
