//! A layer: edges each of which is there once, with their segments and characteristic sets.
//!
//! A base has two: the default graph, and all named graphs laid over each other. Which of the named
//! graphs an edge of the second one is in, [`crate::NamedGraphs`] knows.

use std::ops::ControlFlow;
use std::sync::Arc;

use jindou_model::{
    Cursor, Direction, IdRanges, Membership, Neighbours, Pattern, PredicateId, TermId, TermKind,
    Visit,
};

use crate::clusters::Clusters;
use crate::layout::SegmentLayout;
use crate::node_part::SegmentCounts;
use crate::segment::{Segment, expand_one};

/// Which layer of a base.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum LayerKind {
    /// The default graph.
    Default = 0,
    /// All named graphs laid over each other.
    Named = 1,
}

impl LayerKind {
    /// Both, in the order of their numbers.
    pub const ALL: [Self; 2] = [Self::Default, Self::Named];
}

/// Edges each of which is there once.
#[derive(Clone, Debug, Default)]
pub struct Layer {
    /// Shared by the shards that a layer is cut into.
    pub(crate) clusters: Arc<Clusters>,
    /// Segments by direction and predicate; `rdf:type` has none, its edges are in the clusters.
    pub(crate) segments: [Vec<Option<Segment>>; 2],
    /// Those of all segments and clusters; of a part, those of the whole.
    edges: u64,
    /// Of the part of a node: the counts of each predicate in the whole.
    whole: Option<Arc<[SegmentCounts]>>,
}

impl Layer {
    /// The layer of these segments by direction and predicate, and these clusters.
    pub(crate) fn new(clusters: Clusters, segments: [Vec<Option<Segment>>; 2]) -> Self {
        let edges = segments[Direction::Out as usize].iter().flatten();
        let edges: u64 = edges.map(|segment| segment.edges() as u64).sum();
        Self {
            edges: clusters.type_edges() + edges,
            clusters: Arc::new(clusters),
            segments,
            whole: None,
        }
    }

    /// The layer of a node's part, as it is read back. A segment of which the node has no row is there, without
    /// rows: that the whole has the predicate is known.
    pub(crate) fn of_node(self, whole: Arc<[SegmentCounts]>) -> Self {
        let mut segments = self.segments;
        for side in &mut segments {
            for (segment, counts) in side.iter_mut().zip(&*whole) {
                if segment.is_none() && counts[0].0 > 0 {
                    *segment = Some(Segment::from_sorted(&[]));
                }
            }
        }
        let of_segments = whole.iter().map(|counts| counts[Direction::Out as usize].0);
        Self {
            edges: self.clusters.type_edges() + of_segments.sum::<u64>(),
            segments,
            whole: Some(whole),
            ..self
        }
    }

    /// A part of this layer: its characteristic sets, and of its segments what is given. It says that
    /// it has as many edges as the whole.
    pub(crate) fn part(&self, segments: [Vec<Option<Segment>>; 2]) -> Self {
        Self {
            clusters: Arc::clone(&self.clusters),
            segments,
            edges: self.edges,
            whole: None,
        }
    }

    /// Number of edges; of the part of a node, those of the whole. Each commit and each look at the server's figures
    /// asks for it, so it was counted when the layer was put together.
    #[must_use]
    pub fn edges(&self) -> u64 {
        self.edges
    }

    /// The characteristic sets.
    #[must_use]
    pub fn clusters(&self) -> &Clusters {
        &self.clusters
    }

    /// Bytes of the segments.
    #[must_use]
    pub(crate) fn segment_bytes(&self) -> usize {
        self.segments
            .iter()
            .flatten()
            .flatten()
            .map(Segment::bytes)
            .sum()
    }

    /// The segment of a predicate other than `rdf:type` in the default graph, if it has edges.
    #[inline]
    #[must_use]
    pub fn segment(&self, predicate: PredicateId, direction: Direction) -> Option<&Segment> {
        self.segments[direction as usize]
            .get(predicate.index())?
            .as_ref()
    }

