//! Reading what matches a pattern.
//!
//! Predicate by predicate, as each may be on other shards. Where no end is known, shard by shard. What
//! is read goes to the caller at once; so a shard that is not ready is waited for once something was
//! handed on, as the caller cannot be told to ask again then.

use std::ops::ControlFlow;
use std::thread;

use jindou_exec::GraphSource;
use jindou_model::{
    Cursor, Direction, GraphRef, Lists, Pattern, PredicateId, TermId, Unavailable, Visit,
};

use crate::Sharded;

/// Edges read together.
const EDGES_AT_ONCE: usize = 2048;

/// What a call that reads says of its end.
type Ended = Result<ControlFlow<()>, Unavailable>;

/// Reads what matches in the rows of one shard.
type Read<'a> = dyn Fn(&dyn GraphSource, &Pattern, &mut Visit<'_>) -> Ended + 'a;

/// Takes subjects that were found.
type Found<'a> = dyn FnMut(&[TermId], &mut Begun) -> Ended + 'a;

/// Whether the caller has got something.
struct Begun(bool);

impl Begun {
    /// Makes a call, again and again where it is too late to tell the caller to.
    fn ask<T>(
        &mut self,
        mut call: impl FnMut(&mut Self) -> Result<T, Unavailable>,
    ) -> Result<T, Unavailable> {
        loop {
            match call(self) {
                Err(Unavailable::NotNow) if self.0 => thread::yield_now(),
                answer => return answer,
            }
        }
    }
}

impl Sharded {
    /// As [`GraphSource::for_each_match`].
    pub(crate) fn visit_matches(
        &self,
        pattern: &Pattern,
        graph: GraphRef<'_>,
        visit: &mut Visit<'_>,
    ) -> Ended {
        let mut begun = Begun(false);
        for predicate in self.predicates_to_read(pattern, graph) {
            let flow = match (pattern.subject, pattern.object) {
                (None, Some(object)) if predicate != PredicateId::TYPE => {
                    let name = match graph {
                        GraphRef::One(name) => name,
                        _ => TermId::NONE,
                    };
                    let mut found = |subjects: &[TermId], _: &mut Begun| {
                        let mut subjects = subjects.iter();
                        Ok(subjects.try_for_each(|s| visit(*s, predicate, object, name)))
                    };
                    self.visit_subjects(graph, (predicate, object), &mut begun, &mut found)?
                }
                _ => {
                    self.visit_rows(pattern, predicate, &mut begun, visit, &|rows, p, visit| {
                        rows.for_each_match(p, graph, visit)
                    })?
                }
            };
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// As [`GraphSource::for_each_quad`].
    pub(crate) fn visit_quads(&self, pattern: &Pattern, visit: &mut Visit<'_>) -> Ended {
        let mut begun = Begun(false);
        for predicate in self.predicates_to_read(pattern, GraphRef::Named) {
            let flow = match (pattern.subject, pattern.object) {
                (None, Some(object)) if predicate != PredicateId::TYPE => {
                    let mut found = |subjects: &[TermId], begun: &mut Begun| {
                        let quads = begun.ask(|_| self.quads_of(predicate, subjects, object))?;
                        let mut quads = quads.into_iter();
                        Ok(quads.try_for_each(|(s, g)| visit(s, predicate, object, g)))
                    };
                    let graph = GraphRef::Named;
                    self.visit_subjects(graph, (predicate, object), &mut begun, &mut found)?
                }
                _ => {
                    self.visit_rows(pattern, predicate, &mut begun, visit, &|rows, p, visit| {
                        rows.for_each_quad(p, visit)
                    })?
                }
            };
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The predicates that may match, and perhaps others.
    fn predicates_to_read(&self, pattern: &Pattern, graph: GraphRef<'_>) -> Vec<PredicateId> {
        let mut predicates = Vec::new();
        let catalogue = &self.catalogue;
        match (pattern.predicate, pattern.subject, pattern.object) {
            (Some(predicate), _, _) => predicates.push(predicate),
            (None, Some(subject), _) => {
                catalogue.predicates_of(graph, subject, Direction::Out, &mut predicates);
            }
            (None, None, Some(object)) => {
                catalogue.predicates_of(graph, object, Direction::In, &mut predicates);
            }
            (None, None, None) => catalogue.predicates(graph, &mut predicates),
        }
        predicates
    }

    /// Reads the edges of a predicate from a known subject, or all of them, in the rows of subjects.
    fn visit_rows(
        &self,
        pattern: &Pattern,
        predicate: PredicateId,
        begun: &mut Begun,
        visit: &mut Visit<'_>,
        read: &Read<'_>,
    ) -> Ended {
        let pattern = Pattern {
            predicate: Some(predicate),
            ..*pattern
        };
        let mut read_from = |rows: &dyn GraphSource| {
            begun.ask(|begun| {
                read(rows, &pattern, &mut |s, p, o, g| {
                    begun.0 = true;
                    visit(s, p, o, g)
                })
            })
        };
        if predicate == PredicateId::TYPE {
            return read_from(&*self.shared);
        }
        if let Some(subject) = pattern.subject {
            return read_from(self.of_key(predicate, subject)?);
        }
        for shard in self.shards.all() {
            let flow = read_from(self.of_shard(shard)?)?;
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Hands on the subjects of a predicate that lead to an object in a graph, some at a time.
    fn visit_subjects(
        &self,
        graph: GraphRef<'_>,
        (predicate, object): (PredicateId, TermId),
        begun: &mut Begun,
        found: &mut Found<'_>,
    ) -> Ended {
        let list = [Lists {
            predicate,
            direction: Direction::In,
            keys: &[object],
        }];
        let mut cursor = Cursor::default();
        let (mut rows, mut subjects) = (Vec::new(), Vec::new());
        while cursor.key == 0 {
            rows.clear();
            subjects.clear();
            begun.ask(|_| {
                let out = (&mut rows, &mut subjects);
                self.follow(graph, &list, &mut cursor, None, EDGES_AT_ONCE, out)
            })?;
            if subjects.is_empty() {
                continue;
            }
            let flow = found(&subjects, begun)?;
            begun.0 = true;
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The graphs of edges to an object: subject and graph of each.
    fn quads_of(
        &self,
        predicate: PredicateId,
        subjects: &[TermId],
        object: TermId,
    ) -> Result<Vec<(TermId, TermId)>, Unavailable> {
        let objects = vec![object; subjects.len()];
        let list = Lists {
            predicate,
            direction: Direction::In,
            keys: &objects,
        };
        let (mut rows, mut graphs) = (Vec::new(), Vec::new());
        self.graphs_of_edges(&list, subjects, &mut rows, &mut graphs)?;
        let subject = |row: u32| subjects[row as usize];
        Ok(rows.into_iter().map(subject).zip(graphs).collect())
    }
}
