//! A batch of keys, by the shards that own them.

use jindou_model::{ShardId, TermId};

use crate::Shards;

/// The keys of a batch that one shard owns, in the order in which they came.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// The keys.
    pub keys: Vec<TermId>,
    /// The place that each has in the batch; they rise.
    pub places: Vec<u32>,
}

/// A batch of keys, split by owner. It is filled again for each batch and keeps its buffers.
#[derive(Clone, Debug, Default)]
pub struct Split {
    /// By shard.
    parts: Vec<Part>,
    /// The shards that own keys of the batch, by their first key.
    used: Vec<ShardId>,
}

impl Split {
    /// Splits a batch, in one pass. Costs the keys of this batch and of the one before.
    ///
    /// # Panics
    /// If there are more than 2^32 keys.
    pub fn fill(&mut self, shards: Shards, keys: impl IntoIterator<Item = TermId>) {
        for shard in self.used.drain(..) {
            let part = &mut self.parts[shard.0 as usize];
            part.keys.clear();
            part.places.clear();
        }
        if self.parts.len() < shards.count() {
            self.parts.resize_with(shards.count(), Part::default);
        }
        for (place, key) in keys.into_iter().enumerate() {
            let owner = shards.owner(key);
            let part = &mut self.parts[owner.0 as usize];
            if part.keys.is_empty() {
                self.used.push(owner);
            }
            part.keys.push(key);
            part.places
                .push(u32::try_from(place).expect("a batch has 2^32 keys at most"));
        }
    }

    /// The shards that own keys of the batch, each with these.
    pub fn parts(&self) -> impl ExactSizeIterator<Item = (ShardId, &Part)> {
        let part = |shard: &ShardId| (*shard, &self.parts[shard.0 as usize]);
        self.used.iter().map(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
                split.fill(shards, keys.iter().copied());
                let mut again = vec![TermId::NONE; keys.len()];
                let mut count = 0;
                for (shard, part) in split.parts() {
                    prop_assert!(!part.keys.is_empty());
                    prop_assert!(part.places.is_sorted_by(|a, b| a < b));
                    count += part.keys.len();
                    for (key, place) in part.keys.iter().zip(&part.places) {
                        prop_assert_eq!(shards.owner(*key), shard);
                        again[*place as usize] = *key;
                    }
                }
                prop_assert_eq!(count, keys.len());
                prop_assert_eq!(again, keys);
            }
        }
    }
}
