//! An instant of a query whose solutions are kept: what is new, what has gone, and what follows?

use std::collections::hash_map::Entry;
use std::mem;

use jindou_exec::{Catalogue, GraphSource};
use jindou_model::{Direction, GraphRef, Lists, PredicateId, TermId};
use jindou_plan::{Incremental, Position, Prepared, Statistics, WindowPattern};
use jindou_store::window::{Bounds, RingSnapshot};
use jindou_stream::WindowedGraph;
use oxrdf::NamedNode;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::continuous::Continuous;
use super::interruption::Interruption;
use super::plans::{IncrementalPlans, NotKept, ReadVersions};
use super::solutions::Solutions;
use crate::graph::StoredGraph;
use crate::request_memory::RequestMemory;
use crate::{EngineError, QueryResults};

/// So often in a row the stored part may change before solutions are not kept for a while.
const MOST_CHANGES: u32 = 3;
/// For so many instants.
const INSTANTS_WITHOUT: u32 = 64;

/// The solutions of a query's core, and what they were made of.
pub(super) struct Kept {
    pub(super) solutions: Solutions,
    /// The end of each window at the last instant whose solutions are all there.
    until_ms: Box<[i64]>,
    /// The instant at which all of them were found.
    found_at_ms: i64,
    versions: ReadVersions,
    forgotten: u64,
    /// By pattern, how many triples were asked for at the last instant.
    asked: Vec<usize>,
    memory: RequestMemory,
    /// Bytes of `memory` that are taken.
    reserved: u64,
}

/// How a query fares with solutions that are kept.
#[derive(Default)]
pub(super) struct Keeping {
    pub(super) kept: Option<Kept>,
    /// How many instants in a row found the stored part changed.
    changes: u32,
    /// For so many instants nothing is kept.
    without: u32,
    /// They took too much memory once.
    is_too_large: bool,
}

/// What is asked at an instant.
pub(super) struct At<'a> {
    pub(super) graph: &'a StoredGraph,
    /// With the windows of new tuples behind the others.
    pub(super) windowed: &'a WindowedGraph,
    pub(super) windows: &'a [(RingSnapshot, Bounds)],
    pub(super) instant_ms: i64,
    pub(super) forgotten: u64,
    pub(super) interruption: Option<&'a Interruption>,
}

impl At<'_> {
    /// # Errors
    /// [`EngineError::Timeout`] where a test has the attempt interrupted.
    pub(super) fn go_on(&self) -> Result<(), EngineError> {
        self.interruption.map_or(Ok(()), Interruption::go_on)
    }
}

/// True if a window may have tuples of a predicate, or of any.
pub(super) fn has_tuples(
    graph: &StoredGraph,
    windowed: &WindowedGraph,
    window: u16,
    predicate: Option<&NamedNode>,
) -> bool {
    let window = windowed.window(window);
    match predicate {
        None => !window.is_empty(),
        Some(iri) => {
            let predicate = Statistics::predicate(graph, iri.as_str());
            predicate.is_some_and(|predicate| window.edges(predicate) != Some(0))
        }
    }
}

