//! Where do the vertices of each set and home begin among those of all nodes?

use std::ops::Range;

use jindou_model::TermId;
use rayon::prelude::*;

use super::failed::Failed;
use super::names::Graphs;
use super::peers::{Outbox, Peers, Stream};
use super::terms::{Owned, Sent};
use super::wire::{Reader, numbers, push_number};
use crate::bulk::build::runs_of_counts;
use crate::bulk::sink::NamedEdges;
use crate::homes::majorities;
use crate::runs::NO_HOME;

/// Tells owners in which graph each quad about a vertex is.
struct Quads<'a, I> {
    quads: I,
    vertices: &'a Sent,
    graphs: &'a Graphs,
    owned: &'a Owned,
    got: Vec<(u32, u32)>,
}

impl<I: Iterator<Item = (u64, u64)>> Stream for Quads<'_, I> {
    fn fill(&mut self, _: u32, out: &mut Outbox) -> Result<bool, Failed> {
        for (subject, graph) in &mut self.quads {
            let [subject, graph] = [subject, graph].map(|raw| TermId::from_raw(raw).number());
            let rank = self.graphs.rank_of[graph as usize];
            let (owner, place) = self.vertices.at(subject as u32);
            let both = [place.to_le_bytes(), rank.to_le_bytes()];
            if out.put(owner, both.as_flattened()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn take(&mut self, _: u32, from: usize, bytes: &[u8]) -> Result<(), Failed> {
        let mut both = numbers(bytes);
        while let (Some(place), Some(rank)) = (both.next(), both.next()) {
            let number = self.owned.sent_by[from].get(place as usize);
            self.got
                .push((*number.ok_or_else(Failed::malformed)?, rank));
        }
        Ok(())
    }
}

/// The home of each vertex that this node owns, by rank.
pub(super) fn homes(
    peers: &Peers<'_>,
    named: &[NamedEdges],
    vertices: &Sent,
    graphs: &Graphs,
    owned: &Owned,
) -> Result<Vec<u32>, Failed> {
    if graphs.texts.is_empty() {
        return Ok(vec![NO_HOME; owned.strings.len()]);
    }
    let mut quads = Quads {
        quads: named.iter().flatten().map(|(s, _, g)| (*s, *g)),
        vertices,
        graphs,
        owned,
        got: Vec::new(),
    };
    peers.in_steps(1, &mut quads)?;
    let got = quads.got;
    let by_subject = || got.iter().map(|(vertex, graph)| (*vertex as usize, *graph));
    Ok(majorities(owned.strings.len(), by_subject))
}

/// The runs of all nodes' vertices, by set and home.
pub(super) struct AllRuns {
    /// First number of each run, and one more.
    pub(super) starts: Vec<u64>,
    /// By run, by rank.
    pub(super) homes: Vec<u32>,
    /// The first run of each set, and one more.
    first_of: Vec<usize>,
}

impl AllRuns {
    /// The run of the vertices of a set and home.
    fn run_of(&self, set: u32, home: u32) -> u32 {
        let runs: Range<usize> = self.first_of[set as usize]..self.first_of[set as usize + 1];
        let homes = &self.homes[runs.clone()];
        // Those whose home has no run are in that of those that have none, the last one.
        let place = homes.binary_search(&home).unwrap_or(homes.len() - 1);
        (runs.start + place) as u32
    }

    /// Where the numbers of each set begin, and one more.
    pub(super) fn starts_of_sets(&self) -> Vec<u64> {
        self.first_of.iter().map(|run| self.starts[*run]).collect()
    }
}

/// So many vertices of a set are at home in a graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Counted {
    set: u32,
    home: u32,
    count: u64,
}

impl Counted {
    fn push(self, out: &mut Vec<u8>) {
        push_number(out, self.set.into());
        push_number(out, self.home.into());
        push_number(out, self.count);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Failed> {
        Ok(Self {
            set: reader.narrow()?,
            home: reader.narrow()?,
            count: reader.number()?,
        })
    }
}

/// Sends counts to the nodes that decide of the runs of their sets.
struct Counts<I> {
    own: I,
    nodes: u32,
    got: Vec<Counted>,
}

impl<I: Iterator<Item = Counted>> Stream for Counts<I> {
    fn fill(&mut self, _: u32, out: &mut Outbox) -> Result<bool, Failed> {
        for counted in &mut self.own {
            let node = (counted.set % self.nodes) as usize;
            counted.push(out.to(node));
            if out.is_full(node) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn take(&mut self, _: u32, _: usize, bytes: &[u8]) -> Result<(), Failed> {
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            self.got.push(Counted::read(&mut reader)?);
        }
        Ok(())
    }
}

/// The runs of `sets` sets, and that of each vertex of which this node knows set and home.
pub(super) fn find(
    peers: &Peers<'_>,
    sets: usize,
    set_of: &[u32],
    homes: &[u32],
) -> Result<(AllRuns, Vec<u32>), Failed> {
    let both = set_of.par_iter().zip(homes);
    let mut both: Vec<(u32, u32)> = both.map(|(set, home)| (*set, *home)).collect();
    both.par_sort_unstable();
    let counted = |equal: &[(u32, u32)]| Counted {
        set: equal[0].0,
        home: equal[0].1,
        count: equal.len() as u64,
    };
    let mut counts = Counts {
        own: both.chunk_by(|a, b| a == b).map(counted),
        nodes: peers.nodes as u32,
        got: Vec::new(),
    };
    peers.in_steps(1, &mut counts)?;
    let mut decided = decide(counts.got).into_iter();
    let mut all = Vec::new();
    let mut write = |out: &mut Vec<u8>| match decided.next() {
        Some(run) => {
            run.push(out);
            false
        }
        None => true,
    };
    peers.to_all(&mut write, &mut |_, reader| {
        while !reader.is_empty() {
            all.push(Counted::read(reader)?);
        }
        Ok(())
    })?;
    all.sort_unstable();
    let runs = in_order(&all, sets)?;
    let of_own = set_of.par_iter().zip(homes);
    let of_own = of_own.map(|(set, home)| runs.run_of(*set, *home)).collect();
    Ok((runs, of_own))
}

/// The runs of the sets of which these are all counts.
fn decide(mut got: Vec<Counted>) -> Vec<Counted> {
    got.sort_unstable();
    let mut runs = Vec::new();
    for of_set in got.chunk_by(|a, b| a.set == b.set) {
        let homes = of_set.chunk_by(|a, b| a.home == b.home);
        let count = |of_home: &[Counted]| {
            let counts = of_home.iter().map(|counted| counted.count as usize);
            (of_home[0].home, counts.sum())
        };
        let found = runs_of_counts(homes.map(count)).into_iter();
        runs.extend(found.map(|(count, home)| Counted {
            set: of_set[0].set,
            home,
            count: count as u64,
        }));
    }
    runs
}

/// The runs of so many sets, given sorted.
fn in_order(all: &[Counted], sets: usize) -> Result<AllRuns, Failed> {
    let mut runs = AllRuns {
        starts: vec![0],
        homes: Vec::new(),
        first_of: Vec::new(),
    };
    let mut end = 0;
    for (run, counted) in all.iter().enumerate() {
        if runs.first_of.len() == counted.set as usize {
            runs.first_of.push(run);
        }
        let next = counted.count.checked_add(end);
        end = next.ok_or_else(Failed::malformed)?;
        runs.starts.push(end);
        runs.homes.push(counted.home);
    }
    runs.first_of.push(all.len());
    let are_different = all.is_sorted_by(|a, b| (a.set, a.home) < (b.set, b.home));
    match are_different && runs.first_of.len() == sets + 1 {
        true => Ok(runs),
        false => Err(Failed::malformed()),
    }
}
