//! The plan that the executor follows: a tree of operators over binding tables.
//!
//! A binding table has a column of term ids for each variable bound so far. Most of a query is
//! one [`Operator::Explore`]: a list of [`Step`]s, each of which extends or filters the table by
//! walking the graph, with all that was bound before at hand (the full history).

use std::fmt::Write as _;
use std::mem;
use std::sync::{Arc, OnceLock};

use jindou_model::{Counted, Direction, TermId};
use oxrdf::{NamedNode, Term};
use serde::{Deserialize, Serialize};

use crate::expression::{Aggregate, Expression};
use crate::stack::Stack;
use crate::wire::fields;

/// A variable of the plan: an index into [`Plan::variables`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Var(pub u16);

impl Var {
    /// The number as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A constant of the plan: an index into [`Plan::constants`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConstId(pub u16);

impl ConstId {
    /// The number as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where the value of a constant comes from when a cached plan runs again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Constant {
    /// The same term at every run.
    Fixed(Term),
    /// The IRI that the query's text has at this argument slot.
    Iri {
        /// Index into the arguments of a prepared query.
        slot: u16,
    },
    /// A literal with the lexical form that the query's text has at this argument slot.
    Literal {
        /// Index into the arguments of a prepared query.
        slot: u16,
        /// The language tag, in the shape's text.
        language: Option<String>,
        /// The datatype, in the shape's text; `xsd:string` or `rdf:langString` where none is
        /// written.
        datatype: NamedNode,
    },
    /// A window of a stream, as the graph of patterns.
    Window {
        /// Which one of the query's.
        number: u16,
        /// What `explain` calls it.
        name: NamedNode,
    },
}

/// A subject, predicate, object or graph in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Slot {
    /// A variable, bound or not.
    Var(Var),
    /// A constant.
    Const(ConstId),
}

/// Which triples a step reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Scope {
    /// The default graph: the store's own, its union with all named graphs, or the merge of the
    /// graphs that the dataset names.
    Default,
    /// One named graph: a constant, or a variable (bound already, or bound by this step).
    Graph(Slot),
    /// The merge of the named graphs: other steps ask in which of them the edges are.
    Named,
}

/// An edge to follow from a bound end: neighbours of `from` by `predicate` in `direction`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Side {
    /// The known end: a constant or a bound variable.
    pub from: Slot,
    /// The predicate, an IRI.
    pub predicate: ConstId,
    /// `Out`: `from` is the subject. `In`: `from` is the object.
    #[serde(with = "fields::direction")]
    pub direction: Direction,
}

/// Something to ask of a vertex, answered by its id alone (its characteristic set).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Requirement {
    /// It has this `rdf:type`. Stands for the triple pattern: it is always honoured.
    Type(ConstId),
    /// It has an edge of this predicate and direction. Implied by another pattern of the query:
    /// it prunes early and may be left out where the test is not cheap.
    Has(ConstId, #[serde(with = "fields::direction")] Direction),
}

