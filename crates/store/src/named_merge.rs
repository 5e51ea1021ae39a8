//! A merge of named graphs: the parts of the predicates that are merged are made anew, the others
//! are those of the base before.

use std::iter::Peekable;
use std::ops::ControlFlow;
use std::sync::Arc;

use jindou_model::{Direction, Pattern, PredicateId, SortedSet, TermId};

use crate::base::Base;
use crate::graph_packing::Packer;
use crate::graph_table::{GraphCoder, GraphTable};
use crate::layer::{Layer, LayerKind};
use crate::named::{EdgeGraphs, NamedGraphs};
use crate::predicate_graphs::{EdgeSets, PredicateGraphs};
use crate::runs::Runs;

/// Subjects, objects and graphs, as raw ids.
type NamedEdges = SortedSet<(u64, u64, u64)>;

/// What came and what went.
type Changes<'a> = (&'a NamedEdges, &'a NamedEdges);

/// What a merge of named graphs is made of.
pub(crate) struct NamedMerge<'a> {
    /// The base before.
    pub(crate) before: &'a Base,
    /// Its graphs, with those that came (see [`GraphTable::with`]).
    pub(crate) graphs: &'a GraphTable,
    /// The named layer after the merge, which walks the edges of a predicate by subject and object,
    /// in the order of their places.
    pub(crate) layer: &'a Layer,
    /// The runs after the merge: those of before, and perhaps more.
    pub(crate) runs: &'a Runs,
    /// Number of predicates after the merge.
    pub(crate) predicates: usize,
    /// The predicates of which the layer has the changes, sorted. Of the others it has the edges
    /// that it had before, at the same places.
    pub(crate) merged: &'a [PredicateId],
    /// What came and what went of a predicate: quads that the base before did not have, and some
    /// that it had.
    pub(crate) changes: &'a dyn Fn(PredicateId) -> Option<Changes<'a>>,
}

impl NamedGraphs {
    /// The named graphs after a merge.
    ///
    /// Costs a copy of the list of graphs and sets, a walk over the edges of the merged predicates,
    /// old and new, with a search for each edge that is changed, and what [`NamedGraphs::join`]
    /// costs.
    pub(crate) fn merged(merge: &NamedMerge<'_>) -> Self {
        let mut coder = GraphCoder::new(merge.graphs.clone());
        let none = Arc::new(PredicateGraphs::none());
        let part = |number| {
            let predicate = PredicateId(number as u32);
            if merge.merged.binary_search(&predicate).is_ok() {
                return Arc::new(merged_part(merge, predicate, &mut coder));
            }
            let before = merge.before.named.part(predicate);
            Arc::clone(before.unwrap_or(&none))
        };
        let parts = (0..merge.predicates).map(part).collect();
        Self::join(Arc::new(coder.finish()), parts)
    }
}

/// The graphs of the edges of a merged predicate.
fn merged_part(
    merge: &NamedMerge<'_>,
    predicate: PredicateId,
    coder: &mut GraphCoder,
) -> PredicateGraphs {
    let edges = merge.layer.counts(predicate, Direction::Out).0;
    let mut old = OldEdges::new(merge.before, predicate);
    let nothing = NamedEdges::new();
    let (came, went) = (merge.changes)(predicate).unwrap_or((&nothing, &nothing));
    let mut changes = EdgeChanges {
        came: came.iter().peekable(),
        went: went.iter().peekable(),
    };
    let mut packer = Packer::new(coder, merge.runs, edges);
    let mut graphs = Vec::new();
    let all = Pattern {
        subject: None,
        predicate: Some(predicate),
        object: None,
    };
    let flow = merge
        .layer
        .for_each_match(&all, &mut |subject, _, object, _| {
            let edge = (subject.raw(), object.raw());
            while changes.next_edge().is_some_and(|next| next < edge) {
                old.skip(changes.pass());
            }
            graphs.clear();
            if changes.next_edge() == Some(edge) {
                old.graphs_of(edge, &mut graphs);
                changes.apply(edge, merge.graphs, &mut graphs);
            } else {
                old.next_graphs(subject, &mut graphs);
            }
            packer.edge(subject, &graphs);
            ControlFlow::Continue(())
        });
    debug_assert!(flow.is_continue());
    packer.finish()
}

/// What came and went of a predicate, edge by edge.
struct EdgeChanges<C: Iterator, W: Iterator> {
    came: Peekable<C>,
    went: Peekable<W>,
}

