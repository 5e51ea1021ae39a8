//! Statistics of a toy graph, from a description of its characteristic sets.
//!
//! Each line is `set NAME COUNT [a TYPE...] [out PREDICATE=EDGES...] [in PREDICATE=EDGES...]`
//! with edges for each vertex of the set, or `literals PREDICATE KEYS`, the distinct literals
//! that a predicate leads to, or `vertex NAME SET`, a vertex by name.

#![allow(unreachable_pub, dead_code, reason = "each test uses a part")]

pub mod paths;

use std::collections::BTreeMap;

use jindou_model::{Direction, GraphRef, PredicateId, TermId};
use jindou_plan::{Membership, SegmentStatistics, Statistics};
use oxrdf::TermRef;

pub const NAMESPACE: &str = "http://e/";

#[derive(Default)]
struct Set {
    count: f64,
    types: Vec<TermId>,
    edges: BTreeMap<(PredicateId, u8), f64>,
}

#[derive(Default)]
pub struct Toy {
    sets: Vec<Set>,
    set_names: BTreeMap<String, usize>,
    terms: BTreeMap<String, TermId>,
    vertices: BTreeMap<TermId, usize>,
    predicates: Vec<String>,
    literals: BTreeMap<PredicateId, f64>,
    pub named_quads: u64,
    pub named_graphs: u64,
}

impl Toy {
    pub fn parse(text: &str) -> Self {
        let mut toy = Self {
            predicates: vec!["http://www.w3.org/1999/02/22-rdf-syntax-ns#type".to_owned()],
            ..Self::default()
        };
        for line in text.lines() {
            let mut words = line.split_whitespace();
            match words.next() {
                None | Some("#") => (),
                Some("set") => {
                    let name = words.next().expect("a name");
                    let mut set = Set {
                        count: words.next().expect("a count").parse().expect("a number"),
                        ..Set::default()
                    };
                    let mut mode = "";
                    for word in words {
                        match (mode, word) {
                            (_, "a" | "out" | "in") => mode = word,
                            ("a", class) => set.types.push(toy.add_term(class)),
                            (_, edge) => {
                                let (predicate, edges) = edge.split_once('=').expect("p=n");
                                let direction = u8::from(mode == "in");
                                let id = toy.add_predicate(predicate);
                                set.edges
                                    .insert((id, direction), edges.parse().expect("a number"));
                            }
                        }
                    }
                    toy.set_names.insert(name.to_owned(), toy.sets.len());
                    toy.sets.push(set);
                }
                Some("literals") => {
                    let id = toy.add_predicate(words.next().expect("a predicate"));
                    let keys = words.next().expect("keys").parse().expect("a number");
                    toy.literals.insert(id, keys);
                }
                Some("vertex") => {
                    let id = toy.add_term(words.next().expect("a name"));
                    let set = toy.set_names[words.next().expect("a set")];
                    toy.vertices.insert(id, set);
                }
                Some("graphs") => {
                    toy.named_graphs = words.next().expect("graphs").parse().expect("a number");
                    toy.named_quads = words.next().expect("quads").parse().expect("a number");
                }
                Some(other) => panic!("not understood: {other}"),
            }
        }
        toy
    }

    fn add_term(&mut self, name: &str) -> TermId {
        let next = self.terms.len() as u64;
        *self
            .terms
            .entry(format!("{NAMESPACE}{name}"))
            .or_insert_with(|| TermId::vertex(next))
    }

    fn add_predicate(&mut self, name: &str) -> PredicateId {
        let iri = format!("{NAMESPACE}{name}");
        let index = self.predicates.iter().position(|known| *known == iri);
        let index = index.unwrap_or_else(|| {
            self.predicates.push(iri);
            self.predicates.len() - 1
        });
        PredicateId(index as u32)
    }

    fn has(set: &Set, membership: Membership) -> bool {
        match membership {
            Membership::Type(class) => set.types.contains(&class),
            Membership::Has(PredicateId::TYPE, Direction::Out) => !set.types.is_empty(),
            Membership::Has(predicate, direction) => {
                set.edges.contains_key(&(predicate, direction as u8))
            }
        }
    }

