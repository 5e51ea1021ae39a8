//! How many vertices can a variable stand for, and how many edges lead from it?
//!
//! All quad patterns of a group are gathered by variable: what is asked of a variable's vertex
//! (its types, its edges) selects its characteristic sets, from which counts are exact. Counts
//! of two ends of an edge are combined as if they were independent.

use std::cell::RefCell;

use std::sync::Arc;

use jindou_model::{Direction, GraphRef, PredicateId, TermId};
use oxrdf::Term;
use oxrdf::vocab::rdf;
use rustc_hash::FxHashMap;

use crate::algebra::Quad;
use crate::patience::Patience;
use crate::physical::{ConstId, Constant, Scope, Slot, Var};
use crate::statistics::{Membership, SegmentStatistics, Statistics};
use crate::varset::VarSet;

/// Part of a population that a requirement is taken to leave where statistics cannot tell.
const UNKNOWN_PART: f64 = 0.1;

/// The data as one query sees it.
pub(crate) struct Source<'a> {
    pub(crate) statistics: &'a dyn Statistics,
    pub(crate) constants: &'a [Constant],
    /// Graphs merged into the default graph, and named graphs, where a dataset is given.
    pub(crate) dataset: Option<(usize, usize)>,
    /// Without a dataset, all graphs are the default graph.
    union: bool,
    pub(crate) patience: &'a Patience<'a>,
    /// Every quad pattern is matched in full generality, as what is bound is not known before.
    general: bool,
    /// The graphs whose merge is the default graph, where windows are among them: of these all
    /// figures are known.
    default_graphs: Option<Arc<[TermId]>>,
    degrees: RefCell<FxHashMap<(ConstId, ConstId, Direction, Scope), f64>>,
}

impl<'a> Source<'a> {
    pub(crate) fn new(
        statistics: &'a dyn Statistics,
        constants: &'a [Constant],
        dataset: Option<(usize, usize)>,
        union: bool,
        patience: &'a Patience<'a>,
    ) -> Self {
        Self {
            statistics,
            constants,
            dataset,
            union,
            patience,
            general: false,
            default_graphs: None,
            degrees: RefCell::default(),
        }
    }

    /// The same with a default graph that is the merge of these, windows among them.
    pub(crate) fn with_default(self, graphs: Option<Vec<TermId>>) -> Self {
        Self {
            default_graphs: graphs.map(Arc::from),
            ..self
        }
    }

    /// The same data, in which quad patterns may find their variables bound or not.
    pub(crate) fn general(&self) -> Self {
        let (dataset, union) = (self.dataset, self.union);
        Self {
            general: true,
            default_graphs: self.default_graphs.clone(),
            ..Self::new(
                self.statistics,
                self.constants,
                dataset,
                union,
                self.patience,
            )
        }
    }

