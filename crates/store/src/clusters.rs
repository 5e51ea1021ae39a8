//! Characteristic sets: which types and predicates have the vertices of this id range?
//!
//! The bulk loader numbers vertices so that those with the same types and the same predicates, out
//! and in, are next to each other: a *cluster*. The table of clusters therefore holds every
//! `rdf:type` edge of the default graph (the type index vertices of Wukong become ranges), the
//! predicates of every vertex (its predicate list), and exact counts for the planner.

use std::ops::Range;

use jindou_model::{
    Direction, IdRanges, Membership, Narrow, Neighbours, PredicateId, TermId, TermKind,
};

use rustc_hash::FxHashMap;

use crate::StoreError;
use crate::image::{ImageReader, ImageWriter};
use crate::segment::Segment;

/// Beyond so many clusters a sum over them is replaced by an estimate.
const MOST_SUMMED: usize = 1024;
/// An estimate looks at the clusters of so many vertices, evenly spread over all in question.
const SAMPLED: u64 = 256;
/// Beyond so many clusters a list of ranges is no short one.
const SHORT: usize = 1024;

/// A list of lists.
#[derive(Clone, Debug)]
pub(crate) struct Lists<T> {
    offsets: Vec<usize>,
    items: Vec<T>,
}

impl<T> Default for Lists<T> {
    fn default() -> Self {
        Self {
            offsets: vec![0],
            items: Vec::new(),
        }
    }
}

impl<T> Lists<T> {
    pub(crate) fn push(&mut self, list: impl IntoIterator<Item = T>) {
        self.items.extend(list);
        self.offsets.push(self.items.len());
    }

    pub(crate) fn get(&self, index: usize) -> &[T] {
        &self.items[self.offsets[index]..self.offsets[index + 1]]
    }

    pub(crate) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Where each list begins, and one more; and the items of all.
    pub(crate) fn parts(&self) -> (&[usize], &[T]) {
        (&self.offsets, &self.items)
    }

    /// The lists of these parts; `None` if they contradict each other.
    pub(crate) fn from_parts(offsets: Vec<u64>, items: Vec<T>) -> Option<Self> {
        let offsets: Vec<usize> = offsets.iter().map(|offset| *offset as usize).collect();
        let sound = offsets.first() == Some(&0)
            && offsets.last() == Some(&items.len())
            && offsets.is_sorted();
        sound.then_some(Self { offsets, items })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.offsets.len() * size_of::<usize>() + self.items.len() * size_of::<T>()
    }

    /// For each value below `values`: the lists that hold it, in order.
    fn inverted(&self, values: usize, value_of: impl Fn(&T) -> usize) -> Lists<u32> {
        let mut offsets = vec![0; values + 1];
        for item in &self.items {
            offsets[value_of(item) + 1] += 1;
        }
        for value in 0..values {
            offsets[value + 1] += offsets[value];
        }
        let mut next = offsets.clone();
        let mut items = vec![0; self.items.len()];
        for list in 0..self.len() {
            for item in self.get(list) {
                let place = &mut next[value_of(item)];
                items[*place] = list as u32;
                *place += 1;
            }
        }
        Lists { offsets, items }
    }
}

/// Predicate and number of edges.
type Edges = (PredicateId, u64);

/// Beyond so many pairs of clusters a predicate's pairs are not kept.
pub(crate) const MOST_PAIRS: usize = 2048;

/// Edges of one predicate from the vertices of one cluster to those of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PairEdges {
    pub(crate) subjects: u32,
    pub(crate) objects: u32,
    pub(crate) edges: u64,
}

/// Clusters among which are all that meet some traits.
struct Candidates<'a> {
    /// `None` is all there are.
    list: Option<&'a [u32]>,
    /// The clusters of evenly spread vertices, if the list is long.
    samples: &'a [u32],
    /// Vertices of all clusters of the list.
    vertices: u64,
}