    fn matching(&self, memberships: &[Membership]) -> impl Iterator<Item = &Set> {
        self.sets
            .iter()
            .filter(|set| memberships.iter().all(|m| Self::has(set, *m)))
    }
}

impl Statistics for Toy {
    fn triples(&self, _: GraphRef<'_>) -> u64 {
        (0..self.predicates())
            .map(|id| {
                self.segment(GraphRef::Default, PredicateId(id), Direction::Out)
                    .edges
            })
            .sum()
    }

    fn named_quads(&self) -> u64 {
        self.named_quads
    }

    fn named_graphs(&self) -> u64 {
        self.named_graphs
    }

    fn vertices(&self) -> u64 {
        self.vertices_with(GraphRef::Default, &[]) as u64
    }

    fn predicates(&self) -> u32 {
        self.predicates.len() as u32
    }

    fn term(&self, term: TermRef<'_>) -> Option<TermId> {
        match term {
            TermRef::NamedNode(node) => self.terms.get(node.as_str()).copied(),
            _ => None,
        }
    }

    fn predicate(&self, iri: &str) -> Option<PredicateId> {
        let index = self.predicates.iter().position(|known| known == iri)?;
        Some(PredicateId(index as u32))
    }

    fn segment(
        &self,
        _: GraphRef<'_>,
        predicate: PredicateId,
        direction: Direction,
    ) -> SegmentStatistics {
        if predicate == PredicateId::TYPE {
            let edges: f64 = self
                .sets
                .iter()
                .map(|s| s.count * s.types.len() as f64)
                .sum();
            let keys = match direction {
                Direction::Out => {
                    self.vertices_with(GraphRef::Default, &[Membership::Has(predicate, direction)])
                }
                Direction::In => self.terms.len() as f64,
            };
            return SegmentStatistics {
                edges: edges as u64,
                keys: keys as u64,
            };
        }
        if let (Some(keys), Direction::In) = (self.literals.get(&predicate), direction) {
            return SegmentStatistics {
                edges: self
                    .segment(GraphRef::Default, predicate, Direction::Out)
                    .edges,
                keys: *keys as u64,
            };
        }
        let has = Membership::Has(predicate, direction);
        SegmentStatistics {
            edges: self.edges_from(GraphRef::Default, predicate, direction, &[has]) as u64,
            keys: self.vertices_with(GraphRef::Default, &[has]) as u64,
        }
    }

    fn vertices_with(&self, _: GraphRef<'_>, memberships: &[Membership]) -> f64 {
        self.matching(memberships).map(|set| set.count).sum()
    }

    fn edges_from(
        &self,
        _: GraphRef<'_>,
        predicate: PredicateId,
        direction: Direction,
        memberships: &[Membership],
    ) -> f64 {
        self.matching(memberships)
            .map(|set| {
                if predicate == PredicateId::TYPE && direction == Direction::Out {
                    return set.count * set.types.len() as f64;
                }
                let each = set.edges.get(&(predicate, direction as u8));
                set.count * each.copied().unwrap_or_default()
            })
            .sum()
    }

    fn edges_between(
        &self,
        _: GraphRef<'_>,
        _: PredicateId,
        _: &[Membership],
        _: &[Membership],
    ) -> Option<f64> {
        None
    }

    fn degree(
        &self,
        _: GraphRef<'_>,
        predicate: PredicateId,
        direction: Direction,
        key: TermId,
    ) -> u64 {
        self.vertices
            .get(&key)
            .and_then(|set| self.sets[*set].edges.get(&(predicate, direction as u8)))
            .map_or(0, |edges| edges.ceil() as u64)
    }

    fn is_member(&self, _: GraphRef<'_>, vertex: TermId, membership: Membership) -> bool {
        self.vertices
            .get(&vertex)
            .is_some_and(|set| Self::has(&self.sets[*set], membership))
    }
}

/// Statistics that know every term and find all alike, so that plans depend on no constant.
pub struct Flat;

