//! In which order are the new terms of an operation numbered?
//!
//! New vertices of one characteristic set, and of one named graph where it has many, get numbers in
//! its [extents](super::extents), so that after a merge they are few stretches of it, and types and
//! domains short lists of ranges; those of one operation, and its literals, are in the order of their
//! texts. Until an operation is made its new terms are numbered as they came; nobody but the
//! operation has seen these numbers.

use jindou_model::{IdQuad, PredicateId, TermId, TermKind};
use rustc_hash::FxHashMap;
use xxhash_rust::xxh3::xxh3_64;

use super::extents::Extent;
use super::pending::PendingTerms;
use super::snapshot::Snapshot;
use super::terms::TermCounts;
use super::transaction::Stage;

/// From so many vertices on, those of an operation and of one named graph have extents that are not
/// those of their set.
const LEAST_OF_GRAPH: u64 = 64;

/// New numbers of new terms.
pub(super) struct Arranged {
    since: TermCounts,
    /// By the old number, counted from `since`.
    vertices: Vec<u64>,
    literals: Vec<u64>,
}

impl Arranged {
    /// The id of a term now.
    pub(super) fn term(&self, id: TermId) -> TermId {
        let new = |numbers: &[u64], since: u64| {
            let place = id.number().checked_sub(since)?;
            numbers.get(place as usize).copied()
        };
        match id.kind() {
            TermKind::Vertex => new(&self.vertices, self.since.numbers).map(TermId::vertex),
            TermKind::Literal => new(&self.literals, self.since.literals).map(TermId::literal),
            _ => None,
        }
        .unwrap_or(id)
    }

    fn quad(&self, quad: &mut IdQuad) {
        quad.subject = self.term(quad.subject);
        quad.object = self.term(quad.object);
        quad.graph = self.term(quad.graph);
    }

    fn stage(&self, stage: &mut Stage) {
        let quads = stage
            .changes
            .remove
            .iter_mut()
            .chain(&mut stage.changes.add);
        for quad in quads {
            self.quad(quad);
        }
        for graph in stage.forget.iter_mut().chain(&mut stage.declare) {
            *graph = self.term(*graph);
        }
    }
}

/// What an operation says of a new vertex.
#[derive(Clone, Copy, Default)]
struct Said {
    /// A hash of its set.
    set: u64,
    /// The only named graph of which it is a subject.
    home: TermId,
    has_several: bool,
}

impl Said {
    fn note_graph(&mut self, graph: TermId) {
        if graph.is_none() || self.has_several || self.home == graph {
            return;
        }
        self.has_several = !self.home.is_none();
        self.home = if self.has_several {
            TermId::NONE
        } else {
            graph
        };
    }
}

impl Snapshot {
    /// Numbers the terms anew that this snapshot added after the first `since`, none of which any of
    /// its quads has yet, and gives `stage`, which is to be made next, and the quads of `beside`, which
    /// are not to be stored, their new ids.
    ///
    /// Costs a sort of what the stage adds to new terms, and of these.
    pub fn arrange(&mut self, since: TermCounts, stage: &mut Stage, beside: &mut [IdQuad]) {
        let arranged = self.arranged(since, stage);
        for quad in beside {
            arranged.quad(quad);
        }
    }

    /// As [`Snapshot::arrange`]; says which ids terms have now.
    pub(super) fn arranged(&mut self, since: TermCounts, stage: &mut Stage) -> Arranged {
        let known = self.known_terms();
        let mut arranged = Arranged {
            since,
            vertices: Vec::new(),
            literals: Vec::new(),
        };
        let is_new = known.vertices > since.vertices;
        if !is_new && known.literals - since.literals < 2 {
            return arranged;
        }
        let pending = self.pending_to_arrange();
        let pending = pending.expect("new terms are pending");
        let mut free = since.numbers;
        if is_new {
            let said = self.said_of_new(since, stage);
            arranged.vertices = self.numbers_of_new(&pending, since, &said, &mut free);
        }
        arranged.literals = literal_numbers(&pending, since.literals..known.literals);
        let (vertices, literals) = (&arranged.vertices, &arranged.literals);
        pending.renumber(since, vertices, literals, |term| arranged.term(term));
        self.set_numbers(free);
        arranged.stage(stage);
        arranged
    }

