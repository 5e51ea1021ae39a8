//! How are MINUS, EXISTS and nested SELECTs answered?
//!
//! EXISTS has the values of the current solution in place of its variables wherever they occur
//! in its pattern, which the planner knows as what is *given*. Where all of them are certainly
//! bound, and the pattern can be explored, its steps run for a batch of rows. Otherwise it is a
//! plan of its own, evaluated once for each combination of values: there a variable that may be
//! unbound stays one, so patterns are matched in full generality.
//!
//! A given variable is one that both sides of a MINUS inside bind, if both mention it in their
//! patterns: so SPARQL 1.2 has it, and SPARQL 1.1 cannot be followed to the letter, as there
//! variables in places where no term may stand are replaced too.

use crate::algebra::{Pattern, Subquery};
use crate::facts::size;
use crate::group::{APART, Grouper, Place};
use crate::join::{HASH, shared};
use crate::modifiers::modified;
use crate::physical::{Operator, Outcome, Step, Var};
use crate::rows::{Rows, node};
use crate::semi_join::{KEPT, for_distinct, with_semi_joins};
use crate::varset::VarSet;

/// EXISTS nested deeper than this in each other are evaluated by themselves: as exploring may
/// turn out to be impossible only after what is inside was planned, the work doubles each time.
const EXPLORED_DEPTH: usize = 6;
/// Work of starting a plan anew, in rows handled.
const ANEW: f64 = 50.0;

