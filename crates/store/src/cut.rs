//! A snapshot, cut into virtual shards: each has the rows of the keys that it owns.
//!
//! What is small and concerns all is not cut but shared: the characteristic sets, which are all edges
//! of `rdf:type`, the dictionary, the runs, and the numbers of the named graphs. The graphs of an edge
//! are told by the shard of its subject, whose row gives the edge its place.

use std::collections::BTreeSet;
use std::sync::Arc;

use jindou_fabric::{FabricError, RegionBuilder};
use jindou_model::{Direction, PredicateId, ShardId, TermId};
use jindou_partition::Shards;
use xxhash_rust::xxh3::Xxh3;

use crate::StoreError;
use crate::base::Base;
use crate::base_files::BaseFiles;
use crate::delta::{Difference, Snapshot};
use crate::graph_packing::Packer;
use crate::graph_table::{GraphCoder, GraphTable};
use crate::layer::LayerKind;
use crate::named::{EdgeGraphs, NamedGraphs};
use crate::predicate_edges::PredicateEdges;
use crate::predicate_graphs::PredicateGraphs;
use crate::segment::Segment;

/// Memory of so many bytes for a shard.
pub type AllocateOfShard<'a> = dyn Fn(ShardId, usize) -> Result<RegionBuilder, FabricError> + 'a;

/// Segments by direction and predicate.
type Segments = [Vec<Option<Segment>>; 2];

/// A snapshot in parts, each of which is a snapshot with the same ids.
pub struct Cut {
    /// What was cut.
    of: Snapshot,
    into: Shards,
    /// What every shard knows: the characteristic sets, with all edges of `rdf:type`, and no other
    /// edge.
    pub shared: Snapshot,
    /// Those shards that were asked for: the outgoing edges of the subjects that it owns, and the
    /// incoming ones of the objects that it owns, but for `rdf:type`.
    pub shards: Vec<(ShardId, Snapshot)>,
    /// By predicate, a digest of its edges in the base: where ids mean the same, those of bases with the same edges
    /// of it are equal, however these lie. Of `rdf:type` it says nothing.
    pub digests: Arc<[u64]>,
}

impl Cut {
    /// The same shards of another snapshot of the same base, which may be the earlier one. None of a
    /// snapshot upon another base: that is to be cut itself.
    ///
    /// Costs what differs between the two, and some kilobytes a shard.
    #[must_use]
    pub fn at(&self, snapshot: &Snapshot) -> Option<Self> {
        if !self.of.is_of_generation_of(snapshot) {
            return None;
        }
        let difference = Difference::between(&self.of, snapshot, self.into);
        let shards = self.shards.iter();
        Some(Self {
            of: snapshot.clone(),
            into: self.into,
            shared: snapshot.shared_part(Arc::clone(&self.shared.generation)),
            shards: shards
                .map(|(shard, part)| (*shard, part.part_brought_on(*shard, &difference)))
                .collect(),
            digests: Arc::clone(&self.digests),
        })
    }
}

impl Snapshot {
    /// Cuts it into shards: [its base](Snapshot::cut_base), and then what changed since.
    ///
    /// # Errors
    /// As [`Snapshot::cut_base`].
    pub fn cut(&self, shards: Shards) -> Result<Cut, StoreError> {
        let all = shards.all().collect();
        let cut = self.cut_base(shards, &all, &|_, bytes| Ok(RegionBuilder::new(bytes)))?;
        Ok(cut.at(self).expect("it is of this base"))
    }

    /// Cuts its base into shards, as if nothing had changed since, and makes those that are `wanted`, where
    /// `allocate` gives the memory of each. [`Cut::at`] brings them to this snapshot.
    ///
    /// Costs a copy of all segments, and holds of one segment eight bytes more for each key and
    /// neighbour.
    ///
    /// # Errors
    /// [`StoreError::Memory`] where there is none.
    ///
    /// # Panics
    /// If this is a part that lacks the rows of a shard that is wanted.
    pub fn cut_base(
        &self,
        shards: Shards,
        wanted: &BTreeSet<ShardId>,
        allocate: &AllocateOfShard<'_>,
    ) -> Result<Cut, StoreError> {
        let none = Known {
            parts: Vec::new(),
            digests: &[],
            is_kept: vec![false; self.base().predicate_count()],
        };
        self.cut_beside(&none, shards, wanted, allocate)
    }