/// A property path in a [`Step::Path`].
///
/// Inverses are pushed down to the edges, so that each edge has its own direction.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PathExpression {
    /// One edge of this predicate, `Out` from subject to object.
    Edge(ConstId, #[serde(with = "fields::direction")] Direction),
    /// One edge of any predicate but these, `Out` from subject to object.
    Negated(Vec<ConstId>, #[serde(with = "fields::direction")] Direction),
    /// One path after the other.
    Sequence(Box<[Self; 2]>),
    /// Either of two paths.
    Alternative(Box<[Self; 2]>),
    /// The path or nothing.
    ZeroOrOne(Box<Self>),
    /// The path any number of times.
    ZeroOrMore(Box<Self>),
    /// The path at least once.
    OneOrMore(Box<Self>),
}

impl PathExpression {
    /// The path from the other end.
    #[must_use]
    pub fn reversed(&self) -> Self {
        let reversed = |inner: &Self| Box::new(inner.reversed());
        match self {
            Self::Edge(predicate, direction) => Self::Edge(*predicate, direction.reverse()),
            Self::Negated(predicates, direction) => {
                Self::Negated(predicates.clone(), direction.reverse())
            }
            Self::Sequence(parts) => {
                Self::Sequence(Box::new([parts[1].reversed(), parts[0].reversed()]))
            }
            Self::Alternative(parts) => {
                Self::Alternative(Box::new([parts[0].reversed(), parts[1].reversed()]))
            }
            Self::ZeroOrOne(inner) => Self::ZeroOrOne(reversed(inner)),
            Self::ZeroOrMore(inner) => Self::ZeroOrMore(reversed(inner)),
            Self::OneOrMore(inner) => Self::OneOrMore(reversed(inner)),
        }
    }

    /// True if each term of the graph is connected with itself, without any edge.
    #[must_use]
    pub fn is_nullable(&self) -> bool {
        match self {
            Self::Edge(..) | Self::Negated(..) => false,
            Self::Sequence(parts) => parts.iter().all(Self::is_nullable),
            Self::Alternative(parts) => parts.iter().any(Self::is_nullable),
            Self::ZeroOrOne(_) | Self::ZeroOrMore(_) => true,
            Self::OneOrMore(inner) => inner.is_nullable(),
        }
    }

    /// True if a constant end is connected with itself although the graph does not have it.
    ///
    /// Not through a sequence: the term between its parts is one of the graph (SPARQL 1.1,
    /// section 18.5, where it is a variable).
    #[must_use]
    pub fn matches_absent(&self) -> bool {
        match self {
            Self::Edge(..) | Self::Negated(..) | Self::Sequence(_) => false,
            Self::Alternative(parts) => parts.iter().any(Self::matches_absent),
            Self::ZeroOrOne(_) | Self::ZeroOrMore(_) => true,
            Self::OneOrMore(inner) => inner.matches_absent(),
        }
    }
}

/// One step of exploration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Step {
    /// Binds `var`, unbound so far, to what meets all of `sides` and `requires` in a graph.
    ///
    /// No side: a scan of the vertices that meet `requires` (at least one, and the first `Has`
    /// is then honoured, with literals too where its direction is `In`; in a named graph it may be
    /// that of another one). One side: an expansion. Several: an intersection of sorted adjacency.
    ///
    /// A variable for the graph that is unbound so far gets a column, unless this is a scan without
    /// a type.
    Bind {
        /// The variable that gets a column.
        var: Var,
        /// Edges from known ends.
        sides: Vec<Side>,
        /// Tests of the new vertex.
        requires: Vec<Requirement>,
        /// Which graph.
        scope: Scope,
    },
    /// Keeps the rows whose edge exists; a variable for the graph that is unbound so far gets a
    /// column.
    Check {
        /// One end and the predicate.
        side: Side,
        /// The other end, a constant or bound.
        to: Slot,
        /// Which graph.
        scope: Scope,
    },
    /// Keeps the rows whose vertex meets the requirements; a variable for the graph that is unbound
    /// so far gets a column.
    Test {
        /// The vertex, bound or constant.
        slot: Slot,
        /// What it must meet; at least one, and types alone in a named graph.
        requires: Vec<Requirement>,
        /// Which graph.
        scope: Scope,
    },
    /// Matches a quad pattern in full generality: any position bound, constant or unbound,
    /// variables repeated, any scope, any dataset. Variables unbound so far get columns.
    Match {
        /// Subject.
        subject: Slot,
        /// Predicate.
        predicate: Slot,
        /// Object.
        object: Slot,
        /// Which graph.
        scope: Scope,
    },
    /// Keeps or makes the rows whose ends are connected by a path, each pair of ends once;
    /// ends (and the graph) unbound so far get columns.
    ///
    /// Paths without edges connect each subject and object of the graph with itself, and a
    /// constant end with itself wherever [`PathExpression::matches_absent`] says so. What is
    /// bound by other steps is a variable's value still: it must be in the graph.
    Path {
        /// Where the path begins.
        subject: Slot,
        /// The path; the outermost is `?`, `*` or `+`, what else there is was made patterns.
        path: PathExpression,
        /// Where it ends.
        object: Slot,
        /// Which graph: the whole path lies in one.
        scope: Scope,
    },
    /// Binds `var` to each named graph of the dataset (`GRAPH ?g {}`), or keeps rows whose bound
    /// graph is one.
    Graphs {
        /// The graph: a constant or a variable.
        graph: Slot,
    },
    /// Keeps the rows for which the expression's effective boolean value is true.
    Filter(Expression),
    /// Binds `var` to the expression's value, or leaves it unbound on an error.
    Extend {
        /// The new variable.
        var: Var,
        /// Its value.
        expression: Expression,
    },
    /// Joins with inline data; a `None` cell is compatible with anything.
    Values {
        /// Columns.
        vars: Vec<Var>,
        /// Rows of one cell a column.
        rows: Vec<Vec<Option<ConstId>>>,
    },
    /// OPTIONAL with bindings from its left side: each row is extended by `steps` and kept, with
    /// the new variables unbound, where they leave nothing. The condition of the left join is
    /// one of the steps.
    ///
    /// Only where each variable shared with the rows so far is certainly bound in them.
    Optional {
        /// The right side.
        steps: Vec<PlannedStep>,
    },
    /// UNION with bindings from its left side: the rows of each branch in turn.
    ///
    /// Only where each variable shared with the rows so far is certainly bound in them.
    Union(Vec<Vec<PlannedStep>>),
    /// Whether `steps` find anything for a row: EXISTS, NOT EXISTS and MINUS with bindings from
    /// their left side.
    ///
    /// Only where each variable shared with the rows so far is certainly bound in them.
    Exists {
        /// What is looked for.
        steps: Vec<PlannedStep>,
        /// What becomes of the row.
        outcome: Outcome,
    },
    /// Whether `node` has a row, once the variables of `given` that a row binds have their
    /// values in it: EXISTS of a pattern that cannot be explored from the rows.
    ///
    /// Explorations inside that have no input start with the given values, and projections and
    /// groups inside keep them. It is evaluated once for each combination of given values.
    ExistsGiven {
        /// What is looked for.
        node: Box<Node>,
        /// A plan to be followed instead where all of `given` are bound: then better is known.
        all_bound: Option<Box<Node>>,
        /// The variables to hand in, where they are bound.
        given: Vec<Var>,
        /// What becomes of the row.
        outcome: Outcome,
    },
}

