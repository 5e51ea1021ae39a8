//! All edges of one predicate, with their named graphs: how are they written, and read back?

use std::sync::Arc;

use jindou_fabric::Region;
use jindou_model::{Direction, PredicateId};

use crate::StoreError;
use crate::base::Base;
use crate::graph_table::GraphTable;
use crate::image::{ImageReader, ImageWriter};
use crate::layer::LayerKind;
use crate::predicate_graphs::PredicateGraphs;
use crate::segment::Segment;

/// What a base has of one predicate, but for the edges of `rdf:type`, which are in its clusters.
#[derive(Clone)]
pub(crate) struct PredicateEdges {
    /// By layer and direction.
    pub(crate) segments: [[Option<Segment>; 2]; 2],
    pub(crate) graphs: Arc<PredicateGraphs>,
    /// Edges of the layer of named graphs.
    named: u64,
}

impl PredicateEdges {
    /// No edges.
    pub(crate) fn none() -> Self {
        Self {
            segments: Default::default(),
            graphs: Arc::new(PredicateGraphs::none()),
            named: 0,
        }
    }

    /// Edges by layer and direction, and the graphs of those of the named layer, which are so many;
    /// of `rdf:type` too, which has no segments.
    pub(crate) fn new(
        segments: [[Option<Segment>; 2]; 2],
        graphs: PredicateGraphs,
        named: u64,
    ) -> Self {
        Self {
            segments,
            graphs: Arc::new(graphs),
            named,
        }
    }

    /// Bytes of its arrays.
    pub(crate) fn bytes(&self) -> usize {
        let segments = self.segments.iter().flatten().flatten();
        segments.map(Segment::bytes).sum::<usize>() + self.graphs.bytes()
    }

    /// Where one of its arrays lies.
    pub(crate) fn region(&self) -> &Region {
        let segment = self.segments.iter().flatten().flatten().next();
        match segment {
            Some(segment) => segment.neighbour_column().region(),
            None => self.graphs.index.region(),
        }
    }

    pub(crate) fn write(&self, image: &mut ImageWriter) {
        for segment in self.segments.iter().flatten() {
            image.word(u64::from(segment.is_some()));
            if let Some(segment) = segment {
                debug_assert!(!segment.has_holes(), "a base has no holes");
                segment.write(image);
            }
        }
        image.word(self.named);
        self.graphs.write(image);
    }

    /// Reads what [`PredicateEdges::write`] wrote of a predicate that has `types` edges in the
    /// clusters of named graphs (one other than `rdf:type` has none); `None` where that is not known,
    /// as of edges that a later file has anew.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the parts contradict each other.
    pub(crate) fn read(
        image: &mut ImageReader,
        types: Option<u64>,
        graphs: &GraphTable,
    ) -> Result<Self, StoreError> {
        let mut segments: [[Option<Segment>; 2]; 2] = Default::default();
        for segment in segments.iter_mut().flatten() {
            *segment = match image.word()? {
                0 => None,
                _ => Some(Segment::read(image)?),
            };
        }
        let out = &segments[LayerKind::Named as usize][Direction::Out as usize];
        let of_segment = out.as_ref().map_or(0, |out| out.edges() as u64);
        let named = image.word()?;
        let graphs = Arc::new(PredicateGraphs::read(image, named, graphs)?);
        if types.is_some_and(|types| named != types + of_segment) {
            return Err(image.corrupt("the graphs of edges are of others"));
        }
        Ok(Self {
            segments,
            graphs,
            named,
        })
    }
}

impl Base {
    /// What it has of a predicate; shares all arrays.
    ///
    /// # Panics
    /// If there is no such predicate.
    pub(crate) fn edges_of(&self, predicate: PredicateId) -> PredicateEdges {
        let segment = |kind, direction| self.layer(kind).segment(predicate, direction).cloned();
        let segments = LayerKind::ALL
            .map(|kind| [Direction::Out, Direction::In].map(|direction| segment(kind, direction)));
        let part = self.named.part(predicate);
        PredicateEdges {
            segments,
            graphs: Arc::clone(part.expect("each predicate has a part")),
            named: self.named_edges(predicate),
        }
    }

    /// Edges of a predicate in the layer of named graphs that this base has.
    fn named_edges(&self, predicate: PredicateId) -> u64 {
        let layer = self.layer(LayerKind::Named);
        match predicate {
            PredicateId::TYPE => layer.clusters().type_edges(),
            _ => layer.own_counts(predicate)[Direction::Out as usize].0,
        }
    }

    /// Takes the edges of a predicate out, so that nobody else holds their arrays; its counts stay.
    pub(crate) fn take_edges(&mut self, predicate: PredicateId) -> PredicateEdges {
        let taken = self.edges_of(predicate);
        self.put_edges(predicate, PredicateEdges::none());
        taken
    }

    /// Puts the edges that were taken out of it back, wherever they lie now.
    pub(crate) fn put_edges(&mut self, predicate: PredicateId, edges: PredicateEdges) {
        for (layer, sides) in self.layers.iter_mut().zip(edges.segments) {
            for (side, segment) in layer.segments.iter_mut().zip(sides) {
                side[predicate.index()] = segment;
            }
        }
        self.named.replace_part(predicate, edges.graphs);
    }
}