/// The clusters of one shard.
#[derive(Clone, Debug, Default)]
pub struct Clusters {
    /// First local id of each cluster, and one more.
    starts: Vec<u64>,
    /// Types of each cluster, sorted, as raw ids.
    types: Lists<u64>,
    /// Predicates of each cluster and direction, sorted, with the number of edges.
    has: [Lists<Edges>; 2],
    /// Edges by predicate and pair of clusters, where the pairs are few: which vertices lead to
    /// which is what counts of one end cannot tell.
    pairs: Lists<PairEdges>,
    // What follows is derived from the above.
    /// All types, sorted.
    type_ids: Vec<u64>,
    /// Clusters of each type.
    type_clusters: Lists<u32>,
    /// Vertices of each type.
    type_ranges: Vec<IdRanges>,
    /// Clusters of each predicate, by direction.
    has_clusters: [Lists<u32>; 2],
    /// Vertices with each predicate, by direction.
    has_vertices: [Vec<u64>; 2],
    /// Samples of the lists above that are long, and of all clusters.
    type_samples: Lists<u32>,
    has_samples: [Lists<u32>; 2],
    samples: Vec<u32>,
    typed_vertices: u64,
    /// `rdf:type` edges of the clusters before each one, and all.
    type_starts: Vec<u64>,
}

impl Clusters {
    /// The table from its parts: first local ids (and one more), types, predicates with edge
    /// counts by direction, and edges by pair of clusters for each predicate.
    pub(crate) fn new(
        starts: Vec<u64>,
        types: Lists<u64>,
        has: [Lists<Edges>; 2],
        pairs: Lists<PairEdges>,
    ) -> Self {
        let predicates = pairs.len();
        let mut type_ids = types.items.clone();
        type_ids.sort_unstable();
        type_ids.dedup();
        let type_number = |raw: &u64| {
            type_ids
                .binary_search(raw)
                .expect("the list holds every type")
        };
        let type_clusters = types.inverted(type_ids.len(), type_number);
        let has_clusters =
            [0, 1].map(|direction| has[direction].inverted(predicates, |(id, _)| id.index()));
        let mut table = Self {
            starts,
            types,
            has,
            pairs,
            type_ids,
            type_clusters,
            has_clusters,
            ..Self::default()
        };
        table.type_ranges = (0..table.type_ids.len())
            .map(|number| table.ranges_of(table.type_clusters.get(number)))
            .collect();
        let mut type_edges = 0;
        for cluster in 0..table.len() {
            let count = table.types.get(cluster).len() as u64;
            table.type_starts.push(type_edges);
            type_edges += count * table.size(cluster);
            table.typed_vertices += if count > 0 { table.size(cluster) } else { 0 };
        }
        table.type_starts.push(type_edges);
        table.has_vertices = [0, 1].map(|direction| {
            let lists: &Lists<u32> = &table.has_clusters[direction];
            let sum = |list: &[u32]| list.iter().map(|c| table.size(*c as usize)).sum();
            (0..lists.len())
                .map(|number| sum(lists.get(number)))
                .collect()
        });
        table.type_samples = table.samples_of(&table.type_clusters);
        table.has_samples = [0, 1].map(|d| table.samples_of(&table.has_clusters[d]));
        table.samples = table.sample(table.len(), |place| place);
        table
    }

    /// The table of a layer without edges.
    pub(crate) fn none(predicates: usize) -> Self {
        let mut pairs = Lists::default();
        (0..predicates).for_each(|_| pairs.push([]));
        Self::new(Vec::new(), Lists::default(), Default::default(), pairs)
    }

    fn samples_of(&self, lists: &Lists<u32>) -> Lists<u32> {
        let mut samples = Lists::default();
        for number in 0..lists.len() {
            let list = lists.get(number);
            samples.push(self.sample(list.len(), |place| list[place] as usize));
        }
        samples
    }

