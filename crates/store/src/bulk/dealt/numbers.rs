//! Which numbers have the strings of all nodes, and where do the strings go?
//!
//! Strings are numbered by run and bytes. Each node takes those of a *range* in that order, between strings of which
//! a sample says that about as many are in each range, and sorts them; how many are in the ranges before tells the
//! numbers. These go back to the owners, and each string to the node that holds the shard of its number.

use jindou_dictionary::{Interner, StringTable, TermTable};
use jindou_model::{NodeId, TermId};
use jindou_partition::ShardMap;
use rayon::prelude::*;

use super::failed::Failed;
use super::kinds;
use super::peers::{Outbox, Peers, Stream};
use super::strings::Strings;
use super::terms::Owned;
use super::wire::{push_number, push_string};
use crate::bulk::build::sort_by_bytes;
use crate::kind_column::{KeyKinds, KindColumn};
use crate::node_part::residues_of;
use crate::tables::TermTables;

/// Strings of the sample for each range, about.
const SAMPLES: u64 = 64;
/// Numbers have 32 bits while a store is loaded, of which the largest is free for marks.
const MOST: u64 = u32::MAX as u64;

/// The strings of one kind, numbered.
pub(super) struct Numbered {
    /// The numbers of those that this node owns, by own number.
    pub(super) of_own: Vec<u32>,
    /// What this node has of the dictionary.
    pub(super) tables: TermTables,
    /// Those of all.
    pub(super) kinds: KindColumn,
}

/// Where a range begins.
type Splitter = (u32, Box<[u8]>);

/// Numbers the strings that all nodes own, of which `run_of` tells the runs by own number, and whose texts are of these
/// kinds.
pub(super) fn give(
    peers: &Peers<'_>,
    map: &ShardMap,
    owned: &mut Owned,
    run_of: &dyn Fn(u32) -> u32,
    kinds: KeyKinds,
) -> Result<Numbered, Failed> {
    let own = std::mem::take(&mut owned.strings);
    let counts = counts_of_all(peers, own.len())?;
    let count: u64 = counts.iter().sum();
    if count > MOST {
        return Err(Failed::too_large(format!(
            "there are {count} distinct strings of a kind, and {MOST} at most"
        )));
    }
    let splitters = splitters(peers, &own, run_of, count)?;
    let mut ranges = Ranges {
        own: &own,
        run_of,
        splitters,
        range_of: Vec::with_capacity(own.len()),
        strings: Strings::default(),
        runs: Vec::new(),
        sent_by: vec![Vec::new(); peers.nodes],
    };
    peers.in_steps(1, &mut ranges)?;
    let Ranges {
        range_of,
        strings,
        runs,
        sent_by,
        ..
    } = ranges;
    let hashes: Vec<u64> = (0..own.len() as u32)
        .map(|number| own.hash_of(number))
        .collect();
    drop(own);

    let order = sorted(&strings, &runs);
    drop(runs);
    let in_ranges = counts_of_all(peers, strings.len())?;
    if in_ranges.iter().sum::<u64>() != count {
        return Err(Failed::malformed());
    }
    let first: u64 = in_ranges.iter().take(peers.here).sum();
    let of_own = {
        let mut number_of = vec![0; order.len()];
        for (number, string) in (first as u32..).zip(&order) {
            number_of[*string as usize] = number;
        }
        let counts = sent_by.iter().map(Vec::len).collect();
        let number = |node: usize, place: usize| number_of[sent_by[node][place] as usize];
        let mut expected = vec![0; peers.nodes];
        for range in &range_of {
            expected[usize::from(*range)] += 1;
        }
        let said = peers.numbers(counts, &number, (&expected, count))?;
        by_range(&range_of, &said)
    };
    drop((sent_by, range_of));
    let keys = order.iter().map(|string| strings.get(*string as usize));
    let kinds = kinds::share(peers, kinds, keys)?;
    // Each string of all is of a kind.
    if kinds.len() != count {
        return Err(Failed::malformed());
    }
    let mut dealing = Dealing {
        map,
        strings: &strings,
        order: &order,
        first,
        sent: 0,
        got: (0..peers.nodes).map(|_| Strings::default()).collect(),
    };
    peers.in_steps(1, &mut dealing)?;
    let got = dealing.got;
    drop((strings, order));
    let hashes = hashes
        .into_iter()
        .zip(of_own.iter().copied().map(u64::from));
    let tables = tables(peers.here, map, &got, &hashes.collect::<Vec<_>>(), count)?;
    Ok(Numbered {
        of_own,
        tables,
        kinds,
    })
}

/// What each node has so many of, by node.
fn counts_of_all(peers: &Peers<'_>, own: usize) -> Result<Vec<u64>, Failed> {
    let mut counts = vec![0; peers.nodes];
    let mut write = |out: &mut Vec<u8>| {
        push_number(out, own as u64);
        true
    };
    peers.to_all(&mut write, &mut |node, reader| {
        counts[node] = reader.narrow()?.into();
        Ok(())
    })?;
    Ok(counts)
}