    /// The graph whose figures say most of a scope. Those of a named graph are in its layer: which
    /// graph it is may not be known before the query runs.
    pub(crate) fn graph(&self, scope: Scope) -> GraphRef<'_> {
        if let Some(graph) = self.of_windows(scope) {
            return graph;
        }
        match (scope, self.dataset) {
            (Scope::Default, None) if self.union => GraphRef::Union,
            (Scope::Default, None) => GraphRef::Default,
            (Scope::Default | Scope::Graph(_) | Scope::Named, _) => GraphRef::Named,
        }
    }

    /// True if the number of neighbours of a vertex in a scope is known without reading them.
    pub(crate) fn knows_lengths(&self, scope: Scope) -> bool {
        let is_merged = self.union || self.dataset.is_some() || self.default_graphs.is_some();
        scope == Scope::Default && !is_merged
    }

    /// The graph of a scope that is a window or has some: its figures are its own.
    pub(crate) fn of_windows(&self, scope: Scope) -> Option<GraphRef<'_>> {
        match scope {
            Scope::Default => self.default_graphs.as_deref().map(GraphRef::Some),
            Scope::Graph(Slot::Const(id)) => match &self.constants[id.index()] {
                Constant::Window { number, .. } => Some(GraphRef::One(TermId::window(*number))),
                _ => None,
            },
            Scope::Graph(Slot::Var(_)) | Scope::Named => None,
        }
    }

    /// The part of the named graphs that a scope of some of them is. Which graph it is may not be known
    /// before the query runs: it is taken for one that has many quads, as no plan is bad for few.
    fn share(&self, scope: Scope) -> f64 {
        let one = || self.statistics.graph_share();
        if self.of_windows(scope).is_some() {
            return 1.0;
        }
        match (scope, self.dataset) {
            (Scope::Graph(Slot::Const(_)), _) => one(),
            (Scope::Default, Some((default, _))) => (size(default) * one()).min(1.0),
            (Scope::Default | Scope::Graph(_) | Scope::Named, _) => 1.0,
        }
    }

    fn term(&self, id: ConstId) -> Option<&Term> {
        match &self.constants[id.index()] {
            Constant::Fixed(term) => Some(term),
            Constant::Iri { .. } | Constant::Literal { .. } | Constant::Window { .. } => None,
        }
    }

    pub(crate) fn predicate(&self, id: ConstId) -> Option<PredicateId> {
        match self.term(id) {
            Some(Term::NamedNode(node)) => self.statistics.predicate(node.as_str()),
            _ => None,
        }
    }

    pub(crate) fn is_type(&self, id: ConstId) -> bool {
        matches!(self.term(id), Some(Term::NamedNode(node)) if *node == rdf::TYPE)
    }

    pub(crate) fn segment(
        &self,
        scope: Scope,
        id: ConstId,
        direction: Direction,
    ) -> SegmentStatistics {
        let graph = self.graph(scope);
        self.predicate(id)
            .map(|predicate| self.statistics.segment(graph, predicate, direction))
            .unwrap_or_default()
    }

    /// Edges of a predicate that the graphs of a scope have, on average.
    fn edges(&self, scope: Scope, predicate: ConstId) -> f64 {
        let segment = self.segment(scope, predicate, Direction::Out);
        count(segment.edges) * self.share(scope)
    }

    /// Neighbours of a constant: exact for a fixed one, the average for an argument.
    fn degree(
        &self,
        scope: Scope,
        constant: ConstId,
        predicate: ConstId,
        direction: Direction,
    ) -> f64 {
        let place = (constant, predicate, direction, scope);
        if let Some(known) = self.degrees.borrow().get(&place) {
            return *known;
        }
        let degree = match (&self.constants[constant.index()], self.predicate(predicate)) {
            (_, None) => 0.0,
            (Constant::Fixed(term), Some(predicate)) => {
                self.statistics.term(term.as_ref()).map_or(0.0, |id| {
                    let graph = self.graph(scope);
                    count(self.statistics.degree(graph, predicate, direction, id))
                })
            }
            _ => average(self.segment(scope, predicate, direction)),
        };
        // What is said of a subject is mostly in one graph, but of a hub in many.
        let degree = match direction {
            Direction::Out => degree.min(self.edges(scope, predicate)),
            Direction::In => degree * self.share(scope),
        };
        self.degrees.borrow_mut().insert(place, degree);
        degree
    }

    pub(crate) fn is_iri(&self, id: ConstId) -> bool {
        match &self.constants[id.index()] {
            Constant::Fixed(term) => term.is_named_node(),
            Constant::Iri { .. } | Constant::Window { .. } => true,
            Constant::Literal { .. } => false,
        }
    }

    /// True if edges of this pattern are found through segments: its predicate is a constant,
    /// and no variable is in two places.
    pub(crate) fn is_edge(&self, quad: &Quad) -> bool {
        let is_var = |slot: Slot| matches!(slot, Slot::Var(_));
        let is_end = |slot: Slot| is_var(slot) && (slot == quad.subject || slot == quad.object);
        let has_end = is_var(quad.subject) || is_var(quad.object);
        let scope_fits = match quad.scope {
            Scope::Default | Scope::Named => true,
            Scope::Graph(graph) => !is_end(graph) && (has_end || !is_var(graph)),
        };
        let is_loop = quad.subject == quad.object && is_var(quad.subject);
        !self.general && scope_fits && !is_var(quad.predicate) && !is_loop
    }
}

