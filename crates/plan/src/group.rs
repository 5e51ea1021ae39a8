//! How is a group of patterns answered: by exploring, or by joining independent parts?
//!
//! Exploring from the rows at hand is the rule. It gives SPARQL's bottom-up answer where each
//! variable that the next part shares with the rows is certainly bound in them, and where
//! nothing inside that part looks at a variable of the rows that it could not see by itself.
//! Everything else is joined from independent evaluations.

use std::cell::Cell;

use crate::algebra::{Pattern, endpoint_variable, never_fails};
use crate::block::{Block, Item, Operation, certain_of_union, conjuncts, possible_of_union};
use crate::count_last::count_path_last;
use crate::expression::{Aggregate, AggregateFunction, Comparison, Expression};
use crate::facts::Source;
use crate::join::{Explored, HASH, join, join_cost, joined_rows, shared, values};
use crate::order::{Relation, explore};
use crate::pending::{Pending, components, is_relation};
use crate::physical::{ConstId, Node, Operator, Service, Step, Var};
use crate::rows::{Rows, Waiting, node};
use crate::varset::VarSet;

/// Ways to begin a group that are planned to the end and compared.
const MAX_STARTS: usize = 6;
/// How much dearer than a left join exploring may seem and still be chosen: its cost is bounded
/// by the rows that there are, that of the other by an estimate of all the data.
pub(crate) const APART: f64 = 4.0;
/// Parts nested deeper than this in each other are begun in one way only, as ways multiply.
const COMPARED_DEPTH: usize = 3;

/// Units of work of beginning to plan a pattern by itself.
const UNITS_ALONE: usize = 16;

/// Combinations of variables that inline data may define to be explored from.
const MAX_SPLIT: usize = 4;

/// Rows of inline data.
type Cells = Vec<Vec<Option<ConstId>>>;

/// Plans the patterns of one query.
pub(crate) struct Grouper<'a> {
    pub(crate) source: &'a Source<'a>,
    /// Variables that have a value from the start: those of the row that EXISTS is asked for, or
    /// a graph.
    pub(crate) given: VarSet,
    /// Variables that may have a value from the start.
    pub(crate) perhaps: VarSet,
    /// EXISTS and graphs around.
    pub(crate) looks: usize,
    depth: Cell<usize>,
}

/// Where a group is planned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Anything goes.
    Free,
    /// Inside a step, for each row of its left side: steps only.
    Inside,
}

impl<'a> Grouper<'a> {
    pub(crate) fn new(source: &'a Source<'a>) -> Self {
        Self {
            source,
            given: VarSet::default(),
            perhaps: VarSet::default(),
            looks: 0,
            depth: Cell::new(0),
        }
    }