/// The strings with which the ranges but the first begin, sorted.
fn splitters(
    peers: &Peers<'_>,
    own: &Interner,
    run_of: &dyn Fn(u32) -> u32,
    count: u64,
) -> Result<Vec<Splitter>, Failed> {
    let nodes = peers.nodes as u64;
    let stride = (count / (SAMPLES * nodes)).max(1);
    let mut samples: Vec<Splitter> = Vec::new();
    let mut next = 0;
    let mut write = |out: &mut Vec<u8>| {
        if next < own.len() as u64 {
            let number = next as u32;
            push_number(out, run_of(number).into());
            push_string(out, own.get(number));
        }
        next += stride;
        next >= own.len() as u64
    };
    peers.to_all(&mut write, &mut |_, reader| {
        while !reader.is_empty() {
            samples.push((reader.narrow()?, reader.string()?.into()));
        }
        Ok(())
    })?;
    samples.par_sort_unstable();
    let at = |range: usize| samples.get(range * samples.len() / peers.nodes).cloned();
    Ok((1..peers.nodes).filter_map(at).collect())
}

/// Sends strings to the nodes that sort their ranges.
struct Ranges<'a> {
    own: &'a Interner,
    run_of: &'a dyn Fn(u32) -> u32,
    splitters: Vec<Splitter>,
    /// By own number, of those that were sent.
    range_of: Vec<u16>,
    /// Those of this node's range, with their runs, and the numbers here of those that each node has sent.
    strings: Strings,
    runs: Vec<u32>,
    sent_by: Vec<Vec<u32>>,
}

impl Stream for Ranges<'_> {
    fn fill(&mut self, _: u32, out: &mut Outbox) -> Result<bool, Failed> {
        for number in self.range_of.len()..self.own.len() {
            let number = number as u32;
            let (run, string) = ((self.run_of)(number), self.own.get(number));
            let is_before = |splitter: &Splitter| (splitter.0, &*splitter.1) <= (run, string);
            let range = self.splitters.partition_point(is_before);
            self.range_of.push(range as u16);
            let message = out.to(range);
            push_number(message, run.into());
            push_string(message, string);
            if out.is_full(range) {
                return Ok(self.range_of.len() == self.own.len());
            }
        }
        Ok(true)
    }

    fn take(&mut self, _: u32, from: usize, bytes: &[u8]) -> Result<(), Failed> {
        let first = self.strings.len() as u32;
        let runs = &mut self.runs;
        self.strings.add(bytes, |reader| {
            runs.push(reader.narrow()?);
            Ok(())
        })?;
        self.sent_by[from].extend(first..self.strings.len() as u32);
        Ok(())
    }
}

/// Strings by run and bytes.
fn sorted(strings: &Strings, runs: &[u32]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..strings.len() as u32).collect();
    let run = |number: &u32| runs[*number as usize];
    order.par_sort_unstable_by_key(run);
    let of_runs: Vec<&mut [u32]> = order.chunk_by_mut(|a, b| run(a) == run(b)).collect();
    of_runs
        .into_par_iter()
        .for_each(|of_run| sort_by_bytes(of_run, |number| strings.get(number as usize)));
    order
}

/// What ranges say of strings, in the order of those of each range.
fn by_range(range_of: &[u16], said: &[Vec<u32>]) -> Vec<u32> {
    let mut said: Vec<_> = said.iter().map(|numbers| numbers.iter()).collect();
    let next = |range: &u16| {
        let number = said[usize::from(*range)].next();
        *number.expect("the range has all that was sent to it")
    };
    range_of.iter().map(next).collect()
}

/// Sends numbered strings to the nodes that hold their shards.
struct Dealing<'a> {
    map: &'a ShardMap,
    strings: &'a Strings,
    /// By number, from the first one on.
    order: &'a [u32],
    first: u64,
    sent: usize,
    /// By range.
    got: Vec<Strings>,
}

impl Stream for Dealing<'_> {
    fn fill(&mut self, _: u32, out: &mut Outbox) -> Result<bool, Failed> {
        for place in self.sent..self.order.len() {
            self.sent += 1;
            // Literals are dealt as vertices are.
            let id = TermId::vertex(self.first + place as u64);
            let node = self.map.node_of(id).0 as usize;
            let string = self.strings.get(self.order[place] as usize);
            push_string(out.to(node), string);
            if out.is_full(node) {
                return Ok(self.sent == self.order.len());
            }
        }
        Ok(true)
    }

    fn take(&mut self, _: u32, from: usize, bytes: &[u8]) -> Result<(), Failed> {
        self.got[from].add(bytes, |_| Ok(()))
    }
}

/// A node's part of the dictionary, of which there are so many strings: those of its shards by range, and the numbers
/// of those that it is asked for, by hash.
fn tables(
    here: usize,
    map: &ShardMap,
    strings: &[Strings],
    hashes: &[(u64, u64)],
    count: u64,
) -> Result<TermTables, Failed> {
    let residues = residues_of(map, NodeId(here as u32));
    let mut rows: Vec<(u32, u32)> = Vec::new();
    for (range, strings) in (0..).zip(strings) {
        rows.extend((0..strings.len() as u32).map(|number| (range, number)));
    }
    // Each went where its number says.
    if rows.len() as u64 != residues.count_below(count) {
        return Err(Failed::malformed());
    }
    let key = |row: usize| {
        let (range, number) = rows[row];
        strings[range as usize].get(number as usize)
    };
    let strings = StringTable::build_without_index(rows.len(), key)?;
    let table = TermTable::of_residues(residues, strings);
    Ok(TermTables::of_dealt(table, hashes, count)?)
}
