//! How many shards are there, and which of them owns a term?

use jindou_model::{ShardId, TermId, TermKind};

/// The most shards that a store may have.
pub const MOST_SHARDS: u32 = 1 << 20;

/// The virtual shards of a store: how many there are. One unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Shards {
    /// The logarithm of their number.
    bits: u32,
}

/// No store has so many shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} shards: their number is a power of two, and {MOST_SHARDS} at most")]
pub struct ShardsError(pub u32);

impl Shards {
    /// One shard, which owns everything.
    pub const ONE: Self = Self { bits: 0 };

    /// So many shards.
    ///
    /// # Errors
    /// [`ShardsError`] for what is no power of two, and for more than [`MOST_SHARDS`].
    pub const fn new(count: u32) -> Result<Self, ShardsError> {
        match count.is_power_of_two() && count <= MOST_SHARDS {
            true => Ok(Self {
                bits: count.trailing_zeros(),
            }),
            false => Err(ShardsError(count)),
        }
    }

    /// How many there are.
    #[inline]
    #[must_use]
    pub const fn count(self) -> usize {
        1 << self.bits
    }

    /// True if there is one, which owns everything.
    #[inline]
    #[must_use]
    pub const fn is_one(self) -> bool {
        self.bits == 0
    }

    /// All of them, by number.
    pub fn all(self) -> impl ExactSizeIterator<Item = ShardId> + Clone {
        (0..1_u32 << self.bits).map(ShardId)
    }

    /// The shard that owns a term. Ids of terms that no graph holds have one, too.
    #[inline]
    #[must_use]
    pub const fn owner(self, id: TermId) -> ShardId {
        let dealt = match id.kind() {
            TermKind::Vertex | TermKind::Literal => id.number(),
            _ => hash(id.raw()),
        };
        // Below the mask there are 20 bits at most.
        ShardId((dealt & ((1 << self.bits) - 1)) as u32)
    }

    /// The shard that knows which id a term has, by the hash of the term's key that dictionaries use, which
    /// never changes: whoever looks for a term has nothing else.
    #[inline]
    #[must_use]
    pub const fn of_hash(self, hash: u64) -> ShardId {
        ShardId((hash & ((1 << self.bits) - 1)) as u32)
    }

    /// Of the ids of a kind that one shard owns, each two differ by a multiple of two to this power.
    #[inline]
    #[must_use]
    pub const fn stride_bits(self, kind: TermKind) -> u32 {
        match kind {
            TermKind::Vertex | TermKind::Literal => self.bits,
            _ => 0,
        }
    }
}

/// A hash all of whose bits depend on all bits of an id: the finalizer of MurmurHash3. What is on
/// which shard depends on it, so it never changes.
#[inline]
const fn hash(raw: u64) -> u64 {
    let mixed = (raw ^ (raw >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let mixed = (mixed ^ (mixed >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    mixed ^ (mixed >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn there_are_powers_of_two_of_shards() {
        assert_eq!(Shards::new(1), Ok(Shards::ONE));
        assert_eq!(Shards::default(), Shards::ONE);
        for bits in 0..=20 {
            let shards = Shards::new(1 << bits).unwrap();
            assert_eq!(shards.count(), 1 << bits);
            assert_eq!(shards.is_one(), bits == 0);
            assert_eq!(shards.all().len(), 1 << bits);
        }
        for count in [0, 3, 6, 12, MOST_SHARDS + 1, MOST_SHARDS << 1, u32::MAX] {
            assert_eq!(Shards::new(count), Err(ShardsError(count)));
        }
    }

    #[test]
    fn owners_are_those_of_stores_made_before() {
        let shards = Shards::new(8).unwrap();
        let owner = |kind, payload| shards.owner(TermId::new(kind, payload)).0;
        assert_eq!(owner(TermKind::Vertex, 0), 0);
        assert_eq!(owner(TermKind::Vertex, (1 << 50) + 13), 5);
        assert_eq!(owner(TermKind::Literal, 1007), 7);
        let inline: Vec<u32> = (0..8).map(|n| owner(TermKind::Integer, n)).collect();
        assert_eq!(inline, [0, 7, 0, 0, 0, 7, 7, 3]);
        assert_eq!(shards.owner(TermId::NONE), ShardId(0));
    }

    #[test]
    fn terms_are_looked_up_where_their_hash_says() {
        let shards = Shards::new(8).unwrap();
        for (hash, shard) in [(0, 0), (7, 7), (8, 0), (u64::MAX, 7), (0xabcd_0003, 3)] {
            assert_eq!(shards.of_hash(hash), ShardId(shard));
            assert_eq!(Shards::ONE.of_hash(hash), ShardId(0));
        }
    }

    #[test]
    fn inline_values_are_spread() {
        let shards = Shards::new(16).unwrap();
        let mut counts = [0; 16];
        for number in 0..16_000 {
            counts[shards.owner(TermId::new(TermKind::Integer, number)).0 as usize] += 1;
        }
        assert!(
            counts.iter().all(|count| (850..1150).contains(count)),
            "{counts:?}"
        );
    }

    proptest! {
        #[test]
        fn each_id_has_one_owner_and_those_of_one_are_a_stride_apart(
            bits in 0..=20_u32,
            kind in prop_oneof![Just(TermKind::Vertex), Just(TermKind::Literal), Just(TermKind::Date)],
            numbers in proptest::collection::vec(0..1_u64 << 60, 2..50),
        ) {
            let shards = Shards::new(1 << bits).unwrap();
            let ids: Vec<TermId> = numbers.iter().map(|n| TermId::new(kind, *n)).collect();
            for id in &ids {
                prop_assert!((shards.owner(*id).0 as usize) < shards.count());
                let next = TermId::new(kind, (id.payload() + (1 << bits)) & ((1 << 60) - 1));
                if shards.stride_bits(kind) == bits {
                    prop_assert_eq!(shards.owner(next), shards.owner(*id));
                }
                for other in &ids {
                    let stride = 1_u64 << shards.stride_bits(kind);
                    if shards.owner(*id) == shards.owner(*other) {
                        prop_assert_eq!(id.raw().abs_diff(other.raw()) % stride, 0);
                    }
                }
            }
        }
    }
}
