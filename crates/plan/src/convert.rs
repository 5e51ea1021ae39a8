//! How does the tree of a query read in our own algebra?
//!
//! The one boundary to the syntax: variables and constants get numbers, GRAPH moves into the
//! quad patterns, and what is not supported is refused by name. Patterns are those of SPARQL's
//! section 18.2.2 ([`crate::convert_group`]), solution modifiers those of 18.2.4
//! ([`crate::convert_select`]).

use std::borrow::Cow;

use jindou_syntax::tree::{self, Form, Iri, LiteralKind, Name, Span, Term as Parsed};
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{Literal, NamedNode, Term};
use rustc_hash::FxHashMap;

use crate::algebra::{Deduplicate, LogicalForm, Modifiers, Pattern, Query};
use crate::arguments::Arguments;
use crate::continuous::Declared;
use crate::convert_select::{Solutions, columns};
use crate::error::PlanError;
use crate::patience::Patience;
use crate::physical::{
    ConstId, Constant, Dataset, Scope, Slot, TemplateSlot, TemplateTriple, Var, Windows,
};

/// Patterns that build on each other above which a query is refused: planning recurses over them.
pub(crate) const MAX_HEIGHT: usize = 512;
/// Triple patterns above which a query is refused: the search for their order is cubic.
const MAX_TRIPLE_PATTERNS: usize = 4096;
/// Patterns that are joined with others above which a query is refused: each may be an operator on
/// those before it, and plans are walked by recursion.
const MAX_JOINED_PATTERNS: usize = u16::MAX as usize;

/// Converts one parsed query.
pub(crate) struct Converter<'t> {
    /// For the places of what is refused.
    text: &'t str,
    pub(crate) arguments: Arguments<'t>,
    /// Spent on each part of the text.
    pub(crate) patience: &'t Patience<'t>,
    variables: Vec<String>,
    pub(crate) by_name: FxHashMap<&'t str, Var>,
    blanks: FxHashMap<u32, Var>,
    constants: Vec<Constant>,
    by_term: FxHashMap<Term, ConstId>,
    made_up: usize,
    triple_patterns: usize,
    joined_patterns: usize,
    /// Expressions and paths around.
    pub(crate) depth: usize,
    /// The base IRI of the query.
    pub(crate) base: Option<NamedNode>,
    /// There is a SERVICE somewhere.
    pub(crate) calls_services: bool,
    /// An expression asks when triples of windows came.
    pub(crate) reads_times: bool,
    /// Nested SELECTs around.
    pub(crate) subqueries: usize,
    /// The SELECT that is converted next is all that is grouped, and an aggregate shows its order.
    pub(crate) order_is_seen: bool,
    /// EXISTS around.
    pub(crate) exists: usize,
    /// The current graph of the expression in work.
    pub(crate) scope: Scope,
    /// EXISTS of the expression in work.
    pub(crate) marks: Vec<Mark>,
    /// The variables that hold aggregates, by the places of these.
    pub(crate) aggregates: FxHashMap<Span, Var>,
    /// What names of a continuous query stand for.
    declared: Option<Declared<'t>>,
    /// What it reads beside its dataset.
    windows: Option<Windows>,
}

/// An EXISTS of an expression, with the variable that stands for it there.
pub(crate) struct Mark {
    pub(crate) var: Var,
    pub(crate) pattern: Pattern,
    pub(crate) height: usize,
}

/// A pattern, and what is to be known of it until all is converted.
pub(crate) struct Scoped {
    pub(crate) pattern: Pattern,
    /// Whether each of its solutions comes from the current graph: where it does not (inline data,
    /// an empty group), the current GRAPH has still to be enumerated.
    pub(crate) in_graph: bool,
    /// Patterns that build on each other in it, at most.
    pub(crate) height: usize,
}

impl Scoped {
    /// A pattern that builds on none.
    pub(crate) fn leaf(pattern: Pattern, in_graph: bool) -> Self {
        Self {
            pattern,
            in_graph,
            height: 1,
        }
    }