/// What becomes of a row for which something was looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It is kept if something was found.
    Keep,
    /// It is kept if nothing was found.
    Drop,
    /// It is kept, and this variable says whether something was found.
    Mark(Var),
}

impl Outcome {
    /// The variable that is bound.
    #[must_use]
    pub const fn variable(self) -> Option<Var> {
        match self {
            Self::Keep | Self::Drop => None,
            Self::Mark(var) => Some(var),
        }
    }
}

/// A step with what is expected of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedStep {
    /// What to do.
    pub step: Step,
    /// Rows expected after the step.
    pub rows: f64,
    /// The step's own number in the plan, for profiles.
    #[serde(with = "fields::plan_id")]
    pub id: u32,
}

/// An operator with what is expected of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// What to do.
    pub operator: Operator,
    /// Rows expected.
    pub rows: f64,
    /// The operator's own number in the plan, for profiles.
    #[serde(with = "fields::plan_id")]
    pub id: u32,
}

/// What a [`Node`] does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Operator {
    /// Extends the rows of `input` (one row without columns, where there is none) step by step.
    Explore {
        /// Where rows come from.
        input: Option<Box<Node>>,
        /// In this order; shared with whatever goes on with them elsewhere.
        steps: Arc<[PlannedStep]>,
    },
    /// Join of two independent sides on all variables they share; where one may be unbound, by
    /// SPARQL's compatibility. No shared variable: the cross product, planned only where the
    /// query itself is not connected.
    Join {
        /// The side kept in memory (the smaller).
        build: Box<Node>,
        /// The side that streams.
        probe: Box<Node>,
        /// Shared variables, certainly bound on both sides: the hash key.
        keys: Vec<Var>,
        /// Shared variables that may be unbound on either side.
        loose: Vec<Var>,
    },
    /// Left join of two independent sides, where [`Step::Optional`] may not be used.
    LeftJoin {
        /// Each of its rows survives.
        left: Box<Node>,
        /// Kept in memory.
        right: Box<Node>,
        /// Shared variables, certainly bound on both sides.
        keys: Vec<Var>,
        /// Shared variables that may be unbound on either side.
        loose: Vec<Var>,
        /// Steps that only mark joined rows, for the condition to see.
        marks: Vec<PlannedStep>,
        /// The filter of the left join; sees both sides.
        condition: Option<Expression>,
    },
    /// MINUS of two independent sides, where [`Step::Exists`] may not be used: the rows of `left`
    /// for which no row of `right` is compatible and binds a variable that they bind too.
    Minus {
        /// Streams.
        left: Box<Node>,
        /// Kept in memory.
        right: Box<Node>,
        /// Shared variables, certainly bound on both sides.
        keys: Vec<Var>,
        /// Shared variables that may be unbound on either side.
        loose: Vec<Var>,
        /// True if the keys count as variables that both rows bind (a graph alone does not);
        /// else one of `loose` must be bound in both.
        overlaps: bool,
    },
    /// The rows of `input` for each named graph of the dataset in turn, as in
    /// [`Step::ExistsGiven`] with `scope` given; `name` is the graph in the rows, which are
    /// dropped where they bind it to something else.
    EachGraph {
        /// Evaluated anew for each graph.
        input: Box<Node>,
        /// The graph inside.
        scope: Var,
        /// The graph outside.
        name: Var,
    },
    /// Join, or left join, of the rows of `input` with what a SPARQL endpoint answers.
    Service {
        /// The left side; one row without columns, where there is none.
        input: Option<Box<Node>>,
        /// What is asked of whom.
        service: Box<Service>,
        /// Shared variables, certainly bound on both sides: the hash key.
        keys: Vec<Var>,
        /// Shared variables that may be unbound on either side.
        loose: Vec<Var>,
        /// Shared variables that every row and every answer binds: their values may be sent
        /// with the query, so that no more is answered than is needed.
        send: Vec<Var>,
        /// Rows that find nothing are kept, with the new variables unbound.
        optional: bool,
        /// Steps that only mark joined rows, for the condition to see.
        marks: Vec<PlannedStep>,
        /// The filter of the left join; sees both sides.
        condition: Option<Expression>,
    },
    /// Rows that are given with the execution: they bind all of these variables, in this order.
    Materialized {
        /// Columns.
        vars: Vec<Var>,
    },
    /// The ends of one triple pattern by kind, from what is counted of the graph.
    EndCounts(Box<EndCounts>),
    /// The rows of each input in turn; a variable that an input lacks is unbound.
    Union(Vec<Node>),
    /// Groups by the values of `by` (no variable: one group, also of no rows).
    Group {
        /// Where rows come from.
        input: Box<Node>,
        /// Grouping variables (expressions were made columns by `Extend`).
        by: Vec<Var>,
        /// One new variable for each aggregate.
        aggregates: Vec<(Var, Aggregate)>,
    },
    /// Sorts.
    OrderBy {
        /// Where rows come from.
        input: Box<Node>,
        /// Keys, most significant first.
        keys: Vec<OrderKey>,
        /// Only so many first rows are wanted (offset included).
        limit: Option<usize>,
    },
    /// Keeps these columns.
    Project {
        /// Where rows come from.
        input: Box<Node>,
        /// In this order.
        vars: Vec<Var>,
    },
    /// Removes repeated rows (rows are compared on all their columns).
    Distinct {
        /// Where rows come from.
        input: Box<Node>,
    },
    /// May remove repeated rows.
    Reduced {
        /// Where rows come from.
        input: Box<Node>,
    },
    /// Skips `offset` rows and passes `limit` at most.
    Slice {
        /// Where rows come from.
        input: Box<Node>,
        /// Rows to skip.
        offset: usize,
        /// Rows to pass.
        limit: Option<usize>,
    },
}

