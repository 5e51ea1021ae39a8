//! Which solutions of a continuous query can be kept from one instant to the next?
//!
//! Those of its *core*: a join of triple patterns of which some read windows that overlap from instant
//! to instant. A solution of the core is made of one triple for each pattern, so it is there until the
//! first of these leaves its window, and every solution that was not there before has a triple that
//! came since. So an instant needs the core only with each pattern in turn over the new tuples of its
//! window, and everything above the core over the solutions that are kept.
//!
//! Stored graphs are the same for all instants as long as nothing that the core reads of them
//! changes: [`Incremental::reads`] says what that is.

use std::fmt;
use std::sync::Arc;

use oxrdf::{NamedNode, Term};

use crate::algebra::{Deduplicate, LogicalForm, Modifiers, Pattern, Quad, Query};
use crate::build::build;
use crate::continuous::{ContinuousQuery, Extent, StreamWindow};
use crate::counted::count_equal_solutions;
use crate::error::PlanError;
use crate::expression::Function;
use crate::patience::Patience;
use crate::physical::{ConstId, Constant, Scope, Slot, Var};
use crate::planner::without_arguments;
use crate::prepared::Prepared;
use crate::statistics::Statistics;
use crate::stored_reads::StoredRead;

/// How deep below the root of a query its core is looked for.
const MAX_DEPTH: usize = 64;
/// The most patterns with windows that a core has: each is a plan of its own.
const MAX_DELTAS: usize = 32;

/// A continuous query whose solutions can be kept.
#[derive(Clone, Debug)]
pub struct Incremental {
    columns: Vec<Var>,
    counted: Option<Vec<usize>>,
    patterns: Vec<WindowPattern>,
    reads: Vec<StoredRead>,
    full: Query,
    deltas: Vec<Delta>,
    rest: Query,
}

/// The core with one pattern over new tuples.
#[derive(Clone, Debug)]
struct Delta {
    window: u16,
    predicate: Option<NamedNode>,
    query: Query,
}

/// A pattern of the core that a window answers, and so decides how long a solution is there.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowPattern {
    /// Where a solution has its triple.
    pub triple: [Position; 3],
    /// The windows that may have the triple, each by its number; it is there until it has left all.
    pub windows: Vec<u16>,
    /// The stored default graph may have it, too: the merge of the windows and these graphs.
    pub stored: Vec<NamedNode>,
}

/// A part of a triple.
#[derive(Clone, Debug, PartialEq)]
pub enum Position {
    /// The value in this column of the core's solutions.
    Column(usize),
    /// This term.
    Constant(Term),
}

/// Why all of a query is computed anew at each instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Recomputed {
    /// No window has tuples of the instant before.
    NoOverlap,
    /// It asks when triples came, which may be another time at each instant.
    Times,
    /// A window holds a number of tuples: nothing says when one of them will leave it.
    Counted,
    /// There is no join of triple patterns below joins, filters, groups and left sides.
    NoCore,
    /// Patterns of the core share no variables, and all combinations would be kept.
    NotConnected,
    /// The core has too many patterns.
    TooLarge,
}

impl fmt::Display for Recomputed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoOverlap => "windows do not overlap from one instant to the next",
            Self::Times => "timestamp()",
            Self::Counted => "a window of a number of tuples",
            Self::NoCore => {
                "triple patterns of windows are not joined with each other below groups, filters, \
                 BIND and left sides of OPTIONAL and MINUS"
            }
            Self::NotConnected => "triple patterns that are joined share no variables",
            Self::TooLarge => "more triple patterns read windows than are followed apart",
        })
    }
}

impl ContinuousQuery {
    /// The query with its core apart, where there is one that is worth it.
    ///
    /// `overlaps` tells of a window whether it has tuples of the instant before. New tuples are read
    /// from windows of their own: that of window `w` of `n` has the number `n + w`.
    ///
    /// # Errors
    /// [`Recomputed`].
    pub fn incremental(&self, overlaps: &dyn Fn(u16) -> bool) -> Result<Incremental, Recomputed> {
        if self.reads_times() {
            return Err(Recomputed::Times);
        }
        let is_counted = |window: &StreamWindow| matches!(window.extent, Extent::Count { .. });
        if self.windows.iter().any(is_counted) {
            return Err(Recomputed::Counted);
        }
        let windows = 0..self.windows.len() as u16;
        if !windows.clone().any(overlaps) {
            return Err(Recomputed::NoOverlap);
        }
        let query = self.logical();
        let mut rest = Query::clone(query);
        let cores = Cores { query };
        let core = cores.take(&mut rest.pattern, 0);
        let core = core.ok_or(Recomputed::NoCore)?;
        let parts = Parts::of(&core);
        if !parts.are_connected() {
            return Err(Recomputed::NotConnected);
        }
        let columns: Vec<Var> = core.certain().iter().collect();
        let patterns = cores.window_patterns(&parts.quads, &columns);
        if !patterns
            .iter()
            .any(|pattern| pattern.windows.iter().any(|window| overlaps(*window)))
        {
            return Err(Recomputed::NoOverlap);
        }
        let full = cores.over(core, &columns);
        let deltas = cores.deltas(&full, &self.windows)?;
        let counted = count_equal_solutions(&mut rest).map(|vars| {
            let column = |var: &Var| columns.iter().position(|column| column == var);
            let column = |var| column(var).expect("they are columns of the core");
            vars.iter().map(column).collect()
        });
        Ok(Incremental {
            counted,
            patterns,
            reads: cores.stored_reads(&full.pattern),
            columns,
            full,
            deltas,
            rest,
        })
    }
}

