//! How do the parser's update operations read in our own types?

use oxrdf::{BlankNode, NamedNode};
use rustc_hash::{FxHashMap, FxHashSet};
use spargebra::GraphUpdateOperation as Parsed;
use spargebra::algebra::{GraphPattern, GraphTarget as ParsedTarget, QueryDataset};
use spargebra::term as parsed;
use spargebra::term::{
    GraphNamePattern, GroundQuadPattern, GroundTermPattern, QuadPattern, TermPattern, TriplePattern,
};

use crate::algebra::{Deduplicate, LogicalForm, Modifiers, PathPattern, Pattern};
use crate::convert::{Converter, convert_dataset};
use crate::error::PlanError;
use crate::parse::nesting;
use crate::physical::{
    ConstId, Constant, Dataset, Outcome, Scope, Slot, TemplateSlot, TemplateTriple, Var,
};
use crate::stack::{MAX_TEXT_BYTES, Stack};
use crate::update::{GraphTarget, Modify, Operation, TemplateQuad};

/// Where an operation comes from.
pub(crate) struct Source<'a> {
    /// Its text, or more.
    pub(crate) text: &'a str,
    /// The base IRI that holds there.
    pub(crate) base: Option<&'a NamedNode>,
    /// The dataset that the request names for it.
    pub(crate) dataset: Option<&'a Dataset>,
    /// Whether it may not name a dataset itself.
    pub(crate) refuses_own_dataset: bool,
}

/// Converts one operation.
///
/// # Errors
/// As [`crate::parse_update`].
///
/// # Panics
/// If it is INSERT DATA or DELETE DATA, which the parser is not given.
pub(crate) fn operation<'a>(
    operation: Parsed,
    source: &Source<'_>,
) -> Result<Operation<'a>, PlanError> {
    Ok(match operation {
        Parsed::InsertData { .. } | Parsed::DeleteData { .. } => {
            unreachable!("another operation is in the place of data")
        }
        Parsed::DeleteInsert {
            delete,
            insert,
            using,
            pattern,
        } => Operation::Modify(modify(delete, insert, using, *pattern, source)?),
        Parsed::Load {
            silent,
            source,
            destination,
        } => Operation::Load {
            silent,
            source,
            destination: graph_name(destination),
        },
        Parsed::Clear { silent, graph } => Operation::Clear {
            silent,
            target: target(graph),
        },
        Parsed::Drop { silent, graph } => Operation::Drop {
            silent,
            target: target(graph),
        },
        Parsed::Create { silent, graph } => Operation::Create { silent, graph },
    })
}

fn target(target: ParsedTarget) -> GraphTarget {
    match target {
        ParsedTarget::NamedNode(graph) => GraphTarget::Graph(graph),
        ParsedTarget::DefaultGraph => GraphTarget::Default,
        ParsedTarget::NamedGraphs => GraphTarget::Named,
        ParsedTarget::AllGraphs => GraphTarget::All,
    }
}

fn graph_name(name: parsed::GraphName) -> Option<NamedNode> {
    match name {
        parsed::GraphName::NamedNode(node) => Some(node),
        parsed::GraphName::DefaultGraph => None,
    }
}

fn modify(
    delete: Vec<GroundQuadPattern>,
    insert: Vec<QuadPattern>,
    using: Option<QueryDataset>,
    pattern: GraphPattern,
    source: &Source<'_>,
) -> Result<Modify, PlanError> {
    if using.is_some() && source.refuses_own_dataset {
        return Err(PlanError::DatasetNamedTwice);
    }
    let mut converter = Converter::new(source.text, None);
    converter.base = source.base.cloned();
    let mut pattern = converter.pattern(pattern, Scope::Default)?.pattern;
    let dataset = match using {
        None => source.dataset.cloned(),
        // The parser's way to say WITH: the default graph is this one, named graphs are as ever.
        Some(QueryDataset {
            mut default,
            named: None,
        }) => {
            assert_eq!(default.len(), 1, "WITH names one graph");
            let graph = converter.iri(default.remove(0))?;
            move_default_graph(&mut pattern, graph, converter.constants());
            None
        }
        Some(using) => Some(convert_dataset(using)),
    };
    let mut blanks = FxHashMap::default();
    let mut templates = |quads: Vec<QuadPattern>| -> Result<Vec<TemplateQuad>, PlanError> {
        let quads = quads.into_iter();
        quads
            .map(|quad| template_quad(&mut converter, quad, &mut blanks))
            .collect()
    };
    let delete = templates(delete.into_iter().map(with_blanks).collect())?;
    let insert = templates(insert)?;
    let variables = variables_of(delete.iter().chain(&insert));
    // Without variables and blank nodes all solutions say the same.
    let all_alike = variables.is_empty() && blanks.is_empty();
    let modifiers = Modifiers {
        order: Vec::new(),
        deduplicate: Deduplicate::No,
        offset: 0,
        limit: all_alike.then_some(1),
    };
    let query = converter.finish(LogicalForm::Select(variables), pattern, modifiers, dataset);
    Ok(Modify {
        delete,
        insert,
        query: query.into(),
        // Data may be longer than patterns may be.
        stack: Stack::fitting(source.text.len().min(MAX_TEXT_BYTES), nesting(source.text))?,
    })
}