    /// The clusters of [`SAMPLED`] vertices evenly spread over those of `count` clusters, if
    /// these are too many to be summed.
    fn sample(&self, count: usize, cluster: impl Fn(usize) -> usize) -> Vec<u32> {
        if count <= MOST_SUMMED {
            return Vec::new();
        }
        let vertices: u64 = (0..count).map(|place| self.size(cluster(place))).sum();
        let mut samples = Vec::with_capacity(SAMPLED as usize);
        let mut before = 0;
        for place in 0..count {
            before += self.size(cluster(place));
            // The vertex in the middle of each of as many equal parts.
            let wanted = |samples: &Vec<u32>| {
                u128::from(vertices) * (2 * samples.len() as u128 + 1) / (2 * u128::from(SAMPLED))
            };
            while samples.len() < SAMPLED as usize && wanted(&samples) < u128::from(before) {
                samples.push(cluster(place) as u32);
            }
        }
        samples
    }

    /// Number of clusters.
    #[must_use]
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// True of no clusters, which is no vertices.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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
        self.starts.len() * 8
            + self.types.bytes()
            + self.has.iter().map(Lists::bytes).sum::<usize>()
            + self.pairs.bytes()
            + self.type_ids.len() * 8
            + self.type_clusters.bytes()
            + self
                .type_ranges
                .iter()
                .map(|r| r.ranges().len() * 24)
                .sum::<usize>()
            + self.has_clusters.iter().map(Lists::bytes).sum::<usize>()
            + self
                .has_vertices
                .iter()
                .map(|list| list.len() * 8)
                .sum::<usize>()
            + self.type_samples.bytes()
            + self.has_samples.iter().map(Lists::bytes).sum::<usize>()
            + self.samples.len() * 4
            + self.type_starts.len() * 8
    }

    fn size(&self, cluster: usize) -> u64 {
        self.starts[cluster + 1] - self.starts[cluster]
    }

    /// The ids of a cluster.
    pub(crate) fn members(&self, cluster: usize) -> Range<u64> {
        self.starts[cluster]..self.starts[cluster + 1]
    }

    /// The types of a cluster.
    pub(crate) fn types_of(&self, cluster: usize) -> Neighbours<'_> {
        Neighbours::Run {
            base: 0,
            items: Narrow::U64(self.types.get(cluster)),
        }
    }

    /// The cluster of a vertex.
    #[inline]
    pub(crate) fn cluster_of(&self, vertex: TermId) -> Option<usize> {
        if vertex.kind() != TermKind::Vertex {
            return None;
        }
        let local = vertex.number();
        let after = self.starts.partition_point(|start| *start <= local);
        (after > 0 && after < self.starts.len()).then(|| after - 1)
    }

    /// The types of a vertex.
    #[must_use]
    pub fn types_of_vertex(&self, vertex: TermId) -> Neighbours<'_> {
        self.cluster_of(vertex)
            .map_or(Neighbours::NONE, |cluster| self.types_of(cluster))
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
        let cluster = self.cluster_of(vertex)?;
        let types = self.types.get(cluster);
        let index = types.binary_search(&class.raw()).ok()?;
        let before = (vertex.number() - self.starts[cluster]) as usize * types.len();
        Some(self.type_starts[cluster] as usize + before + index)
    }

    /// The `rdf:type` edge at a place.
    pub(crate) fn type_edge_at(&self, place: usize) -> (TermId, TermId) {
        let cluster = self
            .type_starts
            .partition_point(|start| *start <= place as u64)
            - 1;
        let types = self.types.get(cluster);
        let place = place - self.type_starts[cluster] as usize;
        let local = self.starts[cluster] + (place / types.len()) as u64;
        (vertex(local), TermId::from_raw(types[place % types.len()]))
    }

    /// The vertices that have a trait and lie in `windows`: costs the clusters in these.
    pub(crate) fn members_within(&self, asked: Membership, windows: &IdRanges) -> IdRanges {
        let mut ranges = IdRanges::new();
        for (first, end) in windows.ranges() {
            let Some(cluster) = self.cluster_of(TermId::from_raw(*first)) else {
                continue;
            };
            for cluster in cluster..self.len() {
                let members = self.members(cluster);
                if vertex(members.start).raw() >= *end {
                    break;
                }
                if self.cluster_has(cluster, asked) {
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
        let list = self
            .cluster_of(vertex)
            .map_or(&[][..], |cluster| self.has[direction as usize].get(cluster));
        list.iter().map(|(predicate, _)| *predicate)
    }

    /// True if the vertex has the trait.
    #[must_use]
    pub fn is_member(&self, vertex: TermId, asked: Membership) -> bool {
        self.cluster_of(vertex)
            .is_some_and(|cluster| self.cluster_has(cluster, asked))
            || matches!(asked, Membership::Has(PredicateId::TYPE, Direction::In)
                if self.type_ids.binary_search(&vertex.raw()).is_ok())
    }

    fn cluster_has(&self, cluster: usize, asked: Membership) -> bool {
        match asked {
            Membership::Type(class) => self.types.get(cluster).binary_search(&class.raw()).is_ok(),
            Membership::Has(PredicateId::TYPE, Direction::Out) => {
                !self.types.get(cluster).is_empty()
            }
            // Classes are not clustered by being one: see `ranges`.
            Membership::Has(PredicateId::TYPE, Direction::In) => true,
            Membership::Has(predicate, direction) => self.has[direction as usize]
                .get(cluster)
                .binary_search_by_key(&predicate, |(id, _)| *id)
                .is_ok(),
        }
    }

    /// The shortest list that holds all clusters with all traits.
    fn candidates(&self, traits: &[Membership]) -> Candidates<'_> {
        let of_trait = |asked: &Membership| {
            let (lists, samples, vertices, number) = match asked {
                Membership::Has(PredicateId::TYPE, _) => return None,
                Membership::Type(class) => {
                    let number = self.type_ids.binary_search(&class.raw());
                    let vertices = number.map_or(0, |number| self.type_ranges[number].len());
                    let number = number.unwrap_or(usize::MAX);
                    (&self.type_clusters, &self.type_samples, vertices, number)
                }
                Membership::Has(predicate, direction) => {
                    let (d, number) = (*direction as usize, predicate.index());
                    let vertices = self.has_vertices[d].get(number).map_or(0, |v| *v);
                    (
                        &self.has_clusters[d],
                        &self.has_samples[d],
                        vertices,
                        number,
                    )
                }
            };
            Some(match number < lists.len() {
                true => Candidates {
                    list: Some(lists.get(number)),
                    samples: samples.get(number),
                    vertices,
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
            vertices: self.starts.last().map_or(0, |end| end - self.starts[0]),
        };
        traits
            .iter()
            .filter_map(of_trait)
            .min_by_key(|candidates| candidates.list.map_or(usize::MAX, <[u32]>::len))
            .unwrap_or(all)
    }

    fn has_all(&self, cluster: usize, traits: &[Membership]) -> bool {
        traits.iter().all(|asked| self.cluster_has(cluster, *asked))
    }

    /// The clusters that have all traits, in order; `Has(rdf:type, In)` is not looked at.
    fn clusters_with<'a>(&'a self, traits: &'a [Membership]) -> impl Iterator<Item = usize> + 'a {
        let shortest = self.candidates(traits).list;
        let all = if shortest.is_none() {
            0..self.len()
        } else {
            0..0
        };
        shortest
            .unwrap_or(&[])
            .iter()
            .map(|cluster| *cluster as usize)
            .chain(all)
            .filter(|cluster| self.has_all(*cluster, traits))
    }

    /// The sum of `weight` over the clusters that have all traits: exact where one of them leaves
    /// no more than [`MOST_SUMMED`] clusters, else by a sample.
    fn sum_over(&self, traits: &[Membership], weight: impl Fn(usize) -> f64) -> f64 {
        let candidates = self.candidates(traits);
        if candidates.samples.is_empty() {
            return self.clusters_with(traits).map(weight).sum();
        }
        let of_vertices: f64 = candidates
            .samples
            .iter()
            .map(|cluster| *cluster as usize)
            .filter(|cluster| self.has_all(*cluster, traits))
            .map(|cluster| weight(cluster) / self.size(cluster) as f64)
            .sum();
        // None found is not none there: half of what one would have stood for.
        candidates.vertices as f64 / SAMPLED as f64 * of_vertices.max(0.5)
    }

    /// True if [`Clusters::vertices_with`] makes a short list in a short time.
    #[must_use]
    pub fn is_short(&self, traits: &[Membership]) -> bool {
        let list = self.candidates(traits).list;
        list.map_or(self.len(), <[u32]>::len) <= SHORT
    }

    fn ranges_of(&self, clusters: &[u32]) -> IdRanges {
        let mut ranges = IdRanges::new();
        for cluster in clusters {
            let members = self.members(*cluster as usize);
            ranges.push(vertex(members.start), vertex(members.end));
        }
        ranges
    }

    /// The vertices that have all of `traits`.
    ///
    /// Costs the shortest of the traits' lists of clusters; nothing for a single type.
    #[must_use]
    pub fn vertices_with(&self, traits: &[Membership]) -> IdRanges {
        if let [Membership::Type(class)] = traits {
            return match self.type_ids.binary_search(&class.raw()) {
                Ok(number) => self.type_ranges[number].clone(),
                Err(_) => IdRanges::new(),
            };
        }
        let mut ranges = IdRanges::new();
        for cluster in self.clusters_with(traits) {
            let members = self.members(cluster);
            ranges.push(vertex(members.start), vertex(members.end));
        }
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
    /// clusters that one of them leaves are few; else an estimate.
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
                let vertices = self.has_vertices[*direction as usize].get(predicate.index());
                vertices.map_or(0.0, |vertices| *vertices as f64)
            }
            traits => self.sum_over(traits, |cluster| self.size(cluster) as f64),
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
                Direction::Out => self.sum_over(traits, |cluster| {
                    self.size(cluster) as f64 * self.types.get(cluster).len() as f64
                }),
                Direction::In => self.type_edges() as f64,
            };
        }
        let mut all = traits.to_vec();
        all.push(Membership::Has(predicate, direction));
        self.sum_over(&all, |cluster| {
            let list = self.has[direction as usize].get(cluster);
            let place = list
                .binary_search_by_key(&predicate, |(id, _)| *id)
                .expect("the cluster has the predicate");
            list[place].1 as f64
        })
    }

    /// How many edges of a predicate lead from subjects with all of `subjects` to vertices with
    /// all of `objects`; `None` where that was not counted.
    ///
    /// Costs the predicate's pairs of clusters, [`MOST_PAIRS`] at most.
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
        let has_all = |cluster: u32, asked: &[Membership]| {
            asked
                .iter()
                .all(|one| self.cluster_has(cluster as usize, *one))
        };
        let mut sum = 0;
        let mut last = None;
        for pair in pairs {
            // Pairs come by subject.
            let fits = match last {
                Some((cluster, fits)) if cluster == pair.subjects => fits,
                _ => has_all(pair.subjects, subjects),
            };
            last = Some((pair.subjects, fits));
            if fits && has_all(pair.objects, objects) {
                sum += pair.edges;
            }
        }
        Some(sum as f64)
    }

    /// Does every one of so many vertices belong to a cluster, unless the layer `is_empty`, and is
    /// each type `known`?
    pub(crate) fn check(
        &self,
        vertices: u64,
        is_empty: bool,
        known: &dyn Fn(TermId) -> bool,
    ) -> Result<(), &'static str> {
        let covered = match (self.starts.first(), self.starts.last()) {
            (Some(first), Some(last)) => *first == 0 && *last == vertices,
            _ => vertices == 0 || is_empty,
        };
        if !covered {
            return Err("the clusters do not hold all vertices");
        }
        let is_sound = |cluster: usize| {
            let types = self.types.get(cluster);
            types.is_sorted_by(|a, b| a < b)
                && types.iter().all(|raw| known(TermId::from_raw(*raw)))
                && [0, 1].iter().all(|direction| {
                    let has: &Lists<Edges> = &self.has[*direction];
                    has.get(cluster).is_sorted_by(|a, b| a.0 < b.0)
                })
        };
        match (0..self.len()).all(is_sound) {
            true => Ok(()),
            false => Err("the types or predicates of a cluster are out of order"),
        }
    }

    /// Does the table say of a predicate what its edges say?
    pub(crate) fn check_predicate(
        &self,
        predicate: PredicateId,
        direction: Direction,
        segment: Option<&Segment>,
    ) -> Result<(), &'static str> {
        // By cluster: vertices with the predicate, and edges.
        let mut found: FxHashMap<usize, (u64, u64)> = FxHashMap::default();
        let mut lost = false;
        if let Some(segment) = segment {
            segment.domain().for_each(&mut |key| {
                if key.kind() == TermKind::Vertex {
                    match self.cluster_of(key) {
                        Some(cluster) => {
                            let counts = found.entry(cluster).or_default();
                            counts.0 += 1;
                            counts.1 += segment.edge_range(key).len() as u64;
                        }
                        None => lost = true,
                    }
                }
            });
        }
        let listed = self.has_clusters[direction as usize].get(predicate.index());
        let agrees = |cluster: &u32| {
            let has = self.has[direction as usize].get(*cluster as usize);
            let place = has.binary_search_by_key(&predicate, |(id, _)| *id);
            let said = place.map(|place| (self.size(*cluster as usize), has[place].1));
            found.get(&(*cluster as usize)).copied() == said.ok()
        };
        if lost || listed.len() != found.len() || !listed.iter().all(agrees) {
            return Err("the table of clusters says otherwise than its edges");
        }
        Ok(())
    }

    pub(crate) fn write(&self, image: &mut ImageWriter) {
        let words = |list: &[usize]| list.iter().map(|word| *word as u64).collect::<Vec<_>>();
        image.words(&self.starts);
        image.words(&words(&self.types.offsets));
        image.words(&self.types.items);
        for has in &self.has {
            image.words(&words(&has.offsets));
            image.words(
                &has.items
                    .iter()
                    .map(|(id, _)| u64::from(id.0))
                    .collect::<Vec<_>>(),
            );
            image.words(
                &has.items
                    .iter()
                    .map(|(_, edges)| *edges)
                    .collect::<Vec<_>>(),
            );
        }
        image.words(&words(&self.pairs.offsets));
        let flat = |pair: &PairEdges| [pair.subjects.into(), pair.objects.into(), pair.edges];
        image.words(&self.pairs.items.iter().flat_map(flat).collect::<Vec<u64>>());
    }

    pub(crate) fn read(image: &mut ImageReader, predicates: usize) -> Result<Self, StoreError> {
        let starts = image.words()?;
        let offsets = image.words()?;
        let types = lists(image, offsets, |image| image.words())?;
        let mut has = || {
            let offsets = image.words()?;
            lists(image, offsets, |image| {
                let ids = image.words()?;
                let edges = image.words()?;
                if ids.len() != edges.len() || ids.iter().any(|id| *id >= predicates as u64) {
                    return Err(image.corrupt("the predicates of clusters are broken"));
                }
                Ok(ids
                    .iter()
                    .map(|id| PredicateId(*id as u32))
                    .zip(edges)
                    .collect())
            })
        };
        let has = [has()?, has()?];
        let offsets = image.words()?;
        let pairs = lists(image, offsets, |image| {
            let words = image.words()?;
            let clusters = types.len() as u64;
            let sound = |pair: &[u64]| pair[0] < clusters && pair[1] < clusters;
            if !words.len().is_multiple_of(3) || !words.chunks(3).all(sound) {
                return Err(image.corrupt("the pairs of clusters are broken"));
            }
            let pair = |pair: &[u64]| PairEdges {
                subjects: pair[0] as u32,
                objects: pair[1] as u32,
                edges: pair[2],
            };
            Ok(words.chunks(3).map(pair).collect())
        })?;
        let same_length =
            starts.len() == types.len() + 1 || (starts.is_empty() && types.len() == 0);
        if !same_length || !starts.is_sorted() || has.iter().any(|lists| lists.len() != types.len())
        {
            return Err(image.corrupt("the table of clusters contradicts itself"));
        }
        Ok(Self::new(starts, types, has, pairs))
    }
}

