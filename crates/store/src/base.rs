//! The immutable base of a store: everything that a bulk load leaves behind, and how to read it.

use std::ops::{ControlFlow, Range};
use std::path::PathBuf;

use jindou_dictionary::StringTable;
use jindou_fabric::Region;
use jindou_model::{
    Cursor, Direction, Graphs, IdRanges, Membership, Neighbours, Pattern, PredicateId, ShardId,
    TermId, TermKind, Visit,
};
use rustc_hash::FxHashMap;

use crate::StoreError;
use crate::clusters::Clusters;
use crate::identity::Identity;
use crate::named::NamedGraphs;
use crate::segment::{Segment, expand_one};
use crate::text_order::{LiteralEnds, TextKinds};

/// One generation of the graph, with its dictionary. Nothing in it changes.
pub struct Base {
    pub(crate) vertices: StringTable,
    pub(crate) literals: StringTable,
    pub(crate) predicates: StringTable,
    /// The term of each predicate: a vertex where its IRI is one.
    pub(crate) predicate_terms: Vec<TermId>,
    /// Predicates of vertices whose IRI is one, by local id.
    pub(crate) vertex_predicates: FxHashMap<u64, PredicateId>,
    pub(crate) clusters: Clusters,
    /// Segments of the default graph by direction and predicate; `rdf:type` has none, its edges
    /// are in the clusters.
    pub(crate) segments: [Vec<Option<Segment>>; 2],
    pub(crate) named: NamedGraphs,
    /// Triples of the default graph: those of all segments and clusters.
    pub(crate) triples: u64,
    /// Documents loaded so far: blank nodes of the next one get this scope.
    pub(crate) documents: u64,
    /// Graphs that exist without quads, too, sorted.
    pub(crate) declared: Vec<u64>,
    pub(crate) vertex_kinds: TextKinds,
    pub(crate) literal_ends: LiteralEnds,
    /// As its file says; the default of a base that was not read from one.
    pub(crate) identity: Identity,
    /// The mapped files that it lies in.
    pub(crate) files: Vec<(PathBuf, Region)>,
}

/// Bytes by part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Vertices, literals and predicates with their index.
    pub dictionary: usize,
    /// Segments of the default graph.
    pub segments: usize,
    /// Quads outside the default graph.
    pub named: usize,
    /// Characteristic sets.
    pub clusters: usize,
}

impl Footprint {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> usize {
        self.dictionary + self.segments + self.named + self.clusters
    }
}

impl Base {
    /// Refuses if one of the mapped files was shortened, or could not be read, since it was opened:
    /// then what was read from the base before this call may have been zeros in place of what was
    /// written. Costs nanoseconds.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] with the name of the file, from then on at every call.
    pub fn check(&self) -> Result<(), StoreError> {
        match self.files.iter().find(|(_, region)| region.is_damaged()) {
            None => Ok(()),
            Some((path, _)) => Err(StoreError::lost_bytes(path)),
        }
    }

    /// True if it lies in files rather than in memory of its own.
    #[must_use]
    pub fn is_in_files(&self) -> bool {
        !self.files.is_empty()
    }

    /// Number of predicates.
    #[must_use]
    pub fn predicate_count(&self) -> usize {
        self.predicate_terms.len()
    }

    /// Number of vertices.
    #[must_use]
    pub fn vertex_count(&self) -> u64 {
        self.vertices.len()
    }

    /// Number of literals in the dictionary.
    #[must_use]
    pub fn literal_count(&self) -> u64 {
        self.literals.len()
    }

    /// Number of triples of the default graph. Each commit and each look at the server's figures
    /// asks for it, so it was counted when the base was put together.
    #[must_use]
    pub fn triples(&self) -> u64 {
        self.triples
    }

    /// The characteristic sets.
    #[must_use]
    pub fn clusters(&self) -> &Clusters {
        &self.clusters
    }

    /// The quads outside the default graph.
    #[must_use]
    pub fn named(&self) -> &NamedGraphs {
        &self.named
    }

    /// Documents loaded so far; blank nodes of the next one get this scope.
    #[must_use]
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// Vertex keys by local id.
    #[must_use]
    pub fn vertex_table(&self) -> &StringTable {
        &self.vertices
    }

    /// Literal keys by local id.
    #[must_use]
    pub fn literal_table(&self) -> &StringTable {
        &self.literals
    }

    /// Predicate IRIs by number.
    #[must_use]
    pub fn predicate_table(&self) -> &StringTable {
        &self.predicates
    }

