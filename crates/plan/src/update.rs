//! What does an update request say, and how is what it looks for planned?
//!
//! A request is a list of operations, to be executed in order; each sees what those before it
//! did. So the pattern of an operation is converted when the request is parsed, which is when
//! everything unsupported is refused, and planned only when its turn comes.

use std::sync::Arc;

use oxrdf::{NamedNode, Quad, Term};

use crate::algebra::Query;
use crate::build::build;
use crate::error::PlanError;
use crate::misread::{Wrong, comparison_message, parse_tokens};
use crate::parse::{MAX_TEXT_BYTES, Stack, parser, place, syntax_error};
use crate::physical::{Dataset, Slot, TemplateTriple};
use crate::planner::without_arguments;
use crate::prepared::Prepared;
use crate::statistics::Statistics;
use crate::update_convert::{Source, blank_nodes, operation, shared_blank};
use crate::update_text::{Outline, Run, misplaced, place_of};

/// Longest request in bytes. Data is parsed without recursion, so that it may be longer than a
/// query; of all else only [`MAX_TEXT_BYTES`] are allowed.
const MAX_UPDATE_BYTES: usize = 128 << 20;

/// Bytes beyond those of the text that the parser is given at most: each run of operations after a
/// prologue inside the request is parsed with all the prologues before it.
const MAX_REPEATED_BYTES: usize = 3 * MAX_TEXT_BYTES;

/// An update request (SPARQL 1.1 Update), to be executed as one transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// The operations in the order of the text. COPY, MOVE and ADD are what they stand for: a
    /// [`Operation::Drop`] of the target and a [`Modify`], or nothing where source and target are
    /// the same graph.
    pub operations: Vec<Operation>,
}

/// One operation of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// INSERT DATA: adds the quads that are not there.
    InsertData {
        /// The quads, in the order of the text, repeats included.
        quads: Vec<DataQuad>,
        /// Number of blank nodes: those of `quads` have the numbers `0..blanks`. Each is a new
        /// node whenever the operation is executed, unlike any of the store or of another
        /// operation.
        blanks: u32,
    },
    /// DELETE DATA: removes the quads that are there.
    DeleteData {
        /// The quads, without blank nodes, in the order of the text, repeats included.
        quads: Vec<Quad>,
    },
    /// DELETE and INSERT with a WHERE clause, DELETE WHERE, and the copying part of COPY, MOVE and
    /// ADD.
    Modify(Modify),
    /// LOAD: adds what a document holds.
    Load {
        /// Failing to read it is no error.
        silent: bool,
        /// The document.
        source: NamedNode,
        /// The graph to add to; none for the default graph.
        destination: Option<NamedNode>,
    },
    /// CLEAR: empties graphs, which may stay.
    Clear {
        /// An absent graph is no error.
        silent: bool,
        /// Which graphs.
        target: GraphTarget,
    },
    /// DROP: removes graphs; the default graph is emptied.
    Drop {
        /// An absent graph is no error.
        silent: bool,
        /// Which graphs.
        target: GraphTarget,
    },
    /// CREATE: makes an empty graph.
    Create {
        /// A graph that exists is no error.
        silent: bool,
        /// Its name.
        graph: NamedNode,
    },
}

/// The graphs that CLEAR and DROP are about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GraphTarget {
    /// This named graph.
    Graph(NamedNode),
    /// The default graph.
    Default,
    /// All named graphs.
    Named,
    /// All named graphs and the default graph.
    All,
}

/// A quad of INSERT DATA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataQuad {
    /// An IRI or a blank node.
    pub subject: DataTerm,
    /// The predicate.
    pub predicate: NamedNode,
    /// Any term.
    pub object: DataTerm,
    /// The graph; none for the default graph.
    pub graph: Option<NamedNode>,
}

/// A subject or object of INSERT DATA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataTerm {
    /// An IRI or a literal, never a blank node.
    Term(Term),
    /// The operation's own blank node with this number; the same number is the same node.
    Blank(u32),
}