fn vertex(local: u64) -> TermId {
    TermId::vertex(local)
}

fn lists<T>(
    image: &mut ImageReader,
    offsets: Vec<u64>,
    items: impl FnOnce(&mut ImageReader) -> Result<Vec<T>, StoreError>,
) -> Result<Lists<T>, StoreError> {
    let items = items(image)?;
    Lists::from_parts(offsets, items)
        .ok_or_else(|| image.corrupt("the offsets of a list are broken"))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Clusters of one vertex each, but every thousandth of a thousand; a third have type 7, all
    /// predicate 1, and every fifth predicate 2 with two edges.
    fn many(count: usize) -> Clusters {
        let size = |cluster: usize| {
            if cluster.is_multiple_of(1000) {
                1000
            } else {
                1
            }
        };
        let mut starts = vec![0];
        let (mut types, mut out) = (Lists::default(), Lists::default());
        let mut incoming = Lists::default();
        for cluster in 0..count {
            starts.push(starts[cluster] + size(cluster));
            types.push(cluster.is_multiple_of(3).then_some(vertex(7).raw()));
            let second = cluster.is_multiple_of(5).then_some((PredicateId(2), 2));
            out.push([(PredicateId(1), 1)].into_iter().chain(second));
            incoming.push([]);
        }
        let mut pairs = Lists::default();
        (0..3).for_each(|_| pairs.push([]));
        Clusters::new(starts, types, [out, incoming], pairs)
    }

    #[test]
    fn sums_over_many_clusters_look_at_few_and_come_near() {
        let clusters = many(300_000);
        let traits = [
            Membership::Type(vertex(7)),
            Membership::Has(PredicateId(2), Direction::Out),
        ];
        let exact: f64 = clusters
            .clusters_with(&traits)
            .map(|cluster| clusters.size(cluster) as f64)
            .sum();
        let looks = Cell::new(0);
        let estimate = clusters.sum_over(&traits, |cluster| {
            looks.set(looks.get() + 1);
            clusters.size(cluster) as f64
        });
        assert!(looks.get() <= SAMPLED, "{} looks", looks.get());
        let ratio = estimate / exact;
        assert!((0.7..1.4).contains(&ratio), "{estimate} for {exact}");
        assert_eq!(clusters.count_with(&traits[..1]), exact_type(&clusters));
        assert!(!clusters.is_short(&traits));
    }

    fn exact_type(clusters: &Clusters) -> f64 {
        let of_type = [Membership::Type(vertex(7))];
        let sizes = clusters.clusters_with(&of_type).map(|c| clusters.size(c));
        sizes.sum::<u64>() as f64
    }

    #[test]
    fn sums_over_few_clusters_are_exact() {
        let clusters = many(1000);
        let traits = [
            Membership::Type(vertex(7)),
            Membership::Has(PredicateId(2), Direction::Out),
        ];
        // Clusters 0, 15, 30 ... 990, the first of a thousand vertices.
        assert_eq!(clusters.count_with(&traits), 1066.0);
        let edges = clusters.edges_from(PredicateId(2), Direction::Out, &traits[..1]);
        assert_eq!(edges, 134.0);
        assert!(clusters.is_short(&traits));
    }
}