    /// What a stage says of each new vertex.
    fn said_of_new(&self, since: TermCounts, stage: &Stage) -> Vec<Said> {
        let count = self.known_terms().vertices - since.vertices;
        let mut said = vec![Said::default(); count as usize];
        let mut traits: Vec<(u32, [u32; 2], u64)> = Vec::new();
        let place = |id: TermId| match id.kind() {
            TermKind::Vertex => id.number().checked_sub(since.numbers),
            _ => None,
        };
        for quad in &stage.changes.add {
            let layer = u32::from(!quad.graph.is_none());
            let predicate = quad.predicate.0;
            if let Some(place) = place(quad.subject) {
                let class = match quad.predicate {
                    PredicateId::TYPE => quad.object.raw(),
                    _ => 0,
                };
                traits.push((place as u32, [layer, predicate], class));
                said[place as usize].note_graph(quad.graph);
            }
            if let Some(place) = place(quad.object) {
                traits.push((place as u32, [layer | 2, predicate], 0));
            }
        }
        traits.sort_unstable();
        traits.dedup();
        for (place, [role, predicate], class) in traits {
            let set = &mut said[place as usize].set;
            let words = [*set, u64::from(role) << 32 | u64::from(predicate), class];
            *set = xxh3_64(bytemuck::cast_slice(&words));
        }
        said
    }

    /// The numbers of the vertices that came after the first `since`, of which so much is said.
    fn numbers_of_new(
        &self,
        pending: &PendingTerms,
        since: TermCounts,
        said: &[Said],
        free: &mut u64,
    ) -> Vec<u64> {
        let mut of_homes: FxHashMap<(u64, TermId), u64> = FxHashMap::default();
        for said in said.iter().filter(|said| !said.home.is_none()) {
            *of_homes.entry((said.set, said.home)).or_default() += 1;
        }
        let mut order: Vec<(u64, TermId, &[u8], u32)> = said
            .iter()
            .zip(since.vertices..)
            .zip(0..)
            .map(|((said, place), index)| {
                let key = pending.vertex_key(place);
                let members = of_homes.get(&(said.set, said.home)).copied();
                let home = match members.is_some_and(|members| members >= LEAST_OF_GRAPH) {
                    true => said.home.raw(),
                    false => 0,
                };
                let is_blank = u64::from(key.starts_with(b"_:"));
                let extent = xxh3_64(bytemuck::cast_slice(&[said.set, home, is_blank]));
                (extent, said.home, key, index)
            })
            .collect();
        order.sort_unstable();
        let mut numbers = vec![0; said.len()];
        let open = self.generation.terms.extents.lock();
        // Others may have opened some since: those lie where this transaction sets numbers aside.
        let before = pending.first().numbers;
        let of_set = |set: u64| open.get(set).without_room_behind(before);
        pending.with_extents(|changed| {
            for group in order.chunk_by(|a, b| a.0 == b.0) {
                let set = group[0].0;
                let extent: &mut Extent = changed.entry(set).or_insert_with(|| of_set(set));
                let mut members = group.iter();
                extent.give(group.len() as u64, free, &mut |first, count| {
                    let members = members.by_ref().take(count as usize);
                    for (number, (_, _, _, index)) in (first..).zip(members) {
                        numbers[*index as usize] = number;
                    }
                });
            }
        });
        numbers
    }
}