impl Incremental {
    /// Number of columns of the core's solutions.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// Where what is above the core counts solutions that are equal in some of these columns, or does
    /// not care how many there are: the columns. The plan of the rest takes each combination of their
    /// values once, with its number, in place of all solutions.
    #[must_use]
    pub fn counted(&self) -> Option<&[usize]> {
        self.counted.as_deref()
    }

    /// The patterns that decide how long a solution is there.
    #[must_use]
    pub fn patterns(&self) -> &[WindowPattern] {
        &self.patterns
    }

    /// What the core reads of stored graphs.
    #[must_use]
    pub fn reads(&self) -> &[StoredRead] {
        &self.reads
    }

    /// For each plan over new tuples, the window whose new tuples it reads, and their predicate if that
    /// is known: without any of these it finds nothing.
    pub fn deltas(&self) -> impl ExactSizeIterator<Item = (u16, Option<&NamedNode>)> {
        let deltas = self.deltas.iter();
        deltas.map(|delta| (delta.window, delta.predicate.as_ref()))
    }

    /// The plan of the core over whole windows.
    ///
    /// # Errors
    /// [`PlanError::Interrupted`], [`PlanError::TooLarge`].
    pub fn plan_full(
        &self,
        statistics: &dyn Statistics,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Prepared<'static>, PlanError> {
        planned(self.full.clone(), statistics, is_over)
    }

    /// The plan of the core over new tuples, by its place in [`Incremental::deltas`].
    ///
    /// # Errors
    /// As [`Incremental::plan_full`].
    ///
    /// # Panics
    /// If there is none.
    pub fn plan_delta(
        &self,
        delta: usize,
        statistics: &dyn Statistics,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Prepared<'static>, PlanError> {
        planned(self.deltas[delta].query.clone(), statistics, is_over)
    }

    /// The plan of everything above the core, of which this many solutions, or
    /// [combinations](Incremental::counted), are expected.
    ///
    /// # Errors
    /// As [`Incremental::plan_full`].
    pub fn plan_rest(
        &self,
        solutions: u64,
        statistics: &dyn Statistics,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Prepared<'static>, PlanError> {
        let mut rest = self.rest.clone();
        rest.pattern.for_each_mut(&mut |pattern| {
            if let Pattern::Materialized { rows, .. } = pattern {
                *rows = solutions;
            }
        });
        planned(rest, statistics, is_over)
    }
}

fn planned(
    query: Query,
    statistics: &dyn Statistics,
    is_over: &dyn Fn() -> bool,
) -> Result<Prepared<'static>, PlanError> {
    let plan = build(query, statistics, &Patience::new(is_over))?;
    Ok(without_arguments(Arc::new(plan), ""))
}

/// Finds the core of a query.
pub(crate) struct Cores<'q> {
    pub(crate) query: &'q Query,
}

/// Who answers the quad patterns of a scope.
enum Home {
    /// Windows alone, or with the graphs of the dataset.
    Windows(Vec<u16>),
    /// Stored graphs alone.
    Stored { default: bool, named: bool },
    /// A variable says.
    Unknown,
}

