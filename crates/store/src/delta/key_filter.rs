//! Was this key touched? A blocked Bloom filter: "no" is certain, "yes" is to be looked up.
//!
//! All versions of a segment's changes share it, so it may know keys of versions that came later
//! or of changes since undone.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Keys for which a word of 64 bits is provided.
const KEYS_PER_WORD: usize = 4;

#[derive(Debug)]
pub(crate) struct KeyFilter {
    words: Box<[AtomicU64]>,
    /// Keys noted, repeats included where their bits were not all set.
    noted: AtomicUsize,
}

impl KeyFilter {
    /// A filter for about so many keys.
    pub(crate) fn for_keys(keys: usize) -> Self {
        let words = keys.div_ceil(KEYS_PER_WORD).next_power_of_two().max(8);
        Self {
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
            noted: AtomicUsize::new(0),
        }
    }

    /// True if it holds more keys than it was made for.
    pub(crate) fn is_full(&self) -> bool {
        self.noted.load(Ordering::Relaxed) > self.words.len() * KEYS_PER_WORD
    }

    pub(crate) fn note(&self, key: u64) {
        let (word, bits) = self.place(key);
        let before = self.words[word].fetch_or(bits, Ordering::Relaxed);
        if before & bits != bits {
            self.noted.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// False if the key was never noted.
    #[inline]
    pub(crate) fn may_hold(&self, key: u64) -> bool {
        let (word, bits) = self.place(key);
        self.words[word].load(Ordering::Relaxed) & bits == bits
    }

    #[inline]
    fn place(&self, key: u64) -> (usize, u64) {
        let hash = (key ^ (key >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let word = (hash >> 32) as usize & (self.words.len() - 1);
        let bits = (1 << (hash & 63)) | (1 << ((hash >> 6) & 63)) | (1 << ((hash >> 12) & 63));
        (word, bits)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.words.len() * 8
    }
}