/// The terms at one end of a triple pattern whose ends are variables, or its solutions, by kind: IRIs, blank nodes, and
/// the literals of each datatype and language.
///
/// A row for each kind, perhaps for each predicate, with one of its terms in place of all: what reads it looks at
/// nothing that differs among those of a kind. It stands for as many rows as there are terms, or solutions, of that
/// kind; where all kinds are counted together it binds no term. Where the graph has not counted them, the rows are those
/// of `general`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndCounts {
    /// The variable at that end.
    pub end: Var,
    /// The predicate: a constant, or a variable that each row binds; any without one, and then a term that several
    /// predicates share is one term.
    pub predicate: Option<Slot>,
    /// `Out`: the end is the subject. `In`: it is the object.
    #[serde(with = "fields::direction")]
    pub direction: Direction,
    /// Which graph: the default graph, or a constant.
    pub scope: Scope,
    /// What there are as many rows of.
    #[serde(with = "fields::counted")]
    pub counted: Counted,
    /// Kinds are told apart.
    pub by_kind: bool,
    /// Finds the same terms, each once, or the solutions.
    pub general: Node,
}

/// A SPARQL endpoint and what is asked of it (SPARQL 1.1 Federated Query).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// The endpoint: a constant, or a variable that the rows bind to an IRI.
    pub endpoint: Slot,
    /// The name of the variable of the endpoint, for messages.
    pub endpoint_name: String,
    /// Where the endpoint cannot be asked, its answer is one solution that binds nothing.
    pub silent: bool,
    /// The query to send.
    pub query: RemoteQuery,
    /// The variables of the query's columns.
    pub columns: Vec<Var>,
    /// Those of `columns` that each solution binds.
    pub certain: Vec<Var>,
}

