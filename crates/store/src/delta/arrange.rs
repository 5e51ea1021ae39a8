//! In which order are the new terms of an operation numbered?
//!
//! New vertices of one characteristic set get neighbouring numbers, so that after a merge they are
//! one stretch of it and types and domains stay short lists of ranges; those of one set, and
//! literals, are in the order of their texts. Until an operation is made its new terms are numbered
//! as they came; nobody but the operation has seen these numbers.

use std::sync::Arc;

use jindou_model::{PredicateId, TermId, TermKind};
use xxhash_rust::xxh3::xxh3_64;

use super::snapshot::Snapshot;
use super::terms::{AppendedTerms, TermCounts};
use super::transaction::Stage;

/// New numbers of new terms.
struct Arranged {
    since: TermCounts,
    /// By the old number, counted from `since`.
    vertices: Vec<u64>,
    literals: Vec<u64>,
}

impl Arranged {
    fn term(&self, id: TermId) -> TermId {
        let new = |numbers: &[u64], since: u64| {
            let place = id.number().checked_sub(since)?;
            numbers.get(place as usize).copied()
        };
        match id.kind() {
            TermKind::Vertex => new(&self.vertices, self.since.vertices).map(TermId::vertex),
            TermKind::Literal => new(&self.literals, self.since.literals).map(TermId::literal),
            _ => None,
        }
        .unwrap_or(id)
    }

    fn stage(&self, stage: &mut Stage) {
        let quads = stage
            .changes
            .remove
            .iter_mut()
            .chain(&mut stage.changes.add);
        for quad in quads {
            quad.subject = self.term(quad.subject);
            quad.object = self.term(quad.object);
            quad.graph = self.term(quad.graph);
        }
        for graph in stage.forget.iter_mut().chain(&mut stage.declare) {
            *graph = self.term(*graph);
        }
    }
}

impl Snapshot {
    /// Numbers the terms anew that this snapshot added after the first `since`, none of which any of
    /// its quads has yet, and gives `stage`, which is to be made next, their new ids.
    ///
    /// Costs a sort of what the stage adds, and of the new terms.
    pub fn arrange(&mut self, since: TermCounts, stage: &mut Stage) {
        let known = self.known_terms();
        let is_one = known.vertices - since.vertices < 2 && known.literals - since.literals < 2;
        if is_one {
            return;
        }
        let sets = self.sets_of_new(since, stage);
        let vertices = order(since.vertices..known.vertices, |number| {
            let place = (number - since.vertices) as usize;
            (sets[place], self.vertex_key(number))
        });
        let literals = order(since.literals..known.literals, |number| {
            let id = TermId::literal(number);
            (0, self.appended_key(id).expect("the term is new"))
        });
        let pending = self.pending_in_order(since, &vertices, &literals);
        let arranged = Arranged {
            since,
            vertices: inverse(since.vertices, &vertices),
            literals: inverse(since.literals, &literals),
        };
        for number in since.predicates..known.predicates {
            let term = self.predicate_term(PredicateId(number as u32));
            pending.push_predicate(arranged.term(term));
        }
        self.replace_pending(Arc::new(pending));
        arranged.stage(stage);
    }

    fn vertex_key(&self, number: u64) -> &[u8] {
        let id = TermId::vertex(number);
        self.appended_key(id).expect("the term is new")
    }

    /// A hash of the set that a stage gives each new vertex.
    fn sets_of_new(&self, since: TermCounts, stage: &Stage) -> Vec<u64> {
        let count = self.known_terms().vertices - since.vertices;
        let mut traits: Vec<(u64, [u64; 3])> = Vec::new();
        for quad in &stage.changes.add {
            let layer = u64::from(!quad.graph.is_none());
            let predicate = u64::from(quad.predicate.0);
            let class = match quad.predicate {
                PredicateId::TYPE => quad.object.raw(),
                _ => 0,
            };
            let mut note = |id: TermId, what: [u64; 3]| {
                if id.kind() == TermKind::Vertex && id.number() >= since.vertices {
                    traits.push((id.number() - since.vertices, what));
                }
            };
            note(quad.subject, [layer, predicate, class]);
            note(quad.object, [layer | 2, predicate, 0]);
        }
        traits.sort_unstable();
        traits.dedup();
        let mut sets = vec![0; count as usize];
        for (place, what) in traits {
            let set = &mut sets[place as usize];
            let words = [*set, what[0], what[1], what[2]];
            *set = xxh3_64(bytemuck::cast_slice(&words));
        }
        sets
    }

