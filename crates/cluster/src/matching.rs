//! Reading what matches a pattern.
//!
//! Predicate by predicate, as each may be on other shards. Where no end is known, node by node. What
//! is read goes to the caller at once; so a shard that is not ready is waited for once something was
//! handed on, as the caller cannot be told to ask again then: for a bounded time, as the caller does not look
//! at its limits meanwhile, after which the shard counts as lost.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::thread;
use std::time::{Duration, Instant};

use jindou_exec::GraphSource;
use jindou_model::{
    Cursor, Direction, GraphRef, Lists, Pattern, PredicateId, ShardId, TermId, Unavailable, Visit,
};

use crate::Sharded;
use crate::rows::is_of_graph;

/// Of so many predicates each is looked at, whether its list is here or at another node.
const FEW_PREDICATES: usize = 16;
/// So many edges of a key are read to find out which predicates it has, at most.
const MOST_EDGES_READ_FOR_PREDICATES: usize = 2048;
/// Edges read together.
const EDGES_AT_ONCE: usize = 2048;
/// How long a shard that is not ready is waited for, once something was handed on.
pub(crate) const PATIENCE_OF_SCANS: Duration = Duration::from_secs(30);
/// The first pause before it is asked again; doubled each time,
const FIRST_PAUSE: Duration = Duration::from_micros(50);
/// up to this.
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// What a call that reads says of its end.
type Ended = Result<ControlFlow<()>, Unavailable>;

/// Reads what matches in the rows of one shard.
type Read<'a> = dyn Fn(&dyn GraphSource, &Pattern, &mut Visit<'_>) -> Ended + 'a;

/// Takes subjects that were found.
type Found<'a> = dyn FnMut(&[TermId], &mut Begun) -> Ended + 'a;

/// A scan under way.
struct Begun {
    /// The caller has got something.
    has_found: bool,
    patience: Duration,
}

