//! What has changed in a segment since the bulk load?

use std::sync::{Arc, OnceLock};

use jindou_model::{Change, Edge, EdgeRun, Neighbours, Patched, SortedSet, TermId, Unchanged};

use super::key_filter::KeyFilter;
use super::overlay::{Folded, Overlay};
use super::published::Published;

/// The changes of one (predicate, direction) of the default graph: one version of them.
///
/// `added` and `removed` say how it differs from the base. Readers look at the overlay and at
/// what changed since that was written out.
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
    overlay: Option<Arc<Overlay>>,
    recent: Recent,
    /// The whole segment of this version, once somebody asked for it; `None` without edges.
    published: OnceLock<Option<Arc<Published>>>,
}

/// What changed since the overlay was written out, or since the bulk load if there is none.
#[derive(Clone, Debug)]
pub(crate) struct Recent {
    pub(crate) added: SortedSet<Edge>,
    pub(crate) removed: SortedSet<Edge>,
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
            overlay: None,
            recent: Recent::of(SortedSet::new(), SortedSet::new()),
            published: OnceLock::new(),
        }
    }
}

impl Recent {
    fn of(added: SortedSet<Edge>, removed: SortedSet<Edge>) -> Self {
        let filter = KeyFilter::for_keys(2 * (added.len() + removed.len()));
        let edges = added.iter().chain(removed.iter());
        edges.for_each(|(key, _)| filter.note(key));
        Self {
            added,
            removed,
            filter: Arc::new(filter),
        }
    }

    /// Edges added and removed.
    pub(crate) fn len(&self) -> usize {
        self.added.len() + self.removed.len()
    }

    /// Notes that edges came, or went.
    fn change(&mut self, edges: &[(Edge, Change)]) {
        let (mut added, mut removed) = (Vec::new(), Vec::new());
        for (edge, change) in edges {
            match change {
                Change::Add if self.removed.contains(*edge) => {
                    removed.push((*edge, Change::Remove));
                }
                Change::Add => added.push((*edge, Change::Add)),
                Change::Remove if self.added.contains(*edge) => {
                    added.push((*edge, Change::Remove));
                }
                Change::Remove => removed.push((*edge, Change::Add)),
            }
        }
        self.added.apply(&added);
        self.removed.apply(&removed);
    }

    /// Lets the filter know of changes, which the sets have.
    fn note(&mut self, keys: &[u64]) {
        keys.iter().for_each(|key| self.filter.note(*key));
        if self.filter.is_full() {
            *self = Self::of(self.added.clone(), self.removed.clone());
        }
    }

    /// The neighbours of a key, of which `whole` are those that it had before.
    fn patch<'a>(&'a self, key: TermId, whole: Neighbours<'a>) -> Neighbours<'a> {
        let added = EdgeRun::of(&self.added, key.raw());
        let removed = EdgeRun::of(&self.removed, key.raw());
        if added.is_empty() && removed.is_empty() {
            return whole;
        }
        let base = match whole {
            Neighbours::Run { base, items } => Unchanged::Run(base, items),
            Neighbours::Ranges(ranges) => Unchanged::Ranges(ranges),
            Neighbours::Patched(_) => panic!("neither a base nor an overlay has changes"),
        };
        Neighbours::Patched(Patched {
            base,
            added,
            removed,
        })
    }

    /// The changes of these keys, which are sorted.
    fn of_keys(&self, keys: &[u64]) -> [Vec<(Edge, Change)>; 2] {
        [&self.added, &self.removed].map(|set| {
            let runs = keys.iter().map(|key| {
                let begin = set.rank_by(|edge| edge.0 < *key);
                set.slices(begin..set.rank_by(|edge| edge.0 <= *key))
            });
            let edges = runs.flatten().flatten();
            edges.map(|edge| (*edge, Change::Add)).collect()
        })
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
        next.published = OnceLock::new();
        next.added.apply(added);
        next.removed.apply(removed);
        match next.overlay {
            None => {
                next.recent.added = next.added.clone();
                next.recent.removed = next.removed.clone();
            }
            Some(_) => next.recent.change(&edges_changed(added, removed)),
        }
        let edges = added.iter().chain(removed);
        let mut keys: Vec<u64> = edges.map(|((key, _), _)| *key).collect();
        keys.sort_unstable();
        keys.dedup();
        next.recent.note(&keys);
        let (mut gained, mut lost) = (Vec::new(), Vec::new());
        for key in &keys {
            let id = TermId::from_raw(*key);
            let had = base(id);
            let has = !next.list(id, || had).is_empty();
            let change = |is: bool| if is { Change::Add } else { Change::Remove };
            gained.push((*key, change(had.is_empty() && has)));
            lost.push((*key, change(!had.is_empty() && !has)));
        }
        next.gained.apply_effective(gained);
        next.lost.apply_effective(lost);
        next
    }