impl Cores<'_> {
    fn home(&self, scope: Scope) -> Home {
        let query = self.query;
        let default = query.windows.as_ref().map(|windows| &windows.default);
        let default = default.filter(|windows| !windows.is_empty());
        match scope {
            Scope::Graph(Slot::Const(id)) => match &query.constants[id.index()] {
                Constant::Window { number, .. } => Home::Windows(vec![*number]),
                _ => Home::Stored {
                    default: false,
                    named: true,
                },
            },
            Scope::Default => match (default, &query.dataset) {
                (Some(windows), _) => Home::Windows(windows.clone()),
                (None, Some(_)) => Home::Stored {
                    default: false,
                    named: true,
                },
                (None, None) => Home::Stored {
                    default: true,
                    named: query.union_default_graph,
                },
            },
            Scope::Graph(Slot::Var(_)) | Scope::Named => Home::Unknown,
        }
    }

    /// Takes the core out of a pattern, which has its solutions in its place.
    fn take(&self, pattern: &mut Pattern, depth: usize) -> Option<Pattern> {
        if depth == MAX_DEPTH {
            return None;
        }
        if self.is_core(pattern, depth) {
            return self.reads_window(pattern).then(|| {
                let vars = pattern.certain().iter().collect();
                std::mem::replace(pattern, Pattern::Materialized { vars, rows: 0 })
            });
        }
        match pattern {
            Pattern::Filter { inner, .. }
            | Pattern::Extend { inner, .. }
            | Pattern::Group { inner, .. }
            | Pattern::Exists { inner, .. } => self.take(inner, depth + 1),
            Pattern::LeftJoin { left, .. } | Pattern::Minus { left, .. } => {
                self.take(left, depth + 1)
            }
            Pattern::Subquery(query) => self.take(&mut query.pattern, depth + 1),
            Pattern::Join(parts) => self.take_parts(parts, depth),
            _ => None,
        }
    }

    /// Takes the core out of some parts that are joined.
    fn take_parts(&self, parts: &mut Vec<Pattern>, depth: usize) -> Option<Pattern> {
        let (core, mut others): (Vec<Pattern>, Vec<Pattern>) = parts
            .drain(..)
            .partition(|part| self.is_core(part, depth + 1));
        let core = match core.len() {
            0 => None,
            1 => core.into_iter().next(),
            _ => Some(Pattern::Join(core)),
        };
        if let Some(mut core) = core {
            let taken = self.take(&mut core, depth + 1);
            others.push(core);
            if taken.is_some() {
                *parts = others;
                return taken;
            }
        }
        let mut found = others.iter_mut().map(|part| self.take(part, depth + 1));
        let found = found.find_map(|taken| taken);
        *parts = others;
        found
    }

    /// True if each solution of a pattern is made of one triple for each of its patterns, and none is
    /// there twice.
    fn is_core(&self, pattern: &Pattern, depth: usize) -> bool {
        if depth == MAX_DEPTH {
            return false;
        }
        match pattern {
            Pattern::Quads(quads) => {
                let is_unknown = |quad: &Quad| matches!(self.home(quad.scope), Home::Unknown);
                !quads.iter().any(is_unknown)
            }
            Pattern::Path(path) => matches!(self.home(path.scope), Home::Stored { .. }),
            Pattern::Values { rows, .. } => are_distinct(rows),
            Pattern::Filter { inner, expression } => {
                self.is_core(inner, depth + 1)
                    && !expression.is_volatile()
                    // It is another one at the next instant.
                    && !expression.calls(Function::Now)
                    && expression.variables().is_subset(&inner.certain())
            }
            Pattern::Join(parts) => parts.iter().all(|part| self.is_core(part, depth + 1)),
            _ => false,
        }
    }

    fn reads_window(&self, core: &Pattern) -> bool {
        let quads = Parts::of(core).quads;
        let mut homes = quads.iter().map(|quad| self.home(quad.scope));
        homes.any(|home| matches!(home, Home::Windows(_)))
    }

    fn window_patterns(&self, quads: &[Quad], columns: &[Var]) -> Vec<WindowPattern> {
        let position = |slot: Slot| match slot {
            Slot::Var(var) => {
                let column = columns.iter().position(|column| *column == var);
                Position::Column(column.expect("quad patterns bind their variables"))
            }
            Slot::Const(id) => match &self.query.constants[id.index()] {
                Constant::Fixed(term) => Position::Constant(term.clone()),
                _ => unreachable!("constants of continuous queries are fixed"),
            },
        };
        let dataset = self.query.dataset.as_ref();
        let pattern = |quad: &Quad| match self.home(quad.scope) {
            Home::Windows(windows) => Some(WindowPattern {
                triple: [quad.subject, quad.predicate, quad.object].map(position),
                windows,
                stored: match quad.scope {
                    Scope::Default => dataset.map_or(Vec::new(), |one| one.default.clone()),
                    _ => Vec::new(),
                },
            }),
            _ => None,
        };
        quads.iter().filter_map(pattern).collect()
    }

    /// The query for a core.
    fn over(&self, core: Pattern, columns: &[Var]) -> Query {
        Query {
            form: LogicalForm::Select(columns.to_vec()),
            pattern: core,
            modifiers: Modifiers {
                order: Vec::new(),
                deduplicate: Deduplicate::No,
                offset: 0,
                limit: None,
            },
            calls_services: false,
            reads_times: false,
            ..self.query.clone()
        }
    }

    /// The core with each pattern in turn in the new tuples of each of its windows.
    fn deltas(
        &self,
        full: &Query,
        windows: &[crate::continuous::StreamWindow],
    ) -> Result<Vec<Delta>, Recomputed> {
        let quads = Parts::of(&full.pattern).quads;
        let homes = quads.iter().map(|quad| self.home(quad.scope)).enumerate();
        let mut deltas = Vec::new();
        for (place, home) in homes {
            let Home::Windows(numbers) = home else {
                continue;
            };
            for window in numbers {
                let mut query = full.clone();
                let id = ConstId(query.constants.len() as u16);
                query.constants.push(Constant::Window {
                    number: windows.len() as u16 + window,
                    name: windows[usize::from(window)].name.clone(),
                });
                let scope = Scope::Graph(Slot::Const(id));
                set_scope(&mut query.pattern, place, scope);
                let predicate = match quads[place].predicate {
                    Slot::Const(id) => self.iri(id),
                    Slot::Var(_) => None,
                };
                deltas.push(Delta {
                    window,
                    predicate,
                    query,
                });
                if deltas.len() > MAX_DELTAS {
                    return Err(Recomputed::TooLarge);
                }
            }
        }
        Ok(deltas)
    }

    /// What of stored graphs answers for a predicate in a scope, if any does.
    pub(crate) fn stored_read(&self, scope: Scope, predicate: Option<NamedNode>) -> StoredRead {
        let (default, named) = match self.home(scope) {
            Home::Stored { default, named } => (default, named),
            Home::Windows(_) => {
                let dataset = self.query.dataset.as_ref();
                let merged = dataset.is_some_and(|dataset| !dataset.default.is_empty());
                (false, scope == Scope::Default && merged)
            }
            Home::Unknown => (true, true),
        };
        StoredRead {
            predicate,
            default,
            named,
        }
    }

    pub(crate) fn iri(&self, id: ConstId) -> Option<NamedNode> {
        match &self.query.constants[id.index()] {
            Constant::Fixed(Term::NamedNode(iri)) => Some(iri.clone()),
            _ => None,
        }
    }
}

