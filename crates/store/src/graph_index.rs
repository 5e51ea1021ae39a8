//! The index vertices of named graphs: which predicates has this graph, how many edges of each, and
//! which of them are not about vertices that are at home in it?
//!
//! With the vertices at home in it that is all of a graph, so that reading one, or what it has of
//! one predicate, costs just that, whatever other graphs say of the same subjects.
//!
//! What the graphs have of one predicate lies together, so that it can be made anew for that
//! predicate alone; what goes by graph is derived from all of these.

use std::sync::Arc;

use jindou_fabric::Region;
use jindou_model::PredicateId;

use crate::StoreError;
use crate::column::{Column, ColumnBuilder};
use crate::image::{ImageReader, ImageWriter};
use crate::predicate_graphs::{PredicateGraphs, rises_below};

/// What one graph has of one predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) graph: u32,
    /// All edges of it.
    pub(crate) edges: u64,
    /// Those whose places are listed.
    pub(crate) listed: u64,
}

/// Numbers of graphs, sorted.
#[derive(Clone, Debug)]
enum Numbers {
    /// One after the other: the first, and how many.
    Range(u64, usize),
    Listed(Column),
}

impl Numbers {
    fn new(numbers: &[u64]) -> Self {
        let first = numbers.first().copied().unwrap_or(0);
        let last = numbers.last().copied().unwrap_or(0);
        match (last - first + 1) as usize <= numbers.len().max(1) {
            true => Self::Range(first, numbers.len()),
            false => Self::Listed(Column::from_values(numbers)),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Range(_, len) => *len,
            Self::Listed(column) => column.len(),
        }
    }

    #[inline]
    fn get(&self, place: usize) -> u64 {
        match self {
            Self::Range(first, _) => first + place as u64,
            Self::Listed(column) => column.get(place),
        }
    }

    /// The place of a number: a binary search among as many as there are gaps between all of them.
    fn place(&self, number: u64) -> Option<usize> {
        let column = match self {
            Self::Range(first, len) => {
                let place = number.checked_sub(*first)? as usize;
                return (place < *len).then_some(place);
            }
            Self::Listed(column) => column,
        };
        let narrow = number.checked_sub(column.base())?;
        let items = column.narrow();
        let last = items.len().checked_sub(1)?;
        let gaps = items.get(last).checked_sub(last as u64)?;
        // Each number is as large as its place, and by no more than the gaps larger.
        let first = narrow.saturating_sub(gaps) as usize;
        let window = first..items.len().min(narrow as usize + 1);
        if window.is_empty() {
            return None;
        }
        let items = items.slice(window);
        let place = items.seek(0, narrow);
        (place < items.len() && items.get(place) == narrow).then_some(first + place)
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Range(..) => 0,
            Self::Listed(column) => column.bytes(),
        }
    }

    fn write(&self, image: &mut ImageWriter) {
        match self {
            Self::Range(first, len) => {
                image.word(0);
                image.word(*first);
                image.word(*len as u64);
            }
            Self::Listed(column) => {
                image.word(1);
                column.write(image);
            }
        }
    }

    /// Numbers below `limit`.
    fn read(image: &mut ImageReader, limit: u64) -> Result<Self, StoreError> {
        let numbers = match image.word()? {
            0 => Self::Range(image.word()?, image.length()?),
            _ => Self::Listed(Column::read(image)?),
        };
        let is_sound = match &numbers {
            Self::Range(first, len) => {
                let end = first.checked_add(*len as u64);
                end.is_some_and(|end| end <= limit)
            }
            Self::Listed(column) => rises_below(column, 0..column.len(), limit),
        };
        match is_sound {
            true => Ok(numbers),
            false => Err(image.corrupt("the graphs of a predicate are out of order")),
        }
    }
}

/// Graph -> places of edges, of one predicate.
#[derive(Clone, Debug)]
pub(crate) struct GraphIndex {
    /// The graphs: each is an entry.
    graphs: Numbers,
    /// Number of edges of each entry; absent where all of them are listed.
    edges: Option<Column>,
    /// Where each entry's places begin, and one more.
    begins: Column,
    /// Places among the edges of the predicate, sorted within each entry.
    places: Column,
    /// Edges of all entries; derived.
    quads: u64,
}

