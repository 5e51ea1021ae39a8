//! How are parts joined that were planned apart from each other, and what is that expected to
//! cost?

use crate::algebra::certain_of_values;
use crate::facts::size;
use crate::physical::{ConstId, Operator, Step, Var};
use crate::rows::{Rows, node};
use crate::varset::VarSet;

/// Work of a row on either side of a hash join, in rows handled.
pub(crate) const HASH: f64 = 4.0;
/// A step that explores from rows, and what it makes of them.
pub(crate) struct Explored {
    pub(crate) step: Step,
    pub(crate) rows: f64,
    pub(crate) cost: f64,
    pub(crate) certain: VarSet,
    pub(crate) possible: VarSet,
}

impl Explored {
    /// The rows with this step.
    pub(crate) fn joined(self, mut rows: Rows) -> Rows {
        rows.push(self.step, self.rows, self.cost);
        rows.certain.extend(&self.certain);
        rows.possible.extend(&self.possible);
        rows
    }
}

/// Joins inline data that shares only certainly bound variables with the rows.
pub(crate) fn values(mut rows: Rows, vars: Vec<Var>, cells: Vec<Vec<Option<ConstId>>>) -> Rows {
    let certain = certain_of_values(&vars, &cells);
    let shares = vars.iter().any(|var| rows.possible.contains(*var));
    let found = if shares {
        rows.rows
    } else {
        rows.rows * size(cells.len())
    };
    let cost = rows.rows * (1.0 + size(cells.len()));
    let bound = vars.clone();
    rows.push(Step::Values { vars, rows: cells }, found, cost);
    for var in bound {
        rows.bind(var, certain.contains(var));
    }
    rows
}

/// Shared variables: certainly bound on both sides, and the others.
pub(crate) fn shared(left: &Rows, right: &Rows) -> (Vec<Var>, Vec<Var>) {
    let both = left.certain.intersection(&right.certain);
    left.possible
        .intersection(&right.possible)
        .iter()
        .partition(|var| both.contains(*var))
}

/// Rows of a join, where nothing is known of how its keys match.
pub(crate) fn joined_rows(left: &Rows, right: &Rows, keys: &[Var], loose: &[Var]) -> f64 {
    if keys.is_empty() && loose.is_empty() {
        left.rows * right.rows
    } else {
        left.rows.max(right.rows)
    }
}

/// Work of two independent plans and of joining them.
pub(crate) fn join_cost(left: &Rows, right: &Rows) -> f64 {
    if left.is_unit() {
        return right.cost;
    }
    if right.is_unit() {
        return left.cost;
    }
    let (keys, loose) = shared(left, right);
    let found = joined_rows(left, right, &keys, &loose);
    let compared = if keys.is_empty() {
        left.rows * right.rows
    } else {
        0.0
    };
    left.cost + right.cost + HASH * (left.rows + right.rows) + found + compared
}

/// Joins two independent plans; the smaller is kept in memory.
pub(crate) fn join(left: Rows, right: Rows) -> Rows {
    if left.is_unit() {
        return right;
    }
    if right.is_unit() {
        return left;
    }
    let (keys, loose) = shared(&left, &right);
    let found = joined_rows(&left, &right, &keys, &loose);
    let cost = join_cost(&left, &right);
    let certain = left.certain.union(&right.certain);
    let possible = left.possible.union(&right.possible);
    let given = left.given.clone();
    let (build, probe) = if left.rows <= right.rows {
        (left, right)
    } else {
        (right, left)
    };
    let operator = Operator::Join {
        build: Box::new(build.into_node()),
        probe: Box::new(probe.into_node()),
        keys,
        loose,
    };
    Rows::of_node(node(operator, found), cost, certain, possible).begun_with(&given)
}
