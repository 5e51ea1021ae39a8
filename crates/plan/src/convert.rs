//! How does the parser's algebra read in our own?
//!
//! The one boundary to `spargebra`: variables and constants get numbers, GRAPH moves into the
//! quad patterns, and what is not supported is refused by name.

use memchr::memmem;
use oxrdf::vocab::rdf;
use oxrdf::{BlankNode, Literal, NamedNode, Term, Variable};
use rustc_hash::FxHashMap;
use spargebra::Query as Parsed;
use spargebra::algebra::{
    AggregateExpression, AggregateFunction, GraphPattern, OrderExpression, QueryDataset,
};
use spargebra::term::{GroundTerm, NamedNodePattern, TermPattern, TriplePattern};

use crate::algebra::{Deduplicate, LogicalForm, Modifiers, Pattern, Quad, Query, Subquery};
use crate::arguments::Placeholders;
use crate::convert_nested::evaluates_apart;
use crate::error::PlanError;
use crate::expression::Expression;
use crate::physical::{
    ConstId, Constant, Dataset, OrderKey, RemoteQuery, Scope, Service, Slot, TemplateSlot,
    TemplateTriple, Var,
};
use crate::remote;
use crate::star::order_variables;

/// Patterns nested in each other above which a query is refused.
const MAX_DEPTH: usize = 512;
/// Digits that the number in a name made up by the parser, which has 128 random bits, exceeds.
const MADE_UP_DIGITS: usize = 16;
/// Triple patterns above which a query is refused: the search for their order is cubic.
const MAX_TRIPLE_PATTERNS: usize = 4096;

/// Converts one parsed query.
pub(crate) struct Converter<'a> {
    /// The text, to tell the query's variables from those that the parser made up.
    text: &'a str,
    placeholders: Option<&'a mut Placeholders>,
    variables: Vec<String>,
    pub(crate) by_name: FxHashMap<String, Var>,
    blanks: FxHashMap<BlankNode, Var>,
    constants: Vec<Constant>,
    by_term: FxHashMap<Term, ConstId>,
    made_up: usize,
    triple_patterns: usize,
    pub(crate) depth: usize,
    /// The base IRI of the query.
    pub(crate) base: Option<NamedNode>,
    /// There is a SERVICE somewhere.
    calls_services: bool,
    /// Nested SELECTs around.
    pub(crate) subqueries: usize,
    /// The SELECT that is converted next is all that is grouped, and an aggregate shows its order.
    pub(crate) order_is_seen: bool,
    /// EXISTS around.
    pub(crate) exists: usize,
    /// The current graph of the expression in work.
    pub(crate) scope: Scope,
    /// EXISTS of the expression in work, each with the variable that stands for it.
    pub(crate) marks: Vec<(Var, Pattern)>,
}

/// A pattern, and whether each of its solutions comes from the current graph: where it does not
/// (inline data, an empty group), the current GRAPH has still to be enumerated.
pub(crate) struct Scoped {
    pub(crate) pattern: Pattern,
    pub(crate) in_graph: bool,
}

impl<'a> Converter<'a> {
    pub(crate) fn new(text: &'a str, placeholders: Option<&'a mut Placeholders>) -> Self {
        Self {
            text,
            placeholders,
            variables: Vec::new(),
            by_name: FxHashMap::default(),
            blanks: FxHashMap::default(),
            constants: Vec::new(),
            by_term: FxHashMap::default(),
            made_up: 0,
            triple_patterns: 0,
            depth: 0,
            base: None,
            calls_services: false,
            subqueries: 0,
            order_is_seen: false,
            exists: 0,
            scope: Scope::Default,
            marks: Vec::new(),
        }
    }

