//! Which queries proved too long for the thread that reads requests?

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Texts of heavy queries remembered.
const SLOTS: usize = 1024;

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
        // 0 is an empty slot.
        let hash = self.hasher.hash_one(text).max(1);
        let slot = hash as usize % SLOTS;
        Place { slot, hash }
    }

    pub(crate) fn has(&self, place: Place) -> bool {
        self.slots[place.slot].load(Relaxed) == place.hash
    }

    pub(crate) fn remember(&self, place: Place) {
        self.slots[place.slot].store(place.hash, Relaxed);
    }

    pub(crate) fn forget(&self, place: Place) {
        self.slots[place.slot].store(0, Relaxed);
    }
}