/// The numbers of the literals of these places, by place: in the order of their texts.
fn literal_numbers(pending: &PendingTerms, places: std::ops::Range<u64>) -> Vec<u64> {
    let mut order: Vec<(&[u8], u64)> = places
        .clone()
        .map(|place| (pending.literal_key_at(place), place))
        .collect();
    order.sort_unstable();
    let mut numbers = vec![0; order.len()];
    for (number, (_, place)) in places.clone().zip(order) {
        numbers[(place - places.start) as usize] = number;
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bulk::build;
    use crate::{Changes, LayerKind, Merged, NewIds, Replay, Transaction};
    use jindou_model::{IdQuad, SnapshotNumber};

    const TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";

    #[test]
    fn new_vertices_of_a_set_are_neighbours_in_the_order_of_their_texts() {
        let base = build(Vec::new(), 0).unwrap();
        let mut snapshot = Snapshot::of_base(base, 1, SnapshotNumber(1));
        let mut known = snapshot.known_terms();
        const ROUNDS: usize = 40;
        for round in 0..ROUNDS {
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
            snapshot.arrange(known, &mut stage, &mut []);
            known = snapshot.known_terms();
            snapshot.apply_stage(&stage);
            if round % 3 == 0 {
                snapshot.keep_terms();
            }
        }
        snapshot.keep_terms();
        let changed = snapshot.changed_predicates().into_iter();
        let predicates = changed.map(|one| one.predicate).collect();
        snapshot.close_extents();
        let merged = Merged::new(snapshot.clone(), predicates).unwrap();
        // Three sets of 800 vertices in twenties: each extent is as large as all before, and one
        // stretch more is the room that is left in the last; and a few of what is no subject.
        let clusters = merged.base().layer(LayerKind::Default).clusters();
        assert!(
            clusters.stretches() <= 3 * (7 + 1) + 6,
            "{}",
            clusters.stretches()
        );
        assert!(snapshot.vertex_numbers() < 2 * (ROUNDS as u64 * 60 + 6));
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

    #[test]
    fn what_extents_that_were_closed_several_times_left_over_is_read_back() {
        let of_base = || Snapshot::of_base(build(Vec::new(), 0).unwrap(), 1, SnapshotNumber(1));
        let mut snapshot = of_base();
        for period in 0..4 {
            for number in 0..if period % 2 == 0 { 300 } else { 1 } {
                let known = snapshot.known_terms();
                let key = format!("http://e/{period}/{number}");
                let quad = IdQuad {
                    subject: snapshot.intern_node(key.as_bytes()).unwrap(),
                    predicate: snapshot.intern_predicate("http://e/p").unwrap(),
                    object: snapshot.intern_literal(b"same\0").unwrap(),
                    graph: TermId::NONE,
                };
                let mut stage = Stage::default();
                stage.changes.add.push(quad);
                snapshot.arrange(known, &mut stage, &mut []);
                snapshot.apply_stage(&stage);
                snapshot.keep_terms();
            }
            // A merge that came to nothing.
            snapshot.close_extents();
        }
        let mut replay = Replay::new(of_base());
        replay.add(&Transaction::from_base(&snapshot)).unwrap();
        let back = replay.finish();
        assert_eq!(back.known_terms(), snapshot.known_terms());
        for number in snapshot.appended_vertices() {
            let id = TermId::vertex(number);
            assert_eq!(back.appended_key(id), snapshot.appended_key(id));
        }
    }

    /// New vertices, each of one of some sets, in one step, arranged and made.
    fn add(snapshot: &mut Snapshot, name: &str, sets: &[u8]) -> Stage {
        let since = snapshot.known_terms();
        let mut stage = Stage::default();
        for (number, set) in sets.iter().enumerate() {
            let subject =
                snapshot.intern_node(format!("http://e/{name}/{set}/{number}").as_bytes());
            let predicate = snapshot.intern_predicate(&format!("http://e/p{set}"));
            let object = snapshot.intern_literal(format!("{name} {set} {number}\0").as_bytes());
            stage.changes.add.push(IdQuad {
                subject: subject.unwrap(),
                predicate: predicate.unwrap(),
                object: object.unwrap(),
                graph: TermId::NONE,
            });
        }
        snapshot.arrange(since, &mut stage, &mut []);
        snapshot.apply_stage(&stage);
        stage
    }

    /// Each quad as text.
    fn texts(snapshot: &Snapshot) -> std::collections::BTreeSet<[String; 3]> {
        let mut all = std::collections::BTreeSet::new();
        let text = |id| {
            let mut key = Vec::new();
            snapshot.push_key(id, &mut key);
            String::from_utf8(key).unwrap()
        };
        let pattern = jindou_model::Pattern {
            subject: None,
            predicate: None,
            object: None,
        };
        let flow = snapshot
            .default_graph()
            .for_each_match(&pattern, &mut |s, p, o, _| {
                all.insert([text(s), text(snapshot.predicate_term(p)), text(o)]);
                std::ops::ControlFlow::Continue(())
            });
        assert!(flow.is_continue());
        all
    }

    fn expected(name: &str, sets: &[u8]) -> impl Iterator<Item = [String; 3]> {
        sets.iter().enumerate().map(move |(number, set)| {
            let subject = format!("http://e/{name}/{set}/{number}");
            [
                subject,
                format!("http://e/p{set}"),
                format!("{name} {set} {number}\0"),
            ]
        })
    }

    proptest::proptest! {
        #[test]
        fn terms_numbered_beside_commits_stay_apart_from_each_other(
            before in proptest::collection::vec(0_u8..4, 0..20),
            steps in proptest::collection::vec(
                (proptest::option::of(proptest::collection::vec(0_u8..4, 0..12)), proptest::bool::ANY),
                1..12,
            ),
        ) {
            let base = build(Vec::new(), 0).unwrap();
            let mut latest = Snapshot::of_base(base, 1, SnapshotNumber(1));
            add(&mut latest, "before", &before);
            latest.keep_terms();
            let start = latest.clone();
            let mut working = start.clone();
            let mut all: std::collections::BTreeSet<_> = expected("before", &before).collect();
            let (mut stages, mut mine) = (Vec::new(), all.clone());
            for (number, (sets, is_other)) in steps.iter().enumerate() {
                let sets = sets.as_deref().unwrap_or(&[0, 1, 2, 3]);
                let name = format!("{number}");
                if *is_other {
                    add(&mut latest, &name, sets);
                    latest.keep_terms();
                } else {
                    stages.push(add(&mut working, &name, sets));
                    mine.extend(expected(&name, sets));
                }
                all.extend(expected(&name, sets));
                proptest::prop_assert_eq!(&texts(&working), &mine);
            }
            let mut to = latest.clone();
            let mut new_ids = NewIds::beside(start, working);
            for stage in &stages {
                let stage = new_ids.stage(stage, &mut to).unwrap();
                to.apply_stage(&stage);
            }
            proptest::prop_assert_eq!(&texts(&to), &all);
            to.keep_terms();
            proptest::prop_assert_eq!(&texts(&to), &all);
        }
    }
}
