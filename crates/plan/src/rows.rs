//! What is planned so far, and what is known of the rows it gives?

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::expression::{Comparison, Expression};
use crate::facts::size;
use crate::patience::Patience;
use crate::physical::{Node, Operator, PlannedStep, Scope, Step, Var};
use crate::statistics::Membership;
use crate::varset::VarSet;

/// Work of evaluating an expression on one row, in rows handled.
const EVALUATE: f64 = 2.0;
/// So many values lie in a range with two ends, where a variable has few.
const RANGE: f64 = 3.0;

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
    pub(crate) known: FxHashMap<(Var, Scope), Vec<Membership>>,
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
                    steps: self.steps.into(),
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
        let kept = selectivity(&expression, &|_| None);
        self.filter_to(expression, kept);
    }

    /// A filter that is taken to keep this part of the rows.
    fn filter_to(&mut self, expression: Expression, kept: f64) {
        let cost = self.rows * EVALUATE;
        let rows = self.rows * kept;
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

/// The part of rows that a condition is taken to keep: by the number of values that a variable
/// can have, where `values` knows it, else textbook constants, as nothing is known of the
/// distribution of values.
fn selectivity(expression: &Expression, values: &dyn Fn(Var) -> Option<f64>) -> f64 {
    let of_all = |parts: &[Expression]| -> f64 {
        parts.iter().map(|part| selectivity(part, values)).product()
    };
    match expression {
        Expression::Compare(operator, left, right) => {
            let compared = match (&**left, &**right) {
                (Expression::Variable(var), Expression::Constant(_))
                | (Expression::Constant(_), Expression::Variable(var)) => values(*var),
                _ => None,
            };
            let of_one = compared.map(|values| 1.0 / values.max(1.0));
            match operator {
                Comparison::Equal | Comparison::SameTerm => of_one.unwrap_or(0.05),
                Comparison::NotEqual => of_one.map_or(0.9, |of_one| (1.0 - of_one).max(0.5)),
                _ => 1.0 / 3.0,
            }
        }
        Expression::And(parts) => match parts.as_slice() {
            [one, other] if are_a_range(one, other) => {
                let values = bound_of(one).and_then(|(var, _)| values(var));
                values.map_or(0.05, |values| (RANGE / values.max(1.0)).clamp(0.05, 0.3))
            }
            parts => of_all(parts),
        },
        Expression::Or(parts) => {
            let none: f64 = parts
                .iter()
                .map(|part| 1.0 - selectivity(part, values))
                .product();
            1.0 - none
        }
        Expression::In(part, list) => {
            let values = match &**part {
                Expression::Variable(var) => values(*var),
                _ => None,
            };
            values.map_or(0.5, |values| (size(list.len()) / values.max(1.0)).min(1.0))
        }
        Expression::Not(part) => 1.0 - selectivity(part, values),
        _ => 0.5,
    }
}

/// True of two conditions that bound a variable by constants, one from below and one from above.
pub(crate) fn are_a_range(one: &Expression, other: &Expression) -> bool {
    match (bound_of(one), bound_of(other)) {
        (Some((one, is_lower)), Some((other, is_also_lower))) => {
            one == other && is_lower != is_also_lower
        }
        _ => false,
    }
}

/// The variable that a condition bounds by a constant, and whether that is from below.
pub(crate) fn bound_of(condition: &Expression) -> Option<(Var, bool)> {
    let Expression::Compare(operator, left, right) = condition else {
        return None;
    };
    let is_lower = match operator {
        Comparison::Greater | Comparison::GreaterOrEqual => true,
        Comparison::Less | Comparison::LessOrEqual => false,
        _ => return None,
    };
    match (&**left, &**right) {
        (Expression::Variable(var), Expression::Constant(_)) => Some((*var, is_lower)),
        (Expression::Constant(_), Expression::Variable(var)) => Some((*var, !is_lower)),
        _ => None,
    }
}

/// A filter that waits until the variables it looks at are bound.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    expression: Rc<Expression>,
    /// Each once.
    variables: Rc<[Var]>,
    is_volatile: bool,
    /// The part of rows that it is taken to keep.
    pub(crate) kept: f64,
}