    /// As [`Snapshot::cut_base`], into the shards of a cut of the base that was before: those segments that the two
    /// bases share are shared by the cuts.
    ///
    /// Costs a copy of the other segments, and of those that lie in small regions or where little else is left.
    ///
    /// # Errors
    /// As [`Snapshot::cut_base`].
    pub fn cut_base_after(
        &self,
        before: &Cut,
        allocate: &AllocateOfShard<'_>,
    ) -> Result<Cut, StoreError> {
        let known = Known {
            parts: before.shards.iter().map(|(_, part)| part.base()).collect(),
            digests: &before.digests,
            is_kept: (self.base().predicates())
                .map(|predicate| self.base().shares_edges(before.of.base(), predicate))
                .collect(),
        };
        let wanted = before.shards.iter().map(|(shard, _)| *shard).collect();
        self.cut_beside(&known, before.into, &wanted, allocate)
    }

    fn cut_beside(
        &self,
        known: &Known<'_>,
        shards: Shards,
        wanted: &BTreeSet<ShardId>,
        allocate: &AllocateOfShard<'_>,
    ) -> Result<Cut, StoreError> {
        let base = self.base();
        let has_rows = |shard| base.node_part().is_none_or(|part| part.holds(shard));
        assert!(
            wanted.iter().copied().all(has_rows),
            "a part has rows of its own shards alone"
        );
        let of_base = |part| self.part_of_base(self.generation_of_part(part));
        let [default, named] =
            LayerKind::ALL.map(|kind| cut_layer(base, kind, shards, wanted, known));
        let layers = (0_usize..).zip(default.into_iter().zip(named));
        let made = base.predicates().filter(|id| !known.is_kept[id.index()]);
        let made: Vec<PredicateId> = made.collect();
        let part = |(shard, (place, (default, named)))| {
            let place: usize = place;
            let graphs = |predicate: PredicateId| match known.is_kept[predicate.index()] {
                true => known.parts[place].named.part(predicate),
                false => None,
            };
            let mut part = base.part([default, named], false, &graphs);
            part.pack_in(&made, &|bytes| allocate(shard, bytes))?;
            Ok((shard, of_base(part)))
        };
        let parts = wanted.iter().copied().zip(layers).map(part);
        let parts: Result<Vec<(ShardId, Snapshot)>, StoreError> = parts.collect();
        let none = LayerKind::ALL.map(|kind| no_rows(base, kind));
        let digest = |predicate: PredicateId| match known.is_kept[predicate.index()] {
            true => known.digests[predicate.index()],
            false => base.digest_of(predicate),
        };
        Ok(Cut {
            of: self.part_of_base(Arc::clone(&self.generation)),
            into: shards,
            shared: of_base(base.part(none, true, &|_| None)),
            shards: parts?,
            digests: base.predicates().map(digest).collect(),
        })
    }
}

/// What a cut takes from one of the base before.
struct Known<'a> {
    /// By place among the shards that are wanted.
    parts: Vec<&'a Base>,
    digests: &'a [u64],
    /// By predicate: its edges are those of the base before.
    is_kept: Vec<bool>,
}

