//! How do the operations of an update read in our own types?

use jindou_syntax::data::DataBlock;
use jindou_syntax::tree::{self, Iri, OperationKind as Parsed, Quad as ParsedQuad};
use oxrdf::NamedNode;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::algebra::{Deduplicate, LogicalForm, Modifiers, PathPattern, Pattern, Quad};
use crate::arguments::Arguments;
use crate::convert::{self, Converter, node};
use crate::error::PlanError;
use crate::patience::Patience;
use crate::physical::{
    ConstId, Constant, Dataset, Outcome, Scope, Slot, TemplateSlot, TemplateTriple, Var,
};
use crate::planner::MAX_KEPT_TEXT_BYTES;
use crate::update::{GraphTarget, Modify, Operation, TemplateQuad, Transfer, TransferKind};

/// Where an operation comes from.
#[derive(Clone, Copy)]
pub(crate) struct Source<'s, 't> {
    /// The text of the request.
    pub(crate) text: &'t str,
    /// The dataset that the request names for it.
    pub(crate) dataset: Option<&'s Dataset>,
    /// Without a dataset, all graphs together are the default graph of WHERE clauses.
    pub(crate) union_default_graph: bool,
    /// Spent on each part of the text.
    pub(crate) patience: &'s Patience<'s>,
}

/// Converts one operation; none if it does nothing.
///
/// # Errors
/// As [`crate::parse_update`].
pub(crate) fn operation<'t>(
    operation: tree::Operation<'t>,
    source: Source<'_, 't>,
) -> Result<Option<Operation<'t>>, PlanError> {
    let length = operation.span.end - operation.span.start;
    let base = operation.base.as_deref();
    source.patience.work(1)?;
    let converter = Converter::new(source.text, base, Arguments::none(), source.patience);
    Ok(Some(match operation.kind {
        Parsed::InsertData(data) => Operation::InsertData(held(data, source.text)?),
        Parsed::DeleteData(data) => Operation::DeleteData(held(data, source.text)?),
        _ if length as usize > MAX_KEPT_TEXT_BYTES => {
            return Err(PlanError::TooLarge {
                what: "bytes of text in an operation without data",
                limit: MAX_KEPT_TEXT_BYTES,
            });
        }
        Parsed::DeleteWhere(quads) => {
            let modify = delete_where(converter, &quads, source.dataset)?;
            Operation::Modify(modify.in_union(source.union_default_graph))
        }
        Parsed::Modify(modify) => {
            let modify = delete_insert(converter, &modify, source.dataset)?;
            Operation::Modify(modify.in_union(source.union_default_graph))
        }
        Parsed::Load {
            silent,
            source,
            destination,
        } => Operation::Load {
            silent,
            source: node(&source),
            place: source.span,
            destination: destination.as_ref().map(node),
        },
        Parsed::Clear { silent, target } => Operation::Clear {
            silent,
            target: graphs(&target),
        },
        Parsed::Drop { silent, target } => Operation::Drop {
            silent,
            target: graphs(&target),
        },
        Parsed::Create { silent, graph } => Operation::Create {
            silent,
            graph: node(&graph),
        },
        Parsed::Transfer {
            transfer,
            silent,
            from,
            to,
        } => {
            let (from, to) = (from.as_ref().map(node), to.as_ref().map(node));
            if from == to {
                return Ok(None);
            }
            Operation::Transfer(self::transfer(converter, transfer, silent, (from, to))?)
        }
    }))
}

/// Data, if the store can hold it.
fn held<'t>(data: DataBlock<'t>, text: &str) -> Result<DataBlock<'t>, PlanError> {
    match data.beyond() {
        Some((what, span)) => Err(PlanError::unsupported(what, text, span)),
        None => Ok(data),
    }
}

fn graphs(target: &tree::GraphTarget<'_>) -> GraphTarget {
    match target {
        tree::GraphTarget::Graph(graph) => GraphTarget::Graph(node(graph)),
        tree::GraphTarget::Default => GraphTarget::Default,
        tree::GraphTarget::Named => GraphTarget::Named,
        tree::GraphTarget::All => GraphTarget::All,
    }
}