    /// The edges that came and went since an earlier version of the same base, in order.
    pub(crate) fn edges_since(&self, before: &Self) -> Vec<(Edge, Change)> {
        edges_changed(
            &self.added.changes_since(&before.added),
            &self.removed.changes_since(&before.removed),
        )
    }

    /// This version, read through lists that another one was folded into; `None` if the two were
    /// read through different ones.
    pub(crate) fn with_overlay(&self, folded: Folded, of: &Self) -> Option<Self> {
        let same = match (&self.overlay, &of.overlay) {
            (None, None) => true,
            (Some(own), Some(its)) => Arc::ptr_eq(own, its),
            _ => false,
        };
        if !same {
            return None;
        }
        let (now, then) = (&self.recent, &of.recent);
        let is_folded = |edge: &Edge| folded.left.binary_search(&edge.0).is_err();
        let mut since = edges_changed(
            &now.added.changes_since(&then.added),
            &now.removed.changes_since(&then.removed),
        );
        since.retain(|(edge, _)| is_folded(edge));
        // A list that was left is still that of before all these changes.
        let [added, removed] = now.of_keys(&folded.left);
        let (mut recent_added, mut recent_removed) = (SortedSet::new(), SortedSet::new());
        recent_added.apply(&added);
        recent_removed.apply(&removed);
        let mut recent = Recent::of(recent_added, recent_removed);
        recent.change(&since);
        Some(Self {
            overlay: Some(Arc::new(folded.overlay)),
            recent: Recent::of(recent.added, recent.removed),
            ..self.clone()
        })
    }

    pub(crate) fn overlay(&self) -> Option<&Overlay> {
        self.overlay.as_deref()
    }

    /// What was published of this version: see [`Snapshot::published`](super::Snapshot::published).
    pub(crate) fn published(&self) -> &OnceLock<Option<Arc<Published>>> {
        &self.published
    }

    pub(crate) fn recent(&self) -> &Recent {
        &self.recent
    }

    /// False if nothing changed for the key since the overlay was written out.
    #[inline]
    pub(crate) fn may_touch(&self, key: TermId) -> bool {
        self.recent.len() > 0 && self.recent.filter.may_hold(key.raw())
    }

    /// False if nothing changed for the key since the bulk load.
    pub(crate) fn may_have_changed(&self, key: TermId) -> bool {
        let had_changed = |overlay: &Overlay| overlay.may_have_changed(key);
        self.may_touch(key) || self.overlay().is_some_and(had_changed)
    }

    /// The neighbours of a key; `base` tells those that the base has.
    #[inline]
    pub(crate) fn list<'a>(
        &'a self,
        key: TermId,
        base: impl FnOnce() -> Neighbours<'a>,
    ) -> Neighbours<'a> {
        let written = self.overlay().and_then(|overlay| overlay.list(key));
        let whole = written.unwrap_or_else(base);
        if self.may_touch(key) {
            self.recent.patch(key, whole)
        } else {
            whole
        }
    }

    /// Makes the lists of many keys, as they were when lists were written out, those of now.
    pub(crate) fn patch<'a>(&'a self, keys: &[TermId], lists: &mut [Neighbours<'a>]) {
        if self.recent.len() == 0 {
            return;
        }
        for (key, list) in keys.iter().zip(lists) {
            if self.may_touch(*key) {
                *list = self.recent.patch(*key, *list);
            }
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        let published = self.published.get().and_then(Option::as_ref);
        published.map_or(0, |published| published.segment().bytes())
            + self.added.bytes()
            + self.removed.bytes()
            + self.gained.bytes()
            + self.lost.bytes()
            + self.overlay().map_or(0, Overlay::bytes)
            + self.recent.added.bytes()
            + self.recent.removed.bytes()
            + self.recent.filter.bytes()
    }
}

/// The edges that came and went, in order, from the changes of a set of those added and of one of
/// those removed.
fn edges_changed(added: &[(Edge, Change)], removed: &[(Edge, Change)]) -> Vec<(Edge, Change)> {
    let mut edges = added.to_vec();
    edges.extend(removed.iter().map(|(edge, change)| match change {
        Change::Add => (*edge, Change::Remove),
        Change::Remove => (*edge, Change::Add),
    }));
    edges.sort_unstable_by_key(|(edge, _)| *edge);
    edges
}
