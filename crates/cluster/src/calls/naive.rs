//! A graph that looks through all of its quads, and that a test makes slow, unready or broken.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use jindou_exec::{Catalogue, GraphSource};
use jindou_model::{
    Cursor, Direction, GraphRef, IdRanges, Lists, Membership, Pattern, Precision, PredicateId,
    TermId, Unavailable, Visit,
};
use jindou_partition::Shards;
use parking_lot::{Condvar, Mutex};

use super::words::Quad;
use crate::Sharded;

/// Subject, predicate, object and graph of each.
pub(crate) type Quads = BTreeSet<Quad>;

pub(crate) struct Naive {
    quads: Quads,
    /// Edges that were handed out or left out of pages.
    pub(crate) looked_at: AtomicUsize,
    /// Reading panics, as of a file that lost bytes.
    pub(crate) is_broken: AtomicBool,
    /// One call of so many is not answered, if that is not 0.
    pub(crate) unready_every: AtomicUsize,
    calls: AtomicUsize,
    gate: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    is_closed: bool,
    /// Calls that stand before it.
    waiting: usize,
}

/// A graph in shards without rows and edges.
pub(crate) fn without_rows(shards: Shards) -> Sharded {
    let nothing = Arc::new(Naive::new(Quads::new()));
    let rows = shards.all().map(|_| None).collect();
    Sharded::new(shards, Arc::clone(&nothing) as _, nothing, rows)
}

/// No call of a graph is answered until this is dropped.
pub(crate) struct Gate(Arc<Naive>);

impl Gate {
    pub(crate) fn closed(graph: &Arc<Naive>) -> Self {
        graph.gate.lock().is_closed = true;
        Self(Arc::clone(graph))
    }

