//! Which random numbers decide? SplitMix64, started anew for each thing that is described, so that
//! a user looks the same whatever was drawn before.

/// The sequence's increment: 2^64 divided by the golden ratio, odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// What a number is drawn for: sequences of different purposes have nothing in common.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(super) enum Purpose {
    NearTie = 1,
    FarTie,
    Sociability,
    Activity,
    Person,
    Interests,
    Friendship,
    Group,
    Place,
    Title,
    Posts,
    Photos,
    PostLikes,
    PhotoLikes,
    Gps,
    Content,
}

/// A bijection of 64 bits in which each bit of the input decides over each of the output.
#[inline]
pub(super) const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// 64 bits that depend on all arguments.
#[inline]
pub(super) const fn hash(seed: u64, purpose: Purpose, number: u64) -> u64 {
    mix(mix(seed.wrapping_add(STEP.wrapping_mul(purpose as u64 + 1))) ^ number.wrapping_mul(STEP))
}

/// As a fraction of one: 53 bits, so that it is exact.
#[inline]
pub(super) fn fraction(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// A sequence of random numbers.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    /// The sequence for one thing.
    #[inline]
    pub(super) fn of(seed: u64, purpose: Purpose, number: u64) -> Self {
        Self(hash(seed, purpose, number))
    }

    #[inline]
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// Uniform in `0..bound`, but for a bias of at most `bound / 2^32`.
    #[inline]
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        debug_assert!(bound > 0, "there is no number below 0");
        (((self.bits() >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// Uniform in `low..=high`.
    #[inline]
    pub(super) fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high - low + 1)
    }

    /// Uniform in `0.0..1.0`.
    #[inline]
    pub(super) fn fraction(&mut self) -> f64 {
        fraction(self.bits())
    }

    /// True in so many of all cases.
    #[inline]
    pub(super) fn chance(&mut self, probability: f64) -> bool {
        self.fraction() < probability
    }

    /// One of the elements, each equally probable.
    #[inline]
    pub(super) fn one_of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len() as u32) as usize]
    }

    /// A position, as often as its weight says.
    #[inline]
    pub(super) fn weighted(&mut self, weights: impl Iterator<Item = u32> + Clone) -> usize {
        let mut left = self.below(weights.clone().sum());
        for (at, weight) in weights.enumerate() {
            if left < weight {
                return at;
            }
            left -= weight;
        }
        unreachable!("a number below the sum of weights falls into one of them")
    }

    /// Moves `count` elements, or all if there are fewer, to the front, chosen at random.
    pub(super) fn choose<T>(&mut self, count: usize, all: &mut [T]) -> usize {
        let count = count.min(all.len());
        for at in 0..count {
            let other = at + self.below((all.len() - at) as u32) as usize;
            all.swap(at, other);
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_by_weight_are_as_often_as_their_weights() {
        let weights = [1_u32, 0, 7, 2];
        let mut random = Random::of(3, Purpose::Posts, 0);
        let mut drawn = [0_u32; 4];
        for _ in 0..100_000 {
            drawn[random.weighted(weights.iter().copied())] += 1;
        }
        for (drawn, weight) in drawn.into_iter().zip(weights) {
            assert!(drawn.abs_diff(weight * 10_000) < 600, "{drawn} of {weight}");
        }
    }

    #[test]
    fn chosen_elements_are_different_ones() {
        let mut all: Vec<u32> = (0..20).collect();
        let mut random = Random::of(3, Purpose::Posts, 1);
        assert_eq!(random.choose(30, &mut all), 20);
        all.sort_unstable();
        assert_eq!(all, (0..20).collect::<Vec<_>>());
    }
}
