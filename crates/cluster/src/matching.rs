//! Reading what matches a pattern.
//!
//! Predicate by predicate, as each may be on other shards. Where no end is known, shard by shard. What
//! is read goes to the caller at once; so a shard that is not ready is waited for once something was
//! handed on, as the caller cannot be told to ask again then: for a bounded time, as the caller does not look
//! at its limits meanwhile, after which the shard counts as lost.

use std::ops::ControlFlow;
use std::thread;
use std::time::{Duration, Instant};

use jindou_exec::GraphSource;
use jindou_model::{
    Cursor, Direction, GraphRef, Lists, Pattern, PredicateId, ShardId, TermId, Unavailable, Visit,
};

use crate::Sharded;

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

impl Sharded {
    /// As [`GraphSource::for_each_match`].
    pub(crate) fn visit_matches(
        &self,
        pattern: &Pattern,
        graph: GraphRef<'_>,
        visit: &mut Visit<'_>,
    ) -> Ended {
        let mut begun = self.begin_scan();
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
        let mut begun = self.begin_scan();
        for predicate in self.predicates_to_read(pattern, GraphRef::Named) {
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

    fn begin_scan(&self) -> Begun {
        Begun {
            has_found: false,
            patience: self.patience_of_scans,
        }
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
        for shard in self.shards.all() {
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

    const ALL: Pattern = Pattern {
        subject: None,
        predicate: None,
        object: None,
    };

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
        let ended = sharded.for_each_match(&ALL, GraphRef::Default, &mut |_, _, _, _| {
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
