//! Sets of ids that were asked for in named graphs, kept while what they were made from stays.

use std::hash::{Hash, Hasher};

use hashbrown::HashTable;
use jindou_model::{IdRanges, Membership, TermId};
use parking_lot::RwLock;
use rustc_hash::FxHasher;

/// Sets kept at most, and ranges of all of them; all are dropped when there are more.
const MOST_SETS: usize = 4096;
const MOST_RANGES: usize = 1 << 20;
/// Sets of more graphs are not kept.
const MOST_GRAPHS: usize = 64;

/// Graphs, traits, and whether predicates count too.
type Key<'a> = (&'a [TermId], &'a [Membership], bool);

/// A set that was asked for, with the versions of the changes that it was made from.
struct Kept {
    hash: u64,
    graphs: Box<[TermId]>,
    traits: Box<[Membership]>,
    exact: bool,
    versions: Box<[u64]>,
    set: Option<IdRanges>,
}

impl Kept {
    fn is_of(&self, hash: u64, (graphs, traits, exact): Key<'_>) -> bool {
        self.hash == hash
            && self.exact == exact
            && *self.graphs == *graphs
            && *self.traits == *traits
    }
}

#[derive(Default)]
pub(crate) struct GraphSetCache {
    sets: RwLock<Sets>,
}

#[derive(Default)]
struct Sets {
    table: HashTable<Kept>,
    ranges: usize,
}

impl GraphSetCache {
    /// The set of a key at these versions, made if it is not there.
    pub(crate) fn get<V: Iterator<Item = u64>>(
        &self,
        key: Key<'_>,
        versions: impl Fn() -> V,
        make: impl FnOnce() -> Option<IdRanges>,
    ) -> Option<IdRanges> {
        let mut hasher = FxHasher::default();
        key.hash(&mut hasher);
        let hash = hasher.finish();
        if let Some(kept) = self
            .sets
            .read()
            .table
            .find(hash, |kept| kept.is_of(hash, key))
            && kept.versions.iter().copied().eq(versions())
        {
            return kept.set.clone();
        }
        let set = make();
        let (graphs, traits, exact) = key;
        let ranges = set.as_ref().map_or(0, |set| set.ranges().len());
        if ranges > MOST_RANGES || graphs.len() > MOST_GRAPHS {
            return set;
        }
        let kept = Kept {
            hash,
            graphs: graphs.into(),
            traits: traits.into(),
            exact,
            versions: versions().collect(),
            set: set.clone(),
        };
        let mut sets = self.sets.write();
        if sets.table.len() >= MOST_SETS || sets.ranges + ranges > MOST_RANGES {
            *sets = Sets::default();
        }
        sets.ranges += ranges;
        match sets.table.find_mut(hash, |kept| kept.is_of(hash, key)) {
            Some(old) => *old = kept,
            None => {
                sets.table.insert_unique(hash, kept, |kept| kept.hash);
            }
        }
        set
    }
}
