//! Runs of vertices: which numbers are in the order of their texts, and in which named graph are
//! these vertices at home?
//!
//! The bulk loader numbers vertices by characteristic set, within a set by *home graph*, the named
//! graph that has most of what is said of the vertex, and within both by text. So what one named
//! graph says is about a few ranges of ids, and an edge need not say in which graph it is where
//! that is the home of its subject.

use std::ops::Range;

use jindou_model::{IdRanges, TermId, TermKind};

use crate::StoreError;
use crate::image::{ImageReader, ImageWriter};

/// The home of those that have none.
pub(crate) const NO_HOME: u32 = u32::MAX;

/// Consecutive vertices of one characteristic set and one home.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs {
    /// First local id of each run, and one more.
    starts: Vec<u64>,
    /// Number of the home graph of each run.
    homes: Vec<u32>,
    /// The vertices at home in each graph.
    of_graph: Vec<IdRanges>,
}

impl Runs {
    /// Runs that begin with these local ids (and one more), at home in the graphs of these numbers,
    /// of which there are `graphs`.
    pub(crate) fn new(starts: Vec<u64>, homes: Vec<u32>, graphs: usize) -> Self {
        let mut of_graph = vec![IdRanges::new(); graphs];
        for (run, home) in homes
            .iter()
            .enumerate()
            .filter(|(_, home)| **home != NO_HOME)
        {
            let vertex = |local| TermId::vertex(local);
            of_graph[*home as usize].push(vertex(starts[run]), vertex(starts[run + 1]));
        }
        Self {
            starts,
            homes,
            of_graph,
        }
    }

    /// The run of a vertex.
    #[inline]
    pub(crate) fn run_of(&self, vertex: TermId) -> Option<usize> {
        if vertex.kind() != TermKind::Vertex {
            return None;
        }
        let local = vertex.number();
        let after = self.starts.partition_point(|start| *start <= local);
        (after > 0 && after < self.starts.len()).then(|| after - 1)
    }

    /// The local ids of a run.
    pub(crate) fn members(&self, run: usize) -> Range<u64> {
        self.starts[run]..self.starts[run + 1]
    }

    /// The number of the home of a run.
    #[inline]
    pub(crate) fn home_of(&self, run: usize) -> u32 {
        self.homes[run]
    }

    /// Number of runs.
    pub(crate) fn len(&self) -> usize {
        self.homes.len()
    }

    /// The vertices at home in the graph of a number.
    pub(crate) fn at_home(&self, graph: u32) -> &IdRanges {
        &self.of_graph[graph as usize]
    }

    pub(crate) fn bytes(&self) -> usize {
        let ranges = self.of_graph.iter();
        self.starts.len() * 8
            + self.homes.len() * 4
            + ranges
                .map(|ranges| size_of::<IdRanges>() + ranges.ranges().len() * 24)
                .sum::<usize>()
    }

    /// Are these the runs of all `vertices`?
    pub(crate) fn check(&self, vertices: u64) -> Result<(), &'static str> {
        let covers = match (self.starts.first(), self.starts.last()) {
            (Some(first), Some(last)) => *first == 0 && *last == vertices,
            _ => vertices == 0,
        };
        match covers && self.starts.is_sorted() {
            true => Ok(()),
            false => Err("the runs of vertices do not hold all of them"),
        }
    }

    pub(crate) fn write(&self, image: &mut ImageWriter) {
        image.words(&self.starts);
        let homes: Vec<u64> = self.homes.iter().map(|home| u64::from(*home)).collect();
        image.words(&homes);
    }

    pub(crate) fn read(image: &mut ImageReader, graphs: usize) -> Result<Self, StoreError> {
        let starts = image.words()?;
        let homes = image.words()?;
        let is_sound = |home: &u64| *home < graphs as u64 || *home == u64::from(NO_HOME);
        let counted = starts.len() == homes.len() + 1 || (starts.is_empty() && homes.is_empty());
        if !counted || !starts.is_sorted() || !homes.iter().all(is_sound) {
            return Err(image.corrupt("the runs of vertices contradict themselves"));
        }
        let homes = homes.into_iter().map(|home| home as u32).collect();
        Ok(Self::new(starts, homes, graphs))
    }
}
