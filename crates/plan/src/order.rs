//! In which order are the patterns of a group explored?
//!
//! A beam search over the sets of bound variables: a move binds one variable through all the
//! edges that lead to it from what is bound already (or scans it, at the start only), matches
//! one general quad pattern, or joins inline data. Patterns whose variables are all bound are
//! checked at once. Groups of up to [`EXHAUSTIVE_VARIABLES`] variables are searched nearly
//! exhaustively. A move always shares a variable with what is bound, so a connected group never
//! gets a cross product.

use jindou_model::{Direction, GraphRef, PredicateId};
use rustc_hash::FxHashMap;

use crate::algebra::{PathPattern, Quad};
use crate::estimate_path::Reach;
use crate::facts::{Edge, Facts, Source, count, size, type_population};
use crate::patience::Patience;
use crate::physical::{ConstId, Requirement, Scope, Side, Slot, Step, Var};
use crate::rows::{Filter, Rows, Waiting};
use crate::varset::VarSet;

const EXHAUSTIVE_VARIABLES: usize = 8;
const EXHAUSTIVE_WIDTH: usize = 256;
const WIDTH: usize = 16;
/// Groups of more patterns than this are searched by their best move alone.
const GREEDY_PATTERNS: usize = 64;
/// Bounds the work of a search: moves tried, each of which looks at all patterns.
const MAX_LOOKS: usize = 20_000_000;

// Work in rows handled; a row of a scan is 1.
const LOOK_UP: f64 = 5.0;
/// Where each key has one neighbour: there are no lists whose ends have to be found.
const LOOK_UP_ONE: f64 = 3.0;
const CHECK: f64 = 6.0;
const INTERSECT: f64 = 10.0;
const MATCH: f64 = 50.0;
/// `Has` is asked for where it keeps less than this part.
const PRUNES: f64 = 0.95;
/// Quads of one subject and of one object, where nothing is known.
const QUADS_OF_SUBJECT: f64 = 8.0;
const QUADS_OF_OBJECT: f64 = 3.0;

/// What a group joins by exploration.
#[derive(Clone, Debug)]
pub(crate) enum Relation {
    Edge(Edge),
    /// Of a vertex, in a scope.
    Type(Slot, ConstId, Scope),
    Match(Quad),
    Path(PathPattern),
    /// Without undefined cells.
    Values(Vec<Var>, Vec<Vec<Option<ConstId>>>),
    Graphs(Slot),
}

impl Relation {
    pub(crate) fn of_quad(source: &Source<'_>, quad: Quad) -> Self {
        match quad.predicate {
            Slot::Const(predicate) if source.is_edge(&quad) => match quad.object {
                // A literal as a type is an edge like others: characteristic sets have no such.
                Slot::Const(class) if source.is_type(predicate) && source.is_iri(class) => {
                    Self::Type(quad.subject, class, quad.scope)
                }
                object => Self::Edge(Edge {
                    subject: quad.subject,
                    predicate,
                    object,
                    scope: quad.scope,
                }),
            },
            _ => Self::Match(quad),
        }
    }

