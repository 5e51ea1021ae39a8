//! What does an update request say, and how is what it looks for planned?
//!
//! A request is a list of operations, to be executed in order; each sees what those before it
//! did. So the pattern of an operation is converted when the request is parsed, which is when
//! everything unsupported is refused, and planned only when its turn comes.

use std::sync::Arc;

use oxrdf::NamedNode;

use crate::algebra::Query;
use crate::build::build;
use crate::data_block::{DataBlock, Labels};
use crate::data_terms::{Declarations, Reserve};
use crate::error::PlanError;
use crate::misread::{Wrong, comparison_message, parse_tokens};
use crate::parse::{parser, place, syntax_error};
use crate::physical::{Dataset, Slot, TemplateTriple};
use crate::planner::without_arguments;
use crate::prepared::Prepared;
use crate::repeats::refuse_repeats;
use crate::stack::{MAX_TEXT_BYTES, Stack};
use crate::statistics::Statistics;
use crate::tree_size::tree_bytes;
use crate::update_convert::{Source, operation};
use crate::update_text::{Outline, Run, misplaced, place_of};

/// Longest request in bytes. Data is read without recursion and not kept, so that it may be longer
/// than a query; of all else only [`MAX_TEXT_BYTES`] are allowed.
const MAX_UPDATE_BYTES: usize = 128 << 20;

/// Bytes beyond those of the text that the parser is given at most: each run of operations after a
/// prologue inside the request is parsed with all the prologues before it.
const MAX_REPEATED_BYTES: usize = 3 * MAX_TEXT_BYTES;

/// An update request (SPARQL 1.1 Update), to be executed as one transaction.
///
/// Data stays where it is, in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Update<'a> {
    /// The operations in the order of the text. COPY, MOVE and ADD are what they stand for: a
    /// [`Operation::Drop`] of the target and a [`Modify`], or nothing where source and target are
    /// the same graph.
    pub operations: Vec<Operation<'a>>,
}

/// One operation of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation<'a> {
    /// INSERT DATA: adds the quads that are not there.
    InsertData(DataBlock<'a>),
    /// DELETE DATA: removes the quads that are there. They are without blank nodes.
    DeleteData(DataBlock<'a>),
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
    /// [`PlanError::NoStack`] where there is no memory for the stack that the pattern needs.
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
        })?
    }
}

/// Parses an update request; a text without operations is one.
///
/// `base` resolves relative IRIs. `dataset` is what the protocol's `using-graph-uri` and
/// `using-named-graph-uri` say: the dataset of all WHERE clauses, those of DELETE WHERE included;
/// COPY, MOVE and ADD have none. Costs some hundred nanoseconds for each quad of data and ten
/// microseconds for a small pattern.
///
/// # Errors
/// - [`PlanError::Syntax`] with the place of the error, also for a blank node label that is used
///   in two INSERT DATA operations.
/// - [`PlanError::DatasetNamedTwice`] if there is a `dataset`, and USING, USING NAMED or WITH in
///   the text.
/// - [`PlanError::Unsupported`] by name and [`PlanError::TooLarge`], for any of the operations:
///   nothing has been executed then.
/// - [`PlanError::Base`].
pub fn parse_update<'a>(
    text: &'a str,
    base: Option<&str>,
    dataset: Option<&Dataset>,
) -> Result<Update<'a>, PlanError> {
    parse_update_within(text, base, dataset, &mut |_| true)
}

/// [`parse_update`] that takes memory by `reserve`, which is told how many bytes more are about to
/// be held, and returns false if there are not as many. They are held until the [`Update`] is
/// dropped and none of its data is being read any more.
///
/// # Errors
/// As [`parse_update`], and [`PlanError::MemoryRefused`].
pub fn parse_update_within<'a>(
    text: &'a str,
    base: Option<&str>,
    dataset: Option<&Dataset>,
    reserve: &mut (dyn FnMut(usize) -> bool + Send),
) -> Result<Update<'a>, PlanError> {
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
        let data = data_blocks(text, base, &outline, reserve)?;
        let parsed = outline
            .runs
            .iter()
            .map(|run| match run.is_data() {
                true => Ok(None),
                false => parse_run((text, base), &outline, run, reserve).map(Some),
            })
            .collect::<Result<Vec<_>, _>>()?;
        if let Some(offset) = outline.superfluous {
            let (line, column) = place_of(text, offset);
            return Err(syntax_error(line, column, "expected ", text, "update"));
        }
        convert(text, &outline, (parsed, data), dataset)
    })?
}

