//! How many different terms are at one end of edges, and how many edges have ends of each kind?
//!
//! Answered from domains and offsets, without a look at neighbours: what a base has is counted once and kept with it,
//! and what changed since is counted at each version of the changes. So a question costs the keys of its segments the
//! first time after a merge, the changes since the base after a commit, and nothing when it is asked again.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jindou_model::{
    Counted, Direction, EndsAsked, GraphRef, KindCount, Membership, PredicateId, TermId, TermKind,
};
use parking_lot::{Mutex, RwLock};
use rustc_hash::{FxHashMap, FxHashSet};

use super::snapshot::Snapshot;
use super::view::LayerView;
use crate::kind_counts::{BaseTally, KindCounts, TermSet};
use crate::{Layer, LayerKind};

/// Answers kept at most; all are dropped when there are more.
const MOST_KEPT: usize = 1 << 14;
/// Keys of segments that these have together at most: most answers are about one, or about all of a layer.
const MOST_PARTS: usize = 1 << 20;
/// Kinds that were put into answers at most until all are dropped: some ten megabytes.
const MOST_KEPT_KINDS: usize = 1 << 18;
/// Terms that are counted between two looks at whether anybody still waits.
const TERMS_AT_ONCE: usize = 1 << 16;

/// A segment, whose direction is that of the question.
type Part = (LayerKind, PredicateId);

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    /// Set where only the edges that this graph has count.
    graph: Option<TermId>,
    parts: Box<[Part]>,
    direction: Direction,
    counted: Counted,
    by_kind: bool,
}

/// What is known of it.
#[derive(Default)]
struct Kept {
    base: Mutex<Option<Arc<KindCounts>>>,
    last: Mutex<Option<Answer>>,
}

/// The answer last given, and the versions of the changes that it holds for.
type Answer = (Box<[u64]>, Arc<KindCounts>);

/// What was counted in a generation.
#[derive(Default)]
pub(crate) struct EndCounts {
    kept: RwLock<KeptByKey>,
    /// Kinds that were put into answers since all were dropped.
    kinds: AtomicUsize,
}

#[derive(Default)]
struct KeptByKey {
    by_key: FxHashMap<Key, Arc<Kept>>,
    parts: usize,
}

impl EndCounts {
    fn get(&self, key: &Key) -> Arc<Kept> {
        if let Some(kept) = self.kept.read().by_key.get(key) {
            return Arc::clone(kept);
        }
        let mut kept = self.kept.write();
        if kept.by_key.len() >= MOST_KEPT || kept.parts + key.parts.len() > MOST_PARTS {
            *kept = KeptByKey::default();
        }
        kept.parts += key.parts.len();
        Arc::clone(kept.by_key.entry(key.clone()).or_default())
    }

    /// Notes that counts are kept, and drops all that are if these are too many together.
    fn note(&self, counts: &KindCounts) {
        let kinds = counts.kinds();
        if self.kinds.fetch_add(kinds, Ordering::Relaxed) + kinds > MOST_KEPT_KINDS {
            *self.kept.write() = KeptByKey::default();
            self.kinds.store(0, Ordering::Relaxed);
        }
    }
}

/// Says how many bytes are held, and hears whether to go on.
type Poll<'p> = &'p mut dyn FnMut(usize) -> bool;

impl Snapshot {
    /// Counts the terms at one end of edges, or these edges; `None` where it has no quicker way than to look at the
    /// edges: in the merge of several named graphs, for the edges of a predicate that both the default graph and named
    /// ones have where these are one, and in a node's part. `None`, too, once `poll` says so, which is told how many
    /// bytes are held.
    ///
    /// Costs what the [module](self) says; in one named graph that shares a predicate with others, its edges of that
    /// instead of keys.
    pub fn count_ends(&self, asked: &EndsAsked<'_>, poll: Poll<'_>) -> Option<Vec<KindCount>> {
        if self.base().node_part().is_some() {
            return None;
        }
        let layers: &[LayerKind] = match asked.graph {
            GraphRef::Default => &[LayerKind::Default],
            GraphRef::Named => &[LayerKind::Named],
            GraphRef::Union => &[LayerKind::Default, LayerKind::Named],
            GraphRef::One(graph) => return self.count_ends_in(graph, asked, poll),
            GraphRef::Some([]) => return Some(Vec::new()),
            GraphRef::Some([graph]) => return self.count_ends_in(*graph, asked, poll),
            GraphRef::Some(_) | GraphRef::Each(_) => return None,
        };
        let mut parts = Vec::new();
        for layer in layers {
            let view = self.layer(*layer);
            let all = match asked.predicate {
                Some(predicate) => predicate.0..predicate.0 + 1,
                None => 0..self.predicate_count() as u32,
            };
            let has_edges = |p: &PredicateId| view.counts(*p, asked.direction).0 > 0;
            let with_edges = all.map(PredicateId).filter(has_edges);
            parts.extend(with_edges.map(|predicate| (*layer, predicate)));
        }
        let mut seen = FxHashSet::default();
        let is_twice = parts.iter().any(|(_, predicate)| !seen.insert(*predicate));
        if asked.counted == Counted::Edges && is_twice {
            return None;
        }
        self.count_parts(None, parts, asked, poll)
    }