    /// A planner of patterns nested in those of this one, for which this is given.
    pub(crate) fn nested<'b>(
        &'b self,
        source: &'b Source<'b>,
        given: VarSet,
        perhaps: VarSet,
    ) -> Grouper<'b> {
        Grouper {
            source,
            given,
            perhaps,
            looks: self.looks + 1,
            depth: Cell::new(self.depth.get()),
        }
    }

    /// What an independent evaluation begins with.
    pub(crate) fn start(&self) -> Rows {
        Rows::given(&self.given)
    }

    /// The rows of a node; what is given is in them too.
    pub(crate) fn rows_of(
        &self,
        node: Node,
        cost: f64,
        certain: &VarSet,
        possible: &VarSet,
    ) -> Rows {
        let certain = certain.union(&self.given);
        Rows::of_node(node, cost, certain, possible.union(&self.given)).begun_with(&self.given)
    }

    /// Plans a pattern by itself.
    pub(crate) fn alone(&self, pattern: &Pattern) -> Rows {
        if self.source.patience.spend(UNITS_ALONE) {
            return self.start();
        }
        self.depth.set(self.depth.get() + 1);
        let rows = self.alone_at_depth(pattern);
        self.depth.set(self.depth.get() - 1);
        rows
    }

    fn alone_at_depth(&self, pattern: &Pattern) -> Rows {
        if let Pattern::Group {
            inner,
            by,
            aggregates,
        } = pattern
        {
            let certain_inside = &inner.certain();
            let (inner, aggregates) = match self.counted_ends(inner, by, aggregates) {
                Some(counted) => counted,
                None => (self.alone(inner), counting_rows(aggregates, certain_inside)),
            };
            let (cost, input_rows) = (inner.cost, inner.rows);
            // Groups are fewer than rows; how much fewer is not known.
            let rows = if by.is_empty() {
                1.0
            } else {
                input_rows.sqrt().max(1.0)
            };
            let mut input = inner.into_node();
            count_path_last(
                &mut input,
                by,
                &aggregates,
                &self.given.union(&self.perhaps),
            );
            let operator = Operator::Group {
                input: Box::new(input),
                by: by.clone(),
                aggregates,
            };
            return self.rows_of(
                node(operator, rows),
                cost + HASH * input_rows,
                &pattern.certain(),
                &pattern.possible(),
            );
        }
        match pattern {
            Pattern::Subquery(query) => return self.subquery(query),
            Pattern::EachGraph { scope, name, inner } => {
                return self.each_graph(*scope, *name, inner);
            }
            Pattern::Materialized { vars, rows } => {
                let operator = Operator::Materialized { vars: vars.clone() };
                let rows = *rows as f64;
                let bound = pattern.certain();
                return self.rows_of(node(operator, rows), rows, &bound, &bound);
            }
            _ => (),
        }
        self.group(pattern, self.start(), Place::Free, Vec::new())
            .expect("a free group can always be planned")
    }

    /// Plans a pattern as an extension of `rows`, which must be [`Rows::unit`] in a free place.
    ///
    /// `filters` are more conditions on the result. `None` where steps alone cannot do it, or
    /// would not give the bottom-up answer.
    pub(crate) fn group(
        &self,
        pattern: &Pattern,
        rows: Rows,
        place: Place,
        filters: Vec<Expression>,
    ) -> Option<Rows> {
        let patience = self.source.patience;
        let mut block = Block::of(pattern, &self.given, patience);
        if patience.spend(block.items.len() + block.operations.len()) {
            return Some(rows);
        }
        let shared = pattern.possible().intersection(&rows.possible);
        if !shared.is_subset(&rows.certain) || !block.commutes_with(&rows.possible, &self.given) {
            return None;
        }
        self.bind_by_equality(&mut block);
        let mut waiting = Waiting::default();
        let places: Vec<Option<usize>> = block
            .operations
            .iter()
            .map(|operation| match operation {
                Operation::Filter(expression) => Some(waiting.add(expression.clone())),
                _ => None,
            })
            .collect();
        for filter in filters {
            waiting.add(filter);
        }
        let mut rows = self.items(block.items, rows, place, &mut waiting)?;
        for (operation, filter) in block.operations.into_iter().zip(places) {
            if patience.spend(1) {
                return Some(rows);
            }
            waiting.apply(&mut rows, patience);
            match operation {
                Operation::Filter(_) => {
                    let filter = filter.and_then(|place| waiting.take(place));
                    if let Some(expression) = filter {
                        rows.filter(expression);
                    }
                }
                Operation::Extend { var, expression } => {
                    let certainly = never_fails(&expression, &rows.certain);
                    rows.extend(var, expression, certainly);
                }
                Operation::Optional {
                    right,
                    marks,
                    condition,
                } => {
                    rows = self.optional(rows, &right, &marks, condition, place)?;
                }
                Operation::Minus { right, domain } => {
                    rows = self.minus(rows, &right, &domain, place)?;
                }
                Operation::Exists { pattern, outcome } => {
                    rows = self.exists(rows, &pattern, outcome);
                }
            }
        }
        waiting.apply(&mut rows, patience);
        for expression in waiting.into_rest() {
            rows.filter(expression);
        }
        Some(rows)
    }

    /// Makes `FILTER(?x = <iri>)` and `FILTER(sameTerm(?x, term))` inline data, from which
    /// patterns can be explored. An IRI equals nothing but itself, so this says the same where
    /// the variable is bound by the patterns themselves.
    fn bind_by_equality(&self, block: &mut Block) {
        let mut certain = VarSet::default();
        for item in &block.items {
            certain.extend(&item.certain());
        }
        let items = &mut block.items;
        block.operations.retain(|operation| {
            let Operation::Filter(Expression::Compare(comparison, left, right)) = operation else {
                return true;
            };
            let (var, constant) = match (&**left, &**right) {
                (Expression::Variable(var), Expression::Constant(constant))
                | (Expression::Constant(constant), Expression::Variable(var)) => (*var, *constant),
                _ => return true,
            };
            let is_identity = match comparison {
                Comparison::SameTerm => true,
                Comparison::Equal => self.source.is_iri(constant),
                _ => false,
            };
            if !is_identity || !certain.contains(var) {
                return true;
            }
            items.push(Item::Values {
                vars: vec![var],
                rows: vec![vec![Some(constant)]],
            });
            false
        });
    }

    /// OPTIONAL: for each row where that is right, else a left join.
    fn optional(
        &self,
        rows: Rows,
        right: &Pattern,
        marks: &[(Var, Pattern)],
        condition: Option<Expression>,
        place: Place,
    ) -> Option<Rows> {
        if let (Pattern::Service(service), Place::Free) = (right, place) {
            return Some(self.service(rows, service, Some((marks, condition))));
        }
        let conjuncts = |condition| conjuncts(condition, self.source.patience);
        let conditions = condition.as_ref().map(conjuncts).unwrap_or_default();
        let inside = if marks.is_empty() {
            self.group(right, rows.as_left_side(), Place::Inside, conditions)
        } else {
            self.group(right, rows.as_left_side(), Place::Inside, Vec::new())
                .map(|inside| {
                    let mut inside = self.marked(inside, marks);
                    for condition in conditions {
                        inside.filter(condition);
                    }
                    inside
                })
        };
        let alone = (place == Place::Free).then(|| self.alone(right));
        match (inside, alone) {
            (Some(inside), alone)
                if alone.as_ref().is_none_or(|alone| {
                    inside.cost <= APART * (alone.cost + HASH * (alone.rows + rows.rows))
                }) =>
            {
                let mut rows = rows;
                let after = rows.rows.max(inside.rows);
                let step = Step::Optional {
                    steps: inside.steps,
                };
                rows.push(step, after, inside.cost);
                rows.possible.extend(&right.possible());
                Some(rows)
            }
            (_, Some(alone)) => Some(self.left_join(rows, alone, marks, condition)),
            (_, None) => None,
        }
    }

    fn items(
        &self,
        items: Vec<Item>,
        rows: Rows,
        place: Place,
        waiting: &mut Waiting,
    ) -> Option<Rows> {
        if place == Place::Inside {
            return self.complete(items, rows, place, waiting);
        }
        let mut rows = rows;
        let mut parts = components(items, self.source.patience);
        // What has no variables decides whether there is any answer at all.
        if let Some(position) = parts.iter().position(|part| part.vars.is_empty()) {
            let part = parts.remove(position);
            rows = self.complete(part.items, rows, place, waiting)?;
        }
        waiting.apply(&mut rows, self.source.patience);
        let mut planned = Vec::new();
        for part in parts {
            let start = std::mem::replace(&mut rows, self.start());
            if self.source.patience.spend(UNITS_ALONE) {
                return Some(rows);
            }
            planned.push(self.connected(part.items, start, waiting));
        }
        if planned.is_empty() {
            return Some(rows);
        }
        planned.sort_by(|a, b| a.rows.total_cmp(&b.rows));
        let mut planned = planned.into_iter();
        let mut joined = planned.next().unwrap_or(rows);
        for next in planned {
            joined = join(joined, next);
            waiting.apply(&mut joined, self.source.patience);
        }
        Some(joined)
    }

    /// Plans items that are connected by variables: from each start worth trying, to the end.
    fn connected(&self, items: Vec<Item>, rows: Rows, waiting: &mut Waiting) -> Rows {
        let patience = self.source.patience;
        let mut best: Option<(Rows, Waiting)> = None;
        let starts = self.starts(&items);
        let is_only_one = starts.len() == 1;
        for (start, rest) in starts {
            if patience.is_over() || patience.spend(waiting.len()) {
                return rows;
            }
            let mut left = match is_only_one {
                true => std::mem::take(waiting),
                false => waiting.clone(),
            };
            let is_apart = !matches!(start, Start::Explore(_) | Start::Service(_));
            let begun = match start {
                Start::Explore(relations) => {
                    explore(self.source, rows.clone(), &relations, &mut left)
                }
                Start::Union(branches) => Some(self.union_alone(&branches)),
                Start::Apart(pattern) => Some(self.alone(&pattern)),
                Start::Values(vars, cells) => Some(values(self.start(), vars, cells)),
                Start::Service(service) => Some(self.service(rows.clone(), &service, None)),
            };
            let Some(mut begun) = begun else {
                continue;
            };
            if is_apart {
                begun = join(rows.clone(), begun);
            }
            left.apply(&mut begun, patience);
            let finished = self
                .complete(rest, begun, Place::Free, &mut left)
                .expect("a free group can always be completed");
            if best
                .as_ref()
                .is_none_or(|(best, _)| finished.cost < best.cost)
            {
                best = Some((finished, left));
            }
        }
        let Some((rows, left)) = best else {
            assert!(patience.is_over(), "there is a start for each item");
            return rows;
        };
        *waiting = left;
        rows
    }

    /// What connected items can begin with, each with the items that are then left: the first few
    /// ways.
    fn starts(&self, items: &[Item]) -> Vec<(Start, Vec<Item>)> {
        let most = match self.depth.get() <= COMPARED_DEPTH {
            true => MAX_STARTS,
            false => 1,
        };
        let mut starts = Vec::new();
        let relations = items.iter().filter(|item| is_relation(item)).cloned();
        for part in components(relations.collect(), self.source.patience) {
            if starts.len() == most {
                return starts;
            }
            let explored = part.items.iter().filter_map(|i| self.relation(i)).collect();
            let is_left =
                |item: &&Item| !is_relation(item) || !item.possible().intersects(&part.vars);
            let rest = items.iter().filter(is_left).cloned().collect();
            starts.push((Start::Explore(explored), rest));
        }
        let is_asked_anyone = |service: &Service| {
            endpoint_variable(service).is_none_or(|var| self.given.contains(var))
        };
        for (index, item) in items.iter().enumerate() {
            if starts.len() >= most || self.source.patience.spend(1) {
                break;
            }
            let start = match item {
                Item::Service(service) if is_asked_anyone(service) => {
                    Start::Service(service.clone())
                }
                Item::Union(branches) => Start::Union(branches.clone()),
                Item::Apart(pattern) => Start::Apart(pattern.clone()),
                Item::Values { vars, rows } if !is_relation(item) => {
                    Start::Values(vars.clone(), rows.clone())
                }
                _ => continue,
            };
            let rest = self.without(items, index);
            if let Item::Values { vars, rows } = item
                && let Some(split) = split_values(vars, rows, &rest)
            {
                starts.push((split, Vec::new()));
            }
            starts.push((start, rest));
        }
        // Nothing binds the endpoint, which is an error once the query runs.
        let nothing_else = starts.is_empty();
        for (index, item) in items.iter().enumerate().filter(|_| nothing_else) {
            if starts.len() == most || self.source.patience.spend(1) {
                break;
            }
            if let Item::Service(service) = item {
                let rest = self.without(items, index);
                starts.push((Start::Service(service.clone()), rest));
            }
        }
        starts.truncate(most);
        starts
    }

    /// The items but one.
    fn without(&self, items: &[Item], index: usize) -> Vec<Item> {
        if self.source.patience.spend(items.len()) {
            return Vec::new();
        }
        let mut rest = items.to_vec();
        rest.remove(index);
        rest
    }

    /// The item as something to explore; inline data with undefined cells is not.
    fn relation(&self, item: &Item) -> Option<Relation> {
        match item {
            Item::Quad(quad) => Some(Relation::of_quad(self.source, *quad)),
            Item::Path(path) => Some(Relation::Path(path.clone())),
            Item::Graphs(slot) => Some(Relation::Graphs(*slot)),
            Item::Values { vars, rows } if is_relation(item) => {
                Some(Relation::Values(vars.clone(), rows.clone()))
            }
            _ => None,
        }
    }

    /// Joins the rest of the items to the rows, the connected ones first.
    fn complete(
        &self,
        items: Vec<Item>,
        mut rows: Rows,
        place: Place,
        waiting: &mut Waiting,
    ) -> Option<Rows> {
        let patience = self.source.patience;
        let mut items = Pending::new(items, patience);
        while !items.is_empty() {
            if patience.spend(1) {
                return Some(rows);
            }
            if let Some(taken) = items.take_relations(&rows, place == Place::Inside) {
                let taken: Vec<Relation> = taken.iter().filter_map(|i| self.relation(i)).collect();
                rows = explore(self.source, rows, &taken, waiting)?;
                continue;
            }
            if let Some(item) = items.take_next(&rows) {
                rows = self.join_item(item, rows, place)?;
            } else if place == Place::Inside {
                // Patterns that share variables which may be unbound, or share none.
                return None;
            } else {
                for part in components(items.take_all_but_endpoints(&rows), patience) {
                    let alone = self.connected(part.items, self.start(), waiting);
                    rows = join(rows, alone);
                }
            }
            waiting.apply(&mut rows, patience);
        }
        Some(rows)
    }

    /// Joins a union, inline data or a part that stands alone.
    fn join_item(&self, item: Item, rows: Rows, place: Place) -> Option<Rows> {
        match item {
            Item::Union(branches) => {
                let inside = self.union_inside(&branches, &rows);
                if place == Place::Inside {
                    return Some(inside?.joined(rows));
                }
                let alone = self.union_alone(&branches);
                let apart = join_cost(&rows, &alone);
                Some(match inside {
                    Some(inside) if rows.cost + inside.cost <= apart => inside.joined(rows),
                    _ => join(rows, alone),
                })
            }
            Item::Values { vars, rows: cells } => {
                let possible: VarSet = vars.iter().copied().collect();
                if possible
                    .intersection(&rows.possible)
                    .is_subset(&rows.certain)
                {
                    return Some(values(rows, vars, cells));
                }
                (place == Place::Free).then(|| join(rows, values(self.start(), vars, cells)))
            }
            Item::Apart(pattern) => {
                (place == Place::Free).then(|| join(rows, self.alone(&pattern)))
            }
            Item::Service(service) => {
                (place == Place::Free).then(|| self.service(rows, &service, None))
            }
            Item::Quad(_) | Item::Path(_) | Item::Graphs(_) => {
                unreachable!("quad patterns, paths and graphs are explored")
            }
        }
    }

    /// UNION with each branch explored from the rows.
    fn union_inside(&self, branches: &[Pattern], rows: &Rows) -> Option<Explored> {
        let mut steps = Vec::with_capacity(branches.len());
        let (mut found, mut cost) = (0.0, 0.0);
        let mut possible = VarSet::default();
        for branch in branches {
            if self.source.patience.spend(1) {
                return None;
            }
            let inside = self.group(branch, rows.as_left_side(), Place::Inside, Vec::new())?;
            found += inside.rows;
            cost += inside.cost + rows.rows;
            possible.extend(&inside.possible);
            steps.push(inside.steps);
        }
        Some(Explored {
            step: Step::Union(steps),
            rows: found,
            cost,
            certain: certain_of_union(branches),
            possible,
        })
    }

    /// UNION of independent branches.
    fn union_alone(&self, branches: &[Pattern]) -> Rows {
        let (mut found, mut cost) = (0.0, 0.0);
        let nodes = branches
            .iter()
            .take_while(|_| !self.source.patience.spend(1))
            .map(|branch| {
                let rows = self.alone(branch);
                found += rows.rows;
                cost += rows.cost;
                rows.into_node()
            })
            .collect();
        self.rows_of(
            node(Operator::Union(nodes), found),
            cost,
            &certain_of_union(branches),
            &possible_of_union(branches),
        )
    }

    fn left_join(
        &self,
        left: Rows,
        right: Rows,
        marks: &[(Var, Pattern)],
        condition: Option<Expression>,
    ) -> Rows {
        let (keys, loose) = shared(&left, &right);
        let found = joined_rows(&left, &right, &keys, &loose).max(left.rows);
        let compared = if keys.is_empty() {
            left.rows * right.rows
        } else {
            0.0
        };
        let cost = left.cost + right.cost + HASH * (left.rows + right.rows) + found + compared;
        let certain = left.certain.clone();
        let possible = left.possible.union(&right.possible);
        let joined = Rows {
            certain: left.certain.union(&right.certain),
            possible: possible.clone(),
            rows: found,
            ..Rows::unit()
        };
        let marks = self.marked(joined, marks);
        let cost = cost + marks.cost;
        let operator = Operator::LeftJoin {
            left: Box::new(left.into_node()),
            right: Box::new(right.into_node()),
            keys,
            loose,
            marks: marks.steps,
            condition,
        };
        Rows::of_node(node(operator, found), cost, certain, possible).begun_with(&self.given)
    }
}