/// A DELETE template as one that could have blank nodes.
fn with_blanks(quad: GroundQuadPattern) -> QuadPattern {
    let term = |term| match term {
        GroundTermPattern::NamedNode(node) => TermPattern::NamedNode(node),
        GroundTermPattern::Literal(literal) => TermPattern::Literal(literal),
        GroundTermPattern::Variable(variable) => TermPattern::Variable(variable),
    };
    QuadPattern {
        subject: term(quad.subject),
        predicate: quad.predicate,
        object: term(quad.object),
        graph_name: quad.graph_name,
    }
}

fn template_quad(
    converter: &mut Converter<'_>,
    quad: QuadPattern,
    blanks: &mut FxHashMap<BlankNode, u16>,
) -> Result<TemplateQuad, PlanError> {
    let triple = TriplePattern {
        subject: quad.subject,
        predicate: quad.predicate,
        object: quad.object,
    };
    Ok(TemplateQuad {
        triple: converter.template_triple(triple, blanks, true)?,
        graph: match quad.graph_name {
            GraphNamePattern::DefaultGraph => None,
            GraphNamePattern::NamedNode(node) => Some(Slot::Const(converter.iri(node)?)),
            GraphNamePattern::Variable(variable) => Some(Slot::Var(converter.variable(variable)?)),
        },
    })
}

/// The variables of templates, each once, in order.
fn variables_of<'a>(quads: impl Iterator<Item = &'a TemplateQuad>) -> Vec<Var> {
    let mut seen = FxHashSet::default();
    let mut variables = Vec::new();
    for TemplateQuad { triple, graph } in quads {
        let TemplateTriple {
            subject,
            predicate,
            object,
        } = triple;
        let in_triple = [subject, predicate, object].map(|slot| match slot {
            TemplateSlot::Var(var) => Some(*var),
            TemplateSlot::Const(_) | TemplateSlot::Blank(_) => None,
        });
        let graph = match graph {
            Some(Slot::Var(var)) => Some(*var),
            Some(Slot::Const(_)) | None => None,
        };
        let all = in_triple.into_iter().chain([graph]).flatten();
        variables.extend(all.filter(|var| seen.insert(*var)));
    }
    variables
}

/// Makes a named graph the default graph of a pattern, whether it exists or not.
///
/// A default graph exists always, which shows where nothing is matched in it: an empty group and
/// inline data do not depend on the graph, and are left as they are; a path without edges from a
/// constant is there even if its graph is not.
fn move_default_graph(pattern: &mut Pattern, graph: ConstId, constants: &[Constant]) {
    let scope = Scope::Graph(Slot::Const(graph));
    pattern.for_each_mut(&mut |pattern| match pattern {
        Pattern::Quads(quads) => {
            let quads = quads.iter_mut();
            for quad in quads.filter(|quad| quad.scope == Scope::Default) {
                quad.scope = scope;
            }
        }
        Pattern::Path(path) if path.scope == Scope::Default => {
            path.scope = scope;
            if let Some(alone) = without_edges(path, constants) {
                let absent = Pattern::Exists {
                    inner: Box::new(alone),
                    pattern: Box::new(Pattern::Graphs(Slot::Const(graph))),
                    outcome: Outcome::Drop,
                };
                let there = std::mem::replace(pattern, Pattern::Unit);
                *pattern = Pattern::Union(vec![there, absent]);
            }
        }
        _ => (),
    });
}

/// The solutions of a path in an empty graph, if it has one.
fn without_edges(path: &PathPattern, constants: &[Constant]) -> Option<Pattern> {
    if !path.path.is_nullable() || !path.path.matches_absent() {
        return None;
    }
    match (path.subject, path.object) {
        (Slot::Const(subject), Slot::Const(object)) => {
            (constants[subject.index()] == constants[object.index()]).then_some(Pattern::Unit)
        }
        (Slot::Const(end), Slot::Var(var)) | (Slot::Var(var), Slot::Const(end)) => {
            Some(Pattern::Values {
                vars: vec![var],
                rows: vec![vec![Some(end)]],
            })
        }
        (Slot::Var(_), Slot::Var(_)) => None,
    }
}