    /// The same of one named graph.
    fn count_ends_in(
        &self,
        graph: TermId,
        asked: &EndsAsked<'_>,
        poll: Poll<'_>,
    ) -> Option<Vec<KindCount>> {
        let mut predicates = match asked.predicate {
            Some(predicate) => vec![predicate],
            None => self.predicates_of_graph(graph),
        };
        predicates.retain(|predicate| self.graph_quads(graph, Some(*predicate)) > 0);
        predicates.sort_unstable();
        predicates.dedup();
        let layer = self.named_layer();
        let has_all = |predicate: &PredicateId| {
            let all = layer.counts(*predicate, Direction::Out).0;
            self.graph_quads(graph, Some(*predicate)) == all
        };
        let is_alone = predicates.iter().all(has_all);
        let parts = predicates.into_iter().map(|p| (LayerKind::Named, p));
        self.count_parts((!is_alone).then_some(graph), parts.collect(), asked, poll)
    }

    fn count_parts(
        &self,
        graph: Option<TermId>,
        parts: Vec<Part>,
        asked: &EndsAsked<'_>,
        poll: Poll<'_>,
    ) -> Option<Vec<KindCount>> {
        if let Some(count) = self.known_count(graph, &parts, asked) {
            let all = KindCount {
                term: TermId::NONE,
                count,
            };
            return Some(Vec::from_iter((count > 0).then_some(all)));
        }
        let key = Key {
            graph,
            parts: parts.into(),
            direction: asked.direction,
            counted: asked.counted,
            by_kind: asked.by_kind,
        };
        let counts = self.kept_counts(&key, poll)?;
        if asked.by_kind {
            return Some(counts.list());
        }
        let all = KindCount {
            term: TermId::NONE,
            count: counts.total(),
        };
        Some(Vec::from_iter((all.count > 0).then_some(all)))
    }

    /// What statistics say, of all kinds together.
    fn known_count(
        &self,
        graph: Option<TermId>,
        parts: &[Part],
        asked: &EndsAsked<'_>,
    ) -> Option<u64> {
        if asked.by_kind {
            return None;
        }
        let counts =
            |(layer, predicate): &Part| self.layer(*layer).counts(*predicate, asked.direction);
        match (asked.counted, graph, parts) {
            (_, _, []) => Some(0),
            (Counted::Edges, None, parts) => Some(parts.iter().map(|part| counts(part).0).sum()),
            (Counted::Edges, Some(graph), parts) => {
                let quads = |(_, p): &Part| self.graph_quads(graph, Some(*p));
                Some(parts.iter().map(quads).sum())
            }
            (Counted::Terms, None, [only]) => Some(counts(only).1),
            (Counted::Terms, ..) => None,
        }
    }

    fn kept_counts(&self, key: &Key, poll: Poll<'_>) -> Option<Arc<KindCounts>> {
        let versions: Box<[u64]> = key
            .parts
            .iter()
            .map(|part| self.end_version(key, part))
            .collect();
        let kept = self.generation.end_counts.get(key);
        if let Some((of, counts)) = &*kept.last.lock()
            && *of == versions
        {
            return Some(Arc::clone(counts));
        }
        let counts = match key.graph {
            Some(graph) => Arc::new(self.counts_of_graph(graph, key, poll)?),
            None => {
                let known = kept.base.lock().clone();
                let base = match known {
                    Some(known) => known,
                    None => {
                        let found = Arc::new(self.counts_of_base(key, poll)?);
                        self.generation.end_counts.note(&found);
                        *kept.base.lock() = Some(Arc::clone(&found));
                        found
                    }
                };
                match versions.iter().all(|version| *version == 0) {
                    true => base,
                    false => Arc::new(self.counts_with_changes(&base, key, poll)?),
                }
            }
        };
        *kept.last.lock() = Some((versions, Arc::clone(&counts)));
        self.generation.end_counts.note(&counts);
        Some(counts)
    }

