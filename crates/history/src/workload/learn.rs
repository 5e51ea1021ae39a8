//! What did an update read, as its answer does not say?

use rustc_hash::FxHashMap;

use crate::{Key, Kind, Operation, Value};

/// What the update that wrote a value noted of what it read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The value that it wrote.
    pub value: Value,
    /// By key: how long the list was, or which value the register had.
    pub seen: Vec<(Key, Option<u64>)>,
}

/// Gives updates that read and wrote what they read, where a later read tells: what was noted of a list is its length, and its
/// values are the first ones of the longest list of this key in the history. Returns how many updates have it now. Costs
/// the history and the sightings.
pub fn learn(history: &mut [Operation], lists: &[Sighting], registers: &[Sighting]) -> usize {
    let by_value = |sightings: &[Sighting]| -> FxHashMap<Value, FxHashMap<Key, Option<u64>>> {
        let seen = |s: &Sighting| (s.value, s.seen.iter().copied().collect());
        sightings.iter().map(seen).collect()
    };
    let (lists, registers) = (by_value(lists), by_value(registers));
    let longest = longest(history);
    let mut learned = 0;
    for operation in history {
        match &mut operation.kind {
            Kind::ReadAppend {
                keys,
                lists: unknown @ None,
                appends,
            } => {
                let seen = appends.iter().find_map(|(_, value)| lists.get(value));
                *unknown = seen.and_then(|seen| prefixes(keys, seen, &longest));
                learned += usize::from(unknown.is_some());
            }
            Kind::ReadWrite {
                keys,
                values: unknown @ None,
                writes,
            } => {
                let seen = writes.iter().find_map(|(_, value)| registers.get(value));
                let values = |seen: &FxHashMap<Key, Option<u64>>| {
                    let value = |key| Some(seen.get(key)?.map(Value));
                    keys.iter().map(value).collect()
                };
                *unknown = seen.and_then(values);
                learned += usize::from(unknown.is_some());
            }
            _ => {}
        }
    }
    learned
}

fn longest(history: &[Operation]) -> FxHashMap<Key, Vec<Value>> {
    let mut longest: FxHashMap<Key, &[Value]> = FxHashMap::default();
    for (key, list) in history.iter().flat_map(Operation::lists) {
        let known = longest.entry(key).or_insert(list);
        if list.len() > known.len() {
            *known = list;
        }
    }
    let owned = |(key, list): (Key, &[Value])| (key, list.to_vec());
    longest.into_iter().map(owned).collect()
}

fn prefixes(
    keys: &[Key],
    seen: &FxHashMap<Key, Option<u64>>,
    longest: &FxHashMap<Key, Vec<Value>>,
) -> Option<Vec<Vec<Value>>> {
    let one = |key: &Key| {
        let length = usize::try_from((*seen.get(key)?)?).ok()?;
        let list = longest.get(key).map_or(&[][..], Vec::as_slice);
        list.get(..length).map(<[Value]>::to_vec)
    };
    keys.iter().map(one).collect()
}