    /// Converts the whole query.
    ///
    /// # Errors
    /// [`PlanError::Unsupported`] by name, [`PlanError::TooLarge`].
    pub(crate) fn query(mut self, parsed: Parsed) -> Result<Query, PlanError> {
        let (kind, template, dataset, pattern, base) = match parsed {
            Parsed::Select {
                dataset,
                pattern,
                base_iri,
            } => (Kind::Select, Vec::new(), dataset, pattern, base_iri),
            Parsed::Ask {
                dataset,
                pattern,
                base_iri,
            } => (Kind::Ask, Vec::new(), dataset, pattern, base_iri),
            Parsed::Describe {
                dataset,
                pattern,
                base_iri,
            } => (Kind::Describe, Vec::new(), dataset, pattern, base_iri),
            Parsed::Construct {
                template,
                dataset,
                pattern,
                base_iri,
            } => (Kind::Construct, template, dataset, pattern, base_iri),
        };
        self.base = base.map(|iri| NamedNode::new_unchecked(iri.into_inner()));
        let mut select = Select::split(pattern);
        if matches!(kind, Kind::Select) {
            order_variables(self.text, &mut select.project);
        }
        let (inner, described) = match kind {
            Kind::Describe => split_described(self.text, select.inner),
            _ => (select.inner, FxHashMap::default()),
        };
        let scoped = self.pattern(inner, Scope::Default)?;
        let (scoped, order) = self.order(scoped, select.order, Scope::Default)?;
        let form = match kind {
            Kind::Ask => LogicalForm::Ask,
            Kind::Construct => LogicalForm::Construct(self.template(template)?),
            Kind::Select => LogicalForm::Select(
                select
                    .project
                    .into_iter()
                    .map(|variable| self.variable(variable))
                    .collect::<Result<_, _>>()?,
            ),
            Kind::Describe => LogicalForm::Describe(
                select
                    .project
                    .into_iter()
                    .map(|variable| match described.get(&variable) {
                        Some(node) => self.iri(node.clone()).map(Slot::Const),
                        None => self.variable(variable).map(Slot::Var),
                    })
                    .collect::<Result<_, _>>()?,
            ),
        };
        let modifiers = Modifiers {
            order,
            deduplicate: select.deduplicate,
            offset: select.offset,
            limit: select.limit,
        };
        let dataset = dataset.map(convert_dataset);
        Ok(self.finish(form, scoped.pattern, modifiers, dataset))
    }

    /// The query of these parts, with the variables and constants met so far.
    pub(crate) fn finish(
        self,
        form: LogicalForm,
        pattern: Pattern,
        modifiers: Modifiers,
        dataset: Option<Dataset>,
    ) -> Query {
        Query {
            form,
            variables: self.variables,
            constants: self.constants,
            dataset,
            base: self.base,
            pattern,
            modifiers,
            calls_services: self.calls_services,
        }
    }

    /// The constants met so far, by their numbers.
    pub(crate) fn constants(&self) -> &[Constant] {
        &self.constants
    }

    /// Converts the keys of ORDER BY; their EXISTS are answered in the pattern.
    pub(crate) fn order(
        &mut self,
        scoped: Scoped,
        keys: Vec<OrderExpression>,
        scope: Scope,
    ) -> Result<(Scoped, Vec<OrderKey>), PlanError> {
        self.marking(scoped, scope, |this| {
            keys.into_iter().map(|key| this.order_key(key)).collect()
        })
    }

    fn order_key(&mut self, key: OrderExpression) -> Result<OrderKey, PlanError> {
        let (expression, descending) = match key {
            OrderExpression::Asc(expression) => (expression, false),
            OrderExpression::Desc(expression) => (expression, true),
        };
        Ok(OrderKey {
            expression: self.expression(expression)?,
            descending,
        })
    }

    fn template(&mut self, triples: Vec<TriplePattern>) -> Result<Vec<TemplateTriple>, PlanError> {
        let mut blanks = FxHashMap::default();
        triples
            .into_iter()
            .map(|triple| self.template_triple(triple, &mut blanks, false))
            .collect()
    }

    /// A triple of a template whose blank nodes so far have the numbers in `blanks`; where it is
    /// `structural`, equal constants share a number.
    pub(crate) fn template_triple(
        &mut self,
        triple: TriplePattern,
        blanks: &mut FxHashMap<BlankNode, u16>,
        structural: bool,
    ) -> Result<TemplateTriple, PlanError> {
        let mut slot = |term: TermPattern| -> Result<TemplateSlot, PlanError> {
            Ok(match term {
                TermPattern::BlankNode(node) => {
                    let next = blanks.len();
                    let number = *blanks.entry(node).or_insert(narrow(next, "blank nodes")?);
                    TemplateSlot::Blank(number)
                }
                term => match self.slot(term, structural)? {
                    Slot::Var(var) => TemplateSlot::Var(var),
                    Slot::Const(constant) => TemplateSlot::Const(constant),
                },
            })
        };
        let predicate = match triple.predicate {
            NamedNodePattern::NamedNode(node) => TermPattern::NamedNode(node),
            NamedNodePattern::Variable(variable) => TermPattern::Variable(variable),
        };
        Ok(TemplateTriple {
            subject: slot(triple.subject)?,
            predicate: slot(predicate)?,
            object: slot(triple.object)?,
        })
    }

