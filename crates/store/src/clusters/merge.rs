//! The table of sets after a merge: which vertices have another set now?
//!
//! The cost follows what changed: numbers are permanent, so all stretches but those with vertices
//! that change their set stay as they are.

use std::hash::Hasher;

use hashbrown::HashTable;
use jindou_model::{Change, Direction, PredicateId, TermId};
use rustc_hash::{FxHashMap, FxHasher};

use super::count::{PairEdges, count_pairs_of_each, in_order};
use super::{Clusters, Edges, Lists, Stretches};
use crate::segment::Segment;

/// Gives the segment of a predicate and direction, if it has edges.
pub(crate) type Segments<'a> = &'a dyn Fn(PredicateId, Direction) -> Option<&'a Segment>;

/// What a merge of some predicates did to a layer.
pub(crate) struct SetChanges<'a> {
    /// The number behind the last vertex after the merge; those new to the table had no edges.
    pub(crate) vertices: u64,
    /// Number of predicates after the merge.
    pub(crate) predicates: usize,
    /// The predicates whose edges were merged, sorted; perhaps `rdf:type` among them.
    pub(crate) merged: &'a [PredicateId],
    /// By direction: vertices, as raw ids, whose lists of a merged predicate other than `rdf:type`
    /// have changed, with the predicate; sorted and distinct.
    pub(crate) touched: [&'a [(u64, PredicateId)]; 2],
    /// The `rdf:type` edges that came or went, as raw ids of vertex and class; sorted by these.
    pub(crate) types: &'a [((u64, u64), Change)],
    /// The segments before the merge.
    pub(crate) before: Segments<'a>,
    /// The segments after the merge: those before it for predicates that were not merged.
    pub(crate) after: Segments<'a>,
}

impl Clusters {
    /// The table after a merge: a touched vertex has those merged predicates of which it has an
    /// edge, its types are those of before with what came and without what went, and the rest
    /// stays. Equal sets are one, and those without a vertex are gone; the others are in the order
    /// in which they were, and behind them those that are new.
    ///
    /// Counts of edges by set are exact, and the pairs of merged predicates are counted anew. The
    /// pairs of the other predicates are those of before: the edges of a vertex that went to
    /// another set still count for its old one, or, where no vertex is left in that, for the set to
    /// which the last one went. Their sums stay right, and each may be off by as much as moved.
    ///
    /// Costs the stretches, the sets with their lists, the touched vertices with the traits of
    /// those that have another set now, and a scan of the segments by subject that were merged.
    pub(crate) fn merged(&self, changes: &SetChanges<'_>) -> Self {
        debug_assert!(changes.vertices >= self.stretches.end());
        debug_assert!(changes.predicates >= self.pairs.len());
        if changes.vertices == 0 {
            return Self::none(changes.predicates);
        }
        let mut sets = Sets::default();
        let numbers = sets.add_all(self);
        let before = stretches_before(self, changes.vertices, &numbers, &mut sets);
        let mut moves = Moves {
            changes,
            sets,
            heirs: FxHashMap::default(),
            new: Traits::default(),
        };
        let mut stretches = moves.follow(&before);
        let (sets, kept) = moves.sets.keep_used(&stretches);
        stretches.renumber(|set| kept[set as usize].expect("the set has vertices"));
        let stretches = stretches.indexed();
        let heirs = moves.heirs;
        let number_after = |set: u32| {
            let found = numbers[set as usize];
            kept[found as usize].or_else(|| kept[*heirs.get(&found)? as usize])
        };
        let pairs = self.pairs_after(changes, &stretches, &number_after);
        Self::new(stretches, sets.types, sets.has, pairs)
    }