    /// Where the arrays of a segment lie; `None` of one without edges, and of `rdf:type`, whose
    /// edges are in the clusters. Costs a few loads for each part of the domain.
    #[must_use]
    pub fn layout(&self, predicate: PredicateId, direction: Direction) -> Option<SegmentLayout> {
        self.segment(predicate, direction).map(Segment::layout)
    }

    /// Edges and distinct keys of any predicate in the default graph; of the part of a node, those of the whole.
    #[must_use]
    pub fn counts(&self, predicate: PredicateId, direction: Direction) -> (u64, u64) {
        if predicate == PredicateId::TYPE {
            let keys = match direction {
                Direction::Out => self.clusters.typed_vertices(),
                Direction::In => self.clusters.types().len() as u64,
            };
            return (self.clusters.type_edges(), keys);
        }
        match &self.whole {
            Some(whole) => whole
                .get(predicate.index())
                .map_or((0, 0), |it| it[direction as usize]),
            None => self.counts_of_segment(predicate, direction),
        }
    }

    fn counts_of_segment(&self, predicate: PredicateId, direction: Direction) -> (u64, u64) {
        let segment = self.segment(predicate, direction);
        segment.map_or((0, 0), |segment| {
            (segment.edges() as u64, segment.domain().len() as u64)
        })
    }

    /// Edges and keys of the segments of a predicate, also of a part.
    pub(crate) fn own_counts(&self, predicate: PredicateId) -> SegmentCounts {
        [Direction::Out, Direction::In]
            .map(|direction| self.counts_of_segment(predicate, direction))
    }