    pub(crate) fn variables(&self) -> VarSet {
        let of = |slots: &[Slot]| {
            slots
                .iter()
                .filter_map(|slot| match slot {
                    Slot::Var(var) => Some(*var),
                    Slot::Const(_) => None,
                })
                .collect()
        };
        match self {
            Self::Edge(edge) => match edge.scope {
                Scope::Default | Scope::Named => of(&[edge.subject, edge.object]),
                Scope::Graph(graph) => of(&[edge.subject, edge.object, graph]),
            },
            Self::Type(slot, _, Scope::Graph(graph)) => of(&[*slot, *graph]),
            Self::Type(slot, ..) | Self::Graphs(slot) => of(&[*slot]),
            Self::Match(quad) => quad.variables().collect(),
            Self::Path(path) => path.variables().collect(),
            Self::Values(vars, _) => vars.iter().copied().collect(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Move {
    Bind(Var),
    /// In the merge of all named graphs, whatever these are called.
    BindAnywhere(Var),
    /// The relation of this number.
    Join(usize),
}

/// What was done about a relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Open,
    /// It is in one of the named graphs, but not known in which.
    Followed,
    Done,
}

/// What a move acts on: a state of the search, or the plan being written.
trait Sink {
    fn rows(&self) -> f64;
    fn bound(&self) -> &VarSet;
    fn push(&mut self, step: impl FnOnce() -> Step, rows: f64, cost: f64);
    fn bind(&mut self, var: Var);
    /// Applies the filters that have become ready.
    fn filter(&mut self);
}

#[derive(Clone)]
struct State<'a> {
    bound: VarSet,
    done: Vec<Progress>,
    /// Each filter, and whether it waits.
    filters: Vec<(&'a Filter, bool)>,
    rows: f64,
    cost: f64,
    moves: Vec<Move>,
}

impl Sink for State<'_> {
    fn rows(&self) -> f64 {
        self.rows
    }

    fn bound(&self) -> &VarSet {
        &self.bound
    }

    fn push(&mut self, _: impl FnOnce() -> Step, rows: f64, cost: f64) {
        self.rows = rows;
        self.cost += cost;
    }

    fn bind(&mut self, var: Var) {
        self.bound.insert(var);
    }

    fn filter(&mut self) {
        for (filter, waits) in &mut self.filters {
            if *waits && filter.misses(&self.bound).is_none() {
                *waits = false;
                self.cost += self.rows;
                self.rows *= filter.kept;
            }
        }
    }
}

struct Writer<'a> {
    patience: &'a Patience<'a>,
    rows: &'a mut Rows,
    waiting: &'a mut Waiting,
}

impl Sink for Writer<'_> {
    fn rows(&self) -> f64 {
        self.rows.rows
    }

    fn bound(&self) -> &VarSet {
        &self.rows.certain
    }

    fn push(&mut self, step: impl FnOnce() -> Step, rows: f64, cost: f64) {
        self.rows.push(step(), rows, cost);
    }

    fn bind(&mut self, var: Var) {
        self.rows.bind(var, true);
    }

    fn filter(&mut self) {
        self.waiting.apply(self.rows, self.patience);
    }
}

/// Explores `relations` from `rows`, applying filters as they become ready.
///
/// Each variable shared with `rows` must be certainly bound there. `None` where the relations
/// are not connected to `rows`, or not to each other.
pub(crate) fn explore(
    source: &Source<'_>,
    mut rows: Rows,
    relations: &[Relation],
    waiting: &mut Waiting,
) -> Option<Rows> {
    let patience = source.patience;
    if patience.spend(relations.len() + waiting.len()) {
        return Some(rows);
    }
    let edges: Vec<Edge> = relations
        .iter()
        .filter_map(|relation| match relation {
            Relation::Edge(edge) => Some(*edge),
            _ => None,
        })
        .collect();
    let types: Vec<(Slot, ConstId, Scope)> = relations
        .iter()
        .filter_map(|relation| match relation {
            Relation::Type(slot, class, scope) => Some((*slot, *class, *scope)),
            _ => None,
        })
        .collect();
    let problem = Problem {
        given: rows.given.clone(),
        facts: Facts::gather(source, &edges, &types, &rows.certain, &rows.known),
        relations,
        variables: relations.iter().map(Relation::variables).collect(),
    };
    waiting.estimate(&|var| problem.facts.known_population(var));
    let moves = match problem.search(&rows, waiting) {
        _ if patience.is_over() => return Some(rows),
        moves => moves?,
    };
    let mut done = vec![Progress::Open; relations.len()];
    let mut writer = Writer {
        patience,
        rows: &mut rows,
        waiting,
    };
    problem.settle(&mut done, &mut writer);
    for next in moves {
        if patience.spend(relations.len()) {
            return Some(rows);
        }
        problem.make(next, &mut done, &mut writer);
    }
    let is_complete = done.iter().all(|done| *done == Progress::Done);
    assert!(is_complete || patience.is_over(), "a pattern was left out");
    for (place, memberships) in problem.facts.memberships() {
        rows.known.insert(place, memberships.clone());
    }
    Some(rows)
}