    /// A pattern that builds on others of which the highest has this height.
    ///
    /// # Errors
    /// [`PlanError::TooLarge`].
    pub(crate) fn above(
        height: usize,
        pattern: Pattern,
        in_graph: bool,
    ) -> Result<Self, PlanError> {
        let scoped = Self {
            pattern,
            in_graph,
            height: height + 1,
        };
        match scoped.height > MAX_HEIGHT {
            true => Err(PlanError::TooLarge {
                what: "patterns that build on each other",
                limit: MAX_HEIGHT,
            }),
            false => Ok(scoped),
        }
    }

    /// The union of patterns that name their graphs themselves.
    pub(crate) fn union(branches: Vec<Self>) -> Result<Self, PlanError> {
        let height = branches.iter().map(|branch| branch.height).max();
        let patterns = branches.into_iter().map(|branch| branch.pattern).collect();
        Self::above(height.unwrap_or(0), Pattern::Union(patterns), false)
    }

    /// True of the empty group.
    pub(crate) fn is_unit(&self) -> bool {
        !self.in_graph && self.pattern == Pattern::Unit
    }

    /// The same with the current graph enumerated where nothing in it does that already.
    pub(crate) fn in_graph(self, scope: Scope) -> Self {
        let Scope::Graph(graph) = scope else {
            return self;
        };
        if self.in_graph {
            return self;
        }
        Self {
            pattern: match self.pattern {
                Pattern::Unit => Pattern::Graphs(graph),
                pattern => Pattern::Join(vec![Pattern::Graphs(graph), pattern]),
            },
            in_graph: true,
            height: self.height + 1,
        }
    }
}

impl<'t> Converter<'t> {
    pub(crate) fn new(
        text: &'t str,
        base: Option<&str>,
        arguments: Arguments<'t>,
        patience: &'t Patience<'t>,
    ) -> Self {
        Self {
            text,
            arguments,
            patience,
            variables: Vec::new(),
            by_name: FxHashMap::default(),
            blanks: FxHashMap::default(),
            constants: Vec::new(),
            by_term: FxHashMap::default(),
            made_up: 0,
            triple_patterns: 0,
            joined_patterns: 0,
            depth: 0,
            base: base.map(NamedNode::new_unchecked),
            calls_services: false,
            reads_times: false,
            subqueries: 0,
            order_is_seen: false,
            exists: 0,
            scope: Scope::Default,
            marks: Vec::new(),
            aggregates: FxHashMap::default(),
            declared: None,
            windows: None,
        }
    }

