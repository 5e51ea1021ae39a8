//! Many queries that differ in constants only: how are they evaluated once for all?
//!
//! Those of one [`Shape`] that are due at one instant, with windows that hold the same, are one
//! execution, which begins with a row of constants for each of them. What it finds says whose it is. All
//! else is as if each had been evaluated by itself, and where anything is not so (one is behind, or
//! takes long, or fails) that is done.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

use jindou_exec::{GraphSource, MaterializedRows};
use jindou_model::TermId;
use jindou_plan::{Prepared, SharedQuery, Statistics};
use jindou_store::window::{Bounds, RingSnapshot};
use jindou_stream::{WindowedFigures, WindowedGraph};
use oxrdf::Term;
use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHashMap;

use super::answer::Answer;
use super::continuous::{Continuous, State};
use super::evaluate::{Evaluated, windows_at};
use super::gap::is_idle_over_time;
use super::plans::{Figures, Size};
use super::written::LastRows;
use crate::EngineError;
use crate::database::Inner;
use crate::graph::StoredGraph;

/// An execution for many that takes longer is given up, and its shape not used any more.
const GIVEN_UP: Duration = Duration::from_secs(1);

/// What queries that differ in constants have in common.
pub(super) struct Shape {
    query: SharedQuery,
    plan: Mutex<Option<(Size, Prepared<'static>)>>,
    /// Those of all its queries.
    last_rows: Mutex<LastRows>,
    /// Queries of it are evaluated each by itself.
    is_apart: AtomicBool,
}

/// The shape of a query, and its own constants.
pub(super) struct Shaped {
    pub(super) shape: Arc<Shape>,
    constants: Box<[Term]>,
}

impl Shape {
    pub(super) fn new(query: SharedQuery) -> Self {
        Self {
            query,
            plan: Mutex::default(),
            last_rows: Mutex::default(),
            is_apart: AtomicBool::new(false),
        }
    }
}

impl Shaped {
    pub(super) fn new(shape: Arc<Shape>, constants: Vec<Term>) -> Self {
        Self {
            shape,
            constants: constants.into(),
        }
    }
}

/// A query that this thread evaluates, and what it goes on from.
struct Member<'a> {
    query: &'a Continuous,
    state: MutexGuard<'a, State>,
}

/// What is asked at an instant.
#[derive(Clone, Copy)]
struct At<'a> {
    windows: &'a [(RingSnapshot, Bounds)],
    graph: &'a Arc<StoredGraph>,
}

impl Inner {
    /// Evaluates those of some queries that are due together with others of their shape. What else is due
    /// is left.
    pub(super) fn evaluate_shapes(&self, queries: &[Arc<Continuous>]) {
        if queries.len() < self.config.together_from {
            return;
        }
        let mut by_shape: FxHashMap<*const Shape, Vec<&Continuous>> = FxHashMap::default();
        for query in queries {
            if let Some(shaped) = &query.shaped
                && !shaped.shape.is_apart.load(Relaxed)
                && query.may_be_together()
                && query.seems_due()
            {
                let shape = Arc::as_ptr(&shaped.shape);
                by_shape.entry(shape).or_default().push(query);
            }
        }
        for members in by_shape.into_values() {
            // As long as all go on together.
            while self.evaluate_together(&members) {}
        }
    }

    /// Evaluates queries of one shape at the next instant; false if they are too few, or could not be.
    fn evaluate_together(&self, queries: &[&Continuous]) -> bool {
        if queries.len() < self.config.together_from.max(1) {
            return false;
        }
        let free = queries
            .iter()
            .filter(|query| query.wakes.fetch_add(1, SeqCst) == 0);
        let free: Vec<&Continuous> = free.copied().collect();
        let is_done = self.evaluate_free(&free);
        for query in &free {
            // Whoever asked meanwhile is heard when each is looked at by itself, which comes next.
            query.wakes.store(0, SeqCst);
        }
        is_done
    }