    /// The pairs of all predicates after a merge that gave the sets these numbers.
    fn pairs_after(
        &self,
        changes: &SetChanges<'_>,
        stretches: &Stretches,
        number: &dyn Fn(u32) -> Option<u32>,
    ) -> Lists<PairEdges> {
        let segment = |predicate: &PredicateId| (changes.after)(*predicate, Direction::Out);
        let segments: Vec<Option<&Segment>> = changes.merged.iter().map(segment).collect();
        let mut counted = count_pairs_of_each(&segments, stretches);
        let mut pairs = Lists::default();
        for index in 0..changes.predicates {
            let predicate = PredicateId(index as u32);
            pairs.push(match changes.merged.binary_search(&predicate) {
                Ok(place) => counted[place].take().unwrap_or_default(),
                Err(_) if index < self.pairs.len() => renumbered(self.pairs.get(index), number),
                Err(_) => Vec::new(),
            });
        }
        pairs
    }
}

/// Pairs with other numbers of sets, some of which may have become one.
fn renumbered(pairs: &[[u64; 3]], number: &dyn Fn(u32) -> Option<u32>) -> Vec<PairEdges> {
    let mut counts: FxHashMap<(u32, u32), u64> = FxHashMap::default();
    for pair in pairs.iter().map(PairEdges::of_words) {
        if let (Some(subjects), Some(objects)) = (number(pair.subjects), number(pair.objects)) {
            *counts.entry((subjects, objects)).or_default() += pair.edges;
        }
    }
    in_order(counts)
}

/// The stretches of a table by the numbers that its sets have now, up to as many vertices: what it
/// does not know had no edges.
fn stretches_before(
    table: &Clusters,
    vertices: u64,
    numbers: &[u32],
    sets: &mut Sets,
) -> Stretches {
    let mut before = Stretches::default();
    for (members, set) in table.stretches.iter() {
        before.push(members.end, numbers[set]);
    }
    if before.end() < vertices {
        let empty = sets.number(&Traits::default());
        before.push(vertices, empty);
    }
    before
}

/// What vertices of one set share: types as raw ids, and predicates by direction, all sorted.
#[derive(Default)]
struct Traits {
    types: Vec<u64>,
    has: [Vec<PredicateId>; 2],
}

impl Traits {
    fn set_to<P: Iterator<Item = PredicateId>>(&mut self, types: &[u64], has: [P; 2]) {
        self.types.clear();
        self.types.extend_from_slice(types);
        for (list, predicates) in self.has.iter_mut().zip(has) {
            list.clear();
            list.extend(predicates);
        }
    }

    fn hash(&self) -> u64 {
        let mut hasher = FxHasher::default();
        hasher.write_usize(self.types.len());
        self.types.iter().for_each(|raw| hasher.write_u64(*raw));
        for list in &self.has {
            hasher.write_usize(list.len());
            list.iter().for_each(|id| hasher.write_u32(id.0));
        }
        hasher.finish()
    }
}

/// Sets each of which is there once.
#[derive(Default)]
struct Sets {
    types: Lists<u64>,
    has: [Lists<Edges>; 2],
    /// Hash and number of each.
    found: HashTable<(u64, u32)>,
}

impl Sets {
    /// The number of the set with these traits, which is new perhaps, without edges then.
    fn number(&mut self, traits: &Traits) -> u32 {
        let hash = traits.hash();
        let same = |(_, set): &(u64, u32)| self.is(*set as usize, traits);
        if let Some((_, set)) = self.found.find(hash, same) {
            return *set;
        }
        let number = self.types.len() as u32;
        self.types.push(traits.types.iter().copied());
        for (lists, list) in self.has.iter_mut().zip(&traits.has) {
            lists.push(list.iter().map(|predicate| (*predicate, 0)));
        }
        let entry = (hash, number);
        self.found.insert_unique(hash, entry, |(hash, _)| *hash);
        number
    }

    fn is(&self, set: usize, traits: &Traits) -> bool {
        let same_predicates = |direction: usize| {
            let has = self.has[direction].get(set).iter();
            has.map(|(predicate, _)| predicate)
                .eq(&traits.has[direction])
        };
        self.types.get(set) == traits.types && same_predicates(0) && same_predicates(1)
    }