    pub(crate) fn pattern(
        &mut self,
        pattern: GraphPattern,
        scope: Scope,
    ) -> Result<Scoped, PlanError> {
        self.deepen()?;
        let scoped = self.pattern_of_any_kind(pattern, scope)?;
        self.depth -= 1;
        Ok(scoped)
    }

    /// Counts one more level of nesting.
    pub(crate) fn deepen(&mut self) -> Result<(), PlanError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(PlanError::TooLarge {
                what: "patterns nested in each other",
                limit: MAX_DEPTH,
            });
        }
        Ok(())
    }

    fn pattern_of_any_kind(
        &mut self,
        pattern: GraphPattern,
        scope: Scope,
    ) -> Result<Scoped, PlanError> {
        let scoped = match pattern {
            GraphPattern::Bgp { patterns } => self.basic(patterns, scope)?,
            GraphPattern::Join { left, right } => {
                let left = self.pattern(*left, scope)?;
                let right = self.pattern(*right, scope)?;
                Scoped {
                    in_graph: left.in_graph || right.in_graph,
                    pattern: Pattern::Join(Box::new(left.pattern), Box::new(right.pattern)),
                }
            }
            GraphPattern::LeftJoin {
                left,
                right,
                expression,
            } => {
                let left = self.pattern(*left, scope)?;
                // The left side must bind the graph before the right side can be matched in it.
                let left = in_graph(left, scope);
                let right = self.pattern(*right, scope)?.pattern;
                let (condition, marks) = self.with_marks(scope, |this| match expression {
                    Some(expression) => this.expression(expression).map(Some),
                    None => Ok(None),
                })?;
                Scoped {
                    pattern: Pattern::LeftJoin {
                        left: Box::new(left),
                        right: Box::new(right),
                        marks,
                        condition,
                    },
                    in_graph: true,
                }
            }
            GraphPattern::Union { left, right } => self.union(*left, *right, scope)?,
            GraphPattern::Filter { expr, inner } => {
                let inner = self.pattern(*inner, scope)?;
                self.filter(inner, expr, scope)?
            }
            GraphPattern::Extend {
                inner,
                variable,
                expression,
            } => {
                let inner = self.pattern(*inner, scope)?;
                let (inner, expression) =
                    self.marking(inner, scope, |this| this.expression(expression))?;
                Scoped {
                    pattern: Pattern::Extend {
                        inner: Box::new(inner.pattern),
                        expression,
                        var: self.variable(variable)?,
                    },
                    in_graph: inner.in_graph,
                }
            }
            GraphPattern::Values {
                variables,
                bindings,
            } => self.values(variables, bindings)?,
            GraphPattern::Group {
                inner,
                variables,
                aggregates,
            } => self.group(*inner, variables, aggregates, scope)?,
            GraphPattern::Graph { name, inner } => self.graph(name, *inner)?,
            GraphPattern::Minus { left, right } => {
                let left = in_graph(self.pattern(*left, scope)?, scope);
                let right = in_graph(self.pattern(*right, scope)?, scope);
                Scoped {
                    pattern: Pattern::Minus {
                        left: Box::new(left),
                        right: Box::new(right),
                        graph: match scope {
                            Scope::Graph(Slot::Var(var)) => Some(var),
                            _ => None,
                        },
                    },
                    in_graph: true,
                }
            }
            GraphPattern::Path {
                subject,
                path,
                object,
            } => Scoped {
                pattern: self.path(subject, path, object, scope)?,
                in_graph: true,
            },
            GraphPattern::Lateral { .. } => return Err(PlanError::unsupported("LATERAL")),
            GraphPattern::Service {
                name,
                inner,
                silent,
            } => self.service(name, &inner, silent)?,
            select @ (GraphPattern::Project { .. }
            | GraphPattern::Distinct { .. }
            | GraphPattern::Reduced { .. }
            | GraphPattern::Slice { .. }
            | GraphPattern::OrderBy { .. }) => self.subquery(select, scope)?,
        };
        Ok(scoped)
    }

    fn group(
        &mut self,
        inner: GraphPattern,
        variables: Vec<Variable>,
        aggregates: Vec<(Variable, AggregateExpression)>,
        scope: Scope,
    ) -> Result<Scoped, PlanError> {
        self.order_is_seen = is_select(&inner) && aggregates.iter().any(|(_, a)| shows_order(a));
        let inner = in_graph(self.pattern(inner, scope)?, scope);
        let mut by = Vec::with_capacity(variables.len());
        for variable in variables {
            let var = self.variable(variable)?;
            if !by.contains(&var) {
                by.push(var);
            }
        }
        let counts_solutions = aggregates.iter().any(|(_, aggregate)| {
            matches!(
                aggregate,
                AggregateExpression::CountSolutions { distinct: true }
            )
        });
        let inner = if counts_solutions {
            self.solutions_only(inner)
        } else {
            inner
        };
        let inner = Scoped {
            pattern: inner,
            in_graph: true,
        };
        let (inner, aggregates) = self.marking(inner, scope, |this| {
            aggregates
                .into_iter()
                .map(|(variable, aggregate)| {
                    let aggregate = this.aggregate(aggregate)?;
                    Ok((this.variable(variable)?, aggregate))
                })
                .collect()
        })?;
        Ok(Scoped {
            pattern: Pattern::Group {
                inner: Box::new(inner.pattern),
                by,
                aggregates,
            },
            // Without keys there is a group even where there is no graph.
            in_graph: false,
        })
    }

    /// Drops what the pattern binds beyond the variables of its own SELECT, such as blank nodes.
    fn solutions_only(&mut self, pattern: Pattern) -> Pattern {
        let possible = pattern.possible();
        let mut project: Vec<Var> = self.by_name.values().copied().collect();
        project.retain(|var| possible.contains(*var));
        project.sort_unstable();
        Pattern::Subquery(Box::new(Subquery {
            pattern,
            project,
            modifiers: Modifiers {
                order: Vec::new(),
                deduplicate: Deduplicate::No,
                offset: 0,
                limit: None,
            },
        }))
    }

    fn basic(&mut self, patterns: Vec<TriplePattern>, scope: Scope) -> Result<Scoped, PlanError> {
        if patterns.is_empty() {
            return Ok(Scoped {
                pattern: Pattern::Unit,
                in_graph: false,
            });
        }
        self.count_triple_patterns(patterns.len())?;
        let quads = patterns
            .into_iter()
            .map(|triple| self.quad(triple, scope))
            .collect::<Result<_, _>>()?;
        Ok(Scoped {
            pattern: Pattern::Quads(quads),
            in_graph: true,
        })
    }

    pub(crate) fn count_triple_patterns(&mut self, more: usize) -> Result<(), PlanError> {
        self.triple_patterns += more;
        if self.triple_patterns > MAX_TRIPLE_PATTERNS {
            return Err(PlanError::TooLarge {
                what: "triple patterns",
                limit: MAX_TRIPLE_PATTERNS,
            });
        }
        Ok(())
    }

    fn quad(&mut self, triple: TriplePattern, scope: Scope) -> Result<Quad, PlanError> {
        let subject = self.slot(triple.subject, false)?;
        let mut is_type = false;
        let predicate = match triple.predicate {
            NamedNodePattern::NamedNode(node) => {
                is_type = node == rdf::TYPE;
                Slot::Const(self.iri(node)?)
            }
            NamedNodePattern::Variable(variable) => Slot::Var(self.variable(variable)?),
        };
        Ok(Quad {
            subject,
            predicate,
            // A type decides the plan, so it is a part of it.
            object: self.slot(triple.object, is_type)?,
            scope,
        })
    }

    pub(crate) fn slot(&mut self, term: TermPattern, structural: bool) -> Result<Slot, PlanError> {
        Ok(match term {
            TermPattern::Variable(variable) => Slot::Var(self.variable(variable)?),
            TermPattern::BlankNode(node) => {
                if let Some(var) = self.blanks.get(&node) {
                    return Ok(Slot::Var(*var));
                }
                let var = self.make_up_variable()?;
                self.blanks.insert(node, var);
                Slot::Var(var)
            }
            TermPattern::NamedNode(node) if structural => Slot::Const(self.iri(node)?),
            TermPattern::NamedNode(node) => Slot::Const(self.value_iri(node)?),
            TermPattern::Literal(literal) if structural => Slot::Const(self.literal(literal)?),
            TermPattern::Literal(literal) => Slot::Const(self.value_literal(literal)?),
        })
    }

    fn union(
        &mut self,
        left: GraphPattern,
        right: GraphPattern,
        scope: Scope,
    ) -> Result<Scoped, PlanError> {
        // The parser makes chains that lean to the left.
        let mut branches = vec![right];
        let mut rest = left;
        while let GraphPattern::Union { left, right } = rest {
            branches.push(*right);
            rest = *left;
        }
        branches.push(rest);
        let branches = branches
            .into_iter()
            .rev()
            .map(|branch| Ok(in_graph(self.pattern(branch, scope)?, scope)))
            .collect::<Result<_, PlanError>>()?;
        Ok(Scoped {
            pattern: Pattern::Union(branches),
            in_graph: true,
        })
    }

    fn values(
        &mut self,
        variables: Vec<Variable>,
        bindings: Vec<Vec<Option<GroundTerm>>>,
    ) -> Result<Scoped, PlanError> {
        let vars = variables
            .into_iter()
            .map(|variable| self.variable(variable))
            .collect::<Result<_, _>>()?;
        let rows = bindings
            .into_iter()
            .map(|row| {
                row.into_iter()
                    .map(|cell| match cell {
                        None => Ok(None),
                        Some(GroundTerm::NamedNode(node)) => self.value_iri(node).map(Some),
                        Some(GroundTerm::Literal(literal)) => self.value_literal(literal).map(Some),
                    })
                    .collect()
            })
            .collect::<Result<_, _>>()?;
        Ok(Scoped {
            pattern: Pattern::Values { vars, rows },
            in_graph: false,
        })
    }

    /// GRAPH: its quad patterns name the graph themselves.
    ///
    /// The graph's variable is bound only after the inner pattern is evaluated. Where the inner
    /// pattern does not mention it, or mentions it in quad patterns alone, it makes no difference
    /// to bind it at once. Elsewhere a variable of our own stands for the graph inside, and the
    /// result is joined with the pairs (graph, graph).
    fn graph(&mut self, name: NamedNodePattern, inner: GraphPattern) -> Result<Scoped, PlanError> {
        let variable = match name {
            NamedNodePattern::NamedNode(node) => {
                let scope = Scope::Graph(Slot::Const(self.iri(node)?));
                let pattern = in_graph(self.pattern(inner, scope)?, scope);
                return Ok(Scoped {
                    pattern,
                    in_graph: false,
                });
            }
            NamedNodePattern::Variable(variable) => variable,
        };
        let text = inner.to_string();
        let outer = self.variable(variable.clone())?;
        if evaluates_apart(&inner) {
            return self.each_graph(outer, inner);
        }
        let pattern = if memmem::find(text.as_bytes(), variable.to_string().as_bytes()).is_none() {
            let scope = Scope::Graph(Slot::Var(outer));
            in_graph(self.pattern(inner, scope)?, scope)
        } else {
            if self.exists > 0 {
                // Its value may be given from outside, so that it may not be computed here.
                return self.each_graph(outer, inner);
            }
            let hidden = self.make_up_variable()?;
            let scope = Scope::Graph(Slot::Var(hidden));
            let mut pattern = in_graph(self.pattern(inner, scope)?, scope);
            if !pattern.mentions(outer) || is_filtered_quads_with(&pattern, outer) {
                rename_graph(&mut pattern, hidden, outer);
                pattern
            } else {
                Pattern::Join(
                    Box::new(pattern),
                    Box::new(Pattern::Extend {
                        inner: Box::new(Pattern::Graphs(Slot::Var(hidden))),
                        var: outer,
                        expression: Expression::Variable(hidden),
                    }),
                )
            }
        };
        Ok(Scoped {
            pattern,
            in_graph: false,
        })
    }

    /// SERVICE: its pattern is another endpoint's to answer, and so is only written down.
    fn service(
        &mut self,
        name: NamedNodePattern,
        inner: &GraphPattern,
        silent: bool,
    ) -> Result<Scoped, PlanError> {
        self.calls_services = true;
        let pattern = remote::group(inner)?;
        let (endpoint, endpoint_name) = match name {
            NamedNodePattern::NamedNode(node) => (Slot::Const(self.iri(node)?), String::new()),
            NamedNodePattern::Variable(variable) => {
                let name = variable.as_str().to_owned();
                (Slot::Var(self.variable(variable)?), name)
            }
        };
        let certain = remote::certain(inner);
        let visible = remote::visible(inner);
        let mut service = Service {
            endpoint,
            endpoint_name,
            silent,
            query: RemoteQuery {
                base: self.base.clone(),
                names: Vec::with_capacity(visible.len()),
                spare: remote::unused(&pattern),
                plain: remote::is_plain(inner),
                pattern,
            },
            columns: Vec::with_capacity(visible.len()),
            certain: Vec::new(),
        };
        for variable in visible {
            let is_certain = certain.contains(&variable);
            service.query.names.push(variable.as_str().to_owned());
            let var = self.variable(variable)?;
            service.columns.push(var);
            if is_certain {
                service.certain.push(var);
            }
        }
        Ok(Scoped {
            pattern: Pattern::Service(Box::new(service)),
            in_graph: false,
        })
    }

    pub(crate) fn variable(&mut self, variable: Variable) -> Result<Var, PlanError> {
        let name = variable.into_string();
        if let Some(var) = self.by_name.get(&name) {
            return Ok(*var);
        }
        let var = if self.subqueries > 0 {
            self.hidden_variable(&name)?
        } else if is_named(self.text, &name) {
            let var = Var(narrow(self.variables.len(), "variables")?);
            self.variables.push(name.clone());
            var
        } else {
            self.make_up_variable()?
        };
        self.by_name.insert(name, var);
        Ok(var)
    }

    /// A variable that is another than that of the same name outside.
    pub(crate) fn hidden_variable(&mut self, name: &str) -> Result<Var, PlanError> {
        if !is_named(self.text, name) {
            return self.make_up_variable();
        }
        let var = Var(narrow(self.variables.len(), "variables")?);
        // No name in a text has a dot.
        self.variables.push(format!("{name}.{}", self.made_up));
        self.made_up += 1;
        Ok(var)
    }

    pub(crate) fn make_up_variable(&mut self) -> Result<Var, PlanError> {
        let var = Var(narrow(self.variables.len(), "variables")?);
        self.variables.push(format!(".{}", self.made_up));
        self.made_up += 1;
        Ok(var)
    }

    /// A constant that is a part of the plan's structure; each term has one number.
    fn fixed(&mut self, term: Term) -> Result<ConstId, PlanError> {
        if let Some(id) = self.by_term.get(&term) {
            return Ok(*id);
        }
        let id = self.push(Constant::Fixed(term.clone()))?;
        self.by_term.insert(term, id);
        Ok(id)
    }

    fn push(&mut self, constant: Constant) -> Result<ConstId, PlanError> {
        let id = ConstId(narrow(self.constants.len(), "constants")?);
        self.constants.push(constant);
        Ok(id)
    }

    /// An IRI in the structure of the query: a predicate, a type, a graph.
    pub(crate) fn iri(&mut self, node: NamedNode) -> Result<ConstId, PlanError> {
        if let Some(placeholders) = &mut self.placeholders {
            placeholders.note_iri(node.as_str());
        }
        self.fixed(node.into())
    }

    /// A literal in the structure of the query.
    pub(crate) fn literal(&mut self, literal: Literal) -> Result<ConstId, PlanError> {
        if let Some(placeholders) = &mut self.placeholders {
            placeholders.note_literal(&literal);
        }
        self.fixed(literal.into())
    }

    /// An IRI in the place of a value. Each occurrence has its own number, so that a text with
    /// placeholders and one with the terms themselves get the same numbers.
    pub(crate) fn value_iri(&mut self, node: NamedNode) -> Result<ConstId, PlanError> {
        let parameter = self
            .placeholders
            .as_mut()
            .and_then(|placeholders| placeholders.iri_value(&node));
        self.push(parameter.unwrap_or_else(|| Constant::Fixed(node.into())))
    }

    /// A literal in the place of a value.
    pub(crate) fn value_literal(&mut self, literal: Literal) -> Result<ConstId, PlanError> {
        let parameter = self
            .placeholders
            .as_mut()
            .and_then(|placeholders| placeholders.literal_value(&literal));
        self.push(parameter.unwrap_or_else(|| Constant::Fixed(literal.into())))
    }

    /// Notes an IRI that names a function.
    pub(crate) fn note_function(&mut self, iri: &NamedNode) {
        if let Some(placeholders) = &mut self.placeholders {
            placeholders.note_iri(iri.as_str());
        }
    }
}

