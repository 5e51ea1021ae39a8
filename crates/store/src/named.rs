//! Quads outside the default graph: which edges has this graph?
//!
//! They live in segments of their own, with a column of graphs beside the neighbours, so that
//! queries of the default graph never look at them. Each named graph also has an index vertex.

use jindou_model::{Direction, PredicateId, TermId};

use crate::StoreError;
use crate::column::Column;
use crate::graph_index::GraphIndex;
use crate::image::{ImageReader, ImageWriter};
use crate::segment::Segment;

/// A segment whose edges say in which graph they are.
#[derive(Clone, Debug)]
pub struct NamedSegment {
    edges: Segment,
    graphs: Column,
}

impl NamedSegment {
    /// The segment of these sorted, distinct (key, neighbour, graph) edges.
    #[must_use]
    pub fn from_sorted(edges: &[(u64, u64, u64)]) -> Self {
        let pairs: Vec<(u64, u64)> = edges.iter().map(|(key, to, _)| (*key, *to)).collect();
        let graphs: Vec<u64> = edges.iter().map(|(_, _, graph)| *graph).collect();
        Self {
            edges: Segment::from_sorted(&pairs),
            graphs: Column::from_values(&graphs),
        }
    }

    /// The edges without their graphs: neighbours repeat where several graphs have the edge.
    #[must_use]
    pub fn edges(&self) -> &Segment {
        &self.edges
    }

    /// The graph of each edge, by its number.
    pub(crate) fn graphs(&self) -> &Column {
        &self.graphs
    }

    /// Calls `visit` with each (neighbour, graph) of a key.
    pub fn for_each(&self, key: TermId, visit: &mut dyn FnMut(TermId, TermId)) {
        let range = self.edges.edge_range(key);
        let neighbours = self.edges.neighbours(key);
        for (index, edge) in range.enumerate() {
            visit(
                neighbours.get(index),
                TermId::from_raw(self.graphs.get(edge)),
            );
        }
    }

    /// Calls `visit` with the graph of each edge between two ends.
    pub fn for_each_graph(&self, key: TermId, to: TermId, visit: &mut dyn FnMut(TermId)) {
        let range = self.edges.edge_range(key);
        let neighbours = self.edges.neighbours(key);
        let mut index = neighbours.seek(0, to);
        while index < neighbours.len() && neighbours.get(index) == to {
            visit(TermId::from_raw(self.graphs.get(range.start + index)));
            index += 1;
        }
    }
}

/// All quads outside the default graph.
#[derive(Clone, Debug)]
pub struct NamedGraphs {
    segments: [Vec<Option<NamedSegment>>; 2],
    index: GraphIndex,
    quads: u64,
}

impl NamedGraphs {
    /// These segments, by direction and predicate, with the index of their graphs.
    pub(crate) fn new(segments: [Vec<Option<NamedSegment>>; 2]) -> Self {
        let quads = segments[0]
            .iter()
            .flatten()
            .map(|s| s.edges.edges() as u64)
            .sum();
        Self {
            index: GraphIndex::from_segments(&segments[0]),
            segments,
            quads,
        }
    }

    /// Number of quads.
    #[must_use]
    pub fn quads(&self) -> u64 {
        self.quads
    }

    /// Number of graphs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.graphs().len()
    }

    /// True of no named graph.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if there is a quad in this graph.
    #[must_use]
    pub fn contains(&self, graph: TermId) -> bool {
        self.index.graphs().row(graph).is_some()
    }

    /// Calls `visit` with each graph.
    pub fn for_each_graph(&self, visit: &mut dyn FnMut(TermId)) {
        self.index.graphs().for_each(visit);
    }

    /// What each graph has.
    #[must_use]
    pub fn index(&self) -> &GraphIndex {
        &self.index
    }

    /// The edges of a predicate, if any graph has some.
    #[must_use]
    pub fn segment(&self, predicate: PredicateId, direction: Direction) -> Option<&NamedSegment> {
        self.segments[direction as usize]
            .get(predicate.index())?
            .as_ref()
    }

    /// Bytes of all columns.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let segments: usize = self
            .segments
            .iter()
            .flatten()
            .flatten()
            .map(|segment| segment.edges.bytes() + segment.graphs.bytes())
            .sum();
        segments + self.index.bytes()
    }

    pub(crate) fn write(&self, image: &mut ImageWriter) {
        for segment in self.segments.iter().flatten() {
            image.word(u64::from(segment.is_some()));
            if let Some(segment) = segment {
                segment.edges.write(image);
                segment.graphs.write(image);
            }
        }
        self.index.write(image);
        image.word(self.quads);
    }

    pub(crate) fn read(image: &mut ImageReader, predicates: usize) -> Result<Self, StoreError> {
        let mut list = || {
            (0..predicates)
                .map(|_| {
                    if image.word()? == 0 {
                        return Ok(None);
                    }
                    let edges = Segment::read(image)?;
                    let graphs = Column::read(image)?;
                    if edges.edges() != graphs.len() {
                        return Err(image.corrupt("edges and their graphs differ in number"));
                    }
                    Ok(Some(NamedSegment { edges, graphs }))
                })
                .collect::<Result<Vec<_>, _>>()
        };
        let segments = [list()?, list()?];
        let index = GraphIndex::read(image)?;
        Ok(Self {
            segments,
            index,
            quads: image.word()?,
        })
    }
}
