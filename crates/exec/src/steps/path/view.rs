//! A graph as a path sees it: what follows, and what is in it?

use std::ops::ControlFlow;

use jindou_model::{
    Cursor, Direction, IdRanges, Lists, Membership, Pattern, Precision, PredicateId, TermId,
    TermKind,
};
use rustc_hash::FxHashSet;

use super::super::scope::Graph;
use super::automaton::{Automaton, Edge, Move};
use crate::ExecError;
use crate::context::Context;

/// Edges followed between two looks at the clock.
pub(super) const EDGES_AT_ONCE: usize = 4096;
/// Keys asked for together: not all of them need have edges.
const KEYS_AT_ONCE: usize = 4096;

/// The active graph of a path.
#[derive(Clone, Debug)]
pub(super) struct View {
    graph: Graph,
}

/// The terms that a path can begin with.
pub(super) enum Starts {
    Ranges(IdRanges),
    List(Vec<TermId>),
}

impl Starts {
    /// Appends up to `count` of them from the `from`-th on.
    pub(super) fn copy(&self, from: usize, count: usize, out: &mut Vec<TermId>) {
        match self {
            Self::Ranges(ranges) => {
                ranges.copy(from as u64, count, out);
            }
            Self::List(list) => out.extend(list.iter().skip(from).take(count)),
        }
    }

    /// How many they are.
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Ranges(ranges) => ranges.len(),
            Self::List(list) => list.len() as u64,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Ranges(ranges) => size_of_val(ranges.ranges()),
            Self::List(list) => size_of_val(list.as_slice()),
        }
    }
}

impl View {
    pub(super) fn new(graph: Graph) -> Self {
        Self { graph }
    }

    /// Appends neighbours of keys, and the index of the key of each, from the cursor on, about
    /// [`EDGES_AT_ONCE`] of them; the same one may come twice. At the end `cursor.key` is the number of keys.
    pub(super) fn follow(
        &self,
        edge: &Edge,
        keys: &[TermId],
        cursor: &mut Cursor,
        rows: &mut Vec<u32>,
        out: &mut Vec<TermId>,
        cx: &Context,
    ) -> Result<(), ExecError> {
        let end = keys.len().min(cursor.key + KEYS_AT_ONCE);
        let (excluded, direction) = match edge {
            Edge::Of(predicate, direction) => {
                let list = Lists {
                    predicate: *predicate,
                    direction: *direction,
                    keys: &keys[..end],
                };
                let graph = self.graph.as_ref();
                return cx.expand(graph, &[list], cursor, None, EDGES_AT_ONCE, rows, out);
            }
            Edge::Except(excluded, direction) => (excluded.as_slice(), *direction),
        };
        while cursor.key < end && out.len() < EDGES_AT_ONCE {
            self.follow_except(excluded, direction, keys[cursor.key], out, cx)?;
            rows.resize(out.len(), cursor.key as u32);
            cursor.key += 1;
        }
        Ok(())
    }

    fn follow_except(
        &self,
        excluded: &[PredicateId],
        direction: Direction,
        key: TermId,
        out: &mut Vec<TermId>,
        cx: &Context,
    ) -> Result<(), ExecError> {
        let pattern = match direction {
            Direction::Out => pattern(Some(key), None),
            Direction::In => pattern(None, Some(key)),
        };
        self.visit(&pattern, cx, &mut |s, p, o| {
            if excluded.binary_search(&p).is_err() {
                out.push(match direction {
                    Direction::Out => o,
                    Direction::In => s,
                });
            }
            out.capacity() * size_of::<TermId>()
        })
    }