/// COPY, MOVE and ADD copy `?s ?p ?o` of one graph to another.
fn transfer(
    mut converter: Converter<'_>,
    kind: TransferKind,
    silent: bool,
    (from, to): (Option<NamedNode>, Option<NamedNode>),
) -> Result<Transfer, PlanError> {
    let triple = [
        converter.variable("s")?,
        converter.variable("p")?,
        converter.variable("o")?,
    ];
    let scope = match &from {
        None => Scope::Default,
        Some(graph) => Scope::Graph(Slot::Const(converter.fixed(graph.clone().into())?)),
    };
    let quad = Quad {
        subject: Slot::Var(triple[0]),
        predicate: Slot::Var(triple[1]),
        object: Slot::Var(triple[2]),
        scope,
    };
    let graph = match &to {
        None => None,
        Some(graph) => Some(Slot::Const(converter.fixed(graph.clone().into())?)),
    };
    let insert = TemplateQuad {
        triple: TemplateTriple {
            subject: TemplateSlot::Var(triple[0]),
            predicate: TemplateSlot::Var(triple[1]),
            object: TemplateSlot::Var(triple[2]),
        },
        graph,
    };
    let pattern = Pattern::Quads(vec![quad]);
    let target = |graph: Option<NamedNode>| graph.map_or(GraphTarget::Default, GraphTarget::Graph);
    Ok(Transfer {
        kind,
        silent,
        from: target(from),
        to: target(to),
        copy: modify(converter, pattern, Vec::new(), vec![insert], None),
    })
}

/// DELETE WHERE: the quads are the pattern and what is deleted.
fn delete_where<'t>(
    mut converter: Converter<'t>,
    quads: &[ParsedQuad<'t>],
    dataset: Option<&Dataset>,
) -> Result<Modify, PlanError> {
    let pattern = converter.quads(quads)?;
    let mut templates = Templates::default();
    let delete = templates.quads(&mut converter, quads, None)?;
    let dataset = dataset.cloned();
    Ok(modify(
        converter,
        pattern.pattern,
        delete,
        Vec::new(),
        dataset,
    ))
}

fn delete_insert<'t>(
    mut converter: Converter<'t>,
    parsed: &tree::Modify<'t>,
    dataset: Option<&Dataset>,
) -> Result<Modify, PlanError> {
    let names_dataset = parsed.using.is_some() || parsed.with.is_some();
    if names_dataset && dataset.is_some() {
        return Err(PlanError::DatasetNamedTwice);
    }
    let mut pattern = converter.group(&parsed.group, Scope::Default)?.pattern;
    let dataset = match (&parsed.using, &parsed.with) {
        (Some(using), _) => Some(convert::dataset(using)),
        // The default graph is this one, named graphs are as ever.
        (None, Some(with)) => {
            let graph = converter.iri(with)?;
            move_default_graph(&mut pattern, graph, converter.constants());
            None
        }
        (None, None) => dataset.cloned(),
    };
    let mut templates = Templates::default();
    let mut of = |quads: &Option<Vec<ParsedQuad<'t>>>| {
        let quads = quads.as_deref().unwrap_or_default();
        templates.quads(&mut converter, quads, parsed.with.as_ref())
    };
    let (delete, insert) = (of(&parsed.delete)?, of(&parsed.insert)?);
    Ok(modify(converter, pattern, delete, insert, dataset))
}

fn modify(
    converter: Converter<'_>,
    pattern: Pattern,
    delete: Vec<TemplateQuad>,
    insert: Vec<TemplateQuad>,
    dataset: Option<Dataset>,
) -> Modify {
    let variables = variables_of(delete.iter().chain(&insert));
    let is_blank = |slot: TemplateSlot| matches!(slot, TemplateSlot::Blank(_));
    let has_blanks =
        |quad: &TemplateQuad| is_blank(quad.triple.subject) || is_blank(quad.triple.object);
    // Without variables and blank nodes all solutions say the same.
    let all_alike = variables.is_empty() && !insert.iter().any(has_blanks);
    let modifiers = Modifiers {
        order: Vec::new(),
        deduplicate: Deduplicate::No,
        offset: 0,
        limit: all_alike.then_some(1),
    };
    let form = LogicalForm::Select(variables);
    let converted = converter.finish(form, pattern, modifiers, dataset);
    Modify {
        delete,
        insert,
        query: converted.query.into(),
    }
}

/// The templates of an operation, which share their blank nodes.
#[derive(Default)]
struct Templates {
    blanks: FxHashMap<u32, u16>,
}

impl Templates {
    /// Those of some quads; `with` is the graph of those that name none.
    fn quads<'t>(
        &mut self,
        converter: &mut Converter<'t>,
        quads: &[ParsedQuad<'t>],
        with: Option<&Iri<'t>>,
    ) -> Result<Vec<TemplateQuad>, PlanError> {
        let quads = quads.iter().map(|quad| {
            Ok(TemplateQuad {
                triple: converter.template_triple(&quad.triple, &mut self.blanks, true)?,
                graph: match (&quad.graph, with) {
                    (Some(graph), _) => Some(converter.name(graph)?),
                    (None, Some(with)) => Some(Slot::Const(converter.iri(with)?)),
                    (None, None) => None,
                },
            })
        });
        quads.collect()
    }
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
