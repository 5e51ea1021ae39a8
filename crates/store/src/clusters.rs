//! Characteristic sets: which types and predicates has this vertex, and which vertices have these?
//!
//! Vertices with the same types and the same predicates, out and in, are of one *set*. The bulk
//! loader numbers vertices so that those of a set are next to each other; numbers are permanent,
//! so a vertex whose set changes keeps its own, and new vertices get numbers at the end. The map
//! from numbers to sets is therefore kept by *stretches* of numbers, and everything else by set.
//! The table holds every `rdf:type` edge of a layer (the type index vertices of Wukong become
//! ranges), the predicates of every vertex (its predicate list), and exact counts for the planner.

mod check;
mod count;
mod file;
mod lists;
mod merge;
mod predicate_lists;
mod stretches;
#[cfg(test)]
mod tests;

use std::ops::Range;

use jindou_model::{
    Direction, IdRanges, Membership, Narrow, Neighbours, PredicateId, TermId, TermKind,
};

pub(crate) use count::{MOST_PAIRS, PairEdges, SetCounts, in_order};
use lists::FixedLists;
pub(crate) use lists::Lists;
pub(crate) use merge::SetChanges;
use predicate_lists::PredicateLists;
use stretches::FixedStretches;
pub(crate) use stretches::Stretches;

use crate::image::ImageWriter;

/// Beyond so many sets a sum over them is replaced by an estimate.
const MOST_SUMMED: usize = 1024;
/// An estimate looks at the sets of so many vertices, evenly spread over all in question.
const SAMPLED: u64 = 256;
/// Beyond so many stretches a set is kept, with a bitmap, rather than made each time.
const SHORT: u64 = 32;
/// One stretch in so many may be wanted before all are walked instead of sorting the wanted.
const WALKED_SHARE: usize = 16;

/// Predicate and number of edges.
type Edges = (PredicateId, u64);

/// For each of some traits: the sets that have it.
#[derive(Clone, Debug, Default)]
struct Holders {
    /// The sets, in order.
    sets: Lists<u32>,
    /// The sets of evenly spread vertices, if the list is long.
    samples: Lists<u32>,
    /// Vertices of all sets of the list.
    vertices: Vec<u64>,
    /// Stretches of all sets of the list.
    stretches: Vec<u64>,
}

impl Holders {
    fn bytes(&self) -> usize {
        let counts = self.vertices.len() + self.stretches.len();
        self.sets.bytes() + self.samples.bytes() + counts * 8
    }
}

/// Sets among which are all that meet some traits.
struct Candidates<'a> {
    /// `None` is all there are.
    list: Option<&'a [u32]>,
    /// As in [`Holders`].
    samples: &'a [u32],
    vertices: u64,
}

/// The characteristic sets of the vertices of a layer.
///
/// The arrays of the table lie in one region: that of a file, or of its own.
#[derive(Clone, Debug)]
pub struct Clusters {
    /// The set of each vertex.
    stretches: FixedStretches,
    /// Types of each set, sorted, as raw ids.
    types: FixedLists<u64>,
    /// Predicates of each set and direction, sorted, with the number of edges.
    has: [PredicateLists; 2],
    /// Edges by predicate and pair of sets, where the pairs are few: which vertices lead to
    /// which is what counts of one end cannot tell. See [`PairEdges::words`].
    pairs: FixedLists<[u64; 3]>,
    // What follows is derived from the above.
    /// Vertices of each set.
    sizes: Vec<u64>,
    /// Stretches of each set, in order.
    of_set: Lists<u32>,
    /// All types, sorted.
    type_ids: Vec<u64>,
    /// Vertices of each type.
    type_ranges: Vec<IdRanges>,
    /// Sets of each type.
    with_type: Holders,
    /// Sets of each predicate, by direction.
    with_predicate: [Holders; 2],
    /// Sets of evenly spread vertices, if there are many sets.
    samples: Vec<u32>,
    typed_vertices: u64,
    /// `rdf:type` edges of the stretches before each one, and all.
    type_starts: Vec<u64>,
}

