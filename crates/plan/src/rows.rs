//! What is planned so far, and what is known of the rows it gives?

use rustc_hash::FxHashMap;

use crate::expression::{Comparison, Expression};
use crate::physical::{Node, Operator, PlannedStep, Step, Var};
use crate::statistics::Membership;
use crate::varset::VarSet;

/// Work of evaluating an expression on one row, in rows handled.
const EVALUATE: f64 = 2.0;

/// A plan under construction: steps on an input, or on one row without columns.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    pub(crate) input: Option<Box<Node>>,
    pub(crate) steps: Vec<PlannedStep>,
    /// Rows expected.
    pub(crate) rows: f64,
    /// Work expected, in rows handled.
    pub(crate) cost: f64,
    pub(crate) certain: VarSet,
    pub(crate) possible: VarSet,
    /// The variables of the one row that it all began with.
    pub(crate) given: VarSet,
    /// What is known of the vertices of bound variables.
    pub(crate) known: FxHashMap<Var, Vec<Membership>>,
}

impl Rows {
    /// One row that binds these variables.
    pub(crate) fn given(vars: &VarSet) -> Self {
        Self {
            certain: vars.clone(),
            possible: vars.clone(),
            given: vars.clone(),
            ..Self::unit()
        }
    }

    /// One row without columns.
    pub(crate) fn unit() -> Self {
        Self {
            input: None,
            steps: Vec::new(),
            rows: 1.0,
            cost: 0.0,
            certain: VarSet::default(),
            possible: VarSet::default(),
            given: VarSet::default(),
            known: FxHashMap::default(),
        }
    }

    /// The rows of a node.
    pub(crate) fn of_node(node: Node, cost: f64, certain: VarSet, possible: VarSet) -> Self {
        Self {
            rows: node.rows,
            input: Some(Box::new(node)),
            steps: Vec::new(),
            cost,
            certain,
            possible,
            given: VarSet::default(),
            known: FxHashMap::default(),
        }
    }

    /// The same rows, which began with these variables.
    pub(crate) fn begun_with(self, given: &VarSet) -> Self {
        Self {
            given: given.clone(),
            ..self
        }
    }

    /// These rows as the left side of steps that run for each of them.
    pub(crate) fn as_left_side(&self) -> Self {
        Self {
            input: None,
            steps: Vec::new(),
            rows: self.rows,
            cost: 0.0,
            certain: self.certain.clone(),
            possible: self.possible.clone(),
            given: VarSet::default(),
            known: self.known.clone(),
        }
    }

    /// True while it is still the one row to begin with, with nothing asked of it.
    pub(crate) fn is_unit(&self) -> bool {
        self.input.is_none() && self.steps.is_empty() && self.possible.is_subset(&self.given)
    }

    pub(crate) fn into_node(self) -> Node {
        match self.input {
            Some(node) if self.steps.is_empty() => *node,
            input => node(
                Operator::Explore {
                    input,
                    steps: self.steps,
                },
                self.rows,
            ),
        }
    }

    pub(crate) fn push(&mut self, step: Step, rows: f64, cost: f64) {
        self.rows = rows;
        self.cost += cost;
        self.steps.push(PlannedStep { step, rows, id: 0 });
    }

    pub(crate) fn bind(&mut self, var: Var, certainly: bool) {
        self.possible.insert(var);
        if certainly {
            self.certain.insert(var);
        }
    }

    pub(crate) fn filter(&mut self, expression: Expression) {
        let cost = self.rows * EVALUATE;
        let rows = self.rows * selectivity(&expression);
        self.push(Step::Filter(expression), rows, cost);
    }

    pub(crate) fn extend(&mut self, var: Var, expression: Expression, certainly: bool) {
        let (rows, cost) = (self.rows, self.rows * EVALUATE);
        self.push(Step::Extend { var, expression }, rows, cost);
        self.bind(var, certainly);
    }
}

/// A node that has no number yet.
pub(crate) fn node(operator: Operator, rows: f64) -> Node {
    Node {
        operator,
        rows,
        id: 0,
    }
}

/// The part of rows that a condition is taken to keep: textbook constants, as nothing is known
/// of the distribution of values.
pub(crate) fn selectivity(expression: &Expression) -> f64 {
    match expression {
        Expression::Compare(Comparison::Equal | Comparison::SameTerm, ..) => 0.05,
        Expression::Compare(Comparison::NotEqual, ..) => 0.9,
        Expression::Compare(..) => 1.0 / 3.0,
        Expression::And(parts) => parts.iter().map(selectivity).product(),
        Expression::Or(parts) => {
            1.0 - parts
                .iter()
                .map(|part| 1.0 - selectivity(part))
                .product::<f64>()
        }
        Expression::Not(part) => 1.0 - selectivity(part),
        _ => 0.5,
    }
}

/// Filters that wait until the variables they look at are bound.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    filters: Vec<Option<Expression>>,
}

impl Waiting {
    /// Adds a filter and returns its place.
    pub(crate) fn add(&mut self, expression: Expression) -> usize {
        self.filters.push(Some(expression));
        self.filters.len() - 1
    }

    /// Takes the filter at a place, if it still waits.
    pub(crate) fn take(&mut self, place: usize) -> Option<Expression> {
        self.filters[place].take()
    }

    /// The filters that still wait.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Expression> {
        self.filters.iter().flatten()
    }

    /// Those left over.
    pub(crate) fn into_rest(self) -> Vec<Expression> {
        self.filters.into_iter().flatten().collect()
    }

    /// Applies those whose variables are all certainly bound: their value is final then. What
    /// is random stays where the text has it.
    pub(crate) fn apply(&mut self, rows: &mut Rows) {
        for filter in &mut self.filters {
            let ready = filter.as_ref().is_some_and(|expression| {
                !expression.is_volatile() && expression.variables().is_subset(&rows.certain)
            });
            if ready && let Some(expression) = filter.take() {
                rows.filter(expression);
            }
        }
    }
}
