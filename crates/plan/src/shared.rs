//! Which continuous queries differ in constants only, and what answers all of them at once?
//!
//! The subjects and objects of a query's triple patterns become variables, of which each query brings
//! its values as one row: the patterns are joined with all rows, and an answer says by its last columns
//! which queries it is for. So n queries of one shape are one execution that begins with n rows.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use oxrdf::vocab::rdf;
use oxrdf::{NamedNode, Term};
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::algebra::{LogicalForm, Pattern, Query};
use crate::build::build;
use crate::continuous::{ContinuousQuery, Output, StreamWindow};
use crate::error::PlanError;
use crate::patience::Patience;
use crate::physical::{ConstId, Constant, Slot, Var};
use crate::planner::without_arguments;
use crate::prepared::Prepared;
use crate::statistics::Statistics;

/// How deep below the root of a query its triple patterns are looked for.
const MAX_DEPTH: usize = 64;
/// Queries whose shapes have longer texts are not looked at together.
const MAX_KEY_BYTES: usize = 64 << 10;

/// The shape of a continuous query.
#[derive(Clone, Debug)]
pub struct SharedQuery {
    key: Arc<ShapeKey>,
    parameters: usize,
    columns: usize,
}

/// What is the same for all queries of a shape, and differs from that of any other: its equality is theirs.
#[derive(Debug, PartialEq, Eq)]
pub struct ShapeKey {
    /// The query with variables in the place of its own constants.
    query: Query,
    windows: Vec<StreamWindow>,
    every_ms: Option<u64>,
    output: Option<Output>,
    /// Of the `Debug` text of all that. It only says where to look: texts may leave out what shapes differ in.
    text_hash: u64,
}

impl Hash for ShapeKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.text_hash);
    }
}

impl ContinuousQuery {
    /// The shape of a query and its own constants; `None` if it cannot be evaluated with others. Two
    /// queries with equal [keys](SharedQuery::key) have one shape.
    ///
    /// Only SELECT without ORDER BY, LIMIT and OFFSET, over a join of patterns below filters, BIND,
    /// groups by something, and left sides of OPTIONAL, MINUS and EXISTS.
    #[must_use]
    pub fn shared(&self) -> Option<(SharedQuery, Vec<Term>)> {
        let query = self.logical();
        let LogicalForm::Select(columns) = &query.form else {
            return None;
        };
        let modifiers = &query.modifiers;
        let is_whole = modifiers.offset == 0 && modifiers.limit.is_none();
        if !modifiers.order.is_empty() || !is_whole || query.calls_services {
            return None;
        }
        let mut shape = Query::clone(query);
        let mut parameters = Parameters {
            query,
            vars: FxHashMap::default(),
            order: Vec::new(),
            names: Vec::new(),
        };
        parameters.take(&mut shape.pattern, 0)?;
        let (order, names) = (parameters.order, parameters.names);
        let vars: Vec<Var> = order.iter().map(|(_, var)| *var).collect();
        shape.variables.extend(names);
        shape.form = LogicalForm::Select(columns.iter().chain(&vars).copied().collect());
        let constants = order
            .iter()
            .map(|(id, _)| match &query.constants[id.index()] {
                Constant::Fixed(term) => term.clone(),
                _ => unreachable!("only fixed terms become parameters"),
            });
        let constants = constants.collect();
        let used = shape.pattern.constants();
        // One that the pattern still uses is the same for all of a shape.
        for (id, _) in order.iter().filter(|(id, _)| !used.contains(id)) {
            let nothing = NamedNode::new_unchecked("urn:x-jindou:parameter");
            shape.constants[id.index()] = Constant::Fixed(nothing.into());
        }
        let shared = SharedQuery {
            parameters: vars.len(),
            columns: columns.len(),
            key: Arc::new(self.key(shape)?),
        };
        Some((shared, constants))
    }

    fn key(&self, shape: Query) -> Option<ShapeKey> {
        let windows = (&self.windows, self.every_ms, self.output);
        let text = format!("{shape:?}{windows:?}");
        (text.len() <= MAX_KEY_BYTES).then(|| ShapeKey {
            query: shape,
            windows: self.windows.clone(),
            every_ms: self.every_ms,
            output: self.output,
            text_hash: FxBuildHasher.hash_one(text),
        })
    }
}

impl SharedQuery {
    /// What queries of one shape have in common.
    #[must_use]
    pub fn key(&self) -> &Arc<ShapeKey> {
        &self.key
    }

