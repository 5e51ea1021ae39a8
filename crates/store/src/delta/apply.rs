//! From a list of quads to the next version of a snapshot.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use jindou_model::{Change, Direction, Edge, IdQuad, PredicateId, SortedSet, TermId};

use super::LayerDelta;
use super::named::GraphQuad;
use super::segment::SegmentDelta;
use super::snapshot::Snapshot;
use super::transaction::Stage;
use crate::LayerKind;
use crate::layer::Layer;

/// Quads to remove, then quads to add; repeats and quads that are absent or there are allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Removed first.
    pub remove: Vec<IdQuad>,
    /// Then added. The graph of a quad in the default graph is [`TermId::NONE`].
    pub add: Vec<IdQuad>,
}

impl Changes {
    /// True if nothing is asked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.remove.is_empty() && self.add.is_empty()
    }
}

/// What a change came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// Quads that were not there.
    pub added: u64,
    /// Quads that were there.
    pub removed: u64,
    /// Named graphs that exist without quads from now on, or only with quads.
    pub graphs: u64,
}

/// Edges of one predicate from which on two threads share the work.
const SHARED_FROM: usize = 2048;

/// The effective changes of both sets of a delta.
struct Split<T> {
    added: Vec<(T, Change)>,
    removed: Vec<(T, Change)>,
}

impl Split<Edge> {
    fn len(&self) -> usize {
        self.added.len() + self.removed.len()
    }

    /// The keys of the edges, in order.
    fn keys(&self) -> Vec<u64> {
        let all = self.added.iter().chain(&self.removed);
        let mut keys: Vec<u64> = all.map(|((key, _), _)| *key).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// The same edges from their other ends.
    fn reversed(&self) -> Self {
        let reversed = |list: &[(Edge, Change)]| {
            let edges = list
                .iter()
                .map(|((from, to), change)| ((*to, *from), *change));
            let mut edges: Vec<(Edge, Change)> = edges.collect();
            edges.sort_unstable_by_key(|(edge, _)| *edge);
            edges
        };
        Self {
            added: reversed(&self.added),
            removed: reversed(&self.removed),
        }
    }

    fn append(&mut self, mut after: Self) {
        self.added.append(&mut after.added);
        self.removed.append(&mut after.removed);
    }
}

/// One direction of a predicate in a layer: its changes, and the predicates of each vertex, so that a
/// vertex alone can be asked for them.
struct Side {
    segment: Arc<SegmentDelta>,
    gained: SortedSet<(u64, u32)>,
    lost: SortedSet<(u64, u32)>,
}

impl Side {
    /// The next version.
    fn changed(
        self,
        (base, version): (&Layer, u64),
        (predicate, direction): (PredicateId, Direction),
        split: &Split<Edge>,
    ) -> Self {
        let of_base = |key: TermId| base.neighbours(predicate, direction, key);
        let (added, removed) = (&split.added, &split.removed);
        let segment = self.segment.changed(version, added, removed, of_base);
        let (mut gained, mut lost) = (Vec::new(), Vec::new());
        for key in split.keys() {
            let change = |is: bool| if is { Change::Add } else { Change::Remove };
            gained.push(((key, predicate.0), change(segment.gained.contains(key))));
            lost.push(((key, predicate.0), change(segment.lost.contains(key))));
        }
        let mut next = Self {
            segment: Arc::new(segment),
            ..self
        };
        next.gained.apply_effective(gained);
        next.lost.apply_effective(lost);
        next
    }
}

/// Both of two pieces of work, on two threads if they are `large`.
fn both<A: Send, B: Send>(
    large: bool,
    one: impl FnOnce() -> A + Send,
    other: impl FnOnce() -> B + Send,
) -> (A, B) {
    match large {
        true => rayon::join(one, other),
        false => (one(), other()),
    }
}

impl LayerDelta {
    fn side(&self, predicate: PredicateId, direction: Direction) -> Side {
        let segment = self.segments[direction as usize].get(predicate.index());
        Side {
            segment: segment.cloned().unwrap_or_default(),
            gained: self.gained[direction as usize].clone(),
            lost: self.lost[direction as usize].clone(),
        }
    }

    fn put_side(&mut self, predicate: PredicateId, direction: Direction, side: Side) {
        self.segments[direction as usize].set(predicate.index(), side.segment);
        self.gained[direction as usize] = side.gained;
        self.lost[direction as usize] = side.lost;
    }
}

impl Snapshot {
    /// Makes the changes in this snapshot, which nobody else reads yet. All ids must be known to
    /// the snapshot's generation.
    ///
    /// Costs a few random reads and about ten kilobytes copied for a quad alone, a tenth of that
    /// in a large batch.
    pub fn apply(&mut self, changes: &Changes) -> Effect {
        let removed = self.apply_all(&changes.remove, Change::Remove);
        let added = self.apply_all(&changes.add, Change::Add);
        Effect {
            added,
            removed,
            graphs: 0,
        }
    }