/// Executes a plan of the core.
pub(super) type Execute<'a> =
    dyn FnMut(&Prepared<'static>) -> Result<QueryResults, EngineError> + 'a;

impl Keeping {
    /// Why nothing is kept for now, if that is so; counts instants.
    pub(super) fn ruled_out(&mut self) -> Option<NotKept> {
        if self.is_too_large {
            return Some(NotKept::Memory);
        }
        self.without = self.without.checked_sub(1)?;
        Some(NotKept::Changes)
    }

    /// How many rows are given to what is above the core.
    pub(super) fn given(&self) -> u64 {
        let kept = self.kept.as_ref();
        kept.map_or(0, |kept| kept.solutions.given().rows as u64)
    }

    /// The new tuples of each window; where nothing is kept, those of a step, as there will be.
    pub(super) fn new_tuples(
        &self,
        query: &Continuous,
        windows: &[(RingSnapshot, Bounds)],
    ) -> Vec<(RingSnapshot, Bounds)> {
        let bounds = |(window, (snapshot, bounds)): (usize, &(RingSnapshot, Bounds))| {
            let before = self.kept.as_ref().map(|kept| kept.until_ms[window]);
            let step_ms = query.schedule.time_window(window).step_ms;
            let before = before.unwrap_or_else(|| bounds.until_ms.saturating_sub_unsigned(step_ms));
            let from_ms = before.max(bounds.from_ms);
            (snapshot.clone(), Bounds { from_ms, ..*bounds })
        };
        windows.iter().enumerate().map(bounds).collect()
    }

    /// True if solutions were kept before an instant to which they were brought.
    pub(super) fn had_before(&self, instant_ms: i64) -> bool {
        let kept = self.kept.as_ref();
        kept.is_some_and(|kept| kept.found_at_ms != instant_ms)
    }

    /// Brings the solutions to an instant; false if they are not kept any more.
    ///
    /// An attempt that ends with an error, as when its time is over, leaves what was kept, with what it had found:
    /// whoever tries again goes on from there.
    ///
    /// # Errors
    /// Those of the executions.
    pub(super) fn advance(
        &mut self,
        query: &Continuous,
        plans: &IncrementalPlans,
        at: &At<'_>,
        memory: &dyn Fn() -> (RequestMemory, u64),
        execute: &mut Execute<'_>,
    ) -> Result<bool, EngineError> {
        let Ok(incremental) = query.incremental() else {
            return Ok(false);
        };
        let versions = ReadVersions::of(incremental, at.graph);
        let before = self.kept.take();
        let was_kept = before.is_some();
        let before =
            before.filter(|kept| (&kept.versions, kept.forgotten) == (&versions, at.forgotten));
        self.changes = match (was_kept, &before) {
            (_, Some(_)) => 0,
            (true, None) => self.changes + 1,
            // An attempt before this one may have found that.
            (false, None) => self.changes,
        };
        if self.changes > MOST_CHANGES {
            self.changes = 0;
            self.without = INSTANTS_WITHOUT;
            return Ok(false);
        }
        let (mut insertion, most_bytes) = {
            let (memory, most_bytes) = memory();
            let kept = before.unwrap_or_else(|| Kept::new(incremental, at, versions, memory));
            (Insertion::new(query, incremental, at, kept), most_bytes)
        };
        let brought = insertion.bring(plans, execute, most_bytes);
        let is_first = insertion.kept.until_ms.is_empty();
        let (mut kept, asked) = insertion.end();
        match brought {
            Ok(true) => {}
            Ok(false) => {
                self.is_too_large = true;
                return Ok(false);
            }
            Err(error) => {
                // What is missing of the first instant is not known.
                self.kept = (!is_first).then_some(kept);
                return Err(error);
            }
        }
        if is_first {
            kept.found_at_ms = at.instant_ms;
        }
        kept.asked = asked;
        kept.until_ms = at
            .windows
            .iter()
            .map(|(_, bounds)| bounds.until_ms)
            .collect();
        self.kept = Some(kept);
        Ok(true)
    }
}

impl Kept {
    fn new(
        incremental: &Incremental,
        at: &At<'_>,
        versions: ReadVersions,
        memory: RequestMemory,
    ) -> Self {
        Self {
            solutions: Solutions::new(incremental.columns(), incremental.counted()),
            until_ms: Box::default(),
            found_at_ms: at.instant_ms,
            versions,
            forgotten: at.forgotten,
            asked: Vec::new(),
            memory,
            reserved: 0,
        }
    }

    /// True if what they take may be taken, and so many bytes beside.
    fn fits(&mut self, beside: usize, most_bytes: u64) -> bool {
        let bytes = (self.solutions.bytes() + beside) as u64;
        if bytes > most_bytes {
            return false;
        }
        let more = bytes.saturating_sub(self.reserved);
        self.reserved += more;
        more == 0 || self.memory.try_reserve(more)
    }
}

/// Inserts solutions, each until it expires.
struct Insertion<'a> {
    columns: usize,
    kept: Kept,
    ends: Ends<'a>,
}