/// A query for an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteQuery {
    /// The base IRI.
    #[serde(with = "fields::iri")]
    pub base: Option<NamedNode>,
    /// The names of the columns that are of interest, without their question marks.
    pub names: Vec<String>,
    /// A column to ask for where there are none of interest, as a SELECT must have one.
    pub spare: String,
    /// What stands between the outermost braces.
    pub pattern: String,
    /// The pattern means the same with more patterns beside it.
    pub plain: bool,
    /// Where an EXISTS around gives values to variables: after the opening brace of each group.
    pub openings: Vec<Opening>,
}

/// A place of a [`RemoteQuery`]'s pattern at which values of variables may be written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening {
    /// The byte.
    pub at: usize,
    /// The variables that the group mentions there, with their names.
    pub variables: Vec<(String, Var)>,
}

impl RemoteQuery {
    /// The same query where variables have the values that `value` gives, wherever they are
    /// mentioned.
    #[must_use]
    pub fn given(&self, value: &dyn Fn(Var) -> Option<Term>) -> Self {
        let mut pattern = String::with_capacity(self.pattern.len());
        let mut end = 0;
        for Opening { at, variables } in &self.openings {
            pattern.push_str(&self.pattern[end..*at]);
            end = *at;
            for (name, var) in variables {
                if let Some(term) = value(*var) {
                    let _ = write!(pattern, "VALUES ?{name} {{ {term} }} ");
                }
            }
        }
        pattern.push_str(&self.pattern[end..]);
        Self {
            pattern,
            openings: Vec::new(),
            ..self.clone()
        }
    }

    /// The text of the query.
    #[must_use]
    pub fn text(&self) -> String {
        self.text_with("", &self.pattern)
    }

    /// The text of the query, for solutions that agree with one of `rows` on the given columns.
    ///
    /// # Panics
    /// If there is no such column.
    #[must_use]
    pub fn text_for<'r>(
        &self,
        columns: &[usize],
        rows: impl IntoIterator<Item = &'r [Term]>,
    ) -> String {
        let mut values = "VALUES (".to_owned();
        for column in columns {
            let _ = write!(values, " ?{}", self.names[*column]);
        }
        values.push_str(" ) {");
        for row in rows {
            values.push_str(" (");
            for term in row {
                let _ = write!(values, " {term}");
            }
            values.push_str(" )");
        }
        values.push_str(" } ");
        if self.plain {
            self.text_with(&values, &self.pattern)
        } else {
            self.text_with(&values, &format!("{{ {} }}", self.pattern))
        }
    }

    fn text_with(&self, values: &str, pattern: &str) -> String {
        let mut text = String::new();
        if let Some(base) = &self.base {
            let _ = writeln!(text, "BASE {base}");
        }
        text.push_str("SELECT");
        for name in &self.names {
            let _ = write!(text, " ?{name}");
        }
        if self.names.is_empty() {
            let _ = write!(text, " ?{}", self.spare);
        }
        let _ = write!(text, " WHERE {{ {values}{pattern} }}");
        text
    }
}

/// A key of ORDER BY.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderKey {
    /// The value to sort by.
    pub expression: Expression,
    /// From the greatest to the least.
    pub descending: bool,
}

