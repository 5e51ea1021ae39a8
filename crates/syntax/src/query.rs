//! What does a query ask for?

use crate::Error;
use crate::check::Clause;
use crate::group::with_hint;
use crate::keywords::Keyword;
use crate::lexer::Kind;
use crate::memory::{Failure, Parsed};
use crate::parser::{Aggregates, Parser};
use crate::patterns::{Blanks, TreeSink};
use crate::tree::{
    Column, Dataset, Deduplicate, Element, Expression, ExpressionKind, Form, Group, Modifiers,
    Name, OrderKey, Projection, Query, Select, Triple, Values, Variable,
};
use crate::window::REFUSED_AT_END;

const MODIFIERS: &str =
    "modifiers stand in this order, each once: GROUP BY, HAVING, ORDER BY, LIMIT, OFFSET, VALUES";
const FORMS: &[&str] = &["SELECT", "CONSTRUCT", "DESCRIBE", "ASK"];

/// What follows WHERE.
struct Rest<'t> {
    modifiers: Modifiers<'t>,
    /// Whether solutions are grouped.
    is_grouped: bool,
}

impl<'t> Parser<'t, '_> {
    /// A query, which is all of the text.
    pub(crate) fn query(&mut self) -> Parsed<Query<'t>> {
        self.prologue()?;
        let outer = self.scope.enter();
        let keyword = self.keyword;
        let (form, dataset, values) = match keyword {
            Keyword::Select => self.select_query()?,
            Keyword::Construct => self.construct_query()?,
            Keyword::Describe => self.describe_query()?,
            Keyword::Ask => self.ask_query()?,
            keyword if is_operation(keyword) => {
                let span = self.token.span;
                return Err(Box::new(Error::IsUpdate { span }));
            }
            _ => {
                let mut fits = FORMS.to_vec();
                fits.extend(["PREFIX", "BASE"]);
                let failure = self.unexpected("a query", &fits);
                let after_iri = self.text[..self.end as usize].ends_with('>');
                return Err(match self.is(Kind::Dot) && after_iri {
                    true => with_hint(failure, "declarations end without a point"),
                    false => failure,
                });
            }
        };
        self.scope.leave(outer);
        if !self.is(Kind::End) {
            if let Some(refused) = self.refused(REFUSED_AT_END) {
                return Err(refused);
            }
            let failure = self.unexpected("", &["the end of the query"]);
            return Err(match self.keyword {
                Keyword::From => with_hint(failure, "FROM stands before WHERE"),
                Keyword::Where => with_hint(failure, "WHERE stands before the modifiers"),
                Keyword::Group
                | Keyword::Having
                | Keyword::Order
                | Keyword::Limit
                | Keyword::Offset => with_hint(failure, MODIFIERS),
                _ => failure,
            });
        }
        let base = self.base()?;
        Ok(Query {
            base,
            form,
            dataset,
            values,
        })
    }

    /// The base IRI that holds here.
    pub(crate) fn base(&mut self) -> Parsed<Option<String>> {
        let Some(base) = self.names.base(self.visible) else {
            return Ok(None);
        };
        self.memory.take(base.as_str().len())?;
        Ok(Some(base.as_str().to_owned()))
    }

    fn select_query(&mut self) -> Parsed<Parts<'t>> {
        let start = self.token.span.start;
        self.advance()?;
        self.accept_output()?;
        let clause = self.select_clause()?;
        let dataset = self.dataset(Keyword::From)?;
        let group = self.where_clause()?;
        let rest = self.modifiers(clause.has_aggregates)?;
        let span = self.since(start);
        let values = self.trailing_values()?;
        let deduplicate = clause.deduplicate;
        let projection = self.checked(clause, &rest.modifiers, rest.is_grouped, values.as_ref())?;
        let select = self.memory.boxed(Select {
            span,
            deduplicate,
            projection,
            group,
            modifiers: rest.modifiers,
            values: None,
        })?;
        Ok((Form::Select(select), dataset, values))
    }

    /// A SELECT inside of a group, which has nothing else. Its columns are in scope then.
    pub(crate) fn nested_select(&mut self) -> Parsed<Select<'t>> {
        let start = self.token.span.start;
        let aggregates = self.aggregates;
        self.advance()?;
        let clause = self.select_clause()?;
        if self.keyword == Keyword::From {
            let message = "a nested SELECT has no FROM";
            let hint = "the dataset is that of the whole query".to_owned();
            return Err(self.wrong(self.token.span, message.to_owned(), Some(hint)));
        }
        let group = self.where_clause()?;
        let rest = self.modifiers(clause.has_aggregates)?;
        let values = self.trailing_values()?;
        let span = self.since(start);
        let deduplicate = clause.deduplicate;
        let projection = self.checked(clause, &rest.modifiers, rest.is_grouped, values.as_ref())?;
        if let Projection::Columns(columns) = &projection {
            self.scope.clear();
            for column in columns {
                self.scope.see(column.variable, &mut self.memory)?;
            }
        }
        self.aggregates = aggregates;
        Ok(Select {
            span,
            deduplicate,
            projection,
            group,
            modifiers: rest.modifiers,
            values,
        })
    }

    /// What a SELECT shows, after its keyword.
    fn select_clause(&mut self) -> Parsed<Clause<'t>> {
        let what = "the SELECT clause";
        let deduplicate = match self.keyword {
            Keyword::Distinct => Some(Deduplicate::Distinct),
            Keyword::Reduced => Some(Deduplicate::Reduced),
            _ => None,
        };
        let mut clause = Clause {
            deduplicate,
            ..Clause::default()
        };
        if clause.deduplicate.is_some() {
            self.advance()?;
        }
        if self.accept(Kind::Star)? {
            clause.is_star = true;
            return Ok(clause);
        }
        self.aggregates = Aggregates::Allowed;
        self.used = Some(Vec::new());
        loop {
            let column = match self.token.kind {
                Kind::Variable => Column {
                    expression: None,
                    variable: self.variable(what)?,
                },
                Kind::OpenParen => {
                    self.open(Kind::OpenParen, what)?;
                    let (expression, variable) = self.assignment(what)?;
                    self.close(Kind::CloseParen, what, &[])?;
                    Column {
                        expression: Some(expression),
                        variable,
                    }
                }
                _ if clause.columns.is_empty() => {
                    return Err(self.unexpected(what, &["a variable", "'('", "'*'"]));
                }
                _ if self.after_columns() => break,
                _ => return Err(self.unexpected(what, &["a variable", "'('", "WHERE", "'{'"])),
            };
            self.memory.push(&mut clause.columns, column)?;
            let used = self.used.as_ref().map_or(0, Vec::len);
            self.memory.push(&mut clause.ends, used)?;
        }
        clause.used = self.used.take().unwrap_or_default();
        clause.has_aggregates = self.aggregates == Aggregates::Present;
        Ok(clause)
    }

    fn after_columns(&self) -> bool {
        self.is(Kind::OpenBrace) || matches!(self.keyword, Keyword::From | Keyword::Where)
    }

    fn ask_query(&mut self) -> Parsed<Parts<'t>> {
        self.advance()?;
        let dataset = self.dataset(Keyword::From)?;
        let group = self.where_clause()?;
        let modifiers = self.modifiers(false)?.modifiers;
        let values = self.trailing_values()?;
        Ok((Form::Ask { group, modifiers }, dataset, values))
    }

    fn describe_query(&mut self) -> Parsed<Parts<'t>> {
        let what = "the DESCRIBE clause";
        self.advance()?;
        let is_star = self.accept(Kind::Star)?;
        let mut targets = Vec::new();
        while !is_star && (self.is(Kind::Variable) || self.at_iri()) {
            let target = self.name(what)?;
            self.memory.push(&mut targets, target)?;
        }
        if !is_star && targets.is_empty() {
            return Err(self.unexpected(what, &["a variable", "an IRI", "'*'"]));
        }
        if self.is(Kind::Comma) {
            return Err(self.unexpected(what, &["a variable", "an IRI", "WHERE"]));
        }
        let dataset = self.dataset(Keyword::From)?;
        let has_group = self.keyword == Keyword::Where || self.is(Kind::OpenBrace);
        let group = match has_group {
            true => Some(self.where_clause()?),
            false => None,
        };
        let rest = self.modifiers(false)?;
        let values = self.trailing_values()?;
        let (modifiers, values_there) = (&rest.modifiers, values.as_ref());
        if is_star {
            for variable in self.described(modifiers, rest.is_grouped, values_there)? {
                self.memory.push(&mut targets, Name::Variable(variable))?;
            }
        } else if rest.is_grouped {
            self.begin_grouped(modifiers, values_there)?;
            for target in &targets {
                if let Name::Variable(variable) = target {
                    self.check_grouped(*variable, modifiers, None)?;
                }
            }
        }
        let form = Form::Describe {
            targets,
            group,
            modifiers: rest.modifiers,
        };
        Ok((form, dataset, values))
    }

    fn construct_query(&mut self) -> Parsed<Parts<'t>> {
        self.advance()?;
        self.accept_output()?;
        if self.is(Kind::OpenBrace) {
            self.scope.begin_template();
            let template = self.template("the template of CONSTRUCT", false)?;
            self.scope.end_template();
            let dataset = self.dataset(Keyword::From)?;
            let group = self.where_clause()?;
            let modifiers = self.modifiers(false)?.modifiers;
            let values = self.trailing_values()?;
            let form = Form::Construct {
                template,
                group,
                modifiers,
            };
            return Ok((form, dataset, values));
        }
        let dataset = self.dataset(Keyword::From)?;
        if self.keyword != Keyword::Where {
            return Err(self.unexpected("a CONSTRUCT query", &["'{'", "FROM", "WHERE"]));
        }
        self.advance()?;
        let start = self.token.span.start;
        let template = self.template("CONSTRUCT WHERE", true)?;
        let span = self.since(start);
        let mut patterns = Vec::new();
        for triple in &template {
            let pattern = self.pattern_of(triple)?;
            self.memory.push(&mut patterns, pattern)?;
        }
        let mut elements = Vec::new();
        if !patterns.is_empty() {
            self.memory
                .push(&mut elements, Element::Triples(patterns))?;
        }
        let group = Group { span, elements };
        let modifiers = self.modifiers(false)?.modifiers;
        let values = self.trailing_values()?;
        let form = Form::Construct {
            template,
            group,
            modifiers,
        };
        Ok((form, dataset, values))
    }

    /// The triples of a template between braces, whose variables are in scope if it is a pattern.
    fn template(&mut self, what: &str, is_pattern: bool) -> Parsed<Vec<Triple<'t>>> {
        self.open(Kind::OpenBrace, what)?;
        let mut sink = TreeSink::<Name<'t>>::new(is_pattern, Blanks::Allowed);
        let mut frames = Vec::new();
        while self.at_triples() {
            self.triples(&mut sink, &mut frames)?;
            if !self.accept(Kind::Dot)? {
                if self.at_triples() {
                    return Err(self.no_point());
                }
                break;
            }
        }
        self.memory.release(frames);
        let fits: &[&str] = match sink.triples.is_empty() {
            true => &["triples"],
            false => &["'.'", "';'", "','"],
        };
        self.close(Kind::CloseBrace, what, fits)?;
        Ok(sink.triples)
    }

    /// FROM or USING, as often as there are some; none if a continuous query has no graph there
    /// that is named by an IRI.
    pub(crate) fn dataset(&mut self, keyword: Keyword) -> Parsed<Option<Dataset<'t>>> {
        if self.keyword != keyword {
            return Ok(None);
        }
        let what = keyword.text();
        let mut dataset = Dataset::default();
        while self.clauses.is_some() && self.keyword == keyword {
            self.source(&mut dataset)?;
        }
        while self.accept_word(keyword)? {
            let list = match self.accept_word(Keyword::Named)? {
                true => &mut dataset.named,
                false => &mut dataset.default,
            };
            if !self.at_iri() {
                return Err(self.unexpected(what, &["an IRI", "NAMED and an IRI"]));
            }
            let iri = self.iri(what)?;
            self.memory.push(list, iri)?;
        }
        let has_graphs = !dataset.default.is_empty() || !dataset.named.is_empty();
        Ok(has_graphs.then_some(dataset))
    }

    fn where_clause(&mut self) -> Parsed<Group<'t>> {
        let aggregates = self.forbid_aggregates("a graph pattern");
        let has_word = self.accept_word(Keyword::Where)?;
        if !has_word && !self.is(Kind::OpenBrace) {
            return Err(self.unexpected("a query", &["WHERE", "'{'"]));
        }
        let group = self.group("the WHERE clause", true)?;
        self.aggregates = aggregates;
        Ok(group)
    }

    fn modifiers(&mut self, has_aggregates: bool) -> Parsed<Rest<'t>> {
        let mut modifiers = Modifiers::default();
        let mut is_grouped = has_aggregates;
        if self.accept_word(Keyword::Group)? {
            self.expect_word(Keyword::By, "the GROUP BY clause")?;
            is_grouped = true;
            self.aggregates = Aggregates::Refused("GROUP BY");
            self.group_keys(&mut modifiers)?;
        }
        self.aggregates = Aggregates::Allowed;
        if self.accept_word(Keyword::Having)? {
            loop {
                let condition = self.constraint("HAVING")?;
                self.memory.push(&mut modifiers.having, condition)?;
                if !self.at_constraint() {
                    break;
                }
            }
        }
        if self.accept_word(Keyword::Order)? {
            self.expect_word(Keyword::By, "the ORDER BY clause")?;
            self.order_keys(&mut modifiers)?;
        }
        is_grouped |= self.aggregates == Aggregates::Present;
        self.aggregates = Aggregates::Refused("a graph pattern");
        self.slice(&mut modifiers)?;
        Ok(Rest {
            modifiers,
            is_grouped,
        })
    }

    fn at_constraint(&self) -> bool {
        self.is(Kind::OpenParen) || self.at_iri() || self.at_call()
    }

    fn group_keys(&mut self, modifiers: &mut Modifiers<'t>) -> Parsed<()> {
        loop {
            let key = match self.token.kind {
                Kind::Variable => (self.variable_expression()?, None),
                Kind::OpenParen => {
                    self.open(Kind::OpenParen, "GROUP BY")?;
                    let key = self.expression()?;
                    let name = match self.accept_word(Keyword::As)? {
                        true => Some(self.variable("GROUP BY")?),
                        false => None,
                    };
                    match name {
                        Some(_) => self.close(Kind::CloseParen, "GROUP BY", &[])?,
                        None => self.end_expression(Kind::CloseParen, &["an operator", "AS"])?,
                    }
                    (key, name)
                }
                _ if self.at_constraint() => (self.constraint("GROUP BY")?, None),
                _ if modifiers.group_by.is_empty() || self.is(Kind::Comma) => {
                    return Err(self.unexpected("GROUP BY", &["a variable", "'('", "a function"]));
                }
                _ => return Ok(()),
            };
            self.memory.push(&mut modifiers.group_by, key)?;
        }
    }

    fn order_keys(&mut self, modifiers: &mut Modifiers<'t>) -> Parsed<()> {
        loop {
            let (expression, descending) = match self.token.kind {
                Kind::Variable => (self.variable_expression()?, false),
                Kind::Word if matches!(self.keyword, Keyword::Asc | Keyword::Desc) => {
                    let descending = self.keyword == Keyword::Desc;
                    self.advance()?;
                    if !self.is(Kind::OpenParen) {
                        return Err(self.no_key(descending, modifiers.order_by.last()));
                    }
                    (self.bracketed()?, descending)
                }
                _ if self.at_constraint() => (self.constraint("ORDER BY")?, false),
                _ if modifiers.order_by.is_empty() || self.is(Kind::Comma) => {
                    let fits = ["a variable", "ASC(", "DESC(", "'('", "a function"];
                    return Err(self.unexpected("ORDER BY", &fits));
                }
                _ => return Ok(()),
            };
            let key = OrderKey {
                expression,
                descending,
            };
            self.memory.push(&mut modifiers.order_by, key)?;
        }
    }

    /// The error that ASC or DESC has no key between brackets.
    #[cold]
    fn no_key(&self, descending: bool, before: Option<&OrderKey<'t>>) -> Failure {
        let word = if descending { "DESC" } else { "ASC" };
        let failure = self.unexpected("ORDER BY", &["'('"]);
        let name = match (self.token.kind, before.map(|key| &key.expression.kind)) {
            (Kind::Variable, _) => self.token.of(self.text).to_owned(),
            (_, Some(ExpressionKind::Variable(variable))) => format!("?{}", variable.name),
            _ => return failure,
        };
        with_hint(failure, &format!("it is written {word}({name})"))
    }

    fn variable_expression(&mut self) -> Parsed<Expression<'t>> {
        let variable = self.variable("a key")?;
        Ok(Expression {
            span: variable.span,
            kind: ExpressionKind::Variable(variable),
        })
    }

    /// LIMIT and OFFSET, in either order.
    fn slice(&mut self, modifiers: &mut Modifiers<'t>) -> Parsed<()> {
        let is_limit_first = self.keyword == Keyword::Limit;
        for is_limit in [is_limit_first, !is_limit_first] {
            if is_limit && self.accept_word(Keyword::Limit)? {
                modifiers.limit = Some(self.number("LIMIT")?);
                if self.is(Kind::Comma) {
                    return Err(self.unexpected("LIMIT", &["OFFSET"]));
                }
            } else if !is_limit && self.accept_word(Keyword::Offset)? {
                modifiers.offset = self.number("OFFSET")?;
            }
        }
        Ok(())
    }

    /// An integer without sign.
    pub(crate) fn number(&mut self, what: &str) -> Parsed<u64> {
        let written = self.token.of(self.text);
        if !self.is(Kind::Integer) || written.starts_with(['+', '-']) {
            return Err(self.unexpected(what, &["an integer without sign"]));
        }
        let Ok(number) = written.parse() else {
            let message = format!("{what} is larger than {}", u64::MAX);
            return Err(self.wrong(self.token.span, message, None));
        };
        self.advance()?;
        Ok(number)
    }

    fn trailing_values(&mut self) -> Parsed<Option<Values<'t>>> {
        let start = self.token.span.start;
        if !self.accept_word(Keyword::Values)? {
            return Ok(None);
        }
        Ok(Some(self.values(start)?))
    }

    /// What DESCRIBE `*` describes.
    fn described(
        &mut self,
        modifiers: &Modifiers<'t>,
        is_grouped: bool,
        values: Option<&Values<'t>>,
    ) -> Parsed<Vec<Variable<'t>>> {
        if is_grouped {
            self.scope.clear();
            for variable in crate::check::keys(modifiers) {
                self.scope.see(variable, &mut self.memory)?;
            }
            for variable in values.iter().flat_map(|values| &values.variables) {
                self.scope.see(*variable, &mut self.memory)?;
            }
        }
        self.scope.all(&mut self.memory)
    }
}

type Parts<'t> = (Form<'t>, Option<Dataset<'t>>, Option<Values<'t>>);

/// Whether an update begins with a keyword.
pub(crate) const fn is_operation(keyword: Keyword) -> bool {
    use Keyword as K;
    matches!(
        keyword,
        K::Insert
            | K::Delete
            | K::Load
            | K::Clear
            | K::Drop
            | K::Create
            | K::Add
            | K::Move
            | K::Copy
            | K::With
    )
}
