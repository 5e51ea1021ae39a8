//! Which random numbers does the benchmark draw? The 48-bit linear congruential generator
//! that the Java platform specifies for `java.util.Random`, and draws built on it.

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const INCREMENT: u64 = 0xB;
const MASK: u64 = (1 << 48) - 1;

/// The generator's state: 48 bits.
#[derive(Debug, Clone)]
pub(super) struct JavaRandom {
    state: u64,
}

impl JavaRandom {
    /// Starts from the low 48 bits of `seed`.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            state: (seed ^ MULTIPLIER) & MASK,
        }
    }

    /// 31 uniform bits.
    #[inline]
    fn next_31(&mut self) -> u32 {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT) & MASK;
        (self.state >> 17) as u32
    }

    /// Uniform in `0..bound`. `bound` is in `1..=2^31 - 1`.
    #[inline]
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        debug_assert!(bound > 0 && bound <= i32::MAX as u32);
        if bound.is_power_of_two() {
            return ((u64::from(bound) * u64::from(self.next_31())) >> 31) as u32;
        }
        loop {
            let bits = self.next_31();
            let value = bits % bound;
            // The last, incomplete run of `bound` values would favour small results.
            if bits - value + (bound - 1) <= i32::MAX as u32 {
                return value;
            }
        }
    }

    /// Uniform in `low..=high`.
    #[inline]
    pub(super) fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high - low + 1)
    }

    /// Replaces `picked` by `count` different values of `0..bound`, in the order drawn.
    ///
    /// Each draw is a position among the values still left, as if drawing from a list that
    /// shrinks; the list itself is never built. `taken` is scratch space. O(count²).
    pub(super) fn distinct(
        &mut self,
        count: u32,
        bound: u32,
        taken: &mut Vec<u32>,
        picked: &mut Vec<u32>,
    ) {
        assert!(
            count <= bound,
            "cannot draw {count} different values of {bound}"
        );
        taken.clear();
        picked.clear();
        for drawn in 0..count {
            let mut value = self.below(bound - drawn);
            let mut at = 0;
            while at < taken.len() && taken[at] <= value {
                value += 1;
                at += 1;
            }
            taken.insert(at, value);
            picked.push(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_draws_are_those_the_java_platform_documents() {
        // `new Random(42)`: nextInt(10) gives 0, 3, 8, 4, 0 and so on.
        let mut random = JavaRandom::new(42);
        let drawn: Vec<u32> = (0..5).map(|_| random.below(10)).collect();
        assert_eq!(drawn, [0, 3, 8, 4, 0]);
    }

    #[test]
    fn distinct_draws_equal_draws_from_a_shrinking_list() {
        for seed in 0..200 {
            let (mut ours, mut naive) = (JavaRandom::new(seed), JavaRandom::new(seed));
            let bound = 1 + (seed as u32 * 7) % 90;
            let count = bound.min(seed as u32 % 60);
            let (mut taken, mut picked) = (Vec::new(), Vec::new());
            ours.distinct(count, bound, &mut taken, &mut picked);
            let mut list: Vec<u32> = (0..bound).collect();
            let expected: Vec<u32> = (0..count)
                .map(|_| list.remove(naive.below(list.len() as u32) as usize))
                .collect();
            assert_eq!(picked, expected, "seed {seed}");
        }
    }
}