impl Begun {
    /// Makes a call to a shard, again and again where it is too late to tell the caller to.
    ///
    /// # Errors
    /// [`Unavailable::Never`] once that takes too long.
    fn ask<T>(
        &mut self,
        shard: ShardId,
        mut call: impl FnMut(&mut Self) -> Result<T, Unavailable>,
    ) -> Result<T, Unavailable> {
        let begun_at = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            match call(self) {
                Err(Unavailable::NotNow) if self.has_found => {}
                answer => return answer,
            }
            if begun_at.elapsed() >= self.patience {
                return Err(Unavailable::Never(shard));
            }
            thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// Those of which the shards have the edges.
fn without_type(predicates: &[PredicateId]) -> Vec<PredicateId> {
    let mut others = predicates.to_vec();
    others.retain(|predicate| *predicate != PredicateId::TYPE);
    others
}

impl Sharded {
    /// As [`GraphSource::for_each_match`].
    pub(crate) fn visit_matches(
        &self,
        pattern: &Pattern,
        graph: GraphRef<'_>,
        visit: &mut Visit<'_>,
    ) -> Ended {
        let mut begun = self.begin_scan();
        let read: &Read<'_> = &|rows, p, visit| rows.for_each_match(p, graph, visit);
        if let (Some(subject), None) = (pattern.subject, pattern.predicate) {
            return self.visit_subject(pattern, (Some(graph), subject), &mut begun, visit, read);
        }
        for predicate in self.predicates_to_read(pattern, graph)? {
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
                _ => self.visit_rows(pattern, predicate, &mut begun, visit, read)?,
            };
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// As [`GraphSource::for_each_quad`].
    pub(crate) fn visit_quads(&self, pattern: &Pattern, visit: &mut Visit<'_>) -> Ended {
        let mut begun = self.begin_scan();
        let read: &Read<'_> = &|rows, p, visit| rows.for_each_quad(p, visit);
        if let (Some(subject), None) = (pattern.subject, pattern.predicate) {
            return self.visit_subject(pattern, (None, subject), &mut begun, visit, read);
        }
        for predicate in self.predicates_to_read(pattern, GraphRef::Named)? {
            let flow = match (pattern.subject, pattern.object) {
                (None, Some(object)) if predicate != PredicateId::TYPE => {
                    let mut found = |subjects: &[TermId], begun: &mut Begun| {
                        let shard = self.shards.owner(subjects[0]);
                        let quads =
                            begun.ask(shard, |_| self.quads_of(predicate, subjects, object))?;
                        let mut quads = quads.into_iter();
                        Ok(quads.try_for_each(|(s, g)| visit(s, predicate, object, g)))
                    };
                    let graph = GraphRef::Named;
                    self.visit_subjects(graph, (predicate, object), &mut begun, &mut found)?
                }
                _ => self.visit_rows(pattern, predicate, &mut begun, visit, read)?,
            };
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn begin_scan(&self) -> Begun {
        Begun {
            has_found: false,
            patience: self.patience_of_scans,
        }
    }

    /// The predicates that may match where the subject is not known or the predicate is, and perhaps others.
    fn predicates_to_read(
        &self,
        pattern: &Pattern,
        graph: GraphRef<'_>,
    ) -> Result<Vec<PredicateId>, Unavailable> {
        let mut predicates = Vec::new();
        match (pattern.predicate, pattern.object) {
            (Some(predicate), _) => predicates.push(predicate),
            (None, Some(object)) => {
                let end = (object, Direction::In);
                self.predicates_that_are_there(graph, end, &mut predicates)?;
            }
            (None, None) => self.catalogue.predicates(graph, &mut predicates),
        }
        Ok(predicates)
    }

    /// As [`GraphSource::predicates_at`]: what every machine knows may be any predicate, as for literals. Then the
    /// key's shard says by one answer which of them it has, unless that is more than an answer or two.
    pub(crate) fn predicates_that_are_there(
        &self,
        graph: GraphRef<'_>,
        (key, direction): (TermId, Direction),
        out: &mut Vec<PredicateId>,
    ) -> Result<(), Unavailable> {
        let mut known = Vec::new();
        (self.catalogue).predicates_of(graph, key, direction, &mut known);
        if known.len() <= FEW_PREDICATES || !is_of_graph(key) {
            out.append(&mut known);
            return Ok(());
        }
        let pattern = match direction {
            Direction::Out => Pattern {
                subject: Some(key),
                ..Pattern::ALL
            },
            Direction::In => Pattern {
                object: Some(key),
                ..Pattern::ALL
            },
        };
        // Which graphs an edge is in, the shards of other keys may know.
        let read = match graph {
            GraphRef::Default | GraphRef::Named | GraphRef::Union => graph,
            GraphRef::One(_) | GraphRef::Some(_) | GraphRef::Each(_) => GraphRef::Named,
        };
        let (mut there, mut edges) = (BTreeSet::new(), 0);
        // Every node has its edges.
        if known.contains(&PredicateId::TYPE) {
            there.insert(PredicateId::TYPE);
        }
        let others = without_type(&known);
        let shard = self.of_shard(self.shards.owner(key))?;
        let asked = (&*others, &mut 0);
        let flow = shard.for_each_of(asked, &pattern, Some(read), &mut |_, predicate, _, _| {
            there.insert(predicate);
            edges += 1;
            match edges < MOST_EDGES_READ_FOR_PREDICATES {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
        match flow {
            ControlFlow::Continue(()) => out.extend(there),
            ControlFlow::Break(()) => out.append(&mut known),
        }
        Ok(())
    }

    /// Reads all edges of a known subject: its types here, and the others by one question to its shard.
    fn visit_subject(
        &self,
        pattern: &Pattern,
        (graph, subject): (Option<GraphRef<'_>>, TermId),
        begun: &mut Begun,
        visit: &mut Visit<'_>,
        read: &Read<'_>,
    ) -> Ended {
        let mut predicates = Vec::new();
        let in_graph = graph.unwrap_or(GraphRef::Named);
        (self.catalogue).predicates_of(in_graph, subject, Direction::Out, &mut predicates);
        if predicates.contains(&PredicateId::TYPE) {
            let flow = self.visit_rows(pattern, PredicateId::TYPE, begun, visit, read)?;
            if flow.is_break() {
                return Ok(flow);
            }
        }
        let others = without_type(&predicates);
        if others.is_empty() || !is_of_graph(subject) {
            return Ok(ControlFlow::Continue(()));
        }
        let shard = self.shards.owner(subject);
        let rows = self.of_shard(shard)?;
        let mut done = 0;
        begun.ask(shard, |begun| {
            let asked = (&*others, &mut done);
            rows.for_each_of(asked, pattern, graph, &mut |s, p, o, g| {
                begun.has_found = true;
                visit(s, p, o, g)
            })
        })
    }

    /// Reads the edges of a predicate from a known subject, or all of them, in the rows of subjects: by one question
    /// to all shards of a node.
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
        let mut read_from = |shard: ShardId, rows: &dyn GraphSource| {
            begun.ask(shard, |begun| {
                read(rows, &pattern, &mut |s, p, o, g| {
                    begun.has_found = true;
                    visit(s, p, o, g)
                })
            })
        };
        if predicate == PredicateId::TYPE {
            // Every node has these.
            let first = ShardId(0);
            return read_from(first, &*self.shared);
        }
        if let Some(subject) = pattern.subject {
            let shard = self.shards.owner(subject);
            return read_from(shard, self.of_key(predicate, subject)?);
        }
        for shard in self.parts() {
            let flow = read_from(shard, self.of_shard(shard)?)?;
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
            begun.ask(self.shards.owner(object), |_| {
                let out = (&mut rows, &mut subjects);
                self.follow(graph, &list, &mut cursor, None, EDGES_AT_ONCE, out)
            })?;
            if subjects.is_empty() {
                continue;
            }
            let flow = found(&subjects, begun)?;
            begun.has_found = true;
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    use jindou_partition::Shards;

    use super::*;
    use crate::calls::naive::Naive;

    /// A statement in each of two shards.
    fn two_shards() -> (Sharded, [Arc<Naive>; 2]) {
        let quad = |subject| {
            let (subject, object) = (TermId::vertex(subject), TermId::vertex(9));
            (subject, PredicateId(1), object, TermId::NONE)
        };
        let naive = |subjects: &[u64]| {
            let quads = subjects.iter().map(|subject| quad(*subject));
            Arc::new(Naive::new(quads.collect()))
        };
        let (whole, shards) = (naive(&[2, 3]), [naive(&[2]), naive(&[3])]);
        let rows = shards.each_ref().map(|shard| Some(Arc::clone(shard) as _));
        let count = Shards::new(2).unwrap();
        let mut sharded = Sharded::new(count, Arc::clone(&whole) as _, whole, rows.into());
        sharded.patience_of_scans = Duration::ZERO;
        (sharded, shards)
    }

    /// What comes of a scan, and how many statements it found.
    fn scan(sharded: &Sharded) -> (Ended, usize) {
        let mut found = 0;
        let ended = sharded.for_each_match(&Pattern::ALL, GraphRef::Default, &mut |_, _, _, _| {
            found += 1;
            ControlFlow::Continue(())
        });
        (ended, found)
    }

    #[test]
    fn a_scan_that_has_begun_does_not_wait_without_end() {
        let (sharded, shards) = two_shards();
        assert_eq!(scan(&sharded), (Ok(ControlFlow::Continue(())), 2));
        for (shard, outcome) in [
            // The caller looks at its limits, and asks again.
            (0, (Err(Unavailable::NotNow), 0)),
            (1, (Err(Unavailable::Never(ShardId(1))), 1)),
        ] {
            shards[shard].unready_every.store(1, Ordering::SeqCst);
            assert_eq!(scan(&sharded), outcome);
            shards[shard].unready_every.store(0, Ordering::SeqCst);
        }
    }
}
