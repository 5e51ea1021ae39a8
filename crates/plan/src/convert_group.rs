//! How do the elements of a group read in our own algebra?
//!
//! By section 18.2.2 of SPARQL: in order, each joined with all before it; filters see the whole
//! group, and those of an OPTIONAL are the condition of its left join.

use jindou_syntax::tree::{
    self, Deduplicate, Element, Expression as Parsed, Group, Name, Predicate,
    Service as ParsedService, Term, TriplePattern, Values,
};

use crate::algebra::{Pattern, Quad};
use crate::convert::{Converter, Scoped, is_type};
use crate::convert_select::is_grouped;
use crate::error::PlanError;
use crate::expression::Expression;
use crate::physical::{Opening, RemoteQuery, Scope, Service, Slot, Var};
use crate::remote;

impl<'t> Converter<'t> {
    /// What is between a pair of braces.
    ///
    /// # Errors
    /// [`PlanError::Unsupported`] by name, [`PlanError::TooLarge`].
    pub(crate) fn group(&mut self, group: &Group<'t>, scope: Scope) -> Result<Scoped, PlanError> {
        let scoped = self.elements(group, scope)?;
        self.filter(scoped, filters(group), scope)
    }

    /// The elements of a group, filters aside.
    fn elements(&mut self, group: &Group<'t>, scope: Scope) -> Result<Scoped, PlanError> {
        let mut scoped = Scoped::leaf(Pattern::Unit, false);
        for element in &group.elements {
            self.patience.work(1)?;
            scoped = match element {
                Element::Filter(_) => scoped,
                Element::Optional(right) => self.optional(scoped, right, scope)?,
                Element::Minus(right) => self.minus(scoped, right, scope)?,
                Element::Bind(expression, variable) => {
                    self.extend(scoped, expression, variable.name, scope)?
                }
                element => {
                    let right = self.element(element, scope)?;
                    join(scoped, right)?
                }
            };
        }
        Ok(scoped)
    }

    /// An element that is joined with those before it.
    fn element(&mut self, element: &Element<'t>, scope: Scope) -> Result<Scoped, PlanError> {
        self.count_joined_pattern()?;
        match element {
            Element::Triples(triples) => self.triples(triples, scope),
            Element::Union(branches) => self.union(branches, scope),
            Element::Graph(name, group) => self.graph(name, group),
            Element::BareGraph(name, group) => self.bare_graph(*name, group),
            Element::Window(name, group) => self.window(name, group),
            Element::Service(service) => self.service(service),
            Element::Values(values) => self.values(values),
            Element::Select(select) => self.subquery(select, scope),
            Element::Filter(_) | Element::Optional(_) | Element::Minus(_) | Element::Bind(..) => {
                unreachable!("they change what is before them")
            }
        }
    }

    fn optional(
        &mut self,
        left: Scoped,
        group: &Group<'t>,
        scope: Scope,
    ) -> Result<Scoped, PlanError> {
        // The left side must bind the graph before the right side can be matched in it.
        let left = left.in_graph(scope);
        let right = self.elements(group, scope)?;
        let (condition, marks) = self.with_marks(scope, |this| this.conjunction(filters(group)))?;
        let height = marks.iter().map(|mark| mark.height).max();
        let height = height.unwrap_or(0).max(left.height).max(right.height);
        let pattern = Pattern::LeftJoin {
            left: Box::new(left.pattern),
            right: Box::new(right.pattern),
            marks: marks
                .into_iter()
                .map(|mark| (mark.var, mark.pattern))
                .collect(),
            condition,
        };
        Scoped::above(height, pattern, true)
    }

    fn minus(
        &mut self,
        left: Scoped,
        group: &Group<'t>,
        scope: Scope,
    ) -> Result<Scoped, PlanError> {
        let left = left.in_graph(scope);
        let right = self.group(group, scope)?.in_graph(scope);
        let pattern = Pattern::Minus {
            left: Box::new(left.pattern),
            right: Box::new(right.pattern),
            graph: match scope {
                Scope::Graph(Slot::Var(var)) => Some(var),
                _ => None,
            },
        };
        Scoped::above(left.height.max(right.height), pattern, true)
    }

    /// The solutions with one more variable.
    pub(crate) fn extend(
        &mut self,
        inner: Scoped,
        expression: &Parsed<'t>,
        name: &'t str,
        scope: Scope,
    ) -> Result<Scoped, PlanError> {
        let (inner, expression) = self.marking(inner, scope, |this| this.expression(expression))?;
        let var = self.variable(name)?;
        extended(inner, var, expression)
    }