    /// Number of constants that each query brings, and of the last columns that say whose a row is.
    #[must_use]
    pub fn parameters(&self) -> usize {
        self.parameters
    }

    /// Number of columns of an answer before these.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The plan for this many rows of constants, which the execution is given.
    ///
    /// # Errors
    /// [`PlanError::Interrupted`], [`PlanError::TooLarge`].
    pub fn plan(
        &self,
        queries: u64,
        statistics: &dyn Statistics,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Prepared<'static>, PlanError> {
        let mut query = self.key.query.clone();
        query.pattern.for_each_mut(&mut |pattern| {
            if let Pattern::Materialized { rows, .. } = pattern {
                *rows = queries;
            }
        });
        let plan = build(query, statistics, &Patience::new(is_over))?;
        Ok(without_arguments(Arc::new(plan), ""))
    }
}

/// Makes variables of constants.
struct Parameters<'q> {
    query: &'q Query,
    vars: FxHashMap<ConstId, Var>,
    order: Vec<(ConstId, Var)>,
    names: Vec<String>,
}

impl Parameters<'_> {
    /// Makes variables of the constants in the patterns at the bottom, and joins these with their values;
    /// `None` if that would say something else.
    fn take(&mut self, pattern: &mut Pattern, depth: usize) -> Option<()> {
        if depth == MAX_DEPTH {
            return None;
        }
        match pattern {
            Pattern::Quads(_) | Pattern::Join(_) => {
                self.replace(pattern, depth)?;
                if !self.order.is_empty() {
                    let vars = self.order.iter().map(|(_, var)| *var).collect();
                    let values = Pattern::Materialized { vars, rows: 0 };
                    let inner = std::mem::replace(pattern, Pattern::Unit);
                    *pattern = Pattern::Join(vec![values, inner]);
                }
                Some(())
            }
            Pattern::Filter { inner, expression } if !expression.is_volatile() => {
                self.take(inner, depth + 1)
            }
            Pattern::Extend { inner, bindings }
                if !bindings
                    .iter()
                    .any(|(_, expression)| expression.is_volatile()) =>
            {
                self.take(inner, depth + 1)
            }
            Pattern::Exists { inner, .. }
            | Pattern::LeftJoin { left: inner, .. }
            | Pattern::Minus { left: inner, .. } => self.take(inner, depth + 1),
            // Without anything to group by there is a group of no rows, too.
            Pattern::Group { inner, by, .. } if !by.is_empty() => {
                self.take(inner, depth + 1)?;
                by.extend(self.order.iter().map(|(_, var)| *var));
                Some(())
            }
            _ => None,
        }
    }

    /// Makes variables of the subjects and objects of patterns that are joined.
    fn replace(&mut self, pattern: &mut Pattern, depth: usize) -> Option<()> {
        if depth == MAX_DEPTH {
            return None;
        }
        match pattern {
            Pattern::Quads(quads) => {
                for quad in quads {
                    quad.subject = self.parameter(quad.subject);
                    if !self.is_type(quad.predicate) {
                        quad.object = self.parameter(quad.object);
                    }
                }
                Some(())
            }
            Pattern::Path(_) | Pattern::Values { .. } => Some(()),
            Pattern::Filter { inner, expression } if !expression.is_volatile() => {
                self.replace(inner, depth + 1)
            }
            Pattern::Join(parts) => parts
                .iter_mut()
                .try_for_each(|part| self.replace(part, depth + 1)),
            _ => None,
        }
    }

    fn is_type(&self, predicate: Slot) -> bool {
        let Slot::Const(id) = predicate else {
            return false;
        };
        let constant = &self.query.constants[id.index()];
        matches!(constant, Constant::Fixed(Term::NamedNode(iri)) if *iri == rdf::TYPE)
    }

    fn parameter(&mut self, slot: Slot) -> Slot {
        let Slot::Const(id) = slot else {
            return slot;
        };
        if !matches!(self.query.constants[id.index()], Constant::Fixed(_)) {
            return slot;
        }
        let next = self.query.variables.len() + self.order.len();
        let Ok(next) = u16::try_from(next) else {
            return slot;
        };
        let var = *self.vars.entry(id).or_insert_with(|| {
            self.order.push((id, Var(next)));
            self.names.push(format!(".parameter{}", self.order.len()));
            Var(next)
        });
        Slot::Var(var)
    }
}

#[cfg(test)]
#[path = "shared_tests.rs"]
mod tests;