    /// Bytes by part.
    #[must_use]
    pub fn footprint(&self) -> Footprint {
        Footprint {
            dictionary: self.vertices.bytes()
                + self.literals.bytes()
                + self.predicates.bytes()
                + self.vertex_kinds.bytes()
                + self.literal_ends.bytes()
                + self.predicate_terms.len() * 8
                + self.vertex_predicates.capacity() * 16,
            segments: self
                .segments
                .iter()
                .flatten()
                .flatten()
                .map(Segment::bytes)
                .sum(),
            named: self.named.bytes(),
            clusters: self.clusters.bytes(),
        }
    }

    /// The id of the vertex or predicate with this key.
    #[must_use]
    pub fn find_node(&self, key: &[u8]) -> Option<TermId> {
        match self.vertices.lookup(key) {
            Some(local) => Some(TermId::vertex(ShardId(0), local)),
            None => {
                let number = self.predicates.lookup(key)?;
                Some(self.predicate_terms[number as usize])
            }
        }
    }

    /// The id of the dictionary literal with this key.
    #[must_use]
    pub fn find_literal(&self, key: &[u8]) -> Option<TermId> {
        self.literals
            .lookup(key)
            .map(|local| TermId::literal(ShardId(0), local))
    }

    /// The predicate with this IRI.
    #[must_use]
    pub fn find_predicate(&self, iri: &str) -> Option<PredicateId> {
        self.predicates
            .lookup(iri.as_bytes())
            .map(|number| PredicateId(number as u32))
    }

    /// The term of a predicate.
    ///
    /// # Panics
    /// If there is no such predicate.
    #[must_use]
    pub fn predicate_term(&self, predicate: PredicateId) -> TermId {
        self.predicate_terms[predicate.index()]
    }

    /// The predicate that a term is, if it is one.
    #[must_use]
    pub fn predicate_of_term(&self, term: TermId) -> Option<PredicateId> {
        match term.kind() {
            TermKind::Predicate => Some(PredicateId(term.payload() as u32)),
            TermKind::Vertex => self.vertex_predicates.get(&term.local()).copied(),
            _ => None,
        }
    }

    /// Appends the key of a vertex, dictionary literal or predicate.
    ///
    /// # Panics
    /// If the id is not one of this store.
    pub fn push_key(&self, id: TermId, key: &mut Vec<u8>) {
        let done = match id.kind() {
            TermKind::Vertex => self.vertices.extract(id.local(), key),
            TermKind::Literal => self.literals.extract(id.local(), key),
            TermKind::Predicate => self.predicates.extract(id.payload(), key),
            kind => panic!("a term of kind {kind:?} has no key in the dictionary"),
        };
        done.unwrap_or_else(|error| panic!("term {id:?} is not in the dictionary: {error}"));
    }

    /// The segment of a predicate other than `rdf:type` in the default graph, if it has edges.
    #[inline]
    #[must_use]
    pub fn segment(&self, predicate: PredicateId, direction: Direction) -> Option<&Segment> {
        self.segments[direction as usize]
            .get(predicate.index())?
            .as_ref()
    }

