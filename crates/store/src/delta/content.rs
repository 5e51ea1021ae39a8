//! When did the quads of a predicate change last, whichever base has them by now?

use std::sync::atomic::{AtomicU64, Ordering};

use jindou_model::PredicateId;

use super::paged::Paged;
use crate::LayerKind;

/// The last number that was given to a change, or to a base that was not made by a merge, in this process.
static LAST: AtomicU64 = AtomicU64::new(0);

/// For each predicate of each layer a number that only changes of its quads make another one: merges leave
/// it as it is.
#[derive(Clone, Debug)]
pub(crate) struct ContentVersions {
    /// That of all quads that were there at the beginning.
    origin: u64,
    changed: [Paged<u64>; 2],
}

impl Default for ContentVersions {
    fn default() -> Self {
        Self {
            origin: next(),
            changed: Default::default(),
        }
    }
}

impl ContentVersions {
    pub(super) fn note(&mut self, layer: LayerKind, predicate: PredicateId) {
        self.changed[layer as usize].set(predicate.index(), next());
    }

    pub(super) fn of(&self, layer: LayerKind, predicate: PredicateId) -> u64 {
        let changed = self.changed[layer as usize].get(predicate.index());
        changed.copied().unwrap_or(self.origin)
    }
}

fn next() -> u64 {
    LAST.fetch_add(1, Ordering::Relaxed)
}