    pub(crate) fn wait_for_a_call(&self) {
        let mut gate = self.0.gate.lock();
        while gate.waiting == 0 {
            self.0.changed.wait(&mut gate);
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.0.gate.lock().is_closed = false;
        self.0.changed.notify_all();
    }
}

impl Naive {
    pub(crate) fn new(quads: Quads) -> Self {
        Self {
            quads,
            looked_at: AtomicUsize::new(0),
            is_broken: AtomicBool::new(false),
            unready_every: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
            gate: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// What each call begins with.
    fn begin(&self) -> Result<(), Unavailable> {
        let mut gate = self.gate.lock();
        gate.waiting += 1;
        self.changed.notify_all();
        while gate.is_closed {
            self.changed.wait(&mut gate);
        }
        gate.waiting -= 1;
        drop(gate);
        assert!(!self.is_broken.load(Ordering::SeqCst), "the test breaks it");
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        match self.unready_every.load(Ordering::SeqCst) {
            0 => Ok(()),
            every if call.is_multiple_of(every) => Err(Unavailable::NotNow),
            _ => Ok(()),
        }
    }

    fn is_in(graph: GraphRef<'_>, row: usize, name: TermId) -> bool {
        match graph {
            GraphRef::Default => name.is_none(),
            GraphRef::One(one) => name == one,
            GraphRef::Some(some) => some.contains(&name),
            GraphRef::Named => !name.is_none(),
            GraphRef::Union => true,
            GraphRef::Each(each) => !name.is_none() && each[row] == name,
        }
    }

    /// The neighbours of a row's key, in order.
    fn neighbours(&self, graph: GraphRef<'_>, list: &Lists<'_>, row: usize) -> Vec<TermId> {
        let key = list.keys[row];
        let of_key: Box<dyn Iterator<Item = &Quad>> = match list.direction {
            Direction::Out => {
                let from = (key, list.predicate, TermId::NONE, TermId::NONE);
                let quads = self.quads.range(from..);
                Box::new(quads.take_while(move |quad| (quad.0, quad.1) == (key, list.predicate)))
            }
            Direction::In => {
                let is_same = move |quad: &&Quad| (quad.2, quad.1) == (key, list.predicate);
                Box::new(self.quads.iter().filter(is_same))
            }
        };
        let in_graph = of_key.filter(|quad| Self::is_in(graph, row, quad.3));
        let mut ids: Vec<TermId> = in_graph
            .map(|quad| match list.direction {
                Direction::Out => quad.2,
                Direction::In => quad.0,
            })
            .collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    fn subjects(&self, graph: GraphRef<'_>, asked: Membership) -> BTreeSet<u64> {
        let Membership::Has(predicate, Direction::Out) = asked else {
            panic!("no test asks for {asked:?}");
        };
        let quads = self.quads.iter().filter(|quad| quad.1 == predicate);
        let quads = quads.filter(|quad| Self::is_in(graph, 0, quad.3));
        quads.map(|quad| quad.0.raw()).collect()
    }
}

impl Catalogue for Naive {
    fn predicate(&self, _: TermId) -> Option<PredicateId> {
        None
    }

    fn predicate_term(&self, predicate: PredicateId) -> TermId {
        TermId::vertex(predicate.0.into())
    }

    fn predicates(&self, _: GraphRef<'_>, out: &mut Vec<PredicateId>) {
        out.extend(self.quads.iter().map(|quad| quad.1));
        out.sort_unstable();
        out.dedup();
    }

    fn predicates_of(
        &self,
        graph: GraphRef<'_>,
        _: TermId,
        _: Direction,
        out: &mut Vec<PredicateId>,
    ) {
        self.predicates(graph, out);
    }

    fn has_graph(&self, graph: TermId) -> bool {
        self.quads.iter().any(|quad| quad.3 == graph)
    }

    fn graph_count(&self) -> u64 {
        let mut graphs = Vec::new();
        self.graphs(&mut graphs);
        graphs.len() as u64
    }

    fn graphs(&self, out: &mut Vec<TermId>) {
        let named = self.quads.iter().filter(|quad| !quad.3.is_none());
        out.extend(named.map(|quad| quad.3).collect::<BTreeSet<_>>());
    }

    fn named_quads(&self, _: PredicateId) -> Option<u64> {
        None
    }

    fn edges(&self, graph: GraphRef<'_>, predicate: PredicateId) -> Option<u64> {
        let quads = self.quads.iter().filter(|quad| quad.1 == predicate);
        Some(quads.filter(|quad| Self::is_in(graph, 0, quad.3)).count() as u64)
    }
}

impl GraphSource for Naive {
    fn members(
        &self,
        graph: GraphRef<'_>,
        memberships: &[Membership],
        _: Precision,
        within: Option<&IdRanges>,
    ) -> Result<Option<IdRanges>, Unavailable> {
        self.begin()?;
        let [asked] = memberships else {
            panic!("no test asks for {memberships:?}");
        };
        let mut ids = IdRanges::new();
        ids.extend_sorted(self.subjects(graph, *asked).into_iter());
        Ok(Some(match within {
            Some(within) => ids.within(within),
            None => ids,
        }))
    }

    fn expand(
        &self,
        graph: GraphRef<'_>,
        lists: &[Lists<'_>],
        cursor: &mut Cursor,
        allowed: Option<&IdRanges>,
        budget: usize,
        rows: &mut Vec<u32>,
        out: &mut Vec<TermId>,
    ) -> Result<(), Unavailable> {
        self.begin()?;
        while cursor.key < lists[0].keys.len() && out.len() < budget {
            let row = cursor.key;
            let found = self.neighbours(graph, &lists[0], row);
            let left = &found[cursor.offset.min(found.len())..];
            let taken = left.len().min(budget - out.len());
            self.looked_at.fetch_add(taken, Ordering::Relaxed);
            for id in &left[..taken] {
                let is_held = |list: &Lists<'_>| self.neighbours(graph, list, row).contains(id);
                if allowed.is_none_or(|allowed| allowed.contains(*id))
                    && lists[1..].iter().all(is_held)
                {
                    rows.push(row as u32);
                    out.push(*id);
                }
            }
            *cursor = match taken == left.len() {
                true => Cursor {
                    key: row + 1,
                    offset: 0,
                },
                false => Cursor {
                    key: row,
                    offset: cursor.offset + taken,
                },
            };
        }
        Ok(())
    }

    fn places(&self, graph: GraphRef<'_>, list: &Lists<'_>) -> Result<u64, Unavailable> {
        self.begin()?;
        Ok(self.neighbours(graph, list, 0).len() as u64)
    }

    fn contains(
        &self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        to: &[TermId],
        rows: &mut Vec<u32>,
    ) -> Result<(), Unavailable> {
        self.begin()?;
        let has = |row: &usize| self.neighbours(graph, list, *row).contains(&to[*row]);
        rows.extend((0..to.len()).filter(has).map(|row| row as u32));
        Ok(())
    }

    fn degrees(
        &self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        allowed: Option<&IdRanges>,
        out: &mut Vec<u64>,
    ) -> Result<(), Unavailable> {
        self.begin()?;
        out.extend((0..list.keys.len()).map(|row| {
            let ids = self.neighbours(graph, list, row).into_iter();
            let allowed = ids.filter(|id| allowed.is_none_or(|allowed| allowed.contains(*id)));
            allowed.count() as u64
        }));
        Ok(())
    }

    fn graphs_of(
        &self,
        list: &Lists<'_>,
        to: &[TermId],
        rows: &mut Vec<u32>,
        graphs: &mut Vec<TermId>,
    ) -> Result<(), Unavailable> {
        self.begin()?;
        for (row, (key, to)) in list.keys.iter().zip(to).enumerate() {
            let (s, o) = match list.direction {
                Direction::Out => (*key, *to),
                Direction::In => (*to, *key),
            };
            let from = (s, list.predicate, o, TermId::from_raw(1));
            let quads = self.quads.range(from..);
            for quad in quads.take_while(|quad| (quad.0, quad.1, quad.2) == (s, list.predicate, o))
            {
                rows.push(row as u32);
                graphs.push(quad.3);
            }
        }
        Ok(())
    }

    fn for_each_match(
        &self,
        pattern: &Pattern,
        graph: GraphRef<'_>,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Unavailable> {
        self.begin()?;
        let mut last = None;
        for quad in self.quads.iter().filter(|quad| is_match(pattern, quad)) {
            self.looked_at.fetch_add(1, Ordering::Relaxed);
            let triple = (quad.0, quad.1, quad.2);
            // In several graphs it is once.
            if !Self::is_in(graph, 0, quad.3) || last == Some(triple) {
                continue;
            }
            last = Some(triple);
            let name = match graph {
                GraphRef::One(name) => name,
                _ => TermId::NONE,
            };
            if visit(quad.0, quad.1, quad.2, name).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn for_each_quad(
        &self,
        pattern: &Pattern,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Unavailable> {
        self.begin()?;
        let named = self.quads.iter().filter(|quad| !quad.3.is_none());
        for quad in named.filter(|quad| is_match(pattern, quad)) {
            self.looked_at.fetch_add(1, Ordering::Relaxed);
            if visit(quad.0, quad.1, quad.2, quad.3).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

fn is_match(pattern: &Pattern, quad: &Quad) -> bool {
    pattern.subject.is_none_or(|subject| subject == quad.0)
        && pattern
            .predicate
            .is_none_or(|predicate| predicate == quad.1)
        && pattern.object.is_none_or(|object| object == quad.2)
}
