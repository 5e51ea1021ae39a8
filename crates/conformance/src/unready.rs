//! A graph, and a dictionary, that are not ready half of the time, answer in small pieces, and may lose a shard.

use crate::random::Random;
use jindou_exec::{Catalogue, Catalogued, GraphSource, Keys, TermSource};
use jindou_model::{
    Cursor, Direction, GraphRef, IdEpoch, IdRanges, Lists, Membership, Pattern, Precision,
    PredicateId, ShardId, TermId, Unavailable, Visit,
};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::Mutex;

/// The shard that is lost.
pub const LOST: u32 = 5;
/// Entries of a piece, at most.
const MOST_AT_ONCE: usize = 3;

/// Stands before a graph, and answers by chance.
pub struct Unready {
    graph: Arc<dyn GraphSource>,
    state: Mutex<State>,
}

struct State {
    random: Random,
    /// Calls until a shard is lost, if it is to be.
    until_lost: Option<u64>,
    /// Calls of a hundred that are not answered.
    unanswered: usize,
}

impl Unready {
    /// Before a graph; the chances are those of a seed, and a shard is lost after `until_lost` calls.
    #[must_use]
    pub fn new(graph: Arc<dyn GraphSource>, seed: u64, until_lost: Option<u64>) -> Self {
        Self::with_chance(graph, seed, until_lost, 50)
    }

    /// As [`Unready::new`], where so many calls of a hundred are not answered.
    #[must_use]
    pub fn with_chance(
        graph: Arc<dyn GraphSource>,
        seed: u64,
        until_lost: Option<u64>,
        unanswered: usize,
    ) -> Self {
        Self {
            graph,
            state: Mutex::new(State {
                random: Random::new(seed),
                until_lost,
                unanswered,
            }),
        }
    }

    fn roll(&self) -> Result<usize, Unavailable> {
        roll(&self.state)
    }
}

/// Whether a call is answered; a number for its size.
fn roll(state: &Mutex<State>) -> Result<usize, Unavailable> {
    let mut state = state.lock().expect("nobody panics with it");
    if let Some(left) = &mut state.until_lost {
        match left.checked_sub(1) {
            None => return Err(Unavailable::Never(ShardId(LOST))),
            Some(less) => *left = less,
        }
    }
    let unanswered = state.unanswered;
    match state.random.chance(unanswered) {
        true => Err(Unavailable::NotNow),
        false => Ok(state.random.between(1, MOST_AT_ONCE)),
    }
}

/// Stands before a dictionary, and answers by chance. Of orders of its terms it knows nothing.
pub struct UnreadyTerms {
    terms: Arc<dyn TermSource>,
    state: Mutex<State>,
}

impl UnreadyTerms {
    /// Before a dictionary; as [`Unready::new`].
    #[must_use]
    pub fn new(terms: Arc<dyn TermSource>, seed: u64, until_lost: Option<u64>) -> Self {
        let (random, unanswered) = (Random::new(seed), 50);
        Self {
            terms,
            state: Mutex::new(State {
                random,
                until_lost,
                unanswered,
            }),
        }
    }
}

impl TermSource for UnreadyTerms {
    fn epoch(&self) -> IdEpoch {
        self.terms.epoch()
    }

    fn has(&self, id: TermId) -> bool {
        self.terms.has(id)
    }

    fn is_here(&self) -> bool {
        self.terms.is_here()
    }

    fn expect(&self, ids: &[TermId]) {
        self.terms.expect(ids);
    }

    fn expect_keys(&self, keys: &Keys) {
        self.terms.expect_keys(keys);
    }

    fn push_key(&self, id: TermId, key: &mut Vec<u8>) -> Result<(), Unavailable> {
        roll(&self.state)?;
        self.terms.push_key(id, key)
    }

    fn lookup(&self, key: &[u8], literal: bool) -> Result<Option<TermId>, Unavailable> {
        roll(&self.state)?;
        self.terms.lookup(key, literal)
    }

    fn push_keys(
        &self,
        ids: &[TermId],
        most_bytes: usize,
        keys: &mut Keys,
    ) -> Result<usize, Unavailable> {
        let some = roll(&self.state)?.min(ids.len());
        self.terms.push_keys(&ids[..some], most_bytes, keys)
    }

    fn lookup_keys(&self, keys: &Keys, ids: &mut Vec<Option<TermId>>) -> Result<(), Unavailable> {
        roll(&self.state)?;
        self.terms.lookup_keys(keys, ids)
    }
}

impl Catalogued for Unready {
    fn catalogue(&self) -> &dyn Catalogue {
        &*self.graph
    }
}

impl GraphSource for Unready {
    fn members(
        &self,
        graph: GraphRef<'_>,
        memberships: &[Membership],
        precision: Precision,
        within: Option<&IdRanges>,
    ) -> Result<Option<IdRanges>, Unavailable> {
        self.roll()?;
        self.graph.members(graph, memberships, precision, within)
    }

    fn expand(
        &self,
        graph: GraphRef<'_>,
        lists: &[Lists<'_>],
        cursor: &mut Cursor,
        allowed: Option<&IdRanges>,
        budget: usize,
        rows: &mut Vec<u32>,
        out: &mut Vec<TermId>,
    ) -> Result<(), Unavailable> {
        // Some pieces, until it is not ready any more.
        while cursor.key < lists[0].keys.len() && out.len() < budget {
            let piece = budget.min(out.len() + self.roll()?);
            self.graph
                .expand(graph, lists, cursor, allowed, piece, rows, out)?;
            if lists[0].keys.len() == 1 {
                break;
            }
        }
        Ok(())
    }

    fn places(&self, graph: GraphRef<'_>, list: &Lists<'_>) -> Result<u64, Unavailable> {
        self.roll()?;
        self.graph.places(graph, list)
    }

    fn contains(
        &self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        to: &[TermId],
        rows: &mut Vec<u32>,
    ) -> Result<(), Unavailable> {
        self.roll()?;
        self.graph.contains(graph, list, to, rows)
    }

    fn degrees(
        &self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        allowed: Option<&IdRanges>,
        out: &mut Vec<u64>,
    ) -> Result<(), Unavailable> {
        self.roll()?;
        self.graph.degrees(graph, list, allowed, out)
    }

    fn graphs_of(
        &self,
        list: &Lists<'_>,
        to: &[TermId],
        rows: &mut Vec<u32>,
        graphs: &mut Vec<TermId>,
    ) -> Result<(), Unavailable> {
        self.roll()?;
        self.graph.graphs_of(list, to, rows, graphs)
    }

    fn for_each_of(
        &self,
        asked: (&[PredicateId], &mut usize),
        pattern: &Pattern,
        graph: Option<GraphRef<'_>>,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Unavailable> {
        self.roll()?;
        self.graph.for_each_of(asked, pattern, graph, visit)
    }

    fn predicates_at(
        &self,
        graph: GraphRef<'_>,
        key: TermId,
        direction: Direction,
        out: &mut Vec<PredicateId>,
    ) -> Result<(), Unavailable> {
        self.roll()?;
        self.graph.predicates_at(graph, key, direction, out)
    }

    fn for_each_match(
        &self,
        pattern: &Pattern,
        graph: GraphRef<'_>,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Unavailable> {
        self.roll()?;
        self.graph.for_each_match(pattern, graph, visit)
    }

    fn for_each_quad(
        &self,
        pattern: &Pattern,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Unavailable> {
        self.roll()?;
        self.graph.for_each_quad(pattern, visit)
    }
}