/// A quad of a DELETE or INSERT template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TemplateQuad {
    /// Subject, predicate and object. What a solution makes of them may be no triple (an unbound
    /// variable, a literal as subject, no IRI as predicate): then this quad is left out.
    pub triple: TemplateTriple,
    /// The graph; none for the store's default graph. A variable may be unbound or no IRI: then
    /// this quad is left out.
    pub graph: Option<Slot>,
}

/// DELETE and INSERT by templates, for each solution of a pattern.
///
/// All solutions are found before anything changes; then what the DELETE templates make of them
/// is removed, and after that what the INSERT templates make of them is added.
///
/// Variables and constants of the templates are those of the plan that [`Modify::plan`] makes.
#[derive(Clone, Debug, PartialEq)]
pub struct Modify {
    /// Templates of what is removed; without blank nodes.
    pub delete: Vec<TemplateQuad>,
    /// Templates of what is added. A blank node is a new one for each solution; the same number
    /// is the same node in all of these templates.
    pub insert: Vec<TemplateQuad>,
    /// Shared, since its copy and its end recurse over the pattern.
    pub(crate) query: Arc<Query>,
    pub(crate) stack: Stack,
}

impl Modify {
    /// Plans the WHERE clause for the store's present state.
    ///
    /// The plan is that of a SELECT ([`crate::physical::Form::Select`]) of the variables that the
    /// templates use, each once, in the order of their first use. Solutions may be repeated;
    /// where the templates use neither variables nor blank nodes there is one at most, without
    /// columns. Costs tens of microseconds for a small pattern.
    ///
    /// # Errors
    /// [`PlanError::TooLarge`] where there is no memory for the stack that the pattern needs.
    pub fn plan(
        &self,
        statistics: &(dyn Statistics + Sync),
    ) -> Result<Prepared<'static>, PlanError> {
        self.plan_until(statistics, &|| false)
    }

    /// [`Modify::plan`] that is given up once `is_over`, as
    /// [`Planner::prepare_until`](crate::Planner::prepare_until) is.
    ///
    /// # Errors
    /// As there, and [`PlanError::Interrupted`].
    pub fn plan_until(
        &self,
        statistics: &(dyn Statistics + Sync),
        is_over: &(dyn Fn() -> bool + Sync),
    ) -> Result<Prepared<'static>, PlanError> {
        self.stack.run(|| {
            let plan = build(Query::clone(&self.query), statistics, is_over)?;
            Ok(without_arguments(Arc::new(plan), ""))
        })
    }
}

/// Parses an update request; a text without operations is one.
///
/// `base` resolves relative IRIs. `dataset` is what the protocol's `using-graph-uri` and
/// `using-named-graph-uri` say: the dataset of all WHERE clauses, those of DELETE WHERE included;
/// COPY, MOVE and ADD have none. Costs about two microseconds for each quad of data and ten
/// for a small pattern.
///
/// # Errors
/// - [`PlanError::Syntax`] with the place of the error, also for a blank node label that is used
///   in two INSERT DATA operations.
/// - [`PlanError::DatasetNamedTwice`] if there is a `dataset`, and USING, USING NAMED or WITH in
///   the text.
/// - [`PlanError::Unsupported`] by name and [`PlanError::TooLarge`], for any of the operations:
///   nothing has been executed then.
/// - [`PlanError::Base`].
pub fn parse_update(
    text: &str,
    base: Option<&str>,
    dataset: Option<&Dataset>,
) -> Result<Update, PlanError> {
    // Before anything else, as the outline is as long as the text.
    if text.len() > MAX_UPDATE_BYTES {
        return Err(PlanError::TooLarge {
            what: "bytes of text",
            limit: MAX_UPDATE_BYTES,
        });
    }
    let outline = Outline::new(text);
    Stack::fitting(outline.recursive_bytes, outline.nesting)?.run(|| {
        let most = text.len() + MAX_REPEATED_BYTES;
        if outline.parsed_bytes() > most {
            return Err(PlanError::TooLarge {
                what: "bytes of operations with the prologues before them",
                limit: most,
            });
        }
        let parsed = outline
            .runs
            .iter()
            .map(|run| parse_run(text, base, &outline, run))
            .collect::<Result<Vec<_>, _>>()?;
        if let Some(offset) = outline.superfluous {
            let (line, column) = place_of(text, offset);
            return Err(syntax_error(line, column, "expected ", text, "update"));
        }
        refuse_shared_blanks(text, &outline, &parsed)?;
        convert(text, &outline, parsed, dataset)
    })
}

