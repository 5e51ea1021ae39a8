//! A batch of keys, by who has their edges.

use std::cell::Cell;

use jindou_model::TermId;

/// The keys of a batch that belong together, in the order in which they came.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// The keys.
    pub keys: Vec<TermId>,
    /// The place that each has in the batch; they rise.
    pub places: Vec<u32>,
}

/// A batch of keys, split into groups that have numbers: shards, or what answers for several of these. It
/// is filled again for each batch and keeps its buffers.
#[derive(Clone, Debug, Default)]
pub struct Split {
    /// By group.
    parts: Vec<Part>,
    /// The groups that have keys of the batch, by their first key.
    used: Vec<u32>,
}

/// Keys of a batch up to which its buffers are kept for another one.
const KEPT_KEYS: usize = 8192;

thread_local! {
    static SPARE: Cell<Option<Box<Split>>> = const { Cell::new(None) };
}

impl Split {
    /// Lends one with buffers of a batch that this thread split before.
    pub fn lend<T>(f: impl FnOnce(&mut Self) -> T) -> T {
        let mut split = SPARE.take().unwrap_or_default();
        let outcome = f(&mut split);
        let keys: usize = split.parts().map(|(_, part)| part.keys.len()).sum();
        if keys <= KEPT_KEYS {
            SPARE.set(Some(split));
        }
        outcome
    }

    /// Splits a batch, in one pass. Costs the keys of this batch and of the one before, and the largest
    /// number of a group once.
    ///
    /// # Panics
    /// If there are more than 2^32 keys.
    pub fn fill(
        &mut self,
        keys: impl IntoIterator<Item = TermId>,
        group_of: impl Fn(TermId) -> u32,
    ) {
        for group in self.used.drain(..) {
            let part = &mut self.parts[group as usize];
            part.keys.clear();
            part.places.clear();
        }
        for (place, key) in keys.into_iter().enumerate() {
            let group = group_of(key);
            if self.parts.len() <= group as usize {
                self.parts.resize_with(group as usize + 1, Part::default);
            }
            let part = &mut self.parts[group as usize];
            if part.keys.is_empty() {
                self.used.push(group);
            }
            part.keys.push(key);
            part.places
                .push(u32::try_from(place).expect("a batch has 2^32 keys at most"));
        }
    }

    /// The groups that have keys of the batch, each with these.
    pub fn parts(&self) -> impl ExactSizeIterator<Item = (u32, &Part)> {
        let part = |group: &u32| (*group, &self.parts[*group as usize]);
        self.used.iter().map(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shards;
    use jindou_model::TermKind;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_parts_are_the_batch_again_by_their_places(
            batches in proptest::collection::vec(
                (0..6_u32, proptest::collection::vec((0..3_usize, 0..1_u64 << 45), 0..200)), 1..6),
        ) {
            let mut split = Split::default();
            for (bits, batch) in batches {
                let shards = Shards::new(1 << bits).unwrap();
                let kinds = [TermKind::Vertex, TermKind::Literal, TermKind::Integer];
                let keys: Vec<TermId> = batch.iter().map(|(k, n)| TermId::new(kinds[*k], *n)).collect();
                split.fill(keys.iter().copied(), |key| shards.owner(key).0);
                let mut again = vec![TermId::NONE; keys.len()];
                let mut count = 0;
                for (group, part) in split.parts() {
                    prop_assert!(!part.keys.is_empty());
                    prop_assert!(part.places.is_sorted_by(|a, b| a < b));
                    count += part.keys.len();
                    for (key, place) in part.keys.iter().zip(&part.places) {
                        prop_assert_eq!(shards.owner(*key).0, group);
                        again[*place as usize] = *key;
                    }
                }
                prop_assert_eq!(count, keys.len());
                prop_assert_eq!(again, keys);
            }
        }
    }
}