    fn apply_all(&mut self, quads: &[IdQuad], change: Change) -> u64 {
        if quads.is_empty() {
            return 0;
        }
        let mut edges: Vec<(u32, Edge)> = Vec::with_capacity(quads.len());
        let mut named: Vec<GraphQuad> = Vec::new();
        for quad in quads {
            let (subject, object) = (quad.subject.raw(), quad.object.raw());
            if quad.graph.is_none() {
                edges.push((quad.predicate.0, (subject, object)));
            } else {
                named.push((quad.graph.raw(), quad.predicate.0, subject, object));
            }
        }
        edges.sort_unstable();
        edges.dedup();
        named.sort_unstable();
        named.dedup();
        let mut effective = 0;
        for part in edges.chunk_by(|a, b| a.0 == b.0) {
            let predicate = PredicateId(part[0].0);
            let part = part.iter().map(|(_, edge)| *edge);
            effective += self.change_edges(LayerKind::Default, predicate, part, change);
        }
        if !named.is_empty() {
            effective += self.change_named(&named, change);
        }
        effective
    }

    fn change_edges(
        &mut self,
        kind: LayerKind,
        predicate: PredicateId,
        edges: impl Iterator<Item = Edge>,
        change: Change,
    ) -> u64 {
        let edges: Vec<Edge> = edges.collect();
        let out = self.split_edges(kind, predicate, &edges, change);
        drop(edges);
        let count = out.len();
        if count == 0 {
            return 0;
        }
        let layer = &mut self.delta.layers[kind as usize];
        for (_, change) in &out.added {
            match change {
                Change::Add => layer.added += 1,
                Change::Remove => layer.added -= 1,
            }
        }
        for (_, change) in &out.removed {
            match change {
                Change::Add => layer.removed += 1,
                Change::Remove => layer.removed -= 1,
            }
        }
        layer.recent += count as u64;
        self.change_segments(kind, predicate, &out);
        count as u64
    }

    /// Which set each edge that really changes belongs to.
    fn split_edges(
        &self,
        kind: LayerKind,
        predicate: PredicateId,
        edges: &[Edge],
        change: Change,
    ) -> Split<Edge> {
        if edges.len() < SHARED_FROM {
            return self.split_some(kind, predicate, edges, change);
        }
        let (front, back) = edges.split_at(edges.len() / 2);
        let (mut split, after) = rayon::join(
            || self.split_some(kind, predicate, front, change),
            || self.split_some(kind, predicate, back, change),
        );
        split.append(after);
        split
    }

    fn split_some(
        &self,
        kind: LayerKind,
        predicate: PredicateId,
        edges: &[Edge],
        change: Change,
    ) -> Split<Edge> {
        let delta = self.delta.layers[kind as usize].segment(predicate, Direction::Out);
        let base = self.base().layer(kind);
        let mut split = Split {
            added: Vec::new(),
            removed: Vec::new(),
        };
        for edge in edges.iter().copied() {
            let (subject, object) = (TermId::from_raw(edge.0), TermId::from_raw(edge.1));
            let in_base = base
                .neighbours(predicate, Direction::Out, subject)
                .contains(object);
            let is_in = |added: bool| {
                delta.is_some_and(|delta| {
                    delta.may_have_changed(subject)
                        && if added { &delta.added } else { &delta.removed }.contains(edge)
                })
            };
            match (change, in_base) {
                (Change::Add, true) if is_in(false) => split.removed.push((edge, Change::Remove)),
                (Change::Add, false) if !is_in(true) => split.added.push((edge, Change::Add)),
                (Change::Remove, true) if !is_in(false) => split.removed.push((edge, Change::Add)),
                (Change::Remove, false) if is_in(true) => split.added.push((edge, Change::Remove)),
                _ => {}
            }
        }
        split
    }

    /// Makes changes in both directions of a predicate.
    fn change_segments(&mut self, kind: LayerKind, predicate: PredicateId, out: &Split<Edge>) {
        let generation = Arc::clone(&self.generation);
        let version = generation.versions.fetch_add(2, Ordering::Relaxed);
        let base = generation.base.layer(kind);
        let layer = &mut self.delta.layers[kind as usize];
        let (from, to) = (
            layer.side(predicate, Direction::Out),
            layer.side(predicate, Direction::In),
        );
        let (from, to) = both(
            out.len() >= SHARED_FROM,
            || from.changed((base, version), (predicate, Direction::Out), out),
            || {
                let incoming = (predicate, Direction::In);
                to.changed((base, version + 1), incoming, &out.reversed())
            },
        );
        let changes = (from.segment.added.len() + from.segment.removed.len()) as u64;
        let edges = base.counts(predicate, Direction::Out).0;
        layer.note_crowd(changes, edges);
        layer.put_side(predicate, Direction::Out, from);
        layer.put_side(predicate, Direction::In, to);
        self.delta.content.note(kind, predicate);
    }