struct Problem<'a> {
    /// What the one row that it begins with binds, if it is one.
    given: VarSet,
    facts: Facts<'a>,
    relations: &'a [Relation],
    variables: Vec<VarSet>,
}

impl Problem<'_> {
    fn search(&self, rows: &Rows, waiting: &Waiting) -> Option<Vec<Move>> {
        let mut start = State {
            bound: rows.certain.clone(),
            done: vec![Progress::Open; self.relations.len()],
            filters: waiting
                .iter()
                .filter(|filter| !filter.is_volatile())
                .map(|filter| (filter, true))
                .collect(),
            rows: rows.rows,
            cost: 0.0,
            moves: Vec::new(),
        };
        self.settle_state(&mut start);
        let mut all = VarSet::default();
        for vars in &self.variables {
            all.extend(vars);
        }
        let patterns = self.relations.len().max(1);
        let width = if all.iter().count() <= EXHAUSTIVE_VARIABLES {
            EXHAUSTIVE_WIDTH
        } else if patterns <= GREEDY_PATTERNS {
            WIDTH
        } else {
            1
        };
        let most_moves = (MAX_LOOKS / (patterns * patterns)).max(1);
        let patience = self.facts.source.patience;
        let mut best: Option<State<'_>> = None;
        let mut level = vec![start];
        while !level.is_empty() {
            let mut next: FxHashMap<VarSet, State<'_>> = FxHashMap::default();
            for state in level {
                if patience.is_over() {
                    return None;
                }
                if state.done.iter().all(|done| *done == Progress::Done) {
                    if best.as_ref().is_none_or(|best| is_better(&state, best)) {
                        best = Some(state);
                    }
                    continue;
                }
                for candidate in self.moves(&state, most_moves) {
                    if patience.spend(state.done.len() + state.filters.len()) {
                        return None;
                    }
                    let mut after = state.clone();
                    let mut done = std::mem::take(&mut after.done);
                    self.make(candidate, &mut done, &mut after);
                    after.done = done;
                    after.moves.push(candidate);
                    match next.get(&after.bound) {
                        Some(known) if !is_better(&after, known) => (),
                        _ => {
                            next.insert(after.bound.clone(), after);
                        }
                    }
                }
            }
            level = next.into_values().collect();
            level.sort_by(|a, b| {
                a.cost
                    .total_cmp(&b.cost)
                    .then_with(|| a.moves.cmp(&b.moves))
            });
            level.truncate(width);
        }
        best.map(|state| state.moves)
    }

    fn settle_state(&self, state: &mut State<'_>) {
        let mut done = std::mem::take(&mut state.done);
        self.settle(&mut done, state);
        state.done = done;
    }

    /// What may be done next: only what shares a variable with the rows, if they have any.
    /// The first `most` of them.
    fn moves(&self, state: &State<'_>, most: usize) -> Vec<Move> {
        let mut moves = Vec::new();
        let mut bound = [VarSet::default(), VarSet::default()];
        let is_start = state.bound.is_subset(&self.given);
        for (index, relation) in self.relations.iter().enumerate() {
            if moves.len() >= most {
                break;
            }
            if state.done[index] == Progress::Done {
                continue;
            }
            if !is_start && !self.variables[index].intersects(&state.bound) {
                continue;
            }
            match relation {
                Relation::Edge(Edge {
                    subject, object, ..
                }) => self.bind_ends(&[*subject, *object], index, state, &mut bound, &mut moves),
                Relation::Type(slot, ..) => {
                    self.bind_ends(&[*slot], index, state, &mut bound, &mut moves);
                }
                Relation::Match(_)
                | Relation::Path(_)
                | Relation::Values(..)
                | Relation::Graphs(_) => {
                    moves.push(Move::Join(index));
                }
            }
        }
        moves.truncate(most);
        moves
    }

    /// Ends that are not bound may be; where all are, the graph may.
    fn bind_ends(
        &self,
        ends: &[Slot],
        index: usize,
        state: &State<'_>,
        bound: &mut [VarSet; 2],
        moves: &mut Vec<Move>,
    ) {
        let [bound, anywhere] = bound;
        let is_open = self.has_open_graph(index, state);
        let mut all_bound = true;
        for end in ends {
            if let Slot::Var(var) = end
                && !state.bound.contains(*var)
            {
                all_bound = false;
                if !bound.contains(*var) {
                    bound.insert(*var);
                    moves.push(Move::Bind(*var));
                }
                if is_open && !anywhere.contains(*var) {
                    anywhere.insert(*var);
                    moves.push(Move::BindAnywhere(*var));
                }
            }
        }
        if all_bound {
            moves.push(Move::Join(index));
        }
    }

    /// True if the graph of a relation is a variable that is not bound.
    fn has_open_graph(&self, index: usize, state: &State<'_>) -> bool {
        let scope = match &self.relations[index] {
            Relation::Edge(edge) => edge.scope,
            Relation::Type(_, _, scope) => *scope,
            _ => return false,
        };
        matches!(scope, Scope::Graph(Slot::Var(graph)) if !state.bound.contains(graph))
    }

    fn make(&self, next: Move, done: &mut [Progress], sink: &mut impl Sink) {
        match next {
            Move::Bind(var) => self.bind(var, done, sink),
            Move::BindAnywhere(var) => self.bind_anywhere(var, done, sink),
            Move::Join(index) => self.join(index, done, sink),
        }
        self.settle(done, sink);
    }

    /// Binds `var` through the edges of one scope that lead to it from what is bound.
    fn bind(&self, var: Var, done: &mut [Progress], sink: &mut impl Sink) {
        let scope = self.scope_to_bind(var, done, sink.bound());
        let sides = self.sides_to(var, scope, done, sink.bound());
        let requires = self.requirements(var, scope, &sides);
        let has_type = requires
            .iter()
            .any(|required| matches!(required, Requirement::Type(_)));
        for (index, relation) in self.relations.iter().enumerate() {
            if let Relation::Type(slot, _, of) = relation
                && *slot == Slot::Var(var)
                && *of == scope
            {
                done[index] = Progress::Done;
            }
        }
        let graph = match scope {
            Scope::Graph(Slot::Var(graph)) if !sink.bound().contains(graph) => Some(graph),
            _ => None,
        };
        let in_scope: Vec<(Side, Scope)> = sides.iter().map(|side| (*side, scope)).collect();
        let (after, cost) = match in_scope.is_empty() {
            false => self.bound_by(var, &in_scope, sink.rows()),
            true => self.scanned(self.facts.population_in(var, scope), sink.rows()),
        };
        let binds_graph = graph.is_some() && (has_type || !sides.is_empty());
        let after = match binds_graph {
            true => after * self.graphs_of_an_edge(),
            false => after,
        };
        sink.push(
            || Step::Bind {
                var,
                requires,
                sides,
                scope,
            },
            after,
            cost,
        );
        sink.bind(var);
        if let (Some(graph), true) = (graph, binds_graph) {
            sink.bind(graph);
        }
    }

    /// Binds `var` through all edges of graphs with variables for names, in the merge of all named
    /// graphs: so edges of several graphs are intersected, and what is found is asked for its graphs
    /// by checks of these edges.
    fn bind_anywhere(&self, var: Var, done: &mut [Progress], sink: &mut impl Sink) {
        let mut sides: Vec<(Side, Scope)> = Vec::new();
        for (progress, relation) in done.iter_mut().zip(self.relations) {
            if *progress == Progress::Done {
                continue;
            }
            match relation {
                Relation::Edge(edge) if is_variable(edge.scope) => {
                    let Some(side) = side_to(edge, var, sink.bound()) else {
                        continue;
                    };
                    *progress = Progress::Followed;
                    if !sides.iter().any(|(known, _)| *known == side) {
                        sides.push((side, edge.scope));
                    }
                }
                Relation::Type(slot, _, scope)
                    if *slot == Slot::Var(var) && is_variable(*scope) =>
                {
                    *progress = Progress::Followed;
                }
                _ => {}
            }
        }
        sides.sort_by(|a, b| self.raw(a.1, &a.0).total_cmp(&self.raw(b.1, &b.0)));
        let (after, cost) = match sides.is_empty() {
            false => self.bound_by(var, &sides, sink.rows()),
            true => {
                let scopes = self.facts.variable_graphs(var);
                let populations = scopes.map(|scope| self.facts.population_in(var, scope));
                self.scanned(populations.fold(f64::INFINITY, f64::min), sink.rows())
            }
        };
        let sides: Vec<Side> = sides.into_iter().map(|(side, _)| side).collect();
        let mut requires: Vec<Requirement> = Vec::new();
        for scope in self.facts.variable_graphs(var) {
            for required in self.requirements(var, scope, &sides) {
                if !requires.contains(&required) {
                    requires.push(required);
                }
            }
        }
        requires.sort_by_key(|required| matches!(required, Requirement::Has(..)));
        let scope = Scope::Named;
        let step = || Step::Bind {
            var,
            requires,
            sides,
            scope,
        };
        sink.push(step, after, cost);
        sink.bind(var);
    }

    /// Rows after so many vertices were scanned for each of so many rows, and what that costs.
    fn scanned(&self, population: f64, rows: f64) -> (f64, f64) {
        (rows * population, rows * (LOOK_UP + population))
    }

    /// Rows after a variable was bound through these sides to so many rows, and what that costs.
    fn bound_by(&self, var: Var, sides: &[(Side, Scope)], rows: f64) -> (f64, f64) {
        let population = self.facts.population(var);
        let (first, scope) = &sides[0];
        let (mut found, mut least) = (population.max(1.0), f64::INFINITY);
        for (side, scope) in sides {
            let (from, predicate, direction) = (side.from, side.predicate, side.direction);
            let of_side = self.facts.reached(*scope, from, predicate, direction, var);
            found *= of_side / population.max(1.0);
            least = least.min(of_side);
        }
        let after = rows * found.min(least);
        let raw = self.raw(*scope, first);
        let handled = match sides.len() {
            1 => self.look_up(*scope, first) + raw,
            sides_len => size(sides_len) * LOOK_UP + INTERSECT + 2.0 * raw,
        };
        (after, rows * handled + after)
    }

    /// The scope through which a variable is bound best: that of the edge with the fewest ends, else
    /// the one in which the fewest vertices have what is asked of them, those of known graphs first.
    fn scope_to_bind(&self, var: Var, done: &[Progress], bound: &VarSet) -> Scope {
        let mut best: Option<(f64, Scope)> = None;
        for (index, relation) in self.relations.iter().enumerate() {
            if let Relation::Edge(edge) = relation
                && done[index] != Progress::Done
                && let Some(side) = side_to(edge, var, bound)
            {
                let (from, predicate, direction) = (side.from, side.predicate, side.direction);
                let of_side = self
                    .facts
                    .reached(edge.scope, from, predicate, direction, var);
                if best.is_none_or(|(least, _)| of_side < least) {
                    best = Some((of_side, edge.scope));
                }
            }
        }
        if let Some((_, scope)) = best {
            return scope;
        }
        // A graph that is known connects a scan with the rows.
        let is_known = |scope: &Scope| match scope {
            Scope::Graph(Slot::Var(graph)) => bound.contains(*graph),
            Scope::Graph(Slot::Const(_)) | Scope::Default | Scope::Named => false,
        };
        let known = self.facts.narrowest(var, is_known);
        let scope = known.or_else(|| self.facts.narrowest(var, |_| true));
        scope.unwrap_or(Scope::Default)
    }

    /// The edges of a scope that lead to a variable from what is bound, which are done then.
    fn sides_to(&self, var: Var, scope: Scope, done: &mut [Progress], bound: &VarSet) -> Vec<Side> {
        let mut sides = Vec::new();
        for (index, relation) in self.relations.iter().enumerate() {
            if let Relation::Edge(edge) = relation
                && done[index] != Progress::Done
                && edge.scope == scope
                && let Some(side) = side_to(edge, var, bound)
            {
                done[index] = Progress::Done;
                sides.push(side);
            }
        }
        sides.sort_by(|a, b| self.raw(scope, a).total_cmp(&self.raw(scope, b)));
        sides
    }

    fn raw(&self, scope: Scope, side: &Side) -> f64 {
        self.facts
            .fanout(scope, side.from, side.predicate, side.direction)
    }

    /// How many of the named graphs have an edge that one of them has.
    fn graphs_of_an_edge(&self) -> f64 {
        let statistics = self.facts.source.statistics;
        let edges = count(statistics.triples(GraphRef::Named)).max(1.0);
        (count(statistics.named_quads()) / edges).max(1.0)
    }

    fn look_up(&self, scope: Scope, side: &Side) -> f64 {
        let source = self.facts.source;
        let segment = source.segment(scope, side.predicate, side.direction);
        match segment.edges == segment.keys {
            true => LOOK_UP_ONE,
            false => LOOK_UP,
        }
    }

    /// All types of the variable, then those of its other edges that are worth asking for.
    fn requirements(&self, var: Var, scope: Scope, sides: &[Side]) -> Vec<Requirement> {
        let Some(asked) = self.facts.asked(var, scope) else {
            return Vec::new();
        };
        let source = self.facts.source;
        let mut types = asked.types.clone();
        let population = |class: &ConstId| type_population(source, scope, *class);
        types.sort_by(|a, b| population(a).total_cmp(&population(b)));
        let mut requires: Vec<Requirement> = types
            .iter()
            .map(|class| Requirement::Type(*class))
            .collect();
        let keys = |(predicate, direction): (ConstId, Direction)| {
            source.segment(scope, predicate, direction).keys
        };
        let mut others: Vec<(ConstId, Direction)> = asked
            .edges
            .iter()
            .copied()
            .filter(|(predicate, direction)| {
                !sides.iter().any(|side| {
                    side.predicate == *predicate && side.direction.reverse() == *direction
                })
            })
            .collect();
        others.sort_by_key(|other| keys(*other));
        // A scan needs something to go by; that first one is exact, for literals too.
        let first = if sides.is_empty() && requires.is_empty() {
            1.min(others.len())
        } else {
            0
        };
        let rest = others.split_off(first);
        requires.extend(others.iter().map(|(p, d)| Requirement::Has(*p, *d)));
        if asked.may_be_literal {
            return requires;
        }
        let over = sides
            .first()
            .map(|side| (side.predicate, side.direction.reverse()))
            .or_else(|| others.first().copied());
        let mut pruning: Vec<((ConstId, Direction), f64)> = rest
            .into_iter()
            .filter(|(predicate, _)| source.predicate(*predicate) != Some(PredicateId::TYPE))
            .filter_map(|other| {
                let kept = self.facts.kept_by(scope, over, &types, other)?;
                (kept < PRUNES).then_some((other, kept))
            })
            .collect();
        pruning.sort_by(|a, b| a.1.total_cmp(&b.1));
        requires.extend(
            pruning
                .into_iter()
                .map(|((predicate, direction), _)| Requirement::Has(predicate, direction)),
        );
        requires
    }

    fn join(&self, index: usize, done: &mut [Progress], sink: &mut impl Sink) {
        let before = std::mem::replace(&mut done[index], Progress::Done);
        let rows = sink.rows();
        match &self.relations[index] {
            Relation::Match(quad) => {
                let after = rows * self.matches(quad, sink.bound());
                sink.push(|| match_step(quad), after, rows * MATCH + after);
            }
            Relation::Path(path) => {
                let reach = Reach::of(path, self.facts.source, self.graphs(), sink.bound());
                let after = rows * reach.found;
                sink.push(|| path_step(path), after, rows * reach.visited + after);
            }
            Relation::Values(vars, cells) => {
                let mut found = size(cells.len());
                for var in vars {
                    if sink.bound().contains(*var) {
                        found /= self.facts.population(*var).max(1.0);
                    }
                }
                sink.push(
                    || Step::Values {
                        vars: vars.clone(),
                        rows: cells.clone(),
                    },
                    rows * found,
                    rows * (1.0 + found),
                );
            }
            Relation::Graphs(graph) => {
                let graphs = self.graphs();
                let after = match graph {
                    Slot::Var(var) if !sink.bound().contains(*var) => rows * graphs,
                    _ => rows,
                };
                sink.push(|| Step::Graphs { graph: *graph }, after, rows + after);
            }
            // Their ends are bound, but not their graph.
            Relation::Edge(edge) => self.check(edge, before, sink),
            Relation::Type(slot, _, scope) => {
                done[index] = before;
                self.test(*slot, *scope, done, sink);
            }
        }
        for var in self.variables[index].iter() {
            sink.bind(var);
        }
    }

    /// Filters that are ready, and everything whose variables are all bound.
    fn settle(&self, done: &mut [Progress], sink: &mut impl Sink) {
        sink.filter();
        for index in 0..self.relations.len() {
            if done[index] == Progress::Done || !self.variables[index].is_subset(sink.bound()) {
                continue;
            }
            match &self.relations[index] {
                Relation::Type(slot, _, scope) => self.test(*slot, *scope, done, sink),
                Relation::Edge(edge) => {
                    let before = std::mem::replace(&mut done[index], Progress::Done);
                    self.check(edge, before, sink);
                }
                Relation::Match(_)
                | Relation::Path(_)
                | Relation::Values(..)
                | Relation::Graphs(_) => {
                    self.join(index, done, sink);
                }
            }
        }
    }

    /// Tests a known vertex for all the types asked of it.
    fn test(&self, slot: Slot, scope: Scope, done: &mut [Progress], sink: &mut impl Sink) {
        let mut requires = Vec::new();
        let mut kept = 1.0;
        let vertices = count(self.facts.source.statistics.vertices()).max(1.0);
        for (index, relation) in self.relations.iter().enumerate() {
            if let Relation::Type(of, class, of_scope) = relation
                && (*of, *of_scope) == (slot, scope)
                && done[index] != Progress::Done
            {
                let before = std::mem::replace(&mut done[index], Progress::Done);
                requires.push(Requirement::Type(*class));
                if let (Slot::Var(var), Progress::Open) = (slot, before) {
                    let of_all = type_population(self.facts.source, scope, *class) / vertices;
                    let of_known = self.facts.kept_by_type(var, scope, *class);
                    kept *= of_known.unwrap_or(of_all);
                }
            }
        }
        let rows = sink.rows();
        let step = || Step::Test {
            slot,
            requires,
            scope,
        };
        sink.push(step, rows * kept, rows);
    }

    /// Checks an edge between two known ends, from the end that has fewer.
    fn check(&self, edge: &Edge, before: Progress, sink: &mut impl Sink) {
        let fanout = |direction| {
            self.facts
                .fanout(edge.scope, edge.end(direction), edge.predicate, direction)
        };
        let (out, into) = (fanout(Direction::Out), fanout(Direction::In));
        let chance = |fanout: f64, to: Slot| match to {
            Slot::Var(var) => (fanout / self.facts.population(var).max(1.0)).min(1.0),
            Slot::Const(_) => fanout.min(1.0),
        };
        let (direction, kept) = match (edge.subject, edge.object) {
            (Slot::Const(_), Slot::Var(_)) => (Direction::Out, chance(out, edge.object)),
            (Slot::Var(_), Slot::Const(_)) => (Direction::In, chance(into, edge.subject)),
            _ if out <= into => (Direction::Out, chance(out, edge.object)),
            _ => (Direction::In, chance(into, edge.subject)),
        };
        let kept = match (before, edge.scope) {
            (Progress::Followed, Scope::Graph(Slot::Var(graph)))
                if !sink.bound().contains(graph) =>
            {
                self.graphs_of_an_edge()
            }
            (Progress::Followed, _) => 1.0,
            (Progress::Open | Progress::Done, _) => kept,
        };
        let rows = sink.rows();
        let side = Side {
            from: edge.end(direction),
            predicate: edge.predicate,
            direction,
        };
        let to = edge.end(direction.reverse());
        let scope = edge.scope;
        sink.push(
            || Step::Check { side, to, scope },
            rows * kept,
            rows * CHECK,
        );
    }

    fn graphs(&self) -> f64 {
        match self.facts.source.dataset {
            Some((_, named)) => size(named),
            None => count(self.facts.source.statistics.named_graphs()),
        }
        .max(1.0)
    }

    /// Quads that a general pattern is expected to match for one row.
    fn matches(&self, quad: &Quad, bound: &VarSet) -> f64 {
        let statistics = self.facts.source.statistics;
        let is_known = |slot: Slot| match slot {
            Slot::Const(_) => true,
            Slot::Var(var) => bound.contains(var),
        };
        let of_one_graph = count(statistics.named_quads()) * statistics.graph_share();
        let source = self.facts.source;
        let mut found = match (quad.scope, source.dataset) {
            _ if let Some(graph) = source.of_windows(quad.scope) => {
                count(statistics.triples(graph))
            }
            (Scope::Default, None) => count(statistics.triples(source.graph(quad.scope))),
            (Scope::Default, Some((default, _))) => of_one_graph * size(default),
            (Scope::Named, _) => count(statistics.named_quads()),
            (Scope::Graph(graph), _) if is_known(graph) => of_one_graph,
            (Scope::Graph(_), None) => count(statistics.named_quads()),
            (Scope::Graph(_), Some((_, named))) => of_one_graph * size(named),
        };
        let all = found.max(1.0);
        let known_ends = [
            (quad.subject, QUADS_OF_SUBJECT),
            (quad.object, QUADS_OF_OBJECT),
        ];
        for (end, quads) in known_ends {
            if is_known(end) {
                found *= (quads / all).min(1.0);
            }
        }
        if quad.subject == quad.object {
            found /= all.sqrt();
        }
        match quad.predicate {
            Slot::Const(predicate) => {
                let source = self.facts.source;
                let edges = count(source.segment(quad.scope, predicate, Direction::Out).edges);
                let triples = count(statistics.triples(source.graph(quad.scope))).max(1.0);
                found * edges / triples
            }
            Slot::Var(var) if bound.contains(var) => {
                found / f64::from(statistics.predicates().max(1))
            }
            Slot::Var(_) => found,
        }
    }
}