    /// Calls `add` with each matching edge of the graph; it returns the bytes that it holds, which
    /// are booked meanwhile.
    fn visit(
        &self,
        pattern: &Pattern,
        cx: &Context,
        add: &mut dyn FnMut(TermId, PredicateId, TermId) -> usize,
    ) -> Result<(), ExecError> {
        let (mut edges, mut charged) = (0_usize, 0);
        let mut result = Ok(());
        let graph = self.graph.as_ref();
        let visited = cx.for_each_match(pattern, graph, &mut |s, p, o, _| {
            let bytes = add(s, p, o);
            edges += 1;
            if !edges.is_multiple_of(EDGES_AT_ONCE) {
                return ControlFlow::Continue(());
            }
            let more = bytes.saturating_sub(charged);
            result = cx.check().and_then(|()| cx.charge(more));
            charged += more;
            match result {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        });
        cx.release(charged);
        let _ = visited?;
        result
    }

    /// True if the term is a subject or an object in the graph.
    pub(super) fn has(&self, id: TermId, cx: &Context) -> Result<bool, ExecError> {
        let matches = |pattern: Pattern| {
            let stop = &mut |_, _, _, _| ControlFlow::Break(());
            let flow = cx.for_each_match(&pattern, self.graph.as_ref(), stop)?;
            Ok::<_, ExecError>(flow.is_break())
        };
        Ok(match id.kind() {
            TermKind::None | TermKind::Window | TermKind::Computed => false,
            TermKind::Vertex => {
                matches(pattern(Some(id), None))? || matches(pattern(None, Some(id)))?
            }
            _ => matches(pattern(None, Some(id)))?,
        })
    }

    /// The terms at which a path may begin: all of the graph if it need not have an edge, else
    /// at least those that have one of its first edges.
    pub(super) fn starts(&self, automaton: &Automaton, cx: &Context) -> Result<Starts, ExecError> {
        match automaton.is_nullable {
            true => self.all(cx),
            false => self.begins(automaton, cx),
        }
    }

    /// At least the terms that have one of the first edges of a path.
    pub(super) fn begins(&self, automaton: &Automaton, cx: &Context) -> Result<Starts, ExecError> {
        let edge = |step: &Move| match &step.edge {
            Edge::Of(predicate, direction) => Some((*predicate, *direction)),
            Edge::Except(..) => None,
        };
        match automaton.states[0].iter().map(edge).collect() {
            Some(edges) => self.with_any(edges, cx),
            None => self.all(cx),
        }
    }

    /// Edges of the predicates that a path may follow, as often as it has a state for them.
    pub(super) fn edges(&self, automaton: &Automaton, cx: &Context) -> Option<u64> {
        let graph = self.graph.as_ref();
        let of = |predicate: PredicateId| cx.source.edges(graph, predicate);
        let steps = automaton.states.iter().flatten();
        let all = steps.map(|step| match &step.edge {
            Edge::Of(predicate, _) => of(*predicate),
            Edge::Except(..) => {
                let mut predicates = Vec::new();
                cx.source.predicates(graph, &mut predicates);
                predicates.into_iter().map(of).sum()
            }
        });
        all.sum()
    }

    /// All terms of the graph.
    fn all(&self, cx: &Context) -> Result<Starts, ExecError> {
        // What these have may be in other graphs only.
        if matches!(self.graph, Graph::One(_) | Graph::Some(_)) {
            return self.terms(cx).map(Starts::List);
        }
        let mut predicates = Vec::new();
        cx.source.predicates(self.graph.as_ref(), &mut predicates);
        let both = |p| [(p, Direction::Out), (p, Direction::In)];
        self.with_any(predicates.into_iter().flat_map(both).collect(), cx)
    }

    /// The terms that have one of these predicates.
    fn with_any(
        &self,
        edges: Vec<(PredicateId, Direction)>,
        cx: &Context,
    ) -> Result<Starts, ExecError> {
        let graph = self.graph.as_ref();
        let mut ranges = Vec::new();
        for (predicate, direction) in edges {
            cx.check()?;
            let has = [Membership::Has(predicate, direction)];
            if let Some(ids) = cx.members(graph, &has, Precision::Exact, None)? {
                cx.charge(size_of_val(ids.ranges()))?;
                ranges.extend_from_slice(ids.ranges());
            }
        }
        let bytes = size_of_val(ranges.as_slice());
        let merged = merged(ranges);
        cx.release(bytes);
        Ok(Starts::Ranges(merged))
    }

    /// All subjects and objects of the graph, each once.
    fn terms(&self, cx: &Context) -> Result<Vec<TermId>, ExecError> {
        let mut terms = FxHashSet::default();
        self.visit(&pattern(None, None), cx, &mut |s, _, o| {
            terms.extend([s, o]);
            terms.capacity() * (size_of::<TermId>() + 1)
        })?;
        Ok(terms.into_iter().collect())
    }
}

fn pattern(subject: Option<TermId>, object: Option<TermId>) -> Pattern {
    Pattern {
        subject,
        predicate: None,
        object,
    }
}

/// The union of ranges of ids.
fn merged(mut ranges: Vec<(u64, u64)>) -> IdRanges {
    ranges.sort_unstable();
    let mut all = IdRanges::new();
    let mut behind = 0;
    for (begin, end) in ranges {
        let begin = begin.max(behind);
        if begin < end {
            all.push(TermId::from_raw(begin), TermId::from_raw(end));
            behind = end;
        }
    }
    all
}
