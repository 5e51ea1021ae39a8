//! The graph, as the executor sees it: what is next to these vertices?

use std::ops::ControlFlow;

use jindou_model::{
    Cursor, Direction, EndsAsked, GraphRef, IdRanges, KindCount, Lists, Membership, Pattern,
    Precision, PredicateId, TermId, Unavailable, Visit,
};

/// A graph with its named graphs, at one snapshot.
///
/// Calls are made for batches of keys, so that an implementation may overlap its loads or its
/// reads over a network, and fill buffers of the caller. Any may say that it cannot answer now, and
/// is called again then; or that it never can.
pub trait GraphSource: Catalogue {
    /// The ids that have all of `memberships` in a graph, literals included where these allow them,
    /// and lie in `within`, a set of few ranges, where that is given. `None` if that is not a short
    /// list and no exact one is asked for.
    ///
    /// Types are always honoured. Predicates may be those of other named graphs where the graph is
    /// one of these or the merge of some.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn members(
        &self,
        graph: GraphRef<'_>,
        memberships: &[Membership],
        precision: Precision,
        within: Option<&IdRanges>,
    ) -> Result<Option<IdRanges>, Unavailable>;

    /// Follows lists from `cursor` on: for each row, appends its number to `rows` and each id that
    /// all of its lists hold, and `allowed` where that is given, to `out`, until `out` has about
    /// `budget` entries or the rows are done (`cursor.key` is the number of rows). Rows come in
    /// order. It may append nothing and not be done. Of one list of one key it goes through as many
    /// [places](GraphSource::places) as there is room for at most, whatever it leaves out of them.
    ///
    /// # Errors
    /// [`Unavailable`]; the buffers and the cursor say how far it came.
    #[expect(
        clippy::too_many_arguments,
        reason = "one call for a batch; each is used every time"
    )]
    fn expand(
        &self,
        graph: GraphRef<'_>,
        lists: &[Lists<'_>],
        cursor: &mut Cursor,
        allowed: Option<&IdRanges>,
        budget: usize,
        rows: &mut Vec<u32>,
        out: &mut Vec<TermId>,
    ) -> Result<(), Unavailable>;

    /// How many places [`GraphSource::expand`] of the one key of a list goes through: cursors with
    /// offsets below that share them out.
    ///
    /// # Errors
    /// [`Unavailable`].
    fn places(&self, graph: GraphRef<'_>, list: &Lists<'_>) -> Result<u64, Unavailable>;

    /// Appends the number of each row whose edge from its key to its entry of `to` is there.
    ///
    /// # Errors
    /// [`Unavailable`], and nothing was appended.
    fn contains(
        &self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        to: &[TermId],
        rows: &mut Vec<u32>,
    ) -> Result<(), Unavailable>;

    /// Appends the number of neighbours of each key, of those in `allowed` where that is given.
    ///
    /// # Errors
    /// [`Unavailable`], and nothing was appended.
    fn degrees(
        &self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        allowed: Option<&IdRanges>,
        out: &mut Vec<u64>,
    ) -> Result<(), Unavailable>;

    /// The named graphs of edges from each key of `list` to its entry of `to`, all of which the
    /// merge of the named graphs has: appends the number of the row and a graph for each.
    ///
    /// # Errors
    /// [`Unavailable`], and nothing was appended.
    fn graphs_of(
        &self,
        list: &Lists<'_>,
        to: &[TermId],
        rows: &mut Vec<u32>,
        graphs: &mut Vec<TermId>,
    ) -> Result<(), Unavailable>;

    /// The predicates to look at for the edges of a key in a direction, appended to `out`: those of
    /// [`Catalogue::predicates_of`], or fewer where looking at one costs more than asking which it has.
    ///
    /// # Errors
    /// [`Unavailable`], and nothing was appended.
    fn predicates_at(
        &self,
        graph: GraphRef<'_>,
        key: TermId,
        direction: Direction,
        out: &mut Vec<PredicateId>,
    ) -> Result<(), Unavailable> {
        self.predicates_of(graph, key, direction, out);
        Ok(())
    }

    /// Calls `visit` with each triple of a graph that matches, until it breaks; the graph of each
    /// is that of [`GraphRef::One`], or `NONE`.
    ///
    /// # Errors
    /// [`Unavailable`], and nothing was visited if it is not ready only.
    fn for_each_match(
        &self,
        pattern: &Pattern,
        graph: GraphRef<'_>,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Unavailable>;

    /// Calls `visit` with each quad of the named graphs that matches, until it breaks.
    ///
    /// # Errors
    /// [`Unavailable`], and nothing was visited if it is not ready only.
    fn for_each_quad(
        &self,
        pattern: &Pattern,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Unavailable>;

    /// Calls `visit`, until it breaks, with what matches a pattern with each of some predicates, from the one of number
    /// `done` on, which is brought on: triples of a graph, or quads of the named ones where none is given.
    ///
    /// # Errors
    /// [`Unavailable`]; if it is not ready only, nothing was visited of the next predicate that is not done.
    fn for_each_of(
        &self,
        (predicates, done): (&[PredicateId], &mut usize),
        pattern: &Pattern,
        graph: Option<GraphRef<'_>>,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Unavailable> {
        while let Some(predicate) = predicates.get(*done) {
            let one = Pattern {
                predicate: Some(*predicate),
                ..*pattern
            };
            let flow = match graph {
                Some(graph) => self.for_each_match(&one, graph, visit)?,
                None => self.for_each_quad(&one, visit)?,
            };
            if flow.is_break() {
                return Ok(flow);
            }
            *done += 1;
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// What every machine knows of the whole graph: it cannot wait.
pub trait Catalogue: Send + Sync {
    /// The predicate that a term is, if any edge has it.
    fn predicate(&self, term: TermId) -> Option<PredicateId>;

    /// The term of a predicate.
    fn predicate_term(&self, predicate: PredicateId) -> TermId;

    /// The predicates of a graph, and perhaps some that it does not have, appended to `out`.
    fn predicates(&self, graph: GraphRef<'_>, out: &mut Vec<PredicateId>);

    /// The predicates that a vertex has in a direction, `rdf:type` perhaps without an edge, appended
    /// to `out`; for a literal, those that it might have. Of a graph that is neither the default
    /// graph nor a merge of all others, perhaps some of other named graphs.
    fn predicates_of(
        &self,
        graph: GraphRef<'_>,
        key: TermId,
        direction: Direction,
        out: &mut Vec<PredicateId>,
    );

    /// True if there is a named graph of this name.
    fn has_graph(&self, graph: TermId) -> bool;

    /// Number of named graphs.
    fn graph_count(&self) -> u64;

    /// The named graphs, appended to `out`.
    fn graphs(&self, out: &mut Vec<TermId>);

    /// Number of quads of a predicate in all named graphs, of which some may have the same edge;
    /// `None` where that is not counted.
    fn named_quads(&self, predicate: PredicateId) -> Option<u64>;

    /// Number of edges of a predicate in a graph; `None` where that is not counted.
    fn edges(&self, graph: GraphRef<'_>, predicate: PredicateId) -> Option<u64>;

    /// Counts the terms at one end of edges, or these edges, by kind, without a look at each edge; `None` where it
    /// cannot, or once `poll`, which is called now and then with the bytes held, returns false.
    fn count_ends(
        &self,
        _asked: &EndsAsked<'_>,
        _poll: &mut dyn FnMut(usize) -> bool,
    ) -> Option<Vec<KindCount>> {
        None
    }

    /// When a triple (subject, predicate, object) came last of those in windows of streams, in
    /// milliseconds; `None` if no window has it, as in a graph without any.
    fn time_of(&self, _triple: [TermId; 3]) -> Option<i64> {
        None
    }
}

/// A graph that takes what every machine knows from somebody else: it has a [`Catalogue`] by that.
pub trait Catalogued: Send + Sync {
    /// Who knows it.
    fn catalogue(&self) -> &dyn Catalogue;
}

impl<T: Catalogued> Catalogue for T {
    fn predicate(&self, term: TermId) -> Option<PredicateId> {
        self.catalogue().predicate(term)
    }

    fn predicate_term(&self, predicate: PredicateId) -> TermId {
        self.catalogue().predicate_term(predicate)
    }

    fn predicates(&self, graph: GraphRef<'_>, out: &mut Vec<PredicateId>) {
        self.catalogue().predicates(graph, out);
    }

    fn predicates_of(
        &self,
        graph: GraphRef<'_>,
        key: TermId,
        direction: Direction,
        out: &mut Vec<PredicateId>,
    ) {
        self.catalogue().predicates_of(graph, key, direction, out);
    }

    fn has_graph(&self, graph: TermId) -> bool {
        self.catalogue().has_graph(graph)
    }

    fn graph_count(&self) -> u64 {
        self.catalogue().graph_count()
    }

    fn graphs(&self, out: &mut Vec<TermId>) {
        self.catalogue().graphs(out);
    }

    fn named_quads(&self, predicate: PredicateId) -> Option<u64> {
        self.catalogue().named_quads(predicate)
    }

    fn edges(&self, graph: GraphRef<'_>, predicate: PredicateId) -> Option<u64> {
        self.catalogue().edges(graph, predicate)
    }

    fn count_ends(
        &self,
        asked: &EndsAsked<'_>,
        poll: &mut dyn FnMut(usize) -> bool,
    ) -> Option<Vec<KindCount>> {
        self.catalogue().count_ends(asked, poll)
    }

    fn time_of(&self, triple: [TermId; 3]) -> Option<i64> {
        self.catalogue().time_of(triple)
    }
}