/// A count as an estimate.
#[expect(clippy::cast_precision_loss, reason = "estimates")]
pub(crate) fn count(number: u64) -> f64 {
    number as f64
}

/// A number of things in memory as an estimate.
pub(crate) fn size(number: usize) -> f64 {
    count(number as u64)
}

fn average(segment: SegmentStatistics) -> f64 {
    if segment.keys == 0 {
        0.0
    } else {
        count(segment.edges) / count(segment.keys)
    }
}

/// A quad pattern found through segments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) subject: Slot,
    pub(crate) predicate: ConstId,
    pub(crate) object: Slot,
    pub(crate) scope: Scope,
}

impl Edge {
    pub(crate) fn end(&self, direction: Direction) -> Slot {
        match direction {
            Direction::Out => self.subject,
            Direction::In => self.object,
        }
    }

    /// The direction in which `var` is the known end.
    pub(crate) fn direction_from(&self, var: Var) -> Direction {
        if self.subject == Slot::Var(var) {
            Direction::Out
        } else {
            Direction::In
        }
    }
}

/// What is asked of one variable's vertex in one scope.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    /// Objects of `rdf:type` patterns.
    pub(crate) types: Vec<ConstId>,
    /// (Predicate, direction) of the edges with the variable as their known end.
    pub(crate) edges: Vec<(ConstId, Direction)>,
    memberships: Vec<Membership>,
    /// Asks for a type or predicate that the store does not know.
    unknown: bool,
    /// May stand for a literal: it is an object only.
    pub(crate) may_be_literal: bool,
    /// Bound before these patterns are matched, so that not all its vertices have their edges.
    given: bool,
    /// In the graphs of the scope, and in all named graphs where these are some of them.
    population: f64,
    in_all_graphs: f64,
    /// How many incoming edges each has in the graphs of the scope, in parts of what it has in all.
    incoming: f64,
}

/// A known end, and an edge from it.
type From = (Slot, ConstId, Direction, Scope);

/// What is known of the variables of one group of patterns.
pub(crate) struct Facts<'a> {
    pub(crate) source: &'a Source<'a>,
    asked: FxHashMap<(Var, Scope), Asked>,
    /// The scopes in which something is asked of a variable.
    scopes: FxHashMap<Var, Vec<Scope>>,
    /// Per-row fan-outs and parts, which the search asks for again and again.
    fanouts: RefCell<FxHashMap<From, f64>>,
    parts: RefCell<FxHashMap<From, f64>>,
    between: RefCell<FxHashMap<(From, Var), Option<f64>>>,
}

impl<'a> Facts<'a> {
    /// Gathers what `edges` and `types` (subject, type, scope) ask of their variables. `given` are
    /// variables bound before, of which `known` may tell memberships.
    pub(crate) fn gather(
        source: &'a Source<'a>,
        edges: &[Edge],
        types: &[(Slot, ConstId, Scope)],
        given: &VarSet,
        known: &FxHashMap<(Var, Scope), Vec<Membership>>,
    ) -> Self {
        let mut asked: FxHashMap<(Var, Scope), Asked> = FxHashMap::default();
        for (slot, class, scope) in types {
            if let Slot::Var(var) = slot {
                let of = asked.entry((*var, *scope)).or_default();
                if !of.types.contains(class) {
                    of.types.push(*class);
                }
            }
        }
        for edge in edges {
            for direction in [Direction::Out, Direction::In] {
                if let Slot::Var(var) = edge.end(direction) {
                    let of = asked.entry((var, edge.scope)).or_default();
                    if !of.edges.contains(&(edge.predicate, direction)) {
                        of.edges.push((edge.predicate, direction));
                    }
                }
            }
        }
        let mut scopes: FxHashMap<Var, Vec<Scope>> = FxHashMap::default();
        for ((var, scope), of) in &mut asked {
            scopes.entry(*var).or_default().push(*scope);
            of.given = given.contains(*var);
            of.may_be_literal = of.types.is_empty()
                && of
                    .edges
                    .iter()
                    .all(|(_, direction)| *direction == Direction::In);
            if of.given {
                of.memberships = known.get(&(*var, *scope)).cloned().unwrap_or_default();
            } else {
                of.find_memberships(source);
            }
            of.population = of.count_population(source, *scope);
            of.in_all_graphs = of.population;
            of.incoming = 1.0;
            if !of.given {
                of.take_share(source, *scope);
            }
        }
        Self {
            source,
            asked,
            scopes,
            fanouts: RefCell::default(),
            parts: RefCell::default(),
            between: RefCell::default(),
        }
    }