    /// A number that no other version of what is counted of a segment has.
    fn end_version(&self, key: &Key, (layer, predicate): &Part) -> u64 {
        let of_layer = self.layer(*layer).version(*predicate, key.direction);
        match key.graph {
            None => of_layer,
            // An edge may come to a graph, or go, that others have.
            Some(_) => of_layer.max(self.delta.named.version(*predicate)),
        }
    }

    /// Counts what one of several graphs has of predicates, edge by edge.
    fn counts_of_graph(&self, graph: TermId, key: &Key, poll: Poll<'_>) -> Option<KindCounts> {
        let (mut counts, mut terms, mut edges) =
            (KindCounts::new(key.by_kind), TermSet::default(), 0_usize);
        for (_, predicate) in &key.parts {
            let flow = self.for_each_edge_of_graph(graph, *predicate, &mut |subject, object| {
                let end = match key.direction {
                    Direction::Out => subject,
                    Direction::In => object,
                };
                match key.counted {
                    Counted::Edges => counts.add(self, end, 1),
                    Counted::Terms => terms.add(end, 1),
                }
                edges += 1;
                match edges.is_multiple_of(TERMS_AT_ONCE)
                    && !(counts.are_few() && poll(terms.bytes()))
                {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            });
            if flow.is_break() {
                return None;
            }
        }
        terms.for_each_stretch(&mut |first, len| {
            (0..len as u64).for_each(|n| counts.add(self, TermId::from_raw(first.raw() + n), 1));
        });
        counts.are_few().then_some(counts)
    }

    /// Counts what the base has.
    fn counts_of_base(&self, key: &Key, poll: Poll<'_>) -> Option<KindCounts> {
        let mut tally = BaseTally::new(self, key.by_kind);
        let mut seen = TermSet::default();
        let is_union = key.counted == Counted::Terms && key.parts.len() > 1;
        for (layer, predicate) in &key.parts {
            let layer = self.base().layer(*layer);
            let mut wanted = true;
            let mut waiting = 0;
            for_each_end(layer, *predicate, key.direction, &mut |ends| {
                if !wanted {
                    return;
                }
                match key.counted {
                    Counted::Terms if is_union => seen.add(ends.first, ends.len),
                    Counted::Terms => tally.add(ends.first, ends.len, ends.len as i64, |_| 1),
                    Counted::Edges => tally.add(ends.first, ends.len, ends.all(), |n| ends.of(n)),
                }
                waiting += ends.len;
                if waiting >= TERMS_AT_ONCE {
                    waiting = 0;
                    wanted = tally.are_few() && poll(seen.bytes());
                }
            });
            if !wanted || !poll(seen.bytes()) {
                return None;
            }
        }
        let (mut waiting, mut wanted, bytes) = (0, true, seen.bytes());
        seen.for_each_stretch(&mut |first, len| {
            if wanted {
                tally.add(first, len, len as i64, |_| 1);
                waiting += len;
                if waiting >= TERMS_AT_ONCE {
                    waiting = 0;
                    wanted = tally.are_few() && poll(bytes);
                }
            }
        });
        (wanted && tally.are_few()).then(|| tally.counts())
    }

    /// What was counted of the base, with the changes since.
    fn counts_with_changes(
        &self,
        base: &KindCounts,
        key: &Key,
        poll: Poll<'_>,
    ) -> Option<KindCounts> {
        let mut counts = base.clone();
        let changed = key.parts.iter().filter_map(|(layer, predicate)| {
            self.delta.layers[*layer as usize].segment(*predicate, key.direction)
        });
        match (key.counted, &*key.parts) {
            (Counted::Edges, _) => {
                for delta in changed {
                    let mut add = |edge: (u64, u64), count| {
                        counts.add(self, TermId::from_raw(edge.0), count);
                    };
                    delta.added.iter().for_each(|edge| add(edge, 1));
                    delta.removed.iter().for_each(|edge| add(edge, -1));
                    if !poll(0) {
                        return None;
                    }
                }
            }
            (Counted::Terms, [_]) => {
                for delta in changed {
                    let mut add = |id, count| counts.add(self, TermId::from_raw(id), count);
                    delta.gained.iter().for_each(|id| add(id, 1));
                    delta.lost.iter().for_each(|id| add(id, -1));
                }
            }
            (Counted::Terms, _) => {
                let (mut gained, mut lost) = (Vec::new(), Vec::new());
                for delta in changed {
                    gained.extend(delta.gained.iter());
                    lost.extend(delta.lost.iter());
                    if !poll((gained.capacity() + lost.capacity()) * size_of::<u64>()) {
                        return None;
                    }
                }
                self.follow_terms(gained, lost, key, &mut counts, poll)?;
            }
        }
        counts.are_few().then_some(counts)
    }

    /// Counts the terms that some segments gained or lost, where all of them together did.
    fn follow_terms(
        &self,
        mut gained: Vec<u64>,
        mut lost: Vec<u64>,
        key: &Key,
        counts: &mut KindCounts,
        poll: Poll<'_>,
    ) -> Option<()> {
        for ids in [&mut gained, &mut lost] {
            ids.sort_unstable();
            ids.dedup();
        }
        let bytes = (gained.capacity() + lost.capacity()) * size_of::<u64>();
        lost.retain(|id| gained.binary_search(id).is_err());
        let mut may_go_on = |number: usize| !number.is_multiple_of(TERMS_AT_ONCE) || poll(bytes);
        for (number, id) in gained.into_iter().enumerate() {
            if !self.base_has_end(TermId::from_raw(id), key) {
                counts.add(self, TermId::from_raw(id), 1);
            }
            if !may_go_on(number + 1) {
                return None;
            }
        }
        for (number, id) in lost.into_iter().enumerate() {
            if !self.has_end(TermId::from_raw(id), key) {
                counts.add(self, TermId::from_raw(id), -1);
            }
            if !may_go_on(number + 1) {
                return None;
            }
        }
        Some(())
    }

    /// True if a term has an edge of one of the segments in the base.
    fn base_has_end(&self, id: TermId, key: &Key) -> bool {
        let base = self.base();
        match id.kind() {
            TermKind::Vertex if id.number() >= base.vertex_count() => return false,
            TermKind::Literal if id.number() >= base.literal_count() => return false,
            _ => {}
        }
        let has = |(layer, predicate): &Part| {
            let asked = Membership::Has(*predicate, key.direction);
            base.layer(*layer).has_trait(id, asked)
        };
        key.parts.iter().any(has)
    }

    /// True if a term has an edge of one of the segments now.
    fn has_end(&self, id: TermId, key: &Key) -> bool {
        let has = |(layer, predicate): &Part| {
            let layer: LayerView<'_> = self.layer(*layer);
            layer.is_member(id, Membership::Has(*predicate, key.direction))
        };
        key.parts.iter().any(has)
    }
}

/// Keys of a segment of the base that follow one another.
struct Ends<'a> {
    first: TermId,
    len: usize,
    /// Edges before the n-th of them.
    before: &'a dyn Fn(usize) -> usize,
}