    /// The neighbours of a key by any predicate in the default graph.
    #[must_use]
    pub fn neighbours(
        &self,
        predicate: PredicateId,
        direction: Direction,
        key: TermId,
    ) -> Neighbours<'_> {
        if predicate == PredicateId::TYPE {
            return match direction {
                Direction::Out => self.clusters.types_of_vertex(key),
                Direction::In => self.clusters.vertices_of_type(key),
            };
        }
        self.segment(predicate, direction)
            .map_or(Neighbours::NONE, |s| s.neighbours(key))
    }

    /// The neighbours of many keys; see [`Segment::locate`].
    pub fn locate<'a>(
        &'a self,
        predicate: PredicateId,
        direction: Direction,
        keys: &[TermId],
        out: &mut Vec<Neighbours<'a>>,
    ) {
        match self.segment(predicate, direction) {
            Some(segment) => segment.locate(keys, out),
            None => out.extend(
                keys.iter()
                    .map(|key| self.neighbours(predicate, direction, *key)),
            ),
        }
    }

    /// How many neighbours many keys have; see [`Segment::degrees`].
    pub fn degrees(
        &self,
        predicate: PredicateId,
        direction: Direction,
        keys: &[TermId],
        out: &mut Vec<u64>,
    ) {
        match self.segment(predicate, direction) {
            Some(segment) => segment.degrees(keys, out),
            None => out.extend(
                keys.iter()
                    .map(|key| self.neighbours(predicate, direction, *key).len() as u64),
            ),
        }
    }

    /// Follows the edges of many keys; see [`Segment::expand`].
    #[expect(
        clippy::too_many_arguments,
        reason = "the segment's arguments and which segment"
    )]
    pub fn expand(
        &self,
        predicate: PredicateId,
        direction: Direction,
        keys: &[TermId],
        cursor: &mut Cursor,
        filter: Option<&IdRanges>,
        budget: usize,
        rows: &mut Vec<u32>,
        out: &mut Vec<TermId>,
    ) {
        if let Some(segment) = self.segment(predicate, direction) {
            return segment.expand(keys, cursor, filter, budget, rows, out);
        }
        while cursor.key < keys.len() && out.len() < budget {
            let list = self.neighbours(predicate, direction, keys[cursor.key]);
            expand_one(list, cursor, filter, budget, rows, out);
            if keys.len() == 1 {
                return;
            }
        }
    }

    /// The ids that have all of `traits`, literals too where these allow them, and lie in
    /// `within` where that is given; `None` if that is no short list and `exact` is not asked for.
    /// Types are always honoured: without `exact` only predicates are left out where the list
    /// would be long.
    #[must_use]
    pub fn ids_with(
        &self,
        traits: &[Membership],
        exact: bool,
        within: Option<&IdRanges>,
    ) -> Option<IdRanges> {
        if !exact && !self.clusters.are_few(traits) {
            let is_type = |asked: &Membership| matches!(asked, Membership::Type(_));
            let types: Vec<Membership> = traits.iter().copied().filter(is_type).collect();
            return (!types.is_empty()).then(|| self.vertices_with(&types, within));
        }
        let mut ids = self.vertices_with(traits, within);
        let incoming = traits.iter().map(|asked| match asked {
            Membership::Has(predicate, Direction::In) if *predicate != PredicateId::TYPE => {
                Some(self.segment(*predicate, Direction::In))
            }
            _ => None,
        });
        // Literals have neither types nor outgoing edges, but may be classes by mistake.
        let Some(segments) = incoming.collect::<Option<Vec<_>>>() else {
            return Some(self.with_literal_classes(ids, traits, within));
        };
        let Some(segments) = segments.into_iter().collect::<Option<Vec<_>>>() else {
            return Some(IdRanges::new());
        };
        let first = segments.first()?;
        if !exact
            && segments
                .iter()
                .any(|segment| !segment.domain().literals_are_dense())
        {
            return None;
        }
        let mut literals = first.domain().literal_ranges(within);
        for segment in &segments[1..] {
            literals = literals.intersect(&segment.domain().literal_ranges(within));
        }
        ids.append(&literals);
        Some(ids)
    }

    fn vertices_with(&self, traits: &[Membership], within: Option<&IdRanges>) -> IdRanges {
        let vertices = self.clusters.vertices_with(traits);
        match within {
            Some(within) => vertices.within(within),
            None => vertices,
        }
    }

    /// Adds the literals that are objects of `rdf:type`, where only that is asked.
    fn with_literal_classes(
        &self,
        mut ids: IdRanges,
        traits: &[Membership],
        within: Option<&IdRanges>,
    ) -> IdRanges {
        let only_classes = traits
            .iter()
            .all(|t| *t == Membership::Has(PredicateId::TYPE, Direction::In));
        if only_classes {
            for class in self
                .clusters
                .types()
                .filter(|class| class.kind() != TermKind::Vertex)
                .filter(|class| within.is_none_or(|within| within.contains(*class)))
            {
                ids.push(class, TermId::from_raw(class.raw() + 1));
            }
        }
        ids
    }

    /// Calls `visit` with each edge that matches, until it breaks; the graph of each is `NONE`.
    ///
    /// Costs the matches where an end is known; else the edges of the predicate, or everything.
    pub fn for_each_match(&self, pattern: &Pattern, visit: &mut Visit<'_>) -> ControlFlow<()> {
        if let Some(predicate) = pattern.predicate {
            return self.match_predicate(pattern, predicate, visit);
        }
        match (pattern.subject, pattern.object) {
            (Some(subject), _) => {
                self.match_predicate(pattern, PredicateId::TYPE, visit)?;
                for predicate in self.clusters.predicates_of_vertex(subject, Direction::Out) {
                    self.match_predicate(pattern, predicate, visit)?;
                }
            }
            (None, Some(object)) if object.kind() == TermKind::Vertex => {
                self.match_predicate(pattern, PredicateId::TYPE, visit)?;
                for predicate in self.clusters.predicates_of_vertex(object, Direction::In) {
                    self.match_predicate(pattern, predicate, visit)?;
                }
            }
            _ => {
                for number in 0..self.segments[0].len() {
                    self.match_predicate(pattern, PredicateId(number as u32), visit)?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    pub(crate) fn match_predicate(
        &self,
        pattern: &Pattern,
        predicate: PredicateId,
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        match (pattern.subject, pattern.object) {
            (Some(subject), Some(object)) => {
                if self
                    .neighbours(predicate, Direction::Out, subject)
                    .contains(object)
                {
                    visit(subject, predicate, object, TermId::NONE)?;
                }
            }
            (Some(subject), None) => {
                let list = self.neighbours(predicate, Direction::Out, subject);
                for index in 0..list.len() {
                    visit(subject, predicate, list.get(index), TermId::NONE)?;
                }
            }
            (None, Some(object)) => match self.neighbours(predicate, Direction::In, object) {
                Neighbours::Ranges(ranges) => {
                    for (begin, end) in ranges.ranges() {
                        for raw in *begin..*end {
                            visit(TermId::from_raw(raw), predicate, object, TermId::NONE)?;
                        }
                    }
                }
                list => {
                    for index in 0..list.len() {
                        visit(list.get(index), predicate, object, TermId::NONE)?;
                    }
                }
            },
            (None, None) => return self.scan_predicate(predicate, visit),
        }
        ControlFlow::Continue(())
    }

    fn scan_predicate(&self, predicate: PredicateId, visit: &mut Visit<'_>) -> ControlFlow<()> {
        if predicate == PredicateId::TYPE {
            for (members, types) in self.clusters.typed_stretches() {
                for number in members {
                    let subject = TermId::vertex(number);
                    for index in 0..types.len() {
                        visit(subject, predicate, types.get(index), TermId::NONE)?;
                    }
                }
            }
            return ControlFlow::Continue(());
        }
        let Some(segment) = self.segment(predicate, Direction::Out) else {
            return ControlFlow::Continue(());
        };
        let mut flow = ControlFlow::Continue(());
        segment.domain().for_each(&mut |subject| {
            let list = segment.neighbours(subject);
            for index in 0..list.len() {
                if flow.is_continue() {
                    flow = visit(subject, predicate, list.get(index), TermId::NONE);
                }
            }
        });
        flow
    }

    /// True if a vertex or literal has a trait.
    pub(crate) fn has_trait(&self, id: TermId, asked: Membership) -> bool {
        match asked {
            Membership::Has(predicate, direction) if id.kind() != TermKind::Vertex => {
                !self.neighbours(predicate, direction, id).is_empty()
            }
            Membership::Has(PredicateId::TYPE, Direction::In) => !self
                .neighbours(PredicateId::TYPE, Direction::In, id)
                .is_empty(),
            _ => self.clusters.is_member(id, asked),
        }
    }

    /// The place of an edge among those of its predicate, by subject and object; `None` if it is
    /// not there.
    #[inline]
    pub(crate) fn place(
        &self,
        predicate: PredicateId,
        subject: TermId,
        object: TermId,
    ) -> Option<usize> {
        if predicate == PredicateId::TYPE {
            return self.clusters.type_place(subject, object);
        }
        let segment = self.segment(predicate, Direction::Out)?;
        let range = segment.edge_range(subject);
        let list = segment.neighbours(subject);
        let index = list.seek(0, object);
        (index < list.len() && list.get(index) == object).then(|| range.start + index)
    }

    /// Subject and object of the edge at a place.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn edge_at(&self, predicate: PredicateId, place: usize) -> (TermId, TermId) {
        if predicate == PredicateId::TYPE {
            return self.clusters.type_edge_at(place);
        }
        let segment = self.segment(predicate, Direction::Out);
        segment.expect("the predicate has edges").edge_at(place)
    }

    /// The subjects of a predicate in `windows`.
    pub(crate) fn subjects_within(&self, predicate: PredicateId, windows: &IdRanges) -> IdRanges {
        let asked = Membership::Has(predicate, Direction::Out);
        self.clusters.members_within(asked, windows)
    }
}