    /// The same of queries that are nobody else's.
    fn evaluate_free(&self, queries: &[&Continuous]) -> bool {
        let members = queries.iter().map(|query| Member {
            query,
            state: query.state.lock(),
        });
        let mut members: Vec<Member<'_>> = members.collect();
        let first = members.iter().find_map(|member| {
            let instant_ms = member.query.due(&member.state)?;
            Some((member.query, instant_ms))
        });
        let Some((first, instant_ms)) = first else {
            return false;
        };
        let windows = windows_at(first, instant_ms);
        members.retain(|Member { query, state }| {
            let mut own = (0..windows.len()).map(|window| query.bounds(window, instant_ms));
            !query.is_gone.load(Relaxed)
                && query.due(state) == Some(instant_ms)
                && windows
                    .iter()
                    .all(|(_, bounds)| own.next() == Some(*bounds))
        });
        // Whether nothing comes for long is each query's own affair.
        if is_idle_over_time(first, &windows) {
            members.retain(|Member { query, state }| {
                let last_ms = query.last_of(state);
                last_ms.is_some_and(|last_ms| query.has_slid(last_ms, &windows))
            });
        }
        if members.len() < self.config.together_from.max(1) {
            return false;
        }
        let begun = Instant::now();
        let graph = self.graph.load_full();
        let at = At {
            windows: &windows,
            graph: &graph,
        };
        let find = AssertUnwindSafe(|| self.find_together(&members, at));
        let found = catch_unwind(find).unwrap_or(Err(EngineError::Internal));
        let answers = match found {
            Ok(answers) => answers,
            Err(error) => {
                tracing::debug!(%error, "queries of a shape are evaluated each by itself");
                if let Some(shaped) = &first.shaped {
                    shaped.shape.is_apart.store(true, Relaxed);
                }
                return false;
            }
        };
        let took = begun.elapsed() / members.len() as u32;
        let mut are_kept = true;
        for (member, answer) in members.iter_mut().zip(answers) {
            let (query, state) = (member.query, &mut *member.state);
            let at = (instant_ms, 0, windows.as_slice());
            match self.deliver(query, state, at, (&graph, Ok(answer), took)) {
                Evaluated::Result(_) => {
                    query.figures.together.fetch_add(1, Relaxed);
                    state.empty = 0;
                    query.pass(state, instant_ms);
                }
                Evaluated::GivenUp | Evaluated::NotKept => are_kept = false,
            }
        }
        are_kept
    }

    /// What each of some queries finds.
    fn find_together(
        &self,
        members: &[Member<'_>],
        at: At<'_>,
    ) -> Result<Vec<Answer>, EngineError> {
        let query = members[0].query;
        let shaped = query.shaped.as_ref().expect("members have a shape");
        let shape = &shaped.shape;
        let constants = members.iter().map(|member| &member.query.shaped);
        let constants = constants.flatten().map(|shaped| &*shaped.constants);
        let whose = Whose::of(constants, at.graph);
        at.graph.read(|| {
            let stored = self.shards.source(at.graph, &self.config)?;
            let default = query.query.default_windows();
            let windowed = WindowedGraph::new(stored, at.windows, default);
            let windowed = Arc::new(windowed.with_times(query.tuple_times()));
            let figures = Figures {
                graph: at.graph,
                windowed: &windowed,
                forgotten: self.streams.forgotten.load(Relaxed),
                given: 0,
            };
            let rows = whose.rows(shape.query.parameters());
            let plan = shape.plan_for(&figures, (query.streams.len(), rows.rows as u64))?;
            let source: Arc<dyn GraphSource> = Arc::clone(&windowed) as _;
            let graph = (Arc::clone(at.graph), source);
            let running = self.start(graph, (plan, Arc::new(rows)), Some(GIVEN_UP))?;
            let results = running.into_results()?;
            let columns = shape.query.columns();
            let of = (members.len(), columns);
            let whose = |row: &[TermId]| whose.queries.get(row);
            self.read_beside(&mut shape.last_rows.lock(), at.graph, |last| {
                Answer::read_together(results, of, whose, last, self.reading())
            })
        })?
    }
}

impl Shape {
    /// The plan for so many windows and rows of constants: the last one, unless there is much more or less
    /// of everything now.
    fn plan_for(
        &self,
        figures: &Figures<'_>,
        (windows, rows): (usize, u64),
    ) -> Result<Prepared<'static>, EngineError> {
        let mut plan = self.plan.lock();
        let size = figures.size(windows, rows);
        if let Some((_, prepared)) = plan.as_ref().filter(|(then, _)| size.is_like(then)) {
            return Ok(prepared.clone());
        }
        let statistics = WindowedFigures::new(figures.graph, figures.windowed);
        let prepared = self.query.plan(rows, &statistics, &|| false)?;
        *plan = Some((size, prepared.clone()));
        Ok(prepared)
    }
}

/// Which queries, by number, have asked with each row of constants.
struct Whose {
    queries: FxHashMap<Box<[TermId]>, Vec<u32>>,
}

impl Whose {
    /// A query with a constant that the graph does not have has no row, and finds nothing.
    fn of<'c>(constants: impl Iterator<Item = &'c [Term]>, graph: &StoredGraph) -> Self {
        let mut queries: FxHashMap<Box<[TermId]>, Vec<u32>> = FxHashMap::default();
        for (number, constants) in (0..).zip(constants) {
            let ids = constants
                .iter()
                .map(|term| Statistics::term(graph, term.as_ref()));
            if let Some(ids) = ids.collect::<Option<Box<[TermId]>>>() {
                queries.entry(ids).or_default().push(number);
            }
        }
        Self { queries }
    }

    fn rows(&self, columns: usize) -> MaterializedRows {
        let mut rows = MaterializedRows {
            counts: None,
            columns: vec![Vec::with_capacity(self.queries.len()); columns],
            rows: self.queries.len(),
        };
        for ids in self.queries.keys() {
            for (column, id) in rows.columns.iter_mut().zip(ids) {
                column.push(*id);
            }
        }
        rows
    }
}
