//! The index vertices of named graphs: which predicates has this graph, how many edges of each, and
//! which of them are not about vertices that are at home in it?
//!
//! With the vertices at home in it that is all of a graph, so that reading one, or what it has of
//! one predicate, costs just that, whatever other graphs say of the same subjects.

use std::ops::Range;

use jindou_model::PredicateId;

use crate::StoreError;
use crate::column::Column;
use crate::image::{ImageReader, ImageWriter};

/// What one graph has of one predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) graph: u32,
    pub(crate) predicate: u32,
    /// All edges of it.
    pub(crate) edges: u64,
    /// Those whose places are listed.
    pub(crate) listed: u64,
}

/// Graph -> predicates -> places of edges.
#[derive(Clone, Debug)]
pub(crate) struct GraphIndex {
    /// Where each graph's entries begin, and one more.
    offsets: Column,
    /// Number of quads of each graph.
    quads: Column,
    /// Predicate and number of edges of each entry.
    predicates: Column,
    edges: Column,
    /// Where each entry's places begin, and one more.
    begins: Column,
    /// Places among the edges of the predicate, sorted.
    places: Column,
}

impl GraphIndex {
    /// The index of `entries`, sorted, of `graphs` graphs; `places` are those of all entries.
    pub(crate) fn new(entries: &[Entry], graphs: usize, places: &[u64]) -> Self {
        let mut offsets = vec![0_u64; graphs + 1];
        let mut quads = vec![0_u64; graphs];
        let mut begins = vec![0_u64];
        let mut sum = 0;
        for entry in entries {
            offsets[entry.graph as usize + 1] += 1;
            quads[entry.graph as usize] += entry.edges;
            sum += entry.listed;
            begins.push(sum);
        }
        for graph in 0..graphs {
            offsets[graph + 1] += offsets[graph];
        }
        let column = |value: fn(&Entry) -> u64| {
            Column::from_values(&entries.iter().map(value).collect::<Vec<_>>())
        };
        Self {
            offsets: Column::from_values(&offsets),
            quads: Column::from_values(&quads),
            predicates: column(|entry| entry.predicate.into()),
            edges: column(|entry| entry.edges),
            begins: Column::from_values(&begins),
            places: Column::from_values(places),
        }
    }

    /// The entries of a graph, one a predicate, sorted.
    pub(crate) fn entries(&self, graph: u32) -> Range<usize> {
        let graph = graph as usize;
        self.offsets.get(graph) as usize..self.offsets.get(graph + 1) as usize
    }

    /// Number of quads of a graph.
    pub(crate) fn quads(&self, graph: u32) -> u64 {
        self.quads.get(graph as usize)
    }

    /// The entry of a graph and a predicate.
    pub(crate) fn entry(&self, graph: u32, predicate: PredicateId) -> Option<usize> {
        let entries = self.entries(graph);
        let narrow = u64::from(predicate.0).checked_sub(self.predicates.base())?;
        let items = self.predicates.narrow().slice(entries.clone());
        let place = items.seek(0, narrow);
        (place < items.len() && items.get(place) == narrow).then_some(entries.start + place)
    }

    /// The predicate of an entry.
    pub(crate) fn predicate(&self, entry: usize) -> PredicateId {
        PredicateId(self.predicates.get(entry) as u32)
    }

    /// The number of edges of an entry.
    pub(crate) fn edges(&self, entry: usize) -> u64 {
        self.edges.get(entry)
    }

    /// The listed places of an entry.
    pub(crate) fn listed(&self, entry: usize) -> impl ExactSizeIterator<Item = usize> + '_ {
        let range = self.begins.get(entry) as usize..self.begins.get(entry + 1) as usize;
        range.map(|index| self.places.get(index) as usize)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.offsets.bytes()
            + self.quads.bytes()
            + self.predicates.bytes()
            + self.edges.bytes()
            + self.begins.bytes()
            + self.places.bytes()
    }

    pub(crate) fn write(&self, image: &mut ImageWriter) {
        self.offsets.write(image);
        self.quads.write(image);
        self.predicates.write(image);
        self.edges.write(image);
        self.begins.write(image);
        self.places.write(image);
    }

    pub(crate) fn read(image: &mut ImageReader, graphs: usize) -> Result<Self, StoreError> {
        let index = Self {
            offsets: Column::read(image)?,
            quads: Column::read(image)?,
            predicates: Column::read(image)?,
            edges: Column::read(image)?,
            begins: Column::read(image)?,
            places: Column::read(image)?,
        };
        let entries = index.predicates.len();
        let rises = |column: &Column, end: usize| {
            let length = column.len();
            length > 0
                && column.get(0) == 0
                && column.get(length - 1) == end as u64
                && (1..length).all(|row| column.get(row - 1) <= column.get(row))
        };
        let is_whole = index.offsets.len() == graphs + 1
            && rises(&index.offsets, entries)
            && index.quads.len() == graphs
            && index.edges.len() == entries
            && index.begins.len() == entries + 1
            && rises(&index.begins, index.places.len());
        if !is_whole {
            return Err(image.corrupt("the index of named graphs contradicts itself"));
        }
        Ok(index)
    }
}