/// The segments of each shard that is wanted.
fn cut_layer(
    base: &Base,
    kind: LayerKind,
    shards: Shards,
    wanted: &BTreeSet<ShardId>,
    known: &Known<'_>,
) -> Vec<Segments> {
    let mut parts = vec![Segments::default(); wanted.len()];
    for direction in [Direction::Out, Direction::In] {
        let segments = &base.layer(kind).segments[direction as usize];
        for (number, segment) in segments.iter().enumerate() {
            let predicate = PredicateId(number as u32);
            if known.is_kept[number] {
                for (part, before) in parts.iter_mut().zip(&known.parts) {
                    let segment = before.layer(kind).segment(predicate, direction);
                    part[direction as usize].push(segment.cloned());
                }
                continue;
            }
            let cut = segment
                .as_ref()
                .map(|segment| segment.cut(shards, |shard| wanted.contains(&shard)));
            let mut cut = cut.into_iter().flatten();
            for part in &mut parts {
                part[direction as usize].push(cut.next());
            }
        }
    }
    parts
}

/// Adds the keys of a segment to a digest, each with its neighbours.
fn digest_edges(segment: &Segment, digest: &mut Xxh3) {
    const WORDS_AT_ONCE: usize = 8_192;
    let mut words: Vec<u64> = Vec::with_capacity(2 * WORDS_AT_ONCE);
    let mut row = 0;
    segment.domain().for_each(&mut |key| {
        let run = segment.run(row);
        row += 1;
        words.extend([key.raw(), run.len() as u64]);
        for place in 0..run.len() {
            words.push(run.get(place).raw());
            if words.len() >= WORDS_AT_ONCE {
                digest.update(bytemuck::cast_slice(&words));
                words.clear();
            }
        }
    });
    digest.update(bytemuck::cast_slice(&words));
}

/// Segments without rows where a layer has some with rows.
fn no_rows(base: &Base, kind: LayerKind) -> Segments {
    let empty = |_: &Segment| Segment::from_sorted(&[]);
    let segments = base.layer(kind).segments.iter();
    let mut empty = segments.map(|side| side.iter().map(|s| s.as_ref().map(empty)).collect());
    [(); 2].map(|()| empty.next().expect("there are two directions"))
}

impl Base {
    /// True if all edges of a predicate are in the same memory as in another base.
    fn shares_edges(&self, other: &Self, predicate: PredicateId) -> bool {
        let is_there = |base: &Self| predicate.index() < base.predicate_count();
        if !is_there(self) || !is_there(other) {
            return false;
        }
        let [own, others] = [self, other].map(|base| base.edges_of(predicate));
        let layouts = |edges: &PredicateEdges| {
            let segments = edges.segments.iter().flatten();
            let layouts = segments.map(|segment| segment.as_ref().map(Segment::layout));
            layouts.collect::<Vec<_>>()
        };
        Arc::ptr_eq(&own.graphs, &others.graphs) && layouts(&own) == layouts(&others)
    }

    /// The digest of a predicate's edges in both layers: costs a pass over them, unless this is a part, which was
    /// told.
    pub(crate) fn digest_of(&self, predicate: PredicateId) -> u64 {
        if let Some(part) = &self.node_part {
            return part.whole.digests[predicate.index()];
        }
        let mut digest = Xxh3::new();
        for kind in LayerKind::ALL {
            // Those in the other direction are the same.
            let segment = self.layer(kind).segment(predicate, Direction::Out);
            digest.update(&(segment.map_or(0, Segment::edges) as u64).to_le_bytes());
            if let Some(segment) = segment {
                digest_edges(segment, &mut digest);
            }
        }
        digest.digest()
    }