/// True if inline data defines all cells, and no row twice.
fn are_distinct(rows: &[Vec<Option<ConstId>>]) -> bool {
    let mut sorted: Vec<&Vec<Option<ConstId>>> = rows.iter().collect();
    sorted.sort_unstable_by_key(|row| {
        row.iter()
            .map(|cell| cell.map(|id| id.0))
            .collect::<Vec<_>>()
    });
    let is_defined = rows.iter().flatten().all(Option::is_some);
    is_defined && sorted.windows(2).all(|pair| pair[0] != pair[1])
}

/// What a core is made of.
#[derive(Default)]
struct Parts {
    quads: Vec<Quad>,
    /// The variables of each part.
    variables: Vec<Vec<Var>>,
}

impl Parts {
    fn of(core: &Pattern) -> Self {
        let mut parts = Self::default();
        parts.add(core);
        parts
    }

    fn add(&mut self, pattern: &Pattern) {
        match pattern {
            Pattern::Quads(quads) => {
                for quad in quads {
                    self.quads.push(*quad);
                    self.variables.push(quad.variables().collect());
                }
            }
            Pattern::Path(path) => {
                self.variables.push(path.variables().collect());
            }
            Pattern::Values { vars, .. } => self.variables.push(vars.clone()),
            Pattern::Filter { inner, .. } => self.add(inner),
            Pattern::Join(parts) => parts.iter().for_each(|part| self.add(part)),
            _ => {}
        }
    }

    /// True if all parts with variables hang together.
    fn are_connected(&self) -> bool {
        let mut left: Vec<&Vec<Var>> = self
            .variables
            .iter()
            .filter(|vars| !vars.is_empty())
            .collect();
        let Some(first) = left.pop() else {
            return true;
        };
        let mut reached = first.clone();
        while !left.is_empty() {
            let before = left.len();
            left.retain(|vars| {
                let is_near = vars.iter().any(|var| reached.contains(var));
                if is_near {
                    reached.extend(vars.iter());
                }
                !is_near
            });
            if left.len() == before {
                return false;
            }
        }
        true
    }
}

/// Has the quad pattern at a place, in the order of [`Parts`], read another graph.
fn set_scope(core: &mut Pattern, place: usize, scope: Scope) {
    let mut at = 0;
    let mut set = |quads: &mut Vec<Quad>| {
        for quad in quads {
            if at == place {
                quad.scope = scope;
            }
            at += 1;
        }
    };
    core.for_each_mut(&mut |pattern| {
        if let Pattern::Quads(quads) = pattern {
            set(quads);
        }
    });
}

#[cfg(test)]
#[path = "incremental_tests.rs"]
mod tests;