impl Default for Clusters {
    fn default() -> Self {
        Self::none(0)
    }
}

impl Clusters {
    /// The table from its parts: the stretches, which hold no set but those that follow; and by
    /// set the types and, by direction, the predicates with edge counts; and edges by pair of sets
    /// for each predicate.
    ///
    /// Costs the lists of all sets, and the stretches with the types of each.
    pub(crate) fn new(
        stretches: Stretches,
        types: Lists<u64>,
        has: [Lists<Edges>; 2],
        pairs: Lists<PairEdges>,
    ) -> Self {
        let predicates = pairs.len();
        let table = Self::underived(
            stretches.fixed(),
            types.fixed(|raw| *raw),
            [0, 1].map(|direction: usize| PredicateLists::of(&has[direction])),
            pairs.fixed(PairEdges::words),
        );
        drop((stretches, types, has, pairs));
        let mut image = ImageWriter::default();
        table.write(&mut image);
        drop(table);
        let table = Self::read(&mut image.in_memory(), predicates);
        table.expect("a table of sets reads back as it was written")
    }

    /// The table without what follows from it.
    fn underived(
        stretches: FixedStretches,
        types: FixedLists<u64>,
        has: [PredicateLists; 2],
        pairs: FixedLists<[u64; 3]>,
    ) -> Self {
        Self {
            stretches,
            types,
            has,
            pairs,
            sizes: Vec::new(),
            of_set: Lists::default(),
            type_ids: Vec::new(),
            type_ranges: Vec::new(),
            with_type: Holders::default(),
            with_predicate: Default::default(),
            samples: Vec::new(),
            typed_vertices: 0,
            type_starts: Vec::new(),
        }
    }

    /// The table with what follows from it.
    fn derived(mut self) -> Self {
        self.stretches = self.stretches.indexed();
        self.derive_stretches();
        self.derive_types();
        self.with_predicate = [0, 1]
            .map(|direction: usize| self.holders(self.has[direction].inverted(self.pairs.len())));
        self.samples = self.sample(self.len(), |place| place);
        self
    }

    /// The table of a layer without edges.
    pub(crate) fn none(predicates: usize) -> Self {
        let mut pairs = Lists::default();
        (0..predicates).for_each(|_| pairs.push([]));
        Self::new(
            Stretches::default(),
            Lists::default(),
            Default::default(),
            pairs,
        )
    }

    /// What follows from the stretches alone, and the places of `rdf:type` edges.
    fn derive_stretches(&mut self) {
        self.sizes = vec![0; self.len()];
        let mut sets = Lists::default();
        let mut type_edges = 0;
        for (members, set) in self.stretches.iter() {
            let (size, count) = (
                members.end - members.start,
                self.types.get(set).len() as u64,
            );
            self.sizes[set] += size;
            sets.push([set]);
            self.type_starts.push(type_edges);
            type_edges += count * size;
            self.typed_vertices += if count > 0 { size } else { 0 };
        }
        self.type_starts.push(type_edges);
        self.of_set = sets.inverted(self.len(), |set| *set);
    }

    fn derive_types(&mut self) {
        self.type_ids = self.types.parts().1.to_vec();
        self.type_ids.sort_unstable();
        self.type_ids.dedup();
        let numbers = self.types.map(|raw| {
            let number = self.type_ids.binary_search(raw);
            number.expect("the list holds every type")
        });
        let mut ranges = vec![IdRanges::new(); self.type_ids.len()];
        for (members, set) in self.stretches.iter() {
            for number in numbers.get(set) {
                ranges[*number].push(vertex(members.start), vertex(members.end));
            }
        }
        self.type_ranges = ranges.into_iter().map(IdRanges::with_bitmap).collect();
        self.with_type = self.holders(numbers.inverted(self.type_ids.len(), |number| *number));
    }

    fn holders(&self, sets: Lists<u32>) -> Holders {
        let mut holders = Holders::default();
        for list in sets.iter() {
            let numbers = || list.iter().map(|set| *set as usize);
            let stretches = numbers().map(|set| self.of_set.get(set).len() as u64);
            holders.stretches.push(stretches.sum());
            holders
                .vertices
                .push(numbers().map(|set| self.sizes[set]).sum());
            holders
                .samples
                .push(self.sample(list.len(), |place| list[place] as usize));
        }
        Holders { sets, ..holders }
    }

