//! Which queries proved too long for the thread that reads requests?

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Texts of heavy queries remembered.
const SLOTS: usize = 1024;
/// How often in a row a text must prove too long: now and then a busy machine makes a light query
/// seem heavy, and one that is remembered waits for heavy ones.
const PROOFS: u64 = 3;
/// Where a slot counts the proofs; the rest of it is the hash.
const COUNT: u64 = 0b11;

/// Texts that proved too long, by their hashes. A newer one replaces an older one in its slot.
pub(crate) struct HeavyTexts {
    hasher: RandomState,
    slots: Box<[AtomicU64]>,
}

/// Where a text is remembered.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    slot: usize,
    hash: u64,
}

impl HeavyTexts {
    pub(crate) fn new() -> Self {
        Self {
            hasher: RandomState::new(),
            slots: (0..SLOTS).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    pub(crate) fn place(&self, text: &str) -> Place {
        let hash = self.hasher.hash_one(text);
        Place {
            slot: (hash >> 32) as usize % SLOTS,
            hash: hash & !COUNT,
        }
    }

    pub(crate) fn has(&self, place: Place) -> bool {
        self.slots[place.slot].load(Relaxed) == place.hash | PROOFS
    }

    /// Notes one more proof that a text is too long.
    pub(crate) fn proved(&self, place: Place) {
        let slot = &self.slots[place.slot];
        let found = slot.load(Relaxed);
        let proofs = match found & !COUNT == place.hash {
            true => (found & COUNT) + 1,
            false => 1,
        };
        slot.store(place.hash | proofs.min(PROOFS), Relaxed);
    }

    /// Notes that a text is too long beyond doubt.
    pub(crate) fn remember(&self, place: Place) {
        self.slots[place.slot].store(place.hash | PROOFS, Relaxed);
    }

    /// Takes all proofs against a text back.
    pub(crate) fn forget(&self, place: Place) {
        let slot = &self.slots[place.slot];
        let found = slot.load(Relaxed);
        if found & !COUNT == place.hash && found & COUNT != 0 {
            slot.store(0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_heavy_after_proofs_in_a_row() {
        let texts = HeavyTexts::new();
        let place = texts.place("ASK {}");
        for _ in 1..PROOFS {
            texts.proved(place);
        }
        assert!(!texts.has(place));
        texts.forget(place);
        for _ in 1..PROOFS {
            texts.proved(place);
        }
        assert!(!texts.has(place), "an answer in time takes the proofs back");
        texts.proved(place);
        texts.proved(place);
        assert!(texts.has(place) && !texts.has(texts.place("ASK { }")));
        texts.forget(place);
        assert!(!texts.has(place));
        texts.remember(place);
        assert!(texts.has(place));
    }
}