impl Grouper<'_> {
    /// A nested SELECT, by itself.
    pub(crate) fn subquery(&self, query: &Subquery) -> Rows {
        let rows = self.alone(&query.pattern);
        let cost = rows.cost;
        let (root, more) = modified(
            rows.into_node(),
            query.modifiers.clone(),
            Some(query.project.clone()),
        );
        let project: VarSet = query.project.iter().copied().collect();
        self.rows_of(
            root,
            cost + more,
            &query.pattern.certain().intersection(&project),
            &query.pattern.possible().intersection(&project),
        )
    }

    /// A pattern for each named graph.
    pub(crate) fn each_graph(&self, scope: Var, name: Var, inner: &Pattern) -> Rows {
        let graphs = match self.source.dataset {
            Some((_, named)) => size(named),
            None => crate::facts::count(self.source.statistics.named_graphs()),
        };
        let given = self.given.union(&[scope].into_iter().collect());
        let rows = self
            .nested(self.source, given, self.perhaps.clone())
            .alone(inner);
        let (found, cost) = (graphs * rows.rows, graphs * (ANEW + rows.cost));
        let operator = Operator::EachGraph {
            input: Box::new(rows.into_node()),
            scope,
            name,
        };
        let named = |set: VarSet| {
            let mut set = set.without(scope);
            set.insert(name);
            set
        };
        self.rows_of(
            node(operator, found),
            cost,
            &named(inner.certain()),
            &named(inner.possible()),
        )
    }

    /// MINUS: by exploring from the rows where that is right, else from two sides.
    ///
    /// `domain` are the variables of the left side of which one must be bound on both.
    pub(crate) fn minus(
        &self,
        rows: Rows,
        right: &Pattern,
        domain: &VarSet,
        place: Place,
    ) -> Option<Rows> {
        if !right.possible().intersects(domain) {
            return Some(rows);
        }
        let certain = right.certain().intersection(&rows.certain);
        let overlaps = certain.intersects(domain);
        let inside = if overlaps {
            self.group(right, rows.as_left_side(), Place::Inside, Vec::new())
        } else {
            None
        };
        let alone = (place == Place::Free).then(|| self.alone(right));
        match (inside, alone) {
            (Some(inside), alone)
                if alone.as_ref().is_none_or(|alone| {
                    inside.cost <= APART * (alone.cost + HASH * (alone.rows + rows.rows))
                }) =>
            {
                Some(self.asked(rows, inside, Outcome::Drop))
            }
            (_, Some(alone)) => Some(self.minus_alone(rows, alone, domain, &right.possible())),
            (_, None) => None,
        }
    }

    /// EXISTS of the expressions of a condition.
    pub(crate) fn marked(&self, rows: Rows, marks: &[(Var, Pattern)]) -> Rows {
        let wanted = marks.iter();
        let wanted = wanted.take_while(|_| !self.source.patience.spend(1));
        wanted.fold(rows, |rows, (var, pattern)| {
            self.exists(rows, pattern, Outcome::Mark(*var))
        })
    }

    /// EXISTS, for each of the rows.
    pub(crate) fn exists(&self, rows: Rows, pattern: &Pattern, outcome: Outcome) -> Rows {
        let mentioned = pattern.mentioned();
        let visible = rows.possible.union(&self.given).union(&self.perhaps);
        let shared = mentioned.intersection(&visible);
        let known = self.given.union(&rows.certain);
        let certain = shared.intersection(&known);
        let can_explore = shared.is_subset(&known);
        // What nothing is handed to is evaluated once, not for each row.
        if can_explore && !shared.is_empty() && self.looks < EXPLORED_DEPTH {
            let nested = self.nested(
                self.source,
                self.given.union(&certain),
                self.perhaps.clone(),
            );
            let inside = nested.group(pattern, rows.as_left_side(), Place::Inside, Vec::new());
            if let Some(inside) = inside {
                return self.asked(rows, inside, outcome);
            }
        }
        let explored = self.looks < EXPLORED_DEPTH;
        let all_bound = (can_explore || explored).then(|| {
            let nested = self.nested(self.source, shared.clone(), VarSet::default());
            nested.alone(pattern)
        });
        let anyhow = (!can_explore).then(|| {
            let general = self.source.general();
            let nested = self.nested(&general, certain, shared.clone());
            nested.alone(pattern)
        });
        // Where nobody knows, most variables are taken to be bound.
        let likely = all_bound.as_ref().or(anyhow.as_ref());
        let each = likely.map_or(0.0, |plan| plan.cost);
        let combinations = if shared.is_empty() { 1.0 } else { rows.rows };
        let cost = combinations * (ANEW + each) + rows.rows;
        let (node, all_bound) = match (anyhow, all_bound) {
            (Some(anyhow), all_bound) => (anyhow, all_bound),
            (None, Some(all_bound)) => (all_bound, None),
            (None, None) => unreachable!("one of them is planned"),
        };
        let mut rows = rows;
        let step = Step::ExistsGiven {
            given: shared.iter().collect(),
            node: Box::new(node.into_node()),
            all_bound: all_bound.map(|plan| Box::new(plan.into_node())),
            outcome,
        };
        push(&mut rows, step, cost, outcome);
        rows
    }

    /// The rows, of which is asked whether `inside` finds anything for them.
    fn asked(&self, rows: Rows, inside: Rows, outcome: Outcome) -> Rows {
        let outer = rows.possible.union(&self.given).union(&self.perhaps);
        let mut rows = rows;
        let step = Step::Exists {
            steps: with_semi_joins(inside.steps, &outer, self.source),
            outcome,
        };
        push(&mut rows, step, inside.cost, outcome);
        rows
    }

    /// MINUS of two independent sides.
    ///
    /// `domain` are the variables of the left side that count as shared, and `bound` those that the
    /// right side binds itself: what is given to both is not among them.
    fn minus_alone(&self, left: Rows, right: Rows, domain: &VarSet, bound: &VarSet) -> Rows {
        let (keys, loose) = shared(&left, &right);
        let overlaps = keys
            .iter()
            .any(|var| domain.contains(*var) && bound.contains(*var));
        let compared = if keys.is_empty() {
            left.rows * right.rows
        } else {
            0.0
        };
        let cost = left.cost + right.cost + HASH * (left.rows + right.rows) + compared;
        let mut right = right;
        // Of rows that agree in what is compared, one is enough.
        let mut compared = VarSet::default();
        keys.iter()
            .chain(&loose)
            .for_each(|var| compared.insert(*var));
        right.steps = for_distinct(right.steps, &right.given, &compared, self.source);
        let found = left.rows * KEPT;
        let (certain, possible) = (left.certain.clone(), left.possible.clone());
        let given = left.given.clone();
        let operator = Operator::Minus {
            left: Box::new(left.into_node()),
            right: Box::new(right.into_node()),
            keys,
            loose,
            overlaps,
        };
        Rows::of_node(node(operator, found), cost, certain, possible).begun_with(&given)
    }
}

fn push(rows: &mut Rows, step: Step, cost: f64, outcome: Outcome) {
    let after = match outcome {
        Outcome::Keep | Outcome::Drop => rows.rows * KEPT,
        Outcome::Mark(_) => rows.rows,
    };
    rows.push(step, after, cost);
    if let Some(var) = outcome.variable() {
        rows.bind(var, true);
    }
}
