//! What does a request say?
//!
//! The tree of a parsed request. IRIs are absolute, prefixed names resolved, `a` is `rdf:type`,
//! collections, blank node property lists, reified triples and annotations are written out as
//! triples. A part that the text does not have, but stands for, has the place of what stands for
//! it. Lists (`||`, `UNION`, triples, operands) are vectors, never chains of nodes: depth of the
//! tree is the nesting of brackets, which the parser bounds.

use std::borrow::Cow;

use crate::continuous::BareName;

/// A range of bytes of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

/// A variable, without `?` or `$`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable<'t> {
    /// With its sign.
    pub span: Span,
    /// The name.
    pub name: &'t str,
}

/// An absolute IRI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iri<'t> {
    /// `<...>`, a prefixed name, or `a`.
    pub span: Span,
    /// Resolved, without escapes.
    pub value: Cow<'t, str>,
}

/// A literal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal<'t> {
    /// All of it: quotes, language tag and datatype included. A sign directly before a number
    /// is part of it where the grammar has it so.
    pub span: Span,
    /// The lexical form, without escapes.
    pub value: Cow<'t, str>,
    /// What the literal is besides its lexical form.
    pub kind: LiteralKind<'t>,
}

/// What a literal is besides its lexical form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LiteralKind<'t> {
    /// `xsd:string`.
    String,
    /// A language tag in lower case, with a base direction (`--ltr`, `--rtl`) if there is one.
    Language {
        /// The tag.
        tag: Cow<'t, str>,
        /// The direction.
        direction: Option<Direction>,
    },
    /// `^^` and an IRI.
    Typed(Iri<'t>),
    /// Written without quotes: `xsd:integer`.
    Integer,
    /// Written without quotes: `xsd:decimal`.
    Decimal,
    /// Written without quotes: `xsd:double`.
    Double,
    /// `true` or `false` in any case; the value is in lower case.
    Boolean,
}

/// The base direction of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Left to right.
    Ltr,
    /// Right to left.
    Rtl,
}

/// A blank node of a pattern, template or data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlankNode<'t> {
    /// The label, the brackets, or what stands for the node.
    pub span: Span,
    /// Equal where it is the same node. A label is the same node within one basic graph pattern,
    /// template or request's data as the grammar's notes (19.6, 10) have it.
    pub id: u32,
    /// The label, if it has one.
    pub label: Option<&'t str>,
}

