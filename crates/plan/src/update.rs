//! What does an update request say, and how is what it looks for planned?
//!
//! A request is a list of operations, to be executed in order; each sees what those before it
//! did. So the pattern of an operation is converted when the request is parsed, which is when
//! everything unsupported is refused, and planned only when its turn comes.

use std::sync::Arc;

use jindou_syntax::data::DataBlock;
pub use jindou_syntax::tree::Transfer as TransferKind;
use jindou_syntax::tree::{self, OperationKind, Span};
use oxrdf::NamedNode;

use crate::algebra::Query;
use crate::build::build;
use crate::error::PlanError;
use crate::limits::Limits;
use crate::patience::Patience;
use crate::physical::{Dataset, Slot, TemplateTriple};
use crate::planner::without_arguments;
use crate::prepared::Prepared;
use crate::statistics::Statistics;
use crate::update_convert::{Source, operation};

/// Longest request in bytes. Data is read without recursion and not kept, so that it may be longer
/// than a query; no other operation may.
pub(crate) const MAX_UPDATE_BYTES: usize = 128 << 20;

/// An update request (SPARQL 1.1 Update), to be executed as one transaction.
///
/// Data stays where it is, in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Update<'a> {
    /// The operations in the order of the text, without COPY, MOVE and ADD of a graph to itself.
    pub operations: Vec<Operation<'a>>,
}

/// One operation of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation<'a> {
    /// INSERT DATA: adds the quads that are not there.
    InsertData(DataBlock<'a>),
    /// DELETE DATA: removes the quads that are there. They are without blank nodes.
    DeleteData(DataBlock<'a>),
    /// DELETE and INSERT with a WHERE clause, and DELETE WHERE.
    Modify(Modify),
    /// COPY, MOVE and ADD.
    Transfer(Transfer),
    /// LOAD: adds what a document holds.
    Load {
        /// Failing to read it is no error.
        silent: bool,
        /// The document.
        source: NamedNode,
        /// Where the text names it.
        place: Span,
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

/// Copies the quads of a graph to another one.
#[derive(Clone, Debug, PartialEq)]
pub struct Transfer {
    /// Which of the three. COPY and MOVE empty the target before, and MOVE drops the source in the
    /// end. Where the source of these two is absent, nothing is done.
    pub kind: TransferKind,
    /// An absent source is no error.
    pub silent: bool,
    /// The source.
    pub from: GraphTarget,
    /// The target, which is another graph.
    pub to: GraphTarget,
    /// What copies.
    pub copy: Modify,
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
    /// Shared, as operations are copied and patterns are large.
    pub(crate) query: Arc<Query>,
}

impl Modify {
    /// The same, with all graphs together as the default graph if `union` and its WHERE clause has
    /// no dataset.
    pub(crate) fn in_union(mut self, union: bool) -> Self {
        if union {
            Arc::make_mut(&mut self.query).union_default_graph = true;
        }
        self
    }

    /// Plans the WHERE clause for the store's present state.
    ///
    /// The plan is that of a SELECT ([`crate::physical::Form::Select`]) of the variables that the
    /// templates use, each once, in the order of their first use. Solutions may be repeated;
    /// where the templates use neither variables nor blank nodes there is one at most, without
    /// columns. Costs tens of microseconds for a small pattern.
    ///
    /// # Errors
    /// None but those of [`Modify::plan_until`].
    pub fn plan(&self, statistics: &dyn Statistics) -> Result<Prepared<'static>, PlanError> {
        self.plan_until(statistics, &|| false)
    }

    /// [`Modify::plan`] that is given up once `is_over`, as
    /// [`Planner::prepare_until`](crate::Planner::prepare_until) is.
    ///
    /// # Errors
    /// [`PlanError::Interrupted`].
    pub fn plan_until(
        &self,
        statistics: &dyn Statistics,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Prepared<'static>, PlanError> {
        let patience = Patience::new(is_over);
        let plan = build(Query::clone(&self.query), statistics, &patience)?;
        Ok(without_arguments(Arc::new(plan), ""))
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
pub fn parse_update<'t>(
    text: &'t str,
    base: Option<&str>,
    dataset: Option<&Dataset>,
) -> Result<Update<'t>, PlanError> {
    let (reserve, is_over) = (&mut |_| true, &|| false);
    parse_update_within(text, base, (dataset, false), Limits { reserve, is_over })
}

/// [`parse_update`] within limits, and for all graphs together as the default graph of WHERE
/// clauses where that is asked for beside the dataset and nothing else is named. What it reserves is held until the [`Update`] is dropped and
/// none of its data is being read any more.
///
/// # Errors
/// As [`parse_update`], [`PlanError::MemoryRefused`] and [`PlanError::Interrupted`].
pub fn parse_update_within<'t>(
    text: &'t str,
    base: Option<&str>,
    (dataset, union_default_graph): (Option<&Dataset>, bool),
    limits: Limits<'_>,
) -> Result<Update<'t>, PlanError> {
    if text.len() > MAX_UPDATE_BYTES {
        return Err(PlanError::TooLarge {
            what: "bytes of text",
            limit: MAX_UPDATE_BYTES,
        });
    }
    let is_over = limits.is_over;
    let parsed = limits.parse(text, base, jindou_syntax::parse_update, planned_bytes)?;
    let patience = Patience::new(is_over);
    let source = Source {
        text,
        dataset,
        union_default_graph,
        patience: &patience,
    };
    let operations = parsed.into_iter();
    let operations = operations.filter_map(|parsed| operation(parsed, source).transpose());
    Ok(Update {
        operations: operations.collect::<Result<_, _>>()?,
    })
}

/// The bytes of text of the operations whose patterns are planned.
fn planned_bytes(operations: &Vec<tree::Operation<'_>>) -> usize {
    let planned = operations.iter().filter(|operation| {
        let kind = &operation.kind;
        matches!(
            kind,
            OperationKind::DeleteWhere(_) | OperationKind::Modify(_)
        )
    });
    planned
        .map(|operation| (operation.span.end - operation.span.start) as usize)
        .sum()
}