/// What a query returns.
#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// Solutions over these variables, in this order.
    Select(Vec<Var>),
    /// Whether there is a solution.
    Ask,
    /// Triples by this template, for each solution.
    Construct(Vec<TemplateTriple>),
    /// Descriptions of these variables' values and constants.
    Describe(Vec<Slot>),
}

/// A triple of CONSTRUCT's template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TemplateTriple {
    /// Subject.
    pub subject: TemplateSlot,
    /// Predicate.
    pub predicate: TemplateSlot,
    /// Object.
    pub object: TemplateSlot,
}

/// A position in a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateSlot {
    /// A variable's value.
    Var(Var),
    /// A constant.
    Const(ConstId),
    /// A new blank node for each solution; the same number is the same node.
    Blank(u16),
}

/// The dataset clause of a query (or of a request, which replaces it).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dataset {
    /// `FROM`: the default graph is their merge.
    pub default: Vec<NamedNode>,
    /// `FROM NAMED`.
    pub named: Vec<NamedNode>,
}

/// What a continuous query reads beside what a dataset says: windows are graphs of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Windows {
    /// Those that are in the default graph, by their numbers.
    pub default: Vec<u16>,
    /// The stored graphs that patterns name: they are read whatever the dataset has.
    pub graphs: Vec<NamedNode>,
}

/// Ids of a plan's constants, remembered by whoever looked them up in one generation of a graph.
///
/// No part of the plan: all are equal, and a clone has forgotten everything.
#[derive(Debug, Default)]
pub struct RememberedIds(OnceLock<(u64, Box<[TermId]>)>);

impl RememberedIds {
    /// The ids by constant that were remembered for this generation of the graph;
    /// [`TermId::NONE`] for a constant that must be looked up at each run.
    #[must_use]
    pub fn get(&self, generation: u64) -> Option<&[TermId]> {
        self.0
            .get()
            .filter(|known| known.0 == generation)
            .map(|known| &*known.1)
    }

    /// Remembers ids, unless some were remembered before.
    pub fn set(&self, generation: u64, ids: Box<[TermId]>) {
        // Whoever came first looked up the same.
        let _ = self.0.set((generation, ids));
    }
}

impl Clone for RememberedIds {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for RememberedIds {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Steps of a list that an executor may nest in each other: a longer list is run in pieces of so
/// many, as lists may have any length.
pub const NESTED_STEPS: usize = 16;

/// Variables of a row that an executor compares at most to learn whether a [`Step::Exists`] has looked
/// for the same before.
pub const COMPARED_VARIABLES: usize = 4;

/// A query, planned.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What it returns.
    pub form: Form,
    /// Names by [`Var`]; those of variables that the query does not name begin with a dot.
    pub variables: Vec<String>,
    /// Sources by [`ConstId`].
    pub constants: Vec<Constant>,
    /// Where solutions come from.
    pub root: Node,
    /// The dataset, where the query or the request names one.
    pub dataset: Option<Dataset>,
    /// Those of a continuous query.
    pub windows: Option<Windows>,
    /// Without a dataset, the default graph is the store's own and all named graphs together.
    pub union_default_graph: bool,
    /// Some step looks into the default graph.
    pub reads_default_graph: bool,
    /// The base IRI of the query, which `IRI()` resolves against.
    pub base: Option<NamedNode>,
    /// It asks other endpoints, and so waits for them.
    pub calls_services: bool,
    /// Work expected in rows handled by all steps, to tell light queries from heavy ones.
    pub cost: f64,
    /// Ids given to steps and nodes are below this.
    pub ids: u32,
    /// The most operators, steps and expressions that are nested in each other, where steps are
    /// run in pieces of [`NESTED_STEPS`].
    pub levels: usize,
    /// Ids of the constants in the graph that the plan last ran on.
    pub remembered: RememberedIds,
}

impl Plan {
    /// The stack for a recursion over the plan, or over what is made of it.
    #[must_use]
    pub fn stack(&self) -> Stack {
        Stack::of_levels(self.levels)
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        if !self.stack().is_plain() {
            let empty = Operator::Union(Vec::new());
            self.stack()
                .drop(mem::replace(&mut self.root.operator, empty));
        }
    }
}
