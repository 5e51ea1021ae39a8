//! Was a query of this shape planned before?
//!
//! Shapes are found by their bytes. A shape knows which of its arguments are part of a plan's
//! structure (predicates, types, graphs): their texts select one of its plans, all other
//! arguments are parameters. Shards keep writers out of each other's way; readers share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher as _;

use crate::physical::Plan;

const SHARDS: usize = 16;

/// A plan for all texts of one shape and one choice of structural arguments.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    pub(crate) plan: Arc<Plan>,
    pub(crate) prefixes: Prefixes,
}

/// For each argument slot the IRI of the prefix, for arguments that follow one.
pub(crate) type Prefixes = Arc<[Option<Box<str>>]>;

/// Which arguments of a shape are structural: their slots, ascending.
pub(crate) type Structural = Arc<[u16]>;

#[derive(Debug)]
struct Entry {
    key: Box<[u8]>,
    structural: Structural,
    /// By the texts of the structural arguments.
    templates: FxHashMap<Box<[u8]>, Template>,
    last_used: AtomicU64,
}

/// What the cache knows of a text.
pub(crate) enum Found {
    Plan(Template),
    /// The shape is known, with these structural arguments, but not for their texts.
    Shape(Structural),
    Nothing,
}

/// Plans by shape, a bounded number of them.
#[derive(Debug)]
pub(crate) struct Cache {
    /// Entries by the hash of their key, of which each is computed once.
    shards: Vec<RwLock<FxHashMap<u64, Entry>>>,
    plans_per_shard: usize,
    clock: AtomicU64,
    /// Counts how often the cache was emptied, so that no plan made before comes in after.
    generation: AtomicU64,
}

impl Cache {
    /// A cache of about `plans` plans; none at all for 0.
    pub(crate) fn new(plans: usize) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            plans_per_shard: plans.div_ceil(SHARDS),
            clock: AtomicU64::new(0),
            generation: AtomicU64::new(0),
        }
    }

    pub(crate) fn is_used(&self) -> bool {
        self.plans_per_shard > 0
    }

    fn shard(&self, hash: u64) -> &RwLock<FxHashMap<u64, Entry>> {
        &self.shards[(hash >> 32) as usize % SHARDS]
    }

    /// Looks a shape up; `structure` appends the texts of the given slots.
    pub(crate) fn find(&self, key: &[u8], structure: impl Fn(&[u16], &mut Vec<u8>)) -> Found {
        let hash = FxBuildHasher.hash_one(key);
        let shard = self.shard(hash).read();
        let Some(entry) = shard.get(&hash).filter(|entry| *entry.key == *key) else {
            return Found::Nothing;
        };
        let mut texts = Vec::with_capacity(128);
        structure(&entry.structural, &mut texts);
        match entry.templates.get(texts.as_slice()) {
            Some(template) => {
                let now = self.clock.load(Ordering::Relaxed);
                entry.last_used.store(now, Ordering::Relaxed);
                Found::Plan(template.clone())
            }
            None => Found::Shape(Arc::clone(&entry.structural)),
        }
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Keeps a plan, unless the cache was emptied since `generation`.
    pub(crate) fn insert(
        &self,
        key: &[u8],
        structural: &Structural,
        texts: Vec<u8>,
        template: Template,
        generation: u64,
    ) {
        let hash = FxBuildHasher.hash_one(key);
        let mut shard = self.shard(hash).write();
        if self.generation() != generation {
            return;
        }
        let now = self.clock.fetch_add(1, Ordering::Relaxed) + 1;
        let mut plans: usize = shard.values().map(|entry| entry.templates.len()).sum();
        while plans >= self.plans_per_shard {
            let oldest = shard
                .iter()
                .min_by_key(|(_, entry)| entry.last_used.load(Ordering::Relaxed))
                .map(|(hash, _)| *hash);
            let Some(entry) = oldest.and_then(|oldest| shard.remove(&oldest)) else {
                break;
            };
            plans -= entry.templates.len();
        }
        let new = || Entry {
            key: key.into(),
            structural: Arc::clone(structural),
            templates: FxHashMap::default(),
            last_used: AtomicU64::new(now),
        };
        let entry = shard.entry(hash).or_insert_with(new);
        // Another shape with the same hash gives way.
        if *entry.key != *key {
            *entry = new();
        }
        // More arguments turned out to be structural: the plans kept so far may be too general.
        if entry.structural != *structural {
            let mut all: Vec<u16> = entry.structural.to_vec();
            all.extend(structural.iter());
            all.sort_unstable();
            all.dedup();
            entry.templates.clear();
            entry.structural = all.into();
            if entry.structural != *structural {
                return;
            }
        }
        entry.last_used.store(now, Ordering::Relaxed);
        entry.templates.insert(texts.into(), template);
    }

    /// Forgets all plans.
    pub(crate) fn clear(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        for shard in &self.shards {
            shard.write().clear();
        }
    }

    /// Plans kept.
    pub(crate) fn len(&self) -> usize {
        self.shards
            .iter()
            .map(|shard| {
                let shard = shard.read();
                shard
                    .values()
                    .map(|entry| entry.templates.len())
                    .sum::<usize>()
            })
            .sum()
    }
}