    fn change_named(&mut self, quads: &[GraphQuad], change: Change) -> u64 {
        let split = self.split_named(quads, change);
        let effective = split.added.len() + split.removed.len();
        if effective == 0 {
            return 0;
        }
        let generation = Arc::clone(&self.generation);
        let version = generation.versions.fetch_add(1, Ordering::Relaxed);
        self.delta
            .named
            .change(version, &generation.base, &split.added, &split.removed);
        // An edge comes to the layer with its first graph, and goes with its last one.
        let changed = split.added.iter().chain(&split.removed);
        let mut edges: Vec<(u32, Edge)> = changed
            .map(|((_, predicate, subject, object), _)| (*predicate, (*subject, *object)))
            .collect();
        drop(split);
        edges.sort_unstable();
        edges.dedup();
        for part in edges.chunk_by(|a, b| a.0 == b.0) {
            let predicate = PredicateId(part[0].0);
            self.delta.content.note(LayerKind::Named, predicate);
            let mut edges: Vec<Edge> = part.iter().map(|(_, edge)| *edge).collect();
            if change == Change::Remove {
                let mut graphs = self.graphs_of_edges(predicate);
                edges.retain(|(s, o)| !graphs.has_any(TermId::from_raw(*s), TermId::from_raw(*o)));
            }
            self.change_edges(LayerKind::Named, predicate, edges.into_iter(), change);
        }
        effective as u64
    }

    /// Which set each quad that really changes belongs to.
    fn split_named(&self, quads: &[GraphQuad], change: Change) -> Split<GraphQuad> {
        let mut split: Split<GraphQuad> = Split {
            added: Vec::new(),
            removed: Vec::new(),
        };
        let base = self.base();
        let delta = &self.delta.named;
        for quad in quads {
            let (graph, predicate) = (TermId::from_raw(quad.0), PredicateId(quad.1));
            let (subject, object) = (TermId::from_raw(quad.2), TermId::from_raw(quad.3));
            let in_base = base.has_quad(graph, predicate, (subject, object));
            match (change, in_base) {
                (Change::Add, true) if delta.removed.contains(*quad) => {
                    split.removed.push((*quad, Change::Remove));
                }
                (Change::Add, false) if !delta.added.contains(*quad) => {
                    split.added.push((*quad, Change::Add));
                }
                (Change::Remove, true) if !delta.removed.contains(*quad) => {
                    split.removed.push((*quad, Change::Add));
                }
                (Change::Remove, false) if delta.added.contains(*quad) => {
                    split.added.push((*quad, Change::Remove));
                }
                _ => {}
            }
        }
        split
    }

    /// Makes one step of a transaction in this snapshot, which nobody else reads yet.
    pub fn apply_stage(&mut self, stage: &Stage) -> Effect {
        let mut effect = self.apply(&stage.changes);
        effect.graphs += self.forget_graphs(&stage.forget);
        effect.graphs += self.declare_graphs(&stage.declare);
        effect
    }

    /// One step from the base of this generation to this snapshot.
    pub(super) fn all_changes(&self) -> Stage {
        let quad = |(graph, predicate, subject, object): GraphQuad| IdQuad {
            subject: TermId::from_raw(subject),
            predicate: PredicateId(predicate),
            object: TermId::from_raw(object),
            graph: TermId::from_raw(graph),
        };
        let mut changes = Changes::default();
        for (number, segment) in
            self.delta.layers[LayerKind::Default as usize].segments[Direction::Out as usize].iter()
        {
            let of_default = |(subject, object): Edge| {
                quad((TermId::NONE.raw(), number as u32, subject, object))
            };
            changes
                .remove
                .extend(segment.removed.iter().map(of_default));
            changes.add.extend(segment.added.iter().map(of_default));
        }
        changes
            .remove
            .extend(self.delta.named.removed.iter().map(quad));
        changes.add.extend(self.delta.named.added.iter().map(quad));
        let in_base = self
            .base()
            .declared
            .iter()
            .map(|raw| TermId::from_raw(*raw));
        let forget = in_base.filter(|graph| !self.delta.declared.contains(graph.raw()));
        Stage {
            changes,
            forget: forget.collect(),
            declare: self.declared_graphs().collect(),
        }
    }

    /// Lets named graphs exist without quads; how many did not.
    pub fn declare_graphs(&mut self, graphs: &[TermId]) -> u64 {
        self.change_declared(graphs, Change::Add)
    }