/// What may stand in a triple of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Term<'t> {
    /// A variable.
    Variable(Variable<'t>),
    /// An IRI.
    Iri(Iri<'t>),
    /// A literal.
    Literal(Literal<'t>),
    /// A blank node.
    Blank(BlankNode<'t>),
    /// A triple term, `<<( s p o )>>`.
    Triple(Box<TripleTerm<'t>>),
}

/// A triple term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TripleTerm<'t> {
    /// With its brackets.
    pub span: Span,
    /// Subject, predicate and object.
    pub terms: [Term<'t>; 3],
}

/// A triple of a template: its predicate is a variable or an IRI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Triple<'t> {
    /// The subject.
    pub subject: Term<'t>,
    /// The predicate.
    pub predicate: Name<'t>,
    /// The object.
    pub object: Term<'t>,
}

/// A triple of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriplePattern<'t> {
    /// The subject.
    pub subject: Term<'t>,
    /// The predicate.
    pub predicate: Predicate<'t>,
    /// The object.
    pub object: Term<'t>,
}

/// A variable or an IRI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name<'t> {
    /// A variable.
    Variable(Variable<'t>),
    /// An IRI.
    Iri(Iri<'t>),
}

/// The predicate of a pattern. A path that is just an IRI is [`Name::Iri`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Predicate<'t> {
    /// A variable or an IRI.
    Name(Name<'t>),
    /// A property path.
    Path(Path<'t>),
}

/// A property path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Path<'t> {
    /// One step.
    Iri(Iri<'t>),
    /// `^path`.
    Inverse(Box<Self>),
    /// `a/b/c`: two or more.
    Sequence(Vec<Self>),
    /// `a|b|c`: two or more.
    Alternative(Vec<Self>),
    /// `path?`.
    ZeroOrOne(Box<Self>),
    /// `path*`.
    ZeroOrMore(Box<Self>),
    /// `path+`.
    OneOrMore(Box<Self>),
    /// `!(a|^b)`.
    Negated {
        /// Those without `^`.
        forward: Vec<Iri<'t>>,
        /// Those with `^`.
        inverse: Vec<Iri<'t>>,
    },
}

/// What is in a pair of braces.
#[derive(Clone, Debug, PartialEq)]
pub struct Group<'t> {
    /// With its braces.
    pub span: Span,
    /// In the order of the text. A nested SELECT is the only one.
    pub elements: Vec<Element<'t>>,
}

/// A part of a group.
#[derive(Clone, Debug, PartialEq)]
pub enum Element<'t> {
    /// Triples with nothing but filters between them: one basic graph pattern, if no predicate is
    /// a path. Filters between them are elements after it.
    Triples(Vec<TriplePattern<'t>>),
    /// A group; two or more are a UNION.
    Union(Vec<Group<'t>>),
    /// OPTIONAL.
    Optional(Group<'t>),
    /// MINUS.
    Minus(Group<'t>),
    /// GRAPH.
    Graph(Name<'t>, Group<'t>),
    /// GRAPH and a bare name, in continuous queries only: of a stream that has a window, or of a
    /// stored graph.
    BareGraph(BareName<'t>, Group<'t>),
    /// WINDOW, in continuous queries only. An IRI is the name of one of the windows.
    Window(Name<'t>, Group<'t>),
    /// SERVICE.
    Service(Service<'t>),
    /// FILTER: of the whole group, wherever it stands.
    Filter(Expression<'t>),
    /// BIND.
    Bind(Expression<'t>, Variable<'t>),
    /// VALUES.
    Values(Values<'t>),
    /// A nested SELECT.
    Select(Box<Select<'t>>),
}

/// SERVICE.
#[derive(Clone, Debug, PartialEq)]
pub struct Service<'t> {
    /// From the keyword to the end of the group.
    pub span: Span,
    /// Its failure is no error.
    pub silent: bool,
    /// The endpoint.
    pub endpoint: Name<'t>,
    /// What it is asked.
    pub group: Group<'t>,
}

/// Inline data.
#[derive(Clone, Debug, PartialEq)]
pub struct Values<'t> {
    /// From the keyword on.
    pub span: Span,
    /// The columns, each once.
    pub variables: Vec<Variable<'t>>,
    /// The rows one after the other, each as wide as there are columns: IRIs, literals and ground
    /// triple terms; none for UNDEF.
    pub cells: Vec<Option<Term<'t>>>,
    /// Their number, as there may be no columns.
    pub rows: usize,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression<'t> {
    /// Without parentheses around it.
    pub span: Span,
    /// What it is.
    pub kind: ExpressionKind<'t>,
}

/// What an expression is.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpressionKind<'t> {
    /// A variable.
    Variable(Variable<'t>),
    /// An IRI.
    Iri(Iri<'t>),
    /// A literal.
    Literal(Literal<'t>),
    /// A triple term whose parts are expressions.
    Triple(Box<[Expression<'t>; 3]>),
    /// `a || b || c`: two or more.
    Or(Vec<Expression<'t>>),
    /// `a && b && c`: two or more.
    And(Vec<Expression<'t>>),
    /// A comparison.
    Compare(Comparison, Box<[Expression<'t>; 2]>),
    /// `a IN (...)`, or `NOT IN`.
    In {
        /// It is NOT IN.
        negated: bool,
        /// What is looked for.
        operand: Box<Expression<'t>>,
        /// Where.
        list: Vec<Expression<'t>>,
    },
    /// `a + b - c`: the first operand, and the others with their signs, from left to right. The
    /// grammar's `?x -1` is a subtraction of 1.
    Sum(Box<Expression<'t>>, Vec<(Sign, Expression<'t>)>),
    /// `a * b / c`, from left to right.
    Product(Box<Expression<'t>>, Vec<(Factor, Expression<'t>)>),
    /// `!a`.
    Not(Box<Expression<'t>>),
    /// `+a` or `-a`.
    Signed(Sign, Box<Expression<'t>>),
    /// A function or functional form of the grammar.
    Call(Builtin, Vec<Expression<'t>>),
    /// A function by its IRI, casts included.
    Function(Iri<'t>, Vec<Expression<'t>>),
    /// EXISTS, or NOT EXISTS.
    Exists {
        /// It is NOT EXISTS.
        negated: bool,
        /// The pattern.
        group: Box<Group<'t>>,
    },
    /// An aggregate.
    Aggregate(Box<Aggregate<'t>>),
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// `+` or `-`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// `+`
    Plus,
    /// `-`
    Minus,
}

/// `*` or `/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factor {
    /// `*`
    Times,
    /// `/`
    Divided,
}

/// The functions and functional forms that the grammar names; EXISTS and the aggregates are
/// others. The parser checks the number of arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are those of the grammar")]
pub enum Builtin {
    Str,
    Lang,
    LangMatches,
    LangDir,
    Datatype,
    Bound,
    Iri,
    BNode,
    Rand,
    Abs,
    Ceil,
    Floor,
    Round,
    Concat,
    StrLen,
    UCase,
    LCase,
    EncodeForUri,
    Contains,
    StrStarts,
    StrEnds,
    StrBefore,
    StrAfter,
    Year,
    Month,
    Day,
    Hours,
    Minutes,
    Seconds,
    Timezone,
    Tz,
    Now,
    Uuid,
    StrUuid,
    Md5,
    Sha1,
    Sha256,
    Sha384,
    Sha512,
    Coalesce,
    If,
    StrLang,
    StrLangDir,
    StrDt,
    SameTerm,
    IsIri,
    IsBlank,
    IsLiteral,
    IsNumeric,
    HasLang,
    HasLangDir,
    Regex,
    Substr,
    Replace,
    IsTriple,
    Triple,
    Subject,
    Predicate,
    Object,
}

/// An aggregate.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate<'t> {
    /// Which.
    pub function: AggregateFunction<'t>,
    /// DISTINCT.
    pub distinct: bool,
    /// Of what; none for `COUNT(*)`. It has no aggregate inside.
    pub operand: Option<Expression<'t>>,
}

/// Which aggregate.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names are those of the grammar")]
pub enum AggregateFunction<'t> {
    Count,
    Sum,
    Min,
    Max,
    Avg,
    Sample,
    /// With its separator.
    GroupConcat {
        separator: Option<Cow<'t, str>>,
    },
}

/// SELECT, nested or not.
#[derive(Clone, Debug, PartialEq)]
pub struct Select<'t> {
    /// From the keyword to the end of its modifiers.
    pub span: Span,
    /// DISTINCT or REDUCED.
    pub deduplicate: Option<Deduplicate>,
    /// What it shows.
    pub projection: Projection<'t>,
    /// WHERE.
    pub group: Group<'t>,
    /// What follows.
    pub modifiers: Modifiers<'t>,
    /// VALUES at the end of a nested SELECT; that of a query is in [`Query::values`].
    pub values: Option<Values<'t>>,
}

/// DISTINCT or REDUCED.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deduplicate {
    /// DISTINCT.
    Distinct,
    /// REDUCED.
    Reduced,
}

/// What a SELECT shows.
#[derive(Clone, Debug, PartialEq)]
pub enum Projection<'t> {
    /// `*`: the variables in scope, each once, in the order of their first place in the text.
    All(Vec<Variable<'t>>),
    /// Variables and expressions.
    Columns(Vec<Column<'t>>),
}

/// A column of a SELECT.
#[derive(Clone, Debug, PartialEq)]
pub struct Column<'t> {
    /// What computes it, if something does.
    pub expression: Option<Expression<'t>>,
    /// Its name.
    pub variable: Variable<'t>,
}

/// Solution modifiers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Modifiers<'t> {
    /// GROUP BY: keys with the names that `AS` gives them.
    pub group_by: Vec<(Expression<'t>, Option<Variable<'t>>)>,
    /// HAVING.
    pub having: Vec<Expression<'t>>,
    /// ORDER BY.
    pub order_by: Vec<OrderKey<'t>>,
    /// LIMIT.
    pub limit: Option<u64>,
    /// OFFSET.
    pub offset: u64,
}

/// A key of ORDER BY.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderKey<'t> {
    /// The key.
    pub expression: Expression<'t>,
    /// DESC.
    pub descending: bool,
}

/// FROM and FROM NAMED, or USING and USING NAMED.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dataset<'t> {
    /// Merged into the default graph.
    pub default: Vec<Iri<'t>>,
    /// Those with NAMED.
    pub named: Vec<Iri<'t>>,
}

/// A query.
#[derive(Clone, Debug, PartialEq)]
pub struct Query<'t> {
    /// The base IRI at its end.
    pub base: Option<String>,
    /// What is asked for.
    pub form: Form<'t>,
    /// FROM and FROM NAMED, if there are any.
    pub dataset: Option<Dataset<'t>>,
    /// VALUES behind it all.
    pub values: Option<Values<'t>>,
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Form<'t> {
    /// SELECT.
    Select(Box<Select<'t>>),
    /// CONSTRUCT. The short form has its pattern as template.
    Construct {
        /// The template.
        template: Vec<Triple<'t>>,
        /// WHERE.
        group: Group<'t>,
        /// What follows.
        modifiers: Modifiers<'t>,
    },
    /// DESCRIBE.
    Describe {
        /// What is described; for `*` the variables in scope.
        targets: Vec<Name<'t>>,
        /// WHERE, if there is one.
        group: Option<Group<'t>>,
        /// What follows.
        modifiers: Modifiers<'t>,
    },
    /// ASK.
    Ask {
        /// WHERE.
        group: Group<'t>,
        /// What follows.
        modifiers: Modifiers<'t>,
    },
}

/// A triple in a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quad<'t> {
    /// The triple.
    pub triple: Triple<'t>,
    /// The graph of the GRAPH around it.
    pub graph: Option<Name<'t>>,
}

/// An operation of an update.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation<'t> {
    /// From its first keyword on.
    pub span: Span,
    /// The base IRI that holds there.
    pub base: Option<String>,
    /// What it does.
    pub kind: OperationKind<'t>,
}

/// What an operation does.
#[derive(Clone, Debug, PartialEq)]
pub enum OperationKind<'t> {
    /// INSERT DATA.
    InsertData(crate::data::DataBlock<'t>),
    /// DELETE DATA.
    DeleteData(crate::data::DataBlock<'t>),
    /// DELETE WHERE: the quads are pattern and template.
    DeleteWhere(Vec<Quad<'t>>),
    /// DELETE and INSERT with a pattern.
    Modify(Box<Modify<'t>>),
    /// LOAD.
    Load {
        /// SILENT.
        silent: bool,
        /// The document.
        source: Iri<'t>,
        /// INTO GRAPH.
        destination: Option<Iri<'t>>,
    },
    /// CLEAR.
    Clear {
        /// SILENT.
        silent: bool,
        /// Which graphs.
        target: GraphTarget<'t>,
    },
    /// DROP.
    Drop {
        /// SILENT.
        silent: bool,
        /// Which graphs.
        target: GraphTarget<'t>,
    },
    /// CREATE.
    Create {
        /// SILENT.
        silent: bool,
        /// The graph.
        graph: Iri<'t>,
    },
    /// ADD, MOVE or COPY.
    Transfer {
        /// Which of them.
        transfer: Transfer,
        /// SILENT.
        silent: bool,
        /// From this graph; none for the default graph.
        from: Option<Iri<'t>>,
        /// To this graph; none for the default graph.
        to: Option<Iri<'t>>,
    },
}

/// DELETE and INSERT with a pattern.
#[derive(Clone, Debug, PartialEq)]
pub struct Modify<'t> {
    /// WITH.
    pub with: Option<Iri<'t>>,
    /// The DELETE template, if there is one.
    pub delete: Option<Vec<Quad<'t>>>,
    /// The INSERT template, if there is one.
    pub insert: Option<Vec<Quad<'t>>>,
    /// USING and USING NAMED, if there are any.
    pub using: Option<Dataset<'t>>,
    /// WHERE.
    pub group: Group<'t>,
}

/// The graphs of CLEAR and DROP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GraphTarget<'t> {
    /// GRAPH and its name.
    Graph(Iri<'t>),
    /// DEFAULT.
    Default,
    /// NAMED.
    Named,
    /// ALL.
    All,
}

/// ADD, MOVE or COPY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// ADD.
    Add,
    /// MOVE.
    Move,
    /// COPY.
    Copy,
}