    fn triples(
        &mut self,
        triples: &[TriplePattern<'t>],
        scope: Scope,
    ) -> Result<Scoped, PlanError> {
        let mut parts = Parts::default();
        for triple in triples {
            match &triple.predicate {
                Predicate::Name(name) => {
                    let terms = (&triple.subject, name, &triple.object);
                    parts.push_quad(self.quad(terms, scope)?);
                }
                Predicate::Path(path) => {
                    self.path(&triple.subject, path, &triple.object, scope, &mut parts)?;
                }
            }
        }
        parts.joined()
    }

    fn quad(
        &mut self,
        (subject, predicate, object): (&Term<'t>, &Name<'t>, &Term<'t>),
        scope: Scope,
    ) -> Result<Quad, PlanError> {
        self.count_triple_patterns(1)?;
        let is_type = matches!(predicate, Name::Iri(iri) if is_type(iri));
        Ok(Quad {
            subject: self.slot(subject, false)?,
            predicate: self.name(predicate)?,
            // A type decides the plan, so it is a part of it.
            object: self.slot(object, is_type)?,
            scope,
        })
    }

    /// Quads as a pattern.
    ///
    /// # Errors
    /// As for [`Converter::group`].
    pub(crate) fn quads(&mut self, quads: &[tree::Quad<'t>]) -> Result<Scoped, PlanError> {
        let mut parts = Parts::default();
        for tree::Quad { triple, graph } in quads {
            let scope = match graph {
                None => Scope::Default,
                Some(graph) => Scope::Graph(self.name(graph)?),
            };
            let terms = (&triple.subject, &triple.predicate, &triple.object);
            parts.push_quad(self.quad(terms, scope)?);
        }
        parts.joined()
    }

    /// A group, or the union of several.
    fn union(&mut self, branches: &[Group<'t>], scope: Scope) -> Result<Scoped, PlanError> {
        if let [group] = branches {
            return self.group(group, scope);
        }
        let mut height = 0;
        let mut patterns = Vec::with_capacity(branches.len());
        for branch in branches {
            let branch = self.group(branch, scope)?.in_graph(scope);
            height = height.max(branch.height);
            patterns.push(branch.pattern);
        }
        Scoped::above(height, Pattern::Union(patterns), true)
    }

    pub(crate) fn values(&mut self, values: &Values<'t>) -> Result<Scoped, PlanError> {
        let vars = values.variables.iter();
        let vars = vars
            .map(|variable| self.variable(variable.name))
            .collect::<Result<Vec<_>, _>>()?;
        let mut rows = Vec::with_capacity(values.rows);
        let mut cells = values.cells.iter();
        for _ in 0..values.rows {
            self.patience.work(1 + vars.len())?;
            let mut row = Vec::with_capacity(vars.len());
            for cell in cells.by_ref().take(vars.len()) {
                row.push(match cell {
                    None => None,
                    Some(term) => match self.slot(term, false)? {
                        Slot::Const(constant) => Some(constant),
                        Slot::Var(_) => unreachable!("inline data has no variables"),
                    },
                });
            }
            rows.push(row);
        }
        Ok(Scoped::leaf(Pattern::Values { vars, rows }, false))
    }

    /// GRAPH: its quad patterns name the graph themselves.
    ///
    /// The graph's variable is bound only after the inner pattern is evaluated. So a variable of
    /// our own stands for the graph inside, and the result is joined with the pairs (graph,
    /// graph). Where the inner pattern does not mention the graph's variable, or mentions it in
    /// quad patterns alone, it makes no difference to bind it at once.
    fn graph(&mut self, name: &Name<'t>, group: &Group<'t>) -> Result<Scoped, PlanError> {
        if let Name::Iri(iri) = name
            && let Some(window) = self.window_graph(iri)
        {
            return self.in_graph_of(window, group);
        }
        let mut branches = match name {
            Name::Variable(_) => self.in_window_graphs(name, group)?,
            Name::Iri(_) => Vec::new(),
        };
        let stored = self.stored_graph(name, group)?;
        if branches.is_empty() {
            return Ok(stored);
        }
        branches.push(stored);
        Scoped::union(branches)
    }

    /// GRAPH in stored graphs.
    fn stored_graph(&mut self, name: &Name<'t>, group: &Group<'t>) -> Result<Scoped, PlanError> {
        let outer = match self.name(name)? {
            Slot::Var(var) => var,
            graph @ Slot::Const(_) => {
                let scope = Scope::Graph(graph);
                let inner = self.group(group, scope)?.in_graph(scope);
                return Ok(Scoped {
                    in_graph: false,
                    ..inner
                });
            }
        };
        let hidden = self.make_up_variable()?;
        let scope = Scope::Graph(Slot::Var(hidden));
        let inner = self.group(group, scope)?;
        // The pattern is walked, and with it those nested in it.
        self.patience.ask()?;
        // The value may be given from outside of an EXISTS, so that it may not be computed here.
        let is_given = self.exists > 0 && inner.pattern.mentions(outer);
        if is_given || evaluates_apart(group) {
            let pattern = Pattern::EachGraph {
                scope: hidden,
                name: outer,
                inner: Box::new(inner.pattern),
            };
            return Scoped::above(inner.height, pattern, false);
        }
        let mut inner = inner.in_graph(scope);
        inner.in_graph = false;
        if !inner.pattern.mentions(outer) || is_filtered_quads_with(&inner.pattern, outer) {
            rename_graph(&mut inner.pattern, hidden, outer);
            return Ok(inner);
        }
        let named = Pattern::Extend {
            inner: Box::new(Pattern::Graphs(Slot::Var(hidden))),
            bindings: vec![(outer, Expression::Variable(hidden))],
        };
        Scoped::above(
            inner.height + 1,
            Pattern::Join(vec![inner.pattern, named]),
            false,
        )
    }

    /// SERVICE: its pattern is another endpoint's to answer, and so is only written down.
    fn service(&mut self, parsed: &ParsedService<'t>) -> Result<Scoped, PlanError> {
        self.calls_services = true;
        // What an EXISTS is asked for gives its values to the variables inside.
        let remote::WrittenGroup {
            pattern,
            openings,
            of_windows,
        } = remote::contents(&parsed.group, self.exists > 0);
        if let Some((span, what)) = of_windows {
            return Err(self.unsupported(span, what));
        }
        self.patience.work(1 + pattern.len())?;
        let openings = openings.into_iter().map(|(at, names)| {
            let variables = names.into_iter();
            let variables = variables.map(|name| Ok((name.to_owned(), self.variable(name)?)));
            let variables = variables.collect::<Result<_, PlanError>>()?;
            Ok(Opening { at, variables })
        });
        let openings = openings.collect::<Result<_, PlanError>>()?;
        let endpoint = self.name(&parsed.endpoint)?;
        let endpoint_name = match &parsed.endpoint {
            Name::Variable(variable) => variable.name.to_owned(),
            Name::Iri(_) => String::new(),
        };
        let certain = remote::certain(&parsed.group);
        let visible = remote::visible(&parsed.group);
        let mut service = Service {
            endpoint,
            endpoint_name,
            silent: parsed.silent,
            query: RemoteQuery {
                base: self.base.clone(),
                names: Vec::with_capacity(visible.len()),
                spare: remote::unused(&pattern),
                plain: remote::is_plain(&parsed.group),
                pattern,
                openings,
            },
            columns: Vec::with_capacity(visible.len()),
            certain: Vec::new(),
        };
        for name in visible {
            service.query.names.push(name.to_owned());
            let var = self.variable(name)?;
            service.columns.push(var);
            if certain.contains(name) {
                service.certain.push(var);
            }
        }
        Ok(Scoped::leaf(Pattern::Service(Box::new(service)), false))
    }
}

/// The filters of a group.
fn filters<'g, 't>(group: &'g Group<'t>) -> impl Iterator<Item = &'g Parsed<'t>> {
    group.elements.iter().filter_map(|element| match element {
        Element::Filter(condition) => Some(condition),
        _ => None,
    })
}

/// The join of two patterns; the empty group is a part of none.
///
/// # Errors
/// [`PlanError::TooLarge`].
pub(crate) fn join(left: Scoped, right: Scoped) -> Result<Scoped, PlanError> {
    if left.is_unit() {
        return Ok(right);
    }
    if right.is_unit() {
        return Ok(left);
    }
    let in_graph = left.in_graph || right.in_graph;
    match left.pattern {
        // What is joined side by side is one join.
        Pattern::Join(mut parts) if left.height > right.height => {
            parts.push(right.pattern);
            Ok(Scoped {
                pattern: Pattern::Join(parts),
                in_graph,
                height: left.height,
            })
        }
        first => {
            let height = left.height.max(right.height);
            Scoped::above(height, Pattern::Join(vec![first, right.pattern]), in_graph)
        }
    }
}

/// The solutions of a pattern with one more variable.
///
/// # Errors
/// [`PlanError::TooLarge`].
pub(crate) fn extended(
    inner: Scoped,
    var: Var,
    expression: Expression,
) -> Result<Scoped, PlanError> {
    let (in_graph, height) = (inner.in_graph, inner.height);
    match inner.pattern {
        Pattern::Extend {
            inner,
            mut bindings,
        } => {
            bindings.push((var, expression));
            let pattern = Pattern::Extend { inner, bindings };
            Ok(Scoped {
                pattern,
                in_graph,
                height,
            })
        }
        inner => {
            let pattern = Pattern::Extend {
                inner: Box::new(inner),
                bindings: vec![(var, expression)],
            };
            Scoped::above(height, pattern, in_graph)
        }
    }
}

/// Patterns to join that are matched in the current graph.
#[derive(Default)]
pub(crate) struct Parts {
    patterns: Vec<Pattern>,
    height: usize,
}

impl Parts {
    /// Adds a quad pattern to those before it.
    pub(crate) fn push_quad(&mut self, quad: Quad) {
        self.height = self.height.max(1);
        match self.patterns.last_mut() {
            Some(Pattern::Quads(quads)) => quads.push(quad),
            _ => self.patterns.push(Pattern::Quads(vec![quad])),
        }
    }

    pub(crate) fn push(&mut self, scoped: Scoped) {
        self.height = self.height.max(scoped.height);
        self.patterns.push(scoped.pattern);
    }

    /// Their join.
    ///
    /// # Errors
    /// [`PlanError::TooLarge`].
    pub(crate) fn joined(mut self) -> Result<Scoped, PlanError> {
        match self.patterns.len() {
            0 => Ok(Scoped::leaf(Pattern::Unit, false)),
            1 => Ok(Scoped {
                pattern: self.patterns.remove(0),
                in_graph: true,
                height: self.height,
            }),
            _ => Scoped::above(self.height, Pattern::Join(self.patterns), true),
        }
    }
}

/// True if the solutions of a group in several graphs are not those in each of them together.
fn evaluates_apart(group: &Group<'_>) -> bool {
    group.elements.iter().any(|element| match element {
        Element::Union(groups) => groups.iter().any(evaluates_apart),
        Element::Optional(group) | Element::Minus(group) => evaluates_apart(group),
        Element::Select(select) => {
            let modifiers = &select.modifiers;
            is_grouped(select)
                || select.deduplicate == Some(Deduplicate::Distinct)
                || modifiers.limit.is_some()
                || modifiers.offset > 0
                || evaluates_apart(&select.group)
        }
        // They have graphs of their own.
        Element::Graph(..) | Element::BareGraph(..) | Element::Window(..) | Element::Service(_) => {
            false
        }
        Element::Triples(_) | Element::Filter(_) | Element::Bind(..) | Element::Values(_) => false,
    })
}

/// True of quad patterns, some of which match `var`, under filters at most.
fn is_filtered_quads_with(pattern: &Pattern, var: Var) -> bool {
    match pattern {
        Pattern::Filter { inner, .. } => is_filtered_quads_with(inner, var),
        Pattern::Quads(_) => pattern.mentions(var),
        _ => false,
    }
}

/// Gives the graph `from` the name `to`; `from` is made up, so it occurs as a graph only.
fn rename_graph(pattern: &mut Pattern, from: Var, to: Var) {
    pattern.for_each_mut(&mut |pattern| {
        let rename = |scope: &mut Scope| {
            if *scope == Scope::Graph(Slot::Var(from)) {
                *scope = Scope::Graph(Slot::Var(to));
            }
        };
        match pattern {
            Pattern::Quads(quads) => quads.iter_mut().for_each(|quad| rename(&mut quad.scope)),
            Pattern::Path(path) => rename(&mut path.scope),
            Pattern::Graphs(slot) if *slot == Slot::Var(from) => *slot = Slot::Var(to),
            Pattern::Minus { graph, .. } if *graph == Some(from) => *graph = Some(to),
            _ => (),
        }
    });
}

#[cfg(test)]
mod tests {
    use jindou_syntax::{Options, parse_continuous};

    use crate::arguments::Arguments;
    use crate::convert::Converter;
    use crate::error::PlanError;
    use crate::patience::Patience;

    #[test]
    fn windows_and_bare_names_are_refused_by_name() {
        let header = "SELECT * FROM NAMED WINDOW <e:w> ON s [RANGE 1s] ";
        for (pattern, feature, column) in [
            ("{ WINDOW <e:w> {} }", "windows of streams", 10),
            ("{ ?s ?p ?o WINDOW ?w {} }", "windows of streams", 19),
            (
                "{ FILTER EXISTS { WINDOW ?w {} } }",
                "windows of streams",
                26,
            ),
            ("{ OPTIONAL { GRAPH s {} } }", "bare names of graphs", 20),
        ] {
            let text = format!("{header}\n{pattern}");
            let read = parse_continuous(&text, Options::default()).expect("a continuous query");
            let patience = Patience::new(&|| false);
            let converter = Converter::new(&text, None, Arguments::none(), &patience);
            let error = converter.query(&read.query).err();
            let expected = PlanError::Unsupported {
                feature: feature.to_owned(),
                line: 2,
                column,
            };
            assert_eq!(error, Some(expected), "{pattern}");
        }
    }
}