    /// The part of what a variable stands for that has a type, by what is asked of it in other graphs;
    /// `None` where nothing is.
    pub(crate) fn kept_by_type(&self, var: Var, scope: Scope, class: ConstId) -> Option<f64> {
        let graph = self.source.graph(scope);
        let scopes = self.scopes.get(&var)?.iter();
        let others = scopes.filter(|of| **of != scope && self.source.graph(**of) == graph);
        let known = others.flat_map(|of| &self.asked[&(var, *of)].memberships);
        let mut known: Vec<Membership> = known.copied().collect();
        if known.is_empty() {
            return None;
        }
        let vertices = |known: &[Membership]| self.source.statistics.vertices_with(graph, known);
        let before = vertices(&known);
        known.push(type_membership(self.source, class)?);
        (before > 0.0).then(|| vertices(&known) / before)
    }

    /// Vertices (or literals) that have in one scope what is asked of the variable there.
    pub(crate) fn population_in(&self, var: Var, scope: Scope) -> f64 {
        match self.asked.get(&(var, scope)) {
            Some(of) => of.population,
            None => count(self.source.statistics.vertices()).max(1.0),
        }
    }

    /// The graphs with variables for names in which something is asked of a variable.
    pub(crate) fn variable_graphs(&self, var: Var) -> impl Iterator<Item = Scope> + '_ {
        let scopes = self.scopes.get(&var).into_iter().flatten().copied();
        scopes.filter(|scope| matches!(scope, Scope::Graph(Slot::Var(_))))
    }

    pub(crate) fn asked(&self, var: Var, scope: Scope) -> Option<&Asked> {
        self.asked.get(&(var, scope))
    }

    /// The memberships of each variable that these patterns bind, by scope.
    pub(crate) fn memberships(&self) -> impl Iterator<Item = ((Var, Scope), &Vec<Membership>)> {
        self.asked
            .iter()
            .filter(|(_, of)| !of.given)
            .map(|(place, of)| (*place, &of.memberships))
    }

    /// The one of some scopes in which the fewest vertices have what is asked of the variable there.
    pub(crate) fn narrowest(&self, var: Var, among: impl Fn(&Scope) -> bool) -> Option<Scope> {
        let scopes = self.scopes.get(&var)?;
        let population = |scope: &Scope| self.asked[&(var, *scope)].population;
        let least = scopes.iter().copied().filter(among);
        least.min_by(|a, b| {
            population(a)
                .total_cmp(&population(b))
                .then_with(|| a.cmp(b))
        })
    }

    /// Vertices (or literals) that the variable can stand for.
    pub(crate) fn population(&self, var: Var) -> f64 {
        self.known_population(var)
            .unwrap_or_else(|| count(self.source.statistics.vertices()).max(1.0))
    }

    /// The same, if anything is asked of the variable that tells it.
    pub(crate) fn known_population(&self, var: Var) -> Option<f64> {
        let scope = self.narrowest(var, |_| true)?;
        Some(self.asked[&(var, scope)].population)
    }

    /// Edges that one value of `from` has, on average.
    pub(crate) fn fanout(
        &self,
        scope: Scope,
        from: Slot,
        predicate: ConstId,
        direction: Direction,
    ) -> f64 {
        let place = (from, predicate, direction, scope);
        if let Some(known) = self.fanouts.borrow().get(&place) {
            return *known;
        }
        let fanout = match from {
            Slot::Const(constant) => self.source.degree(scope, constant, predicate, direction),
            Slot::Var(var) => {
                let segment = self.source.segment(scope, predicate, direction);
                let graph = self.source.graph(scope);
                let of = self.asked.get(&(var, scope));
                let found = match (of, self.source.predicate(predicate)) {
                    (Some(of), Some(id)) if !of.memberships.is_empty() && of.population > 0.0 => {
                        let edges = self.source.statistics.edges_from(
                            graph,
                            id,
                            direction,
                            &of.memberships,
                        );
                        // Literals are in no characteristic set.
                        if edges == 0.0 && of.may_be_literal && !of.given {
                            average(segment)
                        } else {
                            edges / of.in_all_graphs
                        }
                    }
                    _ => average(segment),
                };
                match (of, direction) {
                    (Some(of), Direction::In) => found * of.incoming,
                    _ => found.min(self.source.edges(scope, predicate)),
                }
            }
        };
        self.fanouts.borrow_mut().insert(place, fanout);
        fanout
    }

    /// Neighbours of one value of `from` that have all that is asked of `to`, on average: by
    /// edges counted between characteristic sets where that was done, else as if the two ends
    /// knew nothing of each other.
    pub(crate) fn reached(
        &self,
        scope: Scope,
        from: Slot,
        predicate: ConstId,
        direction: Direction,
        to: Var,
    ) -> f64 {
        self.counted_between(scope, from, predicate, direction, to)
            .unwrap_or_else(|| {
                self.fanout(scope, from, predicate, direction)
                    * self.part(scope, Slot::Var(to), predicate, direction.reverse())
            })
    }

    fn counted_between(
        &self,
        scope: Scope,
        from: Slot,
        predicate: ConstId,
        direction: Direction,
        to: Var,
    ) -> Option<f64> {
        let Slot::Var(from_var) = from else {
            return None;
        };
        let key = ((from, predicate, direction, scope), to);
        if let Some(known) = self.between.borrow().get(&key) {
            return *known;
        }
        let of = |var| self.asked.get(&(var, scope));
        let (from, of) = (of(from_var)?, of(to)?);
        let usable = !from.unknown && !of.unknown && !of.may_be_literal && !from.may_be_literal;
        let counted = match self.source.predicate(predicate) {
            Some(id) if usable && from.population > 0.0 && id != PredicateId::TYPE => {
                let (subjects, objects) = match direction {
                    Direction::Out => (&from.memberships, &of.memberships),
                    Direction::In => (&of.memberships, &from.memberships),
                };
                let graph = self.source.graph(scope);
                let statistics = self.source.statistics;
                let edges = statistics.edges_between(graph, id, subjects, objects);
                let of_scope = self.source.edges(scope, predicate);
                edges.map(|edges| (edges / from.in_all_graphs).min(of_scope))
            }
            _ => None,
        };
        self.between.borrow_mut().insert(key, counted);
        counted
    }

    /// The part of the edges that arrive at `direction`'s known end `to` whose vertex there has
    /// all that is asked of it.
    pub(crate) fn part(
        &self,
        scope: Scope,
        to: Slot,
        predicate: ConstId,
        direction: Direction,
    ) -> f64 {
        let Slot::Var(var) = to else {
            return 1.0;
        };
        let Some(of) = self.asked.get(&(var, scope)) else {
            return 1.0;
        };
        let place = (to, predicate, direction, scope);
        if let Some(known) = self.parts.borrow().get(&place) {
            return *known;
        }
        let part = self.count_part(of, scope, predicate, direction);
        self.parts.borrow_mut().insert(place, part);
        part
    }

    fn count_part(
        &self,
        of: &Asked,
        scope: Scope,
        predicate: ConstId,
        direction: Direction,
    ) -> f64 {
        let graph = self.source.graph(scope);
        if of.unknown {
            return 0.0;
        }
        let Some(id) = self.source.predicate(predicate) else {
            return 0.0;
        };
        let only_this = of
            .memberships
            .iter()
            .all(|membership| *membership == Membership::Has(id, direction));
        let all = count(self.source.statistics.segment(graph, id, direction).edges);
        if only_this || all == 0.0 {
            return 1.0;
        }
        let edges = self
            .source
            .statistics
            .edges_from(graph, id, direction, &of.memberships);
        if edges == 0.0 && of.may_be_literal {
            UNKNOWN_PART
        } else {
            (edges / all).min(1.0)
        }
    }

    /// How much of those that come over (predicate, direction) to a vertex with `types` also
    /// have the edge `asked`; `None` where that is not known.
    pub(crate) fn kept_by(
        &self,
        scope: Scope,
        over: Option<(ConstId, Direction)>,
        types: &[ConstId],
        asked: (ConstId, Direction),
    ) -> Option<f64> {
        let statistics = self.source.statistics;
        let graph = self.source.graph(scope);
        let mut memberships = Vec::with_capacity(types.len() + 2);
        for class in types {
            memberships.push(type_membership(self.source, *class)?);
        }
        let id = self.source.predicate(asked.0)?;
        let counted = |memberships: &[Membership]| match over {
            Some((predicate, direction)) => self
                .source
                .predicate(predicate)
                .map(|over| statistics.edges_from(graph, over, direction, memberships)),
            None => Some(statistics.vertices_with(graph, memberships)),
        };
        let before = counted(&memberships)?;
        memberships.push(Membership::Has(id, asked.1));
        let after = counted(&memberships)?;
        (before > 0.0).then(|| after / before)
    }
}