impl<C, W> EdgeChanges<C, W>
where
    C: Iterator<Item = (u64, u64, u64)>,
    W: Iterator<Item = (u64, u64, u64)>,
{
    /// The next edge of which a graph came or went.
    #[inline]
    fn next_edge(&mut self) -> Option<(u64, u64)> {
        let came = self.came.peek().map(|(s, o, _)| (*s, *o));
        let went = self.went.peek().map(|(s, o, _)| (*s, *o));
        match (came, went) {
            (Some(came), Some(went)) => Some(came.min(went)),
            (came, went) => came.or(went),
        }
    }

    /// Passes over the next edge, of which nothing is left.
    fn pass(&mut self) -> (u64, u64) {
        let edge = self.next_edge().expect("there is one");
        let is_of = |quad: &(u64, u64, u64)| (quad.0, quad.1) == edge;
        let left = std::iter::from_fn(|| self.came.next_if(is_of)).count();
        debug_assert_eq!(left, 0, "the layer has each edge that came");
        while self.went.next_if(is_of).is_some() {}
        edge
    }

    /// Takes those graphs from the ones of an edge that went, and adds those that came.
    fn apply(&mut self, edge: (u64, u64), table: &GraphTable, graphs: &mut Vec<u32>) {
        let is_of = |quad: &(u64, u64, u64)| (quad.0, quad.1) == edge;
        let number = |graph| {
            let number = table.number(TermId::from_raw(graph));
            number.expect("the table has the graphs of the changes")
        };
        while let Some((_, _, graph)) = self.went.next_if(is_of) {
            let gone = number(graph);
            graphs.retain(|graph| *graph != gone);
        }
        while let Some((_, _, graph)) = self.came.next_if(is_of) {
            graphs.push(number(graph));
        }
        graphs.sort_unstable();
        graphs.dedup();
    }
}

/// The edges that the base before has of a predicate, in the order of their places.
struct OldEdges<'a> {
    base: &'a Base,
    predicate: PredicateId,
    graphs: EdgeGraphs<'a>,
    sets: Option<&'a EdgeSets>,
    /// The place of the next edge, and of the next one that is listed.
    next: usize,
    next_listed: usize,
}

impl<'a> OldEdges<'a> {
    fn new(base: &'a Base, predicate: PredicateId) -> Self {
        Self {
            base,
            predicate,
            graphs: EdgeGraphs::new(base, predicate),
            sets: base.named.part(predicate).map(|part| &part.sets),
            next: 0,
            next_listed: 0,
        }
    }

    /// Goes behind an edge, if it is there; its place.
    fn skip(&mut self, (subject, object): (u64, u64)) -> Option<usize> {
        let (subject, object) = (TermId::from_raw(subject), TermId::from_raw(object));
        let layer = self.base.layer(LayerKind::Named);
        let place = layer.place(self.predicate, subject, object)?;
        self.next = place + 1;
        Some(place)
    }

    /// Appends the graphs of an edge, if it is there: a search.
    fn graphs_of(&mut self, edge: (u64, u64), graphs: &mut Vec<u32>) {
        if let Some(place) = self.skip(edge) {
            self.append(place, TermId::from_raw(edge.0), graphs);
        }
    }

    /// Appends the graphs of the next edge, whose subject is given: a few loads.
    fn next_graphs(&mut self, subject: TermId, graphs: &mut Vec<u32>) {
        let place = self.next;
        self.next += 1;
        self.append(place, subject, graphs);
    }

    fn append(&mut self, place: usize, subject: TermId, graphs: &mut Vec<u32>) {
        match self.code(place) {
            Some(code) => graphs.extend(self.base.named.graphs.list(code).iter()),
            None => graphs.push(self.graphs.home(subject)),
        }
    }

    /// As [`EdgeSets::set_of`], for places that rise.
    fn code(&mut self, place: usize) -> Option<u64> {
        match self.sets? {
            EdgeSets::Each(sets) => Some(sets.get(place)),
            EdgeSets::Home { places, sets, .. } => {
                let place = place as u64;
                while self.next_listed < places.len() && places.get(self.next_listed) < place {
                    self.next_listed += 1;
                }
                let is_listed =
                    self.next_listed < places.len() && places.get(self.next_listed) == place;
                is_listed.then(|| sets.get(self.next_listed))
            }
        }
    }
}

#[cfg(test)]
mod tests;
