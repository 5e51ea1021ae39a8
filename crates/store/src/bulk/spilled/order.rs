//! Which number has each vertex in the end?
//!
//! Ranks are in the order of texts, so counting is enough: within a set and a home, numbers follow
//! ranks.

use rustc_hash::FxHashMap;

use super::super::build::runs_of_counts;
use crate::runs::NO_HOME;

/// The numbers of vertices.
pub(super) struct Order {
    /// By rank.
    pub(super) numbers: Vec<u32>,
    /// Where each set begins, and one more.
    pub(super) starts: Vec<u64>,
    /// Where each run of one set and home begins, and one more; and the places of the homes.
    pub(super) runs: Vec<u64>,
    pub(super) homes: Vec<u32>,
}

/// Numbers vertices, whose sets are given by rank, and their homes where there are some.
pub(super) fn number(set_of: Vec<u32>, sets: usize, homes: &[u32]) -> Order {
    match homes.is_empty() {
        true => number_by_set(set_of, sets),
        false => number_by_home(set_of, sets, homes),
    }
}

fn number_by_set(mut set_of: Vec<u32>, sets: usize) -> Order {
    let starts = starts_of(&set_of, sets);
    let mut next = starts.clone();
    for slot in &mut set_of {
        let next = &mut next[*slot as usize];
        *slot = *next as u32;
        *next += 1;
    }
    Order {
        numbers: set_of,
        runs: starts.clone(),
        homes: vec![NO_HOME; sets],
        starts,
    }
}

fn number_by_home(mut set_of: Vec<u32>, sets: usize, homes: &[u32]) -> Order {
    let starts = starts_of(&set_of, sets);
    let mut counts: FxHashMap<(u32, u32), usize> = FxHashMap::default();
    for key in set_of.iter().copied().zip(homes.iter().copied()) {
        *counts.entry(key).or_default() += 1;
    }
    let mut counts: Vec<((u32, u32), usize)> = counts.into_iter().collect();
    counts.sort_unstable();
    let mut next: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    let (mut runs, mut run_homes) = (vec![0], Vec::new());
    let mut at = 0;
    for of_set in counts.chunk_by(|a, b| a.0.0 == b.0.0) {
        let set = of_set[0].0.0;
        for (length, home) in runs_of_counts(of_set.iter().map(|((_, home), n)| (*home, *n))) {
            next.insert((set, home), at as u32);
            at += length as u64;
            runs.push(at);
            run_homes.push(home);
        }
    }
    for (slot, home) in set_of.iter_mut().zip(homes) {
        let own = (*slot, *home);
        let key = match next.contains_key(&own) {
            true => own,
            false => (*slot, NO_HOME),
        };
        let next = next.get_mut(&key).expect("the others of a set have a run");
        *slot = *next;
        *next += 1;
    }
    Order {
        numbers: set_of,
        starts,
        runs,
        homes: run_homes,
    }
}

/// Where each set begins, and one more.
fn starts_of(set_of: &[u32], sets: usize) -> Vec<u64> {
    let mut starts = vec![0_u64; sets + 1];
    for set in set_of {
        starts[*set as usize + 1] += 1;
    }
    for set in 0..sets {
        starts[set + 1] += starts[set];
    }
    starts
}
