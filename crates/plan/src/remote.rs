//! How is the pattern of a SERVICE written as a query for its endpoint?
//!
//! As the text has it, with its names resolved and its abbreviations written out: the endpoint
//! need not have the prefixes. Every operation has brackets of its own.

use std::fmt::{self, Display, Write as _};

use jindou_syntax::continuous::TIMESTAMP;
use jindou_syntax::tree::{
    Aggregate, AggregateFunction, Builtin, Comparison, Deduplicate, Direction, Element, Expression,
    ExpressionKind, Factor, Group, Iri, Literal, LiteralKind, Modifiers, Name, Path, Predicate,
    Projection, Select, Sign, Span, Term, TriplePattern, Values,
};
use memchr::memmem;
use rustc_hash::FxHashSet;

use crate::convert::literal_term;
use crate::convert_select::shown;
use crate::walk;

/// Places of a written pattern, each with the names of variables that may get values there.
pub(crate) type Openings<'t> = Vec<(usize, Vec<&'t str>)>;

/// A group as text.
pub(crate) struct WrittenGroup<'t> {
    pub(crate) pattern: String,
    pub(crate) openings: Openings<'t>,
    /// What it first says of windows of streams, which no other endpoint has.
    pub(crate) of_windows: Option<(Span, &'static str)>,
}

/// Writes what stands between the braces of a group that says the same as `group`, and where
/// values of variables may be written into it if it is `correlated` with an EXISTS around.
pub(crate) fn contents<'t>(group: &Group<'t>, correlated: bool) -> WrittenGroup<'t> {
    let mut writer = Writer {
        correlated,
        ..Writer::default()
    };
    writer.opening(group, None);
    writer.contents(group);
    writer.text.truncate(writer.text.trim_end().len());
    WrittenGroup {
        pattern: writer.text,
        openings: writer.openings,
        of_windows: writer.of_windows,
    }
}

/// True where more patterns may stand beside the group's contents, in the same braces, and no
/// part of it means anything else: triple patterns and filters.
pub(crate) fn is_plain(group: &Group<'_>) -> bool {
    group.elements.iter().all(|element| match element {
        Element::Triples(_) => true,
        Element::Filter(condition) => !has_exists(condition),
        _ => false,
    })
}

/// The names of the variables that a solution of the group may bind, in order of first sight.
pub(crate) fn visible<'t>(group: &Group<'t>) -> Vec<&'t str> {
    let mut names = Vec::new();
    add_visible(group, &mut names);
    let mut seen = FxHashSet::default();
    names.retain(|name| seen.insert(*name));
    names
}

fn add_visible<'t>(group: &Group<'t>, names: &mut Vec<&'t str>) {
    for element in &group.elements {
        match element {
            Element::Triples(triples) => add_variables(triples, names),
            Element::Union(groups) => groups.iter().for_each(|group| add_visible(group, names)),
            Element::Optional(group) => add_visible(group, names),
            Element::Graph(name, group) | Element::Window(name, group) => {
                names.extend(variable(name));
                add_visible(group, names);
            }
            Element::BareGraph(_, group) => add_visible(group, names),
            Element::Service(service) => {
                names.extend(variable(&service.endpoint));
                add_visible(&service.group, names);
            }
            Element::Bind(_, variable) => names.push(variable.name),
            Element::Values(values) => {
                names.extend(values.variables.iter().map(|variable| variable.name));
            }
            Element::Select(select) => names.extend(shown(&select.projection)),
            Element::Minus(_) | Element::Filter(_) => (),
        }
    }
}