/// The data of all operations that have some, in order, each read to its end.
fn data_blocks<'a>(
    text: &'a str,
    base: Option<&str>,
    outline: &Outline,
    reserve: &mut Reserve<'_>,
) -> Result<Vec<DataBlock<'a>>, PlanError> {
    let mut declarations = Declarations::new(base)?;
    let mut read = 0;
    // What the operations of each run with data see.
    let mut visible = Vec::new();
    for run in outline.runs.iter().filter(|run| run.has_data()) {
        let prologues = outline.prologues_of(run);
        for range in &prologues[read..] {
            declarations.read(text, (range.start, range.end), reserve)?;
        }
        read = prologues.len();
        visible.push(declarations.count());
    }
    let declarations = Arc::new(declarations);
    let runs = outline.runs.iter().filter(|run| run.has_data());
    let data = runs.zip(visible).flat_map(|(run, visible)| {
        let data = run.operations.iter().filter(|operation| operation.is_data);
        data.map(move |operation| (&operation.range, visible))
    });
    let mut blocks = Vec::new();
    for (range, visible) in data {
        blocks.push(DataBlock::new(text, range, &declarations, visible)?);
    }
    // A label belongs to one insertion.
    let are_several = blocks.iter().filter(|block| block.inserts()).count() > 1;
    let mut labels = Labels::default();
    for block in &blocks {
        let labels = (are_several && block.inserts()).then_some(&mut labels);
        block.check(labels, reserve)?;
    }
    Ok(blocks)
}

/// Parses one run of operations.
fn parse_run(
    (text, base): (&str, Option<&str>),
    outline: &Outline,
    run: &Run,
    reserve: &mut Reserve<'_>,
) -> Result<spargebra::Update, PlanError> {
    let parser = parser(base)?;
    let own = outline.text_of(run, text);
    refuse_repeats(&own)?;
    if !reserve(tree_bytes(&own)) {
        return Err(PlanError::MemoryRefused);
    }
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
    let patterns = run.operations.iter().filter(|operation| !operation.is_data);
    let misplaced = patterns
        .map(|operation| misplaced(text, &operation.range))
        .find_map(|found| found);
    if let Some((offset, message)) = misplaced {
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

fn convert<'a>(
    text: &str,
    outline: &Outline,
    (parsed, data): (Vec<Option<spargebra::Update>>, Vec<DataBlock<'a>>),
    dataset: Option<&Dataset>,
) -> Result<Update<'a>, PlanError> {
    let mut operations = Vec::new();
    let mut data = data.into_iter().map(|block| match block.inserts() {
        true => Operation::InsertData(block),
        false => Operation::DeleteData(block),
    });
    for (run, update) in outline.runs.iter().zip(parsed) {
        let Some(update) = update else {
            operations.extend(data.by_ref().take(run.operations.len()));
            continue;
        };
        let base = update.base_iri;
        let base = base.map(|iri| NamedNode::new_unchecked(iri.into_inner()));
        let is_outlined = run.is_transfer || update.operations.len() == run.operations.len();
        if !is_outlined && (dataset.is_some() || run.has_data()) {
            // Which of them are COPY, MOVE and ADD, to which it does not apply? And which data?
            return Err(PlanError::unsupported(
                "a dataset or data among operations that cannot be told apart",
            ));
        }
        for (number, parsed) in update.operations.into_iter().enumerate() {
            let outlined = run.operations.get(number);
            let outlined = outlined.filter(|_| is_outlined && !run.is_transfer);
            if outlined.is_some_and(|outlined| outlined.is_data) {
                operations.extend(data.next());
                continue;
            }
            let range = outlined.map_or(&run.body, |outlined| &outlined.range);
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
