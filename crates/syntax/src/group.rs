//! What does a group graph pattern say?

use std::mem::size_of;

use crate::hints;
use crate::keywords::Keyword;
use crate::lexer::Kind;
use crate::memory::{Failure, Parsed};
use crate::parser::Parser;
use crate::patterns::{Blanks, TreeSink};
use crate::scope::Set;
use crate::tree::{
    Element, Expression, ExpressionKind, Group, Predicate, Service, Span, Term, TripleTerm, Values,
    Variable,
};
use crate::window::REFUSED_IN_GROUPS;

/// What may stand where an element of a group ends.
const AFTER_TRIPLES: &[&str] = &["'.'", "';'", "','", "'}'"];
const IN_GROUP: &[&str] = &["triples", "a keyword such as FILTER", "'{'", "'}'"];

const OWN_BRACES: &str = "a nested SELECT stands in braces of its own, { SELECT ... }";
const BRACKETED: &str = "all of a FILTER's expression stands between '(' and ')'";

/// An error with a hint.
pub(crate) fn with_hint(mut failure: Failure, text: &str) -> Failure {
    if let crate::Error::Syntax { hint, .. } = &mut *failure {
        *hint = Some(text.to_owned());
    }
    failure
}

impl<'t> Parser<'t, '_> {
    /// A group graph pattern. Its variables are in scope afterwards if it `joins`.
    pub(crate) fn group(&mut self, what: &str, joins: bool) -> Parsed<Group<'t>> {
        let start = self.token.span.start;
        self.open(Kind::OpenBrace, what)?;
        let outer = self.scope.enter();
        let mut elements = Vec::new();
        if self.keyword == Keyword::Select {
            let select = self.nested_select()?;
            let select = self.memory.boxed(select)?;
            self.memory.push(&mut elements, Element::Select(select))?;
            if !self.is(Kind::CloseBrace) {
                return Err(self.after_select());
            }
        } else {
            self.elements(&mut elements)?;
        }
        self.close(Kind::CloseBrace, "a graph pattern", &[])?;
        match joins {
            true => self.scope.leave(outer),
            false => self.scope.hide(outer),
        }
        let span = self.since(start);
        Ok(Group { span, elements })
    }

    #[cold]
    fn after_select(&self) -> Failure {
        let failure = self.unexpected("a nested SELECT", &["'}'"]);
        match self.at_triples() || self.at_element() {
            true => with_hint(failure, OWN_BRACES),
            false => failure,
        }
    }

    #[cold]
    fn no_element(&self) -> Failure {
        let failure = self.misplaced(IN_GROUP);
        match self.keyword {
            Keyword::Select => with_hint(failure, OWN_BRACES),
            _ => failure,
        }
    }

    /// The error that the next token is not what fits in a group.
    #[cold]
    fn misplaced(&self, fits: &[&str]) -> Failure {
        let refused = self.refused(REFUSED_IN_GROUPS);
        refused.unwrap_or_else(|| self.unexpected("a graph pattern", fits))
    }

    fn at_element(&self) -> bool {
        self.is(Kind::OpenBrace)
            || matches!(
                self.keyword,
                Keyword::Optional
                    | Keyword::Minus
                    | Keyword::Graph
                    | Keyword::Service
                    | Keyword::Filter
                    | Keyword::Bind
                    | Keyword::Values
            )
            || self.at_window()
    }

    fn elements(&mut self, elements: &mut Vec<Element<'t>>) -> Parsed<()> {
        // Where the triples are that go on after filters.
        let mut triples = None;
        let mut frames = Vec::new();
        loop {
            if self.at_triples() {
                let mut sink = TreeSink::<Predicate<'t>>::new(true, Blanks::Allowed);
                if let Some(Element::Triples(before)) =
                    triples.and_then(|at: usize| elements.get_mut(at))
                {
                    sink.triples = std::mem::take(before);
                }
                loop {
                    self.triples(&mut sink, &mut frames)?;
                    if !self.accept(Kind::Dot)? {
                        if self.at_triples() {
                            return Err(self.no_point());
                        }
                        break;
                    }
                    if !self.at_triples() {
                        break;
                    }
                }
                match triples {
                    Some(at) => elements[at] = Element::Triples(sink.triples),
                    None => {
                        triples = Some(elements.len());
                        self.memory.push(elements, Element::Triples(sink.triples))?;
                    }
                }
                if !self.is(Kind::CloseBrace) && !self.at_element() {
                    let has_point = self.text[..self.end as usize].ends_with('.');
                    return Err(match has_point {
                        true => self.no_element(),
                        false => self.misplaced(AFTER_TRIPLES),
                    });
                }
            }
            if self.is(Kind::CloseBrace) {
                self.memory.release(frames);
                return Ok(());
            }
            if !self.at_element() {
                return Err(self.no_element());
            }
            let element = self.element()?;
            if !matches!(element, Element::Filter(_)) {
                triples = None;
                self.scope.next_block();
            }
            self.memory.push(elements, element)?;
            self.accept(Kind::Dot)?;
        }
    }

    /// The error that nothing separates two statements.
    #[cold]
    pub(crate) fn no_point(&self) -> Failure {
        let failure = self.unexpected("a graph pattern", AFTER_TRIPLES);
        match failure.hint() {
            Some(_) => failure,
            None => with_hint(failure, "a '.' separates triples with other subjects"),
        }
    }

    fn element(&mut self) -> Parsed<Element<'t>> {
        let start = self.token.span.start;
        if self.is(Kind::OpenBrace) {
            return self.union();
        }
        let keyword = self.keyword;
        if keyword == Keyword::None {
            return self.window_pattern();
        }
        self.advance()?;
        Ok(match keyword {
            Keyword::Optional => Element::Optional(self.group("OPTIONAL", true)?),
            Keyword::Minus => Element::Minus(self.group("MINUS", false)?),
            Keyword::Graph => match self.accept_bare_name()? {
                Some(name) => Element::BareGraph(name, self.group("GRAPH", true)?),
                None => {
                    let name = self.visible_name("GRAPH")?;
                    Element::Graph(name, self.group("GRAPH", true)?)
                }
            },
            Keyword::Service => {
                let silent = self.accept_word(Keyword::Silent)?;
                let endpoint = self.visible_name("SERVICE")?;
                let group = self.group("SERVICE", true)?;
                Element::Service(Service {
                    span: self.since(start),
                    silent,
                    endpoint,
                    group,
                })
            }
            Keyword::Filter => {
                let aggregates = self.forbid_aggregates("a FILTER");
                let filter = match self.is(Kind::OpenParen) || self.at_iri() || self.at_call() {
                    true => self.constraint("a FILTER")?,
                    false => {
                        let failure = self.unexpected("a FILTER", &["'('", "a function"]);
                        return Err(match failure.hint() {
                            Some(_) => failure,
                            None => with_hint(failure, BRACKETED),
                        });
                    }
                };
                self.aggregates = aggregates;
                if !self.at_triples() && !self.after_filter() {
                    return Err(self.behind_filter());
                }
                Element::Filter(filter)
            }
            Keyword::Bind => self.bind()?,
            _ => Element::Values(self.values(start)?),
        })
    }

    fn after_filter(&self) -> bool {
        self.at_element() || matches!(self.token.kind, Kind::CloseBrace | Kind::Dot)
    }

    #[cold]
    fn behind_filter(&self) -> Failure {
        let failure = self.misplaced(IN_GROUP);
        let is_operator = matches!(
            self.token.kind,
            Kind::And
                | Kind::Or
                | Kind::Equal
                | Kind::NotEqual
                | Kind::Less
                | Kind::LessOrEqual
                | Kind::Greater
                | Kind::GreaterOrEqual
                | Kind::Plus
                | Kind::Minus
                | Kind::Star
                | Kind::Slash
        );
        let written = self.token.of(self.text);
        let after = self.text[self.token.span.end as usize..].trim_start();
        let is_filter = |text: &str| text.eq_ignore_ascii_case("FILTER");
        let joins = (written.eq_ignore_ascii_case("AND") || written.eq_ignore_ascii_case("OR"))
            && !after.get(..6).is_some_and(is_filter);
        match is_operator || joins {
            true => with_hint(failure, BRACKETED),
            false => failure,
        }
    }

    /// A variable, which is in scope then, or an IRI.
    pub(crate) fn visible_name(&mut self, what: &str) -> Parsed<crate::tree::Name<'t>> {
        let name = self.name(what)?;
        if let crate::tree::Name::Variable(variable) = name {
            self.scope.see(variable, &mut self.memory)?;
        }
        Ok(name)
    }

    fn union(&mut self) -> Parsed<Element<'t>> {
        let mut groups = Vec::new();
        loop {
            let group = self.group("UNION", true)?;
            self.memory.push(&mut groups, group)?;
            if !self.accept_word(Keyword::Union)? {
                return Ok(Element::Union(groups));
            }
        }
    }

    fn bind(&mut self) -> Parsed<Element<'t>> {
        self.open(Kind::OpenParen, "BIND")?;
        let aggregates = self.forbid_aggregates("BIND");
        let (expression, variable) = self.assignment("BIND")?;
        self.aggregates = aggregates;
        self.close(Kind::CloseParen, "BIND", &[])?;
        if let Some(before) = self.scope.seen(variable.name) {
            let name = variable.name;
            let message = format!("BIND assigns ?{name}, which has a value there already");
            let place = self.place(before.start);
            let hint = format!("?{name} is at {place}; another name for it, or a FILTER");
            return Err(self.wrong(variable.span, message, Some(hint)));
        }
        self.scope.see(variable, &mut self.memory)?;
        Ok(Element::Bind(expression, variable))
    }

    /// `expression AS ?variable`, up to the bracket that closes.
    pub(crate) fn assignment(&mut self, what: &str) -> Parsed<(Expression<'t>, Variable<'t>)> {
        let expression = self.expression()?;
        if self.keyword != Keyword::As {
            return Err(match self.is(Kind::CloseParen) {
                true => self.unnamed(what, &expression),
                false => self.no_operator(&["an operator", "AS"]),
            });
        }
        self.advance()?;
        let variable = self.variable(what)?;
        if !self.is(Kind::CloseParen) {
            return Err(self.unexpected(what, &["')'"]));
        }
        Ok((expression, variable))
    }

    /// The error that a computed value gets no name.
    #[cold]
    fn unnamed(&self, what: &str, expression: &Expression<'_>) -> Failure {
        let failure = self.unexpected(what, &["AS and a variable"]);
        let is_variable = matches!(expression.kind, ExpressionKind::Variable(_));
        match is_variable && what == "the SELECT clause" {
            true => with_hint(failure, "a variable alone stands without brackets"),
            false => failure,
        }
    }

    /// Inline data, after VALUES.
    pub(crate) fn values(&mut self, start: u32) -> Parsed<Values<'t>> {
        let mut variables = Vec::new();
        self.scope.begin_set(Set::Columns);
        let is_one = self.is(Kind::Variable);
        if is_one {
            let variable = self.variable("VALUES")?;
            self.memory.push(&mut variables, variable)?;
        } else if !self.accept(Kind::Nil)? {
            if !self.is(Kind::OpenParen) {
                return Err(self.unexpected("VALUES", &["a variable", "'('"]));
            }
            self.open(Kind::OpenParen, "VALUES")?;
            while self.is(Kind::Variable) {
                let variable = self.variable("VALUES")?;
                if !self
                    .scope
                    .put(Set::Columns, variable.name, &mut self.memory)?
                {
                    let message = format!("VALUES has ?{} twice", variable.name);
                    return Err(self.wrong(variable.span, message, None));
                }
                self.memory.push(&mut variables, variable)?;
            }
            self.close(Kind::CloseParen, "VALUES", &["a variable"])?;
        }
        for variable in &variables {
            self.scope.see(*variable, &mut self.memory)?;
        }
        self.open(Kind::OpenBrace, "VALUES")?;
        let mut cells = Vec::new();
        let mut rows = 0;
        loop {
            match self.token.kind {
                Kind::CloseBrace => break,
                _ if is_one => {
                    let cell = self.cell("VALUES", &["'}'"])?;
                    self.memory.push(&mut cells, cell)?;
                }
                _ => self.row(&mut cells, variables.len())?,
            }
            rows += 1;
        }
        self.close(Kind::CloseBrace, "VALUES", &[])?;
        Ok(Values {
            span: self.since(start),
            variables,
            cells,
            rows,
        })
    }

    fn row(&mut self, cells: &mut Vec<Option<Term<'t>>>, width: usize) -> Parsed<()> {
        let start = self.token.span.start;
        let mut count = 0;
        if !self.accept(Kind::Nil)? {
            if !self.is(Kind::OpenParen) {
                return Err(self.unexpected("VALUES", &["'('", "'}'"]));
            }
            self.open(Kind::OpenParen, "VALUES")?;
            while !self.is(Kind::CloseParen) {
                let cell = self.cell("a row of VALUES", &["')'"])?;
                self.memory.push(cells, cell)?;
                count += 1;
            }
            self.close(Kind::CloseParen, "VALUES", &[])?;
        }
        if count == width {
            return Ok(());
        }
        let message = format!(
            "a row of VALUES has {}, and there are {}",
            hints::count(count, "value"),
            hints::count(width, "variable")
        );
        let hint = (count < width).then(|| "UNDEF stands for no value".to_owned());
        Err(self.wrong(self.since(start), message, hint))
    }

    fn cell(&mut self, what: &str, others: &[&str]) -> Parsed<Option<Term<'t>>> {
        if self.keyword == Keyword::Undef {
            self.advance()?;
            return Ok(None);
        }
        if self.is(Kind::OpenTriple) {
            return Ok(Some(self.ground_triple()?));
        }
        match self.ground_term(what)? {
            Some(term) => Ok(Some(term)),
            None => {
                let mut fits = vec!["an IRI", "a literal", "UNDEF", "a triple term"];
                fits.extend(others);
                Err(self.unexpected(what, &fits))
            }
        }
    }

    /// An IRI or a literal.
    fn ground_term(&mut self, what: &str) -> Parsed<Option<Term<'t>>> {
        Ok(if self.at_iri() {
            Some(Term::Iri(self.iri(what)?))
        } else if self.at_literal() {
            Some(Term::Literal(self.literal()?))
        } else {
            None
        })
    }

    fn ground_triple(&mut self) -> Parsed<Term<'t>> {
        let start = self.token.span.start;
        self.open(Kind::OpenTriple, "a triple term")?;
        let subject = Term::Iri(self.iri("the subject of a triple term of VALUES")?);
        let predicate = Term::Iri(match self.keyword {
            Keyword::A => self.type_iri()?,
            _ => self.iri("the predicate of a triple term of VALUES")?,
        });
        let what = "the object of a triple term of VALUES";
        let object = match self.is(Kind::OpenTriple) {
            true => self.ground_triple()?,
            false => match self.ground_term(what)? {
                Some(term) => term,
                None => {
                    let fits = ["an IRI", "a literal", "a triple term"];
                    return Err(self.unexpected(what, &fits));
                }
            },
        };
        self.close(Kind::CloseTriple, "a triple term", &[])?;
        let span: Span = self.since(start);
        self.memory.take(size_of::<TripleTerm<'_>>())?;
        let terms = [subject, predicate, object];
        Ok(Term::Triple(Box::new(TripleTerm { span, terms })))
    }
}