/// The names of the variables that a group mentions itself, or EXISTS in its expressions; groups
/// inside have their own, which count if it is `deep`.
fn add_mentioned<'t>(group: &Group<'t>, deep: bool, names: &mut Vec<&'t str>) {
    for element in &group.elements {
        let groups = match element {
            Element::Union(groups) => &**groups,
            Element::Optional(group) | Element::Minus(group) | Element::BareGraph(_, group) => {
                std::slice::from_ref(group)
            }
            Element::Graph(name, group) | Element::Window(name, group) => {
                names.extend(variable(name));
                std::slice::from_ref(group)
            }
            Element::Service(service) => {
                names.extend(variable(&service.endpoint));
                std::slice::from_ref(&service.group)
            }
            Element::Triples(triples) => {
                add_variables(triples, names);
                &[]
            }
            Element::Filter(expression) | Element::Bind(expression, _) => {
                add_of_expression(expression, names);
                &[]
            }
            Element::Values(values) => {
                names.extend(values.variables.iter().map(|variable| variable.name));
                &[]
            }
            Element::Select(_) => &[],
        };
        if deep {
            groups
                .iter()
                .for_each(|group| add_mentioned(group, true, names));
        }
    }
}

fn add_of_expression<'t>(expression: &Expression<'t>, names: &mut Vec<&'t str>) {
    match &expression.kind {
        ExpressionKind::Variable(variable) => names.push(variable.name),
        ExpressionKind::Exists { group, .. } => add_mentioned(group, true, names),
        _ => {
            for part in walk::parts(expression) {
                add_of_expression(part, names);
            }
        }
    }
}

fn add_variables<'t>(triples: &[TriplePattern<'t>], names: &mut Vec<&'t str>) {
    for triple in triples {
        add_of_term(&triple.subject, names);
        if let Predicate::Name(name) = &triple.predicate {
            names.extend(variable(name));
        }
        add_of_term(&triple.object, names);
    }
}

fn add_of_term<'t>(term: &Term<'t>, names: &mut Vec<&'t str>) {
    match term {
        Term::Variable(variable) => names.push(variable.name),
        Term::Triple(triple) => triple
            .terms
            .iter()
            .for_each(|term| add_of_term(term, names)),
        Term::Iri(_) | Term::Literal(_) | Term::Blank(_) => (),
    }
}

fn variable<'t>(name: &Name<'t>) -> Option<&'t str> {
    match name {
        Name::Variable(variable) => Some(variable.name),
        Name::Iri(_) => None,
    }
}

/// The names of the variables that every solution of the group binds, as far as the text says.
pub(crate) fn certain<'t>(group: &Group<'t>) -> FxHashSet<&'t str> {
    let mut set = FxHashSet::default();
    for element in &group.elements {
        match element {
            Element::Triples(triples) => {
                let mut names = Vec::new();
                add_variables(triples, &mut names);
                set.extend(names);
            }
            Element::Union(groups) => {
                let sets = groups.iter().map(certain);
                let all = sets.reduce(|mut set, other| {
                    set.retain(|name| other.contains(name));
                    set
                });
                set.extend(all.into_iter().flatten());
            }
            Element::Graph(name, group) => {
                set.extend(certain(group));
                set.extend(variable(name));
            }
            Element::Service(service) if !service.silent => set.extend(certain(&service.group)),
            Element::Bind(expression, variable) if never_fails(expression, &set) => {
                set.insert(variable.name);
            }
            Element::Values(values) => {
                let columns = values.variables.iter().enumerate();
                let rows = || values.cells.chunks(values.variables.len());
                let certain =
                    columns.filter(|(column, _)| rows().all(|row| row[*column].is_some()));
                set.extend(certain.map(|(_, variable)| variable.name));
            }
            Element::Select(select) => set.extend(certain_of_select(select)),
            _ => (),
        }
    }
    set
}

fn certain_of_select<'t>(select: &Select<'t>) -> FxHashSet<&'t str> {
    let mut set = certain(&select.group);
    if let Projection::Columns(columns) = &select.projection {
        for column in columns {
            let computed = column.expression.as_ref();
            if computed.is_some_and(|expression| never_fails(expression, &set)) {
                set.insert(column.variable.name);
            }
        }
    }
    let shown: FxHashSet<&str> = shown(&select.projection).collect();
    set.retain(|name| shown.contains(name));
    set
}

