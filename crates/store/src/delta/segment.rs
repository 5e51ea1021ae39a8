//! What has changed in a segment since the bulk load?

use std::sync::Arc;

use jindou_model::{Change, Edge, EdgeRun, Neighbours, Patched, SortedSet, TermId, Unchanged};

use super::key_filter::KeyFilter;

/// The changes of one (predicate, direction) of the default graph: one version of them.
#[derive(Clone, Debug)]
pub(crate) struct SegmentDelta {
    /// Edges that the base does not have.
    pub(crate) added: SortedSet<Edge>,
    /// Edges of the base that are gone.
    pub(crate) removed: SortedSet<Edge>,
    /// Keys that have edges and had none in the base.
    pub(crate) gained: SortedSet<u64>,
    /// Keys that had edges in the base and have none.
    pub(crate) lost: SortedSet<u64>,
    /// No other version has this number.
    pub(crate) version: u64,
    filter: Arc<KeyFilter>,
}

impl Default for SegmentDelta {
    fn default() -> Self {
        Self {
            added: SortedSet::new(),
            removed: SortedSet::new(),
            gained: SortedSet::new(),
            lost: SortedSet::new(),
            version: 0,
            filter: Arc::new(KeyFilter::for_keys(0)),
        }
    }
}

impl SegmentDelta {
    /// The next version: `added` and `removed` are changes of the sets of these names.
    ///
    /// `base` tells what the base has for a key.
    pub(crate) fn changed<'b>(
        &self,
        version: u64,
        added: &[(Edge, Change)],
        removed: &[(Edge, Change)],
        base: impl Fn(TermId) -> Neighbours<'b>,
    ) -> Self {
        let mut next = self.clone();
        next.version = version;
        next.added.apply(added);
        next.removed.apply(removed);
        let mut keys: Vec<u64> = added
            .iter()
            .chain(removed)
            .map(|((key, _), _)| *key)
            .collect();
        keys.sort_unstable();
        keys.dedup();
        let (mut gained, mut lost) = (Vec::new(), Vec::new());
        for key in &keys {
            next.filter.note(*key);
            let had = base(TermId::from_raw(*key));
            let has = !next.patch(TermId::from_raw(*key), had).is_empty();
            let change = |is: bool| if is { Change::Add } else { Change::Remove };
            gained.push((*key, change(had.is_empty() && has)));
            lost.push((*key, change(!had.is_empty() && !has)));
        }
        next.gained.apply(&gained);
        next.lost.apply(&lost);
        if next.filter.is_full() {
            next.filter = Arc::new(next.filter_of_all());
        }
        next
    }

    fn filter_of_all(&self) -> KeyFilter {
        let filter = KeyFilter::for_keys(2 * (self.added.len() + self.removed.len()));
        let edges = self.added.iter().chain(self.removed.iter());
        edges.for_each(|(key, _)| filter.note(key));
        filter
    }

    /// False if nothing changed for the key.
    #[inline]
    pub(crate) fn may_touch(&self, key: TermId) -> bool {
        self.filter.may_hold(key.raw())
    }

    /// The neighbours of a key, of which `base` are those that the base has.
    pub(crate) fn patch<'a>(&'a self, key: TermId, base: Neighbours<'a>) -> Neighbours<'a> {
        let added = EdgeRun::of(&self.added, key.raw());
        let removed = EdgeRun::of(&self.removed, key.raw());
        if added.is_empty() && removed.is_empty() {
            return base;
        }
        let base = match base {
            Neighbours::Run { base, items } => Unchanged::Run(base, items),
            Neighbours::Ranges(ranges) => Unchanged::Ranges(ranges),
            Neighbours::Patched(_) => panic!("a base has no changes"),
        };
        Neighbours::Patched(Patched {
            base,
            added,
            removed,
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.added.bytes()
            + self.removed.bytes()
            + self.gained.bytes()
            + self.lost.bytes()
            + self.filter.bytes()
    }
}