/// Which of the four forms.
#[derive(Clone, Copy)]
enum Kind {
    Select,
    Ask,
    Construct,
    Describe,
}

/// True of a nested SELECT, or what is left of one without projection.
fn is_select(pattern: &GraphPattern) -> bool {
    matches!(
        pattern,
        GraphPattern::Project { .. }
            | GraphPattern::Distinct { .. }
            | GraphPattern::Reduced { .. }
            | GraphPattern::Slice { .. }
            | GraphPattern::OrderBy { .. }
    )
}

/// SPARQL leaves to the engine in which order values are concatenated; that of what is grouped is
/// what everybody expects.
fn shows_order(aggregate: &AggregateExpression) -> bool {
    matches!(
        aggregate,
        AggregateExpression::FunctionCall {
            name: AggregateFunction::GroupConcat { .. } | AggregateFunction::Sample,
            ..
        }
    )
}

/// A SELECT, taken apart.
pub(crate) struct Select {
    pub(crate) inner: GraphPattern,
    pub(crate) project: Vec<Variable>,
    pub(crate) order: Vec<OrderExpression>,
    pub(crate) deduplicate: Deduplicate,
    pub(crate) offset: usize,
    pub(crate) limit: Option<usize>,
}

impl Select {
    pub(crate) fn split(pattern: GraphPattern) -> Self {
        let mut split = Self {
            inner: pattern,
            project: Vec::new(),
            order: Vec::new(),
            deduplicate: Deduplicate::No,
            offset: 0,
            limit: None,
        };
        if let GraphPattern::Slice {
            inner,
            start,
            length,
        } = split.inner
        {
            (split.offset, split.limit) = (start, length);
            split.inner = *inner;
        }
        match split.inner {
            GraphPattern::Distinct { inner } => {
                split.deduplicate = Deduplicate::Distinct;
                split.inner = *inner;
            }
            GraphPattern::Reduced { inner } => {
                split.deduplicate = Deduplicate::Reduced;
                split.inner = *inner;
            }
            other => split.inner = other,
        }
        if let GraphPattern::Project { inner, variables } = split.inner {
            split.project = variables;
            split.inner = *inner;
        }
        if let GraphPattern::OrderBy { inner, expression } = split.inner {
            split.order = expression;
            split.inner = *inner;
        }
        split
    }
}

