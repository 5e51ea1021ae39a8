//! What is a generated query, and how is it written as SPARQL?

use crate::path::Path;
use crate::random_data::NAMESPACE;
use oxrdf::Term;
use std::fmt;

/// A whole query.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// What it asks for.
    pub form: Form,
    /// `FROM`.
    pub from: Vec<Term>,
    /// `FROM NAMED`.
    pub from_named: Vec<Term>,
    /// `WHERE`.
    pub pattern: Group,
    /// `GROUP BY`; the variable names a computed key.
    pub group_by: Vec<(Expression, Option<String>)>,
    /// `HAVING`.
    pub having: Option<Expression>,
    /// `ORDER BY`, with true for descending.
    pub order_by: Vec<(Expression, bool)>,
    /// `LIMIT`.
    pub limit: Option<usize>,
    /// `OFFSET`.
    pub offset: Option<usize>,
}

/// The form of a query.
#[derive(Debug, Clone, PartialEq)]
pub enum Form {
    /// SELECT; no items stands for `*`.
    Select {
        /// Whether repeats are dropped.
        distinct: bool,
        /// What is projected.
        items: Vec<Item>,
    },
    /// ASK.
    Ask,
    /// CONSTRUCT with its template.
    Construct(Vec<Pattern>),
}

/// One thing of a SELECT clause.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// The variable.
    pub variable: String,
    /// What it is computed from, if it is.
    pub expression: Option<Expression>,
}

/// The elements between two braces.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Group(pub Vec<Element>);

/// One element of a group.
#[derive(Debug, Clone, PartialEq)]
pub enum Element {
    /// Triple patterns.
    Triples(Vec<Pattern>),
    /// A property path between two ends.
    Path(Node, Path, Node),
    /// FILTER.
    Filter(Expression),
    /// OPTIONAL.
    Optional(Group),
    /// Two or more groups joined by UNION.
    Union(Vec<Group>),
    /// GRAPH with a name or a variable.
    Graph(Node, Group),
    /// VALUES; `None` is UNDEF.
    Values(Vec<String>, Vec<Vec<Option<Term>>>),
    /// BIND.
    Bind(Expression, String),
    /// A group in a group.
    Nested(Group),
    /// MINUS.
    Minus(Group),
    /// A SELECT in a group.
    Subquery(Box<Query>),
}

/// A triple pattern.
#[derive(Debug, Clone, PartialEq)]
pub struct Pattern {
    /// Subject.
    pub subject: Node,
    /// Predicate.
    pub predicate: Node,
    /// Object.
    pub object: Node,
}

/// A position of a pattern.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// A variable, without `?`.
    Variable(String),
    /// A blank node by its label, unique to its basic graph pattern.
    Blank(String),
    /// A term.
    Term(Term),
}

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    /// A variable, without `?`.
    Variable(String),
    /// A term.
    Term(Term),
    /// `!e` and `-e`.
    Unary(&'static str, Box<Expression>),
    /// An operator between two expressions.
    Binary(&'static str, Box<Expression>, Box<Expression>),
    /// A function, or a cast by its prefixed name.
    Call(&'static str, Vec<Expression>),
    /// IN, or NOT IN when the flag is set.
    In(Box<Expression>, bool, Vec<Expression>),
    /// An aggregate: name, whether DISTINCT, and what of (`*` if nothing).
    Aggregate(&'static str, bool, Option<Box<Expression>>),
    /// EXISTS, or NOT EXISTS when the flag is set.
    Exists(bool, Group),
}

/// What GROUP_CONCAT puts between its parts; generated strings never contain it.
pub const SEPARATOR: &str = "|";

struct Shown<'a>(&'a Term);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const XSD: &str = "http://www.w3.org/2001/XMLSchema#";
        match self.0 {
            Term::NamedNode(node) => {
                if let Some(name) = node.as_str().strip_prefix(NAMESPACE) {
                    write!(f, ":{name}")
                } else if let Some(name) = node.as_str().strip_prefix(XSD) {
                    write!(f, "xsd:{name}")
                } else {
                    write!(f, "{node}")
                }
            }
            Term::Literal(literal) => {
                let datatype = literal.datatype();
                match datatype.as_str().strip_prefix(XSD) {
                    Some(name) if name != "string" => {
                        write!(f, "\"{}\"^^xsd:{name}", literal.value())
                    }
                    _ => write!(f, "{literal}"),
                }
            }
            Term::BlankNode(node) => write!(f, "{node}"),
        }
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "?{name}"),
            Self::Blank(label) => write!(f, "_:{label}"),
            Self::Term(term) => write!(f, "{}", Shown(term)),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} .", self.subject, self.predicate, self.object)
    }
}

struct Listed<'a>(&'a [Expression]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, expression) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{expression}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "?{name}"),
            Self::Term(term) => write!(f, "{}", Shown(term)),
            Self::Unary(operator, inner) => write!(f, "({operator} {inner})"),
            Self::Binary(operator, left, right) => write!(f, "({left} {operator} {right})"),
            Self::Call(name, arguments) => write!(f, "{name}({})", Listed(arguments)),
            Self::In(inner, negated, list) => {
                let not = if *negated { "NOT " } else { "" };
                write!(f, "({inner} {not}IN ({}))", Listed(list))
            }
            Self::Exists(negated, group) => {
                f.write_str(if *negated { "(NOT EXISTS " } else { "(EXISTS " })?;
                group.write(f, 1)?;
                f.write_str(")")
            }
            Self::Aggregate(name, distinct, inner) => {
                let distinct = if *distinct { "DISTINCT " } else { "" };
                match inner {
                    None => write!(f, "{name}({distinct}*)"),
                    Some(inner) if *name == "GROUP_CONCAT" => {
                        write!(f, "{name}({distinct}{inner}; SEPARATOR=\"{SEPARATOR}\")")
                    }
                    Some(inner) => write!(f, "{name}({distinct}{inner})"),
                }
            }
        }
    }
}