    /// The sets of [`SAMPLED`] vertices evenly spread over those of `count` sets, if these are too
    /// many to be summed.
    fn sample(&self, count: usize, set: impl Fn(usize) -> usize) -> Vec<u32> {
        if count <= MOST_SUMMED {
            return Vec::new();
        }
        let vertices: u64 = (0..count).map(|place| self.sizes[set(place)]).sum();
        let mut samples = Vec::with_capacity(SAMPLED as usize);
        let mut before = 0;
        for place in 0..count {
            before += self.sizes[set(place)];
            // The vertex in the middle of each of as many equal parts.
            let wanted = |samples: &Vec<u32>| {
                u128::from(vertices) * (2 * samples.len() as u128 + 1) / (2 * u128::from(SAMPLED))
            };
            while samples.len() < SAMPLED as usize && wanted(&samples) < u128::from(before) {
                samples.push(set(place) as u32);
            }
        }
        samples
    }

    /// Number of sets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// True of no sets, which is no vertices.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of stretches: as many as sets after a bulk load, and more after merges.
    #[must_use]
    pub fn stretches(&self) -> usize {
        self.stretches.len()
    }

    /// Number of `rdf:type` edges.
    #[must_use]
    pub fn type_edges(&self) -> u64 {
        self.type_starts.last().copied().unwrap_or(0)
    }

    /// Number of vertices that have a type.
    #[must_use]
    pub fn typed_vertices(&self) -> u64 {
        self.typed_vertices
    }

