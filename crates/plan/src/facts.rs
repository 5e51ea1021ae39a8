//! How many vertices can a variable stand for, and how many edges lead from it?
//!
//! All quad patterns of a group are gathered by variable: what is asked of a variable's vertex
//! (its types, its edges) selects its characteristic sets, from which counts are exact. Counts
//! of two ends of an edge are combined as if they were independent.

use std::cell::RefCell;

use jindou_model::{Direction, PredicateId};
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
    pub(crate) patience: &'a Patience<'a>,
    /// Every quad pattern is matched in full generality, as what is bound is not known before.
    general: bool,
    degrees: RefCell<FxHashMap<(ConstId, ConstId, Direction), f64>>,
}

impl<'a> Source<'a> {
    pub(crate) fn new(
        statistics: &'a dyn Statistics,
        constants: &'a [Constant],
        dataset: Option<(usize, usize)>,
        patience: &'a Patience<'a>,
    ) -> Self {
        Self {
            statistics,
            constants,
            dataset,
            patience,
            general: false,
            degrees: RefCell::default(),
        }
    }

    /// The same data, in which quad patterns may find their variables bound or not.
    pub(crate) fn general(&self) -> Self {
        Self {
            general: true,
            ..Self::new(self.statistics, self.constants, self.dataset, self.patience)
        }
    }