    /// Edges and distinct keys of any predicate in the default graph.
    #[must_use]
    pub fn counts(&self, predicate: PredicateId, direction: Direction) -> (u64, u64) {
        if predicate == PredicateId::TYPE {
            let keys = match direction {
                Direction::Out => self.clusters.typed_vertices(),
                Direction::In => self.clusters.types().len() as u64,
            };
            return (self.clusters.type_edges(), keys);
        }
        self.segment(predicate, direction)
            .map_or((0, 0), |segment| {
                (segment.edges() as u64, segment.domain().len() as u64)
            })
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
        if !exact && !self.clusters.is_short(traits) {
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

    /// Calls `visit` with each quad that matches, until it breaks.
    ///
    /// Costs the matches where an end is known; else the edges of the predicate, or everything.
    /// In one named graph at most the size of that graph, and mostly only the matches.
    pub fn for_each_match(
        &self,
        pattern: &Pattern,
        graphs: Graphs,
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        match graphs {
            Graphs::Default => self.match_default(pattern, visit),
            Graphs::One(graph) => self.match_graph(pattern, graph, visit),
            Graphs::Named => self.match_named(pattern, visit),
        }
    }

    fn match_default(&self, pattern: &Pattern, visit: &mut Visit<'_>) -> ControlFlow<()> {
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
                for number in 0..self.predicate_count() {
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
            for cluster in 0..self.clusters.len() {
                let types = self.clusters.types_of(cluster);
                for local in self.clusters.members(cluster) {
                    let subject = TermId::vertex(ShardId(0), local);
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

    /// Quads of one graph, from its own index; where many have the object asked for, from the
    /// edges of that object if these are fewer.
    fn match_graph(
        &self,
        pattern: &Pattern,
        graph: TermId,
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        let index = self.named.index();
        let mut rest = index.quads(graph);
        if let Some(predicate) = pattern.predicate {
            let quads = index.of_predicate(rest, predicate);
            return self.match_graph_predicate(pattern, graph, predicate, quads, visit);
        }
        if pattern.subject.is_none() && pattern.object.is_none() {
            return self.visit_quads(graph, rest, visit);
        }
        while !rest.is_empty() {
            let (_, predicate, _) = index.quad(rest.start);
            let quads = index.of_predicate(rest.clone(), predicate);
            rest.start = quads.end;
            self.match_graph_predicate(pattern, graph, predicate, quads, visit)?;
        }
        ControlFlow::Continue(())
    }

    /// Those of `quads`, which are what one graph has of one predicate, that match.
    fn match_graph_predicate(
        &self,
        pattern: &Pattern,
        graph: TermId,
        predicate: PredicateId,
        quads: Range<usize>,
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        let index = self.named.index();
        match (pattern.subject, pattern.object) {
            (None, None) => self.visit_quads(graph, quads, visit),
            (Some(subject), None) => {
                self.visit_quads(graph, index.of_subject(quads, subject), visit)
            }
            (Some(subject), Some(object)) => {
                let quads = index.of_object(index.of_subject(quads, subject), object);
                self.visit_quads(graph, quads, visit)
            }
            (None, Some(object)) => {
                let of_object = self
                    .named
                    .segment(predicate, Direction::In)
                    .map_or(0, |segment| segment.edges().edge_range(object).len());
                if of_object < quads.len() {
                    return self.match_named_predicate(pattern, predicate, Some(graph), visit);
                }
                for number in quads {
                    let (subject, _, found) = index.quad(number);
                    if found == object {
                        visit(subject, predicate, object, graph)?;
                    }
                }
                ControlFlow::Continue(())
            }
        }
    }

    fn visit_quads(
        &self,
        graph: TermId,
        quads: Range<usize>,
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        let index = self.named.index();
        for number in quads {
            let (subject, predicate, object) = index.quad(number);
            visit(subject, predicate, object, graph)?;
        }
        ControlFlow::Continue(())
    }

    /// Number of quads of a named graph, of one predicate where that is given.
    pub(crate) fn graph_places(&self, graph: TermId, predicate: Option<PredicateId>) -> usize {
        let index = self.named.index();
        let quads = index.quads(graph);
        match predicate {
            Some(predicate) => index.of_predicate(quads, predicate).len(),
            None => quads.len(),
        }
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

    /// Calls `visit` with quads of a named graph, of one predicate where that is given, from the
    /// `from`-th on and `count` at most, until it breaks; returns false where these are the last.
    pub fn scan_graph(
        &self,
        graph: TermId,
        predicate: Option<PredicateId>,
        from: usize,
        count: usize,
        visit: &mut Visit<'_>,
    ) -> bool {
        let index = self.named.index();
        let mut quads = index.quads(graph);
        if let Some(predicate) = predicate {
            quads = index.of_predicate(quads, predicate);
        }
        let begin = quads.end.min(quads.start.saturating_add(from));
        let end = quads.end.min(begin.saturating_add(count));
        let _ = self.visit_quads(graph, begin..end, visit);
        end < quads.end
    }

    fn match_named(&self, pattern: &Pattern, visit: &mut Visit<'_>) -> ControlFlow<()> {
        match pattern.predicate {
            Some(predicate) => self.match_named_predicate(pattern, predicate, None, visit),
            None => {
                for number in 0..self.predicate_count() {
                    let predicate = PredicateId(number as u32);
                    self.match_named_predicate(pattern, predicate, None, visit)?;
                }
                ControlFlow::Continue(())
            }
        }
    }

    fn match_named_predicate(
        &self,
        pattern: &Pattern,
        predicate: PredicateId,
        graph: Option<TermId>,
        visit: &mut Visit<'_>,
    ) -> ControlFlow<()> {
        let direction = if pattern.subject.is_some() {
            Direction::Out
        } else {
            Direction::In
        };
        let mut flow = ControlFlow::Continue(());
        let mut emit = |subject: TermId, object: TermId, found: TermId| {
            if flow.is_continue() && graph.is_none_or(|graph| graph == found) {
                flow = visit(subject, predicate, object, found);
            }
        };
        let Some(segment) = self.named.segment(predicate, direction) else {
            return flow;
        };
        match (pattern.subject, pattern.object) {
            (Some(subject), Some(object)) => {
                segment.for_each_graph(subject, object, &mut |found| emit(subject, object, found));
            }
            (Some(subject), None) => {
                segment.for_each(subject, &mut |object, found| emit(subject, object, found));
            }
            (None, Some(object)) => {
                segment.for_each(object, &mut |subject, found| emit(subject, object, found));
            }
            (None, None) => segment.edges().domain().for_each(&mut |object| {
                segment.for_each(object, &mut |subject, found| emit(subject, object, found));
            }),
        }
        flow
    }
}