    /// Lets named graphs exist only while they have quads; how many did without.
    pub fn forget_graphs(&mut self, graphs: &[TermId]) -> u64 {
        self.change_declared(graphs, Change::Remove)
    }

    fn change_declared(&mut self, graphs: &[TermId], change: Change) -> u64 {
        let declared = &mut self.delta.declared;
        let is_there = change == Change::Remove;
        let changed = graphs.iter().map(|graph| graph.raw());
        let mut changes: Vec<_> = changed
            .filter(|graph| declared.contains(*graph) == is_there)
            .map(|graph| (graph, change))
            .collect();
        changes.sort_unstable_by_key(|(graph, _)| *graph);
        changes.dedup();
        declared.apply(&changes);
        changes.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::ops::ControlFlow;

    use jindou_model::{GraphRef, Pattern, SnapshotNumber};

    use super::*;
    use crate::bulk::{BulkSink, build};

    /// Quads of two predicates in both layers, some of them twice.
    fn quads(snapshot: &mut Snapshot) -> Vec<IdQuad> {
        let mut number = 7_u64;
        let mut below = |limit: u64| {
            number = number.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (number >> 33) % limit
        };
        let mut vertex = |text: &str, number| {
            let iri = format!("http://e/{text}{number}");
            snapshot.intern_node(iri.as_bytes()).unwrap()
        };
        let places: Vec<[u64; 4]> = (0..6 * SHARED_FROM)
            .map(|_| [below(900), below(2), below(900), below(3)])
            .collect();
        let ends: Vec<[TermId; 3]> = places
            .iter()
            .map(|[s, _, o, g]| [vertex("v", *s), vertex("v", *o), vertex("g", *g)])
            .collect();
        let mut predicate = |number| {
            let iri = format!("http://e/p{number}");
            snapshot.intern_predicate(&iri).unwrap()
        };
        let quad = |([_, p, _, graph], [subject, object, name]): (&[u64; 4], [TermId; 3])| IdQuad {
            subject,
            predicate: predicate(*p),
            object,
            graph: if *graph == 0 { TermId::NONE } else { name },
        };
        places.iter().zip(ends).map(quad).collect()
    }

    /// Everything that can be read, from both ends.
    fn content(snapshot: &Snapshot) -> BTreeSet<[u64; 4]> {
        let mut content = BTreeSet::new();
        let all = Pattern {
            subject: None,
            predicate: None,
            object: None,
        };
        let mut note = |s: TermId, p: PredicateId, o: TermId, g: TermId| {
            content.insert([s.raw(), p.0.into(), o.raw(), g.raw()]);
            ControlFlow::Continue(())
        };
        let flow = snapshot.for_each_match(&all, GraphRef::Default, &mut note);
        assert!(flow.is_continue());
        let flow = snapshot.for_each_quad(&all, &mut note);
        assert!(flow.is_continue());
        for [s, p, o, g] in &content {
            let incoming = Pattern {
                subject: None,
                predicate: Some(PredicateId(*p as u32)),
                object: Some(TermId::from_raw(*o)),
            };
            let graph = match TermId::from_raw(*g) {
                TermId::NONE => GraphRef::Default,
                name => GraphRef::One(name),
            };
            let flow = snapshot.for_each_match(&incoming, graph, &mut |found, _, _, _| match found
                .raw()
                == *s
            {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            });
            assert!(flow.is_break(), "{s} {p} {o} is not found from its object");
        }
        content
    }

    #[test]
    fn many_changes_at_once_are_those_of_many_small_ones() {
        let base = build(vec![BulkSink::new()], 1).unwrap();
        let mut whole = Snapshot::of_base(base, 1, SnapshotNumber(1));
        let quads = quads(&mut whole);
        let mut pieces = whole.clone();
        let gone: Vec<IdQuad> = quads.iter().step_by(2).copied().collect();
        let (add, remove) = (Vec::new(), Vec::new());
        let none = Changes { remove, add };
        for (is_added, some) in [(true, &quads), (false, &gone)] {
            let changes = |some: &[IdQuad]| match is_added {
                true => Changes {
                    add: some.to_vec(),
                    ..none.clone()
                },
                false => Changes {
                    remove: some.to_vec(),
                    ..none.clone()
                },
            };
            let effect = whole.apply(&changes(some));
            let (mut added, mut removed) = (0, 0);
            for piece in some.chunks(SHARED_FROM / 8) {
                let effect = pieces.apply(&changes(piece));
                added += effect.added;
                removed += effect.removed;
            }
            assert_eq!((effect.added, effect.removed), (added, removed));
            assert_eq!(content(&whole), content(&pieces));
        }
    }
}