impl GraphIndex {
    /// The index of `entries`, sorted; `places` are those of all entries.
    pub(crate) fn new(entries: &[Entry], places: Column) -> Self {
        let list = |value: fn(&Entry) -> u64| entries.iter().map(value).collect::<Vec<_>>();
        let mut begins = vec![0_u64];
        begins.extend(entries.iter().scan(0, |sum, entry| {
            *sum += entry.listed;
            Some(*sum)
        }));
        let are_listed = entries.iter().all(|entry| entry.listed == entry.edges);
        Self {
            graphs: Numbers::new(&list(|entry| entry.graph.into())),
            edges: (!are_listed).then(|| Column::from_values(&list(|entry| entry.edges))),
            begins: Column::from_values(&begins),
            places,
            quads: entries.iter().map(|entry| entry.edges).sum(),
        }
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.graphs.len()
    }

    /// The entry of a graph: a few loads where most graphs have the predicate, else a binary
    /// search.
    pub(crate) fn entry(&self, graph: u32) -> Option<usize> {
        self.graphs.place(graph.into())
    }

    /// The graph of an entry.
    pub(crate) fn graph(&self, entry: usize) -> u32 {
        self.graphs.get(entry) as u32
    }

    /// The number of edges of all entries.
    pub(crate) fn quads(&self) -> u64 {
        self.quads
    }

    /// The number of edges of an entry.
    pub(crate) fn edges(&self, entry: usize) -> u64 {
        match &self.edges {
            Some(edges) => edges.get(entry),
            None => self.begins.get(entry + 1) - self.begins.get(entry),
        }
    }

    /// The listed places of an entry.
    pub(crate) fn listed(&self, entry: usize) -> impl ExactSizeIterator<Item = usize> + '_ {
        let range = self.begins.get(entry) as usize..self.begins.get(entry + 1) as usize;
        range.map(|index| self.places.get(index) as usize)
    }

    /// Where one of its arrays lies.
    pub(crate) fn region(&self) -> &Region {
        self.places.region()
    }

    pub(crate) fn bytes(&self) -> usize {
        let edges = self.edges.as_ref().map_or(0, Column::bytes);
        self.graphs.bytes() + edges + self.begins.bytes() + self.places.bytes()
    }

    pub(crate) fn write(&self, image: &mut ImageWriter) {
        self.graphs.write(image);
        image.word(u64::from(self.edges.is_some()));
        if let Some(edges) = &self.edges {
            edges.write(image);
        }
        self.begins.write(image);
        self.places.write(image);
    }

    /// That of a predicate of so many edges, in so many graphs at most.
    pub(crate) fn read(
        image: &mut ImageReader,
        edges: u64,
        graphs: usize,
    ) -> Result<Self, StoreError> {
        let mut index = Self {
            graphs: Numbers::read(image, graphs as u64)?,
            edges: match image.word()? {
                0 => None,
                _ => Some(Column::read(image)?),
            },
            begins: Column::read(image)?,
            places: Column::read(image)?,
            quads: 0,
        };
        match index.is_sound(edges) {
            true => {
                let counts = (0..index.len()).map(|entry| index.edges(entry));
                index.quads = counts.fold(0, u64::saturating_add);
                Ok(index)
            }
            false => Err(image.corrupt("the index of named graphs contradicts itself")),
        }
    }

    fn is_sound(&self, edges: u64) -> bool {
        let entries = self.len();
        let (begins, places) = (&self.begins, &self.places);
        let counted = self.edges.as_ref().map_or(entries, Column::len);
        counted == entries
            && begins.len() == entries + 1
            && begins.get(0) == 0
            && begins.get(entries) == places.len() as u64
            && (0..entries).all(|entry| begins.get(entry) <= begins.get(entry + 1))
            && (0..entries).all(|entry| {
                let part = begins.get(entry) as usize..begins.get(entry + 1) as usize;
                let count = self.edges(entry);
                part.len() as u64 <= count
                    && (1..=edges).contains(&count)
                    && rises_below(places, part, edges)
            })
    }
}

