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

use crate::StoreError;
use crate::base::Base;
use crate::base_files::BaseFiles;
use crate::delta::{Difference, Snapshot};
use crate::graph_packing::Packer;
use crate::graph_table::{GraphCoder, GraphTable};
use crate::layer::LayerKind;
use crate::named::{EdgeGraphs, NamedGraphs};
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
    pub fn cut_base(
        &self,
        shards: Shards,
        wanted: &BTreeSet<ShardId>,
        allocate: &AllocateOfShard<'_>,
    ) -> Result<Cut, StoreError> {
        let base = self.base();
        let of_base = |part| self.part_of_base(self.generation_of_part(part));
        let [default, named] = LayerKind::ALL.map(|kind| cut_layer(base, kind, shards, wanted));
        let layers = default.into_iter().zip(named);
        let all: Vec<PredicateId> = base.predicates().collect();
        let part = |(shard, (default, named))| {
            let mut part = base.part([default, named], false);
            part.pack_in(&all, &|bytes| allocate(shard, bytes))?;
            Ok((shard, of_base(part)))
        };
        let parts = wanted.iter().copied().zip(layers).map(part);
        let parts: Result<Vec<(ShardId, Snapshot)>, StoreError> = parts.collect();
        let none = LayerKind::ALL.map(|kind| no_rows(base, kind));
        Ok(Cut {
            of: self.part_of_base(Arc::clone(&self.generation)),
            into: shards,
            shared: of_base(base.part(none, true)),
            shards: parts?,
        })
    }
}

/// The segments of each shard that is wanted.
fn cut_layer(
    base: &Base,
    kind: LayerKind,
    shards: Shards,
    wanted: &BTreeSet<ShardId>,
) -> Vec<Segments> {
    let mut parts = vec![Segments::default(); wanted.len()];
    for (direction, segments) in base.layer(kind).segments.iter().enumerate() {
        for segment in segments {
            let cut = segment
                .as_ref()
                .map(|segment| segment.cut(shards, |shard| wanted.contains(&shard)));
            let mut cut = cut.into_iter().flatten();
            for part in &mut parts {
                part[direction].push(cut.next());
            }
        }
    }
    parts
}

/// Segments without rows where a layer has some with rows.
fn no_rows(base: &Base, kind: LayerKind) -> Segments {
    let empty = |_: &Segment| Segment::from_sorted(&[]);
    let segments = base.layer(kind).segments.iter();
    let mut empty = segments.map(|side| side.iter().map(|s| s.as_ref().map(empty)).collect());
    [(); 2].map(|()| empty.next().expect("there are two directions"))
}

impl Base {
    /// A base with these segments of each layer, and the named graphs of their edges; of the edges of
    /// `rdf:type` where it `has_types`.
    fn part(&self, segments: [Segments; 2], has_types: bool) -> Self {
        let named_layer = LayerKind::Named as usize;
        let named = self.part_of_graphs(&segments[named_layer], has_types);
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
            files: BaseFiles::default(),
        }
    }

    /// The named graphs of the edges that these segments of the named layer have.
    fn part_of_graphs(&self, segments: &Segments, has_types: bool) -> NamedGraphs {
        let mut coder = GraphCoder::new(GraphTable::clone(&self.named.graphs));
        let none = Arc::new(PredicateGraphs::none());
        let rows = &segments[Direction::Out as usize];
        let part = |number: usize| {
            let predicate = PredicateId(number as u32);
            let whole = self.named.part(predicate).filter(|_| has_types);
            match (predicate, rows.get(number).and_then(Option::as_ref)) {
                (PredicateId::TYPE, _) => Arc::clone(whole.unwrap_or(&none)),
                (_, None) => Arc::clone(&none),
                (_, Some(rows)) => Arc::new(self.graphs_of_rows(predicate, rows, &mut coder)),
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