/// The IRIs of DESCRIBE, which the parser makes columns of the outermost pattern.
fn split_described(
    text: &str,
    mut pattern: GraphPattern,
) -> (GraphPattern, FxHashMap<Variable, NamedNode>) {
    let mut described = FxHashMap::default();
    loop {
        match pattern {
            GraphPattern::Extend {
                inner,
                variable,
                expression: spargebra::algebra::Expression::NamedNode(node),
            } if !is_named(text, variable.as_str()) => {
                described.insert(variable, node);
                pattern = *inner;
            }
            other => return (other, described),
        }
    }
}

/// True if the text may name this variable; the parser makes up random names of up to 32
/// hexadecimal digits, which no text contains. The text is not searched for other names.
fn is_named(text: &str, name: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f');
    let may_be_made_up = name.len() > MADE_UP_DIGITS && name.bytes().all(is_digit);
    !may_be_made_up || memmem::find(text.as_bytes(), name.as_bytes()).is_some()
}

/// The pattern with the current graph enumerated where nothing in it does that already.
pub(crate) fn in_graph(scoped: Scoped, scope: Scope) -> Pattern {
    match scope {
        Scope::Graph(graph) if !scoped.in_graph => match scoped.pattern {
            Pattern::Unit => Pattern::Graphs(graph),
            pattern => Pattern::Join(Box::new(Pattern::Graphs(graph)), Box::new(pattern)),
        },
        _ => scoped.pattern,
    }
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

pub(crate) fn convert_dataset(dataset: QueryDataset) -> Dataset {
    Dataset {
        default: dataset.default,
        named: dataset.named.unwrap_or_default(),
    }
}

fn narrow(number: usize, what: &'static str) -> Result<u16, PlanError> {
    u16::try_from(number).map_err(|_| PlanError::TooLarge {
        what,
        limit: usize::from(u16::MAX),
    })
}