impl Ends<'_> {
    /// Edges of all.
    fn all(&self) -> i64 {
        ((self.before)(self.len) - (self.before)(0)) as i64
    }

    /// Edges of the n-th.
    fn of(&self, n: usize) -> i64 {
        ((self.before)(n + 1) - (self.before)(n)) as i64
    }
}

/// Calls `visit` with all keys of a segment of the base.
fn for_each_end(
    layer: &Layer,
    predicate: PredicateId,
    direction: Direction,
    visit: &mut dyn FnMut(&Ends<'_>),
) {
    if predicate != PredicateId::TYPE {
        let Some(segment) = layer.segment(predicate, direction) else {
            return;
        };
        return segment.domain().for_each_stretch(&mut |first, len, row| {
            let before = |n: usize| match n {
                0 => segment.bounds(row).0,
                n => segment.bounds(row + n - 1).1,
            };
            visit(&Ends {
                first,
                len,
                before: &before,
            });
        });
    }
    match direction {
        Direction::Out => {
            for (members, types) in layer.clusters().typed_stretches() {
                visit(&Ends {
                    first: TermId::vertex(members.start),
                    len: (members.end - members.start) as usize,
                    before: &|n| n * types.len(),
                });
            }
        }
        Direction::In => {
            for class in layer.clusters().types() {
                let members = layer.neighbours(predicate, direction, class).len();
                visit(&Ends {
                    first: class,
                    len: 1,
                    before: &|n| n * members,
                });
            }
        }
    }
}