    /// Adds the sets of a table with their edges; their numbers here.
    fn add_all(&mut self, table: &Clusters) -> Vec<u32> {
        let mut traits = Traits::default();
        let mut add = |set: usize| {
            let has = [0, 1].map(|direction: usize| table.has[direction].get(set));
            let predicates = has.clone().map(|list| list.map(|(predicate, _)| predicate));
            traits.set_to(table.types.get(set), predicates);
            let number = self.number(&traits);
            for (lists, edges) in self.has.iter_mut().zip(has) {
                let sums = lists.get_mut(number as usize).iter_mut();
                sums.zip(edges).for_each(|(sum, edges)| sum.1 += edges.1);
            }
            number
        };
        (0..table.len()).map(&mut add).collect()
    }

    /// The sets that have stretches; and the number of each set among them.
    fn keep_used(&self, stretches: &Stretches) -> (Self, Vec<Option<u32>>) {
        let mut numbers = vec![None; self.types.len()];
        for (_, set) in stretches.iter() {
            numbers[set] = Some(0);
        }
        let mut kept = Self::default();
        for (set, number) in numbers.iter_mut().enumerate() {
            if let Some(number) = number {
                *number = kept.types.len() as u32;
                kept.types.push(self.types.get(set).iter().copied());
                for (to, from) in kept.has.iter_mut().zip(&self.has) {
                    to.push(from.get(set).iter().copied());
                }
            }
        }
        (kept, numbers)
    }
}

/// What changed at one vertex.
struct AtVertex<'a> {
    vertex: TermId,
    touched: [&'a [(u64, PredicateId)]; 2],
    types: &'a [((u64, u64), Change)],
}

/// Goes through the vertices at which something changed, in order.
struct ByVertex<'a> {
    touched: [&'a [(u64, PredicateId)]; 2],
    types: &'a [((u64, u64), Change)],
}

impl<'a> Iterator for ByVertex<'a> {
    type Item = AtVertex<'a>;

    fn next(&mut self) -> Option<AtVertex<'a>> {
        let [out, incoming] = self.touched.map(|list| list.first().map(|first| first.0));
        let typed = self.types.first().map(|first| first.0.0);
        let vertex = [out, incoming, typed].into_iter().flatten().min()?;
        Some(AtVertex {
            vertex: TermId::from_raw(vertex),
            touched: [0, 1].map(|direction: usize| {
                take_while(&mut self.touched[direction], |one| one.0 == vertex)
            }),
            types: take_while(&mut self.types, |one| one.0.0 == vertex),
        })
    }
}

/// Takes the first items off a list, as far as they fit.
fn take_while<'a, T>(list: &mut &'a [T], fits: impl Fn(&T) -> bool) -> &'a [T] {
    let count = list.iter().take_while(|item| fits(item)).count();
    let (first, rest) = list.split_at(count);
    *list = rest;
    first
}

/// Moves vertices to the sets that they have after a merge.
struct Moves<'a, 'b> {
    changes: &'a SetChanges<'b>,
    sets: Sets,
    /// For each set that vertices left: where the last of these went.
    heirs: FxHashMap<u32, u32>,
    /// Traits of the vertex at hand.
    new: Traits,
}

impl Moves<'_, '_> {
    /// The stretches after the merge; changes the sets and their counts to match.
    fn follow(&mut self, before: &Stretches) -> Stretches {
        let mut after = Stretches::default();
        let mut rest = before.iter().peekable();
        let changed = ByVertex {
            touched: self.changes.touched,
            types: self.changes.types,
        };
        for at in changed {
            let number = at.vertex.number();
            while let Some((members, set)) = rest.next_if(|(members, _)| members.end <= number) {
                after.push(members.end, set as u32);
            }
            let (_, set) = rest.peek().expect("every vertex has a set");
            let set = *set as u32;
            let to = self.set_after(&at, set);
            if to != set {
                after.push(number, set);
                after.push(number + 1, to);
                self.heirs.insert(set, to);
            }
        }
        rest.for_each(|(members, set)| after.push(members.end, set as u32));
        after
    }