    fn term(&self, id: ConstId) -> Option<&Term> {
        match &self.constants[id.index()] {
            Constant::Fixed(term) => Some(term),
            Constant::Iri { .. } | Constant::Literal { .. } => None,
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

    pub(crate) fn segment(&self, id: ConstId, direction: Direction) -> SegmentStatistics {
        self.predicate(id)
            .map(|predicate| self.statistics.segment(predicate, direction))
            .unwrap_or_default()
    }

    /// Neighbours of a constant: exact for a fixed one, the average for an argument.
    fn degree(&self, constant: ConstId, predicate: ConstId, direction: Direction) -> f64 {
        if let Some(known) = self.degrees.borrow().get(&(constant, predicate, direction)) {
            return *known;
        }
        let degree = match (&self.constants[constant.index()], self.predicate(predicate)) {
            (_, None) => 0.0,
            (Constant::Fixed(term), Some(predicate)) => {
                self.statistics.term(term.as_ref()).map_or(0.0, |id| {
                    count(self.statistics.degree(predicate, direction, id))
                })
            }
            _ => average(self.segment(predicate, direction)),
        };
        self.degrees
            .borrow_mut()
            .insert((constant, predicate, direction), degree);
        degree
    }

    pub(crate) fn is_iri(&self, id: ConstId) -> bool {
        match &self.constants[id.index()] {
            Constant::Fixed(term) => term.is_named_node(),
            Constant::Iri { .. } => true,
            Constant::Literal { .. } => false,
        }
    }

    /// True if edges of this pattern are found through segments: its predicate is a constant,
    /// it reads the store's own default graph, and its ends are not the same variable.
    pub(crate) fn is_edge(&self, quad: &Quad) -> bool {
        self.dataset.is_none()
            && !self.general
            && quad.scope == Scope::Default
            && matches!(quad.predicate, Slot::Const(_))
            && !(quad.subject == quad.object && matches!(quad.subject, Slot::Var(_)))
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

/// What is asked of one variable's vertex.
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
    population: f64,
}

/// From a known end over an edge to a variable.
type Reached = (Slot, ConstId, Direction, Var);

/// What is known of the variables of one group of patterns.
pub(crate) struct Facts<'a> {
    pub(crate) source: &'a Source<'a>,
    asked: FxHashMap<Var, Asked>,
    /// Per-row fan-outs and parts, which the search asks for again and again.
    fanouts: RefCell<FxHashMap<(Slot, ConstId, Direction), f64>>,
    parts: RefCell<FxHashMap<(Slot, ConstId, Direction), f64>>,
    between: RefCell<FxHashMap<Reached, Option<f64>>>,
}

impl<'a> Facts<'a> {
    /// Gathers what `edges` and `types` (subject, type) ask of their variables. `given` are
    /// variables bound before, of which `known` may tell memberships.
    pub(crate) fn gather(
        source: &'a Source<'a>,
        edges: &[Edge],
        types: &[(Slot, ConstId)],
        given: &VarSet,
        known: &FxHashMap<Var, Vec<Membership>>,
    ) -> Self {
        let mut asked: FxHashMap<Var, Asked> = FxHashMap::default();
        for (slot, class) in types {
            if let Slot::Var(var) = slot {
                let of = asked.entry(*var).or_default();
                if !of.types.contains(class) {
                    of.types.push(*class);
                }
            }
        }
        for edge in edges {
            for direction in [Direction::Out, Direction::In] {
                if let Slot::Var(var) = edge.end(direction) {
                    let of = asked.entry(var).or_default();
                    if !of.edges.contains(&(edge.predicate, direction)) {
                        of.edges.push((edge.predicate, direction));
                    }
                }
            }
        }
        for (var, of) in &mut asked {
            of.given = given.contains(*var);
            of.may_be_literal = of.types.is_empty()
                && of
                    .edges
                    .iter()
                    .all(|(_, direction)| *direction == Direction::In);
            if of.given {
                of.memberships = known.get(var).cloned().unwrap_or_default();
            } else {
                of.find_memberships(source);
            }
            of.population = of.count_population(source);
        }
        Self {
            source,
            asked,
            fanouts: RefCell::default(),
            parts: RefCell::default(),
            between: RefCell::default(),
        }
    }

    pub(crate) fn asked(&self, var: Var) -> Option<&Asked> {
        self.asked.get(&var)
    }

    /// The memberships of each variable that these patterns bind.
    pub(crate) fn memberships(&self) -> impl Iterator<Item = (Var, &Vec<Membership>)> {
        self.asked
            .iter()
            .filter(|(_, of)| !of.given)
            .map(|(var, of)| (*var, &of.memberships))
    }

    /// Vertices (or literals) that the variable can stand for.
    pub(crate) fn population(&self, var: Var) -> f64 {
        self.known_population(var)
            .unwrap_or_else(|| count(self.source.statistics.vertices()).max(1.0))
    }

    /// The same, if anything is asked of the variable that tells it.
    pub(crate) fn known_population(&self, var: Var) -> Option<f64> {
        self.asked.get(&var).map(|of| of.population)
    }

    /// Edges that one value of `from` has, on average.
    pub(crate) fn fanout(&self, from: Slot, predicate: ConstId, direction: Direction) -> f64 {
        if let Some(known) = self.fanouts.borrow().get(&(from, predicate, direction)) {
            return *known;
        }
        let fanout = match from {
            Slot::Const(constant) => self.source.degree(constant, predicate, direction),
            Slot::Var(var) => {
                let segment = self.source.segment(predicate, direction);
                match (self.asked.get(&var), self.source.predicate(predicate)) {
                    (Some(of), Some(id)) if !of.memberships.is_empty() && of.population > 0.0 => {
                        let edges =
                            self.source
                                .statistics
                                .edges_from(id, direction, &of.memberships);
                        // Literals are in no characteristic set.
                        if edges == 0.0 && of.may_be_literal && !of.given {
                            average(segment)
                        } else {
                            edges / of.population
                        }
                    }
                    _ => average(segment),
                }
            }
        };
        self.fanouts
            .borrow_mut()
            .insert((from, predicate, direction), fanout);
        fanout
    }

    /// Neighbours of one value of `from` that have all that is asked of `to`, on average: by
    /// edges counted between characteristic sets where that was done, else as if the two ends
    /// knew nothing of each other.
    pub(crate) fn reached(
        &self,
        from: Slot,
        predicate: ConstId,
        direction: Direction,
        to: Var,
    ) -> f64 {
        self.counted_between(from, predicate, direction, to)
            .unwrap_or_else(|| {
                self.fanout(from, predicate, direction)
                    * self.part(Slot::Var(to), predicate, direction.reverse())
            })
    }

    fn counted_between(
        &self,
        from: Slot,
        predicate: ConstId,
        direction: Direction,
        to: Var,
    ) -> Option<f64> {
        let Slot::Var(from_var) = from else {
            return None;
        };
        let key = (from, predicate, direction, to);
        if let Some(known) = self.between.borrow().get(&key) {
            return *known;
        }
        let (from, of) = (self.asked.get(&from_var)?, self.asked.get(&to)?);
        let usable = !from.unknown && !of.unknown && !of.may_be_literal && !from.may_be_literal;
        let counted = match self.source.predicate(predicate) {
            Some(id) if usable && from.population > 0.0 && id != PredicateId::TYPE => {
                let (subjects, objects) = match direction {
                    Direction::Out => (&from.memberships, &of.memberships),
                    Direction::In => (&of.memberships, &from.memberships),
                };
                let edges = self.source.statistics.edges_between(id, subjects, objects);
                edges.map(|edges| edges / from.population)
            }
            _ => None,
        };
        self.between.borrow_mut().insert(key, counted);
        counted
    }

    /// The part of the edges that arrive at `direction`'s known end `to` whose vertex there has
    /// all that is asked of it.
    pub(crate) fn part(&self, to: Slot, predicate: ConstId, direction: Direction) -> f64 {
        let Slot::Var(var) = to else {
            return 1.0;
        };
        let Some(of) = self.asked.get(&var) else {
            return 1.0;
        };
        if let Some(known) = self.parts.borrow().get(&(to, predicate, direction)) {
            return *known;
        }
        let part = self.count_part(of, predicate, direction);
        self.parts
            .borrow_mut()
            .insert((to, predicate, direction), part);
        part
    }

    fn count_part(&self, of: &Asked, predicate: ConstId, direction: Direction) -> f64 {
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
        let all = count(self.source.statistics.segment(id, direction).edges);
        if only_this || all == 0.0 {
            return 1.0;
        }
        let edges = self
            .source
            .statistics
            .edges_from(id, direction, &of.memberships);
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
        over: Option<(ConstId, Direction)>,
        types: &[ConstId],
        asked: (ConstId, Direction),
    ) -> Option<f64> {
        let statistics = self.source.statistics;
        let mut memberships = Vec::with_capacity(types.len() + 2);
        for class in types {
            memberships.push(type_membership(self.source, *class)?);
        }
        let id = self.source.predicate(asked.0)?;
        let counted = |memberships: &[Membership]| match over {
            Some((predicate, direction)) => self
                .source
                .predicate(predicate)
                .map(|over| statistics.edges_from(over, direction, memberships)),
            None => Some(statistics.vertices_with(memberships)),
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

    fn count_population(&self, source: &Source<'_>) -> f64 {
        if self.unknown {
            return 0.0;
        }
        let least_keys = || {
            self.edges
                .iter()
                .map(|(predicate, direction)| count(source.segment(*predicate, *direction).keys))
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
            let vertices = source.statistics.vertices_with(&self.memberships);
            return if vertices > 0.0 {
                vertices
            } else {
                keys * UNKNOWN_PART
            };
        }
        source.statistics.vertices_with(&self.memberships)
    }
}

fn type_membership(source: &Source<'_>, class: ConstId) -> Option<Membership> {
    let term = source.term(class)?;
    source.statistics.term(term.as_ref()).map(Membership::Type)
}

/// Vertices of a type; none where the store does not know it.
pub(crate) fn type_population(source: &Source<'_>, class: ConstId) -> f64 {
    type_membership(source, class).map_or(0.0, |membership| {
        source.statistics.vertices_with(&[membership])
    })
}