/// Parses one run of operations.
fn parse_run(
    text: &str,
    base: Option<&str>,
    outline: &Outline,
    run: &Run,
) -> Result<spargebra::Update, PlanError> {
    let parser = parser(base)?;
    let own = outline.text_of(run, text);
    let parsed = parse_tokens(&own, |text| parser.clone().parse_update(text));
    parsed.map_err(|wrong| match wrong {
        Wrong::Parser(error) => refused(&error.to_string(), text, outline, run),
        Wrong::Comparison(iri) => {
            let (line, column) = outline.place(run, text, place_of(&own, iri.start));
            PlanError::Syntax {
                line,
                column,
                message: comparison_message(&own, iri),
            }
        }
    })
}

/// The error that the parser's `message` tells of a run.
fn refused(message: &str, text: &str, outline: &Outline, run: &Run) -> PlanError {
    if let Some(label) = shared_blank(message) {
        return shared_blank_error(text, outline, label);
    }
    if let Some((offset, message)) = run
        .operations
        .iter()
        .find_map(|range| misplaced(text, range))
    {
        let (line, column) = place_of(text, offset);
        return PlanError::Syntax {
            line,
            column,
            message: message.to_owned(),
        };
    }
    let (line, column, message) = place(message);
    let (line, column) = outline.place(run, text, (line, column));
    syntax_error(line, column, &message, text, "update")
}

/// The parser refuses labels shared within a run; this does so for several runs.
fn refuse_shared_blanks(
    text: &str,
    outline: &Outline,
    parsed: &[spargebra::Update],
) -> Result<(), PlanError> {
    if parsed.len() < 2 {
        return Ok(());
    }
    let mut seen = rustc_hash::FxHashSet::default();
    for update in parsed {
        for parsed in &update.operations {
            let mut own = blank_nodes(parsed);
            if let Some(shared) = own.iter().find(|node| seen.contains(*node)) {
                return Err(shared_blank_error(text, outline, shared.as_str()));
            }
            seen.extend(own.drain());
        }
    }
    Ok(())
}

/// The error of a label in two INSERT DATA operations, at its place in the second.
fn shared_blank_error(text: &str, outline: &Outline, label: &str) -> PlanError {
    let name = format!("_:{label}");
    let operations = outline.runs.iter().flat_map(|run| &run.operations);
    let offset = operations
        .filter_map(|range| Some(range.start + text[range.clone()].find(&name)?))
        .nth(1);
    let (line, column) = place_of(text, offset.unwrap_or_default());
    PlanError::Syntax {
        line,
        column,
        message: format!("the blank node {name} is used in two INSERT DATA operations"),
    }
}

fn convert(
    text: &str,
    outline: &Outline,
    parsed: Vec<spargebra::Update>,
    dataset: Option<&Dataset>,
) -> Result<Update, PlanError> {
    let mut operations = Vec::new();
    for (run, update) in outline.runs.iter().zip(parsed) {
        let base = update.base_iri;
        let base = base.map(|iri| NamedNode::new_unchecked(iri.into_inner()));
        let is_outlined = run.is_transfer || update.operations.len() == run.operations.len();
        if !is_outlined && dataset.is_some() {
            // Which of them are COPY, MOVE and ADD, to which it does not apply?
            return Err(PlanError::unsupported(
                "a dataset for operations that cannot be told apart",
            ));
        }
        for (number, parsed) in update.operations.into_iter().enumerate() {
            let range = match run.operations.get(number) {
                Some(range) if is_outlined && !run.is_transfer => range,
                _ => &run.body,
            };
            operations.push(operation(
                parsed,
                &Source {
                    text: &text[range.clone()],
                    base: base.as_ref(),
                    dataset: dataset.filter(|_| !run.is_transfer),
                    refuses_own_dataset: dataset.is_some(),
                },
            )?);
        }
    }
    Ok(Update { operations })
}
