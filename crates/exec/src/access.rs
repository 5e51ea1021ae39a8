//! The calls of [`GraphSource`] as operators make them: a graph that is not ready is waited for, and
//! the query ends where a part of it is lost.

use std::ops::ControlFlow;
use std::thread;

use jindou_model::{
    Cursor, Direction, GraphRef, IdRanges, Lists, Membership, Pattern, Precision, PredicateId,
    TermId, Unavailable, Visit,
};

use crate::ExecError;
use crate::context::Context;
use crate::steps::Graph;

impl Context {
    /// Makes a call until it is answered.
    fn ask<T>(&self, mut call: impl FnMut() -> Result<T, Unavailable>) -> Result<T, ExecError> {
        loop {
            match call() {
                Ok(answer) => return Ok(answer),
                Err(why @ (Unavailable::Never(_) | Unavailable::Gone)) => {
                    return Err(ExecError::of_unavailable(why));
                }
                Err(Unavailable::NotNow) => {
                    self.check()?;
                    if !self.work_meanwhile() {
                        thread::yield_now();
                    }
                }
            }
        }
    }

    pub(crate) fn members(
        &self,
        graph: GraphRef<'_>,
        memberships: &[Membership],
        precision: Precision,
        within: Option<&IdRanges>,
    ) -> Result<Option<IdRanges>, ExecError> {
        self.ask(|| self.source.members(graph, memberships, precision, within))
    }

    #[expect(clippy::too_many_arguments, reason = "those of the call that it makes")]
    pub(crate) fn expand(
        &self,
        graph: GraphRef<'_>,
        lists: &[Lists<'_>],
        cursor: &mut Cursor,
        allowed: Option<&IdRanges>,
        budget: usize,
        rows: &mut Vec<u32>,
        out: &mut Vec<TermId>,
    ) -> Result<(), ExecError> {
        let source = &self.source;
        self.ask(|| source.expand(graph, lists, cursor, allowed, budget, rows, out))
    }

    pub(crate) fn places(&self, graph: GraphRef<'_>, list: &Lists<'_>) -> Result<u64, ExecError> {
        self.ask(|| self.source.places(graph, list))
    }

    pub(crate) fn contains(
        &self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        to: &[TermId],
        rows: &mut Vec<u32>,
    ) -> Result<(), ExecError> {
        self.ask(|| self.source.contains(graph, list, to, rows))
    }

    pub(crate) fn degrees(
        &self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        allowed: Option<&IdRanges>,
        out: &mut Vec<u64>,
    ) -> Result<(), ExecError> {
        self.ask(|| self.source.degrees(graph, list, allowed, out))
    }

    pub(crate) fn graphs_of(
        &self,
        list: &Lists<'_>,
        to: &[TermId],
        rows: &mut Vec<u32>,
        graphs: &mut Vec<TermId>,
    ) -> Result<(), ExecError> {
        self.ask(|| self.source.graphs_of(list, to, rows, graphs))
    }

    pub(crate) fn predicates_at(
        &self,
        graph: GraphRef<'_>,
        key: TermId,
        direction: Direction,
        out: &mut Vec<PredicateId>,
    ) -> Result<(), ExecError> {
        self.ask(|| self.source.predicates_at(graph, key, direction, out))
    }

    pub(crate) fn for_each_match(
        &self,
        pattern: &Pattern,
        graph: GraphRef<'_>,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, ExecError> {
        self.ask(|| self.source.for_each_match(pattern, graph, visit))
    }

    /// Calls `visit` with each triple of the query's default graph that matches, until it breaks.
    ///
    /// # Errors
    /// That the graph lost a part, or what ended the query meanwhile.
    pub fn for_each_of_default_graph(
        &self,
        pattern: &Pattern,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, ExecError> {
        let graph = Graph::default_of(self);
        self.for_each_match(pattern, graph.as_ref(), visit)
    }

    pub(crate) fn for_each_quad(
        &self,
        pattern: &Pattern,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, ExecError> {
        self.ask(|| self.source.for_each_quad(pattern, visit))
    }
}