fn never_fails(expression: &Expression<'_>, certain: &FxHashSet<&str>) -> bool {
    match &expression.kind {
        ExpressionKind::Iri(_) | ExpressionKind::Literal(_) => true,
        ExpressionKind::Variable(variable) => certain.contains(variable.name),
        _ => false,
    }
}

/// True if the expression looks at a pattern.
fn has_exists(expression: &Expression<'_>) -> bool {
    matches!(expression.kind, ExpressionKind::Exists { .. })
        || walk::parts(expression).into_iter().any(has_exists)
}

#[derive(Default)]
struct Writer<'t> {
    text: String,
    correlated: bool,
    openings: Openings<'t>,
    /// What is first said of windows of streams, which no other endpoint has.
    of_windows: Option<(Span, &'static str)>,
}

impl<'t> Writer<'t> {
    fn push(&mut self, part: impl Display) {
        write!(self.text, "{part}").expect("a string takes all that is written");
    }

    fn list<T>(&mut self, items: impl IntoIterator<Item = T>, write: impl Fn(&mut Self, T)) {
        for (number, item) in items.into_iter().enumerate() {
            if number > 0 {
                self.push(", ");
            }
            write(self, item);
        }
    }

    fn note_window(&mut self, span: Span) {
        self.of_windows
            .get_or_insert((span, "windows of streams in SERVICE"));
    }

    fn group(&mut self, group: &Group<'t>) {
        self.push("{ ");
        self.opening(group, None);
        self.contents(group);
        self.push("} ");
    }

    /// Notes that values of the variables that the group mentions itself may be written here; in a
    /// nested SELECT those of the variables that it shows.
    fn opening(&mut self, group: &Group<'t>, shown: Option<&FxHashSet<&str>>) {
        if !self.correlated || matches!(&*group.elements, [Element::Select(_)]) {
            return;
        }
        let mut names = Vec::new();
        add_mentioned(group, false, &mut names);
        let mut seen = FxHashSet::default();
        let is_shown = |name: &str| shown.is_none_or(|shown| shown.contains(name));
        names.retain(|name| is_shown(name) && seen.insert(*name));
        self.openings.push((self.text.len(), names));
    }

    fn contents(&mut self, group: &Group<'t>) {
        for element in &group.elements {
            self.element(element);
        }
    }

    fn element(&mut self, element: &Element<'t>) {
        match element {
            Element::Triples(triples) => triples.iter().for_each(|triple| self.triple(triple)),
            Element::Union(groups) => {
                for (number, group) in groups.iter().enumerate() {
                    if number > 0 {
                        self.push("UNION ");
                    }
                    self.group(group);
                }
            }
            Element::Optional(group) => {
                self.push("OPTIONAL ");
                self.group(group);
            }
            Element::Minus(group) => {
                self.push("MINUS ");
                self.group(group);
            }
            Element::Graph(name, group) => {
                self.push("GRAPH ");
                self.name(name);
                self.group(group);
            }
            Element::BareGraph(name, _) => self.note_window(name.span),
            Element::Window(Name::Iri(iri), _) => self.note_window(iri.span),
            Element::Window(Name::Variable(variable), _) => self.note_window(variable.span),
            Element::Service(service) => {
                let silent = if service.silent { "SILENT " } else { "" };
                self.push(format_args!("SERVICE {silent}"));
                self.name(&service.endpoint);
                self.group(&service.group);
            }
            Element::Filter(condition) => {
                self.push("FILTER(");
                self.expression(condition);
                self.push(") ");
            }
            Element::Bind(expression, variable) => {
                self.push("BIND(");
                self.expression(expression);
                self.push(format_args!(" AS ?{}) ", variable.name));
            }
            Element::Values(values) => self.values(values),
            Element::Select(select) => self.select(select),
        }
    }