    /// The pending terms with those after the first `since` in another order, without predicates
    /// among these.
    fn pending_in_order(
        &self,
        since: TermCounts,
        vertices: &[u64],
        literals: &[u64],
    ) -> AppendedTerms {
        let first = self.pending_first();
        let terms = AppendedTerms::pending(first);
        for number in first.vertices..since.vertices {
            let key = self.vertex_key(number);
            terms.push_vertex(jindou_dictionary::hash(key), key.into());
        }
        for number in vertices {
            let key = self.vertex_key(*number);
            terms.push_vertex(jindou_dictionary::hash(key), key.into());
        }
        for number in (first.literals..since.literals).chain(literals.iter().copied()) {
            let id = TermId::literal(number);
            let key = self.appended_key(id).expect("the term is pending");
            terms.push_literal(jindou_dictionary::hash(key), key.into());
        }
        for number in first.predicates..since.predicates {
            terms.push_predicate(self.predicate_term(PredicateId(number as u32)));
        }
        terms
    }
}

/// Numbers in the order of what `key` gives for them.
fn order<'k>(numbers: std::ops::Range<u64>, key: impl Fn(u64) -> (u64, &'k [u8])) -> Vec<u64> {
    let mut keyed: Vec<((u64, &[u8]), u64)> = numbers.map(|number| (key(number), number)).collect();
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, number)| number).collect()
}

/// For each of these numbers, which begin with `first`, `first` and its place in the order.
fn inverse(first: u64, order: &[u64]) -> Vec<u64> {
    let mut places = vec![0; order.len()];
    for (place, number) in (first..).zip(order) {
        places[(number - first) as usize] = place;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bulk::build;
    use crate::{Changes, LayerKind, Merged};
    use jindou_model::{IdQuad, SnapshotNumber};

    const TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";

    #[test]
    fn new_vertices_of_a_set_are_neighbours_in_the_order_of_their_texts() {
        let base = build(Vec::new(), 0).unwrap();
        let mut snapshot = Snapshot::of_base(base, 1, SnapshotNumber(1));
        let mut known = snapshot.known_terms();
        for round in 0..3 {
            let mut add = Vec::new();
            for number in (0..60).rev() {
                let subject = format!("http://e/{round}/{number:02}");
                let class = format!("http://e/C{}", number % 3);
                let subject = snapshot.intern_node(subject.as_bytes()).unwrap();
                let mut quad = |predicate: &str, object| IdQuad {
                    subject,
                    predicate: snapshot.intern_predicate(predicate).unwrap(),
                    object,
                    graph: TermId::NONE,
                };
                let text = quad("http://e/text", TermId::NONE);
                let typed = quad(TYPE, TermId::NONE);
                let object = snapshot.intern_literal(format!("\"{number}").as_bytes());
                add.push(IdQuad {
                    object: object.unwrap(),
                    ..text
                });
                let object = snapshot.intern_node(class.as_bytes()).unwrap();
                add.push(IdQuad { object, ..typed });
            }
            let mut stage = Stage {
                changes: Changes {
                    add,
                    ..Changes::default()
                },
                ..Stage::default()
            };
            snapshot.arrange(known, &mut stage);
            known = snapshot.known_terms();
            snapshot.apply_stage(&stage);
        }
        snapshot.keep_terms();
        let changed = snapshot.changed_predicates().into_iter();
        let predicates = changed.map(|one| one.predicate).collect();
        let merged = Merged::new(snapshot.clone(), predicates).unwrap();
        // Three sets a round, and what is no subject before and behind.
        let clusters = merged.base().layer(LayerKind::Default).clusters();
        assert!(
            clusters.stretches() <= 3 * 3 + 3,
            "{}",
            clusters.stretches()
        );
        for number in 0..59 {
            let id = |number: usize| {
                let key = format!("http://e/1/{number:02}");
                snapshot.find_node(key.as_bytes()).unwrap()
            };
            if number + 3 < 60 {
                assert!(id(number) < id(number + 3));
            }
        }
        for number in 0..59 {
            let key = format!("\"{number}");
            let id = snapshot.find_literal(key.as_bytes()).unwrap();
            let mut found = Vec::new();
            snapshot.push_key(id, &mut found);
            assert_eq!(found, key.as_bytes());
        }
    }
}