/// The same aggregates, where `COUNT(?x)` is `COUNT(*)` if each row binds `?x`.
fn counting_rows(aggregates: &[(Var, Aggregate)], certain: &VarSet) -> Vec<(Var, Aggregate)> {
    let mut aggregates = aggregates.to_vec();
    for (_, aggregate) in &mut aggregates {
        let counts_rows = aggregate.function == AggregateFunction::Count
            && !aggregate.distinct
            && matches!(aggregate.operand, Some(Expression::Variable(var)) if certain.contains(var));
        if counts_rows {
            aggregate.operand = None;
        }
    }
    aggregates
}

/// What a connected group begins with.
enum Start {
    Explore(Vec<Relation>),
    Union(Vec<Pattern>),
    Apart(Pattern),
    Values(Vec<Var>, Cells),
    Service(Box<Service>),
}

/// The join of inline data that has undefined cells with other items, as a union: each branch
/// has the rows that define the same variables, from which patterns can be explored.
fn split_values(vars: &[Var], rows: &Cells, others: &[Item]) -> Option<Start> {
    let defined =
        |row: &[Option<ConstId>]| -> Vec<bool> { row.iter().map(Option::is_some).collect() };
    let mut masks: Vec<Vec<bool>> = rows.iter().map(|row| defined(row)).collect();
    masks.sort_unstable();
    masks.dedup();
    // A row that defines nothing joins with everything. What is evaluated by itself would be so
    // for each branch, and may be random.
    let is_useless = masks.iter().any(|mask| !mask.contains(&true));
    let is_apart = |item: &Item| matches!(item, Item::Union(_) | Item::Apart(_));
    if masks.len() > MAX_SPLIT || is_useless || others.is_empty() || others.iter().any(is_apart) {
        return None;
    }
    let mut branches: Vec<Pattern> = masks
        .iter()
        .map(|mask| {
            let places: Vec<usize> = (0..vars.len()).filter(|place| mask[*place]).collect();
            let cells = rows.iter().filter(|row| defined(row) == *mask);
            let values = Pattern::Values {
                vars: places.iter().map(|place| vars[*place]).collect(),
                rows: cells
                    .map(|row| places.iter().map(|place| row[*place]).collect())
                    .collect(),
            };
            let others = others.iter().cloned().map(Pattern::from);
            Pattern::Join(std::iter::once(values).chain(others).collect())
        })
        .collect();
    Some(match branches.len() {
        1 => Start::Apart(branches.remove(0)),
        _ => Start::Union(branches),
    })
}