    fn triple(&mut self, triple: &TriplePattern<'_>) {
        self.term(&triple.subject);
        match &triple.predicate {
            Predicate::Name(name) => self.name(name),
            Predicate::Path(path) => {
                self.path(path);
                self.push(" ");
            }
        }
        self.term(&triple.object);
        self.push(". ");
    }

    fn name(&mut self, name: &Name<'_>) {
        match name {
            Name::Variable(variable) => self.push(format_args!("?{} ", variable.name)),
            Name::Iri(iri) => self.push(format_args!("{} ", Written(iri))),
        }
    }

    fn term(&mut self, term: &Term<'_>) {
        match term {
            Term::Variable(variable) => self.push(format_args!("?{} ", variable.name)),
            Term::Iri(iri) => self.push(format_args!("{} ", Written(iri))),
            Term::Literal(literal) => self.push(format_args!("{} ", WrittenLiteral(literal))),
            Term::Blank(node) => self.push(format_args!("_:b{} ", node.id)),
            Term::Triple(triple) => {
                self.push("<<( ");
                triple.terms.iter().for_each(|term| self.term(term));
                self.push(")>> ");
            }
        }
    }

    fn path(&mut self, path: &Path<'_>) {
        let (open, sign, close, parts): (_, _, _, &[Path<'_>]) = match path {
            Path::Iri(iri) => return self.push(Written(iri)),
            Path::Negated { forward, inverse } => return self.negated(forward, inverse),
            Path::Inverse(inner) => ("(^", "", ")", std::slice::from_ref(inner)),
            Path::ZeroOrOne(inner) => ("(", "", "?)", std::slice::from_ref(inner)),
            Path::ZeroOrMore(inner) => ("(", "", "*)", std::slice::from_ref(inner)),
            Path::OneOrMore(inner) => ("(", "", "+)", std::slice::from_ref(inner)),
            Path::Sequence(parts) => ("(", " / ", ")", parts),
            Path::Alternative(parts) => ("(", " | ", ")", parts),
        };
        self.push(open);
        for (number, part) in parts.iter().enumerate() {
            if number > 0 {
                self.push(sign);
            }
            self.path(part);
        }
        self.push(close);
    }

    fn negated(&mut self, forward: &[Iri<'_>], inverse: &[Iri<'_>]) {
        self.push("!(");
        let all = forward.iter().map(|iri| ("", iri));
        for (number, (sign, iri)) in all.chain(inverse.iter().map(|iri| ("^", iri))).enumerate() {
            let bar = if number > 0 { " | " } else { "" };
            self.push(format_args!("{bar}{sign}{}", Written(iri)));
        }
        self.push(")");
    }

    fn values(&mut self, values: &Values<'_>) {
        self.push("VALUES ( ");
        for variable in &values.variables {
            self.push(format_args!("?{} ", variable.name));
        }
        self.push(") { ");
        let mut cells = values.cells.iter();
        for _ in 0..values.rows {
            self.push("( ");
            for cell in cells.by_ref().take(values.variables.len()) {
                match cell {
                    Some(term) => self.term(term),
                    None => self.push("UNDEF "),
                }
            }
            self.push(") ");
        }
        self.push("} ");
    }

    fn select(&mut self, select: &Select<'t>) {
        self.push(match select.deduplicate {
            None => "SELECT ",
            Some(Deduplicate::Distinct) => "SELECT DISTINCT ",
            Some(Deduplicate::Reduced) => "SELECT REDUCED ",
        });
        match &select.projection {
            Projection::All(_) => self.push("* "),
            Projection::Columns(columns) => {
                for column in columns {
                    match &column.expression {
                        None => self.push(format_args!("?{} ", column.variable.name)),
                        Some(expression) => self.aliased(expression, column.variable.name),
                    }
                }
            }
        }
        self.push("WHERE { ");
        let names = shown(&select.projection).collect();
        self.opening(&select.group, Some(&names));
        self.contents(&select.group);
        self.push("} ");
        self.modifiers(&select.modifiers);
        if let Some(values) = &select.values {
            self.values(values);
        }
    }

    fn aliased(&mut self, expression: &Expression<'t>, name: &str) {
        self.push("(");
        self.expression(expression);
        self.push(format_args!(" AS ?{name}) "));
    }

    fn modifiers(&mut self, modifiers: &Modifiers<'t>) {
        if !modifiers.group_by.is_empty() {
            self.push("GROUP BY ");
        }
        for (key, alias) in &modifiers.group_by {
            match (&key.kind, alias) {
                (_, Some(alias)) => self.aliased(key, alias.name),
                (ExpressionKind::Variable(variable), None) => {
                    self.push(format_args!("?{} ", variable.name));
                }
                (_, None) => self.bracketed(key),
            }
        }
        if !modifiers.having.is_empty() {
            self.push("HAVING ");
        }
        modifiers
            .having
            .iter()
            .for_each(|condition| self.bracketed(condition));
        if !modifiers.order_by.is_empty() {
            self.push("ORDER BY ");
        }
        for key in &modifiers.order_by {
            self.push(if key.descending { "DESC" } else { "ASC" });
            self.bracketed(&key.expression);
        }
        if let Some(limit) = modifiers.limit {
            self.push(format_args!("LIMIT {limit} "));
        }
        if modifiers.offset > 0 {
            self.push(format_args!("OFFSET {} ", modifiers.offset));
        }
    }

    fn bracketed(&mut self, expression: &Expression<'t>) {
        self.push("(");
        self.expression(expression);
        self.push(") ");
    }

    fn expression(&mut self, expression: &Expression<'t>) {
        match &expression.kind {
            ExpressionKind::Variable(variable) => self.push(format_args!("?{}", variable.name)),
            ExpressionKind::Iri(iri) => self.push(Written(iri)),
            ExpressionKind::Literal(literal) => self.push(WrittenLiteral(literal)),
            ExpressionKind::Triple(terms) => {
                self.push("<<( ");
                for term in terms.iter() {
                    self.expression(term);
                    self.push(" ");
                }
                self.push(")>>");
            }
            ExpressionKind::Or(list) => self.operands(list.iter().map(|part| ("||", part))),
            ExpressionKind::And(list) => self.operands(list.iter().map(|part| ("&&", part))),
            ExpressionKind::Compare(comparison, operands) => {
                let sign = comparison_sign(*comparison);
                self.operands(operands.iter().map(|operand| (sign, operand)));
            }
            ExpressionKind::Sum(first, rest) => {
                let rest = rest.iter().map(|(sign, operand)| (sign_of(*sign), operand));
                self.operands(std::iter::once(("", &**first)).chain(rest));
            }
            ExpressionKind::Product(first, rest) => {
                let rest = rest.iter().map(|(factor, operand)| match factor {
                    Factor::Times => ("*", operand),
                    Factor::Divided => ("/", operand),
                });
                self.operands(std::iter::once(("", &**first)).chain(rest));
            }
            ExpressionKind::In {
                negated,
                operand,
                list,
            } => {
                self.push("(");
                self.expression(operand);
                self.push(if *negated { " NOT IN " } else { " IN " });
                self.call("", list);
                self.push(")");
            }
            ExpressionKind::Not(operand) => self.unary("!", operand),
            ExpressionKind::Signed(sign, operand) => self.unary(sign_of(*sign), operand),
            ExpressionKind::Call(function, list) => self.call(builtin_name(*function), list),
            ExpressionKind::Function(iri, list) => {
                if iri.value == TIMESTAMP {
                    let what = "timestamp() in SERVICE";
                    self.of_windows.get_or_insert((expression.span, what));
                }
                self.call(Written(iri), list);
            }
            ExpressionKind::Exists { negated, group } => {
                self.push(if *negated { "(NOT EXISTS " } else { "(EXISTS " });
                self.group(group);
                self.push(")");
            }
            ExpressionKind::Aggregate(aggregate) => self.aggregate(aggregate),
        }
    }

    /// Operands of one precedence, each but the first after its sign; they go from left to right.
    fn operands<'e>(&mut self, operands: impl Iterator<Item = (&'static str, &'e Expression<'t>)>)
    where
        't: 'e,
    {
        self.push("(");
        for (number, (sign, operand)) in operands.enumerate() {
            if number > 0 {
                self.push(format_args!(" {sign} "));
            }
            self.expression(operand);
        }
        self.push(")");
    }

    fn unary(&mut self, sign: &str, operand: &Expression<'t>) {
        self.push(format_args!("({sign} ("));
        self.expression(operand);
        self.push("))");
    }

    fn call(&mut self, name: impl Display, arguments: &[Expression<'t>]) {
        self.push(format_args!("{name}("));
        self.list(arguments, Self::expression);
        self.push(")");
    }

    fn aggregate(&mut self, aggregate: &Aggregate<'t>) {
        let name = match &aggregate.function {
            AggregateFunction::Count => "COUNT",
            AggregateFunction::Sum => "SUM",
            AggregateFunction::Min => "MIN",
            AggregateFunction::Max => "MAX",
            AggregateFunction::Avg => "AVG",
            AggregateFunction::Sample => "SAMPLE",
            AggregateFunction::GroupConcat { .. } => "GROUP_CONCAT",
        };
        let distinct = if aggregate.distinct { "DISTINCT " } else { "" };
        self.push(format_args!("{name}({distinct}"));
        match &aggregate.operand {
            None => self.push("*"),
            Some(operand) => self.expression(operand),
        }
        if let AggregateFunction::GroupConcat {
            separator: Some(separator),
        } = &aggregate.function
        {
            let separator = oxrdf::LiteralRef::new_simple_literal(separator);
            self.push(format_args!(" ; SEPARATOR = {separator}"));
        }
        self.push(")");
    }
}