    /// A base with these segments of each layer, and the named graphs of their edges, which are made where they are not
    /// `known`; of the edges of `rdf:type` where it `has_types`.
    pub(crate) fn part<'g>(
        &self,
        segments: [Segments; 2],
        has_types: bool,
        known: &dyn Fn(PredicateId) -> Option<&'g Arc<PredicateGraphs>>,
    ) -> Self {
        let named_layer = LayerKind::Named as usize;
        let named = self.part_of_graphs(&segments[named_layer], has_types, known);
        let mut kinds = LayerKind::ALL.into_iter();
        let layers = segments.map(|segments| {
            let kind = kinds.next().expect("a layer for each kind");
            self.layer(kind).part(segments)
        });
        Self {
            vertices: self.vertices.clone(),
            literals: self.literals.clone(),
            predicate_terms: self.predicate_terms.clone(),
            vertex_predicates: self.vertex_predicates.clone(),
            layers,
            named,
            runs: self.runs.clone(),
            documents: self.documents,
            declared: self.declared.clone(),
            is_union: self.is_union,
            identity: self.identity,
            node_part: None,
            files: BaseFiles::default(),
        }
    }

    /// The named graphs of the edges that these segments of the named layer have.
    fn part_of_graphs<'g>(
        &self,
        segments: &Segments,
        has_types: bool,
        known: &dyn Fn(PredicateId) -> Option<&'g Arc<PredicateGraphs>>,
    ) -> NamedGraphs {
        let mut coder = GraphCoder::new(GraphTable::clone(&self.named.graphs));
        let none = Arc::new(PredicateGraphs::none());
        let rows = &segments[Direction::Out as usize];
        let part = |number: usize| {
            let predicate = PredicateId(number as u32);
            let whole = self.named.part(predicate).filter(|_| has_types);
            match (predicate, rows.get(number).and_then(Option::as_ref)) {
                (PredicateId::TYPE, _) => Arc::clone(whole.unwrap_or(&none)),
                (_, None) => Arc::clone(&none),
                (_, Some(rows)) => match known(predicate) {
                    Some(graphs) => Arc::clone(graphs),
                    None => Arc::new(self.graphs_of_rows(predicate, rows, &mut coder)),
                },
            }
        };
        let parts = (0..self.predicate_count()).map(part).collect();
        NamedGraphs::join(Arc::clone(&self.named.graphs), parts)
    }

    /// The graphs of the edges of some rows of a predicate's outgoing segment. All sets of graphs have
    /// their codes already.
    fn graphs_of_rows(
        &self,
        predicate: PredicateId,
        rows: &Segment,
        coder: &mut GraphCoder,
    ) -> PredicateGraphs {
        let whole = self
            .layer(LayerKind::Named)
            .segment(predicate, Direction::Out);
        let whole = whole.expect("rows are of a segment");
        let mut graphs_of = EdgeGraphs::new(self, predicate);
        let mut packer = Packer::new(coder, &self.runs, rows.edges() as u64);
        let mut graphs = Vec::new();
        rows.domain().for_each(&mut |subject: TermId| {
            for place in whole.edge_range(subject) {
                graphs.clear();
                graphs.extend(graphs_of.at(place, subject).iter());
                packer.edge(subject, &graphs);
            }
        });
        packer.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeSet as Set;
    use std::ops::ControlFlow;

    use jindou_model::{GraphRef, IdQuad, Pattern, SnapshotNumber};
    use oxrdf::{GraphName, NamedNode, Quad};

    use super::*;
    use crate::bulk::{BulkSink, build};
    use crate::{Changes, Merged, Rebase};

    const PREDICATES: usize = 8;
    const EDGES: usize = 40_000;

    fn node(name: &str, number: usize) -> NamedNode {
        NamedNode::new(format!("http://e/{name}{number}")).unwrap()
    }

    /// A snapshot with predicates of many edges, some of them in named graphs.
    fn snapshot() -> Snapshot {
        let mut sink = BulkSink::new();
        for predicate in 0..PREDICATES {
            for edge in 0..EDGES {
                let graph = match edge % 5 {
                    0 => node("g", edge % 3).into(),
                    _ => GraphName::DefaultGraph,
                };
                let subject = node("s", edge * 7 % 20_001);
                let object = node("o", edge * (predicate + 1) % 9_001);
                let quad = Quad::new(subject, node("p", predicate), object, graph);
                sink.quad(quad.as_ref()).unwrap();
            }
        }
        Snapshot::of_base(build(vec![sink], 0).unwrap(), 1, SnapshotNumber(1))
    }

    /// The snapshot after some quads of these predicates came, and upon a base that has those of `merged`.
    fn after(
        snapshot: &Snapshot,
        changed: &[PredicateId],
        merged: &[PredicateId],
        round: u64,
    ) -> Snapshot {
        let mut next = snapshot.clone();
        let graphs = [TermId::NONE, TermId::vertex(5)];
        let quad = |(predicate, place): (&PredicateId, u64)| IdQuad {
            subject: TermId::vertex(90 * round + place),
            predicate: *predicate,
            object: TermId::vertex(7 * round + place),
            graph: graphs[place as usize % 2],
        };
        let places = changed.iter().flat_map(|id| (0..40).map(move |n| (id, n)));
        next.apply(&Changes {
            add: places.map(quad).collect(),
            ..Changes::default()
        });
        next.close_extents();
        let merged = Merged::new(next.clone(), merged.to_vec()).unwrap();
        Rebase::new(merged, &next).apply(&next)
    }

    fn quads(part: &Snapshot) -> Set<[u64; 4]> {
        let mut quads = Set::new();
        let all = Pattern {
            subject: None,
            predicate: None,
            object: None,
        };
        let mut insert = |s: TermId, p: PredicateId, o: TermId, g: TermId| {
            quads.insert([s.raw(), p.0.into(), o.raw(), g.raw()]);
            ControlFlow::Continue(())
        };
        assert!(part.for_each_quad(&all, &mut insert).is_continue());
        let flow = part.for_each_match(&all, GraphRef::Default, &mut insert);
        assert!(flow.is_continue());
        quads
    }

    #[test]
    fn the_cut_of_the_next_base_copies_what_was_merged_and_is_as_one_from_scratch() {
        let mut snapshot = snapshot();
        // So few that the edges of each predicate have a region of their own.
        let shards = Shards::new(2).unwrap();
        let wanted: BTreeSet<ShardId> = shards.all().collect();
        let bytes = Cell::new(0);
        let allocate = |_, length| {
            bytes.set(bytes.get() + length);
            Ok(RegionBuilder::new(length))
        };
        let mut cut = snapshot.cut_base(shards, &wanted, &allocate).unwrap();
        let all = bytes.get();
        for round in 1..5 {
            // The base lacks what changed of another one.
            let merged = [PredicateId(round as u32)];
            let changed = [merged[0], PredicateId(round as u32 % 3 + 5)];
            snapshot = after(&snapshot, &changed, &merged, round);
            bytes.set(0);
            let before = Arc::clone(&cut.digests);
            cut = snapshot.cut_base_after(&cut, &allocate).unwrap();
            assert!(
                bytes.get() * (PREDICATES - 2) < all,
                "{} of {all}",
                bytes.get()
            );
            let anew = snapshot.cut_base(shards, &wanted, &allocate).unwrap();
            assert_eq!(cut.digests, anew.digests);
            for predicate in snapshot.base().predicates() {
                let place = predicate.index();
                let is_same = cut.digests[place] == before[place];
                assert_eq!(is_same, !merged.contains(&predicate), "{predicate:?}");
            }
            let latest = [&cut, &anew].map(|cut| cut.at(&snapshot).unwrap());
            for (one, other) in [[&cut, &anew], latest.each_ref()].map(|[a, b]| (a, b)) {
                for ((shard, one), (of, other)) in one.shards.iter().zip(&other.shards) {
                    assert_eq!(shard, of);
                    assert!(quads(one) == quads(other), "round {round}, {shard:?}");
                }
            }
        }
    }

    #[test]
    fn digests_do_not_depend_on_how_the_edges_came() {
        let first = snapshot();
        let (one, other) = (PredicateId(2), PredicateId(3));
        let in_turn = after(
            &after(&first, &[one, other], &[one], 1),
            &[one],
            &[one, other],
            2,
        );
        let mut at_once = first.clone();
        at_once = after(&at_once, &[one, other], &[], 1);
        at_once = after(&at_once, &[one], &[one, other], 2);
        let digests = |snapshot: &Snapshot| snapshot.cut(Shards::ONE).unwrap().digests;
        assert_eq!(digests(&in_turn), digests(&at_once));
        assert_ne!(digests(&in_turn), digests(&first));
    }
}