/// The way over an edge to a variable, if its other end is known.
fn side_to(edge: &Edge, var: Var, bound: &VarSet) -> Option<Side> {
    let is_end = edge.subject == Slot::Var(var) || edge.object == Slot::Var(var);
    let direction = edge.direction_from(var).reverse();
    let from = edge.end(direction);
    let is_known = match from {
        Slot::Const(_) => true,
        Slot::Var(from) => bound.contains(from),
    };
    (is_end && is_known).then_some(Side {
        from,
        predicate: edge.predicate,
        direction,
    })
}

/// True of a graph that has a variable for a name.
fn is_variable(scope: Scope) -> bool {
    matches!(scope, Scope::Graph(Slot::Var(_)))
}

fn match_step(quad: &Quad) -> Step {
    Step::Match {
        subject: quad.subject,
        predicate: quad.predicate,
        object: quad.object,
        scope: quad.scope,
    }
}

fn path_step(path: &PathPattern) -> Step {
    Step::Path {
        subject: path.subject,
        path: path.path.clone(),
        object: path.object,
        scope: path.scope,
    }
}

fn is_better(a: &State<'_>, b: &State<'_>) -> bool {
    a.cost
        .total_cmp(&b.cost)
        .then_with(|| a.rows.total_cmp(&b.rows))
        .then_with(|| a.moves.cmp(&b.moves))
        .is_lt()
}