/// The part of all quads that the graph of one of them has, on average: 0 without any.
fn share_of(quads: &[u64]) -> f64 {
    let all: f64 = quads.iter().map(|quads| *quads as f64).sum();
    let squares: f64 = quads.iter().map(|quads| (*quads as f64).powi(2)).sum();
    if all > 0.0 {
        squares / (all * all)
    } else {
        0.0
    }
}

/// Graph -> predicates, and numbers of quads.
#[derive(Clone, Debug)]
pub(crate) struct ByGraph {
    /// Where each graph's predicates begin, and one more.
    offsets: Column,
    /// The predicates of all graphs, sorted within each.
    predicates: Column,
    /// Number of quads of each graph.
    quads: Column,
    /// Number of graphs that have quads.
    graphs: usize,
    /// See [`Self::share`].
    share: f64,
}

impl ByGraph {
    /// What the parts of all predicates say of so many graphs.
    ///
    /// Costs a step for each graph and each entry, and keeps one number for each entry.
    pub(crate) fn new(parts: &[Arc<PredicateGraphs>], graphs: usize) -> Self {
        let mut offsets = vec![0_u64; graphs + 1];
        let mut quads = vec![0_u64; graphs];
        for index in parts.iter().map(|part| &part.index) {
            for entry in 0..index.len() {
                let graph = index.graph(entry) as usize;
                offsets[graph + 1] += 1;
                quads[graph] = quads[graph].saturating_add(index.edges(entry));
            }
        }
        for graph in 0..graphs {
            offsets[graph + 1] += offsets[graph];
        }
        let entries = offsets[graphs] as usize;
        let mut predicates = ColumnBuilder::new(entries, 0, parts.len() as u64);
        let mut next = offsets.clone();
        for (predicate, part) in (0..).zip(parts) {
            for entry in 0..part.index.len() {
                let next = &mut next[part.index.graph(entry) as usize];
                predicates.set(*next as usize, predicate);
                *next += 1;
            }
        }
        Self {
            offsets: Column::from_values(&offsets),
            predicates: predicates.finish(),
            quads: Column::from_values(&quads),
            graphs: quads.iter().filter(|quads| **quads > 0).count(),
            share: share_of(&quads),
        }
    }

    /// The part of all quads that the graph of one of them has, on average.
    pub(crate) fn share(&self) -> f64 {
        self.share
    }

    /// The predicates of a graph, sorted.
    pub(crate) fn predicates(&self, graph: u32) -> impl Iterator<Item = PredicateId> + '_ {
        let graph = graph as usize;
        let range = self.offsets.get(graph) as usize..self.offsets.get(graph + 1) as usize;
        range.map(|index| PredicateId(self.predicates.get(index) as u32))
    }

    /// Number of quads of a graph.
    #[inline]
    pub(crate) fn quads(&self, graph: u32) -> u64 {
        self.quads.get(graph as usize)
    }

    /// Number of quads of all graphs.
    pub(crate) fn all_quads(&self) -> u64 {
        let quads = (0..self.quads.len()).map(|graph| self.quads.get(graph));
        quads.fold(0, u64::saturating_add)
    }

    /// Number of graphs that have quads.
    pub(crate) fn graphs(&self) -> usize {
        self.graphs
    }

    pub(crate) fn bytes(&self) -> usize {
        self.offsets.bytes() + self.predicates.bytes() + self.quads.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_found_at_its_place_and_no_other() {
        for step in [1, 2, 3, 7] {
            // Some neighbours, then gaps.
            let listed: Vec<u64> = (5..20).chain((0..40).map(|i| 20 + i * step)).collect();
            let numbers = Numbers::new(&listed);
            assert_eq!(numbers.bytes() == 0, step == 1);
            assert_eq!(numbers.len(), listed.len());
            for number in 0..400 {
                let expected = listed.binary_search(&number).ok();
                assert_eq!(numbers.place(number), expected, "{number} of {listed:?}");
                assert!(expected.is_none_or(|place| numbers.get(place) == number));
            }
        }
        for few in [&[][..], &[3], &[0, 1000]] {
            let numbers = Numbers::new(few);
            let found = (0..2000).filter(|number| numbers.place(*number).is_some());
            assert_eq!(found.collect::<Vec<_>>(), few);
        }
    }
}