    /// The text that is converted.
    pub(crate) fn text(&self) -> &'t str {
        self.text
    }

    /// The windows of a continuous query.
    pub(crate) fn declared(&self) -> Option<&Declared<'t>> {
        self.declared.as_ref()
    }

    /// Makes it the conversion of a continuous query.
    pub(crate) fn set_declared(&mut self, declared: Declared<'t>, windows: Windows) {
        self.declared = Some(declared);
        self.windows = Some(windows);
    }

    /// Notes that a pattern of a continuous query names a stored graph.
    pub(crate) fn note_read_graph(&mut self, graph: NamedNode) {
        if let Some(windows) = &mut self.windows
            && !windows.graphs.contains(&graph)
        {
            windows.graphs.push(graph);
        }
    }

    /// Converts the whole query.
    ///
    /// # Errors
    /// [`PlanError::Unsupported`] by name, [`PlanError::TooLarge`].
    pub(crate) fn query(mut self, query: &tree::Query<'t>) -> Result<Converted, PlanError> {
        let solutions = |group, columns, modifiers| Solutions {
            group,
            columns,
            modifiers,
            values: query.values.as_ref(),
        };
        let (form, (pattern, modifiers)) = match &query.form {
            Form::Select(select) => {
                let columns = columns(&select.projection);
                let solutions = solutions(Some(&select.group), columns, &select.modifiers);
                let found = self.outermost(solutions, select.deduplicate)?;
                let project = self.projected(&select.projection)?;
                (LogicalForm::Select(project), found)
            }
            Form::Ask { group, modifiers } => {
                let found = self.outermost(solutions(Some(group), &[], modifiers), None)?;
                (LogicalForm::Ask, found)
            }
            Form::Construct {
                template,
                group,
                modifiers,
            } => {
                let found = self.outermost(solutions(Some(group), &[], modifiers), None)?;
                (LogicalForm::Construct(self.template(template)?), found)
            }
            Form::Describe {
                targets,
                group,
                modifiers,
            } => {
                let found = self.outermost(solutions(group.as_ref(), &[], modifiers), None)?;
                let targets = targets.iter().map(|target| self.name(target));
                let targets = targets.collect::<Result<_, _>>()?;
                (LogicalForm::Describe(targets), found)
            }
        };
        let dataset = query.dataset.as_ref().map(dataset);
        let windows = self.windows.take();
        let mut converted = self.finish(form, pattern, modifiers, dataset);
        converted.query.windows = windows;
        Ok(converted)
    }

    /// The query of these parts, with the variables and constants met so far.
    pub(crate) fn finish(
        mut self,
        form: LogicalForm,
        pattern: Pattern,
        modifiers: Modifiers,
        dataset: Option<Dataset>,
    ) -> Converted {
        // What is sent to other endpoints holds the arguments as text.
        if self.calls_services {
            self.arguments.fix();
        }
        let parameters = self.arguments.settle(&mut self.constants);
        let parameters = (!self.calls_services).then_some(parameters);
        Converted {
            query: Query {
                form,
                variables: self.variables,
                constants: self.constants,
                dataset,
                windows: None,
                union_default_graph: false,
                base: self.base,
                pattern,
                modifiers,
                calls_services: self.calls_services,
                reads_times: self.reads_times,
            },
            parameters,
        }
    }

    /// The constants met so far, by their numbers.
    pub(crate) fn constants(&self) -> &[Constant] {
        &self.constants
    }

    /// What the text has at a place.
    pub(crate) fn written(&self, span: Span) -> &'t str {
        let range = span.start as usize..span.end as usize;
        self.text.get(range).unwrap_or_default()
    }

    /// The refusal of what stands at a place of the text.
    pub(crate) fn unsupported(&self, span: Span, feature: impl Into<String>) -> PlanError {
        PlanError::unsupported(feature, self.text, span)
    }

    fn template(&mut self, triples: &[tree::Triple<'t>]) -> Result<Vec<TemplateTriple>, PlanError> {
        let mut blanks = FxHashMap::default();
        let triples = triples.iter();
        triples
            .map(|triple| self.template_triple(triple, &mut blanks, false))
            .collect()
    }

    /// A triple of a template whose blank nodes so far have the numbers in `blanks`; where it is
    /// `structural`, equal constants share a number.
    pub(crate) fn template_triple(
        &mut self,
        triple: &tree::Triple<'t>,
        blanks: &mut FxHashMap<u32, u16>,
        structural: bool,
    ) -> Result<TemplateTriple, PlanError> {
        let mut slot = |this: &mut Self, term: &Parsed<'t>| -> Result<TemplateSlot, PlanError> {
            Ok(match term {
                Parsed::Blank(node) => {
                    let next = blanks.len();
                    let number = *blanks
                        .entry(node.id)
                        .or_insert(narrow(next, "blank nodes")?);
                    TemplateSlot::Blank(number)
                }
                term => this.slot(term, structural)?.into(),
            })
        };
        Ok(TemplateTriple {
            subject: slot(self, &triple.subject)?,
            predicate: match &triple.predicate {
                Name::Variable(variable) => TemplateSlot::Var(self.variable(variable.name)?),
                Name::Iri(iri) if structural => TemplateSlot::Const(self.iri(iri)?),
                Name::Iri(iri) => TemplateSlot::Const(self.value_iri(iri)?),
            },
            object: slot(self, &triple.object)?,
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

    /// Counts a pattern that is joined with others.
    ///
    /// # Errors
    /// [`PlanError::TooLarge`].
    pub(crate) fn count_joined_pattern(&mut self) -> Result<(), PlanError> {
        self.joined_patterns += 1;
        match self.joined_patterns > MAX_JOINED_PATTERNS {
            true => Err(PlanError::TooLarge {
                what: "patterns to join",
                limit: MAX_JOINED_PATTERNS,
            }),
            false => Ok(()),
        }
    }

    /// A variable, or an IRI in the structure of the query.
    pub(crate) fn name(&mut self, name: &Name<'t>) -> Result<Slot, PlanError> {
        Ok(match name {
            Name::Variable(variable) => Slot::Var(self.variable(variable.name)?),
            Name::Iri(iri) => Slot::Const(self.iri(iri)?),
        })
    }

    /// A term of a pattern or template.
    pub(crate) fn slot(&mut self, term: &Parsed<'t>, structural: bool) -> Result<Slot, PlanError> {
        Ok(match term {
            Parsed::Variable(variable) => Slot::Var(self.variable(variable.name)?),
            Parsed::Blank(node) => {
                if let Some(var) = self.blanks.get(&node.id) {
                    return Ok(Slot::Var(*var));
                }
                let var = self.make_up_variable()?;
                self.blanks.insert(node.id, var);
                Slot::Var(var)
            }
            Parsed::Iri(iri) if structural => Slot::Const(self.iri(iri)?),
            Parsed::Iri(iri) => Slot::Const(self.value_iri(iri)?),
            Parsed::Literal(literal) if structural => Slot::Const(self.literal(literal)?),
            Parsed::Literal(literal) => Slot::Const(self.value_literal(literal)?),
            Parsed::Triple(triple) => return Err(self.unsupported(triple.span, "triple terms")),
        })
    }

    pub(crate) fn variable(&mut self, name: &'t str) -> Result<Var, PlanError> {
        self.patience.work(1)?;
        if let Some(var) = self.by_name.get(name) {
            return Ok(*var);
        }
        let var = match self.subqueries {
            0 => self.new_variable(name.to_owned())?,
            _ => self.hidden_variable(name)?,
        };
        self.by_name.insert(name, var);
        Ok(var)
    }

    fn new_variable(&mut self, name: String) -> Result<Var, PlanError> {
        let var = Var(narrow(self.variables.len(), "variables")?);
        self.variables.push(name);
        Ok(var)
    }

    /// A variable that is another than that of the same name outside.
    pub(crate) fn hidden_variable(&mut self, name: &str) -> Result<Var, PlanError> {
        // No name in a text has a dot.
        let name = format!("{name}.{}", self.made_up);
        self.made_up += 1;
        self.new_variable(name)
    }

    /// A variable that the text does not name.
    pub(crate) fn make_up_variable(&mut self) -> Result<Var, PlanError> {
        self.hidden_variable("")
    }

    /// A constant that is a part of the plan's structure; each term has one number.
    pub(crate) fn fixed(&mut self, term: Term) -> Result<ConstId, PlanError> {
        self.patience.work(1)?;
        if let Some(id) = self.by_term.get(&term) {
            return Ok(*id);
        }
        let id = self.push(Constant::Fixed(term.clone()))?;
        self.by_term.insert(term, id);
        Ok(id)
    }

    pub(crate) fn push(&mut self, constant: Constant) -> Result<ConstId, PlanError> {
        self.patience.work(1)?;
        let id = ConstId(narrow(self.constants.len(), "constants")?);
        self.constants.push(constant);
        Ok(id)
    }

    /// An IRI in the structure of the query: a predicate, a type, a graph.
    pub(crate) fn iri(&mut self, iri: &Iri<'t>) -> Result<ConstId, PlanError> {
        self.arguments.note(iri.span);
        self.fixed(node(iri).into())
    }

    /// A literal in the structure of the query.
    pub(crate) fn literal(&mut self, literal: &tree::Literal<'t>) -> Result<ConstId, PlanError> {
        self.arguments.note(literal.span);
        let literal = self.literal_term(literal)?;
        self.fixed(literal.into())
    }

    /// An IRI in the place of a value. Each occurrence has its own number, so that all texts of a
    /// shape get the same numbers.
    pub(crate) fn value_iri(&mut self, iri: &Iri<'t>) -> Result<ConstId, PlanError> {
        let parameter = self.arguments.iri(iri);
        self.push(parameter.unwrap_or_else(|| Constant::Fixed(node(iri).into())))
    }

    /// A literal in the place of a value.
    pub(crate) fn value_literal(
        &mut self,
        literal: &tree::Literal<'t>,
    ) -> Result<ConstId, PlanError> {
        let term = self.literal_term(literal)?;
        let parameter = self.arguments.literal(literal.span, &term);
        self.push(parameter.unwrap_or_else(|| Constant::Fixed(term.into())))
    }

    fn literal_term(&self, literal: &tree::Literal<'t>) -> Result<Literal, PlanError> {
        if let LiteralKind::Language {
            direction: Some(_), ..
        } = literal.kind
        {
            return Err(self.unsupported(literal.span, "literals with a base direction"));
        }
        Ok(literal_term(literal))
    }
}

/// A converted query, and what is needed to keep its plan for other texts of its shape, if that
/// can be.
pub(crate) struct Converted {
    pub(crate) query: Query,
    pub(crate) parameters: Option<crate::arguments::Parameters>,
}

impl From<Slot> for TemplateSlot {
    fn from(slot: Slot) -> Self {
        match slot {
            Slot::Var(var) => Self::Var(var),
            Slot::Const(constant) => Self::Const(constant),
        }
    }
}

/// An IRI as a term.
pub(crate) fn node(iri: &Iri<'_>) -> NamedNode {
    NamedNode::new_unchecked(&*iri.value)
}

/// A literal without base direction as a term.
pub(crate) fn literal_term(literal: &tree::Literal<'_>) -> Literal {
    let value = String::from(&*literal.value);
    let datatype = match &literal.kind {
        LiteralKind::String => return Literal::new_simple_literal(value),
        LiteralKind::Language { tag, .. } => {
            return Literal::new_language_tagged_literal_unchecked(value, Cow::clone(tag));
        }
        LiteralKind::Typed(iri) => node(iri),
        LiteralKind::Integer => xsd::INTEGER.into_owned(),
        LiteralKind::Decimal => xsd::DECIMAL.into_owned(),
        LiteralKind::Double => xsd::DOUBLE.into_owned(),
        LiteralKind::Boolean => xsd::BOOLEAN.into_owned(),
    };
    Literal::new_typed_literal(value, datatype)
}

/// True of `rdf:type`.
pub(crate) fn is_type(iri: &Iri<'_>) -> bool {
    iri.value == rdf::TYPE.as_str()
}

/// A dataset clause.
pub(crate) fn dataset(dataset: &tree::Dataset<'_>) -> Dataset {
    let nodes = |iris: &[Iri<'_>]| iris.iter().map(node).collect();
    Dataset {
        default: nodes(&dataset.default),
        named: nodes(&dataset.named),
    }
}

/// DISTINCT or REDUCED.
pub(crate) fn deduplicate(deduplicate: Option<tree::Deduplicate>) -> Deduplicate {
    match deduplicate {
        None => Deduplicate::No,
        Some(tree::Deduplicate::Distinct) => Deduplicate::Distinct,
        Some(tree::Deduplicate::Reduced) => Deduplicate::Reduced,
    }
}

pub(crate) fn narrow(number: usize, what: &'static str) -> Result<u16, PlanError> {
    u16::try_from(number).map_err(|_| PlanError::TooLarge {
        what,
        limit: usize::from(u16::MAX),
    })
}