impl Statistics for Flat {
    fn triples(&self, _: GraphRef<'_>) -> u64 {
        100_000
    }
    fn named_quads(&self) -> u64 {
        10_000
    }
    fn named_graphs(&self) -> u64 {
        10
    }
    fn vertices(&self) -> u64 {
        10_000
    }
    fn predicates(&self) -> u32 {
        10
    }
    fn term(&self, _: TermRef<'_>) -> Option<TermId> {
        Some(TermId::vertex(1))
    }
    fn predicate(&self, iri: &str) -> Option<PredicateId> {
        Some(if iri.ends_with("#type") {
            PredicateId::TYPE
        } else {
            PredicateId(1 + iri.len() as u32 % 9)
        })
    }
    fn segment(&self, _: GraphRef<'_>, _: PredicateId, _: Direction) -> SegmentStatistics {
        SegmentStatistics {
            edges: 10_000,
            keys: 1000,
        }
    }
    fn vertices_with(&self, _: GraphRef<'_>, memberships: &[Membership]) -> f64 {
        10_000.0 / (1 << memberships.len().min(20)) as f64
    }
    fn edges_from(
        &self,
        _: GraphRef<'_>,
        _: PredicateId,
        _: Direction,
        memberships: &[Membership],
    ) -> f64 {
        10_000.0 / (1 << memberships.len().min(20)) as f64
    }
    fn edges_between(
        &self,
        _: GraphRef<'_>,
        _: PredicateId,
        _: &[Membership],
        _: &[Membership],
    ) -> Option<f64> {
        None
    }

    fn degree(&self, _: GraphRef<'_>, _: PredicateId, _: Direction, _: TermId) -> u64 {
        10
    }
    fn is_member(&self, _: GraphRef<'_>, _: TermId, _: Membership) -> bool {
        true
    }
}

/// Statistics that are made up from a seed, so that all sorts of plans seem best.
pub struct Noise(pub u64);

impl Noise {
    fn pick(&self, of: impl std::hash::Hash, below: u64) -> u64 {
        use std::hash::Hasher;
        let mut hasher = std::hash::DefaultHasher::new();
        of.hash(&mut hasher);
        hasher.write_u64(self.0);
        let hash = hasher.finish();
        // Small numbers are as likely as large ones.
        (hash >> 8) % (below >> (hash % 12)).max(2)
    }
}

impl Statistics for Noise {
    fn triples(&self, _: GraphRef<'_>) -> u64 {
        self.pick("triples", 100_000)
    }
    fn named_quads(&self) -> u64 {
        self.pick("quads", 100_000)
    }
    fn named_graphs(&self) -> u64 {
        self.pick("graphs", 1000)
    }
    fn vertices(&self) -> u64 {
        self.pick("vertices", 10_000)
    }
    fn predicates(&self) -> u32 {
        self.pick("predicates", 100) as u32
    }
    fn term(&self, term: TermRef<'_>) -> Option<TermId> {
        (self.pick(term.to_string(), 8) > 0).then(|| TermId::vertex(1))
    }
    fn predicate(&self, iri: &str) -> Option<PredicateId> {
        Flat.predicate(iri)
    }
    fn segment(
        &self,
        _: GraphRef<'_>,
        predicate: PredicateId,
        direction: Direction,
    ) -> SegmentStatistics {
        SegmentStatistics {
            edges: self.pick((predicate, direction), 100_000),
            keys: self.pick((predicate, direction, "keys"), 10_000),
        }
    }
    fn vertices_with(&self, _: GraphRef<'_>, memberships: &[Membership]) -> f64 {
        self.pick(memberships, 10_000) as f64
    }
    fn edges_from(
        &self,
        _: GraphRef<'_>,
        predicate: PredicateId,
        direction: Direction,
        memberships: &[Membership],
    ) -> f64 {
        self.pick((predicate, direction, memberships), 100_000) as f64
    }
    fn edges_between(
        &self,
        _: GraphRef<'_>,
        predicate: PredicateId,
        subjects: &[Membership],
        objects: &[Membership],
    ) -> Option<f64> {
        let edges = self.pick((predicate, subjects, objects), 100_000);
        (!edges.is_multiple_of(3)).then_some(edges as f64)
    }

    fn degree(
        &self,
        _: GraphRef<'_>,
        predicate: PredicateId,
        direction: Direction,
        key: TermId,
    ) -> u64 {
        self.pick((predicate, direction, key), 1000)
    }
    fn is_member(&self, _: GraphRef<'_>, vertex: TermId, membership: Membership) -> bool {
        self.pick((vertex, membership), 2) == 0
    }
}
