//! Sorting edges: how are millions of pairs put in order in a few passes?

/// Below so many pairs a comparison sort is as fast.
const RADIX_MINIMUM: usize = 4096;

/// Sorts pairs and removes repeats.
///
/// Pairs whose two numbers together vary in 64 bits or fewer, as edges mostly do, are packed into
/// one word and sorted by radix: one pass for each eleven bits.
pub(super) fn sort_pairs(pairs: &mut Vec<(u64, u64)>) {
    if let Some((packing, words)) = sorted_words(pairs.len(), pairs.iter().copied()) {
        pairs.clear();
        pairs.extend(words.into_iter().map(|word| packing.unpack(word)));
        return;
    }
    pairs.sort_unstable();
    pairs.dedup();
}

/// So many pairs that are in no list yet, sorted and without repeats.
pub(super) fn sorted_pairs(
    count: usize,
    pairs: impl Iterator<Item = (u64, u64)> + Clone,
) -> Vec<(u64, u64)> {
    if let Some((packing, words)) = sorted_words(count, pairs.clone()) {
        let pairs = words.into_iter().map(|word| packing.unpack(word));
        return pairs.collect();
    }
    let mut pairs: Vec<(u64, u64)> = pairs.collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// Pairs as words, sorted and without repeats, and how they are packed; nothing where they are few or do not fit.
fn sorted_words(
    count: usize,
    pairs: impl Iterator<Item = (u64, u64)> + Clone,
) -> Option<(Packing, Vec<u64>)> {
    if count < RADIX_MINIMUM {
        return None;
    }
    let packing = Packing::of(pairs.clone())?;
    let mut words = Vec::with_capacity(count);
    words.extend(pairs.map(|pair| packing.pack(pair)));
    radix_sort(&mut words, packing.bits());
    words.dedup();
    Some((packing, words))
}

/// How a pair becomes one word.
struct Packing {
    first_base: u64,
    second_base: u64,
    first_bits: u32,
    second_bits: u32,
}

impl Packing {
    fn of(pairs: impl Iterator<Item = (u64, u64)>) -> Option<Self> {
        let mut low = (u64::MAX, u64::MAX);
        let mut high = (0, 0);
        for (first, second) in pairs {
            low = (low.0.min(first), low.1.min(second));
            high = (high.0.max(first), high.1.max(second));
        }
        let bits = |span: u64| 64 - span.leading_zeros();
        let packing = Self {
            first_base: low.0,
            second_base: low.1,
            first_bits: bits(high.0 - low.0),
            second_bits: bits(high.1 - low.1),
        };
        (packing.bits() <= 64 && packing.second_bits < 64).then_some(packing)
    }

    fn bits(&self) -> u32 {
        self.first_bits + self.second_bits
    }

    fn pack(&self, (first, second): (u64, u64)) -> u64 {
        ((first - self.first_base) << self.second_bits) | (second - self.second_base)
    }

    fn unpack(&self, word: u64) -> (u64, u64) {
        let mask = (1 << self.second_bits) - 1;
        (
            (word >> self.second_bits) + self.first_base,
            (word & mask) + self.second_base,
        )
    }
}

const DIGIT_BITS: u32 = 11;
const DIGITS: usize = 1 << DIGIT_BITS;

/// Sorts words of which only the lowest `bits` vary: least significant digit first.
fn radix_sort(words: &mut Vec<u64>, bits: u32) {
    let mut other = vec![0; words.len()];
    let mut shift = 0;
    while shift < bits {
        let digit = |word: u64| (word >> shift) as usize & (DIGITS - 1);
        let mut places = [0_usize; DIGITS];
        for word in words.iter() {
            places[digit(*word)] += 1;
        }
        let mut sum = 0;
        for place in &mut places {
            sum += std::mem::replace(place, sum);
        }
        for word in words.iter() {
            let place = &mut places[digit(*word)];
            other[*place] = *word;
            *place += 1;
        }
        std::mem::swap(words, &mut other);
        shift += DIGIT_BITS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn radix_and_comparison_agree(
            seed: u64,
            first_bits in 0..64_u32,
            second_bits in 0..64_u32,
        ) {
            let mut state = seed;
            let mut next = |bits: u32| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                if bits == 0 { 7 } else { (state >> 1) >> (63 - bits) }
            };
            let mut pairs: Vec<(u64, u64)> =
                (0..2 * RADIX_MINIMUM).map(|_| (next(first_bits), next(second_bits))).collect();
            let mut expected = pairs.clone();
            expected.sort_unstable();
            expected.dedup();
            prop_assert_eq!(&sorted_pairs(pairs.len(), pairs.iter().copied()), &expected);
            sort_pairs(&mut pairs);
            prop_assert_eq!(pairs, expected);
        }
    }
}
