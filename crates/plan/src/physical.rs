//! The plan that the executor follows: a tree of operators over binding tables.
//!
//! A binding table has a column of term ids for each variable bound so far. Most of a query is
//! one [`Operator::Explore`]: a list of [`Step`]s, each of which extends or filters the table by
//! walking the graph, with all that was bound before at hand (the full history).

use jindou_model::Direction;
use oxrdf::{NamedNode, Term};

use crate::expression::{Aggregate, Expression};

/// A variable of the plan: an index into [`Plan::variables`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Var(pub u16);

impl Var {
    /// The number as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A constant of the plan: an index into [`Plan::constants`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
}

/// A subject, predicate, object or graph in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// A variable, bound or not.
    Var(Var),
    /// A constant.
    Const(ConstId),
}

/// Which triples a step reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The default graph: the store's own, or the merge of the graphs that the dataset names.
    Default,
    /// One named graph: a constant, or a variable (bound already, or bound by this step).
    Graph(Slot),
}

/// An edge to follow from a bound end: neighbours of `from` by `predicate` in `direction`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Side {
    /// The known end: a constant or a bound variable.
    pub from: Slot,
    /// The predicate, an IRI.
    pub predicate: ConstId,
    /// `Out`: `from` is the subject. `In`: `from` is the object.
    pub direction: Direction,
}

/// Something to ask of a vertex, answered by its id alone (its characteristic set).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Requirement {
    /// It has this `rdf:type`. Stands for the triple pattern: it is always honoured.
    Type(ConstId),
    /// It has an edge of this predicate and direction. Implied by another pattern of the query:
    /// it prunes early and may be left out where the test is not cheap.
    Has(ConstId, Direction),
}

/// One step of exploration.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Binds `var`, unbound so far, to what meets all of `sides` and `requires`, in the store's
    /// own default graph.
    ///
    /// No side: a scan of the vertices that meet `requires` (at least one, and the first `Has`
    /// is then honoured, with literals too where its direction is `In`). One side: an expansion. Several: an intersection of sorted
    /// adjacency.
    Bind {
        /// The variable that gets a column.
        var: Var,
        /// Edges from known ends.
        sides: Vec<Side>,
        /// Tests of the new vertex.
        requires: Vec<Requirement>,
    },
    /// Keeps the rows whose edge exists, in the store's own default graph.
    Check {
        /// One end and the predicate.
        side: Side,
        /// The other end, a constant or bound.
        to: Slot,
    },
    /// Keeps the rows whose vertex meets the requirements (own default graph).
    Test {
        /// The vertex, bound or constant.
        slot: Slot,
        /// What it must meet; at least one.
        requires: Vec<Requirement>,
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
    /// the new variables unbound, where they (or `condition`) leave nothing.
    ///
    /// Only where each variable shared with the rows so far is certainly bound in them.
    Optional {
        /// The right side.
        steps: Vec<PlannedStep>,
        /// The filter of the left join; sees both sides.
        condition: Option<Expression>,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedStep {
    /// What to do.
    pub step: Step,
    /// Rows expected after the step.
    pub rows: f64,
    /// The step's own number in the plan, for profiles.
    pub id: u32,
}

/// An operator with what is expected of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What to do.
    pub operator: Operator,
    /// Rows expected.
    pub rows: f64,
    /// The operator's own number in the plan, for profiles.
    pub id: u32,
}

/// What a [`Node`] does.
#[derive(Clone, Debug, PartialEq)]
pub enum Operator {
    /// Extends the rows of `input` (one row without columns, where there is none) step by step.
    Explore {
        /// Where rows come from.
        input: Option<Box<Node>>,
        /// In this order.
        steps: Vec<PlannedStep>,
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
    /// The rows of each input in turn; a variable that an input lacks is unbound.
    Union(Vec<Node>),
    /// Rows whose expression is true.
    Filter {
        /// Where rows come from.
        input: Box<Node>,
        /// The condition.
        expression: Expression,
    },
    /// A new column.
    Extend {
        /// Where rows come from.
        input: Box<Node>,
        /// The new variable.
        var: Var,
        /// Its value; unbound on an error.
        expression: Expression,
    },
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

/// A key of ORDER BY.
#[derive(Clone, Debug, PartialEq)]
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
    /// The dataset, where the query or the request names one; then every step is a
    /// [`Step::Match`] or [`Step::Graphs`].
    pub dataset: Option<Dataset>,
    /// The base IRI of the query, which `IRI()` resolves against.
    pub base: Option<NamedNode>,
    /// Work expected in rows handled by all steps, to tell light queries from heavy ones.
    pub cost: f64,
    /// Ids given to steps and nodes are below this.
    pub ids: u32,
}