    /// The set that a vertex of `set` has after the merge; its edges count for that then.
    fn set_after(&mut self, at: &AtVertex<'_>, set: u32) -> u32 {
        let changed = |direction: Direction| {
            let touched = at.touched[direction as usize].iter();
            touched.map(move |(_, predicate)| (*predicate, direction))
        };
        let mut all = changed(Direction::Out).chain(changed(Direction::In));
        let stays = at.types.is_empty()
            && all.all(|of| (self.before(at.vertex, of) == 0) == (self.after(at.vertex, of) == 0));
        if stays {
            for of in changed(Direction::Out).chain(changed(Direction::In)) {
                let (before, after) = (self.before(at.vertex, of), self.after(at.vertex, of));
                self.add_edges(set, of, before, after);
            }
            return set;
        }
        self.find_traits(at, set as usize);
        let to = self.sets.number(&self.new);
        self.move_edges(at.vertex, set, to);
        to
    }

    fn before(&self, vertex: TermId, (predicate, direction): (PredicateId, Direction)) -> u64 {
        degree((self.changes.before)(predicate, direction), vertex)
    }

    fn after(&self, vertex: TermId, (predicate, direction): (PredicateId, Direction)) -> u64 {
        degree((self.changes.after)(predicate, direction), vertex)
    }

    /// Corrects the edges that a set has of a predicate.
    fn add_edges(&mut self, set: u32, of: (PredicateId, Direction), before: u64, after: u64) {
        let list = self.sets.has[of.1 as usize].get_mut(set as usize);
        if let Ok(place) = list.binary_search_by_key(&of.0, |(predicate, _)| *predicate) {
            // Only a table that contradicts its edges has fewer: `verify` says so of it.
            let edges = &mut list[place].1;
            *edges = edges.saturating_sub(before) + after;
        }
    }

    /// Makes the traits that a vertex of a set has after the merge.
    fn find_traits(&mut self, at: &AtVertex<'_>, set: usize) {
        let has = [0, 1].map(|direction: usize| {
            let list = self.sets.has[direction].get(set).iter();
            list.map(|(predicate, _)| *predicate)
        });
        self.new.set_to(self.sets.types.get(set), has);
        if !at.types.is_empty() {
            let types = &mut self.new.types;
            let is_changed = |class: &u64| at.types.binary_search_by_key(class, |one| one.0.1);
            types.retain(|class| is_changed(class).is_err());
            let come = at.types.iter().filter(|one| one.1 == Change::Add);
            types.extend(come.map(|one| one.0.1));
            types.sort_unstable();
        }
        for direction in [Direction::Out, Direction::In] {
            let touched = at.touched[direction as usize];
            if touched.is_empty() {
                continue;
            }
            let mut list = std::mem::take(&mut self.new.has[direction as usize]);
            list.retain(|id| touched.binary_search_by_key(id, |one| one.1).is_err());
            let there = touched.iter().map(|(_, predicate)| *predicate);
            list.extend(there.filter(|id| self.after(at.vertex, (*id, direction)) > 0));
            list.sort_unstable();
            self.new.has[direction as usize] = list;
        }
    }

    /// Takes the edges that a vertex had off one set and adds those that it has to another.
    fn move_edges(&mut self, vertex: TermId, from: u32, to: u32) {
        for direction in [Direction::Out, Direction::In] {
            let (before, after) = (self.changes.before, self.changes.after);
            for (predicate, edges) in self.sets.has[direction as usize].get_mut(from as usize) {
                let lost = degree(before(*predicate, direction), vertex);
                *edges = edges.saturating_sub(lost);
            }
            for (predicate, edges) in self.sets.has[direction as usize].get_mut(to as usize) {
                *edges += degree(after(*predicate, direction), vertex);
            }
        }
    }
}

fn degree(segment: Option<&Segment>, vertex: TermId) -> u64 {
    segment.map_or(0, |segment| segment.edge_range(vertex).len() as u64)
}