impl Filter {
    /// A variable that it looks at and that is not among these.
    pub(crate) fn misses(&self, bound: &VarSet) -> Option<Var> {
        let mut variables = self.variables.iter().copied();
        variables.find(|var| !bound.contains(*var))
    }

    pub(crate) fn is_volatile(&self) -> bool {
        self.is_volatile
    }
}

/// Filters that wait until the variables they look at are bound.
///
/// Each waits for one variable that the rows lacked when it was last tried, so that it is not
/// tried again before they have that.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    filters: Vec<Option<Filter>>,
    /// Filters before this one were tried on rows that bind `seen` for certain.
    tried: usize,
    seen: VarSet,
    awaited: FxHashMap<Var, Vec<usize>>,
}

impl Waiting {
    /// Adds a filter and returns its place.
    pub(crate) fn add(&mut self, expression: Expression) -> usize {
        let mut variables = Vec::new();
        expression.for_each_variable(&mut |var| variables.push(var));
        variables.sort_unstable();
        variables.dedup();
        self.filters.push(Some(Filter {
            kept: selectivity(&expression, &|_| None),
            is_volatile: expression.is_volatile(),
            variables: variables.into(),
            expression: Rc::new(expression),
        }));
        self.filters.len() - 1
    }

    /// Takes the filter at a place, if it still waits.
    pub(crate) fn take(&mut self, place: usize) -> Option<Expression> {
        let filter = self.filters[place].take()?;
        Some(Rc::unwrap_or_clone(filter.expression))
    }

    /// The filters that still wait.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Filter> {
        self.filters.iter().flatten()
    }

    /// How many filters there were.
    pub(crate) fn len(&self) -> usize {
        self.filters.len()
    }

    /// Estimates anew what they keep, from the numbers of values that variables can have.
    pub(crate) fn estimate(&mut self, values: &dyn Fn(Var) -> Option<f64>) {
        for filter in self.filters.iter_mut().flatten() {
            filter.kept = selectivity(&filter.expression, values);
        }
    }

    /// Those left over.
    pub(crate) fn into_rest(self) -> Vec<Expression> {
        let rest = self.filters.into_iter().flatten();
        rest.map(|filter| Rc::unwrap_or_clone(filter.expression))
            .collect()
    }

    /// Applies those whose variables are all certainly bound: their value is final then. What
    /// is random stays where the text has it.
    pub(crate) fn apply(&mut self, rows: &mut Rows, patience: &Patience<'_>) {
        for place in self.perhaps_ready(&rows.certain) {
            if patience.spend(1) {
                return;
            }
            let entry = &mut self.filters[place];
            let Some(filter) = entry.as_ref().filter(|filter| !filter.is_volatile) else {
                continue;
            };
            match filter.misses(&rows.certain) {
                Some(var) => self.awaited.entry(var).or_default().push(place),
                None => {
                    let kept = filter.kept;
                    if let Some(expression) = self.take(place) {
                        rows.filter_to(expression, kept);
                    }
                }
            }
        }
    }

    /// The places of the filters that may have become ready, in order.
    fn perhaps_ready(&mut self, certain: &VarSet) -> Vec<usize> {
        let mut places = Vec::new();
        // To compare sets takes as long as they are wide, and this is asked for each new variable.
        if self.awaited.is_empty() {
            self.seen = VarSet::default();
        } else if *certain != self.seen {
            for var in certain.difference(&self.seen).iter() {
                places.extend(self.awaited.remove(&var).unwrap_or_default());
            }
            self.seen.clone_from(certain);
            places.sort_unstable();
        }
        places.extend(self.tried..self.filters.len());
        self.tried = self.filters.len();
        places
    }
}