impl Asked {
    fn find_memberships(&mut self, source: &Source<'_>) {
        for class in &self.types {
            match type_membership(source, *class) {
                Some(membership) => self.memberships.push(membership),
                None => self.unknown = true,
            }
        }
        for (predicate, direction) in &self.edges {
            match source.predicate(*predicate) {
                Some(PredicateId::TYPE) => (),
                Some(id) => self.memberships.push(Membership::Has(id, *direction)),
                None => self.unknown = true,
            }
        }
    }

    /// Goes from the figures of all named graphs to those of the graphs that the scope is, on
    /// average: what is said of a subject is mostly in one graph, but the same literal may be an object
    /// in each.
    fn take_share(&mut self, source: &Source<'_>, scope: Scope) {
        let share = source.share(scope);
        let own = self.population * share;
        let edges = self.edges.iter();
        let edges = edges.map(|(predicate, _)| source.edges(scope, *predicate));
        let edges = edges.reduce(f64::min).unwrap_or_default();
        let found = match self.may_be_literal {
            true => self.population.min(edges).max(own),
            false => own,
        };
        if found > 0.0 {
            self.incoming = own / found;
        }
        self.population = found;
    }

    fn count_population(&self, source: &Source<'_>, scope: Scope) -> f64 {
        let graph = source.graph(scope);
        if self.unknown {
            return 0.0;
        }
        let least_keys = || {
            self.edges
                .iter()
                .map(|(predicate, direction)| {
                    count(source.segment(scope, *predicate, *direction).keys)
                })
                .reduce(f64::min)
        };
        if self.memberships.is_empty() {
            return match least_keys() {
                Some(keys) if !self.given => keys,
                _ => count(source.statistics.vertices()).max(1.0),
            };
        }
        if self.may_be_literal && !self.given {
            // Literals are in no characteristic set, but keys of segments are counted with them.
            let keys = least_keys().unwrap_or_default();
            if self.edges.len() == 1 {
                return keys;
            }
            let vertices = source.statistics.vertices_with(graph, &self.memberships);
            return if vertices > 0.0 {
                vertices
            } else {
                keys * UNKNOWN_PART
            };
        }
        source.statistics.vertices_with(graph, &self.memberships)
    }
}

fn type_membership(source: &Source<'_>, class: ConstId) -> Option<Membership> {
    let term = source.term(class)?;
    source.statistics.term(term.as_ref()).map(Membership::Type)
}

/// Vertices of a type; none where the store does not know it.
pub(crate) fn type_population(source: &Source<'_>, scope: Scope, class: ConstId) -> f64 {
    type_membership(source, class).map_or(0.0, |membership| {
        let graph = source.graph(scope);
        source.statistics.vertices_with(graph, &[membership])
    })
}