/// When do solutions expire?
struct Ends<'a> {
    query: &'a Continuous,
    incremental: &'a Incremental,
    at: &'a At<'a>,
    /// Known once there is a solution: it has all constants.
    patterns: Option<Vec<Resolved>>,
    /// By pattern, about how many triples will be asked for.
    expected: Vec<usize>,
}

/// A pattern with ids for terms.
struct Resolved {
    triple: [ResolvedPosition; 3],
    /// Sorted.
    stored: Vec<TermId>,
    /// When triples that were asked for expire: many solutions have the same.
    known: FxHashMap<(TermId, TermId, TermId), i64>,
}

#[derive(Clone, Copy)]
enum ResolvedPosition {
    Column(usize),
    Id(TermId),
}

impl<'a> Insertion<'a> {
    fn new(
        query: &'a Continuous,
        incremental: &'a Incremental,
        at: &'a At<'a>,
        mut kept: Kept,
    ) -> Self {
        kept.solutions.begin_round();
        Self {
            columns: incremental.columns(),
            ends: Ends {
                query,
                incremental,
                at,
                patterns: None,
                expected: mem::take(&mut kept.asked),
            },
            kept,
        }
    }

    /// Brings the solutions to the instant; false if they take more than they may. Whatever is inserted before
    /// an error is a solution until it expires, whether all others are found then or not.
    fn bring(
        &mut self,
        plans: &IncrementalPlans,
        execute: &mut Execute<'_>,
        most_bytes: u64,
    ) -> Result<bool, EngineError> {
        let Ends {
            query,
            incremental,
            at,
            ..
        } = self.ends;
        self.kept.solutions.expire(at.instant_ms);
        let deltas = incremental.deltas().zip(&plans.deltas);
        let deltas = deltas.filter(|((window, predicate), _)| {
            let new = query.streams.len() as u16 + window;
            has_tuples(at.graph, at.windowed, new, *predicate)
        });
        let deltas = deltas.map(|(_, plan)| plan);
        let plans: Vec<&Prepared<'static>> = match self.kept.until_ms.is_empty() {
            true => vec![&plans.full],
            false => deltas.collect(),
        };
        for plan in plans {
            at.go_on()?;
            if !self.all_of(execute(plan)?, most_bytes)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What is kept, and by pattern how many triples were asked for.
    fn end(self) -> (Kept, Vec<usize>) {
        let mut kept = self.kept;
        let asked = self.ends.asked();
        // For the next attempt, if there is one.
        kept.asked = self.ends.expected;
        (kept, asked)
    }

    /// Inserts all solutions of the core that there are; false if they take more than they may.
    fn all_of(&mut self, results: QueryResults, most_bytes: u64) -> Result<bool, EngineError> {
        let QueryResults::Solutions(mut solutions) = results else {
            unreachable!("plans of the core select its columns");
        };
        let mut row = vec![TermId::NONE; self.columns];
        while let Some(batch) = solutions.next_batch()? {
            for number in 0..batch.rows() {
                self.ends.at.go_on()?;
                for (value, column) in row.iter_mut().zip(batch.columns()) {
                    *value = column[number];
                }
                let ends = &mut self.ends;
                self.kept.solutions.insert(&row, || ends.expires_at(&row))?;
            }
            if !self.kept.fits(self.ends.bytes(), most_bytes) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Ends<'_> {
    /// By pattern, how many triples were asked for.
    fn asked(&self) -> Vec<usize> {
        let patterns = self.patterns.iter().flatten();
        patterns.map(|one| one.known.len()).collect()
    }

    /// About the bytes that it takes.
    fn bytes(&self) -> usize {
        let known = self.patterns.iter().flatten().map(|one| one.known.len());
        known.sum::<usize>() * 2 * size_of::<((TermId, TermId, TermId), i64)>()
    }

    /// The first instant at which a solution is not there any more: when the first of its triples has
    /// left all windows that it is in.
    fn expires_at(&mut self, row: &[TermId]) -> Result<i64, EngineError> {
        let (query, at, incremental) = (self.query, self.at, self.incremental);
        let patterns = self
            .patterns
            .get_or_insert_with(|| resolved(incremental, at.graph, &self.expected));
        let mut expires_at = i64::MAX;
        for (pattern, resolved) in incremental.patterns().iter().zip(patterns) {
            let [subject, predicate, object] = resolved.triple.map(|position| match position {
                ResolvedPosition::Column(column) => row[column],
                ResolvedPosition::Id(id) => id,
            });
            let ends = match resolved.known.entry((subject, predicate, object)) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    let predicate = Catalogue::predicate(at.graph, predicate);
                    let predicate = predicate.expect("a triple has a predicate");
                    let triple = (subject, predicate, object);
                    *new.insert(match is_stored(at.graph, &resolved.stored, triple)? {
                        true => i64::MAX,
                        false => leaves_at(query, at.windowed, pattern, triple),
                    })
                }
            };
            expires_at = expires_at.min(ends);
        }
        Ok(expires_at)
    }
}

/// The first instant at which the last window of a pattern that has a triple has lost it.
fn leaves_at(
    query: &Continuous,
    windowed: &WindowedGraph,
    pattern: &WindowPattern,
    (subject, predicate, object): (TermId, PredicateId, TermId),
) -> i64 {
    let leaves = pattern.windows.iter().filter_map(|number| {
        let time_ms = windowed
            .window(*number)
            .time_of(subject, predicate, object)?;
        let window = query.schedule.time_window(usize::from(*number));
        Some(window.leaves_at(time_ms))
    });
    leaves.max().expect("a solution has its triples")
}

fn is_stored(
    graph: &StoredGraph,
    graphs: &[TermId],
    (subject, predicate, object): (TermId, PredicateId, TermId),
) -> Result<bool, EngineError> {
    let graphs = match graphs {
        [] => return Ok(false),
        [only] => GraphRef::One(*only),
        several => GraphRef::Some(several),
    };
    let list = Lists {
        predicate,
        direction: Direction::Out,
        keys: &[subject],
    };
    let mut rows = Vec::new();
    let found = GraphSource::contains(graph, graphs, &list, &[object], &mut rows);
    found.expect("the graph of this process is there");
    Ok(!rows.is_empty())
}

fn resolved(incremental: &Incremental, graph: &StoredGraph, expected: &[usize]) -> Vec<Resolved> {
    let position = |position: &Position| match position {
        Position::Column(column) => ResolvedPosition::Column(*column),
        Position::Constant(term) => {
            let id = Statistics::term(graph, term.as_ref());
            ResolvedPosition::Id(id.expect("a solution has all constants"))
        }
    };
    let pattern = |(number, pattern): (usize, &WindowPattern)| {
        let expected = expected.get(number).copied().unwrap_or_default();
        let triple = [0, 1, 2].map(|place| position(&pattern.triple[place]));
        Resolved {
            stored: stored_graphs(pattern, triple[1], graph),
            triple,
            known: FxHashMap::with_capacity_and_hasher(expected, FxBuildHasher),
        }
    };
    let patterns = incremental.patterns().iter().enumerate();
    patterns.map(pattern).collect()
}

/// The stored graphs that may have the triple of a pattern, sorted.
fn stored_graphs(
    pattern: &WindowPattern,
    predicate: ResolvedPosition,
    graph: &StoredGraph,
) -> Vec<TermId> {
    let stored = pattern.stored.iter();
    let stored = stored.filter_map(|iri| Statistics::term(graph, iri.as_ref().into()));
    let may_have = |one: &TermId| match predicate {
        ResolvedPosition::Column(_) => true,
        ResolvedPosition::Id(predicate) => {
            let predicate = Catalogue::predicate(graph, predicate);
            let edges =
                predicate.map(|one_of| Catalogue::edges(graph, GraphRef::One(*one), one_of));
            edges != Some(Some(0))
        }
    };
    let mut stored: Vec<TermId> = stored.filter(may_have).collect();
    stored.sort_unstable();
    stored
}