/// An IRI as SPARQL writes it.
struct Written<'i, 't>(&'i Iri<'t>);

impl Display for Written<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}>", self.0.value)
    }
}

/// A literal as SPARQL writes it.
struct WrittenLiteral<'l, 't>(&'l Literal<'t>);

impl Display for WrittenLiteral<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        literal_term(self.0).fmt(f)?;
        match self.0.kind {
            LiteralKind::Language {
                direction: Some(Direction::Ltr),
                ..
            } => f.write_str("--ltr"),
            LiteralKind::Language {
                direction: Some(Direction::Rtl),
                ..
            } => f.write_str("--rtl"),
            _ => Ok(()),
        }
    }
}

const fn comparison_sign(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => "=",
        Comparison::NotEqual => "!=",
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterOrEqual => ">=",
    }
}

const fn sign_of(sign: Sign) -> &'static str {
    match sign {
        Sign::Plus => "+",
        Sign::Minus => "-",
    }
}

/// The name of a function: keywords are the same in all cases, and the variants are named after
/// them.
fn builtin_name(function: Builtin) -> String {
    match function {
        Builtin::EncodeForUri => "ENCODE_FOR_URI".to_owned(),
        named => format!("{named:?}").to_ascii_uppercase(),
    }
}

/// A name for a column that nothing binds, so that a SELECT without variables has one.
pub(crate) fn unused(text: &str) -> String {
    const STEM: &str = "row";
    let numbers = memmem::find_iter(text.as_bytes(), STEM).filter_map(|at| {
        let rest = &text[at + STEM.len()..];
        let end = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        rest[..end].parse::<usize>().ok()
    });
    let taken: FxHashSet<usize> = numbers.collect();
    let mut free = (0..).filter(|number| !taken.contains(number));
    format!(
        "{STEM}{}",
        free.next().expect("a text has finitely many names")
    )
}

#[cfg(test)]
#[path = "remote_tests.rs"]
mod tests;