    /// All types, sorted by id.
    pub fn types(&self) -> impl ExactSizeIterator<Item = TermId> + '_ {
        self.type_ids.iter().map(|raw| TermId::from_raw(*raw))
    }

    /// Bytes of the table and its indexes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let ranges: usize = self.type_ranges.iter().map(|r| r.ranges().len()).sum();
        let words = self.sizes.len() + self.type_ids.len() + self.type_starts.len();
        self.stretches.bytes()
            + self.of_set.bytes()
            + self.types.bytes()
            + self.has.iter().map(PredicateLists::bytes).sum::<usize>()
            + self.pairs.bytes()
            + ranges * 24
            + self.with_type.bytes()
            + self
                .with_predicate
                .iter()
                .map(Holders::bytes)
                .sum::<usize>()
            + self.samples.len() * 4
            + words * 8
    }

    fn types_of_set(&self, set: usize) -> Neighbours<'_> {
        Neighbours::Run {
            base: 0,
            items: Narrow::U64(self.types.get(set)),
        }
    }

    /// The vertices with types by number: the numbers of each stretch, and the types of its
    /// vertices.
    pub(crate) fn typed_stretches(&self) -> impl Iterator<Item = (Range<u64>, Neighbours<'_>)> {
        let stretches = self.stretches.iter();
        stretches
            .map(|(members, set)| (members, self.types_of_set(set)))
            .filter(|(_, types)| !types.is_empty())
    }

    #[inline]
    fn stretch_of(&self, vertex: TermId) -> Option<usize> {
        match vertex.kind() {
            TermKind::Vertex => self.stretches.at(vertex.number()),
            _ => None,
        }
    }

    /// The set of a vertex: a search among the stretches, and a load.
    #[inline]
    fn set_of_vertex(&self, vertex: TermId) -> Option<usize> {
        self.stretch_of(vertex)
            .map(|stretch| self.stretches.set(stretch))
    }

    /// The types of a vertex.
    #[must_use]
    pub fn types_of_vertex(&self, vertex: TermId) -> Neighbours<'_> {
        self.set_of_vertex(vertex)
            .map_or(Neighbours::NONE, |set| self.types_of_set(set))
    }

    /// The vertices of a type.
    #[must_use]
    pub fn vertices_of_type(&self, class: TermId) -> Neighbours<'_> {
        match self.type_ids.binary_search(&class.raw()) {
            Ok(number) => Neighbours::Ranges(&self.type_ranges[number]),
            Err(_) => Neighbours::NONE,
        }
    }

    /// The place of an `rdf:type` edge among all of them, by vertex and type.
    pub(crate) fn type_place(&self, vertex: TermId, class: TermId) -> Option<usize> {
        let stretch = self.stretch_of(vertex)?;
        let types = self.types.get(self.stretches.set(stretch));
        let index = types.binary_search(&class.raw()).ok()?;
        let first = self.stretches.members(stretch).start;
        let before = (vertex.number() - first) as usize * types.len();
        Some(self.type_starts[stretch] as usize + before + index)
    }

    /// The `rdf:type` edge at a place.
    pub(crate) fn type_edge_at(&self, place: usize) -> (TermId, TermId) {
        let stretch = self
            .type_starts
            .partition_point(|start| *start <= place as u64)
            - 1;
        let types = self.types.get(self.stretches.set(stretch));
        let place = place - self.type_starts[stretch] as usize;
        let number = self.stretches.members(stretch).start + (place / types.len()) as u64;
        (vertex(number), TermId::from_raw(types[place % types.len()]))
    }

    /// The vertices that have a trait and lie in `windows`: costs the stretches in these.
    pub(crate) fn members_within(&self, asked: Membership, windows: &IdRanges) -> IdRanges {
        let mut ranges = IdRanges::new();
        for (first, end) in windows.ranges() {
            let Some(stretch) = self.stretch_of(TermId::from_raw(*first)) else {
                continue;
            };
            for stretch in stretch..self.stretches.len() {
                let members = self.stretches.members(stretch);
                if vertex(members.start).raw() >= *end {
                    break;
                }
                if self.set_has(self.stretches.set(stretch), asked) {
                    let from = vertex(members.start).raw().max(*first);
                    let to = vertex(members.end).raw().min(*end);
                    ranges.push(TermId::from_raw(from), TermId::from_raw(to));
                }
            }
        }
        ranges
    }

    /// The predicates, other than `rdf:type`, of a vertex in one direction.
    pub fn predicates_of_vertex(
        &self,
        vertex: TermId,
        direction: Direction,
    ) -> impl Iterator<Item = PredicateId> + '_ {
        let set = self.set_of_vertex(vertex).into_iter();
        set.flat_map(move |set| self.has[direction as usize].predicates(set))
    }

    /// True if the vertex has the trait.
    #[must_use]
    pub fn is_member(&self, vertex: TermId, asked: Membership) -> bool {
        self.set_of_vertex(vertex)
            .is_some_and(|set| self.set_has(set, asked))
            || matches!(asked, Membership::Has(PredicateId::TYPE, Direction::In)
                if self.type_ids.binary_search(&vertex.raw()).is_ok())
    }

    fn set_has(&self, set: usize, asked: Membership) -> bool {
        match asked {
            Membership::Type(class) => self.types.get(set).binary_search(&class.raw()).is_ok(),
            Membership::Has(PredicateId::TYPE, Direction::Out) => !self.types.get(set).is_empty(),
            // To be a class is no part of a set: see `ranges`.
            Membership::Has(PredicateId::TYPE, Direction::In) => true,
            Membership::Has(predicate, direction) => {
                self.has[direction as usize].has(set, predicate)
            }
        }
    }

    /// The sets that have a trait, and its number among them; `None` where all may have it.
    fn holders_of(&self, asked: Membership) -> Option<(&Holders, usize)> {
        match asked {
            Membership::Has(PredicateId::TYPE, _) => None,
            Membership::Type(class) => {
                let number = self.type_ids.binary_search(&class.raw());
                Some((&self.with_type, number.unwrap_or(usize::MAX)))
            }
            Membership::Has(predicate, direction) => {
                Some((&self.with_predicate[direction as usize], predicate.index()))
            }
        }
    }

    /// The shortest list that holds all sets with all traits.
    fn candidates(&self, traits: &[Membership]) -> Candidates<'_> {
        let of_trait = |asked: &Membership| {
            let (holders, number) = self.holders_of(*asked)?;
            Some(match number < holders.sets.len() {
                true => Candidates {
                    list: Some(holders.sets.get(number)),
                    samples: holders.samples.get(number),
                    vertices: holders.vertices[number],
                },
                false => Candidates {
                    list: Some(&[]),
                    samples: &[],
                    vertices: 0,
                },
            })
        };
        let all = Candidates {
            list: None,
            samples: &self.samples,
            vertices: self.stretches.end(),
        };
        traits
            .iter()
            .filter_map(of_trait)
            .min_by_key(|candidates| candidates.list.map_or(usize::MAX, <[u32]>::len))
            .unwrap_or(all)
    }

    fn has_all(&self, set: usize, traits: &[Membership]) -> bool {
        traits.iter().all(|asked| self.set_has(set, *asked))
    }

    /// The sets that have all traits, in order; `Has(rdf:type, In)` is not looked at.
    fn sets_with<'a>(&'a self, traits: &'a [Membership]) -> impl Iterator<Item = usize> + 'a {
        let shortest = self.candidates(traits).list;
        let all = if shortest.is_none() {
            0..self.len()
        } else {
            0..0
        };
        shortest
            .unwrap_or(&[])
            .iter()
            .map(|set| *set as usize)
            .chain(all)
            .filter(|set| self.has_all(*set, traits))
    }

    /// The sum of `weight` over the sets that have all traits: exact where one of them leaves
    /// no more than [`MOST_SUMMED`] sets, else by a sample.
    fn sum_over(&self, traits: &[Membership], weight: impl Fn(usize) -> f64) -> f64 {
        let candidates = self.candidates(traits);
        if candidates.samples.is_empty() {
            return self.sets_with(traits).map(weight).sum();
        }
        let of_vertices: f64 = candidates
            .samples
            .iter()
            .map(|set| *set as usize)
            .filter(|set| self.has_all(*set, traits))
            .map(|set| weight(set) / self.sizes[set] as f64)
            .sum();
        // None found is not none there: half of what one would have stood for.
        candidates.vertices as f64 / SAMPLED as f64 * of_vertices.max(0.5)
    }

    /// True if [`Clusters::vertices_with`] makes a short list in a short time: if one of the
    /// traits leaves few stretches.
    #[must_use]
    pub fn is_short(&self, traits: &[Membership]) -> bool {
        let stretches = |asked: &Membership| {
            let (holders, number) = self.holders_of(*asked)?;
            Some(holders.stretches.get(number).map_or(0, |count| *count))
        };
        let fewest = traits.iter().filter_map(stretches).min();
        fewest.unwrap_or(self.stretches.len() as u64) <= SHORT
    }

    /// True if few sets may have all traits, so that it is worth to know all of their vertices, if
    /// only once.
    #[must_use]
    pub fn are_few(&self, traits: &[Membership]) -> bool {
        let list = self.candidates(traits).list;
        list.map_or(self.len(), <[u32]>::len) <= MOST_SUMMED
    }

    /// The vertices of some distinct sets: costs their stretches, sorted, or a walk over all
    /// stretches where that is less.
    fn vertices_of_sets(&self, sets: impl Iterator<Item = usize>) -> IdRanges {
        let sets: Vec<usize> = sets.collect();
        let count: usize = sets.iter().map(|set| self.of_set.get(*set).len()).sum();
        let mut ranges = IdRanges::new();
        let mut add = |members: Range<u64>| ranges.push(vertex(members.start), vertex(members.end));
        if count > self.stretches.len() / WALKED_SHARE {
            let mut is_wanted = vec![false; self.len()];
            sets.iter().for_each(|set| is_wanted[*set] = true);
            let wanted = self.stretches.iter().filter(|(_, set)| is_wanted[*set]);
            wanted.for_each(|(members, _)| add(members));
            return ranges;
        }
        let of_sets = sets.iter().flat_map(|set| self.of_set.get(*set));
        let mut wanted: Vec<u32> = of_sets.copied().collect();
        wanted.sort_unstable();
        let members = |stretch: &u32| self.stretches.members(*stretch as usize);
        wanted.iter().map(members).for_each(add);
        ranges
    }

    /// The vertices that have all of `traits`.
    ///
    /// Costs the shortest of the traits' lists of sets, and the stretches of those sets that
    /// have all; nothing for a single type.
    #[must_use]
    pub fn vertices_with(&self, traits: &[Membership]) -> IdRanges {
        if let [Membership::Type(class)] = traits {
            return match self.type_ids.binary_search(&class.raw()) {
                Ok(number) => self.type_ranges[number].clone(),
                Err(_) => IdRanges::new(),
            };
        }
        let mut ranges = self.vertices_of_sets(self.sets_with(traits));
        if traits.contains(&Membership::Has(PredicateId::TYPE, Direction::In)) {
            let mut classes = IdRanges::new();
            for class in self
                .types()
                .filter(|class| class.kind() == TermKind::Vertex)
            {
                classes.push(class, TermId::from_raw(class.raw() + 1));
            }
            ranges = ranges.intersect(&classes);
        }
        ranges
    }

    /// How many vertices have all of `traits`: exact for one trait, and for several while the
    /// sets that one of them leaves are few; else an estimate.
    #[must_use]
    pub fn count_with(&self, traits: &[Membership]) -> f64 {
        if traits.contains(&Membership::Has(PredicateId::TYPE, Direction::In)) {
            return self.type_ids.len() as f64;
        }
        match traits {
            [Membership::Type(class)] => {
                let number = self.type_ids.binary_search(&class.raw());
                number.map_or(0.0, |number| self.type_ranges[number].len() as f64)
            }
            [Membership::Has(PredicateId::TYPE, _)] => self.typed_vertices as f64,
            [Membership::Has(predicate, direction)] => {
                let holders = &self.with_predicate[*direction as usize];
                let vertices = holders.vertices.get(predicate.index());
                vertices.map_or(0.0, |vertices| *vertices as f64)
            }
            traits => self.sum_over(traits, |set| self.sizes[set] as f64),
        }
    }

    /// How many edges of (predicate, direction) have a key with all of `traits`; exactness as
    /// for [`Clusters::count_with`].
    #[must_use]
    pub fn edges_from(
        &self,
        predicate: PredicateId,
        direction: Direction,
        traits: &[Membership],
    ) -> f64 {
        if predicate == PredicateId::TYPE {
            return match direction {
                Direction::Out => self.sum_over(traits, |set| {
                    self.sizes[set] as f64 * self.types.get(set).len() as f64
                }),
                Direction::In => self.type_edges() as f64,
            };
        }
        let mut all = traits.to_vec();
        all.push(Membership::Has(predicate, direction));
        self.sum_over(&all, |set| {
            let edges = self.has[direction as usize].edges(set, predicate);
            edges.expect("the set has the predicate") as f64
        })
    }

    /// How many edges of a predicate lead from subjects with all of `subjects` to vertices with
    /// all of `objects`; `None` where that was not counted.
    ///
    /// Costs the predicate's pairs of sets, [`count::MOST_PAIRS`] at most.
    #[must_use]
    pub fn edges_between(
        &self,
        predicate: PredicateId,
        subjects: &[Membership],
        objects: &[Membership],
    ) -> Option<f64> {
        if predicate.index() >= self.pairs.len() {
            return None;
        }
        let pairs = self.pairs.get(predicate.index());
        if pairs.is_empty() {
            return None;
        }
        let has_all = |set: u32, asked: &[Membership]| {
            asked.iter().all(|one| self.set_has(set as usize, *one))
        };
        let mut sum = 0;
        let mut last = None;
        for pair in pairs.iter().map(PairEdges::of_words) {
            // Pairs come by subject.
            let fits = match last {
                Some((set, fits)) if set == pair.subjects => fits,
                _ => has_all(pair.subjects, subjects),
            };
            last = Some((pair.subjects, fits));
            if fits && has_all(pair.objects, objects) {
                sum += pair.edges;
            }
        }
        Some(sum as f64)
    }
}

fn vertex(number: u64) -> TermId {
    TermId::vertex(number)
}