impl Group {
    /// Whether there is a property path in it, however deep.
    #[must_use]
    pub fn has_path(&self) -> bool {
        self.0.iter().any(|element| match element {
            Element::Path(..) => true,
            Element::Optional(inner)
            | Element::Nested(inner)
            | Element::Minus(inner)
            | Element::Graph(_, inner) => inner.has_path(),
            Element::Subquery(query) => query.pattern.has_path(),
            Element::Union(branches) => branches.iter().any(Self::has_path),
            Element::Triples(_) | Element::Filter(_) | Element::Values(..) | Element::Bind(..) => {
                false
            }
        })
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        f.write_str("{\n")?;
        for element in &self.0 {
            element.write(f, depth + 1)?;
        }
        write!(f, "{}}}", "  ".repeat(depth))
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 0)
    }
}

impl Element {
    fn write(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        let indent = "  ".repeat(depth);
        match self {
            Self::Triples(patterns) => {
                for pattern in patterns {
                    writeln!(f, "{indent}{pattern}")?;
                }
                return Ok(());
            }
            Self::Path(subject, path, object) => {
                write!(f, "{indent}{subject} {path} {object} .")?;
            }
            Self::Filter(expression) => write!(f, "{indent}FILTER({expression})")?,
            Self::Bind(expression, variable) => {
                write!(f, "{indent}BIND({expression} AS ?{variable})")?;
            }
            Self::Optional(group) => {
                write!(f, "{indent}OPTIONAL ")?;
                group.write(f, depth)?;
            }
            Self::Nested(group) => {
                write!(f, "{indent}")?;
                group.write(f, depth)?;
            }
            Self::Minus(group) => {
                write!(f, "{indent}MINUS ")?;
                group.write(f, depth)?;
            }
            Self::Subquery(query) => {
                write!(f, "{indent}{{ ")?;
                query.write_form(f)?;
                f.write_str(" ")?;
                query.pattern.write(f, depth)?;
                f.write_str("\n")?;
                query.write_modifiers(f)?;
                write!(f, "{indent}}}")?;
            }
            Self::Graph(name, group) => {
                write!(f, "{indent}GRAPH {name} ")?;
                group.write(f, depth)?;
            }
            Self::Union(groups) => {
                write!(f, "{indent}")?;
                for (index, group) in groups.iter().enumerate() {
                    if index > 0 {
                        f.write_str(" UNION ")?;
                    }
                    group.write(f, depth)?;
                }
            }
            Self::Values(variables, rows) => {
                write!(f, "{indent}VALUES (?{}) {{", variables.join(" ?"))?;
                for row in rows {
                    f.write_str(" (")?;
                    for term in row {
                        match term {
                            Some(term) => write!(f, " {}", Shown(term))?,
                            None => f.write_str(" UNDEF")?,
                        }
                    }
                    f.write_str(" )")?;
                }
                f.write_str(" }")?;
            }
        }
        f.write_str("\n")
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "PREFIX : <{NAMESPACE}>")?;
        writeln!(f, "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>")?;
        self.write_form(f)?;
        f.write_str("\n")?;
        for name in &self.from {
            writeln!(f, "FROM {}", Shown(name))?;
        }
        for name in &self.from_named {
            writeln!(f, "FROM NAMED {}", Shown(name))?;
        }
        f.write_str("WHERE ")?;
        self.pattern.write(f, 0)?;
        f.write_str("\n")?;
        self.write_modifiers(f)
    }
}

impl Query {
    fn write_form(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.form {
            Form::Ask => f.write_str("ASK")?,
            Form::Construct(template) => {
                f.write_str("CONSTRUCT {")?;
                for pattern in template {
                    write!(f, " {pattern}")?;
                }
                f.write_str(" }")?;
            }
            Form::Select { distinct, items } => {
                f.write_str(if *distinct {
                    "SELECT DISTINCT"
                } else {
                    "SELECT"
                })?;
                if items.is_empty() {
                    f.write_str(" *")?;
                }
                for item in items {
                    match &item.expression {
                        None => write!(f, " ?{}", item.variable)?,
                        Some(expression) => write!(f, " ({expression} AS ?{})", item.variable)?,
                    }
                }
            }
        }
        Ok(())
    }

    fn write_modifiers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.group_by.is_empty() {
            f.write_str("GROUP BY")?;
            for (expression, variable) in &self.group_by {
                match variable {
                    Some(variable) => write!(f, " ({expression} AS ?{variable})")?,
                    None => write!(f, " {expression}")?,
                }
            }
            f.write_str("\n")?;
        }
        if let Some(having) = &self.having {
            writeln!(f, "HAVING ({having})")?;
        }
        if !self.order_by.is_empty() {
            f.write_str("ORDER BY")?;
            for (expression, descending) in &self.order_by {
                write!(
                    f,
                    " {}({expression})",
                    if *descending { "DESC" } else { "ASC" }
                )?;
            }
            f.write_str("\n")?;
        }
        if let Some(limit) = self.limit {
            writeln!(f, "LIMIT {limit}")?;
        }
        if let Some(offset) = self.offset {
            writeln!(f, "OFFSET {offset}")?;
        }
        Ok(())
    }

    /// The query without ORDER BY, LIMIT and OFFSET.
    #[must_use]
    pub fn unordered(&self) -> Self {
        Self {
            order_by: Vec::new(),
            limit: None,
            offset: None,
            ..self.clone()
        }
    }
}
