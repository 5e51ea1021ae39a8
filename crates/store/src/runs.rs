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

/// New vertices of one home that lie together have a run of their own if they are so many.
const LEAST_NEW_RUN: u64 = 8;

/// The home of those that have none.
pub(crate) const NO_HOME: u32 = u32::MAX;

/// Consecutive vertices of one home; those of the bulk load, which are of one characteristic set
/// too, alone are in the order of their texts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs {
    /// First local id of each run, and one more.
    starts: Vec<u64>,
    /// Number of the home graph of each run.
    homes: Vec<u32>,
    /// The vertices from 0 on whose runs are in the order of their texts.
    text_ordered: u64,
    /// The vertices at home in each graph.
    of_graph: Vec<IdRanges>,
}

impl Runs {
    /// Runs in the order of texts that begin with these local ids (and one more), at home in the
    /// graphs of these numbers, of which there are `graphs`.
    pub(crate) fn new(starts: Vec<u64>, homes: Vec<u32>, graphs: usize) -> Self {
        let text_ordered = starts.last().copied().unwrap_or(0);
        Self::with_text_ordered(starts, homes, graphs, text_ordered)
    }

    fn with_text_ordered(
        starts: Vec<u64>,
        homes: Vec<u32>,
        graphs: usize,
        text_ordered: u64,
    ) -> Self {
        let mut of_graph = vec![IdRanges::new(); graphs];
        for (run, home) in homes
            .iter()
            .enumerate()
            .filter(|(_, home)| **home != NO_HOME)
        {
            let [first, end] = [run, run + 1].map(|run| TermId::vertex(starts[run]));
            of_graph[*home as usize].push(first, end);
        }
        Self {
            starts,
            homes,
            text_ordered,
            of_graph,
        }
    }

    /// These runs, and behind them those of the vertices up to `vertices`, of which `home_of` tells
    /// the homes, in order; of the homes of all there are `graphs`. Neighbours of one home are a
    /// run; where they are few, it is one of vertices that have none.
    ///
    /// Costs a copy of the runs and a call for each new vertex.
    pub(crate) fn extended(
        &self,
        vertices: u64,
        home_of: &mut dyn FnMut(u64) -> u32,
        graphs: usize,
    ) -> Self {
        let mut runs = self.clone();
        runs.of_graph.resize(graphs, IdRanges::new());
        if runs.starts.is_empty() {
            runs.starts.push(0);
        }
        let first = *runs.starts.last().expect("it has one now");
        let mut stretch = (first, NO_HOME);
        for vertex in first..vertices {
            let home = home_of(vertex);
            if home != stretch.1 {
                runs.append(vertex, stretch, self.len());
                stretch = (vertex, home);
            }
        }
        runs.append(vertices, stretch, self.len());
        runs
    }

    /// Appends the run of neighbours from a vertex on that end with `end`, or makes the last run
    /// longer, if neither has a home and it is not among the `old` ones.
    fn append(&mut self, end: u64, (begin, home): (u64, u32), old: usize) {
        if begin >= end {
            return;
        }
        let is_long = end - begin >= LEAST_NEW_RUN;
        let home = if is_long { home } else { NO_HOME };
        if home == NO_HOME && self.len() > old && self.homes.last() == Some(&NO_HOME) {
            *self.starts.last_mut().expect("a run has an end") = end;
            return;
        }
        if home != NO_HOME {
            let at_home = &mut self.of_graph[home as usize];
            at_home.push(TermId::vertex(begin), TermId::vertex(end));
        }
        self.starts.push(end);
        self.homes.push(home);
    }

    /// The vertices from 0 on whose runs are in the order of their texts.
    #[inline]
    pub(crate) fn text_ordered(&self) -> u64 {
        self.text_ordered
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

    /// How many graphs there are of which it knows the vertices at home.
    pub(crate) fn graphs(&self) -> usize {
        self.of_graph.len()
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
        image.word(self.text_ordered);
    }

    pub(crate) fn read(image: &mut ImageReader, graphs: usize) -> Result<Self, StoreError> {
        let starts = image.words()?;
        let homes = image.words()?;
        let text_ordered = image.word()?;
        let is_sound = |home: &u64| *home < graphs as u64 || *home == u64::from(NO_HOME);
        let counted = starts.len() == homes.len() + 1 || (starts.is_empty() && homes.is_empty());
        // The order of texts ends with a run.
        let has_end = text_ordered == 0 || starts.binary_search(&text_ordered).is_ok();
        if !counted || !has_end || !starts.is_sorted() || !homes.iter().all(is_sound) {
            return Err(image.corrupt("the runs of vertices contradict themselves"));
        }
        let homes = homes.into_iter().map(|home| home as u32).collect();
        Ok(Self::with_text_ordered(starts, homes, graphs, text_ordered))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(runs: &Runs) -> Vec<(u64, u64, u32)> {
        let run = |run| {
            let members = runs.members(run);
            (members.start, members.end, runs.home_of(run))
        };
        (0..runs.len()).map(run).collect()
    }

    #[test]
    fn runs_of_new_vertices_follow_those_that_are_there() {
        let before = Runs::new(vec![0, 5, 20], vec![0, NO_HOME], 1);
        let homes = |vertex: u64| match vertex {
            20..22 => NO_HOME,
            22..29 => 1,
            29..37 => 0,
            37..50 => 1,
            50..53 => 0,
            _ => NO_HOME,
        };
        let runs = before.extended(60, &mut |vertex| homes(vertex), 3);
        let expected = [
            (0, 5, 0),
            (5, 20, NO_HOME),
            (20, 29, NO_HOME),
            (29, 37, 0),
            (37, 50, 1),
            (50, 60, NO_HOME),
        ];
        assert_eq!(list(&runs), expected);
        assert_eq!((runs.text_ordered(), runs.graphs()), (20, 3));
        assert_eq!(runs.check(60), Ok(()));
        assert_eq!(
            [0, 1, 2].map(|graph| runs.at_home(graph).len()),
            [13, 13, 0]
        );
        let same = runs.extended(60, &mut |_| unreachable!("no vertex is new"), 3);
        assert_eq!(list(&same), expected);
        let first = Runs::default().extended(9, &mut |_| 2, 3);
        assert_eq!(list(&first), [(0, 9, 2)]);
        assert_eq!(first.text_ordered(), 0);
    }
}
